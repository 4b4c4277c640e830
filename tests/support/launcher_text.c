/* Compiling launchers. Contract: the header. KERNEL<<<blocks, threads, shared, stream>>>(...) becomes a call. */
#include "tests/support/launcher_text.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char prelude[] =
    "#include <cstddef>\n#include <cstdint>\n#include <cstring>\n"
    "typedef long long ng_i64; typedef int ng_i32; typedef signed char ng_i8; typedef unsigned char ng_u8;\n"
    "typedef unsigned char ng_bool; struct ng_f16 { uint16_t bits; }; struct ng_bf16 { uint16_t bits; };\n"
    "typedef int cudaError_t; typedef void *cudaStream_t;\n"
    "enum { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorInvalidConfiguration = 9,\n"
    "       cudaErrorMisalignedAddress = 716, cudaDevAttrMultiProcessorCount = 16,\n"
    "       cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };\n"
    "union Scalar { double f64; float f32; int64_t i64; };\n"
    "static cudaError_t last_error;\n"
    "static cudaError_t cudaGetLastError() { return last_error; }\n"
    "[[maybe_unused]] static cudaError_t cudaGetDevice(int *device) { *device = 0; return cudaSuccess; }\n"
    "[[maybe_unused]] static cudaError_t cudaDeviceGetAttribute(int *value, int, int) {\n"
    "    *value = SMS;\n    return cudaSuccess;\n}\n"
    "struct Asked { const char *kernel; unsigned bytes; };\n"
    "static Asked asked[64];\n"
    "[[maybe_unused]] static cudaError_t cudaFuncSetAttribute(const char *kernel, int, unsigned bytes) {\n"
    "    Asked *at = asked;\n"
    "    while (at->kernel && std::strcmp(at->kernel, kernel) != 0) at++;\n"
    "    if (bytes > SHARED) return cudaErrorInvalidValue;\n"
    "    *at = {kernel, bytes};\n    return cudaSuccess;\n}\n"
    "static bool has_asked(const char *kernel, unsigned bytes) {\n"
    "    for (const Asked *at = asked; at->kernel; at++)\n"
    "        if (std::strcmp(at->kernel, kernel) == 0) return bytes <= at->bytes;\n"
    "    return false;\n}\n"
    "struct Call { const char *kernel; uint64_t blocks; unsigned threads, shared, count; uint64_t params[24]; };\n"
    "extern \"C\" { void (*ng_record)(void *state, const Call *call); void *ng_state; }\n"
    "template <typename T> static void put(Call &call, T value) {\n"
    "    std::memcpy(&call.params[call.count++], &value, sizeof value);\n}\n"
    "template <typename... A> static void LAUNCH(const char *kernel, unsigned blocks, int threads, unsigned shared,\n"
    "                                            cudaStream_t, A... params) {\n"
    "    static_assert(sizeof...(params) <= 24, \"\");\n"
    "    last_error = shared > 49152 && !has_asked(kernel, shared) ? cudaErrorInvalidValue : cudaSuccess;\n"
    "    if (last_error) return;\n"
    "    Call call = {kernel, blocks, (unsigned)threads, shared, 0, {}};\n"
    "    (put(call, params), ...);\n    ng_record(ng_state, &call);\n}\n";

/* The launcher's lines, without the preprocessor's, kernels' names made first arguments, as text. */
static void put_launcher(Job *job, Text *out, const Unit *unit) {
    const char *at = strstr(unit->source.device_text, "#include <cuda_runtime.h>");
    IR_REQUIRE(job, at != NULL);
    ir_text_format(out, "namespace %s_kernels {}\n", unit->prog->name);
    while (*at) {
        size_t length = strcspn(at, "\n");
        const char *call = strstr(at, "<<<"), *attribute = strstr(at, ", cudaFuncAttribute"), *end = at + length;
        if (call && call < end) {
            const char *name = call, *close = strstr(call, ">>>(");
            IR_REQUIRE(job, close && close < end);
            while (name > at && (name[-1] == '_' || (name[-1] >= '0' && name[-1] <= '9') ||
                                 (name[-1] >= 'a' && name[-1] <= 'z') || (name[-1] >= 'A' && name[-1] <= 'Z')))
                name--;
            ir_text_format(out, "%.*sLAUNCH(\"%.*s\", %.*s, %.*s\n", (int)(name - at), at, (int)(call - name), name,
                           (int)(close - call - 3), call + 3, (int)(end - close - 4), close + 4);
        } else if (attribute && attribute < end) {
            const size_t indent = strspn(at, " ");
            ir_text_format(out, "\"%.*s\"%.*s\n", (int)((size_t)(attribute - at) - indent), at + indent,
                           (int)(end - attribute), attribute);
        } else if (*at != '#') {
            ir_text_format(out, "%.*s\n", (int)length, at);
        }
        at = end + (*end == '\n');
    }
}

