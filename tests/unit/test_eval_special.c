/* The oracle on sums of products beyond their dtype: a kernel's sum takes the factors, so that a product that no f32
 * (f64) holds may come back within it before it is rounded. Against such sums done here, with and without fma. And the
 * signs of zeros. And casts that do not round, or whose rounding is a bound. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ir/eval_ops.h"
#include "tests/support/graph_text.h"
#include "tests/support/prog_case.h"
#include "tests/support/random.h"

static uint64_t seed;

enum { MOST = 12 };

typedef struct Terms {
    DType dtype;
    uint32_t count;
    double x[MOST], y[MOST], error[MOST]; /* of x */
} Terms;

/* Factors whose products lie about the dtype's largest number, some far below; one inf now and then. */
static Terms draw_terms(Random *random, DType dtype) {
    Terms terms = {.dtype = dtype, .count = 1 + random_below(random, MOST)};
    const int half = dtype == DTYPE_F64 ? 512 : 64;
    const bool one_sign = random_below(random, 4) == 0, certain = random_below(random, 2);
    for (uint32_t i = 0; i < terms.count; i++) {
        const int exponent =
            random_below(random, 4) ? half - (int)random_below(random, 3) : (int)random_below(random, 9);
        const double sign = one_sign || random_below(random, 2) ? 1 : -1;
        terms.x[i] = ir_round(dtype, sign * ldexp(1 + random_unit(random), exponent - 1));
        terms.y[i] = ir_round(dtype, ldexp(1 + random_unit(random), half));
        if (random_below(random, 100) == 0) terms.y[i] = (double)INFINITY;
        terms.error[i] = certain || random_below(random, 2) ? 0 : fabs(terms.x[i]) * random_unit(random) * 0x1p-6;
    }
    return terms;
}

static void expect(const Terms *terms, bool factors, double *value, double *bound) {
    const RealOps *real = terms->dtype == DTYPE_F64 ? &ir_real_long : &ir_real_double;
    double product[MOST], product_bound[MOST], low[MOST] = {0}, last = 0, none[MOST] = {0};
    uint64_t uncertain = 0;
    const ElementOp mul = {OP_MUL, terms->dtype, terms->dtype, terms->dtype, &uncertain, 0, factors, EVAL_CASTS_ROUND};
    double *const lows = terms->dtype == DTYPE_F64 ? low : NULL;
    double x[MOST], y[MOST], error[MOST];
    memcpy(x, terms->x, sizeof x), memcpy(y, terms->y, sizeof y), memcpy(error, terms->error, sizeof error);
    const Lane in[2] = {{.number = x, .bound = error, .step = 1}, {.number = y, .bound = none, .step = 1}};
    const Lane out = {.number = product, .bound = product_bound, .step = 1, .low = lows};
    real->elements(&mul, in, out, terms->count);
    Accumulator accumulator;
    real->reduce_start(REDUCTION_ADD, terms->dtype, &accumulator);
    real->reduce(REDUCTION_ADD, terms->dtype, &accumulator, 0, out, terms->count);
    real->reduce_finish(REDUCTION_ADD, terms->dtype, &accumulator, 0, 0,
                        (Lane){.number = value, .bound = bound, .step = 1, .low = lows ? &last : NULL});
}

static double add_term(DType dtype, bool fused, double x, double y, double sum) {
    if (dtype == DTYPE_F64) return fused ? fma(x, y, sum) : x * y + sum;
    if (fused) return (double)fmaf((float)x, (float)y, (float)sum);
    return (double)((float)((float)x * (float)y) + (float)sum);
}

/* As a kernel may: in any order, in up to three parts. */
static double sum_up(Random *random, const Terms *terms, bool fused) {
    double sum[3] = {0};
    bool done[MOST] = {false};
    for (uint32_t left = terms->count; left > 0; left--) {
        uint32_t i = random_below(random, terms->count);
        while (done[i]) i = (i + 1) % terms->count;
        done[i] = true;
        const double moved =
            ir_round(terms->dtype, terms->x[i] + terms->error[i] * (random_unit(random) * 2 - 1) * 0.99);
        double *to = &sum[random_below(random, 3)];
        *to = add_term(terms->dtype, fused, terms->error[i] > 0 ? moved : terms->x[i], terms->y[i], *to);
    }
    return ir_round(terms->dtype, ir_round(terms->dtype, sum[0] + sum[1]) + sum[2]);
}

/* All of one sign, and a product beyond the dtype by more than its bound: inf in any order. */
static bool surely_inf(const Terms *terms) {
    const double largest = terms->dtype == DTYPE_F64 ? 0x1p512 : 0x1p64;
    bool found = false;
    for (uint32_t i = 0; i < terms->count; i++) {
        if (terms->x[i] < 0) return false;
        found |= terms->y[i] >= largest && terms->x[i] > largest && terms->error[i] == 0;
    }
    return found;
}

