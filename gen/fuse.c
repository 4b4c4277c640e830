/* fuse: nests into groups that load each element once.
 *
 * needs   classified nests in topological order, sums across rows in parts
 * gives   sums in parts of which one is enough whole again (gen/single_part.c); one nest where two of class POINTWISE,
 *         INNER, MIXED or ROW (or POINTWISE and OUTER, or FINALIZE) had equal axes and were linked: vertically, one
 *         reads at every point the tmp element that the other stores there; or horizontally, both make the same full
 *         read, or add up equal parts. A joined nest that reduces is ROW, or stays OUTER or FINALIZE; with sums across
 *         its rows in parts (gen/reorder.c) it is ROW+PARTIAL. Tmp buffers that nobody reads any more are gone. What
 *         was joined and what was not, with gate, numbers and the bytes that are read twice for it, stands in
 *         unit->reports. What one nest would store twice it stores once (gen/share.c)
 * breaks  "one reduction a nest"
 *
 * Pointwise work is joined with rows first; what is left takes the axes of a sum across rows that reads the same.
 * Gates: equal axes and maps; the nest graph stays acyclic; memory overwritten in place is read by the store's map
 * alone, before the store, which comes behind all that may read it again; at most `fuse_statements` statements and
 * `fuse_reads` full reads. */
#include "gen/breakpoints.h"
#include "gen/bytes.h"
#include "gen/fuse_why.h"
#include "gen/gen.h"
#include "gen/knobs.h"
#include "gen/nests.h"
#include "gen/partial.h"

#include <string.h>

typedef struct Gate { /* why two nests are not joined; name NULL: they are not linked, or they can be */
    const char *name;
    int64_t number, limit;
} Gate;

typedef struct Fuse {
    Job *job;
    Unit *unit;
    Prog *prog;
    int64_t statements, reads; /* limits */
    uint32_t *writer;          /* of each buf: the nest that stores it, or IR_NONE */
    bool *overwritten;         /* of each buf: some output may be in place of it */
    bool *after;               /* [a * nests.count + b]: nest b has to run after nest a */
    bool *later;               /* of the nest i at hand: what has to run after it, directly or not */
    bool telling;              /* of what is read twice too, where nothing else links two nests */
    bool turns;                /* pointwise work takes the loops of sums across rows: once rows have what is theirs */
} Fuse;

/* With the loops of rows (gen/reorder.c). */
static bool is_parted_row(const Nest *nest) { return gen_nest_partial(nest) && nest->row_count < nest->axis_count; }

/* Rows join rows, sums across rows each other, sums of parts each other; pointwise work joins either kind of loop. Sums
 * across rows in parts join rows where they have their loops. */
static bool may_join(const Nest *a, const Nest *b) {
    enum { ROWS = 1, COLUMNS = 2, PARTS = 4 };
    static const int kinds[CLASS_COUNT] = {
        [CLASS_POINTWISE] = ROWS | COLUMNS, [CLASS_INNER] = ROWS,    [CLASS_MIXED] = ROWS,    [CLASS_ROW] = ROWS,
        [CLASS_ROW_PARTIAL] = ROWS,         [CLASS_OUTER] = COLUMNS, [CLASS_FINALIZE] = PARTS};
    const int x = is_parted_row(a) ? ROWS : kinds[a->class], y = is_parted_row(b) ? ROWS : kinds[b->class];
    return (x & y) != 0;
}

static NestClass joined_class(const Nest *a, const Nest *b, const Nest *joined) {
    if (a->class == CLASS_FINALIZE || a->class == CLASS_OUTER) return a->class;
    if (b->class == CLASS_OUTER) return b->class;
    bool more = gen_nest_reduces(joined); /* than sums in parts */
    if (!is_parted_row(joined)) return more ? CLASS_ROW : CLASS_POINTWISE;
    for (uint32_t i = 0; i < joined->stmts.count; i++) more = more || joined->stmts.at[i].op == OP_STORE;
    return more ? CLASS_ROW_PARTIAL : CLASS_POINTWISE;
}

static bool reads_tmp_of(const Fuse *fuse, uint32_t a, const Nest *b) {
    for (uint32_t i = 0; i < b->stmts.count; i++) {
        if (b->stmts.at[i].op != OP_LOAD) continue;
        uint32_t buf = b->accesses.at[b->stmts.at[i].access].buf;
        if (fuse->writer[buf] == a && fuse->prog->bufs.at[buf].kind == BUF_TMP) return true;
    }
    return false;
}

