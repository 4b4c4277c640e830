/* In: ops, arguments and places. Out: values of a Graph, typed and broadcast, or an error at the place. Left alone: the
 * language (gen/), printing (ir/graph_print.c). */
#include "ir/graph.h"

#include <string.h>

Graph *ir_graph_create(Job *job, const char *name) {
    Graph *graph = IR_NEW(job, Graph);
    graph->name = name;
    return graph;
}

uint32_t ir_graph_add(Job *job, Graph *graph, Op op, DType dtype, Place place) {
    if (graph->values.count >= IR_MAX_NODES) {
        ir_stop_at(
            job, STATUS_REJECTED, place,
            "a graph has at most %d values once composites and functions are written out: divide it into several",
            IR_MAX_NODES);
    }
    Value *value = IR_PUSH(job, &graph->values);
    value->op = op;
    value->dtype = dtype;
    value->place = place;
    value->origin = IR_NONE;
    return graph->values.count - 1;
}

int64_t *ir_graph_fixed(Job *job, const Graph *graph) {
    int64_t *fixed = IR_NEW_ARRAY(job, int64_t, graph->dims.count);
    for (uint32_t i = 0; i < graph->dims.count; i++) fixed[i] = graph->dims.at[i].value;
    return fixed;
}

const char **ir_graph_dim_names(Job *job, const Graph *graph) {
    const char **names = IR_NEW_ARRAY(job, const char *, graph->dims.count);
    for (uint32_t i = 0; i < graph->dims.count; i++) names[i] = graph->dims.at[i].name;
    return names;
}

static Poly fold(Job *job, const Graph *graph, Poly poly, bool *overflow) {
    return ir_poly_fold(job, poly, ir_graph_fixed(job, graph), graph->dims.count, overflow);
}

/* ---- printing of types, for messages ---- */

void ir_print_type(Text *text, const Graph *graph, DType dtype, const Shape *shape) {
    const char **names = ir_graph_dim_names(text->job, graph);
    ir_text_put(text, ir_dtype(dtype)->name);
    ir_text_put(text, "[");
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (i) ir_text_put(text, ", ");
        ir_poly_print(text, shape->extent[i], names, graph->dims.count);
    }
    ir_text_put(text, "]");
}

static const char *type_text(Job *job, const Graph *graph, uint32_t id) {
    Text text = ir_text(job);
    const Value *value = &graph->values.at[id];
    ir_print_type(&text, graph, value->dtype, &value->shape);
    return ir_text_string(&text);
}

static const char *poly_text(Job *job, const Graph *graph, Poly poly) {
    Text text = ir_text(job);
    ir_poly_print(&text, poly, ir_graph_dim_names(job, graph), graph->dims.count);
    return ir_text_string(&text);
}

/* How messages call an op: its symbol, else its name. */
static const char *spelling(Op op) {
    const char *symbol = op < OP_PRIMITIVES ? ir_op(op)->symbol : "";
    return *symbol ? symbol : ir_op_name(op);
}

/* ---- shapes ---- */

static bool is_one(Poly poly) {
    int64_t value;
    return ir_poly_is_int(poly, &value) && value == 1;
}

bool ir_shape_broadcast(Job *job, const Shape *a, const Shape *b, Shape *result) {
    Shape shape = {.rank = a->rank > b->rank ? a->rank : b->rank};
    for (uint32_t i = 0; i < shape.rank; i++) { /* i counts from the last dim */
        const Poly *x = i < a->rank ? &a->extent[a->rank - 1 - i] : NULL;
        const Poly *y = i < b->rank ? &b->extent[b->rank - 1 - i] : NULL;
        if (x && y && !is_one(*x) && !is_one(*y) && !ir_poly_equal(*x, *y)) return false;
        shape.extent[shape.rank - 1 - i] = x && (!y || !is_one(*x)) ? *x : y ? *y : ir_poly_int(job, 1);
    }
    *result = shape;
    return true;
}

/* Product of the extents in symbols, its fixed ones folded. */
static Poly count_elements(Job *job, const Graph *graph, const Shape *shape, bool *overflow) {
    Poly product = ir_poly_int(job, 1);
    for (uint32_t i = 0; i < shape->rank; i++) {
        product = ir_poly_mul(job, product, fold(job, graph, shape->extent[i], overflow), overflow);
    }
    return product;
}

