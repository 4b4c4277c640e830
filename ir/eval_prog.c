/* In: a Prog, dims, numbers of parts, and what its in and out buffers hold. Out: what its nests leave in the buffers,
 * rounded where the IR rounds, with bounds. Left alone: element arithmetic (ir/eval_real.h).
 *
 * A nest is evaluated statement by statement, each over its own domain: axes in loop order, row-major. Where some axis
 * is consumed by nothing, the nest is cut along it into pieces that lie in the cache. */
#include "ir/eval_ops.h"

#include <math.h>
#include <string.h>

#define PIECE ((uint64_t)1 << 17) /* elements of all statements in a piece: 2 MB with their bounds */

typedef struct State { /* of one statement */
    Lane lane;
    uint32_t block;
    uint32_t last_use;
    bool live;                   /* some element of it is asked for */
    bool summed;                 /* by a statement of the nest */
    int64_t stride[IR_MAX_AXES]; /* in the lane; 0 outside the domain */
} State;

typedef struct Runner {
    Job *job;
    const Prog *prog;
    const int64_t *dims, *parts;
    EvalBuf *bufs;
    const RealOps *real;
    uint8_t **written; /* for each buf that nests write: a flag an element */
    uint64_t uncertain;
    /* the nest at hand */
    const Nest *nest;
    State *states;
    Pool pool;
    int64_t extent[IR_MAX_AXES]; /* of this piece */
    uint32_t cut;                /* axis that pieces divide, or IR_NONE */
    int64_t cut_start;
    bool first_piece;
} Runner;

static int64_t size_value(const Runner *run, Size size) {
    int64_t value;
    switch (size.kind) {
    case SIZE_INT: return size.value;
    case SIZE_DIM: return run->dims[size.value];
    case SIZE_PART: return run->parts[size.value];
    default: break;
    }
    const Prog *prog = run->prog;
    if (!ir_poly_eval(prog->sizes.at[size.value], run->dims, prog->dims.count, run->parts, prog->parts.count, &value)) {
        IR_BREACH(run->job, "size s%lld passes 2^62", (long long)size.value);
    }
    return value;
}

static int64_t axis_base(const Runner *run, uint32_t axis) { return axis == run->cut ? run->cut_start : 0; }

/* A walk over the axes of a mask, in loop order; strides of lanes are to be added by add_lane. */
static Walk walk_axes(const Runner *run, uint32_t mask) {
    Walk walk = {0};
    for (uint32_t i = 0; i < run->nest->axis_count; i++) {
        if (mask >> i & 1) walk.extent[walk.rank++] = run->extent[i];
    }
    return walk;
}

static void add_lane(const Runner *run, Walk *walk, uint32_t mask, const int64_t *stride, int64_t offset) {
    for (uint32_t i = 0, d = 0; i < run->nest->axis_count; i++) {
        if (mask >> i & 1) walk->stride[walk->lanes][d++] = stride[i];
    }
    walk->offset[walk->lanes++] = offset;
}

/* Row-major strides of the axes of a mask; returns how many points they have. */
static uint64_t mask_strides(const Runner *run, uint32_t mask, int64_t *stride) {
    uint64_t count = 1;
    for (uint32_t i = run->nest->axis_count; i-- > 0;) {
        stride[i] = mask >> i & 1 ? (int64_t)count : 0;
        if (mask >> i & 1) count *= (uint64_t)(run->extent[i] > 0 ? run->extent[i] : 0);
    }
    return count;
}

/* Strides of an access in elements of its buffer, and the address of the piece's first point. */
static int64_t access_strides(const Runner *run, const Access *access, int64_t *stride) {
    int64_t offset = size_value(run, access->offset);
    for (uint32_t i = 0; i < run->nest->axis_count; i++) {
        stride[i] = size_value(run, access->stride[i]);
        offset += axis_base(run, i) * stride[i];
    }
    return offset;
}

/* ---- buffers ---- */

typedef struct Touch { /* a strip of a load or a store */
    Runner *run;
    const Stmt *stmt;
    const EvalBuf *buf;
    uint32_t buf_id;
    uint8_t *written; /* NULL: holds what the caller put there */
    Lane lane, index;
    int64_t index_stride, index_extent;
    bool absent;    /* picks from an empty dim by a computed index: nothing is loaded */
    ElementOp cast; /* stores */
} Touch;

static const char *buf_name(const Touch *touch) { return touch->run->prog->bufs.at[touch->buf_id].name; }

