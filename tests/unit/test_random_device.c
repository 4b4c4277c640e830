/* Random legal graphs through the whole chain: what their kernels compute agrees with the oracle, on the host device or
 * a GPU.
 *
 *   build/tests/test_random_device [--device=host|cuda] [--graphs=N]
 *
 * Each graph is generated with the compiler's choices, and now and then again with random knobs forced, which holds or
 * is refused with a reason. Many are built in one call. A program runs for several values of its any dims, 0 and 1
 * among them; each time with aligned and misaligned pointers, outputs in place and apart, and in every order of lanes:
 * the first run is compared with the oracle, the others must give its bits. No byte that is of no output's element may
 * change. NORMGEN_SEED repeats a run (--graphs=1: its first graph alone); a graph that fails is printed as a file. What
 * was met is counted, and nothing listed may be met never. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/knobs.h"
#include "runtime/host_sanitize.h"
#include "tests/support/hits.h"
#include "tests/support/launch_trial.h"
#include "tests/support/random_graph.h"

enum { GRAPHS = 220, REDUCED_GRAPHS = 24, BATCH = 44, ROUNDS = 3, MAX_SETS = 3, MAX_FAILURES = 5, BORDER = 512 };

typedef struct Reason {
    const char *text;
    uint32_t count;
} Reason;

typedef struct Hits {
    uint32_t graphs, programs, launches, refused_dims;
    uint32_t class[CLASS_COUNT], variant[STRATEGY_COUNT][2], phases[4], over[STRATEGY_COUNT];
    uint32_t input_dtype[DTYPE_COUNT], output_dtype[DTYPE_COUNT], scalar_dtype[DTYPE_COUNT];
    uint32_t rank[IR_MAX_RANK + 1], reduction[REDUCTION_COUNT];
    HitDims dims;
    uint32_t form[FORM_GATHER + 1], crossing[CROSS_RESIDENT + 1], knob[KNOB_COUNT];
    uint32_t launch_strides, gathers, accumulates;
    uint32_t stride_0, padded, transposed, padded_output, inplace, inplace_slice, several_outputs, several_steps;
    uint32_t several_parts, one_part;
    uint32_t inner_axes, iota, where, row_stores, any_columns, long_rows, scalars, zero, one, odd;
    uint64_t elements, unbounded;
    uint32_t compared, blind; /* rounds; those in which most elements have no bound, which one large output decides */
} Hits;

typedef struct Run {
    Job *job;
    bool cuda;
    bool fewer; /* too few graphs to meet everything */
    uint32_t wanted;
    RtDevice *device[3]; /* one for each order of lanes; cuda: one */
    uint32_t devices;
    uint64_t seed;
    uint32_t failures;
    Hits hits;
    IR_LIST(Reason) reasons;
} Run;

typedef struct Trial {
    Run *run;
    Job *job;
    uint64_t seed;
    Random random; /* of knobs, dims and layouts */
    RandomGraph graph;
    Setting sets[MAX_SETS];
    uint32_t set_count;
    Unit unit;
    Status status; /* of generating */
    RtProgram *program;
    RtModule *module;
    bool failed;
} Trial;

/* What is so large that its sums across rows join the rows is too large here: they always do. */
static const Setting small[] = {{"mixed_rows", "1"}, {"mixed_kept", "1"}, {"mixed_elements", "1"}};
enum { SMALL = sizeof small / sizeof *small };

static void count_reason(Run *run, const char *kind, const char *text) {
    size_t length = strcspn(text, "\n");
    const char *reason = ir_format(run->job, "%s: %.*s", kind, (int)length, text);
    for (uint32_t i = 0; i < run->reasons.count; i++)
        if (!strcmp(run->reasons.at[i].text, reason)) {
            run->reasons.at[i].count++;
            return;
        }
    *IR_PUSH(run->job, &run->reasons) = (Reason){reason, 1};
}

