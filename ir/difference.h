/* Central differences of a graph in long double: what its gradients are compared with. */
#ifndef IR_DIFFERENCE_H
#define IR_DIFFERENCE_H

#include "ir/eval.h"

/* L = the sum over outputs of sum(weight * output), of those elements that are finite where nothing is moved. */
typedef struct Weighted {
    const Graph *graph;          /* of ir_graph_widen, composites expanded */
    const EvalInput *input;      /* views of floats are f64 without gaps, rounded by ir_difference_round */
    const double *const *weight; /* of each output's elements; NULL: it does not count */
} Weighted;

typedef struct Difference {
    double number;
    double error; /* what extrapolation and long double's rounding leave, estimated from the differences themselves */
    double size;  /* of what is differenced: what an error is small or large against */
    bool sure;    /* false: L has a kink or a jump here, or error is as large as to say nothing */
} Difference;

/* How far from the difference a gradient may be that was evaluated in long double. bound: of the oracle, for f64. It
 * is brought to long double, and literals, which are f64's, may put it off by some of their last places more. Infinite:
 * unknown, as where a comparison is met that rounding could turn, which in long double it does not. */
double ir_difference_allows(const Difference *difference, double bound);

/* Clears low bits, so that x plus and minus a step are exact. */
void ir_difference_round(double *number, uint64_t count);

/* The outputs where nothing is moved: `centre` of ir_difference. */
Expected *ir_difference_centre(Job *job, const Weighted *of);

/* dL along one element of an input, or along a direction over all of it (multiples of 1/8 up to 1; element is not
 * read then). The job's memory is left as it was. */
Difference ir_difference(Job *job, const Weighted *of, const Expected *centre, uint32_t input, uint64_t element,
                         const double *direction);

#endif
