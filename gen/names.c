/* The names of one graph file: one table for types, dims, inputs, scalars, functions and nodes; near misses. */
#include <string.h>

#include "gen/front.h"

static const char *const kind_names[] = {"a type", "a dim", "an input", "a scalar", "a function", "a node"};

static uint32_t hash(const char *name) {
    uint32_t h = 2166136261u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 16777619u;
    return h;
}

static uint32_t *slot_of(const Front *front, const char *name) {
    uint32_t at = hash(name) & (front->slot_count - 1);
    while (front->slots[at] && strcmp(front->symbols.at[front->slots[at] - 1].name, name) != 0)
        at = (at + 1) & (front->slot_count - 1);
    return &front->slots[at];
}

static void grow(Front *front) {
    front->slot_count = front->slot_count ? front->slot_count * 2 : 64;
    front->slots = IR_NEW_ARRAY(front->job, uint32_t, front->slot_count);
    /* slots are never NULL. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
    for (uint32_t i = 0; i < front->symbols.count; i++) *slot_of(front, front->symbols.at[i].name) = i + 1;
}

Symbol *gen_name_find(const Front *front, const char *name) {
    if (front->slot_count == 0) return NULL;
    uint32_t at = *slot_of(front, name);
    return at ? &front->symbols.at[at - 1] : NULL;
}

void gen_name_put(Front *front, SymbolKind kind, uint32_t index, const char *name, Place place) {
    const Symbol *other = gen_name_find(front, name);
    if (other) {
        ir_error(front->job, place, "'%s' is already %s", name, kind_names[other->kind]);
        ir_note(front->job, other->place, "it is here");
        ir_stop(front->job, STATUS_REJECTED);
    }
    if (2 * (front->symbols.count + 1) > front->slot_count) grow(front);
    *IR_PUSH(front->job, &front->symbols) = (Symbol){.kind = kind, .name = name, .place = place, .index = index};
    *slot_of(front, name) = front->symbols.count;
}

void gen_name_add(Front *front, SymbolKind kind, uint32_t index, const Doc *key, const char *what) {
    gen_check_name(front->job, key->text, key->count, key->place, what);
    gen_name_put(front, kind, index, key->text, key->place);
}

const char *gen_name_hint(const Front *front, const char *name, uint32_t kinds, const char *const *more,
                          uint32_t more_count) {
    IR_LIST(const char *) words = {0};
    for (uint32_t i = 0; i < front->symbols.count && i < 1000; i++)
        if (kinds >> front->symbols.at[i].kind & 1) *IR_PUSH(front->job, &words) = front->symbols.at[i].name;
    for (uint32_t i = 0; i < more_count; i++) *IR_PUSH(front->job, &words) = more[i];
    const char *near = ir_near_miss(front->job, name, words.at, words.count);
    return near ? ir_format(front->job, "; did you mean '%s'?", near) : "";
}

bool gen_attempt(Job *job, void (*work)(Job *job, void *state), void *state) {
    uint32_t before = ir_error_count(job);
    Status status = ir_job_run(job, work, state);
    if (status == STATUS_OK) return true;
    if (status != STATUS_REJECTED || ir_error_count(job) == before)
        ir_stop(job, status); /* or the errors are too many */
    return false;
}

void gen_warn(const Front *front, Place place, const char *format, ...) {
    va_list args;
    va_start(args, format);
    Text text = ir_text(front->job);
    ir_text_vformat(&text, format, args);
    va_end(args);
    if (front->options && front->options->warnings_are_errors)
        ir_error(front->job, place, "%s (warnings are errors)", ir_text_string(&text));
    else
        ir_warn(front->job, place, "%s", ir_text_string(&text));
}
