/* In: elements of operands with their bounds. Out: the op's value in REAL and how far a correct evaluation in the
 * compute dtype may be from it. Left alone: step functions, bools and casts (ir/eval_real_steps.h).
 *
 * A bound of 0 says that the kernel holds exactly this number; so arithmetic on exact operands whose result is
 * representable stays exact. Otherwise: what the operands' bounds make of themselves, by the derivative where they are
 * small and by the interval's ends where not, plus the op's own ulps.
 *
 * Part of ir/eval_real.h. */

#define SMALL 0x1p-10   /* bounds below this part of the operand (and of 1) go by the derivative ... */
#define SECOND 1.015625 /* ... whose second order is within this factor, for every op that takes this way */

static const double f32_limit = 0x1.ffffffp127; /* from here on f32 rounds to inf */

/* Of f32, without ir_ulp's general case: the exponent alone, not below that of the least subnormal. */
static inline double ulp_f32(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits &= (uint64_t)0x7ff << 52;
    uint64_t least = (uint64_t)(1023 - 126) << 52;
    bits = (bits < least ? least : bits) - ((uint64_t)23 << 52);
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Of a compute dtype (f64 is met in long double alone): what rounding by so many ulps may do to numbers up to `reach`.
 * A long double has 11 bits more than f64, so that its own rounding counts; */
static inline REAL rounding_of(DType compute, double ulps, REAL reach) {
    if (WIDE && compute == DTYPE_F64) return (ulps + 0x1p-9) * ir_ulp(DTYPE_F64, (double)reach);
    return ulps * ulp_f32((double)reach);
}
/* the number from which on it rounds to inf, */
static inline REAL limit_of(DType compute) { return WIDE && compute == DTYPE_F64 ? F64_LIMIT : f32_limit; }
/* and whether it holds a number. */
static inline bool is_held(DType compute, REAL value) {
    return WIDE && compute == DTYPE_F64 ? (REAL)(double)value == value : (REAL)(float)value == value;
}

/* A value whose operands' errors make `propagated`, after one rounding of `ulps`: overflow settled. */
static REAL settle(DType compute, REAL *value, REAL propagated, double ulps) {
    REAL limit = limit_of(compute), size = fabs(*value), reach = size + propagated;
    if (reach < limit) return propagated + (ulps > 0 ? rounding_of(compute, ulps, reach) : 0);
    if (isnan(*value)) return propagated > 0 ? (REAL)INFINITY : 0;
    bool certain = size - propagated > limit; /* false where propagated is inf or NaN */
    if (certain || size >= limit) *value = copysign((REAL)INFINITY, *value);
    return certain ? 0 : (REAL)INFINITY;
}

typedef struct Operands { /* of one element */
    REAL a, b, ea, eb;
} Operands;

static inline bool is_small(REAL value, REAL error) {
    REAL size = fabs(value);
    return error <= SMALL * (size < 1 ? size : 1);
}

/* A power of a base that may be 0: with a negative exponent a pole, with an uncertain one NaN below 0, else 0 between.
 */
static REAL spread_of_power(const Operands *in, REAL value) {
    if (in->eb > 0 && in->a - in->ea < 0) return (REAL)INFINITY;
    if (fabs(in->a) > in->ea) return 0;
    if (in->b - in->eb <= 0) return (REAL)INFINITY;
    return fabs(value);
}

/* The largest deviation at the ends of the operands' intervals: every op that comes here is monotone between. */
static REAL spread_at_corners(Op op, const Operands *in, REAL value) {
    Reference *reference = ir_op(op)->REFERENCE;
    REAL largest = op == OP_POW ? spread_of_power(in, value) : 0;
    for (int i = in->ea > 0 ? -1 : 1; i <= 1; i += 2) {
        for (int k = in->eb > 0 ? -1 : 1; k <= 1; k += 2) {
            REAL corner = reference(in->a + i * in->ea, in->b + k * in->eb, 0);
            if (corner == value) continue;
            REAL distance = fabs(corner - value);
            if (!(distance <= largest)) largest = isnan(distance) ? (REAL)INFINITY : distance;
        }
    }
    return largest;
}

static REAL slope_of(Op op, unsigned k, const Operands *in, REAL value) {
    return fabs(ir_op(op)->derivative[k]((double)in->a, (double)in->b, (double)value));
}

static REAL propagate(Op op, const Operands *in, REAL value) {
    const OpRow *row = ir_op(op);
    bool wave = op == OP_SIN || op == OP_COS;
    bool by_slope = is_small(in->a, in->ea) && (row->arity == 1 || is_small(in->b, in->eb)) && isfinite(value);
    if (op == OP_LOG1P && in->ea > SMALL * fabs(1 + in->a)) by_slope = false;
    if (op == OP_POW) by_slope = false;
    if (by_slope || wave) {
        REAL slope = slope_of(op, 0, in, value) * in->ea;
        if (row->arity == 2 && in->eb > 0) slope += slope_of(op, 1, in, value) * in->eb;
        if (wave) return fmin((REAL)2, slope + in->ea * in->ea / 2);
        if (isfinite(slope)) return slope * SECOND;
    }
    return spread_at_corners(op, in, value);
}

/* The whole rule for one element. */
static REAL element(Op op, DType compute, const Operands *in, REAL *value) {
    const OpRow *row = ir_op(op);
    *value = row->REFERENCE(in->a, in->b, 0);
    if (in->ea == 0 && in->eb == 0) {
        bool exact = (op == OP_ADD || op == OP_SUB || op == OP_MUL) && is_held(compute, *value);
        exact |= op == OP_SQRT && *value == 0;
        return isfinite(*value) ? settle(compute, value, 0, exact ? 0 : row->ulps) : 0;
    }
    bool certain_nan = (isnan(in->a) && in->ea == 0) || (isnan(in->b) && in->eb == 0);
    if (isnan(*value)) return certain_nan ? 0 : (REAL)INFINITY;
    if (certain_nan || isinf(in->ea) || isinf(in->eb)) return (REAL)INFINITY;
    return settle(compute, value, propagate(op, in, *value), row->ulps);
}

static inline Operands operands_at(const Lane *in, uint32_t arity, int64_t i) {
    Operands operands = {number_at(&in[0], i), 0, in[0].bound[i * in[0].step], 0};
    if (arity > 1) {
        operands.b = number_at(&in[1], i);
        operands.eb = in[1].bound[i * in[1].step];
    }
    return operands;
}

static void general(const ElementOp *op, const Lane *in, Lane out, int64_t count) {
    uint32_t arity = ir_op(op->op)->arity;
    for (int64_t i = 0; i < count; i++) {
        Operands operands = operands_at(in, arity, i);
        REAL value, bound = element(op->op, op->compute, &operands, &value);
        put_number(&out, i, value, bound);
    }
}

/* ---- the commonest ---- */

/* Of a product beyond the dtype whose factors a sum takes: a finite bound, the least that it may be. All but sums take
 * such an element for inf. 0: a factor is inf itself. */
static REAL least_product(const Operands *in, REAL error) {
    if (isinf(in->a) || isinf(in->b)) return 0;
    return nextafter((double)(fabs(in->a * in->b) - error), 0.0);
}

/* Adds, subtractions (sign -1) and products; what is not plainly finite goes the general way. */
static inline void linear(const ElementOp *op, const Lane *in, Lane out, int64_t count, REAL sign) {
    const REAL limit = limit_of(op->compute);
    for (int64_t i = 0; i < count; i++) {
        Operands x = operands_at(in, 2, i);
        bool product = sign == 0;
        REAL value = product ? x.a * x.b : x.a + sign * x.b;
        REAL error = product ? fabs(x.a) * x.eb + fabs(x.b) * x.ea + x.ea * x.eb : x.ea + x.eb;
        REAL reach = fabs(value) + error;
        REAL bound;
        if (!(reach < limit)) {
            bound = element(op->op, op->compute, &x, &value);
            if (op->factors && isinf(value) && bound == 0) bound = least_product(&x, error);
        } else if (error == 0 && is_held(op->compute, value)) {
            bound = 0;
        } else {
            bound = error + rounding_of(op->compute, 0.5, reach);
        }
        put_number(&out, i, value, bound);
    }
}

static void divide(const ElementOp *op, const Lane *in, Lane out, int64_t count) {
    const REAL limit = limit_of(op->compute);
    for (int64_t i = 0; i < count; i++) {
        Operands x = operands_at(in, 2, i);
        REAL value = x.a / x.b, room = fabs(x.b) - x.eb;
        REAL error = (x.ea + fabs(value) * x.eb) / room;
        REAL reach = fabs(value) + error, bound;
        if (x.a == 0 && x.ea == 0 && room > 0) {
            bound = 0; /* 0 over anything but 0 */
        } else if (room > 0 && reach < limit) {
            bound = error + rounding_of(op->compute, 0.5, reach);
        } else if (room <= 0 && x.eb > 0 && !isnan(x.a)) {
            bound = (REAL)INFINITY; /* the divisor may be 0 */
        } else {
            bound = element(op->op, op->compute, &x, &value);
        }
        put_number(&out, i, value, bound);
    }
}

/* The bound is that of the ends of both intervals. */
static void extreme(const ElementOp *op, const Lane *in, Lane out, int64_t count) {
    Reference *reference = ir_op(op->op)->REFERENCE;
    for (int64_t i = 0; i < count; i++) {
        Operands x = operands_at(in, 2, i);
        REAL value = reference(x.a, x.b, 0), bound = 0;
        if (x.ea > 0 || x.eb > 0) {
            REAL low = reference(x.a - x.ea, x.b - x.eb, 0), high = reference(x.a + x.ea, x.b + x.eb, 0);
            bound = fmax(low == value ? 0 : fabs(low - value), high == value ? 0 : fabs(high - value));
            bool certain_nan = (isnan(x.a) && x.ea == 0) || (isnan(x.b) && x.eb == 0);
            if (certain_nan)
                bound = 0;
            else if (isnan(value) || isinf(x.ea) || isinf(x.eb))
                bound = (REAL)INFINITY;
        }
        put_number(&out, i, value, bound);
    }
}

/* neg and abs: no deviation grows. */
static void unchanged(const ElementOp *op, const Lane *in, Lane out, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        REAL a = number_at(in, i);
        put_number(&out, i, op->op == OP_NEG ? -a : fabs(a), in->bound[i * in->step]);
    }
}

