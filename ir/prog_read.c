/* Text -> Prog. In: a dump as ir_prog_print writes it (ir/prog_print.c says what it has beyond the IR's grammar), one
 * declaration or statement a line, blank and comment lines between. Out: a Prog of which every reference is in range;
 * whether it is a legal program is for ir_verify to say, so domains and dtypes are taken as written and a use may stand
 * before its definition. Bad text is reported at its place and stops the job: after the first error little that follows
 * would mean anything. Places are those of this text; origins are not text. */
#include <string.h>

#include "ir/prog_scan.h"
#include "ir/prog_text.h"

/* A reference to a value by number, or to a buf by name, looked up when all that it may mean was read. */
typedef struct Use {
    uint32_t stmt, slot; /* slot USE_INDEX: the index of its access */
    uint32_t number;
    Place place;
} Use;
#define USE_INDEX 3

typedef struct Alias {
    uint32_t buf;
    const char *name;
    Place place;
} Alias;

typedef struct Reader {
    Job *job;
    Scan scan;
    Prog *prog;
    Nest *nest; /* being read */
    IR_LIST(Alias) aliases;
    IR_LIST(Use) uses;        /* of this nest */
    IR_LIST(uint32_t) values; /* of this nest: statement of value number k */
} Reader;

/* Sizes ---------------------------------------------------------------------------------------------------------- */

/* The K of sK or PK, below count; IR_NONE where the word is anything else. */
static uint32_t bound_index(const Reader *reader, Place word, char letter, uint32_t count) {
    const char *name = reader->scan.bytes + word.start;
    int64_t value;
    if (!ir_looks_bound(name, word.count) || name[0] != letter) return IR_NONE;
    if (!ir_read_int(name + 1, word.count - 1, &value) || value < 0 || value >= count) return IR_NONE;
    return (uint32_t)value;
}

static uint32_t find_dim(const Reader *reader, Place word) {
    for (uint32_t i = 0; i < reader->prog->dims.count; i++)
        if (ir_scan_is(&reader->scan, word, reader->prog->dims.at[i].name)) return i;
    return IR_NONE;
}

/* A dim, size or part that was declared before. */
static Size read_symbol(Reader *reader) {
    bool escaped = ir_scan_accept(&reader->scan, '$');
    Place word = ir_scan_word(&reader->scan, "a number, a dim, a size or a part");
    uint32_t index;
    if (!escaped) {
        if ((index = bound_index(reader, word, 's', reader->prog->sizes.count)) != IR_NONE)
            return (Size){SIZE_EXPRESSION, index};
        if ((index = bound_index(reader, word, 'P', reader->prog->parts.count)) != IR_NONE)
            return (Size){SIZE_PART, index};
        if (ir_looks_bound(reader->scan.bytes + word.start, word.count))
            ir_stop_at(reader->job, STATUS_REJECTED, word, "no size or part '%s' was declared before",
                       ir_scan_text(&reader->scan, word));
    }
    if ((index = find_dim(reader, word)) == IR_NONE)
        ir_stop_at(reader->job, STATUS_REJECTED, word, "no dim '%s' was declared before",
                   ir_scan_text(&reader->scan, word));
    return (Size){SIZE_DIM, index};
}

static Size read_size(Reader *reader) {
    if (ir_scan_at_number(&reader->scan)) return ir_size_int(ir_scan_int(&reader->scan, "a number", INT64_MIN));
    return read_symbol(reader);
}

static Poly read_factor(Reader *reader) {
    if (ir_scan_at_number(&reader->scan))
        return ir_poly_int(reader->job, ir_scan_int(&reader->scan, "a number", INT64_MIN));
    Size size = read_symbol(reader);
    if (size.kind == SIZE_EXPRESSION) ir_scan_fail(&reader->scan, "dims and parts in a size");
    return ir_poly_symbol(reader->job, (uint32_t)size.value + (size.kind == SIZE_PART ? IR_POLY_PART : 0));
}

/* What stands before the `/`, over the number behind it. */
static Poly read_divisor(Reader *reader, Poly above, bool *overflow) {
    if (!ir_scan_accept(&reader->scan, '/')) return above;
    return ir_poly_over(reader->job, above, ir_scan_int(&reader->scan, "a positive number", 1), overflow);
}

