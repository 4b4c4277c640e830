/* In: an expanded Graph, its inputs with tangents. Out: all its values with theirs. Contract: the header. */
#include "tests/support/dual.h"

#include <math.h>
#include <string.h>

typedef struct DualRun {
    Job *job;
    const Graph *graph;
    const int64_t *dims;
    const Dual *inputs;
    const Scalar *scalars;
    Dual *at; /* of each value */
} DualRun;

typedef struct Point { /* one element */
    long double value, tangent;
    int64_t integer;
} Point;

static bool is_float(DType dtype) { return ir_dtype(dtype)->kind == KIND_FLOAT; }

static int64_t size_of(const DualRun *run, Poly poly) {
    int64_t size = 0;
    IR_REQUIRE(run->job, ir_poly_eval(poly, run->dims, run->graph->dims.count, NULL, 0, &size));
    return size;
}

static Dual make(const DualRun *run, const Value *value) {
    Dual dual = {.rank = value->shape.rank, .count = 1};
    for (uint32_t d = 0; d < dual.rank; d++)
        dual.count *= (uint64_t)(dual.extent[d] = size_of(run, value->shape.extent[d]));
    if (is_float(value->dtype)) {
        dual.value = IR_NEW_ARRAY(run->job, long double, dual.count + 1);
        dual.tangent = IR_NEW_ARRAY(run->job, long double, dual.count + 1);
    } else {
        dual.integer = IR_NEW_ARRAY(run->job, int64_t, dual.count + 1);
    }
    return dual;
}

static Point get(const Dual *dual, uint64_t i) {
    if (dual->integer) return (Point){.integer = dual->integer[i]};
    return (Point){.value = dual->value[i], .tangent = dual->tangent[i]};
}

static void put(const Dual *dual, uint64_t i, Point point) {
    if (dual->integer) {
        dual->integer[i] = point.integer;
        return;
    }
    dual->value[i] = point.value;
    dual->tangent[i] = point.tangent;
}

static void index_of(const Dual *dual, uint64_t linear, int64_t *index) {
    for (uint32_t d = dual->rank; d-- > 0; linear /= (uint64_t)dual->extent[d])
        index[d] = (int64_t)(linear % (uint64_t)dual->extent[d]);
}

/* The element of an operand that meets this index of a result of `rank` dims. */
static uint64_t meeting(const Dual *operand, const int64_t *index, uint32_t rank) {
    uint64_t linear = 0;
    for (uint32_t d = 0; d < operand->rank; d++) {
        const int64_t at = operand->extent[d] == 1 ? 0 : index[d + rank - operand->rank];
        linear = linear * (uint64_t)operand->extent[d] + (uint64_t)at;
    }
    return linear;
}

/* ---- one element ---- */

/* What does not move contributes nothing, however steep. */
static long double along(long double slope, long double tangent) { return tangent == 0 ? 0 : slope * tangent; }

static Point of_one(long double value, long double slope, Point a) {
    return (Point){.value = value, .tangent = along(slope, a.tangent)};
}

static Point power(Point a, Point b) {
    const long double value = powl(a.value, b.value);
    const long double base = b.value == 0 ? 0 : b.value * powl(a.value, b.value - 1);
    const long double exponent = a.value == 0 && b.value >= 0 ? 0 : value * logl(a.value);
    return (Point){.value = value, .tangent = along(base, a.tangent) + along(exponent, b.tangent)};
}

static Point larger(Point a, Point b) {
    if (isnan(a.value) || isnan(b.value)) return (Point){.value = a.value + b.value, .tangent = a.tangent + b.tangent};
    if (a.value == b.value) return (Point){.value = a.value, .tangent = (a.tangent + b.tangent) / 2};
    return a.value > b.value ? a : b;
}

static Point remainder_of(Point a, Point b) {
    long double rest = fmodl(a.value, b.value);
    if (rest != 0 && (rest < 0) != (b.value < 0)) rest += b.value;
    return (Point){.value = rest, .tangent = a.tangent - along((a.value - rest) / b.value, b.tangent)};
}

static Point negative(Point a) { return (Point){.value = -a.value, .tangent = -a.tangent}; }

static long double logistic(long double x) { return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x)); }

static long double nearest_even(long double x) {
    const long double whole = floorl(x), rest = x - whole;
    return rest > 0.5L || (rest == 0.5L && fmodl(whole, 2) != 0) ? whole + 1 : whole;
}

