/* What a graph says of inputs that are indices, at the dims of a launch, and what is drawn for them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/cli/tensors.h"
#include "runtime/normgen.h"
#include "tests/support/fail_alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NO_INDEX = -1, MOST = 3 };

typedef struct Case {
    const char *name, *inputs, *nodes;
    int64_t v, w;         /* dims that are given at launch */
    int64_t counts[MOST]; /* of the inputs in order */
} Case;

static const Case cases[] = {
    {"a table", "t: 'f32[V, 2]', i: 'i32[6]'", "y: 't[i]'", 5, 0, {NO_INDEX, 5}},
    {"one row", "t: 'f32[V, 2]', i: 'i64[6]'", "y: 't[i]'", 1, 0, {NO_INDEX, 1}},
    {"no row", "t: 'f32[V, 2]', i: 'i64[6]'", "y: 't[i]'", 0, 0, {NO_INDEX, 0}},
    {"many rows", "t: 'f32[V, 2]', i: 'i64[6]'", "y: 't[i]'", 123456789, 0, {NO_INDEX, 123456789}},
    {"rows that are known", "t: 'f32[7, 2]', i: 'i64[6]'", "y: 't[i]'", 0, 0, {NO_INDEX, 7}},
    {"columns", "t: 'f32[V, 2*W]', i: 'i32[6]'", "y: 't[:, i]'", 5, 3, {NO_INDEX, 6}},
    {"a slice of a table", "t: 'f32[V, 2]', i: 'i32[6]'", "y: 't[2:][i]'", 5, 0, {NO_INDEX, 3}},
    {"a slice that these dims forbid", "t: 'f32[V, 2]', i: 'i32[6]'", "y: 't[2:][i]'", 1, 0, {NO_INDEX, 0}},
    {"a table that is computed", "t: 'f32[V, W]', i: 'i32[6]'", "y: 'sum(t * 2, -1)[i]'", 4, 9, {NO_INDEX, 4}},
    {"two tables", "t: 'f32[V]', u: 'f32[W]', i: 'i32[6]'", "y: 't[i] + u[i]'", 4, 9, {NO_INDEX, NO_INDEX, 4}},
    {"the other is shorter", "t: 'f32[V]', u: 'f32[W]', i: 'i32[6]'", "y: 't[i] + u[i]'", 9, 2, {-1, -1, 2}},
    {"two indices", "t: 'f32[V, W]', i: 'i32[6]', k: 'i8[6]'", "y: 't[i][:, k]'", 9, 2, {NO_INDEX, 9, 2}},
    {"an index that is picked", "t: 'f32[V]', i: 'i32[W]', k: 'i32[6]'", "y: 't[i[k]]'", 9, 2, {NO_INDEX, 9, 2}},
    {"reshaped", "t: 'f32[V]', i: 'i32[6]'", "y: 't[reshape(i, [2, 3])]'", 9, 0, {NO_INDEX, 9}},
    {"a slice of an index", "t: 'f32[V]', i: 'i32[6]'", "y: 't[i[2:, None]]'", 9, 0, {NO_INDEX, 9}},
    {"cast to a wider dtype", "t: 'f32[V]', i: 'i8[6]'", "y: 't[cast(i, i64)]'", 9, 0, {NO_INDEX, 9}},
    {"cast to a narrower dtype", "t: 'f32[V]', i: 'i64[6]'", "y: 't[cast(i, i8)]'", 1000, 0, {NO_INDEX, 128}},
    {"there and back", "t: 'f32[V]', i: 'i64[6]'", "y: 't[cast(cast(i, u8), i32)]'", 1000, 0, {NO_INDEX, 256}},
    {"an i8 that holds it", "t: 'f32[V]', i: 'i8[6]'", "y: 't[i]'", 127, 0, {NO_INDEX, 127}},
    {"an i8 that does not", "t: 'f32[V]', i: 'i8[6]'", "y: 't[i]'", 129, 0, {NO_INDEX, 128}},
    {"a u8 that does not", "t: 'f32[V]', i: 'u8[6]'", "y: 't[i]'", 1000, 0, {NO_INDEX, 256}},
    {"an i32 that does not",
     "t: {dtype: f32, shape: [V], strides: [0]}, i: 'i32[6]'",
     "y: 't[i]'",
     INT64_C(1) << 40,
     0,
     {NO_INDEX, INT64_C(1) << 31}},
    {"a bool", "t: 'f32[V]', i: 'bool[6]'", "y: 't[cast(i, i32)]'", 9, 0, {NO_INDEX, 2}},
    {"a padded one", "t: 'f32[V]', i: 'i32[6]', k: 'bool[6]'", "y: 't[where(k, i, 0)]'", 9, 0, {NO_INDEX, 9, -1}},
    {"the condition is none", "t: 'f32[V]', i: 'i32[6]'", "y: 't[where(i < 3, arange(6), 1)]'", 9, 0, {NO_INDEX, -1}},
    {"clamped", "t: 'f32[V]', i: 'i32[6]'", "y: 't[clamp(i, 0, V - 1)]'", 9, 0, {NO_INDEX, 9}},
    {"the largest", "t: 'f32[V]', i: 'i32[6, 2]'", "y: 't[amax(i, -1)]'", 9, 0, {NO_INDEX, 9}},
    {"a sum", "t: 'f32[V]', i: 'i32[6, 2]'", "y: 't[sum(i, -1)]'", 9, 0, {NO_INDEX, NO_INDEX}},
    {"arithmetic", "t: 'f32[V]', i: 'i32[6]'", "y: 't[i + 1]'", 9, 0, {NO_INDEX, NO_INDEX}},
    {"of a float", "t: 'f32[V]', i: 'f32[6]'", "y: 't[cast(i, i32)]'", 9, 0, {NO_INDEX, NO_INDEX}},
    {"an integer that is added", "t: 'f32[V]', i: 'i32[V]'", "y: 't + i'", 9, 0, {NO_INDEX, NO_INDEX}},
    {"both", "t: 'f32[V]', i: 'i32[6]'", "y: 't[i] * i'", 3, 0, {NO_INDEX, 3}},
};

