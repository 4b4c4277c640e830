/* The oracle: element bounds against arithmetic done here in float, LayerNorm by hand in long double, demand by boxes,
 * discontinuities, special values. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/eval.h"
#include "ir/eval_ops.h"
#include "tests/support/random.h"

static uint64_t seed;

/* ---- each op against arithmetic in f32 and f64 ---- */

/* Written apart from the table, in long double; false: not a float op. */
static bool by_hand(Op op, long double a, long double b, long double *y) {
    switch (op) {
    case OP_ADD: *y = a + b; return true;
    case OP_SUB: *y = a - b; return true;
    case OP_MUL: *y = a * b; return true;
    case OP_DIV: *y = a / b; return true;
    case OP_POW: *y = powl(a, b); return true;
    case OP_NEG: *y = -a; return true;
    case OP_ABS: *y = fabsl(a); return true;
    case OP_SIGN: *y = a > 0 ? 1 : a < 0 ? -1 : a; return true;
    case OP_EXP: *y = expl(a); return true;
    case OP_EXP2: *y = exp2l(a); return true;
    case OP_EXPM1: *y = expm1l(a); return true;
    case OP_LOG: *y = logl(a); return true;
    case OP_LOG2: *y = log2l(a); return true;
    case OP_LOG1P: *y = log1pl(a); return true;
    case OP_SQRT: *y = sqrtl(a); return true;
    case OP_RSQRT: *y = 1 / sqrtl(a); return true;
    case OP_TANH: *y = tanhl(a); return true;
    case OP_SIGMOID: *y = 1 / (1 + expl(-a)); return true;
    case OP_ERF: *y = erfl(a); return true;
    case OP_SIN: *y = sinl(a); return true;
    case OP_COS: *y = cosl(a); return true;
    case OP_FLOOR: *y = floorl(a); return true;
    case OP_CEIL: *y = ceill(a); return true;
    case OP_ROUND: *y = rintl(a); return true;
    case OP_TRUNC: *y = truncl(a); return true;
    case OP_MAXIMUM: *y = isnan(a) || isnan(b) ? a + b : a > b ? a : b; return true;
    case OP_MINIMUM: *y = isnan(a) || isnan(b) ? a + b : a < b ? a : b; return true;
    case OP_MOD:
        *y = fmodl(a, b);
        *y = *y != 0 && (*y < 0) != (b < 0) ? *y + b : *y;
        return true;
    case OP_FLOORDIV: *y = floorl(a / b); return true;
    default: return false;
    }
}

/* Of the compute dtype, with all its digits now and then. */
static double random_operand(Random *random, DType dtype) {
    double value;
    switch (random_below(random, 8)) {
    case 0: return dtype == DTYPE_F32 ? (double)random_float_bits(random) : random_double_bits(random);
    case 1: value = ((int)random_below(random, 21) - 10) / 2.0; break;
    case 2: value = ldexp(random_normal(random), (int)random_below(random, 60) - 30); break;
    case 3: value = fabs(random_normal(random)); break;
    default: value = random_normal(random) * 3;
    }
    return ir_round(dtype, value);
}

/* A bound: often none, usually a few ulps, sometimes as large as the value. */
static double random_error(Random *random, DType dtype, double value) {
    double size = isfinite(value) ? fabs(value) : 1;
    switch (random_below(random, 4)) {
    case 0: return 0;
    case 1: return size * random_unit(random) * (dtype == DTYPE_F32 ? 0x1p-20 : 0x1p-49);
    case 2: return size * random_unit(random) * 0x1p-8;
    default: return size * random_unit(random) * 2;
    }
}

static double perturbed(Random *random, DType dtype, double value, double error) {
    if (error == 0) return value;
    double at = random_below(random, 3) ? (random_unit(random) * 2 - 1) : (random_below(random, 2) ? 1 : -1);
    double moved = ir_round(dtype, value + at * error);
    return fabsl((long double)moved - (long double)value) <= (long double)error ? moved : value;
}

static const RealOps *real_of(DType compute) { return compute == DTYPE_F64 ? &ir_real_long : &ir_real_double; }

#define BATCH 512

typedef struct Batch {
    double number[2][BATCH], bound[2][BATCH], value[BATCH], low[BATCH], value_bound[BATCH];
} Batch;

/* Bounds must not be silly either: against the sum of slopes, which the test takes by differences. */
static void check_not_silly(Op op, DType compute, double a, double ea, double b, double eb, double value,
                            double bound) {
    if (!isfinite(value) || !isfinite(bound) || fabs(value) > 1e30) return;
    double spread = 0;
    for (int i = -1; i <= 1; i++) {
        for (int k = -1; k <= 1; k++) {
            long double y;
            by_hand(op, (long double)a + i * (long double)ea, (long double)b + k * (long double)eb, &y);
            double away = (double)fabsl(y - (long double)value);
            if (!(away <= spread)) spread = away;
        }
    }
    bool loose = op == OP_SIN || op == OP_COS || op == OP_MOD || op == OP_FLOORDIV || op == OP_SIGN;
    double largest = ir_round(compute, fabs(value) + spread); /* rounding may reach the next power of two */
    double allowed = spread * 1.1 + (ir_op(op)->ulps + 4) * ir_ulp(compute, largest);
    if (op == OP_DIV && eb > fabs(b) / 8) return; /* near the pole: by the formula, no corner */
    if (!loose && isfinite(spread) && bound > allowed) {
        fail_msg("%s(%a +- %a, %a +- %a) = %a: bound %a is silly, spread %a", ir_op_name(op), a, ea, b, eb, value,
                 bound, spread);
    }
}

