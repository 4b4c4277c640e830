/* Steps that launch one code: which ones do and which near ones do not; that what they share is the text of each,
 * written out with numbers for names; that a launch gives each its own pointers and sizes. NORMGEN_SEED repeats a run.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "gen/emit.h"
#include "gen/schedule.h"
#include "tests/support/device_case.h"
#include "tests/support/generate.h"
#include "tests/support/graph_text.h"
#include "tests/support/many_kernels.h"
#include "tests/support/random_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which are twins ---- */

typedef struct Case {
    const char *name;
    const char *graph; /* from dims: on, ' for "; or a path */
    const char *sets;
    const char *codes; /* of each step */
} Case;

#define TWO(inputs, y, z, outputs)                                                                                     \
    "{M: any, K: {hint: 64}, N: 64}\ninputs: {" inputs "}\nscalars: {s: 0.5, t: 2.0}\nnodes: {y: '" y "', z: '" z      \
    "'}\noutputs: {" outputs "}"
#define XU "x: 'f32[M, N]', u: 'f32[M, N]', w: 'f32[N]'"
#define YZ "y: f32, z: f32"
#define NORM(x) "rms_norm(" x ", w, 1e-5)"
#define SLICES                                                                                                         \
    "a: 'f32[M, 2 * N]', b: 'f32[M, 2 * N]', c: 'f32[M, 2 * N]', d: 'f32[M, 2 * N]', x: 'f32[M, N]', u: 'f32[M, N]'"

