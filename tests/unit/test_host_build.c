/* Building host texts: many in one call, what fails and how it is said, and that nothing is left behind. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/host_sanitize.h"
#include "runtime/process.h"
#include "tests/support/host_text.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SANITIZED (RT_ADDRESS_SANITIZER || RT_THREAD_SANITIZER)

static uint32_t count_entries(const char *folder) {
    uint32_t count = 0;
    DIR *open = opendir(folder);
    assert_non_null(open);
    for (struct dirent *entry; (entry = readdir(open));) count += entry->d_name[0] != '.';
    closedir(open);
    return count;
}

static uint32_t count_descriptors(void) { return count_entries("/proc/self/fd"); }

/* A folder of the test's own as TMPDIR; gone again, and found empty, at the end. */
static int use_folder(void **state) {
    char *folder = strdup("/tmp/normgen-test-XXXXXX");
    if (!folder || !mkdtemp(folder)) return -1;
    *state = folder;
    return setenv("TMPDIR", folder, 1);
}
static int drop_folder(void **state) {
    int left = rmdir(*state);
    free(*state);
    unsetenv("TMPDIR");
    return left;
}

static void test_many(void **state) {
    (void)state;
    enum { COUNT = 200 };
    HostBench bench;
    host_bench_open(&bench, (RtHostOptions){.workers = 2});
    const RtDeviceOps *ops = bench.device->ops;
    Source texts[COUNT];
    const Source *sources[COUNT + 1];
    RtModule *modules[COUNT + 1];
    for (int i = 0; i < COUNT; i++) {
        char *text = ir_format(bench.job, "%sNG_KERNEL(k%d) { barrier(1); if (thread() == 0) *ARG(int *, 0) = %d; }\n",
                               host_prelude, i, i * 3);
        texts[i] = (Source){.host_text = text, .host_count = strlen(text)};
        sources[i] = &texts[i];
    }
    Source again = {.host_text = ir_copy_text(bench.job, texts[7].host_text, texts[7].host_count),
                    .host_count = texts[7].host_count};
    sources[COUNT] = &again; /* an equal text at another place is no second definition */
    uint32_t before = count_descriptors();
    if (ops->build(bench.device, sources, COUNT + 1, modules, &bench.why) != STATUS_OK)
        fail_msg("%s", host_bench_why(&bench));
    assert_string_equal(host_bench_why(&bench), ""); /* no warning either */
    for (int i = 0; i <= COUNT; i++) {
        RtKernel *kernel;
        int got = -1, *where = &got;
        void *params[] = {&where};
        char name[16];
        snprintf(name, sizeof name, "k%d", i == COUNT ? 7 : i);
        assert_int_equal(ops->kernel(bench.device, modules[i], name, 0, &kernel, &bench.why), STATUS_OK);
        RtLaunch launch = {.kernel = kernel, .blocks = 1, .threads = 32, .params = params};
        assert_int_equal(ops->launch(bench.device, &launch, &bench.why), STATUS_OK);
        assert_int_equal(got, (i == COUNT ? 7 : i) * 3);
    }
    for (int i = 0; i <= COUNT; i++) ops->module_free(bench.device, modules[i]);
    assert_int_equal(count_descriptors(), before);
    assert_int_equal(ops->build(bench.device, NULL, 0, NULL, &bench.why), STATUS_OK);
    host_bench_close(&bench);
    assert_int_equal(count_entries(*state), 0);
}

static void test_errors(void **state) {
    HostBench bench;
    host_bench_open(&bench, (RtHostOptions){.workers = 2});
    uint32_t before = count_descriptors();
    assert_int_equal(host_bench_build(&bench, "\nNG_KERNEL(k) { nonsense; }\n"), STATUS_NOT_COMPILED);
    assert_non_null(strstr(host_bench_why(&bench), "nonsense"));
    assert_non_null(strstr(host_bench_why(&bench), "kernel text 0:"));
    assert_true(strlen(host_bench_why(&bench)) < 6000);
    /* One bad text among good ones fails them all. */
    char *good = ir_format(bench.job, "%sNG_KERNEL(good) {}\n", host_prelude);
    Source texts[] = {{.host_text = good, .host_count = strlen(good)}, {.host_text = "int x y;", .host_count = 8}};
    const Source *sources[] = {&texts[0], &texts[1]};
    RtModule *modules[2] = {NULL, NULL};
    bench.why = ir_text(bench.job);
    assert_int_equal(bench.device->ops->build(bench.device, sources, 2, modules, &bench.why), STATUS_NOT_COMPILED);
    assert_non_null(strstr(host_bench_why(&bench), "kernel text 1:1"));
    /* A text without the entry that binds it. */
    texts[1] = (Source){.host_text = "int x;", .host_count = 6};
    const Source *unbound[] = {&texts[1]};
    bench.why = ir_text(bench.job);
    assert_int_equal(bench.device->ops->build(bench.device, unbound, 1, modules, &bench.why), STATUS_INTERNAL);
    assert_non_null(strstr(host_bench_why(&bench), "ng_host_bind"));
    /* What cannot be linked is said at building, not at the first call. */
    assert_int_equal(host_bench_build(&bench, "extern \"C\" int nowhere(); NG_KERNEL(k) { nowhere(); }\n"),
                     STATUS_SYSTEM);
    assert_non_null(strstr(host_bench_why(&bench), "nowhere"));
    assert_int_equal(count_descriptors(), before);
    assert_int_equal(count_entries(*state), 0);
    host_bench_close(&bench);
}

