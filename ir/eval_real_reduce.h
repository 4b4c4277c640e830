/* In: elements with bounds. Out: their reduction and its bound over every legal order of combining. Left alone: which
 * elements (ir/eval_graph.c, ir/eval_prog.c). Part of ir/eval_real.h.
 *
 * What an accumulator holds, by reduction:
 *   add       0 sum of the finite terms, 1 of their sizes, 2 of all bounds; 3 sum of the others, 0 where there is none
 *   mul       0 product, 1 product of (|term| + bound), 2 of the terms below 1, 3 of those above: the extremes of
 *             partial products; 4 sum of bounds
 *   max, min  0 value, 1 that of (term - bound), 2 that of (term + bound); 5 whether a term is NaN for certain
 *   online    0 to 2 and 5 as max, 3 sum of exp(x - max), 4 the same weighted by the bounds
 *   welford   0 mean, 1 M2, 2 sum of bounds, 3 sum of |x|, 4 sum of (x - mean) * bound, 5 sum of x
 *   integers  integer, 0 sum of bounds; any, all: integer, 0 whether a doubtful element was met, 1 whether a certain
 * one decided */
static double half_ulp(DType dtype) { return dtype == DTYPE_F64 ? 0x1p-53 : 0x1p-24; }

static void reduce_start(Reduction reduction, DType dtype, Accumulator *accumulator) {
    const ReductionRow *row = ir_reduction(reduction);
    accumulator->integer = row->integer_identity;
    accumulator->terms = 0;
    for (int k = 0; k < 6; k++) accumulator->AT[k] = 0;
    if (!ir_is_float(dtype)) return; /* the identity is set; what lies here is a bound */
    switch (reduction) {
    case REDUCTION_MUL:
        for (int k = 0; k < 4; k++) accumulator->AT[k] = 1;
        break;
    case REDUCTION_MAX:
    case REDUCTION_MIN:
        for (int k = 0; k < 3; k++) accumulator->AT[k] = row->identity;
        break;
    case REDUCTION_ONLINE:
        for (int k = 0; k < 3; k++) accumulator->AT[k] = -(REAL)INFINITY;
        break;
    default: break;
    }
}

/* ---- one element more ---- */

/* A product beyond the dtype goes in as what it is at least: one that was not rounded does not stay inf. */
static void step_add(DType dtype, Accumulator *into, REAL a, REAL e) {
    if (isinf(a) && e > 0 && isfinite(e)) {
        a = copysign(fmax(e, limit_of(dtype)), a);
        e = 0;
    }
    into->AT[2] += e;
    into->AT[isfinite(a) ? 0 : 3] += a;
    if (isfinite(a)) into->AT[1] += fabs(a);
}

static void step_mul(Accumulator *into, REAL a, REAL e) {
    into->AT[0] *= a;
    into->AT[1] *= fabs(a) + e;
    into->AT[fabs(a) < 1 ? 2 : 3] *= fabs(a);
    into->AT[4] += e;
}

static void step_extreme(Reduction reduction, Accumulator *into, REAL a, REAL e) {
    REAL (*combine)(REAL, REAL) = ir_reduction(reduction)->COMBINE;
    into->AT[0] = combine(into->AT[0], a);
    into->AT[1] = combine(into->AT[1], e > 0 ? a - e : a);
    into->AT[2] = combine(into->AT[2], e > 0 ? a + e : a);
    if (isnan(a) && e == 0) into->AT[5] = 1;
}

static void step_online(Accumulator *into, REAL a, REAL e) {
    REAL before = into->AT[0];
    step_extreme(REDUCTION_MAX, into, a, e);
    REAL top = into->AT[0];
    REAL scale = before == top ? 1 : exp(before - top), term = a == top ? 1 : exp(a - top);
    into->AT[3] = into->AT[3] * scale + term;
    into->AT[4] = into->AT[4] * scale + term * e;
}

static void step_welford(Accumulator *into, REAL a, REAL e) {
    REAL away = a - into->AT[0];
    into->AT[0] += away / (REAL)into->terms;
    into->AT[1] += away * (a - into->AT[0]);
    into->AT[2] += e;
    into->AT[3] += fabs(a);
    into->AT[4] += fabs(away) * e;
    into->AT[5] += a;
}

