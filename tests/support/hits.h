/* Counts of what random tests met, printed in lines that begin with "# hits: ". */
#ifndef TESTS_HITS_H
#define TESTS_HITS_H

#include "ir/graph.h"

typedef struct HitReport {
    bool quiet;       /* nothing is printed */
    bool open;        /* a line is */
    uint32_t missing; /* of what is needed, what was never met */
} HitReport;

void hits_line(HitReport *report, const char *title);
/* " name count", where there is a count or one is needed. */
void hits_count(HitReport *report, uint32_t count, const char *name, bool needed);
void hits_end(HitReport *report);

typedef struct HitDims { /* what graph files say of their any dims */
    uint32_t hint, max, multiple, bare, several;
} HitDims;

void hits_count_dims(HitDims *hits, const Graph *graph);
void hits_dims(HitReport *report, const HitDims *hits);
void hits_dtypes(HitReport *report, const char *title, const uint32_t *count);

#endif
