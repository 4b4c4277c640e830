/* Measuring, on a device of this test that launches nothing: which memory each call sees, what is copied, how replays
 * are divided among programs, and what is counted of them. Numbers of sets, calls and statistics are tested alone. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/bench.h"
#include "tests/support/generate.h"
#include "tests/support/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- counted, without a device ---- */

static void test_sets(void **state) {
    (void)state;
    const uint64_t l2 = 60000000;
    static const struct {
        uint64_t bytes;
        uint32_t sets;
    } rows[] = {{180000001, 2}, {180000000, 2}, {90000001, 2}, {90000000, 3}, {60000000, 4}, {32768, 5494}, {0, 2}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint32_t sets = rt_bench_sets(rows[i].bytes, l2, RT_MOST_CALLS);
        assert_int_equal(sets, rows[i].sets);
        if (!rows[i].bytes) continue;
        assert_true(sets * rows[i].bytes > RT_COLD_L2S * l2); /* more than three L2s, and no set too many */
        assert_true(sets == 2 || (sets - 1) * rows[i].bytes <= RT_COLD_L2S * l2);
    }
    assert_int_equal(rt_bench_sets(100, l2, RT_MOST_CALLS), RT_MOST_CALLS);
    assert_int_equal(rt_bench_sets(60000000, l2, 3), 3); /* what there is room for */
    assert_int_equal(rt_bench_sets(60000000, l2, 0), 2);
    assert_int_equal(rt_bench_sets(60000000, 0, RT_MOST_CALLS), 2);
}

static void test_calls(void **state) {
    (void)state;
    assert_int_equal(rt_bench_calls(2, 0.0002, 0.005, 1000), 26); /* 12.5 turns of two sets */
    assert_int_equal(rt_bench_calls(2, 1, 0.005, 1000), 2);
    assert_int_equal(rt_bench_calls(5000, 1e-6, 0.005, 16384), 5000);
    assert_int_equal(rt_bench_calls(3, 1e-6, 0.005, 1000), 999); /* each set as often */
    assert_int_equal(rt_bench_calls(3, 0, 0.005, 10), 9);        /* too fast for the clock */
    assert_int_equal(rt_bench_calls(2000, 1e-9, 0.005, 1000), 2000);
}

static void test_statistics(void **state) {
    (void)state;
    double odd[] = {5, 1, 4, 2, 3}, even[] = {40, 10, 20, 30}, one[] = {7};
    ng_measured times = {0};
    rt_bench_statistics(odd, 5, &times);
    assert_true(times.least == 1 && times.low == 2 && times.median == 3 && times.high == 4 && times.most == 5);
    rt_bench_statistics(even, 4, &times);
    assert_true(times.least == 10 && times.low == 17.5 && times.median == 25 && times.high == 32.5 && times.most == 40);
    rt_bench_statistics(one, 1, &times);
    assert_true(times.least == 7 && times.low == 7 && times.median == 7 && times.high == 7 && times.most == 7);
    Random random = {.state = random_seed()};
    enum { COUNT = 101 };
    double many[COUNT], middle;
    for (int i = 0; i < COUNT; i++) many[i] = random_normal(&random);
    rt_bench_statistics(many, COUNT, &times);
    int below = 0;
    for (int i = 0; i < COUNT; i++) below += many[i] < times.median;
    middle = many[50];
    assert_int_equal(below, 50);
    assert_true(times.median == middle && times.low <= middle && middle <= times.high);
}

/* ---- the device ---- */

enum { ROWS = 2000, COLUMNS = 64, REPLAYS = 5, MOST_SEEN = 4000, MOST_TENSORS = 8 };

struct RtKernel {
    RtKernel *next;
    char name[];
};

struct RtModule {
    int none;
};

struct RtTape {
    uint32_t subject; /* the program's or, last, the copy's number, told by what it launched */
};

typedef struct Seen { /* a launch */
    const char *kernel;
    const void *params[MOST_TENSORS]; /* pointers of a program's buffers; the copy's: to, from */
    int64_t count;                    /* the copy's */
    bool captured;
} Seen;

typedef struct Recorder {
    RtDevice device;
    const RtProgram *programs[2];
    RtKernel *kernels;
    Seen seen[MOST_SEEN];
    uint32_t seen_count;
    bool capturing;
    int live;                 /* memories, modules, tapes */
    const double *samples[3]; /* us a call that each subject's replays take */
    uint32_t calls[3];        /* of its last tape */
} Recorder;

