/* In: a Graph after parse, expand or simplify. Out: a graph file that reads back to an equal Graph: every value is a
 * node of its own, but for constants that can stand inside the one expression that uses them. */
#include "ir/graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Printer {
    Job *job;
    Text *text;
    const Graph *graph;
    const char **dims;  /* derived ones in brackets, so that they read back as themselves */
    const char **names; /* of each value */
    uint32_t *uses;     /* of each value; outputs count */
    bool *inlined;      /* constants printed where they are used */
} Printer;

/* ---- YAML ---- */

/* Words that YAML 1.1 or 1.2 would take for a bool or null, in any of their spellings. */
static bool is_resolved(const char *word) {
    static const char *const words[] = {"y", "n", "yes", "no", "true", "false", "on", "off", "null"};
    char lower[8] = {0};
    size_t count = strlen(word);
    if (count >= sizeof lower) return false;
    for (size_t i = 0; i < count; i++) lower[i] = (char)(word[i] >= 'A' && word[i] <= 'Z' ? word[i] + 32 : word[i]);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(lower, words[i]) == 0) return true;
    return strcmp(word, "~") == 0;
}

/* A name, or the text of an expression, as a scalar; flow: within { }. */
static void put_scalar(Text *out, const char *text, bool flow) {
    bool quote = is_resolved(text) || strstr(text, ": ") || strstr(text, " #") || strchr("[{*&!|>'\"%@`?,#", text[0]);
    quote = quote || (text[0] == '-' && text[1] == ' ') || (flow && strpbrk(text, "[]{},:\"'"));
    const char *mark = !quote ? "" : strchr(text, '"') ? "'" : "\"";
    ir_text_format(out, "%s%s%s", mark, text, mark);
}

/* ---- pieces of expressions ---- */

static const char *poly_string(const Printer *printer, Poly poly) {
    Text text = ir_text(printer->job);
    ir_poly_print(&text, poly, printer->dims, printer->graph->dims.count);
    return ir_text_string(&text);
}

static double const_number(const Value *value) {
    double number;
    memcpy(&number, &value->bits, sizeof number);
    return number;
}

/* The number of a float, with enough digits for its dtype; point: as a number that is no integer. */
static const char *number_string(Job *job, DType dtype, double number, bool point) {
    Text text = ir_text(job);
    double back;
    if (dtype == DTYPE_F64)
        ir_text_double(&text, number);
    else
        ir_text_float(&text, (float)number);
    const char *string = ir_text_string(&text);
    if (isfinite(number) && (!ir_read_double(job, string, strlen(string), &back) || ir_round(dtype, back) != number)) {
        text = ir_text(job);
        ir_text_double(&text, number);
        string = ir_text_string(&text);
    }
    bool bare = !strpbrk(string, ".einf");
    return bare && (point || (number == 0 && signbit(number))) ? ir_format(job, "%s.0", string) : string;
}

/* A constant on its own, or beside an operand of compute dtype `beside`, so that it reads back with its dtype: as a
 * bare number where that dtype is what a weak number takes there, else within a cast. */
static const char *const_string(const Printer *printer, const Value *value, const DType *beside) {
    Job *job = printer->job;
    Kind kind = ir_dtype(value->dtype)->kind;
    const char *dtype = ir_dtype(value->dtype)->name;
    bool beside_integer = beside && ir_dtype(*beside)->kind != KIND_FLOAT;
    if (kind == KIND_BOOL) return value->bits ? "True" : "False";
    if (kind == KIND_INT) {
        const char *digits = ir_format(job, "%lld", (long long)value->bits);
        return value->dtype == DTYPE_I64 && beside_integer ? digits : ir_format(job, "cast(%s, %s)", digits, dtype);
    }
    DType weak = beside && !beside_integer ? *beside : DTYPE_F32;
    const char *number = number_string(job, value->dtype, const_number(value), beside_integer);
    return value->dtype == weak ? number : ir_format(job, "cast(%s, %s)", number, dtype);
}

