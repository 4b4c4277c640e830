/* What the Graph shows of in-place outputs: no two overlap, and every read of the input that an output needs has the
 * store's index map or lies in a slice disjoint from it. Left alone: the order of loads and stores within kernels,
 * which is V8's. */
#include "gen/front.h"

static bool is_whole(const Front *front, const Tensor *input, const Item *items, uint32_t count) {
    (void)front;
    uint32_t dim = 0;
    for (uint32_t i = 0; items && i < count; i++) {
        if (items[i].kind == ITEM_NEW_AXIS) continue;
        if (items[i].kind != ITEM_RANGE || items[i].start.count != 0) return false;
        if (!ir_poly_equal(items[i].stop, input->shape.extent[dim++])) return false;
    }
    return true;
}

/* The same elements in the same order, new axes aside. */
static bool same_slice(const Item *a, uint32_t a_count, const Item *b, uint32_t b_count) {
    uint32_t i = 0, j = 0;
    for (;;) {
        while (i < a_count && a[i].kind == ITEM_NEW_AXIS) i++;
        while (j < b_count && b[j].kind == ITEM_NEW_AXIS) j++;
        if (i == a_count || j == b_count) return i == a_count && j == b_count;
        if (a[i].kind != b[j].kind || a[i].kind == ITEM_GATHER || !ir_poly_equal(a[i].start, b[j].start)) return false;
        if (a[i].kind == ITEM_RANGE && !ir_poly_equal(a[i].stop, b[j].stop)) return false;
        i++, j++;
    }
}

static void refuse_read(Front *front, const Tensor *output, Place place, const char *why) {
    ir_error(front->job, output->place, "'%s' cannot be in place of '%s': %s", output->name,
             front->graph->inputs.at[output->inplace].name, why);
    ir_note(front->job, place, "the read");
}

/* Reads of the input through one OP_INDEX, or through reshapes below one. */
static void check_index(Front *front, const Tensor *output, const Value *index, bool reshaped) {
    const Tensor *input = &front->graph->inputs.at[output->inplace];
    const Item *mine = output->inplace_items;
    bool whole = is_whole(front, input, mine, output->inplace_item_count);
    if (reshaped) {
        refuse_read(front, output, index->place, "a read takes part of it after a reshape");
        return;
    }
    if (whole && is_whole(front, input, index->items, index->item_count)) return;
    if (mine && same_slice(mine, output->inplace_item_count, index->items, index->item_count)) return;
    for (uint32_t i = 0; i < index->item_count; i++)
        if (index->items[i].kind == ITEM_GATHER) {
            refuse_read(front, output, index->place, "a read gathers from it");
            return;
        }
    uint32_t count = output->inplace_item_count > index->item_count ? output->inplace_item_count : index->item_count;
    Item *store = IR_NEW_ARRAY(front->job, Item, count + IR_MAX_RANK), *load = IR_NEW_ARRAY(front->job, Item, count);
    uint32_t stores = 0, loads = 0;
    for (uint32_t i = 0; i < index->item_count; i++)
        if (index->items[i].kind != ITEM_NEW_AXIS) load[loads++] = index->items[i];
    for (uint32_t i = 0; i < input->shape.rank; i++)
        store[stores++] = mine ? mine[i] : (Item){.kind = ITEM_RANGE, .stop = input->shape.extent[i]};
    if (loads == stores && ir_items_disjoint(front->job, front->graph, store, load, loads)) return;
    refuse_read(front, output, index->place,
                "a read takes other elements than the store's, which may be stored already");
}

static void check_reads(Front *front, const bool *live, const Tensor *output, uint32_t id, bool reshaped) {
    const Graph *graph = front->graph;
    const Tensor *input = &graph->inputs.at[output->inplace];
    for (uint32_t i = id + 1; i < graph->values.count; i++) {
        const Value *value = &graph->values.at[i];
        if (!live[i] || !ir_value_uses(value, id)) continue;
        if (value->op == OP_RESHAPE)
            check_reads(front, live, output, i, true);
        else if (value->op == OP_INDEX && value->arg[0] == id)
            check_index(front, output, value, reshaped);
        else if (!is_whole(front, input, output->inplace_items, output->inplace_item_count))
            refuse_read(front, output, value->place, "a read takes all of it, the store a slice");
    }
}

static void check_pair(Front *front, const Tensor *a, const Tensor *b) {
    if (a->inplace != b->inplace) return;
    if (a->inplace_items && b->inplace_items &&
        ir_items_disjoint(front->job, front->graph, a->inplace_items, b->inplace_items, a->inplace_item_count))
        return;
    ir_error(front->job, b->place, "'%s' and '%s' may overlap in '%s'", a->name, b->name,
             front->graph->inputs.at[a->inplace].name);
    ir_note(front->job, a->place, "the other output");
}

/* Values that an output needs: of the others nothing is read. */
static bool *find_live(Job *job, const Graph *graph) {
    bool *live = IR_NEW_ARRAY(job, bool, graph->values.count + (size_t)1);
    for (uint32_t i = 0; i < graph->outputs.count; i++) live[graph->outputs.at[i].value] = true;
    for (uint32_t i = graph->values.count; i-- > 0;)
        if (live[i]) ir_value_mark_args(&graph->values.at[i], live);
    return live;
}

void gen_check_inplace(Front *front) {
    const Graph *graph = front->graph;
    const bool *live = find_live(front->job, graph);
    for (uint32_t i = 0; i < graph->outputs.count; i++) {
        if (graph->outputs.at[i].inplace == IR_NONE) continue;
        for (uint32_t k = 0; k < i; k++)
            if (graph->outputs.at[k].inplace != IR_NONE)
                check_pair(front, &graph->outputs.at[k], &graph->outputs.at[i]);
        check_reads(front, live, &graph->outputs.at[i], graph->outputs.at[i].inplace, false);
        for (uint32_t k = 0; k < graph->outputs.count; k++) /* an output that copies the input reads it */
            if (graph->outputs.at[k].value == graph->outputs.at[i].inplace && graph->outputs.at[i].inplace_items &&
                !is_whole(front, &graph->inputs.at[graph->outputs.at[i].inplace], graph->outputs.at[i].inplace_items,
                          graph->outputs.at[i].inplace_item_count))
                refuse_read(front, &graph->outputs.at[i], graph->outputs.at[k].place,
                            "another output copies all of it");
    }
}
