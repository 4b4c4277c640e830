/* schedule: Prog -> Plan, one step a nest that stores anything.
 *   needs   a Prog after fuse
 *   gives   unit->plan: strategies, tiles, phases, parameters, guards, shared memory, what was chosen and why
 *   breaks  nothing; Prog is left alone
 * What no strategy covers yet stops the job with STATUS_UNAVAILABLE at its place. */
#include "gen/schedule.h"
#include "gen/breakpoints.h"
#include "gen/bytes.h"
#include "gen/nests.h"
#include "gen/workspace.h"

void gen_choose(Job *job, Plan *plan, const char *format, ...) {
    Text text = ir_text(job);
    va_list args;
    va_start(args, format);
    ir_text_vformat(&text, format, args);
    va_end(args);
    IR_PUSH(job, &plan->choices)->text = ir_text_string(&text);
}

/* ---- what is not covered ---- */

static void refuse_unsupported(Job *job, const Nest *nest) {
    for (uint32_t i = 0; i < nest->stmts.count; i++) {
        const Stmt *stmt = &nest->stmts.at[i];
        if (stmt->op == OP_REDUCE) {
            if (stmt->consumed != ir_nest_inner_mask(nest))
                ir_stop_at(job, STATUS_UNAVAILABLE, stmt->place,
                           "not generated yet: a reduction over some of a row's inner axes; make it an output of a "
                           "graph of its own");
        }
    }
}

/* ---- parameters ---- */

static const char *plain_name(Job *job, const char *prefix, const char *name) {
    char *text = ir_format(job, "%s%s", prefix, name);
    for (char *c = text; *c; c++) {
        bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '_';
        if (!letter) *c = '_';
    }
    return text;
}

typedef IR_LIST(Param) ParamList;

static void add_size(Planner *p, ParamList *params, Size size) {
    if (size.kind == SIZE_INT) return;
    for (uint32_t i = 0; i < params->count; i++)
        if (params->at[i].kind == PARAM_SIZE && ir_size_equal(params->at[i].size, size)) return;
    const char *name = size.kind == SIZE_DIM    ? plain_name(p->job, "d_", p->prog->dims.at[size.value].name)
                       : size.kind == SIZE_PART ? p->prog->parts.at[size.value]
                                                : ir_format(p->job, "s_%d", (int)size.value);
    *IR_PUSH(p->job, params) = (Param){PARAM_SIZE, IR_NONE, size, name};
}

static void plan_params(Planner *p) {
    ParamList params = {0};
    const Nest *nest = p->nest;
    for (uint32_t b = 0; b < p->prog->bufs.count; b++) {
        bool used = false;
        for (uint32_t i = 0; i < nest->accesses.count; i++) used |= nest->accesses.at[i].buf == b;
        if (!used) continue;
        const Buf *buf = &p->prog->bufs.at[b];
        const char *prefix = buf->kind == BUF_SCALAR ? "c_" : "p_";
        *IR_PUSH(p->job, &params) = (Param){PARAM_BUF, b, ir_size_int(0), plain_name(p->job, prefix, buf->name)};
    }
    for (uint32_t a = 0; a < nest->axis_count; a++) add_size(p, &params, nest->axes[a].extent);
    for (uint32_t i = 0; i < nest->accesses.count; i++) {
        const Access *access = &nest->accesses.at[i];
        add_size(p, &params, access->offset);
        for (uint32_t a = 0; a < nest->axis_count; a++) add_size(p, &params, access->stride[a]);
        if (access->index != IR_NONE) add_size(p, &params, access->index_stride);
        if (access->index != IR_NONE) add_size(p, &params, access->index_extent);
        for (uint32_t d = 0; d < IR_MAX_RANK; d++)
            if ((p->step->forms[i].empty | p->step->forms[i].apart) >> d & 1)
                add_size(p, &params, p->prog->bufs.at[access->buf].extent[d]);
    }
    for (uint32_t i = 0; i < nest->stmts.count; i++) { /* a part's slot has the kept extents */
        if (nest->stmts.at[i].op != OP_PARTIAL_ACCUMULATE) continue;
        const Buf *slots = &p->prog->bufs.at[nest->accesses.at[nest->stmts.at[i].access].buf];
        for (uint8_t d = 0; d < slots->rank; d++) add_size(p, &params, slots->extent[d]);
    }
    for (uint32_t i = 0; i < nest->stmts.count; i++)
        if (nest->stmts.at[i].op == OP_SIZE) add_size(p, &params, nest->stmts.at[i].size);
    p->step->params = params.at;
    p->step->param_count = params.count;
}

