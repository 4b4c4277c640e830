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
 * axes, until no more splits are asked for (gen/index_map.h). */
#include "gen/lower.h"
#include "gen/nests.h"

#include <string.h>

typedef struct Memo { /* a value at a map, once it was computed in the nest */
    const Map *map;
    uint32_t stmt;
    uint32_t next;
} Memo;

typedef struct Builder {
    Lower *lower;
    Job *job;
    Nest nest;
    bool empty;      /* nothing is stored, so any value will do: no load may touch memory that is not there */
    uint32_t reduce; /* the reduction whose nest this is, or IR_NONE */
    const Map *root; /* of the reduction's argument, or of the stored value */
    Atoms atoms;
    uint32_t axis[IR_MAX_AXES]; /* of each atom */
    Poly extents[IR_MAX_AXES];  /* of each axis */
    uint32_t *memo_of;          /* of graph->values: the first of its memos, or IR_NONE */
    IR_LIST(Memo) memos;
    bool wants_split; /* statements made since are worthless */
    Split split;
} Builder;

static uint32_t demand(Builder *build, uint32_t id, const Map *map);

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

/* A statement for the Graph's value; later fields are the caller's. */
static Stmt start_stmt(const Builder *build, Op op, DType dtype, uint32_t id) {
    const Value *value = &build->lower->graph->values.at[id];
    bool named = value->op != OP_INPUT && value->op != OP_SCALAR && op != OP_LOAD;
    return (Stmt){.op = op,
                  .dtype = dtype,
                  .access = IR_NONE,
                  .axis = IR_NONE,
                  .size = ir_size_int(0),
                  .name = named ? value->name : NULL,
                  .place = value->place,
                  .value = value->origin};
}

static uint32_t add_access(Builder *build, uint32_t buf, const Map *map, const Poly *stride, Poly base) {
    Affine address = gen_map_address(build->job, map, stride);
    Prog *prog = build->lower->prog;
    Access access = {.buf = buf, .index = IR_NONE, .index_stride = ir_size_int(0)};
    if (map->gather.is && stride) {
        const Gather *gather = &map->gather;
        access.index_stride =
            ir_prog_size(build->job, prog, gen_poly_mul(build->job, stride[gather->dim], gather->factor));
        if (!ir_size_is(access.index_stride, 0)) { /* else whatever is picked is the same */
            access.index = gather->index;
            access.index_extent = ir_prog_size(build->job, prog, gather->extent);
        }
    }
    access.offset = ir_prog_size(build->job, prog, gen_poly_sub(build->job, address.offset, base));
    for (uint32_t i = 0; i < IR_MAX_AXES; i++) access.stride[i] = ir_prog_size(build->job, prog, address.stride[i]);
    return ir_nest_add_access(build->job, &build->nest, &access);
}

static uint32_t add_load(Builder *build, uint32_t id, DType dtype, uint32_t access) {
    Stmt stmt = start_stmt(build, OP_LOAD, ir_compute_dtype(dtype), id);
    stmt.access = access;
    stmt.domain = ir_access_domain(&build->nest, &build->nest.accesses.at[access]);
    return ir_nest_add(build->job, &build->nest, &stmt);
}

/* Of a tensor without elements any strides will do that keep maps injective. */
static void tensor_strides(Lower *lower, const Tensor *tensor, Poly *stride) {
    Extents shape = gen_lower_extents(lower, &tensor->shape);
    bool empty = false;
    for (uint8_t d = 0; d < shape.rank; d++) {
        stride[d] = gen_lower_poly(lower, tensor->stride[d]);
        empty = empty || !shape.extent[d].count;
    }
    if (empty) gen_row_major(lower->job, &shape, stride);
}

static uint32_t load_tensor(Builder *build, uint32_t id, const Map *map, const Item *items, uint32_t item_count) {
    Lower *lower = build->lower;
    const Value *value = &lower->graph->values.at[id];
    const Tensor *tensor = &lower->graph->inputs.at[value->tensor];
    Poly base, stride[IR_MAX_RANK];
    tensor_strides(lower, tensor, stride);
    uint32_t buf = gen_lower_input_buf(lower, value->tensor, items, item_count, value->place, &base);
    return add_load(build, id, tensor->dtype, add_access(build, buf, map, stride, base));
}

static uint32_t load_tmp(Builder *build, uint32_t id, const Map *map) {
    const Carried *own = &build->lower->values[id];
    IR_REQUIRE(build->job, own->tmp != IR_NONE);
    Poly stride[IR_MAX_RANK];
    gen_row_major(build->job, &own->shape, stride);
    uint32_t access = add_access(build, own->tmp, map, stride, (Poly){0});
    return add_load(build, id, build->lower->graph->values.at[id].dtype, access);
}

