/* What a random graph file says of memory: dims, inputs, scalars and outputs; and their values at launch. */
#include "tests/support/random_writer.h"

enum { MOST_ELEMENTS = 1 << 15 }; /* of a value for dims that are drawn again: one may have a CTA an element */

static DType pick_dtype(Writer *w, bool truths) {
    if (!(w->flags & RANDOM_ALL_DTYPES) || chance(w, 40)) return (DType)(DTYPE_F32 + below(w, 3));
    return (DType)below(w, truths ? DTYPE_COUNT : DTYPE_BOOL);
}

/* ---- dims ---- */

static int64_t divisor(Writer *w, int64_t value) {
    int64_t most = value < 16 ? value : 16, found = 1 + below(w, (uint32_t)most);
    while (value % found) found--;
    return found;
}

static RandomDim *push_dim(Writer *w, int64_t value, bool any) {
    RandomGraph *graph = &w->graph;
    RandomDim *dim = &graph->dims[graph->dim_count];
    const char *name = ir_format(w->job, "D%u", graph->dim_count++);
    *dim = (RandomDim){.name = name, .value = value, .any = any, .max = -1, .multiple = 1};
    return dim;
}

Extent random_add_any(Writer *w, int64_t value) {
    const char *name = push_dim(w, value, true)->name;
    ir_text_format(&w->dims, "  %s: any\n", name);
    return (Extent){name, value, false};
}

static Extent add_dim(Writer *w, int64_t value, bool fixed) {
    long long number = value;
    if (!fixed && (value <= 0 || !chance(w, 60))) return random_add_any(w, value);
    RandomDim *dim = push_dim(w, value, !fixed);
    if (fixed) {
        ir_text_format(&w->dims, "  %s: %lld\n", dim->name, number);
        return (Extent){dim->name, value, true};
    }
    Text fields = ir_text(w->job);
    uint32_t which = 1 + below(w, 7);
    if (which & 1) ir_text_format(&fields, ", hint: %lld", number);
    if (which & 2) dim->max = value + below(w, 20);
    if (which & 2) ir_text_format(&fields, ", max: %lld", (long long)dim->max);
    if (which & 4) dim->multiple = divisor(w, value);
    if (which & 4) ir_text_format(&fields, ", multiple: %lld", (long long)dim->multiple);
    ir_text_format(&w->dims, "  %s: {%s}\n", dim->name, ir_text_string(&fields) + 2);
    return (Extent){dim->name, value, false};
}

static int64_t choose_extent(Writer *w, int64_t room, bool long_row) {
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 31, 33, 64, 129};
    static const int64_t lengths[] = {768, 1025, 2049, 3000, 4096, 5000, 9999, 16384, 40000, 70000};
    if (long_row) return lengths[below(w, room < 4 ? 6 : sizeof lengths / sizeof lengths[0])];
    int64_t value = sizes[below(w, sizeof sizes / sizeof sizes[0])];
    while (value > room || (w->base_rank > 3 && value > 8)) value = 1 + value / 3;
    return value > room ? 1 : value;
}

void random_add_base(Writer *w) {
    bool long_row = w->flags & RANDOM_LONG_ROWS && chance(w, 20);
    w->most = 2048;
    w->base_rank = 1 + below(w, IR_MAX_RANK);
    if (long_row || chance(w, 50)) w->base_rank = 1 + below(w, 3);
    int64_t product = 1;
    for (uint32_t d = 0; d < w->base_rank; d++) {
        bool last = d + 1 == w->base_rank;
        if (d && !long_row && product * w->base[d - 1].value <= w->most &&
            chance(w, 6)) { /* square: sizes tell nothing */
            w->base[d] = w->base[d - 1];
            if (w->base[d].value) product *= w->base[d].value;
            continue;
        }
        int64_t value = choose_extent(w, (long_row ? 8 : w->most) / product, long_row && last);
        if (chance(w, 2)) value = 0;
        if (value) product *= value;
        w->base[d] = add_dim(w, value, chance(w, 55));
    }
    if (product > w->most) w->most = product;
    w->row_dims = 1 + (w->base_rank > 1 ? below(w, w->base_rank - 1) : 0);
}

