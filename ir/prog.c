/* In: statements, accesses, sizes. Out: Progs and what follows from them: domains, phases, live statements. Left alone:
 * the invariants (ir/verify.c), text (ir/prog_print.c, ir/prog_read.c). */
#include "ir/prog.h"

#include <string.h>

Prog *ir_prog_create(Job *job, const char *name) {
    Prog *prog = IR_NEW(job, Prog);
    prog->name = name;
    return prog;
}

#define COPY_LIST(job, list)                                                                                           \
    do {                                                                                                               \
        size_t bytes = (list)->count * sizeof *(list)->at;                                                             \
        if (bytes) (list)->at = memcpy(ir_alloc((job), bytes), (list)->at, bytes);                                     \
        (list)->capacity = (list)->count;                                                                              \
    } while (0)

Prog *ir_prog_clone(Job *job, const Prog *prog) {
    Prog *clone = IR_NEW(job, Prog);
    *clone = *prog;
    COPY_LIST(job, &clone->dims);
    COPY_LIST(job, &clone->sizes);
    COPY_LIST(job, &clone->parts);
    COPY_LIST(job, &clone->bufs);
    COPY_LIST(job, &clone->nests);
    for (uint32_t i = 0; i < clone->nests.count; i++) {
        COPY_LIST(job, &clone->nests.at[i].stmts);
        COPY_LIST(job, &clone->nests.at[i].accesses);
    }
    return clone;
}

const char *ir_class_name(NestClass class) {
    static const char *const names[CLASS_COUNT] = {"POINTWISE", "INNER",       "OUTER",   "MIXED",
                                                   "ROW",       "ROW+PARTIAL", "FINALIZE"};
    return names[class];
}

/* ---- sizes ---- */

/* A polynomial that is one symbol alone. */
static bool lone_symbol(Poly poly, uint32_t *symbol) {
    if (poly.count != 1 || poly.terms[0].coefficient != 1 || poly.terms[0].divisor != 1) return false;
    *symbol = poly.terms[0].symbol[0];
    return *symbol != IR_NO_SYMBOL && poly.terms[0].symbol[1] == IR_NO_SYMBOL;
}

Size ir_prog_size(Job *job, Prog *prog, Poly poly) {
    int64_t value;
    uint32_t symbol;
    if (ir_poly_is_int(poly, &value)) return ir_size_int(value);
    if (lone_symbol(poly, &symbol)) {
        return symbol >= IR_POLY_PART ? (Size){SIZE_PART, symbol - IR_POLY_PART} : (Size){SIZE_DIM, symbol};
    }
    for (uint32_t i = 0; i < prog->sizes.count; i++) {
        if (ir_poly_equal(prog->sizes.at[i], poly)) return (Size){SIZE_EXPRESSION, i};
    }
    *IR_PUSH(job, &prog->sizes) = poly;
    return (Size){SIZE_EXPRESSION, prog->sizes.count - 1};
}

Poly ir_size_poly(Job *job, const Prog *prog, Size size) {
    switch (size.kind) {
    case SIZE_INT: return ir_poly_int(job, size.value);
    case SIZE_DIM: return ir_poly_symbol(job, (uint32_t)size.value);
    case SIZE_PART: return ir_poly_symbol(job, IR_POLY_PART + (uint32_t)size.value);
    default: IR_REQUIRE(job, size.value < prog->sizes.count); return prog->sizes.at[size.value];
    }
}

void ir_size_print(Text *text, const Prog *prog, Size size) {
    switch (size.kind) {
    case SIZE_INT: ir_text_format(text, "%lld", (long long)size.value); break;
    case SIZE_DIM: ir_text_put(text, prog->dims.at[size.value].name); break;
    case SIZE_PART: ir_text_put(text, prog->parts.at[size.value]); break;
    case SIZE_EXPRESSION: ir_text_format(text, "s%lld", (long long)size.value); break;
    }
}

/* ---- nests ---- */

uint32_t ir_nest_axis(const Nest *nest, char id) {
    for (uint32_t i = 0; i < nest->axis_count; i++) {
        if (nest->axes[i].id == id) return i;
    }
    return IR_NONE;
}

uint32_t ir_nest_row_mask(const Nest *nest) { return ((uint32_t)1 << nest->row_count) - 1; }
uint32_t ir_nest_inner_mask(const Nest *nest) {
    return (((uint32_t)1 << nest->axis_count) - 1) & ~ir_nest_row_mask(nest);
}

