/* In: a nest, its strategy. Out: the form of each access (what it looks like along a row's columns), and how many
 * elements one access takes. Defaults follow measurements on an H200 (bf16 rows, graph replay, share of a copy's
 * speed); a forced knob replaces its default or stops the job with the reason. */
#include "gen/breakpoints.h"
#include "gen/bytes.h"
#include "gen/nests.h"
#include "gen/schedule.h"

#include <stdlib.h>

static int64_t size_by(Job *job, const Prog *prog, Size size, bool most) {
    if (size.kind == SIZE_INT) return size.value;
    Poly poly = ir_size_poly(job, prog, size);
    int64_t *dims = IR_NEW_ARRAY(job, int64_t, prog->dims.count + 1);
    for (uint32_t i = 0; i < prog->dims.count; i++) {
        const Dim *dim = &prog->dims.at[i];
        dims[i] = most ? ir_dim_most(dim) : ir_dim_hint(dim);
    }
    for (uint32_t t = 0; t < poly.count; t++) {
        if (most && poly.terms[t].coefficient < 0) return -1; /* a larger dim might make it smaller */
        for (uint32_t k = 0; k < IR_MAX_DEGREE && poly.terms[t].symbol[k] != IR_NO_SYMBOL; k++) {
            uint32_t symbol = poly.terms[t].symbol[k];
            if (symbol >= prog->dims.count || dims[symbol] < 0) return -1;
        }
    }
    int64_t value;
    return ir_poly_eval(poly, dims, prog->dims.count, NULL, 0, &value) ? value : -1;
}

int64_t gen_size_most(Job *job, const Prog *prog, Size size) { return size_by(job, prog, size, true); }
int64_t gen_size_hint(Job *job, const Prog *prog, Size size) { return size_by(job, prog, size, false); }

/* ---- forms ---- */

static bool may_be_written(const Planner *p, uint32_t id) {
    const Buf *buf = &p->prog->bufs.at[id];
    if (buf->kind == BUF_TMP || buf->kind == BUF_WORKSPACE) return gen_nest_stores(p->nest, id);
    if (buf->kind != BUF_IN) return true;
    for (uint32_t i = 0; i < p->prog->bufs.count; i++) {
        uint32_t alias = p->prog->bufs.at[i].may_alias;
        if (p->prog->bufs.at[i].kind != BUF_OUT || alias == IR_NONE) continue;
        if (alias == id) return true;
        /* another slice of a tensor that an output shares */
        if (buf->tensor != IR_NONE && p->prog->bufs.at[alias].tensor == buf->tensor) return true;
    }
    return false;
}

/* Whether offsets of columns may pass 2^31 elements. The access's own is added to them where no row has a pointer. */
static bool needs_index64(const Planner *p, const Access *access) {
    const bool by_rows = p->step->strategy != STRATEGY_POINTWISE && !gen_by_columns(p->step->strategy);
    const bool based = by_rows && access->index == IR_NONE;
    int64_t reach = based || access->offset.kind != SIZE_INT ? 0 : llabs(access->offset.value);
    for (uint32_t a = 0; a < p->nest->axis_count; a++) {
        if (!(p->inner >> a & 1) || ir_size_is(access->stride[a], 0)) continue;
        int64_t extent = gen_size_most(p->job, p->prog, p->nest->axes[a].extent), step;
        const Size size = access->stride[a];
        const int64_t stride = size.kind == SIZE_INT ? llabs(size.value) : gen_size_most(p->job, p->prog, size);
        if (stride < 0 || extent < 0 || ir_mul_overflows(stride, extent, &step)) return true;
        if (ir_add_overflows(reach, step, &reach)) return true;
    }
    return reach >= GEN_OFFSETS;
}

/* A load of stride 0 along columns happens once a row, also of a row without columns, whose tensor is not there; that
 * of a column kernel once a column, also of one without rows. */
static uint8_t may_be_empty(const Planner *p, const Buf *buf) {
    uint32_t there = gen_by_columns(p->step->strategy) ? p->inner : p->step->row_mask;
    uint8_t mask = 0;
    if (buf->kind != BUF_IN) return 0;
    for (uint32_t d = 0; d < buf->rank; d++) {
        bool known = buf->extent[d].kind == SIZE_INT;
        for (uint32_t a = 0; a < p->nest->axis_count; a++)
            known |= (there >> a & 1) && ir_size_equal(p->nest->axes[a].extent, buf->extent[d]);
        if (!known) mask |= (uint8_t)(1 << d);
    }
    return mask;
}

