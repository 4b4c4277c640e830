/* Prog evaluated: the worked rewrite's four dumps give what a loop here gives, for any number of parts; cut nests equal
 * whole ones; broken Progs stop. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ir/eval.h"
#include "tests/support/prog_case.h"
#include "tests/support/random.h"

static uint64_t seed;

static EvalBuf *find_buf(const Prog *prog, EvalBuf *bufs, const char *name) {
    for (uint32_t i = 0; i < prog->bufs.count; i++) {
        if (!strcmp(prog->bufs.at[i].name, name)) return &bufs[i];
    }
    return NULL;
}

static double *fill_buf(Job *job, Random *random, const Prog *prog, EvalBuf *bufs, const char *name, DType dtype,
                        int64_t span) {
    EvalBuf *buf = find_buf(prog, bufs, name);
    assert_non_null(buf);
    buf->span = span;
    buf->number = IR_NEW_ARRAY(job, double, (size_t)span);
    for (int64_t i = 0; i < span; i++) buf->number[i] = ir_round(dtype, random_normal(random));
    return buf->number;
}

/* dx and dw of RMSNorm, in long double, against buffers dx (bf16) and dw (f32). */
static void check_rms_norm_bwd(const Prog *prog, EvalBuf *bufs, int64_t m, const double *x, const double *dy,
                               const double *w, const double *rstd) {
    const int64_t n = 768;
    const EvalBuf *dx = find_buf(prog, bufs, "dx"), *dw = find_buf(prog, bufs, "dw");
    long double columns[768] = {0}, sizes[768] = {0};
    for (int64_t r = 0; r < m; r++) {
        long double c1 = 0;
        for (int64_t c = 0; c < n; c++) {
            long double xhat = (long double)x[r * n + c] * (long double)rstd[r];
            c1 += (long double)dy[r * n + c] * (long double)w[c] * xhat;
            columns[c] += (long double)dy[r * n + c] * xhat;
            sizes[c] += fabsl((long double)dy[r * n + c] * xhat);
        }
        c1 *= (long double)(double)(1.0f / 768);
        for (int64_t c = 0; c < n; c++) {
            long double xhat = (long double)x[r * n + c] * (long double)rstd[r];
            double want = (double)(((long double)dy[r * n + c] * (long double)w[c] - xhat * c1) * (long double)rstd[r]);
            double got = dx->number[r * n + c];
            assert_true(fabs(ir_round(DTYPE_BF16, want) - got) <= dx->bound[r * n + c]);
            assert_true(dx->bound[r * n + c] <= 1.01 * ir_ulp(DTYPE_BF16, fabs(want) * 1.01) + 0.02);
        }
    }
    for (int64_t c = 0; c < n; c++) {
        assert_true(fabsl(columns[c] - (long double)dw->number[c]) <= (long double)dw->bound[c]);
        /* not beyond adds over all rows and all parts, and the terms' own two products */
        assert_true((long double)dw->bound[c] <= ((long double)m + 50 + 4) * 0x1p-24L * sizes[c] * 1.01L);
    }
}

static void worked_rewrite(Job *job, void *state) {
    static const char *const dumps[] = {"classify", "partial", "reorder", "fuse"};
    Random *random = state;
    const int64_t rows[] = {1, 5, 37, 0};
    for (size_t d = 0; d < 4; d++) {
        for (size_t k = 0; k < 4; k++) {
            size_t count;
            char *text = case_file(job, ir_format(job, "tests/golden/rms_norm_bwd.%s.ir", dumps[d]), &count);
            Prog *prog = case_read_legal(job, text, count);
            int64_t m = rows[k], all_parts[] = {1, 3, m ? m : 2, 50};
            for (size_t p = 0; p < 4; p++) {
                EvalBuf *bufs = IR_NEW_ARRAY(job, EvalBuf, prog->bufs.count);
                double *x = fill_buf(job, random, prog, bufs, "x", DTYPE_BF16, m * 768);
                double *dy = fill_buf(job, random, prog, bufs, "dy", DTYPE_BF16, m * 768);
                double *w = fill_buf(job, random, prog, bufs, "w", DTYPE_F32, 768);
                double *rstd = fill_buf(job, random, prog, bufs, "rstd", DTYPE_F32, m);
                ir_eval_prog(job, prog, &m, &all_parts[p], bufs);
                check_rms_norm_bwd(prog, bufs, m, x, dy, w, rstd);
            }
        }
    }
}

/* The reader's text, run on buffers that are filled with numbers at random. */
static EvalBuf *run_text(Job *job, Random *random, const char *text, const int64_t *dims, Prog **prog) {
    *prog = case_read(job, text, strlen(text));
    EvalBuf *bufs = IR_NEW_ARRAY(job, EvalBuf, (*prog)->bufs.count);
    for (uint32_t i = 0; i < (*prog)->bufs.count; i++) {
        const Buf *buf = &(*prog)->bufs.at[i];
        if (buf->kind != BUF_IN) continue;
        int64_t span = 1;
        for (uint32_t d = 0; d < buf->rank; d++) {
            span *= buf->extent[d].kind == SIZE_DIM ? dims[buf->extent[d].value] : buf->extent[d].value;
        }
        fill_buf(job, random, *prog, bufs, buf->name, buf->dtype, span);
    }
    ir_eval_prog(job, *prog, dims, NULL, bufs);
    return bufs;
}

