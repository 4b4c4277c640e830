/* In: a unit after schedule. Out: its knobs, those of the graph and those of each kernel: value, default or forced, and
 * what it may be. Which values a kernel may have is found by planning it with each, so that --set never says otherwise;
 * of numbers those of a list are tried. Left alone: the unit. */
#include "gen/gen.h"
#include "gen/knobs.h"
#include "gen/tell.h"

#include <string.h>

#define MOST_VALUES 40
#define POSITIVE "positive" /* what an integer of the graph may be */

typedef struct Trial {
    const Unit *unit;
    uint32_t nest;
    GenOptions options; /* with one more setting */
    Strategy strategy;  /* of the plan that was made */
} Trial;

static void plan_trial(Job *job, void *state) {
    Trial *trial = state;
    Unit unit = *trial->unit;
    unit.options = trial->options;
    gen_schedule_nest(job, &unit, trial->nest);
    trial->strategy = unit.plan->steps.count ? unit.plan->steps.at[0].strategy : STRATEGY_COUNT;
}

/* Whether the kernel can be planned with the knob at this value and all others as they are. */
static bool holds(Job *job, const Unit *unit, const Allocator *allocator, uint32_t nest, KnobId id, const char *value) {
    const GenOptions *from = &unit->options;
    Trial trial = {.unit = unit, .nest = nest, .options = *from};
    Setting *sets = IR_NEW_ARRAY(job, Setting, from->set_count + (size_t)1);
    if (from->set_count) memcpy(sets, from->sets, from->set_count * sizeof *sets);
    sets[from->set_count] =
        (Setting){ir_format(job, "%s.%s", unit->prog->nests.at[nest].name, gen_knob(id)->name), value};
    trial.options.sets = sets;
    trial.options.set_count++;
    Job *own = ir_job_create(allocator);
    if (!own) ir_stop(job, STATUS_SYSTEM);
    const Status status = ir_job_run(own, plan_trial, &trial);
    ir_job_free(own);
    if (status == STATUS_SYSTEM) ir_stop(job, status);
    Strategy wanted;
    const bool met = id != KNOB_STRATEGY || (gen_strategy_find(value, &wanted) && wanted == trial.strategy);
    return !status && met;
}

/* Numbers worth trying: powers of two and some between; of threads, whole warps too. */
static uint32_t candidates(KnobId id, int value, int *numbers) {
    static const int few[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 128, 256};
    static const int threads[] = {1,   2,   4,   8,   16,  32,  64,  96,  128, 160, 192,
                                  224, 256, 320, 384, 448, 512, 640, 768, 896, 1024};
    const bool wide = id == KNOB_ROW_THREADS || id == KNOB_THREADS;
    const int *from = wide ? threads : few;
    const uint32_t size = wide ? sizeof threads / sizeof *threads : sizeof few / sizeof *few;
    uint32_t count = 0;
    bool placed = false;
    for (uint32_t i = 0; i < size; i++) {
        if (!placed && value < from[i]) numbers[count++] = value;
        placed = placed || value <= from[i];
        numbers[count++] = from[i];
    }
    if (!placed) numbers[count++] = value;
    return count;
}

typedef struct Row { /* of the table */
    const char *knob, *value;
    bool forced;
    const char *may; /* what it may be: words, a space between */
} Row;

static void tell_json_word(Tell *tell, const char *key, const char *word) {
    int64_t number;
    if (ir_read_int(word, strlen(word), &number))
        gen_tell_json_int(tell, key, number);
    else
        gen_tell_json_text(tell, key, word);
}

static void tell_json_words(Tell *tell, const char *words) {
    gen_tell_open(tell, "may_be", true);
    for (const char *at = words; *at;) {
        const size_t length = strcspn(at, " ");
        tell_json_word(tell, NULL, ir_copy_text(tell->out.job, at, length));
        at += length + (at[length] == ' ');
    }
    gen_tell_close(tell, true);
}

static void tell_row(Tell *tell, const Row *row, const char *what) {
    Job *job = tell->out.job;
    const char *from = row->forced ? "forced" : "default";
    gen_tell_open(tell, NULL, false);
    gen_tell_json_text(tell, "knob", row->knob);
    tell_json_word(tell, "value", row->value);
    gen_tell_json_text(tell, "from", from);
    tell_json_words(tell, row->may);
    gen_tell_json_text(tell, "sets", what);
    gen_tell_close(tell, false);
    const char *head = ir_format(job, "  %-16s %-14s %-8s ", row->knob, row->value, from);
    gen_tell_line(tell, (uint32_t)strlen(head), ir_format(job, "%s%s", head, *row->may ? row->may : "nothing else"));
}

