/* cut: values that move fewer bytes stored once than computed again.
 *
 * needs   fused nests in topological order
 * gives   a value that a nest computes and later ones compute again is stored by the first and loaded by those whose
 *         reads, no longer needed, are more bytes than the load, where what they save is more than the store. Bytes are
 *         compared at the dims' hints and stand in unit->reports, cut or not. A nest of more statements than
 *         `cut_statements` is several, one after the other (gen/cut_limit.c)
 * breaks  nothing
 *
 * Equal are trees of the same operations on loads of the same elements, the axes of one nest standing for those of the
 * other; what the first nest stores in a tmp and the later one loads is equal too. */
#include "gen/cut.h"
#include "gen/breakpoints.h"
#include "gen/knobs.h"
#include "gen/nests.h"

#include <string.h>

typedef struct Reader { /* a later nest that loads the value */
    uint32_t nest, stmt;
    uint32_t group;           /* the first of those that may be joined with it and then load once */
    bool shortened;           /* it was longer than a nest may be, and is not any more */
    int64_t spared;           /* bytes by the hints that it need not read any more */
    Size stride[IR_MAX_AXES]; /* of its axes, in what is stored */
} Reader;
typedef IR_LIST(Reader) ReaderList;

typedef struct Cut {
    uint32_t stmt; /* of the nest that stores; IR_NONE: there is none */
    ReaderList readers;
    bool forced;           /* it shortens a nest that is too long */
    int64_t again, stored; /* bytes by the hints: read to compute it again; of the store and the loads */
} Cut;

typedef struct Known { /* of a nest */
    uint32_t *stmt_of; /* of each value of the graph: the last statement that computes it, or IR_NONE */
    int64_t *bytes;    /* of each access, by the hints */
} Known;

typedef struct Cutter {
    Job *job;
    Unit *unit;
    Prog *prog;
    int64_t limit; /* statements that a nest should have at most */
    bool joins;    /* fuse may join what reads the same value */
    uint32_t value_count;
    Known *known;    /* of each nest */
    CutPair **pairs; /* of the nest at hand with each later one, once one was asked for */
    bool *after;     /* [a * nests + b]: nest b runs after a, because of it or of what does */
} Cutter;

/* ---- bytes ---- */

/* Accesses that the nest's stores need, were statement `without` there already; and how many statements. */
static bool *needed_accesses(Job *job, const Nest *nest, uint32_t without, uint32_t *count) {
    bool *needed = IR_NEW_ARRAY(job, bool, nest->stmts.count), *used = IR_NEW_ARRAY(job, bool, nest->accesses.count);
    *count = 0;
    for (uint32_t i = nest->stmts.count; i-- > 0;) {
        const Stmt *stmt = &nest->stmts.at[i];
        bool sink = stmt->op == OP_STORE || stmt->op == OP_PARTIAL_ACCUMULATE;
        if (!(needed[i] || sink)) continue;
        ++*count;
        if (i == without) continue;
        for (uint32_t k = 0; k < stmt->arg_count; k++) needed[stmt->arg[k]] = true;
        if (stmt->op != OP_LOAD) continue;
        used[stmt->access] = true;
        uint32_t index = nest->accesses.at[stmt->access].index;
        if (index != IR_NONE) needed[index] = true;
    }
    return used;
}

/* Marks the accesses that the nest need not make when it loads the value of a statement instead. */
static bool *spared_accesses(Job *job, const Nest *nest, uint32_t id, uint32_t *left) {
    uint32_t count;
    bool *all = needed_accesses(job, nest, IR_NONE, &count), *rest = needed_accesses(job, nest, id, left);
    for (uint32_t i = 0; i < nest->accesses.count; i++) all[i] = all[i] && !rest[i];
    return all;
}

static int64_t spared_guess(Cutter *c, uint32_t n, uint32_t id, uint32_t *left) {
    const Nest *nest = &c->prog->nests.at[n];
    Mark mark = ir_mark(c->job);
    const bool *spared = spared_accesses(c->job, nest, id, left);
    int64_t bytes = 0;
    for (uint32_t i = 0; i < nest->accesses.count; i++)
        if (spared[i] && ir_add_overflows(bytes, c->known[n].bytes[i], &bytes)) bytes = IR_MAX_EXTENT;
    ir_reset(c->job, mark);
    return bytes;
}

