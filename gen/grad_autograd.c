/* What PyTorch's autograd would keep for the same backward pass, run op by op. In: the forward graph and what gradients
 * flow through. Out: the storages, each once and whole: views share that of what they are made of. By what PyTorch's
 * derivatives name: the operands and the result of an op where the table's derivatives do, but for a few; of composites
 * that are one operation there too, the list below; the others are taken apart. Dtypes are PyTorch's: those of the
 * operands; a norm's statistics are in f32, in f64 for f64. */
#include "gen/grad_build.h"

#include <string.h>

/* Of composites that are one operation in PyTorch: what it keeps of the operands and the result y, and the statistics
 * of a row besides. */
static const struct {
    const char *callee, *kept, *statistics[2];
} operations[] = {
    {"mean", "", {NULL, NULL}},
    {"var", "x", {NULL, NULL}},
    {"std", "x y", {NULL, NULL}},
    {"clamp", "x min max", {NULL, NULL}},
    {"reciprocal", "y", {NULL, NULL}},
    {"relu", "y", {NULL, NULL}},
    {"silu", "x", {NULL, NULL}},
    {"gelu", "x", {NULL, NULL}},
    {"softplus", "x", {NULL, NULL}},
    {"softmax", "y", {NULL, NULL}},
    {"log_softmax", "y", {NULL, NULL}},
    {"logsumexp", "x y", {NULL, NULL}},
    {"layer_norm", "x weight bias", {"mean", "rstd"}},
    {"rms_norm", "x weight", {"rstd", NULL}},
};

enum { OPERATIONS = sizeof operations / sizeof *operations };

typedef struct Keeping {
    Joint *joint;
    Grad *grad;
    const Graph *graph; /* calls of these operations are calls, the rest is expanded */
    bool *active;       /* of its values: it has a gradient in PyTorch */
    bool *reached;      /* a gradient that comes in gets there */
    bool *number;       /* made of numbers alone, of which autograd keeps no tensor */
    bool *kept;
    DType *dtypes; /* as PyTorch would compute them */
} Keeping;

static uint32_t operation_of(const Call *call) {
    uint32_t i = 0;
    while (i < OPERATIONS && strcmp(operations[i].callee, call->callee) != 0) i++;
    return i;
}

/* ---- storages ---- */

/* A slice of the first dim that it does not take at one index lies in one piece, others do not. */
static bool in_one_piece(const Graph *graph, const Value *view) {
    uint32_t dim = 0, whole_from = 0;
    for (uint32_t k = 0; k < view->item_count; k++) {
        const Item *item = &view->items[k];
        if (item->kind == ITEM_NEW_AXIS) continue;
        const bool whole = ir_item_takes_all(item, graph->values.at[view->arg[0]].shape.extent[dim++]);
        if (!whole && dim - 1 > whole_from) return false;
        if (item->kind == ITEM_AT && dim - 1 == whole_from) whole_from = dim;
    }
    return true;
}

/* The value whose storage a value lies in; a reshape of what is not in one piece is a copy. */
static uint32_t storage_of(const Keeping *keeping, uint32_t id) {
    const Graph *graph = keeping->graph;
    uint32_t copy = IR_NONE;
    for (;;) {
        const Value *value = &graph->values.at[id];
        const bool same = value->op == OP_CAST && keeping->dtypes[id] == keeping->dtypes[value->arg[0]];
        if (value->op == OP_RESHAPE) copy = id;
        if (value->op == OP_INDEX && copy != IR_NONE && !in_one_piece(graph, value)) return copy;
        if (!same && value->op != OP_RESHAPE && (value->op != OP_INDEX || ir_gather_index(value) != IR_NONE)) return id;
        id = value->arg[0];
    }
}

static void keep(Keeping *keeping, uint32_t id) {
    if (keeping->number[id]) return;
    id = storage_of(keeping, id);
    if (keeping->kept[id]) return;
    keeping->kept[id] = true;
    const Value *value = &keeping->graph->values.at[id];
    *IR_PUSH(keeping->joint->job, &keeping->grad->autograd) =
        (GradTensor){gen_grad_word(value), gen_grad_bytes(keeping->joint->job, &value->shape, keeping->dtypes[id])};
}

