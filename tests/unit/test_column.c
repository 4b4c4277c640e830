/* Sums across rows, along few long rows and over several dims at once, on a device against the oracle: with no row,
 * one, fewer rows than parts, on both sides of what a trip, a CTA and a part hold; padded, transposed and stride-0
 * inputs, every way of lying in memory (tests/support/launch_trial.h).
 *
 *   build/tests/test_column [--device=host|cuda] [--only=NAME]
 *
 * A case is a graph with E standing for its dtypes and N for its widths; each width takes the next dtype. Its programs
 * run at every number of rows M. NORMGEN_TEST_REDUCED: at the first ones only. NORMGEN_SEED repeats the data. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/host_sanitize.h"
#include "tests/support/device_case.h"
#include "tests/support/launch_trial.h"

enum { MOST = 16, BORDER = 256 };

typedef struct Case {
    const char *name;
    const char *graph; /* from dims: on; $N is put in */
    const char *sets;
    Strategy strategy;    /* that some step must have */
    const char *types[4]; /* up to a NULL */
    int64_t widths[MOST]; /* up to a 0; 0 alone: the graph has none */
    int64_t rows[MOST];   /* up to a negative one; of the any dims all but the first are 3 */
} Case;

#define FLOATS                                                                                                         \
    { "f32", "bf16", "f16" }
#define ALL_ROWS                                                                                                       \
    { 0, 1, 9, 3, 64, 65, 127, 129, 600, -1 }
#define FEW_ROWS                                                                                                       \
    { 0, 1, 3, 37, -1 }

