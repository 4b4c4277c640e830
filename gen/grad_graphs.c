/* The two graphs. In: the simplified joint graph and the cut. Out: the backward graph, with what it reads as inputs;
 * the forward graph with what it must save as outputs; their comments; and the lists of what is read and computed
 * again. */
#include "gen/grad_build.h"

#include <string.h>

typedef struct Making {
    Joint *joint;
    const Cut *cut;
    Grad *grad;
    const char **stored; /* of each joint value that is read and no input: the output that holds it */
    bool *is_new;        /* of those: the forward graph gets this output */
} Making;

/* ---- sizes of a graph, all of them ---- */

typedef void (*PolyVisit)(void *state, Poly *poly);

static void visit_shape(Shape *shape, PolyVisit visit, void *state) {
    for (uint32_t i = 0; i < shape->rank; i++) visit(state, &shape->extent[i]);
}

static void visit_items(Item *items, uint32_t count, PolyVisit visit, void *state) {
    for (uint32_t i = 0; i < count; i++) {
        visit(state, &items[i].start);
        visit(state, &items[i].stop);
    }
}

static void visit_args(Job *job, Arg *args, uint32_t count, PolyVisit visit, void *state) {
    for (uint32_t i = 0; i < count; i++) {
        visit(state, &args[i].size);
        if (!args[i].count) continue;
        Arg *items = IR_NEW_ARRAY(job, Arg, args[i].count);
        memcpy(items, args[i].item, args[i].count * sizeof *items);
        visit_args(job, items, args[i].count, visit, state);
        args[i].item = items;
    }
}

static void visit_tensors(Tensor *tensors, uint32_t count, PolyVisit visit, void *state) {
    for (uint32_t i = 0; i < count; i++) {
        visit_shape(&tensors[i].shape, visit, state);
        for (uint32_t d = 0; d < tensors[i].shape.rank; d++) visit(state, &tensors[i].stride[d]);
    }
}

static void visit_graph(Job *job, Graph *graph, PolyVisit visit, void *state) {
    visit_tensors(graph->inputs.at, graph->inputs.count, visit, state);
    visit_tensors(graph->outputs.at, graph->outputs.count, visit, state);
    for (uint32_t i = 0; i < graph->values.count; i++) {
        Value *value = &graph->values.at[i];
        visit(state, &value->size);
        visit_shape(&value->shape, visit, state);
        visit_items(value->items, value->item_count, visit, state);
        if (value->op == OP_COMPOSITE) visit_args(job, value->call->args, value->call->count, visit, state);
    }
}

typedef struct DimUse {
    Job *job;
    const Graph *from;
    bool *used;
    uint32_t *map;
} DimUse;

static void mark_symbols(void *state, Poly *poly) {
    DimUse *use = state;
    for (uint32_t t = 0; t < poly->count; t++)
        for (uint32_t k = 0; k < IR_MAX_DEGREE && poly->terms[t].symbol[k] != IR_NO_SYMBOL; k++)
            use->used[poly->terms[t].symbol[k]] = true;
}

/* Symbols keep their order, so the terms do too. */
static void map_symbols(void *state, Poly *poly) {
    DimUse *use = state;
    Term *terms = IR_NEW_ARRAY(use->job, Term, poly->count + 1);
    for (uint32_t t = 0; t < poly->count; t++) {
        terms[t] = poly->terms[t];
        for (uint32_t k = 0; k < IR_MAX_DEGREE && terms[t].symbol[k] != IR_NO_SYMBOL; k++)
            terms[t].symbol[k] = (uint16_t)use->map[terms[t].symbol[k]];
    }
    poly->terms = terms;
}

