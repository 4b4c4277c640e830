/* Constant folding (gen/fold.h): from the op table's references. f32 results come from double, whose 53 bits are enough
 * that rounding once more to 24 gives the correctly rounded result of + - * / and sqrt. */
#include "gen/fold.h"

#include <string.h>

#define EXACT_INT ((int64_t)1 << 53) /* integers up to here are doubles */

typedef struct Number {
    double number;   /* floats */
    int64_t integer; /* integers and bools */
} Number;

static Number constant(const Value *value) {
    Number number = {0};
    if (ir_dtype(value->dtype)->kind == KIND_FLOAT)
        memcpy(&number.number, &value->bits, sizeof value->bits);
    else
        number.integer = (int64_t)value->bits;
    return number;
}

/* The constant as an op that computes in `to` sees it; false where that rounds twice. */
static bool as_dtype(Number *number, DType from, DType to) {
    Kind from_kind = ir_dtype(from)->kind, to_kind = ir_dtype(to)->kind;
    if (to_kind == KIND_FLOAT) {
        if (from_kind != KIND_FLOAT) {
            if (number->integer > EXACT_INT || number->integer < -EXACT_INT) return false;
            number->number = (double)number->integer;
        }
        number->number = ir_round(to, number->number);
        return true;
    }
    if (to_kind == KIND_BOOL) {
        number->integer = from_kind == KIND_FLOAT ? number->number != 0 : number->integer != 0;
        return true;
    }
    if (from_kind == KIND_FLOAT)
        number->integer = ir_float_to_int(to, number->number);
    else
        number->integer = ir_wrap_int(to, number->integer);
    return true;
}

static void make_constant(Value *value, Number number) {
    value->op = OP_CONST;
    value->arg_count = 0;
    memset(value->arg, 0, sizeof value->arg);
    if (ir_dtype(value->dtype)->kind == KIND_FLOAT)
        memcpy(&value->bits, &number.number, sizeof number.number);
    else
        value->bits = (uint64_t)number.integer;
}

/* The op on operands that are already in the dtype in which they meet. */
static bool apply(const Value *value, DType meet, const Number *args, Number *result) {
    const OpRow *row = ir_op(value->op);
    bool test = row->rule == RULE_COMPARE || row->rule == RULE_TEST || row->rule == RULE_LOGIC;
    if (ir_dtype(meet)->kind != KIND_FLOAT) {
        if (!row->integer || ((value->op == OP_FLOORDIV || value->op == OP_MOD) && !args[1].integer)) return false;
        result->integer = row->integer(args[0].integer, args[1].integer, args[2].integer);
        return true;
    }
    if (!row->reference) return false;
    double first = row->rule == RULE_WHERE ? (double)args[0].integer : args[0].number;
    double y = row->reference(first, args[1].number, args[2].number);
    if (test)
        result->integer = y != 0;
    else
        result->number = ir_round(value->dtype, y);
    return true;
}

bool gen_fold(const Graph *graph, Value *value) {
    if (value->shape.rank || !value->arg_count) return false;
    Number args[3] = {{0}}, result = {0};
    DType dtypes[3] = {value->dtype, value->dtype, value->dtype};
    if (value->op != OP_CAST && value->op >= OP_PRIMITIVES) return false;
    for (uint32_t i = 0; i < value->arg_count; i++) {
        const Value *arg = &graph->values.at[value->arg[i]];
        if (arg->op != OP_CONST) return false;
        args[i] = constant(arg);
        dtypes[i] = arg->dtype;
    }
    if (value->op == OP_CAST) {
        result = args[0];
        if (!as_dtype(&result, dtypes[0], value->dtype)) return false;
        make_constant(value, result);
        return true;
    }
    if (ir_op(value->op)->ulps > 0.5) return false;
    DType meet =
        ir_op(value->op)->rule == RULE_TEST ? ir_compute_dtype(dtypes[0]) : ir_op_operand_dtype(value->op, dtypes);
    for (uint32_t i = ir_op(value->op)->rule == RULE_WHERE; i < value->arg_count; i++)
        if (!as_dtype(&args[i], dtypes[i], meet)) return false;
    if (!apply(value, meet, args, &result)) return false;
    make_constant(value, result);
    return true;
}
