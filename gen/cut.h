/* What the files of cut share. */
#ifndef GEN_CUT_H
#define GEN_CUT_H

#include "gen/bytes.h"
#include "gen/gen.h"
#include "gen/nests.h"

/* A value that has to be computed: no load, number or index, which any nest may have again for nothing or its bytes. */
bool gen_cut_computes(const Stmt *stmt);
/* Bytes of the value in a tmp, each element once. */
Poly gen_cut_bytes(Job *job, const Prog *prog, const Nest *nest, uint32_t id);
/* Whether a nest may store the value: each row its own. */
bool gen_cut_stores(const Nest *nest, uint32_t id);
/* A buf for the value of a statement and the map of its store: dense, in the order in which the nest reads memory.
 * False where the value has more axes than a buf dims. */
bool gen_cut_map(Job *job, Prog *prog, const Nest *nest, uint32_t id, Buf *buf, Access *access);
/* Stores the value of a statement to a new tmp, as the nest's last statement, and returns the store; or IR_NONE. */
uint32_t gen_cut_store(Job *job, Prog *prog, Nest *nest, uint32_t id);
/* A store of the value to a tmp that is there already, or IR_NONE. */
uint32_t gen_cut_stored(const Prog *prog, const Nest *nest, uint32_t id);
/* A load of what was stored, in place of `like`. */
Stmt gen_cut_load(const Stmt *like, uint32_t access);

/* Two nests with their axes split at the same places, where that can be; statements keep their numbers. */
typedef struct CutPair {
    Nest a, b;
    AxisParts a_parts, b_parts;
} CutPair;
CutPair gen_cut_pair(Job *job, Prog *prog, const Nest *a, const Nest *b);
/* Whether the tree of b's statement is that of a's; then the strides by which b's own axes find in memory what a stores
 * by the map `stored` of its own. */
bool gen_cut_equal(Job *job, Prog *prog, const CutPair *pair, uint32_t a_id, uint32_t b_id, const Access *stored,
                   Size *stride);

/* Nests of more statements than the limit in pieces. (gen/cut_limit.c) */
void gen_cut_limit(Job *job, Unit *unit, int64_t limit);

#endif
