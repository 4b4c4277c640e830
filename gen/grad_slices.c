/* Gradients of slices that cut a dim into equal parts, as halves of a gated unit. In: parts, in the order in which
 * their gradients come. Out: the gradient of the whole, once: the parts side by side along a dim of their number, which
 * is then one dim with theirs. So each element is loaded where it lies, and wide; a slice of another kind is picked by
 * index (gen/grad_ops.c). */
#include "gen/grad_build.h"

enum { MAX_PARTS = 8 };

/* Which part of how many equal ones a range is; false: none of at most MAX_PARTS. */
static bool part_of(Job *job, const Item *range, Poly extent, EqualPart *slice) {
    bool overflow = false;
    const Poly length = ir_poly_sub(job, range->stop, range->start, &overflow);
    for (int64_t count = 2; count <= MAX_PARTS; count++) {
        if (!ir_poly_equal(ir_poly_mul(job, length, ir_poly_int(job, count), &overflow), extent)) continue;
        for (int64_t k = 0; k < count; k++) {
            if (!ir_poly_equal(ir_poly_mul(job, length, ir_poly_int(job, k), &overflow), range->start)) continue;
            slice->part = (uint32_t)k;
            slice->count = (uint32_t)count;
            slice->length = length;
            return !overflow;
        }
    }
    return false;
}

bool gen_grad_take_slice(Joint *joint, const Value *index, uint32_t gradient) {
    const Shape from = joint->graph->values.at[index->arg[0]].shape;
    EqualPart slice = {.value = index->arg[0], .gradient = gradient};
    uint32_t dim = 0, cut = 0;
    if (from.rank == IR_MAX_RANK) return false;
    for (uint32_t i = 0; i < index->item_count; i++) {
        const Item *item = &index->items[i];
        if (item->kind == ITEM_NEW_AXIS) continue;
        if (item->kind != ITEM_RANGE) return false;
        const bool whole = ir_item_takes_all(item, from.extent[dim]);
        if (!whole) {
            slice.dim = dim;
            if (cut++ || !part_of(joint->job, item, from.extent[dim], &slice)) return false;
        }
        dim++;
    }
    if (!cut) return false;
    *IR_PUSH(joint->job, &joint->slices) = slice;
    return true;
}

/* Parts of the same cut of the same value; taken from the list. */
static void collect(Joint *joint, const EqualPart *like, uint32_t *parts) {
    for (uint32_t i = 0; i < joint->slices.count; i++) {
        EqualPart *slice = &joint->slices.at[i];
        if (slice->value != like->value || slice->dim != like->dim || slice->count != like->count) continue;
        uint32_t *part = &parts[slice->part];
        *part = *part == IR_NONE ? slice->gradient : gen_grad_apply(joint, OP_ADD, *part, slice->gradient);
        slice->value = IR_NONE;
    }
}

/* where(part 0, its gradient, where(part 1, ...)), with a dim of the parts' number before the cut one. */
static uint32_t side_by_side(Joint *joint, const EqualPart *like, const uint32_t *parts, uint32_t rank) {
    uint32_t result = IR_NONE;
    for (uint32_t k = like->count; k-- > 0;) {
        const uint32_t part =
            parts[k] == IR_NONE ? IR_NONE : gen_grad_keep_dims(joint, parts[k], 1u << like->dim, rank + 1);
        if (k + 1 == like->count && part != IR_NONE) {
            result = part;
            continue;
        }
        if (part == IR_NONE && result == IR_NONE) continue; /* nothing from here on */
        const uint32_t known = part == IR_NONE ? result : part;
        const DType dtype = ir_compute_dtype(joint->graph->values.at[known].dtype);
        const uint32_t at = gen_grad_iota(joint, ir_poly_int(joint->job, like->count), like->dim, rank + 1);
        const uint32_t here = gen_grad_apply(joint, OP_EQ, at, gen_grad_number(joint, DTYPE_I64, k));
        const uint32_t args[3] = {here, part == IR_NONE ? gen_grad_number(joint, dtype, 0) : part,
                                  result == IR_NONE ? gen_grad_number(joint, dtype, 0) : result};
        result = ir_graph_op(joint->job, joint->graph, OP_WHERE, args, joint->place);
    }
    return result;
}

void gen_grad_join_slices(Joint *joint, uint32_t id) {
    for (uint32_t i = 0; i < joint->slices.count; i++) {
        const EqualPart like = joint->slices.at[i];
        uint32_t parts[MAX_PARTS];
        if (like.value != id) continue;
        for (uint32_t k = 0; k < MAX_PARTS; k++) parts[k] = IR_NONE;
        joint->place = joint->graph->values.at[id].place;
        collect(joint, &like, parts);
        const Shape whole = joint->graph->values.at[id].shape;
        Shape split = {.rank = (uint8_t)(whole.rank + 1)};
        for (uint32_t d = 0; d < split.rank; d++)
            split.extent[d] =
                d == like.dim ? ir_poly_int(joint->job, like.count) : whole.extent[d < like.dim ? d : d - 1];
        split.extent[like.dim + 1] = like.length;
        uint32_t gradient = side_by_side(joint, &like, parts, whole.rank);
        gradient = gen_grad_spread(joint, gradient, &split);
        gradient = ir_graph_reshape(joint->job, joint->graph, gradient, &whole, joint->place);
        gen_grad_add(joint, id, gradient, &whole);
    }
}