static Status record_build(RtDevice *device, const Source *const *sources, uint32_t count, RtModule **modules,
                           Text *why) {
    (void)sources, (void)why;
    assert_int_equal(count, 1);
    modules[0] = calloc(1, sizeof *modules[0]);
    ((Recorder *)device)->live++;
    return STATUS_OK;
}

static void record_module_free(RtDevice *device, RtModule *module) {
    free(module);
    ((Recorder *)device)->live--;
}

static Status record_kernel(RtDevice *device, RtModule *module, const char *name, uint32_t shared_bytes,
                            RtKernel **kernel, Text *why) {
    (void)module, (void)shared_bytes, (void)why;
    Recorder *recorder = (Recorder *)device;
    RtKernel *made = calloc(1, sizeof *made + strlen(name) + 1);
    memcpy(made->name, name, strlen(name));
    made->next = recorder->kernels;
    *kernel = recorder->kernels = made;
    return STATUS_OK;
}

static Status record_facts(RtDevice *device, const RtKernel *kernel, RtFacts *facts, Text *why) {
    (void)device, (void)kernel, (void)why;
    *facts = (RtFacts){.max_threads = 1024};
    return STATUS_OK;
}

static const Step *step_of(const RtProgram *program, const RtKernel *kernel) {
    for (uint32_t s = 0; s < program->unit->plan->steps.count; s++)
        for (uint32_t v = 0; v < program->unit->plan->steps.at[s].variant_count; v++)
            if (program->variants[s][v].kernel == kernel) return &program->unit->plan->steps.at[s];
    return NULL;
}

static Status record_launch(RtDevice *device, const RtLaunch *launch, Text *why) {
    Recorder *recorder = (Recorder *)device;
    (void)why;
    assert_true(recorder->seen_count < MOST_SEEN);
    Seen *seen = &recorder->seen[recorder->seen_count++];
    *seen = (Seen){.kernel = launch->kernel->name, .captured = recorder->capturing};
    uint32_t subject = 2;
    for (uint32_t p = 0; p < 2; p++) {
        const Step *step = recorder->programs[p] ? step_of(recorder->programs[p], launch->kernel) : NULL;
        if (!step) continue;
        subject = p;
        assert_true(recorder->programs[p]->unit->prog->bufs.count <= MOST_TENSORS);
        for (uint32_t i = 0; i < step->param_count; i++)
            if (step->params[i].kind == PARAM_BUF) seen->params[step->params[i].buf] = *(void **)launch->params[i];
    }
    if (subject == 2) {
        seen->params[0] = *(void **)launch->params[0], seen->params[1] = *(void **)launch->params[1];
        memcpy(&seen->count, launch->params[2], sizeof seen->count);
        assert_int_equal(launch->blocks, (seen->count + 255) / 256);
        assert_int_equal(launch->threads, 256);
    }
    return STATUS_OK;
}

static Status record_alloc(RtDevice *device, size_t bytes, void **memory, Text *why) {
    (void)why;
    if (posix_memalign(memory, 256, bytes)) return STATUS_LAUNCH;
    memset(*memory, 0xff, bytes);
    ((Recorder *)device)->live++;
    return STATUS_OK;
}

static void record_release(RtDevice *device, void *memory) {
    free(memory);
    ((Recorder *)device)->live--;
}

static Status record_copy(RtDevice *device, void *to, const void *from, size_t bytes, Text *why) {
    (void)device, (void)why;
    memcpy(to, from, bytes);
    return STATUS_OK;
}

static Status record_left(RtDevice *device, uint64_t *bytes, Text *why) {
    (void)device, (void)why;
    *bytes = (uint64_t)1 << 32;
    return STATUS_OK;
}

static Status record_synchronize(RtDevice *device, Text *why) {
    (void)device, (void)why;
    return STATUS_OK;
}

static uint32_t subject_of(const Recorder *recorder, const char *kernel) {
    for (uint32_t p = 0; p < 2; p++)
        for (uint32_t s = 0; recorder->programs[p] && s < recorder->programs[p]->unit->plan->steps.count; s++)
            for (uint32_t v = 0; v < recorder->programs[p]->unit->plan->steps.at[s].variant_count; v++)
                if (recorder->programs[p]->variants[s][v].kernel->name == kernel) return p;
    return 2;
}

