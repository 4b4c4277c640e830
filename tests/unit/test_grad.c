/* The gradients that grad derives: every operation, reduction and composite of the tables, views, broadcasts over every
 * pattern of axes, second uses, several outputs, against dual numbers (a whole column of the Jacobian for each element)
 * and central differences; and at points where a derivative is a matter of agreement, PyTorch's. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/front.h"
#include "tests/support/grad_case.h"

typedef struct Totals {
    GradFound found;
    uint32_t graphs;
} Totals;

static const double domains[][2] = {{0.3, 1.8}, {-1.8, -0.3}, {-3, 3}};
enum { DOMAINS = sizeof domains / sizeof *domains, DIFFERENCED = 12 };

typedef struct One { /* one graph over all domains */
    const char *text, *what;
    GradOptions options;
    uint64_t seed;
    uint32_t covered; /* domains on which it is defined */
    Totals *totals;
} One;

static void run_one(Job *job, void *state) {
    One *one = state;
    const Exact *exact = gen_exact(job, grad_parse(job, one->text), &one->options);
    const int64_t *dims = grad_dims(job, exact->graph, 3);
    Random random = {one->seed};
    for (uint32_t d = 0; d < DOMAINS; d++) {
        const GradData data = grad_data(job, exact, dims, &random, domains[d][0], domains[d][1]);
        const GradFound found = grad_compare(job, exact, &data, one->what, DIFFERENCED, &random);
        one->covered += !found.undefined;
        one->totals->found.elements += found.elements;
        one->totals->found.differed += found.differed;
        one->totals->found.unsure += found.unsure;
        one->totals->found.failed += found.failed;
    }
    one->totals->graphs++;
}

/* Fails the test where the gradients cannot be made, or the graph is defined nowhere. */
static void check_graph(Totals *totals, uint64_t seed, const char *what, const char *text, const GradOptions *options) {
    One one = {.text = text, .what = what, .seed = seed, .totals = totals};
    if (options) one.options = *options;
    Job *job = ir_job_create(NULL);
    const Status status = ir_job_run(job, run_one, &one);
    if (status != STATUS_OK) fail_msg("%s: %s\n%s", what, ir_job_report(job), text);
    if (!one.covered) fail_msg("%s is defined nowhere:\n%s", what, text);
    ir_job_free(job);
}

static void check_totals(const Totals *totals, const char *what) {
    const GradFound *found = &totals->found;
    printf("# %s: %u graphs, %llu elements by dual numbers, %llu by differences (%llu unsure)\n", what, totals->graphs,
           (unsigned long long)found->elements, (unsigned long long)found->differed, (unsigned long long)found->unsure);
    assert_true(found->elements > 0 && found->differed > 0);
    assert_true(found->unsure * 50 <= found->differed);
    assert_int_equal(found->failed, 0);
}

static Random start(void) { return (Random){random_seed()}; }

static const char *graph_of(Job *job, const char *inputs, const char *nodes, const char *outputs) {
    return ir_format(job, "graph: g\ndims: {K: 2, M: any, N: 5}\ninputs: {%s}\nnodes:\n%soutputs: {%s}\n", inputs,
                     nodes, outputs);
}

/* ---- the tables ---- */

static const char *call_of(Job *job, Op op) {
    const OpRow *row = ir_op(op);
    if (op == OP_WHERE) return "where(c, a, b)";
    if (row->symbol[0])
        return row->arity == 1 ? ir_format(job, "%sa", row->symbol) : ir_format(job, "a %s b", row->symbol);
    return ir_format(job, row->arity == 1 ? "%s(a)" : "%s(a, b)", row->name);
}

/* What it gives takes part in a float; where it is constant, its operands must come through beside it. */
static const char *nodes_of(Job *job, Op op) {
    const OpRow *row = ir_op(op);
    const char *call = call_of(job, op);
    bool constant = true;
    for (uint32_t k = 0; k < 3; k++) constant &= !row->derivative_text[k] || !strcmp(row->derivative_text[k], "0");
    if (row->rule == RULE_COMPARE || row->rule == RULE_TEST)
        return ir_format(job, "  y: 'where(%s, a, 2 * a) * b'\n", call);
    return ir_format(job, constant ? "  y: '%s + a * b'\n" : "  y: '%s'\n", call);
}

