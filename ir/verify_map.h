/* V5's test of maps, for ir/verify.c and what launches. */
#ifndef IR_VERIFY_MAP_H
#define IR_VERIFY_MAP_H

#include "ir/prog.h"

/* Why two points of the nest may store to one element, or NULL where none do or where only the launch can tell. */
const char *ir_map_overlaps(Job *job, const Prog *prog, const Nest *nest, const Access *access);

#endif
