/* What a nest of the lowering computes. In: values of the Graph, each at a map from the nest's axes to its dims. Out:
 * statements of the nest: loads at the maps of inputs and tmps, operations, reductions. Where a map cannot be made, a
 * loop is to be split, or a value to be stored by a nest before; then what was built is given up. */
#include "gen/lower_build.h"

#include <string.h>

Stmt gen_start_stmt(const Builder *build, Op op, DType dtype, uint32_t id) {
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

uint32_t gen_add_access(Builder *build, uint32_t buf, const Map *map, const Poly *stride, Poly base) {
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

uint32_t gen_add_load(Builder *build, uint32_t id, DType dtype, uint32_t access) {
    Stmt stmt = gen_start_stmt(build, OP_LOAD, ir_compute_dtype(dtype), id);
    stmt.access = access;
    stmt.domain = ir_access_domain(&build->nest, &build->nest.accesses.at[access]);
    return ir_nest_add(build->job, &build->nest, &stmt);
}

void gen_tensor_strides(Lower *lower, const Tensor *tensor, Poly *stride) {
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
    gen_tensor_strides(lower, tensor, stride);
    uint32_t buf = gen_lower_input_buf(lower, value->tensor, items, item_count, value->place, &base);
    return gen_add_load(build, id, tensor->dtype, gen_add_access(build, buf, map, stride, base));
}

static uint32_t load_tmp(Builder *build, uint32_t id, const Map *map) {
    const Carried *own = &build->lower->values[id];
    IR_REQUIRE(build->job, own->tmp != IR_NONE);
    Poly stride[IR_MAX_RANK];
    gen_row_major(build->job, &own->shape, stride);
    uint32_t access = gen_add_access(build, own->tmp, map, stride, (Poly){0});
    return gen_add_load(build, id, build->lower->graph->values.at[id].dtype, access);
}

static uint32_t add_const(Builder *build, uint32_t id, DType dtype, double number, int64_t integer) {
    Stmt stmt = gen_start_stmt(build, OP_CONST, dtype, id);
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
uint32_t gen_convert(Builder *build, uint32_t id, uint32_t arg, DType dtype) {
    if (ir_compute_dtype(build->nest.stmts.at[arg].dtype) == dtype) return arg;
    Stmt stmt = gen_start_stmt(build, OP_CAST, dtype, id);
    stmt.name = NULL;
    stmt.value = IR_NONE;
    stmt.arg_count = 1;
    stmt.arg[0] = arg;
    return ir_nest_add(build->job, &build->nest, &stmt);
}

static uint32_t add_i64(Builder *build, uint32_t id, Op op, uint32_t a, uint32_t b) {
    Stmt stmt = gen_start_stmt(build, op, DTYPE_I64, id);
    stmt.name = NULL;
    stmt.arg_count = 2;
    stmt.arg[0] = a;
    stmt.arg[1] = b;
    return ir_nest_add(build->job, &build->nest, &stmt);
}

static uint32_t add_size(Builder *build, uint32_t id, Poly poly) {
    int64_t number;
    if (ir_poly_is_int(poly, &number)) return add_const(build, id, DTYPE_I64, 0, number);
    Stmt stmt = gen_start_stmt(build, OP_SIZE, DTYPE_I64, id);
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
        Stmt iota = gen_start_stmt(build, OP_IOTA, DTYPE_I64, id);
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
        args[i] = gen_demand(build, value->arg[i], own);
        if (build->given_up) return IR_NONE;
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
            args[i] = gen_convert(build, id, args[i], want);
        }
    }
    Stmt stmt = gen_start_stmt(build, value->op, value->dtype, id);
    stmt.arg_count = value->arg_count;
    for (uint32_t i = 0; i < value->arg_count; i++) stmt.arg[i] = args[i];
    return ir_nest_add(build->job, &build->nest, &stmt);
}

bool gen_is_empty(const Extents *shape, uint32_t mask) {
    for (uint8_t d = 0; d < shape->rank; d++)
        if (mask >> d & 1 && !shape->extent[d].count) return true;
    return false;
}

static uint32_t add_reduce(Builder *build, uint32_t id) {
    const Value *value = &build->lower->graph->values.at[id];
    /* of nothing: the identity, and no load that could touch what is not there */
    bool nothing = gen_is_empty(&build->lower->values[value->arg[0]].shape, value->dims);
    uint32_t arg = nothing ? add_const(build, id, ir_compute_dtype(value->dtype), 0, 0)
                           : gen_demand(build, value->arg[0], build->root);
    if (build->given_up) return IR_NONE;
    arg = gen_convert(build, id, arg, ir_compute_dtype(value->dtype));
    Stmt stmt = gen_start_stmt(build, OP_REDUCE, ir_compute_dtype(value->dtype), id);
    stmt.reduction = value->reduction;
    stmt.consumed = ir_nest_inner_mask(&build->nest);
    if (!stmt.consumed) return arg;
    stmt.arg_count = 1;
    stmt.arg[0] = arg;
    return ir_nest_add(build->job, &build->nest, &stmt);
}

/* The nest of another reduction computes it. */
static bool is_carried(const Builder *build, uint32_t id) {
    const uint32_t carrier = build->lower->values[id].carrier;
    return carrier != IR_NONE && carrier != build->reduce && !gen_is_view(&build->lower->graph->values.at[id]);
}

/* Where a value lies that the nests before this one computed, or IR_NONE. */
static uint32_t tmp_of(const Builder *build, uint32_t id) {
    const Carried *own = &build->lower->values[id];
    /* a stored one its own nest computes, and so do those that come before that */
    return is_carried(build, id) || own->stored ? own->tmp : IR_NONE;
}

/* No nest can compute a value in the order in which this one reads it: one of its own is to store it first. */
static uint32_t want_stored(Builder *build, uint32_t id) {
    IR_REQUIRE(build->job, !build->lower->values[id].stored);
    build->lower->must_store = id;
    build->given_up = true;
    return IR_NONE;
}

/* What lies in memory in row-major order is read by its row-major index, whatever its dims. */
static uint32_t load_flat(Builder *build, uint32_t id, uint32_t source, uint32_t buf, const Map *map) {
    const Extents *shape = &build->lower->values[id].shape;
    Poly stride[IR_MAX_RANK];
    gen_row_major(build->job, shape, stride);
    return gen_add_load(build, source, build->lower->graph->values.at[source].dtype,
                        gen_add_access(build, buf, map, stride, (Poly){0}));
}

/* An input whose memory may be read so, or IR_NONE. */
static uint32_t flat_input(const Lower *lower, const Value *value) {
    if (value->op != OP_INPUT || !lower->graph->inputs.at[value->tensor].contiguous) return IR_NONE;
    for (uint32_t i = 0; i < lower->slots.count; i++)
        if (lower->slots.at[i].input == value->tensor) return IR_NONE;
    return lower->input_buf[value->tensor];
}

static uint32_t read_reshaped(Builder *build, uint32_t id, const Map *map) {
    Lower *lower = build->lower;
    const Value *value = &lower->graph->values.at[id];
    const Extents *shape = &lower->values[id].shape, *arg_shape = &lower->values[value->arg[0]].shape;
    uint32_t source = id; /* under all reshapes */
    while (lower->graph->values.at[source].op == OP_RESHAPE) source = lower->graph->values.at[source].arg[0];
    const uint32_t input = flat_input(lower, &lower->graph->values.at[source]);
    if (input != IR_NONE) return load_flat(build, id, source, input, map);
    const Map *own;
    const Multiples known = ir_dim_multiples(build->job, lower->prog->dims.at, lower->prog->dims.count);
    ReshapeResult result = gen_map_reshape(build->job, map, shape, arg_shape, build->extents, build->nest.axis_count,
                                           &known, &own, &build->split);
    if (result == RESHAPE_IMPOSSIBLE || (result == RESHAPE_SPLIT && build->atoms.count == IR_MAX_AXES)) {
        const uint32_t tmp = tmp_of(build, source);
        if (tmp != IR_NONE) return load_flat(build, id, source, tmp, map);
        return want_stored(build, source);
    }
    build->given_up = result == RESHAPE_SPLIT;
    return build->given_up ? IR_NONE : gen_demand(build, value->arg[0], own);
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
        gather.index = gen_demand(build, index, gen_map_gathered(build->job, map, items, value->item_count, rank));
        if (build->given_up) return IR_NONE;
    }
    const Map *own = gen_map_index(build->job, map, items, value->item_count, gather.is ? &gather : NULL, rank);
    if (!own) return want_stored(build, id);
    if (lower->graph->values.at[value->arg[0]].op == OP_INPUT)
        return load_tensor(build, value->arg[0], own, value->items, value->item_count);
    return gen_demand(build, value->arg[0], own);
}

