/* The launchers of generated files, compiled by the system's C++ compiler without CUDA and loaded: what they launch is
 * handed to the test. */
#ifndef TESTS_LAUNCHER_TEXT_H
#define TESTS_LAUNCHER_TEXT_H

#include "gen/gen.h"
#include "runtime/normgen.h"

enum {
    LAUNCHER_PARAMS = 24,
    LAUNCHER_SHARED = 65536, /* bytes that a CTA of the GPU has: 48 KB of them without asking */
};

typedef struct LauncherCall {
    const char *kernel;
    uint64_t blocks;
    unsigned threads, shared;
    unsigned param_count;
    uint64_t params[LAUNCHER_PARAMS]; /* the bytes of each, zeros behind */
} LauncherCall;

typedef struct Launchers {
    void *library;
    void (**record)(void *state, const LauncherCall *call); /* what each launch calls */
    void **state;
} Launchers;

/* One library of all; stops the test where it does not compile. The GPU that they ask has that many SMs. */
Launchers launchers_open(Job *job, const Unit *units, uint32_t count, int sms);
void launchers_close(Launchers *launchers);
/* NAME_workspace_bytes and NAME_launch of unit `index`. */
size_t launcher_workspace(const Launchers *launchers, uint32_t index, const int64_t *dims);
int launcher_launch(const Launchers *launchers, uint32_t index, void *const *tensors, const int64_t *dims,
                    const ng_scalar *scalars, void *workspace, size_t workspace_bytes);

#endif
