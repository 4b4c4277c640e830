/* In: a seed. Out: a graph file of pointwise chains, norms, reductions, views, broadcasts, selections and casts,
 * several outputs among them. Every expression keeps its operands in range, so that values stay finite. */
#include "tests/support/random_smooth.h"

#include <string.h>

typedef struct Extent { /* equal texts are equal extents */
    const char *text;
    int64_t value;
} Extent;

typedef struct Node {
    const char *name;
    uint32_t rank;
    Extent extent[IR_MAX_RANK];
} Node;

typedef struct Smooth {
    Job *job;
    Random random;
    SmoothGraph graph;
    Extent base[SMOOTH_DIMS];
    uint32_t rank; /* of the base */
    IR_LIST(Node) nodes;
    uint32_t inputs;
    uint64_t turn; /* of the pointwise forms */
    Text input_text, node_text;
} Smooth;

#define COUNT(list) ((uint32_t)(sizeof(list) / sizeof *(list)))

static uint32_t below(Smooth *s, uint32_t limit) { return random_below(&s->random, limit); }
static bool chance(Smooth *s, uint32_t percent) { return below(s, 100) < percent; }
static const char *choose(Smooth *s, const char *const *texts, uint32_t count) { return texts[below(s, count)]; }
static bool is_one(const Extent *extent) { return !strcmp(extent->text, "1"); }

/* A template's $a $b $c are the operands' names. */
static const char *fill(Smooth *s, const char *form, const char *const *operands) {
    Text text = ir_text(s->job);
    for (; *form; form++) {
        if (*form == '$')
            ir_text_put(&text, operands[*++form - 'a']);
        else
            ir_text_bytes(&text, form, 1);
    }
    return ir_text_string(&text);
}

static void add_node(Smooth *s, const Node *shape, const char *expression) {
    Node *node = IR_PUSH(s->job, &s->nodes);
    *node = *shape;
    node->name = ir_format(s->job, "v%u", s->nodes.count - 1);
    ir_text_format(&s->node_text, "  %s: '%s'\n", node->name, expression);
}

/* The later ones oftener; all more than once. */
static const Node *pick(Smooth *s) {
    const uint32_t count = s->nodes.count, a = below(s, count), b = below(s, count);
    return &s->nodes.at[chance(s, 60) && b > a ? b : a];
}

static bool broadcast(const Node *a, const Node *b, Node *result) {
    Node node = {.rank = a->rank > b->rank ? a->rank : b->rank};
    for (uint32_t i = 1; i <= node.rank; i++) {
        const Extent *x = i <= a->rank ? &a->extent[a->rank - i] : NULL;
        const Extent *y = i <= b->rank ? &b->extent[b->rank - i] : NULL;
        if (x && y && !is_one(x) && !is_one(y) && strcmp(x->text, y->text) != 0) return false;
        node.extent[node.rank - i] = x && (!y || !is_one(x)) ? *x : *y;
    }
    *result = node;
    return true;
}

/* ---- what nodes are made of ---- */

static void add_unary(Smooth *s) {
    static const char *const forms[] = {"-$a",
                                        "abs($a)",
                                        "exp(0.3 * cos($a))",
                                        "exp2(-0.3 * sin($a))",
                                        "expm1(0.3 * tanh($a))",
                                        "log(1.5 + $a * $a)",
                                        "log2(1.5 + $a * $a)",
                                        "log1p($a * $a)",
                                        "sqrt(0.5 + $a * $a)",
                                        "rsqrt(0.5 + $a * $a)",
                                        "tanh($a)",
                                        "sigmoid(2 * $a)",
                                        "erf($a)",
                                        "sin($a)",
                                        "cos(2 * $a)",
                                        "sign($a) * $a",
                                        "floor($a) * $a",
                                        "ceil($a) + $a",
                                        "round($a) * $a",
                                        "trunc($a) - $a",
                                        "$a ** 2 / (1 + abs($a))",
                                        "$a * $a * $a / (1 + $a * $a)",
                                        "2 ** (0.2 * sin($a))",
                                        "1 - $a / 3",
                                        "relu($a)",
                                        "silu($a)",
                                        "gelu($a)",
                                        "gelu($a, \"tanh\")",
                                        "softplus($a)",
                                        "softplus($a, 2, 1.7)",
                                        "square(sin($a))",
                                        "reciprocal(2 + abs($a))",
                                        "clamp($a, -0.7, 0.9)",
                                        "clamp($a, max=0.3)",
                                        "cast($a, bf16)",
                                        "cast($a, f16) * $a",
                                        "cast($a, f32)",
                                        "where(isnan($a), 0, $a)",
                                        "where(isinf($a), $a, 2 * $a)",
                                        "$a * cast($a * 3, i32)",
                                        "finite_or_zero($a)"};
    const Node *a = pick(s); /* by turns, so that a run meets all */
    add_node(s, a, fill(s, forms[s->turn++ % COUNT(forms)], &a->name));
}

