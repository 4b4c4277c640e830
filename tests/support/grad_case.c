/* In: gradients by gen_exact, numbers. Out: how they agree with dual numbers and differences. Contract: the header. */
#include "tests/support/grad_case.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ir/difference.h"

enum { SHOWN = 4 }; /* failures of one case that are printed */

static bool is_float(DType dtype) { return ir_dtype(dtype)->kind == KIND_FLOAT; }

const Graph *grad_parse(Job *job, const char *text) {
    Unit unit = {.text = text, .count = strlen(text)};
    ir_job_set_source(job, "graph.yaml", text, unit.count);
    gen_parse(job, &unit);
    return unit.graph;
}

int64_t *grad_dims(Job *job, const Graph *graph, int64_t any) {
    int64_t *dims = IR_NEW_ARRAY(job, int64_t, graph->dims.count + (size_t)1);
    for (uint32_t d = 0; d < graph->dims.count; d++)
        dims[d] = graph->dims.at[d].value >= 0 ? graph->dims.at[d].value : any;
    return dims;
}

/* ---- numbers ---- */

static View dense_view(Job *job, const Graph *graph, const Tensor *tensor, const int64_t *dims, uint64_t *count) {
    View view = gen_exact_view(job, graph, tensor, dims, NULL);
    *count = view.rank ? (uint64_t)(view.extent[0] * view.stride[0]) : 1;
    view.bytes = ir_alloc_array(job, *count + 1, ir_dtype(tensor->dtype)->bytes);
    return view;
}

/* Away from whole numbers, where floor and its like jump and most kinks are. */
static double draw(Random *random, double low, double high) {
    for (;;) {
        const double x = low + (high - low) * random_unit(random);
        if (fabs(x - nearbyint(x)) > 0x1p-6) return x;
    }
}

static double *weights_of(Job *job, const Exact *exact, const Tensor *output, const int64_t *dims, Random *random) {
    uint64_t count;
    const View view = dense_view(job, exact->graph, output, dims, &count);
    double *weight = view.bytes;
    const char *wanted = gen_gradient_name(job, exact->options, output->name);
    bool comes = false;
    const Graph *backward = exact->grad->backward;
    for (uint32_t i = 0; i < backward->inputs.count; i++) comes |= !strcmp(backward->inputs.at[i].name, wanted);
    for (uint64_t i = 0; i < count; i++) weight[i] = draw(random, -2, 2);
    return comes ? weight : NULL;
}

GradData grad_data(Job *job, const Exact *exact, const int64_t *dims, Random *random, double low, double high) {
    const Graph *graph = exact->graph;
    View *views = IR_NEW_ARRAY(job, View, graph->inputs.count + (size_t)1);
    Scalar *scalars = IR_NEW_ARRAY(job, Scalar, graph->scalars.count + (size_t)1);
    GradData data = {.number = IR_NEW_ARRAY(job, double *, graph->inputs.count + (size_t)1),
                     .count = IR_NEW_ARRAY(job, uint64_t, graph->inputs.count + (size_t)1),
                     .weight =
                         (const double **)ir_alloc_array(job, graph->outputs.count + (size_t)1, sizeof(double *))};
    for (uint32_t i = 0; i < graph->inputs.count; i++) {
        const DType dtype = graph->inputs.at[i].dtype;
        views[i] = dense_view(job, graph, &graph->inputs.at[i], dims, &data.count[i]);
        if (is_float(dtype)) data.number[i] = views[i].bytes;
        for (uint64_t k = 0; k < data.count[i]; k++) {
            if (is_float(dtype))
                data.number[i][k] = draw(random, low, high);
            else
                ir_store_int(dtype, (char *)views[i].bytes + k * ir_dtype(dtype)->bytes, random_below(random, 2));
        }
        if (is_float(dtype)) ir_difference_round(data.number[i], data.count[i]);
    }
    for (uint32_t i = 0; i < graph->scalars.count; i++)
        scalars[i] = (Scalar){graph->scalars.at[i].default_float, graph->scalars.at[i].default_int};
    for (uint32_t o = 0; o < graph->outputs.count; o++)
        if (is_float(graph->outputs.at[o].dtype))
            data.weight[o] = weights_of(job, exact, &graph->outputs.at[o], dims, random);
    data.input = (EvalInput){.dims = dims, .inputs = views, .scalars = scalars};
    return data;
}

