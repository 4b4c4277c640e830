/* In: a call. Out: an operand. Arguments are bound to parameters; then a primitive, a reduction, a cast, an index or a
 * shape becomes a value, a function is inlined, and a composite becomes one OP_COMPOSITE typed by its formula, or,
 * while expanding, its formula. */
#include <string.h>

#include "gen/advice.h"
#include "gen/front.h"
#include "gen/language.h"

/* Parameters of what is no line of the graph language. */
static const char *const unary_params[] = {"x"};
static const char *const binary_params[] = {"x", "other"};
static const char *const where_params[] = {"condition", "x", "other"};
static const char *const reduce_params[] = {"x", "dim", "keepdim"};
static const char *const cast_params[] = {"x", "dtype"};
static const char *const arange_params[] = {"n"};
static const char *const reshape_params[] = {"x", "shape"};
static const char *const numel_params[] = {"x", "dim"};

static uint32_t build_value(Front *front, const Scope *scope, const Ast *ast) {
    Arg arg = gen_build(front, scope, ast);
    return gen_arg_value(front, &arg, NULL, gen_place(scope, ast->place));
}

static Arg value_arg(uint32_t value, Place place) { return (Arg){.kind = ARG_VALUE, .place = place, .value = value}; }

/* ---- primitives and what is beside them ---- */

static Arg call_primitive(Front *front, const Scope *scope, const Ast *call, Op op) {
    static const char *const *const params[] = {unary_params, unary_params, binary_params, where_params};
    uint32_t arity = ir_op(op)->arity;
    const Ast **bound = gen_bind(front, scope, call, params[arity], arity);
    Arg args[3];
    for (uint32_t i = 0; i < arity; i++) {
        if (!bound[i]) gen_refuse_missing(front, scope, call, params[arity][i]);
        args[i] = gen_build(front, scope, bound[i]);
    }
    bool composite = scope && scope->function->line != IR_NONE;
    return gen_apply(front, op, args, arity, gen_place(scope, call->place), composite);
}

/* An argument of a reduction or of numel, of the kind that its parameter takes. */
static Arg build_kind(Front *front, const Scope *scope, const Ast *call, const char *param, const Ast *ast) {
    Arg arg = gen_build(front, scope, ast);
    gen_check_kind(front, scope, call, param, &arg, ast->place);
    return arg;
}

/* The dims that a `dim` argument names; None and no argument: all. */
static uint32_t build_dims(Front *front, const Scope *scope, const Ast *call, const Ast *ast, uint32_t rank) {
    Arg arg = ast ? build_kind(front, scope, call, "dim", ast) : (Arg){.kind = ARG_NONE};
    return gen_dims_of(front, &arg, rank, gen_place(scope, ast ? ast->place : call->place));
}

static Arg call_reduction(Front *front, const Scope *scope, const Ast *call, Reduction reduction) {
    const Ast **bound = gen_bind(front, scope, call, reduce_params, 3);
    Place place = gen_place(scope, call->place);
    if (!bound[0]) gen_refuse_missing(front, scope, call, "x");
    uint32_t value = build_value(front, scope, bound[0]);
    uint32_t rank = front->graph->values.at[value].shape.rank;
    uint32_t dims = build_dims(front, scope, call, bound[1], rank);
    Arg keepdim = bound[2] ? build_kind(front, scope, call, "keepdim", bound[2]) : (Arg){.kind = ARG_BOOL};
    return value_arg(ir_graph_reduce(front->job, front->graph, reduction, value, dims, keepdim.integer != 0, place),
                     place);
}

/* A number, a bool or a size becomes a constant of the dtype; a value gets an OP_CAST. */
static Arg call_cast(Front *front, const Scope *scope, const Ast *call) {
    const Ast **bound = gen_bind(front, scope, call, cast_params, 2);
    Place place = gen_place(scope, call->place);
    if (!bound[0]) gen_refuse_missing(front, scope, call, "x");
    if (!bound[1]) gen_refuse_missing(front, scope, call, "dtype");
    if (bound[1]->kind != AST_NAME)
        ir_stop_at(front->job, STATUS_REJECTED, gen_place(scope, bound[1]->place),
                   "cast needs the name of a dtype, as in cast(x, f16)");
    DType dtype = gen_find_dtype(front, bound[1]->text, gen_place(scope, bound[1]->place));
    if (gen_find_type(front, bound[1]->text)) front->types_cast = true;
    Arg arg = gen_build(front, scope, bound[0]);
    Kind kind = ir_dtype(dtype)->kind;
    if (arg.kind == ARG_NUMBER) {
        int64_t integer = arg.is_integer ? arg.integer : ir_float_to_int(dtype, arg.number);
        if (kind == KIND_BOOL) integer = arg.number != 0;
        return value_arg(ir_graph_const(front->job, front->graph, dtype, arg.number, integer, place), place);
    }
    uint32_t value = gen_arg_value(front, &arg, kind == KIND_FLOAT ? &dtype : NULL, place);
    return value_arg(ir_graph_cast(front->job, front->graph, value, dtype, place), place);
}

