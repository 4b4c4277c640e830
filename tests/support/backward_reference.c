/* In: a backward graph's name, numbers of its inputs. Out: its outputs in double with bounds, by formulas written here.
 * Left alone: memory, dtypes of outputs and what is done with the numbers (tests/support/backward_data.c). */
#include "tests/support/backward_reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ops.h"
#include "runtime/device.h"

/* ---- numbers ---- */

/* A result of arithmetic with so many bits: half an ulp at most, less than 2^-bits of it. */
static Number rounded(double value, double error, int bits) {
    if (bits > 24) return (Number){value, error + fabs(value) * 0x1p-52}; /* and half an ulp of this double */
    if (error == 0 && (double)(float)value == value) return (Number){value, 0};
    return (Number){value, error + (fabs(value) + error) * 0x1p-24 + 0x1p-150};
}

Number number_exact(double value) { return (Number){value, 0}; }
Number number_constant(double value, int bits) { return rounded(value, 0, bits); }
Number number_add(Number a, Number b, int bits) { return rounded(a.value + b.value, a.error + b.error, bits); }
Number number_subtract(Number a, Number b, int bits) { return rounded(a.value - b.value, a.error + b.error, bits); }
Number number_multiply(Number a, Number b, int bits) {
    const double error = fabs(a.value) * b.error + fabs(b.value) * a.error + a.error * b.error;
    return rounded(a.value * b.value, error, bits);
}

/* What normgen's function is off by, as its table of operations promises, in ulps: of 2^-23 of the value at most. */
static Number of_function(Op op, double value, double error) {
    return (Number){value, error + ir_op(op)->ulps * (fabs(value) + error) * 0x1p-23 + 0x1p-149};
}

Number number_exp(Number a, int bits) {
    (void)bits;
    return of_function(OP_EXP, exp(a.value), exp(a.value) * expm1(a.error));
}
static Number number_erf(Number a) { return of_function(OP_ERF, erf(a.value), a.error * 1.1283791670955126); }
/* Its slope is steepest at the near end of where a may lie. */
static Number number_rsqrt(Number a) {
    const double low = a.value - a.error;
    return of_function(OP_RSQRT, 1 / sqrt(a.value), 0.5 * a.error / (low * sqrt(low)));
}

/* ---- sums ---- */

/* The exponent of the least bit that is set; so large for 0 that it never counts. */
static int least_bit(double value) {
    uint64_t bits;
    if (value == 0) return 10000;
    memcpy(&bits, &value, sizeof bits);
    const int exponent = (int)(bits >> 52 & 2047);
    const uint64_t significand = (bits & (((uint64_t)1 << 52) - 1)) | (exponent ? (uint64_t)1 << 52 : 0);
    return (exponent ? exponent : 1) - 1075 + __builtin_ctzll(significand);
}

static Number add_up(const Number *numbers, int64_t count, int64_t step, const int64_t *times, Accuracy accuracy) {
    long double value = 0, absolute = 0, error = 0;
    double terms = 0;
    int least = 10000;
    for (int64_t i = 0; i < count; i++) {
        const Number term = numbers[i * step];
        const double often = times ? (double)times[i] : 1;
        const int bit = least_bit(term.value);
        value += (long double)term.value * often;
        absolute += (long double)fabs(term.value) * often;
        error += (long double)term.error * often;
        terms += often;
        if (bit < least) least = bit;
    }
    if (error == 0 && absolute <= ldexpl(1, accuracy.bits + least)) return number_exact((double)value);
    double depth = accuracy.depth > 0 && accuracy.depth < terms ? accuracy.depth : terms;
    const double unit = ldexp(1, -accuracy.bits);
    long double bound = error + depth * unit / (1 - depth * unit) * (absolute + error);
    if (accuracy.bits > 24) bound += fabsl(value) * 0x1p-53L; /* of the double that it is told in */
    return (Number){(double)value, (double)bound + 0x1p-150};
}

/* Each combine is off by half an ulp of its result, so all of them by so many halves of the whole. */
static Number multiply_all(const Number *numbers, int64_t count, int64_t step, Accuracy accuracy) {
    Number product = number_exact(1);
    for (int64_t i = 0; i < count; i++) product = number_multiply(product, numbers[i * step], accuracy.bits);
    return product;
}

