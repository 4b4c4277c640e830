/* Norms and softmaxes with numbers that users of such kernels have reported as wrong: far from zero, beyond the range,
 * infinite, nearly constant. A public report is named beside its test as PROJECT#NUMBER. Each test runs its graph with
 * rows in registers, in a loop and split over CTAs, against references of its own (tests/support/report_bench.h).
 * test_reports_shapes.c, test_reports_types.c and test_reports_large.c have the other reports; what waits for something
 * that is not there yet is listed in the last.
 *
 *   build/tests/test_reports [--device=host|cuda] [--only=TEST] */
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

/* Rows in registers have a length that is known; the others take any. */
static const char *dims_of(uint32_t way) { return way == WAY_REGISTERS ? "{M: any, N: 1000}" : "{M: any, N: any}"; }

static Trial open_rows(Bench *bench, uint32_t way, const char *rest, int64_t rows) {
    Trial trial = trial_open(bench, bench_way(way), "dims: %s\n%s", dims_of(way), rest);
    trial_size(&trial, (int64_t[]){rows, 1000});
    return trial;
}

/* ---- far from zero ---- */

/* The mean of squares less the square of the mean is off by thousands here; so would be sums of bf16. What is
 * subtracted is a mean of the row that f32 can hold and that may be off itself: a variance about m is the row's and (m
 * - mean)^2. Ours may use that or the row's own. */
static void test_variance_of_offset(void **state) {
    Bench *bench = *state;
    for (uint32_t way = 0; way < WAYS; way++) {
        enum { ROWS = 7 };
        Trial trial = open_rows(bench, way,
                                "inputs: {x: 'f32[M, N]'}\n"
                                "nodes: {m: 'mean(x, -1)', v: 'var(x, -1, correction=0)'}\noutputs: {m: f32, v: f32}",
                                ROWS);
        double x[1000], worst = 0;
        for (int r = 0; r < ROWS; r++) {
            normal_row(&bench->random, 40000, 0.01, 1000, x);
            trial_set_row(&trial, "x", r * 1000, 1000, x);
        }
        trial_run(&trial);
        for (int r = 0; r < ROWS; r++) {
            trial_get_row(&trial, "x", r * 1000, 1000, x);
            const double mean = row_mean(x, 1000), variance = row_variance(x, 1000, 0);
            const double m = trial_get(&trial, "m", r), v = trial_get(&trial, "v", r);
            const double part = (1000 + 8) * F32_UNIT; /* of itself: a sum of 1000 squares, one product */
            const double about = variance + (m - mean) * (m - mean);
            assert_true(fabs(m - mean) <= (1000 + 2) * F32_UNIT * 40001);
            if (v < variance * (1 - part) || v > about * (1 + part))
                fail_msg("%s: variance %.9g of a row with %.9g, about its m %.9g", bench_way(way)->name, v, variance,
                         about);
            if (fabs(v / variance - 1) > worst) worst = fabs(v / variance - 1);
        }
        print_message("# variance of 40000 and noise of 0.01 in f32, %s: off by at most %.2g %% of itself\n",
                      bench_way(way)->name, 100 * worst);
        trial_close(&trial);
    }
}

/* triton#9838, unsloth#1867: lanes beyond the row entered the variance, after the mean had been subtracted from their 0
 * (95 % off with three columns). */