const char *random_shape_text(Writer *w, const Node *node) {
    Text text = ir_text(w->job);
    ir_text_put(&text, "[");
    for (uint32_t d = 0; d < node->rank; d++) ir_text_format(&text, "%s%s", d ? ", " : "", node->extent[d].text);
    ir_text_put(&text, "]");
    return ir_text_string(&text);
}

/* ---- strides ---- */

typedef enum Layout { LAYOUT_CONTIGUOUS, LAYOUT_REVERSED, LAYOUT_PADDED, LAYOUT_ZERO, LAYOUT_LAUNCH } Layout;

/* A dim that is the stride of the first dim: as much as the others hold, and more. NULL: the others are no dims. */
static const char *add_stride(Writer *w, const Node *node) {
    RandomGraph *graph = &w->graph;
    RandomDim dim = {.any = true, .max = -1, .multiple = 1, .pad = 1 + below(w, 9), .value = 1};
    for (uint32_t d = 1; d < node->rank; d++) {
        uint32_t k = 0;
        if (is_one(&node->extent[d])) continue;
        while (k < graph->dim_count && strcmp(graph->dims[k].name, node->extent[d].text)) k++;
        if (k == graph->dim_count) return NULL;
        dim.inner[dim.inner_count++] = k;
        dim.value *= node->extent[d].value ? node->extent[d].value : 1;
    }
    if (!dim.inner_count || graph->dim_count == RANDOM_MAX_DIMS) return NULL;
    dim.value += dim.pad;
    dim.name = ir_format(w->job, "L%u", graph->dim_count);
    ir_text_format(&w->dims, "  %s: any\n", dim.name);
    graph->dims[graph->dim_count++] = dim;
    return dim.name;
}

/* ", strides: [...]", or "" where the layout is the usual one or its strides are no numbers. LAYOUT_REVERSED: the first
 * dim is the contiguous one. LAYOUT_ZERO: one dim or more has stride 0. LAYOUT_LAUNCH: the first dim's is a dim. */
static const char *strides_text(Writer *w, const Node *node, Layout layout) {
    if (layout == LAYOUT_CONTIGUOUS || !node->rank) return "";
    const char *stride[IR_MAX_RANK], *step = "1";
    uint32_t zero = layout == LAYOUT_ZERO ? below(w, node->rank) : IR_NONE;
    for (uint32_t i = 0; i < node->rank; i++) {
        uint32_t d = layout == LAYOUT_REVERSED ? i : node->rank - 1 - i;
        const Extent *extent = &node->extent[d];
        bool is_last = i + 1 == node->rank;
        if (d == zero || (layout == LAYOUT_ZERO && !extent->fixed && !is_last && chance(w, 70))) {
            stride[d] = "0";
            continue;
        }
        stride[d] = step;
        bool launch = w->flags & RANDOM_ALL_DTYPES;
        if (!extent->fixed && !is_last && !launch) return ""; /* the next stride would be known at launch only */
        step = !strcmp(step, "1") ? extent->text : ir_format(w->job, "%s*%s", step, extent->text);
        if (layout == LAYOUT_LAUNCH && i + 2 == node->rank) step = add_stride(w, node);
        if (!step) return "";
        if (layout == LAYOUT_PADDED && i == 0 && !is_last) step = ir_format(w->job, "(%s + %u)", step, 1 + below(w, 7));
    }
    Text text = ir_text(w->job);
    ir_text_put(&text, ", strides: [");
    for (uint32_t d = 0; d < node->rank; d++) ir_text_format(&text, "%s%s", d ? ", " : "", stride[d]);
    ir_text_put(&text, "]");
    return ir_text_string(&text);
}

/* ---- inputs and scalars ---- */

