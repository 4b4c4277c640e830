/* In: statements of nests. Out: what cut asks of values: whether two are equal, the bytes they take in memory, their
 * stores and loads. */
#include "gen/cut.h"
#include "gen/nests.h"

#include <string.h>

typedef struct Match { /* trees of b looked for in a */
    const Nest *a, *b;
    const Prog *prog;
    uint32_t *to;               /* of each statement of b: the equal one of a, or IR_NONE: not known */
    uint32_t axis[IR_MAX_AXES]; /* of each axis of b: that of a, or IR_NONE */
    uint32_t taken;             /* axes of a that stand for one */
} Match;

bool gen_cut_computes(const Stmt *stmt) {
    return stmt->op != OP_LOAD && stmt->op != OP_STORE && stmt->op != OP_PARTIAL_ACCUMULATE && stmt->op != OP_CONST &&
           stmt->op != OP_SIZE && stmt->op != OP_IOTA;
}

bool gen_cut_stores(const Nest *nest, uint32_t id) {
    uint32_t rows = ir_nest_row_mask(nest), domain = nest->stmts.at[id].domain;
    return gen_cut_computes(&nest->stmts.at[id]) && domain && (rows & ~domain) == 0;
}

Poly gen_cut_bytes(Job *job, const Prog *prog, const Nest *nest, uint32_t id) {
    const Stmt *stmt = &nest->stmts.at[id];
    bool overflow = false;
    return ir_poly_mul(job, gen_axes_elements(job, prog, nest, stmt->domain),
                       ir_poly_int(job, ir_dtype(ir_compute_dtype(stmt->dtype))->bytes), &overflow);
}

/* The load of the nest that varies over most of these axes. */
static const Access *widest_read(const Nest *nest, uint32_t axes) {
    const Access *widest = NULL;
    int most = 0;
    for (uint32_t i = 0; i < nest->stmts.count; i++) {
        const Stmt *stmt = &nest->stmts.at[i];
        int width = __builtin_popcount(stmt->domain & axes);
        if (stmt->op != OP_LOAD || width <= most) continue;
        most = width;
        widest = &nest->accesses.at[stmt->access];
    }
    return widest;
}

/* The axes of a value, the one with the largest stride in memory first. */
static uint32_t order_axes(Job *job, const Prog *prog, const Nest *nest, uint32_t axes, uint32_t *order) {
    const Access *read = widest_read(nest, axes);
    int64_t stride[IR_MAX_AXES];
    uint32_t count = 0;
    for (uint32_t a = 0; a < nest->axis_count; a++) {
        if (!(axes >> a & 1)) continue;
        stride[a] = read ? gen_stride_magnitude(job, prog, read->stride[a]) : 0;
        uint32_t at = count++;
        for (; at > 0 && stride[order[at - 1]] < stride[a]; at--) order[at] = order[at - 1];
        order[at] = a;
    }
    return count;
}

bool gen_cut_map(Job *job, Prog *prog, const Nest *nest, uint32_t id, Buf *buf, Access *access) {
    const Stmt *from = &nest->stmts.at[id];
    uint32_t order[IR_MAX_AXES], count = order_axes(job, prog, nest, from->domain, order);
    if (count > IR_MAX_RANK) return false;
    *buf = (Buf){.dtype = ir_compute_dtype(from->dtype),
                 .rank = (uint8_t)count,
                 .kind = BUF_TMP,
                 .may_alias = IR_NONE,
                 .tensor = IR_NONE,
                 .offset = ir_size_int(0)};
    *access = (Access){.buf = IR_NONE, .index = IR_NONE};
    Poly stride = ir_poly_int(job, 1);
    bool overflow = false;
    for (uint32_t k = count; k-- > 0;) {
        buf->extent[k] = nest->axes[order[k]].extent;
        access->stride[order[k]] = ir_prog_size(job, prog, stride);
        stride = ir_poly_mul(job, stride, ir_size_poly(job, prog, buf->extent[k]), &overflow);
    }
    return !overflow;
}

