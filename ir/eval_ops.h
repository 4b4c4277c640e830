/* What the evaluators of Graph and Prog share: element arithmetic with bounds, casts, reductions, and walks over
 * strided index spaces. Internal to ir/eval_*.c.
 *
 * The arithmetic is written once for REAL (ir/eval_real_*.h) and made twice: in double, and in long double for graphs
 * that compute in f64, whose elements are held as two doubles. */
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
    double *low;  /* what number leaves of a long double; NULL where elements are doubles */
    /* At whose discontinuity an element was met: 2 * (the value's id + 1), plus 1 where the element itself was counted;
     * 0: none. NULL: not kept, every meeting counts. */
    uint32_t *cause;
} Lane;

/* The elements of out from those of in; `compute` is the dtype in which operands meet, `result` that of the value.
 * Adds to *uncertain the elements met within their bound of a discontinuity, each once along a chain of such ops. */
typedef struct ElementOp {
    Op op; /* a primitive or OP_CAST */
    DType compute;
    DType result; /* OP_CAST: the target */
    DType source; /* OP_CAST: of what is cast */
    uint64_t *uncertain;
    uint32_t id;  /* of the value, for causes */
    bool factors; /* OP_MUL: a sum takes its factors, so that the product itself may not be rounded */
    EvalCasts casts;
} ElementOp;
/* The op over operands of these dtypes; stops where integers and floats meet without a cast. */
ElementOp ir_eval_op(Job *job, Op op, DType result, const DType *operands, uint64_t *uncertain);
void ir_lane_copy(Lane in, Lane out, int64_t count);

typedef struct Accumulator {
    union { /* meaning: see each reduction's step */
        double at_double[6];
        long double at_long[6];
    };
    int64_t integer;
    uint64_t terms;
} Accumulator;

/* The arithmetic in one REAL. */
typedef struct RealOps {
    bool wide; /* long double */
    void (*elements)(const ElementOp *op, const Lane *in, Lane out, int64_t count);
    void (*cast)(const ElementOp *op, Lane in, Lane out, int64_t count);
    void (*reduce_start)(Reduction reduction, DType dtype, Accumulator *accumulator);
    /* Element i of the lane goes to accumulator i * step. */
    void (*reduce)(Reduction reduction, DType dtype, Accumulator *accumulators, int64_t step, Lane lane, int64_t count);
    /* Result k of 1 or 2 into one element. depth 0: the number of terms. */
    void (*reduce_finish)(Reduction reduction, DType dtype, const Accumulator *accumulator, uint32_t depth, unsigned k,
                          Lane out);
} RealOps;
extern const RealOps ir_real_double, ir_real_long;

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
    const RealOps *real;
    ElementOp op;
    uint32_t arity;
    Lane in[3], out;
    uint32_t broadcast; /* bit k: elements of operand k stand for several of the result, which count for themselves */
} ElementStrip;
typedef struct ReduceStrip {
    const RealOps *real;
    Reduction reduction;
    DType dtype;
    Accumulator *accumulators;
    Lane in;
} ReduceStrip;
/* The causes of elements of the result, as their operands have them. */
typedef struct CauseStrip {
    Lane in, out;
} CauseStrip;
WalkStrip ir_cause_strip;
WalkStrip ir_element_strip;
WalkStrip ir_reduce_strip;

/* Runs of elements that are handed out and taken back, over the arena. */
typedef struct PoolBlock {
    double *words; /* values, then bounds, then low parts, then causes */
    uint64_t capacity;
    bool used;
} PoolBlock;
typedef struct Pool {
    Job *job;
    bool wide, causes;
    IR_LIST(PoolBlock) blocks;
} Pool;
Lane ir_pool_take(Pool *pool, uint64_t count, bool is_float, uint32_t *block); /* not zeroed */
void ir_pool_give(Pool *pool, uint32_t block);

static inline Lane ir_lane_at(Lane lane, int64_t position, int64_t step) {
    return (Lane){.number = lane.number ? lane.number + position : NULL,
                  .bound = lane.bound + position,
                  .integer = lane.integer ? lane.integer + position : NULL,
                  .step = step,
                  .low = lane.low ? lane.low + position : NULL,
                  .cause = lane.cause ? lane.cause + position : NULL};
}

static inline bool ir_is_float(DType dtype) { return ir_dtype(dtype)->kind == KIND_FLOAT; }

#endif
