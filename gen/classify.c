/* classify: which way each reduction runs through memory.
 *
 * needs   nests with one reduction or none
 * gives   Nest.class: POINTWISE, INNER, OUTER or MIXED, by the order of the strides of the full reads, never by sizes
 *         (with no full read: of the reads that vary over the most axes); reads that disagree make it MIXED
 * breaks  nothing */
#include "gen/gen.h"
#include "gen/nests.h"

/* The stride along an axis; along one that only the gathered index varies over, that of the index. */
static Size read_stride(const Nest *nest, const Access *read, uint32_t axis) {
    bool gathered = read->index != IR_NONE && nest->stmts.at[read->index].domain >> axis & 1;
    return gathered && ir_size_is(read->stride[axis], 0) ? read->index_stride : read->stride[axis];
}

/* The class that one read gives: the consumed axes among those that it runs over, by falling stride. */
static NestClass class_of_read(Job *job, const Prog *prog, const Nest *nest, const Access *read, uint32_t consumed) {
    int64_t size[IR_MAX_AXES], least = INT64_MAX;
    uint32_t domain = 0, unit = 0;
    for (uint32_t i = 0; i < nest->axis_count; i++) {
        Size stride = read_stride(nest, read, i);
        if (ir_size_is(stride, 0)) continue;
        domain |= (uint32_t)1 << i;
        size[i] = gen_stride_magnitude(job, prog, stride);
        if (size[i] > least) continue;
        least = size[i];
        unit = i;
    }
    consumed &= domain;
    if (!consumed) return CLASS_INNER; /* the read is the same along all that is consumed */
    if (!(consumed >> unit & 1)) return CLASS_OUTER;
    int64_t greatest = 0;
    for (uint32_t i = 0; i < nest->axis_count; i++)
        if (consumed >> i & 1 && size[i] > greatest) greatest = size[i];
    for (uint32_t i = 0; i < nest->axis_count; i++)
        if (domain >> i & 1 && !(consumed >> i & 1) && size[i] < greatest) return CLASS_MIXED;
    return CLASS_INNER;
}

static uint32_t width(const Nest *nest, const Stmt *stmt) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < nest->axis_count; i++)
        count += !ir_size_is(read_stride(nest, &nest->accesses.at[stmt->access], i), 0);
    return count;
}

NestClass gen_class_by_strides(Job *job, const Prog *prog, const Nest *nest, uint32_t consumed) {
    uint32_t widest = 0;
    for (uint32_t i = 0; i < nest->stmts.count; i++) {
        const Stmt *stmt = &nest->stmts.at[i];
        if (stmt->op == OP_LOAD && width(nest, stmt) > widest) widest = width(nest, stmt);
    }
    NestClass class = CLASS_COUNT;
    for (uint32_t i = 0; i < nest->stmts.count; i++) {
        const Stmt *stmt = &nest->stmts.at[i];
        if (stmt->op != OP_LOAD || width(nest, stmt) != widest) continue;
        NestClass own = class_of_read(job, prog, nest, &nest->accesses.at[stmt->access], consumed);
        if (class != CLASS_COUNT && class != own) return CLASS_MIXED;
        class = own;
    }
    return class == CLASS_COUNT ? CLASS_INNER : class;
}

static NestClass class_of(Job *job, const Prog *prog, const Nest *nest) {
    uint32_t consumed = 0;
    for (uint32_t i = 0; i < nest->stmts.count; i++)
        if (nest->stmts.at[i].op == OP_REDUCE) consumed |= nest->stmts.at[i].consumed;
    return gen_nest_reduces(nest) ? gen_class_by_strides(job, prog, nest, consumed) : CLASS_POINTWISE;
}

void gen_classify(Job *job, Unit *unit) {
    for (uint32_t n = 0; n < unit->prog->nests.count; n++) {
        Nest *nest = &unit->prog->nests.at[n];
        nest->class = class_of(job, unit->prog, nest);
    }
}
