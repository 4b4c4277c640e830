/* The rules that a launch must keep. In: a program's tables and the caller's arguments. Out: sizes, and STATUS_USAGE
 * with words where a rule is broken. The same code serves ng_launch (no words), ng_launch_check and ng_run. */
#include "gen/workspace.h"
#include "ir/verify_map.h"
#include "runtime/launch_tables.h"

#include <string.h>

static const int64_t most_blocks = 0x7fffffff; /* of a one-dimensional grid */

static Status refuse_overflow(Text *why, const char *what, const char *name) {
    rt_say(why, "%s of %s passes 2^62", what, name);
    return STATUS_USAGE;
}

static bool evaluate(const RtProgram *program, const RtScratch *scratch, Poly poly, int64_t *value) {
    return ir_poly_eval(poly, scratch->graph_dims, program->graph->dims.count, NULL, 0, value);
}

static Status check_dims(const RtProgram *program, const int64_t *dims, RtScratch *scratch, Text *why) {
    const Graph *graph = program->graph;
    if (program->any_count && !dims) {
        rt_say(why, "the graph has %u any dims and dims is NULL", program->any_count);
        return STATUS_USAGE;
    }
    for (uint32_t d = 0; d < graph->dims.count; d++) scratch->graph_dims[d] = graph->dims.at[d].value;
    for (uint32_t a = 0; a < program->any_count; a++) {
        const Dim *dim = &graph->dims.at[program->any[a]];
        long long value = dims[a];
        if (value < 0 || value >= IR_MAX_EXTENT) {
            rt_say(why, "dim %s is %lld; it must be at least 0 and below 2^62", dim->name, value);
            return STATUS_USAGE;
        }
        if (dim->max >= 0 && value > dim->max) {
            rt_say(why, "dim %s is %lld, past its max of %lld", dim->name, value, (long long)dim->max);
            return STATUS_USAGE;
        }
        if (dim->multiple > 1 && value % dim->multiple) {
            rt_say(why, "dim %s is %lld, no multiple of %lld", dim->name, value, (long long)dim->multiple);
            return STATUS_USAGE;
        }
        scratch->graph_dims[program->any[a]] = value;
    }
    return STATUS_OK;
}

/* Where the elements lie: every product and sum checked. */
static bool span_ends(RtSpan *span, const Tensor *tensor, int64_t element_bytes) {
    int64_t low = 0, high = 0, bytes;
    for (uint32_t d = 0; d < tensor->shape.rank && span->count; d++) {
        int64_t reach;
        if (ir_mul_overflows(span->extent[d] - 1, span->stride[d], &reach)) return false;
        if (ir_add_overflows(reach < 0 ? low : high, reach, reach < 0 ? &low : &high)) return false;
    }
    if (span->count && ir_add_overflows(high, 1, &high)) return false;
    if (ir_mul_overflows(low, element_bytes, &span->low) || ir_mul_overflows(high, element_bytes, &span->high))
        return false;
    return !ir_add_overflows(span->high, -span->low, &bytes) && bytes < IR_MAX_EXTENT;
}

static Status make_span(const RtProgram *program, uint32_t index, const RtScratch *scratch, Text *why) {
    const Tensor *tensor = program->tensors[index].tensor;
    RtSpan *span = &scratch->spans[index];
    span->count = 1;
    for (uint32_t d = 0; d < tensor->shape.rank; d++) {
        if (!evaluate(program, scratch, tensor->shape.extent[d], &span->extent[d]) ||
            !evaluate(program, scratch, tensor->stride[d], &span->stride[d]))
            return refuse_overflow(why, "an extent or stride", tensor->name);
        if (span->extent[d] < 0) {
            rt_say(why, "extent %u of %s is %lld: an extent is at least 0", d, tensor->name,
                   (long long)span->extent[d]);
            return STATUS_USAGE;
        }
    }
    bool empty = false;
    for (uint32_t d = 0; d < tensor->shape.rank; d++) empty |= span->extent[d] == 0;
    for (uint32_t d = 0; d < tensor->shape.rank && !empty; d++)
        if (ir_mul_overflows(span->count, span->extent[d], &span->count) || span->count >= IR_MAX_EXTENT)
            return refuse_overflow(why, "the number of elements", tensor->name);
    if (empty) span->count = 0;
    if (!span_ends(span, tensor, program->tensors[index].element_bytes))
        return refuse_overflow(why, "the span in bytes", tensor->name);
    return STATUS_OK;
}

