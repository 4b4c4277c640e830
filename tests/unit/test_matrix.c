/* Every example over many sizes, element types, layouts and alignments, checked against the oracle on a device.
 *
 *   build/tests/test_matrix [--device=host|cuda] [--examples=a,b] [--types=f32,bf16] [--columns=33,129] [--rows=0,3]
 *                      [--ways=any,loop] [--max-rows=37] [--orders=1] [--compare-host]
 *
 * A way is how the columns are known: fixed (a number, rows in registers where they fit), any (an argument, rows of any
 * length) and loop (a number, rows of any length all the same); unless sizes are chosen the last two take fewer. One
 * test is one example in one way at one N and one element type; its programs (contiguous and padded rows) run at each M
 * with aligned and misaligned pointers, in place and not, in each order of the host device's lanes. The first run of a
 * program at an M is compared with the oracle, the others must give the same bits. Outputs are filled with NaN before,
 * and what lies between padded rows must stay as it was. --compare-host (cuda) checks the host device too and prints
 * how many elements of the two have equal bits. NORMGEN_TEST_REDUCED (set for the sanitizer builds): fewer sizes. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/launch.h"

static const char *const all_examples[] = {"rms_norm", "layer_norm",          "layer_norm_stats", "add_rms_norm",
                                           "softmax",  "add_layer_norm_gelu", "bias_gelu"};
static const char *const all_types[] = {"f32", "f16", "bf16"};
static const char *const all_columns[] = {"1",   "2",   "7",   "8",    "31",   "33",   "127",  "128",
                                          "129", "384", "760", "1017", "1024", "1025", "4096", "5000"};
static const char *const all_rows[] = {"0", "1", "3", "37", "1000"};
static const char *const all_ways[] = {"fixed", "any", "loop"};
static const char *const some_columns[] = {"1", "8", "33", "129", "1025", "5000"};
static const char *const some_rows[] = {"0", "3", "37"};

#define MAX_ITEMS 32
typedef struct Items {
    uint32_t count;
    const char *at[MAX_ITEMS];
} Items;

typedef struct Run {
    bool cuda, compare_host;
    bool chosen; /* which rows or columns, by an option */
    uint32_t orders;
    Items examples, types, columns, rows, ways;
    RtDevice *device[3]; /* one for each order; cuda: one */
    uint32_t devices;
    RtDevice *host; /* for compare_host */
    uint32_t passed, failed;
    uint64_t launches, elements;
    uint64_t compared, equal_bits, neighbours; /* elements of cuda and host: all, equal, at most one ulp apart */
    uint64_t seed;
} Run;

enum { MAX_TENSORS = 8, BORDER = 512 /* bytes on both sides of a tensor */ };

/* ---- random data ---- */

static uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* About normal: the sum of four uniform numbers, with a mean that rows of real data have. */
static double random_number(uint64_t *state) {
    uint64_t bits = next_random(state);
    double sum = 0;
    for (int i = 0; i < 4; i++, bits >>= 16) sum += (double)(bits & 0xffff) / 65536.0 - 0.5;
    return 1.7 * sum + 0.3;
}

/* ---- programs ---- */

typedef struct Program {
    Job *job;
    Unit unit;
    RtProgram *program;
    RtProgram *host; /* for compare_host */
    RtModule *module;
    bool padded;
    const char *text;
    size_t count;
    const char *way, *columns;
    Setting defines[2]; /* E, and N where it is a number */
    const char *failure;
} Program;

static const char *replace_all(Job *job, const char *text, const char *from, const char *to) {
    Text out = ir_text(job);
    for (const char *hit; (hit = strstr(text, from)); text = hit + strlen(from)) {
        ir_text_bytes(&out, text, (size_t)(hit - text));
        ir_text_put(&out, to);
    }
    ir_text_put(&out, text);
    return ir_text_string(&out);
}

