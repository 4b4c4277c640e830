/* simplify: Graph -> a new Graph that says the same with less.
 *
 * needs   nothing; calls of composites are compared as calls
 * gives   constants folded in their value's own dtype, by ops whose error is half an ulp or none (gen/fold.c); one
 *         value for equal ones; x*1, x/1, x-0, x+(-0), x**1, c&True, c|False, casts, reshapes and indices that change
 *         nothing, and where with a condition that is known gone; dead values gone, inputs and scalars kept. Names,
 *         places and origins stay
 * breaks  nothing. No rounding cast is moved or dropped, no x/s becomes x*(1/s), no x+0 becomes x (-0 + 0 is 0) */
#include "gen/fold.h"
#include "gen/gen.h"

#include <string.h>

typedef struct Simplify {
    Job *job;
    const Graph *from;
    Graph *to;
    uint32_t *id;         /* of from->values: the value of `to` that stands for it */
    uint32_t *bucket;     /* hash -> the last value of `to` with it, or IR_NONE */
    uint32_t *chained;    /* of to->values: the one before it in its bucket */
    const int64_t *fixed; /* NULL: sizes stay, whatever the dims are */
} Simplify;

#define BUCKETS 1024

static bool equal_shapes(const Shape *a, const Shape *b) {
    if (a->rank != b->rank) return false;
    for (uint8_t d = 0; d < a->rank; d++)
        if (!ir_poly_equal(a->extent[d], b->extent[d])) return false;
    return true;
}

static bool equal_items(const Value *a, const Value *b) {
    if (a->item_count != b->item_count) return false;
    for (uint32_t i = 0; i < a->item_count; i++) {
        const Item *x = &a->items[i], *y = &b->items[i];
        if (x->kind != y->kind) return false;
        if (x->kind == ITEM_GATHER && x->index != y->index) return false;
        if ((x->kind == ITEM_RANGE || x->kind == ITEM_AT) && !ir_poly_equal(x->start, y->start)) return false;
        if (x->kind == ITEM_RANGE && !ir_poly_equal(x->stop, y->stop)) return false;
    }
    return true;
}

static bool equal_values(const Value *a, const Value *b) {
    return a->op == b->op && a->dtype == b->dtype && a->arg_count == b->arg_count &&
           !memcmp(a->arg, b->arg, a->arg_count * sizeof *a->arg) && a->bits == b->bits && a->tensor == b->tensor &&
           a->reduction == b->reduction && a->dims == b->dims && a->keepdim == b->keepdim &&
           ir_poly_equal(a->size, b->size) && equal_shapes(&a->shape, &b->shape) &&
           (a->op != OP_COMPOSITE || ir_call_equal(a->call, b->call)) && equal_items(a, b);
}

static uint32_t hash_value(const Value *value) {
    uint64_t hash = (uint64_t)value->op * 31 + (uint64_t)value->dtype;
    for (uint32_t i = 0; i < value->arg_count; i++) hash = hash * 1000003 + value->arg[i];
    hash = hash * 1000003 + value->bits + value->tensor + value->dims * 7 + value->keepdim;
    return (uint32_t)((hash ^ hash >> 17 ^ hash >> 40) % BUCKETS);
}

static uint32_t add(Simplify *simplify, const Value *value) {
    uint32_t *bucket = &simplify->bucket[hash_value(value)];
    for (uint32_t i = *bucket; i != IR_NONE; i = simplify->chained[i]) {
        Value *there = &simplify->to->values.at[i];
        if (!equal_values(there, value)) continue;
        if (!there->name) there->name = value->name;
        return i;
    }
    uint32_t id = simplify->to->values.count;
    *IR_PUSH(simplify->job, &simplify->to->values) = *value;
    simplify->chained[id] = *bucket;
    *bucket = id;
    return id;
}

/* ---- values that are another value ---- */

static bool is_number(const Graph *graph, uint32_t id, double number) {
    const Value *value = &graph->values.at[id];
    uint64_t bits; /* compared, so that 0 is not -0 */
    if (value->op != OP_CONST) return false;
    if (ir_dtype(value->dtype)->kind != KIND_FLOAT) return (double)(int64_t)value->bits == number;
    memcpy(&bits, &number, sizeof bits);
    return value->bits == bits;
}

