/* What one nest stores twice, in two tmps or as two sums in parts, it stores once: such twins come from joined nests,
 * where a mean that keeps its dim and one that does not were two. In: a Prog whose nests are joined. Out: the second
 * buffer's readers read the first; it is left without a writer, for gen_tidy. */
#include "gen/nests.h"

#include <string.h>

static bool is_private(const Prog *prog, const Nest *nest, const Stmt *stmt) {
    if (stmt->op == OP_PARTIAL_ACCUMULATE) return true;
    return stmt->op == OP_STORE && prog->bufs.at[nest->accesses.at[stmt->access].buf].kind == BUF_TMP;
}

static bool are_twins(const Prog *prog, const Nest *nest, const Stmt *a, const Stmt *b) {
    if (a->op != b->op || a->arg[0] != b->arg[0] || a->dtype != b->dtype) return false;
    if (a->op == OP_PARTIAL_ACCUMULATE && (a->reduction != b->reduction || a->consumed != b->consumed)) return false;
    Access first = nest->accesses.at[a->access];
    const Access *second = &nest->accesses.at[b->access];
    const Buf *x = &prog->bufs.at[first.buf], *y = &prog->bufs.at[second->buf];
    first.buf = second->buf;
    if (x->dtype != y->dtype || x->rank != y->rank || !gen_same_access(nest, &first, second)) return false;
    for (uint32_t d = 0; d < x->rank; d++)
        if (!ir_size_equal(x->extent[d], y->extent[d])) return false;
    return true;
}

/* The same statements but for `without`, equal ones once. */
static void rebuild(Job *job, Nest *nest, uint32_t without) {
    const Nest old = *nest;
    uint32_t *id = IR_NEW_ARRAY(job, uint32_t, old.stmts.count + (size_t)1);
    memset(&nest->stmts, 0, sizeof nest->stmts);
    memset(&nest->accesses, 0, sizeof nest->accesses);
    for (uint32_t i = 0; i < old.stmts.count; i++)
        if (i != without) id[i] = gen_nest_add_from(job, nest, &old, old.stmts.at[i], id);
}

static void read_instead(Job *job, Prog *prog, uint32_t from, uint32_t to) {
    for (uint32_t n = 0; n < prog->nests.count; n++) {
        Nest *nest = &prog->nests.at[n];
        if (!gen_nest_loads(nest, from)) continue;
        for (uint32_t i = 0; i < nest->accesses.count; i++)
            if (nest->accesses.at[i].buf == from) nest->accesses.at[i].buf = to;
        rebuild(job, nest, IR_NONE);
    }
}

/* Drops the second of a pair of twins in nest n; false where there is none. */
static bool drop_twin(Job *job, Prog *prog, uint32_t n) {
    Nest *nest = &prog->nests.at[n];
    for (uint32_t i = 0; i < nest->stmts.count; i++) {
        if (!is_private(prog, nest, &nest->stmts.at[i])) continue;
        for (uint32_t k = i + 1; k < nest->stmts.count; k++) {
            if (!is_private(prog, nest, &nest->stmts.at[k])) continue;
            if (!are_twins(prog, nest, &nest->stmts.at[i], &nest->stmts.at[k])) continue;
            uint32_t kept = nest->accesses.at[nest->stmts.at[i].access].buf;
            uint32_t dropped = nest->accesses.at[nest->stmts.at[k].access].buf;
            rebuild(job, nest, k);
            read_instead(job, prog, dropped, kept);
            return true;
        }
    }
    return false;
}

void gen_share_stores(Job *job, Prog *prog) {
    for (uint32_t n = 0; n < prog->nests.count; n++) /* readers come later, and have twins of their own then */
        while (drop_twin(job, prog, n)) continue;
}
