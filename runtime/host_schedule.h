/* Grids on the host: CTAs spread over operating-system threads, each with its own fibers and shared memory. */
#ifndef RUNTIME_HOST_SCHEDULE_H
#define RUNTIME_HOST_SCHEDULE_H

#include "runtime/host_fiber.h"

typedef struct RtPool RtPool;

typedef struct RtGrid {
    const char *name; /* the kernel's, for messages */
    RtEntry entry;
    void **params;
    uint64_t blocks;
    uint32_t threads;
    uint32_t shared_bytes;
    const Slice *slices;
    uint32_t slice_count;
} RtGrid;

RtPool *rt_pool_create(const RtHostOptions *options); /* NULL: no memory */
void rt_pool_free(RtPool *pool);                      /* takes NULL; nothing may be running */
int rt_pool_workers(const RtPool *pool);
/* Returns when all CTAs have run, or with STATUS_LAUNCH and the first fault in launch order. Calls from several threads
 * run one after the other. */
Status rt_pool_launch(RtPool *pool, const RtGrid *grid, Text *why);

#endif
