/* Graphs of mixed dtypes on a device against the oracle, in every way of lying in memory
 * (tests/support/launch_trial.h): every dtype goes in and out, integers and f64 beside narrow floats; scalars and
 * elements read on the device, gathers, outputs that accumulate, strides given at launch.
 *
 *   build/tests/test_dtypes [--device=host|cuda] [--only=NAME]
 *
 * A case is a graph in which $F stands for a float dtype, $I for an integer one, $X for any but bool, $N for a width;
 * each is drawn anew wherever it stands. NORMGEN_SEED repeats a run; NORMGEN_TEST_REDUCED: fewer widths. What was met
 * is counted: each dtype must go in and come out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/host_sanitize.h"
#include "tests/support/device_case.h"
#include "tests/support/hits.h"
#include "tests/support/launch_trial.h"

enum { BORDER = 256, MAX_ANY = 4 };

typedef struct Case {
    const char *name;
    const char *graph; /* from dims: on; ' stands for " */
    const char *sets;
} Case;

static const Case cases[] = {
    {"pointwise",
     "{M: any}\ninputs: {x: '$X[M, $N]', z: '$X[$N]', b: 'bool[M, 1]'}\n"
     "nodes: {y: 'where(b, x, z)', v: 'x * z + 1', c: 'x > z'}\n"
     "outputs: {y: $X, v: $X, w: {dtype: $X, of: v}, c: bool, n: {dtype: $X, of: c}}",
     NULL},
    {"rms_norm",
     "{M: any}\ninputs: {x: '$X[M, $N]', w: '$F[$N]', s: '$F[]'}\nscalars: {eps: 1e-3}\n"
     "nodes: {y: 'rms_norm(x, w, eps) * s'}\noutputs: {y: $F, z: {dtype: $F, of: y}}",
     NULL},
    {"quantized",
     "{M: any}\ninputs: {x: '$F[M, $N]', residual: '$F[M, $N]'}\n"
     "nodes: {h: 'x + residual', y: 'rms_norm(h, eps=1e-5)',\n"
     "  s: 'maximum(amax(abs(y), dim=-1, keepdim=True) / 448, 1e-6)', q: 'y / s'}\n"
     "outputs: {q: f8e4m3, s: $F, h: $F}",
     NULL},
    {"dequantized",
     "{M: any}\ninputs: {q: 'f8e5m2[M, $N]', i: 'i8[M, $N]', scale: '$F[M]', zero: 'i32[]'}\n"
     "nodes: {y: 'layer_norm(q * scale[:, None] + (i - zero) * 0.05)'}\noutputs: {y: $F}",
     NULL},
    {"sums_of_integers",
     "{M: any}\ninputs: {x: '$I[M, $N]', b: 'bool[M, $N]'}\n"
     "nodes: {s: 'sum(x, -1)', p: 'prod(where(b, x, 1), -1)', m: 'amax(x, -1)', n: 'amin(x, -1)', c: 'sum(b, -1)',\n"
     "  a: 'any(b, -1)', l: 'all(b, -1)', d: 'x // (abs(x[:, :1]) + 1)', r: 'x % 3'}\n"
     "outputs: {s: $I, p: i64, m: $I, n: $X, c: i32, a: bool, l: bool, d: $I, r: u8}",
     NULL},
    {"doubles",
     "{M: any}\ninputs: {x: 'f64[M, $N]', w: '$X[$N]'}\nscalars: {eps: {dtype: f64, default: 1e-12}}\n"
     "nodes: {y: 'layer_norm(x, w, None, eps)', p: 'softmax(x, -1)'}\noutputs: {y: f64, p: $F}",
     NULL},
    {"doubles_in_a_loop",
     "{M: any, K: any}\ninputs: {x: 'f64[M, K]', z: '$F[M, K]'}\n"
     "nodes: {m: 'mean(x, -1)', v: 'var(z * x, -1)', y: 'tanh(x) + erf(z)'}\noutputs: {m: f64, v: f64, y: f64}",
     NULL},
    {"scalars",
     "{M: any}\ninputs: {x: '$X[M, $N]', k: '$I[]', d: 'f64[]', b: 'bool[]'}\n"
     "scalars: {i: {dtype: i64, default: 3}, j: {dtype: i8, default: -2}, f: {dtype: f64, default: 0.1},\n"
     "  h: {dtype: f16, default: 0.1}, t: {dtype: bool, default: True}}\n"
     "nodes: {y: 'where(t, x * i + k, x)', z: 'x * f + d', w: 'where(b, x * h, j)', s: 'k + j * i'}\n"
     "outputs: {y: $X, z: f64, w: $F, s: $I}",
     NULL},
    {"masked_softmax",
     "{M: any}\ninputs: {x: '$F[M, $N]', keep: 'bool[M, $N]', bias: 'u8[$N]'}\n"
     "nodes: {y: 'softmax(where(keep, x + bias * 0.01, -1e4), -1)', l: 'logsumexp(x, -1)'}\noutputs: {y: $F, l: $F}",
     NULL},
    {"embedding",
     "{T: any, V: any}\ninputs: {table: '$F[V, $N]', kinds: '$F[3, $N]', ids: 'i64[T]', kind: '$I[T]', w: '$F[$N]'}\n"
     "nodes: {e: 'table[ids] + kinds[kind]', y: 'layer_norm(e, w)'}\noutputs: {e: $F, y: $F}",
     NULL},
    {"picked_columns",
     "{M: any, P: any}\ninputs: {x: '$X[M, $N]', ids: 'i32[P]', rows: '$I[M]'}\n"
     "nodes: {y: 'abs(x)[:, ids] + 1', z: 'sum(x[:, ids], -1)', q: 'x[rows]'}\n"
     "outputs: {y: $X, z: $F, q: $X}",
     NULL},
    {"picked_rows_summed",
     "{T: any, V: any}\ninputs: {table: '$F[V, $N]', ids: 'i32[T]', weight: '$F[T]'}\n"
     "nodes: {y: 'sum(table[ids] * weight[:, None], dim=0)'}\noutputs: {y: $F}",
     NULL},
    {"cross_entropy",
     "{M: any}\ninputs: {x: '$F[M, $N]', target: 'i64[M]', at: '$I[M]'}\n"
     "nodes: {l: '-sum(where(arange($N) == target[:, None], log_softmax(x, -1), 0), -1)', z: 'x[at] * 2'}\n"
     "outputs: {l: f32, z: $F}",
     NULL},
    {"accumulated",
     "{M: any}\ninputs: {x: '$F[M, $N]', i: '$I[M, $N]'}\n"
     "nodes: {y: 'x * 0.5', r: 'sum(x * x, -1)', c: 'sum(x, 0)', n: 'i * 3', s: 'sum(i, -1)', o: 'sum(i)'}\n"
     "outputs: {y: {dtype: $F, accumulate: true}, r: {dtype: $F, accumulate: true}, c: {dtype: $F, accumulate: true},\n"
     "  n: {dtype: $I, accumulate: true}, s: {dtype: $I, accumulate: true}, o: {dtype: $I, accumulate: true}}",
     NULL},
    {"accumulated_doubles",
     "{M: any}\ninputs: {x: 'f64[M, $N]'}\nnodes: {y: 'rms_norm(x, eps=1e-9)', r: 'mean(x, -1)'}\n"
     "outputs: {y: {dtype: $F, accumulate: true}, r: {dtype: f64, accumulate: true}}",
     NULL},
    {"strides",
     "{M: any, L: any, K: any}\n"
     "inputs: {x: {dtype: $X, shape: [M, $N], strides: ['L + $N', 1]}, z: {dtype: $F, shape: [M, $N], strides: [1, 'M "
     "+ K']}}\n"
     "nodes: {y: 'rms_norm(x + z, eps=1e-3)'}\n"
     "outputs: {y: {dtype: $F, shape: [M, $N], strides: ['$N + L', 1]}, t: {dtype: $X, of: x, shape: [M, $N], strides: "
     "[1, 'M + L']}}",
     NULL},
    {"in_place",
     "{M: any, L: any}\ninputs: {x: {dtype: $E, shape: [M, $N], strides: ['L + $N', 1]}, w: '$X[$N]'}\n"
     "nodes: {y: 'x * 2 + w'}\noutputs: {y: {dtype: $E, inplace: x}, s: {dtype: $F, of: y}}",
     NULL},
    {"row_loop",
     "{M: any}\ninputs: {x: '$X[M, $N]', g: '$F[$N]'}\n"
     "nodes: {y: '(x - mean(x, -1, keepdim=True)) * g', m: 'amax(x, -1)'}\noutputs: {y: $X, m: $X}",
     "strategy=row_loop"},
    {"fused_off",
     "{M: any}\ninputs: {x: '$X[M, $N]', s: '$F[]'}\n"
     "nodes: {m: 'sum(x, -1, keepdim=True)', y: 'x - m * s', a: 'any(y > 0, -1)'}\noutputs: {y: $X, a: bool}",
     "fuse=off"},
};
enum { CASES = sizeof cases / sizeof *cases };
static const int64_t widths[] = {1, 2, 3, 7, 8, 16, 33, 64, 129, 256, 1000};
static const int64_t sizes[] = {1, 0, 3, 37}; /* of the first any dim; the others follow it */

