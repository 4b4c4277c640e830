/* What several Prog passes do to nests (gen/nests.h): change their axes, compare them, tidy up after them. */
#include "gen/nests.h"

#include <string.h>

static const char between[] = "abdefghijklmnopq";

char gen_axis_letter(uint32_t i, uint32_t count, bool inner) {
    if (count == 1) return inner ? 'c' : 'r';
    return i == 0 ? 'r' : i + 1 == count ? 'c' : between[i - 1];
}

uint32_t gen_axis_order(char letter) { return letter == 'r' ? 0 : letter == 'c' ? UINT8_MAX : (uint8_t)letter; }

AxisChange gen_axes_kept(Job *job, const Nest *nest) {
    AxisChange change = {.axis_count = nest->axis_count, .row_count = nest->row_count};
    for (uint32_t i = 0; i < nest->axis_count; i++) {
        change.axes[i] = nest->axes[i];
        change.mask[i] = (uint32_t)1 << i;
        change.source[i] = i;
        change.factor[i] = ir_poly_int(job, 1);
    }
    return change;
}

static Size scaled(Job *job, Prog *prog, Size size, Poly factor) {
    bool overflow = false;
    Size result = ir_prog_size(job, prog, ir_poly_mul(job, ir_size_poly(job, prog, size), factor, &overflow));
    IR_REQUIRE(job, !overflow);
    return result;
}

static uint32_t changed_mask(const AxisChange *change, uint32_t old_count, uint32_t mask) {
    uint32_t result = 0;
    for (uint32_t i = 0; i < old_count; i++)
        if (mask >> i & 1) result |= change->mask[i];
    return result;
}

static uint32_t add_number(Job *job, Nest *nest, const Stmt *like, int64_t number) {
    Stmt stmt = {.op = OP_CONST,
                 .dtype = DTYPE_I64,
                 .access = IR_NONE,
                 .axis = IR_NONE,
                 .bits = (uint64_t)number,
                 .place = like->place,
                 .value = like->value};
    return ir_nest_add(job, nest, &stmt);
}

static uint32_t add_size(Job *job, Prog *prog, Nest *nest, const Stmt *like, Poly poly) {
    int64_t number;
    if (ir_poly_is_int(poly, &number)) return add_number(job, nest, like, number);
    Stmt stmt = *like;
    stmt.op = OP_SIZE;
    stmt.size = ir_prog_size(job, prog, poly);
    return ir_nest_add(job, nest, &stmt);
}

static uint32_t add_pair(Job *job, Nest *nest, const Stmt *like, Op op, uint32_t a, uint32_t b) {
    Stmt stmt = *like;
    stmt.op = op;
    stmt.arg_count = 2;
    stmt.arg[0] = a;
    stmt.arg[1] = b;
    return ir_nest_add(job, nest, &stmt);
}

/* The index along an old axis from those along the new ones. */
static uint32_t changed_iota(Job *job, Prog *prog, Nest *nest, const AxisChange *change, const Stmt *old) {
    uint32_t sum = IR_NONE;
    for (uint32_t k = 0; k < change->axis_count; k++) {
        if (!(change->mask[old->axis] >> k & 1)) continue;
        int64_t one;
        Stmt iota = *old;
        iota.axis = k;
        uint32_t term = ir_nest_add(job, nest, &iota);
        if (!ir_poly_is_int(change->factor[k], &one) || one != 1)
            term = add_pair(job, nest, old, OP_MUL, term, add_size(job, prog, nest, old, change->factor[k]));
        sum = sum == IR_NONE ? term : add_pair(job, nest, old, OP_ADD, sum, term);
    }
    return sum == IR_NONE ? add_number(job, nest, old, 0) : sum;
}