static Poly read_sum(Reader *reader, size_t start) {
    Job *job = reader->job;
    bool overflow = false;
    Poly sum = ir_poly_int(job, 0);
    bool negative = false;
    for (;;) {
        Poly term = ir_poly_int(job, 1);
        if (ir_scan_accept(&reader->scan, '-')) negative = !negative;
        do term = ir_poly_mul(job, term, read_factor(reader), &overflow);
        while (ir_scan_accept(&reader->scan, '*'));
        term = read_divisor(reader, term, &overflow);
        sum = negative ? ir_poly_sub(job, sum, term, &overflow) : ir_poly_add(job, sum, term, &overflow);
        if (overflow)
            ir_stop_at(job, STATUS_REJECTED, ir_scan_place(&reader->scan, start), "the polynomial is too large");
        if (ir_scan_accept(&reader->scan, '+'))
            negative = false;
        else if (ir_scan_accept(&reader->scan, '-'))
            negative = true;
        else
            return sum;
    }
}

static Poly read_poly(Reader *reader) {
    size_t start = reader->scan.at;
    bool overflow = false;
    if (!ir_scan_accept(&reader->scan, '(')) return read_sum(reader, start);
    Poly sum = read_sum(reader, start);
    ir_scan_expect(&reader->scan, ')');
    sum = read_divisor(reader, sum, &overflow);
    if (overflow)
        ir_stop_at(reader->job, STATUS_REJECTED, ir_scan_place(&reader->scan, start), "the polynomial is too large");
    return sum;
}

/* Declarations --------------------------------------------------------------------------------------------------- */

static void read_dim(Reader *reader) {
    ir_scan_accept(&reader->scan, '$');
    Place word = ir_scan_word(&reader->scan, "the name of a dim");
    if (find_dim(reader, word) != IR_NONE)
        ir_stop_at(reader->job, STATUS_REJECTED, word, "dim '%s' is there twice", ir_scan_text(&reader->scan, word));
    Dim dim = {
        .name = ir_scan_text(&reader->scan, word), .value = -1, .hint = -1, .max = -1, .multiple = 1, .place = word};
    if (!ir_scan_accept_word(&reader->scan, "any")) {
        if (!ir_scan_at_number(&reader->scan)) ir_scan_fail(&reader->scan, "'any' or a number");
        dim.value = ir_scan_int(&reader->scan, "a number that is not negative", 0);
    }
    if (ir_scan_accept_word(&reader->scan, "hint"))
        dim.hint = ir_scan_int(&reader->scan, "a number that is not negative", 0);
    if (ir_scan_accept_word(&reader->scan, "max"))
        dim.max = ir_scan_int(&reader->scan, "a number that is not negative", 0);
    if (ir_scan_accept_word(&reader->scan, "multiple"))
        dim.multiple = ir_scan_int(&reader->scan, "a positive number", 1);
    if (reader->prog->dims.count >= IR_POLY_PART) ir_scan_fail(&reader->scan, "fewer dims");
    *IR_PUSH(reader->job, &reader->prog->dims) = dim;
}

/* sK or PK with the K that is next. */
static const char *read_bound(Reader *reader, char letter, uint32_t next) {
    const char *name = ir_format(reader->job, "%c%u", letter, next);
    Place word = ir_scan_word(&reader->scan, ir_format(reader->job, "'%s'", name));
    if (next >= IR_POLY_PART || !ir_scan_is(&reader->scan, word, name))
        ir_scan_fail_at(&reader->scan, word, ir_format(reader->job, "'%s', the next one", name));
    return name;
}

static void read_size_line(Reader *reader) {
    read_bound(reader, 's', reader->prog->sizes.count);
    ir_scan_expect(&reader->scan, '=');
    Poly poly = read_poly(reader);
    *IR_PUSH(reader->job, &reader->prog->sizes) = poly;
}

static void read_part(Reader *reader) {
    const char *name = read_bound(reader, 'P', reader->prog->parts.count);
    *IR_PUSH(reader->job, &reader->prog->parts) = name;
}

