/* In: statements and constants. Out: their C names and expressions. One temporary a value; names are ids followed by
 * the graph's names; floats are their bits with the decimal in a comment. */
#include "gen/emit.h"

#include <string.h>

const char *gen_storage_type(DType dtype) {
    switch (dtype) {
    case DTYPE_F64: return "double";
    case DTYPE_F32: return "float";
    case DTYPE_F16: return "ng_f16";
    case DTYPE_BF16: return "ng_bf16";
    case DTYPE_F8E4M3: return "ng_f8e4m3";
    case DTYPE_F8E5M2: return "ng_f8e5m2";
    case DTYPE_I64: return "ng_i64";
    case DTYPE_I32: return "ng_i32";
    case DTYPE_I8: return "ng_i8";
    case DTYPE_U8: return "ng_u8";
    case DTYPE_BOOL: return "ng_bool";
    default: return "ng_no_type";
    }
}

const char *gen_compute_type(DType dtype) {
    switch (ir_compute_dtype(dtype)) {
    case DTYPE_F64: return "double";
    case DTYPE_I64: return "ng_i64";
    case DTYPE_BOOL: return "bool";
    default: return "float";
    }
}

/* ---- names ---- */

static const char *suffixed(Job *job, char letter, uint32_t id, const char *name) {
    if (!name) return ir_format(job, "%c%u", letter, id);
    char *text = ir_format(job, "%c%u_%s", letter, id, name);
    for (char *c = text; *c; c++) {
        bool letter_like = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
        if (!letter_like) *c = '_';
    }
    return text;
}

static const char *plain_name(const Emitter *e, uint32_t id) {
    const Stmt *stmt = &e->nest->stmts.at[id];
    if (stmt->name) return stmt->name;
    return stmt->op == OP_LOAD ? e->prog->bufs.at[e->nest->accesses.at[stmt->access].buf].name : NULL;
}

bool gen_is_lane_value(const Emitter *e, uint32_t id) {
    uint32_t domain = e->nest->stmts.at[id].domain;
    return gen_by_columns(e->step->strategy) && !(domain & e->step->looped) && domain >> e->last & 1;
}

const char *gen_value_name(Emitter *e, uint32_t id) {
    const char *name = suffixed(e->job, 'v', id, plain_name(e, id));
    return gen_is_lane_value(e, id) ? ir_format(e->job, "%s[v]", name) : name;
}

const char *gen_place_name(Emitter *e, char letter, uint32_t id) {
    const Stmt *stmt = &e->nest->stmts.at[id];
    bool memory = stmt->access != IR_NONE;
    const char *name = memory ? e->prog->bufs.at[e->nest->accesses.at[stmt->access].buf].name : plain_name(e, id);
    return suffixed(e->job, letter, id, name);
}

const char *gen_param_name(const Emitter *e, uint32_t buf) {
    for (uint32_t i = 0; i < e->step->param_count; i++)
        if (e->step->params[i].kind == PARAM_BUF && e->step->params[i].buf == buf) return e->step->params[i].name;
    IR_BREACH(e->job, "buffer %u is no parameter", buf);
}

/* Written without a suffix. */
static bool is_int(Size size) { return size.kind == SIZE_INT && size.value >= -INT32_MAX && size.value <= INT32_MAX; }

const char *gen_size_text(Emitter *e, Size size) {
    if (size.kind == SIZE_INT) return ir_format(e->job, is_int(size) ? "%lld" : "%lldll", (long long)size.value);
    for (uint32_t i = 0; i < e->step->param_count; i++)
        if (e->step->params[i].kind == PARAM_SIZE && ir_size_equal(e->step->params[i].size, size))
            return e->step->params[i].name;
    IR_BREACH(e->job, "a size is no parameter");
}

/* C multiplies numbers as ints until a factor has 64 bits: where they may pass those, the first one has. */
const char *gen_product_text(Emitter *e, const Size *sizes, uint32_t count) {
    Text text = ir_text(e->job);
    int64_t ints = 1;
    bool passes = false;
    for (uint32_t i = 0; i < count; i++) {
        ir_text_format(&text, "%s%s", i ? " * " : "", gen_size_text(e, sizes[i]));
        if (ints != 0 && is_int(sizes[i]) && !passes)
            passes = ir_mul_overflows(ints, sizes[i].value, &ints) || ints > INT32_MAX;
        else
            ints = 0;
    }
    if (count == 0) return "1";
    return ir_format(e->job, passes ? "(ng_i64)%s" : "%s", ir_text_string(&text));
}

