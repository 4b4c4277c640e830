/* Element types: rounding against the nearest of all values, stored bits, ulps, integer casts. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/dtype.h"
#include "tests/support/random.h"

static const DType small[] = {DTYPE_F16, DTYPE_BF16, DTYPE_F8E4M3, DTYPE_F8E5M2};

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* All finite values >= 0 of a dtype of at most 16 bits, ascending: index = bit pattern. */
static uint32_t all_values(DType dtype, double *values) {
    uint32_t count = 0;
    for (uint32_t bits = 0; bits < 1u << (ir_dtype(dtype)->bytes * 8 - 1); bits++) {
        double value = ir_load_float(dtype, &bits);
        if (isfinite(value)) values[count++] = value;
    }
    return count;
}

/* Nearest by search; the even bit pattern on a tie; one step past the largest as if the format went on. */
static double nearest(const double *values, uint32_t count, DType dtype, double value) {
    double size = fabs(value), top = values[count - 1], step = top - values[count - 2];
    if (size >= top) {
        bool stays = size - top < step / 2 || ir_dtype(dtype)->bytes == 1;
        return copysign(stays ? top : (double)INFINITY, value);
    }
    uint32_t low = 0, high = count - 1;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (values[middle] <= size)
            low = middle;
        else
            high = middle;
    }
    double below = size - values[low], above = values[high] - size;
    bool up = above < below || (above == below && low % 2 == 1);
    return copysign(values[up ? high : low], value);
}

static void stored_bits_round_trip(void **unused) {
    (void)unused;
    static double values[65536];
    for (size_t d = 0; d < sizeof small / sizeof *small; d++) {
        DType dtype = small[d];
        uint32_t count = all_values(dtype, values), limit = 1u << ir_dtype(dtype)->bytes * 8;
        for (uint32_t i = 1; i < count; i++) assert_true(values[i] > values[i - 1]);
        assert_true(values[count - 1] == ir_dtype(dtype)->max_finite);
        assert_true(values[1] == ir_ulp(dtype, 0));
        qsort(values, count, sizeof *values, ascending);
        for (uint32_t bits = 0; bits < limit; bits++) {
            double value = ir_load_float(dtype, &bits);
            uint32_t again = 0;
            ir_store_float(dtype, &again, value);
            if (isnan(value)) {
                assert_true(isnan(ir_load_float(dtype, &again)));
            } else if (isinf(value) && ir_dtype(dtype)->bytes == 1) {
                assert_true(fabs(ir_load_float(dtype, &again)) == ir_dtype(dtype)->max_finite); /* saturates */
            } else {
                assert_int_equal(again, bits);
            }
        }
    }
    const uint16_t half_one = 0x3c00, brain_third = 0x3eab;
    const uint8_t e4m3_448 = 0x7e, e5m2_57344 = 0x7b;
    assert_true(ir_load_float(DTYPE_F16, &half_one) == 1);
    assert_true(ir_load_float(DTYPE_BF16, &brain_third) == 0.333984375);
    assert_true(ir_load_float(DTYPE_F8E4M3, &e4m3_448) == 448);
    assert_true(ir_load_float(DTYPE_F8E5M2, &e5m2_57344) == 57344);
}

static void rounds_to_nearest(void **unused) {
    (void)unused;
    static double values[65536];
    Random random = {random_seed()};
    for (size_t d = 0; d < sizeof small / sizeof *small; d++) {
        DType dtype = small[d];
        uint32_t count = all_values(dtype, values);
        for (int i = 0; i < 200000; i++) {
            uint32_t k = random_below(&random, count - 1);
            double low = values[k], high = values[k + 1], middle = (low + high) / 2, value = middle;
            switch (random_below(&random, 5)) {
            case 0: break; /* a tie */
            case 1: value = nextafter(middle, high); break;
            case 2: value = nextafter(middle, low); break;
            case 3: value = low + (high - low) * random_unit(&random); break;
            default: value = ldexp(random_normal(&random), (int)random_below(&random, 300) - 150);
            }
            if (random_below(&random, 2)) value = -value;
            double expected = nearest(values, count, dtype, value), got = ir_round(dtype, value);
            assert_memory_equal(&expected, &got, sizeof got);
            uint16_t bits = 0;
            ir_store_float(dtype, &bits, value);
            double stored = ir_load_float(dtype, &bits);
            assert_memory_equal(&expected, &stored, sizeof stored);
        }
        assert_true(isnan(ir_round(dtype, NAN)));
        double top = ir_dtype(dtype)->max_finite;
        assert_true(ir_round(dtype, INFINITY) == (ir_dtype(dtype)->bytes == 1 ? top : (double)INFINITY));
    }
    for (int i = 0; i < 200000; i++) {
        double value = ldexp(random_normal(&random), (int)random_below(&random, 300) - 160);
        double got = ir_round(DTYPE_F32, value);
        assert_true(got == (double)(float)value);
        assert_true(ir_round(DTYPE_F64, value) == value);
    }
}

