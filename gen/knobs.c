/* In: the --set settings. Out: what each knob is forced to. Left alone: whether a value is possible for a kernel, which
 * the pass that uses the knob decides. */
#include "gen/knobs.h"

#include <string.h>

static const Knob knobs[] = {
#define KNOB(id, name, values, what) {name, values, what},
#include "gen/knobs.def"
#undef KNOB
};

const Knob *gen_knob(KnobId id) { return &knobs[id]; }

/* The part after the last dot; *kernel_count: bytes before it. */
static const char *knob_part(const char *name, size_t *kernel_count) {
    const char *dot = strrchr(name, '.');
    *kernel_count = dot ? (size_t)(dot - name) : 0;
    return dot ? dot + 1 : name;
}

static bool is_word_of(const char *words, const char *value) {
    size_t count = strlen(value);
    for (const char *at = words; *at;) {
        size_t length = strcspn(at, " ");
        if (length == count && memcmp(at, value, count) == 0) return true;
        at += length;
        at += strspn(at, " ");
    }
    return false;
}

static void check_setting(Job *job, const Setting *setting) {
    size_t kernel_count;
    const char *name = knob_part(setting->name, &kernel_count);
    for (uint32_t i = 0; i < KNOB_COUNT; i++) {
        if (strcmp(knobs[i].name, name) != 0) continue;
        int64_t number;
        if (*knobs[i].values) {
            if (is_word_of(knobs[i].values, setting->value)) return;
            ir_stop_at(job, STATUS_USAGE, (Place){0, 0}, "--set %s takes one of: %s; found `%s`", name, knobs[i].values,
                       setting->value);
        }
        if (ir_read_int(setting->value, strlen(setting->value), &number) && number >= 1 && number <= 1 << 20) return;
        ir_stop_at(job, STATUS_USAGE, (Place){0, 0}, "--set %s takes a positive number; found `%s`", name,
                   setting->value);
    }
    const char *names[KNOB_COUNT];
    for (uint32_t i = 0; i < KNOB_COUNT; i++) names[i] = knobs[i].name;
    const char *near = ir_near_miss(job, name, names, KNOB_COUNT);
    ir_stop_at(job, STATUS_USAGE, (Place){0, 0}, "there is no knob `%s`%s%s%s", name, near ? "; did you mean `" : "",
               near ? near : "", near ? "`?" : "");
}

void gen_knobs_check(Job *job, const GenOptions *options) {
    for (uint32_t i = 0; i < options->set_count; i++) check_setting(job, &options->sets[i]);
}

const char *gen_knob_text(const GenOptions *options, KnobId id, const char *kernel) {
    const char *all = NULL, *own = NULL;
    for (uint32_t i = 0; i < options->set_count; i++) {
        size_t kernel_count;
        const char *name = knob_part(options->sets[i].name, &kernel_count);
        if (strcmp(name, knobs[id].name) != 0) continue;
        if (kernel_count == 0)
            all = options->sets[i].value;
        else if (kernel && strlen(kernel) == kernel_count && memcmp(options->sets[i].name, kernel, kernel_count) == 0)
            own = options->sets[i].value;
    }
    return own ? own : all;
}

int gen_knob_int(const GenOptions *options, KnobId id, const char *kernel) {
    const char *text = gen_knob_text(options, id, kernel);
    int64_t number = 0;
    if (text) ir_read_int(text, strlen(text), &number);
    return (int)number;
}