static bool is_float(const Value *value) { return ir_dtype(value->dtype)->kind == KIND_FLOAT; }

typedef enum Truth { TRUTH_FALSE, TRUTH_TRUE, TRUTH_OPEN } Truth;

static Truth truth_of(const Graph *graph, uint32_t id) {
    const Value *value = &graph->values.at[id];
    return value->op != OP_CONST || is_float(value) ? TRUTH_OPEN : value->bits ? TRUTH_TRUE : TRUTH_FALSE;
}

/* Of a condition, one side of which may settle it. */
static Truth condition_of(const Graph *graph, uint32_t id) {
    const Value *value = &graph->values.at[id];
    if (value->op != OP_AND && value->op != OP_OR) return truth_of(graph, id);
    const Truth settles = value->op == OP_AND ? TRUTH_FALSE : TRUTH_TRUE;
    const bool settled = truth_of(graph, value->arg[0]) == settles || truth_of(graph, value->arg[1]) == settles;
    return settled ? settles : TRUTH_OPEN;
}

/* The argument that an arithmetic op returns unchanged for every value of it, NaN and -0 included, or IR_NONE. */
static uint32_t neutral(const Graph *graph, const Value *value) {
    uint32_t a = value->arg[0], b = value->arg[1];
    switch (value->op) {
    case OP_MUL: return is_number(graph, b, 1) ? a : is_number(graph, a, 1) ? b : IR_NONE;
    case OP_DIV:
    case OP_POW: return is_number(graph, b, 1) ? a : IR_NONE;
    case OP_SUB: return is_number(graph, b, 0.0) ? a : IR_NONE;
    case OP_ADD:
        if (is_float(value)) return is_number(graph, b, -0.0) ? a : is_number(graph, a, -0.0) ? b : IR_NONE;
        return is_number(graph, b, 0) ? a : is_number(graph, a, 0) ? b : IR_NONE;
    case OP_AND:
    case OP_OR: {
        const Truth changes_nothing = value->op == OP_AND ? TRUTH_TRUE : TRUTH_FALSE;
        return truth_of(graph, b) == changes_nothing ? a : truth_of(graph, a) == changes_nothing ? b : IR_NONE;
    }
    case OP_WHERE: {
        const Truth condition = condition_of(graph, a);
        return condition == TRUTH_OPEN ? IR_NONE : condition == TRUTH_TRUE ? b : value->arg[2];
    }
    default: return IR_NONE;
    }
}

static bool selects_all(Simplify *simplify, const Value *value) {
    const Shape *arg = &simplify->to->values.at[value->arg[0]].shape;
    if (value->item_count != arg->rank) return false;
    for (uint32_t d = 0; d < arg->rank; d++)
        if (!ir_item_takes_all(&value->items[d], arg->extent[d])) return false;
    return true;
}

/* The value of `to` that this one equals at every element, dtype and shape included, or IR_NONE. */
static uint32_t same_as(Simplify *simplify, const Value *value) {
    const Graph *graph = simplify->to;
    uint32_t id = IR_NONE;
    switch (value->op) {
    case OP_CAST:
    case OP_RESHAPE: id = value->arg[0]; break;
    case OP_INDEX: id = selects_all(simplify, value) ? value->arg[0] : IR_NONE; break;
    default: id = value->op < OP_PRIMITIVES ? neutral(graph, value) : IR_NONE;
    }
    if (id == IR_NONE || graph->values.at[id].dtype != value->dtype) return IR_NONE;
    return equal_shapes(&graph->values.at[id].shape, &value->shape) ? id : IR_NONE;
}

/* ---- the walk ---- */

static bool fold_size(Simplify *simplify, Value *value) {
    bool overflow = false;
    int64_t number;
    Poly folded = ir_poly_fold(simplify->job, value->size, simplify->fixed, simplify->from->dims.count, &overflow);
    if (overflow || !ir_poly_is_int(folded, &number)) return false;
    value->op = OP_CONST;
    value->bits = (uint64_t)number;
    value->size = (Poly){0};
    return true;
}