static Status record_tape(RtDevice *device, RtEnqueue enqueue, void *state, RtTape **tape, Text *why) {
    Recorder *recorder = (Recorder *)device;
    (void)why;
    const uint32_t before = recorder->seen_count;
    recorder->capturing = true;
    const Status status = enqueue(state, (void *)0x5);
    recorder->capturing = false;
    *tape = calloc(1, sizeof **tape);
    recorder->live++;
    const uint32_t subject = (*tape)->subject = subject_of(recorder, recorder->seen[before].kernel);
    const uint32_t launches = recorder->seen_count - before;
    const uint32_t steps = subject < 2 ? recorder->programs[subject]->unit->plan->steps.count : 1;
    assert_int_equal(launches % steps, 0);
    recorder->calls[subject] = launches / steps;
    return status;
}

static void record_tape_free(RtDevice *device, RtTape *tape) {
    if (tape) ((Recorder *)device)->live--;
    free(tape);
}

/* The last REPLAYS rounds are those that count: what comes before takes an hour. */
static Status record_play(RtDevice *device, RtTape *const *tapes, uint32_t count, double *seconds, Text *why) {
    Recorder *recorder = (Recorder *)device;
    (void)why;
    uint32_t times[3] = {0}, all[3] = {0};
    for (uint32_t i = 0; i < count; i++) all[tapes[i]->subject]++;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t s = tapes[i]->subject, at = times[s]++;
        const bool counts = at + REPLAYS >= all[s] && all[s] > 2;
        seconds[i] = counts        ? recorder->samples[s][at + REPLAYS - all[s]] * 1e-6 * recorder->calls[s]
                     : all[s] == 2 ? 0.0005 * recorder->calls[s]
                                   : 3600;
        if (i && count > 2) assert_true(tapes[i]->subject != tapes[i - 1]->subject); /* by turns */
    }
    return STATUS_OK;
}

static const RtDeviceOps record_ops = {.name = "recorder",
                                       .copy_text = "the copy",
                                       .build = record_build,
                                       .module_free = record_module_free,
                                       .kernel = record_kernel,
                                       .facts = record_facts,
                                       .launch = record_launch,
                                       .alloc = record_alloc,
                                       .release = record_release,
                                       .copy_in = record_copy,
                                       .copy_out = record_copy,
                                       .copy_within = record_copy,
                                       .memory_left = record_left,
                                       .synchronize = record_synchronize,
                                       .record = record_tape,
                                       .tape_free = record_tape_free,
                                       .play = record_play};

/* ---- programs ---- */

/* h may be x, s is added to, y is neither; s goes through a workspace unless nothing is split. */
static const char text[] = "graph: measured\n"
                           "dims: {M: any, N: 64}\n"
                           "inputs: {x: \"f32[M, N]\", r: \"bf16[M, N]\", w: \"f32[N]\"}\n"
                           "nodes: {h: x + w, y: r * 2, s: \"sum(r, dim=0)\"}\n"
                           "outputs: {h: {dtype: f32, inplace: x}, y: bf16, s: {dtype: f32, accumulate: true}}\n";
enum { X, R, W, H, Y, S, TENSORS };

typedef struct Fixture {
    Job *job;
    Recorder recorder;
    Unit units[2];
    Text why;
    void *memory[TENSORS], *tensors[TENSORS];
    size_t bytes[TENSORS];
    int64_t rows;
    ng_args args;
} Fixture;

static void make_program(Fixture *fixture, uint32_t index, const char *sets) {
    RtDevice *device = &fixture->recorder.device;
    assert_int_equal(generate_text_for(fixture->job, &fixture->units[index], text, sets, &device->target), STATUS_OK);
    RtProgram *program = rt_program_create(fixture->job, &fixture->units[index]);
    assert_int_equal(rt_program_load(program, device, NULL, &fixture->why), STATUS_OK);
    fixture->recorder.programs[index] = program;
}

static int setup(void **state) {
    Job *job = ir_job_create(NULL);
    Fixture *fixture = IR_NEW(job, Fixture);
    Random random = {.state = random_seed()};
    fixture->job = job;
    fixture->why = ir_text(job);
    fixture->recorder.device = (RtDevice){.ops = &record_ops, .target = *gen_target(90)};
    fixture->recorder.device.target.l2_bytes = 4 << 20;
    make_program(fixture, 0, NULL);
    make_program(fixture, 1, "split=off");
    const size_t full = ROWS * COLUMNS;
    const size_t bytes[TENSORS] = {full * 4, full * 2, COLUMNS * 4, full * 4, full * 2, COLUMNS * 4};
    for (int t = 0; t < TENSORS; t++) {
        fixture->bytes[t] = bytes[t];
        assert_int_equal(posix_memalign(&fixture->memory[t], 256, bytes[t] + 256), 0);
        fixture->tensors[t] = (char *)fixture->memory[t] + 16 * (t + 1); /* at a distance from the boundary */
        for (size_t i = 0; i < bytes[t]; i++) ((char *)fixture->tensors[t])[i] = (char)random_bits(&random);
    }
    fixture->tensors[H] = fixture->tensors[X];
    fixture->tensors[Y] = NULL;
    fixture->rows = ROWS;
    fixture->args = (ng_args){.size = sizeof fixture->args, .tensors = fixture->tensors, .dims = &fixture->rows};
    *state = fixture;
    return 0;
}

