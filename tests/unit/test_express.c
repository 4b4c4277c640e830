/* What the loop IR must express: each graph as text (tests/ir), read, found legal, printed back to the same bytes, and
 * evaluated at awkward sizes against a reference written out here in long double, apart from all tables of ir/. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/prog_case.h"
#include "tests/support/prog_run.h"

typedef long double Real;

/* References. at[i] is the i-th buf of the text. ---------------------------------------------------------------------
 */

static Real row_mean(const Real *x, int64_t count) {
    Real sum = 0;
    for (int64_t i = 0; i < count; i++) sum += x[i];
    return sum / (Real)count;
}

static Real row_variance(const Real *x, int64_t count) {
    Real mean = row_mean(x, count), sum = 0;
    for (int64_t i = 0; i < count; i++) sum += (x[i] - mean) * (x[i] - mean);
    return sum / (Real)count;
}

static void layer_norm(const RunMemory *m) {
    enum { X, GAMMA, BETA, EPS, Y };
    int64_t rows = m->dims[0], n = m->dims[1];
    for (int64_t r = 0; r < rows; r++) {
        const Real *x = m->at[X] + r * n;
        Real mean = row_mean(x, n), rstd = 1 / sqrtl(row_variance(x, n) + m->at[EPS][0]);
        for (int64_t c = 0; c < n; c++) m->at[Y][r * n + c] = (x[c] - mean) * rstd * m->at[GAMMA][c] + m->at[BETA][c];
    }
}

static void layer_norm_bwd(const RunMemory *m) {
    enum { X, DY, W, MEAN, RSTD, DX, DW, DB };
    int64_t rows = m->dims[0], n = m->dims[1];
    for (int64_t c = 0; c < n; c++) m->at[DW][c] = m->at[DB][c] = 0;
    for (int64_t r = 0; r < rows; r++) {
        const Real *x = m->at[X] + r * n, *dy = m->at[DY] + r * n;
        Real mean = m->at[MEAN][r], rstd = m->at[RSTD][r], c1 = 0, c2 = 0;
        for (int64_t c = 0; c < n; c++) {
            Real xhat = (x[c] - mean) * rstd;
            c1 += dy[c] * m->at[W][c] * xhat / (Real)n;
            c2 += dy[c] * m->at[W][c] / (Real)n;
            m->at[DW][c] += dy[c] * xhat;
            m->at[DB][c] += dy[c];
        }
        for (int64_t c = 0; c < n; c++)
            m->at[DX][r * n + c] = (dy[c] * m->at[W][c] - (x[c] - mean) * rstd * c1 - c2) * rstd;
    }
}

/* RMSNorm's backward: dx, and dw summed over the rows. part is what a mean multiplies its sum by. */
static void rms_norm_rows_bwd(const RunMemory *m, int64_t n, Real part, const int *at) {
    const Real *x = m->at[at[0]], *dy = m->at[at[1]], *w = m->at[at[2]];
    Real *dx = m->at[at[4]], *dw = m->at[at[5]];
    for (int64_t c = 0; c < n; c++) dw[c] = 0;
    for (int64_t r = 0; r < m->dims[0]; r++, x += n, dy += n, dx += n) {
        Real rstd = m->at[at[3]][r], dot = 0;
        for (int64_t c = 0; c < n; c++) {
            dot += dy[c] * w[c] * x[c] * rstd;
            dw[c] += dy[c] * x[c] * rstd;
        }
        for (int64_t c = 0; c < n; c++) dx[c] = (dy[c] * w[c] - x[c] * rstd * dot * part) * rstd;
    }
}

static void add_rms_norm_bwd(const RunMemory *m) {
    enum { H, DY, DH, W, RSTD, DX, DRES, DH_SUM, DW };
    int64_t n = m->dims[1];
    rms_norm_rows_bwd(m, n, 1 / (Real)n, (const int[]){H, DY, W, RSTD, DX, DW});
    for (int64_t i = 0; i < m->dims[0] * n; i++) m->at[DRES][i] = m->at[DH_SUM][i] = m->at[DX][i] + m->at[DH][i];
}

/* The dumps hold 1/768 as the f32 that it was folded to. */
static void rms_norm_bwd(const RunMemory *m) {
    enum { X, DY, W, RSTD, DX, DW };
    rms_norm_rows_bwd(m, 768, 1.0f / 768, (const int[]){X, DY, W, RSTD, DX, DW});
}

