/* In: a Graph. Out: a new one in f64, as the header says. Left alone: shapes, integers, bools, names and places. */
#include "ir/graph_wide.h"

#include <string.h>

typedef struct Widening {
    Job *job;
    const Graph *from;
    Graph *to;
    uint32_t *map; /* of ids */
} Widening;

static bool is_float(DType dtype) { return ir_dtype(dtype)->kind == KIND_FLOAT; }
static DType widen_dtype(DType dtype) { return is_float(dtype) ? DTYPE_F64 : dtype; }

static void copy_tensor(Tensor *to, const Tensor *from) {
    *to = *from;
    to->dtype = widen_dtype(from->dtype);
    to->accumulate = false;
}

static Arg widen_arg(const Widening *widening, const Arg *arg) {
    Arg copy = *arg;
    if (arg->kind == ARG_VALUE) copy.value = widening->map[arg->value];
    if ((arg->kind != ARG_OP && arg->kind != ARG_LIST) || !arg->count) return copy;
    Arg *items = IR_NEW_ARRAY(widening->job, Arg, arg->count);
    for (uint32_t i = 0; i < arg->count; i++) items[i] = widen_arg(widening, &arg->item[i]);
    copy.item = items;
    return copy;
}

/* The copied call; whether one of its tensors is a float, without which it computes in f32. */
static Call *widen_call(const Widening *widening, const Call *call, bool *wide) {
    Call *copy = IR_NEW(widening->job, Call);
    *copy = *call;
    copy->args = IR_NEW_ARRAY(widening->job, Arg, call->count);
    for (uint32_t i = 0; i < call->count; i++) {
        copy->args[i] = widen_arg(widening, &call->args[i]);
        *wide |= call->args[i].kind == ARG_VALUE && is_float(widening->from->values.at[call->args[i].value].dtype);
    }
    return copy;
}

static Item *widen_items(const Widening *widening, const Value *value) {
    Item *items = IR_NEW_ARRAY(widening->job, Item, value->item_count);
    for (uint32_t i = 0; i < value->item_count; i++) {
        items[i] = value->items[i];
        if (items[i].kind == ITEM_GATHER) items[i].index = widening->map[items[i].index];
    }
    return items;
}

static uint32_t widen_value(const Widening *widening, const Value *value) {
    bool wide = value->op != OP_COMPOSITE;
    Value copy = *value;
    copy.dtype = widen_dtype(value->dtype);
    for (uint32_t k = 0; k < value->arg_count; k++) copy.arg[k] = widening->map[value->arg[k]];
    if (value->op == OP_CAST && is_float(value->dtype) && is_float(widening->from->values.at[value->arg[0]].dtype))
        return copy.arg[0];
    if (value->op == OP_COMPOSITE) copy.call = widen_call(widening, value->call, &wide);
    if (value->op == OP_INDEX) copy.items = widen_items(widening, value);
    if (!wide) copy.dtype = value->dtype;
    const uint32_t id = ir_graph_add(widening->job, widening->to, value->op, copy.dtype, value->place);
    widening->to->values.at[id] = copy;
    if (!wide && is_float(value->dtype)) return ir_graph_cast(widening->job, widening->to, id, DTYPE_F64, value->place);
    return id;
}

Graph *ir_graph_widen(Job *job, const Graph *graph) {
    Widening widening = {job, graph, ir_graph_create(job, graph->name),
                         IR_NEW_ARRAY(job, uint32_t, graph->values.count + (size_t)1)};
    Graph *to = widening.to;
    for (uint32_t i = 0; i < graph->dims.count; i++) *IR_PUSH(job, &to->dims) = graph->dims.at[i];
    for (uint32_t i = 0; i < graph->inputs.count; i++) copy_tensor(IR_PUSH(job, &to->inputs), &graph->inputs.at[i]);
    for (uint32_t i = 0; i < graph->scalars.count; i++) copy_tensor(IR_PUSH(job, &to->scalars), &graph->scalars.at[i]);
    for (uint32_t i = 0; i < graph->values.count; i++) widening.map[i] = widen_value(&widening, &graph->values.at[i]);
    for (uint32_t i = 0; i < graph->outputs.count; i++) {
        Tensor *output = IR_PUSH(job, &to->outputs);
        copy_tensor(output, &graph->outputs.at[i]);
        output->value = widening.map[output->value];
    }
    return to;
}
