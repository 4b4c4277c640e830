/* ng_check_grad of a backward graph that somebody wrote: one that is right, ones with a mistake, ones that do not fit.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/normgen.h"
#include "tests/support/random.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <string.h>

enum { ROWS = 5, COLUMNS = 12 };

static const char forward[] = "graph: norm\n"
                              "dims: {M: any, N: 12}\n"
                              "inputs: {x: \"f32[M, N]\", w: \"f32[N]\", ids: \"i64[M]\"}\n"
                              "scalars: {eps: 1e-3}\n"
                              "nodes:\n"
                              "  ms: mean(x * x, dim=-1, keepdim=True)\n"
                              "  r: rsqrt(ms + eps)\n"
                              "  y: x * r * w\n"
                              "  far: ids + 1\n"
                              "outputs: {y: f32, r: f32, far: i64}\n";

/* The textbook form; what derives one writes others. */
#define HEAD "graph: norm_bwd\ndims: {M: any, N: 12}\n"
#define INPUTS "inputs: {x: \"f32[M, N]\", w: \"f32[N]\", r: \"f32[M, 1]\", d_y: \"f32[M, N]\"}\n"
#define NODES                                                                                                          \
    "nodes:\n"                                                                                                         \
    "  g: d_y * w\n"                                                                                                   \
    "  c: mean(g * x, dim=-1, keepdim=True)\n"                                                                         \
    "  d_x: r * g - x * c * r * r * r\n"                                                                               \
    "  d_w: sum(d_y * x * r, dim=0)\n"
#define OUTPUTS "outputs: {d_x: f32, d_w: f32}\n"

typedef struct Fixture {
    ng_context *context;
    ng_program *program;
    float x[ROWS * COLUMNS], w[COLUMNS];
    int64_t ids[ROWS], rows;
    uint64_t seed;
} Fixture;

static int start(void **state) {
    static Fixture fixture;
    const ng_context_options options = {.size = sizeof options, .device = NG_DEVICE_HOST};
    if (ng_context_create(&options, &fixture.context, NULL)) return 1;
    if (ng_compile(fixture.context, forward, strlen(forward), NULL, &fixture.program, NULL)) return 1;
    Random random = {fixture.seed = random_seed()};
    for (int i = 0; i < ROWS * COLUMNS; i++) fixture.x[i] = (float)random_normal(&random);
    for (int i = 0; i < COLUMNS; i++) fixture.w[i] = (float)random_normal(&random);
    fixture.rows = ROWS;
    *state = &fixture;
    return 0;
}

static int stop(void **state) {
    Fixture *fixture = *state;
    ng_program_free(fixture->program);
    ng_context_free(fixture->context);
    return 0;
}

typedef struct Got {
    ng_status status;
    ng_text report, why;
} Got;

static Got check(Fixture *fixture, const char *backward, ng_check_grad_options options) {
    void *tensors[] = {fixture->x, fixture->w, fixture->ids, NULL, NULL, NULL};
    const ng_args args = {.size = sizeof args, .tensors = tensors, .dims = &fixture->rows};
    options.size = sizeof options;
    options.seed = fixture->seed;
    options.json = 1;
    options.backward = backward;
    options.backward_count = backward ? strlen(backward) : 0;
    Got got = {.status = NG_OK};
    got.status = ng_check_grad(fixture->program, &args, &options, &got.report, &got.why);
    return got;
}

static void drop(Got *got) {
    ng_text_free(&got->report);
    ng_text_free(&got->why);
}

/* How many elements of a gradient the graph makes otherwise. */
static int failed_of(const Got *got, const char *name) {
    cJSON *report = cJSON_Parse(got->report.bytes), *gradient;
    assert_non_null(report);
    int failed = -1;
    cJSON_ArrayForEach(
        gradient,
        cJSON_GetObjectItem(report, "gradients")) if (!strcmp(cJSON_GetObjectItem(gradient, "name")->valuestring, name))
        failed = cJSON_GetObjectItem(gradient, "graph_failed")->valueint;
    cJSON_Delete(report);
    return failed;
}

static void test_right(void **state) {
    Got got = check(*state, HEAD INPUTS NODES OUTPUTS, (ng_check_grad_options){0});
    if (got.status) print_message("%s\n", got.why.bytes);
    assert_int_equal(got.status, NG_OK);
    assert_int_equal(failed_of(&got, "d_x"), 0);
    assert_int_equal(failed_of(&got, "d_w"), 0);
    drop(&got);
}

