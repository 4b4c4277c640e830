/* Reductions across rows, and row and column reductions of one graph, that users of such kernels have reported as
 * wrong. Head of test_reports.c says how these tests are made. Data are drawn so that sums are exact in any order where
 * a test asks for equal numbers.
 *
 *   build/tests/test_reports_columns [--device=host|cuda] [--only=TEST] */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/report_bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const Way one_part = {"one part", "split=off", NULL, false}, parts = {"parts", "split=all", "finalize", false};

/* Multiples of 1/64 from -2 to 2: what bf16 holds exactly. */
static void draw_steps(Bench *bench, Trial *trial, const char *name) {
    const uint32_t t = trial_tensor(trial, name);
    const size_t each = ng_dtype_bytes(trial->dtype[t]);
    for (int64_t i = 0; i < trial->elements[t]; i++)
        ng_store(trial->dtype[t], (char *)trial->bytes[t] + (size_t)i * each,
                 ((double)random_below(&bench->random, 257) - 128) / 64);
}

static void draw_normal(Bench *bench, Trial *trial, const char *name) {
    const uint32_t t = trial_tensor(trial, name);
    for (int64_t i = 0; i < trial->elements[t]; i++) trial_set(trial, name, i, random_normal(&bench->random));
}

/* ---- identities ---- */

enum { WIDTH = 129 };

typedef struct Columns { /* of y = 2x + 0.25 */
    double sum[WIDTH], product[WIDTH], most[WIDTH], exponentials[WIDTH], size[WIDTH];
} Columns;

static void add_row(Columns *columns, const double *x, bool first) {
    for (int c = 0; c < WIDTH; c++) {
        const double y = 2 * x[c] + 0.25, square = -(y * y) - 1, e = exp(x[c]);
        if (first) columns->sum[c] = columns->exponentials[c] = 0, columns->product[c] = 1;
        columns->sum[c] += y;
        columns->product[c] *= x[c] == 2 ? 2 : x[c] == -2 ? 0.5 : 1;
        columns->exponentials[c] += e;
        columns->most[c] = first || square > columns->most[c] ? square : columns->most[c];
    }
}

static void compare_columns(Bench *bench, Trial *trial, int64_t rows, const char *what) {
    Columns columns = {0};
    double x[WIDTH], a[WIDTH], bound[WIDTH];
    draw_steps(bench, trial, "x");
    ng_text why;
    if (trial_launch(trial, rows < 100, &why)) fail_msg("%d rows, %s: %s", (int)rows, what, why.bytes);
    for (int64_t r = 0; r < rows; r++) {
        trial_get_row(trial, "x", r * WIDTH, WIDTH, x);
        add_row(&columns, x, r == 0);
        for (int c = 0; c < WIDTH; c++) a[c] = 2 * x[c] + 0.25;
        assert_true(trial_get(trial, "a", r) == row_most(a, WIDTH));
    }
    for (int c = 0; c < WIDTH; c++) bound[c] = ((double)rows + 4) * F32_UNIT * columns.exponentials[c];
    static const double none[WIDTH] = {0};
    for (int c = 0; c < WIDTH; c++) { /* exact */
        assert_true(trial_get(trial, "s", c) == columns.sum[c]);
        assert_true(trial_get(trial, "p", c) == columns.product[c]);
        assert_true(trial_get(trial, "m", c) == columns.most[c]);
    }
    trial_expect(trial, "e", 0, WIDTH, columns.exponentials, rows ? bound : none, what);
}

/* pytorch#195845: rows beyond the last were not there, but what a prologue made of their 0 was added all the same.
 * Nothing stands for an element outside but the identity of what is reduced: where the prologue maps 0 to 0.25, 1 and
 * -1, and for products and maxima. attorch#17, Liger#950: the rows that are left when a part's are whole. */
