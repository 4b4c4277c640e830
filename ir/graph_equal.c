/* In: two Graphs. Out: whether they say the same, but for places, origins and the names of inner values. */
#include "ir/graph.h"

#include <string.h>

static bool same_text(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }

static bool same_shape(const Shape *a, const Shape *b) {
    if (a->rank != b->rank) return false;
    for (uint32_t i = 0; i < a->rank; i++) {
        if (!ir_poly_equal(a->extent[i], b->extent[i])) return false;
    }
    return true;
}

static bool same_items(const Item *a, const Item *b, uint32_t count) {
    if (!a || !b) return a == b || !count;
    for (uint32_t i = 0; i < count; i++) {
        if (a[i].kind != b[i].kind) return false;
        switch (a[i].kind) {
        case ITEM_NEW_AXIS: break;
        case ITEM_GATHER:
            if (a[i].index != b[i].index) return false;
            break;
        case ITEM_RANGE:
            if (!ir_poly_equal(a[i].stop, b[i].stop)) return false;
            /* fall through */
        case ITEM_AT:
            if (!ir_poly_equal(a[i].start, b[i].start)) return false;
        }
    }
    return true;
}

static bool same_dim(const Dim *a, const Dim *b) {
    return same_text(a->name, b->name) && a->value == b->value && a->hint == b->hint && a->max == b->max &&
           a->multiple == b->multiple && a->derived == b->derived;
}

/* The same bits: NaN is itself, -0 is not 0. */
static bool same_double(double a, double b) {
    uint64_t x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    return x == y;
}

static bool same_tensor(const Tensor *a, const Tensor *b) {
    if (!same_text(a->name, b->name) || a->dtype != b->dtype || !same_shape(&a->shape, &b->shape)) return false;
    if (a->contiguous != b->contiguous || a->align != b->align || a->accumulate != b->accumulate) return false;
    if (a->value != b->value || a->inplace != b->inplace || a->inplace_item_count != b->inplace_item_count)
        return false;
    for (uint32_t i = 0; i < a->shape.rank; i++) {
        if (!ir_poly_equal(a->stride[i], b->stride[i])) return false;
    }
    return same_items(a->inplace_items, b->inplace_items, a->inplace_item_count) && a->has_default == b->has_default &&
           same_double(a->default_float, b->default_float) && a->default_int == b->default_int;
}

static bool same_value(const Value *a, const Value *b) {
    if (a->op != b->op || a->dtype != b->dtype || !same_shape(&a->shape, &b->shape)) return false;
    if (a->arg_count != b->arg_count || memcmp(a->arg, b->arg, a->arg_count * sizeof *a->arg)) return false;
    switch (a->op) {
    case OP_CONST: return a->bits == b->bits;
    case OP_INPUT:
    case OP_SCALAR: return a->tensor == b->tensor;
    case OP_SIZE:
    case OP_IOTA: return ir_poly_equal(a->size, b->size);
    case OP_REDUCE: return a->reduction == b->reduction && a->dims == b->dims && a->keepdim == b->keepdim;
    case OP_INDEX: return a->item_count == b->item_count && same_items(a->items, b->items, a->item_count);
    case OP_COMPOSITE: return ir_call_equal(a->call, b->call);
    default: return true;
    }
}

bool ir_graph_equal(const Graph *a, const Graph *b) {
    if (!same_text(a->name, b->name) || a->dims.count != b->dims.count || a->inputs.count != b->inputs.count) {
        return false;
    }
    if (a->outputs.count != b->outputs.count || a->scalars.count != b->scalars.count) return false;
    if (a->values.count != b->values.count) return false;
    bool same = true;
    for (uint32_t i = 0; same && i < a->dims.count; i++) same = same_dim(&a->dims.at[i], &b->dims.at[i]);
    for (uint32_t i = 0; same && i < a->inputs.count; i++) same = same_tensor(&a->inputs.at[i], &b->inputs.at[i]);
    for (uint32_t i = 0; same && i < a->outputs.count; i++) same = same_tensor(&a->outputs.at[i], &b->outputs.at[i]);
    for (uint32_t i = 0; same && i < a->scalars.count; i++) same = same_tensor(&a->scalars.at[i], &b->scalars.at[i]);
    for (uint32_t i = 0; same && i < a->values.count; i++) same = same_value(&a->values.at[i], &b->values.at[i]);
    return same;
}
