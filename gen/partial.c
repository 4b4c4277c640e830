/* partial: sums across rows in parts.
 *
 * needs   classified nests with one reduction or none
 * gives   every OUTER nest, and every INNER or MIXED one of few and long rows, as two: a POINTWISE nest over the same
 *         axes, all of them rows now, which ends in partial_accumulate to a ws buffer, and a FINALIZE nest over the
 * axes that were kept and the parts, which combines the parts in order and has what followed the reduction: scaling,
 *         casts, accumulation, stores through the output's own strides. Nests that keep and consume equal axes share a
 *         number of parts, so that fuse may join them. Where one part is enough fuse puts the two together again
 * breaks  "each axis that is not a row is reduced in its nest"
 *
 * The kept axes make a slot of the ws: its layout is the parts, then the kept axes, which an OUTER nest has by falling
 * stride. */
#include "gen/partial.h"
#include "gen/breakpoints.h"
#include "gen/bytes.h"
#include "gen/knobs.h"
#include "gen/nests.h"
#include "gen/schedule.h"

#include <string.h>

/* ---- whether to split ---- */

/* The product of extents by hint; -1 where some has none. */
static int64_t hinted_extent(Job *job, const Prog *prog, const Nest *nest, uint32_t mask) {
    int64_t product = 1;
    for (uint32_t a = 0; a < nest->axis_count; a++) {
        if (!(mask >> a & 1)) continue;
        int64_t extent = gen_size_hint(job, prog, nest->axes[a].extent);
        if (extent < 0 || ir_mul_overflows(product, extent, &product)) return -1;
    }
    return product;
}

static int64_t knob_or(const GenOptions *options, KnobId id, const char *kernel, int64_t otherwise) {
    int forced = gen_knob_int(options, id, kernel);
    return forced ? forced : otherwise;
}

/* "M = 4096", or "M (no hint)": what a gate read. */
static const char *extent_text(Job *job, const Unit *unit, const Nest *nest, uint32_t mask) {
    const Poly extent = gen_axes_elements(job, unit->prog, nest, mask);
    if (hinted_extent(job, unit->prog, nest, mask) < 0)
        return ir_format(job, "%s (no hint)", gen_poly_text(job, unit->prog, extent));
    return gen_bytes_text(job, unit, extent);
}

static void tell(Job *job, Unit *unit, const Nest *nest, const char *gate, int64_t number, int64_t limit,
                 const char *text) {
    *IR_PUSH(job, &unit->reports) = (Report){.pass = "partial",
                                             .nests = nest->name,
                                             .gate = gate,
                                             .number = number,
                                             .limit = limit,
                                             .text = ir_format(job, "%s %s", nest->name, text)};
}

/* Rows that leave most SMs idle while one CTA each walks them, and long enough that two more launches are soon won
 * back. Rows of unknown number are taken for many, rows of unknown length for short, but for a single row. What one of
 * both numbers keeps whole is told. */
static bool is_split_row(Job *job, Unit *unit, const Nest *nest) {
    const GenOptions *options = &unit->options;
    const char *mode = gen_knob_text(options, KNOB_SPLIT, nest->name);
    if (options->batch_invariant || (mode && !strcmp(mode, "off"))) return false;
    if (mode) return true;
    const Target *target = options->target ? options->target : gen_target(90);
    const uint32_t row_mask = ir_nest_row_mask(nest), column_mask = ir_nest_inner_mask(nest);
    int64_t rows = hinted_extent(job, unit->prog, nest, row_mask);
    int64_t columns = hinted_extent(job, unit->prog, nest, column_mask);
    const int64_t most = knob_or(options, KNOB_SPLIT_ROWS, nest->name, target->sms / GEN_SPLIT_ROWS);
    const int64_t least = knob_or(options, KNOB_SPLIT_COLUMNS, nest->name, GEN_SPLIT_COLUMNS);
    const bool few = rows >= 0 && rows <= most, lengthy = columns >= least || (columns < 0 && rows == 1);
    if (!few && !lengthy) return false;
    const char *text =
        ir_format(job, "is %s: rows: %s, at most %lld; elements of each: %s, at least %lld",
                  few && lengthy ? "made in parts" : "made whole", extent_text(job, unit, nest, row_mask),
                  (long long)most, extent_text(job, unit, nest, column_mask), (long long)least);
    if (few && lengthy)
        tell(job, unit, nest, NULL, 0, 0, text);
    else
        tell(job, unit, nest, few ? "columns" : "rows", few ? columns : rows, few ? least : most, text);
    return few && lengthy;
}