static void require_inside(const Touch *touch, int64_t first, int64_t last) {
    int64_t low = first < last ? first : last, high = first < last ? last : first;
    if (low >= 0 && high < touch->buf->span) return;
    ir_stop_at(touch->run->job, STATUS_INTERNAL, touch->stmt->place,
               "nest %s touches %s[%lld], which has %lld elements", touch->run->nest->name, buf_name(touch),
               (long long)(low < 0 ? low : high), (long long)touch->buf->span);
}

static Lane buf_lane(const EvalBuf *buf, int64_t position, int64_t step) {
    return ir_lane_at((Lane){buf->number, buf->bound, buf->integer, 1, buf->low, NULL}, position, step);
}

static void require_written(const Touch *touch, int64_t position, int64_t step, int64_t count) {
    for (int64_t i = 0; touch->written && i < count; i++) {
        long long at = position + i * step;
        if (touch->written[at]) continue;
        ir_stop_at(touch->run->job, STATUS_INTERNAL, touch->stmt->place, "nest %s reads %s[%lld], never written",
                   touch->run->nest->name, buf_name(touch), at);
    }
}

static void load_run(const Touch *touch, Lane out, int64_t position, int64_t step, int64_t count) {
    require_inside(touch, position, position + (count - 1) * step);
    require_written(touch, position, step, count);
    ir_lane_copy(buf_lane(touch->buf, position, step), out, count);
}

static void put_zero(Lane out) {
    if (out.number)
        *out.number = 0;
    else
        *out.integer = 0;
    if (out.low) *out.low = 0;
    *out.bound = 0;
}

static void load_strip(void *state, const int64_t *position, const int64_t *step, int64_t count) {
    const Touch *touch = state;
    Lane out = ir_lane_at(touch->lane, position[0], step[0]);
    if (!touch->index.integer) {
        load_run(touch, out, position[1], step[1], count);
        return;
    }
    Lane index = ir_lane_at(touch->index, position[2], step[2]);
    for (int64_t i = 0; i < count; i++) {
        int64_t picked = index.integer[i * index.step];
        if (touch->absent) {
            put_zero(ir_lane_at(out, i * out.step, 0));
            continue;
        }
        if (touch->index_extent >= 0 && (picked < 0 || picked >= touch->index_extent))
            ir_stop_at(touch->run->job, STATUS_USAGE, touch->stmt->place, "the index %lld is outside its dim of %lld",
                       (long long)picked, (long long)touch->index_extent);
        int64_t at = position[1] + i * step[1] + picked * touch->index_stride;
        load_run(touch, ir_lane_at(out, i * out.step, 0), at, 0, 1);
        if (index.bound[i * index.step] > 0) out.bound[i * out.step] = (double)INFINITY;
    }
}

static void mark_written(const Touch *touch, int64_t position, int64_t step, int64_t count) {
    require_inside(touch, position, position + (count - 1) * step);
    for (int64_t i = 0; i < count; i++) {
        long long at = position + i * step;
        if (touch->written[at]) {
            ir_stop_at(touch->run->job, STATUS_INTERNAL, touch->stmt->place, "nest %s writes %s[%lld] twice",
                       touch->run->nest->name, buf_name(touch), at);
        }
        touch->written[at] = 1;
    }
}

static void store_strip(void *state, const int64_t *position, const int64_t *step, int64_t count) {
    const Touch *touch = state;
    mark_written(touch, position[1], step[1], count);
    touch->run->real->cast(&touch->cast, ir_lane_at(touch->lane, position[0], step[0]),
                           buf_lane(touch->buf, position[1], step[1]), count);
}

static Touch touch_of(Runner *run, const Stmt *stmt) {
    uint32_t buf = run->nest->accesses.at[stmt->access].buf;
    Touch touch = {.run = run, .stmt = stmt, .buf = &run->bufs[buf], .buf_id = buf};
    BufKind kind = run->prog->bufs.at[buf].kind;
    bool held = kind == BUF_IN || kind == BUF_SCALAR || (kind == BUF_OUT && stmt->op == OP_LOAD);
    if (!held) touch.written = run->written[buf];
    return touch;
}

/* ---- statements ---- */

