/* In: a plan whose steps are made. Out: for each step whose kernels are an earlier one's but for names, that one as its
 * code: the text holds the first's kernels, and each step launches them with pointers and sizes of its own. What the
 * step moves, its grid, its parts and its place in the workspace stay its own.
 *
 * A step is written down in words: all that its kernels' text depends on, and what a launch reads beside its parameters
 * (shared memory, guards). Buffers and part counts are numbered in the order of their first use, so that neither names
 * nor the order of a file's inputs matter, while two accesses of one buffer differ from two buffers. Dims stay what
 * they are. Steps of equal words are twins. Words and no text: writing a kernel out takes fifty times as long as
 * planning it. tests/unit/test_twins.c holds the words to the text: it writes out every twin under numbers for names.
 * What emit comes to read anew of a step, nest or buffer belongs here. */
#include "gen/schedule.h"

#include <string.h>

typedef IR_LIST(uint32_t) Numbered;

typedef struct Twin { /* a step on its way to words */
    Job *job;
    const Prog *prog;
    const Nest *nest;
    const Step *step;
    IR_LIST(int64_t) words;
    Numbered bufs, parts;
    uint64_t hash;
} Twin;

static void put(Twin *t, int64_t word) { *IR_PUSH(t->job, &t->words) = word; }

static uint32_t place_of(const Numbered *list, uint32_t id) {
    uint32_t place = 0;
    while (place < list->count && list->at[place] != id) place++;
    return place;
}

/* Its place in the list, where it is put if it is new. */
static uint32_t number(Job *job, Numbered *list, uint32_t id) {
    const uint32_t place = place_of(list, id);
    if (place == list->count) *IR_PUSH(job, list) = id;
    return place;
}

static void put_size(Twin *t, Size size) {
    put(t, size.kind);
    put(t, size.kind == SIZE_PART ? number(t->job, &t->parts, (uint32_t)size.value) : size.value);
}

static void put_list(Twin *t, const StmtList *list) {
    put(t, list->count);
    for (uint32_t i = 0; i < list->count; i++) put(t, list->at[i]);
}

/* ---- the nest ---- */

static void put_access(Twin *t, uint32_t id) {
    const Access *access = &t->nest->accesses.at[id];
    const Form *form = &t->step->forms[id];
    const Buf *buf = &t->prog->bufs.at[access->buf];
    const bool slot = t->step->part != IR_NONE && buf->kind == BUF_WORKSPACE;
    put(t, number(t->job, &t->bufs, access->buf));
    put(t, (int64_t)form->kind << 16 | form->constant << 9 | form->index64 << 8 | form->empty);
    put(t, form->apart);
    put_size(t, access->offset);
    for (uint32_t a = 0; a < t->nest->axis_count; a++) put_size(t, access->stride[a]);
    put(t, access->index);
    if (access->index != IR_NONE) put_size(t, access->index_stride);
    if (access->index != IR_NONE) put_size(t, access->index_extent);
    put(t, slot ? buf->rank : 0);
    for (uint32_t d = 0; d < buf->rank; d++) /* the others are not in the text: strides tell the layout */
        if ((slot && d > 0) || (form->empty | form->apart) >> d & 1) put_size(t, buf->extent[d]);
}

/* Of what the accesses use, in that order. An alias beyond it still takes away what a buffer alone has. */
static void put_bufs(Twin *t) {
    const uint32_t count = t->bufs.count;
    put(t, count);
    for (uint32_t i = 0; i < count; i++) {
        const Buf *buf = &t->prog->bufs.at[t->bufs.at[i]];
        put(t, buf->dtype);
        put(t, buf->kind);
        put(t, buf->may_alias == IR_NONE ? -1 : (int64_t)place_of(&t->bufs, buf->may_alias));
    }
}

static void put_stmt(Twin *t, uint32_t id) {
    const Stmt *stmt = &t->nest->stmts.at[id];
    put(t, (int64_t)stmt->op << 32 | (int64_t)stmt->dtype << 16 | stmt->result << 8 | stmt->reduction);
    put(t, (int64_t)stmt->domain << 32 | stmt->consumed);
    put(t, stmt->arg_count);
    for (uint32_t k = 0; k < stmt->arg_count; k++) put(t, stmt->arg[k]);
    put(t, stmt->access);
    if (stmt->op == OP_CONST) put(t, (int64_t)stmt->bits);
    if (stmt->op == OP_SIZE) put_size(t, stmt->size);
    if (stmt->op == OP_IOTA) put(t, stmt->axis);
    put(t, t->step->crossing[id] << 1 | t->step->late[id]);
}

static void put_nest(Twin *t) {
    put(t, t->nest->axis_count);
    for (uint32_t a = 0; a < t->nest->axis_count; a++) put_size(t, t->nest->axes[a].extent);
    put(t, t->nest->accesses.count);
    for (uint32_t i = 0; i < t->nest->accesses.count; i++) put_access(t, i);
    put_bufs(t);
    put(t, t->nest->stmts.count);
    for (uint32_t i = 0; i < t->nest->stmts.count; i++) put_stmt(t, i);
}