static int teardown(void **state) {
    Fixture *fixture = *state;
    while (fixture->recorder.kernels) {
        RtKernel *next = fixture->recorder.kernels->next;
        free(fixture->recorder.kernels);
        fixture->recorder.kernels = next;
    }
    for (int t = 0; t < TENSORS; t++) free(fixture->memory[t]);
    ir_job_free(fixture->job);
    return 0;
}

static void *system_alloc(void *state, size_t bytes) {
    (void)state;
    return malloc(bytes);
}

static void system_release(void *state, void *memory) {
    (void)state;
    free(memory);
}

static const Allocator allocator = {system_alloc, system_release, NULL};

/* The buffer of that name; its pointers are in the same place of every Seen. */
static uint32_t buf_of(const RtProgram *program, const char *name) {
    const Prog *prog = program->unit->prog;
    for (uint32_t b = 0; b < prog->bufs.count; b++)
        if (!strcmp(prog->bufs.at[b].name, name)) return b;
    fail_msg("no buffer %s", name);
    return 0;
}

/* Different pointers that captured launches of a subject got for a buffer, in turn. */
static uint32_t count_sets(const Recorder *recorder, uint32_t subject, uint32_t buf) {
    const void *first = NULL, *last = NULL;
    uint32_t sets = 0, turns = 0;
    for (uint32_t i = 0; i < recorder->seen_count; i++) {
        const Seen *seen = &recorder->seen[i];
        if (!seen->captured || subject_of(recorder, seen->kernel) != subject || !seen->params[buf]) continue;
        if (!first) first = seen->params[buf];
        if (seen->params[buf] == last) continue; /* another kernel of the same call */
        if (last && seen->params[buf] == first) turns++;
        sets += !turns;
        last = seen->params[buf];
    }
    return sets;
}

static void check_tensors(const Fixture *fixture, const Seen *seen, uint32_t subject) {
    static const char *const names[] = {"x", "r", "w", NULL, NULL, "s"};
    const RtProgram *program = fixture->recorder.programs[subject];
    for (int t = 0; t < TENSORS; t++) {
        if (!names[t]) continue;
        const void *pointer = seen->params[buf_of(program, names[t])];
        if (!pointer) continue; /* not in this kernel */
        assert_memory_equal(pointer, fixture->tensors[t], fixture->bytes[t]);
        assert_int_equal((uintptr_t)pointer % 256, (uintptr_t)fixture->tensors[t] % 256);
    }
    const void *x = seen->params[buf_of(program, "x")], *h = seen->params[buf_of(program, "h")];
    const void *y = seen->params[buf_of(program, "y")], *r = seen->params[buf_of(program, "r")];
    if (h) assert_ptr_equal(h, x);
    if (y) assert_ptr_not_equal(y, r);
}