static const Case cases[] = {
    {"sums",
     "{M: any}\ninputs: {x: 'E[M, $N]', dy: 'E[M, $N]', s: 'f32[M]'}\n"
     "nodes: {w: 'sum(dy * x * s[:, None], dim=0)', b: 'sum(dy, dim=0)'}\noutputs: {w: E, b: f32}",
     NULL,
     STRATEGY_COLUMN,
     FLOATS,
     {1, 2, 3, 7, 8, 31, 33, 96, 128, 257, 760, 1024},
     ALL_ROWS},
    {"sums_and_elements",
     "{M: any}\ninputs: {x: 'E[M, $N]', r: 'E[M, $N]'}\nnodes: {h: x + r, s: 'sum(h * h, dim=0)'}\n"
     "outputs: {h: {dtype: E, inplace: r}, s: f32}",
     NULL,
     STRATEGY_COLUMN,
     FLOATS,
     {1, 3, 8, 33, 96, 257, 1024},
     ALL_ROWS},
    {"elements_of_any_width",
     "{M: any, K: any}\ninputs: {x: 'E[M, K]', w: 'f32[K]'}\nnodes: {y: x * w, s: 'amin(x, dim=0)'}\n"
     "outputs: {y: E, s: E}",
     NULL,
     STRATEGY_COLUMN,
     FLOATS,
     {0},
     {1, 9, 64, 65, 600, -1}},
    {"rows_split_and_elements",
     "{M: any}\ninputs: {x: 'E[M, $N]', w: 'f32[$N]'}\nnodes: {y: x * w, s: 'sum(x, dim=1)'}\n"
     "outputs: {y: {dtype: E, inplace: x}, s: f32}",
     "split=all",
     STRATEGY_ROW_SPLIT,
     FLOATS,
     {2, 7, 33, 1000, 5000},
     FEW_ROWS},
    {"any_width",
     "{M: any, K: any}\ninputs: {x: 'E[M, K]'}\n"
     "nodes: {m: 'mean(x, dim=0)', a: 'amax(abs(x), dim=0)'}\noutputs: {m: E}",
     NULL,
     STRATEGY_COLUMN,
     FLOATS,
     {0},
     ALL_ROWS},
    {"any_width_wide",
     "{M: any, K: {multiple: 8}}\ninputs: {x: 'E[M, K, 8]'}\n"
     "nodes: {m: 'sum(x, dim=0)'}\noutputs: {m: E}",
     NULL,
     STRATEGY_FINALIZE,
     FLOATS,
     {0},
     FEW_ROWS},
    {"one_part",
     "{M: any}\ninputs: {x: 'E[M, $N]', g: 'f32[$N]'}\n"
     "nodes: {m: 'mean(x, dim=0, keepdim=True)', v: 'var(x, dim=0, correction=0, keepdim=True)',\n"
     "  y: '(x - m) * rsqrt(v + 1e-5) * g'}\noutputs: {y: E, v: f32}",
     "split=off",
     STRATEGY_COLUMN,
     FLOATS,
     {1, 3, 8, 40, 129, 520},
     FEW_ROWS},
    {"softmax_middle",
     "{M: any}\ninputs: {x: 'E[M, $N, 40]'}\nnodes: {y: 'softmax(x, dim=1)'}\n"
     "outputs: {y: {dtype: E, inplace: x}}",
     NULL,
     STRATEGY_COLUMN,
     FLOATS,
     {1, 7, 8, 64},
     FEW_ROWS},
    {"softmax_parts",
     "{M: any}\ninputs: {x: 'E[M, $N, 5]'}\nnodes: {y: 'softmax(x, dim=1)'}\noutputs: {y: E}",
     "split=all",
     STRATEGY_FINALIZE,
     FLOATS,
     {1, 63, 65, 300},
     FEW_ROWS},
    {"batch_norm",
     "{M: any}\ninputs: {x: 'E[M, $N, 3, 8]', g: 'f32[$N]'}\n"
     "nodes: {m: 'mean(x, dim=[0, 2, 3])', v: 'var(x, dim=[0, 2, 3], correction=0)',\n"
     "  y: '(x - m[:, None, None]) * rsqrt(v + 1e-5)[:, None, None] * g[:, None, None]'}\n"
     "outputs: {y: E, m: f32, v: f32}",
     NULL,
     STRATEGY_ROW_LOOP,
     FLOATS,
     {1, 5, 8},
     FEW_ROWS},
    {"batch_norm_split",
     "{M: any}\ninputs: {x: 'E[M, $N, 3, 8]', g: 'f32[$N]'}\n"
     "nodes: {m: 'mean(x, dim=[0, 2, 3])', v: 'var(x, dim=[0, 2, 3], correction=0)',\n"
     "  y: '(x - m[:, None, None]) * rsqrt(v + 1e-5)[:, None, None] * g[:, None, None]'}\n"
     "outputs: {y: E, m: f32, v: f32}",
     "split=all",
     STRATEGY_ROW_SPLIT,
     FLOATS,
     {1, 5, 8},
     FEW_ROWS},
    {"rows_split",
     "{M: any}\ninputs: {x: 'E[M, $N]', w: 'f32[$N]'}\n"
     "nodes: {y: 'rms_norm(x, w, 1e-5)'}\noutputs: {y: E}",
     "split=all",
     STRATEGY_ROW_SPLIT,
     FLOATS,
     {2, 7, 8, 33, 1000, 4096, 5000},
     FEW_ROWS},
    {"rows_split_any",
     "{M: any, K: any}\ninputs: {x: 'E[M, K]'}\n"
     "nodes: {y: 'sum(x * x, dim=-1)', z: 'amax(x * 0 + 1, dim=-1)'}\noutputs: {y: f32}",
     "split=all",
     STRATEGY_ROW_SPLIT,
     FLOATS,
     {0},
     FEW_ROWS},
    {"long_rows",
     "{M: any}\ninputs: {x: 'E[2, 131072]', s: 'f32[M]'}\n"
     "nodes: {y: 'sum(x, dim=-1)', z: 's * 2'}\noutputs: {y: f32, z: f32}",
     NULL,
     STRATEGY_ROW_SPLIT,
     {"bf16"},
     {0},
     {1, -1}},
    {"whole",
     "{M: any}\ninputs: {x: 'E[M, $N]'}\nnodes: {m: 'mean(x)', y: 'x - m'}\noutputs: {y: E, m: f32}",
     NULL,
     STRATEGY_ROW_SPLIT,
     FLOATS,
     {1, 5, 33, 1000},
     FEW_ROWS},
    {"several_dims",
     "{M: any}\ninputs: {x: 'E[M, 4, $N, 6]'}\n"
     "nodes: {a: 'sum(x, dim=[0, 2])', b: 'sum(x, dim=[1, 3])', c: 'amin(x * 0, dim=[1, 2])', d: 'sum(x, dim=[0, 1, "
     "3])'}\n"
     "outputs: {a: f32, b: E, c: E, d: f32}",
     NULL,
     STRATEGY_COLUMN,
     FLOATS,
     {1, 3, 8},
     FEW_ROWS},
    {"group_norm",
     "{M: any}\ninputs: {x: 'E[M, 8, $N]', w: 'f32[8]'}\n"
     "nodes: {g: 'reshape(x, [M, 2, 4, $N])',\n"
     "  n: '(g - mean(g, dim=[2, 3], keepdim=True)) * rsqrt(var(g, dim=[2, 3], correction=0, keepdim=True) + 1e-5)',\n"
     "  y: 'reshape(n, [M, 8, $N]) * w[:, None]'}\noutputs: {y: E}",
     NULL,
     STRATEGY_ROW_REGISTERS,
     FLOATS,
     {1, 7, 64},
     FEW_ROWS},
    {"padded",
     "{M: any}\ninputs: {x: {dtype: E, shape: [M, $N], strides: [$N + 3, 1]}, z: {dtype: f32, shape: [M, $N], strides: "
     "[$N + 8, 1]}}\n"
     "nodes: {w: 'sum(x * z, dim=0)'}\noutputs: {w: {dtype: E, shape: [$N], strides: [3]}}",
     NULL,
     STRATEGY_COLUMN,
     FLOATS,
     {1, 8, 33, 256},
     FEW_ROWS},
    {"stride_0",
     "{M: any}\ninputs: {x: {dtype: E, shape: [M, $N], strides: [0, 1]}, z: {dtype: E, shape: [M, $N], strides: [1, "
     "0]}}\n"
     "nodes: {a: 'sum(x, dim=0)', b: 'sum(x * z, dim=0)', c: 'sum(z, dim=0)'}\noutputs: {a: f32, b: f32, c: E}",
     NULL,
     STRATEGY_ROW_LOOP,
     FLOATS,
     {1, 8, 33},
     FEW_ROWS},
    {"transposed",
     "{M: any}\ninputs: {x: {dtype: E, shape: [$N, M], strides: [1, $N]}, z: 'E[$N, M]'}\n"
     "nodes: {a: 'sum(x, dim=1)', b: 'sum(x * z, dim=1)', c: 'sum(z, dim=0)'}\noutputs: {a: f32, b: f32, c: E}",
     NULL,
     STRATEGY_COLUMN,
     FLOATS,
     {1, 8, 33, 100},
     FEW_ROWS},
    {"accumulated",
     "{M: any}\ninputs: {x: 'E[M, $N]'}\nnodes: {w: 'sum(x, dim=0)', v: 'sum(x * x, dim=0)'}\n"
     "outputs: {w: {dtype: f32, accumulate: true}, v: {dtype: E, accumulate: true}}",
     NULL,
     STRATEGY_FINALIZE,
     FLOATS,
     {1, 8, 33, 256},
     FEW_ROWS},
    {"integers",
     "{M: any}\ninputs: {x: 'E[M, $N]'}\n"
     "nodes: {s: 'sum(x, dim=0)', p: 'prod(x, dim=0)', y: 'any(x > 2, dim=0)', z: 'all(x > -4, dim=0)'}\n"
     "outputs: {s: i64, p: i64, y: bool, z: bool}",
     NULL,
     STRATEGY_COLUMN,
     {"i64", "i32", "i8"},
     {1, 8, 33, 64},
     FEW_ROWS},
    {"doubles",
     "{M: any}\ninputs: {x: 'E[M, $N]'}\nnodes: {s: 'mean(x, dim=0)', r: 'sum(x, dim=1)'}\noutputs: {s: f64, r: f64}",
     "split=all",
     STRATEGY_COLUMN,
     {"f64"},
     {1, 8, 33, 64},
     FEW_ROWS},
    {"extremes",
     "{M: any}\ninputs: {x: 'E[M, $N]'}\n"
     "nodes: {a: 'sum(x * 0 - 3, dim=0)', p: 'prod(x * 0 - 1, dim=0)', o: 'any(x != x, dim=0)'}\noutputs: {a: f32, p: "
     "E, o: f32}",
     NULL,
     STRATEGY_COLUMN,
     FLOATS,
     {5, 64},
     FEW_ROWS},
    {"one_warp",
     "{M: any}\ninputs: {x: 'E[M, $N]'}\nnodes: {w: 'sum(x, dim=0)'}\noutputs: {w: f32}",
     "row_threads=8 rows=4 chunks=3",
     STRATEGY_COLUMN,
     FLOATS,
     {1, 8, 33, 64},
     ALL_ROWS},
    {"one_group",
     "{M: any}\ninputs: {x: 'E[M, $N]'}\nnodes: {w: 'sum(x, dim=0)'}\noutputs: {w: f32}",
     "row_threads=32 rows=1 chunks=1 min_ctas=1",
     STRATEGY_COLUMN,
     FLOATS,
     {1, 33, 64},
     ALL_ROWS},
    {"one_lane",
     "{M: any}\ninputs: {x: 'E[M, $N]'}\nnodes: {w: 'sum(x, dim=0)'}\noutputs: {w: f32}",
     "row_threads=1 rows=64 vector=1",
     STRATEGY_COLUMN,
     FLOATS,
     {1, 3},
     ALL_ROWS},
};

