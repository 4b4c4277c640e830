/* Fibers and collectives (host_fiber.h). In: a CTA. Out: it has run, or a fault. Memory of the CTA and messages are
 * the scheduler's.
 *
 * This file alone is built without sanitizers: it moves the stack pointer, and ThreadSanitizer must not take the
 * scheduler's own hand-overs for the kernel's. The sanitizers' runtimes, where there are any, are told of every switch
 * through weak symbols. To ThreadSanitizer each thread is a fiber of its own and a switch orders nothing; only
 * barriers do. A shuffle orders no memory, on the device too, so it does not here. */
#include "runtime/host_fiber.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if !defined(__x86_64__) && !defined(__aarch64__) && !defined(RT_FIBER_UCONTEXT)
#define RT_FIBER_UCONTEXT
#endif
#ifdef RT_FIBER_UCONTEXT
#include <ucontext.h>
#endif

/* Reserved for a stack; touched pages alone take memory. Kernels' frames stay below 3 KB (rows of 16384 f32 at -O1,
 * with and without AddressSanitizer); the rest is for a sanitizer that writes its report. The lowest page is a guard.
 */
#define STACK_BYTES ((size_t)256 * 1024)
/* Stacks start at staggered offsets: hot frames of 32 lanes at equal page offsets would share one cache set. */
#define STAGGER_BYTES ((size_t)1088)

void __sanitizer_start_switch_fiber(void **save, const void *bottom, size_t bytes) __attribute__((weak));
void __sanitizer_finish_switch_fiber(void *save, const void **bottom, size_t *bytes) __attribute__((weak));
void __asan_unpoison_memory_region(const volatile void *memory, size_t bytes) __attribute__((weak));
void *__tsan_get_current_fiber(void) __attribute__((weak));
void *__tsan_create_fiber(unsigned flags) __attribute__((weak));
void __tsan_destroy_fiber(void *fiber) __attribute__((weak));
void __tsan_switch_to_fiber(void *fiber, unsigned flags) __attribute__((weak));
void __tsan_acquire(void *address) __attribute__((weak));
void __tsan_release(void *address) __attribute__((weak));
#define TSAN_NO_SYNC 1u

typedef struct Fiber {
#ifdef RT_FIBER_UCONTEXT
    ucontext_t context;
#else
    void *top; /* stack pointer while it does not run */
#endif
    RtAt at;
    const void *low; /* of its stack, above the guard */
    size_t bytes;
    void *fake; /* AddressSanitizer's fake stack */
    void *tsan;
} Fiber;

typedef struct Round { /* of a warp's lanes, or of a CTA's warps */
    uint32_t count, arrived;
    uint32_t first; /* thread that arrived first and set at */
    RtAt at;
    uint8_t order[RT_WARP]; /* the i-th to run */
} Round;

typedef struct Warp {
    Round round;
    uint32_t parity;
    uint64_t slots[2][RT_WARP]; /* values given, by parity: a fast lane's next value leaves unread ones alone */
} Warp;

struct RtCrew {
    uint32_t running; /* thread */
    bool hooked;      /* a sanitizer is told of switches */
    bool home_known;  /* home's stack bounds were learnt, for AddressSanitizer */
    RtCta cta;
    RtFault fault;
    Fiber *fibers;
    Warp *warps;
    Round warp_round;
    Fiber home; /* the operating-system thread's own stack */
    uint64_t random;
    uint64_t sync[4]; /* addresses for ThreadSanitizer: barriers by parity, start, end */
    uint32_t barrier_parity;
    uint32_t capacity; /* threads */
    char *stacks;
    size_t stack_bytes; /* all */
};
enum { SYNC_BARRIER = 0, SYNC_START = 2, SYNC_END = 3 };

/* Whose fibers this operating-system thread runs. */
static _Thread_local RtCrew *crew_here __attribute__((tls_model("initial-exec")));

/* ---- switching ---- */

_Noreturn static void fiber_main(void);

#ifdef RT_FIBER_UCONTEXT

static void fiber_prepare(Fiber *fiber, size_t stagger) {
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = (void *)(uintptr_t)fiber->low;
    fiber->context.uc_stack.ss_size = fiber->bytes - stagger;
    fiber->context.uc_link = NULL;
    makecontext(&fiber->context, fiber_main, 0);
}
static void fiber_switch(Fiber *from, Fiber *to) { swapcontext(&from->context, &to->context); }

#else

/* Saves the callee-saved registers on the running stack and its top in *save, and takes them from `to`. Kernels leave
 * the floating-point control words alone, so those are not part of it. */
