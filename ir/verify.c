/* In: any Prog. Out: the first breach of V1 to V8 as a message that starts with the rule's name, or NULL. Left alone:
 * the Prog. Rules are checked one after the other over all nests, so a later rule may rely on the earlier ones.
 *
 * What is decided here and what is not:
 *   V1  references, order of statements and of nests (a nest reads a tmp or ws only after the nest that writes it;
 * since nests run in the order of the list, that makes them acyclic). Operand counts. V4  that every reduction has an
 * identity in its operand's dtype, so that a point outside the extents can contribute it: any and all of bools, online
 * and welford of floats, accumulated across parts only single results; and that no extent is a negative number. V5  in
 * ir/verify_map.c. V6  beside the rule's text: the target is a ws whose first extent is a part, and every row axis that
 * is kept is in its map, as every element of a slot has one CTA that writes it. V7  a phase ends where a row is
 * combined, so reduce consumes inner axes only. Sums over row axes are partial_accumulates. V8  see check_alias. */
#include "ir/prog.h"
#include "ir/prog_text.h"
#include "ir/verify_map.h"

typedef struct Writer {
    uint32_t nest, stmt; /* IR_NONE: none yet */
} Writer;

typedef struct Check {
    Job *job;
    const Prog *prog;
    Writer *writers; /* of each buf */
    const char *why; /* the first breach */
} Check;

typedef struct Site { /* a statement in its place */
    const Nest *nest;
    const Stmt *stmt;
    uint32_t nest_index, stmt_index;
} Site;

static const Buf *site_buf(const Check *check, const Site *site) {
    return &check->prog->bufs.at[site->nest->accesses.at[site->stmt->access].buf];
}

static const Access *site_access(const Site *site) { return &site->nest->accesses.at[site->stmt->access]; }

/* "n0 %3" or "n0 store dx". */
static const char *site_name(const Check *check, const Site *site) {
    if (!ir_is_value(site->stmt->op))
        return ir_format(check->job, "%s %s %s", site->nest->name, ir_op_name(site->stmt->op),
                         site_buf(check, site)->name);
    uint32_t number = 0;
    for (uint32_t i = 0; i < site->stmt_index; i++) number += ir_is_value(site->nest->stmts.at[i].op);
    return ir_format(check->job, "%s %%%u", site->nest->name, number);
}

static const char *axes_text(const Check *check, const Nest *nest, uint32_t mask) {
    Text text = ir_text(check->job);
    for (uint32_t i = 0; i < nest->axis_count; i++)
        if (mask >> i & 1) ir_text_bytes(&text, &nest->axes[i].id, 1);
    return ir_text_string(&text);
}

/* Records a breach, the first one only. */
#define BREACH(check, rule, place, ...)                                                                                \
    do {                                                                                                               \
        if (!(check)->why)                                                                                             \
            (check)->why = ir_format((check)->job, rule ": %s: %s", (place), ir_format((check)->job, __VA_ARGS__));    \
    } while (0)

/* V1: references ------------------------------------------------------------------------------------------------- */

static bool size_in_range(const Prog *prog, Size size) {
    switch (size.kind) {
    case SIZE_INT: return true;
    case SIZE_DIM: return size.value >= 0 && size.value < prog->dims.count;
    case SIZE_EXPRESSION: return size.value >= 0 && size.value < prog->sizes.count;
    case SIZE_PART: return size.value >= 0 && size.value < prog->parts.count;
    }
    return false;
}

static void check_declarations(Check *check) {
    const Prog *prog = check->prog;
    for (uint32_t i = 0; i < prog->bufs.count; i++) {
        const Buf *buf = &prog->bufs.at[i];
        bool right =
            size_in_range(prog, buf->offset) && (buf->may_alias == IR_NONE || buf->may_alias < prog->bufs.count);
        for (uint8_t d = 0; d < buf->rank; d++) right = right && size_in_range(prog, buf->extent[d]);
        if (!right) BREACH(check, "V1", buf->name, "a size or a buf that is not there");
    }
    for (uint32_t n = 0; n < prog->nests.count; n++) {
        const Nest *nest = &prog->nests.at[n];
        bool right = nest->axis_count <= IR_MAX_AXES && nest->row_count <= nest->axis_count;
        for (uint32_t a = 0; right && a < nest->axis_count; a++) right = size_in_range(prog, nest->axes[a].extent);
        if (!right) BREACH(check, "V1", nest->name, "axes with a size that is not there");
        for (uint32_t i = 0; right && i < nest->accesses.count; i++) {
            const Access *access = &nest->accesses.at[i];
            right = access->buf < prog->bufs.count && size_in_range(prog, access->offset) &&
                    size_in_range(prog, access->index_stride) && size_in_range(prog, access->index_extent);
            for (uint32_t a = 0; a < nest->axis_count; a++) right = right && size_in_range(prog, access->stride[a]);
            if (!right) BREACH(check, "V1", nest->name, "an access to a buf or by a size that is not there");
        }
    }
}

