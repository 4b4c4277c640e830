/* What the backward graph reads of the forward one. In: the joint graph, forward values and gradients. Out: the forward
 * values that are read rather than computed again.
 *
 * A least cut: of all sets of values from which the backward graph can compute the rest, one that moves the fewest
 * bytes. An input and an output cost their reading, slices and picked elements of one theirs alone, any other value its
 * writing, in its compute dtype, and its reading.
 * What a reduction gives is never computed again (its operands would be read for it), unless that is asked for; the
 * rest is, but which computed elements are the largest. What else is made of an input that the forward graph writes
 * over is saved only where that is asked for: such a graph means to use less memory. Among equal cuts the one nearest
 * the gradients: rstd rather than the mean of squares.
 *
 * Source: the min-cut partitioner of PyTorch's AOTAutograd has this form. */
#include "gen/flow.h"
#include "gen/grad_build.h"

#include <string.h>

typedef struct Network {
    Job *job;
    const Joint *joint;
    const Graph *graph; /* the joint one */
    const Graph *from;
    const bool *backward;
    Flow flow;     /* of each value two nodes, and the edge between them that reading it fills */
    bool *again;   /* asked to be computed again */
    bool *stored;  /* asked to be saved */
    bool *moved;   /* some input is read for it: others cost nothing */
    bool *fragile; /* made, element by element, of an input that the forward graph writes over */
} Network;

static uint32_t in_of(uint32_t value) { return FLOW_FIRST + 2 * value; }
static uint32_t out_of(uint32_t value) { return FLOW_FIRST + 2 * value + 1; }

/* ---- what values cost ---- */

static int64_t elements_of(const Network *network, const Shape *shape) {
    const Graph *graph = network->graph;
    int64_t *dims = IR_NEW_ARRAY(network->job, int64_t, graph->dims.count + 1), count = 1, extent;
    for (uint32_t i = 0; i < graph->dims.count; i++) dims[i] = ir_dim_guess(&graph->dims.at[i]);
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (!ir_poly_eval(shape->extent[i], dims, graph->dims.count, NULL, 0, &extent)) return FLOW_ENDLESS / 16;
        if (ir_mul_overflows(count, extent, &count) || count > FLOW_ENDLESS / 64) return FLOW_ENDLESS / 64;
    }
    return count;
}

static int64_t bytes_of(const Network *network, const Shape *shape, DType dtype) {
    return elements_of(network, shape) * ir_dtype(dtype)->bytes;
}

uint32_t gen_grad_written_over(const Graph *from, uint32_t input) {
    for (uint32_t i = 0; i < from->outputs.count; i++)
        if (from->outputs.at[i].inplace == input) return i;
    return IR_NONE;
}

/* What a value is a view of; a cast to another dtype is read as what it was made of. */
static uint32_t source_of(const Graph *graph, uint32_t id) {
    while (gen_grad_is_view(&graph->values.at[id])) id = graph->values.at[id].arg[0];
    return id;
}

/* A slice of an input of which others are written over. */
static bool is_left_alone(const Network *network, const Value *value) {
    const Value *input = value->op == OP_INDEX ? &network->graph->values.at[value->arg[0]] : NULL;
    bool written = false;
    if (!input || input->op != OP_INPUT) return false;
    for (uint32_t i = 0; i < network->from->outputs.count; i++) {
        const Tensor *output = &network->from->outputs.at[i];
        const uint32_t count = output->inplace_item_count; /* one a dim: more of the slice are new axes */
        if (output->inplace != input->tensor) continue;
        if (!output->inplace_items || count > value->item_count) return false;
        if (!ir_items_disjoint(network->job, network->graph, output->inplace_items, value->items, count)) return false;
        written = true;
    }
    return written;
}

/* The dtype in which the elements of a value are there to be read, one by one; false: they are not. */
static bool is_there(const Network *network, uint32_t id, DType *dtype) {
    const Value *value = &network->graph->values.at[id];
    const uint32_t output = gen_grad_output_with(network->joint, id);
    if (network->again[id]) return false;
    *dtype = output == IR_NONE ? value->dtype : network->from->outputs.at[output].dtype;
    if (value->op == OP_INPUT && !network->fragile[id]) *dtype = value->dtype;
    return output != IR_NONE || (value->op == OP_INPUT && !network->fragile[id]);
}

