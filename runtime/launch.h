/* A unit's plan made ready to launch on a device. In: a Unit that went through all passes, and the module that a device
 * built of its source. Out: launches, checked runs. Knows no context and no ng_program, so that a test may build the
 * texts of many units in one call and run each:
 *
 *     RtProgram *p = rt_program_create(job, unit);      for each unit
 *     device->ops->build(device, sources, n, modules, &why);
 *     rt_program_load(p, device, modules[i], &why);
 *     rt_program_run(p, &args, true, &report);          as ng_run
 */
#ifndef RUNTIME_LAUNCH_H
#define RUNTIME_LAUNCH_H

#include "runtime/device.h"
#include "runtime/normgen.h"

typedef struct RtTensor { /* an input or an output */
    const Tensor *tensor;
    int64_t element_bytes;
    int64_t pointer_align; /* bytes */
    uint32_t inplace;      /* input, or IR_NONE */
    Poly slice;            /* elements from the inplace input's pointer to this output's */
} RtTensor;

/* Where a tensor's elements lie for one value of the dims. */
typedef struct RtSpan {
    int64_t extent[IR_MAX_RANK], stride[IR_MAX_RANK]; /* stride in elements */
    int64_t low, high; /* bytes from the pointer to the lowest element and past the highest; equal when there is none */
    int64_t count;     /* elements */
} RtSpan;

typedef struct RtVariant {
    RtKernel *kernel;
    RtFacts facts;
} RtVariant;

typedef struct RtProgram {
    const Unit *unit;
    const Graph *graph; /* whose dims, inputs, outputs and scalars these are */
    uint32_t tensor_count, input_count, any_count;
    RtTensor *tensors;  /* inputs, then outputs */
    uint32_t *any;      /* any dims in file order: index in graph->dims */
    uint32_t *prog_dim; /* for each of prog->dims: index in graph->dims */
    uint32_t *checked;  /* values of unit->graph with something to check at launch: slices, amax and amin */
    uint32_t checked_count;
    int sms;                /* that part counts are for */
    uint32_t most_params;   /* of any step */
    uint32_t scratch_words; /* that a launch needs; RT_STACK_WORDS lie on the stack, beyond that spare, under a lock */
    int64_t *spare;
    void *spare_lock;                        /* pthread_mutex_t */
    RtDevice *device;                        /* from here: set by rt_program_load */
    RtVariant (*variants)[GEN_MAX_VARIANTS]; /* for each step */
    RtModule *module;
} RtProgram;

#define RT_STACK_WORDS 1024

/* A launch's working memory, carved out of scratch_words 64-bit words. */
typedef struct RtScratch {
    int64_t *graph_dims; /* fixed ones too */
    int64_t *prog_dims;
    int64_t *parts;  /* of prog->parts */
    int64_t *places; /* bytes of each of the plan's rooms in the workspace, then of its end */
    int64_t *sizes;
    RtSpan *spans;
    char **bufs; /* address of each Prog buf's first element */
    int64_t *values;
    void **params;
    int64_t workspace_bytes;
    uint32_t variant; /* that the last step's guards chose */
} RtScratch;

/* The tables, in the job's arena; the unit must live as long. A unit without a plan gets what queries need. */
RtProgram *rt_program_create(Job *job, const Unit *unit);
/* Finds the kernels in the module that the device built, sets their attributes and asks their facts. */
Status rt_program_load(RtProgram *program, RtDevice *device, RtModule *module, Text *why);

/* words: scratch_words of them. Evaluates every size for these any dims and checks them. why may be NULL in all. */
Status rt_program_sizes(const RtProgram *program, const int64_t *dims, int64_t *words, RtScratch *scratch, Text *why);
/* All checks of a launch but those of the workspace, sizes included. */
Status rt_program_check_tensors(const RtProgram *program, const ng_args *args, int64_t *words, RtScratch *scratch,
                                Text *why);
/* All checks of a launch. */
Status rt_program_check(const RtProgram *program, const ng_args *args, int64_t *words, RtScratch *scratch, Text *why);
/* Checks and enqueues. step_done, where not NULL, is called after each step was enqueued (for timing). */
Status rt_program_launch(const RtProgram *program, const ng_args *args, int64_t *words, Text *why,
                         void (*step_done)(void *state, uint32_t step, const RtScratch *scratch), void *state);

/* ng_run: copies in, launches, copies out, reports; with verify compares with the oracle. debug: NORMGEN_DEBUG's level.
 */
Status rt_program_run(const RtProgram *program, const Allocator *allocator, const ng_args *args, bool verify, int debug,
                      ng_report *report);

#endif
