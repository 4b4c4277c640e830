/* The lines of ir/composites.def, and functions made of a head and a body. */
#include <string.h>

#include "gen/front.h"

static const char *const lines[] = {
#define COMPOSITE(text) text,
#include "ir/composites.def"
#undef COMPOSITE
};
const uint32_t gen_composite_count = sizeof lines / sizeof *lines;

const char *gen_composite_text(uint32_t line) { return lines[line]; }

uint32_t gen_composite_find(const char *name, size_t count, uint32_t first) {
    for (uint32_t line = first; line < gen_composite_count; line++)
        if (strncmp(lines[line], name, count) == 0 && lines[line][count] == '(') return line;
    return IR_NONE;
}

static Arg constant_default(Front *front, const Ast *ast) {
    bool constant = ast->kind == AST_NUMBER || ast->kind == AST_NONE || ast->kind == AST_BOOL ||
                    ast->kind == AST_STRING || ast->kind == AST_LIST;
    if (ast->kind == AST_UNARY && ast->op == OP_NEG) constant = ast->item[0]->kind == AST_NUMBER;
    for (uint32_t i = 0; constant && ast->kind == AST_LIST && i < ast->count; i++)
        constant_default(front, ast->item[i]);
    if (!constant)
        ir_stop_at(front->job, STATUS_REJECTED, ast->place,
                   "a default is a number, a string, a list of these, True, False or None");
    return gen_build(front, NULL, ast);
}

Function gen_make_function(Front *front, const Ast *head, Ast *body, uint32_t line) {
    Job *job = front->job;
    Function function = {.name = head->text, .count = head->count, .body = body, .line = line};
    function.params = IR_NEW_ARRAY(job, const char *, head->count);
    function.defaults = IR_NEW_ARRAY(job, Arg, head->count);
    function.required = IR_NEW_ARRAY(job, bool, head->count);
    for (uint32_t i = 0; i < head->count; i++) {
        const Ast *item = head->item[i];
        function.required[i] = head->keywords[i] == NULL;
        if (function.required[i] && item->kind != AST_NAME)
            ir_stop_at(job, STATUS_REJECTED, item->place, "a parameter is NAME or NAME=DEFAULT");
        function.params[i] = function.required[i] ? item->text : head->keywords[i];
        if (!function.required[i]) function.defaults[i] = constant_default(front, item);
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(function.params[k], function.params[i]) == 0)
                ir_stop_at(job, STATUS_REJECTED, item->place, "'%s' is already a parameter", function.params[i]);
    }
    return function;
}

Function *gen_composite(Front *front, uint32_t line) {
    if (!front->composites) front->composites = IR_NEW_ARRAY(front->job, Function *, gen_composite_count);
    if (front->composites[line]) return front->composites[line];
    Ast *head, *body = gen_read_definition(front->job, lines[line], &head);
    Function *function = front->composites[line] = IR_NEW(front->job, Function);
    *function = gen_make_function(front, head, body, line);
    return function;
}