/* ---- the step ---- */

static void put_tile(Twin *t) {
    const Tile *tile = &t->step->tile;
    const int numbers[] = {tile->threads, tile->row_threads, tile->rows,   tile->vector,
                           tile->chunks,  tile->min_ctas,    tile->stages, tile->part_rows};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) put(t, numbers[i]);
}

static void put_phase(Twin *t, const Phase *phase) {
    const StmtList *lists[] = {&phase->loads,   &phase->stmts,     &phase->stores,
                               &phase->reduces, &phase->row_stmts, &phase->row_stores};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) put_list(t, lists[i]);
    put(t, phase->unroll);
}

static void put_variant(Twin *t, const Variant *variant) {
    put(t, variant->wide);
    put(t, variant->guard_count);
    for (uint32_t g = 0; g < variant->guard_count; g++) {
        const Guard *guard = &variant->guards[g];
        put(t, guard->kind);
        put(t, guard->number);
        if (guard->kind == GUARD_ALIGNED)
            put(t, place_of(&t->bufs, t->step->params[guard->param].buf));
        else
            put_size(t, guard->size);
    }
}

static void put_step(Twin *t) {
    const Step *step = t->step;
    put(t, step->strategy);
    put_tile(t);
    put(t, (int64_t)step->row_mask << 32 | step->looped);
    put(t, step->parted);
    put(t, step->part == IR_NONE ? -1 : (int64_t)number(t->job, &t->parts, step->part));
    put(t, step->fixed_columns);
    put(t, step->column64);
    put_nest(t);
    put(t, step->phase_count);
    for (uint32_t q = 0; q < step->phase_count; q++) put_phase(t, &step->phases[q]);
    put_list(t, &step->resident);
    put_list(t, &step->ahead);
    put(t, step->param_count);
    for (uint32_t i = 0; i < step->param_count; i++) /* the buffers among them are told */
        if (step->params[i].kind == PARAM_SIZE) put_size(t, step->params[i].size);
    put(t, step->shared_bytes);
    put(t, step->slice_count);
    for (uint32_t i = 0; i < step->slice_count; i++)
        put(t, (int64_t)step->slices[i].offset << 32 | step->slices[i].bytes);
    put(t, step->variant_count);
    for (uint32_t v = 0; v < step->variant_count; v++) put_variant(t, &step->variants[v]);
}

static Twin describe(Job *job, const Unit *unit, const Step *step) {
    Twin twin = {.job = job, .prog = unit->prog, .nest = &unit->prog->nests.at[step->nest], .step = step};
    put_step(&twin);
    twin.hash = 14695981039346656037u; /* FNV-1a, a word at a time */
    for (uint32_t i = 0; i < twin.words.count; i++)
        twin.hash = (twin.hash ^ (uint64_t)twin.words.at[i]) * 1099511628211u;
    return twin;
}

static bool is_twin(const Twin *a, const Twin *b) {
    return a->hash == b->hash && a->words.count == b->words.count &&
           memcmp(a->words.at, b->words.at, a->words.count * sizeof *a->words.at) == 0;
}

/* ---- one code for both ---- */

static uint32_t param_of(Job *job, const Step *step, uint32_t buf) {
    for (uint32_t i = 0; i < step->param_count; i++)
        if (step->params[i].kind == PARAM_BUF && step->params[i].buf == buf) return i;
    IR_BREACH(job, "buffer %u is no parameter", buf);
}

/* The step launches the first's kernels: its own buffers in the order of the first's parameters. */
static void adopt(Job *job, Step *step, const Twin *own, uint32_t code, const Twin *first) {
    Param *params = IR_NEW_ARRAY(job, Param, step->param_count);
    for (uint32_t i = 0; i < step->param_count; i++) {
        const Param *theirs = &first->step->params[i];
        uint32_t from = i;
        if (theirs->kind == PARAM_BUF) from = param_of(job, step, own->bufs.at[place_of(&first->bufs, theirs->buf)]);
        params[i] = step->params[from];
    }
    for (uint32_t v = 0; v < step->variant_count; v++) {
        step->variants[v].kernel = first->step->variants[v].kernel;
        for (uint32_t g = 0; g < step->variants[v].guard_count; g++)
            step->variants[v].guards[g].param = first->step->variants[v].guards[g].param;
    }
    step->params = params;
    step->code = code;
}

void gen_find_twins(Job *job, const Unit *unit) {
    Plan *plan = unit->plan;
    Twin *firsts = IR_NEW_ARRAY(job, Twin, plan->steps.count + (size_t)1);
    uint32_t count = 0;
    for (uint32_t s = 0; s < plan->steps.count; s++) {
        const Twin twin = describe(job, unit, &plan->steps.at[s]);
        uint32_t f = 0;
        while (f < count && !is_twin(&firsts[f], &twin)) f++;
        if (f < count)
            adopt(job, &plan->steps.at[s], &twin, firsts[f].step->code, &firsts[f]);
        else
            firsts[count++] = twin;
    }
}
