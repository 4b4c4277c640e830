/* Graph builders: broadcasting, typing with casts where dtypes meet, index, reshape, disjoint slices, equality,
 * refusals. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "ir/graph.h"

static const Place here = {3, 2};

typedef struct Fixture { /* M any, N = 768, Q any */
    Graph *graph;
    Poly m, n, q, one, zero;
} Fixture;

static Poly number(Job *job, int64_t value) { return ir_poly_int(job, value); }

static Fixture fixture(Job *job) {
    Fixture f = {ir_graph_create(job, "g"), ir_poly_symbol(job, 0), ir_poly_symbol(job, 1),
                 ir_poly_symbol(job, 2),    number(job, 1),         number(job, 0)};
    const char *names[] = {"M", "N", "Q"};
    for (int i = 0; i < 3; i++) {
        *IR_PUSH(job, &f.graph->dims) =
            (Dim){.name = names[i], .value = i == 1 ? 768 : -1, .hint = -1, .max = -1, .multiple = 1};
    }
    return f;
}

static uint32_t input(Job *job, Fixture *f, DType dtype, uint32_t rank, const Poly *extent) {
    Tensor *tensor = IR_PUSH(job, &f->graph->inputs);
    *tensor = (Tensor){.name = "x", .dtype = dtype, .contiguous = true, .value = IR_NONE, .inplace = IR_NONE};
    tensor->shape.rank = (uint8_t)rank;
    for (uint32_t d = 0; d < rank; d++) tensor->shape.extent[d] = extent[d];
    uint32_t id = ir_graph_add(job, f->graph, OP_INPUT, dtype, here);
    f->graph->values.at[id].shape = tensor->shape;
    f->graph->values.at[id].tensor = f->graph->inputs.count - 1;
    return id;
}

static const char *type_of(Job *job, const Fixture *f, uint32_t id) {
    Text text = ir_text(job);
    ir_print_type(&text, f->graph, f->graph->values.at[id].dtype, &f->graph->values.at[id].shape);
    return ir_text_string(&text);
}

static uint32_t op2(Job *job, Fixture *f, Op op, uint32_t a, uint32_t b) {
    return ir_graph_op(job, f->graph, op, (uint32_t[]){a, b}, here);
}

static void types(Job *job, void *state) {
    (void)state;
    Fixture f = fixture(job);
    bool overflow = false;
    uint32_t x = input(job, &f, DTYPE_BF16, 2, (Poly[]){f.m, f.n}), w = input(job, &f, DTYPE_F32, 1, &f.n);
    uint32_t row = input(job, &f, DTYPE_I32, 2, (Poly[]){f.m, f.one}), flag = input(job, &f, DTYPE_BOOL, 0, NULL);
    assert_string_equal(type_of(job, &f, op2(job, &f, OP_MUL, x, w)), "f32[M, N]");
    uint32_t mixed = op2(job, &f, OP_ADD, x, row);
    assert_string_equal(type_of(job, &f, mixed), "f32[M, N]");
    const Value *cast = &f.graph->values.at[f.graph->values.at[mixed].arg[1]];
    assert_true(cast->op == OP_CAST && cast->dtype == DTYPE_F32 && cast->arg[0] == row);
    assert_int_equal(f.graph->values.at[mixed].arg[0], x); /* widening needs none */
    assert_string_equal(type_of(job, &f, op2(job, &f, OP_ADD, flag, flag)), "i64[]");
    assert_string_equal(type_of(job, &f, op2(job, &f, OP_LT, row, x)), "bool[M, N]");
    uint32_t chosen = ir_graph_op(job, f.graph, OP_WHERE, (uint32_t[]){flag, x, row}, here);
    assert_string_equal(type_of(job, &f, chosen), "f32[M, N]");
    assert_int_equal(f.graph->values.at[chosen].arg[0], flag);
    assert_string_equal(type_of(job, &f, ir_graph_reduce(job, f.graph, REDUCTION_ADD, x, 2, true, here)), "f32[M, 1]");
    assert_string_equal(type_of(job, &f, ir_graph_reduce(job, f.graph, REDUCTION_MAX, x, 1, false, here)), "f32[N]");
    assert_string_equal(type_of(job, &f, ir_graph_reduce(job, f.graph, REDUCTION_ADD, flag, 0, false, here)), "i64[]");
    assert_string_equal(type_of(job, &f, ir_graph_reduce(job, f.graph, REDUCTION_ANY, flag, 0, false, here)), "bool[]");
    Item items[] = {
        {ITEM_AT, f.zero, f.zero, 0}, {ITEM_NEW_AXIS, f.zero, f.zero, 0}, {ITEM_RANGE, number(job, 64), f.n, 0}};
    uint32_t sliced = ir_graph_index(job, f.graph, x, items, 3, here);
    assert_string_equal(type_of(job, &f, sliced), "bf16[1, N - 64]");
    Item gather[] = {{ITEM_GATHER, f.zero, f.zero, row}, {ITEM_RANGE, f.zero, f.n, 0}};
    assert_string_equal(type_of(job, &f, ir_graph_index(job, f.graph, x, gather, 2, here)), "bf16[M, 1, N]");
    Shape heads = {3, {f.m, number(job, 12), number(job, 64)}};
    assert_string_equal(type_of(job, &f, ir_graph_reshape(job, f.graph, x, &heads, here)), "bf16[M, 12, 64]");
    Shape flat = {1, {ir_poly_mul(job, f.m, f.n, &overflow)}};
    assert_string_equal(type_of(job, &f, ir_graph_reshape(job, f.graph, x, &flat, here)), "bf16[M*N]");
    uint32_t third = ir_graph_const(job, f.graph, DTYPE_BF16, 1.0 / 3, 0, here);
    double bits;
    memcpy(&bits, &f.graph->values.at[third].bits, sizeof bits);
    assert_true(bits == 0.333984375);
}

