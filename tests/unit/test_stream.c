/* Rows with sums across them in one kernel (row_stream), on a device against the oracle: with no row, one, on both
 * sides of what a trip, a CTA and a part hold; rows of awkward lengths; every way of lying in memory
 * (tests/support/launch_trial.h). Every program has such a kernel, and where the name says so several trips of it.
 *
 *   build/tests/test_stream [--device=host|cuda] [--only=NAME]
 *
 * NORMGEN_TEST_REDUCED: the first widths and rows only. NORMGEN_SEED repeats the data. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/host_sanitize.h"
#include "tests/support/device_case.h"

enum { MOST = 12 };

typedef struct Case {
    const char *name;
    const char *graph; /* from dims: on; $N is put in, ' stands for " */
    const char *sets;
    const char *types[4]; /* up to a NULL; each width takes the next */
    int64_t widths[MOST]; /* up to a 0 */
    int64_t rows[MOST];   /* up to a negative one */
    uint32_t kernels;     /* at every width */
} Case;

#define FLOATS                                                                                                         \
    { "bf16", "f32", "f16" }
#define WIDTHS                                                                                                         \
    { 7, 129, 384, 768, 1000, 2048, 4096 }
#define FEW_WIDTHS                                                                                                     \
    { 7, 129, 384, 1000 }
#define ROWS                                                                                                           \
    { 0, 1, 37, 4, 5, 6, 101, -1 }
#define FEW_ROWS                                                                                                       \
    { 0, 1, 37, -1 }

static const char rms_norm[] =
    "{M: any, N: $N}\ninputs: {x: 'E[M, N]', dy: 'E[M, N]', w: 'f32[N]', rstd: 'f32[M]'}\n"
    "nodes: {g: dy * w, xhat: 'x * rstd[:, None]', c1: 'mean(g * xhat, dim=-1, keepdim=True)',\n"
    "  dx: '(g - xhat * c1) * rstd[:, None]', dw: 'sum(dy * xhat, dim=0)'}\noutputs: {dx: E, dw: f32}";
static const char layer_norm[] =
    "{M: any, N: $N}\ninputs: {x: 'E[M, N]', dy: 'E[M, N]', w: 'E[N]', mean: 'f32[M]', rstd: 'f32[M]'}\n"
    "nodes: {xhat: '(x - mean[:, None]) * rstd[:, None]', g: dy * w,\n"
    "  c1: 'mean(g * xhat, dim=-1, keepdim=True)', c2: 'mean(g, dim=-1, keepdim=True)',\n"
    "  dx: '(g - xhat * c1 - c2) * rstd[:, None]', dw: 'sum(dy * xhat, dim=0)', db: 'sum(dy, dim=0)'}\n"
    "outputs: {dx: {dtype: E, inplace: dy}, dw: E, db: f32}";