typedef struct Counts {
    uint32_t programs, launches, failed;
    uint64_t elements, several_parts, one_part, wide;
} Counts;

/* ---- programs ---- */

static const char *put_in(Job *job, const Case *test, uint32_t index, const char *type) {
    Text out = ir_text(job);
    const char *text = test->graph;
    for (; *text; text++) {
        if (*text == '$' && text[1] == 'N') {
            ir_text_format(&out, "%lld", (long long)test->widths[index]);
            text++;
        } else if (*text == '\'') {
            ir_text_put(&out, "\"");
        } else {
            ir_text_bytes(&out, text, 1);
        }
    }
    return ir_format(job, "graph: %s_%u\ntypes: {E: %s}\ndims: %s\n", test->name, index, type, ir_text_string(&out));
}

static DeviceCase *open_case(Job *job, const Case *test, uint32_t index) {
    uint32_t types = 0;
    while (types < 4 && test->types[types]) types++;
    const char *text = put_in(job, test, index, test->types[index % types]);
    DeviceCase *made = device_case_create(text, test->sets);
    if (made->status) printf("FAILED %s: %s\n%s\n", test->name, ir_job_report(made->job), text);
    bool found = made->status;
    for (uint32_t s = 0; !made->status && s < made->unit.plan->steps.count; s++)
        found |= made->unit.plan->steps.at[s].strategy == test->strategy;
    bool one = test->widths[index] == 1; /* there is less to do */
    if (!found && !one) printf("FAILED %s: no kernel is %s\n", test->name, gen_strategy(test->strategy)->name);
    if (!found && !one) made->status = STATUS_CHECK_FAILED;
    return made;
}