static void test_layer_norm_of_few(void **state) {
    static const int64_t widths[] = {1, 3, 5, 17, 33, 1000, 1023};
    static const Way single = {"registers", NULL, NULL, false}; /* a row of one is no row to force */
    Bench *bench = *state;
    for (uint32_t way = 0; way < WAYS; way++)
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
            const int64_t n = widths[w];
            char number[12];
            snprintf(number, sizeof number, "%d", (int)n);
            Trial trial = trial_open(bench, way == WAY_REGISTERS && n == 1 ? &single : bench_way(way),
                                     "dims: {M: any, N: %s}\ninputs: {x: 'f32[M, N]'}\nnodes: {y: layer_norm(x)}",
                                     way == WAY_REGISTERS ? number : "any");
            trial_size(&trial, (int64_t[]){9, n});
            double x[1023], y[1023], bound[1023];
            for (int r = 0; r < 9; r++) {
                normal_row(&bench->random, 100, 1, n, x);
                trial_set_row(&trial, "x", r * n, n, x);
            }
            trial_run(&trial);
            for (int r = 0; r < 9; r++) {
                trial_get_row(&trial, "x", r * n, n, x);
                layer_norm_row(x, n, (double)1e-5f, y, bound);
                trial_expect(&trial, "y", r * n, n, y, bound, bench_way(way)->name);
            }
            trial_close(&trial);
        }
}

/* ---- beyond the range ---- */

/* pytorch#173793, pytorch#178084: LayerNorm of rows near 8.5e37. Sums are f32 here: where the sum of a row passes the
 * largest f32, all of that row is NaN, and no other row is touched. Where only the squares about the mean do, the row
 * is 0. */
static void test_layer_norm_overflow(void **state) {
    Bench *bench = *state;
    for (uint32_t way = 0; way < WAYS; way++) {
        Trial trial = open_rows(bench, way, "inputs: {x: 'f32[M, N]'}\nnodes: {y: layer_norm(x)}", 5);
        static const double means[] = {8.5e37, 0, 0, 3.4e38, 0}, deviations[] = {1e33, 1, 1e25, 0, 1e4};
        double x[1000], y[1000], bound[1000];
        for (int r = 0; r < 5; r++) {
            normal_row(&bench->random, means[r], deviations[r], 1000, x);
            trial_set_row(&trial, "x", r * 1000, 1000, x);
        }
        trial_run(&trial);
        for (int r = 0; r < 5; r++) {
            trial_get_row(&trial, "x", r * 1000, 1000, x);
            layer_norm_row(x, 1000, (double)1e-5f, y, bound);
            for (int i = 0; i < 1000 && means[r] > 0; i++) y[i] = NAN;
            for (int i = 0; i < 1000 && deviations[r] == 1e25; i++) y[i] = bound[i] = 0;
            trial_expect(&trial, "y", r * 1000, 1000, y, bound, bench_way(way)->name);
        }
        trial_close(&trial);
    }
}

/* pytorch#178123, tt-metal#55159: squares of 1e20 pass the largest f32. The mean of squares is inf and the row 0, as an
 * f32 evaluation of the formula gives; a row of inf and of NaN is NaN there; no other row is touched. */
static void test_rms_norm_overflow(void **state) {
    Bench *bench = *state;
    for (uint32_t way = 0; way < WAYS; way++) {
        Trial trial =
            open_rows(bench, way,
                      "inputs: {x: 'f32[M, N]'}\nnodes: {y: 'rms_norm(x, eps=1e-6)', z: 'l2_norm(x, eps=1e-6)'}\n"
                      "outputs: {y: f32, z: f32}",
                      6);
        double x[1000], y[1000], bound[1000];
        for (int r = 0; r < 6; r++) {
            normal_row(&bench->random, 0, 1, 1000, x);
            if (r == 1) x[333] = 1e20;
            if (r == 2) x[999] = INFINITY;
            if (r == 4) normal_row(&bench->random, 0, 1e38, 1000, x);
            trial_set_row(&trial, "x", r * 1000, 1000, x);
        }
        trial_run(&trial);
        for (int r = 0; r < 6; r++) {
            trial_get_row(&trial, "x", r * 1000, 1000, x);
            rms_norm_row(x, 1000, (double)1e-6f, y, bound);
            for (int i = 0; i < 1000 && (r == 1 || r == 2 || r == 4); i++) {
                y[i] = isinf(x[i]) ? NAN : 0;
                bound[i] = 0;
            }
            trial_expect(&trial, "y", r * 1000, 1000, y, bound, bench_way(way)->name);
            for (int i = 0; i < 1000; i++) y[i] /= sqrt(1000), bound[i] /= sqrt(1000);
            if (r == 0 || r == 3) /* eps stands beside a sum that is a thousand times the mean */
                for (int i = 0; i < 1000; i++) bound[i] += fabs(y[i]) * 1e-6;
            trial_expect(&trial, "z", r * 1000, 1000, y, bound, bench_way(way)->name);
        }
        trial_close(&trial);
    }
}