static void sums_hold(void **unused) {
    (void)unused;
    Random random = {seed};
    uint32_t unbounded = 0, infinite = 0, came_back = 0;
    for (int round = 0; round < 40000; round++) {
        const Terms terms = draw_terms(&random, round % 4 ? DTYPE_F32 : DTYPE_F64);
        double value, bound, rounded, rounded_bound;
        expect(&terms, true, &value, &bound);
        expect(&terms, false, &rounded, &rounded_bound);
        unbounded += isinf(bound) != 0;
        infinite += isinf(value) && !isinf(bound);
        if (surely_inf(&terms)) assert_true(isinf(value) && bound == 0);
        for (int t = 0; t < 6; t++) {
            const bool fused = t % 2 == 0;
            const double got = sum_up(&random, &terms, fused);
            came_back += fused && isnan(rounded) && rounded_bound == 0 && !isnan(got);
            if (ir_element_passes(terms.dtype, got, value, bound) &&
                (fused || ir_element_passes(terms.dtype, got, rounded, rounded_bound)))
                continue;
            fail_msg("a sum of %u products in %s: %a +- %a, rounded %a +- %a, got %a %s fma", terms.count,
                     ir_dtype(terms.dtype)->name, value, bound, rounded, rounded_bound, got,
                     fused ? "with" : "without");
        }
    }
    printf("# %u sums are inf for certain, %u without bound; %u were numbers where rounded products give NaN\n",
           infinite, unbounded, came_back);
    assert_true(infinite > 1000 && came_back > 1000);
}

/* ---- which products ---- */

static Expected of_output(const GraphText *text, const float *x, const float *y, uint32_t output) {
    float held[2][4];
    memcpy(held[0], x, sizeof held[0]), memcpy(held[1], y, sizeof held[1]);
    const View views[2] = {{held[0], {1}, {4}, 1, DTYPE_F32, NULL, NULL},
                           {held[1], {1}, {4}, 1, DTYPE_F32, NULL, NULL}};
    const EvalInput input = {.dims = (const int64_t[]){4}, .inputs = views};
    return ir_eval_graph(text->job, text->unit.graph, &input, output, NULL);
}

static void only_products_that_are_summed(void **unused) {
    (void)unused;
    static const char graph[] = "graph: g\ndims: {N: 4}\ninputs: {x: 'f32[N]', y: 'f32[N]'}\n"
                                "nodes:\n  p: x * y\n  q: 2 * x * y\n  s: sum(p, dim=0)\n"
                                "  moved: 'sum(reshape(p, [2, 2])[:, None], dim=[0, 1, 2])'\n"
                                "  chosen: sum(where(x != 0, q, 0), dim=0)\n"
                                "outputs: {s: f32, moved: f32, chosen: f32, p: f32}\n";
    GraphText *text = graph_text_string(graph, UP_TO_SIMPLIFY);
    if (text->status) fail_msg("%s", ir_job_report(text->job));
    const float x[4] = {0x1p100f, -0x1p100f, 1, 0}, y[4] = {0x1p30f, 0x1p30f, 3, 1};
    for (uint32_t o = 0; o < 2; o++) assert_true(isinf(of_output(text, x, y, o).bound[0]));
    const Expected chosen = of_output(text, x, y, 2); /* a choice is of rounded products */
    assert_true(isnan(chosen.number[0]) && chosen.bound[0] == 0);
    const Expected products = of_output(text, x, y, 3); /* which are certain */
    assert_true(isinf(products.number[0]) && isinf(products.number[1]) && products.number[2] == 3);
    for (int i = 0; i < 4; i++) assert_true(!isinf(products.bound[i]));
    assert_false(ir_element_passes(DTYPE_F32, 3e38, products.number[0], products.bound[0]));
    const float one_sign[4] = {0x1p100f, 0x1p100f, 1, 0}, infinite[4] = {INFINITY, 1, 1, 1},
                both[4] = {INFINITY, -INFINITY, 1, 1};
    for (uint32_t o = 0; o < 3; o++) {
        Expected all = of_output(text, one_sign, y, o);
        assert_true(isinf(all.number[0]) && all.bound[0] == 0);
        all = of_output(text, infinite, y, o);
        assert_true(isinf(all.number[0]) && all.bound[0] == 0);
        all = of_output(text, both, y, o);
        assert_true(isnan(all.number[0]) && all.bound[0] == 0);
    }
    graph_text_free(text);
}

