/* Every example, and graphs of every strategy, through NVRTC and nvcc: no word from the compiler for sm_80, sm_90 and
 * sm_100, no spill and no stack frame on sm_90 from 128 to 16384 columns, as many CTAs an SM as the plan asks for, and
 * the time that it takes, which is printed and never judged. Skipped where there is no NVRTC, or no nvcc. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/device.h"
#include "runtime/process.h"
#include "tests/support/generate.h"
#include "tests/support/nvrtc.h"
#include "tests/support/prog_case.h"
#include "tests/support/strategy_graphs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const examples[] = {"rms_norm", "layer_norm",          "layer_norm_stats", "add_rms_norm",
                                       "softmax",  "add_layer_norm_gelu", "bias_gelu"};
#define EXAMPLE_COUNT (sizeof examples / sizeof *examples)

typedef struct Case {
    const char *example, *defines, *sets;
    int arch;
    Unit unit;
} Case;

typedef struct Part { /* one kernel of a case */
    const Case *of;
    uint32_t kernel;
    const Step *step;
    const char *name;
    Job *job; /* of what the compiler said */
    Text why;
    Status status;
    bool found;
    RtFacts facts;
    double ms; /* processor time */
} Part;

typedef IR_LIST(Case *) CaseList;
typedef IR_LIST(Part) PartList;

static bool is_reduced(void) { return getenv("NORMGEN_TEST_REDUCED") != NULL; }

static const char *case_text(Job *job, const Case *c) {
    return ir_format(job, "%s %s%s%s sm_%d", c->example, c->defines ? c->defines : "", c->sets ? " " : "",
                     c->sets ? c->sets : "", c->arch);
}

static void add_case(Job *job, CaseList *cases, const char *example, const char *defines, const char *sets, int arch) {
    Case *c = IR_NEW(job, Case);
    *c = (Case){.example = example, .defines = defines, .sets = sets, .arch = arch};
    const char *path = ir_format(job, "examples/%s.yaml", example);
    if (generate_file_for(job, &c->unit, path, defines, sets, gen_target(arch)) != STATUS_OK)
        fail_msg("%s: %s", case_text(job, c), ir_job_report(job));
    *IR_PUSH(job, cases) = c;
}

/* The example with rows of any length: its N is one more dim of a launch. */
static void add_any(Job *job, CaseList *cases, const char *example, const char *defines) {
    size_t count;
    const char *text = case_file(job, ir_format(job, "examples/%s.yaml", example), &count), *at = strstr(text, "N: ");
    assert_non_null(at);
    at += strlen("N: ");
    const char *any = ir_format(job, "%.*sany%s", (int)(at - text), text, at + strspn(at, "0123456789"));
    Case *c = IR_NEW(job, Case);
    *c = (Case){.example = example, .defines = defines, .sets = "N=any", .arch = 90};
    if (generate_text(job, &c->unit, any, defines, NULL) != STATUS_OK) fail_msg("%s", ir_job_report(job));
    *IR_PUSH(job, cases) = c;
}

static double thread_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static void part_work(Job *job, void *state) {
    Part *part = state;
    char *bytes = NULL;
    size_t count;
    part->why = ir_text(job);
    const double start = thread_ms();
    part->status = rt_nvrtc_compile_kernel(&part->of->unit.source, part->kernel, part->of->arch, RT_CUBIN, &bytes,
                                           &count, &part->why);
    part->ms = thread_ms() - start;
    part->found = bytes && rt_cubin_facts(bytes, count, part->name, &part->facts);
    free(bytes);
}

static void compile_part(void *state, uint32_t index) {
    Part *part = ((Part *)state) + index;
    part->job = ir_job_create(NULL);
    part->status = part->job ? STATUS_OK : STATUS_SYSTEM;
    if (part->job) (void)ir_job_run(part->job, part_work, part);
}

/* All kernels of all cases, as many at a time as there are cores. The first call of the process, which loads NVRTC, is
 * not among them. */
