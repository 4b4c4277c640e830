/* In: a forward graph, its gradients as a backward program gave them, and the numbers that both were run with. Out: how
 * the gradients that the backward graph stands for agree with central differences of the forward graph.
 *
 * Three comparisons, none with a tolerance chosen by hand. The graph: both graphs in f64, evaluated in long double, so
 * that what differs is a wrong derivative; allowed is what the differences themselves may be off by, and the bound of
 * f64 arithmetic. The dtypes: the backward graph as it is, but with nothing rounded, against that one, which was made
 * in f64 from the start; allowed is the reference's bound. The run: what the device made of it against the same;
 * allowed is that bound, with what casts of the graph round and how far what is saved is off. That the device computes
 * what the backward graph says is ng_run's to check. */
#include "runtime/check_grad.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "gen/exact.h"
#include "ir/difference.h"
#include "runtime/launch_tables.h"

enum { ALL_OF = 256, SAMPLED = 64, DIRECTIONS = 4, PARTS = 8 };

typedef struct Task { /* one difference */
    uint32_t output, input;
    bool direction;
    uint64_t index; /* of an element, or which direction */
    Difference found;
    double got, bound; /* the derivative that the gradient stands for */
    Job *job;          /* where the evaluation was left */
    Status status;
} Task;

typedef struct Differences {
    const RtGradCheck *check;
    Weighted weighted;
    const Expected *centre;
    const Expected *gradients; /* exact */
    bool partly;               /* output elements were left out: gradients that are not finite are, too */
    IR_LIST(Task) tasks;
} Differences;

static uint64_t next_random(uint64_t *random) {
    *random = XXH64(random, sizeof *random, 0);
    return *random;
}

static void note(RtWorst *worst, double share, uint64_t index, double got, double expected, double allowed) {
    if (share <= worst->share) return;
    *worst = (RtWorst){share, index, false, got, expected, allowed};
}

static double share_of(double error, double allowed) {
    return error == 0 ? 0 : isnan(error) ? (double)INFINITY : error / allowed;
}

/* ---- numbers in f64 ---- */

char *rt_view_element(const View *view, uint64_t linear) {
    int64_t offset = 0;
    for (uint32_t d = view->rank; d-- > 0; linear /= (uint64_t)view->extent[d])
        offset += (int64_t)(linear % (uint64_t)view->extent[d]) * view->stride[d];
    return (char *)view->bytes + offset * ir_dtype(view->dtype)->bytes;
}

static void dense_strides(View *view, const int64_t *extent) {
    int64_t stride = 1;
    for (uint32_t d = view->rank; d-- > 0; stride *= extent[d]) {
        view->extent[d] = extent[d];
        view->stride[d] = stride;
    }
}

static uint64_t count_of(const View *view) {
    uint64_t count = 1;
    for (uint32_t d = 0; d < view->rank; d++) count *= (uint64_t)view->extent[d];
    return count;
}

static View widen_view(Job *job, const View *view) {
    View wide = {.rank = view->rank, .dtype = DTYPE_F64};
    const uint64_t count = count_of(view);
    double *number = IR_NEW_ARRAY(job, double, count + 1);
    for (uint64_t i = 0; i < count; i++) number[i] = ir_load_float(view->dtype, rt_view_element(view, i));
    ir_difference_round(number, count);
    wide.bytes = number;
    dense_strides(&wide, view->extent);
    return wide;
}

static EvalInput widen_input(Job *job, const Graph *graph, const EvalInput *input) {
    View *views = IR_NEW_ARRAY(job, View, graph->inputs.count + (size_t)1);
    for (uint32_t i = 0; i < graph->inputs.count; i++) {
        const bool number = ir_dtype(input->inputs[i].dtype)->kind == KIND_FLOAT;
        views[i] = number ? widen_view(job, &input->inputs[i]) : input->inputs[i];
    }
    EvalInput wide = *input;
    wide.inputs = views;
    wide.held = NULL;
    wide.depth = NULL;
    return wide;
}

RtLeftOut *rt_grad_left_out(Job *job, const Graph *graph, const EvalInput *input) {
    const Graph *wide = gen_exact_graph(job, graph);
    const EvalInput given = widen_input(job, wide, input);
    RtLeftOut *left_out = IR_NEW_ARRAY(job, RtLeftOut, graph->outputs.count + (size_t)1);
    for (uint32_t o = 0; o < graph->outputs.count; o++) {
        if (ir_dtype(graph->outputs.at[o].dtype)->kind != KIND_FLOAT) continue;
        const Expected output = ir_eval_graph(job, wide, &given, o, NULL);
        bool *at = IR_NEW_ARRAY(job, bool, output.count + 1);
        for (uint64_t i = 0; i < output.count; i++) left_out[o].count += at[i] = !isfinite(output.number[i]);
        left_out[o].elements = output.count;
        left_out[o].at = at;
    }
    return left_out;
}