static void check_batch(Op op, DType compute, Random *random, Batch *batch, uint64_t *bounded) {
    uint64_t uncertain = 0;
    ElementOp element = {op, compute, compute, compute, &uncertain, 0, false, EVAL_CASTS_ROUND};
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < BATCH; i++) {
            batch->number[k][i] = random_operand(random, compute);
            batch->bound[k][i] = random_error(random, compute, batch->number[k][i]);
        }
    }
    Lane in[2] = {{.number = batch->number[0], .bound = batch->bound[0], .step = 1},
                  {.number = batch->number[1], .bound = batch->bound[1], .step = 1}};
    memset(batch->low, 0, sizeof batch->low);
    Lane out = {.number = batch->value, .bound = batch->value_bound, .step = 1};
    if (compute == DTYPE_F64) out.low = batch->low;
    real_of(compute)->elements(&element, in, out, BATCH);
    bool two = ir_op(op)->arity == 2;
    for (int i = 0; i < BATCH; i++) {
        double a = batch->number[0][i], b = batch->number[1][i];
        double ea = batch->bound[0][i], eb = two ? batch->bound[1][i] : 0, bound = batch->value_bound[i];
        long double value = (long double)batch->value[i] + (long double)batch->low[i];
        if (!(bound >= 0)) fail_msg("%s(%a, %a): bound %a", ir_op_name(op), a, b, bound);
        for (int t = 0; t < 4; t++) {
            long double y;
            double x = perturbed(random, compute, a, ea), z = perturbed(random, compute, b, eb);
            by_hand(op, (long double)x, (long double)z, &y);
            double got = compute == DTYPE_F32 ? (double)(float)y : (double)y;
            bool same = (long double)got == value || (isnan(got) && isnan(value));
            bool quotient = op == OP_FLOORDIV || op == OP_MOD; /* of huge quotients long double has too few bits */
            if (quotient && fabs(x / z) > 0x1p30) continue;
            if (isinf(bound) || same || fabsl((long double)got - value) <= (long double)bound) continue;
            fail_msg("%s(%a +- %a, %a +- %a) = %La +- %a, but of (%a, %a) %a", ir_op_name(op), a, ea, b, eb, value,
                     bound, x, z, got);
        }
        check_not_silly(op, compute, a, ea, b, eb, batch->value[i], bound);
        if (isfinite(bound)) ++*bounded;
    }
}

static void check_bounds(DType compute, int rounds) {
    Random random = {seed};
    Batch *batch = malloc(sizeof *batch);
    uint64_t total = 0;
    for (unsigned op = 0; op < OP_PRIMITIVES; op++) {
        long double y;
        uint64_t bounded = 0;
        if (!by_hand((Op)op, 1, 1, &y)) continue;
        for (int round = 0; round < rounds; round++) check_batch((Op)op, compute, &random, batch, &bounded);
        assert_true(bounded > (uint64_t)rounds * BATCH / 4); /* most are known */
        total += (uint64_t)rounds * BATCH * 4;
    }
    printf("# %llu results of %s within their bounds\n", (unsigned long long)total, ir_dtype(compute)->name);
    free(batch);
}

static void bounds_hold(void **unused) {
    (void)unused;
    check_bounds(DTYPE_F32, 200);
}

static void bounds_hold_in_f64(void **unused) {
    (void)unused;
    check_bounds(DTYPE_F64, 40);
}