static uint32_t changed_access(Job *job, Prog *prog, Nest *nest, const AxisChange *change, const uint32_t *stmt_id,
                               const Access *old) {
    Access access = *old;
    if (access.index != IR_NONE) access.index = stmt_id[access.index];
    for (uint32_t k = 0; k < IR_MAX_AXES; k++) {
        access.stride[k] = ir_size_int(0);
        if (k < change->axis_count)
            access.stride[k] = scaled(job, prog, old->stride[change->source[k]], change->factor[k]);
    }
    return ir_nest_add_access(job, nest, &access);
}

void gen_nest_change_axes(Job *job, Prog *prog, Nest *nest, const AxisChange *change) {
    Nest old = *nest;
    uint32_t *stmt_id = IR_NEW_ARRAY(job, uint32_t, old.stmts.count + 1);
    memset(&nest->stmts, 0, sizeof nest->stmts);
    memset(&nest->accesses, 0, sizeof nest->accesses);
    nest->axis_count = change->axis_count;
    nest->row_count = change->row_count;
    memcpy(nest->axes, change->axes, sizeof nest->axes);
    for (uint32_t i = 0; i < old.stmts.count; i++) {
        Stmt stmt = old.stmts.at[i];
        if (stmt.op == OP_IOTA) {
            stmt_id[i] = changed_iota(job, prog, nest, change, &stmt);
            continue;
        }
        for (uint32_t k = 0; k < stmt.arg_count; k++) stmt.arg[k] = stmt_id[stmt.arg[k]];
        if (stmt.access != IR_NONE)
            stmt.access = changed_access(job, prog, nest, change, stmt_id, &old.accesses.at[stmt.access]);
        if (stmt.op == OP_REDUCE && stmt.consumed) {
            stmt.consumed = changed_mask(change, old.axis_count, stmt.consumed);
            if (!stmt.consumed && ir_reduction(stmt.reduction)->results == 1) { /* of one element */
                stmt_id[i] = stmt.arg[0];
                continue;
            }
        } else {
            stmt.consumed = changed_mask(change, old.axis_count, stmt.consumed);
        }
        stmt_id[i] = ir_nest_add(job, nest, &stmt);
    }
}

bool gen_same_axes(const Nest *a, const Nest *b) {
    if (a->axis_count != b->axis_count || a->row_count != b->row_count) return false;
    for (uint32_t i = 0; i < a->axis_count; i++)
        if (!ir_size_equal(a->axes[i].extent, b->axes[i].extent)) return false;
    return true;
}

bool gen_same_access(const Nest *nest, const Access *a, const Access *b) {
    if (a->buf != b->buf || a->index != IR_NONE || b->index != IR_NONE || !ir_size_equal(a->offset, b->offset))
        return false;
    for (uint32_t i = 0; i < nest->axis_count; i++)
        if (!ir_size_equal(a->stride[i], b->stride[i])) return false;
    return true;
}

bool gen_nest_loads(const Nest *nest, uint32_t buf) {
    for (uint32_t i = 0; i < nest->stmts.count; i++) {
        const Stmt *stmt = &nest->stmts.at[i];
        if (stmt->op == OP_LOAD && nest->accesses.at[stmt->access].buf == buf) return true;
    }
    return false;
}

const Stmt *gen_nest_store(const Nest *nest, uint32_t buf) {
    for (uint32_t i = 0; i < nest->stmts.count; i++) {
        const Stmt *stmt = &nest->stmts.at[i];
        if ((stmt->op == OP_STORE || stmt->op == OP_PARTIAL_ACCUMULATE) && nest->accesses.at[stmt->access].buf == buf)
            return stmt;
    }
    return NULL;
}

bool gen_nest_stores(const Nest *nest, uint32_t buf) { return gen_nest_store(nest, buf) != NULL; }

bool gen_nest_reduces(const Nest *nest) {
    for (uint32_t i = 0; i < nest->stmts.count; i++)
        if (nest->stmts.at[i].op == OP_REDUCE) return true;
    return false;
}

