/* In: the table. Out: graph files. */
#include "tests/support/strategy_graphs.h"

const StrategyGraph strategy_graphs[] = {
#define STRATEGY_GRAPH(name, strategy, consumed, sets, body) {name, STRATEGY_##strategy, consumed, sets, body},
#include "tests/support/strategy_graphs.def"
#undef STRATEGY_GRAPH
};
const uint32_t strategy_graph_count = sizeof strategy_graphs / sizeof *strategy_graphs;

const char *strategy_graph_text(Job *job, const StrategyGraph *graph, const char *suffix, const char *type,
                                const char *m, const char *n) {
    char *text = ir_format(job, "graph: %s%s\ntypes: {E: %s}\ndims: {M: %s, N: %s}\n%s", graph->name, suffix, type, m,
                           n, graph->body);
    for (char *c = text; *c; c++)
        if (*c == '\'') *c = '"';
    return text;
}
