/* Reverse mode. In: a Graph as parse makes it, and what is asked for. Out: a Grad, whose two graphs the other parts
 * make: this one copies the forward graph into a joint one, walks back from the outputs, and keeps names and the sums
 * of gradients. Left alone: the derivatives of each op (gen/grad_ops.c, gen/grad_composite.c), what is saved
 * (gen/grad_save.c), the graphs (gen/grad_graphs.c). */
#include "gen/grad_build.h"

#include <string.h>

#define FLAT ", or only through what is locally constant (integers, comparisons, floor and its like)"

/* ---- what gradients flow through ---- */

static bool has_active_arg(const Value *value, const bool *active) {
    for (uint32_t i = 0; i < value->arg_count; i++) {
        const bool flat = value->op < OP_PRIMITIVES && !strcmp(ir_op(value->op)->derivative_text[i], "0");
        if (!flat && active && active[value->arg[i]]) return true;
    }
    for (uint32_t i = 0; value->op == OP_COMPOSITE && i < ir_value_operand_count(value); i++) {
        const uint32_t id = ir_value_operand(value, i);
        if (id != IR_NONE && active && active[id]) return true;
    }
    return false;
}

bool gen_grad_flows(const Joint *joint, const Value *value, const bool *active) {
    if (ir_dtype(value->dtype)->kind != KIND_FLOAT) return false;
    if (value->op != OP_INPUT) return has_active_arg(value, active);
    return value->tensor < joint->from->inputs.count && joint->wanted[value->tensor];
}

bool gen_grad_is_active(Joint *joint, uint32_t id) {
    while (joint->active.count <= id) {
        const Value *value = &joint->graph->values.at[joint->active.count];
        const bool active = !joint->gradient && gen_grad_flows(joint, value, joint->active.at);
        *IR_PUSH(joint->job, &joint->active) = active;
    }
    return joint->active.at[id];
}

/* ---- names ---- */

static bool is_taken(const Joint *joint, const char *name) {
    for (uint32_t i = 0; i < joint->taken.count; i++)
        if (!strcmp(joint->taken.at[i], name)) return true;
    return false;
}

const char *gen_grad_fit(const Joint *joint, const char *name, const char *end) {
    const size_t room = GEN_MAX_NAME - strlen(end), count = strlen(name);
    return ir_format(joint->job, "%.*s%s", (int)(count < room ? count : room), name, end);
}

const char *gen_grad_free_name(Joint *joint, const char *base) {
    const char *own = gen_grad_fit(joint, base, "");
    for (uint32_t i = 2; is_taken(joint, own); i++) own = gen_grad_fit(joint, base, ir_format(joint->job, "_%u", i));
    *IR_PUSH(joint->job, &joint->taken) = own;
    return own;
}

void gen_grad_name(Joint *joint, uint32_t id, const char *owner, const char *name) {
    Value *value = &joint->graph->values.at[id];
    const bool leaf = value->op == OP_CONST || value->op == OP_SIZE || value->op == OP_SCALAR || value->op == OP_INPUT;
    if (value->name || leaf) return;
    value->name =
        gen_grad_free_name(joint, owner && joint->several ? ir_format(joint->job, "%s_%s", owner, name) : name);
}

const char *gen_grad_word(const Value *value) {
    return value->name                 ? value->name
           : value->op == OP_COMPOSITE ? value->call->callee
           : value->op == OP_REDUCE    ? ir_reduction(value->reduction)->language
                                       : ir_op_name(value->op);
}

/* Those of the file. */
static void take_names(Joint *joint) {
    const Graph *from = joint->from;
    for (uint32_t i = 0; i < from->types.count; i++) *IR_PUSH(joint->job, &joint->taken) = from->types.at[i].name;
    for (uint32_t i = 0; i < from->dims.count; i++) *IR_PUSH(joint->job, &joint->taken) = from->dims.at[i].name;
    for (uint32_t i = 0; i < from->outputs.count; i++) *IR_PUSH(joint->job, &joint->taken) = from->outputs.at[i].name;
    for (uint32_t i = 0; i < from->values.count; i++)
        if (from->values.at[i].name) *IR_PUSH(joint->job, &joint->taken) = from->values.at[i].name;
}

