/* Every limit of the language: reached, and passed by one; and text that is large or deep in other ways. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gen/yaml.h"
#include "tests/support/graph_text.h"

typedef struct Builder {
    char *bytes;
    size_t count, capacity;
} Builder;

static void put(Builder *builder, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(Builder *builder, const char *format, ...) {
    va_list args;
    char *piece = NULL;
    va_start(args, format);
    int count = vasprintf(&piece, format, args);
    va_end(args);
    if (count < 0) abort();
    if (builder->count + (size_t)count + 1 > builder->capacity) {
        builder->capacity = 2 * builder->capacity + (size_t)count + 1;
        builder->bytes = realloc(builder->bytes, builder->capacity);
        if (!builder->bytes) abort();
    }
    memcpy(builder->bytes + builder->count, piece, (size_t)count + 1);
    builder->count += (size_t)count;
    free(piece);
}

static void repeat(Builder *builder, const char *piece, uint32_t times) {
    for (uint32_t i = 0; i < times; i++) put(builder, "%s", piece);
}

#define HEAD "graph: g\ndims: {M: any}\ninputs: {x: 'f32[M]'}\n"

/* The text is accepted when message is NULL, else rejected with it at line and column; and never takes long. */
static void expect(Builder *builder, const char *message, uint32_t line, uint32_t column) {
    clock_t start = clock();
    GraphText *graph_text = graph_text_read(builder->bytes, builder->count, NULL, UP_TO_EXPAND);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    const Diagnostic *error = graph_text_first(graph_text, SEVERITY_ERROR);
    uint32_t at_line = 0, at_column = 0;
    if (error && error->place.count > 0) ir_locate(graph_text->job, error->place.start, &at_line, &at_column);
    if (seconds > 20) fail_msg("%s: took %d ms", message ? message : "good", (int)(seconds * 1000));
    if (!message && graph_text->status != STATUS_OK) fail_msg("%.2000s", ir_job_report(graph_text->job));
    if (message && (graph_text->status != STATUS_REJECTED || !error || !strstr(error->text, message) ||
                    at_line != line || at_column != column))
        fail_msg("expected '%s' at %u:%u, got status %d at %u:%u\n%.3000s", message, line, column,
                 (int)graph_text->status, at_line, at_column, ir_job_report(graph_text->job));
    if (strlen(ir_job_report(graph_text->job)) > 100000) fail_msg("a report of more than 100,000 bytes");
    graph_text_free(graph_text);
    free(builder->bytes);
    *builder = (Builder){0};
}

static void test_nodes(void **state) {
    (void)state;
    Builder text = {0};
    for (uint32_t extra = 0; extra < 2; extra++) { /* the input is a value too */
        put(&text, HEAD "nodes:\n  n0: x\n");
        for (uint32_t i = 1; i < IR_MAX_NODES + extra; i++) put(&text, "  n%u: -n%u\n", i, i - 1);
        put(&text, "outputs: {y: {dtype: f32, of: n%u}}\n", IR_MAX_NODES - 1 + extra);
        expect(&text, extra ? "a graph has at most 4096 values" : NULL, 4 + 1 + IR_MAX_NODES, 10);
    }
    for (uint32_t extra = 0; extra < 2; extra++) { /* relu is 2 values after expansion */
        put(&text, HEAD "nodes:\n  n0: x\n");
        uint32_t calls = (IR_MAX_NODES - 1) / 2 + extra;
        for (uint32_t i = 1; i <= calls; i++) put(&text, "  n%u: relu(n%u)\n", i, i - 1);
        put(&text, "outputs: {y: {dtype: f32, of: n%u}}\n", calls);
        expect(&text, extra ? "a graph has at most 4096 values" : NULL, 5 + calls, 10);
    }
    put(&text, HEAD "nodes:\n"); /* from the last to the first, each needing the next */
    for (uint32_t i = IR_MAX_NODES - 1; i > 0; i--) put(&text, i > 1 ? "  n%u: -n%u\n" : "  n%u: -x\n", i, i - 1);
    put(&text, "outputs: {y: {dtype: f32, of: n%u}}\n", IR_MAX_NODES - 1);
    expect(&text, NULL, 0, 0);
}

