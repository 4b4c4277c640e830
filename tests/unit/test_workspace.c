/* Where values lie between kernels: no two that live at once share a byte, rooms are large enough and aligned, bytes
 * never grow when a dim shrinks; the library and the emitted launcher agree on bytes, places, grids and every argument.
 * Long graphs are generated in time, their bufs take few places. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gen/workspace.h"
#include "runtime/launch.h"
#include "tests/support/generate.h"
#include "tests/support/launcher_text.h"
#include "tests/support/many_kernels.h"
#include "tests/support/random_graph.h"

enum { SMS = 132 };

static const char *const graphs[][2] = {
    {"graph: planes\ndims: {B: any, M: any, N: 96}\ninputs: {x: \"f32[B, M, N]\", w: \"f32[N]\"}\nnodes:\n"
     "  y: rms_norm(x, w, 1e-5)\n  m: mean(y, dim=[-1, -2], keepdim=True)\n  z: y - m\noutputs: {z: f32}\n",
     NULL},
    {"graph: parts\ndims: {M: any, N: any}\ninputs: {x: \"bf16[M, N]\"}\nnodes:\n"
     "  m: mean(x, dim=0)\n  y: x - m\n  s: sum(y, dim=1)\noutputs: {y: bf16, s: f32, m: f32}\n",
     "split=all"},
    {"graph: norm\ndims: {M: any, N: 97}\ninputs: {x: \"bf16[M, N]\", r: \"bf16[M, N]\", w: \"f32[N]\"}\n"
     "scalars: {eps: 1e-5}\nnodes:\n  h: x + r\n  y: layer_norm(h, w, None, eps)\n"
     "outputs: {y: bf16, h: {dtype: bf16, inplace: r}}\n",
     "fuse=off"},
    {"graph: planes_in_parts\ndims: {B: any, S: any, N: 1152}\ninputs: {x: \"bf16[B, S, N]\"}\nnodes:\n"
     "  s: sum(x, dim=1)\n  a: amax(abs(x), dim=1)\noutputs: {s: f32, a: f32}\n",
     "fuse=off split=all"},
    {"graph: rows\ndims: {B: any, M: any}\ninputs: {x: \"f32[B, M]\"}\nnodes:\n  s: sum(x, dim=-1)\n  a: amax(s)\n"
     "  y: softmax(x, dim=0) * a\noutputs: {y: f32}\n",
     NULL},
    {"graph: shorter\ndims: {T: any, K: any}\ninputs: {x: \"f32[T, K]\"}\nnodes:\n  a: x[1:, :]\n"
     "  s: sum(a, dim=0)\n  y: a - s\n  z: softmax(y, dim=-1)\noutputs: {z: f32}\n",
     "fuse=off split=all"},
};
enum { GRAPHS = sizeof graphs / sizeof *graphs };

static void must(Job *job, Status status) {
    if (status) fail_msg("%s", ir_job_report(job));
}

/* ---- layout ---- */

typedef struct Span {
    uint32_t first, last; /* steps */
    int64_t start, stop;  /* bytes */
} Span;

/* What a buf takes, by what is known of it alone. */
static Span buf_span(const Unit *unit, uint32_t buf, const int64_t *dims, const int64_t *parts, const int64_t *places) {
    const Prog *prog = unit->prog;
    Span span = {.first = UINT32_MAX};
    for (uint32_t s = 0; s < unit->plan->steps.count; s++) {
        const Nest *nest = &prog->nests.at[unit->plan->steps.at[s].nest];
        for (uint32_t i = 0; i < nest->accesses.count; i++) {
            if (nest->accesses.at[i].buf != buf) continue;
            if (span.first == UINT32_MAX) span.first = s;
            span.last = s;
        }
    }
    int64_t bytes = ir_dtype(prog->bufs.at[buf].dtype)->bytes;
    Job *job = ir_job_create(NULL);
    for (uint32_t d = 0; d < prog->bufs.at[buf].rank; d++) {
        int64_t extent;
        Poly poly = ir_size_poly(job, prog, prog->bufs.at[buf].extent[d]);
        assert_true(ir_poly_eval(poly, dims, prog->dims.count, parts, prog->parts.count, &extent));
        bytes *= extent > 0 ? extent : 0;
    }
    ir_job_free(job);
    span.start = places[unit->plan->room_of[buf]];
    span.stop = span.start + bytes;
    return span;
}

