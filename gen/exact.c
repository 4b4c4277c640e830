/* In: a forward graph as parse makes it. Out: it and its backward graph in f64, and their values. Left alone: what the
 * graphs are (gen/grad.c), what they evaluate to (ir/eval_graph.c). */
#include "gen/exact.h"

#include <string.h>

#include "ir/graph_wide.h"

static const Graph *expand(Job *job, const Graph *graph) {
    Unit unit = {.graph = (Graph *)(uintptr_t)graph}; /* only read */
    gen_expand(job, &unit);
    return unit.expanded;
}

const Graph *gen_exact_graph(Job *job, const Graph *graph) { return expand(job, ir_graph_widen(job, graph)); }

Exact *gen_exact(Job *job, const Graph *graph, const GradOptions *options) {
    Exact *exact = IR_NEW(job, Exact);
    exact->options = options;
    const Graph *wide = ir_graph_widen(job, graph);
    GradOptions own = *options; /* what is saved changes no number, and a cast that is named is gone here */
    own.save = own.recompute = (Names){0};
    own.recompute_all = false;
    exact->grad = gen_grad(job, wide, &own);
    exact->graph = expand(job, wide);
    exact->forward = gen_exact_graph(job, exact->grad->forward); /* counts that no f64 takes part in are f32 */
    exact->backward = gen_exact_graph(job, exact->grad->backward);
    return exact;
}

/* ---- what a graph reads of another's names ---- */

int64_t *gen_exact_dims(Job *job, const Graph *to, const Graph *from, const int64_t *dims) {
    int64_t *found = IR_NEW_ARRAY(job, int64_t, to->dims.count + (size_t)1);
    for (uint32_t d = 0; d < to->dims.count; d++) {
        found[d] = to->dims.at[d].value;
        for (uint32_t k = 0; k < from->dims.count; k++)
            if (!strcmp(to->dims.at[d].name, from->dims.at[k].name)) found[d] = dims[k];
        IR_REQUIRE(job, found[d] >= 0);
    }
    return found;
}

static Scalar *find_scalars(Job *job, const Graph *to, const Graph *from, const Scalar *scalars) {
    Scalar *found = IR_NEW_ARRAY(job, Scalar, to->scalars.count + (size_t)1);
    for (uint32_t i = 0; i < to->scalars.count; i++) {
        const uint32_t k = ir_tensor_find(from->scalars.at, from->scalars.count, to->scalars.at[i].name);
        IR_REQUIRE(job, k != IR_NONE);
        found[i] = scalars[k];
    }
    return found;
}

View gen_exact_view(Job *job, const Graph *graph, const Tensor *tensor, const int64_t *dims, const void *bytes) {
    View view = {.bytes = (void *)(uintptr_t)bytes, .rank = tensor->shape.rank, .dtype = tensor->dtype};
    int64_t stride = 1;
    for (uint32_t d = view.rank; d-- > 0;) {
        IR_REQUIRE(job, ir_poly_eval(tensor->shape.extent[d], dims, graph->dims.count, NULL, 0, &view.extent[d]));
        view.stride[d] = stride;
        stride *= view.extent[d];
    }
    return view;
}

/* Integers as they are stored. */
static void *stored(Job *job, DType dtype, const Expected *value) {
    const size_t bytes = ir_dtype(dtype)->bytes;
    char *memory = ir_alloc_array(job, value->count + (size_t)1, bytes);
    for (uint64_t i = 0; i < value->count; i++) ir_store_int(dtype, memory + i * bytes, value->integer[i]);
    return memory;
}

static View saved_view(Job *job, const Exact *exact, const EvalInput *input, uint32_t output) {
    const Tensor *tensor = &exact->forward->outputs.at[output];
    const Expected value = ir_eval_graph(job, exact->forward, input, output, NULL);
    const void *bytes = value.number ? (void *)value.number : stored(job, tensor->dtype, &value);
    View view = gen_exact_view(job, exact->forward, tensor, input->dims, bytes);
    view.low = value.low;
    view.bound = value.bound;
    return view;
}

/* An input of the forward graph, an output of the extended one, or d_ of an output. */
static View find_view(Job *job, const Exact *exact, const EvalInput *forward, const ExactInput *given,
                      const char *name) {
    const Graph *graph = exact->graph;
    uint32_t found = ir_tensor_find(graph->inputs.at, graph->inputs.count, name);
    if (found != IR_NONE) return given->input->inputs[found];
    found = ir_tensor_find(exact->forward->outputs.at, exact->forward->outputs.count, name);
    if (found != IR_NONE) return saved_view(job, exact, forward, found);
    const char *owner = gen_gradient_owner(exact->options, name);
    IR_REQUIRE(job, owner);
    found = ir_tensor_find(graph->outputs.at, graph->outputs.count, owner);
    IR_REQUIRE(job, found != IR_NONE && given->weight[found]);
    return gen_exact_view(job, graph, &graph->outputs.at[found], given->input->dims, given->weight[found]);
}

static EvalInput forward_input(Job *job, const Exact *exact, const EvalInput *given) {
    const Graph *to = exact->forward, *from = exact->graph;
    View *views = IR_NEW_ARRAY(job, View, to->inputs.count + (size_t)1);
    for (uint32_t i = 0; i < to->inputs.count; i++) {
        const uint32_t k = ir_tensor_find(from->inputs.at, from->inputs.count, to->inputs.at[i].name);
        IR_REQUIRE(job, k != IR_NONE);
        views[i] = given->inputs[k];
    }
    return (EvalInput){.dims = gen_exact_dims(job, to, from, given->dims),
                       .inputs = views,
                       .scalars = find_scalars(job, to, from, given->scalars)};
}

Expected *gen_exact_gradients(Job *job, const Exact *exact, const Graph *backward, const ExactInput *given) {
    const EvalInput forward = forward_input(job, exact, given->input);
    View *views = IR_NEW_ARRAY(job, View, backward->inputs.count + (size_t)1);
    for (uint32_t i = 0; i < backward->inputs.count; i++)
        views[i] = find_view(job, exact, &forward, given, backward->inputs.at[i].name);
    const EvalInput input = {.dims = gen_exact_dims(job, backward, exact->graph, given->input->dims),
                             .inputs = views,
                             .scalars = find_scalars(job, backward, exact->graph, given->input->scalars)};
    Expected *gradients = IR_NEW_ARRAY(job, Expected, backward->outputs.count + (size_t)1);
    for (uint32_t o = 0; o < backward->outputs.count; o++) gradients[o] = ir_eval_graph(job, backward, &input, o, NULL);
    return gradients;
}

const Expected *gen_exact_saved(Job *job, const Exact *exact, const ExactInput *given, const char *name) {
    const EvalInput forward = forward_input(job, exact, given->input);
    const uint32_t found = ir_tensor_find(exact->forward->outputs.at, exact->forward->outputs.count, name);
    if (found == IR_NONE) return NULL;
    Expected *saved = IR_NEW(job, Expected);
    *saved = ir_eval_graph(job, exact->forward, &forward, found, NULL);
    return saved;
}

uint32_t gen_exact_input(Job *job, const Exact *exact, const Graph *backward, uint32_t output) {
    const char *owner = gen_gradient_owner(exact->options, backward->outputs.at[output].name);
    IR_REQUIRE(job, owner);
    const uint32_t input = ir_tensor_find(exact->graph->inputs.at, exact->graph->inputs.count, owner);
    IR_REQUIRE(job, input != IR_NONE);
    return input;
}