static void nested(Builder *text, const char *open, const char *inside, const char *close, uint32_t depth) {
    put(text, HEAD "nodes:\n  y: \"");
    repeat(text, open, depth);
    put(text, "%s", inside);
    repeat(text, close, depth);
    put(text, "\"\noutputs: {y: f32}\n");
}

static void test_nesting(void **state) {
    (void)state;
    static const char *const kinds[][3] = {
        {"(", "x", ")"}, {"-", "x", ""}, {"exp(", "x", ")"}, {"2 ** ", "x", ""}, {"-x * (x + ", "x", ")"}};
    Builder text = {0};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        uint32_t length = (uint32_t)strlen(kinds[k][0]);
        nested(&text, kinds[k][0], kinds[k][1], kinds[k][2], 256);
        expect(&text, NULL, 0, 0);
        nested(&text, kinds[k][0], kinds[k][1], kinds[k][2], 257);
        static const uint32_t offsets[] = {0, 0, 3, 2, 0}; /* of the character that opens one level too many */
        expect(&text, "expressions nest at most 256 deep", 5, 7 + 256 * length + offsets[k]);
    }
    nested(&text, "(", "x", ")", 1000000);
    expect(&text, "expressions nest at most 256 deep", 5, 7 + 256);
    put(&text, HEAD "nodes:\n  y: x");
    repeat(&text, "[None]", 100000);
    put(&text, "\noutputs: {y: f32}\n");
    expect(&text, "expressions nest at most 256 deep", 5, 7 + 256 * 6);
}

static void test_rank_and_size(void **state) {
    (void)state;
    Builder text = {0};
    put(&text, "graph: g\ndims: {N: 4611686018427387903}\ninputs: {x: 'f32[N]'}\noutputs: {y: {dtype: f32, of: x}}\n");
    expect(&text, NULL, 0, 0);
    put(&text, "graph: g\ndims: {N: 2147483648, K: 2147483647}\ninputs: {x: 'f32[N, K]'}\n"
               "outputs: {y: {dtype: f32, of: x}}\n");
    expect(&text, NULL, 0, 0);
    put(&text, "graph: g\ndims: {N: 2147483648, K: 2147483648}\ninputs: {x: 'f32[N, K]'}\n"
               "outputs: {y: {dtype: f32, of: x}}\n");
    expect(&text, "must stay below 2^62", 3, 13);
    put(&text, "graph: g\ndims: {N: 2147483648, K: 2147483648}\ninputs: {x: 'f32[N, 1]', y: 'f32[1, K]'}\n"
               "nodes: {z: x + y}\noutputs: {z: f32}\n");
    expect(&text, "must stay below 2^62", 4, 14);
    put(&text, "graph: g\ndims: {Z: 0, K: 3000000000}\ninputs: {x: 'f32[Z, K, K, K]'}\n"
               "outputs: {y: {dtype: f32, of: x}}\n");
    expect(&text, "must stay below 2^62", 3, 13);
    put(&text, "graph: g\ndims: {N: 3000000}\ninputs: {x: 'f32[8]'}\nnodes: {y: x + N*N*N}\noutputs: {y: f32}\n");
    expect(&text, "a size must stay below 2^62", 4, 19);
    put(&text,
        "graph: g\ndims: {N: 0}\ninputs: {x: 'f32[N, 1, 1, 1, 1, 1]'}\nnodes: {y: mean(x)}\noutputs: {y: f32}\n");
    expect(&text, NULL, 0, 0);
    put(&text,
        "graph: g\ninputs: {x: 'f32[4]'}\nnodes: {y: 'x + arange(4611686018427387903)[0]'}\noutputs: {y: f32}\n");
    expect(&text, NULL, 0, 0);
    for (uint32_t extra = 0; extra < 2; extra++) { /* 2^8 terms, and 2^9 */
        put(&text, "graph: g\ndims: {a: any");
        for (char c = 'b'; c < 'i' + (char)extra; c++) put(&text, ", %c: any", c);
        put(&text, "}\ninputs:\n  x: f32[(a + 1)");
        for (char c = 'b'; c < 'i' + (char)extra; c++) put(&text, "*(%c + 1)", c);
        put(&text, "]\nnodes: {y: x + 1}\noutputs: {y: f32}\n");
        expect(&text, extra ? "with at most 256 terms" : NULL, 4, 73);
    }
}