/* The dims that the graph's sizes name, and those that a quotient such as C/G is made of. */
static void take_dims(Job *job, const Graph *from, Graph *graph) {
    DimUse use = {.job = job, .from = from};
    use.used = IR_NEW_ARRAY(job, bool, from->dims.count + 1);
    use.map = IR_NEW_ARRAY(job, uint32_t, from->dims.count + 1);
    visit_graph(job, graph, mark_symbols, &use);
    for (uint32_t i = 0; i < from->dims.count; i++)
        for (uint32_t k = 0; k < from->dims.count && from->dims.at[i].derived && use.used[i]; k++)
            use.used[k] = use.used[k] || (!from->dims.at[k].derived &&
                                          gen_grad_has_word(from->dims.at[i].name, from->dims.at[k].name));
    for (uint32_t i = 0; i < from->dims.count; i++) {
        if (!use.used[i]) continue;
        use.map[i] = graph->dims.count;
        *IR_PUSH(job, &graph->dims) = from->dims.at[i];
    }
    visit_graph(job, graph, map_symbols, &use);
}

/* ---- what is stored ---- */

/* Of a node that is an output too, which is not what is read (it was rounded, or added to what it held). */
static const char *name_of_new(Joint *joint, const Value *value) {
    for (uint32_t o = 0; o < joint->from->outputs.count; o++)
        if (!strcmp(joint->from->outputs.at[o].name, value->name))
            return gen_grad_free_name(joint, ir_format(joint->job, "%s_exact", value->name));
    return value->name;
}

static void choose_stored(Making *making) {
    Joint *joint = making->joint;
    const uint32_t count = joint->graph->values.count;
    making->stored = IR_NEW_ARRAY(joint->job, const char *, count + 1);
    making->is_new = IR_NEW_ARRAY(joint->job, bool, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        const Value *value = &joint->graph->values.at[i];
        if (!making->cut->read[i]) continue;
        const uint32_t output = gen_grad_output_with(joint, i);
        const bool input = value->op == OP_INPUT; /* written over: a slice beside that is read */
        if (input && (output == IR_NONE || gen_grad_written_over(joint->from, value->tensor) == IR_NONE)) continue;
        if (output != IR_NONE) {
            making->stored[i] = joint->from->outputs.at[output].name;
            continue;
        }
        making->stored[i] = name_of_new(joint, value);
        making->is_new[i] = true;
    }
}

/* ---- the backward graph ---- */

static void add_input(Making *making, Graph *graph, uint32_t id, const Tensor *tensor, uint32_t *map) {
    Job *job = making->joint->job;
    const Value *from = &making->joint->graph->values.at[id];
    map[id] = ir_graph_add(job, graph, OP_INPUT, tensor->dtype, from->place);
    Value *value = &graph->values.at[map[id]];
    value->shape = tensor->shape;
    value->tensor = graph->inputs.count;
    value->name = tensor->name;
    *IR_PUSH(job, &graph->inputs) = *tensor;
}

static void note_read(Making *making, GradSource source, uint32_t id, const Tensor *tensor) {
    GradRead *read = IR_PUSH(making->joint->job, &making->grad->reads);
    *read = (GradRead){.source = source, .name = tensor->name, .dtype = tensor->dtype, .shape = tensor->shape};
    read->stored = gen_grad_bytes(making->joint->job, &tensor->shape, tensor->dtype);
    read->bytes = gen_grad_read_bytes(making->joint, making->cut, id, tensor->dtype, &read->part);
}

/* The tensor in which the forward graph leaves a value that is no input. */
static Tensor stored_tensor(Making *making, uint32_t id) {
    Joint *joint = making->joint;
    const Value *value = &joint->graph->values.at[id];
    const uint32_t output = making->is_new[id] ? IR_NONE : gen_grad_output_with(joint, id);
    Tensor tensor = {.name = making->stored[id], .dtype = value->dtype, .shape = value->shape, .place = value->place};
    if (output != IR_NONE) tensor = joint->from->outputs.at[output];
    if (output == IR_NONE) ir_tensor_make_contiguous(joint->job, &tensor);
    tensor.inplace = IR_NONE;
    tensor.inplace_items = NULL;
    tensor.inplace_item_count = 0;
    tensor.accumulate = false;
    tensor.value = 0;
    return tensor;
}

