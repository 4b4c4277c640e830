/* reorder: sums across rows in the loops of a reduction along them.
 *
 * needs   classified nests, sums across rows in parts (gen/partial.c)
 * gives   a POINTWISE nest that ends in a partial_accumulate and makes a full read of the same elements as an INNER
 * nest has that nest's axes in its order: rows are what it consumes and what it keeps of the other's rows, inner axes
 *         what else it keeps. Axes that are products of the other's are split as they are there, and the other's with
 *         all that have its axes. Fuse then joins the two. What was turned so and what was not, with the gate, both
 *         numbers and the dims by which they were read, stands in unit->reports
 * breaks  "a nest in parts has row axes alone"
 *
 * Both are known by their strides: sums across rows are OUTER, so that lanes of either loop stand along the axis in
 * which memory is contiguous. No path of the nest graph leads from the sums to the rows; one from the rows to the sums
 * may, through values of a row. Gates read the hints of the dims; where there is none they let pass. */
#include "gen/breakpoints.h"
#include "gen/bytes.h"
#include "gen/knobs.h"
#include "gen/nests.h"
#include "gen/partial.h"
#include "gen/schedule.h"

#include <string.h>

typedef struct Gate { /* why a nest is not turned; name NULL: it is */
    const char *name;
    int64_t number, limit;
    const char *words; /* instead of numbers */
    KnobId knob;       /* that the limit is from */
} Gate;

typedef struct Turner {
    Job *job;
    Unit *unit;
    Prog *prog;
    uint32_t *writer; /* of each buf: the nest that stores it, or IR_NONE */
    int64_t *held;    /* of each nest: bytes a column of the accumulators that go with its rows */
    uint32_t *row;    /* of each nest: the one whose loops it took, or IR_NONE */
} Turner;

/* ---- axes ---- */

/* The nest's axes in the order of the data's dims, those of a mask as rows. */
static void put_rows_first(Job *job, Prog *prog, Nest *nest, uint32_t rows) {
    AxisChange change = {.axis_count = nest->axis_count, .row_count = (uint32_t)__builtin_popcount(rows)};
    for (uint32_t a = 0; a < nest->axis_count; a++) {
        uint32_t to = rows >> a & 1 ? 0 : change.row_count;
        for (uint32_t b = 0; b < nest->axis_count; b++)
            to += (rows >> a & 1) == (rows >> b & 1) &&
                  gen_axis_order(nest->axes[b].id) < gen_axis_order(nest->axes[a].id);
        change.axes[to] = nest->axes[a];
        change.mask[a] = (uint32_t)1 << to;
        change.source[to] = a;
        change.factor[to] = ir_poly_int(job, 1);
    }
    gen_nest_change_axes(job, prog, nest, &change);
}

/* What is consumed are rows, what is kept are rows or the other's inner axes. */
static bool is_row_order(const Nest *row, const Nest *nest) {
    const Stmt *partial = gen_nest_partial(nest);
    return gen_same_axes(row, nest) && gen_share_full_read(row, nest) && !(ir_nest_inner_mask(nest) & ~partial->domain);
}

/* nest in the order of row, both perhaps with axes split. */
static bool match(Turner *t, const Nest *row, const Nest *nest, Nest *new_row, Nest *turned) {
    const uint32_t all = ((uint32_t)1 << nest->axis_count) - 1, consumed = gen_nest_partial(nest)->consumed;
    *new_row = *row;
    if (gen_turn_nest(t->job, t->prog, row, nest, turned)) return is_row_order(row, turned);
    uint32_t last = 0; /* in the order of the data's dims */
    for (uint32_t a = 1; a < nest->axis_count; a++)
        if (gen_axis_order(nest->axes[a].id) > gen_axis_order(nest->axes[last].id)) last = a;
    const uint32_t rows[] = {consumed, all & ~((uint32_t)1 << last)};
    for (uint32_t k = 0; k < 2; k++) {
        AxisParts row_parts, parts;
        *turned = *nest;
        *new_row = *row;
        put_rows_first(t->job, t->prog, turned, rows[k]);
        if (!gen_refine_axes(t->job, t->prog, new_row, turned, false, &row_parts, &parts)) continue;
        turned->row_count = new_row->row_count;
        memcpy(turned->axes, new_row->axes, sizeof turned->axes);
        if (is_row_order(new_row, turned)) return true;
    }
    return false;
}

