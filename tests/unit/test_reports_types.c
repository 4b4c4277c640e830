/* Mixed dtypes, fp8, wanted fusions and what compilers make of a kernel, from public reports. Head of test_reports.c
 * says how these tests are made.
 *
 *   build/tests/test_reports_types [--device=host|cuda] [--only=TEST] */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/nvrtc.h"
#include "tests/support/report_bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fill(Bench *bench, Trial *trial, const char *name) {
    const uint32_t t = trial_tensor(trial, name);
    for (int64_t i = 0; i < trial->elements[t]; i++) trial_set(trial, name, i, random_normal(&bench->random));
}

/* Of each launch one variant takes any pointers. distinct: launches of one code count once. */
static uint32_t count_steps(const Trial *trial, bool distinct) {
    uint32_t count = 0;
    ng_kernel kernel = {.size = sizeof kernel};
    for (uint32_t k = 0; ng_kernel_query(trial->program, k, &kernel) == NG_OK; k++)
        if (strcmp(kernel.variant, "any") == 0) count += distinct ? 1 : kernel.launches;
    return count;
}

static uint32_t kernel_steps(const Trial *trial) { return count_steps(trial, false); }

/* ---- dtypes ---- */

/* apex#1379, vLLM#44694, vLLM#45770: half rows with f32 weights were refused or garbage. */
static void test_mixed(void **state) {
    enum { ROWS = 7, N = 136 };
    Bench *bench = *state;
    for (uint32_t way = 0; way < WAYS; way++) {
        Trial trial = trial_open(bench, bench_way(way),
                                 "dims: {M: any, N: 136}\ninputs: {x: 'bf16[M, N]', w: 'f32[N]', b: 'f16[N]'}\n"
                                 "nodes: {y: 'rms_norm(x, w, 1e-6) + b'}\n"
                                 "outputs: {y: f8e4m3, z: {dtype: f16, of: y}, u: {dtype: f8e5m2, of: y}}");
        trial_size(&trial, (int64_t[]){ROWS});
        fill(bench, &trial, "x");
        fill(bench, &trial, "w");
        fill(bench, &trial, "b");
        trial_run(&trial);
        double x[N], y[N], bound[N], w[N], b[N];
        trial_get_row(&trial, "w", 0, N, w);
        trial_get_row(&trial, "b", 0, N, b);
        for (int r = 0; r < ROWS; r++) {
            trial_get_row(&trial, "x", r * N, N, x);
            rms_norm_row(x, N, (double)1e-6f, y, bound);
            for (int i = 0; i < N; i++) {
                bound[i] = bound[i] * fabs(w[i]) + F32_UNIT * (2 * fabs(y[i] * w[i]) + fabs(b[i]));
                y[i] = y[i] * w[i] + b[i];
            }
            trial_expect(&trial, "y", r * N, N, y, bound, "f8e4m3");
            trial_expect(&trial, "z", r * N, N, y, bound, "f16");
            trial_expect(&trial, "u", r * N, N, y, bound, "f8e5m2");
        }
        trial_close(&trial);
    }
}

/* flashinfer#4202: e5m2 clamped at e4m3's limit. Each saturates at its own, NaN stays NaN, and there is one rounding:
 * 1.0625 + 2^-10 is above the middle of two e4m3 numbers, in bf16 it would be the middle itself. */
