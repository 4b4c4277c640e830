/* A graph file as a person would write it: what is used once and has no name stands inside the expression that uses it.
 * ir_graph_print's texts, a node a value, are for dumps. */
#ifndef IR_GRAPH_WRITE_H
#define IR_GRAPH_WRITE_H

#include "ir/graph.h"

/* Comments, without '#'; NULL: none. */
typedef struct GraphNotes {
    const char *head;           /* lines above `graph:` */
    const char *const *inputs;  /* beside each input; NULL: no array */
    const char *const *outputs; /* beside each output */
    const char *const *values;  /* beside the node of each value that is one */
    const char **nodes;         /* goes out: the name of each value's node; NULL: it stands in an expression */
} GraphNotes;

/* Of a Graph as parse makes it, composites and all. Reads back to a graph that is the same (ir_graph_same). */
void ir_graph_write(Text *text, const Graph *graph, const GraphNotes *notes);

/* Equal dims, inputs, scalars and outputs, and outputs of equal expressions: names and order of inner values, and
 * whether an expression is shared or written twice, may differ. */
bool ir_graph_same(Job *job, const Graph *a, const Graph *b);

#endif
