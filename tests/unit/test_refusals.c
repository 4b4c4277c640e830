/* Graph text that is refused: each with the message, its line and its column. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/front.h"
#include "tests/support/graph_text.h"

typedef struct Refused {
    const char *text;
    const char *message; /* a part of the first error */
    uint32_t line, column;
} Refused;

/* Lines around a node's expression: the expression stands in line 7, from column 6. */
#define HEAD                                                                                                           \
    "graph: g\ntypes: {E: bf16}\ndims: {M: any, N: 4, K: any, C: 12, G: 5}\n"                                          \
    "inputs: {x: 'E[M, N]', w: 'f32[N]', v: 'f32[M]', b: 'bool[M, N]', i: 'i64[K]', z: 'f32[M, 4]'}\n"                 \
    "scalars: {eps: 1e-5}\nnodes:\n"
#define NODE(expression) HEAD "  y: " expression "\noutputs: {y: E}\n"

static const Refused refused[] = {
#include "tests/refused/yaml.def"
#include "tests/refused/expressions.def"
#include "tests/refused/sections.def"
};

static bool check(const Refused *row) {
    GraphText *graph_text = graph_text_string(row->text, UP_TO_EXPAND);
    const Diagnostic *error = graph_text_first(graph_text, SEVERITY_ERROR);
    uint32_t line = 0, column = 0;
    if (error && error->place.count > 0) ir_locate(graph_text->job, error->place.start, &line, &column);
    bool good = graph_text->status == STATUS_REJECTED && error && strstr(error->text, row->message) &&
                line == row->line && column == row->column;
    if (!good || getenv("REFUSED_SHOW"))
        printf("# %s: expected '%s' at %u:%u, status %d\n%s%s\n", good ? "good" : "BAD", row->message, row->line,
               row->column, (int)graph_text->status, good ? "" : row->text, ir_job_report(graph_text->job));
    graph_text_free(graph_text);
    return good;
}

static void test_refused(void **state) {
    (void)state;
    uint32_t bad = 0, count = sizeof refused / sizeof *refused;
    for (uint32_t i = 0; i < count; i++) bad += !check(&refused[i]);
    printf("# refusals: %u\n", count);
    assert_int_equal(bad, 0);
}

/* Notes say where both shapes come from, why equal numbers do not meet, and what cut an expression. */
static void test_notes(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {NODE("x + v"), "this is bf16[M, N]"},
        {NODE("x + v"), "this is f32[M]"},
        {NODE("x + z"), "the numbers are equal now"},
        {NODE("x + v"), "dims meet from the last one: v[:, None] meets the first"},
        {NODE("x + sigmoid(v)"), "(...)[:, None] meets the first, as a reduction with keepdim=True does"},
        {NODE("reshape(x, [1, M, N]) * v"), "dims meet from the last one: v[:, None] meets dim 1"},
        {NODE("x +  # c"), "' #' begins a comment here, which cuts the expression"},
        {NODE("x[0] + qq(x)\nfunctions:\n  qq(a): a + zz"), "in this call of qq"},
        {NODE("layer_norm(x, v)"), "layer_norm(x, weight=None, bias=None, eps=1e-5, dim=-1): "},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        GraphText *graph_text = graph_text_string(rows[k][0], UP_TO_PARSE);
        assert_int_equal(graph_text->status, STATUS_REJECTED);
        if (!graph_text_find(graph_text, rows[k][1]))
            fail_msg("no '%s' in %s", rows[k][1], ir_job_report(graph_text->job));
        graph_text_free(graph_text);
    }
    GraphText *graph_text = graph_text_string(NODE("x + v"), UP_TO_PARSE);
    assert_null(graph_text_find(graph_text, "the numbers are equal now"));
    graph_text_free(graph_text);
}

static void read_table(Job *job, void *state) {
    Front front = {.job = job, .graph = ir_graph_create(job, "g")};
    gen_read_composite(&front, state, 0, 12);
}

/* A line of composites.def that does not hold is a bug of normgen, shown at its own line and column. */
static void test_table(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"bad(x, mode=\"a\"): x + ", "ir/composites.def:12:"},
        {"bad(x): x * (1", "ir/composites.def:12:25: expected ')'"},
        {"bad(x, m=\"a\"): x w", "ir/composites.def:12:31: expected an operator or the end, found 'w'"},
        {"bad: x", "ir/composites.def:12:12: expected NAME(parameters): expression"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        Job *job = ir_job_create(NULL);
        ir_job_set_source(job, "graph.yaml", "y: bad(x)\n", 10);
        assert_int_equal(ir_job_run(job, read_table, (void *)(uintptr_t)rows[k][0]), STATUS_INTERNAL);
        if (!strstr(ir_job_report(job), rows[k][1]) || strstr(ir_job_report(job), "graph.yaml:1"))
            fail_msg("no '%s' in %s", rows[k][1], ir_job_report(job));
        ir_job_free(job);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refused), cmocka_unit_test(test_notes),
                                       cmocka_unit_test(test_table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
