/* Random Graphs that no text was read to make: combinations that nobody writes, values without names and with several
 * uses, derived dims. */
#ifndef TESTS_SUPPORT_MADE_GRAPH_H
#define TESTS_SUPPORT_MADE_GRAPH_H

#include "ir/graph.h"
#include "tests/support/random.h"

typedef struct MadeGraph {
    Random random;
    Graph *graph;
    uint32_t legal; /* values that were built */
} MadeGraph;

/* For ir_job_run, with a MadeGraph whose random is set. */
void made_graph(Job *job, void *state);

#endif
