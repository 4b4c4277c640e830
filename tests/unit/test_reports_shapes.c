/* Rows of awkward lengths, numbers, places and strides that users of such kernels have reported as wrong or refused.
 * Head of test_reports.c says how these tests are made.
 *
 *   build/tests/test_reports_shapes [--device=host|cuda] [--only=TEST] */
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

static void fill(Bench *bench, Trial *trial, const char *name) {
    const uint32_t t = trial_tensor(trial, name);
    for (int64_t i = 0; i < trial->elements[t]; i++) trial_set(trial, name, i, random_normal(&bench->random));
}

/* Checks y = rms_norm(x, eps=1e-6) of rows that lie one after another. */
static void expect_rms_norm(const Trial *trial, int64_t rows, int64_t columns, const char *what) {
    double *x = malloc(3 * (size_t)columns * sizeof *x + 1), *y = x + columns, *bound = y + columns;
    for (int64_t r = 0; r < rows; r++) {
        trial_get_row(trial, "x", r * columns, columns, x);
        rms_norm_row(x, columns, (double)1e-6f, y, bound);
        trial_expect(trial, "y", r * columns, columns, y, bound, what);
    }
    free(x);
}

/* ---- alignment ---- */

/* TE#490, pytorch#141891, pytorch#170130, flashinfer#634: wide accesses on pointers that are no multiples of them. Each
 * operand in turn lies 1 to 7 elements behind a boundary, in rows of multiples of an access and not: the same bits. */
static void test_every_offset(void **state) {
    static const int64_t widths[] = {1024, 3584, 3585, 129};
    Bench *bench = *state;
    uint32_t launches = 0;
    for (uint32_t way = 0; way < WAYS; way++)
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
            Trial trial = trial_open(bench, bench_way(way),
                                     "dims: {M: any, N: %d}\n"
                                     "inputs: {x: 'bf16[M, N]', r: {dtype: f16, shape: [M, N], strides: [N + 3, 1]},\n"
                                     "  w: 'f32[N]', b: 'f32[N]'}\n"
                                     "nodes: {h: x + r, y: 'layer_norm(h, w, b)'}\n"
                                     "outputs: {y: bf16, h: f32}",
                                     (int)widths[w]);
            trial_size(&trial, (int64_t[]){3});
            const char *const names[] = {"x", "r", "w", "b", "y", "h"};
            for (int i = 0; i < 4; i++) fill(bench, &trial, names[i]);
            trial_run(&trial);
            const uint64_t y = trial.reports[0].hash, h = trial.reports[1].hash;
            for (uint32_t t = 0; t < 6; t++)
                for (int shift = 1; shift < 8; shift++) {
                    const size_t each = ng_dtype_bytes(trial.dtype[t]), bytes = (size_t)trial.elements[t] * each;
                    memmove((char *)trial.bytes[t] + (size_t)shift * each,
                            (char *)trial.bytes[t] + (size_t)trial.shift[t] * each, bytes);
                    trial.shift[t] = shift;
                    assert_int_equal(trial_launch(&trial, false, NULL), NG_OK);
                    if (trial.reports[0].hash != y || trial.reports[1].hash != h)
                        fail_msg("%s, %d columns: other bits with %s %d elements off", bench_way(way)->name,
                                 (int)widths[w], names[t], shift);
                    launches++;
                    if (shift < 7) continue;
                    memmove(trial.bytes[t], (char *)trial.bytes[t] + 7 * each, bytes);
                    trial.shift[t] = 0;
                }
            trial_close(&trial);
        }
    print_message("# %u launches with an operand off its alignment have the bits of an aligned one\n", launches);
}

/* ---- lengths and numbers of rows ---- */

