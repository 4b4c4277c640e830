/* Composites: each expands to the same Graph as its formula written out; every value of the result is its own origin
 * and has a place; calls with keywords, defaults and modes bind as PyTorch's do. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/graph_text.h"

static GraphText *expand(const char *type, const char *expression, UpTo up_to) {
    char *text = NULL;
    if (asprintf(&text,
                 "graph: g\ndims: {M: any, N: 6, G: 3}\n"
                 "inputs: {x: '%s[M, N]', w: '%s[N]', b: '%s[N]'}\nscalars: {eps: 1e-5}\n"
                 "nodes: {y: '%s'}\noutputs: {y: f32}\n",
                 type, type, type, expression) < 0)
        abort();
    GraphText *graph_text = graph_text_string(text, up_to);
    if (graph_text->status != STATUS_OK) fail_msg("%s: %s", expression, ir_job_report(graph_text->job));
    free(text);
    return graph_text;
}

static const char *const pairs[][2] = {
    {"square(x)", "x * x"},
    {"reciprocal(x)", "1 / x"},
    {"mean(x)", "sum(x) * (1 / (M * N))"},
    {"mean(x, -1)", "sum(x, -1) * (1 / N)"},
    {"mean(x, dim=[0], keepdim=True)", "sum(x, 0, True) * (1 / M)"},
    {"var(x, dim=-1)", "sum(square(x - sum(x, -1, True) * (1 / N)), -1) * (1 / maximum(N - 1, 0))"},
    {"std(x, -1, 0, True)", "sqrt(sum(square(x - sum(x, -1, True) * (1 / N)), -1, True) * (1 / maximum(N, 0)))"},
    {"clamp(x, 0, 1)", "minimum(maximum(x, 0), 1)"},
    {"clamp(x, max=1)", "minimum(x, 1)"},
    {"clamp(x, min=w)", "maximum(x, w)"},
    {"relu(x)", "maximum(x, 0)"},
    {"silu(x)", "x * sigmoid(x)"},
    {"gelu(x)", "0.5 * x * (1 + erf(x * 0.7071067811865476))"},
    {"gelu(x, \"none\")", "gelu(x)"},
    {"gelu(x, approximate=\"tanh\")", "0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * (x * x * x))))"},
    {"softplus(x, 2)", "where(x * 2 > 20, x, log1p(exp(x * 2)) / 2)"},
    {"swiglu(x, w)", "silu(x) * w"},
    {"geglu(x, w)", "gelu(x) * w"},
    {"geglu(x, w, \"tanh\")", "gelu(x, \"tanh\") * w"},
    {"softmax(x, dim=-1)", "exp(x - amax(x, -1, True)) / sum(exp(x - amax(x, -1, True)), -1, True)"},
    {"log_softmax(x, 0)", "x - amax(x, 0, True) - log(sum(exp(x - amax(x, 0, True)), 0, True))"},
    {"logsumexp(x, -1)", "log(sum(exp(x - where(isinf(amax(x, -1, True)), 0, amax(x, -1, True))), -1)) + "
                         "where(isinf(amax(x, -1)), 0, amax(x, -1))"},
    {"layer_norm(x)", "(x - mean(x, -1, True)) * rsqrt(var(x, -1, 0, True) + 1e-5)"},
    {"layer_norm(x, w, b, eps)", "(x - mean(x, -1, True)) * rsqrt(var(x, -1, 0, True) + eps) * w + b"},
    {"layer_norm(x, bias=b, dim=[-2, -1])", "(x - mean(x, [0, 1], True)) * rsqrt(var(x, [0, 1], 0, True) + 1e-5) + b"},
    {"layer_norm(x, w, b, 2)", "(x - mean(x, -1, True)) * rsqrt(var(x, -1, 0, True) + 2) * w + b"},
    {"rms_norm(x, w, eps)", "x * rsqrt(sum(x * x, -1, True) * (1 / N) + eps) * w"},
    {"rms_norm(x, eps=1e-6)", "x * rsqrt(sum(x * x, -1, True) * (1 / N) + 1e-6)"},
    {"l2_norm(x, eps=1e-6)", "x * rsqrt(sum(x * x, -1, True) + 1e-6)"},
};

/* logsumexp's formula says amax(...) where the composite passes one value on: simplify makes both sides one. */
static void test_formulas(void **state) {
    (void)state;
    static const char *const types[] = {"bf16", "f32", "f64"};
    uint32_t count = 0;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++, count++) {
            UpTo up_to = strncmp(pairs[k][0], "logsumexp", 9) == 0 ? UP_TO_SIMPLIFY : UP_TO_EXPAND;
            GraphText *a = expand(types[t], pairs[k][0], up_to), *b = expand(types[t], pairs[k][1], up_to);
            if (!ir_graph_equal(a->unit.graph, b->unit.graph))
                fail_msg("%s:\n%s\nis not\n%s", types[t], graph_text_print(a), graph_text_print(b));
            graph_text_free(a);
            graph_text_free(b);
        }
    printf("# composites compared with their formulas: %u\n", count);
}

