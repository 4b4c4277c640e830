/* axes: the fewest axes that say the same, the same ones in nests that fuse may join.
 *
 * needs   Prog of lower
 * gives   no axis of extent 1; pointwise nests split into row and inner as the reductions they could join; linked nests
 *         split to their common refinement, where one's axes are products of the other's, in loop order; neighbours
 *         merged where stride[outer] = extent[inner]*stride[inner] in every access of every nest of a family (equal
 *         axes, joined by a tmp or a full read), unless an index value runs along one of them; letters by the order of
 *         the data's dims
 * breaks  nothing */
#include "gen/gen.h"
#include "gen/nests.h"

static void drop_ones(Job *job, Prog *prog, Nest *nest) {
    AxisChange change = {0};
    for (uint32_t i = 0; i < nest->axis_count; i++) {
        if (ir_size_is(nest->axes[i].extent, 1)) continue;
        uint32_t to = change.axis_count++;
        change.row_count += i < nest->row_count;
        change.axes[to] = nest->axes[i];
        change.mask[i] = (uint32_t)1 << to;
        change.source[to] = i;
        change.factor[to] = ir_poly_int(job, 1);
    }
    if (change.axis_count < nest->axis_count) gen_nest_change_axes(job, prog, nest, &change);
    /* a reduction of one element is none */
    if (!gen_nest_reduces(nest) && nest->row_count == nest->axis_count) nest->class = CLASS_POINTWISE;
}

/* ---- row and inner axes of pointwise nests ---- */

/* The axes of nest along which its load runs as a row of the reduction's nest does; false where they do not match. */
static bool rows_of_shared_read(const Nest *reduction, const Access *full, const Nest *nest, uint32_t *rows) {
    for (uint32_t s = 0; s < nest->stmts.count; s++) {
        if (nest->stmts.at[s].op != OP_LOAD) continue;
        const Access *load = &nest->accesses.at[nest->stmts.at[s].access];
        if (load->buf != full->buf || !ir_size_equal(load->offset, full->offset)) continue;
        uint32_t mask = 0, matched = 0;
        for (uint32_t i = 0; i < nest->axis_count; i++) {
            for (uint32_t k = 0; k < reduction->axis_count; k++) {
                if (matched >> k & 1 || !ir_size_equal(load->stride[i], full->stride[k]) ||
                    !ir_size_equal(nest->axes[i].extent, reduction->axes[k].extent))
                    continue;
                matched |= (uint32_t)1 << k;
                if (k < reduction->row_count) mask |= (uint32_t)1 << i;
                break;
            }
        }
        if (matched != ((uint32_t)1 << reduction->axis_count) - 1) continue;
        *rows = mask;
        return true;
    }
    return false;
}

static bool rows_of_sharing(const Prog *prog, const Nest *nest, uint32_t *rows) {
    for (uint32_t n = 0; n < prog->nests.count; n++) {
        const Nest *other = &prog->nests.at[n];
        if (!gen_nest_reduces(other) || other->axis_count != nest->axis_count) continue;
        for (uint32_t s = 0; s < other->stmts.count; s++) {
            if (!ir_is_full_read(other, &other->stmts.at[s])) continue;
            if (rows_of_shared_read(other, &other->accesses.at[other->stmts.at[s].access], nest, rows) &&
                !(*rows >> (nest->axis_count - 1) & 1))
                return true;
        }
    }
    return false;
}

/* Rows are the axes over which results of reductions vary that this nest reads; else those of a reduction that reads
 * the same elements; else all but the last. A row never takes the last axis, along which memory is contiguous. */
static uint32_t pointwise_rows(const Prog *prog, const Nest *nest) {
    uint32_t last = (uint32_t)1 << (nest->axis_count - 1), rows = 0;
    bool found = false;
    for (uint32_t s = 0; s < nest->stmts.count; s++) {
        const Stmt *stmt = &nest->stmts.at[s];
        if (stmt->op != OP_LOAD || prog->bufs.at[nest->accesses.at[stmt->access].buf].kind != BUF_TMP) continue;
        if (stmt->domain & last) continue;
        rows |= stmt->domain;
        found = true;
    }
    if (found || rows_of_sharing(prog, nest, &rows)) return rows;
    return last - 1;
}