void random_add_input(Writer *w, bool full) {
    static const Layout layouts[] = {LAYOUT_CONTIGUOUS, LAYOUT_CONTIGUOUS, LAYOUT_CONTIGUOUS,
                                     LAYOUT_REVERSED,   LAYOUT_PADDED,     LAYOUT_PADDED,
                                     LAYOUT_ZERO,       LAYOUT_LAUNCH,     LAYOUT_LAUNCH};
    const uint32_t count = sizeof layouts / sizeof layouts[0] - (w->flags & RANDOM_ALL_DTYPES ? 0 : 2);
    Node node = {.rank = w->base_rank, .writable = 3};
    memcpy(node.extent, w->base, sizeof node.extent);
    node.whole = true;
    if (!full) {
        uint32_t drop = below(w, w->base_rank);
        if (chance(w, 60)) drop = w->base_rank - (w->row_dims > 2 ? 2 : w->row_dims);
        for (uint32_t d = drop; d < w->base_rank; d++) node.extent[d - drop] = w->base[d];
        node.rank = w->base_rank - drop;
        uint32_t ones = w->row_dims > 1 ? 35 : 15; /* more than one inner axis, which do not merge */
        for (uint32_t d = 0; d < node.rank; d++)
            if (chance(w, ones)) node.extent[d] = (Extent){"1", 1, true};
        node.whole = false;
    }
    node.name = ir_format(w->job, "x%u", w->nodes.count);
    DType dtype = pick_dtype(w, w->nodes.count > 0);
    node.dtype = ir_dtype(dtype)->name;
    node.kind = ir_dtype(dtype)->kind;
    Layout layout = layouts[below(w, count)];
    if (layout == LAYOUT_ZERO) node.writable = 0;
    const char *align = chance(w, 8) ? ", align: 16" : "";
    ir_text_format(&w->inputs, "  %s: {dtype: %s, shape: %s%s%s}\n", node.name, node.dtype, random_shape_text(w, &node),
                   strides_text(w, &node, layout), align);
    *IR_PUSH(w->job, &w->nodes) = node;
}

/* An integer input whose elements pick along dims; of a dim's extent now and then, so that what is picked meets others.
 */
void random_add_index(Writer *w) {
    static const DType dtypes[] = {DTYPE_I64, DTYPE_I32, DTYPE_I64, DTYPE_I8, DTYPE_U8};
    Node node = {.kind = KIND_INT, .rank = chance(w, 80) ? 1 : below(w, 3)};
    int64_t product = 1;
    for (uint32_t d = 0; d < node.rank; d++) {
        node.extent[d] = w->base[below(w, w->base_rank)];
        uint32_t few = 1 + below(w, 5);
        if (chance(w, 40) || product * node.extent[d].value > w->most) /* a long row twice */
            node.extent[d] = (Extent){ir_format(w->job, "%u", few), few, true};
        if (node.extent[d].value) product *= node.extent[d].value;
    }
    node.name = ir_format(w->job, "x%u", w->nodes.count);
    node.dtype = ir_dtype(dtypes[below(w, 5)])->name;
    ir_text_format(&w->inputs, "  %s: {dtype: %s, shape: %s}\n", node.name, node.dtype, random_shape_text(w, &node));
    *IR_PUSH(w->job, &w->indices) = w->nodes.count;
    *IR_PUSH(w->job, &w->nodes) = node;
}

void random_add_element(Writer *w) {
    DType dtype = pick_dtype(w, true);
    Node node = {.kind = ir_dtype(dtype)->kind, .dtype = ir_dtype(dtype)->name};
    node.name = ir_format(w->job, "x%u", w->nodes.count);
    ir_text_format(&w->inputs, "  %s: \"%s[]\"\n", node.name, node.dtype);
    *IR_PUSH(w->job, &w->nodes) = node;
}