Number number_combine(Combine combine, const Number *numbers, int64_t count, int64_t step, const int64_t *times,
                      Accuracy accuracy) {
    if (combine == COMBINE_ADD) return add_up(numbers, count, step, times, accuracy);
    if (combine == COMBINE_MULTIPLY) return multiply_all(numbers, count, step, accuracy);
    const double sign = combine == COMBINE_MAX ? 1 : -1;
    Number most = number_exact(-sign * INFINITY);
    for (int64_t i = 0; i < count; i++) {
        const Number term = numbers[i * step];
        if (sign * term.value > sign * most.value) most.value = term.value;
        most.error = fmax(most.error, term.error);
    }
    return most;
}

/* ---- rows ---- */

static Number plus(Number a, Number b) { return number_add(a, b, 24); }
static Number minus(Number a, Number b) { return number_subtract(a, b, 24); }
static Number times(Number a, Number b) { return number_multiply(a, b, 24); }
static Number exact(double value) { return number_exact(value); }
static Number sum_of(const Row *row, const Number *numbers) {
    return number_combine(COMBINE_ADD, numbers, row->columns, 1, NULL, row->accuracy);
}
static Number mean_of(const Row *row, const Number *numbers) {
    return times(sum_of(row, numbers), number_constant(1 / (double)row->columns, 24));
}

/* dx of xhat = (x - mean) / deviation, with dxhat the gradient of xhat:
 *     dx = (dxhat - xhat * mean(dxhat * xhat) - mean(dxhat)) / deviation,
 * the last mean where xhat has one taken away. added may be NULL. */
static void normalised(const Row *row, const Number *xhat, const Number *dxhat, Number rstd, bool centred,
                       const double *added, Number *dx) {
    for (int64_t c = 0; c < row->columns; c++) dx[c] = times(dxhat[c], xhat[c]);
    const Number c1 = mean_of(row, dx), c2 = centred ? mean_of(row, dxhat) : exact(0);
    for (int64_t c = 0; c < row->columns; c++) {
        Number d = minus(dxhat[c], times(xhat[c], c1));
        if (centred) d = minus(d, c2);
        d = times(d, rstd);
        dx[c] = added ? plus(d, exact(added[c])) : d;
    }
}

/* x dy weight rstd; h dy dh weight rstd */
static void rms_norm_rows(const Row *row, const double *dy, const double *weight, const double *rstd,
                          const double *added) {
    Number *xhat = row->work[0], *dxhat = row->work[1];
    for (int64_t c = 0; c < row->columns; c++) {
        xhat[c] = times(exact(row->in[0][c]), exact(*rstd));
        dxhat[c] = times(exact(dy[c]), exact(weight[c]));
        row->terms[0][c] = times(exact(dy[c]), xhat[c]);
    }
    normalised(row, xhat, dxhat, exact(*rstd), false, added, row->elements[0]);
}
static void rms_norm(const Row *row) { rms_norm_rows(row, row->in[1], row->in[2], row->in[3], NULL); }
static void add_rms_norm(const Row *row) { rms_norm_rows(row, row->in[1], row->in[3], row->in[4], row->in[2]); }

/* x dy weight mean rstd */
static void layer_norm(const Row *row) {
    const Number mean = exact(*row->in[3]), rstd = exact(*row->in[4]);
    for (int64_t c = 0; c < row->columns; c++) {
        const Number dy = exact(row->in[1][c]);
        row->work[0][c] = times(minus(exact(row->in[0][c]), mean), rstd);
        row->work[1][c] = times(dy, exact(row->in[2][c]));
        row->terms[0][c] = times(dy, row->work[0][c]);
        row->terms[1][c] = dy;
    }
    normalised(row, row->work[0], row->work[1], rstd, true, NULL, row->elements[0]);
}

/* d/dz of z Phi(z): Phi(z) + z phi(z), of the normal distribution. */
static Number gelu_slope(Number z) {
    const Number below = times(exact(0.5), plus(exact(1), number_erf(times(z, number_constant(sqrt(0.5), 24)))));
    const Number bell = number_exp(times(times(exact(-0.5), z), z), 24);
    return plus(below, times(times(z, bell), number_constant(0.3989422804014327, 24)));
}

/* x dy weight bias mean rstd */
static void layer_norm_gelu(const Row *row) {
    const Number mean = exact(*row->in[4]), rstd = exact(*row->in[5]);
    for (int64_t c = 0; c < row->columns; c++) {
        const Number weight = exact(row->in[2][c]), xhat = times(minus(exact(row->in[0][c]), mean), rstd);
        const Number dz = times(exact(row->in[1][c]), gelu_slope(plus(times(xhat, weight), exact(row->in[3][c]))));
        row->work[0][c] = xhat;
        row->work[1][c] = times(dz, weight);
        row->terms[0][c] = times(dz, xhat);
        row->terms[1][c] = dz;
    }
    normalised(row, row->work[0], row->work[1], rstd, true, NULL, row->elements[0]);
}