/* ---- variants ---- */

typedef IR_LIST(Guard) GuardList;

static void guard_multiple(Planner *p, GuardList *guards, Size size, int64_t number) {
    if (gen_size_factor(p->job, p->prog, size) % number == 0) return;
    for (uint32_t i = 0; i < guards->count; i++)
        if (guards->at[i].kind == GUARD_MULTIPLE && ir_size_equal(guards->at[i].size, size)) return;
    *IR_PUSH(p->job, guards) = (Guard){GUARD_MULTIPLE, 0, size, number};
}

static void guard_aligned(Planner *p, GuardList *guards, uint32_t buf, int64_t bytes) {
    BufKind kind = p->prog->bufs.at[buf].kind;
    if (kind == BUF_TMP || kind == BUF_WORKSPACE) return; /* rooms of the workspace are aligned */
    for (uint32_t i = 0; i < p->step->param_count; i++) {
        const Param *param = &p->step->params[i];
        if (param->kind != PARAM_BUF || param->buf != buf) continue;
        for (uint32_t g = 0; g < guards->count; g++)
            if (guards->at[g].kind == GUARD_ALIGNED && guards->at[g].param == i) return;
        *IR_PUSH(p->job, guards) = (Guard){GUARD_ALIGNED, i, ir_size_int(0), bytes > 16 ? 16 : bytes};
    }
}

/* What accesses of tile.vector elements ask for at launch. */
static GuardList wide_guards(Planner *p) {
    GuardList guards = {0};
    int vector = p->step->tile.vector;
    for (uint32_t i = 0; i < p->nest->accesses.count; i++) {
        const Access *access = &p->nest->accesses.at[i];
        if (p->step->forms[i].kind != FORM_UNIT) continue;
        guard_aligned(p, &guards, access->buf, (int64_t)vector * ir_dtype(p->prog->bufs.at[access->buf].dtype)->bytes);
    }
    guard_multiple(p, &guards, p->nest->axes[p->last].extent, vector);
    for (uint32_t i = 0; i < p->nest->accesses.count; i++) {
        const Access *access = &p->nest->accesses.at[i];
        if (p->step->forms[i].kind != FORM_UNIT) continue;
        guard_multiple(p, &guards, access->offset, vector);
        for (uint32_t a = 0; a < p->nest->axis_count; a++)
            if (a != p->last) guard_multiple(p, &guards, access->stride[a], vector);
        if (access->index != IR_NONE) guard_multiple(p, &guards, access->index_stride, vector);
    }
    return guards;
}

static void plan_variants(Planner *p) {
    Step *step = p->step;
    const char *stem = plain_name(p->job, "", ir_format(p->job, "%s_%s", p->prog->name, p->nest->name));
    const char *refused = gen_wide_refused(p, step->tile.vector);
    if (refused)
        gen_choose(p->job, p->plan, "%s: accesses; one element each, not %d: %s", p->nest->name, step->tile.vector,
                   refused);
    if (step->tile.vector > 1 && !refused) {
        GuardList guards = wide_guards(p);
        Variant *wide = &step->variants[step->variant_count++];
        *wide = (Variant){ir_format(p->job, "%s_aligned", stem), "aligned", true, guards.count, guards.at};
        if (!guards.count) return; /* no launch needs another */
    }
    Variant *any = &step->variants[step->variant_count++];
    *any = (Variant){ir_format(p->job, "%s_any", stem), "any", false, 0, NULL};
}

/* ---- grid and shared memory ---- */

static Poly multiply(Planner *p, Poly a, Poly b) {
    bool overflow = false;
    Poly product = ir_poly_mul(p->job, a, b, &overflow);
    if (overflow) ir_stop_at(p->job, STATUS_REJECTED, (Place){0, 0}, "the sizes of %s are too large", p->nest->name);
    return product;
}

/* Rows (row_stream: those that do not share their sums); pointwise and column: elements, or, where accesses run along a
 * last axis whose length is known at launch only, accesses. */
