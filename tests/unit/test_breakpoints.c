/* Both sides of every number at which a default changes (gen/breakpoints.def): the plan really changes there, and what
 * either plan computes agrees with the oracle, on the host device or a GPU.
 *
 *   build/tests/test_breakpoints [--device=host|cuda]
 *
 * NORMGEN_SEED repeats the data. NORMGEN_TEST_REDUCED: plans alone for what is large. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/breakpoints.h"
#include "tests/support/device_case.h"

typedef enum Breakpoint {
#define BREAKPOINT(id, value, what) AT_##id,
#include "gen/breakpoints.def"
#undef BREAKPOINT
    BREAKPOINT_COUNT
} Breakpoint;

static const struct {
    const char *name;
    int64_t value;
} breakpoints[] = {
#define BREAKPOINT(id, value, what) {#id, value},
#include "gen/breakpoints.def"
#undef BREAKPOINT
};

typedef enum Trait { /* what must differ between the two sides */
                     KERNELS,
                     STRATEGY, /* of the first kernel */
                     ELEMENTS, /* a thread */
                     ROWS,     /* a CTA */
                     CHUNKS,
                     MIN_CTAS,
                     STAGES,
                     UNROLL, /* the least of the phases */
                     WIDE    /* offsets of 64 bits */
} Trait;

static const char *const traits[] = {
    "kernels", "strategy", "elements a thread", "rows a CTA", "chunks", "min_ctas", "stages", "unroll", "64 bits"};

typedef struct Side {
    const char *m, *n; /* what the dims are */
    uint32_t count;    /* $I: so many inputs, $S: their sum, $Y and $O: so many sums over M, $T: so many terms */
} Side;

typedef struct Case {
    Breakpoint at;
    Trait trait;
    Side near, beyond; /* count 0 in both: the terms at which it changes are looked for */
    const char *body;  /* from nodes on; ' stands for " */
    bool large;        /* run with few rows, not at all in reduced runs */
} Case;

#define RMS_NORM "nodes: {y: 'rms_norm($S, eps=1e-5)'}\noutputs: {y: f32}"
#define COLUMN_SUM "nodes: {y: 'sum($S, dim=0)'}\noutputs: {y: f32}"
#define ROW_SUM "nodes: {y: 'sum($S, dim=1)'}\noutputs: {y: f32}"
#define BOTH_SUMS "nodes: {r: 'sum($S, dim=1)', c: 'sum($S, dim=0)'}\noutputs: {r: f32, c: f32}"
#define POINTWISE "nodes: {y: '$S'}\noutputs: {y: f32}"