/* Strides are products of extents too, along an empty dim as well: it counts as one of 1. */
void ir_graph_check_shape(Job *job, const Graph *graph, const Shape *shape, Place place) {
    bool overflow = false;
    Poly product = ir_poly_int(job, 1);
    for (uint32_t i = 0; i < shape->rank; i++) {
        int64_t extent;
        const Poly poly = fold(job, graph, shape->extent[i], &overflow);
        if (ir_poly_is_int(poly, &extent) && extent < 0)
            ir_stop_at(job, STATUS_REJECTED, place, "dim %u has the extent %lld: an extent is at least 0", i,
                       (long long)extent);
        if (poly.count) product = ir_poly_mul(job, product, poly, &overflow);
    }
    for (uint32_t t = 0; t < product.count; t++) overflow |= product.terms[t].coefficient >= IR_MAX_EXTENT;
    if (overflow) ir_stop_at(job, STATUS_REJECTED, place, "extents and their products must stay below 2^62");
}

bool ir_graph_size_fits(Job *job, const Graph *graph, Poly size) {
    bool overflow = false;
    (void)fold(job, graph, size, &overflow);
    return !overflow;
}

/* ---- constants, ops, casts ---- */

uint32_t ir_graph_const(Job *job, Graph *graph, DType dtype, double number, int64_t integer, Place place) {
    uint32_t id = ir_graph_add(job, graph, OP_CONST, dtype, place);
    Value *value = &graph->values.at[id];
    if (ir_dtype(dtype)->kind == KIND_FLOAT) {
        double rounded = ir_round(dtype, number);
        memcpy(&value->bits, &rounded, sizeof rounded);
    } else {
        value->bits = (uint64_t)ir_wrap_int(dtype, integer);
    }
    return id;
}

uint32_t ir_graph_cast(Job *job, Graph *graph, uint32_t arg, DType dtype, Place place) {
    uint32_t id = ir_graph_add(job, graph, OP_CAST, dtype, place);
    Value *value = &graph->values.at[id];
    value->arg_count = 1;
    value->arg[0] = arg;
    value->shape = graph->values.at[arg].shape;
    return id;
}

/* An operand in the dtype in which the op computes: integers among floats, bools among numbers and f32 among f64 get a
 * cast; storage dtypes widen by themselves. */
static uint32_t meet(Job *job, Graph *graph, uint32_t arg, DType dtype, Place place) {
    if (ir_compute_dtype(graph->values.at[arg].dtype) == dtype) return arg;
    return ir_graph_cast(job, graph, arg, dtype, place);
}

static _Noreturn void refuse_op(Job *job, const Graph *graph, Op op, const uint32_t *args, Place place) {
    Text text = ir_text(job);
    for (uint32_t i = 0; i < ir_op(op)->arity; i++) {
        ir_text_format(&text, "%s%s", i ? ", " : "", type_text(job, graph, args[i]));
    }
    const char *wanted = ir_op(op)->rule == RULE_WHERE ? "its condition must be bool, as in x > 0"
                                                       : "its operands must be bool, as in x > 0";
    ir_error(job, place, "%s cannot take these operands: %s", spelling(op), wanted);
    ir_note(job, place, "found %s", ir_text_string(&text));
    ir_stop(job, STATUS_REJECTED);
}

/* Shapes that would meet if fixed dims were numbers: says why they do not. */
static void note_equal_numbers(Job *job, const Graph *graph, const uint32_t *args, uint32_t arity, Place place) {
    Shape meeting = {0};
    bool overflow = false;
    for (uint32_t i = 0; i < arity; i++) {
        Shape numbers = graph->values.at[args[i]].shape;
        for (uint32_t k = 0; k < numbers.rank; k++) numbers.extent[k] = fold(job, graph, numbers.extent[k], &overflow);
        if (overflow || !ir_shape_broadcast(job, &meeting, &numbers, &meeting)) return;
    }
    ir_note(job, place, "the numbers are equal now, but -D may change a dim: write the same name, or reshape");
}

/* Where the dims of the small shape stand in the large one, side by side but not last; IR_NONE: nowhere. */
static uint32_t find_run(const Shape *small, const Shape *large) {
    for (uint32_t first = 0; small->rank > 0 && first + small->rank < large->rank; first++) {
        bool same = true;
        for (uint32_t d = 0; same && d < small->rank; d++)
            same = ir_poly_equal(small->extent[d], large->extent[first + d]);
        if (same) return first;
    }
    return IR_NONE;
}

