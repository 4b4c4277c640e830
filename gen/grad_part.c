/* How much of a tensor the backward graph reads. In: the joint graph, the cut and a value that is read. Out: the bytes
 * of the slices and of the picked elements, where it reads no more of it than these, else those of the tensor. */
#include "gen/grad_build.h"

typedef struct Reader {
    const Joint *joint;
    const Cut *cut;
    const int64_t *dims; /* by which two formulas are compared */
} Reader;

bool gen_grad_is_view(const Value *value) {
    return value->op == OP_INDEX || value->op == OP_RESHAPE || value->op == OP_CAST;
}

bool gen_grad_takes_all(const Graph *graph, const Value *value) {
    if (value->op == OP_RESHAPE) return true;
    for (uint32_t k = 0, d = 0; k < value->item_count; k++) {
        const Item *item = &value->items[k];
        if (item->kind == ITEM_NEW_AXIS) continue;
        if (!ir_item_takes_all(item, graph->values.at[value->arg[0]].shape.extent[d++])) return false;
    }
    return value->op == OP_INDEX;
}

static Poly least(const Reader *reader, Poly a, Poly b) {
    int64_t x, y;
    const uint32_t count = reader->joint->graph->dims.count;
    if (!ir_poly_eval(a, reader->dims, count, NULL, 0, &x)) return b;
    if (!ir_poly_eval(b, reader->dims, count, NULL, 0, &y)) return a;
    return x < y ? a : b;
}

/* Of this value, through views and casts, by what the backward graph makes of it. */
static Poly elements_read(const Reader *reader, uint32_t id) {
    const Graph *graph = reader->joint->graph;
    Job *job = reader->joint->job;
    bool overflow = false;
    const Poly all = gen_grad_elements(job, &graph->values.at[id].shape);
    Poly sum = ir_poly_int(job, 0);
    for (uint32_t o = reader->joint->from->outputs.count; o < graph->outputs.count; o++)
        if (graph->outputs.at[o].value == id) return all;
    for (uint32_t i = id + 1; i < graph->values.count; i++) {
        const Value *value = &graph->values.at[i];
        if (!reader->cut->needed[i] || reader->cut->read[i] || !ir_value_uses(value, id)) continue;
        if (!gen_grad_is_view(value) || ir_gather_index(value) == id) return all;
        sum = ir_poly_add(job, sum, elements_read(reader, i), &overflow);
    }
    return overflow ? all : least(reader, sum, all);
}

Poly gen_grad_read_bytes(const Joint *joint, const Cut *cut, uint32_t id, DType dtype, bool *part) {
    const Graph *graph = joint->graph;
    bool overflow = false;
    int64_t *dims = IR_NEW_ARRAY(joint->job, int64_t, graph->dims.count + 1);
    for (uint32_t i = 0; i < graph->dims.count; i++) dims[i] = ir_dim_guess(&graph->dims.at[i]);
    const Reader reader = {joint, cut, dims};
    const Poly all = gen_grad_elements(joint->job, &graph->values.at[id].shape), read = elements_read(&reader, id);
    *part = !ir_poly_equal(read, all);
    return ir_poly_mul(joint->job, read, ir_poly_int(joint->job, ir_dtype(dtype)->bytes), &overflow);
}