/* A part of a nest lacks the axes along which nothing of it varies, as an input of stride 0 does not, and may load
 * where those would be empty. */
static uint8_t may_be_apart(const Planner *p, const Buf *buf) {
    uint8_t mask = 0;
    if (buf->kind != BUF_IN || !p->unit->graph) return 0; /* a dump alone has no strides */
    const Tensor *tensor = &p->unit->graph->inputs.at[buf->tensor];
    if (tensor->contiguous) return 0;
    for (uint32_t d = 0; d < buf->rank; d++) {
        int64_t stride;
        bool there = buf->extent[d].kind == SIZE_INT || !ir_poly_is_int(tensor->stride[d], &stride) || stride != 0;
        for (uint32_t a = 0; a < p->nest->axis_count && !there; a++) {
            const Poly along = ir_size_poly(p->job, p->prog, p->nest->axes[a].extent); /* of several dims, maybe */
            Poly rest;
            there = ir_poly_div(p->job, along, ir_size_poly(p->job, p->prog, buf->extent[d]), NULL, &rest);
        }
        if (!there) mask |= (uint8_t)(1 << d);
    }
    return mask;
}

/* Whether a size is 0 for some dims, none of which is negative. */
static bool may_be_zero(const Planner *p, Size size) {
    const Poly poly = ir_size_poly(p->job, p->prog, size);
    bool more = false;
    for (uint32_t t = 0; t < poly.count; t++) {
        if (poly.terms[t].coefficient < 0) return true;
        more = more || poly.terms[t].symbol[0] == IR_NO_SYMBOL;
    }
    return !more;
}

/* An index that no input decides may stand for an element of a dim that has none, as in the gradient of an empty
 * slice: then nothing is loaded. One that an input gives is the caller's to get right. */
static uint8_t may_be_unpicked(const Planner *p, const Access *access) {
    if (access->index == IR_NONE || !may_be_zero(p, access->index_extent)) return 0;
    if (ir_size_is(access->index_extent, -1)) return 0; /* a dump without it */
    return ir_stmt_is_computed(p->job, p->prog, p->step->nest, access->index) ? GEN_PICKED : 0;
}

static Form form_of(const Planner *p, const Access *access) {
    Form form = {FORM_ROW, !may_be_written(p, access->buf), needs_index64(p, access), 0, 0};
    const bool in_loop = (ir_access_domain(p->nest, access) & p->step->looped) != 0;
    *(in_loop ? &form.apart : &form.empty) = may_be_unpicked(p, access);
    uint32_t own = p->inner | p->step->looped; /* axes along which lanes or turns may have indices of their own */
    if (access->index != IR_NONE && p->nest->stmts.at[access->index].domain & own) {
        form.kind = FORM_GATHER;
        return form;
    }
    bool varies = false;
    for (uint32_t a = 0; a < p->nest->axis_count; a++)
        if (p->inner >> a & 1 && !ir_size_is(access->stride[a], 0)) varies = true;
    if (in_loop)
        form.apart |= may_be_apart(p, &p->prog->bufs.at[access->buf]);
    else
        form.empty |= may_be_empty(p, &p->prog->bufs.at[access->buf]);
    if (!varies) {
        if (in_loop) form.kind = FORM_SAME; /* column: of a row */
        return form;
    }
    Size stride = access->stride[p->last];
    form.kind = ir_size_is(stride, 1) ? FORM_UNIT : ir_size_is(stride, 0) ? FORM_SAME : FORM_STRIDED;
    return form;
}

void gen_plan_forms(Planner *p) {
    p->step->forms = IR_NEW_ARRAY(p->job, Form, p->nest->accesses.count);
    for (uint32_t i = 0; i < p->nest->accesses.count; i++) p->step->forms[i] = form_of(p, &p->nest->accesses.at[i]);
}

/* ---- vector ---- */

static bool divides(int64_t number, int vector) { return number % vector == 0; }

/* A row's columns are counted through several axes, the last of which may end within an access. */
static bool ends_within(const Planner *p, int vector) {
    const uint32_t inner_count = p->nest->axis_count - (uint32_t)__builtin_popcount(p->step->row_mask);
    const bool runs = p->step->strategy == STRATEGY_POINTWISE || gen_by_columns(p->step->strategy);
    return inner_count > 1 && !runs &&
           !divides(gen_size_factor(p->job, p->prog, p->nest->axes[p->last].extent), vector);
}