static uint32_t find_buf(const Reader *reader, Place word) {
    for (uint32_t i = 0; i < reader->prog->bufs.count; i++)
        if (ir_scan_is(&reader->scan, word, reader->prog->bufs.at[i].name)) return i;
    return IR_NONE;
}

static DType read_dtype(Reader *reader) {
    Place word = ir_scan_word(&reader->scan, "a dtype");
    DType dtype;
    if (!ir_dtype_find(reader->scan.bytes + word.start, word.count, &dtype))
        ir_scan_fail_at(&reader->scan, word, "a dtype");
    return dtype;
}

static BufKind read_buf_kind(Reader *reader) {
    Place word = ir_scan_next_word(&reader->scan);
    for (int kind = 0; kind < IR_BUF_KINDS; kind++)
        if (ir_scan_is(&reader->scan, word, ir_buf_kind_names[kind])) return (BufKind)kind;
    ir_scan_fail_at(&reader->scan, word, "in, out, tmp, ws or scalar");
}

/* Which tensor, and where in it; for a buf that is not in the list yet. */
static void read_place(Reader *reader, Buf *buf) {
    buf->tensor = IR_NONE;
    buf->offset = ir_size_int(0);
    size_t before = reader->scan.at;
    bool said = ir_scan_accept_word(&reader->scan, "of");
    if (!ir_buf_has_tensor(buf->kind)) {
        reader->scan.at = before;
        return;
    }
    buf->tensor = ir_next_tensor(reader->prog, buf->kind, reader->prog->bufs.count);
    if (!said) return;
    if (ir_scan_at_number(&reader->scan)) {
        buf->tensor = (uint32_t)ir_scan_int(&reader->scan, "the index of a tensor", 0);
        if (buf->tensor >= IR_POLY_PART) ir_scan_fail(&reader->scan, "a smaller index of a tensor before this");
    } else {
        Place word =
            ir_scan_word(&reader->scan, "a buf of this kind that was declared before, or the index of a tensor");
        uint32_t other = find_buf(reader, word);
        if (other == IR_NONE || reader->prog->bufs.at[other].kind != buf->kind)
            ir_scan_fail_at(&reader->scan, word, "a buf of this kind that was declared before");
        buf->tensor = reader->prog->bufs.at[other].tensor;
    }
    if (ir_scan_accept(&reader->scan, '+')) buf->offset = read_size(reader);
}

static void read_buf(Reader *reader) {
    Place word = ir_scan_word(&reader->scan, "the name of a buf");
    if (find_buf(reader, word) != IR_NONE)
        ir_stop_at(reader->job, STATUS_REJECTED, word, "buf '%s' is there twice", ir_scan_text(&reader->scan, word));
    Buf buf = {.name = ir_scan_text(&reader->scan, word), .may_alias = IR_NONE};
    buf.dtype = read_dtype(reader);
    ir_scan_expect(&reader->scan, '[');
    while (!ir_scan_accept(&reader->scan, ']')) {
        if (buf.rank) ir_scan_expect(&reader->scan, ',');
        if (buf.rank == IR_MAX_RANK) ir_scan_fail(&reader->scan, "at most 6 extents");
        buf.extent[buf.rank] = read_size(reader);
        buf.rank++;
    }
    buf.kind = read_buf_kind(reader);
    if (ir_scan_accept_word(&reader->scan, "align"))
        buf.align = ir_scan_int(&reader->scan, "a positive number of bytes", 1);
    if (ir_scan_accept_word(&reader->scan, "may_alias")) {
        Place other = ir_scan_word(&reader->scan, "the name of a buf");
        *IR_PUSH(reader->job, &reader->aliases) =
            (Alias){reader->prog->bufs.count, ir_scan_text(&reader->scan, other), other};
    }
    read_place(reader, &buf);
    *IR_PUSH(reader->job, &reader->prog->bufs) = buf;
}

static void resolve_aliases(Reader *reader) {
    for (uint32_t i = 0; i < reader->aliases.count; i++) {
        const Alias *alias = &reader->aliases.at[i];
        uint32_t other = find_buf(reader, alias->place);
        if (other == IR_NONE)
            ir_stop_at(reader->job, STATUS_REJECTED, alias->place, "there is no buf '%s'", alias->name);
        reader->prog->bufs.at[alias->buf].may_alias = other;
    }
}