static PartList compile_all(Job *job, const CaseList *cases) {
    PartList parts = {0};
    for (uint32_t i = 0; i < cases->count; i++) {
        const Plan *plan = cases->at[i]->unit.plan;
        uint32_t kernel = 0;
        for (uint32_t s = 0; s < plan->steps.count; s++)
            for (uint32_t v = 0; gen_has_code(plan, s) && v < plan->steps.at[s].variant_count; v++)
                *IR_PUSH(job, &parts) = (Part){.of = cases->at[i],
                                               .kernel = kernel++,
                                               .step = &plan->steps.at[s],
                                               .name = plan->steps.at[s].variants[v].kernel};
        assert_int_equal(kernel, cases->at[i]->unit.source.kernel_count);
    }
    Part first = parts.at[0];
    compile_part(&first, 0);
    ir_job_free(first.job);
    rt_parallel(parts.count, compile_part, parts.at);
    for (uint32_t i = 0; i < parts.count; i++) {
        const Part *part = &parts.at[i];
        if (part->status != STATUS_OK || part->why.count > 0 || !part->found)
            fail_msg("%s, %s: %s", case_text(job, part->of), part->name,
                     part->why.count ? part->why.bytes : "the kernel is not in its cubin");
    }
    return parts;
}

static void free_parts(PartList *parts) {
    for (uint32_t i = 0; i < parts->count; i++) ir_job_free(parts->at[i].job);
}

static bool has_frame(Job *job, const Part *part) {
    if (part->facts.local_bytes == 0) return false;
    printf("%s, %s: %d local bytes, %d registers\n", case_text(job, part->of), part->name, part->facts.local_bytes,
           part->facts.registers);
    return true;
}

/* ---- no warnings ---- */

static void test_architectures(void **state) {
    static const int archs[] = {80, 90, 100};
    NEEDS_NVRTC();
    Job *job = *state;
    CaseList cases = {0};
    for (size_t a = 0; a < sizeof archs / sizeof *archs; a++)
        for (size_t e = 0; e < EXAMPLE_COUNT; e++) {
            add_case(job, &cases, examples[e], "E=bf16 N=1000", NULL, archs[a]);
            if (is_reduced()) break;
            if (archs[a] != 90) add_case(job, &cases, examples[e], "E=f32 N=4096", NULL, archs[a]);
            if (strcmp(examples[e], "bias_gelu") != 0)
                add_case(job, &cases, examples[e], "E=f16 N=4095", "strategy=row_loop", archs[a]);
            if (strstr(examples[e], "layer_norm") || !strcmp(examples[e], "softmax")) { /* what pairs */
                add_case(job, &cases, examples[e], "E=bf16 N=20000", "strategy=row_loop", archs[a]);
                add_case(job, &cases, examples[e], "E=f32 N=1000", "pair=on", archs[a]);
            }
        }
    PartList parts = compile_all(job, &cases);
    int spilled = 0;
    for (uint32_t i = 0; i < parts.count; i++) spilled += has_frame(job, &parts.at[i]);
    assert_int_equal(spilled, 0);
    printf("# %u kernels for sm_80, sm_90 and sm_100 without a word from NVRTC\n", parts.count);
    free_parts(&parts);
}

/* A kernel compiled on its own is the one that the whole text holds, and is alone. */
static void test_alone(void **state) {
    NEEDS_NVRTC();
    Job *job = *state;
    CaseList cases = {0};
    add_case(job, &cases, "add_rms_norm", "N=768", NULL, 90);
    const Case *c = cases.at[0];
    Text why = ir_text(job);
    char *bytes;
    size_t count;
    assert_int_equal(rt_nvrtc_compile(&c->unit.source, 90, RT_CUBIN, &bytes, &count, &why), STATUS_OK);
    PartList parts = compile_all(job, &cases);
    assert_int_equal(parts.count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        RtFacts facts;
        assert_true(rt_cubin_facts(bytes, count, parts.at[i].name, &facts));
        assert_int_equal(facts.registers, parts.at[i].facts.registers);
        char *alone;
        size_t alone_count;
        assert_int_equal(rt_nvrtc_compile_kernel(&c->unit.source, i, 90, RT_CUBIN, &alone, &alone_count, &why),
                         STATUS_OK);
        assert_false(rt_cubin_facts(alone, alone_count, parts.at[1 - i].name, &facts));
        free(alone);
    }
    free(bytes);
    free_parts(&parts);
}

/* ---- registers ---- */

/* CTAs that fit one SM of sm_90: each of its four parts has 16384 registers, given out by 256 a warp. */
static int resident_ctas(const Part *part) {
    const int threads = part->step->tile.threads, warps = (threads + 31) / 32;
    const int of_warp = (part->facts.registers * 32 + 255) / 256 * 256;
    const int shared = (int)part->step->shared_bytes + part->facts.static_shared_bytes + 1024; /* kept by the system */
    int ctas = 4 * (16384 / of_warp) / warps;
    if (ctas > 2048 / (warps * 32)) ctas = 2048 / (warps * 32);
    if (ctas > 233472 / shared) ctas = 233472 / shared;
    return ctas > 32 ? 32 : ctas;
}