void rt_fiber_switch(void **save, void *to) __attribute__((visibility("hidden")));

#ifdef __x86_64__
#define FRAME_WORDS 8
#define FRAME_START 6
__asm__(".text\n"
        ".p2align 4\n"
        ".globl rt_fiber_switch\n"
        ".hidden rt_fiber_switch\n"
        ".type rt_fiber_switch, @function\n"
        "rt_fiber_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size rt_fiber_switch, . - rt_fiber_switch\n");
#else
#define FRAME_WORDS 20
#define FRAME_START 11
__asm__(".text\n"
        ".p2align 4\n"
        ".globl rt_fiber_switch\n"
        ".hidden rt_fiber_switch\n"
        ".type rt_fiber_switch, %function\n"
        "rt_fiber_switch:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp, #0]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp, #0]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size rt_fiber_switch, . - rt_fiber_switch\n");
#endif

/* A frame as rt_fiber_switch leaves one, that returns into fiber_main with the stack aligned as after a call. */
static void fiber_prepare(Fiber *fiber, size_t stagger) {
    uintptr_t top = (uintptr_t)fiber->low + fiber->bytes - stagger;
    uintptr_t *frame = (uintptr_t *)(top & ~(uintptr_t)63) - FRAME_WORDS;
    memset(frame, 0, FRAME_WORDS * sizeof *frame);
    frame[FRAME_START] = (uintptr_t)fiber_main;
    fiber->top = frame;
}
static inline void fiber_switch(Fiber *from, Fiber *to) { rt_fiber_switch(&from->top, to->top); }

#endif

/* The sanitizers' part of arriving on a stack: after a switch back, and first thing on a fresh one (save NULL). */
static void hook_arrived(RtCrew *crew, void *save) {
    if (!__sanitizer_finish_switch_fiber) return;
    const void *bottom = NULL;
    size_t bytes = 0;
    __sanitizer_finish_switch_fiber(save, &bottom, &bytes);
    if (crew->home_known) return;
    crew->home.low = bottom; /* the first switch of a run comes from home */
    crew->home.bytes = bytes;
    crew->home_known = true;
}

static void switch_hooked(RtCrew *crew, Fiber *from, Fiber *to, bool leaves) {
    if (__sanitizer_start_switch_fiber) __sanitizer_start_switch_fiber(leaves ? NULL : &from->fake, to->low, to->bytes);
    if (__tsan_switch_to_fiber) __tsan_switch_to_fiber(to->tsan, TSAN_NO_SYNC);
    fiber_switch(from, to);
    hook_arrived(crew, from->fake);
}

static inline void switch_to(RtCrew *crew, Fiber *from, Fiber *to, bool leaves) {
    if (crew->hooked)
        switch_hooked(crew, from, to, leaves);
    else
        fiber_switch(from, to);
}

static void sync_release(RtCrew *crew, uint32_t which) {
    if (__tsan_release) __tsan_release(&crew->sync[which]);
}
static void sync_acquire(RtCrew *crew, uint32_t which) {
    if (__tsan_acquire) __tsan_acquire(&crew->sync[which]);
}

/* ---- rounds ---- */

static uint32_t next_random(RtCrew *crew, uint32_t below) { /* splitmix64 */
    uint64_t z = crew->random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)(((z >> 32) * below) >> 32);
}

static void round_shuffle(RtCrew *crew, Round *round) {
    for (uint32_t i = round->count; i > 1; i--) {
        uint32_t j = next_random(crew, i);
        uint8_t held = round->order[i - 1];
        round->order[i - 1] = round->order[j];
        round->order[j] = held;
    }
}

static void round_start(RtCrew *crew, Round *round, uint32_t count) {
    round->count = count;
    round->arrived = 0;
    for (uint32_t i = 0; i < count; i++)
        round->order[i] = (uint8_t)(crew->cta.order == RT_ORDER_DESCENDING ? count - 1 - i : i);
    if (crew->cta.order == RT_ORDER_SEEDED) round_shuffle(crew, round);
}

static void round_again(RtCrew *crew, Round *round) {
    round->arrived = 0;
    if (crew->cta.order == RT_ORDER_SEEDED) round_shuffle(crew, round);
}

_Noreturn static void fault(RtCrew *crew, RtFault found) {
    crew->fault = found;
    switch_to(crew, &crew->fibers[crew->running], &crew->home, true);
    abort(); /* an abandoned fiber is never resumed */
}