static ng_program *compile(ng_context *context, const Case *c, const char *last_pass) {
    char *text = NULL;
    ng_program *program = NULL;
    ng_text why = {0};
    assert_true(asprintf(&text, "graph: g\ndims: {V: any, W: any}\ninputs: {%s}\nnodes: {%s}\noutputs: {y: f32}\n",
                         c->inputs, c->nodes) > 0);
    const ng_compile_options options = {.size = sizeof options, .last_pass = last_pass};
    const ng_status status = ng_compile(context, text, strlen(text), &options, &program, &why);
    if (status) print_message("%s: %s\n", c->name, why.bytes);
    assert_int_equal(status, NG_OK);
    ng_text_free(&why);
    free(text);
    return program;
}

static ng_context *open_context(const Allocator *allocator) {
    ng_context *context = NULL;
    ng_context_options options = {.size = sizeof options, .device = NG_DEVICE_NONE};
    if (allocator)
        options.alloc = allocator->alloc, options.release = allocator->release,
        options.allocator_state = allocator->state;
    assert_int_equal(ng_context_create(&options, &context, NULL), NG_OK);
    return context;
}

static void expect(const ng_program *program, const Case *c) {
    ng_program_facts facts = {.size = sizeof facts};
    assert_int_equal(ng_program_query(program, &facts), NG_OK);
    const int64_t dims[2] = {c->v, c->w};
    for (uint32_t i = 0; i < facts.inputs; i++) {
        int64_t count = NO_INDEX;
        const ng_status status = ng_arg_indices(program, i, dims, &count);
        if (status != (c->counts[i] == NO_INDEX ? NG_USAGE : NG_OK) || count != c->counts[i])
            fail_msg("%s: input %u has %lld indices to choose from (%s), not %lld", c->name, i, (long long)count,
                     ng_status_name(status), (long long)c->counts[i]);
    }
}

static void test_counts(void **state) {
    (void)state;
    ng_context *context = open_context(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ng_program *checked = compile(context, &cases[i], "expand"), *whole = compile(context, &cases[i], NULL);
        expect(checked, &cases[i]);
        expect(whole, &cases[i]);
        ng_program_free(checked);
        ng_program_free(whole);
    }
    ng_context_free(context);
}

/* What no output depends on does not run. */
static void test_dead(void **state) {
    (void)state;
    static const Case dead = {
        "a dead node", "t: 'f32[V]', i: 'i32[6]', u: 'f32[2]'", "y: 't[i]', z: 'u[i]'", 9, 0, {NO_INDEX, 9, NO_INDEX}};
    ng_context *context = open_context(NULL);
    ng_program *program = compile(context, &dead, NULL);
    expect(program, &dead);
    ng_program_free(program);
    ng_context_free(context);
}

static void test_refused(void **state) {
    (void)state;
    FailAlloc memory = {0};
    const Allocator allocator = fail_allocator(&memory);
    ng_context *context = open_context(&allocator);
    ng_program *program = compile(context, &cases[0], NULL);
    int64_t dims[2] = {5, 0}, count;
    assert_int_equal(ng_arg_indices(program, 2, dims, &count), NG_USAGE);
    assert_int_equal(ng_arg_indices(NULL, 1, dims, &count), NG_USAGE);
    assert_int_equal(ng_arg_indices(program, 1, dims, NULL), NG_USAGE);
    assert_int_equal(ng_arg_indices(program, 1, NULL, &count), NG_USAGE);
    dims[0] = -1;
    assert_int_equal(ng_arg_indices(program, 1, dims, &count), NG_USAGE);
    dims[0] = 5;
    uint64_t failed = 0;
    for (ng_status status = NG_SYSTEM; status != NG_OK; failed += status != NG_OK) {
        memory.calls = 0;
        memory.fail_at = failed + 1;
        status = ng_arg_indices(program, 1, dims, &count);
        assert_true(status == NG_OK || status == NG_SYSTEM);
    }
    assert_true(failed >= 2);
    memory.fail_at = 0;
    ng_program_free(program);
    ng_context_free(context);
}