/* Known at launch only. */
static bool is_any(const Nest *nest, uint32_t mask) {
    for (uint32_t a = 0; a < nest->axis_count; a++)
        if (mask >> a & 1 && nest->axes[a].extent.kind != SIZE_INT) return true;
    return false;
}

#define MOST_OF_CTA 256 /* columns, of elements of two bytes or one: 32 accesses of 8 */

/* Columns of a CTA whose accesses are whole, by the widest element that lanes read side by side (as
 * gen/schedule_access.c has them). */
static int64_t columns_of_cta(const Prog *prog, const Nest *nest, uint32_t consumed) {
    uint32_t last = IR_NONE;
    int bytes = 0;
    for (uint32_t a = 0; a < nest->axis_count; a++)
        if (!(consumed >> a & 1)) last = a;
    for (uint32_t i = 0; i < nest->stmts.count && last != IR_NONE; i++) {
        const Stmt *stmt = &nest->stmts.at[i];
        if (stmt->op != OP_LOAD || !(stmt->domain & consumed)) continue;
        const Access *access = &nest->accesses.at[stmt->access];
        int own = ir_dtype(prog->bufs.at[access->buf].dtype)->bytes;
        if (access->index == IR_NONE && ir_size_is(access->stride[last], 1) && own > bytes) bytes = own;
    }
    return bytes < 2 ? MOST_OF_CTA : MOST_OF_CTA * 2 / bytes;
}

bool gen_one_part(Job *job, const Unit *unit, const Nest *nest, uint32_t consumed, const char **why) {
    const GenOptions *options = &unit->options;
    const char *mode = gen_knob_text(options, KNOB_SPLIT, nest->name);
    uint32_t kept = (((uint32_t)1 << nest->axis_count) - 1) & ~consumed;
    *why = mode ? ir_format(job, "split=%s", mode) : "batch-invariant";
    if (mode) return !strcmp(mode, "off");
    if (options->batch_invariant && is_any(nest, kept)) return true; /* their number would follow what is kept */
    const Target *target = options->target ? options->target : gen_target(90);
    int64_t rows = hinted_extent(job, unit->prog, nest, consumed);
    int64_t columns = hinted_extent(job, unit->prog, nest, kept);
    const int64_t most =
        (int64_t)target->sms * GEN_COLUMNS_OF_ONE_PART * columns_of_cta(unit->prog, nest, consumed) / MOST_OF_CTA;
    const bool few = rows >= 0 && rows <= GEN_ROWS_OF_ONE_PART, enough = columns > most;
    const char *rows_text = ir_format(job, "elements of each: %s, %s %d", extent_text(job, unit, nest, consumed),
                                      few ? "at most" : "more than", GEN_ROWS_OF_ONE_PART);
    const char *columns_text = ir_format(job, "results: %s, %s %lld", extent_text(job, unit, nest, kept),
                                         enough ? "more than" : "at most", (long long)most);
    *why = few ? rows_text : enough ? columns_text : ir_format(job, "%s; %s", columns_text, rows_text);
    return few || enough;
}

/* ---- splitting ---- */

typedef struct Copy { /* statements of a nest on their way to another with other axes */
    Job *job;
    const Nest *from;
    Nest *to;
    uint32_t *id; /* of each statement of from: its place in to, or IR_NONE */
} Copy;

static uint32_t copy_access(Copy *copy, uint32_t access) {
    Access made = copy->from->accesses.at[access];
    if (made.index != IR_NONE) made.index = copy->id[made.index];
    return ir_nest_add_access(copy->job, copy->to, &made);
}

static void copy_stmt(Copy *copy, uint32_t id) {
    Stmt stmt = copy->from->stmts.at[id];
    for (uint32_t k = 0; k < stmt.arg_count; k++) stmt.arg[k] = copy->id[stmt.arg[k]];
    if (stmt.access != IR_NONE) stmt.access = copy_access(copy, stmt.access);
    copy->id[id] = ir_nest_add(copy->job, copy->to, &stmt);
}

static uint32_t only_reduce(const Nest *nest) {
    uint32_t found = IR_NONE;
    for (uint32_t i = 0; i < nest->stmts.count; i++) {
        if (nest->stmts.at[i].op != OP_REDUCE) continue;
        if (found != IR_NONE) return IR_NONE;
        found = i;
    }
    return found;
}

/* What stores need when the reduction's value is given; NULL where some of it varies over what the reduction consumes.
 */
