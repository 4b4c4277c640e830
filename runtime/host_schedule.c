/* Spreads a grid's CTAs over workers (host_schedule.h). In: a grid. Out: it has run, or the first fault in words.
 * What happens within a CTA is host_fiber.c's.
 *
 * Blocks are taken from one counter in launch order, so all blocks before a faulty one have been taken when it faults
 * and will finish: the first fault of a launch is the same however many workers there are. */
#include "runtime/host_schedule.h"

#include "runtime/host_sanitize.h"

#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define GUARD_BYTES 256        /* before, between and behind slices; also their alignment */
#define GUARD_BYTE 0xc3        /* what guards are filled with where nothing else watches them */
#define NAN_BYTE 0xff          /* all ones: a NaN in every float type, -1 in every integer */
#define THREADS_A_WORKER 4096u /* a started worker costs about as much as running so many threads, 50 us */
#define TSAN_MAX_WORKERS 4     /* ThreadSanitizer counts fibers as threads, of which it knows 8192 at most */

typedef struct Worker {
    RtPool *pool;
    pthread_t thread; /* all but the first, which is the launching thread */
    RtCrew *crew;
    uint32_t crew_threads;
    char *memory; /* shared memory of a CTA, with guards */
    size_t memory_bytes;
    RtShared *shared; /* a slice each */
    uint32_t shared_capacity;
    RtFault fault;
    uint64_t fault_position; /* in launch order; valid with a fault */
    bool out_of_memory;
} Worker;

struct RtPool {
    RtHostOptions options;
    pthread_mutex_t launching; /* held by the launch in progress */
    pthread_mutex_t lock;      /* of the rest */
    pthread_cond_t wake, done;
    int workers, started; /* all; those with a thread, the first included */
    Worker *worker;
    /* The launch in progress. */
    const RtGrid *grid;
    uint64_t generation; /* of launches that wanted help */
    int wanted, active;  /* helpers that may still join; that are at work */
    bool closing;
    atomic_uint_least64_t next;
    atomic_bool stopped; /* at a fault */
};

/* ---- shared memory ---- */

static Slice grid_slice(const RtGrid *grid, uint32_t index) {
    if (grid->slice_count) return grid->slices[index];
    return (Slice){"all", 0, grid->shared_bytes};
}
static uint32_t grid_slices(const RtGrid *grid) {
    return grid->slice_count ? grid->slice_count : grid->shared_bytes ? 1 : 0;
}

static size_t round_up(size_t bytes) { return (bytes + GUARD_BYTES - 1) / GUARD_BYTES * GUARD_BYTES; }

static void memory_release(Worker *worker) {
    if (worker->memory) rt_unpoison(worker->memory, worker->memory_bytes);
    free(worker->memory);
    worker->memory = NULL;
}

/* Slices lie apart, each at the alignment that its offset has on a device. */
static bool memory_place(Worker *worker, const RtGrid *grid) {
    uint32_t count = grid_slices(grid);
    size_t bytes = GUARD_BYTES;
    for (uint32_t i = 0; i < count; i++) {
        Slice slice = grid_slice(grid, i);
        bytes += round_up(slice.offset % GUARD_BYTES + slice.bytes) + GUARD_BYTES;
    }
    if (count > worker->shared_capacity) {
        RtShared *shared = realloc(worker->shared, count * sizeof *shared);
        if (!shared) return false;
        worker->shared = shared;
        worker->shared_capacity = count;
    }
    memory_release(worker);
    void *memory = NULL;
    if (posix_memalign(&memory, GUARD_BYTES, bytes)) return false;
    worker->memory = memory;
    worker->memory_bytes = bytes;
    memset(memory, GUARD_BYTE, bytes);
    rt_poison(memory, bytes);
    size_t at = GUARD_BYTES;
    for (uint32_t i = 0; i < count; i++) {
        Slice slice = grid_slice(grid, i);
        size_t skip = slice.offset % GUARD_BYTES;
        worker->shared[i] = (RtShared){slice.offset, worker->memory + at + skip};
        rt_unpoison(worker->shared[i].memory, slice.bytes);
        at += round_up(skip + slice.bytes) + GUARD_BYTES;
    }
    return true;
}

/* A slice before or after which the guards were written, or `count`. AddressSanitizer stops at the write itself. */
static uint32_t memory_check(const Worker *worker, const RtGrid *grid) {
    uint32_t count = grid_slices(grid);
    if (RT_ADDRESS_SANITIZER) return count;
    char guard[GUARD_BYTES];
    memset(guard, GUARD_BYTE, sizeof guard);
    for (uint32_t i = 0; i < count; i++) {
        const char *start = worker->shared[i].memory;
        if (memcmp(start - GUARD_BYTES, guard, GUARD_BYTES) ||
            memcmp(start + grid_slice(grid, i).bytes, guard, GUARD_BYTES))
            return i;
    }
    return count;
}

/* ---- workers ---- */

