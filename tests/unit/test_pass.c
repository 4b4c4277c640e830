/* Each pass alone: the files of tests/pass/ say in comments which passes run on them and what must come out.
 *
 *   # pass: axes classify     .ir: these, on the dump; .yaml: all up to this one, on the graph file
 *   # set: fuse_reads=2       an option of --set
 *   # expect: TEXT            a line of the output, blanks at its ends aside; several stand in this order
 *   # absent: TEXT            no line of the output contains it
 *   # count: N TEXT           so many lines contain it
 *   # report: TEXT            a line of what the passes reported
 *   # fails: TEXT             the passes stop, and the message contains it */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "gen/gen.h"
#include "tests/support/directives.h"
#include "tests/support/prog_case.h"

typedef struct Case {
    const char *path;
    const char *text;
    size_t count;
    Unit unit;
    const char *printed;
    bool wrong;
} Case;

static uint32_t count_lines(const char *text, const char *part) {
    uint32_t count = 0;
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, "\n");
        const char *found = strstr(at, part);
        if (found && found < at + length) count++;
        at += length + (at[length] == '\n');
    }
    return count;
}

/* The place after the first whole line equal to `wanted` at or after `from`, or NULL. */
static const char *after_line(const char *from, const char *wanted) {
    for (const char *at = from; *at;) {
        size_t length = strcspn(at, "\n");
        const char *start = at, *end = at + length;
        while (start < end && *start == ' ') start++;
        while (end > start && end[-1] == ' ') end--;
        at += length + (at[length] == '\n');
        if ((size_t)(end - start) == strlen(wanted) && !memcmp(start, wanted, strlen(wanted))) return at;
    }
    return NULL;
}

static void run_passes(Job *job, void *state) {
    Case *test = state;
    const char *passes = directive_first(job, test->text, "pass");
    GenOptions options = {.target = gen_target(90), .verify = true};
    if (!passes) ir_stop_at(job, STATUS_USAGE, (Place){0}, "no # pass: in %s", test->path);
    options.sets = directive_settings(job, test->text, "set", &options.set_count);
    Text text = ir_text(job);
    if (strstr(test->path, ".yaml")) {
        uint32_t last = gen_pass_find(passes);
        gen_run(job, &test->unit, test->path, test->text, test->count, &options, last);
        gen_print(&text, &test->unit, last);
    } else {
        test->unit.options = options;
        ir_job_set_source(job, test->path, test->text, test->count);
        test->unit.prog = ir_prog_read(job, test->text, test->count);
        for (const char *name = passes; *name;) {
            size_t length = strcspn(name, " ");
            uint32_t pass = gen_pass_find(ir_copy_text(job, name, length));
            if (pass == IR_NONE) ir_stop_at(job, STATUS_USAGE, (Place){0}, "no such pass: %s", name);
            gen_passes[pass].run(job, &test->unit);
            const char *breach = ir_verify(job, test->unit.prog);
            if (breach) ir_stop_at(job, STATUS_INTERNAL, (Place){0}, "%s", breach);
            name += length + strspn(name + length, " ");
        }
        ir_prog_print(&text, test->unit.prog);
    }
    test->printed = ir_text_string(&text);
}

/* All files are looked at, so that each says what it alone would: one fault may break many. */
static void wrong(Case *test, const char *what) {
    printf("ERROR: %s: %s\n", test->path, what);
    test->wrong = true;
}

static void check_output(Job *job, Case *test) {
    const char *at = test->text, *found, *from = test->printed;
    while (from && (found = directive_next(job, &at, "expect"))) {
        from = after_line(from, found);
        if (!from) wrong(test, ir_format(job, "no line \"%s\" where it should be in\n%s", found, test->printed));
    }
    at = test->text;
    while ((found = directive_next(job, &at, "absent")))
        if (strstr(test->printed, found)) wrong(test, ir_format(job, "\"%s\" in\n%s", found, test->printed));
    at = test->text;
    while ((found = directive_next(job, &at, "count"))) {
        size_t digits = strcspn(found, " ");
        int64_t wanted = -1;
        assert_true(ir_read_int(found, digits, &wanted));
        uint32_t count = count_lines(test->printed, found + digits + 1);
        if (count != wanted) wrong(test, ir_format(job, "%u lines have \"%s\" in\n%s", count, found, test->printed));
    }
    at = test->text;
    while ((found = directive_next(job, &at, "report")))
        if (!directive_reported(&test->unit, found))
            wrong(test, ir_format(job, "\"%s\" not among\n%s", found, directive_reports(job, &test->unit)));
}

