/* What PyTorch's autograd would keep for the same backward pass, run op by op. In: the forward graph and what gradients
 * flow through. Out: the tensors, each once. By the tables: an op keeps the operands and the result that its derivative
 * names, a composite (one operation in PyTorch too) what its line names, whole values computed again from what they are
 * made of, smaller ones (statistics) kept. Their dtypes are PyTorch's: that of the operands, f32 for statistics. */
#include "gen/grad_build.h"

#include <string.h>

typedef struct Keeping {
    Joint *joint;
    Grad *grad;
    const Graph *graph; /* calls with a line are calls, the rest is expanded */
    bool *active;       /* of its values */
    bool *kept;
    DType *dtypes; /* as PyTorch would compute them */
} Keeping;

static void keep(Keeping *keeping, uint32_t id) {
    const Value *value = &keeping->graph->values.at[id];
    if (value->op == OP_CONST || value->op == OP_SCALAR || value->op == OP_SIZE || keeping->kept[id]) return;
    keeping->kept[id] = true;
    const char *name = value->name                 ? value->name
                       : value->op == OP_COMPOSITE ? value->call->callee
                       : value->op == OP_REDUCE    ? ir_reduction(value->reduction)->language
                                                   : ir_op_name(value->op);
    *IR_PUSH(keeping->joint->job, &keeping->grad->autograd) =
        (GradTensor){name, gen_grad_bytes(keeping->joint->job, &value->shape, keeping->dtypes[id])};
}

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

static void keep_of_primitive(Keeping *keeping, uint32_t id, const Value *value) {
    static const char *const names[] = {"a", "b", "c"};
    for (uint32_t k = 0; k < value->arg_count; k++) {
        const char *text = ir_op(value->op)->derivative_text[k];
        if (!keeping->active[value->arg[k]]) continue;
        for (uint32_t i = 0; i < value->arg_count && i < 3; i++)
            if (gen_grad_has_word(text, names[i])) keep(keeping, value->arg[i]);
        if (gen_grad_has_word(text, "y")) keep(keeping, id);
    }
}

/* Whether a value of a line is a statistic: smaller than the result, in every call of the line alike. */
static bool is_statistic(const Joint *joint, uint32_t line, const char *name) {
    for (uint32_t i = 0; i < joint->derived.count; i++) {
        const Derived *derived = &joint->derived.at[i];
        if (derived->call->line != line) continue;
        for (uint32_t k = 0; k < derived->bindings.count; k++) {
            if (strcmp(derived->bindings.names[k], name) != 0 || derived->bindings.args[k].kind != ARG_VALUE) continue;
            const Value *value = &joint->graph->values.at[derived->bindings.args[k].value];
            return !gen_grad_same_shape(&value->shape, &joint->graph->values.at[derived->value].shape);
        }
    }
    return false;
}

/* The shape of a row's statistics. */
static Shape reduced_shape(Keeping *keeping, const Value *value) {
    Shape shape = value->shape;
    for (uint32_t i = 0; i < value->call->count; i++) {
        if (strcmp(value->call->params[i], "dim") != 0) continue;
        const uint32_t dims = gen_dims_of(&keeping->joint->front, &value->call->args[i], shape.rank, value->place);
        for (uint32_t d = 0; d < shape.rank; d++)
            if (dims >> d & 1) shape.extent[d] = ir_poly_int(keeping->joint->job, 1);
    }
    return shape;
}

/* The names in a text of a line: operands, the result, and the line's own values before it, of which statistics are
 * kept and others are made of what they name in turn. */
static void keep_names(Keeping *keeping, uint32_t id, const Statements *all, const char *text, uint32_t before,
                       bool *seen) {
    const Value *value = &keeping->graph->values.at[id];
    for (uint32_t i = 0; i < value->call->count; i++)
        if (value->call->args[i].kind == ARG_VALUE && gen_grad_has_word(text, value->call->params[i]))
            keep(keeping, value->call->args[i].value);
    if (gen_grad_has_word(text, "y")) keep(keeping, id);
    for (uint32_t i = 0; i < before; i++) {
        const Statement *statement = &all->at[i];
        if (seen[i] || !strcmp(statement->name, "y") || !gen_grad_has_word(text, statement->name)) continue;
        seen[i] = true;
        if (statement->needs_gradient || !is_statistic(keeping->joint, value->call->line, statement->name)) {
            keep_names(keeping, id, all, statement->text, i, seen);
            continue;
        }
        const Shape shape = reduced_shape(keeping, value);
        *IR_PUSH(keeping->joint->job, &keeping->grad->autograd) =
            (GradTensor){statement->name, gen_grad_bytes(keeping->joint->job, &shape, DTYPE_F32)};
    }
}

static void keep_of_call(Keeping *keeping, uint32_t id, const Value *value) {
    const Statements all = gen_grad_read_line(keeping->joint->job, value->call->line);
    bool *seen = IR_NEW_ARRAY(keeping->joint->job, bool, all.count + 1);
    for (uint32_t i = 0; i < all.count; i++)
        if (gen_grad_is_result(&all.at[i])) keep_names(keeping, id, &all, all.at[i].text, i, seen);
}

static uint32_t put_call(Front *front, Call *call, Place place) {
    return *gen_composite_derivative(call->line) ? gen_add_composite(front, call, place)
                                                 : gen_put_formula(front, call, place);
}

/* The forward graph with composites that have no line written out. */
static Graph *calls_of_lines(Joint *joint, Front *front) {
    const Graph *from = joint->from;
    Graph *graph = ir_graph_create(joint->job, from->name);
    graph->dims = joint->graph->dims;
    graph->inputs = joint->graph->inputs;
    *front = (Front){.job = joint->job, .graph = graph, .put_call = put_call};
    uint32_t *map = IR_NEW_ARRAY(joint->job, uint32_t, from->values.count + 1);
    for (uint32_t i = 0; i < from->values.count; i++)
        map[i] = gen_copy_value(front, &from->values.at[i], map, put_call);
    return graph;
}

void gen_grad_list_autograd(Joint *joint, Grad *grad) {
    Front front;
    const Graph *graph = calls_of_lines(joint, &front);
    const uint32_t count = graph->values.count;
    Keeping keeping = {.joint = joint, .grad = grad, .graph = graph};
    keeping.active = IR_NEW_ARRAY(joint->job, bool, count + 1);
    keeping.kept = IR_NEW_ARRAY(joint->job, bool, count + 1);
    keeping.dtypes = IR_NEW_ARRAY(joint->job, DType, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        const Value *value = &graph->values.at[i];
        keeping.dtypes[i] = torch_dtype(graph, keeping.dtypes, value);
        keeping.active[i] = gen_grad_flows(joint, value, keeping.active);
    }
    for (uint32_t i = 0; i < count; i++) {
        const Value *value = &graph->values.at[i];
        if (!keeping.active[i]) continue;
        if (value->op < OP_PRIMITIVES) keep_of_primitive(&keeping, i, value);
        if (value->op == OP_COMPOSITE) keep_of_call(&keeping, i, value);
        if (value->op == OP_REDUCE && gen_grad_has_word(ir_reduction(value->reduction)->derivative, "a")) {
            keep(&keeping, value->arg[0]);
            keep(&keeping, i);
        }
    }
}