/* The example with rows that lie `pad` elements apart from each other. */
static const char *pad_rows(Job *job, const char *text, int pad) {
    const char *strides = ir_format(job, "strides: [N + %d, 1]", pad);
    const char *store = ir_format(job, "{dtype: E, %s", strides);
    text = replace_all(job, text, "E[M, N]", ir_format(job, "{dtype: E, shape: [M, N], %s}", strides));
    text = replace_all(job, text, "{dtype: E, inplace", ir_format(job, "%s, inplace", store));
    text = replace_all(job, text, "y: E\n", ir_format(job, "y: %s}\n", store));
    text = replace_all(job, text, "y: E,", ir_format(job, "y: %s},", store));
    return replace_all(job, text, "y: E}", ir_format(job, "y: %s}}", store));
}

static bool is_any(const Program *program) { return !strcmp(program->way, "any"); }

/* The example with N an argument. */
static const char *free_columns(Job *job, const char *text) {
    const char *number = strstr(text, "N: ");
    if (!number) return text;
    number += strlen("N: ");
    return ir_format(job, "%.*sany%s", (int)(number - text), text, number + strspn(number, "0123456789"));
}

static void generate(Job *job, void *state) {
    Program *program = state;
    static const Setting loop = {"strategy", "row_loop"};
    GenOptions options = {.defines = program->defines, .define_count = 2, .target = gen_target(90), .verify = true};
    if (is_any(program)) options.define_count = 1;
    if (!strcmp(program->way, "loop")) options.sets = &loop, options.set_count = 1;
    gen_run(job, &program->unit, "example", program->text, program->count, &options, gen_pass_count - 1);
    program->program = rt_program_create(job, &program->unit);
    program->host = rt_program_create(job, &program->unit);
}

static void open_program(Program *program, const char *text, const char *type, const char *columns, bool padded,
                         const char *way) {
    program->job = ir_job_create(NULL);
    program->padded = padded;
    program->way = way;
    program->columns = columns;
    if (is_any(program)) text = free_columns(program->job, text);
    /* one translation unit holds many: kernels need names of their own */
    text = replace_all(program->job, text,
                       "graph: ", ir_format(program->job, "graph: n%s%s_", columns, padded ? "p" : ""));
    program->text = padded ? pad_rows(program->job, text, atoi(columns) % 2 ? 5 : 8) : text;
    program->count = strlen(program->text);
    program->defines[0] = (Setting){"E", type};
    program->defines[1] = (Setting){"N", columns};
    if (ir_job_run(program->job, generate, program) != STATUS_OK) program->failure = ir_job_report(program->job);
}

/* ---- memory of a run ---- */

typedef struct Memory {
    char *block[MAX_TENSORS]; /* BORDER bytes, then the tensor (possibly shifted), then BORDER bytes */
    size_t bytes[MAX_TENSORS];
    char *fresh[MAX_TENSORS]; /* inputs as they were filled */
    void *tensor[MAX_TENSORS];
    uint32_t count, inputs;
} Memory;

static void open_memory(Memory *memory, const RtProgram *program, const RtScratch *sizes, uint64_t seed) {
    *memory = (Memory){.count = program->tensor_count, .inputs = program->input_count};
    for (uint32_t t = 0; t < memory->count; t++) {
        memory->bytes[t] = (size_t)sizes->spans[t].high + 8; /* room for a shift by one element */
        if (posix_memalign((void **)&memory->block[t], 256, memory->bytes[t] + 2 * BORDER)) abort();
        if (t >= memory->inputs) continue;
        DType dtype = program->tensors[t].tensor->dtype;
        size_t element = (size_t)program->tensors[t].element_bytes;
        memory->fresh[t] = malloc(memory->bytes[t]);
        if (!memory->fresh[t]) abort();
        for (size_t at = 0; at + element <= memory->bytes[t]; at += element)
            ir_store_float(dtype, memory->fresh[t] + at, random_number(&seed));
    }
}

static void close_memory(Memory *memory) {
    for (uint32_t t = 0; t < memory->count; t++) {
        free(memory->block[t]);
        free(memory->fresh[t]);
    }
}

typedef struct Pointers { /* how a launch's differ from aligned ones apart from each other */
    uint32_t shift;       /* elements */
    uint32_t tensor;      /* that is shifted, or IR_NONE: all are */
    bool in_place;        /* outputs that may be are */
} Pointers;

