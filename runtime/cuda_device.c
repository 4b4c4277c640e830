/* The cuda device. In: device texts and launches. Out: cubins of NVRTC for the GPU's own architecture, loaded, and
 * kernels enqueued on the caller's streams. The primary context is retained, and pushed around each call only, so that
 * the caller's current context is what it was. */
#include "runtime/cuda_device.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct RtModule {
    uint32_t handle_count; /* one a kernel: each was compiled on its own */
    CuModule *handles;
    char **names;      /* of each handle's kernel; NULL where the source does not name it */
    RtKernel *kernels; /* a list of all that were asked for */
    pthread_mutex_t lock;
};

struct RtKernel {
    RtKernel *next;
    CuFunction function;
};

static Status status_of(CuResult result) {
    switch (result) {
    case 0: return STATUS_OK;
    case 100:                          /* CUDA_ERROR_NO_DEVICE */
    case 101: return STATUS_NO_DEVICE; /* CUDA_ERROR_INVALID_DEVICE */
    default: return STATUS_LAUNCH;
    }
}

Status rt_cuda_fail(const CudaDriver *driver, Text *why, const char *call, CuResult result) {
    if (result) rt_cuda_say(driver, why, call, result);
    return status_of(result);
}

CudaDevice *rt_cuda_enter(RtDevice *device, CuResult *result) {
    CudaDevice *cuda = (CudaDevice *)device;
    *result = cuda->driver.context_push(cuda->context);
    return cuda;
}

void rt_cuda_leave(CudaDevice *cuda) {
    CuContext own;
    cuda->driver.context_pop(&own);
}

/* ---- building ---- */

typedef struct Compile { /* one kernel of a text, or a text that does not say how many it has */
    const Source *source;
    uint32_t kernel;
    int arch;
    Job *job; /* of its messages */
    Text why;
    Status status;
    char *cubin;
    size_t count;
} Compile;

static void compile_work(Job *job, void *state) {
    Compile *compile = state;
    compile->why = ir_text(job);
    if (compile->source->kernel_count > 1)
        compile->status = rt_nvrtc_compile_kernel(compile->source, compile->kernel, compile->arch, RT_CUBIN,
                                                  &compile->cubin, &compile->count, &compile->why);
    else
        compile->status =
            rt_nvrtc_compile(compile->source, compile->arch, RT_CUBIN, &compile->cubin, &compile->count, &compile->why);
}

static void compile_one(void *state, uint32_t index) {
    Compile *compile = (Compile *)state + index;
    compile->job = ir_job_create(NULL);
    Status left = compile->job ? ir_job_run(compile->job, compile_work, compile) : STATUS_SYSTEM;
    if (left) compile->status = left;
}

static uint32_t part_count(const Source *source) { return source->kernel_count > 1 ? source->kernel_count : 1; }

static void module_free(RtDevice *device, RtModule *module) {
    if (!module) return;
    CuResult result;
    CudaDevice *cuda = rt_cuda_enter(device, &result);
    if (!result) {
        for (uint32_t i = 0; i < module->handle_count; i++) cuda->driver.module_unload(module->handles[i]);
        rt_cuda_leave(cuda);
    }
    while (module->kernels) {
        RtKernel *next = module->kernels->next;
        free(module->kernels);
        module->kernels = next;
    }
    pthread_mutex_destroy(&module->lock);
    for (uint32_t i = 0; module->names && i < module->handle_count; i++) free(module->names[i]);
    free(module->names);
    free(module->handles);
    free(module);
}

