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
