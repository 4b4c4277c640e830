/* What a launch looks up. In: a unit whose passes have run. Out: an RtProgram without kernels, in the job's arena. What
 * can be known before the dims are given is settled here, so that a launch only evaluates and compares. */
#include "runtime/launch_tables.h"

#include <pthread.h>
#include <string.h>

/* Elements from the input's pointer to the first one of its slice. */
static Poly slice_offset(Job *job, const Tensor *input, const Tensor *output) {
    Poly offset = ir_poly_int(job, 0);
    bool overflow = false;
    for (uint32_t i = 0; output->inplace_items && i < output->inplace_item_count; i++)
        offset = ir_poly_add(job, offset, ir_poly_mul(job, output->inplace_items[i].start, input->stride[i], &overflow),
                             &overflow);
    if (overflow) ir_stop_at(job, STATUS_REJECTED, output->place, "the slice's place passes 2^62 elements");
    return offset;
}

static void make_tensors(Job *job, RtProgram *program) {
    const Graph *graph = program->graph;
    program->input_count = graph->inputs.count;
    program->tensor_count = graph->inputs.count + graph->outputs.count;
    program->tensors = IR_NEW_ARRAY(job, RtTensor, program->tensor_count);
    for (uint32_t t = 0; t < program->tensor_count; t++) {
        const bool output = t >= program->input_count;
        const Tensor *tensor = output ? &graph->outputs.at[t - program->input_count] : &graph->inputs.at[t];
        int64_t bytes = ir_dtype(tensor->dtype)->bytes;
        RtTensor *row = &program->tensors[t];
        *row = (RtTensor){.tensor = tensor,
                          .element_bytes = bytes,
                          .pointer_align = tensor->align > bytes ? tensor->align : bytes,
                          .inplace = output ? tensor->inplace : IR_NONE};
        if (row->inplace != IR_NONE) row->slice = slice_offset(job, &graph->inputs.at[row->inplace], tensor);
    }
}

static void make_dims(Job *job, RtProgram *program) {
    const Graph *graph = program->graph;
    const Prog *prog = program->unit->prog;
    program->any = IR_NEW_ARRAY(job, uint32_t, graph->dims.count);
    for (uint32_t d = 0; d < graph->dims.count; d++)
        if (graph->dims.at[d].value < 0) program->any[program->any_count++] = d;
    if (!prog) return;
    program->prog_dim = IR_NEW_ARRAY(job, uint32_t, prog->dims.count);
    for (uint32_t p = 0; p < prog->dims.count; p++) {
        uint32_t d = 0;
        while (d < graph->dims.count && strcmp(graph->dims.at[d].name, prog->dims.at[p].name) != 0) d++;
        IR_REQUIRE(job, d < graph->dims.count);
        program->prog_dim[p] = d;
    }
}

static void make_checked(Job *job, RtProgram *program) {
    const Graph *graph = program->unit->graph;
    program->checked = IR_NEW_ARRAY(job, uint32_t, graph->values.count);
    for (uint32_t v = 0; v < graph->values.count; v++)
        if (ir_value_needs_check(graph, &graph->values.at[v])) program->checked[program->checked_count++] = v;
}

static void destroy_lock(void *lock) { pthread_mutex_destroy(lock); }

static void make_scratch(Job *job, RtProgram *program) {
    const Unit *unit = program->unit;
    uint64_t words = program->graph->dims.count + program->tensor_count * (sizeof(RtSpan) / sizeof(int64_t));
    if (unit->prog) words += unit->prog->dims.count + unit->prog->sizes.count + unit->prog->bufs.count;
    if (unit->plan) words += unit->prog->parts.count + unit->plan->rooms.count + (uint64_t)1;
    for (uint32_t s = 0; unit->plan && s < unit->plan->steps.count; s++)
        if (unit->plan->steps.at[s].param_count > program->most_params)
            program->most_params = unit->plan->steps.at[s].param_count;
    words += 2 * (uint64_t)program->most_params;
    IR_REQUIRE(job, words <= UINT32_MAX);
    program->scratch_words = (uint32_t)words;
    if (words <= RT_STACK_WORDS) return;
    program->spare = IR_NEW_ARRAY(job, int64_t, words);
    pthread_mutex_t *lock = IR_NEW(job, pthread_mutex_t);
    if (pthread_mutex_init(lock, NULL)) ir_stop_at(job, STATUS_SYSTEM, (Place){0, 0}, "no lock can be made");
    ir_job_defer(job, destroy_lock, lock);
    program->spare_lock = lock;
}

RtProgram *rt_program_create(Job *job, const Unit *unit) {
    RtProgram *program = IR_NEW(job, RtProgram);
    program->unit = unit;
    program->graph = unit->expanded ? unit->expanded : unit->graph;
    IR_REQUIRE(job, program->graph != NULL && unit->graph != NULL);
    IR_REQUIRE(job, unit->graph->dims.count == program->graph->dims.count);
    make_tensors(job, program);
    make_dims(job, program);
    program->sms = (unit->options.target ? unit->options.target : gen_target(90))->sms;
    if (unit->plan) {
        make_checked(job, program);
        program->variants = ir_alloc_array(job, unit->plan->steps.count, sizeof *program->variants);
    }
    make_scratch(job, program);
    return program;
}

void rt_scratch_carve(const RtProgram *program, int64_t *words, RtScratch *scratch) {
    const Prog *prog = program->unit->prog;
    const Plan *plan = program->unit->plan;
    scratch->graph_dims = words;
    words += program->graph->dims.count;
    scratch->spans = (RtSpan *)(void *)words;
    words += program->tensor_count * (sizeof(RtSpan) / sizeof(int64_t));
    scratch->prog_dims = words;
    words += prog ? prog->dims.count : 0;
    scratch->parts = words;
    words += prog && plan ? prog->parts.count : 0;
    scratch->places = words;
    words += plan ? plan->rooms.count + 1 : 0;
    scratch->sizes = words;
    words += prog ? prog->sizes.count : 0;
    scratch->bufs = (char **)(void *)words;
    words += prog ? prog->bufs.count : 0;
    scratch->values = words;
    words += program->most_params;
    scratch->params = (void **)(void *)words;
    scratch->workspace_bytes = 0;
    scratch->variant = 0;
}
