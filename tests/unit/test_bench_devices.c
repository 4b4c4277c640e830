/* ng_bench through the public header: what it refuses, what it reports on the host device, a failing allocator; and on
 * a driver that only counts (tests/fake/cuda.c), where every time is known beforehand and every call of the driver may
 * fail. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/normgen.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/fake_cuda.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 96, COLUMNS = 64 };

static const char text[] = "graph: measured\n"
                           "dims: {M: any, N: 64}\n"
                           "inputs: {x: \"f32[M, N]\", w: \"f32[N]\"}\n"
                           "nodes: {y: \"rms_norm(x, w, 1e-6)\", dw: \"sum(x * y, dim=0)\"}\n"
                           "outputs: {y: bf16, dw: {dtype: f32, accumulate: true}}\n";

typedef struct Case {
    FailAlloc counter;
    ng_context *context;
    ng_program *programs[2];
    float x[ROWS * COLUMNS], w[COLUMNS], dw[COLUMNS];
    void *tensors[4];
    int64_t rows;
    ng_args args;
    ng_measured times[2];
    ng_bench_report report;
    ng_text why;
} Case;

static ng_status compile(Case *it, int index, const ng_setting *set, ng_text *why) {
    const ng_compile_options options = {.size = sizeof options, .sets = set, .set_count = set ? 1 : 0};
    return ng_compile(it->context, text, strlen(text), &options, &it->programs[index], why);
}

static void give_tensors(Case *it) {
    for (int i = 0; i < ROWS * COLUMNS; i++) it->x[i] = (float)(i % 17) / 8 - 1;
    for (int i = 0; i < COLUMNS; i++) it->w[i] = 1, it->dw[i] = 0;
    it->tensors[0] = it->x, it->tensors[1] = it->w, it->tensors[3] = it->dw;
    it->rows = ROWS;
    it->args = (ng_args){.size = sizeof it->args, .tensors = it->tensors, .dims = &it->rows};
    it->report = (ng_bench_report){.size = sizeof it->report, .programs = it->times};
}

static ng_status open_case(Case *it, ng_device_kind kind) {
    const Allocator allocator = fail_allocator(&it->counter);
    const ng_context_options options = {.size = sizeof options,
                                        .device = kind,
                                        .alloc = allocator.alloc,
                                        .release = allocator.release,
                                        .allocator_state = allocator.state};
    static const ng_setting row = {"fuse", "off"};
    give_tensors(it);
    ng_status status = ng_context_create(&options, &it->context, &it->why);
    if (!status) status = compile(it, 0, NULL, &it->why);
    if (!status) status = compile(it, 1, &row, &it->why);
    if (status) print_message("%s\n", it->why.bytes ? it->why.bytes : "no words");
    return status;
}

static void close_case(Case *it) {
    ng_text_free(&it->why);
    ng_program_free(it->programs[0]);
    ng_program_free(it->programs[1]);
    ng_context_free(it->context);
    assert_int_equal(it->counter.live, 0);
}

static ng_status bench(Case *it, uint32_t count, const ng_bench_options *options) {
    ng_text_free(&it->why);
    return ng_bench(it->programs, count, &it->args, options, &it->report, &it->why);
}

/* ---- the host device ---- */

static const ng_bench_options quick = {.size = sizeof quick, .replays = 3, .replay_seconds = 1e-9};

