/* The CUDA driver, found at run time: the types and functions of its API that normgen uses, declared here, so that the
 * build needs no CUDA. In: libcuda.so.1 of the machine. Out: a table of functions, whose names are the versions that
 * the signatures below were written for. */
#ifndef RUNTIME_CUDA_DRIVER_H
#define RUNTIME_CUDA_DRIVER_H

#include "ir/text.h"

typedef int CuResult; /* 0: success */
typedef int CuDevice;
typedef unsigned long long CuPointer;
typedef struct CuContext_ *CuContext;
typedef struct CuModule_ *CuModule;
typedef struct CuFunction_ *CuFunction;
typedef struct CuStream_ *CuStream;
typedef struct CuEvent_ *CuEvent;
typedef struct CuGraph_ *CuGraph;
typedef struct CuGraphExec_ *CuGraphExec;

enum { /* CUdevice_attribute */
       CU_CLOCK_KHZ_MEMORY = 36,
       CU_BUS_BITS_MEMORY = 37,
       CU_L2_BYTES = 38,
       CU_SM_COUNT = 16,
       CU_ARCH_MAJOR = 75,
       CU_ARCH_MINOR = 76,
       CU_SHARED_PER_SM = 81,
       CU_REGISTERS_PER_SM = 82,
       CU_SHARED_PER_CTA_OPTIN = 97
};
enum { /* CUfunction_attribute */
       CU_FUNC_MAX_THREADS = 0,
       CU_FUNC_SHARED_BYTES = 1,
       CU_FUNC_LOCAL_BYTES = 3,
       CU_FUNC_REGISTERS = 4,
       CU_FUNC_MAX_DYNAMIC_SHARED = 8
};

enum {
    CU_STREAM_NON_BLOCKING = 1,
    CU_CAPTURE_THREAD_LOCAL = 1 /* CUstreamCaptureMode: what other threads do meanwhile is theirs */
};

/* X(field, name in the library, parameters) */
#define CU_FUNCTIONS(X)                                                                                                \
    X(init, "cuInit", (unsigned flags))                                                                                \
    X(error_name, "cuGetErrorName", (CuResult result, const char **name))                                              \
    X(error_string, "cuGetErrorString", (CuResult result, const char **text))                                          \
    X(device_count, "cuDeviceGetCount", (int *count))                                                                  \
    X(device_get, "cuDeviceGet", (CuDevice * device, int ordinal))                                                     \
    X(device_name, "cuDeviceGetName", (char *name, int bytes, CuDevice device))                                        \
    X(device_memory, "cuDeviceTotalMem_v2", (size_t * bytes, CuDevice device))                                         \
    X(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, CuDevice device))                          \
    X(primary_retain, "cuDevicePrimaryCtxRetain", (CuContext * context, CuDevice device))                              \
    X(primary_release, "cuDevicePrimaryCtxRelease_v2", (CuDevice device))                                              \
    X(context_push, "cuCtxPushCurrent_v2", (CuContext context))                                                        \
    X(context_pop, "cuCtxPopCurrent_v2", (CuContext * context))                                                        \
    X(context_synchronize, "cuCtxSynchronize", (void))                                                                 \
    X(module_load, "cuModuleLoadData", (CuModule * module, const void *image))                                         \
    X(module_unload, "cuModuleUnload", (CuModule module))                                                              \
    X(module_function, "cuModuleGetFunction", (CuFunction * function, CuModule module, const char *name))              \
    X(function_attribute, "cuFuncGetAttribute", (int *value, int attribute, CuFunction function))                      \
    X(function_set, "cuFuncSetAttribute", (CuFunction function, int attribute, int value))                             \
    X(memory_alloc, "cuMemAlloc_v2", (CuPointer * memory, size_t bytes))                                               \
    X(memory_free, "cuMemFree_v2", (CuPointer memory))                                                                 \
    X(copy_in, "cuMemcpyHtoD_v2", (CuPointer to, const void *from, size_t bytes))                                      \
    X(copy_out, "cuMemcpyDtoH_v2", (void *to, CuPointer from, size_t bytes))                                           \
    X(copy_within, "cuMemcpyDtoD_v2", (CuPointer to, CuPointer from, size_t bytes))                                    \
    X(memory_left, "cuMemGetInfo_v2", (size_t * left, size_t * whole))                                                 \
    X(stream_create, "cuStreamCreate", (CuStream * stream, unsigned flags))                                            \
    X(stream_destroy, "cuStreamDestroy_v2", (CuStream stream))                                                         \
    X(stream_synchronize, "cuStreamSynchronize", (CuStream stream))                                                    \
    X(capture_begin, "cuStreamBeginCapture_v2", (CuStream stream, int mode))                                           \
    X(capture_end, "cuStreamEndCapture", (CuStream stream, CuGraph * graph))                                           \
    X(graph_destroy, "cuGraphDestroy", (CuGraph graph))                                                                \
    X(graph_instantiate, "cuGraphInstantiateWithFlags", (CuGraphExec * exec, CuGraph graph, unsigned long long flags)) \
    X(graph_launch, "cuGraphLaunch", (CuGraphExec exec, CuStream stream))                                              \
    X(exec_destroy, "cuGraphExecDestroy", (CuGraphExec exec))                                                          \
    X(event_create, "cuEventCreate", (CuEvent * event, unsigned flags))                                                \
    X(event_destroy, "cuEventDestroy_v2", (CuEvent event))                                                             \
    X(event_record, "cuEventRecord", (CuEvent event, CuStream stream))                                                 \
    X(event_milliseconds, "cuEventElapsedTime", (float *milliseconds, CuEvent start, CuEvent stop))                    \
    X(launch, "cuLaunchKernel",                                                                                        \
      (CuFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,     \
       unsigned block_z, unsigned shared_bytes, CuStream stream, void **params, void **extra))

typedef struct CudaDriver {
#define CU_FIELD(field, name, parameters) CuResult(*field) parameters;
    CU_FUNCTIONS(CU_FIELD)
#undef CU_FIELD
    CuResult (*function_load)(CuFunction function); /* NULL before CUDA 12.4 */
} CudaDriver;

/* Opens and initialises the driver. STATUS_UNAVAILABLE: no driver, or it misses a function; STATUS_NO_DEVICE: it finds
 * no GPU; why may be NULL. The library stays loaded in the process. */
Status rt_cuda_driver(CudaDriver *driver, Text *why);
/* "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (out of memory)" */
void rt_cuda_say(const CudaDriver *driver, Text *why, const char *call, CuResult result);

#endif
