/* A CUDA driver that does nothing but count, for tests on machines without a GPU. Built by the test into a library
 * whose soname is libcuda.so.1; once that is loaded, it is what normgen finds. Memory is the process's own. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct FakeCuda {
    int calls, fail_at; /* the call that fails, and no other; 0: none */
    int retained, modules, memories, launches;
    void *stack[16]; /* of current contexts */
    int depth, deepest;
    int shared_bytes; /* last set */
    unsigned grid, block;
} FakeCuda;

FakeCuda fake_cuda;

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
FAKE(cuDeviceGetAttribute, (int *value, int attribute, int device), (void)device; *value = attribute == 75   ? 9
                                                                                           : attribute == 76 ? 0
                                                                                                             : 100)
FAKE(cuDevicePrimaryCtxRetain, (void **context, int device), (void)device; *context = &fake_cuda; fake_cuda.retained++)
FAKE(cuDevicePrimaryCtxRelease_v2, (int device), (void)device; fake_cuda.retained--)
FAKE(cuCtxPushCurrent_v2, (void *context), fake_cuda.stack[fake_cuda.depth++] = context;
     if (fake_cuda.depth > fake_cuda.deepest) fake_cuda.deepest = fake_cuda.depth)
FAKE(cuCtxSynchronize, (void), )
FAKE(cuModuleLoadData, (void **module, const void *image), *module = malloc(1);
     if (memcmp(image, "\177ELF", 4)) return 200; *(char *)*module = (char)fake_cuda.modules++)
FAKE(cuModuleUnload, (void *module), free(module); fake_cuda.modules--)
FAKE(cuModuleGetFunction, (void **function, void *module, const char *name), *function = &fake_cuda;
     if (strcmp(name, "k") || *(char *)module != 1) return 500) /* it lies in the second module */
FAKE(cuFuncGetAttribute, (int *value, int attribute, void *function), (void)function; *value = 30 + attribute)
FAKE(cuFuncSetAttribute, (void *function, int attribute, int value), (void)function;
     if (attribute == 8) fake_cuda.shared_bytes = value)
FAKE(cuFuncLoad, (void *function), (void)function)
FAKE(cuMemAlloc_v2, (unsigned long long *memory, size_t bytes), *memory = (unsigned long long)malloc(bytes);
     fake_cuda.memories++)
FAKE(cuMemFree_v2, (unsigned long long memory), free((void *)memory); fake_cuda.memories--)
FAKE(cuMemcpyHtoD_v2, (unsigned long long to, const void *from, size_t bytes), memcpy((void *)to, from, bytes))
FAKE(cuMemcpyDtoH_v2, (void *to, unsigned long long from, size_t bytes), memcpy(to, (void *)from, bytes))
FAKE(cuLaunchKernel,
     (void *function, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y, unsigned block_z,
      unsigned shared_bytes, void *stream, void **params, void **extra),
     (void)function;
     (void)y, (void)z, (void)block_y, (void)block_z, (void)shared_bytes, (void)stream, (void)params, (void)extra;
     fake_cuda.grid = x; fake_cuda.block = block_x; fake_cuda.launches++)

/* Popping, unloading and freeing never fail here: a test counts them. */
int cuCtxPopCurrent_v2(void **context);
int cuCtxPopCurrent_v2(void **context) {
    *context = fake_cuda.stack[--fake_cuda.depth];
    return 0;
}
