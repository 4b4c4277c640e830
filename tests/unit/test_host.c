/* The host device, by hand-written texts: collectives, orders, faults, shared memory, workers. What it refuses is as
 * important as what it runs. Building is test_host_build.c's, the sanitizers test_host_sanitize.c's. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/host_sanitize.h"
#include "tests/support/host_text.h"
#include "tests/support/random.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const RtOrder orders[] = {RT_ORDER_ASCENDING, RT_ORDER_DESCENDING, RT_ORDER_SEEDED};

static const char row_text[] = "NG_KERNEL(row) {\n"
                               "    const float *x = ARG(const float *, 0);\n"
                               "    float *y = ARG(float *, 1);\n"
                               "    const int64_t n = ARG(int64_t, 2);\n"
                               "    const uint32_t threads = ARG(uint32_t, 3), lane = thread() % 32;\n"
                               "    float *warps = (float *)api->shared(0);\n"
                               "    float sum = 0;\n"
                               "    x += (int64_t)block() * n;\n"
                               "    y += (int64_t)block() * n;\n"
                               "    for (int64_t i = thread(); i < n; i += threads) sum += x[i];\n"
                               "    for (uint32_t mask = 16; mask; mask >>= 1) sum += shuffle(1, sum, lane ^ mask);\n"
                               "    if (lane == 0) warps[thread() / 32] = sum;\n"
                               "    barrier(2);\n"
                               "    sum = 0;\n"
                               "    for (uint32_t w = 0; w < threads / 32; w++) sum += warps[w];\n"
                               "    for (int64_t i = thread(); i < n; i += threads) y[i] = x[i] + sum;\n"
                               "}\n";

static void run_rows(RtHostOptions options, const float *x, float *y, int64_t rows, int64_t n, uint32_t threads) {
    HostBench bench;
    host_bench_open(&bench, options);
    assert_int_equal(host_bench_build(&bench, row_text), STATUS_OK);
    assert_string_equal(host_bench_why(&bench), "");
    memset(y, 0xff, (size_t)(rows * n) * sizeof *y);
    void *params[] = {&x, &y, &n, &threads};
    Status status = host_bench_launch(&bench, "row", (uint64_t)rows, threads, threads / 32 * 4, params);
    if (status != STATUS_OK) fail_msg("%s", host_bench_why(&bench));
    host_bench_close(&bench);
}

static void test_row_sums(void **state) {
    (void)state;
    Random random = {random_seed()};
    static const int64_t lengths[] = {1, 31, 257, 1000};
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        int64_t n = lengths[l], rows = 37;
        uint32_t threads = 32u << random_below(&random, 6);
        size_t bytes = (size_t)(rows * n) * sizeof(float);
        float *x = malloc(bytes), *y = malloc(bytes), *z = malloc(bytes);
        for (int64_t i = 0; i < rows * n; i++) x[i] = (float)random_normal(&random);
        run_rows((RtHostOptions){.workers = 1}, x, y, rows, n, threads);
        for (int64_t r = 0; r < rows; r++) {
            double sum = 0, size = 0;
            for (int64_t i = 0; i < n; i++) sum += (double)x[r * n + i], size += fabs((double)x[r * n + i]);
            for (int64_t i = 0; i < n; i++) { /* n + 37 adds bound any order of this kernel */
                double bound = (double)(n + 37) * (double)FLT_EPSILON * size + (double)FLT_EPSILON * fabs(sum + size);
                assert_true(fabs((double)y[r * n + i] - ((double)x[r * n + i] + sum)) <= bound);
            }
        }
        for (size_t o = 0; o < 3; o++) {
            run_rows((RtHostOptions){orders[o], random_bits(&random), 3}, x, z, rows, n, threads);
            assert_memory_equal(y, z, bytes);
        }
        free(x), free(y), free(z);
    }
}

