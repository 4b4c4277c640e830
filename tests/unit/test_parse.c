/* Graph files that are good: parse, expand and simplify print graph files that read back to equal Graphs; what
 * literals, settings, warnings and limits do. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/graph_text.h"

static GraphText *good(const char *text, UpTo up_to) {
    GraphText *graph_text = graph_text_string(text, up_to);
    if (graph_text->status != STATUS_OK) {
        printf("# %s\n", ir_job_report(graph_text->job));
        fail_msg("status %d", (int)graph_text->status);
    }
    return graph_text;
}

/* ---- round trips ---- */

static void round_trip(const char *path, const char *text, size_t count, UpTo up_to) {
    GraphText *first = graph_text_read(text, count, NULL, up_to);
    if (first->status != STATUS_OK) fail_msg("%s: %s", path, ir_job_report(first->job));
    const char *printed = graph_text_print(first);
    assert_non_null(printed);
    GraphText *second = graph_text_string(printed, UP_TO_PARSE);
    if (second->status != STATUS_OK) fail_msg("%s:\n%s\n%s", path, printed, ir_job_report(second->job));
    if (!ir_graph_equal(first->unit.graph, second->unit.graph))
        fail_msg("%s after %d:\n%s\nreads back as\n%s", path, (int)up_to, printed, graph_text_print(second));
    graph_text_free(second);
    graph_text_free(first);
}

static void test_round_trip(void **state) {
    (void)state;
    uint32_t files = graph_text_each_file("tests/graphs", round_trip);
    assert_true(files >= 12);
    static const char stored[] = "graph: g\nscalars: {s: 0.5}\ninputs: {x: 'i64[4]'}\n"
                                 "nodes: {a: s, b: 'x + cast(-inf, i64)', c: 'maximum(s, -nan)', t: s}\n"
                                 "outputs: {a: f32, b: i64, c: f32, c_: {dtype: f16, of: t}}\n";
    for (int up_to = UP_TO_PARSE; up_to <= UP_TO_SIMPLIFY; up_to++)
        round_trip("stored", stored, sizeof stored - 1, (UpTo)up_to);
    printf("# graph files printed and read back: %u\n", files);
}

/* ---- what text means ---- */

#define HEAD                                                                                                           \
    "graph: g\ntypes: {E: bf16}\ndims: {M: any, N: 4, C: 12, G: 3}\n"                                                  \
    "inputs: {x: 'E[M, N]', d: 'f64[M]', i: 'i64[M]', h: 'i32[]', b: 'bool[M]', w: 'f32[N]'}\n"

typedef struct Typed {
    const char *expression, *type;
} Typed;

