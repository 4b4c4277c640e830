/* Random graphs: their gradients against dual numbers (every element) and central differences (some), the texts that
 * are written of them against the graphs, and the backward graph through all passes, each of whose results is legal.
 * NORMGEN_SEED repeats a run (NORMGEN_GRAPHS=1 its first graph alone); a graph that fails is printed as a file. What
 * was met is counted, and nothing listed may be met never. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/front.h"
#include "tests/support/grad_case.h"
#include "tests/support/hits.h"
#include "tests/support/random_smooth.h"

enum { GRAPHS = 500, REDUCED_GRAPHS = 40, DIFFERENCED = 2 };

typedef struct Hits {
    uint32_t graphs, undefined, failed;
    GradFound found;
    uint32_t op[OP_COUNT], reduction[REDUCTION_COUNT], *composite;
    uint32_t input_dtype[DTYPE_COUNT], source[3];
    uint32_t item[ITEM_GATHER], reshape, any_dims;
    uint32_t missing_dims, one_first, one_inside, one_last, single, both_ways; /* broadcasts */
    uint32_t second_uses, shared_inputs, several_outputs, no_dims;
} Hits;

typedef struct Trial {
    uint64_t seed;
    Hits *hits;
    SmoothGraph smooth;
    const Grad *grad;
    const char *backward; /* its text */
    bool bad;
} Trial;

/* ---- what was met ---- */

static bool is_float(DType dtype) { return ir_dtype(dtype)->kind == KIND_FLOAT; }

static bool is_one(Poly extent) {
    int64_t value;
    return ir_poly_is_int(extent, &value) && value == 1;
}

static void count_broadcast(Hits *hits, const Graph *graph, const Value *value) {
    bool up = false, down = false;
    for (uint32_t k = 0; k < value->arg_count && k < 2; k++) {
        const Value *arg = &graph->values.at[value->arg[k]];
        if (!is_float(arg->dtype) || arg->op == OP_CONST) continue;
        bool grows = arg->shape.rank < value->shape.rank;
        hits->missing_dims += grows && arg->shape.rank;
        hits->single += grows && !arg->shape.rank;
        for (uint32_t d = 0; d < arg->shape.rank; d++) {
            if (!is_one(arg->shape.extent[d]) || is_one(value->shape.extent[d + value->shape.rank - arg->shape.rank]))
                continue;
            grows = true;
            if (d == 0) hits->one_first++;
            if (d + 1 == arg->shape.rank) hits->one_last++;
            if (d > 0 && d + 1 < arg->shape.rank) hits->one_inside++;
        }
        if (k == 0)
            up = grows;
        else
            down = grows;
    }
    hits->both_ways += up && down;
}

static void count_forward(Job *job, Hits *hits, const Graph *graph) {
    uint32_t *uses = IR_NEW_ARRAY(job, uint32_t, graph->values.count);
    for (uint32_t v = 0; v < graph->values.count; v++) {
        const Value *value = &graph->values.at[v];
        hits->op[value->op]++;
        if (value->op == OP_REDUCE) hits->reduction[value->reduction]++;
        for (uint32_t i = 0; i < value->item_count; i++) hits->item[value->items[i].kind]++;
        hits->reshape += value->op == OP_RESHAPE;
        if (value->op < OP_PRIMITIVES) count_broadcast(hits, graph, value);
        for (uint32_t k = 0; k < value->arg_count; k++) uses[value->arg[k]]++;
    }
    for (uint32_t v = 0; v < graph->values.count; v++) {
        if (uses[v] < 2 || !is_float(graph->values.at[v].dtype)) continue;
        hits->second_uses += graph->values.at[v].op < OP_PRIMITIVES;
        hits->shared_inputs += graph->values.at[v].op == OP_INPUT;
    }
    for (uint32_t i = 0; i < graph->inputs.count; i++) hits->no_dims += graph->inputs.at[i].shape.rank == 0;
    for (uint32_t d = 0; d < graph->dims.count; d++) hits->any_dims += graph->dims.at[d].value < 0;
    hits->several_outputs += graph->outputs.count > 1;
}

