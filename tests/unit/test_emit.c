/* emit: what the texts may contain, the same bytes every time, goldens; and awkward tiles, shapes and names run on the
 * host device against the oracle. UPDATE_GOLDEN=1 rewrites the goldens. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/launch.h"
#include "tests/support/generate.h"
#include "tests/support/prog_case.h"
#include "tests/support/random_graph.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int setup(void **state) {
    *state = ir_job_create(NULL);
    return *state == NULL;
}

static int teardown(void **state) {
    ir_job_free(*state);
    return 0;
}

static const char *const examples[] = {"rms_norm", "layer_norm",          "layer_norm_stats", "add_rms_norm",
                                       "softmax",  "add_layer_norm_gelu", "bias_gelu"};
#define EXAMPLE_COUNT (sizeof examples / sizeof *examples)

static void must(Job *job, Status status) {
    if (status != STATUS_OK) fail_msg("%s", ir_job_report(job));
}

/* ---- texts ---- */

/* The kernels, without helpers and launcher. */
static const char *bodies(Job *job, const Unit *unit) {
    const char *start = strstr(unit->source.device_text, "// ---- kernel");
    const char *end = strstr(unit->source.device_text, "}  // namespace");
    assert_non_null(start);
    assert_non_null(end);
    return ir_copy_text(job, start, (size_t)(end - start));
}

static void check_body(const char *body, const char *what) {
    static const char *const banned[] = {"asm",         "__shfl",       "__syncthreads", "threadIdx", "blockIdx",
                                         "__shared__",  "float2",       "float4",        "uint4",     "#include",
                                         "__nv_bfloat", "asm volatile", "return",        "double "};
    for (size_t i = 0; i < sizeof banned / sizeof *banned; i++)
        if (strstr(body, banned[i])) fail_msg("%s: a body has `%s`", what, banned[i]);
    for (const char *line = body; *line; line += strcspn(line, "\n") + 1)
        if (strcspn(line, "\n") > 140) fail_msg("%s: a line of %d characters", what, (int)strcspn(line, "\n"));
}

static void test_texts(void **state) {
    Job *job = *state;
    for (size_t i = 0; i < EXAMPLE_COUNT; i++)
        for (int loop = 0; loop < 2; loop++) {
            Unit unit, again;
            const char *path = ir_format(job, "examples/%s.yaml", examples[i]);
            const char *sets = loop && strcmp(examples[i], "bias_gelu") != 0 ? "strategy=row_loop" : NULL;
            must(job, generate_file(job, &unit, path, NULL, sets));
            must(job, generate_file(job, &again, path, NULL, sets));
            assert_string_equal(unit.source.device_text, again.source.device_text);
            assert_string_equal(unit.source.host_text, again.source.host_text);
            const char *body = bodies(job, &unit);
            check_body(body, path);
            assert_non_null(strstr(unit.source.host_text, body)); /* one text for both */
            assert_null(strstr(unit.source.device_text, "ng_api"));
            assert_non_null(strstr(unit.source.header_text, ir_format(job, "int %s_launch(", examples[i])));
        }
}

static bool is_word_byte(char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static int count_words(const char *text, const char *word) {
    int count = 0;
    const size_t length = strlen(word);
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += length)
        count += (at == text || !is_word_byte(at[-1])) && !is_word_byte(at[length]);
    return count;
}

/* A file holds the helpers that it uses: each name stands once more than it is defined. */
static void check_helpers(Job *job, const Unit *unit) {
    const char *text = unit->source.device_text;
    for (const char *at = text; (at = strstr(at, "\nNG_HELPER ")) != NULL;) {
        at += strlen("\nNG_HELPER ");
        const char *paren = strchr(at, '('), *name = paren;
        while (is_word_byte(name[-1])) name--;
        if (strncmp(name, "ng_", 3) != 0) continue; /* the kernel's own */
        const char *word = ir_copy_text(job, name, (size_t)(paren - name));
        int definitions = 0;
        for (const char *other = text; (other = strstr(other, "\nNG_HELPER ")) != NULL;) {
            other += strlen("\nNG_HELPER ");
            definitions += count_words(ir_copy_text(job, other, strcspn(other, "(") + 1), word);
        }
        if (count_words(text, word) <= definitions) fail_msg("%s: nothing uses %s", unit->prog->name, word);
    }
}