/* Lanes of whole and partial warps pass numbers round; every CTA size. */
static void test_partial_warps(void **state) {
    (void)state;
    for (size_t o = 0; o < 3; o++) {
        HostBench bench;
        host_bench_open(&bench, (RtHostOptions){.order = orders[o], .seed = 7});
        assert_int_equal(
            host_bench_build(&bench,
                             "NG_KERNEL(ring) {\n"
                             "    int64_t *y = ARG(int64_t *, 0);\n"
                             "    const uint32_t threads = ARG(uint32_t, 1), t = thread();\n"
                             "    const uint32_t rest = threads - t / 32 * 32, lanes = rest < 32 ? rest : 32;\n"
                             "    int64_t sum = 0, value = t;\n"
                             "    for (uint32_t i = 0; i < lanes; i++) {\n"
                             "        sum = sum * 3 + value;\n"
                             "        value = (int64_t)api->shuffle(1, (uint64_t)value, (t % 32 + 1) % lanes);\n"
                             "        if (i % 5 == 0 || i == lanes - 1) value += 0;\n"
                             "    }\n"
                             "    barrier(3);\n"
                             "    y[t] = sum;\n"
                             "}\n"),
            STATUS_OK);
        static const uint32_t sizes[] = {1, 2, 31, 32, 33, 63, 65, 129, 1000, 1024};
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            uint32_t threads = sizes[s];
            int64_t *y = malloc(threads * sizeof *y);
            void *params[] = {&y, &threads};
            assert_int_equal(host_bench_launch(&bench, "ring", 1, threads, 0, params), STATUS_OK);
            for (uint32_t t = 0; t < threads; t++) {
                uint32_t first = t / 32 * 32, lanes = threads - first < 32 ? threads - first : 32;
                uint64_t sum = 0;
                for (uint32_t i = 0; i < lanes; i++) sum = sum * 3 + first + (t - first + i) % lanes;
                assert_int_equal((uint64_t)y[t], sum);
            }
            free(y);
        }
        host_bench_close(&bench);
    }
}

/* The orders differ, and the seeded one from round to round: else "the same bits in three orders" says nothing. */
static void test_orders(void **state) {
    (void)state;
    enum { THREADS = 96 };
    uint32_t came[3][2][THREADS];
    for (size_t o = 0; o < 3; o++) {
        HostBench bench;
        host_bench_open(&bench, (RtHostOptions){.order = orders[o], .seed = 11, .workers = 1});
        assert_int_equal(host_bench_build(&bench,
                                          "__attribute__((no_sanitize(\"thread\"))) NG_KERNEL(who) {\n"
                                          "    uint32_t *came = ARG(uint32_t *, 0), *count = ARG(uint32_t *, 1);\n"
                                          "    came[(*count)++] = thread();\n"
                                          "    barrier(1);\n"
                                          "    came[(*count)++] = thread();\n"
                                          "}\n"),
                         STATUS_OK);
        uint32_t *list = came[o][0], count = 0, *counter = &count;
        void *params[] = {&list, &counter};
        assert_int_equal(host_bench_launch(&bench, "who", 1, THREADS, 0, params), STATUS_OK);
        assert_int_equal(count, 2 * THREADS);
        host_bench_close(&bench);
        for (int round = 0; round < 2; round++) {
            bool seen[THREADS] = {false};
            for (int i = 0; i < THREADS; i++) seen[came[o][round][i]] = true;
            for (int i = 0; i < THREADS; i++) assert_true(seen[i]);
        }
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(came[0][1][i], i);
        assert_int_equal(came[1][1][i], THREADS - 1 - i);
    }
    assert_memory_not_equal(came[2][0], came[2][1], sizeof came[2][0]);
    assert_memory_not_equal(came[2][0], came[0][0], sizeof came[2][0]);
}

/* ---- faults ---- */

typedef struct FaultCase {
    const char *kernel;
    const char *says[4]; /* all in the message */
    uint32_t threads;
} FaultCase;

