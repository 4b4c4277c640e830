/* An allocator that counts what is live and fails from its n-th call on. */
#ifndef TESTS_SUPPORT_FAIL_ALLOC_H
#define TESTS_SUPPORT_FAIL_ALLOC_H

#include "ir/job.h"

typedef struct FailAlloc {
    uint64_t calls;
    uint64_t fail_at; /* the call that returns NULL, and all after it; 0: never */
    int64_t live;     /* blocks */
} FailAlloc;

Allocator fail_allocator(FailAlloc *state);

#endif