/* All that have the row nest's axes keep those that it has now. */
static void split_alike(Turner *t, const Nest *row, const Nest *new_row) {
    const Nest old = *row;
    for (uint32_t n = 0; n < t->prog->nests.count && new_row->axis_count != old.axis_count; n++) {
        AxisParts parts, like_parts;
        Nest *nest = &t->prog->nests.at[n], like = *new_row;
        if (gen_same_axes(nest, &old)) gen_refine_axes(t->job, t->prog, nest, &like, true, &parts, &like_parts);
    }
}

/* ---- what depends on what ---- */

static void find_writers(Turner *t) {
    for (uint32_t b = 0; b < t->prog->bufs.count; b++) t->writer[b] = IR_NONE;
    for (uint32_t n = 0; n < t->prog->nests.count; n++) {
        const Nest *nest = &t->prog->nests.at[n];
        for (uint32_t i = 0; i < nest->stmts.count; i++)
            if (nest->stmts.at[i].op == OP_STORE || nest->stmts.at[i].op == OP_PARTIAL_ACCUMULATE)
                t->writer[nest->accesses.at[nest->stmts.at[i].access].buf] = n;
    }
}

/* Marks the nests that this one needs, directly or not. */
static void mark_needed(const Turner *t, uint32_t from, bool *needed) {
    needed[from] = true;
    for (uint32_t n = from + 1; n-- > 0;) {
        const Nest *nest = &t->prog->nests.at[n];
        if (!needed[n]) continue;
        for (uint32_t i = 0; i < nest->stmts.count; i++) {
            if (nest->stmts.at[i].op != OP_LOAD) continue;
            uint32_t writer = t->writer[nest->accesses.at[nest->stmts.at[i].access].buf];
            if (writer < n) needed[writer] = true;
        }
    }
    needed[from] = false;
}

/* Whether what leads from the rows to the sums is made by nests that fuse may join with both: of the same axes, and not
 * in parts. turned reads it where they store it. */
static bool paths_allow(const Turner *t, uint32_t row, uint32_t sums, const Nest *turned) {
    const uint32_t count = t->prog->nests.count;
    bool *above = IR_NEW_ARRAY(t->job, bool, count), *needed = IR_NEW_ARRAY(t->job, bool, count);
    mark_needed(t, row, above);
    if (above[sums]) return false;
    mark_needed(t, sums, needed);
    for (uint32_t n = 0; n < count && needed[row]; n++) {
        const Nest *nest = &t->prog->nests.at[n];
        if (!needed[n]) continue;
        bool *own = IR_NEW_ARRAY(t->job, bool, count);
        mark_needed(t, n, own);
        bool between = n == row || own[row];
        if (between && (!gen_same_axes(nest, &t->prog->nests.at[row]) || nest->class == CLASS_OUTER ||
                        nest->class == CLASS_MIXED || gen_nest_partial(nest)))
            return false;
        for (uint32_t i = 0; between && i < turned->stmts.count; i++) {
            const Stmt *load = &turned->stmts.at[i];
            if (load->op != OP_LOAD || t->writer[turned->accesses.at[load->access].buf] != n) continue;
            if (nest->axis_count == turned->axis_count && gen_stored_value(t->prog, nest, turned, load) == IR_NONE)
                return false;
        }
    }
    return true;
}

/* ---- beside other sums ---- */

/* Whether fuse will join two nests of rows, or they are one. */
static bool rows_join(const Turner *t, uint32_t row, uint32_t other) {
    const Nest *a = &t->prog->nests.at[row], *b = &t->prog->nests.at[other];
    return row == other ||
           (b->class == CLASS_INNER && gen_same_axes(a, b) &&
            (gen_share_full_read(a, b) || gen_nest_after(t->prog, a, b) || gen_nest_after(t->prog, b, a)));
}