/* Statements ----------------------------------------------------------------------------------------------------- */

static uint32_t read_axis(Reader *reader) {
    ir_scan_spaces(&reader->scan);
    uint32_t axis =
        ir_is_lower(ir_scan_peek(&reader->scan)) ? ir_nest_axis(reader->nest, ir_scan_peek(&reader->scan)) : IR_NONE;
    if (axis == IR_NONE) ir_scan_fail(&reader->scan, "an axis of the nest");
    reader->scan.at++;
    return axis;
}

/* Letters of axes up to the closing character. */
static uint32_t read_mask(Reader *reader, char close) {
    uint32_t mask = 0;
    while (!ir_scan_accept(&reader->scan, close)) {
        uint32_t axis = read_axis(reader);
        if (mask >> axis & 1) {
            reader->scan.at--;
            ir_scan_fail(&reader->scan, "each axis once");
        }
        mask |= 1u << axis;
    }
    return mask;
}

static uint32_t read_number(Reader *reader) {
    int64_t number =
        ir_is_digit(ir_scan_peek(&reader->scan)) ? ir_scan_int(&reader->scan, "the number of a value", 0) : -1;
    if (number < 0 || number > UINT32_MAX / 2) ir_scan_fail(&reader->scan, "the number of a value");
    return (uint32_t)number;
}

/* "%"k in an operand's place, to be looked up at the end of the nest. */
static void read_use(Reader *reader, uint32_t slot) {
    ir_scan_spaces(&reader->scan);
    size_t start = reader->scan.at;
    if (!ir_scan_accept(&reader->scan, '%')) ir_scan_fail(&reader->scan, "an operand such as %0");
    uint32_t number = read_number(reader);
    *IR_PUSH(reader->job, &reader->uses) =
        (Use){reader->nest->stmts.count, slot, number, ir_scan_place(&reader->scan, start)};
}

static uint32_t read_access(Reader *reader) {
    Access access = {.index = IR_NONE, .index_extent = ir_size_int(-1)};
    Place word = ir_scan_word(&reader->scan, "the name of a buf");
    access.buf = find_buf(reader, word);
    if (access.buf == IR_NONE)
        ir_stop_at(reader->job, STATUS_REJECTED, word, "no buf '%s' was declared before",
                   ir_scan_text(&reader->scan, word));
    ir_scan_expect(&reader->scan, '[');
    access.offset = read_size(reader);
    uint32_t seen = 0;
    bool gathered = false;
    while (!ir_scan_accept(&reader->scan, ']')) {
        ir_scan_expect(&reader->scan, '+');
        ir_scan_spaces(&reader->scan);
        if (ir_scan_peek(&reader->scan) == '%') {
            if (gathered) ir_scan_fail(&reader->scan, "at most one gathered term");
            read_use(reader, USE_INDEX);
            if (ir_scan_accept(&reader->scan, ':')) access.index_extent = read_size(reader);
            ir_scan_expect(&reader->scan, '*');
            access.index_stride = read_size(reader);
            gathered = true;
            continue;
        }
        uint32_t axis = read_axis(reader);
        if (seen >> axis & 1) {
            reader->scan.at--;
            ir_scan_fail(&reader->scan, "each axis once");
        }
        seen |= 1u << axis;
        ir_scan_expect(&reader->scan, '*');
        access.stride[axis] = read_size(reader);
    }
    *IR_PUSH(reader->job, &reader->nest->accesses) = access;
    return reader->nest->accesses.count - 1;
}