/* Calls that take arrays. */
static void put_calls(Text *out, const Unit *unit, uint32_t index) {
    const Graph *graph = unit->graph;
    uint32_t any = 0, tensors = graph->inputs.count + graph->outputs.count;
    for (uint32_t d = 0; d < graph->dims.count; d++) any += graph->dims.at[d].value < 0;
    ir_text_format(out,
                   "extern \"C\" size_t bytes_%u(const int64_t *d) {\n    (void)d;\n    return %s_workspace_bytes(",
                   index, graph->name);
    for (uint32_t i = 0; i < any; i++) ir_text_format(out, "%sd[%u]", i ? ", " : "", i);
    ir_text_format(
        out,
        ");\n}\nextern \"C\" int launch_%u(void *const *t, const int64_t *d, const Scalar *s, void *w, size_t n)"
        " {\n    (void)d, (void)s;\n    return %s_launch(",
        index, graph->name);
    for (uint32_t i = 0; i < tensors; i++) ir_text_format(out, "t[%u], ", i);
    for (uint32_t i = 0; i < any; i++) ir_text_format(out, "d[%u], ", i);
    for (uint32_t i = 0; i < graph->scalars.count; i++) {
        const DType compute = ir_compute_dtype(graph->scalars.at[i].dtype);
        const char *member = compute == DTYPE_F64 ? "f64" : compute == DTYPE_F32 ? "f32" : "i64";
        ir_text_format(out, "s[%u].%s, ", i, member);
    }
    ir_text_put(out, "w, n, nullptr);\n}\n");
}

static void *symbol(const Launchers *launchers, const char *name, uint32_t index) {
    char full[32];
    (void)snprintf(full, sizeof full, "%s%u", name, index);
    return dlsym(launchers->library, full);
}

Launchers launchers_open(Job *job, const Unit *units, uint32_t count, int sms) {
    Text text = ir_text(job);
    ir_text_format(&text, "#define SMS %d\n#define SHARED %d\n%s", sms, LAUNCHER_SHARED, prelude);
    for (uint32_t i = 0; i < count; i++) {
        ir_text_format(&text, "namespace unit%u {\n", i);
        put_launcher(job, &text, &units[i]);
        put_calls(&text, &units[i], i);
        ir_text_put(&text, "}\n");
    }
    char folder[] = "/tmp/normgen-launcher-XXXXXX";
    IR_REQUIRE(job, mkdtemp(folder) != NULL);
    const char *source = ir_format(job, "%s/launcher.cpp", folder), *library = ir_format(job, "%s/launcher.so", folder);
    FILE *file = fopen(source, "wb");
    IR_REQUIRE(job, file != NULL);
    (void)fwrite(text.bytes, 1, text.count, file);
    (void)fclose(file);
    const char *compiler = getenv("CXX");
    const int failed = system(ir_format(job, "%s -std=c++17 -Wall -Werror -Wno-unused-function -shared -fPIC %s -o %s",
                                        compiler && *compiler ? compiler : "c++", source, library));
    Launchers made = {.library = failed ? NULL : dlopen(library, RTLD_NOW | RTLD_LOCAL)};
    (void)remove(source);
    (void)remove(library);
    (void)remove(folder);
    if (!made.library) IR_BREACH(job, "launchers do not compile:\n%s", ir_text_string(&text));
    made.record = (void (**)(void *, const LauncherCall *))dlsym(made.library, "ng_record");
    made.state = (void **)dlsym(made.library, "ng_state");
    return made;
}

void launchers_close(Launchers *launchers) {
    if (launchers->library) (void)dlclose(launchers->library);
    launchers->library = NULL;
}

size_t launcher_workspace(const Launchers *launchers, uint32_t index, const int64_t *dims) {
    size_t (*bytes)(const int64_t *);
    void *found = symbol(launchers, "bytes_", index);
    memcpy(&bytes, &found, sizeof bytes);
    return bytes(dims);
}

int launcher_launch(const Launchers *launchers, uint32_t index, void *const *tensors, const int64_t *dims,
                    const ng_scalar *scalars, void *workspace, size_t workspace_bytes) {
    int (*launch)(void *const *, const int64_t *, const ng_scalar *, void *, size_t);
    void *found = symbol(launchers, "launch_", index);
    memcpy(&launch, &found, sizeof launch);
    return launch(tensors, dims, scalars, workspace, workspace_bytes);
}