static Poly spared_bytes(Cutter *c, const Nest *nest, uint32_t id) {
    uint32_t left;
    const bool *spared = spared_accesses(c->job, nest, id, &left);
    Poly bytes = ir_poly_int(c->job, 0);
    bool overflow = false;
    for (uint32_t i = 0; i < nest->accesses.count; i++)
        if (spared[i])
            bytes =
                ir_poly_add(c->job, bytes, gen_access_bytes(c->job, c->prog, nest, &nest->accesses.at[i]), &overflow);
    return bytes;
}

/* ---- choosing ---- */

static void find_order(Cutter *c) {
    const uint32_t count = c->prog->nests.count;
    uint32_t *writer = IR_NEW_ARRAY(c->job, uint32_t, c->prog->bufs.count + (size_t)1);
    c->after = IR_NEW_ARRAY(c->job, bool, (size_t)count *count + 1);
    for (uint32_t b = 0; b < c->prog->bufs.count; b++) writer[b] = IR_NONE;
    for (uint32_t n = 0; n < count; n++) {
        const Nest *nest = &c->prog->nests.at[n];
        for (uint32_t i = 0; i < nest->stmts.count; i++) {
            const Stmt *stmt = &nest->stmts.at[i];
            if (stmt->access == IR_NONE) continue;
            uint32_t buf = nest->accesses.at[stmt->access].buf;
            if (stmt->op != OP_LOAD) {
                writer[buf] = n;
                continue;
            }
            uint32_t from = writer[buf];
            if (from >= n || c->after[from * count + n]) continue;
            for (uint32_t k = 0; k <= from; k++)
                if (k == from || c->after[k * count + from]) c->after[k * count + n] = true;
        }
    }
}

/* Whether reader r may run in one kernel with those of a group: none has to wait for a nest that waits for another. */
static bool joins(const Cutter *c, const ReaderList *readers, uint32_t group, uint32_t nest) {
    const uint32_t count = c->prog->nests.count;
    if (!c->joins || !gen_same_axes(&c->prog->nests.at[readers->at[group].nest], &c->prog->nests.at[nest]))
        return false;
    for (uint32_t k = readers->at[group].nest + 1; k < nest; k++) {
        bool member = false, follows = false;
        for (uint32_t r = group; r < readers->count; r++) {
            if (readers->at[r].group != group) continue;
            member = member || readers->at[r].nest == k;
            follows = follows || c->after[readers->at[r].nest * count + k];
        }
        if (!member && follows && c->after[k * count + nest]) return false;
    }
    return true;
}

static void look_at(Cutter *c, uint32_t n) {
    const Nest *nest = &c->prog->nests.at[n];
    Known *known = &c->known[n];
    for (uint32_t v = 0; v < c->value_count; v++) known->stmt_of[v] = IR_NONE;
    for (uint32_t i = 0; i < nest->stmts.count; i++) {
        const Stmt *stmt = &nest->stmts.at[i];
        if (gen_cut_computes(stmt) && stmt->value < c->value_count) known->stmt_of[stmt->value] = i;
    }
    known->bytes = IR_NEW_ARRAY(c->job, int64_t, nest->accesses.count + (size_t)1);
    for (uint32_t i = 0; i < nest->accesses.count; i++)
        known->bytes[i] =
            gen_bytes_guess(c->job, c->unit, gen_access_bytes(c->job, c->prog, nest, &nest->accesses.at[i]));
}

static const CutPair *pair_of(Cutter *c, uint32_t first, uint32_t n) {
    if (!c->pairs[n]) {
        c->pairs[n] = IR_NEW(c->job, CutPair);
        *c->pairs[n] = gen_cut_pair(c->job, c->prog, &c->prog->nests.at[first], &c->prog->nests.at[n]);
    }
    return c->pairs[n];
}

/* Nests after `first` that compute its statement again. */
static ReaderList find_readers(Cutter *c, uint32_t first, uint32_t id) {
    const Nest *a = &c->prog->nests.at[first];
    ReaderList readers = {0};
    Buf buf;
    Access map;
    uint32_t stored = gen_cut_stored(c->prog, a, id);
    if (stored != IR_NONE)
        map = a->accesses.at[a->stmts.at[stored].access];
    else if (!gen_cut_map(c->job, c->prog, a, id, &buf, &map))
        return readers;
    for (uint32_t n = first + 1; n < c->prog->nests.count; n++) {
        const Nest *b = &c->prog->nests.at[n];
        Reader reader = {.nest = n, .stmt = c->known[n].stmt_of[a->stmts.at[id].value], .group = readers.count};
        if (reader.stmt == IR_NONE) continue;
        if (!gen_cut_equal(c->job, c->prog, pair_of(c, first, n), id, reader.stmt, &map, reader.stride)) continue;
        uint32_t left;
        reader.spared = spared_guess(c, n, reader.stmt, &left);
        reader.shortened = gen_nest_statements(c->prog, b) > c->limit && left <= c->limit;
        for (uint32_t r = 0; r < readers.count && reader.group == readers.count; r++)
            if (readers.at[r].group == r && joins(c, &readers, r, n)) reader.group = r;
        *IR_PUSH(c->job, &readers) = reader;
    }
    return readers;
}

