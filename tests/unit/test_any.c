/* A dim known when the graph is compiled against the same dim given at launch, with and without hint, max and multiple,
 * and strides given at launch: the same bits where no reduction consumes the dim, within the oracle's bounds where one
 * does. Sums across rows choose the order of their parts by what they know of the columns too, so that they are held to
 * the bounds alone.
 *
 *   build/tests/test_any [--device=host|cuda] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/device_case.h"
#include "tests/support/random.h"

typedef struct Dims { /* how the dims are declared; M and N are their numbers */
    const char *m, *n;
    bool reduced; /* N is given at launch and reductions consume it: other bits are allowed */
} Dims;

static const Dims forms[] = {
    {"$M", "$N", false},
    {"any", "$N", false},
    {"{hint: 5}", "$N", false},
    {"{max: 64, multiple: 1}", "$N", false},
    {"$M", "any", true},
    {"any", "{hint: 100}", true},
    {"any", "{max: 1500}", true},
    {"{max: 40}", "{multiple: $N}", true},
    {"any", "{max: 2000, multiple: $N}", true},
};

typedef struct Example {
    const char *name, *body; /* inputs, nodes, outputs over the dims M and N */
    bool reduces;            /* something consumes N */
    bool across;             /* and does so across rows */
} Example;

static const Example examples[] = {
    {"layer_norm",
     "inputs: {x: 'bf16[M, N]', w: 'f32[N]', b: 'f32[N]'}\n"
     "nodes: {y: 'gelu(layer_norm(x, w, b))', m: 'mean(x, -1)'}\noutputs: {y: f16, m: f32}\n",
     true, false},
    {"pointwise",
     "inputs: {x: 'f16[M, N]', w: 'f64[N]', s: 'f32[M]'}\nnodes: {y: 'x * w + exp(s)[:, None]'}\noutputs: {y: f64}\n",
     false, false},
    {"softmax",
     "inputs: {x: 'f32[3, M, N]', keep: 'bool[M, N]'}\nnodes: {y: 'softmax(where(keep, x, -inf), -1)'}\n"
     "outputs: {y: f8e4m3}\n",
     true, false},
    {"integers", "inputs: {x: 'i8[M, N]'}\nnodes: {s: 'sum(x, -1)', y: 'x * s[:, None]'}\noutputs: {s: i32, y: i64}\n",
     true, false},
    {"indices",
     "inputs: {x: 'f32[M, N]'}\nnodes: {y: 'x * arange(N) + arange(M)[:, None] * N + M'}\noutputs: {y: f32}\n", false,
     false},
    {"middle", "inputs: {x: 'bf16[N, M, 5]'}\nnodes: {y: 'x * 2 + sum(x, dim=-1, keepdim=True)'}\noutputs: {y: bf16}\n",
     false, false},
    {"columns",
     "inputs: {x: 'f32[N, M]'}\nnodes: {y: 'sum(x, dim=0)', z: 'amax(x, dim=0)'}\noutputs: {y: f32, z: f32}\n", true,
     true},
    {"accumulate",
     "inputs: {x: 'f32[M, N]'}\nnodes: {y: 'x / 3', s: 'sum(x * x, -1)'}\n"
     "outputs: {y: {dtype: bf16, accumulate: true}, s: {dtype: f32, accumulate: true}}\n",
     true, false},
    {"strides",
     "inputs: {x: {dtype: bf16, shape: [M, N], strides: [LDX, 1]}}\nnodes: {y: 'x * rsqrt(mean(x * x, -1, True) + "
     "1)'}\n"
     "outputs: {y: {dtype: bf16, strides: [LDY, 1]}}\n",
     true, false},
    {"offset",
     "inputs: {x: 'bf16[M, LDX]'}\nnodes: {h: 'x[:, LDX - N:]', s: 'sum(h * h, -1)'}\n"
     "outputs: {s: f32, h: {dtype: bf16, strides: [LDY, 1]}}\n",
     true, false},
    {"gathered",
     "inputs: {x: {dtype: bf16, shape: [9, N], strides: [LDX, 1]}, i: 'i32[M]'}\n"
     "nodes: {s: 'sum(x[i + 3], -1)'}\noutputs: {s: f32}\n",
     true, false},
};
enum { FORMS = sizeof forms / sizeof *forms, EXAMPLES = sizeof examples / sizeof *examples, MAX_TENSORS = 6 };

