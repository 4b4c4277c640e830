/* What the driver that only counts (tests/fake/cuda.c) holds, for the tests that look at it: its symbol fake_cuda. */
#ifndef TESTS_FAKE_CUDA_H
#define TESTS_FAKE_CUDA_H

enum { FAKE_EVENTS = 4096 }; /* at a time */

typedef struct FakeCuda {
    int calls, fail_at; /* the call that fails, and no other; 0: none */
    int retained, modules, memories, launches;
    void *stack[16]; /* of current contexts */
    int depth, deepest;
    int shared_bytes; /* last set */
    unsigned grid, block;
    double kernel_us, cta_us;           /* what a kernel takes, and each of its CTAs; set by the test */
    double us;                          /* that launches took since the last capture began */
    int streams, events, graphs, execs; /* that live */
    int captured;                       /* launches before the last capture */
    int replayed;                       /* kernels of graphs that were launched */
    double clock;                       /* us that those took */
    int timed;                          /* the call that told the last time: what follows gives back */
    double times[FAKE_EVENTS];          /* of events: the clock when they were recorded */
} FakeCuda;

#endif
