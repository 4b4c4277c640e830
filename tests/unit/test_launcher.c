/* The emitted launcher against the library where what it passes is not all that a launch asks: scalars of narrow dtypes
 * give the same numbers, whatever the caller passes; shared memory beyond what a launch has is asked for, and what no
 * CTA has is refused when the graph is compiled. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/launch_tables.h"
#include "tests/support/generate.h"
#include "tests/support/launcher_text.h"

enum { SMS = 132, MOST_TENSORS = 16 };

/* ---- calls of a launcher, made on the host device ---- */

typedef struct Player {
    const Plan *plan;
    RtDevice *device;
    RtModule *module;
    uint32_t count;
    Text why;
    Status status;
} Player;

static const Step *step_of(const Plan *plan, const char *kernel) {
    for (uint32_t s = 0; s < plan->steps.count; s++)
        for (uint32_t v = 0; v < plan->steps.at[s].variant_count; v++)
            if (!strcmp(plan->steps.at[s].variants[v].kernel, kernel)) return &plan->steps.at[s];
    return NULL;
}

static void play(void *state, const LauncherCall *call) {
    Player *player = state;
    const Step *step = step_of(player->plan, call->kernel);
    LauncherCall own = *call;
    void *params[LAUNCHER_PARAMS];
    assert_non_null(step);
    assert_int_equal(own.param_count, step->param_count);
    for (uint32_t p = 0; p < own.param_count; p++) params[p] = &own.params[p];
    RtLaunch launch = {.blocks = own.blocks,
                       .threads = own.threads,
                       .shared_bytes = own.shared,
                       .slices = step->slices,
                       .slice_count = step->slice_count,
                       .params = params};
    const RtDeviceOps *ops = player->device->ops;
    RtKernel *kernel = NULL;
    Status status = ops->kernel(player->device, player->module, own.kernel, own.shared, &kernel, &player->why);
    launch.kernel = kernel;
    if (!status) status = ops->launch(player->device, &launch, &player->why);
    if (status) player->status = status;
    player->count++;
}

static void must(Status status, Text *why) {
    if (status) fail_msg("%s", ir_text_string(why));
}

typedef struct Both { /* the library and the launcher of one graph, on the host device */
    Job *job;
    Unit unit;
    RtDevice *device;
    RtModule *module;
    RtProgram *program;
    Launchers launchers;
} Both;

static void open_both(Both *both, const char *text, const char *sets) {
    *both = (Both){.job = ir_job_create(NULL)};
    Text why = ir_text(both->job);
    if (generate_text(both->job, &both->unit, text, NULL, sets)) fail_msg("%s", ir_job_report(both->job));
    must(rt_host_open(90, NULL, &both->device, &why), &why);
    const Source *sources[] = {&both->unit.source};
    must(both->device->ops->build(both->device, sources, 1, &both->module, &why), &why);
    both->program = rt_program_create(both->job, &both->unit);
    must(rt_program_load(both->program, both->device, both->module, &why), &why);
    both->launchers = launchers_open(both->job, &both->unit, 1, SMS);
}

static void close_both(Both *both) {
    launchers_close(&both->launchers);
    both->device->ops->module_free(both->device, both->module);
    both->device->ops->close(both->device);
    ir_job_free(both->job);
}

static void launch_library(Both *both, ng_args args) {
    Text why = ir_text(both->job);
    int64_t *words = IR_NEW_ARRAY(both->job, int64_t, both->program->scratch_words + (size_t)1);
    must(rt_program_launch(both->program, &args, words, &why, NULL, NULL), &why);
}

static void launch_launcher(Both *both, ng_args args) {
    Player player = {
        .plan = both->unit.plan, .device = both->device, .module = both->module, .why = ir_text(both->job)};
    *both->launchers.state = &player;
    *both->launchers.record = play;
    assert_int_equal(launcher_launch(&both->launchers, 0, args.tensors, args.dims, args.scalars, args.workspace,
                                     args.workspace_bytes),
                     0);
    must(player.status, &player.why);
    assert_true(player.count > 0);
}

/* ---- scalars ---- */

static const char scalars_text[] =
    "graph: scalars\ndims: {M: any}\ninputs: {x: \"f64[M]\", i: \"i64[M]\", w: \"f32[M, 40]\"}\nscalars:\n"
    "  d: {dtype: f64}\n  f: {dtype: f32}\n  h: {dtype: f16}\n  b: {dtype: bf16}\n  p: {dtype: f8e4m3}\n  q: {dtype: "
    "f8e5m2}\n"
    "  l: {dtype: i64}\n  k: {dtype: i32}\n  s: {dtype: i8}\n  u: {dtype: u8}\n  t: {dtype: bool}\n"
    "nodes:\n  yd: x * d\n  yf: x * cast(f, f64)\n  yh: x * cast(h, f64)\n  yb: x * cast(b, f64)\n"
    "  yp: x * cast(p, f64)\n  yq: x * cast(q, f64)\n  yl: i * l\n  yk: i * k\n  ys: i * s\n  yu: i * u\n"
    "  yt: where(t, i, i + 5)\n  rows: sum(w * b + s, dim=1)\n  columns: sum(w * h - u, dim=0)\n"
    "outputs: {yd: f64, yf: f64, yh: f64, yb: f64, yp: f64, yq: f64, yl: i64, yk: i64, ys: i64, yu: i64, yt: i64,\n"
    "  rows: f32, columns: f32}\n";