/* What the weak operands of an op meet, as the front end decides it; false: nothing. */
static bool beside_dtype(const Printer *printer, const Value *user, DType *dtype) {
    bool found = false;
    OpRule rule = ir_op(user->op)->rule;
    for (uint32_t i = rule == RULE_WHERE ? 1 : 0; i < user->arg_count; i++) {
        if (printer->inlined[user->arg[i]]) continue;
        DType own = ir_compute_dtype(printer->graph->values.at[user->arg[i]].dtype);
        *dtype = found ? ir_promote(*dtype, own) : own;
        found = true;
    }
    return found && (rule != RULE_FLOAT || ir_dtype(*dtype)->kind == KIND_FLOAT);
}

static bool is_named_operand(const Printer *printer, const Value *user) {
    for (uint32_t i = 0; i < user->arg_count; i++)
        if (printer->graph->values.at[user->arg[i]].op != OP_CONST) return true;
    return false;
}

/* Constants right before their only user, in the order of its operands: reading makes them there again. */
static void choose_inlined(Printer *printer) {
    const Graph *graph = printer->graph;
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
    const Value *value = &printer->graph->values.at[id];
    if (!printer->inlined[id]) return printer->names[id];
    DType beside;
    bool found = beside_dtype(printer, user, &beside);
    const char *string = const_string(printer, value, found ? &beside : NULL);
    return left_of_power && string[0] == '-' ? ir_format(printer->job, "(%s)", string) : string;
}

static const char *item_string(const Printer *printer, const Item *item, Poly extent) {
    int64_t start;
    switch (item->kind) {
    case ITEM_NEW_AXIS: return "None";
    case ITEM_GATHER: return printer->names[item->index];
    case ITEM_AT: return poly_string(printer, item->start);
    case ITEM_RANGE: break;
    }
    const char *from = ir_poly_is_int(item->start, &start) && start == 0 ? "" : poly_string(printer, item->start);
    const char *to = ir_poly_equal(item->stop, extent) ? "" : poly_string(printer, item->stop);
    return ir_format(printer->job, "%s:%s", from, to);
}

static void put_items(const Printer *printer, Text *text, const Item *items, uint32_t count, const Shape *from) {
    Poly none = {0};
    uint32_t dim = 0;
    ir_text_put(text, "[");
    for (uint32_t i = 0; i < count; i++) {
        bool reads = items[i].kind != ITEM_NEW_AXIS;
        ir_text_format(text, "%s%s", i ? ", " : "", item_string(printer, &items[i], reads ? from->extent[dim] : none));
        dim += reads;
    }
    ir_text_put(text, "]");
}

static void put_sizes(const Printer *printer, Text *text, const Poly *sizes, uint32_t count) {
    ir_text_put(text, "[");
    for (uint32_t i = 0; i < count; i++) ir_text_format(text, "%s%s", i ? ", " : "", poly_string(printer, sizes[i]));
    ir_text_put(text, "]");
}

/* ---- composites ---- */

static void put_arg(const Printer *printer, Text *text, const Arg *arg);

