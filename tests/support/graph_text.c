/* Graph text through the first passes. In: text. Out: a unit, or the messages. Contract: the header. */
#include "tests/support/graph_text.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void run(Job *job, void *state) {
    GraphText *graph_text = state;
    Unit *unit = &graph_text->unit;
    gen_parse(job, unit);
    if (graph_text->up_to >= UP_TO_EXPAND) gen_expand(job, unit);
    if (graph_text->up_to >= UP_TO_SIMPLIFY) gen_simplify(job, unit);
}

GraphText *graph_text_read(const char *text, size_t count, const GenOptions *options, UpTo up_to) {
    GraphText *graph_text = calloc(1, sizeof *graph_text);
    if (!graph_text) abort();
    graph_text->job = ir_job_create(NULL);
    graph_text->up_to = up_to;
    ir_job_set_source(graph_text->job, "graph.yaml", text, count);
    graph_text->unit.text = text;
    graph_text->unit.count = count;
    if (options) graph_text->unit.options = *options;
    graph_text->status = ir_job_run(graph_text->job, run, graph_text);
    return graph_text;
}

GraphText *graph_text_string(const char *text, UpTo up_to) { return graph_text_read(text, strlen(text), NULL, up_to); }

void graph_text_free(GraphText *graph_text) {
    if (!graph_text) return;
    ir_job_free(graph_text->job);
    free(graph_text);
}

const Diagnostic *graph_text_first(const GraphText *graph_text, Severity severity) {
    for (uint32_t i = 0; i < ir_diagnostic_count(graph_text->job); i++)
        if (ir_diagnostic(graph_text->job, i)->severity == severity) return ir_diagnostic(graph_text->job, i);
    return NULL;
}

const Diagnostic *graph_text_find(const GraphText *graph_text, const char *fragment) {
    for (uint32_t i = 0; i < ir_diagnostic_count(graph_text->job); i++)
        if (strstr(ir_diagnostic(graph_text->job, i)->text, fragment)) return ir_diagnostic(graph_text->job, i);
    return NULL;
}

static void print(Job *job, void *state) {
    const char **result = ((void **)state)[0];
    Text text = ir_text(job);
    ir_graph_print(&text, ((void **)state)[1]);
    *result = ir_text_string(&text);
}

const char *graph_text_print(GraphText *graph_text) {
    const char *result = NULL;
    void *state[] = {(void *)&result, graph_text->unit.graph};
    return ir_job_run(graph_text->job, print, state) == STATUS_OK ? result : NULL;
}

char *graph_text_file(const char *path, size_t *count) {
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    char *bytes = NULL;
    size_t capacity = 0;
    *count = 0;
    for (size_t got = 1; got > 0; *count += got) {
        capacity = 2 * capacity + 4096;
        bytes = realloc(bytes, capacity + 1);
        if (!bytes) abort();
        got = fread(bytes + *count, 1, capacity - *count, file);
    }
    bytes[*count] = 0;
    fclose(file);
    return bytes;
}

uint32_t graph_text_each_file(const char *directory,
                              void (*check)(const char *path, const char *text, size_t count, UpTo up_to)) {
    DIR *entries = opendir(directory);
    uint32_t files = 0;
    if (!entries) return 0;
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        char *path, *text;
        size_t count;
        if (!strstr(entry->d_name, ".yaml") && !strstr(entry->d_name, ".json")) continue;
        if (asprintf(&path, "%s/%s", directory, entry->d_name) < 0 || !(text = graph_text_file(path, &count))) abort();
        for (int up_to = UP_TO_PARSE; up_to <= UP_TO_SIMPLIFY; up_to++) check(path, text, count, (UpTo)up_to);
        free(text);
        free(path);
        files++;
    }
    closedir(entries);
    return files;
}