/* a: nest `first`, its axes turned perhaps. */
static bool same_maps(const Fuse *fuse, uint32_t first, const Nest *a, const Nest *b) {
    const Prog *prog = fuse->prog;
    for (uint32_t i = 0; i < b->stmts.count; i++) {
        const Stmt *stmt = &b->stmts.at[i];
        if (stmt->op != OP_LOAD) continue;
        uint32_t buf = b->accesses.at[stmt->access].buf;
        if (prog->bufs.at[buf].kind == BUF_TMP && fuse->writer[buf] == first &&
            gen_stored_value(prog, a, b, stmt) == IR_NONE)
            return false;
    }
    return true;
}

/* Every load of what the nests overwrite in place, in either, has the store's map. */
static bool alias_allows(const Prog *prog, const Nest *a, const Nest *b) {
    const Nest *both[2] = {a, b};
    for (uint32_t o = 0; o < prog->bufs.count; o++) {
        uint32_t alias = prog->bufs.at[o].may_alias;
        for (uint32_t w = 0; w < 2 && alias != IR_NONE; w++) {
            const Stmt *store = gen_nest_store(both[w], o);
            for (uint32_t r = 0; r < 2 && store; r++) {
                for (uint32_t i = 0; i < both[r]->stmts.count; i++) {
                    const Stmt *stmt = &both[r]->stmts.at[i];
                    if (stmt->op != OP_LOAD) continue;
                    Access load = both[r]->accesses.at[stmt->access];
                    if (load.buf != alias) continue;
                    load.buf = o;
                    if (!gen_same_access(a, &load, &both[w]->accesses.at[store->access])) return false;
                }
            }
        }
    }
    return true;
}

static void find_writers(Fuse *fuse) {
    const Prog *prog = fuse->prog;
    for (uint32_t i = 0; i < prog->bufs.count; i++) {
        fuse->writer[i] = IR_NONE;
        if (prog->bufs.at[i].may_alias != IR_NONE) fuse->overwritten[prog->bufs.at[i].may_alias] = true;
    }
    for (uint32_t n = 0; n < prog->nests.count; n++) {
        const Nest *nest = &prog->nests.at[n];
        for (uint32_t i = 0; i < nest->stmts.count; i++)
            if (nest->stmts.at[i].op == OP_STORE || nest->stmts.at[i].op == OP_PARTIAL_ACCUMULATE)
                fuse->writer[nest->accesses.at[nest->stmts.at[i].access].buf] = n;
    }
}

/* The order that nests need, as it is now; a buffer has one writer, so any other nest's access of it is a load. */
static void find_order(Fuse *fuse) {
    const Prog *prog = fuse->prog;
    const uint32_t count = prog->nests.count;
    memset(fuse->after, 0, (size_t)count * count);
    for (uint32_t n = 0; n < count; n++) {
        const Nest *nest = &prog->nests.at[n];
        for (uint32_t i = 0; i < nest->accesses.count; i++) {
            const uint32_t read = nest->accesses.at[i].buf;
            if (fuse->writer[read] < n) fuse->after[fuse->writer[read] * count + n] = true;
            for (uint32_t o = 0; fuse->overwritten[read] && o < prog->bufs.count; o++)
                if (prog->bufs.at[o].may_alias == read && fuse->writer[o] != IR_NONE && fuse->writer[o] > n)
                    fuse->after[n * count + fuse->writer[o]] = true;
        }
    }
}

static void find_later(Fuse *fuse, uint32_t i) {
    const uint32_t count = fuse->prog->nests.count;
    memset(fuse->later, 0, count);
    for (uint32_t m = i; m < count; m++) {
        if (m > i && !fuse->later[m]) continue;
        for (uint32_t k = m + 1; k < count; k++) fuse->later[k] |= fuse->after[(size_t)m * count + k];
    }
}

/* A nest that runs after i and before j: joining the two makes a cycle. IR_NONE: none. */
static uint32_t find_between(const Fuse *fuse, uint32_t i, uint32_t j) {
    for (uint32_t k = i + 1; k < j; k++)
        if (fuse->later[k] && fuse->after[k * fuse->prog->nests.count + j]) return k;
    return IR_NONE;
}

