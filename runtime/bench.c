/* Measuring on a device (bench.h). In: loaded programs of one graph, host tensors, dims. Out: microseconds a call of
 * each program and of a copy. Takes device memory and gives it back; what it launches goes through the same checks as
 * any launch. Messages may leave a job, so whatever is held in one is registered with it. */
#include "runtime/bench.h"

#include "gen/bytes.h"
#include "runtime/launch_tables.h"

#include <math.h>
#include <string.h>

enum {
    BOUNDARY = 256, /* bytes: where a tensor's memory begins */
    REPLAYS = 11,
    COPY_THREADS = 256,
    COPY_BYTES = 16,    /* an access */
    MOST_NODES = 65536, /* kernels in one tape */
    MOST_WARM_ROUNDS = 20
};
#define REPLAY_SECONDS 0.005 /* the event's resolution is half a microsecond: 0.01 % */
#define WARM_SECONDS 0.05    /* until clocks are up */

typedef struct Copy {
    RtKernel *kernel; /* NULL: the device's copy_within */
    char *memory;     /* of each set: what is read, then what is written */
    uint64_t half, stride;
    uint32_t sets;
} Copy;

struct RtBench {
    Allocator allocator;
    Job *job; /* of all below */
    RtDevice *device;
    const RtProgram *first;
    RtBenchOptions options;
    RtBenchFacts facts;
    ng_args args;      /* dims and scalars are copies */
    RtSpan *spans;     /* of each tensor */
    int64_t *pointers; /* of each tensor: bytes from the start of a set to where its pointer points */
    uint64_t stride;   /* bytes between sets */
    char *memory;
    RtModule *module; /* of the copy */
    Copy copy;
};

static uint64_t whole(uint64_t bytes) { return (bytes + BOUNDARY - 1) / BOUNDARY * BOUNDARY; }

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* ---- where tensors lie ---- */

/* The output is given as its inplace input, or that input's slice; *distance: bytes between their pointers. */
static bool shares_input(const RtBench *bench, const RtScratch *scratch, uint32_t tensor, int64_t *distance) {
    const RtTensor *row = &bench->first->tensors[tensor];
    char *const *given = (char *const *)bench->args.tensors;
    if (tensor < bench->first->input_count || row->inplace == IR_NONE || !given[tensor]) return false;
    if (!ir_poly_eval(row->slice, scratch->graph_dims, bench->first->graph->dims.count, NULL, 0, distance))
        return false;
    *distance *= row->element_bytes;
    return given[tensor] == given[row->inplace] + *distance;
}

/* A tensor keeps its distance from a 256-byte boundary. */
static void place_tensors(RtBench *bench, const RtScratch *scratch) {
    for (uint32_t t = 0; t < bench->first->tensor_count; t++) {
        const RtSpan *span = &bench->spans[t];
        int64_t distance;
        if (shares_input(bench, scratch, t, &distance)) {
            bench->pointers[t] = bench->pointers[bench->first->tensors[t].inplace] + distance;
            continue;
        }
        const char *given = bench->args.tensors[t];
        const uint64_t lead = given ? (uintptr_t)(given + span->low) % BOUNDARY : 0;
        const uint64_t bytes = (uint64_t)(span->high - span->low);
        bench->pointers[t] = (int64_t)(bench->stride + lead) - span->low;
        bench->stride += whole(lead + bytes);
        bench->facts.set_bytes += bytes;
    }
}

static void point_tensors(const RtBench *bench, uint32_t set, void **tensors) {
    for (uint32_t t = 0; t < bench->first->tensor_count; t++)
        tensors[t] = bench->memory + bench->stride * set + bench->pointers[t];
}

/* ---- opening ---- */

/* As explain counts them, but for the dims of the launch. */
static void count_bytes(Job *job, const RtProgram *program, const RtScratch *scratch, uint64_t *ideal,
                        uint64_t *moved) {
    Unit unit = *program->unit;
    Prog prog = *unit.prog;
    prog.dims.at = IR_NEW_ARRAY(job, Dim, prog.dims.count + (size_t)1);
    for (uint32_t d = 0; d < prog.dims.count; d++) {
        prog.dims.at[d] = unit.prog->dims.at[d];
        prog.dims.at[d].hint = scratch->prog_dims[d];
    }
    unit.prog = &prog;
    *ideal = (uint64_t)gen_bytes_guess(job, &unit, gen_ideal_bytes(job, &unit));
    *moved = (uint64_t)gen_bytes_guess(job, &unit, gen_moved_bytes(job, &unit));
}

