/* What the helpers' host bodies ask of the scheduler that runs a kernel's threads as fibers. Shared by the compiled
 * kernel text (C++) and the runtime (C); the runtime passes it in when it loads the object.
 *
 * Every collective carries a site id, a constant of the text: the scheduler stops the launch with a message on mixed
 * sites, an exited lane, a shuffle among lanes that do not all take part, and deadlock. */
#ifndef NG_HOST_API_H
#define NG_HOST_API_H

#include <stdint.h>

typedef struct ng_host_api {
    uint32_t size;             /* of this struct, in bytes */
    uint32_t (*thread)(void);  /* index of the running thread in its CTA */
    uint64_t (*block)(void);   /* index of its CTA in the grid */
    void *(*shared)(uint32_t offset); /* start of the slice that Plan put at this offset of dynamic shared memory */
    void (*barrier)(uint32_t site);   /* of the CTA */
    /* All 32 lanes of the warp (of the CTA's last warp: those that exist) give a value and get that of a lane. */
    uint64_t (*shuffle)(uint32_t site, uint64_t value, uint32_t source_lane);
    /* Stops the launch: the text broke a rule that hardware would not forgive (misaligned access and the like). Does
     * not return; what: a literal. */
    void (*fail)(const char *what);
} ng_host_api;

/* What each compiled text exports, with C linkage:
 *   void ng_host_bind(const ng_host_api *api);    one for the whole object, however many texts it has
 *   void KERNEL__host(void **params);             one for each kernel: params[i] points to the i-th argument's value;
 *                                                 where NG_TEXT is defined, KERNEL__host_n with its number n, so that
 *                                                 texts with equal kernel names fit into one translation unit */

#endif