static bool makes_cycle(const Fuse *fuse, uint32_t i, uint32_t j) { return find_between(fuse, i, j) != IR_NONE; }

static int64_t count_reads(const Nest *nest) {
    int64_t count = 0;
    for (uint32_t i = 0; i < nest->stmts.count; i++) count += ir_is_full_read(nest, &nest->stmts.at[i]);
    return count;
}

/* ---- parts ---- */

/* They add up as many parts of as many columns. */
static bool are_parts_alike(const Nest *a, const Nest *b) {
    return a->class == CLASS_FINALIZE && b->class == CLASS_FINALIZE && gen_same_axes(a, b);
}

static bool sums_across(const Nest *nest) { return nest->class == CLASS_OUTER || gen_nest_partial(nest); }

/* What goes along the axes of one in another order does so in the other. */
static bool is_turned(const Nest *a, const Nest *b) {
    uint32_t source[IR_MAX_AXES];
    if (a->axis_count != b->axis_count || !gen_match_axes(a, b, source)) return false;
    for (uint32_t i = 0; i < a->axis_count; i++)
        if (source[i] != i) return true;
    return false;
}

/* Along the same axes in the same order, one of them in parts. */
static bool goes_alike(const Nest *a, const Nest *b) {
    if (a->axis_count != b->axis_count || !gen_nest_partial(a) == !gen_nest_partial(b)) return false;
    for (uint32_t i = 0; i < a->axis_count; i++)
        if (!ir_size_equal(a->axes[i].extent, b->axes[i].extent)) return false;
    return true;
}

/* The bufs that both read whole, each element once in each, by name; *bytes: of them all. NULL: none. */
static const char *shared_reads(Fuse *fuse, const Nest *a, const Nest *b, Poly *bytes) {
    Text names = ir_text(fuse->job);
    bool overflow = false, *seen = IR_NEW_ARRAY(fuse->job, bool, fuse->prog->bufs.count + (size_t)1);
    *bytes = ir_poly_int(fuse->job, 0);
    for (uint32_t i = 0; i < a->stmts.count; i++) {
        const Access *x = ir_is_full_read(a, &a->stmts.at[i]) ? &a->accesses.at[a->stmts.at[i].access] : NULL;
        for (uint32_t k = 0; x && !seen[x->buf] && k < b->stmts.count; k++) {
            const Access *y = ir_is_full_read(b, &b->stmts.at[k]) ? &b->accesses.at[b->stmts.at[k].access] : NULL;
            if (!y || y->buf != x->buf) continue;
            Poly own = gen_access_bytes(fuse->job, fuse->prog, a, x);
            if (!ir_poly_equal(own, gen_access_bytes(fuse->job, fuse->prog, b, y))) continue;
            seen[x->buf] = true;
            ir_text_format(&names, "%s%s", names.count ? ", " : "", fuse->prog->bufs.at[x->buf].name);
            *bytes = ir_poly_add(fuse->job, *bytes, own, &overflow);
        }
    }
    return names.count ? ir_text_string(&names) : NULL;
}

/* Whether nests i < j are linked, and the gate that keeps them apart. When none does, *nest is the joined one. */
static bool examine(Fuse *fuse, uint32_t i, uint32_t j, Gate *gate, Nest *nest) {
    const Nest *a = &fuse->prog->nests.at[i], *b = &fuse->prog->nests.at[j];
    *gate = (Gate){0};
    bool ordered = fuse->after[i * fuse->prog->nests.count + j];
    const Mark mark = ir_mark(fuse->job);
    Nest turned;
    if (fuse->turns && sums_across(a) && gen_is_plain(b) && gen_turn_nest(fuse->job, fuse->prog, a, b, &turned))
        b = &turned;
    else if (fuse->turns && gen_is_plain(a) && sums_across(b) && gen_turn_nest(fuse->job, fuse->prog, b, a, &turned))
        a = &turned;
    Poly bytes;
    bool linked = (ordered && reads_tmp_of(fuse, i, b)) || gen_share_full_read(a, b) || are_parts_alike(a, b);
    if (!linked && fuse->telling && !gen_same_axes(a, b)) linked = shared_reads(fuse, a, b, &bytes) != NULL;
    if (!linked) return false;
    if (!gen_same_axes(a, b) && is_turned(a, b))
        gate->name = "order";
    else if (!may_join(a, b))
        gate->name = "class";
    else if (!gen_same_axes(a, b))
        gate->name = goes_alike(a, b) ? "parts" : "axes";
    else if (!gen_same_parts(fuse->prog, a, b))
        gate->name = "parts";
    else if (!same_maps(fuse, i, a, b))
        gate->name = "map";
    else if (!alias_allows(fuse->prog, a, b))
        gate->name = "alias";
    else if (makes_cycle(fuse, i, j))
        gate->name = "cycle";
    if (gate->name) {
        ir_reset(fuse->job, mark);
        return true;
    }
    *nest = gen_join_nests(fuse->job, fuse->prog, a, b);
    nest->class = joined_class(a, b, nest);
    int64_t statements = gen_nest_statements(fuse->prog, nest), reads = count_reads(nest);
    if (statements > fuse->statements)
        *gate = (Gate){"statements", statements, fuse->statements};
    else if (reads > fuse->reads)
        *gate = (Gate){"reads", reads, fuse->reads};
    if (gate->name) ir_reset(fuse->job, mark);
    return true;
}