/* A shape that would meet other dims of another's than the last: says that dims meet from the last. */
static void note_leading_dims(Job *job, const Graph *graph, const uint32_t *args, uint32_t arity, Place place) {
    for (uint32_t i = 0; i < arity; i++)
        for (uint32_t k = 0; k < arity; k++) {
            const Shape *small = &graph->values.at[args[i]].shape, *large = &graph->values.at[args[k]].shape;
            const uint32_t first = find_run(small, large);
            if (first == IR_NONE) continue;
            const char *name = graph->values.at[args[i]].name;
            Text index = ir_text(job);
            for (uint32_t d = first + small->rank; d < large->rank; d++) ir_text_put(&index, ", None");
            ir_note(job, place, "dims meet from the last one: %s[%s%s] meets %s%s", name ? name : "(...)",
                    small->rank == 1 ? ":" : "...", ir_text_string(&index),
                    first ? ir_format(job, "dim %u", first) : "the first",
                    name ? "" : ", as a reduction with keepdim=True does");
            return;
        }
}

uint32_t ir_graph_op(Job *job, Graph *graph, Op op, const uint32_t *args, Place place) {
    uint32_t arity = ir_op(op)->arity, used[3];
    DType operands[3], result;
    Shape shape = {0};
    for (uint32_t i = 0; i < arity; i++) {
        operands[i] = graph->values.at[args[i]].dtype;
        if (ir_shape_broadcast(job, &shape, &graph->values.at[args[i]].shape, &shape)) continue;
        ir_error(job, place, "shapes do not broadcast in %s: a dim meets only itself or 1", spelling(op));
        for (uint32_t k = 0; k < arity; k++) {
            ir_note(job, graph->values.at[args[k]].place, "this is %s", type_text(job, graph, args[k]));
        }
        note_leading_dims(job, graph, args, arity, place);
        note_equal_numbers(job, graph, args, arity, place);
        ir_stop(job, STATUS_REJECTED);
    }
    if (!ir_op_dtype(op, operands, &result)) refuse_op(job, graph, op, args, place);
    DType meeting = ir_op_operand_dtype(op, operands);
    for (uint32_t i = 0; i < arity; i++) {
        bool as_it_is = ir_op(op)->rule == RULE_TEST || (ir_op(op)->rule == RULE_WHERE && i == 0);
        used[i] = as_it_is ? args[i] : meet(job, graph, args[i], meeting, place);
    }
    ir_graph_check_shape(job, graph, &shape, place);
    uint32_t id = ir_graph_add(job, graph, op, result, place);
    Value *value = &graph->values.at[id];
    value->shape = shape;
    value->arg_count = (uint8_t)arity;
    memcpy(value->arg, used, arity * sizeof *used);
    return id;
}

uint32_t ir_graph_reduce(Job *job, Graph *graph, Reduction reduction, uint32_t arg, uint32_t dims, bool keepdim,
                         Place place) {
    DType dtype = ir_compute_dtype(graph->values.at[arg].dtype);
    bool logic = reduction == REDUCTION_ANY || reduction == REDUCTION_ALL;
    if (logic && dtype != DTYPE_BOOL) {
        ir_stop_at(job, STATUS_REJECTED, place, "%s takes bool, as in %s(x > 0), found %s",
                   ir_reduction(reduction)->language, ir_reduction(reduction)->language, type_text(job, graph, arg));
    }
    if (!logic && dtype == DTYPE_BOOL) {
        dtype = DTYPE_I64;
        arg = ir_graph_cast(job, graph, arg, dtype, place);
    }
    IR_REQUIRE(job, !(dims >> graph->values.at[arg].shape.rank));
    uint32_t id = ir_graph_add(job, graph, OP_REDUCE, dtype, place);
    Value *value = &graph->values.at[id];
    const Shape *from = &graph->values.at[arg].shape;
    value->arg_count = 1;
    value->arg[0] = arg;
    value->reduction = reduction;
    value->dims = dims;
    value->keepdim = keepdim;
    for (uint32_t i = 0; i < from->rank; i++) {
        bool consumed = dims >> i & 1;
        if (consumed && !keepdim) continue;
        value->shape.extent[value->shape.rank++] = consumed ? ir_poly_int(job, 1) : from->extent[i];
    }
    return id;
}

/* ---- index and reshape ---- */

