/* A random graph file, node by node: each picks earlier nodes whose shapes and kinds fit. Shapes are kept as the texts
 * that the file gives them, and equal texts are equal extents. */
#include "tests/support/random_writer.h"

static int64_t elements(const Node *node) {
    int64_t count = 1;
    for (uint32_t d = 0; d < node->rank; d++) count *= node->extent[d].value;
    return count;
}

static bool broadcasts(const Writer *w, const Node *a, const Node *b, Node *result) {
    result->rank = a->rank > b->rank ? a->rank : b->rank;
    for (uint32_t i = 1; i <= result->rank; i++) {
        const Extent *x = i <= a->rank ? &a->extent[a->rank - i] : NULL;
        const Extent *y = i <= b->rank ? &b->extent[b->rank - i] : NULL;
        if (x && y && !is_one(x) && !is_one(y) && !same_extent(x, y)) return false;
        result->extent[result->rank - i] = x && (!y || !is_one(x)) ? *x : *y;
    }
    result->whole = false;
    for (uint32_t pass = 0; pass < 2; pass++) {
        const Node *large = pass ? b : a;
        bool same = large->rank == result->rank;
        for (uint32_t d = 0; same && d < result->rank; d++) same = same_extent(&large->extent[d], &result->extent[d]);
        if (same && large->whole) result->whole = true;
    }
    return elements(result) <= 2 * w->most;
}

/* Random earlier node of a kind, later ones rather; KIND_BOOL asks exactly, the others take floats and integers. */
static const Node *pick(Writer *w, bool want_bool) {
    for (uint32_t tries = 0; tries < 40; tries++) {
        uint32_t a = below(w, w->nodes.count), b = below(w, w->nodes.count);
        const Node *node = &w->nodes.at[a > b ? a : b];
        if ((node->kind == KIND_BOOL) == want_bool) return node;
    }
    return NULL;
}

Node *random_add_node(Writer *w, const Node *like, Kind kind, const char *expression) {
    Node node = *like;
    node.name = ir_format(w->job, "v%u", w->nodes.count);
    node.kind = kind;
    node.writable = 0;
    node.stored = false;
    node.dtype = NULL;
    ir_text_format(&w->body, "  %s: %s\n", node.name, expression);
    Node *added = IR_PUSH(w->job, &w->nodes);
    *added = node;
    return added;
}

static const char *number(Writer *w) {
    static const char *const numbers[] = {"0.5", "2", "1", "3", "0.1", "-1", "1e-3", "0.25", "-2.5", "7"};
    if (w->scalar_count && chance(w, 30)) return ir_format(w->job, "s%u", below(w, w->scalar_count));
    if (chance(w, 10)) return w->base[below(w, w->base_rank)].text;
    return pick_text(w, numbers, sizeof numbers / sizeof numbers[0]);
}

/* ---- nodes ---- */

static void add_unary(Writer *w) {
    static const char *const forms[] = {"-$",
                                        "abs($)",
                                        "sign($)",
                                        "exp(tanh($))",
                                        "exp2(sin($))",
                                        "expm1(tanh($))",
                                        "sqrt(abs($))",
                                        "log1p(abs($))",
                                        "log(abs($) + 0.5)",
                                        "log2(abs($) + 1)",
                                        "tanh($)",
                                        "rsqrt(abs($) + 0.5)",
                                        "sigmoid($)",
                                        "erf($)",
                                        "sin($)",
                                        "cos($)",
                                        "floor($)",
                                        "ceil($)",
                                        "round($)",
                                        "trunc($)",
                                        "square($)",
                                        "reciprocal(abs($) + 1)",
                                        "relu($)",
                                        "silu($)",
                                        "gelu($)",
                                        "gelu($, \"tanh\")",
                                        "softplus($)",
                                        "clamp($, -1, 1.5)",
                                        "cast($, f16)",
                                        "cast($, bf16)",
                                        "cast($, f32)",
                                        "where(isnan($), 0, $)",
                                        "where(isinf($), 1, $)",
                                        "abs($) ** 0.5",
                                        "$ ** 2",
                                        "exp($)",
                                        "1 / $",
                                        "cast($, f8e4m3)", /* from here on with RANDOM_ALL_DTYPES */
                                        "cast($, f8e5m2)",
                                        "cast($, i8)",
                                        "cast($, u8)",
                                        "cast($, i32)",
                                        "cast($, i64)",
                                        "cast($, f64)"};
    const Node *a = pick(w, false);
    if (!a) return;
    const char *form = pick_text(w, forms, sizeof forms / sizeof forms[0] - (w->flags & RANDOM_ALL_DTYPES ? 0 : 7));
    Text text = ir_text(w->job);
    for (const char *at = form; *at; at++) {
        if (*at == '$')
            ir_text_put(&text, a->name);
        else
            ir_text_bytes(&text, at, 1);
    }
    /* what an integer becomes depends on the op, and only its being no bool matters here */
    random_add_node(w, a, KIND_FLOAT, ir_text_string(&text));
}

