/* NVRTC and cubins without a GPU: binaries for each architecture, the log of a text that does not compile, facts read
 * from a cubin, damaged cubins. Skipped where there is no NVRTC. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/device.h"
#include "tests/support/nvrtc.h"

#include <stdlib.h>
#include <string.h>

static const char text[] = "extern \"C\" __global__ void small(float *p, int n) { p[n] = 1.0f; }\n"
                           "extern \"C\" __global__ void frame(float *p, int n) {\n"
                           "    float a[64];\n"
                           "    for (int i = 0; i < 64; i++) a[i] = p[i * n];\n"
                           "    p[0] = a[n] + a[n + 1];\n"
                           "    for (int i = 0; i < 64; i++) a[i] += p[i * n + 1];\n"
                           "    p[1] = a[p[2] > 0 ? n : 63 - n];\n"
                           "}\n";

static int setup(void **state) {
    *state = ir_job_create(NULL);
    return *state == NULL;
}

static int teardown(void **state) {
    ir_job_free(*state);
    return 0;
}

static Status compile(Job *job, const char *source, int arch, RtBinary kind, char **bytes, size_t *count, Text *why) {
    Source made = {.device_text = source, .device_count = strlen(source)};
    *why = ir_text(job);
    return rt_nvrtc_compile(&made, arch, kind, bytes, count, why);
}

static void test_cubins(void **state) {
    static const int archs[] = {80, 90, 100};
    Text why;
    char *bytes;
    size_t count;
    NEEDS_NVRTC();
    for (size_t a = 0; a < sizeof archs / sizeof *archs; a++) {
        assert_int_equal(compile(*state, text, archs[a], RT_CUBIN, &bytes, &count, &why), STATUS_OK);
        assert_int_equal(why.count, 0);
        RtFacts small, frame, none;
        assert_true(rt_cubin_facts(bytes, count, "small", &small));
        assert_true(rt_cubin_facts(bytes, count, "frame", &frame));
        assert_false(rt_cubin_facts(bytes, count, "smal", &none));
        assert_in_range(small.registers, 4, 32);
        assert_int_equal(small.local_bytes, 0);
        assert_in_range(frame.registers, 4, 255);
        assert_true(frame.local_bytes >= 256);
        for (size_t cut = 0; cut < count; cut += 97) { /* a copy of that size, so that a sanitizer sees beyond */
            char *part = malloc(cut + 1);
            memcpy(part, bytes, cut);
            (void)rt_cubin_facts(part, cut, "frame", &none);
            free(part);
        }
        for (size_t i = 0; i < count; i += 13) {
            char held = bytes[i];
            bytes[i] = (char)(held ^ 0x5a);
            (void)rt_cubin_facts(bytes, count, "frame", &none);
            bytes[i] = held;
        }
        free(bytes);
    }
}

static void test_ptx(void **state) {
    Text why;
    char *bytes;
    size_t count;
    NEEDS_NVRTC();
    assert_int_equal(compile(*state, text, 90, RT_PTX, &bytes, &count, &why), STATUS_OK);
    assert_non_null(strstr(bytes, ".target sm_90"));
    assert_int_equal(strlen(bytes), count);
    free(bytes);
}

static void test_errors(void **state) {
    Text why;
    char *bytes;
    size_t count;
    NEEDS_NVRTC();
    assert_int_equal(
        compile(*state, "extern \"C\" __global__ void k() { missing_word(); }", 90, RT_CUBIN, &bytes, &count, &why),
        STATUS_NOT_COMPILED);
    assert_null(bytes);
    assert_non_null(strstr(ir_text_string(&why), "missing_word"));
    assert_non_null(strstr(ir_text_string(&why), "sm_90"));
    assert_int_equal(compile(*state, text, 1, RT_CUBIN, &bytes, &count, &why), STATUS_NOT_COMPILED);
    assert_true(why.count > 0);
}

/* The log is kept when the text compiles. */
static void test_warnings(void **state) {
    Text why;
    char *bytes;
    size_t count;
    NEEDS_NVRTC();
    assert_int_equal(
        compile(*state, "extern \"C\" __global__ void k() { int never_read; }", 90, RT_CUBIN, &bytes, &count, &why),
        STATUS_OK);
    assert_non_null(strstr(ir_text_string(&why), "never_read"));
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cubins, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ptx, setup, teardown),
        cmocka_unit_test_setup_teardown(test_errors, setup, teardown),
        cmocka_unit_test_setup_teardown(test_warnings, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