/* sparse-videogen#74, xformers#785: rows that are no multiple of a CTA's, columns one past a block. */
static void test_ragged(void **state) {
    static const int64_t widths[] = {1536, 33, 257, 1025, 2049}, rows[] = {1, 2, 3, 17, 18, 19};
    Bench *bench = *state;
    for (uint32_t way = 0; way < WAYS; way++)
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
            if (way == WAY_SPLIT && w) continue;
            Trial trial = trial_open(bench, bench_way(way),
                                     "dims: {M: any, N: %d}\ninputs: {x: 'f16[M, N]'}\n"
                                     "nodes: {y: 'rms_norm(x, eps=1e-6)'}\noutputs: {y: f16}",
                                     (int)widths[w]);
            for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
                trial_size(&trial, &rows[r]);
                fill(bench, &trial, "x");
                trial_run(&trial);
                expect_rms_norm(&trial, rows[r], widths[w], bench_way(way)->name);
            }
            trial_close(&trial);
        }
}

/* quack's softmax asks for columns that are a multiple of 8. */
static void test_softmax_of_any_width(void **state) {
    static const char *const widths[] = {"1", "7", "9", "1001", "32771", "any"};
    static const Way ways[] = {{"as it comes", NULL, NULL, false},
                               {"loop", "strategy=row_loop", "row_loop", false},
                               {"split", "split=all", "row_split", false}};
    Bench *bench = *state;
    double *x = malloc(3 * 32771 * sizeof *x), *y = x + 32771, *bound = y + 32771;
    for (size_t w = 0; w < 3; w++)
        for (size_t k = 0; k < 6; k++) {
            if ((w == 0) == (k == 5)) continue; /* each width, then any in a loop and split */
            Trial trial = trial_open(bench, &ways[w],
                                     "dims: {M: any, N: %s}\ninputs: {x: 'bf16[M, N]'}\n"
                                     "nodes: {y: 'softmax(x, -1)'}\noutputs: {y: bf16}",
                                     w ? "any" : widths[k]);
            for (size_t at = w ? 0 : k; at < (w ? 5 : k + 1); at++) {
                const int64_t n = atoll(widths[at]);
                trial_size(&trial, (int64_t[]){3, n});
                fill(bench, &trial, "x");
                trial_run(&trial);
                for (int r = 0; r < 3; r++) {
                    trial_get_row(&trial, "x", r * n, n, x);
                    softmax_row(x, n, y, bound);
                    trial_expect(&trial, "y", r * n, n, y, bound, ways[w].name);
                }
            }
            trial_close(&trial);
            if (w) break;
        }
    free(x);
}

/* pytorch#104948, pytorch#102546, pytorch#188218, nvFuser#467: nothing of anything. Sums of nothing are 0, means NaN,
 * and amax of nothing is refused at launch, unless there is nowhere to put it. */
static void test_nothing(void **state) {
    static const int64_t dims[][2] = {{0, 5}, {3, 0}, {0, 0}, {3, 1}, {3, 32}, {1, 1}};
    Bench *bench = *state;
    static const Way loop = {"loop", "strategy=row_loop", NULL, false}, split = {"split", "split=all", NULL, false};
    const Way *const ways[] = {NULL, &loop, &split};
    for (size_t w = 0; w < 3; w++) {
        Trial sums = trial_open(bench, ways[w],
                                "dims: {M: any, N: any}\ninputs: {x: 'f32[M, N]'}\n"
                                "nodes: {y: layer_norm(x), s: 'sum(x, -1)', m: 'mean(x, -1)', p: 'prod(x, -1)',\n"
                                "  t: 'sum(x, 0)', a: sum(x)}\n"
                                "outputs: {y: f32, s: f32, m: f32, p: f32, t: f32, a: f32}");
        for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
            trial_size(&sums, dims[d]);
            fill(bench, &sums, "x");
            trial_run(&sums);
            for (int64_t r = 0; r < dims[d][0] && !dims[d][1]; r++) {
                assert_true(trial_get(&sums, "s", r) == 0 && trial_get(&sums, "p", r) == 1);
                assert_true(isnan(trial_get(&sums, "m", r)));
            }
            for (int64_t c = 0; c < dims[d][1] && !dims[d][0]; c++) assert_true(trial_get(&sums, "t", c) == 0);
            if (!dims[d][0] || !dims[d][1]) assert_true(trial_get(&sums, "a", 0) == 0);
        }
        trial_close(&sums);
        Trial most = trial_open(bench, ways[w],
                                "dims: {M: any, N: any}\ninputs: {x: 'f32[M, N]'}\n"
                                "nodes: {y: 'amax(x, -1)', z: 'softmax(x, -1)'}\noutputs: {y: f32, z: f32}");
        for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
            ng_text why;
            trial_size(&most, dims[d]);
            fill(bench, &most, "x");
            const ng_status status = trial_launch(&most, true, &why);
            assert_int_equal(status, dims[d][0] && !dims[d][1] ? NG_USAGE : NG_OK);
            if (status) assert_true(text_has(why, "amax"));
            ng_text_free(&why);
        }
        trial_close(&most);
    }
}

