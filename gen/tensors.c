/* In: the sections inputs, scalars and outputs. Out: the graph's tensors with shapes, strides and alignments, and the
 * values of inputs and scalars. */
#include <math.h>
#include <string.h>

#include "gen/front.h"
#include "ir/verify_map.h"

static Poly folded(Front *front, Poly poly, bool *overflow) {
    return ir_poly_fold(front->job, poly, ir_graph_fixed(front->job, front->graph), front->graph->dims.count, overflow);
}

/* The first name within the expression that nothing has. */
static const Ast *find_unknown(const Front *front, const Ast *ast) {
    if (ast->kind == AST_NAME && !gen_name_find(front, ast->text)) return ast;
    const Ast *found = NULL;
    for (uint32_t i = 0; i < ast->count && !found; i++)
        if (ast->item[i]) found = find_unknown(front, ast->item[i]);
    return found;
}

static Poly size_of(Front *front, const Ast *ast, const char *what) {
    const Ast *unknown = find_unknown(front, ast);
    if (unknown && !*gen_name_hint(front, unknown->text, 1u << SYMBOL_DIM, NULL, 0))
        ir_stop_at(front->job, STATUS_REJECTED, unknown->place, "unknown dim '%s': declare it, as in dims: {%s: any}",
                   unknown->text, unknown->text);
    Arg arg = gen_build(front, NULL, ast);
    return gen_arg_size(front, &arg, ast->place, what);
}

static const Ast *read_list(Front *front, const Doc *doc, const char *what) {
    if (doc->kind == DOC_SCALAR) return gen_read_expression(front->job, doc, what);
    if (doc->kind == DOC_MAP) ir_stop_at(front->job, STATUS_REJECTED, doc->place, "expected %s, found a map", what);
    Ast *list = IR_NEW(front->job, Ast);
    *list = (Ast){.kind = AST_LIST, .place = doc->place, .count = doc->size};
    list->item = IR_NEW_ARRAY(front->job, Ast *, doc->size);
    for (uint32_t i = 0; i < doc->size; i++) list->item[i] = gen_read_expression(front->job, doc->items[i], "a size");
    return list;
}

static uint8_t read_sizes(Front *front, Ast *const *items, uint32_t count, Poly *sizes, Place place, const char *what) {
    if (count > IR_MAX_RANK)
        ir_stop_at(front->job, STATUS_REJECTED, place, "a tensor has at most %d dims, found %u", IR_MAX_RANK, count);
    for (uint32_t i = 0; i < count; i++) sizes[i] = size_of(front, items[i], what);
    return (uint8_t)count;
}

/* `E[M, N]`; has_shape is false for `E`. */
static void read_type_text(Front *front, const Doc *doc, Tensor *tensor, bool *has_shape) {
    const Ast *ast = gen_read_expression(front->job, doc, "a type");
    const Ast *base = ast->kind == AST_INDEX ? ast->item[0] : ast;
    if (base->kind != AST_NAME)
        ir_stop_at(front->job, STATUS_REJECTED, ast->place, "expected a type, as in bf16[M, N]");
    tensor->dtype = gen_find_dtype(front, base->text, base->place);
    tensor->type = gen_find_type(front, base->text);
    *has_shape = ast->kind == AST_INDEX;
    if (*has_shape)
        tensor->shape.rank =
            read_sizes(front, ast->item + 1, ast->count - 1, tensor->shape.extent, ast->place, "an extent");
}