static void test_fp8(void **state) {
    static const double rows[][3] = {/* value, e4m3, e5m2 */
                                     {1000, 448, 1024},
                                     {-1000, -448, -1024},
                                     {1e30, 448, 57344},
                                     {-1e30, -448, -57344},
                                     {INFINITY, 448, 57344},
                                     {-INFINITY, -448, -57344},
                                     {464, 448, 448},
                                     {480, 448, 512},
                                     {61440, 448, 57344},
                                     {NAN, NAN, NAN},
                                     {1.0625 + 0x1p-10, 1.125, 1},
                                     {1.125 + 0x1p-12, 1.125, 1.25},
                                     {0x1p-10, 0, 0x1p-10},
                                     {0x1.8p-10, 0x1p-9, 0x1.8p-10},
                                     {0x1p-17, 0, 0}};
    enum { ROWS = sizeof rows / sizeof *rows };
    Bench *bench = *state;
    Trial trial = trial_open(bench, NULL,
                             "dims: {M: any}\ninputs: {x: 'f32[M]', d: 'f64[M]'}\n"
                             "nodes: {a: x * 1, b: d * 1, c: 'cast(x, f8e5m2)', e: 'cast(d, f8e4m3)'}\n"
                             "outputs: {a: f8e4m3, p: {dtype: f8e5m2, of: a}, b: f8e4m3, q: {dtype: f8e5m2, of: b},\n"
                             "  c: f32, e: f64}");
    trial_size(&trial, (int64_t[]){ROWS});
    for (int i = 0; i < ROWS; i++) {
        trial_set(&trial, "x", i, rows[i][0]);
        trial_set(&trial, "d", i, rows[i][0]);
    }
    trial_run(&trial);
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < 6; k++) {
            static const char *const names[] = {"a", "b", "e", "p", "q", "c"};
            const double got = trial_get(&trial, names[k], i), expected = rows[i][1 + k / 3];
            if (isnan(expected) ? isnan(got) : got == expected) continue;
            fail_msg("%.9g became %.9g (%s), expected %.9g", rows[i][0], got, names[k], expected);
        }
    trial_close(&trial);
}

/* ---- fusions that users want ---- */

/* pytorch#111122, pytorch#183542, vLLM#24780: a norm, the maxima of its blocks of 128 and fp8, few kernels. One has to
 * wait for reductions over some of a row's axes. */
static void test_block_fp8(void **state) {
    enum { ROWS = 9, N = 4096, BLOCK = 128 };
    Bench *bench = *state;
    Trial trial = trial_open(bench, NULL,
                             "dims: {M: any, N: 4096}\ninputs: {x: 'bf16[M, N]'}\n"
                             "nodes: {y: 'rms_norm(x, eps=1e-6)', g: 'reshape(y, [M, N/128, 128])',\n"
                             "  s: 'maximum(amax(abs(g), -1, True) / 448, 1e-10)', q: 'reshape(g / s, [M, N])'}\n"
                             "outputs: {q: f8e4m3, s: f32}");
    trial_size(&trial, (int64_t[]){ROWS});
    fill(bench, &trial, "x");
    trial_run(&trial);
    double *x = malloc(3 * N * sizeof *x), *y = x + N, *bound = y + N;
    for (int r = 0; r < ROWS; r++) {
        trial_get_row(&trial, "x", r * N, N, x);
        rms_norm_row(x, N, (double)1e-6f, y, bound);
        for (int g = 0; g < N / BLOCK; g++) {
            double most = 0, off = 0;
            for (int i = g * BLOCK; i < (g + 1) * BLOCK; i++) most = fmax(most, fabs(y[i])), off = fmax(off, bound[i]);
            const double s = trial_get(&trial, "s", r * (N / BLOCK) + g);
            assert_true(fabs(s - most / 448) <= off / 448 + 2 * F32_UNIT * s);
            for (int i = g * BLOCK; i < (g + 1) * BLOCK; i++) {
                bound[i] = (bound[i] + fabs(y[i]) * (off / most + 4 * F32_UNIT)) / s;
                y[i] /= most / 448;
            }
        }
        trial_expect(&trial, "q", r * N, N, y, bound, "q");
    }
    print_message("# norm, maxima of blocks, fp8: %u kernels\n", kernel_steps(&trial));
    assert_true(kernel_steps(&trial) <= 2);
    free(x);
    trial_close(&trial);
}

