/* The public objects as the library sees them. */
#ifndef RUNTIME_CONTEXT_H
#define RUNTIME_CONTEXT_H

#include "runtime/launch.h"
#include "runtime/launch_tables.h"

#include <pthread.h>
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

struct ng_context {
    Allocator allocator;
    int debug; /* NORMGEN_DEBUG, read once */
    ng_device_kind kind;
    RtDevice *device; /* NULL: NG_DEVICE_NONE */
    Target target;    /* what programs are planned for */
    pthread_mutex_t lock;
    pthread_cond_t compiled;
    ng_program *programs; /* a list of those that live or are being compiled; under lock */
};

/* Programs of equal key are one object with several references. */
struct ng_program {
    ng_program *next;
    ng_context *context;
    uint32_t references; /* under the context's lock */
    bool ready;          /* under the context's lock: all below is only read from then on */
    Status status;
    ng_text why; /* diagnostics and the device compiler's words */
    XXH128_hash_t key;
    Job *job;
    const char *name; /* of the text in messages */
    Unit unit;
    uint32_t last;          /* pass that was run last */
    uint64_t *microseconds; /* of each pass */
    RtProgram *tables;
    RtModule *module;
    double seconds;
    pthread_mutex_t facts_lock; /* of the two below */
    bool facts_known;           /* variants' facts were read from a cubin, or cannot be */
    bool *facts_found;          /* for each kernel */
};

/* Registers and stack of each kernel, from a cubin of the whole text; NULL: nobody can say. The first call counts. */
void rt_program_take_facts(const ng_program *program, const char *cubin, size_t count);

/* Copies what the caller's struct has room for; both begin with their size in bytes. false: size is no size. */
bool rt_struct_in(void *own, size_t own_bytes, const void *callers);
bool rt_struct_out(void *callers, const void *own, size_t own_bytes);
/* The passes' options: settings are copied; target and after are the caller's to set. (runtime/program.c) */
GenOptions rt_compile_options(Job *job, const ng_compile_options *from);
const char *rt_options_wrong(const ng_compile_options *options); /* what is, of the lists of settings; NULL: nothing */
/* malloc and free where alloc is NULL. (runtime/context.c) */
Allocator rt_allocator(void *(*alloc)(void *state, size_t bytes), void (*release)(void *state, void *memory),
                       void *state);
/* STATUS and ng_status are the same numbers. */
static inline ng_status rt_status(Status status) { return (ng_status)status; }
/* A text of printf's form, made by malloc, into *why; nothing where why is NULL. */
void rt_why(ng_text *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