static void report_failure(Trial *trial, const char *why) {
    trial->failed = true;
    trial->run->failures++;
    printf("FAILED NORMGEN_SEED=%llu --graphs=1", (unsigned long long)trial->seed);
    for (uint32_t i = 0; i < SMALL; i++) printf(" --set %s=%s", small[i].name, small[i].value);
    for (uint32_t i = 0; i < trial->set_count; i++) printf(" --set %s=%s", trial->sets[i].name, trial->sets[i].value);
    for (uint32_t d = 0; d < trial->graph.dim_count; d++)
        printf(" -D %s=%lld", trial->graph.dims[d].name, (long long)trial->graph.dims[d].value);
    printf("\n%s\n%s\n", why, trial->graph.text);
    fflush(stdout);
}

/* ---- generating ---- */

static void generate(Job *job, void *state) {
    Trial *trial = state;
    Setting *sets = IR_NEW_ARRAY(job, Setting, SMALL + MAX_SETS);
    memcpy(sets, small, sizeof small);
    memcpy(sets + SMALL, trial->sets, sizeof trial->sets);
    GenOptions options = {
        .sets = sets, .set_count = SMALL + trial->set_count, .target = gen_target(90), .verify = true};
    gen_run(job, &trial->unit, "random.yaml", trial->graph.text, trial->graph.count, &options, gen_pass_count - 1);
    trial->program = rt_program_create(job, &trial->unit);
}

/* Whether generating may end so: in-place outputs are drawn without regard to what else reads the input. */
static bool rightly_refused(Trial *trial, const char *report) {
    static const char impossible[] = ": ";
    if (trial->status == STATUS_REJECTED && (strstr(report, "in place") || strstr(report, "overwr"))) {
        count_reason(trial->run, "refused", "an output in place of what is read later");
        return true;
    }
    static const char unmet[] = "no kernel here takes it"; /* the knobs were drawn for other kernels */
    if (trial->status == STATUS_NOT_COMPILED && trial->set_count && strstr(report, unmet)) {
        count_reason(trial->run, "knob", unmet);
        return true;
    }
    if (trial->status != STATUS_NOT_COMPILED || !trial->set_count || !strstr(report, "kernel ")) return false;
    const char *found = strstr(strstr(report, "kernel "), impossible);
    if (!found || !found[strlen(impossible)]) return false;
    count_reason(trial->run, "knob", found + strlen(impossible));
    return true;
}

static Trial *open_trial(Run *run, uint64_t seed, const Trial *like) {
    Job *job = ir_job_create(NULL);
    Trial *trial = IR_NEW(job, Trial);
    *trial = (Trial){.run = run, .job = job, .seed = seed, .random = {seed ^ 0xd1ce}};
    uint32_t rows = seed % 2 ? RANDOM_ROWS_ONLY : 0, all = seed % 5 < 2 ? RANDOM_ALL_DTYPES : 0;
    trial->graph = random_graph(job, seed, RANDOM_LONG_ROWS | rows | all);
    if (like) {
        memcpy(trial->sets, like->sets, sizeof trial->sets);
        trial->set_count = like->set_count;
    }
    trial->status = ir_job_run(job, generate, trial);
    const char *report = ir_job_report(job);
    if (trial->status && !rightly_refused(trial, report))
        report_failure(trial, ir_format(job, "status %d\n%s", (int)trial->status, report));
    return trial;
}

static void close_trial(Trial *trial) {
    if (trial->module) trial->run->device[0]->ops->module_free(trial->run->device[0], trial->module);
    ir_job_free(trial->job);
}

typedef struct KnobDraw {
    KnobId knob;
    const char *values[12];
} KnobDraw;