/* Comparisons and integer casts: no perturbation changes what is called certain; and not all is called doubtful. */
static void certain_means_certain(void **unused) {
    (void)unused;
    Random random = {seed + 1};
    uint64_t doubtful = 0, certain = 0;
    for (int i = 0; i < 200000; i++) {
        DType compute = i % 4 ? DTYPE_F32 : DTYPE_F64;
        const RealOps *real = real_of(compute);
        double a = random_operand(&random, compute);
        double b = random_below(&random, 3) ? a : random_operand(&random, compute);
        double ea = random_error(&random, compute, a), eb = random_error(&random, compute, b);
        Op op = (Op)(OP_LT + random_below(&random, 6));
        int64_t integer = 0;
        double bound;
        uint64_t counted = 0;
        ElementOp element = {op, compute, DTYPE_BOOL, compute, &counted, 0, false, EVAL_CASTS_ROUND};
        Lane in[2] = {{.number = &a, .bound = &ea, .step = 1}, {.number = &b, .bound = &eb, .step = 1}};
        Lane out = {.bound = &bound, .integer = &integer, .step = 1};
        real->elements(&element, in, out, 1);
        assert_int_equal(counted, bound > 0);
        if (bound > 0)
            doubtful++;
        else
            certain++;
        for (int t = 0; t < 4 && bound == 0; t++) {
            double x = perturbed(&random, compute, a, ea), y = perturbed(&random, compute, b, eb);
            bool got = op == OP_LT   ? x < y
                       : op == OP_LE ? x <= y
                       : op == OP_GT ? x > y
                       : op == OP_GE ? x >= y
                       : op == OP_EQ ? x == y
                                     : x != y;
            assert_int_equal(got, integer);
        }
        DType target = (DType)(DTYPE_I64 + random_below(&random, 5));
        counted = 0;
        ElementOp cast = {OP_CAST, ir_compute_dtype(target), target, compute, &counted, 0, false, EVAL_CASTS_ROUND};
        real->elements(&cast, in, out, 1);
        assert_int_equal(counted, bound > 0);
        for (int t = 0; t < 4; t++) {
            int64_t got = ir_float_to_int(target, perturbed(&random, compute, a, ea));
            assert_true(got == integer || fabs((double)got - (double)integer) <= bound);
        }
        DType narrow = (DType)(DTYPE_F16 + random_below(&random, 4));
        double rounded;
        ElementOp round = {OP_CAST, DTYPE_F32, narrow, compute, &counted, 0, false, EVAL_CASTS_ROUND};
        real->elements(&round, in, (Lane){.number = &rounded, .bound = &bound, .step = 1}, 1);
        for (int t = 0; t < 4; t++) {
            double got = ir_round(narrow, perturbed(&random, compute, a, ea));
            assert_true(got == rounded || (isnan(got) && isnan(rounded)) || fabs(got - rounded) <= bound ||
                        isinf(bound));
        }
    }
    assert_true(doubtful > 1000 && certain > 1000);
    printf("# comparisons: %llu certain, %llu doubtful\n", (unsigned long long)certain, (unsigned long long)doubtful);
}

/* ---- reductions ---- */

/* Adds in a random tree, in the compute dtype. */
static double random_tree(Random *random, DType dtype, Reduction reduction, const double *terms, uint32_t count) {
    if (count == 1) return terms[0];
    uint32_t left = 1 + random_below(random, count - 1);
    double a = random_tree(random, dtype, reduction, terms, left),
           b = random_tree(random, dtype, reduction, terms + left, count - left);
    return ir_round(dtype, reduction == REDUCTION_ADD   ? a + b
                           : reduction == REDUCTION_MUL ? a * b
                           : reduction == REDUCTION_MAX ? fmax(a, b)
                                                        : fmin(a, b));
}

/* No more than rounding in any order can do, a little aside: an add is within half an ulp of its dtype. */
static double most_of_a_sum(DType compute, const double *number, const double *bound, uint32_t count) {
    double size = 0, spread = 0;
    for (uint32_t i = 0; i < count; i++) {
        size += fabs(number[i]);
        spread += bound[i];
    }
    double half = compute == DTYPE_F64 ? 0x1p-53 : 0x1p-24;
    return 1.01 * (spread + count * (half * (size + spread) + ir_ulp(compute, 0)));
}

static void reductions_hold(void **unused) {
    (void)unused;
    Random random = {seed + 2};
    for (int round = 0; round < 20000; round++) {
        DType compute = round % 4 ? DTYPE_F32 : DTYPE_F64;
        const RealOps *real = real_of(compute);
        Reduction reduction = (Reduction)random_below(&random, 4);
        uint32_t count = 1 + random_below(&random, 60);
        double number[60], bound[60], moved[60], value, low = 0, value_bound;
        bool wild = random_below(&random, 4) == 0;
        for (uint32_t i = 0; i < count; i++) {
            double scale = wild ? ldexp(1, (int)random_below(&random, 80) - 40) : 1;
            number[i] = ir_round(compute, random_normal(&random) * scale);
            bound[i] = random_below(&random, 2) ? 0 : random_error(&random, compute, number[i]);
        }
        Accumulator accumulator;
        Lane out = {.number = &value, .bound = &value_bound, .step = 1};
        if (compute == DTYPE_F64) out.low = &low;
        real->reduce_start(reduction, compute, &accumulator);
        real->reduce(reduction, compute, &accumulator, 0, (Lane){.number = number, .bound = bound, .step = 1},
                     (int64_t)count);
        real->reduce_finish(reduction, compute, &accumulator, 0, 0, out);
        for (int t = 0; t < 4; t++) {
            for (uint32_t i = 0; i < count; i++) moved[i] = perturbed(&random, compute, number[i], bound[i]);
            double got = random_tree(&random, compute, reduction, moved, count);
            long double away = fabsl((long double)got - (long double)value - (long double)low);
            if (isinf(value_bound) || got == value || away <= (long double)value_bound) continue;
            fail_msg("reduce %s of %u: %a +- %a, got %a", ir_reduction(reduction)->name, count, value, value_bound,
                     got);
        }
        if (count == 1) assert_true(fabs(value_bound - bound[0]) <= 1e-12 * (bound[0] + fabs(value)));
        if (reduction == REDUCTION_ADD) assert_true(value_bound <= most_of_a_sum(compute, number, bound, count));
    }
}