static bool run_case(const char *path) {
    Job *job = ir_job_create(NULL);
    Case test = {.path = path};
    test.text = case_file(job, path, &test.count);
    Status status = ir_job_run(job, run_passes, &test);
    const char *fails = directive_first(job, test.text, "fails"), *report = ir_job_report(job);
    if (fails) {
        if (status == STATUS_OK) wrong(&test, "should fail");
        if (!strstr(report, fails)) wrong(&test, ir_format(job, "\"%s\" not in %s", fails, report));
    } else if (status != STATUS_OK) {
        wrong(&test, report);
    } else {
        check_output(job, &test);
    }
    ir_job_free(job);
    return !test.wrong;
}

static void test_files(void **state) {
    (void)state;
    static const char *const patterns[] = {"tests/pass/*.ir", "tests/pass/*.yaml"};
    uint32_t count = 0, right = 0;
    for (uint32_t p = 0; p < 2; p++) {
        glob_t found;
        assert_int_equal(glob(patterns[p], 0, NULL, &found), 0);
        for (size_t i = 0; i < found.gl_pathc; i++, count++) right += run_case(found.gl_pathv[i]);
        globfree(&found);
    }
    printf("# pass files: %u\n", count);
    assert_int_equal(right, count);
    assert_true(count > 20);
}

/* The worked example's dumps are what the passes make of its graph. */
typedef struct Worked {
    const char *pass;
    const char *printed;
} Worked;

static void run_worked(Job *job, void *state) {
    Worked *worked = state;
    size_t count;
    const char *text = case_file(job, "examples/rms_norm_bwd.yaml", &count);
    GenOptions options = {.target = gen_target(90), .verify = true};
    Unit unit;
    uint32_t last = gen_pass_find(worked->pass);
    gen_run(job, &unit, "rms_norm_bwd.yaml", text, count, &options, last);
    Text out = ir_text(job);
    gen_print(&out, &unit, last);
    worked->printed = ir_text_string(&out);
}

static void test_worked_example(void **state) {
    static const char *const passes[] = {"classify", "partial", "reorder", "fuse"};
    (void)state;
    for (uint32_t i = 0; i < sizeof passes / sizeof *passes; i++) {
        Job *job = ir_job_create(NULL);
        Worked worked = {.pass = passes[i]};
        size_t count;
        if (ir_job_run(job, run_worked, &worked) != STATUS_OK) fail_msg("%s", ir_job_report(job));
        const char *path = ir_format(job, "tests/golden/rms_norm_bwd.%s.ir", passes[i]);
        assert_string_equal(worked.printed, case_file(job, path, &count));
        ir_job_free(job);
    }
}

/* Every reduction of the graph that the oracle evaluates has the depth of the statement that stands for it: of the
 * copies of amax that the two exp of softmax and its sum expand to, and of sums that keep dims and sums that do not. */
static void run_depths(Job *job, void *state) {
    uint32_t *counts = state;
    size_t count;
    const char *text = case_file(job, "tests/pass/depths.yaml", &count);
    GenOptions options = {.target = gen_target(90), .verify = true};
    Unit unit;
    gen_run(job, &unit, "depths.yaml", text, count, &options, gen_pass_find("schedule"));
    uint32_t *depth = gen_depths(job, &unit, NULL, NULL);
    for (uint32_t i = 0; i < unit.expanded->values.count; i++) {
        if (unit.expanded->values.at[i].op != OP_REDUCE) continue;
        counts[0]++;
        counts[1] += depth[i] > 0 && depth[i] < 5000;
    }
}

