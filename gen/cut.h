/* What the files of cut share. */
#ifndef GEN_CUT_H
#define GEN_CUT_H

#include "gen/bytes.h"
#include "gen/gen.h"

/* A value that has to be computed: no load, number or index, which any nest may have again for nothing or its bytes. */
bool gen_cut_computes(const Stmt *stmt);
/* Bytes of the value in a tmp, each element once. */
Poly gen_cut_bytes(Job *job, const Prog *prog, const Nest *nest, uint32_t id);
/* Stores the value of a statement to a new tmp, as the nest's last statement, and returns the store; its map is
 * dense, in the order in which the nest reads memory. IR_NONE where the value has more axes than a buf dims. */
uint32_t gen_cut_store(Job *job, Prog *prog, Nest *nest, uint32_t id);
/* A load of what was stored, in place of `like`. */
Stmt gen_cut_load(const Stmt *like, uint32_t access);

/* Whether the tree of b's statement is that of a's, and, when it is, which axis of a stands for each of b's. */
bool gen_cut_equal(Job *job, const Prog *prog, const Nest *a, uint32_t a_id, const Nest *b, uint32_t b_id,
                   uint32_t *axis);

/* Nests of more statements than the limit in pieces. (gen/cut_limit.c) */
void gen_cut_limit(Job *job, Unit *unit, int64_t limit);

#endif