/* A product beyond even double's range is inf for certain only where no order makes a 0 of the small terms first. */
static void long_products(void **unused) {
    (void)unused;
    for (int mixed = 0; mixed < 2; mixed++) {
        double number[80], bound[80] = {0}, value, value_bound;
        for (int i = 0; i < 80; i++) number[i] = ldexp(1, mixed && i >= 60 ? -60 : 60);
        const RealOps *real = real_of(DTYPE_F32);
        Accumulator accumulator;
        Lane in = {.number = number, .bound = bound, .step = 1};
        real->reduce_start(REDUCTION_MUL, DTYPE_F32, &accumulator);
        real->reduce(REDUCTION_MUL, DTYPE_F32, &accumulator, 0, in, 80);
        real->reduce_finish(REDUCTION_MUL, DTYPE_F32, &accumulator, 0, 0,
                            (Lane){.number = &value, .bound = &value_bound, .step = 1});
        assert_true(isinf(value));
        assert_true(mixed ? isinf(value_bound) != 0 : value_bound == 0);
    }
}

static void pairs_are_right(void **unused) {
    (void)unused;
    Random random = {seed + 3};
    for (int round = 0; round < 200; round++) {
        uint32_t count = 1 + random_below(&random, 300);
        double number[300], bound[300] = {0}, value, error;
        long double sum = 0, top = -INFINITY, exps = 0, squares = 0;
        for (uint32_t i = 0; i < count; i++) {
            number[i] = (double)(float)(random_normal(&random) * 5 + 3);
            sum += (long double)number[i];
            if ((long double)number[i] > top) top = (long double)number[i];
        }
        long double mean = sum / count;
        for (uint32_t i = 0; i < count; i++) {
            exps += expl((long double)number[i] - top);
            squares += ((long double)number[i] - mean) * ((long double)number[i] - mean);
        }
        const long double wanted[2][2] = {{top, exps}, {mean, squares}};
        for (int pair = 0; pair < 2; pair++) {
            Reduction reduction = pair ? REDUCTION_WELFORD : REDUCTION_ONLINE;
            Accumulator accumulator;
            const RealOps *real = round % 2 ? &ir_real_double : &ir_real_long;
            Lane in = {.number = number, .bound = bound, .step = 1};
            real->reduce_start(reduction, DTYPE_F32, &accumulator);
            real->reduce(reduction, DTYPE_F32, &accumulator, 0, in, (int64_t)count);
            for (unsigned k = 0; k < 2; k++) {
                Lane out = {.number = &value, .bound = &error, .step = 1};
                real->reduce_finish(reduction, DTYPE_F32, &accumulator, 0, k, out);
                assert_true(fabsl((long double)value - wanted[pair][k]) <= 1e-9L * (1 + fabsl(wanted[pair][k])));
                assert_true(error >= 0 && error < 1e-2 * (1 + fabs(value)));
            }
        }
    }
}

/* ---- graphs ---- */

static const Place nowhere = {0, 0};

static uint32_t add_input(Job *job, Graph *graph, const char *name, DType dtype, uint32_t rank, const Poly *extent) {
    Tensor *tensor = IR_PUSH(job, &graph->inputs);
    *tensor = (Tensor){.name = name, .dtype = dtype, .contiguous = true, .value = IR_NONE, .inplace = IR_NONE};
    tensor->shape.rank = (uint8_t)rank;
    for (uint32_t d = 0; d < rank; d++) tensor->shape.extent[d] = extent[d];
    uint32_t id = ir_graph_add(job, graph, OP_INPUT, dtype, nowhere);
    graph->values.at[id].tensor = graph->inputs.count - 1;
    graph->values.at[id].shape = tensor->shape;
    return id;
}

static void add_output(Job *job, Graph *graph, DType dtype, uint32_t value) {
    Tensor *tensor = IR_PUSH(job, &graph->outputs);
    *tensor = (Tensor){.name = "y", .dtype = dtype, .contiguous = true, .value = value, .inplace = IR_NONE};
    tensor->shape = graph->values.at[value].shape;
}

static void add_dim(Job *job, Graph *graph, const char *name) {
    *IR_PUSH(job, &graph->dims) = (Dim){.name = name, .value = -1, .hint = -1, .max = -1, .multiple = 1};
}

static uint32_t op2(Job *job, Graph *graph, Op op, uint32_t a, uint32_t b) {
    return ir_graph_op(job, graph, op, (uint32_t[]){a, b}, nowhere);
}
static uint32_t op1(Job *job, Graph *graph, Op op, uint32_t a) { return ir_graph_op(job, graph, op, &a, nowhere); }
static uint32_t number(Job *job, Graph *graph, double value) {
    return ir_graph_const(job, graph, DTYPE_F32, value, 0, nowhere);
}

