/* In: operands (Arg). Out: whether they are weak, and the dtype that weak ones take. Left alone: places, messages and
 * the making of values (gen/operand.c). */
#include "ir/weak.h"

bool ir_arg_is_weak(const Arg *arg) { return arg->kind == ARG_NUMBER || arg->kind == ARG_SIZE || arg->kind == ARG_OP; }

/* What the leaves of a weak expression are: whether a size is among them, and nothing but integers. */
static void look_at_leaves(const Arg *arg, bool *size, bool *integers) {
    if (arg->kind == ARG_SIZE) *size = true;
    if (arg->kind == ARG_NUMBER && !arg->is_integer) *integers = false;
    if (arg->kind != ARG_OP) return;
    if (ir_op(arg->op)->rule == RULE_FLOAT) *integers = false;
    for (uint32_t i = 0; i < arg->count; i++) look_at_leaves(&arg->item[i], size, integers);
}

bool ir_arg_is_whole(const Arg *arg) {
    bool size = false, integers = true;
    look_at_leaves(arg, &size, &integers);
    return size && integers;
}

DType ir_weak_number_dtype(const Arg *number, const DType *want) {
    DType dtype = want ? *want : DTYPE_F32;
    if (ir_dtype(dtype)->kind == KIND_FLOAT) return dtype;
    return number->is_integer ? DTYPE_I64 : DTYPE_F32;
}

const DType *ir_weak_operand_want(const Arg *op, const DType *want) {
    static const DType integer = DTYPE_I64;
    bool size = false, integers = true;
    look_at_leaves(op, &size, &integers);
    if (size && integers) return &integer;
    bool is_float = want && ir_dtype(*want)->kind == KIND_FLOAT;
    return (!integers || ir_op(op->op)->rule == RULE_FLOAT) && !is_float ? NULL : want;
}

bool ir_weak_meeting(const Graph *graph, Op op, const Arg *args, uint32_t count, DType *dtype) {
    bool found = false;
    for (uint32_t i = ir_op(op)->rule == RULE_WHERE ? 1 : 0; i < count; i++) {
        if (ir_arg_is_weak(&args[i]) && !ir_arg_is_whole(&args[i])) continue;
        DType own = args[i].kind == ARG_VALUE  ? ir_compute_dtype(graph->values.at[args[i].value].dtype)
                    : args[i].kind == ARG_BOOL ? DTYPE_BOOL
                                               : DTYPE_I64;
        *dtype = found ? ir_promote(*dtype, own) : own;
        found = true;
    }
    return found && (ir_op(op)->rule != RULE_FLOAT || ir_dtype(*dtype)->kind == KIND_FLOAT);
}

bool ir_op_is_weak(Op op, const Arg *args, uint32_t count) {
    bool weak = ir_op(op)->rule == RULE_ARITHMETIC || ir_op(op)->rule == RULE_FLOAT;
    for (uint32_t i = 0; i < count; i++) weak = weak && ir_arg_is_weak(&args[i]);
    return weak;
}

Poly ir_size_combine(Job *job, Op op, Poly a, Poly b, bool *overflow) {
    return op == OP_ADD   ? ir_poly_add(job, a, b, overflow)
           : op == OP_SUB ? ir_poly_sub(job, a, b, overflow)
                          : ir_poly_mul(job, a, b, overflow);
}

static Poly size_of(Job *job, const Arg *arg, bool *overflow) {
    if (arg->kind == ARG_SIZE) return arg->size;
    if (arg->integer >= IR_MAX_EXTENT || arg->integer <= -IR_MAX_EXTENT) *overflow = true;
    return ir_poly_int(job, *overflow ? 0 : arg->integer);
}

/* A whole number's whole power, where that is a double: a literal like any other. */
static bool fold_power(const Arg *args, Arg *result) {
    const int64_t most = (int64_t)1 << 53;
    for (uint32_t i = 0; i < 2; i++)
        if (args[i].kind != ARG_NUMBER || !args[i].is_integer) return false;
    const int64_t base = args[0].integer, exponent = args[1].integer;
    if (exponent < 0 || exponent > 64 || base > most || base < -most) return false;
    int64_t power = 1;
    for (int64_t i = 0; i < exponent; i++)
        if (ir_mul_overflows(power, base, &power) || power > most || power < -most) return false;
    *result = args[0];
    result->integer = power;
    result->number = (double)power;
    return true;
}

bool ir_weak_fold(Job *job, Op op, const Arg *args, uint32_t count, Arg *result, bool *overflow) {
    if (op == OP_POW) return fold_power(args, result);
    if (op == OP_NEG && args[0].kind == ARG_NUMBER) {
        *result = args[0];
        result->integer = result->integer == INT64_MIN ? INT64_MIN : -result->integer;
        result->number = result->is_integer && result->integer == 0 ? 0.0 : -result->number;
        return true;
    }
    bool sizes = op == OP_ADD || op == OP_SUB || op == OP_MUL || op == OP_NEG, any = false;
    for (uint32_t i = 0; i < count; i++) {
        any = any || args[i].kind == ARG_SIZE;
        sizes = sizes && (args[i].kind == ARG_SIZE || (args[i].kind == ARG_NUMBER && args[i].is_integer));
    }
    if (!any || !sizes) return false;
    Poly a = op == OP_NEG ? (Poly){0, NULL} : size_of(job, &args[0], overflow);
    Poly b = size_of(job, &args[count - 1], overflow);
    op = op == OP_NEG ? OP_SUB : op;
    *result = (Arg){.kind = ARG_SIZE, .size = ir_size_combine(job, op, a, b, overflow)};
    return true;
}