static void read_strides(Front *front, const Doc *doc, Tensor *tensor) {
    const Ast *list = read_list(front, doc, "a list of strides");
    if (list->kind != AST_LIST)
        ir_stop_at(front->job, STATUS_REJECTED, list->place, "strides are a list of sizes, as in [ldx, 1]");
    uint32_t count = read_sizes(front, list->item, list->count, tensor->stride, list->place, "a stride");
    if (count != tensor->shape.rank)
        ir_stop_at(front->job, STATUS_REJECTED, list->place, "expected a stride for each of the %u dims, found %u",
                   tensor->shape.rank, count);
    bool overflow = false;
    Poly span = ir_poly_int(front->job, 0);
    for (uint32_t i = 0; i < count; i++) {
        int64_t stride;
        Poly poly = folded(front, tensor->stride[i], &overflow);
        if (ir_poly_is_int(poly, &stride) && stride < 0)
            ir_stop_at(front->job, STATUS_REJECTED, list->item[i]->place, "a stride is at least 0, found %lld",
                       (long long)stride);
        Poly extent = folded(front, tensor->shape.extent[i], &overflow);
        span = ir_poly_add(front->job, span, ir_poly_mul(front->job, extent, poly, &overflow), &overflow);
    }
    if (overflow) ir_stop_at(front->job, STATUS_REJECTED, list->place, "extents times strides must stay below 2^62");
    tensor->contiguous = false;
}

static void set_contiguous(Front *front, Tensor *tensor) {
    if (!ir_tensor_make_contiguous(front->job, tensor))
        ir_stop_at(front->job, STATUS_REJECTED, tensor->place, "extents and their products must stay below 2^62");
}

static int64_t read_align(Front *front, const Doc *doc) {
    int64_t align;
    if (doc->kind != DOC_SCALAR || !ir_read_int(doc->text, doc->count, &align) || align < 1 || align > 65536 ||
        (align & (align - 1)) != 0)
        ir_stop_at(front->job, STATUS_REJECTED, doc->place, "align is a power of two, in bytes, up to 65536");
    return align;
}

/* What inputs and outputs share: dtype, shape, strides, align. */
static void read_tensor(Front *front, const Doc *item, Tensor *tensor, bool *has_shape) {
    *has_shape = false;
    if (item->kind != DOC_MAP) {
        read_type_text(front, item, tensor, has_shape);
        return;
    }
    const Doc *dtype = gen_doc_find(item, "dtype"), *shape = gen_doc_find(item, "shape");
    const Doc *align = gen_doc_find(item, "align");
    if (!dtype) ir_stop_at(front->job, STATUS_REJECTED, tensor->place, "'%s' has no dtype", tensor->name);
    if (dtype->kind != DOC_SCALAR) ir_stop_at(front->job, STATUS_REJECTED, dtype->place, "expected a dtype");
    tensor->dtype = gen_find_dtype(front, dtype->text, dtype->place);
    tensor->type = gen_find_type(front, dtype->text);
    if (shape) {
        const Ast *list = read_list(front, shape, "a shape");
        if (list->kind != AST_LIST)
            ir_stop_at(front->job, STATUS_REJECTED, list->place, "a shape is a list of sizes, as in [M, N]");
        tensor->shape.rank = read_sizes(front, list->item, list->count, tensor->shape.extent, list->place, "an extent");
        *has_shape = true;
    }
    if (align) tensor->align = read_align(front, align);
}

static void read_input(Front *front, const Doc *key, const Doc *item) {
    static const char *const fields[] = {"dtype", "shape", "strides", "align"};
    bool has_shape;
    Tensor tensor = {.name = key->text, .place = key->place, .inplace = IR_NONE, .value = IR_NONE};
    if (item->kind == DOC_MAP) gen_check_fields(front, item, fields, 4, "field of an input");
    gen_name_add(front, SYMBOL_INPUT, front->graph->inputs.count, key, "an input's name");
    *IR_PUSH(front->job, &front->graph->inputs) = tensor;
    uint32_t index = front->graph->inputs.count - 1;
    uint32_t id = ir_graph_add(front->job, front->graph, OP_INPUT, DTYPE_F32, key->place);
    front->graph->values.at[id].tensor = index;
    front->graph->values.at[id].name = key->text;
    read_tensor(front, item, &tensor, &has_shape);
    if (!has_shape)
        ir_stop_at(front->job, STATUS_REJECTED, item->place, "'%s' needs its dims: %s[M, N], or %s[] for one element",
                   key->text, ir_dtype(tensor.dtype)->name, ir_dtype(tensor.dtype)->name);
    ir_graph_check_shape(front->job, front->graph, &tensor.shape, item->place);
    set_contiguous(front, &tensor);
    const Doc *strides = item->kind == DOC_MAP ? gen_doc_find(item, "strides") : NULL;
    if (strides) read_strides(front, strides, &tensor);
    front->graph->inputs.at[index] = tensor;
    front->graph->values.at[id].dtype = tensor.dtype;
    front->graph->values.at[id].shape = tensor.shape;
}