static const Case cases[] = {
    {"rms_norm", rms_norm, NULL, FLOATS, WIDTHS, FEW_ROWS, 2},
    {"layer_norm", layer_norm, NULL, FLOATS, WIDTHS, FEW_ROWS, 2},
    {"rms_norm_trips", rms_norm, "part_rows=5", FLOATS, WIDTHS, ROWS, 2},
    {"layer_norm_trips", layer_norm, "part_rows=5 stages=1", FLOATS, WIDTHS, ROWS, 2},
    {"many_trips", rms_norm, "min_ctas=1", FLOATS, {129, 8}, {2113, 132, 133, 1057, 9000, -1}, 2},
    {"long_rows", layer_norm, "part_rows=3", FLOATS, {8472, 16384, 12000}, {0, 1, 7, -1}, 2},
    {"leak",
     "{M: any, N: $N}\ninputs: {x: 'E[M, N]'}\n"
     "nodes: {y: 2 * x + 0.25, m: 'amax(y, dim=1)', s: 'sum(y, dim=0)', e: 'sum(exp(x * 0), dim=0)',\n"
     "  p: 'prod(x * 0 - 1, dim=0)'}\n"
     "outputs: {m: f32, s: f32, e: f32, p: f32}",
     "part_rows=5", FLOATS, WIDTHS, ROWS, 2},
    {"extremes",
     "{M: any, N: $N}\ninputs: {x: 'E[M, N]'}\n"
     "nodes: {r: 'sum(x, dim=1)', a: 'amax(x - 9, dim=0)', i: 'amin(x + 9, dim=0)', o: 'any(x > 2.5, dim=0)',\n"
     "  l: 'all(x > -2.5, dim=0)', c: 'sum(x > 0, dim=0)', n: 'prod(x * 0.25 + 1, dim=0)'}\n"
     "outputs: {r: f32, a: E, i: f32, o: bool, l: bool, c: i32, n: f32}",
     "part_rows=5", FLOATS, FEW_WIDTHS, ROWS, 2},
    {"statistics_here", /* dw needs what the row's own reductions give */
     "{M: any, N: $N}\ninputs: {x: 'E[M, N]', dy: 'E[M, N]', w: 'E[N]'}\n"
     "nodes: {mu: 'mean(x, dim=1, keepdim=True)', rs: 'rsqrt(var(x, dim=1, correction=0, keepdim=True) + 1e-5)',\n"
     "  xhat: (x - mu) * rs, g: dy * w, c1: 'mean(g * xhat, dim=1, keepdim=True)',\n"
     "  dx: '(g - xhat * c1 - mean(g, dim=1, keepdim=True)) * rs', dw: 'sum(dy * xhat, dim=0)', db: 'sum(dy, dim=0)'}\n"
     "outputs: {dx: E, dw: f32, db: E}",
     "part_rows=5", FLOATS, WIDTHS, ROWS, 2},
    {"softmax",
     "{M: any, N: $N}\ninputs: {y: 'E[M, N]', dy: 'E[M, N]'}\n"
     "nodes: {s: 'sum(y * dy, dim=1, keepdim=True)', dx: 'y * (dy - s)', db: 'sum(dx, dim=0)'}\n"
     "outputs: {dx: {dtype: E, inplace: dy}, db: f32}",
     "part_rows=5", FLOATS, FEW_WIDTHS, ROWS, 2},
    {"kept_rows", /* one sum for each batch: adaLN */
     "{B: any, S: 6, N: $N}\ninputs: {x: 'E[B, S, N]', dy: 'E[B, S, N]', a: 'E[B, N]', rstd: 'f32[B, S]'}\n"
     "nodes: {xhat: 'x * rstd[:, :, None]', g: 'dy * (1 + a[:, None])', c1: 'mean(g * xhat, dim=2, keepdim=True)',\n"
     "  dx: '(g - xhat * c1) * rstd[:, :, None]', da: 'sum(dy * xhat, dim=1)', ds: 'sum(dy, dim=1)'}\n"
     "outputs: {dx: E, da: E, ds: f32}",
     "mixed_rows=1 mixed_kept=1 part_rows=4",
     FLOATS,
     FEW_WIDTHS,
     {0, 1, 3, 37, -1},
     2},
    {"kept_any",
     "{B: any, S: {hint: 9999}, N: $N}\ninputs: {x: 'E[B, S, N]', dy: 'E[B, S, N]', a: 'E[B, N]'}\n"
     "nodes: {g: 'dy * (1 + a[:, None])', c1: 'mean(g * x, dim=2, keepdim=True)',\n"
     "  dx: 'g - x * c1', da: 'sum(dy * x, dim=1)'}\noutputs: {dx: E, da: f32}",
     NULL,
     FLOATS,
     FEW_WIDTHS,
     {0, 1, 3, -1},
     2},
    {"outer_kept", /* the rows that a sum keeps are the inner ones */
     "{B: any, S: 5, N: $N}\ninputs: {x: 'E[B, S, N]', dy: 'E[B, S, N]'}\n"
     "nodes: {c1: 'mean(dy * x, dim=2, keepdim=True)', dx: 'dy - x * c1', da: 'sum(dy * x, dim=0)'}\n"
     "outputs: {dx: E, da: f32}",
     "part_rows=3",
     FLOATS,
     FEW_WIDTHS,
     {0, 1, 3, 4, 37, -1},
     2},
    {"split_loads", /* two inner axes, which x alone does not run through at one stride */
     "{M: any, A: 4, N: $N}\n"
     "inputs: {x: {dtype: E, shape: [M, A, N], strides: [(N + 3)*A, N + 3, 1]}, w: 'E[A, N]', y: 'E[M, A, N]'}\n"
     "nodes: {m: 'amax(x * w + y, dim=[1, 2], keepdim=True)', s: 'sum(x, dim=0)'}\noutputs: {m: f32, s: f32}",
     "part_rows=5",
     FLOATS,
     {7, 12, 129},
     FEW_ROWS,
     2},
    {"split_stores", /* ... nor what is stored */
     "{M: any, A: 4, N: $N}\ninputs: {x: 'E[M, A, N]', w: 'E[A, N]'}\n"
     "nodes: {t: 'x * w', y: 't - amax(t, dim=[1, 2], keepdim=True)', s: 'sum(x, dim=0)'}\n"
     "outputs: {y: {dtype: E, strides: [(N + 3)*A, N + 3, 1]}, s: f32}",
     "part_rows=5",
     FLOATS,
     {7, 12, 129},
     FEW_ROWS,
     2},
    {"integers",
     "{M: any, N: $N}\ninputs: {x: 'E[M, N]'}\n"
     "nodes: {r: 'sum(x, dim=1)', s: 'sum(x, dim=0)', p: 'prod(x, dim=0)', m: 'amin(x, dim=0)'}\n"
     "outputs: {r: i64, s: i64, p: i64, m: i64}",
     "part_rows=5",
     {"i64", "i32", "i8"},
     FEW_WIDTHS,
     {1, 37, 5, -1},
     2},
    {"doubles",
     "{M: any, N: $N}\ninputs: {x: 'E[M, N]', z: 'f32[M, N]'}\n"
     "nodes: {r: 'mean(x * z, dim=1, keepdim=True)', y: x - r, s: 'mean(x * z, dim=0)', d: 'sum(z, dim=0)'}\n"
     "outputs: {y: f64, s: f64, d: f32}",
     "part_rows=5",
     {"f64"},
     FEW_WIDTHS,
     FEW_ROWS,
     2},
    {"accumulated",
     "{M: any, N: $N}\ninputs: {x: 'E[M, N]', dy: 'E[M, N]', h: 'E[M, N]'}\n"
     "nodes: {c: 'mean(dy * x, dim=1, keepdim=True)', dx: dy - x * c + h, dw: 'sum(dy * x, dim=0) * 0.5',\n"
     "  d2: 'cast(dx, bf16)'}\n"
     "outputs: {dx: {dtype: E, accumulate: true}, dw: {dtype: f32, accumulate: true}, d2: bf16}",
     "part_rows=5", FLOATS, FEW_WIDTHS, ROWS, 2},
    {"strides",
     "{M: any, N: $N}\n"
     "inputs: {x: {dtype: E, shape: [M, N], strides: [N + 8, 1]}, dy: {dtype: E, shape: [M, N], strides: [0, 1]}}\n"
     "nodes: {c: 'sum(dy * x, dim=1)', y: 'x * c[:, None]', dw: 'sum(dy * x, dim=0)'}\n"
     "outputs: {y: {dtype: E, shape: [M, N], strides: [N + 3, 1]}, dw: {dtype: f32, shape: [N], strides: [2]}}",
     "part_rows=5", FLOATS, FEW_WIDTHS, ROWS, 2},
    {"any_width",
     "{M: any, N: {max: $N}}\ninputs: {x: 'E[M, N]', dy: 'E[M, N]', w: 'E[N]'}\n"
     "nodes: {g: dy * w, c: 'mean(g * x, dim=1, keepdim=True)', dx: g - x * c, dw: 'sum(dy * x, dim=0)'}\n"
     "outputs: {dx: E, dw: E}",
     "part_rows=5",
     FLOATS,
     {129, 1000},
     ROWS,
     2},
    {"inner_axes",
     "{M: any}\ninputs: {x: 'E[M, 6, $N]', dy: 'E[M, 6, $N]', w: {dtype: f32, shape: [6, $N], strides: [1, 6]}}\n"
     "nodes: {g: dy * w, c: 'mean(g * x, dim=[1, 2], keepdim=True)', dx: g - x * c, dw: 'sum(dy * x, dim=0)'}\n"
     "outputs: {dx: E, dw: {dtype: f32, shape: [6, $N], strides: [1, 6]}}",
     "part_rows=5",
     FLOATS,
     {7, 40, 129},
     ROWS,
     2},
    {"costly",
     "{M: any, N: $N}\ninputs: {x: 'E[M, N]', dy: 'E[M, N]'}\n"
     "nodes: {e: 'exp(sin(x) * 0.25) * erf(x)', c: 'mean(e, dim=1, keepdim=True)', dx: 'dy * e - tanh(c * x)',\n"
     "  s: 'sum(tanh(dy) * e, dim=0)'}\n"
     "outputs: {dx: E, s: f32}",
     "part_rows=5",
     FLOATS,
     {129, 2048, 4096},
     FEW_ROWS,
     2},
    {"one_thread", rms_norm, "part_rows=5 f0.row_threads=1 f0.rows=3 f0.vector=1", FLOATS, {7, 129}, ROWS, 2},
    {"one_row", layer_norm, "part_rows=5 f0.row_threads=64 f0.rows=1 stages=1", FLOATS, FEW_WIDTHS, ROWS, 2},
    {"wide_tile", layer_norm, "part_rows=9 f0.row_threads=128 f0.rows=4 stages=2", FLOATS, FEW_WIDTHS, ROWS, 2},
    {"row_a_part", rms_norm, "part_rows=1", FLOATS, FEW_WIDTHS, FEW_ROWS, 2},
};
enum { CASES = sizeof cases / sizeof *cases };

