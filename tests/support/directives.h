/* What a test file says of itself in comments: lines that start with "# key: ". */
#ifndef TESTS_DIRECTIVES_H
#define TESTS_DIRECTIVES_H

#include "gen/gen.h"

/* The rest, trimmed, of the next line that starts with "# key: " at or after *at, which moves behind it; or NULL. */
const char *directive_next(Job *job, const char **at, const char *key);
/* The first one, or NULL. */
const char *directive_first(Job *job, const char *text, const char *key);
/* NAME=VALUE, one a line, of all lines with this key. */
const Setting *directive_settings(Job *job, const char *text, const char *key, uint32_t *count);
/* Whether a pass reported exactly this. */
bool directive_reported(const Unit *unit, const char *report);
/* All that was reported, one a line. */
const char *directive_reports(Job *job, const Unit *unit);

#endif
