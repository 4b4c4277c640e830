/* Gradients against numbers from PyTorch's autograd in f64, tests/oracle/gradients.json: each forward graph goes
 * through gen_grad, the two graph files that come of it are read back and evaluated in order, the backward one with
 * what the forward one stored.
 *
 * Both sides are evaluations in double of one formula in some order, so they differ by at most twice the bound: that of
 * the backward graph on exact operands, and what the bounds of stored values add to it, through the slope of each,
 * measured. None may be so wide that it hides what is looked for: WEAK of the largest gradient of its tensor. (Most are
 * of double; the number of those that are the largest alike is counted in f32.)
 *
 * Some of the backward graphs, in f32 and bf16, are run on the host device against the oracle too.
 * NORMGEN_TEST_REDUCED: fewer. NORMGEN_SEED repeats the data. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/device_case.h"
#include "tests/support/torch_gradients.h"

#define WEAK 1e-5

typedef struct Case {
    const cJSON *json;
    bool again; /* what can be is computed again instead of saved */
    Graph *forward, *backward;
    const int64_t *dims;
    NamedList tensors;
    uint32_t failed, weak;          /* elements; those whose bound hides too much */
    uint64_t elements, saved, wide; /* gradients; values saved for them; bounds beyond 1e-12 */
    double worst;                   /* difference over what is allowed */
} Case;

static Graph *read_back(Job *job, Unit *unit, const char *name, const char *text, const char *pass) {
    const GenOptions options = {.target = gen_target(90)};
    gen_run(job, unit, name, text, strlen(text), &options, gen_pass_find(pass));
    return unit->graph;
}

typedef struct Attempt {
    const Graph *graph;
    GradOptions options;
    const Grad *grad;
} Attempt;

static void attempt(Job *job, void *state) {
    Attempt *own = state;
    own->grad = gen_grad(job, own->graph, &own->options);
}

/* What would be saved is computed again, one after the other, where it has a name in the forward graph or a line of
 * composites.def. */
static const Grad *save_nothing(Job *job, const Graph *graph, const Grad *grad, const GradOptions *options) {
    const char **names = IR_NEW_ARRAY(job, const char *, grad->reads.count + 1);
    Attempt own = {graph, *options, grad};
    uint32_t count = 0;
    for (uint32_t i = 0; i < grad->reads.count; i++) {
        if (grad->reads.at[i].source != GRAD_SAVED) continue;
        const uint32_t said = ir_diagnostic_count(job);
        names[count++] = grad->reads.at[i].name;
        own.options.recompute = (Names){names, count};
        if (ir_job_run(job, attempt, &own) == STATUS_OK) continue;
        if (!strstr(ir_diagnostic(job, said)->text, "no value that the gradients use has this name"))
            ir_stop(job, STATUS_INTERNAL);
        ir_drop_diagnostics(job, said);
        count--;
    }
    return own.grad;
}

static void derive(Job *job, Case *test) {
    Unit unit = {0}, forward = {0}, backward = {0};
    const Graph *graph = read_back(job, &unit, "graph", torch_text(test->json, "graph"), "parse");
    const GradOptions options = torch_options(job, test->json);
    const Grad *grad = gen_grad(job, graph, &options);
    if (test->again) grad = save_nothing(job, graph, grad, &options);
    for (uint32_t i = 0; i < grad->reads.count; i++) test->saved += grad->reads.at[i].source == GRAD_SAVED;
    Text texts[2] = {ir_text(job), ir_text(job)};
    gen_grad_forward(&texts[0], grad);
    gen_grad_backward(&texts[1], grad);
    test->forward = read_back(job, &forward, "forward", ir_text_string(&texts[0]), "expand");
    test->backward = read_back(job, &backward, "backward", ir_text_string(&texts[1]), "expand");
}

/* What the forward graph stores, rounded to double. */
static void run_forward(Job *job, Case *test) {
    const int64_t *dims = torch_dims(job, test->json, test->forward);
    for (uint32_t o = 0; o < test->forward->outputs.count; o++) {
        const Named got = torch_evaluate(job, test->forward, dims, &test->tensors, o);
        Named *named = IR_PUSH(job, &test->tensors);
        *named = (Named){test->forward->outputs.at[o].name, got.count, got.number, got.bound};
    }
}