static uint32_t mean_of(Job *job, Graph *graph, uint32_t x, uint32_t n) {
    uint32_t size = ir_graph_add(job, graph, OP_SIZE, DTYPE_I64, nowhere);
    graph->values.at[size].size = ir_poly_symbol(job, n);
    uint32_t share = op2(job, graph, OP_DIV, number(job, graph, 1), size);
    return op2(job, graph, OP_MUL, ir_graph_reduce(job, graph, REDUCTION_ADD, x, 2, true, nowhere), share);
}

/* x[M, N] bf16, gamma[N] f32 -> y[M, N] bf16, as the composite has it. */
static Graph *layer_norm(Job *job) {
    Graph *graph = ir_graph_create(job, "layer_norm");
    add_dim(job, graph, "M");
    add_dim(job, graph, "N");
    Poly mn[2] = {ir_poly_symbol(job, 0), ir_poly_symbol(job, 1)};
    uint32_t x = add_input(job, graph, "x", DTYPE_BF16, 2, mn);
    uint32_t gamma = add_input(job, graph, "gamma", DTYPE_F32, 1, mn + 1);
    uint32_t centred = op2(job, graph, OP_SUB, x, mean_of(job, graph, x, 1));
    uint32_t again = op2(job, graph, OP_SUB, x, mean_of(job, graph, x, 1));
    uint32_t var = mean_of(job, graph, op2(job, graph, OP_MUL, again, again), 1);
    uint32_t rstd = op1(job, graph, OP_RSQRT, op2(job, graph, OP_ADD, var, number(job, graph, 1e-5)));
    uint32_t y = op2(job, graph, OP_MUL, op2(job, graph, OP_MUL, centred, rstd), gamma);
    add_output(job, graph, DTYPE_BF16, y);
    add_output(job, graph, DTYPE_F32, rstd);
    return graph;
}

typedef struct Norm {
    int64_t m, n, pad;
    uint16_t *x;
    float *gamma;
    View views[2];
    int64_t dims[2];
} Norm;

static Norm make_norm(Job *job, Random *random, int64_t m, int64_t n, int64_t pad) {
    Norm norm = {.m = m, .n = n, .pad = pad, .dims = {m, n}};
    norm.x = IR_NEW_ARRAY(job, uint16_t, (size_t)(m * (n + pad) + 1));
    norm.gamma = IR_NEW_ARRAY(job, float, (size_t)n);
    for (int64_t i = 0; i < m * (n + pad); i++) ir_store_float(DTYPE_BF16, &norm.x[i], random_normal(random) * 2 + 0.5);
    for (int64_t i = 0; i < n; i++) norm.gamma[i] = (float)random_normal(random);
    norm.views[0] = (View){norm.x, {n + pad, 1}, {m, n}, 2, DTYPE_BF16, NULL, NULL};
    norm.views[1] = (View){norm.gamma, {1}, {n}, 1, DTYPE_F32, NULL, NULL};
    return norm;
}

static long double norm_by_hand(const Norm *norm, int64_t row, int64_t column) {
    long double sum = 0, squares = 0;
    const uint16_t *x = norm->x + row * (norm->n + norm->pad);
    for (int64_t c = 0; c < norm->n; c++) sum += (long double)ir_load_float(DTYPE_BF16, &x[c]);
    long double mean = sum / norm->n;
    for (int64_t c = 0; c < norm->n; c++) {
        long double away = (long double)ir_load_float(DTYPE_BF16, &x[c]) - mean;
        squares += away * away;
    }
    long double rstd = 1 / sqrtl(squares / norm->n + (long double)(double)1e-5f);
    return ((long double)ir_load_float(DTYPE_BF16, &x[column]) - mean) * rstd * (long double)norm->gamma[column];
}

static void layer_norm_case(Job *job, void *state) {
    Random *random = state;
    const int64_t sizes[][3] = {{3, 1, 0}, {1, 7, 2}, {37, 129, 0}, {5, 768, 8}, {300, 1025, 3}, {0, 5, 0}};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        Graph *graph = layer_norm(job);
        Norm norm = make_norm(job, random, sizes[k][0], sizes[k][1], sizes[k][2]);
        EvalInput input = {.dims = norm.dims, .inputs = norm.views};
        Expected all = ir_eval_graph(job, graph, &input, 0, NULL);
        assert_int_equal(all.count, norm.m * norm.n);
        assert_int_equal(all.uncertain, 0);
        for (int64_t i = 0; i < norm.m * norm.n; i++) {
            double wanted = (double)norm_by_hand(&norm, i / norm.n, i % norm.n);
            assert_true(all.number[i] == ir_round(DTYPE_BF16, all.number[i]));
            /* exact mathematics lies within the bound, too; and the bound is that of f32, far below bf16's */
            assert_true(ir_element_passes(DTYPE_BF16, ir_round(DTYPE_BF16, wanted), all.number[i], all.bound[i]));
            if (norm.n > 1) assert_true(all.bound[i] < 1e-6 * (double)norm.n * (1 + fabs(wanted)));
        }
        if (!all.count) continue;
        Box box = {{norm.m / 2, norm.n / 3}, {norm.m / 2 + 1, norm.n / 3 + 1}};
        Expected one = ir_eval_graph(job, graph, &input, 0, &box);
        int64_t at = norm.m / 2 * norm.n + norm.n / 3;
        assert_int_equal(one.count, 1);
        assert_true(one.number[0] == all.number[at] && one.bound[0] == all.bound[at]);
        Expected rstd = ir_eval_graph(job, graph, &input, 1, NULL);
        assert_int_equal(rstd.count, norm.m);
    }
}