static void ulps(void **unused) {
    (void)unused;
    assert_true(ir_ulp(DTYPE_F32, 1) == 0x1p-23);
    assert_true(ir_ulp(DTYPE_F32, nextafter(1, 0)) == 0x1p-24);
    assert_true(ir_ulp(DTYPE_F32, 0) == 0x1p-149);
    assert_true(ir_ulp(DTYPE_F32, 1e-42) == 0x1p-149);
    assert_true(ir_ulp(DTYPE_F32, INFINITY) == 0x1p104);
    assert_true(ir_ulp(DTYPE_BF16, -256) == 2);
    assert_true(ir_ulp(DTYPE_F16, 1e-9) == 0x1p-24);
    assert_true(ir_ulp(DTYPE_F64, 1) == 0x1p-52);
    assert_true(ir_ulp(DTYPE_F64, 0) == 0x1p-1074);
    assert_true(ir_ulp(DTYPE_F64, 0x1p-1000) == 0x1p-1052);
    assert_true(ir_ulp(DTYPE_F8E4M3, 448) == 32);
}

static void integer_casts(void **unused) {
    (void)unused;
    const struct {
        DType dtype;
        double value;
        int64_t expected;
    } casts[] = {{DTYPE_I8, 127.9, 127},
                 {DTYPE_I8, 128, 127},
                 {DTYPE_I8, -128.9, -128},
                 {DTYPE_I8, -1e30, -128},
                 {DTYPE_U8, -0.9, 0},
                 {DTYPE_U8, -5, 0},
                 {DTYPE_U8, 255.5, 255},
                 {DTYPE_U8, 1e9, 255},
                 {DTYPE_I32, 2147483647.5, INT32_MAX},
                 {DTYPE_I32, NAN, 0},
                 {DTYPE_I32, -3e9, INT32_MIN},
                 {DTYPE_I64, 1e300, INT64_MAX},
                 {DTYPE_I64, -1e300, INT64_MIN},
                 {DTYPE_I64, -INFINITY, INT64_MIN},
                 {DTYPE_I64, -2.7, -2},
                 {DTYPE_BOOL, 0.1, 1},
                 {DTYPE_BOOL, -0.0, 0}};
    for (size_t i = 0; i < sizeof casts / sizeof *casts; i++) {
        assert_int_equal(ir_float_to_int(casts[i].dtype, casts[i].value), casts[i].expected);
    }
    assert_int_equal(ir_wrap_int(DTYPE_I8, 128), -128);
    assert_int_equal(ir_wrap_int(DTYPE_I8, -129), 127);
    assert_int_equal(ir_wrap_int(DTYPE_U8, -1), 255);
    assert_int_equal(ir_wrap_int(DTYPE_I32, (int64_t)1 << 31), INT32_MIN);
    assert_int_equal(ir_wrap_int(DTYPE_I32, INT64_MIN + 5), 5);
    assert_int_equal(ir_wrap_int(DTYPE_I64, INT64_MIN), INT64_MIN);
    assert_int_equal(ir_wrap_int(DTYPE_BOOL, -4), 1);
    const DType ints[] = {DTYPE_I64, DTYPE_I32, DTYPE_I8, DTYPE_U8, DTYPE_BOOL};
    Random random = {random_seed()};
    for (int i = 0; i < 10000; i++) {
        DType dtype = ints[random_below(&random, 5)];
        int64_t value = (int64_t)random_bits(&random);
        unsigned char element[9];
        memset(element, 0x5a, sizeof element);
        ir_store_int(dtype, element + 1, value); /* unaligned */
        assert_int_equal(ir_load_int(dtype, element + 1), ir_wrap_int(dtype, value));
        assert_int_equal(element[0], 0x5a);
        for (size_t k = ir_dtype(dtype)->bytes + 1u; k < sizeof element; k++) assert_int_equal(element[k], 0x5a);
    }
}

static void names_and_promotion(void **unused) {
    (void)unused;
    DType dtype;
    for (unsigned i = 0; i < DTYPE_COUNT; i++) {
        const DTypeRow *row = ir_dtype((DType)i);
        assert_true(ir_dtype_find(row->name, strlen(row->name), &dtype) && dtype == (DType)i);
        assert_true(ir_dtype_find(row->torch_name, strlen(row->torch_name), &dtype) && dtype == (DType)i);
        for (unsigned k = 0; k < DTYPE_COUNT; k++) {
            assert_int_equal(ir_promote((DType)i, (DType)k), ir_promote((DType)k, (DType)i));
        }
    }
    assert_false(ir_dtype_find("f3", 2, &dtype));
    assert_false(ir_dtype_find("f322", 4, &dtype));
    assert_true(ir_dtype_find("f32xyz", 3, &dtype));
    assert_int_equal(ir_promote(DTYPE_BF16, DTYPE_F16), DTYPE_F32);
    assert_int_equal(ir_promote(DTYPE_I32, DTYPE_F8E4M3), DTYPE_F32);
    assert_int_equal(ir_promote(DTYPE_BOOL, DTYPE_U8), DTYPE_I64);
    assert_int_equal(ir_promote(DTYPE_BOOL, DTYPE_BOOL), DTYPE_BOOL);
    assert_int_equal(ir_promote(DTYPE_I64, DTYPE_F64), DTYPE_F64);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored_bits_round_trip), cmocka_unit_test(rounds_to_nearest),   cmocka_unit_test(ulps),
        cmocka_unit_test(integer_casts),          cmocka_unit_test(names_and_promotion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
