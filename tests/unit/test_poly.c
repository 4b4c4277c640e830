/* Polynomials: the ring's laws on random ones by value, exact division, folding, overflow, printing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "ir/poly.h"
#include "tests/support/random.h"

#define SYMBOLS 4
static const char *const names[SYMBOLS] = {"M", "N", "K", "G"};

static Poly random_poly(Job *job, Random *random, uint32_t terms) {
    bool overflow = false;
    Poly sum = ir_poly_int(job, (int64_t)random_below(random, 7) - 3);
    for (uint32_t i = 0; i < terms; i++) {
        Poly term = ir_poly_int(job, (int64_t)random_below(random, 9) - 4);
        for (uint32_t d = random_below(random, 4); d-- > 0;) {
            term = ir_poly_mul(job, term, ir_poly_symbol(job, random_below(random, SYMBOLS)), &overflow);
        }
        sum = ir_poly_add(job, sum, term, &overflow);
    }
    assert_false(overflow);
    return sum;
}

static int64_t value_of(Poly poly, const int64_t *dims) {
    int64_t value;
    assert_true(ir_poly_eval(poly, dims, SYMBOLS, NULL, 0, &value));
    return value;
}

static void laws(Job *job, void *state) {
    Random random = {*(uint64_t *)state};
    static const int64_t factors[][3] = {{0, 0, 1}, {0, 6, 6}, {0, -1, 1}, {4, -4, 4}, {-9, 6, 3}, {-8, -12, 4}};
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        assert_int_equal(ir_common_factor(factors[i][0], factors[i][1]), factors[i][2]);
        assert_int_equal(ir_common_factor(factors[i][1], factors[i][0]), factors[i][2]);
    }
    Mark mark = ir_mark(job);
    for (int i = 0; i < 3000; i++) {
        ir_reset(job, mark);
        bool overflow = false;
        Poly a = random_poly(job, &random, random_below(&random, 5)),
             b = random_poly(job, &random, random_below(&random, 5));
        int64_t dims[SYMBOLS];
        for (int s = 0; s < SYMBOLS; s++) dims[s] = random_below(&random, 50);
        Poly sum = ir_poly_add(job, a, b, &overflow), product = ir_poly_mul(job, a, b, &overflow);
        Poly difference = ir_poly_sub(job, a, b, &overflow);
        assert_false(overflow);
        assert_int_equal(value_of(sum, dims), value_of(a, dims) + value_of(b, dims));
        assert_int_equal(value_of(difference, dims), value_of(a, dims) - value_of(b, dims));
        assert_int_equal(value_of(product, dims), value_of(a, dims) * value_of(b, dims));
        assert_true(ir_poly_equal(product, ir_poly_mul(job, b, a, &overflow)));
        assert_true(ir_poly_equal(ir_poly_sub(job, sum, b, &overflow), a));
        assert_int_equal(ir_poly_compare(a, b), -ir_poly_compare(b, a));
        assert_int_equal(ir_poly_compare(a, b) == 0, ir_poly_equal(a, b));
        Poly quotient;
        if (b.count) {
            assert_true(ir_poly_div(job, product, b, NULL, &quotient));
            assert_true(ir_poly_equal(quotient, a));
        }
        if (b.count && !ir_poly_is_int(b, NULL)) {
            assert_false(
                ir_poly_div(job, ir_poly_add(job, product, ir_poly_int(job, 1), &overflow), b, NULL, &quotient));
        }
        int64_t some[SYMBOLS] = {dims[0], -1, dims[2], -1};
        Poly folded = ir_poly_fold(job, product, some, SYMBOLS, &overflow);
        assert_int_equal(value_of(folded, dims), value_of(product, dims));
        for (uint32_t t = 0; t < folded.count; t++) {
            for (int k = 0; k < IR_MAX_DEGREE; k++) {
                assert_true(folded.terms[t].symbol[k] != 0 && folded.terms[t].symbol[k] != 2);
            }
        }
    }
}

/* Fractions: the laws hold in them too, and a value that is not whole is none. */
static void fractions(Job *job, void *state) {
    Random random = {*(uint64_t *)state};
    Mark mark = ir_mark(job);
    uint32_t whole = 0;
    for (int i = 0; i < 3000; i++) {
        ir_reset(job, mark);
        bool overflow = false;
        const int64_t d = 1 + random_below(&random, 6), e = 1 + random_below(&random, 6);
        Poly a = random_poly(job, &random, random_below(&random, 5)), b = random_poly(job, &random, 2);
        Poly x = ir_poly_over(job, a, d, &overflow), y = ir_poly_over(job, b, -e, &overflow);
        Poly sum = ir_poly_add(job, x, y, &overflow), product = ir_poly_mul(job, x, y, &overflow);
        assert_true(ir_poly_equal(ir_poly_mul(job, x, ir_poly_int(job, d), &overflow), a));
        assert_true(ir_poly_equal(ir_poly_sub(job, sum, y, &overflow), x));
        assert_true(ir_poly_equal(product, ir_poly_over(job, ir_poly_mul(job, a, b, &overflow), -d * e, &overflow)));
        int64_t dims[SYMBOLS], value, divisor, some[SYMBOLS] = {-1, -1, -1, -1};
        for (int s = 0; s < SYMBOLS; s++) dims[s] = random_below(&random, 50);
        const int64_t exact = value_of(a, dims) * e - value_of(b, dims) * d; /* d * e times the sum */
        assert_int_equal(ir_poly_eval(sum, dims, SYMBOLS, NULL, 0, &value), exact % (d * e) == 0);
        if (exact % (d * e) == 0) assert_int_equal(value, exact / (d * e)), whole++;
        some[random_below(&random, SYMBOLS)] = dims[0];
        assert_true(ir_poly_equal(ir_poly_sub(job, ir_poly_fold(job, sum, some, SYMBOLS, &overflow),
                                              ir_poly_fold(job, y, some, SYMBOLS, &overflow), &overflow),
                                  ir_poly_fold(job, x, some, SYMBOLS, &overflow)));
        Poly scaled = ir_poly_whole(job, sum, &divisor, &overflow);
        for (uint32_t t = 0; t < scaled.count; t++) assert_int_equal(scaled.terms[t].divisor, 1);
        assert_true(ir_poly_equal(ir_poly_over(job, scaled, divisor, &overflow), sum));
        assert_false(overflow);
        assert_int_equal(ir_poly_compare(x, y), -ir_poly_compare(y, x));
    }
    assert_true(whole > 100);
}