typedef struct Watch {
    const DeviceCase *of;
    Counts *counts;
} Watch;

static void count_step(void *state, uint32_t index, const RtScratch *scratch) {
    const Watch *watch = state;
    const Step *step = &watch->of->unit.plan->steps.at[index];
    int64_t blocks = 0;
    if (rt_step_blocks(watch->of->program, index, scratch, &blocks, NULL) || !blocks) return;
    watch->counts->wide += step->variants[scratch->variant].wide;
    if (step->part == IR_NONE) return;
    *(scratch->parts[step->part] > 1 ? &watch->counts->several_parts : &watch->counts->one_part) += 1;
}

static void run_rows(const Case *test, DeviceCase *own, int64_t rows, const Devices *devices, Random *random,
                     Counts *counts) {
    Job *job = ir_job_create(NULL);
    Text why = ir_text(job);
    int64_t any[4] = {rows, 16, 3, 3};
    Watch watch = {own, counts};
    LaunchTrial trial = {.job = job,
                         .unit = &own->unit,
                         .program = own->program,
                         .module = own->module,
                         .devices = devices->at,
                         .device_count = devices->count,
                         .any = any,
                         .random = random,
                         .border = RT_ADDRESS_SANITIZER && !devices->cuda ? 0 : BORDER,
                         .step_done = count_step,
                         .state = &watch};
    for (int64_t second = 0; second < (own->program->any_count > 1 ? 4 : 1); second++) {
        static const int64_t seconds[] = {16, 1, 37, 0};
        any[1] = seconds[second];
        Status status = launch_trial_run(&trial, &why);
        bool refused = status == STATUS_USAGE && launch_refuses_dims(ir_text_string(&why));
        if (refused) why.count = 0;
        if (!status || refused) continue;
        printf("FAILED %s M=%lld, %lld: status %d: %s\n%s\n", test->name, (long long)rows, (long long)any[1],
               (int)status, ir_text_string(&why), own->text);
        counts->failed++;
        break;
    }
    counts->launches += trial.launches;
    counts->elements += trial.elements;
    ir_job_free(job);
}