/* Large enough to be cut: along rows; along columns where rows are consumed; and a column value is stored once. */
static void cut_nests(Job *job, void *state) {
    static const char text[] = "prog p\ndim M any\nbuf x f32 [M,300] in\nbuf w f32 [300] in\nbuf y f32 [M,300] out\n"
                               "buf s f32 [300] out\nbuf v f32 [300] out\nbuf t f32 [M] out\n"
                               "nest a (r:M | c:300) ROW {\n  %0 f32<rc> = load x[0 + r*300 + c*1]\n"
                               "  %1 f32<c> = load w[0 + c*1]\n  %2 f32<rc> = mul %0 %1\n"
                               "  store y[0 + r*300 + c*1] %2\n  store v[0 + c*1] %1\n"
                               "  %3 f32<r> = reduce max {c} %2\n  store t[0 + r*1] %3\n}\n"
                               "nest b (c:300 | r:M) OUTER {\n  %0 f32<cr> = load y[0 + c*1 + r*300]\n"
                               "  %1 f32<c> = reduce add {r} %0\n  store s[0 + c*1] %1\n}\n";
    Prog *prog;
    int64_t m = 2000;
    EvalBuf *bufs = run_text(job, state, text, &m, &prog);
    const EvalBuf *x = find_buf(prog, bufs, "x"), *w = find_buf(prog, bufs, "w"), *y = find_buf(prog, bufs, "y");
    const EvalBuf *s = find_buf(prog, bufs, "s"), *v = find_buf(prog, bufs, "v"), *t = find_buf(prog, bufs, "t");
    for (int64_t c = 0; c < 300; c++) {
        double sum = 0;
        for (int64_t r = 0; r < m; r++) {
            double product = x->number[r * 300 + c] * w->number[c];
            assert_true(y->number[r * 300 + c] == product);
            sum += product;
        }
        assert_true(fabs(s->number[c] - sum) <= 1e-9 * (double)m);
        assert_true(v->number[c] == w->number[c] && v->bound[c] == 0);
    }
    for (int64_t r = 0; r < m; r++) {
        double top = -(double)INFINITY;
        for (int64_t c = 0; c < 300; c++) top = fmax(top, y->number[r * 300 + c]);
        assert_true(t->number[r] == top);
    }
}

typedef struct Broken {
    Random random;
    const char *text;
} Broken;

static void run_broken(Job *job, void *state) {
    Broken *broken = state;
    Prog *prog;
    int64_t m = 4;
    static const char head[] = "prog p\ndim M any\nbuf x f32 [M] in\nbuf y f32 [M] out\nbuf t f32 [M] tmp\n";
    run_text(job, &broken->random, ir_format(job, "%s%s", head, broken->text), &m, &prog);
}

static void broken_progs_stop(void **unused) {
    (void)unused;
    static const struct {
        const char *body, *wanted;
    } cases[] = {
        {"nest a (r:M |) POINTWISE {\n %0 f32<r> = load x[0 + r*1]\n store y[0 + r*0] %0\n}\n", "twice"},
        {"nest a (r:M |) POINTWISE {\n %0 f32<r> = load x[1 + r*1]\n store y[0 + r*1] %0\n}\n", "x[4]"},
        {"nest a (r:M |) POINTWISE {\n %0 f32<r> = load x[-1 + r*1]\n store y[0 + r*1] %0\n}\n", "x[-1]"},
        {"nest a (r:M |) POINTWISE {\n %0 f32<r> = load x[0 + r*1]\n store y[0 + r*2] %0\n}\n", "y[6]"},
        {"nest a (r:M |) POINTWISE {\n %0 f32<r> = load t[0 + r*1]\n store y[0 + r*1] %0\n}\n", "never written"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Job *job = ir_job_create(NULL);
        Broken broken = {{seed}, cases[i].body};
        assert_int_equal(ir_job_run(job, run_broken, &broken), STATUS_INTERNAL);
        const char *report = ir_job_report(job);
        if (!strstr(report, cases[i].wanted)) fail_msg("no '%s' in %s", cases[i].wanted, report);
        ir_job_free(job);
    }
}

static void run(void (*work)(Job *, void *)) {
    Random random = {seed};
    Job *job = ir_job_create(NULL);
    Status status = ir_job_run(job, work, &random);
    if (status) fail_msg("%s", ir_job_report(job));
    ir_job_free(job);
}
static void worked_rewrite_is_equal(void **unused) {
    (void)unused;
    run(worked_rewrite);
}
static void cut_nests_are_right(void **unused) {
    (void)unused;
    run(cut_nests);
}

int main(void) {
    seed = random_seed();
    const struct CMUnitTest tests[] = {cmocka_unit_test(worked_rewrite_is_equal), cmocka_unit_test(cut_nests_are_right),
                                       cmocka_unit_test(broken_progs_stop)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
