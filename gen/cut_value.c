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

uint32_t gen_cut_store(Job *job, Prog *prog, Nest *nest, uint32_t id) {
    const Stmt from = nest->stmts.at[id];
    uint32_t order[IR_MAX_AXES], count = order_axes(job, prog, nest, from.domain, order);
    if (count > IR_MAX_RANK) return IR_NONE;
    Buf buf = {.name = gen_tmp_name(job, prog),
               .dtype = ir_compute_dtype(from.dtype),
               .rank = (uint8_t)count,
               .kind = BUF_TMP,
               .may_alias = IR_NONE,
               .tensor = IR_NONE,
               .offset = ir_size_int(0)};
    Access access = {.buf = prog->bufs.count, .index = IR_NONE};
    Poly stride = ir_poly_int(job, 1);
    bool overflow = false;
    for (uint32_t k = count; k-- > 0;) {
        buf.extent[k] = nest->axes[order[k]].extent;
        access.stride[order[k]] = ir_prog_size(job, prog, stride);
        stride = ir_poly_mul(job, stride, ir_size_poly(job, prog, buf.extent[k]), &overflow);
    }
    if (overflow) return IR_NONE;
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

bool gen_cut_equal(Job *job, const Prog *prog, const Nest *a, uint32_t a_id, const Nest *b, uint32_t b_id,
                   uint32_t *axis) {
    Match m = {.a = a, .b = b, .prog = prog};
    Mark mark = ir_mark(job);
    m.to = IR_NEW_ARRAY(job, uint32_t, b->stmts.count);
    for (uint32_t i = 0; i < b->stmts.count; i++) m.to[i] = IR_NONE;
    for (uint32_t k = 0; k < IR_MAX_AXES; k++) m.axis[k] = IR_NONE;
    bool equal = match_tree(&m, b_id, a_id);
    uint32_t image = 0, domain = b->stmts.at[b_id].domain;
    for (uint32_t k = 0; equal && k < b->axis_count; k++) {
        if (!(domain >> k & 1)) continue;
        equal = m.axis[k] != IR_NONE;
        if (equal) image |= (uint32_t)1 << m.axis[k];
    }
    ir_reset(job, mark);
    memcpy(axis, m.axis, sizeof m.axis);
    return equal && image == a->stmts.at[a_id].domain;
}
