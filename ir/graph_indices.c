/* Which values index what. In: a graph and its dims. Out: for each value how many elements there are to pick from where
 * its own are the indices, as ids in table[ids]. An index that arithmetic makes says nothing of what it was made from.
 * And which values no input decides. */
#include "ir/graph.h"

/* The first integer that an index of this dtype never is. */
static int64_t held(DType dtype) {
    switch (dtype) {
    case DTYPE_BOOL: return 2;
    case DTYPE_I8: return INT64_C(1) << 7;
    case DTYPE_U8: return INT64_C(1) << 8;
    case DTYPE_I32: return INT64_C(1) << 31;
    default: return IR_MAX_EXTENT;
    }
}

/* The arguments, as bits, whose elements a value's own are, moved, picked from or widened. */
static uint32_t passed_on(const Value *value) {
    switch (value->op) {
    case OP_CAST:
    case OP_INDEX:
    case OP_RESHAPE: return 1;
    case OP_MAXIMUM:
    case OP_MINIMUM: return 3;
    case OP_WHERE: return 6;
    case OP_REDUCE: return value->reduction == REDUCTION_MAX || value->reduction == REDUCTION_MIN;
    default: return 0;
    }
}

static void lower(int64_t *limit, int64_t to) {
    if (to < *limit) *limit = to;
}

static void limit_index(const Graph *graph, const Value *value, const int64_t *dims, int64_t *limits) {
    const Shape *from = &graph->values.at[value->arg[0]].shape;
    uint32_t d = 0;
    for (uint32_t i = 0; i < value->item_count; i++) {
        int64_t extent;
        if (value->items[i].kind == ITEM_NEW_AXIS) continue;
        const Poly size = from->extent[d++];
        if (value->items[i].kind != ITEM_GATHER) continue;
        /* an extent that these dims do not allow is for whoever looks at them to say */
        if (ir_poly_eval(size, dims, graph->dims.count, NULL, 0, &extent))
            lower(&limits[value->items[i].index], extent > 0 ? extent : 0);
    }
}

void ir_graph_index_limits(const Graph *graph, const int64_t *dims, int64_t *limits) {
    for (uint32_t v = 0; v < graph->values.count; v++) limits[v] = INT64_MAX;
    for (uint32_t v = graph->values.count; v-- > 0;) { /* users stand behind what they use */
        const Value *value = &graph->values.at[v];
        if (value->op == OP_INDEX) limit_index(graph, value, dims, limits);
        if (limits[v] == INT64_MAX) continue;
        lower(&limits[v], held(value->dtype));
        for (uint32_t a = 0; a < value->arg_count; a++)
            if ((passed_on(value) >> a & 1) && ir_dtype(graph->values.at[value->arg[a]].dtype)->kind != KIND_FLOAT)
                lower(&limits[value->arg[a]], limits[v]);
    }
}

bool ir_value_is_computed(Job *job, const Graph *graph, uint32_t id) {
    const Mark mark = ir_mark(job);
    bool *behind = IR_NEW_ARRAY(job, bool, id + (size_t)1), computed = true;
    behind[id] = true;
    for (uint32_t v = id + 1; v-- > 0 && computed;) {
        if (!behind[v]) continue;
        const Value *value = &graph->values.at[v];
        computed = value->op != OP_INPUT && value->op != OP_SCALAR;
        ir_value_mark_args(value, behind);
    }
    ir_reset(job, mark);
    return computed;
}