static void add_binary(Writer *w) {
    static const char *const forms[] = {"%s + %s",
                                        "%s - %s",
                                        "%s * %s",
                                        "%s / (abs(%s) + 0.5)",
                                        "maximum(%s, %s)",
                                        "minimum(%s, %s)",
                                        "%s %% (abs(%s) + 1)",
                                        "%s // (abs(%s) + 1)",
                                        "%s * %s",
                                        "%s + %s",
                                        "swiglu(%s, %s)"};
    static const char *const compares[] = {"<", "<=", ">", ">=", "==", "!="};
    const Node *a = pick(w, false), *b = pick(w, false);
    Node shape;
    if (!a || !b) return;
    if (chance(w, 15)) {
        const char *compare = pick_text(w, compares, 6);
        if (broadcasts(w, a, b, &shape))
            random_add_node(w, &shape, KIND_BOOL, ir_format(w->job, "%s %s %s", a->name, compare, b->name));
        return;
    }
    /* the format is one of the table above */
    const char *form = pick_text(w, forms, sizeof forms / sizeof forms[0]);
    const char *right = b->name;
    if (chance(w, 25)) {
        right = number(w);
        shape = *a;
    } else if (!broadcasts(w, a, b, &shape)) {
        return;
    }
    Text text = ir_text(w->job);
    bool first = true;
    for (const char *at = form; *at; at++) {
        if (at[0] == '%' && at[1] == 's') {
            ir_text_put(&text, first ? a->name : right);
            first = false;
            at++;
        } else if (at[0] == '%') {
            ir_text_put(&text, "%");
            at++;
        } else {
            ir_text_bytes(&text, at, 1);
        }
    }
    random_add_node(w, &shape, KIND_FLOAT, ir_text_string(&text));
}

static void add_logic(Writer *w) {
    const Node *a = pick(w, true), *b = pick(w, true);
    Node shape;
    if (!a || !b) return;
    switch (below(w, 4)) {
    case 0: random_add_node(w, a, KIND_BOOL, ir_format(w->job, "~%s", a->name)); break;
    case 1:
        if (broadcasts(w, a, b, &shape))
            random_add_node(w, &shape, KIND_BOOL, ir_format(w->job, "%s & %s", a->name, b->name));
        break;
    case 2:
        if (broadcasts(w, a, b, &shape))
            random_add_node(w, &shape, KIND_BOOL, ir_format(w->job, "%s | %s", a->name, b->name));
        break;
    default: random_add_node(w, a, KIND_FLOAT, ir_format(w->job, "cast(%s, f32)", a->name));
    }
}

static void add_where(Writer *w) {
    const Node *condition = pick(w, true), *a = pick(w, false), *b = pick(w, false);
    Node first, shape;
    if (!condition || !a || !b || !broadcasts(w, condition, a, &first) || !broadcasts(w, &first, b, &shape)) return;
    random_add_node(w, &shape, KIND_FLOAT, ir_format(w->job, "where(%s, %s, %s)", condition->name, a->name, b->name));
}

