/* A kernel of a plan in words, for comparing plans: class, strategy, loads that run over every axis, bytes. */
#ifndef TESTS_KERNEL_WORDS_H
#define TESTS_KERNEL_WORDS_H

#include "gen/gen.h"

/* "ROW row_registers, 1 full read, 3072*M bytes = 12582912", the last at the hints; returns it. Parts are counted as
 * one an SM, since their number follows tiles, which are tuned. */
int64_t kernel_words(Job *job, Text *out, const Unit *unit, const Step *step);
/* That many parts for each of the Prog's. */
int64_t *kernel_parts(Job *job, const Unit *unit);

#endif
