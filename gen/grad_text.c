/* Derivatives that the tables give in the graph language (ir/ops.def, ir/reductions.def, ir/composites.def). In: a text
 * and what its names stand for. Out: values of the joint graph. A text that cannot be read is a breach: the tables are
 * part of the program. */
#include "gen/grad_build.h"

#include <string.h>

void gen_grad_bind(Joint *joint, Bindings *bindings, const char *name, Arg arg) {
    if (bindings->count == bindings->capacity) {
        const uint32_t capacity = bindings->capacity ? 2 * bindings->capacity : 8;
        const char **names = IR_NEW_ARRAY(joint->job, const char *, capacity);
        Arg *args = IR_NEW_ARRAY(joint->job, Arg, capacity);
        if (bindings->count) {
            memcpy(names, bindings->names, bindings->count * sizeof *names);
            memcpy(args, bindings->args, bindings->count * sizeof *args);
        }
        bindings->names = names;
        bindings->args = args;
        bindings->capacity = capacity;
    }
    bindings->names[bindings->count] = name;
    bindings->args[bindings->count++] = arg;
}

Arg gen_grad_value_arg(uint32_t value) { return (Arg){.kind = ARG_VALUE, .value = value}; }

typedef struct Reading {
    const char *text;
    Ast *ast;
} Reading;

static void read_text(Job *job, void *state) {
    Reading *reading = state;
    Ast *head;
    reading->ast = gen_read_definition(job, ir_format(job, "f(): %s", reading->text), &head);
}

static Ast *read(Joint *joint, const char *text) {
    Reading reading = {.text = text};
    if (ir_job_run(joint->job, read_text, &reading)) IR_BREACH(joint->job, "a derivative cannot be read: %s", text);
    return reading.ast;
}

/* Values made from a text have no place in the graph file of their own: theirs is that of the op or the call. */
static void place_from(Joint *joint, uint32_t first) {
    for (uint32_t i = first; i < joint->graph->values.count; i++) joint->graph->values.at[i].place = joint->place;
}

typedef struct Building {
    Joint *joint;
    const Scope *scope;
} Building;

static Arg build(const Building *building, const Ast *ast) {
    return gen_build(&building->joint->front, building->scope, ast);
}

static uint32_t as_value(const Building *building, const Arg *arg) {
    return gen_arg_value(&building->joint->front, arg, NULL, building->joint->place);
}

static uint32_t apply(const Building *building, Op op, const Arg *args, uint32_t count) {
    const Arg result = gen_apply(&building->joint->front, op, args, count, building->joint->place, true);
    return as_value(building, &result);
}

static bool is_number(const Ast *ast, double number) { return ast->kind == AST_NUMBER && ast->number == number; }

static uint32_t scale(const Building *building, uint32_t gradient, const Ast *factor);

/* where(c, a, b): the gradient goes one way or the other, so that what is not finite on one does not reach it. */
static uint32_t scale_where(const Building *building, uint32_t gradient, const Ast *call) {
    const Arg zero = {.kind = ARG_NUMBER, .is_integer = true};
    Arg args[3] = {build(building, call->item[0])};
    for (uint32_t i = 1; i < 3; i++) {
        const uint32_t way = scale(building, gradient, call->item[i]);
        args[i] = way == IR_NONE ? zero : gen_grad_value_arg(way);
    }
    if (args[1].kind == ARG_NUMBER && args[2].kind == ARG_NUMBER) return IR_NONE;
    return apply(building, OP_WHERE, args, 3);
}

static uint32_t scale(const Building *building, uint32_t gradient, const Ast *factor) {
    Arg args[2] = {gen_grad_value_arg(gradient)};
    if (is_number(factor, 0)) return IR_NONE;
    if (is_number(factor, 1)) return gradient;
    if (factor->kind == AST_UNARY && factor->op == OP_NEG && is_number(factor->item[0], 1))
        return apply(building, OP_NEG, args, 1);
    if (factor->kind == AST_CALL && !strcmp(factor->text, "where")) return scale_where(building, gradient, factor);
    const bool over = factor->kind == AST_CHAIN && factor->count == 2 && factor->ops[1] == OP_DIV;
    if (over && is_number(factor->item[0], 1)) {
        args[1] = build(building, factor->item[1]);
        return apply(building, OP_DIV, args, 2);
    }
    args[1] = build(building, factor);
    return apply(building, OP_MUL, args, 2);
}

/* Of the tables, as composites are: names of the file mean nothing in it. */
static Function function_of(const Bindings *bindings) {
    return (Function){
        .name = "derivative", .params = bindings->names, .count = bindings->count, .line = gen_composite_count};
}

Arg gen_grad_build(Joint *joint, const char *text, const Bindings *bindings) {
    const uint32_t first = joint->graph->values.count;
    const Function function = function_of(bindings);
    const Scope scope = {.function = &function, .args = bindings->args, .call = joint->place, .depth = 1};
    joint->front.depth = 0;
    const Arg arg = gen_build(&joint->front, &scope, read(joint, text));
    place_from(joint, first);
    return arg;
}

uint32_t gen_grad_scale(Joint *joint, uint32_t gradient, const char *factor, const Bindings *bindings) {
    const uint32_t first = joint->graph->values.count;
    const Function function = function_of(bindings);
    const Scope scope = {.function = &function, .args = bindings->args, .call = joint->place, .depth = 1};
    const Building building = {joint, &scope};
    joint->front.depth = 0;
    const uint32_t result = scale(&building, gradient, read(joint, factor));
    place_from(joint, first);
    return result;
}