/* ---- constants ---- */

const char *gen_bits_text(Job *job, DType dtype, uint64_t bits) {
    Text text = ir_text(job);
    switch (ir_compute_dtype(dtype)) {
    case DTYPE_F64: {
        double value;
        memcpy(&value, &bits, sizeof value);
        ir_text_format(&text, "ng_f64(0x%016llxull /* ", (unsigned long long)bits);
        ir_text_double(&text, value);
        ir_text_put(&text, " */)");
        break;
    }
    case DTYPE_I64:
        if ((int64_t)bits >= 0)
            ir_text_format(&text, "(ng_i64)%lldll", (long long)bits);
        else
            ir_text_format(&text, "(ng_i64)0x%016llxull /* %lld */", (unsigned long long)bits, (long long)bits);
        break;
    case DTYPE_BOOL: ir_text_put(&text, bits ? "true" : "false"); break;
    default: {
        uint32_t word = (uint32_t)bits;
        float value;
        memcpy(&value, &word, sizeof value);
        ir_text_format(&text, "ng_f32(0x%08x /* ", word);
        ir_text_float(&text, value);
        ir_text_put(&text, " */)");
    }
    }
    return ir_text_string(&text);
}

const char *gen_identity_text(Job *job, Reduction reduction, DType dtype) {
    const ReductionRow *row = ir_reduction(reduction);
    DType compute = ir_compute_dtype(dtype);
    uint64_t bits = 0;
    if (compute == DTYPE_F64) {
        memcpy(&bits, &row->identity, sizeof bits);
    } else if (compute == DTYPE_F32) {
        float value = (float)row->identity;
        memcpy(&bits, &value, sizeof value);
    } else {
        bits = (uint64_t)row->integer_identity;
    }
    return gen_bits_text(job, compute, bits);
}

/* ---- expressions ---- */

static const char *axis_text(Emitter *e, uint32_t axis) {
    const char *plus = axis == e->last && (e->inner >> axis & 1) ? " + v" : "";
    return ir_format(e->job, "(ng_i64)(%s%s)", gen_axis_name(e, axis), plus);
}

/* The value in the type of its own arithmetic. */
static const char *value_text(Emitter *e, uint32_t id) {
    const Stmt *stmt = &e->nest->stmts.at[id];
    if (stmt->op == OP_CONST) return gen_bits_text(e->job, stmt->dtype, stmt->bits);
    if (stmt->op == OP_SIZE) return ir_format(e->job, "(ng_i64)%s", gen_size_text(e, stmt->size));
    return gen_value_name(e, id);
}

const char *gen_operand(Emitter *e, uint32_t id, DType dtype) {
    DType from = ir_compute_dtype(e->nest->stmts.at[id].dtype), to = ir_compute_dtype(dtype);
    const char *text = value_text(e, id);
    return from == to ? text : ir_format(e->job, "ng_cast_%s(%s)", ir_dtype(to)->name, text);
}

/* Puts a, b, c for $a, $b, $c. */
static const char *splice(Job *job, const char *pattern, const char *const *args) {
    Text text = ir_text(job);
    for (const char *at = pattern; *at; at++) {
        if (*at == '$' && at[1] >= 'a' && at[1] <= 'c')
            ir_text_put(&text, args[*++at - 'a']);
        else
            ir_text_bytes(&text, at, 1);
    }
    return ir_text_string(&text);
}

/* Signed overflow is no business of C's. */
static const char *integer_pattern(const char *pattern) {
    static const char *const wrapping[][2] = {{"$a + $b", "ng_wrap_add($a, $b)"},
                                              {"$a - $b", "ng_wrap_sub($a, $b)"},
                                              {"$a * $b", "ng_wrap_mul($a, $b)"},
                                              {"-$a", "ng_wrap_sub(0, $a)"}};
    for (size_t i = 0; i < sizeof wrapping / sizeof wrapping[0]; i++)
        if (strcmp(pattern, wrapping[i][0]) == 0) return wrapping[i][1];
    return pattern;
}

