/* In: operands (Arg) and operators. Out: values of the graph, or weak operands that wait for what they meet. Here are
 * the rules of None and of sizes with their exact quotients. The dtypes of weak operands are ir/weak.c's, typing itself
 * is ir_graph_op's. */
#include <math.h>
#include <string.h>

#include "gen/front.h"
#include "ir/weak.h"

const char *gen_arg_name(const Arg *arg) {
    static const char *const names[] = {"None",   "a tensor", "a number", "a size", "an expression of numbers",
                                        "a bool", "a string", "a list"};
    return names[arg->kind];
}

static uint32_t number_value(Front *front, const Arg *arg, const DType *want, Place place) {
    return ir_graph_const(front->job, front->graph, ir_weak_number_dtype(arg, want), arg->number, arg->integer, place);
}

static uint32_t size_value(Front *front, const Arg *arg, Place place) {
    uint32_t id = ir_graph_add(front->job, front->graph, OP_SIZE, DTYPE_I64, place);
    front->graph->values.at[id].size = arg->size;
    return id;
}

static uint32_t weak_op_value(Front *front, const Arg *arg, const DType *want, Place place) {
    want = ir_weak_operand_want(arg, want);
    uint32_t values[3];
    for (uint32_t i = 0; i < arg->count; i++) values[i] = gen_arg_value(front, &arg->item[i], want, place);
    return ir_graph_op(front->job, front->graph, arg->op, values, place);
}

uint32_t gen_arg_value(Front *front, const Arg *arg, const DType *want, Place place) {
    switch (arg->kind) {
    case ARG_VALUE: return arg->value;
    case ARG_NUMBER: return number_value(front, arg, want, place);
    case ARG_SIZE: return size_value(front, arg, place);
    case ARG_OP: return weak_op_value(front, arg, want, place);
    case ARG_BOOL: return ir_graph_const(front->job, front->graph, DTYPE_BOOL, 0, arg->integer, place);
    default: break;
    }
    ir_stop_at(front->job, STATUS_REJECTED, place, "expected a tensor or a number, found %s", gen_arg_name(arg));
}

/* ---- sizes ---- */

static void print_size(Text *text, const Front *front, Poly poly) {
    ir_poly_print(text, poly, ir_graph_dim_names(front->job, front->graph), front->graph->dims.count);
}

static const char *size_text(Front *front, Poly poly, bool operand) {
    Text text = ir_text(front->job);
    print_size(&text, front, poly);
    const char *plain = ir_text_string(&text);
    bool atom = poly.count <= 1 && !strpbrk(plain, "*/- ");
    return operand && !atom ? ir_format(front->job, "(%s)", plain) : plain;
}

static _Noreturn void refuse_quotient(Front *front, Poly a, Poly b, Place place) {
    bool overflow = false;
    int64_t above, below;
    const int64_t *fixed = ir_graph_fixed(front->job, front->graph);
    const uint32_t count = front->graph->dims.count;
    const char *name = ir_format(front->job, "%s/%s", size_text(front, a, true), size_text(front, b, true));
    bool numbers = ir_poly_is_int(ir_poly_fold(front->job, a, fixed, count, &overflow), &above) &&
                   ir_poly_is_int(ir_poly_fold(front->job, b, fixed, count, &overflow), &below);
    if (numbers && below == 0) ir_stop_at(front->job, STATUS_REJECTED, place, "%s divides by 0", name);
    if (numbers && above % below != 0)
        ir_stop_at(front->job, STATUS_REJECTED, place, "%s is not exact: %lld does not divide by %lld", name,
                   (long long)above, (long long)below);
    if (numbers) ir_stop_at(front->job, STATUS_REJECTED, place, "%s is negative", name);
    if (!ir_poly_is_int(b, &below))
        ir_stop_at(front->job, STATUS_REJECTED, place,
                   "%s is not exact for every size: by a dim only fixed dims divide, and these are any", name);
    ir_stop_at(front->job, STATUS_REJECTED, place,
               "%s is not exact for every size: say under dims: what the dim is a multiple of, as in {multiple: %lld}",
               name, (long long)(below < 0 ? -below : below));
}

