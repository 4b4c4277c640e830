/* The op tables: references against the C library, integers against wide arithmetic, derivatives against differences,
 * dtype rules, names. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "ir/ops.h"
#include "tests/support/random.h"

static void every_row_is_whole(void **unused) {
    (void)unused;
    for (unsigned i = 0; i < OP_PRIMITIVES; i++) {
        const OpRow *row = ir_op((Op)i);
        Op found;
        assert_true(ir_op_find(row->name, strlen(row->name), &found) && found == (Op)i);
        assert_string_equal(ir_op_name((Op)i), row->name);
        assert_int_equal(row->reference == NULL, row->rule == RULE_LOGIC);
        assert_int_equal(row->integer == NULL, row->rule == RULE_FLOAT);
        assert_true(row->arity >= 1 && row->arity <= 3 && row->ulps >= 0);
        const char *operands[] = {"$a", "$b", "$c"};
        for (int k = 0; k < 3; k++) assert_int_equal(strstr(row->cuda, operands[k]) != NULL, k < row->arity);
    }
    for (unsigned i = OP_PRIMITIVES; i < OP_COUNT; i++) assert_true(strlen(ir_op_name((Op)i)) > 2);
    assert_string_equal(ir_op_name(OP_PARTIAL_ACCUMULATE), "partial_accumulate");
    assert_string_equal(ir_op(OP_MOD)->derivative_text[1], "-floordiv(a, b)");
    for (unsigned i = 0; i < REDUCTION_COUNT; i++) {
        const ReductionRow *row = ir_reduction((Reduction)i);
        Reduction found;
        assert_true(ir_reduction_find(row->name, strlen(row->name), &found) && found == (Reduction)i);
        if (*row->language) {
            assert_true(ir_reduction_find_language(row->language, strlen(row->language), &found));
            assert_int_equal(found, i);
        }
        assert_int_equal(row->results, i >= REDUCTION_ONLINE ? 2 : 1);
        if (!row->combine) continue;
        static const double numbers[] = {2.5, -2.5, 1e308, -1e308, (double)INFINITY, -(double)INFINITY};
        static const int64_t integers[] = {7, -7, INT64_MAX, INT64_MIN};
        for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++) {
            assert_true(row->combine(row->identity, numbers[k]) == numbers[k]);
            assert_true(row->combine(numbers[k], row->identity) == numbers[k]);
        }
        for (size_t k = 0; k < sizeof integers / sizeof integers[0]; k++)
            assert_int_equal(row->integer(row->integer_identity, integers[k]), integers[k]);
    }
    Op op;
    Reduction reduction;
    assert_false(ir_op_find("ad", 2, &op) || ir_op_find("", 0, &op) || ir_op_find("cast", 4, &op));
    assert_false(ir_reduction_find_language("", 0, &reduction) || ir_reduction_find_language("add", 3, &reduction));
}

static double call(Op op, double a, double b) { return ir_op(op)->reference(a, b, 0); }

static void special_references(void **unused) {
    (void)unused;
    assert_true(isnan(call(OP_MAXIMUM, NAN, 1)) && isnan(call(OP_MAXIMUM, 1, NAN)) && isnan(call(OP_MINIMUM, NAN, 1)));
    assert_false(signbit(call(OP_MAXIMUM, -0.0, 0.0)) || signbit(call(OP_MAXIMUM, 0.0, -0.0)));
    assert_true(signbit(call(OP_MINIMUM, -0.0, 0.0)) && signbit(call(OP_MINIMUM, 0.0, -0.0)));
    assert_true(call(OP_ROUND, 2.5, 0) == 2 && call(OP_ROUND, 3.5, 0) == 4 && call(OP_ROUND, -2.5, 0) == -2);
    assert_true(call(OP_ROUND, 0.49999999999999994, 0) == 0 &&
                call(OP_ROUND, 4503599627370497.0, 0) == 4503599627370497.0);
    assert_true(call(OP_SIGMOID, -1000, 0) == 0 && call(OP_SIGMOID, 1000, 0) == 1 && call(OP_SIGMOID, 0, 0) == 0.5);
    assert_true(isnan(call(OP_SIGN, NAN, 0)) && call(OP_SIGN, -3, 0) == -1 && call(OP_SIGN, 0, 0) == 0);
    assert_true(call(OP_FLOORDIV, -7, 2) == -4 && call(OP_FLOORDIV, 7, -2) == -4 && call(OP_FLOORDIV, -7, -2) == 3);
    assert_true(call(OP_MOD, -7, 2) == 1 && call(OP_MOD, 7, -2) == -1 && call(OP_MOD, 5.5, 2) == 1.5);
    assert_true(isnan(call(OP_MOD, 1, 0)) && isinf(call(OP_FLOORDIV, 1, 0)));
    Random random = {random_seed()};
    for (int i = 0; i < 200000; i++) {
        double a = (double)(float)(random_normal(&random) * 100), b = (double)(float)(random_normal(&random) * 10);
        double quotient = call(OP_FLOORDIV, a, b), rest = call(OP_MOD, a, b);
        assert_true(quotient == (double)floorl((long double)a / (long double)b));
        assert_true(fabs(quotient * b + rest - a) <= 1e-12 * (fabs(a) + fabs(b)));
        assert_true(rest == 0 || (rest < 0) == (b < 0));
        assert_true(call(OP_ROUND, a, 0) == nearbyint(a));
    }
}

__extension__ typedef __int128 Wide;

static int64_t wrapped(Wide value) { return (int64_t)(uint64_t)value; }

static void integers_wrap(void **unused) {
    (void)unused;
    Random random = {random_seed()};
    for (int i = 0; i < 200000; i++) {
        int64_t a = (int64_t)random_bits(&random) >> random_below(&random, 63),
                b = (int64_t)random_bits(&random) >> random_below(&random, 63);
        if (i == 0) a = INT64_MIN, b = -1;
        if (i == 1) b = 0;
        assert_int_equal(ir_op(OP_ADD)->integer(a, b, 0), wrapped((Wide)a + b));
        assert_int_equal(ir_op(OP_SUB)->integer(a, b, 0), wrapped((Wide)a - b));
        assert_int_equal(ir_op(OP_MUL)->integer(a, b, 0), wrapped((Wide)a * b));
        assert_int_equal(ir_op(OP_NEG)->integer(a, b, 0), wrapped(-(Wide)a));
        Wide quotient = 0, rest = 0;
        if (b) {
            quotient = (Wide)a / b;
            if (quotient * b != a && (a < 0) != (b < 0)) quotient--;
            rest = a - quotient * b;
        }
        assert_int_equal(ir_op(OP_FLOORDIV)->integer(a, b, 0), wrapped(quotient));
        assert_int_equal(ir_op(OP_MOD)->integer(a, b, 0), wrapped(rest));
        int64_t exponent = random_below(&random, 20), power = 1;
        for (int64_t k = 0; k < exponent; k++) power = wrapped((Wide)power * a);
        assert_int_equal(ir_op(OP_POW)->integer(a, exponent, 0), power);
    }
    assert_int_equal(ir_op(OP_POW)->integer(2, -1, 0), 0);
    assert_int_equal(ir_op(OP_POW)->integer(1, -5, 0), 1);
    assert_int_equal(ir_op(OP_POW)->integer(-1, -5, 0), -1);
    assert_int_equal(ir_op(OP_POW)->integer(0, 0, 0), 1);
    assert_int_equal(ir_op(OP_POW)->integer(0, -1, 0), 0);
}

static void derivatives_match_differences(void **unused) {
    (void)unused;
    Random random = {random_seed()};
    uint32_t checked = 0;
    for (unsigned i = 0; i < OP_PRIMITIVES; i++) {
        const OpRow *row = ir_op((Op)i);
        bool flat = row->rule >= RULE_COMPARE;
        for (int k = 0; k < 200 && !flat; k++) {
            double a = fabs(random_normal(&random)) + 0.3, b = fabs(random_normal(&random)) + 0.3, h = 1e-6;
            double y = row->reference(a, b, 0);
            double da = (row->reference(a + h, b, 0) - row->reference(a - h, b, 0)) / (2 * h);
            double db = row->arity > 1 ? (row->reference(a, b + h, 0) - row->reference(a, b - h, 0)) / (2 * h) : 0;
            if (fabs(da) > 1e3 || fabs(db) > 1e3) continue; /* a step between */
            double wanted[2] = {da, db};
            for (int d = 0; d < row->arity && d < 2; d++) {
                double got = row->derivative[d](a, b, y), error = fabs(got - wanted[d]);
                bool jumps =
                    error > 1e-4 * (1 + fabs(got)) && (i == OP_MAXIMUM || i == OP_MINIMUM) && fabs(a - b) < 2 * h;
                if (error > 1e-4 * (1 + fabs(got)) && !jumps)
                    fail_msg("%s d%d at (%a, %a): %a, by differences %a", row->name, d, a, b, got, wanted[d]);
                checked++;
            }
        }
    }
    assert_true(checked > 4000);
}

