/* x == amax(x) of the oracle: which elements are certain. Products of f32 numbers err by rounding; the row's largest is
 * itself whatever it is rounded to, unless another may come to the same. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "tests/support/graph_text.h"

enum { ROWS = 4, COLUMNS = 5 };

/* The largest and least of row 0 are alone; in row 1 two come as near as rounding, at both ends; row 2 has a NaN; row 3
 * has one number throughout. */
static const float x[ROWS][COLUMNS] = {{1.1f, 3.3f, -2.7f, 0.9f, 2.2f},
                                       {3.3f, 1.1f, 3.3000002f, -3.3f, -3.3000002f},
                                       {1.1f, NAN, 2.2f, 3.3f, 0.3f},
                                       {1.7f, 1.7f, 1.7f, 1.7f, 1.7f}};
static const float w[COLUMNS] = {1.3f, 1.3f, 1.2999999f, 1.3f, 1.2999999f};

typedef struct Asking {
    const char *nodes;
    uint64_t uncertain;
    int64_t found[ROWS * COLUMNS];
} Asking;

static void ask(Asking *asking) {
    const View views[2] = {{(void *)(uintptr_t)x, {COLUMNS, 1}, {ROWS, COLUMNS}, 2, DTYPE_F32, NULL, NULL},
                           {(void *)(uintptr_t)w, {1}, {COLUMNS}, 1, DTYPE_F32, NULL, NULL}};
    Job *job = ir_job_create(NULL);
    const char *text = ir_format(
        job, "graph: g\ndims: {M: 4, N: 5}\ninputs: {x: \"f32[M, N]\", w: \"f32[N]\"}\nnodes:\n%soutputs: {y: bool}\n",
        asking->nodes);
    GraphText *graph_text = graph_text_string(text, UP_TO_EXPAND);
    if (graph_text->status) fail_msg("%s", ir_job_report(graph_text->job));
    const int64_t dims[2] = {ROWS, COLUMNS};
    const EvalInput input = {.dims = dims, .inputs = views};
    const Expected all = ir_eval_graph(graph_text->job, graph_text->unit.graph, &input, 0, NULL);
    assert_int_equal(all.count, ROWS * COLUMNS);
    asking->uncertain = all.uncertain;
    memcpy(asking->found, all.integer, sizeof asking->found);
    graph_text_free(graph_text);
    ir_job_free(job);
}

static void test_largest(void **state) {
    (void)state;
    static const char *const ways[] = {"  z: x * w\n  y: z == amax(z, dim=-1, keepdim=True)\n",
                                       "  z: x * w\n  y: amax(z, dim=1)[:, None] == z\n"};
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        Asking asking = {.nodes = ways[k]};
        ask(&asking);
        for (int i = 0; i < COLUMNS; i++) {
            assert_int_equal(asking.found[i], i == 1);
            assert_false(asking.found[2 * COLUMNS + i]); /* NaN is the largest and equal to nothing */
        }
        assert_int_equal(asking.uncertain, 2 + COLUMNS); /* of row 1 two, of row 3 all */
    }
}

static void test_least(void **state) {
    (void)state;
    Asking asking = {.nodes = "  z: x * w\n  y: z == amin(z, dim=-1, keepdim=True)\n"};
    ask(&asking);
    for (int i = 0; i < COLUMNS; i++) assert_int_equal(asking.found[i], i == 2);
    assert_int_equal(asking.uncertain, 2 + COLUMNS);
}

/* Of another value than the one compared, nothing more is known than bounds say. */
static void test_other(void **state) {
    (void)state;
    Asking asking = {.nodes = "  z: x * w\n  v: w * x\n  y: z == amax(v + 0.5 - 0.5, dim=-1, keepdim=True)\n"};
    ask(&asking);
    assert_true(asking.uncertain > 2 + COLUMNS);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_largest), cmocka_unit_test(test_least),
                                       cmocka_unit_test(test_other)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