void gen_read_inputs(Front *front, const Doc *section) { gen_read_entries(front, section, "inputs", read_input); }

static void read_default(Front *front, const Doc *doc, Tensor *tensor) {
    double number = 0;
    int64_t integer = 0;
    bool is_integer = false;
    Kind kind = ir_dtype(tensor->dtype)->kind;
    if (doc->kind != DOC_SCALAR) ir_stop_at(front->job, STATUS_REJECTED, doc->place, "expected a number");
    const char *text = doc->text, *bare = text + (*text == '-');
    bool infinite = strcmp(bare, "inf") == 0, nan = strcmp(text, "nan") == 0;
    bool truth = kind == KIND_BOOL && (strcmp(text, "True") == 0 || strcmp(text, "False") == 0);
    bool read = gen_read_number(front->job, text, doc->count, &number, &integer, &is_integer);
    if (kind == KIND_FLOAT && (infinite || nan)) {
        number = nan ? (double)NAN : *text == '-' ? -HUGE_VAL : HUGE_VAL;
        read = true;
    }
    if (truth) integer = *text == 'T';
    if (kind == KIND_INT) read = read && is_integer && ir_wrap_int(tensor->dtype, integer) == integer;
    if (kind == KIND_BOOL ? !truth : !read)
        ir_stop_at(front->job, STATUS_REJECTED, doc->place,
                   "'%.40s' is no default for a scalar of %s: expected %s, or {dtype: f32, default: 0.5}", text,
                   ir_dtype(tensor->dtype)->name,
                   kind == KIND_BOOL  ? "True or False"
                   : kind == KIND_INT ? "a whole number that it can hold"
                                      : "a number, inf or nan");
    tensor->has_default = true;
    if (kind == KIND_FLOAT)
        tensor->default_float = ir_round(tensor->dtype, number);
    else
        tensor->default_int = integer;
}

static void read_scalar(Front *front, const Doc *key, const Doc *item) {
    static const char *const fields[] = {"dtype", "default"};
    Tensor tensor = {.name = key->text,
                     .place = key->place,
                     .inplace = IR_NONE,
                     .value = IR_NONE,
                     .dtype = DTYPE_F32,
                     .contiguous = true};
    gen_name_add(front, SYMBOL_SCALAR, front->graph->scalars.count, key, "a scalar's name");
    *IR_PUSH(front->job, &front->graph->scalars) = tensor;
    uint32_t index = front->graph->scalars.count - 1;
    uint32_t id = ir_graph_add(front->job, front->graph, OP_SCALAR, DTYPE_F32, key->place);
    front->graph->values.at[id].tensor = index;
    front->graph->values.at[id].name = key->text;
    if (item->kind == DOC_MAP) {
        gen_check_fields(front, item, fields, 2, "field of a scalar");
        const Doc *dtype = gen_doc_find(item, "dtype"), *value = gen_doc_find(item, "default");
        if (dtype && dtype->kind != DOC_SCALAR)
            ir_stop_at(front->job, STATUS_REJECTED, dtype->place, "expected a dtype");
        if (dtype) tensor.dtype = gen_find_dtype(front, dtype->text, dtype->place);
        if (dtype) tensor.type = gen_find_type(front, dtype->text);
        if (value) read_default(front, value, &tensor);
    } else {
        read_default(front, item, &tensor);
    }
    front->graph->scalars.at[index] = tensor;
    front->graph->values.at[id].dtype = tensor.dtype;
}