static const Case cases[] = {
    {"other names", TWO(XU, NORM("x"), NORM("u"), YZ), NULL, "0 0"},
    {"other places in the file", TWO("x: 'f32[M, N]', w: 'f32[N]', u: 'f32[M, N]'", NORM("x"), NORM("u"), YZ), NULL,
     "0 0"},
    {"both in another order", TWO(SLICES, "a - b", "d - c", YZ), NULL, "0 0"},
    {"three by turns",
     "{M: any, N: 64}\ninputs: {a: 'f32[M, N]', b: 'f32[M, N]', c: 'f32[M, N]'}\n"
     "nodes: {x: 'softmax(a, -1)', y: 'log_softmax(b, -1)', z: 'softmax(c, -1)'}\n"
     "outputs: {x: f32, y: f32, z: f32}",
     NULL, "0 1 0"},
    {"the second's",
     "{M: any, N: 64}\ninputs: {a: 'f32[M, N]', b: 'f32[M, N]', c: 'f32[M, N]'}\n"
     "nodes: {x: 'softmax(a, -1)', y: 'amax(b, -1)', z: 'amax(c, -1)'}\n"
     "outputs: {x: f32, y: f32, z: f32}",
     NULL, "0 1 1"},
    {"norms that share a weight", "examples/rms_norm_shared_bwd.yaml", NULL, "0 0 0 3"},
    {"sums in parts of their own", TWO(XU, "sum(x, dim=0)", "sum(u, dim=0)", YZ), NULL, "0 0 2"},
    {"scalars of their own", TWO(XU, "exp(x) * s", "exp(u) * t", YZ), NULL, "0 0"},
    {"a knob at its default", TWO(XU, NORM("x"), NORM("u"), YZ), "f1.vector=4", "0 0"},
    {"in place, both", TWO(XU, NORM("x"), NORM("u"), "y: {dtype: f32, inplace: x}, z: {dtype: f32, inplace: u}"), NULL,
     "0 0"},
    /* near twins */
    {"a knob", TWO(XU, NORM("x"), NORM("u"), YZ), "f1.vector=2", "0 1"},
    {"a constant", TWO(XU, NORM("x"), "rms_norm(u, w, 1e-6)", YZ), NULL, "0 1"},
    {"a scalar and a constant", TWO(XU, "exp(x) * s", "exp(u) * 0.5", YZ), NULL, "0 1"},
    {"an operation", TWO(XU, "x + w", "u - w", YZ), NULL, "0 1"},
    {"operands", TWO(SLICES, "a - b", "c - 2 * d", YZ), NULL, "0 1"},
    {"a reduction", TWO(XU, "amax(x, dim=-1)", "amin(u, dim=-1)", YZ), NULL, "0 1"},
    {"an input's dtype", TWO("x: 'f32[M, N]', u: 'bf16[M, N]', w: 'f32[N]'", NORM("x"), NORM("u"), YZ), NULL, "0 1"},
    {"an output's dtype", TWO(XU, NORM("x"), NORM("u"), "y: f16, z: bf16"), NULL, "0 1"},
    {"a stride",
     TWO("x: 'f32[M, N]', u: {dtype: f32, shape: '[M, N]', strides: '[72, 1]'}, w: 'f32[N]'", NORM("x"), NORM("u"), YZ),
     NULL, "0 1"},
    {"an offset", TWO(SLICES, "a[:, :N] * 2", "c[:, N:] * 2", YZ), NULL, "0 1"},
    {"one buffer twice", TWO(SLICES, "a[:, :N] / x", "c[:, :N] / c[:, N:]", YZ), NULL, "0 1"},
    {"which is used twice", TWO(SLICES, "a[:, :N] / a[:, N:] - b[:, :N]", "c[:, :N] / d[:, N:] - d[:, :N]", YZ), NULL,
     "0 1"},
    {"in place", TWO(XU, NORM("x"), NORM("u"), "y: f32, z: {dtype: f32, inplace: u}"), NULL, "0 1"},
    {"in place of others", TWO(SLICES, "a / b", "c / d", "y: {dtype: f32, inplace: a}, z: {dtype: f32, inplace: d}"),
     NULL, "0 1"},
    {"accumulate", TWO(XU, NORM("x"), NORM("u"), "y: f32, z: {dtype: f32, accumulate: true}"), NULL, "0 1"},
    {"a dim of equal hint", TWO("x: 'f32[M, N]', u: 'f32[K, N]', w: 'f32[N]'", NORM("x"), NORM("u"), YZ), NULL, "0 1"},
    {"a dim and a number", TWO("x: 'f32[M, N]', u: 'f32[64, N]', w: 'f32[N]'", NORM("x"), NORM("u"), YZ), NULL, "0 1"},
    {"what an index must be below", TWO("i: 'i64[M]', x: 'f32[10, N]', u: 'f32[20, N]'", "exp(x[i])", "exp(u[i])", YZ),
     NULL, "0 1"},
    /* the sines before the sums: of one, rows may have no element */
    {"what may be empty beside a loop",
     "{M: any, D: any}\ninputs: {z: 'f32[M]', y: 'f32[M, D]', u: 'f32[M, D]',\n"
     "  x: {dtype: f32, shape: '[M, D]', strides: '[1, 0]'}}\n"
     "nodes: {fz: 'sin(z * D + 1)', fx: 'sin(x * D + 1)', b: 'sum(fz[:, None] * y, dim=1)', a: 'sum(fx * u, dim=1)'}\n"
     "outputs: {b: f32, a: f32}",
     "cut_statements=5", "0 1 2 3 4 5 6"},
};

static const char *case_text(Job *job, const Case *test) {
    size_t count;
    if (strstr(test->graph, ".yaml")) {
        char *file = graph_text_file(test->graph, &count);
        if (!file) fail_msg("%s cannot be read", test->graph);
        const char *copy = ir_copy_text(job, file, count);
        free(file);
        return copy;
    }
    char *text = ir_format(job, "graph: twins\ndims: %s\n", test->graph);
    for (char *c = text; *c; c++)
        if (*c == '\'') *c = '"';
    return text;
}

static Status generate(Job *job, const Case *test, Unit *unit) {
    return generate_text(job, unit, case_text(job, test), NULL, test->sets);
}

static const char *codes_text(Job *job, const Plan *plan) {
    Text text = ir_text(job);
    for (uint32_t s = 0; s < plan->steps.count; s++)
        ir_text_format(&text, "%s%u", s ? " " : "", plan->steps.at[s].code);
    return ir_text_string(&text);
}

static uint32_t times(const char *text, const char *what) {
    uint32_t count = 0;
    for (const char *at = strstr(text, what); at; at = strstr(at + 1, what)) count++;
    return count;
}