static void eval_load(Runner *run, const Stmt *stmt, State *state) {
    const Access *access = &run->nest->accesses.at[stmt->access];
    Touch touch = touch_of(run, stmt);
    if (ir_is_float(stmt->dtype) != ir_is_float(run->prog->bufs.at[access->buf].dtype)) {
        IR_BREACH(run->job, "a load of %s changes its kind", buf_name(&touch));
    }
    touch.lane = state->lane;
    int64_t stride[IR_MAX_AXES] = {0}, offset = access_strides(run, access, stride);
    Walk walk = walk_axes(run, stmt->domain);
    add_lane(run, &walk, stmt->domain, state->stride, 0);
    add_lane(run, &walk, stmt->domain, stride, offset);
    if (access->index != IR_NONE) {
        touch.index = run->states[access->index].lane;
        touch.index_stride = size_value(run, access->index_stride);
        touch.index_extent = size_value(run, access->index_extent);
        touch.absent =
            !touch.index_extent &&
            ir_stmt_is_computed(run->job, run->prog, (uint32_t)(run->nest - run->prog->nests.at), access->index);
        add_lane(run, &walk, stmt->domain, run->states[access->index].stride, 0);
    }
    ir_walk(&walk, load_strip, &touch);
}

static ElementOp store_cast(Runner *run, const Stmt *stmt) {
    DType from = run->nest->stmts.at[stmt->arg[0]].dtype;
    DType to = run->prog->bufs.at[run->nest->accesses.at[stmt->access].buf].dtype;
    return (ElementOp){OP_CAST, ir_compute_dtype(to), to, from, &run->uncertain, 0, false, EVAL_CASTS_ROUND};
}

/* A value that does not vary over the cut is stored by the first piece. */
static bool stored_before(const Runner *run, const Stmt *stmt) {
    return !run->first_piece && !(stmt->domain >> run->cut & 1);
}

static void eval_store(Runner *run, const Stmt *stmt) {
    const Access *access = &run->nest->accesses.at[stmt->access];
    if (stored_before(run, stmt)) return;
    IR_REQUIRE(run->job, access->index == IR_NONE);
    Touch touch = touch_of(run, stmt);
    touch.lane = run->states[stmt->arg[0]].lane;
    touch.cast = store_cast(run, stmt);
    int64_t stride[IR_MAX_AXES] = {0}, offset = access_strides(run, access, stride);
    uint32_t domain = ir_access_domain(run->nest, access) | run->nest->stmts.at[stmt->arg[0]].domain;
    Walk walk = walk_axes(run, domain);
    add_lane(run, &walk, domain, run->states[stmt->arg[0]].stride, 0);
    add_lane(run, &walk, domain, stride, offset);
    ir_walk(&walk, store_strip, &touch);
}

static void eval_elements(Runner *run, const Stmt *stmt, State *state) {
    ElementStrip strip = {.real = run->real, .arity = stmt->arg_count, .out = state->lane};
    DType operands[3] = {DTYPE_F32, DTYPE_F32, DTYPE_F32};
    Walk walk = walk_axes(run, stmt->domain);
    add_lane(run, &walk, stmt->domain, state->stride, 0);
    for (uint32_t k = 0; k < stmt->arg_count; k++) {
        strip.in[k] = run->states[stmt->arg[k]].lane;
        operands[k] = run->nest->stmts.at[stmt->arg[k]].dtype;
        add_lane(run, &walk, stmt->domain, run->states[stmt->arg[k]].stride, 0);
    }
    strip.op = ir_eval_op(run->job, stmt->op, stmt->dtype, operands, &run->uncertain);
    strip.op.factors = state->summed;
    ir_walk(&walk, ir_element_strip, &strip);
}

static void eval_leaf(const Runner *run, const Stmt *stmt, State *state) {
    int64_t count = stmt->op == OP_IOTA ? run->extent[stmt->axis] : 1;
    for (int64_t i = 0; i < count; i++) {
        int64_t integer = stmt->op == OP_IOTA ? axis_base(run, stmt->axis) + i : (int64_t)stmt->bits;
        if (stmt->op == OP_SIZE) integer = size_value(run, stmt->size);
        if (state->lane.number)
            state->lane.number[i] = ir_load_float(stmt->dtype, &stmt->bits);
        else
            state->lane.integer[i] = integer;
        if (state->lane.low) state->lane.low[i] = 0;
        state->lane.bound[i] = 0;
    }
}

/* ---- reductions ---- */