typedef struct Counts {
    uint32_t programs, launches, failed, refused;
    uint32_t in[DTYPE_COUNT], out[DTYPE_COUNT], scalar[DTYPE_COUNT];
    uint32_t wide, narrow, gather, accumulate;
    uint64_t elements, unbounded;
} Counts;

/* ---- texts ---- */

static const char *draw_dtype(Random *random, char kind) {
    static const DType floats[] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_F8E4M3, DTYPE_F8E5M2, DTYPE_F64};
    static const DType integers[] = {DTYPE_I64, DTYPE_I32, DTYPE_I8, DTYPE_U8};
    bool whole = kind == 'I' || (kind != 'F' && random_below(random, 5) < 2);
    return ir_dtype(whole ? integers[random_below(random, 4)] : floats[random_below(random, 6)])->name;
}

/* $E: any dtype, the same wherever it stands. */
static const char *put_in(Job *job, const Case *test, int64_t width, uint32_t number, Random *random) {
    Text out = ir_text(job);
    const char *same = draw_dtype(random, 'X');
    for (const char *text = test->graph; *text; text++) {
        bool drawn = *text == '$' && (text[1] == 'F' || text[1] == 'I' || text[1] == 'X');
        if (*text == '\'')
            ir_text_put(&out, "\"");
        else if (*text != '$')
            ir_text_bytes(&out, text, 1);
        else if (drawn)
            ir_text_put(&out, draw_dtype(random, *++text));
        else if (*++text == 'N')
            ir_text_format(&out, "%lld", (long long)width);
        else
            ir_text_put(&out, same);
    }
    return ir_format(job, "graph: %s_%u\ndims: %s\n", test->name, number, ir_text_string(&out));
}