/* ---- strides ---- */

/* pytorch#84144, pytorch#192007, onnxruntime#32299, apex#1568: softmax of a transposed view. */
static void test_transposed(void **state) {
    Bench *bench = *state;
    static const Way one = {"one part", "split=off", "column", false}, all = {"parts", "split=all", "finalize", false};
    const Way *const ways[] = {&one, &all};
    for (int w = 0; w < 2; w++) {
        enum { M = 37, N = 129 };
        Trial trial = trial_open(bench, ways[w],
                                 "dims: {M: any, N: 129}\ninputs: {x: {dtype: f32, shape: [M, N], strides: [1, M]}}\n"
                                 "nodes: {y: 'softmax(x, -1)'}");
        trial_size(&trial, (int64_t[]){M});
        fill(bench, &trial, "x");
        trial_run(&trial);
        double x[N], y[N], bound[N];
        for (int r = 0; r < M; r++) {
            for (int c = 0; c < N; c++) x[c] = trial_get(&trial, "x", r + c * M);
            softmax_row(x, N, y, bound);
            trial_expect(&trial, "y", r * N, N, y, bound, ways[w]->name);
        }
        trial_close(&trial);
    }
}

/* A wish of TorchTitan's users: a view of packed projections, packed[:, 1, :], whose row stride and offset are known
 * when the graph is compiled and stand in the kernel as numbers. */
static void test_packed(void **state) {
    enum { M = 19, N = 6144 };
    Bench *bench = *state;
    Trial trial = trial_open(bench, NULL,
                             "dims: {M: any, N: 6144}\ninputs: {packed: 'bf16[M, 2, N]'}\n"
                             "nodes: {x: 'packed[:, 1, :]', y: 'rms_norm(x, eps=1e-6)'}\noutputs: {y: bf16}");
    trial_size(&trial, (int64_t[]){M});
    fill(bench, &trial, "packed");
    trial_run(&trial);
    double x[N], y[N], bound[N];
    for (int r = 0; r < M; r++) {
        trial_get_row(&trial, "packed", (2 * r + 1) * N, N, x);
        rms_norm_row(x, N, (double)1e-6f, y, bound);
        trial_expect(&trial, "y", r * N, N, y, bound, "packed");
    }
    ng_text text = trial_text(&trial, NG_TEXT_CUDA);
    assert_true(text_has(text, "12288"));
    ng_text_free(&text);
    ng_kernel kernel = {.size = sizeof kernel};
    assert_int_equal(ng_kernel_query(trial.program, 0, &kernel), NG_OK);
    assert_string_equal(kernel.variant, "aligned"); /* there is a kernel of whole accesses */
    trial_close(&trial);
}

/* ---- in place ---- */

/* Liger#370, Liger#376, Liger#1305, ik_llama.cpp#916, ggml#1519: what an output replaces is read later. In place where
 * every load of an element comes before its store; else refused with the read. */