static Arg call_arange(Front *front, const Scope *scope, const Ast *call) {
    const Ast **bound = gen_bind(front, scope, call, arange_params, 1);
    Place place = gen_place(scope, call->place);
    if (!bound[0]) gen_refuse_missing(front, scope, call, "n");
    Arg arg = gen_build(front, scope, bound[0]);
    Shape shape = {.rank = 1};
    shape.extent[0] = gen_arg_size(front, &arg, gen_place(scope, bound[0]->place), "the length of arange");
    ir_graph_check_shape(front->job, front->graph, &shape, place);
    uint32_t id = ir_graph_add(front->job, front->graph, OP_IOTA, DTYPE_I64, place);
    front->graph->values.at[id].size = shape.extent[0];
    front->graph->values.at[id].shape = shape;
    return value_arg(id, place);
}

/* A size as an operand: within it / is exact, as in shapes, while x / y of two sizes is a true division elsewhere. */
static Arg call_size(Front *front, const Scope *scope, const Ast *call) {
    const Ast **bound = gen_bind(front, scope, call, arange_params, 1);
    Place place = gen_place(scope, call->place);
    if (!bound[0]) gen_refuse_missing(front, scope, call, "n");
    Arg arg = gen_build(front, scope, bound[0]);
    return (Arg){.kind = ARG_SIZE, .place = place, .size = gen_arg_size(front, &arg, place, "a size")};
}

static Arg call_reshape(Front *front, const Scope *scope, const Ast *call) {
    const Ast **bound = gen_bind(front, scope, call, reshape_params, 2);
    Place place = gen_place(scope, call->place);
    if (!bound[0]) gen_refuse_missing(front, scope, call, "x");
    if (!bound[1]) gen_refuse_missing(front, scope, call, "shape");
    uint32_t value = build_value(front, scope, bound[0]);
    Arg list = gen_build(front, scope, bound[1]);
    Place at = gen_place(scope, bound[1]->place);
    if (list.kind != ARG_LIST)
        ir_stop_at(front->job, STATUS_REJECTED, at, "a shape is one list of sizes, as in [B, C/G], found %s",
                   gen_arg_name(&list));
    if (list.count > IR_MAX_RANK)
        ir_stop_at(front->job, STATUS_REJECTED, at, "a tensor has at most %d dims, found %u", IR_MAX_RANK, list.count);
    Shape shape = {.rank = (uint8_t)list.count};
    for (uint32_t i = 0; i < list.count; i++) {
        if (list.item[i].kind == ARG_NUMBER && list.item[i].integer == -1)
            ir_stop_at(front->job, STATUS_REJECTED, list.item[i].place,
                       "-1 is not worked out from the other extents: write the size itself, as in M*N");
        shape.extent[i] = gen_arg_size(front, &list.item[i], list.item[i].place, "an extent");
    }
    return value_arg(ir_graph_reshape(front->job, front->graph, value, &shape, place), place);
}

static Arg call_numel(Front *front, const Scope *scope, const Ast *call) {
    const Ast **bound = gen_bind(front, scope, call, numel_params, 2);
    Place place = gen_place(scope, call->place);
    if (!bound[0]) gen_refuse_missing(front, scope, call, "x");
    const uint32_t of = build_value(front, scope, bound[0]); /* may move the values */
    Shape shape = front->graph->values.at[of].shape;
    uint32_t dims = build_dims(front, scope, call, bound[1], shape.rank);
    bool overflow = false;
    Poly count = ir_poly_int(front->job, 1);
    for (uint32_t i = 0; i < shape.rank; i++)
        if (dims >> i & 1) count = ir_poly_mul(front->job, count, shape.extent[i], &overflow);
    if (overflow || !ir_graph_size_fits(front->job, front->graph, count))
        ir_stop_at(front->job, STATUS_REJECTED, place, "a size must stay below 2^62, with at most 256 terms");
    return (Arg){.kind = ARG_SIZE, .place = place, .size = count};
}

/* ---- functions and composites ---- */

typedef struct Inline {
    Front *front;
    const Scope *scope;
    Arg result;
} Inline;

