/* Child programs: what they see, what is captured, how they end. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Runs `sh -c script`; the child is released, what it said is the caller's. */
static char *run(const char *script, int input, int extra, RtChild *child) {
    char *sh = rt_process_find("sh");
    assert_non_null(sh);
    const char *argv[] = {sh, "-c", script, NULL};
    assert_int_equal(rt_process_start(child, argv, input, extra), 0);
    assert_int_equal(rt_process_wait(child), 0);
    char *said = rt_process_output(child, 1 << 22);
    assert_non_null(said);
    rt_process_release(child);
    rt_process_release(child); /* twice does no harm */
    free(sh);
    return said;
}

static void test_output_and_code(void **state) {
    (void)state;
    RtChild child;
    int input = rt_memory_file();
    assert_true(input > 2);
    assert_int_equal(rt_write_all(input, "in", 2), 0);
    char *said = run("cat; echo out; echo err >&2; exit 7", input, -1, &child);
    assert_string_equal(said, "inout\nerr\n");
    assert_int_equal(child.code, 7);
    assert_int_equal(child.signal, 0);
    free(said);
    close(input);
    said = run("cat; head -c 3000000 /dev/zero | tr '\\0' x", -1, -1, &child); /* far more than a pipe holds */
    assert_int_equal(strlen(said), 3000000);
    assert_int_equal(strspn(said, "x"), 3000000);
    free(said);
}

static void test_extra_descriptor(void **state) {
    (void)state;
    RtChild child;
    int extra = rt_memory_file();
    free(run("echo result >/proc/self/fd/3", -1, extra, &child));
    char bytes[8] = "";
    assert_int_equal(pread(extra, bytes, sizeof bytes, 0), 7);
    assert_string_equal(bytes, "result\n");
    close(extra);
}

/* Neither descriptors nor signal settings of this process reach the child, and its own are left as they were. */
static void test_isolation(void **state) {
    (void)state;
    int leaky = open("/dev/null", O_RDONLY); /* without O_CLOEXEC, as applications do */
    signal(SIGPIPE, SIG_IGN);
    sigset_t blocked, before, after;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    RtChild child;
    char *said = run("exec ls /proc/self/fd", -1, -1, &child);
    assert_string_equal(said, "0\n1\n2\n3\n"); /* 3 is the folder that ls reads */
    free(said);
    said = run("exec sed -n 's/^Sig\\(Blk\\|Ign\\):\\t/0x/p' /proc/self/status", -1, -1, &child);
    char *end = said;
    assert_int_equal(strtoull(end, &end, 16), 0);
    assert_int_equal(strtoull(end, &end, 16) & 0x7fffffff, 0); /* 32 and 33 are the C library's own */
    assert_string_equal(end, "\n");
    free(said);
    sigprocmask(SIG_SETMASK, &before, &after);
    assert_true(sigismember(&after, SIGTERM));
    assert_ptr_equal(signal(SIGPIPE, SIG_DFL), SIG_IGN);
    close(leaky);
}

static void test_ends(void **state) {
    (void)state;
    RtChild child;
    free(run("kill -TERM $$", -1, -1, &child));
    assert_int_equal(child.signal, SIGTERM);
    assert_int_equal(child.code, -1);
    signal(SIGCHLD, SIG_IGN); /* nobody learns the code then; waiting still ends */
    free(run("exit 3", -1, -1, &child));
    assert_int_equal(child.code, 0);
    signal(SIGCHLD, SIG_DFL);
    char *sleep_path = rt_process_find("sleep");
    const char *argv[] = {sleep_path, "1000", NULL};
    assert_int_equal(rt_process_start(&child, argv, -1, -1), 0);
    pid_t pid = child.pid;
    rt_process_release(&child);
    assert_int_equal(kill(pid, 0), -1);
    assert_int_equal(errno, ESRCH);
    free(sleep_path);
    const char *missing[] = {"/nonexistent/program", NULL};
    assert_int_equal(rt_process_start(&child, missing, -1, -1), ENOENT);
    rt_process_release(&child);
}

static void test_find(void **state) {
    (void)state;
    assert_null(rt_process_find(""));
    assert_null(rt_process_find("no-such-program-at-all"));
    assert_null(rt_process_find("/etc/passwd")); /* not executable */
    assert_null(rt_process_find("/usr"));        /* a folder */
    char *sh = rt_process_find("/bin/sh");
    assert_string_equal(sh, "/bin/sh");
    free(sh);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_output_and_code),
        cmocka_unit_test(test_extra_descriptor),
        cmocka_unit_test(test_isolation),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_find),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