typedef struct Counts {
    uint32_t programs, launches, failed;
    uint64_t elements, wide, narrow, one_part, several_parts;
} Counts;

static DeviceCase *open_case(Job *job, const Case *test, uint32_t index) {
    uint32_t types = 0;
    while (types < 4 && test->types[types]) types++;
    Text out = ir_text(job);
    for (const char *at = test->graph; *at; at++) {
        if (*at == '$')
            ir_text_format(&out, "%lld", (long long)test->widths[index]), at++;
        else
            ir_text_bytes(&out, *at == '\'' ? "\"" : at, 1);
    }
    const char *text = ir_format(job, "graph: %s_%u\ntypes: {E: %s}\ndims: %s\n", test->name, index,
                                 test->types[index % types], ir_text_string(&out));
    DeviceCase *made = device_case_create(text, test->sets);
    if (made->status) {
        printf("FAILED %s: %s\n%s\n", test->name, ir_job_report(made->job), text);
        return made;
    }
    const Plan *plan = made->unit.plan;
    bool found = false;
    for (uint32_t s = 0; s < plan->steps.count; s++) found |= plan->steps.at[s].strategy == STRATEGY_ROW_STREAM;
    if (found && plan->steps.count == test->kernels) return made;
    printf("FAILED %s: %u kernels, %s of them row_stream\n%s\n", test->name, plan->steps.count, found ? "one" : "none",
           text);
    for (uint32_t i = 0; i < made->unit.reports.count; i++) printf("    %s\n", made->unit.reports.at[i].text);
    made->status = STATUS_CHECK_FAILED;
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
    if (step->strategy != STRATEGY_ROW_STREAM || rt_step_blocks(watch->of->program, index, scratch, &blocks, NULL) ||
        !blocks)
        return;
    ++*(step->variants[scratch->variant].wide ? &watch->counts->wide : &watch->counts->narrow);
    ++*(scratch->parts[step->part] > 1 ? &watch->counts->several_parts : &watch->counts->one_part);
}