static void test_host(void **state) {
    (void)state;
    static Case it;
    it = (Case){0};
    assert_int_equal(open_case(&it, NG_DEVICE_HOST), NG_OK);
    assert_int_equal(bench(&it, 2, &quick), NG_OK);
    assert_null(it.why.bytes);
    assert_int_equal(it.report.real, 0);
    assert_int_equal(it.report.cold, 0);
    assert_int_equal(it.report.sets, 2);
    assert_int_equal(it.report.replays, 3);
    const uint64_t full = ROWS * COLUMNS, ideal = full * 4 + full * 2 + COLUMNS * (4 + 4 + 4);
    assert_int_equal(it.report.set_bytes, ideal - COLUMNS * 4); /* dw is read and written */
    for (int p = 0; p < 2; p++) {
        const ng_measured *time = &it.times[p];
        assert_int_equal(time->ideal_bytes, ideal);
        assert_true(time->moved_bytes >= ideal);
        assert_true(0 < time->least && time->least <= time->low && time->low <= time->median &&
                    time->median <= time->high && time->high <= time->most);
        assert_true(fabs(time->gbs * time->median / ((double)ideal * 1e-3) - 1) < 1e-9);
        assert_true(fabs(time->share * it.report.copy.gbs / time->gbs - 1) < 1e-9);
        assert_int_equal(time->calls, 2);
    }
    assert_true(it.times[1].moved_bytes > it.times[0].moved_bytes); /* unfused, x goes through memory more often */
    assert_true(it.report.copy.median > 0 && it.report.copy.share == 1);
    for (int i = 0; i < COLUMNS; i++) assert_true(it.dw[i] == 0); /* nothing comes back */
    close_case(&it);
}

static void refuses(Case *it, uint32_t count, ng_status status, const char *words) {
    assert_int_equal(bench(it, count, &quick), status);
    assert_non_null(it->why.bytes);
    if (!strstr(it->why.bytes, words)) fail_msg("%s lacks %s", it->why.bytes, words);
    assert_int_equal(ng_bench(it->programs, count, &it->args, &quick, &it->report, NULL), status);
}

static void test_refused(void **state) {
    (void)state;
    static Case it;
    it = (Case){0};
    assert_int_equal(open_case(&it, NG_DEVICE_HOST), NG_OK);
    refuses(&it, 0, NG_USAGE, "must be given");
    it.report.size = 0;
    refuses(&it, 1, NG_USAGE, "must be given");
    it.report.size = sizeof it.report;
    it.tensors[1] = NULL;
    refuses(&it, 1, NG_USAGE, "the pointer of w is NULL");
    it.tensors[1] = it.w;
    it.rows = 0; /* dw is still moved */
    assert_int_equal(bench(&it, 1, &quick), NG_OK);
    it.rows = -1;
    refuses(&it, 1, NG_USAGE, "M");
    it.rows = ROWS;
    ng_program *const second = it.programs[1];
    static const char other[] = "graph: other\ndims: {M: any}\ninputs: {x: \"f32[M, 64]\", w: \"f32[64]\"}\n"
                                "nodes: {y: x * w, dw: w + 1}\noutputs: {y: f32, dw: f32}\n";
    static const char empty[] = "graph: empty\ndims: {M: any}\ninputs: {x: \"f32[M]\"}\nnodes: {y: x + 1}\n"
                                "outputs: {y: f32}\n";
    assert_int_equal(ng_compile(it.context, other, strlen(other), NULL, &it.programs[1], NULL), NG_OK);
    refuses(&it, 2, NG_USAGE, "of one graph: other is another");
    ng_program_free(it.programs[1]);
    it.programs[1] = second;
    ng_program *const first = it.programs[0];
    assert_int_equal(ng_compile(it.context, empty, strlen(empty), NULL, &it.programs[0], NULL), NG_OK);
    it.rows = 0;
    refuses(&it, 1, NG_USAGE, "no byte is moved");
    ng_program_free(it.programs[0]);
    it.programs[0] = first;
    close_case(&it);
}

static void test_no_memory(void **state) {
    (void)state;
    static Case it;
    it = (Case){0};
    assert_int_equal(open_case(&it, NG_DEVICE_HOST), NG_OK);
    const int64_t live = it.counter.live;
    ng_status status = NG_SYSTEM;
    int n = 0;
    while (status) {
        it.counter.calls = 0, it.counter.fail_at = (uint64_t)++n;
        status = bench(&it, 2, &quick);
        assert_true(status == NG_OK || status == NG_SYSTEM);
        assert_int_equal(it.counter.live, live);
        assert_true(n < 1000);
    }
    it.counter.fail_at = 0;
    print_message("# each of %d allocations failed once\n", n - 1);
    assert_true(n > 4);
    close_case(&it);
}