/* ---- what is drawn ---- */

static int64_t element(const Tensor *tensor, uint64_t at) {
    int64_t value;
    if (tensor->arg.dtype != NG_I64)
        return (int64_t)ng_load(tensor->arg.dtype, tensor->first + at * ng_dtype_bytes(tensor->arg.dtype));
    memcpy(&value, tensor->first + at * sizeof value, sizeof value);
    return value;
}

static Tensor draw(ng_dtype dtype, int64_t count, int64_t indices, uint64_t seed) {
    Tensor tensor = {.arg = {.name = "i", .dtype = dtype, .rank = 1},
                     .extent = {count},
                     .stride = {1},
                     .elements = (uint64_t)count,
                     .indices = indices};
    tensor.memory = calloc((size_t)count, sizeof(int64_t));
    assert_non_null(tensor.memory);
    tensor.first = tensor.memory;
    cli_tensor_random(&tensor, seed);
    return tensor;
}

/* Each of the indices about as often: its count has deviation sqrt(each * (1 - 1 / indices)). */
static void expect_even(ng_dtype dtype, int64_t indices) {
    enum { EACH = 400 };
    int64_t *met = calloc((size_t)indices, sizeof *met);
    assert_non_null(met);
    Tensor tensor = draw(dtype, indices * EACH, indices, 7);
    for (uint64_t i = 0; i < tensor.elements; i++) {
        const int64_t index = element(&tensor, i);
        if (index < 0 || index >= indices)
            fail_msg("%s below %lld: drew %lld", ng_dtype_name(dtype), (long long)indices, (long long)index);
        met[index]++;
    }
    for (int64_t i = 0; i < indices; i++)
        if (met[i] < EACH - 6 * 20 || met[i] > EACH + 6 * 20)
            fail_msg("%s below %lld: %lld came %lld times, not about %d", ng_dtype_name(dtype), (long long)indices,
                     (long long)i, (long long)met[i], EACH);
    free(tensor.memory);
    free(met);
}

static void test_even(void **state) {
    (void)state;
    static const int64_t counts[] = {1, 2, 3, 4, 5, 127, 128};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        expect_even(NG_I8, counts[i]);
        expect_even(NG_I64, counts[i]);
    }
    expect_even(NG_U8, 256);
    expect_even(NG_BOOL, 2);
    expect_even(NG_I32, 1000);
}

/* Wider than 32 bits, and than a double: the sixteenths of the range come about as often, odd ones among them. */
static void test_wide(void **state) {
    (void)state;
    static const int64_t counts[] = {INT64_C(0x100000001), INT64_C(0x7ffffffffffff), (INT64_C(1) << 61) + 1};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        enum { EACH = 400 };
        int64_t met[16] = {0}, odd = 0;
        Tensor tensor = draw(NG_I64, 16 * EACH, counts[c], 7);
        for (uint64_t i = 0; i < tensor.elements; i++) {
            const int64_t index = element(&tensor, i);
            assert_true(index >= 0 && index < counts[c]);
            met[index / (counts[c] / 16 + 1)]++;
            odd += index & 1;
        }
        for (int i = 0; i < 16; i++) assert_true(met[i] > EACH - 6 * 20 && met[i] < EACH + 6 * 20);
        assert_true(odd > 16 * EACH / 2 - 6 * 40 && odd < 16 * EACH / 2 + 6 * 40);
        free(tensor.memory);
    }
    /* all but the last bit of a product that carries */
    Tensor tensor = draw(NG_I64, 4096, INT64_MAX / 2, 3), half = draw(NG_I64, 4096, INT64_MAX / 4, 3);
    for (uint64_t i = 0; i < tensor.elements; i++) assert_true(llabs(element(&tensor, i) - 2 * element(&half, i)) <= 2);
    free(tensor.memory);
    free(half.memory);
}

/* Integers that index nothing are 0 to 3, and bools either: for a seed always these. */
static void test_others(void **state) {
    (void)state;
    static const int64_t known[] = {2, 2, 1, 3, 3, 1, 2, 3};
    Tensor integers = draw(NG_I32, 8, 0, 5), bools = draw(NG_BOOL, 8, 0, 5);
    for (uint64_t i = 0; i < 8; i++) {
        assert_int_equal(element(&integers, i), known[i]);
        assert_int_equal(element(&bools, i), known[i] / 2);
    }
    free(integers.memory);
    free(bools.memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts), cmocka_unit_test(test_dead), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_even),   cmocka_unit_test(test_wide), cmocka_unit_test(test_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
