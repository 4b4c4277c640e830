/* Graph files through the compiler, with settings written as a command line's: "E=bf16 N=128". */
#ifndef TESTS_GENERATE_H
#define TESTS_GENERATE_H

#include "gen/gen.h"

/* "A=1 B=2", or NULL: none. */
const Setting *generate_settings(Job *job, const char *text, uint32_t *count);
/* Runs all passes within an ir_job_run of its own. defines, sets: NAME=VALUE with blanks between; NULL: none. */
Status generate_file(Job *job, Unit *unit, const char *path, const char *defines, const char *sets);
/* The same, planned for a device; the others plan for sm_90. */
Status generate_file_for(Job *job, Unit *unit, const char *path, const char *defines, const char *sets,
                         const Target *target);
Status generate_text_for(Job *job, Unit *unit, const char *text, const char *sets, const Target *target);
Status generate_text(Job *job, Unit *unit, const char *text, const char *defines, const char *sets);
/* schedule and emit alone, on a dump of the IR. */
Status generate_ir(Job *job, Unit *unit, const char *ir, const char *sets);

#endif