/* Everything as before a launch: inputs filled, the rest NaN. */
static void fill_memory(Memory *memory, const RtProgram *program, Pointers pointers) {
    for (uint32_t t = 0; t < memory->count; t++) {
        size_t shift = pointers.shift * (size_t)program->tensors[t].element_bytes;
        if (pointers.tensor != IR_NONE && pointers.tensor != t) shift = 0;
        memset(memory->block[t], 0xff, memory->bytes[t] + 2 * BORDER);
        memory->tensor[t] = memory->block[t] + BORDER + shift;
        if (memory->fresh[t]) memcpy(memory->tensor[t], memory->fresh[t], memory->bytes[t] - shift);
        uint32_t input = program->tensors[t].inplace;
        if (pointers.in_place && input != IR_NONE) memory->tensor[t] = memory->tensor[input];
    }
}

/* What lies around and between the elements of an output must still be NaN (its input's, in place). */
static bool borders_hold(const Memory *memory, const RtProgram *program, const RtScratch *sizes, uint32_t t,
                         bool in_place) {
    uint32_t owner = in_place && program->tensors[t].inplace != IR_NONE ? program->tensors[t].inplace : t;
    const unsigned char *block = (const unsigned char *)memory->block[owner];
    for (size_t i = 0; i < BORDER; i++)
        if (block[i] != 0xff || block[memory->bytes[owner] + BORDER + i] != 0xff) return false;
    const RtSpan *span = &sizes->spans[t];
    if (owner != t || program->tensors[t].tensor->shape.rank != 2 || span->stride[0] <= span->extent[1]) return true;
    size_t element = (size_t)program->tensors[t].element_bytes;
    const unsigned char *tensor = memory->tensor[t];
    for (int64_t row = 0; row + 1 < span->extent[0]; row++) {
        const unsigned char *gap = tensor + (size_t)(row * span->stride[0] + span->extent[1]) * element;
        for (size_t i = 0; i < (size_t)(span->stride[0] - span->extent[1]) * element; i++)
            if (gap[i] != 0xff) return false;
    }
    return true;
}

/* ---- running ---- */

typedef struct Outcome {
    ng_output_report outputs[MAX_TENSORS];
} Outcome;

static bool launch(Program *program, RtProgram *on, Memory *memory, const RtScratch *sizes, const int64_t *dims,
                   Pointers pointers, bool verify, Outcome *outcome) {
    fill_memory(memory, on, pointers);
    ng_args args = {.size = sizeof args, .tensors = memory->tensor, .dims = dims};
    ng_report report = {.size = sizeof report, .outputs = outcome->outputs};
    Status status = rt_program_run(on, NULL, &args, verify, 0, &report);
    if (status != STATUS_OK)
        program->failure = ir_format(program->job, "%s", report.why.bytes ? report.why.bytes : "?");
    ng_text_free(&report.why);
    for (uint32_t t = memory->inputs; t < memory->count && status == STATUS_OK; t++) {
        if (borders_hold(memory, on, sizes, t, pointers.in_place)) continue;
        program->failure = "bytes outside an output were written";
        return false;
    }
    return status == STATUS_OK;
}

static bool same_bits(Program *program, const Memory *memory, const Outcome *a, const Outcome *b) {
    for (uint32_t t = 0; t < memory->count - memory->inputs; t++)
        if (a->outputs[t].hash != b->outputs[t].hash) {
            program->failure = ir_format(program->job, "output %u has other bits than the first run", t);
            return false;
        }
    return true;
}

/* Counts elements with equal bits and neighbours, over the outputs of two runs (gpu is a copy). */
static void compare_devices(Run *run, const Memory *memory, const RtProgram *program, const RtScratch *sizes,
                            char **gpu) {
    for (uint32_t t = memory->inputs; t < memory->count; t++) {
        const RtSpan *span = &sizes->spans[t];
        DType dtype = program->tensors[t].tensor->dtype;
        for (int64_t row = 0; row < span->extent[0]; row++)
            for (int64_t column = 0; column < (span->count ? span->count / span->extent[0] : 0); column++) {
                size_t at = (size_t)((row * span->stride[0] + column) * program->tensors[t].element_bytes);
                double a = ir_load_float(dtype, gpu[t] + at), b = ir_load_float(dtype, (char *)memory->tensor[t] + at);
                run->compared++;
                run->equal_bits += a == b;
                run->neighbours += a == b || (a > b ? a - b : b - a) <= ir_ulp(dtype, b);
            }
    }
}

