/* In: a Graph, its inputs, and a box of one output. Out: what the box should hold, with bounds. Left alone: element
 * arithmetic (ir/eval_real.h), what is needed of each value (ir/eval_need.c).
 *
 * The box is cut along one dim into pieces whose values lie in the cache, where that does not make values be evaluated
 * much more than once. Each piece: walk backwards for what is needed, then forward, an array a value, given back after
 * its last use. */
#include "ir/eval_need.h"
#include "ir/text.h"

#include <math.h>
#include <string.h>

#define PIECE ((uint64_t)1 << 17) /* elements of all values that a piece evaluates: 2 MB with their bounds */

typedef struct Evaluator {
    Job *job;
    const Graph *graph;
    const EvalInput *input;
    const RealOps *real;
    Node *nodes;
    Pool pool;
    Accumulator *accumulators;
    uint64_t accumulator_capacity;
    uint64_t uncertain;
} Evaluator;

static int64_t position_of(const int64_t *strides, const Box *box, const int64_t *index, uint32_t rank) {
    int64_t position = 0;
    for (uint32_t d = 0; d < rank; d++) position += (index[d] - box->start[d]) * strides[d];
    return position;
}

/* A walk over a node's box, lane 0 being the node itself. */
static Walk walk_node(const Node *node, uint32_t lanes) {
    Walk walk = {.rank = node->rank, .lanes = lanes};
    for (uint32_t d = 0; d < node->rank; d++) walk.extent[d] = node->need.stop[d] - node->need.start[d];
    ir_box_strides(&node->need, node->rank, walk.stride[0]);
    return walk;
}

/* ---- leaves ---- */

typedef struct LoadStrip {
    const View *view;
    Lane out;
} LoadStrip;

static void load_strip(void *state, const int64_t *position, const int64_t *step, int64_t count) {
    const LoadStrip *load = state;
    DType dtype = load->view->dtype;
    size_t bytes = ir_dtype(dtype)->bytes;
    const char *element = (const char *)load->view->bytes + position[1] * (int64_t)bytes;
    const double *low = load->view->low ? load->view->low + position[1] : NULL;
    const double *bound = load->view->bound ? load->view->bound + position[1] : NULL;
    Lane out = ir_lane_at(load->out, position[0], step[0]);
    for (int64_t i = 0; i < count; i++, element += step[1] * (int64_t)bytes) {
        if (out.integer) {
            out.integer[i * out.step] = ir_load_int(dtype, element);
        } else if (out.number) {
            out.number[i * out.step] = ir_load_float(dtype, element);
            if (out.low) out.low[i * out.step] = low ? low[i * step[1]] : 0;
        }
        out.bound[i * out.step] = bound ? bound[i * step[1]] : 0;
    }
}

static void load_view(const View *view, const Node *node, Lane out) {
    Walk walk = walk_node(node, 2);
    for (uint32_t d = 0; d < node->rank; d++) {
        walk.stride[1][d] = view->stride[d];
        walk.offset[1] += node->need.start[d] * view->stride[d];
    }
    LoadStrip load = {view, out};
    ir_walk(&walk, load_strip, &load);
}

static void fill(Lane out, uint64_t count, double number, int64_t integer) {
    for (uint64_t i = 0; i < count; i++) {
        if (out.number)
            out.number[i] = number;
        else
            out.integer[i] = integer;
        if (out.low) out.low[i] = 0;
        out.bound[i] = 0;
    }
}

static void eval_leaf(Evaluator *eval, const Value *value, Node *node) {
    double number;
    switch (value->op) {
    case OP_CONST:
        memcpy(&number, &value->bits, sizeof number);
        fill(node->lane, node->count, number, (int64_t)value->bits);
        break;
    case OP_SCALAR: {
        const Scalar *scalar = &eval->input->scalars[value->tensor];
        fill(node->lane, node->count, scalar->number, scalar->integer);
        break;
    }
    case OP_SIZE:
        fill(node->lane, node->count, 0, ir_eval_size(eval->job, eval->graph, value->size, eval->input->dims));
        break;
    case OP_IOTA:
        for (uint64_t i = 0; i < node->count; i++) {
            node->lane.integer[i] = node->need.start[0] + (int64_t)i;
            node->lane.bound[i] = 0;
        }
        break;
    default: load_view(&eval->input->inputs[value->tensor], node, node->lane);
    }
}

/* ---- element by element ---- */