enum { FLOATS = 6, INTEGERS = 5, ROWS = 3, COLUMNS = 40 };

static const double numbers[] = {
    0.1,
    1.0 + 1.0 / 256,
    1.0 + 3.0 / 256,
    1.0 + 1.0 / 2048,
    1.0 + 3.0 / 2048,
    -0.3,
    300.0,
    448.0,
    464.0,
    70000.0,
    65519.0,
    65520.0,
    1e-6,
    1e-8,
    6e-8,
    -0.0,
    3e38,
    1e-40,
    NAN,
    INFINITY,
};
static const int64_t integers[] = {0, 3, 127, 128, 255, 256, 300, -1, -129, 0x80000000, 0x123456789abcdef, INT64_MIN};

/* Equal, or two NaNs: what they hold beside is not a number's. */
static void assert_same(const void *a, const void *b, size_t bytes, bool wide, const char *name) {
    const size_t each = wide ? sizeof(double) : sizeof(float);
    for (size_t at = 0; at < bytes; at += each) {
        const char *left = (const char *)a + at, *right = (const char *)b + at;
        double x = 0, y = 0;
        float narrow;
        if (!memcmp(left, right, each)) continue;
        if (wide) memcpy(&x, left, each), memcpy(&y, right, each);
        if (!wide) memcpy(&narrow, left, each), x = (double)narrow, memcpy(&narrow, right, each), y = (double)narrow;
        if (!isnan(x) || !isnan(y)) fail_msg("%s: the launcher gives %g, the library %g", name, y, x);
    }
}

static void test_scalars(void **state) {
    (void)state;
    Both both;
    open_both(&both, scalars_text, NULL);
    const Graph *graph = both.unit.graph;
    assert_int_equal(graph->scalars.count, FLOATS + INTEGERS);
    const double x[ROWS] = {1, 1, -2};
    const int64_t i[ROWS] = {1, 1, 7}, dims[] = {ROWS};
    float w[ROWS * COLUMNS];
    _Alignas(256) char workspace[65536];
    for (int k = 0; k < ROWS * COLUMNS; k++) w[k] = (float)(k % 7) - 3;
    char outputs[2][MOST_TENSORS][COLUMNS * sizeof(double)];
    void *tensors[2][MOST_TENSORS] = {{(void *)x, (void *)i, w}, {(void *)x, (void *)i, w}};
    for (uint32_t o = 0; o < graph->outputs.count; o++)
        for (int side = 0; side < 2; side++) tensors[side][3 + o] = outputs[side][o];
    uint32_t rounded = 0;
    for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++) {
        ng_scalar scalars[FLOATS + INTEGERS];
        for (uint32_t s = 0; s < FLOATS + INTEGERS; s++)
            if (s >= FLOATS)
                scalars[s].i64 = integers[n % (sizeof integers / sizeof *integers)];
            else if (graph->scalars.at[s].dtype == DTYPE_F64)
                scalars[s].f64 = numbers[n];
            else
                scalars[s].f32 = (float)numbers[n];
        memset(outputs, 0xff, sizeof outputs);
        ng_args args = {.size = sizeof args,
                        .tensors = tensors[0],
                        .dims = dims,
                        .scalars = scalars,
                        .workspace = workspace,
                        .workspace_bytes = sizeof workspace};
        launch_library(&both, args);
        args.tensors = tensors[1];
        launch_launcher(&both, args);
        for (uint32_t o = 0; o < graph->outputs.count; o++) {
            const bool last = graph->outputs.at[o].dtype == DTYPE_F32;
            assert_same(outputs[0][o], outputs[1][o], sizeof outputs[0][o], !last, graph->outputs.at[o].name);
        }
        for (uint32_t s = 0; s < FLOATS; s++) { /* x[0] is 1: the scalar as it was taken */
            const double taken = rt_scalar_value(&graph->scalars.at[s], &scalars[s]).number;
            assert_same(&taken, outputs[1][s], sizeof taken, true, graph->scalars.at[s].name);
            rounded += s > 1 && !isnan(taken) && taken != (double)scalars[s].f32;
        }
        for (uint32_t s = FLOATS; s + 1 < FLOATS + INTEGERS; s++) {
            int64_t got;
            memcpy(&got, outputs[1][s], sizeof got);
            assert_int_equal(got, rt_scalar_value(&graph->scalars.at[s], &scalars[s]).integer);
        }
    }
    printf("# %u scalars were rounded\n", rounded);
    assert_true(rounded > 40);
    close_both(&both);
}