/* The text holds the kernels of its codes alone, numbered without gaps, and the launcher launches each step. */
static void check_source(Job *job, const Case *test, const Unit *unit) {
    const Source *source = &unit->source;
    uint32_t kernels = 0, launches = 0;
    for (uint32_t s = 0; s < unit->plan->steps.count; s++) {
        const Step *step = &unit->plan->steps.at[s];
        launches += step->variant_count;
        for (uint32_t v = 0; v < step->variant_count; v++) {
            const Variant *first = &unit->plan->steps.at[step->code].variants[v];
            assert_string_equal(step->variants[v].kernel, first->kernel);
            if (!gen_has_code(unit->plan, s)) continue;
            assert_string_equal(source->kernels[kernels], first->kernel);
            const char *own = ir_format(job, "NG_ONLY == %u\nNG_KERNEL", kernels++);
            if (times(source->device_text, own) != 1) fail_msg("%s: %s stands not once", test->name, own);
        }
    }
    assert_int_equal(source->kernel_count, kernels);
    assert_int_equal(gen_kernel_count(unit->plan), kernels);
    assert_int_equal(times(source->host_text, "\nNG_ENTRY("), kernels);
    assert_int_equal(times(source->device_text, "__launch_bounds__("), kernels);
    assert_int_equal(times(source->device_text, "<<<"), launches);
}

static void test_which(void **state) {
    (void)state;
    uint32_t twins = 0, own = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Job *job = ir_job_create(NULL);
        Unit unit = {0};
        if (generate(job, &cases[i], &unit)) fail_msg("%s: %s", cases[i].name, ir_job_report(job));
        const char *codes = codes_text(job, unit.plan);
        if (strcmp(codes, cases[i].codes) != 0)
            fail_msg("%s: the steps' codes are %s, expected %s", cases[i].name, codes, cases[i].codes);
        check_source(job, &cases[i], &unit);
        for (uint32_t s = 0; s < unit.plan->steps.count; s++) *(gen_has_code(unit.plan, s) ? &own : &twins) += 1;
        ir_job_free(job);
    }
    printf("# %u codes of their own, %u shared\n", own, twins);
}

/* ---- the text under numbers for names ---- */

static uint32_t number(Job *job, StmtList *list, uint32_t id) {
    uint32_t i = 0;
    while (i < list->count && list->at[i] != id) i++;
    if (i == list->count) *IR_PUSH(job, list) = id;
    return i;
}

static Step plain_step(Job *job, const Step *step, Prog *prog) {
    Step plain = *step;
    StmtList bufs = {0}, parts = {0};
    Nest *nest = &prog->nests.at[step->nest];
    for (uint32_t a = 0; a < nest->axis_count; a++) nest->axes[a].id = (char)('a' + a);
    for (uint32_t i = 0; i < nest->accesses.count; i++) (void)number(job, &bufs, nest->accesses.at[i].buf);
    for (uint32_t i = 0; i < bufs.count; i++) prog->bufs.at[bufs.at[i]].name = ir_format(job, "b%u", i);
    for (uint32_t i = 0; i < nest->stmts.count; i++) {
        nest->stmts.at[i].name = NULL;
        nest->stmts.at[i].place = (Place){0, 0};
    }
    plain.code = 0;
    plain.params = IR_NEW_ARRAY(job, Param, step->param_count);
    for (uint32_t i = 0; i < step->param_count; i++) {
        Param *param = &plain.params[i];
        *param = step->params[i];
        if (param->kind == PARAM_BUF) param->name = ir_format(job, "p%u", number(job, &bufs, param->buf));
        if (param->kind != PARAM_SIZE || param->size.kind != SIZE_PART) continue;
        param->name = ir_format(job, "Q%u", number(job, &parts, (uint32_t)param->size.value));
        prog->parts.at[param->size.value] = param->name;
    }
    for (uint32_t v = 0; v < step->variant_count; v++)
        plain.variants[v].kernel = ir_format(job, "k_%s", step->variants[v].label);
    return plain;
}

