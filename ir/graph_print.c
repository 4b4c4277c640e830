/* In: a Graph after parse, expand or simplify. Out: a graph file that reads back to an equal Graph: every value is a
 * node of its own, but for constants that can stand inside the one expression that uses them. */
#include "ir/graph_file.h"

#include <math.h>
#include <string.h>

typedef struct Printer {
    GraphFile file;
    uint32_t *uses; /* of each value; outputs count */
    bool *inlined;  /* constants printed where they are used */
} Printer;

/* ---- constants ---- */

static double const_number(const Value *value) {
    double number;
    memcpy(&number, &value->bits, sizeof number);
    return number;
}

/* A constant on its own, or beside an operand of compute dtype `beside`, so that it reads back with its dtype: as a
 * bare number where that dtype is what a weak number takes there, else within a cast. */
static const char *const_string(const Printer *printer, const Value *value, const DType *beside) {
    Job *job = printer->file.job;
    Kind kind = ir_dtype(value->dtype)->kind;
    const char *dtype = ir_dtype(value->dtype)->name;
    bool beside_integer = beside && ir_dtype(*beside)->kind != KIND_FLOAT;
    if (kind == KIND_BOOL) return value->bits ? "True" : "False";
    if (kind == KIND_INT) {
        if ((int64_t)value->bits == INT64_MIN) return "cast(-inf, i64)"; /* its digits are too large */
        const char *digits = ir_format(job, "%lld", (long long)value->bits);
        return value->dtype == DTYPE_I64 && beside_integer ? digits : ir_format(job, "cast(%s, %s)", digits, dtype);
    }
    DType weak = beside && !beside_integer ? *beside : DTYPE_F32;
    const char *number = ir_file_number(&printer->file, value->dtype, const_number(value), beside_integer);
    return value->dtype == weak ? number : ir_format(job, "cast(%s, %s)", number, dtype);
}

/* What the weak operands of an op meet, as the front end decides it; false: nothing. */
static bool beside_dtype(const Printer *printer, const Value *user, DType *dtype) {
    bool found = false;
    OpRule rule = ir_op(user->op)->rule;
    for (uint32_t i = rule == RULE_WHERE ? 1 : 0; i < user->arg_count; i++) {
        if (printer->inlined[user->arg[i]]) continue;
        DType own = ir_compute_dtype(printer->file.graph->values.at[user->arg[i]].dtype);
        *dtype = found ? ir_promote(*dtype, own) : own;
        found = true;
    }
    return found && (rule != RULE_FLOAT || ir_dtype(*dtype)->kind == KIND_FLOAT);
}

static bool is_named_operand(const Printer *printer, const Value *user) {
    for (uint32_t i = 0; i < user->arg_count; i++)
        if (printer->file.graph->values.at[user->arg[i]].op != OP_CONST) return true;
    return false;
}

/* Constants right before their only user, in the order of its operands: reading makes them there again. */
static void choose_inlined(Printer *printer) {
    const Graph *graph = printer->file.graph;
    for (uint32_t id = 0; id < graph->values.count; id++) {
        const Value *user = &graph->values.at[id];
        if (user->op >= OP_PRIMITIVES || user->arg_count < 2 || !is_named_operand(printer, user)) continue;
        uint32_t next = id;
        for (uint32_t i = user->arg_count; i-- > 0;) {
            uint32_t arg = user->arg[i];
            const Value *value = &graph->values.at[arg];
            if (value->op != OP_CONST || printer->uses[arg] != 1 || arg + 1 != next || value->name) continue;
            printer->inlined[arg] = true;
            next = arg;
        }
    }
}

static const char *operand_string(const Printer *printer, const Value *user, uint32_t id, bool left_of_power) {
    const Value *value = &printer->file.graph->values.at[id];
    if (!printer->inlined[id]) return printer->file.names[id];
    DType beside;
    bool found = beside_dtype(printer, user, &beside);
    const char *string = const_string(printer, value, found ? &beside : NULL);
    return left_of_power && string[0] == '-' ? ir_format(printer->file.job, "(%s)", string) : string;
}

/* ---- composites ---- */

static void put_arg(const Printer *printer, Text *text, const Arg *arg);