static void every_operation(void **state) {
    (void)state;
    Random random = start();
    Totals totals = {0};
    static const char *const dtypes[] = {"f64", "f32", "bf16"};
    for (Op op = 0; op < OP_PRIMITIVES; op++) {
        if (ir_op(op)->rule == RULE_LOGIC) continue; /* no float in, none out */
        for (uint32_t t = 0; t < 3; t++) {
            Job *job = ir_job_create(NULL);
            const char *type = dtypes[t];
            const char *inputs = ir_format(job, "a: '%s[K, N]', b: '%s[K, N]', c: 'bool[K, N]'", type, type);
            check_graph(&totals, random_bits(&random), ir_op(op)->name,
                        graph_of(job, inputs, nodes_of(job, op), ir_format(job, "y: %s", type)), NULL);
            ir_job_free(job);
        }
    }
    check_totals(&totals, "operations");
}

static void every_reduction(void **state) {
    (void)state;
    Random random = start();
    Totals totals = {0};
    for (Reduction r = 0; r < REDUCTION_COUNT; r++) {
        const ReductionRow *row = ir_reduction(r);
        if (!row->language[0] || r == REDUCTION_ANY || r == REDUCTION_ALL) continue;
        for (uint32_t dims = 1; dims < 8; dims++)
            for (uint32_t keep = 0; keep < 2; keep++) {
                Job *job = ir_job_create(NULL);
                Text list = ir_text(job);
                for (uint32_t d = 0; d < 3; d++)
                    if (dims >> d & 1) ir_text_format(&list, "%s%u", list.count ? ", " : "", d);
                const char *nodes = ir_format(job, "  y: '%s(x * x, dim=[%s], keepdim=%s)'\n", row->language,
                                              ir_text_string(&list), keep ? "True" : "False");
                check_graph(&totals, random_bits(&random), row->language,
                            graph_of(job, "x: 'f64[K, M, N]'", nodes, "y: f64"), NULL);
                ir_job_free(job);
            }
    }
    check_totals(&totals, "reductions");
}

/* What a composite's parameter is given; NULL: it is left out. choice: of those with more than one. */
static const char *argument_of(Job *job, const Function *function, uint32_t p, uint32_t choice) {
    static const struct {
        const char *name, *given[2];
    } known[] = {{"x", {"x", "x"}},           {"a", {"x", "x"}},          {"b", {"z", "w"}},
                 {"weight", {"w", NULL}},     {"bias", {"b", NULL}},      {"eps", {"0.125", "0.01"}},
                 {"dim", {"-1", "1"}},        {"min", {"-0.8", "w"}},     {"max", {"0.9", NULL}},
                 {"correction", {NULL, "0"}}, {"keepdim", {NULL, "True"}}};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (!strcmp(function->params[p], known[k].name)) return known[k].given[choice];
    if (!function->required[p] && function->defaults[p].kind == ARG_TEXT)
        return ir_format(job, "\"%s\"", function->defaults[p].text);
    if (function->required[p]) fail_msg("%s: nothing to give for %s", function->name, function->params[p]);
    return NULL;
}

/* A weight runs along dim 2: with dim 1 there is none. */
static const char *composite_call(Job *job, uint32_t line, uint32_t choice) {
    Front front = {.job = job, .graph = ir_graph_create(job, "g")};
    const Function *function = gen_composite(&front, line);
    Text call = ir_text(job);
    ir_text_format(&call, "%s(", function->name);
    for (uint32_t p = 0, given = 0; p < function->count; p++) {
        const char *argument = argument_of(job, function, p, choice);
        if (argument) ir_text_format(&call, "%s%s=%s", given++ ? ", " : "", function->params[p], argument);
    }
    ir_text_put(&call, ")");
    return ir_text_string(&call);
}