static uint32_t operand_count(const Stmt *stmt) {
    switch (stmt->op) {
    case OP_CONST:
    case OP_SIZE:
    case OP_IOTA:
    case OP_LOAD: return 0;
    case OP_CAST:
    case OP_REDUCE:
    case OP_STORE:
    case OP_PARTIAL_ACCUMULATE: return 1;
    default: return stmt->op < OP_PRIMITIVES ? ir_op(stmt->op)->arity : IR_NONE;
    }
}

static bool is_defined(const Site *site, uint32_t value) {
    return value < site->stmt_index && ir_is_value(site->nest->stmts.at[value].op);
}

static void check_references(Check *check, const Site *site) {
    const Stmt *stmt = site->stmt;
    if (stmt->op >= OP_COUNT || operand_count(stmt) == IR_NONE ||
        (ir_has_access(stmt->op) && stmt->access >= site->nest->accesses.count) ||
        (stmt->op == OP_IOTA && stmt->axis >= site->nest->axis_count) ||
        (stmt->op == OP_SIZE && !size_in_range(check->prog, stmt->size))) {
        BREACH(check, "V1", site->nest->name, "statement %u is none of a nest", site->stmt_index);
        return;
    }
    const char *name = site_name(check, site);
    if (stmt->arg_count != operand_count(stmt))
        BREACH(check, "V1", name, "%s takes %u operands, not %u", ir_op_name(stmt->op), operand_count(stmt),
               stmt->arg_count);
    for (uint32_t i = 0; i < stmt->arg_count && i < 3; i++)
        if (!is_defined(site, stmt->arg[i])) BREACH(check, "V1", name, "an operand is not defined before");
    if (!ir_has_access(stmt->op)) return;
    const Access *access = site_access(site);
    if (access->index != IR_NONE && !is_defined(site, access->index))
        BREACH(check, "V1", name, "the gathered index is not defined before");
    Writer *writer = &check->writers[access->buf];
    if (stmt->op != OP_LOAD && writer->nest == IR_NONE) *writer = (Writer){site->nest_index, site->stmt_index};
}

/* Between nests: what is read was written by an earlier one. Reads of an out are V8's, of the nest's own ws V6's. */
static void check_order(Check *check, const Site *site) {
    if (site->stmt->op != OP_LOAD) return;
    const Buf *buf = site_buf(check, site);
    if (buf->kind != BUF_TMP && buf->kind != BUF_WORKSPACE) return;
    const Writer *writer = &check->writers[site_access(site)->buf];
    if (writer->nest == IR_NONE)
        BREACH(check, "V1", site_name(check, site), "%s is read but never written", buf->name);
    else if (writer->nest > site->nest_index)
        BREACH(check, "V1", site_name(check, site), "%s is read before nest %s writes it", buf->name,
               check->prog->nests.at[writer->nest].name);
    else if (writer->nest == site->nest_index && site->nest->stmts.at[writer->stmt].op == OP_STORE)
        BREACH(check, "V1", site_name(check, site), "%s is read in the nest that writes it", buf->name);
}

/* V2: domains ---------------------------------------------------------------------------------------------------- */

static uint32_t expected_domain(const Site *site) {
    const Stmt *stmt = site->stmt;
    if (ir_has_access(stmt->op)) return ir_access_domain(site->nest, site_access(site));
    if (stmt->op == OP_IOTA) return 1u << stmt->axis;
    uint32_t domain = 0;
    for (uint32_t i = 0; i < stmt->arg_count; i++) domain |= site->nest->stmts.at[stmt->arg[i]].domain;
    return stmt->op == OP_REDUCE ? domain & ~stmt->consumed : domain;
}