/* The joined nest takes the place of j; what must follow i follows it. */
static void replace(Fuse *fuse, uint32_t i, uint32_t j, const Nest *nest) {
    const Mark mark = ir_mark(fuse->job);
    const uint32_t count = fuse->prog->nests.count;
    Nest *nests = fuse->prog->nests.at, *old = IR_NEW_ARRAY(fuse->job, Nest, count);
    uint32_t kept = i, *to = IR_NEW_ARRAY(fuse->job, uint32_t, count); /* where each nest goes */
    memcpy(old, nests, count * sizeof *old);
    for (uint32_t k = 0; k < count; k++) to[k] = k < i ? k : k - 1;
    for (uint32_t k = i + 1; k < j; k++)
        if (!fuse->later[k]) to[k] = kept++;
    to[i] = to[j] = kept++;
    for (uint32_t k = i + 1; k < j; k++)
        if (fuse->later[k]) to[k] = kept++;
    for (uint32_t k = i + 1; k < count; k++) nests[to[k]] = old[k];
    Nest *joined = &nests[to[i]];
    *joined = *nest;
    fuse->prog->nests.count--;
    for (uint32_t b = 0; b < fuse->prog->bufs.count; b++)
        if (fuse->writer[b] != IR_NONE) fuse->writer[b] = to[fuse->writer[b]];
    ir_reset(fuse->job, mark);
    const uint32_t nest_count = fuse->prog->nests.count;
    gen_tidy_nest(fuse->job, fuse->prog, joined);
    if (fuse->prog->nests.count != nest_count) find_writers(fuse); /* some had nothing left to do */
    find_order(fuse);
}

static bool join_with_later(Fuse *fuse, uint32_t i) {
    find_later(fuse, i);
    for (uint32_t j = i + 1; j < fuse->prog->nests.count; j++) {
        Gate gate;
        Nest nest;
        if (!examine(fuse, i, j, &gate, &nest) || gate.name) continue;
        replace(fuse, i, j, &nest);
        return true;
    }
    return false;
}

/* They read nothing in common but the name: slices of one tensor. */
static const char *sliced_tensor(const Fuse *fuse, const Nest *a, const Nest *b) {
    const Prog *prog = fuse->prog;
    for (uint32_t i = 0; fuse->unit->graph && i < a->accesses.count; i++)
        for (uint32_t k = 0; k < b->accesses.count; k++) {
            const Buf *x = &prog->bufs.at[a->accesses.at[i].buf], *y = &prog->bufs.at[b->accesses.at[k].buf];
            if (x != y && x->kind == BUF_IN && y->kind == BUF_IN && x->tensor == y->tensor)
                return fuse->unit->graph->inputs.at[x->tensor].name;
        }
    return NULL;
}

static void refuse(Fuse *fuse, const Nest *a, const Nest *b, const Gate *gate, const char *why) {
    Job *job = fuse->job;
    Poly bytes;
    const char *nests = ir_format(job, "%s %s", a->name, b->name), *shared = shared_reads(fuse, a, b, &bytes);
    const char *twice =
        shared ? ir_format(job, "; %s read twice, bytes: %s", shared, gen_bytes_text(job, fuse->unit, bytes)) : "";
    *IR_PUSH(job, &fuse->unit->reports) =
        (Report){.pass = "fuse",
                 .nests = nests,
                 .gate = gate->name,
                 .number = gate->number,
                 .limit = gate->limit,
                 .text = ir_format(job, "%s are not joined: %s%s%s", nests, gate->name, why, twice)};
}

