/* In: two nests of equal axes. Out: their statements as one nest, in the order that in-place stores and sums across
 * rows ask for (gen/nests.h). Left alone: whether they may be joined, which fuse decides. */
#include "gen/nests.h"

#include <string.h>

uint32_t gen_stored_value(const Prog *prog, const Nest *a, const Nest *b, const Stmt *load) {
    const Access *access = &b->accesses.at[load->access];
    if (prog->bufs.at[access->buf].kind != BUF_TMP) return IR_NONE;
    const Stmt *store = gen_nest_store(a, access->buf);
    if (!store || !gen_same_access(a, &a->accesses.at[store->access], access)) return IR_NONE;
    return store->arg[0];
}

uint32_t gen_nest_add_from(Job *job, Nest *to, const Nest *from, Stmt stmt, const uint32_t *id) {
    for (uint32_t k = 0; k < stmt.arg_count; k++) stmt.arg[k] = id[stmt.arg[k]];
    if (stmt.access != IR_NONE) {
        Access access = from->accesses.at[stmt.access];
        if (access.index != IR_NONE) access.index = id[access.index];
        stmt.access = ir_nest_add_access(job, to, &access);
    }
    return ir_nest_add(job, to, &stmt);
}

/* Adds the statements of `from`; with `first`, whose statements are there already as first_id, loads of what it stored
 * become the values themselves. */
static void add_stmts(Job *job, const Prog *prog, Nest *to, const Nest *from, const Nest *first,
                      const uint32_t *first_id, uint32_t *id) {
    for (uint32_t i = 0; i < from->stmts.count; i++) {
        const Stmt *stmt = &from->stmts.at[i];
        uint32_t value = first && stmt->op == OP_LOAD ? gen_stored_value(prog, first, from, stmt) : IR_NONE;
        id[i] = value != IR_NONE ? first_id[value] : gen_nest_add_from(job, to, from, *stmt, id);
    }
}

static bool is_in_place(const Prog *prog, const Nest *nest, const Stmt *stmt) {
    return stmt->op == OP_STORE && prog->bufs.at[nest->accesses.at[stmt->access].buf].may_alias != IR_NONE;
}

/* The same statements, stores in place behind all others and those of later phases first: then nothing that stands
 * behind one asks again, in a later phase, for what it overwrites. */
static void put_in_place_last(Job *job, const Prog *prog, Nest *nest) {
    const Nest old = *nest;
    uint32_t phases, *phase = ir_nest_phases(job, &old, &phases);
    uint32_t *id = IR_NEW_ARRAY(job, uint32_t, old.stmts.count + (size_t)1);
    memset(&nest->stmts, 0, sizeof nest->stmts);
    memset(&nest->accesses, 0, sizeof nest->accesses);
    for (uint32_t q = phases + 1; q-- > 0;) { /* first the others */
        for (uint32_t i = 0; i < old.stmts.count; i++) {
            bool last = is_in_place(prog, &old, &old.stmts.at[i]);
            if (q == phases ? last : !last || phase[i] != q) continue;
            id[i] = gen_nest_add_from(job, nest, &old, old.stmts.at[i], id);
        }
    }
}

/* ---- sums across rows ---- */

typedef struct Needs { /* of each statement: whether something needs it, directly or not */
    bool *stores;      /* some store */
    bool **partial;    /* of each partial_accumulate in order: this one */
    uint32_t *partials;
    uint32_t count;
} Needs;

void gen_mark_needs(const Nest *nest, bool *needed) {
    for (uint32_t i = nest->stmts.count; i-- > 0;) {
        const Stmt *stmt = &nest->stmts.at[i];
        if (!needed[i]) continue;
        for (uint32_t k = 0; k < stmt->arg_count; k++) needed[stmt->arg[k]] = true;
        if (stmt->access != IR_NONE && nest->accesses.at[stmt->access].index != IR_NONE)
            needed[nest->accesses.at[stmt->access].index] = true;
    }
}

