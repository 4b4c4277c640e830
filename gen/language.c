/* In: the tables of operations, reductions and composites. Out: what people look up: each call with its signature, the
 * dtype that it gives, its formula, error and derivative. Nothing here is told twice: a new row of a table is listed.
 */
#include "gen/language.h"

#include <string.h>

#include "gen/front.h"

static const struct {
    const char *name, *signature, *what, *dtype, *error, *derivative;
} builtins[GEN_BUILTINS] = {
    {"cast", "cast(x, dtype)",
     "x rounded to a dtype; a float to an integer truncates and saturates, NaN to 0, an integer wraps", "the one named",
     "0.5 ulp of that dtype", "1, straight through the rounding; 0 to or from an integer"},
    {"arange", "arange(n)", "the indices 0 ... n - 1", "i64", "exact", ""},
    {"reshape", "reshape(x, shape)", "the same elements in row-major order under another shape, a list of sizes",
     "that of x", "exact", "1, in the shape of x"},
    {"numel", "numel(x, dim=None)", "how many elements a reduction along dim combines, as a size", "i64", "exact", ""},
    {"size", "size(n)", "a size as a value; within it / is exact, as in size(N/2)", "i64", "exact", ""},
};

bool gen_builtin_find(const char *name, Builtin *builtin) {
    for (int i = 0; i < GEN_BUILTINS; i++) {
        if (strcmp(builtins[i].name, name) != 0) continue;
        *builtin = (Builtin)i;
        return true;
    }
    return false;
}

const char *gen_builtin_name(Builtin builtin) { return builtins[builtin].name; }

bool gen_is_operation(const char *name) {
    Op op;
    Reduction reduction;
    Builtin builtin;
    const size_t count = strlen(name);
    return ir_op_find(name, count, &op) || ir_reduction_find_language(name, count, &reduction) ||
           gen_composite_find(name, count, 0) != IR_NONE || gen_builtin_find(name, &builtin);
}

/* ---- rows ---- */

static void put_error(Text *text, double ulps) {
    if (ulps == 0) {
        ir_text_put(text, "exact");
        return;
    }
    ir_text_double(text, ulps);
    ir_text_put(text, " ulp");
}

static void put_op(Text *text, const OpRow *row) {
    static const char *const dtypes[] = {
        "f64 where an operand is f64, f32 where one is another float, else i64",
        "f64 where an operand is f64, else f32",
        "bool",
        "bool, of bools",
        "bool",
        "that of x and other together: f64, f32, i64 or bool; the condition is bool",
    };
    static const char *const calls[] = {"", "x", "x, other", "condition, x, other"};
    ir_text_format(text, "%s\t%s\t", row->name, *row->symbol ? "operators" : "elementwise");
    if (*row->symbol && row->arity == 2) ir_text_format(text, "x %s other, ", row->symbol);
    if (*row->symbol && row->arity == 1) ir_text_format(text, "%sx, ", row->symbol);
    ir_text_format(text, "%s(%s)\t%s\t%s\t\t", row->name, calls[row->arity], row->what, dtypes[row->rule]);
    put_error(text, row->ulps);
    const char *const *d = row->derivative_text;
    if (strcmp(d[0], "0") == 0 && strcmp(d[1], "0") == 0)
        ir_text_put(text, "\t0: locally constant");
    else if (row->rule == RULE_WHERE)
        ir_text_format(text, "\tby x: %s; by other: %s, where a is the condition", d[1], d[2]);
    else if (row->arity == 1)
        ir_text_format(text, "\t%s, where a is x and y the result", d[0]);
    else
        ir_text_format(text, "\tby x: %s; by other: %s, where a is x, b other and y the result", d[0], d[1]);
    ir_text_format(text, "\t%s", row->cuda);
}