static void eval_elements(Evaluator *eval, uint32_t id) {
    const Value *value = &eval->graph->values.at[id];
    Node *node = &eval->nodes[id];
    ElementStrip strip = {.real = eval->real, .arity = value->arg_count, .out = node->lane};
    DType operands[3] = {DTYPE_F32, DTYPE_F32, DTYPE_F32};
    Walk walk = walk_node(node, 1u + value->arg_count);
    for (uint32_t k = 0; k < value->arg_count; k++) {
        const Node *arg = &eval->nodes[value->arg[k]];
        int64_t strides[IR_MAX_RANK];
        ir_box_strides(&arg->need, arg->rank, strides);
        for (uint32_t d = 0; d < arg->rank; d++) {
            uint32_t to = d + node->rank - arg->rank;
            if (arg->extent[d] == 1) continue;
            walk.stride[k + 1][to] = strides[d];
            walk.offset[k + 1] += (node->need.start[to] - arg->need.start[d]) * strides[d];
        }
        strip.in[k] = arg->lane;
        if (arg->count < node->count) strip.broadcast |= 1u << k;
        operands[k] = eval->graph->values.at[value->arg[k]].dtype;
    }
    ir_eval_extreme(eval->job, eval->graph, eval->nodes, value, strip.in);
    strip.op = ir_eval_op(eval->job, value->op, value->dtype, operands, &eval->uncertain);
    strip.op.id = id;
    strip.op.factors = node->summed;
    strip.op.casts = eval->input->casts;
    ir_walk(&walk, ir_element_strip, &strip);
}

/* ---- reductions ---- */

static void eval_reduce(Evaluator *eval, uint32_t id) {
    const Value *value = &eval->graph->values.at[id];
    Node *node = &eval->nodes[id], *arg = &eval->nodes[value->arg[0]];
    if (node->count > eval->accumulator_capacity) {
        eval->accumulators = IR_NEW_ARRAY(eval->job, Accumulator, node->count);
        eval->accumulator_capacity = node->count;
    }
    ReduceStrip strip = {eval->real, value->reduction, value->dtype, eval->accumulators, arg->lane};
    for (uint64_t i = 0; i < node->count; i++)
        eval->real->reduce_start(value->reduction, value->dtype, &eval->accumulators[i]);
    Walk walk = {.rank = arg->rank, .lanes = 2};
    int64_t from[IR_MAX_RANK], to[IR_MAX_RANK];
    ir_box_strides(&arg->need, arg->rank, from);
    ir_box_strides(&node->need, node->rank, to);
    for (uint32_t d = 0, k = 0; d < arg->rank; d++) {
        bool consumed = value->dims >> d & 1;
        walk.stride[1][d] = from[d];
        walk.extent[d] = consumed ? arg->extent[d] : node->need.stop[k] - node->need.start[k];
        if (!consumed) {
            walk.stride[0][d] = to[k];
            walk.offset[1] += (node->need.start[k] - arg->need.start[d]) * from[d];
        }
        if (!consumed || value->keepdim) k++;
    }
    ir_walk(&walk, ir_reduce_strip, &strip);
    if (arg->lane.cause) ir_walk(&walk, ir_cause_strip, &(CauseStrip){arg->lane, node->lane});
    uint32_t depth = eval->input->depth ? eval->input->depth[id] : 0;
    for (uint64_t i = 0; i < node->count; i++) {
        eval->real->reduce_finish(value->reduction, value->dtype, &eval->accumulators[i], depth, 0,
                                  ir_lane_at(node->lane, (int64_t)i, 1));
    }
}

/* ---- index and reshape ---- */

typedef struct GatherStrip {
    const Evaluator *eval;
    const Value *value;
    Lane in, out, index;
    int64_t stride; /* of the gathered dim in the argument's array; its extent below */
    int64_t extent;
    uint32_t dim, index_id; /* the gathered one, and the value that gives the index */
} GatherStrip;

/* What the file calls a value, through casts that nobody wrote; `otherwise` where it has no name. */
static const char *name_of(const Graph *graph, uint32_t id, const char *otherwise) {
    const Value *value = &graph->values.at[id];
    while (!value->name && value->op == OP_CAST) value = &graph->values.at[value->arg[0]];
    if (value->op == OP_INPUT) return graph->inputs.at[value->tensor].name;
    return value->name ? value->name : otherwise;
}