static void run_case(const Case *test, DeviceCase *own, const Devices *devices, bool reduced, Random *random,
                     Counts *counts) {
    uint32_t failed = counts->failed;
    counts->programs++;
    for (uint32_t r = 0; r < MOST && test->rows[r] >= 0 && counts->failed == failed; r++) {
        if (reduced && r > 2) break;
        run_rows(test, own, test->rows[r], devices, random, counts);
    }
}

/* ---- known or not ---- */

/* Graphs whose kept extents are numbers or known at launch only: the same bits. $K is put in, "any" or the width. */
static const char *const twins[] = {
    ("{M: any, K: $K}\ninputs: {x: 'bf16[M, K]', z: 'f32[M, K]'}\n"
     "nodes: {w: 'sum(x * z, dim=0)', a: 'amax(x, dim=0)'}\noutputs: {w: f32, a: bf16}"),
    "{M: any, K: $K}\ninputs: {x: 'bf16[M, K]'}\nnodes: {m: 'mean(x, dim=0)'}\noutputs: {m: f32}",
    "{M: any, K: $K}\ninputs: {x: 'f16[M, 70, K]'}\nnodes: {y: 'softmax(x, dim=1)'}\noutputs: {y: f32}",
};
static const int64_t twin_widths[] = {2, 3, 8, 33, 250, 257, 1024};
enum { TWINS = sizeof twins / sizeof *twins, TWIN_WIDTHS = sizeof twin_widths / sizeof *twin_widths };

static DeviceCase *open_twin(Job *job, uint32_t twin, int64_t width) {
    Text out = ir_text(job);
    for (const char *at = twins[twin]; *at; at++) {
        const char *text = *at == '\'' ? "\"" : NULL;
        if (*at == '$') at++, text = width ? ir_format(job, "%lld", (long long)width) : "any";
        ir_text_bytes(&out, text ? text : at, text ? strlen(text) : 1);
    }
    DeviceCase *made = device_case_create(
        ir_format(job, "graph: twin_%u_%lld\ndims: %s\n", twin, (long long)width, ir_text_string(&out)), NULL);
    if (made->status) printf("FAILED twin %u: %s\n", twin, ir_job_report(made->job));
    return made;
}

static bool run_twin(Job *job, DeviceCase *own, const int64_t *any, const Devices *devices, uint64_t seed,
                     LaunchTrial *trial) {
    Random *random = IR_NEW(job, Random);
    Text why = ir_text(job);
    random->state = seed;
    *trial = (LaunchTrial){.job = job,
                           .unit = &own->unit,
                           .program = own->program,
                           .module = own->module,
                           .devices = devices->at,
                           .device_count = devices->count,
                           .any = any,
                           .random = random};
    if (!launch_trial_run(trial, &why)) return true;
    printf("FAILED M=%lld K=%lld: %s\n%s\n", (long long)any[0], (long long)any[1], ir_text_string(&why), own->text);
    return false;
}

