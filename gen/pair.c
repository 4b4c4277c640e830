/* pair: two reductions of a row, of which the second needs the first, in one pass.
 *
 * needs   fused and cut nests
 * gives   amax and sum(exp(x - amax)) of a nest as the two results of `reduce online`; mean and sum((x - mean)^2) as
 *         those of `reduce welford`. Also where what is subtracted is 0 in place of an infinite amax (logsumexp), and
 *         where the mean is a quotient. So where rows are streamed, since every phase walks them again, and the nest
 *         then has fewer phases; where registers hold a row, two passes cost no read and round less. `pair` forces it.
 *         What was paired, and what was not and why, stands in unit->reports
 * breaks  nothing
 *
 * Sums in parts (row_split, columns) stay in two steps: their nests are apart, and a part has no room for two results.
 */
#include "gen/bytes.h"
#include "gen/knobs.h"
#include "gen/nests.h"
#include "gen/schedule.h"

#include <math.h>
#include <string.h>

typedef struct Pair {
    Reduction kind;
    uint32_t element; /* x */
    uint32_t first;   /* what the first result takes the place of: the amax, or the mean */
    uint32_t source;  /* the reduction that it is made of: itself, or the sum */
    uint32_t second;  /* the second reduction */
    uint32_t hidden;  /* whether the amax is infinite, where another number is subtracted then; or IR_NONE */
} Pair;
typedef IR_LIST(Pair) PairList;

typedef struct Finder {
    Job *job;
    const Prog *prog;
    const Nest *nest;
} Finder;

static const Stmt *stmt_at(const Finder *f, uint32_t id) { return &f->nest->stmts.at[id]; }
static const Stmt *arg_of(const Finder *f, const Stmt *stmt, uint32_t k) { return stmt_at(f, stmt->arg[k]); }

static bool is_reduce_of(const Finder *f, uint32_t id, Reduction reduction, uint32_t element, uint32_t consumed) {
    const Stmt *stmt = stmt_at(f, id);
    return stmt->op == OP_REDUCE && stmt->reduction == reduction && stmt->arg[0] == element &&
           stmt->consumed == consumed;
}

/* ---- numbers ---- */

static bool is_float(const Stmt *stmt) { return ir_dtype(stmt->dtype)->kind == KIND_FLOAT; }

static bool is_constant(const Stmt *stmt, double *number) {
    if (stmt->op != OP_CONST) return false;
    *number = is_float(stmt) ? ir_load_float(stmt->dtype, &stmt->bits) : (double)(int64_t)stmt->bits;
    return true;
}

/* Within two units in the last place: the count itself is rounded first where it is large. */
static bool is_near(const Stmt *stmt, double number, double wanted) {
    const double unit = stmt->dtype == DTYPE_F64 ? 0x1p-52 : 0x1p-23;
    return fabs(number - wanted) <= 2 * unit * fabs(wanted);
}

/* The number of elements that are combined. */
static bool is_count(const Finder *f, const Stmt *stmt, Poly count) {
    int64_t known;
    double number;
    while (stmt->op == OP_CAST && stmt->dtype != DTYPE_BOOL) stmt = arg_of(f, stmt, 0);
    if (stmt->op == OP_SIZE) return ir_poly_equal(ir_size_poly(f->job, f->prog, stmt->size), count);
    return is_constant(stmt, &number) && ir_poly_is_int(count, &known) && is_near(stmt, number, (double)known);
}

static bool is_one_by_count(const Finder *f, const Stmt *stmt, Poly count) {
    int64_t known;
    double number;
    if (is_constant(stmt, &number))
        return ir_poly_is_int(count, &known) && known > 0 && is_near(stmt, number, 1 / (double)known);
    return stmt->op == OP_DIV && is_constant(arg_of(f, stmt, 0), &number) && number == 1 &&
           is_count(f, arg_of(f, stmt, 1), count);
}

/* ---- patterns ---- */

/* Whether statement `mean` is that of the element over the consumed axes; the sum it is made of. */
static bool is_mean(const Finder *f, uint32_t mean, uint32_t element, uint32_t consumed, uint32_t *sum) {
    const Stmt *stmt = stmt_at(f, mean);
    const Poly count = gen_axes_elements(f->job, f->prog, f->nest, consumed);
    for (uint32_t k = 0; k < 2 && (stmt->op == OP_MUL || (stmt->op == OP_DIV && k == 0)); k++) {
        if (!is_reduce_of(f, stmt->arg[k], REDUCTION_ADD, element, consumed)) continue;
        *sum = stmt->arg[k];
        const Stmt *other = arg_of(f, stmt, 1 - k);
        if (stmt->op == OP_MUL ? is_one_by_count(f, other, count) : is_count(f, other, count)) return true;
    }
    return false;
}

