/* Compiling. In: a graph's text and options. Out: an ng_program whose kernels are loaded, so that a launch only
 * enqueues. The same text at the same time, or while a program of it lives, is compiled once: the programs share one
 * object. */
#include "runtime/context.h"

#include <stdio.h>
#include <string.h>

/* ---- the key: everything that changes what a program is ---- */

static void hash_text(XXH3_state_t *state, const char *text) {
    size_t count = text ? strlen(text) + 1 : 0;
    XXH3_128bits_update(state, &count, sizeof count);
    if (count) XXH3_128bits_update(state, text, count);
}

static void hash_settings(XXH3_state_t *state, const ng_setting *settings, size_t count) {
    XXH3_128bits_update(state, &count, sizeof count);
    for (size_t i = 0; i < count; i++) {
        hash_text(state, settings[i].name);
        hash_text(state, settings[i].value);
    }
}

static XXH128_hash_t make_key(const char *graph, size_t count, const ng_compile_options *options) {
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    XXH3_128bits_reset(&state);
    XXH3_128bits_update(&state, &count, sizeof count);
    XXH3_128bits_update(&state, graph, count);
    hash_text(&state, options->name);
    hash_text(&state, options->last_pass);
    hash_settings(&state, options->defines, options->define_count);
    hash_settings(&state, options->hints, options->hint_count);
    hash_settings(&state, options->fixes, options->fix_count);
    hash_settings(&state, options->sets, options->set_count);
    const int flags =
        (options->verify ? 1 : 0) | (options->batch_invariant ? 2 : 0) | (options->warnings_are_errors ? 4 : 0);
    XXH3_128bits_update(&state, &flags, sizeof flags);
    return XXH3_128bits_digest(&state);
}

/* ---- the work ---- */

typedef struct Compiling {
    ng_program *program;
    const char *graph;
    size_t count;
    const ng_compile_options *options;
    Text said; /* the device compiler's words */
    double pass_start;
} Compiling;

static const Setting *copy_settings(Job *job, const ng_setting *from, size_t count) {
    Setting *to = IR_NEW_ARRAY(job, Setting, count + 1);
    for (size_t i = 0; i < count; i++) {
        to[i].name = ir_copy_text(job, from[i].name, strlen(from[i].name));
        to[i].value = ir_copy_text(job, from[i].value, strlen(from[i].value));
    }
    return to;
}

static void pass_done(void *state, Job *job, const Unit *unit, uint32_t pass) {
    Compiling *compiling = state;
    (void)job, (void)unit;
    const double time = rt_now();
    compiling->program->microseconds[pass] = (uint64_t)((time - compiling->pass_start) * 1e6);
    compiling->pass_start = time;
}

GenOptions rt_compile_options(Job *job, const ng_compile_options *from) {
    return (GenOptions){.defines = copy_settings(job, from->defines, from->define_count),
                        .define_count = (uint32_t)from->define_count,
                        .hints = copy_settings(job, from->hints, from->hint_count),
                        .hint_count = (uint32_t)from->hint_count,
                        .fixes = copy_settings(job, from->fixes, from->fix_count),
                        .fix_count = (uint32_t)from->fix_count,
                        .sets = copy_settings(job, from->sets, from->set_count),
                        .set_count = (uint32_t)from->set_count,
                        .verify = from->verify != 0,
                        .batch_invariant = from->batch_invariant != 0,
                        .warnings_are_errors = from->warnings_are_errors != 0};
}

static uint32_t last_pass(Job *job, const char *name) {
    if (!name) return gen_pass_count - 1;
    uint32_t pass = gen_pass_find(name);
    if (pass != IR_NONE) return pass;
    const char **names = IR_NEW_ARRAY(job, const char *, gen_pass_count);
    for (uint32_t p = 0; p < gen_pass_count; p++) names[p] = gen_passes[p].name;
    const char *near = ir_near_miss(job, name, names, gen_pass_count);
    ir_stop_at(job, STATUS_USAGE, (Place){0, 0}, "there is no pass %s%s%s%s", name, near ? "; did you mean " : "",
               near ? near : "", near ? "?" : "");
}