static uint32_t add_const(Builder *build, uint32_t id, DType dtype, double number, int64_t integer) {
    Stmt stmt = start_stmt(build, OP_CONST, dtype, id);
    float single = (float)number;
    uint32_t word;
    if (dtype == DTYPE_F32) {
        memcpy(&word, &single, sizeof word);
        stmt.bits = word;
    } else if (dtype == DTYPE_F64) {
        memcpy(&stmt.bits, &number, sizeof number);
    } else {
        stmt.bits = (uint64_t)integer;
    }
    return ir_nest_add(build->job, &build->nest, &stmt);
}

/* The statement's value in a compute dtype: narrower floats widen where they are read, other kinds by a cast. */
static uint32_t convert(Builder *build, uint32_t id, uint32_t arg, DType dtype) {
    if (ir_compute_dtype(build->nest.stmts.at[arg].dtype) == dtype) return arg;
    Stmt stmt = start_stmt(build, OP_CAST, dtype, id);
    stmt.name = NULL;
    stmt.value = IR_NONE;
    stmt.arg_count = 1;
    stmt.arg[0] = arg;
    return ir_nest_add(build->job, &build->nest, &stmt);
}

static uint32_t add_i64(Builder *build, uint32_t id, Op op, uint32_t a, uint32_t b) {
    Stmt stmt = start_stmt(build, op, DTYPE_I64, id);
    stmt.name = NULL;
    stmt.arg_count = 2;
    stmt.arg[0] = a;
    stmt.arg[1] = b;
    return ir_nest_add(build->job, &build->nest, &stmt);
}

static uint32_t add_size(Builder *build, uint32_t id, Poly poly) {
    int64_t number;
    if (ir_poly_is_int(poly, &number)) return add_const(build, id, DTYPE_I64, 0, number);
    Stmt stmt = start_stmt(build, OP_SIZE, DTYPE_I64, id);
    stmt.size = ir_prog_size(build->job, build->lower->prog, poly);
    return ir_nest_add(build->job, &build->nest, &stmt);
}

/* An index along a dim from the nest's axes: sum of iota times stride, plus the offset, plus a gathered index. */
static uint32_t add_iota(Builder *build, uint32_t id, const Affine *form, const Gather *gather) {
    uint32_t sum = form->offset.count ? add_size(build, id, form->offset) : IR_NONE;
    if (gather->is) {
        uint32_t term = gather->index;
        if (!gen_poly_is(gather->factor, 1))
            term = add_i64(build, id, OP_MUL, term, add_size(build, id, gather->factor));
        sum = sum == IR_NONE ? term : add_i64(build, id, OP_ADD, sum, term);
    }
    for (uint32_t i = 0; i < build->nest.axis_count; i++) {
        if (!form->stride[i].count) continue;
        Stmt iota = start_stmt(build, OP_IOTA, DTYPE_I64, id);
        iota.name = NULL;
        iota.axis = i;
        uint32_t term = ir_nest_add(build->job, &build->nest, &iota);
        if (!gen_poly_is(form->stride[i], 1))
            term = add_i64(build, id, OP_MUL, term, add_size(build, id, form->stride[i]));
        sum = sum == IR_NONE ? term : add_i64(build, id, OP_ADD, sum, term);
    }
    return sum == IR_NONE ? add_const(build, id, DTYPE_I64, 0, 0) : sum;
}

static uint32_t add_operation(Builder *build, uint32_t id, const Map *map) {
    Lower *lower = build->lower;
    const Value *value = &lower->graph->values.at[id];
    DType dtypes[3] = {DTYPE_F32, DTYPE_F32, DTYPE_F32};
    uint32_t args[3] = {0};
    for (uint32_t i = 0; i < value->arg_count; i++) {
        const Map *own =
            gen_map_operand(build->job, map, &lower->values[id].shape, &lower->values[value->arg[i]].shape);
        args[i] = demand(build, value->arg[i], own);
        if (build->wants_split) return IR_NONE;
        dtypes[i] = lower->graph->values.at[value->arg[i]].dtype;
    }
    if (value->op == OP_CAST) {
        /* widening is what a load does anyway */
        if (value->dtype == build->nest.stmts.at[args[0]].dtype || value->dtype == dtypes[0]) return args[0];
        if (value->dtype == ir_compute_dtype(dtypes[0])) return args[0];
    } else {
        DType meet = ir_op_operand_dtype(value->op, dtypes);
        OpRule rule = ir_op(value->op)->rule;
        for (uint32_t i = 0; i < value->arg_count; i++) {
            DType want = rule == RULE_WHERE && i == 0 ? DTYPE_BOOL
                         : rule == RULE_TEST          ? ir_compute_dtype(dtypes[i])
                                                      : meet;
            args[i] = convert(build, id, args[i], want);
        }
    }
    Stmt stmt = start_stmt(build, value->op, value->dtype, id);
    stmt.arg_count = value->arg_count;
    for (uint32_t i = 0; i < value->arg_count; i++) stmt.arg[i] = args[i];
    return ir_nest_add(build->job, &build->nest, &stmt);
}