/* y dy: dx = y (dy - sum(y dy)) */
static void softmax(const Row *row) {
    for (int64_t c = 0; c < row->columns; c++) row->work[0][c] = times(exact(row->in[0][c]), exact(row->in[1][c]));
    const Number s = sum_of(row, row->work[0]);
    for (int64_t c = 0; c < row->columns; c++) {
        row->elements[0][c] = times(exact(row->in[0][c]), minus(exact(row->in[1][c]), s));
        row->terms[0][c] = row->elements[0][c];
    }
}

/* x1 x2 x3 dy1 dy2 dy3 weight */
static void rms_norm_shared(const Row *row) {
    for (uint32_t k = 0; k < 3; k++) {
        const double *x = row->in[k], *dy = row->in[3 + k];
        Number *xhat = row->work[0], *dxhat = row->work[1];
        for (int64_t c = 0; c < row->columns; c++) xhat[c] = times(exact(x[c]), exact(x[c]));
        const Number rstd = number_rsqrt(plus(mean_of(row, xhat), number_constant(1e-5, 24)));
        for (int64_t c = 0; c < row->columns; c++) {
            xhat[c] = times(exact(x[c]), rstd);
            dxhat[c] = times(exact(dy[c]), exact(row->in[6][c]));
            row->terms[k][c] = times(exact(dy[c]), xhat[c]);
        }
        normalised(row, xhat, dxhat, rstd, false, NULL, row->elements[k]);
    }
}

/* x dy scale mean rstd */
static void ada_ln(const Row *row) {
    const Number mean = exact(*row->in[3]), rstd = exact(*row->in[4]);
    for (int64_t c = 0; c < row->columns; c++) {
        const Number dy = exact(row->in[1][c]);
        row->work[0][c] = times(minus(exact(row->in[0][c]), mean), rstd);
        row->work[1][c] = times(dy, plus(exact(1), exact(row->in[2][c])));
        row->terms[0][c] = times(dy, row->work[0][c]);
        row->terms[1][c] = dy;
    }
    normalised(row, row->work[0], row->work[1], rstd, true, NULL, row->elements[0]);
}

#define ELEMENTS(k)                                                                                                    \
    { OUT_ELEMENTS, k }
#define COLUMNS(k)                                                                                                     \
    { OUT_COLUMNS, k }
const Backward backward_graphs[] = {
    {"ada_ln_bwd", NULL, ada_ln, 1, 0, 2, {COMBINE_ADD}, 3, {ELEMENTS(0), COLUMNS(0), COLUMNS(1)}, {0}, false},
    {"add_rms_norm_bwd",
     NULL,
     add_rms_norm,
     1,
     0,
     1,
     {COMBINE_ADD},
     3,
     {ELEMENTS(0), ELEMENTS(0), COLUMNS(0)},
     {0},
     true},
    {"layer_norm_bwd", NULL, layer_norm, 1, 0, 2, {COMBINE_ADD}, 3, {ELEMENTS(0), COLUMNS(0), COLUMNS(1)}, {0}, false},
    {"layer_norm_gelu_bwd",
     NULL,
     layer_norm_gelu,
     1,
     0,
     2,
     {COMBINE_ADD},
     3,
     {ELEMENTS(0), COLUMNS(0), COLUMNS(1)},
     {0},
     false},
    {"rms_norm_bwd", NULL, rms_norm, 1, 0, 1, {COMBINE_ADD}, 2, {ELEMENTS(0), COLUMNS(0)}, {0}, false},
    {"rms_norm_shared_bwd",
     NULL,
     rms_norm_shared,
     3,
     0,
     3,
     {COMBINE_ADD},
     4,
     {ELEMENTS(0), ELEMENTS(1), ELEMENTS(2), COLUMNS(0)},
     {1, 1, 1},
     false},
    {"softmax_bwd", NULL, softmax, 1, 0, 1, {COMBINE_ADD}, 2, {ELEMENTS(0), COLUMNS(0)}, {0}, false},
};
const uint32_t backward_graph_count = sizeof backward_graphs / sizeof *backward_graphs;

const Backward *backward_find(const char *name) {
    for (uint32_t g = 0; g < backward_graph_count; g++)
        if (!strcmp(backward_graphs[g].name, name)) return &backward_graphs[g];
    return NULL;
}

