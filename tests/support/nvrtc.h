/* Whether a test may compile with NVRTC. */
#ifndef TESTS_SUPPORT_NVRTC_H
#define TESTS_SUPPORT_NVRTC_H

#include <stdio.h>

/* The reason why not, or NULL. ThreadSanitizer sees none of the library's own locks, so that two compiles at once are
 * races to it; facts that a single thread asks for with ng_kernel_query are none. */
const char *nvrtc_missing(void);

/* For CMocka tests: skips with the reason. */
#define NEEDS_NVRTC()                                                                                                  \
    do {                                                                                                               \
        if (nvrtc_missing()) {                                                                                         \
            printf("skipped: %s\n", nvrtc_missing());                                                                  \
            skip();                                                                                                    \
        }                                                                                                              \
    } while (0)

#endif
