/* ng_grad. In: a forward graph's text, names and options. Out: the texts of the backward graph and of the extended
 * forward one, and what they save. Left alone: how gradients are made (gen/grad.c); every call has a job of its own. */
#include "runtime/context.h"

#include "gen/expr.h"
#include "runtime/check_grad.h"

#include <string.h>

typedef enum Made { BACKWARD, FORWARD, EXPLAIN, EXPLAIN_JSON, MADE_COUNT } Made;

typedef struct Deriving {
    const char *graph;
    size_t count;
    const char *wrt, *of;
    const ng_grad_options *options;
    const Graph *parsed;
    Allocator allocator;
    ng_text *out[MADE_COUNT];
    Text made[MADE_COUNT];
} Deriving;

/* ---- names ---- */

static const char *trimmed(Job *job, const char *start, size_t count) {
    while (count && (*start == ' ' || *start == '\t')) start++, count--;
    while (count && (start[count - 1] == ' ' || start[count - 1] == '\t')) count--;
    return ir_copy_text(job, start, count);
}

static bool has_name(const Names *names, const char *name) {
    for (uint32_t i = 0; i < names->count; i++)
        if (!strcmp(names->at[i], name)) return true;
    return false;
}

static Names split_names(Job *job, const char *option, const char *text) {
    IR_LIST(const char *) names = {0};
    while (text) {
        const size_t count = strcspn(text, ",");
        const char *name = trimmed(job, text, count);
        if (!*name) ir_stop_at(job, STATUS_USAGE, (Place){0, 0}, "--%s: a name is missing", option);
        if (has_name(&(Names){names.at, names.count}, name))
            ir_stop_at(job, STATUS_USAGE, (Place){0, 0}, "--%s=%s: it is named twice", option, name);
        *IR_PUSH(job, &names) = name;
        text = text[count] ? text + count + 1 : NULL;
    }
    return (Names){names.at, names.count};
}

/* "*" among them is taken out. */
static bool take_all(Names *names) {
    const char **at = (const char **)(uintptr_t)names->at;
    uint32_t left = 0;
    for (uint32_t i = 0; i < names->count; i++)
        if (strcmp(at[i], "*") != 0) at[left++] = at[i];
    const bool all = left < names->count;
    names->count = left;
    return all;
}

GradOptions rt_grad_names(Job *job, const char *wrt, const char *of, const char *save, const char *recompute,
                          const char *prefix) {
    if (prefix && !gen_is_name(prefix, strlen(prefix)))
        ir_stop_at(job, STATUS_USAGE, (Place){0, 0},
                   "--prefix=%s: names begin with it: letters, digits and _, no digit first", prefix);
    GradOptions options = {.wrt = split_names(job, "wrt", wrt),
                           .of = split_names(job, "of", of),
                           .save = split_names(job, "save", save),
                           .recompute = split_names(job, "recompute", recompute),
                           .prefix = prefix};
    options.recompute_all = take_all(&options.recompute);
    return options;
}

/* ---- the work ---- */

static void keep_parsed(void *state, Job *job, const Unit *unit, uint32_t pass) {
    (void)job;
    if (pass == 0) ((Deriving *)state)->parsed = unit->graph;
}

typedef struct Reading {
    const Text *text;
    const Graph *made;
    bool same;
} Reading;

static void read_work(Job *job, void *state) {
    Reading *reading = state;
    Unit unit;
    gen_run(job, &unit, "what was written", reading->text->bytes, reading->text->count, &(GenOptions){0}, 0);
    reading->same = ir_graph_same(job, reading->made, unit.graph);
}

static void free_job(void *job) { ir_job_free(job); }

/* In a job of its own, whose source is that text. */
static void verify(Job *job, const Allocator *allocator, const Text *text, const Graph *made) {
    Reading reading = {.text = text, .made = made};
    Job *own = ir_job_create(allocator);
    if (!own) ir_stop_at(job, STATUS_SYSTEM, (Place){0, 0}, "out of memory");
    ir_job_defer(job, free_job, own);
    const Status status = ir_job_run(own, read_work, &reading);
    if (status == STATUS_SYSTEM) ir_stop_at(job, status, (Place){0, 0}, "out of memory");
    if (status) IR_BREACH(job, "what was written does not read back\n%s%s", ir_job_report(own), text->bytes);
    if (!reading.same) IR_BREACH(job, "what was written reads back as another graph\n%s", text->bytes);
}