/* position: in the array of the index's elements. */
static _Noreturn void refuse_index(const GatherStrip *gather, int64_t position, int64_t at) {
    const Evaluator *eval = gather->eval;
    const Node *index = &eval->nodes[gather->index_id];
    int64_t element[IR_MAX_RANK];
    for (uint32_t d = index->rank; d-- > 0;) {
        const int64_t extent = index->need.stop[d] - index->need.start[d];
        element[d] = index->need.start[d] + position % extent;
        position /= extent;
    }
    Text where = ir_text(eval->job);
    ir_text_put(&where, name_of(eval->graph, gather->index_id, "the index"));
    for (uint32_t d = 0; d < index->rank; d++) ir_text_format(&where, "%s%lld", d ? ", " : "[", (long long)element[d]);
    ir_text_put(&where, index->rank ? "]" : "");
    ir_stop_at(eval->job, STATUS_USAGE, gather->value->place, "%s = %lld is outside dim %u of %s, whose extent is %lld",
               where.bytes, (long long)at, gather->dim, name_of(eval->graph, gather->value->arg[0], "what it indexes"),
               (long long)gather->extent);
}

static void gather_strip(void *state, const int64_t *position, const int64_t *step, int64_t count) {
    const GatherStrip *gather = state;
    Lane in = ir_lane_at(gather->in, position[1], step[1]), out = ir_lane_at(gather->out, position[0], step[0]);
    if (!gather->index.integer) {
        ir_lane_copy(in, out, count);
        return;
    }
    Lane index = ir_lane_at(gather->index, position[2], step[2]);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = index.integer[i * index.step];
        if (at < 0 || at >= gather->extent) refuse_index(gather, position[2] + i * step[2], at);
        ir_lane_copy(ir_lane_at(in, i * in.step + at * gather->stride, 0), ir_lane_at(out, i * out.step, 0), 1);
        if (!(index.bound[i * index.step] > 0)) continue;
        out.bound[i * out.step] = (double)INFINITY;
        if (out.cause) out.cause[i * out.step] = index.cause[i * index.step];
    }
}

static void eval_index(Evaluator *eval, const Value *value, Node *node) {
    const Node *arg = &eval->nodes[value->arg[0]];
    GatherStrip gather = {.eval = eval, .value = value, .in = arg->lane, .out = node->lane};
    Walk walk = walk_node(node, 3);
    int64_t strides[IR_MAX_RANK];
    ir_box_strides(&arg->need, arg->rank, strides);
    for (uint32_t i = 0, d = 0, to = 0; i < value->item_count; i++) {
        const Item *item = &value->items[i];
        if (item->kind == ITEM_NEW_AXIS) {
            to++;
            continue;
        }
        if (item->kind == ITEM_GATHER) {
            const Node *index = &eval->nodes[item->index];
            int64_t index_strides[IR_MAX_RANK];
            ir_box_strides(&index->need, index->rank, index_strides);
            for (uint32_t k = 0; k < index->rank; k++, to++) {
                walk.stride[2][to] = index_strides[k];
                walk.offset[2] += (node->need.start[to] - index->need.start[k]) * index_strides[k];
            }
            gather.index = index->lane;
            gather.stride = strides[d];
            gather.extent = arg->extent[d];
            if (!gather.extent && ir_value_is_computed(eval->job, eval->graph, item->index)) {
                fill(node->lane, node->count, 0, 0);
                return;
            }
            gather.dim = d;
            gather.index_id = item->index;
        } else {
            int64_t start = ir_eval_size(eval->job, eval->graph, item->start, eval->input->dims);
            int64_t first = start + (item->kind == ITEM_RANGE ? node->need.start[to] : 0);
            walk.offset[1] += (first - arg->need.start[d]) * strides[d];
            if (item->kind == ITEM_RANGE) walk.stride[1][to++] = strides[d];
        }
        d++;
    }
    ir_walk(&walk, gather_strip, &gather);
}