static const char fault_text[] =
    "NG_KERNEL(mixed) { if (thread() == 5) shuffle(7, 0, 0); else shuffle(8, 0, 0); }\n"
    "NG_KERNEL(kinds) { if (thread() < 3) barrier(7); else shuffle(8, 0, 0); }\n"
    "NG_KERNEL(left) { if (thread() == 9) return; shuffle(8, 0, 0); }\n"
    "NG_KERNEL(warps) { if (thread() < 32) barrier(1); else barrier(2); }\n"
    "NG_KERNEL(warp_left) { if (thread() >= 64) return; barrier(4); }\n"
    "NG_KERNEL(lane) { shuffle(6, 0, thread() % 32 + 1); }\n"
    "NG_KERNEL(tail) { shuffle(6, 0, thread() % 32 ^ 16); }\n"
    "NG_KERNEL(offset) { barrier(3); ((float *)api->shared(4))[0] = 1; }\n"
    "NG_KERNEL(fails) { barrier(3); if (thread() == 17) api->fail(\"a wide access is not aligned\"); barrier(5); }\n"
    "NG_KERNEL(late) { if (block() >= 5) api->fail(\"late\"); }\n"
    "NG_KERNEL(good) { if (thread() == 0) ARG(uint32_t *, 0)[block()] = 1; barrier(1); }\n";

static const FaultCase fault_cases[] = {
    {"mixed", {"kernel mixed, block 0, thread 5", "the shuffle of site 7", "thread 0 ", "the shuffle of site 8"}, 32},
    {"kinds", {"thread 3", "the shuffle of site 8", "thread 0 ", "the barrier of site 7"}, 64},
    {"left", {"thread 9", "came to its end", "thread 0 ", "the shuffle of site 8"}, 32},
    {"warps", {"thread 63", "the barrier of site 2", "thread 31 ", "the barrier of site 1"}, 64},
    {"warp_left", {"thread 95", "came to its end", "thread 31 ", "the barrier of site 4"}, 96},
    {"lane", {"thread 31", "the shuffle of site 6", "lane 32"}, 32},
    {"tail", {"thread 32", "the shuffle of site 6", "lane 16"}, 40},
    {"offset", {"thread 0", "offset 4", "after the barrier of site 3"}, 32},
    {"fails", {"thread 17", "a wide access is not aligned", "after the barrier of site 3"}, 32},
    {"late", {"kernel late, block 5, thread 0: late"}, 32},
};

static void test_faults(void **state) {
    (void)state;
    HostBench bench;
    host_bench_open(&bench, (RtHostOptions){.workers = 4});
    assert_int_equal(host_bench_build(&bench, fault_text), STATUS_OK);
    uint32_t done[300], *where = done;
    void *params[] = {&where};
    for (size_t i = 0; i < sizeof fault_cases / sizeof *fault_cases; i++) {
        const FaultCase *c = &fault_cases[i];
        for (int again = 0; again < 3; again++) {
            assert_int_equal(host_bench_launch(&bench, c->kernel, 1000, c->threads, 64, params), STATUS_LAUNCH);
            for (int s = 0; s < 4 && c->says[s]; s++)
                if (!strstr(host_bench_why(&bench), c->says[s]))
                    fail_msg("%s: \"%s\" does not say \"%s\"", c->kernel, host_bench_why(&bench), c->says[s]);
        }
        memset(done, 0, sizeof done); /* the device goes on after a fault */
        assert_int_equal(host_bench_launch(&bench, "good", 300, 64, 0, params), STATUS_OK);
        for (int b = 0; b < 300; b++) assert_int_equal(done[b], 1);
    }
    host_bench_close(&bench);
}

