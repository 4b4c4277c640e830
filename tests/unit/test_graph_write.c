/* Graph files written for people: they read back as the same Graph and are then written the same way again; what
 * expressions look like; where comments stand. NORMGEN_SEED repeats the random graphs, NORMGEN_TEST_REDUCED: fewer. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/graph_write.h"
#include "tests/support/graph_text.h"
#include "tests/support/made_graph.h"
#include "tests/support/random_graph.h"

typedef struct Writing {
    const Graph *graph;
    const GraphNotes *notes;
    const char *text;
} Writing;

static void write_work(Job *job, void *state) {
    Writing *writing = state;
    Text text = ir_text(job);
    ir_graph_write(&text, writing->graph, writing->notes);
    writing->text = ir_text_string(&text);
}

static const char *write_graph(GraphText *graph_text, const GraphNotes *notes) {
    Writing writing = {.graph = graph_text->unit.graph, .notes = notes};
    Status status = ir_job_run(graph_text->job, write_work, &writing);
    if (status != STATUS_OK)
        fail_msg("not written: %s\n%s", ir_job_report(graph_text->job), graph_text_print(graph_text));
    return writing.text;
}

typedef struct Pair {
    const Graph *a, *b;
    bool same;
} Pair;

static void same_work(Job *job, void *state) {
    Pair *pair = state;
    pair->same = ir_graph_same(job, pair->a, pair->b) && ir_graph_same(job, pair->b, pair->a);
}

static bool is_same(GraphText *a, GraphText *b) {
    Pair pair = {.a = a->unit.graph, .b = b->unit.graph};
    assert_int_equal(ir_job_run(a->job, same_work, &pair), STATUS_OK);
    return pair.same;
}

/* ---- back and forth ---- */

static void check_written(const char *what, GraphText *first, UpTo up_to) {
    const char *written = write_graph(first, NULL);
    GraphText *second = graph_text_string(written, UP_TO_PARSE);
    if (up_to == UP_TO_SIMPLIFY &&
        graph_text_find(second, "in place of")) { /* a read that simplify made plain to see */
        graph_text_free(second);
        return;
    }
    if (second->status != STATUS_OK) fail_msg("%s:\n%s\n%s", what, written, ir_job_report(second->job));
    if (!is_same(first, second))
        fail_msg("%s after %d: what is written\n%s\nreads back as\n%s\nand was\n%s", what, (int)up_to, written,
                 graph_text_print(second), graph_text_print(first));
    const char *again = write_graph(second, NULL);
    if (strcmp(written, again) != 0) fail_msg("%s after %d:\n%s\nis then\n%s", what, (int)up_to, written, again);
    graph_text_free(second);
}

static void round_trip(const char *what, const char *text, size_t count, UpTo up_to) {
    GraphText *first = graph_text_read(text, count, NULL, up_to);
    if (first->status != STATUS_OK) fail_msg("%s: %s", what, ir_job_report(first->job));
    check_written(what, first, up_to);
    graph_text_free(first);
}

static void test_files(void **state) {
    (void)state;
    uint32_t files = graph_text_each_file("tests/graphs", round_trip);
    assert_true(files >= 10);
    uint32_t examples = graph_text_each_file("examples", round_trip);
    assert_true(examples >= 10);
    printf("# %u files\n", files + examples);
}

static void test_random(void **state) {
    (void)state;
    uint64_t seed = random_seed();
    uint32_t count = getenv("NORMGEN_TEST_REDUCED") ? 40 : 400, tried = 0;
    for (uint32_t i = 0; i < count; i++) {
        Job *job = ir_job_create(NULL);
        RandomGraph random =
            random_graph(job, seed + i, (i & 1 ? RANDOM_ALL_DTYPES : 0) | (i & 2 ? RANDOM_ROWS_ONLY : 0));
        char *what;
        assert_true(asprintf(&what, "seed %llu", (unsigned long long)(seed + i)) > 0);
        for (int up_to = UP_TO_PARSE; up_to <= UP_TO_SIMPLIFY; up_to++) {
            GraphText *first = graph_text_read(random.text, random.count, NULL, (UpTo)up_to);
            bool legal = first->status == STATUS_OK;
            graph_text_free(first);
            tried += legal;
            if (legal) round_trip(what, random.text, random.count, (UpTo)up_to);
        }
        free(what);
        ir_job_free(job);
    }
    printf("# %u of %u stages of random graphs written and read back\n", tried, 3 * count);
    assert_true(tried > 2 * count);
}