static void inline_work(Job *job, void *state) {
    (void)job;
    Inline *work = state;
    work->result = gen_build(work->front, work->scope, work->scope->function->body);
}

/* A chain of calls gets notes for the innermost few and for the outermost. */
static bool wants_note(Front *front, const Scope *scope) {
    uint32_t notes = 0, count = ir_diagnostic_count(front->job);
    while (notes < count && ir_diagnostic(front->job, count - 1 - notes)->severity == SEVERITY_NOTE) notes++;
    return notes < 4 || !scope->caller;
}

/* The body in the scope of its arguments; an error in it gets a note about the call. */
static Arg inline_body(Front *front, const Scope *scope) {
    Inline work = {.front = front, .scope = scope};
    uint32_t before = ir_error_count(front->job);
    Status status = ir_job_run(front->job, inline_work, &work);
    if (status == STATUS_OK) return work.result;
    if (status == STATUS_REJECTED && ir_error_count(front->job) > before && wants_note(front, scope)) {
        if (scope->function->line == IR_NONE)
            ir_note(front->job, scope->call, "in this call of %s", scope->function->name);
        else if (!scope->caller || scope->caller->function->line == IR_NONE)
            ir_note(front->job, scope->call, "%s", gen_composite_text(scope->function->line));
    }
    ir_stop(front->job, status);
}

static Arg call_function(Front *front, const Scope *scope, const Ast *call, const Function *function) {
    Scope inner = {.caller = scope, .function = function, .call = call->place, .depth = scope ? scope->depth + 1 : 1};
    for (const Scope *at = scope; at; at = at->caller)
        if (at->function == function)
            ir_stop_at(front->job, STATUS_REJECTED, call->place,
                       "%s calls itself: a function is a formula put in the place of its call, so it ends nowhere",
                       function->name);
    if (inner.depth > GEN_MAX_CALLS)
        ir_stop_at(front->job, STATUS_REJECTED, call->place, "functions call functions at most %d deep", GEN_MAX_CALLS);
    bool *given = IR_NEW_ARRAY(front->job, bool, function->count);
    inner.args = gen_bind_function(front, scope, call, function, given);
    return inline_body(front, &inner);
}

/* Among the lines of one name, the one whose string defaults are the arguments. */
static uint32_t select_line(Front *front, Call *call, Place place) {
    size_t count = strlen(call->callee);
    for (uint32_t line = call->line; line != IR_NONE; line = gen_composite_find(call->callee, count, line + 1)) {
        const Function *function = gen_composite(front, line);
        bool same = true;
        for (uint32_t i = 0; i < function->count; i++)
            if (function->defaults[i].kind == ARG_TEXT)
                same = same && call->args[i].kind == ARG_TEXT &&
                       strcmp(call->args[i].text, function->defaults[i].text) == 0;
        if (same) return line;
    }
    Text modes = ir_text(front->job);
    uint32_t mode = IR_NONE;
    for (uint32_t line = call->line; line != IR_NONE; line = gen_composite_find(call->callee, count, line + 1)) {
        const Function *function = gen_composite(front, line);
        for (uint32_t i = 0; i < function->count; i++) {
            if (function->defaults[i].kind != ARG_TEXT) continue;
            ir_text_format(&modes, "%s\"%s\"", modes.count ? " or " : "", function->defaults[i].text);
            mode = i;
        }
    }
    IR_REQUIRE(front->job, mode != IR_NONE);
    const Arg *given = &call->args[mode];
    ir_stop_at(front->job, STATUS_REJECTED, given->place.count ? given->place : place, "%s of %s is %s, found %s%s%s",
               call->params[mode], call->callee, ir_text_string(&modes),
               given->kind == ARG_TEXT ? "\"" : gen_arg_name(given), given->kind == ARG_TEXT ? given->text : "",
               given->kind == ARG_TEXT ? "\"" : "");
}

Arg gen_expand_call(Front *front, const Call *call, Place place) {
    Scope scope = {.function = gen_composite(front, call->line), .args = call->args, .call = place, .depth = 1};
    return inline_body(front, &scope);
}

