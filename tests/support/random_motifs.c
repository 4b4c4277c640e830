/* Parts of a random graph that seldom meet by chance: a few nodes over its first input, and their outputs. */
#include "tests/support/random_writer.h"

/* The node picked backwards along a dim, "v3[:, D1 - 1 - arange(D1)]". */
static const char *backwards(Writer *w, const Node *node, uint32_t dim) {
    const char *extent = node->extent[dim].text;
    Text text = ir_text(w->job);
    ir_text_format(&text, "%s[", node->name);
    for (uint32_t d = 0; d < dim; d++) ir_text_put(&text, ":, ");
    ir_text_format(&text, "%s - 1 - arange(%s)]", extent, extent);
    return ir_text_string(&text);
}

static const char *add_stored(Writer *w, const Node *like, const char *expression, const char *place) {
    Node *node = random_add_node(w, like, KIND_FLOAT, expression);
    node->stored = true;
    ir_text_format(&w->outputs, "  %s: {dtype: %s%s}\n", node->name, *place ? w->nodes.at[0].dtype : "f32", place);
    return node->name;
}

static bool has_elements(const Node *node) {
    for (uint32_t d = 0; d < node->rank; d++)
        if (!node->extent[d].value) return false;
    return true;
}

/* One reads an input backwards, the other overwrites it: two kernels, in this order. */
static void add_overwritten(Writer *w) {
    const Node x = w->nodes.at[0];
    if (x.writable != 3 || !has_elements(&x)) return;
    w->nodes.at[0].writable = 0;
    const Node size = *random_add_node(w, &x, KIND_FLOAT, ir_format(w->job, "abs(%s)", x.name));
    add_stored(w, &x, ir_format(w->job, "%s + %s", backwards(w, &size, below(w, x.rank)), size.name), "");
    add_stored(w, &x, ir_format(w->job, "%s * 2", x.name), ir_format(w->job, ", inplace: %s", x.name));
}

/* A row's sum is used by another row. */
static void add_other_row(Writer *w) {
    const Node x = w->nodes.at[0];
    if (x.rank < 2 || !has_elements(&x)) return;
    Node sums = x;
    sums.whole = false;
    sums.extent[x.rank - 1] = (Extent){"1", 1, true};
    const char *sum = ir_format(w->job, "sum(%s, dim=-1, keepdim=True)", x.name);
    const Node row = *random_add_node(w, &sums, KIND_FLOAT, sum);
    add_stored(w, &x, ir_format(w->job, "%s * %s", x.name, backwards(w, &row, x.rank - 2)), "");
}

/* One more input of this shape, its dims in memory in the same order or in the opposite one. */
static const char *add_operand(Writer *w, const Node *like, bool opposite) {
    const char *name = ir_format(w->job, "x%u", w->nodes.count), *step = "1";
    Text strides = ir_text(w->job);
    for (uint32_t d = 0; d < like->rank; d++) {
        ir_text_format(&strides, "%s%s", d ? ", " : "", step);
        step = ir_format(w->job, "%s*%s", step, like->extent[d].text);
    }
    const char *field = opposite ? ir_format(w->job, ", strides: [%s]", ir_text_string(&strides)) : "";
    Node *operand = IR_PUSH(w->job, &w->nodes);
    *operand = *like;
    operand->name = name;
    operand->dtype = "f32";
    operand->writable = 0;
    ir_text_format(&w->inputs, "  %s: {dtype: f32, shape: %s%s}\n", name, random_shape_text(w, operand), field);
    return name;
}

/* Two sums over the first dim that share a read and run through memory in different ways. */
static void add_two_classes(Writer *w) {
    const Node x = w->nodes.at[0];
    if (x.rank < 2) return;
    Node kept = {.rank = x.rank - 1};
    memcpy(kept.extent, x.extent + 1, kept.rank * sizeof *kept.extent);
    const char *turned = add_operand(w, &x, true);
    add_stored(w, &kept, ir_format(w->job, "sum(%s, dim=0)", x.name), "");
    add_stored(w, &kept, ir_format(w->job, "sum(%s * %s, dim=0)", x.name, turned), "");
}

/* Dims on both sides of one that stays. */
static void add_middle_kept(Writer *w) {
    const Node x = w->nodes.at[0];
    if (x.rank < 3) return;
    Node kept = {.rank = x.rank - 2};
    memcpy(kept.extent, x.extent + 1, kept.rank * sizeof *kept.extent);
    const char *form = chance(w, 50) ? "sum(%s, dim=[0, -1])" : "mean(abs(%s), dim=[0, -1])";
    const char *at = strchr(form, '%');
    add_stored(w, &kept, ir_format(w->job, "%.*s%s%s", (int)(at - form), form, x.name, at + 2), "");
}

/* A sum over the first dim in place of what is added to it. That dim is the graph's, or one of its own: without a hint
 * there are parts, which few other graphs have. */
