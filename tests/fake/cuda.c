/* A CUDA driver that does nothing but count, for tests on machines without a GPU. Built by the test into a library
 * whose soname is libcuda.so.1; once that is loaded, it is what normgen finds. Memory is the process's own. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <elf.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"

FakeCuda fake_cuda;

/* What a graph holds. */
typedef struct Work {
    int kernels;
    double us;
} Work;

/* Counts a call; 2 is CUDA_ERROR_OUT_OF_MEMORY. */
#define CALL                                                                                                           \
    if (++fake_cuda.calls == fake_cuda.fail_at) return 2

int cuGetErrorName(int result, const char **name);
int cuGetErrorString(int result, const char **text);
int cuGetErrorName(int result, const char **name) { return *name = result == 2 ? "CUDA_ERROR_FAKE" : "?", 0; }
int cuGetErrorString(int result, const char **text) { return (void)result, *text = "planted", 0; }

#define FAKE(name, parameters, ...)                                                                                    \
    int name parameters;                                                                                               \
    int name parameters {                                                                                              \
        CALL;                                                                                                          \
        __VA_ARGS__;                                                                                                   \
        return 0;                                                                                                      \
    }

FAKE(cuInit, (unsigned flags), (void)flags)
FAKE(cuDeviceGetCount, (int *count), *count = 1)
FAKE(cuDeviceGet, (int *device, int ordinal), *device = ordinal)
FAKE(cuDeviceGetName, (char *name, int bytes, int device), (void)device; memset(name, 0, (size_t)bytes);
     memcpy(name, "fake", 4))
FAKE(cuDeviceTotalMem_v2, (size_t * bytes, int device), (void)device; *bytes = 1 << 30)
/* An sm_90 in what planning asks for, but with an L2 of 1 MiB: 132 SMs, 228 KiB of shared memory and 65536 registers
 * each. */
static int attribute_of(int attribute) {
    static const int known[][2] = {{75, 9}, {76, 0}, {16, 132}, {81, 233472}, {82, 65536}, {38, 1 << 20}, {97, 232448}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i][0] == attribute) return known[i][1];
    return 100;
}
FAKE(cuDeviceGetAttribute, (int *value, int attribute, int device), (void)device; *value = attribute_of(attribute))
FAKE(cuDevicePrimaryCtxRetain, (void **context, int device), (void)device; *context = &fake_cuda; fake_cuda.retained++)
FAKE(cuDevicePrimaryCtxRelease_v2, (int device), (void)device; fake_cuda.retained--)
FAKE(cuCtxPushCurrent_v2, (void *context), fake_cuda.stack[fake_cuda.depth++] = context;
     if (fake_cuda.depth > fake_cuda.deepest) fake_cuda.deepest = fake_cuda.depth)
FAKE(cuCtxSynchronize, (void), )

/* A module keeps the image, so that it holds the kernels that have a section of code in it and no others. */
typedef struct Module {
    size_t count;
    char bytes[];
} Module;

static Module *module_of(const char *image) {
    Elf64_Ehdr head;
    memcpy(&head, image, sizeof head);
    size_t sections = head.e_shoff + (size_t)head.e_shnum * head.e_shentsize;
    size_t segments = head.e_phoff + (size_t)head.e_phnum * head.e_phentsize;
    size_t count = sections > segments ? sections : segments;
    Module *module = malloc(sizeof *module + count);
    if (module) module->count = count, memcpy(module->bytes, image, count);
    return module;
}

static int holds(const Module *module, const char *kernel) {
    char *section = NULL;
    int count = asprintf(&section, ".text.%s", kernel);
    int found = count > 0 && memmem(module->bytes, module->count, section, (size_t)count + 1) != NULL;
    free(section);
    return found;
}

FAKE(cuModuleLoadData, (void **module, const void *image), if (memcmp(image, ELFMAG, SELFMAG)) return 200;
     *module = module_of(image); fake_cuda.modules++)
FAKE(cuModuleUnload, (void *module), free(module); fake_cuda.modules--)
FAKE(cuModuleGetFunction, (void **function, void *module, const char *name), *function = &fake_cuda;
     if (!holds(module, name)) return 500)
FAKE(cuFuncGetAttribute, (int *value, int attribute, void *function), (void)function;
     *value = attribute ? 30 + attribute : 1024)
