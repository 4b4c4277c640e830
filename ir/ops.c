/* In: ir/ops.def and ir/reductions.def. Out: the tables, with their reference, integer and derivative columns as
 * functions, and the dtype rules. Left alone: error bounds (ir/eval_ops.c). */
#include "ir/ops.h"

#include <math.h>
#include <string.h>

/* Signed overflow wraps, as on the GPU. */
static int64_t ref_wrap_add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static int64_t ref_wrap_sub(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
static int64_t ref_wrap_mul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }

/* Python's: the quotient goes down, the remainder has the divisor's sign. Integers divided by 0 give 0. */
static int64_t ref_floordiv_int(int64_t a, int64_t b) {
    if (b == 0) return 0;
    if (b == -1) return ref_wrap_sub(0, a); /* INT64_MIN / -1 traps */
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t ref_mod_int(int64_t a, int64_t b) {
    if (b == 0 || b == -1) return 0;
    int64_t rest = a % b;
    return rest != 0 && (a < 0) != (b < 0) ? rest + b : rest;
}

static double ref_mod(double a, double b) {
    double rest = fmod(a, b);
    if (rest == 0) return copysign(0.0, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
}

static double ref_floordiv(double a, double b) {
    if (b == 0 || isinf(a) || isnan(a) || isnan(b)) return a / b;
    double rest = fmod(a, b);
    double quotient = (a - rest) / b;
    if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
    if (quotient == 0) return copysign(0.0, a / b);
    return fabs(quotient) < 0x1p52 ? floor(quotient + 0.5) : quotient; /* the division itself may have rounded */
}

/* A negative exponent gives 0 unless the base is 1 or -1. */
static int64_t ref_pow_int(int64_t a, int64_t b) {
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    int64_t power = 1;
    for (; b; b >>= 1) {
        if (b & 1) power = ref_wrap_mul(power, a);
        a = ref_wrap_mul(a, a);
    }
    return power;
}

static double ref_sign(double a) { return isnan(a) ? a : (a > 0) - (a < 0); }
static double ref_where(double condition, double a, double b) { return condition != 0 ? a : b; }

static double ref_sigmoid(double a) { /* no overflow on either side */
    double e = exp(-fabs(a));
    return a >= 0 ? 1 / (1 + e) : e / (1 + e);
}

/* Half to even, whatever the rounding mode. */
static double ref_round(double a) {
    double down = floor(a), rest = a - down;
    if (isnan(a) || isinf(a) || rest == 0) return a;
    double up = rest > 0.5 || (rest == 0.5 && fmod(down, 2) != 0) ? down + 1 : down;
    return copysign(up, a);
}

/* NaN wins, and +0 is above -0. */
static double ref_maximum(double a, double b) {
    if (isnan(a) || isnan(b)) return a + b;
    if (a == b) return signbit(a) ? b : a;
    return a > b ? a : b;
}

static double ref_minimum(double a, double b) {
    if (isnan(a) || isnan(b)) return a + b;
    if (a == b) return signbit(a) ? a : b;
    return a < b ? a : b;
}

/* Some columns say that there is none; their functions are not taken into the table. */
#define UNUSED __attribute__((unused))

/* The columns as functions. Derivatives spell sign, where and floordiv as the graph language does. */
#define sign(a) ref_sign(a)
#define where(condition, a, b) ref_where(condition, a, b)
#define floordiv(a, b) ref_floordiv(a, b)
#define NO_REFERENCE ((double)NAN)
#define NO_INTEGER 0
#define NO_IDENTITY ((double)NAN)
#define OP(id, name, symbol, arity, rule, cuda, ulps, ref, integer, da, db)                                            \
    UNUSED static double reference_##id(double a, double b, double c) {                                                \
        (void)a, (void)b, (void)c;                                                                                     \
        return ref;                                                                                                    \
    }                                                                                                                  \
    UNUSED static int64_t integer_##id(int64_t a, int64_t b, int64_t c) {                                              \
        (void)a, (void)b, (void)c;                                                                                     \
        return integer;                                                                                                \
    }                                                                                                                  \
    static double da_##id(double a, double b, double y) {                                                              \
        (void)a, (void)b, (void)y;                                                                                     \
        return da;                                                                                                     \
    }                                                                                                                  \
    static double db_##id(double a, double b, double y) {                                                              \
        (void)a, (void)b, (void)y;                                                                                     \
        return db;                                                                                                     \
    }
#include "ir/ops.def"
#undef OP
#define REDUCTION(id, name, language, identity, integer_identity, cuda, ref, integer, ulps)                            \
    UNUSED static double combine_##id(double a, double b) {                                                            \
        (void)a, (void)b;                                                                                              \
        return ref;                                                                                                    \
    }                                                                                                                  \
    static int64_t combine_integer_##id(int64_t a, int64_t b) {                                                        \
        (void)a, (void)b;                                                                                              \
        return integer;                                                                                                \
    }
