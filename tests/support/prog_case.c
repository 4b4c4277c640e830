/* See tests/support/prog_case.h. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/prog_case.h"

char *case_file(Job *job, const char *path, size_t *count) {
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s cannot be opened", path);
    Text text = ir_text(job);
    char block[4096];
    size_t got;
    while ((got = fread(block, 1, sizeof block, file)) > 0) ir_text_bytes(&text, block, got);
    fclose(file);
    *count = text.count;
    return ir_copy_text(job, ir_text_string(&text), text.count);
}

const char *case_print(Job *job, const Prog *prog) {
    Text text = ir_text(job);
    ir_prog_print(&text, prog);
    return ir_text_string(&text);
}

typedef struct Reading {
    const char *text;
    size_t count;
    Prog *prog;
} Reading;

static void read_prog(Job *job, void *state) {
    Reading *reading = state;
    reading->prog = ir_prog_read(job, reading->text, reading->count);
}

Prog *case_read(Job *job, const char *text, size_t count) {
    Reading reading = {text, count, NULL};
    if (ir_job_run(job, read_prog, &reading) != STATUS_OK) fail_msg("%s", ir_job_report(job));
    return reading.prog;
}

Prog *case_read_legal(Job *job, const char *text, size_t count) {
    Prog *prog = case_read(job, text, count);
    const char *why = ir_verify(job, prog);
    if (why) fail_msg("%s: %s", prog->name, why);
    return prog;
}

Prog *case_golden(Job *job, const char *path) {
    size_t count;
    const char *text = case_file(job, path, &count);
    Prog *prog = case_read_legal(job, text, count);
    const char *printed = case_print(job, prog);
    const char *update = getenv("UPDATE_GOLDEN");
    if (update && strcmp(update, "1") == 0) {
        FILE *file = fopen(path, "wb");
        if (!file || fputs(printed, file) < 0 || fclose(file) != 0) fail_msg("%s cannot be written", path);
    } else {
        assert_string_equal(printed, text);
    }
    return prog;
}