/* How a composite's value is used: as it is, again, summed in whole or in part (its gradient then lacks dims). */
static const char *const uses[] = {"  y: '%s'\n", "  h: '%s'\n  y: 'h * h + sum(x)'\n", "  y: 'sum(%s)'\n",
                                   "  y: 'sum(%s, 0) * 2'\n"};
enum { USES = sizeof uses / sizeof *uses, CALLS = 2 * USES };

typedef struct Calls { /* of one composite */
    uint32_t line;
    const char *text[CALLS], *call[CALLS];
} Calls;

static const char *used(Job *job, const char *use, const char *call) {
    const char *at = strstr(use, "%s");
    return ir_format(job, "%.*s%s%s", (int)(at - use), use, call, at + 2);
}

static void write_calls(Job *job, void *state) {
    Calls *calls = state;
    for (uint32_t k = 0; k < CALLS; k++) {
        const char *call = calls->call[k] = composite_call(job, calls->line, k % 2);
        const char *type = k % 3 ? "f64" : "bf16";
        const char *inputs =
            ir_format(job, "x: '%s[K, M, N]', z: '%s[K, M, N]', w: '%s[N]', b: '%s[N]'", type, type, type, type);
        calls->text[k] = graph_of(job, inputs, used(job, uses[k / 2], call), ir_format(job, "y: %s", type));
    }
}

static void every_composite(void **state) {
    (void)state;
    Random random = start();
    Totals totals = {0};
    for (uint32_t line = 0; line < gen_composite_count; line++) {
        Job *job = ir_job_create(NULL);
        Calls calls = {.line = line};
        const Status status = ir_job_run(job, write_calls, &calls);
        if (status != STATUS_OK) fail_msg("line %u: %s", line, ir_job_report(job));
        for (uint32_t k = 0; k < CALLS; k++)
            check_graph(&totals, random_bits(&random), calls.call[k], calls.text[k], NULL);
        ir_job_free(job);
    }
    check_totals(&totals, "composites");
}

typedef struct Two { /* one graph's gradients by lines of the table and by its formulas alone */
    const char *text, *what;
    uint64_t seed;
    uint64_t elements;
} Two;

static void compare_ways(Job *job, void *state) {
    Two *two = state;
    const GradOptions options = {.wrt = {NULL, 0}};
    const Graph *graph = grad_parse(job, two->text);
    const Exact *by_line = gen_exact(job, graph, &options);
    const Exact *by_formula = gen_exact(job, gen_exact_graph(job, graph), &options);
    const int64_t *dims = grad_dims(job, by_line->graph, 3);
    Random random = {two->seed};
    for (uint32_t d = 0; d < DOMAINS; d++) {
        const GradData data = grad_data(job, by_line, dims, &random, domains[d][0], domains[d][1]);
        const ExactInput given = {&data.input, data.weight};
        const Expected *a = gen_exact_gradients(job, by_line, by_line->backward, &given);
        const Expected *b = gen_exact_gradients(job, by_formula, by_formula->backward, &given);
        assert_int_equal(by_line->backward->outputs.count, by_formula->backward->outputs.count);
        for (uint32_t o = 0; o < by_line->backward->outputs.count; o++) {
            assert_int_equal(a[o].count, b[o].count);
            for (uint64_t i = 0; i < a[o].count; i++) {
                const double bound = a[o].bound[i] + b[o].bound[i] + ir_ulp(DTYPE_F64, b[o].number[i]);
                if (isnan(a[o].number[i]) && isnan(b[o].number[i])) continue;
                if (!(fabs(a[o].number[i] - b[o].number[i]) <= bound))
                    fail_msg("%s: %s[%llu] is %.17g by its line, %.17g by its formula", two->what,
                             by_line->backward->outputs.at[o].name, (unsigned long long)i, a[o].number[i],
                             b[o].number[i]);
                if (isfinite(bound)) two->elements++;
            }
        }
    }
}

