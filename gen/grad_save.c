/* What the backward graph reads of the forward one. In: the joint graph, forward values and gradients. Out: the forward
 * values that are read rather than computed again.
 *
 * A least cut: of all sets of values from which the backward graph can compute the rest, one that moves the fewest
 * bytes. An input and an output cost their reading, any other value its writing, in its compute dtype, and its reading.
 * What a reduction gives is never computed again (its operands would be read for it), unless that is asked for; the
 * rest is. What is made of an input that the forward graph writes over is saved only where that is asked for: such a
 * graph means to use less memory. Among equal cuts the one nearest the gradients: rstd rather than the mean of squares.
 *
 * Source: the min-cut partitioner of PyTorch's AOTAutograd has this form. Flow: Edmonds and Karp, "Theoretical
 * improvements in algorithmic efficiency for network flow problems", 1972. */
#include "gen/grad_build.h"

#include <string.h>

#define ENDLESS ((int64_t)1 << 61)
#define USUAL_EXTENT 4096 /* of an any dim without a hint */

typedef struct Edge {
    uint32_t to, next; /* next of the same node's; IR_NONE: last. Edge e ^ 1 is the other way round */
    int64_t capacity;
} Edge;

typedef struct Network {
    Job *job;
    const Graph *graph;
    const Graph *from;
    const bool *backward;
    uint32_t *first; /* edge of each node */
    IR_LIST(Edge) edges;
    uint32_t *by; /* the edge by which the search came to each node */
    uint32_t *queue;
    uint32_t node_count;
    bool *again;   /* asked to be computed again */
    bool *stored;  /* asked to be saved */
    bool *moved;   /* some input is read for it: others cost nothing */
    bool *fragile; /* made, element by element, of an input that the forward graph writes over */
} Network;

enum { SOURCE, SINK, FIRST };

static uint32_t in_of(uint32_t value) { return FIRST + 2 * value; }
static uint32_t out_of(uint32_t value) { return FIRST + 2 * value + 1; }

static void add_edge(Network *network, uint32_t from, uint32_t to, int64_t capacity) {
    const Edge there = {to, network->first[from], capacity};
    *IR_PUSH(network->job, &network->edges) = there;
    network->first[from] = network->edges.count - 1;
    const Edge back = {from, network->first[to], 0};
    *IR_PUSH(network->job, &network->edges) = back;
    network->first[to] = network->edges.count - 1;
}

/* ---- what values cost ---- */

static int64_t elements_of(const Network *network, const Shape *shape) {
    const Graph *graph = network->graph;
    int64_t *dims = IR_NEW_ARRAY(network->job, int64_t, graph->dims.count + 1), count = 1, extent;
    for (uint32_t i = 0; i < graph->dims.count; i++) {
        const Dim *dim = &graph->dims.at[i];
        dims[i] = dim->value >= 0 ? dim->value : dim->hint >= 0 ? dim->hint : USUAL_EXTENT;
        if (dim->value < 0 && dim->hint < 0 && dim->max >= 0 && dims[i] > dim->max) dims[i] = dim->max;
    }
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (!ir_poly_eval(shape->extent[i], dims, graph->dims.count, NULL, 0, &extent)) return ENDLESS / 16;
        if (ir_mul_overflows(count, extent, &count) || count > ENDLESS / 64) return ENDLESS / 64;
    }
    return count;
}

static int64_t bytes_of(const Network *network, const Shape *shape, DType dtype) {
    return elements_of(network, shape) * ir_dtype(dtype)->bytes;
}

/* The output in which the forward graph leaves a value, or IR_NONE. */
static uint32_t output_of(const Graph *graph, const Graph *from, uint32_t value) {
    for (uint32_t i = 0; i < from->outputs.count; i++)
        if (graph->outputs.at[i].value == value && !graph->outputs.at[i].accumulate) return i;
    return IR_NONE;
}

/* The output that may be written over an input, or IR_NONE. */
static uint32_t written_over(const Graph *from, uint32_t input) {
    for (uint32_t i = 0; i < from->outputs.count; i++)
        if (from->outputs.at[i].inplace == input) return i;
    return IR_NONE;
}