static bool of_two_floats(Op op, Point a, Point b, Point *result) {
    const long double x = a.value, y = b.value;
    switch (op) {
    case OP_ADD: *result = (Point){.value = x + y, .tangent = a.tangent + b.tangent}; return true;
    case OP_SUB: *result = (Point){.value = x - y, .tangent = a.tangent - b.tangent}; return true;
    case OP_MUL: *result = (Point){.value = x * y, .tangent = along(y, a.tangent) + along(x, b.tangent)}; return true;
    case OP_DIV:
        *result = (Point){.value = x / y, .tangent = along(1 / y, a.tangent) - along(x / (y * y), b.tangent)};
        return true;
    case OP_FLOORDIV: *result = (Point){.value = floorl(x / y)}; return true;
    case OP_MOD: *result = remainder_of(a, b); return true;
    case OP_POW: *result = power(a, b); return true;
    case OP_MAXIMUM: *result = larger(a, b); return true;
    case OP_MINIMUM: *result = negative(larger(negative(a), negative(b))); return true;
    case OP_LT: *result = (Point){.integer = x < y}; return true;
    case OP_LE: *result = (Point){.integer = x <= y}; return true;
    case OP_GT: *result = (Point){.integer = x > y}; return true;
    case OP_GE: *result = (Point){.integer = x >= y}; return true;
    case OP_EQ: *result = (Point){.integer = x == y}; return true;
    case OP_NE: *result = (Point){.integer = x != y}; return true;
    default: return false;
    }
}

static const long double ln_2 = 0.693147180559945309417232121458176568L;
static const long double two_over_root_pi = 1.128379167095512573896158903121545172L;

static bool of_one_float(Op op, Point a, Point *result) {
    const long double x = a.value;
    switch (op) {
    case OP_NEG: *result = negative(a); return true;
    case OP_ABS: *result = of_one(fabsl(x), (x > 0) - (x < 0), a); return true;
    case OP_SIGN: *result = (Point){.value = isnan(x) ? x : (x > 0) - (x < 0)}; return true;
    case OP_EXP: *result = of_one(expl(x), expl(x), a); return true;
    case OP_EXP2: *result = of_one(exp2l(x), ln_2 * exp2l(x), a); return true;
    case OP_EXPM1: *result = of_one(expm1l(x), expl(x), a); return true;
    case OP_LOG: *result = of_one(logl(x), 1 / x, a); return true;
    case OP_LOG2: *result = of_one(log2l(x), 1 / (x * ln_2), a); return true;
    case OP_LOG1P: *result = of_one(log1pl(x), 1 / (1 + x), a); return true;
    case OP_SQRT: *result = of_one(sqrtl(x), 1 / (2 * sqrtl(x)), a); return true;
    case OP_RSQRT: *result = of_one(1 / sqrtl(x), -1 / (2 * x * sqrtl(x)), a); return true;
    case OP_TANH: *result = of_one(tanhl(x), 1 / (coshl(x) * coshl(x)), a); return true;
    case OP_SIGMOID: *result = of_one(logistic(x), logistic(x) * logistic(-x), a); return true;
    case OP_ERF: *result = of_one(erfl(x), two_over_root_pi * expl(-x * x), a); return true;
    case OP_SIN: *result = of_one(sinl(x), cosl(x), a); return true;
    case OP_COS: *result = of_one(cosl(x), -sinl(x), a); return true;
    case OP_FLOOR: *result = (Point){.value = floorl(x)}; return true;
    case OP_CEIL: *result = (Point){.value = ceill(x)}; return true;
    case OP_ROUND: *result = (Point){.value = nearest_even(x)}; return true;
    case OP_TRUNC: *result = (Point){.value = truncl(x)}; return true;
    case OP_ISNAN: *result = (Point){.integer = isnan(x)}; return true;
    case OP_ISINF: *result = (Point){.integer = isinf(x) != 0}; return true;
    default: return false;
    }
}