static void lines_are_the_formulas(void **state) {
    (void)state;
    Random random = start();
    uint32_t lines = 0;
    uint64_t elements = 0;
    for (uint32_t line = 0; line < gen_composite_count; line++) {
        if (!*gen_composite_derivative(line)) continue;
        Job *job = ir_job_create(NULL);
        Calls calls = {.line = line};
        if (ir_job_run(job, write_calls, &calls)) fail_msg("line %u: %s", line, ir_job_report(job));
        for (uint32_t k = 0; k < CALLS; k++) {
            Two two = {.text = calls.text[k], .what = calls.call[k], .seed = random_bits(&random)};
            if (ir_job_run(job, compare_ways, &two)) fail_msg("%s: %s", two.what, ir_job_report(job));
            if (!two.elements) fail_msg("%s: nothing was compared", two.what);
            elements += two.elements;
        }
        ir_job_free(job);
        lines++;
    }
    printf("# %u derivative lines as the gradients of their formulas, %llu elements\n", lines,
           (unsigned long long)elements);
    assert_true(lines >= 10);
}

/* ---- shapes ---- */

/* Dims of an operand as bits of `have` (else 1), the first `missing` left out. */
static const char *shape_text(Job *job, uint32_t rank, uint32_t have, uint32_t missing) {
    static const char *const names[] = {"K", "M", "N"};
    Text text = ir_text(job);
    for (uint32_t d = missing; d < rank; d++)
        ir_text_format(&text, "%s%s", d > missing ? ", " : "", have >> d & 1 ? names[d + 3 - rank] : "1");
    return ir_text_string(&text);
}

static void every_broadcast(void **state) {
    (void)state;
    Random random = start();
    Totals totals = {0};
    for (uint32_t rank = 1; rank <= 3; rank++)
        for (uint32_t a = 0; a < 1u << rank; a++)
            for (uint32_t missing = 0; missing <= rank; missing++)
                for (uint32_t b = 0; b < 1u << (rank - missing); b++) {
                    Job *job = ir_job_create(NULL);
                    const char *inputs = ir_format(job, "a: 'f64[%s]', b: 'f64[%s]'", shape_text(job, rank, a, 0),
                                                   shape_text(job, rank, b << missing, missing));
                    check_graph(&totals, random_bits(&random), inputs,
                                graph_of(job, inputs, "  y: 'a * b + where(a > b, a, b * b)'\n", "y: f64"), NULL);
                    ir_job_free(job);
                }
    check_totals(&totals, "broadcasts");
}