/* Runs that neither side's last dim breaks. */
static void eval_reshape(Evaluator *eval, const Value *value, Node *node) {
    const Node *arg = &eval->nodes[value->arg[0]];
    int64_t to[IR_MAX_RANK], from[IR_MAX_RANK], index[IR_MAX_RANK], source[IR_MAX_RANK] = {0};
    ir_box_strides(&node->need, node->rank, to);
    ir_box_strides(&arg->need, arg->rank, from);
    memcpy(index, node->need.start, sizeof index);
    uint32_t last = node->rank ? node->rank - 1u : 0;
    for (uint64_t done = 0; done < node->count;) {
        int64_t linear = 0, run = 1;
        for (uint32_t d = 0; d < node->rank; d++) linear = linear * node->extent[d] + index[d];
        for (uint32_t d = arg->rank; d-- > 0;) {
            source[d] = linear % arg->extent[d];
            linear /= arg->extent[d];
        }
        if (node->rank && arg->rank) {
            run = node->need.stop[last] - index[last];
            int64_t left = arg->extent[arg->rank - 1] - source[arg->rank - 1];
            if (left < run) run = left;
        }
        ir_lane_copy(ir_lane_at(arg->lane, position_of(from, &arg->need, source, arg->rank), 1),
                     ir_lane_at(node->lane, position_of(to, &node->need, index, node->rank), 1), run);
        done += (uint64_t)run;
        if (!node->rank) break;
        index[last] += run;
        for (uint32_t d = last; d > 0 && index[d] == node->need.stop[d]; d--) {
            index[d] = node->need.start[d];
            index[d - 1]++;
        }
    }
}

/* ---- a piece ---- */

static void eval_value(Evaluator *eval, uint32_t id) {
    const Value *value = &eval->graph->values.at[id];
    Node *node = &eval->nodes[id];
    node->lane = ir_pool_take(&eval->pool, node->count, ir_is_float(value->dtype), &node->block);
    if (!node->count) return;
    switch (value->op) {
    case OP_CONST:
    case OP_SCALAR:
    case OP_SIZE:
    case OP_IOTA:
    case OP_INPUT: eval_leaf(eval, value, node); break;
    case OP_REDUCE: eval_reduce(eval, id); break;
    case OP_INDEX: eval_index(eval, value, node); break;
    case OP_RESHAPE: eval_reshape(eval, value, node); break;
    case OP_COMPOSITE: IR_BREACH(eval->job, "the evaluator met a composite"); break;
    default: eval_elements(eval, id);
    }
    for (uint32_t k = 0; k < value->arg_count; k++) {
        Node *arg = &eval->nodes[value->arg[k]];
        bool again = k > 0 && (value->arg[k] == value->arg[0] || (k > 1 && value->arg[k] == value->arg[1]));
        if (arg->last_use == id && !again) ir_pool_give(&eval->pool, arg->block);
    }
    for (uint32_t i = 0; value->op == OP_INDEX && i < value->item_count; i++) {
        if (value->items[i].kind != ITEM_GATHER || value->items[i].index == value->arg[0]) continue;
        Node *index = &eval->nodes[value->items[i].index];
        if (index->last_use == id) ir_pool_give(&eval->pool, index->block);
    }
}

/* value + what the output holds, in the compute dtype of both. */
static void add_held(Evaluator *eval, uint32_t output, Node *node) {
    const Tensor *tensor = &eval->graph->outputs.at[output];
    DType dtypes[2] = {eval->graph->values.at[tensor->value].dtype, tensor->dtype};
    DType compute = ir_promote(dtypes[0], dtypes[1]);
    if (compute == DTYPE_BOOL) compute = DTYPE_I64;
    bool is_float = ir_is_float(compute);
    if (is_float != ir_is_float(dtypes[0]) || is_float != ir_is_float(dtypes[1])) {
        IR_BREACH(eval->job, "an output accumulates into another kind");
    }
    uint32_t block;
    Lane in[2] = {node->lane, ir_pool_take(&eval->pool, node->count, is_float, &block)};
    load_view(&eval->input->held[output], node, in[1]);
    ElementOp add = {OP_ADD, compute,         compute, compute, &eval->uncertain, eval->graph->outputs.at[output].value,
                     false,  EVAL_CASTS_ROUND};
    eval->real->elements(&add, in, node->lane, (int64_t)node->count);
    ir_pool_give(&eval->pool, block);
}

typedef struct ResultStrip {
    const RealOps *real;
    Expected *expected;
    Lane in;
    ElementOp cast; /* to the output's dtype */
} ResultStrip;

