/* Strides that put two elements in one place. In: strides and extents, as numbers or as polynomials. Out: one that
 * makes elements meet.
 *
 * The test is the mixed-radix one: with the strides in ascending order, each is larger than the farthest that those
 * before it reach together, |s0|*(e0-1) + |s1|*(e1-1) + ... It is sound (strides that pass are injective) and not
 * complete (strides 2 and 3 with extents 3 and 2 are injective and fail).
 *   - Of polynomials those are compared whose strides are whole multiples of one polynomial, by what each multiplies it
 *     with: numbers with numbers, 2*ld*N with ld*N. They are some of the strides, the other indices being 0.
 *   - An extent that is not known counts with the fewest elements that it may have; where it has none, none meet.
 *   - What this leaves open, the launch decides by its numbers.
 * So the front, V5 and the launch agree: what one accepts, the next refuses only for numbers that came later. Splitting
 * an axis or joining two that follow each other changes nothing. */
#include "ir/verify_map.h"

uint32_t ir_strides_meet(const int64_t *extent, const int64_t *stride, uint32_t count) {
    uint32_t done = 0;
    int64_t reach = 0; /* largest distance that those done so far make */
    for (uint32_t i = 0; i < count; i++)
        if (extent[i] == 0) return IR_NONE;
    for (uint32_t round = 0; round < count; round++) {
        uint32_t least = IR_NONE;
        int64_t smallest = 0, far;
        for (uint32_t i = 0; i < count; i++) {
            int64_t size = stride[i] < 0 ? -stride[i] : stride[i];
            if (done >> i & 1 || extent[i] == 1 || (least != IR_NONE && size >= smallest)) continue;
            least = i, smallest = size;
        }
        if (least == IR_NONE) break;
        if (smallest <= reach) return least;
        done |= 1u << least;
        if (ir_mul_overflows(extent[least] - 1, smallest, &far) || ir_add_overflows(reach, far, &reach))
            reach = INT64_MAX;
    }
    return IR_NONE;
}

/* Divides the polynomial by the greatest number that leaves its coefficients whole, and by its sign; returns it. */
static int64_t take_factor(Job *job, Poly *poly, bool *overflow) {
    int64_t factor = 0;
    for (uint32_t i = 0; i < poly->count; i++) factor = ir_common_factor(factor, poly->terms[i].coefficient);
    if (!poly->count) *poly = ir_poly_int(job, 1);
    if (!factor) return 0;
    *poly = ir_poly_over(job, *poly, poly->terms[0].coefficient < 0 ? -factor : factor, overflow);
    return factor;
}

/* What the extent is a multiple of, by its coefficients and its dims: the fewest elements, where there are any. */
static int64_t fewest(Job *job, const Dim *dims, uint32_t dim_count, Poly extent, bool *overflow) {
    int64_t divisor, common = 0;
    extent = ir_poly_whole(job, extent, &divisor, overflow);
    for (uint32_t i = 0; i < extent.count; i++) {
        const Term *term = &extent.terms[i];
        int64_t multiple = term->coefficient, more;
        for (int k = 0; k < IR_MAX_DEGREE && term->symbol[k] != IR_NO_SYMBOL; k++) {
            if (term->symbol[k] >= dim_count || dims[term->symbol[k]].multiple < 1) continue;
            if (!ir_mul_overflows(multiple, dims[term->symbol[k]].multiple, &more)) multiple = more;
        }
        common = ir_common_factor(common, multiple);
    }
    return common / ir_common_factor(common, divisor);
}

uint32_t ir_legs_meet(Job *job, const Dim *dims, uint32_t dim_count, const Leg *legs, uint32_t count, int64_t least) {
    int64_t *fixed = IR_NEW_ARRAY(job, int64_t, dim_count + (size_t)1);
    int64_t extent[IR_MAX_AXES], factor[IR_MAX_AXES];
    Poly unit[IR_MAX_AXES];
    bool overflow = false;
    for (uint32_t d = 0; d < dim_count; d++) fixed[d] = dims[d].value;
    for (uint32_t i = 0; i < count; i++) {
        Poly size = ir_poly_fold(job, legs[i].extent, fixed, dim_count, &overflow);
        if (!ir_poly_is_int(size, &extent[i])) {
            extent[i] = fewest(job, dims, dim_count, size, &overflow);
            if (extent[i] < least) extent[i] = least;
        }
        if (extent[i] == 0) return IR_NONE;
        unit[i] = ir_poly_fold(job, legs[i].stride, fixed, dim_count, &overflow);
        factor[i] = take_factor(job, &unit[i], &overflow);
    }
    for (uint32_t i = 0; i < count && !overflow; i++) {
        uint32_t alike[IR_MAX_AXES], alike_count = 0;
        int64_t extents[IR_MAX_AXES], factors[IR_MAX_AXES];
        for (uint32_t k = 0; k < count; k++) {
            if (!ir_poly_equal(unit[k], unit[i])) continue;
            extents[alike_count] = extent[k], factors[alike_count] = factor[k];
            alike[alike_count++] = k;
        }
        uint32_t meets = ir_strides_meet(extents, factors, alike_count);
        if (meets != IR_NONE) return alike[meets];
    }
    return IR_NONE;
}

const char *ir_map_overlaps(Job *job, const Prog *prog, const Nest *nest, const Access *access, bool launch_looks) {
    Leg legs[IR_MAX_AXES];
    uint32_t count = 0;
    for (uint32_t a = 0; a < nest->axis_count; a++) {
        const Size extent = nest->axes[a].extent;
        if (ir_size_is(extent, 0)) return NULL;
        if (!ir_size_is(access->stride[a], 0))
            legs[count++] = (Leg){ir_size_poly(job, prog, access->stride[a]), ir_size_poly(job, prog, extent)};
    }
    uint32_t meets = ir_legs_meet(job, prog->dims.at, prog->dims.count, legs, count, launch_looks ? 1 : 2);
    return meets == IR_NONE ? NULL : "two points of its map may meet in one element";
}
