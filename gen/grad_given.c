/* A backward graph that somebody wrote. In: it and its forward graph, as parse makes them, and the forward graph's dims
 * at one launch. Out: a Grad as if the one had been made of the other, and whose gradients those are. What does not fit
 * stops the job at its place in the backward graph. Left alone: whether the gradients are right
 * (runtime/check_grad.c). */
#include <string.h>

#include "gen/exact.h"

typedef struct Given {
    Job *job;
    const Graph *forward, *backward;
    const int64_t *dims, *backward_dims;
    const GradOptions *options;
} Given;

static uint32_t find_dim(const Graph *graph, const char *name) {
    for (uint32_t d = 0; d < graph->dims.count; d++)
        if (!strcmp(graph->dims.at[d].name, name)) return d;
    return IR_NONE;
}

static void check_dims(const Given *given) {
    for (uint32_t d = 0; d < given->backward->dims.count; d++) {
        const Dim *dim = &given->backward->dims.at[d];
        const uint32_t other = find_dim(given->forward, dim->name);
        if (dim->value < 0 && other == IR_NONE)
            ir_stop_at(given->job, STATUS_REJECTED, dim->place,
                       "the forward graph has no dim '%s', whose size this one takes", dim->name);
        if (dim->value >= 0 && other != IR_NONE && given->dims[other] != dim->value)
            ir_stop_at(given->job, STATUS_REJECTED, dim->place, "%s is %lld here and %lld in the forward graph",
                       dim->name, (long long)dim->value, (long long)given->dims[other]);
    }
}

static void check_dtype(const Given *given, const Tensor *tensor, const Tensor *other) {
    if (tensor->dtype != other->dtype)
        ir_stop_at(given->job, STATUS_REJECTED, tensor->place, "'%s' is of %s here and of %s in the forward graph",
                   tensor->name, ir_dtype(tensor->dtype)->name, ir_dtype(other->dtype)->name);
}

static void check_scalars(const Given *given) {
    const Graph *from = given->forward;
    for (uint32_t i = 0; i < given->backward->scalars.count; i++) {
        const Tensor *scalar = &given->backward->scalars.at[i];
        const uint32_t other = ir_tensor_find(from->scalars.at, from->scalars.count, scalar->name);
        if (other == IR_NONE)
            ir_stop_at(given->job, STATUS_REJECTED, scalar->place,
                       "the forward graph has no scalar '%s', whose value this one takes", scalar->name);
        check_dtype(given, scalar, &from->scalars.at[other]);
    }
}

/* ---- tensors ---- */

static const char *extents_text(Job *job, const View *view) {
    Text text = ir_text(job);
    for (uint32_t d = 0; d < view->rank; d++)
        ir_text_format(&text, "%s%lld", d ? ", " : "[", (long long)view->extent[d]);
    ir_text_put(&text, view->rank ? "]" : "one element");
    return ir_text_string(&text);
}

/* `what` is the other one in the forward graph. */
static void check_shape(const Given *given, const Tensor *tensor, const Tensor *other, const char *what) {
    const View here = gen_exact_view(given->job, given->backward, tensor, given->backward_dims, NULL);
    const View there = gen_exact_view(given->job, given->forward, other, given->dims, NULL);
    bool same = here.rank == there.rank;
    for (uint32_t d = 0; same && d < here.rank; d++) same = here.extent[d] == there.extent[d];
    if (!same)
        ir_stop_at(given->job, STATUS_REJECTED, tensor->place, "'%s' is %s here, and %s '%s' of the forward graph %s",
                   tensor->name, extents_text(given->job, &here), what, other->name, extents_text(given->job, &there));
}

/* A gradient may have another float dtype than what it belongs to. */
static void check_gradient(const Given *given, const Tensor *tensor, const Tensor *of, const char *what) {
    if (ir_dtype(of->dtype)->kind != KIND_FLOAT)
        ir_stop_at(given->job, STATUS_REJECTED, tensor->place, "%s '%s' is of %s: only floats have gradients", what,
                   of->name, ir_dtype(of->dtype)->name);
    if (ir_dtype(tensor->dtype)->kind != KIND_FLOAT)
        ir_stop_at(given->job, STATUS_REJECTED, tensor->place, "a gradient is a float, and '%s' is of %s", tensor->name,
                   ir_dtype(tensor->dtype)->name);
    check_shape(given, tensor, of, what);
}

/* The tensor whose gradient has this name, or IR_NONE. */
static uint32_t find_owner(const Given *given, const Tensor *tensors, uint32_t count, const char *name) {
    const char *owner = gen_gradient_owner(given->options, name);
    return owner ? ir_tensor_find(tensors, count, owner) : IR_NONE;
}

