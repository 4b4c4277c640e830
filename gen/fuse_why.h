/* Why fuse keeps two nests apart, in words. */
#ifndef GEN_FUSE_WHY_H
#define GEN_FUSE_WHY_H

#include "gen/gen.h"

/* Behind the gate's word: ": n1 waits for n2, which waits for the whole of n0". between: of gate cycle, the nest that
 * has to run between the two. number, limit: of the gates that count. */
const char *gen_fuse_why(Job *job, const Prog *prog, const char *gate, uint32_t i, uint32_t j, uint32_t between,
                         int64_t number, int64_t limit);
#endif
