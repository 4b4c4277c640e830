/* The public launches. In: ng_args. Out: what runtime/launch.c, launch_check.c and run.c do, with memory for them:
 * ng_launch takes its own from the stack, or the program's spare under a lock, and allocates nothing. */
#include "runtime/context.h"

#include <string.h>

ng_status ng_launch(ng_program *program, const ng_args *args) {
    ng_args own = {.size = sizeof own};
    if (!program || !args || !rt_struct_in(&own, sizeof own, args)) return NG_USAGE;
    const RtProgram *tables = program->tables;
    int64_t small[RT_STACK_WORDS];
    if (!tables->spare) return rt_status(rt_program_launch(tables, &own, small, NULL, NULL, NULL));
    pthread_mutex_lock(tables->spare_lock);
    Status status = rt_program_launch(tables, &own, tables->spare, NULL, NULL, NULL);
    pthread_mutex_unlock(tables->spare_lock);
    return rt_status(status);
}

typedef struct Checking {
    const RtProgram *tables;
    const ng_args *args;
    Text why;
    Status status;
} Checking;

static void check_work(Job *job, void *state) {
    Checking *checking = state;
    RtScratch scratch;
    checking->why = ir_text(job);
    int64_t *words = IR_NEW_ARRAY(job, int64_t, checking->tables->scratch_words + (size_t)1);
    checking->status = rt_program_check(checking->tables, checking->args, words, &scratch, &checking->why);
}

ng_status ng_launch_check(ng_program *program, const ng_args *args, ng_text *why) {
    ng_args own = {.size = sizeof own};
    if (why) *why = (ng_text){NULL, 0};
    if (!program || !args || !rt_struct_in(&own, sizeof own, args)) {
        rt_why(why, "program and args must be given, and the args' size set");
        return NG_USAGE;
    }
    Checking checking = {.tables = program->tables, .args = &own};
    Job *job = ir_job_create(&program->context->allocator);
    if (!job) return NG_SYSTEM;
    Status status = ir_job_run(job, check_work, &checking);
    if (!status) status = checking.status;
    if (why && checking.why.count) *why = rt_text_give(checking.why.bytes, checking.why.count);
    ir_job_free(job);
    return rt_status(status);
}

ng_status ng_run(ng_program *program, const ng_args *args, int verify, ng_report *report) {
    ng_args own = {.size = sizeof own};
    ng_report full = {.size = sizeof full};
    if (report && !rt_struct_in(&full, sizeof full, report)) return NG_USAGE;
    full.why = (ng_text){NULL, 0};
    Status status = STATUS_USAGE;
    if (program && args && rt_struct_in(&own, sizeof own, args))
        status = rt_program_run(program->tables, &program->context->allocator, &own, verify != 0,
                                program->context->debug, &full);
    if (!report || !rt_struct_out(report, &full, sizeof full)) ng_text_free(&full.why);
    return rt_status(status);
}
