/* In: which call is to fail. Out: an allocator for the failing-allocator tests. */
#include "tests/support/fail_alloc.h"

#include <stdlib.h>
#include <string.h>

static void *counted_alloc(void *state, size_t bytes) {
    FailAlloc *counter = state;
    counter->calls++;
    if (counter->fail_at && counter->calls >= counter->fail_at) return NULL;
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory) return NULL;
    memset(memory, 0xa5, bytes); /* an arena must zero what it hands out */
    counter->live++;
    return memory;
}

static void counted_release(void *state, void *memory) {
    FailAlloc *counter = state;
    if (memory) counter->live--;
    free(memory);
}

Allocator fail_allocator(FailAlloc *state) { return (Allocator){counted_alloc, counted_release, state}; }
