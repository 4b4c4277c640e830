/* In: a box of a value of a Graph. Out: the box that each value before it must be evaluated over, by one walk
 * backwards. Left alone: evaluation (ir/eval_graph.c). */
#include "ir/eval_need.h"

int64_t ir_eval_size(Job *job, const Graph *graph, Poly poly, const int64_t *dims) {
    int64_t value;
    if (!ir_poly_eval(poly, dims, graph->dims.count, NULL, 0, &value)) IR_BREACH(job, "a size passes 2^62");
    return value;
}

uint64_t ir_box_count(const Box *box, uint32_t rank) {
    uint64_t count = 1;
    for (uint32_t d = 0; d < rank; d++) {
        if (box->stop[d] <= box->start[d]) return 0;
        count *= (uint64_t)(box->stop[d] - box->start[d]);
    }
    return count;
}

void ir_box_strides(const Box *box, uint32_t rank, int64_t *strides) {
    int64_t stride = 1;
    for (uint32_t d = rank; d-- > 0;) {
        strides[d] = stride;
        stride *= box->stop[d] - box->start[d];
    }
}

static void require(Node *node, const Box *box, uint32_t user) {
    uint64_t count = ir_box_count(box, node->rank);
    if (user > node->last_use || !node->needed) node->last_use = user;
    if (!node->needed || !node->count) {
        node->need = *box;
    } else if (count) {
        for (uint32_t d = 0; d < node->rank; d++) {
            if (box->start[d] < node->need.start[d]) node->need.start[d] = box->start[d];
            if (box->stop[d] > node->need.stop[d]) node->need.stop[d] = box->stop[d];
        }
    }
    node->needed = true;
    node->count = ir_box_count(&node->need, node->rank);
}

/* An operand broadcast into its user: trailing dims aligned, a dim of one element read at 0. */
static Box broadcast_box(const Node *user, const Node *arg) {
    Box box = {{0}, {0}};
    for (uint32_t d = 0; d < arg->rank; d++) {
        uint32_t from = d + user->rank - arg->rank;
        bool one = arg->extent[d] == 1;
        box.start[d] = one ? 0 : user->need.start[from];
        box.stop[d] = one ? 1 : user->need.stop[from];
    }
    return box;
}

static Box reduce_box(const Value *value, const Node *user, const Node *arg) {
    Box box = {{0}, {0}};
    for (uint32_t d = 0, from = 0; d < arg->rank; d++) {
        bool consumed = value->dims >> d & 1;
        box.start[d] = consumed ? 0 : user->need.start[from];
        box.stop[d] = consumed ? arg->extent[d] : user->need.stop[from];
        if (!consumed || value->keepdim) from++;
    }
    return box;
}

/* Also requires the gathered index. */
static Box index_box(Job *job, const Graph *graph, Node *nodes, const int64_t *dims, uint32_t id) {
    const Value *value = &graph->values.at[id];
    const Node *user = &nodes[id], *arg = &nodes[value->arg[0]];
    Box box = {{0}, {0}};
    uint32_t from = 0, d = 0;
    for (uint32_t i = 0; i < value->item_count; i++) {
        const Item *item = &value->items[i];
        int64_t start =
            item->kind == ITEM_RANGE || item->kind == ITEM_AT ? ir_eval_size(job, graph, item->start, dims) : 0;
        if (item->kind == ITEM_NEW_AXIS) {
            from++;
            continue;
        }
        box.start[d] = start;
        box.stop[d] = start + 1;
        if (item->kind == ITEM_RANGE) {
            box.start[d] = start + user->need.start[from];
            box.stop[d] = start + user->need.stop[from++];
        } else if (item->kind == ITEM_GATHER) {
            Node *index = &nodes[item->index];
            Box read = {{0}, {0}};
            for (uint32_t k = 0; k < index->rank; k++, from++) {
                read.start[k] = user->need.start[from];
                read.stop[k] = user->need.stop[from];
            }
            require(index, &read, id);
            box.stop[d] = arg->extent[d];
        }
        bool inside = box.start[d] >= 0 && box.stop[d] <= arg->extent[d];
        if (!inside) {
            ir_stop_at(job, STATUS_USAGE, value->place, "an index reaches %lld of a dim of %lld",
                       (long long)box.stop[d] - 1, (long long)arg->extent[d]);
        }
        d++;
    }
    return box;
}

/* The part [low, high] of a group of dims, by their common linear index: leading dims by division, all of the dims
 * after the first that takes more than one index. */
static void group_box(const int64_t *extent, uint32_t first, uint32_t last, int64_t low, int64_t high, Box *box) {
    int64_t stride = 1;
    for (uint32_t d = first; d < last; d++) stride *= extent[d];
    bool whole = false;
    for (uint32_t d = first; d < last; d++) {
        stride /= extent[d];
        box->start[d] = whole ? 0 : low / stride;
        box->stop[d] = whole ? extent[d] : high / stride + 1;
        if (box->stop[d] - box->start[d] > 1) whole = true;
        low %= stride;
        high %= stride;
    }
}

/* Dims of both shapes fall into groups of equal products, each mapped by itself. No extent is 0 here. */
static Box reshape_box(const Node *user, const Node *arg) {
    Box box = {{0}, {0}};
    uint32_t i = 0, k = 0;
    while (i < user->rank || k < arg->rank) {
        uint32_t first_i = i, first_k = k;
        int64_t p = 1, q = 1;
        do {
            bool take_user = i < user->rank && (p <= q || k == arg->rank);
            if (take_user)
                p *= user->extent[i++];
            else
                q *= arg->extent[k++];
        } while (p != q);
        int64_t low = 0, high = 0;
        for (uint32_t d = first_i; d < i; d++) {
            low = low * user->extent[d] + user->need.start[d];
            high = high * user->extent[d] + user->need.stop[d] - 1;
        }
        group_box(arg->extent, first_k, k, low, high, &box);
    }
    return box;
}

static void require_args(Job *job, const Graph *graph, Node *nodes, const int64_t *dims, uint32_t id) {
    const Value *value = &graph->values.at[id];
    for (uint32_t k = 0; k < value->arg_count; k++) {
        Node *arg = &nodes[value->arg[k]];
        Box box;
        switch (value->op) {
        case OP_REDUCE: box = reduce_box(value, &nodes[id], arg); break;
        case OP_INDEX: box = index_box(job, graph, nodes, dims, id); break;
        case OP_RESHAPE: box = reshape_box(&nodes[id], arg); break;
        default: box = broadcast_box(&nodes[id], arg);
        }
        require(arg, &box, id);
    }
}

uint64_t ir_eval_plan(Job *job, const Graph *graph, Node *nodes, const int64_t *dims, uint32_t wanted, const Box *box) {
    for (uint32_t id = 0; id <= wanted; id++) {
        nodes[id].needed = false;
        nodes[id].count = 0;
    }
    require(&nodes[wanted], box, IR_NONE);
    uint64_t sum = 0;
    for (uint32_t id = wanted + 1; id-- > 0;) {
        if (!nodes[id].needed || !nodes[id].count) continue;
        sum += nodes[id].count;
        require_args(job, graph, nodes, dims, id);
    }
    return sum;
}