/* |x| up to 3e38: what is finite stays finite, and what is beyond is inf and not NaN. */
static void test_largest(void **state) {
    static const struct {
        const char *formula;
        double of_large, of_negative; /* f(3e38), f(-3e38) */
    } rows[] = {{"sigmoid(x)", 1, 0},
                {"tanh(x)", 1, -1},
                {"silu(x)", 3e38, 0},
                {"gelu(x)", 3e38, 0},
                {"relu(x)", 3e38, 0},
                {"x * abs(x)", INFINITY, -INFINITY},
                {"softplus(x)", 3e38, 0},
                {"x + x", INFINITY, -INFINITY},
                {"abs(x)", 3e38, 3e38},
                {"exp(x)", INFINITY, 0},
                {"x * 0.5 + x * 0.5", 3e38, -3e38},
                {"clamp(x, -1, 1)", 1, -1}};
    enum { ROWS = sizeof rows / sizeof *rows };
    Bench *bench = *state;
    for (int i = 0; i < ROWS; i += 6) {
        char graph[1024] = "dims: {M: any}\ninputs: {x: 'f32[M]'}\nnodes: {", *at = graph + strlen(graph);
        for (int k = i; k < i + 6; k++) at += sprintf(at, "y%d: '%s', ", k - i, rows[k].formula);
        sprintf(at - 2, "}\noutputs: {y0: f32, y1: f32, y2: f32, y3: f32, y4: f32, y5: f32}");
        Trial trial = trial_open(bench, NULL, "%s", graph);
        trial_size(&trial, (int64_t[]){2});
        trial_set(&trial, "x", 0, (double)3e38f);
        trial_set(&trial, "x", 1, (double)-3e38f);
        trial_run(&trial);
        for (int k = i; k < i + 6; k++) {
            const double expected[] = {(double)(float)rows[k].of_large, (double)(float)rows[k].of_negative};
            char name[] = {'y', (char)('0' + k - i), 0};
            trial_expect(&trial, name, 0, 2, expected, NULL, rows[k].formula);
        }
        trial_close(&trial);
    }
}

/* A sum that passes the largest number makes the variance inf in every way; an element that is infinite makes it NaN.
 */
static void test_variance_of_largest(void **state) {
    enum { ROWS = 6, COLUMNS = 1000 };
    static const double rows[ROWS][3] = {/* of columns 0, 1 to 700, and the rest */
                                         {(double)3e38f, (double)3e38f, (double)3e38f},
                                         {(double)3e38f, (double)3e38f, 0},
                                         {(double)-3e38f, (double)-3e38f, 1},
                                         {(double)3e38f, 1, (double)-1e20f},
                                         {INFINITY, 1, 2},
                                         {-INFINITY, (double)3e38f, (double)3e38f}};
    static const double expected[ROWS] = {INFINITY, INFINITY, INFINITY, INFINITY, NAN, NAN};
    Bench *bench = *state;
    for (uint32_t way = 0; way < WAYS; way++) {
        Trial trial = trial_open(
            bench, bench_way(way),
            "dims: {M: any, N: 1000}\ninputs: {x: 'f32[M, N]'}\nnodes: {y: 'var(x, -1)'}\noutputs: {y: f32}");
        trial_size(&trial, (int64_t[]){ROWS});
        for (int r = 0; r < ROWS; r++)
            for (int i = 0; i < COLUMNS; i++)
                trial_set(&trial, "x", r * COLUMNS + i, rows[r][i == 0 ? 0 : i <= 700 ? 1 : 2]);
        trial_run(&trial);
        trial_expect(&trial, "y", 0, ROWS, expected, NULL, bench_way(way)->name);
        trial_close(&trial);
    }
}