static uint32_t compute(Builder *build, uint32_t id, const Map *map) {
    Lower *lower = build->lower;
    const Value *value = &lower->graph->values.at[id];
    if (is_carried(build, id) || tmp_of(build, id) != IR_NONE) return load_tmp(build, id, map);
    double number;
    switch (value->op) {
    case OP_INPUT: return load_tensor(build, id, map, NULL, 0);
    case OP_SCALAR:
        return gen_add_load(build, id, value->dtype,
                            gen_add_access(build, lower->scalar_buf[value->tensor], map, NULL, (Poly){0}));
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

uint32_t gen_demand(Builder *build, uint32_t id, const Map *map) {
    if (build->empty) return add_const(build, id, ir_compute_dtype(build->lower->graph->values.at[id].dtype), 0, 0);
    for (uint32_t m = build->memo_of[id]; m != IR_NONE; m = build->memos.at[m].next)
        if (gen_map_equal(build->memos.at[m].map, map)) return build->memos.at[m].stmt;
    uint32_t stmt = compute(build, id, map);
    if (build->given_up) return IR_NONE;
    *IR_PUSH(build->job, &build->memos) = (Memo){.map = map, .stmt = stmt, .next = build->memo_of[id]};
    build->memo_of[id] = build->memos.count - 1;
    return stmt;
}