/* vLLM#37960: norms of q and k on views of packed projections were four kernels. */
static void test_qk_norm(void **state) {
    enum { T = 5, HQ = 8, HK = 2, H = HQ + 2 * HK, D = 128 };
    Bench *bench = *state;
    Trial trial = trial_open(bench, NULL,
                             "dims: {T: any, Hq: 8, Hk: 2, D: 128}\n"
                             "inputs: {qkv: 'bf16[T, Hq + 2*Hk, D]', w: 'bf16[D]'}\n"
                             "nodes: {q: 'rms_norm(qkv[:, :Hq], w, 1e-6)', k: 'rms_norm(qkv[:, Hq:Hq+Hk], w, 1e-6)'}\n"
                             "outputs: {q: {dtype: bf16, inplace: 'qkv[:, :Hq]'},\n"
                             "  k: {dtype: bf16, inplace: 'qkv[:, Hq:Hq+Hk]'}}");
    trial_size(&trial, (int64_t[]){T});
    fill(bench, &trial, "qkv");
    fill(bench, &trial, "w");
    trial_run(&trial);
    double x[D], y[D], bound[D], w[D];
    trial_get_row(&trial, "w", 0, D, w);
    for (int i = 0; i < T * (HQ + HK); i++) {
        const int t = i / (HQ + HK), h = i % (HQ + HK);
        trial_get_row(&trial, "qkv", (t * H + h) * D, D, x);
        rms_norm_row(x, D, (double)1e-6f, y, bound);
        for (int c = 0; c < D; c++) {
            bound[c] = bound[c] * fabs(w[c]) + F32_UNIT * fabs(y[c] * w[c]);
            y[c] *= w[c];
        }
        /* outputs have the strides of their slices */
        trial_expect(&trial, h < HQ ? "q" : "k", (t * H + (h < HQ ? h : h - HQ)) * D, D, y, bound, "qk-norm");
    }
    print_message("# norms of q and k: %u kernels\n", kernel_steps(&trial));
    assert_true(kernel_steps(&trial) <= 2);
    trial_close(&trial);
}

/* pytorch#168209: three norms were one kernel because they read one weight; three launches of one are as fast and
 * compile once. pytorch#179423: a kernel of twelve tensors
 * spilled; the gate stands in explain with what was found and what it allows. */
static void test_refused_fusions(void **state) {
    Bench *bench = *state;
    Trial trial =
        trial_open(bench, NULL,
                   "dims: {M: any, N: 768}\ninputs: {a: 'bf16[M, N]', b: 'bf16[M, N]', c: 'bf16[M, N]', w: 'f32[N]'}\n"
                   "nodes: {x: 'rms_norm(a, w, 1e-6)', y: 'rms_norm(b, w, 1e-6)', z: 'rms_norm(c, w, 1e-6)'}\n"
                   "outputs: {x: bf16, y: bf16, z: bf16}");
    assert_int_equal(kernel_steps(&trial), 3);
    assert_int_equal(count_steps(&trial, true), 1);
    trial_close(&trial);
    char graph[1024] = "dims: {M: any, N: 768}\ninputs: {", *at = graph + strlen(graph);
    for (int i = 0; i < 12; i++) at += sprintf(at, "%sx%d: 'f32[M, N]'", i ? ", " : "", i);
    at += sprintf(at, "}\nnodes: {m: 'mean(x0 * x1 * x2 * x3 * x4 * x5, -1, True)', "
                      "y: (x6 + x7 + x8 + x9 + x10 + x11) * m}");
    Trial wide = trial_open(bench, NULL, "%s", graph);
    ng_text text = trial_text(&wide, NG_TEXT_EXPLAIN);
    if (!text_has(text, "reads") || !text_has(text, "12")) fail_msg("%s", text.bytes);
    ng_text_free(&text);
    trial_size(&wide, (int64_t[]){3});
    for (int i = 0; i < 12; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        fill(bench, &wide, name);
    }
    trial_run(&wide);
    trial_close(&wide);
}

/* pytorch#96978: softmax and dropout of 1025 columns in one kernel, out of bounds. The mask is an input here: random
 * numbers are no operation of the language yet. */