static bool worker_prepare(Worker *worker, const RtGrid *grid) {
    if (worker->crew_threads < grid->threads) {
        rt_crew_free(worker->crew);
        worker->crew_threads = 0;
        worker->crew = rt_crew_create(grid->threads);
        if (!worker->crew) return false;
        worker->crew_threads = grid->threads;
    }
    return memory_place(worker, grid);
}

/* The block at a position of the launch order. */
static uint64_t order_block(const RtHostOptions *options, uint64_t blocks, uint64_t position) {
    switch (options->order) {
    case RT_ORDER_DESCENDING: return blocks - 1 - position;
    case RT_ORDER_SEEDED: return (position + options->seed % blocks) % blocks;
    case RT_ORDER_ASCENDING: break;
    }
    return position;
}

static void worker_run_block(Worker *worker, const RtGrid *grid, uint64_t position) {
    const RtHostOptions *options = &worker->pool->options;
    uint32_t slices = grid_slices(grid);
    for (uint32_t i = 0; i < slices; i++) memset(worker->shared[i].memory, NAN_BYTE, grid_slice(grid, i).bytes);
    RtCta cta = {
        .entry = grid->entry,
        .params = grid->params,
        .block = order_block(options, grid->blocks, position),
        .threads = grid->threads,
        .shared = worker->shared,
        .shared_count = slices,
        .order = options->order,
    };
    cta.seed = options->seed + cta.block * 0xd1b54a32d192ed03u; /* an odd factor keeps blocks' seeds apart */
    RtFault fault;
    if (!rt_crew_run(worker->crew, &cta, &fault)) {
        rt_crew_free(worker->crew); /* its fibers stand abandoned */
        worker->crew = NULL;
        worker->crew_threads = 0;
    } else {
        uint32_t slice = memory_check(worker, grid);
        if (slice == slices) return;
        fault = (RtFault){.kind = RT_FAULT_CANARY, .number = slice};
    }
    worker->fault = fault;
    worker->fault_position = position;
    atomic_store(&worker->pool->stopped, true);
}

static void worker_run(Worker *worker) {
    RtPool *pool = worker->pool;
    const RtGrid *grid = pool->grid;
    worker->out_of_memory = !worker_prepare(worker, grid);
    if (worker->out_of_memory) return;
    fenv_t before; /* kernels see the default environment, whatever rounding or flushing the application chose */
    fegetenv(&before);
    fesetenv(FE_DFL_ENV);
    while (!atomic_load(&pool->stopped)) {
        uint64_t position = atomic_fetch_add(&pool->next, 1);
        if (position >= grid->blocks) break;
        worker_run_block(worker, grid, position);
    }
    fesetenv(&before);
}

static void *worker_main(void *state) {
    Worker *worker = state;
    RtPool *pool = worker->pool;
    uint64_t seen = 0;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (!pool->closing && (!pool->wanted || pool->generation == seen))
            pthread_cond_wait(&pool->wake, &pool->lock);
        if (pool->closing) break;
        seen = pool->generation;
        pool->wanted--;
        pool->active++;
        pthread_mutex_unlock(&pool->lock);
        worker_run(worker);
        pthread_mutex_lock(&pool->lock);
        if (--pool->active == 0) pthread_cond_signal(&pool->done);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* ---- the pool ---- */

static int cores(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set)) return 1;
    return CPU_COUNT(&set);
}

RtPool *rt_pool_create(const RtHostOptions *options) {
    RtPool *pool = calloc(1, sizeof *pool);
    if (!pool) return NULL;
    if (options) pool->options = *options;
    pool->workers = pool->options.workers > 0 ? pool->options.workers : cores();
    if (RT_THREAD_SANITIZER && pool->workers > TSAN_MAX_WORKERS) pool->workers = TSAN_MAX_WORKERS;
    pool->started = 1;
    pool->worker = calloc((size_t)pool->workers, sizeof *pool->worker);
    if (!pool->worker) {
        free(pool);
        return NULL;
    }
    for (int i = 0; i < pool->workers; i++) pool->worker[i].pool = pool;
    pthread_mutex_init(&pool->launching, NULL);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->done, NULL);
    return pool;
}

int rt_pool_workers(const RtPool *pool) { return pool->workers; }

void rt_pool_free(RtPool *pool) {
    if (!pool) return;
    pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 1; i < pool->started; i++) pthread_join(pool->worker[i].thread, NULL);
    for (int i = 0; i < pool->workers; i++) {
        Worker *worker = &pool->worker[i];
        rt_crew_free(worker->crew);
        memory_release(worker);
        free(worker->shared);
    }
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    pthread_mutex_destroy(&pool->launching);
    free(pool->worker);
    free(pool);
}