static const int64_t all_m[] = {1, 3, 37}, all_n[] = {1, 8, 33, 384, 1025};
enum { MS = sizeof all_m / sizeof *all_m, NS = sizeof all_n / sizeof *all_n };

static const char *replace(Job *job, const char *text, const char *from, const char *to) {
    Text out = ir_text(job);
    for (const char *hit; (hit = strstr(text, from)); text = hit + strlen(from)) {
        ir_text_bytes(&out, text, (size_t)(hit - text));
        ir_text_put(&out, to);
    }
    ir_text_put(&out, text);
    return ir_text_string(&out);
}

/* Strides that stand for LDX and LDY: numbers in the first form, dims in the others; one of them no whole access. */
static const char *graph_text(Job *job, const Example *example, const Dims *form, int64_t m, int64_t n) {
    bool fixed = form == forms, padded = strstr(example->body, "LDX") != NULL;
    const char *dims =
        ir_format(job, "M: %s, N: %s%s", form->m, form->n, fixed || !padded ? "" : ", LDX: any, LDY: any");
    const char *body = example->body;
    if (fixed) body = replace(job, replace(job, body, "LDX", "(N + 7)"), "LDY", "(N + 8)");
    const char *text = ir_format(job, "graph: %s\ndims: {%s}\n%s", example->name, dims, body);
    text = replace(job, text, "$M", ir_format(job, "%lld", (long long)m));
    return replace(job, text, "$N", ir_format(job, "%lld", (long long)n));
}

/* ---- one program ---- */

typedef struct Memory {
    char *fresh[MAX_TENSORS]; /* tensors as they are before a launch */
    char *tensor[MAX_TENSORS];
    size_t bytes[MAX_TENSORS];
    char *first[MAX_TENSORS]; /* what the first form left */
} Memory;

static void fill_tensor(Random *random, DType dtype, char *memory, size_t bytes) {
    const size_t each = ir_dtype(dtype)->bytes;
    for (size_t at = 0; at + each <= bytes; at += each) {
        if (ir_dtype(dtype)->kind == KIND_FLOAT)
            ir_store_float(dtype, memory + at, random_normal(random));
        else
            ir_store_int(dtype, memory + at, (int64_t)random_below(random, 7) - (dtype == DTYPE_BOOL ? 4 : 3));
    }
}

static bool run_form(DeviceCase *own, Memory *memory, int64_t m, int64_t n, const char **why) {
    const RtProgram *program = own->program;
    int64_t dims[4] = {0};
    for (uint32_t a = 0; a < program->any_count; a++) {
        const char *name = program->graph->dims.at[program->any[a]].name;
        dims[a] = !strcmp(name, "M") ? m : !strcmp(name, "N") ? n : !strcmp(name, "LDX") ? n + 7 : n + 8;
    }
    for (uint32_t t = 0; t < program->tensor_count; t++) memcpy(memory->tensor[t], memory->fresh[t], memory->bytes[t]);
    ng_args args = {.size = sizeof args, .tensors = (void *const *)memory->tensor, .dims = dims};
    ng_report report = {.size = sizeof report};
    Status status = rt_program_run(own->program, NULL, &args, true, 0, &report);
    if (status) *why = ir_format(own->job, "%s", report.why.bytes ? report.why.bytes : "?");
    ng_text_free(&report.why);
    return !status;
}

typedef struct Totals {
    uint32_t passed, failed, programs, same_reduced, reduced;
} Totals;