/* Whether what is subtracted is the amax, or another number in its place where that is infinite. */
static bool is_top(const Finder *f, uint32_t base, uint32_t element, uint32_t consumed, Pair *pair) {
    const Stmt *stmt = stmt_at(f, base);
    double number;
    pair->hidden = IR_NONE;
    pair->first = base;
    if (stmt->op == OP_WHERE) {
        if (!is_constant(arg_of(f, stmt, 1), &number) || !isfinite(number)) return false;
        pair->hidden = stmt->arg[0];
        pair->first = stmt->arg[2];
        const Stmt *test = stmt_at(f, pair->hidden);
        bool infinite =
            test->op == OP_ISINF || (test->op == OP_EQ && is_constant(arg_of(f, test, 1), &number) && isinf(number));
        if (!infinite || test->arg[0] != pair->first) return false;
    }
    pair->source = pair->first;
    return is_reduce_of(f, pair->first, REDUCTION_MAX, element, consumed);
}

/* The pair whose second reduction this is. */
static bool find_pair(const Finder *f, uint32_t id, Pair *pair) {
    const Stmt *second = stmt_at(f, id);
    if (second->op != OP_REDUCE || second->reduction != REDUCTION_ADD || !is_float(second)) return false;
    const Stmt *term = arg_of(f, second, 0);
    const bool square = term->op == OP_MUL && term->arg[0] == term->arg[1];
    if (!square && term->op != OP_EXP) return false;
    const Stmt *away = arg_of(f, term, 0);
    if (away->op != OP_SUB) return false;
    *pair = (Pair){.kind = square ? REDUCTION_WELFORD : REDUCTION_ONLINE, .second = id, .hidden = IR_NONE};
    for (uint32_t k = 0; k < (square ? 2u : 1u); k++) { /* squares do not tell x - mean from mean - x */
        pair->element = away->arg[k];
        pair->first = away->arg[1 - k];
        if (stmt_at(f, pair->element)->dtype != second->dtype) continue;
        if (square ? is_mean(f, pair->first, pair->element, second->consumed, &pair->source)
                   : is_top(f, pair->first, pair->element, second->consumed, pair))
            return true;
    }
    return false;
}

static PairList find_pairs(const Finder *f) {
    PairList pairs = {0};
    Pair pair;
    for (uint32_t i = 0; i < f->nest->stmts.count; i++)
        if (find_pair(f, i, &pair)) *IR_PUSH(f->job, &pairs) = pair;
    return pairs;
}

/* ---- rewriting ---- */

/* A result of the pair; the Graph's reduction that it stands for lends it its value. */
static Stmt result_of(const Nest *nest, const Pair *pair, uint32_t place, uint32_t result, const uint32_t *id) {
    const Stmt *old = &nest->stmts.at[place];
    Stmt stmt = nest->stmts.at[pair->second];
    stmt.reduction = pair->kind;
    stmt.result = (uint8_t)result;
    stmt.arg[0] = id[pair->element];
    stmt.name = old->name;
    stmt.place = old->place;
    stmt.value = nest->stmts.at[result ? pair->second : pair->source].value;
    return stmt;
}

/* sum(exp(x - base)), base being a number where the amax is infinite: then every exponential is 0, or one infinite, as
 * that of the amax is. */
static uint32_t add_hidden(Job *job, Nest *to, const Nest *from, const Pair *pair, uint32_t sum, const uint32_t *id) {
    Stmt exp = from->stmts.at[from->stmts.at[pair->second].arg[0]], where = exp;
    exp.arg[0] = id[pair->first];
    exp.name = NULL;
    exp.value = IR_NONE;
    where.op = OP_WHERE;
    where.arg_count = 3;
    where.arg[0] = id[pair->hidden];
    where.arg[1] = ir_nest_add(job, to, &exp);
    where.arg[2] = sum;
    where.name = NULL;
    where.value = IR_NONE;
    return ir_nest_add(job, to, &where);
}

static Nest rewrite(Job *job, const Nest *from, const PairList *pairs) {
    Nest to = *from;
    memset(&to.stmts, 0, sizeof to.stmts);
    memset(&to.accesses, 0, sizeof to.accesses);
    uint32_t *id = IR_NEW_ARRAY(job, uint32_t, from->stmts.count + (size_t)1);
    for (uint32_t i = 0; i < from->stmts.count; i++) {
        const Pair *first = NULL, *second = NULL;
        for (uint32_t p = 0; p < pairs->count; p++) {
            if (pairs->at[p].first == i) first = &pairs->at[p];
            if (pairs->at[p].second == i) second = &pairs->at[p];
        }
        if (first || second) {
            Stmt stmt = result_of(from, first ? first : second, i, first ? 0 : 1, id);
            id[i] = ir_nest_add(job, &to, &stmt);
        } else {
            id[i] = gen_nest_add_from(job, &to, from, from->stmts.at[i], id);
        }
        if (!first && second && second->hidden != IR_NONE) id[i] = add_hidden(job, &to, from, second, id[i], id);
    }
    ir_nest_sweep(job, &to);
    return to;
}

