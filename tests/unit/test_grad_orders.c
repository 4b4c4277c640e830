/* Gradients of gradients: of the backward graph that grad makes, which computes all again, grad makes another one,
 * whose gradients have a prefix of their own (pytorch#91469, pytorch#181581, pytorch#183603, pytorch#176234). Against
 * PyTorch's in f64 up to the third order (tests/oracle/gradients.json), and, of all forward graphs there and of random
 * ones, the second order against dual numbers and central differences of the backward graph. NORMGEN_TEST_REDUCED:
 * fewer. NORMGEN_SEED repeats the data. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/grad_case.h"
#include "tests/support/random_smooth.h"
#include "tests/support/torch_gradients.h"

#define WEAK 1e-5 /* a bound beyond this part of the largest gradient hides too much */

enum { HIGHEST = 3, DIFFERENCED = 1, GRAPHS = 300, REDUCED_GRAPHS = 20 };

/* The file of the backward graph that reads what the forward one does, and masks; extended: NULL, or the file of the
 * forward graph with these. */
static const char *backward_text(Job *job, const char *forward, const GradOptions *options, const char **extended) {
    GradOptions own = *options;
    own.recompute_all = true;
    const Grad *grad = gen_grad(job, grad_parse(job, forward), &own);
    Text text = ir_text(job), more = ir_text(job);
    gen_grad_backward(&text, grad);
    gen_grad_forward(&more, grad);
    if (extended) *extended = ir_text_string(&more);
    return ir_text_string(&text);
}

/* ---- against PyTorch ---- */

typedef struct Totals {
    uint64_t elements[HIGHEST];
    uint32_t cases, failed, weak;
    double worst; /* difference over what is allowed */
} Totals;

typedef struct Orders {
    const cJSON *json;
    NamedList tensors;
    Totals *totals;
} Orders;

static void compare(Job *job, Orders *orders, const Graph *graph, uint32_t output, uint32_t order) {
    Totals *totals = orders->totals;
    const char *name = graph->outputs.at[output].name;
    const Named got = torch_evaluate(job, graph, torch_dims(job, orders->json, graph), &orders->tensors, output);
    const Named *expected = torch_find(&orders->tensors, name);
    if (!expected) IR_BREACH(job, "an output that PyTorch does not give: %s", name);
    assert_int_equal(got.count, expected->count);
    double largest = 0;
    for (uint64_t i = 0; i < got.count; i++) largest = fmax(largest, fabs(expected->number[i]));
    for (uint64_t i = 0; i < got.count; i++) {
        /* two evaluations of one formula, each off by the bound at most */
        const double allowed = 2 * got.bound[i], difference = fabs(got.number[i] - expected->number[i]);
        totals->elements[order]++;
        totals->weak += allowed > WEAK * largest;
        if (allowed > 0) totals->worst = fmax(totals->worst, difference / allowed);
        if (difference <= allowed) continue;
        if (!totals->failed++)
            print_message("%s, %s[%llu]: got %.17g, PyTorch %.17g, allowed %.3g\n", torch_text(orders->json, "name"),
                          name, (unsigned long long)i, got.number[i], expected->number[i], allowed);
    }
}

/* What the forward graph of this file stores for its backward one. */
static void add_stored(Job *job, Orders *orders, const char *text) {
    const Graph *graph = gen_exact_graph(job, grad_parse(job, text));
    const int64_t *dims = torch_dims(job, orders->json, graph);
    for (uint32_t o = 0; o < graph->outputs.count; o++) {
        if (torch_find(&orders->tensors, graph->outputs.at[o].name)) continue;
        Named stored = torch_evaluate(job, graph, dims, &orders->tensors, o);
        stored.name = graph->outputs.at[o].name;
        *IR_PUSH(job, &orders->tensors) = stored;
    }
}

static void run_orders(Job *job, void *state) {
    Orders *orders = state;
    const char *text = torch_text(orders->json, "graph");
    torch_tensors(job, &orders->tensors, torch_member(orders->json, "inputs"));
    for (uint32_t order = 0; order < HIGHEST; order++) {
        const char *prefix = order ? ir_format(job, "d%u_", order + 1) : "d_";
        const GradOptions options = {.prefix = prefix};
        const char *extended;
        text = backward_text(job, text, &options, &extended);
        add_stored(job, orders, extended);
        const cJSON *expected = torch_member(orders->json, ir_format(job, "%sin", prefix));
        torch_tensors(job, &orders->tensors, torch_member(orders->json, ir_format(job, "%sout", prefix)));
        torch_tensors(job, &orders->tensors, expected);
        const Graph *graph = gen_exact_graph(job, grad_parse(job, text));
        assert_int_equal(graph->outputs.count, cJSON_GetArraySize(expected));
        for (uint32_t o = 0; o < graph->outputs.count; o++) compare(job, orders, graph, o, order);
    }
}

