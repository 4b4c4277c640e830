/* In: a Graph as parse makes it, or one that was made of such. Out: a graph file for people: values that have a name,
 * or several uses and more than a glance's worth in them, are nodes; all else stands in the expression that uses it.
 * Left alone: how expressions are spelled (ir/graph_express.c) and the other sections (ir/graph_file.c). */
#include "ir/graph_write.h"

#include <string.h>

#include "ir/graph_express.h"

#define MOST_INLINE 96 /* of an expression whose node is not known yet: what a line leaves beside a name */
#define LEAST_SPLIT 12 /* shorter texts get no node of their own for the line's sake */

typedef struct Writer {
    Express express;
    uint32_t *uses; /* of each value, by values that are written */
    bool *live;     /* needed by an output or a named value */
    bool *stored;   /* by an output */
} Writer;

static const Value *value_of(const Writer *writer, uint32_t id) { return &writer->express.file.graph->values.at[id]; }

static bool is_given(const Value *value) { return value->op == OP_INPUT || value->op == OP_SCALAR; }

/* ---- which values are nodes ---- */

static void count_uses(Writer *writer) {
    const Graph *graph = writer->express.file.graph;
    uint32_t *operands;
    for (uint32_t i = 0; i < graph->outputs.count; i++) writer->stored[graph->outputs.at[i].value] = true;
    for (uint32_t id = graph->values.count; id-- > 0;) {
        writer->live[id] = writer->live[id] || writer->stored[id] || graph->values.at[id].name;
        if (!writer->live[id]) continue;
        for (uint32_t i = ir_file_operands(&writer->express.file, id, &operands); i-- > 0;) {
            writer->uses[operands[i]]++;
            writer->live[operands[i]] = true;
        }
    }
}

/* What is read at a glance, and so may be written out at every use. */
static bool is_glance(const Writer *writer, uint32_t id) {
    const Value *value = value_of(writer, id);
    if (value->op == OP_CONST || value->op == OP_SIZE || value->op == OP_IOTA) return true;
    if (value->op != OP_INDEX) return false;
    const Value *base = value_of(writer, value->arg[0]);
    if (!base->name && !is_given(base) && base->op != OP_IOTA && writer->uses[value->arg[0]] < 2) return false;
    uint32_t dim = 0;
    int64_t start;
    for (uint32_t i = 0; i < value->item_count; i++) {
        const Item *item = &value->items[i];
        if (item->kind == ITEM_NEW_AXIS) continue;
        if (item->kind != ITEM_RANGE || !ir_poly_equal(item->stop, base->shape.extent[dim++])) return false;
        if (!ir_poly_is_int(item->start, &start) || start != 0) return false;
    }
    return true;
}

static bool is_node(const Writer *writer, uint32_t id) {
    const Value *value = value_of(writer, id);
    if (!writer->live[id] || is_given(value)) return false;
    if (value->name || writer->stored[id] || writer->express.wanted[id]) return true;
    return writer->uses[id] > 1 && !is_glance(writer, id);
}

/* ---- names ---- */

/* What an output stores is called like the output, where it has no name and that one is free. */
static void choose_names(Writer *writer) {
    GraphFile *file = &writer->express.file;
    const Graph *graph = file->graph;
    bool *inlined = IR_NEW_ARRAY(file->job, bool, graph->values.count);
    for (uint32_t id = 0; id < graph->values.count; id++) {
        const Value *value = &graph->values.at[id];
        inlined[id] = !writer->express.node[id] && !is_given(value);
        file->names[id] = value->op == OP_INPUT    ? graph->inputs.at[value->tensor].name
                          : value->op == OP_SCALAR ? graph->scalars.at[value->tensor].name
                                                   : value->name;
    }
    for (uint32_t i = 0; i < graph->outputs.count; i++) {
        const Tensor *output = &graph->outputs.at[i];
        if (!file->names[output->value] && !ir_file_has(file, output->name)) file->names[output->value] = output->name;
    }
    ir_file_name(file, inlined, 1);
}

/* ---- expressions ---- */