/* The forward graph's inputs first, then what it stores, then the gradients that come in. */
static void add_inputs(Making *making, Graph *graph, uint32_t *map) {
    const Joint *joint = making->joint;
    const uint32_t inputs = joint->from->inputs.count;
    for (int turn = 0; turn < 3; turn++) {
        for (uint32_t i = 0; i < joint->graph->values.count; i++) {
            const Value *value = &joint->graph->values.at[i];
            const bool seed = value->op == OP_INPUT && value->tensor >= inputs;
            const int own = seed ? 2 : making->stored[i] ? 1 : 0;
            if (!making->cut->needed[i] || own != turn || (!seed && !making->cut->read[i])) continue;
            const Tensor tensor = own == 1 ? stored_tensor(making, i) : joint->graph->inputs.at[value->tensor];
            add_input(making, graph, i, &tensor, map);
            const DType dtype = ir_compute_dtype(value->dtype); /* an f64 value may be stored in f32 */
            if (ir_compute_dtype(tensor.dtype) != dtype)
                map[i] = ir_graph_cast(joint->job, graph, map[i], dtype, value->place);
            if (!seed)
                note_read(making, own == 0 ? GRAD_INPUT : making->is_new[i] ? GRAD_SAVED : GRAD_OUTPUT, i, &tensor);
        }
    }
}

static void add_scalars(Making *making, Graph *graph, uint32_t *map) {
    const Joint *joint = making->joint;
    for (uint32_t i = 0; i < joint->graph->values.count; i++) {
        const Value *value = &joint->graph->values.at[i];
        if (value->op != OP_SCALAR || !making->cut->needed[i]) continue;
        map[i] = ir_graph_add(joint->job, graph, OP_SCALAR, value->dtype, value->place);
        graph->values.at[map[i]] = *value;
        graph->values.at[map[i]].tensor = graph->scalars.count;
        *IR_PUSH(joint->job, &graph->scalars) = joint->graph->scalars.at[value->tensor];
    }
}

/* What the forward outputs are made of: not what derivatives alone compute. */
static bool *find_forward(const Joint *joint) {
    const Graph *graph = joint->graph;
    bool *forward = IR_NEW_ARRAY(joint->job, bool, graph->values.count + 1);
    for (uint32_t i = 0; i < joint->from->outputs.count; i++) forward[graph->outputs.at[i].value] = true;
    for (uint32_t i = graph->values.count; i-- > 0;)
        if (forward[i]) ir_value_mark_args(&graph->values.at[i], forward);
    return forward;
}

/* Forward values that the backward graph uses, themselves or through views and casts, and does not read. */
static bool *find_used(const Making *making, const bool *forward) {
    const Joint *joint = making->joint;
    const Graph *graph = joint->graph;
    bool *used = IR_NEW_ARRAY(joint->job, bool, graph->values.count + 1);
    for (uint32_t i = joint->from->outputs.count; i < graph->outputs.count; i++)
        used[graph->outputs.at[i].value] = true;
    for (uint32_t i = graph->values.count; i-- > 0;) {
        const bool made = making->cut->needed[i] && !making->cut->read[i];
        if (made && (!forward[i] || (used[i] && gen_grad_is_view(&graph->values.at[i]))))
            ir_value_mark_args(&graph->values.at[i], used);
        used[i] = used[i] && made && forward[i];
    }
    return used;
}

/* As the forward graph's file calls it, else as the backward one's does (node), else by its operation. */
static const char *name_in_file(const Joint *joint, uint32_t id, const char *node) {
    for (uint32_t i = 0; i < joint->from->values.count; i++)
        if (joint->of_from[i] == id && joint->from->values.at[i].name) return joint->from->values.at[i].name;
    return node ? node : gen_grad_word(&joint->graph->values.at[id]);
}

