/* Shapes of gradients. In: values of the joint graph. Out: the same with dims put in, left out, summed or spread.
 *
 * A gradient may lack dims, or have 1, where what it belongs to is larger: it is then the same along them. So the
 * gradient of a sum is not written out, and meets other operands by broadcasting. */
#include "gen/grad_build.h"

bool gen_grad_is_one(Poly extent) {
    int64_t number;
    return ir_poly_is_int(extent, &number) && number == 1;
}

bool gen_grad_same_shape(const Shape *a, const Shape *b) {
    if (a->rank != b->rank) return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (!ir_poly_equal(a->extent[i], b->extent[i])) return false;
    return true;
}

static Shape shape_of(const Joint *joint, uint32_t value) { return joint->graph->values.at[value].shape; }

uint32_t gen_grad_apply(Joint *joint, Op op, uint32_t a, uint32_t b) {
    const uint32_t args[3] = {a, b, 0};
    return ir_graph_op(joint->job, joint->graph, op, args, joint->place);
}

static uint32_t add_index(Joint *joint, uint32_t value, const Item *items, uint32_t count) {
    return ir_graph_index(joint->job, joint->graph, value, items, count, joint->place);
}

uint32_t gen_grad_raise(Joint *joint, uint32_t value, uint32_t rank) {
    const Shape shape = shape_of(joint, value);
    Item items[IR_MAX_RANK] = {{0}};
    if (shape.rank >= rank) return value;
    for (uint32_t i = 0; i < rank; i++) {
        const bool is_new = i < rank - shape.rank;
        items[i] = is_new ? (Item){.kind = ITEM_NEW_AXIS}
                          : (Item){.kind = ITEM_RANGE, .stop = shape.extent[i - (rank - shape.rank)]};
    }
    return add_index(joint, value, items, rank);
}

uint32_t gen_grad_keep_dims(Joint *joint, uint32_t value, uint32_t dims, uint32_t rank) {
    const Shape shape = shape_of(joint, value);
    Item items[IR_MAX_RANK] = {{0}};
    uint32_t from = 0;
    if (!dims || shape.rank >= rank) return value;
    for (uint32_t i = 0; i < rank; i++)
        items[i] =
            dims >> i & 1 ? (Item){.kind = ITEM_NEW_AXIS} : (Item){.kind = ITEM_RANGE, .stop = shape.extent[from++]};
    IR_REQUIRE(joint->job, from == shape.rank);
    return add_index(joint, value, items, rank);
}

/* A sum that keeps its dims, all of which go now or went before, is made again without them. */
static uint32_t drop_of_sum(Joint *joint, uint32_t value, uint32_t dims) {
    const Graph *graph = joint->graph;
    uint32_t gone = 0, dim = 0, at = 0;
    const Value outer = graph->values.at[value];
    const bool indexed = outer.op == OP_INDEX;
    const Value sum = indexed ? graph->values.at[outer.arg[0]] : outer;
    if (sum.op != OP_REDUCE || !sum.keepdim) return IR_NONE;
    for (uint32_t i = 0; indexed && i < outer.item_count; i++, dim++) {
        const bool drops = outer.items[i].kind == ITEM_AT;
        if (!drops && outer.items[i].kind != ITEM_RANGE) return IR_NONE;
        if (drops || dims >> at & 1) gone |= 1u << dim;
        at += !drops;
    }
    if ((indexed ? gone : dims) != sum.dims) return IR_NONE;
    return ir_graph_reduce(joint->job, joint->graph, sum.reduction, sum.arg[0], sum.dims, false, joint->place);
}

uint32_t gen_grad_drop_dims(Joint *joint, uint32_t value, uint32_t dims) {
    const Shape shape = shape_of(joint, value);
    Item items[IR_MAX_RANK] = {{0}};
    const Value own = joint->graph->values.at[value];
    if (!dims) return value;
    if (own.op == OP_NEG) return gen_grad_apply(joint, OP_NEG, gen_grad_drop_dims(joint, own.arg[0], dims), IR_NONE);
    const uint32_t again = drop_of_sum(joint, value, dims);
    if (again != IR_NONE) return again;
    for (uint32_t i = 0; i < shape.rank; i++)
        items[i] = dims >> i & 1 ? (Item){.kind = ITEM_AT} : (Item){.kind = ITEM_RANGE, .stop = shape.extent[i]};
    return add_index(joint, value, items, shape.rank);
}

Poly gen_grad_elements(Job *job, const Shape *shape) {
    bool overflow = false;
    Poly count = ir_poly_int(job, 1);
    for (uint32_t i = 0; i < shape->rank; i++) count = ir_poly_mul(job, count, shape->extent[i], &overflow);
    return count;
}