typedef struct Worst {
    const Part *slowest, *slowest_16384, *fewest;
} Worst;

static void look_at(Worst *worst, const Part *part) {
    const int resident = resident_ctas(part) * part->step->tile.threads;
    const Part **slot = strstr(part->of->defines, "N=16384") ? &worst->slowest_16384 : &worst->slowest;
    if (!*slot || part->ms > (*slot)->ms) *slot = part;
    if (!worst->fewest || resident < resident_ctas(worst->fewest) * worst->fewest->step->tile.threads)
        worst->fewest = part;
    if (getenv("TEST_VERBOSE"))
        printf("%-24s %-34s %4.0f ms %3d registers, %d CTAs an SM (at least %d), %d threads\n", part->of->defines,
               part->name, part->ms, part->facts.registers, resident_ctas(part), part->step->tile.min_ctas, resident);
}

static int order(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double middle_ms(Job *job, const PartList *parts) {
    double *ms = IR_NEW_ARRAY(job, double, parts->count);
    for (uint32_t i = 0; i < parts->count; i++) ms[i] = parts->at[i].ms;
    qsort(ms, parts->count, sizeof *ms, order);
    return ms[parts->count / 2];
}

static void test_registers(void **state) {
    static const char *const columns[] = {"128", "256", "384", "768", "1024", "1000", "2048", "4096", "8192", "16384"};
    static const char *const types[] = {"bf16", "f32", "f16"};
    NEEDS_NVRTC();
    Job *job = *state;
    CaseList cases = {0};
    for (size_t e = 0; e < EXAMPLE_COUNT; e++)
        for (size_t n = 0; n < sizeof columns / sizeof *columns; n++)
            for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
                if (t == 2 && n % 3) continue; /* f16 differs from bf16 in conversions alone */
                if (is_reduced() && (n + e + t) % 13) continue;
                add_case(job, &cases, examples[e], ir_format(job, "E=%s N=%s", types[t], columns[n]), NULL, 90);
            }
    for (size_t e = 0; e < EXAMPLE_COUNT && !is_reduced(); e++)
        for (size_t t = 0; t < 2; t++) add_any(job, &cases, examples[e], ir_format(job, "E=%s", types[t]));
    PartList parts = compile_all(job, &cases);
    Worst worst = {0};
    int spilled = 0;
    for (uint32_t i = 0; i < parts.count; i++) {
        const Part *part = &parts.at[i];
        look_at(&worst, part);
        spilled += has_frame(job, part);
        if (resident_ctas(part) >= part->step->tile.min_ctas) continue;
        fail_msg("%s, %s: %d registers, %d CTAs an SM, planned for %d", case_text(job, part->of), part->name,
                 part->facts.registers, resident_ctas(part), part->step->tile.min_ctas);
    }
    printf("# %u kernels for sm_90, at least %d threads an SM (%s, %s)\n", parts.count,
           resident_ctas(worst.fewest) * worst.fewest->step->tile.threads, worst.fewest->name,
           worst.fewest->of->defines);
    if (worst.slowest && worst.slowest_16384)
        printf("# NVRTC, processor time a kernel: %.0f ms in the middle, the slowest %.0f (%s, %s), of 16384 columns "
               "%.0f (%s, %s)\n",
               middle_ms(job, &parts), worst.slowest->ms, worst.slowest->name, worst.slowest->of->defines,
               worst.slowest_16384->ms, worst.slowest_16384->name, worst.slowest_16384->of->defines);
    assert_int_equal(spilled, 0);
    free_parts(&parts);
}

