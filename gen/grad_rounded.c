/* Which outputs the backward graph may read for a value, although they were rounded. In: the joint graph, once
 * simplified. Out: of each value how well it must be known, and the output that holds it so. Left alone: whether it is
 * read (gen/grad_save.c). */
#include "gen/grad_build.h"

#include <string.h>

static bool is_float(DType dtype) { return ir_dtype(dtype)->kind == KIND_FLOAT; }

static int64_t guess_elements(const Joint *joint, const int64_t *dims, uint32_t id) {
    int64_t count = 0;
    const Poly elements = gen_grad_elements(joint->job, &joint->graph->values.at[id].shape);
    (void)ir_poly_eval(elements, dims, joint->graph->dims.count, NULL, 0, &count);
    return count;
}

/* An output stands for a value where it loses no more than what the value is made of has lost: operands of as many
 * elements, since what a smaller one has lost is lost in none of the others. */
static const DType *find_coarsest(const Joint *joint) {
    const Graph *graph = joint->graph;
    DType *coarsest = IR_NEW_ARRAY(joint->job, DType, graph->values.count + 1);
    int64_t *elements = IR_NEW_ARRAY(joint->job, int64_t, graph->values.count + 1);
    int64_t *dims = IR_NEW_ARRAY(joint->job, int64_t, graph->dims.count + 1);
    for (uint32_t i = 0; i < graph->dims.count; i++) dims[i] = ir_dim_guess(&graph->dims.at[i]);
    for (uint32_t i = 0; i < graph->values.count; i++) {
        const Value *value = &graph->values.at[i];
        coarsest[i] = value->dtype;
        elements[i] = guess_elements(joint, dims, i);
        for (uint32_t k = 0; k < ir_value_operand_count(value); k++) {
            const uint32_t id = ir_value_operand(value, k);
            if (id == IR_NONE || !is_float(coarsest[id])) continue;
            if (elements[id] < elements[i] && !gen_grad_is_view(value)) continue;
            if (!ir_dtype_holds(coarsest[id], coarsest[i])) coarsest[i] = coarsest[id];
        }
    }
    return coarsest;
}

/* Near numbers that occur, and nothing in it tells. f16 overflows to inf, which a reader sees. */
static bool saturates(DType stored) { return stored == DTYPE_F8E4M3 || stored == DTYPE_F8E5M2; }

/* Whether what was stored in this dtype tells what must be known of the value. */
static bool tells(const Joint *joint, DType stored, uint32_t id) {
    const DType dtype = joint->graph->values.at[id].dtype;
    if (!is_float(stored)) return stored == dtype;
    if (joint->known[id] == KNOWN_EXACT || saturates(stored)) return ir_dtype_holds(stored, dtype);
    const bool vanishes = ir_dtype(stored)->min_exponent > ir_dtype(dtype)->min_exponent; /* small ones become 0 */
    return ir_dtype_holds(stored, joint->coarsest[id]) && !(joint->known[id] == KNOWN_SIGN && vanishes);
}

uint32_t gen_grad_output_with(const Joint *joint, uint32_t id) {
    uint32_t best = IR_NONE;
    for (uint32_t i = 0; i < joint->from->outputs.count; i++) {
        const Tensor *output = &joint->graph->outputs.at[i];
        if (output->value != id || output->accumulate || !tells(joint, output->dtype, id)) continue;
        if (best == IR_NONE || ir_dtype(output->dtype)->bytes > ir_dtype(joint->graph->outputs.at[best].dtype)->bytes)
            best = i;
    }
    return best;
}

bool gen_grad_is_reduction(const Value *value) {
    if (value->op == OP_REDUCE) return true;
    for (uint32_t i = 0; value->op == OP_COMPOSITE && i < value->call->count; i++)
        if (!strcmp(value->call->params[i], "dim")) return true;
    return false;
}

/* x == amax(x): which elements are the largest is lost where one side is read as an output rounded it. */
static bool finds_extreme(const Graph *graph, const Value *value) {
    for (uint32_t i = 0; value->op == OP_EQ && i < 2; i++) {
        const Value *operand = &graph->values.at[ir_graph_behind_views(graph, value->arg[i])];
        if (operand->op != OP_REDUCE) continue;
        if (operand->reduction == REDUCTION_MAX || operand->reduction == REDUCTION_MIN) return true;
    }
    return false;
}

