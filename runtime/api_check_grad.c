/* The public check of gradients. In: a forward program, its inputs. Out: what was found, in words. Both programs of
 * gen_grad's graphs run here, each checked as ng_run checks it; what their graphs mean is runtime/check_grad.c's. */
#include "runtime/check_grad.h"
#include "runtime/context.h"

#include <math.h>
#include <string.h>

#include "gen/exact.h"
#include "gen/tell.h"
#include "ir/difference.h"

enum { ALIGNMENT = 256 };

typedef struct Side {        /* one of the two programs, with memory of its own */
    const char *what, *name; /* in reports; of its text in messages */
    ng_program *program;
    RtScratch scratch;
    int64_t *any;
    ng_scalar *scalars;
    void **tensors; /* pointers */
    ng_output_report *reports;
    bool failed;
} Side;

typedef struct GradRun {
    ng_program *forward;
    const ng_args *args;
    ng_check_grad_options options;
    RtScratch given; /* of the forward program's own tensors */
    Side sides[2];   /* forward extended, backward */
    const GradOptions *names;
    const RtLeftOut *left_out; /* of the forward program's outputs; NULL until the forward side ran */
    Tell report;
    Text why, warnings; /* warnings: of the given backward graph */
    Status status;
    uint64_t unbounded; /* elements, of outputs and of gradients, that were not checked */
} GradRun;

/* ---- names ---- */

static uint32_t tensor_of(const RtProgram *program, uint32_t first, uint32_t stop, const char *name) {
    for (uint32_t t = first; t < stop; t++)
        if (!strcmp(program->tensors[t].tensor->name, name)) return t;
    return IR_NONE;
}

static uint32_t input_of(const RtProgram *program, const char *name) {
    return tensor_of(program, 0, program->input_count, name);
}

static uint32_t output_of(const RtProgram *program, const char *name) {
    return tensor_of(program, program->input_count, program->tensor_count, name);
}

/* ---- memory ---- */

static void set_dims(Job *job, GradRun *run, Side *side) {
    const RtProgram *to = side->program->tables, *from = run->forward->tables;
    side->any = IR_NEW_ARRAY(job, int64_t, to->any_count + (size_t)1);
    const int64_t *dims = gen_exact_dims(job, to->graph, from->graph, run->given.graph_dims);
    for (uint32_t i = 0; i < to->any_count; i++) side->any[i] = dims[to->any[i]];
    const Graph *graph = to->graph, *forward = from->graph;
    side->scalars = IR_NEW_ARRAY(job, ng_scalar, graph->scalars.count + (size_t)1);
    for (uint32_t i = 0; i < graph->scalars.count; i++)
        for (uint32_t k = 0; k < forward->scalars.count; k++) {
            const Tensor *scalar = &forward->scalars.at[k];
            if (strcmp(graph->scalars.at[i].name, scalar->name) != 0) continue;
            const Scalar value = rt_scalar_value(scalar, run->args->scalars ? &run->args->scalars[k] : NULL);
            side->scalars[i] = scalar->dtype == DTYPE_F64                    ? (ng_scalar){.f64 = value.number}
                               : ir_dtype(scalar->dtype)->kind == KIND_FLOAT ? (ng_scalar){.f32 = (float)value.number}
                                                                             : (ng_scalar){.i64 = value.integer};
        }
}

/* All bytes set: NaN in every float dtype. What accumulates starts at 0. */
static void *make_tensor(Job *job, const RtSpan *span, bool zero) {
    const size_t bytes = (size_t)(span->high - span->low);
    char *memory = ir_alloc(job, bytes + ALIGNMENT);
    memory += (ALIGNMENT - (uintptr_t)memory % ALIGNMENT) % ALIGNMENT;
    if (!zero) memset(memory, 0xff, bytes);
    return memory - span->low;
}

static View view_of(const RtProgram *program, const RtScratch *scratch, uint32_t tensor, void *pointer) {
    const RtSpan *span = &scratch->spans[tensor];
    View view = {.bytes = pointer,
                 .rank = program->tensors[tensor].tensor->shape.rank,
                 .dtype = program->tensors[tensor].tensor->dtype};
    memcpy(view.stride, span->stride, sizeof view.stride);
    memcpy(view.extent, span->extent, sizeof view.extent);
    return view;
}