static const Case cases[] = {
    {AT_ROWS_OF_ONE_PART, KERNELS, {"64", "130", 1}, {"65", "130", 1}, COLUMN_SUM, false},
    {AT_COLUMNS_OF_ONE_PART, KERNELS, {"{hint: 100}", "33792", 1}, {"{hint: 100}", "33796", 1}, COLUMN_SUM, true},
    {AT_SPLIT_ROWS, STRATEGY, {"33", "131072", 1}, {"34", "131072", 1}, ROW_SUM, true},
    {AT_SPLIT_COLUMNS, STRATEGY, {"2", "131072", 1}, {"2", "131071", 1}, ROW_SUM, true},
    {AT_SHORT_ROW, ROWS, {"any", "512", 1}, {"any", "516", 1}, RMS_NORM, false},
    {AT_LONG_ROW, ELEMENTS, {"any", "4096", 1}, {"any", "4100", 1}, RMS_NORM, false},
    {AT_LONG_ROW_OF_SUMS,
     ELEMENTS,
     {"any", "1024", 1},
     {"any", "1028", 1},
     "nodes: {y: 'layer_norm($S)'}\noutputs: {y: f32}",
     false},
    {AT_LONG_ROW_OF_COSTLY,
     ELEMENTS,
     {"any", "8192", 1},
     {"any", "8196", 1},
     "nodes: {y: 'softmax($S, dim=1)'}\noutputs: {y: f32}",
     false},
    {AT_KEPT_BYTES, STRATEGY, {"any", "1000", 6}, {"any", "1000", 7}, RMS_NORM, false},
    {AT_KEPT_BYTES_LARGE, STRATEGY, {"any", "8192", 4}, {"any", "8192", 5}, RMS_NORM, false},
    {AT_ROW_THREADS, STRATEGY, {"any", "32768", 1}, {"any", "32776", 1}, RMS_NORM, true},
    {AT_HELD_LITTLE, MIN_CTAS, {"any", "100", 6}, {"any", "100", 7}, POINTWISE, false},
    {AT_HELD_MUCH, MIN_CTAS, {"any", "100", 13}, {"any", "100", 14}, POINTWISE, false},
    {AT_COSTLY,
     MIN_CTAS,
     {"any", "100", 3},
     {"any", "100", 4},
     "nodes: {e: '$E', y: 'sum(e, dim=0)', z: 'amax(e, dim=0)'}\noutputs: {y: f32, z: f32}",
     false},
    {AT_TRIP_BYTES, CHUNKS, {"any", "100", 3}, {"any", "100", 4}, COLUMN_SUM, false},
    {AT_SHARED, ROWS, {"any", "100", 12}, {"any", "100", 13}, "nodes: {$Y}\noutputs: {$O}", false},
    {AT_TRIP_COST,
     UNROLL,
     {"any", "4096", 2},
     {"any", "4096", 3},
     "nodes: {e: '$E', y: 'e - mean(e, -1, True)'}\noutputs: {y: f32}",
     false},
    {AT_CROWDED_THREADS, UNROLL, {"any", "28672", 1}, {"any", "28676", 1}, RMS_NORM, true},
    {AT_CROWDED_ELEMENTS, UNROLL, {"any", "16384", 2}, {"any", "28676", 1}, RMS_NORM, true},
    {AT_OFFSETS, WIDE, {"any", "1073741816", 1}, {"any", "1073741824", 1}, ROW_SUM, true},
    {AT_FUSE_STATEMENTS,
     KERNELS,
     {"any", "33", 0},
     {"any", "33", 0},
     "nodes: {h: '$T', y: 'h - mean(h, -1, True)'}\noutputs: {y: f32}",
     false},
    {AT_FUSE_READS, KERNELS, {"any", "1000", 10}, {"any", "1000", 11}, RMS_NORM, false},
    {AT_STREAM_ROW, ELEMENTS, {"any", "2048", 1}, {"any", "2052", 1}, BOTH_SUMS, false},
    {AT_STREAM_LONG_ROW, ELEMENTS, {"any", "8192", 1}, {"any", "8196", 1}, BOTH_SUMS, false},
    {AT_STREAM_BYTES, STAGES, {"any", "4096", 1}, {"any", "4096", 2}, BOTH_SUMS, false},
    {AT_STREAM_OTHER, STAGES, {"any", "16384", 2}, {"any", "16384", 3}, BOTH_SUMS, false},
    {AT_MIXED_ELEMENTS, KERNELS, {"{hint: 4096}", "1280", 1}, {"{hint: 4096}", "1276", 1}, BOTH_SUMS, false},
    {AT_MIXED_ROWS, KERNELS, {"{hint: 4096}", "2048", 1}, {"{hint: 4095}", "2048", 1}, BOTH_SUMS, false},
    {AT_MIXED_KEPT,
     STRATEGY,
     {"{hint: 8000}", "6144", 1},
     {"{hint: 8000}", "5376", 1},
     "nodes: {q: 'reshape(x0, [M, N/768, 768])', r: 'sum(q, -1)', c: 'sum(q, 1)'}\noutputs: {r: f32, c: f32}",
     false},
    {AT_MIXED_COLUMNS, KERNELS, {"any", "16384", 1}, {"any", "16388", 1}, BOTH_SUMS, false},
    {AT_MIXED_READS, KERNELS, {"any", "1000", 10}, {"any", "1000", 11}, BOTH_SUMS, false},
    {AT_MIXED_BYTES,
     KERNELS,
     {"any", "16384", 2},
     {"any", "16384", 3},
     "nodes: {r: 'sum(x0, dim=1)', $Y}\noutputs: {r: f32, $O}",
     false},
    {AT_CUT_STATEMENTS, KERNELS, {"any", "33", 0}, {"any", "33", 0}, "nodes: {y: '$T'}\noutputs: {y: f32}", false},
};
enum { CASES = sizeof cases / sizeof *cases, FAR = 1 << 24 /* elements that no host holds in time */ };

