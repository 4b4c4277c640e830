/* In: nests of more statements than a kernel should have. Out: each as several, one after the other, which say the
 * same: the first part stores what the next needs of it. Left alone: nests within the limit, and sums across
 * rows.
 *
 * The place is the one, in the second half of what the limit allows, that the fewest bytes cross. Loads are made again
 * in the next part, and so is what needs no load; other values cross in a tmp. A store to memory that the nest reads
 * goes with the last part, behind every load. */
#include "gen/cut.h"
#include "gen/nests.h"

#include <string.h>

typedef struct Parting {
    Job *job;
    Unit *unit;
    Prog *prog;
    const Nest *nest;
    uint32_t count;  /* statements */
    bool *free;      /* of each: needs no load and no reduction */
    bool *late;      /* a store that belongs to the last part */
    uint32_t *last;  /* of each value: the last statement that uses it; of a late store: the end */
    uint32_t place;  /* the first part has the statements before it, but for late ones */
    uint32_t *to;    /* of each statement: its number in the second part, or IR_NONE */
    Access *crossed; /* of each value that crosses: where the first part stored it; buf IR_NONE else */
} Parting;

/* Statements that this one uses: arguments and a gathered index. */
static uint32_t uses(const Nest *nest, const Stmt *stmt, uint32_t *used) {
    uint32_t count = 0;
    for (uint32_t k = 0; k < stmt->arg_count; k++) used[count++] = stmt->arg[k];
    if (stmt->access != IR_NONE && nest->accesses.at[stmt->access].index != IR_NONE)
        used[count++] = nest->accesses.at[stmt->access].index;
    return count;
}

static bool is_late(const Parting *p, const Stmt *stmt) {
    if (stmt->op != OP_STORE) return false;
    uint32_t buf = p->nest->accesses.at[stmt->access].buf, alias = p->prog->bufs.at[buf].may_alias;
    return gen_nest_loads(p->nest, buf) || (alias != IR_NONE && gen_nest_loads(p->nest, alias));
}

static void look_over(Parting *p) {
    uint32_t used[4];
    for (uint32_t i = 0; i < p->count; i++) {
        const Stmt *stmt = &p->nest->stmts.at[i];
        uint32_t n = uses(p->nest, stmt, used);
        p->late[i] = is_late(p, stmt);
        p->last[i] = i;
        p->free[i] = stmt->op != OP_LOAD && stmt->op != OP_REDUCE && stmt->op != OP_STORE;
        for (uint32_t k = 0; k < n; k++) {
            p->last[used[k]] = p->late[i] ? p->count : i;
            if (!p->free[used[k]]) p->free[i] = false;
        }
    }
    /* a late store's value is used at the end, whoever uses it after */
    for (uint32_t i = 0; i < p->count; i++)
        if (p->late[i]) p->last[p->nest->stmts.at[i].arg[0]] = p->count;
}

/* What is computed again in the second part, not stored: what needs no load, and what many rows share. */
static bool is_again(const Parting *p, uint32_t i) {
    return p->free[i] || (gen_cut_computes(&p->nest->stmts.at[i]) && !gen_cut_stores(p->nest, i));
}

/* What is loaded or computed again needs its own arguments as late as itself. */
static void lengthen(Parting *p) {
    uint32_t used[4];
    for (uint32_t i = p->count; i-- > 0;) {
        const Stmt *stmt = &p->nest->stmts.at[i];
        if (stmt->op != OP_LOAD && !is_again(p, i)) continue;
        uint32_t n = uses(p->nest, stmt, used);
        for (uint32_t k = 0; k < n; k++)
            if (p->last[used[k]] < p->last[i]) p->last[used[k]] = p->last[i];
    }
}

/* Bytes by the hints that value i costs where it crosses. */
static int64_t crossing_cost(const Parting *p, uint32_t i) {
    const Stmt *stmt = &p->nest->stmts.at[i];
    if (is_again(p, i)) return 0; /* its loads cost */
    if (stmt->op == OP_LOAD)
        return gen_bytes_guess(p->job, p->unit,
                               gen_access_bytes(p->job, p->prog, p->nest, &p->nest->accesses.at[stmt->access]));
    int64_t bytes = gen_bytes_guess(p->job, p->unit, gen_cut_bytes(p->job, p->prog, p->nest, i));
    return bytes > IR_MAX_EXTENT / 2 ? IR_MAX_EXTENT : 2 * bytes;
}