/* ---- all rows, then all columns ---- */

enum { COLUMNS_AT_ONCE = 64 };

typedef struct Making {
    Reference *reference;
    const Backward *of;
    Geometry at;
    const BankInput *inputs;
    const double *held;
    Accuracy accuracy;
    Number *terms[BACKWARD_OUTPUTS];
    int64_t *times; /* of each row of a period */
} Making;

static void *new_array(int64_t count, size_t each) {
    void *array = calloc((size_t)(count > 0 ? count : 1), each);
    if (!array) abort();
    return array;
}

static void make_row(void *state, uint32_t index) {
    const Making *m = state;
    const int64_t n = m->at.columns, i = index, group = i / m->at.period;
    const double *in[BACKWARD_INPUTS];
    for (uint32_t k = 0; k < BACKWARD_INPUTS; k++)
        in[k] = m->inputs[k].numbers ? m->inputs[k].numbers + i * m->inputs[k].row + group * m->inputs[k].group : NULL;
    Number *work = new_array(2 * n, sizeof *work), values[BACKWARD_OUTPUTS];
    Row row = {.in = in, .columns = n, .accuracy = m->accuracy, .values = values, .work = {work, work + n}};
    for (uint32_t k = 0; k < m->of->element_count; k++) row.elements[k] = m->reference->elements[k] + i * n;
    for (uint32_t k = 0; k < m->of->sum_count; k++) row.terms[k] = m->terms[k] + i * n;
    m->of->row(&row);
    for (uint32_t k = 0; k < m->of->value_count; k++) m->reference->values[k][i] = values[k];
    free(work);
}

static void make_column(const Making *m, int64_t group, int64_t column) {
    const int64_t n = m->at.columns, period = m->at.period;
    Number sums[BACKWARD_OUTPUTS];
    for (uint32_t k = 0; k < m->of->sum_count; k++)
        sums[k] = number_combine(m->of->combine[k], m->terms[k] + group * period * n + column, period, n, m->times,
                                 m->accuracy);
    for (uint32_t k = 1; k < m->of->sum_count && m->of->added[k]; k++)
        sums[0] = number_add(sums[0], sums[k], m->accuracy.bits);
    if (m->of->held) sums[0] = number_add(number_exact(m->held[column]), sums[0], m->accuracy.bits);
    for (uint32_t k = 0; k < m->of->sum_count; k++) m->reference->columns[k][group * n + column] = sums[k];
}

static void make_columns(void *state, uint32_t index) {
    const Making *m = state;
    const int64_t blocks = (m->at.columns + COLUMNS_AT_ONCE - 1) / COLUMNS_AT_ONCE;
    const int64_t group = index / blocks, first = index % blocks * COLUMNS_AT_ONCE;
    for (int64_t c = first; c < first + COLUMNS_AT_ONCE && c < m->at.columns; c++) make_column(m, group, c);
}

void reference_make(Reference *reference, const Backward *of, Geometry at, const BankInput *inputs, const double *held,
                    Accuracy accuracy) {
    const int64_t rows = at.groups * at.period;
    Making m = {.reference = reference, .of = of, .at = at, .inputs = inputs, .held = held, .accuracy = accuracy};
    memset(reference, 0, sizeof *reference);
    for (uint32_t k = 0; k < of->element_count; k++)
        reference->elements[k] = new_array(rows * at.columns, sizeof(Number));
    for (uint32_t k = 0; k < of->value_count; k++) reference->values[k] = new_array(rows, sizeof(Number));
    for (uint32_t k = 0; k < of->sum_count; k++) {
        reference->columns[k] = new_array(at.groups * at.columns, sizeof(Number));
        m.terms[k] = new_array(rows * at.columns, sizeof(Number));
    }
    m.times = new_array(at.period, sizeof *m.times);
    for (int64_t r = 0; r < at.period; r++) m.times[r] = at.rows / at.period + (r < at.rows % at.period);
    rt_parallel((uint32_t)rows, make_row, &m);
    rt_parallel((uint32_t)(at.groups * ((at.columns + COLUMNS_AT_ONCE - 1) / COLUMNS_AT_ONCE)), make_columns, &m);
    for (uint32_t k = 0; k < of->sum_count; k++) free(m.terms[k]);
    free(m.times);
}

void reference_free(Reference *reference) {
    for (uint32_t k = 0; k < BACKWARD_OUTPUTS; k++) {
        free(reference->elements[k]);
        free(reference->values[k]);
        free(reference->columns[k]);
    }
    memset(reference, 0, sizeof *reference);
}