static void test_identity(void **state) {
    static const int64_t rows[] = {1, 63, 64, 65, 255, 257, 1023, 4097, 40961};
    Bench *bench = *state;
    const Way *const ways[] = {NULL, &one_part, &parts};
    for (int w = 0; w < 3; w++) {
        Trial trial = trial_open(bench, ways[w],
                                 "dims: {M: any, N: 129}\ninputs: {x: 'bf16[M, N]'}\n"
                                 "nodes: {y: 2 * x + 0.25, a: 'amax(y, 1)', s: 'sum(y, 0)', e: 'sum(exp(x), 0)',\n"
                                 "  p: 'prod(where(x == 2, 2.0, where(x == -2, 0.5, 1.0)), 0)',\n"
                                 "  m: 'amax(-(y * y) - 1, 0)'}\n"
                                 "outputs: {a: f32, s: f32, e: f32, p: f32, m: f32}");
        for (size_t r = 0; r < sizeof rows / sizeof *rows - bench->reduced; r++) {
            trial_size(&trial, &rows[r]);
            compare_columns(bench, &trial, rows[r], ways[w] ? ways[w]->name : "as it comes");
        }
        trial_close(&trial);
    }
}

/* Liger#950: sums of many ones, which are not exact in the dtype of the data. */
static void test_ones(void **state) {
    static const int64_t rows[] = {1, 257, 65537, 100000};
    Bench *bench = *state;
    Trial trial = trial_open(bench, NULL,
                             "dims: {M: any, N: 8}\ninputs: {x: 'bf16[M, N]'}\nnodes: {y: 'sum(x, 0)'}\n"
                             "outputs: {y: f32}");
    for (size_t r = 0; r < (bench->reduced ? 2 : sizeof rows / sizeof *rows); r++) {
        trial_size(&trial, &rows[r]);
        for (int64_t i = 0; i < rows[r] * 8; i++) trial_set(&trial, "x", i, 1);
        assert_int_equal(trial_launch(&trial, false, NULL), NG_OK);
        for (int c = 0; c < 8; c++) assert_true(trial_get(&trial, "y", c) == (double)rows[r]);
    }
    trial_close(&trial);
}

/* ---- accumulators ---- */

/* Accumulators of f32 whatever the dtype: f64 sums lose what is beyond 24 bits, integer sums are off above 2^24. */
static void test_accumulators(void **state) {
    enum { ROWS = 65536, COLUMNS = 64 };
    Bench *bench = *state;
    for (int w = 0; w < 2; w++) {
        Trial trial =
            trial_open(bench, w ? &parts : NULL,
                       "dims: {M: any, N: 64}\ninputs: {x: 'f64[M, N]', i: 'i32[M, N]'}\n"
                       "nodes: {s: 'sum(x, 0)', t: 'sum(i, 0)'}\noutputs: {s: f64, t: i64, u: {dtype: i32, of: t}}");
        const int64_t rows = bench->cuda ? ROWS : ROWS / 8;
        trial_size(&trial, &rows);
        double *x = trial.bytes[trial_tensor(&trial, "x")], sum[COLUMNS] = {0};
        int32_t *i = trial.bytes[trial_tensor(&trial, "i")];
        int64_t total[COLUMNS] = {0};
        for (int64_t k = 0; k < rows * COLUMNS; k++) {
            x[k] = 1 + (double)random_below(&bench->random, 16) * 0x1p-37; /* 1 and noise of 1e-10 */
            i[k] = (int32_t)random_below(&bench->random, 2000001) - 900000;
            sum[k % COLUMNS] += x[k]; /* of 2^16 rows: 53 bits at most, so exact in any order */
            total[k % COLUMNS] += i[k];
        }
        assert_int_equal(trial_launch(&trial, false, NULL), NG_OK);
        const double *s = trial.bytes[trial_tensor(&trial, "s")];
        const int64_t *t = trial.bytes[trial_tensor(&trial, "t")];
        const int32_t *u = trial.bytes[trial_tensor(&trial, "u")];
        for (int c = 0; c < COLUMNS; c++) {
            assert_true(s[c] == sum[c] && s[c] != (double)rows);
            assert_true(total[c] > 1 << 24 && t[c] == total[c] && u[c] == (int32_t)total[c]);
        }
        trial_close(&trial);
    }
}