/* ---- refusals ---- */

typedef void Refused(Job *job, Fixture *f, uint32_t x);

static void meets_other(Job *job, Fixture *f, uint32_t x) {
    op2(job, f, OP_ADD, x, input(job, f, DTYPE_F32, 1, &f->m));
}
static void meets_number(Job *job, Fixture *f, uint32_t x) {
    Poly wide = number(job, 768);
    op2(job, f, OP_ADD, x, input(job, f, DTYPE_F32, 1, &wide));
}
static void floats_as_bools(Job *job, Fixture *f, uint32_t x) { op2(job, f, OP_AND, x, x); }
static void any_of_floats(Job *job, Fixture *f, uint32_t x) {
    ir_graph_reduce(job, f->graph, REDUCTION_ANY, x, 1, false, here);
}
static void slice_beyond(Job *job, Fixture *f, uint32_t x) {
    Item items[] = {{ITEM_RANGE, f->zero, f->m, 0}, {ITEM_RANGE, f->zero, number(job, 769), 0}};
    ir_graph_index(job, f->graph, x, items, 2, here);
}
static void slice_below(Job *job, Fixture *f, uint32_t x) {
    Item items[] = {{ITEM_RANGE, number(job, -1), f->m, 0}, {ITEM_RANGE, f->zero, f->n, 0}};
    ir_graph_index(job, f->graph, x, items, 2, here);
}
static void slice_reversed(Job *job, Fixture *f, uint32_t x) {
    Item items[] = {{ITEM_RANGE, f->zero, f->m, 0}, {ITEM_RANGE, number(job, 5), number(job, 4), 0}};
    ir_graph_index(job, f->graph, x, items, 2, here);
}
static void at_beyond(Job *job, Fixture *f, uint32_t x) {
    Item items[] = {{ITEM_RANGE, f->zero, f->m, 0}, {ITEM_AT, f->n, f->zero, 0}};
    ir_graph_index(job, f->graph, x, items, 2, here);
}
static void gather_by_floats(Job *job, Fixture *f, uint32_t x) {
    Item items[] = {{ITEM_GATHER, f->zero, f->zero, x}, {ITEM_RANGE, f->zero, f->n, 0}};
    ir_graph_index(job, f->graph, x, items, 2, here);
}
static void two_gathers(Job *job, Fixture *f, uint32_t x) {
    uint32_t i = input(job, f, DTYPE_I64, 0, NULL);
    Item items[] = {{ITEM_GATHER, f->zero, f->zero, i}, {ITEM_GATHER, f->zero, f->zero, i}};
    ir_graph_index(job, f->graph, x, items, 2, here);
}
static void seven_dims(Job *job, Fixture *f, uint32_t x) {
    Item items[7] = {{ITEM_RANGE, f->zero, f->m, 0}, {ITEM_RANGE, f->zero, f->n, 0}};
    for (int i = 2; i < 7; i++) items[i].kind = ITEM_NEW_AXIS;
    ir_graph_index(job, f->graph, x, items, 7, here);
}
static void other_count(Job *job, Fixture *f, uint32_t x) {
    Shape shape = {2, {f->m, number(job, 767)}};
    ir_graph_reshape(job, f->graph, x, &shape, here);
}
static void too_large(Job *job, Fixture *f, uint32_t x) {
    (void)x;
    Poly half = number(job, (int64_t)1 << 31);
    uint32_t a = input(job, f, DTYPE_F32, 2, (Poly[]){half, f->one}), b = input(job, f, DTYPE_F32, 1, &half);
    op2(job, f, OP_ADD, a, b);
}

