/* The gradients of an op's operands. In: a forward value that is no composite, and its gradient. Out: what that adds to
 * the gradients of its operands: by the derivative columns of ir/ops.def and ir/reductions.def, and by what views and
 * casts are. Left alone: composites (gen/grad_composite.c). */
#include "gen/grad_build.h"

#include <string.h>

static Value value_at(const Joint *joint, uint32_t id) { return joint->graph->values.at[id]; } /* adding moves them */

/* ---- primitives ---- */

static bool constant_of(const Joint *joint, uint32_t id, double *number) {
    const Value value = value_at(joint, id);
    if (value.op != OP_CONST || ir_dtype(value.dtype)->kind == KIND_BOOL) return false;
    *number = (double)(int64_t)value.bits;
    if (ir_dtype(value.dtype)->kind == KIND_FLOAT) memcpy(number, &value.bits, sizeof *number);
    return true;
}

/* x**2 and x**3 as people derive them; other powers by the table. */
static const char *power_rule(const Joint *joint, const Value *value) {
    double exponent;
    if (value->op != OP_POW || !constant_of(joint, value->arg[1], &exponent)) return NULL;
    return exponent == 1 ? "1" : exponent == 2 ? "2 * a" : exponent == 3 ? "3 * (a * a)" : NULL;
}

static void of_primitive(Joint *joint, uint32_t id, uint32_t gradient) {
    static const char *const operands[] = {"a", "b", "c"};
    const Value value = value_at(joint, id);
    Bindings bindings = {0};
    gen_grad_bind(joint, &bindings, "y", gen_grad_value_arg(id));
    for (uint32_t i = 0; i < value.arg_count && i < 3; i++)
        gen_grad_bind(joint, &bindings, operands[i], gen_grad_value_arg(value.arg[i]));
    for (uint32_t i = 0; i < value.arg_count; i++) {
        if (!gen_grad_is_active(joint, value.arg[i])) continue;
        const char *rule = i == 0 ? power_rule(joint, &value) : NULL;
        const uint32_t part =
            gen_grad_scale(joint, gradient, rule ? rule : ir_op(value.op)->derivative_text[i], &bindings);
        if (part != IR_NONE) gen_grad_add(joint, value.arg[i], part, &value.shape);
    }
}

/* ---- reductions ---- */

static Arg dims_arg(Joint *joint, uint32_t dims) {
    Arg *items = IR_NEW_ARRAY(joint->job, Arg, IR_MAX_RANK);
    Arg list = {.kind = ARG_LIST, .item = items};
    for (uint32_t i = 0; i < IR_MAX_RANK; i++)
        if (dims >> i & 1)
            items[list.count++] = (Arg){.kind = ARG_NUMBER, .is_integer = true, .number = i, .integer = i};
    return list;
}

static void of_reduce(Joint *joint, uint32_t id, uint32_t gradient) {
    const Value value = value_at(joint, id);
    const Shape from = value_at(joint, value.arg[0]).shape;
    const uint32_t gone = value.keepdim ? 0 : value.dims;
    if (!value.dims) { /* of a 0-d tensor: its element */
        gen_grad_add(joint, value.arg[0], gradient, &from);
        return;
    }
    Bindings bindings = {0};
    gradient = gen_grad_raise(joint, gradient, value.shape.rank);
    gradient = gen_grad_keep_dims(joint, gradient, gone, from.rank);
    gen_grad_bind(joint, &bindings, "a", gen_grad_value_arg(value.arg[0]));
    gen_grad_bind(joint, &bindings, "dim", dims_arg(joint, value.dims));
    const bool is_sum = value.reduction == REDUCTION_ADD;
    if (!is_sum)
        gen_grad_bind(joint, &bindings, "y", gen_grad_value_arg(gen_grad_keep_dims(joint, id, gone, from.rank)));
    const uint32_t part = gen_grad_scale(joint, gradient, ir_reduction(value.reduction)->derivative, &bindings);
    if (part != IR_NONE) gen_grad_add(joint, value.arg[0], part, &from);
}

/* ---- views ---- */

typedef struct Range { /* of a dim that a slice or an index was taken of */
    Poly start, stop, extent;
} Range;

/* The gradient at every index of the dim: an index outside the range picks one that is inside; what it gives is not
 * taken. */
static uint32_t pick_along(Joint *joint, uint32_t gradient, const Range *range, uint32_t dim) {
    const Shape shape = value_at(joint, gradient).shape;
    bool overflow = false;
    Item items[IR_MAX_RANK] = {{0}};
    uint32_t index = gen_grad_iota(joint, range->extent, 0, 1);
    if (range->start.count) {
        index = gen_grad_apply(joint, OP_SUB, index, gen_grad_size(joint, range->start));
        index = gen_grad_apply(joint, OP_MAXIMUM, index, gen_grad_size(joint, ir_poly_int(joint->job, 0)));
    }
    if (!ir_poly_equal(range->stop, range->extent)) {
        Poly last = ir_poly_sub(joint->job, range->stop, range->start, &overflow);
        last = ir_poly_sub(joint->job, last, ir_poly_int(joint->job, 1), &overflow);
        index = gen_grad_apply(joint, OP_MINIMUM, index, gen_grad_size(joint, last));
    }
    for (uint32_t i = 0; i < shape.rank; i++) items[i] = (Item){.kind = ITEM_RANGE, .stop = shape.extent[i]};
    items[dim] = (Item){.kind = ITEM_GATHER, .index = index};
    return ir_graph_index(joint->job, joint->graph, gradient, items, shape.rank, joint->place);
}