/* What a launch reads beside the text. */
static void put_launch(Text *text, const Prog *prog, const Step *step) {
    for (uint32_t v = 0; v < step->variant_count; v++)
        for (uint32_t g = 0; g < step->variants[v].guard_count; g++) {
            const Guard *guard = &step->variants[v].guards[g];
            ir_text_format(text, "guard %u: %d %lld ", v, guard->kind, (long long)guard->number);
            if (guard->kind == GUARD_ALIGNED)
                ir_text_put(text, step->params[guard->param].name);
            else
                ir_size_print(text, prog, guard->size);
            ir_text_put(text, "\n");
        }
    ir_text_format(text, "shared %u, threads %d\n", step->shared_bytes, step->tile.threads);
}

static const char *plain_text(Job *job, const Unit *unit, uint32_t s) {
    Text text = ir_text(job);
    Prog *prog = ir_prog_clone(job, unit->prog);
    Plan plan = {.name = "plain"};
    *IR_PUSH(job, &plan.steps) = plain_step(job, &unit->plan->steps.at[s], prog);
    Unit plain = {.prog = prog, .plan = &plan, .options = unit->options};
    int site = 0;
    gen_emit_step(job, &plain, 0, &site, &text);
    put_launch(&text, prog, &plan.steps.at[0]);
    return ir_text_string(&text);
}

typedef struct Counts {
    uint32_t units, steps, twins;
} Counts;

/* Steps of one code have one text, others have others. */
static void check_texts(Job *job, const Unit *unit, const char *what, Counts *counts) {
    const Plan *plan = unit->plan;
    const char **texts = IR_NEW_ARRAY(job, const char *, plan->steps.count + 1);
    for (uint32_t s = 0; s < plan->steps.count; s++) {
        const uint32_t code = plan->steps.at[s].code;
        texts[s] = plain_text(job, unit, s);
        assert_true(code <= s && gen_has_code(plan, code));
        if (strcmp(texts[s], texts[code]) != 0)
            fail_msg("%s: steps %u and %u share a code; their texts are\n%s\n%s", what, s, code, texts[s], texts[code]);
        for (uint32_t k = 0; k < s && code == s; k++)
            if (strcmp(texts[s], texts[k]) == 0)
                fail_msg("%s: steps %u and %u have one text:\n%s", what, s, k, texts[s]);
        counts->twins += code != s;
    }
    counts->steps += plan->steps.count;
    counts->units++;
}

/* ---- every nest twice ---- */

static Size shifted(Size size, uint32_t parts) {
    return size.kind == SIZE_PART ? (Size){SIZE_PART, size.value + parts} : size;
}

static void add_second(Job *job, Prog *prog, const Prog *from) {
    const uint32_t parts = from->parts.count, bufs = from->bufs.count;
    const Prog *copy = ir_prog_clone(job, from);
    for (uint32_t k = 0; k < parts; k++) *IR_PUSH(job, &prog->parts) = ir_format(job, "P%u", parts + k);
    for (uint32_t b = 0; b < bufs; b++) {
        Buf buf = copy->bufs.at[b];
        buf.name = ir_format(job, "%s_again", buf.name);
        if (buf.may_alias != IR_NONE) buf.may_alias += bufs;
        for (uint32_t d = 0; d < buf.rank; d++) buf.extent[d] = shifted(buf.extent[d], parts);
        *IR_PUSH(job, &prog->bufs) = buf;
    }
    for (uint32_t n = 0; n < from->nests.count; n++) {
        Nest nest = copy->nests.at[n];
        nest.name = ir_format(job, "%s_again", nest.name);
        for (uint32_t a = 0; a < nest.axis_count; a++) nest.axes[a].extent = shifted(nest.axes[a].extent, parts);
        for (uint32_t i = 0; i < nest.accesses.count; i++) nest.accesses.at[i].buf += bufs;
        *IR_PUSH(job, &prog->nests) = nest;
    }
}

/* ---- one thing of a step changed ---- */

static const char *const changes[] = {
    "min_ctas",      "threads",       "columns",      "width of columns", "read-only form", "width of offsets",
    "shared memory", "wide accesses", "rows",         "chunks",           "row_threads",    "constant",
    "add to sub",    "mul to add",    "sum to max",   "operand",          "offset",         "stride",
    "dtype",         "alias",         "extent",       "input to tmp",     "list",           "guard",
    "late load",     "unrolling",     "index extent",
};
enum { CHANGES = sizeof changes / sizeof *changes };