void gen_read_scalars(Front *front, const Doc *section) { gen_read_entries(front, section, "scalars", read_scalar); }

/* ---- outputs ---- */

static const char *shape_text(Front *front, DType dtype, const Shape *shape) {
    Text text = ir_text(front->job);
    ir_print_type(&text, front->graph, dtype, shape);
    return ir_text_string(&text);
}

static bool same_shape(const Shape *a, const Shape *b) {
    bool same = a->rank == b->rank;
    for (uint32_t i = 0; same && i < a->rank; i++) same = ir_poly_equal(a->extent[i], b->extent[i]);
    return same;
}

static _Noreturn void refuse_stored(Front *front, const Doc *from, const char *near, bool is_key) {
    ir_stop_at(front->job, STATUS_REJECTED, from->place, "there is no node '%.64s'%s", from->text,
               *near || !is_key ? near : "; an output of another name than its node says 'of: NODE'");
}

/* The value that the output stores; IR_NONE where its node is broken. */
static uint32_t find_stored(Front *front, const Doc *key, const Doc *of) {
    if (of && of->kind != DOC_SCALAR) ir_stop_at(front->job, STATUS_REJECTED, of->place, "expected a node's name");
    const Doc *from = of ? of : key;
    Symbol *symbol = gen_name_find(front, from->text);
    uint32_t kinds = 1u << SYMBOL_NODE | (of ? 1u << SYMBOL_INPUT : 0);
    if (!symbol || (symbol->kind != SYMBOL_NODE && symbol->kind != SYMBOL_INPUT))
        refuse_stored(front, from, gen_name_hint(front, from->text, kinds, NULL, 0), !of);
    if (symbol->kind == SYMBOL_INPUT && !of)
        ir_stop_at(front->job, STATUS_REJECTED, key->place,
                   "'%s' is an input: an output that copies it needs a name of its own and 'of: %s'", key->text,
                   key->text);
    const Symbol *taken = gen_name_find(front, key->text);
    if (taken && taken != symbol && taken->kind != SYMBOL_NODE) {
        ir_error(front->job, key->place,
                 "the name '%s' is taken: an output that stores another node under it needs one of its own", key->text);
        ir_note(front->job, taken->place, "it is here");
        ir_stop(front->job, STATUS_REJECTED);
    }
    symbol->used = true;
    return symbol->kind == SYMBOL_INPUT ? symbol->index : front->nodes.at[symbol->index].value;
}

static void read_inplace(Front *front, const Doc *doc, Tensor *tensor) {
    const Ast *ast = gen_read_expression(front->job, doc, "an input");
    const Ast *base = ast->kind == AST_INDEX ? ast->item[0] : ast;
    const Symbol *symbol = base->kind == AST_NAME ? gen_name_find(front, base->text) : NULL;
    if (!symbol || symbol->kind != SYMBOL_INPUT)
        ir_stop_at(front->job, STATUS_REJECTED, ast->place,
                   "inplace names an input or a slice of one, as in x or x[:, :N]%s",
                   base->kind == AST_NAME ? gen_name_hint(front, base->text, 1u << SYMBOL_INPUT, NULL, 0) : "");
    const Tensor *input = &front->graph->inputs.at[symbol->index];
    tensor->inplace = symbol->index;
    if (ast->kind != AST_INDEX) return;
    uint32_t count;
    tensor->inplace_items = gen_build_items(front, NULL, ast, &input->shape, &count);
    tensor->inplace_item_count = (uint8_t)count;
    for (uint32_t i = 0; i < count; i++)
        if (tensor->inplace_items[i].kind != ITEM_RANGE && tensor->inplace_items[i].kind != ITEM_AT)
            ir_stop_at(front->job, STATUS_REJECTED, ast->place, "a slice for inplace has ranges and indices only");
}