/* What later nests save by loading a statement of `first`. Those that together save no more than their load compute on,
 * but with `all`, which tells what is not cut. */
static Cut weigh(Cutter *c, uint32_t first, uint32_t id, bool all) {
    const Poly bytes = gen_cut_bytes(c->job, c->prog, &c->prog->nests.at[first], id);
    const int64_t one = gen_bytes_guess(c->job, c->unit, bytes);
    ReaderList found = find_readers(c, first, id);
    Cut cut = {.stmt = id, .stored = one};
    bool overflow = false, *kept = IR_NEW_ARRAY(c->job, bool, found.count + (size_t)1);
    for (uint32_t g = 0; g < found.count; g++) {
        if (found.at[g].group != g) continue;
        int64_t spared = 0;
        bool forced = false;
        for (uint32_t r = g; r < found.count; r++) {
            if (found.at[r].group != g) continue;
            overflow = ir_add_overflows(spared, found.at[r].spared, &spared) || overflow;
            forced = forced || found.at[r].shortened;
        }
        kept[g] = all || forced || spared > one;
        if (!kept[g]) continue;
        cut.forced = cut.forced || forced;
        overflow = ir_add_overflows(cut.again, spared, &cut.again) || overflow;
        overflow = ir_add_overflows(cut.stored, one, &cut.stored) || overflow;
    }
    for (uint32_t r = 0; r < found.count; r++)
        if (kept[found.at[r].group]) *IR_PUSH(c->job, &cut.readers) = found.at[r];
    return overflow ? (Cut){.stmt = IR_NONE} : cut;
}

static bool is_better(const Cut *cut, const Cut *best, bool all) {
    if (best->stmt == IR_NONE) return true;
    if (all) return cut->again >= best->again;
    if (cut->forced != best->forced) return cut->forced;
    return cut->again - cut->stored >= best->again - best->stored; /* of equals the last: most is computed once */
}

/* Kernels of sums across rows store nothing an element. */
static bool may_store(const Nest *nest) {
    for (uint32_t i = 0; i < nest->stmts.count; i++)
        if (nest->stmts.at[i].op == OP_PARTIAL_ACCUMULATE && nest->class != CLASS_ROW_PARTIAL) return false;
    return nest->class == CLASS_POINTWISE || nest->class == CLASS_INNER || nest->class == CLASS_ROW ||
           nest->class == CLASS_ROW_PARTIAL;
}

/* The value of a nest by whose store most is saved; with `all`, the one that takes most to compute again. */
static Cut best_cut(Cutter *c, uint32_t first, bool all) {
    const Nest *nest = &c->prog->nests.at[first];
    Cut best = {.stmt = IR_NONE};
    c->pairs = IR_NEW_ARRAY(c->job, CutPair *, c->prog->nests.count + (size_t)1);
    for (uint32_t i = 0; may_store(nest) && i < nest->stmts.count; i++) {
        const Stmt *stmt = &nest->stmts.at[i];
        if (!gen_cut_stores(nest, i) || stmt->value >= c->value_count) continue;
        if (c->known[first].stmt_of[stmt->value] != i) continue;
        Cut cut = weigh(c, first, i, all);
        if (cut.stmt == IR_NONE || !cut.readers.count || !cut.again) continue;
        if (is_better(&cut, &best, all)) best = cut;
    }
    return best;
}