/* map: of joint values, to those of the backward graph. */
static void note_recomputed(Making *making, const Graph *backward, const uint32_t *map) {
    Joint *joint = making->joint;
    Text file = ir_text(joint->job);
    const GraphNotes notes = {.nodes = IR_NEW_ARRAY(joint->job, const char *, backward->values.count + 1)};
    ir_graph_write(&file, backward, &notes);
    const bool *used = find_used(making, find_forward(joint));
    for (uint32_t i = 0; i < joint->graph->values.count; i++) {
        const Value *value = &joint->graph->values.at[i];
        const bool leaf = value->op == OP_CONST || value->op == OP_SIZE || value->op == OP_IOTA ||
                          value->op == OP_SCALAR || value->op == OP_INPUT;
        if (!used[i] || leaf || gen_grad_is_view(value)) continue;
        *IR_PUSH(joint->job, &making->grad->recomputed) = (GradTensor){
            name_in_file(joint, i, notes.nodes[map[i]]), gen_grad_bytes(joint->job, &value->shape, value->dtype)};
    }
}

static void make_backward(Making *making) {
    Joint *joint = making->joint;
    const Graph *from = joint->graph;
    Graph *graph = ir_graph_create(joint->job, gen_grad_fit(joint, joint->from->name, "_bwd"));
    uint32_t *map = IR_NEW_ARRAY(joint->job, uint32_t, from->values.count + 1);
    memset(map, 0xff, from->values.count * sizeof *map);
    for (uint32_t i = 0; i < joint->from->types.count; i++)
        *IR_PUSH(joint->job, &graph->types) = joint->from->types.at[i];
    add_inputs(making, graph, map);
    add_scalars(making, graph, map);
    for (uint32_t i = 0; i < from->values.count; i++) {
        const Value *value = &from->values.at[i];
        if (!making->cut->needed[i] || map[i] != IR_NONE) continue;
        map[i] = ir_graph_add(joint->job, graph, value->op, value->dtype, value->place);
        Value *own = &graph->values.at[map[i]];
        *own = ir_value_mapped(joint->job, value, map);
        if (value->op == OP_INDEX || value->op == OP_RESHAPE) /* of what is read as it was rounded too */
            own->dtype = graph->values.at[own->arg[0]].dtype;
    }
    for (uint32_t i = joint->from->outputs.count; i < from->outputs.count; i++) {
        Tensor *output = IR_PUSH(joint->job, &graph->outputs);
        *output = from->outputs.at[i];
        output->value = map[output->value];
    }
    take_dims(joint->job, from, graph);
    note_recomputed(making, graph, map);
    making->grad->backward = graph;
}

/* ---- the forward graph ---- */

/* A joint value in the forward graph: the one that is there, or its expression again. */
static uint32_t forward_value(Making *making, Graph *graph, uint32_t id, uint32_t *map) {
    Joint *joint = making->joint;
    const Value *value = &joint->graph->values.at[id];
    if (map[id] != IR_NONE) return map[id];
    for (uint32_t i = 0; i < ir_value_operand_count(value); i++) {
        const uint32_t operand = ir_value_operand(value, i);
        if (operand != IR_NONE) (void)forward_value(making, graph, operand, map);
    }
    map[id] = ir_graph_add(joint->job, graph, value->op, value->dtype, value->place);
    graph->values.at[map[id]] = ir_value_mapped(joint->job, value, map);
    return map[id];
}