/* Stops when the difference is known and negative. */
static void require_order(Job *job, const Graph *graph, Poly low, Poly high, Place place, const char *what) {
    bool overflow = false;
    int64_t gap;
    Poly difference = fold(job, graph, ir_poly_sub(job, high, low, &overflow), &overflow);
    if (overflow) ir_stop_at(job, STATUS_REJECTED, place, "an index must stay below 2^62");
    if (!ir_poly_is_int(difference, &gap) || gap >= 0) return;
    if (low.count == 0) ir_stop_at(job, STATUS_REJECTED, place, "%s: it is %s", what, poly_text(job, graph, high));
    ir_stop_at(job, STATUS_REJECTED, place, "%s: %s is above %s", what, poly_text(job, graph, low),
               poly_text(job, graph, high));
}

static void push_extent(Job *job, Shape *shape, Poly extent, Place place) {
    if (shape->rank == IR_MAX_RANK)
        ir_stop_at(job, STATUS_REJECTED, place, "a tensor has at most %d dims, found more", IR_MAX_RANK);
    shape->extent[shape->rank++] = extent;
}

/* Adds what an item leaves of a dim of this extent (of the new axis: nothing is read). */
static void apply_item(Job *job, const Graph *graph, const Item *item, Poly extent, Shape *shape, Place place) {
    bool overflow = false;
    Poly zero = ir_poly_int(job, 0), one = ir_poly_int(job, 1);
    switch (item->kind) {
    case ITEM_NEW_AXIS: push_extent(job, shape, one, place); break;
    case ITEM_RANGE:
        require_order(job, graph, zero, item->start, place, "a slice starts below 0");
        require_order(job, graph, item->stop, extent, place, "a slice ends beyond its dim");
        require_order(job, graph, item->start, item->stop, place, "a slice ends before it starts");
        push_extent(job, shape, ir_poly_sub(job, item->stop, item->start, &overflow), place);
        break;
    case ITEM_AT:
        require_order(job, graph, zero, item->start, place, "an index below 0");
        require_order(job, graph, item->start, ir_poly_sub(job, extent, one, &overflow), place,
                      "an index beyond its dim");
        break;
    case ITEM_GATHER: {
        const Value *index = &graph->values.at[item->index];
        if (ir_dtype(index->dtype)->kind != KIND_INT) {
            ir_stop_at(job, STATUS_REJECTED, place, "an index must be an integer tensor, found %s%s",
                       type_text(job, graph, item->index),
                       index->dtype == DTYPE_BOOL ? ": where(mask, x, 0) keeps the shape" : "");
        }
        for (uint32_t i = 0; i < index->shape.rank; i++) push_extent(job, shape, index->shape.extent[i], place);
        break;
    }
    }
    if (overflow) ir_stop_at(job, STATUS_REJECTED, place, "an index must stay below 2^62");
}

uint32_t ir_graph_index(Job *job, Graph *graph, uint32_t arg, const Item *items, uint32_t count, Place place) {
    Shape from = graph->values.at[arg].shape, shape = {0};
    uint32_t dim = 0, gathers = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool reads = items[i].kind != ITEM_NEW_AXIS;
        IR_REQUIRE(job, !reads || dim < from.rank);
        if (items[i].kind == ITEM_GATHER && gathers++) {
            ir_stop_at(job, STATUS_REJECTED, place, "an index takes one integer tensor, found more");
        }
        apply_item(job, graph, &items[i], reads ? from.extent[dim] : (Poly){0, NULL}, &shape, place);
        dim += reads;
    }
    IR_REQUIRE(job, dim == from.rank && count <= UINT8_MAX);
    ir_graph_check_shape(job, graph, &shape, place);
    Item *copy = IR_NEW_ARRAY(job, Item, count);
    if (count) memcpy(copy, items, count * sizeof *copy);
    uint32_t id = ir_graph_add(job, graph, OP_INDEX, graph->values.at[arg].dtype, place);
    Value *value = &graph->values.at[id];
    value->shape = shape;
    value->arg_count = 1;
    value->arg[0] = arg;
    value->items = copy;
    value->item_count = (uint8_t)count;
    return id;
}

uint32_t ir_graph_reshape(Job *job, Graph *graph, uint32_t arg, const Shape *shape, Place place) {
    bool overflow = false;
    Poly before = count_elements(job, graph, &graph->values.at[arg].shape, &overflow);
    Poly after = count_elements(job, graph, shape, &overflow);
    ir_graph_check_shape(job, graph, shape, place);
    IR_REQUIRE(job, !overflow);
    if (!ir_poly_equal(before, after)) {
        ir_error(job, place, "reshape changes the number of elements, from %s to %s", poly_text(job, graph, before),
                 poly_text(job, graph, after));
        ir_note(job, place, "the argument is %s", type_text(job, graph, arg));
        ir_stop(job, STATUS_REJECTED);
    }
    uint32_t id = ir_graph_add(job, graph, OP_RESHAPE, graph->values.at[arg].dtype, place);
    Value *value = &graph->values.at[id];
    value->shape = *shape;
    value->arg_count = 1;
    value->arg[0] = arg;
    return id;
}