/* ---- graphs that no text was read to make ---- */

static void test_made(void **state) {
    (void)state;
    uint64_t seed = random_seed();
    uint32_t count = getenv("NORMGEN_TEST_REDUCED") ? 100 : 2000, legal = 0;
    for (uint32_t i = 0; i < count; i++) {
        GraphText made_text = {.job = ir_job_create(NULL)};
        MadeGraph made = {.random = {seed + i}};
        char *what;
        assert_true(asprintf(&what, "seed %llu", (unsigned long long)(seed + i)) > 0);
        assert_int_equal(ir_job_run(made_text.job, made_graph, &made), STATUS_OK);
        made_text.unit.graph = made.graph;
        check_written(what, &made_text, UP_TO_PARSE);
        legal += made.legal;
        ir_job_free(made_text.job);
        free(what);
    }
    printf("# %u graphs of %u random values written and read back\n", count, legal);
    assert_true(legal > 20 * count);
}

/* ---- what says the same ---- */

#define SAME_HEAD                                                                                                      \
    "graph: g\ndims: {M: {hint: 8}, C: 8, G: 4, H: 4}\ninputs: {x: 'f32[M, C]', w: 'f32[C]'}\nscalars: {eps: 0.5}\n"

static void test_same(void **state) {
    (void)state;
    static const char base[] =
        SAME_HEAD "nodes: {h: x * w + 2, y: 'sum(h, dim=1) / exp(h)[:, 0] + arange(M)', "
                  "z: 'rms_norm(h[:, 1:], eps=eps)', p: 'reshape(x, [M, C/G, G])', q: 'clamp(h, size(C/G), 9)'}\n"
                  "outputs: {y: f32, z: {dtype: bf16, strides: [9, 1]}, p: f32, q: f32}\n";
    static const struct {
        const char *from, *to; /* in the base */
        bool same;
    } table[] = {
        {"", "", true},
        {"h: x * w + 2", "h: 2.0 + 0 * x, k: x * w + 2", false},
        {"sum(h, dim=1)", "sum(x * w + 2, dim=-1)", true},
        {"y: 'sum(h, dim=1)", "s: 'sum(h, dim=1)', y: 's", true},
        {"h: x * w + 2, y", "unused: x + size(C/H), h: x * w + 2, y", true},
        {"scalars", "functions: {f(a): a * 2}\nscalars", true},
        {"x * w + 2", "x * w + 2.5", false},
        {"x * w + 2", "w * x + 2", false},
        {"h: x * w + 2", "h: 'x * w + cast(2, bf16)'", false},
        {"dim=1)", "dim=1, keepdim=True)", false},
        {"sum(h", "amax(h", false},
        {"[:, 0]", "[:, 1]", false},
        {"1:]", "2:]", false},
        {"arange(M)", "arange(M) * 1", false},
        {"arange(M)", "M", false},
        {"eps=eps", "eps=0.5", false},
        {"eps=eps", "eps=eps, dim=0", false},
        {"C/G, G", "C/H, G", false},
        {"size(C/G)", "size(C/H)", false},
        {"size(C/G)", "size(2)", false},
        {"C/G, G", "C/G, H", false},
        {"graph: g", "graph: k", false},
        {"hint: 8", "hint: 9", false},
        {"H: 4", "H: 5", false},
        {"M: {hint: 8}, C: 8", "C: 8, M: {hint: 8}", false},
        {"w: 'f32[C]'", "w: 'bf16[C]'", false},
        {"w: 'f32[C]'", "w: {dtype: f32, shape: [C], align: 16}", false},
        {"x: 'f32[M, C]', w: 'f32[C]'", "w: 'f32[C]', x: 'f32[M, C]'", false},
        {"eps: 0.5", "eps: 0.25", false},
        {"y: f32", "y: f16", false},
        {"y: f32, z", "z", false},
        {"y: f32", "k: {of: y, dtype: f32}", false},
        {"p: f32", "p: {dtype: f32, accumulate: true}", false},
        {"strides: [9, 1]", "strides: [10, 1]", false},
        {"z: {dtype: bf16, strides: [9, 1]}, p: f32", "p: f32, z: {dtype: bf16, strides: [9, 1]}", false},
    };
    GraphText *first = graph_text_string(base, UP_TO_PARSE);
    if (first->status != STATUS_OK) fail_msg("%s", ir_job_report(first->job));
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const char *at = strstr(base, table[i].from);
        char *text;
        assert_non_null(at);
        assert_true(asprintf(&text, "%.*s%s%s", (int)(at - base), base, table[i].to, at + strlen(table[i].from)) > 0);
        GraphText *second = graph_text_string(text, UP_TO_PARSE);
        if (second->status != STATUS_OK) fail_msg("%s: %s", table[i].to, ir_job_report(second->job));
        if (is_same(first, second) != table[i].same)
            fail_msg("'%s' for '%s' is %sthe same", table[i].to, table[i].from, table[i].same ? "not " : "");
        graph_text_free(second);
        free(text);
    }
    graph_text_free(first);
}