Poly gen_grad_bytes(Job *job, const Shape *shape, DType dtype) {
    bool overflow = false;
    return ir_poly_mul(job, gen_grad_elements(job, shape), ir_poly_int(job, ir_dtype(dtype)->bytes), &overflow);
}

uint32_t gen_grad_number(Joint *joint, DType dtype, int64_t number) {
    return ir_graph_const(joint->job, joint->graph, dtype, (double)number, number, joint->place);
}

uint32_t gen_grad_size(Joint *joint, Poly size) {
    int64_t number;
    if (ir_poly_is_int(size, &number)) return gen_grad_number(joint, DTYPE_I64, number);
    const uint32_t id = ir_graph_add(joint->job, joint->graph, OP_SIZE, DTYPE_I64, joint->place);
    joint->graph->values.at[id].size = size;
    return id;
}

uint32_t gen_grad_where(Joint *joint, uint32_t condition, uint32_t gradient) {
    if (condition == IR_NONE) return gradient;
    const DType dtype = ir_compute_dtype(joint->graph->values.at[gradient].dtype);
    const uint32_t args[3] = {condition, gradient, gen_grad_number(joint, dtype, 0)};
    return ir_graph_op(joint->job, joint->graph, OP_WHERE, args, joint->place);
}

/* The sum of -x as -sum(x), one negative a row. */
static uint32_t sum_of(Joint *joint, uint32_t value, uint32_t dims, bool keepdim) {
    const Value argument = joint->graph->values.at[value];
    const bool negative = argument.op == OP_NEG;
    value = ir_graph_reduce(joint->job, joint->graph, REDUCTION_ADD, negative ? argument.arg[0] : value, dims, keepdim,
                            joint->place);
    return negative ? gen_grad_apply(joint, OP_NEG, value, IR_NONE) : value;
}

uint32_t gen_grad_sum_to(Joint *joint, uint32_t value, const Shape *from, const Shape *to) {
    const uint32_t rank = from->rank, lead = rank - to->rank;
    bool overflow = false;
    uint32_t sum = 0, drop = 0;
    Poly count = ir_poly_int(joint->job, 1); /* of equal elements that are added up */
    const Shape own = shape_of(joint, value);
    const uint32_t missing = rank - own.rank;
    for (uint32_t i = 0; i < rank; i++) {
        const bool kept = i >= lead && !gen_grad_is_one(to->extent[i - lead]);
        if (i < lead && i >= missing) drop |= 1u << (i - missing);
        if (kept || gen_grad_is_one(from->extent[i])) continue;
        if (i >= missing && !gen_grad_is_one(own.extent[i - missing]))
            sum |= 1u << (i - missing);
        else
            count = ir_poly_mul(joint->job, count, from->extent[i], &overflow);
    }
    if (overflow) ir_stop_at(joint->job, STATUS_REJECTED, joint->place, "a size must stay below 2^62");
    if (sum) value = sum_of(joint, value, sum, sum != drop);
    if (!sum || sum != drop) value = gen_grad_drop_dims(joint, value, drop);
    return gen_grad_is_one(count) ? value : gen_grad_apply(joint, OP_MUL, value, gen_grad_size(joint, count));
}

uint32_t gen_grad_iota(Joint *joint, Poly extent, uint32_t dim, uint32_t rank) {
    const uint32_t id = ir_graph_add(joint->job, joint->graph, OP_IOTA, DTYPE_I64, joint->place);
    Value *iota = &joint->graph->values.at[id];
    iota->size = iota->shape.extent[0] = extent;
    iota->shape.rank = 1;
    return gen_grad_keep_dims(joint, id, ((1u << (rank - dim)) - 1) & ~1u, rank - dim);
}

/* arange(extent) >= 0 along dim i of `rank`: true everywhere, and as long as the dim. */
static uint32_t whole_dim(Joint *joint, Poly extent, uint32_t i, uint32_t rank) {
    const uint32_t index = gen_grad_iota(joint, extent, i, rank);
    return gen_grad_apply(joint, OP_GE, index, gen_grad_number(joint, DTYPE_I64, 0));
}

uint32_t gen_grad_spread(Joint *joint, uint32_t value, const Shape *to) {
    const Shape own = shape_of(joint, value);
    const uint32_t missing = to->rank - own.rank;
    uint32_t everywhere = IR_NONE;
    for (uint32_t i = 0; i < to->rank; i++) {
        const bool whole = i >= missing && ir_poly_equal(own.extent[i - missing], to->extent[i]);
        if (whole || (i < missing && gen_grad_is_one(to->extent[i]))) continue;
        const uint32_t dim = whole_dim(joint, to->extent[i], i, to->rank);
        everywhere = everywhere == IR_NONE ? dim : gen_grad_apply(joint, OP_AND, everywhere, dim);
    }
    return gen_grad_raise(joint, gen_grad_where(joint, everywhere, value), to->rank);
}