static DeviceCase *open_case(Job *job, const Case *test, int64_t width, uint32_t number, Random *random) {
    const char *text = put_in(job, test, width, number, random);
    DeviceCase *made = device_case_create(text, test->sets);
    if (made->status) printf("FAILED %s: %s\n%s\n", test->name, ir_job_report(made->job), text);
    return made;
}

/* ---- running ---- */

typedef struct Watch {
    const DeviceCase *of;
    Counts *counts;
} Watch;

static void count_step(void *state, uint32_t index, const RtScratch *scratch) {
    const Watch *watch = state;
    const Step *step = &watch->of->unit.plan->steps.at[index];
    *(step->variants[scratch->variant].wide ? &watch->counts->wide : &watch->counts->narrow) += 1;
}

static void run_size(DeviceCase *own, uint32_t size, const Devices *devices, Random *random, Counts *counts) {
    Job *job = ir_job_create(NULL);
    Text why = ir_text(job);
    int64_t any[MAX_ANY];
    ng_scalar *scalars = launch_scalars(job, own->program->graph, random);
    for (uint32_t a = 0; a < MAX_ANY; a++) any[a] = a ? (int64_t)random_below(random, 40) : sizes[size];
    Watch watch = {own, counts};
    LaunchTrial trial = {.job = job,
                         .unit = &own->unit,
                         .program = own->program,
                         .module = own->module,
                         .devices = devices->at,
                         .device_count = devices->count,
                         .any = any,
                         .scalars = size ? scalars : NULL,
                         .random = random,
                         .border = RT_ADDRESS_SANITIZER && !devices->cuda ? 0 : BORDER,
                         .step_done = count_step,
                         .state = &watch};
    Status status = launch_trial_run(&trial, &why);
    bool refused = status == STATUS_USAGE && launch_refuses_dims(ir_text_string(&why));
    counts->refused += refused;
    if (status && !refused) {
        printf("FAILED with %lld, %lld, %lld: status %d: %s\n%s\n", (long long)any[0], (long long)any[1],
               (long long)any[2], (int)status, ir_text_string(&why), own->text);
        counts->failed++;
    }
    counts->launches += trial.launches;
    counts->elements += trial.elements;
    counts->unbounded += trial.unbounded;
    ir_job_free(job);
}