static void check_domain(Check *check, const Site *site) {
    const Stmt *stmt = site->stmt;
    uint32_t expected = expected_domain(site);
    if (stmt->domain != expected)
        BREACH(check, "V2", site_name(check, site), "its domain is <%s>, not <%s>",
               axes_text(check, site->nest, expected), axes_text(check, site->nest, stmt->domain));
    if (stmt->op != OP_REDUCE && stmt->op != OP_PARTIAL_ACCUMULATE) return;
    if (!stmt->consumed || stmt->consumed >> site->nest->axis_count)
        BREACH(check, "V2", site_name(check, site), "it consumes no axis of the nest");
}

/* V3: dtypes ----------------------------------------------------------------------------------------------------- */

/* Every number of `from` is one of `to`, which is a dtype of arithmetic. */
static bool widens_exactly(DType from, DType to) {
    if (to != ir_compute_dtype(to) || ir_dtype(from)->kind != ir_dtype(to)->kind) return false;
    return ir_dtype(from)->kind != KIND_FLOAT || ir_dtype(from)->significand <= ir_dtype(to)->significand;
}

static bool expected_dtype(const Nest *nest, const Stmt *stmt, DType *dtype) {
    *dtype = stmt->dtype;
    if (stmt->op == OP_SIZE || stmt->op == OP_IOTA) *dtype = DTYPE_I64;
    DType operands[3] = {DTYPE_F32, DTYPE_F32, DTYPE_F32};
    for (uint32_t i = 0; i < stmt->arg_count; i++) operands[i] = nest->stmts.at[stmt->arg[i]].dtype;
    if (stmt->op == OP_REDUCE) {
        *dtype = ir_compute_dtype(operands[0]);
        bool counts = *dtype == DTYPE_BOOL && stmt->reduction != REDUCTION_ANY && stmt->reduction != REDUCTION_ALL;
        if (counts && stmt->dtype == DTYPE_I64) *dtype = DTYPE_I64;
    }
    return stmt->op >= OP_PRIMITIVES || ir_op_dtype(stmt->op, operands, dtype);
}

/* What a buf may take from a value: an out rounds or wraps within its kind, the others hold the dtype of arithmetic. */
static void check_stored_dtype(Check *check, const Site *site) {
    const Buf *buf = site_buf(check, site);
    DType stored = site->nest->stmts.at[site->stmt->arg[0]].dtype;
    if (buf->kind == BUF_OUT) {
        if (ir_dtype(buf->dtype)->kind != ir_dtype(stored)->kind)
            BREACH(check, "V3", site_name(check, site), "a store does not turn %s into %s", ir_dtype(stored)->name,
                   ir_dtype(buf->dtype)->name);
    } else if (!widens_exactly(stored, buf->dtype)) {
        BREACH(check, "V3", site_name(check, site), "a buf of %s does not hold %s in the dtype of arithmetic",
               ir_dtype(buf->dtype)->name, ir_dtype(stored)->name);
    }
}

static void check_dtype(Check *check, const Site *site) {
    const Stmt *stmt = site->stmt;
    const char *name = site_name(check, site);
    if (ir_has_access(stmt->op)) {
        uint32_t index = site_access(site)->index;
        if (index != IR_NONE && ir_dtype(site->nest->stmts.at[index].dtype)->kind != KIND_INT)
            BREACH(check, "V3", name, "the gathered index is no integer");
    }
    if (!ir_is_value(stmt->op)) {
        check_stored_dtype(check, site);
        return;
    }
    DType dtype;
    if (!expected_dtype(site->nest, stmt, &dtype))
        BREACH(check, "V3", name, "%s does not take operands of these dtypes", ir_op_name(stmt->op));
    else if (stmt->op == OP_LOAD && !widens_exactly(site_buf(check, site)->dtype, stmt->dtype))
        BREACH(check, "V3", name, "a load does not widen %s to %s", ir_dtype(site_buf(check, site)->dtype)->name,
               ir_dtype(stmt->dtype)->name);
    else if (dtype != stmt->dtype)
        BREACH(check, "V3", name, "its dtype is %s, not %s", ir_dtype(dtype)->name, ir_dtype(stmt->dtype)->name);
}

static void check_buf_dtypes(Check *check) {
    for (uint32_t i = 0; i < check->prog->bufs.count; i++) {
        const Buf *buf = &check->prog->bufs.at[i];
        if ((buf->kind == BUF_TMP || buf->kind == BUF_WORKSPACE) && buf->dtype != ir_compute_dtype(buf->dtype))
            BREACH(check, "V3", buf->name, "a %s holds a dtype of arithmetic, not %s", ir_buf_kind_names[buf->kind],
                   ir_dtype(buf->dtype)->name);
    }
}