/* The type of a composite is that of its formula, built in a graph that is thrown away. */
uint32_t gen_add_composite(Front *front, Call *call, Place place) {
    Front scratch = *front;
    scratch.expand = true;
    scratch.graph = ir_graph_create(front->job, front->graph->name);
    scratch.graph->dims = front->graph->dims;
    Call inner = *call;
    inner.args = IR_NEW_ARRAY(front->job, Arg, call->count);
    for (uint32_t i = 0; i < call->count; i++) {
        inner.args[i] = call->args[i];
        if (call->args[i].kind != ARG_VALUE) continue;
        const Value *value = &front->graph->values.at[call->args[i].value];
        uint32_t id = ir_graph_add(front->job, scratch.graph, OP_INPUT, value->dtype, value->place);
        scratch.graph->values.at[id].shape = value->shape;
        inner.args[i].value = id;
    }
    Arg result = gen_expand_call(&scratch, &inner, place);
    const uint32_t root = gen_arg_value(&scratch, &result, NULL, place); /* may move the values */
    const Value *value = &scratch.graph->values.at[root];
    front->steps = scratch.steps;
    front->composites = scratch.composites;
    uint32_t id = ir_graph_add(front->job, front->graph, OP_COMPOSITE, value->dtype, place);
    front->graph->values.at[id].shape = value->shape;
    front->graph->values.at[id].call = call;
    return id;
}

static Arg call_composite(Front *front, const Scope *scope, const Ast *ast, uint32_t line) {
    const Function *function = gen_composite(front, line);
    Place place = gen_place(scope, ast->place);
    Call *call = IR_NEW(front->job, Call);
    *call = (Call){.callee = function->name, .line = line, .count = function->count, .params = function->params};
    call->given = IR_NEW_ARRAY(front->job, bool, function->count);
    call->args = gen_bind_function(front, scope, ast, function, call->given);
    call->line = select_line(front, call, place);
    if (!front->expand) {
        PutCall *put = front->put_call ? front->put_call : gen_add_composite;
        return value_arg(put(front, call, place), place);
    }
    Scope inner = {.caller = scope, .function = gen_composite(front, call->line), .args = call->args, .call = place};
    return inline_body(front, &inner);
}

/* ---- which one ---- */

static _Noreturn void refuse_callee(Front *front, const Scope *scope, const Ast *call) {
    const char *advice = gen_advise_call(call->text);
    if (advice && !gen_name_find(front, call->text))
        gen_refuse(front, scope, call->place, "there is no %s: %s", call->text, advice);
    if (gen_name_find(front, call->text))
        gen_refuse(front, scope, call->place, "'%s' is no function: a product needs *, an index [ ]", call->text);
    IR_LIST(const char *) words = {0};
    for (uint32_t op = 0; op < OP_PRIMITIVES; op++) *IR_PUSH(front->job, &words) = ir_op((Op)op)->name;
    for (uint32_t i = 0; i < REDUCTION_COUNT; i++)
        if (*ir_reduction((Reduction)i)->language) *IR_PUSH(front->job, &words) = ir_reduction((Reduction)i)->language;
    for (uint32_t line = 0; line < gen_composite_count; line++)
        *IR_PUSH(front->job, &words) = gen_composite(front, line)->name;
    for (int i = 0; i < GEN_BUILTINS; i++) *IR_PUSH(front->job, &words) = gen_builtin_name((Builtin)i);
    const char *near = gen_name_hint(front, call->text, 1u << SYMBOL_FUNCTION, words.at, words.count);
    gen_refuse(front, scope, call->place, "unknown operation '%s'%s", call->text,
               *near ? near : ": 'normgen ops' lists them; one of your own stands under functions:");
}

Arg gen_build_call(Front *front, const Scope *scope, const Ast *ast) {
    static Arg (*const special[GEN_BUILTINS])(Front * front, const Scope *scope,
                                              const Ast *call) = {[BUILTIN_CAST] = call_cast,
                                                                  [BUILTIN_ARANGE] = call_arange,
                                                                  [BUILTIN_RESHAPE] = call_reshape,
                                                                  [BUILTIN_NUMEL] = call_numel,
                                                                  [BUILTIN_SIZE] = call_size};
    Builtin builtin;
    size_t count = strlen(ast->text);
    Op op;
    Reduction reduction;
    if (gen_builtin_find(ast->text, &builtin)) return special[builtin](front, scope, ast);
    if (ir_op_find(ast->text, count, &op)) return call_primitive(front, scope, ast, op);
    if (ir_reduction_find_language(ast->text, count, &reduction)) return call_reduction(front, scope, ast, reduction);
    uint32_t line = gen_composite_find(ast->text, count, 0);
    if (line != IR_NONE) return call_composite(front, scope, ast, line);
    const Symbol *symbol = gen_name_find(front, ast->text);
    if (symbol && symbol->kind == SYMBOL_FUNCTION)
        return call_function(front, scope, ast, &front->functions.at[symbol->index]);
    refuse_callee(front, scope, ast);
}
