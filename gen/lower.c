/* lower: Graph -> Prog.
 *
 * needs   a simplified Graph
 * gives   one nest for each reduction and for each output that no reduction's nest carries; pointwise work is inline in
 *         each nest that needs it, carried values (gen/carry.c) go through tmp buffers. Fixed dims are numbers. Row
 *         axes are those that the reduction keeps, inner axes those that it consumes; of a pointwise nest the last axis
 *         is inner, until axes decides. Letters follow the dims of the nest's root: first r, last c, others between.
 * breaks  nothing: axes of extent 1 and axes that could be one are still there, classes are INNER or POINTWISE
 *
 * A reshape between the root and a load can ask for an axis to be split; the nest is then built anew with the finer
 * axes, until no more splits are asked for (gen/index_map.h). Where no split helps a nest of its own stores the value
 * first, and the lowering begins anew with that; so it does with a nest of its own for a carried output in place, where
 * what it overwrites has still to be read. */
#include "gen/lower_build.h"
#include "gen/nests.h"

Poly gen_lower_poly(Lower *lower, Poly poly) {
    bool overflow = false;
    Poly folded = ir_poly_fold(lower->job, poly, lower->fixed, lower->graph->dims.count, &overflow);
    Poly result = {0};
    for (uint32_t t = 0; t < folded.count; t++) {
        Poly term = ir_poly_int(lower->job, folded.terms[t].coefficient);
        for (uint32_t i = 0; i < IR_MAX_DEGREE && folded.terms[t].symbol[i] != IR_NO_SYMBOL; i++) {
            Poly symbol = ir_poly_symbol(lower->job, lower->prog_dim[folded.terms[t].symbol[i]]);
            term = ir_poly_mul(lower->job, term, symbol, &overflow);
        }
        term = ir_poly_over(lower->job, term, folded.terms[t].divisor, &overflow);
        result = ir_poly_add(lower->job, result, term, &overflow);
    }
    IR_REQUIRE(lower->job, !overflow);
    return result;
}

Extents gen_lower_extents(Lower *lower, const Shape *shape) {
    Extents extents = {.rank = shape->rank};
    for (uint8_t d = 0; d < shape->rank; d++) extents.extent[d] = gen_lower_poly(lower, shape->extent[d]);
    return extents;
}

static uint32_t add_tmp(Lower *lower, uint32_t id) {
    const Carried *own = &lower->values[id];
    Buf buf = {.name = gen_tmp_name(lower->job, lower->prog),
               .dtype = ir_compute_dtype(lower->graph->values.at[id].dtype),
               .kind = BUF_TMP,
               .may_alias = IR_NONE,
               .tensor = IR_NONE,
               .offset = ir_size_int(0)};
    for (uint8_t d = 0; d < own->shape.rank; d++)
        if (!gen_poly_is(own->shape.extent[d], 1))
            buf.extent[buf.rank++] = ir_prog_size(lower->job, lower->prog, own->shape.extent[d]);
    *IR_PUSH(lower->job, &lower->prog->bufs) = buf;
    return lower->prog->bufs.count - 1;
}

