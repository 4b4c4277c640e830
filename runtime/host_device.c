/* The host device: RtDeviceOps upon host_build.c and host_schedule.c. In: host texts and launches. Out: the same
 * results as a GPU's. Its memory is the process's own; launches are done when they return. */
#include "runtime/host_build.h"
#include "runtime/host_schedule.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEMORY_ALIGN 256
#define MEMORY_BYTE 0xff /* of fresh memory: a NaN in every float type */

typedef struct HostDevice {
    RtDevice device;
    RtPool *pool;
    pthread_mutex_t lock; /* of modules' kernel lists */
} HostDevice;

struct RtKernel {
    RtKernel *next; /* of the module's */
    RtEntry entry;
    uint32_t shared_bytes;
    char name[];
};

struct RtModule {
    RtObject *object;
    uint32_t number; /* of its text in the object */
    RtKernel *kernels;
};

static HostDevice *host(RtDevice *device) { return (HostDevice *)device; }

/* ---- modules ---- */

static void host_module_free(RtDevice *device, RtModule *module) {
    (void)device;
    if (!module) return;
    while (module->kernels) {
        RtKernel *kernel = module->kernels;
        module->kernels = kernel->next;
        free(kernel);
    }
    rt_object_release(module->object);
    free(module);
}

/* One module for each object, or none at all. */
static bool wrap_objects(RtObject **objects, const uint32_t *numbers, uint32_t count, RtModule **modules) {
    bool made = true;
    for (uint32_t i = 0; i < count; i++) {
        modules[i] = calloc(1, sizeof **modules);
        if (modules[i])
            modules[i]->object = objects[i], modules[i]->number = numbers[i];
        else
            rt_object_release(objects[i]);
        made = made && modules[i];
    }
    for (uint32_t i = 0; i < count && !made; i++) {
        host_module_free(NULL, modules[i]);
        modules[i] = NULL;
    }
    return made;
}

static Status host_build(RtDevice *device, const Source *const *sources, uint32_t count, RtModule **modules,
                         Text *why) {
    char *words = NULL;
    Status status = STATUS_SYSTEM;
    RtObject **objects = calloc(count + (size_t)1, sizeof *objects);
    uint32_t *numbers = calloc(count + (size_t)1, sizeof *numbers);
    if (objects && numbers)
        status = rt_host_compile(sources, count, rt_pool_workers(host(device)->pool), objects, numbers, &words);
    if (status == STATUS_OK && !wrap_objects(objects, numbers, count, modules)) status = STATUS_SYSTEM;
    free(objects);
    free(numbers);
    if (why && words) { /* adding to why may leave the job, which then frees the words */
        ir_job_defer(why->job, free, words);
        ir_text_put(why, words);
    } else {
        free(words);
        if (status != STATUS_OK) rt_say(why, "no memory to build a kernel");
    }
    return status;
}

static Status host_kernel(RtDevice *device, RtModule *module, const char *name, uint32_t shared_bytes,
                          RtKernel **kernel, Text *why) {
    RtEntry entry = rt_object_entry(module->object, module->number, name);
    if (!entry) {
        rt_say(why, "the host text has no kernel %s", name);
        return STATUS_INTERNAL;
    }
    size_t length = strlen(name);
    RtKernel *made = calloc(1, sizeof *made + length + 1);
    if (!made) {
        rt_say(why, "no memory for kernel %s", name);
        return STATUS_SYSTEM;
    }
    memcpy(made->name, name, length);
    made->entry = entry;
    made->shared_bytes = shared_bytes;
    pthread_mutex_lock(&host(device)->lock);
    made->next = module->kernels;
    module->kernels = made;
    pthread_mutex_unlock(&host(device)->lock);
    *kernel = made;
    return STATUS_OK;
}

static Status host_facts(RtDevice *device, const RtKernel *kernel, RtFacts *facts, Text *why) {
    (void)device, (void)kernel, (void)why;
    *facts = (RtFacts){.max_threads = RT_MAX_THREADS};
    return STATUS_OK;
}

/* ---- launching ---- */

