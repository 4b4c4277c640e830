/* What the evaluators of Graph and Prog share: element arithmetic with bounds, casts, reductions, and walks over
 * strided index spaces. Internal to ir/eval_*.c. */
#ifndef IR_EVAL_OPS_H
#define IR_EVAL_OPS_H

#include "ir/eval.h"

/* A column of elements: floats have numbers, integers and bools have integers; both have bounds. Of a bool, bound 1
 * says that it may as well be the other. */
typedef struct Lane {
    double *number;
    double *bound;
    int64_t *integer;
    int64_t step; /* elements from one to the next; 0: the same for all */
} Lane;

/* The elements of out from those of in; `compute` is the dtype in which operands meet, `result` that of the value.
 * Adds to *uncertain the elements met within their bound of a discontinuity. */
typedef struct ElementOp {
    Op op; /* a primitive or OP_CAST */
    DType compute;
    DType result; /* OP_CAST: the target */
    DType source; /* OP_CAST: of what is cast */
    uint64_t *uncertain;
} ElementOp;
void ir_eval_elements(const ElementOp *op, const Lane *in, Lane out, int64_t count);
void ir_eval_cast(const ElementOp *op, Lane in, Lane out, int64_t count);         /* (ir/eval_steps.c) */
bool ir_eval_steps(const ElementOp *op, const Lane *in, Lane out, int64_t count); /* false: no step function */

/* ulps, 2^-24 and the like of a compute dtype */
double ir_eval_ulp(DType compute, double value);
/* A value whose operands' errors make `propagated`, after one rounding of `ulps`: overflow settled. */
double ir_eval_settle(DType compute, double *value, double propagated, double ulps);

/* The op over operands of these dtypes; stops where integers and floats meet without a cast. */
ElementOp ir_eval_op(Job *job, Op op, DType result, const DType *operands, uint64_t *uncertain);
void ir_lane_copy(Lane in, Lane out, int64_t count);

/* ---- reductions (ir/eval_reduce.c) ---- */

typedef struct Accumulator {
    double at[6]; /* meaning: see each reduction's step */
    int64_t integer;
    uint64_t terms;
} Accumulator;
void ir_eval_reduce_start(Reduction reduction, DType dtype, Accumulator *accumulator);
/* Element i of the lane goes to accumulator i * step. */
void ir_eval_reduce(Reduction reduction, DType dtype, Accumulator *accumulators, int64_t step, Lane lane,
                    int64_t count);
/* Result k of 1 or 2 into one element. depth 0: the number of terms. */
void ir_eval_reduce_finish(Reduction reduction, DType dtype, const Accumulator *accumulator, uint32_t depth, unsigned k,
                           Lane out);

/* ---- walks over index space (ir/eval_walk.c) ---- */

#define EVAL_MAX_RANK IR_MAX_AXES
#define EVAL_MAX_LANES 4

/* Points of a space in row-major order; each lane's position is offset + sum of index * stride. */
typedef struct Walk {
    uint32_t rank, lanes;
    int64_t extent[EVAL_MAX_RANK];
    int64_t stride[EVAL_MAX_LANES][EVAL_MAX_RANK];
    int64_t offset[EVAL_MAX_LANES];
} Walk;
/* Calls strip for runs of `count` points; lane k's are at position[k] + i * step[k]. Changes walk: neighbours merge. */
typedef void WalkStrip(void *state, const int64_t *position, const int64_t *step, int64_t count);
void ir_walk(Walk *walk, WalkStrip *strip, void *state);

/* Strips for the two commonest walks: lane 0 is the result (the accumulators), the others are the operands. */
typedef struct ElementStrip {
    ElementOp op;
    uint32_t arity;
    Lane in[3], out;
} ElementStrip;
typedef struct ReduceStrip {
    Reduction reduction;
    DType dtype;
    Accumulator *accumulators;
    Lane in;
} ReduceStrip;
WalkStrip ir_element_strip;
WalkStrip ir_reduce_strip;

/* Runs of elements that are handed out and taken back, over the arena. */
typedef struct PoolBlock {
    double *words; /* values, then bounds */
    uint64_t capacity;
    bool used;
} PoolBlock;
typedef struct Pool {
    Job *job;
    IR_LIST(PoolBlock) blocks;
} Pool;
Lane ir_pool_take(Pool *pool, uint64_t count, bool is_float, uint32_t *block); /* not zeroed */
void ir_pool_give(Pool *pool, uint32_t block);

static inline Lane ir_lane_at(Lane lane, int64_t position, int64_t step) {
    return (Lane){lane.number ? lane.number + position : NULL, lane.bound + position,
                  lane.integer ? lane.integer + position : NULL, step};
}

static inline bool ir_is_float(DType dtype) { return ir_dtype(dtype)->kind == KIND_FLOAT; }

#endif