static void add_binary(Smooth *s) {
    static const char *const forms[] = {"$a + $b",
                                        "$a - $b",
                                        "$a * $b",
                                        "$a * $b + $a",
                                        "$a / (1.5 + $b * $b)",
                                        "maximum($a, $b)",
                                        "minimum($a, 0.5 * $b)",
                                        "(0.5 + $a * $a) ** (0.3 * sin($b))",
                                        "$a % (1.5 + $b * $b)",
                                        "$a // (1.5 + $b * $b) + $a",
                                        "swiglu($a, $b)",
                                        "geglu($a, $b)",
                                        "geglu($a, $b, \"tanh\")",
                                        "clamp($a, min=$b)"};
    const Node *a = pick(s), *b = pick(s);
    Node shape;
    if (!broadcast(a, b, &shape)) return;
    const char *names[] = {a->name, b->name};
    add_node(s, &shape, fill(s, choose(s, forms, COUNT(forms)), names));
}

static void add_selection(Smooth *s) {
    static const char *const forms[] = {"where($a > $b, $c, 0.5 * $a)",
                                        "where($a <= 0.1, $b, $c)",
                                        "where(($a < $b) | ($c > 0), $a, $b * $c)",
                                        "where(($a != $b) & ($c >= -0.2), $c, $b)",
                                        "where(~($a == $b), $b, $c)",
                                        "where($a > 0, log(abs($a) + 0.1), $b) * $c"};
    const Node *a = pick(s), *b = pick(s), *c = pick(s);
    Node first, shape;
    if (!broadcast(a, b, &first) || !broadcast(&first, c, &shape)) return;
    const char *names[] = {a->name, b->name, c->name};
    add_node(s, &shape, fill(s, choose(s, forms, COUNT(forms)), names));
}

/* Dims along which to reduce: their list, and what is left. */
static const char *reduced(Smooth *s, const Node *a, bool keepdim, bool one, Node *left) {
    Text list = ir_text(s->job);
    uint32_t dims = one ? 1u << below(s, a->rank) : 1 + below(s, (1u << a->rank) - 1);
    *left = (Node){0};
    for (uint32_t d = 0; d < a->rank; d++) {
        if (!(dims >> d & 1)) {
            left->extent[left->rank++] = a->extent[d];
            continue;
        }
        ir_text_format(&list, "%s%d", list.count ? ", " : "", chance(s, 50) ? (int)d : (int)d - (int)a->rank);
        if (keepdim) left->extent[left->rank++] = (Extent){"1", 1};
    }
    return one ? ir_text_string(&list) : ir_format(s->job, "[%s]", ir_text_string(&list));
}

static void add_reduction(Smooth *s) {
    static const char *const forms[] = {"sum($a, $b, $c)",
                                        "mean($a, $b, $c)",
                                        "amax($a, $b, $c)",
                                        "amin($a, $b, $c)",
                                        "prod(1 + 0.3 * tanh($a), $b, $c)",
                                        "prod(sin($a), $b, $c)",
                                        "var($a, $b, 0, $c)",
                                        "std($a, $b, 0, $c)",
                                        "sqrt(0.1 + var($a, $b, 0, $c))",
                                        "where(any($a > 0, $b, $c), 1, 0.5) * sum($a, $b, $c)",
                                        "where(all($a > -1, $b, $c), 2, 1) * mean($a, $b, $c)",
                                        "logsumexp($a, $b, $c)"};
    const Node *a = pick(s);
    if (!a->rank) return;
    const bool keepdim = chance(s, 60);
    Node left;
    const uint32_t form = below(s, COUNT(forms));
    const char *dims = reduced(s, a, keepdim, form + 1 == COUNT(forms), &left);
    const char *names[] = {a->name, dims, keepdim ? "True" : "False"};
    add_node(s, &left, fill(s, forms[form], names));
}