static Pieces named(const char *name, uint32_t id) {
    Piece piece = {name, BIND_ATOM, {.kind = ARG_VALUE, .value = id}};
    return (Pieces){{piece, piece, piece}};
}

/* The operand with the longest text becomes a node; false: none is worth it. */
static bool split(Writer *writer, uint32_t id) {
    Express *express = &writer->express;
    uint32_t *operands, longest = IR_NONE;
    size_t most = LEAST_SPLIT;
    for (uint32_t i = ir_file_operands(&express->file, id, &operands); i-- > 0;) {
        const char *text = express->pieces[operands[i]].form[FORM_BARE].text;
        size_t width = text && !express->node[operands[i]] ? strlen(text) : 0;
        if (is_given(value_of(writer, operands[i])) || is_glance(writer, operands[i]) || width <= most) continue;
        longest = operands[i];
        most = width;
    }
    if (longest == IR_NONE) return false;
    express->wanted[longest] = true;
    express->node[longest] = true;
    express->pieces[longest] = named("t99", longest);
    return true;
}

static size_t width_of(const char *text) { return text ? strlen(text) : 0; }

/* The texts of all values; false: more of them must be nodes. */
static bool express_all(Writer *writer, const char **texts) {
    Express *express = &writer->express;
    const uint32_t count = express->file.graph->values.count;
    bool whole = true;
    for (uint32_t id = 0; id < count; id++) {
        if (!writer->live[id]) continue;
        const char *name = express->file.names[id];
        if (is_given(value_of(writer, id))) {
            express->pieces[id] = named(name, id);
        } else if (express->node[id]) {
            size_t most = IR_FILE_COLUMNS - 4 - width_of(name);
            do texts[id] = ir_express_node(express, id);
            while (width_of(texts[id]) > most && split(writer, id));
            express->pieces[id] = named(name, id);
            whole = whole && texts[id];
        } else {
            do express->pieces[id] = ir_express(express, id);
            while (width_of(express->pieces[id].form[FORM_BARE].text) > MOST_INLINE && split(writer, id));
            if (!express->pieces[id].form[FORM_BARE].text) express->pieces[id] = named("t99", id);
        }
    }
    for (uint32_t id = 0; id < count; id++) whole = whole && (!express->wanted[id] || texts[id]);
    return whole;
}

/* ---- the file ---- */

/* The nodes and the outputs. */
static void put_nodes(const Writer *writer, const char *const *texts) {
    const GraphFile *file = &writer->express.file;
    FileLines lines = {0};
    for (uint32_t id = 0; id < file->graph->values.count; id++) {
        if (!writer->express.node[id]) continue;
        Text line = ir_file_key(file, file->names[id]);
        ir_file_scalar(&line, texts[id], false);
        ir_file_add(file, &lines, &line, file->notes && file->notes->values ? file->notes->values[id] : NULL);
    }
    const char **stored = ir_file_stored(file, &lines);
    ir_file_section(file, "nodes", &lines);
    ir_file_outputs(file, stored);
}

void ir_graph_write(Text *text, const Graph *graph, const GraphNotes *notes) {
    Job *job = text->job;
    const uint32_t count = graph->values.count;
    Writer writer = {.express = {.file = ir_file(text, graph, notes, true)}};
    Express *express = &writer.express;
    express->pieces = IR_NEW_ARRAY(job, Pieces, count);
    express->node = IR_NEW_ARRAY(job, bool, count);
    express->wanted = IR_NEW_ARRAY(job, bool, count);
    writer.uses = IR_NEW_ARRAY(job, uint32_t, count);
    writer.live = IR_NEW_ARRAY(job, bool, count);
    writer.stored = IR_NEW_ARRAY(job, bool, count);
    const char **texts;
    count_uses(&writer);
    do {
        texts = IR_NEW_ARRAY(job, const char *, count);
        for (uint32_t id = 0; id < count; id++) express->node[id] = is_node(&writer, id);
        choose_names(&writer);
    } while (!express_all(&writer, texts));
    ir_file_head(&express->file);
    put_nodes(&writer, texts);
    for (uint32_t id = 0; notes && notes->nodes && id < count; id++)
        notes->nodes[id] = express->node[id] ? express->file.names[id] : NULL;
}