static void report_refusals(Fuse *fuse) {
    Prog *prog = fuse->prog;
    fuse->telling = true;
    for (uint32_t i = 0; i < prog->nests.count; i++) {
        find_later(fuse, i);
        for (uint32_t j = i + 1; j < prog->nests.count; j++) {
            const Nest *a = &prog->nests.at[i], *b = &prog->nests.at[j];
            Gate gate;
            Nest nest;
            bool linked = examine(fuse, i, j, &gate, &nest);
            const char *sliced = linked ? NULL : sliced_tensor(fuse, a, b);
            if (sliced)
                refuse(fuse, a, b, &(Gate){.name = "slices"},
                       ir_format(fuse->job, ": other elements of %s in each", sliced));
            else if (linked && gate.name)
                refuse(
                    fuse, a, b, &gate,
                    gen_fuse_why(fuse->job, prog, gate.name, i, j, find_between(fuse, i, j), gate.number, gate.limit));
        }
    }
}

/* Refusals found before nests changed hold no more. */
static void drop_refusals(Unit *unit) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < unit->reports.count; i++) {
        const Report *report = &unit->reports.at[i];
        if (strcmp(report->pass, "fuse") || !report->gate) unit->reports.at[kept++] = *report;
    }
    unit->reports.count = kept;
}

static const char *unused_name(const Fuse *fuse, uint32_t *number) {
    for (;;) {
        const char *name = ir_format(fuse->job, "f%u", (*number)++);
        uint32_t i = 0;
        while (i < fuse->prog->nests.count && strcmp(fuse->prog->nests.at[i].name, name)) i++;
        if (i == fuse->prog->nests.count) return name;
    }
}

/* Joined nests are called f0, f1, ... */
static void name_joined(Fuse *fuse) {
    uint32_t number = 0;
    for (uint32_t i = 0; i < fuse->prog->nests.count; i++) {
        Nest *nest = &fuse->prog->nests.at[i];
        if (!strchr(nest->name, ' ')) continue;
        const char *from = nest->name;
        nest->name = unused_name(fuse, &number);
        *IR_PUSH(fuse->job, &fuse->unit->reports) =
            (Report){.pass = "fuse", .nests = from, .text = ir_format(fuse->job, "%s joins %s", nest->name, from)};
    }
}

void gen_fuse(Job *job, Unit *unit) {
    gen_unite_single_parts(job, unit);
    const char *mode = gen_knob_text(&unit->options, KNOB_FUSE, NULL);
    if (mode && !strcmp(mode, "off")) return;
    Fuse fuse = {.job = job, .unit = unit, .prog = unit->prog};
    fuse.statements = gen_knob_int(&unit->options, KNOB_FUSE_STATEMENTS, NULL);
    fuse.reads = gen_knob_int(&unit->options, KNOB_FUSE_READS, NULL);
    if (!fuse.statements) fuse.statements = GEN_FUSE_STATEMENTS;
    if (!fuse.reads) fuse.reads = GEN_FUSE_READS;
    uint32_t count = unit->prog->nests.count; /* from here on this and that of the bufs only fall */
    fuse.writer = IR_NEW_ARRAY(job, uint32_t, unit->prog->bufs.count + 1);
    fuse.overwritten = IR_NEW_ARRAY(job, bool, unit->prog->bufs.count + 1);
    fuse.after = IR_NEW_ARRAY(job, bool, (size_t)count *count + 1);
    fuse.later = IR_NEW_ARRAY(job, bool, count + 1);
    find_writers(&fuse);
    find_order(&fuse);
    for (bool again = true; again || !fuse.turns;) {
        fuse.turns = fuse.turns || !again;
        again = false;
        for (uint32_t i = 0; i < unit->prog->nests.count;) {
            if (join_with_later(&fuse, i))
                again = true;
            else
                i++;
        }
    }
    gen_share_stores(job, unit->prog);
    find_writers(&fuse);
    find_order(&fuse);
    name_joined(&fuse);
    drop_refusals(unit);
    report_refusals(&fuse);
    gen_tidy(job, unit->prog);
}