uint32_t gen_cut_store(Job *job, Prog *prog, Nest *nest, uint32_t id) {
    const Stmt from = nest->stmts.at[id];
    Buf buf;
    Access access;
    if (!gen_cut_map(job, prog, nest, id, &buf, &access)) return IR_NONE;
    buf.name = gen_tmp_name(job, prog);
    access.buf = prog->bufs.count;
    *IR_PUSH(job, &prog->bufs) = buf;
    Stmt store = {.op = OP_STORE,
                  .dtype = buf.dtype,
                  .arg_count = 1,
                  .arg = {id},
                  .access = ir_nest_add_access(job, nest, &access),
                  .axis = IR_NONE,
                  .place = from.place,
                  .value = from.value};
    return ir_nest_add(job, nest, &store);
}

uint32_t gen_cut_stored(const Prog *prog, const Nest *nest, uint32_t id) {
    for (uint32_t i = 0; i < nest->stmts.count; i++) {
        const Stmt *stmt = &nest->stmts.at[i];
        if (stmt->op == OP_STORE && stmt->arg[0] == id &&
            prog->bufs.at[nest->accesses.at[stmt->access].buf].kind == BUF_TMP)
            return i;
    }
    return IR_NONE;
}

Stmt gen_cut_load(const Stmt *like, uint32_t access) {
    return (Stmt){.op = OP_LOAD,
                  .dtype = ir_compute_dtype(like->dtype),
                  .access = access,
                  .axis = IR_NONE,
                  .domain = like->domain,
                  .place = like->place,
                  .value = like->value};
}

/* ---- equal trees ---- */

/* Axis k of b stands for an axis of a with this stride in a's access; false where it cannot. */
static bool match_axis(Match *m, uint32_t k, const Size *stride, Size wanted) {
    if (m->axis[k] != IR_NONE) return ir_size_equal(stride[m->axis[k]], wanted);
    for (uint32_t j = 0; j < m->a->axis_count; j++) {
        if (m->taken >> j & 1 || !ir_size_equal(stride[j], wanted)) continue;
        if (!ir_size_equal(m->a->axes[j].extent, m->b->axes[k].extent)) continue;
        m->axis[k] = j;
        m->taken |= (uint32_t)1 << j;
        return true;
    }
    return false;
}

static bool match_index(Match *m, uint32_t a_axis, uint32_t b_axis) {
    if (m->axis[b_axis] != IR_NONE) return m->axis[b_axis] == a_axis;
    if (m->taken >> a_axis & 1 || !ir_size_equal(m->a->axes[a_axis].extent, m->b->axes[b_axis].extent)) return false;
    m->axis[b_axis] = a_axis;
    m->taken |= (uint32_t)1 << a_axis;
    return true;
}

static bool match_access(Match *m, const Access *a, const Access *b) {
    uint32_t a_width = 0, b_width = 0;
    if (a->buf != b->buf || a->index != IR_NONE || b->index != IR_NONE || !ir_size_equal(a->offset, b->offset))
        return false;
    for (uint32_t j = 0; j < m->a->axis_count; j++) a_width += !ir_size_is(a->stride[j], 0);
    for (uint32_t k = 0; k < m->b->axis_count; k++) {
        if (ir_size_is(b->stride[k], 0)) continue;
        b_width++;
        if (!match_axis(m, k, a->stride, b->stride[k])) return false;
    }
    return a_width == b_width;
}

/* b loads a tmp that a stores: the value itself. */
static const Stmt *stored_in(const Match *m, const Stmt *load) {
    uint32_t buf = m->b->accesses.at[load->access].buf;
    return m->prog->bufs.at[buf].kind == BUF_TMP ? gen_nest_store(m->a, buf) : NULL;
}

static bool match_tree(Match *m, uint32_t b_id, uint32_t a_id) {
    const Stmt *b = &m->b->stmts.at[b_id], *a = &m->a->stmts.at[a_id];
    if (m->to[b_id] != IR_NONE) return m->to[b_id] == a_id;
    const Stmt *store = b->op == OP_LOAD ? stored_in(m, b) : NULL;
    if (store) {
        if (store->arg[0] != a_id || !match_access(m, &m->a->accesses.at[store->access], &m->b->accesses.at[b->access]))
            return false;
        m->to[b_id] = a_id;
        return true;
    }
    if (a->op != b->op || a->dtype != b->dtype || a->arg_count != b->arg_count || a->bits != b->bits) return false;
    if (a->op == OP_REDUCE || !ir_size_equal(a->size, b->size)) return false;
    if (a->op == OP_LOAD && !match_access(m, &m->a->accesses.at[a->access], &m->b->accesses.at[b->access]))
        return false;
    if (a->op == OP_IOTA && !match_index(m, a->axis, b->axis)) return false;
    for (uint32_t i = 0; i < a->arg_count; i++)
        if (!match_tree(m, b->arg[i], a->arg[i])) return false;
    m->to[b_id] = a_id;
    return true;
}