/* V4: identities ------------------------------------------------------------------------------------------------- */

static void check_extents(Check *check) {
    for (uint32_t n = 0; n < check->prog->nests.count; n++) {
        const Nest *nest = &check->prog->nests.at[n];
        for (uint32_t a = 0; a < nest->axis_count; a++)
            if (nest->axes[a].extent.kind == SIZE_INT && nest->axes[a].extent.value < 0)
                BREACH(check, "V4", nest->name, "axis %c has a negative extent", nest->axes[a].id);
    }
}

static void check_identity(Check *check, const Site *site) {
    const Stmt *stmt = site->stmt;
    if (stmt->op != OP_REDUCE && stmt->op != OP_PARTIAL_ACCUMULATE) return;
    const ReductionRow *row = ir_reduction(stmt->reduction);
    Kind kind = ir_dtype(site->nest->stmts.at[stmt->arg[0]].dtype)->kind;
    bool logic = stmt->reduction == REDUCTION_ANY || stmt->reduction == REDUCTION_ALL;
    if ((logic && kind != KIND_BOOL) || (row->results > 1 && kind != KIND_FLOAT))
        BREACH(check, "V4", site_name(check, site), "%s has no identity for its operand", row->name);
    if (stmt->result >= row->results)
        BREACH(check, "V4", site_name(check, site), "%s has no result #%u", row->name, stmt->result);
    if (stmt->op == OP_PARTIAL_ACCUMULATE && row->results > 1)
        BREACH(check, "V4", site_name(check, site), "one buf does not hold the identity of %s", row->name);
}

/* V5: stores ----------------------------------------------------------------------------------------------------- */

static void check_store(Check *check, const Site *site) {
    const Stmt *stmt = site->stmt;
    if (ir_is_value(stmt->op)) return;
    const char *name = site_name(check, site);
    const Access *access = site_access(site);
    const Buf *buf = site_buf(check, site);
    const Writer *writer = &check->writers[access->buf];
    if (buf->kind == BUF_IN || buf->kind == BUF_SCALAR)
        BREACH(check, "V5", name, "it writes an %s", ir_buf_kind_names[buf->kind]);
    if (writer->nest != site->nest_index || writer->stmt != site->stmt_index)
        BREACH(check, "V5", name, "%s has a second writer", buf->name);
    if (access->index != IR_NONE)
        BREACH(check, "V5", name, "a store through a gathered index may meet an element twice");
    uint32_t value = site->nest->stmts.at[stmt->arg[0]].domain;
    uint32_t rows = ir_nest_row_mask(site->nest);
    for (uint32_t a = 0; a < site->nest->axis_count; a++)
        if (ir_size_is(site->nest->axes[a].extent, 1)) rows &= ~(1u << a), value &= ~(1u << a);
    if (stmt->op == OP_STORE) {
        if (value & ~stmt->domain)
            BREACH(check, "V5", name, "its value varies over %s, which the map has not",
                   axes_text(check, site->nest, value & ~stmt->domain));
        if (rows & ~stmt->domain)
            BREACH(check, "V5", name, "every row of %s would write the same element",
                   axes_text(check, site->nest, rows & ~stmt->domain));
    }
    const char *doubt = ir_map_overlaps(check->job, check->prog, site->nest, access, buf->kind == BUF_OUT);
    if (doubt) BREACH(check, "V5", name, "%s", doubt);
}

static void check_outs(Check *check) {
    for (uint32_t i = 0; i < check->prog->bufs.count; i++)
        if (check->prog->bufs.at[i].kind == BUF_OUT && check->writers[i].nest == IR_NONE)
            BREACH(check, "V5", check->prog->bufs.at[i].name, "no nest writes this out");
}

/* V6, V7 --------------------------------------------------------------------------------------------------------- */