static void split_pointwise(Job *job, Prog *prog, Nest *nest) {
    if (nest->class != CLASS_POINTWISE || !nest->axis_count) return;
    uint32_t rows = pointwise_rows(prog, nest);
    AxisChange change = {.axis_count = nest->axis_count};
    for (uint32_t pass = 0, to = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < nest->axis_count; i++) {
            if ((rows >> i & 1) == pass) continue;
            change.row_count += pass == 0;
            change.axes[to] = nest->axes[i];
            change.mask[i] = (uint32_t)1 << to;
            change.source[to] = i;
            change.factor[to++] = ir_poly_int(job, 1);
        }
    }
    gen_nest_change_axes(job, prog, nest, &change);
}

/* ---- the common refinement ---- */

static void push_part(Job *job, AxisParts *parts, uint32_t axis, Poly extent) {
    IR_REQUIRE(job, parts->count < IR_MAX_AXES);
    parts->of[parts->count] = axis;
    parts->extent[parts->count++] = extent;
}

/* Cuts axes [from, to) of a and [from_b, to_b) of b at the same places; false where that cannot be. */
static bool refine_side(Job *job, const Multiples *known, const Poly *a, uint32_t from, uint32_t to, const Poly *b,
                        uint32_t from_b, uint32_t to_b, AxisParts *a_parts, AxisParts *b_parts) {
    Poly x = {0}, y = {0}, rest;
    uint32_t i = from, k = from_b;
    bool a_open = false, b_open = false; /* part of an axis is left */
    while (i < to && k < to_b) {
        if (!a_open) x = a[i];
        if (!b_open) y = b[k];
        a_open = b_open = false;
        if (a_parts->count == IR_MAX_AXES || !x.count || !y.count) return false; /* b has as many */
        Poly part = x;
        if (!ir_poly_equal(x, y)) {
            if (ir_poly_div(job, x, y, known, &rest))
                a_open = true, part = y;
            else if (ir_poly_div(job, y, x, known, &rest))
                b_open = true;
            else
                return false;
        }
        push_part(job, a_parts, i, part);
        push_part(job, b_parts, k, part);
        if (a_open)
            x = rest;
        else
            i++;
        if (b_open)
            y = rest;
        else
            k++;
    }
    return i == to && k == to_b;
}

static void split_axes(Job *job, Prog *prog, Nest *nest, const AxisParts *parts) {
    AxisChange change = {.axis_count = parts->count};
    uint32_t order[IR_MAX_AXES];
    Poly factor = ir_poly_int(job, 1);
    for (uint32_t k = parts->count; k-- > 0;) {
        bool overflow = false;
        if (k + 1 == parts->count || parts->of[k + 1] != parts->of[k]) factor = ir_poly_int(job, 1);
        change.mask[parts->of[k]] |= (uint32_t)1 << k;
        change.source[k] = parts->of[k];
        change.factor[k] = factor;
        change.axes[k].extent = ir_prog_size(job, prog, parts->extent[k]);
        change.row_count += parts->of[k] < nest->row_count;
        factor = ir_poly_mul(job, factor, parts->extent[k], &overflow);
        IR_REQUIRE(job, !overflow);
        order[k] = gen_axis_order(nest->axes[parts->of[k]].id) * IR_MAX_AXES + k;
    }
    bool same = parts->count == nest->axis_count; /* then each is a part of its own */
    for (uint32_t k = 0; k < parts->count; k++) {
        uint32_t before = 0;
        for (uint32_t m = 0; m < parts->count; m++) before += order[m] < order[k];
        change.axes[k].id = gen_axis_letter(before, parts->count, k >= change.row_count);
        same = same && change.axes[k].id == nest->axes[k].id;
    }
    if (!same) gen_nest_change_axes(job, prog, nest, &change);
}

/* Both touch some buffer, so that they might be joined. */
static bool share_buffer(const Nest *a, const Nest *b) {
    for (uint32_t i = 0; i < a->accesses.count; i++)
        for (uint32_t k = 0; k < b->accesses.count; k++)
            if (a->accesses.at[i].buf == b->accesses.at[k].buf) return true;
    return false;
}