/* ---- integers ---- */

/* What an error makes of a product; 0 times anything is 0. */
static double times(int64_t a, double error) { return a == 0 || error == 0 ? 0 : fabs((double)a) * error; }

/* An integer's bound comes from a step that it was on; ops on such are known within their sum, or not at all. */
static void integers(const ElementOp *op, const Lane *in, Lane out, int64_t count) {
    const OpRow *row = ir_op(op->op);
    bool sum = op->op == OP_ADD || op->op == OP_SUB || op->op == OP_NEG || op->op == OP_ABS;
    bool larger = op->op == OP_MAXIMUM || op->op == OP_MINIMUM || op->op == OP_FLOOR || op->op == OP_CEIL ||
                  op->op == OP_ROUND || op->op == OP_TRUNC;
    for (int64_t i = 0; i < count; i++) {
        int64_t a = in[0].integer[i * in[0].step], b = row->arity > 1 ? in[1].integer[i * in[1].step] : 0;
        double ea = in[0].bound[i * in[0].step], eb = row->arity > 1 ? in[1].bound[i * in[1].step] : 0;
        double bound = larger ? fmax(ea, eb) : ea + eb;
        if (op->op == OP_MUL && bound > 0)
            bound = times(a, eb) + times(b, ea) + (ea > 0 && eb > 0 ? ea * eb : 0);
        else if (op->op == OP_SIGN && bound > 0)
            bound = fabs((double)a) > ea ? 0 : 2;
        else if (bound > 0 && !sum && !larger && op->op != OP_MUL)
            bound = (double)INFINITY;
        out.integer[i * out.step] = row->integer(a, b, 0);
        out.bound[i * out.step] = bound;
    }
}

