/* In: ir/ops.def and ir/reductions.def. Out: the tables, with their reference, integer and derivative columns as
 * functions, and the dtype rules. Left alone: error bounds (ir/eval_ops.c). */
#include "ir/ops.h"

#include <string.h>
#include <tgmath.h>

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

/* Some columns say that there is none; their functions are not taken into the table. */
#define UNUSED __attribute__((unused))

#define NO_REFERENCE NAN
#define NO_INTEGER 0
#define NO_IDENTITY ((double)NAN)

#define REAL double
#define NAMED(name) name##_double
#define WHOLE 0x1p52
#include "ir/ops_real.h"
#define REAL long double
#define NAMED(name) name##_long
#define WHOLE 0x1p62L
#include "ir/ops_real.h"

static double ref_where(double condition, double a, double b) { return condition != 0 ? a : b; }

/* The other columns as functions. Derivatives spell sign, where and floordiv as the graph language does. */
#define sign(a) ref_sign_double(a)
#define where(condition, a, b) ref_where(condition, a, b)
#define floordiv(a, b) ref_floordiv_double(a, b)
#define OP(id, name, symbol, arity, rule, cuda, ulps, ref, integer, da, db, dc, what)                                  \
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
#define REDUCTION(id, name, language, identity, integer_identity, cuda, ref, integer, ulps, derivative, what)          \
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
#define OP(id, name, symbol, arity, rule, cuda, ulps, ref, integer, da, db, dc, what)                                  \
    {name,                                                                                                             \
     symbol,                                                                                                           \
     arity,                                                                                                            \
     rule,                                                                                                             \
     cuda,                                                                                                             \
     ulps,                                                                                                             \
     PICK(reference_##id##_double, ref),                                                                               \
     PICK(reference_##id##_long, ref),                                                                                 \
     PICK(integer_##id, integer),                                                                                      \
     {da_##id, db_##id},                                                                                               \
     {#da, #db, #dc},                                                                                                  \
     what},
#include "ir/ops.def"
#undef OP
};

static const ReductionRow reduction_rows[REDUCTION_COUNT] = {
#define REDUCTION(id, name, language, identity, integer_identity, cuda, ref, integer, ulps, derivative, what)          \
    {name,                                                                                                             \
     language,                                                                                                         \
     identity,                                                                                                         \
     integer_identity,                                                                                                 \
     cuda,                                                                                                             \
     PICK(combine_##id##_double, ref),                                                                                 \
     PICK(combine_##id##_long, ref),                                                                                   \
     combine_integer_##id,                                                                                             \
     ulps,                                                                                                             \
     REDUCTION_##id == REDUCTION_ONLINE || REDUCTION_##id == REDUCTION_WELFORD ? 2 : 1,                                \
     derivative,                                                                                                       \
     what},
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
