/* A graph and its gradients without rounding: both in f64, which the oracle evaluates in long double. For checks of
 * what gen_grad makes. */
#ifndef GEN_EXACT_H
#define GEN_EXACT_H

#include "gen/grad.h"
#include "ir/eval.h"

typedef struct Exact {
    const GradOptions *options; /* of the gradients */
    const Graph *graph;         /* the forward graph in f64, expanded; inputs, outputs and scalars as in the file */
    const Graph *forward;       /* the same, extended by what is saved */
    const Graph *backward;      /* made of the graph in f64 */
    const Grad *grad;           /* whose two graphs those were, before they were expanded */
} Exact;

/* The dims of `to`: those that `from` has too, by their names, as there; its others are fixed. */
int64_t *gen_exact_dims(Job *job, const Graph *to, const Graph *from, const int64_t *dims);
/* A tensor of a graph at these dims, its elements in row-major order at `bytes`. */
View gen_exact_view(Job *job, const Graph *graph, const Tensor *tensor, const int64_t *dims, const void *bytes);

/* What the forward graph is given, and what its gradients. */
typedef struct ExactInput {
    const EvalInput *input;      /* of exact->graph; views of floats are f64 */
    const double *const *weight; /* for each output its gradient, f64 in row-major order; NULL: none comes in */
} ExactInput;

/* Of a Graph as parse makes it. */
Exact *gen_exact(Job *job, const Graph *graph, const GradOptions *options);
/* A Graph as parse makes it in f64 and without composites. */
const Graph *gen_exact_graph(Job *job, const Graph *graph);

/* Each output of a backward graph in f64, of `exact` or of another that reads what exact->forward has: what is saved is
 * as the forward graph computes it. */
Expected *gen_exact_gradients(Job *job, const Exact *exact, const Graph *backward, const ExactInput *given);
/* An output of exact->forward by its name; NULL: there is none. */
const Expected *gen_exact_saved(Job *job, const Exact *exact, const ExactInput *given, const char *name);
/* The input of exact->graph whose gradient an output of a backward graph is. */
uint32_t gen_exact_input(Job *job, const Exact *exact, const Graph *backward, uint32_t output);

#endif
