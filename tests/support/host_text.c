/* Hand-written host texts on the host device (host_text.h). */
#include "tests/support/host_text.h"

#include <stdlib.h>
#include <string.h>

/* The compiler reads the text from its standard input, so the include is relative to the repository's root. */
const char host_prelude[] = "#ifndef TEST_PRELUDE\n"
                            "#define TEST_PRELUDE\n"
                            "#include \"templates/host_api.h\"\n"
                            "static const ng_host_api *api;\n"
                            "extern \"C\" void ng_host_bind(const ng_host_api *given) { api = given; }\n"
                            "#define NG_KERNEL(name) extern \"C\" void name##__host(void **params)\n"
                            "#define ARG(type, index) (*(type *)params[index])\n"
                            "static inline uint32_t thread() { return api->thread(); }\n"
                            "static inline uint64_t block() { return api->block(); }\n"
                            "static inline void barrier(uint32_t site) { api->barrier(site); }\n"
                            "static inline float shuffle(uint32_t site, float value, uint32_t lane) {\n"
                            "    uint32_t bits;\n"
                            "    __builtin_memcpy(&bits, &value, 4);\n"
                            "    bits = (uint32_t)api->shuffle(site, bits, lane);\n"
                            "    __builtin_memcpy(&value, &bits, 4);\n"
                            "    return value;\n"
                            "}\n"
                            "#endif\n";

void host_bench_open(HostBench *bench, RtHostOptions options) {
    *bench = (HostBench){.job = ir_job_create(NULL)};
    bench->why = ir_text(bench->job);
    if (rt_host_open(0, &options, &bench->device, &bench->why) != STATUS_OK) abort();
}

void host_bench_close(HostBench *bench) {
    bench->device->ops->module_free(bench->device, bench->module);
    bench->device->ops->close(bench->device);
    ir_job_free(bench->job);
}

Status host_bench_build(HostBench *bench, const char *kernels) {
    char *text = ir_format(bench->job, "%s%s", host_prelude, kernels);
    Source source = {.host_text = text, .host_count = strlen(text)};
    const Source *sources[] = {&source};
    bench->device->ops->module_free(bench->device, bench->module);
    bench->module = NULL;
    bench->why = ir_text(bench->job);
    return bench->device->ops->build(bench->device, sources, 1, &bench->module, &bench->why);
}

Status host_bench_launch(HostBench *bench, const char *kernel, uint64_t blocks, uint32_t threads, uint32_t shared_bytes,
                         void **params) {
    const RtDeviceOps *ops = bench->device->ops;
    RtKernel *found = NULL;
    bench->why = ir_text(bench->job);
    Status status = ops->kernel(bench->device, bench->module, kernel, shared_bytes, &found, &bench->why);
    if (status != STATUS_OK) return status;
    Slice slice = {"tile", 0, shared_bytes};
    RtLaunch launch = {.kernel = found,
                       .blocks = blocks,
                       .threads = threads,
                       .shared_bytes = shared_bytes,
                       .slices = &slice,
                       .slice_count = shared_bytes ? 1 : 0,
                       .params = params};
    return ops->launch(bench->device, &launch, &bench->why);
}

const char *host_bench_why(HostBench *bench) { return ir_text_string(&bench->why); }