static const KnobDraw row_knobs[] = {
    {KNOB_STRATEGY, {"row_loop", "row_loop", "row_registers"}},
    {KNOB_STRATEGY, {"row_loop"}},
    {KNOB_ROW_THREADS, {"1", "2", "4", "8", "16", "32", "64", "96", "128", "256", "512", "3"}},
    {KNOB_ROW_THREADS, {"1", "8", "32", "64", "128", "160"}},
    {KNOB_ROWS, {"1", "2", "3", "4", "5", "8"}},
    {KNOB_VECTOR, {"1", "2", "4", "8", "1", "2"}},
    {KNOB_CHUNKS, {"1", "2", "3", "5", "9"}},
    {KNOB_MIN_CTAS, {"1", "2"}},
    {KNOB_FUSE_STATEMENTS, {"9", "20"}},
    {KNOB_FUSE, {"row", "off"}},
    {KNOB_CUT, {"off"}},
    {KNOB_PAIR, {"on", "on", "off"}},
    {KNOB_CUT_STATEMENTS, {"4", "7", "10", "20"}},
    {KNOB_CUT_STATEMENTS, {"5", "8", "12"}},
    {KNOB_SPLIT, {"off", "all"}},
    {KNOB_SPLIT_ROWS, {"1", "1000"}},
    {KNOB_SPLIT_COLUMNS, {"1", "100"}},
};
static const KnobDraw column_knobs[] = {
    {KNOB_ROW_THREADS, {"1", "2", "4", "8", "16", "32", "64"}},
    {KNOB_ROWS, {"1", "2", "3", "4", "8", "16", "32", "64"}},
    {KNOB_VECTOR, {"1", "2", "4", "8"}},
    {KNOB_CHUNKS, {"1", "2", "3", "5"}},
    {KNOB_MIN_CTAS, {"1", "2"}},
    {KNOB_FUSE, {"off"}},
    {KNOB_SPLIT, {"off", "all", "all"}},
};
static const KnobDraw stream_knobs[] = {
    {KNOB_STAGES, {"1", "2", "1", "2", "3"}},
    {KNOB_PART_ROWS, {"1", "2", "5", "13", "40"}},
    {KNOB_ROW_THREADS, {"1", "2", "4", "8", "16", "32"}},
    {KNOB_ROWS, {"32", "64"}},
    {KNOB_VECTOR, {"1", "2", "4", "8"}},
    {KNOB_CHUNKS, {"2", "3", "5", "9"}},
    {KNOB_MIN_CTAS, {"1", "2"}},
    {KNOB_FUSE, {"row", "off"}},
    {KNOB_FUSE_READS, {"1", "2"}},
};
static const KnobDraw pointwise_knobs[] = {
    {KNOB_VECTOR, {"1", "2", "4", "8", "16", "3"}},
    {KNOB_CHUNKS, {"1", "2", "3", "4"}},
    {KNOB_THREADS, {"1", "7", "32", "96", "128", "1024"}},
    {KNOB_MIN_CTAS, {"1", "2"}},
    {KNOB_FUSE, {"off", "all"}},
    {KNOB_CUT_STATEMENTS, {"4", "6", "10"}},
};

#define DRAWS(array, first)                                                                                            \
    (Draws) { sizeof array / sizeof *array, first, array }
typedef struct Draws {
    uint32_t count, first; /* first: so many are drawn before the others, since few graphs have such a kernel */
    const KnobDraw *at;
} Draws;

/* By the first kernel that is not pointwise. */
static Draws draws_for(const Trial *trial) {
    for (uint32_t s = 0; s < trial->unit.plan->steps.count; s++) {
        Strategy strategy = trial->unit.plan->steps.at[s].strategy;
        if (strategy == STRATEGY_POINTWISE) continue;
        if (strategy == STRATEGY_ROW_STREAM) return DRAWS(stream_knobs, 2);
        bool rows = strategy == STRATEGY_ROW_REGISTERS || strategy == STRATEGY_ROW_LOOP;
        return rows ? DRAWS(row_knobs, 0) : DRAWS(column_knobs, 0);
    }
    return DRAWS(pointwise_knobs, 0);
}

static void draw_sets(Trial *trial) {
    const Draws draws = draws_for(trial);
    uint32_t wanted = 1 + random_below(&trial->random, MAX_SETS), taken = 0;
    for (trial->set_count = 0; trial->set_count < wanted;) {
        const uint32_t among = trial->set_count < draws.first ? draws.first : draws.count;
        uint32_t k = random_below(&trial->random, among), values = 0;
        if (taken >> draws.at[k].knob & 1) continue;
        taken |= 1u << draws.at[k].knob;
        while (values < 12 && draws.at[k].values[values]) values++;
        trial->sets[trial->set_count++] =
            (Setting){gen_knob(draws.at[k].knob)->name, draws.at[k].values[random_below(&trial->random, values)]};
    }
}

/* ---- one value of the dims ---- */

