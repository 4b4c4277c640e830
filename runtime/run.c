/* ng_run on a program's tables. In: host tensors in the file's strides. Out: outputs in place, a report. Ranges of host
 * memory that overlap (in-place outputs, slices of one input) become one range of device memory, at the same distance
 * from a 256-byte boundary, so that a kernel sees the alignments and the aliasing that the caller has. Before and
 * behind each lie guards full of NaN, which must come back as they were; not under AddressSanitizer, which sees more.
 */
#include "runtime/host_sanitize.h"
#include "runtime/launch_tables.h"

#include <stdio.h>
#include <string.h>

enum {
    BOUNDARY = 256,
    FILL_BYTES = 1 << 20,
    GUARD_BYTES = RT_ADDRESS_SANITIZER ? 0 : 2 * BOUNDARY,
    FILL_BYTE = 0xff /* all ones: a NaN in every float dtype */
};

typedef struct Region {
    char *start, *stop; /* host */
    char *device;       /* where start is */
    char *memory;       /* what was taken: a guard, what lies before the start in its 256 bytes, the range, a guard */
    char *before;       /* a copy of it as it was, where the oracle needs it and the launch writes it; else NULL */
    bool written, read; /* the oracle reads inputs, and outputs that accumulate */
} Region;

typedef struct Run {
    const RtProgram *program;
    const Allocator *allocator;
    const ng_args *args;
    bool verify;
    int debug;
    ng_report *report;
    Status status;
    Text why;
    RtScratch scratch;
    IR_LIST(Region) regions;
    uint32_t *region_of; /* of each tensor; IR_NONE where it has no elements */
    double step_start;
} Run;

static Status fill(Job *job, Run *run, char *memory, size_t bytes) {
    RtDevice *device = run->program->device;
    if (!bytes) return STATUS_OK;
    const size_t piece = bytes < FILL_BYTES ? bytes : FILL_BYTES;
    char *pattern = ir_alloc(job, piece);
    memset(pattern, FILL_BYTE, piece);
    Status status = STATUS_OK;
    for (size_t done = 0; !status && done < bytes; done += piece)
        status = device->ops->copy_in(device, memory + done, pattern, bytes - done < piece ? bytes - done : piece,
                                      &run->why);
    return status;
}

/* ---- regions ---- */

static char *host_start(const Run *run, uint32_t t) {
    return (char *)run->args->tensors[t] + run->scratch.spans[t].low;
}
static char *host_stop(const Run *run, uint32_t t) {
    return (char *)run->args->tensors[t] + run->scratch.spans[t].high;
}

/* The union of overlapping spans: a tensor joins the regions that it meets into one. */
static void add_region(Job *job, Run *run, uint32_t tensor) {
    Region joined = {.start = host_start(run, tensor),
                     .stop = host_stop(run, tensor),
                     .written = tensor >= run->program->input_count,
                     .read = tensor < run->program->input_count || run->program->tensors[tensor].tensor->accumulate};
    uint32_t kept = 0;
    for (uint32_t r = 0; r < run->regions.count; r++) {
        const Region *region = &run->regions.at[r];
        if (region->stop <= joined.start || joined.stop <= region->start) {
            run->regions.at[kept++] = *region;
            continue;
        }
        if (region->start < joined.start) joined.start = region->start;
        if (region->stop > joined.stop) joined.stop = region->stop;
        joined.written |= region->written;
        joined.read |= region->read;
    }
    run->regions.count = kept;
    *IR_PUSH(job, &run->regions) = joined;
}

static void find_regions(Job *job, Run *run) {
    run->region_of = IR_NEW_ARRAY(job, uint32_t, run->program->tensor_count);
    for (uint32_t t = 0; t < run->program->tensor_count; t++)
        if (run->scratch.spans[t].count) add_region(job, run, t);
    for (uint32_t t = 0; t < run->program->tensor_count; t++) {
        run->region_of[t] = IR_NONE;
        for (uint32_t r = 0; run->scratch.spans[t].count && r < run->regions.count; r++)
            if (run->regions.at[r].start <= host_start(run, t) && host_stop(run, t) <= run->regions.at[r].stop)
                run->region_of[t] = r;
    }
}