static void add_norm(Smooth *s) {
    static const char *const forms[] = {"softmax($a, $b)",
                                        "log_softmax($a, $b)",
                                        "l2_norm($a, 0.1, $b)",
                                        "rms_norm($a, eps=0.1, dim=$b)",
                                        "layer_norm($a, eps=0.1, dim=$b)",
                                        "rms_norm($a, $c, 0.1, dim=-1)",
                                        "layer_norm($a, $c, eps=0.1)",
                                        "layer_norm($a, $c, 0.5 * $c, 0.1)",
                                        "layer_norm($a, bias=$c, eps=0.1)",
                                        "($a - mean($a, $b, True)) * rsqrt(mean($a * $a, $b, True) + 0.2)"};
    const Node *a = pick(s), *w = pick(s);
    Node shape;
    if (!a->rank) return;
    const bool row =
        w->rank == 1 && broadcast(a, w, &shape) && shape.rank == a->rank && !is_one(&a->extent[a->rank - 1]);
    const char *names[] = {a->name, ir_format(s->job, "%d", (int)below(s, a->rank) - (int)a->rank), w->name};
    const uint32_t form = row ? 5 + below(s, 4) : below(s, 6) % 5;
    add_node(s, a, fill(s, forms[chance(s, 10) ? 9 : form], names));
}

/* ---- views ---- */

static void add_slice(Smooth *s) {
    const Node *a = pick(s);
    if (!a->rank) return;
    const uint32_t dim = below(s, a->rank);
    Node node = *a;
    const Extent *extent = &a->extent[dim];
    const char *item;
    switch (below(s, 3)) {
    case 0: /* one less */
        if (extent->value < 2 || strlen(extent->text) > 1 || is_one(extent)) return;
        node.extent[dim] = (Extent){ir_format(s->job, "(%s - 1)", extent->text), extent->value - 1};
        item = chance(s, 50) ? "1:" : ir_format(s->job, ":%s-1", extent->text);
        break;
    case 1: /* one of them */
        item = "0";
        for (uint32_t d = dim; d + 1 < node.rank; d++) node.extent[d] = node.extent[d + 1];
        node.rank--;
        break;
    default: /* a new axis before it */
        if (node.rank > 3) return;
        item = "None, :";
        for (uint32_t d = node.rank; d > dim; d--) node.extent[d] = node.extent[d - 1];
        node.extent[dim] = (Extent){"1", 1};
        node.rank++;
    }
    Text text = ir_text(s->job);
    ir_text_format(&text, "%s[", a->name);
    for (uint32_t d = 0; d < dim; d++) ir_text_put(&text, ":, ");
    ir_text_format(&text, "%s]", item);
    add_node(s, &node, ir_text_string(&text));
}

static void add_reshape(Smooth *s) {
    const Node *a = pick(s);
    if (a->rank < 2) return;
    Node node = *a;
    const uint32_t dim = below(s, a->rank - 1);
    const Extent *x = &a->extent[dim], *y = &a->extent[dim + 1];
    node.extent[dim] = (Extent){is_one(x)   ? y->text
                                : is_one(y) ? x->text
                                            : ir_format(s->job, "%s*%s", x->text, y->text),
                                x->value * y->value};
    for (uint32_t d = dim + 1; d + 1 < node.rank; d++) node.extent[d] = node.extent[d + 1];
    node.rank--;
    Text text = ir_text(s->job);
    ir_text_format(&text, "reshape(%s, [", a->name);
    for (uint32_t d = 0; d < node.rank; d++) ir_text_format(&text, "%s%s", d ? ", " : "", node.extent[d].text);
    ir_text_put(&text, "])");
    add_node(s, &node, ir_text_string(&text));
}

/* ---- the file ---- */