static void *read_yaml(Job *job, const char *bytes, size_t count) { return gen_yaml_read(job, bytes, count); }

typedef struct YamlWork {
    const char *bytes;
    size_t count;
} YamlWork;

static void yaml_work(Job *job, void *state) { read_yaml(job, ((YamlWork *)state)->bytes, ((YamlWork *)state)->count); }

static Status yaml_status(const char *bytes, size_t count, const char *message) {
    YamlWork work = {bytes, count};
    Job *job = ir_job_create(NULL);
    ir_job_set_source(job, "graph.yaml", bytes, count);
    Status status = ir_job_run(job, yaml_work, &work);
    if (message && !strstr(ir_job_report(job), message)) fail_msg("%.2000s", ir_job_report(job));
    ir_job_free(job);
    return status;
}

static void test_yaml(void **state) {
    (void)state;
    Builder text = {0};
    for (uint32_t depth = 64; depth <= 65; depth++) {
        put(&text, "a: ");
        repeat(&text, "[", depth - 1);
        put(&text, "b");
        repeat(&text, "]", depth - 1);
        assert_int_equal(yaml_status(text.bytes, text.count, depth > 64 ? "nest at most 64 deep" : NULL),
                         depth > 64 ? STATUS_REJECTED : STATUS_OK);
        free(text.bytes);
        text = (Builder){0};
    }
    repeat(&text, "[", 1000000);
    assert_int_equal(yaml_status(text.bytes, text.count, "nest at most 64 deep"), STATUS_REJECTED);
    free(text.bytes);
    text = (Builder){0};
    for (size_t extra = 0; extra < 2; extra++) {
        put(&text, HEAD "nodes: {y: x + 1}\noutputs: {y: f32}\n");
        while (text.count + 64 < GEN_MAX_FILE) put(&text, "# %060d\n", 0);
        while (text.count < GEN_MAX_FILE + extra) put(&text, " ");
        expect(&text, extra ? "a graph file has at most 16 MB" : NULL, 1, 1);
    }
}

static void long_name(Builder *text, uint32_t count) {
    char *name = malloc(count + 1);
    if (!name) abort();
    memset(name, 'a', count);
    name[count] = 0;
    put(text, "%s", name);
    free(name);
}

static void test_names(void **state) {
    (void)state;
    static const struct {
        const char *before, *after;
        uint32_t line, column;
    } rows[] = {
        {"graph: ", "\n", 1, 8},
        {"graph: g\ntypes:\n  ", ": f32\n", 3, 3},
        {"graph: g\ntypes: {E: ", "}\n", 2, 12},
        {"graph: g\ndims:\n  ", ": 3\n", 3, 3},
        {"graph: g\ndims: {N: ", "}\n", 2, 11},
        {"graph: g\ninputs:\n  ", ": f32[3]\n", 3, 3},
        {"graph: g\ninputs:\n  x: f32[", "]\n", 3, 10},
        {"graph: g\nscalars:\n  ", ": 3\n", 3, 3},
        {"graph: g\nscalars:\n  s: ", "\n", 3, 6},
        {"graph: g\nfunctions:\n  \"f(", ")\": x\n", 3, 6},
        {"graph: g\nnodes:\n  ", ": 3\n", 3, 3},
        {"graph: g\nnodes:\n  y: ", "\n", 3, 6},
        {"graph: g\nnodes:\n  y: ", "(3)\n", 3, 6},
        {"graph: g\nnodes:\n  y: 1\noutputs:\n  ", ": f32\n", 5, 3},
        {"graph: g\nnodes:\n  y: 1\noutputs:\n  y: {dtype: f32, of: ", "}\n", 5, 23},
        {"graph: g\nnodes: {\"", "\": 3}\n", 2, 9},
        {"graph: g\nnodes: {a: 1, '", "' : 3}\n", 2, 15},
        {"graph: g\nnodes: {", ": 3}\n", 2, 9},
        {"graph: g\nnodes:\n  \"", "\": 3\n", 3, 3},
        {"", ": 3\n", 1, 1},
        {"graph: g\n", "\n", 2, 1},
    };
    static const uint32_t lengths[] = {65, 1100, 1 << 20};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            Builder text = {0};
            put(&text, "%s", rows[k].before);
            long_name(&text, lengths[i]);
            put(&text, "%s", rows[k].after);
            expect(&text, "", rows[k].line, rows[k].column);
        }
    Builder text = {0};
    put(&text, "graph: ");
    long_name(&text, 64);
    put(&text, "\nnodes:\n  ");
    long_name(&text, 64);
    put(&text, ": 1\noutputs:\n  ");
    long_name(&text, 64);
    put(&text, ": f32\n");
    expect(&text, NULL, 0, 0);
}