static void put_arg_op(const Printer *printer, Text *text, const Arg *arg) {
    const OpRow *row = ir_op(arg->op);
    bool infix = *row->symbol && row->arity == 2;
    ir_text_put(text, infix ? "(" : *row->symbol ? row->symbol : ir_format(printer->file.job, "%s(", row->name));
    for (uint32_t i = 0; i < arg->count; i++) {
        if (i > 0) ir_text_put(text, infix ? ir_format(printer->file.job, " %s ", row->symbol) : ", ");
        bool brackets = infix && arg->item[i].kind == ARG_NUMBER && signbit(arg->item[i].number);
        ir_text_put(text, brackets || (!infix && *row->symbol) ? "(" : "");
        put_arg(printer, text, &arg->item[i]);
        ir_text_put(text, brackets || (!infix && *row->symbol) ? ")" : "");
    }
    ir_text_put(text, infix || !*row->symbol ? ")" : "");
}

static void put_arg(const Printer *printer, Text *text, const Arg *arg) {
    switch (arg->kind) {
    case ARG_NONE: ir_text_put(text, "None"); return;
    case ARG_VALUE: ir_text_put(text, printer->file.names[arg->value]); return;
    case ARG_NUMBER:
        if (arg->is_integer)
            ir_text_format(text, "%lld", (long long)arg->integer);
        else
            ir_text_put(text, ir_file_number(&printer->file, DTYPE_F64, arg->number, true));
        return;
    case ARG_SIZE: ir_text_format(text, "size(%s)", ir_file_size(&printer->file, arg->size)); return;
    case ARG_OP: put_arg_op(printer, text, arg); return;
    case ARG_BOOL: ir_text_put(text, arg->integer ? "True" : "False"); return;
    case ARG_TEXT: ir_text_format(text, "\"%s\"", arg->text); return;
    case ARG_LIST:
        ir_text_put(text, "[");
        for (uint32_t i = 0; i < arg->count; i++) {
            ir_text_put(text, i ? ", " : "");
            put_arg(printer, text, &arg->item[i]);
        }
        ir_text_put(text, "]");
    }
}

static void put_call(const Printer *printer, Text *text, const Call *call) {
    bool skipped = false, first = true;
    ir_text_format(text, "%s(", call->callee);
    for (uint32_t i = 0; i < call->count; i++) {
        bool positional = call->given[i] && !skipped && call->args[i].kind == ARG_VALUE;
        skipped = skipped || !positional;
        if (!call->given[i]) continue;
        ir_text_put(text, first ? "" : ", ");
        if (!positional) ir_text_format(text, "%s=", call->params[i]);
        put_arg(printer, text, &call->args[i]);
        first = false;
    }
    ir_text_put(text, ")");
}

/* ---- values ---- */

static void put_primitive(const Printer *printer, Text *text, const Value *value) {
    const OpRow *row = ir_op(value->op);
    const char *operand[3] = {NULL};
    bool infix = *row->symbol && row->arity == 2;
    for (uint32_t i = 0; i < value->arg_count; i++)
        operand[i] = operand_string(printer, value, value->arg[i], infix && value->op == OP_POW && i == 0);
    if (infix)
        ir_text_format(text, "%s %s %s", operand[0], row->symbol, operand[1]);
    else if (*row->symbol)
        ir_text_format(text, "%s%s", row->symbol, operand[0]);
    else {
        ir_text_format(text, "%s(", row->name);
        for (uint32_t i = 0; i < value->arg_count; i++) ir_text_format(text, "%s%s", i ? ", " : "", operand[i]);
        ir_text_put(text, ")");
    }
}

/* A size as a value; a quotient is exact within size() only. */
static void put_size(const Printer *printer, Text *text, Poly size) {
    bool derived = false;
    for (uint32_t i = 0; i < size.count; i++) derived = derived || size.terms[i].divisor != 1;
    for (uint32_t i = 0; i < size.count; i++)
        for (uint32_t k = 0; k < IR_MAX_DEGREE && size.terms[i].symbol[k] != IR_NO_SYMBOL; k++)
            derived = derived || printer->file.graph->dims.at[size.terms[i].symbol[k]].derived;
    bool number = size.count == 0 || ir_poly_is_int(size, &(int64_t){0});
    ir_text_format(text, derived || number ? "size(%s)" : "%s", ir_file_size(&printer->file, size));
}