static Status check_given(const RtBench *bench, Text *why) {
    const RtProgram *program = bench->first;
    for (uint32_t t = 0; t < program->tensor_count; t++) {
        const Tensor *tensor = program->tensors[t].tensor;
        if (!bench->spans[t].count || bench->args.tensors[t] || (t >= program->input_count && !tensor->accumulate))
            continue;
        rt_say(why, "the pointer of %s is NULL, and it is read", tensor->name);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

/* The first set from the caller's memory, the others from it, twice as many each time. */
static Status fill_sets(RtBench *bench, Text *why) {
    const RtDeviceOps *ops = bench->device->ops;
    Status status = STATUS_OK;
    for (uint32_t t = 0; !status && t < bench->first->tensor_count; t++) {
        const RtSpan *span = &bench->spans[t];
        const char *given = bench->args.tensors[t];
        if (!span->count || (t >= bench->first->input_count && !bench->first->tensors[t].tensor->accumulate)) continue;
        status = ops->copy_in(bench->device, bench->memory + bench->pointers[t] + span->low, given + span->low,
                              (size_t)(span->high - span->low), why);
    }
    for (uint64_t done = 1; !status && done < bench->facts.sets; done *= 2) {
        const uint64_t left = bench->facts.sets - done;
        status = ops->copy_within(bench->device, bench->memory + done * bench->stride, bench->memory,
                                  (done < left ? done : left) * bench->stride, why);
    }
    return status;
}

static void free_module(void *object) {
    RtBench *bench = object;
    if (bench->module) bench->device->ops->module_free(bench->device, bench->module);
}

static Status make_copy(Job *job, RtBench *bench, uint64_t l2_bytes, uint64_t room, Text *why) {
    const RtDeviceOps *ops = bench->device->ops;
    Copy *copy = &bench->copy;
    copy->half = (bench->facts.ideal_bytes / 2 + COPY_BYTES - 1) / COPY_BYTES * COPY_BYTES;
    copy->stride = 2 * whole(copy->half);
    copy->sets = rt_bench_sets(2 * copy->half, l2_bytes, least(room / copy->stride, RT_MOST_CALLS));
    void *memory = NULL;
    Status status = rt_device_memory(job, bench->device, copy->sets * copy->stride, &memory, why);
    copy->memory = memory;
    if (status || !ops->copy_text) return status;
    const char *names[] = {"ng_copy"};
    const Source source = {
        .device_text = ops->copy_text, .device_count = strlen(ops->copy_text), .kernel_count = 1, .kernels = names};
    const Source *sources[] = {&source};
    ir_job_defer(job, free_module, bench);
    status = ops->build(bench->device, sources, 1, &bench->module, why);
    return status ? status : ops->kernel(bench->device, bench->module, names[0], 0, &copy->kernel, why);
}

static uint32_t most_calls(const RtProgram *program) {
    const uint32_t steps = program->unit->plan->steps.count, most = steps ? MOST_NODES / steps : MOST_NODES;
    return most < 2 ? 2 : most < RT_MOST_CALLS ? most : RT_MOST_CALLS;
}

static Status make_sets(Job *job, RtBench *bench, Text *why) {
    RtBenchFacts *facts = &bench->facts;
    const bool real = bench->device->ops->copy_text != NULL;
    const uint64_t l2_bytes = real ? (uint64_t)bench->device->target.l2_bytes : 0;
    uint64_t left = 0;
    Status status = bench->device->ops->memory_left(bench->device, &left, why);
    if (status) return status;
    const uint64_t room = bench->options.memory_bytes ? bench->options.memory_bytes : left / 5 * 4;
    facts->real = real;
    /* a set in place moves more than it has, one that is gathered from less */
    const uint64_t touched = least(facts->set_bytes, facts->ideal_bytes);
    facts->sets = rt_bench_sets(touched, l2_bytes, least(room / 2 / bench->stride, most_calls(bench->first)));
    facts->cold = real && facts->sets * touched > RT_COLD_L2S * l2_bytes;
    void *memory = NULL;
    status = rt_device_memory(job, bench->device, facts->sets * bench->stride, &memory, why);
    bench->memory = memory;
    if (!status) status = fill_sets(bench, why);
    return status ? status : make_copy(job, bench, l2_bytes, room / 2, why);
}

static const void *copy_of(Job *job, const void *from, uint32_t count, size_t item_bytes) {
    void *copy = ir_alloc_array(job, count + (size_t)1, item_bytes);
    if (from && count) memcpy(copy, from, count * item_bytes);
    return from ? copy : NULL;
}

typedef struct Opening {
    RtBench *bench;
    Text why;
    Status status;
} Opening;

static Status open_bench(Job *job, RtBench *bench, Text *why) {
    const RtProgram *program = bench->first;
    RtScratch scratch;
    uint64_t moved;
    if (!program->device) {
        rt_say(why, "nothing to measure: the program was made for no device, or only up to some pass");
        return STATUS_UNAVAILABLE;
    }
    bench->args.dims = copy_of(job, bench->args.dims, program->any_count, sizeof *bench->args.dims);
    bench->args.scalars = copy_of(job, bench->args.scalars, program->graph->scalars.count, sizeof(ng_scalar));
    int64_t *words = IR_NEW_ARRAY(job, int64_t, program->scratch_words + (size_t)1);
    Status status = rt_program_sizes(program, bench->args.dims, words, &scratch, why);
    if (status) return status;
    bench->spans = scratch.spans;
    bench->pointers = IR_NEW_ARRAY(job, int64_t, program->tensor_count + (size_t)1);
    count_bytes(job, program, &scratch, &bench->facts.ideal_bytes, &moved);
    status = check_given(bench, why);
    if (status) return status;
    if (!bench->facts.ideal_bytes) {
        rt_say(why, "nothing to measure: with these dims no byte is moved");
        return STATUS_USAGE;
    }
    place_tensors(bench, &scratch);
    return make_sets(job, bench, why);
}

static void open_work(Job *job, void *state) {
    Opening *opening = state;
    opening->why = ir_text(job);
    opening->status = open_bench(job, opening->bench, &opening->why);
}

static void give_words(Job *job, const Text *said, Status status, ng_text *why) {
    if (!why) return;
    *why = said->count ? rt_text_give(said->bytes, said->count) : (ng_text){NULL, 0};
    if (!why->bytes && status) *why = rt_job_words(job);
}

Status rt_bench_open(const Allocator *allocator, const RtProgram *first, const ng_args *args,
                     const RtBenchOptions *options, RtBench **bench, ng_text *why) {
    *bench = NULL;
    Job *job = ir_job_create(allocator);
    RtBench *made = allocator->alloc(allocator->state, sizeof *made);
    if (!job || !made) {
        ir_job_free(job);
        if (made) allocator->release(allocator->state, made);
        return STATUS_SYSTEM;
    }
    *made = (RtBench){.allocator = *allocator, .job = job, .first = first, .args = *args, .options = *options};
    made->device = first->device;
    if (!made->options.replays) made->options.replays = REPLAYS;
    if (!(made->options.replay_seconds > 0)) made->options.replay_seconds = REPLAY_SECONDS;
    made->facts.replays = made->options.replays;
    Opening opening = {.bench = made};
    Status status = ir_job_run(job, open_work, &opening);
    if (!status) status = opening.status;
    give_words(job, &opening.why, status, why);
    if (status)
        rt_bench_close(made);
    else
        *bench = made;
    return status;
}

void rt_bench_close(RtBench *bench) {
    if (!bench) return;
    const Allocator allocator = bench->allocator;
    ir_job_free(bench->job);
    allocator.release(allocator.state, bench);
}

RtBenchFacts rt_bench_facts(const RtBench *bench) { return bench->facts; }

/* ---- timing ---- */

typedef struct Subject { /* what is timed */
    const RtBench *bench;
    const RtProgram *program; /* NULL: the copy */
    RtEnqueue enqueue;
    uint32_t sets, calls; /* calls: of a tape */
    int64_t *words;       /* of a launch */
    void **tensors;
    char *workspace;
    uint64_t workspace_bytes, workspace_stride;
    RtTape *tape;
    uint64_t moved_bytes;
    double *samples; /* microseconds a call */
} Subject;

typedef struct Timing {
    RtBench *bench;
    const RtProgram *const *programs;
    uint32_t count; /* of programs */
    ng_measured *times, *copy;
    Subject *subjects; /* the programs, then the copy */
    Text why;
    Status status;
} Timing;

static Status call_program(const Subject *subject, uint32_t set, void *stream, Text *why) {
    ng_args args = subject->bench->args;
    point_tensors(subject->bench, set, subject->tensors);
    args.tensors = subject->tensors;
    args.workspace = subject->workspace_bytes ? subject->workspace + set * subject->workspace_stride : NULL;
    args.workspace_bytes = subject->workspace_bytes;
    args.stream = stream;
    return rt_program_launch(subject->program, &args, subject->words, why, NULL, NULL);
}

static Status enqueue_program(void *state, void *stream) {
    const Subject *subject = state;
    Status status = STATUS_OK;
    for (uint32_t c = 0; !status && c < subject->calls; c++)
        status = call_program(subject, c % subject->sets, stream, NULL);
    return status;
}

static Status enqueue_copy(void *state, void *stream) {
    const Subject *subject = state;
    RtDevice *device = subject->bench->device;
    const Copy *copy = &subject->bench->copy;
    Status status = STATUS_OK;
    for (uint32_t c = 0; !status && c < subject->calls; c++) {
        char *from = copy->memory + c % copy->sets * copy->stride, *to = from + copy->stride / 2;
        if (!copy->kernel) {
            status = device->ops->copy_within(device, to, from, copy->half, NULL);
            continue;
        }
        int64_t count = (int64_t)(copy->half / COPY_BYTES);
        void *params[] = {&to, &from, &count};
        const RtLaunch launch = {.kernel = copy->kernel,
                                 .blocks = ((uint64_t)count + COPY_THREADS - 1) / COPY_THREADS,
                                 .threads = COPY_THREADS,
                                 .params = params,
                                 .stream = stream};
        status = device->ops->launch(device, &launch, NULL);
    }
    return status;
}

static Status check_same_tensors(const RtBench *bench, const RtProgram *program, const RtScratch *scratch, Text *why) {
    const RtProgram *first = bench->first;
    bool same = program->device == bench->device && program->tensor_count == first->tensor_count &&
                program->input_count == first->input_count &&
                program->graph->scalars.count == first->graph->scalars.count;
    for (uint32_t t = 0; same && t < first->tensor_count; t++) {
        const Tensor *own = program->tensors[t].tensor, *other = first->tensors[t].tensor;
        same = own->dtype == other->dtype && own->shape.rank == other->shape.rank && own->inplace == other->inplace &&
               !memcmp(&scratch->spans[t], &bench->spans[t], sizeof(RtSpan));
    }
    if (!same) rt_say(why, "programs that are measured together are of one graph: %s is another", program->graph->name);
    return same ? STATUS_OK : STATUS_USAGE;
}

static Status prepare_program(Job *job, Timing *timing, Subject *subject, const RtProgram *program) {
    const RtBench *bench = timing->bench;
    RtScratch scratch;
    uint64_t ideal;
    *subject = (Subject){.bench = bench, .program = program, .enqueue = enqueue_program, .sets = bench->facts.sets};
    if (!program->device || program->any_count != bench->first->any_count) {
        rt_say(&timing->why, "a program that is measured is of the first one's graph and device");
        return STATUS_USAGE;
    }
    subject->words = IR_NEW_ARRAY(job, int64_t, program->scratch_words + (size_t)1);
    subject->tensors = IR_NEW_ARRAY(job, void *, program->tensor_count + (size_t)1);
    Status status = rt_program_sizes(program, bench->args.dims, subject->words, &scratch, &timing->why);
    if (!status) status = check_same_tensors(bench, program, &scratch, &timing->why);
    if (status) return status;
    if (subject->sets > most_calls(program)) subject->sets = most_calls(program);
    subject->workspace_bytes = (uint64_t)scratch.workspace_bytes;
    subject->workspace_stride = whole(subject->workspace_bytes);
    count_bytes(job, program, &scratch, &ideal, &subject->moved_bytes);
    return STATUS_OK;
}

/* Programs take turns in one workspace a set: its contents are arbitrary. */
static Status give_workspaces(Job *job, Timing *timing) {
    uint64_t most = 0;
    void *memory = NULL;
    for (uint32_t s = 0; s < timing->count; s++) {
        const Subject *subject = &timing->subjects[s];
        const uint64_t bytes = subject->sets * subject->workspace_stride;
        if (bytes > most) most = bytes;
    }
    Status status = most ? rt_device_memory(job, timing->bench->device, most, &memory, &timing->why) : STATUS_OK;
    for (uint32_t s = 0; s < timing->count; s++) timing->subjects[s].workspace = memory;
    return status;
}

typedef struct HeldTape {
    RtDevice *device;
    RtTape *tape;
} HeldTape;

static void free_tape(void *object) {
    HeldTape *held = object;
    held->device->ops->tape_free(held->device, held->tape);
}

static Status record(Job *job, Timing *timing, Subject *subject, uint32_t calls) {
    RtDevice *device = timing->bench->device;
    HeldTape *held = IR_NEW(job, HeldTape);
    held->device = device;
    ir_job_defer(job, free_tape, held);
    subject->calls = calls;
    Status status = device->ops->record(device, subject->enqueue, subject, &held->tape, &timing->why);
    subject->tape = held->tape;
    return status;
}

/* One plain call, whose faults have words; then each set once, to see how many calls fill a replay. */
static Status begin(Job *job, Timing *timing, Subject *subject) {
    const RtBench *bench = timing->bench;
    RtDevice *device = bench->device;
    Status status = subject->program ? call_program(subject, 0, NULL, &timing->why) : STATUS_OK;
    if (!status) status = device->ops->synchronize(device, &timing->why);
    if (!status) status = record(job, timing, subject, subject->sets);
    if (status) return status;
    RtTape *twice[] = {subject->tape, subject->tape};
    double seconds[2];
    status = device->ops->play(device, twice, 2, seconds, &timing->why);
    if (status) return status;
    const uint32_t most = subject->program ? most_calls(subject->program) : RT_MOST_CALLS;
    const uint32_t calls =
        rt_bench_calls(subject->sets, seconds[1] / subject->sets, bench->options.replay_seconds, most);
    return calls == subject->calls ? STATUS_OK : record(job, timing, subject, calls);
}

static Status play_rounds(Job *job, Timing *timing) {
    RtDevice *device = timing->bench->device;
    const uint32_t width = timing->count + 1, replays = timing->bench->options.replays;
    RtTape **tapes = IR_NEW_ARRAY(job, RtTape *, (MOST_WARM_ROUNDS + (size_t)replays) * width);
    double *seconds = IR_NEW_ARRAY(job, double, (MOST_WARM_ROUNDS + (size_t)replays) * width);
    for (uint32_t i = 0; i < (MOST_WARM_ROUNDS + replays) * width; i++) tapes[i] = timing->subjects[i % width].tape;
    const double round = width * timing->bench->options.replay_seconds, rounds = ceil(WARM_SECONDS / round);
    const uint32_t warm = rounds < 1 ? 1 : rounds > MOST_WARM_ROUNDS ? MOST_WARM_ROUNDS : (uint32_t)rounds;
    Status status = device->ops->play(device, tapes, (warm + replays) * width, seconds, &timing->why);
    for (uint32_t i = 0; !status && i < replays * width; i++) {
        Subject *subject = &timing->subjects[i % width];
        subject->samples[i / width] = seconds[warm * width + i] * 1e6 / subject->calls;
    }
    return status;
}

static void report_times(Timing *timing) {
    const RtBench *bench = timing->bench;
    const uint64_t copied = 2 * bench->copy.half;
    for (uint32_t s = timing->count + 1; s-- > 0;) { /* the copy first */
        const Subject *subject = &timing->subjects[s];
        ng_measured *out = subject->program ? &timing->times[s] : timing->copy;
        *out = (ng_measured){.calls = subject->calls};
        rt_bench_statistics(subject->samples, bench->options.replays, out);
        out->ideal_bytes = subject->program ? bench->facts.ideal_bytes : copied;
        out->moved_bytes = subject->program ? subject->moved_bytes : copied;
        out->gbs = (double)out->ideal_bytes / (out->median * 1e3);
        out->share = out->gbs / timing->copy->gbs;
    }
}

static Status time_all(Job *job, Timing *timing) {
    RtBench *bench = timing->bench;
    Status status = STATUS_OK;
    timing->subjects = IR_NEW_ARRAY(job, Subject, timing->count + (size_t)1);
    for (uint32_t s = 0; !status && s < timing->count; s++)
        status = prepare_program(job, timing, &timing->subjects[s], timing->programs[s]);
    if (status) return status;
    timing->subjects[timing->count] = (Subject){.bench = bench, .enqueue = enqueue_copy, .sets = bench->copy.sets};
    status = give_workspaces(job, timing);
    for (uint32_t s = 0; !status && s <= timing->count; s++) {
        timing->subjects[s].samples = IR_NEW_ARRAY(job, double, bench->options.replays);
        status = begin(job, timing, &timing->subjects[s]);
    }
    if (!status) status = play_rounds(job, timing);
    if (!status) report_times(timing);
    return status;
}

static void time_work(Job *job, void *state) {
    Timing *timing = state;
    timing->why = ir_text(job);
    timing->status = time_all(job, timing);
}

Status rt_bench_time(RtBench *bench, const RtProgram *const *programs, uint32_t count, ng_measured *times,
                     ng_measured *copy, ng_text *why) {
    Timing timing = {.bench = bench, .programs = programs, .count = count, .times = times, .copy = copy};
    Job *job = ir_job_create(&bench->allocator);
    if (!job) return STATUS_SYSTEM;
    Status status = ir_job_run(job, time_work, &timing);
    if (!status) status = timing.status;
    give_words(job, &timing.why, status, why);
    ir_job_free(job);
    return status;
}
