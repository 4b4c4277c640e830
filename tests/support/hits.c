/* In: counts. Out: their words on standard output, and how many are missing. */
#include "tests/support/hits.h"

#include <stdio.h>

void hits_end(HitReport *report) {
    if (report->open) printf("\n");
    report->open = false;
}

void hits_line(HitReport *report, const char *title) {
    hits_end(report);
    report->open = !report->quiet;
    if (report->open) printf("# hits: %s", title);
}

void hits_count(HitReport *report, uint32_t count, const char *name, bool needed) {
    if (report->open && (count || needed)) printf(" %s %u", name, count);
    if (needed && !count) report->missing++;
}

void hits_count_dims(HitDims *hits, const Graph *graph) {
    uint32_t any = 0;
    for (uint32_t i = 0; i < graph->dims.count; i++) {
        const Dim *dim = &graph->dims.at[i];
        if (dim->value >= 0) continue;
        any++;
        hits->hint += dim->hint >= 0;
        hits->max += dim->max >= 0;
        hits->multiple += dim->multiple > 1;
        hits->bare += dim->hint < 0 && dim->max < 0 && dim->multiple == 1;
    }
    hits->several += any > 1;
}

void hits_dims(HitReport *report, const HitDims *hits) {
    hits_line(report, "any dims");
    hits_count(report, hits->hint, "hint", true);
    hits_count(report, hits->max, "max", true);
    hits_count(report, hits->multiple, "multiple", true);
    hits_count(report, hits->bare, "bare", true);
    hits_count(report, hits->several, "several", true);
}

void hits_dtypes(HitReport *report, const char *title, const uint32_t *count) {
    hits_line(report, title);
    for (uint32_t i = 0; i < DTYPE_COUNT; i++) hits_count(report, count[i], ir_dtype((DType)i)->name, true);
}