static void test_in_place(void **state) {
    Bench *bench = *state;
    static const char norm[] = "dims: {M: any, N: 520}\ninputs: {x: 'f32[M, N]', r: 'f32[M, N]'}\n"
                               "nodes: {h: x + r, y: 'rms_norm(h, eps=1e-6)'}\n";
    static const struct {
        const char *outputs;
        const char *y, *h; /* the inputs whose memory they take */
    } legal[] = {{"{y: {dtype: f32, inplace: x}, h: {dtype: f32, inplace: r}}", "x", "r"},
                 {"{y: {dtype: f32, inplace: r}, h: {dtype: f32, inplace: x}}", "r", "x"}};
    for (uint32_t way = 0; way < WAYS; way++)
        for (size_t i = 0; i < 2; i++) {
            Trial trial = {0};
            ng_text why = {NULL, 0};
            char graph[512];
            snprintf(graph, sizeof graph, "%soutputs: %s", norm, legal[i].outputs);
            const ng_status status = trial_try(bench, bench_way(way), graph, &trial, &why);
            if (status) fail_msg("%s", why.bytes);
            ng_text_free(&why);
            trial_size(&trial, (int64_t[]){5});
            fill(bench, &trial, "x");
            fill(bench, &trial, "r");
            trial_run(&trial);
            const uint64_t y = trial.reports[0].hash, h = trial.reports[1].hash;
            trial.owner[trial_tensor(&trial, "y")] = trial_tensor(&trial, legal[i].y);
            trial.owner[trial_tensor(&trial, "h")] = trial_tensor(&trial, legal[i].h);
            trial_run(&trial);
            assert_true(trial.reports[0].hash == y && trial.reports[1].hash == h);
            trial_close(&trial);
        }
    static const char *const refused[] = {
        "dims: {M: any, N: 520}\ninputs: {x: 'f32[M, N]', ids: 'i64[M]'}\n"
        "nodes: {y: 'rms_norm(x[ids], eps=1e-6)'}\noutputs: {y: {dtype: f32, inplace: x}}",
        "dims: {M: any, N: 520}\ninputs: {x: 'f32[M, N]', r: 'f32[M, N]'}\n"
        "nodes: {y: 'x + r', z: 'x - r'}\noutputs: {y: {dtype: f32, inplace: r}, z: {dtype: f32, inplace: r}}",
        "dims: {M: any, N: 520}\ninputs: {x: 'f32[M, N]'}\n"
        "nodes: {y: 'x[:, :260] + x[:, 260:520]'}\noutputs: {y: {dtype: f32, inplace: 'x[:, 130:390]'}}",
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        Trial trial;
        ng_text why;
        const ng_status status = trial_try(bench, NULL, refused[i], &trial, &why);
        if (status != NG_REJECTED) fail_msg("not rejected (%s): %s", ng_status_name(status), refused[i]);
        assert_true(text_has(why, "in place") || text_has(why, "overlap"));
        ng_text_free(&why);
    }
}

/* ---- one compile ---- */

/* Liger#988, sglang#23436, sglang#23448, unsloth-zoo#1003: a compile for each number of rows. Here one serves all: from
 * then on there is no compiler to be found. */
static void test_one_compile(void **state) {
    enum { N = 320 };
    Bench *bench = *state;
    static const char graph[] = "dims: {M: any, N: 320}\ninputs: {x: 'bf16[M, N]'}\n"
                                "nodes: {y: 'rms_norm(x, eps=1e-6)', s: 'sum(x, 0)'}\noutputs: {y: bf16, s: f32}";
    Trial trial = trial_open(bench, NULL, "%s", graph), again = trial_open(bench, NULL, "%s", graph);
    assert_ptr_equal(trial.program, again.program);
    trial_close(&again);
    const char *path = getenv("PATH"), *given = getenv("CXX");
    char *kept = path ? strdup(path) : NULL, *compiler = given ? strdup(given) : NULL;
    setenv("PATH", "/nonexistent", 1);
    setenv("CXX", "/nonexistent/c++", 1);
    Trial none;
    ng_text why = {NULL, 0};
    ng_status without = NG_NOT_COMPILED;
    if (!bench->cuda)
        without = trial_try(bench, NULL, "dims: {M: any}\ninputs: {x: 'f32[M]'}\nnodes: {y: x}", &none, &why);
    ng_text_free(&why);
    for (int64_t m = 1; m <= 64; m++) {
        trial_size(&trial, &m);
        fill(bench, &trial, "x");
        trial_run(&trial);
        expect_rms_norm(&trial, m, N, "one compile");
    }
    if (kept) setenv("PATH", kept, 1);
    unsetenv("CXX");
    if (compiler) setenv("CXX", compiler, 1);
    free(kept);
    free(compiler);
    trial_close(&trial);
    assert_int_not_equal(without, NG_OK);
}