static ng_compile_options settings_of(const ng_grad_options *options) {
    return (ng_compile_options){.defines = options->defines,
                                .define_count = options->define_count,
                                .hints = options->hints,
                                .hint_count = options->hint_count,
                                .fixes = options->fixes,
                                .fix_count = options->fix_count,
                                .warnings_are_errors = options->warnings_are_errors};
}

static void derive_work(Job *job, void *state) {
    Deriving *deriving = state;
    const ng_grad_options *from = deriving->options;
    const ng_compile_options settings = settings_of(from);
    GenOptions options = rt_compile_options(job, &settings);
    options.after = keep_parsed;
    options.after_state = deriving;
    const char *name = from->name ? from->name : "graph";
    Unit unit;
    /* expand finds what is wrong inside composites */
    gen_run(job, &unit, ir_copy_text(job, name, strlen(name)), ir_copy_text(job, deriving->graph, deriving->count),
            deriving->count, &options, gen_pass_find("expand"));
    const GradOptions names =
        rt_grad_names(job, deriving->wrt, deriving->of, from->save, from->recompute, from->prefix);
    for (uint32_t i = 0; i < names.save.count; i++)
        if (has_name(&names.recompute, names.save.at[i]))
            ir_stop_at(job, STATUS_USAGE, (Place){0, 0}, "--save=%s: --recompute names it too", names.save.at[i]);
    const Grad *grad = gen_grad(job, deriving->parsed, &names);
    for (int i = 0; i < MADE_COUNT; i++) deriving->made[i] = ir_text(job);
    gen_grad_backward(&deriving->made[BACKWARD], grad);
    gen_grad_forward(&deriving->made[FORWARD], grad);
    if (deriving->out[EXPLAIN]) gen_grad_explain(&deriving->made[EXPLAIN], grad, false);
    if (deriving->out[EXPLAIN_JSON]) gen_grad_explain(&deriving->made[EXPLAIN_JSON], grad, true);
    if (!from->verify) return;
    verify(job, &deriving->allocator, &deriving->made[BACKWARD], grad->backward);
    verify(job, &deriving->allocator, &deriving->made[FORWARD], grad->forward);
}

/* All of them or none. */
static bool give_texts(const Deriving *deriving) {
    for (int i = 0; i < MADE_COUNT; i++) {
        const Text *made = &deriving->made[i];
        if (!deriving->out[i]) continue;
        *deriving->out[i] = rt_text_give(made->bytes, made->count);
        if (deriving->out[i]->bytes) continue;
        while (i >= 0) ng_text_free(deriving->out[i--]);
        return false;
    }
    return true;
}

static Status derive(Deriving *deriving, ng_text *why) {
    Job *job = ir_job_create(&deriving->allocator);
    Status status = job ? ir_job_run(job, derive_work, deriving) : STATUS_SYSTEM;
    const bool said = job && (status || ir_diagnostic_count(job));
    if (!status && !give_texts(deriving)) status = STATUS_SYSTEM;
    if (said && why)
        *why = rt_job_words(job);
    else if (status)
        rt_why(why, "out of memory");
    ir_job_free(job);
    return status;
}

/* ---- the call ---- */

static const char *read_options(ng_grad_options *own, const ng_grad_options *options) {
    if (options && !rt_struct_in(own, sizeof *own, options)) return "the options' size is not set";
    if (!own->alloc != !own->release) return "alloc and release go together";
    const ng_compile_options settings = settings_of(own);
    return rt_options_wrong(&settings);
}

ng_status ng_grad(const char *graph, size_t count, const char *wrt, const char *of, const ng_grad_options *options,
                  ng_text *backward, ng_text *forward, ng_text *why) {
    ng_grad_options own = {.size = sizeof own};
    ng_text *const out[] = {why, backward, forward};
    for (size_t i = 0; i < sizeof out / sizeof *out; i++)
        if (out[i]) *out[i] = (ng_text){NULL, 0};
    const char *wrong = read_options(&own, options);
    if (!wrong && !graph && count) wrong = "graph must be given";
    if (wrong) {
        rt_why(why, "%s", wrong);
        return NG_USAGE;
    }
    if (own.explain) *own.explain = (ng_text){NULL, 0};
    if (own.explain_json) *own.explain_json = (ng_text){NULL, 0};
    Deriving deriving = {.graph = graph ? graph : "",
                         .count = count,
                         .wrt = wrt,
                         .of = of,
                         .options = &own,
                         .allocator = rt_allocator(own.alloc, own.release, own.allocator_state),
                         .out = {backward, forward, own.explain, own.explain_json}};
    return rt_status(derive(&deriving, why));
}
