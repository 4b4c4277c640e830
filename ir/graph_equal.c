/* In: two Graphs. Out: whether they are equal, but for places, origins and the names of inner values; or whether they
 * say the same, which the order of values and expressions that are written twice leave alone. */
#include "ir/graph_write.h"

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

/* ---- the same, in any order ---- */

/* Values of two graphs, each once: what an operand names is the first value that was equal to it. */
typedef struct Classes {
    Job *job;
    const Graph *graph; /* whose symbols all sizes are in */
    Value *values;
    uint32_t *next; /* of the same bucket, IR_NONE at the end */
    uint32_t *buckets;
    uint32_t count, mask;
} Classes;

/* What is translated: sizes into the symbols of the first graph, operands into classes. */
typedef struct Translation {
    Classes *classes;
    const Graph *graph;
    uint32_t *symbols; /* of the first graph; beyond its dims: it has none like it */
    uint32_t *class_of;
    bool plain; /* symbols stay what they are */
} Translation;

static void match_symbols(Translation *t) {
    const Graph *to = t->classes->graph;
    t->symbols = IR_NEW_ARRAY(t->classes->job, uint32_t, t->graph->dims.count);
    t->plain = true;
    for (uint32_t i = 0; i < t->graph->dims.count; i++) {
        uint32_t k = i;
        if (k >= to->dims.count || !same_dim(&to->dims.at[k], &t->graph->dims.at[i]))
            for (k = 0; k < to->dims.count && !same_dim(&to->dims.at[k], &t->graph->dims.at[i]);) k++;
        t->symbols[i] = k < to->dims.count ? k : to->dims.count + i;
        t->plain = t->plain && k == i;
    }
}

static Poly translate_size(Translation *t, Poly size) {
    if (t->plain) return size;
    Job *job = t->classes->job;
    bool overflow = false; /* never: the coefficients stay */
    Poly sum = {0, NULL};
    for (uint32_t i = 0; i < size.count; i++) {
        Poly product = ir_poly_int(job, size.terms[i].coefficient);
        for (uint32_t k = 0; k < IR_MAX_DEGREE && size.terms[i].symbol[k] != IR_NO_SYMBOL; k++) {
            Poly symbol = ir_poly_symbol(job, t->symbols[size.terms[i].symbol[k]]);
            product = ir_poly_mul(job, product, symbol, &overflow);
        }
        product = ir_poly_over(job, product, size.terms[i].divisor, &overflow);
        sum = ir_poly_add(job, sum, product, &overflow);
    }
    return sum;
}

static void translate_sizes(Translation *t, Poly *sizes, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) sizes[i] = translate_size(t, sizes[i]);
}

static Item *translate_items(Translation *t, const Item *items, uint32_t count) {
    Item *copy = IR_NEW_ARRAY(t->classes->job, Item, count);
    for (uint32_t i = 0; i < count; i++) {
        copy[i] = items[i];
        copy[i].start = translate_size(t, items[i].start);
        copy[i].stop = translate_size(t, items[i].stop);
        if (items[i].kind == ITEM_GATHER) copy[i].index = t->class_of[items[i].index];
    }
    return copy;
}

static Arg translate_arg(Translation *t, const Arg *arg) {
    Arg copy = *arg;
    if (arg->kind == ARG_VALUE) copy.value = t->class_of[arg->value];
    if (arg->kind == ARG_SIZE) copy.size = translate_size(t, arg->size);
    if (arg->kind != ARG_OP && arg->kind != ARG_LIST) return copy;
    Arg *item = IR_NEW_ARRAY(t->classes->job, Arg, arg->count);
    for (uint32_t i = 0; i < arg->count; i++) item[i] = translate_arg(t, &arg->item[i]);
    copy.item = item;
    return copy;
}

static Value translate_value(Translation *t, const Value *value) {
    Value copy = *value;
    translate_sizes(t, copy.shape.extent, copy.shape.rank);
    for (uint32_t i = 0; i < value->arg_count; i++) copy.arg[i] = t->class_of[value->arg[i]];
    if (value->op == OP_SIZE || value->op == OP_IOTA) copy.size = translate_size(t, value->size);
    if (value->op == OP_INDEX) copy.items = translate_items(t, value->items, value->item_count);
    if (value->op == OP_COMPOSITE) {
        copy.call = IR_NEW(t->classes->job, Call);
        *copy.call = *value->call;
        copy.call->args = IR_NEW_ARRAY(t->classes->job, Arg, value->call->count);
        for (uint32_t i = 0; i < value->call->count; i++) copy.call->args[i] = translate_arg(t, &value->call->args[i]);
    }
    return copy;
}

