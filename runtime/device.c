/* What the devices and the layers above them share: messages, symbols of libraries, memory that goes with a job, work
 * spread over the cores. */
#include "runtime/device.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void rt_say(Text *why, const char *format, ...) {
    if (!why) return;
    va_list args;
    va_start(args, format);
    ir_text_vformat(why, format, args);
    va_end(args);
}

bool rt_symbol(void *library, const char *name, void *function) {
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

double rt_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

typedef struct Held {
    RtDevice *device;
    void *memory;
} Held;

static void release_held(void *object) {
    Held *held = object;
    if (held->memory) held->device->ops->release(held->device, held->memory);
}

Status rt_device_memory(Job *job, RtDevice *device, size_t bytes, void **memory, Text *why) {
    Held *held = IR_NEW(job, Held);
    held->device = device;
    ir_job_defer(job, release_held, held); /* before there is any, since this may leave the job */
    Status status = device->ops->alloc(device, bytes, &held->memory, why);
    if (!status) *memory = held->memory;
    return status;
}

enum { MOST_THREADS = 64 };

typedef struct Parallel {
    void (*work)(void *state, uint32_t index);
    void *state;
    uint32_t count;
    atomic_uint next;
} Parallel;

static void *take(void *state) {
    Parallel *all = state;
    for (uint32_t i; (i = atomic_fetch_add(&all->next, 1)) < all->count;) all->work(all->state, i);
    return NULL;
}

void rt_parallel(uint32_t count, void (*work)(void *state, uint32_t index), void *state) {
    Parallel all = {.work = work, .state = state, .count = count};
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t threads = cores < 1 ? 1 : cores > MOST_THREADS ? MOST_THREADS : (uint32_t)cores;
    if (threads > count) threads = count;
    pthread_t thread[MOST_THREADS];
    uint32_t started = 0; /* where a thread cannot be had, the others do its work */
    while (started + 1 < threads && !pthread_create(&thread[started], NULL, take, &all)) started++;
    take(&all);
    for (uint32_t i = 0; i < started; i++) pthread_join(thread[i], NULL);
}