static StmtList *some_list(Step *step, Random *random) {
    Phase *phase = &step->phases[random_below(random, step->phase_count)];
    StmtList *lists[] = {&phase->loads, &phase->stores, &phase->row_stores, &step->ahead};
    return lists[random_below(random, 4)];
}

/* False where the step has no such thing. What comes of it may compute nonsense: it is only written out. */
static bool change(Unit *unit, uint32_t s, uint32_t what, Random *random) {
    Step *step = &unit->plan->steps.at[s];
    Prog *prog = unit->prog;
    Nest *nest = &prog->nests.at[step->nest];
    const uint32_t id = random_below(random, nest->accesses.count);
    Access *access = &nest->accesses.at[id];
    Form *form = &step->forms[id];
    Buf *buf = &prog->bufs.at[access->buf];
    const uint32_t number = random_below(random, nest->stmts.count);
    Stmt *stmt = &nest->stmts.at[number];
    const uint32_t axis = random_below(random, nest->axis_count);
    StmtList *list = some_list(step, random);
    switch (what) {
    case 0: return step->tile.min_ctas++, true;
    case 1: return step->tile.threads *= 2, true;
    case 2: return step->fixed_columns += step->fixed_columns >= 0, true;
    case 3: return step->column64 = !step->column64, true;
    case 4: return form->constant = !form->constant, true;
    case 5: return !step->column64 && (form->index64 = !form->index64, true);
    case 6: return step->shared_bytes += 16, true;
    case 7: return step->variants[0].wide = !step->variants[0].wide, true;
    case 8: return step->tile.rows > 1 && (step->tile.rows *= 2, true);
    case 9: return step->tile.chunks *= 2, true;
    case 10:
        return step->tile.row_threads > 32 && step->strategy != STRATEGY_POINTWISE &&
               (step->tile.row_threads *= 2, true);
    case 11: return stmt->op == OP_CONST && (stmt->bits ^= 1, true);
    case 12: return stmt->op == OP_ADD && (stmt->op = OP_SUB, true);
    case 13: return stmt->op == OP_MUL && (stmt->op = OP_ADD, true);
    case 14:
        return stmt->op == OP_REDUCE && stmt->reduction == REDUCTION_ADD && (stmt->reduction = REDUCTION_MAX, true);
    case 15: return stmt->arg_count > 1 && stmt->arg[0] != stmt->arg[1] && (stmt->arg[0] = stmt->arg[1], true);
    case 16: return access->offset.kind == SIZE_INT && (access->offset.value += 64, true);
    case 17: return access->stride[axis].kind == SIZE_INT && (access->stride[axis].value += 64, true);
    case 18: return buf->dtype == DTYPE_F32 && buf->kind != BUF_SCALAR && (buf->dtype = DTYPE_BF16, true);
    case 19: return buf->kind == BUF_OUT && (buf->may_alias = buf->may_alias == IR_NONE ? 0 : IR_NONE, true);
    case 20: return nest->axes[axis].extent.kind == SIZE_INT && (nest->axes[axis].extent.value += 1, true);
    case 21: return buf->kind == BUF_IN && (buf->kind = BUF_TMP, true);
    case 22: return list->count > 0 && (list->count--, true);
    case 23: return step->variants[0].guard_count > 0 && (step->variants[0].guards[0].number *= 2, true);
    case 24: return step->late[number] = !step->late[number], true;
    case 25: return step->phases[0].unroll == step->tile.chunks && (step->phases[0].unroll = 0, true);
    case 26: return access->index != IR_NONE && (access->index_extent = ir_size_int(12345), true);
    default: return false;
    }
}

typedef struct Doubled {
    const Unit *from;
    uint64_t seed;
    Counts counts;
    uint32_t changed[CHANGES], seen[CHANGES]; /* seen: in the text, so that the two were no twins any more */
} Doubled;

static void name_apart(Job *job, Unit *unit) {
    for (uint32_t s = 0; s < unit->plan->steps.count; s++) {
        Step *step = &unit->plan->steps.at[s];
        step->code = s;
        for (uint32_t v = 0; v < step->variant_count; v++)
            step->variants[v].kernel = ir_format(job, "k%u_%s", s, step->variants[v].label);
    }
}