/* Adds to the allowance of each element what the bounds of a stored value's elements make of it. */
static void add_slopes(Job *job, const Case *test, Named *stored, uint32_t output, const Named *got, double *sum) {
    const double far = 0x1p20; /* the bound times this is the step: still small, and clear of rounding */
    for (uint64_t k = 0; k < stored->count; k++) {
        if (stored->bound[k] == 0 || !isfinite(stored->number[k])) continue;
        const Mark mark = ir_mark(job);
        const double own = stored->number[k];
        stored->number[k] = own + far * stored->bound[k];
        const Named moved = torch_evaluate(job, test->backward, test->dims, &test->tensors, output);
        stored->number[k] = own;
        for (uint64_t i = 0; i < got->count; i++) sum[i] += fabs(moved.number[i] - got->number[i]) / far;
        ir_reset(job, mark);
    }
}

static void compare(Job *job, Case *test, uint32_t output) {
    const Named got = torch_evaluate(job, test->backward, test->dims, &test->tensors, output);
    const char *name = test->backward->outputs.at[output].name;
    const Named *expected = torch_find(&test->tensors, name);
    if (!expected) IR_BREACH(job, "an output that PyTorch does not give: %s", name);
    assert_int_equal(got.count, expected->count);
    double *sum = IR_NEW_ARRAY(job, double, got.count + 1), largest = 0;
    for (uint32_t i = 0; i < test->backward->inputs.count; i++) {
        Named *stored = torch_find(&test->tensors, test->backward->inputs.at[i].name);
        if (stored->bound) add_slopes(job, test, stored, output, &got, sum);
    }
    for (uint64_t i = 0; i < got.count; i++) largest = fmax(largest, fabs(expected->number[i]));
    for (uint64_t i = 0; i < got.count; i++) {
        const double allowed = 2 * (got.bound[i] + sum[i]), difference = fabs(got.number[i] - expected->number[i]);
        test->elements++;
        test->wide += allowed > 1e-12 * largest;
        test->weak += !(allowed <= WEAK * largest) && allowed != 0;
        if (allowed > 0 && difference / allowed > test->worst) test->worst = difference / allowed;
        if (difference <= allowed) continue;
        if (!test->failed++)
            print_message("%s, %s[%llu]: got %.17g, PyTorch %.17g, allowed %.3g\n", torch_text(test->json, "name"),
                          name, (unsigned long long)i, got.number[i], expected->number[i], allowed);
    }
}

static void check(Job *job, void *state) {
    Case *test = state;
    derive(job, test);
    torch_tensors(job, &test->tensors, torch_member(test->json, "inputs"));
    run_forward(job, test);
    torch_tensors(job, &test->tensors, torch_member(test->json, "d_out"));
    torch_tensors(job, &test->tensors, torch_member(test->json, "d_in"));
    test->dims = torch_dims(job, test->json, test->backward);
    for (uint32_t i = 0; i < test->backward->inputs.count; i++) {
        const Named *named = torch_find(&test->tensors, test->backward->inputs.at[i].name);
        if (!named) IR_BREACH(job, "nothing gives the input %s", test->backward->inputs.at[i].name);
    }
    assert_int_equal(test->backward->outputs.count, cJSON_GetArraySize(torch_member(test->json, "wrt")));
    for (uint32_t o = 0; o < test->backward->outputs.count; o++) compare(job, test, o);
}

static void test_numbers(void **state) {
    (void)state;
    cJSON *root;
    const cJSON *all = torch_cases(&root), *json;
    uint32_t cases = 0, failed = 0;
    uint64_t elements = 0, saved[2] = {0}, wide = 0;
    double worst = 0;
    cJSON_ArrayForEach(json, all) for (uint32_t again = 0; again < 2; again++) {
        Job *job = ir_job_create(NULL);
        Case test = {.json = json, .again = again};
        const Status status = ir_job_run(job, check, &test);
        if (status) print_message("%s: %s\n", torch_text(json, "name"), ir_job_report(job));
        if (test.weak) print_message("%s: %u bounds hide too much\n", torch_text(json, "name"), test.weak);
        failed += status || test.failed || test.weak;
        cases += !again;
        elements += test.elements;
        saved[again] += test.saved;
        wide += test.wide;
        worst = fmax(worst, test.worst);
        ir_job_free(job);
    }
    cJSON_Delete(root);
    print_message("# %u graphs, %llu gradients, %llu of them with bounds beyond 1e-12; %llu values saved, %llu where "
                  "they are computed again; at worst %d%% of what is allowed\n",
                  cases, (unsigned long long)elements, (unsigned long long)wide, (unsigned long long)saved[0],
                  (unsigned long long)saved[1], (int)(100 * worst));
    assert_true(cases >= 140 && saved[0] > 60);
    assert_int_equal(failed, 0);
}