static void test_limits(void **state) {
    (void)state;
    HostBench bench;
    host_bench_open(&bench, (RtHostOptions){.workers = 1});
    assert_int_equal(host_bench_build(&bench, fault_text), STATUS_OK);
    assert_int_equal(host_bench_launch(&bench, "fails", 0, 32, 0, NULL), STATUS_OK); /* no block, no thread, no fault */
    assert_int_equal(host_bench_launch(&bench, "good", 1, 1025, 0, NULL), STATUS_LAUNCH);
    assert_int_equal(host_bench_launch(&bench, "good", 1, 0, 0, NULL), STATUS_LAUNCH);
    assert_int_equal(host_bench_launch(&bench, "good", 1, 32, 300 << 10, NULL), STATUS_LAUNCH);
    assert_int_equal(host_bench_launch(&bench, "missing", 1, 32, 0, NULL), STATUS_INTERNAL);
    RtKernel *kernel;
    RtFacts facts;
    assert_int_equal(bench.device->ops->kernel(bench.device, bench.module, "lane", 0, &kernel, NULL), STATUS_OK);
    assert_int_equal(bench.device->ops->facts(bench.device, kernel, &facts, NULL), STATUS_OK);
    assert_int_equal(facts.max_threads, 1024);
    RtLaunch launch = {.kernel = kernel, .blocks = 2, .threads = 64};
    assert_int_equal(bench.device->ops->launch(bench.device, &launch, NULL), STATUS_LAUNCH); /* without a message */
    RtDevice *none;
    assert_int_equal(rt_host_open(12, NULL, &none, NULL), STATUS_USAGE);
    host_bench_close(&bench);
}

/* ---- memory ---- */

static const char shared_text[] = "NG_KERNEL(fresh) {\n"
                                  "    const uint32_t *shared = (const uint32_t *)api->shared(0);\n"
                                  "    uint32_t *seen = ARG(uint32_t *, 0);\n"
                                  "    seen[block() * 32 + thread()] = shared[thread()];\n"
                                  "    barrier(1);\n"
                                  "    ((uint32_t *)api->shared(0))[thread()] = 5;\n"
                                  "}\n"
                                  "NG_KERNEL(two) {\n"
                                  "    float *a = (float *)api->shared(0), *b = (float *)api->shared(128);\n"
                                  "    a[thread()] = 1;\n"
                                  "    b[thread()] = 2;\n"
                                  "    if (thread() == 0) ARG(int64_t *, 0)[0] = (char *)b - (char *)a;\n"
                                  "}\n";

static void test_shared_memory(void **state) {
    (void)state;
    HostBench bench;
    host_bench_open(&bench, (RtHostOptions){.workers = 2});
    assert_int_equal(host_bench_build(&bench, shared_text), STATUS_OK);
    uint32_t *seen;
    assert_int_equal(bench.device->ops->alloc(bench.device, 1000 * 32 * 4, (void **)&seen, &bench.why), STATUS_OK);
    assert_int_equal((uintptr_t)seen % 256, 0);
    for (int i = 0; i < 1000 * 32; i++) assert_int_equal(seen[i], UINT32_MAX); /* fresh memory is NaN */
    memset(seen, 0, 1000 * 32 * 4);
    void *params[] = {&seen};
    assert_int_equal(host_bench_launch(&bench, "fresh", 1000, 32, 128, params), STATUS_OK);
    for (int i = 0; i < 1000 * 32; i++) assert_int_equal(seen[i], UINT32_MAX); /* and so is each CTA's shared memory */
    bench.device->ops->release(bench.device, seen);
    host_bench_close(&bench);
}

/* Slices lie apart, and a write between them is found. (AddressSanitizer stops at it: test_host_sanitize.c.) */
static void test_slices(void **state) {
    (void)state;
    HostBench bench;
    host_bench_open(&bench, (RtHostOptions){.workers = 1});
    assert_int_equal(host_bench_build(&bench, shared_text), STATUS_OK);
    RtKernel *kernel;
    assert_int_equal(bench.device->ops->kernel(bench.device, bench.module, "two", 256, &kernel, &bench.why), STATUS_OK);
    int64_t gap = 0, *where = &gap;
    void *params[] = {&where};
    Slice slices[] = {{"left", 0, 128}, {"right", 128, 128}};
    RtLaunch launch = {.kernel = kernel,
                       .blocks = 3,
                       .threads = 32,
                       .shared_bytes = 256,
                       .slices = slices,
                       .slice_count = 2,
                       .params = params};
    assert_int_equal(bench.device->ops->launch(bench.device, &launch, &bench.why), STATUS_OK);
    assert_true(gap > 256 && gap % 128 == 0);
#if !RT_ADDRESS_SANITIZER
    slices[1].bytes = 124;
    assert_int_equal(bench.device->ops->launch(bench.device, &launch, &bench.why), STATUS_LAUNCH);
    assert_non_null(strstr(host_bench_why(&bench), "kernel two, block 0: shared memory beside slice right"));
#endif
    host_bench_close(&bench);
}