static const struct {
    const char *what, *inputs, *nodes, *outputs, *wrt; /* NULL: all */
} shapes[] = {
    {"slice", "x: 'f64[K, N]'", "  y: 'x[:, 1:N-1] * x[:, 2:N]'\n", "y: f64", NULL},
    {"one index", "x: 'f64[K, N]'", "  y: 'x[1] * x[:, 2:3] + x[0, 4]'\n", "y: f64", NULL},
    {"slice by any dim", "x: 'f64[M, N]'", "  y: 'x[:M-1] * x[1:]'\n", "y: f64", NULL},
    {"new axes", "x: 'f64[N]', z: 'f64[K]'", "  y: 'x[None, :] * z[:, None] + exp(z)[:, None] * z[:, None]'\n",
     "y: f64", NULL},
    {"reshape", "x: 'f64[K, N]'", "  y: 'reshape(x, [K * N]) * reshape(exp(x), [K * N])'\n", "y: f64", NULL},
    {"reshape of a slice", "x: 'f64[K, M, N]'", "  y: 'reshape(x[:, :, 1:], [K * M, 4])[:, 1:3]'\n", "y: f64", NULL},
    {"index by a tensor beside", "x: 'f64[K, N]', t: 'f64[3, N]'", "  y: 'x * t[arange(K) + 1]'\n", "y: f64", "x"},
    {"the same twice", "x: 'f64[K, N]'", "  y: 'x * x + x'\n", "y: f64", NULL},
    {"many uses", "x: 'f64[K, N]'", "  h: 'x * sigmoid(x)'\n  y: 'h * mean(h, -1, True) + exp(h) * x'\n", "y: f64",
     NULL},
    {"a node and a use of it", "x: 'f64[K, N]'", "  h: 'tanh(x)'\n  y: 'h * h'\n", "y: f64, h: f64", NULL},
    {"one node as two outputs", "x: 'f64[K, N]'", "  h: 'tanh(x)'\n", "h: f64, g: {dtype: f32, of: h}", NULL},
    {"an input as output", "x: 'f64[K, N]'", "  y: 'x * x'\n", "y: f64, x2: {dtype: f64, of: x}", NULL},
    {"shared weight", "x: 'f64[K, N]', z: 'f64[M, N]', w: 'f64[N]'",
     "  y: 'rms_norm(x, w, 0.125)'\n  v: 'layer_norm(z, w, w * 2)'\n", "y: f64, v: f64", NULL},
    {"shared by two shapes", "x: 'f64[K, N]', w: 'f64[N]', s: 'f64[]'", "  y: 'x * w * s + sum(w) * s'\n", "y: f64",
     NULL},
    {"casts", "x: 'f32[K, N]'", "  y: 'cast(cast(x * x, bf16) * x, f16) + cast(x, f64)'\n", "y: f64", NULL},
    {"casts to integers", "x: 'f32[K, N]'", "  y: 'x * cast(x * 2, i32) + cast(x > 0.5, f32) * x'\n", "y: bf16", NULL},
    {"mixed dtypes", "x: 'bf16[K, N]', w: 'f64[N]', v: 'f32[K, 1]'", "  y: 'x * w + v * x'\n", "y: f16", NULL},
    {"norm by hand", "x: 'f32[K, N]', w: 'f32[N]'",
     "  m: 'mean(x, -1, True)'\n  r: 'rsqrt(mean((x - m) * (x - m), -1, True) + 1e-3)'\n  y: '(x - m) * r * w'\n",
     "y: bf16", NULL},
    {"statistics too", "x: 'bf16[K, N]', w: 'f32[N]', b: 'f32[N]'",
     "  y: 'layer_norm(x, w, b, 1e-3)'\n  m: 'mean(x, -1, True)'\n  r: 'rsqrt(var(x, -1, 0, True) + 1e-3)'\n",
     "y: bf16, m: f32, r: f32", NULL},
    {"causal softmax", "s: 'f64[K, N, N]'",
     "  keep: 'arange(N) <= arange(N)[:, None]'\n  y: 'softmax(where(keep, s * 0.5, -inf), dim=-1)'\n", "y: f64", NULL},
    {"group norm", "x: 'f64[K, 4, N]', w: 'f64[4]'",
     "  g: 'reshape(x, [K, 2, 2, N])'\n  n: '(g - mean(g, [2, 3], True)) * rsqrt(var(g, [2, 3], 0, True) + 1e-3)'\n"
     "  y: 'silu(reshape(n, [K, 4, N]) * w[:, None])'\n",
     "y: f64", NULL},
    {"add and norm, both paths", "x: 'f64[K, N]', r: 'f64[K, N]', w: 'f64[N]'",
     "  h: 'x + r'\n  y: 'rms_norm(h, w, 1e-3)'\n", "y: f64, h: f64", NULL},
    {"integers beside", "x: 'f64[K, N]', k: 'i64[K, 1]', m: 'bool[N]'", "  y: 'where(m, x * k, x / (k + 1))'\n",
     "y: f64", NULL},
    {"integer output beside", "x: 'f64[K, N]'", "  y: 'x * x'\n  q: 'cast(x, i32)'\n", "y: f64, q: i32", NULL},
    {"fp8 with a scale", "x: 'bf16[K, N]'", "  s: 'maximum(amax(abs(x), -1, True) / 448, 1e-6)'\n  q: 'x / s'\n",
     "q: f8e4m3, s: f32", NULL},
    {"extremes of extremes", "x: 'f64[K, M, N]'", "  y: 'amax(amin(x, 1) * sum(x, 1), -1)'\n", "y: f64", NULL},
    {"reductions of one number", "s: 'f64[]', w: 'f64[N]'",
     "  y: 'amax(s * s) * w + amin(s, keepdim=True) * prod(exp(s)) + sum(s)'\n", "y: f64", NULL},
    {"everything in one number", "x: 'f64[K, N]', w: 'f64[N]'", "  y: 'sum(log1p(x * x) * w)'\n", "y: f64", NULL},
};