static void softmax_bwd(const RunMemory *m) {
    enum { Y, DY, DX };
    int64_t rows = m->dims[0], n = m->dims[1];
    for (int64_t r = 0; r < rows; r++) {
        const Real *y = m->at[Y] + r * n, *dy = m->at[DY] + r * n;
        Real dot = 0;
        for (int64_t c = 0; c < n; c++) dot += y[c] * dy[c];
        for (int64_t c = 0; c < n; c++) m->at[DX][r * n + c] = y[c] * (dy[c] - dot);
    }
}

/* Along elements a stride apart. */
static void softmax_line(const Real *x, Real *y, int64_t count, int64_t stride) {
    Real total = 0;
    for (int64_t i = 0; i < count; i++) total += expl(x[i * stride]);
    for (int64_t i = 0; i < count; i++) y[i * stride] = expl(x[i * stride]) / total;
}

static void softmax_mid(const RunMemory *m) {
    int64_t batch = m->dims[0], s = m->dims[1], channels = m->dims[2];
    for (int64_t b = 0; b < batch; b++)
        for (int64_t c = 0; c < channels; c++) {
            int64_t first = b * s * channels + c;
            softmax_line(m->at[0] + first, m->at[1] + first, s, channels);
        }
}

static void online_softmax(const RunMemory *m) {
    enum { X, Y, TOP };
    int64_t rows = m->dims[0], n = m->dims[1];
    for (int64_t r = 0; r < rows; r++) {
        softmax_line(m->at[X] + r * n, m->at[Y] + r * n, n, 1);
        Real top = -INFINITY;
        for (int64_t c = 0; c < n; c++)
            if (m->at[X][r * n + c] > top) top = m->at[X][r * n + c];
        m->at[TOP][r] = top;
    }
}

static void welford(const RunMemory *m) {
    enum { X, Y, MEAN, VAR };
    int64_t rows = m->dims[0], n = m->dims[1];
    for (int64_t r = 0; r < rows; r++) {
        const Real *x = m->at[X] + r * n;
        m->at[MEAN][r] = row_mean(x, n);
        m->at[VAR][r] = row_variance(x, n);
        for (int64_t c = 0; c < n; c++) m->at[Y][r * n + c] = (x[c] - m->at[MEAN][r]) / sqrtl(m->at[VAR][r] + 0.001f);
    }
}

static void group_norm(const RunMemory *m) {
    enum { X, W, BIAS, Y };
    int64_t batch = m->dims[0], s = m->dims[1], count = 4 * s;
    for (int64_t group = 0; group < batch * 3; group++) {
        const Real *x = m->at[X] + group * count;
        Real mean = row_mean(x, count), rstd = 1 / sqrtl(row_variance(x, count) + 1e-5f);
        for (int64_t i = 0; i < count; i++) {
            int64_t channel = group % 3 * 4 + i / s;
            m->at[Y][group * count + i] = (x[i] - mean) * rstd * m->at[W][channel] + m->at[BIAS][channel];
        }
    }
}

static void fp8_block(const RunMemory *m) {
    enum { X, Q, S };
    for (int64_t block = 0; block < m->dims[0] * 5; block++) {
        const Real *x = m->at[X] + block * 24;
        Real top = 0;
        for (int j = 0; j < 24; j++) top = fabsl(x[j]) > top ? fabsl(x[j]) : top;
        Real scale = top / 448 > (float)(1.0 / (448 * 512)) ? top / 448 : (float)(1.0 / (448 * 512));
        m->at[S][block] = scale;
        for (int j = 0; j < 24; j++) m->at[Q][block * 24 + j] = x[j] / scale;
    }
}

static void rope(const RunMemory *m) {
    enum { X, COSINE, SINE, Y };
    for (int64_t t = 0; t < m->dims[0]; t++)
        for (int h = 0; h < 3; h++)
            for (int i = 0; i < 64; i++) {
                int64_t low = t * 384 + h * 128 + i, high = low + 64;
                Real cosine = m->at[COSINE][t * 64 + i], sine = m->at[SINE][t * 64 + i];
                m->at[Y][low] = m->at[X][low] * cosine - m->at[X][high] * sine;
                m->at[Y][high] = m->at[X][high] * cosine + m->at[X][low] * sine;
            }
}

/* To 8 significand bits, half to even; the data here is far from both ends of the exponent. */
static Real to_bf16(Real value) {
    int exponent;
    frexpl(value, &exponent);
    return value == 0 ? value : ldexpl(rintl(ldexpl(value, 8 - exponent)), exponent - 8);
}

static void mixed_weight(const RunMemory *m) {
    enum { X, W, Y };
    int64_t rows = m->dims[0], n = m->dims[1];
    for (int64_t r = 0; r < rows; r++) {
        const Real *x = m->at[X] + r * n;
        Real squares = 0;
        for (int64_t c = 0; c < n; c++) squares += x[c] * x[c];
        Real rstd = 1 / sqrtl(squares / (Real)n + 1e-6f);
        for (int64_t c = 0; c < n; c++) m->at[Y][r * n + c] = to_bf16(x[c] * rstd) * m->at[W][c];
    }
}

