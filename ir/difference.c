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

enum { STEPS = 14, NEEDED = 3 };

static const double usable = 0x1p-20; /* of the size of what is differenced: an error above it says nothing */
static const double settled = 0x1p-42;

typedef struct Table {            /* extrapolations of the steps so far */
    long double at[STEPS][STEPS]; /* [s][k], s <= k */
    double noise[STEPS];
    long double first; /* the error's first term falls so with half the step: 4 (h^2, h^4, ...), 2 (h, h^3, ...) */
    long double best;
    double error;
} Table;

double ir_difference_rounding(double bound) { return bound * 0x1p-11; }

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
        const double unit = power_of_two(fmax(fabs(number[i]), least)) * 0x1p-40;
        number[i] = nearbyint(number[i] / unit) * unit;
    }
}

static void table_push(Table *table, uint32_t k, long double value, double noise) {
    table->at[k][k] = value;
    table->noise[k] = noise;
    for (uint32_t s = k; s-- > 0;) {
        const long double fewer = table->at[s][k - 1], later = table->at[s + 1][k];
        const long double factor = ldexpl(table->first, 2 * (int)(k - s - 1));
        const long double made = table->at[s][k] = later + (later - fewer) / (factor - 1);
        /* the weights of all steps together are below 2 */
        const double error = (double)(fabsl(made - fewer) + fabsl(made - later)) + 2 * noise;
        if (k - s + 1 < NEEDED || !(error < table->error)) continue;
        table->best = made;
        table->error = error;
    }
}

/* ---- L with an input moved ---- */

typedef struct Mover {
    Job *job;
    const Weighted *of;
    const Expected *centre;
    uint32_t input;
    uint64_t element, count; /* of the input */
    const double *direction;
    double *memory; /* the moved input */
} Mover;

static int64_t view_count(const View *view) {
    int64_t count = 1;
    for (uint32_t d = 0; d < view->rank; d++) count *= view->extent[d];
    return count;
}

static Expected *evaluate(Job *job, const Weighted *of, const EvalInput *input) {
    const uint32_t count = of->graph->outputs.count;
    Expected *outputs = IR_NEW_ARRAY(job, Expected, count + (size_t)1);
    for (uint32_t o = 0; o < count; o++)
        if (of->weight[o]) outputs[o] = ir_eval_graph(job, of->graph, input, o, NULL);
    return outputs;
}

Expected *ir_difference_centre(Job *job, const Weighted *of) { return evaluate(job, of, of->input); }

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
    return evaluate(mover->job, mover->of, &input);
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

static Moved move(const Mover *mover, double step) {
    Moved moved = {0};
    const Mark mark = ir_mark(mover->job);
    const Expected *right = evaluate_moved(mover, step), *left = evaluate_moved(mover, -step);
    for (uint32_t o = 0; o < mover->of->graph->outputs.count; o++) {
        const double *weight = mover->of->weight[o];
        for (uint64_t i = 0; weight && i < right[o].count; i++) {
            const long double a = element_of(&left[o], i), b = element_of(&right[o], i);
            const long double c = element_of(&mover->centre[o], i), difference = minus(b, a);
            const double bound = right[o].bound[i] + left[o].bound[i] + 2 * mover->centre[o].bound[i];
            moved.central += weight[i] * difference;
            moved.apart += weight[i] * (minus(b, c) - minus(c, a));
            moved.moved += fabs(weight[i]) * (double)fabsl(difference);
            if (isfinite((double)c)) moved.size += fabs(weight[i]) * (double)fabsl(c);
            moved.noise += fabs(weight[i]) * bound;
        }
    }
    ir_reset(mover->job, mark);
    moved.central /= 2 * (long double)step;
    moved.apart /= step;
    moved.moved /= 2 * step;
    moved.noise = ir_difference_rounding(moved.noise) / (2 * step) + 0x1p-60 * moved.moved;
    return moved;
}

Difference ir_difference(Job *job, const Weighted *of, const Expected *centre, uint32_t input, uint64_t element,
                         const double *direction) {
    const Mark mark = ir_mark(job);
    const View *view = &of->input->inputs[input];
    const double *from = view->bytes;
    Mover mover = {job, of, centre, input, element, (uint64_t)view_count(view), direction, NULL};
    mover.memory = IR_NEW_ARRAY(job, double, mover.count);
    const double mean = mean_size(from, mover.count);
    const double first = power_of_two((direction ? mean : fmax(fabs(from[element]), mean / 4)) / 8);
    Table central = {.first = 4, .error = (double)INFINITY}, apart = {.first = 2, .error = (double)INFINITY};
    double size = 0;
    uint32_t used = 0;
    for (uint32_t k = 0; k < STEPS; k++) {
        const Moved moved = move(&mover, ldexp(first, -(int)k));
        if (!isfinite((double)moved.central) || !isfinite(moved.noise)) { /* beyond what L is defined on */
            used = 0;
            central.error = apart.error = (double)INFINITY;
            continue;
        }
        table_push(&central, used, moved.central, moved.noise);
        table_push(&apart, used, moved.apart, 4 * moved.noise);
        used++;
        size = moved.moved + moved.size / first;
        if (central.error <= settled * size) break;
    }
    ir_reset(job, mark);
    const double jump = (double)fabsl(apart.best);
    const bool kink = jump > apart.error && jump > usable * size;
    return (Difference){(double)central.best, central.error, !kink && central.error <= usable * size};
}