/* Part counts, which sizes may name, and the places of rooms, made for the most parts. */
static Status size_parts(const RtProgram *program, RtScratch *scratch, bool most, Text *why) {
    const Prog *prog = program->unit->prog;
    if (gen_eval_parts(program->unit->plan, prog->parts.count, scratch->prog_dims, prog->dims.count, program->sms, most,
                       scratch->parts))
        return STATUS_OK;
    return refuse_overflow(why, "a number of parts", prog->name);
}

static Status size_workspace(const RtProgram *program, RtScratch *scratch, Text *why) {
    const Prog *prog = program->unit->prog;
    const Plan *plan = program->unit->plan;
    Status status = size_parts(program, scratch, true, why);
    if (status) return status;
    if (!gen_eval_rooms(plan, scratch->prog_dims, prog->dims.count, scratch->parts, prog->parts.count, program->sms,
                        scratch->places))
        return refuse_overflow(why, "the workspace", prog->name);
    scratch->workspace_bytes = scratch->places[plan->rooms.count];
    return STATUS_OK;
}

Status rt_program_sizes(const RtProgram *program, const int64_t *dims, int64_t *words, RtScratch *scratch, Text *why) {
    rt_scratch_carve(program, words, scratch);
    Status status = check_dims(program, dims, scratch, why);
    for (uint32_t t = 0; !status && t < program->tensor_count; t++) status = make_span(program, t, scratch, why);
    const Prog *prog = program->unit->prog;
    if (status || !prog || !program->unit->plan) return status;
    for (uint32_t p = 0; p < prog->dims.count; p++) scratch->prog_dims[p] = scratch->graph_dims[program->prog_dim[p]];
    status = size_workspace(program, scratch, why);
    if (!status) status = size_parts(program, scratch, false, why);
    for (uint32_t s = 0; !status && s < prog->sizes.count; s++)
        if (!ir_poly_eval(prog->sizes.at[s], scratch->prog_dims, prog->dims.count, scratch->parts, prog->parts.count,
                          &scratch->sizes[s]))
            return refuse_overflow(why, "a size", prog->name);
    return status;
}

Status rt_step_blocks(const RtProgram *program, uint32_t index, const RtScratch *scratch, int64_t *blocks, Text *why) {
    const Step *step = &program->unit->plan->steps.at[index];
    const Prog *prog = program->unit->prog;
    if (!gen_step_tiles(step, prog, scratch->prog_dims, scratch->parts, blocks))
        return refuse_overflow(why, "the grid", step->variants[0].kernel);
    if (step->part != IR_NONE && ir_mul_overflows(*blocks, scratch->parts[step->part], blocks)) *blocks = INT64_MAX;
    if (*blocks <= most_blocks) return STATUS_OK;
    rt_say(why, "kernel %s needs %lld CTAs; a grid holds %lld", step->variants[0].kernel, (long long)*blocks,
           (long long)most_blocks);
    return STATUS_LAUNCH;
}

/* ---- values whose legality depends on the dims ---- */

void rt_say_value(const RtProgram *program, const Value *value, Text *why) {
    enum { MOST = 60 }; /* bytes; a longer expression is not quoted */
    const Unit *unit = program->unit;
    const Place place = value->place;
    if (!why) return;
    bool quoted =
        unit->text && place.count && place.count <= MOST && place.start + (uint64_t)place.count <= unit->count;
    quoted = quoted && !memchr(unit->text + place.start, '\n', place.count);
    if (quoted) rt_say(why, "%.*s%s", (int)place.count, unit->text + place.start, value->name ? " of " : "");
    if (value->name || !quoted) rt_say(why, "%s%s", value->name ? "node " : "a node", value->name ? value->name : "");
}