/* Why sums cannot go with rows beside those that do already: they wait for one of them, or consume other rows. */
static const Gate *beside_others(Turner *t, uint32_t row, uint32_t sums, const Nest *turned) {
    static const Gate waits = {.name = "path", .words = "it waits for another sum across these rows"},
                      others = {.name = "parts", .words = "another sum across these rows keeps other rows"};
    bool *needed = IR_NEW_ARRAY(t->job, bool, t->prog->nests.count);
    mark_needed(t, sums, needed);
    for (uint32_t n = 0; n < t->prog->nests.count; n++) {
        if (t->row[n] == IR_NONE || !rows_join(t, row, t->row[n])) continue;
        if (needed[n]) return &waits;
        AxisParts parts, like_parts;
        Nest other = t->prog->nests.at[n], like = *turned;
        if (!gen_same_axes(&other, &like)) gen_refine_axes(t->job, t->prog, &other, &like, true, &parts, &like_parts);
        if (gen_nest_partial(&other)->consumed != gen_nest_partial(turned)->consumed) return &others;
    }
    return NULL;
}

/* ---- gates ---- */

static int64_t limit_of(const Turner *t, KnobId id, int64_t otherwise) {
    int forced = gen_knob_int(&t->unit->options, id, NULL);
    return forced ? forced : otherwise;
}

/* The product of extents by hints or at the most; -1 where some is unknown. */
static int64_t extent_of(const Turner *t, const Nest *nest, uint32_t mask, bool most) {
    int64_t product = 1;
    for (uint32_t a = 0; a < nest->axis_count; a++) {
        if (!(mask >> a & 1)) continue;
        int64_t extent = most ? gen_size_most(t->job, t->prog, nest->axes[a].extent)
                              : gen_size_hint(t->job, t->prog, nest->axes[a].extent);
        if (extent < 0 || ir_mul_overflows(product, extent, &product)) return -1;
    }
    return product;
}

typedef struct Reads {
    int64_t count, bytes; /* bytes of an element of each */
} Reads;

static Reads full_reads(Turner *t, const Nest *row, const Nest *nest) {
    const Mark mark = ir_mark(t->job);
    const Nest joined = gen_join_nests(t->job, t->prog, row, nest);
    Reads reads = {0};
    for (uint32_t i = 0; i < joined.stmts.count; i++) {
        const Stmt *stmt = &joined.stmts.at[i];
        if (!ir_is_full_read(&joined, stmt)) continue;
        reads.count++;
        reads.bytes += ir_dtype(t->prog->bufs.at[joined.accesses.at[stmt->access].buf].dtype)->bytes;
    }
    ir_reset(t->job, mark);
    return reads;
}

static int64_t accumulator_bytes(const Nest *nest) {
    return ir_dtype(ir_compute_dtype(gen_nest_partial(nest)->dtype))->bytes;
}

static uint32_t kept_rows(const Nest *turned) { return ir_nest_row_mask(turned) & ~gen_nest_partial(turned)->consumed; }

static bool keeps_any_rows(const Nest *turned) {
    const uint32_t kept = kept_rows(turned);
    for (uint32_t a = 0; a < turned->axis_count; a++)
        if (kept >> a & 1 && turned->axes[a].extent.kind != SIZE_INT) return true;
    return false;
}