/* pytorch#186426, pytorch#183696: rows numbered b * (t + 1), which could not be split. */
static void test_rows_of_a_formula(void **state) {
    static const int64_t dims[][2] = {{1, 0}, {3, 196}, {3, 197}, {2, 1}, {0, 5}};
    Bench *bench = *state;
    static const Way split = {"split", "split=all", NULL, false};
    for (int way = 0; way < 2; way++) {
        Trial trial = trial_open(bench, way ? &split : NULL,
                                 "dims: {B: any, T: any, N: 96}\ninputs: {x: 'f32[B * (T + 1), N]'}\n"
                                 "nodes: {y: 'rms_norm(x, eps=1e-6)', s: 'sum(y, 0)'}\noutputs: {y: f32, s: f32}");
        for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
            trial_size(&trial, dims[d]);
            fill(bench, &trial, "x");
            trial_run(&trial);
            expect_rms_norm(&trial, dims[d][0] * (dims[d][1] + 1), 96, "formula");
        }
        trial_close(&trial);
    }
}

/* ---- batches ---- */

/* Fills each of count rows with the same numbers and says whether the outputs of all, of `each` elements a row, have
 * the bits of `first` (filled when it is NULL). */
static bool rows_agree(Trial *trial, const double *x, int64_t columns, int64_t count, const char *output, int64_t each,
                       void **first) {
    const uint32_t in = trial_tensor(trial, "x"), out = trial_tensor(trial, output);
    const size_t bytes = (size_t)each * ng_dtype_bytes(trial->dtype[out]);
    trial_size(trial, &count);
    for (int64_t i = 0; i < columns; i++) trial_set(trial, "x", i, x[i]);
    const size_t row = (size_t)columns * ng_dtype_bytes(trial->dtype[in]);
    for (int64_t r = 1; r < count; r++) memcpy((char *)trial->bytes[in] + (size_t)r * row, trial->bytes[in], row);
    assert_int_equal(trial_launch(trial, false, NULL), NG_OK);
    if (!*first) {
        *first = malloc(bytes);
        memcpy(*first, trial->bytes[out], bytes);
    }
    for (int64_t r = 0; r < count; r++)
        if (memcmp((char *)trial->bytes[out] + (size_t)r * bytes, *first, bytes)) return false;
    return true;
}

typedef struct Batches {
    const char *graph, *output;
    int64_t columns, each, counts[7];
} Batches;

/* How many of the numbers of rows give a row of x other bits than the first does. */
static uint32_t count_other(Trial *trial, const Bench *bench, const Batches *rows, const double *x, bool alike) {
    uint32_t other = 0;
    void *first = NULL;
    for (const int64_t *count = rows->counts; *count; count++) {
        if (bench->reduced && *count > 300) continue;
        const bool agree = rows_agree(trial, x, rows->columns, *count, rows->output, rows->each, &first);
        if (alike && !agree) fail_msg("other bits among %d rows: %s", (int)*count, rows->graph);
        other += !agree;
    }
    free(first);
    return other;
}

/* A part of the device's SMs, at least 1. */
static int64_t share_of_sms(const Bench *bench, int share) {
    ng_device device = {.size = sizeof device};
    assert_int_equal(ng_context_device(bench->context, &device), NG_OK);
    return device.sms > share ? device.sms / share : 1;
}

/* vLLM#48271, vLLM#48272, vLLM#48391, pytorch#180832, pytorch#181089: a row's bits follow the number of rows. With
 * --batch-invariant they do not, nor does the row's place; without it long rows are split by how many there are.
 *
 * Of the long rows, parts of one chunk of 4 are at least 17 for each CTA that an SM holds, whose threads are 2048 at
 * most; a quarter as many rows as SMs leave room for 4 a CTA. So their numbers differ on every device. Sums in other
 * parts may still come to the same bits: then another row of numbers is tried. */