static void test_types(void **state) {
    (void)state;
    static const Typed rows[] = {
        {"x + 1", "f32[M, N]"},
        {"d * 0.5", "f64[M]"},
        {"d + 1 / N", "f64[M]"},
        {"i + 1", "i64[M]"},
        {"i * 0.5", "f32[M]"},
        {"i / 2", "f32[M]"},
        {"i // 2", "i64[M]"},
        {"h + 1", "i64[]"},
        {"b + 1", "i64[M]"},
        {"b & True", "bool[M]"},
        {"i < 3", "bool[M]"},
        {"3", "f32[]"},
        {"N", "i64[]"},
        {"N / 2", "f32[]"},
        {"N * 2 + M", "i64[]"},
        {"M < N", "bool[]"},
        {"x", "bf16[M, N]"},
        {"x[0]", "bf16[N]"},
        {"x[:, None, 1:3]", "bf16[M, 1, 2]"},
        {"x[..., -1]", "bf16[M]"},
        {"x[:, -3:]", "bf16[M, 3]"},
        {"w[i % N]", "f32[M]"},
        {"x[i]", "bf16[M, N]"},
        {"cast(i, f16)", "f16[M]"},
        {"cast(x, float64)", "f64[M, N]"},
        {"cast(0.1, E)", "bf16[]"},
        {"sum(x)", "f32[]"},
        {"sum(x, -1, True)", "f32[M, 1]"},
        {"sum(b)", "i64[]"},
        {"amax(i)", "i64[]"},
        {"any(b)", "bool[]"},
        {"mean(d)", "f64[]"},
        {"size(C/G * N)", "i64[]"},
        {"arange(C/G + N)", "i64[N + C/G]"},
        {"where(b, i, 0)", "i64[M]"},
        {"where(b, 1, 0)", "f32[M]"},
        {"where(b, d, 0)", "f64[M]"},
        {"-x ** 2", "f32[M, N]"},
        {"isnan(x)", "bool[M, N]"},
        {"numel(x, -1)", "i64[]"},
        {"x * None", "bf16[M, N]"},
        {"clamp(x)", "bf16[M, N]"},
        {"add(x, mul(x, 2))", "f32[M, N]"},
        {"exp(input=x)", "f32[M, N]"},
        {"layer_norm(x, bias=w)", "f32[M, N]"},
        {"rms_norm(x, eps=1e-6)", "f32[M, N]"},
        {"reshape(arange(C), [C/G, G])", "i64[C/G, G]"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char *text = NULL;
        assert_true(asprintf(&text, HEAD "nodes: {y: '%s'}\noutputs: {y: f32}\n", rows[k].expression) > 0);
        GraphText *graph_text = good(text, UP_TO_EXPAND);
        const Graph *graph = graph_text->unit.graph;
        const Value *value = &graph->values.at[graph->outputs.at[0].value];
        Text type = ir_text(graph_text->job);
        ir_print_type(&type, graph, value->dtype, &value->shape);
        if (strcmp(ir_text_string(&type), rows[k].type) != 0)
            fail_msg("%s is %s, not %s", rows[k].expression, ir_text_string(&type), rows[k].type);
        graph_text_free(graph_text);
        free(text);
    }
}

static double constant_of(const char *expression, DType *dtype) {
    char *text = NULL;
    assert_true(asprintf(&text, HEAD "nodes: {y: '%s'}\noutputs: {y: f32}\n", expression) > 0);
    GraphText *graph_text = good(text, UP_TO_EXPAND);
    const Graph *graph = graph_text->unit.graph;
    double number = 0;
    for (uint32_t i = 0; i < graph->values.count; i++) {
        const Value *value = &graph->values.at[i];
        if (value->op != OP_CONST) continue;
        *dtype = value->dtype;
        memcpy(&number, &value->bits, sizeof number);
        if (ir_dtype(*dtype)->kind != KIND_FLOAT) number = (double)(int64_t)value->bits;
    }
    graph_text_free(graph_text);
    free(text);
    return number;
}

static void test_literals(void **state) {
    (void)state;
    DType dtype;
    assert_true(constant_of("x * 0.1", &dtype) == (double)0.1f && dtype == DTYPE_F32);
    assert_true(constant_of("d * 0.1", &dtype) == 0.1 && dtype == DTYPE_F64);
    assert_true(constant_of("i * 3", &dtype) == 3 && dtype == DTYPE_I64);
    assert_true(constant_of("i * -3", &dtype) == -3 && dtype == DTYPE_I64);
    assert_true(constant_of("i * 3.0", &dtype) == 3 && dtype == DTYPE_F32);
    assert_true(constant_of("3 / i", &dtype) == 3 && dtype == DTYPE_F32);
    assert_true(constant_of("cast(0.1, E)", &dtype) == 0.10009765625 && dtype == DTYPE_BF16);
    assert_true(constant_of("cast(3, i64)", &dtype) == 3 && dtype == DTYPE_I64);
    assert_true(constant_of("cast(3.9, u8)", &dtype) == 3 && dtype == DTYPE_U8);
    assert_true(constant_of("x + -inf", &dtype) < -1e308 && dtype == DTYPE_F32);
    double nan = constant_of("x + nan", &dtype);
    assert_true(nan != nan);
    assert_true(constant_of("x ** 2", &dtype) == 2 && dtype == DTYPE_F32);
}

/* `-x**2` is -(x**2), `a - b - c` is (a - b) - c, comparisons are looser than & and |, as in Python. */
static void test_precedence(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"-x ** 2", "-(x ** 2)"},
        {"2 ** -w", "2 ** (-w)"},
        {"2 ** w ** 2", "2 ** (w ** 2)"},
        {"x - w - w", "(x - w) - w"},
        {"x / w * w // w % w", "(((x / w) * w) // w) % w"},
        {"x + w * w", "x + (w * w)"},
        {"-x * w", "(-x) * w"},
        {"x + w < w * 2", "(x + w) < (w * 2)"},
        {"~b | b & b", "(~b) | (b & b)"},
        {"b | b == b & b", "(b | b) == (b & b)"},
        {"-x[0]", "-(x[0])"},
    };
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        char *text[2];
        GraphText *graph_text[2];
        for (int side = 0; side < 2; side++) {
            assert_true(asprintf(&text[side], HEAD "nodes: {y: '%s'}\noutputs: {y: f32}\n", pairs[k][side]) > 0);
            graph_text[side] = good(text[side], UP_TO_PARSE);
        }
        if (!ir_graph_equal(graph_text[0]->unit.graph, graph_text[1]->unit.graph))
            fail_msg("%s is not %s", pairs[k][0], pairs[k][1]);
        for (int side = 0; side < 2; side++) graph_text_free(graph_text[side]), free(text[side]);
    }
}