bool gen_refine_axes(Job *job, Prog *prog, Nest *a, Nest *b, bool sides, AxisParts *a_parts, AxisParts *b_parts) {
    Poly x[IR_MAX_AXES], y[IR_MAX_AXES];
    const uint32_t a_rows = sides ? a->row_count : 0, b_rows = sides ? b->row_count : 0;
    for (uint32_t i = 0; i < a->axis_count; i++) x[i] = ir_size_poly(job, prog, a->axes[i].extent);
    for (uint32_t i = 0; i < b->axis_count; i++) y[i] = ir_size_poly(job, prog, b->axes[i].extent);
    *a_parts = *b_parts = (AxisParts){0};
    const Multiples known = ir_dim_multiples(job, prog->dims.at, prog->dims.count);
    if (!refine_side(job, &known, x, 0, a_rows, y, 0, b_rows, a_parts, b_parts) ||
        !refine_side(job, &known, x, a_rows, a->axis_count, y, b_rows, b->axis_count, a_parts, b_parts))
        return false;
    split_axes(job, prog, a, a_parts);
    split_axes(job, prog, b, b_parts);
    return true;
}

/* Splits the axes of two nests until they are equal; false where they are, or cannot be made so. */
static bool refine(Job *job, Prog *prog, Nest *a, Nest *b) {
    AxisParts a_parts, b_parts;
    if (!a->axis_count || !b->axis_count || gen_same_axes(a, b) || !share_buffer(a, b)) return false;
    return gen_refine_axes(job, prog, a, b, true, &a_parts, &b_parts);
}

static void refine_all(Job *job, Prog *prog) {
    for (bool again = true; again;) {
        again = false;
        for (uint32_t n = 0; n < prog->nests.count; n++)
            for (uint32_t m = 0; m < n; m++)
                if (refine(job, prog, &prog->nests.at[m], &prog->nests.at[n])) again = true;
    }
}

/* ---- merging ---- */

/* They keep equal axes, as those of them that were put together before do. */
static void put_together(const Prog *prog, uint32_t *family, uint32_t a, uint32_t b) {
    const uint32_t low = family[a] < family[b] ? family[a] : family[b], high = family[a] ^ family[b] ^ low;
    if (low == high || !gen_same_axes(&prog->nests.at[a], &prog->nests.at[b])) return;
    for (uint32_t k = 0; k < prog->nests.count; k++)
        if (family[k] == high) family[k] = low;
}

/* A nest that has to run after another stays with it: it reads what that one stores, or overwrites what it reads. */
static void put_in_order(Job *job, const Prog *prog, uint32_t *family) {
    uint32_t *writer = IR_NEW_ARRAY(job, uint32_t, prog->bufs.count + 1);
    for (uint32_t b = 0; b < prog->bufs.count; b++) writer[b] = IR_NONE;
    for (uint32_t n = 0; n < prog->nests.count; n++) {
        const Nest *nest = &prog->nests.at[n];
        for (uint32_t i = 0; i < nest->stmts.count; i++)
            if (nest->stmts.at[i].op == OP_STORE || nest->stmts.at[i].op == OP_PARTIAL_ACCUMULATE)
                writer[nest->accesses.at[nest->stmts.at[i].access].buf] = n;
    }
    for (uint32_t n = 0; n < prog->nests.count; n++) {
        const Nest *nest = &prog->nests.at[n];
        for (uint32_t i = 0; i < nest->stmts.count; i++) {
            if (nest->stmts.at[i].op != OP_LOAD) continue;
            const uint32_t read = nest->accesses.at[nest->stmts.at[i].access].buf;
            const BufKind kind = prog->bufs.at[read].kind;
            if (writer[read] != IR_NONE && (kind == BUF_TMP || kind == BUF_WORKSPACE))
                put_together(prog, family, n, writer[read]);
            for (uint32_t o = 0; o < prog->bufs.count; o++)
                if (prog->bufs.at[o].may_alias == read && writer[o] != IR_NONE)
                    put_together(prog, family, n, writer[o]);
        }
    }
}

/* family[n]: the first nest of those that n has to keep equal axes with. */
static uint32_t *find_families(Job *job, const Prog *prog) {
    uint32_t count = prog->nests.count;
    uint32_t *family = IR_NEW_ARRAY(job, uint32_t, count + 1);
    for (uint32_t n = 0; n < count; n++) family[n] = n;
    put_in_order(job, prog, family);
    for (uint32_t n = 0; n < count; n++)
        for (uint32_t m = 0; m < n; m++)
            if (family[m] != family[n] && gen_share_full_read(&prog->nests.at[m], &prog->nests.at[n]))
                put_together(prog, family, m, n);
    return family;
}