/* ---- the pass ---- */

static const char *pair_text(const Pair *pair) {
    return pair->kind == REDUCTION_ONLINE ? "amax and sum(exp(x - amax))" : "mean and sum((x - mean)^2)";
}

typedef struct Decision { /* gate NULL: taken */
    const char *gate, *why;
    uint32_t before, after; /* phases */
} Decision;

static Decision decide(Job *job, const Unit *unit, const Nest *nest, const PairList *pairs, const Nest *paired) {
    Decision decision = {0};
    const char *mode = gen_knob_text(&unit->options, KNOB_PAIR, nest->name);
    bool forced = mode && !strcmp(mode, "on"), whole = true;
    ir_nest_phases(job, nest, &decision.before);
    ir_nest_phases(job, paired, &decision.after);
    for (uint32_t p = 0; p < pairs->count; p++)
        whole = whole && nest->stmts.at[pairs->at[p].second].consumed == ir_nest_inner_mask(nest);
    Strategy strategy = whole ? gen_nest_strategy(job, unit, nest) : STRATEGY_COLUMN;
    if (strategy != STRATEGY_ROW_LOOP && !gen_holds_rows(strategy)) {
        decision.gate = "class";
        decision.why = "the kernel does not work by rows";
    } else if (mode && !forced) {
        decision.gate = "knob";
        decision.why = "pair=off";
    } else if (!forced && strategy == STRATEGY_ROW_REGISTERS) {
        decision.gate = "registers";
        decision.why = "registers hold the row";
    } else if (!forced && decision.after >= decision.before) {
        decision.gate = "phases";
        decision.why = ir_format(job, "one pass leaves %u phases of %u", decision.after, decision.before);
    }
    return decision;
}

static void report(Job *job, Unit *unit, const Nest *nest, const Pair *pair, const Decision *decision) {
    const char *text = decision->gate
                           ? ir_format(job, "%s: %s in two passes: %s", nest->name, pair_text(pair), decision->why)
                           : ir_format(job, "%s: %s in one pass (%s), %u phase%s instead of %u", nest->name,
                                       pair_text(pair), ir_reduction(pair->kind)->name, decision->after,
                                       decision->after == 1 ? "" : "s", decision->before);
    *IR_PUSH(job, &unit->reports) = (Report){.pass = "pair",
                                             .nests = nest->name,
                                             .gate = decision->gate,
                                             .number = decision->after,
                                             .limit = decision->before,
                                             .text = text};
}

static bool is_on(const Unit *unit, const char *kernel) {
    const char *mode = gen_knob_text(&unit->options, KNOB_PAIR, kernel);
    return mode && !strcmp(mode, "on");
}

static const char *pair_nest(Job *job, Unit *unit, Nest *nest) {
    const Finder finder = {job, unit->prog, nest};
    const PairList pairs = find_pairs(&finder);
    if (!pairs.count) return "it has no amax with sum(exp(x - amax)), nor a mean with sum((x - mean)^2)";
    Nest paired = rewrite(job, nest, &pairs);
    const Decision decision = decide(job, unit, nest, &pairs, &paired);
    for (uint32_t p = 0; p < pairs.count; p++) report(job, unit, nest, &pairs.at[p], &decision);
    if (!decision.gate) *nest = paired;
    return decision.why;
}

void gen_pair(Job *job, Unit *unit) {
    bool taken = false, all = is_on(unit, NULL);
    for (uint32_t n = 0; n < unit->prog->nests.count; n++) gen_values_first(job, &unit->prog->nests.at[n]);
    for (uint32_t n = 0; n < unit->prog->nests.count; n++) {
        Nest *nest = &unit->prog->nests.at[n];
        const char *why = pair_nest(job, unit, nest);
        taken = taken || !why;
        if (why && !all && is_on(unit, nest->name))
            ir_stop_at(job, STATUS_NOT_COMPILED, (Place){0, 0}, "pair=on is not possible for kernel %s: %s", nest->name,
                       why);
    }
    if (all && !taken)
        ir_stop_at(job, STATUS_NOT_COMPILED, (Place){0, 0},
                   "pair=on is not possible for any kernel here: none has an amax of its rows with sum(exp(x - amax)), "
                   "nor a mean with sum((x - mean)^2)");
}
