/* The backward graphs that gen_grad derives beside those of examples/ that were written by hand: as many operations of
 * each kind after simplify, the same kernels, the same bytes. Views do not count: they compute nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/grad.h"
#include "tests/support/kernel_words.h"
#include "tests/support/prog_case.h"

typedef struct Example {
    const char *by_hand; /* examples/NAME.yaml */
    const char *forward; /* from `dims:` on */
    const char *wrt, *recompute;
    const char *from, *to; /* a text of the file by hand that says more than a gradient can: what stands for it */
} Example;

#define ROWS "dims: {M: any, N: 1024}\n"
static const Example examples[] = {
    {"rms_norm_bwd",
     "dims: {M: any, N: 768}\ninputs: {x: \"bf16[M, N]\", w: \"f32[N]\"}\nscalars: {eps: 1e-6}\n"
     "nodes:\n  y: rms_norm(x, w, eps)\noutputs: {y: bf16}\n",
     NULL, NULL, NULL, NULL},
    {"layer_norm_bwd",
     ROWS "inputs: {x: \"bf16[M, N]\", weight: \"f32[N]\", bias: \"f32[N]\"}\nscalars: {eps: 1e-5}\n"
          "nodes:\n  y: layer_norm(x, weight, bias, eps)\noutputs: {y: bf16}\n",
     NULL, NULL, NULL, NULL},
    {"add_rms_norm_bwd",
     ROWS "inputs: {x: \"bf16[M, N]\", residual: \"bf16[M, N]\", weight: \"f32[N]\"}\nscalars: {eps: 1e-6}\n"
          "nodes:\n  h: x + residual\n  y: rms_norm(h, weight, eps)\noutputs: {y: bf16, h: bf16}\n",
     NULL, NULL, "dresidual: {of: dx, dtype: E, inplace: dh}\n  dweight: {dtype: f32, accumulate: true}",
     "dresidual: {of: dx, dtype: E}\n  dweight: f32"},
    {"softmax_bwd",
     ROWS "inputs: {x: \"bf16[M, N]\", bias: \"f32[N]\"}\nnodes:\n  y: softmax(x + bias, dim=-1)\noutputs: {y: bf16}\n",
     NULL, NULL, NULL, NULL},
    {"layer_norm_gelu_bwd",
     ROWS "inputs: {x: \"bf16[M, N]\", weight: \"f32[N]\", bias: \"f32[N]\"}\nscalars: {eps: 1e-5}\n"
          "nodes:\n  z: layer_norm(x, weight, bias, eps)\n  y: gelu(z)\noutputs: {y: bf16}\n",
     NULL, NULL, "dweight: E, dbias: E", "dweight: f32, dbias: f32"},
    {"rms_norm_shared_bwd",
     ROWS "inputs: {x1: \"bf16[M, N]\", x2: \"bf16[M, N]\", x3: \"bf16[M, N]\", weight: \"f32[N]\"}\n"
          "nodes:\n  y1: rms_norm(x1, weight, 1e-5)\n  y2: rms_norm(x2, weight, 1e-5)\n"
          "  y3: rms_norm(x3, weight, 1e-5)\noutputs: {y1: bf16, y2: bf16, y3: bf16}\n",
     NULL, "y1_rstd y2_rstd y3_rstd", NULL, NULL},
    {"ada_ln_bwd",
     "dims: {B: {hint: 32}, S: {hint: 256}, N: 1024}\n"
     "inputs: {x: \"bf16[B, S, N]\", scale: \"bf16[B, N]\", shift: \"bf16[B, N]\"}\n"
     "nodes:\n  y: layer_norm(x) * (1 + scale[:, None]) + shift[:, None]\noutputs: {y: bf16}\n",
     NULL, NULL, NULL, NULL},
};

typedef struct Work {
    const Example *example;
    const char *text; /* of the backward graph */
    Unit unit;
    uint32_t ops[OP_COUNT], reductions[REDUCTION_COUNT];
    uint32_t counted;
} Work;

static Names names_of(Job *job, const char *text) {
    IR_LIST(const char *) names = {0};
    while (text && *text) {
        const size_t length = strcspn(text, " ");
        *IR_PUSH(job, &names) = ir_copy_text(job, text, length);
        text += length + strspn(text + length, " ");
    }
    return (Names){names.at, names.count};
}

static void derive(Job *job, void *state) {
    Work *work = state;
    const GenOptions options = {.target = gen_target(90)};
    const char *text = ir_format(job, "graph: derived\n%s", work->example->forward);
    gen_run(job, &work->unit, "forward", text, strlen(text), &options, gen_pass_find("parse"));
    const GradOptions wanted = {.wrt = names_of(job, work->example->wrt),
                                .recompute = names_of(job, work->example->recompute)};
    Text backward = ir_text(job);
    gen_grad_backward(&backward, gen_grad(job, work->unit.graph, &wanted));
    work->text = ir_text_string(&backward);
}