/* Whether rows can be cut into accesses of so many elements. */
static const char *cut_refused(const Planner *p, int vector) {
    if (vector == 1) return NULL;
    if (p->last == IR_NONE) return "there is no axis to run along";
    Size extent = p->nest->axes[p->last].extent;
    if (extent.kind == SIZE_INT && !divides(extent.value, vector)) return "it does not divide the row";
    if (ends_within(p, vector))
        return "the innermost of a row's axes is known at launch only; give it a multiple or --fix it";
    return NULL;
}

static bool begins_between(Size size, int vector) { return size.kind == SIZE_INT && !divides(size.value, vector); }

const char *gen_wide_refused(const Planner *p, int vector) {
    for (uint32_t i = 0; i < p->nest->accesses.count; i++) {
        const Access *access = &p->nest->accesses.at[i];
        if (p->step->forms[i].kind != FORM_UNIT) continue;
        if (begins_between(access->offset, vector)) return "an access begins between its multiples";
        if (access->index != IR_NONE && begins_between(access->index_stride, vector))
            return "a gathered row begins between its multiples";
        for (uint32_t a = 0; a < p->nest->axis_count; a++)
            if (a != p->last && begins_between(access->stride[a], vector)) return "a stride is no multiple of it";
    }
    return NULL;
}

/* A row's reductions add in the order in which threads take its elements. So there nothing but the row's extents
 * decides: strides and offsets may be numbers in one compile and given at launch in another. */
static const char *vector_refused(const Planner *p, int vector) {
    const bool rows = p->step->strategy != STRATEGY_POINTWISE && !gen_by_columns(p->step->strategy);
    const char *why = cut_refused(p, vector);
    return why || rows ? why : gen_wide_refused(p, vector);
}

/* 16 bytes of the widest element that is read or written in the loop over these axes. */
int gen_full_vector(const Planner *p, uint32_t loop) {
    int widest = 0;
    for (uint32_t i = 0; i < p->nest->accesses.count; i++) {
        const Buf *buf = &p->prog->bufs.at[p->nest->accesses.at[i].buf];
        if (p->step->forms[i].kind != FORM_UNIT) continue;
        if (!(ir_access_domain(p->nest, &p->nest->accesses.at[i]) & loop)) continue;
        if (p->step->strategy == STRATEGY_ROW_STREAM && buf->kind == BUF_WORKSPACE) continue; /* stored once */
        const int bytes = ir_dtype(buf->dtype)->bytes;
        if (bytes > widest) widest = bytes;
    }
    return widest == 0 ? 1 : widest == 1 ? 8 : 16 / widest;
}

int gen_default_vector(const Planner *p, uint32_t loop) {
    int vector = gen_full_vector(p, loop);
    while (vector > 1 && vector_refused(p, vector)) vector /= 2;
    return vector;
}

/* What a row reads along its columns counts, so bf16 rows with an f32 weight get 4: a warp's weight load is then one
 * run of memory (LayerNorm of 1024 columns: 0.947 of a copy, 0.808 with 8). What a column kernel reads or stores once a
 * column does not. */
void gen_plan_vector(Planner *p) {
    int vector = gen_forced_int(p, KNOB_VECTOR);
    p->step->tile.vector = vector ? vector : gen_default_vector(p, p->step->looped);
    if (!vector && gen_full_vector(p, p->step->looped) > p->step->tile.vector &&
        ends_within(p, 2 * p->step->tile.vector)) {
        const Size last = p->nest->axes[p->last].extent;
        const char *extent = gen_poly_text(p->job, p->prog, ir_size_poly(p->job, p->prog, last));
        const char *why = last.kind == SIZE_INT
                              ? ir_format(p->job, "is no multiple of %d", 2 * p->step->tile.vector)
                              : "is known at launch only; give it a multiple or --fix it for wide accesses";
        gen_choose(p->job, p->plan, "%s: accesses; vector=%d: the extent %s %s", p->nest->name, p->step->tile.vector,
                   extent, why);
    }
    if (!vector) return;
    if (vector & (vector - 1)) gen_refuse_knob(p, KNOB_VECTOR, vector, "it is no power of two");
    for (uint32_t i = 0; i < p->nest->accesses.count; i++) {
        int bytes = ir_dtype(p->prog->bufs.at[p->nest->accesses.at[i].buf].dtype)->bytes;
        if (p->step->forms[i].kind == FORM_UNIT && vector * bytes > 32)
            gen_refuse_knob(p, KNOB_VECTOR, vector, "an access would pass 32 bytes");
    }
    const char *why = vector_refused(p, vector);
    if (why) gen_refuse_knob(p, KNOB_VECTOR, vector, why);
}
