/* Counts of what random tests met, printed in lines that begin with "# hits: ". */
#ifndef TESTS_HITS_H
#define TESTS_HITS_H

#include <stdbool.h>
#include <stdint.h>

/* " name count"; of what is needed also when the count is zero, and then *missing grows. */
void hits_print(uint32_t count, const char *name, bool needed, uint32_t *missing);

#endif