static void add_index_value(Writer *w) {
    const Extent *extent = &w->base[below(w, w->base_rank)];
    Node node = {.rank = 1, .extent = {*extent}};
    node.whole = w->base_rank == 1;
    Node *added = random_add_node(w, &node, KIND_INT, ir_format(w->job, "arange(%s)", extent->text));
    if (extent != &w->base[w->base_rank - 1] && chance(w, 80)) { /* aligned with its dim */
        uint32_t after = (uint32_t)(&w->base[w->base_rank - 1] - extent);
        Text text = ir_text(w->job);
        ir_text_format(&text, "%s[:", added->name);
        Node wide = *added;
        for (uint32_t d = 0; d < after; d++) {
            ir_text_put(&text, ", None");
            wide.extent[wide.rank++] = (Extent){"1", 1, true};
        }
        ir_text_put(&text, "]");
        random_add_node(w, &wide, KIND_INT, ir_text_string(&text));
    }
}

/* Part of what is there stays, by its place: up to a column, causal, or every third; the rest is put to something else.
 */
static void add_mask(Writer *w) {
    static const char *const fills[] = {"-inf", "0", "-inf", "1", "-1e30"};
    const Extent *columns = &w->base[w->base_rank - 1], *rows = w->base_rank > 1 ? columns - 1 : columns;
    Node mask = {.kind = KIND_BOOL, .rank = 1, .extent = {*columns}, .whole = w->base_rank == 1}, shape;
    const char *n = columns->text, *m = rows->text, *keep;
    switch (below(w, w->base_rank > 1 ? 4 : 2)) {
    case 0: keep = ir_format(w->job, "arange(%s) < %u", n, below(w, 40)); break;
    case 1: keep = ir_format(w->job, "arange(%s) %% 3 != %u", n, below(w, 3)); break;
    default: keep = ir_format(w->job, "arange(%s) <= arange(%s)[:, None] + (%s - %s)", n, m, n, m);
    }
    if (strchr(keep, '[')) {
        mask.rank = 2;
        mask.extent[0] = *rows;
        mask.extent[1] = *columns;
        mask.whole = w->base_rank == 2;
    }
    const Node *a = pick(w, false);
    if (!a || !broadcasts(w, &mask, a, &shape)) return;
    const char *kept = a->name, *fill = pick_text(w, fills, sizeof fills / sizeof fills[0]);
    const char *name = random_add_node(w, &mask, KIND_BOOL, keep)->name;
    random_add_node(w, &shape, KIND_FLOAT, ir_format(w->job, "where(%s, %s, %s)", name, kept, fill));
}

/* Which dims a reduction of the node consumes; 0: it should not be reduced. */
static uint32_t choose_dims(Writer *w, const Node *node) {
    if (!node->rank) return 0;
    if (w->flags & RANDOM_ROWS_ONLY) { /* of rows, now and then of what is the same for all rows or one a row */
        bool rows = node->whole && node->rank == w->base_rank;
        if (node->rank < w->row_dims || (!rows && chance(w, 70))) return 0;
        for (uint32_t i = 1; i <= w->row_dims; i++) {
            const Extent *extent = &node->extent[node->rank - i];
            if (!same_extent(extent, &w->base[w->base_rank - i]) && !is_one(extent)) return 0;
        }
        return ((1u << w->row_dims) - 1) << (node->rank - w->row_dims);
    }
    uint32_t all = (1u << node->rank) - 1;
    switch (below(w, 4)) {
    case 0: return 1u << (node->rank - 1);
    case 1: return 1u << below(w, node->rank);
    case 2: return all & ~((1u << below(w, node->rank)) - 1); /* a suffix */
    default: return (1 + below(w, all)) & all;
    }
}