static int64_t *places_of(Job *job, const Unit *unit, const int64_t *dims, int64_t *parts) {
    const Prog *prog = unit->prog;
    int64_t *places = IR_NEW_ARRAY(job, int64_t, unit->plan->rooms.count + (size_t)1);
    int64_t *most = IR_NEW_ARRAY(job, int64_t, prog->parts.count + (size_t)1);
    assert_true(gen_eval_parts(unit->plan, prog->parts.count, dims, prog->dims.count, SMS, true, most));
    assert_true(gen_eval_parts(unit->plan, prog->parts.count, dims, prog->dims.count, SMS, false, parts));
    for (uint32_t k = 0; k < prog->parts.count; k++) assert_true(parts[k] <= most[k]);
    assert_true(gen_eval_rooms(unit->plan, dims, prog->dims.count, most, prog->parts.count, SMS, places));
    return places;
}

/* Pairs of bufs that share bytes at different times. */
static uint32_t check_layout(Job *job, const Unit *unit, const int64_t *dims) {
    const Prog *prog = unit->prog;
    uint32_t shared = 0, count = 0;
    int64_t *parts = IR_NEW_ARRAY(job, int64_t, prog->parts.count + (size_t)1);
    const int64_t *places = places_of(job, unit, dims, parts);
    Span *spans = IR_NEW_ARRAY(job, Span, prog->bufs.count + (size_t)1);
    for (uint32_t b = 0; b < prog->bufs.count; b++) {
        BufKind kind = prog->bufs.at[b].kind;
        assert_int_equal(unit->plan->room_of[b] != IR_NONE, kind == BUF_TMP || kind == BUF_WORKSPACE);
        if (unit->plan->room_of[b] == IR_NONE) continue;
        spans[count] = buf_span(unit, b, dims, parts, places);
        assert_int_equal(spans[count].start % 256, 0);
        assert_true(spans[count].stop <= places[unit->plan->rooms.count]);
        for (uint32_t k = 0; k < count; k++) {
            bool together = spans[k].first <= spans[count].last && spans[count].first <= spans[k].last;
            bool touch = spans[k].start < spans[count].stop && spans[count].start < spans[k].stop;
            assert_false(together && touch);
            shared += touch;
        }
        count++;
    }
    return shared;
}

/* Bytes for dims and for smaller ones. */
static void check_monotone(Job *job, const Unit *unit, Random *random, int64_t most) {
    int64_t dims[16], smaller[16], parts[64];
    assert_true(unit->prog->dims.count <= 16 && unit->prog->parts.count <= 64);
    for (uint32_t d = 0; d < unit->prog->dims.count; d++) {
        dims[d] = random_below(random, (uint32_t)most);
        smaller[d] = random_below(random, 3) ? dims[d] : random_below(random, (uint32_t)dims[d] + 1);
    }
    const uint32_t rooms = unit->plan->rooms.count;
    assert_true(places_of(job, unit, smaller, parts)[rooms] <= places_of(job, unit, dims, parts)[rooms]);
}

/* Whether the bytes of all dims of this size stay below 2^62. */
static bool fits(Job *job, const Unit *unit, uint32_t size) {
    const Prog *prog = unit->prog;
    int64_t dims[16], *most = IR_NEW_ARRAY(job, int64_t, prog->parts.count + (size_t)1);
    int64_t *places = IR_NEW_ARRAY(job, int64_t, unit->plan->rooms.count + (size_t)1);
    for (uint32_t d = 0; d < prog->dims.count; d++) dims[d] = size;
    return gen_eval_parts(unit->plan, prog->parts.count, dims, prog->dims.count, SMS, true, most) &&
           gen_eval_rooms(unit->plan, dims, prog->dims.count, most, prog->parts.count, SMS, places);
}

static uint32_t check_unit(Job *job, const Unit *unit, Random *random) {
    uint32_t shared = 0, most = 3000;
    assert_true(unit->prog->dims.count <= 16);
    while (most > 30 && !fits(job, unit, most)) most /= 2;
    for (uint32_t turn = 0; turn < 6; turn++) {
        int64_t dims[16];
        for (uint32_t d = 0; d < unit->prog->dims.count; d++) dims[d] = turn ? random_below(random, most) : 0;
        shared += check_layout(job, unit, dims);
        check_monotone(job, unit, random, most);
    }
    return shared;
}