/* pytorch#190796: sums over (N, H, W) and over (H, W) of one gradient. */
static void test_two_sums(void **state) {
    enum { B = 64, C = 128, P = 32 * 32 };
    Bench *bench = *state;
    const int64_t planes = bench->cuda ? B : bench->reduced ? 2 : 5;
    Trial trial = trial_open(bench, NULL,
                             "dims: {B: any, C: 128, H: 32, W: 32}\ninputs: {g: 'bf16[B, C, H, W]'}\n"
                             "nodes: {a: 'sum(g, [0, 2, 3])', b: 'sum(g, [2, 3])'}\noutputs: {a: f32, b: f32}");
    trial_size(&trial, &planes);
    draw_steps(bench, &trial, "g");
    assert_int_equal(trial_launch(&trial, false, NULL), NG_OK);
    const uint16_t *g = trial.bytes[trial_tensor(&trial, "g")];
    double channel[C] = {0};
    for (int64_t k = 0; k < planes * C; k++) {
        double sum = 0;
        for (int64_t i = 0; i < P; i++) sum += ng_load(NG_BF16, &g[k * P + i]);
        assert_true(trial_get(&trial, "b", k) == sum);
        channel[k % C] += sum;
    }
    for (int c = 0; c < C; c++) assert_true(trial_get(&trial, "a", c) == channel[c]);
    trial_close(&trial);
}

/* ---- backward graphs, written out ---- */

static void compare_rms_backward(Trial *trial, int64_t rows, int64_t n) {
    double *of[3], *dw = calloc(2 * (size_t)n, sizeof *dw), *dw_size = dw + n, w[16384];
    for (int i = 0; i < 3; i++) of[i] = malloc((size_t)n * sizeof **of);
    double *const x = of[0], *const dy = of[1], *const dx = of[2];
    trial_get_row(trial, "w", 0, n, w);
    for (int64_t r = 0; r < rows; r++) {
        const double rstd = trial_get(trial, "rstd", r);
        double dot = 0, size = 0;
        trial_get_row(trial, "x", r * n, n, x);
        trial_get_row(trial, "dy", r * n, n, dy);
        trial_get_row(trial, "dx", r * n, n, dx);
        for (int64_t i = 0; i < n; i++) {
            const double term = dy[i] * w[i] * x[i] * rstd;
            dot += term, size += fabs(term);
            dw[i] += dy[i] * x[i] * rstd, dw_size[i] += fabs(dy[i] * x[i] * rstd);
        }
        for (int64_t i = 0; i < n; i++) {
            const double xhat = x[i] * rstd, g = dy[i] * w[i], y = (g - xhat * dot / (double)n) * rstd;
            const double off = ((double)n + 8) * F32_UNIT * (fabs(xhat) * size / (double)n + fabs(g)) * rstd;
            assert_true(fabs(dx[i] - y) <= off + fabs(y) * 0x1p-8);
        }
    }
    for (int64_t i = 0; i < n; i++)
        assert_true(fabs(trial_get(trial, "dw", i) - dw[i]) <= ((double)rows + 4) * F32_UNIT * dw_size[i]);
    for (int i = 0; i < 3; i++) free(of[i]);
    free(dw);
}

/* pytorch#177419: sizes that were factored anew between two stages of a compiler, 13 x 8472 and 26 x 4236. */
static void test_rms_norm_backward(void **state) {
    static const int64_t sizes[][2] = {{13, 8472}, {26, 4236}};
    Bench *bench = *state;
    for (int s = 0; s < 2; s++) {
        Trial trial = trial_open(bench, NULL,
                                 "dims: {M: %d, N: %d}\n"
                                 "inputs: {x: 'bf16[M, N]', dy: 'bf16[M, N]', w: 'f32[N]', rstd: 'f32[M]'}\n"
                                 "nodes: {g: dy * w, xhat: 'x * rstd[:, None]', c1: 'mean(g * xhat, -1, True)',\n"
                                 "  dx: '(g - xhat * c1) * rstd[:, None]', dw: 'sum(dy * xhat, 0)'}\n"
                                 "outputs: {dx: bf16, dw: f32}",
                                 (int)sizes[s][0], (int)sizes[s][1]);
        trial_size(&trial, NULL);
        draw_normal(bench, &trial, "x");
        draw_normal(bench, &trial, "dy");
        draw_normal(bench, &trial, "w");
        for (int64_t r = 0; r < sizes[s][0]; r++) trial_set(&trial, "rstd", r, 0.5 + random_unit(&bench->random));
        trial_run(&trial);
        compare_rms_backward(&trial, sizes[s][0], sizes[s][1]);
        trial_close(&trial);
    }
}

/* pytorch#63541, TransformerEngine#623: the gradient of a sum is one number with strides of 0. dx is about 0, dweight
 * the columns' sums of xhat. */
