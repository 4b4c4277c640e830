/* What the compiler makes of graphs, kernel by kernel. The files of tests/table/ hold a graph a YAML document, and say
 * in its comments what must come out at the hints, planned for sm_90 with an H200's numbers:
 *
 *   # hint: M=4096          as --hint; likewise  # define:  # fix:  # set:
 *   # batch-invariant: yes  as --batch-invariant
 *   # kernel: f0 ROW row_registers, 1 full read, 3072*M bytes = 12582912
 *                           each kernel in order: class, strategy, loads that run over every axis, bytes
 *   # beyond: 4194304       bytes beyond what any compiler must move: each element of each input read once (twice
 *                           where it is added to), each output stored once. Not written: none
 *   # workspace: 2048       bytes of a launch. Not written: none
 *   # rewrites: 2 partial, 1 reorder, 1 mixed
 *                           sums made in parts by the pass partial, those that reorder gave the loops of rows, kernels
 *                           that hold rows and such sums. Must stand where reorder had something to judge
 *   # refused: TEXT         what a gate refused, all of it in order. Not written: nothing
 *   # told: TEXT            something else that a pass told, or a part of what schedule chose
 *   # fails: TEXT           there is no plan, and the message contains this
 *
 * Parts are counted as 132, one an SM, since their number follows tiles, which are tuned. The bytes that any compiler
 * must move are counted here from the Graph, apart from what gen/ counts. `test_table FILE` prints what comes out of
 * the graphs of one file. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "gen/bytes.h"
#include "gen/nests.h"
#include "gen/workspace.h"
#include "tests/support/directives.h"
#include "tests/support/generate.h"
#include "tests/support/kernel_words.h"
#include "tests/support/prog_case.h"

typedef struct Row { /* of the table */
    const char *path;
    const char *text; /* from the first comment to the next graph's */
    Unit unit;
    uint32_t partials; /* after the pass partial */
} Row;

typedef struct Counts {
    uint32_t graphs, kernels, refused, failed;
    uint32_t mixed, parted; /* graphs with both orders in one kernel; where reorder refused some */
    uint32_t classes[CLASS_COUNT], strategies[STRATEGY_COUNT];
} Counts;

/* ---- what must be moved ---- */

static int64_t tensor_bytes(Job *job, const Graph *graph, const Tensor *tensor) {
    int64_t *dims = ir_graph_fixed(job, graph), count = 1;
    for (uint32_t d = 0; d < graph->dims.count; d++) {
        const Dim *dim = &graph->dims.at[d];
        if (dims[d] < 0) dims[d] = dim->hint >= 0 ? dim->hint : dim->max >= 0 ? dim->max : 1024;
    }
    for (uint8_t d = 0; d < tensor->shape.rank; d++) {
        int64_t extent, stride = 1;
        assert_true(ir_poly_eval(tensor->shape.extent[d], dims, graph->dims.count, NULL, 0, &extent));
        if (!tensor->contiguous)
            assert_true(ir_poly_eval(tensor->stride[d], dims, graph->dims.count, NULL, 0, &stride));
        if (stride || !extent) count *= extent;
    }
    return count * ir_dtype(tensor->dtype)->bytes;
}

static int64_t needed_bytes(Job *job, const Graph *graph) {
    int64_t bytes = 0;
    for (uint32_t i = 0; i < graph->values.count; i++)
        if (graph->values.at[i].op == OP_INPUT)
            bytes += tensor_bytes(job, graph, &graph->inputs.at[graph->values.at[i].tensor]);
    for (uint32_t i = 0; i < graph->outputs.count; i++)
        bytes += tensor_bytes(job, graph, &graph->outputs.at[i]) * (graph->outputs.at[i].accumulate ? 2 : 1);
    return bytes;
}

/* ---- what came out, as directives ---- */

static int64_t workspace_bytes(Job *job, const Unit *unit) {
    const Prog *prog = unit->prog;
    int64_t *places = IR_NEW_ARRAY(job, int64_t, unit->plan->rooms.count + (size_t)1);
    assert_true(gen_eval_rooms(unit->plan, gen_guess_dims(job, prog), prog->dims.count, kernel_parts(job, unit),
                               prog->parts.count, unit->options.target->sms, places));
    return places[unit->plan->rooms.count];
}

/* Behind the pass partial: how many sums are in parts. */
static void count_partials(void *state, Job *job, const Unit *unit, uint32_t pass) {
    Row *row = state;
    (void)job;
    if (pass != gen_pass_find("partial")) return;
    for (uint32_t n = 0; n < unit->prog->nests.count; n++)
        row->partials += gen_nest_partial(&unit->prog->nests.at[n]) != NULL;
}