static void run_case(DeviceCase *own, const Devices *devices, Random *random, Counts *counts) {
    const Graph *graph = own->program->graph;
    uint32_t failed = counts->failed;
    counts->programs++;
    for (uint32_t i = 0; i < graph->inputs.count; i++) counts->in[graph->inputs.at[i].dtype]++;
    for (uint32_t i = 0; i < graph->scalars.count; i++) counts->scalar[graph->scalars.at[i].dtype]++;
    for (uint32_t i = 0; i < graph->outputs.count; i++) {
        counts->out[graph->outputs.at[i].dtype]++;
        counts->accumulate += graph->outputs.at[i].accumulate;
    }
    for (uint32_t n = 0; n < own->unit.prog->nests.count; n++) {
        const Nest *nest = &own->unit.prog->nests.at[n];
        for (uint32_t i = 0; i < nest->accesses.count; i++) counts->gather += nest->accesses.at[i].index != IR_NONE;
    }
    for (uint32_t size = 0; size < sizeof sizes / sizeof *sizes && counts->failed == failed; size++)
        run_size(own, size, devices, random, counts);
}

static void report_hits(HitReport *report, const Counts *counts) {
    hits_line(report, "in");
    for (unsigned i = 0; i < DTYPE_COUNT; i++) hits_count(report, counts->in[i], ir_dtype((DType)i)->name, true);
    hits_line(report, "out");
    for (unsigned i = 0; i < DTYPE_COUNT; i++) hits_count(report, counts->out[i], ir_dtype((DType)i)->name, true);
    hits_line(report, "scalar");
    for (unsigned i = 0; i < DTYPE_COUNT; i++) hits_count(report, counts->scalar[i], ir_dtype((DType)i)->name, false);
    hits_line(report, "kernels");
    hits_count(report, counts->wide, "aligned", true);
    hits_count(report, counts->narrow, "any", true);
    hits_count(report, counts->gather, "gather", true);
    hits_count(report, counts->accumulate, "accumulate", true);
    hits_end(report);
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
    Counts counts = {0};
    uint32_t number_of_widths = reduced ? 3 : sizeof widths / sizeof *widths;
    for (uint32_t c = 0; c < CASES; c++)
        for (uint32_t w = 0; w < number_of_widths && (!only || !strcmp(only, cases[c].name)); w++) {
            if (widths[w] == 1 && cases[c].sets) continue; /* rows of one element are no rows to force */
            *IR_PUSH(job, &made) = open_case(job, &cases[c], widths[w], w, &random);
            counts.failed += made.at[made.count - 1]->status != STATUS_OK;
        }
    bool built = device_cases_build(made.at, made.count, &devices);
    for (uint32_t i = 0; built && i < made.count; i++)
        if (!made.at[i]->status) run_case(made.at[i], &devices, &random, &counts);
    printf("# %u programs, %u launches, %u dims refused; %llu elements compared, %llu without bound; on %s\n",
           counts.programs, counts.launches, counts.refused, (unsigned long long)counts.elements,
           (unsigned long long)counts.unbounded, devices.at[0]->ops->name);
    HitReport report = {0};
    report_hits(&report, &counts);
    bool met = only || reduced || !report.missing;
    if (!met) printf("FAILED: %u things were never met\n", report.missing);
    for (uint32_t i = 0; i < made.count; i++) device_case_free(made.at[i], &devices);
    devices_close(&devices);
    ir_job_free(job);
    bool failed = !built || counts.failed || !met;
    printf(failed ? "[  FAILED  ] %u\n" : "[  PASSED  ] %u test(s).\n", failed ? counts.failed : counts.programs);
    return failed;
}