static int64_t cost_of(const Network *network, uint32_t id) {
    const Value *value = &network->graph->values.at[id];
    const uint32_t output = gen_grad_output_with(network->joint, id);
    if (network->stored[id]) return 0;
    if (network->again[id]) return FLOW_ENDLESS;
    const int64_t there =
        output == IR_NONE ? FLOW_ENDLESS : bytes_of(network, &value->shape, network->from->outputs.at[output].dtype);
    if (network->fragile[id]) return there;
    if (value->op == OP_INPUT) {
        const int64_t own = bytes_of(network, &value->shape, value->dtype);
        return own < there ? own : there;
    }
    const int64_t saved = 2 * bytes_of(network, &value->shape, value->dtype) + 1; /* equal bytes: not saved */
    return saved < there ? saved : there;
}

/* ---- what can be computed again ---- */

/* Of what is there, the elements that a view takes can be read alone: what is read for the view, at most. */
static int64_t cost_of_part(const Network *network, uint32_t id) {
    const Value *value = &network->graph->values.at[id];
    DType dtype;
    if (value->op != OP_INDEX) return FLOW_ENDLESS;
    const uint32_t source = source_of(network->graph, id);
    if (!is_there(network, source, &dtype)) return FLOW_ENDLESS;
    const int64_t own = bytes_of(network, &value->shape, dtype),
                  whole = bytes_of(network, &network->graph->values.at[source].shape, dtype);
    return own < whole ? own : whole;
}

static void add_operands(Network *network, uint32_t id) {
    const Value *value = &network->graph->values.at[id];
    for (uint32_t i = 0; i < ir_value_operand_count(value); i++) {
        const uint32_t operand = ir_value_operand(value, i);
        if (operand == IR_NONE || !network->moved[operand]) continue;
        if (i == 0 && is_left_alone(network, value)) {
            const DType dtype = network->graph->values.at[operand].dtype;
            gen_flow_add_edge(&network->flow, FLOW_SOURCE, in_of(id), bytes_of(network, &value->shape, dtype));
            continue;
        }
        const int64_t part = i == 0 ? cost_of_part(network, id) : FLOW_ENDLESS;
        gen_flow_add_edge(&network->flow, out_of(operand), in_of(id), part);
    }
}

/* Stored as it was found, rather than computed again. */
static bool is_once(const Graph *graph, const Value *value) {
    return gen_grad_is_reduction(value) || gen_grad_is_found_once(graph, value);
}

static void look_at_operands(Network *network, uint32_t id) {
    const Value *value = &network->graph->values.at[id];
    const bool input = value->op == OP_INPUT;
    network->moved[id] = input;
    network->fragile[id] = input && gen_grad_written_over(network->from, value->tensor) != IR_NONE;
    for (uint32_t i = 0; i < ir_value_operand_count(value); i++) {
        const uint32_t operand = ir_value_operand(value, i);
        if (operand == IR_NONE) continue;
        network->moved[id] |= network->moved[operand];
        const bool safe = is_once(network->graph, value) || (i == 0 && is_left_alone(network, value));
        network->fragile[id] |= network->fragile[operand] && !safe;
    }
}

static void add_values(Network *network, const bool *sinks) {
    const Graph *graph = network->graph;
    for (uint32_t i = 0; i < graph->values.count; i++) {
        const Value *value = &graph->values.at[i];
        if (network->backward[i]) continue;
        look_at_operands(network, i);
        if (!network->moved[i]) continue;
        gen_flow_add_edge(&network->flow, in_of(i), out_of(i), cost_of(network, i));
        if (sinks[i]) gen_flow_add_edge(&network->flow, out_of(i), FLOW_SINK, FLOW_ENDLESS);
        if (value->op == OP_INPUT || (is_once(graph, value) && !network->again[i]))
            gen_flow_add_edge(&network->flow, FLOW_SOURCE, in_of(i), FLOW_ENDLESS);
        else
            add_operands(network, i);
    }
}

/* The input whose reading no cut can avoid, which the forward graph writes over; or what is computed again of it, where
 * a cut that may read that was `possible`. */
static _Noreturn void refuse_written(const Network *network, bool possible) {
    uint32_t input = IR_NONE, again = IR_NONE;
    for (uint32_t node = FLOW_SINK; node != FLOW_SOURCE; node = gen_flow_before(&network->flow, node)) {
        if (node < FLOW_FIRST || node >= in_of(network->graph->values.count)) continue;
        input = (node - FLOW_FIRST) / 2;
        if (network->again[input]) again = input;
    }
    IR_REQUIRE(network->job, input != IR_NONE && network->graph->values.at[input].op == OP_INPUT);
    const uint32_t tensor = network->graph->values.at[input].tensor;
    const uint32_t output = gen_grad_written_over(network->from, tensor);
    IR_REQUIRE(network->job, output != IR_NONE && (!possible || again != IR_NONE));
    const char *written = network->from->outputs.at[output].name, *over = network->from->inputs.at[tensor].name;
    if (possible) {
        const Value *value = &network->graph->values.at[again];
        ir_stop_at(network->job, STATUS_USAGE, value->place,
                   "--recompute leaves the gradients nothing to start from: '%s' is made of the input '%s', which '%s' "
                   "is written over",
                   gen_grad_word(value), over, written);
    }
    ir_stop_at(network->job, STATUS_REJECTED, network->from->outputs.at[output].place,
               "'%s' is written over the input '%s', which the gradients need: drop its inplace, or --save a node that "
               "they can use instead",
               written, over);
}