static void put_arg_op(const Printer *printer, Text *text, const Arg *arg) {
    const OpRow *row = ir_op(arg->op);
    bool infix = *row->symbol && row->arity == 2;
    ir_text_put(text, infix ? "(" : *row->symbol ? row->symbol : ir_format(printer->job, "%s(", row->name));
    for (uint32_t i = 0; i < arg->count; i++) {
        if (i > 0) ir_text_put(text, infix ? ir_format(printer->job, " %s ", row->symbol) : ", ");
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
    case ARG_VALUE: ir_text_put(text, printer->names[arg->value]); return;
    case ARG_NUMBER:
        if (arg->is_integer)
            ir_text_format(text, "%lld", (long long)arg->integer);
        else
            ir_text_put(text, number_string(printer->job, DTYPE_F64, arg->number, true));
        return;
    case ARG_SIZE: ir_text_format(text, "size(%s)", poly_string(printer, arg->size)); return;
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

static void put_reduce(const Printer *printer, Text *text, const Value *value) {
    uint32_t rank = printer->graph->values.at[value->arg[0]].shape.rank, count = 0;
    ir_text_format(text, "%s(%s", ir_reduction(value->reduction)->language, printer->names[value->arg[0]]);
    if (rank > 0 && value->dims != (1u << rank) - 1) {
        Text list = ir_text(printer->job);
        for (uint32_t i = 0; i < rank; i++)
            if (value->dims >> i & 1) ir_text_format(&list, "%s%u", count++ ? ", " : "", i);
        ir_text_format(text, count == 1 ? ", dim=%s" : ", dim=[%s]", ir_text_string(&list));
    }
    ir_text_put(text, value->keepdim ? ", keepdim=True)" : ")");
}

/* A size as a value; a quotient is exact within size() only. */
static void put_size(const Printer *printer, Text *text, Poly size) {
    bool derived = false;
    for (uint32_t i = 0; i < size.count; i++) derived = derived || size.terms[i].divisor != 1;
    for (uint32_t i = 0; i < size.count; i++)
        for (uint32_t k = 0; k < IR_MAX_DEGREE && size.terms[i].symbol[k] != IR_NO_SYMBOL; k++)
            derived = derived || printer->graph->dims.at[size.terms[i].symbol[k]].derived;
    bool number = size.count == 0 || ir_poly_is_int(size, &(int64_t){0});
    ir_text_format(text, derived || number ? "size(%s)" : "%s", poly_string(printer, size));
}

static void put_expression(const Printer *printer, Text *text, const Value *value) {
    const char *const *names = printer->names;
    switch (value->op) {
    case OP_CONST: ir_text_put(text, const_string(printer, value, NULL)); return;
    case OP_SIZE: put_size(printer, text, value->size); return;
    case OP_IOTA: ir_text_format(text, "arange(%s)", poly_string(printer, value->size)); return;
    case OP_CAST: ir_text_format(text, "cast(%s, %s)", names[value->arg[0]], ir_dtype(value->dtype)->name); return;
    case OP_REDUCE: put_reduce(printer, text, value); return;
    case OP_COMPOSITE: put_call(printer, text, value->call); return;
    case OP_RESHAPE:
        ir_text_format(text, "reshape(%s, ", names[value->arg[0]]);
        put_sizes(printer, text, value->shape.extent, value->shape.rank);
        ir_text_put(text, ")");
        return;
    case OP_INDEX:
        ir_text_put(text, names[value->arg[0]]);
        put_items(printer, text, value->items, value->item_count, &printer->graph->values.at[value->arg[0]].shape);
        return;
    default: put_primitive(printer, text, value);
    }
}

static void count_uses(Printer *printer) {
    const Graph *graph = printer->graph;
    for (uint32_t id = 0; id < graph->values.count; id++) {
        const Value *value = &graph->values.at[id];
        for (uint32_t i = 0; i < value->arg_count; i++) printer->uses[value->arg[i]]++;
        for (uint32_t i = 0; value->op == OP_INDEX && i < value->item_count; i++)
            if (value->items[i].kind == ITEM_GATHER) printer->uses[value->items[i].index]++;
        for (uint32_t i = 0; value->op == OP_COMPOSITE && i < value->call->count; i++)
            if (value->call->args[i].kind == ARG_VALUE) printer->uses[value->call->args[i].value]++;
    }
    for (uint32_t i = 0; i < graph->outputs.count; i++) printer->uses[graph->outputs.at[i].value]++;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Every value's name: the graph's own, or tN, so that no two names of the file are equal. */
static void choose_names(Printer *printer) {
    const Graph *graph = printer->graph;
    uint32_t count = 0, total = graph->values.count + graph->dims.count + graph->outputs.count;
    const char **taken = IR_NEW_ARRAY(printer->job, const char *, total + 1);
    for (uint32_t i = 0; i < graph->dims.count; i++) taken[count++] = graph->dims.at[i].name;
    for (uint32_t i = 0; i < graph->outputs.count; i++) taken[count++] = graph->outputs.at[i].name;
    for (uint32_t i = 0; i < graph->values.count; i++)
        if (graph->values.at[i].name) taken[count++] = graph->values.at[i].name;
    qsort(taken, count, sizeof *taken, compare_names);
    uint32_t next = 0;
    for (uint32_t i = 0; i < graph->values.count; i++) {
        const char *name = graph->values.at[i].name;
        while (!name && !printer->inlined[i]) {
            name = ir_format(printer->job, "t%u", next++);
            if (bsearch(&name, taken, count, sizeof *taken, compare_names)) name = NULL;
        }
        printer->names[i] = name;
    }
}

/* ---- sections ---- */

static void put_key(const Printer *printer, const char *name) {
    ir_text_put(printer->text, "  ");
    put_scalar(printer->text, name, false);
    ir_text_put(printer->text, ": ");
}

static void put_dims(const Printer *printer) {
    bool any = false;
    for (uint32_t i = 0; i < printer->graph->dims.count; i++) {
        const Dim *dim = &printer->graph->dims.at[i];
        if (dim->derived) continue;
        if (!any) ir_text_put(printer->text, "dims:\n");
        any = true;
        put_key(printer, dim->name);
        const char *comma = "{";
        if (dim->value >= 0) ir_text_format(printer->text, "%lld", (long long)dim->value);
        if (dim->value < 0 && dim->hint < 0 && dim->max < 0 && dim->multiple == 1) ir_text_put(printer->text, "any");
        const struct {
            const char *key;
            int64_t value, none;
        } fields[] = {{"hint", dim->hint, -1}, {"max", dim->max, -1}, {"multiple", dim->multiple, 1}};
        for (size_t k = 0; dim->value < 0 && k < 3; k++) {
            if (fields[k].value == fields[k].none) continue;
            ir_text_format(printer->text, "%s%s: %lld", comma, fields[k].key, (long long)fields[k].value);
            comma = ", ";
        }
        ir_text_put(printer->text, *comma == ',' ? "}\n" : "\n");
    }
}

static void put_field(const Printer *printer, const char *key, const char *value) {
    ir_text_format(printer->text, ", %s: ", key);
    put_scalar(printer->text, value, true);
}

static const char *sizes_string(const Printer *printer, const Poly *sizes, uint32_t count) {
    Text text = ir_text(printer->job);
    put_sizes(printer, &text, sizes, count);
    return ir_text_string(&text);
}

static void put_layout(const Printer *printer, const Tensor *tensor) {
    if (!tensor->contiguous) put_field(printer, "strides", sizes_string(printer, tensor->stride, tensor->shape.rank));
    if (tensor->align) put_field(printer, "align", ir_format(printer->job, "%lld", (long long)tensor->align));
}

static void put_inputs(const Printer *printer) {
    if (printer->graph->inputs.count) ir_text_put(printer->text, "inputs:\n");
    for (uint32_t i = 0; i < printer->graph->inputs.count; i++) {
        const Tensor *tensor = &printer->graph->inputs.at[i];
        const char *dtype = ir_dtype(tensor->dtype)->name;
        const char *shape = sizes_string(printer, tensor->shape.extent, tensor->shape.rank);
        put_key(printer, tensor->name);
        if (tensor->contiguous && !tensor->align) {
            ir_text_format(printer->text, "%s%s\n", dtype, shape);
            continue;
        }
        ir_text_format(printer->text, "{dtype: %s", dtype);
        put_field(printer, "shape", shape);
        put_layout(printer, tensor);
        ir_text_put(printer->text, "}\n");
    }
}

static void put_scalars(const Printer *printer) {
    if (printer->graph->scalars.count) ir_text_put(printer->text, "scalars:\n");
    for (uint32_t i = 0; i < printer->graph->scalars.count; i++) {
        const Tensor *tensor = &printer->graph->scalars.at[i];
        Kind kind = ir_dtype(tensor->dtype)->kind;
        put_key(printer, tensor->name);
        ir_text_format(printer->text, "{dtype: %s", ir_dtype(tensor->dtype)->name);
        if (tensor->has_default)
            put_field(printer, "default",
                      kind == KIND_FLOAT  ? number_string(printer->job, tensor->dtype, tensor->default_float, false)
                      : kind == KIND_BOOL ? tensor->default_int ? "True" : "False"
                                          : ir_format(printer->job, "%lld", (long long)tensor->default_int));
        ir_text_put(printer->text, "}\n");
    }
}

static void put_nodes(const Printer *printer) {
    bool any = false;
    for (uint32_t id = 0; id < printer->graph->values.count; id++) {
        const Value *value = &printer->graph->values.at[id];
        if (value->op == OP_INPUT || value->op == OP_SCALAR || printer->inlined[id]) continue;
        if (!any) ir_text_put(printer->text, "nodes:\n");
        any = true;
        Text expression = ir_text(printer->job);
        put_expression(printer, &expression, value);
        put_key(printer, printer->names[id]);
        put_scalar(printer->text, ir_text_string(&expression), false);
        ir_text_put(printer->text, "\n");
    }
}

static void put_outputs(const Printer *printer) {
    if (printer->graph->outputs.count) ir_text_put(printer->text, "outputs:\n");
    for (uint32_t i = 0; i < printer->graph->outputs.count; i++) {
        const Tensor *tensor = &printer->graph->outputs.at[i];
        const char *of = printer->names[tensor->value], *dtype = ir_dtype(tensor->dtype)->name;
        bool same = strcmp(of, tensor->name) == 0;
        put_key(printer, tensor->name);
        if (same && tensor->contiguous && !tensor->align && tensor->inplace == IR_NONE && !tensor->accumulate) {
            ir_text_format(printer->text, "%s\n", dtype);
            continue;
        }
        ir_text_format(printer->text, "{dtype: %s", dtype);
        if (!same) put_field(printer, "of", of);
        put_layout(printer, tensor);
        if (tensor->inplace != IR_NONE) {
            const Tensor *input = &printer->graph->inputs.at[tensor->inplace];
            Text slice = ir_text(printer->job);
            ir_text_put(&slice, input->name);
            if (tensor->inplace_items)
                put_items(printer, &slice, tensor->inplace_items, tensor->inplace_item_count, &input->shape);
            put_field(printer, "inplace", ir_text_string(&slice));
        }
        if (tensor->accumulate) put_field(printer, "accumulate", "True");
        ir_text_put(printer->text, "}\n");
    }
}

void ir_graph_print(Text *text, const Graph *graph) {
    Job *job = text->job;
    Printer printer = {.job = job, .text = text, .graph = graph, .dims = ir_graph_dim_names(job, graph)};
    for (uint32_t i = 0; i < graph->dims.count; i++)
        if (graph->dims.at[i].derived) printer.dims[i] = ir_format(job, "(%s)", graph->dims.at[i].name);
    printer.names = IR_NEW_ARRAY(job, const char *, graph->values.count);
    printer.uses = IR_NEW_ARRAY(job, uint32_t, graph->values.count);
    printer.inlined = IR_NEW_ARRAY(job, bool, graph->values.count);
    count_uses(&printer);
    choose_inlined(&printer);
    choose_names(&printer);
    ir_text_put(text, "graph: ");
    put_scalar(text, graph->name, false);
    ir_text_put(text, "\n");
    put_dims(&printer);
    put_inputs(&printer);
    put_scalars(&printer);
    put_nodes(&printer);
    put_outputs(&printer);
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