static void copy_elements(Job *job, const View *to, const View *from, int64_t count) {
    IR_REQUIRE(job, to->dtype == from->dtype && to->rank == from->rank);
    for (uint32_t d = 0; d < to->rank; d++) IR_REQUIRE(job, to->extent[d] == from->extent[d]);
    for (int64_t i = 0; i < count; i++)
        memcpy(rt_view_element(to, (uint64_t)i), rt_view_element(from, (uint64_t)i), ir_dtype(to->dtype)->bytes);
}

/* Even in -2 to 2, one for each output and element. */
static void fill_random(const View *view, int64_t count, uint64_t seed, const char *name) {
    uint64_t random = XXH64(name, strlen(name), seed);
    for (int64_t i = 0; i < count; i++) {
        random = XXH64(&random, sizeof random, seed);
        ir_store_float(view->dtype, rt_view_element(view, (uint64_t)i), ldexp((double)(random >> 11), -51) - 2);
    }
}

/* An element that is left out has nothing coming in. */
static void leave_out(Job *job, const GradRun *run, const View *view, const char *gradient) {
    const Graph *graph = run->forward->tables->graph;
    const char *owner = gen_gradient_owner(run->names, gradient);
    const uint32_t output = owner ? ir_tensor_find(graph->outputs.at, graph->outputs.count, owner) : IR_NONE;
    IR_REQUIRE(job, output != IR_NONE && run->left_out[output].at);
    const RtLeftOut *left_out = &run->left_out[output];
    for (uint64_t i = 0; i < left_out->elements; i++)
        if (left_out->at[i]) ir_store_float(view->dtype, rt_view_element(view, i), 0);
}

/* As differences take them: what runs must have the same numbers. */
static void round_elements(Job *job, const View *view, int64_t count) {
    double *number = IR_NEW_ARRAY(job, double, (size_t)count + 1);
    for (int64_t i = 0; i < count; i++) number[i] = ir_load_float(view->dtype, rt_view_element(view, (uint64_t)i));
    ir_difference_round(number, (uint64_t)count);
    for (int64_t i = 0; i < count; i++) ir_store_float(view->dtype, rt_view_element(view, (uint64_t)i), number[i]);
}

/* An input of the forward program, an output of the extended one, or the gradient of an output. */
static void fill_input(Job *job, GradRun *run, Side *side, uint32_t tensor) {
    const RtProgram *program = side->program->tables, *given = run->forward->tables;
    const char *name = program->tensors[tensor].tensor->name;
    const int64_t count = side->scratch.spans[tensor].count;
    const View to = view_of(program, &side->scratch, tensor, side->tensors[tensor]);
    uint32_t from = input_of(given, name);
    if (from != IR_NONE) {
        const View view = view_of(given, &run->given, from, run->args->tensors[from]);
        copy_elements(job, &to, &view, count);
        if (to.dtype == DTYPE_F64) round_elements(job, &to, count);
        return;
    }
    const Side *forward = &run->sides[0];
    IR_REQUIRE(job, side != forward);
    from = output_of(forward->program->tables, name);
    if (from == IR_NONE) {
        fill_random(&to, count, run->options.seed, name);
        if (to.dtype == DTYPE_F64) round_elements(job, &to, count);
        leave_out(job, run, &to, name);
        return;
    }
    const View view = view_of(forward->program->tables, &forward->scratch, from, forward->tensors[from]);
    copy_elements(job, &to, &view, count);
}

/* ---- running ---- */

static void free_program(void *object) { ng_program_free(object); }

static ng_setting *public_settings(Job *job, const Setting *settings, uint32_t count) {
    ng_setting *copies = IR_NEW_ARRAY(job, ng_setting, count + (size_t)1);
    for (uint32_t i = 0; i < count; i++) copies[i] = (ng_setting){settings[i].name, settings[i].value};
    return copies;
}

/* The warnings before it are of what the file says, and were told of that. */
static const char *from_error(const char *words) {
    const char *error = strstr(words, ": error: ");
    while (error && error > words && error[-1] != '\n') error--;
    return error ? error : words;
}

/* Defines, hints and fixes are in the texts already. */
static Status compile(Job *job, GradRun *run, Side *side, Text *text) {
    const GenOptions *own = &run->forward->unit.options;
    const ng_compile_options options = {.size = sizeof options,
                                        .name = side->name,
                                        .sets = public_settings(job, own->sets, own->set_count),
                                        .set_count = own->set_count,
                                        .verify = own->verify,
                                        .batch_invariant = own->batch_invariant};
    ng_text why = {NULL, 0};
    const ng_status status =
        ng_compile(run->forward->context, ir_text_string(text), text->count, &options, &side->program, &why);
    if (status) rt_say(&run->why, "%s", why.bytes ? from_error(why.bytes) : "");
    ng_text_free(&why);
    if (!status) ir_job_defer(job, free_program, side->program);
    return (Status)status;
}