static void shapes_and_uses(void **state) {
    (void)state;
    Random random = start();
    Totals totals = {0};
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        Job *job = ir_job_create(NULL);
        const GradOptions options = {.wrt = {&shapes[k].wrt, shapes[k].wrt ? 1 : 0}};
        check_graph(&totals, random_bits(&random), shapes[k].what,
                    graph_of(job, shapes[k].inputs, shapes[k].nodes, shapes[k].outputs), &options);
        ir_job_free(job);
    }
    check_totals(&totals, "views, uses, casts");
}

static void some_of_both(void **state) {
    (void)state;
    Random random = start();
    Totals totals = {0};
    const char *const wrt[] = {"w"}, *const of[] = {"h"};
    const GradOptions options[] = {{.wrt = {wrt, 1}}, {.of = {of, 1}}, {.wrt = {wrt, 1}, .of = {of, 1}}};
    Job *job = ir_job_create(NULL);
    const char *text =
        graph_of(job, "x: 'f64[K, N]', w: 'f64[N]'", "  h: 'x * w'\n  y: 'l2_norm(h, 1e-3) + x'\n", "y: f64, h: f64");
    for (uint32_t k = 0; k < 3; k++) check_graph(&totals, random_bits(&random), "wrt, of", text, &options[k]);
    ir_job_free(job);
    check_totals(&totals, "wrt and of");
}

/* ---- points where a derivative is a matter of agreement ---- */

#define INF ((double)INFINITY)

static const struct {
    const char *y;
    uint32_t count;
    double x[4], d_x[4]; /* the gradient of the output being all 1 */
} points[] = {
    {"relu(x)", 3, {0, -1, 2}, {0, 0, 1}},
    {"abs(x)", 3, {0, -1, 2}, {0, -1, 1}},
    {"maximum(x, 1)", 3, {1, 0, 2}, {0.5, 0, 1}},
    {"minimum(x, 1)", 3, {1, 0, 2}, {0.5, 1, 0}},
    {"maximum(x, x)", 2, {1, -1}, {1, 1}},
    {"clamp(x, 0, 1)", 4, {0, 1, 0.5, 2}, {1, 1, 1, 0}},
    {"clamp(x, 1, -1)", 3, {0, 2, -2}, {0, 0, 0}},
    {"clamp(x, min=0)", 3, {0, 1, -2}, {1, 1, 0}},
    {"clamp(x, max=0)", 3, {0, 1, -2}, {1, 0, 1}},
    {"amax(x, -1)", 4, {3, 3, 1, 3}, {1 / 3.0, 1 / 3.0, 0, 1 / 3.0}},
    {"amin(x, -1)", 4, {1, 3, 1, 3}, {0.5, 0, 0.5, 0}},
    {"prod(x, -1)", 3, {2, 4, 3}, {12, 6, 8}},
    {"prod(x, -1)", 3, {2, 0, 3}, {0, 6, 0}},
    {"prod(x, -1)", 3, {0, 0, 3}, {0, 0, 0}},
    {"x ** 2", 3, {0, -3, 2}, {0, -6, 4}},
    {"x ** 3", 2, {0, -2}, {0, 12}},
    {"x ** 1", 2, {0, 5}, {1, 1}},
    {"x ** 0", 2, {0, 5}, {0, 0}},
    {"0 ** x", 2, {2, 3}, {0, 0}},
    {"softplus(x)", 4, {100, 1000, -1000, 0}, {1, 1, 0, 0.5}},
    {"softplus(x, 2)", 2, {1e4, -1e4}, {1, 0}},
    {"sigmoid(x)", 3, {1000, -1000, 0}, {0, 0, 0.25}},
    {"tanh(x)", 3, {1000, -1000, 0}, {0, 0, 1}},
    {"silu(x)", 3, {1000, -1000, 0}, {1, 0, 0.5}},
    {"gelu(x)", 3, {100, -100, 0}, {1, 0, 0.5}},
    {"gelu(x, \"tanh\")", 3, {100, -100, 0}, {1, 0, 0.5}},
    {"where(x > 0, x, inf)", 3, {-1, 2, 0}, {0, 1, 0}},
    {"where(x > 0, -inf, 3 * x)", 3, {-1, 2, 0}, {3, 0, 3}},
    {"exp(where(x > 0, -inf, x))", 2, {0, 2}, {1, 0}},
    {"softmax(where(x > 5, -inf, x), -1)", 3, {1, 1, 9}, {0, 0, 0}},
    {"logsumexp(x, -1)", 3, {-INF, 1, 1}, {0, 0.5, 0.5}},
    {"logsumexp(x, -1)", 2, {-INF, -INF}, {0, 0}}, /* a row of which all is masked; PyTorch's: NaN */
    {"logsumexp(x, -1)", 3, {INF, 1, 2}, {NAN, 0, 0}},
    {"softmax(x, -1)", 3, {-INF, 1, 1}, {0, 0, 0}},
    {"std(x, -1)", 3, {2, 2, 2}, {0, 0, 0}},
    {"var(x, -1)", 3, {2, 2, 2}, {0, 0, 0}},
    {"floor(x) + x", 3, {1, 1.5, -2}, {1, 1, 1}},
    {"round(x) * x", 2, {1.25, -1.75}, {1, -2}},
    {"sign(x) * x", 3, {0, 2, -2}, {0, 1, -1}},
    {"x % 3 + x // 3", 2, {4, -4}, {1, 1}},
};

