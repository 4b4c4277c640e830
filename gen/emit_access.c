/* In: the accesses of a step. Out: pointers and index arithmetic. A row's pointer is made once, in 64 bits; within the
 * row, offsets have the column's type unless they may pass it. */
#include "gen/emit.h"

#include <string.h>

/* Columns are accesses along the last axis, numbered; their index gives the axes. */
static bool is_numbered(const Emitter *e) {
    return e->step->strategy == STRATEGY_POINTWISE || gen_by_columns(e->step->strategy);
}

static bool is_stream(const Emitter *e) { return e->step->strategy == STRATEGY_ROW_STREAM; }
static uint32_t inner_count(const Emitter *e) { return (uint32_t)__builtin_popcount(e->inner); }

static bool is_only(uint32_t mask, uint32_t axis) { return mask == (uint32_t)1 << axis; }

bool gen_is_linear(const Emitter *e, uint32_t access) {
    const Size *stride = e->nest->accesses.at[access].stride;
    if (is_numbered(e) || inner_count(e) < 2 || ir_size_is(stride[e->last], 0)) return false;
    Poly step = ir_size_poly(e->job, e->prog, stride[e->last]);
    bool overflow = false;
    for (uint32_t a = e->nest->axis_count; a-- > 0;) {
        if (!(e->inner >> a & 1)) continue;
        if (!ir_poly_equal(step, ir_size_poly(e->job, e->prog, stride[a]))) return false;
        step = ir_poly_mul(e->job, step, ir_size_poly(e->job, e->prog, e->nest->axes[a].extent), &overflow);
    }
    return !overflow;
}

uint32_t gen_access_axes(const Emitter *e, uint32_t access) {
    const Size *stride = e->nest->accesses.at[access].stride;
    uint32_t mask = 0;
    for (uint32_t a = 0; a < e->nest->axis_count; a++)
        if (!ir_size_is(stride[a], 0)) mask |= (uint32_t)1 << a;
    return gen_is_linear(e, access) ? mask & ~e->inner : mask;
}

const char *gen_axis_name(Emitter *e, uint32_t axis) {
    if (!is_numbered(e) && is_only(e->inner, axis)) return "c";
    if (is_only(e->step->row_mask, axis)) return "row";
    return ir_format(e->job, "a_%c", e->nest->axes[axis].id);
}

/* Joins a term to those before it by its sign, and returns its size without the sign. */
static Size put_sign(Text *text, Size size) {
    bool negative = size.kind == SIZE_INT && size.value < 0;
    if (text->count > 0)
        ir_text_put(text, negative ? " - " : " + ");
    else if (negative)
        ir_text_put(text, "-");
    return negative ? ir_size_int(-size.value) : size;
}

/* index*stride; nothing for stride 0. index64: the index is an int and the product may pass it. */
static void put_term(Emitter *e, Text *text, const char *index, Size stride, bool index64) {
    if (ir_size_is(stride, 0)) return;
    Size size = put_sign(text, stride);
    if (ir_size_is(size, 1))
        ir_text_put(text, index);
    else
        ir_text_format(text, "%s%s * %s", index64 ? "(ng_i64)" : "", index, gen_size_text(e, size));
}

/* index64: what follows is an int and the sum may pass it; the terms of row axes before it have 64 bits. */
static void put_offset(Emitter *e, Text *text, Size offset, bool index64) {
    if (ir_size_is(offset, 0)) return;
    const bool first = text->count == 0;
    const Size size = put_sign(text, offset);
    ir_text_format(text, "%s%s", first && index64 ? "(ng_i64)" : "", gen_size_text(e, size));
}

/* Whether a column's index is an int and an offset made of it may pass that. */
static bool index64_of(const Emitter *e, uint32_t access) {
    return e->step->forms[access].index64 && !e->step->column64;
}

/* Where the parts of this step are stored. */
static bool is_slot(const Emitter *e, const Access *access) {
    return e->step->part != IR_NONE && e->prog->bufs.at[access->buf].kind == BUF_WORKSPACE;
}