/* ---- dtypes ---- */

/* PyTorch's promotion of two dtypes: floats over integers, the wider of floats, f32 where neither holds the other. */
static DType promote(DType a, DType b) {
    const DTypeRow *x = ir_dtype(a), *y = ir_dtype(b);
    if (a == b) return a;
    if (x->kind != y->kind) return x->kind == KIND_FLOAT || (x->kind == KIND_INT && y->kind == KIND_BOOL) ? a : b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? a : b;
    return x->kind == KIND_FLOAT ? DTYPE_F32 : DTYPE_I64;
}

static DType torch_dtype(const Graph *graph, const DType *dtypes, const Value *value) {
    if (value->op == OP_CAST || value->op == OP_INPUT || ir_dtype(value->dtype)->kind != KIND_FLOAT)
        return value->dtype;
    bool found = false;
    DType dtype = value->dtype;
    for (uint32_t i = 0; i < ir_value_operand_count(value); i++) {
        const uint32_t id = ir_value_operand(value, i);
        if (id == IR_NONE) continue;
        const Value *arg = &graph->values.at[id];
        const bool weak = arg->op == OP_CONST || arg->op == OP_SCALAR || arg->op == OP_SIZE ||
                          ir_dtype(arg->dtype)->kind != KIND_FLOAT || (!arg->shape.rank && value->shape.rank);
        if (weak) continue;
        dtype = found ? promote(dtype, dtypes[id]) : dtypes[id];
        found = true;
    }
    return dtype;
}

/* ---- which ---- */

/* A tensor that is no value of the graph. */
static void keep_other(Keeping *keeping, const char *name, const Shape *shape, DType dtype) {
    *IR_PUSH(keeping->joint->job, &keeping->grad->autograd) =
        (GradTensor){name, gen_grad_bytes(keeping->joint->job, shape, dtype)};
}

static void keep_of_primitive(Keeping *keeping, uint32_t id, const Value *value) {
    static const char *const names[] = {"a", "b", "c"};
    for (uint32_t k = 0; k < value->arg_count; k++) {
        const bool divisor = value->op == OP_DIV && k == 1; /* whose derivative names both operands in PyTorch */
        const char *text = divisor ? "a b" : ir_op(value->op)->derivative_text[k];
        if (!keeping->active[value->arg[k]]) continue;
        if (divisor && keeping->number[value->arg[0]]) { /* 2 / x is reciprocal(x) * 2, of which the first is kept */
            keep_other(keeping, "reciprocal", &value->shape, keeping->dtypes[id]);
            continue;
        }
        for (uint32_t i = 0; i < value->arg_count && i < 3; i++)
            if (gen_grad_has_word(text, names[i])) keep(keeping, value->arg[i]);
        if (gen_grad_has_word(text, "y")) keep(keeping, id);
    }
}

/* The shape of a row's statistics. */
static Shape reduced_shape(Keeping *keeping, const Value *value) {
    Shape shape = keeping->graph->values.at[value->call->args[0].value].shape;
    for (uint32_t i = 0; i < value->call->count; i++) {
        if (strcmp(value->call->params[i], "dim") != 0) continue;
        const uint32_t dims = gen_dims_of(&keeping->joint->front, &value->call->args[i], shape.rank, value->place);
        for (uint32_t d = 0; d < shape.rank; d++)
            if (dims >> d & 1) shape.extent[d] = ir_poly_int(keeping->joint->job, 1);
    }
    return shape;
}

static void keep_of_call(Keeping *keeping, uint32_t id, const Value *value) {
    const uint32_t operation = operation_of(value->call);
    const char *kept = operations[operation].kept;
    for (uint32_t i = 0; i < value->call->count; i++)
        if (value->call->args[i].kind == ARG_VALUE && gen_grad_has_word(kept, value->call->params[i]))
            keep(keeping, value->call->args[i].value);
    if (gen_grad_has_word(kept, "y")) keep(keeping, id);
    for (uint32_t i = 0; i < 2 && operations[operation].statistics[i]; i++) {
        const Shape shape = reduced_shape(keeping, value);
        const DType dtype = ir_compute_dtype(keeping->dtypes[value->call->args[0].value]);
        keep_other(keeping, operations[operation].statistics[i], &shape, dtype);
    }
}

