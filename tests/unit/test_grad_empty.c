/* Gradients of slices whose lengths are known at launch, 0 among them: at each place of a dim, in each kind of kernel,
 * against differences and the reference. And what an index picks of a table that is empty. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/normgen.h"
#include "tests/support/random.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 4, ROOM = 4096, MOST = 4 };

typedef struct Fixture {
    ng_context *context;
    uint64_t seed;
    float numbers[MOST][ROOM]; /* of the inputs in order */
    int64_t ids[ROOM];
} Fixture;

static int start(void **state) {
    static Fixture fixture;
    const ng_context_options options = {.size = sizeof options, .device = NG_DEVICE_HOST};
    if (ng_context_create(&options, &fixture.context, NULL)) return 1;
    Random random = {fixture.seed = random_seed()};
    for (int i = 0; i < MOST * ROOM; i++) fixture.numbers[i / ROOM][i % ROOM] = (float)random_normal(&random);
    *state = &fixture;
    return 0;
}

static int stop(void **state) {
    ng_context_free(((Fixture *)*state)->context);
    return 0;
}

typedef struct Case {
    const char *what, *inputs, *nodes, *outputs;
} Case;

static ng_program *compile(Fixture *fixture, const Case *tried) {
    char text[1024];
    ng_program *program = NULL;
    ng_text why = {0};
    snprintf(text, sizeof text, "graph: g\ndims: {M: any, K: any, N: 16}\ninputs: {%s}\nnodes:\n  %s\noutputs: {%s}\n",
             tried->inputs, tried->nodes, tried->outputs);
    if (ng_compile(fixture->context, text, strlen(text), NULL, &program, &why))
        fail_msg("%s: %s", tried->what, why.bytes);
    ng_text_free(&why);
    return program;
}

static const Case slices[] = {
    {"the end", "x: 'f32[M, N + K]', w: 'f32[K]'", "y: 'exp(x[:, N:] * w)'", "y: f32"},
    {"the beginning, and what is left", "x: 'f32[M, N + K]'", "y: 'sum(exp(x[:, :K]), dim=0)'\n  z: 'x[:, K:] * 3'",
     "y: f32, z: f32"},
    {"the middle", "x: 'f32[M, 2*N + K]', w: 'f32[K]'", "y: 'exp(x[:, N:N+K] * w)'", "y: f32"},
    {"the last rows", "x: 'f32[M + K, N]', w: 'f32[N]'", "y: 'exp(x[M:] * w)'", "y: f32"},
    {"rows between", "x: 'f32[2*M + K, N]'", "y: 'sum(exp(x[M:M+K]), dim=0)'", "y: f32"},
    {"rows and columns", "x: 'f32[M + K, N + K]', w: 'f32[K]'", "y: 'exp(x[M:, N:] * w)'", "y: f32"},
    {"reshaped", "x: 'f32[M, N + K, 4]'", "y: 'reshape(exp(x[:, N:]), [M, 4*K])'", "y: f32"},
    {"of a row that is normed", "x: 'f32[M, N + K]', w: 'f32[K]'", "h: layer_norm(x)\n  y: 'exp(h[:, N:] * w)'",
     "y: f32"},
    {"of columns that are normed", "x: 'f32[M, N + K]'", "h: 'softmax(x, dim=0)'\n  y: 'exp(h[:, N:])'", "y: f32"},
    {"of two lengths in equal kernels", "x: 'f32[M, N + K]', z: 'f32[M, N + K + 1]'",
     "y: 'exp(x[:, N:])'\n  u: 'exp(z[:, N:])'", "y: f32, u: f32"},
};

static void test_slices(void **state) {
    Fixture *fixture = *state;
    static const int64_t lengths[] = {0, 1, 3};
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++) {
        ng_program *program = compile(fixture, &slices[i]);
        for (size_t l = 0; l < 3; l++) {
            void *tensors[2 * MOST] = {fixture->numbers[0]};
            if (strstr(slices[i].inputs, ", w:") || strstr(slices[i].inputs, ", z:")) tensors[1] = fixture->numbers[1];
            const int64_t dims[] = {ROWS, lengths[l]};
            const ng_args args = {.size = sizeof args, .tensors = tensors, .dims = dims};
            const ng_check_grad_options options = {.size = sizeof options, .seed = fixture->seed};
            ng_text report = {0}, why = {0};
            if (ng_check_grad(program, &args, &options, &report, &why))
                fail_msg("%s, length %d: %s", slices[i].what, (int)lengths[l], why.bytes);
            ng_text_free(&report);
            ng_text_free(&why);
        }
        ng_program_free(program);
    }
}

/* An index that no input decides picks 0 of what is empty; one of an input's elements is refused there. */
static const struct {
    Case graph;
    ng_status empty; /* where K is 0; else the launch is right */
} tables[] = {
    {{"by arange", "x: 'f32[K]'", "y: 'x[minimum(arange(M), K - 1)]'", "y: f32"}, NG_OK},
    {{"rows by arange", "x: 'f32[K, N]'", "y: 'x[minimum(arange(M), K - 1)] + 1'", "y: f32"}, NG_OK},
    {{"of sums", "x: 'f32[K, N]'", "y: 'sum(x, -1)[minimum(arange(M), K - 1)]'", "y: f32"}, NG_OK},
    {{"by an input", "x: 'f32[K]', ids: 'i64[M]'", "y: 'x[ids]'", "y: f32"}, NG_LAUNCH},
    {{"by what an input gives", "x: 'f32[K, N]', ids: 'i64[M]'", "y: 'x[maximum(ids, arange(M) * 0)]'", "y: f32"},
     NG_LAUNCH},
};

static void test_tables(void **state) {
    Fixture *fixture = *state;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        ng_program *program = compile(fixture, &tables[i].graph);
        const bool given = tables[i].empty != NG_OK;
        for (int64_t length = 0; length < 3; length++) {
            void *tensors[3] = {fixture->numbers[0], given ? (void *)fixture->ids : fixture->numbers[1],
                                fixture->numbers[1]};
            const int64_t dims[] = {ROWS, length};
            const ng_args args = {.size = sizeof args, .tensors = tensors, .dims = dims};
            ng_report report = {.size = sizeof report};
            const ng_status status = ng_run(program, &args, 1, &report);
            if (status != (length ? NG_OK : tables[i].empty))
                fail_msg("%s, of %d: status %d %s", tables[i].graph.what, (int)length, (int)status,
                         report.why.bytes ? report.why.bytes : "");
            for (int k = 0; !length && status == NG_OK && k < ROWS; k++)
                if (fixture->numbers[1][k] != (i == 1 ? 1.0f : 0.0f)) fail_msg("%s: not 0", tables[i].graph.what);
            ng_text_free(&report.why);
        }
        ng_program_free(program);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_slices), cmocka_unit_test(test_tables)};
    return cmocka_run_group_tests(tests, start, stop);
}