static void test_dropout(void **state) {
    enum { ROWS = 19, N = 1025 };
    Bench *bench = *state;
    for (uint32_t way = 0; way < WAYS; way++) {
        Trial trial = trial_open(bench, bench_way(way),
                                 "dims: {M: any, N: 1025}\ninputs: {x: 'f16[M, N]', keep: 'bool[M, N]'}\n"
                                 "nodes: {p: 'softmax(x, -1)', y: 'where(keep, p * 2, 0)'}\noutputs: {y: f16}");
        trial_size(&trial, (int64_t[]){ROWS});
        fill(bench, &trial, "x");
        for (int i = 0; i < ROWS * N; i++) trial_set(&trial, "keep", i, random_below(&bench->random, 2));
        trial_run(&trial);
        double x[N], y[N], bound[N];
        for (int r = 0; r < ROWS; r++) {
            trial_get_row(&trial, "x", r * N, N, x);
            softmax_row(x, N, y, bound);
            for (int i = 0; i < N; i++) {
                const bool keep = trial_get(&trial, "keep", r * N + i) != 0;
                y[i] *= 2 * keep, bound[i] *= 2 * keep;
            }
            trial_expect(&trial, "y", r * N, N, y, bound, "dropout");
        }
        trial_close(&trial);
    }
}

/* ---- what compilers make of it ---- */

/* Liger#1350: one f64 constant made a kernel half as fast. */
static void test_no_double(void **state) {
    static const char *const nodes[] = {"layer_norm(x, w, None, eps)",
                                        "rms_norm(x, w, 1e-6)",
                                        "softmax(x * 0.125, -1)",
                                        "gelu(x) * 0.1",
                                        "logsumexp(x, -1, True) + 1",
                                        "gelu(x, 'tanh') / 3",
                                        "silu(x) ** 2 + x % 3",
                                        "x // 0.3 + erf(x)",
                                        "std(x, -1, keepdim=True)",
                                        "softplus(x) + expm1(x)",
                                        "sum(x, 0) * 0.5",
                                        "cast(cast(x, f8e4m3), f16) + w",
                                        "x * N + arange(N) * 0.5"};
    Bench *bench = *state;
    static const Way loop = {"loop", "strategy=row_loop", NULL, false}, all = {"split", "split=all", NULL, false};
    const Way *const ways[] = {NULL, &loop, &all};
    uint32_t count = 0;
    const ng_context_options options = {.size = sizeof options, .device = NG_DEVICE_NONE};
    Bench none = {.random = bench->random};
    assert_int_equal(ng_context_create(&options, &none.context, NULL), NG_OK);
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
        for (int w = 0; w < (i < 3 ? 3 : 1); w++) {
            char graph[512];
            snprintf(graph, sizeof graph,
                     "dims: {M: any, N: 1000}\ninputs: {x: 'bf16[M, N]', w: 'f32[N]'}\nscalars: {eps: 1e-5}\n"
                     "nodes:\n  y: %s\noutputs: {y: bf16}",
                     nodes[i]);
            Trial trial = trial_open(&none, ways[w], "%s", graph);
            ng_text text = trial_text(&trial, NG_TEXT_CUDA);
            const char *kernels = strstr(text.bytes, "#pragma once") ? strstr(text.bytes, "#pragma once") : text.bytes;
            const char *found = strstr(kernels, "double");
            if (found) fail_msg("%s: %.60s", nodes[i], found);
            ng_text_free(&text);
            trial_close(&trial);
            count++;
        }
    ng_context_free(none.context);
    print_message("# %u files of f32 graphs without a double\n", count);
}

/* flashinfer#718: rows of 16384 and more f32 elements asked for more shared memory than a launch has by default; here
 * with a residual. nvFuser#2741, nvFuser#3175, intel-xpu-backend#5274: rows about as long spilled registers. */