/* ---- what expressions look like ---- */

#define HEAD                                                                                                           \
    "graph: table\ndims: {M: any, N: 16, C: 8, G: 4}\n"                                                                \
    "inputs: {x: 'f32[M, N]', w: 'bf16[N]', d: 'f64[M, N]', ids: 'i64[M]', b: 'bool[M, N]', r: 'f32[M]', "             \
    "q: 'f16[C, M, N]', byte: 'u8[N]'}\nscalars: {eps: 1e-5}\n"

static const struct {
    const char *text, *written; /* NULL: as it is */
} expressions[] = {
    /* strength, and trees that are kept */
    {"x + w * x", NULL},
    {"(x + w) * x", NULL},
    {"x - (w - x)", NULL},
    {"(x - w) - x", "x - w - x"},
    {"x - (w + x)", NULL},
    {"x * (w * x)", NULL},
    {"x * w * x", NULL},
    {"(x * w) / x", "x * w / x"},
    {"x * (w / x)", NULL},
    {"x // (w % x)", NULL},
    {"x // w % x", NULL},
    {"-x * w", NULL},
    {"-(x * w)", NULL},
    {"x * -w", NULL},
    {"x - -w", NULL},
    {"--x", NULL},
    {"-x ** 2", NULL},
    {"(-x) ** 2", NULL},
    {"(-2) ** x", NULL},
    {"-2 ** x", NULL},
    {"x ** -w", NULL},
    {"x ** w ** x", NULL},
    {"(x ** w) ** x", NULL},
    {"(x * w) ** 2", NULL},
    {"x ** (w + 1)", NULL},
    {"-x[0]", NULL},
    {"(-x)[0]", NULL},
    {"(x > 0) & (w > 0) | b", NULL},
    {"(x > 0) & ((w > 0) | b)", "(x > 0) & ((w > 0) | b)"},
    {"(b & b) == (b | b)", "b & b == b | b"},
    {"(x > 0) == b", NULL},
    {"~(x > 0)", NULL},
    {"~b & b", NULL},
    {"x + w > w", NULL},
    {"where((x > w), (x), -(w))", "where(x > w, x, -w)"},
    /* numbers */
    {"x + 2.0", "x + 2"},
    {"1 / x", NULL},
    {"x * 0.1", NULL},
    {"x * 1e-05", "x * 1e-5"},
    {"x * 1e20", NULL},
    {"x - -1.5", NULL},
    {"x * -0.0", NULL},
    {"x * 0", NULL},
    {"d * 0.1", NULL},
    {"d * cast(0.1, f32)", NULL},
    {"x * cast(0.1, f32)", "x * 0.1"},
    {"x * cast(2, i32)", NULL},
    {"ids + 2", NULL},
    {"ids + 2.0", NULL},
    {"ids + cast(2, f32)", "ids + 2.0"},
    {"ids * 0.5", NULL},
    {"cast(ids, f32) * 2", "ids * 2.0"},
    {"ids / 2", NULL},
    {"x * cast(0.1, bf16)", NULL},
    {"x + cast(1000, f16)", NULL},
    {"x + cast(70000, f16)", "x + cast(inf, f16)"},
    {"x * cast(1.7, f8e4m3)", "x * cast(1.8, f8e4m3)"},
    {"x * (2 / 3)", NULL},
    {"d * (2 / 3)", NULL},
    {"where(b, 0, 1)", NULL},
    {"where(b, x, -inf)", NULL},
    {"where(b, -inf, d)", NULL},
    {"where(b, ids[:, None], 0)", NULL},
    {"where(True, x, nan)", NULL},
    {"maximum(x, -nan)", NULL},
    {"ids * (2 * 3)", NULL},
    {"ids * (2.0 * 3)", "ids * (2 * 3.0)"},
    {"cast(cast(2, f32), f16)", NULL},
    {"cast(-1e300, i64)", "cast(-inf, i64)"},
    {"2", NULL},
    {"cast(2, i64)", NULL},
    {"cast(2.5, f64)", NULL},
    {"cast(byte, f32) / 255", "byte / 255"},
    {"cast(cast(byte, i64), f32)", NULL},
    {"d + x", NULL},
    {"sum(cast(b, i64))", "sum(b)"},
    {"exp(cast(2, f32))", "exp(2)"},
    {"-cast(2, f32)", NULL},
    /* sizes */
    {"N", NULL},
    {"x * N", NULL},
    {"x * (N + 1)", NULL},
    {"x + N * 2", "x + 2*N"},
    {"x * (2 * N)", "x * (2*N)"},
    {"x * -N", NULL},
    {"x / (N - M)", "x / (N - M)"},
    {"1 / N * x", NULL},
    {"x * size(N/2)", NULL},
    {"x * size(C/G)", NULL},
    {"x + size(7)", NULL},
    {"cast(N, f64) * x", "N * cast(x, f64)"},
    {"floor(N) * x", NULL},
    {"arange(N) * x", NULL},
    {"arange(N + 2*M)", "arange(2*M + N)"},
    {"arange(M)[:, None] <= arange(N)", NULL},
    /* indices */
    {"x[:, None]", NULL},
    {"r[:, None]", NULL},
    {"x[:, :, None]", "x[..., None]"},
    {"x[..., 2:5]", "x[:, 2:5]"},
    {"q[..., 2:5]", NULL},
    {"q[:, :, 2:5]", "q[..., 2:5]"},
    {"q[:, 0]", NULL},
    {"q[:, 0, :]", "q[:, 0]"},
    {"q[0, :, 1:]", NULL},
    {"q[None]", NULL},
    {"q[..., None, :]", "q[:, :, None]"},
    {"x[:, N/2:]", NULL},
    {"x[:, :N/2]", NULL},
    {"x[:, N/2-1:N/2+1]", NULL},
    {"x[:, -4:]", NULL},
    {"x[:, N-4:]", "x[:, -4:]"},
    {"x[-1]", NULL},
    {"x[M-1, -1]", "x[-1, -1]"},
    {"x[ids]", NULL},
    {"x[ids % M]", NULL},
    {"q[0, ids, None]", NULL},
    {"(x + w)[0]", NULL},
    {"x[0][1:]", NULL},
    {"reshape(x, [M*N])", NULL},
    {"reshape(q, [G, C/G, M, N])", NULL},
    {"reshape(q, [M, 2*(C/G), G, N/2])", NULL},
    /* reductions and calls */
    {"sum(x)", NULL},
    {"sum(x, dim=[0, 1])", "sum(x)"},
    {"sum(x, dim=1, keepdim=True)", "sum(x, dim=-1, keepdim=True)"},
    {"sum(x, dim=0)", NULL},
    {"sum(q, dim=[1, 2])", NULL},
    {"sum(q, dim=[-3, 1], keepdim=True)", "sum(q, dim=[0, 1], keepdim=True)"},
    {"amax(r, dim=-1)", "amax(r)"},
    {"any(b, dim=1)", "any(b, dim=-1)"},
    {"mean(x, -1, True)", "mean(x, dim=-1, keepdim=True)"},
    {"var(x, dim=1, correction=0)", NULL},
    {"softmax(x, dim=-1)", NULL},
    {"layer_norm(x, w, w, 1e-5)", NULL},
    {"layer_norm(x, bias=w, eps=eps)", NULL},
    {"layer_norm(x, None, None, 1e-5)", "layer_norm(x, eps=1e-5)"},
    {"layer_norm(x, w, None, eps, dim=0)", "layer_norm(x, w, eps=eps, dim=0)"},
    {"rms_norm(x + w, w, 1 / (2 * N))", "rms_norm(x + w, w, 1 / (2*N))"},
    {"rms_norm(x, eps=size(N/2))", NULL},
    {"clamp(x, -1, 1)", NULL},
    {"clamp(x, max=2.0)", NULL},
    {"clamp(x, min=-inf)", "clamp(x, -inf)"},
    {"gelu(x, 'tanh') * 2", "gelu(x, approximate=\"tanh\") * 2"},
    {"relu(cast(2, f32)) * x", NULL},
    {"logsumexp(x, dim=[0, 1])", NULL},
    {"softmax(q, dim=None)", NULL},
    {"cast(x * 2, bf16) + w", NULL},
    {"minimum(x, maximum(w, 0))", NULL},
    {"swiglu(x[:, :N/2], x[:, N/2:])", NULL},
};