/* Where the dim's index lies in the range; IR_NONE: everywhere. */
static uint32_t inside(Joint *joint, const Range *range, uint32_t dim, uint32_t rank, bool single) {
    uint32_t low = IR_NONE, high = IR_NONE;
    if (single)
        return gen_grad_apply(joint, OP_EQ, gen_grad_iota(joint, range->extent, dim, rank),
                              gen_grad_size(joint, range->start));
    if (range->start.count)
        low = gen_grad_apply(joint, OP_GE, gen_grad_iota(joint, range->extent, dim, rank),
                             gen_grad_size(joint, range->start));
    if (!ir_poly_equal(range->stop, range->extent))
        high = gen_grad_apply(joint, OP_LT, gen_grad_iota(joint, range->extent, dim, rank),
                              gen_grad_size(joint, range->stop));
    return low == IR_NONE ? high : high == IR_NONE ? low : gen_grad_apply(joint, OP_AND, low, high);
}

static void of_index(Joint *joint, uint32_t id, uint32_t gradient) {
    const Value value = value_at(joint, id);
    const Shape from = value_at(joint, value.arg[0]).shape;
    uint32_t added = 0, single = 0, dim = 0, at = 0; /* masks over the dims of the result and of the argument */
    for (uint32_t i = 0; i < value.item_count; i++) {
        const Item *item = &value.items[i];
        if (item->kind == ITEM_GATHER)
            ir_stop_at(joint->job, STATUS_REJECTED, value.place,
                       "there is no gradient through a gathered operand, at whose elements it would add up: name the "
                       "other inputs as those that gradients are wanted of");
        if (item->kind == ITEM_NEW_AXIS) added |= 1u << at;
        if (item->kind == ITEM_AT) single |= 1u << dim;
        dim += item->kind != ITEM_NEW_AXIS;
        at += item->kind != ITEM_AT;
    }
    gradient = gen_grad_raise(joint, gradient, value.shape.rank);
    gradient = gen_grad_drop_dims(joint, gradient, added);
    gradient = gen_grad_keep_dims(joint, gradient, single, from.rank);
    if (gen_grad_take_slice(joint, &value, gradient)) return;
    uint32_t condition = IR_NONE;
    dim = 0;
    for (uint32_t i = 0; i < value.item_count; i++) {
        const Item *item = &value.items[i];
        if (item->kind == ITEM_NEW_AXIS) continue;
        const Range range = {item->start, item->stop, from.extent[dim]};
        const bool is_single = item->kind == ITEM_AT;
        const bool whole = !is_single && !range.start.count && ir_poly_equal(range.stop, range.extent);
        if (!whole && !(is_single && gen_grad_is_one(range.extent))) {
            const uint32_t here = inside(joint, &range, dim, from.rank, is_single);
            condition = condition == IR_NONE ? here : gen_grad_apply(joint, OP_AND, condition, here);
            const Poly extent = value_at(joint, gradient).shape.extent[dim];
            if (!is_single && !gen_grad_is_one(extent)) gradient = pick_along(joint, gradient, &range, dim);
        }
        dim++;
    }
    gen_grad_add(joint, value.arg[0], gen_grad_where(joint, condition, gradient), &from);
}

static void of_reshape(Joint *joint, uint32_t id, uint32_t gradient) {
    const Value value = value_at(joint, id);
    const Shape from = value_at(joint, value.arg[0]).shape;
    gradient = gen_grad_spread(joint, gradient, &value.shape);
    gradient = ir_graph_reshape(joint->job, joint->graph, gradient, &from, joint->place);
    gen_grad_add(joint, value.arg[0], gradient, &from);
}

void gen_grad_of_op(Joint *joint, uint32_t id, uint32_t gradient) {
    const Value value = value_at(joint, id);
    switch (value.op) {
    case OP_CAST: gen_grad_add(joint, value.arg[0], gradient, &value.shape); return; /* rounding is passed by */
    case OP_REDUCE: of_reduce(joint, id, gradient); return;
    case OP_INDEX: of_index(joint, id, gradient); return;
    case OP_RESHAPE: of_reshape(joint, id, gradient); return;
    case OP_INPUT: return;
    default: break;
    }
    if (value.op >= OP_PRIMITIVES)
        ir_stop_at(joint->job, STATUS_REJECTED, value.place, "%s has no derivative", ir_op_name(value.op));
    of_primitive(joint, id, gradient);
}
