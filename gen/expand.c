/* The pass expand. Needs unit->graph from parse. Gives unit->expanded and unit->graph, one new Graph without
 * composites: each call is its line of composites.def, at the call's place; every value's origin is its own id. Breaks
 * nothing. */
#include <string.h>

#include "gen/front.h"

static uint32_t mapped(Job *job, const uint32_t *map, uint32_t id) {
    IR_REQUIRE(job, map[id] != IR_NONE);
    return map[id];
}

static uint32_t copy_value(Front *front, const Value *value, const uint32_t *map) {
    Job *job = front->job;
    uint32_t id = ir_graph_add(job, front->graph, value->op, value->dtype, value->place);
    Value *copy = &front->graph->values.at[id];
    *copy = *value;
    for (uint32_t i = 0; i < value->arg_count; i++) copy->arg[i] = mapped(job, map, value->arg[i]);
    if (value->op != OP_INDEX) return id;
    copy->items = IR_NEW_ARRAY(job, Item, value->item_count);
    for (uint32_t i = 0; i < value->item_count; i++) {
        copy->items[i] = value->items[i];
        if (value->items[i].kind == ITEM_GATHER) copy->items[i].index = mapped(job, map, value->items[i].index);
    }
    return id;
}

static uint32_t expand_value(Front *front, const Value *value, const uint32_t *map) {
    Call call = *value->call;
    call.args = IR_NEW_ARRAY(front->job, Arg, call.count);
    for (uint32_t i = 0; i < call.count; i++) {
        call.args[i] = value->call->args[i];
        if (call.args[i].kind == ARG_VALUE) call.args[i].value = mapped(front->job, map, call.args[i].value);
    }
    front->depth = 0;
    Arg result = gen_expand_call(front, &call, value->place);
    uint32_t id = gen_arg_value(front, &result, NULL, value->place);
    Value *made = &front->graph->values.at[id];
    IR_REQUIRE(front->job, made->dtype == value->dtype && made->shape.rank == value->shape.rank);
    if (!made->name) made->name = value->name;
    return id;
}

void gen_expand(Job *job, Unit *unit) {
    const Graph *from = unit->graph;
    Front front = {.job = job, .graph = ir_graph_create(job, from->name), .expand = true};
    Graph *graph = front.graph;
    for (uint32_t i = 0; i < from->dims.count; i++) *IR_PUSH(job, &graph->dims) = from->dims.at[i];
    for (uint32_t i = 0; i < from->inputs.count; i++) *IR_PUSH(job, &graph->inputs) = from->inputs.at[i];
    for (uint32_t i = 0; i < from->scalars.count; i++) *IR_PUSH(job, &graph->scalars) = from->scalars.at[i];
    uint32_t *map = IR_NEW_ARRAY(job, uint32_t, from->values.count);
    memset(map, 0xff, from->values.count * sizeof *map);
    for (uint32_t i = 0; i < from->values.count; i++) {
        const Value *value = &from->values.at[i];
        map[i] = value->op == OP_COMPOSITE ? expand_value(&front, value, map) : copy_value(&front, value, map);
    }
    for (uint32_t i = 0; i < from->outputs.count; i++) {
        Tensor *output = IR_PUSH(job, &graph->outputs);
        *output = from->outputs.at[i];
        output->value = mapped(job, map, output->value);
    }
    for (uint32_t i = 0; i < graph->values.count; i++) graph->values.at[i].origin = i;
    unit->graph = unit->expanded = graph;
}
