/* What fuse and schedule ask of gen/partial.c about reductions in parts. */
#ifndef GEN_PARTIAL_H
#define GEN_PARTIAL_H

#include "gen/gen.h"

/* Whether the part of a nest that consumes these axes is best one, by the dims' hints. */
bool gen_one_part(Job *job, const Unit *unit, const Nest *nest, uint32_t consumed);

/* Whether finalize combines the parts that accumulate stores, and the statement that does. */
bool gen_is_parts_of(const Nest *accumulate, const Nest *finalize, const Stmt **partial);
/* The two as one nest with a reduction, class OUTER. accumulate has but one partial_accumulate. */
Nest gen_unite_parts(Job *job, const Nest *accumulate, const Nest *finalize, const Stmt *partial);

#endif