static const char *spell(Job *job, Poly poly) {
    Text text = ir_text(job);
    ir_poly_print(&text, poly, names, SYMBOLS);
    return ir_text_string(&text);
}

static void prints(Job *job, void *state) {
    (void)state;
    bool overflow = false;
    Poly m = ir_poly_symbol(job, 0), n = ir_poly_symbol(job, 1), two = ir_poly_int(job, 2);
    assert_string_equal(spell(job, ir_poly_int(job, 0)), "0");
    assert_string_equal(spell(job, ir_poly_int(job, -64)), "-64");
    assert_string_equal(spell(job, ir_poly_mul(job, n, m, &overflow)), "M*N");
    Poly poly = ir_poly_sub(job, ir_poly_mul(job, two, n, &overflow), m, &overflow);
    assert_string_equal(spell(job, poly), "-M + 2*N");
    assert_string_equal(spell(job, ir_poly_sub(job, poly, ir_poly_int(job, 5), &overflow)), "-M + 2*N - 5");
    assert_string_equal(spell(job, ir_poly_symbol(job, IR_POLY_PART + 3)), "P3");
    Poly half = ir_poly_over(job, n, 2, &overflow), third = ir_poly_over(job, m, 3, &overflow);
    assert_string_equal(spell(job, ir_poly_sub(job, m, half, &overflow)), "M - N/2");
    assert_string_equal(spell(job, ir_poly_sub(job, n, half, &overflow)), "N/2");
    assert_string_equal(spell(job, ir_poly_sub(job, half, third, &overflow)), "(-2*M + 3*N)/6");
    assert_string_equal(spell(job, ir_poly_add(job, n, ir_poly_over(job, two, 4, &overflow), &overflow)),
                        "(2*N + 1)/2");
    assert_string_equal(spell(job, ir_poly_mul(job, half, m, &overflow)), "M*N/2");
    assert_false(overflow);
}

