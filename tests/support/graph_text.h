/* Graph text through the first passes, for tests. */
#ifndef TESTS_SUPPORT_GRAPH_TEXT_H
#define TESTS_SUPPORT_GRAPH_TEXT_H

#include "gen/gen.h"

typedef enum UpTo { UP_TO_PARSE, UP_TO_EXPAND, UP_TO_SIMPLIFY } UpTo;

typedef struct GraphText {
    Job *job;
    Unit unit;
    UpTo up_to;
    Status status;
} GraphText;

/* The text must outlive the case. options may be NULL. */
GraphText *graph_text_read(const char *text, size_t count, const GenOptions *options, UpTo up_to);
GraphText *graph_text_string(const char *text, UpTo up_to);
void graph_text_free(GraphText *graph_text);
/* The first diagnostic of this severity, or NULL. */
const Diagnostic *graph_text_first(const GraphText *graph_text, Severity severity);
/* Any diagnostic whose text holds the fragment, or NULL. */
const Diagnostic *graph_text_find(const GraphText *graph_text, const char *fragment);
/* The graph, printed; in the case's job. */
const char *graph_text_print(GraphText *graph_text);
/* A whole file, NUL-terminated; freed by the caller. NULL: unreadable. */
char *graph_text_file(const char *path, size_t *count);
/* Checks the graph files of a directory after each of the first passes; how many there were. */
uint32_t graph_text_each_file(const char *directory,
                              void (*check)(const char *path, const char *text, size_t count, UpTo up_to));

#endif
