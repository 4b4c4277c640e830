/* Least cuts of a network: the edges that part its source from its sink, of the least capacity in all. (gen/flow.c) */
#ifndef GEN_FLOW_H
#define GEN_FLOW_H

#include "ir/job.h"

enum { FLOW_SOURCE, FLOW_SINK, FLOW_FIRST }; /* nodes; those from FLOW_FIRST on are the caller's */
#define FLOW_ENDLESS ((int64_t)1 << 61)      /* the capacity of an edge that no cut may take; sums stay below 2^60 */

typedef struct FlowEdge {
    uint32_t to, next; /* the next of the same node's. Edge e ^ 1 is the other way round */
    int64_t capacity;  /* that is left */
} FlowEdge;

typedef struct Flow {
    Job *job;
    uint32_t *first; /* edge of each node */
    IR_LIST(FlowEdge) edges;
    uint32_t *by; /* the edge by which the last search came to each node */
    uint32_t *queue;
    uint32_t node_count, capacity;
} Flow;

/* A network of the source, the sink and at most `more` other nodes, none of which is there yet. */
Flow gen_flow_create(Job *job, uint32_t more);
uint32_t gen_flow_add_nodes(Flow *flow, uint32_t count); /* the first of them */
void gen_flow_add_edge(Flow *flow, uint32_t from, uint32_t to, int64_t capacity);
/* Sends all that the edges take. False: a path is endless, and there is no cut; gen_flow_before goes back along it. */
bool gen_flow_fill(Flow *flow);
uint32_t gen_flow_before(const Flow *flow, uint32_t node);
/* After gen_flow_fill: of all least cuts the one nearest the sink; gen_flow_is_behind: nodes on the sink's side. */
void gen_flow_cut(Flow *flow);
bool gen_flow_is_behind(const Flow *flow, uint32_t node);

#endif