/* Loads the `count` binaries of one text. *module may hold some of them on failure. */
static Status load(CudaDevice *cuda, const Compile *parts, uint32_t count, RtModule **module, CuResult *result) {
    for (uint32_t i = 0; i < count; i++)
        if (parts[i].status) return parts[i].status;
    RtModule *made = calloc(1, sizeof *made);
    if (!made) return STATUS_SYSTEM;
    pthread_mutex_init(&made->lock, NULL);
    *module = made;
    made->handles = calloc(count, sizeof *made->handles);
    made->names = calloc(count, sizeof *made->names);
    if (!made->handles || !made->names) return STATUS_SYSTEM;
    while (made->handle_count < count) {
        const Compile *part = &parts[made->handle_count];
        *result = cuda->driver.module_load(&made->handles[made->handle_count], part->cubin);
        if (*result) return STATUS_NOT_COMPILED;
        char **name = &made->names[made->handle_count++];
        if (part->kernel >= part->source->kernel_count || !part->source->kernels) continue;
        *name = strdup(part->source->kernels[part->kernel]);
        if (!*name) return STATUS_SYSTEM;
    }
    return STATUS_OK;
}

static Status load_all(RtDevice *device, const Source *const *sources, uint32_t count, const Compile *parts,
                       RtModule **modules, const char **call, CuResult *result) {
    *call = "cuCtxPushCurrent_v2";
    CudaDevice *cuda = rt_cuda_enter(device, result);
    if (*result) return status_of(*result);
    *call = "cuModuleLoadData";
    Status status = STATUS_OK;
    for (uint32_t i = 0; !status && i < count; i++) {
        status = load(cuda, parts, part_count(sources[i]), &modules[i], result);
        parts += part_count(sources[i]);
    }
    rt_cuda_leave(cuda);
    return status;
}

/* Every kernel of every text is compiled on its own, all at the same time: NVRTC holds a lock in its front end alone, a
 * tenth of its work. What it said is added to why when everything is held by its owner. */
static Status build(RtDevice *device, const Source *const *sources, uint32_t count, RtModule **modules, Text *why) {
    uint32_t part = 0;
    for (uint32_t i = 0; i < count; i++) part += part_count(sources[i]);
    const uint32_t parts = part;
    Compile *compiles = calloc(parts ? parts : 1, sizeof *compiles);
    if (!compiles) return STATUS_SYSTEM;
    part = 0;
    for (uint32_t i = 0; i < count; i++) {
        modules[i] = NULL;
        for (uint32_t k = 0; k < part_count(sources[i]); k++)
            compiles[part++] = (Compile){.source = sources[i], .kernel = k, .arch = device->target.arch};
    }
    rt_parallel(parts, compile_one, compiles);
    CuResult result = 0;
    const char *call;
    Status status = load_all(device, sources, count, compiles, modules, &call, &result);
    for (uint32_t i = 0; i < parts; i++) free(compiles[i].cubin);
    for (uint32_t i = 0; status && i < count; i++) {
        module_free(device, modules[i]);
        modules[i] = NULL;
    }
    if (result) rt_cuda_say(&((CudaDevice *)device)->driver, why, call, result);
    bool told = false;
    for (uint32_t i = 0; i < parts; i++) {
        if (!told && compiles[i].job && compiles[i].why.count) rt_say(why, "%s", compiles[i].why.bytes);
        told |= compiles[i].status != STATUS_OK; /* an error of the text is every kernel's */
        ir_job_free(compiles[i].job);
    }
    free(compiles);
    return status;
}

/* cuFuncLoad, where there is one, and the attributes make a lazily loading driver load the code now: a first launch may
 * be under capture, where loading is not allowed. */
static CuResult ready(const CudaDriver *driver, CuFunction function, uint32_t shared_bytes, const char **call) {
    CuResult result = 0;
    int registers;
    *call = "cuFuncLoad";
    if (driver->function_load) result = driver->function_load(function);
    if (result) return result;
    *call = "cuFuncGetAttribute";
    result = driver->function_attribute(&registers, CU_FUNC_REGISTERS, function);
    if (result) return result;
    *call = "cuFuncSetAttribute of the dynamic shared memory";
    return driver->function_set(function, CU_FUNC_MAX_DYNAMIC_SHARED, (int)shared_bytes);
}

enum { NOT_FOUND = 500 }; /* CUDA_ERROR_NOT_FOUND */

