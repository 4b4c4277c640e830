/* The same function without rounding: what differences of a graph and its gradients are taken of. */
#ifndef IR_GRAPH_WIDE_H
#define IR_GRAPH_WIDE_H

#include "ir/graph.h"

/* A copy in which every float is f64 and casts between floats are gone, so that the oracle evaluates it in long double
 * and rounds nowhere; outputs neither accumulate nor are in place. Of a Graph as parse makes it, composites and all,
 * literals in their calls are f64's too; constants that are values keep what they were rounded to. Names stay. */
Graph *ir_graph_widen(Job *job, const Graph *graph);

#endif
