/* Numbers to and from text under any locale, growth of texts, near misses. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/text.h"
#include "tests/support/random.h"

typedef struct Fixture {
    Job *job;
    uint64_t seed;
} Fixture;

static const char *spell(Job *job, double value) {
    Text text = ir_text(job);
    ir_text_double(&text, value);
    return ir_text_string(&text);
}

static const char *spell_float(Job *job, float value) {
    Text text = ir_text(job);
    ir_text_float(&text, value);
    return ir_text_string(&text);
}

static void spellings(Job *job, void *state) {
    (void)state;
    const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0"},
                 {-0.0, "-0"},
                 {1, "1"},
                 {-1.5, "-1.5"},
                 {0.1, "0.1"},
                 {1e-5, "1e-05"},
                 {500, "500"},
                 {0.0001, "0.0001"},
                 {1e15, "1000000000000000"},
                 {1e16, "1e+16"},
                 {1e300, "1e+300"},
                 {5e-324, "5e-324"},
                 {INFINITY, "inf"},
                 {-INFINITY, "-inf"},
                 {NAN, "nan"},
                 {1.0 / 3, "0.3333333333333333"},
                 {448 * 512, "229376"},
                 {1.7976931348623157e308, "1.7976931348623157e+308"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_string_equal(spell(job, cases[i].value), cases[i].text);
    }
    assert_string_equal(spell_float(job, 1e-5f), "1e-05");
    assert_string_equal(spell_float(job, 0.1f), "0.1");
    assert_string_equal(spell_float(job, 16777216.0f), "16777216");
}

static void round_trips(Job *job, void *state) {
    Random random = {*(uint64_t *)state};
    Mark mark = ir_mark(job);
    for (int i = 0; i < 20000; i++) {
        ir_reset(job, mark);
        uint64_t bits = random_bits(&random);
        double value, back;
        memcpy(&value, &bits, sizeof value);
        if (isnan(value) || isinf(value)) continue;
        const char *text = spell(job, value);
        assert_null(strchr(text, ','));
        assert_true(ir_read_double(job, text, strlen(text), &back));
        assert_memory_equal(&value, &back, sizeof value);
        float narrow = (float)value;
        if (isinf(narrow)) continue;
        text = spell_float(job, narrow);
        assert_true(ir_read_double(job, text, strlen(text), &back));
        assert_true((float)back == narrow);
    }
}

static void reads(Job *job, void *state) {
    (void)state;
    const char *good[] = {"1e-5", "0", "-0.5", "+3", "1.25e+10", "0.0", "1e999", "9007199254740993"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        double value;
        assert_true(ir_read_double(job, good[i], strlen(good[i]), &value));
    }
    const char *bad[] = {"",   "1_000", "010", "0x1", "1:30", ".5",    "5.", "1e", "1e+", "inf", "nan",
                         " 1", "1 ",    "1,5", "--1", "+",    "1.5.2", "1f", "00", "1E5", "0b1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double value;
        int64_t integer;
        assert_false(ir_read_double(job, bad[i], strlen(bad[i]), &value));
        assert_false(ir_read_int(bad[i], strlen(bad[i]), &integer));
    }
    const struct {
        const char *text;
        bool fits;
        int64_t value;
    } ints[] = {{"0", true, 0},
                {"-0", true, 0},
                {"9223372036854775807", true, INT64_MAX},
                {"9223372036854775808", false, 0},
                {"-9223372036854775808", true, INT64_MIN},
                {"-9223372036854775809", false, 0},
                {"123456789012345678901234567890", false, 0},
                {"1.0", false, 0},
                {"+17", true, 17}};
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++) {
        int64_t value = -77;
        assert_int_equal(ir_read_int(ints[i].text, strlen(ints[i].text), &value), ints[i].fits);
        if (ints[i].fits) assert_int_equal(value, ints[i].value);
    }
    double value;
    assert_true(ir_read_double(job, "1e-5xyz", 4, &value)); /* count rules, not a NUL */
    assert_true(value == 1e-5);
}

static void near_misses(Job *job, void *state) {
    (void)state;
    const char *words[] = {"layer_norm", "rms_norm", "sum", "softmax", "maximum"};
    assert_string_equal(ir_near_miss(job, "layernorm", words, 5), "layer_norm");
    assert_string_equal(ir_near_miss(job, "sofmtax", words, 5), "softmax");
    assert_string_equal(ir_near_miss(job, "smu", words, 5), "sum");
    assert_null(ir_near_miss(job, "cross_entropy", words, 5));
    assert_null(ir_near_miss(job, "", words, 5));
    assert_string_equal(ir_near_miss(job, "SUM", words, 5), "sum");
    assert_null(ir_near_miss(job, "sun_", words, 5)); /* of a short word most of the letters stay */
    char *long_word = ir_alloc(job, 100001);
    memset(long_word, 'a', 100000);
    assert_null(ir_near_miss(job, long_word, words, 5));
}

static void grows(Job *job, void *state) {
    (void)state;
    Text text = ir_text(job);
    assert_string_equal(ir_text_string(&text), "");
    for (int i = 0; i < 10000; i++) ir_text_format(&text, "%04d%s", i, i % 2 ? "x" : "");
    assert_int_equal(text.count, 45000);
    assert_int_equal(strlen(text.bytes), 45000);
    assert_memory_equal(text.bytes + 45000 - 9, "99989999x", 9);
    ir_text_bytes(&text, "a\0b", 3);
    assert_int_equal(text.count, 45003);
}

static void run(void **state, void (*work)(Job *, void *)) {
    Fixture *fixture = *state;
    assert_int_equal(ir_job_run(fixture->job, work, &fixture->seed), STATUS_OK);
}
static void test_spellings(void **state) { run(state, spellings); }
static void test_round_trips(void **state) { run(state, round_trips); }
static void test_reads(void **state) { run(state, reads); }
static void test_near_misses(void **state) { run(state, near_misses); }
static void test_grows(void **state) { run(state, grows); }

static bool take_comma_locale(void) {
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (setlocale(LC_ALL, names[i]) && *localeconv()->decimal_point == ',') return true;
    }
    setlocale(LC_ALL, "C");
    return false;
}

/* Where none is installed, localedef makes one beside this program. */
static bool make_comma_locale(void) {
    const char *make = "d=build/tests/locale && mkdir -p $d && { test -d $d/de_DE.UTF-8 ||"
                       " localedef -c -i de_DE -f UTF-8 $d/de_DE.UTF-8; } >/dev/null 2>&1";
    if (system(make) != 0) return false;
    setenv("LOCPATH", "build/tests/locale", 1);
    return take_comma_locale();
}

/* Everything again where the decimal point is a comma. */
static void test_comma_locale(void **state) {
    if (!take_comma_locale() && !make_comma_locale()) {
        printf("# no comma locale on this machine\n");
        skip();
    }
    char shown[8];
    run(state, spellings);
    run(state, round_trips);
    run(state, reads);
    snprintf(shown, sizeof shown, "%.1f", 0.5); /* the caller's locale is as it was */
    assert_string_equal(shown, "0,5");
    setlocale(LC_ALL, "C");
}

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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spellings),   cmocka_unit_test(test_round_trips), cmocka_unit_test(test_reads),
        cmocka_unit_test(test_near_misses), cmocka_unit_test(test_grows),       cmocka_unit_test(test_comma_locale),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