static uint32_t count_mixed(const Unit *unit) {
    uint32_t count = 0;
    for (uint32_t s = 0; s < unit->plan->steps.count; s++)
        count += unit->prog->nests.at[unit->plan->steps.at[s].nest].class == CLASS_ROW_PARTIAL;
    return count;
}

static void put_rewrites(Text *out, const Row *row) {
    const Unit *unit = &row->unit;
    bool judged = strstr(row->text, "\n# rewrites: ") != NULL;
    uint32_t turned = 0;
    for (uint32_t i = 0; i < unit->reports.count; i++) {
        const Report *report = &unit->reports.at[i];
        if (strcmp(report->pass, "reorder") != 0) continue;
        judged = true;
        turned += report->gate == NULL;
    }
    if (judged)
        ir_text_format(out, "# rewrites: %u partial, %u reorder, %u mixed\n", row->partials, turned, count_mixed(unit));
}

static const char *found_lines(Job *job, const Row *row) {
    const Unit *unit = &row->unit;
    Text out = ir_text(job);
    int64_t moved = 0;
    for (uint32_t s = 0; s < unit->plan->steps.count; s++) {
        const Step *step = &unit->plan->steps.at[s];
        ir_text_format(&out, "# kernel: %s ", unit->prog->nests.at[step->nest].name);
        moved += kernel_words(job, &out, unit, step);
        ir_text_put(&out, "\n");
    }
    const int64_t beyond = moved - needed_bytes(job, unit->graph), workspace = workspace_bytes(job, unit);
    if (beyond) ir_text_format(&out, "# beyond: %lld\n", (long long)beyond);
    if (workspace) ir_text_format(&out, "# workspace: %lld\n", (long long)workspace);
    put_rewrites(&out, row);
    for (uint32_t i = 0; i < unit->reports.count; i++)
        if (unit->reports.at[i].gate) ir_text_format(&out, "# refused: %s\n", unit->reports.at[i].text);
    return ir_text_string(&out);
}

/* ---- one graph ---- */

static const char *const keys[] = {"kernel", "beyond", "workspace", "rewrites", "refused"};

static const char *wanted_lines(Job *job, const char *text) {
    Text out = ir_text(job);
    for (uint32_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        const char *at = text, *found;
        while ((found = directive_next(job, &at, keys[k]))) ir_text_format(&out, "# %s: %s\n", keys[k], found);
    }
    return ir_text_string(&out);
}

static void run_passes(Job *job, void *state) {
    Row *row = state;
    GenOptions options = {.target = gen_target(90), .verify = true, .after = count_partials, .after_state = row};
    options.hints = directive_settings(job, row->text, "hint", &options.hint_count);
    options.defines = directive_settings(job, row->text, "define", &options.define_count);
    options.fixes = directive_settings(job, row->text, "fix", &options.fix_count);
    options.sets = directive_settings(job, row->text, "set", &options.set_count);
    options.batch_invariant = directive_first(job, row->text, "batch-invariant") != NULL;
    gen_run(job, &row->unit, row->path, row->text, strlen(row->text), &options, gen_pass_count - 1);
}

static bool was_told(const Unit *unit, const char *text) {
    for (uint32_t i = 0; i < unit->plan->choices.count; i++)
        if (strstr(unit->plan->choices.at[i].text, text)) return true;
    return directive_reported(unit, text);
}

static void count_row(const Unit *unit, Counts *counts) {
    for (uint32_t s = 0; s < unit->plan->steps.count; s++) {
        const Step *step = &unit->plan->steps.at[s];
        counts->kernels++;
        counts->classes[unit->prog->nests.at[step->nest].class]++;
        counts->strategies[step->strategy]++;
    }
    bool parted = false;
    for (uint32_t i = 0; i < unit->reports.count; i++) {
        const Report *report = &unit->reports.at[i];
        counts->refused += report->gate != NULL;
        parted |= report->gate && !strcmp(report->pass, "reorder");
    }
    counts->mixed += count_mixed(unit) > 0;
    counts->parted += parted;
}

/* What is wrong, as text; NULL: nothing. */
static const char *check_row(Job *job, Row *row, Counts *counts) {
    const Status status = ir_job_run(job, run_passes, row);
    const char *fails = directive_first(job, row->text, "fails"), *at = row->text, *told;
    if (fails) {
        if (status == STATUS_OK) return ir_format(job, "should fail: %s\n", fails);
        return strstr(ir_job_report(job), fails) ? NULL
                                                 : ir_format(job, "\"%s\" is not in\n%s", fails, ir_job_report(job));
    }
    if (status != STATUS_OK) return ir_job_report(job);
    count_row(&row->unit, counts);
    const char *found = found_lines(job, row), *wanted = wanted_lines(job, row->text);
    if (strcmp(found, wanted)) return ir_format(job, "wanted\n%sfound\n%s", wanted, found);
    while ((told = directive_next(job, &at, "told")))
        if (!was_told(&row->unit, told)) return ir_format(job, "nothing told \"%s\"\n", told);
    return NULL;
}

