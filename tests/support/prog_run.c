/* See tests/support/prog_run.h. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "tests/support/prog_run.h"

static int64_t element_count(Job *job, const Prog *prog, const Buf *buf, const int64_t *dims, const int64_t *parts) {
    int64_t count = 1;
    for (uint8_t d = 0; d < buf->rank; d++) {
        int64_t extent;
        Poly poly = ir_size_poly(job, prog, buf->extent[d]);
        assert_true(ir_poly_eval(poly, dims, prog->dims.count, parts, prog->parts.count, &extent));
        count *= extent;
    }
    return count;
}

static void fill(const Buf *buf, Random *random, int64_t index_limit, long double *number, int64_t *integer) {
    double value = random_normal(random);
    switch (ir_dtype(buf->dtype)->kind) {
    case KIND_FLOAT: *number = ir_round(buf->dtype, buf->kind == BUF_SCALAR ? fabs(value) / 1024 : value); break;
    case KIND_INT: *integer = random_below(random, (uint32_t)index_limit); break;
    case KIND_BOOL: *integer = random_below(random, 2); break;
    }
}

RunMemory run_memory(Job *job, const Prog *prog, const int64_t *dims, const int64_t *parts, Random *random,
                     int64_t index_limit) {
    RunMemory memory = {.dims = dims};
    assert_true(prog->bufs.count <= RUN_BUFS);
    for (uint32_t b = 0; b < prog->bufs.count; b++) {
        const Buf *buf = &prog->bufs.at[b];
        int64_t count = element_count(job, prog, buf, dims, parts);
        memory.count[b] = count;
        memory.at[b] = IR_NEW_ARRAY(job, long double, (size_t)count);
        memory.whole[b] = IR_NEW_ARRAY(job, int64_t, (size_t)count);
        for (int64_t i = 0; i < count; i++) {
            memory.at[b][i] = NAN;
            if (buf->kind == BUF_IN || buf->kind == BUF_SCALAR)
                fill(buf, random, index_limit, &memory.at[b][i], &memory.whole[b][i]);
        }
    }
    return memory;
}

EvalBuf *run_prog(Job *job, const Prog *prog, const RunMemory *memory, const int64_t *parts) {
    EvalBuf *bufs = IR_NEW_ARRAY(job, EvalBuf, prog->bufs.count);
    for (uint32_t b = 0; b < prog->bufs.count; b++) {
        size_t count = (size_t)memory->count[b];
        bufs[b] = (EvalBuf){.span = memory->count[b],
                            .number = IR_NEW_ARRAY(job, double, count),
                            .bound = IR_NEW_ARRAY(job, double, count),
                            .integer = IR_NEW_ARRAY(job, int64_t, count)};
        for (size_t i = 0; i < count; i++) {
            bufs[b].number[i] = (double)memory->at[b][i];
            bufs[b].integer[i] = memory->whole[b][i];
        }
    }
    ir_eval_prog(job, prog, memory->dims, parts, bufs);
    return bufs;
}

/* The evaluator counts in double, and its bound is that of f32: so its own error is within the bound by 2^-29, and one
 * bit more for the functions of the C library. A bound that were merely generous would not show this. */
static bool is_close(const Buf *buf, double got, long double want, double bound) {
    if (isnan(got) || isnan(want)) return isnan(got) && isnan(want);
    return isfinite(bound) && fabsl(got - want) <= 0.5 * ir_ulp(buf->dtype, (double)want) + bound * 0x1p-28;
}

int64_t run_compare(const Prog *prog, const RunMemory *memory, const EvalBuf *bufs, const char *what) {
    int64_t compared = 0;
    for (uint32_t b = 0; b < prog->bufs.count; b++) {
        const Buf *buf = &prog->bufs.at[b];
        if (buf->kind != BUF_OUT) continue;
        for (int64_t i = 0; i < memory->count[b]; i++, compared++) {
            long double want = memory->at[b][i];
            double got = bufs[b].number[i], bound = bufs[b].bound[i];
            if (bound >= 0 && ir_element_passes(buf->dtype, got, (double)want, bound) &&
                is_close(buf, got, want, bound))
                continue;
            printf("got %a, wanted %a within %a\n", got, (double)want, bound);
            fail_msg("%s: %s[%lld]", what, buf->name, (long long)i);
        }
    }
    return compared;
}