static uint32_t stride_mask(const Nest *nest, const Access *access) {
    uint32_t mask = 0;
    for (uint32_t i = 0; i < nest->axis_count; i++) {
        if (!ir_size_is(access->stride[i], 0)) mask |= (uint32_t)1 << i;
    }
    return mask;
}

uint32_t ir_access_domain(const Nest *nest, const Access *access) {
    uint32_t mask = stride_mask(nest, access);
    return access->index == IR_NONE ? mask : mask | nest->stmts.at[access->index].domain;
}

bool ir_is_full_read(const Nest *nest, const Stmt *stmt) {
    if (stmt->op != OP_LOAD) return false;
    uint32_t all = ((uint32_t)1 << nest->axis_count) - 1;
    return stride_mask(nest, &nest->accesses.at[stmt->access]) == all;
}

static bool same_access(const Access *a, const Access *b) {
    if (a->buf != b->buf || a->index != b->index || !ir_size_equal(a->offset, b->offset)) return false;
    if (a->index != IR_NONE && !ir_size_equal(a->index_stride, b->index_stride)) return false;
    if (a->index != IR_NONE && !ir_size_equal(a->index_extent, b->index_extent)) return false;
    for (uint32_t i = 0; i < IR_MAX_AXES; i++) {
        if (!ir_size_equal(a->stride[i], b->stride[i])) return false;
    }
    return true;
}

uint32_t ir_nest_add_access(Job *job, Nest *nest, const Access *access) {
    for (uint32_t i = 0; i < nest->accesses.count; i++) {
        if (same_access(&nest->accesses.at[i], access)) return i;
    }
    *IR_PUSH(job, &nest->accesses) = *access;
    return nest->accesses.count - 1;
}

static bool same_stmt(const Nest *nest, const Stmt *a, const Stmt *b) {
    if (a->op != b->op || a->dtype != b->dtype || a->domain != b->domain || a->arg_count != b->arg_count) return false;
    if (memcmp(a->arg, b->arg, a->arg_count * sizeof *a->arg)) return false;
    switch (a->op) {
    case OP_CONST: return a->bits == b->bits;
    case OP_SIZE: return ir_size_equal(a->size, b->size);
    case OP_IOTA: return a->axis == b->axis;
    case OP_LOAD: return same_access(&nest->accesses.at[a->access], &nest->accesses.at[b->access]);
    case OP_REDUCE: return a->reduction == b->reduction && a->consumed == b->consumed && a->result == b->result;
    default: return true;
    }
}

static uint32_t domain_of(Job *job, const Nest *nest, const Stmt *stmt) {
    uint32_t domain = 0;
    switch (stmt->op) {
    case OP_CONST:
    case OP_SIZE: return 0;
    case OP_IOTA: return (uint32_t)1 << stmt->axis;
    case OP_LOAD:
    case OP_STORE:
    case OP_PARTIAL_ACCUMULATE:
        IR_REQUIRE(job, stmt->access < nest->accesses.count);
        return ir_access_domain(nest, &nest->accesses.at[stmt->access]);
    default:
        for (uint32_t i = 0; i < stmt->arg_count; i++) domain |= nest->stmts.at[stmt->arg[i]].domain;
        return stmt->op == OP_REDUCE ? domain & ~stmt->consumed : domain;
    }
}

uint32_t ir_nest_add(Job *job, Nest *nest, const Stmt *stmt) {
    uint32_t first = 0; /* an equal statement stands behind its arguments */
    for (uint32_t i = 0; i < stmt->arg_count; i++) {
        IR_REQUIRE(job, stmt->arg[i] < nest->stmts.count);
        if (stmt->arg[i] >= first) first = stmt->arg[i] + 1;
    }
    Stmt added = *stmt;
    added.domain = domain_of(job, nest, stmt);
    if (stmt->op != OP_STORE && stmt->op != OP_PARTIAL_ACCUMULATE) {
        for (uint32_t i = first; i < nest->stmts.count; i++) {
            if (same_stmt(nest, &nest->stmts.at[i], &added)) return i;
        }
    }
    *IR_PUSH(job, &nest->stmts) = added;
    return nest->stmts.count - 1;
}

static bool has_access(const Stmt *stmt) {
    return stmt->op == OP_LOAD || stmt->op == OP_STORE || stmt->op == OP_PARTIAL_ACCUMULATE;
}

