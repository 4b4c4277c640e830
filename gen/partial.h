/* What fuse and schedule ask of gen/partial.c about reductions in parts. */
#ifndef GEN_PARTIAL_H
#define GEN_PARTIAL_H

#include "gen/gen.h"

/* Whether the part of a nest that consumes these axes is best one, by the dims' hints; *why: the numbers. */
bool gen_one_part(Job *job, const Unit *unit, const Nest *nest, uint32_t consumed, const char **why);

/* What is made in parts is consumed along the same axes in the same parts, and no other sum is made beside it. */
bool gen_same_parts(const Prog *prog, const Nest *a, const Nest *b);
/* Sums in parts of which one is enough are whole again. (gen/single_part.c) */
void gen_unite_single_parts(Job *job, Unit *unit);

/* Whether finalize combines the parts that accumulate stores, and the statement that does. */
bool gen_is_parts_of(const Nest *accumulate, const Nest *finalize, const Stmt **partial);
/* The two as one nest with a reduction, class OUTER. accumulate has but one partial_accumulate. */
Nest gen_unite_parts(Job *job, const Nest *accumulate, const Nest *finalize, const Stmt *partial);

#endif
