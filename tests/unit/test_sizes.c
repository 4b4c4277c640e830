/* Every strategy but the simplest at awkward sizes, on the host device or a GPU: the graphs of
 * tests/support/strategy_graphs.def in each float dtype, with N a number, an argument, and an argument of which more is
 * said (max, multiple); M always is one.
 *
 *   build/tests/test_sizes [--device=host|cuda] [--only=GRAPH] [--types=f32,bf16] [--small]
 *
 * Each program runs with no row, one, and on both sides of what a trip, a tile and all CTAs together hold; at some
 * sizes each tensor in turn is alone off its alignment. Where no reduction runs over N, the bits must not depend on
 * what was known of it. Otherwise as in tests/support/launch_trial.h. --small, and NORMGEN_TEST_REDUCED: fewer programs
 * and sizes, for sanitizers. NORMGEN_SEED repeats the data. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/workspace.h"
#include "tests/support/device_case.h"
#include "tests/support/hits.h"
#include "tests/support/strategy_graphs.h"

static const char *const all_types[] = {"f32", "bf16", "f16", "f64"};
/* of which each graph in each dtype takes some: elements of an access, of a column CTA and a warp, and one more or less
 */
static const int64_t widths[] = {1,  2,  3,  4,   5,   7,   8,   9,   16,  31,  33,
                                 63, 64, 65, 127, 128, 129, 255, 256, 257, 384, 1017};
static const int64_t rows[] = {9, 0, 1, 2, 7, 8, 64, 65};
enum {
    TYPES = sizeof all_types / sizeof *all_types,
    WIDTHS = sizeof widths / sizeof *widths,
    ROWS = sizeof rows / sizeof *rows,
    FIXED = 2,            /* programs with a number for N, of a graph in a dtype */
    MOST_N = 2048,        /* of bounded programs */
    MOST_POINTS = 400000, /* of a size that fills the device */
    ALONE = 0             /* of rows: where tensors are misaligned one by one */
};

typedef enum Knows { KNOWS_NOTHING, KNOWS_BOUNDS, KNOWS_NUMBER } Knows;

typedef struct Program {
    const StrategyGraph *graph;
    const char *type;
    int64_t width; /* 0: an argument */
    DeviceCase *made;
} Program;

typedef struct Group { /* a graph in a dtype */
    Program free, bounded, fixed[FIXED];
} Group;

typedef struct Hits {
    uint32_t programs, launches, refused, pairs, same, failed;
    uint32_t variant[STRATEGY_COUNT][2], no_part, one_part, several_parts, most_parts;
    uint64_t elements, unbounded;
} Hits;

typedef struct Run {
    Job *job;
    Devices devices;
    const char *only, *types;
    bool small;
    uint64_t seed;
    Hits hits;
} Run;

/* ---- programs ---- */

static void open_program(Run *run, Program *program, const StrategyGraph *graph, const char *type, Knows knows,
                         int64_t width) {
    static const char *const suffix[] = {"_free", "_bounded", "_fixed"};
    const char *n = knows == KNOWS_NOTHING  ? "any"
                    : knows == KNOWS_BOUNDS ? ir_format(run->job, "{max: %d, multiple: 4}", MOST_N)
                                            : ir_format(run->job, "%lld", (long long)width);
    *program = (Program){.graph = graph, .type = type, .width = knows == KNOWS_NUMBER ? width : 0};
    const char *text = strategy_graph_text(run->job, graph, suffix[knows], type, "any", n);
    program->made = device_case_create(text, graph->sets);
    /* rows of unknown length fit no registers */
    bool loop = knows != KNOWS_NUMBER && graph->strategy == STRATEGY_ROW_REGISTERS;
    bool found = program->made->status || width == 1 || loop;
    if (program->made->status) printf("FAILED %s: %s\n", graph->name, ir_job_report(program->made->job));
    for (uint32_t s = 0; !program->made->status && s < program->made->unit.plan->steps.count; s++)
        found |= program->made->unit.plan->steps.at[s].strategy == graph->strategy;
    if (!found) printf("FAILED: no kernel is %s\n%s\n", gen_strategy(graph->strategy)->name, text);
    run->hits.failed += program->made->status || !found;
    run->hits.programs++;
}

static void open_group(Run *run, Group *group, uint32_t graph, uint32_t type) {
    const StrategyGraph *g = &strategy_graphs[graph];
    const uint32_t fixed = run->small ? 1 : FIXED;
    open_program(run, &group->free, g, all_types[type], KNOWS_NOTHING, 0);
    if (!run->small && graph % TYPES == type) open_program(run, &group->bounded, g, all_types[type], KNOWS_BOUNDS, 0);
    for (uint32_t k = 0; k < fixed; k++)
        open_program(run, &group->fixed[k], g, all_types[type], KNOWS_NUMBER,
                     widths[((graph * TYPES + type) * FIXED + k * 7) % WIDTHS]);
}

/* ---- running ---- */

