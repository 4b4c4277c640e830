/* Running a child program: no shell, no change to this process's environment, signals or descriptors.
 *
 * The child sees its input as descriptor 0, nothing when none is given; what it writes to 1 and 2 is captured in
 * one memory file; an extra descriptor arrives as 3; everything else is closed. Functions return 0 or an errno value,
 * so that callers can let go of what they hold before they compose a message. */
#ifndef RUNTIME_PROCESS_H
#define RUNTIME_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define RT_PROCESS_EXTRA 3 /* the number of the extra descriptor in the child */

typedef struct RtChild {
    pid_t pid;  /* 0: not running */
    int output; /* memory file; -1: none */
    /* After rt_process_wait: */
    int code;   /* exit code; -1 where a signal ended it */
    int signal; /* 0: none */
} RtChild;

/* The file that would run as `name`: itself when it has a slash, else searched for along PATH. NULL: none. The
 * caller's, to free. */
char *rt_process_find(const char *name);

/* An unnamed file in memory, close-on-exec and numbered above the standard descriptors; -1 with errno. */
int rt_memory_file(void);
/* Writes all; 0 or errno. */
int rt_write_all(int file, const char *bytes, size_t count);

/* argv[0] is the program's path. input, extra: -1 for none; input is read from its start. */
int rt_process_start(RtChild *child, const char *const *argv, int input, int extra);
int rt_process_wait(RtChild *child);
/* What the child wrote, at most `limit` bytes and a NUL; the caller's, to free. NULL: no memory. */
char *rt_process_output(const RtChild *child, size_t limit);
/* Ends a child that still runs and closes its output. Harmless when called twice. */
void rt_process_release(RtChild *child);

#endif