/* Elements of a part's slot. */
static const char *slot_text(Emitter *e, const Access *access) {
    const Buf *buf = &e->prog->bufs.at[access->buf];
    if (buf->rank < 2) return "1";
    const char *text = gen_product_text(e, buf->extent + 1, buf->rank - 1u);
    return buf->rank > 2 ? ir_format(e->job, "(%s)", text) : text;
}

/* Offset and the terms of row axes. */
static void put_row_terms(Emitter *e, Text *text, const Access *access, bool index64) {
    for (uint32_t a = 0; a < e->nest->axis_count; a++) {
        if (!(e->step->row_mask >> a & 1)) continue;
        put_term(e, text, gen_axis_name(e, a), access->stride[a], false);
    }
    if (is_slot(e, access)) ir_text_format(text, "%spart * %s", text->count ? " + " : "", slot_text(e, access));
    put_offset(e, text, access->offset, index64);
}

static void put_column_terms(Emitter *e, Text *text, uint32_t id, bool each_lane) {
    const Access *access = &e->nest->accesses.at[id];
    const bool index64 = index64_of(e, id);
    if (gen_is_linear(e, id)) {
        put_term(e, text, each_lane ? "(c + v)" : "c", access->stride[e->last], index64);
        return;
    }
    for (uint32_t a = 0; a < e->nest->axis_count; a++) {
        if (!(e->inner >> a & 1)) continue;
        const char *index = gen_axis_name(e, a);
        if (each_lane && a == e->last) index = ir_format(e->job, "(%s + v)", index);
        put_term(e, text, index, access->stride[a], index64);
    }
}

static const char *pointer_sum(Emitter *e, const char *pointer, const Text *terms) {
    if (terms->count == 0) return pointer;
    /* a product binds closer than the pointer's +, a sum is kept together: it may be an int */
    bool several = strstr(terms->bytes, " + ") || strstr(terms->bytes, " - ") || terms->bytes[0] == '-';
    return ir_format(e->job, several ? "%s + (%s)" : "%s + %s", pointer, terms->bytes);
}

/* row_stream keeps what is loaded access by access so: its memory passes for one that may change. */
bool gen_is_constant(const Emitter *e, uint32_t access) {
    for (uint32_t i = 0; is_stream(e) && i < e->nest->stmts.count; i++) {
        const Stmt *stmt = &e->nest->stmts.at[i];
        if (stmt->op == OP_LOAD && stmt->access == access && e->step->late[i]) return false;
    }
    return e->step->forms[access].constant;
}

bool gen_has_base(const Emitter *e, uint32_t access) {
    return !is_numbered(e) && e->nest->accesses.at[access].index == IR_NONE;
}

static const char *plain_base_name(Emitter *e, uint32_t access) {
    char *name = ir_format(e->job, "row_%s", e->prog->bufs.at[e->nest->accesses.at[access].buf].name);
    for (char *c = name; *c; c++) {
        bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
        if (!letter) *c = '_';
    }
    return name;
}

const char *gen_base_name(Emitter *e, uint32_t access) {
    const char *name = plain_base_name(e, access);
    for (uint32_t i = 0; i < e->nest->accesses.count; i++)
        if (i != access && gen_has_base(e, i) && strcmp(plain_base_name(e, i), name) == 0)
            return ir_format(e->job, "row%u%s", access, name + strlen("row"));
    return name;
}

/* The index that a tensor gives; the host device looks whether it is one of its dim. */
static const char *gathered_text(Emitter *e, const Access *access) {
    const char *index = gen_operand(e, access->index, DTYPE_I64);
    if (ir_size_is(access->index_extent, -1)) return index;
    return ir_format(e->job, "ng_index(%s, %s)", index, gen_size_text(e, access->index_extent));
}

const char *gen_address(Emitter *e, uint32_t id, bool each_lane) {
    const Access *access = &e->nest->accesses.at[id];
    Text terms = ir_text(e->job);
    const char *pointer;
    if (gen_has_base(e, id)) {
        pointer = gen_base_name(e, id);
    } else {
        pointer = gen_param_name(e, access->buf);
        put_row_terms(e, &terms, access, index64_of(e, id));
        if (access->index != IR_NONE) put_term(e, &terms, gathered_text(e, access), access->index_stride, false);
    }
    put_column_terms(e, &terms, id, each_lane);
    return pointer_sum(e, pointer, &terms);
}

