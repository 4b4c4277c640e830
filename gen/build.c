/* In: an Ast and the scope that its names are in. Out: an operand; values are added to front->graph as they are met,
 * from the left. Calls are call.c's. */
#include <string.h>

#include "gen/advice.h"
#include "gen/front.h"
#include "gen/language.h"
#include "ir/weak.h"

Place gen_place(const Scope *scope, Place place) {
    for (const Scope *at = scope; at; at = at->caller)
        if (at->function->line != IR_NONE) place = at->call;
    return place;
}

static bool in_composite(const Scope *scope) { return scope && scope->function->line != IR_NONE; }

static const char *advise_call(const Front *front, const char *name) {
    return gen_is_operation(name) ? ir_format(front->job, "; '%s' is an operation: write %s(...)", name, name) : NULL;
}

static _Noreturn void refuse_name(Front *front, const Scope *scope, const char *name, Place place) {
    const char *const *params = scope ? scope->function->params : NULL;
    uint32_t kinds = 1u << SYMBOL_DIM | 1u << SYMBOL_SCALAR;
    if (!scope) kinds |= 1u << SYMBOL_INPUT | 1u << SYMBOL_NODE;
    const char *advice = advise_call(front, name), *other = gen_advise_name(name);
    if (!advice && other) advice = ir_format(front->job, ": %s", other);
    if (!advice) advice = gen_name_hint(front, name, kinds, params, params ? scope->function->count : 0);
    if (!*advice)
        advice = scope ? ": a function sees its parameters, dims and scalars"
                       : ": no input, scalar, dim or node of the graph has it";
    gen_refuse(front, scope, place, "unknown name '%s'%s", name, advice);
}

static Arg build_symbol(Front *front, const Scope *scope, const Ast *ast, Symbol *symbol) {
    Arg arg = {.kind = ARG_VALUE, .place = ast->place};
    bool tensor = symbol->kind == SYMBOL_INPUT || symbol->kind == SYMBOL_NODE;
    if (scope && tensor)
        ir_stop_at(front->job, STATUS_REJECTED, ast->place,
                   "a function sees its parameters, dims and scalars only: pass '%s' to it", ast->text);
    symbol->used = true;
    switch (symbol->kind) {
    case SYMBOL_DIM:
        arg.kind = ARG_SIZE;
        arg.size = ir_poly_symbol(front->job, symbol->index);
        return arg;
    case SYMBOL_INPUT: arg.value = symbol->index; return arg; /* inputs are the first values, scalars the next */
    case SYMBOL_SCALAR: arg.value = front->graph->inputs.count + symbol->index; return arg;
    case SYMBOL_NODE: arg.value = front->nodes.at[symbol->index].value; return arg;
    case SYMBOL_TYPE:
        ir_stop_at(front->job, STATUS_REJECTED, ast->place, "'%s' is a type: it stands in cast(x, %s) only", ast->text,
                   ast->text);
    case SYMBOL_FUNCTION: break;
    }
    ir_stop_at(front->job, STATUS_REJECTED, ast->place, "'%s' is a function: write %s(...)", ast->text, ast->text);
}

static Arg build_name(Front *front, const Scope *scope, const Ast *ast) {
    for (uint32_t i = 0; scope && i < scope->function->count; i++)
        if (strcmp(scope->function->params[i], ast->text) == 0) return scope->args[i];
    Symbol *symbol = in_composite(scope) ? NULL : gen_name_find(front, ast->text);
    if (symbol) return build_symbol(front, scope, ast, symbol);
    refuse_name(front, scope, ast->text, ast->place);
}

static Arg build_chain(Front *front, const Scope *scope, const Ast *ast) {
    Arg pair[2];
    pair[0] = gen_build(front, scope, ast->item[0]);
    for (uint32_t i = 1; i < ast->count; i++) {
        pair[1] = gen_build(front, scope, ast->item[i]);
        pair[0] = gen_apply(front, ast->ops[i], pair, 2, gen_place(scope, ast->op_places[i]), in_composite(scope));
    }
    return pair[0];
}

static Arg build_list(Front *front, const Scope *scope, const Ast *ast) {
    Arg *items = IR_NEW_ARRAY(front->job, Arg, ast->count);
    for (uint32_t i = 0; i < ast->count; i++) items[i] = gen_build(front, scope, ast->item[i]);
    return (Arg){.kind = ARG_LIST, .place = gen_place(scope, ast->place), .count = ast->count, .item = items};
}

/* ---- indexing ---- */

/* A bound of a slice, or an index; a negative one counts from the end: a number, or a size such as -N/2. */
static Poly build_bound(Front *front, const Arg *arg, Poly extent, Place place) {
    bool overflow = false;
    Poly bound = gen_arg_size(front, arg, place, "an index");
    bool negative = bound.count > 0;
    for (uint32_t t = 0; t < bound.count; t++) negative = negative && bound.terms[t].coefficient < 0;
    return negative ? ir_poly_add(front->job, bound, extent, &overflow) : bound;
}

static Item build_range(Front *front, const Scope *scope, const Ast *ast, Poly extent) {
    Item item = {.kind = ITEM_RANGE, .stop = extent};
    Place place = gen_place(scope, ast->place);
    Arg bound;
    if (ast->item[0]) {
        bound = gen_build(front, scope, ast->item[0]);
        item.start = build_bound(front, &bound, extent, place);
    }
    if (ast->item[1]) {
        bound = gen_build(front, scope, ast->item[1]);
        item.stop = build_bound(front, &bound, extent, place);
    }
    return item;
}

