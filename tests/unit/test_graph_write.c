/* Graph files written for people: they read back as the same Graph and are then written the same way again; what
 * expressions look like; where comments stand. NORMGEN_SEED repeats the random graphs, NORMGEN_TEST_REDUCED: fewer. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/graph_write.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_graph.h"

typedef struct Writing {
    const Graph *graph;
    const GraphNotes *notes;
    const char *text;
} Writing;

static void write_work(Job *job, void *state) {
    Writing *writing = state;
    Text text = ir_text(job);
    ir_graph_write(&text, writing->graph, writing->notes);
    writing->text = ir_text_string(&text);
}

static const char *write_graph(GraphText *graph_text, const GraphNotes *notes) {
    Writing writing = {.graph = graph_text->unit.graph, .notes = notes};
    Status status = ir_job_run(graph_text->job, write_work, &writing);
    if (status != STATUS_OK)
        fail_msg("not written: %s\n%s", ir_job_report(graph_text->job), graph_text_print(graph_text));
    return writing.text;
}

typedef struct Pair {
    const Graph *a, *b;
    bool same;
} Pair;

static void same_work(Job *job, void *state) {
    Pair *pair = state;
    pair->same = ir_graph_same(job, pair->a, pair->b) && ir_graph_same(job, pair->b, pair->a);
}

static bool is_same(GraphText *a, GraphText *b) {
    Pair pair = {.a = a->unit.graph, .b = b->unit.graph};
    assert_int_equal(ir_job_run(a->job, same_work, &pair), STATUS_OK);
    return pair.same;
}

/* ---- back and forth ---- */

static void round_trip(const char *what, const char *text, size_t count, UpTo up_to) {
    GraphText *first = graph_text_read(text, count, NULL, up_to);
    if (first->status != STATUS_OK) fail_msg("%s: %s", what, ir_job_report(first->job));
    const char *written = write_graph(first, NULL);
    GraphText *second = graph_text_string(written, UP_TO_PARSE);
    if (up_to == UP_TO_SIMPLIFY &&
        graph_text_find(second, "in place of")) { /* a read that simplify made plain to see */
        graph_text_free(second);
        graph_text_free(first);
        return;
    }
    if (second->status != STATUS_OK) fail_msg("%s:\n%s\n%s", what, written, ir_job_report(second->job));
    if (!is_same(first, second))
        fail_msg("%s after %d: what is written\n%s\nreads back as\n%s\nand was\n%s", what, (int)up_to, written,
                 graph_text_print(second), graph_text_print(first));
    const char *again = write_graph(second, NULL);
    if (strcmp(written, again) != 0) fail_msg("%s after %d:\n%s\nis then\n%s", what, (int)up_to, written, again);
    graph_text_free(second);
    graph_text_free(first);
}

static uint32_t round_trips(const char *directory) {
    DIR *entries = opendir(directory);
    uint32_t files = 0;
    assert_non_null(entries);
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        if (!strstr(entry->d_name, ".yaml")) continue;
        char *path, *text;
        size_t count;
        assert_true(asprintf(&path, "%s/%s", directory, entry->d_name) > 0);
        assert_non_null(text = graph_text_file(path, &count));
        for (int up_to = UP_TO_PARSE; up_to <= UP_TO_SIMPLIFY; up_to++) round_trip(path, text, count, (UpTo)up_to);
        free(text);
        free(path);
        files++;
    }
    closedir(entries);
    return files;
}

static void test_files(void **state) {
    (void)state;
    uint32_t files = round_trips("tests/graphs");
    assert_true(files >= 10);
    uint32_t examples = round_trips("examples");
    assert_true(examples >= 10);
    printf("# %u files\n", files + examples);
}

static void test_random(void **state) {
    (void)state;
    uint64_t seed = random_seed();
    uint32_t count = getenv("NORMGEN_TEST_REDUCED") ? 40 : 400, tried = 0;
    for (uint32_t i = 0; i < count; i++) {
        Job *job = ir_job_create(NULL);
        RandomGraph random =
            random_graph(job, seed + i, (i & 1 ? RANDOM_ALL_DTYPES : 0) | (i & 2 ? RANDOM_ROWS_ONLY : 0));
        char *what;
        assert_true(asprintf(&what, "seed %llu", (unsigned long long)(seed + i)) > 0);
        for (int up_to = UP_TO_PARSE; up_to <= UP_TO_SIMPLIFY; up_to++) {
            GraphText *first = graph_text_read(random.text, random.count, NULL, (UpTo)up_to);
            bool legal = first->status == STATUS_OK;
            graph_text_free(first);
            tried += legal;
            if (legal) round_trip(what, random.text, random.count, (UpTo)up_to);
        }
        free(what);
        ir_job_free(job);
    }
    printf("# %u of %u stages of random graphs written and read back\n", tried, 3 * count);
    assert_true(tried > 2 * count);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_files), cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