static void test_expressions(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof expressions / sizeof *expressions; i++) {
        char *text, *line;
        const char *quote = strchr(expressions[i].text, '\'') ? "\"" : "'";
        const char *expected = expressions[i].written ? expressions[i].written : expressions[i].text;
        assert_true(
            asprintf(&text, HEAD "nodes: {out: %s%s%s}\noutputs: {out: f32}\n", quote, expressions[i].text, quote) > 0);
        GraphText *graph_text = graph_text_string(text, UP_TO_PARSE);
        if (graph_text->status != STATUS_OK) fail_msg("%s: %s", expressions[i].text, ir_job_report(graph_text->job));
        check_written(expressions[i].text, graph_text, UP_TO_PARSE);
        assert_true(asprintf(&line, "\n  out: %s\n", expected) > 0);
        const char *written = write_graph(graph_text, NULL), *found = strstr(written, "\n  out: ");
        bool quoted = found && found[8] == '"' && strncmp(found + 9, expected, strlen(expected)) == 0;
        if (!quoted && !strstr(written, line))
            fail_msg("%s is written\n%.200s\nexpected %s", expressions[i].text, found, line);
        graph_text_free(graph_text);
        free(line);
        free(text);
    }
    printf("# %zu expressions\n", sizeof expressions / sizeof *expressions);
}

