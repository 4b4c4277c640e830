/* Random legal graphs, as text, from a seed: the same text for the same seed everywhere. */
#ifndef TESTS_RANDOM_GRAPH_H
#define TESTS_RANDOM_GRAPH_H

#include "ir/graph.h"
#include "tests/support/random.h"

typedef enum RandomFlags {
    RANDOM_ROWS_ONLY = 1, /* pointwise work and reductions over the last dims, for strategies that know no other */
    RANDOM_LONG_ROWS = 2, /* now and then thousands of elements along the last dim, and few rows */
    RANDOM_ALL_DTYPES = 4 /* not f32, f16 and bf16 alone; index tensors, single elements, outputs that accumulate,
                             strides given at launch */
} RandomFlags;

typedef struct RandomDim {
    const char *name;
    int64_t value; /* what to launch with */
    bool any;
    int64_t max, multiple; /* -1, 1: none */
    uint32_t inner_count;  /* a stride: the product of these dims and pad more; 0: no stride */
    uint32_t inner[IR_MAX_RANK];
    int64_t pad;
} RandomDim;

#define RANDOM_MAX_DIMS 16

typedef struct RandomGraph {
    const char *text;
    size_t count;
    uint32_t dim_count; /* every dim of the file, fixed ones too */
    RandomDim dims[RANDOM_MAX_DIMS];
} RandomGraph;

RandomGraph random_graph(Job *job, uint64_t seed, uint32_t flags);
/* The values of a parsed graph's dims at launch. */
int64_t *random_graph_dims(Job *job, const RandomGraph *random, const Graph *graph);

/* Other values for the any dims, 0 and 1 among them, legal by themselves; a slice or a reduction may yet refuse them.
 * `parsed`: no value of it gets more elements than are launched soon. */
void random_graph_redraw(Job *job, RandomGraph *graph, const Graph *parsed, Random *random);

/* Elements of memory that a tensor touches: 1 + the sum of (extent - 1)*stride, where an empty dim counts as one: what
 * varies over other dims alone may be loaded although there is nothing to do with it. */
int64_t tensor_span(Job *job, const Tensor *tensor, const int64_t *dims, uint32_t dim_count);
/* Fresh data: mostly near 1, some zeros, few large. */
double random_element(Random *random);
/* The same for integers: mostly a few around 0, some of a byte's size, few with any bits. */
int64_t random_integer(Random *random);
/* `count` of them in a dtype, integers from 0 on below limit where that is not INT64_MAX. */
void random_fill(Random *random, DType dtype, void *bytes, int64_t count, int64_t limit);
/* What the elements of an input must be below because they pick along a dim; INT64_MAX: they do not. */
int64_t random_index_limit(const Graph *graph, const int64_t *dims, uint32_t input);

#endif