static bool listed(const StmtList *list, uint32_t id) {
    for (uint32_t i = 0; i < list->count; i++)
        if (list->at[i] == id) return true;
    return false;
}

/* Used by a statement of the step whose pointers hold here. */
static bool used_by_step(const Emitter *e, uint32_t access, GenBases where) {
    const Access *own = &e->nest->accesses.at[access];
    const bool of_parts = is_stream(e) && is_slot(e, own);
    const bool of_cta = is_stream(e) && !of_parts && !(ir_access_domain(e->nest, own) & e->step->parted);
    if (of_cta != (where == BASES_OF_CTA) || of_parts != (where == BASES_OF_PARTS)) return false;
    for (uint32_t q = 0; q < e->step->phase_count; q++) {
        const Phase *phase = &e->step->phases[q];
        const StmtList *lists[] = {&phase->loads,     &phase->stmts,      &phase->stores,
                                   &phase->row_stmts, &phase->row_stores, &phase->reduces};
        for (size_t l = 0; l < sizeof lists / sizeof lists[0]; l++)
            for (uint32_t i = 0; i < lists[l]->count; i++) {
                const Stmt *stmt = &e->nest->stmts.at[lists[l]->at[i]];
                const bool ahead = listed(&e->step->ahead, lists[l]->at[i]);
                if (stmt->access == access && ahead == (where == BASES_AHEAD)) return true;
            }
    }
    return false;
}

/* Whether kernel text names this row axis: in a pointer, as a value, or in the condition of a store that lacks it. */
static bool row_axis_used(const Emitter *e, uint32_t axis, GenBases where) {
    for (uint32_t i = 0; i < e->nest->accesses.count; i++)
        if (used_by_step(e, i, where) && !ir_size_is(e->nest->accesses.at[i].stride[axis], 0)) return true;
    for (uint32_t i = 0; i < e->nest->stmts.count && where != BASES_AHEAD && where != BASES_OF_PARTS; i++) {
        const Stmt *stmt = &e->nest->stmts.at[i];
        if (stmt->op == OP_IOTA && stmt->axis == axis) return true;
        if (stmt->op == OP_STORE && !(stmt->domain >> axis & 1)) return true;
    }
    return false;
}

/* An index split into axes from the last to the first, which takes what is left. */
static void put_split(Emitter *e, Text *out, int indent, uint32_t mask, uint32_t used_mask, const char *type,
                      const char *index) {
    const char *rest = index;
    const bool narrow = strcmp(type, "Column") == 0 && !e->step->column64; /* so are its extents then */
    for (uint32_t k = e->nest->axis_count; k-- > 0;) {
        if (!(mask >> k & 1)) continue;
        char id = e->nest->axes[k].id;
        bool first = (mask & (((uint32_t)1 << k) - 1)) == 0;
        bool used = used_mask >> k & 1;
        Size count = e->nest->axes[k].extent;
        const char *extent = gen_size_text(e, ir_size_is(count, 0) ? ir_size_int(1) : count); /* of 0: never divides */
        if (count.kind != SIZE_INT && narrow) extent = ir_format(e->job, "(Column)%s", extent);
        if (used && first)
            ir_text_format(out, "%*sconst %s a_%c = %s;\n", indent, "", type, id, rest);
        else if (used)
            ir_text_format(out, "%*sconst %s a_%c = %s %% %s;\n", indent, "", type, id, rest, extent);
        if (first) break;
        rest = ir_format(e->job, "(%s / %s)", rest, extent);
    }
}

/* The indices of row axes: of the CTA those that its rows have in common, of a row the others, all but row_stream's. */
static void put_row_split(Emitter *e, Text *out, int indent, GenBases where) {
    const uint32_t parted = is_stream(e) ? e->step->parted : e->step->row_mask, rows = e->step->row_mask;
    const bool of_cta = where == BASES_OF_CTA;
    const uint32_t mask = of_cta ? rows & ~parted : parted;
    uint32_t used = 0;
    if (__builtin_popcount(rows) < 2 || where == BASES_OF_PARTS) return;
    for (uint32_t a = 0; a < e->nest->axis_count; a++) {
        bool named = row_axis_used(e, a, where);
        /* those of the CTA stand for all places */
        for (GenBases place = BASES_OF_ROW; of_cta && place <= BASES_OF_PARTS; place++)
            named = named || row_axis_used(e, a, place);
        if (named) used |= (uint32_t)1 << a;
    }
    put_split(e, out, indent, mask, used, "ng_i64", of_cta ? "outer" : "row");
}