static const char *primitive(Emitter *e, const Stmt *stmt) {
    const OpRow *row = ir_op(stmt->op);
    DType dtypes[3] = {0};
    const char *args[3] = {"", "", ""};
    for (uint32_t k = 0; k < stmt->arg_count; k++) dtypes[k] = e->nest->stmts.at[stmt->arg[k]].dtype;
    DType meet = ir_op_operand_dtype(stmt->op, dtypes);
    for (uint32_t k = 0; k < stmt->arg_count; k++)
        args[k] = gen_operand(e, stmt->arg[k], stmt->op == OP_WHERE && k == 0 ? DTYPE_BOOL : meet);
    bool integers = ir_compute_dtype(meet) == DTYPE_I64 && row->rule != RULE_WHERE;
    return splice(e->job, integers ? integer_pattern(row->cuda) : row->cuda, args);
}

const char *gen_expression(Emitter *e, const Stmt *stmt) {
    if (stmt->op == OP_IOTA) return axis_text(e, stmt->axis);
    if (stmt->op != OP_CAST) return primitive(e, stmt);
    DType from = e->nest->stmts.at[stmt->arg[0]].dtype;
    const char *value = value_text(e, stmt->arg[0]);
    bool same = from == stmt->dtype || (stmt->dtype == ir_compute_dtype(from));
    return same ? value : ir_format(e->job, "ng_cast_%s(%s)", ir_dtype(stmt->dtype)->name, value);
}

const char *gen_combine(Job *job, Reduction reduction, DType dtype, const char *a, const char *b) {
    const char *pattern = ir_reduction(reduction)->cuda;
    if (ir_compute_dtype(dtype) == DTYPE_I64) pattern = integer_pattern(pattern);
    return splice(job, pattern, (const char *const[]){a, b, ""});
}

const char *gen_stored(Emitter *e, const Stmt *store) {
    DType from = e->nest->stmts.at[store->arg[0]].dtype;
    DType to = e->prog->bufs.at[e->nest->accesses.at[store->access].buf].dtype;
    const char *value = value_text(e, store->arg[0]);
    if (ir_compute_dtype(from) == ir_compute_dtype(to)) return value;
    return ir_format(e->job, "ng_cast_%s(%s)", ir_dtype(to)->name, value);
}

/* ---- comments ---- */

const char *gen_comment_text(Job *job, const char *bytes, size_t count, size_t most) {
    Text text = ir_text(job);
    bool blank = false;
    for (size_t i = 0; i < count; i++) {
        char c = bytes[i];
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
            blank = text.count > 0;
            continue;
        }
        if (text.count + 1 >= most) {
            ir_text_put(&text, " ...");
            break;
        }
        if (blank) ir_text_put(&text, " ");
        blank = false;
        /* a backslash at the end would join the next line to the comment; bytes beyond ASCII stay out of CUDA files */
        bool plain = c > ' ' && c < 0x7f && c != '\\';
        ir_text_bytes(&text, plain ? &c : "?", 1);
    }
    return ir_text_string(&text);
}

/* What the graph calls by this place ends here: a composite's other statements come before. */
static bool ends_place(const Emitter *e, const Stmt *stmt) {
    for (const Stmt *other = &e->nest->stmts.at[e->nest->stmts.count - 1]; other > stmt; other--) {
        bool computes = ir_is_value(other->op) && other->op != OP_LOAD && other->op != OP_CONST && other->op != OP_SIZE;
        if (computes && other->place.start == stmt->place.start && other->place.count == stmt->place.count)
            return false;
    }
    return true;
}

const char *gen_remark(Emitter *e, const Stmt *stmt) {
    size_t count;
    const char *source = ir_job_source(e->job, &count);
    Place place = stmt->place;
    if (!source || place.count == 0 || (size_t)place.start + place.count > count) return "";
    const char *text = gen_comment_text(e->job, source + place.start, place.count, 64);
    /* a load's name says it already; an infix operation's place is its sign */
    if (stmt->op == OP_LOAD || !ends_place(e, stmt) || strlen(text) < 3 || (e->remark && strcmp(e->remark, text) == 0))
        return "";
    e->remark = text;
    return ir_format(e->job, "  // %s%s", stmt->op == OP_PARTIAL_ACCUMULATE ? "part of " : "", text);
}