void random_add_scalar(Writer *w) {
    static const char *const values[] = {"1", "3", "2", "1e-5", "0.5"}; /* the last two no integers */
    DType dtype = w->flags & RANDOM_ALL_DTYPES ? pick_dtype(w, true) : DTYPE_F32;
    const DTypeRow *row = ir_dtype(dtype);
    if (row->kind == KIND_BOOL) {
        Node node = {.kind = KIND_BOOL, .name = ir_format(w->job, "t%u", w->truth_count++)};
        ir_text_format(&w->scalars, "  %s: {dtype: bool, default: True}\n", node.name);
        *IR_PUSH(w->job, &w->nodes) = node;
        return;
    }
    const char *value = pick_text(w, values, row->kind == KIND_FLOAT ? 5 : 3);
    if (dtype == DTYPE_F32)
        ir_text_format(&w->scalars, "  s%u: %s\n", w->scalar_count++, value);
    else
        ir_text_format(&w->scalars, "  s%u: {dtype: %s, default: %s}\n", w->scalar_count++, row->name, value);
}

/* ---- outputs ---- */

/* What of an input the node may overwrite: "x0", a half of it as "x0[:, 4:8]", or NULL. */
static const char *place_in(Writer *w, Node *input, const Node *node) {
    if (!input->writable || input->rank != node->rank) return NULL;
    uint32_t halved = IR_NONE;
    for (uint32_t d = 0; d < node->rank; d++) {
        if (same_extent(&node->extent[d], &input->extent[d])) continue;
        bool half = input->extent[d].fixed && node->extent[d].fixed && input->extent[d].value > 0 &&
                    input->extent[d].value == 2 * node->extent[d].value;
        if (!half || halved != IR_NONE) return NULL;
        halved = d;
    }
    if (halved == IR_NONE) {
        if (input->writable != 3) return NULL;
        input->writable = 0; /* one writer */
        return input->name;
    }
    if (input->writable != 3 && input->halved != halved) return NULL; /* halves of two dims overlap */
    bool second = input->writable == 2 || (input->writable == 3 && chance(w, 50));
    input->halved = halved;
    input->writable &= second ? 1 : 2;
    long long half = node->extent[halved].value;
    Text text = ir_text(w->job);
    ir_text_format(&text, "\"%s[", input->name);
    for (uint32_t d = 0; d < halved; d++) ir_text_put(&text, ":, ");
    ir_text_format(&text, second ? "%lld:%lld]\"" : ":%lld]\"", half, 2 * half);
    return ir_text_string(&text);
}

/* The same of the slices that nodes are made of: one writer then. */
static const char *place_in_part(Writer *w, const Node *node, const char **dtype) {
    for (uint32_t i = 0; i < w->parts.count; i++) {
        const Part *part = &w->parts.at[i];
        Node *input = &w->nodes.at[part->input];
        bool same = input->writable == 3 && part->shape.rank == node->rank;
        for (uint32_t d = 0; same && d < node->rank; d++) same = same_extent(&part->shape.extent[d], &node->extent[d]);
        if (!same || chance(w, 20)) continue;
        input->writable = 0;
        *dtype = input->dtype;
        return ir_format(w->job, "\"%s\"", part->text);
    }
    return NULL;
}

/* The node in the dtype of sums of its kind, so that an output may add to what it holds. */
static const char *add_summand(Writer *w, const Node *node, DType dtype, uint32_t number_of) {
    bool is_float = ir_dtype(dtype)->kind == KIND_FLOAT;
    const char *name = ir_format(w->job, "a%u", number_of);
    ir_text_format(&w->body, "  %s: cast(%s, %s)\n", name, node->name, is_float ? "f32" : "i64");
    return name;
}