/* ---- texts ---- */

static void put_list(Text *out, char kind, uint32_t count) {
    for (uint32_t k = 0; k < count; k++) {
        const char *comma = k ? ", " : "";
        switch (kind) {
        case 'I': ir_text_format(out, "%sx%u: 'E[M, N]'", comma, k); break;
        case 'S': ir_text_format(out, "%sx%u", k ? " + " : "", k); break;
        case 'E': ir_text_format(out, "%sexp(x0 * 0.%u)", k ? " + " : "", k + 1); break;
        case 'T': ir_text_format(out, "%sx0 * %u.5", k ? " + " : "", k + 1); break;
        case 'Y': ir_text_format(out, "%sy%u: 'sum(x0 * %u.5, dim=0)'", comma, k, k + 1); break;
        default: ir_text_format(out, "%sy%u: f32", comma, k);
        }
    }
}

static const char *case_text(Job *job, const Case *test, const Side *side, uint32_t count, bool beyond) {
    bool many = strstr(test->body, "$S") != NULL;
    Text out = ir_text(job);
    ir_text_format(&out, "graph: at_%s_%s\ntypes: {E: %s}\ndims: {M: %s, N: %s}\ninputs: {", breakpoints[test->at].name,
                   beyond ? "beyond" : "near",
                   test->at == AT_ROW_THREADS || test->at == AT_STREAM_OTHER ? "bf16" : "f32", side->m, side->n);
    put_list(&out, 'I', many ? count : 1);
    ir_text_put(&out, "}\n");
    for (const char *at = test->body; *at; at++) {
        if (*at == '$')
            put_list(&out, *++at, count);
        else
            ir_text_bytes(&out, at, 1);
    }
    char *text = ir_format(job, "%s\n", ir_text_string(&out));
    for (char *c = text; *c; c++)
        if (*c == '\'') *c = '"';
    return text;
}

/* ---- plans ---- */

static int64_t trait_of(const DeviceCase *own, Trait trait) {
    const Plan *plan = own->unit.plan;
    const Step *step = plan->steps.at;
    int64_t least = INT64_MAX;
    switch (trait) {
    case KERNELS: return plan->steps.count;
    case STRATEGY: return step->strategy;
    case ELEMENTS: return step->tile.chunks * step->tile.vector;
    case ROWS: return step->tile.rows;
    case CHUNKS: return step->tile.chunks;
    case MIN_CTAS: return step->tile.min_ctas;
    case STAGES: return step->tile.stages;
    case WIDE: return step->column64;
    case UNROLL: break;
    }
    for (uint32_t q = 0; q < step->phase_count; q++)
        if (step->phases[q].stmts.count && step->phases[q].unroll < least) least = step->phases[q].unroll;
    return least;
}

static uint32_t most_statements(const DeviceCase *own) {
    uint32_t most = 0;
    for (uint32_t n = 0; n < own->unit.prog->nests.count; n++)
        if (own->unit.prog->nests.at[n].stmts.count > most) most = own->unit.prog->nests.at[n].stmts.count;
    return most;
}

/* The terms of the last graph that has as many kernels as one of one term. */
static uint32_t find_count(Job *job, const Case *test, const Devices *devices) {
    enum { MOST = 200 };
    int64_t first = -1;
    uint32_t low = 1, high = MOST;
    while (low + 1 < high) {
        uint32_t middle = first < 0 ? 1 : (low + high) / 2;
        DeviceCase *own = device_case_create(case_text(job, test, &test->near, middle, false), NULL);
        int64_t kernels = own->status ? -1 : trait_of(own, KERNELS);
        device_case_free(own, devices);
        if (first < 0)
            first = kernels;
        else if (kernels == first)
            low = middle;
        else
            high = middle;
    }
    return low;
}

typedef struct Pair {
    DeviceCase *near, *beyond;
} Pair;