static void test_memory(void **state) {
    Fixture *fixture = *state;
    Recorder *recorder = &fixture->recorder;
    static const double first[] = {5, 1, 4, 2, 3}, second[] = {20, 60, 40, 50, 30}, copied[] = {2, 2, 2, 2, 9};
    recorder->samples[0] = first, recorder->samples[1] = second, recorder->samples[2] = copied;
    RtBench *bench = NULL;
    ng_text why = {NULL, 0};
    const RtBenchOptions options = {.replays = REPLAYS};
    ng_measured times[2], copy;
    assert_int_equal(rt_bench_open(&allocator, recorder->programs[0], &fixture->args, &options, &bench, &why),
                     STATUS_OK);
    const RtBenchFacts facts = rt_bench_facts(bench);
    assert_int_equal(rt_bench_time(bench, recorder->programs, 2, times, &copy, &why), STATUS_OK);
    const uint64_t bytes =
        fixture->bytes[X] + fixture->bytes[R] + fixture->bytes[W] + fixture->bytes[Y] + fixture->bytes[S];
    const uint64_t moved = bytes + fixture->bytes[X] + fixture->bytes[S]; /* written in place, read and written */
    assert_int_equal(facts.set_bytes, bytes);
    assert_int_equal(facts.ideal_bytes, moved);
    assert_int_equal(facts.sets, 3 * (4u << 20) / bytes + 1);
    assert_true(facts.cold && facts.real);
    uint32_t plain = 0, workspaces = 0;
    for (uint32_t i = 0; i < recorder->seen_count; i++) {
        const Seen *seen = &recorder->seen[i];
        const uint32_t subject = subject_of(recorder, seen->kernel);
        plain += !seen->captured;
        if (subject < 2) check_tensors(fixture, seen, subject);
        if (subject == 2) assert_int_equal(seen->count, (moved / 2 + 15) / 16);
        if (subject == 2)
            assert_int_equal((const char *)seen->params[0] - (const char *)seen->params[1],
                             (seen->count * 16 + 255) / 256 * 256);
        if (!subject) workspaces += seen->params[buf_of(recorder->programs[0], "ws0")] != NULL;
    }
    assert_true(plain > 0 && workspaces > 0);
    assert_int_equal(count_sets(recorder, 0, buf_of(recorder->programs[0], "r")), facts.sets);
    assert_int_equal(count_sets(recorder, 0, buf_of(recorder->programs[0], "y")), facts.sets);
    assert_int_equal(count_sets(recorder, 0, buf_of(recorder->programs[0], "ws0")), facts.sets);
    assert_int_equal(count_sets(recorder, 1, buf_of(recorder->programs[1], "x")), facts.sets);
    assert_int_equal(count_sets(recorder, 2, 0), 3 * (4u << 20) / moved + 1);
    assert_int_equal(count_sets(recorder, 2, 1), 3 * (4u << 20) / moved + 1);

    assert_true(fabs(times[0].median - 3) < 1e-9 && fabs(times[0].low - 2) < 1e-9 && fabs(times[0].most - 5) < 1e-9);
    assert_true(fabs(times[1].median - 40) < 1e-9 && fabs(times[1].least - 20) < 1e-9);
    assert_true(fabs(copy.median - 2) < 1e-9 && fabs(copy.most - 9) < 1e-9);
    assert_true(fabs(times[0].gbs - (double)moved / 3e3) < 1e-6);
    assert_true(fabs(times[1].share / (2.0 / 40) - 1) < 1e-4); /* the copy's bytes are whole accesses */
    assert_true(times[0].moved_bytes > times[1].moved_bytes);  /* parts of s are written and read */
    assert_int_equal(times[0].calls, recorder->calls[0]);
    assert_int_equal(times[0].calls % facts.sets, 0);
    assert_true(times[0].calls * 0.0005 >= 0.005);

    /* once more, as a tuner would: the sets stay, what was taken for the first time is given back */
    const int live = recorder->live;
    recorder->seen_count = 0;
    assert_int_equal(rt_bench_time(bench, &recorder->programs[1], 1, times, &copy, &why), STATUS_OK);
    assert_int_equal(recorder->live, live);
    assert_true(fabs(times[0].median - 40) < 1e-9);
    rt_bench_close(bench);
    ng_text_free(&why);
    assert_int_equal(recorder->live, 0);
}

static void refuse(Fixture *fixture, Status status, const char *words) {
    RtBench *bench = NULL;
    ng_text why = {NULL, 0};
    const RtBenchOptions options = {0};
    assert_int_equal(rt_bench_open(&allocator, fixture->recorder.programs[0], &fixture->args, &options, &bench, &why),
                     status);
    assert_null(bench);
    assert_non_null(strstr(why.bytes, words));
    ng_text_free(&why);
}

static void test_refused(void **state) {
    Fixture *fixture = *state;
    void *const s = fixture->tensors[S], *const w = fixture->tensors[W];
    fixture->tensors[S] = NULL;
    refuse(fixture, STATUS_USAGE, "the pointer of s is NULL, and it is read");
    fixture->tensors[S] = s, fixture->tensors[W] = NULL;
    refuse(fixture, STATUS_USAGE, "the pointer of w is NULL, and it is read");
    fixture->tensors[W] = w;
    fixture->rows = -1;
    refuse(fixture, STATUS_USAGE, "M");
    RtProgram *unloaded = rt_program_create(fixture->job, &fixture->units[0]);
    const RtProgram *loaded = fixture->recorder.programs[0];
    fixture->recorder.programs[0] = unloaded;
    refuse(fixture, STATUS_UNAVAILABLE, "nothing to measure");
    fixture->recorder.programs[0] = loaded;
    assert_int_equal(fixture->recorder.live, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sets),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_statistics),
        cmocka_unit_test_setup_teardown(test_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