static void check_partial(Check *check, const Site *site) {
    const Stmt *stmt = site->stmt;
    if (stmt->op == OP_LOAD) {
        const Writer *writer = &check->writers[site_access(site)->buf];
        if (writer->nest == site->nest_index && site->nest->stmts.at[writer->stmt].op == OP_PARTIAL_ACCUMULATE)
            BREACH(check, "V6", site_name(check, site), "the parts of %s are read in the nest that makes them",
                   site_buf(check, site)->name);
        return;
    }
    if (stmt->op != OP_PARTIAL_ACCUMULATE) return;
    const char *name = site_name(check, site);
    const Buf *buf = site_buf(check, site);
    uint32_t rows = ir_nest_row_mask(site->nest), value = site->nest->stmts.at[stmt->arg[0]].domain;
    if (!(stmt->consumed & rows)) BREACH(check, "V6", name, "it consumes no row axis");
    if (stmt->consumed & stmt->domain)
        BREACH(check, "V6", name, "its map has a stride along %s, which it consumes",
               axes_text(check, site->nest, stmt->consumed & stmt->domain));
    if (buf->kind != BUF_WORKSPACE || buf->rank == 0 || buf->extent[0].kind != SIZE_PART)
        BREACH(check, "V6", name, "%s is no ws whose first extent is a part", buf->name);
    uint32_t kept = (rows | value) & ~stmt->consumed & ~stmt->domain;
    for (uint32_t a = 0; a < site->nest->axis_count; a++)
        if (ir_size_is(site->nest->axes[a].extent, 1)) kept &= ~(1u << a);
    if (kept) BREACH(check, "V6", name, "%s is neither consumed nor in the map", axes_text(check, site->nest, kept));
}

static void check_parts(Check *check) {
    for (uint32_t i = 0; i < check->prog->bufs.count; i++) {
        const Buf *buf = &check->prog->bufs.at[i];
        for (uint8_t d = 0; d < buf->rank; d++)
            if (buf->extent[d].kind == SIZE_PART && (buf->kind != BUF_WORKSPACE || d))
                BREACH(check, "V6", buf->name, "only a ws counts parts, in its first extent");
    }
}

static void check_phase(Check *check, const Site *site) {
    uint32_t rows = site->stmt->consumed & ir_nest_row_mask(site->nest);
    if (site->stmt->op == OP_REDUCE && rows)
        BREACH(check, "V7", site_name(check, site), "a reduce of row axis %s ends no phase",
               axes_text(check, site->nest, rows));
}

/* V8: aliases ---------------------------------------------------------------------------------------------------- */

static bool depends(const Nest *nest, const Stmt *stmt, const bool *on) {
    for (uint32_t k = 0; k < stmt->arg_count; k++)
        if (on[stmt->arg[k]]) return true;
    uint32_t index = ir_has_access(stmt->op) ? nest->accesses.at[stmt->access].index : IR_NONE;
    return index != IR_NONE && on[index];
}

/* Whether a statement behind the store, in a later phase than it, asks for the load: itself or through values that a
 * plan may compute again there, so not through a reduce, which takes its operand in the phase before its own. */
static bool read_again(const Check *check, const Nest *nest, uint32_t load, uint32_t store) {
    uint32_t phase_count;
    const uint32_t *phases = ir_nest_phases(check->job, nest, &phase_count);
    bool *asks = IR_NEW_ARRAY(check->job, bool, nest->stmts.count);
    asks[load] = true;
    for (uint32_t i = load + 1; i < nest->stmts.count; i++) {
        const Stmt *stmt = &nest->stmts.at[i];
        if (!depends(nest, stmt, asks)) continue;
        bool reduces = stmt->op == OP_REDUCE;
        asks[i] = !reduces;
        if (i > store && phases[i] - reduces > phases[store]) return true;
    }
    return false;
}

static bool maps_equal(const Nest *nest, const Access *a, const Access *b) {
    if (!ir_size_equal(a->offset, b->offset) || a->index != IR_NONE || b->index != IR_NONE) return false;
    for (uint32_t i = 0; i < nest->axis_count; i++)
        if (!ir_size_equal(a->stride[i], b->stride[i])) return false;
    return true;
}

/* Axes that the map of an aliased load lacks, so that points which differ along them alone read one element, of which
 * one point stores it. Where those are all inner axes it is a row's value: the threads of a row wait for one another
 * before it is stored. Else nothing puts one point's load before another's store. */
static uint32_t shared_axes(const Nest *nest, const Access *load) {
    uint32_t inner = ir_nest_inner_mask(nest), lacking = ir_nest_row_mask(nest) | inner;
    for (uint32_t a = 0; a < nest->axis_count; a++)
        if (ir_size_is(nest->axes[a].extent, 1)) lacking &= ~(1u << a), inner &= ~(1u << a);
    lacking &= ~ir_access_domain(nest, load);
    return lacking == inner ? 0 : lacking;
}