static bool any_left_out(const RtGradCheck *check) {
    uint64_t count = 0;
    for (uint32_t o = 0; o < check->graph->outputs.count; o++) count += check->weight[o] ? check->left_out[o].count : 0;
    return count > 0;
}

/* ---- differences ---- */

static bool takes_part(const Differences *all, const Expected *gradient, uint64_t i) {
    return !all->partly || isfinite(gradient->number[i]);
}

static double *make_direction(Job *job, const Differences *all, uint64_t which, const Expected *gradient) {
    double *direction = IR_NEW_ARRAY(job, double, gradient->count + 1);
    uint64_t random = all->check->seed + which + 1;
    for (uint64_t i = 0; i < gradient->count; i++) {
        const int64_t parts = (int64_t)(next_random(&random) % (2 * PARTS + 1)) - PARTS;
        if (takes_part(all, gradient, i)) direction[i] = (double)parts / PARTS;
    }
    return direction;
}

/* Where a comparison is met the bound reaches to its other side, which is not for long double. */
static double bound_of(const Expected *gradient, uint64_t i) {
    return gradient->cause && gradient->cause[i] ? (double)INFINITY : gradient->bound[i];
}

typedef struct Working {
    const Differences *differences;
    Task *task;
} Working;

static void difference_work(Job *job, void *state) {
    const Working *working = state;
    const Differences *all = working->differences;
    Task *task = working->task;
    const Expected *gradient = &all->gradients[task->output];
    const double *direction = NULL;
    if (task->direction) {
        direction = make_direction(job, all, task->index, gradient);
        /* of each number to double, and of the additions */
        const double rounding = 0x1p-53 + 0x1p-64 * (double)gradient->count;
        long double sum = 0;
        for (uint64_t i = 0; i < gradient->count; i++) {
            if (!takes_part(all, gradient, i)) continue;
            sum += (long double)direction[i] * gradient->number[i];
            task->bound += fabs(direction[i]) * (bound_of(gradient, i) + rounding * fabs(gradient->number[i]));
        }
        task->got = (double)sum;
    } else {
        task->got = gradient->number[task->index];
        task->bound = bound_of(gradient, task->index);
    }
    task->found =
        ir_difference(job, &all->weighted, all->centre, task->input, task->direction ? 0 : task->index, direction);
}

static void difference_one(void *state, uint32_t index) {
    Differences *all = state;
    Working working = {all, &all->tasks.at[index]};
    Task *task = working.task;
    Job *job = ir_job_create(all->check->allocator);
    task->status = job ? ir_job_run(job, difference_work, &working) : STATUS_SYSTEM;
    if (task->status)
        task->job = job;
    else
        ir_job_free(job);
}

static void add_tasks(Job *job, Differences *all, uint32_t output, uint32_t input) {
    const Expected *gradient = &all->gradients[output];
    uint64_t *taken = IR_NEW_ARRAY(job, uint64_t, gradient->count + 1), count = 0;
    for (uint64_t i = 0; i < gradient->count; i++)
        if (takes_part(all, gradient, i)) taken[count++] = i;
    uint64_t random = all->check->seed ^ ((uint64_t)(output + 1) << 32);
    const uint64_t elements = count <= ALL_OF ? count : SAMPLED;
    for (uint64_t i = 0; i < elements; i++) {
        const uint64_t picked = count <= ALL_OF ? i : i + next_random(&random) % (count - i);
        *IR_PUSH(job, &all->tasks) = (Task){.output = output, .input = input, .index = taken[picked]};
        taken[picked] = taken[i]; /* none is drawn twice */
    }
    for (uint64_t i = 0; count > 1 && i < DIRECTIONS; i++)
        *IR_PUSH(job, &all->tasks) = (Task){.output = output, .input = input, .index = i, .direction = true};
}

static void judge(RtGradient *gradient, const Task *task) {
    const double allowed = ir_difference_allows(&task->found, task->bound);
    const bool sure = task->found.sure && isfinite(allowed) && isfinite(task->got);
    const double share = share_of(fabs(task->got - task->found.number), allowed);
    if (task->direction) {
        gradient->directions += sure;
        gradient->unsettled += !sure;
    } else {
        gradient->compared++;
        gradient->uncertain += !sure;
        gradient->endless += isfinite(task->got) ? 0 : 1;
    }
    if (!sure) return;
    gradient->failed += !(share <= 1);
    if (share > gradient->worst.share) {
        note(&gradient->worst, share, task->index, task->got, task->found.number, allowed);
        gradient->worst.direction = task->direction;
    }
}

