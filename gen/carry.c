/* What a reduction's nest carries, and what is stored between nests.
 *
 * in: Graph (simplified). out: Lower.values. The rule: a value is carried by the latest reduction it depends on, where
 * it has the reduced shape (but for extents of 1) and each argument is carried by the same reduction or depends on
 * earlier ones alone. So nests in the order of their reductions' ids read only what came before. A carried value that
 * someone outside its nest reads is materialised; views (renamed dims) never are, their argument is. */
#include "gen/lower.h"

static bool same_but_ones(const Extents *a, const Extents *b) {
    uint32_t i = 0, j = 0;
    for (;;) {
        while (i < a->rank && gen_poly_is(a->extent[i], 1)) i++;
        while (j < b->rank && gen_poly_is(b->extent[j], 1)) j++;
        if (i == a->rank || j == b->rank) return i == a->rank && j == b->rank;
        if (!ir_poly_equal(a->extent[i++], b->extent[j++])) return false;
    }
}

bool gen_is_view(const Value *value) { return value->op == OP_INDEX || value->op == OP_RESHAPE; }

/* Reads every element of its argument in the same order. */
static bool selects_all(Lower *lower, const Value *value) {
    if (value->op == OP_RESHAPE) return true;
    const Extents *arg = &lower->values[value->arg[0]].shape;
    uint32_t d = 0;
    for (uint32_t i = 0; i < value->item_count; i++) {
        const Item *item = &value->items[i];
        if (item->kind == ITEM_NEW_AXIS) continue;
        if (item->kind == ITEM_GATHER) return false;
        if (item->kind == ITEM_AT && !gen_poly_is(arg->extent[d], 1)) return false;
        if (item->kind == ITEM_RANGE && (gen_lower_poly(lower, item->start).count ||
                                         !ir_poly_equal(gen_lower_poly(lower, item->stop), arg->extent[d])))
            return false;
        d++;
    }
    return true;
}

static uint32_t later(uint32_t a, uint32_t b) {
    if (a == IR_NONE) return b;
    return b == IR_NONE || a > b ? a : b;
}

static void find_carrier(Lower *lower, uint32_t id) {
    const Value *value = &lower->graph->values.at[id];
    Carried *own = &lower->values[id];
    own->shape = gen_lower_extents(lower, &value->shape);
    own->carrier = own->latest = own->tmp = IR_NONE;
    if (value->op == OP_REDUCE) {
        own->carrier = own->latest = id;
        return;
    }
    for (uint32_t i = 0; i < value->arg_count; i++)
        own->latest = later(own->latest, lower->values[value->arg[i]].latest);
    uint32_t index = ir_gather_index(value);
    if (index != IR_NONE) own->latest = later(own->latest, lower->values[index].latest);
    if (own->latest == IR_NONE || !same_but_ones(&own->shape, &lower->values[own->latest].shape)) return;
    if (gen_is_view(value) && !selects_all(lower, value)) return;
    bool reached = false;
    for (uint32_t i = 0; i < value->arg_count; i++) {
        const Carried *arg = &lower->values[value->arg[i]];
        if (arg->carrier == own->latest)
            reached = true;
        else if (arg->latest == own->latest)
            return;
    }
    if (reached) own->carrier = own->latest;
}

void gen_carry(Lower *lower) {
    const Graph *graph = lower->graph;
    uint32_t count = graph->values.count;
    lower->values = IR_NEW_ARRAY(lower->job, Carried, count);
    for (uint32_t id = 0; id < count; id++) find_carrier(lower, id);
    /* read outside: seen from users to arguments, through views */
    bool *outside = IR_NEW_ARRAY(lower->job, bool, count);
    for (uint32_t id = count; id-- > 0;) {
        const Value *value = &graph->values.at[id];
        Carried *own = &lower->values[id];
        own->materialised = own->carrier != IR_NONE && outside[id] && !gen_is_view(value);
        uint32_t index = ir_gather_index(value);
        if (index != IR_NONE) outside[index] = true;
        for (uint32_t i = 0; i < value->arg_count; i++) {
            const Carried *arg = &lower->values[value->arg[i]];
            bool inside = own->carrier != IR_NONE && own->carrier == arg->carrier && value->op != OP_REDUCE;
            if (!inside || (gen_is_view(value) && outside[id])) outside[value->arg[i]] = true;
        }
    }
}
