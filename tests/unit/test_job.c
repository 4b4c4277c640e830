/* The job: memory, stops, deferred releases, diagnostics, and allocators that fail. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "ir/text.h"
#include "tests/support/fail_alloc.h"

static void use_memory(Job *job, void *state) {
    (void)state;
    for (size_t bytes = 1; bytes < 5000; bytes = bytes * 2 + 1) {
        unsigned char *memory = ir_alloc(job, bytes);
        assert_int_equal((uintptr_t)memory % 16, 0);
        for (size_t i = 0; i < bytes; i++) assert_int_equal(memory[i], 0);
        memset(memory, 0xff, bytes);
    }
    assert_non_null(ir_alloc(job, 0));
    assert_non_null(ir_alloc(job, (size_t)8 << 20));
}

static void arena_zeroes_and_aligns(void **unused) {
    (void)unused;
    FailAlloc counter = {0};
    Allocator allocator = fail_allocator(&counter);
    Job *job = ir_job_create(&allocator);
    Mark mark = ir_mark(job);
    assert_int_equal(ir_job_run(job, use_memory, NULL), STATUS_OK);
    int64_t live = counter.live;
    for (int i = 0; i < 100; i++) {
        ir_reset(job, mark);
        assert_int_equal(ir_job_run(job, use_memory, NULL), STATUS_OK);
    }
    assert_int_equal(counter.live, live); /* resets give everything back */
    ir_job_free(job);
    assert_int_equal(counter.live, 0);
    ir_job_free(NULL);
}

static void grow_list(Job *job, void *state) {
    (void)state;
    IR_LIST(uint32_t) list = {0};
    for (uint32_t i = 0; i < 1000; i++) {
        uint32_t *item = IR_PUSH(job, &list);
        assert_int_equal(*item, 0);
        *item = i;
        if (i % 7 == 3) list.at[--list.count] = 99; /* a popped slot comes back zeroed */
    }
    for (uint32_t i = 1; i < list.count; i++) assert_true(list.at[i] > list.at[i - 1]);
}

static void lists_grow(void **unused) {
    (void)unused;
    Job *job = ir_job_create(NULL);
    assert_int_equal(ir_job_run(job, grow_list, NULL), STATUS_OK);
    ir_job_free(job);
}

static void stop_with(Job *job, void *state) { ir_stop(job, *(Status *)state); }

static void run_inside(Job *job, void *state) {
    Status inner = STATUS_UNAVAILABLE;
    assert_int_equal(ir_job_run(job, stop_with, &inner), STATUS_UNAVAILABLE);
    *(int *)state = 1;
    ir_stop_at(job, STATUS_USAGE, (Place){0, 0}, "outer");
}

static void runs_nest(void **unused) {
    (void)unused;
    Job *job = ir_job_create(NULL);
    int reached = 0;
    assert_int_equal(ir_job_run(job, run_inside, &reached), STATUS_USAGE);
    assert_int_equal(reached, 1);
    assert_string_equal(ir_job_report(job), "error: outer\n");
    ir_job_free(job);
}

static char order[8];
static void note_order(void *object) { strcat(order, object); }

static void defer_three(Job *job, void *state) {
    (void)state;
    static char a[] = "a", b[] = "b", c[] = "c";
    ir_job_defer(job, note_order, a);
    ir_job_defer(job, note_order, b);
    ir_job_defer(job, note_order, c);
    ir_stop(job, STATUS_REJECTED);
}

static void deferred_runs_last_first(void **unused) {
    (void)unused;
    order[0] = 0;
    Job *job = ir_job_create(NULL);
    ir_job_run(job, defer_three, NULL);
    assert_string_equal(order, "");
    ir_job_free(job);
    assert_string_equal(order, "cba");
}

static void many_errors(Job *job, void *state) {
    (void)state;
    for (int i = 0; i < 100; i++) ir_error(job, (Place){0, 0}, "error %d", i);
}

static void errors_stop_at_twenty(void **unused) {
    (void)unused;
    Job *job = ir_job_create(NULL);
    assert_int_equal(ir_job_run(job, many_errors, NULL), STATUS_REJECTED);
    assert_int_equal(ir_error_count(job), IR_MAX_ERRORS);
    assert_non_null(strstr(ir_job_report(job), "there are more errors"));
    ir_job_free(job);
}

static void breach(Job *job, void *state) {
    (void)state;
    IR_REQUIRE(job, 1 + 1 == 3);
}

static void breaches_are_internal(void **unused) {
    (void)unused;
    Job *job = ir_job_create(NULL);
    assert_int_equal(ir_job_run(job, breach, NULL), STATUS_INTERNAL);
    assert_non_null(strstr(ir_job_report(job), "1 + 1 == 3"));
    ir_job_free(job);
}

/* ---- reports ---- */

typedef struct Case {
    const char *source;
    Place place;
    const char *expected;
} Case;

static void report_case(Job *job, void *state) {
    const Case *item = state;
    ir_job_set_source(job, "g.yaml", item->source, strlen(item->source));
    ir_error(job, item->place, "no");
}

