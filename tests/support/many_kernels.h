/* Graphs that are long, as text, of any length. */
#ifndef TESTS_MANY_KERNELS_H
#define TESTS_MANY_KERNELS_H

#include "ir/job.h"

/* count means in turn over one and two dims of x[B, M, 32], each of what was made with the one before: as many kernels
 * and one more. */
const char *many_kernels(Job *job, uint32_t count);
/* count nodes one after the other on x[M, 96], a mean over the row among every `every`; 0: none. */
const char *many_nodes(Job *job, uint32_t count, uint32_t every);

#endif