static void double_work(Job *job, void *state) {
    Doubled *doubled = state;
    const Unit *from = doubled->from;
    Random random = {doubled->seed};
    for (uint32_t what = 0; what < CHANGES; what++) {
        Unit unit = {.prog = ir_prog_clone(job, from->prog), .options = from->options};
        add_second(job, unit.prog, from->prog);
        gen_schedule(job, &unit);
        const uint32_t half = unit.plan->steps.count / 2;
        const char *name = ir_format(job, "seed %llu twice", (unsigned long long)doubled->seed);
        if (half == 0) return;
        for (uint32_t s = 0; s < half; s++)
            if (unit.plan->steps.at[half + s].code != unit.plan->steps.at[s].code)
                fail_msg("%s: steps %u and %u are no twins:\n%s\n%s", name, s, half + s, plain_text(job, &unit, s),
                         plain_text(job, &unit, half + s));
        if (what == 0) check_texts(job, &unit, name, &doubled->counts);
        uint32_t s = half, tries = 8;
        const char *before = NULL;
        do {
            s = half + random_below(&random, half);
            before = plain_text(job, &unit, s);
        } while (!change(&unit, s, what, &random) && --tries);
        if (!tries) continue;
        doubled->changed[what]++;
        doubled->seen[what] += strcmp(before, plain_text(job, &unit, s)) != 0;
        name_apart(job, &unit);
        gen_find_twins(job, &unit);
        const char *own = plain_text(job, &unit, s), *code = plain_text(job, &unit, unit.plan->steps.at[s].code);
        if (strcmp(own, code) != 0)
            fail_msg("%s: %s of step %u is not noticed:\n%s\n%s", name, changes[what], s, own, code);
    }
}

static void test_texts(void **state) {
    (void)state;
    const char *const examples[] = {"add_rms_norm", "layer_norm_bwd",   "rms_norm_shared_bwd",
                                    "ada_ln_bwd",   "add_rms_norm_bwd", "layer_norm_gelu_bwd",
                                    "softmax_bwd",  "layer_norm",       "rms_norm_bwd"};
    Counts counts = {0};
    for (size_t i = 0; i < sizeof examples / sizeof *examples + sizeof cases / sizeof *cases + 1; i++) {
        Job *job = ir_job_create(NULL);
        Unit unit = {0};
        const size_t from = sizeof examples / sizeof *examples;
        const char *name = i < from ? ir_format(job, "examples/%s.yaml", examples[i]) : "many kernels";
        Case test = {.graph = name};
        if (i > from) test = cases[i - from - 1];
        const Status status =
            i == from ? generate_text(job, &unit, many_kernels(job, 39), NULL, NULL) : generate(job, &test, &unit);
        if (status) fail_msg("%s: %s", name, ir_job_report(job));
        check_texts(job, &unit, test.name ? test.name : name, &counts);
        ir_job_free(job);
    }
    printf("# texts of %u steps of %u graphs, %u of an earlier one's code\n", counts.steps, counts.units, counts.twins);
    assert_true(counts.twins > 20);
}

static void test_twice(void **state) {
    (void)state;
    Doubled doubled = {0};
    uint32_t changed = 0, seen = 0;
    const uint64_t seed = random_seed();
    for (uint64_t i = 0; i < 300; i++) {
        Job *job = ir_job_create(NULL);
        Unit unit = {0};
        const RandomGraph graph = random_graph(job, seed + i, RANDOM_ALL_DTYPES);
        doubled.from = &unit;
        doubled.seed = seed + i;
        if (!generate_text(job, &unit, graph.text, NULL, NULL) && ir_job_run(job, double_work, &doubled))
            fail_msg("seed %llu twice: %s", (unsigned long long)(seed + i), ir_job_report(job));
        ir_job_free(job);
    }
    printf("# %u random graphs with every kernel twice: %u steps, %u of an earlier one's code\n", doubled.counts.units,
           doubled.counts.steps, doubled.counts.twins);
    for (uint32_t what = 0; what < CHANGES; what++) {
        if (doubled.seen[what] == 0) fail_msg("%s: no change was seen in a text", changes[what]);
        changed += doubled.changed[what];
        seen += doubled.seen[what];
    }
    printf("# %u changes of a step, %u of them in its text\n", changed, seen);
}