static Gate judge_numbers(Turner *t, uint32_t index, const Nest *row, const Nest *turned) {
    const uint32_t all = ((uint32_t)1 << turned->axis_count) - 1;
    int64_t most = limit_of(t, KNOB_MIXED_COLUMNS, GEN_MIXED_COLUMNS);
    int64_t columns = extent_of(t, turned, ir_nest_inner_mask(turned), true);
    int64_t rows = extent_of(t, turned, ir_nest_row_mask(turned), false), elements = extent_of(t, turned, all, false);
    if (columns < 0) return (Gate){.name = "columns", .words = "rows have no greatest length"};
    if (columns > most) return (Gate){"columns", columns, most, NULL, KNOB_MIXED_COLUMNS};
    const Reads reads = full_reads(t, row, turned);
    int64_t held = columns * (t->held[index] + accumulator_bytes(turned) + reads.bytes);
    most = limit_of(t, KNOB_MIXED_BYTES, GEN_MIXED_BYTES);
    if (held > most) return (Gate){"registers", held, most, NULL, KNOB_MIXED_BYTES};
    int64_t least = limit_of(t, KNOB_MIXED_ROWS, GEN_MIXED_ROWS);
    if (rows >= 0 && rows < least) return (Gate){"rows", rows, least, NULL, KNOB_MIXED_ROWS};
    const int64_t each = extent_of(t, turned, gen_nest_partial(turned)->consumed, false);
    least = limit_of(t, KNOB_MIXED_KEPT, GEN_MIXED_KEPT);
    if (kept_rows(turned) && each >= 0 && each < least) return (Gate){"kept", each, least, NULL, KNOB_MIXED_KEPT};
    least = limit_of(t, KNOB_MIXED_ELEMENTS, GEN_MIXED_ELEMENTS);
    if (elements >= 0 && elements < least) return (Gate){"elements", elements, least, NULL, KNOB_MIXED_ELEMENTS};
    most = limit_of(t, KNOB_MIXED_READS, GEN_MIXED_READS);
    if (reads.count > most) return (Gate){"reads", reads.count, most, NULL, KNOB_MIXED_READS};
    return (Gate){0};
}

static Gate judge(Turner *t, uint32_t index, uint32_t sums, const Nest *row, const Nest *turned) {
    if (t->prog->nests.at[index].class != CLASS_INNER)
        return (Gate){.name = "class", .words = ir_format(t->job, "%s is MIXED", t->prog->nests.at[index].name)};
    if (!paths_allow(t, index, sums, turned)) return (Gate){.name = "path", .words = "one needs what the other makes"};
    if (t->unit->options.batch_invariant && keeps_any_rows(turned))
        return (Gate){.name = "batch", .words = "the number of parts would follow that of rows"};
    const Gate *beside = beside_others(t, index, sums, turned);
    if (beside) return *beside;
    return judge_numbers(t, index, row, turned);
}

/* ---- one nest ---- */

static void report(Turner *t, uint32_t row, uint32_t sums, const Gate *gate) {
    Job *job = t->job;
    const char *from = t->prog->nests.at[sums].name, *to = t->prog->nests.at[row].name, *text;
    if (!gate->name) {
        text = ir_format(job, "%s takes the loops of %s", from, to);
    } else if (gate->words) {
        text = ir_format(job, "%s does not take the loops of %s: %s: %s", from, to, gate->name, gate->words);
    } else {
        const char *dims = gen_guess_text(job, t->prog);
        text = ir_format(job, "%s does not take the loops of %s: %s: %lld%s%s, at %s %lld (%s)", from, to, gate->name,
                         (long long)gate->number, *dims ? " with " : "", dims,
                         gate->number < gate->limit ? "least" : "most", (long long)gate->limit,
                         gen_knob(gate->knob)->name);
    }
    *IR_PUSH(job, &t->unit->reports) = (Report){.pass = "reorder",
                                                .nests = ir_format(job, "%s %s", from, to),
                                                .gate = gate->name,
                                                .number = gate->number,
                                                .limit = gate->limit,
                                                .text = text};
}

/* The accumulators go with all rows that fuse will join. */
static void hold(Turner *t, uint32_t index, int64_t bytes) {
    for (uint32_t r = 0; r < t->prog->nests.count; r++)
        if (rows_join(t, index, r)) t->held[r] += bytes;
}

