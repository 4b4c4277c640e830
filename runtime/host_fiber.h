/* The threads of one CTA as fibers of one operating-system thread, and the collectives among them.
 *
 * A crew is the fibers and their stacks, used again for CTA after CTA. Lanes of a warp run in rounds: each goes from
 * one collective to its next, then the round is over and the next begins; the warps of a CTA do the same from barrier
 * to barrier. What does not fit, lanes at different sites or one that ended while others wait, is a fault at the
 * moment of arrival, so nobody ever waits for what cannot come. */
#ifndef RUNTIME_HOST_FIBER_H
#define RUNTIME_HOST_FIBER_H

#include "runtime/device.h"
#include "templates/host_api.h"

#define RT_WARP 32
#define RT_MAX_THREADS 1024

typedef void (*RtEntry)(void **params);

typedef struct RtShared { /* a slice of shared memory, where it lies on the host */
    uint32_t offset;
    void *memory;
} RtShared;

/* Where a thread stands, or stood last. */
typedef enum RtStand { RT_STAND_START, RT_STAND_END, RT_STAND_BARRIER, RT_STAND_SHUFFLE } RtStand;
typedef struct RtAt {
    RtStand stand;
    uint32_t site; /* of a barrier or shuffle */
} RtAt;

typedef enum RtFaultKind {
    RT_FAULT_NONE,
    RT_FAULT_MIXED,  /* thread arrived at `at`, but other stands at `other_at` */
    RT_FAULT_LANE,   /* a shuffle from lane `number`, which the warp lacks */
    RT_FAULT_SHARED, /* no slice starts at offset `number` */
    RT_FAULT_TEXT,   /* the kernel's text called fail */
    RT_FAULT_CANARY  /* slice `number` was written past; found by the scheduler */
} RtFaultKind;

typedef struct RtFault {
    RtFaultKind kind;
    uint32_t thread, other;
    RtAt at, other_at;
    uint32_t number;
    const char *what; /* RT_FAULT_TEXT: a literal of the kernel's text */
} RtFault;

typedef struct RtCta { /* one CTA to run */
    RtEntry entry;
    void **params;
    uint64_t block;
    uint32_t threads;
    const RtShared *shared;
    uint32_t shared_count;
    RtOrder order;
    uint64_t seed; /* RT_ORDER_SEEDED: of this CTA */
} RtCta;

typedef struct RtCrew RtCrew;

RtCrew *rt_crew_create(uint32_t threads); /* most threads of a CTA it runs; NULL: no memory */
void rt_crew_free(RtCrew *crew);          /* takes NULL */
/* False: a fault. The threads are abandoned where they stand, and the crew is good for nothing but rt_crew_free. */
bool rt_crew_run(RtCrew *crew, const RtCta *cta, RtFault *fault);

extern const ng_host_api rt_host_api; /* what kernels are bound to */

#endif