static ReduceStrip start_reduce(Runner *run, const Stmt *stmt, uint64_t count) {
    const Stmt *arg = &run->nest->stmts.at[stmt->arg[0]];
    if (stmt->arg_count != 1) {
        ir_stop_at(run->job, STATUS_UNAVAILABLE, stmt->place, "not evaluated yet: a reduction of pairs");
    }
    Accumulator *accumulators = IR_NEW_ARRAY(run->job, Accumulator, count);
    DType dtype = ir_compute_dtype(arg->dtype);
    for (uint64_t i = 0; i < count; i++) run->real->reduce_start(stmt->reduction, dtype, &accumulators[i]);
    return (ReduceStrip){run->real, stmt->reduction, dtype, accumulators, run->states[stmt->arg[0]].lane};
}

/* Consumed axes over which the argument does not vary count as often as they are long. */
static void eval_reduce(Runner *run, const Stmt *stmt, State *state) {
    int64_t ignored[IR_MAX_AXES];
    uint64_t count = mask_strides(run, stmt->domain, ignored);
    Mark mark = ir_mark(run->job);
    ReduceStrip strip = start_reduce(run, stmt, count);
    uint32_t mask = stmt->domain | stmt->consumed;
    Walk walk = walk_axes(run, mask);
    add_lane(run, &walk, mask, state->stride, 0);
    add_lane(run, &walk, mask, run->states[stmt->arg[0]].stride, 0);
    ir_walk(&walk, ir_reduce_strip, &strip);
    for (uint64_t i = 0; i < count; i++) {
        run->real->reduce_finish(stmt->reduction, strip.dtype, &strip.accumulators[i], 0, stmt->result,
                                 ir_lane_at(state->lane, (int64_t)i, 1));
    }
    ir_reset(run->job, mark);
}

typedef struct PartialStrip { /* writes the accumulators of one part */
    Touch touch;
    const ReduceStrip *reduce;
    Lane finished; /* one element */
} PartialStrip;

static void partial_strip(void *state, const int64_t *position, const int64_t *step, int64_t count) {
    const PartialStrip *partial = state;
    mark_written(&partial->touch, position[1], step[1], count);
    for (int64_t i = 0; i < count; i++) {
        const Accumulator *accumulator = &partial->reduce->accumulators[position[0] + i * step[0]];
        const RealOps *real = partial->touch.run->real;
        real->reduce_finish(partial->reduce->reduction, partial->reduce->dtype, accumulator, 0, 0, partial->finished);
        real->cast(&partial->touch.cast, partial->finished, buf_lane(partial->touch.buf, position[1] + i * step[1], 0),
                   1);
    }
}

/* Where the argument's points of consumed rows [first, last) lie, in loop order, into the accumulators. */
static void accumulate_rows(Runner *run, const Stmt *stmt, ReduceStrip *strip, const int64_t *to, int64_t first,
                            int64_t last) {
    uint32_t rows = stmt->consumed & ir_nest_row_mask(run->nest);
    uint32_t rest = (stmt->domain | stmt->consumed) & ~rows;
    const int64_t *from = run->states[stmt->arg[0]].stride;
    for (int64_t row = first; row < last; row++) {
        int64_t left = row, offset = 0;
        for (uint32_t i = run->nest->axis_count; i-- > 0;) {
            if (!(rows >> i & 1)) continue;
            offset += left % run->extent[i] * from[i];
            left /= run->extent[i];
        }
        Walk walk = walk_axes(run, rest);
        add_lane(run, &walk, rest, to, 0);
        add_lane(run, &walk, rest, from, offset);
        ir_walk(&walk, ir_reduce_strip, strip);
    }
}