static void count_parsed(Hits *hits, const Graph *graph, const Grad *grad) {
    for (uint32_t v = 0; v < graph->values.count; v++)
        if (graph->values.at[v].op == OP_COMPOSITE) hits->composite[graph->values.at[v].call->line]++;
    for (uint32_t i = 0; i < graph->inputs.count; i++) hits->input_dtype[graph->inputs.at[i].dtype]++;
    for (uint32_t r = 0; r < grad->reads.count; r++) hits->source[grad->reads.at[r].source]++;
}

/* ---- one graph ---- */

static void check_text(Job *job, Trial *trial, const char *text, const Graph *graph, const char *what) {
    if (ir_graph_same(job, graph, grad_parse(job, text))) return;
    printf("%s reads back as another graph:\n%s\n", what, text);
    trial->bad = true;
}

static void run_trial(Job *job, void *state) {
    Trial *trial = state;
    Hits *hits = trial->hits;
    trial->smooth = random_smooth(job, trial->seed);
    const Graph *graph = grad_parse(job, trial->smooth.text);
    const Exact *exact = gen_exact(job, graph, &(GradOptions){0});
    Random random = {trial->seed ^ 0x5eed};
    const int64_t *dims = random_smooth_dims(job, &trial->smooth, exact->graph);
    const GradData data = grad_data(job, exact, dims, &random, -1.5, 1.5);
    const GradFound found = grad_compare(job, exact, &data, "random", DIFFERENCED, &random);
    if (found.undefined) {
        hits->undefined++;
        return;
    }
    hits->graphs++;
    hits->found.elements += found.elements;
    hits->found.differed += found.differed;
    hits->found.unsure += found.unsure;
    trial->bad |= found.failed > 0;
    trial->grad = gen_grad(job, graph, &(GradOptions){0});
    count_parsed(hits, graph, trial->grad);
    count_forward(job, hits, exact->graph);
    Text backward = ir_text(job), forward = ir_text(job);
    gen_grad_backward(&backward, trial->grad);
    gen_grad_forward(&forward, trial->grad);
    trial->backward = ir_text_string(&backward);
    check_text(job, trial, trial->backward, trial->grad->backward, "the backward graph");
    check_text(job, trial, ir_text_string(&forward), trial->grad->forward, "the forward graph");
}

static void run_passes(Job *job, void *state) {
    const char *text = state;
    Unit unit = {0};
    const GenOptions options = {.target = gen_target(90), .verify = true};
    gen_run(job, &unit, "backward.yaml", text, strlen(text), &options, gen_pass_count - 1);
}

static void run_seed(Hits *hits, uint64_t seed) {
    Trial trial = {.seed = seed, .hits = hits};
    Job *job = ir_job_create(NULL), *passes = ir_job_create(NULL);
    const Status status = ir_job_run(job, run_trial, &trial);
    if (status != STATUS_OK) {
        printf("%s", ir_job_report(job));
        trial.bad = true;
    }
    if (status == STATUS_OK && trial.backward) {
        const Status lowered = ir_job_run(passes, run_passes, (void *)(uintptr_t)trial.backward);
        if (lowered != STATUS_OK) {
            printf("the backward graph: %s\n%s\n", ir_job_report(passes), trial.backward);
            trial.bad = true;
        }
    }
    if (trial.bad) {
        printf("of NORMGEN_SEED=%llu:\n%s\n", (unsigned long long)seed, trial.smooth.text ? trial.smooth.text : "");
        hits->failed++;
    }
    ir_job_free(passes);
    ir_job_free(job);
}

/* ---- reporting ---- */

/* Operations of which nothing in such graphs is made; all others must be met. */
static bool is_wanted(Op op) { return op < OP_PRIMITIVES; }