int64_t gen_nest_statements(const Prog *prog, const Nest *nest) {
    int64_t count = 0;
    for (uint32_t i = 0; i < nest->stmts.count; i++) {
        const Stmt *stmt = &nest->stmts.at[i];
        count += stmt->op != OP_STORE || prog->bufs.at[nest->accesses.at[stmt->access].buf].kind != BUF_TMP;
    }
    return count;
}

const Stmt *gen_nest_partial(const Nest *nest) {
    for (uint32_t i = 0; i < nest->stmts.count; i++)
        if (nest->stmts.at[i].op == OP_PARTIAL_ACCUMULATE) return &nest->stmts.at[i];
    return NULL;
}

bool gen_is_plain(const Nest *nest) { return nest->class == CLASS_POINTWISE && !gen_nest_partial(nest); }

/* Both pick from a buf by an index that both load from one place. */
static bool same_pick(const Nest *a, const Access *x, const Nest *b, const Access *y) {
    if (x->index == IR_NONE || y->index == IR_NONE || !ir_size_equal(x->index_stride, y->index_stride)) return false;
    const Stmt *p = &a->stmts.at[x->index], *q = &b->stmts.at[y->index];
    if (p->op != OP_LOAD || q->op != OP_LOAD) return false;
    if (!gen_same_access(a, &a->accesses.at[p->access], &b->accesses.at[q->access])) return false;
    Access plain_x = *x, plain_y = *y;
    plain_x.index = plain_y.index = IR_NONE;
    return gen_same_access(a, &plain_x, &plain_y);
}

bool gen_share_full_read(const Nest *a, const Nest *b) {
    const uint32_t all = ((uint32_t)1 << a->axis_count) - 1;
    if (a->axis_count != b->axis_count || !a->axis_count) return false;
    for (uint32_t i = 0; i < a->stmts.count; i++) {
        if (a->stmts.at[i].op != OP_LOAD || a->stmts.at[i].domain != all) continue;
        const Access *x = &a->accesses.at[a->stmts.at[i].access];
        for (uint32_t j = 0; j < b->stmts.count; j++) {
            if (b->stmts.at[j].op != OP_LOAD) continue;
            const Access *y = &b->accesses.at[b->stmts.at[j].access];
            if (gen_same_access(a, x, y) || same_pick(a, x, b, y)) return true;
        }
    }
    return false;
}

bool gen_match_axes(const Nest *like, const Nest *nest, uint32_t *source) {
    for (uint32_t i = 0; i < like->stmts.count; i++) {
        if (!ir_is_full_read(like, &like->stmts.at[i])) continue;
        const Access *full = &like->accesses.at[like->stmts.at[i].access];
        for (uint32_t k = 0; k < nest->stmts.count; k++) {
            const Access *load = &nest->accesses.at[nest->stmts.at[k].access];
            if (nest->stmts.at[k].op != OP_LOAD || load->buf != full->buf || !ir_size_equal(load->offset, full->offset))
                continue;
            uint32_t taken = 0, matched = 0;
            for (uint32_t a = 0; a < like->axis_count; a++)
                for (uint32_t b = 0; b < nest->axis_count; b++) {
                    if (taken >> b & 1 || !ir_size_equal(full->stride[a], load->stride[b]) ||
                        !ir_size_equal(like->axes[a].extent, nest->axes[b].extent))
                        continue;
                    source[a] = b;
                    taken |= (uint32_t)1 << b;
                    matched++;
                    break;
                }
            if (matched == like->axis_count) return true;
        }
    }
    return false;
}

bool gen_turn_nest(Job *job, Prog *prog, const Nest *like, const Nest *nest, Nest *turned) {
    uint32_t source[IR_MAX_AXES];
    if (like->axis_count != nest->axis_count || !gen_match_axes(like, nest, source)) return false;
    AxisChange change = {.axis_count = like->axis_count, .row_count = like->row_count};
    for (uint32_t a = 0; a < like->axis_count; a++) {
        change.axes[a] = like->axes[a];
        change.mask[source[a]] = (uint32_t)1 << a;
        change.source[a] = source[a];
        change.factor[a] = ir_poly_int(job, 1);
    }
    *turned = *nest;
    gen_nest_change_axes(job, prog, turned, &change);
    return true;
}

