/* In: a skeleton (templates/, syntax in row_registers.cu) and what fills it. Out: its text between begin and end with
 * the samples replaced. Two blank lines in a row become one. */
#include "gen/emit.h"

#include <string.h>

typedef struct Reader {
    Job *job;
    const Skeleton *skeleton;
    Text *out;
    const char *at;
    const char *line; /* the line taken last, without its newline */
    size_t count;
} Reader;

static bool next_line(Reader *r) {
    if (!*r->at) return false;
    r->line = r->at;
    r->count = strcspn(r->at, "\n");
    r->at += r->count + (r->at[r->count] == '\n');
    return true;
}

/* The directive of this line after its mark, or NULL. */
static const char *directive(const Reader *r, int *indent) {
    size_t blanks = strspn(r->line, " ");
    *indent = (int)blanks;
    if (blanks + 4 > r->count || memcmp(r->line + blanks, "//@ ", 4) != 0) return NULL;
    return ir_copy_text(r->job, r->line + blanks + 4, r->count - blanks - 4);
}

/* The name in "KIND NAME {", or NULL. */
static const char *block_name(Job *job, const char *text, const char *kind) {
    size_t count = strlen(kind), length = strlen(text);
    if (strncmp(text, kind, count) != 0 || text[count] != ' ' || length < count + 4) return NULL;
    if (strcmp(text + length - 2, " {") != 0) return NULL;
    return ir_copy_text(job, text + count + 1, length - count - 3);
}

static void copy_line(Reader *r) {
    Text *out = r->out;
    bool blank = strspn(r->line, " ") == r->count;
    if (blank && out->count >= 2 && out->bytes[out->count - 1] == '\n' && out->bytes[out->count - 2] == '\n') return;
    ir_text_bytes(out, r->line, r->count);
    ir_text_put(out, "\n");
}

/* Lines up to the `}` that closes the block, whose opening line was taken. keep: copied, else passed over. */
static void read_block(Reader *r, bool keep, bool outermost) {
    int indent;
    while (next_line(r)) {
        const char *what = directive(r, &indent), *name;
        if (!what) {
            if (keep) copy_line(r);
        } else if (strcmp(what, outermost ? "end" : "}") == 0) {
            return;
        } else if ((name = block_name(r->job, what, "fill"))) {
            if (keep) r->skeleton->fill(r->skeleton->state, name, r->out, indent);
            read_block(r, false, false);
        } else if ((name = block_name(r->job, what, "if"))) {
            read_block(r, keep && r->skeleton->wanted(r->skeleton->state, name), false);
        } else if (block_name(r->job, what, "each")) {
            const char *start = r->at;
            for (uint32_t i = 0; keep && i < r->skeleton->turns; i++) {
                r->at = start;
                r->skeleton->enter(r->skeleton->state, i);
                read_block(r, true, false);
            }
            if (!keep || r->skeleton->turns == 0) read_block(r, false, false);
        } else {
            IR_BREACH(r->job, "a skeleton says `%s`", what);
        }
    }
    IR_BREACH(r->job, "a skeleton ends within a block");
}

void gen_skeleton(Job *job, const char *text, const Skeleton *skeleton, Text *out) {
    const char *start = strstr(text, "\n//@ begin\n");
    IR_REQUIRE(job, start != NULL);
    Reader reader = {.job = job, .skeleton = skeleton, .out = out, .at = start + strlen("\n//@ begin\n")};
    read_block(&reader, true, true);
}