static Needs find_needs(Job *job, const Nest *nest) {
    const uint32_t count = nest->stmts.count;
    Needs needs = {.stores = IR_NEW_ARRAY(job, bool, count + 1)};
    needs.partial = IR_NEW_ARRAY(job, bool *, count + (size_t)1);
    needs.partials = IR_NEW_ARRAY(job, uint32_t, count + (size_t)1);
    for (uint32_t i = 0; i < count; i++) {
        needs.stores[i] = nest->stmts.at[i].op == OP_STORE;
        if (nest->stmts.at[i].op != OP_PARTIAL_ACCUMULATE) continue;
        bool *own = IR_NEW_ARRAY(job, bool, count);
        own[i] = true;
        gen_mark_needs(nest, own);
        needs.partials[needs.count] = i;
        needs.partial[needs.count++] = own;
    }
    gen_mark_needs(nest, needs.stores);
    return needs;
}

/* The same statements, each sum across rows, with what only such sums need, as soon as what else it needs is there:
 * accumulators take their elements in the first phase that has them. */
static void put_partials_early(Job *job, Nest *nest) {
    const Nest old = *nest;
    const Needs needs = find_needs(job, &old);
    bool *done = IR_NEW_ARRAY(job, bool, old.stmts.count + (size_t)1);
    uint32_t *id = IR_NEW_ARRAY(job, uint32_t, old.stmts.count + (size_t)1);
    memset(&nest->stmts, 0, sizeof nest->stmts);
    memset(&nest->accesses, 0, sizeof nest->accesses);
    for (uint32_t i = 0; i < old.stmts.count; i++) {
        if (!needs.stores[i]) continue;
        id[i] = gen_nest_add_from(job, nest, &old, old.stmts.at[i], id);
        done[i] = true;
        for (uint32_t p = 0; p < needs.count; p++) {
            bool ready = !done[needs.partials[p]];
            for (uint32_t k = i + 1; k < old.stmts.count && ready; k++)
                ready = !(needs.partial[p][k] && needs.stores[k]);
            for (uint32_t k = 0; k < old.stmts.count && ready; k++) {
                if (!needs.partial[p][k] || done[k]) continue;
                id[k] = gen_nest_add_from(job, nest, &old, old.stmts.at[k], id);
                done[k] = true;
            }
        }
    }
    for (uint32_t i = 0; i < old.stmts.count; i++)
        if (!done[i]) id[i] = gen_nest_add_from(job, nest, &old, old.stmts.at[i], id);
}

Nest gen_join_nests(Job *job, const Prog *prog, const Nest *a, const Nest *b) {
    Nest nest = *a;
    memset(&nest.stmts, 0, sizeof nest.stmts);
    memset(&nest.accesses, 0, sizeof nest.accesses);
    uint32_t *a_id = IR_NEW_ARRAY(job, uint32_t, a->stmts.count + (size_t)1);
    uint32_t *b_id = IR_NEW_ARRAY(job, uint32_t, b->stmts.count + (size_t)1);
    add_stmts(job, prog, &nest, a, NULL, NULL, a_id);
    add_stmts(job, prog, &nest, b, a, a_id, b_id);
    nest.class = gen_nest_reduces(&nest) ? CLASS_ROW : CLASS_POINTWISE;
    nest.name = ir_format(job, "%s %s", a->name, b->name);
    bool in_place = false, partial = false;
    for (uint32_t i = 0; i < nest.stmts.count; i++) {
        in_place = in_place || is_in_place(prog, &nest, &nest.stmts.at[i]);
        partial = partial || nest.stmts.at[i].op == OP_PARTIAL_ACCUMULATE;
    }
    if (partial && nest.row_count < nest.axis_count) put_partials_early(job, &nest);
    if (in_place) put_in_place_last(job, prog, &nest);
    return nest;
}