static void put_index(const Printer *printer, Text *text, const Value *value) {
    const char *gathered = "";
    const Shape *from = &printer->file.graph->values.at[value->arg[0]].shape;
    for (uint32_t i = 0; i < value->item_count; i++)
        if (value->items[i].kind == ITEM_GATHER) gathered = printer->file.names[value->items[i].index];
    ir_text_format(text, "%s%s", printer->file.names[value->arg[0]],
                   ir_file_items(&printer->file, value->items, value->item_count, from, gathered));
}

static void put_expression(const Printer *printer, Text *text, const Value *value) {
    const char *const *names = printer->file.names;
    switch (value->op) {
    case OP_CONST: ir_text_put(text, const_string(printer, value, NULL)); return;
    case OP_SIZE: put_size(printer, text, value->size); return;
    case OP_IOTA: ir_text_format(text, "arange(%s)", ir_file_size(&printer->file, value->size)); return;
    case OP_CAST: ir_text_format(text, "cast(%s, %s)", names[value->arg[0]], ir_dtype(value->dtype)->name); return;
    case OP_REDUCE: ir_text_put(text, ir_file_reduce(&printer->file, value, names[value->arg[0]])); return;
    case OP_COMPOSITE: put_call(printer, text, value->call); return;
    case OP_RESHAPE:
        ir_text_format(text, "reshape(%s, %s)", names[value->arg[0]],
                       ir_file_sizes(&printer->file, value->shape.extent, value->shape.rank));
        return;
    case OP_INDEX: put_index(printer, text, value); return;
    default: put_primitive(printer, text, value);
    }
}

static void count_uses(Printer *printer) {
    const Graph *graph = printer->file.graph;
    uint32_t *operands;
    for (uint32_t id = 0; id < graph->values.count; id++)
        for (uint32_t i = ir_file_operands(&printer->file, id, &operands); i-- > 0;) printer->uses[operands[i]]++;
    for (uint32_t i = 0; i < graph->outputs.count; i++) printer->uses[graph->outputs.at[i].value]++;
}

/* ---- the file ---- */

/* The nodes and the outputs. */
static void put_nodes(const Printer *printer) {
    FileLines lines = {0};
    const GraphFile *file = &printer->file;
    for (uint32_t id = 0; id < file->graph->values.count; id++) {
        const Value *value = &file->graph->values.at[id];
        if (value->op == OP_INPUT || value->op == OP_SCALAR || printer->inlined[id]) continue;
        Text expression = ir_text(file->job), line = ir_file_key(file, file->names[id]);
        put_expression(printer, &expression, value);
        ir_file_scalar(&line, ir_text_string(&expression), false);
        ir_file_add(file, &lines, &line, NULL);
    }
    const char **stored = ir_file_stored(file, &lines);
    ir_file_section(file, "nodes", &lines);
    ir_file_outputs(file, stored);
}

void ir_graph_print(Text *text, const Graph *graph) {
    Job *job = text->job;
    Printer printer = {.file = ir_file(text, graph, NULL, false)};
    printer.uses = IR_NEW_ARRAY(job, uint32_t, graph->values.count);
    printer.inlined = IR_NEW_ARRAY(job, bool, graph->values.count);
    count_uses(&printer);
    choose_inlined(&printer);
    ir_file_name(&printer.file, printer.inlined, 0);
    ir_file_head(&printer.file);
    put_nodes(&printer);
}

/* ---- equality of calls ---- */

static bool same_arg(const Arg *a, const Arg *b) {
    if (a->kind != b->kind) return false;
    switch (a->kind) {
    case ARG_NONE: return true;
    case ARG_VALUE: return a->value == b->value;
    case ARG_NUMBER:
        return a->is_integer == b->is_integer && a->integer == b->integer &&
               !memcmp(&a->number, &b->number, sizeof a->number);
    case ARG_SIZE: return ir_poly_equal(a->size, b->size);
    case ARG_BOOL: return a->integer == b->integer;
    case ARG_TEXT: return strcmp(a->text, b->text) == 0;
    case ARG_OP:
    case ARG_LIST: break;
    }
    if (a->op != b->op || a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (!same_arg(&a->item[i], &b->item[i])) return false;
    return true;
}

bool ir_call_equal(const Call *a, const Call *b) {
    if (a->line != b->line || a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (!same_arg(&a->args[i], &b->args[i])) return false;
    return true;
}