/* Whether the tree is in a, and which axes of a stand for b's. */
static bool find_equal(Job *job, const Prog *prog, const CutPair *pair, uint32_t a_id, uint32_t b_id, uint32_t *axis) {
    Match m = {.a = &pair->a, .b = &pair->b, .prog = prog};
    const Mark mark = ir_mark(job);
    m.to = IR_NEW_ARRAY(job, uint32_t, m.b->stmts.count);
    for (uint32_t i = 0; i < m.b->stmts.count; i++) m.to[i] = IR_NONE;
    for (uint32_t k = 0; k < IR_MAX_AXES; k++) m.axis[k] = IR_NONE;
    bool equal = match_tree(&m, b_id, a_id);
    uint32_t image = 0, domain = m.b->stmts.at[b_id].domain;
    for (uint32_t k = 0; equal && k < m.b->axis_count; k++) {
        if (!(domain >> k & 1)) continue;
        equal = m.axis[k] != IR_NONE;
        if (equal) image |= (uint32_t)1 << m.axis[k];
    }
    ir_reset(job, mark);
    memcpy(axis, m.axis, sizeof m.axis);
    return equal && image == m.a->stmts.at[a_id].domain;
}

static AxisParts whole_axes(Job *job, const Prog *prog, const Nest *nest) {
    AxisParts parts = {.count = nest->axis_count};
    for (uint32_t i = 0; i < nest->axis_count; i++) {
        parts.of[i] = i;
        parts.extent[i] = ir_size_poly(job, prog, nest->axes[i].extent);
    }
    return parts;
}

CutPair gen_cut_pair(Job *job, Prog *prog, const Nest *a, const Nest *b) {
    CutPair pair = {.a = *a, .b = *b};
    bool split = !gen_same_axes(a, b) && a->axis_count && b->axis_count &&
                 gen_refine_axes(job, prog, &pair.a, &pair.b, false, &pair.a_parts, &pair.b_parts);
    /* an index along an axis that is split becomes several statements; then ids are others */
    if (split && pair.a.stmts.count == a->stmts.count && pair.b.stmts.count == b->stmts.count) return pair;
    return (CutPair){.a = *a, .b = *b, .a_parts = whole_axes(job, prog, a), .b_parts = whole_axes(job, prog, b)};
}

/* Strides of parts from those of whole axes. */
static void split_strides(Job *job, const Prog *prog, const AxisParts *parts, const Size *whole, Poly *stride) {
    bool overflow = false;
    for (uint32_t k = parts->count; k-- > 0;) {
        bool inner = k + 1 == parts->count || parts->of[k + 1] != parts->of[k];
        stride[k] = inner ? ir_size_poly(job, prog, whole[parts->of[k]])
                          : ir_poly_mul(job, stride[k + 1], parts->extent[k + 1], &overflow);
    }
}

bool gen_cut_equal(Job *job, Prog *prog, const CutPair *pair, uint32_t a_id, uint32_t b_id, const Access *stored,
                   Size *stride) {
    uint32_t axis[IR_MAX_AXES];
    if (!find_equal(job, prog, pair, a_id, b_id, axis)) return false;
    Poly a_stride[IR_MAX_AXES], own[IR_MAX_AXES];
    bool overflow = false;
    split_strides(job, prog, &pair->a_parts, stored->stride, a_stride);
    for (uint32_t i = 0; i < IR_MAX_AXES; i++) stride[i] = ir_size_int(0);
    for (uint32_t k = pair->b_parts.count; k-- > 0;) {
        const uint32_t i = pair->b_parts.of[k];
        bool inner = k + 1 == pair->b_parts.count || pair->b_parts.of[k + 1] != i;
        own[k] = pair->b.stmts.at[b_id].domain >> k & 1 ? a_stride[axis[k]] : ir_poly_int(job, 0);
        if (inner)
            stride[i] = ir_prog_size(job, prog, own[k]);
        else if (!ir_poly_equal(own[k], ir_poly_mul(job, own[k + 1], pair->b_parts.extent[k + 1], &overflow)))
            return false; /* what is one axis of b is not one in the tmp */
    }
    return !overflow;
}
