/* The pass parse. Needs unit->text, which is the job's source, and unit->options. Gives unit->graph: typed values with
 * their places, composites as OP_COMPOSITE, functions inlined. Values stand in the order in which the nodes need each
 * other, file order where that leaves a choice; inputs are the first values, scalars the next. Breaks nothing. */
#include <string.h>

#include "gen/front.h"

/* ---- what a node needs ---- */

static void collect_needs(Front *front, Node *node, const Ast *ast) {
    if (ast->kind == AST_NAME) {
        const Symbol *symbol = gen_name_find(front, ast->text);
        if (symbol && symbol->kind == SYMBOL_NODE) *IR_PUSH(front->job, &node->needs) = symbol->index;
    }
    for (uint32_t i = 0; i < ast->count; i++)
        if (ast->item[i]) collect_needs(front, node, ast->item[i]);
}

/* stack[first..count) need each other in a ring. */
static void report_cycle(Front *front, const uint32_t *stack, uint32_t first, uint32_t count) {
    Text text = ir_text(front->job);
    for (uint32_t i = first; i < count; i++) {
        if (i - first < 8) ir_text_format(&text, "%s -> ", front->nodes.at[stack[i]].name);
        if (i - first == 8) ir_text_put(&text, "... -> ");
        front->nodes.at[stack[i]].state = NODE_BROKEN;
    }
    ir_error(front->job, front->nodes.at[stack[first]].place, "nodes need each other in a cycle: %s%s",
             ir_text_string(&text), front->nodes.at[stack[first]].name);
    for (uint32_t i = first + 1; i < count && i < first + 4; i++)
        ir_note(front->job, front->nodes.at[stack[i]].place, "'%s' is in the cycle", front->nodes.at[stack[i]].name);
}

/* ---- building ---- */

typedef struct NodeWork {
    Front *front;
    Node *node;
} NodeWork;

static void build_node(Job *job, void *state) {
    Front *front = ((NodeWork *)state)->front;
    Node *node = ((NodeWork *)state)->node;
    front->depth = 0;
    Arg arg = gen_build(front, NULL, node->ast);
    if (arg.kind == ARG_NONE || arg.kind == ARG_TEXT || arg.kind == ARG_LIST)
        ir_stop_at(job, STATUS_REJECTED, node->ast->place, "a node is a tensor, not %s",
                   arg.kind == ARG_NONE   ? "None"
                   : arg.kind == ARG_TEXT ? "a string"
                                          : "a list");
    uint32_t value = gen_arg_value(front, &arg, NULL, node->ast->place);
    if (!front->graph->values.at[value].name) front->graph->values.at[value].name = node->name;
    node->value = value;
}

static void finish_node(Front *front, Node *node) {
    bool whole = true;
    for (uint32_t i = 0; i < node->needs.count; i++)
        whole = whole && front->nodes.at[node->needs.at[i]].state == NODE_DONE;
    NodeWork work = {.front = front, .node = node};
    bool built = node->state == NODE_OPEN && whole && gen_attempt(front->job, build_node, &work);
    node->state = built ? NODE_DONE : NODE_BROKEN;
}

/* Depth first without recursion: a chain of nodes may be long. */
static void build_from(Front *front, uint32_t root, uint32_t *stack) {
    uint32_t count = 0;
    stack[count++] = root;
    front->nodes.at[root].state = NODE_OPEN;
    while (count > 0) {
        Node *node = &front->nodes.at[stack[count - 1]];
        if (node->next == node->needs.count) {
            finish_node(front, node);
            count--;
            continue;
        }
        uint32_t need = node->needs.at[node->next++];
        if (front->nodes.at[need].state == NODE_NEW) {
            front->nodes.at[need].state = NODE_OPEN;
            stack[count++] = need;
        } else if (front->nodes.at[need].state == NODE_OPEN) {
            uint32_t first = count;
            while (stack[first - 1] != need) first--;
            report_cycle(front, stack, first - 1, count);
        }
    }
}