static void report(Cutter *c, uint32_t first, const Cut *cut, const char *gate) {
    Job *job = c->job;
    const Nest *a = &c->prog->nests.at[first];
    const Stmt *stmt = &a->stmts.at[cut->stmt];
    const Poly one = gen_cut_bytes(job, c->prog, a, cut->stmt);
    Poly again = ir_poly_int(job, 0), stored = one;
    bool overflow = false;
    Text nests = ir_text(job);
    ir_text_put(&nests, a->name);
    for (uint32_t r = 0; r < cut->readers.count; r++) {
        const Reader *reader = &cut->readers.at[r];
        const Nest *b = &c->prog->nests.at[reader->nest];
        ir_text_format(&nests, " %s", b->name);
        again = ir_poly_add(job, again, spared_bytes(c, b, reader->stmt), &overflow);
        bool leads = true;
        for (uint32_t k = 0; k < r; k++) leads = leads && cut->readers.at[k].group != reader->group;
        if (leads) stored = ir_poly_add(job, stored, one, &overflow);
    }
    const char *value = stmt->name ? stmt->name : ir_format(job, "%%%u", ir_value_number(a, cut->stmt));
    const char *all = ir_text_string(&nests), *readers = all + strlen(a->name) + 1;
    const char *text = ir_format(job, "%s of %s is %s %s: bytes to compute it again: %s; to store and load it: %s",
                                 value, a->name, gate ? "computed again in" : "stored for", readers,
                                 gen_bytes_text(job, c->unit, again), gen_bytes_text(job, c->unit, stored));
    *IR_PUSH(job, &c->unit->reports) =
        (Report){.pass = "cut", .nests = all, .gate = gate, .number = cut->again, .limit = cut->stored, .text = text};
}

static bool apply(Cutter *c, uint32_t first, const Cut *cut) {
    Nest *a = &c->prog->nests.at[first];
    uint32_t stored = gen_cut_stored(c->prog, a, cut->stmt);
    if (stored == IR_NONE) stored = gen_cut_store(c->job, c->prog, a, cut->stmt);
    if (stored == IR_NONE) return false;
    const Access map = a->accesses.at[a->stmts.at[stored].access];
    for (uint32_t r = 0; r < cut->readers.count; r++) {
        const Reader *reader = &cut->readers.at[r];
        Nest *b = &c->prog->nests.at[reader->nest];
        Stmt *stmt = &b->stmts.at[reader->stmt];
        Access access = {.buf = map.buf, .index = IR_NONE};
        memcpy(access.stride, reader->stride, sizeof access.stride);
        *stmt = gen_cut_load(stmt, ir_nest_add_access(c->job, b, &access));
        ir_nest_sweep(c->job, b);
    }
    return true;
}

static Cutter start(Job *job, Unit *unit, int64_t limit) {
    Cutter c = {.job = job, .unit = unit, .prog = unit->prog, .limit = limit};
    const char *fuse = gen_knob_text(&unit->options, KNOB_FUSE, NULL);
    c.joins = !fuse || strcmp(fuse, "off") != 0;
    c.value_count = unit->expanded ? unit->expanded->values.count : 0;
    c.known = IR_NEW_ARRAY(job, Known, unit->prog->nests.count + (size_t)1);
    for (uint32_t n = 0; n < unit->prog->nests.count; n++) {
        c.known[n].stmt_of = IR_NEW_ARRAY(job, uint32_t, c.value_count + (size_t)1);
        look_at(&c, n);
    }
    find_order(&c);
    return c;
}

/* Stores one value; false where none is worth it. */
static bool cut_one(Job *job, Unit *unit, int64_t limit) {
    Cutter c = start(job, unit, limit);
    for (uint32_t n = 0; n + 1 < unit->prog->nests.count; n++) {
        Cut cut = best_cut(&c, n, false);
        if (cut.stmt == IR_NONE || (!cut.forced && cut.again <= cut.stored)) continue;
        report(&c, n, &cut, NULL);
        if (apply(&c, n, &cut)) return true;
        unit->reports.count--;
    }
    return false;
}

static void tell_rest(Job *job, Unit *unit, int64_t limit) {
    Cutter c = start(job, unit, limit);
    for (uint32_t n = 0; n + 1 < unit->prog->nests.count; n++) {
        Cut cut = best_cut(&c, n, true);
        if (cut.stmt != IR_NONE) report(&c, n, &cut, "bytes");
    }
}

void gen_cut(Job *job, Unit *unit) {
    const char *mode = gen_knob_text(&unit->options, KNOB_CUT, NULL);
    int64_t limit = gen_knob_int(&unit->options, KNOB_CUT_STATEMENTS, NULL);
    if (!limit) limit = GEN_CUT_STATEMENTS;
    if (!mode || strcmp(mode, "off") != 0) {
        while (cut_one(job, unit, limit)) gen_fuse(job, unit); /* nests that were too long together may be joined now */
        tell_rest(job, unit, limit);
    }
    gen_cut_limit(job, unit, limit);
    gen_tidy(job, unit->prog);
}
