/* Buffers, and in-place outputs among them.
 *
 * An output in place of a whole input names its buf in may_alias; one in place of a slice gives the slice a buf of its
 * own, which loads of just that slice use too. Other loads of the input must lie in slices that the Graph proves
 * disjoint. Nests that read memory which a later output overwrites come first. Where a read can only come after the
 * store, or has another map in the same nest, a store that a reduction's nest carries gets a nest of its own; else the
 * graph is refused and the read named. */
#include "gen/lower.h"
#include "gen/nests.h"

#include <string.h>

static uint32_t add_buf(Lower *lower, const Tensor *tensor, BufKind kind, uint32_t index) {
    Extents shape = gen_lower_extents(lower, &tensor->shape);
    Buf *buf = IR_PUSH(lower->job, &lower->prog->bufs);
    *buf = (Buf){.name = tensor->name,
                 .dtype = tensor->dtype,
                 .rank = shape.rank,
                 .kind = kind,
                 .align = tensor->align,
                 .may_alias = IR_NONE,
                 .tensor = index,
                 .offset = ir_size_int(0)};
    for (uint8_t d = 0; d < shape.rank; d++) {
        Size extent = ir_prog_size(lower->job, lower->prog, shape.extent[d]);
        lower->prog->bufs.at[lower->prog->bufs.count - 1].extent[d] = extent;
    }
    return lower->prog->bufs.count - 1;
}

static const char *unused_name(Lower *lower, const char *a, const char *b) {
    const char *name = ir_format(lower->job, "%s_%s", a, b);
    for (uint32_t n = 2;; n++) {
        uint32_t i = 0;
        while (i < lower->prog->bufs.count && strcmp(lower->prog->bufs.at[i].name, name)) i++;
        if (i == lower->prog->bufs.count) return name;
        name = ir_format(lower->job, "%s_%s%u", a, b, n);
    }
}

/* The slice as a buf: the output's shape at the input's strides. */
static uint32_t add_slot(Lower *lower, const Tensor *output) {
    Job *job = lower->job;
    const Tensor *input = &lower->graph->inputs.at[output->inplace];
    Poly base = {0};
    for (uint32_t i = 0; i < output->inplace_item_count; i++) {
        Poly start = gen_lower_poly(lower, output->inplace_items[i].start);
        base = gen_poly_add(job, base, gen_poly_mul(job, start, gen_lower_poly(lower, input->stride[i])));
    }
    Tensor slice = *output;
    slice.name = unused_name(lower, input->name, output->name);
    slice.dtype = input->dtype;
    slice.align = 0;
    uint32_t buf = add_buf(lower, &slice, BUF_IN, output->inplace);
    Size offset = ir_prog_size(job, lower->prog, base);
    lower->prog->bufs.at[buf].offset = offset;
    *IR_PUSH(job, &lower->slots) = (Slot){.input = output->inplace,
                                          .items = output->inplace_items,
                                          .item_count = output->inplace_item_count,
                                          .buf = buf,
                                          .base = base};
    return buf;
}

void gen_lower_bufs(Lower *lower) {
    const Graph *graph = lower->graph;
    lower->input_buf = IR_NEW_ARRAY(lower->job, uint32_t, graph->inputs.count + 1);
    lower->scalar_buf = IR_NEW_ARRAY(lower->job, uint32_t, graph->scalars.count + 1);
    lower->output_buf = IR_NEW_ARRAY(lower->job, uint32_t, graph->outputs.count + 1);
    uint32_t *alias = IR_NEW_ARRAY(lower->job, uint32_t, graph->outputs.count + 1);
    for (uint32_t i = 0; i < graph->inputs.count; i++)
        lower->input_buf[i] = add_buf(lower, &graph->inputs.at[i], BUF_IN, i);
    for (uint32_t i = 0; i < graph->outputs.count; i++) {
        const Tensor *output = &graph->outputs.at[i];
        alias[i] = output->inplace == IR_NONE ? IR_NONE
                   : output->inplace_items    ? add_slot(lower, output)
                                              : lower->input_buf[output->inplace];
    }
    for (uint32_t i = 0; i < graph->scalars.count; i++)
        lower->scalar_buf[i] = add_buf(lower, &graph->scalars.at[i], BUF_SCALAR, i);
    for (uint32_t i = 0; i < graph->outputs.count; i++) {
        lower->output_buf[i] = add_buf(lower, &graph->outputs.at[i], BUF_OUT, i);
        lower->prog->bufs.at[lower->output_buf[i]].may_alias = alias[i];
    }
}