bool rt_gradient_doubtful(const RtGradient *gradient) {
    return gradient->uncertain > 0 &&
           (gradient->uncertain == gradient->compared || gradient->uncertain * 100 > gradient->compared + 99);
}

/* ---- the graph with its dtypes, and the run ---- */

static bool loses(DType to, DType from, bool integers) {
    const Kind kind = ir_dtype(from)->kind;
    return kind == KIND_FLOAT ? !ir_dtype_holds(to, from) : integers && kind != KIND_BOOL;
}

/* Casts to floats that may lose something: the graph in f64 is without them. Those of integers stand there unwritten.
 */
static bool rounds(const Graph *graph, bool integers) {
    for (uint32_t v = 0; v < graph->values.count; v++) {
        const Value *value = &graph->values.at[v];
        if (value->op != OP_CAST || ir_dtype(value->dtype)->kind != KIND_FLOAT) continue;
        if (loses(value->dtype, graph->values.at[value->arg[0]].dtype, integers)) return true;
    }
    return false;
}

/* Its elements in row-major order, and how far each is from the exact one. */
static View bounded_view(Job *job, const View *view, const Expected *exact) {
    const size_t bytes = ir_dtype(view->dtype)->bytes;
    View dense = {.rank = view->rank, .dtype = view->dtype};
    char *memory = ir_alloc_array(job, exact->count + 1, bytes);
    double *bound = IR_NEW_ARRAY(job, double, exact->count + 1);
    for (uint64_t i = 0; i < exact->count; i++) {
        memcpy(memory + i * bytes, rt_view_element(view, i), bytes);
        if (exact->number)
            bound[i] = fabs(ir_load_float(view->dtype, memory + i * bytes) - exact->number[i]);
        else
            bound[i] = fabs((double)ir_load_int(view->dtype, memory + i * bytes) - (double)exact->integer[i]);
        if (isnan(bound[i])) bound[i] = 0; /* inf and NaN, the same on both sides */
    }
    dense_strides(&dense, view->extent);
    dense.bytes = memory;
    dense.bound = bound;
    return dense;
}

/* What the reference makes of the backward graph as it was run. */
static Expected *state_gradients(Job *job, const RtGradCheck *check, const Exact *own, const ExactInput *given,
                                 EvalCasts casts) {
    const Graph *graph = check->backward;
    EvalInput input = *check->backward_input;
    View *views = IR_NEW_ARRAY(job, View, graph->inputs.count + (size_t)1);
    for (uint32_t i = 0; i < graph->inputs.count; i++) {
        const Expected *saved = gen_exact_saved(job, own, given, graph->inputs.at[i].name);
        views[i] = saved ? bounded_view(job, &input.inputs[i], saved) : input.inputs[i];
    }
    input.inputs = views;
    input.casts = casts;
    Expected *stated = IR_NEW_ARRAY(job, Expected, graph->outputs.count + (size_t)1);
    for (uint32_t o = 0; o < graph->outputs.count; o++) stated[o] = ir_eval_graph(job, graph, &input, o, NULL);
    return stated;
}

typedef struct Compared { /* of one gradient: exact, as the graph makes it without rounding, as the device did */
    const Expected *exact, *as_is;
    const Expected *stated, *cast; /* with the bounds of both: without casts' rounding, and with it */
    const double *got;
    DType dtype;
    bool partly; /* where exact is not finite nothing is compared */
} Compared;

static void compare_dtypes(RtGradient *gradient, const Compared *compared, uint64_t i) {
    const double exact = compared->exact->number[i], got = compared->as_is->number[i];
    const double allowed =
        compared->stated->bound[i] + compared->exact->bound[i] + ir_ulp(ir_compute_dtype(compared->dtype), exact);
    if (!isfinite(allowed) || got == exact || (isnan(got) && isnan(exact))) return;
    const double share = share_of(fabs(got - exact), allowed);
    gradient->apart += !(share <= 1);
    note(&gradient->apart_worst, share, i, got, exact, allowed);
}

