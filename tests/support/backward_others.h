/* What padded lanes, extremes, doubles and integers must not do to sums across rows: small graphs, each with its
 * reference and the inputs that show it. */
#ifndef TESTS_BACKWARD_OTHERS_H
#define TESTS_BACKWARD_OTHERS_H

#include "tests/support/backward_data.h"

typedef struct Other {
    Backward graph; /* its text is from dims on: M is an argument, N put in, E a type */
    Fill fill;
    const char *types[4]; /* up to a NULL */
    int64_t columns, rows;
    bool periodic; /* rows may come again */
    int bits;      /* of the arithmetic's significand */
} Other;

extern const Other backward_others[];
extern const uint32_t backward_other_count;

#endif