/* An input, or its elements as they are but for signs. */
static bool is_given(const Graph *graph, const Value *value) {
    while (value->op == OP_INDEX || value->op == OP_RESHAPE || value->op == OP_CAST || value->op == OP_ABS ||
           value->op == OP_NEG)
        value = &graph->values.at[value->arg[0]];
    return value->op == OP_INPUT;
}

bool gen_grad_is_found_once(const Graph *graph, const Value *value) {
    if (!finds_extreme(graph, value)) return false;
    for (uint32_t i = 0; i < 2; i++)
        if (is_given(graph, &graph->values.at[value->arg[i]])) return false;
    return true;
}

/* ---- jumps ---- */

static bool is_zero(const Value *value) {
    return value->op == OP_CONST && (is_float(value->dtype) ? value->bits << 1 : value->bits) == 0; /* or -0 */
}

static bool compares(const Value *value) { return value->op < OP_PRIMITIVES && ir_op(value->op)->rule == RULE_COMPARE; }

static bool is_jump(const Graph *graph, const Value *value) {
    switch (value->op) {
    case OP_FLOOR:
    case OP_CEIL:
    case OP_ROUND:
    case OP_TRUNC:
    case OP_SIGN:
    case OP_FLOORDIV:
    case OP_MOD: return true;
    case OP_CAST: return is_float(graph->values.at[value->arg[0]].dtype) && !is_float(value->dtype);
    default: return compares(value);
    }
}

/* Of a jump at 0, rounding leaves the operand on its side, and equal to 0 if it was. */
static bool jumps_at_zero(const Graph *graph, const Value *value) {
    if (value->op == OP_SIGN) return true;
    if (!compares(value)) return false;
    return is_zero(&graph->values.at[value->arg[0]]) || is_zero(&graph->values.at[value->arg[1]]);
}

/* Its sign follows from those of its operands. */
static bool keeps_signs(const Value *value) {
    return value->op == OP_MUL || value->op == OP_DIV || value->op == OP_NEG || value->op == OP_ABS ||
           value->op == OP_MAXIMUM || value->op == OP_MINIMUM || value->op == OP_WHERE || gen_grad_is_view(value);
}

/* How well operands must be known for the value to be. */
static Known known_of_operands(const Graph *graph, const Value *value, Known known) {
    if (gen_grad_is_found_once(graph, value) || gen_grad_is_reduction(value)) return KNOWN_ROUNDED;
    if (is_jump(graph, value)) return jumps_at_zero(graph, value) ? KNOWN_SIGN : KNOWN_EXACT;
    return known == KNOWN_SIGN && !keeps_signs(value) ? KNOWN_EXACT : known;
}

/* Back from jumps that gradients may use to what reductions give. */
static Known *find_known(const Joint *joint, const bool *backward) {
    const Graph *graph = joint->graph;
    Known *known = IR_NEW_ARRAY(joint->job, Known, graph->values.count + 1);
    bool *used = IR_NEW_ARRAY(joint->job, bool, graph->values.count + 1);
    for (uint32_t i = joint->from->outputs.count; i < graph->outputs.count; i++)
        used[graph->outputs.at[i].value] = true;
    for (uint32_t i = graph->values.count; i-- > 0;) {
        const Value *value = &graph->values.at[i];
        if (!used[i]) continue;
        ir_value_mark_args(value, used);
        const Known need = backward[i] ? KNOWN_ROUNDED : known_of_operands(graph, value, known[i]);
        for (uint32_t k = 0; k < ir_value_operand_count(value); k++) {
            const uint32_t id = ir_value_operand(value, k);
            if (id != IR_NONE && known[id] < need) known[id] = need;
        }
    }
    return known;
}

void gen_grad_look_at_rounding(Joint *joint, const bool *backward) {
    joint->coarsest = find_coarsest(joint);
    joint->known = find_known(joint, backward);
}
