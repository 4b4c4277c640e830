/* Tensors of more than 2^31 elements, from public reports of 32-bit offsets: on a GPU the sizes of the reports; on the
 * host device the same kernels over few rows that lie as far apart, in memory of which only those rows exist. Last,
 * what other reports wait for.
 *
 *   build/tests/test_reports_large [--device=host|cuda] [--only=TEST] */
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
#include <sys/mman.h>

/* ---- the reports' sizes, on a GPU ---- */

typedef struct Big {
    const char *report, *graph, *way;
    int64_t rows, columns;
    void (*reference)(const double *x, int64_t count, double *y, double *bound);
    int64_t skip; /* rows of x before the first that is used */
} Big;

static void rms_norm(const double *x, int64_t count, double *y, double *bound) {
    rms_norm_row(x, count, (double)1e-6f, y, bound);
}
static void log_softmax(const double *x, int64_t count, double *y, double *bound) {
    softmax_row(x, count, y, bound);
    const double most = row_most(x, count);
    for (int64_t i = 0; i < count; i++) {
        const double off = bound[i] / y[i] + 2 * F32_UNIT;
        y[i] = log(y[i]);
        bound[i] = off + F32_UNIT * (2 * fabs(y[i]) + fabs(x[i]) + fabs(most));
    }
}

#define RMS_NORM "nodes: {y: 'rms_norm(x, eps=1e-6)'}\noutputs: {y: bf16}"
static const Big bigs[] = {
    {"flashinfer#3391, flashinfer#3392", "dims: {M: any, N: 512}\ninputs: {x: 'bf16[M, N]'}\n" RMS_NORM, NULL, 4194305,
     512, rms_norm, 0},
    {"the same in a loop", "dims: {M: any, N: 512}\ninputs: {x: 'bf16[M, N]'}\n" RMS_NORM, "strategy=row_loop", 4194305,
     512, rms_norm, 0},
    {"Liger#803, Liger#804, Liger#1483",
     "dims: {M: any, N: 256}\ninputs: {x: 'bf16[M, N]'}\nnodes: {y: 'softmax(x, -1)'}\noutputs: {y: bf16}", NULL,
     (1 << 23) + 16, 256, softmax_row, 0},
    {"Paddle#71935",
     "dims: {M: any, N: 133120}\ninputs: {x: 'bf16[M, N]'}\nnodes: {y: 'log_softmax(x, -1)'}\noutputs: {y: bf16}", NULL,
     16384, 133120, log_softmax, 0},
    {"pytorch#186057",
     "dims: {M: any, N: 512}\ninputs: {x: 'bf16[M + 4194304, N]'}\nnodes: {h: 'x[4194304:]', y: 'rms_norm(h, "
     "eps=1e-6)'}\noutputs: {y: bf16}",
     NULL, 5, 512, rms_norm, 4194304},
};

/* Rows are drawn for the first few and repeated, so that any is known by its number. */
enum { DRAWN = 7 };

static void run_big(Bench *bench, const Big *big) {
    const Way way = {big->report, big->way, NULL, false};
    Trial trial = trial_open(bench, &way, "%s", big->graph);
    trial_size(&trial, &big->rows);
    const int64_t n = big->columns, last = big->rows - 1;
    const size_t row = (size_t)n * ng_dtype_bytes(trial.dtype[0]);
    double *x = malloc((3 + DRAWN) * (size_t)n * sizeof *x), *y = x + n * DRAWN, *bound = y + n;
    for (int64_t r = 0; r < DRAWN; r++) {
        normal_row(&bench->random, 0, 1, n, x + r * n);
        trial_set_row(&trial, "x", r * n, n, x + r * n);
    }
    char *bytes = trial.bytes[0];
    for (int64_t r = DRAWN; r < big->rows + big->skip; r++)
        memcpy(bytes + (size_t)r * row, bytes + (size_t)(r % DRAWN) * row, row);
    ng_text why;
    if (trial_launch(&trial, false, &why)) fail_msg("%s: %s", big->report, why.bytes);
    const int64_t rows[] = {0, 1, last / 2, last - 1, last};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        big->reference(x + (rows[i] + big->skip) % DRAWN * n, n, y, bound);
        trial_expect(&trial, "y", rows[i] * n, n, y, bound, big->report);
    }
    print_message("# %s: %lld rows of %lld\n", big->report, (long long)(big->rows + big->skip), (long long)n);
    free(x);
    trial_close(&trial);
}

static void test_reported_sizes(void **state) {
    Bench *bench = *state;
    enum { BIGS = sizeof bigs / sizeof *bigs };
    if (!bench->cuda) {
        print_message("skipped: %d launches of more than 2^31 elements, which take a GPU\n", (int)BIGS);
        skip();
    }
    for (size_t i = 0; i < BIGS; i++) run_big(bench, &bigs[i]);
}

/* ---- rows far apart ---- */