static void build_nodes(Front *front) {
    uint32_t *stack = IR_NEW_ARRAY(front->job, uint32_t, front->nodes.count + 1);
    for (uint32_t i = 0; i < front->nodes.count; i++)
        if (front->nodes.at[i].ast) collect_needs(front, &front->nodes.at[i], front->nodes.at[i].ast);
    for (uint32_t i = 0; i < front->nodes.count; i++)
        if (front->nodes.at[i].state == NODE_NEW) build_from(front, i, stack);
}

/* ---- warnings ---- */

static void mark_live(Front *front, uint32_t root, uint32_t *stack) {
    uint32_t count = 0;
    if (!front->nodes.at[root].live) stack[count++] = root;
    front->nodes.at[root].live = true;
    while (count > 0) {
        const Node *node = &front->nodes.at[stack[--count]];
        for (uint32_t i = 0; i < node->needs.count; i++) {
            Node *need = &front->nodes.at[node->needs.at[i]];
            if (!need->live) stack[count++] = node->needs.at[i];
            need->live = true;
        }
    }
}

static void warn_unused(Front *front, const Doc *outputs) {
    uint32_t *stack = IR_NEW_ARRAY(front->job, uint32_t, front->nodes.count + 1);
    for (uint32_t i = 0; i < outputs->size; i++) {
        const Doc *item = outputs->items[i];
        const Doc *of = item->kind == DOC_MAP ? gen_doc_find(item, "of") : NULL;
        const Symbol *symbol = gen_name_find(front, of ? of->text : outputs->keys[i]->text);
        if (symbol && symbol->kind == SYMBOL_NODE) mark_live(front, symbol->index, stack);
    }
    for (uint32_t i = 0; i < front->graph->outputs.count; i++) {
        uint32_t inplace = front->graph->outputs.at[i].inplace;
        if (inplace != IR_NONE) gen_name_find(front, front->graph->inputs.at[inplace].name)->used = true;
    }
    for (uint32_t i = 0; i < front->symbols.count; i++) {
        const Symbol *symbol = &front->symbols.at[i];
        static const char *const kinds[] = {[SYMBOL_DIM] = "dim", [SYMBOL_INPUT] = "input", [SYMBOL_SCALAR] = "scalar"};
        const bool told = symbol->kind == SYMBOL_DIM || symbol->kind == SYMBOL_INPUT || symbol->kind == SYMBOL_SCALAR;
        if (told && !symbol->used)
            gen_warn(front, symbol->place, "the %s '%s' is not used", kinds[symbol->kind], symbol->name);
        if (symbol->kind == SYMBOL_NODE && !front->nodes.at[symbol->index].live)
            gen_warn(front, symbol->place, "no output needs the node '%s'", symbol->name);
    }
}

void gen_parse(Job *job, Unit *unit) {
    const Doc *root = gen_yaml_read(job, unit->text, unit->count);
    Front front = {.job = job, .graph = ir_graph_create(job, ""), .options = &unit->options};
    gen_read_sections(&front, root);
    build_nodes(&front);
    const Doc *outputs = gen_doc_find(root, "outputs");
    if (outputs && outputs->kind != DOC_MAP)
        ir_stop_at(job, STATUS_REJECTED, outputs->place,
                   "outputs: expected 'NODE: DTYPE' for each, as in outputs: {y: bf16}, found a %s",
                   outputs->kind == DOC_LIST ? "list" : "text");
    if (!outputs || outputs->size == 0)
        ir_stop_at(job, STATUS_REJECTED, outputs ? outputs->place : root->place,
                   "the graph has no outputs: add 'outputs: {y: bf16}'");
    gen_read_outputs(&front, outputs);
    ir_stop_on_errors(job);
    gen_check_inplace(&front);
    ir_stop_on_errors(job);
    warn_unused(&front, outputs);
    ir_stop_on_errors(job);
    if (!front.types_cast)
        for (uint32_t i = 0; i < front.types.count; i++) *IR_PUSH(job, &front.graph->types) = front.types.at[i];
    unit->graph = front.graph;
}
