/* In: keys and facts. Out: text or JSON (gen/tell.h). Left alone: what the facts mean. */
#include "gen/tell.h"

#include <math.h>
#include <string.h>

#define INDENT 2
#define COLUMN 13 /* where a fact begins */

Tell gen_tell(Job *job, bool json) { return (Tell){.out = ir_text(job), .json = json}; }

/* ---- for people ---- */

/* The bytes of the next line: up to the last space within the room, or to the first beyond where there is none. */
static size_t next_line(const char *text, size_t room) {
    size_t count = strlen(text), at = room;
    if (count <= room) return count;
    while (at > 0 && text[at] != ' ') at--;
    if (at == 0) at = strcspn(text, " ");
    return at;
}

/* The rest of a line that has `column` characters; what goes on stands behind `hang` spaces. */
static void put_wrapped(Text *out, size_t column, uint32_t hang, const char *text) {
    size_t room = column < GEN_TELL_WIDTH ? GEN_TELL_WIDTH - column : 1;
    for (;;) {
        size_t count = next_line(text, room);
        ir_text_bytes(out, text, count);
        ir_text_put(out, "\n");
        text += count;
        while (*text == ' ') text++;
        if (!*text) return;
        ir_text_format(out, "%*s", (int)hang, "");
        room = GEN_TELL_WIDTH - hang;
    }
}

void gen_tell_line(Tell *tell, uint32_t hang, const char *line) {
    if (!tell->json) put_wrapped(&tell->out, 0, hang, line);
}

/* ---- for programs ---- */

static void put_string(Text *out, const char *text, bool is_key) {
    ir_text_put(out, "\"");
    for (const char *at = text; *at; at++) {
        const unsigned char byte = (unsigned char)*at;
        if (is_key && byte == ' ')
            ir_text_put(out, "_");
        else if (byte == '"' || byte == '\\')
            ir_text_format(out, "\\%c", byte);
        else if (byte < 0x20)
            ir_text_format(out, "\\u%04x", byte);
        else
            ir_text_bytes(out, at, 1);
    }
    ir_text_put(out, "\"");
}

static void start_item(Tell *tell, const char *key) {
    if (tell->inner) ir_text_put(&tell->out, ",");
    if (tell->depth) ir_text_format(&tell->out, "\n%*s", (int)tell->depth * INDENT, "");
    if (key) {
        put_string(&tell->out, key, true);
        ir_text_put(&tell->out, ": ");
    }
    tell->inner = true;
}

void gen_tell_open(Tell *tell, const char *key, bool list) {
    if (!tell->json) return;
    start_item(tell, key);
    ir_text_put(&tell->out, list ? "[" : "{");
    tell->inner = false;
    tell->depth++;
}

void gen_tell_close(Tell *tell, bool list) {
    if (!tell->json) return;
    tell->depth--;
    if (tell->inner) ir_text_format(&tell->out, "\n%*s", (int)tell->depth * INDENT, "");
    ir_text_put(&tell->out, list ? "]" : "}");
    if (!tell->depth) ir_text_put(&tell->out, "\n");
    tell->inner = true;
}

void gen_tell_json_int(Tell *tell, const char *key, int64_t number) {
    if (!tell->json) return;
    start_item(tell, key);
    ir_text_format(&tell->out, "%lld", (long long)number);
}

void gen_tell_json_double(Tell *tell, const char *key, double number) {
    if (!tell->json) return;
    start_item(tell, key);
    if (isfinite(number))
        ir_text_double(&tell->out, number);
    else
        ir_text_put(&tell->out, "null");
}

void gen_tell_json_text(Tell *tell, const char *key, const char *text) {
    if (!tell->json) return;
    start_item(tell, key);
    if (text)
        put_string(&tell->out, text, false);
    else
        ir_text_put(&tell->out, "null");
}

void gen_tell_json_bool(Tell *tell, const char *key, bool truth) {
    if (!tell->json) return;
    start_item(tell, key);
    ir_text_put(&tell->out, truth ? "true" : "false");
}

/* ---- for both ---- */

void gen_tell_text(Tell *tell, const char *key, const char *text) {
    gen_tell_json_text(tell, key, text);
    if (tell->json) return;
    Text head = ir_text(tell->out.job);
    ir_text_format(&head, "%*s%-*s", INDENT, "", COLUMN - INDENT - 1, key);
    ir_text_put(&head, " ");
    ir_text_bytes(&tell->out, head.bytes, head.count);
    put_wrapped(&tell->out, head.count, COLUMN, text ? text : "none");
}