/* Turns a nest to the first rows that let it, or says why none does: of those that it shares a read with, the first. */
static void turn_one(Turner *t, uint32_t sums) {
    const Nest *nest = &t->prog->nests.at[sums];
    Gate first = {0};
    uint32_t first_row = IR_NONE;
    for (uint32_t r = 0; r < t->prog->nests.count; r++) {
        const Nest *row = &t->prog->nests.at[r];
        Nest new_row, turned;
        if (row->class != CLASS_INNER && row->class != CLASS_MIXED) continue;
        if (!match(t, row, nest, &new_row, &turned)) continue;
        Gate gate = judge(t, r, sums, &new_row, &turned);
        if (gate.name) {
            if (first_row == IR_NONE) first = gate, first_row = r;
            continue;
        }
        hold(t, r, accumulator_bytes(&turned));
        split_alike(t, row, &new_row);
        t->row[sums] = r;
        t->prog->nests.at[sums] = turned;
        report(t, r, sums, &gate);
        return;
    }
    if (first_row != IR_NONE) report(t, first_row, sums, &first);
}

static bool is_sum_across_rows(Turner *t, const Nest *nest) {
    const Stmt *partial = gen_nest_partial(nest);
    const char *split = gen_knob_text(&t->unit->options, KNOB_SPLIT, nest->name);
    if (split && !strcmp(split, "off")) return false;
    return partial && nest->class == CLASS_POINTWISE && nest->row_count == nest->axis_count &&
           gen_class_by_strides(t->job, t->prog, nest, partial->consumed) == CLASS_OUTER;
}

/* ---- part counts ---- */

static uint32_t part_of(const Prog *prog, const Nest *nest) {
    const Stmt *partial = gen_nest_partial(nest);
    return (uint32_t)prog->bufs.at[nest->accesses.at[partial->access].buf].extent[0].value;
}

static void change_part(Prog *prog, uint32_t buf, uint32_t part) {
    for (uint32_t n = 0; n < prog->nests.count; n++) {
        Nest *nest = &prog->nests.at[n];
        for (uint32_t a = 0; nest->class == CLASS_FINALIZE && gen_nest_loads(nest, buf) && a < nest->axis_count; a++)
            if (nest->axes[a].extent.kind == SIZE_PART) nest->axes[a].extent.value = part;
    }
    prog->bufs.at[buf].extent[0].value = part;
}

/* Those that were turned have as many parts as their rows' kernel, not as those that were not. */
static void part_ways(Turner *t) {
    const uint32_t parts = t->prog->parts.count;
    for (uint32_t part = 0; part < parts; part++) {
        uint32_t other = IR_NONE;
        bool stays = false;
        for (uint32_t n = 0; n < t->prog->nests.count; n++)
            stays |= gen_nest_partial(&t->prog->nests.at[n]) && t->row[n] == IR_NONE &&
                     part_of(t->prog, &t->prog->nests.at[n]) == part;
        for (uint32_t n = 0; n < t->prog->nests.count && stays; n++) {
            const Nest *nest = &t->prog->nests.at[n];
            if (t->row[n] == IR_NONE || part_of(t->prog, nest) != part) continue;
            if (other == IR_NONE) {
                other = t->prog->parts.count;
                *IR_PUSH(t->job, &t->prog->parts) = ir_format(t->job, "P%u", other);
            }
            change_part(t->prog, nest->accesses.at[gen_nest_partial(nest)->access].buf, other);
        }
    }
}

void gen_reorder(Job *job, Unit *unit) {
    const char *fuse = gen_knob_text(&unit->options, KNOB_FUSE, NULL);
    if (fuse && strcmp(fuse, "all") != 0) return;
    Turner t = {.job = job, .unit = unit, .prog = unit->prog};
    const size_t count = unit->prog->nests.count + (size_t)1;
    t.writer = IR_NEW_ARRAY(job, uint32_t, unit->prog->bufs.count + (size_t)1);
    t.held = IR_NEW_ARRAY(job, int64_t, count);
    t.row = IR_NEW_ARRAY(job, uint32_t, count);
    for (size_t n = 0; n < count; n++) t.row[n] = IR_NONE;
    find_writers(&t);
    for (uint32_t n = 0; n < unit->prog->nests.count; n++)
        if (is_sum_across_rows(&t, &unit->prog->nests.at[n])) turn_one(&t, n);
    part_ways(&t);
    gen_tidy(job, unit->prog);
}