/* Counts the running thread (of a warp, or for its whole warp) in. False: more are to come. */
static inline bool round_arrive(RtCrew *crew, Round *round, RtAt at) {
    if (!round->arrived) {
        round->at = at;
        round->first = crew->running;
    } else if (round->at.stand != at.stand || round->at.site != at.site) {
        fault(crew, (RtFault){.kind = RT_FAULT_MIXED,
                              .thread = crew->running,
                              .at = at,
                              .other = round->first,
                              .other_at = round->at});
    }
    return ++round->arrived == round->count;
}

static inline uint32_t warp_next(const RtCrew *crew, uint32_t warp) {
    const Round *round = &crew->warps[warp].round;
    return warp * RT_WARP + round->order[round->arrived];
}

/* The warp's last lane has arrived at a barrier or the end: the next thread to run, or `capacity` at the CTA's end. */
static uint32_t warp_arrive(RtCrew *crew, Warp *warp, RtAt at) {
    Round *round = &crew->warp_round;
    if (at.stand == RT_STAND_BARRIER) round_again(crew, &warp->round);
    if (round_arrive(crew, round, at)) {
        if (at.stand == RT_STAND_END) return crew->capacity;
        round_again(crew, round);
        crew->barrier_parity ^= 1;
    }
    return warp_next(crew, round->order[round->arrived]);
}

/* The running thread stops at a collective; returns when its warp, or its CTA, has come there. */
static inline void arrive(RtCrew *crew, Warp *warp, RtStand stand, uint32_t site) {
    uint32_t here = crew->running, next;
    Fiber *from = &crew->fibers[here];
    RtAt at = {stand, site};
    from->at = at;
    if (!round_arrive(crew, &warp->round, at)) {
        next = warp_next(crew, here / RT_WARP);
    } else if (stand == RT_STAND_SHUFFLE) {
        round_again(crew, &warp->round);
        warp->parity ^= 1;
        next = warp_next(crew, here / RT_WARP);
    } else {
        next = warp_arrive(crew, warp, at);
    }
    if (next == here) return;
    Fiber *to = next == crew->capacity ? &crew->home : &crew->fibers[next];
    crew->running = next;
    switch_to(crew, from, to, stand == RT_STAND_END);
}

_Noreturn static void fiber_main(void) {
    RtCrew *crew = crew_here;
    if (crew->hooked) hook_arrived(crew, NULL);
    sync_acquire(crew, SYNC_START);
    crew->cta.entry(crew->cta.params);
    sync_release(crew, SYNC_END);
    arrive(crew, &crew->warps[crew->running / RT_WARP], RT_STAND_END, 0);
    abort(); /* an ended fiber is never resumed */
}

/* ---- what kernels call ---- */

static uint32_t api_thread(void) { return crew_here->running; }
static uint64_t api_block(void) { return crew_here->cta.block; }

static void *api_shared(uint32_t offset) {
    RtCrew *crew = crew_here;
    for (uint32_t i = 0; i < crew->cta.shared_count; i++)
        if (crew->cta.shared[i].offset == offset) return crew->cta.shared[i].memory;
    fault(crew, (RtFault){.kind = RT_FAULT_SHARED,
                          .thread = crew->running,
                          .at = crew->fibers[crew->running].at,
                          .number = offset});
}

static void api_barrier(uint32_t site) {
    RtCrew *crew = crew_here;
    uint32_t parity = crew->barrier_parity; /* a fast thread's next release must not reach those still leaving */
    sync_release(crew, SYNC_BARRIER + parity);
    arrive(crew, &crew->warps[crew->running / RT_WARP], RT_STAND_BARRIER, site);
    sync_acquire(crew, SYNC_BARRIER + parity);
}

static uint64_t api_shuffle(uint32_t site, uint64_t value, uint32_t source_lane) {
    RtCrew *crew = crew_here;
    Warp *warp = &crew->warps[crew->running / RT_WARP];
    if (source_lane >= warp->round.count)
        fault(crew, (RtFault){.kind = RT_FAULT_LANE,
                              .thread = crew->running,
                              .at = {RT_STAND_SHUFFLE, site},
                              .number = source_lane});
    const uint64_t *slots = warp->slots[warp->parity];
    warp->slots[warp->parity][crew->running % RT_WARP] = value;
    arrive(crew, warp, RT_STAND_SHUFFLE, site);
    return slots[source_lane];
}

static void api_fail(const char *what) {
    RtCrew *crew = crew_here;
    fault(
        crew,
        (RtFault){.kind = RT_FAULT_TEXT, .thread = crew->running, .at = crew->fibers[crew->running].at, .what = what});
}