static bool *find_epilogue(Job *job, const Nest *nest, uint32_t reduce) {
    bool *needed = IR_NEW_ARRAY(job, bool, nest->stmts.count);
    for (uint32_t i = 0; i < nest->stmts.count; i++) needed[i] = nest->stmts.at[i].op == OP_STORE;
    for (uint32_t i = nest->stmts.count; i-- > 0;) {
        const Stmt *stmt = &nest->stmts.at[i];
        if (!needed[i] || i == reduce) continue;
        if (stmt->domain & nest->stmts.at[reduce].consumed) return NULL;
        for (uint32_t k = 0; k < stmt->arg_count; k++) needed[stmt->arg[k]] = true;
        if (stmt->access != IR_NONE && nest->accesses.at[stmt->access].index != IR_NONE)
            needed[nest->accesses.at[stmt->access].index] = true;
    }
    return needed;
}

static const char *unused_buf_name(Job *job, const Prog *prog) {
    uint32_t number = 0;
    for (uint32_t b = 0; b < prog->bufs.count; b++) number += prog->bufs.at[b].kind == BUF_WORKSPACE;
    const char *name = ir_format(job, "ws%u", number);
    for (uint32_t b = 0; b < prog->bufs.count; b++)
        if (!strcmp(prog->bufs.at[b].name, name)) name = ir_format(job, "%s_", name), b = (uint32_t)-1;
    return name;
}

/* The kept axes as dims of a ws after its parts; the outermost are one where there are too many. */
static uint32_t add_workspace(Job *job, Prog *prog, const Nest *nest, DType dtype, uint32_t part) {
    Buf buf = {.name = unused_buf_name(job, prog),
               .dtype = dtype,
               .kind = BUF_WORKSPACE,
               .may_alias = IR_NONE,
               .tensor = IR_NONE,
               .offset = ir_size_int(0)};
    buf.extent[buf.rank++] = (Size){SIZE_PART, part};
    Poly first = ir_poly_int(job, 1);
    uint32_t merged = nest->row_count >= IR_MAX_RANK ? nest->row_count - (IR_MAX_RANK - 2) : 0;
    for (uint32_t a = 0; a < merged; a++) {
        bool overflow = false;
        first = ir_poly_mul(job, first, ir_size_poly(job, prog, nest->axes[a].extent), &overflow);
        if (overflow) ir_stop_at(job, STATUS_REJECTED, (Place){0, 0}, "the sizes of %s are too large", nest->name);
    }
    if (merged) buf.extent[buf.rank++] = ir_prog_size(job, prog, first);
    for (uint32_t a = merged; a < nest->row_count; a++) buf.extent[buf.rank++] = nest->axes[a].extent;
    *IR_PUSH(job, &prog->bufs) = buf;
    return prog->bufs.count - 1;
}

/* The slot's map over the kept axes, which both nests have first, in order. *slot: elements of it. */
static Access slot_access(Job *job, Prog *prog, const Nest *nest, uint32_t buf, Poly *slot) {
    Access access = {.buf = buf, .offset = ir_size_int(0), .index = IR_NONE, .index_stride = ir_size_int(0)};
    for (uint32_t a = 0; a < IR_MAX_AXES; a++) access.stride[a] = ir_size_int(0);
    *slot = ir_poly_int(job, 1);
    for (uint32_t a = nest->row_count; a-- > 0;) {
        bool overflow = false;
        access.stride[a] = ir_prog_size(job, prog, *slot);
        *slot = ir_poly_mul(job, *slot, ir_size_poly(job, prog, nest->axes[a].extent), &overflow);
        if (overflow) ir_stop_at(job, STATUS_REJECTED, (Place){0, 0}, "the sizes of %s are too large", nest->name);
    }
    return access;
}

static Nest start_nest(const Nest *from, NestClass class, const char *name) {
    Nest nest = *from;
    memset(&nest.stmts, 0, sizeof nest.stmts);
    memset(&nest.accesses, 0, sizeof nest.accesses);
    nest.class = class;
    nest.name = name;
    return nest;
}

static Nest accumulate_nest(Job *job, const Nest *nest, uint32_t reduce, Access slot) {
    Nest made = start_nest(nest, CLASS_POINTWISE, nest->name);
    bool *needed = IR_NEW_ARRAY(job, bool, nest->stmts.count);
    Copy copy = {job, nest, &made, IR_NEW_ARRAY(job, uint32_t, nest->stmts.count)};
    Stmt partial = nest->stmts.at[reduce];
    needed[partial.arg[0]] = true;
    gen_mark_needs(nest, needed);
    for (uint32_t i = 0; i < nest->stmts.count; i++)
        if (needed[i]) copy_stmt(&copy, i);
    made.row_count = made.axis_count;
    partial.op = OP_PARTIAL_ACCUMULATE;
    partial.arg[0] = copy.id[partial.arg[0]];
    partial.access = ir_nest_add_access(job, &made, &slot);
    ir_nest_add(job, &made, &partial);
    return made;
}