static void layer_norm_matches(void **unused) {
    (void)unused;
    Random random = {seed + 4};
    Job *job = ir_job_create(NULL);
    Status status = ir_job_run(job, layer_norm_case, &random);
    if (status) fail_msg("%s", ir_job_report(job));
    ir_job_free(job);
}

/* Slices, gathers, reshapes, transposed views, column sums: against index arithmetic done here. */
static void movement_case(Job *job, void *state) {
    Random *random = state;
    Graph *graph = ir_graph_create(job, "g");
    int64_t b = 1 + random_below(random, 5), c = 1 + random_below(random, 4), p = 1 + random_below(random, 9), v = 6;
    Poly extents[3] = {ir_poly_int(job, b), ir_poly_int(job, c * 2), ir_poly_int(job, p)};
    Poly table_extents[2] = {ir_poly_int(job, v), ir_poly_int(job, p)};
    uint32_t x = add_input(job, graph, "x", DTYPE_F32, 3, extents);
    uint32_t table = add_input(job, graph, "table", DTYPE_F32, 2, table_extents);
    uint32_t ids = add_input(job, graph, "ids", DTYPE_I32, 1, extents);
    Shape split = {4, {extents[0], ir_poly_int(job, 2), ir_poly_int(job, c), extents[2]}};
    uint32_t grouped = ir_graph_reshape(job, graph, x, &split, nowhere);
    uint32_t sums = ir_graph_reduce(job, graph, REDUCTION_ADD, grouped, 1u << 2 | 1u << 3, false, nowhere); /* [b, 2] */
    Item second[4] = {{ITEM_RANGE, ir_poly_int(job, 0), extents[0], 0},
                      {ITEM_AT, ir_poly_int(job, 1), {0, NULL}, 0},
                      {ITEM_NEW_AXIS, {0, NULL}, {0, NULL}, 0}};
    uint32_t picked = ir_graph_index(job, graph, sums, second, 3, nowhere); /* [b, 1] */
    Item rows[2] = {{ITEM_GATHER, {0, NULL}, {0, NULL}, ids}, {ITEM_RANGE, ir_poly_int(job, 0), extents[2], 0}};
    uint32_t gathered = ir_graph_index(job, graph, table, rows, 2, nowhere); /* [b, p] */
    add_output(job, graph, DTYPE_F32, op2(job, graph, OP_ADD, gathered, picked));
    add_output(job, graph, DTYPE_F32, ir_graph_reduce(job, graph, REDUCTION_ADD, x, 1, false, nowhere)); /* [2c, p] */

    float *data = IR_NEW_ARRAY(job, float, (size_t)(b * c * 2 * p)),
          *rows_data = IR_NEW_ARRAY(job, float, (size_t)(v * p));
    int32_t *id_data = IR_NEW_ARRAY(job, int32_t, (size_t)b);
    for (int64_t i = 0; i < b * c * 2 * p; i++) data[i] = (float)((int)random_below(random, 100) - 50);
    for (int64_t i = 0; i < v * p; i++) rows_data[i] = (float)random_below(random, 1000);
    for (int64_t i = 0; i < b; i++) id_data[i] = (int32_t)random_below(random, (uint32_t)v);
    /* x lies transposed: strides 1, b, b*2c */
    View views[3] = {{data, {1, b, b * c * 2}, {b, c * 2, p}, 3, DTYPE_F32, NULL, NULL},
                     {rows_data, {p, 1}, {v, p}, 2, DTYPE_F32, NULL, NULL},
                     {id_data, {1}, {b}, 1, DTYPE_I32, NULL, NULL}};
    EvalInput input = {.inputs = views};
    Box box = {{random_below(random, (uint32_t)b), random_below(random, (uint32_t)p)}, {b, p}};
    Expected part = ir_eval_graph(job, graph, &input, 0, &box);
    uint64_t k = 0;
    for (int64_t i = box.start[0]; i < b; i++) {
        float sum = 0;
        for (int64_t j = c; j < 2 * c; j++) {
            for (int64_t q = 0; q < p; q++) sum += data[i + j * b + q * b * c * 2];
        }
        for (int64_t q = box.start[1]; q < p; q++, k++) {
            assert_true(part.number[k] == (double)(rows_data[id_data[i] * p + q] + sum));
        }
    }
    assert_int_equal(k, part.count);
    Expected columns = ir_eval_graph(job, graph, &input, 1, NULL);
    for (int64_t j = 0; j < c * 2; j++) {
        for (int64_t q = 0; q < p; q++) {
            float sum = 0;
            for (int64_t i = 0; i < b; i++) sum += data[i + j * b + q * b * c * 2];
            assert_true(columns.number[j * p + q] == (double)sum);
        }
    }
    id_data[b - 1] = 6;
}

