/* The tensors of one launch in a device's memory, each in a block of its own: inputs are filled, all else is a NaN in
 * every float dtype: outputs, what lies between padded rows, and a border on both sides. What a launch may change is
 * known to the byte. */
#ifndef TESTS_LAUNCH_MEMORY_H
#define TESTS_LAUNCH_MEMORY_H

#include "runtime/launch_tables.h"
#include "tests/support/random.h"

typedef struct LaunchLayout {
    bool in_place;  /* outputs share the memory of their inplace inputs; else they have their own */
    Random *shift;  /* NULL: every tensor at a 256-byte boundary; else each some elements behind one (as many as its
                       align lets it) */
    uint32_t alone; /* without shift: 1 + the tensor that lies one element behind one; 0: none does */
    size_t border;  /* bytes on both sides; 0 where a sanitizer watches the blocks' ends */
} LaunchLayout;

typedef struct LaunchTensor {
    uint32_t owner;       /* the tensor in whose block it lies: itself, or the input that it replaces */
    size_t start;         /* in the block, bytes */
    size_t bytes;         /* of the block; owners only */
    char *before, *after; /* the block before and after the launch, on this machine; owners only */
    void *memory;         /* the block on the device; NULL: it has no byte */
} LaunchTensor;

typedef struct LaunchMemory {
    Job *job;
    RtDevice *device;
    const RtProgram *program;
    const RtScratch *scratch; /* sizes */
    LaunchTensor *tensors;
    void **pointers; /* for ng_args; NULL where a tensor has no elements */
    char *workspace; /* NaNs before the launch, a border on both sides; NULL where none is needed */
    char *workspace_block;
    size_t border;
} LaunchMemory;

/* Whether some input picks along a dim that has no element: no such input is legal. */
bool launch_picks_nothing(const RtProgram *program, const RtScratch *scratch);
/* Values for the scalars. */
ng_scalar *launch_scalars(Job *job, const Graph *graph, Random *random);
/* Inputs as bytes from a tensor's pointer on, in its strides: fresh[t] for each input, and for each output that
 * accumulates what it holds before; NULL for the others. */
char **launch_inputs(Job *job, const RtProgram *program, const RtScratch *scratch, Random *random);

Status launch_memory_open(LaunchMemory *memory, Job *job, RtDevice *device, const RtProgram *program,
                          const RtScratch *scratch, char *const *fresh, const LaunchLayout *layout, Text *why);
/* Brings all blocks back; STATUS_CHECK_FAILED with words when a byte changed that is of no output's element, or beside
 * the workspace. */
Status launch_memory_fetch(LaunchMemory *memory, Text *why);
/* Releases the blocks; what was fetched stays with the job. */
void launch_memory_close(LaunchMemory *memory);

/* An output's elements after the launch in row-major order; count of bytes in *bytes. */
char *launch_elements(const LaunchMemory *memory, uint32_t output, size_t *bytes);
/* Bytes from the tensor's pointer to element `index` of row-major order. */
int64_t launch_offset(const RtProgram *program, const RtScratch *scratch, uint32_t tensor, int64_t index);

#endif