static void add_reduction(Writer *w) {
    static const char *const names[] = {"sum",  "sum", "mean", "amax", "amin", "var", "std",
                                        "prod", "any", "all",  "any",  "any",  "all"};
    const char *name = pick_text(w, names, sizeof names / sizeof names[0]);
    bool logic = !strcmp(name, "any") || !strcmp(name, "all");
    bool compares = logic && chance(w, 60);
    const Node *a = pick(w, logic && !compares);
    uint32_t dims = a ? choose_dims(w, a) : 0;
    if (!dims) return;
    bool keepdim = chance(w, w->flags & RANDOM_ROWS_ONLY ? 85 : 70);
    Node node = *a;
    Text text = ir_text(w->job);
    const char *arg = a->name;
    if (!strcmp(name, "prod")) arg = ir_format(w->job, "clamp(%s, 0.75, 1.25)", arg);
    if (compares) arg = ir_format(w->job, name[1] == 'n' ? "%s > 2" : "%s > -2", arg);
    ir_text_format(&text, "%s(%s, dim=[", name, arg);
    node.rank = 0;
    node.whole = false;
    int64_t consumed = 1;
    for (uint32_t d = 0, first = 1; d < a->rank; d++) {
        if (!(dims >> d & 1)) {
            node.extent[node.rank++] = a->extent[d];
            continue;
        }
        ir_text_format(&text, "%s%d", first ? "" : ", ", chance(w, 50) ? (int)d : (int)d - (int)a->rank);
        first = 0;
        consumed *= a->extent[d].value;
        if (keepdim) node.extent[node.rank++] = (Extent){"1", 1, true};
    }
    if (!consumed && name[0] == 'a' && name[1] == 'm') return; /* amax and amin of nothing */
    ir_text_format(&text, "]%s)", keepdim ? ", keepdim=True" : "");
    if (compares) /* a number rather, for which there are more uses */
        random_add_node(w, &node, KIND_FLOAT, ir_format(w->job, "where(%s, 1, 0.5)", ir_text_string(&text)));
    else
        random_add_node(w, &node, logic ? KIND_BOOL : KIND_FLOAT, ir_text_string(&text));
}

static const char *row_operand(Writer *w, const Node *a) {
    for (uint32_t tries = 0; tries < 8; tries++) {
        const Node *b = pick(w, false);
        if (b && b->rank == 1 && a->rank && !strcmp(b->extent[0].text, a->extent[a->rank - 1].text)) return b->name;
    }
    return "None";
}

static void add_norm(Writer *w) {
    const Node *a = pick(w, false);
    if (!a || !a->rank || !elements(a)) return;
    if (w->flags & RANDOM_ROWS_ONLY && (!a->whole || a->rank != w->base_rank || w->row_dims != 1)) return;
    int dim = w->flags & RANDOM_ROWS_ONLY || chance(w, 60) ? -1 : -1 - (int)below(w, a->rank);
    const char *weight = dim == -1 ? row_operand(w, a) : "None", *bias = dim == -1 ? row_operand(w, a) : "None";
    const char *text;
    switch (below(w, 6)) {
    case 0: text = ir_format(w->job, "softmax(%s, dim=%d)", a->name, dim); break;
    case 1: text = ir_format(w->job, "log_softmax(%s, %d)", a->name, dim); break;
    case 2: text = ir_format(w->job, "rms_norm(%s, %s, eps=1e-3, dim=%d)", a->name, weight, dim); break;
    case 3: text = ir_format(w->job, "l2_norm(%s, 1e-3, %d)", a->name, dim); break;
    case 4:
        if (w->flags & RANDOM_ROWS_ONLY) return;
        random_add_node(w, a, KIND_FLOAT, ir_format(w->job, "logsumexp(%s, %d, keepdim=True)", a->name, dim));
        w->nodes.at[w->nodes.count - 1].extent[(int)a->rank + dim] = (Extent){"1", 1, true};
        w->nodes.at[w->nodes.count - 1].whole = false;
        return;
    default: text = ir_format(w->job, "layer_norm(%s, %s, %s, 1e-3, dim=%d)", a->name, weight, bias, dim);
    }
    random_add_node(w, a, KIND_FLOAT, text);
}

/* ---- views ---- */

