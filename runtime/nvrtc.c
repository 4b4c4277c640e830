/* CUDA C to a cubin or PTX. In: a device text and an architecture. Out: bytes and the compiler's log. The compiler is
 * found at run time and stays loaded in the process; no GPU and no driver is needed. */
#include "runtime/device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int NvrtcResult; /* 0: success */
enum { OUT_OF_MEMORY = 1, INVALID_OPTION = 5 };
#define EVERY_KERNEL UINT32_MAX
typedef struct NvrtcProgram_ *NvrtcProgram;

/* X(field, name in the library, parameters) */
#define NVRTC_FUNCTIONS(X)                                                                                             \
    X(create, "nvrtcCreateProgram",                                                                                    \
      (NvrtcProgram * program, const char *text, const char *name, int headers, const char *const *header_texts,       \
       const char *const *header_names))                                                                               \
    X(destroy, "nvrtcDestroyProgram", (NvrtcProgram * program))                                                        \
    X(compile, "nvrtcCompileProgram", (NvrtcProgram program, int count, const char *const *options))                   \
    X(log_size, "nvrtcGetProgramLogSize", (NvrtcProgram program, size_t * count))                                      \
    X(log, "nvrtcGetProgramLog", (NvrtcProgram program, char *bytes))                                                  \
    X(cubin_size, "nvrtcGetCUBINSize", (NvrtcProgram program, size_t * count))                                         \
    X(cubin, "nvrtcGetCUBIN", (NvrtcProgram program, char *bytes))                                                     \
    X(ptx_size, "nvrtcGetPTXSize", (NvrtcProgram program, size_t * count))                                             \
    X(ptx, "nvrtcGetPTX", (NvrtcProgram program, char *bytes))

typedef struct Nvrtc {
#define NVRTC_FIELD(field, name, parameters) NvrtcResult(*field) parameters;
    NVRTC_FUNCTIONS(NVRTC_FIELD)
#undef NVRTC_FIELD
    const char *(*error)(NvrtcResult result);
} Nvrtc;

static void *open_in(const char *directory, const char *below, const char *name) {
    char *path = NULL;
    if (asprintf(&path, "%s%s%s", directory, below, name) < 0) return NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    free(path);
    return library;
}

