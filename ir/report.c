/* In: a job's diagnostics and its source. Out: the text that people read. Left alone: the diagnostics themselves. */
#include "ir/text.h"

#include <string.h>

#define WINDOW 160       /* bytes of a source line that are shown */
#define WINDOW_BEFORE 80 /* of these, at most so many before the place when the line is longer */

static size_t line_start(const char *source, size_t offset) {
    while (offset && source[offset - 1] != '\n') offset--;
    return offset;
}

void ir_locate(const Job *job, uint32_t offset, uint32_t *line, uint32_t *column) {
    size_t count;
    const char *source = ir_job_source(job, &count);
    size_t at = offset < count ? offset : count;
    *line = 1;
    *column = 1;
    for (size_t i = 0; i < at; i++) {
        if (source[i] == '\n') {
            ++*line;
            *column = 1;
        } else if (((unsigned char)source[i] & 0xc0) != 0x80) {
            ++*column;
        }
    }
    if (at < count && at && ((unsigned char)source[at] & 0xc0) == 0x80 && *column > 1) --*column; /* inside one */
}

/* One column for each character: what would move the terminal's cursor otherwise becomes a space or '?'. */
static uint32_t put_line(Text *text, const char *line, size_t count) {
    uint32_t columns = 0;
    for (size_t i = 0; i < count; columns++) {
        size_t length = ir_utf8_length(line + i, count - i);
        if (length) {
            ir_text_bytes(text, line + i, length);
            i += length;
        } else {
            ir_text_put(text, line[i] == '\t' ? " " : "?");
            i++;
        }
    }
    return columns;
}

static uint32_t count_columns(const char *line, size_t count) {
    uint32_t columns = 0;
    for (size_t i = 0; i < count; columns++) {
        size_t length = ir_utf8_length(line + i, count - i);
        i += length ? length : 1;
    }
    return columns;
}

static void put_repeated(Text *text, const char *what, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) ir_text_put(text, what);
}

static bool inside_character(const char *source, size_t at) { return ((unsigned char)source[at] & 0xc0) == 0x80; }

static void put_source_line(Text *text, const char *source, size_t count, Place place) {
    size_t at = place.start < count ? place.start : count;
    size_t start = line_start(source, at), stop = at;
    while (stop < count && source[stop] != '\n') stop++;
    if (stop > start && source[stop - 1] == '\r') stop--;
    if (at > stop) at = stop;
    size_t first = start, last = stop;
    if (stop - start > WINDOW) {
        if (at - start > WINDOW_BEFORE) first = at - WINDOW_BEFORE;
        while (first < at && inside_character(source, first)) first++;
        last = first + WINDOW < stop ? first + WINDOW : stop;
        while (last < stop && last > at && inside_character(source, last)) last--;
    }
    size_t end = place.start + (size_t)place.count;
    if (end > last) end = last;
    ir_text_put(text, "  ");
    ir_text_put(text, first > start ? "..." : "");
    put_line(text, source + first, last - first);
    ir_text_put(text, last < stop ? "...\n  " : "\n  ");
    put_repeated(text, " ", (first > start ? 3 : 0) + count_columns(source + first, at - first));
    ir_text_put(text, "^");
    uint32_t width = end > at ? count_columns(source + at, end - at) : 1;
    put_repeated(text, "~", width ? width - 1 : 0);
    ir_text_put(text, "\n");
}

static void put_diagnostic(Text *text, const Job *job, const Diagnostic *diagnostic) {
    static const char *const names[] = {"error", "warning", "note"};
    size_t count;
    const char *source = ir_job_source(job, &count), *name = ir_job_source_name(job);
    bool placed = source && diagnostic->place.count;
    if (name) {
        size_t length = strlen(name);
        put_line(text, name, length > WINDOW * 2 ? WINDOW * 2 : length);
        ir_text_put(text, ":");
    }
    if (placed) {
        uint32_t line, column;
        ir_locate(job, diagnostic->place.start, &line, &column);
        ir_text_format(text, "%u:%u:", line, column);
    }
    ir_text_format(text, "%s%s: %s\n", name || placed ? " " : "", names[diagnostic->severity], diagnostic->text);
    if (placed) put_source_line(text, source, count, diagnostic->place);
}

static void put_report(Job *job, void *state) {
    Text text = ir_text(job);
    for (uint32_t i = 0; i < ir_diagnostic_count(job); i++) put_diagnostic(&text, job, ir_diagnostic(job, i));
    *(const char **)state = ir_text_string(&text);
}

const char *ir_job_report(Job *job) {
    const char *report = NULL;
    if (ir_job_run(job, put_report, &report) != STATUS_OK) return "error: out of memory\n";
    return report;
}
