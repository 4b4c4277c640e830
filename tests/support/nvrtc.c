/* In: the process, its sanitizer. Out: why NVRTC cannot be used. */
#include "tests/support/nvrtc.h"

#include "runtime/device.h"
#include "runtime/host_sanitize.h"

const char *nvrtc_missing(void) {
    if (RT_THREAD_SANITIZER) return "NVRTC is not built for the thread sanitizer";
    return rt_nvrtc_found() ? NULL : "no NVRTC";
}