/* ---- what is a node, and what it is called ---- */

static void expect_file(const char *text, const char *expected) {
    GraphText *graph_text = graph_text_string(text, UP_TO_PARSE);
    if (graph_text->status != STATUS_OK) fail_msg("%s", ir_job_report(graph_text->job));
    check_written("file", graph_text, UP_TO_PARSE);
    assert_string_equal(write_graph(graph_text, NULL), expected);
    graph_text_free(graph_text);
}

static void test_nodes(void **state) {
    (void)state;
    /* a parameter's second use, names that are taken, words of YAML's, a scalar that is stored */
    expect_file("graph: g\n"
                "types: {E: bf16, t4: f16, U: u8, K: i64}\n"
                "dims: {M: {hint: 8, multiple: 2}, N: 16, t1: 3}\n"
                "inputs: {x: 'f32[M, N]', v: {dtype: E, shape: [M, t1], strides: [t1 + 1, 1], align: 16}}\n"
                "scalars: {eps: 1e-5, n: {dtype: K, default: -3}, f: {dtype: bool, default: False}, s: {dtype: f16}}\n"
                "functions: {twice(a): a * a, 'shift(a, i)': 'a[:, None] + (i - a[:, None] * arange(N))'}\n"
                "nodes:\n"
                "  no: twice(x + eps)\n"
                "  t3: shift(sum(v, dim=1), 2)\n"
                "  o: eps\n"
                "  c: 0.5\n"
                "  z: no + t3 * c\n"
                "outputs: {no: f32, z: E, o: t4, t2: {of: z, dtype: f32, strides: [N, 1], align: 8}, "
                "copy: {of: v, dtype: f32}}\n",
                "graph: g\n"
                "types:\n  E: bf16\n  t4: f16\n  K: i64\n"
                "dims:\n  M: {hint: 8, multiple: 2}\n  \"N\": 16\n  t1: 3\n"
                "inputs:\n  x: f32[M, N]\n  v: {dtype: E, shape: [M, t1], strides: [t1 + 1, 1], align: 16}\n"
                "scalars:\n  eps: 1e-5\n  \"n\": {dtype: K, default: -3}\n  f: {dtype: bool, default: False}\n"
                "  s: {dtype: f16}\n"
                "nodes:\n"
                "  t5: x + eps\n"
                "  \"no\": t5 * t5\n"
                "  t6: sum(v, dim=-1)\n"
                "  t3: t6[:, None] + (2 - t6[:, None] * arange(N))\n"
                "  c: 0.5\n"
                "  z: no + t3 * c\n"
                "  o: eps\n"
                "outputs:\n"
                "  \"no\": f32\n  z: E\n  o: t4\n"
                "  t2: {dtype: f32, of: z, strides: [N, 1], align: 8}\n  copy: {dtype: f32, of: v}\n");
}

