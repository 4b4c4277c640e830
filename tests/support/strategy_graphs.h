/* Graphs of every strategy but the simplest, over the dims M and N (strategy_graphs.def). */
#ifndef TESTS_STRATEGY_GRAPHS_H
#define TESTS_STRATEGY_GRAPHS_H

#include "gen/gen.h"

typedef struct StrategyGraph {
    const char *name;
    Strategy strategy;    /* that some kernel has, but at extents of 1 */
    const char *consumed; /* dims that some reduction runs over: "M", "N", "MN" */
    const char *sets;     /* knobs, NAME=VALUE with blanks between; or NULL */
    const char *body;     /* inputs, nodes and outputs; ' stands for " */
} StrategyGraph;

extern const StrategyGraph strategy_graphs[];
extern const uint32_t strategy_graph_count;

/* A whole file: m and n are what the dims are ("any", "33", "{max: 40}"), type is E. suffix follows the name. */
const char *strategy_graph_text(Job *job, const StrategyGraph *graph, const char *suffix, const char *type,
                                const char *m, const char *n);

#endif