static void eval_partial(Runner *run, const Stmt *stmt) {
    if (stored_before(run, stmt)) return;
    const Access *access = &run->nest->accesses.at[stmt->access];
    const Buf *buf = &run->prog->bufs.at[access->buf];
    if (ir_reduction(stmt->reduction)->results != 1) {
        ir_stop_at(run->job, STATUS_UNAVAILABLE, stmt->place, "not evaluated yet: parts of a pair");
    }
    int64_t parts = size_value(run, buf->extent[0]), slot = 1, rows = 1, to[IR_MAX_AXES] = {0},
            stride[IR_MAX_AXES] = {0};
    for (uint32_t d = 1; d < buf->rank; d++) slot *= size_value(run, buf->extent[d]);
    uint32_t consumed_rows = stmt->consumed & ir_nest_row_mask(run->nest);
    for (uint32_t i = 0; i < run->nest->axis_count; i++) {
        if (consumed_rows >> i & 1) rows *= run->extent[i];
    }
    double number, low, bound;
    int64_t integer, offset = access_strides(run, access, stride);
    PartialStrip partial = {.touch = touch_of(run, stmt)};
    partial.touch.cast = store_cast(run, stmt);
    uint64_t count = mask_strides(run, stmt->domain, to);
    for (int64_t p = 0; p < parts; p++) {
        Mark mark = ir_mark(run->job);
        ReduceStrip reduce = start_reduce(run, stmt, count);
        bool is_float = ir_is_float(reduce.dtype);
        partial.finished = (Lane){is_float ? &number : NULL,     &bound, is_float ? NULL : &integer, 0,
                                  run->real->wide ? &low : NULL, NULL};
        partial.reduce = &reduce;
        accumulate_rows(run, stmt, &reduce, to, p * rows / parts, (p + 1) * rows / parts);
        Walk walk = walk_axes(run, stmt->domain);
        add_lane(run, &walk, stmt->domain, to, 0);
        add_lane(run, &walk, stmt->domain, stride, offset + p * slot);
        ir_walk(&walk, partial_strip, &partial);
        ir_reset(run->job, mark);
    }
}

/* ---- nests ---- */

static void find_uses(const Nest *nest, State *states) {
    for (uint32_t i = 0; i < nest->stmts.count; i++) {
        const Stmt *stmt = &nest->stmts.at[i];
        states[i].last_use = i;
        bool combines = stmt->op == OP_REDUCE || stmt->op == OP_PARTIAL_ACCUMULATE;
        if (combines && stmt->reduction == REDUCTION_ADD) states[stmt->arg[0]].summed = true;
        for (uint32_t k = 0; k < stmt->arg_count; k++) states[stmt->arg[k]].last_use = i;
        uint32_t gathered = stmt->op == OP_LOAD ? nest->accesses.at[stmt->access].index : IR_NONE;
        if (gathered != IR_NONE) states[gathered].last_use = i;
    }
}

static void eval_piece(Runner *run) {
    const Nest *nest = run->nest;
    for (uint32_t i = 0; i < nest->stmts.count; i++) {
        const Stmt *stmt = &nest->stmts.at[i];
        State *state = &run->states[i];
        if (stmt->op == OP_STORE) {
            eval_store(run, stmt);
        } else if (stmt->op == OP_PARTIAL_ACCUMULATE) {
            eval_partial(run, stmt);
        } else {
            uint64_t count = mask_strides(run, stmt->domain, state->stride);
            state->lane = ir_pool_take(&run->pool, count, ir_is_float(stmt->dtype), &state->block);
            switch (stmt->op) {
            case OP_LOAD:
                if (state->live) eval_load(run, stmt, state);
                break;
            case OP_REDUCE: eval_reduce(run, stmt, state); break;
            case OP_CONST:
            case OP_SIZE:
            case OP_IOTA: eval_leaf(run, stmt, state); break;
            default: eval_elements(run, stmt, state);
            }
        }
        for (uint32_t k = 0; k <= i; k++) { /* few statements: a scan is cheap beside their elements */
            bool value = nest->stmts.at[k].op != OP_STORE && nest->stmts.at[k].op != OP_PARTIAL_ACCUMULATE;
            if (value && run->states[k].last_use == i) ir_pool_give(&run->pool, run->states[k].block);
        }
    }
}

/* The first axis that nothing consumes, and the extent of a piece along it. */
static bool is_empty(const Runner *run, uint32_t mask) {
    for (uint32_t i = 0; i < run->nest->axis_count; i++)
        if (mask >> i & 1 && !run->extent[i]) return true;
    return false;
}

/* What varies over no empty axis may have memory without elements behind it: it is loaded only where it is asked for.
 */
static void find_live(const Runner *run) {
    const Nest *nest = run->nest;
    for (uint32_t i = nest->stmts.count; i-- > 0;) {
        const Stmt *stmt = &nest->stmts.at[i];
        if (stmt->op == OP_STORE || stmt->op == OP_PARTIAL_ACCUMULATE) run->states[i].live = true;
        if (!run->states[i].live || is_empty(run, stmt->domain | stmt->consumed)) continue;
        for (uint32_t k = 0; k < stmt->arg_count; k++) run->states[stmt->arg[k]].live = true;
        bool memory = stmt->op == OP_LOAD || stmt->op == OP_STORE;
        uint32_t index = memory ? nest->accesses.at[stmt->access].index : IR_NONE;
        if (index != IR_NONE) run->states[index].live = true;
    }
}