/* Known to have no element, of the dims of `mask`. */
static bool is_empty(const Extents *shape, uint32_t mask) {
    for (uint8_t d = 0; d < shape->rank; d++)
        if (mask >> d & 1 && !shape->extent[d].count) return true;
    return false;
}

static uint32_t add_reduce(Builder *build, uint32_t id) {
    const Value *value = &build->lower->graph->values.at[id];
    /* of nothing: the identity, and no load that could touch what is not there */
    bool nothing = is_empty(&build->lower->values[value->arg[0]].shape, value->dims);
    uint32_t arg = nothing ? add_const(build, id, ir_compute_dtype(value->dtype), 0, 0)
                           : demand(build, value->arg[0], build->root);
    if (build->wants_split) return IR_NONE;
    arg = convert(build, id, arg, ir_compute_dtype(value->dtype));
    Stmt stmt = start_stmt(build, OP_REDUCE, ir_compute_dtype(value->dtype), id);
    stmt.reduction = value->reduction;
    stmt.consumed = ir_nest_inner_mask(&build->nest);
    if (!stmt.consumed) return arg;
    stmt.arg_count = 1;
    stmt.arg[0] = arg;
    return ir_nest_add(build->job, &build->nest, &stmt);
}

/* Contiguous memory under reshapes is read by its row-major index, whatever its dims. */
static bool reads_flat(const Lower *lower, uint32_t id, uint32_t *input) {
    const Value *value = &lower->graph->values.at[id];
    while (value->op == OP_RESHAPE) value = &lower->graph->values.at[ *input = value->arg[0]];
    if (value->op != OP_INPUT || !lower->graph->inputs.at[value->tensor].contiguous) return false;
    for (uint32_t i = 0; i < lower->slots.count; i++)
        if (lower->slots.at[i].input == value->tensor) return false;
    return true;
}

static uint32_t read_reshaped(Builder *build, uint32_t id, const Map *map) {
    Lower *lower = build->lower;
    const Value *value = &lower->graph->values.at[id];
    const Extents *shape = &lower->values[id].shape, *arg_shape = &lower->values[value->arg[0]].shape;
    uint32_t input = id;
    if (reads_flat(lower, id, &input)) {
        const Value *tensor = &lower->graph->values.at[input];
        Poly stride[IR_MAX_RANK];
        gen_row_major(build->job, shape, stride);
        uint32_t access = add_access(build, lower->input_buf[tensor->tensor], map, stride, (Poly){0});
        return add_load(build, input, tensor->dtype, access);
    }
    const Map *own;
    const Multiples known = ir_dim_multiples(build->job, lower->prog->dims.at, lower->prog->dims.count);
    ReshapeResult result = gen_map_reshape(build->job, map, shape, arg_shape, build->extents, build->nest.axis_count,
                                           &known, &own, &build->split);
    if (result == RESHAPE_IMPOSSIBLE)
        ir_stop_at(build->job, STATUS_UNAVAILABLE, value->place,
                   "not generated yet: a reshape whose dims do not divide into those of its argument; reshape the "
                   "input where it is made, or make the argument an output of a graph of its own");
    build->wants_split = result == RESHAPE_SPLIT;
    return build->wants_split ? IR_NONE : demand(build, value->arg[0], own);
}

