/* What one access of V neighbouring elements is on a GPU, read from PTX: the device bodies of loads and stores are not
 * those that run on the host device, so a byte that they forget would show on a GPU alone. For every dtype and width:
 * aligned, whole accesses of at most 16 bytes; else one an element; both of exactly the V elements. Skipped where there
 * is no NVRTC. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/device.h"
#include "tests/support/generate.h"
#include "tests/support/nvrtc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Traffic { /* of one kernel */
    int accesses, bytes;
} Traffic;

/* The type's suffix of a load or store: "nc.v2.u32" is 8 bytes. */
static int instruction_bytes(const char *suffix) {
    const char *end = strpbrk(suffix, " \t");
    int lanes = 1, bits = 0;
    assert_non_null(end);
    for (const char *at = suffix; at < end; at++) {
        if (at[-1] != '.') continue;
        if (*at == 'v') lanes = atoi(at + 1);
        if (strchr("busf", *at)) bits = atoi(at + 1);
    }
    assert_true(bits > 0);
    return lanes * bits / 8;
}

static Traffic traffic(const char *ptx, const char *instruction) {
    Traffic sum = {0};
    for (const char *at = ptx; (at = strstr(at, instruction)); at++) {
        sum.accesses++;
        sum.bytes += instruction_bytes(at + strlen(instruction));
    }
    return sum;
}

static void look_at(Job *job, const Unit *unit, uint32_t kernel, const char *of, bool wide, int bytes) {
    char *ptx = NULL;
    size_t count;
    Text why = ir_text(job);
    Status status = rt_nvrtc_compile_kernel(&unit->source, kernel, 90, RT_PTX, &ptx, &count, &why);
    if (status != STATUS_OK) fail_msg("%s", ir_text_string(&why));
    const char *const instructions[] = {"ld.global.", "st.global."};
    for (int i = 0; i < 2; i++) {
        Traffic seen = traffic(ptx, instructions[i]);
        int accesses = bytes <= 16 ? 1 : bytes / 16;
        if (seen.bytes != bytes || (wide && seen.accesses != accesses))
            fail_msg("%s, kernel %u: %s makes %d accesses of %d bytes in all, expected %d", of, kernel, instructions[i],
                     seen.accesses, seen.bytes, bytes);
    }
    free(ptx);
}

static void look_at_width(Job *job, void *state) {
    const int *choice = state;
    const DTypeRow *dtype = ir_dtype((DType)choice[0]);
    const char *text = ir_format(job,
                                 "graph: copy\ndims: {M: any}\ninputs: {x: \"%s[M, 64]\"}\nnodes: {y: x}\n"
                                 "outputs: {y: %s}\n",
                                 dtype->name, dtype->name);
    Unit unit;
    if (generate_text(job, &unit, text, NULL, ir_format(job, "vector=%d", choice[1])) != STATUS_OK)
        fail_msg("%s of %d: %s", dtype->name, choice[1], ir_job_report(job));
    bool wide = choice[1] > 1;
    assert_int_equal(unit.source.kernel_count, wide ? 2 : 1);
    for (uint32_t kernel = 0; kernel < unit.source.kernel_count; kernel++)
        look_at(job, &unit, kernel, ir_format(job, "%s, vector=%d", dtype->name, choice[1]), wide && kernel == 0,
                choice[1] * dtype->bytes);
}

static void test_widths(void **state) {
    (void)state;
    NEEDS_NVRTC();
    int cases = 0;
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        for (int vector = 1; vector * ir_dtype((DType)dtype)->bytes <= 32 && vector <= 16; vector *= 2, cases++) {
            int choice[] = {dtype, vector};
            Job *job = ir_job_create(NULL);
            if (ir_job_run(job, look_at_width, choice) != STATUS_OK) fail_msg("%s", ir_job_report(job));
            ir_job_free(job);
        }
    printf("# %d dtypes and widths\n", cases);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_widths)};
    return cmocka_run_group_tests_name("access_width", tests, NULL, NULL);
}