enum { FAR_ROWS = 6, FAR_COLUMNS = 130 };
#define FAR 536870920 /* elements from row to row: five such pass 2^31; a multiple of 8 */

typedef enum FarResult { FAR_NORM, FAR_TWICE, FAR_SUM /* over rows */ } FarResult;

typedef struct FarCase {
    const char *graph; /* in which LD is the distance, and stands for a number or a dim */
    const char *sets;
    FarResult result;
    bool apart; /* outputs lie as far apart */
} FarCase;

#define FAR_X "inputs: {x: {dtype: f32, shape: [M, N], strides: [LD, 1]}}\n"
#define FAR_Y "outputs: {y: {dtype: f32, shape: [M, N], strides: [LD, 1]}}"
static const FarCase fars[] = {
    {FAR_X "nodes: {y: 'rms_norm(x, eps=1e-6)'}\n" FAR_Y, "strategy=row_registers", FAR_NORM, true},
    {FAR_X "nodes: {y: 'rms_norm(x, eps=1e-6)'}\n" FAR_Y, "strategy=row_loop", FAR_NORM, true},
    {FAR_X "nodes: {y: 'rms_norm(x, eps=1e-6)'}\n" FAR_Y, "split=all", FAR_NORM, true},
    {FAR_X "nodes: {y: 'rms_norm(x, eps=1e-6)'}\n" FAR_Y, "fuse=off", FAR_NORM, true},
    {FAR_X "nodes: {y: 'rms_norm(x, eps=1e-6)'}", NULL, FAR_NORM, false},
    {FAR_X "nodes: {y: x * 2}\n" FAR_Y, NULL, FAR_TWICE, true},
    {FAR_X "nodes: {y: 'sum(x, 0)'}", "split=off", FAR_SUM, false},
    {FAR_X "nodes: {y: 'sum(x, 0)'}", "split=all", FAR_SUM, false},
    {FAR_X "nodes: {y: 'sum(x, 0)'}\noutputs: {y: {dtype: f32, shape: [N], strides: [16777216]}}", "split=all", FAR_SUM,
     true},
    {"inputs: {x: {dtype: f32, shape: [N, M], strides: [1, LD]}}\n"
     "nodes: {y: 'sum(x, 1)'}",
     NULL, FAR_SUM, false},
};

/* Memory of which only what is touched exists. There is as much before the pointer as an offset of 32 bits can go
 * back, so that one which wrapped gives wrong numbers and no fault. */