/* On the other side of a jump the error is what the bound was widened by. */
static void compare_run(RtGradient *gradient, const Compared *compared, uint64_t i) {
    const double exact = compared->exact->number[i], got = compared->got[i], error = fabs(got - exact);
    const double bound = compared->cast->bound[i] + compared->exact->bound[i];
    const double allowed = bound + ir_ulp(compared->dtype, exact);
    const bool met = compared->cast->cause && compared->cast->cause[i];
    if (met && !ir_element_passes(compared->dtype, got, exact, bound / 2)) gradient->jumped++;
    if (!isfinite(allowed)) gradient->unbounded++;
    if (!isfinite(allowed) || ir_element_passes(compared->dtype, got, exact, 0)) return;
    const bool passes = ir_element_passes(compared->dtype, got, exact, bound);
    gradient->off += !passes;
    note(&gradient->off_worst, passes ? fmin(1, share_of(error, allowed)) : share_of(error, allowed), i, got, exact,
         allowed);
}

static void compare_elements(RtGradient *gradient, const Compared *compared) {
    double largest = 0;
    for (uint64_t i = 0; i < gradient->elements; i++) {
        if (compared->partly && !isfinite(compared->exact->number[i])) {
            gradient->not_finite++;
            continue;
        }
        const double exact = fabs(compared->exact->number[i]),
                     error = fabs(compared->got[i] - compared->exact->number[i]);
        if (isfinite(exact)) largest = fmax(largest, exact);
        if (isfinite(error)) gradient->rounding = fmax(gradient->rounding, error);
        compare_dtypes(gradient, compared, i);
        compare_run(gradient, compared, i);
    }
    if (gradient->rounding > 0) gradient->rounding /= largest;
}

bool rt_gradient_jumpy(const RtGradient *gradient) {
    return !gradient->cast && gradient->jumped * 1000 > gradient->elements;
}

static Status gather(Differences *all, RtGradient *gradients, const uint32_t *stands_for, Text *why) {
    Status status = STATUS_OK;
    for (uint32_t t = 0; t < all->tasks.count; t++) {
        const Task *task = &all->tasks.at[t];
        if (!task->status) {
            judge(&gradients[stands_for[task->output]], task);
            continue;
        }
        ng_text words = {NULL, 0};
        if (task->job && !status) words = rt_job_words(task->job);
        if (!status) rt_say(why, "differences could not be evaluated: %s", words.bytes ? words.bytes : "no memory\n");
        ng_text_free(&words);
        status = task->status;
        ir_job_free(task->job);
    }
    return status;
}

Status rt_check_gradients(Job *job, const RtGradCheck *check, RtGradient *gradients, Text *why) {
    const Exact *exact = gen_exact(job, check->graph, check->options);
    const Exact own = {check->options, exact->graph, gen_exact_graph(job, check->grad->forward),
                       gen_exact_graph(job, check->grad->backward), check->grad};
    const EvalInput input = widen_input(job, exact->graph, check->input);
    const ExactInput given = {&input, check->weight};
    const Expected *as_is = gen_exact_gradients(job, &own, own.backward, &given);
    const Expected *stated = state_gradients(job, check, &own, &given, EVAL_CASTS_PASS), *cast = stated;
    if (rounds(check->backward, true)) cast = state_gradients(job, check, &own, &given, EVAL_CASTS_WIDEN);
    const bool cast_before = rounds(check->graph, false);
    Differences all = {
        .check = check, .partly = any_left_out(check), .weighted = {exact->graph, &input, check->weight}};
    all.gradients = gen_exact_gradients(job, exact, exact->backward, &given);
    all.centre = ir_difference_centre(job, &all.weighted);
    uint32_t *stands_for = IR_NEW_ARRAY(job, uint32_t, exact->backward->outputs.count + (size_t)1);
    for (uint32_t o = 0; o < exact->backward->outputs.count; o++) {
        const Graph *backward = check->grad->backward;
        const uint32_t to = stands_for[o] =
            ir_tensor_find(backward->outputs.at, backward->outputs.count, exact->backward->outputs.at[o].name);
        IR_REQUIRE(job, to != IR_NONE);
        const uint32_t of = gen_exact_input(job, exact, exact->backward, o);
        RtGradient *gradient = &gradients[to];
        *gradient = (RtGradient){.name = backward->outputs.at[to].name, .elements = all.gradients[o].count};
        gradient->shape = backward->outputs.at[to].shape;
        memcpy(gradient->extent, input.inputs[of].extent, sizeof gradient->extent);
        gradient->cast = cast_before;
        gradient->given = check->given;
        gradient->worst.share = gradient->apart_worst.share = gradient->off_worst.share = -1;
        compare_elements(gradient, &(Compared){&all.gradients[o], &as_is[to], &stated[to], &cast[to], check->got[to],
                                               backward->outputs.at[to].dtype, all.partly});
        add_tasks(job, &all, o, of);
    }
    rt_parallel(all.tasks.count, difference_one, &all);
    return gather(&all, gradients, stands_for, why);
}
