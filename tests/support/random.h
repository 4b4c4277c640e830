/* Random numbers for tests: a seed gives the same ones everywhere. The seed is NORMGEN_SEED or the clock, and printed.
 */
#ifndef TESTS_SUPPORT_RANDOM_H
#define TESTS_SUPPORT_RANDOM_H

#include <stdint.h>

typedef struct Random {
    uint64_t state;
} Random;

uint64_t random_seed(void); /* prints "# seed N" */
uint64_t random_bits(Random *random);
uint32_t random_below(Random *random, uint32_t limit);
double random_unit(Random *random);      /* [0, 1) */
double random_normal(Random *random);    /* deviation 1 */
float random_float_bits(Random *random); /* any bit pattern, NaN and inf too */
double random_double_bits(Random *random);

#endif