static void run_case(const Case *test, const DeviceCase *own, const Devices *devices, bool reduced, Random *random,
                     Counts *counts) {
    static const int64_t seconds[] = {129, 1, 37, 0};
    Watch watch = {own, counts};
    counts->programs++;
    for (uint32_t r = 0; r < MOST && test->rows[r] >= 0 && !(reduced && r > 2); r++) {
        for (uint32_t k = 0; k < (own->program->any_count > 1 ? 4 : 1); k++) {
            Job *job = ir_job_create(NULL);
            const int64_t any[] = {test->rows[r], seconds[k]};
            LaunchTrial trial = {.random = random, .step_done = count_step, .state = &watch};
            const bool passed = device_case_try(job, own, devices, any, &trial);
            counts->launches += trial.launches;
            counts->elements += trial.elements;
            counts->failed += !passed;
            ir_job_free(job);
            if (!passed) return;
        }
    }
}

int main(int argc, char **argv) {
    const char *only = NULL;
    if (argc > 1 && !strncmp(argv[argc - 1], "--only=", 7)) only = argv[--argc] + 7;
    Devices devices;
    if (!devices_open(&devices, argc, argv)) return 3;
    Random random = {random_seed()};
    const bool reduced = getenv("NORMGEN_TEST_REDUCED") != NULL;
    Job *job = ir_job_create(NULL);
    IR_LIST(DeviceCase *) made = {0};
    IR_LIST(uint32_t) of = {0};
    Counts counts = {0};
    for (uint32_t c = 0; c < CASES; c++) {
        if (only && strcmp(only, cases[c].name)) continue;
        for (uint32_t w = 0; w < MOST && cases[c].widths[w] && !(reduced && w > 2); w++) {
            *IR_PUSH(job, &made) = open_case(job, &cases[c], w);
            *IR_PUSH(job, &of) = c;
            counts.failed += made.at[made.count - 1]->status != STATUS_OK;
        }
    }
    const bool built = device_cases_build(made.at, made.count, &devices);
    for (uint32_t i = 0; built && i < made.count; i++)
        if (!made.at[i]->status) run_case(&cases[of.at[i]], made.at[i], &devices, reduced, &random, &counts);
    printf(
        "# %u programs, %u launches, %llu elements compared; wide variants %llu, narrow %llu, one part %llu, several "
        "%llu\n",
        counts.programs, counts.launches, (unsigned long long)counts.elements, (unsigned long long)counts.wide,
        (unsigned long long)counts.narrow, (unsigned long long)counts.one_part,
        (unsigned long long)counts.several_parts);
    const bool met = only || (counts.wide && counts.narrow && counts.one_part && counts.several_parts);
    if (!met) printf("FAILED: something was never met\n");
    for (uint32_t i = 0; i < made.count; i++) device_case_free(made.at[i], &devices);
    devices_close(&devices);
    ir_job_free(job);
    const bool failed = !built || counts.failed || !met;
    printf(failed ? "[  FAILED  ] %u\n" : "[  PASSED  ] %u test(s).\n", failed ? counts.failed : counts.programs);
    return failed;
}