typedef struct Watch {
    Run *run;
    const DeviceCase *of;
} Watch;

static void count_step(void *state, uint32_t index, const RtScratch *scratch) {
    const Watch *watch = state;
    const Step *step = &watch->of->unit.plan->steps.at[index];
    Hits *hits = &watch->run->hits;
    int64_t blocks = 0;
    if (rt_step_blocks(watch->of->program, index, scratch, &blocks, NULL)) return;
    hits->no_part += step->part != IR_NONE && scratch->parts[step->part] == 0;
    if (!blocks) return;
    hits->variant[step->strategy][step->variants[scratch->variant].wide]++;
    if (step->part == IR_NONE) return;
    const PartCount *count = &watch->of->unit.plan->parts[step->part];
    int64_t parts = scratch->parts[step->part], units;
    if (!ir_poly_eval(count->units, scratch->prog_dims, watch->of->unit.prog->dims.count, NULL, 0, &units)) return;
    *(parts > 1 ? &hits->several_parts : &hits->one_part) += 1;
    hits->most_parts += parts > 1 && parts * count->units_each < units;
}

static bool run_program(Run *run, Job *job, const Program *program, int64_t m, int64_t n, bool alone,
                        LaunchTrial *trial) {
    Random *random = IR_NEW(job, Random);
    int64_t *any = IR_NEW_ARRAY(job, int64_t, 2);
    Watch *watch = IR_NEW(job, Watch);
    any[0] = m;
    any[1] = n;
    random->state = run->seed ^ (uint64_t)(m * 65536 + n);
    *watch = (Watch){run, program->made};
    *trial = (LaunchTrial){.random = random, .each_alone = alone, .step_done = count_step, .state = watch};
    bool passed = device_case_try(job, program->made, &run->devices, any, trial);
    run->hits.failed += !passed;
    run->hits.refused += passed && !trial->launches;
    run->hits.launches += trial->launches;
    run->hits.elements += trial->elements;
    run->hits.unbounded += trial->unbounded;
    return passed && trial->launches;
}

/* The bits of two programs that ran on the same inputs. An N known to be 1 is no axis: sums across rows are then sums
 * along one. */
static void compare_pair(Run *run, const Program *a, const LaunchTrial *first, const LaunchTrial *second) {
    bool same = true;
    for (uint32_t o = 0; o < a->made->program->graph->outputs.count; o++) {
        const uint32_t t = a->made->program->input_count + o;
        size_t bytes = (size_t)(first->scratch.spans[t].count * a->made->program->tensors[t].element_bytes);
        same = same && memcmp(first->first[o], second->first[o], bytes) == 0;
    }
    run->hits.pairs++;
    run->hits.same += same;
    if (same || a->width == 1 || strchr(a->graph->consumed, 'N')) return;
    printf("FAILED: other bits where N=%lld is known, M=%lld\n%s\n", (long long)second->scratch.spans[0].extent[1],
           (long long)second->any[0], a->made->text);
    run->hits.failed++;
}

/* The same sizes with N known, not known, and with more said of it. */
static void run_size(Run *run, const Group *group, const Program *fixed, int64_t m, bool alone) {
    Job *job = ir_job_create(NULL);
    LaunchTrial known, other;
    const int64_t n = fixed->width;
    bool passed = run_program(run, job, fixed, m, n, alone, &known);
    if (run_program(run, job, &group->free, m, n, alone, &other) && passed) compare_pair(run, fixed, &known, &other);
    bool bounded = group->bounded.made && n % 4 == 0 && n <= MOST_N;
    if (bounded && run_program(run, job, &group->bounded, m, n, false, &other) && passed)
        compare_pair(run, fixed, &known, &other);
    ir_job_free(job);
}

/* ---- sizes that fill the device ---- */

static int64_t count_parts(Job *job, const Program *program, int64_t m, int64_t n) {
    const RtProgram *tables = program->made->program;
    int64_t *words = IR_NEW_ARRAY(job, int64_t, tables->scratch_words + 1), parts = 0;
    const int64_t any[] = {m, n};
    RtScratch scratch;
    if (rt_program_sizes(tables, any, words, &scratch, NULL)) return 0;
    for (uint32_t k = 0; k < program->made->unit.prog->parts.count; k++)
        if (scratch.parts[k] > parts) parts = scratch.parts[k];
    return parts;
}

/* The least M (or N) with as many parts as any has; 0: there are none, or it is too large. */
static int64_t find_full(Job *job, const Program *program, bool of_n, int64_t other) {
    int64_t low = 1, high = MOST_POINTS / other;
    Mark mark = ir_mark(job);
    const int64_t most = count_parts(job, program, of_n ? other : high, of_n ? high : other);
    while (low < high && most > 1) {
        int64_t middle = (low + high) / 2;
        bool full = count_parts(job, program, of_n ? other : middle, of_n ? middle : other) >= most;
        *(full ? &high : &low) = full ? middle : middle + 1;
    }
    bool found = most > 1 && low < MOST_POINTS / other / 2; /* not the search's end */
    ir_reset(job, mark);
    return found ? low : 0;
}