static void step_float(Reduction reduction, DType dtype, Accumulator *into, REAL a, REAL e) {
    into->terms++;
    switch (reduction) {
    case REDUCTION_ADD: step_add(dtype, into, a, e); break;
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
            into->AT[0] = 1;
        else if ((a != 0) == (reduction == REDUCTION_ANY))
            into->AT[1] = 1;
    } else if (reduction == REDUCTION_ADD) {
        into->AT[0] += e;
    } else {
        into->AT[0] = fmax(into->AT[0], (REAL)e);
    }
}

/* A run into one accumulator, by far the commonest: sums in registers. */
static void add_run(DType dtype, Accumulator *into, Lane lane, int64_t count) {
    REAL sum = 0, size = 0, error = 0;
    for (int64_t i = 0; i < count; i++) {
        REAL a = number_at(&lane, i);
        sum += a;
        size += fabs(a);
        error += lane.bound[i * lane.step];
    }
    into->terms += (uint64_t)count;
    for (int64_t i = 0; !isfinite(sum) && i < count; i++)
        step_add(dtype, into, number_at(&lane, i), lane.bound[i * lane.step]);
    if (!isfinite(sum)) return;
    into->AT[0] += sum;
    into->AT[1] += size;
    into->AT[2] += error;
}

static void eval_reduce(Reduction reduction, DType dtype, Accumulator *accumulators, int64_t step, Lane lane,
                        int64_t count) {
    if (!ir_is_float(dtype)) {
        for (int64_t i = 0; i < count; i++) {
            step_integer(reduction, &accumulators[i * step], lane.integer[i * lane.step], lane.bound[i * lane.step]);
        }
    } else if (reduction == REDUCTION_ADD && step == 0) {
        add_run(dtype, accumulators, lane, count);
    } else {
        for (int64_t i = 0; i < count; i++) {
            step_float(reduction, dtype, &accumulators[i * step], number_at(&lane, i), lane.bound[i * lane.step]);
        }
    }
}

/* ---- results ---- */

/* Every order of adding: each of depth adds errs by half an ulp of at most the sum of |terms|. */
static REAL finish_add(DType dtype, const Accumulator *from, REAL depth, REAL *value) {
    REAL size = from->AT[1], error = from->AT[2], infinite = from->AT[3];
    *value = from->AT[0] + infinite;
    if (isnan(*value)) return isfinite(error) ? 0 : (REAL)INFINITY;
    if (from->terms > 1) { /* the oracle's own error too */
        error += depth * half_ulp(dtype) * (size + error);
        error += (REAL)from->terms * EPSILON * size;
    }
    if (isinf(infinite)) { /* what finite terms of the other sign come to must not be infinite too */
        REAL against = (size - (infinite > 0 ? from->AT[0] : -from->AT[0])) / 2;
        return against + error < limit_of(dtype) ? 0 : (REAL)INFINITY;
    }
    if (size + error >= limit_of(dtype)) { /* a partial sum may overflow */
        REAL kept = settle(dtype, value, error, 0);
        return kept == 0 && fabs(from->AT[0]) == size ? 0 : (REAL)INFINITY;
    }
    return error;
}

static REAL finish_mul(DType dtype, const Accumulator *from, REAL *value) {
    *value = from->AT[0];
    if (from->terms <= 1) return isfinite(*value) ? from->AT[1] - fabs(*value) : from->AT[4];
    REAL smallest = ldexp(1.0, ir_dtype(dtype)->min_exponent);
    if (!isfinite(*value)) { /* inf for certain where no partial product comes to 0 first; NaN where a term is */
        bool certain = isnan(*value) ? isnan(from->AT[3]) : from->AT[2] >= smallest;
        return certain && from->AT[4] == 0 ? 0 : (REAL)INFINITY;
    }
    REAL grown = from->AT[1] * pow(1 + 2 * (REAL)half_ulp(dtype), (REAL)from->terms);
    REAL bound = grown - fabs(*value);
    REAL least = ir_ulp(dtype, 0);
    if (from->AT[2] < smallest) bound += (REAL)from->terms * least * from->AT[3];
    if (from->AT[3] > ir_dtype(dtype)->max_finite || isnan(bound)) bound = (REAL)INFINITY;
    return settle(dtype, value, bound, 0);
}