static Dual *dual_inputs(Job *job, const Exact *exact, const GradData *data) {
    const Graph *graph = exact->graph;
    Dual *inputs = IR_NEW_ARRAY(job, Dual, graph->inputs.count + (size_t)1);
    for (uint32_t i = 0; i < graph->inputs.count; i++) {
        const View *view = &data->input.inputs[i];
        inputs[i] = (Dual){.rank = view->rank, .count = data->count[i]};
        memcpy(inputs[i].extent, view->extent, sizeof view->extent);
        if (data->number[i]) {
            inputs[i].value = IR_NEW_ARRAY(job, long double, data->count[i] + 1);
            inputs[i].tangent = IR_NEW_ARRAY(job, long double, data->count[i] + 1);
        } else {
            inputs[i].integer = IR_NEW_ARRAY(job, int64_t, data->count[i] + 1);
        }
        for (uint64_t k = 0; k < data->count[i]; k++) {
            if (data->number[i])
                inputs[i].value[k] = data->number[i][k];
            else
                inputs[i].integer[k] = ir_load_int(view->dtype, (char *)view->bytes + k * ir_dtype(view->dtype)->bytes);
        }
    }
    return inputs;
}

/* ---- comparing ---- */

typedef struct Comparing {
    Job *job;
    const Exact *exact;
    const GradData *data;
    const char *what;
    Weighted weighted;
    const Expected *centre;
    Dual *inputs;
    double weights; /* the sum of their sizes */
    GradFound found;
} Comparing;

static void fail(Comparing *comparing, const char *way, const char *name, uint64_t element, double got, double expected,
                 double allowed) {
    if (comparing->found.failed++ >= SHOWN) return;
    printf("%s: %s[%llu]: %.17g, by %s %.17g (allowed %.3g)\n", comparing->what, name, (unsigned long long)element, got,
           way, expected, allowed);
}

/* dL along one element, in dual numbers, and the sum of what it is made of. */
static long double dual_along(const Comparing *comparing, uint32_t input, uint64_t element, long double *size) {
    const Graph *graph = comparing->exact->graph;
    const Mark mark = ir_mark(comparing->job);
    comparing->inputs[input].tangent[element] = 1;
    const Dual *values = dual_evaluate(comparing->job, graph, comparing->data->input.dims, comparing->inputs,
                                       comparing->data->input.scalars);
    comparing->inputs[input].tangent[element] = 0;
    long double sum = 0;
    *size = 0;
    for (uint32_t o = 0; o < graph->outputs.count; o++) {
        const Dual *value = &values[graph->outputs.at[o].value];
        const double *weight = comparing->data->weight[o];
        for (uint64_t i = 0; weight && i < value->count; i++) {
            sum += weight[i] * value->tangent[i];
            *size += fabsl(weight[i] * value->tangent[i]);
        }
    }
    ir_reset(comparing->job, mark);
    return sum;
}

static void compare_difference(Comparing *comparing, uint32_t input, uint64_t element, const char *name, double got,
                               double bound) {
    const Difference difference =
        ir_difference(comparing->job, &comparing->weighted, comparing->centre, input, element, NULL);
    comparing->found.differed++;
    if (!difference.sure) {
        comparing->found.unsure++;
        return;
    }
    const double allowed = ir_difference_allows(&difference, bound);
    if (!(fabs(got - difference.number) <= allowed))
        fail(comparing, "differences", name, element, got, difference.number, allowed);
}

