/* Progs in tests: read from text or a file, judged, and printed again. */
#ifndef TESTS_PROG_CASE_H
#define TESTS_PROG_CASE_H

#include "ir/prog.h"

/* The bytes of a file, NUL-terminated, in the job's arena; fails the test when it cannot be read. */
char *case_file(Job *job, const char *path, size_t *count);
/* What ir_prog_print makes of it. */
const char *case_print(Job *job, const Prog *prog);
/* Reads text that must be good: fails the test with the job's report when it is not. Within an ir_job_run or without.
 */
Prog *case_read(Job *job, const char *text, size_t count);
/* The same, and ir_verify must be content; fails with its message. */
Prog *case_read_legal(Job *job, const char *text, size_t count);
/* The file read, found legal, and printed back to the same bytes. UPDATE_GOLDEN=1 in the environment writes what was
 * printed instead of comparing. */
Prog *case_golden(Job *job, const char *path);

#endif
