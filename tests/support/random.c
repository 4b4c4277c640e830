/* In: a seed. Out: random numbers (splitmix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
 * 2014). */
#include "tests/support/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t random_seed(void) {
    const char *given = getenv("NORMGEN_SEED");
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)now.tv_sec * 1000003u ^ (uint64_t)now.tv_nsec;
    printf("# seed %llu\n", (unsigned long long)seed);
    fflush(stdout); /* it is wanted most where the test dies */
    return seed;
}

uint64_t random_bits(Random *random) {
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint32_t random_below(Random *random, uint32_t limit) { return (uint32_t)((random_bits(random) >> 32) * limit >> 32); }
double random_unit(Random *random) { return (double)(random_bits(random) >> 11) * 0x1p-53; }

double random_normal(Random *random) {
    double u = 1 - random_unit(random), v = random_unit(random);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

float random_float_bits(Random *random) {
    uint32_t bits = (uint32_t)random_bits(random);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

double random_double_bits(Random *random) {
    uint64_t bits = random_bits(random);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
