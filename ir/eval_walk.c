/* In: an index space and the strides of up to four lanes in it. Out: its points in row-major order, as the longest runs
 * that all lanes allow; the strips that
 * both evaluators walk with; and memory for runs of elements. Left alone: what is done at the points. */
#include "ir/eval_ops.h"

#include <string.h>

/* Drops dims of extent 1 and merges dim d into its right neighbour where every lane walks through both as one. */
static void merge_dims(Walk *walk) {
    uint32_t kept = 0;
    for (uint32_t d = 0; d < walk->rank; d++) {
        if (walk->extent[d] == 1) continue;
        bool merges = kept > 0;
        for (uint32_t k = 0; merges && k < walk->lanes; k++) {
            merges = walk->stride[k][kept - 1] == walk->stride[k][d] * walk->extent[d];
        }
        uint32_t to = merges ? kept - 1 : kept++;
        walk->extent[to] = merges ? walk->extent[to] * walk->extent[d] : walk->extent[d];
        for (uint32_t k = 0; k < walk->lanes; k++) walk->stride[k][to] = walk->stride[k][d];
    }
    walk->rank = kept;
}

void ir_walk(Walk *walk, WalkStrip *strip, void *state) {
    for (uint32_t d = 0; d < walk->rank; d++) {
        if (walk->extent[d] <= 0) return;
    }
    merge_dims(walk);
    int64_t index[EVAL_MAX_RANK] = {0}, position[EVAL_MAX_LANES] = {0}, step[EVAL_MAX_LANES] = {0}, count = 1;
    uint32_t outer = walk->rank ? walk->rank - 1 : 0;
    if (walk->rank) count = walk->extent[outer];
    for (uint32_t k = 0; k < walk->lanes; k++) {
        position[k] = walk->offset[k];
        if (walk->rank) step[k] = walk->stride[k][outer];
    }
    for (;;) {
        strip(state, position, step, count);
        uint32_t d = outer;
        for (; d-- > 0;) {
            bool wraps = ++index[d] == walk->extent[d];
            int64_t moved = wraps ? 1 - walk->extent[d] : 1;
            for (uint32_t k = 0; k < walk->lanes; k++) position[k] += moved * walk->stride[k][d];
            if (!wraps) break;
            index[d] = 0;
        }
        if (d == UINT32_MAX) return;
    }
}

enum { COUNTED = 1 };

static void inherit_causes(const ElementStrip *strip, const Lane *in, Lane out, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        uint32_t cause = 0;
        for (uint32_t k = 0; k < strip->arity; k++) {
            uint32_t met = in[k].cause ? in[k].cause[i * in[k].step] : 0;
            if (strip->broadcast >> k & 1) met &= ~(uint32_t)COUNTED;
            cause = cause ? cause | (met & COUNTED) : met;
        }
        out.cause[i * out.step] = cause;
    }
}

void ir_cause_strip(void *state, const int64_t *position, const int64_t *step, int64_t count) {
    const CauseStrip *strip = state;
    Lane in = ir_lane_at(strip->in, position[1], step[1]), out = ir_lane_at(strip->out, position[0], step[0]);
    for (int64_t i = 0; i < count; i++) {
        uint32_t *to = &out.cause[i * out.step];
        if (!*to) *to = in.cause[i * in.step] & ~(uint32_t)COUNTED;
    }
}

void ir_element_strip(void *state, const int64_t *position, const int64_t *step, int64_t count) {
    const ElementStrip *strip = state;
    Lane in[3];
    for (uint32_t k = 0; k < strip->arity; k++) in[k] = ir_lane_at(strip->in[k], position[k + 1], step[k + 1]);
    Lane out = ir_lane_at(strip->out, position[0], step[0]);
    if (out.cause) inherit_causes(strip, in, out, count);
    strip->real->elements(&strip->op, in, out, count);
}

void ir_reduce_strip(void *state, const int64_t *position, const int64_t *step, int64_t count) {
    const ReduceStrip *strip = state;
    strip->real->reduce(strip->reduction, strip->dtype, strip->accumulators + position[0], step[0],
                        ir_lane_at(strip->in, position[1], step[1]), count);
}

void ir_lane_copy(Lane in, Lane out, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (out.number)
            out.number[i * out.step] = in.number[i * in.step];
        else
            out.integer[i * out.step] = in.integer[i * in.step];
        if (out.low && out.number) out.low[i * out.step] = in.low ? in.low[i * in.step] : 0;
        out.bound[i * out.step] = in.bound[i * in.step];
        if (out.cause) out.cause[i * out.step] = in.cause ? in.cause[i * in.step] : 0;
    }
}

ElementOp ir_eval_op(Job *job, Op op, DType result, const DType *operands, uint64_t *uncertain) {
    ElementOp element = {op, ir_compute_dtype(result), result, operands[0], uncertain, 0, false, EVAL_CASTS_ROUND};
    if (op == OP_CAST) return element;
    const OpRow *row = ir_op(op);
    element.compute = ir_op_operand_dtype(op, operands);
    for (uint32_t k = row->rule == RULE_WHERE ? 1 : 0; k < row->arity; k++) {
        bool met = ir_is_float(operands[k]) == ir_is_float(element.compute);
        if (!met) IR_BREACH(job, "%s lacks a cast of its operand %u", row->name, k);
    }
    return element;
}

Lane ir_pool_take(Pool *pool, uint64_t count, bool is_float, uint32_t *block) {
    uint32_t best = IR_NONE;
    for (uint32_t i = 0; i < pool->blocks.count; i++) {
        const PoolBlock *free_block = &pool->blocks.at[i];
        if (free_block->used || free_block->capacity < count) continue;
        if (best == IR_NONE || free_block->capacity < pool->blocks.at[best].capacity) best = i;
    }
    if (best == IR_NONE) {
        const uint64_t parts = 2u + pool->wide + pool->causes;
        double *words = IR_NEW_ARRAY(pool->job, double, count *parts);
        PoolBlock *added = IR_PUSH(pool->job, &pool->blocks);
        added->words = words;
        added->capacity = count;
        best = pool->blocks.count - 1;
    }
    PoolBlock *taken = &pool->blocks.at[best];
    taken->used = true;
    *block = best;
    /* double and int64_t have one size; memory of the arena has no declared type */
    void *values = taken->words;
    double *low = pool->wide && is_float ? taken->words + 2 * taken->capacity : NULL;
    void *causes = pool->causes ? taken->words + (2u + pool->wide) * taken->capacity : NULL;
    if (causes) memset(causes, 0, count * sizeof(uint32_t));
    return (Lane){is_float ? values : NULL, taken->words + taken->capacity, is_float ? NULL : values, 1, low, causes};
}

void ir_pool_give(Pool *pool, uint32_t block) { pool->blocks.at[block].used = false; }