static const char *graph_name(Job *job, const char *text) {
    const char *at = strstr(text, "graph: ");
    return at ? ir_copy_text(job, at + 7, strcspn(at + 7, "\n")) : "?";
}

/* The next graph of a file; NULL at its end. */
static const char *next_graph(Job *job, const char **at) {
    static const char mark[] = "\n---\n";
    const char *start = *at, *end = strstr(start, mark);
    if (!*start) return NULL;
    *at = end ? end + strlen(mark) : start + strlen(start);
    return ir_copy_text(job, start, (size_t)((end ? end + 1 : *at) - start));
}

static void check_file(const char *path, Counts *counts, bool print) {
    Job *all = ir_job_create(NULL);
    size_t count;
    const char *at = case_file(all, path, &count), *text;
    while ((text = next_graph(all, &at))) {
        Job *job = ir_job_create(NULL);
        Row row = {.path = path, .text = text};
        const char *wrong = check_row(job, &row, counts);
        counts->graphs++;
        if (print)
            printf("%s\n%s\n", graph_name(job, text), row.unit.plan ? found_lines(job, &row) : wrong);
        else if (wrong)
            printf("%s, graph %s: %s\n", path, graph_name(job, text), wrong);
        counts->failed += wrong != NULL;
        ir_job_free(job);
    }
    ir_job_free(all);
}

static void test_files(void **state) {
    (void)state;
    Counts counts = {0};
    glob_t found;
    assert_int_equal(glob("tests/table/*.yaml", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) check_file(found.gl_pathv[i], &counts, false);
    globfree(&found);
    printf("# table: %u graphs, %u kernels, %u refusals; both orders in one kernel in %u graphs, kept apart in %u\n",
           counts.graphs, counts.kernels, counts.refused, counts.mixed, counts.parted);
    assert_int_equal(counts.failed, 0);
    assert_true(counts.graphs >= 60 && counts.refused > 0 && counts.mixed >= 40 && counts.parted >= 12);
    for (uint32_t s = 0; s < STRATEGY_COUNT; s++)
        if (!counts.strategies[s]) fail_msg("no kernel is %s", gen_strategy((Strategy)s)->name);
    static const NestClass classes[] = {CLASS_POINTWISE, CLASS_INNER,    CLASS_OUTER,      CLASS_MIXED,
                                        CLASS_ROW,       CLASS_FINALIZE, CLASS_ROW_PARTIAL};
    for (uint32_t c = 0; c < sizeof classes / sizeof *classes; c++)
        if (!counts.classes[classes[c]]) fail_msg("no kernel is of class %s", ir_class_name(classes[c]));
}

/* A nest of parts has its step, which says how many there are, though what it stores has no element. */
static void test_parts_of_nothing(void **state) {
    static const char ir[] = "prog nothing\ndim M any\npart P0\nbuf x f32 [M,0] in\nbuf y f32 [0] out\n"
                             "buf z f32 [3] out\nbuf ws0 f32 [P0,0] ws\n"
                             "nest n0 (c:0, r:M |) POINTWISE {\n  %0 f32<cr> = load x[0 + c*1 + r*1]\n"
                             "  partial_accumulate add {r} ws0[0 + c*1] %0\n}\n"
                             "nest n1 (c:0 | p:P0) FINALIZE {\n  %0 f32<cp> = load ws0[0 + c*1 + p*1]\n"
                             "  %1 f32<c> = reduce add {p} %0\n  store y[0 + c*1] %1\n}\n"
                             "nest n2 (c:3 |) POINTWISE {\n  %0 f32<> = const 0x00000000\n  store z[0 + c*1] %0\n}\n";
    (void)state;
    Job *job = ir_job_create(NULL);
    Unit unit;
    if (generate_ir(job, &unit, ir, NULL) != STATUS_OK) fail_msg("%s", ir_job_report(job));
    assert_int_equal(unit.plan->steps.count, 2);
    const Step *parts = &unit.plan->steps.at[0];
    assert_int_equal(parts->nest, 0);
    assert_int_equal(parts->part, 0);
    assert_int_equal(unit.plan->parts[0].units.count, 1); /* M */
    assert_int_equal(unit.plan->steps.at[1].nest, 2);
    ir_job_free(job);
}

int main(int argc, char **argv) {
    Counts counts = {0};
    for (int i = 1; i < argc; i++) check_file(argv[i], &counts, true);
    if (argc > 1) return 0;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_files), cmocka_unit_test(test_parts_of_nothing)};
    return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