/* Rows with sums across them: no spill and no stack frame from 128 to 16384 columns. */
static void test_streams(void **state) {
    static const char *const graphs[] = {"layer_norm_bwd",      "softmax_bwd",         "add_rms_norm_bwd",
                                         "rms_norm_shared_bwd", "layer_norm_gelu_bwd", "ada_ln_bwd"};
    static const char *const columns[] = {"128", "256", "384", "768", "1024", "1000", "2048", "4096", "8192", "16384"};
    static const char *const types[] = {"bf16", "f32", "f16"};
    static const int archs[] = {90, 80, 100};
    NEEDS_NVRTC();
    Job *job = *state;
    CaseList cases = {0};
    for (size_t a = 0; a < 3; a++)
        for (size_t g = 0; g < sizeof graphs / sizeof *graphs; g++)
            for (size_t n = 0; n < sizeof columns / sizeof *columns; n++)
                for (size_t t = 0; t < 3; t++) {
                    if ((t == 2 || a) && (n + g + t + a) % 5) continue; /* f16 differs from bf16 in conversions alone */
                    if (is_reduced() && (n + g + t) % 13) continue;
                    add_case(job, &cases, graphs[g], ir_format(job, "E=%s N=%s", types[t], columns[n]), NULL, archs[a]);
                }
    PartList parts = compile_all(job, &cases);
    Worst worst = {0};
    int spilled = 0, streams = 0;
    for (uint32_t i = 0; i < parts.count; i++) {
        look_at(&worst, &parts.at[i]);
        spilled += has_frame(job, &parts.at[i]);
        streams += parts.at[i].step->strategy == STRATEGY_ROW_STREAM;
    }
    printf("# %u kernels, %d of them row_stream, the slowest %.0f ms (%s, %s)\n", parts.count, streams,
           worst.slowest->ms, worst.slowest->name, worst.slowest->of->defines);
    assert_int_equal(spilled, 0);
    assert_true(streams * 3 > (int)parts.count);
    free_parts(&parts);
}

/* ---- strategies and costly ops ---- */

static void add_text(Job *job, CaseList *cases, const char *name, const char *what, const char *text, const char *sets,
                     int arch) {
    Case *c = IR_NEW(job, Case);
    *c = (Case){.example = name, .defines = what, .sets = sets, .arch = arch};
    if (generate_text_for(job, &c->unit, text, sets, gen_target(arch)) != STATUS_OK)
        fail_msg("%s: %s", case_text(job, c), ir_job_report(job));
    *IR_PUSH(job, cases) = c;
}

static void add_strategy(Job *job, CaseList *cases, uint32_t graph, const char *type, const char *n, int arch) {
    const StrategyGraph *from = &strategy_graphs[graph];
    const char *text = strategy_graph_text(job, from, "", type, "any", n);
    add_text(job, cases, from->name, ir_format(job, "E=%s N=%s", type, n), text, from->sets, arch);
}

/* Ops whose text has many temporaries, in each kind of kernel. */
static const char *const costly[] = {
    "x ** h",           "exp(sin(h)) * cos(x)",          "log1p(abs(x)) + erf(h)",
    "x // 3 + h % 0.7", "tanh(x) * expm1(h) - x ** 1.5", "sigmoid(h) * log(abs(x) + 1) + exp2(x)"};
static const char *const costly_bodies[] = {"y: 'OP'", "g: 'OP', y: 'g * rsqrt(mean(g * g, -1, True) + 1e-5)'",
                                            "g: 'OP', y: 'g - mean(g, 0, True)'", "g: 'OP', y: 'layer_norm(x, w) * g'"};

static void add_costly(Job *job, CaseList *cases, const char *body, const char *op, const char *type, const char *n) {
    const char *at = strstr(body, "OP");
    char *text = ir_format(job,
                           "graph: costly\ntypes: {E: %s}\ndims: {M: any, N: %s}\ninputs: {x: 'E[M, N]', w: 'E[N]'}\n"
                           "nodes: {h: 'x * w', %.*s%s%s}\noutputs: {y: E}\n",
                           type, n, (int)(at - body), body, op, at + strlen("OP"));
    for (char *c = text; *c; c++)
        if (*c == '\'') *c = '"';
    add_text(job, cases, op, ir_format(job, "E=%s N=%s", type, n), text, NULL, 90);
}