static void test_expanded_gradient(void **state) {
    enum { ROWS = 37, N = 256 };
    Bench *bench = *state;
    Trial trial =
        trial_open(bench, NULL,
                   "dims: {M: any, N: 256}\n"
                   "inputs: {x: 'f32[M, N]', dy: {dtype: f32, shape: [M, N], strides: [0, 0]}}\n"
                   "nodes: {m: 'mean(x, -1, True)', r: 'rsqrt(var(x, -1, 0, True) + 1e-5)', xhat: (x - m) * r,\n"
                   "  c1: 'mean(dy * xhat, -1, True)', c2: 'mean(dy, -1, True)',\n"
                   "  dx: (dy - xhat * c1 - c2) * r, dw: 'sum(dy * xhat, 0)'}\noutputs: {dx: f32, dw: f32}");
    trial_size(&trial, (int64_t[]){ROWS});
    draw_normal(bench, &trial, "x");
    assert_int_equal(trial.elements[trial_tensor(&trial, "dy")], 1);
    trial_set(&trial, "dy", 0, 1);
    trial_run(&trial);
    double x[N], y[N], bound[N], sum[N] = {0}, off[N] = {0};
    for (int r = 0; r < ROWS; r++) {
        trial_get_row(&trial, "x", r * N, N, x);
        layer_norm_row(x, N, (double)1e-5f, y, bound);
        const double scale = 1 / sqrt(row_variance(x, N, 0) + 1e-5);
        for (int i = 0; i < N; i++) {
            sum[i] += y[i], off[i] += bound[i] + (ROWS + 4) * F32_UNIT * fabs(y[i]);
            assert_true(fabs(trial_get(&trial, "dx", r * N + i)) <= 2 * N * F32_UNIT * scale * (1 + fabs(y[i])));
        }
    }
    trial_expect(&trial, "dw", 0, N, sum, off, "dw");
    trial_close(&trial);
}

/* pytorch#155941, pytorch#106747, pytorch#96971: a split chosen by the size that was seen first. A hint steers what is
 * chosen; what a launch does follows its own sizes. */
static void test_hints(void **state) {
    static const int64_t rows[] = {1, 2, 8, 300, 9000};
    static const char *const hints[] = {"any", "{hint: 1}", "{hint: 8}", "{hint: 1000000}"};
    Bench *bench = *state;
    for (size_t h = 0; h < sizeof hints / sizeof *hints; h++) {
        Trial trial =
            trial_open(bench, NULL,
                       "dims: {M: %s, N: %s}\ninputs: {x: 'bf16[M, N]'}\n"
                       "nodes: {s: 'sum(x, 0)', t: 'sum(x, 1)', u: sum(x)}\noutputs: {s: f32, t: f32, u: f32}",
                       hints[h], hints[3 - h]);
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
            for (int turned = 0; turned < 2; turned++) {
                const int64_t m = turned ? 13 : rows[r], n = turned ? rows[r] : 13;
                trial_size(&trial, (int64_t[]){m, n});
                draw_steps(bench, &trial, "x");
                trial_run(&trial);
                double *down = calloc((size_t)n, sizeof *down), whole = 0;
                for (int64_t i = 0; i < m; i++) {
                    double across = 0;
                    for (int64_t c = 0; c < n; c++) {
                        const double x = trial_get(&trial, "x", i * n + c);
                        across += x, down[c] += x, whole += x;
                    }
                    assert_true(trial_get(&trial, "t", i) == across);
                }
                for (int64_t c = 0; c < n; c++) assert_true(trial_get(&trial, "s", c) == down[c]);
                assert_true(trial_get(&trial, "u", 0) == whole);
                free(down);
            }
        trial_close(&trial);
    }
}

#define TEST(name) cmocka_unit_test_prestate(name, &bench)

int main(int argc, char **argv) {
    Bench bench;
    if (!bench_open(&bench, argc, argv)) return 3;
    const struct CMUnitTest tests[] = {TEST(test_identity),
                                       TEST(test_ones),
                                       TEST(test_accumulators),
                                       TEST(test_two_sums),
                                       TEST(test_rms_norm_backward),
                                       TEST(test_expanded_gradient),
                                       TEST(test_hints)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bench_close(&bench);
    return failed;
}