static void test_helpers(void **state) {
    Job *job = *state;
    for (size_t i = 0; i < EXAMPLE_COUNT; i++) {
        Unit unit;
        must(job, generate_file(job, &unit, ir_format(job, "examples/%s.yaml", examples[i]), NULL, NULL));
        check_helpers(job, &unit);
    }
}

/* Kept chunks that turn bring no angles, which are counted in quarter turns. */
static void test_turns(void **state) {
    static const char graph[] = "graph: turns\ndims: {M: any, N: {max: 700}}\ninputs: {x: \"bf16[M, N]\"}\n"
                                "nodes: {a: \"exp(%s)\", y: \"tanh(a / sum(a, dim=-1, keepdim=True)) + erf(x)\"}\n"
                                "outputs: {y: bf16}\n";
    static const char *const angles[] = {"ng_quarters", "2/pi", "pi/2"};
    Job *job = *state;
    for (int wave = 0; wave < 2; wave++) {
        Unit unit;
        must(job, generate_text(job, &unit, ir_format(job, graph, wave ? "cos(x)" : "x"), NULL, NULL));
        check_helpers(job, &unit);
        assert_non_null(strstr(unit.source.device_text, "ng_turn<"));
        for (size_t i = 0; i < sizeof angles / sizeof *angles; i++)
            assert_int_equal(strstr(unit.source.device_text, angles[i]) != NULL, wave);
    }
}

/* No condition is asked for twice, whatever values ask for it. */
static void test_checks_once(void **state) {
    Job *job = *state;
    Unit unit;
    must(job, generate_text(job, &unit,
                            "graph: extremes\ndims: {B: any, F: any}\ninputs: {x: \"f32[B, F]\"}\n"
                            "nodes: {a: \"amax(x, dim=0)\", b: \"amin(x, dim=0)\", c: \"amax(x, dim=1)\"}\n"
                            "outputs: {a: f32, b: f32, c: f32}\n",
                            NULL, NULL));
    assert_int_equal(count_words(unit.source.device_text, "(d_B == 0) && d_F"), 1);
    assert_int_equal(count_words(unit.source.device_text, "(d_F == 0) && d_B"), 1);
}

static void test_fast(void **state) {
    (void)state;
    double best = 1e9;
    for (int i = 0; i < 10; i++) {
        Job *job = ir_job_create(NULL);
        Unit unit;
        clock_t start = clock();
        must(job, generate_file(job, &unit, "examples/add_rms_norm.yaml", NULL, NULL));
        double ms = (double)(clock() - start) * 1000 / CLOCKS_PER_SEC;
        if (ms < best) best = ms;
        ir_job_free(job);
    }
    printf("# graph file to texts, with verification: %d us\n", (int)(best * 1000));
    assert_true(best < 10);
}

static void test_goldens(void **state) {
    static const struct {
        const char *golden, *graph, *defines, *sets;
    } cases[] = {
        {"add_rms_norm.cu", "examples/add_rms_norm.yaml", NULL, NULL},
        {"softmax_loop.cu", "examples/softmax.yaml", "N=1000", "strategy=row_loop"},
        {"bias_gelu.cu", "examples/bias_gelu.yaml", NULL, NULL},
    };
    Job *job = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Unit unit;
        must(job, generate_file(job, &unit, cases[i].graph, cases[i].defines, cases[i].sets));
        const char *path = ir_format(job, "tests/golden/%s", cases[i].golden);
        if (getenv("UPDATE_GOLDEN")) {
            FILE *file = fopen(path, "wb");
            assert_non_null(file);
            assert_int_equal(fwrite(unit.source.device_text, 1, unit.source.device_count, file),
                             unit.source.device_count);
            assert_int_equal(fclose(file), 0);
            continue;
        }
        size_t count;
        const char *golden = case_file(job, path, &count);
        if (strcmp(golden, unit.source.device_text) != 0)
            fail_msg("%s differs; `make golden` rewrites it, then read the difference", path);
    }
}

/* ---- runs ---- */

typedef struct Run {
    const char *graph, *sets;
    int64_t dims[3]; /* any dims */
} Run;

#define ROWS "dims: {M: any, N: any}\ninputs: {x: \"bf16[M, N]\", w: \"f32[N]\"}\n"

static const char norm_any[] =
    "graph: norm_any\n" ROWS "nodes: {y: \"layer_norm(x, w, eps=1e-5)\"}\noutputs: {y: bf16}\n";
static const char norm_max[] =
    "graph: norm_max\ndims: {M: any, N: {max: 600}}\ninputs: {x: \"f16[M, N]\", w: \"f32[N]\"}\n"
    "nodes: {y: \"rms_norm(x, w, eps=1e-5)\"}\noutputs: {y: f16}\n";