static void movement_matches(void **unused) {
    (void)unused;
    Random random = {seed + 5};
    for (int i = 0; i < 300; i++) {
        Job *job = ir_job_create(NULL);
        Status status = ir_job_run(job, movement_case, &random);
        if (status) fail_msg("%s", ir_job_report(job));
        ir_job_free(job);
    }
}

/* 3000 x 700: pieces by rows, pieces by columns for the column sum, against plain loops. */
static void pieces_case(Job *job, void *state) {
    Random *random = state;
    int64_t m = 3000, n = 700;
    Graph *graph = ir_graph_create(job, "g");
    Poly extents[2] = {ir_poly_int(job, m), ir_poly_int(job, n)};
    uint32_t x = add_input(job, graph, "x", DTYPE_F32, 2, extents);
    uint32_t square = op2(job, graph, OP_MUL, x, x);
    add_output(job, graph, DTYPE_F32, op2(job, graph, OP_ADD, square, x));
    add_output(job, graph, DTYPE_F32, ir_graph_reduce(job, graph, REDUCTION_ADD, square, 1, false, nowhere));
    add_output(job, graph, DTYPE_F32, ir_graph_reduce(job, graph, REDUCTION_ADD, square, 3, false, nowhere));
    float *data = IR_NEW_ARRAY(job, float, (size_t)(m * n));
    for (int64_t i = 0; i < m * n; i++) data[i] = (float)random_normal(random);
    View view = {data, {n, 1}, {m, n}, 2, DTYPE_F32, NULL, NULL};
    EvalInput input = {.inputs = &view};
    Expected all = ir_eval_graph(job, graph, &input, 0, NULL);
    for (int64_t i = 0; i < m * n; i++) {
        assert_true(ir_element_passes(DTYPE_F32, (double)(data[i] * data[i] + data[i]), all.number[i], all.bound[i]));
    }
    Expected columns = ir_eval_graph(job, graph, &input, 1, NULL), total = ir_eval_graph(job, graph, &input, 2, NULL);
    long double sum = 0;
    for (int64_t c = 0; c < n; c++) {
        long double column = 0;
        for (int64_t r = 0; r < m; r++) column += (long double)data[r * n + c] * (long double)data[r * n + c];
        assert_true(fabsl((long double)columns.number[c] - column) <= 1e-7L * column);
        assert_true(columns.bound[c] < 3e-3 * columns.number[c] && columns.bound[c] > 1e-4 * columns.number[c]);
        sum += column;
    }
    assert_int_equal(total.count, 1);
    assert_true(fabsl((long double)total.number[0] - sum) <= 1e-7L * sum);
}

static void pieces_match(void **unused) {
    (void)unused;
    Random random = {seed + 6};
    Job *job = ir_job_create(NULL);
    Status status = ir_job_run(job, pieces_case, &random);
    if (status) fail_msg("%s", ir_job_report(job));
    ir_job_free(job);
}

static void deep_case(Job *job, void *state) {
    (void)state;
    Graph *graph = ir_graph_create(job, "deep");
    Poly extent = ir_poly_int(job, 3);
    uint32_t x = add_input(job, graph, "x", DTYPE_F32, 1, &extent), y = x;
    while (graph->values.count < IR_MAX_NODES) y = op2(job, graph, OP_ADD, y, x);
    add_output(job, graph, DTYPE_F32, y);
    float data[3] = {1, 2, 3};
    View view = {data, {1}, {3}, 1, DTYPE_F32, NULL, NULL};
    EvalInput input = {.inputs = &view};
    Expected all = ir_eval_graph(job, graph, &input, 0, NULL);
    assert_true(all.number[2] == 3.0 * IR_MAX_NODES && all.bound[2] == 0);
    op2(job, graph, OP_ADD, y, x); /* one too many */
}

static void deep_graphs_work(void **unused) {
    (void)unused;
    Job *job = ir_job_create(NULL);
    assert_int_equal(ir_job_run(job, deep_case, NULL), STATUS_REJECTED);
    ir_job_free(job);
}

/* ---- single elements ---- */

