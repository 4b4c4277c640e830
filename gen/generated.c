/* What the language has and the later passes do not generate yet: refused with STATUS_UNAVAILABLE at its place, after
 * all of it was parsed and typed. */
#include "gen/gen.h"

static _Noreturn void refuse(Job *job, Place place, const char *what) {
    ir_stop_at(job, STATUS_UNAVAILABLE, place, "not generated yet: %s", what);
}

static void check_tensor(Job *job, const Graph *graph, const Tensor *tensor) {
    int64_t number;
    bool overflow = false;
    if (tensor->accumulate) refuse(job, tensor->place, "accumulate");
    if (tensor->contiguous) return;
    const int64_t *fixed = ir_graph_fixed(job, graph);
    for (uint32_t i = 0; i < tensor->shape.rank; i++) {
        Poly stride = ir_poly_fold(job, tensor->stride[i], fixed, graph->dims.count, &overflow);
        if (!ir_poly_is_int(stride, &number) && tensor->inplace == IR_NONE)
            refuse(job, tensor->place, "strides that are known at launch only");
    }
}

static void check_value(Job *job, const Value *value) {
    for (uint32_t i = 0; value->op == OP_INDEX && i < value->item_count; i++)
        if (value->items[i].kind == ITEM_GATHER) refuse(job, value->place, "an index by a tensor");
}

void gen_check_generated(Job *job, const Graph *graph) {
    for (uint32_t i = 0; i < graph->inputs.count; i++) check_tensor(job, graph, &graph->inputs.at[i]);
    for (uint32_t i = 0; i < graph->values.count; i++) check_value(job, &graph->values.at[i]);
    for (uint32_t i = 0; i < graph->outputs.count; i++) check_tensor(job, graph, &graph->outputs.at[i]);
}