static void rank6(const RunMemory *m) {
    enum { X, Y, MEAN };
    int64_t c_count = m->dims[0], f_count = m->dims[1];
    for (int64_t i = 0; i < m->count[MEAN]; i++) m->at[MEAN][i] = 0;
    for (int pass = 0; pass < 2; pass++) {
        int64_t at = 0; /* row-major over a b c d e f */
        for (int a = 0; a < 3; a++)
            for (int b = 0; b < 3; b++)
                for (int64_t c = 0; c < c_count; c++)
                    for (int d = 0; d < 3; d++)
                        for (int e = 0; e < 2; e++)
                            for (int64_t f = 0; f < f_count; f++, at++) {
                                Real *mean = &m->at[MEAN][(a * c_count + c) * 2 + e];
                                if (pass == 0)
                                    *mean += m->at[X][at] / (Real)(9 * f_count);
                                else
                                    m->at[Y][at] = m->at[X][at] - *mean;
                            }
    }
}

static void batch_norm_stats(const RunMemory *m) {
    enum { X, RUNNING, MEAN, VAR, NEW_RUNNING };
    int64_t batch = m->dims[0], channels = m->dims[1], p = m->dims[2], count = batch * p;
    for (int64_t c = 0; c < channels; c++) {
        Real sum = 0, squares = 0;
        for (int64_t i = 0; i < count; i++) sum += m->at[X][(i / p * channels + c) * p + i % p];
        Real mean = sum / (Real)count;
        for (int64_t i = 0; i < count; i++) {
            Real d = m->at[X][(i / p * channels + c) * p + i % p] - mean;
            squares += d * d;
        }
        m->at[MEAN][c] = mean;
        m->at[VAR][c] = squares / (Real)count;
        m->at[NEW_RUNNING][c] = m->at[RUNNING][c] * 0.9f + mean * 0.1f;
    }
}

static void adaln_dscale(const RunMemory *m) {
    enum { DY, XHAT, DSCALE };
    int64_t batch = m->dims[0], s = m->dims[1], n = m->dims[2];
    for (int64_t i = 0; i < batch * n; i++) m->at[DSCALE][i] = 0;
    for (int64_t i = 0; i < batch * s * n; i++) m->at[DSCALE][i / (s * n) * n + i % n] += m->at[DY][i] * m->at[XHAT][i];
}

static void gather(const RunMemory *m) {
    enum { TABLE, TOKEN, SCALE, Y };
    int64_t n = m->dims[1];
    for (int64_t t = 0; t < m->dims[0]; t++) {
        int64_t token = m->whole[TOKEN][t];
        const Real *row = m->at[TABLE] + token * n;
        Real squares = m->at[SCALE][token] * m->at[SCALE][token];
        for (int64_t c = 0; c < n; c++) squares += row[c] * row[c];
        for (int64_t c = 0; c < n; c++) m->at[Y][t * n + c] = row[c] / sqrtl(squares);
    }
}

/* ---------------------------------------------------------------------------------------------------------------- */

#define ROWS                                                                                                           \
    {                                                                                                                  \
        {1, 1}, {3, 7}, {5, 129}, {37, 33}, {2, 1017}, { 0, 8 }                                                        \
    }
#define CUBES                                                                                                          \
    {                                                                                                                  \
        {1, 1, 1}, {2, 5, 3}, {3, 33, 7}, {1, 129, 2}, {5, 3, 31}, { 0, 3, 4 }                                         \
    }
#define LINES                                                                                                          \
    {                                                                                                                  \
        {1}, {2}, {3}, {37}, { 0 }                                                                                     \
    }
#define SIZES 6

typedef struct Graphs {
    const char *path;
    Reference *reference;
    uint32_t phases; /* of the first nest */
    int64_t dims[SIZES][3];
} Graphs;