/* As ng_grad writes it: of what else the forward graph has, and of its other output too. */
static void test_derived(void **state) {
    ng_text backward, why;
    const ng_grad_options options = {.size = sizeof options};
    const ng_status status = ng_grad(forward, strlen(forward), NULL, NULL, &options, &backward, NULL, &why);
    assert_int_equal(status, NG_OK);
    assert_non_null(strstr(backward.bytes, "d_r: "));
    Got got = check(*state, backward.bytes, (ng_check_grad_options){0});
    if (got.status) print_message("%s\n", got.why.bytes);
    assert_int_equal(got.status, NG_OK);
    drop(&got);
    ng_text_free(&backward);
    ng_text_free(&why);
}

static void test_wrong(void **state) {
    static const struct {
        const char *what, *backward;
        bool x, w;
    } mistakes[] = {
        {"a power",
         HEAD INPUTS "nodes:\n  g: d_y * w\n  c: mean(g * x, dim=-1, keepdim=True)\n"
                     "  d_x: r * g - x * c * r * r\n  d_w: sum(d_y * x * r, dim=0)\n" OUTPUTS,
         true, false},
        {"a factor",
         HEAD INPUTS "nodes:\n  g: d_y * w\n  c: mean(g * x, dim=-1, keepdim=True)\n"
                     "  d_x: r * g - x * c * r * r * r\n  d_w: sum(d_y * x * r, dim=0) * 1.001\n" OUTPUTS,
         false, true},
        {"a term", HEAD INPUTS "nodes:\n  d_x: r * d_y * w\n  d_w: sum(d_y * x * r, dim=0)\n" OUTPUTS, true, false},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        Got got = check(*state, mistakes[i].backward, (ng_check_grad_options){0});
        assert_int_equal(got.status, NG_CHECK_FAILED);
        if ((failed_of(&got, "d_x") > 0) != mistakes[i].x || (failed_of(&got, "d_w") > 0) != mistakes[i].w)
            fail_msg("%s is not seen where it is: %s", mistakes[i].what, got.why.bytes);
        assert_non_null(strstr(got.why.bytes, "that the backward graph makes are not the derived one's"));
        drop(&got);
    }
}