static Status prepare(Job *job, GradRun *run, Side *side) {
    const RtProgram *program = side->program->tables;
    set_dims(job, run, side);
    int64_t *words = IR_NEW_ARRAY(job, int64_t, program->scratch_words + (size_t)1);
    const Status status = rt_program_sizes(program, side->any, words, &side->scratch, &run->why);
    if (status) return status;
    side->tensors = IR_NEW_ARRAY(job, void *, program->tensor_count + (size_t)1);
    for (uint32_t t = 0; t < program->tensor_count; t++) {
        side->tensors[t] = make_tensor(job, &side->scratch.spans[t], program->tensors[t].tensor->accumulate);
        if (t < program->input_count) fill_input(job, run, side, t);
    }
    return STATUS_OK;
}

/* Of few elements one that is the largest is more than 1 in 1000, and which one is, is judged here against exact
 * numbers. Nothing compared: a kernel wrote beside its tensors. */
static bool only_uncertain(const Side *side) {
    bool only = true;
    for (uint32_t o = 0; o < side->program->tables->graph->outputs.count; o++)
        only = only && !side->reports[o].failed && (side->reports[o].checked || !side->reports[o].elements);
    return only;
}

static Status run_side(Job *job, GradRun *run, Side *side, Text *text) {
    Status status = compile(job, run, side, text);
    if (!status) status = prepare(job, run, side);
    if (status) return status;
    side->reports = IR_NEW_ARRAY(job, ng_output_report, side->program->tables->graph->outputs.count + (size_t)1);
    const ng_args args = {.size = sizeof args, .tensors = side->tensors, .dims = side->any, .scalars = side->scalars};
    ng_report report = {.size = sizeof report, .outputs = side->reports};
    status = (Status)ng_run(side->program, &args, 1, &report);
    side->failed = status == STATUS_CHECK_FAILED && !only_uncertain(side);
    if (report.why.bytes && (side->failed || status != STATUS_CHECK_FAILED))
        rt_say(&run->why, "the %s: %s\n", side->what, report.why.bytes);
    ng_text_free(&report.why);
    return status == STATUS_CHECK_FAILED ? STATUS_OK : status;
}

/* ---- the whole ---- */

static EvalInput side_input(Job *job, const Side *side) {
    const RtProgram *program = side->program->tables;
    View *views = IR_NEW_ARRAY(job, View, program->tensor_count + (size_t)1);
    for (uint32_t t = 0; t < program->tensor_count; t++)
        views[t] = view_of(program, &side->scratch, t, side->tensors[t]);
    Scalar *scalars = IR_NEW_ARRAY(job, Scalar, program->graph->scalars.count + (size_t)1);
    for (uint32_t s = 0; s < program->graph->scalars.count; s++)
        scalars[s] = rt_scalar_value(&program->graph->scalars.at[s], &side->scalars[s]);
    return (EvalInput){.dims = side->scratch.graph_dims,
                       .inputs = views,
                       .held = views + program->input_count,
                       .scalars = scalars,
                       .depth = gen_depths(job, program->unit, side->scratch.prog_dims, side->scratch.parts)};
}

static EvalInput forward_input(Job *job, const GradRun *run) {
    const RtProgram *program = run->forward->tables;
    View *views = IR_NEW_ARRAY(job, View, program->input_count + (size_t)1);
    for (uint32_t t = 0; t < program->input_count; t++)
        views[t] = view_of(program, &run->given, t, run->args->tensors[t]);
    Scalar *scalars = IR_NEW_ARRAY(job, Scalar, program->graph->scalars.count + (size_t)1);
    for (uint32_t s = 0; s < program->graph->scalars.count; s++)
        scalars[s] =
            rt_scalar_value(&program->graph->scalars.at[s], run->args->scalars ? &run->args->scalars[s] : NULL);
    return (EvalInput){.dims = run->given.graph_dims, .inputs = views, .scalars = scalars};
}