static Status copy_in(Job *job, Run *run) {
    RtDevice *device = run->program->device;
    Status status = STATUS_OK;
    for (uint32_t r = 0; !status && r < run->regions.count; r++) {
        Region *region = &run->regions.at[r];
        const size_t lead = (uintptr_t)region->start % BOUNDARY, bytes = (size_t)(region->stop - region->start);
        void *memory;
        status = rt_device_memory(job, device, GUARD_BYTES + lead + bytes + GUARD_BYTES, &memory, &run->why);
        if (status) return status;
        region->memory = memory;
        region->device = region->memory + GUARD_BYTES + lead;
        status = device->ops->copy_in(device, region->device, region->start, bytes, &run->why);
        if (!status) status = fill(job, run, region->memory, (size_t)(region->device - region->memory));
        if (!status) status = fill(job, run, region->device + bytes, GUARD_BYTES);
        if (!run->verify || !region->written || !region->read) continue;
        region->before = ir_alloc(job, bytes);
        memcpy(region->before, region->start, bytes);
    }
    return status;
}

static bool is_filled(const char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        if ((unsigned char)bytes[i] != FILL_BYTE) return false;
    return true;
}

/* A tensor of the region, for messages: an output where there is one. */
static const char *region_tensor(const Run *run, uint32_t region) {
    for (uint32_t t = run->program->tensor_count; t-- > 0;)
        if (run->region_of[t] == region) return run->program->tensors[t].tensor->name;
    return "?";
}

static Status check_guards(Job *job, Run *run) {
    RtDevice *device = run->program->device;
    char *guard = ir_alloc(job, GUARD_BYTES + BOUNDARY);
    for (uint32_t r = 0; GUARD_BYTES > 0 && r < run->regions.count; r++) {
        const Region *region = &run->regions.at[r];
        const size_t before = (size_t)(region->device - region->memory);
        Status status = device->ops->copy_out(device, guard, region->memory, before, &run->why);
        if (status) return status;
        bool whole = is_filled(guard, before);
        status = device->ops->copy_out(device, guard, region->device + (region->stop - region->start), GUARD_BYTES,
                                       &run->why);
        if (status) return status;
        if (whole && is_filled(guard, GUARD_BYTES)) continue;
        rt_say(&run->why, "memory %s %s was written", whole ? "behind" : "before", region_tensor(run, r));
        return STATUS_CHECK_FAILED;
    }
    return STATUS_OK;
}

static Status copy_out(Run *run) {
    RtDevice *device = run->program->device;
    Status status = STATUS_OK;
    for (uint32_t t = run->program->input_count; !status && t < run->program->tensor_count; t++) {
        if (run->region_of[t] == IR_NONE) continue;
        const Region *region = &run->regions.at[run->region_of[t]];
        char *start = host_start(run, t);
        status = device->ops->copy_out(device, start, region->device + (start - region->start),
                                       (size_t)(host_stop(run, t) - start), &run->why);
    }
    return status;
}

/* ---- launching ---- */

/* Bytes of the buffers that a step touches, each counted once. */
static double step_bytes(const Run *run, uint32_t index, const RtScratch *scratch) {
    const Step *step = &run->program->unit->plan->steps.at[index];
    double bytes = 0;
    for (uint32_t p = 0; p < step->param_count; p++) {
        if (step->params[p].kind != PARAM_BUF) continue;
        const Buf *buf = &run->program->unit->prog->bufs.at[step->params[p].buf];
        double size = ir_dtype(buf->dtype)->bytes;
        for (uint32_t d = 0; d < buf->rank; d++) size *= (double)rt_size_value(scratch, buf->extent[d]);
        if (buf->kind != BUF_SCALAR) bytes += size;
    }
    return bytes;
}

static void time_step(void *state, uint32_t step, const RtScratch *scratch) {
    Run *run = state;
    if (run->program->device->ops->synchronize(run->program->device, NULL)) return;
    const double seconds = rt_now() - run->step_start;
    const Unit *unit = run->program->unit;
    const bool twin = !gen_has_code(unit->plan, step);
    fprintf(stderr, "normgen: kernel %s%s%s: %lld us, %lld MB/s\n",
            unit->plan->steps.at[step].variants[scratch->variant].kernel, twin ? " as " : "",
            twin ? unit->prog->nests.at[unit->plan->steps.at[step].nest].name : "", (long long)(seconds * 1e6),
            (long long)(step_bytes(run, step, scratch) / seconds * 1e-6));
    run->step_start = rt_now();
}