static void test_layout(void **state) {
    (void)state;
    Random random = {random_seed()};
    uint32_t shared = 0, stored = 0, rooms = 0;
    for (uint32_t i = 0; i < GRAPHS + 300; i++) {
        Job *job = ir_job_create(NULL);
        Unit unit;
        const char *text, *sets;
        if (i < GRAPHS) {
            text = graphs[i][0], sets = graphs[i][1];
        } else {
            RandomGraph made = random_graph(job, random_bits(&random), 0);
            text = ir_copy_text(job, made.text, made.count), sets = i % 3 ? "fuse=off" : "cut_statements=12";
        }
        Status status = generate_text(job, &unit, text, NULL, sets);
        if (i < GRAPHS) must(job, status);
        if (!status) {
            shared += check_unit(job, &unit, &random);
            rooms += unit.plan->rooms.count;
            for (uint32_t b = 0; b < unit.prog->bufs.count; b++) stored += unit.plan->room_of[b] != IR_NONE;
        }
        ir_job_free(job);
    }
    printf("# %u bufs in %u places; %u times two shared bytes\n", stored, rooms, shared);
    assert_true(shared > 0 && stored > rooms);
}

/* Many columns leave room for few parts: the bytes are for what the SMs work on at once, not for the most parts of the
 * most columns. */
static void test_tight(void **state) {
    (void)state;
    Job *job = ir_job_create(NULL);
    Unit unit;
    must(job, generate_text(job, &unit, graphs[3][0], NULL, graphs[3][1]));
    int64_t parts[64];
    for (int64_t beside = 1; beside < 1 << 20; beside *= 3) {
        const int64_t dims[] = {beside, 4096};
        const int64_t one = 4 * beside * 1152, full = 4 * SMS * 8 * 1024; /* of 8 CTAs an SM of 1024 columns */
        const int64_t each = one > full ? one : full,
                      bytes = places_of(job, &unit, dims, parts)[unit.plan->rooms.count];
        assert_true(bytes <= 2 * (each + 255));
        assert_true(bytes >= one);
    }
    ir_job_free(job);
}

/* ---- the launcher ---- */

typedef struct Calls {
    LauncherCall at[64];
    uint32_t count;
    const Plan *plan; /* of the library's */
} Calls;

static void record(void *state, const LauncherCall *call) {
    Calls *calls = state;
    assert_true(calls->count < 64);
    calls->at[calls->count++] = *call;
}

struct RtKernel {
    char name[128];
};

typedef struct Recorder {
    RtDevice device; /* first */
    RtKernel kernels[64];
    uint32_t kernel_count;
    Calls calls;
} Recorder;

static Status record_kernel(RtDevice *device, RtModule *module, const char *name, uint32_t shared_bytes,
                            RtKernel **kernel, Text *why) {
    Recorder *recorder = (Recorder *)device;
    (void)module, (void)shared_bytes, (void)why;
    *kernel = &recorder->kernels[recorder->kernel_count++];
    (void)snprintf((*kernel)->name, sizeof(*kernel)->name, "%s", name);
    return STATUS_OK;
}

static Status record_facts(RtDevice *device, const RtKernel *kernel, RtFacts *facts, Text *why) {
    (void)device, (void)kernel, (void)why;
    *facts = (RtFacts){.max_threads = 1024};
    return STATUS_OK;
}

static const Step *step_of(const Plan *plan, const char *kernel) {
    for (uint32_t s = 0; s < plan->steps.count; s++)
        for (uint32_t v = 0; v < plan->steps.at[s].variant_count; v++)
            if (!strcmp(plan->steps.at[s].variants[v].kernel, kernel)) return &plan->steps.at[s];
    return NULL;
}

static Status record_launch(RtDevice *device, const RtLaunch *launch, Text *why) {
    Recorder *recorder = (Recorder *)device;
    const Step *step = step_of(recorder->calls.plan, launch->kernel->name);
    LauncherCall call = {.kernel = launch->kernel->name,
                         .blocks = launch->blocks,
                         .threads = launch->threads,
                         .shared = launch->shared_bytes};
    (void)why;
    assert_non_null(step);
    assert_true(step->param_count <= LAUNCHER_PARAMS);
    call.param_count = step->param_count;
    for (uint32_t p = 0; p < step->param_count; p++) memcpy(&call.params[p], launch->params[p], sizeof call.params[p]);
    record(&recorder->calls, &call);
    return STATUS_OK;
}

static const RtDeviceOps record_ops = {
    .name = "recorder", .kernel = record_kernel, .facts = record_facts, .launch = record_launch};

static void assert_same_calls(const Calls *a, const Calls *b) {
    assert_int_equal(a->count, b->count);
    for (uint32_t i = 0; i < a->count; i++) {
        assert_string_equal(a->at[i].kernel, b->at[i].kernel);
        assert_int_equal(a->at[i].blocks, b->at[i].blocks);
        assert_int_equal(a->at[i].threads, b->at[i].threads);
        assert_int_equal(a->at[i].shared, b->at[i].shared);
        assert_int_equal(a->at[i].param_count, b->at[i].param_count);
        for (uint32_t p = 0; p < a->at[i].param_count; p++) assert_int_equal(a->at[i].params[p], b->at[i].params[p]);
    }
}