static void test_batch_invariant(void **state) {
    Bench *bench = *state;
    static const Way invariant = {"batch-invariant", NULL, NULL, true}, usual = {"usual", NULL, NULL, false},
                     small = {"small parts", "n0.chunks=1", NULL, false};
    const Batches rows[] = {
        {"dims: {M: any, N: 768}\ninputs: {x: 'bf16[M, N]'}\nnodes: {y: layer_norm(x)}\noutputs: {y: bf16}",
         "y",
         768,
         768,
         {1, 64, 255, 256, 4096, 5000, 0}},
        {"dims: {M: {hint: 2}, N: 140000}\ninputs: {x: 'f32[M, N]'}\nnodes: {y: 'sum(exp(x), -1)'}",
         "y",
         140000,
         1,
         {1, 2, 3, share_of_sms(bench, 8), share_of_sms(bench, 4), 40, 0}},
        {"dims: {M: any, K: 1500, N: 7}\ninputs: {x: 'f32[M, K, N]'}\nnodes: {y: 'sum(exp(x), 1)'}",
         "y",
         10500,
         7,
         {1, 2, 40, 200, 0}},
    };
    double *x = malloc(140000 * sizeof *x);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const bool lengthy = i == 1;
        normal_row(&bench->random, 0, 1, rows[i].columns, x);
        Trial trial = trial_open(bench, &invariant, "%s", rows[i].graph);
        count_other(&trial, bench, &rows[i], x, true);
        if (i < 2) assert_int_equal(trial_count(&trial, "row_split") + trial_count(&trial, "finalize"), 0);
        trial_close(&trial);
        trial = trial_open(bench, lengthy ? &small : &usual, "%s", rows[i].graph);
        const uint32_t splits = trial_count(&trial, "row_split") + trial_count(&trial, "finalize");
        uint32_t other = count_other(&trial, bench, &rows[i], x, false), draws = 1;
        for (; lengthy && !other && draws < 16; draws++) {
            normal_row(&bench->random, 0, 1, rows[i].columns, x);
            other = count_other(&trial, bench, &rows[i], x, false);
        }
        trial_close(&trial);
        print_message("# batch-invariant rows of %d elements; else %u kernels make parts and %u numbers of rows give "
                      "other bits, of %u rows tried\n",
                      (int)rows[i].columns, splits, other, draws);
        if (lengthy) assert_true(splits > 0 && other > 0); /* so that the option has something to do */
    }
    void *first = NULL;
    for (int m = 2; m <= 40; m += 38) { /* nor on what is known when the graph is compiled */
        Trial fixed = trial_open(bench, &invariant,
                                 "dims: {M: %d, N: 140000}\ninputs: {x: 'f32[M, N]'}\n"
                                 "nodes: {y: 'sum(exp(x), -1)'}",
                                 m);
        if (!rows_agree(&fixed, x, 140000, m, "y", 1, &first)) fail_msg("other bits among %d fixed rows", m);
        trial_close(&fixed);
    }
    free(first);
    free(x);
    Trial trial;
    ng_text why;
    static const Way both = {"both", "split=all", NULL, true};
    const ng_status status = trial_try(bench, &both, rows[1].graph, &trial, &why);
    assert_int_not_equal(status, NG_OK); /* a forced knob is never changed silently */
    ng_text_free(&why);
}

#define TEST(name) cmocka_unit_test_prestate(name, &bench)

int main(int argc, char **argv) {
    Bench bench;
    if (!bench_open(&bench, argc, argv)) return 3;
    const struct CMUnitTest tests[] = {
        TEST(test_every_offset),   TEST(test_ragged),      TEST(test_softmax_of_any_width),
        TEST(test_nothing),        TEST(test_transposed),  TEST(test_packed),
        TEST(test_in_place),       TEST(test_one_compile), TEST(test_rows_of_a_formula),
        TEST(test_batch_invariant)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bench_close(&bench);
    return failed;
}
