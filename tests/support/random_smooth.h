/* Random graphs that have gradients, as text, from a seed: the same text for the same seed everywhere. Dims are small,
 * operands in range, so that gradients may be compared element by element. */
#ifndef TESTS_RANDOM_SMOOTH_H
#define TESTS_RANDOM_SMOOTH_H

#include "ir/graph.h"
#include "tests/support/random.h"

#define SMOOTH_DIMS 3

typedef struct SmoothGraph {
    const char *text;
    const char *dim[SMOOTH_DIMS]; /* the file's dims; some are any */
    int64_t value[SMOOTH_DIMS];
} SmoothGraph;

SmoothGraph random_smooth(Job *job, uint64_t seed);
/* The values of a graph's dims. */
int64_t *random_smooth_dims(Job *job, const SmoothGraph *smooth, const Graph *graph);

#endif