static Status check_slice(const RtProgram *program, const Value *value, const RtScratch *scratch, Text *why) {
    const Shape *from = &program->unit->graph->values.at[value->arg[0]].shape;
    uint32_t d = 0;
    for (uint32_t i = 0; i < value->item_count; i++) {
        const Item *item = &value->items[i];
        if (item->kind == ITEM_NEW_AXIS) continue;
        int64_t extent, start = 0, stop = 0;
        bool known = evaluate(program, scratch, from->extent[d++], &extent);
        if (item->kind == ITEM_GATHER) continue;
        known = known && evaluate(program, scratch, item->start, &start);
        if (item->kind == ITEM_AT) stop = start + 1;
        if (item->kind == ITEM_RANGE) known = known && evaluate(program, scratch, item->stop, &stop);
        if (known && 0 <= start && start <= stop && stop <= extent) continue;
        if (!known) return refuse_overflow(why, "the slice", value->name ? value->name : "a node");
        rt_say_value(program, value, why);
        rt_say(why, " takes %lld:%lld of an extent of %lld", (long long)start, (long long)stop, (long long)extent);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

static Status check_extreme(const RtProgram *program, const Value *value, const RtScratch *scratch, Text *why) {
    const Shape *from = &program->unit->graph->values.at[value->arg[0]].shape;
    bool consumed_empty = false, kept_empty = false;
    for (uint32_t d = 0; d < from->rank; d++) {
        int64_t extent;
        if (!evaluate(program, scratch, from->extent[d], &extent))
            return refuse_overflow(why, "an extent", value->name ? value->name : "a node");
        if (extent != 0) continue;
        if (value->dims >> d & 1)
            consumed_empty = true;
        else
            kept_empty = true;
    }
    if (!consumed_empty || kept_empty) return STATUS_OK;
    rt_say(why, "%s of no elements has no value: ", ir_reduction(value->reduction)->language);
    rt_say_value(program, value, why);
    return STATUS_USAGE;
}

static Status check_values(const RtProgram *program, const RtScratch *scratch, Text *why) {
    Status status = STATUS_OK;
    for (uint32_t c = 0; !status && c < program->checked_count; c++) {
        const Value *value = &program->unit->graph->values.at[program->checked[c]];
        status = value->op == OP_INDEX ? check_slice(program, value, scratch, why)
                                       : check_extreme(program, value, scratch, why);
    }
    return status;
}

/* ---- pointers ---- */

static Status check_pointer(const RtProgram *program, uint32_t index, const void *pointer, const RtSpan *span,
                            Text *why) {
    const RtTensor *tensor = &program->tensors[index];
    if (!span->count) return STATUS_OK;
    if (!pointer) {
        rt_say(why, "the pointer of %s is NULL", tensor->tensor->name);
        return STATUS_USAGE;
    }
    if ((uintptr_t)pointer % (uint64_t)tensor->pointer_align) {
        rt_say(why, "the pointer of %s is no multiple of %lld bytes", tensor->tensor->name,
               (long long)tensor->pointer_align);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

/* A dim whose elements share a place with others, or IR_NONE. */
static uint32_t meeting_dim(const Tensor *tensor, const RtSpan *span) {
    return tensor->contiguous ? IR_NONE : ir_strides_meet(span->extent, span->stride, tensor->shape.rank);
}

/* An element of an output is stored once. */
static Status check_injective(const Tensor *tensor, const RtSpan *span, Text *why) {
    uint32_t dim = meeting_dim(tensor, span);
    if (dim == IR_NONE) return STATUS_OK;
    rt_say(why, "the strides of output %s put two elements in one place: %lld of dim %u", tensor->name,
           (long long)span->stride[dim], dim);
    return STATUS_USAGE;
}

typedef struct Range {
    uintptr_t start, stop;
    const RtSpan *span;
    uint32_t rank;
    int64_t element_bytes;
} Range;

static Range range_of(const RtTensor *tensor, const void *pointer, const RtSpan *span) {
    return (Range){(uintptr_t)pointer + (uintptr_t)span->low, (uintptr_t)pointer + (uintptr_t)span->high, span,
                   tensor->tensor->shape.rank, tensor->element_bytes};
}

/* Bytes between neighbours of a dim; 0 where it has one element. */
static int64_t step_of(const Range *range, uint32_t d) {
    int64_t stride = range->span->stride[d];
    return range->span->extent[d] <= 1 ? 0 : (stride < 0 ? -stride : stride) * range->element_bytes;
}

/* The largest step below this one; 0: none. */
static int64_t next_step(const Range *range, int64_t below) {
    int64_t most = 0;
    for (uint32_t d = 0; d < range->rank; d++)
        if (step_of(range, d) > most && step_of(range, d) < below) most = step_of(range, d);
    return most;
}

/* Bytes that the dims of steps below least reach over; takes the others, up to most, into what all are multiples of. */
static int64_t inner_bytes(const Range *range, int64_t least, int64_t most, int64_t *period) {
    int64_t inner = range->element_bytes;
    for (uint32_t d = 0; d < range->rank; d++) {
        int64_t step = step_of(range, d);
        if (step < least)
            inner += (range->span->extent[d] - 1) * step;
        else if (step < most)
            *period = ir_common_factor(*period, step);
    }
    return inner;
}

/* No byte in common: apart, or between each other's elements, as columns of one wider array. From the widest step down:
 * what the dims within it reach over may lie side by side in each period; where it meets in one way alone, what is
 * further out is the same for both and the inner dims are left to compare. */
static bool apart(Range a, Range b) {
    if (a.start == a.stop || b.start == b.stop || a.stop <= b.start || b.stop <= a.start) return true;
    int64_t distance = a.start < b.start ? (int64_t)(b.start - a.start) : -(int64_t)(a.start - b.start);
    int64_t least = INT64_MAX, most = INT64_MAX;
    for (;;) {
        int64_t step = next_step(&a, least), other = next_step(&b, least);
        least = step > other ? step : other;
        if (!least) return false;
        int64_t period = least;
        int64_t first = inner_bytes(&a, least, most, &period), second = inner_bytes(&b, least, most, &period);
        int64_t rest = (distance + second - 1) % period;
        int64_t nearest = rest + (rest < 0 ? period : 0) - second + 1; /* the least distance that could meet */
        if (nearest >= first) return true;
        if (nearest + period >= first) distance = nearest, most = least;
    }
}

/* The output is its inplace input, or that input's slice: element for element the same places. */
static bool in_place(const RtProgram *program, uint32_t output, const ng_args *args, const RtScratch *scratch) {
    const RtTensor *out = &program->tensors[output];
    const RtTensor *in = &program->tensors[out->inplace];
    const Tensor *tensor = out->tensor;
    int64_t offset;
    if (!evaluate(program, scratch, out->slice, &offset)) return false;
    if ((char *)args->tensors[out->inplace] + offset * in->element_bytes != (char *)args->tensors[output]) return false;
    const Range whole = range_of(in, args->tensors[out->inplace], &scratch->spans[out->inplace]);
    const Range part = range_of(out, args->tensors[output], &scratch->spans[output]);
    if (part.start < whole.start || part.stop > whole.stop) return false; /* the slice ends beyond its input */
    uint32_t o = 0;
    for (uint32_t i = 0; i < in->tensor->shape.rank; i++) {
        if (tensor->inplace_items && tensor->inplace_items[i].kind == ITEM_AT) continue;
        if (scratch->spans[output].extent[o] > 1 &&
            scratch->spans[output].stride[o] != scratch->spans[out->inplace].stride[i])
            return false;
        o++;
    }
    return true;
}

/* A store to a part of an input must change no element of the rest. */
static Status check_whole(const Tensor *output, const Tensor *input, const RtSpan *span, Text *why) {
    uint32_t dim = output->inplace_items ? meeting_dim(input, span) : IR_NONE;
    if (dim == IR_NONE) return STATUS_OK;
    rt_say(why, "output %s is in place of a part of %s, whose strides put two elements in one place, ", output->name,
           input->name);
    rt_say(why, "%lld of dim %u: give the output memory of its own", (long long)span->stride[dim], dim);
    return STATUS_USAGE;
}

static Status check_overlap(const RtProgram *program, uint32_t output, const ng_args *args, const RtScratch *scratch,
                            Text *why) {
    const RtTensor *out = &program->tensors[output];
    Range mine = range_of(out, args->tensors[output], &scratch->spans[output]);
    for (uint32_t t = 0; t < output; t++) {
        const RtTensor *other = &program->tensors[t];
        if (apart(mine, range_of(other, args->tensors[t], &scratch->spans[t]))) continue;
        if (t < program->input_count) {
            if (out->inplace == t && in_place(program, output, args, scratch)) {
                Status status = check_whole(out->tensor, other->tensor, &scratch->spans[t], why);
                if (status) return status;
                continue;
            }
        } else if (out->inplace != IR_NONE && out->inplace == other->inplace &&
                   in_place(program, output, args, scratch) && in_place(program, t, args, scratch)) {
            continue; /* slices of one input, which compiling proved disjoint */
        }
        const char *kind = t < program->input_count ? "input" : "output";
        if (out->inplace == t)
            rt_say(why, "output %s overlaps its inplace input %s in part: pass the same elements or others altogether",
                   out->tensor->name, other->tensor->name);
        else
            rt_say(why, "output %s overlaps %s %s", out->tensor->name, kind, other->tensor->name);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

static Status check_workspace(const ng_args *args, const RtScratch *scratch, Text *why) {
    if (!scratch->workspace_bytes) return STATUS_OK;
    if (!args->workspace || (uint64_t)scratch->workspace_bytes > args->workspace_bytes) {
        rt_say(why, "the workspace has %zu bytes; %lld are needed", args->workspace ? args->workspace_bytes : 0,
               (long long)scratch->workspace_bytes);
        return STATUS_USAGE;
    }
    if ((uintptr_t)args->workspace % GEN_WORKSPACE_ALIGN == 0) return STATUS_OK;
    rt_say(why, "the workspace is not aligned to %d bytes", GEN_WORKSPACE_ALIGN);
    return STATUS_USAGE;
}

Status rt_program_check_tensors(const RtProgram *program, const ng_args *args, int64_t *words, RtScratch *scratch,
                                Text *why) {
    if (!program->device) {
        /* what given dims cannot be is so without a device too */
        const Status sizes = args->dims ? rt_program_sizes(program, args->dims, words, scratch, why) : STATUS_OK;
        if (sizes) return sizes;
        rt_say(why, "nothing to launch: the program was made for no device, or only up to some pass");
        return STATUS_UNAVAILABLE;
    }
    if (args->flags) {
        rt_say(why, "flags is 0x%x and must be 0", args->flags);
        return STATUS_USAGE;
    }
    Status status = rt_program_sizes(program, args->dims, words, scratch, why);
    if (!status) status = check_values(program, scratch, why);
    if (status) return status;
    if (program->tensor_count && !args->tensors) {
        rt_say(why, "tensors is NULL");
        return STATUS_USAGE;
    }
    for (uint32_t s = 0; !args->scalars && s < program->graph->scalars.count; s++) {
        if (program->graph->scalars.at[s].has_default) continue;
        rt_say(why, "scalars is NULL and %s has no default", program->graph->scalars.at[s].name);
        return STATUS_USAGE;
    }
    for (uint32_t t = 0; !status && t < program->tensor_count; t++)
        status = check_pointer(program, t, args->tensors[t], &scratch->spans[t], why);
    for (uint32_t t = program->input_count; !status && t < program->tensor_count; t++) {
        status = check_injective(program->tensors[t].tensor, &scratch->spans[t], why);
        if (!status) status = check_overlap(program, t, args, scratch, why);
    }
    int64_t blocks;
    for (uint32_t s = 0; !status && s < program->unit->plan->steps.count; s++)
        status = rt_step_blocks(program, s, scratch, &blocks, why);
    return status;
}

Status rt_program_check(const RtProgram *program, const ng_args *args, int64_t *words, RtScratch *scratch, Text *why) {
    Status status = rt_program_check_tensors(program, args, words, scratch, why);
    return status ? status : check_workspace(args, scratch, why);
}

Scalar rt_scalar_value(const Tensor *scalar, const ng_scalar *given) {
    Scalar value = {0, 0};
    if (ir_dtype(scalar->dtype)->kind == KIND_FLOAT) {
        double number = !given ? scalar->default_float : scalar->dtype == DTYPE_F64 ? given->f64 : (double)given->f32;
        value.number = ir_round(scalar->dtype, number);
    } else {
        int64_t integer = given ? given->i64 : scalar->default_int;
        value.integer = scalar->dtype == DTYPE_BOOL ? integer != 0 : ir_wrap_int(scalar->dtype, integer);
    }
    return value;
}