static bool merges(Job *job, const Prog *prog, const Nest *nest, uint32_t outer) {
    uint32_t inner = outer + 1, pair = (uint32_t)3 << outer;
    if (inner == nest->row_count) return false;
    Poly extent = ir_size_poly(job, prog, nest->axes[inner].extent);
    for (uint32_t i = 0; i < nest->stmts.count; i++) {
        const Stmt *stmt = &nest->stmts.at[i];
        if (stmt->op == OP_IOTA && (stmt->axis == outer || stmt->axis == inner)) return false;
        if (stmt->consumed & pair && (stmt->consumed & pair) != pair) return false;
    }
    for (uint32_t i = 0; i < nest->accesses.count; i++) {
        const Access *access = &nest->accesses.at[i];
        bool overflow = false;
        Poly step = ir_poly_mul(job, extent, ir_size_poly(job, prog, access->stride[inner]), &overflow);
        if (overflow || !ir_poly_equal(step, ir_size_poly(job, prog, access->stride[outer]))) return false;
    }
    return true;
}

static void merge(Job *job, Prog *prog, Nest *nest, uint32_t outer) {
    bool overflow = false;
    Poly extent = ir_poly_mul(job, ir_size_poly(job, prog, nest->axes[outer].extent),
                              ir_size_poly(job, prog, nest->axes[outer + 1].extent), &overflow);
    IR_REQUIRE(job, !overflow);
    AxisChange change = {.axis_count = nest->axis_count - 1, .row_count = nest->row_count};
    if (outer < nest->row_count) change.row_count--;
    for (uint32_t i = 0; i < nest->axis_count; i++) {
        uint32_t to = i <= outer ? i : i - 1;
        change.mask[i] = (uint32_t)1 << to;
        if (i == outer) continue;
        change.axes[to] = nest->axes[i];
        change.source[to] = i;
        change.factor[to] = ir_poly_int(job, 1);
    }
    change.axes[outer] = (Axis){.id = nest->axes[outer].id, .extent = ir_prog_size(job, prog, extent)};
    gen_nest_change_axes(job, prog, nest, &change);
}

static void merge_family(Job *job, Prog *prog, const uint32_t *family, uint32_t first) {
    for (uint32_t outer = 0; outer + 1 < prog->nests.at[first].axis_count;) {
        bool all = true;
        for (uint32_t n = first; n < prog->nests.count && all; n++)
            if (family[n] == first) all = merges(job, prog, &prog->nests.at[n], outer);
        for (uint32_t n = first; n < prog->nests.count && all; n++)
            if (family[n] == first) merge(job, prog, &prog->nests.at[n], outer);
        if (!all) outer++;
    }
}

static void name_axes(Nest *nest) {
    char id[IR_MAX_AXES];
    for (uint32_t i = 0; i < nest->axis_count; i++) {
        uint32_t before = 0;
        for (uint32_t k = 0; k < nest->axis_count; k++)
            before += gen_axis_order(nest->axes[k].id) < gen_axis_order(nest->axes[i].id);
        id[i] = gen_axis_letter(before, nest->axis_count, i >= nest->row_count);
    }
    for (uint32_t i = 0; i < nest->axis_count; i++) nest->axes[i].id = id[i];
}

void gen_axes(Job *job, Unit *unit) {
    Prog *prog = unit->prog;
    for (uint32_t n = 0; n < prog->nests.count; n++) drop_ones(job, prog, &prog->nests.at[n]);
    for (uint32_t n = 0; n < prog->nests.count; n++) split_pointwise(job, prog, &prog->nests.at[n]);
    refine_all(job, prog);
    uint32_t *family = find_families(job, prog);
    for (uint32_t n = 0; n < prog->nests.count; n++)
        if (family[n] == n) merge_family(job, prog, family, n);
    for (uint32_t n = 0; n < prog->nests.count; n++) name_axes(&prog->nests.at[n]);
    gen_tidy(job, prog);
}