static bool same_bits(DeviceCase *fixed, DeviceCase *free, int64_t rows, int64_t width, const Devices *devices) {
    Job *job = ir_job_create(NULL);
    const int64_t any[] = {rows, width};
    LaunchTrial a, b;
    uint64_t seed = (uint64_t)(rows * 1024 + width);
    bool same = run_twin(job, fixed, any, devices, seed, &a) && run_twin(job, free, any, devices, seed, &b);
    for (uint32_t o = 0; same && o < fixed->program->graph->outputs.count; o++) {
        const uint32_t t = fixed->program->input_count + o;
        size_t bytes = (size_t)(a.scratch.spans[t].count * fixed->program->tensors[t].element_bytes);
        same = memcmp(a.first[o], b.first[o], bytes) == 0;
        if (!same)
            printf("FAILED: other bits where the width %lld is known, M=%lld\n%s\n", (long long)width, (long long)rows,
                   fixed->text);
    }
    ir_job_free(job);
    return same;
}

static void run_twins(const Devices *devices, bool reduced, Counts *counts) {
    static const int64_t rows[] = {3, 65, 600};
    Job *job = ir_job_create(NULL);
    DeviceCase *made[TWINS * (TWIN_WIDTHS + 1)];
    uint32_t count = 0;
    for (uint32_t t = 0; t < TWINS; t++)
        for (uint32_t w = 0; w <= TWIN_WIDTHS; w++) made[count++] = open_twin(job, t, w ? twin_widths[w - 1] : 0);
    bool built = device_cases_build(made, count, devices);
    for (uint32_t i = 0; i < count; i++) built &= !made[i]->status;
    counts->failed += !built;
    for (uint32_t i = 0; built && i < count; i++) {
        DeviceCase *free = made[i - i % (TWIN_WIDTHS + 1)];
        if (made[i] == free) continue;
        counts->programs++;
        const int64_t width = twin_widths[i % (TWIN_WIDTHS + 1) - 1];
        for (uint32_t r = 0; r < (reduced ? 1 : 3); r++) {
            if (strstr(free->text, "[M, 70, K]") && rows[r] * width > 20000) continue; /* more of the same */
            counts->failed += !same_bits(made[i], free, rows[r], width, devices);
        }
    }
    for (uint32_t i = 0; i < count; i++) device_case_free(made[i], devices);
    ir_job_free(job);
}

int main(int argc, char **argv) {
    const char *only = NULL;
    if (argc > 1 && !strncmp(argv[argc - 1], "--only=", 7)) only = argv[--argc] + 7;
    Devices devices;
    if (!devices_open(&devices, argc, argv)) return 3;
    Random random = {random_seed()};
    bool reduced = getenv("NORMGEN_TEST_REDUCED") != NULL;
    Job *job = ir_job_create(NULL);
    IR_LIST(DeviceCase *) made = {0};
    IR_LIST(uint32_t) of = {0};
    Counts counts = {0};
    for (uint32_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        if (only && strcmp(only, cases[c].name)) continue;
        for (uint32_t w = 0; w < MOST && (cases[c].widths[w] || !w); w++) {
            if (reduced && w > 2) break;
            *IR_PUSH(job, &made) = open_case(job, &cases[c], w);
            *IR_PUSH(job, &of) = c;
            counts.failed += made.at[made.count - 1]->status != STATUS_OK;
        }
    }
    bool built = device_cases_build(made.at, made.count, &devices);
    for (uint32_t i = 0; built && i < made.count; i++)
        if (!made.at[i]->status) run_case(&cases[of.at[i]], made.at[i], &devices, reduced, &random, &counts);
    if (!only || !strcmp(only, "twins")) run_twins(&devices, reduced, &counts);
    printf("# %u programs, %u launches, %llu elements compared; steps in wide variants %llu, in several parts %llu, in "
           "one %llu\n",
           counts.programs, counts.launches, (unsigned long long)counts.elements, (unsigned long long)counts.wide,
           (unsigned long long)counts.several_parts, (unsigned long long)counts.one_part);
    bool met = only || (counts.wide && counts.several_parts && counts.one_part);
    if (!met) printf("FAILED: something was never met\n");
    for (uint32_t i = 0; i < made.count; i++) device_case_free(made.at[i], &devices);
    devices_close(&devices);
    ir_job_free(job);
    bool failed = !built || counts.failed || !met;
    printf(failed ? "[  FAILED  ] %u\n" : "[  PASSED  ] %u test(s).\n", failed ? counts.failed : counts.programs);
    return failed;
}
