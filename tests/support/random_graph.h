/* Random legal graphs, as text, from a seed: the same text for the same seed everywhere. */
#ifndef TESTS_RANDOM_GRAPH_H
#define TESTS_RANDOM_GRAPH_H

#include "ir/graph.h"
#include "tests/support/random.h"

typedef enum RandomFlags {
    RANDOM_ROWS_ONLY = 1 /* pointwise work and reductions over the last dims, for strategies that know no other */
} RandomFlags;

typedef struct RandomGraph {
    const char *text;
    size_t count;
    uint32_t dim_count; /* every dim of the file, fixed ones too */
    const char *dim_name[16];
    int64_t dim_value[16]; /* what to launch with */
} RandomGraph;

RandomGraph random_graph(Job *job, uint64_t seed, uint32_t flags);
/* The values of a parsed graph's dims at launch. */
int64_t *random_graph_dims(Job *job, const RandomGraph *random, const Graph *graph);

/* Elements of memory that a tensor touches: 1 + the sum of (extent - 1)*stride, where an empty dim counts as one: what
 * varies over other dims alone may be loaded although there is nothing to do with it. */
int64_t tensor_span(Job *job, const Tensor *tensor, const int64_t *dims, uint32_t dim_count);
/* Fresh data for a float dtype: mostly near 1, some zeros, few large; `count` elements from bytes. */
void random_fill(Random *random, DType dtype, void *bytes, int64_t count);

#endif
