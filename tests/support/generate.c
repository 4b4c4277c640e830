/* Runs the compiler on a graph file, a text or a dump of the IR, as a test needs it. */
#include "tests/support/generate.h"

#include "tests/support/prog_case.h"

#include <string.h>

typedef struct Work {
    Unit *unit;
    const char *name, *text;
    GenOptions options;
} Work;

const Setting *generate_settings(Job *job, const char *text, uint32_t *count) {
    IR_LIST(Setting) list = {0};
    while (text && *text) {
        size_t length = strcspn(text, " "), name = strcspn(text, "=");
        *IR_PUSH(job, &list) =
            (Setting){ir_copy_text(job, text, name), ir_copy_text(job, text + name + 1, length - name - 1)};
        text += length;
        text += strspn(text, " ");
    }
    *count = list.count;
    return list.at;
}

static void run_passes(Job *job, void *state) {
    Work *work = state;
    gen_run(job, work->unit, work->name, work->text, strlen(work->text), &work->options, gen_pass_count - 1);
}

static void run_ir(Job *job, void *state) {
    Work *work = state;
    *work->unit = (Unit){.options = work->options};
    ir_job_set_source(job, work->name, work->text, strlen(work->text));
    work->unit->prog = case_read_legal(job, work->text, strlen(work->text));
    gen_schedule(job, work->unit);
    gen_emit(job, work->unit);
}

static Status generate(Job *job, Work *work, const char *defines, const char *sets, void (*run)(Job *, void *)) {
    if (!work->options.target) work->options.target = gen_target(90);
    work->options.verify = true;
    work->options.defines = generate_settings(job, defines, &work->options.define_count);
    work->options.sets = generate_settings(job, sets, &work->options.set_count);
    return ir_job_run(job, run, work);
}

Status generate_text(Job *job, Unit *unit, const char *text, const char *defines, const char *sets) {
    return generate(job, &(Work){.unit = unit, .name = "graph", .text = text}, defines, sets, run_passes);
}

Status generate_text_for(Job *job, Unit *unit, const char *text, const char *sets, const Target *target) {
    return generate(job, &(Work){.unit = unit, .name = "graph", .text = text, .options = {.target = target}}, NULL,
                    sets, run_passes);
}

Status generate_file_for(Job *job, Unit *unit, const char *path, const char *defines, const char *sets,
                         const Target *target) {
    size_t count;
    const char *text = case_file(job, path, &count);
    Work work = {.unit = unit, .name = path, .text = text, .options = {.target = target}};
    return generate(job, &work, defines, sets, run_passes);
}

Status generate_file(Job *job, Unit *unit, const char *path, const char *defines, const char *sets) {
    return generate_file_for(job, unit, path, defines, sets, NULL);
}

Status generate_ir(Job *job, Unit *unit, const char *ir, const char *sets) {
    return generate(job, &(Work){.unit = unit, .name = "ir", .text = ir}, NULL, sets, run_ir);
}