static int64_t cost_of(const Network *network, uint32_t id) {
    const Value *value = &network->graph->values.at[id];
    const uint32_t output = output_of(network->graph, network->from, id);
    if (network->stored[id]) return 0;
    if (network->again[id]) return ENDLESS;
    const int64_t there =
        output == IR_NONE ? ENDLESS : bytes_of(network, &value->shape, network->from->outputs.at[output].dtype);
    if (network->fragile[id]) return there;
    if (value->op == OP_INPUT) {
        const int64_t own = bytes_of(network, &value->shape, value->dtype);
        return own < there ? own : there;
    }
    const int64_t saved = 2 * bytes_of(network, &value->shape, value->dtype);
    return saved < there ? saved : there;
}

/* ---- what can be computed again ---- */

static bool is_reduction(const Value *value) {
    if (value->op == OP_REDUCE) return true;
    for (uint32_t i = 0; value->op == OP_COMPOSITE && i < value->call->count; i++)
        if (!strcmp(value->call->params[i], "dim")) return true;
    return false;
}

static void add_operands(Network *network, uint32_t id, bool *marks) {
    const Value *value = &network->graph->values.at[id];
    memset(marks, 0, id * sizeof *marks);
    ir_value_mark_args(value, marks);
    for (uint32_t i = 0; i < value->item_count; i++) {
        if (value->items[i].kind != ITEM_GATHER || network->graph->values.at[value->arg[0]].op != OP_INPUT) continue;
        /* of what is picked from, the picked elements alone are read: a node of its own stands for them */
        const uint32_t picked = network->node_count++;
        network->first[picked] = IR_NONE;
        add_edge(network, SOURCE, picked, ENDLESS);
        add_edge(network, picked, in_of(id), bytes_of(network, &value->shape, value->dtype));
        marks[value->arg[0]] = false;
    }
    for (uint32_t i = 0; i < id; i++)
        if (marks[i]) add_edge(network, out_of(i), in_of(id), ENDLESS);
}

static void look_at_operands(Network *network, uint32_t id, const bool *marks) {
    const Value *value = &network->graph->values.at[id];
    const bool input = value->op == OP_INPUT;
    network->moved[id] = input;
    network->fragile[id] = input && written_over(network->from, value->tensor) != IR_NONE;
    for (uint32_t k = 0; k < id; k++) {
        if (!marks[k]) continue;
        network->moved[id] |= network->moved[k];
        network->fragile[id] |= network->fragile[k] && !is_reduction(value);
    }
}

static void add_values(Network *network, const bool *sinks) {
    const Graph *graph = network->graph;
    bool *marks = IR_NEW_ARRAY(network->job, bool, graph->values.count + 1);
    for (uint32_t i = 0; i < graph->values.count; i++) {
        const Value *value = &graph->values.at[i];
        if (network->backward[i]) continue;
        memset(marks, 0, i * sizeof *marks);
        ir_value_mark_args(value, marks);
        look_at_operands(network, i, marks);
        if (!network->moved[i]) continue;
        add_edge(network, in_of(i), out_of(i), cost_of(network, i));
        if (sinks[i]) add_edge(network, out_of(i), SINK, ENDLESS);
        if (value->op == OP_INPUT || (is_reduction(value) && !network->again[i]))
            add_edge(network, SOURCE, in_of(i), ENDLESS);
        else
            add_operands(network, i, marks);
    }
}

/* ---- flow ---- */

/* Breadth first along edges with room, from the source (or against them, from the sink). */
static void search(Network *network, uint32_t start, bool against) {
    uint32_t head = 0, tail = 0;
    memset(network->by, 0xff, network->node_count * sizeof *network->by);
    network->by[start] = IR_NONE - 1;
    network->queue[tail++] = start;
    while (head < tail) {
        const uint32_t node = network->queue[head++];
        for (uint32_t e = network->first[node]; e != IR_NONE; e = network->edges.at[e].next) {
            const uint32_t to = network->edges.at[e].to;
            if (network->by[to] != IR_NONE || network->edges.at[against ? e ^ 1 : e].capacity <= 0) continue;
            network->by[to] = e;
            network->queue[tail++] = to;
        }
    }
}