static const char *prefix_of(const GradOptions *options) { return options->prefix ? options->prefix : GEN_GRADIENT; }

const char *gen_gradient_name(Job *job, const GradOptions *options, const char *of) {
    return ir_format(job, "%s%s", prefix_of(options), of);
}

const char *gen_gradient_owner(const GradOptions *options, const char *name) {
    const char *prefix = prefix_of(options);
    const size_t count = strlen(prefix);
    return strncmp(name, prefix, count) != 0 ? NULL : name + count;
}

/* Parts of composites do not get the names of gradients: of all outputs, since one that is saved would be read as the
 * gradient that comes in. */
static void reserve_gradients(Joint *joint) {
    const Graph *from = joint->from;
    joint->file_names = joint->taken.count;
    for (uint32_t i = 0; i < from->outputs.count; i++)
        *IR_PUSH(joint->job, &joint->taken) = gen_gradient_name(joint->job, joint->options, from->outputs.at[i].name);
    for (uint32_t i = 0; i < from->inputs.count; i++)
        if (joint->wanted[i])
            *IR_PUSH(joint->job, &joint->taken) =
                gen_gradient_name(joint->job, joint->options, from->inputs.at[i].name);
}

/* That of an output whose gradient does not come in is for its node's. */
static void release(Joint *joint, const char *name) {
    const char **reserved = joint->taken.at + joint->file_names;
    for (uint32_t i = 0; i < joint->from->outputs.count; i++)
        if (!joint->taken_outputs[i] && !strcmp(reserved[i], name)) reserved[i] = "";
}

/* Whether the file has the name, or another gradient. */
static bool is_claimed(const Joint *joint, const char *name) {
    const Graph *graph = joint->graph;
    for (uint32_t i = 0; i < joint->file_names; i++)
        if (!strcmp(joint->taken.at[i], name)) return true;
    return ir_tensor_find(graph->inputs.at, graph->inputs.count, name) != IR_NONE ||
           ir_tensor_find(graph->outputs.at, graph->outputs.count, name) != IR_NONE;
}

static const char *gradient_name(Joint *joint, const char *of, Place place) {
    const char *name = gen_gradient_name(joint->job, joint->options, of);
    if (strlen(name) > GEN_MAX_NAME)
        ir_stop_at(joint->job, STATUS_REJECTED, place,
                   "the gradient of '%s' would have a name of more than %d characters", of, GEN_MAX_NAME);
    if (is_claimed(joint, name))
        ir_stop_at(
            joint->job, STATUS_REJECTED, place,
            "the gradient of '%s' is called %s, and the graph has that name (another --prefix gives other names)", of,
            name);
    return name;
}

/* ---- what is asked for ---- */