static void plan_grid(Planner *p) {
    Step *step = p->step;
    bool columns = gen_by_columns(step->strategy), pointwise = step->strategy == STRATEGY_POINTWISE;
    const bool stream = step->strategy == STRATEGY_ROW_STREAM;
    step->units = ir_poly_int(p->job, 1);
    for (uint32_t a = 0; a < p->nest->axis_count; a++) {
        if (!pointwise && (step->row_mask >> a & 1) == columns) continue;
        if (stream && step->parted >> a & 1) continue;
        Poly extent = ir_size_poly(p->job, p->prog, p->nest->axes[a].extent);
        if (a == p->last && (pointwise || columns) && !ir_poly_is_int(extent, NULL)) {
            step->run = extent;
            step->run_each = step->tile.vector;
        } else {
            step->units = multiply(p, step->units, extent);
        }
    }
    step->units_per_cta = pointwise ? (int64_t)step->tile.threads * step->tile.chunks
                          : columns ? step->tile.row_threads
                          : stream  ? 1
                                    : step->tile.rows;
    int64_t alone = 0;
    bool whole = !step->run_each || step->run_each == 1 || (ir_poly_is_int(step->units, &alone) && alone == 1);
    if (!whole || (!pointwise && !columns)) return;
    if (step->run_each) step->units = multiply(p, step->units, step->run);
    step->units_per_cta *= step->tile.vector;
    step->run = ir_poly_int(p->job, 0);
    step->run_each = 0;
}

static Poly extents(Planner *p, uint32_t mask) {
    Poly product = ir_poly_int(p->job, 1);
    for (uint32_t a = 0; a < p->nest->axis_count; a++)
        if (mask >> a & 1) product = multiply(p, product, ir_size_poly(p->job, p->prog, p->nest->axes[a].extent));
    return product;
}

/* The number of parts, by the step that makes them: of rows as many as a CTA works on at once, of columns a trip. */
static void plan_parts(Planner *p) {
    const Step *step = p->step;
    const Tile *tile = &step->tile;
    if (step->part == IR_NONE) return;
    PartCount *count = &p->plan->parts[step->part];
    if (count->units.count) {
        if (step->strategy != STRATEGY_ROW_STREAM || count->part_rows == tile->part_rows) return;
        gen_refuse_knob(p, KNOB_PART_ROWS, tile->part_rows ? tile->part_rows : count->part_rows,
                        "it shares its number of parts with another kernel; force both alike");
    }
    uint32_t all = ((uint32_t)1 << p->nest->axis_count) - 1;
    const bool columns = gen_by_columns(step->strategy), stream = step->strategy == STRATEGY_ROW_STREAM;
    *count = (PartCount){.units = extents(p, step->parted),
                         .beside = extents(p, (stream ? step->row_mask : all) & ~step->parted)};
    count->units_each = columns ? tile->rows : (int64_t)tile->row_threads * tile->vector * tile->chunks;
    count->beside_each = columns ? p->full_columns : tile->rows;
    count->ctas_per_sm = p->part_ctas;
    if (!stream) return;
    int64_t one = 0;
    count->rows_beside = !ir_poly_is_int(count->beside, &one) || one != 1;
    count->beside_each = 1;
    count->units_each = tile->rows;
    count->part_rows = tile->part_rows;
    if (!tile->part_rows) return;
    count->units_each = tile->part_rows;
    count->ctas_per_sm = GEN_ALL_CTAS;
}

/* Bytes of shared memory that a reduction's accumulators take on their way to one, for each byte of one: of rows that
 * several warps share one a warp; of what threads hold for each column one for each. No two reductions share a slot, so
 * that one barrier a phase is enough; in a loop over rows each has two sets, taken in turn. */
static uint32_t count_slots(const Step *step, const Stmt *stmt, Crossing crossing) {
    const Tile *tile = &step->tile;
    const bool columns = gen_by_columns(step->strategy), stream = step->strategy == STRATEGY_ROW_STREAM;
    const bool partial = stmt->op == OP_PARTIAL_ACCUMULATE;
    if (!partial && (stmt->op != OP_REDUCE || crossing != CROSS_ROW)) return 0;
    if (columns) return tile->rows > 1 ? (uint32_t)(tile->threads * tile->vector) : 0;
    if (stream && partial) return tile->rows > 1 ? (uint32_t)(tile->threads * tile->chunks * tile->vector) : 0;
    return tile->row_threads > 32 ? (uint32_t)(tile->threads / 32 * (stream ? 2 : 1)) : 0;
}

/* Fewer threads a row take less: what was forced of them bears the blame, else what let so many sums be one kernel's.
 */
