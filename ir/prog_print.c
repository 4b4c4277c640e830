/* Prog -> text. In: any Prog whose references are in range (ir_verify may still refuse it). Out: the grammar of the
 * loop IR, one declaration or statement a line, in the order of the lists. Left alone: places and origins, which are
 * not text. ir_prog_read takes it back, so printing what was read gives the same bytes.
 *
 * What the text has beyond the grammar of the IR's description:
 *   - buf ... "of" (NAME | int) ["+" off]: the place of an in, out or scalar buf that is not simply the next tensor of
 *     its kind from its first element: the tensor of an earlier buf NAME of that kind, or the tensor of that index; and
 *     the elements from the tensor's pointer to the buf's. Without it the tensor is one more than the largest so far.
 *   - a dim whose name looks like a size or a part (s0, P1) is written "$s0".
 *   - a statement's name is its trailing comment, when that is one identifier (for const: the word after the decimal).
 *   - a dim of a known number prints as that number after its name, as in "dim N 768".
 * Values are numbered by their order among the values: store and partial_accumulate take no number. */
#include <string.h>

#include "ir/prog_scan.h"
#include "ir/prog_text.h"

const char *const ir_buf_kind_names[IR_BUF_KINDS] = {"in", "out", "tmp", "ws", "scalar"};

bool ir_buf_has_tensor(BufKind kind) { return kind == BUF_IN || kind == BUF_OUT || kind == BUF_SCALAR; }

bool ir_is_value(Op op) { return op != OP_STORE && op != OP_PARTIAL_ACCUMULATE; }

uint32_t ir_value_number(const Nest *nest, uint32_t stmt) {
    uint32_t number = 0;
    for (uint32_t i = 0; i < stmt; i++) number += ir_is_value(nest->stmts.at[i].op);
    return number;
}

bool ir_has_access(Op op) { return op == OP_LOAD || !ir_is_value(op); }

bool ir_looks_bound(const char *name, size_t count) {
    if (count < 2 || (name[0] != 's' && name[0] != 'P')) return false;
    for (size_t i = 1; i < count; i++)
        if (!ir_is_digit(name[i])) return false;
    return true;
}

static const char *dim_text(Job *job, const Dim *dim) {
    if (!ir_looks_bound(dim->name, strlen(dim->name))) return dim->name;
    return ir_format(job, "$%s", dim->name);
}

static void print_size(Text *text, const Prog *prog, Size size) {
    if (size.kind == SIZE_DIM)
        ir_text_put(text, dim_text(text->job, &prog->dims.at[size.value]));
    else
        ir_size_print(text, prog, size);
}

static void print_dims(Text *text, const Prog *prog) {
    for (uint32_t i = 0; i < prog->dims.count; i++) {
        const Dim *dim = &prog->dims.at[i];
        ir_text_format(text, "dim %s ", dim_text(text->job, dim));
        if (dim->value < 0)
            ir_text_put(text, "any");
        else
            ir_text_format(text, "%lld", (long long)dim->value);
        if (dim->hint >= 0) ir_text_format(text, " hint %lld", (long long)dim->hint);
        if (dim->max >= 0) ir_text_format(text, " max %lld", (long long)dim->max);
        if (dim->multiple != 1) ir_text_format(text, " multiple %lld", (long long)dim->multiple);
        ir_text_put(text, "\n");
    }
}

static void print_sizes(Text *text, const Prog *prog) {
    const char **names = IR_NEW_ARRAY(text->job, const char *, prog->dims.count);
    for (uint32_t i = 0; i < prog->dims.count; i++) names[i] = dim_text(text->job, &prog->dims.at[i]);
    for (uint32_t i = 0; i < prog->parts.count; i++) ir_text_format(text, "part %s\n", prog->parts.at[i]);
    for (uint32_t i = 0; i < prog->sizes.count; i++) {
        ir_text_format(text, "size s%u = ", i);
        ir_poly_print(text, prog->sizes.at[i], names, prog->dims.count);
        ir_text_put(text, "\n");
    }
}