typedef struct At {
    size_t point;
    uint32_t failed;
} At;

static void run_point(Job *job, void *state) {
    At *at = state;
    const uint32_t count = points[at->point].count;
    const char *text = ir_format(job, "graph: g\ninputs: {x: 'f64[%u]'}\nnodes: {y: '%s'}\noutputs: {y: f64}\n", count,
                                 points[at->point].y);
    const Exact *exact = gen_exact(job, grad_parse(job, text), &(GradOptions){0});
    Random random = {1};
    const GradData data = grad_data(job, exact, grad_dims(job, exact->graph, 1), &random, 1, 2);
    double ones[4] = {1, 1, 1, 1};
    const double *weight = ones;
    memcpy(data.number[0], points[at->point].x, count * sizeof(double));
    const Expected *gradient = gen_exact_gradients(job, exact, exact->backward, &(ExactInput){&data.input, &weight});
    assert_int_equal(gradient->count, count);
    for (uint32_t i = 0; i < count; i++) {
        const double expected = points[at->point].d_x[i];
        if (fabs(gradient->number[i] - expected) <= 1e-15 || (isnan(expected) && isnan(gradient->number[i]))) continue;
        at->failed++;
        printf("%s at %g: d_x %.17g, not %.17g\n", points[at->point].y, points[at->point].x[i], gradient->number[i],
               expected);
    }
}

static void points_of_agreement(void **state) {
    (void)state;
    uint32_t failed = 0;
    for (size_t k = 0; k < sizeof points / sizeof *points; k++) {
        Job *job = ir_job_create(NULL);
        At at = {k, 0};
        const Status status = ir_job_run(job, run_point, &at);
        if (status != STATUS_OK) fail_msg("%s: %s", points[k].y, ir_job_report(job));
        failed += at.failed;
        ir_job_free(job);
    }
    assert_int_equal(failed, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_operation), cmocka_unit_test(every_reduction),
                                       cmocka_unit_test(every_composite), cmocka_unit_test(lines_are_the_formulas),
                                       cmocka_unit_test(every_broadcast), cmocka_unit_test(shapes_and_uses),
                                       cmocka_unit_test(some_of_both),    cmocka_unit_test(points_of_agreement)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
