/* Index maps (gen/index_map.h): affine forms through broadcasting, indexing and reshaping. A reshape keeps the
 * row-major index; it is undone digit by digit, and a digit that lies across a boundary of the argument's dims asks for
 * a split. */
#include "gen/index_map.h"

bool gen_poly_is(Poly a, int64_t value) {
    int64_t number;
    return ir_poly_is_int(a, &number) && number == value;
}

Poly gen_poly_mul(Job *job, Poly a, Poly b) {
    bool overflow = false;
    Poly result = ir_poly_mul(job, a, b, &overflow);
    IR_REQUIRE(job, !overflow);
    return result;
}

Poly gen_poly_add(Job *job, Poly a, Poly b) {
    bool overflow = false;
    Poly result = ir_poly_add(job, a, b, &overflow);
    IR_REQUIRE(job, !overflow);
    return result;
}

Poly gen_poly_sub(Job *job, Poly a, Poly b) {
    bool overflow = false;
    Poly result = ir_poly_sub(job, a, b, &overflow);
    IR_REQUIRE(job, !overflow);
    return result;
}

void gen_row_major(Job *job, const Extents *shape, Poly *stride) {
    Poly step = ir_poly_int(job, 1);
    for (uint32_t d = shape->rank; d-- > 0;) {
        stride[d] = step;
        if (shape->extent[d].count) step = gen_poly_mul(job, step, shape->extent[d]);
    }
}

void gen_atoms_start(Atoms *atoms, const Extents *root) {
    *atoms = (Atoms){.count = root->rank};
    for (uint8_t d = 0; d < root->rank; d++) atoms->at[d] = (Atom){.dim = d, .extent = root->extent[d]};
}

void gen_atoms_split(Job *job, Atoms *atoms, Split split) {
    IR_REQUIRE(job, atoms->count < IR_MAX_AXES);
    IR_REQUIRE(job, ir_poly_equal(gen_poly_mul(job, split.high, split.low), atoms->at[split.atom].extent));
    for (uint32_t i = atoms->count; i > split.atom + 1; i--) atoms->at[i] = atoms->at[i - 1];
    atoms->at[split.atom + 1] = (Atom){.dim = atoms->at[split.atom].dim, .extent = split.low};
    atoms->at[split.atom].extent = split.high;
    atoms->count++;
}

const Map *gen_map_root(Job *job, const Extents *root, const Atoms *atoms, const uint32_t *axis) {
    Map *map = IR_NEW(job, Map);
    map->rank = root->rank;
    Poly step = ir_poly_int(job, 1);
    for (uint32_t i = atoms->count; i-- > 0;) {
        const Atom *atom = &atoms->at[i];
        if (i + 1 == atoms->count || atoms->at[i + 1].dim != atom->dim) step = ir_poly_int(job, 1);
        if (!gen_poly_is(atom->extent, 1)) map->dim[atom->dim].stride[axis[i]] = step;
        step = gen_poly_mul(job, step, atom->extent);
    }
    return map;
}

/* Dim `to` of the result is dim `from` of the map. */
static void take_dim(Map *result, uint32_t to, const Map *map, uint32_t from) {
    result->dim[to] = map->dim[from];
    if (!map->gather.is || map->gather.dim != from) return;
    result->gather = map->gather;
    result->gather.dim = (uint8_t)to;
}

const Map *gen_map_operand(Job *job, const Map *map, const Extents *user, const Extents *arg) {
    bool same = user->rank == arg->rank;
    for (uint8_t d = 0; same && d < arg->rank; d++) same = ir_poly_equal(user->extent[d], arg->extent[d]);
    if (same) return map;
    Map *result = IR_NEW(job, Map);
    result->rank = arg->rank;
    for (uint8_t d = 0; d < arg->rank; d++) {
        if (!gen_poly_is(arg->extent[d], 1)) take_dim(result, d, map, (uint32_t)(d + user->rank - arg->rank));
    }
    return result;
}

const Map *gen_map_gathered(Job *job, const Map *map, const Item *items, uint32_t count, uint8_t rank) {
    Map *result = IR_NEW(job, Map);
    uint32_t from = 0;
    result->rank = rank;
    for (uint32_t i = 0; i < count && items[i].kind != ITEM_GATHER; i++) from += items[i].kind != ITEM_AT;
    for (uint8_t d = 0; d < rank; d++) take_dim(result, d, map, from + d);
    return result;
}

const Map *gen_map_index(Job *job, const Map *map, const Item *items, uint32_t count, const Gather *gather,
                         uint8_t rank) {
    Map *result = IR_NEW(job, Map);
    uint32_t from = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t to = result->rank;
        if (items[i].kind != ITEM_NEW_AXIS) result->rank++;
        switch (items[i].kind) {
        case ITEM_NEW_AXIS: from++; break;
        case ITEM_RANGE:
            take_dim(result, to, map, from++);
            result->dim[to].offset = gen_poly_add(job, result->dim[to].offset, items[i].start);
            break;
        case ITEM_AT: result->dim[to].offset = items[i].start; break;
        case ITEM_GATHER: from += rank; break;
        }
    }
    IR_REQUIRE(job, from == map->rank);
    for (uint32_t i = 0, to = 0; gather && i < count; i++) {
        if (items[i].kind == ITEM_GATHER) {
            if (result->gather.is) return NULL;
            result->gather = *gather;
            result->gather.dim = (uint8_t)to;
        }
        to += items[i].kind != ITEM_NEW_AXIS;
    }
    return result;
}