static void build_kernels(Job *job, Compiling *compiling) {
    ng_program *program = compiling->program;
    RtDevice *device = program->context->device;
    const Source *sources[] = {&program->unit.source};
    Status status = device->ops->build(device, sources, 1, &program->module, &compiling->said);
    if (!status) status = rt_program_load(program->tables, device, program->module, &compiling->said);
    if (status) ir_stop(job, status);
    const uint32_t kernels = gen_kernel_count(program->unit.plan);
    for (uint32_t k = 0; k < kernels; k++) program->facts_found[k] = program->context->kind == NG_DEVICE_CUDA;
    program->facts_known = program->context->kind == NG_DEVICE_CUDA;
}

static void compile_work(Job *job, void *state) {
    Compiling *compiling = state;
    ng_program *program = compiling->program;
    compiling->said = ir_text(job);
    const char *text = ir_copy_text(job, compiling->graph, compiling->count);
    const char *name = compiling->options->name ? compiling->options->name : "graph";
    program->name = ir_copy_text(job, name, strlen(name));
    program->microseconds = IR_NEW_ARRAY(job, uint64_t, gen_pass_count);
    program->last = last_pass(job, compiling->options->last_pass);
    GenOptions options = rt_compile_options(job, compiling->options);
    options.target = &program->context->target;
    options.after = pass_done;
    options.after_state = compiling;
    compiling->pass_start = rt_now();
    gen_run(job, &program->unit, program->name, text, compiling->count, &options, program->last);
    program->unit.options.after = NULL;
    program->tables = rt_program_create(job, &program->unit);
    program->facts_found =
        IR_NEW_ARRAY(job, bool, (program->unit.plan ? gen_kernel_count(program->unit.plan) : 0) + (size_t)1);
    if (program->context->device && program->last == gen_pass_count - 1) build_kernels(job, compiling);
}

static void print_debug(const ng_program *program) {
    const int level = program->context->debug;
    const Plan *plan = program->unit.plan;
    if (level >= 1)
        fprintf(stderr, "normgen: %s: %s, %lld us\n", program->name, ng_status_name(rt_status(program->status)),
                (long long)(program->seconds * 1e6));
    for (uint32_t c = 0; level >= 3 && !program->status && plan && c < plan->choices.count; c++)
        fprintf(stderr, "normgen: %s\n", plan->choices.at[c].text);
    if (level >= 4 && !program->status && program->unit.source.device_text)
        fprintf(stderr, "%s\n", program->unit.source.device_text);
    ng_text dump = {NULL, 0};
    if (level >= 5 && !program->status && !ng_program_text(program, NG_TEXT_IR, NULL, &dump))
        fprintf(stderr, "%s\n", dump.bytes);
    ng_text_free(&dump);
}

static void take_words(ng_program *program, const Compiling *compiling) {
    if (program->job && (program->status || ir_diagnostic_count(program->job)))
        program->why = rt_job_words(program->job);
    if (!program->job) rt_why(&program->why, "out of memory");
    const Text *said = &compiling->said;
    if (!said->count) return;
    ng_text all = {NULL, 0};
    rt_why(&all, "%s%s", program->why.bytes ? program->why.bytes : "", said->bytes);
    ng_text_free(&program->why);
    program->why = all;
}

static void compile_program(ng_program *program, const char *graph, size_t count, const ng_compile_options *options) {
    Compiling compiling = {.program = program, .graph = graph, .count = count, .options = options};
    const double start = rt_now();
    program->job = ir_job_create(&program->context->allocator);
    program->status = program->job ? ir_job_run(program->job, compile_work, &compiling) : STATUS_SYSTEM;
    program->seconds = rt_now() - start;
    take_words(program, &compiling);
    if (program->context->debug) print_debug(program);
}

/* ---- sharing ---- */

static ng_program *find_program(ng_context *context, XXH128_hash_t key) {
    ng_program *program = context->programs;
    while (program && !XXH128_isEqual(program->key, key)) program = program->next;
    return program;
}