uint32_t ir_next_tensor(const Prog *prog, BufKind kind, uint32_t buf) {
    uint32_t next = 0;
    for (uint32_t i = 0; i < buf; i++) {
        const Buf *other = &prog->bufs.at[i];
        if (other->kind == kind && other->tensor >= next) next = other->tensor + 1;
    }
    return next;
}

/* The "of" part of a buf, where there is one. */
static void print_place(Text *text, const Prog *prog, uint32_t index) {
    const Buf *buf = &prog->bufs.at[index];
    if (!ir_buf_has_tensor(buf->kind)) return;
    bool shifted = !ir_size_is(buf->offset, 0);
    if (!shifted && buf->tensor == ir_next_tensor(prog, buf->kind, index)) return;
    ir_text_put(text, " of ");
    uint32_t first = 0;
    while (first < index && (prog->bufs.at[first].kind != buf->kind || prog->bufs.at[first].tensor != buf->tensor))
        first++;
    if (first < index)
        ir_text_put(text, prog->bufs.at[first].name);
    else
        ir_text_format(text, "%u", buf->tensor);
    if (!shifted) return;
    ir_text_put(text, " + ");
    print_size(text, prog, buf->offset);
}

static void print_buf(Text *text, const Prog *prog, uint32_t index) {
    const Buf *buf = &prog->bufs.at[index];
    ir_text_format(text, "buf %s %s [", buf->name, ir_dtype(buf->dtype)->name);
    for (uint8_t d = 0; d < buf->rank; d++) {
        if (d) ir_text_put(text, ",");
        print_size(text, prog, buf->extent[d]);
    }
    ir_text_format(text, "] %s", ir_buf_kind_names[buf->kind]);
    if (buf->align) ir_text_format(text, " align %lld", (long long)buf->align);
    if (buf->may_alias != IR_NONE) ir_text_format(text, " may_alias %s", prog->bufs.at[buf->may_alias].name);
    print_place(text, prog, index);
    ir_text_put(text, "\n");
}

static void print_axes(Text *text, const Prog *prog, const Nest *nest) {
    ir_text_put(text, "(");
    for (uint32_t i = 0; i < nest->axis_count; i++) {
        if (i == nest->row_count)
            ir_text_put(text, i ? " | " : "| ");
        else if (i)
            ir_text_put(text, ", ");
        ir_text_format(text, "%c:", nest->axes[i].id);
        print_size(text, prog, nest->axes[i].extent);
    }
    if (nest->row_count == nest->axis_count) ir_text_put(text, nest->axis_count ? " |" : "|");
    ir_text_put(text, ")");
}

static void print_mask(Text *text, const Nest *nest, uint32_t mask) {
    for (uint32_t i = 0; i < nest->axis_count; i++)
        if (mask >> i & 1) ir_text_bytes(text, &nest->axes[i].id, 1);
}

static void print_access(Text *text, const Prog *prog, const Nest *nest, const Access *access, const uint32_t *number) {
    ir_text_format(text, "%s[", prog->bufs.at[access->buf].name);
    print_size(text, prog, access->offset);
    for (uint32_t i = 0; i < nest->axis_count; i++) {
        if (ir_size_is(access->stride[i], 0)) continue;
        ir_text_format(text, " + %c*", nest->axes[i].id);
        print_size(text, prog, access->stride[i]);
    }
    if (access->index != IR_NONE) {
        ir_text_format(text, " + %%%u", number[access->index]);
        if (!ir_size_is(access->index_extent, -1)) {
            ir_text_put(text, ":");
            print_size(text, prog, access->index_extent);
        }
        ir_text_put(text, "*");
        print_size(text, prog, access->index_stride);
    }
    ir_text_put(text, "]");
}