static void test_long_lines(void **state) {
    (void)state;
    Job *job = ir_job_create(NULL);
    Text text = ir_text(job);
    ir_text_put(&text, "graph: long\ndims: {M: any, N: 16}\ninputs: {x: 'f32[M, N]', w: 'f32[N]'}\n"
                       "functions: {f(a): a * w0(a) + exp(a), w0(a): 'where(a > 0, a, 1)'}\nnodes:\n  y: x");
    for (uint32_t i = 0; i < 60; i++) ir_text_format(&text, " + w ** %u", i);
    ir_text_put(&text, "\n  deep: ");
    for (uint32_t i = 0; i < 200; i++) ir_text_put(&text, "abs(");
    ir_text_put(&text, "y");
    for (uint32_t i = 0; i < 200; i++) ir_text_put(&text, ")");
    ir_text_put(&text, "\n  a: f(f(f(f(f(f(f(x)))))))\noutputs: {y: f32, deep: f32, a: f32}\n");
    GraphText *graph_text = graph_text_string(ir_text_string(&text), UP_TO_PARSE);
    if (graph_text->status != STATUS_OK) fail_msg("%s", ir_job_report(graph_text->job));
    check_written("long", graph_text, UP_TO_PARSE);
    for (const char *at = write_graph(graph_text, NULL); *at; at += strcspn(at, "\n") + 1)
        assert_true(strcspn(at, "\n") <= 110);
    graph_text_free(graph_text);
    ir_job_free(job);
}