/* The newest release that the signatures above fit, where the linker looks, then in the toolkit. */
static void *open_library(void) {
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
    const char *const roots[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda"};
    static const char *const below[] = {"/lib64/", "/lib/"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        void *library = open_in("", "", names[n]);
        for (size_t r = 0; !library && r < sizeof roots / sizeof *roots; r++)
            for (size_t b = 0; !library && roots[r] && b < sizeof below / sizeof *below; b++)
                library = open_in(roots[r], below[b], names[n]);
        if (library) return library;
    }
    return NULL;
}

static Status open_nvrtc(Nvrtc *nvrtc, Text *why) {
    void *library = open_library();
    if (!library) {
        rt_say(why,
               "no NVRTC: neither libnvrtc.so.13 nor libnvrtc.so.12 was found by the linker, in CUDA_HOME, CUDA_PATH "
               "or /usr/local/cuda");
        return STATUS_UNAVAILABLE;
    }
    const char *missing = NULL;
#define NVRTC_FIND(field, name, parameters)                                                                            \
    if (!rt_symbol(library, name, &nvrtc->field)) missing = name;
    NVRTC_FUNCTIONS(NVRTC_FIND)
#undef NVRTC_FIND
    if (!rt_symbol(library, "nvrtcGetErrorString", &nvrtc->error)) missing = "nvrtcGetErrorString";
    dlclose(library); /* RTLD_NODELETE: the functions stay */
    if (missing) {
        rt_say(why, "NVRTC is too old: it has no %s", missing);
        return STATUS_UNAVAILABLE;
    }
    return STATUS_OK;
}

bool rt_nvrtc_found(void) {
    Nvrtc nvrtc;
    return open_nvrtc(&nvrtc, NULL) == STATUS_OK;
}

/* A copy, so that adding to why, which may leave the job, happens when nothing is held any more. */
static char *take_log(const Nvrtc *nvrtc, NvrtcProgram program) {
    size_t count = 0;
    if (nvrtc->log_size(program, &count) || count <= 1) return NULL;
    char *log = malloc(count + 1);
    if (!log) return NULL;
    if (nvrtc->log(program, log)) log[0] = 0;
    log[count] = 0;
    return log;
}

static NvrtcResult take_binary(const Nvrtc *nvrtc, NvrtcProgram program, RtBinary kind, char **bytes, size_t *count) {
    NvrtcResult result = kind == RT_CUBIN ? nvrtc->cubin_size(program, count) : nvrtc->ptx_size(program, count);
    if (result) return result;
    *bytes = malloc(*count + 1);
    if (!*bytes) return OUT_OF_MEMORY;
    (*bytes)[*count] = 0;
    result = kind == RT_CUBIN ? nvrtc->cubin(program, *bytes) : nvrtc->ptx(program, *bytes);
    if (kind == RT_PTX && *count && (*bytes)[*count - 1] == 0) --*count; /* NVRTC counts the NUL */
    if (result) {
        free(*bytes);
        *bytes = NULL;
    }
    return result;
}

/* The last option is one that not every release knows: left out where it is not. --minimal leaves out textures and the
 * device runtime: an empty text takes 24 ms with it, 30 without. */
static NvrtcResult run_compiler(const Nvrtc *nvrtc, NvrtcProgram program, const char *const *options, int count) {
    NvrtcResult result = nvrtc->compile(program, count, options);
    return result == INVALID_OPTION ? nvrtc->compile(program, count - 1, options) : result;
}

typedef struct Binary {
    RtBinary kind;
    char *bytes;
    size_t count;
} Binary;

/* *call: the function that failed. *log: malloc'ed, or NULL. */
static NvrtcResult make_binary(const Nvrtc *nvrtc, const char *text, const char *const *options, int count,
                               Binary *binary, const char **call, char **log) {
    NvrtcProgram program = NULL;
    *call = "nvrtcCreateProgram";
    NvrtcResult result = nvrtc->create(&program, text, "normgen.cu", 0, NULL, NULL);
    if (result) return result;
    *call = "nvrtcCompileProgram";
    result = run_compiler(nvrtc, program, options, count);
    *log = take_log(nvrtc, program);
    if (!result) {
        *call = binary->kind == RT_CUBIN ? "nvrtcGetCUBIN" : "nvrtcGetPTX";
        result = take_binary(nvrtc, program, binary->kind, &binary->bytes, &binary->count);
    }
    nvrtc->destroy(&program);
    return result;
}

/* kernel: EVERY_KERNEL, or an index. */
static Status compile(const Source *source, uint32_t kernel, int arch, Binary *binary, Text *why) {
    Nvrtc nvrtc;
    Status status = open_nvrtc(&nvrtc, why);
    if (status) return status;
    char *architecture = NULL, *only = NULL, *log = NULL;
    if (asprintf(&architecture, "--gpu-architecture=%s_%d", binary->kind == RT_CUBIN ? "sm" : "compute", arch) < 0)
        return STATUS_SYSTEM;
    if (asprintf(&only, "--define-macro=NG_ONLY=%u", kernel) < 0) {
        free(architecture);
        return STATUS_SYSTEM;
    }
    /* No contraction: a multiply and an add are fused only where the text says fma, as on the host device. */
    const char *options[5] = {architecture, "--std=c++17", "--fmad=false"};
    int count = 3;
    if (kernel != EVERY_KERNEL) options[count++] = only;
    options[count++] = "--minimal";
    const char *call;
    NvrtcResult result = make_binary(&nvrtc, source->device_text, options, count, binary, &call, &log);
    free(architecture);
    free(only);
    if (result) status = result == OUT_OF_MEMORY ? STATUS_SYSTEM : STATUS_NOT_COMPILED;
    if (result) rt_say(why, "%s for sm_%d: %s\n", call, arch, nvrtc.error(result));
    if (log) rt_say(why, "%s", log);
    free(log);
    return status;
}

Status rt_nvrtc_compile_kernel(const Source *source, uint32_t kernel, int arch, RtBinary kind, char **bytes,
                               size_t *count, Text *why) {
    Binary binary = {.kind = kind};
    Status status = compile(source, kernel, arch, &binary, why);
    *bytes = binary.bytes, *count = binary.count;
    return status;
}

Status rt_nvrtc_compile(const Source *source, int arch, RtBinary kind, char **bytes, size_t *count, Text *why) {
    return rt_nvrtc_compile_kernel(source, EVERY_KERNEL, arch, kind, bytes, count, why);
}