static char unused_letter(const Nest *nest, uint32_t count) {
    static const char letters[] = "pqoabdefghijklmn";
    for (const char *letter = letters; *letter; letter++) {
        bool used = false;
        for (uint32_t a = 0; a < count; a++) used |= nest->axes[a].id == *letter;
        if (!used) return *letter;
    }
    return 'z';
}

/* n and the first number that no nest has. */
static const char *unused_nest_name(Job *job, const Prog *prog) {
    uint32_t next = 0;
    for (uint32_t n = 0; n < prog->nests.count; n++) {
        const char *name = prog->nests.at[n].name;
        int64_t number;
        if (*name == 'n' && ir_read_int(name + 1, strlen(name + 1), &number) && number >= next && number < UINT32_MAX)
            next = (uint32_t)number + 1;
    }
    return ir_format(job, "n%u", next);
}

static Nest finalize_nest(Job *job, Prog *prog, const Nest *nest, uint32_t reduce, const bool *epilogue, Access slot,
                          Poly slot_size, uint32_t part) {
    Nest made = start_nest(nest, CLASS_FINALIZE, unused_nest_name(job, prog));
    Copy copy = {job, nest, &made, IR_NEW_ARRAY(job, uint32_t, nest->stmts.count)};
    const Stmt *old = &nest->stmts.at[reduce];
    uint32_t axis = made.row_count;
    made.axis_count = axis + 1;
    made.axes[axis] = (Axis){.id = unused_letter(nest, axis), .extent = {SIZE_PART, part}};
    slot.stride[axis] = ir_prog_size(job, prog, slot_size);
    Stmt load = {.op = OP_LOAD,
                 .dtype = old->dtype,
                 .access = ir_nest_add_access(job, &made, &slot),
                 .axis = IR_NONE,
                 .size = ir_size_int(0),
                 .place = old->place,
                 .value = IR_NONE};
    Stmt combine = *old;
    combine.arg[0] = ir_nest_add(job, &made, &load);
    combine.consumed = (uint32_t)1 << axis;
    copy.id[reduce] = ir_nest_add(job, &made, &combine);
    for (uint32_t i = 0; i < nest->stmts.count; i++)
        if (epilogue[i] && i != reduce) copy_stmt(&copy, i);
    return made;
}

typedef struct Parting { /* nests that are split alike share a part count */
    Nest nest;           /* before */
    uint32_t part;
} Parting;

typedef IR_LIST(Parting) PartingList;

static uint32_t find_part(Job *job, Prog *prog, PartingList *partings, const Nest *nest) {
    for (uint32_t i = 0; i < partings->count; i++)
        if (partings->at[i].nest.class == nest->class && gen_same_axes(&partings->at[i].nest, nest))
            return partings->at[i].part;
    uint32_t part = prog->parts.count;
    *IR_PUSH(job, &prog->parts) = ir_format(job, "P%u", part);
    *IR_PUSH(job, partings) = (Parting){*nest, part};
    return part;
}

/* ---- the order of kept axes ---- */

/* The load that runs over the most axes, or NULL. */
static const Access *widest_read(const Nest *nest) {
    const Access *found = NULL;
    int most = -1;
    for (uint32_t i = 0; i < nest->stmts.count; i++) {
        const Stmt *stmt = &nest->stmts.at[i];
        int width = __builtin_popcount(stmt->domain);
        if (stmt->op != OP_LOAD || width <= most) continue;
        most = width;
        found = &nest->accesses.at[stmt->access];
    }
    return found;
}

/* Kept axes by falling stride of the widest read, so that lanes stand along the one in which memory is contiguous. */
static void order_rows(Job *job, Prog *prog, Nest *nest) {
    const Access *read = widest_read(nest);
    if (!read || nest->row_count < 2) return;
    AxisChange change = gen_axes_kept(job, nest);
    for (uint32_t i = 1; i < nest->row_count; i++)
        for (uint32_t k = i; k > 0; k--) {
            uint32_t a = change.source[k - 1], b = change.source[k];
            if (gen_stride_magnitude(job, prog, read->stride[a]) >= gen_stride_magnitude(job, prog, read->stride[b]))
                break;
            change.source[k - 1] = b;
            change.source[k] = a;
        }
    bool moved = false;
    for (uint32_t k = 0; k < nest->row_count; k++) {
        uint32_t a = change.source[k];
        moved |= a != k;
        change.axes[k] = nest->axes[a];
        change.mask[a] = (uint32_t)1 << k;
    }
    if (moved) gen_nest_change_axes(job, prog, nest, &change);
}

