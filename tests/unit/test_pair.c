/* Pairs of reductions in one pass on a device: amax with sum(exp(x - amax)), mean with sum((x - mean)^2).
 *
 *   build/tests/test_pair [--device=host|cuda]
 *
 * Every launch is checked against the library's reference, whose formula has two passes. Beside that: infinities and
 * NaN come out as two passes make them, element by element; a large mean and an outlier cost no digits; tails, threads
 * without elements and rows that are not there change nothing; aligned and misaligned pointers give the same bits. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/report_bench.h"

static const char graph[] = "dims: {M: any, N: %s}\ninputs: {x: '%s[M, N]'}\n"
                            "nodes: {y: 'softmax(x, -1)', g: 'log_softmax(x, -1)', l: 'logsumexp(x, -1)',\n"
                            "  e: 'sum(exp(x - amax(x, -1, True)), -1)', n: layer_norm(x), m: 'mean(x, -1)',\n"
                            "  v: 'var(x, -1, correction=0)', s: 'sum(square(x - mean(x, -1, True)), -1)'}\n"
                            "outputs: {y: %s, g: %s, l: %s, e: %s, n: %s, m: %s, v: %s, s: %s}";

static const Way ways[] = {
    {"loop", "strategy=row_loop", "row_loop", false},
    {"lanes", "row_threads=8 strategy=row_loop", "row_loop", false},
    {"warps", "row_threads=96 chunks=2 strategy=row_loop", "row_loop", false},
    {"alone", "row_threads=1 strategy=row_loop", "row_loop", false},
};
enum { WAY_COUNT = sizeof ways / sizeof *ways };
static const Way registers = {"registers", "pair=on strategy=row_registers", "row_registers", false},
                 two_passes = {"two passes", "pair=off strategy=row_loop", "row_loop", false};

static Trial open_type(const Bench *bench, const Way *way, const char *columns, const char *type) {
    const char *wide = strcmp(type, "f64") ? "f32" : "f64";
    Trial trial = trial_open(bench, way, graph, columns, type, wide, wide, wide, wide, wide, wide, wide, wide);
    ng_text told = trial_text(&trial, NG_TEXT_EXPLAIN);
    assert_int_equal(text_has(told, "(online)"), way != &two_passes);
    assert_int_equal(text_has(told, "(welford)"), way != &two_passes);
    ng_text_free(&told);
    return trial;
}

static void run_rows(Bench *bench, Trial *trial, int64_t rows, int64_t columns, int shift) {
    double x[5000];
    trial_size(trial, (int64_t[]){rows, columns});
    trial->shift[0] = shift;
    for (int64_t r = 0; r < rows; r++) {
        normal_row(&bench->random, 2, 3, columns, x);
        trial_set_row(trial, "x", r * columns, columns, x);
    }
    trial_run(trial);
}

/* Awkward lengths, and rows from none on; pointers aligned and not. */
static void test_sizes(void **state) {
    Bench *bench = *state;
    static const char *const types[] = {"f32", "bf16", "f16", "f64"};
    static const int64_t columns[] = {1, 2, 3, 7, 8, 31, 33, 129, 1024, 1025, 5000}, rows[] = {0, 1, 3};
    uint32_t launches = 0;
    for (uint32_t t = 0; t < 4; t++) {
        Trial trial = open_type(bench, &ways[t % WAY_COUNT], "any", types[t]);
        for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
            for (size_t r = 0; r < 3; r++, launches += 2) {
                const Random start = bench->random;
                uint64_t hash[BENCH_TENSORS];
                run_rows(bench, &trial, rows[r], columns[c], 0);
                for (uint32_t o = 0; o < trial.outputs; o++) hash[o] = trial.reports[o].hash;
                bench->random = start;
                run_rows(bench, &trial, rows[r], columns[c], 1);
                for (uint32_t o = 0; o < trial.outputs; o++) assert_true(hash[o] == trial.reports[o].hash);
            }
        trial_close(&trial);
    }
    print_message("# %u launches of pairs\n", launches);
}

/* ---- infinite ---- */

enum { SPECIALS = 9, SPECIAL_COLUMNS = 1000 };

static void fill_special(Bench *bench, Trial *trial, int r) {
    double x[SPECIAL_COLUMNS];
    normal_row(&bench->random, r % 2 ? -1000 : 0, 2, SPECIAL_COLUMNS, x);
    for (int i = 0; i < SPECIAL_COLUMNS; i++) {
        bool none = r == 0 || (r == 1 && i < 900) || (r == 2 && i != 999) || (r == 3 && i % 2) || (r == 7 && i > 0);
        if (none) x[i] = -INFINITY;
    }
    if (r == 4) x[500] = INFINITY;
    if (r == 5) x[0] = INFINITY, x[999] = -INFINITY;
    if (r == 6) x[321] = NAN;
    trial_set_row(trial, "x", r * SPECIAL_COLUMNS, SPECIAL_COLUMNS, x);
}