static const char norm_760[] = "graph: norm_760\ndims: {M: any, N: 760}\ninputs: {x: \"f16[M, N]\", w: \"f32[N]\"}\n"
                               "nodes: {y: \"layer_norm(x, w, eps=1e-5)\"}\noutputs: {y: f32}\n";
static const char softmax_129[] = "graph: softmax_129\ndims: {M: any, N: 129}\ninputs: {x: \"f32[M, N]\"}\n"
                                  "nodes: {y: \"softmax(x, dim=-1)\"}\noutputs: {y: bf16}\n";
static const char bias_any[] = "graph: bias_any\n" ROWS "nodes: {y: silu(x + w)}\noutputs: {y: bf16}\n";
static const char group[] =
    "graph: group\ndims: {B: any, C: 12, P: any}\ninputs: {x: \"bf16[B, C, P]\", w: \"f32[C]\"}\n"
    "nodes:\n  g: reshape(x, [B, 3, 4, P])\n"
    "  n: g - mean(g, dim=[2, 3], keepdim=True)\n"
    "  y: reshape(n, [B, C, P]) * w[:, None]\noutputs: {y: bf16}\n";
static const char slices[] = "graph: slices\ndims: {M: any}\ninputs: {x: \"bf16[M, 100]\"}\n"
                             "nodes: {a: \"x[:, 3:40]\", b: \"x[:, 60:97]\", y: \"a * b\", s: \"sum(a * b, dim=-1)\", "
                             "z: \"y - s[:, None]\"}\noutputs: {z: bf16, s: f32}\n";
static const char causal[] = "graph: causal\ndims: {B: any, Q: any, K: any}\ninputs: {s: \"f32[B, Q, K]\"}\n"
                             "nodes: {keep: \"arange(K) <= arange(Q)[:, None] + (K - Q)\", "
                             "y: \"softmax(where(keep, s, -inf), dim=-1)\"}\noutputs: {y: f32}\n";
static const char in_place[] =
    "graph: in_place\n" ROWS "nodes: {h: x + w, y: \"h * rsqrt(mean(h * h, dim=-1, keepdim=True) + 1)\", "
    "m: \"amax(h, dim=-1)\"}\noutputs: {y: bf16, h: {dtype: bf16, inplace: x}, m: f32}\n";
/* Every phase is a loop whose kept values turn, read again and not. */
static const char costly[] =
    "graph: costly\ndims: {M: any, N: {max: 700}}\ninputs: {x: \"bf16[M, N]\", w: \"f32[N]\"}\n"
    "nodes:\n  a: exp(sin(x) * cos(w))\n  s: sum(a, dim=-1, keepdim=True)\n  b: a ** (w / s)\n"
    "  t: amax(b, dim=-1, keepdim=True)\n  y: tanh(b / t) + a * erf(x)\noutputs: {y: bf16}\n";
/* Names that C++ and kernels have for other things. */
static const char names[] = "graph: int\n"
                            "dims: {float: any, row: 40}\n"
                            "inputs: {threadIdx: \"bf16[float, row]\", c: \"f32[row]\", v: \"f32[row]\"}\n"
                            "scalars: {double: 0.5}\n"
                            "nodes:\n  return: threadIdx * c + v * double\n"
                            "  t: rms_norm(return, eps=1e-6)\n"
                            "  columns: \"t +\n    c\"\n"
                            "outputs: {columns: bf16, t: f16}\n";