/* Shape and strides of what an output may overwrite. The slice is typed as any index is, in a graph thrown away. */
static void place_inplace(Front *front, Tensor *tensor, Place place) {
    const Tensor *input = &front->graph->inputs.at[tensor->inplace];
    Graph scratch = *front->graph;
    scratch.values.at = NULL;
    scratch.values.count = scratch.values.capacity = 0;
    uint32_t id = ir_graph_add(front->job, &scratch, OP_INPUT, input->dtype, input->place);
    scratch.values.at[id].shape = input->shape;
    if (tensor->inplace_items)
        id = ir_graph_index(front->job, &scratch, id, tensor->inplace_items, tensor->inplace_item_count, place);
    const Shape *shape = &scratch.values.at[id].shape;
    if (input->dtype != tensor->dtype || !same_shape(shape, &tensor->shape)) {
        ir_error(front->job, place, "an output in place of '%s' has its dtype and shape, %s, found %s", input->name,
                 shape_text(front, input->dtype, shape), shape_text(front, tensor->dtype, &tensor->shape));
        ir_note(front->job, input->place, "the input");
        ir_stop(front->job, STATUS_REJECTED);
    }
    Poly stride[IR_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t i = 0; i < input->shape.rank; i++)
        if (!tensor->inplace_items || tensor->inplace_items[i].kind == ITEM_RANGE) stride[rank++] = input->stride[i];
    bool same = true;
    for (uint32_t i = 0; i < rank; i++) same = same && ir_poly_equal(stride[i], tensor->stride[i]);
    if (!tensor->contiguous && !same)
        ir_stop_at(front->job, STATUS_REJECTED, place, "an output in place of '%s' has its strides", input->name);
    tensor->contiguous = tensor->contiguous && same;
    memcpy(tensor->stride, stride, rank * sizeof *stride);
}

/* The dim whose elements meet others whatever the launch says, or IR_NONE. */
static uint32_t meeting_dim(Front *front, const Tensor *tensor) {
    Leg legs[IR_MAX_RANK];
    const Graph *graph = front->graph;
    for (uint32_t i = 0; i < tensor->shape.rank; i++) legs[i] = (Leg){tensor->stride[i], tensor->shape.extent[i]};
    return ir_legs_meet(front->job, graph->dims.at, graph->dims.count, legs, tensor->shape.rank, 1);
}

/* An element of an output is stored once. Which strides are 0 is static: such a dim is known to have one element. */
static void check_injective(Front *front, const Tensor *tensor, Place place) {
    static const char *const rule = "each element of an output needs a place of its own";
    bool overflow = false;
    uint32_t zero = IR_NONE;
    for (uint32_t i = 0; i < tensor->shape.rank; i++) {
        int64_t extent, stride;
        bool known = ir_poly_is_int(folded(front, tensor->shape.extent[i], &overflow), &extent);
        if (known && extent == 0) return; /* no elements, so none meet */
        if (zero != IR_NONE || (known && extent == 1)) continue;
        if (ir_poly_is_int(folded(front, tensor->stride[i], &overflow), &stride) && stride == 0) zero = i;
    }
    if (zero != IR_NONE)
        ir_stop_at(front->job, STATUS_REJECTED, place, "%s: a stride of 0 makes elements of dim %u meet", rule, zero);
    uint32_t dim = meeting_dim(front, tensor);
    if (dim != IR_NONE)
        ir_stop_at(front->job, STATUS_REJECTED, place, "%s: these strides make elements of dim %u meet others", rule,
                   dim);
}

/* A store to a part of an input must change no element of the rest. */
static void check_whole(Front *front, const Tensor *tensor, Place place) {
    const Tensor *input = &front->graph->inputs.at[tensor->inplace];
    uint32_t dim = tensor->inplace_items ? meeting_dim(front, input) : IR_NONE;
    if (dim == IR_NONE) return;
    ir_error(front->job, place,
             "'%s' cannot be in place of a part of '%s', whose strides make elements of dim %u meet others: drop the "
             "inplace",
             tensor->name, input->name, dim);
    ir_note(front->job, input->place, "the input");
    ir_stop(front->job, STATUS_REJECTED);
}