bool gen_nest_after(const Prog *prog, const Nest *a, const Nest *b) {
    for (uint32_t i = 0; i < b->stmts.count; i++) {
        const Stmt *stmt = &b->stmts.at[i];
        if (stmt->access == IR_NONE) continue;
        uint32_t id = b->accesses.at[stmt->access].buf;
        const Buf *buf = &prog->bufs.at[id];
        bool made = buf->kind == BUF_TMP || buf->kind == BUF_WORKSPACE;
        if (stmt->op == OP_LOAD && made && gen_nest_stores(a, id)) return true;
        if (stmt->op == OP_STORE && buf->may_alias != IR_NONE && gen_nest_loads(a, buf->may_alias)) return true;
    }
    return false;
}

int64_t gen_stride_magnitude(Job *job, const Prog *prog, Size stride) {
    int64_t *dims = IR_NEW_ARRAY(job, int64_t, prog->dims.count + 1), value;
    for (uint32_t i = 0; i < prog->dims.count; i++) dims[i] = 65537 + (int64_t)i;
    if (!ir_poly_eval(ir_size_poly(job, prog, stride), dims, prog->dims.count, NULL, 0, &value)) return INT64_MAX;
    return value < 0 ? -value : value;
}

/* The number of a name "t17" that is below count; count else. */
static uint32_t tmp_number(const char *name, uint32_t count) {
    int64_t number;
    const size_t length = strlen(name);
    if (name[0] != 't' || (name[1] < '0' || name[1] > '9')) return count;
    if (!ir_read_int(name + 1, length - 1, &number) || number >= count) return count;
    return (uint32_t)number;
}

/* t0, t1, ...: none that a tensor of the user's has, nor one that an earlier pass gave. */
const char *gen_tmp_name(Job *job, const Prog *prog) {
    const uint32_t count = prog->bufs.count;
    bool *taken = IR_NEW_ARRAY(job, bool, count + (size_t)2);
    for (uint32_t i = 0; i < count; i++) taken[tmp_number(prog->bufs.at[i].name, count + 1)] = true;
    uint32_t number = 0;
    while (number <= count && taken[number]) number++;
    return ir_format(job, "t%u", number);
}

void gen_values_first(Job *job, Nest *nest) {
    uint32_t *to = IR_NEW_ARRAY(job, uint32_t, nest->stmts.count + (size_t)1), count = 0;
    Stmt *sorted = IR_NEW_ARRAY(job, Stmt, nest->stmts.count + (size_t)1);
    for (int values = 1; values >= 0; values--)
        for (uint32_t i = 0; i < nest->stmts.count; i++)
            if (ir_is_value(nest->stmts.at[i].op) == values) to[i] = count++;
    for (uint32_t i = 0; i < nest->stmts.count; i++) {
        Stmt *stmt = &sorted[to[i]];
        *stmt = nest->stmts.at[i];
        for (uint32_t k = 0; k < stmt->arg_count; k++) stmt->arg[k] = to[stmt->arg[k]];
    }
    for (uint32_t i = 0; i < nest->accesses.count; i++)
        if (nest->accesses.at[i].index != IR_NONE) nest->accesses.at[i].index = to[nest->accesses.at[i].index];
    nest->stmts.at = sorted;
    nest->stmts.capacity = count;
}

/* ---- tidy ---- */