static void store(Builder *build, uint32_t id, uint32_t stmt, uint32_t buf, const Map *map, const Poly *stride,
                  Place place) {
    Lower *lower = build->lower;
    IR_REQUIRE(build->job, build->nest.stmts.at != NULL);
    Buf *to = &lower->prog->bufs.at[buf];
    /* the statement is there: demand made it. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
    Kind from_kind = ir_dtype(build->nest.stmts.at[stmt].dtype)->kind, kind = ir_dtype(to->dtype)->kind;
    DType dtype = build->nest.stmts.at[stmt].dtype;
    if (from_kind != kind && !(kind == KIND_INT && from_kind == KIND_BOOL)) {
        Stmt cast = gen_start_stmt(build, OP_CAST, to->dtype, id);
        cast.arg_count = 1;
        cast.arg[0] = stmt;
        stmt = ir_nest_add(build->job, &build->nest, &cast);
    } else if (from_kind != kind || (dtype == DTYPE_F32 && to->dtype == DTYPE_F64)) {
        stmt = gen_convert(build, id, stmt, ir_compute_dtype(to->dtype));
    }
    Stmt stmt_store = gen_start_stmt(build, OP_STORE, to->dtype, id);
    stmt_store.name = NULL;
    if (place.count) stmt_store.place = place;
    stmt_store.arg_count = 1;
    stmt_store.arg[0] = stmt;
    stmt_store.access = gen_add_access(build, buf, map, stride, (Poly){0});
    stmt_store.domain = ir_access_domain(&build->nest, &build->nest.accesses.at[stmt_store.access]);
    ir_nest_add(build->job, &build->nest, &stmt_store);
}

/* An output's strides; accumulate adds to what is there, rounded once. */
static void store_output(Builder *build, uint32_t output, uint32_t stmt, const Map *map) {
    Lower *lower = build->lower;
    const Tensor *tensor = &lower->graph->outputs.at[output];
    Poly stride[IR_MAX_RANK];
    gen_tensor_strides(lower, tensor, stride);
    uint32_t buf = lower->output_buf[output];
    if (tensor->accumulate) {
        uint32_t held =
            gen_add_load(build, tensor->value, tensor->dtype, gen_add_access(build, buf, map, stride, (Poly){0}));
        DType operands[2] = {tensor->dtype, lower->graph->values.at[tensor->value].dtype};
        DType meet = ir_promote(operands[0], operands[1]);
        Stmt add = gen_start_stmt(build, OP_ADD, meet, tensor->value);
        add.name = NULL;
        add.arg_count = 2;
        add.arg[0] = gen_convert(build, tensor->value, held, meet);
        add.arg[1] = gen_convert(build, tensor->value, stmt, meet);
        stmt = ir_nest_add(build->job, &build->nest, &add);
    }
    store(build, tensor->value, stmt, buf, map, stride, tensor->place);
}

static void set_axes(Builder *build, const Extents *root, uint32_t consumed) {
    Builder *b = build;
    uint32_t rows = 0, inner = 0;
    bool is_inner[IR_MAX_AXES];
    for (uint32_t i = 0; i < b->atoms.count; i++) {
        is_inner[i] = b->reduce == IR_NONE ? i + 1 == b->atoms.count : consumed >> b->atoms.at[i].dim & 1;
        rows += !is_inner[i];
    }
    b->nest.axis_count = b->atoms.count;
    b->nest.row_count = rows;
    rows = 0;
    for (uint32_t i = 0; i < b->atoms.count; i++) {
        uint32_t axis = is_inner[i] ? b->nest.row_count + inner++ : rows++;
        b->axis[i] = axis;
        b->extents[axis] = b->atoms.at[i].extent;
        b->nest.axes[axis] = (Axis){.id = gen_axis_letter(i, b->atoms.count, is_inner[i]),
                                    .extent = ir_prog_size(b->job, b->lower->prog, b->atoms.at[i].extent)};
    }
    b->root = gen_map_root(b->job, root, &b->atoms, b->axis);
}

/* Dims of extent 1 aside, a carried value's dims are the reduction's kept ones. */
static const Map *carried_map(Builder *build, uint32_t id) {
    Lower *lower = build->lower;
    const Value *reduce = &lower->graph->values.at[build->reduce];
    const Extents *arg = &lower->values[reduce->arg[0]].shape, *own = &lower->values[id].shape;
    IR_REQUIRE(build->job, build->root != NULL);
    Map *map = IR_NEW(build->job, Map);
    map->rank = own->rank;
    uint8_t from = 0;
    for (uint8_t d = 0; d < own->rank; d++) {
        if (gen_poly_is(own->extent[d], 1)) continue;
        while (gen_poly_is(arg->extent[from], 1) || reduce->dims >> from & 1) from++;
        map->dim[d] = build->root->dim[from++];
    }
    return map;
}

/* What a reduction's nest stores, in the order of the Graph; what overwrites an input in place comes in a second call,
 * when every load is there. */
static void store_carried(Builder *build, bool in_place) {
    Lower *lower = build->lower;
    for (uint32_t id = build->reduce; id < lower->graph->values.count && !build->given_up; id++) {
        Carried *own = &lower->values[id];
        if (own->carrier != build->reduce) continue;
        const Map *map = carried_map(build, id);
        if (own->materialised && !in_place) {
            uint32_t stmt = gen_demand(build, id, map);
            if (build->given_up) return;
            if (own->tmp == IR_NONE) own->tmp = add_tmp(lower, id);
            Poly stride[IR_MAX_RANK];
            gen_row_major(build->job, &own->shape, stride);
            store(build, id, stmt, own->tmp, map, stride, (Place){0});
        }
        for (uint32_t o = 0; o < lower->graph->outputs.count; o++) {
            if (lower->graph->outputs.at[o].value != id || lower->waiting[o]) continue;
            uint32_t stmt = gen_demand(build, id, map);
            if (build->given_up) return;
            if ((lower->graph->outputs.at[o].inplace != IR_NONE) == in_place) store_output(build, o, stmt, map);
        }
    }
}

/* A pointwise value to a tmp of its own. */
static void store_value(Builder *build, uint32_t id, uint32_t stmt) {
    Carried *own = &build->lower->values[id];
    Poly stride[IR_MAX_RANK];
    gen_row_major(build->job, &own->shape, stride);
    own->tmp = add_tmp(build->lower, id);
    store(build, id, stmt, own->tmp, build->root, stride, (Place){0});
}

/* The nest of a reduction, or of a value that is stored at every element of its shape: an output's, or with output
 * IR_NONE one that goes to a tmp. */
static void build_nest(Lower *lower, uint32_t reduce, uint32_t root, uint32_t output) {
    const Graph *graph = lower->graph;
    const Extents *shape = &lower->values[root].shape;
    Builder build = {.lower = lower, .job = lower->job, .reduce = reduce};
    build.empty = gen_is_empty(shape, reduce == IR_NONE ? UINT32_MAX : ~graph->values.at[reduce].dims);
    build.memo_of = IR_NEW_ARRAY(lower->job, uint32_t, graph->values.count);
    gen_atoms_start(&build.atoms, shape);
    for (;;) {
        build.nest = (Nest){.class = reduce == IR_NONE ? CLASS_POINTWISE : CLASS_INNER};
        build.memos.count = 0;
        build.given_up = false;
        for (uint32_t i = 0; i < graph->values.count; i++) build.memo_of[i] = IR_NONE;
        set_axes(&build, shape, reduce == IR_NONE ? 0 : graph->values.at[reduce].dims);
        if (reduce != IR_NONE) {
            store_carried(&build, false);
            store_carried(&build, true);
        } else {
            uint32_t stmt = gen_demand(&build, root, build.root);
            if (!build.given_up && output == IR_NONE) store_value(&build, root, stmt);
            if (!build.given_up && output != IR_NONE) store_output(&build, output, stmt, build.root);
        }
        if (!build.given_up) break;
        if (lower->must_store != IR_NONE) return;
        uint32_t atom = 0;
        while (build.axis[atom] != build.split.atom) atom++;
        build.split.atom = atom;
        gen_atoms_split(lower->job, &build.atoms, build.split);
    }
    build.nest.name = ir_format(lower->job, "n%u", lower->prog->nests.count);
    *IR_PUSH(lower->job, &lower->prog->nests) = build.nest;
}

/* Marks what a value depends on; a reduction's nest brings what else it stores. */
static void mark(Lower *lower, bool *needed, uint32_t id) {
    const Graph *graph = lower->graph;
    IR_LIST(uint32_t) todo = {0};
    *IR_PUSH(lower->job, &todo) = id;
    while (todo.count) {
        uint32_t next = todo.at[--todo.count];
        if (needed[next]) continue;
        needed[next] = true;
        const Value *value = &graph->values.at[next];
        for (uint32_t i = 0; i < value->arg_count; i++) *IR_PUSH(lower->job, &todo) = value->arg[i];
        uint32_t index = ir_gather_index(value);
        if (index != IR_NONE) *IR_PUSH(lower->job, &todo) = index;
        if (value->op != OP_REDUCE) continue;
        for (uint32_t i = next; i < graph->values.count; i++)
            if (lower->values[i].carrier == next) *IR_PUSH(lower->job, &todo) = i;
    }
}

static void emit(Lower *lower, uint32_t id) {
    const bool reduce = lower->graph->values.at[id].op == OP_REDUCE;
    if (lower->emitted[id] || lower->must_store != IR_NONE) return;
    lower->emitted[id] = true;
    build_nest(lower, reduce ? id : IR_NONE, reduce ? lower->graph->values.at[id].arg[0] : id, IR_NONE);
}

static void lower_output(Lower *lower, uint32_t output) {
    const Graph *graph = lower->graph;
    uint32_t id = graph->outputs.at[output].value;
    bool *needed = IR_NEW_ARRAY(lower->job, bool, graph->values.count);
    mark(lower, needed, id);
    for (uint32_t i = 0; i < graph->values.count; i++) {
        const bool reduce = graph->values.at[i].op == OP_REDUCE;
        if (!needed[i] || (!reduce && !lower->values[i].stored)) continue;
        for (uint32_t k = i + 1; reduce && k < graph->values.count; k++) { /* what its nest carries may read these */
            const uint32_t latest = lower->values[k].latest;
            if (needed[k] && lower->values[k].stored && (latest == IR_NONE || latest < i)) emit(lower, k);
        }
        emit(lower, i);
    }
    const bool own = lower->values[id].carrier == IR_NONE || lower->waiting[output];
    if (own && lower->must_store == IR_NONE) build_nest(lower, IR_NONE, id, output);
}

static void report_stored(Lower *lower, Unit *unit, const bool *stored) {
    for (uint32_t n = 0; n < lower->prog->nests.count; n++) {
        const Nest *nest = &lower->prog->nests.at[n];
        for (uint32_t id = 0; id < lower->graph->values.count; id++) {
            if (!stored[id] || !gen_nest_store(nest, lower->values[id].tmp)) continue;
            const char *name = lower->graph->values.at[id].name;
            *IR_PUSH(lower->job, &unit->reports) = (Report){
                .pass = "lower",
                .nests = nest->name,
                .text = ir_format(lower->job, "%s stores %s, which is read in an order in which it cannot be computed",
                                  nest->name, name ? name : "a value")};
        }
    }
}

static void report_waiting(Lower *lower, Unit *unit) {
    for (uint32_t o = 0; o < lower->graph->outputs.count; o++) {
        const Tensor *output = &lower->graph->outputs.at[o];
        for (uint32_t n = 0; n < lower->prog->nests.count && lower->waiting[o]; n++) {
            const char *nest = lower->prog->nests.at[n].name;
            if (!gen_nest_store(&lower->prog->nests.at[n], lower->output_buf[o])) continue;
            *IR_PUSH(lower->job, &unit->reports) =
                (Report){.pass = "lower",
                         .nests = nest,
                         .text = ir_format(lower->job, "%s stores %s in place, after other kernels read %s", nest,
                                           output->name, lower->graph->inputs.at[output->inplace].name)};
        }
    }
}

/* An output that waits is copied from a tmp of its value, or of what that is a view of. */
static void store_waiting(Lower *lower) {
    for (uint32_t o = 0; o < lower->graph->outputs.count; o++) {
        uint32_t id = lower->graph->outputs.at[o].value;
        while (gen_is_view(&lower->graph->values.at[id])) id = lower->graph->values.at[id].arg[0];
        if (lower->waiting[o]) lower->values[id].materialised = true;
    }
}

/* false: stored[id] or waiting[output] has one more. */
static bool try_lower(Job *job, Unit *unit, bool *stored, bool *waiting) {
    const Graph *graph = unit->graph;
    Lower lower = {.job = job,
                   .graph = graph,
                   .prog = ir_prog_create(job, graph->name),
                   .must_store = IR_NONE,
                   .waiting = waiting,
                   .must_wait = IR_NONE};
    lower.fixed = ir_graph_fixed(job, graph);
    uint32_t *prog_dim = IR_NEW_ARRAY(job, uint32_t, graph->dims.count + 1);
    for (uint32_t i = 0; i < graph->dims.count; i++) {
        prog_dim[i] = IR_NONE;
        if (graph->dims.at[i].value >= 0) continue;
        prog_dim[i] = lower.prog->dims.count;
        *IR_PUSH(job, &lower.prog->dims) = graph->dims.at[i];
    }
    lower.prog_dim = prog_dim;
    lower.emitted = IR_NEW_ARRAY(job, bool, graph->values.count + 1);
    gen_carry(&lower);
    store_waiting(&lower);
    gen_lower_long(&lower, &unit->options);
    for (uint32_t id = 0; id < graph->values.count; id++) lower.values[id].stored |= stored[id];
    gen_lower_bufs(&lower);
    for (uint32_t i = 0; i < graph->outputs.count; i++) lower_output(&lower, i);
    if (lower.must_store != IR_NONE) {
        stored[lower.must_store] = true;
        return false;
    }
    gen_lower_order(&lower);
    if (lower.must_wait != IR_NONE) {
        waiting[lower.must_wait] = true;
        return false;
    }
    for (uint32_t i = 0; i < lower.prog->nests.count; i++) lower.prog->nests.at[i].name = ir_format(job, "n%u", i);
    report_stored(&lower, unit, stored);
    report_waiting(&lower, unit);
    gen_tidy(job, lower.prog);
    unit->prog = lower.prog;
    return true;
}

void gen_lower(Job *job, Unit *unit) {
    bool *stored = IR_NEW_ARRAY(job, bool, unit->graph->values.count + (size_t)1);
    bool *waiting = IR_NEW_ARRAY(job, bool, unit->graph->outputs.count + (size_t)1);
    while (!try_lower(job, unit, stored, waiting)) continue;
}
