/* Host texts compiled by the system's C++ compiler and loaded. */
#ifndef RUNTIME_HOST_BUILD_H
#define RUNTIME_HOST_BUILD_H

#include "runtime/host_fiber.h"

typedef struct RtObject RtObject; /* a loaded shared object; texts compiled together share one */

/* Compiles all texts, at most `jobs` compilers at once, and binds them to rt_host_api. objects[i] is a reference to
 * the object with text i. words: malloc'ed, or NULL when there are none: why it failed, or what the compiler said
 * although it succeeded. Before each text stands `#define NG_TEXT n`, by which texts of one call keep their names apart
 * (templates/host_api.h); numbers[i] is the n of text i. Equal texts share one. */
Status rt_host_compile(const Source *const *sources, uint32_t count, int jobs, RtObject **objects, uint32_t *numbers,
                       char **words);
void rt_object_release(RtObject *object); /* drops a reference; takes NULL */
/* The entry of the text with this number, or one that carries none; NULL: no such kernel. */
RtEntry rt_object_entry(const RtObject *object, uint32_t number, const char *name);

#endif