/* Whether L has a derivative there at all: not where a deviation is 0, whose root has none. */
static bool has_derivative(Comparing *comparing, uint32_t input, uint64_t element) {
    const Difference difference =
        ir_difference(comparing->job, &comparing->weighted, comparing->centre, input, element, NULL);
    comparing->found.differed++;
    comparing->found.unsure += !difference.sure;
    return difference.sure;
}

static void compare_gradient(Comparing *comparing, uint32_t output, const Expected *gradient, uint64_t differences,
                             Random *random) {
    const uint32_t input = gen_exact_input(comparing->job, comparing->exact, comparing->exact->backward, output);
    const char *name = comparing->exact->backward->outputs.at[output].name;
    IR_REQUIRE(comparing->job, gradient->count == comparing->data->count[input]);
    for (uint64_t i = 0; i < gradient->count; i++) {
        long double size;
        const long double expected = dual_along(comparing, input, i, &size);
        const double got = gradient->number[i];
        /* where a comparison is met that rounding could turn the bound reaches the other side: nothing is rounded here
         */
        const bool met = !isfinite(gradient->bound[i]) || (gradient->cause && gradient->cause[i]);
        const double most = 1e-12 * (fabs(got) + (double)size + comparing->weights);
        const double bound = met ? fmin(gradient->bound[i], most) : gradient->bound[i];
        const double allowed = bound + 0x1p-53 * (double)size;
        comparing->found.elements++;
        const bool off = !((double)fabsl(got - expected) <= allowed);
        if (off && met && !has_derivative(comparing, input, i)) continue;
        if (off) fail(comparing, "dual numbers", name, i, got, (double)expected, allowed);
        if (gradient->count <= differences || random_below(random, (uint32_t)gradient->count) < differences)
            compare_difference(comparing, input, i, name, got, bound);
    }
}

/* Dual numbers are to give the values too. */
static void compare_values(Comparing *comparing) {
    const Graph *graph = comparing->exact->graph;
    const Dual *values = dual_evaluate(comparing->job, graph, comparing->data->input.dims, comparing->inputs,
                                       comparing->data->input.scalars);
    for (uint32_t o = 0; o < graph->outputs.count; o++) {
        const Expected *centre = &comparing->centre[o];
        for (uint64_t i = 0; comparing->data->weight[o] && i < centre->count; i++) {
            const long double value = values[graph->outputs.at[o].value].value[i];
            comparing->weights += fabs(comparing->data->weight[o][i]);
            if (!isfinite(centre->number[i])) comparing->found.undefined++;
            if (isfinite(centre->number[i]) && !((double)fabsl(value - centre->number[i]) <= centre->bound[i]))
                fail(comparing, "dual numbers", graph->outputs.at[o].name, i, centre->number[i], (double)value,
                     centre->bound[i]);
        }
    }
    for (uint32_t v = 0; v < graph->values.count; v++)
        for (uint64_t i = 0; i < values[v].count && values[v].value; i++)
            if (!isfinite((double)values[v].value[i])) comparing->found.hidden++;
}

GradFound grad_compare(Job *job, const Exact *exact, const GradData *data, const char *what, uint64_t differences,
                       Random *random) {
    Comparing comparing = {.job = job,
                           .exact = exact,
                           .data = data,
                           .what = what,
                           .weighted = {exact->graph, &data->input, data->weight},
                           .inputs = dual_inputs(job, exact, data)};
    comparing.centre = ir_difference_centre(job, &comparing.weighted);
    compare_values(&comparing);
    if (comparing.found.undefined) return comparing.found;
    const ExactInput given = {&data->input, data->weight};
    const Expected *gradients = gen_exact_gradients(job, exact, exact->backward, &given);
    for (uint32_t o = 0; o < exact->backward->outputs.count; o++)
        compare_gradient(&comparing, o, &gradients[o], differences, random);
    return comparing.found;
}