static void read_by_hand(Job *job, void *state) {
    Work *work = state;
    size_t count;
    work->text = case_file(job, ir_format(job, "examples/%s.yaml", work->example->by_hand), &count);
    const char *from = work->example->from, *at = from ? strstr(work->text, from) : NULL;
    if (!from) return;
    if (!at) IR_BREACH(job, "\"%s\" is not in examples/%s.yaml", from, work->example->by_hand);
    work->text = ir_format(job, "%.*s%s%s", (int)(at - work->text), work->text, work->example->to, at + strlen(from));
}

static void count_ops(void *state, Job *job, const Unit *unit, uint32_t pass) {
    Work *work = state;
    (void)job;
    if (pass != gen_pass_find("simplify")) return;
    for (uint32_t i = 0; i < unit->graph->values.count; i++) {
        const Value *value = &unit->graph->values.at[i];
        if (value->op == OP_REDUCE) work->reductions[value->reduction]++;
        if (value->op < OP_PRIMITIVES || value->op == OP_CAST) work->ops[value->op]++;
        work->counted += value->op == OP_REDUCE || value->op < OP_PRIMITIVES || value->op == OP_CAST;
    }
}

static void plan(Job *job, void *state) {
    Work *work = state;
    const GenOptions options = {.target = gen_target(90), .verify = true, .after = count_ops, .after_state = work};
    gen_run(job, &work->unit, "backward", work->text, strlen(work->text), &options, gen_pass_find("schedule"));
}

static const char *ops_in_words(Job *job, const Work *work) {
    Text text = ir_text(job);
    for (uint32_t op = 0; op < OP_COUNT; op++)
        if (work->ops[op]) ir_text_format(&text, " %u %s", work->ops[op], ir_op_name((Op)op));
    for (uint32_t r = 0; r < REDUCTION_COUNT; r++)
        if (work->reductions[r])
            ir_text_format(&text, " %u reduce %s", work->reductions[r], ir_reduction((Reduction)r)->name);
    return ir_text_string(&text);
}

static int compare_lines(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* In an order of their own: which of two sums is finished first is left to the graph. */
static const char *kernels_in_words(Job *job, const Work *work) {
    const uint32_t count = work->unit.plan->steps.count;
    const char **lines = IR_NEW_ARRAY(job, const char *, count + 1);
    for (uint32_t s = 0; s < count; s++) {
        Text line = ir_text(job);
        kernel_words(job, &line, &work->unit, &work->unit.plan->steps.at[s]);
        lines[s] = ir_text_string(&line);
    }
    qsort(lines, count, sizeof *lines, compare_lines);
    Text text = ir_text(job);
    for (uint32_t s = 0; s < count; s++) ir_text_format(&text, "    %s\n", lines[s]);
    return ir_text_string(&text);
}

static void must(Job *job, void (*work)(Job *, void *), Work *state) {
    if (ir_job_run(job, work, state)) fail_msg("%s: %s", state->example->by_hand, ir_job_report(job));
}

static bool same(const Example *example, const char *what, const char *by_hand, const char *derived) {
    if (!strcmp(by_hand, derived)) return true;
    print_message("%s, %s:\n  by hand\n%s\n  derived\n%s\n", example->by_hand, what, by_hand, derived);
    return false;
}

static void test_same(void **state) {
    (void)state;
    uint32_t failed = 0, ops = 0, kernels = 0;
    for (uint32_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        Job *job = ir_job_create(NULL);
        Work by_hand = {.example = &examples[i]}, derived = by_hand;
        must(job, read_by_hand, &by_hand);
        must(job, derive, &derived);
        must(job, plan, &by_hand);
        must(job, plan, &derived);
        bool all = same(&examples[i], "operations", ops_in_words(job, &by_hand), ops_in_words(job, &derived));
        all &= same(&examples[i], "kernels", kernels_in_words(job, &by_hand), kernels_in_words(job, &derived));
        if (!all) print_message("%s\n", derived.text);
        failed += !all;
        ops += derived.counted;
        kernels += derived.unit.plan->steps.count;
        ir_job_free(job);
    }
    print_message("# %u backward graphs, %u operations in %u kernels, as by hand\n",
                  (uint32_t)(sizeof examples / sizeof *examples), ops, kernels);
    assert_int_equal(failed, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same)};
    return cmocka_run_group_tests_name("grad_examples", tests, NULL, NULL);
}