/* ---- names ---- */

/* OWNER_name of several norms, or what is spelled much like it. */
static const char *meant(Job *job, const char *name, const char *const *names, uint32_t count) {
    const char *end = ir_format(job, "_%s", name);
    Text text = ir_text(job);
    for (uint32_t i = 0; i < count; i++) {
        const size_t length = strlen(names[i]), part = strlen(end);
        if (length > part && !strcmp(names[i] + length - part, end))
            ir_text_format(&text, "%s'%s'", text.count ? " or " : "; did you mean ", names[i]);
    }
    const char *near = text.count ? NULL : ir_near_miss(job, name, names, count);
    if (near) ir_text_format(&text, "; did you mean '%s'", near);
    if (text.count) ir_text_put(&text, "?");
    return ir_text_string(&text);
}

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
    ir_stop_at(joint->job, STATUS_USAGE, (Place){0, 0}, "--%s=%s: no value that the gradients use has this name%s",
               option, name, meant(joint->job, name, names.at, names.count));
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

static void spread_to_views(Job *job, const Graph *graph, const bool *stored, bool *again) {
    IR_REQUIRE(job, graph->values.at);
    for (uint32_t i = 0; i < graph->values.count; i++) {
        const Value *value = &graph->values.at[i];
        const uint32_t of = gen_grad_is_view(value) ? value->arg[0] : IR_NONE;
        again[i] = again[i] || (of != IR_NONE && again[of] && !stored[i]);
    }
}

/* What has no name is part of the expression that uses it, which is computed again whole; and so are views of it. */
static void spread_again(const Joint *joint, const bool *stored, bool *again) {
    const Graph *graph = joint->graph;
    for (uint32_t i = graph->values.count; i-- > 0;) {
        for (uint32_t k = 0; again[i] && k < ir_value_operand_count(&graph->values.at[i]); k++) {
            const uint32_t id = ir_value_operand(&graph->values.at[i], k);
            const Value *operand = id == IR_NONE ? NULL : &graph->values.at[id];
            if (operand && !operand->name && operand->op != OP_INPUT && operand->op != OP_SCALAR) again[id] = true;
        }
    }
    spread_to_views(joint->job, graph, stored, again);
}

/* Without masks of the largest elements: they are the same wherever derivatives are taken. */
static void mark_everything(const Network *network) {
    for (uint32_t i = 0; i < network->graph->values.count; i++) {
        const Value *value = &network->graph->values.at[i];
        const bool given = value->op == OP_INPUT || value->op == OP_SCALAR;
        network->again[i] |= !given && !network->backward[i] && !gen_grad_is_found_once(network->graph, value);
    }
}