uint32_t *ir_nest_phases(Job *job, const Nest *nest, uint32_t *count) {
    uint32_t *phases = IR_NEW_ARRAY(job, uint32_t, nest->stmts.count);
    uint32_t inner = ir_nest_inner_mask(nest), last = 0;
    for (uint32_t i = 0; i < nest->stmts.count; i++) {
        const Stmt *stmt = &nest->stmts.at[i];
        uint32_t phase = 0;
        for (uint32_t k = 0; k < stmt->arg_count; k++) {
            if (phases[stmt->arg[k]] > phase) phase = phases[stmt->arg[k]];
        }
        uint32_t gathered = has_access(stmt) ? nest->accesses.at[stmt->access].index : IR_NONE;
        if (gathered != IR_NONE && phases[gathered] > phase) phase = phases[gathered];
        if (stmt->op == OP_REDUCE && stmt->consumed & inner) phase++;
        phases[i] = phase;
        if (phase > last) last = phase;
    }
    if (count) *count = last + 1;
    return phases;
}

/* ---- sweep ---- */

static void mark_live(const Nest *nest, bool *live, bool *used) {
    for (uint32_t i = nest->stmts.count; i-- > 0;) {
        const Stmt *stmt = &nest->stmts.at[i];
        if (stmt->op == OP_STORE || stmt->op == OP_PARTIAL_ACCUMULATE) live[i] = true;
        if (!live[i]) continue;
        for (uint32_t k = 0; k < stmt->arg_count; k++) live[stmt->arg[k]] = true;
        if (!has_access(stmt)) continue;
        used[stmt->access] = true;
        uint32_t gathered = nest->accesses.at[stmt->access].index;
        if (gathered != IR_NONE) live[gathered] = true;
    }
}

void ir_nest_sweep(Job *job, Nest *nest) {
    bool *live = IR_NEW_ARRAY(job, bool, nest->stmts.count);
    bool *used = IR_NEW_ARRAY(job, bool, nest->accesses.count);
    uint32_t *stmt_id = IR_NEW_ARRAY(job, uint32_t, nest->stmts.count);
    uint32_t *access_id = IR_NEW_ARRAY(job, uint32_t, nest->accesses.count);
    mark_live(nest, live, used);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < nest->accesses.count; i++) {
        if (!used[i]) continue;
        access_id[i] = kept;
        nest->accesses.at[kept++] = nest->accesses.at[i];
    }
    nest->accesses.count = kept;
    kept = 0;
    for (uint32_t i = 0; i < nest->stmts.count; i++) {
        if (!live[i]) continue;
        Stmt stmt = nest->stmts.at[i];
        for (uint32_t k = 0; k < stmt.arg_count; k++) stmt.arg[k] = stmt_id[stmt.arg[k]];
        if (has_access(&stmt)) stmt.access = access_id[stmt.access];
        stmt_id[i] = kept;
        nest->stmts.at[kept++] = stmt;
    }
    nest->stmts.count = kept;
    for (uint32_t i = 0; i < nest->accesses.count; i++) {
        Access *access = &nest->accesses.at[i];
        if (access->index != IR_NONE) access->index = stmt_id[access->index];
    }
}

/* Marks what these statements of a nest are made of; false: an input. bufs: stored by earlier nests. */
static bool mark_computed(const Prog *prog, const Nest *nest, bool *behind, bool *bufs) {
    for (uint32_t i = nest->stmts.count; i-- > 0;) {
        const Stmt *stmt = &nest->stmts.at[i];
        const Access *access = has_access(stmt) ? &nest->accesses.at[stmt->access] : NULL;
        if (stmt->op != OP_LOAD && access && bufs[access->buf]) behind[i] = true;
        if (!behind[i]) continue;
        for (uint32_t k = 0; k < stmt->arg_count; k++) behind[stmt->arg[k]] = true;
        if (stmt->op != OP_LOAD || !access) continue;
        const BufKind kind = prog->bufs.at[access->buf].kind;
        if (kind != BUF_TMP && kind != BUF_WORKSPACE) return false;
        bufs[access->buf] = true;
        if (access->index != IR_NONE) behind[access->index] = true;
    }
    return true;
}

bool ir_stmt_is_computed(Job *job, const Prog *prog, uint32_t nest, uint32_t stmt) {
    const Mark mark = ir_mark(job);
    bool *bufs = IR_NEW_ARRAY(job, bool, prog->bufs.count + (size_t)1), computed = true;
    for (uint32_t n = nest + 1; n-- > 0 && computed;) {
        bool *behind = IR_NEW_ARRAY(job, bool, prog->nests.at[n].stmts.count + (size_t)1);
        if (n == nest) behind[stmt] = true;
        computed = mark_computed(prog, &prog->nests.at[n], behind, bufs);
    }
    ir_reset(job, mark);
    return computed;
}