static uint32_t print_hits(const Hits *hits) {
    static const char *const items[] = {"slice", "new-axis", "one-index"}, *const sources[] = {"input", "output",
                                                                                               "saved"};
    HitReport report = {0};
    hits_line(&report, "op");
    for (Op op = 0; op < OP_COUNT; op++) hits_count(&report, hits->op[op], ir_op_name(op), is_wanted(op));
    hits_line(&report, "reduction");
    for (uint32_t r = 0; r < REDUCTION_ONLINE; r++)
        hits_count(&report, hits->reduction[r], ir_reduction((Reduction)r)->name, true);
    hits_line(&report, "composite");
    for (uint32_t line = 0; line < gen_composite_count; line++) {
        const char *text = gen_composite_text(line);
        char *name = strndup(text, strcspn(text, "("));
        hits_count(&report, hits->composite[line], name, true);
        free(name);
    }
    hits_line(&report, "view");
    for (uint32_t i = 0; i < ITEM_GATHER; i++) hits_count(&report, hits->item[i], items[i], true);
    hits_count(&report, hits->reshape, "reshape", true);
    hits_line(&report, "broadcast");
    hits_count(&report, hits->missing_dims, "missing-dims", true);
    hits_count(&report, hits->one_first, "1-first", true);
    hits_count(&report, hits->one_inside, "1-inside", true);
    hits_count(&report, hits->one_last, "1-last", true);
    hits_count(&report, hits->single, "single", true);
    hits_count(&report, hits->both_ways, "both-ways", true);
    hits_line(&report, "uses");
    hits_count(&report, hits->second_uses, "second", true);
    hits_count(&report, hits->shared_inputs, "shared-input", true);
    hits_count(&report, hits->several_outputs, "several-outputs", true);
    hits_count(&report, hits->no_dims, "rank-0-input", true);
    hits_count(&report, hits->any_dims, "any-dim", true);
    hits_line(&report, "read");
    for (uint32_t i = 0; i < 3; i++) hits_count(&report, hits->source[i], sources[i], true);
    hits_line(&report, "input");
    for (uint32_t i = 0; i < DTYPE_COUNT; i++)
        hits_count(&report, hits->input_dtype[i], ir_dtype((DType)i)->name, i <= DTYPE_BF16);
    hits_end(&report);
    return report.missing;
}

static void random_gradients(void **state) {
    (void)state;
    Hits hits = {0};
    const char *given = getenv("NORMGEN_GRAPHS");
    const bool reduced = getenv("NORMGEN_TEST_REDUCED") != NULL;
    const uint32_t wanted = given ? (uint32_t)strtoul(given, NULL, 10) : reduced ? REDUCED_GRAPHS : GRAPHS;
    hits.composite = calloc(gen_composite_count, sizeof *hits.composite);
    assert_non_null(hits.composite);
    const uint64_t seed = random_seed();
    const uint32_t rounds = given || reduced ? 1 : 4; /* the rarest may want more graphs */
    uint64_t drawn = 0;
    uint32_t missing = 1;
    for (uint32_t round = 1; round <= rounds && missing; round++) {
        while (hits.graphs < wanted * round && drawn < 2 * (uint64_t)wanted * round) run_seed(&hits, seed + drawn++);
        missing = print_hits(&hits);
    }
    const GradFound *found = &hits.found;
    printf("# graphs: %u, %u more not finite; %llu elements by dual numbers, %llu by differences "
           "(%llu unsure)\n",
           hits.graphs, hits.undefined, (unsigned long long)found->elements, (unsigned long long)found->differed,
           (unsigned long long)found->unsure);
    free(hits.composite);
    assert_int_equal(hits.failed, 0);
    if (given) return;
    assert_true(hits.graphs >= wanted && found->differed > found->unsure);
    if (reduced) return; /* shares of few graphs are chance */
    assert_true(found->unsure * 10 < found->differed);
    assert_int_equal(missing, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_gradients)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
