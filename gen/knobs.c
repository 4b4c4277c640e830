/* In: the --set settings. Out: what each knob is forced to. Left alone: whether a value is possible for a kernel, which
 * the pass that uses the knob decides. */
#include "gen/knobs.h"

#include <string.h>

static const Knob knobs[] = {
#define KNOB(id, name, values, least, otherwise, scope, what) {name, values, least, otherwise, KNOB_##scope, what},
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

const char *gen_knob_takes(KnobId id) {
    if (*knobs[id].values) return knobs[id].values;
    return knobs[id].least ? "a positive number" : "0 or a positive number";
}

static void check_setting(Job *job, const Setting *setting) {
    size_t kernel_count;
    const char *name = knob_part(setting->name, &kernel_count);
    for (uint32_t i = 0; i < KNOB_COUNT; i++) {
        if (strcmp(knobs[i].name, name) != 0) continue;
        int64_t number;
        if (*knobs[i].values) {
            if (is_word_of(knobs[i].values, setting->value)) return;
            ir_stop_at(job, STATUS_USAGE, (Place){0, 0}, "--set %s takes one of: %s; found '%s'", name, knobs[i].values,
                       setting->value);
        }
        const int64_t most = knobs[i].scope == KNOB_OF_GRAPH ? 1 << 30 : 1 << 20;
        if (ir_read_int(setting->value, strlen(setting->value), &number) && number >= knobs[i].least && number <= most)
            return;
        ir_stop_at(job, STATUS_USAGE, (Place){0, 0}, "--set %s takes %s; found '%s'", name, gen_knob_takes((KnobId)i),
                   setting->value);
    }
    const char *names[KNOB_COUNT];
    for (uint32_t i = 0; i < KNOB_COUNT; i++) names[i] = knobs[i].name;
    const char *near = ir_near_miss(job, name, names, KNOB_COUNT);
    ir_stop_at(job, STATUS_USAGE, (Place){0, 0}, "there is no knob '%s'%s%s%s (normgen knobs GRAPH lists them)", name,
               near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static bool takes(const Step *step, KnobScope scope, const char *value) {
    if (scope == KNOB_IS_STRATEGY) return strcmp(gen_strategy(step->strategy)->name, value) == 0;
    const bool pointwise = step->strategy == STRATEGY_POINTWISE;
    if (scope == KNOB_OF_STREAM) return step->strategy == STRATEGY_ROW_STREAM;
    return scope == KNOB_OF_KERNELS || (scope == KNOB_OF_POINTWISE) == pointwise;
}

bool gen_knob_value(const Step *step, KnobId id, int *value) {
    const KnobScope scope = knobs[id].scope;
    const Tile *tile = &step->tile;
    if (scope == KNOB_OF_GRAPH || scope == KNOB_OF_NESTS || scope == KNOB_IS_STRATEGY || !takes(step, scope, ""))
        return false;
    switch (id) {
    case KNOB_ROW_THREADS: *value = tile->row_threads; return true;
    case KNOB_ROWS: *value = tile->rows; return true;
    case KNOB_VECTOR: *value = tile->vector; return true;
    case KNOB_CHUNKS: *value = tile->chunks; return true;
    case KNOB_MIN_CTAS: *value = tile->min_ctas; return true;
    case KNOB_THREADS: *value = tile->threads; return true;
    case KNOB_STAGES: *value = tile->stages; return true;
    case KNOB_PART_ROWS: *value = tile->part_rows; return true;
    default: return false;
    }
}

static const char *const wanted[] = {[KNOB_OF_KERNELS] = "any would",
                                     [KNOB_OF_ROW_KERNELS] = "those that work by rows would",
                                     [KNOB_OF_POINTWISE] = "pointwise ones would",
                                     [KNOB_OF_STREAM] = "those of rows with sums across them would"};

static const Knob *knob_of(const Setting *setting, size_t *kernel_count) {
    const char *part = knob_part(setting->name, kernel_count);
    const Knob *knob = knobs;
    while (strcmp(knob->name, part) != 0) knob++;
    return knob;
}

static bool is_named(const Setting *setting, size_t count, const char *name) {
    return strlen(name) == count && memcmp(name, setting->name, count) == 0;
}

typedef IR_LIST(const char *) Names;

_Noreturn static void refuse_name(Job *job, const Setting *setting, size_t count, const char *what, const char *those,
                                  const Names *names) {
    const char *name = ir_copy_text(job, setting->name, count);
    const char *near = ir_near_miss(job, name, names->at, names->count);
    Text all = ir_text(job);
    for (uint32_t i = 0; i < names->count; i++) ir_text_format(&all, "%s%s", i ? ", " : "", names->at[i]);
    ir_stop_at(job, STATUS_USAGE, (Place){0, 0}, "--set %s: there is no %s '%s'%s%s%s; %s %s", setting->name, what,
               name, near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "", those,
               names->count ? ir_text_string(&all) : "none");
}

void gen_knobs_of_nests(Job *job, const Unit *unit) {
    for (uint32_t i = 0; i < unit->options.set_count; i++) {
        const Setting *setting = &unit->options.sets[i];
        size_t count;
        if (knob_of(setting, &count)->scope != KNOB_OF_NESTS || !count) continue;
        Names names = {0};
        bool found = false;
        for (uint32_t n = 0; n < unit->prog->nests.count; n++) {
            const Nest *nest = &unit->prog->nests.at[n];
            if (nest->class == CLASS_POINTWISE) continue;
            *IR_PUSH(job, &names) = nest->name;
            found = found || is_named(setting, count, nest->name);
        }
        if (!found) refuse_name(job, setting, count, "reduction", "before any are joined they are", &names);
    }
}

/* No kernel that is meant has this strategy: which have which, and why there is no choice. */
_Noreturn static void refuse_strategy(Job *job, const Unit *unit, const Setting *setting, size_t kernel_count) {
    Text all = ir_text(job);
    for (uint32_t s = 0; s < unit->plan->steps.count; s++) {
        const Step *step = &unit->plan->steps.at[s];
        const char *name = unit->prog->nests.at[step->nest].name;
        const StrategyRow *row = gen_strategy(step->strategy);
        if (kernel_count && is_named(setting, kernel_count, name))
            ir_stop_at(job, STATUS_NOT_COMPILED, (Place){0, 0}, "kernel %s cannot be %s: it is %s: %s", name,
                       setting->value, row->name, row->use);
        ir_text_format(&all, "%s%s is %s", s ? ", " : "", name, row->name);
    }
    ir_stop_at(job, STATUS_NOT_COMPILED, (Place){0, 0}, "%s=%s is not possible: no kernel here takes it: %s",
               setting->name, setting->value, ir_text_string(&all));
}

static void check_met(Job *job, const Unit *unit, const Setting *setting) {
    size_t kernel_count;
    const Knob *knob = knob_of(setting, &kernel_count);
    if (knob->scope == KNOB_OF_GRAPH && kernel_count)
        ir_stop_at(job, STATUS_USAGE, (Place){0, 0}, "--set %s: %s is of the whole graph, not of a kernel",
                   setting->name, knob->name);
    if (knob->scope == KNOB_OF_GRAPH || knob->scope == KNOB_OF_NESTS) return;
    Names names = {0};
    bool found = !kernel_count, met = false;
    for (uint32_t s = 0; s < unit->plan->steps.count; s++) {
        const Step *step = &unit->plan->steps.at[s];
        const char *name = *IR_PUSH(job, &names) = unit->prog->nests.at[step->nest].name;
        if (kernel_count && !is_named(setting, kernel_count, name)) continue;
        found = true;
        met |= takes(step, knob->scope, setting->value);
    }
    if (!found) refuse_name(job, setting, kernel_count, "kernel", "the kernels are", &names);
    if (!met && names.count && knob->scope == KNOB_IS_STRATEGY) refuse_strategy(job, unit, setting, kernel_count);
    if (!met && names.count)
        ir_stop_at(job, STATUS_NOT_COMPILED, (Place){0, 0}, "%s=%s is not possible: no kernel here takes it, %s",
                   setting->name, setting->value, wanted[knob->scope]);
}

void gen_knobs_met(Job *job, const Unit *unit) {
    for (uint32_t i = 0; i < unit->options.set_count; i++) check_met(job, unit, &unit->options.sets[i]);
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
        else if (kernel && is_named(&options->sets[i], kernel_count, kernel))
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