#include "ir/reductions.def"
#undef REDUCTION
#undef NO_REFERENCE
#undef NO_INTEGER

/* A column is its function, or NULL where it says NO_...: those expand to two items, of which the second is taken. */
#define NO_REFERENCE 0, NULL
#define NO_INTEGER 0, NULL
#define SECOND(first, second, ...) second
#define PICK(function, ...) SECOND(__VA_ARGS__, function, 0)

static const OpRow op_rows[OP_PRIMITIVES] = {
#define OP(id, name, symbol, arity, rule, cuda, ulps, ref, integer, da, db)                                            \
    {name,                                                                                                             \
     symbol,                                                                                                           \
     arity,                                                                                                            \
     rule,                                                                                                             \
     cuda,                                                                                                             \
     ulps,                                                                                                             \
     PICK(reference_##id, ref),                                                                                        \
     PICK(integer_##id, integer),                                                                                      \
     {da_##id, db_##id},                                                                                               \
     {#da, #db}},
#include "ir/ops.def"
#undef OP
};

static const ReductionRow reduction_rows[REDUCTION_COUNT] = {
#define REDUCTION(id, name, language, identity, integer_identity, cuda, ref, integer, ulps)                            \
    {name,                                                                                                             \
     language,                                                                                                         \
     identity,                                                                                                         \
     integer_identity,                                                                                                 \
     cuda,                                                                                                             \
     PICK(combine_##id, ref),                                                                                          \
     combine_integer_##id,                                                                                             \
     ulps,                                                                                                             \
     REDUCTION_##id == REDUCTION_ONLINE || REDUCTION_##id == REDUCTION_WELFORD ? 2 : 1},
#include "ir/reductions.def"
#undef REDUCTION
};

const OpRow *ir_op(Op op) { return &op_rows[op]; }
const ReductionRow *ir_reduction(Reduction reduction) { return &reduction_rows[reduction]; }

const char *ir_op_name(Op op) {
    static const char *const others[] = {"const",
                                         "cast",
                                         "size",
                                         "iota",
                                         "reduce",
                                         "input",
                                         "scalar",
                                         "index",
                                         "reshape",
                                         "composite",
                                         "load",
                                         "store",
                                         "partial_accumulate"};
    _Static_assert(sizeof others / sizeof *others == OP_COUNT - OP_PRIMITIVES, "one name for each op");
    return op < OP_PRIMITIVES ? op_rows[op].name : others[op - OP_PRIMITIVES];
}

static bool spells(const char *name, const char *bytes, size_t count) {
    return count && strlen(name) == count && !memcmp(name, bytes, count);
}

bool ir_op_find(const char *name, size_t count, Op *op) {
    for (unsigned i = 0; i < OP_PRIMITIVES; i++) {
        if (!spells(op_rows[i].name, name, count)) continue;
        *op = (Op)i;
        return true;
    }
    return false;
}

bool ir_reduction_find(const char *name, size_t count, Reduction *reduction) {
    for (unsigned i = 0; i < REDUCTION_COUNT; i++) {
        if (!spells(reduction_rows[i].name, name, count)) continue;
        *reduction = (Reduction)i;
        return true;
    }
    return false;
}

bool ir_reduction_find_language(const char *name, size_t count, Reduction *reduction) {
    for (unsigned i = 0; i < REDUCTION_COUNT; i++) {
        if (!spells(reduction_rows[i].language, name, count)) continue;
        *reduction = (Reduction)i;
        return true;
    }
    return false;
}

DType ir_op_operand_dtype(Op op, const DType *operands) {
    const OpRow *row = &op_rows[op];
    unsigned first = row->rule == RULE_WHERE ? 1 : 0;
    DType dtype = ir_compute_dtype(operands[first]);
    for (unsigned i = first + 1; i < row->arity; i++) dtype = ir_promote(dtype, operands[i]);
    if (row->rule == RULE_ARITHMETIC && dtype == DTYPE_BOOL) return DTYPE_I64;
    if (row->rule == RULE_FLOAT && ir_dtype(dtype)->kind != KIND_FLOAT) return DTYPE_F32;
    return dtype;
}

bool ir_op_dtype(Op op, const DType *operands, DType *result) {
    const OpRow *row = &op_rows[op];
    *result = ir_op_operand_dtype(op, operands);
    switch (row->rule) {
    case RULE_ARITHMETIC:
    case RULE_FLOAT: return true;
    case RULE_WHERE: return operands[0] == DTYPE_BOOL;
    case RULE_LOGIC:
        for (unsigned i = 0; i < row->arity; i++) {
            if (operands[i] != DTYPE_BOOL) return false;
        }
        return true;
    default: *result = DTYPE_BOOL; return true;
    }
}