/* Both launch with pointers that nothing reads; how many launches there were. */
static uint32_t compare_launches(Job *job, const Launchers *launchers, uint32_t index, const Unit *unit,
                                 const int64_t *dims) {
    Recorder *recorder = IR_NEW(job, Recorder);
    recorder->device.ops = &record_ops;
    recorder->calls.plan = unit->plan;
    RtProgram *program = rt_program_create(job, unit);
    Text why = ir_text(job);
    assert_int_equal(rt_program_load(program, &recorder->device, NULL, &why), STATUS_OK);
    int64_t *words = IR_NEW_ARRAY(job, int64_t, program->scratch_words + (size_t)1);
    RtScratch scratch;
    if (rt_program_sizes(program, dims, words, &scratch, &why)) fail_msg("%s", ir_text_string(&why));
    const size_t bytes = (size_t)scratch.workspace_bytes;
    assert_int_equal(launcher_workspace(launchers, index, dims), bytes);
    void *tensors[8];
    assert_true(program->tensor_count <= 8);
    for (uint32_t t = 0; t < program->tensor_count; t++)
        tensors[t] = (void *)(uintptr_t)((uint64_t)(t + 1) << 40 | t % 2 << 3);
    void *workspace = (void *)(uintptr_t)((uint64_t)1 << 44);
    const ng_scalar eps = {.f32 = 0.25f};
    const ng_args args = {.size = sizeof args,
                          .tensors = tensors,
                          .dims = dims,
                          .scalars = &eps,
                          .workspace = workspace,
                          .workspace_bytes = bytes};
    Status status = rt_program_launch(program, &args, words, &why, NULL, NULL);
    if (status) fail_msg("%s", ir_text_string(&why));
    Calls *calls = IR_NEW(job, Calls);
    *launchers->state = calls;
    *launchers->record = record;
    assert_int_equal(launcher_launch(launchers, index, tensors, dims, &eps, workspace, bytes), 0);
    assert_same_calls(&recorder->calls, calls);
    if (bytes) { /* one byte less, none, and off the alignment are refused before anything is launched */
        calls->count = 0;
        assert_int_not_equal(launcher_launch(launchers, index, tensors, dims, &eps, workspace, bytes - 1), 0);
        assert_int_not_equal(launcher_launch(launchers, index, tensors, dims, &eps, NULL, bytes), 0);
        assert_int_not_equal(launcher_launch(launchers, index, tensors, dims, &eps, (char *)workspace + 128, bytes), 0);
        assert_int_equal(calls->count, 0);
    }
    return recorder->calls.count;
}

static void test_launcher(void **state) {
    (void)state;
    static const int64_t dims[][2] = {{1, 1}, {3, 7}, {64, 1}, {2, 33}, {1000, 130}, {5000, 4096}};
    Job *job = ir_job_create(NULL);
    Unit units[GRAPHS];
    for (uint32_t i = 0; i < GRAPHS; i++) must(job, generate_text(job, &units[i], graphs[i][0], NULL, graphs[i][1]));
    Launchers launchers = launchers_open(job, units, GRAPHS, SMS);
    uint32_t launches = 0, with_workspace = 0;
    for (uint32_t i = 0; i < GRAPHS; i++) {
        with_workspace += units[i].plan->rooms.count > 0;
        for (uint32_t d = 0; d < sizeof dims / sizeof *dims; d++)
            launches += compare_launches(job, &launchers, i, &units[i], dims[d]);
    }
    launchers_close(&launchers);
    ir_job_free(job);
    printf("# %u launches the same in the library and in the launcher\n", launches);
    assert_int_equal(with_workspace, GRAPHS);
}

/* ---- long graphs ---- */

