/* Flow through a network, and the cut that it fills. In: nodes and edges. Out: the sink's side of a least cut. Along
 * shortest paths: Edmonds and Karp, "Theoretical improvements in algorithmic efficiency for network flow problems",
 * 1972. */
#include "gen/flow.h"

#include <string.h>

#define NONE UINT32_MAX
#define START (UINT32_MAX - 1)

Flow gen_flow_create(Job *job, uint32_t more) {
    Flow flow = {.job = job, .node_count = FLOW_FIRST, .capacity = FLOW_FIRST + more};
    flow.first = IR_NEW_ARRAY(job, uint32_t, flow.capacity);
    flow.by = IR_NEW_ARRAY(job, uint32_t, flow.capacity);
    flow.queue = IR_NEW_ARRAY(job, uint32_t, flow.capacity);
    memset(flow.first, 0xff, flow.capacity * sizeof *flow.first);
    return flow;
}

uint32_t gen_flow_add_nodes(Flow *flow, uint32_t count) {
    const uint32_t first = flow->node_count;
    IR_REQUIRE(flow->job, count <= flow->capacity - first);
    flow->node_count += count;
    return first;
}

static void add_half(Flow *flow, uint32_t from, uint32_t to, int64_t capacity) {
    *IR_PUSH(flow->job, &flow->edges) = (FlowEdge){to, flow->first[from], capacity};
    flow->first[from] = flow->edges.count - 1;
}

void gen_flow_add_edge(Flow *flow, uint32_t from, uint32_t to, int64_t capacity) {
    add_half(flow, from, to, capacity);
    add_half(flow, to, from, 0);
}

/* Breadth first along edges with room; against: along their other way round. */
static void search(Flow *flow, uint32_t start, bool against) {
    const FlowEdge *edges = flow->edges.at;
    uint32_t head = 0, tail = 0;
    memset(flow->by, 0xff, flow->node_count * sizeof *flow->by);
    flow->by[start] = START;
    flow->queue[tail++] = start;
    while (head < tail) {
        const uint32_t node = flow->queue[head++];
        for (uint32_t e = edges ? flow->first[node] : NONE; e != NONE; e = edges[e].next) {
            if (flow->by[edges[e].to] != NONE || edges[against ? e ^ 1 : e].capacity <= 0) continue;
            flow->by[edges[e].to] = e;
            flow->queue[tail++] = edges[e].to;
        }
    }
}

uint32_t gen_flow_before(const Flow *flow, uint32_t node) { return flow->edges.at[flow->by[node] ^ 1].to; }

/* What the path that was found takes. */
static int64_t room_of(const Flow *flow) {
    int64_t room = FLOW_ENDLESS;
    for (uint32_t node = FLOW_SINK; node != FLOW_SOURCE; node = gen_flow_before(flow, node)) {
        const int64_t own = flow->edges.at[flow->by[node]].capacity;
        if (own < room) room = own;
    }
    return room;
}

bool gen_flow_fill(Flow *flow) {
    for (;;) {
        search(flow, FLOW_SOURCE, false);
        if (flow->by[FLOW_SINK] == NONE) return true;
        const int64_t room = room_of(flow);
        if (room >= FLOW_ENDLESS / 2) return false;
        for (uint32_t node = FLOW_SINK; node != FLOW_SOURCE; node = gen_flow_before(flow, node)) {
            flow->edges.at[flow->by[node]].capacity -= room;
            flow->edges.at[flow->by[node] ^ 1].capacity += room;
        }
    }
}

void gen_flow_cut(Flow *flow) { search(flow, FLOW_SINK, true); }

bool gen_flow_is_behind(const Flow *flow, uint32_t node) { return flow->by[node] != NONE; }