/* ---- a driver that counts ---- */

/* Of one call of the program: microseconds by the driver's own rule. */
static double call_us(FakeCuda *fake, Case *it, ng_program *program) {
    size_t bytes;
    void *tensors[4], *workspace = NULL;
    assert_int_equal(ng_workspace_bytes(program, &it->rows, &bytes), NG_OK);
    for (int t = 0; t < 4; t++) assert_int_equal(posix_memalign(&tensors[t], 256, sizeof it->x), 0);
    assert_int_equal(posix_memalign(&workspace, 256, bytes + 1), 0);
    ng_args args = it->args;
    args.tensors = tensors, args.workspace = workspace, args.workspace_bytes = bytes;
    fake->us = 0;
    assert_int_equal(ng_launch(program, &args), NG_OK);
    for (int t = 0; t < 4; t++) free(tensors[t]);
    free(workspace);
    return fake->us;
}

static void check_near(double got, double expected) {
    if (fabs(got / expected - 1) > 1e-4) fail_msg("%g, expected %g", got, expected);
}

static void check_times(FakeCuda *fake, Case *it) {
    fake->kernel_us = 20, fake->cta_us = 0.25;
    const double fused = call_us(fake, it, it->programs[0]), apart = call_us(fake, it, it->programs[1]);
    assert_true(apart > fused);
    const ng_status status = bench(it, 2, NULL);
    if (status) print_message("%s\n", it->why.bytes ? it->why.bytes : "no words");
    assert_int_equal(status, NG_OK);
    assert_int_equal(it->report.real, 1);
    assert_int_equal(it->report.cold, 1);
    assert_int_equal(it->report.replays, 11);
    assert_int_equal(it->report.sets, 3 * (1 << 20) / it->report.set_bytes + 1); /* of an L2 of 1 MiB */
    check_near(it->times[0].median, fused);
    check_near(it->times[1].median, apart);
    check_near(it->times[1].most, apart);
    const uint64_t accesses = (it->times[0].ideal_bytes / 2 + 15) / 16;
    check_near(it->report.copy.median, fake->kernel_us + fake->cta_us * (double)((accesses + 255) / 256));
    for (int p = 0; p < 2; p++) {
        assert_true(it->times[p].calls * it->times[p].median >= 4999); /* a replay takes 5 ms */
        assert_int_equal(it->times[p].calls % it->report.sets, 0);
    }
}

static void test_driver(void **state) {
    (void)state;
    static Case it;
    it = (Case){0};
    FakeCuda *fake = fake_cuda_load();
    if (!fake) skip();
    assert_int_equal(open_case(&it, NG_DEVICE_CUDA), NG_OK);
    const int live = fake_cuda_live(fake);
    check_times(fake, &it);
    assert_int_equal(fake_cuda_live(fake), live);
    /* two sets, and replays of two calls: every kind of call of the driver, and few of each */
    const ng_bench_options few = {.size = sizeof few, .replays = 1, .replay_seconds = 0.05, .memory_bytes = 1};
    fake->kernel_us = 50000;
    fake->calls = 0;
    assert_int_equal(bench(&it, 1, &few), NG_OK);
    const int calls = fake->timed;
    for (int n = 1; n <= calls; n++) {
        fake->calls = 0, fake->fail_at = n;
        const ng_status status = bench(&it, 1, &few);
        assert_int_not_equal(status, NG_OK);
        assert_true(it.why.count > 0);
        assert_int_equal(fake_cuda_live(fake), live);
        assert_int_equal(fake->depth, 0);
    }
    fake->fail_at = 0;
    print_message("# each of %d driver calls failed once\n", calls);
    assert_true(calls > 60);
    assert_int_equal(it.report.sets, 2);
    assert_int_equal(it.report.cold, 0);
    close_case(&it);
    assert_int_equal(fake_cuda_live(fake), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_host), cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_no_memory), cmocka_unit_test(test_driver)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
