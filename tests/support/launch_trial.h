/* One program with one set of dims, launched in every way that must not matter: tensors aligned and not, outputs in
 * place of inputs and apart, lanes in each order that there is a device of. The first run is compared with the oracle,
 * the others must give its bits; no byte that is of no output's element may change. */
#ifndef TESTS_LAUNCH_TRIAL_H
#define TESTS_LAUNCH_TRIAL_H

#include "tests/support/launch_memory.h"

typedef struct LaunchTrial {
    Job *job; /* what is made lives here */
    const Unit *unit;
    RtProgram *program;
    RtModule *module;
    RtDevice *const *devices;
    uint32_t device_count;
    const int64_t *any;       /* values of the any dims */
    const ng_scalar *scalars; /* NULL: the defaults */
    Random *random;           /* of data and layouts */
    size_t border;            /* bytes around tensors that are watched */
    bool each_alone;          /* also runs with one tensor after the other alone off its alignment */
    void (*step_done)(void *state, uint32_t step, const RtScratch *scratch); /* may be NULL */
    void *state;
    RtScratch scratch; /* from here: what came of it; sizes */
    char **first;      /* elements of each output of the first run, in row-major order */
    uint32_t launches;
    uint64_t elements, unbounded; /* compared with the oracle; without a bound */
} LaunchTrial;

/* STATUS_USAGE where the program refuses these dims; STATUS_CHECK_FAILED, with words, where a run was wrong. */
Status launch_trial_run(LaunchTrial *trial, Text *why);
/* Whether the words of a STATUS_USAGE say that the dims are what it refuses. */
bool launch_refuses_dims(const char *why);

#endif