static int class_of(double value) { return isnan(value) ? 3 : isinf(value) ? (value > 0 ? 2 : 1) : 0; }

static void test_special(void **state) {
    Bench *bench = *state;
    static const char *const outputs[] = {"y", "g", "n", "l", "e", "m", "v", "s"};
    const Random start = bench->random;
    for (uint32_t w = 0; w <= WAY_COUNT; w++) {
        const Way *way = w < WAY_COUNT ? &ways[w] : &registers;
        Trial one = open_type(bench, way, "1000", "f32"), two = open_type(bench, &two_passes, "1000", "f32");
        Trial *const both[] = {&one, &two};
        for (int k = 0; k < 2; k++) {
            bench->random = start;
            trial_size(both[k], (int64_t[]){SPECIALS});
            for (int r = 0; r < SPECIALS; r++) fill_special(bench, both[k], r);
            trial_run(both[k]);
        }
        for (int r = 0; r < SPECIALS; r++)
            for (uint32_t o = 0; o < 8; o++)
                for (int i = 0; i < (o < 3 ? SPECIAL_COLUMNS : 1); i++) {
                    const int64_t at = o < 3 ? r * SPECIAL_COLUMNS + i : r;
                    const double a = trial_get(&one, outputs[o], at), b = trial_get(&two, outputs[o], at);
                    if (class_of(a) != class_of(b))
                        fail_msg("%s, row %d: %s[%d] is %g, in two passes %g", way->name, r, outputs[o], i, a, b);
                }
        trial_close(&one);
        trial_close(&two);
    }
}

/* ---- spread ---- */

/* Of a sum of squares: four units a combine, as the table of reductions says, at most as many as there are elements. */
static double worst_of_sum(int64_t columns, double unit) { return 8 * (double)columns * unit; }

/* Offset 0.1 to 1e6 times the spread, outliers at the first element of the row, the middle and the end, a ramp. */
static void test_spread(void **state) {
    Bench *bench = *state;
    enum { N = 4999, ROWS = 8 };
    for (uint32_t w = 0; w < WAY_COUNT; w++)
        for (uint32_t wide = 0; wide < 2; wide++) {
            Trial trial = open_type(bench, &ways[w], "any", wide ? "f64" : "f32");
            double x[N], worst = 0, unit = wide ? 0x1p-53 : F32_UNIT;
            trial_size(&trial, (int64_t[]){ROWS, N});
            for (int r = 0; r < ROWS; r++) {
                normal_row(&bench->random, r == 1 ? 40000 : r == 2 ? -3e5 : 0, r == 1 ? 0.01 : 1, N, x);
                if (r == 3) x[0] = 1e5;
                if (r == 4) x[N / 2] = -1e5;
                if (r == 5) x[N - 1] = 1e5;
                for (int i = 0; i < N; i++)
                    if (r == 6) x[i] = 1e4 + i;
                for (int i = 0; i < N; i++)
                    if (r == 7) x[i] = 1e19 * (1 + 1e-3 * x[i]);
                trial_set_row(&trial, "x", r * N, N, x);
            }
            trial_run(&trial);
            for (int r = 0; r < ROWS; r++) {
                trial_get_row(&trial, "x", r * N, N, x);
                const double v = row_variance(x, N, 0), got = trial_get(&trial, "v", r);
                worst = fmax(worst, fabs(got - v) / v / unit);
                if (fabs(got - v) > worst_of_sum(N, unit) * v)
                    fail_msg("%s, row %d: the variance is %g, not %g", ways[w].name, r, got, v);
                const double mean = row_mean(x, N), near = trial_get(&trial, "m", r);
                assert_true(fabs(near - mean) <= worst_of_sum(N, unit) * row_size(x, N));
            }
            print_message("# variance, %s, %s: off by at most %.0f units in the last place\n", ways[w].name,
                          wide ? "f64" : "f32", worst);
            trial_close(&trial);
        }
}

#define TEST(name) cmocka_unit_test_prestate(name, &bench)

int main(int argc, char **argv) {
    Bench bench;
    if (!bench_open(&bench, argc, argv)) return 3;
    const struct CMUnitTest tests[] = {TEST(test_sizes), TEST(test_special), TEST(test_spread)};
    int failed = cmocka_run_group_tests_name("pair", tests, NULL, NULL);
    bench_close(&bench);
    return failed;
}
