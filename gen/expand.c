/* The pass expand. Needs unit->graph from parse. Gives unit->expanded and unit->graph, one new Graph without
 * composites: each call is its line of composites.def, at the call's place; every value's origin is its own id. Breaks
 * nothing. */
#include "gen/front.h"

uint32_t gen_put_formula(Front *front, Call *call, Place place) {
    const Arg result = gen_expand_call(front, call, place);
    return gen_arg_value(front, &result, NULL, place);
}

uint32_t gen_copy_value(Front *front, const Value *value, const uint32_t *map, PutCall *put) {
    const Value copy = ir_value_mapped(front->job, value, map);
    uint32_t id;
    if (value->op == OP_COMPOSITE) {
        front->depth = 0;
        id = put(front, copy.call, value->place);
        const Value *made = &front->graph->values.at[id];
        IR_REQUIRE(front->job, made->dtype == value->dtype && made->shape.rank == value->shape.rank);
    } else {
        id = ir_graph_add(front->job, front->graph, value->op, value->dtype, value->place);
        front->graph->values.at[id] = copy;
    }
    if (!front->graph->values.at[id].name) front->graph->values.at[id].name = value->name;
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
    for (uint32_t i = 0; i < from->values.count; i++)
        map[i] = gen_copy_value(&front, &from->values.at[i], map, gen_put_formula);
    for (uint32_t i = 0; i < from->outputs.count; i++) {
        Tensor *output = IR_PUSH(job, &graph->outputs);
        *output = from->outputs.at[i];
        output->value = map[output->value];
    }
    for (uint32_t i = 0; i < graph->values.count; i++) graph->values.at[i].origin = i;
    unit->graph = unit->expanded = graph;
}