/* The place that the fewest bytes cross, the later of equal ones; false: none leaves both parts shorter. */
static bool find_place(Parting *p, int64_t limit) {
    int64_t *cost = IR_NEW_ARRAY(p->job, int64_t, p->count + (size_t)1), least = INT64_MAX;
    uint32_t *crossing = IR_NEW_ARRAY(p->job, uint32_t, p->count + (size_t)1);
    for (uint32_t i = 0; i < p->count; i++) {
        int64_t own = p->last[i] > i ? crossing_cost(p, i) : 0;
        for (uint32_t k = i + 1; k <= p->last[i] && k < p->count; k++) {
            if (ir_add_overflows(cost[k], own, &cost[k])) cost[k] = INT64_MAX;
            crossing[k]++; /* a store in the first part or a statement again in the second */
        }
    }
    p->place = 0;
    for (uint32_t k = (uint32_t)((limit + 1) / 2); k < p->count && k <= limit; k++) {
        if (k < 1 || k + crossing[k] > limit || crossing[k] >= k || cost[k] > least) continue;
        least = cost[k];
        p->place = k;
    }
    return p->place > 0;
}

static bool crosses(const Parting *p, uint32_t i) {
    return i < p->place && p->last[i] >= p->place && !is_again(p, i) && gen_cut_computes(&p->nest->stmts.at[i]);
}

/* Sweeps a part, drops axes along which nothing is left to do, and sets its class. */
static void finish(Job *job, Prog *prog, Nest *part, NestClass class) {
    uint32_t used = ir_nest_row_mask(part);
    ir_nest_sweep(job, part);
    for (uint32_t i = 0; i < part->stmts.count; i++) used |= part->stmts.at[i].domain | part->stmts.at[i].consumed;
    AxisChange change = {.row_count = part->row_count};
    for (uint32_t a = 0; a < part->axis_count; a++) {
        if (!(used >> a & 1)) continue;
        uint32_t to = change.axis_count++;
        change.axes[to] = part->axes[a];
        change.mask[a] = (uint32_t)1 << to;
        change.source[to] = a;
        change.factor[to] = ir_poly_int(job, 1);
    }
    if (change.axis_count < part->axis_count) gen_nest_change_axes(job, prog, part, &change);
    part->class = gen_nest_reduces(part) ? class : CLASS_POINTWISE;
}

/* A part without statements: the nest's axes under a name of its own. */
static Nest start_part(const Parting *p, const char *suffix) {
    Nest part = *p->nest;
    memset(&part.stmts, 0, sizeof part.stmts);
    memset(&part.accesses, 0, sizeof part.accesses);
    part.name = ir_format(p->job, "%s%s", p->nest->name, suffix);
    return part;
}

static Stmt copy_with(const Parting *p, const Stmt *from, const uint32_t *to, Nest *part) {
    Stmt stmt = *from;
    for (uint32_t k = 0; k < stmt.arg_count; k++) stmt.arg[k] = to[stmt.arg[k]];
    if (stmt.access == IR_NONE) return stmt;
    Access access = p->nest->accesses.at[stmt.access];
    if (access.index != IR_NONE) access.index = to[access.index];
    stmt.access = ir_nest_add_access(p->job, part, &access);
    return stmt;
}

static bool build_first(Parting *p, Nest *part) {
    uint32_t *to = IR_NEW_ARRAY(p->job, uint32_t, p->count);
    *part = start_part(p, "_0");
    for (uint32_t i = 0; i < p->place; i++) {
        if (p->late[i]) continue;
        Stmt stmt = copy_with(p, &p->nest->stmts.at[i], to, part);
        to[i] = ir_nest_add(p->job, part, &stmt);
    }
    for (uint32_t i = 0; i < p->place; i++) {
        p->crossed[i].buf = IR_NONE;
        if (!crosses(p, i)) continue;
        uint32_t store = gen_cut_store(p->job, p->prog, part, to[i]);
        if (store == IR_NONE) return false;
        p->crossed[i] = part->accesses.at[part->stmts.at[store].access];
    }
    return true;
}

/* Statement i in the second part, with what it uses. Depth: a chain of what needs no load, and one load at its end. */
static void bring(Parting *p, uint32_t i, Nest *part) {
    uint32_t used[4];
    if (p->to[i] != IR_NONE) return;
    const Stmt *from = &p->nest->stmts.at[i];
    Stmt stmt;
    if (crosses(p, i)) {
        stmt = gen_cut_load(from, ir_nest_add_access(p->job, part, &p->crossed[i]));
    } else {
        uint32_t n = uses(p->nest, from, used);
        for (uint32_t k = 0; k < n; k++) bring(p, used[k], part);
        stmt = copy_with(p, from, p->to, part);
    }
    p->to[i] = ir_nest_add(p->job, part, &stmt);
}

