/* V5's injectivity. In: the map of a store. Out: whether two points of its axes may meet in one element.
 *
 * The test is the mixed-radix one: with the axes in some order, every stride is larger than the farthest that the axes
 * before it reach together, |s0|*(e0-1) + |s1|*(e1-1) + ... It is sound (a map that passes is injective) and not
 * complete (strides 2 and 3 with extents 3 and 2 are injective and fail).
 *   - Strides and extents are polynomials, so 'stride N over an axis of N' passes for every N; a dim's max is used
 *     where a term is subtracted. Dims and parts are not negative.
 *   - A map that fails by numbers (strides, and extents of the axes that were put before) is refused, and so are two
 *     axes of one stride, whatever their extents.
 *   - Where a run-time stride or extent leaves it open, it is left to the launch, which knows the numbers.
 * Axes of extent 1 do not count, and where an extent is 0 there is nothing to meet. The farthest axis's extent is never
 * needed, so an any dim of rows is no obstacle. */
#include "ir/verify_map.h"

typedef struct Leg {
    Poly stride; /* its absolute value, where the sign is known */
    Poly extent;
} Leg;

typedef struct Span {
    Job *job;
    const Prog *prog;
    const int64_t *fixed; /* of the dims */
    bool overflow;
} Span;

static Poly span_size(Span *span, Size size) {
    Poly poly = ir_size_poly(span->job, span->prog, size);
    return ir_poly_fold(span->job, poly, span->fixed, span->prog->dims.count, &span->overflow);
}

/* Whether the polynomial is at least 0 whatever the dims and parts are. */
static bool never_negative(const Span *span, Poly poly) {
    int64_t least = 0, divisor;
    bool overflow = false;
    poly = ir_poly_whole(span->job, poly, &divisor, &overflow);
    if (overflow) return false;
    for (uint32_t i = 0; i < poly.count; i++) {
        const Term *term = &poly.terms[i];
        bool constant = term->symbol[0] == IR_NO_SYMBOL;
        if (term->coefficient >= 0 && !constant) continue;
        int64_t value = term->coefficient;
        for (int k = 0; k < IR_MAX_DEGREE && term->symbol[k] != IR_NO_SYMBOL; k++) {
            if (term->symbol[k] >= span->prog->dims.count) return false;
            int64_t max = span->prog->dims.at[term->symbol[k]].max;
            if (max < 0 || ir_mul_overflows(value, max, &value)) return false;
        }
        if (ir_add_overflows(least, value, &least)) return false;
    }
    return least >= 0;
}

/* Drops the sign of a stride that is negative for every value of the dims. */
static Poly absolute(Span *span, Poly stride) {
    for (uint32_t i = 0; i < stride.count; i++)
        if (stride.terms[i].coefficient > 0) return stride;
    return ir_poly_sub(span->job, ir_poly_int(span->job, 0), stride, &span->overflow);
}

static bool is_at_least(Span *span, Poly a, Poly b) {
    return never_negative(span, ir_poly_sub(span->job, a, b, &span->overflow));
}

/* The leg to put next: of those whose stride passes what was reached, a smallest; count where there is none. */
static uint32_t next_leg(Span *span, const Leg *legs, uint32_t count, Poly reach) {
    Poly beyond = ir_poly_add(span->job, reach, ir_poly_int(span->job, 1), &span->overflow);
    uint32_t best = count;
    for (uint32_t i = 0; i < count; i++) {
        if (!is_at_least(span, legs[i].stride, beyond)) continue;
        if (best == count || is_at_least(span, legs[best].stride, legs[i].stride)) best = i;
    }
    return best;
}

static bool share_stride(const Leg *legs, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (ir_poly_equal(legs[i].stride, legs[k].stride)) return true;
    return false;
}

/* What did not fit is decided where it is numbers against numbers; else the launch decides. */
static const char *judge_rest(Span *span, const Leg *legs, uint32_t count, Poly reach) {
    int64_t value;
    if (span->overflow) return "its strides are too large to compare";
    if (!ir_poly_is_int(reach, &value)) return NULL;
    for (uint32_t i = 0; i < count; i++)
        if (!ir_poly_is_int(legs[i].stride, &value)) return NULL;
    return "two points of its map may meet in one element";
}

const char *ir_map_overlaps(Job *job, const Prog *prog, const Nest *nest, const Access *access) {
    int64_t *fixed = IR_NEW_ARRAY(job, int64_t, prog->dims.count);
    for (uint32_t i = 0; i < prog->dims.count; i++) fixed[i] = prog->dims.at[i].value;
    Span span = {job, prog, fixed, false};
    Leg legs[IR_MAX_AXES];
    uint32_t count = 0;
    for (uint32_t a = 0; a < nest->axis_count; a++) {
        if (ir_size_is(access->stride[a], 0)) continue;
        int64_t extent;
        legs[count].stride = absolute(&span, span_size(&span, access->stride[a]));
        legs[count].extent = span_size(&span, nest->axes[a].extent);
        bool known = ir_poly_is_int(legs[count].extent, &extent);
        if (known && extent == 0) return NULL;
        if (!known || extent != 1) count++;
    }
    if (share_stride(legs, count)) return "two axes of its map have the same stride";
    Poly reach = ir_poly_int(job, 0), one = ir_poly_int(job, 1);
    while (count) {
        uint32_t next = next_leg(&span, legs, count, reach);
        if (next == count) return judge_rest(&span, legs, count, reach);
        Poly steps = ir_poly_sub(job, legs[next].extent, one, &span.overflow);
        reach = ir_poly_add(job, reach, ir_poly_mul(job, legs[next].stride, steps, &span.overflow), &span.overflow);
        legs[next] = legs[--count];
    }
    return NULL;
}