static void put_reduction(Text *text, const ReductionRow *row, bool logic) {
    ir_text_format(text, "%s\treductions\t%s(x, dim=None, keepdim=False)\t%s; None: of all dims\t%s", row->language,
                   row->language, row->what,
                   logic ? "bool, of bools" : "f64, f32 or i64, as x computes; bools count as i64");
    ir_text_put(text, "\t\t");
    put_error(text, row->ulps);
    ir_text_put(text, row->ulps == 0 ? "\t" : " a step\t");
    if (!*row->derivative)
        ir_text_put(text, "none");
    else if (strcmp(row->derivative, "1") == 0)
        ir_text_put(text, "1 by each element");
    else
        ir_text_format(text, "by each element: %s, where a is x and y the result, with its dims kept", row->derivative);
    ir_text_format(text, "\t%s", row->cuda);
}

/* "rms_norm(x, weight=None, eps required, dim=-1)": a parameter without a default behind one that has it is marked. */
static void put_signature(Text *text, const char *head, size_t count) {
    size_t at = strcspn(head, "(") + 1;
    bool optional = false;
    ir_text_bytes(text, head, at);
    while (at < count) {
        const size_t length = strcspn(head + at, ",)"), stop = at + length;
        const bool given = memchr(head + at, '=', length) != NULL;
        ir_text_bytes(text, head + at, length);
        if (optional && !given) ir_text_put(text, " required");
        optional = optional || given;
        ir_text_bytes(text, head + stop, head[stop] == ',' ? 2 : 1);
        at = stop + (head[stop] == ',' ? 2 : 1);
    }
}

static void put_composite(Text *text, uint32_t line) {
    const char *whole = gen_composite_text(line), *colon = strstr(whole, "): ");
    const size_t name = strcspn(whole, "("), head = colon ? (size_t)(colon - whole) + 1 : strlen(whole);
    ir_text_format(text, "%.*s\tcomposites\t", (int)name, whole);
    put_signature(text, whole, head);
    ir_text_format(text, "\t%s\tthat of its formula\t%s\tfollows from its formula", gen_composite_what(line),
                   colon ? colon + 3 : "");
    const char *derivative = gen_composite_derivative(line);
    ir_text_format(text,
                   *derivative ? "\t%s; where y is the result and d its gradient, with dims kept\t"
                               : "\tthat of its formula%s\t",
                   derivative);
}

bool gen_language_row(Text *text, uint32_t index) {
    for (uint32_t pass = 0; pass < 2; pass++) /* operators, then calls */
        for (uint32_t op = 0; op < OP_PRIMITIVES; op++) {
            if ((*ir_op((Op)op)->symbol == 0) != (pass == 1) || index-- > 0) continue;
            put_op(text, ir_op((Op)op));
            return true;
        }
    for (uint32_t i = 0; i < REDUCTION_COUNT; i++) {
        const ReductionRow *row = ir_reduction((Reduction)i);
        if (!*row->language || index-- > 0) continue;
        put_reduction(text, row, i == REDUCTION_ANY || i == REDUCTION_ALL);
        return true;
    }
    if (index < GEN_BUILTINS) {
        ir_text_format(text, "%s\tshapes, dtypes and indices\t%s\t%s\t%s\t\t%s\t%s\t", builtins[index].name,
                       builtins[index].signature, builtins[index].what, builtins[index].dtype, builtins[index].error,
                       builtins[index].derivative);
        return true;
    }
    index -= GEN_BUILTINS;
    if (index >= gen_composite_count) return false;
    put_composite(text, index);
    return true;
}

const char *gen_signature(Job *job, const char *name) {
    Text row = ir_text(job);
    for (uint32_t i = 0; gen_language_row(&row, i); i++, row.count = 0) {
        const char *line = ir_text_string(&row);
        const size_t count = strcspn(line, "\t");
        if (strlen(name) != count || memcmp(line, name, count) != 0) continue;
        line += count + 1;
        line += strcspn(line, "\t") + 1;
        return ir_copy_text(job, line, strcspn(line, "\t"));
    }
    return NULL;
}
