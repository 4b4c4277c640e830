/* In: a graph in f64, its inputs, weights of its outputs. Out: derivatives by central differences, with what they may
 * be off by.
 *
 * The step is halved until Richardson's extrapolation has settled. T(s, k) is what the differences of steps s to k
 * extrapolate to, by Neville's scheme; its error is taken to be the distance from the two that it is made of, one step
 * fewer each, and the best of all counts. Rounding is known: the oracle's bounds, brought from f64 to long double.
 * One-sided differences that stay apart however small the step show a kink, which central ones would pass over. */
#include "ir/difference.h"

#include <math.h>
#include <string.h>

enum { STEPS = 14, NEEDED = 4 };

static const double usable = 0x1p-20; /* of the size of what is differenced: an error above it says nothing */
static const double settled = 0x1p-40;
/* Of f64's bound of an output: 2^53 of that is what was added up in it, of which an output near 0 has this much left.
 */
static const double cancelled = 0x1p53 * 0x1p-20;
static const double literals = 0x1p-45; /* of the size: 256 last places of f64 */

typedef struct Table {            /* extrapolations of the steps so far */
    long double at[STEPS][STEPS]; /* [s][k], s <= k */
    uint32_t count;
    long double first; /* the error's first term falls so with half the step: 4 (h^2, h^4, ...), 2 (h, h^3, ...) */
    long double best;
    double error;
} Table;

/* What long double leaves of a bound that is for f64: 11 bits more. */
static double in_long_double(double bound) { return bound * 0x1p-11; }

double ir_difference_allows(const Difference *difference, double bound) {
    const double rounding = 0x1p-52 * fabs(difference->number); /* of both to double */
    const double known = isfinite(bound) ? in_long_double(bound) : 0;
    return difference->error + known + fmin(bound, literals * difference->size) + rounding;
}

static double power_of_two(double x) { /* at most |x| */
    int exponent;
    frexp(x, &exponent);
    return ldexp(1, exponent - 1);
}

static double mean_size(const double *number, uint64_t count) {
    double sum = 0;
    for (uint64_t i = 0; i < count; i++) sum += isfinite(number[i]) ? fabs(number[i]) : 0;
    return sum > 0 ? sum / (double)count : 1;
}

void ir_difference_round(double *number, uint64_t count) {
    const double least = mean_size(number, count) / 4;
    for (uint64_t i = 0; i < count; i++) {
        if (!isfinite(number[i])) continue;
        const double unit = power_of_two(fmax(fabs(number[i]), least)) * 0x1p-48;
        number[i] = nearbyint(number[i] / unit) * unit;
    }
}

static void table_clear(Table *a, Table *b) {
    a->count = b->count = 0;
    a->error = b->error = (double)INFINITY;
}

static void table_push(Table *table, long double value, double noise) {
    const uint32_t k = table->count++;
    table->at[k][k] = value;
    for (uint32_t s = k; s-- > 0;) {
        const long double fewer = table->at[s][k - 1], later = table->at[s + 1][k];
        const long double factor = ldexpl(table->first, 2 * (int)(k - s - 1));
        const long double made = table->at[s][k] = later + (later - fewer) / (factor - 1);
        if (k - s + 1 < NEEDED) continue;
        /* the distance before stands for these where they are small by chance; the steps' weights are below 2 in all */
        const long double before = fabsl(fewer - table->at[s][k - 2]) / 64;
        const double error = (double)(fabsl(made - fewer) + fabsl(made - later) + before) + 2 * noise;
        if (!(error < table->error)) continue;
        table->best = made;
        table->error = error;
    }
}

/* ---- L with an input moved ---- */

typedef struct Part { /* of an output: what moves with the input */
    Box box;
    uint64_t count;
} Part;

typedef struct Mover {
    Job *job;
    const Weighted *of;
    const Expected *centre;
    uint32_t input;
    uint64_t element, count; /* of the input */
    const double *direction;
    double *memory; /* the moved input */
    Part *parts;    /* of each output */
} Mover;

static uint64_t view_count(const View *view) {
    uint64_t count = 1;
    for (uint32_t d = 0; d < view->rank; d++) count *= (uint64_t)view->extent[d];
    return count;
}