/* ---- launches ---- */

typedef struct Recorder {
    RtDevice device; /* first */
    uint32_t found;  /* kernels that were looked up */
} Recorder;

static Status record_kernel(RtDevice *device, RtModule *module, const char *name, uint32_t shared_bytes,
                            RtKernel **kernel, Text *why) {
    (void)module, (void)shared_bytes, (void)why;
    ((Recorder *)device)->found++;
    *kernel = (RtKernel *)(uintptr_t)name; /* told apart by their names' places */
    return STATUS_OK;
}

static Status record_facts(RtDevice *device, const RtKernel *kernel, RtFacts *facts, Text *why) {
    (void)device, (void)kernel, (void)why;
    *facts = (RtFacts){.max_threads = 1024};
    return STATUS_OK;
}

/* Each kernel is looked up once, for all steps that launch it. */
static void test_found_once(void **state) {
    (void)state;
    static const RtDeviceOps ops = {.kernel = record_kernel, .facts = record_facts};
    Job *job = ir_job_create(NULL);
    Unit unit = {0};
    Recorder recorder = {.device.ops = &ops};
    assert_int_equal(generate_file(job, &unit, "examples/rms_norm_shared_bwd.yaml", NULL, NULL), STATUS_OK);
    RtProgram *program = rt_program_create(job, &unit);
    assert_int_equal(rt_program_load(program, &recorder.device, NULL, NULL), STATUS_OK);
    assert_int_equal(recorder.found, unit.source.kernel_count);
    assert_int_equal(recorder.found, 3);
    for (uint32_t v = 0; v < 2; v++) {
        assert_ptr_equal(program->variants[1][v].kernel, program->variants[0][v].kernel);
        assert_ptr_equal(program->variants[2][v].kernel, program->variants[0][v].kernel);
        assert_int_equal(program->variants[2][v].facts.max_threads, 1024);
    }
    ir_job_free(job);
}

static bool runs(const Case *test, const DeviceCase *made, const Devices *devices, Random *random) {
    static const int64_t rows[] = {0, 1, 5, 37};
    bool right = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && right; i++) {
        Job *job = ir_job_create(NULL);
        const int64_t any[2] = {rows[i], rows[i] + 2};
        LaunchTrial trial = {.random = random, .border = 512};
        right = device_case_try(job, made, devices, any, &trial);
        if (!right) printf("FAILED %s, M = %lld\n", test->name, (long long)rows[i]);
        ir_job_free(job);
    }
    return right;
}

/* Each step has its own pointers, scalars and guards: against the oracle, tensors aligned and not, one after the other
 * off its alignment, in place and apart. */
static void test_launches(void **state) {
    enum { MOST = 64 };
    DeviceCase *made[MOST];
    const Case *tests[MOST];
    Random random = {random_seed()};
    const Devices *devices = *state;
    uint32_t count = 0;
    Job *job = ir_job_create(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tests[count] = &cases[i];
        made[count] = device_case_create(case_text(job, &cases[i]), cases[i].sets);
        const Plan *plan = made[count]->unit.plan;
        uint32_t twins = 0;
        for (uint32_t s = 0; plan && s < plan->steps.count; s++) twins += !gen_has_code(plan, s);
        if (twins)
            count++;
        else
            device_case_free(made[count], devices);
    }
    bool right = device_cases_build(made, count, devices);
    for (uint32_t i = 0; i < count && right; i++) right = runs(tests[i], made[i], devices, &random);
    for (uint32_t i = 0; i < count; i++) device_case_free(made[i], devices);
    ir_job_free(job);
    assert_true(right);
}

int main(int argc, char **argv) {
    Devices devices;
    if (!devices_open(&devices, argc, argv)) return 3;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_which), cmocka_unit_test(test_texts),
                                       cmocka_unit_test(test_twice), cmocka_unit_test(test_found_once),
                                       cmocka_unit_test_prestate(test_launches, &devices)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    devices_close(&devices);
    return failed;
}