/* ---- on the host device ---- */

static const char *const run_names[] = {"layer_norm wb",
                                        "rms_norm middle w",
                                        "softmax last",
                                        "log_softmax and a loss",
                                        "add and rms_norm, the sum goes on",
                                        "layer_norm and gelu",
                                        "modulate",
                                        "softmax, causal",
                                        "swiglu packed",
                                        "group norm",
                                        "batch norm of planes with its statistics out",
                                        "three norms share a weight",
                                        "amax of ties",
                                        "prod middle",
                                        "overlapping slices"};
static const char *const run_types[] = {"f32", "bf16"};
enum { NAMES = sizeof run_names / sizeof *run_names, TYPES = 2 };

typedef struct Written {
    const cJSON *json;
    const char *type, *text;
} Written;

/* The backward graph of a case with tensors of another type, under a name of its own. */
static void write_typed(Job *job, void *state) {
    Written *written = state;
    const char *text = torch_text(written->json, "graph"), *type = strstr(text, "{E: f64}");
    if (!type) IR_BREACH(job, "no type E in\n%s", text);
    text = ir_format(job, "graph: %s_%.*s{E: %s}%s", written->type, (int)(type - text - 7), text + 7, written->type,
                     type + 8);
    Unit unit = {0};
    const Graph *graph = read_back(job, &unit, "graph", text, "parse");
    const GradOptions options = torch_options(job, written->json);
    Text backward = ir_text(job);
    gen_grad_backward(&backward, gen_grad(job, graph, &options));
    written->text = ir_text_string(&backward);
}

static const cJSON *find_case(const cJSON *cases, const char *name) {
    const cJSON *json;
    cJSON_ArrayForEach(json, cases) {
        if (!strcmp(torch_text(json, "name"), name)) return json;
    }
    fail_msg("no case is named %s", name);
    return NULL;
}

static bool run_typed(Job *job, const Written *written, const DeviceCase *made, const Devices *devices, Random *random,
                      uint64_t *elements) {
    const RtProgram *program = made->program;
    const int64_t *dims = torch_dims(job, written->json, program->graph);
    int64_t *any = IR_NEW_ARRAY(job, int64_t, program->any_count + 1);
    for (uint32_t a = 0; a < program->any_count; a++) any[a] = dims[program->any[a]];
    LaunchTrial trial = {.random = random};
    const bool passed = device_case_try(job, made, devices, any, &trial);
    *elements += trial.elements;
    return passed;
}

static void test_host(void **state) {
    (void)state;
    cJSON *root;
    const cJSON *cases = torch_cases(&root);
    Job *job = ir_job_create(NULL);
    Devices devices;
    Random random = {random_seed()};
    Written written[NAMES * TYPES];
    DeviceCase *made[NAMES * TYPES];
    uint32_t failed = 0;
    uint64_t elements = 0;
    const uint32_t step = getenv("NORMGEN_TEST_REDUCED") ? 4 : 1;
    uint32_t count = 0;
    assert_true(devices_open(&devices, 0, NULL));
    for (uint32_t i = 0; i < NAMES * TYPES; i += step, count++) {
        written[count] = (Written){find_case(cases, run_names[i / TYPES]), run_types[i / step % TYPES], NULL};
        if (ir_job_run(job, write_typed, &written[count])) fail_msg("%s", ir_job_report(job));
        made[count] = device_case_create(written[count].text, NULL);
        if (made[count]->status) fail_msg("%s\n%s", written[count].text, ir_job_report(made[count]->job));
    }
    assert_true(device_cases_build(made, count, &devices));
    for (uint32_t i = 0; i < count; i++) {
        failed += !run_typed(job, &written[i], made[i], &devices, &random, &elements);
        device_case_free(made[i], &devices);
    }
    devices_close(&devices);
    ir_job_free(job);
    cJSON_Delete(root);
    print_message("# %u backward graphs on the host device, %llu elements\n", count, (unsigned long long)elements);
    assert_int_equal(failed, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers), cmocka_unit_test(test_host)};
    return cmocka_run_group_tests_name("grad_torch", tests, NULL, NULL);
}