_Noreturn static void refuse_shared(Planner *p, uint64_t bytes, const Target *target) {
    static const KnobId blamed[] = {KNOB_ROW_THREADS, KNOB_ROWS, KNOB_FUSE_STATEMENTS, KNOB_CUT_STATEMENTS};
    const char *why = ir_format(p->job, "its sums take %llu bytes of shared memory; a CTA of sm_%d has at most %d",
                                (unsigned long long)bytes, target->arch, target->shared_per_cta);
    for (uint32_t i = 0; i < sizeof blamed / sizeof *blamed; i++)
        if (gen_forced_int(p, blamed[i])) gen_refuse_knob(p, blamed[i], gen_forced_int(p, blamed[i]), why);
    ir_stop_at(p->job, STATUS_NOT_COMPILED, (Place){0, 0}, "kernel %s: %s; --set row_threads=32 makes it less",
               p->nest->name, why);
}

static void plan_shared(Planner *p) {
    const Target *target = p->unit->options.target ? p->unit->options.target : gen_target(90);
    Step *step = p->step;
    uint64_t total = 0;
    IR_LIST(Slice) slices = {0};
    for (uint32_t i = 0; i < p->nest->stmts.count; i++) {
        const Stmt *stmt = &p->nest->stmts.at[i];
        const uint32_t slots = count_slots(step, stmt, step->crossing[i]);
        if (!slots || gen_accumulator(step, p->nest, i) != i) continue;
        const uint32_t bytes =
            slots * (uint32_t)gen_accumulator_words(stmt->reduction) * ir_dtype(ir_compute_dtype(stmt->dtype))->bytes;
        *IR_PUSH(p->job, &slices) = (Slice){ir_format(p->job, "slots%u", i), step->shared_bytes, bytes};
        step->shared_bytes += (bytes + 15) / 16 * 16;
        total += (bytes + 15) / 16 * 16;
    }
    if (total > (uint64_t)target->shared_per_cta) refuse_shared(p, total, target);
    step->slices = slices.at;
    step->slice_count = slices.count;
}

/* ---- one nest ---- */

static bool is_pointwise(const Nest *nest) {
    uint32_t all = ((uint32_t)1 << nest->axis_count) - 1;
    bool whole = true;
    for (uint32_t i = 0; i < nest->stmts.count; i++) {
        if (nest->stmts.at[i].op == OP_REDUCE) return false;
        if (nest->stmts.at[i].op == OP_STORE && nest->stmts.at[i].domain != all) whole = false;
    }
    return whole || nest->row_count == nest->axis_count;
}

/* Which of the program's numbers of parts the nest has, or IR_NONE. */
static uint32_t part_of(const Prog *prog, const Nest *nest) {
    const Stmt *partial = gen_nest_partial(nest);
    return partial ? (uint32_t)prog->bufs.at[nest->accesses.at[partial->access].buf].extent[0].value : IR_NONE;
}

/* What kind of kernel, and which axes its rows, columns and loops run over. */
static void plan_cover(Planner *p) {
    const Nest *nest = p->nest;
    Step *step = p->step;
    const Stmt *partial = gen_nest_partial(nest);
    uint32_t all = ((uint32_t)1 << nest->axis_count) - 1;
    uint32_t consumed = partial ? partial->consumed : ir_nest_inner_mask(nest);
    bool columns = nest->class == CLASS_OUTER || (nest->class == CLASS_FINALIZE && nest->row_count > 0);
    step->part = part_of(p->prog, nest);
    if (partial) {
        step->parted = consumed;
        columns = gen_class_by_strides(p->job, p->prog, nest, consumed) == CLASS_OUTER;
    }
    if (nest->class == CLASS_ROW_PARTIAL) {
        step->strategy = STRATEGY_ROW_STREAM;
        step->row_mask = ir_nest_row_mask(nest);
        p->inner = step->looped = ir_nest_inner_mask(nest);
    } else if (columns) {
        step->strategy = nest->class == CLASS_FINALIZE ? STRATEGY_FINALIZE : STRATEGY_COLUMN;
        step->row_mask = step->looped = consumed;
        p->inner = all & ~consumed;
    } else if (partial) {
        step->strategy = STRATEGY_ROW_SPLIT;
        p->inner = step->looped = consumed;
        step->row_mask = all & ~consumed;
    } else {
        bool pointwise = is_pointwise(nest);
        step->strategy = pointwise ? STRATEGY_POINTWISE : STRATEGY_ROW_REGISTERS;
        step->row_mask = pointwise ? 0 : ir_nest_row_mask(nest);
        p->inner = step->looped = pointwise ? all : consumed;
    }
}