/* The items that stand for the tensor's dims, without new axes. */
static uint32_t own_items(const Item *items, uint32_t count, Item *own) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (items[i].kind != ITEM_NEW_AXIS) own[kept++] = items[i];
    return kept;
}

static bool same_items(Lower *lower, const Item *a, const Item *b, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (a[i].kind != b[i].kind) return false;
        if (!ir_poly_equal(gen_lower_poly(lower, a[i].start), gen_lower_poly(lower, b[i].start))) return false;
        if (a[i].kind == ITEM_RANGE &&
            !ir_poly_equal(gen_lower_poly(lower, a[i].stop), gen_lower_poly(lower, b[i].stop)))
            return false;
    }
    return true;
}

uint32_t gen_lower_input_buf(Lower *lower, uint32_t input, const Item *items, uint32_t item_count, Place place,
                             Poly *base) {
    *base = (Poly){0};
    Item own[IR_MAX_RANK] = {{0}};
    uint32_t count = items ? own_items(items, item_count, own) : 0;
    for (uint32_t i = 0; i < lower->slots.count; i++) {
        const Slot *slot = &lower->slots.at[i];
        if (slot->input != input) continue;
        if (items && same_items(lower, own, slot->items, count)) {
            *base = slot->base;
            return slot->buf;
        }
        if (!items || !ir_items_disjoint(lower->job, lower->graph, own, slot->items, count))
            ir_stop_at(lower->job, STATUS_REJECTED, place,
                       "this reads a part of '%s' that an output overwrites in place",
                       lower->graph->inputs.at[input].name);
    }
    return lower->input_buf[input];
}

/* Whether an output in place that a reduction's nest stores can be left to a nest after it. */
static bool can_wait(const Lower *lower, const Nest *nest, uint32_t buf) {
    const Buf *out = &lower->prog->bufs.at[buf];
    if (out->may_alias == IR_NONE || !gen_nest_stores(nest, buf)) return false;
    const uint32_t value = lower->graph->outputs.at[out->tensor].value;
    return lower->values[value].carrier != IR_NONE && !lower->waiting[out->tensor];
}

/* In the nest that overwrites it, the aliased buffer is read by the store's map alone. */
static void check_own_nest(Lower *lower, const Nest *nest, uint32_t out, uint32_t alias) {
    const Stmt *out_store = gen_nest_store(nest, out);
    if (!out_store) return;
    const Access *store = &nest->accesses.at[out_store->access];
    for (uint32_t i = 0; i < nest->stmts.count; i++) {
        const Stmt *stmt = &nest->stmts.at[i];
        if (stmt->op != OP_LOAD) continue;
        Access load = nest->accesses.at[stmt->access];
        if (load.buf != alias) continue;
        load.buf = out;
        if (gen_same_access(nest, &load, store)) continue;
        if (!can_wait(lower, nest, out))
            ir_stop_at(lower->job, STATUS_REJECTED, stmt->place,
                       "this reads elements of '%s' that output '%s' may have overwritten in place already",
                       lower->prog->bufs.at[alias].name, lower->prog->bufs.at[out].name);
        lower->must_wait = lower->prog->bufs.at[out].tensor;
    }
}

/* Nests that wait for one another: after[i * count + k], k has to run after i, because of it or of what does. */
static bool *find_waits(Lower *lower) {
    const Prog *prog = lower->prog;
    const uint32_t count = prog->nests.count;
    bool *after = IR_NEW_ARRAY(lower->job, bool, (size_t)count *count + 1);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < count; k++)
            after[i * count + k] = i != k && gen_nest_after(prog, &prog->nests.at[i], &prog->nests.at[k]);
    for (uint32_t m = 0; m < count; m++)
        for (uint32_t i = 0; i < count; i++)
            for (uint32_t k = 0; k < count && after[i * count + m]; k++)
                if (after[m * count + k]) after[i * count + k] = true;
    return after;
}

/* Of nests that wait for one another, each overwriting what the other reads, two become one, in which every load comes
 * before the stores; false where none can. */
static bool join_waiting(Lower *lower, const bool *after) {
    Prog *prog = lower->prog;
    const uint32_t count = prog->nests.count;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = i + 1; k < count; k++) {
            Nest *a = &prog->nests.at[i], *b = &prog->nests.at[k];
            if (!after[i * count + k] || !after[k * count + i] || !gen_same_axes(a, b)) continue;
            if (a->class != CLASS_POINTWISE || b->class != CLASS_POINTWISE) continue;
            *a = gen_join_nests(lower->job, prog, a, b);
            memmove(b, b + 1, (count - k - 1) * sizeof *b);
            prog->nests.count--;
            return true;
        }
    }
    return false;
}

