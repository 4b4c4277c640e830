/* Measuring: what a call of a program takes when it finds nothing of its tensors in the L2.
 *
 * The tensors, outputs too, lie in memory several times over: sets, which calls take in turn, and which together hold
 * more than three times what the L2 does. Calls are recorded, enough of them that one replay takes some milliseconds,
 * and replayed back to back; a time is that between the ends of two replays, divided by the calls. Several programs of
 * one graph are measured in one run: their replays alternate, so that clocks and heat drift for all alike. A copy that
 * moves the same bytes, once as many read as written, takes its turn among them, as the yardstick.
 *
 *     rt_bench_open(&allocator, program, &args, &options, &bench, &why);       memory, filled once
 *     rt_bench_time(bench, programs, count, times, &copy, &why);               as often as wanted (a tuner's
 * candidates) rt_bench_close(bench);
 *
 * In-place and accumulating outputs are written on from call to call, so their values grow; what a call costs does not
 * depend on that. */
#ifndef RUNTIME_BENCH_H
#define RUNTIME_BENCH_H

#include "runtime/launch.h"

typedef struct RtBench RtBench;

typedef struct RtBenchOptions { /* 0: the default */
    uint32_t replays;           /* timed ones of each program: 11 */
    double replay_seconds;      /* that one takes at least: 0.005 */
    uint64_t memory_bytes;      /* most that all sets take, but never fewer than two sets: 4/5 of what is left */
} RtBenchOptions;

typedef struct RtBenchFacts {
    uint64_t ideal_bytes; /* that any plan moves in a call with these dims */
    uint64_t set_bytes;   /* of the tensors of a set, without workspace */
    uint32_t sets;
    bool cold; /* what calls touch until a set's turn comes again is more than RT_COLD_L2S times the L2 */
    bool real; /* what is measured says how fast kernels are: not on the host */
    uint32_t replays;
} RtBenchFacts;

/* args as of ng_bench. first: its tensors and dims are those of all that are measured; it must live as long. */
Status rt_bench_open(const Allocator *allocator, const RtProgram *first, const ng_args *args,
                     const RtBenchOptions *options, RtBench **bench, ng_text *why);
/* times: one for each program. STATUS_USAGE where a program's tensors are not those of the first. */
Status rt_bench_time(RtBench *bench, const RtProgram *const *programs, uint32_t count, ng_measured *times,
                     ng_measured *copy, ng_text *why);
RtBenchFacts rt_bench_facts(const RtBench *bench);
void rt_bench_close(RtBench *bench); /* takes NULL */

/* ---- what is planned and counted, without a device (runtime/bench_count.c) ---- */

#define RT_COLD_L2S 3       /* what must pass through the L2 before a call meets its set again, in L2s */
#define RT_MOST_CALLS 16384 /* recorded in one tape */

/* Sets of which a call touches so many bytes each, that together are more than RT_COLD_L2S times the L2, but no more
 * than `most`; at least two. */
uint32_t rt_bench_sets(uint64_t touched_bytes, uint64_t l2_bytes, uint64_t most);
/* Calls of a replay, the sets in turn and each as often: so many that it takes replay_seconds, and no more than `most`
 * unless there are more sets. */
uint32_t rt_bench_calls(uint32_t sets, double call_seconds, double replay_seconds, uint32_t most);
/* Median, quartiles (between the two nearest samples where there is none) and extremes; sorts. */
void rt_bench_statistics(double *samples, uint32_t count, ng_measured *times);

#endif