/* ---- several callers, and speed ---- */

static void *launch_often(void *state) {
    RtLaunch launch = *(RtLaunch *)state;
    RtDevice *device = *(RtDevice **)launch.stream; /* the host device ignores it */
    uint32_t *done = calloc(300, sizeof *done);
    void *params[] = {&done};
    launch.params = params;
    size_t wrong = 0;
    for (int i = 0; i < 50; i++) {
        memset(done, 0, 300 * sizeof *done);
        if (device->ops->launch(device, &launch, NULL) != STATUS_OK) wrong++;
        for (int b = 0; b < 300; b++) wrong += done[b] != 1;
    }
    free(done);
    return (void *)wrong;
}

static void test_callers(void **state) {
    (void)state;
    HostBench bench;
    host_bench_open(&bench, (RtHostOptions){.workers = 3});
    assert_int_equal(host_bench_build(&bench, fault_text), STATUS_OK);
    RtKernel *kernel;
    assert_int_equal(bench.device->ops->kernel(bench.device, bench.module, "good", 0, &kernel, &bench.why), STATUS_OK);
    RtLaunch launch = {.kernel = kernel, .blocks = 300, .threads = 64, .stream = &bench.device};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, launch_often, &launch), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    host_bench_close(&bench);
}

static void test_speed(void **state) {
    (void)state;
    double start = rt_now();
    HostBench bench;
    host_bench_open(&bench, (RtHostOptions){.workers = 1});
    assert_int_equal(host_bench_build(&bench,
                                      "NG_KERNEL(empty) {}\n"
                                      "NG_KERNEL(shuffles) {\n"
                                      "    float x = 1;\n"
                                      "    for (int i = 0; i < 1000; i++) x = shuffle(1, x, thread() % 32 ^ 1);\n"
                                      "}\n"
                                      "NG_KERNEL(barriers) { for (int i = 0; i < 1000; i++) barrier(1); }\n"),
                     STATUS_OK);
    printf("# compile %d ms", (int)(1e3 * (rt_now() - start)));
    static const char *const names[] = {"empty", "shuffles", "barriers"};
    static const char *const what[] = {"thread", "shuffle of a lane", "barrier of a thread"};
    for (int k = 0; k < 3; k++) {
        double calls = k ? 10 * 256 * 1000 : 2000 * 256;
        host_bench_launch(&bench, names[k], 1, 256, 0, NULL);
        start = rt_now();
        assert_int_equal(host_bench_launch(&bench, names[k], k ? 10 : 2000, 256, 0, NULL), STATUS_OK);
        printf(", %d ns a %s", (int)((rt_now() - start) / calls * 1e9 + 0.5), what[k]);
    }
    start = rt_now();
    for (int i = 0; i < 1000; i++) host_bench_launch(&bench, "empty", 1, 32, 0, NULL);
    printf(", %d ns a launch of one warp\n", (int)((rt_now() - start) * 1e6));
    host_bench_close(&bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_row_sums), cmocka_unit_test(test_partial_warps), cmocka_unit_test(test_orders),
        cmocka_unit_test(test_faults),   cmocka_unit_test(test_limits),        cmocka_unit_test(test_shared_memory),
        cmocka_unit_test(test_slices),   cmocka_unit_test(test_callers),       cmocka_unit_test(test_speed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