static void make_forward(Making *making) {
    Joint *joint = making->joint;
    Job *job = joint->job;
    const Graph *from = joint->from;
    Graph *graph = ir_graph_create(job, gen_grad_fit(joint, from->name, "_fwd"));
    for (uint32_t i = 0; i < from->types.count; i++) *IR_PUSH(job, &graph->types) = from->types.at[i];
    for (uint32_t i = 0; i < from->dims.count; i++) *IR_PUSH(job, &graph->dims) = from->dims.at[i];
    for (uint32_t i = 0; i < from->inputs.count; i++) *IR_PUSH(job, &graph->inputs) = from->inputs.at[i];
    for (uint32_t i = 0; i < from->scalars.count; i++) *IR_PUSH(job, &graph->scalars) = from->scalars.at[i];
    for (uint32_t i = 0; i < from->outputs.count; i++) *IR_PUSH(job, &graph->outputs) = from->outputs.at[i];
    for (uint32_t i = 0; i < from->values.count; i++) *IR_PUSH(job, &graph->values) = from->values.at[i];
    uint32_t *map = IR_NEW_ARRAY(job, uint32_t, joint->graph->values.count + 1);
    memset(map, 0xff, joint->graph->values.count * sizeof *map);
    for (uint32_t i = from->values.count; i-- > 0;) {
        const uint32_t id = joint->of_from[i]; /* several may be one value there: the named one stands for it */
        if (id != IR_NONE && (map[id] == IR_NONE || from->values.at[i].name || !from->values.at[map[id]].name))
            map[id] = i;
    }
    for (uint32_t i = 0; i < joint->graph->values.count; i++) {
        if (!making->cut->read[i] || !making->is_new[i]) continue;
        const uint32_t id = forward_value(making, graph, i, map);
        Value *value = &graph->values.at[id];
        if (!value->name) value->name = making->stored[i];
        Tensor output = stored_tensor(making, i);
        output.value = id;
        *IR_PUSH(job, &graph->outputs) = output;
    }
    making->grad->forward = graph;
}

/* ---- comments ---- */

static const char *list_names(Joint *joint, const Tensor *tensors, uint32_t first, uint32_t count) {
    Text text = ir_text(joint->job);
    for (uint32_t i = first; i < count; i++)
        ir_text_format(&text, "%s%s", i == first ? "" : i + 1 == count ? " and " : ", ", tensors[i].name);
    return ir_text_string(&text);
}

static void write_notes(Making *making) {
    Joint *joint = making->joint;
    Grad *grad = making->grad;
    Job *job = joint->job;
    const Graph *backward = grad->backward, *forward = grad->forward;
    const char **inputs = IR_NEW_ARRAY(job, const char *, backward->inputs.count + 1);
    const char **outputs = IR_NEW_ARRAY(job, const char *, forward->outputs.count + 1);
    const uint32_t kept = joint->from->outputs.count;
    for (uint32_t i = 0; i < grad->reads.count; i++)
        inputs[i] = grad->reads.at[i].source == GRAD_INPUT    ? NULL
                    : grad->reads.at[i].source == GRAD_OUTPUT ? ir_format(job, "as %s stores it", forward->name)
                                                              : ir_format(job, "saved by %s", forward->name);
    for (uint32_t i = kept; i < forward->outputs.count; i++) outputs[i] = ir_format(job, "for %s", backward->name);
    grad->backward_notes.inputs = inputs;
    grad->forward_notes.outputs = outputs;
    grad->backward_notes.head =
        ir_format(job, "Gradients of %s: %s from %s.", joint->from->name,
                  list_names(joint, backward->outputs.at, 0, backward->outputs.count),
                  list_names(joint, backward->inputs.at, grad->reads.count, backward->inputs.count));
    grad->forward_notes.head =
        forward->outputs.count == kept
            ? ir_format(job, "%s as it is: %s needs nothing more.", joint->from->name, backward->name)
            : ir_format(job, "%s, which also stores %s for its gradients (%s).", joint->from->name,
                        list_names(joint, forward->outputs.at, kept, forward->outputs.count), backward->name);
}

void gen_grad_make_graphs(Joint *joint, const Cut *cut, Grad *grad) {
    Making making = {.joint = joint, .cut = cut, .grad = grad};
    choose_stored(&making);
    make_backward(&making);
    make_forward(&making);
    write_notes(&making);
}