static REAL any_number_at(const Lane *lane, int64_t i, bool is_float) {
    return is_float ? number_at(lane, i) : (REAL)lane->integer[i * lane->step];
}

static void choose(const ElementOp *op, const Lane *in, Lane out, int64_t count) {
    bool is_float = ir_is_float(op->compute);
    for (int64_t i = 0; i < count; i++) {
        bool first = in[0].integer[i * in[0].step] != 0, doubt = in[0].bound[i * in[0].step] > 0;
        const Lane *taken = first ? &in[1] : &in[2], *other = first ? &in[2] : &in[1];
        REAL bound = taken->bound[i * taken->step];
        if (doubt) {
            REAL x = any_number_at(taken, i, is_float), y = any_number_at(other, i, is_float);
            REAL distance = x == y || (isnan(x) && isnan(y)) ? 0 : fabs(x - y);
            REAL reach = distance + fmax(bound, (REAL)other->bound[i * other->step]);
            bound = isnan(reach) ? (REAL)INFINITY : fmax(bound, reach);
        }
        if (is_float) {
            put_number(&out, i, number_at(taken, i), bound);
        } else {
            out.integer[i * out.step] = taken->integer[i * taken->step];
            out.bound[i * out.step] = (double)bound;
        }
    }
}

static void eval_elements(const ElementOp *op, const Lane *in, Lane out, int64_t count) {
    if (op->op == OP_CAST) {
        eval_cast(op, in[0], out, count);
        return;
    }
    if (op->op == OP_WHERE) {
        choose(op, in, out, count);
        return;
    }
    if (eval_steps(op, in, out, count)) return;
    if (!ir_is_float(op->compute)) {
        integers(op, in, out, count);
        return;
    }
    switch (op->op) {
    case OP_ADD: linear(op, in, out, count, 1); break;
    case OP_SUB: linear(op, in, out, count, -1); break;
    case OP_MUL: linear(op, in, out, count, 0); break;
    case OP_DIV: divide(op, in, out, count); break;
    case OP_NEG:
    case OP_ABS: unchanged(op, in, out, count); break;
    case OP_MAXIMUM:
    case OP_MINIMUM: extreme(op, in, out, count); break;
    default: general(op, in, out, count);
    }
}