static bool run_host_too(Run *run, Program *program, Memory *memory, const RtScratch *sizes, const int64_t *dims) {
    char *gpu[MAX_TENSORS] = {0};
    for (uint32_t t = memory->inputs; t < memory->count; t++) {
        gpu[t] = malloc(memory->bytes[t]);
        if (!gpu[t]) abort();
        memcpy(gpu[t], memory->tensor[t], memory->bytes[t]);
    }
    Outcome outcome = {0};
    bool ok = launch(program, program->host, memory, sizes, dims, (Pointers){0, IR_NONE, false}, true, &outcome);
    if (ok) compare_devices(run, memory, program->program, sizes, gpu);
    for (uint32_t t = 0; t < MAX_TENSORS; t++) free(gpu[t]);
    return ok;
}

static bool has_in_place(const RtProgram *program) {
    for (uint32_t t = 0; t < program->tensor_count; t++)
        if (program->tensors[t].inplace != IR_NONE) return true;
    return false;
}

static bool run_rows(Run *run, Program *program, const char *rows) {
    int64_t dims[2] = {atoll(rows), atoll(program->columns)}; /* the second where it is an argument */
    Mark mark = ir_mark(program->job);
    Text why = ir_text(program->job);
    int64_t *words = IR_NEW_ARRAY(program->job, int64_t, program->program->scratch_words);
    RtScratch sizes = {0};
    if (rt_program_sizes(program->program, dims, words, &sizes, &why) != STATUS_OK) {
        program->failure = ir_text_string(&why);
        return false;
    }
    Memory memory;
    open_memory(&memory, program->program, &sizes, run->seed ^ (uint64_t)dims[0]);
    Outcome first = {0}, outcome = {0};
    bool ok = true;
    for (uint32_t d = 0; d < run->devices && ok; d++) {
        if (rt_program_load(program->program, run->device[d], program->module, &why) != STATUS_OK) {
            program->failure = ir_text_string(&why);
            ok = false;
        }
        /* the second order moves one tensor after the other off its alignment, by half an access at least */
        const uint32_t alone = (uint32_t)(dims[0] + dims[1]) % memory.count;
        const Pointers pointers[] = {{0, IR_NONE, false},
                                     d == 1 ? (Pointers){2, alone, false} : (Pointers){1, IR_NONE, true},
                                     {0, IR_NONE, true}};
        for (uint32_t p = 0; p < (d != 1 && has_in_place(program->program) ? 3 : 2) && ok; p++) {
            bool is_first = d == 0 && p == 0;
            Outcome *to = is_first ? &first : &outcome;
            ok = launch(program, program->program, &memory, &sizes, dims, pointers[p], is_first, to);
            if (ok && !is_first) ok = same_bits(program, &memory, &first, to);
            run->launches++;
            for (uint32_t o = 0; o < memory.count - memory.inputs; o++) run->elements += to->outputs[o].elements;
            if (ok && is_first && run->host) ok = run_host_too(run, program, &memory, &sizes, dims);
        }
    }
    close_memory(&memory);
    if (ok) ir_reset(program->job, mark);
    return ok;
}

static bool run_program(Run *run, Program *program) {
    for (uint32_t r = 0; r < run->rows.count; r++) {
        if (!program->failure && run_rows(run, program, run->rows.at[r])) continue;
        printf("FAILED %s rows, N=%s (%s) E=%s M=%s: %s\n", program->padded ? "padded" : "plain", program->columns,
               program->way, program->defines[0].value, run->rows.at[r], program->failure);
        return false;
    }
    return true;
}