static bool of_integers(Op op, int64_t a, int64_t b, int64_t *result) {
    const int64_t rest = b && (op == OP_FLOORDIV || op == OP_MOD) ? a % b : 0;
    const bool adjust = rest && (rest < 0) != (b < 0);
    switch (op) {
    case OP_ADD: *result = a + b; return true;
    case OP_SUB: *result = a - b; return true;
    case OP_MUL: *result = a * b; return true;
    case OP_FLOORDIV: *result = b ? a / b - adjust : 0; return true;
    case OP_MOD: *result = rest + (adjust ? b : 0); return true;
    case OP_NEG: *result = -a; return true;
    case OP_ABS: *result = a < 0 ? -a : a; return true;
    case OP_SIGN: *result = (a > 0) - (a < 0); return true;
    case OP_FLOOR:
    case OP_CEIL:
    case OP_ROUND:
    case OP_TRUNC: *result = a; return true;
    case OP_MAXIMUM: *result = a > b ? a : b; return true;
    case OP_MINIMUM: *result = a < b ? a : b; return true;
    case OP_LT: *result = a < b; return true;
    case OP_LE: *result = a <= b; return true;
    case OP_GT: *result = a > b; return true;
    case OP_GE: *result = a >= b; return true;
    case OP_EQ: *result = a == b; return true;
    case OP_NE: *result = a != b; return true;
    case OP_AND: *result = a && b; return true;
    case OP_OR: *result = a || b; return true;
    case OP_NOT: *result = !a; return true;
    case OP_ISNAN:
    case OP_ISINF: *result = 0; return true;
    default: return false;
    }
}

static Point cast(const Value *value, DType from, Point a) {
    if (is_float(value->dtype)) return is_float(from) ? a : (Point){.value = (long double)a.integer};
    if (is_float(from)) return (Point){.integer = ir_float_to_int(value->dtype, (double)a.value)};
    return (Point){.integer = ir_wrap_int(value->dtype, a.integer)};
}

static void elements(const DualRun *run, const Value *value, const Dual *out) {
    const Dual *in[3];
    const DType first = run->graph->values.at[value->arg[0]].dtype;
    for (uint32_t k = 0; k < value->arg_count; k++) in[k] = &run->at[value->arg[k]];
    for (uint64_t i = 0; i < out->count; i++) {
        int64_t index[IR_MAX_RANK];
        Point point[3] = {{0}}, result = {0};
        index_of(out, i, index);
        for (uint32_t k = 0; k < value->arg_count; k++) point[k] = get(in[k], meeting(in[k], index, out->rank));
        if (value->op == OP_CAST)
            result = cast(value, first, point[0]);
        else if (value->op == OP_WHERE)
            result = point[0].integer ? point[1] : point[2];
        else if (!is_float(first))
            IR_REQUIRE(run->job, of_integers(value->op, point[0].integer, point[1].integer, &result.integer));
        else
            IR_REQUIRE(run->job, of_one_float(value->op, point[0], &result) ||
                                     of_two_floats(value->op, point[0], point[1], &result));
        put(out, i, result);
    }
}

/* ---- reductions, of the elements that meet in one ---- */

typedef struct Terms {
    Point *at;
    uint64_t count;
} Terms;

static Point sum_of(const Terms *terms) {
    Point sum = {0};
    for (uint64_t i = 0; i < terms->count; i++) {
        sum.value += terms->at[i].value;
        sum.tangent += terms->at[i].tangent;
        sum.integer += terms->at[i].integer;
    }
    return sum;
}

/* Each term's tangent times the product of all the others. */
static Point product_of(const Terms *terms) {
    Point product = {.value = 1, .integer = 1};
    for (uint64_t i = 0; i < terms->count; i++) {
        long double others = 1;
        for (uint64_t k = 0; k < terms->count; k++)
            if (k != i) others *= terms->at[k].value;
        product.tangent += along(others, terms->at[i].tangent);
        product.value *= terms->at[i].value;
        product.integer *= terms->at[i].integer;
    }
    return product;
}

static Point largest_of(const Terms *terms, int sign) {
    Point best = terms->at[0];
    uint64_t ties = 0;
    for (uint64_t i = 1; i < terms->count; i++) {
        const Point *term = &terms->at[i];
        if (isnan(term->value) || sign * term->value > sign * best.value) best.value = term->value;
        if (sign * term->integer > sign * best.integer) best.integer = term->integer;
    }
    best.tangent = 0;
    for (uint64_t i = 0; i < terms->count; i++) {
        if (terms->at[i].value != best.value) continue;
        best.tangent += terms->at[i].tangent;
        ties++;
    }
    if (ties) best.tangent /= (long double)ties;
    return best;
}