static void test_depths(void **state) {
    (void)state;
    Job *job = ir_job_create(NULL);
    uint32_t counts[2] = {0, 0};
    Status status = ir_job_run(job, run_depths, counts);
    if (status != STATUS_OK) fail_msg("%s", ir_job_report(job));
    assert_int_equal(counts[0], counts[1]);
    assert_true(counts[0] >= 5);
    ir_job_free(job);
}

/* A sum in parts is as deep as a part and then the sum of the parts. */
static void run_depth_of_parts(Job *job, void *state) {
    static const char text[] =
        "graph: parts\ndims: {M: any}\ninputs: {x: \"f32[M, 64]\"}\nnodes: {y: \"sum(x, dim=0)\"}\noutputs: {y: f32}\n";
    const int64_t dims[] = {64000}, parts[] = {50};
    GenOptions options = {.target = gen_target(90), .verify = true};
    Unit unit;
    (void)state;
    gen_run(job, &unit, "parts.yaml", text, sizeof text - 1, &options, gen_pass_find("schedule"));
    uint32_t *depth = gen_depths(job, &unit, dims, parts), found = 0;
    assert_int_equal(unit.plan->steps.count, 2);
    uint32_t part = gen_chain_length(&unit.plan->steps.at[0].chain, unit.prog, dims, parts);
    uint32_t whole = gen_chain_length(&unit.plan->steps.at[1].chain, unit.prog, dims, parts);
    assert_true(part >= 64000 / 50 / (uint32_t)unit.plan->steps.at[0].tile.rows && whole > 0);
    for (uint32_t i = 0; i < unit.expanded->values.count; i++)
        if (unit.expanded->values.at[i].op == OP_REDUCE) found = depth[i];
    assert_int_equal(found, part + whole);
}

static void test_depth_of_parts(void **state) {
    Job *job = ir_job_create(NULL);
    if (ir_job_run(job, run_depth_of_parts, *state) != STATUS_OK) fail_msg("%s", ir_job_report(job));
    ir_job_free(job);
}

/* A combine of a pair errs by as much as eight adds. */
static void run_depth_of_pairs(Job *job, void *state) {
    static const char text[] = "graph: pairs\ndims: {M: any, N: any}\ninputs: {x: \"f32[M, N]\"}\n"
                               "nodes: {y: \"softmax(x, dim=-1)\", v: \"var(x, dim=-1)\"}\noutputs: {y: f32, v: f32}\n";
    const int64_t dims[] = {3, 20000};
    GenOptions options = {.target = gen_target(90), .verify = true};
    Unit unit;
    (void)state;
    gen_run(job, &unit, "pairs.yaml", text, sizeof text - 1, &options, gen_pass_find("schedule"));
    uint32_t *depth = gen_depths(job, &unit, dims, NULL), sums = 0;
    assert_int_equal(unit.plan->steps.count, 1);
    uint32_t length = gen_chain_length(&unit.plan->steps.at[0].chain, unit.prog, dims, NULL);
    assert_true(length >= 20000 / 1024);
    for (uint32_t i = 0; i < unit.expanded->values.count; i++) {
        const Value *value = &unit.expanded->values.at[i];
        if (value->op != OP_REDUCE || value->reduction != REDUCTION_ADD) continue;
        assert_int_equal(depth[i], 8 * length);
        sums++;
    }
    assert_true(sums >= 3);
}

static void test_depth_of_pairs(void **state) {
    Job *job = ir_job_create(NULL);
    if (ir_job_run(job, run_depth_of_pairs, *state) != STATUS_OK) fail_msg("%s", ir_job_report(job));
    ir_job_free(job);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),          cmocka_unit_test(test_worked_example), cmocka_unit_test(test_depths),
        cmocka_unit_test(test_depth_of_parts), cmocka_unit_test(test_depth_of_pairs),
    };
    return cmocka_run_group_tests_name("pass", tests, NULL, NULL);
}