static void test_long_chains(void **state) {
    (void)state;
    Builder text = {0};
    put(&text, HEAD "nodes:\n  y: x");
    repeat(&text, " + x", 4000);
    put(&text, "\noutputs: {y: f32}\n");
    expect(&text, NULL, 0, 0);
    put(&text, HEAD "nodes:\n  y: x");
    repeat(&text, " + x", 5000);
    put(&text, "\noutputs: {y: f32}\n");
    expect(&text, "a graph has at most 4096 values", 5, 8 + 4 * 4095);
    put(&text, HEAD "nodes:\n  y: x * (1");
    repeat(&text, " + 1", 1000);
    put(&text, ")\noutputs: {y: f32}\n");
    expect(&text, "an expression of numbers has at most 256 operations", 5, 13 + 4 * 256);
    put(&text, HEAD "nodes:\n  y: x * (M");
    repeat(&text, " + M", 100000);
    put(&text, ")\noutputs: {y: f32}\n");
    expect(&text, NULL, 0, 0);
    put(&text, HEAD "nodes:\n  y: x");
    repeat(&text, " + x", 300000);
    put(&text, "\noutputs: {y: f32}\n");
    expect(&text, "one expression has at most", 5, 6 + 4 * 262144 - 4 * 0);
    put(&text, HEAD "nodes:\n");
    for (uint32_t i = 0; i < 100000; i++) put(&text, i ? "  n%u: n%u\n" : "  n%u: x\n", i, i - 1);
    put(&text, "outputs: {y: {dtype: f32, of: n99999}}\n");
    expect(&text, NULL, 0, 0);
}

static void test_functions(void **state) {
    (void)state;
    Builder text = {0};
    for (uint32_t deep = 64; deep <= 65; deep++) {
        put(&text, HEAD "functions:\n  f1(x): x + 1\n");
        for (uint32_t i = 2; i <= deep; i++) put(&text, "  f%u(x): f%u(x)\n", i, i - 1);
        put(&text, "nodes: {y: f%u(x)}\noutputs: {y: f32}\n", deep);
        expect(&text, deep > 64 ? "functions call functions at most 64 deep" : NULL, 6, 10);
    }
    put(&text, HEAD "functions:\n  f1(x): x + x\n");
    for (uint32_t i = 2; i <= 60; i++) put(&text, "  f%u(x): f%u(x) + f%u(x)\n", i, i - 1, i - 1);
    put(&text, "nodes: {y: f60(x)}\noutputs: {y: f32}\n");
    expect(&text, "a graph has at most 4096 values", 5, 12);
    put(&text, HEAD "functions:\n  f1(x): 1\n");
    for (uint32_t i = 2; i <= 60; i++) put(&text, "  f%u(x): f%u(x) * M * 0 + f%u(x) * M * 0\n", i, i - 1, i - 1);
    put(&text, "nodes: {y: x * f60(x)}\noutputs: {y: f32}\n");
    expect(&text, "its functions expand without end", 6, 10);
    put(&text, HEAD "functions:\n  f1(x): x\n");
    for (uint32_t i = 2; i <= 60; i++) {
        put(&text, "  f%u(x): \"", i);
        repeat(&text, "exp(", 250);
        put(&text, "f%u(x)", i - 1);
        repeat(&text, ")", 250);
        put(&text, "\"\n");
    }
    put(&text, "nodes: {y: f60(x)}\noutputs: {y: f32}\n");
    expect(&text, "expressions and the functions in them nest too deep", 53, 964);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes),     cmocka_unit_test(test_nesting), cmocka_unit_test(test_rank_and_size),
        cmocka_unit_test(test_yaml),      cmocka_unit_test(test_names),   cmocka_unit_test(test_long_chains),
        cmocka_unit_test(test_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