/* The same in a nest; what another nest loads was rounded. */
static void progs_case(Job *job, void *unused) {
    (void)unused;
    static const char text[] = "prog p\nbuf x f32 [4] in\nbuf y f32 [4] in\nbuf s f32 [1] out\nbuf m f32 [4] out\n"
                               "buf t f32 [1] out\nbuf v f32 [4] out\n"
                               "nest a (r:1 | c:4) INNER {\n  %0 f32<c> = load x[0 + c*1]\n"
                               "  %1 f32<c> = load y[0 + c*1]\n  %2 f32<c> = mul %0 %1\n  store m[0 + c*1] %2\n"
                               "  %3 f32<> = reduce add {c} %2\n  store s[0 + r*1] %3\n}\n"
                               "nest b (r:1 | c:4) INNER {\n  %0 f32<c> = load x[0 + c*1]\n"
                               "  %1 f32<c> = load y[0 + c*1]\n  %2 f32<c> = mul %0 %1\n  %3 f32<c> = neg %2\n"
                               "  store v[0 + c*1] %3\n  %4 f32<> = reduce add {c} %3\n  store t[0 + r*1] %4\n}\n";
    const Prog *prog = case_read(job, text, strlen(text));
    double x[4] = {0x1p100, -0x1p100, 1, 0}, y[4] = {0x1p30, 0x1p30, 3, 1};
    EvalBuf bufs[6] = {
        {.span = 4, .number = x}, {.span = 4, .number = y}, {.span = 1}, {.span = 4}, {.span = 1}, {.span = 4}};
    ir_eval_prog(job, prog, NULL, NULL, bufs);
    assert_true(isinf(bufs[2].bound[0]));
    assert_true(isinf(bufs[3].number[0]) && !isinf(bufs[3].bound[0]) && bufs[3].number[2] == 3);
    assert_true(isnan(bufs[4].number[0]) && bufs[4].bound[0] == 0);
}

static void progs_too(void **unused) {
    Job *job = ir_job_create(NULL);
    if (ir_job_run(job, progs_case, unused)) fail_msg("%s", ir_job_report(job));
    ir_job_free(job);
}

/* ---- zeros ---- */

static void zeros_keep_their_sign(void **unused) {
    (void)unused;
    for (int wide = 0; wide < 2; wide++) {
        const RealOps *real = wide ? &ir_real_long : &ir_real_double;
        const DType dtype = wide ? DTYPE_F64 : DTYPE_F32;
        double x = -0.5, none = 0, one = 1, whole, quotient, low[3] = {0}, bound[2];
        uint64_t uncertain = 0;
        const ElementOp trunc_it = {OP_TRUNC, dtype, dtype, dtype, &uncertain, 0, false, EVAL_CASTS_ROUND};
        const ElementOp divide = {OP_DIV, dtype, dtype, dtype, &uncertain, 0, false, EVAL_CASTS_ROUND};
        const Lane in = {.number = &x, .bound = &none, .step = 1, .low = wide ? &low[0] : NULL};
        const Lane zero = {.number = &whole, .bound = &bound[0], .step = 1, .low = wide ? &low[1] : NULL};
        real->elements(&trunc_it, &in, zero, 1);
        assert_true(whole == 0 && signbit(whole));
        const Lane operands[2] = {{.number = &one, .bound = &none, .step = 1}, zero};
        const Lane out = {.number = &quotient, .bound = &bound[1], .step = 1, .low = wide ? &low[2] : NULL};
        real->elements(&divide, operands, out, 1);
        assert_true(quotient == -(double)INFINITY && bound[1] == 0);
    }
}

/* ---- casts ---- */

/* What an interval's numbers are rounded to, or what they are, lies within the bound of the number that is not rounded;
 * and the bound is no larger than that takes. */
static void casts_widen(void **unused) {
    (void)unused;
    Random random = {seed};
    uint64_t widened = 0, counted = 0;
    for (int i = 0; i < 40000; i++) {
        const bool wide = random_below(&random, 2), pass = random_below(&random, 2);
        const DType compute = wide ? DTYPE_F64 : DTYPE_F32, narrow = (DType)(DTYPE_F16 + random_below(&random, 4));
        double a = ir_round(compute, ldexp(random_normal(&random), (int)random_below(&random, 30) - 15));
        double error =
            random_below(&random, 3) ? fabs(a) * ldexp(random_unit(&random), -(int)random_below(&random, 20)) : 0;
        double value, bound;
        const EvalCasts casts = pass ? EVAL_CASTS_PASS : EVAL_CASTS_WIDEN;
        const ElementOp cast = {OP_CAST, DTYPE_F32, narrow, compute, &counted, 0, false, casts};
        const Lane in = {.number = &a, .bound = &error, .step = 1},
                   out = {.number = &value, .bound = &bound, .step = 1};
        (wide ? &ir_real_long : &ir_real_double)->elements(&cast, &in, out, 1);
        assert_true(value == a);
        for (int t = 0; t < 4 && !isinf(bound); t++) {
            const double other = a + error * (2 * random_unit(&random) - 1);
            assert_true(fabs((pass ? other : ir_round(narrow, other)) - a) <= bound * (1 + 0x1p-40));
        }
        const double reach = fabs(a) + error, most = error + (pass ? 0 : ir_ulp(narrow, reach) / 2);
        const bool held = pass || reach <= ir_dtype(narrow)->max_finite;
        if (held) assert_true(bound <= most * (1 + 0x1p-40));
        widened += held && bound > error;
    }
    assert_true(widened > 1000 && counted == 0);
}

int main(void) {
    seed = random_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_hold),   cmocka_unit_test(only_products_that_are_summed),
        cmocka_unit_test(progs_too),   cmocka_unit_test(zeros_keep_their_sign),
        cmocka_unit_test(casts_widen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
