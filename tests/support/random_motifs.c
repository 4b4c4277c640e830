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

/* Two sums over the first dim that share a read and run through memory in different ways. */
static void add_two_classes(Writer *w) {
    const Node x = w->nodes.at[0];
    if (x.rank < 2) return;
    Node kept = {.rank = x.rank - 1}, turned = x;
    memcpy(kept.extent, x.extent + 1, kept.rank * sizeof *kept.extent);
    turned.name = ir_format(w->job, "x%u", w->nodes.count);
    turned.dtype = "f32";
    turned.writable = 0;
    *IR_PUSH(w->job, &w->nodes) = turned;
    Text strides = ir_text(w->job);
    const char *step = "1";
    for (uint32_t d = 0; d < x.rank; d++) {
        ir_text_format(&strides, "%s%s", d ? ", " : "", step);
        step = ir_format(w->job, "%s*%s", step, x.extent[d].text);
    }
    ir_text_format(&w->inputs, "  %s: {dtype: f32, shape: %s, strides: [%s]}\n", turned.name, random_shape_text(w, &x),
                   ir_text_string(&strides));
    add_stored(w, &kept, ir_format(w->job, "sum(%s, dim=0)", x.name), "");
    add_stored(w, &kept, ir_format(w->job, "sum(%s * %s, dim=0)", x.name, turned.name), "");
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

/* A sum over the first dim in place of what is added to it. */
static void add_sum_in_place(Writer *w) {
    const Node x = w->nodes.at[0];
    if (x.rank < 2) return;
    Node kept = {.rank = x.rank - 1};
    memcpy(kept.extent, x.extent + 1, kept.rank * sizeof *kept.extent);
    const char *held = ir_format(w->job, "x%u", w->nodes.count);
    Node *input = IR_PUSH(w->job, &w->nodes);
    *input = kept;
    input->name = held;
    input->dtype = "f32";
    ir_text_format(&w->inputs, "  %s: {dtype: f32, shape: %s}\n", held, random_shape_text(w, &kept));
    Node *sum = random_add_node(w, &kept, KIND_FLOAT, ir_format(w->job, "sum(%s, dim=0) + %s", x.name, held));
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

void random_add_motif(Writer *w) {
    static void (*const motifs[])(Writer *) = {add_overwritten, add_other_row,    add_two_classes,
                                               add_middle_kept, add_sum_in_place, add_pair};
    motifs[below(w, sizeof motifs / sizeof *motifs)](w);
}