static REAL finish_extreme(const Accumulator *from, REAL *value) {
    *value = from->AT[0];
    if (from->AT[5] > 0) return 0; /* NaN wins over everything */
    if (isnan(*value)) return (REAL)INFINITY;
    REAL down = from->AT[1] == *value ? 0 : fabs(*value - from->AT[1]);
    REAL up = from->AT[2] == *value ? 0 : fabs(from->AT[2] - *value);
    return isnan(down) || isnan(up) ? (REAL)INFINITY : fmax(down, up);
}

/* What a combine of a pair may err by, by the table, a chain of them long. */
static REAL pair_slack(Reduction reduction, DType dtype, REAL depth) {
    return ir_reduction(reduction)->ulps * 2 * half_ulp(dtype) * (depth + 1);
}

/* Of the sum, whose terms are all positive; NaN where the amax is infinite, since x - amax is for some x. */
static REAL finish_online(DType dtype, const Accumulator *from, REAL depth, unsigned k, REAL *value) {
    REAL top, error = finish_extreme(from, &top);
    *value = k == 0 ? top : from->AT[3];
    if (k == 0 || from->terms == 0) return k == 0 ? error : 0;
    if (!isfinite(top)) {
        *value = NAN;
        return error;
    }
    REAL bound = from->AT[4] + from->AT[3] * (error + pair_slack(REDUCTION_ONLINE, dtype, depth));
    return isnan(bound) ? (REAL)INFINITY : bound;
}

/* Of the mean, and of the sum of squares about it. Squares are summed about a number that is only near the mean, so
 * that they may overflow a little before their sum about the mean does. */
static REAL finish_welford(DType dtype, const Accumulator *from, REAL depth, unsigned k, REAL *value) {
    REAL slack = pair_slack(REDUCTION_WELFORD, dtype, depth), terms = (REAL)from->terms, size = from->AT[3];
    if (terms == 0 || !isfinite(from->AT[5])) {
        REAL mean = terms == 0 ? (REAL)NAN : from->AT[5];
        *value = k == 0 ? mean : terms == 0 ? 0 : (REAL)NAN;
        return isfinite(from->AT[2]) ? 0 : (REAL)INFINITY;
    }
    REAL mean_error = from->AT[2] / terms + (terms > 1 ? slack * size / terms : 0);
    *value = from->AT[k];
    if (size + from->AT[2] >= limit_of(dtype)) return (REAL)INFINITY; /* a partial sum may overflow */
    if (k == 0) return mean_error;
    REAL away = sqrt(terms * from->AT[1]); /* at least the sum of |x - mean| */
    REAL bound = 2 * from->AT[4] + 2 * away * mean_error + terms * mean_error * mean_error + slack * from->AT[1];
    if (fabs(*value) < limit_of(dtype) && 8 * fabs(*value) + bound >= limit_of(dtype)) return (REAL)INFINITY;
    return settle(dtype, value, bound, 0);
}

static void finish_integer(Reduction reduction, const Accumulator *from, Lane out) {
    bool logic = reduction == REDUCTION_ANY || reduction == REDUCTION_ALL;
    bool clear = from->AT[0] == 0 || (logic && from->AT[1] > 0);
    *out.integer = from->integer;
    *out.bound = clear ? 0 : reduction == REDUCTION_MUL ? (double)INFINITY : (double)from->AT[0];
    if (logic && from->AT[1] > 0) *out.integer = reduction == REDUCTION_ANY;
}

static void reduce_finish(Reduction reduction, DType dtype, const Accumulator *accumulator, uint32_t depth, unsigned k,
                          Lane out) {
    if (!ir_is_float(dtype)) {
        finish_integer(reduction, accumulator, out);
        return;
    }
    REAL steps = depth ? (REAL)depth : (REAL)accumulator->terms, value, bound;
    switch (reduction) {
    case REDUCTION_ADD: bound = finish_add(dtype, accumulator, steps, &value); break;
    case REDUCTION_MUL: bound = finish_mul(dtype, accumulator, &value); break;
    case REDUCTION_ONLINE: bound = finish_online(dtype, accumulator, steps, k, &value); break;
    case REDUCTION_WELFORD: bound = finish_welford(dtype, accumulator, steps, k, &value); break;
    default: bound = finish_extreme(accumulator, &value);
    }
    put_number(&out, 0, value, bound);
}