/* Builds the modules of all programs in one call, and the host's where they are compared. */
static bool build_programs(Run *run, Program *programs, uint32_t count) {
    const Source *sources[2 * MAX_ITEMS];
    RtModule *modules[2 * MAX_ITEMS];
    Program *from[2 * MAX_ITEMS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!programs[i].failure) from[n] = &programs[i], sources[n++] = &programs[i].unit.source;
    Job *job = ir_job_create(NULL);
    Text why = ir_text(job);
    bool ok = run->device[0]->ops->build(run->device[0], sources, n, modules, &why) == STATUS_OK;
    for (uint32_t i = 0; i < n && ok; i++) from[i]->module = modules[i];
    if (ok && run->host) {
        ok = run->host->ops->build(run->host, sources, n, modules, &why) == STATUS_OK;
        for (uint32_t i = 0; i < n && ok; i++)
            ok = rt_program_load(from[i]->host, run->host, modules[i], &why) == STATUS_OK;
    }
    if (!ok) printf("FAILED to build: %s\n", ir_text_string(&why));
    ir_job_free(job);
    return ok;
}

static void run_example(Run *run, const char *example, const char *type, const char *way) {
    Program programs[2 * MAX_ITEMS] = {0};
    Job *job = ir_job_create(NULL);
    FILE *file = fopen(ir_format(job, "examples/%s.yaml", example), "rb");
    if (!file) {
        printf("FAILED to open examples/%s.yaml\n", example);
        run->failed++;
        ir_job_free(job);
        return;
    }
    char *text = ir_alloc(job, 1 << 16);
    (void)!fread(text, 1, (1 << 16) - 1, file);
    fclose(file);
    const uint32_t each = strcmp(way, "any") ? 2 : 1; /* strides known at launch only are not generated yet */
    const uint32_t count = each * run->columns.count;
    for (uint32_t i = 0; i < count; i++)
        open_program(&programs[i], text, type, run->columns.at[i / each], i % each, way);
    bool built = build_programs(run, programs, count);
    for (uint32_t c = 0; c < run->columns.count; c++) {
        bool ok = built;
        for (uint32_t i = 0; i < each && ok; i++) ok = run_program(run, &programs[each * c + i]);
        if (!ok) printf("FAILED %s N=%s (%s) E=%s\n", example, run->columns.at[c], way, type);
        *(ok ? &run->passed : &run->failed) += 1;
    }
    for (uint32_t i = 0; i < count; i++) {
        run->device[0]->ops->module_free(run->device[0], programs[i].module);
        ir_job_free(programs[i].job);
    }
    ir_job_free(job);
}

/* ---- the command line ---- */

static Items split(char *list) {
    Items items = {0};
    for (char *word = strtok(list, ","); word && items.count < MAX_ITEMS; word = strtok(NULL, ","))
        items.at[items.count++] = word;
    return items;
}

static Items all_of(const char *const *words, size_t count) {
    Items items = {.count = (uint32_t)count};
    memcpy(items.at, words, count * sizeof *words);
    return items;
}

static bool among(const char *word, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!strcmp(words[i], word)) return true;
    return false;
}

/* Those of the items that stand among the words. */
static Items only(Items items, const char *const *words, size_t count) {
    Items some = {0};
    for (uint32_t i = 0; i < items.count; i++)
        if (among(items.at[i], words, count)) some.at[some.count++] = items.at[i];
    return some;
}

static bool read_option(Run *run, char *option, long *max_rows) {
    char *value = strchr(option, '=');
    if (!strcmp(option, "--compare-host")) return run->compare_host = true;
    if (!value) return false;
    *value++ = 0;
    if (!strcmp(option, "--device")) return run->cuda = !strcmp(value, "cuda"), true;
    if (!strcmp(option, "--orders")) return run->orders = (uint32_t)atoi(value), run->orders >= 1 && run->orders <= 3;
    if (!strcmp(option, "--max-rows")) return *max_rows = atol(value), true;
    if (!strcmp(option, "--examples")) return run->examples = split(value), true;
    if (!strcmp(option, "--types")) return run->types = split(value), true;
    if (!strcmp(option, "--columns")) return run->columns = split(value), run->chosen = true;
    if (!strcmp(option, "--rows")) return run->rows = split(value), run->chosen = true;
    if (!strcmp(option, "--ways")) return run->ways = split(value), true;
    return false;
}

