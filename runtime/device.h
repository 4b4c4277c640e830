/* A device: where sources are built into modules and kernels run. Two of them: cuda (runtime/cuda_*.c) and host
 * (runtime/host_*.c). The library above sees this table alone.
 *
 * Errors: functions return a Status and add a message to `why` by rt_say. why is NULL where nobody will read it and
 * nothing may be allocated (ng_launch); adding to it may leave the job, so no lock is held meanwhile. Threads: all
 * functions may be called from several threads on one device; a module is read-only once built. */
#ifndef RUNTIME_DEVICE_H
#define RUNTIME_DEVICE_H

#include "gen/gen.h"

typedef struct RtDevice RtDevice;
typedef struct RtModule RtModule;
typedef struct RtKernel RtKernel;
typedef struct RtTape RtTape; /* work that was recorded, to be played again and again */

/* Adds to why; nothing where it is NULL. */
void rt_say(Text *why, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sets the function pointer at `function` to a symbol of a library opened by dlopen. By its bytes, since ISO C has no
 * cast from an object pointer to a function pointer. */
bool rt_symbol(void *library, const char *name, void *function);
double rt_now(void); /* seconds since some start; never runs backwards */
/* Memory of the device, released with the job. */
Status rt_device_memory(Job *job, RtDevice *device, size_t bytes, void **memory, Text *why);
/* work(state, i) for every i below count, spread over as many threads as there are cores, this one included. */
void rt_parallel(uint32_t count, void (*work)(void *state, uint32_t index), void *state);

typedef struct RtFacts { /* of a compiled kernel */
    int registers;       /* a thread; 0 where the device has none to count */
    int local_bytes;     /* stack frame and spills a thread */
    int static_shared_bytes;
    int max_threads;
} RtFacts;

typedef struct RtLaunch {
    const RtKernel *kernel;
    uint64_t blocks;
    uint32_t threads;
    uint32_t shared_bytes;
    const Slice *slices; /* of the shared memory; the host device keeps them apart */
    uint32_t slice_count;
    void **params; /* params[i] points to the i-th argument's value */
    void *stream;  /* cuda: CUstream; host: ignored, launches are done when they return */
} RtLaunch;

/* How the host device runs fibers within a warp and warps within a CTA; results must not depend on it. */
typedef enum RtOrder { RT_ORDER_ASCENDING, RT_ORDER_DESCENDING, RT_ORDER_SEEDED } RtOrder;

typedef struct RtHostOptions {
    RtOrder order;
    uint64_t seed;
    int workers; /* operating-system threads that blocks spread over; 0: one a core */
} RtHostOptions;

/* Enqueues work on the stream, by launches alone. Without words: it runs where nothing may be allocated. */
typedef Status (*RtEnqueue)(void *state, void *stream);

typedef struct RtDeviceOps {
    const char *name; /* "cuda", "host" */
    /* The yardstick of bandwidth, as a device text: ng_copy(to, from, count of 16 bytes) in CTAs of 256 threads, one
     * access each. NULL: copy_within is one, and times say nothing of how fast kernels are. */
    const char *copy_text;
    /* Compiles all texts, in parallel, and loads them. Job: for messages and scratch. log: the compiler's words. */
    Status (*build)(RtDevice *device, const Source *const *sources, uint32_t count, RtModule **modules, Text *why);
    void (*module_free)(RtDevice *device, RtModule *module);
    Status (*kernel)(RtDevice *device, RtModule *module, const char *name, uint32_t shared_bytes, RtKernel **kernel,
                     Text *why);
    Status (*facts)(RtDevice *device, const RtKernel *kernel, RtFacts *facts, Text *why);
    Status (*launch)(RtDevice *device, const RtLaunch *launch, Text *why);
    /* Memory as kernels address it, 256-byte aligned. */
    Status (*alloc)(RtDevice *device, size_t bytes, void **memory, Text *why);
    void (*release)(RtDevice *device, void *memory);
    Status (*copy_in)(RtDevice *device, void *to, const void *from, size_t bytes, Text *why);
    Status (*copy_out)(RtDevice *device, void *to, const void *from, size_t bytes, Text *why);
    Status (*copy_within)(RtDevice *device, void *to, const void *from, size_t bytes, Text *why); /* no overlap */
    Status (*memory_left)(RtDevice *device, uint64_t *bytes, Text *why);
    Status (*synchronize)(RtDevice *device, Text *why);
    /* What enqueue enqueues, as one piece: a CUDA graph; on the host a call of enqueue each time, so that its state
     * must live as long as the tape. */
    Status (*record)(RtDevice *device, RtEnqueue enqueue, void *state, RtTape **tape, Text *why);
    void (*tape_free)(RtDevice *device, RtTape *tape);
    /* Plays tapes in order, with nothing between them, and waits. seconds[i]: what the i-th took. */
    Status (*play)(RtDevice *device, RtTape *const *tapes, uint32_t count, double *seconds, Text *why);
    void (*close)(RtDevice *device);
} RtDeviceOps;

struct RtDevice { /* first member of each device's own struct */
    const RtDeviceOps *ops;
    Target target; /* the numbers it plans with */
    int ordinal;   /* cuda: which GPU */
};

/* target_arch 0: the device's own; the host device plans for sm_90 then. */
Status rt_host_open(int target_arch, const RtHostOptions *options, RtDevice **device, Text *why);
Status rt_cuda_open(int ordinal, RtDevice **device, Text *why); /* STATUS_NO_DEVICE, STATUS_UNAVAILABLE */
int rt_cuda_count(void);                                        /* 0 where there is no driver */
/* Numbers of a GPU without taking a context on it. target->name is name. */
Status rt_cuda_query(int ordinal, Target *target, char name[128], uint64_t *memory_bytes, Text *why);

/* NVRTC without a device: cubin or PTX of a device text for an architecture. The result is malloc'ed. */
typedef enum RtBinary { RT_CUBIN, RT_PTX } RtBinary;
Status rt_nvrtc_compile(const Source *source, int arch, RtBinary kind, char **bytes, size_t *count, Text *why);
/* The same of one of the source's kernels, by its index below kernel_count. */
Status rt_nvrtc_compile_kernel(const Source *source, uint32_t kernel, int arch, RtBinary kind, char **bytes,
                               size_t *count, Text *why);
bool rt_nvrtc_found(void);
/* Registers, stack and spills that a cubin states for a kernel; false: not a cubin that holds it. */
bool rt_cubin_facts(const char *cubin, size_t count, const char *kernel, RtFacts *facts);

#endif