/* Elements of the columns' axes by hint, or -1. */
static int64_t hinted_columns(const Planner *p) {
    int64_t product = 1;
    for (uint32_t a = 0; a < p->nest->axis_count; a++) {
        if (!(p->inner >> a & 1)) continue;
        int64_t hint = gen_size_hint(p->job, p->prog, p->nest->axes[a].extent);
        if (hint < 0 || ir_mul_overflows(product, hint, &product)) return -1;
    }
    return product;
}

static void plan_columns(Planner *p) {
    int64_t product = 1, most = 1;
    uint32_t count = 0;
    p->last = IR_NONE;
    for (uint32_t a = 0; a < p->nest->axis_count; a++) {
        if (!(p->inner >> a & 1)) continue;
        Size extent = p->nest->axes[a].extent;
        p->last = a;
        count++;
        p->step->columns = extent;
        int64_t m = gen_size_most(p->job, p->prog, extent);
        if (most >= 0 && (m < 0 || ir_mul_overflows(most, m, &most))) most = -1;
        if (extent.kind != SIZE_INT)
            product = -1;
        else if (product >= 0 && ir_mul_overflows(product, extent.value, &product))
            product = -1;
    }
    const int64_t hinted = hinted_columns(p);
    if (count != 1) p->step->columns = ir_size_int(product);
    p->step->fixed_columns = product;
    p->columns = product >= 0 ? product : most;
    p->guess = p->columns >= 0 ? p->columns : hinted >= 0 ? hinted : 4096;
    p->step->column64 = p->columns < 0 || p->columns >= GEN_OFFSETS;
}

static void mark_elements(Planner *p) {
    p->element = IR_NEW_ARRAY(p->job, bool, p->nest->stmts.count);
    for (uint32_t i = 0; i < p->nest->stmts.count; i++)
        p->element[i] = (p->nest->stmts.at[i].domain & p->step->looped) != 0;
    p->phase = ir_nest_phases(p->job, p->nest, &p->phase_count);
}

/* How long the tile takes its rows (or columns) to be, where that is known at launch only: the most, else the hint. */
static void put_guess(Planner *p, Text *text) {
    if (p->step->fixed_columns >= 0) return;
    const Poly extent = gen_axes_elements(p->job, p->prog, p->nest, p->inner);
    const char *from = p->columns >= 0 ? "the max"
                       : p->guess == hinted_columns(p)
                           ? "the hint"
                           : "no hint, since a tile too large costs less than one too small";
    ir_text_format(text, "; tile for %s = %lld, %s", gen_poly_text(p->job, p->prog, extent), (long long)p->guess, from);
}

static void put_row_choice(Planner *p, Text *text) {
    const Step *step = p->step;
    const Tile *tile = &step->tile;
    ir_text_format(text, "%d threads a row, %d rows a CTA, %d accesses of %d elements a thread", tile->row_threads,
                   tile->rows, tile->chunks, tile->vector);
    const char *again = p->reread ? ", whose elements each phase loads again" : "";
    if (step->strategy == STRATEGY_ROW_STREAM && tile->part_rows)
        ir_text_format(text, "; CTAs of %d rows%s", tile->part_rows, again);
    else if (step->strategy == STRATEGY_ROW_STREAM)
        ir_text_format(text, "; at most %d CTAs an SM share the rows%s", tile->min_ctas, again);
    else if (step->strategy == STRATEGY_ROW_SPLIT)
        ir_text_format(text, " a trip; at most %d CTAs an SM share the rows", tile->min_ctas);
    else if (step->strategy != STRATEGY_ROW_LOOP)
        ir_text_format(text, "; %d bytes kept for each element", p->kept_bytes);
    else if (gen_knob_text(&p->unit->options, KNOB_STRATEGY, p->nest->name))
        ir_text_put(text, " a trip (forced)");
    else if (p->columns < 0)
        ir_text_put(text, " a trip; rows have no greatest length");
    else
        ir_text_format(text, " a trip; rows of %lld elements do not fit registers", (long long)p->columns);
}