/* The largest element takes all; sums of what is finite do not overflow on the way to a softmax. */
static void test_softmax_of_largest(void **state) {
    Bench *bench = *state;
    for (uint32_t way = 0; way < WAYS; way++) {
        Trial trial = open_rows(bench, way,
                                "inputs: {x: 'f32[M, N]'}\n"
                                "nodes: {y: 'softmax(x, -1)', l: 'logsumexp(x, -1)', z: 'log_softmax(x, -1)'}\n"
                                "outputs: {y: f32, l: f32, z: f32}",
                                3);
        const double most = (double)3e38f;
        for (int i = 0; i < 3000; i++) trial_set(&trial, "x", i, i < 1000 ? most : i % 3 ? -most : most / 4);
        trial_set(&trial, "x", 1500, most);
        trial_run(&trial);
        for (int i = 0; i < 1000; i++) {
            assert_true(fabs(trial_get(&trial, "y", i) - 0.001) <= 0.001 * 2000 * F32_UNIT);
            assert_true(trial_get(&trial, "y", 1000 + i) == (i == 500));
            assert_true(trial_get(&trial, "z", 1000 + i) == (double)(float)(trial_get(&trial, "x", 1000 + i) - most) ||
                        isinf(trial_get(&trial, "z", 1000 + i)));
        }
        for (int r = 0; r < 3; r++) assert_true(trial_get(&trial, "l", r) == (r == 2 ? (double)(3e38f / 4) : most));
        trial_close(&trial);
    }
}

/* f16 at 60000: arithmetic is in f32, so that nothing passes 65504 before it is stored. */
static void test_half_at_60000(void **state) {
    Bench *bench = *state;
    for (uint32_t way = 0; way < WAYS; way++) {
        Trial trial =
            open_rows(bench, way,
                      "inputs: {x: 'f16[M, N]', r: 'f16[M, N]'}\n"
                      "nodes: {h: x + r, y: layer_norm(h), z: 'rms_norm(h, eps=1e-6)', v: 'var(h, -1, correction=0)'}\n"
                      "outputs: {y: f16, z: f16, h: f16, v: {dtype: f16, shape: [M]}}",
                      4);
        double x[1000], y[1000], bound[1000];
        for (int r = 0; r < 4; r++) {
            normal_row(&bench->random, r % 2 ? -60000 : 60000, 500, 1000, x);
            for (int i = 0; i < 1000; i++) x[i] = fmin(fmax(x[i], -65504), 65504);
            trial_set_row(&trial, "x", r * 1000, 1000, x);
            trial_set_row(&trial, "r", r * 1000, 1000, x);
        }
        trial_run(&trial);
        for (int r = 0; r < 4; r++) {
            trial_get_row(&trial, "x", r * 1000, 1000, x);
            for (int i = 0; i < 1000; i++) {
                x[i] *= 2; /* exact in f32, too much for f16 */
                assert_true(isinf(trial_get(&trial, "h", r * 1000 + i)));
            }
            layer_norm_row(x, 1000, (double)1e-5f, y, bound);
            trial_expect(&trial, "y", r * 1000, 1000, y, bound, bench_way(way)->name);
            rms_norm_row(x, 1000, (double)1e-6f, y, bound);
            trial_expect(&trial, "z", r * 1000, 1000, y, bound, bench_way(way)->name);
            assert_true(isinf(trial_get(&trial, "v", r))); /* about a million */
        }
        trial_close(&trial);
    }
}

/* ---- infinite ---- */

/* Masked rows, in several libraries: exp(-inf - -inf) is NaN, which an online softmax carried into other lanes. A row
 * that is -inf throughout is NaN as in PyTorch; any other is finite, wherever its -inf stand, the first chunks of the
 * row among them. */