typedef struct Round {
    Trial *trial;
    uint32_t number;
    int64_t *any;
    ng_scalar *scalars;
    RtScratch scratch; /* sizes */
    bool skipped;      /* these dims are not legal */
} Round;

static void count_step(void *state, uint32_t index, const RtScratch *scratch) {
    Trial *trial = state;
    const Step *step = &trial->unit.plan->steps.at[index];
    int64_t blocks = 0;
    if (rt_step_blocks(trial->program, index, scratch, &blocks, NULL) || !blocks) return;
    trial->run->hits.variant[step->strategy][step->variants[scratch->variant].wide]++;
    if (step->part == IR_NONE) return;
    *(scratch->parts[step->part] > 1 ? &trial->run->hits.several_parts : &trial->run->hits.one_part) += 1;
}

static void run_round(Job *job, void *state) {
    Round *round = state;
    Trial *trial = round->trial;
    const RtProgram *program = trial->program;
    Text why = ir_text(job);
    const int64_t *dims = random_graph_dims(job, &trial->graph, program->graph);
    round->any = IR_NEW_ARRAY(job, int64_t, program->any_count + 1);
    for (uint32_t a = 0; a < program->any_count; a++) round->any[a] = dims[program->any[a]];
    round->scalars = round->number ? launch_scalars(job, program->graph, &trial->random) : NULL;
    LaunchTrial launches = {.job = job,
                            .unit = &trial->unit,
                            .program = trial->program,
                            .module = trial->module,
                            .devices = trial->run->device,
                            .device_count = trial->run->devices,
                            .any = round->any,
                            .scalars = round->scalars,
                            .random = &trial->random,
                            .border = RT_ADDRESS_SANITIZER && !trial->run->cuda ? 0 : BORDER,
                            .step_done = count_step,
                            .state = trial};
    Status status = launch_trial_run(&launches, &why);
    round->scratch = launches.scratch;
    round->skipped = status == STATUS_USAGE && round->number && launch_refuses_dims(ir_text_string(&why));
    trial->run->hits.launches += launches.launches;
    trial->run->hits.elements += launches.elements;
    trial->run->hits.unbounded += launches.unbounded;
    trial->run->hits.compared += launches.elements > 0;
    trial->run->hits.blind += launches.unbounded * 2 > launches.elements;
    if (status && !round->skipped) ir_stop_at(job, status, (Place){0, 0}, "%s", ir_text_string(&why));
}

/* ---- hits ---- */

static void count_step_plan(Hits *hits, const Prog *prog, const Step *step) {
    const Nest *nest = &prog->nests.at[step->nest];
    bool rows = step->strategy == STRATEGY_ROW_LOOP || gen_holds_rows(step->strategy);
    hits->class[nest->class]++;
    for (uint32_t i = 0; i < nest->accesses.count; i++) hits->gathers += nest->accesses.at[i].index != IR_NONE;
    hits->phases[step->phase_count < 4 ? step->phase_count : 3]++;
    hits->inner_axes += rows && nest->axis_count - nest->row_count > 1;
    hits->any_columns += rows && step->fixed_columns < 0;
    hits->long_rows += rows && step->fixed_columns > 2048;
    for (uint32_t i = 0; i < nest->stmts.count; i++) {
        const Stmt *stmt = &nest->stmts.at[i];
        hits->crossing[step->crossing[i]]++;
        hits->iota += stmt->op == OP_IOTA;
        hits->where += stmt->op == OP_WHERE;
        if (stmt->op == OP_REDUCE) hits->reduction[stmt->reduction]++;
        if (stmt->op == OP_STORE)
            hits->over[step->strategy] += prog->bufs.at[nest->accesses.at[stmt->access].buf].may_alias != IR_NONE;
        if (stmt->op == OP_LOAD || stmt->op == OP_STORE) hits->form[step->forms[stmt->access].kind]++;
    }
    for (uint32_t q = 0; q < step->phase_count; q++) hits->row_stores += step->phases[q].row_stores.count > 0;
}