static void list_graph(Tell *tell, const Unit *unit) {
    gen_tell_open(tell, "graph_knobs", true);
    for (uint32_t k = 0; k < KNOB_COUNT; k++) {
        const Knob *knob = gen_knob((KnobId)k);
        if (knob->scope != KNOB_OF_GRAPH && knob->scope != KNOB_OF_NESTS) continue;
        const char *forced = gen_knob_text(&unit->options, (KnobId)k, NULL);
        tell_row(tell,
                 &(Row){knob->name, forced ? forced : knob->otherwise, forced != NULL,
                        *knob->values ? knob->values : POSITIVE},
                 knob->what);
    }
    gen_tell_close(tell, true);
}

static const char *words_that_hold(Job *job, const Unit *unit, const Allocator *allocator, uint32_t nest, KnobId id) {
    Text may = ir_text(job);
    const char *at = gen_knob(id)->values;
    while (*at) {
        const size_t length = strcspn(at, " ");
        const char *word = ir_copy_text(job, at, length);
        if (holds(job, unit, allocator, nest, id, word)) ir_text_format(&may, "%s%s", may.count ? " " : "", word);
        at += length + (at[length] == ' ');
    }
    return ir_text_string(&may);
}

static const char *numbers_that_hold(Job *job, const Unit *unit, const Allocator *allocator, uint32_t nest, KnobId id,
                                     int value) {
    int numbers[MOST_VALUES];
    const uint32_t count = candidates(id, value, numbers);
    Text may = ir_text(job);
    for (uint32_t i = 0; i < count; i++) {
        const char *number = ir_format(job, "%d", numbers[i]);
        if (holds(job, unit, allocator, nest, id, number)) ir_text_format(&may, "%s%s", may.count ? " " : "", number);
    }
    return ir_text_string(&may);
}

static void list_kernel(Tell *tell, const Unit *unit, const Allocator *allocator, const Step *step) {
    Job *job = tell->out.job;
    const char *name = unit->prog->nests.at[step->nest].name, *strategy = gen_strategy(step->strategy)->name;
    gen_tell_open(tell, NULL, false);
    gen_tell_json_text(tell, "name", name);
    gen_tell_line(tell, 0, ir_format(job, "\nkernel %s", name));
    gen_tell_open(tell, "knobs", true);
    for (uint32_t k = 0; k < KNOB_COUNT; k++) {
        const KnobId id = (KnobId)k;
        const Knob *knob = gen_knob(id);
        const bool forced = knob->scope != KNOB_OF_GRAPH && gen_knob_text(&unit->options, id, name);
        int value;
        if (knob->scope == KNOB_IS_STRATEGY) {
            const char *may = words_that_hold(job, unit, allocator, step->nest, id);
            tell_row(tell, &(Row){knob->name, strategy, forced && *may, may}, knob->what);
        } else if (gen_knob_value(step, id, &value)) {
            const char *may = numbers_that_hold(job, unit, allocator, step->nest, id, value);
            tell_row(tell, &(Row){knob->name, ir_format(job, "%d", value), forced, may}, knob->what);
        }
    }
    gen_tell_close(tell, true);
    gen_tell_close(tell, false);
}

void gen_knobs_list(Text *text, const Unit *unit, const Allocator *allocator, bool json) {
    Tell tell = gen_tell(text->job, json);
    const Target *target = unit->options.target ? unit->options.target : gen_target(90);
    gen_tell_open(&tell, NULL, false);
    gen_tell_json_text(&tell, "graph", unit->prog->name);
    gen_tell_json_int(&tell, "arch", target->arch);
    gen_tell_line(&tell, 0,
                  ir_format(text->job, "%s, planned for sm_%d: knob, value, where it is from, what it may be\n\ngraph",
                            unit->prog->name, target->arch));
    list_graph(&tell, unit);
    gen_tell_open(&tell, "kernels", true);
    for (uint32_t s = 0; s < unit->plan->steps.count; s++)
        list_kernel(&tell, unit, allocator, &unit->plan->steps.at[s]);
    gen_tell_close(&tell, true);
    gen_tell_close(&tell, false);
    gen_tell_line(&tell, 0,
                  "\n--set KNOB=V forces a knob of the graph or of all kernels that take it, --set KERNEL.KNOB=V of "
                  "one kernel. Numbers are those that were tried and hold with the other knobs as they are.");
    ir_text_bytes(text, tell.out.bytes, tell.out.count);
}