static void torch_orders(void **state) {
    (void)state;
    cJSON *root;
    const cJSON *all = torch_cases(&root), *json;
    Totals totals = {0};
    cJSON_ArrayForEach(json, all) {
        if (!cJSON_GetObjectItem(json, "d3_in")) continue;
        Job *job = ir_job_create(NULL);
        Orders orders = {.json = json, .totals = &totals};
        if (ir_job_run(job, run_orders, &orders)) fail_msg("%s: %s", torch_text(json, "name"), ir_job_report(job));
        totals.cases++;
        ir_job_free(job);
    }
    cJSON_Delete(root);
    printf("# PyTorch: %u graphs, %llu gradients of the first order, %llu of the second, %llu of the third; at worst "
           "%d%% of what is allowed\n",
           totals.cases, (unsigned long long)totals.elements[0], (unsigned long long)totals.elements[1],
           (unsigned long long)totals.elements[2], (int)(100 * totals.worst));
    assert_true(totals.cases >= 16);
    assert_int_equal(totals.failed, 0);
    assert_int_equal(totals.weak, 0);
}

/* ---- against dual numbers and differences ---- */

typedef struct Second {
    const char *text; /* of the forward graph */
    const char *what;
    GradOptions options; /* of its gradients */
    const SmoothGraph *smooth;
    uint64_t seed;
    const char *backward;
    bool none; /* no gradient depends on a float */
    GradFound found;
} Second;

/* A mask of the largest elements has one at least. */
static void fill_masks(const Graph *graph, const GradData *data) {
    for (uint32_t i = 0; i < graph->inputs.count; i++)
        if (graph->inputs.at[i].dtype == DTYPE_BOOL && !strncmp(graph->inputs.at[i].name, "saved_", 6))
            memset(data->input.inputs[i].bytes, 1, data->count[i]);
}

static void run_second(Job *job, void *state) {
    Second *second = state;
    second->backward = backward_text(job, second->text, &second->options, NULL);
    const GradOptions options = {.prefix = "d2_"};
    const Exact *exact = gen_exact(job, grad_parse(job, second->backward), &options);
    const int64_t *dims =
        second->smooth ? random_smooth_dims(job, second->smooth, exact->graph) : grad_dims(job, exact->graph, 3);
    Random random = {second->seed};
    const GradData data = grad_data(job, exact, dims, &random, 0.3, 1.8);
    fill_masks(exact->graph, &data);
    second->found = grad_compare(job, exact, &data, second->what, DIFFERENCED, &random);
}

typedef struct Seconds {
    uint32_t graphs, failed;
    uint32_t undefined; /* not finite, or where a where() hides what is not: the root of a deviation of 0 */
    uint32_t gathers;   /* the gradient of a slice picks by index */
    GradFound found;
} Seconds;

static void add_second(Seconds *seconds, Second *second) {
    Job *job = ir_job_create(NULL);
    const Status status = ir_job_run(job, run_second, second);
    GradFound *found = &second->found;
    if (status == STATUS_REJECTED && strstr(ir_job_report(job), "no gradient through a gathered operand")) {
        seconds->gathers++;
        ir_job_free(job);
        return;
    }
    if (found->failed && found->hidden) found->undefined++;
    if (status || (found->failed && !found->undefined)) {
        printf("%s: %s\n%s\n%s\n", second->what, status ? ir_job_report(job) : "", second->text,
               second->backward ? second->backward : "");
        seconds->failed++;
    }
    seconds->graphs += !found->undefined;
    seconds->undefined += found->undefined > 0;
    if (!found->undefined) {
        seconds->found.elements += found->elements;
        seconds->found.differed += found->differed;
        seconds->found.unsure += found->unsure;
    }
    ir_job_free(job);
}

static void check_seconds(const Seconds *seconds, const char *what) {
    const GradFound *found = &seconds->found;
    printf("# %s: %u graphs, %u more not finite, %u refused for slices that are no equal parts; %llu elements by dual "
           "numbers, %llu by differences (%llu unsure)\n",
           what, seconds->graphs, seconds->undefined, seconds->gathers, (unsigned long long)found->elements,
           (unsigned long long)found->differed, (unsigned long long)found->unsure);
    assert_int_equal(seconds->failed, 0);
    if (getenv("NORMGEN_TEST_REDUCED")) return; /* shares of few graphs are chance */
    assert_true(seconds->graphs > 10 * seconds->undefined && seconds->graphs > 5 * seconds->gathers);
    assert_true(found->differed > 2 * found->unsure);
}

