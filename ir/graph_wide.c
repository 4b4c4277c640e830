/* In: a Graph. Out: a new one in f64, as the header says. Left alone: shapes, integers, bools, names and places. */
#include "ir/graph_wide.h"

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
    to->inplace = IR_NONE;
    to->inplace_items = NULL;
    to->inplace_item_count = 0;
}

/* Whether it computes in f64 in the copy: a call of numbers and integers alone stays in f32. */
static bool is_wide(const Widening *widening, const Value *value) {
    if (value->op != OP_COMPOSITE) return true;
    for (uint32_t i = 0; i < ir_value_operand_count(value); i++) {
        const uint32_t id = ir_value_operand(value, i);
        if (id != IR_NONE && is_float(widening->from->values.at[id].dtype)) return true;
    }
    return false;
}

static uint32_t widen_value(const Widening *widening, const Value *value) {
    const bool wide = is_wide(widening, value);
    Value copy = ir_value_mapped(widening->job, value, widening->map);
    if (value->op == OP_CAST && is_float(value->dtype) && is_float(widening->from->values.at[value->arg[0]].dtype))
        return copy.arg[0];
    if (wide) copy.dtype = widen_dtype(value->dtype);
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