/* What is held and what is added are both floats or both integers, and are no input's memory: whether an input in place
 * is what the output holds would be the launch's choice. */
static bool read_accumulate(Front *front, const Doc *doc, const Tensor *tensor) {
    const Value *value = &front->graph->values.at[tensor->value];
    bool truth = doc->kind == DOC_SCALAR && (strcmp(doc->text, "true") == 0 || strcmp(doc->text, "True") == 0);
    bool lie = doc->kind == DOC_SCALAR && (strcmp(doc->text, "false") == 0 || strcmp(doc->text, "False") == 0);
    if (!truth && !lie) ir_stop_at(front->job, STATUS_REJECTED, doc->place, "accumulate is true or false");
    if (lie) return false;
    if (ir_dtype(tensor->dtype)->kind == KIND_BOOL)
        ir_stop_at(front->job, STATUS_REJECTED, doc->place,
                   "bools do not accumulate: give the output a dtype of numbers");
    if (tensor->inplace != IR_NONE)
        ir_stop_at(front->job, STATUS_REJECTED, doc->place,
                   "an output accumulates or is in place: to add to '%s', add it in the node",
                   front->graph->inputs.at[tensor->inplace].name);
    bool is_float = ir_dtype(tensor->dtype)->kind == KIND_FLOAT;
    if (is_float == (ir_dtype(value->dtype)->kind == KIND_FLOAT)) return true;
    ir_error(front->job, doc->place, "%s adds to %s: cast the node to %s first", ir_dtype(value->dtype)->name,
             ir_dtype(tensor->dtype)->name, ir_dtype(ir_compute_dtype(tensor->dtype))->name);
    ir_note(front->job, value->place, "the node");
    ir_stop(front->job, STATUS_REJECTED);
}

static void read_output(Front *front, const Doc *key, const Doc *item) {
    static const char *const fields[] = {"dtype", "shape", "strides", "align", "of", "inplace", "accumulate"};
    bool has_shape, map = item->kind == DOC_MAP;
    Tensor tensor = {.name = key->text, .place = key->place, .inplace = IR_NONE};
    if (map) gen_check_fields(front, item, fields, 7, "field of an output");
    gen_check_name(front->job, key->text, key->count, key->place, "an output's name");
    tensor.value = find_stored(front, key, map ? gen_doc_find(item, "of") : NULL);
    read_tensor(front, item, &tensor, &has_shape);
    if (tensor.value == IR_NONE) return;
    const Value *value = &front->graph->values.at[tensor.value];
    if (has_shape && !same_shape(&tensor.shape, &value->shape)) {
        ir_error(front->job, item->place, "the output is declared %s, its node is %s",
                 shape_text(front, tensor.dtype, &tensor.shape), shape_text(front, value->dtype, &value->shape));
        ir_note(front->job, value->place, "the node");
        ir_stop(front->job, STATUS_REJECTED);
    }
    tensor.shape = value->shape;
    set_contiguous(front, &tensor);
    const Doc *strides = map ? gen_doc_find(item, "strides") : NULL;
    const Doc *inplace = map ? gen_doc_find(item, "inplace") : NULL;
    const Doc *accumulate = map ? gen_doc_find(item, "accumulate") : NULL;
    if (strides) read_strides(front, strides, &tensor);
    if (inplace) {
        read_inplace(front, inplace, &tensor);
        place_inplace(front, &tensor, inplace->place);
    }
    check_injective(front, &tensor, strides ? strides->place : key->place);
    if (inplace) check_whole(front, &tensor, inplace->place);
    if (accumulate) tensor.accumulate = read_accumulate(front, accumulate, &tensor);
    *IR_PUSH(front->job, &front->graph->outputs) = tensor;
}

void gen_read_outputs(Front *front, const Doc *section) { gen_read_entries(front, section, "outputs", read_output); }