static void reports_point(void **unused) {
    (void)unused;
    const Case cases[] = {
        {"abc\ndef ghi\n", {8, 3}, "g.yaml:2:5: error: no\n  def ghi\n      ^~~\n"},
        {"abc\ndef ghi", {8, 300}, "g.yaml:2:5: error: no\n  def ghi\n      ^~~\n"},
        {"a\tb: c", {2, 1}, "g.yaml:1:3: error: no\n  a b: c\n    ^\n"},
        {"\xc3\xa9\xc3\xa9 x\r\n", {5, 1}, "g.yaml:1:4: error: no\n  \xc3\xa9\xc3\xa9 x\n     ^\n"},
        {"a\x1b[31mb", {6, 1}, "g.yaml:1:7: error: no\n  a?[31mb\n        ^\n"},
        {"abc", {3, 1}, "g.yaml:1:4: error: no\n  abc\n     ^\n"},
        {"abc", {900, 1}, "g.yaml:1:4: error: no\n  abc\n     ^\n"},
        {"", {0, 1}, "g.yaml:1:1: error: no\n  \n  ^\n"},
        {"abc", {0, 0}, "g.yaml: error: no\n"},
        {"abc\n", {2, 2}, "g.yaml:1:3: error: no\n  abc\n    ^\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Job *job = ir_job_create(NULL);
        Case item = cases[i];
        assert_int_equal(ir_job_run(job, report_case, &item), STATUS_OK);
        assert_string_equal(ir_job_report(job), cases[i].expected);
        ir_job_free(job);
    }
}

static void long_line_is_windowed(void **unused) {
    (void)unused;
    size_t count = 1000000;
    char *source = malloc(count + 1);
    memset(source, 'x', count);
    source[count] = 0;
    source[500000] = 'y';
    Case item = {source, {500000, 2}, NULL};
    Job *job = ir_job_create(NULL);
    ir_job_run(job, report_case, &item);
    const char *report = ir_job_report(job);
    assert_true(strlen(report) < 500);
    assert_non_null(strstr(report, "g.yaml:1:500001: error"));
    const char *line = strchr(report, '\n') + 1, *caret = strchr(line, '\n') + 1;
    assert_int_equal(strchr(line, 'y') - line, strchr(caret, '^') - caret);
    ir_job_free(job);
    free(source);
}

static void say(Job *job, void *state) { ir_error(job, (Place){0, 0}, "unknown name '%s'", (const char *)state); }

static void messages_are_printable_and_short(void **unused) {
    (void)unused;
    Job *job = ir_job_create(NULL);
    char controls[] = "a\n\x1b[0m\xff\xc2\x80z";
    ir_job_run(job, say, controls);
    assert_string_equal(ir_diagnostic(job, 0)->text, "unknown name 'a\\n\\x1b[0m\\xff\\xc2\\x80z'");
    char *name = malloc(1000001);
    memset(name, 'n', 1000000);
    name[1000000] = 0;
    ir_job_run(job, say, name);
    assert_true(strlen(ir_diagnostic(job, 1)->text) < 200);
    for (size_t i = 0; i < 1000000; i += 3) name[i] = ' ';
    ir_job_run(job, say, name);
    assert_true(strlen(ir_diagnostic(job, 2)->text) <= 2000);
    free(name);
    ir_job_free(job);
}

/* ---- allocators that fail ---- */

static int released;
static void count_release(void *object) { released += *(int *)object; }

static void everything(Job *job, void *state) {
    ir_job_defer(job, count_release, state);
    Text text = ir_text(job);
    for (int i = 0; i < 3000; i++) ir_text_format(&text, "%d ", i);
    ir_job_set_source(job, "f", ir_text_string(&text), text.count);
    use_memory(job, NULL);
    for (int i = 0; i < 60; i++) ir_warn(job, (Place){(uint32_t)i, 2}, "warning %d %s", i, "text");
    ir_alloc_array(job, SIZE_MAX / 2, 3);
}

static void failing_allocators_neither_crash_nor_leak(void **unused) {
    (void)unused;
    static int one = 1;
    uint64_t calls = 0;
    for (uint64_t fail_at = 1; fail_at == 1 || calls >= fail_at - 1; fail_at++) {
        FailAlloc counter = {.fail_at = fail_at};
        Allocator allocator = fail_allocator(&counter);
        Job *job = ir_job_create(&allocator);
        if (!job) {
            calls = 1;
            continue;
        }
        released = 0;
        assert_int_equal(ir_job_run(job, everything, &one), STATUS_SYSTEM); /* its last line always stops */
        const char *report = ir_job_report(job);
        assert_non_null(strstr(report, "out of memory"));
        assert_true(ir_error_count(job) > 0);
        calls = counter.calls;
        ir_job_free(job);
        assert_int_equal(counter.live, 0);
        assert_int_equal(released, 1);
        if (calls < fail_at) break;
    }
    assert_true(calls > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_zeroes_and_aligns),
        cmocka_unit_test(lists_grow),
        cmocka_unit_test(runs_nest),
        cmocka_unit_test(deferred_runs_last_first),
        cmocka_unit_test(errors_stop_at_twenty),
        cmocka_unit_test(breaches_are_internal),
        cmocka_unit_test(reports_point),
        cmocka_unit_test(long_line_is_windowed),
        cmocka_unit_test(messages_are_printable_and_short),
        cmocka_unit_test(failing_allocators_neither_crash_nor_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
