/* See tests/support/directives.h. */
#include "tests/support/directives.h"

#include <string.h>

const char *directive_next(Job *job, const char **at, const char *key) {
    const char *start = ir_format(job, "# %s: ", key);
    while (**at) {
        const char *line = *at, *end = line + strcspn(line, "\n");
        *at = *end ? end + 1 : end;
        if (strncmp(line, start, strlen(start))) continue;
        line += strlen(start);
        while (end > line && end[-1] == ' ') end--;
        return ir_copy_text(job, line, (size_t)(end - line));
    }
    return NULL;
}

const char *directive_first(Job *job, const char *text, const char *key) { return directive_next(job, &text, key); }

const Setting *directive_settings(Job *job, const char *text, const char *key, uint32_t *count) {
    IR_LIST(Setting) list = {0};
    const char *found;
    while ((found = directive_next(job, &text, key))) {
        size_t name = strcspn(found, "=");
        *IR_PUSH(job, &list) = (Setting){ir_copy_text(job, found, name), found + name + (found[name] == '=')};
    }
    *count = list.count;
    return list.at;
}

bool directive_reported(const Unit *unit, const char *report) {
    for (uint32_t i = 0; i < unit->reports.count; i++)
        if (!strcmp(unit->reports.at[i].text, report)) return true;
    return false;
}

const char *directive_reports(Job *job, const Unit *unit) {
    Text text = ir_text(job);
    for (uint32_t i = 0; i < unit->reports.count; i++) ir_text_format(&text, "%s\n", unit->reports.at[i].text);
    return ir_text_string(&text);
}
