/* In: elements with bounds. Out: their reduction and its bound over every legal order of combining. Left alone: which
 * elements (ir/eval_graph.c, ir/eval_prog.c).
 *
 * What an accumulator holds, by reduction:
 *   add       0 sum, 1 sum of |terms|, 2 sum of bounds
 *   mul       0 product, 1 product of (|term| + bound), 2 of the terms below 1, 3 of those above: the extremes of
 *             partial products; 4 sum of bounds
 *   max, min  0 value, 1 that of (term - bound), 2 that of (term + bound); 5 whether a term is NaN for certain
 *   online    0 to 2 and 5 as max, 3 sum of exp(x - max), 4 the same weighted by the bounds
 *   welford   0 mean, 1 M2, 2 sum of bounds, 3 sum of |x|, 4 sum of (x - mean) * bound
 *   integers  integer, 0 sum of bounds; any, all: integer, 0 whether a doubtful element was met, 1 whether a certain
 * one decided */
#include "ir/eval_ops.h"

#include <math.h>

static double half_ulp(DType dtype) { return dtype == DTYPE_F64 ? 0x1p-53 : 0x1p-24; }

void ir_eval_reduce_start(Reduction reduction, DType dtype, Accumulator *accumulator) {
    (void)dtype;
    const ReductionRow *row = ir_reduction(reduction);
    *accumulator = (Accumulator){.integer = row->integer_identity};
    switch (reduction) {
    case REDUCTION_MUL:
        for (int k = 0; k < 4; k++) accumulator->at[k] = 1;
        break;
    case REDUCTION_MAX:
    case REDUCTION_MIN:
        for (int k = 0; k < 3; k++) accumulator->at[k] = row->identity;
        break;
    case REDUCTION_ONLINE:
        for (int k = 0; k < 3; k++) accumulator->at[k] = -(double)INFINITY;
        break;
    default: break;
    }
}

/* ---- one element more ---- */

static void step_mul(Accumulator *into, double a, double e) {
    into->at[0] *= a;
    into->at[1] *= fabs(a) + e;
    into->at[fabs(a) < 1 ? 2 : 3] *= fabs(a);
    into->at[4] += e;
}

static void step_extreme(Reduction reduction, Accumulator *into, double a, double e) {
    double (*combine)(double, double) = ir_reduction(reduction)->combine;
    into->at[0] = combine(into->at[0], a);
    into->at[1] = combine(into->at[1], e > 0 ? a - e : a);
    into->at[2] = combine(into->at[2], e > 0 ? a + e : a);
    if (isnan(a) && e == 0) into->at[5] = 1;
}

static void step_online(Accumulator *into, double a, double e) {
    double before = into->at[0];
    step_extreme(REDUCTION_MAX, into, a, e);
    double top = into->at[0];
    double scale = before == top ? 1 : exp(before - top), term = a == top ? 1 : exp(a - top);
    into->at[3] = into->at[3] * scale + term;
    into->at[4] = into->at[4] * scale + term * e;
}

static void step_welford(Accumulator *into, double a, double e) {
    double away = a - into->at[0];
    into->at[0] += away / (double)into->terms;
    into->at[1] += away * (a - into->at[0]);
    into->at[2] += e;
    into->at[3] += fabs(a);
    into->at[4] += fabs(away) * e;
}

static void step_float(Reduction reduction, Accumulator *into, double a, double e) {
    into->terms++;
    switch (reduction) {
    case REDUCTION_ADD:
        into->at[0] += a;
        into->at[1] += fabs(a);
        into->at[2] += e;
        break;
    case REDUCTION_MUL: step_mul(into, a, e); break;
    case REDUCTION_ONLINE: step_online(into, a, e); break;
    case REDUCTION_WELFORD: step_welford(into, a, e); break;
    default: step_extreme(reduction, into, a, e);
    }
}

static void step_integer(Reduction reduction, Accumulator *into, int64_t a, double e) {
    into->terms++;
    into->integer = ir_reduction(reduction)->integer(into->integer, a);
    if (reduction == REDUCTION_ANY || reduction == REDUCTION_ALL) {
        if (e > 0)
            into->at[0] = 1;
        else if ((a != 0) == (reduction == REDUCTION_ANY))
            into->at[1] = 1;
    } else if (reduction == REDUCTION_ADD) {
        into->at[0] += e;
    } else {
        into->at[0] = fmax(into->at[0], e);
    }
}

/* A run into one accumulator, by far the commonest: sums in registers. */
static void add_run(Accumulator *into, Lane lane, int64_t count) {
    double sum = 0, size = 0, error = 0;
    for (int64_t i = 0; i < count; i++) {
        double a = lane.number[i * lane.step];
        sum += a;
        size += fabs(a);
        error += lane.bound[i * lane.step];
    }
    into->at[0] += sum;
    into->at[1] += size;
    into->at[2] += error;
    into->terms += (uint64_t)count;
}