static void test_compilers(void **state) {
    (void)state;
    if (SANITIZED) {
        printf("skipped: a sanitized library compiles with its own compiler\n");
        skip();
    }
    HostBench bench;
    host_bench_open(&bench, (RtHostOptions){.workers = 1});
    char *path = ir_copy_text(bench.job, getenv("PATH"), strlen(getenv("PATH")));
    char *own = getenv("CXX") ? ir_copy_text(bench.job, getenv("CXX"), strlen(getenv("CXX"))) : NULL;
    unsetenv("CXX");
    setenv("PATH", *state, 1);
    assert_int_equal(host_bench_build(&bench, ""), STATUS_UNAVAILABLE);
    assert_non_null(strstr(host_bench_why(&bench), "install"));
    setenv("PATH", path, 1);
    setenv("CXX", "no-such-compiler", 1);
    assert_int_equal(host_bench_build(&bench, ""), STATUS_UNAVAILABLE);
    assert_non_null(strstr(host_bench_why(&bench), "no-such-compiler"));
    setenv("CXX", "false", 1);
    assert_int_equal(host_bench_build(&bench, ""), STATUS_NOT_COMPILED);
    static const char *const others[] = {"g++", " clang++  -DEXTRA=1 ", "clang++ -fuse-ld=lld", "g++ -fuse-ld=gold"};
    static const char *const needs[] = {"g++", "clang++", "ld.lld", "ld.gold"};
    int ran = 0;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char *there = rt_process_find(needs[i]);
        bool runs = there != NULL;
        free(there);
        if (!runs) continue;
        setenv("CXX", others[i], 1);
        if (host_bench_build(&bench, "NG_KERNEL(k) { barrier(1); }\n") != STATUS_OK)
            fail_msg("%s: %s", others[i], host_bench_why(&bench));
        assert_int_equal(host_bench_launch(&bench, "k", 2, 64, 0, NULL), STATUS_OK);
        ran++;
    }
    printf("# %d compilers and linkers\n", ran);
    if (own)
        setenv("CXX", own, 1);
    else
        unsetenv("CXX");
    assert_int_equal(count_entries(*state), 0);
    host_bench_close(&bench);
}

/* Killed in the middle of a build, the process leaves a compiler that ends by itself and removes its files. */
static void test_killed(void **state) {
    (void)state;
    for (long ms = 5; ms <= 85; ms += 20) {
        const char *argv[] = {"/proc/self/exe", "build", NULL};
        RtChild child;
        assert_int_equal(rt_process_start(&child, argv, -1, -1), 0);
        nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
        kill(child.pid, SIGKILL);
        assert_int_equal(rt_process_wait(&child), 0);
        rt_process_release(&child);
        for (int i = 0; i < 500 && count_entries(*state); i++) nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        assert_int_equal(count_entries(*state), 0);
    }
}

int main(int argc, char **argv) {
    (void)argv;
    if (argc == 2) {
        HostBench bench;
        host_bench_open(&bench, (RtHostOptions){.workers = 1});
        Status status = host_bench_build(&bench, "#include <algorithm>\nNG_KERNEL(k) {}\n");
        host_bench_close(&bench);
        return status == STATUS_OK ? 0 : 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_many, use_folder, drop_folder),
        cmocka_unit_test_setup_teardown(test_errors, use_folder, drop_folder),
        cmocka_unit_test_setup_teardown(test_compilers, use_folder, drop_folder),
        cmocka_unit_test_setup_teardown(test_killed, use_folder, drop_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
