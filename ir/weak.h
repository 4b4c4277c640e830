/* Weak operands: numbers, sizes and operations on nothing else. They take their dtype from what they meet, so reading
 * an expression (gen/operand.c) and writing one (ir/graph_write.c) go by the same rules. */
#ifndef IR_WEAK_H
#define IR_WEAK_H

#include "ir/graph.h"

bool ir_arg_is_weak(const Arg *arg);
/* A size, or an operation on sizes and whole numbers: weak, and yet always i64. */
bool ir_arg_is_whole(const Arg *arg);

/* The dtype of a number's constant; want: what it meets, NULL: nothing. */
DType ir_weak_number_dtype(const Arg *number, const DType *want);
/* What the operands of an ARG_OP that meets want (or NULL) meet themselves. */
const DType *ir_weak_operand_want(const Arg *op, const DType *want);
/* What the weak operands of an op on values take from the others; false: nothing. */
bool ir_weak_meeting(const Graph *graph, Op op, const Arg *args, uint32_t count, DType *dtype);
/* Whether an op on these operands is weak itself. */
bool ir_op_is_weak(Op op, const Arg *args, uint32_t count);
/* A sum, a difference or a product of sizes. *overflow as ir_poly_add sets it. */
Poly ir_size_combine(Job *job, Op op, Poly a, Poly b, bool *overflow);
/* An op on weak operands that is no ARG_OP: a number with another sign, a whole number's whole power, sums and products
 * of sizes. False: it is one. */
bool ir_weak_fold(Job *job, Op op, const Arg *args, uint32_t count, Arg *result, bool *overflow);

#endif