static void count_tensor(Hits *hits, const RtProgram *program, const RtScratch *scratch, uint32_t t) {
    const RtTensor *row = &program->tensors[t];
    const RtSpan *span = &scratch->spans[t];
    const Tensor *tensor = row->tensor;
    uint32_t rank = tensor->shape.rank;
    bool zero = false, input = t < program->input_count;
    for (uint32_t d = 0; d < rank; d++) zero |= span->stride[d] == 0 && span->extent[d] > 1;
    (input ? hits->input_dtype : hits->output_dtype)[tensor->dtype]++;
    hits->accumulates += tensor->accumulate && span->count;
    hits->rank[rank]++;
    hits->stride_0 += zero;
    bool padded = !zero && rank > 1 && span->stride[0] > span->extent[1] * span->stride[1];
    hits->padded += input && padded;
    hits->padded_output += !input && padded;
    hits->transposed += !zero && rank > 1 && span->stride[0] < span->stride[rank - 1];
    hits->inplace += row->inplace != IR_NONE && span->count;
    hits->inplace_slice += tensor->inplace_items && span->count;
}

/* What a round met that passed. */
static void count_round(const Round *round) {
    const Trial *trial = round->trial;
    Hits *hits = &trial->run->hits;
    const RtProgram *program = trial->program;
    for (uint32_t a = 0; a < program->any_count; a++) {
        hits->zero += round->any[a] == 0;
        hits->one += round->any[a] == 1;
        hits->odd += round->any[a] > 1 && round->any[a] % 2 == 1;
    }
    hits->scalars += round->scalars && program->graph->scalars.count;
    if (round->number) return;
    hits->programs++;
    hits->graphs += !trial->set_count;
    hits->several_outputs += program->graph->outputs.count > 1;
    for (uint32_t d = 0; d < program->graph->dims.count; d++)
        hits->launch_strides += program->graph->dims.at[d].name[0] == 'L';
    hits->several_steps += trial->unit.plan->steps.count > 1;
    hits_count_dims(&hits->dims, program->graph);
    for (uint32_t i = 0; i < program->graph->scalars.count; i++)
        hits->scalar_dtype[program->graph->scalars.at[i].dtype]++;
    for (uint32_t t = 0; t < program->tensor_count; t++) count_tensor(hits, program, &round->scratch, t);
    for (uint32_t s = 0; s < trial->unit.plan->steps.count; s++)
        count_step_plan(hits, trial->unit.prog, &trial->unit.plan->steps.at[s]);
    for (uint32_t i = 0; i < trial->set_count; i++)
        for (uint32_t k = 0; k < KNOB_COUNT; k++)
            hits->knob[k] += !strcmp(trial->sets[i].name, gen_knob((KnobId)k)->name);
}

static void print_totals(const Run *run, double seconds) {
    const Hits *hits = &run->hits;
    printf("# %u graphs and %u of them again with knobs, %u launches, %u dims refused; %llu elements compared, %llu "
           "without bound, most of them in %u of %u rounds; on %s, %d s\n",
           hits->graphs, hits->programs - hits->graphs, hits->launches, hits->refused_dims,
           (unsigned long long)hits->elements, (unsigned long long)hits->unbounded, hits->blind, hits->compared,
           run->device[0]->ops->name, (int)seconds);
    for (uint32_t i = 0; i < run->reasons.count; i++)
        printf("# %u x %s\n", run->reasons.at[i].count, run->reasons.at[i].text);
}