static double *numbers_of(Job *job, const Side *side, uint32_t tensor) {
    const View view = view_of(side->program->tables, &side->scratch, tensor, side->tensors[tensor]);
    const int64_t count = side->scratch.spans[tensor].count;
    double *numbers = IR_NEW_ARRAY(job, double, (size_t)count + 1);
    for (int64_t i = 0; i < count; i++) numbers[i] = ir_load_float(view.dtype, rt_view_element(&view, (uint64_t)i));
    return numbers;
}

static const double **weights_of(Job *job, const GradRun *run) {
    const Graph *graph = run->forward->tables->graph;
    const double **weights = (const double **)ir_alloc_array(job, graph->outputs.count + (size_t)1, sizeof *weights);
    for (uint32_t o = 0; o < graph->outputs.count; o++) {
        const uint32_t t =
            input_of(run->sides[1].program->tables, gen_gradient_name(job, run->names, graph->outputs.at[o].name));
        if (t != IR_NONE) weights[o] = numbers_of(job, &run->sides[1], t);
    }
    return weights;
}

static bool check_gradients(Job *job, GradRun *run, const Graph *graph, const GradOptions *options, const Grad *grad) {
    const Side *backward = &run->sides[1];
    const RtProgram *program = backward->program->tables;
    const uint32_t count = program->graph->outputs.count;
    const EvalInput input = forward_input(job, run), backward_input = side_input(job, backward);
    double **got = IR_NEW_ARRAY(job, double *, count + (size_t)1);
    for (uint32_t o = 0; o < count; o++) {
        got[o] = numbers_of(job, backward, program->input_count + o);
    }
    const RtGradCheck check = {.allocator = &run->forward->context->allocator,
                               .graph = graph,
                               .options = options,
                               .grad = grad,
                               .given = run->options.backward != NULL,
                               .input = &input,
                               .weight = weights_of(job, run),
                               .left_out = run->left_out,
                               .backward = program->graph,
                               .backward_input = &backward_input,
                               .got = got,
                               .seed = run->options.seed};
    RtGradient *gradients = IR_NEW_ARRAY(job, RtGradient, count + (size_t)1);
    run->status = rt_check_gradients(job, &check, gradients, &run->why);
    if (run->status) return false;
    bool passed = true;
    gen_tell_open(&run->report, "left_out", true);
    for (uint32_t o = 0; o < graph->outputs.count; o++) {
        if (!check.weight[o]) continue;
        rt_left_out_tell(job, &run->report, graph->outputs.at[o].name, &run->left_out[o]);
        passed &= rt_left_out_judge(&run->why, graph->outputs.at[o].name, &run->left_out[o]);
    }
    gen_tell_close(&run->report, true);
    gen_tell_open(&run->report, "gradients", true);
    for (uint32_t o = 0; o < count; o++) {
        rt_gradient_tell(job, &run->report, &gradients[o]);
        passed &= rt_gradient_judge(job, &run->why, &gradients[o]);
        run->unbounded += gradients[o].unbounded;
    }
    gen_tell_close(&run->report, true);
    return passed;
}

static const Graph *parse(Job *job, const char *name, const char *text, size_t count, const GenOptions *options) {
    Unit unit = {0};
    gen_run(job, &unit, name, text, count, options, gen_pass_find("parse"));
    return unit.graph;
}

/* Errors in the backward graph are told at its places, those in the forward graph, before and after, at that one's. */
static const Grad *given_grad(Job *job, GradRun *run, const Graph *graph, GradOptions *options) {
    const ng_check_grad_options *own = &run->options;
    const char *name = own->backward_name ? own->backward_name : "backward";
    size_t source_count;
    const char *source = ir_job_source(job, &source_count), *source_name = ir_job_source_name(job);
    GenOptions settings = run->forward->unit.options;
    settings.settings_may_miss = true;
    const Graph *backward =
        parse(job, ir_copy_text(job, name, strlen(name)), ir_copy_text(job, own->backward, own->backward_count),
              own->backward_count, &settings);
    const Grad *grad = gen_grad_given(job, graph, backward, run->given.graph_dims, options);
    ir_text_put(&run->warnings, ir_job_report(job)); /* while its places are this source's */
    ir_drop_diagnostics(job, 0);
    ir_job_set_source(job, source_name, source, source_count);
    return grad;
}

