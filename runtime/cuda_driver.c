/* Finds the CUDA driver. In: the dynamic linker's view of libcuda.so.1. Out: a filled CudaDriver. Makes no context. */
#include "runtime/cuda_driver.h"
#include "runtime/device.h"

#include <dlfcn.h>
#include <string.h>

void rt_cuda_say(const CudaDriver *driver, Text *why, const char *call, CuResult result) {
    const char *name = NULL, *text = NULL;
    if (!why) return;
    driver->error_name(result, &name);
    driver->error_string(result, &text);
    rt_say(why, "%s: %s (%s)", call, name ? name : "unknown error", text ? text : "no text");
}

Status rt_cuda_driver(CudaDriver *driver, Text *why) {
    memset(driver, 0, sizeof *driver);
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        rt_say(why, "no CUDA driver: libcuda.so.1 was not found");
        return STATUS_UNAVAILABLE;
    }
    const char *missing = NULL;
#define CU_FIND(field, name, parameters)                                                                               \
    if (!rt_symbol(library, name, &driver->field)) missing = name;
    CU_FUNCTIONS(CU_FIND)
#undef CU_FIND
    rt_symbol(library, "cuFuncLoad", &driver->function_load);
    Status status = STATUS_OK;
    if (missing) {
        rt_say(why, "the CUDA driver is too old: it has no %s", missing);
        status = STATUS_UNAVAILABLE;
    } else {
        CuResult result = driver->init(0);
        if (result) {
            rt_cuda_say(driver, why, "cuInit", result);
            status = STATUS_NO_DEVICE;
        }
    }
    dlclose(library); /* RTLD_NODELETE: the functions stay */
    return status;
}