/* One load of memory that the store of `out` writes. Nests run one after the other, so a load in an earlier nest is
 * before every element's store, and one in a later nest after it. Within the nest the order between two points of its
 * axes is the plan's, so the load has to be of the element that its own point stores. A plan may load again wherever
 * the value is asked for, also to compute again what depends on it, and it may delay a store behind the phases of the
 * statements that stand before it; so what stands behind the store in the list and in a later phase must not ask for
 * the load. Within the store's phase the plan puts loads first, also those of a row's value, which every thread of the
 * row reads and one stores. What this asks of a plan: an aliased load is kept, or the store comes after its last
 * re-read. */
static void check_load(Check *check, const Site *load, uint32_t out) {
    const Writer *writer = &check->writers[out];
    const char *stored = check->prog->bufs.at[out].name;
    if (load->nest_index < writer->nest) return;
    const char *name = site_name(check, load), *read = site_buf(check, load)->name;
    if (load->nest_index > writer->nest) {
        BREACH(check, "V8", name, "%s is read after the store to %s", read, stored);
        return;
    }
    const Stmt *store = &load->nest->stmts.at[writer->stmt];
    if (!maps_equal(load->nest, site_access(load), &load->nest->accesses.at[store->access]))
        BREACH(check, "V8", name, "%s is read at other elements than the store to %s writes", read, stored);
    else if (load->stmt_index > writer->stmt)
        BREACH(check, "V8", name, "%s is read after the store to %s", read, stored);
    const uint32_t shared = shared_axes(load->nest, site_access(load));
    if (shared)
        BREACH(check, "V8", name, "all points along %s read what one of them stores to %s",
               axes_text(check, load->nest, shared), stored);
    if (read_again(check, load->nest, load->stmt_index, writer->stmt))
        BREACH(check, "V8", name, "%s is read again in a phase after the store to %s", read, stored);
}

/* A load of an out itself (accumulate) stands under the same rule as a load of the buf that it may alias. A load of
 * another buf of that tensor is of a slice which the Graph proved to be disjoint; nothing here could prove it again. */
static void check_alias(Check *check, const Site *site) {
    if (site->stmt->op != OP_LOAD) return;
    uint32_t read = site_access(site)->buf;
    for (uint32_t out = 0; out < check->prog->bufs.count; out++) {
        const Buf *buf = &check->prog->bufs.at[out];
        if (buf->kind == BUF_OUT && (out == read || buf->may_alias == read)) check_load(check, site, out);
    }
}

static void check_alias_declarations(Check *check) {
    const Prog *prog = check->prog;
    for (uint32_t i = 0; i < prog->bufs.count; i++) {
        const Buf *buf = &prog->bufs.at[i];
        if (buf->may_alias == IR_NONE) continue;
        const Buf *other = &prog->bufs.at[buf->may_alias];
        if (buf->kind != BUF_OUT || other->kind != BUF_IN)
            BREACH(check, "V8", buf->name, "only an out may be the memory of an in");
        if (buf->dtype != other->dtype) BREACH(check, "V8", buf->name, "its dtype is not that of %s", other->name);
        for (uint32_t k = 0; k < i; k++)
            if (prog->bufs.at[k].may_alias == buf->may_alias)
                BREACH(check, "V8", buf->name, "%s may be %s too", prog->bufs.at[k].name, other->name);
    }
}

/* ---------------------------------------------------------------------------------------------------------------- */

const char *ir_verify(Job *job, const Prog *prog) {
    static const struct {
        void (*prog)(Check *check);
        void (*stmt)(Check *check, const Site *site);
    } rules[] = {
        {check_declarations, check_references},
        {NULL, check_order},
        {NULL, check_domain},
        {check_buf_dtypes, check_dtype},
        {check_extents, check_identity},
        {check_outs, check_store},
        {check_parts, check_partial},
        {NULL, check_phase},
        {check_alias_declarations, check_alias},
    };
    Check check = {.job = job, .prog = prog};
    check.writers = IR_NEW_ARRAY(job, Writer, prog->bufs.count);
    for (uint32_t i = 0; i < prog->bufs.count; i++) check.writers[i] = (Writer){IR_NONE, IR_NONE};
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        if (rules[r].prog) rules[r].prog(&check);
        for (uint32_t n = 0; n < prog->nests.count && !check.why; n++) {
            const Nest *nest = &prog->nests.at[n];
            for (uint32_t i = 0; i < nest->stmts.count && !check.why; i++) {
                Site site = {nest, &nest->stmts.at[i], n, i};
                rules[r].stmt(&check, &site);
            }
        }
        if (check.why) return check.why;
    }
    return NULL;
}