/* ---- shared memory ---- */

/* One kernel of so many sums of pairs, each of which takes 40 bytes a warp. */
static const char *variances(Job *job, uint32_t count) {
    Text text = ir_text(job);
    ir_text_format(&text, "graph: shared%u\ndims: {M: any, N: {hint: 20000}}\ninputs: {x: \"f64[M, N]\"}\nnodes:\n",
                   count);
    for (uint32_t i = 0; i < count; i++) ir_text_format(&text, "  s%u: var(x * %u.5, dim=1)\n", i, i + 2);
    ir_text_put(&text, "  y: s0");
    for (uint32_t i = 1; i < count; i++) ir_text_format(&text, " + s%u", i);
    ir_text_put(&text, "\noutputs: {y: f64}\n");
    return ir_text_string(&text);
}

#define JOINED "pair=on cut_statements=4000 fuse_statements=4000"

static void count_bytes(void *state, const LauncherCall *call) { *(unsigned *)state += call->shared; }

/* As many bytes as a launch has, more, and more than the launcher's device has, whose error it returns. */
static void test_shared(void **state) {
    (void)state;
    static const struct {
        uint32_t count;
        unsigned shared;
    } cases[] = {{1, 1280}, {38, 48640}, {39, 49920}, {45, 57600}, {60, 76800}};
    enum { CASES = sizeof cases / sizeof *cases };
    static const int64_t dims[] = {2, 5000};
    char memory[16];
    void *tensors[] = {memory, memory};
    Job *job = ir_job_create(NULL);
    Unit units[CASES];
    for (uint32_t c = 0; c < CASES; c++) {
        if (generate_text(job, &units[c], variances(job, cases[c].count), NULL, JOINED " row_threads=1024"))
            fail_msg("%s", ir_job_report(job));
        assert_int_equal(units[c].plan->steps.count, 1);
        assert_int_equal(units[c].plan->steps.at[0].shared_bytes, cases[c].shared);
    }
    Launchers launchers = launchers_open(job, units, CASES, SMS);
    for (uint32_t c = 0; c < CASES; c++) {
        unsigned launched = 0;
        *launchers.state = &launched;
        *launchers.record = count_bytes;
        const int error = launcher_launch(&launchers, c, tensors, dims, NULL, NULL, 0);
        const bool asks = strstr(units[c].source.device_text, "cudaFuncSetAttribute(") != NULL;
        const bool has = cases[c].shared <= LAUNCHER_SHARED;
        if (asks != (cases[c].shared > 49152) || !error != has || launched != (has ? cases[c].shared : 0))
            fail_msg("%u bytes: the launcher %s, launches with %u and returns %d", cases[c].shared,
                     asks ? "asks" : "does not ask", launched, error);
    }
    launchers_close(&launchers);
    ir_job_free(job);
}

/* More than a CTA of the architecture has: the knob that was forced is named. */
static void test_too_much(void **state) {
    (void)state;
    static const struct {
        int arch;
        uint32_t count;
        const char *sets, *says; /* NULL: it is planned */
    } cases[] = {
        {90, 181, "row_threads=1024", NULL}, /* 231680 of 232448 bytes */
        {90, 182, "row_threads=1024",
         "row_threads=1024 is not possible for kernel f0: its sums take 232960 bytes of shared memory; a CTA of sm_90 "
         "has at most 232448"},
        {80, 130, "row_threads=1024", NULL},
        {80, 131, "row_threads=1024", "a CTA of sm_80 has at most 166912"},
        {86, 79, "row_threads=1024", NULL},
        {86, 80, "row_threads=1024", "a CTA of sm_86 has at most 101376"},
        {90, 182, "row_threads=32", NULL},
        {86, 190, "rows=2", "rows=2 is not possible for kernel f0: its sums take "},
        {86, 190, "", "fuse_statements=4000 is not possible for kernel f0: its sums take "},
    };
    for (uint32_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        Job *job = ir_job_create(NULL);
        Unit unit;
        const char *sets = ir_format(job, JOINED "%s%s", *cases[c].sets ? " " : "", cases[c].sets);
        const Status status =
            generate_text_for(job, &unit, variances(job, cases[c].count), sets, gen_target(cases[c].arch));
        const char *report = status ? ir_job_report(job) : "";
        if (status != (cases[c].says ? STATUS_NOT_COMPILED : STATUS_OK) ||
            (cases[c].says && !strstr(report, cases[c].says)))
            fail_msg("%u sums, sm_%d, %s: status %d: %s", cases[c].count, cases[c].arch, sets, (int)status, report);
        ir_job_free(job);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scalars), cmocka_unit_test(test_shared),
                                       cmocka_unit_test(test_too_much)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