static void tell_choice(Planner *p) {
    const Step *step = p->step;
    const Tile *tile = &step->tile;
    Text text = ir_text(p->job);
    ir_text_format(&text, "%s: %s, ", p->nest->name, gen_strategy(step->strategy)->name);
    if (step->strategy == STRATEGY_POINTWISE) {
        ir_text_format(&text, "%d threads a CTA, %d elements an access", tile->threads, tile->vector);
    } else if (gen_by_columns(step->strategy)) {
        ir_text_format(&text, "%d accesses of %d elements side by side, %d rows a CTA at once, ", tile->row_threads,
                       tile->vector, tile->rows);
        if (step->part == IR_NONE)
            ir_text_put(&text, "one part");
        else
            ir_text_format(&text, "at most %d CTAs an SM", tile->min_ctas);
        put_guess(p, &text);
    } else {
        put_row_choice(p, &text);
        put_guess(p, &text);
    }
    gen_choose(p->job, p->plan, "%s", ir_text_string(&text));
}

/* Every tensor that it stores is known to have no element. */
static bool stores_nothing(const Prog *prog, const Nest *nest) {
    for (uint32_t i = 0; i < nest->stmts.count; i++) {
        if (nest->stmts.at[i].op == OP_PARTIAL_ACCUMULATE) return false; /* its step says how many parts there are */
        if (nest->stmts.at[i].op != OP_STORE) continue;
        const Buf *buf = &prog->bufs.at[nest->accesses.at[nest->stmts.at[i].access].buf];
        bool empty = false;
        for (uint32_t d = 0; d < buf->rank; d++) empty |= ir_size_is(buf->extent[d], 0);
        if (!empty) return false;
    }
    return true;
}

static void plan_tile(Planner *p) {
    plan_cover(p);
    plan_columns(p);
    mark_elements(p);
    gen_plan_forms(p);
    gen_plan_tile(p);
}

Strategy gen_nest_strategy(Job *job, const Unit *unit, const Nest *nest) {
    Planner p = {.job = job, .unit = unit, .prog = unit->prog, .nest = nest};
    p.plan = IR_NEW(job, Plan);
    p.step = IR_NEW(job, Step);
    plan_tile(&p);
    return p.step->strategy;
}

static void plan_nest(Job *job, Unit *unit, uint32_t index) {
    const Nest *nest = &unit->prog->nests.at[index];
    if (stores_nothing(unit->prog, nest)) {
        gen_choose(job, unit->plan, "%s: no kernel, since what it stores has no element", nest->name);
        return;
    }
    refuse_unsupported(job, nest);
    Planner p = {.job = job, .unit = unit, .prog = unit->prog, .nest = nest, .plan = unit->plan};
    p.step = IR_PUSH(job, &unit->plan->steps);
    p.step->nest = index;
    p.step->code = unit->plan->steps.count - 1;
    plan_tile(&p);
    gen_plan_chain(&p);
    plan_params(&p);
    plan_grid(&p);
    plan_parts(&p);
    plan_shared(&p);
    plan_variants(&p);
    tell_choice(&p);
}

static void start_plan(Job *job, Unit *unit) {
    unit->plan = IR_NEW(job, Plan);
    unit->plan->name = unit->prog->name;
    unit->plan->parts = IR_NEW_ARRAY(job, PartCount, unit->prog->parts.count + (size_t)1);
    for (uint32_t k = 0; k < unit->prog->parts.count; k++) /* of what has no element: none */
        unit->plan->parts[k] = (PartCount){.units_each = 1, .beside_each = 1, .ctas_per_sm = 1};
}

void gen_schedule_nest(Job *job, Unit *unit, uint32_t nest) {
    const Prog *prog = unit->prog;
    start_plan(job, unit);
    plan_nest(job, unit, nest);
    const uint32_t part = part_of(prog, &prog->nests.at[nest]);
    for (uint32_t i = 0; i < prog->nests.count && part != IR_NONE; i++)
        if (i != nest && part_of(prog, &prog->nests.at[i]) == part) plan_nest(job, unit, i);
}

void gen_schedule(Job *job, Unit *unit) {
    gen_knobs_check(job, &unit->options);
    start_plan(job, unit);
    for (uint32_t i = 0; i < unit->prog->nests.count; i++) plan_nest(job, unit, i);
    gen_find_twins(job, unit);
    gen_plan_workspace(job, unit);
    gen_knobs_met(job, unit);
}