/* The value whose reading no cut can avoid: an input that the forward graph writes over. */
static _Noreturn void refuse_written(const Network *network) {
    uint32_t last = IR_NONE;
    for (uint32_t node = SINK; node != SOURCE; node = network->edges.at[network->by[node] ^ 1].to)
        if (node >= FIRST && node < FIRST + 2 * network->graph->values.count) last = (node - FIRST) / 2;
    IR_REQUIRE(network->job, last != IR_NONE);
    const Value *value = &network->graph->values.at[last];
    const uint32_t output = value->op == OP_INPUT ? written_over(network->from, value->tensor) : IR_NONE;
    if (output == IR_NONE)
        ir_stop_at(network->job, STATUS_USAGE, value->place,
                   "--recompute leaves the gradients nothing to start from: '%s' is read or saved",
                   value->name ? value->name : ir_op_name(value->op));
    const Tensor *tensor = &network->from->outputs.at[output];
    ir_stop_at(network->job, STATUS_REJECTED, tensor->place,
               "'%s' is written over the input '%s', which the gradients need: drop its inplace, or --save a node that "
               "they can use instead",
               tensor->name, network->from->inputs.at[value->tensor].name);
}

static void fill(Network *network) {
    for (;;) {
        search(network, SOURCE, false);
        if (network->by[SINK] == IR_NONE) return;
        int64_t room = ENDLESS;
        for (uint32_t node = SINK; node != SOURCE; node = network->edges.at[network->by[node] ^ 1].to) {
            const int64_t own = network->edges.at[network->by[node]].capacity;
            if (own < room) room = own;
        }
        if (room >= ENDLESS / 2) refuse_written(network);
        for (uint32_t node = SINK; node != SOURCE; node = network->edges.at[network->by[node] ^ 1].to) {
            network->edges.at[network->by[node]].capacity -= room;
            network->edges.at[network->by[node] ^ 1].capacity += room;
        }
    }
}

/* ---- names ---- */