FAKE(cuFuncSetAttribute, (void *function, int attribute, int value), (void)function;
     if (attribute == 8) fake_cuda.shared_bytes = value)
FAKE(cuFuncLoad, (void *function), (void)function)
FAKE(cuMemAlloc_v2, (unsigned long long *memory, size_t bytes),
     *memory = (unsigned long long)aligned_alloc(256, (bytes + 255) / 256 * 256);
     fake_cuda.memories++)
FAKE(cuMemFree_v2, (unsigned long long memory), free((void *)memory); fake_cuda.memories--)
FAKE(cuMemcpyHtoD_v2, (unsigned long long to, const void *from, size_t bytes), memcpy((void *)to, from, bytes))
FAKE(cuMemcpyDtoH_v2, (void *to, unsigned long long from, size_t bytes), memcpy(to, (void *)from, bytes))
FAKE(cuLaunchKernel,
     (void *function, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y, unsigned block_z,
      unsigned shared_bytes, void *stream, void **params, void **extra),
     (void)function;
     (void)y, (void)z, (void)block_y, (void)block_z, (void)shared_bytes, (void)stream, (void)params, (void)extra;
     fake_cuda.grid = x; fake_cuda.block = block_x; fake_cuda.launches++;
     fake_cuda.us += fake_cuda.kernel_us + fake_cuda.cta_us * x)
FAKE(cuMemcpyDtoD_v2, (unsigned long long to, unsigned long long from, size_t bytes),
     memcpy((void *)to, (void *)from, bytes))
FAKE(cuMemGetInfo_v2, (size_t * left, size_t *whole), *left = 1 << 29; *whole = 1 << 30)

/* ---- streams, graphs, events: a graph is the time that its kernels take, which passes when it is launched ---- */

FAKE(cuStreamCreate, (void **stream, unsigned flags), (void)flags; *stream = &fake_cuda; fake_cuda.streams++)
FAKE(cuStreamSynchronize, (void *stream), (void)stream)
FAKE(cuStreamBeginCapture_v2, (void *stream, int mode), (void)stream; (void)mode;
     fake_cuda.captured = fake_cuda.launches; fake_cuda.us = 0)
FAKE(cuGraphInstantiateWithFlags, (void **exec, void *graph, unsigned long long flags), (void)flags;
     *exec = malloc(sizeof(Work)); memcpy(*exec, graph, sizeof(Work)); fake_cuda.execs++)
FAKE(cuGraphLaunch, (void *exec, void *stream), (void)stream; fake_cuda.replayed += ((Work *)exec)->kernels;
     fake_cuda.clock += ((Work *)exec)->us)
FAKE(cuEventCreate, (void **event, unsigned flags), (void)flags; *event = &fake_cuda.times[fake_cuda.events++])
FAKE(cuEventRecord, (void *event, void *stream), (void)stream; *(double *)event = fake_cuda.clock)
FAKE(cuEventElapsedTime, (float *milliseconds, void *start, void *stop), fake_cuda.timed = fake_cuda.calls;
     *milliseconds = (float)((*(double *)stop - *(double *)start) * 1e-3))

/* Makes no graph where it fails; the capture has ended then too. */
FAKE(cuStreamEndCapture, (void *stream, void **graph), (void)stream; Work *made = malloc(sizeof *made);
     *made = (Work){fake_cuda.launches - fake_cuda.captured, fake_cuda.us}; *graph = made; fake_cuda.graphs++)

/* What gives back never fails: a test counts what lives. */
#define GIVE_BACK(name, object, counter, ...)                                                                          \
    int name(void *object);                                                                                            \
    int name(void *object) {                                                                                           \
        __VA_ARGS__;                                                                                                   \
        fake_cuda.counter--;                                                                                           \
        return 0;                                                                                                      \
    }
GIVE_BACK(cuStreamDestroy_v2, stream, streams, (void)stream)
GIVE_BACK(cuEventDestroy_v2, event, events, (void)event)
GIVE_BACK(cuGraphDestroy, graph, graphs, free(graph))
GIVE_BACK(cuGraphExecDestroy, exec, execs, free(exec))

/* Popping, unloading and freeing never fail here: a test counts them. */
int cuCtxPopCurrent_v2(void **context);
int cuCtxPopCurrent_v2(void **context) {
    *context = fake_cuda.stack[--fake_cuda.depth];
    return 0;
}