static _Noreturn void refuse_name(Joint *joint, const char *name, const Tensor *tensors, uint32_t count,
                                  const char *what) {
    const char **names = IR_NEW_ARRAY(joint->job, const char *, count + 1);
    const Graph *from = joint->from;
    for (uint32_t i = 0; i < count; i++) names[i] = tensors[i].name;
    const char *near = ir_near_miss(joint->job, name, names, count);
    const char *is = "";
    for (uint32_t i = 0; i < from->values.count; i++)
        if (from->values.at[i].name && !strcmp(from->values.at[i].name, name)) is = ": it is a node";
    if (ir_tensor_find(from->inputs.at, from->inputs.count, name) != IR_NONE) is = ": it is an input";
    if (ir_tensor_find(from->outputs.at, from->outputs.count, name) != IR_NONE) is = ": it is an output";
    if (ir_tensor_find(from->scalars.at, from->scalars.count, name) != IR_NONE)
        is = ": it is a scalar; what needs a gradient is a tensor, f32[] for one number";
    ir_stop_at(joint->job, STATUS_USAGE, (Place){0, 0}, "'%s' is no %s of the graph%s%s%s%s", name, what, is,
               near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static void read_wrt(Joint *joint, const Names *wrt) {
    const Graph *from = joint->from;
    joint->wanted = IR_NEW_ARRAY(joint->job, bool, from->inputs.count + 1);
    for (uint32_t i = 0; i < from->inputs.count && !wrt->count; i++)
        joint->wanted[i] = ir_dtype(from->inputs.at[i].dtype)->kind == KIND_FLOAT;
    for (uint32_t i = 0; i < wrt->count; i++) {
        const uint32_t input = ir_tensor_find(from->inputs.at, from->inputs.count, wrt->at[i]);
        if (input == IR_NONE) refuse_name(joint, wrt->at[i], from->inputs.at, from->inputs.count, "input");
        const Tensor *tensor = &from->inputs.at[input];
        if (ir_dtype(tensor->dtype)->kind != KIND_FLOAT)
            ir_stop_at(joint->job, STATUS_REJECTED, tensor->place, "'%s' is of %s: only floats have gradients",
                       tensor->name, ir_dtype(tensor->dtype)->name);
        joint->wanted[input] = true;
    }
}

/* The outputs whose gradients come in. */
static bool *read_of(Joint *joint, const Names *of) {
    const Graph *from = joint->from;
    bool *taken = IR_NEW_ARRAY(joint->job, bool, from->outputs.count + 1);
    for (uint32_t i = 0; i < from->outputs.count && !of->count; i++)
        taken[i] = gen_grad_is_active(joint, joint->of_from[from->outputs.at[i].value]) &&
                   ir_dtype(from->outputs.at[i].dtype)->kind == KIND_FLOAT;
    for (uint32_t i = 0; i < of->count; i++) {
        const uint32_t output = ir_tensor_find(from->outputs.at, from->outputs.count, of->at[i]);
        if (output == IR_NONE) refuse_name(joint, of->at[i], from->outputs.at, from->outputs.count, "output");
        const Tensor *tensor = &from->outputs.at[output];
        if (ir_dtype(tensor->dtype)->kind != KIND_FLOAT)
            ir_stop_at(joint->job, STATUS_REJECTED, tensor->place,
                       "the output '%s' is of %s: only floats have gradients", tensor->name,
                       ir_dtype(tensor->dtype)->name);
        if (!gen_grad_is_active(joint, joint->of_from[tensor->value]))
            ir_stop_at(joint->job, STATUS_REJECTED, tensor->place,
                       "the output '%s' does not depend on what gradients are asked of" FLAT, tensor->name);
        taken[output] = true;
    }
    return taken;
}

/* ---- the forward values ---- */

static bool names_values(const Joint *joint, const Value *value) {
    return value->op == OP_COMPOSITE && gen_grad_read_line(joint->job, value->call->line).gives_value;
}

static void copy_forward(Joint *joint) {
    const Graph *from = joint->from;
    uint32_t naming = 0;
    for (uint32_t i = 0; i < from->values.count; i++) naming += names_values(joint, &from->values.at[i]);
    joint->several = naming > 1;
    joint->of_from = IR_NEW_ARRAY(joint->job, uint32_t, from->values.count + 1);
    for (uint32_t i = 0; i < from->values.count; i++) {
        joint->owner = from->values.at[i].name;
        joint->of_from[i] = gen_copy_value(&joint->front, &from->values.at[i], joint->of_from, gen_grad_put_call);
    }
    joint->owner = NULL;
}

/* ---- going back ---- */

/* Two values that are one sum or product of the same operands. */
static bool is_same(const Graph *graph, uint32_t a, uint32_t b) {
    const Value *x = &graph->values.at[a], *y = &graph->values.at[b];
    return a == b || (x->op == y->op && x->op < OP_PRIMITIVES && x->arg_count == 2 && x->arg[0] == y->arg[0] &&
                      x->arg[1] == y->arg[1]);
}

/* a + b, as a person writes it. */
static uint32_t add_up(Joint *joint, uint32_t a, uint32_t b, DType dtype) {
    const Value x = joint->graph->values.at[a], y = joint->graph->values.at[b];
    if (is_same(joint->graph, a, b))
        return gen_grad_apply(joint, OP_MUL, ir_graph_const(joint->job, joint->graph, dtype, 2, 2, joint->place), a);
    if (y.op == OP_NEG) return gen_grad_apply(joint, OP_SUB, a, y.arg[0]);
    if (x.op == OP_NEG) return gen_grad_apply(joint, OP_SUB, b, x.arg[0]);
    return gen_grad_apply(joint, OP_ADD, a, b);
}

void gen_grad_add(Joint *joint, uint32_t id, uint32_t gradient, const Shape *shape) {
    if (!gen_grad_is_active(joint, id)) return;
    const Value value = joint->graph->values.at[id];
    const DType own = ir_compute_dtype(value.dtype), dtype = ir_compute_dtype(joint->graph->values.at[gradient].dtype);
    if (own == DTYPE_F64 && dtype == DTYPE_F32) /* before it is summed */
        gradient = ir_graph_cast(joint->job, joint->graph, gradient, DTYPE_F64, joint->place);
    gradient = gen_grad_sum_to(joint, gradient, shape, &value.shape);
    if (own == DTYPE_F32 && dtype == DTYPE_F64)
        gradient = ir_graph_cast(joint->job, joint->graph, gradient, DTYPE_F32, joint->place);
    joint->gradient[id] = joint->gradient[id] == IR_NONE ? gradient : add_up(joint, joint->gradient[id], gradient, own);
}

/* A gradient's tensor: as what it belongs to, but without gaps. */
static Tensor plain_tensor(Joint *joint, const char *name, const Tensor *of) {
    Tensor tensor = {.name = name, .dtype = of->dtype, .type = of->type, .shape = of->shape, .align = of->align};
    tensor.place = of->place;
    tensor.inplace = IR_NONE;
    if (!ir_tensor_make_contiguous(joint->job, &tensor))
        ir_stop_at(joint->job, STATUS_REJECTED, of->place, "extents and their products must stay below 2^62");
    return tensor;
}

/* The gradients of outputs are inputs behind the forward graph's. */
static void add_seeds(Joint *joint, const bool *taken, uint32_t *seeds) {
    const Graph *from = joint->from;
    for (uint32_t i = 0; i < from->outputs.count; i++) {
        const Tensor *output = &from->outputs.at[i];
        if (!taken[i]) continue;
        const uint32_t id = ir_graph_add(joint->job, joint->graph, OP_INPUT, output->dtype, output->place);
        Value *value = &joint->graph->values.at[id];
        value->shape = output->shape;
        value->tensor = joint->graph->inputs.count;
        value->name = gradient_name(joint, output->name, output->place);
        Tensor *input = IR_PUSH(joint->job, &joint->graph->inputs);
        *input = plain_tensor(joint, value->name, output);
        seeds[i] = id;
    }
}

static void go_back(Joint *joint, const bool *taken) {
    const Graph *from = joint->from;
    uint32_t *seeds = IR_NEW_ARRAY(joint->job, uint32_t, from->outputs.count + 1);
    add_seeds(joint, taken, seeds);
    const uint32_t forward = joint->graph->values.count;
    for (uint32_t i = 0; i < forward; i++) (void)gen_grad_is_active(joint, i);
    joint->gradient = IR_NEW_ARRAY(joint->job, uint32_t, forward + 1);
    memset(joint->gradient, 0xff, forward * sizeof *joint->gradient);
    for (uint32_t i = 0; i < from->outputs.count; i++) {
        joint->place = from->outputs.at[i].place;
        if (taken[i])
            gen_grad_add(joint, joint->of_from[from->outputs.at[i].value], seeds[i], &from->outputs.at[i].shape);
    }
    for (uint32_t id = forward; id-- > 0;) {
        gen_grad_join_slices(joint, id);
        if (joint->gradient[id] == IR_NONE) continue;
        const Value value = joint->graph->values.at[id];
        joint->place = value.place;
        joint->owner = value.name;
        const char *name = value.name ? gen_gradient_name(joint->job, joint->options, value.name) : NULL;
        if (name) release(joint, name);
        if (name && value.op != OP_INPUT && !is_taken(joint, name))
            gen_grad_name(joint, joint->gradient[id], NULL, name);
        if (!gen_grad_of_composite(joint, id, joint->gradient[id])) gen_grad_of_op(joint, id, joint->gradient[id]);
    }
}

/* The gradients become outputs of the joint graph, behind the forward ones. */
static void add_gradients(Joint *joint, const Names *wrt) {
    const Graph *from = joint->from;
    for (uint32_t i = 0; i < from->outputs.count; i++) {
        Tensor *output = IR_PUSH(joint->job, &joint->graph->outputs);
        *output = from->outputs.at[i];
        output->value = joint->of_from[output->value];
    }
    for (uint32_t i = 0; i < from->inputs.count; i++) {
        const Tensor *input = &from->inputs.at[i];
        if (!joint->wanted[i]) continue;
        uint32_t gradient = joint->gradient[joint->of_from[i]];
        if (gradient == IR_NONE && !wrt->count) continue;
        if (gradient == IR_NONE)
            ir_stop_at(joint->job, STATUS_REJECTED, input->place,
                       "no output whose gradient comes in depends on '%s'" FLAT, input->name);
        joint->place = input->place;
        gradient = gen_grad_spread(joint, gradient, &input->shape);
        const char *name = gradient_name(joint, input->name, input->place);
        Value *value = &joint->graph->values.at[gradient];
        if (!value->name && value->op != OP_INPUT) value->name = name;
        Tensor *output = IR_PUSH(joint->job, &joint->graph->outputs);
        *output = plain_tensor(joint, name, input);
        output->value = gradient;
    }
    if (joint->graph->outputs.count == from->outputs.count)
        ir_stop_at(joint->job, STATUS_REJECTED, (Place){0, 0},
                   "there is no gradient: no float output depends on a float input" FLAT);
}

/* The backward graph may read an output by its name: a node of that name that the output does not store gets another.
 */
static void rename_nodes(Joint *joint) {
    for (uint32_t i = 0; i < joint->graph->values.count; i++) {
        Value *value = &joint->graph->values.at[i];
        for (uint32_t o = 0; o < joint->from->outputs.count && value->name; o++) {
            const Tensor *output = &joint->graph->outputs.at[o];
            if (output->value != i && value->op != OP_INPUT && !strcmp(output->name, value->name))
                value->name = gen_grad_free_name(joint, ir_format(joint->job, "%s_node", value->name));
        }
    }
}

static void simplify(Joint *joint) {
    uint32_t *id, *stands_for;
    joint->graph = gen_simplified(joint->job, joint->graph, false, &id, &stands_for);
    for (uint32_t i = 0; i < joint->from->values.count; i++) joint->of_from[i] = id[joint->of_from[i]];
    rename_nodes(joint);
}

Grad *gen_grad(Job *job, const Graph *graph, const GradOptions *options) {
    Joint joint = {.job = job, .options = options, .from = graph};
    joint.graph = ir_graph_create(job, graph->name);
    for (uint32_t i = 0; i < graph->dims.count; i++) *IR_PUSH(job, &joint.graph->dims) = graph->dims.at[i];
    for (uint32_t i = 0; i < graph->inputs.count; i++) *IR_PUSH(job, &joint.graph->inputs) = graph->inputs.at[i];
    for (uint32_t i = 0; i < graph->scalars.count; i++) *IR_PUSH(job, &joint.graph->scalars) = graph->scalars.at[i];
    joint.front = (Front){.job = job, .graph = joint.graph, .put_call = gen_grad_put_call, .owner = &joint};
    take_names(&joint);
    read_wrt(&joint, &options->wrt);
    reserve_gradients(&joint);
    copy_forward(&joint);
    joint.taken_outputs = read_of(&joint, &options->of);
    go_back(&joint, joint.taken_outputs);
    add_gradients(&joint, &options->wrt);

    Grad *grad = IR_NEW(job, Grad);
    grad->from = graph;
    gen_grad_list_autograd(&joint, grad);
    simplify(&joint);
    const Cut cut = gen_grad_cut(&joint);
    gen_grad_make_graphs(&joint, &cut, grad);
    return grad;
}

void gen_grad_backward(Text *text, const Grad *grad) { ir_graph_write(text, grad->backward, &grad->backward_notes); }
void gen_grad_forward(Text *text, const Grad *grad) { ir_graph_write(text, grad->forward, &grad->forward_notes); }