/* Of each buf: whether some nest has a statement of this op on it. */
static bool *find_touched(Job *job, const Prog *prog, Op op) {
    bool *touched = IR_NEW_ARRAY(job, bool, prog->bufs.count + 1);
    for (uint32_t n = 0; n < prog->nests.count; n++) {
        const Nest *nest = &prog->nests.at[n];
        for (uint32_t i = 0; i < nest->stmts.count; i++)
            if (nest->stmts.at[i].op == op) touched[nest->accesses.at[nest->stmts.at[i].access].buf] = true;
    }
    return touched;
}

/* Of each buf: how many nests have an access of it. */
static uint32_t *count_holders(Job *job, const Prog *prog) {
    uint32_t *holders = IR_NEW_ARRAY(job, uint32_t, prog->bufs.count + 1);
    uint32_t *last = IR_NEW_ARRAY(job, uint32_t, prog->bufs.count + 1); /* nest that was counted, plus 1 */
    for (uint32_t n = 0; n < prog->nests.count; n++) {
        const Nest *nest = &prog->nests.at[n];
        for (uint32_t i = 0; i < nest->accesses.count; i++) {
            const uint32_t buf = nest->accesses.at[i].buf;
            if (last[buf] != n + 1) holders[buf]++;
            last[buf] = n + 1;
        }
    }
    return holders;
}

/* Stores of a nest to tmps that it alone has, and does not read. */
static bool drop_own(Job *job, const Prog *prog, const uint32_t *holders, Nest *nest) {
    bool changed = false;
    for (uint32_t i = 0; i < nest->stmts.count; i++) {
        Stmt *stmt = &nest->stmts.at[i];
        if (stmt->op != OP_STORE) continue;
        const uint32_t buf = nest->accesses.at[stmt->access].buf;
        if (prog->bufs.at[buf].kind != BUF_TMP || holders[buf] > 1 || gen_nest_loads(nest, buf)) continue;
        *stmt = (Stmt){.op = OP_CONST, .dtype = DTYPE_I64, .access = IR_NONE}; /* swept next */
        changed = true;
    }
    if (changed) ir_nest_sweep(job, nest);
    return changed;
}

/* Turns stores to tmp buffers that nobody reads into nothing; false when there was none. A tmp has one writer, so what
 * two nests have an access of is read. Nests are swept. */
static bool drop_unread(Job *job, Prog *prog) {
    const Mark mark = ir_mark(job);
    const uint32_t *holders = count_holders(job, prog);
    bool dropped = false;
    for (uint32_t n = 0; n < prog->nests.count; n++) {
        Nest *nest = &prog->nests.at[n];
        bool alone = false;
        for (uint32_t i = 0; i < nest->accesses.count && !alone; i++) {
            const uint32_t buf = nest->accesses.at[i].buf;
            alone = prog->bufs.at[buf].kind == BUF_TMP && holders[buf] == 1;
        }
        if (alone && drop_own(job, prog, holders, nest)) dropped = true;
    }
    ir_reset(job, mark);
    return dropped;
}

static void drop_empty_nests(Prog *prog) {
    uint32_t kept = 0;
    for (uint32_t n = 0; n < prog->nests.count; n++)
        if (prog->nests.at[n].stmts.count) prog->nests.at[kept++] = prog->nests.at[n];
    prog->nests.count = kept;
}

static void drop_bufs(Job *job, Prog *prog) {
    uint32_t *id = IR_NEW_ARRAY(job, uint32_t, prog->bufs.count + 1);
    bool *stored = find_touched(job, prog, OP_STORE), *parted = find_touched(job, prog, OP_PARTIAL_ACCUMULATE);
    uint32_t kept = 0;
    for (uint32_t b = 0; b < prog->bufs.count; b++) {
        BufKind kind = prog->bufs.at[b].kind;
        id[b] = kept;
        if ((kind != BUF_TMP || stored[b]) && (kind != BUF_WORKSPACE || parted[b]))
            prog->bufs.at[kept++] = prog->bufs.at[b];
    }
    prog->bufs.count = kept;
    for (uint32_t b = 0; b < kept; b++)
        if (prog->bufs.at[b].may_alias != IR_NONE) prog->bufs.at[b].may_alias = id[prog->bufs.at[b].may_alias];
    for (uint32_t n = 0; n < prog->nests.count; n++) {
        Nest *nest = &prog->nests.at[n];
        for (uint32_t i = 0; i < nest->accesses.count; i++) nest->accesses.at[i].buf = id[nest->accesses.at[i].buf];
    }
}