static void test_strategies(void **state) {
    static const char *const types[] = {"bf16", "f64", "f32", "f16"};
    static const char *const columns[] = {"any", "1000", "128", "4096", "16384"};
    NEEDS_NVRTC();
    Job *job = *state;
    CaseList cases = {0};
    const bool all = getenv("TEST_ALL") != NULL; /* else each graph in turn takes some */
    for (uint32_t g = 0; g < strategy_graph_count; g += is_reduced() ? 7 : 1)
        for (uint32_t n = 0; n < 5; n++)
            for (uint32_t t = 0; t < 4; t++) {
                bool any = n == 0 && t < 2 && t == g % 2, narrow = n == 1 && t == g % 4;
                if (all || any || narrow || (n == 2 + g % 3 && t == (g + 2) % 4))
                    add_strategy(job, &cases, g, types[t], columns[n], 90);
                if (narrow) add_strategy(job, &cases, g, types[t], columns[n], 80);
                if (narrow) add_strategy(job, &cases, g, types[t], columns[n], 100);
            }
    for (uint32_t g = 0; g < strategy_graph_count; g++) /* whole accesses along an axis of several that is open */
        for (uint32_t t = 0; t < 2 && !strcmp(strategy_graphs[g].name, "group_norm"); t++)
            add_strategy(job, &cases, g, types[t], t ? "{multiple: 8}" : "{multiple: 8, max: 4096}", 90);
    uint32_t turn = 0;
    for (size_t b = 0; b < sizeof costly_bodies / sizeof *costly_bodies; b++)
        for (size_t o = 0; o < sizeof costly / sizeof *costly && !is_reduced(); o++)
            for (uint32_t k = 0; k < (all ? 20 : 1); k++, turn++) {
                const char *type = types[all ? k % 4 : turn % 4];
                bool frame = strstr(costly[o], "sin") && !strcmp(type, "f64"); /* CUDA's own have one */
                add_costly(job, &cases, costly_bodies[b], costly[o], frame ? "f32" : type,
                           columns[all ? k / 4 : turn % 5]);
            }
    PartList parts = compile_all(job, &cases);
    Worst worst = {0};
    int spilled = 0;
    for (uint32_t i = 0; i < parts.count; i++) {
        if (parts.at[i].of->arch == 90) look_at(&worst, &parts.at[i]);
        spilled += has_frame(job, &parts.at[i]);
    }
    printf("# %u kernels of all strategies and of costly ops without a word and without a stack frame\n", parts.count);
    assert_int_equal(spilled, 0);
    free_parts(&parts);
}

/* ---- nvcc ---- */

typedef struct Nvcc { /* one file */
    const char *path, *source, *object, *text;
    size_t count;
    int code;
    char *said;
} Nvcc;

/* What becomes an error: what nvcc finds, and what the host compiler finds in the launcher. */
static void run_nvcc(void *state, uint32_t index) {
    Nvcc *file = ((Nvcc *)state) + index;
    const char *const argv[] = {file->path,
                                "-arch=sm_90",
                                "--fmad=false",
                                "-Werror",
                                "all-warnings",
                                "-Xcompiler",
                                "-Wall,-Wextra,-Werror",
                                "-c",
                                file->source,
                                "-o",
                                file->object,
                                NULL};
    RtChild child = {.output = -1};
    file->code = -1;
    FILE *out = fopen(file->source, "wb");
    if (!out) return;
    bool wrote = fwrite(file->text, 1, file->count, out) == file->count;
    if (fclose(out) != 0 || !wrote) return;
    if (rt_process_start(&child, argv, -1, -1) == 0 && rt_process_wait(&child) == 0) {
        file->code = child.code;
        file->said = rt_process_output(&child, 1 << 16);
    }
    rt_process_release(&child);
}

static void test_nvcc(void **state) {
    Job *job = *state;
    char *path = rt_process_find("nvcc");
    if (!path || is_reduced()) {
        printf("skipped: %s\n", path ? "nvcc in a reduced run" : "no nvcc on PATH");
        free(path);
        skip();
    }
    const char *folder = getenv("TMPDIR");
    char *place = ir_format(job, "%s/normgen-XXXXXX", folder && *folder ? folder : "/tmp");
    assert_non_null(mkdtemp(place));
    Nvcc files[EXAMPLE_COUNT] = {{0}};
    CaseList cases = {0};
    for (size_t e = 0; e < EXAMPLE_COUNT; e++) {
        add_case(job, &cases, examples[e], NULL, NULL, 90);
        const Source *source = &cases.at[e]->unit.source;
        files[e] = (Nvcc){.path = path,
                          .source = ir_format(job, "%s/%s.cu", place, examples[e]),
                          .object = ir_format(job, "%s/%s.o", place, examples[e]),
                          .text = source->device_text,
                          .count = source->device_count};
    }
    rt_parallel(EXAMPLE_COUNT, run_nvcc, files);
    for (size_t e = 0; e < EXAMPLE_COUNT; e++) {
        unlink(files[e].source);
        unlink(files[e].object);
    }
    rmdir(place);
    free(path);
    for (size_t e = 0; e < EXAMPLE_COUNT; e++) {
        if (files[e].code != 0 || (files[e].said && *files[e].said))
            fail_msg("%s: nvcc ends with %d: %s", examples[e], files[e].code, files[e].said ? files[e].said : "");
        free(files[e].said);
    }
}

static int setup(void **state) {
    *state = ir_job_create(NULL);
    return *state == NULL;
}

static int teardown(void **state) {
    ir_job_free(*state);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(test_architectures), TEST(test_alone),      TEST(test_registers),
                                       TEST(test_streams),       TEST(test_strategies), TEST(test_nvcc)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