static const Run runs[] = {
    {norm_any, NULL, {5, 1000}},
    {norm_any, NULL, {3, 1001}},
    {norm_any, NULL, {2, 1}},
    {norm_any, "chunks=1 row_threads=8 vector=2", {9, 100}},
    {norm_any, "row_threads=96 rows=3", {7, 776}},
    {norm_max, NULL, {4, 600}},
    {norm_max, NULL, {4, 7}},
    {norm_max, "row_threads=32 rows=3", {7, 599}},
    {norm_760, "row_threads=4", {65, 0}},
    {norm_760, "strategy=row_loop row_threads=1", {130, 0}},
    {norm_760, "row_threads=16 rows=5", {13, 0}},
    {norm_760, "row_threads=96 rows=2", {5, 0}},
    {norm_760, "row_threads=1024 vector=1", {2, 0}},
    {norm_760, "strategy=row_loop row_threads=64 chunks=2 rows=4", {6, 0}},
    {softmax_129, "row_threads=8 rows=1", {3, 0}},
    {softmax_129, "row_threads=160 rows=2", {5, 0}},
    {softmax_129, "strategy=row_loop chunks=3 row_threads=4 rows=3", {4, 0}},
    {bias_any, NULL, {3, 1}},
    {bias_any, NULL, {5, 77}},
    {bias_any, "chunks=3 threads=96", {11, 64}},
    {bias_any, "vector=1", {4, 5}},
    {group, NULL, {2, 9}},
    {group, "row_threads=32 rows=3", {3, 40}},
    {slices, NULL, {5}},
    {slices, "strategy=row_loop", {3}},
    {causal, NULL, {2, 5, 9}},
    {causal, NULL, {1, 8, 8}},
    {in_place, NULL, {3, 33}},
    {in_place, "row_threads=128 rows=2", {5, 130}},
    {names, NULL, {6}},
    {costly, NULL, {3, 700}},
    {costly, NULL, {3, 513}},
    {costly, "vector=1 row_threads=32", {2, 700}},
    {costly, "vector=2 row_threads=64 chunks=7 rows=2", {3, 698}},
};
#define RUN_COUNT (sizeof runs / sizeof *runs)

/* Fresh data, outputs filled with NaN, checked by the oracle. An output in place shares its input's memory. */
static void run_checked(Job *job, const Run *run, RtProgram *program, Random *random) {
    const Graph *graph = program->graph;
    int64_t *dims = ir_graph_fixed(job, graph);
    for (uint32_t i = 0; i < program->any_count; i++) dims[program->any[i]] = run->dims[i];
    void **tensors = IR_NEW_ARRAY(job, void *, program->tensor_count);
    for (uint32_t i = 0; i < program->tensor_count; i++) {
        const Tensor *tensor = program->tensors[i].tensor;
        int64_t span = tensor_span(job, tensor, dims, graph->dims.count);
        size_t bytes = (size_t)span * (size_t)program->tensors[i].element_bytes;
        if (program->tensors[i].inplace != IR_NONE) {
            tensors[i] = tensors[program->tensors[i].inplace];
            continue;
        }
        tensors[i] = ir_alloc(job, bytes + 16);
        memset(tensors[i], 0xff, bytes);
        if (i < program->input_count) random_fill(random, tensor->dtype, tensors[i], span, INT64_MAX);
    }
    ng_args args = {.size = sizeof args, .tensors = tensors, .dims = run->dims};
    ng_report report = {.size = sizeof report};
    Status status = rt_program_run(program, NULL, &args, true, 0, &report);
    if (status != STATUS_OK)
        fail_msg("%s with %s: %s", graph->name, run->sets ? run->sets : "defaults",
                 report.why.bytes ? report.why.bytes : "failed");
    ng_text_free(&report.why);
}

static void test_runs(void **state) {
    Job *job = *state;
    Random random = {random_seed()};
    Unit *units = IR_NEW_ARRAY(job, Unit, RUN_COUNT);
    const Source *sources[RUN_COUNT];
    RtProgram *programs[RUN_COUNT];
    for (size_t i = 0; i < RUN_COUNT; i++) {
        must(job, generate_text(job, &units[i], runs[i].graph, NULL, runs[i].sets));
        sources[i] = &units[i].source;
        programs[i] = rt_program_create(job, &units[i]);
    }
    Text why = ir_text(job);
    RtDevice *device;
    RtModule *modules[RUN_COUNT];
    RtHostOptions options = {.order = RT_ORDER_SEEDED, .seed = 7};
    if (rt_host_open(90, &options, &device, &why) != STATUS_OK) fail_msg("%s", ir_text_string(&why));
    if (device->ops->build(device, sources, RUN_COUNT, modules, &why) != STATUS_OK)
        fail_msg("%s", ir_text_string(&why));
    for (size_t i = 0; i < RUN_COUNT; i++) {
        if (rt_program_load(programs[i], device, modules[i], &why) != STATUS_OK) fail_msg("%s", ir_text_string(&why));
        run_checked(job, &runs[i], programs[i], &random);
    }
    for (size_t i = 0; i < RUN_COUNT; i++) device->ops->module_free(device, modules[i]);
    device->ops->close(device);
    printf("# %d forced tiles and awkward shapes agree with the oracle\n", (int)RUN_COUNT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(test_texts), TEST(test_helpers), TEST(test_turns), TEST(test_checks_once),
                                       TEST(test_fast),  TEST(test_goldens), TEST(test_runs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