static DType result_of(Op op, DType a, DType b, DType c) {
    DType operands[] = {a, b, c}, result;
    assert_true(ir_op_dtype(op, operands, &result));
    return result;
}

static void dtype_rules(void **unused) {
    (void)unused;
    DType any = DTYPE_F32, result;
    assert_int_equal(result_of(OP_ADD, DTYPE_BF16, DTYPE_BF16, any), DTYPE_F32);
    assert_int_equal(result_of(OP_ADD, DTYPE_BOOL, DTYPE_BOOL, any), DTYPE_I64);
    assert_int_equal(result_of(OP_ADD, DTYPE_I8, DTYPE_BOOL, any), DTYPE_I64);
    assert_int_equal(result_of(OP_MUL, DTYPE_I32, DTYPE_F16, any), DTYPE_F32);
    assert_int_equal(result_of(OP_MUL, DTYPE_I32, DTYPE_F64, any), DTYPE_F64);
    assert_int_equal(result_of(OP_DIV, DTYPE_I64, DTYPE_I64, any), DTYPE_F32);
    assert_int_equal(result_of(OP_EXP, DTYPE_BOOL, any, any), DTYPE_F32);
    assert_int_equal(result_of(OP_EXP, DTYPE_F64, any, any), DTYPE_F64);
    assert_int_equal(result_of(OP_LT, DTYPE_F8E4M3, DTYPE_I64, any), DTYPE_BOOL);
    assert_int_equal(result_of(OP_ISNAN, DTYPE_F16, any, any), DTYPE_BOOL);
    assert_int_equal(result_of(OP_WHERE, DTYPE_BOOL, DTYPE_I64, DTYPE_BF16), DTYPE_F32);
    assert_int_equal(result_of(OP_WHERE, DTYPE_BOOL, DTYPE_BOOL, DTYPE_BOOL), DTYPE_BOOL);
    assert_int_equal(result_of(OP_AND, DTYPE_BOOL, DTYPE_BOOL, any), DTYPE_BOOL);
    DType bad[] = {DTYPE_BOOL, DTYPE_I64, DTYPE_I64}, numbers[] = {DTYPE_I64, DTYPE_F32, DTYPE_F32};
    assert_false(ir_op_dtype(OP_OR, bad, &result));
    assert_false(ir_op_dtype(OP_WHERE, numbers, &result));
    assert_int_equal(ir_op_operand_dtype(OP_LT, (DType[]){DTYPE_BF16, DTYPE_I64}), DTYPE_F32);
    assert_int_equal(ir_op_operand_dtype(OP_EQ, (DType[]){DTYPE_BOOL, DTYPE_BOOL}), DTYPE_BOOL);
    assert_int_equal(ir_op_operand_dtype(OP_NEG, (DType[]){DTYPE_BOOL}), DTYPE_I64);
    assert_int_equal(ir_op_operand_dtype(OP_WHERE, (DType[]){DTYPE_BOOL, DTYPE_I8, DTYPE_F64}), DTYPE_F64);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_row_is_whole), cmocka_unit_test(special_references),
                                       cmocka_unit_test(integers_wrap), cmocka_unit_test(derivatives_match_differences),
                                       cmocka_unit_test(dtype_rules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