#define FAR_LEAD ((size_t)1 << 31)
#define FAR_BYTES ((FAR_LEAD + (size_t)FAR * FAR_ROWS) * sizeof(float))
static float *sparse(void) {
    void *memory = mmap(NULL, FAR_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : (float *)memory + FAR_LEAD;
}

static void launch_far(const Trial *trial, float *x, float *y, const int64_t *dims) {
    size_t bytes;
    assert_int_equal(ng_workspace_bytes(trial->program, dims, &bytes), NG_OK);
    void *workspace = NULL, *const tensors[] = {x, y};
    if (posix_memalign(&workspace, 256, bytes + 1)) abort();
    memset(workspace, 0xff, bytes);
    const ng_args args = {
        .size = sizeof args, .tensors = tensors, .dims = dims, .workspace = workspace, .workspace_bytes = bytes};
    assert_int_equal(ng_launch(trial->program, &args), NG_OK);
    free(workspace);
}

static void expect_far(const FarCase *far, const float *x, const float *y) {
    double sum[FAR_COLUMNS] = {0}, size[FAR_COLUMNS] = {0}, row[FAR_COLUMNS], expected[FAR_COLUMNS], bound[FAR_COLUMNS];
    for (int64_t r = 0; r < FAR_ROWS; r++) {
        for (int64_t c = 0; c < FAR_COLUMNS; c++) {
            row[c] = (double)x[r * FAR + c];
            sum[c] += row[c], size[c] += fabs(row[c]);
        }
        rms_norm(row, FAR_COLUMNS, expected, bound);
        for (int64_t c = 0; c < FAR_COLUMNS && far->result != FAR_SUM; c++) {
            if (far->result == FAR_TWICE) expected[c] = 2 * row[c], bound[c] = 0;
            const double got = (double)y[r * (far->apart ? FAR : FAR_COLUMNS) + c];
            assert_true(fabs(got - expected[c]) <= bound[c] + 2 * F32_UNIT * fabs(expected[c]));
        }
    }
    for (int64_t c = 0; c < FAR_COLUMNS && far->result == FAR_SUM; c++)
        assert_true(fabs((double)y[c * (far->apart ? 16777216 : 1)] - sum[c]) <= FAR_ROWS * F32_UNIT * size[c]);
}

/* Row bases are 64 bits wide in each strategy, whether strides are numbers or come at launch. */
static void test_far_rows(void **state) {
    Bench *bench = *state;
    if (bench->cuda) {
        print_message("skipped: rows in memory that is not there; the reports' own sizes run here\n");
        skip();
    }
    float *x = sparse(), *y = sparse();
    if (!x || !y) {
        print_message("skipped: no address space of 2 x %.3g GB\n", (double)FAR_BYTES * 1e-9);
        skip();
    }
    for (int64_t r = 0; r < FAR_ROWS; r++)
        for (int64_t c = 0; c < FAR_COLUMNS; c++) x[r * FAR + c] = (float)random_normal(&bench->random);
    uint32_t launches = 0;
    for (size_t i = 0; i < sizeof fars / sizeof *fars; i++)
        for (int any = 0; any < 2; any++) {
            const Way way = {"far rows", fars[i].sets, NULL, false};
            Trial trial = trial_open(bench, &way, "dims: {M: any, N: %d, LD: %s}\n%s", FAR_COLUMNS,
                                     any ? "any" : "536870920", fars[i].graph);
            for (int64_t r = 0; r < FAR_ROWS; r++) memset(y + r * FAR, 0xff, FAR_COLUMNS * sizeof *y);
            launch_far(&trial, x, y, (int64_t[]){FAR_ROWS, FAR});
            expect_far(&fars[i], x, y);
            launches++;
            trial_close(&trial);
        }
    /* pytorch#186057: the rows are near, the slice begins far */
    for (int any = 0; any < 2; any++) {
        Trial trial =
            trial_open(bench, NULL, "dims: {M: %s, N: 130}\ninputs: {t: 'f32[M, N]'}\nnodes: {y: 't[20000000:] * 2'}\n",
                       any ? "any" : "20000006");
        float *rows = x + (size_t)20000000 * FAR_COLUMNS;
        for (int i = 0; i < 6 * FAR_COLUMNS; i++) rows[i] = (float)(i + 1);
        launch_far(&trial, x, y, (int64_t[]){20000006});
        for (int i = 0; i < 6 * FAR_COLUMNS; i++) assert_true(y[i] == (float)(2 * i + 2));
        launches++;
        trial_close(&trial);
    }
    print_message("# %u launches with offsets beyond 2^31 elements in memory that is mostly not there\n", launches);
    munmap(x - FAR_LEAD, FAR_BYTES);
    munmap(y - FAR_LEAD, FAR_BYTES);
}

/* Paddle#71935 with three of its rows. */
static void test_long_log_softmax(void **state) {
    enum { ROWS = 3, N = 133120 };
    Bench *bench = *state;
    const Way *const ways[] = {NULL, bench_way(WAY_LOOP), bench_way(WAY_SPLIT)};
    double *x = malloc(3 * N * sizeof *x), *y = x + N, *bound = y + N;
    for (size_t w = 0; w < 3; w++) {
        Trial trial = trial_open(bench, ways[w],
                                 "dims: {M: any, N: 133120}\ninputs: {x: 'bf16[M, N]'}\n"
                                 "nodes: {y: 'log_softmax(x, -1)'}\noutputs: {y: bf16}");
        trial_size(&trial, (int64_t[]){ROWS});
        for (int r = 0; r < ROWS; r++) {
            normal_row(&bench->random, 0, 3, N, x);
            trial_set_row(&trial, "x", r * N, N, x);
        }
        trial_run(&trial);
        for (int r = 0; r < ROWS; r++) {
            trial_get_row(&trial, "x", r * N, N, x);
            log_softmax(x, N, y, bound);
            trial_expect(&trial, "y", r * N, N, y, bound, "log_softmax");
        }
        trial_close(&trial);
    }
    free(x);
}

/* ---- what other reports wait for ---- */

static const struct {
    const char *report, *what, *waits_for;
} waiting[] = {
    {"apex#1022, Liger#1303, triton#2441, TileOPs#2078", "two plans on two devices in turn", "two GPUs"},
    {"quack 9cab821", "a cluster larger than its row", "row_cluster"},
    {"pytorch#96978", "the same dropout mask backward", "a random-number operation"},
    {"pytorch#111122, vLLM#37960", "block fp8 and qk-norm in one launch each",
     "reductions over some of a row's axes; nests of different rows in one kernel"},
    {"pytorch#169908, pytorch#175250", "bulk copies ahead that step down to fit shared memory", "row_shared"},
    {"pytorch#166461", "a split that is tuned by itself", "tune"},
    {"pytorch#188578", "no cliff between neighbouring sizes", "tune"},
};

static void test_waiting(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof waiting / sizeof *waiting; i++)
        print_message("# waits for %s: %s (%s)\n", waiting[i].waits_for, waiting[i].what, waiting[i].report);
}

#define TEST(name) cmocka_unit_test_prestate(name, &bench)

int main(int argc, char **argv) {
    Bench bench;
    if (!bench_open(&bench, argc, argv)) return 3;
    const struct CMUnitTest tests[] = {TEST(test_reported_sizes), TEST(test_far_rows), TEST(test_long_log_softmax),
                                       TEST(test_waiting)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bench_close(&bench);
    return failed;
}