static void add_output(Writer *w, const Node *node, uint32_t number_of) {
    const bool all = w->flags & RANDOM_ALL_DTYPES;
    const DType drawn = pick_dtype(w, true);
    const char *dtype = ir_dtype(drawn)->name, *strides = "";
    const char *name = node->name, *of = "", *place = NULL;
    if (node->name[0] == 'x' || chance(w, 15)) {
        name = ir_format(w->job, "o%u", number_of);
        of = ir_format(w->job, ", of: %s", node->name);
    }
    if (all && drawn != DTYPE_BOOL && chance(w, 25)) {
        name = add_summand(w, node, drawn, number_of);
        of = ", accumulate: true";
    } else if (chance(w, 80))
        place = place_in_part(w, node, &dtype);
    for (uint32_t i = 0; i < w->nodes.count && *name != 'a' && chance(w, 60) && !place; i++) {
        if (w->nodes.at[i].dtype) place = place_in(w, &w->nodes.at[i], node);
        if (place) dtype = w->nodes.at[i].dtype;
    }
    if (place)
        place = ir_format(w->job, ", inplace: %s", place);
    else if (chance(w, 30))
        strides = strides_text(w, node,
                               all && chance(w, 40) ? LAYOUT_LAUNCH
                               : chance(w, 70)      ? LAYOUT_PADDED
                                                    : LAYOUT_REVERSED);
    if (*of || place || *strides)
        ir_text_format(&w->outputs, "  %s: {dtype: %s%s%s%s}\n", name, dtype, place ? place : "", strides, of);
    else
        ir_text_format(&w->outputs, "  %s: %s\n", name, dtype);
}

/* Later nodes rather, and each name once; no scalars. */
void random_add_outputs(Writer *w) {
    uint32_t count = 1 + below(w, 3), made = 0;
    for (uint32_t i = w->nodes.count; i-- > 0 && made < count;) {
        if (i + 1 < w->nodes.count && chance(w, 40)) continue;
        Node node = w->nodes.at[i];
        if (node.stored || node.name[0] == 't' || (node.kind != KIND_FLOAT && !(w->flags & RANDOM_ALL_DTYPES)))
            continue;
        add_output(w, &node, made++);
    }
    Node first = w->nodes.at[0];
    if (!made && !w->outputs.count) add_output(w, &first, 0);
}

/* ---- at launch ---- */

int64_t *random_graph_dims(Job *job, const RandomGraph *random, const Graph *graph) {
    int64_t *dims = IR_NEW_ARRAY(job, int64_t, graph->dims.count + 1);
    for (uint32_t i = 0; i < graph->dims.count; i++) {
        dims[i] = graph->dims.at[i].value;
        for (uint32_t k = 0; k < random->dim_count; k++)
            if (!strcmp(graph->dims.at[i].name, random->dims[k].name)) dims[i] = random->dims[k].value;
    }
    return dims;
}

/* Whether some value has more elements. Dims that are not legal are for others to refuse. */
static bool passes_elements(Job *job, const RandomGraph *random, const Graph *graph, int64_t most) {
    const int64_t *dims = random_graph_dims(job, random, graph);
    bool passed = false;
    for (uint32_t i = 0; i < graph->values.count && !passed; i++) {
        const Shape *shape = &graph->values.at[i].shape;
        int64_t count = 1, extent;
        for (uint32_t d = 0; d < shape->rank && count <= most; d++)
            if (ir_poly_eval(shape->extent[d], dims, graph->dims.count, NULL, 0, &extent) && extent > 0)
                count *= extent;
        passed = count > most;
    }
    return passed;
}

static void set_strides(RandomGraph *graph) {
    for (uint32_t d = 0; d < graph->dim_count; d++) {
        RandomDim *dim = &graph->dims[d];
        for (uint32_t k = 0; k < dim->inner_count; k++) {
            int64_t inner = graph->dims[dim->inner[k]].value;
            dim->value = (k ? dim->value : 1) * (inner ? inner : 1);
        }
        if (dim->inner_count) dim->value += dim->pad;
    }
}

