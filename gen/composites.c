/* The lines of ir/composites.def, and functions made of a head and a body. */
#include <string.h>

#include "gen/front.h"

static const struct {
    const char *text, *what, *derivative;
    uint32_t row; /* line of the file */
} lines[] = {
#define COMPOSITE(text, what, derivative) {text, what, derivative, __LINE__},
#include "ir/composites.def"
#undef COMPOSITE
};
const uint32_t gen_composite_count = sizeof lines / sizeof *lines;

const char *gen_composite_text(uint32_t line) { return lines[line].text; }
const char *gen_composite_derivative(uint32_t line) { return lines[line].derivative; }
const char *gen_composite_what(uint32_t line) { return lines[line].what; }

uint32_t gen_composite_find(const char *name, size_t count, uint32_t first) {
    for (uint32_t line = first; line < gen_composite_count; line++)
        if (strncmp(lines[line].text, name, count) == 0 && lines[line].text[count] == '(') return line;
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

/* Columns of the file: the text stands behind COMPOSITE(", and each of its quotes behind a backslash. */
_Noreturn static void refuse_row(Job *job, const char *text, uint32_t row, Place place, const char *why) {
    uint32_t column = 12;
    for (uint32_t i = 0; i < place.start && text[i]; i++) column += text[i] == '"' ? 2 : 1;
    IR_BREACH(job, "ir/composites.def:%u:%u: %s", row, column, why);
}

_Noreturn void gen_refuse(Front *front, const Scope *scope, Place place, const char *format, ...) {
    va_list args;
    va_start(args, format);
    Text why = ir_text(front->job);
    ir_text_vformat(&why, format, args);
    va_end(args);
    const char *text = ir_text_string(&why);
    uint32_t line = scope ? scope->function->line : IR_NONE;
    if (line != IR_NONE) refuse_row(front->job, lines[line].text, lines[line].row, place, text);
    ir_stop_at(front->job, STATUS_REJECTED, place, "%s", text);
}

typedef struct Reading {
    Front *front;
    const char *text;
    uint32_t line;
    Function function;
} Reading;

static void read_line(Job *job, void *state) {
    Reading *reading = state;
    Ast *head, *body = gen_read_definition(job, reading->text, &head);
    if (head->kind != AST_CALL) ir_stop_at(job, STATUS_REJECTED, head->place, "expected NAME(parameters): expression");
    reading->function = gen_make_function(reading->front, head, body, reading->line);
}

Function gen_read_composite(Front *front, const char *text, uint32_t line, uint32_t row) {
    Reading reading = {.front = front, .text = text, .line = line};
    const uint32_t before = ir_diagnostic_count(front->job);
    Status status = ir_job_run(front->job, read_line, &reading);
    if (status == STATUS_OK) return reading.function;
    if (status != STATUS_REJECTED || ir_diagnostic_count(front->job) == before) ir_stop(front->job, status);
    const Diagnostic error = *ir_diagnostic(front->job, before);
    ir_drop_diagnostics(front->job, before); /* its place is in the table, not in the graph */
    refuse_row(front->job, text, row, error.place, error.text);
}

Function *gen_composite(Front *front, uint32_t line) {
    if (!front->composites) front->composites = IR_NEW_ARRAY(front->job, Function *, gen_composite_count);
    if (front->composites[line]) return front->composites[line];
    Function *function = front->composites[line] = IR_NEW(front->job, Function);
    *function = gen_read_composite(front, lines[line].text, line, lines[line].row);
    return function;
}