/* Indices of `rank` dims within a box, in row-major order: from one to the next. */
static void step_index(const Box *box, uint32_t rank, int64_t *index) {
    for (uint32_t d = rank; d-- > 0;) {
        if (++index[d] < box->stop[d]) return;
        index[d] = box->start[d];
    }
}

static Part whole_of(Job *job, const Weighted *of, uint32_t output) {
    const Graph *graph = of->graph;
    const Shape *shape = &graph->outputs.at[output].shape;
    Part part = {.count = 1};
    for (uint32_t d = 0; d < shape->rank; d++) {
        IR_REQUIRE(job, ir_poly_eval(shape->extent[d], of->input->dims, graph->dims.count, NULL, 0, &part.box.stop[d]));
        part.count *= (uint64_t)part.box.stop[d];
    }
    return part;
}

static Part *all_parts(Job *job, const Weighted *of) {
    Part *parts = IR_NEW_ARRAY(job, Part, of->graph->outputs.count + (size_t)1);
    for (uint32_t o = 0; o < of->graph->outputs.count; o++)
        if (of->weight[o]) parts[o] = whole_of(job, of, o);
    return parts;
}

static Expected *evaluate(Job *job, const Weighted *of, const EvalInput *input, const Part *parts) {
    const uint32_t count = of->graph->outputs.count;
    Expected *outputs = IR_NEW_ARRAY(job, Expected, count + (size_t)1);
    for (uint32_t o = 0; o < count; o++)
        if (parts[o].count) outputs[o] = ir_eval_graph(job, of->graph, input, o, &parts[o].box);
    return outputs;
}

Expected *ir_difference_centre(Job *job, const Weighted *of) {
    return evaluate(job, of, of->input, all_parts(job, of));
}

static Expected *evaluate_moved(const Mover *mover, double step) {
    EvalInput input = *mover->of->input;
    View *views = IR_NEW_ARRAY(mover->job, View, mover->of->graph->inputs.count);
    memcpy(views, input.inputs, mover->of->graph->inputs.count * sizeof *views);
    const double *from = views[mover->input].bytes;
    memcpy(mover->memory, from, mover->count * sizeof *from);
    for (uint64_t i = 0; mover->direction && i < mover->count; i++)
        mover->memory[i] = from[i] + step * mover->direction[i];
    if (!mover->direction) mover->memory[mover->element] = from[mover->element] + step;
    views[mover->input].bytes = mover->memory;
    input.inputs = views;
    return evaluate(mover->job, mover->of, &input, mover->parts);
}

/* The box of those elements that are not what they were. */
static Part changed_part(const Part *whole, uint32_t rank, const Expected *centre, const Expected *moved) {
    Part part = {.count = 0};
    int64_t index[IR_MAX_RANK] = {0};
    for (uint64_t i = 0; i < whole->count; i++, step_index(&whole->box, rank, index)) {
        if (moved->number[i] == centre->number[i] || !isfinite(centre->number[i])) continue;
        for (uint32_t d = 0; d < rank; d++) {
            if (!part.count || index[d] < part.box.start[d]) part.box.start[d] = index[d];
            if (!part.count || index[d] >= part.box.stop[d]) part.box.stop[d] = index[d] + 1;
        }
        part.count = 1;
    }
    for (uint32_t d = 0; part.count && d < rank; d++) part.count *= (uint64_t)(part.box.stop[d] - part.box.start[d]);
    return part;
}

/* What one element reaches: all that a NaN there changes. Where it falls on the wrong side of a comparison, and so
 * something is missed, that something does not move with the element, or the difference is found to be wrong. */
static void find_parts(Mover *mover) {
    mover->parts = all_parts(mover->job, mover->of);
    if (mover->direction) return;
    const Expected *moved = evaluate_moved(mover, (double)NAN);
    for (uint32_t o = 0; o < mover->of->graph->outputs.count; o++)
        if (mover->parts[o].count)
            mover->parts[o] = changed_part(&mover->parts[o], mover->of->graph->outputs.at[o].shape.rank,
                                           &mover->centre[o], &moved[o]);
}

static long double element_of(const Expected *output, uint64_t i) {
    return (long double)output->number[i] + (output->low ? output->low[i] : 0);
}

/* An infinity that does not move has no difference. */
static long double minus(long double a, long double b) { return a == b ? 0 : a - b; }