static uint32_t read_indexed(Builder *build, uint32_t id, const Map *map) {
    Lower *lower = build->lower;
    const Value *value = &lower->graph->values.at[id];
    Item *items = IR_NEW_ARRAY(build->job, Item, value->item_count);
    Gather gather = {.factor = ir_poly_int(build->job, 1)};
    uint32_t index = IR_NONE, dim = 0;
    for (uint32_t i = 0; i < value->item_count; i++) {
        items[i] = value->items[i];
        if (items[i].kind == ITEM_NEW_AXIS) continue;
        if (items[i].kind == ITEM_GATHER) {
            index = items[i].index;
            gather.extent = lower->values[value->arg[0]].shape.extent[dim];
        } else {
            items[i].start = gen_lower_poly(lower, items[i].start);
        }
        dim++;
    }
    uint8_t rank = 0;
    if (index != IR_NONE) {
        rank = lower->values[index].shape.rank;
        gather.is = true;
        gather.index = demand(build, index, gen_map_gathered(build->job, map, items, value->item_count, rank));
        if (build->wants_split) return IR_NONE;
    }
    const Map *own = gen_map_index(build->job, map, items, value->item_count, gather.is ? &gather : NULL, rank);
    if (!own)
        ir_stop_at(build->job, STATUS_UNAVAILABLE, value->place,
                   "not generated yet: elements that two index tensors pick at once; make the first pick an output, "
                   "and the second a graph of its own");
    if (lower->graph->values.at[value->arg[0]].op == OP_INPUT)
        return load_tensor(build, value->arg[0], own, value->items, value->item_count);
    return demand(build, value->arg[0], own);
}

static uint32_t compute(Builder *build, uint32_t id, const Map *map) {
    Lower *lower = build->lower;
    const Value *value = &lower->graph->values.at[id];
    uint32_t carrier = lower->values[id].carrier;
    if (carrier != IR_NONE && carrier != build->reduce && !gen_is_view(value)) return load_tmp(build, id, map);
    /* its own nest computes it, and so do those that come before that */
    if (lower->values[id].stored && lower->values[id].tmp != IR_NONE) return load_tmp(build, id, map);
    double number;
    switch (value->op) {
    case OP_INPUT: return load_tensor(build, id, map, NULL, 0);
    case OP_SCALAR:
        return add_load(build, id, value->dtype,
                        add_access(build, lower->scalar_buf[value->tensor], map, NULL, (Poly){0}));
    case OP_CONST:
        memcpy(&number, &value->bits, sizeof number);
        return add_const(build, id, ir_compute_dtype(value->dtype), number, (int64_t)value->bits);
    case OP_SIZE: return add_size(build, id, gen_lower_poly(lower, value->size));
    case OP_IOTA: return add_iota(build, id, &map->dim[0], &map->gather);
    case OP_INDEX: return read_indexed(build, id, map);
    case OP_RESHAPE: return read_reshaped(build, id, map);
    case OP_REDUCE: return add_reduce(build, id);
    default: return add_operation(build, id, map);
    }
}

static uint32_t demand(Builder *build, uint32_t id, const Map *map) {
    if (build->empty) return add_const(build, id, ir_compute_dtype(build->lower->graph->values.at[id].dtype), 0, 0);
    for (uint32_t m = build->memo_of[id]; m != IR_NONE; m = build->memos.at[m].next)
        if (gen_map_equal(build->memos.at[m].map, map)) return build->memos.at[m].stmt;
    uint32_t stmt = compute(build, id, map);
    if (build->wants_split) return IR_NONE;
    *IR_PUSH(build->job, &build->memos) = (Memo){.map = map, .stmt = stmt, .next = build->memo_of[id]};
    build->memo_of[id] = build->memos.count - 1;
    return stmt;
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
        Stmt cast = start_stmt(build, OP_CAST, to->dtype, id);
        cast.arg_count = 1;
        cast.arg[0] = stmt;
        stmt = ir_nest_add(build->job, &build->nest, &cast);
    } else if (from_kind != kind || (dtype == DTYPE_F32 && to->dtype == DTYPE_F64)) {
        stmt = convert(build, id, stmt, ir_compute_dtype(to->dtype));
    }
    Stmt stmt_store = start_stmt(build, OP_STORE, to->dtype, id);
    stmt_store.name = NULL;
    if (place.count) stmt_store.place = place;
    stmt_store.arg_count = 1;
    stmt_store.arg[0] = stmt;
    stmt_store.access = add_access(build, buf, map, stride, (Poly){0});
    stmt_store.domain = ir_access_domain(&build->nest, &build->nest.accesses.at[stmt_store.access]);
    ir_nest_add(build->job, &build->nest, &stmt_store);
}