static const bool *find_backward(const Joint *joint) {
    const Graph *graph = joint->graph;
    bool *backward = IR_NEW_ARRAY(joint->job, bool, graph->values.count + 1);
    for (uint32_t i = 0; i < graph->values.count; i++) {
        const Value *value = &graph->values.at[i];
        backward[i] = value->op == OP_INPUT && value->tensor >= joint->from->inputs.count;
        for (uint32_t k = 0; k < ir_value_operand_count(value); k++) {
            const uint32_t id = ir_value_operand(value, k);
            backward[i] |= id != IR_NONE && backward[id];
        }
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

/* Outputs of which a part is read. */
static void read_parts(const Network *network, Cut *cut) {
    const Graph *graph = network->graph;
    for (uint32_t i = 0; i < graph->values.count; i++) {
        if (graph->values.at[i].op != OP_INDEX || network->backward[i] || !network->moved[i]) continue;
        const bool cut_here = gen_flow_is_behind(&network->flow, in_of(i)) &&
                              !gen_flow_is_behind(&network->flow, out_of(graph->values.at[i].arg[0]));
        if (cut_here) cut->read[source_of(graph, i)] = true;
    }
}

/* The value with a name of whose elements a view is made, each once; IR_NONE: there is none. */
static uint32_t named_whole(const Graph *graph, uint32_t id) {
    while (!graph->values.at[id].name) {
        const Value *value = &graph->values.at[id];
        if (!gen_grad_takes_all(graph, value)) return IR_NONE;
        id = value->arg[0];
    }
    return graph->values.at[id].op == OP_INPUT ? IR_NONE : id;
}

/* A node is saved as it is, rather than with other dims. */
static void read_named(const Network *network, Cut *cut) {
    for (uint32_t i = network->graph->values.count; i-- > 0;) {
        if (!cut->read[i] || gen_grad_output_with(network->joint, i) != IR_NONE) continue;
        const uint32_t named = named_whole(network->graph, i);
        if (named == IR_NONE || named == i || network->again[named]) continue;
        cut->read[i] = false;
        cut->read[named] = true;
    }
}

/* False: there is none without an input that is written over; gen_grad_cut says which. */
static bool least_cut(Joint *joint, Network *network, Cut *cut) {
    const uint32_t count = joint->graph->values.count;
    network->flow = gen_flow_create(joint->job, 2 * count);
    gen_flow_add_nodes(&network->flow, 2 * count);
    network->moved = IR_NEW_ARRAY(joint->job, bool, count + 1);
    network->fragile = IR_NEW_ARRAY(joint->job, bool, count + 1);
    add_values(network, find_sinks(joint, network->backward));
    if (!gen_flow_fill(&network->flow)) return false;
    gen_flow_cut(&network->flow);
    *cut = (Cut){.backward = network->backward};
    cut->read = IR_NEW_ARRAY(joint->job, bool, count + 1);
    cut->needed = IR_NEW_ARRAY(joint->job, bool, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        const bool input = joint->graph->values.at[i].op == OP_INPUT;
        const bool behind = gen_flow_is_behind(&network->flow, out_of(i));
        cut->read[i] = input || (behind && !gen_flow_is_behind(&network->flow, in_of(i)));
        cut->read[i] = cut->read[i] && !network->backward[i] && network->moved[i];
    }
    read_parts(network, cut);
    read_named(network, cut);
    find_needed(joint, cut);
    for (uint32_t i = 0; i < count; i++) cut->read[i] = cut->read[i] && cut->needed[i];
    return true;
}

/* What a value without a name is called: by the name or the op of what it is a view or a cast of, or by its own op. */
static const char *word_for(Job *job, const Graph *graph, uint32_t id) {
    const Value *value = &graph->values.at[id];
    while (!value->name && gen_grad_is_view(value)) value = &graph->values.at[value->arg[0]];
    return ir_format(job, "saved_%s", gen_grad_word(value));
}

/* Names for what the forward graph gets to store. */
static void name_saved(Joint *joint, const Cut *cut) {
    for (uint32_t i = 0; i < joint->graph->values.count; i++)
        if (cut->read[i] && joint->graph->values.at[i].op != OP_INPUT && gen_grad_output_with(joint, i) == IR_NONE)
            gen_grad_name(joint, i, NULL, word_for(joint->job, joint->graph, i));
}

/* Also where nothing can be stored yet, since some node has to be named first. */
static void name_found_once(Joint *joint, const bool *backward) {
    for (uint32_t i = 0; i < joint->graph->values.count; i++) {
        const Value *value = &joint->graph->values.at[i];
        if (!backward[i] && !value->name && gen_grad_is_found_once(joint->graph, value))
            gen_grad_name(joint, i, NULL, word_for(joint->job, joint->graph, i));
    }
}

Cut gen_grad_cut(Joint *joint) {
    Job *job = joint->job;
    const GradOptions *options = joint->options;
    const uint32_t count = joint->graph->values.count;
    Network network = {.job = job, .joint = joint, .graph = joint->graph, .from = joint->from};
    Cut cut;
    network.backward = find_backward(joint);
    gen_grad_look_at_rounding(joint, network.backward);
    network.again = IR_NEW_ARRAY(job, bool, count + 1);
    network.stored = IR_NEW_ARRAY(job, bool, count + 1);
    const bool possible = least_cut(joint, &network, &cut);
    bool is_cut = possible;
    if (is_cut)
        name_saved(joint, &cut);
    else
        name_found_once(joint, network.backward);
    if (options->save.count || options->recompute.count ||
        options->recompute_all) { /* which may use the names that it gave */
        mark_named(joint, &options->save, "save", network.backward, network.stored);
        mark_named(joint, &options->recompute, "recompute", network.backward, network.again);
        spread_again(joint, network.stored, network.again);
        if (options->recompute_all) mark_everything(&network);
        is_cut = least_cut(joint, &network, &cut);
        if (is_cut) name_saved(joint, &cut);
    }
    if (!is_cut) refuse_written(&network, possible);
    for (uint32_t i = 0; i < count; i++)
        if (network.stored[i] && !cut.read[i])
            ir_stop_at(job, STATUS_USAGE, (Place){0, 0}, "--save=%s: the gradients do not need it",
                       joint->graph->values.at[i].name);
    return cut;
}