static uint32_t put_call(Front *front, Call *call, Place place) {
    const bool whole = operation_of(call) < OPERATIONS && call->args[0].kind == ARG_VALUE;
    return whole ? gen_add_composite(front, call, place) : gen_put_formula(front, call, place);
}

/* The forward graph with composites that are no operation of PyTorch's written out; map: its values there. */
static Graph *calls_of_operations(Joint *joint, Front *front, uint32_t *map) {
    const Graph *from = joint->from;
    Graph *graph = ir_graph_create(joint->job, from->name);
    graph->dims = joint->graph->dims;
    graph->inputs = joint->graph->inputs;
    *front = (Front){.job = joint->job, .graph = graph, .put_call = put_call};
    for (uint32_t i = 0; i < from->values.count; i++)
        map[i] = gen_copy_value(front, &from->values.at[i], map, put_call);
    return graph;
}

static void look_at(Keeping *keeping, uint32_t id) {
    const Value *value = &keeping->graph->values.at[id];
    keeping->dtypes[id] = torch_dtype(keeping->graph, keeping->dtypes, value);
    bool active = value->op == OP_INPUT && gen_grad_flows(keeping->joint, value, NULL);
    bool number = value->op == OP_CONST || value->op == OP_SCALAR || value->op == OP_SIZE;
    for (uint32_t k = 0; k < ir_value_operand_count(value); k++) {
        const uint32_t operand = ir_value_operand(value, k);
        if (operand == IR_NONE) continue;
        active = active || keeping->active[operand];
        number = (number || k == 0) && keeping->number[operand];
    }
    keeping->number[id] = number;
    keeping->active[id] = active && ir_dtype(value->dtype)->kind == KIND_FLOAT; /* through floor too: of zeros */
}

/* Back from the outputs whose gradients come in. */
static void find_reached(Keeping *keeping, const uint32_t *map) {
    const Graph *graph = keeping->graph, *from = keeping->joint->from;
    for (uint32_t i = 0; i < from->outputs.count; i++)
        if (keeping->joint->taken_outputs[i]) keeping->reached[map[from->outputs.at[i].value]] = true;
    for (uint32_t i = graph->values.count; i-- > 0;) {
        keeping->reached[i] = keeping->reached[i] && keeping->active[i];
        if (keeping->reached[i]) ir_value_mark_args(&graph->values.at[i], keeping->reached);
    }
}

void gen_grad_list_autograd(Joint *joint, Grad *grad) {
    Front front;
    uint32_t *map = IR_NEW_ARRAY(joint->job, uint32_t, joint->from->values.count + 1);
    const Graph *graph = calls_of_operations(joint, &front, map);
    const uint32_t count = graph->values.count;
    Keeping keeping = {.joint = joint, .grad = grad, .graph = graph};
    keeping.active = IR_NEW_ARRAY(joint->job, bool, count + 1);
    keeping.reached = IR_NEW_ARRAY(joint->job, bool, count + 1);
    keeping.number = IR_NEW_ARRAY(joint->job, bool, count + 1);
    keeping.kept = IR_NEW_ARRAY(joint->job, bool, count + 1);
    keeping.dtypes = IR_NEW_ARRAY(joint->job, DType, count + 1);
    for (uint32_t i = 0; i < count; i++) look_at(&keeping, i);
    find_reached(&keeping, map);
    for (uint32_t i = 0; i < count; i++) {
        const Value *value = &graph->values.at[i];
        if (!keeping.reached[i]) continue;
        if (value->op < OP_PRIMITIVES) keep_of_primitive(&keeping, i, value);
        if (value->op == OP_COMPOSITE) keep_of_call(&keeping, i, value);
        if (value->op == OP_REDUCE && gen_grad_has_word(ir_reduction(value->reduction)->derivative, "a")) {
            keep(&keeping, value->arg[0]);
            keep(&keeping, i);
        }
    }
}