/* "const 0x3aaaaaab  # 0.00130208337": the bits are what counts, at the width of the dtype for floats. */
static void print_const(Text *text, const Stmt *stmt) {
    const DTypeRow *row = ir_dtype(stmt->dtype);
    if (row->kind != KIND_FLOAT) {
        ir_text_format(text, "const 0x%llx  # %lld", (unsigned long long)stmt->bits, (long long)stmt->bits);
        return;
    }
    ir_text_format(text, "const 0x%0*llx  # ", 2 * row->bytes, (unsigned long long)stmt->bits);
    uint8_t element[8];
    for (int i = 0; i < 8; i++) element[i] = (uint8_t)(stmt->bits >> (8 * i));
    double value = ir_load_float(stmt->dtype, element);
    if (stmt->dtype == DTYPE_F64)
        ir_text_double(text, value);
    else
        ir_text_float(text, (float)value);
}

static void print_args(Text *text, const Stmt *stmt, const uint32_t *number) {
    for (uint32_t i = 0; i < stmt->arg_count; i++) ir_text_format(text, " %%%u", number[stmt->arg[i]]);
}

static void print_reduction(Text *text, const Nest *nest, const Stmt *stmt) {
    ir_text_format(text, "%s {", ir_reduction(stmt->reduction)->name);
    print_mask(text, nest, stmt->consumed);
    ir_text_put(text, "}");
}

static void print_value(Text *text, const Prog *prog, const Nest *nest, const Stmt *stmt, const uint32_t *number) {
    switch (stmt->op) {
    case OP_LOAD:
        ir_text_put(text, "load ");
        print_access(text, prog, nest, &nest->accesses.at[stmt->access], number);
        break;
    case OP_CONST: print_const(text, stmt); break;
    case OP_SIZE:
        ir_text_put(text, "size ");
        print_size(text, prog, stmt->size);
        break;
    case OP_IOTA: ir_text_format(text, "iota %c", nest->axes[stmt->axis].id); break;
    case OP_REDUCE:
        ir_text_put(text, "reduce ");
        print_reduction(text, nest, stmt);
        print_args(text, stmt, number);
        if (ir_reduction(stmt->reduction)->results > 1) ir_text_format(text, " #%u", stmt->result);
        break;
    default: ir_text_put(text, ir_op_name(stmt->op)); print_args(text, stmt, number);
    }
}

static void print_stmt(Text *text, const Prog *prog, const Nest *nest, const Stmt *stmt, const uint32_t *number) {
    if (ir_is_value(stmt->op)) {
        ir_text_format(text, "  %%%u %s<", number[stmt - nest->stmts.at], ir_dtype(stmt->dtype)->name);
        print_mask(text, nest, stmt->domain);
        ir_text_put(text, "> = ");
        print_value(text, prog, nest, stmt, number);
    } else {
        ir_text_format(text, "  %s ", ir_op_name(stmt->op));
        if (stmt->op == OP_PARTIAL_ACCUMULATE) {
            print_reduction(text, nest, stmt);
            ir_text_put(text, " ");
        }
        print_access(text, prog, nest, &nest->accesses.at[stmt->access], number);
        print_args(text, stmt, number);
    }
    if (stmt->name) ir_text_format(text, stmt->op == OP_CONST ? " %s" : "  # %s", stmt->name);
    ir_text_put(text, "\n");
}

static void print_nest(Text *text, const Prog *prog, const Nest *nest) {
    ir_text_format(text, "nest %s ", nest->name);
    print_axes(text, prog, nest);
    ir_text_format(text, " %s {\n", ir_class_name(nest->class));
    uint32_t *number = IR_NEW_ARRAY(text->job, uint32_t, nest->stmts.count);
    uint32_t values = 0;
    for (uint32_t i = 0; i < nest->stmts.count; i++) number[i] = ir_is_value(nest->stmts.at[i].op) ? values++ : IR_NONE;
    for (uint32_t i = 0; i < nest->stmts.count; i++) print_stmt(text, prog, nest, &nest->stmts.at[i], number);
    ir_text_put(text, "}\n");
}

void ir_prog_print(Text *text, const Prog *prog) {
    ir_text_format(text, "prog %s\n", prog->name);
    print_dims(text, prog);
    print_sizes(text, prog);
    for (uint32_t i = 0; i < prog->bufs.count; i++) print_buf(text, prog, i);
    for (uint32_t i = 0; i < prog->nests.count; i++) print_nest(text, prog, &prog->nests.at[i]);
}