static Item build_item(Front *front, const Scope *scope, const Ast *ast, Poly extent) {
    if (ast->kind == AST_RANGE) return build_range(front, scope, ast, extent);
    Place place = gen_place(scope, ast->place);
    Arg arg = gen_build(front, scope, ast);
    if (ir_arg_is_weak(&arg)) return (Item){.kind = ITEM_AT, .start = build_bound(front, &arg, extent, place)};
    if (arg.kind == ARG_VALUE) return (Item){.kind = ITEM_GATHER, .index = arg.value};
    ir_stop_at(front->job, STATUS_REJECTED, place,
               "an index is a size, a slice start:stop, None, ... or an integer tensor");
}

static bool is_new_axis(const Scope *scope, const Ast *ast) {
    if (ast->kind == AST_NONE) return true;
    for (uint32_t i = 0; ast->kind == AST_NAME && scope && i < scope->function->count; i++)
        if (strcmp(scope->function->params[i], ast->text) == 0) return scope->args[i].kind == ARG_NONE;
    return false;
}

Item *gen_build_items(Front *front, const Scope *scope, const Ast *index, const Shape *from, uint32_t *count) {
    uint32_t reads = 0, dots = 0, dim = 0;
    Place place = gen_place(scope, index->place);
    for (uint32_t i = 1; i < index->count; i++) {
        bool ellipsis = index->item[i]->kind == AST_ELLIPSIS;
        dots += ellipsis;
        reads += !ellipsis && !is_new_axis(scope, index->item[i]);
    }
    if (index->count == 1) ir_stop_at(front->job, STATUS_REJECTED, place, "an index needs at least one item");
    if (dots > 1) ir_stop_at(front->job, STATUS_REJECTED, place, "an index has at most one ...");
    if (reads > from->rank)
        ir_stop_at(front->job, STATUS_REJECTED, place, "%u %s for a tensor of %u %s: None makes a dim, ... leaves dims",
                   reads, reads == 1 ? "index" : "indices", from->rank, from->rank == 1 ? "dim" : "dims");
    Item *items = IR_NEW_ARRAY(front->job, Item, index->count + from->rank);
    *count = 0;
    for (uint32_t i = 1; i < index->count; i++) {
        const Ast *ast = index->item[i];
        if (is_new_axis(scope, ast))
            items[(*count)++] = (Item){.kind = ITEM_NEW_AXIS};
        else if (ast->kind != AST_ELLIPSIS)
            items[(*count)++] = build_item(front, scope, ast, from->extent[dim]), dim++;
        else
            for (uint32_t left = from->rank - reads; left > 0; left--)
                items[(*count)++] = (Item){.kind = ITEM_RANGE, .stop = from->extent[dim++]};
    }
    while (dim < from->rank) items[(*count)++] = (Item){.kind = ITEM_RANGE, .stop = from->extent[dim++]};
    return items;
}

static Arg build_index(Front *front, const Scope *scope, const Ast *ast) {
    Place place = gen_place(scope, ast->place);
    Arg base = gen_build(front, scope, ast->item[0]);
    uint32_t value = gen_arg_value(front, &base, NULL, place), count;
    Shape from = front->graph->values.at[value].shape;
    const Item *items = gen_build_items(front, scope, ast, &from, &count);
    return (Arg){.kind = ARG_VALUE,
                 .place = place,
                 .value = ir_graph_index(front->job, front->graph, value, items, count, place)};
}

static Arg build_kind(Front *front, const Scope *scope, const Ast *ast, Place place) {
    switch (ast->kind) {
    case AST_NUMBER:
        return (Arg){.kind = ARG_NUMBER,
                     .place = place,
                     .is_integer = ast->is_integer,
                     .number = ast->number,
                     .integer = ast->integer};
    case AST_NAME: return build_name(front, scope, ast);
    case AST_STRING: return (Arg){.kind = ARG_TEXT, .place = place, .text = ast->text};
    case AST_NONE: return (Arg){.kind = ARG_NONE, .place = place};
    case AST_BOOL: return (Arg){.kind = ARG_BOOL, .place = place, .integer = ast->integer};
    case AST_LIST: return build_list(front, scope, ast);
    case AST_UNARY: {
        Arg arg = gen_build(front, scope, ast->item[0]);
        return gen_apply(front, ast->op, &arg, 1, place, in_composite(scope));
    }
    case AST_CHAIN: return build_chain(front, scope, ast);
    case AST_CALL: return gen_build_call(front, scope, ast);
    case AST_INDEX: return build_index(front, scope, ast);
    case AST_RANGE:
    case AST_ELLIPSIS: break;
    }
    ir_stop_at(front->job, STATUS_REJECTED, place, "expected a value");
}

Arg gen_build(Front *front, const Scope *scope, const Ast *ast) {
    Place place = gen_place(scope, ast->place);
    if (++front->steps > GEN_MAX_STEPS)
        ir_stop_at(front->job, STATUS_REJECTED, place, "the graph is too large: its functions expand without end");
    if (++front->depth > GEN_MAX_DEPTH)
        ir_stop_at(front->job, STATUS_REJECTED, place, "expressions and the functions in them nest too deep");
    Arg arg = build_kind(front, scope, ast, place);
    front->depth--;
    return arg;
}
