/* Host texts compiled by the system's C++ compiler and loaded. */
#ifndef RUNTIME_HOST_BUILD_H
#define RUNTIME_HOST_BUILD_H

#include "runtime/host_fiber.h"

typedef struct RtObject RtObject; /* a loaded shared object; texts compiled together share one */

/* Compiles all texts, at most `jobs` compilers at once, and binds them to rt_host_api. objects[i] is a reference to
 * the object with text i. words: malloc'ed, or NULL when there are none: why it failed, or what the compiler said
 * although it succeeded. Kernels of one call need different names, but equal texts may come several times. */
Status rt_host_compile(const Source *const *sources, uint32_t count, int jobs, RtObject **objects, char **words);
void rt_object_release(RtObject *object);                          /* drops a reference; takes NULL */
RtEntry rt_object_entry(const RtObject *object, const char *name); /* NULL: no such kernel */

#endif