typedef struct Refusal {
    Refused *make;
    const char *says;
} Refusal;

static void refuse(Job *job, void *state) {
    Fixture f = fixture(job);
    uint32_t x = input(job, &f, DTYPE_BF16, 2, (Poly[]){f.m, f.n});
    ((const Refusal *)state)->make(job, &f, x);
}

static void refusals(void **unused) {
    (void)unused;
    static const Refusal cases[] = {{meets_other, "do not broadcast in +"},
                                    {meets_number, "f32[768]"},
                                    {floats_as_bools, "must be bool"},
                                    {any_of_floats, "any takes bool"},
                                    {slice_beyond, "ends beyond its dim"},
                                    {slice_below, "starts below 0"},
                                    {slice_reversed, "ends before it starts"},
                                    {at_beyond, "beyond its dim"},
                                    {gather_by_floats, "integer tensor"},
                                    {two_gathers, "an index takes one integer tensor, found more"},
                                    {seven_dims, "a tensor has at most 6 dims, found more"},
                                    {other_count, "from 768*M to 767*M"},
                                    {too_large, "2^62"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Job *job = ir_job_create(NULL);
        Refusal item = cases[i];
        assert_int_equal(ir_job_run(job, refuse, &item), STATUS_REJECTED);
        const char *report = ir_job_report(job);
        if (!strstr(report, item.says)) fail_msg("no '%s' in %s", item.says, report);
        assert_int_equal(ir_diagnostic(job, 0)->place.start, here.start);
        ir_job_free(job);
    }
}

/* ---- disjoint slices, equality ---- */

static Item range(Poly start, Poly stop) { return (Item){ITEM_RANGE, start, stop, 0}; }

static void disjoint(Job *job, void *state) {
    (void)state;
    Fixture f = fixture(job);
    bool overflow = false;
    Item whole = range(f.zero, f.n), all_m = range(f.zero, f.m);
    Poly end = ir_poly_add(job, f.m, f.q, &overflow);
    Item head = range(f.zero, f.m), tail = range(f.m, end), at_m = {ITEM_AT, f.m, f.zero, 0};
    assert_true(ir_items_disjoint(job, f.graph, (Item[]){head, whole}, (Item[]){tail, whole}, 2));
    assert_true(ir_items_disjoint(job, f.graph, (Item[]){tail, whole}, (Item[]){head, whole}, 2));
    assert_true(ir_items_disjoint(job, f.graph, (Item[]){head, whole}, (Item[]){at_m, whole}, 2));
    assert_false(ir_items_disjoint(job, f.graph, (Item[]){tail, whole}, (Item[]){at_m, whole}, 2));
    assert_false(ir_items_disjoint(job, f.graph, (Item[]){head}, (Item[]){range(f.q, end)}, 1)); /* Q may be below M */
    assert_true(ir_items_disjoint(job, f.graph, (Item[]){all_m, range(f.zero, number(job, 384))},
                                  (Item[]){all_m, range(number(job, 384), f.n)}, 2));
    assert_false(ir_items_disjoint(job, f.graph, (Item[]){all_m, range(f.zero, number(job, 385))},
                                   (Item[]){all_m, range(number(job, 384), f.n)}, 2));
    Item gather = {ITEM_GATHER, f.zero, f.zero, 0};
    assert_false(ir_items_disjoint(job, f.graph, (Item[]){gather}, (Item[]){at_m}, 1));
    assert_false(ir_items_disjoint(job, f.graph, NULL, NULL, 0));
}

static Graph *sample(Job *job, int variant) {
    Fixture f = fixture(job);
    uint32_t x = input(job, &f, variant == 1 ? DTYPE_F16 : DTYPE_BF16, 2, (Poly[]){f.m, f.n});
    uint32_t y = op2(job, &f, variant == 2 ? OP_SUB : OP_ADD, x,
                     ir_graph_const(job, f.graph, DTYPE_F32, variant == 3 ? 2 : 1, 0, here));
    y = ir_graph_reduce(job, f.graph, REDUCTION_ADD, y, variant == 4 ? 1 : 2, variant == 5, here);
    if (variant == 6) f.graph->dims.at[0].hint = 9;
    if (variant == 7)
        f.graph->values.at[y].name = "inner", f.graph->values.at[y].place = (Place){9, 9},
        f.graph->values.at[y].origin = 3;
    Tensor *out = IR_PUSH(job, &f.graph->outputs);
    *out = (Tensor){.name = variant == 8 ? "b" : "a",
                    .dtype = DTYPE_F32,
                    .value = y,
                    .inplace = IR_NONE,
                    .accumulate = variant == 9};
    out->shape = f.graph->values.at[y].shape;
    return f.graph;
}

static void equality(Job *job, void *state) {
    (void)state;
    Graph *first = sample(job, 0);
    for (int variant = 0; variant < 10; variant++) {
        bool same = variant == 0 || variant == 7;
        assert_int_equal(ir_graph_equal(first, sample(job, variant)), same);
        assert_int_equal(ir_graph_equal(sample(job, variant), first), same);
    }
}

static void run(void (*work)(Job *, void *)) {
    Job *job = ir_job_create(NULL);
    Status status = ir_job_run(job, work, NULL);
    if (status) fail_msg("%s", ir_job_report(job));
    ir_job_free(job);
}
static void test_types(void **unused) {
    (void)unused;
    run(types);
}
static void test_disjoint(void **unused) {
    (void)unused;
    run(disjoint);
}
static void test_equality(void **unused) {
    (void)unused;
    run(equality);
}

/* What a dim is planned with is what it may be. */
static void test_guesses(void **unused) {
    (void)unused;
    static const struct {
        int64_t hint, max, multiple, most, hinted, guess;
    } cases[] = {
        {-1, -1, 1, -1, -1, 1024}, {-1, -1, 3, -1, -1, 1023},       {-1, -1, 1025, -1, -1, 1025},
        {7, -1, 2, -1, 6, 6},      {1, -1, 1024, -1, 1024, 1024},   {0, -1, 8, -1, 0, 0},
        {-1, 7, 2, 6, 6, 6},       {-1, 1024, 3, 1023, 1023, 1023}, {-1, 5, 8, 0, 0, 0},
        {9, 7, 2, 6, 6, 6},        {5, 100, 1, 100, 5, 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const Dim dim = {.value = -1, .hint = cases[i].hint, .max = cases[i].max, .multiple = cases[i].multiple};
        assert_int_equal(ir_dim_most(&dim), cases[i].most);
        assert_int_equal(ir_dim_hint(&dim), cases[i].hinted);
        assert_int_equal(ir_dim_guess(&dim), cases[i].guess);
    }
    const Dim fixed = {.value = 5, .hint = -1, .max = -1, .multiple = 1};
    assert_int_equal(ir_dim_most(&fixed) + ir_dim_hint(&fixed) + ir_dim_guess(&fixed), 15);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_types), cmocka_unit_test(refusals),
                                       cmocka_unit_test(test_disjoint), cmocka_unit_test(test_equality),
                                       cmocka_unit_test(test_guesses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