static void add_slice(Writer *w) {
    uint32_t inputs = 0;
    while (inputs < w->nodes.count && w->nodes.at[inputs].dtype) inputs++;
    const Node *a = chance(w, 50) ? &w->nodes.at[below(w, inputs)] : pick(w, false);
    if (!a || !a->rank) return;
    uint32_t dim = below(w, a->rank);
    const Extent *extent = &a->extent[dim];
    Node node = *a;
    node.whole = false;
    const char *item;
    bool drops = false;
    uint32_t value = (uint32_t)extent->value;
    if (value < 2) return;
    switch (below(w, 6)) {
    case 0:
    case 4:
    case 5: /* halves that can meet again */
        if (!extent->fixed || value % 2) return;
        node.extent[dim] = (Extent){ir_format(w->job, "%u", value / 2), value / 2, true};
        item = chance(w, 50) ? ir_format(w->job, ":%u", value / 2) : ir_format(w->job, "%u:%u", value / 2, value);
        break;
    case 1:
        if (!extent->fixed) return;
        item = ir_format(w->job, "%u", below(w, value));
        drops = true;
        break;
    case 2:
        if (extent->fixed || strlen(extent->text) > 2) return;
        node.extent[dim] = (Extent){ir_format(w->job, "(%s - 1)", extent->text), value - 1, false};
        item = chance(w, 50) ? "1:" : ir_format(w->job, ":%s-1", extent->text);
        break;
    default: item = ":";
    }
    Text text = ir_text(w->job);
    ir_text_format(&text, "%s[", a->name);
    for (uint32_t d = 0; d <= dim; d++) ir_text_format(&text, "%s%s", d ? ", " : "", d == dim ? item : ":");
    if (drops) {
        for (uint32_t d = dim; d + 1 < node.rank; d++) node.extent[d] = node.extent[d + 1];
        node.rank--;
    } else if (dim + 1 == a->rank && node.rank < IR_MAX_RANK && chance(w, 20)) {
        ir_text_put(&text, ", None");
        node.extent[node.rank++] = (Extent){"1", 1, true};
    }
    ir_text_put(&text, "]");
    for (uint32_t i = 0; i < w->nodes.count; i++)
        if (w->nodes.at[i].writable && !strcmp(w->nodes.at[i].name, a->name) && !strstr(ir_text_string(&text), "None"))
            *IR_PUSH(w->job, &w->parts) = (Part){i, ir_text_string(&text), node};
    random_add_node(w, &node, a->kind, ir_text_string(&text));
}

/* x[:, idx], by an input, by arange, or by arange the other way round. */
static void add_gather(Writer *w) {
    const Node *a = pick(w, false), *index = NULL;
    if (!a || !a->rank) return;
    uint32_t dim = below(w, a->rank), width = 1;
    Node node = {.kind = a->kind};
    const Extent *picked = &a->extent[dim];
    const char *by =
        ir_format(w->job, chance(w, 50) ? "arange(%s)" : "%s - 1 - arange(%s)", picked->text, picked->text);
    if (picked->value == 0 || picked->value >= 128) return; /* an i8 holds every index */
    if (w->indices.count && chance(w, 80)) {
        index = &w->nodes.at[w->indices.at[below(w, w->indices.count)]];
        by = index->name;
        width = index->rank;
    }
    if (a->rank - 1 + width > IR_MAX_RANK) return;
    Text text = ir_text(w->job);
    ir_text_format(&text, "%s[", a->name);
    for (uint32_t d = 0; d < a->rank; d++) {
        ir_text_format(&text, "%s%s", d ? ", " : "", d == dim ? by : ":");
        for (uint32_t k = 0; d == dim && index && k < width; k++) node.extent[node.rank++] = index->extent[k];
        if (d != dim || !index) node.extent[node.rank++] = a->extent[d];
    }
    ir_text_put(&text, "]");
    if (!index) node.whole = a->whole;
    if (elements(&node) <= 2 * w->most) random_add_node(w, &node, node.kind, ir_text_string(&text));
}