static Point reduce_terms(const DualRun *run, Reduction reduction, const Terms *terms) {
    Point result = {0};
    switch (reduction) {
    case REDUCTION_ADD: return sum_of(terms);
    case REDUCTION_MUL: return product_of(terms);
    case REDUCTION_MAX: return largest_of(terms, 1);
    case REDUCTION_MIN: return largest_of(terms, -1);
    case REDUCTION_ANY:
        for (uint64_t i = 0; i < terms->count; i++) result.integer |= terms->at[i].integer != 0;
        return result;
    case REDUCTION_ALL:
        result.integer = 1;
        for (uint64_t i = 0; i < terms->count; i++) result.integer &= terms->at[i].integer != 0;
        return result;
    default: IR_BREACH(run->job, "no reduction of a graph");
    }
}

static void reduce(const DualRun *run, const Value *value, const Dual *out) {
    const Dual *in = &run->at[value->arg[0]];
    Terms *terms = IR_NEW_ARRAY(run->job, Terms, out->count + 1);
    for (uint64_t o = 0; o < out->count; o++)
        terms[o].at = IR_NEW_ARRAY(run->job, Point, in->count / (out->count ? out->count : 1) + 1);
    for (uint64_t i = 0; i < in->count; i++) {
        int64_t index[IR_MAX_RANK];
        uint64_t to = 0;
        index_of(in, i, index);
        for (uint32_t d = 0; d < in->rank; d++)
            if (!(value->dims >> d & 1)) to = to * (uint64_t)in->extent[d] + (uint64_t)index[d];
        terms[to].at[terms[to].count++] = get(in, i);
    }
    for (uint64_t o = 0; o < out->count; o++) put(out, o, reduce_terms(run, value->reduction, &terms[o]));
}

/* ---- views ---- */

static void pick(const DualRun *run, const Value *value, const Dual *out) {
    const Dual *in = &run->at[value->arg[0]];
    for (uint64_t i = 0; i < out->count; i++) {
        int64_t index[IR_MAX_RANK];
        uint64_t from = 0;
        uint32_t to = 0, d = 0;
        index_of(out, i, index);
        for (uint32_t k = 0; k < value->item_count; k++) {
            const Item *item = &value->items[k];
            int64_t at;
            if (item->kind == ITEM_NEW_AXIS) {
                to++;
                continue;
            }
            if (item->kind == ITEM_GATHER) {
                const Dual *by = &run->at[item->index];
                at = by->integer[meeting(by, index + to, by->rank)];
                to += by->rank;
            } else {
                at = size_of(run, item->start) + (item->kind == ITEM_RANGE ? index[to++] : 0);
            }
            IR_REQUIRE(run->job, at >= 0 && at < in->extent[d]);
            from = from * (uint64_t)in->extent[d++] + (uint64_t)at;
        }
        put(out, i, get(in, from));
    }
}

static void leaf(const DualRun *run, const Value *value, const Dual *out) {
    Point point = {0};
    double number;
    for (uint64_t i = 0; i < out->count; i++) {
        switch (value->op) {
        case OP_CONST:
            memcpy(&number, &value->bits, sizeof number);
            point = out->integer ? (Point){.integer = (int64_t)value->bits} : (Point){.value = number};
            break;
        case OP_SCALAR:
            point =
                (Point){.value = run->scalars[value->tensor].number, .integer = run->scalars[value->tensor].integer};
            break;
        case OP_SIZE: point.integer = size_of(run, value->size); break;
        case OP_IOTA: point.integer = (int64_t)i; break;
        default: point = get(&run->inputs[value->tensor], i);
        }
        put(out, i, point);
    }
}

Dual *dual_evaluate(Job *job, const Graph *graph, const int64_t *dims, const Dual *inputs, const Scalar *scalars) {
    DualRun run = {job, graph, dims, inputs, scalars, IR_NEW_ARRAY(job, Dual, graph->values.count + (size_t)1)};
    for (uint32_t id = 0; id < graph->values.count; id++) {
        const Value *value = &graph->values.at[id];
        Dual *out = &run.at[id];
        *out = make(&run, value);
        switch (value->op) {
        case OP_CONST:
        case OP_SCALAR:
        case OP_SIZE:
        case OP_IOTA:
        case OP_INPUT: leaf(&run, value, out); break;
        case OP_REDUCE: reduce(&run, value, out); break;
        case OP_INDEX: pick(&run, value, out); break;
        case OP_RESHAPE:
            for (uint64_t i = 0; i < out->count; i++) put(out, i, get(&run.at[value->arg[0]], i));
            break;
        case OP_COMPOSITE: IR_BREACH(job, "composites must be expanded"); break;
        default: elements(&run, value, out);
        }
    }
    return run.at;
}