static void elements_pass_or_not(void **unused) {
    (void)unused;
    const double inf = (double)INFINITY, nan = (double)NAN;
    assert_true(ir_element_passes(DTYPE_F32, nan, nan, 0));
    assert_false(ir_element_passes(DTYPE_F32, nan, 1, 100));
    assert_false(ir_element_passes(DTYPE_F32, 1, nan, 100));
    assert_true(ir_element_passes(DTYPE_F32, 1, nan, inf));
    assert_true(ir_element_passes(DTYPE_F32, inf, inf, 0));
    assert_false(ir_element_passes(DTYPE_F32, -inf, inf, 0));
    assert_false(ir_element_passes(DTYPE_F32, 1e38, inf, 0));
    assert_true(ir_element_passes(DTYPE_F16, inf, 65504, 20));
    assert_false(ir_element_passes(DTYPE_F16, inf, 65504, 1));
    assert_true(ir_element_passes(DTYPE_BF16, 1.0078125, 1, 0)); /* one ulp */
    assert_false(ir_element_passes(DTYPE_BF16, 1.015625, 1, 0));
    assert_true(ir_element_passes(DTYPE_BF16, 1.015625, 1, 0.008));
    assert_true(ir_element_passes(DTYPE_F8E4M3, 448, 1000, 0));
}

static double unary(Op op, double a, double e, double *bound) {
    double value;
    uint64_t counted = 0;
    ElementOp element = {op, DTYPE_F32, DTYPE_F32, DTYPE_F32, &counted, 0, false, EVAL_CASTS_ROUND};
    Lane in = {.number = &a, .bound = &e, .step = 1};
    ir_real_double.elements(&element, &in, (Lane){.number = &value, .bound = bound, .step = 1}, 1);
    return value;
}

static void special_values(void **unused) {
    (void)unused;
    double bound;
    assert_true(unary(OP_EXP, 100, 0, &bound) == (double)INFINITY && bound == 0);
    assert_true(isinf((unary(OP_EXP, 88.7228, 0.01, &bound), bound)));
    assert_true(unary(OP_EXP, 200, 0.1, &bound) == (double)INFINITY && bound == 0);
    assert_true(isnan(unary(OP_LOG, -1, 0, &bound)) && bound == 0);
    assert_true(isinf((unary(OP_LOG, 1e-3, 2e-3, &bound), bound)));
    assert_true(isinf((unary(OP_SQRT, 1e-3, 2e-3, &bound), bound)));
    assert_true(isinf((unary(OP_RSQRT, 0, 1e-30, &bound), bound)));
    assert_true(unary(OP_LOG, 0, 0, &bound) == -(double)INFINITY && bound == 0);
    assert_true(isnan(unary(OP_EXP, NAN, 0, &bound)) && bound == 0);
    assert_true(isinf((unary(OP_EXP, NAN, 1, &bound), bound)));
    assert_true(unary(OP_FLOOR, 2.0, 1e-6, &bound) == 2 && bound == 1);
    assert_true(unary(OP_FLOOR, 2.5, 1e-6, &bound) == 2 && bound == 0);
    assert_true(unary(OP_EXP, -INFINITY, 0, &bound) == 0 && bound < 1e-40);
}

/* round and cast count an element once and say where it was met; 0 / 0 is NaN and cast to 0 for certain. */
static void jumps_case(Job *job, void *unused) {
    (void)unused;
    Graph *graph = ir_graph_create(job, "g");
    Poly extents[2] = {ir_poly_int(job, 2), ir_poly_int(job, 3)};
    uint32_t x = add_input(job, graph, "x", DTYPE_F32, 2, extents);
    uint32_t most = ir_graph_reduce(job, graph, REDUCTION_MAX, x, 2, true, nowhere);
    uint32_t scaled = op2(job, graph, OP_DIV, x, op2(job, graph, OP_DIV, most, number(job, graph, 127)));
    uint32_t whole = op1(job, graph, OP_ROUND, scaled);
    add_output(job, graph, DTYPE_I8, ir_graph_cast(job, graph, whole, DTYPE_I8, nowhere));
    float rows[6] = {127, 63.5f, 3};
    View view = {rows, {3, 1}, {2, 3}, 2, DTYPE_F32, NULL, NULL};
    Expected all = ir_eval_graph(job, graph, &(EvalInput){.inputs = &view}, 0, NULL);
    assert_int_equal(all.uncertain, 1);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(all.integer[i], ((const int[6]){127, 64, 3})[i]);
        assert_int_equal(all.cause[i], i == 1 ? whole + 1 : 0);
        assert_true(all.bound[i] == (i == 1));
    }
}

static void jumps_count_once(void **unused) {
    Job *job = ir_job_create(NULL);
    if (ir_job_run(job, jumps_case, unused)) fail_msg("%s", ir_job_report(job));
    ir_job_free(job);
}

int main(void) {
    seed = random_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_hold),           cmocka_unit_test(bounds_hold_in_f64),
        cmocka_unit_test(certain_means_certain), cmocka_unit_test(reductions_hold),
        cmocka_unit_test(pairs_are_right),       cmocka_unit_test(layer_norm_matches),
        cmocka_unit_test(movement_matches),      cmocka_unit_test(pieces_match),
        cmocka_unit_test(deep_graphs_work),      cmocka_unit_test(elements_pass_or_not),
        cmocka_unit_test(long_products),         cmocka_unit_test(special_values),
        cmocka_unit_test(jumps_count_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