Value ir_value_mapped(Job *job, const Value *value, const uint32_t *map) {
    Value copy = *value;
    for (uint32_t i = 0; i < value->arg_count; i++) copy.arg[i] = map[value->arg[i]];
    if (value->item_count) {
        copy.items = IR_NEW_ARRAY(job, Item, value->item_count);
        for (uint32_t i = 0; i < value->item_count; i++) {
            copy.items[i] = value->items[i];
            if (copy.items[i].kind == ITEM_GATHER) copy.items[i].index = map[copy.items[i].index];
        }
    }
    if (value->op != OP_COMPOSITE) return copy;
    copy.call = IR_NEW(job, Call);
    *copy.call = *value->call;
    copy.call->args = IR_NEW_ARRAY(job, Arg, value->call->count);
    for (uint32_t i = 0; i < value->call->count; i++) {
        copy.call->args[i] = value->call->args[i];
        if (copy.call->args[i].kind == ARG_VALUE) copy.call->args[i].value = map[copy.call->args[i].value];
    }
    return copy;
}

bool ir_tensor_make_contiguous(Job *job, Tensor *tensor) {
    bool overflow = false;
    Poly stride = ir_poly_int(job, 1);
    for (uint32_t i = tensor->shape.rank; i-- > 0;) {
        tensor->stride[i] = stride;
        stride = ir_poly_mul(job, stride, tensor->shape.extent[i], &overflow);
    }
    tensor->contiguous = true;
    return !overflow;
}

uint32_t ir_value_operand_count(const Value *value) {
    return value->op == OP_COMPOSITE ? value->call->count : value->arg_count + (uint32_t)value->item_count;
}

uint32_t ir_value_operand(const Value *value, uint32_t index) {
    if (value->op == OP_COMPOSITE)
        return value->call->args[index].kind == ARG_VALUE ? value->call->args[index].value : IR_NONE;
    if (index < value->arg_count) return value->arg[index];
    const Item *item = &value->items[index - value->arg_count];
    return item->kind == ITEM_GATHER ? item->index : IR_NONE;
}

bool ir_value_uses(const Value *value, uint32_t id) {
    for (uint32_t i = 0; i < ir_value_operand_count(value); i++)
        if (ir_value_operand(value, i) == id) return true;
    return false;
}

uint32_t ir_gather_index(const Value *value) {
    for (uint32_t i = 0; value->op == OP_INDEX && i < value->item_count; i++)
        if (value->items[i].kind == ITEM_GATHER) return value->items[i].index;
    return IR_NONE;
}

bool ir_item_takes_all(const Item *item, Poly extent) {
    return item->kind == ITEM_RANGE && !item->start.count && ir_poly_equal(item->stop, extent);
}

void ir_value_mark_args(const Value *value, bool *marks) {
    for (uint32_t i = 0; i < ir_value_operand_count(value); i++) {
        const uint32_t id = ir_value_operand(value, i);
        if (id != IR_NONE) marks[id] = true;
    }
}

uint32_t ir_graph_behind_views(const Graph *graph, uint32_t id) {
    while (graph->values.at[id].op == OP_INDEX || graph->values.at[id].op == OP_RESHAPE)
        id = graph->values.at[id].arg[0];
    return id;
}

uint32_t ir_tensor_find(const Tensor *tensors, uint32_t count, const char *name) {
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(tensors[i].name, name) == 0) return i;
    return IR_NONE;
}

/* As near to it as the dim allows, from below where there is one. */
static int64_t allowed(const Dim *dim, int64_t extent) {
    if (dim->max >= 0 && extent > dim->max) extent = dim->max;
    if (extent > 0 && extent < dim->multiple && (dim->max < 0 || dim->multiple <= dim->max)) extent = dim->multiple;
    return extent - extent % dim->multiple;
}

int64_t ir_dim_most(const Dim *dim) {
    if (dim->value >= 0) return dim->value;
    return dim->max >= 0 ? allowed(dim, dim->max) : -1;
}

int64_t ir_dim_hint(const Dim *dim) {
    return dim->value < 0 && dim->hint >= 0 ? allowed(dim, dim->hint) : ir_dim_most(dim);
}