/* Equal values have equal hashes; what is left out of them only makes buckets longer. */
static uint32_t hash_value(const Value *value) {
    const uint64_t own = value->op == OP_CONST                             ? value->bits
                         : value->op == OP_INPUT || value->op == OP_SCALAR ? value->tensor
                         : value->op == OP_REDUCE                          ? value->dims
                                                                           : 0;
    const uint64_t words[] = {value->op, value->dtype, own};
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) hash = (hash ^ words[i]) * 1099511628211u;
    for (uint32_t i = 0; i < value->arg_count; i++) hash = (hash ^ value->arg[i]) * 1099511628211u;
    for (uint32_t i = 0; value->op == OP_COMPOSITE && i < value->call->count; i++)
        if (value->call->args[i].kind == ARG_VALUE) hash = (hash ^ value->call->args[i].value) * 1099511628211u;
    return (uint32_t)(hash ^ hash >> 32);
}

static uint32_t class_of(Classes *classes, const Value *value) {
    uint32_t *bucket = &classes->buckets[hash_value(value) & classes->mask];
    for (uint32_t i = *bucket; i != IR_NONE; i = classes->next[i])
        if (same_value(&classes->values[i], value)) return i;
    classes->values[classes->count] = *value;
    classes->next[classes->count] = *bucket;
    return *bucket = classes->count++;
}

static Translation translate(Classes *classes, const Graph *graph) {
    Translation t = {.classes = classes, .graph = graph};
    match_symbols(&t);
    t.class_of = IR_NEW_ARRAY(classes->job, uint32_t, graph->values.count);
    for (uint32_t i = 0; i < graph->values.count; i++) {
        Value value = translate_value(&t, &graph->values.at[i]);
        t.class_of[i] = class_of(classes, &value);
    }
    return t;
}

static Tensor translate_tensor(Translation *t, const Tensor *tensor, bool output) {
    Tensor copy = *tensor;
    translate_sizes(t, copy.shape.extent, copy.shape.rank);
    translate_sizes(t, copy.stride, copy.shape.rank);
    copy.value = output ? t->class_of[tensor->value] : IR_NONE;
    if (tensor->inplace_items)
        copy.inplace_items = translate_items(t, tensor->inplace_items, tensor->inplace_item_count);
    return copy;
}

static bool same_tensors(Translation *a, const Tensor *of_a, Translation *b, const Tensor *of_b, uint32_t count,
                         bool outputs) {
    bool same = true;
    for (uint32_t i = 0; same && i < count; i++) {
        Tensor left = translate_tensor(a, &of_a[i], outputs), right = translate_tensor(b, &of_b[i], outputs);
        same = same_tensor(&left, &right);
    }
    return same;
}

/* Dims that the files declare, which come first. */
static uint32_t declared(const Graph *graph) {
    uint32_t count = 0;
    while (count < graph->dims.count && !graph->dims.at[count].derived) count++;
    return count;
}

bool ir_graph_same(Job *job, const Graph *a, const Graph *b) {
    bool same = same_text(a->name, b->name) && declared(a) == declared(b);
    for (uint32_t i = 0; same && i < declared(a); i++) same = same_dim(&a->dims.at[i], &b->dims.at[i]);
    same = same && a->inputs.count == b->inputs.count && a->scalars.count == b->scalars.count;
    if (!same || a->outputs.count != b->outputs.count) return false;
    const size_t most = (size_t)a->values.count + b->values.count;
    Classes classes = {.job = job, .graph = a, .mask = 1};
    while (classes.mask < most) classes.mask = classes.mask * 2 + 1;
    classes.values = IR_NEW_ARRAY(job, Value, most);
    classes.next = IR_NEW_ARRAY(job, uint32_t, most);
    classes.buckets = IR_NEW_ARRAY(job, uint32_t, (size_t)classes.mask + 1);
    memset(classes.buckets, 0xff, ((size_t)classes.mask + 1) * sizeof *classes.buckets);
    Translation of_a = translate(&classes, a), of_b = translate(&classes, b);
    return same_tensors(&of_a, a->inputs.at, &of_b, b->inputs.at, a->inputs.count, false) &&
           same_tensors(&of_a, a->scalars.at, &of_b, b->scalars.at, a->scalars.count, false) &&
           same_tensors(&of_a, a->outputs.at, &of_b, b->outputs.at, a->outputs.count, true);
}
