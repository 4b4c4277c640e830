/* What fuse and schedule ask of gen/partial.c about reductions in parts. */
#ifndef GEN_PARTIAL_H
#define GEN_PARTIAL_H

#include "gen/gen.h"

/* A reduction across so few rows is not worth a second launch. */
#define GEN_ROWS_OF_ONE_PART 64
/* Columns an SM beyond which the columns alone keep all SMs busy: two CTAs of 256 columns. With as many a launch would
 * make one part too (at most four CTAs an SM, shared by more than two side by side), so whether the extent is known
 * changes no bits. */
#define GEN_COLUMNS_OF_ONE_PART 512

/* Whether the part of a nest that consumes these axes is best one, by the dims' hints. */
bool gen_one_part(Job *job, const Unit *unit, const Nest *nest, uint32_t consumed);

/* Whether finalize combines the parts that accumulate stores, and the statement that does. */
bool gen_is_parts_of(const Nest *accumulate, const Nest *finalize, const Stmt **partial);
/* The two as one nest with a reduction, class OUTER. accumulate has but one partial_accumulate. */
Nest gen_unite_parts(Job *job, const Nest *accumulate, const Nest *finalize, const Stmt *partial);

#endif