static void test_softmax_masked(void **state) {
    Bench *bench = *state;
    static const char *const numbers[] = {"1000", "37", "5"};
    static const int64_t widths[] = {1000, 37, 5}, from[] = {0, 0, 1, 500, 0, 999, 31},
                         to[] = {1000, 0, 1000, 1000, 500, 1000, 33};
    enum { ROWS = sizeof from / sizeof *from };
    for (uint32_t way = 0; way < WAYS; way++)
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
            const int64_t n = widths[w];
            Trial trial = trial_open(bench, bench_way(way),
                                     "dims: {M: any, N: %s}\ninputs: {x: 'f32[M, N]'}\n"
                                     "nodes: {y: 'softmax(x, -1)', l: 'logsumexp(x, -1)'}\noutputs: {y: f32, l: f32}",
                                     way == WAY_REGISTERS ? numbers[w] : "any");
            trial_size(&trial, (int64_t[]){ROWS, n});
            double x[1000], y[1000], bound[1000];
            for (int r = 0; r < ROWS; r++) {
                normal_row(&bench->random, 0, 2, n, x);
                for (int64_t i = from[r]; i < to[r] && i < n; i++) x[i] = -INFINITY;
                trial_set_row(&trial, "x", r * n, n, x);
            }
            trial_run(&trial);
            for (int r = 0; r < ROWS; r++) {
                trial_get_row(&trial, "x", r * n, n, x);
                const bool whole = isinf(row_most(x, n));
                softmax_row(x, n, y, bound);
                trial_expect(&trial, "y", r * n, n, y, bound, bench_way(way)->name);
                const double l = trial_get(&trial, "l", r);
                assert_true(whole ? isinf(l) && l < 0 : isfinite(l));
            }
            trial_close(&trial);
        }
}

/* ---- nearly constant ---- */

/* DeepSpeed#581, coremltools#2822, pytorch#183605: an eps that is 0 in f16 made rows without spread NaN. Scalars are
 * f32 and so is what they are added to. */
static void test_half_eps(void **state) {
    Bench *bench = *state;
    for (uint32_t way = 0; way < WAYS; way++) {
        Trial trial = open_rows(bench, way,
                                "inputs: {x: 'f16[M, N]'}\n"
                                "nodes: {a: 'layer_norm(x, eps=1e-8)', b: 'rms_norm(x, eps=1e-8)',\n"
                                "  c: 'x * rsqrt(var(x, -1, keepdim=True) + 1e-9)'}\noutputs: {a: f16, b: f16, c: f16}",
                                3);
        static const double values[] = {0, 1e-10, 3.140625};
        double x[1000], y[1000], bound[1000];
        for (int i = 0; i < 3000; i++) trial_set(&trial, "x", i, values[i / 1000]);
        trial_run(&trial);
        for (int r = 0; r < 3; r++) { /* 1e-10 is 0 in f16 */
            trial_get_row(&trial, "x", r * 1000, 1000, x);
            layer_norm_row(x, 1000, (double)1e-8f, y, bound);
            trial_expect(&trial, "a", r * 1000, 1000, y, bound, bench_way(way)->name);
            rms_norm_row(x, 1000, (double)1e-8f, y, bound);
            trial_expect(&trial, "b", r * 1000, 1000, y, bound, bench_way(way)->name);
        }
        for (int i = 0; i < 2000; i++) assert_true(trial_get(&trial, "c", i) == 0);
        for (int i = 2000; i < 3000; i++) assert_true(isinf(trial_get(&trial, "c", i))); /* about 99000 */
        trial_close(&trial);
    }
}

/* pytorch#186577: 1 / (|LN(x)| + 1e-6) was off by 80 where two ways of adding met. LN itself is within two units in the
 * last place of its row's largest; what follows is as exact as the library's check asks. */
