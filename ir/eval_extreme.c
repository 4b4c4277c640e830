/* x == amax(x), and amin. In: a comparison of a value with its own largest elements, as both were evaluated. Out: which
 * of its elements are certain although both sides err: what errs is one number, not two.
 *
 * Candidates are the elements that may be the largest within the bounds. Where a row has one, it is the largest however
 * the rest is rounded: its comparison holds, and its bounds count for nothing. Rows with several keep theirs. */
#include "ir/eval_need.h"

#include <string.h>

/* The operand that is the extreme of the other, or 2. */
static uint32_t find_extreme(const Graph *graph, const Value *value, bool *largest) {
    for (uint32_t k = 0; k < 2; k++) {
        const Value *reduce = &graph->values.at[ir_graph_behind_views(graph, value->arg[k])];
        const bool is_max = reduce->reduction == REDUCTION_MAX, is_min = reduce->reduction == REDUCTION_MIN;
        if (reduce->op != OP_REDUCE || (!is_max && !is_min) || reduce->arg[0] != value->arg[1 - k]) continue;
        *largest = is_max;
        return k;
    }
    return 2;
}

typedef struct Rows {
    const Node *element, *extreme;
    uint32_t *count; /* candidates of each element of extreme's box */
    uint64_t *last;  /* where the last one is */
    bool largest;
} Rows;

/* The element of extreme's box that an index of element's box meets; false: outside it. */
static bool position_of(const Rows *rows, const int64_t *index, const int64_t *strides, int64_t *position) {
    const Node *extreme = rows->extreme;
    const uint32_t lead = rows->element->rank - extreme->rank;
    *position = 0;
    for (uint32_t d = 0; d < extreme->rank; d++) {
        if (extreme->extent[d] == 1) continue;
        const int64_t at = index[d + lead];
        if (at < extreme->need.start[d] || at >= extreme->need.stop[d]) return false;
        *position += (at - extreme->need.start[d]) * strides[d];
    }
    return true;
}

static double low_at(const Lane *lane, int64_t i) { return lane->low ? lane->low[i] : 0; }

static void count_candidates(const Rows *rows) {
    const Node *element = rows->element;
    const Lane *a = &element->lane, *y = &rows->extreme->lane;
    int64_t strides[IR_MAX_RANK], index[IR_MAX_RANK], at;
    ir_box_strides(&rows->extreme->need, rows->extreme->rank, strides);
    memcpy(index, element->need.start, sizeof index);
    for (uint64_t i = 0; i < element->count; i++) {
        if (position_of(rows, index, strides, &at)) {
            const double above = (y->number[at] - a->number[i]) + (low_at(y, at) - low_at(a, (int64_t)i));
            if (!((rows->largest ? above : -above) > a->bound[i] + y->bound[at])) { /* NaN: a candidate */
                rows->count[at]++;
                rows->last[at] = i;
            }
        }
        for (uint32_t d = element->rank; d-- > 0;) {
            if (++index[d] < element->need.stop[d]) break;
            index[d] = element->need.start[d];
        }
    }
}

void ir_eval_extreme(Job *job, const Graph *graph, const Node *nodes, const Value *value, Lane *in) {
    Rows rows = {.largest = false};
    if (value->op != OP_EQ) return;
    const uint32_t k = find_extreme(graph, value, &rows.largest);
    if (k == 2 || !in[k].number || !in[1 - k].number) return;
    rows.extreme = &nodes[value->arg[k]];
    rows.element = &nodes[value->arg[1 - k]];
    if (rows.extreme->rank > rows.element->rank) return;
    rows.count = IR_NEW_ARRAY(job, uint32_t, rows.extreme->count + 1);
    rows.last = IR_NEW_ARRAY(job, uint64_t, rows.extreme->count + 1);
    count_candidates(&rows);
    double *bounds = IR_NEW_ARRAY(job, double, rows.extreme->count + 1);
    double *own = IR_NEW_ARRAY(job, double, rows.element->count + 1);
    memcpy(bounds, rows.extreme->lane.bound, rows.extreme->count * sizeof *bounds);
    memcpy(own, rows.element->lane.bound, rows.element->count * sizeof *own);
    for (uint64_t i = 0; i < rows.extreme->count; i++) {
        const uint64_t at = rows.last[i];
        if (rows.count[i] != 1 || rows.element->lane.number[at] != rows.extreme->lane.number[i]) continue;
        bounds[i] = own[at] = 0;
    }
    in[k].bound = bounds;
    in[1 - k].bound = own;
}