typedef void SizeVisitor(Size *size, uint32_t *state);

static void mark_size(Size *size, uint32_t *used) {
    if (size->kind == SIZE_EXPRESSION) used[size->value] = 1;
}

static void renumber_size(Size *size, uint32_t *id) {
    if (size->kind == SIZE_EXPRESSION) size->value = id[size->value];
}

static void mark_part(Size *size, uint32_t *used) {
    if (size->kind == SIZE_PART) used[size->value] = 1;
}

static void renumber_part(Size *size, uint32_t *id) {
    if (size->kind == SIZE_PART) size->value = id[size->value];
}

static void visit_sizes(Prog *prog, SizeVisitor *visit, uint32_t *state) {
    for (uint32_t b = 0; b < prog->bufs.count; b++) {
        for (uint32_t d = 0; d < prog->bufs.at[b].rank; d++) visit(&prog->bufs.at[b].extent[d], state);
        visit(&prog->bufs.at[b].offset, state);
    }
    for (uint32_t n = 0; n < prog->nests.count; n++) {
        Nest *nest = &prog->nests.at[n];
        for (uint32_t i = 0; i < nest->axis_count; i++) visit(&nest->axes[i].extent, state);
        for (uint32_t i = 0; i < nest->stmts.count; i++)
            if (nest->stmts.at[i].op == OP_SIZE) visit(&nest->stmts.at[i].size, state);
        for (uint32_t i = 0; i < nest->accesses.count; i++) {
            Access *access = &nest->accesses.at[i];
            visit(&access->offset, state);
            for (uint32_t k = 0; k < nest->axis_count; k++) visit(&access->stride[k], state);
            if (access->index != IR_NONE) visit(&access->index_stride, state);
            if (access->index != IR_NONE) visit(&access->index_extent, state);
        }
    }
}

static void drop_sizes(Job *job, Prog *prog) {
    uint32_t *used = IR_NEW_ARRAY(job, uint32_t, prog->sizes.count + 1);
    visit_sizes(prog, mark_size, used);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < prog->sizes.count; i++) {
        if (!used[i]) continue;
        prog->sizes.at[kept] = prog->sizes.at[i];
        used[i] = kept++;
    }
    prog->sizes.count = kept;
    visit_sizes(prog, renumber_size, used);
}

/* Part counts that nothing names; expressions name none. */
static void drop_parts(Job *job, Prog *prog) {
    uint32_t *used = IR_NEW_ARRAY(job, uint32_t, prog->parts.count + 1);
    visit_sizes(prog, mark_part, used);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < prog->parts.count; i++)
        if (used[i]) used[i] = kept++;
    for (uint32_t i = 0; i < kept; i++) prog->parts.at[i] = ir_format(job, "P%u", i);
    prog->parts.count = kept;
    visit_sizes(prog, renumber_part, used);
}

void gen_tidy_nest(Job *job, Prog *prog, Nest *nest) {
    ir_nest_sweep(job, nest);
    while (drop_unread(job, prog)) continue;
    drop_empty_nests(prog);
}

void gen_tidy(Job *job, Prog *prog) {
    for (uint32_t n = 0; n < prog->nests.count; n++) ir_nest_sweep(job, &prog->nests.at[n]);
    while (drop_unread(job, prog)) continue;
    drop_empty_nests(prog);
    drop_bufs(job, prog);
    drop_sizes(job, prog);
    drop_parts(job, prog);
}