static void result_strip(void *state, const int64_t *position, const int64_t *step, int64_t count) {
    const ResultStrip *result = state;
    Expected *expected = result->expected;
    Lane in = ir_lane_at(result->in, position[0], step[0]);
    Lane out = {expected->number, expected->bound, expected->integer, 1, expected->low, expected->cause};
    out = ir_lane_at(out, position[1], step[1]);
    DType dtype = result->cast.result;
    for (int64_t i = 0; out.cause && i < count; i++) out.cause[i * out.step] = in.cause[i * in.step];
    if (!in.number || !out.number) {
        result->real->cast(&result->cast, in, out, count);
        return;
    }
    for (int64_t i = 0; i < count; i++) { /* the bound before rounding; but inf on one side only lets either pass */
        double value = in.number[i * in.step], bound = in.bound[i * in.step], rounded = ir_round(dtype, value);
        bool edge = bound > 0 && !isnan(value) &&
                    isinf(ir_round(dtype, fabs(value) + bound)) != isinf(ir_round(dtype, fabs(value) - bound));
        out.number[i * out.step] = rounded;
        out.bound[i * out.step] = edge ? (double)INFINITY : bound;
        if (out.low) out.low[i * out.step] = in.low[i * in.step];
    }
}

static void eval_piece(Evaluator *eval, uint32_t output, const Box *whole, const Box *piece, Expected *expected) {
    const Tensor *tensor = &eval->graph->outputs.at[output];
    DType dtype = eval->graph->values.at[tensor->value].dtype;
    Node *node = &eval->nodes[tensor->value];
    ir_eval_plan(eval->job, eval->graph, eval->nodes, eval->input->dims, tensor->value, piece);
    for (uint32_t id = 0; id <= tensor->value; id++) {
        if (eval->nodes[id].needed) eval_value(eval, id);
    }
    if (tensor->accumulate) add_held(eval, output, node);
    Walk walk = walk_node(node, 2);
    ir_box_strides(whole, node->rank, walk.stride[1]);
    walk.offset[1] = position_of(walk.stride[1], whole, piece->start, node->rank);
    ResultStrip result = {
        eval->real,
        expected,
        node->lane,
        {OP_CAST, dtype, tensor->dtype, dtype, &eval->uncertain, tensor->value, false, EVAL_CASTS_ROUND}};
    ir_walk(&walk, result_strip, &result);
    ir_pool_give(&eval->pool, node->block);
}

/* The dim to cut and the pieces' extent along it; false where the whole is one piece. */
static bool choose_cut(Evaluator *eval, uint32_t wanted, const Box *box, uint32_t *dim, int64_t *length) {
    uint64_t whole = ir_eval_plan(eval->job, eval->graph, eval->nodes, eval->input->dims, wanted, box);
    if (whole <= PIECE) return false;
    for (uint32_t d = 0; d < eval->nodes[wanted].rank; d++) {
        int64_t extent = box->stop[d] - box->start[d], pieces = (int64_t)((whole + PIECE - 1) / PIECE);
        if (extent < 2) continue;
        if (pieces > extent) pieces = extent;
        int64_t piece = (extent + pieces - 1) / pieces;
        Box first = *box;
        first.stop[d] = first.start[d] + piece;
        uint64_t part = ir_eval_plan(eval->job, eval->graph, eval->nodes, eval->input->dims, wanted, &first);
        if (part > whole + whole / 3 || part * (uint64_t)pieces > whole + whole / 3) continue;
        *dim = d;
        *length = piece;
        return true;
    }
    return false;
}

/* Of what `wanted` is made of: a dead value may have no shape for these dims. */
static void measure_nodes(Evaluator *eval, uint32_t wanted) {
    bool *used = IR_NEW_ARRAY(eval->job, bool, wanted + 1);
    used[wanted] = true;
    for (uint32_t id = wanted + 1; id-- > 0;) {
        if (!used[id]) continue;
        const Value *value = &eval->graph->values.at[id];
        const Shape *shape = &value->shape;
        const bool moves = value->op == OP_INDEX || value->op == OP_RESHAPE;
        if ((value->op == OP_REDUCE && value->reduction == REDUCTION_ADD) || (moves && eval->nodes[id].summed))
            eval->nodes[value->arg[0]].summed = true;
        ir_value_mark_args(value, used);
        eval->nodes[id].rank = shape->rank;
        for (uint32_t d = 0; d < shape->rank; d++) {
            int64_t extent = ir_eval_size(eval->job, eval->graph, shape->extent[d], eval->input->dims);
            if (extent < 0) {
                ir_stop_at(eval->job, STATUS_USAGE, value->place, "a dim has a negative extent, %lld",
                           (long long)extent);
            }
            eval->nodes[id].extent[d] = extent;
        }
    }
}

/* Graphs that compute in f64 are evaluated in long double. */
static const RealOps *choose_real(const Graph *graph, uint32_t output) {
    bool wide = graph->outputs.at[output].dtype == DTYPE_F64;
    for (uint32_t id = 0; id <= graph->outputs.at[output].value; id++) wide |= graph->values.at[id].dtype == DTYPE_F64;
    return wide ? &ir_real_long : &ir_real_double;
}