static void choose_cut(Runner *run, int64_t *length) {
    uint64_t sum = 0;
    uint32_t consumed = 0;
    int64_t ignored[IR_MAX_AXES];
    for (uint32_t i = 0; i < run->nest->stmts.count; i++) {
        sum += mask_strides(run, run->nest->stmts.at[i].domain, ignored);
        consumed |= run->nest->stmts.at[i].consumed;
    }
    for (uint32_t i = 0; i < run->nest->axis_count && sum > PIECE; i++) {
        if (consumed >> i & 1 || run->extent[i] < 2) continue;
        run->cut = i;
        int64_t pieces = (int64_t)(sum / PIECE) + 1, extent = run->extent[i];
        *length = (extent + pieces - 1) / pieces;
        return;
    }
}

static void eval_nest(Runner *run, const Nest *nest) {
    int64_t whole = 1, length = 1;
    run->nest = nest;
    run->cut = IR_NONE;
    run->pool = (Pool){.job = run->job, .wide = run->real->wide};
    run->states = IR_NEW_ARRAY(run->job, State, nest->stmts.count);
    find_uses(nest, run->states);
    for (uint32_t i = 0; i < nest->axis_count; i++) run->extent[i] = size_value(run, nest->axes[i].extent);
    find_live(run);
    choose_cut(run, &length);
    if (run->cut != IR_NONE) whole = run->extent[run->cut];
    for (int64_t start = 0; start < whole; start += length) {
        run->cut_start = start;
        run->first_piece = start == 0;
        if (run->cut != IR_NONE) run->extent[run->cut] = start + length < whole ? length : whole - start;
        eval_piece(run);
    }
}

/* Buffers without memory get it: so much as their extents say. */
static void prepare_buf(Runner *run, uint32_t id) {
    const Buf *buf = &run->prog->bufs.at[id];
    EvalBuf *held = &run->bufs[id];
    if (!held->number && !held->integer) {
        if (buf->kind == BUF_IN || buf->kind == BUF_SCALAR) IR_BREACH(run->job, "buffer %s holds nothing", buf->name);
        if (!held->span) {
            held->span = 1;
            for (uint32_t d = 0; d < buf->rank; d++) held->span *= size_value(run, buf->extent[d]);
        }
        if (ir_is_float(buf->dtype))
            held->number = IR_NEW_ARRAY(run->job, double, (size_t)held->span);
        else
            held->integer = IR_NEW_ARRAY(run->job, int64_t, (size_t)held->span);
    }
    if (!held->bound) held->bound = IR_NEW_ARRAY(run->job, double, (size_t)held->span);
    if (run->real->wide && held->number && !held->low) held->low = IR_NEW_ARRAY(run->job, double, (size_t)held->span);
    bool right = ir_is_float(buf->dtype) ? held->number != NULL : held->integer != NULL;
    if (!right) IR_BREACH(run->job, "buffer %s holds the wrong kind", buf->name);
    bool written = buf->kind != BUF_IN && buf->kind != BUF_SCALAR;
    if (written) run->written[id] = IR_NEW_ARRAY(run->job, uint8_t, (size_t)held->span);
}

/* Programs that compute in f64 are evaluated in long double. */
static const RealOps *choose_real(const Prog *prog) {
    bool wide = false;
    for (uint32_t b = 0; b < prog->bufs.count; b++) wide |= prog->bufs.at[b].dtype == DTYPE_F64;
    for (uint32_t n = 0; n < prog->nests.count; n++)
        for (uint32_t i = 0; i < prog->nests.at[n].stmts.count; i++)
            wide |= prog->nests.at[n].stmts.at[i].dtype == DTYPE_F64;
    return wide ? &ir_real_long : &ir_real_double;
}

void ir_eval_prog(Job *job, const Prog *prog, const int64_t *dims, const int64_t *parts, EvalBuf *bufs) {
    Runner run = {.job = job, .prog = prog, .dims = dims, .parts = parts, .bufs = bufs};
    run.real = choose_real(prog);
    run.written = IR_NEW_ARRAY(job, uint8_t *, prog->bufs.count);
    for (uint32_t i = 0; i < prog->bufs.count; i++) prepare_buf(&run, i);
    for (uint32_t i = 0; i < prog->nests.count; i++) {
        Mark mark = ir_mark(job);
        eval_nest(&run, &prog->nests.at[i]);
        ir_reset(job, mark);
    }
}