static _Noreturn void refuse_input(const Given *given, const Tensor *input) {
    const Graph *from = given->forward;
    bool node = false;
    for (uint32_t v = 0; v < from->values.count; v++)
        node = node || (from->values.at[v].name && !strcmp(from->values.at[v].name, input->name));
    if (node)
        ir_stop_at(given->job, STATUS_REJECTED, input->place,
                   "the forward graph computes '%s' but does not store it: check with the one that 'grad --forward' "
                   "writes, or make it an output",
                   input->name);
    IR_LIST(const char *) names = {0};
    for (uint32_t i = 0; i < from->inputs.count; i++) *IR_PUSH(given->job, &names) = from->inputs.at[i].name;
    for (uint32_t i = 0; i < from->outputs.count; i++) {
        *IR_PUSH(given->job, &names) = from->outputs.at[i].name;
        *IR_PUSH(given->job, &names) = gen_gradient_name(given->job, given->options, from->outputs.at[i].name);
    }
    const char *near = ir_near_miss(given->job, input->name, names.at, names.count);
    ir_stop_at(given->job, STATUS_REJECTED, input->place,
               "'%s' is neither an input or output of the forward graph nor the gradient of one of its outputs%s%s%s",
               input->name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* What was there before an output took its place is gone. */
static void refuse_overwritten(const Given *given, const Tensor *tensor, uint32_t input) {
    for (uint32_t o = 0; o < given->forward->outputs.count; o++)
        if (given->forward->outputs.at[o].inplace == input)
            ir_stop_at(given->job, STATUS_REJECTED, tensor->place,
                       "'%s' is written over by the output '%s' of the forward graph, which stands in its place",
                       tensor->name, given->forward->outputs.at[o].name);
}

static Names check_inputs(const Given *given) {
    const Graph *from = given->forward;
    IR_LIST(const char *) of = {0};
    for (uint32_t i = 0; i < given->backward->inputs.count; i++) {
        const Tensor *tensor = &given->backward->inputs.at[i];
        const uint32_t input = ir_tensor_find(from->inputs.at, from->inputs.count, tensor->name);
        const uint32_t output = ir_tensor_find(from->outputs.at, from->outputs.count, tensor->name);
        const uint32_t owner = find_owner(given, from->outputs.at, from->outputs.count, tensor->name);
        if (input != IR_NONE || output != IR_NONE) {
            const Tensor *other = input != IR_NONE ? &from->inputs.at[input] : &from->outputs.at[output];
            check_dtype(given, tensor, other);
            check_shape(given, tensor, other, input != IR_NONE ? "the input" : "the output");
            if (input != IR_NONE) refuse_overwritten(given, tensor, input);
        } else if (owner != IR_NONE) {
            check_gradient(given, tensor, &from->outputs.at[owner], "the output");
            *IR_PUSH(given->job, &of) = from->outputs.at[owner].name;
        } else {
            refuse_input(given, tensor);
        }
    }
    if (!of.count) {
        Text names = ir_text(given->job);
        for (uint32_t o = 0; o < from->outputs.count; o++)
            ir_text_format(&names, "%s%s", o ? ", " : "",
                           gen_gradient_name(given->job, given->options, from->outputs.at[o].name));
        ir_stop_at(given->job, STATUS_REJECTED, (Place){0, 0},
                   "the backward graph takes no gradient of an output of the forward one, as %s",
                   ir_text_string(&names));
    }
    return (Names){of.at, of.count};
}

static Names check_outputs(const Given *given) {
    const Graph *from = given->forward;
    IR_LIST(const char *) wrt = {0};
    for (uint32_t o = 0; o < given->backward->outputs.count; o++) {
        const Tensor *tensor = &given->backward->outputs.at[o];
        const uint32_t input = find_owner(given, from->inputs.at, from->inputs.count, tensor->name);
        if (input == IR_NONE)
            ir_stop_at(given->job, STATUS_REJECTED, tensor->place,
                       "'%s' is not the gradient of an input of the forward graph, whose name would be %s",
                       tensor->name, gen_gradient_name(given->job, given->options, "INPUT"));
        check_gradient(given, tensor, &from->inputs.at[input], "the input");
        *IR_PUSH(given->job, &wrt) = from->inputs.at[input].name;
    }
    return (Names){wrt.at, wrt.count};
}

Grad *gen_grad_given(Job *job, const Graph *graph, const Graph *backward, const int64_t *dims, GradOptions *options) {
    Given given = {.job = job, .forward = graph, .backward = backward, .dims = dims, .options = options};
    check_dims(&given);
    check_scalars(&given);
    given.backward_dims = gen_exact_dims(job, backward, graph, dims);
    options->of = check_inputs(&given);
    options->wrt = check_outputs(&given);
    Grad *grad = IR_NEW(job, Grad);
    *grad = (Grad){.from = graph, .backward = backward, .forward = graph};
    return grad;
}
