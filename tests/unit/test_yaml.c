/* The document tree: kinds, styles, texts and places. What is refused is in test_refusals.c and test_limits.c. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "gen/yaml.h"

typedef struct Reading {
    const char *text;
    const Doc *root;
} Reading;

static void read_work(Job *job, void *state) {
    Reading *reading = state;
    reading->root = gen_yaml_read(job, reading->text, strlen(reading->text));
}

static const Doc *read(Job *job, const char *text) {
    Reading reading = {.text = text};
    ir_job_set_source(job, "graph.yaml", text, strlen(text));
    if (ir_job_run(job, read_work, &reading) != STATUS_OK) fail_msg("%s", ir_job_report(job));
    return reading.root;
}

/* The source between the marks. */
static void assert_source(const char *text, const Doc *doc, const char *expected) {
    assert_int_equal(doc->place.count, strlen(expected));
    assert_memory_equal(text + doc->place.start, expected, strlen(expected));
}

static void test_tree(void **state) {
    (void)state;
    static const char text[] =
        "# \xc3\xa9\xe2\x82\xac before\na: plain text  # comment\nb: 'single'\nc: {d: \"double\", e: [1, no]}\n"
        "f: |\n  literal # text\n  more\ng:\n- ~\n- h\n'y': multi\n  line\n";
    Job *job = ir_job_create(NULL);
    const Doc *root = read(job, text);
    assert_int_equal(root->kind, DOC_MAP);
    assert_int_equal(root->size, 6);
    const Doc *a = gen_doc_find(root, "a"), *b = gen_doc_find(root, "b"), *c = gen_doc_find(root, "c");
    const Doc *f = gen_doc_find(root, "f"), *g = gen_doc_find(root, "g"), *y = gen_doc_find(root, "y");
    assert_null(gen_doc_find(root, "d"));
    assert_string_equal(a->text, "plain text");
    assert_source(text, a, "plain text");
    assert_int_equal(a->style, DOC_PLAIN);
    assert_source(text, b, "'single'");
    assert_string_equal(b->text, "single");
    assert_int_equal(b->style, DOC_SINGLE);
    assert_true(c->flow && c->kind == DOC_MAP);
    assert_source(text, gen_doc_find(c, "d"), "\"double\"");
    const Doc *e = gen_doc_find(c, "e");
    assert_true(e->flow && e->kind == DOC_LIST && e->size == 2);
    assert_string_equal(e->items[1]->text, "no"); /* no bool */
    assert_int_equal(f->style, DOC_BLOCK);
    assert_string_equal(f->text, "literal # text\nmore\n");
    assert_true(g->kind == DOC_LIST && !g->flow);
    assert_string_equal(g->items[0]->text, "~"); /* no null */
    assert_source(text, y, "multi\n  line");
    assert_string_equal(y->text, "multi line");
    ir_job_free(job);
}

/* libyaml counts characters and places are bytes: both must agree behind any number of long characters. */
static void test_places_behind_characters(void **state) {
    (void)state;
    char text[2048] = "# ";
    for (size_t count = 0; count < 300; count += 7) {
        size_t at = 2;
        for (size_t i = 0; i < count; i++) {
            const char *piece = i % 3 == 0 ? "\xc3\xa9" : i % 3 == 1 ? "\xe2\x82\xac" : "\xf0\x9f\x98\x80";
            memcpy(text + at, piece, strlen(piece));
            at += strlen(piece);
        }
        strcpy(text + at, "\nkey: value\n");
        Job *job = ir_job_create(NULL);
        const Doc *root = read(job, text);
        assert_source(text, root->keys[0], "key");
        assert_source(text, root->items[0], "value");
        ir_job_free(job);
    }
}

static void test_json(void **state) {
    (void)state;
    Job *job = ir_job_create(NULL);
    const Doc *root = read(job, "{\"a\": {\"b\": [1, 2.5, \"c\"]},\n \"d\": true}");
    assert_string_equal(gen_doc_find(gen_doc_find(root, "a"), "b")->items[1]->text, "2.5");
    assert_string_equal(gen_doc_find(root, "d")->text, "true");
    ir_job_free(job);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree),
        cmocka_unit_test(test_places_behind_characters),
        cmocka_unit_test(test_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