/* Calls for `helpers` workers beside the caller. Fewer come where threads cannot be had. */
static void helpers_call(RtPool *pool, int helpers) {
    sigset_t all, before; /* the application's signals are for its own threads */
    sigfillset(&all);
    pthread_mutex_lock(&pool->lock);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool->started <= helpers) {
        Worker *worker = &pool->worker[pool->started];
        if (pthread_create(&worker->thread, NULL, worker_main, worker)) break;
        pool->started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pool->wanted = helpers;
    pool->generation++;
    for (int i = 0; i < helpers; i++) pthread_cond_signal(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

static void helpers_dismiss(RtPool *pool) {
    pthread_mutex_lock(&pool->lock);
    pool->wanted = 0; /* who is late need not come */
    while (pool->active) pthread_cond_wait(&pool->done, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

static int helpers_useful(const RtPool *pool, const RtGrid *grid) {
    uint64_t useful = grid->blocks - 1, most = (uint64_t)pool->workers - 1;
    if (useful > grid->blocks * grid->threads / THREADS_A_WORKER)
        useful = grid->blocks * grid->threads / THREADS_A_WORKER;
    return (int)(useful < most ? useful : most);
}

/* ---- messages ---- */

static void say_at(Text *why, RtAt at) {
    switch (at.stand) {
    case RT_STAND_START: rt_say(why, "its start"); return;
    case RT_STAND_END: rt_say(why, "its end"); return;
    case RT_STAND_BARRIER: rt_say(why, "the barrier of site %u", at.site); return;
    case RT_STAND_SHUFFLE: rt_say(why, "the shuffle of site %u", at.site); return;
    }
}

static void say_fault(Text *why, const RtGrid *grid, const RtFault *fault, uint64_t block) {
    rt_say(why, "kernel %s, block %llu", grid->name, (unsigned long long)block);
    if (fault->kind == RT_FAULT_CANARY) {
        Slice slice = grid_slice(grid, fault->number);
        rt_say(why, ": shared memory beside slice %s (offset %u, %u bytes) was written", slice.name, slice.offset,
               slice.bytes);
        return;
    }
    rt_say(why, ", thread %u: ", fault->thread);
    switch (fault->kind) {
    case RT_FAULT_MIXED:
        rt_say(why, "it came to ");
        say_at(why, fault->at);
        rt_say(why, " while thread %u stands at ", fault->other);
        say_at(why, fault->other_at);
        return;
    case RT_FAULT_LANE:
        say_at(why, fault->at);
        rt_say(why, " reads lane %u, which its warp does not have", fault->number);
        return;
    case RT_FAULT_SHARED: rt_say(why, "no slice of shared memory starts at offset %u", fault->number); break;
    case RT_FAULT_TEXT: rt_say(why, "%s", fault->what); break;
    case RT_FAULT_NONE:
    case RT_FAULT_CANARY: return;
    }
    if (fault->at.stand == RT_STAND_START) return;
    rt_say(why, " (after ");
    say_at(why, fault->at);
    rt_say(why, ")");
}

/* ---- launching ---- */

static bool slices_fit(const RtGrid *grid) {
    for (uint32_t i = 0; i < grid->slice_count; i++) {
        const Slice *slice = &grid->slices[i];
        if (slice->offset > grid->shared_bytes || slice->bytes > grid->shared_bytes - slice->offset) return false;
    }
    return true;
}

/* Runs the grid; the worker with the first fault, or NULL. */
static const Worker *pool_run(RtPool *pool, const RtGrid *grid) {
    for (int i = 0; i < pool->workers; i++) {
        pool->worker[i].fault = (RtFault){.kind = RT_FAULT_NONE};
        pool->worker[i].out_of_memory = false;
    }
    pool->grid = grid;
    atomic_store(&pool->next, 0);
    atomic_store(&pool->stopped, false);
    int helpers = helpers_useful(pool, grid);
    if (helpers) helpers_call(pool, helpers);
    worker_run(&pool->worker[0]);
    if (helpers) helpers_dismiss(pool);
    const Worker *first = NULL;
    for (int i = 0; i < pool->workers; i++) {
        const Worker *worker = &pool->worker[i];
        if (worker->fault.kind == RT_FAULT_NONE) continue;
        if (!first || worker->fault_position < first->fault_position) first = worker;
    }
    return first;
}

Status rt_pool_launch(RtPool *pool, const RtGrid *grid, Text *why) {
    if (!slices_fit(grid)) {
        rt_say(why, "kernel %s: a slice lies outside its %u bytes of shared memory", grid->name, grid->shared_bytes);
        return STATUS_INTERNAL;
    }
    Status status = STATUS_OK;
    RtFault fault = {.kind = RT_FAULT_NONE};
    uint64_t block = 0;
    pthread_mutex_lock(&pool->launching);
    const Worker *first = pool_run(pool, grid);
    if (first) {
        status = STATUS_LAUNCH;
        fault = first->fault;
        block = order_block(&pool->options, grid->blocks, first->fault_position);
    } else if (pool->worker[0].out_of_memory) {
        status = STATUS_SYSTEM;
    }
    pthread_mutex_unlock(&pool->launching);
    if (status == STATUS_LAUNCH) say_fault(why, grid, &fault, block);
    if (status == STATUS_SYSTEM) rt_say(why, "no memory for the fibers or the shared memory of a kernel");
    return status;
}