void random_graph_redraw(Job *job, RandomGraph *graph, const Graph *parsed, Random *random) {
    static const int64_t sizes[] = {0, 1, 1, 2, 3, 5, 7, 8, 9, 12, 16, 31, 32, 33, 64, 65, 100, 129, 257, 1031};
    int64_t product = 1;
    for (uint32_t d = 0; d < graph->dim_count; d++)
        if (!graph->dims[d].any && graph->dims[d].value) product *= graph->dims[d].value;
    for (uint32_t d = 0; d < graph->dim_count; d++) {
        RandomDim *dim = &graph->dims[d];
        if (!dim->any || dim->inner_count) continue;
        int64_t value = sizes[random_below(random, sizeof sizes / sizeof sizes[0])];
        if (dim->max >= 0 && value > dim->max) value = dim->max;
        if (random_below(random, 100) < 40) value = dim->value;
        while (value > 1 && product * value > 8192) value /= 2;
        dim->value = value - value % dim->multiple;
        if (dim->value) product *= dim->value;
    }
    for (uint32_t d = graph->dim_count; d-- > 0;) { /* a dim may be several of a value's */
        RandomDim *dim = &graph->dims[d];
        while (dim->any && !dim->inner_count && dim->value > dim->multiple &&
               passes_elements(job, graph, parsed, MOST_ELEMENTS))
            dim->value = dim->value / 2 - dim->value / 2 % dim->multiple;
    }
    set_strides(graph);
}

int64_t tensor_span(Job *job, const Tensor *tensor, const int64_t *dims, uint32_t dim_count) {
    int64_t span = 1;
    for (uint32_t d = 0; d < tensor->shape.rank; d++) {
        int64_t extent, stride;
        IR_REQUIRE(job, ir_poly_eval(tensor->shape.extent[d], dims, dim_count, NULL, 0, &extent));
        IR_REQUIRE(job, ir_poly_eval(tensor->stride[d], dims, dim_count, NULL, 0, &stride));
        if (extent) span += (extent - 1) * stride;
    }
    return span;
}

double random_element(Random *random) {
    uint32_t rare = random_below(random, 100);
    return rare == 0 ? 0 : random_normal(random) * (rare == 1 ? 1000 : 1);
}

int64_t random_integer(Random *random) {
    uint32_t rare = random_below(random, 100);
    if (rare == 0) return (int64_t)random_bits(random);
    return rare < 8 ? (int64_t)random_below(random, 256) - 128 : (int64_t)random_below(random, 11) - 5;
}

void random_fill(Random *random, DType dtype, void *bytes, int64_t count, int64_t limit) {
    for (int64_t i = 0; i < count; i++) {
        char *element = (char *)bytes + (size_t)i * ir_dtype(dtype)->bytes;
        if (ir_dtype(dtype)->kind == KIND_FLOAT)
            ir_store_float(dtype, element, random_element(random));
        else if (limit != INT64_MAX)
            ir_store_int(dtype, element, limit ? (int64_t)random_below(random, (uint32_t)limit) : 0);
        else
            ir_store_int(dtype, element, random_integer(random));
    }
}

int64_t random_index_limit(const Graph *graph, const int64_t *dims, uint32_t input) {
    const DType dtype = graph->inputs.at[input].dtype;
    int64_t limit = INT64_MAX, extent = 0;
    for (uint32_t v = 0; v < graph->values.count; v++) {
        const Value *value = &graph->values.at[v];
        uint32_t dim = 0;
        for (uint32_t i = 0; value->op == OP_INDEX && i < value->item_count; i++) {
            const Item *item = &value->items[i];
            const Value *index = item->kind == ITEM_GATHER ? &graph->values.at[item->index] : NULL;
            if (index && index->op == OP_INPUT && index->tensor == input) {
                const Shape *shape = &graph->values.at[value->arg[0]].shape;
                ir_poly_eval(shape->extent[dim], dims, graph->dims.count, NULL, 0, &extent);
                if (extent < limit) limit = extent;
            }
            dim += item->kind != ITEM_NEW_AXIS;
        }
    }
    if (limit == INT64_MAX) return limit;
    int64_t most = dtype == DTYPE_I8 ? 128 : dtype == DTYPE_U8 ? 256 : INT32_MAX;
    return limit < most ? limit : most;
}