/* [low, low*extent) as digits of the row-major index lie within dim d: then *step = low / stride[d]. */
static bool within(Job *job, const Extents *shape, const Poly *stride, const Multiples *known, uint32_t d, Poly low,
                   Poly extent, Poly *step) {
    Poly rest;
    return ir_poly_div(job, low, stride[d], known, step) &&
           ir_poly_div(job, gen_poly_mul(job, stride[d], shape->extent[d]), gen_poly_mul(job, low, extent), known,
                       &rest);
}

/* The form counts 0, 1, 2, ... below extent, each once: its strides are a mixed radix. */
static bool is_complete(Job *job, const Affine *form, const Poly *axes, uint32_t axis_count, Poly extent) {
    if (form->offset.count) return false;
    Poly radix = ir_poly_int(job, 1);
    uint32_t left = 0;
    for (uint32_t i = 0; i < axis_count; i++) left += form->stride[i].count && !gen_poly_is(axes[i], 1);
    while (left) {
        uint32_t i = 0;
        while (i < axis_count && (gen_poly_is(axes[i], 1) || !ir_poly_equal(form->stride[i], radix))) i++;
        if (i == axis_count) return false;
        radix = gen_poly_mul(job, radix, axes[i]);
        left--;
    }
    return ir_poly_equal(radix, extent);
}

static void add_form(Job *job, Affine *to, const Affine *form, Poly factor, uint32_t axis_count) {
    to->offset = gen_poly_add(job, to->offset, gen_poly_mul(job, form->offset, factor));
    for (uint32_t i = 0; i < axis_count; i++) {
        if (form->stride[i].count)
            to->stride[i] = gen_poly_add(job, to->stride[i], gen_poly_mul(job, form->stride[i], factor));
    }
}

/* One axis's digit [low, low*extent) of the row-major index: into the dim that holds it, or a split at a boundary. */
static ReshapeResult place_digit(Job *job, Map *map, const Extents *shape, const Poly *stride, const Multiples *known,
                                 uint32_t axis, Poly low, Poly extent, Split *split) {
    Poly step, high;
    for (uint32_t d = 0; d < shape->rank; d++) {
        if (!within(job, shape, stride, known, d, low, extent, &step)) continue;
        map->dim[d].stride[axis] = gen_poly_add(job, map->dim[d].stride[axis], step);
        return RESHAPE_DONE;
    }
    for (uint32_t d = shape->rank; d-- > 0;) {
        if (!ir_poly_div(job, stride[d], low, known, &step) || gen_poly_is(step, 1)) continue;
        if (!ir_poly_div(job, extent, step, known, &high) || gen_poly_is(high, 1)) continue;
        *split = (Split){.atom = axis, .high = high, .low = step};
        return RESHAPE_SPLIT;
    }
    return RESHAPE_IMPOSSIBLE;
}

ReshapeResult gen_map_reshape(Job *job, const Map *map, const Extents *user, const Extents *arg, const Poly *axes,
                              uint32_t axis_count, const Multiples *known, const Map **result, Split *split) {
    Map *to = IR_NEW(job, Map);
    to->rank = arg->rank;
    *result = to;
    /* no element, so any map will do */
    for (uint32_t d = 0; d < user->rank; d++)
        if (!user->extent[d].count) return RESHAPE_DONE;
    for (uint32_t d = 0; d < arg->rank; d++)
        if (!arg->extent[d].count) return RESHAPE_DONE;
    Poly from[IR_MAX_RANK], stride[IR_MAX_RANK];
    gen_row_major(job, user, from);
    gen_row_major(job, arg, stride);
    for (uint32_t d = 0; d < user->rank; d++) {
        if (gen_poly_is(user->extent[d], 1)) continue;
        Poly step;
        uint32_t home = 0;
        while (home < arg->rank && !within(job, arg, stride, known, home, from[d], user->extent[d], &step)) home++;
        bool gathered = map->gather.is && map->gather.dim == d;
        if (home < arg->rank) {
            add_form(job, &to->dim[home], &map->dim[d], step, axis_count);
            if (!gathered) continue;
            to->gather = map->gather;
            to->gather.dim = (uint8_t)home;
            to->gather.factor = gen_poly_mul(job, to->gather.factor, step);
            continue;
        }
        if (gathered) return RESHAPE_IMPOSSIBLE;
        if (!is_complete(job, &map->dim[d], axes, axis_count, user->extent[d])) return RESHAPE_IMPOSSIBLE;
        for (uint32_t i = 0; i < axis_count; i++) {
            if (!map->dim[d].stride[i].count || gen_poly_is(axes[i], 1)) continue;
            ReshapeResult placed = place_digit(job, to, arg, stride, known, i,
                                               gen_poly_mul(job, map->dim[d].stride[i], from[d]), axes[i], split);
            if (placed != RESHAPE_DONE) return placed;
        }
    }
    return RESHAPE_DONE;
}

Affine gen_map_address(Job *job, const Map *map, const Poly *stride) {
    Affine address = {0};
    for (uint32_t d = 0; d < map->rank; d++) add_form(job, &address, &map->dim[d], stride[d], IR_MAX_AXES);
    return address;
}

bool gen_map_equal(const Map *a, const Map *b) {
    if (a == b) return true;
    if (a->rank != b->rank || a->gather.is != b->gather.is) return false;
    if (a->gather.is && (a->gather.dim != b->gather.dim || a->gather.index != b->gather.index ||
                         !ir_poly_equal(a->gather.factor, b->gather.factor)))
        return false;
    for (uint32_t d = 0; d < a->rank; d++) {
        if (!ir_poly_equal(a->dim[d].offset, b->dim[d].offset)) return false;
        for (uint32_t i = 0; i < IR_MAX_AXES; i++)
            if (!ir_poly_equal(a->dim[d].stride[i], b->dim[d].stride[i])) return false;
    }
    return true;
}