/* An op that may jump: only then are causes kept. */
static bool has_jump(const Graph *graph, const Value *value) {
    switch (value->op) {
    case OP_CONST:
    case OP_SCALAR:
    case OP_SIZE:
    case OP_IOTA:
    case OP_INPUT:
    case OP_REDUCE:
    case OP_INDEX:
    case OP_RESHAPE:
    case OP_COMPOSITE: return false;
    case OP_CAST: return ir_is_float(graph->values.at[value->arg[0]].dtype) && !ir_is_float(value->dtype);
    case OP_FLOOR:
    case OP_CEIL:
    case OP_ROUND:
    case OP_TRUNC:
    case OP_SIGN:
    case OP_FLOORDIV:
    case OP_MOD: return true;
    default: return ir_op(value->op)->rule == RULE_COMPARE || ir_op(value->op)->rule == RULE_TEST;
    }
}

static bool has_jumps(const Graph *graph, uint32_t output) {
    const Tensor *tensor = &graph->outputs.at[output];
    bool jumps = ir_is_float(graph->values.at[tensor->value].dtype) && !ir_is_float(tensor->dtype);
    for (uint32_t id = 0; id <= tensor->value && !jumps; id++) jumps = has_jump(graph, &graph->values.at[id]);
    return jumps;
}

Expected ir_eval_graph(Job *job, const Graph *graph, const EvalInput *input, uint32_t output, const Box *box) {
    const Tensor *tensor = &graph->outputs.at[output];
    uint32_t wanted = tensor->value, rank = graph->values.at[wanted].shape.rank;
    Box whole = {{0}, {0}};
    for (uint32_t d = 0; d < rank; d++) {
        whole.stop[d] = ir_eval_size(job, graph, graph->values.at[wanted].shape.extent[d], input->dims);
    }
    if (box) whole = *box;
    Expected expected = {.count = ir_box_count(&whole, rank)};
    expected.bound = IR_NEW_ARRAY(job, double, expected.count);
    if (ir_is_float(tensor->dtype))
        expected.number = IR_NEW_ARRAY(job, double, expected.count);
    else
        expected.integer = IR_NEW_ARRAY(job, int64_t, expected.count);
    if (tensor->dtype == DTYPE_F64 && ir_is_float(graph->values.at[wanted].dtype))
        expected.low = IR_NEW_ARRAY(job, double, expected.count);
    if (has_jumps(graph, output)) expected.cause = IR_NEW_ARRAY(job, uint32_t, expected.count);
    Mark mark = ir_mark(job);
    Evaluator eval = {.job = job, .graph = graph, .input = input, .real = choose_real(graph, output)};
    eval.pool = (Pool){.job = job, .wide = eval.real->wide, .causes = expected.cause != NULL};
    eval.nodes = IR_NEW_ARRAY(job, Node, wanted + 1);
    measure_nodes(&eval, wanted);
    uint32_t dim;
    int64_t length;
    if (!expected.count) {
        /* nothing is asked for */
    } else if (choose_cut(&eval, wanted, &whole, &dim, &length)) {
        for (int64_t start = whole.start[dim]; start < whole.stop[dim]; start += length) {
            Box piece = whole;
            piece.start[dim] = start;
            if (start + length < piece.stop[dim]) piece.stop[dim] = start + length;
            eval_piece(&eval, output, &whole, &piece, &expected);
        }
    } else {
        eval_piece(&eval, output, &whole, &whole, &expected);
    }
    for (uint64_t i = 0; expected.cause && i < expected.count; i++) expected.cause[i] /= 2; /* the count is taken */
    expected.uncertain = eval.uncertain < expected.count ? eval.uncertain : expected.count;
    ir_reset(job, mark);
    return expected;
}

bool ir_element_passes(DType dtype, double got, double number, double bound) {
    if (isinf(bound)) return true;
    double wanted = ir_round(dtype, number);
    if (isnan(wanted) || isnan(got)) return isnan(wanted) && isnan(got);
    if (got == wanted) return true;
    if (isinf(wanted)) return false;
    if (isinf(got)) return (got > 0) == (wanted > 0) && isinf(ir_round(dtype, fabs(number) + bound));
    return fabs(got - wanted) <= ir_ulp(dtype, fmax(fabs(got), fabs(wanted))) + bound;
}
