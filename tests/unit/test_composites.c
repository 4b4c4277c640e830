/* Composites (and ops whose meaning is easily mistaken) against numbers from PyTorch in f64,
 * tests/oracle/composites.json. The suite's oracle expands ir/composites.def itself, so only numbers from elsewhere can
 * show an error in it. Both sides are evaluations in double of the same formula in some order, so they differ by at
 * most twice the bound. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/gen.h"

#define NUMBERS "tests/oracle/composites.json"

static double number(const cJSON *item) { return strtod(cJSON_GetStringValue(item), NULL); }

static const cJSON *member(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    assert_non_null(item);
    return item;
}

/* The values of {"shape": ..., "values": ...} and the view of them. */
static double *read_tensor(Job *job, const cJSON *tensor, View *view) {
    const cJSON *values = member(tensor, "values"), *shape = member(tensor, "shape"), *item;
    double *numbers = IR_NEW_ARRAY(job, double, (size_t)cJSON_GetArraySize(values) + 1);
    size_t count = 0;
    cJSON_ArrayForEach(item, values) numbers[count++] = number(item);
    view->bytes = numbers;
    view->dtype = DTYPE_F64;
    view->rank = (uint8_t)cJSON_GetArraySize(shape);
    int64_t stride = 1;
    for (int d = view->rank; d-- > 0;) {
        view->extent[d] = (int64_t)cJSON_GetNumberValue(cJSON_GetArrayItem(shape, d));
        view->stride[d] = stride;
        stride *= view->extent[d];
    }
    return numbers;
}

typedef struct Case {
    const cJSON *json;
    uint32_t failed; /* elements */
} Case;

static const char *graph_text(Job *job, const cJSON *json) {
    Text text = ir_text(job);
    const cJSON *input, *extent;
    ir_text_put(&text, "graph: composite\ninputs:\n");
    cJSON_ArrayForEach(input, member(json, "inputs")) {
        ir_text_format(&text, "  %s: \"f64[", input->string);
        const cJSON *shape = member(input, "shape");
        cJSON_ArrayForEach(extent, shape) {
            ir_text_format(&text, "%s%lld", extent == shape->child ? "" : ", ",
                           (long long)cJSON_GetNumberValue(extent));
        }
        ir_text_put(&text, "]\"\n");
    }
    ir_text_format(&text, "nodes:\n  y: %s\noutputs: {y: f64}\n", cJSON_GetStringValue(member(json, "y")));
    return ir_text_string(&text);
}

static void compare(Job *job, void *state) {
    Case *test = state;
    const char *text = graph_text(job, test->json);
    GenOptions options = {.target = gen_target(90)};
    Unit unit = {0};
    gen_run(job, &unit, "composite", text, strlen(text), &options, gen_pass_find("expand"));
    View views[8] = {0};
    const cJSON *input;
    uint32_t count = 0;
    cJSON_ArrayForEach(input, member(test->json, "inputs")) read_tensor(job, input, &views[count++]);
    int64_t *dims = ir_graph_fixed(job, unit.expanded);
    EvalInput eval = {.dims = dims, .inputs = views};
    Expected got = ir_eval_graph(job, unit.expanded, &eval, 0, NULL);
    View view = {0};
    const double *expected = read_tensor(job, member(test->json, "expected"), &view);
    assert_int_equal(got.count, cJSON_GetArraySize(member(member(test->json, "expected"), "values")));
    for (uint64_t i = 0; i < got.count; i++) {
        bool equal = got.number[i] == expected[i] || (isnan(got.number[i]) && isnan(expected[i]));
        if (equal || fabs(got.number[i] - expected[i]) <= 2 * got.bound[i]) continue;
        print_message("%s [%llu]: got %.17g, PyTorch %.17g, bound %.3g\n",
                      cJSON_GetStringValue(member(test->json, "name")), (unsigned long long)i, got.number[i],
                      expected[i], got.bound[i]);
        test->failed++;
    }
}

static void composites_match_pytorch(void **state) {
    (void)state;
    FILE *file = fopen(NUMBERS, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    char *bytes = calloc(size + 1, 1);
    assert_int_equal(fread(bytes, 1, size, file), size);
    fclose(file);
    cJSON *numbers = cJSON_Parse(bytes);
    assert_non_null(numbers);
    const cJSON *json;
    uint32_t cases = 0, failed = 0;
    cJSON_ArrayForEach(json, member(numbers, "cases")) {
        Job *job = ir_job_create(NULL);
        Case test = {json, 0};
        Status status = ir_job_run(job, compare, &test);
        if (status != STATUS_OK)
            print_message("%s: %s\n", cJSON_GetStringValue(member(json, "name")), ir_job_report(job));
        failed += status != STATUS_OK || test.failed;
        cases++;
        ir_job_free(job);
    }
    cJSON_Delete(numbers);
    free(bytes);
    print_message("# %u cases from PyTorch\n", cases);
    assert_true(cases >= 60);
    assert_int_equal(failed, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(composites_match_pytorch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