/* The dim that stands for an exact quotient of fixed dims: one for each text. */
static Poly derived_dim(Front *front, Poly a, Poly b, Place place) {
    bool overflow = false;
    int64_t above, below;
    const int64_t *fixed = ir_graph_fixed(front->job, front->graph);
    uint32_t count = front->graph->dims.count;
    if (!ir_poly_is_int(ir_poly_fold(front->job, a, fixed, count, &overflow), &above) ||
        !ir_poly_is_int(ir_poly_fold(front->job, b, fixed, count, &overflow), &below) || overflow || below == 0 ||
        above % below != 0 || above / below < 0)
        refuse_quotient(front, a, b, place);
    const char *name = ir_format(front->job, "%s/%s", size_text(front, a, true), size_text(front, b, true));
    for (uint32_t i = 0; i < count; i++)
        if (front->graph->dims.at[i].derived && strcmp(front->graph->dims.at[i].name, name) == 0)
            return ir_poly_symbol(front->job, i);
    *IR_PUSH(front->job, &front->graph->dims) = (Dim){
        .name = name, .value = above / below, .hint = -1, .max = -1, .multiple = 1, .derived = true, .place = place};
    return ir_poly_symbol(front->job, count);
}

/* Whether the numbers of the fixed dims and the multiples of the others make every fraction whole. */
static bool is_whole(Front *front, Poly poly) {
    bool overflow = false;
    const Graph *graph = front->graph;
    const Multiples known = ir_dim_multiples(front->job, graph->dims.at, graph->dims.count);
    Poly folded = ir_poly_fold(front->job, poly, ir_graph_fixed(front->job, graph), graph->dims.count, &overflow);
    return ir_poly_is_whole(folded, &known) && !overflow;
}

/* a / b where the dims make it whole: N/2 stays a part of N, so that N - N/2 is N/2; C/G is a dim of its own. */
static Poly divide(Front *front, Poly a, Poly b, Place place) {
    Poly quotient;
    int64_t content = 0;
    bool overflow = false;
    const Multiples known = ir_dim_multiples(front->job, front->graph->dims.at, front->graph->dims.count);
    if (b.count == 0) ir_stop_at(front->job, STATUS_REJECTED, place, "a size divides by 0");
    if (ir_poly_div(front->job, a, b, &known, &quotient)) return quotient;
    for (uint32_t t = 0; t < b.count; t++) content = ir_common_factor(b.terms[t].coefficient, content);
    Poly rest = ir_poly_over(front->job, b, content, &overflow);
    if (!overflow && ir_poly_div(front->job, a, rest, &known, &quotient)) {
        quotient = ir_poly_over(front->job, quotient, content, &overflow);
        if (!overflow && is_whole(front, quotient)) return quotient;
        refuse_quotient(front, a, b, place);
    }
    return derived_dim(front, a, b, place);
}

static _Noreturn void refuse_large(Front *front, Place place) {
    ir_stop_at(front->job, STATUS_REJECTED, place, "a size must stay below 2^62, with at most 256 terms");
}

static Poly below_limit(Front *front, Poly size, bool overflow, Place place) {
    if (overflow || !ir_graph_size_fits(front->job, front->graph, size)) refuse_large(front, place);
    return size;
}

static Poly combine(Front *front, Op op, Poly a, Poly b, Place place) {
    bool overflow = false;
    const Poly result = ir_size_combine(front->job, op, a, b, &overflow);
    return below_limit(front, result, overflow, place);
}