static ng_program *add_program(ng_context *context, XXH128_hash_t key) {
    ng_program *program = context->allocator.alloc(context->allocator.state, sizeof *program);
    if (!program) return NULL;
    memset(program, 0, sizeof *program);
    program->context = context;
    program->key = key;
    pthread_mutex_init(&program->facts_lock, NULL);
    program->next = context->programs;
    context->programs = program;
    return program;
}

static void unlink_program(ng_program *program) {
    ng_program **at = &program->context->programs;
    while (*at && *at != program) at = &(*at)->next;
    if (*at) *at = program->next;
}

static void destroy_program(ng_program *program) {
    ng_context *context = program->context;
    if (program->module) context->device->ops->module_free(context->device, program->module);
    ir_job_free(program->job);
    ng_text_free(&program->why);
    pthread_mutex_destroy(&program->facts_lock);
    context->allocator.release(context->allocator.state, program);
}

/* A program that did not compile leaves the list at once, so that the next call tries again; who waits for it still
 * holds a reference. */
static void drop_program(ng_program *program, bool failed) {
    ng_context *context = program->context;
    pthread_mutex_lock(&context->lock);
    const bool last = --program->references == 0;
    if (last || failed) unlink_program(program);
    pthread_mutex_unlock(&context->lock);
    if (last) destroy_program(program);
}

void ng_program_free(ng_program *program) {
    if (program) drop_program(program, false);
}

const char *rt_options_wrong(const ng_compile_options *options) {
    struct {
        const ng_setting *settings;
        size_t count;
    } const lists[] = {{options->defines, options->define_count},
                       {options->hints, options->hint_count},
                       {options->fixes, options->fix_count},
                       {options->sets, options->set_count}};
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
        if (lists[l].count > UINT32_MAX || (lists[l].count && !lists[l].settings)) return "a list of settings is NULL";
        for (size_t i = 0; i < lists[l].count; i++)
            if (!lists[l].settings[i].name || !lists[l].settings[i].value) return "a setting misses its name or value";
    }
    return NULL;
}

static ng_status acquire(ng_context *context, const char *graph, size_t count, const ng_compile_options *options,
                         ng_program **program) {
    const XXH128_hash_t key = make_key(graph, count, options);
    pthread_mutex_lock(&context->lock);
    ng_program *found = find_program(context, key);
    const bool mine = !found;
    if (mine) found = add_program(context, key);
    if (found) found->references++;
    while (found && !mine && !found->ready) pthread_cond_wait(&context->compiled, &context->lock);
    pthread_mutex_unlock(&context->lock);
    if (!found) return NG_SYSTEM;
    if (mine) {
        compile_program(found, graph, count, options);
        pthread_mutex_lock(&context->lock);
        found->ready = true;
        pthread_cond_broadcast(&context->compiled);
        pthread_mutex_unlock(&context->lock);
    }
    *program = found;
    return rt_status(found->status);
}

ng_status ng_compile(ng_context *context, const char *graph, size_t count, const ng_compile_options *options,
                     ng_program **program, ng_text *why) {
    ng_compile_options own = {.size = sizeof own};
    if (why) *why = (ng_text){NULL, 0};
    if (program) *program = NULL;
    if (!context || !program || (!graph && count)) {
        rt_why(why, "context, graph and program must be given");
        return NG_USAGE;
    }
    if (options && !rt_struct_in(&own, sizeof own, options)) {
        rt_why(why, "the options' size is not set");
        return NG_USAGE;
    }
    const char *wrong = rt_options_wrong(&own);
    if (wrong) {
        rt_why(why, "%s", wrong);
        return NG_USAGE;
    }
    ng_program *made = NULL;
    ng_status status = acquire(context, graph ? graph : "", count, &own, &made);
    if (!made) rt_why(why, "out of memory");
    if (made && why && made->why.count) *why = rt_text_give(made->why.bytes, made->why.count);
    if (made && status)
        drop_program(made, true);
    else
        *program = made;
    return status;
}