static void overflows(Job *job, void *state) {
    (void)state;
    bool overflow = false;
    Poly big = ir_poly_int(job, ((int64_t)1 << 62) - 1), n = ir_poly_symbol(job, 1);
    ir_poly_add(job, big, big, &overflow);
    assert_true(overflow);
    overflow = false;
    ir_poly_mul(job, big, ir_poly_int(job, 2), &overflow);
    assert_true(overflow);
    overflow = false;
    Poly power = n;
    for (int i = 1; i < IR_MAX_DEGREE; i++) power = ir_poly_mul(job, power, n, &overflow);
    assert_false(overflow);
    int64_t dims[SYMBOLS] = {0, 1000000, 0, 0}, value;
    assert_false(ir_poly_eval(power, dims, SYMBOLS, NULL, 0, &value));
    /* a zero factor wins over the overflow of the others */
    Poly zero = ir_poly_mul(
        job, ir_poly_symbol(job, 0),
        ir_poly_mul(job, n, ir_poly_mul(job, n, ir_poly_mul(job, n, n, &overflow), &overflow), &overflow), &overflow);
    assert_true(ir_poly_eval(zero, dims, SYMBOLS, NULL, 0, &value));
    assert_int_equal(value, 0);
    ir_poly_mul(job, power, n, &overflow);
    assert_true(overflow);
    overflow = false;
    int64_t fixed[SYMBOLS] = {-1, (int64_t)1 << 40, -1, -1};
    ir_poly_fold(job, ir_poly_mul(job, n, n, &overflow), fixed, SYMBOLS, &overflow);
    assert_true(overflow);
    assert_false(ir_poly_eval(n, dims, 1, NULL, 0, &value)); /* a symbol without a value */
    int64_t parts[1] = {7};
    assert_true(ir_poly_eval(ir_poly_symbol(job, IR_POLY_PART), dims, SYMBOLS, parts, 1, &value));
    assert_int_equal(value, 7);
    Poly quotient;
    assert_false(ir_poly_div(job, n, ir_poly_int(job, 0), NULL, &quotient));
    assert_false(ir_poly_div(job, n, ir_poly_int(job, 2), NULL, &quotient));
    /* of a multiple of 8 there are eighths, and no sixteenths */
    static const int64_t by[] = {3, 1, -1, 2, -6};
    const int64_t multiple[SYMBOLS] = {1, 8, 1, 1};
    const Multiples known = {multiple, SYMBOLS};
    overflow = false;
    const Poly quarters = ir_poly_over(job, ir_poly_mul(job, n, ir_poly_int(job, 3), &overflow), 4, &overflow);
    for (int k = 0; k < 5; k++) {
        assert_true(ir_poly_div(job, quarters, ir_poly_int(job, by[k]), &known, &quotient));
        assert_true(ir_poly_is_whole(quotient, &known) && !ir_poly_is_whole(quotient, NULL));
        assert_true(ir_poly_equal(ir_poly_mul(job, quotient, ir_poly_int(job, by[k]), &overflow), quarters));
        assert_false(ir_poly_div(job, quarters, ir_poly_int(job, by[k]), NULL, &quotient));
    }
    assert_false(ir_poly_div(job, quarters, ir_poly_int(job, 4), &known, &quotient));
    assert_true(ir_poly_div(job, n, ir_poly_over(job, n, 4, &overflow), NULL, &quotient));
    assert_true(ir_poly_equal(quotient, ir_poly_int(job, 4)) && !overflow);
    assert_false(ir_poly_div(job, n, quarters, NULL, &quotient)); /* 4/3 */
    assert_false(ir_poly_div(job, ir_poly_mul(job, n, n, &overflow), quarters, NULL, &quotient));
}

typedef struct Fixture {
    Job *job;
    uint64_t seed;
} Fixture;

static void run(void **state, void (*work)(Job *, void *)) {
    Fixture *fixture = *state;
    assert_int_equal(ir_job_run(fixture->job, work, &fixture->seed), STATUS_OK);
}
static void test_laws(void **state) { run(state, laws); }
static void test_fractions(void **state) { run(state, fractions); }
static void test_prints(void **state) { run(state, prints); }
static void test_overflows(void **state) { run(state, overflows); }

static int setup(void **state) {
    static Fixture fixture;
    fixture = (Fixture){ir_job_create(NULL), random_seed()};
    *state = &fixture;
    return 0;
}

static int teardown(void **state) {
    ir_job_free(((Fixture *)*state)->job);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_laws), cmocka_unit_test(test_fractions),
                                       cmocka_unit_test(test_prints), cmocka_unit_test(test_overflows)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