Poly gen_arg_size(Front *front, const Arg *arg, Place place, const char *what) {
    if (arg->kind == ARG_SIZE) return arg->size;
    if (arg->kind == ARG_NUMBER && arg->is_integer) {
        if (arg->integer >= IR_MAX_EXTENT || arg->integer <= -IR_MAX_EXTENT) refuse_large(front, place);
        return ir_poly_int(front->job, arg->integer);
    }
    if (arg->kind == ARG_OP) {
        Poly item[2] = {{0}, {0}};
        bool known = arg->op == OP_ADD || arg->op == OP_SUB || arg->op == OP_MUL || arg->op == OP_NEG ||
                     arg->op == OP_DIV || arg->op == OP_FLOORDIV;
        for (uint32_t i = 0; known && i < arg->count; i++) item[i] = gen_arg_size(front, &arg->item[i], place, what);
        if (arg->op == OP_NEG) return combine(front, OP_SUB, ir_poly_int(front->job, 0), item[0], place);
        if (arg->op == OP_DIV || arg->op == OP_FLOORDIV) return divide(front, item[0], item[1], place);
        if (known) return combine(front, arg->op, item[0], item[1], place);
    }
    ir_stop_at(front->job, STATUS_REJECTED, place,
               "expected %s made of whole numbers, dims, + - * and exact /, found %s", what, gen_arg_name(arg));
}

/* ---- operators ---- */

static Arg weak_op(Front *front, Op op, const Arg *args, uint32_t count, Place place) {
    Arg folded;
    bool overflow = false;
    if (ir_weak_fold(front->job, op, args, count, &folded, &overflow)) {
        if (folded.kind == ARG_SIZE) folded.size = below_limit(front, folded.size, overflow, place);
        folded.place = place;
        return folded;
    }
    Arg result = {.kind = ARG_OP, .place = place, .op = op, .count = count};
    for (uint32_t i = 0; i < count; i++)
        if (args[i].kind == ARG_OP && args[i].depth >= result.depth) result.depth = (uint16_t)(args[i].depth + 1);
    if (result.depth >= GEN_MAX_NESTING)
        ir_stop_at(front->job, STATUS_REJECTED, place, "an expression of numbers has at most %d operations in a row",
                   GEN_MAX_NESTING);
    Arg *copy = IR_NEW_ARRAY(front->job, Arg, count);
    memcpy(copy, args, count * sizeof *copy);
    result.item = copy;
    return result;
}

Arg gen_apply(Front *front, Op op, const Arg *args, uint32_t count, Place place, bool composite) {
    bool skips = op == OP_ADD || op == OP_SUB || op == OP_MUL || op == OP_DIV ||
                 (composite && (op == OP_MAXIMUM || op == OP_MINIMUM || op == OP_AND || op == OP_OR));
    /* what is compared with a bound that is not there is left out of conditions */
    if (composite && ir_op(op)->rule == RULE_COMPARE && (args[0].kind == ARG_NONE || args[1].kind == ARG_NONE))
        return (Arg){.kind = ARG_NONE, .place = place};
    if (skips && args[1].kind == ARG_NONE) return args[0];
    if (skips && args[0].kind == ARG_NONE) return args[1];
    for (uint32_t i = 0; i < count; i++) {
        if (args[i].kind == ARG_NONE || args[i].kind == ARG_TEXT || args[i].kind == ARG_LIST)
            ir_stop_at(front->job, STATUS_REJECTED, place, "%s takes tensors and numbers, found %s",
                       *ir_op(op)->symbol ? ir_op(op)->symbol : ir_op(op)->name, gen_arg_name(&args[i]));
    }
    if (ir_op_is_weak(op, args, count)) return weak_op(front, op, args, count, place);
    DType dtype;
    bool strong = ir_weak_meeting(front->graph, op, args, count, &dtype);
    uint32_t values[3];
    for (uint32_t i = 0; i < count; i++) values[i] = gen_arg_value(front, &args[i], strong ? &dtype : NULL, place);
    return (Arg){.kind = ARG_VALUE, .place = place, .value = ir_graph_op(front->job, front->graph, op, values, place)};
}