static void test_every_line(void **state) {
    (void)state;
    static const char *const lines[] = {
#define COMPOSITE(text, what, derivative) text,
#include "ir/composites.def"
#undef COMPOSITE
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        bool used = false;
        size_t name = strcspn(lines[i], "(");
        for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++)
            used = used || strncmp(pairs[k][0], lines[i], name + 1) == 0;
        if (!used && strncmp(lines[i], "finite_or_zero(", 15) != 0) fail_msg("no pair for %s", lines[i]);
    }
}

static void test_origins(void **state) {
    (void)state;
    GraphText *graph_text = expand("f32", "layer_norm(x, w, b) + softmax(x, -1)", UP_TO_EXPAND);
    const Graph *graph = graph_text->unit.graph;
    assert_ptr_equal(graph, graph_text->unit.expanded);
    for (uint32_t i = 0; i < graph->values.count; i++) {
        const Value *value = &graph->values.at[i];
        assert_int_equal(value->origin, i);
        assert_true(value->place.count > 0);
        assert_int_not_equal(value->op, OP_COMPOSITE);
        for (uint32_t k = 0; k < value->arg_count; k++) assert_true(value->arg[k] < i);
    }
    assert_string_equal(graph->values.at[graph->outputs.at[0].value].name, "y");
    graph_text_free(graph_text);
}

/* 1 / N of an f64 graph is an f64 division: a mean is as exact as its sum. */
static void test_f64_mean(void **state) {
    (void)state;
    GraphText *graph_text = expand("f64", "mean(x, -1)", UP_TO_EXPAND);
    const Graph *graph = graph_text->unit.graph;
    uint32_t divisions = 0;
    for (uint32_t i = 0; i < graph->values.count; i++)
        if (graph->values.at[i].op == OP_DIV) assert_int_equal(graph->values.at[i].dtype, DTYPE_F64), divisions++;
    assert_int_equal(divisions, 1);
    graph_text_free(graph_text);
}

/* A function is inlined, so that it and its formula are one Graph before expand already. */
static void test_functions(void **state) {
    (void)state;
    static const char *const texts[2] = {
        "graph: g\ninputs: {x: 'f32[3]', s: 'f32[3]'}\nfunctions:\n  f(x, scale, shift=None): x * (1 + scale) + shift\n"
        "  g(a, dim=[0]): sum(f(a, 2, shift=a), dim)\nnodes: {y: 'f(x, s) + g(x)'}\noutputs: {y: f32}\n",
        "graph: g\ninputs: {x: 'f32[3]', s: 'f32[3]'}\nnodes: {y: 'x * (1 + s) + sum(x * (1 + 2) + x, 0)'}\n"
        "outputs: {y: f32}\n"};
    GraphText *a = graph_text_string(texts[0], UP_TO_PARSE), *b = graph_text_string(texts[1], UP_TO_PARSE);
    assert_int_equal(a->status, STATUS_OK);
    assert_int_equal(b->status, STATUS_OK);
    assert_true(ir_graph_equal(a->unit.graph, b->unit.graph));
    graph_text_free(a);
    graph_text_free(b);
}

/* A call of literals alone: its type is found in a graph that is empty until the result is made a value of it. */
static void test_literals_alone(void **state) {
    (void)state;
    static const char text[] = "graph: g\ninputs: {x: \"f32[3]\"}\n"
                               "nodes: {n: clamp(2 / 3), y: x + n}\noutputs: {y: f32}\n";
    GraphText *graph_text = graph_text_string(text, UP_TO_EXPAND);
    assert_int_equal(graph_text->status, STATUS_OK);
    graph_text_free(graph_text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formulas), cmocka_unit_test(test_every_line), cmocka_unit_test(test_origins),
        cmocka_unit_test(test_f64_mean), cmocka_unit_test(test_functions),  cmocka_unit_test(test_literals_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