static void add_sum_in_place(Writer *w) {
    const Node x = w->nodes.at[0];
    if (x.rank < 2) return;
    Node kept = {.rank = x.rank - 1};
    memcpy(kept.extent, x.extent + 1, kept.rank * sizeof *kept.extent);
    const char *rows = x.name;
    if (chance(w, 60) && w->graph.dim_count < RANDOM_MAX_DIMS) {
        Node own = x;
        own.extent[0] = random_add_any(w, 1 + below(w, 40));
        rows = add_operand(w, &own, false);
    }
    const char *held = ir_format(w->job, "x%u", w->nodes.count);
    Node *input = IR_PUSH(w->job, &w->nodes);
    *input = kept;
    input->name = held;
    input->dtype = "f32";
    ir_text_format(&w->inputs, "  %s: {dtype: f32, shape: %s}\n", held, random_shape_text(w, &kept));
    Node *sum = random_add_node(w, &kept, KIND_FLOAT, ir_format(w->job, "sum(%s, dim=0) + %s", rows, held));
    sum->stored = true;
    ir_text_format(&w->outputs, "  %s: {dtype: f32, inplace: %s}\n", sum->name, held);
}

/* Two reductions of which the second needs the first; in the last form a longer chain stands beside them. */
static const char *pair_text(Writer *w, const char *x) {
    switch (below(w, 10)) { /* the last form is seldom left whole */
    case 0: return ir_format(w->job, "softmax(%s, dim=-1)", x);
    case 1: return ir_format(w->job, "log_softmax(where(%s > 1, %s, -inf), dim=-1)", x, x);
    case 2: return ir_format(w->job, "%s - logsumexp(%s, dim=-1, keepdim=True)", x, x);
    case 3: return ir_format(w->job, "layer_norm(%s + 1000)", x);
    case 4: return ir_format(w->job, "%s * rsqrt(var(%s, dim=-1, keepdim=True) + 0.5)", x, x);
    case 5: return ir_format(w->job, "%s - mean(%s, dim=-1, keepdim=True) + std(%s, dim=-1, keepdim=True)", x, x, x);
    default: {
        const char *sum = ir_format(w->job, "sum(%s, dim=-1, keepdim=True)", x);
        sum = ir_format(w->job, "sum(%s * sigmoid(%s), dim=-1, keepdim=True)", x, sum);
        sum = ir_format(w->job, "sum(%s * sigmoid(%s), dim=-1, keepdim=True)", x, sum);
        return ir_format(w->job, "softmax(%s, dim=-1) + %s", x, sum);
    }
    }
}

static void add_pair(Writer *w) {
    const Node x = w->nodes.at[0];
    if (!x.rank || !has_elements(&x)) return;
    add_stored(w, &x, pair_text(w, x.name), "");
}

/* A sum over some of the outer dims of what a row's own sum scales, or of what it does not. */
static const char *outer_sum(Writer *w, const Node *x, const char *of, Node *kept) {
    Text dims = ir_text(w->job);
    uint32_t first = below(w, x->rank - 1);
    *kept = (Node){.rank = 0};
    for (uint32_t d = 0; d < x->rank; d++) {
        const bool summed = d + 1 < x->rank && (d == first || chance(w, 45));
        if (summed)
            ir_text_format(&dims, "%s%u", dims.count ? ", " : "", d);
        else
            kept->extent[kept->rank++] = x->extent[d];
    }
    static const char *const forms[] = {"sum", "mean", "sum", "prod"};
    return ir_format(w->job, "%s(%s, dim=[%s])", pick_text(w, forms, 3), of, ir_text_string(&dims));
}

/* Sums along rows and across them of the same elements. Now and then the rows need the sums, or read something that
 * runs the other way through memory. */
static void add_mixed_order(Writer *w) {
    const Node x = w->nodes.at[0];
    if (x.rank < 2) return;
    Node sums = x, kept;
    sums.whole = false;
    sums.extent[x.rank - 1] = (Extent){"1", 1, true};
    const char *element = x.name;
    if (chance(w, 50)) element = ir_format(w->job, "%s * %s", x.name, add_operand(w, &x, chance(w, 25)));
    if (chance(w, 60)) { /* a weight */
        const Node last = {.rank = 1, .extent = {x.extent[x.rank - 1]}};
        element = ir_format(w->job, "%s * %s", element, add_operand(w, &last, false));
    }
    if (chance(w, 15)) {
        const char *sum = outer_sum(w, &x, x.name, &kept), *total = add_stored(w, &kept, sum, "");
        add_stored(w, &sums, ir_format(w->job, "sum(%s * sum(%s), dim=-1, keepdim=True)", element, total), "");
        return;
    }
    const Node row =
        *random_add_node(w, &sums, KIND_FLOAT, ir_format(w->job, "sum(%s, dim=-1, keepdim=True)", element));
    const Node scaled = *random_add_node(w, &x, KIND_FLOAT, ir_format(w->job, "%s * %s", x.name, row.name));
    add_stored(w, &kept, outer_sum(w, &x, chance(w, 50) ? x.name : scaled.name, &kept), "");
    if (chance(w, 60)) add_stored(w, &x, ir_format(w->job, "%s - 1", scaled.name), "");
    if (chance(w, 40)) add_stored(w, &kept, outer_sum(w, &x, ir_format(w->job, "abs(%s)", x.name), &kept), "");
}

void random_add_motif(Writer *w) {
    static void (*const motifs[])(Writer *) = {add_overwritten,  add_other_row,   add_two_classes, add_middle_kept,
                                               add_sum_in_place, add_pair,        add_pair,        add_mixed_order,
                                               add_mixed_order,  add_mixed_order, add_mixed_order, add_mixed_order};
    motifs[below(w, sizeof motifs / sizeof *motifs)](w);
}