/* ---- comments ---- */

static void test_comments(void **state) {
    (void)state;
    const char *text = "graph: g\n"
                       "dims: {M: any, N: 4}\n"
                       "inputs: {x: 'f32[M, N]', longer: 'f32[M, N]', s: 'f32[M, N]'}\n"
                       "nodes:\n  a: x * 2\n"
                       "  b: where(a > 0, exp(a) * longer + 1, longer) + tanh(a + s)\n"
                       "  c: b + 1\n"
                       "outputs: {b: f32, c: f32}\n";
    const char *const named[][2] = {
        {"a", "broken\r\nlines: [\t\xc2\x85 \xe2\x80\xa8 \xff \x01 \xef\xbb\xbf #"},
        {"b", "a comment that would make its line longer than lines are"},
        {"c", ""},
        {"x", "no node"},
    };
    const char *const inputs[] = {"saved by the forward graph", NULL, "caf\xc3\xa9"}, *const outputs[] = {"of x", NULL};
    GraphText *graph_text = graph_text_string(text, UP_TO_PARSE);
    assert_int_equal(graph_text->status, STATUS_OK);
    const Graph *graph = graph_text->unit.graph;
    const char **values = calloc(graph->values.count, sizeof *values);
    assert_non_null(values);
    for (uint32_t i = 0; i < graph->values.count; i++) {
        values[i] = "inside an expression";
        for (size_t k = 0; k < sizeof named / sizeof *named; k++)
            if (graph->values.at[i].name && !strcmp(graph->values.at[i].name, named[k][0])) values[i] = named[k][1];
    }
    const char **nodes = calloc(graph->values.count, sizeof *nodes);
    assert_non_null(nodes);
    const GraphNotes notes = {"The first line.\n\nThe third, {of: three}.\n", inputs, outputs, values, nodes};
    const char *written = write_graph(graph_text, &notes);
    assert_string_equal(written, "# The first line.\n#\n# The third, {of: three}.\n"
                                 "graph: g\n"
                                 "dims:\n  M: any\n  \"N\": 4\n"
                                 "inputs:\n"
                                 "  x: f32[M, N]  # saved by the forward graph\n"
                                 "  longer: f32[M, N]\n"
                                 "  s: f32[M, N]  # caf\xc3\xa9\n"
                                 "nodes:\n"
                                 "  a: x * 2  # broken lines: [   ? ? ? #\n"
                                 "  # a comment that would make its line longer than lines are\n"
                                 "  b: where(a > 0, exp(a) * longer + 1, longer) + tanh(a + s)\n"
                                 "  c: b + 1\n"
                                 "outputs:\n  b: f32  # of x\n  c: f32\n");
    for (uint32_t i = 0, found = 0; i < graph->values.count; i++) { /* a, b and c, and nothing else, are nodes */
        const Value *value = &graph->values.at[i];
        const char *name = value->op == OP_INPUT ? NULL : value->name;
        assert_true(name ? nodes[i] && !strcmp(nodes[i], name) : !nodes[i]);
        found += name != NULL;
        if (i + 1 == graph->values.count) assert_int_equal(found, 3);
    }
    GraphText *again = graph_text_string(written, UP_TO_PARSE);
    if (again->status != STATUS_OK) fail_msg("%s", ir_job_report(again->job));
    assert_true(is_same(graph_text, again));
    graph_text_free(again);
    graph_text_free(graph_text);
    free(values);
    free(nodes);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_files),       cmocka_unit_test(test_random),
                                       cmocka_unit_test(test_made),        cmocka_unit_test(test_same),
                                       cmocka_unit_test(test_expressions), cmocka_unit_test(test_nodes),
                                       cmocka_unit_test(test_long_lines),  cmocka_unit_test(test_comments)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