static Status launch(Job *job, Run *run) {
    const RtProgram *program = run->program;
    RtDevice *device = program->device;
    void **tensors = IR_NEW_ARRAY(job, void *, program->tensor_count + 1);
    for (uint32_t t = 0; t < program->tensor_count; t++) {
        if (run->region_of[t] == IR_NONE) continue;
        const Region *region = &run->regions.at[run->region_of[t]];
        tensors[t] = region->device + ((char *)run->args->tensors[t] - region->start);
    }
    void *workspace = NULL;
    const size_t bytes = (size_t)run->scratch.workspace_bytes;
    Status status = bytes ? rt_device_memory(job, device, bytes, &workspace, &run->why) : STATUS_OK;
    /* its contents are arbitrary: a kernel that reads what it did not write should show */
    if (!status && run->verify && bytes) status = fill(job, run, workspace, bytes);
    if (!status) status = device->ops->synchronize(device, &run->why);
    if (status) return status;
    ng_args args = *run->args;
    args.tensors = tensors;
    args.workspace = workspace;
    args.workspace_bytes = bytes;
    args.stream = NULL;
    int64_t *words = IR_NEW_ARRAY(job, int64_t, program->scratch_words + 1);
    const double start = run->step_start = rt_now();
    status = rt_program_launch(program, &args, words, &run->why, run->debug >= 2 ? time_step : NULL, run);
    if (!status) status = device->ops->synchronize(device, &run->why);
    run->report->seconds = rt_now() - start;
    return status;
}

/* ---- reporting ---- */

/* Where a tensor's pointer is in what was kept of its region; the caller's own memory where nothing was kept. */
static char *before(const Run *run, uint32_t tensor) {
    char *pointer = run->args->tensors[tensor];
    const Region *region = run->region_of[tensor] == IR_NONE ? NULL : &run->regions.at[run->region_of[tensor]];
    return region && region->before ? region->before + (pointer - region->start) : pointer;
}

static RtCompared compared_of(Job *job, const Run *run) {
    const RtProgram *program = run->program;
    const uint32_t outputs = program->graph->outputs.count;
    char **pointers = IR_NEW_ARRAY(job, char *, program->tensor_count + outputs + 1);
    for (uint32_t t = 0; t < program->tensor_count; t++) pointers[t] = before(run, t);
    for (uint32_t o = 0; o < outputs; o++)
        pointers[program->tensor_count + o] = run->args->tensors[program->input_count + o];
    return (RtCompared){.program = program,
                        .allocator = run->allocator,
                        .scratch = &run->scratch,
                        .scalars = run->args->scalars,
                        .inputs = pointers,
                        .held = pointers + program->input_count,
                        .outputs = pointers + program->tensor_count};
}

static bool has_gather(const Graph *graph) {
    for (uint32_t v = 0; v < graph->values.count; v++)
        if (ir_gather_index(&graph->values.at[v]) != IR_NONE) return true;
    return false;
}

static Status report_outputs(Job *job, Run *run) {
    const uint32_t outputs = run->program->graph->outputs.count;
    RtCompared compared = compared_of(job, run);
    ng_output_report *reports = run->report->outputs;
    if (!reports && !run->verify) return STATUS_OK;
    if (!reports) reports = IR_NEW_ARRAY(job, ng_output_report, outputs + 1);
    rt_measure_outputs(&compared, reports);
    return run->verify ? rt_check_outputs(job, &compared, reports, &run->report->sampled, &run->why) : STATUS_OK;
}

static void run_work(Job *job, void *state) {
    Run *run = state;
    run->why = ir_text(job);
    int64_t *words = IR_NEW_ARRAY(job, int64_t, run->program->scratch_words + 1);
    run->status = rt_program_check_tensors(run->program, run->args, words, &run->scratch, &run->why);
    if (run->status) return;
    find_regions(job, run);
    run->status = copy_in(job, run);
    if (!run->status) {
        run->status = launch(job, run);
        if (run->status == STATUS_LAUNCH && has_gather(run->program->graph)) {
            RtCompared compared = compared_of(job, run);
            rt_explain_index(job, &compared, &run->why);
        }
    }
    if (!run->status) run->status = check_guards(job, run);
    if (!run->status) run->status = copy_out(run);
    if (!run->status) run->status = report_outputs(job, run);
}

Status rt_program_run(const RtProgram *program, const Allocator *allocator, const ng_args *args, bool verify, int debug,
                      ng_report *report) {
    Run run = {
        .program = program, .allocator = allocator, .args = args, .verify = verify, .debug = debug, .report = report};
    report->why = (ng_text){NULL, 0};
    report->seconds = 0;
    report->sampled = 0;
    Job *job = ir_job_create(allocator);
    if (!job) return STATUS_SYSTEM;
    Status status = ir_job_run(job, run_work, &run);
    if (!status) status = run.status;
    if (run.why.count) report->why = rt_text_give(run.why.bytes, run.why.count);
    if (!report->why.bytes && status) report->why = rt_job_words(job);
    ir_job_free(job);
    return status;
}