static Status host_launch(RtDevice *device, const RtLaunch *launch, Text *why) {
    const RtKernel *kernel = launch->kernel;
    if (!launch->blocks) return STATUS_OK;
    if (!launch->threads || launch->threads > RT_MAX_THREADS || launch->blocks > INT32_MAX) {
        rt_say(why, "kernel %s: no device launches %llu blocks of %u threads", kernel->name,
               (unsigned long long)launch->blocks, launch->threads);
        return STATUS_LAUNCH;
    }
    if (launch->shared_bytes > kernel->shared_bytes || launch->shared_bytes > (uint32_t)device->target.shared_per_cta) {
        rt_say(why, "kernel %s: launched with %u bytes of shared memory, set up for %u on a device with %d",
               kernel->name, launch->shared_bytes, kernel->shared_bytes, device->target.shared_per_cta);
        return STATUS_LAUNCH;
    }
    RtGrid grid = {.name = kernel->name,
                   .entry = kernel->entry,
                   .params = launch->params,
                   .blocks = launch->blocks,
                   .threads = launch->threads,
                   .shared_bytes = launch->shared_bytes,
                   .slices = launch->slices,
                   .slice_count = launch->slice_count};
    return rt_pool_launch(host(device)->pool, &grid, why);
}

static Status host_synchronize(RtDevice *device, Text *why) {
    (void)device, (void)why;
    return STATUS_OK;
}

/* ---- memory ---- */

/* Of the exact size, so that AddressSanitizer sees the first byte beyond. */
static Status host_alloc(RtDevice *device, size_t bytes, void **memory, Text *why) {
    (void)device;
    *memory = NULL;
    if (posix_memalign(memory, MEMORY_ALIGN, bytes ? bytes : 1)) {
        rt_say(why, "no memory for %zu bytes", bytes);
        return STATUS_LAUNCH;
    }
    memset(*memory, MEMORY_BYTE, bytes);
    return STATUS_OK;
}

static void host_release(RtDevice *device, void *memory) {
    (void)device;
    free(memory);
}

static Status host_copy(RtDevice *device, void *to, const void *from, size_t bytes, Text *why) {
    (void)device, (void)why;
    if (bytes) memcpy(to, from, bytes);
    return STATUS_OK;
}

static Status host_memory_left(RtDevice *device, uint64_t *bytes, Text *why) {
    (void)device, (void)why;
    const long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    *bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    return STATUS_OK;
}

/* ---- tapes ---- */

struct RtTape {
    RtEnqueue enqueue;
    void *state;
};

static Status host_record(RtDevice *device, RtEnqueue enqueue, void *state, RtTape **tape, Text *why) {
    (void)device;
    *tape = malloc(sizeof **tape);
    if (!*tape) {
        rt_say(why, "no memory for a tape");
        return STATUS_SYSTEM;
    }
    **tape = (RtTape){enqueue, state};
    return STATUS_OK;
}

static void host_tape_free(RtDevice *device, RtTape *tape) {
    (void)device;
    free(tape);
}

static Status host_play(RtDevice *device, RtTape *const *tapes, uint32_t count, double *seconds, Text *why) {
    (void)device;
    Status status = STATUS_OK;
    double start = rt_now();
    for (uint32_t i = 0; !status && i < count; i++) {
        status = tapes[i]->enqueue(tapes[i]->state, NULL);
        const double stop = rt_now();
        seconds[i] = stop - start;
        start = stop;
    }
    if (status) rt_say(why, "a launch failed");
    return status;
}

/* ---- the device ---- */

static void host_close(RtDevice *device) {
    if (!device) return;
    rt_pool_free(host(device)->pool);
    pthread_mutex_destroy(&host(device)->lock);
    free(device);
}

static const RtDeviceOps host_ops = {
    .name = "host",
    .build = host_build,
    .module_free = host_module_free,
    .kernel = host_kernel,
    .facts = host_facts,
    .launch = host_launch,
    .alloc = host_alloc,
    .release = host_release,
    .copy_in = host_copy,
    .copy_out = host_copy,
    .copy_within = host_copy,
    .memory_left = host_memory_left,
    .synchronize = host_synchronize,
    .record = host_record,
    .tape_free = host_tape_free,
    .play = host_play,
    .close = host_close,
};

Status rt_host_open(int target_arch, const RtHostOptions *options, RtDevice **device, Text *why) {
    *device = NULL;
    const Target *target = gen_target(target_arch ? target_arch : 90);
    if (!target) {
        rt_say(why, "sm_%d is not an architecture that kernels are planned for", target_arch);
        return STATUS_USAGE;
    }
    HostDevice *made = calloc(1, sizeof *made);
    if (made) made->pool = rt_pool_create(options);
    if (!made || !made->pool) {
        free(made);
        rt_say(why, "no memory for the host device");
        return STATUS_SYSTEM;
    }
    pthread_mutex_init(&made->lock, NULL);
    made->device.ops = &host_ops;
    made->device.target = *target;
    *device = &made->device;
    return STATUS_OK;
}
