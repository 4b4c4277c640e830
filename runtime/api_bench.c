/* The public measurement. In: programs of one graph, ng_args. Out: what runtime/bench.c finds. */
#include "runtime/bench.h"
#include "runtime/context.h"

static ng_status measure(const Allocator *allocator, const RtProgram *const *tables, uint32_t count,
                         const ng_args *args, const ng_bench_options *options, ng_bench_report *report, ng_text *why) {
    const RtBenchOptions own = {options->replays, options->replay_seconds, options->memory_bytes};
    RtBench *bench = NULL;
    Status status = rt_bench_open(allocator, tables[0], args, &own, &bench, why);
    if (status) return rt_status(status);
    status = rt_bench_time(bench, tables, count, report->programs, &report->copy, why);
    const RtBenchFacts facts = rt_bench_facts(bench);
    report->replays = facts.replays;
    report->sets = facts.sets;
    report->set_bytes = facts.set_bytes;
    report->cold = facts.cold;
    report->real = facts.real;
    rt_bench_close(bench);
    return rt_status(status);
}

ng_status ng_bench(ng_program *const *programs, uint32_t count, const ng_args *args, const ng_bench_options *options,
                   ng_bench_report *report, ng_text *why) {
    ng_args own_args = {.size = sizeof own_args};
    ng_bench_options own = {.size = sizeof own};
    ng_bench_report full = {.size = sizeof full};
    if (why) *why = (ng_text){NULL, 0};
    bool given = programs && count && args && report && rt_struct_in(&own_args, sizeof own_args, args) &&
                 rt_struct_in(&full, sizeof full, report) && full.programs && own_args.tensors;
    if (given && options) given = rt_struct_in(&own, sizeof own, options);
    for (uint32_t p = 0; given && p < count; p++) given = programs[p] && programs[p]->context == programs[0]->context;
    if (!given) {
        rt_why(why, "programs of one context, args with tensors and a report with room for each program must be given, "
                    "and their sizes set");
        return NG_USAGE;
    }
    const Allocator *allocator = &programs[0]->context->allocator;
    const RtProgram **tables = allocator->alloc(allocator->state, count * sizeof *tables);
    if (!tables) return NG_SYSTEM;
    for (uint32_t p = 0; p < count; p++) tables[p] = programs[p]->tables;
    const ng_status status = measure(allocator, tables, count, &own_args, &own, &full, why);
    allocator->release(allocator->state, tables);
    if (!status) (void)rt_struct_out(report, &full, sizeof full);
    return status;
}
