/* Hand-written host texts on the host device, for tests of the device itself. */
#ifndef TESTS_SUPPORT_HOST_TEXT_H
#define TESTS_SUPPORT_HOST_TEXT_H

#include "runtime/device.h"

typedef struct HostBench {
    Job *job;
    RtDevice *device;
    RtModule *module; /* of the last host_bench_build */
    Text why;         /* of the last call */
} HostBench;

/* What a host text begins with; kernels then use NG_KERNEL(name), thread, block, shared, barrier, shuffle. */
extern const char host_prelude[];

void host_bench_open(HostBench *bench, RtHostOptions options);
void host_bench_close(HostBench *bench);
/* Builds the prelude and the kernels' text as the bench's module, in place of the one before. */
Status host_bench_build(HostBench *bench, const char *kernels);
/* Launches a kernel of the module; slices: one of shared_bytes at offset 0, or none. */
Status host_bench_launch(HostBench *bench, const char *kernel, uint64_t blocks, uint32_t threads, uint32_t shared_bytes,
                         void **params);
const char *host_bench_why(HostBench *bench);

#endif
