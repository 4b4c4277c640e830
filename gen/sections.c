/* In: the document. Out: the graph's name, types, dims and functions, the nodes' expressions (not built yet). Inputs,
 * scalars and outputs are tensors.c's. */
#include <string.h>

#include "gen/front.h"
#include "gen/language.h"

void gen_check_fields(Front *front, const Doc *map, const char *const *keys, uint32_t count, const char *what) {
    for (uint32_t i = 0; i < map->size; i++) {
        bool known = false;
        for (uint32_t k = 0; k < count; k++) known = known || strcmp(map->keys[i]->text, keys[k]) == 0;
        if (known) continue;
        Text text = ir_text(front->job);
        for (uint32_t k = 0; k < count; k++) ir_text_format(&text, "%s%s", k ? ", " : "", keys[k]);
        const char *near = ir_near_miss(front->job, map->keys[i]->text, keys, count);
        ir_error(front->job, map->keys[i]->place, "unknown %s '%.64s'%s%s%s (there are %s)", what, map->keys[i]->text,
                 near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", ir_text_string(&text));
    }
}

/* Names of dtypes elsewhere that are nearer to another one by their letters. */
static const char *const elsewhere[][2] = {
    {"float", "f32"},  {"double", "f64"}, {"half", "f16"},      {"long", "i64"}, {"int", "i32"},
    {"char", "i8"},    {"byte", "u8"},    {"fp64", "f64"},      {"fp32", "f32"}, {"fp16", "f16"},
    {"fp8", "f8e4m3"}, {"f8", "f8e4m3"},  {"float8", "f8e4m3"},
};

const char *gen_dtype_hint(const Front *front, const char *name, bool types) {
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (strcmp(elsewhere[i][0], name) == 0) return ir_format(front->job, "; did you mean '%s'?", elsewhere[i][1]);
    IR_LIST(const char *) names = {0};
    for (uint32_t i = 0; i < DTYPE_COUNT; i++) {
        *IR_PUSH(front->job, &names) = ir_dtype((DType)i)->name;
        *IR_PUSH(front->job, &names) = ir_dtype((DType)i)->torch_name;
    }
    return gen_name_hint(front, name, types ? 1u << SYMBOL_TYPE : 0, names.at, names.count);
}

const char *gen_find_type(const Front *front, const char *name) {
    for (uint32_t i = 0; i < front->types.count; i++)
        if (strcmp(front->types.at[i].name, name) == 0) return front->types.at[i].name;
    return NULL;
}

DType gen_find_dtype(Front *front, const char *name, Place place) {
    DType dtype;
    for (uint32_t i = 0; i < front->types.count; i++)
        if (strcmp(front->types.at[i].name, name) == 0) return front->types.at[i].dtype;
    if (ir_dtype_find(name, strlen(name), &dtype)) return dtype;
    ir_stop_at(front->job, STATUS_REJECTED, place, "unknown dtype '%.64s'%s", name, gen_dtype_hint(front, name, true));
}

static const char *scalar_text(Front *front, const Doc *doc, const char *what) {
    if (doc->kind != DOC_SCALAR)
        ir_stop_at(front->job, STATUS_REJECTED, doc->place, "expected %s, found a %s", what,
                   doc->kind == DOC_MAP ? "map" : "list");
    return doc->text;
}

/* One entry of a section, read so that an error in it leaves the others to be read. */
typedef struct Entry {
    Front *front;
    const Doc *key, *item;
    void (*read)(Front *front, const Doc *key, const Doc *item);
} Entry;

static void read_entry(Job *job, void *state) {
    (void)job;
    Entry *entry = state;
    entry->read(entry->front, entry->key, entry->item);
}

void gen_read_entries(Front *front, const Doc *section, const char *name,
                      void (*read)(Front *front, const Doc *key, const Doc *item)) {
    if (!section) return;
    if (section->kind != DOC_MAP)
        ir_stop_at(front->job, STATUS_REJECTED, section->place,
                   "%s: expected entries 'name: value', indented or within { }, found a %s%s", name,
                   section->kind == DOC_LIST ? "list" : "text",
                   section->kind == DOC_SCALAR && strchr(section->text, ':') ? ": a space stands behind the colon"
                                                                             : "");
    for (uint32_t i = 0; i < section->size; i++) {
        Entry entry = {.front = front, .key = section->keys[i], .item = section->items[i], .read = read};
        front->depth = 0;
        if (!section->keys[i]->repeated) gen_attempt(front->job, read_entry, &entry);
    }
}

static void read_type(Front *front, const Doc *key, const Doc *item) {
    DType dtype;
    if (ir_dtype_find(key->text, key->count, &dtype))
        ir_stop_at(front->job, STATUS_REJECTED, key->place, "'%s' is a dtype already: give the type a name of its own",
                   key->text);
    const char *text = scalar_text(front, item, "a dtype");
    dtype = gen_find_dtype(front, text, item->place);
    if (!ir_dtype_find(text, item->count, &dtype))
        ir_stop_at(front->job, STATUS_REJECTED, item->place, "'%s' is a type: expected a dtype", text);
    gen_name_add(front, SYMBOL_TYPE, front->types.count, key, "a type's name");
    *IR_PUSH(front->job, &front->types) = (TypeName){key->text, dtype};
}

/* also: what else is taken there, between what and "a whole number". */
static int64_t read_extent(Front *front, const Doc *doc, const char *what, const char *also, int64_t least) {
    int64_t value;
    const char *text = scalar_text(front, doc, what);
    if (!ir_read_int(text, doc->count, &value) || value < least || value >= IR_MAX_EXTENT)
        ir_stop_at(front->job, STATUS_REJECTED, doc->place,
                   "expected %s%s a whole number from %lld up to 2^62 - 1, found '%.40s'", what, also, (long long)least,
                   text);
    return value;
}

static void read_dim(Front *front, const Doc *key, const Doc *item) {
    static const char *const fields[] = {"hint", "max", "multiple"};
    Dim dim = {.name = key->text, .value = -1, .hint = -1, .max = -1, .multiple = 1, .place = key->place};
    if (item->kind == DOC_MAP) {
        gen_check_fields(front, item, fields, 3, "field of a dim");
        const Doc *hint = gen_doc_find(item, "hint"), *max = gen_doc_find(item, "max");
        const Doc *multiple = gen_doc_find(item, "multiple");
        if (hint) dim.hint = read_extent(front, hint, "a hint", ",", 0);
        if (max) dim.max = read_extent(front, max, "a max", ",", 0);
        if (multiple) dim.multiple = read_extent(front, multiple, "a multiple", ",", 1);
        if (hint && dim.max >= 0 && dim.hint > dim.max)
            gen_warn(front, hint->place, "the hint of '%s' is above its max of %lld", dim.name, (long long)dim.max);
        if (hint && dim.hint % dim.multiple)
            gen_warn(front, hint->place,
                     "the hint of '%s' is no multiple of %lld, as it will be at launch: %lld is taken", dim.name,
                     (long long)dim.multiple, (long long)ir_dim_hint(&dim));
    } else if (strcmp(scalar_text(front, item, "a dim"), "any") != 0) {
        dim.value = read_extent(front, item, "a dim", ": any, {hint: n, max: n, multiple: n} or", 0);
    }
    if (front->graph->dims.count >= IR_POLY_PART)
        ir_stop_at(front->job, STATUS_REJECTED, key->place, "a graph has at most %u dims", IR_POLY_PART);
    gen_name_add(front, SYMBOL_DIM, front->graph->dims.count, key, "a dim's name");
    *IR_PUSH(front->job, &front->graph->dims) = dim;
}

static void read_function(Front *front, const Doc *key, const Doc *item) {
    const Ast *head = gen_read_expression(front->job, key, "NAME(parameters)");
    if (head->kind != AST_CALL)
        ir_stop_at(front->job, STATUS_REJECTED, key->place, "expected NAME(parameters): expression");
    if (gen_is_operation(head->text))
        ir_stop_at(front->job, STATUS_REJECTED, key->place, "'%s' is an operation: give the function another name",
                   head->text);
    Function function = gen_make_function(front, head, gen_read_expression(front->job, item, "an expression"), IR_NONE);
    gen_name_put(front, SYMBOL_FUNCTION, front->functions.count, function.name, key->place);
    *IR_PUSH(front->job, &front->functions) = function;
}

static void read_node(Front *front, const Doc *key, const Doc *item) {
    gen_name_add(front, SYMBOL_NODE, front->nodes.count, key, "a node's name");
    Node *node = IR_PUSH(front->job, &front->nodes);
    *node = (Node){.name = key->text, .place = key->place, .doc = item, .state = NODE_BROKEN, .value = IR_NONE};
    Ast *ast = gen_read_expression(front->job, item, "an expression");
    node->ast = ast;
    node->state = NODE_NEW;
}

void gen_read_sections(Front *front, const Doc *root) {
    static const char *const names[] = {"graph", "types", "dims", "inputs", "scalars", "functions", "nodes", "outputs"};
    if (root->kind != DOC_MAP)
        ir_stop_at(front->job, STATUS_REJECTED, root->place,
                   "a graph file is a mapping: graph, dims, inputs, nodes, "
                   "outputs");
    gen_check_fields(front, root, names, 8, "section");
    const Doc *name = gen_doc_find(root, "graph");
    if (!name) ir_stop_at(front->job, STATUS_REJECTED, root->place, "the graph has no name: add 'graph: NAME'");
    scalar_text(front, name, "the graph's name");
    gen_check_name(front->job, name->text, name->count, name->place, "a graph's name");
    front->graph->name = name->text;
    gen_read_entries(front, gen_doc_find(root, "types"), "types", read_type);
    gen_read_entries(front, gen_doc_find(root, "dims"), "dims", read_dim);
    ir_stop_on_errors(front->job);
    const Doc *scalars = gen_doc_find(root, "scalars");
    gen_apply_settings(front, scalars);
    gen_read_inputs(front, gen_doc_find(root, "inputs"));
    gen_read_scalars(front, scalars);
    gen_read_entries(front, gen_doc_find(root, "functions"), "functions", read_function);
    ir_stop_on_errors(front->job); /* a tensor that is wrong would make its readers wrong */
    gen_read_entries(front, gen_doc_find(root, "nodes"), "nodes", read_node);
}