static void run_full(Run *run, const Program *program) {
    for (int of_n = 0; of_n < 2; of_n++) {
        const int64_t other = of_n ? 1 : 3, full = find_full(run->job, program, of_n, other);
        for (int64_t at = full - 1; full && at <= full + 1; at++) {
            Job *job = ir_job_create(NULL);
            LaunchTrial trial;
            (void)run_program(run, job, program, of_n ? other : at, of_n ? at : other, false, &trial);
            ir_job_free(job);
        }
    }
}

static void run_group(Run *run, const Group *group, uint32_t graph, uint32_t type) {
    const uint32_t failed = run->hits.failed;
    for (uint32_t k = 0; k < FIXED && group->fixed[k].made; k++)
        for (uint32_t r = 0; r < (run->small ? 4 : ROWS) && run->hits.failed == failed; r++)
            run_size(run, group, &group->fixed[k], rows[r], r == ALONE);
    if (!run->small && graph % TYPES == type && run->hits.failed == failed) run_full(run, &group->free);
}

/* ---- what was met ---- */

static uint32_t report_hits(const Run *run) {
    const Hits *hits = &run->hits;
    HitReport report = {0};
    for (int s = 0; s < STRATEGY_COUNT; s++) {
        hits_line(&report, gen_strategy((Strategy)s)->name);
        hits_count(&report, hits->variant[s][1], "aligned",
                   s != STRATEGY_FINALIZE); /* its accesses are of one element */
        hits_count(&report, hits->variant[s][0], "any", true);
    }
    hits_line(&report, "parts");
    hits_count(&report, hits->no_part, "of nothing", true);
    hits_count(&report, hits->one_part, "one", true);
    hits_count(&report, hits->several_parts, "several", true);
    hits_count(&report, hits->most_parts, "of several turns", true);
    hits_end(&report);
    return report.missing;
}

static bool read_options(Run *run, int *argc, char **argv) {
    int kept = 1;
    for (int i = 1; i < *argc; i++) {
        if (!strncmp(argv[i], "--only=", 7))
            run->only = argv[i] + 7;
        else if (!strncmp(argv[i], "--types=", 8))
            run->types = argv[i] + 8;
        else if (!strcmp(argv[i], "--small"))
            run->small = true;
        else
            argv[kept++] = argv[i];
    }
    *argc = kept;
    return devices_open(&run->devices, kept, argv);
}

int main(int argc, char **argv) {
    Run run = {.job = ir_job_create(NULL), .small = getenv("NORMGEN_TEST_REDUCED") != NULL};
    if (!read_options(&run, &argc, argv)) return 3;
    run.seed = random_seed();
    Group *groups = IR_NEW_ARRAY(run.job, Group, (size_t)strategy_graph_count * TYPES);
    IR_LIST(DeviceCase *) made = {0};
    for (uint32_t i = 0; i < strategy_graph_count * TYPES; i++) {
        const StrategyGraph *graph = &strategy_graphs[i / TYPES];
        const char *type = all_types[i % TYPES];
        bool typed = strstr(graph->body, "'E[") || strstr(graph->body, ": E,");
        if (run.only && strcmp(run.only, graph->name)) continue;
        if (run.types ? !strstr(run.types, type) : run.small && i % TYPES != i / TYPES % TYPES) continue;
        if (!typed && i % TYPES != i / TYPES % TYPES) continue;
        open_group(&run, &groups[i], i / TYPES, i % TYPES);
        for (const Program *p = &groups[i].free; p <= &groups[i].fixed[FIXED - 1]; p++)
            if (p->made) *IR_PUSH(run.job, &made) = p->made;
    }
    bool built = device_cases_build(made.at, made.count, &run.devices);
    for (uint32_t i = 0; i < strategy_graph_count * TYPES && built && !run.hits.failed; i++)
        if (groups[i].free.made) run_group(&run, &groups[i], i / TYPES, i % TYPES);
    const Hits *hits = &run.hits;
    printf(
        "# %u programs, %u launches, %u sizes refused; %llu elements compared, %llu without bound; %u of %u pairs that "
        "know N or not have equal bits; on %s\n",
        hits->programs, hits->launches, hits->refused, (unsigned long long)hits->elements,
        (unsigned long long)hits->unbounded, hits->same, hits->pairs, run.devices.at[0]->ops->name);
    uint32_t missing = report_hits(&run);
    bool met = run.only || run.types || run.small || !missing;
    if (!met) printf("FAILED: %u things were never met\n", missing);
    for (uint32_t i = 0; i < made.count; i++) device_case_free(made.at[i], &run.devices);
    devices_close(&run.devices);
    ir_job_free(run.job);
    bool failed = !built || hits->failed || !met;
    printf(failed ? "[  FAILED  ] %u\n" : "[  PASSED  ] %u test(s).\n", failed ? hits->failed : hits->programs);
    return failed;
}