static bool open_pair(Job *job, const Case *test, const Devices *devices, Pair *pair) {
    uint32_t count = test->near.count ? test->near.count : find_count(job, test, devices);
    uint32_t next = test->beyond.count ? test->beyond.count : count + 1;
    pair->near = device_case_create(case_text(job, test, &test->near, count, false), NULL);
    pair->beyond = device_case_create(case_text(job, test, &test->beyond, next, true), NULL);
    const char *name = breakpoints[test->at].name;
    if (pair->near->status || pair->beyond->status) {
        const DeviceCase *bad = pair->near->status ? pair->near : pair->beyond;
        printf("FAILED %s: %s\n", name, ir_job_report(bad->job));
        return false;
    }
    int64_t a = trait_of(pair->near, test->trait), b = trait_of(pair->beyond, test->trait);
    if (a == b) {
        printf("FAILED %s: on both sides of %lld: %lld %s\n", name, (long long)breakpoints[test->at].value,
               (long long)a, traits[test->trait]);
        return false;
    }
    int64_t most = most_statements(pair->near), limit = breakpoints[test->at].value;
    if (!test->near.count && (most > limit || most + 8 < limit)) {
        printf("FAILED %s: the last graph of one kernel has %lld statements, %lld may have\n", name, (long long)most,
               (long long)limit);
        return false;
    }
    return true;
}

/* ---- running ---- */

typedef struct Counts {
    uint32_t failed, launches, unrun;
    uint64_t elements;
} Counts;

static void run_side(const Case *test, DeviceCase *own, const Devices *devices, Random *random, Counts *counts) {
    static const int64_t rows[] = {3, 1, 0, 37, 100};
    const uint32_t tries = own->program->any_count == 0 ? 1 : test->large ? 1 : 5;
    for (uint32_t r = 0; r < tries; r++) {
        Job *job = ir_job_create(NULL);
        const int64_t any[] = {rows[r]};
        LaunchTrial trial = {.random = random};
        counts->failed += !device_case_try(job, own, devices, any, &trial);
        counts->launches += trial.launches;
        counts->elements += trial.elements;
        ir_job_free(job);
    }
}

static bool is_run(const Case *test, bool reduced) {
    return !(test->large && reduced) && test->at != AT_OFFSETS; /* tests/unit/test_far.c */
}

static void count_tests(Counts *counts) {
    bool met[BREAKPOINT_COUNT] = {false};
    for (uint32_t c = 0; c < CASES; c++) met[cases[c].at] = true;
    for (uint32_t b = 0; b < BREAKPOINT_COUNT; b++) {
        if (met[b]) continue;
        printf("FAILED: nothing runs at both sides of %s\n", breakpoints[b].name);
        counts->failed++;
    }
}

int main(int argc, char **argv) {
    Devices devices;
    if (!devices_open(&devices, argc, argv)) return 3;
    Random random = {random_seed()};
    bool reduced = getenv("NORMGEN_TEST_REDUCED") != NULL;
    Job *job = ir_job_create(NULL);
    Counts counts = {0};
    Pair pairs[CASES];
    IR_LIST(DeviceCase *) built = {0};
    IR_LIST(uint32_t) of = {0};
    count_tests(&counts);
    for (uint32_t c = 0; c < CASES; c++) {
        counts.failed += !open_pair(job, &cases[c], &devices, &pairs[c]);
        if (!is_run(&cases[c], reduced)) continue;
        for (uint32_t side = 0; side < 2; side++) {
            *IR_PUSH(job, &built) = side ? pairs[c].beyond : pairs[c].near;
            *IR_PUSH(job, &of) = c;
        }
    }
    bool sound = device_cases_build(built.at, built.count, &devices);
    for (uint32_t i = 0; i < built.count && sound; i++)
        if (!built.at[i]->status) run_side(&cases[of.at[i]], built.at[i], &devices, &random, &counts);
    printf("# %u breakpoints, %u programs run on both sides: %u launches, %llu elements compared, on %s\n",
           BREAKPOINT_COUNT, built.count, counts.launches, (unsigned long long)counts.elements,
           devices.at[0]->ops->name);
    for (uint32_t c = 0; c < CASES; c++) {
        device_case_free(pairs[c].near, &devices);
        device_case_free(pairs[c].beyond, &devices);
    }
    devices_close(&devices);
    ir_job_free(job);
    bool failed = !sound || counts.failed;
    printf(failed ? "[  FAILED  ] %u\n" : "[  PASSED  ] %u test(s).\n", failed ? counts.failed : CASES);
    return failed;
}
