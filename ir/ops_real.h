/* The reference columns of both tables as functions of REAL. Included twice by ir/ops.c, for double and for long double
 * (graphs that compute in f64); NAMED makes the names of one inclusion, whole numbers of REAL end at WHOLE. */
static REAL NAMED(ref_mod)(REAL a, REAL b) {
    REAL rest = fmod(a, b);
    if (rest == 0) return copysign((REAL)0, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
}

static REAL NAMED(ref_floordiv)(REAL a, REAL b) {
    if (b == 0 || isinf(a) || isnan(a) || isnan(b)) return a / b;
    REAL rest = fmod(a, b);
    REAL quotient = (a - rest) / b;
    if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
    if (quotient == 0) return copysign((REAL)0, a / b);
    return fabs(quotient) < WHOLE ? floor(quotient + 0.5) : quotient; /* the division itself may have rounded */
}

static REAL NAMED(ref_sign)(REAL a) { return isnan(a) ? a : (a > 0) - (a < 0); }

static REAL NAMED(ref_sigmoid)(REAL a) { /* no overflow on either side */
    REAL e = exp(-fabs(a));
    return a >= 0 ? 1 / (1 + e) : e / (1 + e);
}

/* Half to even, whatever the rounding mode. */
static REAL NAMED(ref_round)(REAL a) {
    REAL down = floor(a), rest = a - down;
    if (isnan(a) || isinf(a) || rest == 0) return a;
    REAL up = rest > 0.5 || (rest == 0.5 && fmod(down, 2) != 0) ? down + 1 : down;
    return copysign(up, a);
}

/* NaN wins, and +0 is above -0. */
static REAL NAMED(ref_maximum)(REAL a, REAL b) {
    if (isnan(a) || isnan(b)) return a + b;
    if (a == b) return signbit(a) ? b : a;
    return a > b ? a : b;
}

static REAL NAMED(ref_minimum)(REAL a, REAL b) {
    if (isnan(a) || isnan(b)) return a + b;
    if (a == b) return signbit(a) ? a : b;
    return a < b ? a : b;
}

#define ref_mod NAMED(ref_mod)
#define ref_floordiv NAMED(ref_floordiv)
#define ref_sign NAMED(ref_sign)
#define ref_sigmoid NAMED(ref_sigmoid)
#define ref_round NAMED(ref_round)
#define ref_maximum NAMED(ref_maximum)
#define ref_minimum NAMED(ref_minimum)
#define sign(a) ref_sign(a)
#define OP(id, name, symbol, arity, rule, cuda, ulps, ref, integer, da, db, dc, what)                                  \
    UNUSED static REAL NAMED(reference_##id)(REAL a, REAL b, REAL c) {                                                 \
        (void)a, (void)b, (void)c;                                                                                     \
        return ref;                                                                                                    \
    }
#include "ir/ops.def"
#undef OP
#define REDUCTION(id, name, language, identity, integer_identity, cuda, ref, integer, ulps, derivative, what)          \
    UNUSED static REAL NAMED(combine_##id)(REAL a, REAL b) {                                                           \
        (void)a, (void)b;                                                                                              \
        return ref;                                                                                                    \
    }
#include "ir/reductions.def"
#undef REDUCTION
#undef sign
#undef ref_mod
#undef ref_floordiv
#undef ref_sign
#undef ref_sigmoid
#undef ref_round
#undef ref_maximum
#undef ref_minimum
#undef REAL
#undef NAMED
#undef WHOLE
