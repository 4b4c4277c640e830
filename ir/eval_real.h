/* The evaluators' element arithmetic in REAL, double or long double: included once by ir/eval_double.c and once by
 * ir/eval_long.c, which set REAL, REFERENCE and COMBINE (the op tables' columns of that type), AT (an accumulator's
 * numbers), EPSILON (half a unit in the last place of 1) and WIDE. Everything here is static but the table at the end.
 * <tgmath.h> chooses functions by REAL. */
#include "ir/eval_ops.h"

#include <string.h>
#include <tgmath.h>

#define F64_LIMIT ((REAL)0x1.fffffffffffff7cp1023L) /* just below 2^1024 - 2^970, from which f64 rounds to inf */

typedef REAL Reference(REAL a, REAL b, REAL c);

static inline REAL number_at(const Lane *lane, int64_t i) {
#if WIDE
    REAL low = lane->low ? lane->low[i * lane->step] : 0;
    if (low != 0) return lane->number[i * lane->step] + low; /* a sum with 0 would lose the sign of -0 */
#endif
    return lane->number[i * lane->step];
}

/* What two doubles do not hold of a long double, below f64's least unit, goes into the bound, which is rounded up:
 * units in the last place of a large one are as large as those of f64. */
static inline void put_number(const Lane *lane, int64_t i, REAL value, REAL bound) {
    double number = (double)value;
#if WIDE
    double low = isfinite(number) ? (double)(value - number) : 0;
    if (isfinite(number)) bound += fabs(value - number - low);
    if ((double)bound < bound) bound = nextafter((double)bound, INFINITY);
    if (lane->low) lane->low[i * lane->step] = low;
#endif
    lane->number[i * lane->step] = number;
    lane->bound[i * lane->step] = (double)bound;
}

/* An element is within its bound of a discontinuity. */
static inline void meet(const ElementOp *op, Lane out, int64_t i) {
    uint32_t *cause = out.cause ? &out.cause[i * out.step] : NULL;
    if (!cause || !(*cause & 1)) ++*op->uncertain;
    if (cause) *cause = (*cause ? *cause : 2 * (op->id + 1)) | 1;
}

static void eval_cast(const ElementOp *op, Lane in, Lane out, int64_t count);
static bool eval_steps(const ElementOp *op, const Lane *in, Lane out, int64_t count); /* false: no step function */

#include "ir/eval_real_ops.h"
#include "ir/eval_real_steps.h"
#include "ir/eval_real_reduce.h"

const RealOps REAL_OPS = {WIDE, eval_elements, eval_cast, reduce_start, eval_reduce, reduce_finish};