static void test_line_ends(void **state) {
    (void)state;
    static const char *const texts[] = {
        "\xef\xbb\xbfgraph: g\ninputs: {x: 'f32[3]'}\nnodes: {y: x + 1}\noutputs: {y: f32}\n",
        "graph: g\r\ninputs: {x: 'f32[3]'}\r\nnodes:\r\n  y: x\r\n    + 1\r\noutputs: {y: f32}\r\n",
        "%YAML 1.2\n---\ngraph: g\ninputs: {x: 'f32[3]'}\nnodes: {y: x + 1} # \xc3\xa9\noutputs: {y: f32}\n...\n",
        "{graph: g, inputs: {x: 'f32[3]'}, nodes: {y: x+1}, outputs: {y: f32}}",
    };
    GraphText *first = NULL;
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        GraphText *graph_text = good(texts[k], UP_TO_PARSE);
        if (!first)
            first = graph_text;
        else
            assert_true(ir_graph_equal(first->unit.graph, graph_text->unit.graph));
        if (graph_text != first) graph_text_free(graph_text);
    }
    graph_text_free(first);
}

/* ---- settings ---- */

static GraphText *with_setting(const char *option, const char *name, const char *value) {
    static const char text[] = "graph: g\ntypes: {E: bf16}\ndims: {M: any, N: 4, K: {max: 64, multiple: 8}}\n"
                               "scalars: {S: 0.5}\ninputs: {x: 'E[M, N, K]'}\nnodes: {y: x + S}\noutputs: {y: E}\n";
    Setting setting = {name, value};
    GenOptions options = {0};
    if (strcmp(option, "-D") == 0) options.defines = &setting, options.define_count = 1;
    if (strcmp(option, "--hint") == 0) options.hints = &setting, options.hint_count = 1;
    if (strcmp(option, "--fix") == 0) options.fixes = &setting, options.fix_count = 1;
    return graph_text_read(text, strlen(text), &options, UP_TO_PARSE);
}

static void test_settings(void **state) {
    (void)state;
    static const struct {
        const char *option, *name, *value, *message;
    } bad[] = {
        {"-D", "Q", "3", "-D Q=3: the graph has no dim or type 'Q'"},
        {"-D", "S", "3", "-D S=3: 'S' is a scalar"},
        {"-D", "NN", "3", "did you mean 'N'?"},
        {"-D", "N", "x", "expected a whole number from 0 up to 2^62 - 1, found 'x'"},
        {"-D", "N", "4611686018427387904", "expected a whole number"},
        {"-D", "M", "-1", "expected a whole number"},
        {"-D", "E", "bf61", "expected a dtype, found 'bf61'; did you mean 'bf16'?"},
        {"-D", "K", "65", "the graph's max is 64"},
        {"-D", "K", "60", "a multiple of 8"},
        {"--hint", "E", "3", "--hint E=3: the graph has no dim 'E'"},
        {"--hint", "N", "3", "'N' is fixed at 4"},
        {"--fix", "M", "", "expected a whole number"},
        {"--fix", "K", "72", "the graph's max is 64"},
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        GraphText *graph_text = with_setting(bad[k].option, bad[k].name, bad[k].value);
        assert_int_equal(graph_text->status, STATUS_USAGE);
        if (!graph_text_find(graph_text, bad[k].message)) fail_msg("%s", ir_job_report(graph_text->job));
        graph_text_free(graph_text);
    }
    GraphText *graph_text = with_setting("-D", "N", "5");
    assert_int_equal(graph_text->unit.graph->dims.at[1].value, 5);
    graph_text_free(graph_text);
    graph_text = with_setting("-D", "M", "7");
    assert_int_equal(graph_text->unit.graph->dims.at[0].value, -1);
    graph_text_free(graph_text);
    graph_text = with_setting("-D", "E", "float16");
    assert_int_equal(graph_text->unit.graph->inputs.at[0].dtype, DTYPE_F16);
    graph_text_free(graph_text);
    graph_text = with_setting("--hint", "K", "4096");
    assert_int_equal(graph_text->unit.graph->dims.at[2].hint, 4096);
    graph_text_free(graph_text);
    graph_text = with_setting("--fix", "K", "32");
    assert_int_equal(graph_text->unit.graph->dims.at[2].value, 32);
    graph_text_free(graph_text);
}