/* An output's strides; accumulate adds to what is there, rounded once. */
static void store_output(Builder *build, uint32_t output, uint32_t stmt, const Map *map) {
    Lower *lower = build->lower;
    const Tensor *tensor = &lower->graph->outputs.at[output];
    Poly stride[IR_MAX_RANK];
    tensor_strides(lower, tensor, stride);
    uint32_t buf = lower->output_buf[output];
    if (tensor->accumulate) {
        uint32_t held = add_load(build, tensor->value, tensor->dtype, add_access(build, buf, map, stride, (Poly){0}));
        DType operands[2] = {tensor->dtype, lower->graph->values.at[tensor->value].dtype};
        DType meet = ir_promote(operands[0], operands[1]);
        Stmt add = start_stmt(build, OP_ADD, meet, tensor->value);
        add.name = NULL;
        add.arg_count = 2;
        add.arg[0] = convert(build, tensor->value, held, meet);
        add.arg[1] = convert(build, tensor->value, stmt, meet);
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
    for (uint32_t id = build->reduce; id < lower->graph->values.count && !build->wants_split; id++) {
        Carried *own = &lower->values[id];
        if (own->carrier != build->reduce) continue;
        const Map *map = carried_map(build, id);
        if (own->materialised && !in_place) {
            uint32_t stmt = demand(build, id, map);
            if (build->wants_split) return;
            if (own->tmp == IR_NONE) own->tmp = add_tmp(lower, id);
            Poly stride[IR_MAX_RANK];
            gen_row_major(build->job, &own->shape, stride);
            store(build, id, stmt, own->tmp, map, stride, (Place){0});
        }
        for (uint32_t o = 0; o < lower->graph->outputs.count; o++) {
            if (lower->graph->outputs.at[o].value != id) continue;
            uint32_t stmt = demand(build, id, map);
            if (build->wants_split) return;
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
    build.empty = is_empty(shape, reduce == IR_NONE ? UINT32_MAX : ~graph->values.at[reduce].dims);
    build.memo_of = IR_NEW_ARRAY(lower->job, uint32_t, graph->values.count);
    gen_atoms_start(&build.atoms, shape);
    for (;;) {
        build.nest = (Nest){.class = reduce == IR_NONE ? CLASS_POINTWISE : CLASS_INNER};
        build.memos.count = 0;
        build.wants_split = false;
        for (uint32_t i = 0; i < graph->values.count; i++) build.memo_of[i] = IR_NONE;
        set_axes(&build, shape, reduce == IR_NONE ? 0 : graph->values.at[reduce].dims);
        if (reduce != IR_NONE) {
            store_carried(&build, false);
            store_carried(&build, true);
        } else {
            uint32_t stmt = demand(&build, root, build.root);
            if (!build.wants_split && output == IR_NONE) store_value(&build, root, stmt);
            if (!build.wants_split && output != IR_NONE) store_output(&build, output, stmt, build.root);
        }
        if (!build.wants_split) break;
        if (build.atoms.count == IR_MAX_AXES)
            ir_stop_at(lower->job, STATUS_UNAVAILABLE, graph->values.at[root].place,
                       "not generated yet: reshapes that split one loop into more than %d", IR_MAX_AXES);
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
        uint32_t index = gen_gather_index(value);
        if (index != IR_NONE) *IR_PUSH(lower->job, &todo) = index;
        if (value->op != OP_REDUCE) continue;
        for (uint32_t i = next; i < graph->values.count; i++)
            if (lower->values[i].carrier == next) *IR_PUSH(lower->job, &todo) = i;
    }
}

static void lower_output(Lower *lower, uint32_t output) {
    const Graph *graph = lower->graph;
    uint32_t id = graph->outputs.at[output].value;
    bool *needed = IR_NEW_ARRAY(lower->job, bool, graph->values.count);
    mark(lower, needed, id);
    for (uint32_t i = 0; i < graph->values.count; i++) {
        const bool reduce = graph->values.at[i].op == OP_REDUCE;
        if (!needed[i] || (!reduce && !lower->values[i].stored) || lower->emitted[i]) continue;
        lower->emitted[i] = true;
        build_nest(lower, reduce ? i : IR_NONE, reduce ? graph->values.at[i].arg[0] : i, IR_NONE);
    }
    if (lower->values[id].carrier == IR_NONE) build_nest(lower, IR_NONE, id, output);
}

void gen_lower(Job *job, Unit *unit) {
    const Graph *graph = unit->graph;
    Lower lower = {.job = job, .graph = graph, .prog = ir_prog_create(job, graph->name)};
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
    gen_lower_long(&lower, &unit->options);
    gen_lower_bufs(&lower);
    for (uint32_t i = 0; i < graph->outputs.count; i++) lower_output(&lower, i);
    gen_lower_order(&lower);
    for (uint32_t i = 0; i < lower.prog->nests.count; i++) lower.prog->nests.at[i].name = ir_format(job, "n%u", i);
    gen_tidy(job, lower.prog);
    unit->prog = lower.prog;
}