void ir_eval_reduce(Reduction reduction, DType dtype, Accumulator *accumulators, int64_t step, Lane lane,
                    int64_t count) {
    if (!ir_is_float(dtype)) {
        for (int64_t i = 0; i < count; i++) {
            step_integer(reduction, &accumulators[i * step], lane.integer[i * lane.step], lane.bound[i * lane.step]);
        }
    } else if (reduction == REDUCTION_ADD && step == 0) {
        add_run(accumulators, lane, count);
    } else {
        for (int64_t i = 0; i < count; i++) {
            step_float(reduction, &accumulators[i * step], lane.number[i * lane.step], lane.bound[i * lane.step]);
        }
    }
}

/* ---- results ---- */

/* Every order of adding: each of depth adds errs by half an ulp of at most the sum of |terms|. */
static double finish_add(DType dtype, const Accumulator *from, double depth, double *value) {
    *value = from->at[0];
    double size = from->at[1], error = from->at[2];
    if (isnan(*value) || isinf(*value)) return isinf(error) || isnan(error) ? (double)INFINITY : 0;
    if (from->terms > 1) error += depth * half_ulp(dtype) * (size + error);
    if (dtype == DTYPE_F64) error += (double)from->terms * 0x1p-53 * size; /* the oracle's own */
    if (size + error >= 0x1.ffffffp127 && dtype == DTYPE_F32) {            /* a partial sum may overflow */
        double kept = ir_eval_settle(dtype, value, error, 0);
        return kept == 0 && fabs(from->at[0]) == size ? 0 : (double)INFINITY;
    }
    return error;
}

static double finish_mul(DType dtype, const Accumulator *from, double *value) {
    *value = from->at[0];
    if (from->terms <= 1) return from->at[1] - fabs(*value);
    double smallest = ldexp(1, ir_dtype(dtype)->min_exponent);
    if (!isfinite(*value)) { /* inf for certain where no partial product comes to 0 first; NaN where a term is */
        bool certain = isnan(*value) ? isnan(from->at[3]) : from->at[2] >= smallest;
        return certain && from->at[4] == 0 ? 0 : (double)INFINITY;
    }
    double grown = from->at[1] * pow(1 + 2 * half_ulp(dtype), (double)from->terms);
    double bound = grown - fabs(*value);
    double least = ir_ulp(dtype, 0);
    if (from->at[2] < smallest) bound += (double)from->terms * least * from->at[3];
    if (from->at[3] > ir_dtype(dtype)->max_finite || isnan(bound)) bound = (double)INFINITY;
    return ir_eval_settle(dtype, value, bound, 0);
}

static double finish_extreme(const Accumulator *from, double *value) {
    *value = from->at[0];
    if (from->at[5] > 0) return 0; /* NaN wins over everything */
    if (isnan(*value)) return (double)INFINITY;
    double down = from->at[1] == *value ? 0 : fabs(*value - from->at[1]);
    double up = from->at[2] == *value ? 0 : fabs(from->at[2] - *value);
    return isnan(down) || isnan(up) ? (double)INFINITY : fmax(down, up);
}

/* 4 ulps a combine, by the table: of the sum, resp. of the mean and of M2. */
static double finish_pair(Reduction reduction, DType dtype, const Accumulator *from, double depth, unsigned k,
                          double *value) {
    double slack = ir_reduction(reduction)->ulps * 2 * half_ulp(dtype) * (depth + 1);
    if (reduction == REDUCTION_ONLINE) {
        double top, error = finish_extreme(from, &top);
        if (k == 0) {
            *value = top;
            return error;
        }
        *value = from->at[3];
        double bound = from->at[4] + from->at[3] * (error + slack);
        return isnan(bound) && !isnan(*value) ? (double)INFINITY : isnan(*value) ? 0 : bound;
    }
    double terms = from->terms ? (double)from->terms : 1;
    double mean_error = from->at[2] / terms + slack * from->at[3] / terms;
    *value = from->at[k];
    if (isnan(*value)) return isfinite(from->at[2]) ? 0 : (double)INFINITY;
    if (k == 0) return from->terms > 1 ? mean_error : from->at[2];
    double away = sqrt(terms * from->at[1]); /* at least the sum of |x - mean| */
    return 2 * from->at[4] + 2 * away * mean_error + terms * mean_error * mean_error + slack * from->at[1];
}

void ir_eval_reduce_finish(Reduction reduction, DType dtype, const Accumulator *accumulator, uint32_t depth, unsigned k,
                           Lane out) {
    if (!ir_is_float(dtype)) {
        bool logic = reduction == REDUCTION_ANY || reduction == REDUCTION_ALL;
        bool clear = accumulator->at[0] == 0 || (logic && accumulator->at[1] > 0);
        *out.integer = accumulator->integer;
        *out.bound = clear ? 0 : reduction == REDUCTION_MUL ? (double)INFINITY : accumulator->at[0];
        if (logic && accumulator->at[1] > 0) *out.integer = reduction == REDUCTION_ANY;
        return;
    }
    double steps = depth ? (double)depth : (double)accumulator->terms;
    switch (reduction) {
    case REDUCTION_ADD: *out.bound = finish_add(dtype, accumulator, steps, out.number); break;
    case REDUCTION_MUL: *out.bound = finish_mul(dtype, accumulator, out.number); break;
    case REDUCTION_ONLINE:
    case REDUCTION_WELFORD: *out.bound = finish_pair(reduction, dtype, accumulator, steps, k, out.number); break;
    default: *out.bound = finish_extreme(accumulator, out.number);
    }
}
