/* Counts of what random tests met, printed in lines that begin with "# hits: ". */
#ifndef TESTS_HITS_H
#define TESTS_HITS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct HitReport {
    bool quiet;       /* nothing is printed */
    bool open;        /* a line is */
    uint32_t missing; /* of what is needed, what was never met */
} HitReport;

void hits_line(HitReport *report, const char *title);
/* " name count", where there is a count or one is needed. */
void hits_count(HitReport *report, uint32_t count, const char *name, bool needed);
void hits_end(HitReport *report);

#endif
