/* What measuring counts. In: sizes and samples. Out: numbers of sets and calls, and statistics. Knows no device. */
#include "runtime/bench.h"

#include <math.h>
#include <stdlib.h>

uint32_t rt_bench_sets(uint64_t touched_bytes, uint64_t l2_bytes, uint64_t most) {
    uint64_t sets = touched_bytes ? RT_COLD_L2S * l2_bytes / touched_bytes + 1 : 2;
    if (sets > most) sets = most;
    return sets < 2 ? 2 : (uint32_t)sets;
}

uint32_t rt_bench_calls(uint32_t sets, double call_seconds, double replay_seconds, uint32_t most) {
    const double wanted = call_seconds > 0 ? ceil(replay_seconds / (call_seconds * sets)) : most;
    const uint32_t room = most / sets ? most / sets : 1;
    const uint32_t turns = wanted < 1 ? 1 : wanted > room ? room : (uint32_t)wanted;
    return turns * sets;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const double *sorted, uint32_t count, double share) {
    const double at = share * (double)(count - 1);
    const uint32_t below = (uint32_t)at, above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

void rt_bench_statistics(double *samples, uint32_t count, ng_measured *times) {
    if (!count) return;
    qsort(samples, count, sizeof *samples, by_size);
    times->least = samples[0];
    times->low = quantile(samples, count, 0.25);
    times->median = quantile(samples, count, 0.5);
    times->high = quantile(samples, count, 0.75);
    times->most = samples[count - 1];
}