static Status kernel(RtDevice *device, RtModule *module, const char *name, uint32_t shared_bytes, RtKernel **out,
                     Text *why) {
    CuResult result;
    const char *call = "cuCtxPushCurrent_v2";
    CudaDevice *cuda = rt_cuda_enter(device, &result);
    if (result) return rt_cuda_fail(&cuda->driver, why, call, result);
    RtKernel *made = calloc(1, sizeof *made);
    if (made) {
        call = "cuModuleGetFunction";
        result = NOT_FOUND;
        for (uint32_t i = 0; result == NOT_FOUND && i < module->handle_count; i++)
            if (!module->names[i] || strcmp(module->names[i], name) == 0)
                result = cuda->driver.module_function(&made->function, module->handles[i], name);
        if (!result) result = ready(&cuda->driver, made->function, shared_bytes, &call);
    }
    rt_cuda_leave(cuda);
    if (!made) return STATUS_SYSTEM;
    if (result) {
        free(made);
        rt_cuda_say(&cuda->driver, why, call, result);
        rt_say(why, ", kernel %s", name);
        return STATUS_NOT_COMPILED;
    }
    pthread_mutex_lock(&module->lock);
    made->next = module->kernels;
    module->kernels = made;
    pthread_mutex_unlock(&module->lock);
    *out = made;
    return STATUS_OK;
}

static Status facts(RtDevice *device, const RtKernel *of, RtFacts *out, Text *why) {
    CuResult result;
    CudaDevice *cuda = rt_cuda_enter(device, &result);
    if (result) return rt_cuda_fail(&cuda->driver, why, "cuCtxPushCurrent_v2", result);
    struct {
        int attribute, *value;
    } const rows[] = {{CU_FUNC_REGISTERS, &out->registers},
                      {CU_FUNC_LOCAL_BYTES, &out->local_bytes},
                      {CU_FUNC_SHARED_BYTES, &out->static_shared_bytes},
                      {CU_FUNC_MAX_THREADS, &out->max_threads}};
    for (size_t i = 0; !result && i < sizeof rows / sizeof *rows; i++)
        result = cuda->driver.function_attribute(rows[i].value, rows[i].attribute, of->function);
    rt_cuda_leave(cuda);
    return rt_cuda_fail(&cuda->driver, why, "cuFuncGetAttribute", result);
}

static Status launch(RtDevice *device, const RtLaunch *what, Text *why) {
    CuResult result;
    CudaDevice *cuda = rt_cuda_enter(device, &result);
    if (result) return rt_cuda_fail(&cuda->driver, why, "cuCtxPushCurrent_v2", result);
    result = cuda->driver.launch(what->kernel->function, (unsigned)what->blocks, 1, 1, what->threads, 1, 1,
                                 what->shared_bytes, what->stream, what->params, NULL);
    rt_cuda_leave(cuda);
    return rt_cuda_fail(&cuda->driver, why, "cuLaunchKernel", result);
}

/* ---- memory ---- */

static Status allocate(RtDevice *device, size_t bytes, void **memory, Text *why) {
    CuResult result;
    CuPointer pointer = 0;
    CudaDevice *cuda = rt_cuda_enter(device, &result);
    if (result) return rt_cuda_fail(&cuda->driver, why, "cuCtxPushCurrent_v2", result);
    result = cuda->driver.memory_alloc(&pointer, bytes ? bytes : 1);
    rt_cuda_leave(cuda);
    *memory = (void *)(uintptr_t)pointer;
    return rt_cuda_fail(&cuda->driver, why, "cuMemAlloc_v2", result);
}

static void release(RtDevice *device, void *memory) {
    CuResult result;
    CudaDevice *cuda = rt_cuda_enter(device, &result);
    if (result) return;
    if (memory) cuda->driver.memory_free((CuPointer)(uintptr_t)memory);
    rt_cuda_leave(cuda);
}