/* ---- warnings, several errors, what is not generated ---- */

static void test_warnings(void **state) {
    (void)state;
    static const char text[] = "graph: g\ndims: {K: any, L: any}\n"
                               "inputs: {x: 'f32[L]', u: 'f32[3]'}\nscalars: {s: 1}\n"
                               "nodes: {y: x + 1, dead: y + 1, used: y}\noutputs: {used: f32}\n";
    GraphText *graph_text = good(text, UP_TO_PARSE);
    assert_non_null(graph_text_find(graph_text, "the input 'u' is not used"));
    assert_non_null(graph_text_find(graph_text, "the scalar 's' is not used"));
    assert_non_null(graph_text_find(graph_text, "no output needs the node 'dead'"));
    assert_non_null(graph_text_find(graph_text, "the dim 'K' is not used"));
    assert_int_equal(ir_diagnostic_count(graph_text->job), 4);
    graph_text_free(graph_text);
    GenOptions options = {.warnings_are_errors = true};
    graph_text = graph_text_read(text, strlen(text), &options, UP_TO_PARSE);
    assert_int_equal(graph_text->status, STATUS_REJECTED);
    assert_int_equal(ir_error_count(graph_text->job), 4);
    graph_text_free(graph_text);
    graph_text = good("graph: g\ndims: {L: {hint: 9, max: 3}}\ninputs: {x: 'f32[L]'}\nnodes: {y: x + 1}\n"
                      "outputs: {y: f32}\n",
                      UP_TO_PARSE);
    assert_non_null(graph_text_find(graph_text, "the hint of 'L' is above its max of 3"));
    assert_int_equal(ir_diagnostic_count(graph_text->job), 1);
    graph_text_free(graph_text);
}

static void test_many_errors(void **state) {
    (void)state;
    GraphText *graph_text =
        graph_text_string("graph: g\ninputs: {x: 'f32[3]'}\nnodes:\n  a: x +\n  b: exq(x)\n  c: a + b\n"
                          "  d: x + zz\noutputs: {c: f32, q: f32}\n",
                          UP_TO_PARSE);
    assert_int_equal(graph_text->status, STATUS_REJECTED);
    assert_int_equal(ir_error_count(graph_text->job), 4); /* c needs what is wrong, and is not reported again */
    graph_text_free(graph_text);
    char *text = calloc(1, 1 << 16), *at = text;
    at += sprintf(at, "graph: g\nnodes:\n");
    for (int i = 0; i < 100; i++) at += sprintf(at, "  n%d: x%d\n", i, i);
    graph_text = graph_text_string(text, UP_TO_PARSE);
    assert_int_equal(graph_text->status, STATUS_REJECTED);
    assert_int_equal(ir_error_count(graph_text->job), IR_MAX_ERRORS);
    assert_non_null(graph_text_find(graph_text, "there are more errors"));
    graph_text_free(graph_text);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_types),       cmocka_unit_test(test_literals),
        cmocka_unit_test(test_precedence), cmocka_unit_test(test_line_ends),   cmocka_unit_test(test_settings),
        cmocka_unit_test(test_warnings),   cmocka_unit_test(test_many_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
