/* Forward mode: a Graph evaluated in dual numbers, in long double, by rules written here alone. Nothing is taken from
 * the op tables' columns, so that what the compiler derives from them can be compared with it. */
#ifndef TESTS_DUAL_H
#define TESTS_DUAL_H

#include "ir/eval.h"

typedef struct Dual { /* elements in row-major order */
    uint8_t rank;
    int64_t extent[IR_MAX_RANK];
    uint64_t count;
    long double *value, *tangent; /* floats */
    int64_t *integer;             /* integers and bools */
} Dual;

/* Whole tensors of every value, by id. Composites must be expanded; nothing rounds. inputs: one for each of
 * graph->inputs. Where a derivative is a matter of agreement it is PyTorch's: 0 at the kinks of abs, halves where
 * maximum and minimum tie, equal shares where amax and amin do, and straight through what a cast rounds. */
Dual *dual_evaluate(Job *job, const Graph *graph, const int64_t *dims, const Dual *inputs, const Scalar *scalars);

#endif