static Status copy(RtDevice *device, void *to, const void *from, size_t bytes, bool in, Text *why) {
    CuResult result;
    CudaDevice *cuda = rt_cuda_enter(device, &result);
    if (result) return rt_cuda_fail(&cuda->driver, why, "cuCtxPushCurrent_v2", result);
    result = in ? cuda->driver.copy_in((CuPointer)(uintptr_t)to, from, bytes)
                : cuda->driver.copy_out(to, (CuPointer)(uintptr_t)from, bytes);
    rt_cuda_leave(cuda);
    return rt_cuda_fail(&cuda->driver, why, in ? "cuMemcpyHtoD_v2" : "cuMemcpyDtoH_v2", result);
}

static Status copy_in(RtDevice *device, void *to, const void *from, size_t bytes, Text *why) {
    return copy(device, to, from, bytes, true, why);
}

static Status copy_out(RtDevice *device, void *to, const void *from, size_t bytes, Text *why) {
    return copy(device, to, from, bytes, false, why);
}

static Status copy_within(RtDevice *device, void *to, const void *from, size_t bytes, Text *why) {
    CuResult result;
    CudaDevice *cuda = rt_cuda_enter(device, &result);
    if (result) return rt_cuda_fail(&cuda->driver, why, "cuCtxPushCurrent_v2", result);
    result = cuda->driver.copy_within((CuPointer)(uintptr_t)to, (CuPointer)(uintptr_t)from, bytes);
    rt_cuda_leave(cuda);
    return rt_cuda_fail(&cuda->driver, why, "cuMemcpyDtoD_v2", result);
}

static Status memory_left(RtDevice *device, uint64_t *bytes, Text *why) {
    CuResult result;
    size_t left = 0, whole;
    CudaDevice *cuda = rt_cuda_enter(device, &result);
    if (result) return rt_cuda_fail(&cuda->driver, why, "cuCtxPushCurrent_v2", result);
    result = cuda->driver.memory_left(&left, &whole);
    rt_cuda_leave(cuda);
    *bytes = left;
    return rt_cuda_fail(&cuda->driver, why, "cuMemGetInfo_v2", result);
}

static Status synchronize(RtDevice *device, Text *why) {
    CuResult result;
    CudaDevice *cuda = rt_cuda_enter(device, &result);
    if (result) return rt_cuda_fail(&cuda->driver, why, "cuCtxPushCurrent_v2", result);
    result = cuda->driver.context_synchronize();
    rt_cuda_leave(cuda);
    return rt_cuda_fail(&cuda->driver, why, "cuCtxSynchronize", result);
}

/* ---- opening ---- */

static void close_device(RtDevice *device) {
    CudaDevice *cuda = (CudaDevice *)device;
    cuda->driver.primary_release(cuda->handle);
    free(cuda);
}

/* 256 threads, one access of 16 bytes each and no hints: of the copies tried on an H200 this one is the fastest, 4277
 * GB/s on 2 GB where cudaMemcpyAsync has 4270, 4 accesses a thread 4124 and streaming hints 3921. */
static const char copy_text[] = "extern \"C\" __global__ void __launch_bounds__(256)\n"
                                "ng_copy(uint4 *__restrict__ to, const uint4 *__restrict__ from, long long count) {\n"
                                "    const long long i = (long long)blockIdx.x * 256 + threadIdx.x;\n"
                                "    if (i < count) to[i] = from[i];\n"
                                "}\n";

static const RtDeviceOps cuda_ops = {.name = "cuda",
                                     .copy_text = copy_text,
                                     .build = build,
                                     .module_free = module_free,
                                     .kernel = kernel,
                                     .facts = facts,
                                     .launch = launch,
                                     .alloc = allocate,
                                     .release = release,
                                     .copy_in = copy_in,
                                     .copy_out = copy_out,
                                     .copy_within = copy_within,
                                     .memory_left = memory_left,
                                     .synchronize = synchronize,
                                     .record = rt_cuda_record,
                                     .tape_free = rt_cuda_tape_free,
                                     .play = rt_cuda_play,
                                     .close = close_device};

/* Measured rates of this very GPU where they are known; else 88 % of what its memory clock and bus width make, the
 * share that a copy reached on an H200, and twice that for the L2. */
