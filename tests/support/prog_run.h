/* A Prog run by the evaluator on random data, and its outs compared with a reference in long double. */
#ifndef TESTS_PROG_RUN_H
#define TESTS_PROG_RUN_H

#include "ir/eval.h"
#include "tests/support/random.h"

#define RUN_BUFS 12

/* One array for each of prog->bufs; the reference reads the ins and scalars and writes the outs. */
typedef struct RunMemory {
    long double *at[RUN_BUFS];
    int64_t *whole[RUN_BUFS]; /* of integer bufs */
    int64_t count[RUN_BUFS];
    const int64_t *dims;
} RunMemory;

typedef void Reference(const RunMemory *memory);

/* Fills ins and scalars: floats normal, rounded to their dtype; bools either; integers below index_limit. */
RunMemory run_memory(Job *job, const Prog *prog, const int64_t *dims, const int64_t *parts, Random *random,
                     int64_t index_limit);
/* Evaluates with ins from the memory. */
EvalBuf *run_prog(Job *job, const Prog *prog, const RunMemory *memory, const int64_t *parts);
/* Fails the test where an out is not what the memory has for it: within the bound that the evaluator gave, and as close
 * as its double arithmetic should come. Returns how many elements were compared. */
int64_t run_compare(const Prog *prog, const RunMemory *memory, const EvalBuf *bufs, const char *what);

#endif
