/* One program with one set of dims, launched in every way that must not matter. Contract: the header. */
#include "tests/support/launch_trial.h"

#include <math.h>
#include <string.h>

typedef struct Runs {
    LaunchTrial *trial;
    char **fresh; /* inputs, and what accumulating outputs hold */
    Text *why;
} Runs;

bool launch_refuses_dims(const char *why) {
    return strstr(why, " of an extent of ") || strstr(why, " of no elements has no value") ||
           strstr(why, ", no multiple of ") || !strncmp(why, "extent ", 7);
}

static View *make_views(const Runs *runs, uint32_t first, uint32_t count) {
    const RtProgram *program = runs->trial->program;
    View *views = IR_NEW_ARRAY(runs->trial->job, View, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        const RtSpan *span = &runs->trial->scratch.spans[first + i];
        const Tensor *tensor = program->tensors[first + i].tensor;
        views[i] = (View){.bytes = runs->fresh[first + i], .rank = tensor->shape.rank, .dtype = tensor->dtype};
        memcpy(views[i].stride, span->stride, sizeof views[i].stride);
        memcpy(views[i].extent, span->extent, sizeof views[i].extent);
    }
    return views;
}

static bool passes(DType dtype, const char *element, const Expected *expected, uint64_t i, double *got) {
    if (ir_dtype(dtype)->kind == KIND_FLOAT) {
        *got = ir_load_float(dtype, element);
        return ir_element_passes(dtype, *got, expected->number[i], expected->bound[i]);
    }
    int64_t whole = ir_load_int(dtype, element);
    *got = (double)whole;
    return whole == expected->integer[i] ||
           (expected->bound && fabs((double)whole - (double)expected->integer[i]) <= expected->bound[i]);
}

static Status compare_output(Runs *runs, const LaunchMemory *memory, const EvalInput *input, uint32_t o) {
    LaunchTrial *trial = runs->trial;
    const Tensor *tensor = &trial->program->graph->outputs.at[o];
    Expected expected = ir_eval_graph(trial->job, trial->program->graph, input, o, NULL);
    size_t bytes, each = ir_dtype(tensor->dtype)->bytes;
    const char *elements = launch_elements(memory, o, &bytes);
    IR_REQUIRE(trial->job, expected.count * each == bytes);
    for (uint64_t i = 0; i < expected.count; i++) {
        double got, bound = expected.bound ? expected.bound[i] : 0;
        trial->elements++;
        trial->unbounded += isinf(bound) != 0;
        if (passes(tensor->dtype, elements + i * each, &expected, i, &got)) continue;
        ir_text_format(runs->why, "output %s, element %llu: ", tensor->name, (unsigned long long)i);
        ir_text_double(runs->why, got);
        ir_text_put(runs->why, ", expected ");
        ir_text_double(runs->why, expected.number ? expected.number[i] : (double)expected.integer[i]);
        ir_text_put(runs->why, ", bound ");
        ir_text_double(runs->why, bound);
        return STATUS_CHECK_FAILED;
    }
    return STATUS_OK;
}

static Status compare_with_oracle(Runs *runs, const LaunchMemory *memory) {
    LaunchTrial *trial = runs->trial;
    const RtProgram *program = trial->program;
    const Graph *graph = program->graph;
    Scalar *scalars = IR_NEW_ARRAY(trial->job, Scalar, graph->scalars.count + 1);
    for (uint32_t s = 0; s < graph->scalars.count; s++)
        scalars[s] = rt_scalar_value(&graph->scalars.at[s], trial->scalars ? &trial->scalars[s] : NULL);
    EvalInput input = {.dims = trial->scratch.graph_dims,
                       .inputs = make_views(runs, 0, program->input_count),
                       .held = make_views(runs, program->input_count, graph->outputs.count),
                       .scalars = scalars,
                       .depth = gen_depths(trial->job, trial->unit, trial->scratch.prog_dims, trial->scratch.parts)};
    Status status = STATUS_OK;
    for (uint32_t o = 0; o < graph->outputs.count && !status; o++) status = compare_output(runs, memory, &input, o);
    return status;
}