typedef struct Moved {
    long double central, apart; /* the central difference; the right one less the left one */
    double noise;               /* of central; of apart four times that */
    double moved, size;         /* sum of |weight * difference| over the step, of |weight * output| */
} Moved;

static void add_output(Moved *moved, const Mover *mover, uint32_t o, const Expected *left, const Expected *right) {
    const Part *part = &mover->parts[o];
    const uint32_t rank = mover->of->graph->outputs.at[o].shape.rank;
    const Part whole = whole_of(mover->job, mover->of, o);
    int64_t index[IR_MAX_RANK];
    memcpy(index, part->box.start, sizeof index);
    for (uint64_t i = 0; i < part->count; i++, step_index(&part->box, rank, index)) {
        uint64_t at = 0;
        for (uint32_t d = 0; d < rank; d++) at = at * (uint64_t)whole.box.stop[d] + (uint64_t)index[d];
        if (!isfinite(mover->centre[o].number[at])) continue;
        const double weight = mover->of->weight[o][at], bound = mover->centre[o].bound[at];
        const long double a = element_of(left, i), b = element_of(right, i), c = element_of(&mover->centre[o], at);
        moved->central += weight * minus(b, a);
        moved->apart += weight * (minus(b, c) - minus(c, a));
        moved->moved += fabs(weight) * (double)fabsl(minus(b, a));
        const bool jumps = mover->centre[o].cause && mover->centre[o].cause[at]; /* then bound reaches over it */
        const double added_up = jumps ? 0 : bound * cancelled;
        moved->size += fabs(weight) * fmax((double)fabsl(c), added_up);
        moved->noise += fabs(weight) * (right->bound[i] + left->bound[i] + 2 * bound);
    }
}

static Moved move(const Mover *mover, double step) {
    Moved moved = {0};
    const Mark mark = ir_mark(mover->job);
    const Expected *right = evaluate_moved(mover, step), *left = evaluate_moved(mover, -step);
    for (uint32_t o = 0; o < mover->of->graph->outputs.count; o++)
        if (mover->parts[o].count) add_output(&moved, mover, o, &left[o], &right[o]);
    ir_reset(mover->job, mark);
    moved.central /= 2 * (long double)step;
    moved.apart /= step;
    moved.moved /= 2 * step;
    moved.noise = in_long_double(moved.noise) / (2 * step) + 0x1p-60 * moved.moved;
    return moved;
}

Difference ir_difference(Job *job, const Weighted *of, const Expected *centre, uint32_t input, uint64_t element,
                         const double *direction) {
    const Mark mark = ir_mark(job);
    const View *view = &of->input->inputs[input];
    const double *from = view->bytes;
    Mover mover = {job, of, centre, input, element, view_count(view), direction, NULL, NULL};
    mover.memory = IR_NEW_ARRAY(job, double, mover.count);
    find_parts(&mover);
    const double mean = mean_size(from, mover.count);
    const double first = power_of_two((direction ? mean : fmax(fabs(from[element]), mean / 4)) / 8);
    /* of a step below all others: where jumps go by at even distances, larger ones may agree on a slope */
    const Moved least = move(&mover, ldexp(first, -(STEPS + 2)));
    Table central = {.first = 4}, apart = {.first = 2};
    double size = 0;
    bool confirmed = false;
    table_clear(&central, &apart);
    for (uint32_t k = 0; k < STEPS && !confirmed; k++) {
        const Moved moved = move(&mover, ldexp(first, -(int)k));
        if (!isfinite((double)moved.central) || !isfinite(moved.noise)) { /* beyond what L is defined on */
            table_clear(&central, &apart);
            continue;
        }
        table_push(&central, moved.central, moved.noise);
        table_push(&apart, moved.apart, 4 * moved.noise);
        size = moved.moved + moved.size / first;
        const bool agrees = fabsl(central.best - least.central) <= usable * size;
        if (central.error <= settled * size && !agrees) table_clear(&central, &apart);
        confirmed = agrees && central.error <= (k + 1 < STEPS ? settled : usable) * size;
    }
    ir_reset(job, mark);
    const double jump = (double)fabsl(apart.best);
    const bool kink = jump > apart.error && jump > usable * size;
    return (Difference){(double)central.best, central.error, size, confirmed && !kink};
}