int64_t ir_dim_guess(const Dim *dim) {
    const int64_t hint = ir_dim_hint(dim);
    return hint >= 0 ? hint : allowed(dim, 1024);
}

Multiples ir_dim_multiples(Job *job, const Dim *dims, uint32_t count) {
    int64_t *multiples = IR_NEW_ARRAY(job, int64_t, count + (size_t)1);
    for (uint32_t d = 0; d < count; d++) multiples[d] = dims[d].value >= 0 ? dims[d].value : dims[d].multiple;
    return (Multiples){multiples, count};
}

/* ---- disjoint slices ---- */

/* low <= high for every value of the dims? Any dims are at least 0, so a polynomial without negative coefficients is.
 */
static bool never_above(Job *job, const Graph *graph, Poly low, Poly high) {
    bool overflow = false;
    Poly gap = fold(job, graph, ir_poly_sub(job, high, low, &overflow), &overflow);
    for (uint32_t i = 0; i < gap.count; i++) {
        if (gap.terms[i].coefficient < 0) return false;
    }
    return !overflow;
}

static bool item_range(Job *job, const Item *item, Poly *start, Poly *stop) {
    bool overflow = false;
    if (item->kind == ITEM_GATHER) return false;
    *start = item->start;
    *stop = item->kind == ITEM_RANGE ? item->stop : ir_poly_add(job, item->start, ir_poly_int(job, 1), &overflow);
    return !overflow;
}

bool ir_items_disjoint(Job *job, const Graph *graph, const Item *a, const Item *b, uint32_t count) {
    for (uint32_t i = 0, j = 0; i < count && j < count; i++, j++) {
        while (i < count && a[i].kind == ITEM_NEW_AXIS) i++;
        while (j < count && b[j].kind == ITEM_NEW_AXIS) j++;
        if (i == count || j == count) return false;
        Poly a_start, a_stop, b_start, b_stop;
        if (!item_range(job, &a[i], &a_start, &a_stop) || !item_range(job, &b[j], &b_start, &b_stop)) continue;
        if (never_above(job, graph, a_stop, b_start) || never_above(job, graph, b_stop, a_start)) return true;
    }
    return false;
}

static bool uses_any_dim(const Graph *graph, Poly poly) {
    for (uint32_t t = 0; t < poly.count; t++)
        for (int d = 0; d < IR_MAX_DEGREE && poly.terms[t].symbol[d] != IR_NO_SYMBOL; d++)
            if (graph->dims.at[poly.terms[t].symbol[d]].value < 0) return true;
    return false;
}

/* Whether any dims decide that a slice or an index stays in its extent: ends that move, or an extent that does. */
static bool slice_moves(const Graph *graph, const Value *value) {
    const Shape *from = &graph->values.at[value->arg[0]].shape;
    uint32_t d = 0;
    for (uint32_t i = 0; i < value->item_count; i++) {
        const Item *item = &value->items[i];
        if (item->kind == ITEM_NEW_AXIS) continue;
        const Poly extent = from->extent[d++];
        if (item->kind == ITEM_AT && (uses_any_dim(graph, item->start) || uses_any_dim(graph, extent))) return true;
        if (item->kind != ITEM_RANGE || (!item->start.count && ir_poly_equal(item->stop, extent))) continue;
        if (uses_any_dim(graph, item->start) || uses_any_dim(graph, item->stop) || uses_any_dim(graph, extent))
            return true;
    }
    return false;
}

bool ir_size_is_positive(const Graph *graph, Poly size) {
    bool some = false;
    for (uint32_t t = 0; t < size.count; t++) {
        bool fixed = true;
        if (size.terms[t].coefficient < 0) return false;
        for (uint32_t d = 0; d < IR_MAX_DEGREE && size.terms[t].symbol[d] != IR_NO_SYMBOL; d++)
            fixed &= graph->dims.at[size.terms[t].symbol[d]].value > 0;
        some |= fixed;
    }
    return some;
}

bool ir_value_needs_check(const Graph *graph, const Value *value) {
    if (value->op == OP_INDEX) return slice_moves(graph, value);
    if (value->op != OP_REDUCE) return false;
    if (value->reduction != REDUCTION_MAX && value->reduction != REDUCTION_MIN) return false;
    const Shape *from = &graph->values.at[value->arg[0]].shape;
    for (uint32_t d = 0; d < from->rank; d++)
        if ((value->dims >> d & 1) && !ir_size_is_positive(graph, from->extent[d])) return true;
    return false;
}