static void add_reshape(Writer *w) {
    const Node *a = pick(w, false);
    if (!a) return;
    Node node = *a;
    uint32_t dim = a->rank ? below(w, a->rank) : 0;
    const char *star = a->rank ? strchr(a->extent[dim].text, '*') : NULL;
    if (a->whole && chance(w, 30)) { /* back */
        memcpy(node.extent, w->base, sizeof node.extent);
        node.rank = w->base_rank;
    } else if (star && a->rank < IR_MAX_RANK && !strchr(a->extent[dim].text, '(')) { /* D0*D1... into its factors */
        size_t length = (size_t)(star - a->extent[dim].text);
        Extent high = {0}, low = {.text = star + 1, .value = 1, .fixed = false};
        for (uint32_t i = 0; i < w->base_rank; i++)
            if (strlen(w->base[i].text) == length && !memcmp(w->base[i].text, a->extent[dim].text, length))
                high = w->base[i];
        if (!high.text) return;
        if (high.value == 0) return;
        low.value = a->extent[dim].value / high.value;
        for (uint32_t d = node.rank; d > dim + 1; d--) node.extent[d] = node.extent[d - 1];
        node.extent[dim] = high;
        node.extent[dim + 1] = low;
        node.rank++;
    } else if (a->rank > 1 && dim + 1 < a->rank && chance(w, 60)) { /* two become one */
        const Extent *x = &a->extent[dim], *y = &a->extent[dim + 1];
        node.extent[dim] =
            (Extent){ir_format(w->job, "%s*%s", x->text, y->text), x->value * y->value, x->fixed && y->fixed};
        for (uint32_t d = dim + 1; d + 1 < node.rank; d++) node.extent[d] = node.extent[d + 1];
        node.rank--;
    } else if (a->rank && a->rank < IR_MAX_RANK && a->extent[dim].fixed && a->extent[dim].value % 2 == 0 &&
               a->extent[dim].value > 0) { /* a fixed one into numbers */
        int64_t half = a->extent[dim].value / 2;
        for (uint32_t d = node.rank; d > dim + 1; d--) node.extent[d] = node.extent[d - 1];
        bool first = chance(w, 50);
        Extent two = {"2", 2, true}, rest = {ir_format(w->job, "%lld", (long long)half), half, true};
        node.extent[dim] = first ? two : rest;
        node.extent[dim + 1] = first ? rest : two;
        node.rank++;
    } else {
        return;
    }
    random_add_node(w, &node, a->kind, ir_format(w->job, "reshape(%s, %s)", a->name, random_shape_text(w, &node)));
}

RandomGraph random_graph(Job *job, uint64_t seed, uint32_t flags) {
    Writer *w = IR_NEW(job, Writer);
    *w = (Writer){.job = job, .random = {seed * 0x9e3779b97f4a7c15u + 1}, .flags = flags};
    w->dims = w->inputs = w->scalars = w->body = w->outputs = ir_text(job);
    random_add_base(w);
    random_add_input(w, true);
    for (uint32_t i = below(w, 4); i > 0; i--) random_add_input(w, chance(w, 35));
    const bool all = flags & RANDOM_ALL_DTYPES;
    for (uint32_t i = all ? below(w, 3) : 0; i > 0; i--) random_add_index(w);
    for (uint32_t i = all ? below(w, 3) : 0; i > 0; i--) random_add_element(w);
    for (uint32_t i = below(w, 3); i > 0; i--) random_add_scalar(w);
    static void (*const makers[])(Writer *) = {
        add_unary,     add_unary,     add_binary, add_binary, add_binary,  add_logic,       add_where,
        add_reduction, add_reduction, add_norm,   add_slice,  add_reshape, add_index_value, add_mask,
        add_reduction, add_reduction, add_norm,   add_norm,   add_slice}; /* the last five in graphs of rows alone */
    uint32_t goal = w->nodes.count + 2 + below(w, 11);
    uint32_t count = sizeof makers / sizeof makers[0] - (flags & RANDOM_ROWS_ONLY ? 0 : 5);
    for (uint32_t tries = 0; tries < 200 && w->nodes.count < goal; tries++)
        (all && chance(w, 12) ? add_gather : makers[below(w, count)])(w);
    if (flags & RANDOM_ROWS_ONLY && chance(w, 60)) (chance(w, 50) ? add_norm : add_reduction)(w);
    if (chance(w, 55)) random_add_motif(w);
    random_add_outputs(w);
    Text text = ir_text(job);
    ir_text_format(&text, "graph: random_%llu\n", (unsigned long long)seed);
    ir_text_format(&text, "dims:\n%sinputs:\n%s", ir_text_string(&w->dims), ir_text_string(&w->inputs));
    if (w->scalars.count) ir_text_format(&text, "scalars:\n%s", ir_text_string(&w->scalars));
    if (w->body.count) ir_text_format(&text, "nodes:\n%s", ir_text_string(&w->body));
    ir_text_format(&text, "outputs:\n%s", ir_text_string(&w->outputs));
    w->graph.text = ir_text_string(&text);
    w->graph.count = text.count;
    return w->graph;
}
