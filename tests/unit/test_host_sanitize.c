/* What the sanitizers see of kernels: each planted fault is run in a child, this very program again, and must be
 * reported there; the same kernel without the fault must be clean. Counts as skipped where the library is built
 * without the sanitizer. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/host_sanitize.h"
#include "runtime/process.h"
#include "tests/support/host_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sums through shared memory, with a FAULT each: what kernels get wrong. */
static const char kernel_text[] = "NG_KERNEL(row) {\n"
                                  "    const float *x = ARG(const float *, 0);\n"
                                  "    float *y = ARG(float *, 1);\n"
                                  "    const uint32_t n = ARG(uint32_t, 2), t = thread();\n"
                                  "    float *tile = (float *)api->shared(0);\n"
                                  "    tile[t + (FAULT == 1 && t == 63 ? 1 : 0)] = x[t];\n"
                                  "    if (FAULT != 2) barrier(1);\n"
                                  "    float sum = shuffle(3, tile[(t + 32) % 64], t % 32 ^ 1);\n"
                                  "    if (FAULT == 4 && t == 63) sum += x[t + 1];\n"
                                  "    if (FAULT != 3) barrier(2);\n"
                                  "    tile[t] = sum;\n"
                                  "    barrier(4);\n"
                                  "    if (t < n) y[t] = tile[63 - t];\n"
                                  "    if (FAULT == 5) y[0] = sum;\n"
                                  "    if (FAULT == 6 && t == 0) y[x[0] > 0 ? 2147483647 + (int)n : 1] = 0;\n"
                                  "    if (FAULT == 7 && t == 5) barrier(5);\n"
                                  "}\n";

typedef struct Planted {
    const char *what;
    int sanitizer; /* 'a' or 't' */
    const char *reported;
} Planted;
static const Planted planted[] = {
    {"nothing", 0, NULL},
    {"a write past shared memory", 'a', "use-after-poison"},
    {"a missing barrier between write and read", 't', "ThreadSanitizer: data race"},
    {"a missing barrier between read and write", 't', "ThreadSanitizer: data race"},
    {"a read past global memory", 'a', "heap-buffer-overflow"},
    {"one element written by all threads", 't', "ThreadSanitizer: data race"},
    {"signed overflow", 'a', "signed integer overflow"},
    {"nothing, after a fault with all threads on their stacks", 0, NULL},
};

/* In the child: 50 live elements of 64 threads. Exit code 0 when all is well; the sanitizers choose others. */
static int run_planted(int fault, RtOrder order) {
    HostBench bench;
    host_bench_open(&bench, (RtHostOptions){.order = order, .seed = 3, .workers = 2});
    char *text = ir_format(bench.job, "#define FAULT %d\n%s", fault, kernel_text);
    Status status = host_bench_build(&bench, text);
    const RtDeviceOps *ops = bench.device->ops;
    float *x = NULL, *y = NULL;
    uint32_t n = 50;
    if (status == STATUS_OK) status = ops->alloc(bench.device, 64 * sizeof *x, (void **)&x, &bench.why);
    if (status == STATUS_OK) status = ops->alloc(bench.device, n * sizeof *y, (void **)&y, &bench.why);
    for (int i = 0; i < 64 && x; i++) x[i] = (float)(i + 1);
    void *params[] = {&x, &y, &n};
    for (int again = 0; again < 3 && status == STATUS_OK; again++) {
        status = host_bench_launch(&bench, "row", 1, 64, 64 * sizeof *x, params);
        if (fault == 7 && status == STATUS_LAUNCH) status = STATUS_OK;
    }
    if (status != STATUS_OK) fprintf(stderr, "status %d: %s\n", status, host_bench_why(&bench));
    ops->release(bench.device, x);
    ops->release(bench.device, y);
    host_bench_close(&bench);
    return status == STATUS_OK ? 0 : 99;
}

static void check_planted(int fault, RtOrder order) {
    const Planted *p = &planted[fault];
    char number[2] = {(char)('0' + fault), 0}, way[2] = {(char)('0' + (int)order), 0};
    const char *argv[] = {"/proc/self/exe", number, way, NULL};
    RtChild child;
    assert_int_equal(rt_process_start(&child, argv, -1, -1), 0);
    assert_int_equal(rt_process_wait(&child), 0);
    char *said = rt_process_output(&child, 1 << 20);
    assert_non_null(said);
    bool failed = child.code != 0;
    if (failed != (p->reported != NULL) || (p->reported && !strstr(said, p->reported)))
        fail_msg("%s, order %d: exit code %d, signal %d, \"%s\"", p->what, (int)order, child.code, child.signal, said);
    free(said);
    rt_process_release(&child);
}

static void check_all(int sanitizer) {
    int children = 0;
    for (int fault = 0; fault < (int)(sizeof planted / sizeof *planted); fault++) {
        if (planted[fault].sanitizer && planted[fault].sanitizer != sanitizer) continue;
        for (int order = RT_ORDER_ASCENDING; order <= RT_ORDER_SEEDED; order++, children++)
            check_planted(fault, (RtOrder)order);
    }
    printf("# %d children\n", children);
}

static void test_clean(void **state) {
    (void)state;
    check_all(0);
}

static void check_or_skip(int sanitizer, bool built, const char *name) {
    if (!built) {
        printf("skipped: the library is built without %s\n", name);
        skip();
    }
    check_all(sanitizer);
}

static void test_address(void **state) {
    (void)state;
    check_or_skip('a', RT_ADDRESS_SANITIZER, "AddressSanitizer");
}

static void test_thread(void **state) {
    (void)state;
    check_or_skip('t', RT_THREAD_SANITIZER, "ThreadSanitizer");
}

int main(int argc, char **argv) {
    if (argc == 3) return run_planted(argv[1][0] - '0', (RtOrder)(argv[2][0] - '0'));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clean),
        cmocka_unit_test(test_address),
        cmocka_unit_test(test_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