static double seconds_now(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double generate_in_time(Job *job, Unit *unit, const char *text, const char *what) {
    const double start = seconds_now();
    must(job, generate_text(job, unit, text, NULL, NULL));
    const double seconds = seconds_now() - start;
    printf("# %s: %u kernels, %d ms of generator time\n", what, unit->plan->steps.count, (int)(seconds * 1e3));
    if (!getenv("NORMGEN_TEST_REDUCED")) assert_true(seconds < 1);
    return seconds;
}

static const char *chained_softmaxes(Job *job, uint32_t count) {
    Text text = ir_text(job);
    ir_text_put(&text, "graph: chain\ndims: {M: any, N: 1024}\ninputs: {s0: \"f32[M, N]\"}\nnodes:\n");
    for (uint32_t i = 0; i < count; i++) ir_text_format(&text, "  s%u: softmax(s%u, dim=-1)\n", i + 1, i);
    ir_text_format(&text, "outputs: {s%u: f32}\n", count);
    return ir_text_string(&text);
}

typedef struct Lowered {
    uint32_t nests, statements, longest;
} Lowered;

static void count_lowered(void *state, Job *job, const Unit *unit, uint32_t pass) {
    Lowered *lowered = state;
    (void)job;
    if (strcmp(gen_passes[pass].name, "lower") != 0) return;
    lowered->nests = unit->prog->nests.count;
    for (uint32_t n = 0; n < unit->prog->nests.count; n++) {
        const uint32_t count = unit->prog->nests.at[n].stmts.count;
        lowered->statements += count;
        if (count > lowered->longest) lowered->longest = count;
    }
}

typedef struct Chain300 {
    Unit unit;
    const char *text;
    Lowered lowered;
} Chain300;

static void generate_chain(Job *job, void *state) {
    Chain300 *chain = state;
    const GenOptions options = {.target = gen_target(90), .after = count_lowered, .after_state = &chain->lowered};
    gen_run(job, &chain->unit, "chain.yaml", chain->text, strlen(chain->text), &options, gen_pass_count - 1);
}

/* 600 reductions one after the other: what is inline in a nest has an end, so the work grows as the chain does. */
static void test_chain(void **state) {
    (void)state;
    Job *job = ir_job_create(NULL);
    Chain300 *chain = IR_NEW(job, Chain300);
    chain->text = chained_softmaxes(job, 300);
    const double start = seconds_now();
    must(job, ir_job_run(job, generate_chain, chain));
    const double seconds = seconds_now() - start;
    const Lowered *lowered = &chain->lowered;
    printf("# 300 softmaxes: %u nests of %u statements lowered, %u kernels, %d ms of generator time\n", lowered->nests,
           lowered->statements, chain->unit.plan->steps.count, (int)(seconds * 1e3));
    assert_true(lowered->longest <= 256 + 8); /* the reduction and what it stores come on top */
    assert_true(lowered->statements <= lowered->nests * 256);
    assert_in_range(lowered->nests, 601, 620);
    assert_in_range(chain->unit.plan->steps.count, 7, 9); /* 1500 values, at most 256 statements each */
    for (uint32_t n = 0; n < chain->unit.prog->nests.count; n++) {
        const Nest *nest = &chain->unit.prog->nests.at[n];
        uint32_t computed = 0; /* stores to tmps do not count */
        for (uint32_t i = 0; i < nest->stmts.count; i++) computed += nest->stmts.at[i].op != OP_STORE;
        assert_true(computed <= 256);
    }
    if (!getenv("NORMGEN_TEST_REDUCED")) assert_true(seconds < 1);
    ir_job_free(job);
}

static void test_long(void **state) {
    (void)state;
    Job *job = ir_job_create(NULL);
    Unit unit;
    generate_in_time(job, &unit, many_nodes(job, 300, 30), "300 nodes, 10 of them means");
    assert_int_equal(unit.plan->steps.count, 2);
    const double nodes = generate_in_time(job, &unit, many_nodes(job, 300, 0), "300 nodes");
    assert_int_equal(unit.plan->steps.count, 2);
    generate_in_time(job, &unit, many_nodes(job, 3000, 0), "3000 nodes");
    const double kernels = generate_in_time(job, &unit, many_kernels(job, 39), "39 means one after the other");
    assert_int_equal(unit.plan->steps.count, 40);
    if (!getenv("NORMGEN_TEST_REDUCED")) assert_true(nodes + kernels < 1);
    const int64_t dims[2] = {64, 128};
    int64_t parts[1] = {0};
    const int64_t whole = dims[0] * dims[1] * 32 * 4, peak = places_of(job, &unit, dims, parts)[unit.plan->rooms.count];
    int64_t all = 0;
    for (uint32_t b = 0; b < unit.prog->bufs.count; b++) {
        const int64_t places[64] = {0};
        if (unit.plan->room_of[b] != IR_NONE) all += buf_span(&unit, b, dims, parts, places).stop;
    }
    printf("# bufs between 40 kernels: %lld bytes, %lld at the peak\n", (long long)all, (long long)peak);
    /* at no time do more than four full values live, and what there is one of in a row */
    assert_true(peak <= 4 * whole + 40 * dims[0] * dims[1] * 4);
    assert_true(all >= 2 * peak);
    ir_job_free(job);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layout), cmocka_unit_test(test_tight),
                                       cmocka_unit_test(test_launcher), cmocka_unit_test(test_long),
                                       cmocka_unit_test(test_chain)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