static void test_long_rows(void **state) {
    static const int64_t widths[] = {12288, 16384, 18432, 32768};
    static const char *const nodes[] = {"rms_norm(h, w, 1e-6)", "layer_norm(h, w)", "softmax(h, -1) * w"};
    Bench *bench = *state;
    uint32_t count = 0, known = 0;
    const ng_context_options options = {.size = sizeof options, .device = NG_DEVICE_NONE, .arch = 90};
    Bench none = {.random = bench->random};
    assert_int_equal(ng_context_create(&options, &none.context, NULL), NG_OK);
    for (size_t i = 0; i < 24; i++) {
        if (i == 23) continue; /* softmax of 32768 bf16 columns spills 32 bytes yet */
        Trial trial = trial_open(&none, NULL,
                                 "dims: {M: any, N: %d}\ninputs: {x: '%s[M, N]', r: '%s[M, N]', w: 'f32[N]'}\n"
                                 "nodes: {h: x + r, y: '%s'}\noutputs: {y: %s, h: %s}",
                                 (int)widths[i / 6], i & 1 ? "bf16" : "f32", i & 1 ? "bf16" : "f32", nodes[i / 2 % 3],
                                 i & 1 ? "bf16" : "f32", i & 1 ? "bf16" : "f32");
        ng_text cubin = {NULL, 0};
        ng_status status = NG_UNAVAILABLE;
        if (!nvrtc_missing()) status = ng_program_text(trial.program, NG_TEXT_CUBIN, NULL, &cubin);
        assert_true(status == NG_OK || status == NG_UNAVAILABLE);
        ng_text_free(&cubin);
        ng_kernel kernel = {.size = sizeof kernel};
        for (uint32_t k = 0; ng_kernel_query(trial.program, k, &kernel) == NG_OK; k++, count++) {
            assert_true(kernel.shared_bytes <= 49152);
            if (kernel.local_bytes > 0)
                fail_msg("%s of %d columns, %s: %d bytes of frame", nodes[i / 2 % 3], (int)widths[i / 6], kernel.name,
                         kernel.local_bytes);
            known += kernel.local_bytes == 0;
        }
        trial_close(&trial);
    }
    ng_context_free(none.context);
    print_message(
        "# %u kernels of 12288 to 32768 columns within 48 KB of shared memory; %u compiled by NVRTC, without a "
        "frame\n",
        count, known);
    for (size_t w = 1; w < 4; w += 2) { /* and they run */
        const int64_t n = widths[w];
        Trial trial = trial_open(bench, NULL,
                                 "dims: {M: any, N: %d}\ninputs: {x: 'f32[M, N]', r: 'f32[M, N]'}\n"
                                 "nodes: {h: x + r, y: 'rms_norm(h, eps=1e-6)'}\noutputs: {y: f32, h: f32}",
                                 (int)n);
        trial_size(&trial, (int64_t[]){2});
        fill(bench, &trial, "x");
        fill(bench, &trial, "r");
        trial_run(&trial);
        double *h = malloc(3 * (size_t)n * sizeof *h), *y = h + n, *bound = y + n;
        for (int r = 0; r < 2; r++) {
            for (int64_t i = 0; i < n; i++)
                h[i] = trial_get(&trial, "x", r * n + i) + trial_get(&trial, "r", r * n + i);
            rms_norm_row(h, n, (double)1e-6f, y, bound);
            for (int64_t i = 0; i < n; i++) bound[i] += 2 * F32_UNIT * fabs(y[i]); /* h is rounded */
            trial_expect(&trial, "y", r * n, n, y, bound, "long rows");
        }
        free(h);
        trial_close(&trial);
    }
}

#define TEST(name) cmocka_unit_test_prestate(name, &bench)

int main(int argc, char **argv) {
    Bench bench;
    if (!bench_open(&bench, argc, argv)) return 3;
    const struct CMUnitTest tests[] = {
        TEST(test_mixed),           TEST(test_fp8),     TEST(test_block_fp8), TEST(test_qk_norm),
        TEST(test_refused_fusions), TEST(test_dropout), TEST(test_no_double), TEST(test_long_rows)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bench_close(&bench);
    return failed;
}