static Status compare_runs(Runs *runs, const LaunchMemory *memory, uint32_t number) {
    const Graph *graph = runs->trial->program->graph;
    if (number == 0) {
        Status status = compare_with_oracle(runs, memory);
        if (status) return status;
    }
    for (uint32_t o = 0; o < graph->outputs.count; o++) {
        size_t bytes;
        char *elements = launch_elements(memory, o, &bytes);
        if (number == 0) runs->trial->first[o] = elements;
        if (!memcmp(elements, runs->trial->first[o], bytes)) continue;
        ir_text_format(runs->why, "output %s has other bits than in run 0", graph->outputs.at[o].name);
        return STATUS_CHECK_FAILED;
    }
    return STATUS_OK;
}

/* Launches and brings back what was written. */
static Status launch(Runs *runs, LaunchMemory *memory) {
    LaunchTrial *trial = runs->trial;
    int64_t *words = IR_NEW_ARRAY(trial->job, int64_t, trial->program->scratch_words + 1);
    ng_args args = {.size = sizeof args, .tensors = memory->pointers, .dims = trial->any, .scalars = trial->scalars};
    args.workspace = memory->workspace;
    args.workspace_bytes = (size_t)trial->scratch.workspace_bytes;
    Status status = rt_program_launch(trial->program, &args, words, runs->why, trial->step_done, trial->state);
    if (!status) status = memory->device->ops->synchronize(memory->device, runs->why);
    return status ? status : launch_memory_fetch(memory, runs->why);
}

enum { RUNS = 4 };

/* Runs 0 and 3 are aligned, 1 and 2 are not; 1 and 3 are in place where the graph says that outputs may be. From RUNS
 * on one tensor is not, the first in run RUNS. */
static Status run_layout(Runs *runs, uint32_t number) {
    LaunchTrial *trial = runs->trial;
    RtDevice *device = trial->devices[number % trial->device_count];
    LaunchLayout layout = {.in_place = number < RUNS && number % 2 == 1,
                           .alone = number < RUNS ? 0 : number - RUNS + 1,
                           .shift = number == 1 || number == 2 ? trial->random : NULL,
                           .border = trial->border};
    LaunchMemory memory = {.program = trial->program};
    Status status = rt_program_load(trial->program, device, trial->module, runs->why);
    if (status) return status;
    status = launch_memory_open(&memory, trial->job, device, trial->program, &trial->scratch, runs->fresh, &layout,
                                runs->why);
    if (!status) status = launch(runs, &memory);
    launch_memory_close(&memory);
    if (status) return status;
    trial->launches++;
    return compare_runs(runs, &memory, number);
}

Status launch_trial_run(LaunchTrial *trial, Text *why) {
    const RtProgram *program = trial->program;
    Runs runs = {.trial = trial, .why = why};
    int64_t *words = IR_NEW_ARRAY(trial->job, int64_t, program->scratch_words + 1);
    Status status = rt_program_sizes(program, trial->any, words, &trial->scratch, why);
    if (status) return status;
    if (launch_picks_nothing(program, &trial->scratch)) {
        ir_text_put(why, "an index tensor picks one of an extent of 0");
        return STATUS_USAGE;
    }
    runs.fresh = launch_inputs(trial->job, program, &trial->scratch, trial->random);
    trial->first = IR_NEW_ARRAY(trial->job, char *, program->graph->outputs.count + 1);
    bool in_place = false;
    for (uint32_t t = 0; t < program->tensor_count; t++) in_place |= program->tensors[t].inplace != IR_NONE;
    uint32_t most = RUNS + (trial->each_alone ? program->tensor_count : 0);
    for (uint32_t number = 0; number < most && !status; number++) {
        if (number == 3 && !in_place) continue;
        status = run_layout(&runs, number);
        if (status == STATUS_CHECK_FAILED) ir_text_format(why, " (run %u)", number);
    }
    return status;
}