/* Sizes of the tensors by the first form, whose dims are all known. */
static void open_memory(Memory *memory, DeviceCase *own, Random *random) {
    int64_t *words = IR_NEW_ARRAY(own->job, int64_t, own->program->scratch_words + 1);
    RtScratch sizes;
    *memory = (Memory){{0}, {0}, {0}, {0}};
    if (rt_program_sizes(own->program, NULL, words, &sizes, NULL)) abort();
    for (uint32_t t = 0; t < own->program->tensor_count; t++) {
        memory->bytes[t] = (size_t)sizes.spans[t].high;
        memory->fresh[t] = IR_NEW_ARRAY(own->job, char, memory->bytes[t] + 1);
        memory->tensor[t] = IR_NEW_ARRAY(own->job, char, memory->bytes[t] + 1);
        memory->first[t] = IR_NEW_ARRAY(own->job, char, memory->bytes[t] + 1);
        fill_tensor(random, own->program->tensors[t].tensor->dtype, memory->fresh[t], memory->bytes[t]);
    }
}

static bool run_size(const Example *example, DeviceCase **cases, int64_t m, int64_t n, Random *random, Totals *totals) {
    Memory memory;
    for (uint32_t f = 0; f < FORMS; f++)
        if (cases[f]->status) {
            printf("failed: %s\n%s", ir_job_report(cases[f]->job), cases[f]->text);
            return false;
        }
    open_memory(&memory, cases[0], random);
    for (uint32_t f = 0; f < FORMS; f++) {
        const char *why = NULL;
        bool passed = run_form(cases[f], &memory, m, n, &why), same = true;
        for (uint32_t t = cases[f]->program->input_count; t < cases[f]->program->tensor_count && passed; t++) {
            if (f == 0) memcpy(memory.first[t], memory.tensor[t], memory.bytes[t]);
            same = same && memcmp(memory.first[t], memory.tensor[t], memory.bytes[t]) == 0;
        }
        bool reduced = (forms[f].reduced && example->reduces) || example->across;
        if (passed && !same && !reduced) why = "other bits than with all dims known";
        if (why) {
            printf("failed: %s with M=%lld, N=%lld: %s\n%s", example->name, (long long)m, (long long)n, why,
                   cases[f]->text);
            return false;
        }
        totals->programs++;
        totals->reduced += reduced;
        totals->same_reduced += reduced && same;
    }
    return true;
}

static void run_example(const Example *example, const Devices *devices, Random *random, Totals *totals) {
    DeviceCase *cases[MS * NS * FORMS];
    Job *job = ir_job_create(NULL);
    uint32_t count = 0;
    for (uint32_t i = 0; i < MS * NS; i++)
        for (uint32_t f = 0; f < FORMS; f++)
            cases[count++] =
                device_case_create(graph_text(job, example, &forms[f], all_m[i / NS], all_n[i % NS]), NULL);
    bool built = device_cases_build(cases, count, devices);
    for (uint32_t i = 0; i < MS * NS; i++) {
        bool passed = built && run_size(example, &cases[i * FORMS], all_m[i / NS], all_n[i % NS], random, totals);
        *(passed ? &totals->passed : &totals->failed) += 1;
    }
    for (uint32_t i = 0; i < count; i++) device_case_free(cases[i], devices);
    ir_job_free(job);
}

int main(int argc, char **argv) {
    Devices devices;
    Totals totals = {0};
    if (!devices_open(&devices, argc, argv)) return 3;
    Random random = {random_seed()};
    for (uint32_t e = 0; e < EXAMPLES; e++) run_example(&examples[e], &devices, &random, &totals);
    printf("# %u programs; of %u that reduce over a dim given at launch %u have the bits of the known one, on %s\n",
           totals.programs, totals.reduced, totals.same_reduced, devices.at[0]->ops->name);
    devices_close(&devices);
    printf("[  PASSED  ] %u test(s).\n", totals.passed);
    if (totals.failed) printf("[  FAILED  ] %u test(s)\n", totals.failed);
    return totals.failed != 0;
}
