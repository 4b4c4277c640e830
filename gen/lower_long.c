/* Pointwise values that are stored between nests because what would be computed inline for them is more than a kernel
 * should have. In: Lower.values with carriers. Out: Carried.stored of such values. Left alone: graphs in which no value
 * needs more than `cut_statements` others inline, where fuse and cut decide by bytes.
 *
 * Without it a chain of n norms lowers to n nests of up to n bodies each. A value within the chain is stored, so that
 * what comes behind begins there: one that takes half to three quarters of what is allowed, by whose store least is
 * computed twice. */
#include "gen/breakpoints.h"
#include "gen/knobs.h"
#include "gen/lower.h"

typedef struct Long {
    Lower *lower;
    uint32_t limit;
    uint32_t *size;  /* of each value: how many are inline in it, itself too */
    uint32_t *stamp; /* of each value: the last walk that met it */
    uint32_t walk;
    uint32_t *found, found_count; /* by the last walk */
    uint32_t *todo;
} Long;

static bool is_inline(const Lower *lower, uint32_t id) {
    return lower->values[id].carrier == IR_NONE && !lower->values[id].stored;
}

static void meet(Long *l, uint32_t id, uint32_t *todo_count) {
    if (l->stamp[id] == l->walk) return;
    l->stamp[id] = l->walk;
    l->found[l->found_count++] = id;
    if (is_inline(l->lower, id)) l->todo[(*todo_count)++] = id;
}

/* Values that a nest of this one has inline, leaves too, were `without` (IR_NONE: none) stored. */
static uint32_t count_inline(Long *l, uint32_t id, uint32_t without) {
    uint32_t todo_count = 1;
    l->walk++;
    l->found_count = 0;
    l->todo[0] = id;
    l->stamp[id] = l->walk;
    l->found[l->found_count++] = id;
    while (todo_count) {
        const uint32_t next = l->todo[--todo_count];
        if (next == without) continue;
        const Value *value = &l->lower->graph->values.at[next];
        const uint32_t index = ir_gather_index(value);
        for (uint32_t i = 0; i < value->arg_count; i++) meet(l, value->arg[i], &todo_count);
        if (index != IR_NONE) meet(l, index, &todo_count);
    }
    return l->found_count;
}

static bool may_store(const Long *l, uint32_t id) {
    const Value *value = &l->lower->graph->values.at[id];
    const bool leaf = value->op == OP_INPUT || value->op == OP_SCALAR || value->op == OP_CONST ||
                      value->op == OP_SIZE || value->op == OP_IOTA || gen_is_view(value);
    return is_inline(l->lower, id) && !leaf && l->size[id] > 2;
}

/* Of the values inline in this one the best to store, or IR_NONE. */
static uint32_t choose(Long *l, uint32_t id) {
    const uint32_t count = count_inline(l, id, IR_NONE);
    uint32_t *inside = IR_NEW_ARRAY(l->lower->job, uint32_t, count), best = IR_NONE, least = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++) inside[i] = l->found[i];
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t u = inside[i];
        if (u == id || !may_store(l, u)) continue;
        const uint32_t left = count_inline(l, id, u), both = left + l->size[u];
        const bool wanted = l->size[u] >= l->limit / 2 && l->size[u] <= l->limit / 4 * 3;
        const uint32_t cost = both + (wanted ? 0 : 2 * l->limit);
        if (left >= count || cost > least || (cost == least && l->size[u] < l->size[best])) continue;
        best = u;
        least = cost;
    }
    return best;
}

void gen_lower_long(Lower *lower, const GenOptions *options) {
    const uint32_t count = lower->graph->values.count;
    const int forced = gen_knob_int(options, KNOB_CUT_STATEMENTS, NULL);
    Long l = {.lower = lower, .limit = forced ? (uint32_t)forced : GEN_CUT_STATEMENTS};
    if (count <= l.limit) return;
    l.size = IR_NEW_ARRAY(lower->job, uint32_t, count);
    l.stamp = IR_NEW_ARRAY(lower->job, uint32_t, count);
    l.found = IR_NEW_ARRAY(lower->job, uint32_t, count);
    l.todo = IR_NEW_ARRAY(lower->job, uint32_t, count);
    for (uint32_t id = 0; id < count; id++) {
        if (!is_inline(lower, id)) continue;
        l.size[id] = count_inline(&l, id, IR_NONE);
        while (l.size[id] > l.limit) {
            const uint32_t best = choose(&l, id);
            if (best == IR_NONE) break;
            lower->values[best].stored = true;
            l.size[id] = count_inline(&l, id, IR_NONE);
        }
    }
}