static bool open_devices(Run *run) {
    Job *job = ir_job_create(NULL);
    Text why = ir_text(job);
    Status status = STATUS_OK;
    if (run->cuda) status = rt_cuda_open(0, &run->device[run->devices++], &why);
    if (run->compare_host && status == STATUS_OK) status = rt_host_open(90, NULL, &run->host, &why);
    for (uint32_t o = 0; !run->cuda && o < run->orders && status == STATUS_OK; o++) {
        RtHostOptions options = {.order = (RtOrder)o, .seed = run->seed};
        status = rt_host_open(90, &options, &run->device[run->devices++], &why);
    }
    if (status != STATUS_OK) printf("no device: %s\n", ir_text_string(&why));
    ir_job_free(job);
    return status == STATUS_OK;
}

#define WHOLE(array) all_of(array, sizeof(array) / sizeof *(array))
#define ONLY(items, array) only(items, array, sizeof(array) / sizeof *(array))

/* One column is no row for a loop to run along. */
static void drop_single(Items *columns) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < columns->count; i++)
        if (strcmp(columns->at[i], "1")) columns->at[kept++] = columns->at[i];
    columns->count = kept;
}

static void run_ways(const Run *given, Run *total) {
    for (uint32_t w = 0; w < given->ways.count; w++) {
        const char *way = given->ways.at[w];
        Run run = *total;
        if (!given->chosen && strcmp(way, "fixed")) {
            run.columns = ONLY(given->columns, some_columns);
            run.rows = ONLY(given->rows, some_rows);
        } else {
            run.columns = given->columns;
            run.rows = given->rows;
        }
        if (!strcmp(way, "loop")) drop_single(&run.columns);
        for (uint32_t e = 0; e < run.examples.count; e++) {
            if (!strcmp(way, "loop") && !strcmp(run.examples.at[e], "bias_gelu")) continue; /* it has no rows */
            for (uint32_t t = 0; t < run.types.count; t++) run_example(&run, run.examples.at[e], run.types.at[t], way);
        }
        *total = run;
    }
}

int main(int argc, char **argv) {
    Run run = {.orders = 3,
               .examples = WHOLE(all_examples),
               .types = WHOLE(all_types),
               .columns = WHOLE(all_columns),
               .rows = WHOLE(all_rows),
               .ways = WHOLE(all_ways)};
    long max_rows = 0;
    const char *reduced = getenv("NORMGEN_TEST_REDUCED");
    if (reduced && !strcmp(reduced, "address")) max_rows = 37;
    if (reduced && !strcmp(reduced, "thread")) {
        run.rows = (Items){1, {"3"}};
        run.columns = (Items){2, {"33", "129"}};
    }
    for (int i = 1; i < argc; i++)
        if (!read_option(&run, argv[i], &max_rows)) {
            fprintf(stderr, "test_matrix: no such option: %s\n", argv[i]);
            return 2;
        }
    uint32_t kept = 0;
    for (uint32_t r = 0; r < run.rows.count; r++)
        if (!max_rows || atol(run.rows.at[r]) <= max_rows) run.rows.at[kept++] = run.rows.at[r];
    run.rows.count = kept;
    const char *seed = getenv("NORMGEN_SEED");
    run.seed = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL);
    printf("# NORMGEN_SEED=%llu\n", (unsigned long long)run.seed);
    if (!open_devices(&run)) return 3;
    Run given = run;
    run_ways(&given, &run);
    printf("# %llu launches, %.3g million elements, on %s\n", (unsigned long long)run.launches,
           (double)run.elements * 1e-6, run.device[0]->ops->name);
    if (run.compared)
        printf("# cuda against host, both within their bounds: %llu elements, %.3f %% equal, %.4f %% at most one ulp "
               "apart\n",
               (unsigned long long)run.compared, 100.0 * (double)run.equal_bits / (double)run.compared,
               100.0 * (double)run.neighbours / (double)run.compared);
    for (uint32_t d = 0; d < run.devices; d++) run.device[d]->ops->close(run.device[d]);
    if (run.host) run.host->ops->close(run.host);
    printf("[  PASSED  ] %u test(s).\n", run.passed);
    if (run.failed) printf("[  FAILED  ] %u test(s)\n", run.failed);
    return run.failed != 0;
}