static uint64_t read_bits(Reader *reader, DType dtype) {
    ir_scan_spaces(&reader->scan);
    size_t start = reader->scan.at;
    uint64_t bits = 0;
    if (ir_scan_accept(&reader->scan, '0') && ir_scan_peek(&reader->scan) == 'x') {
        reader->scan.at++;
        size_t first = reader->scan.at;
        for (;; reader->scan.at++) {
            char c = ir_scan_peek(&reader->scan);
            if (!ir_is_digit(c) && !(c >= 'a' && c <= 'f')) break;
            bits = bits << 4 | (uint64_t)(ir_is_digit(c) ? c - '0' : c - 'a' + 10);
        }
        size_t digits = reader->scan.at - first;
        const DTypeRow *row = ir_dtype(dtype);
        unsigned width = row->kind == KIND_FLOAT ? 8u * row->bytes : row->kind == KIND_BOOL ? 1u : 64u;
        if (digits > 16 || (width < 64 && bits >> width))
            ir_stop_at(reader->job, STATUS_REJECTED, ir_scan_place(&reader->scan, start),
                       "expected at most %u bits for %s", width, row->name);
        if (digits) return bits;
    }
    ir_scan_fail_at(&reader->scan, ir_scan_place(&reader->scan, start), "bits such as 0x3f800000");
}

static void read_args(Reader *reader, Stmt *stmt, uint32_t least, uint32_t most) {
    while (stmt->arg_count < most) {
        ir_scan_spaces(&reader->scan);
        if (stmt->arg_count >= least && ir_scan_peek(&reader->scan) != '%') return;
        read_use(reader, stmt->arg_count);
        stmt->arg_count++;
    }
}

static void read_reduction(Reader *reader, Stmt *stmt) {
    Place word = ir_scan_word(&reader->scan, "a reduction");
    if (!ir_reduction_find(reader->scan.bytes + word.start, word.count, &stmt->reduction))
        ir_scan_fail_at(&reader->scan, word, "a reduction");
    ir_scan_expect(&reader->scan, '{');
    stmt->consumed = read_mask(reader, '}');
}

static void read_reduce(Reader *reader, Stmt *stmt) {
    read_reduction(reader, stmt);
    read_args(reader, stmt, 1, 3);
    if (ir_reduction(stmt->reduction)->results == 1) return;
    ir_scan_expect(&reader->scan, '#');
    int64_t result = ir_scan_int(&reader->scan, "which result", 0);
    stmt->result = (uint8_t)(result > UINT8_MAX ? UINT8_MAX : result);
}

static void read_rhs(Reader *reader, Stmt *stmt) {
    Place word = ir_scan_word(&reader->scan, "an operation");
    const char *name = reader->scan.bytes + word.start;
    if (ir_scan_is(&reader->scan, word, "load")) {
        stmt->op = OP_LOAD;
        stmt->access = read_access(reader);
    } else if (ir_scan_is(&reader->scan, word, "const")) {
        stmt->op = OP_CONST;
        stmt->bits = read_bits(reader, stmt->dtype);
    } else if (ir_scan_is(&reader->scan, word, "size")) {
        stmt->op = OP_SIZE;
        stmt->size = read_size(reader);
    } else if (ir_scan_is(&reader->scan, word, "iota")) {
        stmt->op = OP_IOTA;
        stmt->axis = read_axis(reader);
    } else if (ir_scan_is(&reader->scan, word, "reduce")) {
        stmt->op = OP_REDUCE;
        read_reduce(reader, stmt);
    } else if (ir_scan_is(&reader->scan, word, "cast")) {
        stmt->op = OP_CAST;
        read_args(reader, stmt, 1, 1);
    } else if (ir_op_find(name, word.count, &stmt->op) && stmt->op < OP_PRIMITIVES) {
        read_args(reader, stmt, ir_op(stmt->op)->arity, ir_op(stmt->op)->arity);
    } else {
        ir_scan_fail_at(&reader->scan, word, "an operation");
    }
}

