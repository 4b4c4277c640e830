/* Which part of each value of a Graph a box of one output needs. Internal to ir/eval_graph.c and ir/eval_need.c. */
#ifndef IR_EVAL_NEED_H
#define IR_EVAL_NEED_H

#include "ir/eval_ops.h"

typedef struct Node {            /* of one value */
    int64_t extent[IR_MAX_RANK]; /* of its whole shape */
    uint8_t rank;
    bool needed;
    bool summed;       /* by some value, maybe in another shape */
    Box need;          /* the bounding box of what its users read */
    uint64_t count;    /* elements of need */
    uint32_t last_use; /* the last value that reads it */
    Lane lane;         /* need's elements in row-major order, while they are held */
    uint32_t block;    /* of the pool */
} Node;

/* Fills need, count and last_use of the values up to `wanted`; returns the sum of counts. */
uint64_t ir_eval_plan(Job *job, const Graph *graph, Node *nodes, const int64_t *dims, uint32_t wanted, const Box *box);
/* A polynomial in the graph's dims. */
int64_t ir_eval_size(Job *job, const Graph *graph, Poly poly, const int64_t *dims);
uint64_t ir_box_count(const Box *box, uint32_t rank);
/* Row-major strides of a box, and the position of an index in it. */
void ir_box_strides(const Box *box, uint32_t rank, int64_t *strides);

/* The operands of x == amax(x) or amin(x) without the bounds that cannot change it; others stay. Arrays in the job's
 * arena. (ir/eval_extreme.c) */
void ir_eval_extreme(Job *job, const Graph *graph, const Node *nodes, const Value *value, Lane *in);

#endif
