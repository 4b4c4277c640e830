/* The bytes that PyTorch's autograd would keep, beside what it did keep, tests/oracle/autograd.json: each graph of the
 * file, to the byte. Those that differ are listed with the reason. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/grad_case.h"
#include "tests/support/graph_text.h"
#include "tests/support/torch_gradients.h"

#define MEASURED "tests/oracle/autograd.json"

/* On a GPU rms_norm is one operation, which keeps its operand, the weight and 1 / rms: so it is told. The file was
 * measured on a CPU, where PyTorch takes it apart and keeps the normalized row too. */
static const struct {
    const char *name;
    int64_t told; /* bytes: M = 24, N = 64 */
} differing[] = {
    {"rms_norm", (24 * 64 + 64 + 24) * 4},
    {"rms_norm in double", (24 * 64 + 64 + 24) * 8},
    {"add and rms_norm", (24 * 64 + 64 + 24) * 4},
};

enum { DIFFERING = sizeof differing / sizeof *differing };

typedef struct Case {
    const cJSON *json;
    int64_t bytes;
    const char *list;
} Case;

static void count(Job *job, void *state) {
    Case *test = state;
    const Graph *graph = grad_parse(job, torch_text(test->json, "graph"));
    const GradOptions options = torch_options(job, test->json);
    const Grad *grad = gen_grad(job, graph, &options);
    const int64_t *dims = ir_graph_fixed(job, graph);
    Text list = ir_text(job);
    for (uint32_t i = 0; i < grad->autograd.count; i++) {
        int64_t bytes;
        assert_true(ir_poly_eval(grad->autograd.at[i].bytes, dims, graph->dims.count, NULL, 0, &bytes));
        test->bytes += bytes;
        ir_text_format(&list, " %s %lld", grad->autograd.at[i].name, (long long)bytes);
    }
    test->list = ir_text_string(&list);
}

static uint32_t find_differing(const char *name) {
    uint32_t i = 0;
    while (i < DIFFERING && strcmp(differing[i].name, name) != 0) i++;
    return i;
}

static void as_measured(void **state) {
    (void)state;
    size_t size;
    char *text = graph_text_file(MEASURED, &size);
    assert_non_null(text);
    cJSON *root = cJSON_Parse(text);
    assert_non_null(root);
    const cJSON *json;
    uint32_t cases = 0, failed = 0, differed = 0, none = 0;
    cJSON_ArrayForEach(json, torch_member(root, "cases")) {
        Case test = {.json = json};
        const char *name = torch_text(json, "name");
        const uint32_t known = find_differing(name);
        int64_t expected = (int64_t)cJSON_GetNumberValue(torch_member(json, "bytes"));
        Job *job = ir_job_create(NULL);
        if (ir_job_run(job, count, &test)) fail_msg("%s: %s", name, ir_job_report(job));
        if (known < DIFFERING) {
            if (expected == differing[known].told) fail_msg("%s is listed as one that differs", name);
            expected = differing[known].told;
            differed++;
        }
        if (test.bytes != expected) {
            print_error("%s: %lld bytes told, %lld kept:%s\n", name, (long long)test.bytes, (long long)expected,
                        test.list);
            failed++;
        }
        none += expected == 0;
        cases++;
        ir_job_free(job);
    }
    print_message("# %u graphs keep what PyTorch's autograd keeps, %u of them nothing; %u differ for a known reason\n",
                  cases - failed - differed, none, differed);
    assert_int_equal(failed, 0);
    assert_true(cases >= 40 && none >= 5 && differed == DIFFERING);
    cJSON_Delete(root);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_measured)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
