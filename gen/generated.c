/* What the language has and the later passes do not generate yet: refused with STATUS_UNAVAILABLE at its place, after
 * all of it was parsed and typed. */
#include "gen/gen.h"

static _Noreturn void refuse(Job *job, Place place, const char *what) {
    ir_stop_at(job, STATUS_UNAVAILABLE, place, "not generated yet: %s", what);
}

static bool is_data(DType dtype) { return dtype == DTYPE_F32 || dtype == DTYPE_F16 || dtype == DTYPE_BF16; }

static void check_tensor(Job *job, const Graph *graph, const Tensor *tensor) {
    int64_t number;
    bool overflow = false;
    if (!is_data(tensor->dtype))
        refuse(job, tensor->place, ir_format(job, "tensors of %s", ir_dtype(tensor->dtype)->name));
    if (tensor->accumulate) refuse(job, tensor->place, "accumulate");
    if (tensor->contiguous) return;
    const int64_t *fixed = ir_graph_fixed(job, graph);
    for (uint32_t i = 0; i < tensor->shape.rank; i++) {
        Poly stride = ir_poly_fold(job, tensor->stride[i], fixed, graph->dims.count, &overflow);
        if (!ir_poly_is_int(stride, &number) && tensor->inplace == IR_NONE)
            refuse(job, tensor->place, "strides that are known at launch only");
    }
}

static void check_value(Job *job, const Graph *graph, const Value *value) {
    DType dtype = value->dtype;
    if (dtype != DTYPE_I64 && dtype != DTYPE_BOOL && !is_data(dtype))
        refuse(job, value->place, ir_format(job, "values of %s", ir_dtype(dtype)->name));
    for (uint32_t i = 0; value->op == OP_INDEX && i < value->item_count; i++)
        if (value->items[i].kind == ITEM_GATHER) refuse(job, value->place, "an index by a tensor");
    if (value->op != OP_CAST || ir_dtype(dtype)->kind == KIND_FLOAT) return;
    if (ir_dtype(graph->values.at[value->arg[0]].dtype)->kind == KIND_FLOAT)
        refuse(job, value->place, "casts from float to integers and bools");
}

void gen_check_generated(Job *job, const Graph *graph) {
    for (uint32_t i = 0; i < graph->inputs.count; i++) {
        check_tensor(job, graph, &graph->inputs.at[i]);
        if (graph->inputs.at[i].shape.rank == 0)
            refuse(job, graph->inputs.at[i].place, "inputs of one element, read on the device");
    }
    for (uint32_t i = 0; i < graph->scalars.count; i++)
        if (graph->scalars.at[i].dtype != DTYPE_F32)
            refuse(job, graph->scalars.at[i].place,
                   ir_format(job, "scalars of %s", ir_dtype(graph->scalars.at[i].dtype)->name));
    for (uint32_t i = 0; i < graph->values.count; i++) check_value(job, graph, &graph->values.at[i]);
    for (uint32_t i = 0; i < graph->outputs.count; i++) check_tensor(job, graph, &graph->outputs.at[i]);
}
