/* Files that are built into the library as data (templates/embed.sh): kernel skeletons, helpers, composites.def. */
#ifndef GEN_TEMPLATE_H
#define GEN_TEMPLATE_H

#include <stddef.h>
#include <stdint.h>

typedef struct GenTemplate {
    const char *name;  /* file name without directory */
    const char *bytes; /* NUL-terminated */
    size_t count;
} GenTemplate;

extern const GenTemplate gen_templates[];
extern const uint32_t gen_template_count;
const GenTemplate *gen_template_find(const char *name); /* NULL: none */

#endif