static void report_hits(HitReport *report, const Hits *hits) {
    static const char *const phases[] = {"", "1", "2", "3-or-more"};
    static const char *const forms[] = {"row", "unit", "same", "strided", "gather"};
    static const char *const crossings[] = {"none", "keep", "keep-raw", "reread", "recompute", "row", "resident"};
    hits_line(report, "class");
    for (uint32_t i = 0; i < CLASS_COUNT; i++) hits_count(report, hits->class[i], ir_class_name((NestClass)i), true);
    for (uint32_t s = 0; s < STRATEGY_COUNT; s++) {
        hits_line(report, gen_strategy((Strategy)s)->name);
        hits_count(report, hits->variant[s][1], "aligned", s != STRATEGY_FINALIZE);
        hits_count(report, hits->variant[s][0], "any", true);
        hits_count(report, hits->over[s], "in-place", s != STRATEGY_ROW_SPLIT); /* which stores parts alone */
    }
    hits_line(report, "phases");
    for (uint32_t i = 1; i < 4; i++) hits_count(report, hits->phases[i], phases[i], true);
    hits_dtypes(report, "input", hits->input_dtype);
    hits_dtypes(report, "output", hits->output_dtype);
    hits_dtypes(report, "scalar", hits->scalar_dtype);
    hits_dims(report, &hits->dims);
    hits_line(report, "rank");
    for (uint32_t i = 0; i <= IR_MAX_RANK; i++) hits_count(report, hits->rank[i], (char[]){(char)('0' + i), 0}, true);
    hits_line(report, "reduction");
    for (uint32_t i = 0; i < REDUCTION_COUNT; i++)
        hits_count(report, hits->reduction[i], ir_reduction((Reduction)i)->name, true);
    hits_line(report, "access");
    for (uint32_t i = 0; i <= FORM_GATHER; i++) hits_count(report, hits->form[i], forms[i], true);
    hits_line(report, "crossing");
    for (uint32_t i = CROSS_KEEP; i <= CROSS_RESIDENT; i++) hits_count(report, hits->crossing[i], crossings[i], true);
    hits_line(report, "knob");
    for (uint32_t i = 0; i < KNOB_COUNT; i++)
        hits_count(report, hits->knob[i], gen_knob((KnobId)i)->name, i >= KNOB_STRATEGY);
    hits_line(report, "layout");
    hits_count(report, hits->launch_strides, "given-at-launch", true);
    hits_count(report, hits->gathers, "gather", true);
    hits_count(report, hits->accumulates, "accumulate", true);
    hits_count(report, hits->stride_0, "stride-0", true);
    hits_count(report, hits->padded, "padded", true);
    hits_count(report, hits->padded_output, "padded-output", true);
    hits_count(report, hits->transposed, "transposed", true);
    hits_count(report, hits->inplace, "in-place", true);
    hits_count(report, hits->inplace_slice, "in-place-slice", true);
    hits_line(report, "dims");
    hits_count(report, hits->zero, "0", true);
    hits_count(report, hits->one, "1", true);
    hits_count(report, hits->odd, "odd", true);
    hits_line(report, "kernels");
    hits_count(report, hits->several_outputs, "several-outputs", true);
    hits_count(report, hits->several_steps, "several-steps", true);
    hits_count(report, hits->several_parts, "several-parts", true);
    hits_count(report, hits->one_part, "one-part", true);
    hits_count(report, hits->inner_axes, "inner-axes", true);
    hits_count(report, hits->any_columns, "any-columns", true);
    hits_count(report, hits->long_rows, "long-rows", true);
    hits_count(report, hits->row_stores, "row-stores", true);
    hits_count(report, hits->iota, "iota", true);
    hits_count(report, hits->where, "where", true);
    hits_count(report, hits->scalars, "scalars", true);
    hits_end(report);
}

/* ---- batches ---- */

static void run_trial(Trial *trial) {
    for (uint32_t number = 0; number < ROUNDS && !trial->failed; number++) {
        Job *job = ir_job_create(NULL);
        if (number) random_graph_redraw(job, &trial->graph, trial->program->graph, &trial->random);
        Round round = {.trial = trial, .number = number};
        Status status = ir_job_run(job, run_round, &round);
        if (status)
            report_failure(trial, ir_format(job, "round %u: status %d\n%s", number, (int)status, ir_job_report(job)));
        else if (round.skipped)
            trial->run->hits.refused_dims++;
        else
            count_round(&round);
        ir_job_free(job);
    }
}

/* Builds all in one call; a text that the compiler refuses, or says anything about, is looked for one by one. */
static void build_trials(Run *run, Trial **trials, uint32_t count) {
    const Source *sources[2 * BATCH];
    RtModule *modules[2 * BATCH];
    for (uint32_t i = 0; i < count; i++) sources[i] = &trials[i]->unit.source;
    RtDevice *device = run->device[0];
    Job *job = ir_job_create(NULL);
    Text why = ir_text(job);
    Status status = count ? device->ops->build(device, sources, count, modules, &why) : STATUS_OK;
    for (uint32_t i = 0; i < count && !status; i++) trials[i]->module = modules[i];
    if ((status || why.count) && count == 1) report_failure(trials[0], ir_text_string(&why));
    if ((status || why.count) && count > 1)
        for (uint32_t i = 0; i < count && run->failures < MAX_FAILURES; i++) {
            if (trials[i]->module) device->ops->module_free(device, trials[i]->module);
            trials[i]->module = NULL;
            build_trials(run, &trials[i], 1);
        }
    ir_job_free(job);
}