static void test_refused(void **state) {
    static const struct {
        const char *backward, *words;
    } refused[] = {
        {HEAD "inputs: {x: \"f32[M, N]\", ms: \"f32[M, 1]\", d_y: \"f32[M, N]\"}\n"
              "nodes:\n  d_x: d_y * x * ms\noutputs: {d_x: f32}\n",
         "backward:3:26: error: the forward graph computes 'ms' but does not store it"},
        {HEAD "inputs: {x: \"f32[M, N]\", d_yy: \"f32[M, N]\"}\nnodes:\n  d_x: d_yy * x\noutputs: {d_x: f32}\n",
         "backward:3:26: error: 'd_yy' is neither an input or output of the forward graph nor the gradient of one of "
         "its outputs; did you mean 'd_y'?"},
        {HEAD "inputs: {x: \"bf16[M, N]\", d_y: \"f32[M, N]\"}\nnodes:\n  d_x: d_y * x\noutputs: {d_x: f32}\n",
         "backward:3:10: error: 'x' is of bf16 here and of f32 in the forward graph"},
        {HEAD "inputs: {x: \"f32[M, N]\", d_y: \"f32[N]\"}\nnodes:\n  d_x: d_y * x\noutputs: {d_x: f32}\n",
         "'d_y' is [12] here, and the output 'y' of the forward graph [5, 12]"},
        {HEAD
         "inputs: {x: \"f32[M, N]\", d_y: \"f32[M, N]\"}\nnodes:\n  d_w: sum(d_y * x, dim=-1)\noutputs: {d_w: f32}\n",
         "'d_w' is [5] here, and the input 'w' of the forward graph [12]"},
        {HEAD "inputs: {x: \"f32[M, N]\", r: \"f32[M, 1]\"}\nnodes:\n  d_x: r * x\noutputs: {d_x: f32}\n",
         "takes no gradient of an output of the forward one, as d_y, d_r"},
        {HEAD "inputs: {x: \"f32[M, N]\", d_y: \"f32[M, N]\"}\nnodes:\n  dx: d_y * x\noutputs: {dx: f32}\n",
         "'dx' is not the gradient of an input of the forward graph, whose name would be d_INPUT"},
        {HEAD "inputs: {x: \"f32[M, N]\", d_far: \"f32[M]\"}\nnodes:\n  d_x: d_far[:, None] * x\noutputs: {d_x: f32}\n",
         "the output 'far' is of i64: only floats have gradients"},
        {HEAD "inputs: {x: \"f32[M, N]\", d_y: \"i64[M, N]\"}\nnodes:\n  d_x: d_y * x\noutputs: {d_x: f32}\n",
         "a gradient is a float, and 'd_y' is of i64"},
        {HEAD "inputs: {d_y: \"f32[M, N]\"}\nnodes:\n  d_ids: sum(d_y, dim=-1)\noutputs: {d_ids: f32}\n",
         "the input 'ids' is of i64: only floats have gradients"},
        {"graph: b\ndims: {M: any, N: 13}\ninputs: {x: \"f32[M, N]\", d_y: \"f32[M, N]\"}\n"
         "nodes:\n  d_x: d_y * x\noutputs: {d_x: f32}\n",
         "backward:2:16: error: N is 13 here and 12 in the forward graph"},
        {"graph: b\ndims: {M: any, N: 12, K: any}\ninputs: {x: \"f32[M, N]\", d_y: \"f32[M, N]\"}\n"
         "nodes:\n  d_x: d_y * x * K\noutputs: {d_x: f32}\n",
         "the forward graph has no dim 'K'"},
        {HEAD "inputs: {x: \"f32[M, N]\", d_y: \"f32[M, N]\"}\nscalars: {scale: 1.0}\n"
              "nodes:\n  d_x: d_y * x * scale\noutputs: {d_x: f32}\n",
         "the forward graph has no scalar 'scale'"},
        {HEAD "inputs: {x: \"f32[M, N]\", d_y: \"f32[M, N]\"}\nscalars: {eps: {dtype: f64, default: 1.0}}\n"
              "nodes:\n  d_x: cast(d_y * x * eps, f32)\noutputs: {d_x: f32}\n",
         "'eps' is of f64 here and of f32 in the forward graph"},
        {HEAD "inputs: {x: \"f32[M, N]\", d_y: \"f32[M, N]\"}\nnodes:\n  d_x: d_z * x\noutputs: {d_x: f32}\n",
         "backward:5:8: error: "},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        Got got = check(*state, refused[i].backward, (ng_check_grad_options){0});
        if (got.status != NG_REJECTED || !strstr(got.why.bytes, refused[i].words))
            fail_msg("status %d, expected: %s\ngot: %s", got.status, refused[i].words, got.why.bytes);
        assert_null(got.report.bytes);
        drop(&got);
    }
}

static void test_options(void **state) {
    Got got = check(*state, HEAD INPUTS NODES OUTPUTS, (ng_check_grad_options){.wrt = "x"});
    assert_int_equal(got.status, NG_USAGE);
    assert_non_null(strstr(got.why.bytes, "says itself which gradients it makes"));
    drop(&got);
}

/* What an output in place wrote over is gone. */
static void test_overwritten(void **state) {
    static const char over[] = "graph: over\ndims: {M: any, N: 12}\ninputs: {x: \"f32[M, N]\", w: \"f32[N]\", ids: "
                               "\"i64[M]\"}\nnodes:\n  y: x * w\noutputs: {y: {dtype: f32, inplace: x}}\n";
    Fixture fixture = *(Fixture *)*state;
    assert_int_equal(ng_compile(fixture.context, over, strlen(over), NULL, &fixture.program, NULL), NG_OK);
    Got got = check(&fixture,
                    HEAD "inputs: {x: \"f32[M, N]\", d_y: \"f32[M, N]\"}\nnodes:\n"
                         "  d_w: sum(d_y * x, dim=0)\noutputs: {d_w: f32}\n",
                    (ng_check_grad_options){0});
    assert_int_equal(got.status, NG_REJECTED);
    assert_non_null(strstr(got.why.bytes, "'x' is written over by the output 'y'"));
    drop(&got);
    ng_program_free(fixture.program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right),   cmocka_unit_test(test_derived), cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_options), cmocka_unit_test(test_overwritten),
    };
    return cmocka_run_group_tests_name("check_grad", tests, start, stop);
}
