/* In: tests/fake/cuda.c. Out: that driver in this process. */
#include "tests/support/fake_cuda.h"

#include "runtime/device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* NVRTC looks for a driver when it first compiles; what it finds must not be the fake one, which lacks what it calls.
 */
static bool warm_nvrtc(void) {
    char *bytes = NULL;
    size_t count;
    const Source empty = {.device_text = "", .device_count = 0};
    const Status status = rt_nvrtc_compile(&empty, 90, RT_CUBIN, &bytes, &count, NULL);
    free(bytes);
    return status == STATUS_OK;
}

FakeCuda *fake_cuda_load(void) {
    const char *build = getenv("BUILD"), *cc = getenv("CC");
    char *command = NULL, *path = NULL;
    void *library = NULL, *symbol;
    if (!build) build = "build";
    if (!warm_nvrtc() || asprintf(&path, "%s/fake/%ld/libcuda.so.1", build, (long)getpid()) < 0) return NULL;
    if (asprintf(&command,
                 "mkdir -p %s/fake/%ld && %s -w -shared -fPIC -Wl,-soname,libcuda.so.1 -o %s tests/fake/cuda.c", build,
                 (long)getpid(), cc ? cc : "cc", path) > 0)
        library = system(command) ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    symbol = library ? dlsym(library, "fake_cuda") : NULL;
    free(command);
    if (asprintf(&command, "rm -rf %s/fake/%ld", build, (long)getpid()) > 0 && system(command)) symbol = NULL;
    free(command);
    free(path);
    return symbol;
}

int fake_cuda_live(const FakeCuda *fake) {
    return fake->retained + fake->modules + fake->memories + fake->streams + fake->events + fake->graphs + fake->execs;
}