static uint32_t simplify_value(Simplify *simplify, const Value *old) {
    Value value = ir_value_mapped(simplify->job, old, simplify->id);
    for (uint32_t i = value.arg_count; i < 3; i++) value.arg[i] = 0;
    if (value.op != OP_SIZE)
        gen_fold(simplify->to, &value);
    else if (simplify->fixed)
        fold_size(simplify, &value);
    uint32_t same = same_as(simplify, &value);
    if (same == IR_NONE) return add(simplify, &value);
    Value *there = &simplify->to->values.at[same];
    if (!there->name && there->op != OP_CONST) there->name = value.name;
    return same;
}

/* Values that no output needs go; inputs and scalars stay, in their order. */
static void drop_dead(Simplify *simplify) {
    Graph *graph = simplify->to;
    const uint32_t count = graph->values.count;
    bool *live = IR_NEW_ARRAY(simplify->job, bool, count + 1);
    uint32_t *id = IR_NEW_ARRAY(simplify->job, uint32_t, count + 1);
    for (uint32_t i = 0; i < graph->outputs.count; i++) live[graph->outputs.at[i].value] = true;
    for (uint32_t i = count; i-- > 0;) {
        const Value *value = &graph->values.at[i];
        if (value->op == OP_INPUT || value->op == OP_SCALAR) live[i] = true;
        if (live[i]) ir_value_mark_args(value, live);
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        id[i] = live[i] ? kept : IR_NONE;
        if (!live[i]) continue;
        graph->values.at[kept++] = ir_value_mapped(simplify->job, &graph->values.at[i], id);
    }
    graph->values.count = kept;
    for (uint32_t i = 0; i < graph->outputs.count; i++) graph->outputs.at[i].value = id[graph->outputs.at[i].value];
    for (uint32_t i = 0; i < simplify->from->values.count; i++) simplify->id[i] = id[simplify->id[i]];
}

Graph *gen_simplified(Job *job, const Graph *from, bool sizes, uint32_t **id, uint32_t **stands_for) {
    Simplify simplify = {.job = job, .from = from, .to = ir_graph_create(job, from->name)};
    uint32_t count = from->values.count;
    simplify.fixed = sizes ? ir_graph_fixed(job, from) : NULL;
    simplify.id = IR_NEW_ARRAY(job, uint32_t, count + 1);
    simplify.chained = IR_NEW_ARRAY(job, uint32_t, count + 1);
    simplify.bucket = IR_NEW_ARRAY(job, uint32_t, BUCKETS);
    for (uint32_t i = 0; i < BUCKETS; i++) simplify.bucket[i] = IR_NONE;
    for (uint32_t i = 0; i < from->dims.count; i++) *IR_PUSH(job, &simplify.to->dims) = from->dims.at[i];
    for (uint32_t i = 0; i < from->inputs.count; i++) *IR_PUSH(job, &simplify.to->inputs) = from->inputs.at[i];
    for (uint32_t i = 0; i < from->scalars.count; i++) *IR_PUSH(job, &simplify.to->scalars) = from->scalars.at[i];
    for (uint32_t i = 0; i < count; i++) simplify.id[i] = simplify_value(&simplify, &from->values.at[i]);
    for (uint32_t i = 0; i < from->outputs.count; i++) {
        Tensor *output = IR_PUSH(job, &simplify.to->outputs);
        *output = from->outputs.at[i];
        output->value = simplify.id[output->value];
    }
    *stands_for = IR_NEW_ARRAY(job, uint32_t, count + 1);
    for (uint32_t i = 0; i < count; i++) (*stands_for)[i] = simplify.to->values.at[simplify.id[i]].origin;
    drop_dead(&simplify);
    *id = simplify.id;
    return simplify.to;
}

void gen_simplify(Job *job, Unit *unit) {
    uint32_t *id;
    unit->graph = gen_simplified(job, unit->graph, true, &id, &unit->stands_for);
}