static void grad_work(Job *job, void *state) {
    GradRun *run = state;
    const ng_program *forward = run->forward;
    run->why = ir_text(job);
    run->warnings = ir_text(job);
    run->report = gen_tell(job, run->options.json != 0);
    const Graph *graph = parse(job, forward->name, forward->unit.text, forward->unit.count, &forward->unit.options);
    ir_drop_diagnostics(job, 0); /* warnings, which were told when it was compiled */
    GradOptions options = rt_grad_names(job, run->options.wrt, run->options.of, run->options.save,
                                        run->options.recompute, run->options.prefix);
    int64_t *words = IR_NEW_ARRAY(job, int64_t, forward->tables->scratch_words + (size_t)1);
    run->status = rt_program_sizes(forward->tables, run->args->dims, words, &run->given, &run->why);
    if (run->status) return;
    const Grad *grad = run->options.backward ? given_grad(job, run, graph, &options) : gen_grad(job, graph, &options);
    Text texts[2] = {ir_text(job), ir_text(job)};
    gen_grad_forward(&texts[0], grad);
    gen_grad_backward(&texts[1], grad);
    run->sides[0].what = "forward graph";
    run->sides[1].what = "backward graph";
    run->sides[0].name = ir_format(job, "%s: forward", forward->name);
    run->sides[1].name = ir_format(job, "%s: backward", forward->name);
    run->names = &options;
    run->status = run_side(job, run, &run->sides[0], &texts[0]);
    if (run->status) return;
    const EvalInput input = forward_input(job, run);
    run->left_out = rt_grad_left_out(job, graph, &input);
    run->status = run_side(job, run, &run->sides[1], &texts[1]);
    if (run->status) return;
    gen_tell_open(&run->report, NULL, false);
    gen_tell_open(&run->report, "outputs", true);
    for (uint32_t k = 0; k < 2; k++) {
        const Side *side = &run->sides[k];
        const Graph *told = side->program->tables->graph;
        rt_grad_tell_program(job, &run->report, side->what, told, side->reports);
        for (uint32_t o = 0; o < told->outputs.count; o++) run->unbounded += side->reports[o].unbounded;
    }
    gen_tell_close(&run->report, true);
    bool passed = check_gradients(job, run, graph, &options, grad);
    if (run->status) return;
    passed &= !run->sides[0].failed && !run->sides[1].failed;
    gen_tell_json_bool(&run->report, "passed", passed);
    gen_tell_close(&run->report, false);
    if (!run->report.json)
        ir_text_format(&run->report.out, "check    %s%s\n", passed ? "passed" : "FAILED",
                       passed && run->unbounded ? ", but not for what has no finite bound" : "");
    if (!passed) run->status = STATUS_CHECK_FAILED;
}

ng_status ng_check_grad(ng_program *forward, const ng_args *args, const ng_check_grad_options *options, ng_text *report,
                        ng_text *why) {
    ng_args own = {.size = sizeof own};
    GradRun run = {.forward = forward, .args = &own, .options = {.size = sizeof run.options}};
    if (why) *why = (ng_text){NULL, 0};
    if (report) *report = (ng_text){NULL, 0};
    if (!forward || !args || !rt_struct_in(&own, sizeof own, args) ||
        (options && !rt_struct_in(&run.options, sizeof run.options, options))) {
        rt_why(why, "a program and args must be given, and sizes set");
        return NG_USAGE;
    }
    const ng_check_grad_options *asked = &run.options;
    if (asked->backward && (asked->wrt || asked->of || asked->save || asked->recompute)) {
        rt_why(why,
               "a given backward graph says itself which gradients it makes: wrt, of, save and recompute are of one "
               "that is made");
        return NG_USAGE;
    }
    if (!forward->context->device) {
        rt_why(why, "the context has no device");
        return NG_UNAVAILABLE;
    }
    Job *job = ir_job_create(&forward->context->allocator);
    if (!job) return NG_SYSTEM;
    Status status = ir_job_run(job, grad_work, &run);
    if (!status) status = run.status;
    if (report && (!status || status == STATUS_CHECK_FAILED))
        *report = rt_text_give(run.report.out.bytes, run.report.out.count);
    ng_text stopped = {NULL, 0};
    if (status && !run.why.count) stopped = rt_job_words(job);
    if (run.warnings.count + run.why.count + stopped.count)
        rt_why(why, "%s%s%s", run.warnings.count ? run.warnings.bytes : "", run.why.count ? run.why.bytes : "",
               stopped.bytes ? stopped.bytes : "");
    ng_text_free(&stopped);
    ir_job_free(job);
    return rt_status(status);
}
