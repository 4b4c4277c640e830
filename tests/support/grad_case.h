/* A graph's gradients, as grad derives them, against two other ways to them: dual numbers and central differences. */
#ifndef TESTS_GRAD_CASE_H
#define TESTS_GRAD_CASE_H

#include "gen/exact.h"
#include "tests/support/dual.h"
#include "tests/support/random.h"

/* What a graph of gen_exact is evaluated with. */
typedef struct GradData {
    EvalInput input;
    double **number;       /* of each float input, f64 in row-major order; NULL: of integers */
    uint64_t *count;       /* elements of each input */
    const double **weight; /* of each output that gen_grad takes a gradient of */
} GradData;

/* Uniform numbers between low and high, away from whole numbers; integers 0 and 1. dims: of exact->graph. */
GradData grad_data(Job *job, const Exact *exact, const int64_t *dims, Random *random, double low, double high);

typedef struct GradFound {
    uint64_t elements; /* compared with dual numbers */
    uint64_t differed; /* of these with differences */
    uint64_t unsure;   /* of differences: kinks, and what does not settle */
    uint64_t failed;
    uint64_t undefined; /* outputs that are NaN or infinite: the numbers given are outside what the graph is for */
    uint64_t hidden;    /* values inside that are, while outputs are not: behind a where(), say */
} GradFound;

/* Every element of every gradient with a whole column of the Jacobian. A gradient may be as far from the dual one as a
 * correct evaluation in f64 may be; from differences by their own error more. What fails is printed after `what`.
 * differences: at most so many elements of each input are differenced, picked at random. */
GradFound grad_compare(Job *job, const Exact *exact, const GradData *data, const char *what, uint64_t differences,
                       Random *random);

/* Parses a graph file and makes its gradients; the job stops where that fails. */
const Graph *grad_parse(Job *job, const char *text);
/* The value of each dim; of any dims, the one given. */
int64_t *grad_dims(Job *job, const Graph *graph, int64_t any);

#endif
