/* Whether strides put two elements in one place: of a map (V5), of a tensor in a graph, of a tensor at launch. */
#ifndef IR_VERIFY_MAP_H
#define IR_VERIFY_MAP_H

#include "ir/prog.h"

typedef struct Leg { /* an axis of a map, a dim of a tensor */
    Poly stride, extent;
} Leg;

/* By numbers: one that puts elements in the places of others, or IR_NONE. At most 32 of them; a sign does not count. */
uint32_t ir_strides_meet(const int64_t *extent, const int64_t *stride, uint32_t count);
/* The same where it is so for all dims that leave an element; what only numbers can tell is IR_NONE. An extent that is
 * not known has at least so many elements; at most IR_MAX_AXES legs. */
uint32_t ir_legs_meet(Job *job, const Dim *dims, uint32_t dim_count, const Leg *legs, uint32_t count, int64_t least);
/* Why two points of the nest may store to one element, or NULL. Whether an axis of no known extent has a single point
 * is left to the launch where that looks at the buf's strides. */
const char *ir_map_overlaps(Job *job, const Prog *prog, const Nest *nest, const Access *access, bool launch_looks);

#endif