static void run_batch(Run *run, uint64_t seed, uint32_t graphs) {
    Trial *all[2 * BATCH], *built[2 * BATCH];
    uint32_t count = 0, good = 0;
    for (uint32_t i = 0; i < graphs && run->failures < MAX_FAILURES; i++) {
        Trial *trial = all[count++] = open_trial(run, seed + i, NULL);
        if (trial->status || random_below(&trial->random, 100) >= 60) continue;
        draw_sets(trial);
        all[count++] = open_trial(run, seed + i, trial);
        trial->set_count = 0;
    }
    for (uint32_t i = 0; i < count; i++)
        if (!all[i]->status) built[good++] = all[i];
    build_trials(run, built, good);
    for (uint32_t i = 0; i < good && run->failures < MAX_FAILURES; i++)
        if (built[i]->module && !built[i]->failed) run_trial(built[i]);
    for (uint32_t i = 0; i < count; i++) close_trial(all[i]);
}

/* ---- the command line ---- */

static bool wants_more(const Run *run) {
    HitReport report = {.quiet = true};
    report_hits(&report, &run->hits);
    return run->hits.graphs < run->wanted || (report.missing && !run->fewer);
}

static bool open_devices(Run *run) {
    Text why = ir_text(run->job);
    Status status = STATUS_OK;
    if (run->cuda) status = rt_cuda_open(0, &run->device[run->devices++], &why);
    for (uint32_t o = 0; !run->cuda && o < 3 && !status; o++) {
        RtHostOptions options = {.order = (RtOrder)o, .seed = run->seed};
        status = rt_host_open(90, &options, &run->device[run->devices++], &why);
    }
    if (status) printf("no device: %s\n", ir_text_string(&why));
    return !status;
}

int main(int argc, char **argv) {
    bool reduced = getenv("NORMGEN_TEST_REDUCED") != NULL;
    Run run = {.job = ir_job_create(NULL), .fewer = reduced, .wanted = reduced ? REDUCED_GRAPHS : GRAPHS};
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--device=cuda") || !strcmp(argv[i], "--device=host")) {
            run.cuda = !strcmp(argv[i], "--device=cuda");
        } else if (!strncmp(argv[i], "--graphs=", 9)) {
            run.wanted = (uint32_t)strtoul(argv[i] + 9, NULL, 10);
            run.fewer = run.wanted < GRAPHS;
        } else {
            fprintf(stderr, "test_random_device: no such option: %s\n", argv[i]);
            return 2;
        }
    }
    run.seed = random_seed();
    if (!open_devices(&run)) return 3;
    double start = rt_now();
    uint64_t tried = 0;
    while (wants_more(&run) && tried < 4 * (uint64_t)run.wanted && run.failures < MAX_FAILURES) {
        uint32_t graphs = run.wanted < BATCH ? run.wanted : BATCH;
        run_batch(&run, run.seed + tried, graphs);
        tried += graphs;
    }
    print_totals(&run, rt_now() - start);
    HitReport report = {0};
    report_hits(&report, &run.hits);
    bool enough = run.hits.graphs >= run.wanted && run.hits.blind * 10 < run.hits.compared;
    bool failed = run.failures || (!run.fewer && (report.missing || !enough));
    if (report.missing && !run.fewer) printf("FAILED: %u listed things were never met\n", report.missing);
    if (!enough && !run.fewer) printf("FAILED: too few graphs, or too few rounds with bounds\n");
    for (uint32_t d = 0; d < run.devices; d++) run.device[d]->ops->close(run.device[d]);
    ir_job_free(run.job);
    printf(failed ? "[  FAILED  ] 1 test(s)\n" : "[  PASSED  ] 1 test(s).\n");
    return failed;
}