void gen_emit_bases_at(Emitter *e, Text *out, int indent, GenBases where) {
    put_row_split(e, out, indent, where);
    for (uint32_t i = 0; i < e->nest->accesses.count; i++) {
        const Access *access = &e->nest->accesses.at[i];
        const Buf *buf = &e->prog->bufs.at[access->buf];
        if (!gen_has_base(e, i) || buf->kind == BUF_SCALAR || !used_by_step(e, i, where)) continue;
        Text terms = ir_text(e->job);
        put_row_terms(e, &terms, access, false);
        ir_text_format(out, "%*s%s%s *const %s = %s;\n", indent, "", buf->kind == BUF_IN ? "const " : "",
                       gen_storage_type(buf->dtype), gen_base_name(e, i),
                       pointer_sum(e, gen_param_name(e, access->buf), &terms));
    }
}

void gen_emit_bases(Emitter *e, Text *out, int indent) { gen_emit_bases_at(e, out, indent, BASES_OF_ROW); }

/* Pointwise: accesses run along the last axis; a run's last one may be partial. */
static void put_runs(Emitter *e, Text *out, int indent, uint32_t used) {
    const Axis *last = &e->nest->axes[e->last];
    const char *extent = gen_size_text(e, last->extent), *runs = "runs";
    uint32_t outer = e->inner & ~((uint32_t)1 << e->last);
    uint32_t first = (uint32_t)__builtin_ctz(e->inner);
    if (outer == 0) {
        ir_text_format(out, "%*sconst Column a_%c = access * VECTOR;\n", indent, "", last->id);
        ir_text_format(out, "%*sconst bool live = a_%c < %s;\n", indent, "", last->id, extent);
        return;
    }
    if (last->extent.kind == SIZE_INT) {
        int64_t count = last->extent.value / e->step->tile.vector;
        runs = ir_format(e->job, "%lld", (long long)(count < 1 ? 1 : count));
    } else {
        ir_text_format(out, "%*sconst Column runs = %s > VECTOR ? (Column)((%s + VECTOR - 1) / VECTOR) : 1;\n", indent,
                       "", extent, extent);
    }
    bool whole = last->extent.kind == SIZE_INT && last->extent.value > 0;
    if (!whole || used >> e->last & 1)
        ir_text_format(out, "%*sconst Column a_%c = access %% %s * VECTOR;\n", indent, "", last->id, runs);
    put_split(e, out, indent, outer, used | (uint32_t)1 << first, "Column", ir_format(e->job, "(access / %s)", runs));
    ir_text_format(out, "%*sconst bool live = a_%c < %s", indent, "", e->nest->axes[first].id,
                   gen_size_text(e, e->nest->axes[first].extent));
    if (whole)
        ir_text_put(out, ";\n");
    else
        ir_text_format(out, " && a_%c < %s;\n", last->id, extent);
}

void gen_emit_column_split(Emitter *e, Text *out, int indent, uint32_t used) { put_runs(e, out, indent, used); }

void gen_emit_split(Emitter *e, Text *out, int indent, uint32_t used) {
    if (gen_by_columns(e->step->strategy) && __builtin_popcount(e->step->row_mask) > 1)
        put_split(e, out, indent, e->step->row_mask, used, "ng_i64", "row");
    else if (e->step->strategy == STRATEGY_POINTWISE)
        put_runs(e, out, indent, used);
    else if (!gen_by_columns(e->step->strategy) && inner_count(e) > 1)
        put_split(e, out, indent, e->inner, used, "Column", "c");
}

const char *gen_left(Emitter *e) {
    if (!is_numbered(e)) return "columns - c";
    const Axis *last = &e->nest->axes[e->last];
    return ir_format(e->job, "%s - a_%c", gen_size_text(e, last->extent), last->id);
}
