/* In: the text of kernels. Out: the helpers of templates/ that it names, and all that those name, in the files' order;
 * or the prelude of host texts, which holds every helper with its host body. */
#include "gen/emit.h"
#include "gen/template.h"

#include <string.h>

typedef struct Helper {
    const char *name; /* "host": of the host prelude alone */
    size_t name_count;
    GenUse use; /* what the unit must do */
    const char *start, *end;
    bool taken;
} Helper;

typedef IR_LIST(Helper) HelperList;

static const char *const files[] = {"helpers.cuh", "memory.cuh", "math.cuh", "pairs.cuh"};

static const char *line_end(const char *at) { return at + strcspn(at, "\n"); }
static const char *line_next(const char *at) {
    at = line_end(at);
    return *at ? at + 1 : at;
}
static bool starts(const char *at, const char *with) { return strncmp(at, with, strlen(with)) == 0; }

/* "NAME dtype ..." */
static Helper read_mark(Job *job, const char *at) {
    const char *end = line_end(at);
    Helper helper = {.name = at, .start = line_next(at)};
    while (at < end && *at != ' ') at++;
    helper.name_count = (size_t)(at - helper.name);
    while (at < end) {
        at++;
        const char *word = at;
        while (at < end && *at != ' ') at++;
        uint32_t *mask = &helper.use.computes;
        if (starts(word, "load."))
            word += strlen("load."), mask = &helper.use.loads;
        else if (starts(word, "store."))
            word += strlen("store."), mask = &helper.use.stores;
        DType dtype;
        if (!ir_dtype_find(word, (size_t)(at - word), &dtype)) IR_BREACH(job, "a helper's mark names no dtype");
        *mask |= (uint32_t)1 << dtype;
    }
    return helper;
}

/* A name has one meaning: helpers of one name differ in the dtypes of their marks, none of which is empty. */
static void check_name(Job *job, const HelperList *helpers) {
    const Helper *last = &helpers->at[helpers->count - 1];
    const GenUse none = {0};
    for (uint32_t i = 0; i + 1 < helpers->count; i++) {
        const Helper *other = &helpers->at[i];
        if (other->name_count != last->name_count || memcmp(other->name, last->name, last->name_count) != 0) continue;
        if (starts(last->name, "host")) continue;
        bool apart = memcmp(&other->use, &last->use, sizeof none) != 0 && memcmp(&other->use, &none, sizeof none) != 0;
        if (!apart || memcmp(&last->use, &none, sizeof none) == 0)
            IR_BREACH(job, "two helpers have the name %s", ir_copy_text(job, last->name, last->name_count));
    }
}

static HelperList read_helpers(Job *job) {
    HelperList helpers = {0};
    for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
        const GenTemplate *file = gen_template_find(files[f]);
        IR_REQUIRE(job, file != NULL);
        Helper *open = NULL;
        for (const char *at = file->bytes; *at; at = line_next(at)) {
            if (!starts(at, "//@ ")) continue;
            if (open) open->end = at;
            open = IR_PUSH(job, &helpers);
            *open = read_mark(job, at + 4);
            check_name(job, &helpers);
        }
        if (open) open->end = file->bytes + file->count;
    }
    return helpers;
}

/* The helper's lines for a device or the host; conditions of other kinds are copied as they stand. */
static void copy_helper(const Helper *helper, bool device, Text *out) {
    int other = 0; /* conditions that are open within the choice */
    bool inside = false, keep = true;
    for (const char *at = helper->start; at < helper->end; at = line_next(at)) {
        if (starts(at, "#if NG_DEVICE\n")) {
            inside = true, keep = device;
            continue;
        }
        if (starts(at, "#if")) other++;
        if (inside && !other && starts(at, "#else\n"))
            keep = !device;
        else if (inside && !other && starts(at, "#endif\n"))
            inside = false, keep = true;
        else if (keep && !starts(at, "// ----") && *at != '\n')
            ir_text_bytes(out, at, (size_t)(line_next(at) - at));
        if (other && starts(at, "#endif")) other--;
    }
}

static bool is_name_byte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool is_used(GenUse needs, GenUse use) {
    return !(needs.computes & ~use.computes) && !(needs.loads & ~use.loads) && !(needs.stores & ~use.stores);
}

static void take_named(Job *job, HelperList *helpers, const char *text, GenUse use) {
    for (const char *at = text; *at;) {
        if (!is_name_byte(*at)) {
            at++;
            continue;
        }
        const char *start = at;
        while (is_name_byte(*at)) at++;
        if (!starts(start, "ng_") && !starts(start, "NG_")) continue;
        for (uint32_t i = 0; i < helpers->count; i++) {
            Helper *helper = &helpers->at[i];
            if (helper->taken || helper->name_count != (size_t)(at - start)) continue;
            if (memcmp(helper->name, start, helper->name_count) != 0 || !is_used(helper->use, use)) continue;
            helper->taken = true;
            Text body = ir_text(job);
            copy_helper(helper, true, &body);
            take_named(job, helpers, ir_text_string(&body), use);
        }
    }
}

void gen_emit_helpers(Job *job, const char *kernels, GenUse use, Text *out) {
    HelperList helpers = read_helpers(job);
    take_named(job, &helpers, kernels, use);
    for (uint32_t i = 0; i < helpers.count; i++)
        if (helpers.at[i].taken) copy_helper(&helpers.at[i], true, out);
}

void gen_emit_host_prelude(Job *job, Text *out) {
    HelperList helpers = read_helpers(job);
    const GenTemplate *api = gen_template_find("host_api.h");
    IR_REQUIRE(job, api != NULL);
    ir_text_put(out, "#ifndef NG_TEXT\n#define NG_TEXT 0\n#endif\n");
    ir_text_put(out, "#ifndef NG_HOST_PRELUDE\n#define NG_HOST_PRELUDE\n");
    ir_text_put(out, "#pragma GCC diagnostic ignored \"-Wunknown-pragmas\"\n");
    /* packs are read under the condition under which they are loaded, which is more than gcc can follow */
    ir_text_put(out, "#ifndef __clang__\n#pragma GCC diagnostic ignored \"-Wmaybe-uninitialized\"\n#endif\n");
    ir_text_bytes(out, api->bytes, api->count);
    for (uint32_t i = 0; i < helpers.count; i++) copy_helper(&helpers.at[i], false, out);
    ir_text_put(out, "#endif\n\n");
}