static void test_layer_norm_reciprocal(void **state) {
    Bench *bench = *state;
    for (uint32_t way = 0; way < WAYS; way++) {
        Trial trial = trial_open(bench, bench_way(way),
                                 "dims: {M: any, N: 128}\ninputs: {x: 'f32[M, N]'}\n"
                                 "nodes: {n: layer_norm(x), y: '1 / (abs(n) + 1e-6)'}\noutputs: {n: f32, y: f32}");
        trial_size(&trial, (int64_t[]){64});
        double x[128], y[128], bound[128];
        for (int r = 0; r < 64; r++) {
            normal_row(&bench->random, 0, 1, 128, x);
            trial_set_row(&trial, "x", r * 128, 128, x);
        }
        trial_run(&trial);
        for (int r = 0; r < 64; r++) {
            trial_get_row(&trial, "x", r * 128, 128, x);
            layer_norm_row(x, 128, (double)1e-5f, y, bound);
            for (int i = 0; i < 128; i++) {
                const double n = trial_get(&trial, "n", r * 128 + i), z = 1 / (fabs(n) + (double)1e-6f);
                const double largest = fmax(row_most(y, 128), 2);
                /* a GPU's rsqrt may be two off by itself */
                assert_true(fabs(n - y[i]) <= (bench->cuda ? 4 : 2) * largest * 2 * F32_UNIT);
                assert_true(fabs(trial_get(&trial, "y", r * 128 + i) - z) <= 2 * 2 * F32_UNIT * z);
            }
        }
        trial_close(&trial);
    }
}

/* pytorch#143182, pytorch#141541: LayerNorm over ten million elements, off by 7e-4 where one thread adds them one after
 * another. The report's rule is 1e-5. */
static void test_layer_norm_of_ten_million(void **state) {
    Bench *bench = *state;
    for (uint32_t way = WAY_LOOP; way < WAYS; way++) {
        const int64_t count = bench->reduced ? 100000 : 10000000;
        Trial trial =
            trial_open(bench, bench_way(way),
                       "dims: {A: %d, B: 1000}\ninputs: {x: 'f32[A, B]'}\nnodes: {y: 'layer_norm(x, dim=[0, 1])'}",
                       (int)(count / 1000));
        trial_size(&trial, NULL);
        double *x = malloc((size_t)count * sizeof *x), worst = 0;
        if (!x) abort();
        for (int64_t i = 0; i < count; i++) x[i] = 3 * random_unit(&bench->random) - 0.5;
        trial_set_row(&trial, "x", 0, count, x);
        ng_text why;
        if (trial_launch(&trial, false, &why)) fail_msg("%s", why.bytes);
        const double mean = row_mean(x, count), scale = 1 / sqrt(row_variance(x, count, 0) + 1e-5);
        const float *y = trial.bytes[trial_tensor(&trial, "y")];
        for (int64_t i = 0; i < count; i++) worst = fmax(worst, fabs((double)y[i] - (x[i] - mean) * scale));
        print_message("# LayerNorm over ten million elements, %s: off by at most %.2g\n", bench_way(way)->name, worst);
        assert_true(worst <= 1e-5);
        free(x);
        trial_close(&trial);
    }
}

#define TEST(name) cmocka_unit_test_prestate(name, &bench)

int main(int argc, char **argv) {
    Bench bench;
    if (!bench_open(&bench, argc, argv)) return 3;
    const struct CMUnitTest tests[] = {TEST(test_variance_of_offset),
                                       TEST(test_layer_norm_of_few),
                                       TEST(test_layer_norm_overflow),
                                       TEST(test_rms_norm_overflow),
                                       TEST(test_largest),
                                       TEST(test_variance_of_largest),
                                       TEST(test_softmax_of_largest),
                                       TEST(test_half_at_60000),
                                       TEST(test_softmax_masked),
                                       TEST(test_half_eps),
                                       TEST(test_layer_norm_reciprocal),
                                       TEST(test_layer_norm_of_ten_million)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bench_close(&bench);
    return failed;
}