/* Splits nest n in two; false where its shape does not allow that. */
static bool split(Job *job, Unit *unit, PartingList *partings, uint32_t n) {
    Prog *prog = unit->prog;
    Nest nest = prog->nests.at[n];
    uint32_t reduce = only_reduce(&nest);
    if (reduce == IR_NONE || ir_reduction(nest.stmts.at[reduce].reduction)->results > 1) return false;
    if (nest.stmts.at[reduce].consumed != ir_nest_inner_mask(&nest)) return false;
    IR_REQUIRE(job, nest.row_count < IR_MAX_AXES); /* some axis is consumed, and that of the parts takes its place */
    const bool *epilogue = find_epilogue(job, &nest, reduce);
    if (!epilogue) return false;
    uint32_t part = find_part(job, prog, partings, &nest);
    uint32_t ws = add_workspace(job, prog, &nest, nest.stmts.at[reduce].dtype, part);
    Poly slot_size;
    Access slot = slot_access(job, prog, &nest, ws, &slot_size);
    Nest finalize = finalize_nest(job, prog, &nest, reduce, epilogue, slot, slot_size, part);
    prog->nests.at[n] = accumulate_nest(job, &nest, reduce, slot);
    IR_PUSH(job, &prog->nests);
    memmove(&prog->nests.at[n + 2], &prog->nests.at[n + 1], (prog->nests.count - n - 2) * sizeof *prog->nests.at);
    prog->nests.at[n + 1] = finalize;
    return true;
}

static void refuse_invariant(Job *job, const Unit *unit, const Nest *nest) {
    const char *mode = gen_knob_text(&unit->options, KNOB_SPLIT, nest->name);
    if (unit->options.batch_invariant && mode && !strcmp(mode, "all"))
        ir_stop_at(job, STATUS_NOT_COMPILED, (Place){0, 0},
                   "split=all is not possible with --batch-invariant: how many parts there are follows the number of "
                   "rows");
}

void gen_partial(Job *job, Unit *unit) {
    PartingList partings = {0};
    gen_knobs_of_nests(job, unit);
    for (uint32_t n = 0; n < unit->prog->nests.count; n++) {
        Nest *nest = &unit->prog->nests.at[n];
        bool rows = nest->class == CLASS_INNER || nest->class == CLASS_MIXED;
        if (nest->class != CLASS_POINTWISE) refuse_invariant(job, unit, nest);
        if (nest->class == CLASS_OUTER) order_rows(job, unit->prog, nest);
        if (nest->class == CLASS_OUTER || (rows && is_split_row(job, unit, nest))) n += split(job, unit, &partings, n);
    }
}

/* ---- one part ---- */

bool gen_is_parts_of(const Nest *accumulate, const Nest *finalize, const Stmt **partial) {
    if (finalize->class != CLASS_FINALIZE) return false;
    for (uint32_t i = 0; i < finalize->stmts.count; i++) {
        const Stmt *stmt = &finalize->stmts.at[i];
        if (stmt->op != OP_LOAD) continue;
        const Stmt *store = gen_nest_store(accumulate, finalize->accesses.at[stmt->access].buf);
        if (!store || store->op != OP_PARTIAL_ACCUMULATE) continue;
        *partial = store;
        return true;
    }
    return false;
}

Nest gen_unite_parts(Job *job, const Nest *accumulate, const Nest *finalize, const Stmt *partial) {
    Nest made = start_nest(accumulate, CLASS_OUTER, accumulate->name);
    uint32_t ws = accumulate->accesses.at[partial->access].buf;
    Copy before = {job, accumulate, &made, IR_NEW_ARRAY(job, uint32_t, accumulate->stmts.count)};
    Copy after = {job, finalize, &made, IR_NEW_ARRAY(job, uint32_t, finalize->stmts.count)};
    made.row_count = finalize->row_count;
    for (uint32_t i = 0; i < accumulate->stmts.count; i++)
        if (accumulate->stmts.at[i].op != OP_PARTIAL_ACCUMULATE) copy_stmt(&before, i);
    for (uint32_t i = 0; i < finalize->stmts.count; i++) {
        Stmt stmt = finalize->stmts.at[i];
        if (stmt.op == OP_LOAD && finalize->accesses.at[stmt.access].buf == ws) continue;
        if (stmt.op != OP_REDUCE) {
            copy_stmt(&after, i);
            continue;
        }
        stmt.arg[0] = before.id[partial->arg[0]];
        stmt.consumed = partial->consumed;
        after.id[i] = ir_nest_add(job, &made, &stmt);
    }
    return made;
}