static void add_input(Smooth *s, bool whole) {
    static const char *const dtypes[] = {"f64", "f32", "bf16", "f16", "f32"};
    Node node = {.rank = 0};
    const uint32_t missing = whole || chance(s, 40) ? 0 : below(s, s->rank + 1);
    Text text = ir_text(s->job);
    for (uint32_t d = missing; d < s->rank; d++) {
        node.extent[node.rank] = !whole && chance(s, 30) ? (Extent){"1", 1} : s->base[d];
        ir_text_format(&text, "%s%s", node.rank ? ", " : "", node.extent[node.rank].text);
        node.rank++;
    }
    node.name = ir_format(s->job, "x%u", s->inputs++);
    *IR_PUSH(s->job, &s->nodes) = node;
    ir_text_format(&s->input_text, "  %s: '%s[%s]'\n", node.name, choose(s, dtypes, COUNT(dtypes)),
                   ir_text_string(&text));
}

static const char *dims_text(Smooth *s) {
    static const int64_t primes[] = {1, 2, 3, 5};
    static const char *const names[] = {"A", "B", "C"};
    Text text = ir_text(s->job);
    for (uint32_t d = 0; d < SMOOTH_DIMS; d++) {
        s->graph.dim[d] = names[d];
        s->graph.value[d] = primes[chance(s, 15) ? 0 : 1 + below(s, 3)];
        s->base[d] = (Extent){names[d], s->graph.value[d]};
        if (chance(s, 40))
            ir_text_format(&text, "%s%s: any", d ? ", " : "", names[d]);
        else
            ir_text_format(&text, "%s%s: %lld", d ? ", " : "", names[d], (long long)s->graph.value[d]);
    }
    return ir_text_string(&text);
}

/* The last node, and others. */
static const char *outputs_text(Smooth *s) {
    static const char *const dtypes[] = {"f64", "f32", "bf16", "f64"};
    Text text = ir_text(s->job);
    for (uint32_t v = s->inputs; v < s->nodes.count; v++)
        if (v + 1 == s->nodes.count || chance(s, 30))
            ir_text_format(&text, "%s%s: %s", text.count ? ", " : "", s->nodes.at[v].name,
                           choose(s, dtypes, COUNT(dtypes)));
    return ir_text_string(&text);
}

SmoothGraph random_smooth(Job *job, uint64_t seed) {
    static void (*const makers[])(Smooth *) = {add_unary,  add_unary,     add_unary,     add_binary,
                                               add_binary, add_selection, add_reduction, add_reduction,
                                               add_norm,   add_norm,      add_slice,     add_reshape};
    Smooth *s = IR_NEW(job, Smooth);
    *s = (Smooth){.job = job, .random = {seed * 0x9e3779b97f4a7c15u + 1}, .turn = seed * 3};
    s->input_text = s->node_text = ir_text(job);
    const char *dims = dims_text(s);
    s->rank = 1 + below(s, SMOOTH_DIMS);
    add_input(s, true);
    for (uint32_t i = below(s, 4); i > 0; i--) add_input(s, false);
    const uint32_t goal = s->nodes.count + 2 + below(s, 8);
    for (uint32_t tries = 0; tries < 100 && s->nodes.count < goal; tries++) makers[below(s, COUNT(makers))](s);
    if (s->nodes.count == s->inputs) add_unary(s);
    const char *outputs = outputs_text(s);
    s->graph.text = ir_format(job, "graph: smooth_%llu\ndims: {%s}\ninputs:\n%snodes:\n%soutputs: {%s}\n",
                              (unsigned long long)(seed % 1000000), dims, ir_text_string(&s->input_text),
                              ir_text_string(&s->node_text), outputs);
    return s->graph;
}

int64_t *random_smooth_dims(Job *job, const SmoothGraph *smooth, const Graph *graph) {
    int64_t *dims = IR_NEW_ARRAY(job, int64_t, graph->dims.count + (size_t)1);
    for (uint32_t d = 0; d < graph->dims.count; d++) {
        dims[d] = graph->dims.at[d].value;
        for (uint32_t k = 0; k < SMOOTH_DIMS; k++)
            if (!strcmp(graph->dims.at[d].name, smooth->dim[k])) dims[d] = smooth->value[k];
    }
    return dims;
}