static void second_of_cases(void **state) {
    (void)state;
    cJSON *root;
    const cJSON *all = torch_cases(&root), *json;
    const uint64_t seed = random_seed();
    Seconds seconds = {0};
    uint32_t number = 0, step = getenv("NORMGEN_TEST_REDUCED") ? 8 : 1;
    cJSON_ArrayForEach(json, all) {
        if (number++ % step) continue;
        Job *job = ir_job_create(NULL);
        Second second = {.text = torch_text(json, "graph"),
                         .what = torch_text(json, "name"),
                         .options = torch_options(job, json),
                         .seed = seed + number};
        add_second(&seconds, &second);
        ir_job_free(job);
    }
    cJSON_Delete(root);
    check_seconds(&seconds, "second order");
}

static void second_of_random(void **state) {
    (void)state;
    const uint32_t graphs = getenv("NORMGEN_TEST_REDUCED") ? REDUCED_GRAPHS : GRAPHS;
    Random random = {random_seed()};
    Seconds seconds = {0};
    for (uint32_t i = 0; i < graphs; i++) {
        Job *job = ir_job_create(NULL);
        const uint64_t seed = random_bits(&random);
        const SmoothGraph smooth = random_smooth(job, seed);
        Second second = {.text = smooth.text, .what = "random", .smooth = &smooth, .seed = seed};
        add_second(&seconds, &second);
        ir_job_free(job);
    }
    check_seconds(&seconds, "second order of random graphs");
}

/* ---- products of rows with a zero ---- */

static const double rows[][3] = {{2, -3, 4}, {0, 2, 3}, {-2, 0, 3}, {5, -7, 0}};

/* Of L = sum of v[i] * the product of all others. */
static void run_row(Job *job, void *state) {
    const double *x = state, v[3] = {1, 10, 100}, *weight = v;
    const char *text =
        backward_text(job, "graph: g\ninputs: {x: 'f64[3]'}\nnodes: {y: 'prod(x, dim=-1)'}\noutputs: {y: f64}\n",
                      &(GradOptions){0}, NULL);
    const Exact *exact = gen_exact(job, grad_parse(job, text), &(GradOptions){.prefix = "d2_"});
    const Graph *graph = exact->graph, *backward = exact->backward;
    Random random = {1};
    const GradData data = grad_data(job, exact, grad_dims(job, graph, 1), &random, 1, 2);
    memcpy(data.number[ir_tensor_find(graph->inputs.at, graph->inputs.count, "x")], x, 3 * sizeof *x);
    *data.number[ir_tensor_find(graph->inputs.at, graph->inputs.count, "d_y")] = 1;
    const Expected *found = gen_exact_gradients(job, exact, backward, &(ExactInput){&data.input, &weight});
    const Expected *d_x = &found[ir_tensor_find(backward->outputs.at, backward->outputs.count, "d2_x")];
    const Expected *d_d_y = &found[ir_tensor_find(backward->outputs.at, backward->outputs.count, "d2_d_y")];
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t j = (i + 1) % 3, k = (i + 2) % 3;
        const double expected = v[j] * x[k] + v[k] * x[j];
        if (!(fabs(d_x->number[i] - expected) <= 1e-13 * fabs(expected)))
            fail_msg("prod of %g, %g, %g: d2_x[%u] is %g, not %g", x[0], x[1], x[2], i, d_x->number[i], expected);
    }
    const double expected = v[0] * x[1] * x[2] + v[1] * x[0] * x[2] + v[2] * x[0] * x[1];
    if (!(fabs(d_d_y->number[0] - expected) <= 1e-13 * fabs(expected)))
        fail_msg("prod of %g, %g, %g: d2_d_y is %g, not %g", x[0], x[1], x[2], d_d_y->number[0], expected);
}

static void products_with_a_zero(void **state) {
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        Job *job = ir_job_create(NULL);
        double x[3];
        memcpy(x, rows[r], sizeof x);
        if (ir_job_run(job, run_row, x)) fail_msg("%s", ir_job_report(job));
        ir_job_free(job);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(torch_orders), cmocka_unit_test(second_of_cases),
                                       cmocka_unit_test(second_of_random), cmocka_unit_test(products_with_a_zero)};
    return cmocka_run_group_tests_name("grad_orders", tests, NULL, NULL);
}
