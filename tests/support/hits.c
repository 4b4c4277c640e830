/* In: counts. Out: their words on standard output, and how many are missing. */
#include "tests/support/hits.h"

#include <stdio.h>

void hits_print(uint32_t count, const char *name, bool needed, uint32_t *missing) {
    if (count || needed) printf(" %s %u", name, count);
    if (needed && !count) ++*missing;
}