static uint32_t find_named(const Joint *joint, const char *name, const char *option) {
    const Graph *graph = joint->graph;
    IR_LIST(const char *) names = {0};
    for (uint32_t i = 0; i < joint->from->values.count; i++)
        if (joint->from->values.at[i].name && !strcmp(joint->from->values.at[i].name, name) &&
            joint->of_from[i] != IR_NONE)
            return joint->of_from[i];
    for (uint32_t i = 0; i < graph->values.count; i++) {
        if (!graph->values.at[i].name) continue;
        if (!strcmp(graph->values.at[i].name, name)) return i;
        *IR_PUSH(joint->job, &names) = graph->values.at[i].name;
    }
    const char *near = ir_near_miss(joint->job, name, names.at, names.count);
    ir_stop_at(joint->job, STATUS_USAGE, (Place){0, 0}, "--%s=%s: no value that the gradients use has this name%s%s%s",
               option, name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static void mark_named(const Joint *joint, const Names *names, const char *option, const bool *backward, bool *marks) {
    for (uint32_t i = 0; i < names->count; i++) {
        const uint32_t id = find_named(joint, names->at[i], option);
        const Value *value = &joint->graph->values.at[id];
        if (backward[id])
            ir_stop_at(joint->job, STATUS_USAGE, (Place){0, 0},
                       "--%s=%s: it is a gradient, not a value of the forward graph", option, names->at[i]);
        if (value->op == OP_INPUT || value->op == OP_SCALAR)
            ir_stop_at(joint->job, STATUS_USAGE, (Place){0, 0}, "--%s=%s: it is an input, which is read again anyway",
                       option, names->at[i]);
        marks[id] = true;
    }
}

/* What has no name is part of the expression that uses it, which is computed again whole. */
static void spread_again(const Joint *joint, bool *again) {
    const Graph *graph = joint->graph;
    bool *marks = IR_NEW_ARRAY(joint->job, bool, graph->values.count + 1);
    for (uint32_t i = graph->values.count; i-- > 0;) {
        if (!again[i]) continue;
        memset(marks, 0, i * sizeof *marks);
        ir_value_mark_args(&graph->values.at[i], marks);
        for (uint32_t k = 0; k < i; k++) {
            const Value *operand = &graph->values.at[k];
            again[k] |= marks[k] && !operand->name && operand->op != OP_INPUT && operand->op != OP_SCALAR;
        }
    }
}

bool *gen_grad_is_backward(Job *job, const Graph *joint, const Graph *from) {
    bool *backward = IR_NEW_ARRAY(job, bool, joint->values.count + 1);
    bool *marks = IR_NEW_ARRAY(job, bool, joint->values.count + 1);
    for (uint32_t i = 0; i < joint->values.count; i++) {
        const Value *value = &joint->values.at[i];
        memset(marks, 0, i * sizeof *marks);
        ir_value_mark_args(value, marks);
        backward[i] = value->op == OP_INPUT && value->tensor >= from->inputs.count;
        for (uint32_t k = 0; k < i && !backward[i]; k++) backward[i] = marks[k] && backward[k];
    }
    return backward;
}

/* Forward values that gradients use themselves. */
static bool *find_sinks(const Joint *joint, const bool *backward) {
    const Graph *graph = joint->graph;
    bool *sinks = IR_NEW_ARRAY(joint->job, bool, graph->values.count + 1);
    for (uint32_t i = 0; i < graph->values.count; i++)
        if (backward[i]) ir_value_mark_args(&graph->values.at[i], sinks);
    for (uint32_t i = joint->from->outputs.count; i < graph->outputs.count; i++)
        sinks[graph->outputs.at[i].value] = true;
    for (uint32_t i = 0; i < graph->values.count; i++) sinks[i] = sinks[i] && !backward[i];
    return sinks;
}

/* Back from the gradients to what is read. */
static void find_needed(const Joint *joint, Cut *cut) {
    const Graph *graph = joint->graph;
    for (uint32_t i = joint->from->outputs.count; i < graph->outputs.count; i++)
        cut->needed[graph->outputs.at[i].value] = true;
    for (uint32_t i = graph->values.count; i-- > 0;)
        if (cut->needed[i] && !cut->read[i]) ir_value_mark_args(&graph->values.at[i], cut->needed);
}

Cut gen_grad_cut(Joint *joint, const GradOptions *options) {
    Job *job = joint->job;
    const uint32_t count = joint->graph->values.count;
    Network network = {.job = job, .graph = joint->graph, .from = joint->from, .node_count = FIRST + 2 * count};
    const uint32_t most = FIRST + 3 * count;
    network.first = IR_NEW_ARRAY(job, uint32_t, most);
    network.by = IR_NEW_ARRAY(job, uint32_t, most);
    network.queue = IR_NEW_ARRAY(job, uint32_t, most);
    network.again = IR_NEW_ARRAY(job, bool, count + 1);
    network.stored = IR_NEW_ARRAY(job, bool, count + 1);
    network.moved = IR_NEW_ARRAY(job, bool, count + 1);
    network.fragile = IR_NEW_ARRAY(job, bool, count + 1);
    memset(network.first, 0xff, most * sizeof *network.first);
    network.backward = gen_grad_is_backward(job, joint->graph, joint->from);
    mark_named(joint, &options->save, "save", network.backward, network.stored);
    mark_named(joint, &options->recompute, "recompute", network.backward, network.again);
    spread_again(joint, network.again);
    add_values(&network, find_sinks(joint, network.backward));
    fill(&network);
    search(&network, SINK, true); /* what can still reach the sink lies behind the cut */
    Cut cut = {IR_NEW_ARRAY(job, bool, count + 1), IR_NEW_ARRAY(job, bool, count + 1)};
    for (uint32_t i = 0; i < count; i++) {
        const bool value = joint->graph->values.at[i].op == OP_INPUT && !network.backward[i];
        cut.read[i] = value || (network.by[out_of(i)] != IR_NONE && network.by[in_of(i)] == IR_NONE);
        cut.read[i] = cut.read[i] && !network.backward[i] && network.moved[i];
    }
    find_needed(joint, &cut);
    for (uint32_t i = 0; i < count; i++) {
        cut.read[i] = cut.read[i] && cut.needed[i];
        if (network.stored[i] && !cut.read[i])
            ir_stop_at(job, STATUS_USAGE, (Place){0, 0}, "--save=%s: the gradients do not need it",
                       joint->graph->values.at[i].name);
    }
    return cut;
}
