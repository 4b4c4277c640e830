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

static const Way one_part = {"one part", "split=off", NULL, false}, parts = {"parts", "split=all", "finalize", false},
                 both_orders = {"both orders", "mixed_elements=1 mixed_rows=1 part_rows=64", "row_stream", false},
                 apart = {"apart", "fuse=row", NULL, false};

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
    const Way *const ways[] = {NULL, &one_part, &parts, &both_orders, &apart};
    for (int w = 0; w < 5; w++) {
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
    const Way *const ways[] = {NULL, &parts, &both_orders};
    for (int w = 0; w < 3; w++) {
        Trial trial =
            trial_open(bench, ways[w],
                       "dims: {M: any, N: 64}\ninputs: {x: 'f64[M, N]', i: 'i32[M, N]'}\n"
                       "nodes: {s: 'sum(x, 0)', t: 'sum(i, 0)'%s}\noutputs: {s: f64, t: i64, u: {dtype: i32, of: t}%s}",
                       w == 2 ? ", a: 'sum(x, 1)', b: 'sum(i, 1)'" : "", w == 2 ? ", a: f64, b: i64" : "");
        const int64_t rows = bench->reduced ? ROWS / 8 : ROWS;
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
    static const int64_t sizes[][2] = {{13, 8472}, {26, 4236}, {13, 8472}, {26, 4236}};
    Bench *bench = *state;
    for (int s = 0; s < 4; s++) {
        Trial trial = trial_open(bench, s < 2 ? NULL : &both_orders,
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
    for (int w = 0; w < 2; w++) {
        Trial trial =
            trial_open(bench, w ? &apart : &both_orders,
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
}

/* ---- both orders in one kernel ---- */

/* No stack frame in any kernel, where the device can say; at most so many bytes of shared memory. */
static void expect_small(const Bench *bench, const Trial *trial, uint32_t shared) {
    ng_kernel kernel = {.size = sizeof kernel};
    for (uint32_t k = 0; ng_kernel_query(trial->program, k, &kernel) == NG_OK; k++) {
        if (kernel.shared_bytes > shared)
            fail_msg("%s takes %u bytes of shared memory", kernel.name, kernel.shared_bytes);
        if (bench->cuda && kernel.local_bytes) fail_msg("%s spills %d bytes", kernel.name, kernel.local_bytes);
    }
}

static void expect_words(const Trial *trial, const char *words) {
    ng_text text = trial_text(trial, NG_TEXT_EXPLAIN);
    if (!text_has(text, words)) fail_msg("\"%s\" is not in\n%s", words, text.bytes);
    ng_text_free(&text);
}

static void draw_inputs(Bench *bench, Trial *trial) {
    for (uint32_t t = 0; t < trial->inputs; t++) {
        ng_arg arg = {.size = sizeof arg};
        assert_int_equal(ng_arg_query(trial->program, NG_INPUT, t, &arg), NG_OK);
        draw_normal(bench, trial, arg.name);
    }
}

/* pytorch#179423: a backward that reads twelve tensors at once spilled. Which gate keeps the orders apart is told with
 * both numbers; where it is opened the kernel reads again what registers do not hold. */
static void test_many_reads(void **state) {
    static const Way opened = {"opened", "mixed_reads=12 fuse_reads=12", "row_stream", false};
    Bench *bench = *state;
    for (int w = 0; w < 2; w++) {
        Trial trial = trial_open(
            bench, w ? &opened : NULL,
            "dims: {M: {hint: 32768}, N: 512}\n"
            "inputs: {x: 'bf16[M, N]', dy: 'bf16[M, N]', a: 'bf16[M, N]', b: 'bf16[M, N]', c: 'bf16[M, N]',\n"
            "  d: 'bf16[M, N]', e: 'bf16[M, N]', f: 'bf16[M, N]', g: 'bf16[M, N]', h: 'bf16[M, N]', i: 'bf16[M, N]',\n"
            "  j: 'bf16[M, N]', w: 'f32[N]'}\n"
            "nodes: {t: (dy + a + b + c + d + e) * w, dx: 't - x * mean(t * x, -1, True)',\n"
            "  dw: 'sum(dy * x * (f + g + h + i + j), 0)'}\noutputs: {dx: bf16, dw: f32}");
        if (!w) {
            expect_words(&trial, "n2 does not take the loops of n0: reads: 12 with M=32768, at most 10 (mixed_reads)");
            assert_int_equal(trial_count(&trial, "row_stream"), 0);
        }
        expect_small(bench, &trial, 48 << 10);
        trial_size(&trial, (int64_t[]){w ? 41 : 300});
        draw_inputs(bench, &trial);
        trial_run(&trial);
        trial_close(&trial);
    }
}

/* pytorch#169908, pytorch#175250: rows of 16384 with an f32 weight, of which too many were held in shared memory. Here
 * the next row waits in registers where a thread has room for it, and shared memory holds the sums of a CTA's rows
 * alone. */
static void test_long_rows(void **state) {
    Bench *bench = *state;
    Trial trial = trial_open(bench, &(Way){"long", NULL, "row_stream", false},
                             "dims: {M: any, N: 16384}\n"
                             "inputs: {x: 'bf16[M, N]', dy: 'bf16[M, N]', w: 'f32[N]', rstd: 'f32[M]'}\n"
                             "nodes: {g: dy * w, xhat: 'x * rstd[:, None]', c1: 'mean(g * xhat, -1, True)',\n"
                             "  dx: '(g - xhat * c1) * rstd[:, None]', dw: 'sum(dy * xhat, 0)'}\n"
                             "outputs: {dx: bf16, dw: f32}");
    expect_small(bench, &trial, 48 << 10);
    trial_size(&trial, (int64_t[]){11});
    draw_inputs(bench, &trial);
    for (int64_t r = 0; r < 11; r++) trial_set(&trial, "rstd", r, 0.5 + random_unit(&bench->random));
    trial_run(&trial);
    compare_rms_backward(&trial, 11, 16384);
    trial_close(&trial);
}

/* pytorch#168209: norms that share nothing but a weight were made one kernel. They are three here, launches of one
 * code, and their weight's gradients are added up where the parts are. */
static void test_shared_weight(void **state) {
    Bench *bench = *state;
    Trial trial =
        trial_open(bench, NULL,
                   "dims: {M: {hint: 32768}, N: 768}\n"
                   "inputs: {x: 'bf16[M, N]', y: 'bf16[M, N]', z: 'bf16[M, N]', dx: 'bf16[M, N]', dy: 'bf16[M, N]',\n"
                   "  dz: 'bf16[M, N]', w: 'f32[N]'}\nfunctions: {'back(g, h)': 'g - h * mean(g * h, -1, True)'}\n"
                   "nodes: {a: 'back(dx * w, x)', b: 'back(dy * w, y)', c: 'back(dz * w, z)',\n"
                   "  dw: 'sum(dx * x, 0) + sum(dy * y, 0) + sum(dz * z, 0)'}\n"
                   "outputs: {a: bf16, b: bf16, c: bf16, dw: f32}");
    expect_words(&trial, "4 kernels");
    expect_words(&trial, "(r:M | c:768) ROW+PARTIAL");
    expect_words(&trial, "kernel f1, 2 of 4, same code as f0");
    expect_words(&trial, "kernel f2, 3 of 4, same code as f0");
    trial_size(&trial, (int64_t[]){53});
    draw_inputs(bench, &trial);
    trial_run(&trial);
    trial_close(&trial);
}

/* pytorch#186426, pytorch#183696: rows numbered by a product with a sum, a * (t + 1), which no one could divide. One
 * program, and the kernel with both orders, takes them all. quack#53: the gradient that comes past the norm joins. */
static void test_rows_of_a_sum(void **state) {
    static const int64_t sizes[][2] = {{2, 196}, {2, 197}, {0, 3}, {1, 0}, {3, 4}};
    Bench *bench = *state;
    Trial trial = trial_open(bench, &both_orders,
                             "dims: {A: any, T: any, N: 96}\n"
                             "inputs: {x: 'f16[A, T + 1, N]', dy: 'f16[A, T + 1, N]', dh: 'f16[A, T + 1, N]'}\n"
                             "nodes: {dx: 'dy - x * mean(dy * x, -1, True) + dh', dw: 'sum(dy * x, [0, 1])'}\n"
                             "outputs: {dx: {dtype: f16, inplace: dh}, dw: f32}");
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        trial_size(&trial, sizes[s]);
        draw_inputs(bench, &trial);
        trial_run(&trial);
    }
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
                                       TEST(test_many_reads),
                                       TEST(test_long_rows),
                                       TEST(test_shared_weight),
                                       TEST(test_rows_of_a_sum),
                                       TEST(test_hints)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bench_close(&bench);
    return failed;
}