const ng_host_api rt_host_api = {
    .size = sizeof(ng_host_api),
    .thread = api_thread,
    .block = api_block,
    .shared = api_shared,
    .barrier = api_barrier,
    .shuffle = api_shuffle,
    .fail = api_fail,
};

/* ---- crews ---- */

RtCrew *rt_crew_create(uint32_t threads) {
    RtCrew *crew = calloc(1, sizeof *crew);
    if (!crew) return NULL;
    uint32_t warps = (threads + RT_WARP - 1) / RT_WARP;
    crew->capacity = threads;
    crew->hooked = __sanitizer_start_switch_fiber || __tsan_switch_to_fiber;
    crew->fibers = calloc(threads, sizeof *crew->fibers);
    crew->warps = calloc(warps, sizeof *crew->warps);
    crew->stack_bytes = threads * STACK_BYTES;
    void *stacks = mmap(NULL, crew->stack_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    crew->stacks = stacks == MAP_FAILED ? NULL : stacks;
    if (!crew->fibers || !crew->warps || !crew->stacks) {
        rt_crew_free(crew);
        return NULL;
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (uint32_t i = 0; i < threads; i++) {
        char *low = crew->stacks + i * STACK_BYTES;
        (void)mprotect(low, page, PROT_NONE); /* a process may run out of mappings; then it goes without guards */
        crew->fibers[i].low = low + page;
        crew->fibers[i].bytes = STACK_BYTES - page;
        if (__tsan_create_fiber) crew->fibers[i].tsan = __tsan_create_fiber(0);
    }
    return crew;
}

void rt_crew_free(RtCrew *crew) {
    if (!crew) return;
    if (__tsan_destroy_fiber && crew->fibers)
        for (uint32_t i = 0; i < crew->capacity; i++)
            if (crew->fibers[i].tsan) __tsan_destroy_fiber(crew->fibers[i].tsan);
    if (crew->stacks) {
        /* Abandoned frames leave their red zones behind in the shadow of addresses that are about to be reused. */
        if (__asan_unpoison_memory_region) __asan_unpoison_memory_region(crew->stacks, crew->stack_bytes);
        munmap(crew->stacks, crew->stack_bytes);
    }
    free(crew->warps);
    free(crew->fibers);
    free(crew);
}

/* After a fault: what the abandoned threads did lies before what the launching thread does next, for
 * ThreadSanitizer. Only its idea of who runs moves here. */
static void release_abandoned(RtCrew *crew) {
    if (!__tsan_switch_to_fiber) return;
    for (uint32_t i = 0; i < crew->cta.threads; i++) {
        __tsan_switch_to_fiber(crew->fibers[i].tsan, TSAN_NO_SYNC);
        sync_release(crew, SYNC_END);
    }
    __tsan_switch_to_fiber(crew->home.tsan, TSAN_NO_SYNC);
}

bool rt_crew_run(RtCrew *crew, const RtCta *cta, RtFault *fault) {
    crew->cta = *cta;
    crew->fault = (RtFault){.kind = RT_FAULT_NONE};
    crew->random = cta->seed;
    crew->barrier_parity = 0;
    crew->home_known = false;
    uint32_t warps = (cta->threads + RT_WARP - 1) / RT_WARP;
    for (uint32_t i = 0; i < warps; i++) {
        uint32_t rest = cta->threads - i * RT_WARP;
        round_start(crew, &crew->warps[i].round, rest < RT_WARP ? rest : RT_WARP);
        crew->warps[i].parity = 0;
    }
    round_start(crew, &crew->warp_round, warps);
    for (uint32_t i = 0; i < cta->threads; i++) {
        crew->fibers[i].at = (RtAt){RT_STAND_START, 0};
        fiber_prepare(&crew->fibers[i], i % RT_WARP * STAGGER_BYTES);
    }
    if (__tsan_get_current_fiber) crew->home.tsan = __tsan_get_current_fiber();
    crew_here = crew;
    sync_release(crew, SYNC_START);
    crew->running = warp_next(crew, crew->warp_round.order[0]);
    switch_to(crew, &crew->home, &crew->fibers[crew->running], false);
    if (crew->fault.kind != RT_FAULT_NONE) release_abandoned(crew);
    sync_acquire(crew, SYNC_END);
    crew_here = NULL;
    *fault = crew->fault;
    return crew->fault.kind == RT_FAULT_NONE;
}