/* "%"k dtype "<"axis*">" "=" rhs */
static void read_value(Reader *reader, Stmt *stmt) {
    size_t start = reader->scan.at - 1;
    uint32_t next = reader->values.count;
    if (read_number(reader) != next) {
        Place place = ir_scan_place(&reader->scan, start);
        ir_stop_at(reader->job, STATUS_REJECTED, place, "expected %%%u, the next value", next);
    }
    *IR_PUSH(reader->job, &reader->values) = reader->nest->stmts.count;
    stmt->dtype = read_dtype(reader);
    ir_scan_expect(&reader->scan, '<');
    stmt->domain = read_mask(reader, '>');
    ir_scan_expect(&reader->scan, '=');
    read_rhs(reader, stmt);
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/* The word of a comment that starts at or after *at, which goes behind it; empty where there is none. */
static Place comment_word(const Scan *scan, size_t *at) {
    size_t end = scan->comment.start + scan->comment.count;
    while (*at < end && is_space(scan->bytes[*at])) (*at)++;
    size_t start = *at;
    while (*at < end && !is_space(scan->bytes[*at])) (*at)++;
    return (Place){(uint32_t)start, (uint32_t)(*at - start)};
}

/* The name in a comment that is one identifier; a constant's decimal stands before it. */
static const char *comment_name(Reader *reader, bool after_decimal) {
    const Scan *scan = &reader->scan;
    size_t at = scan->comment.start;
    Place word = comment_word(scan, &at);
    if (after_decimal) {
        char first = word.count ? scan->bytes[word.start] : ' ';
        if (!ir_is_digit(first) && first != '-' && !ir_scan_is(scan, word, "inf") && !ir_scan_is(scan, word, "nan"))
            return NULL;
        word = comment_word(scan, &at);
    }
    if (!word.count || comment_word(scan, &at).count || ir_is_digit(scan->bytes[word.start])) return NULL;
    for (size_t i = word.start; i < word.start + word.count; i++)
        if (!ir_in_name(scan->bytes[i])) return NULL;
    return ir_scan_text(scan, word);
}

static void read_stmt(Reader *reader) {
    Stmt stmt = {.access = IR_NONE, .value = IR_NONE};
    size_t start = reader->scan.at;
    if (ir_scan_accept(&reader->scan, '%')) {
        read_value(reader, &stmt);
    } else {
        if (ir_scan_accept_word(&reader->scan, "store"))
            stmt.op = OP_STORE;
        else if (ir_scan_accept_word(&reader->scan, "partial_accumulate"))
            stmt.op = OP_PARTIAL_ACCUMULATE;
        else
            ir_scan_fail(&reader->scan, "a value such as %0, store, partial_accumulate or '}'");
        if (stmt.op == OP_PARTIAL_ACCUMULATE) read_reduction(reader, &stmt);
        stmt.access = read_access(reader);
        read_args(reader, &stmt, 1, 1);
    }
    stmt.place = ir_scan_place(&reader->scan, start);
    ir_scan_end_line(&reader->scan);
    stmt.name = comment_name(reader, stmt.op == OP_CONST);
    *IR_PUSH(reader->job, &reader->nest->stmts) = stmt;
}

/* Looks the operands up, and gives a store what its text does not say: its map's axes and its buf's dtype. */
static void resolve_uses(Reader *reader) {
    Nest *nest = reader->nest;
    for (uint32_t i = 0; i < reader->uses.count; i++) {
        const Use *use = &reader->uses.at[i];
        if (use->number >= reader->values.count)
            ir_stop_at(reader->job, STATUS_REJECTED, use->place, "the nest has no value %%%u", use->number);
        Stmt *stmt = &nest->stmts.at[use->stmt];
        uint32_t target = reader->values.at[use->number];
        if (use->slot == USE_INDEX)
            nest->accesses.at[stmt->access].index = target;
        else
            stmt->arg[use->slot] = target;
    }
    for (uint32_t i = 0; i < nest->stmts.count; i++) {
        Stmt *stmt = &nest->stmts.at[i];
        if (ir_is_value(stmt->op)) continue;
        stmt->domain = ir_access_domain(nest, &nest->accesses.at[stmt->access]);
        stmt->dtype = reader->prog->bufs.at[nest->accesses.at[stmt->access].buf].dtype;
    }
}

static void read_axes(Reader *reader) {
    Nest *nest = reader->nest;
    bool inner = false;
    ir_scan_expect(&reader->scan, '(');
    for (bool first = true;; first = false) {
        if (ir_scan_accept(&reader->scan, ')')) break;
        if (!inner && ir_scan_accept(&reader->scan, '|')) {
            inner = true;
            nest->row_count = nest->axis_count;
            if (ir_scan_accept(&reader->scan, ')')) break;
        } else if (!first) {
            ir_scan_expect(&reader->scan, ',');
        }
        ir_scan_spaces(&reader->scan);
        char id = ir_scan_peek(&reader->scan);
        if (!ir_is_lower(id)) ir_scan_fail(&reader->scan, "an axis such as c:768");
        if (ir_nest_axis(nest, id) != IR_NONE) ir_scan_fail(&reader->scan, "each axis once");
        if (nest->axis_count == IR_MAX_AXES) ir_scan_fail(&reader->scan, "at most 16 axes");
        reader->scan.at++;
        ir_scan_expect(&reader->scan, ':');
        Size extent = read_size(reader);
        nest->axes[nest->axis_count++] = (Axis){id, extent};
    }
    if (!inner) {
        reader->scan.at--;
        ir_scan_fail(&reader->scan, "'|' between row axes and inner axes");
    }
}

static NestClass read_class(Reader *reader) {
    ir_scan_spaces(&reader->scan);
    size_t start = reader->scan.at;
    while (ir_is_upper(ir_scan_peek(&reader->scan)) || ir_scan_peek(&reader->scan) == '+') reader->scan.at++;
    for (int class = 0; class < CLASS_COUNT; class ++)
        if (ir_scan_is(&reader->scan, ir_scan_place(&reader->scan, start), ir_class_name((NestClass) class)))
            return (NestClass) class;
    ir_scan_fail_at(&reader->scan, ir_scan_place(&reader->scan, start), "the class of the nest");
}

static void read_nest(Reader *reader) {
    Place word = ir_scan_word(&reader->scan, "the name of a nest");
    const char *name = ir_scan_text(&reader->scan, word);
    for (uint32_t i = 0; i < reader->prog->nests.count; i++)
        if (strcmp(reader->prog->nests.at[i].name, name) == 0)
            ir_stop_at(reader->job, STATUS_REJECTED, word, "nest '%s' is there twice", name);
    reader->nest = IR_PUSH(reader->job, &reader->prog->nests);
    reader->nest->name = name;
    reader->uses.count = reader->values.count = 0;
    read_axes(reader);
    reader->nest->class = read_class(reader);
    ir_scan_expect(&reader->scan, '{');
    ir_scan_end_line(&reader->scan);
    for (;;) {
        if (!ir_scan_next_line(&reader->scan)) ir_scan_fail(&reader->scan, "a statement or '}'");
        if (ir_scan_accept(&reader->scan, '}')) break;
        read_stmt(reader);
    }
    resolve_uses(reader);
}

Prog *ir_prog_read(Job *job, const char *bytes, size_t count) {
    size_t source_count;
    const char *source = ir_job_source(job, &source_count);
    if (source != bytes || source_count != count) ir_job_set_source(job, "ir", bytes, count);
    if (count > UINT32_MAX / 2) ir_stop_at(job, STATUS_REJECTED, (Place){0, 0}, "the text is too long");
    Reader *reader = IR_NEW(job, Reader);
    *reader = (Reader){.job = job, .scan = {.job = job, .bytes = bytes, .count = count}};
    if (!ir_scan_next_line(&reader->scan) || !ir_scan_accept_word(&reader->scan, "prog"))
        ir_scan_fail(&reader->scan, "'prog'");
    reader->prog =
        ir_prog_create(job, ir_scan_text(&reader->scan, ir_scan_word(&reader->scan, "the name of the program")));
    ir_scan_end_line(&reader->scan);
    static const struct {
        const char *word;
        void (*read)(Reader *reader);
    } declarations[] = {
        {"dim", read_dim}, {"size", read_size_line}, {"part", read_part}, {"buf", read_buf}, {"nest", read_nest}};
    while (ir_scan_next_line(&reader->scan)) {
        size_t i = 0, kinds = sizeof declarations / sizeof *declarations;
        while (i < kinds && !ir_scan_accept_word(&reader->scan, declarations[i].word)) i++;
        if (i == kinds) ir_scan_fail(&reader->scan, "dim, size, part, buf or nest");
        declarations[i].read(reader);
        ir_scan_end_line(&reader->scan);
    }
    resolve_aliases(reader);
    return reader->prog;
}
