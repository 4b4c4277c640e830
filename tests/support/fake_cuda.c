/* In: tests/fake/cuda.c, and nvrtc.c where NVRTC itself cannot be used. Out: that driver in this process. */
#include "tests/support/fake_cuda.h"

#include "runtime/device.h"
#include "tests/support/nvrtc.h"

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

/* Builds tests/fake/NAME.c and loads it as the library of that soname; NULL where there is no C compiler. */
static void *load_fake(const char *name, const char *soname) {
    const char *build = getenv("BUILD"), *cc = getenv("CC");
    char *command = NULL, *folder = NULL, *path = NULL;
    void *library = NULL;
    if (asprintf(&folder, "%s/fake/%ld", build ? build : "build", (long)getpid()) < 0) return NULL;
    if (asprintf(&path, "%s/%s", folder, soname) < 0) {
        free(folder);
        return NULL;
    }
    if (asprintf(&command, "mkdir -p %s && %s -w -shared -fPIC -Wl,-soname,%s -o %s tests/fake/%s.c", folder,
                 cc ? cc : "cc", soname, path, name) > 0)
        library = system(command) ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    free(command);
    if (asprintf(&command, "rm -rf %s", folder) > 0 && system(command)) library = NULL;
    free(command);
    free(folder);
    free(path);
    return library;
}

FakeCuda *fake_cuda_load(void) {
    if (nvrtc_missing() ? !load_fake("nvrtc", "libnvrtc.so.13") : !warm_nvrtc()) return NULL;
    void *library = load_fake("cuda", "libcuda.so.1");
    return library ? dlsym(library, "fake_cuda") : NULL;
}

int fake_cuda_live(const FakeCuda *fake) {
    return fake->retained + fake->modules + fake->memories + fake->streams + fake->events + fake->graphs + fake->execs;
}