static void build_second(Parting *p, Nest *part) {
    *part = start_part(p, "_1");
    for (uint32_t i = 0; i < p->count; i++) p->to[i] = IR_NONE;
    /* what late stores take may be loaded here again: before any of them */
    for (uint32_t i = 0; i < p->count; i++) {
        if (p->late[i])
            bring(p, p->nest->stmts.at[i].arg[0], part);
        else if (i >= p->place)
            bring(p, i, part);
    }
    for (uint32_t i = 0; i < p->count; i++)
        if (p->late[i]) bring(p, i, part);
}

/* What crosses the place, as a formula. */
static Poly crossing_bytes(const Parting *p) {
    Poly bytes = ir_poly_int(p->job, 0);
    bool overflow = false;
    for (uint32_t i = 0; i < p->place; i++) {
        const Stmt *stmt = &p->nest->stmts.at[i];
        if (p->last[i] < p->place || is_again(p, i)) continue;
        bool load = stmt->op == OP_LOAD;
        Poly own = load ? gen_access_bytes(p->job, p->prog, p->nest, &p->nest->accesses.at[stmt->access])
                        : gen_cut_bytes(p->job, p->prog, p->nest, i);
        bytes = ir_poly_add(p->job, bytes, own, &overflow);
        if (!load) bytes = ir_poly_add(p->job, bytes, own, &overflow);
    }
    return bytes;
}

static void report(const Parting *p, int64_t limit, const Nest *first, const Nest *second) {
    Job *job = p->job;
    const int64_t count = gen_nest_statements(p->prog, p->nest);
    const char *nests = first ? ir_format(job, "%s %s", first->name, second->name) : p->nest->name;
    const char *what = first ? ir_format(job, "in two, %s; bytes that are stored and loaded, or loaded again: %s",
                                         nests, gen_bytes_text(job, p->unit, crossing_bytes(p)))
                             : "no place to cut it";
    *IR_PUSH(job, &p->unit->reports) =
        (Report){.pass = "cut",
                 .nests = nests,
                 .gate = first ? NULL : "statements",
                 .number = count,
                 .limit = limit,
                 .text = ir_format(job, "%s has %lld statements, at most %lld: %s", p->nest->name, (long long)count,
                                   (long long)limit, what)};
}

/* Nest n in two; false where it stays. */
static bool part_nest(Job *job, Unit *unit, uint32_t n, int64_t limit) {
    const Nest nest = unit->prog->nests.at[n];
    Parting p = {.job = job, .unit = unit, .prog = unit->prog, .nest = &nest, .count = nest.stmts.count};
    bool rows = nest.class == CLASS_POINTWISE || nest.class == CLASS_INNER || nest.class == CLASS_ROW;
    for (uint32_t i = 0; i < p.count; i++) rows = rows && nest.stmts.at[i].op != OP_PARTIAL_ACCUMULATE;
    if (!rows) return false;
    p.free = IR_NEW_ARRAY(job, bool, p.count);
    p.late = IR_NEW_ARRAY(job, bool, p.count);
    p.last = IR_NEW_ARRAY(job, uint32_t, p.count);
    p.to = IR_NEW_ARRAY(job, uint32_t, p.count);
    p.crossed = IR_NEW_ARRAY(job, Access, p.count);
    look_over(&p);
    lengthen(&p);
    Nest first, second;
    bool parted = find_place(&p, limit) && build_first(&p, &first);
    if (parted) {
        build_second(&p, &second);
        finish(job, p.prog, &first, nest.class);
        finish(job, p.prog, &second, nest.class);
        /* not where all that needs no load, made twice, is as much as what was saved */
        parted = first.stmts.count < p.count && second.stmts.count < p.count;
    }
    report(&p, limit, parted ? &first : NULL, parted ? &second : NULL);
    if (!parted) return false;
    (void)IR_PUSH(job, &unit->prog->nests);
    Nest *nests = unit->prog->nests.at;
    memmove(&nests[n + 2], &nests[n + 1], (unit->prog->nests.count - n - 2) * sizeof *nests);
    nests[n] = first;
    nests[n + 1] = second;
    return true;
}

void gen_cut_limit(Job *job, Unit *unit, int64_t limit) {
    for (uint32_t n = 0; n < unit->prog->nests.count; n++)
        if (gen_nest_statements(unit->prog, &unit->prog->nests.at[n]) > limit) part_nest(job, unit, n, limit);
}