static const Graphs graphs[] = {
    {"tests/golden/rms_norm_bwd.classify.ir", rms_norm_bwd, 2, LINES},
    {"tests/golden/rms_norm_bwd.partial.ir", rms_norm_bwd, 2, LINES},
    {"tests/golden/rms_norm_bwd.reorder.ir", rms_norm_bwd, 2, LINES},
    {"tests/golden/rms_norm_bwd.fuse.ir", rms_norm_bwd, 2, LINES},
    {"tests/ir/layer_norm.ir", layer_norm, 3, ROWS},
    {"tests/ir/layer_norm_bwd.ir", layer_norm_bwd, 2, ROWS},
    {"tests/ir/add_rms_norm_bwd.ir", add_rms_norm_bwd, 2, ROWS},
    {"tests/ir/softmax_bwd.ir", softmax_bwd, 2, ROWS},
    {"tests/ir/softmax_mid.ir", softmax_mid, 3, CUBES},
    {"tests/ir/group_norm.ir", group_norm, 3, ROWS},
    {"tests/ir/fp8_block.ir", fp8_block, 2, LINES},
    {"tests/ir/rope.ir", rope, 1, LINES},
    {"tests/ir/online_softmax.ir", online_softmax, 2, ROWS},
    {"tests/ir/welford.ir", welford, 2, ROWS},
    {"tests/ir/mixed_weight.ir", mixed_weight, 2, ROWS},
    {"tests/ir/rank6.ir", rank6, 2, ROWS},
    {"tests/ir/batch_norm_stats.ir", batch_norm_stats, 3, CUBES},
    {"tests/ir/adaln_dscale.ir", adaln_dscale, 1, CUBES},
    {"tests/ir/gather.ir", gather, 2, ROWS},
};

typedef struct Run {
    const Graphs *graph;
    Random *random;
    int64_t compared;
} Run;

/* One graph at all its sizes; what is summed over parts with 1, 3 and as many parts as rows. */
static void run_graph(Job *job, void *state) {
    Run *run = state;
    const Graphs *graph = run->graph;
    const Prog *prog = case_golden(job, graph->path);
    uint32_t phases;
    ir_nest_phases(job, &prog->nests.at[0], &phases);
    assert_int_equal(phases, graph->phases);
    for (int s = 0; s < SIZES; s++) {
        const int64_t *dims = graph->dims[s];
        const int64_t counts[] = {1, 3, dims[0] > 1 ? dims[0] : 1};
        for (int p = 0; p < (prog->parts.count ? 3 : 1); p++) {
            const int64_t parts[] = {counts[p], counts[p]};
            const RunMemory memory = run_memory(job, prog, dims, parts, run->random, 29);
            graph->reference(&memory);
            const EvalBuf *bufs = run_prog(job, prog, &memory, parts);
            const char *what = ir_format(job, "%s at %lld %lld %lld, %lld parts", graph->path, (long long)dims[0],
                                         (long long)dims[1], (long long)dims[2], (long long)parts[0]);
            run->compared += run_compare(prog, &memory, bufs, what);
        }
    }
}

static void each_graph_is_what_its_reference_says(void **unused) {
    (void)unused;
    Random random = {random_seed()};
    int64_t compared = 0;
    for (size_t g = 0; g < sizeof graphs / sizeof *graphs; g++) {
        Job *job = ir_job_create(NULL);
        Run run = {&graphs[g], &random, 0};
        if (ir_job_run(job, run_graph, &run) != STATUS_OK) fail_msg("%s\n%s", graphs[g].path, ir_job_report(job));
        assert_true(run.compared > 0);
        compared += run.compared;
        ir_job_free(job);
    }
    printf("# %lld elements compared\n", (long long)compared);
}

/* The four dumps on the same data: every pair of elements is the same but for one rounding, as sums over parts are
 * added in another order. */
static void dumps_agree(Job *job, void *state) {
    const Random start = {*(const uint64_t *)state};
    enum { DX = 4, DW, DUMPS = 4 };
    for (int s = 0; s < SIZES; s++) {
        const int64_t *dims = graphs[0].dims[s];
        const EvalBuf *first = NULL;
        const int64_t counts[] = {1, 3, dims[0] > 1 ? dims[0] : 1};
        for (int run = 0; run < DUMPS * 3; run++) {
            const Prog *prog = case_golden(job, graphs[run / 3].path);
            Random random = start;
            const RunMemory memory = run_memory(job, prog, dims, &counts[run % 3], &random, 1);
            const EvalBuf *bufs = run_prog(job, prog, &memory, &counts[run % 3]);
            if (!first) first = bufs;
            for (uint32_t b = DX; b <= DW; b++)
                for (int64_t i = 0; i < memory.count[b]; i++)
                    assert_true(ir_element_passes(prog->bufs.at[b].dtype, bufs[b].number[i], first[b].number[i], 0));
        }
    }
}

static void the_worked_dumps_are_one_program(void **unused) {
    (void)unused;
    uint64_t seed = random_seed();
    Job *job = ir_job_create(NULL);
    if (ir_job_run(job, dumps_agree, &seed) != STATUS_OK) fail_msg("%s", ir_job_report(job));
    ir_job_free(job);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_graph_is_what_its_reference_says),
        cmocka_unit_test(the_worked_dumps_are_one_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