/* Of nests that wait for one another: an output that one of them need not store itself. */
static bool part_store(Lower *lower, const bool *after) {
    const Prog *prog = lower->prog;
    for (uint32_t n = 0; n < prog->nests.count; n++)
        for (uint32_t b = 0; b < prog->bufs.count && after[n * prog->nests.count + n]; b++) {
            if (!can_wait(lower, &prog->nests.at[n], b)) continue;
            lower->must_wait = prog->bufs.at[b].tensor;
            return true;
        }
    return false;
}

/* Where the graph uses a load: its own place is the input's. */
static Place place_of_use(const Nest *nest, uint32_t load) {
    for (uint32_t i = load + 1; i < nest->stmts.count; i++)
        for (uint32_t k = 0; k < nest->stmts.at[i].arg_count; k++)
            if (nest->stmts.at[i].arg[k] == load) return nest->stmts.at[i].place;
    return nest->stmts.at[load].place;
}

/* Names a read that cannot come before what overwrites its memory. */
static _Noreturn void refuse_order(Lower *lower, const bool *after) {
    const Prog *prog = lower->prog;
    const uint32_t count = prog->nests.count;
    for (uint32_t n = 0; n < count; n++) {
        const Nest *nest = &prog->nests.at[n];
        for (uint32_t i = 0; i < nest->stmts.count && after[n * count + n]; i++) {
            const Stmt *load = &nest->stmts.at[i];
            for (uint32_t o = 0; load->op == OP_LOAD && o < prog->bufs.count; o++) {
                const Buf *buf = &prog->bufs.at[o];
                if (buf->may_alias == IR_NONE || buf->may_alias != nest->accesses.at[load->access].buf) continue;
                uint32_t w = 0;
                while (w < count && !gen_nest_stores(&prog->nests.at[w], o)) w++;
                if (w == count || w == n || !after[w * count + n]) continue;
                ir_error(lower->job, lower->graph->outputs.at[buf->tensor].place,
                         "output '%s' cannot be in place: '%s' is read after it is overwritten", buf->name,
                         prog->bufs.at[buf->may_alias].name);
                ir_note(lower->job, place_of_use(nest, i), "the read");
                ir_stop(lower->job, STATUS_REJECTED);
            }
        }
    }
    IR_BREACH(lower->job, "nests wait for one another and none overwrites what another reads");
}

/* The first of the nests that wait for none. */
static void sort_nests(Lower *lower, const bool *after) {
    Prog *prog = lower->prog;
    const uint32_t count = prog->nests.count;
    Nest *ordered = IR_NEW_ARRAY(lower->job, Nest, count + (size_t)1);
    bool *placed = IR_NEW_ARRAY(lower->job, bool, count + (size_t)1);
    for (uint32_t n = 0; n < count; n++) {
        uint32_t pick = IR_NONE;
        for (uint32_t i = 0; i < count && pick == IR_NONE; i++) {
            bool ready = !placed[i];
            for (uint32_t k = 0; k < count && ready; k++) ready = placed[k] || !after[k * count + i];
            if (ready) pick = i;
        }
        IR_REQUIRE(lower->job, pick != IR_NONE);
        placed[pick] = true;
        ordered[n] = prog->nests.at[pick];
    }
    memcpy(prog->nests.at, ordered, count * sizeof *ordered);
}

static bool is_circular(const bool *after, uint32_t count) {
    for (uint32_t n = 0; n < count; n++)
        if (after[n * count + n]) return true;
    return false;
}

void gen_lower_order(Lower *lower) {
    Prog *prog = lower->prog;
    bool aliased = false;
    for (uint32_t i = 0; i < prog->bufs.count; i++) aliased = aliased || prog->bufs.at[i].may_alias != IR_NONE;
    if (!aliased) return;
    const bool *after = find_waits(lower);
    while (is_circular(after, prog->nests.count)) {
        if (!join_waiting(lower, after)) {
            if (part_store(lower, after)) return;
            refuse_order(lower, after);
        }
        after = find_waits(lower);
    }
    for (uint32_t i = 0; i < prog->bufs.count; i++)
        for (uint32_t n = 0; n < prog->nests.count && prog->bufs.at[i].may_alias != IR_NONE; n++)
            check_own_nest(lower, &prog->nests.at[n], i, prog->bufs.at[i].may_alias);
    sort_nests(lower, after);
}
