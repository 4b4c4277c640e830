/* Finds a file of templates/ that was built into the library. */
#include "gen/template.h"

#include <string.h>

const GenTemplate *gen_template_find(const char *name) {
    for (uint32_t i = 0; i < gen_template_count; i++)
        if (strcmp(gen_templates[i].name, name) == 0) return &gen_templates[i];
    return NULL;
}