static CuResult read_target(const CudaDriver *driver, CuDevice handle, Target *target, char name[128]) {
    int major = 0, minor = 0, l2 = 0, khz = 0, bits = 0;
    struct {
        int attribute, *value;
    } const rows[] = {{CU_ARCH_MAJOR, &major},
                      {CU_ARCH_MINOR, &minor},
                      {CU_SM_COUNT, &target->sms},
                      {CU_SHARED_PER_SM, &target->shared_per_sm},
                      {CU_SHARED_PER_CTA_OPTIN, &target->shared_per_cta},
                      {CU_REGISTERS_PER_SM, &target->registers_per_sm},
                      {CU_L2_BYTES, &l2},
                      {CU_CLOCK_KHZ_MEMORY, &khz},
                      {CU_BUS_BITS_MEMORY, &bits}};
    CuResult result = driver->device_name(name, 128, handle);
    for (size_t i = 0; !result && i < sizeof rows / sizeof *rows; i++)
        result = driver->device_attribute(rows[i].value, rows[i].attribute, handle);
    if (result) return result;
    target->arch = major * 10 + minor;
    target->l2_bytes = l2;
    target->dram_gbs = 0.88 * 2.0 * khz * 1e3 * bits / 8 * 1e-9;
    target->l2_gbs = 2 * target->dram_gbs;
    target->name = name;
    const Target *known = gen_target(target->arch);
    if (known && (!strcmp(known->name, name) || target->dram_gbs <= 0)) {
        target->dram_gbs = known->dram_gbs;
        target->l2_gbs = known->l2_gbs;
    }
    return 0;
}

static Status find_device(const CudaDriver *driver, int ordinal, CuDevice *handle, Text *why) {
    int count = 0;
    CuResult result = driver->device_count(&count);
    if (result) return rt_cuda_fail(driver, why, "cuDeviceGetCount", result);
    if (ordinal < 0 || ordinal >= count) {
        rt_say(why, "there is no GPU %d: the driver finds %d", ordinal, count);
        return STATUS_NO_DEVICE;
    }
    return rt_cuda_fail(driver, why, "cuDeviceGet", driver->device_get(handle, ordinal));
}

int rt_cuda_count(void) {
    CudaDriver driver;
    int count = 0;
    if (rt_cuda_driver(&driver, NULL) || driver.device_count(&count)) return 0;
    return count;
}

Status rt_cuda_query(int ordinal, Target *target, char name[128], uint64_t *memory_bytes, Text *why) {
    CudaDriver driver;
    CuDevice handle = 0;
    size_t bytes = 0;
    *target = (Target){0};
    Status status = rt_cuda_driver(&driver, why);
    if (!status) status = find_device(&driver, ordinal, &handle, why);
    if (!status)
        status = rt_cuda_fail(&driver, why, "cuDeviceGetAttribute", read_target(&driver, handle, target, name));
    if (!status) status = rt_cuda_fail(&driver, why, "cuDeviceTotalMem_v2", driver.device_memory(&bytes, handle));
    *memory_bytes = bytes;
    return status;
}

Status rt_cuda_open(int ordinal, RtDevice **device, Text *why) {
    CudaDevice *cuda = calloc(1, sizeof *cuda);
    if (!cuda) return STATUS_SYSTEM;
    cuda->device.ops = &cuda_ops;
    cuda->device.ordinal = ordinal;
    Status status = rt_cuda_driver(&cuda->driver, why);
    if (!status) status = find_device(&cuda->driver, ordinal, &cuda->handle, why);
    if (!status)
        status = rt_cuda_fail(&cuda->driver, why, "cuDeviceGetAttribute",
                              read_target(&cuda->driver, cuda->handle, &cuda->device.target, cuda->name));
    if (!status)
        status = rt_cuda_fail(&cuda->driver, why, "cuDevicePrimaryCtxRetain",
                              cuda->driver.primary_retain(&cuda->context, cuda->handle));
    if (status) {
        free(cuda);
        return status;
    }
    *device = &cuda->device;
    return STATUS_OK;
}
