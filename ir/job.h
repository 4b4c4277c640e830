/* A job is one piece of work of the compiler: its memory, its diagnostics and the way out when it cannot go on.
 *
 * Memory: everything made during a job lies in its arena and goes with it; nothing is freed one by one.
 * Failure: ir_stop leaves the job through the jump target set by ir_job_run, from any depth. So no function between
 * has an error path: what it returns is valid. Resources outside the arena (a parser of another library, a file) are
 * registered with ir_job_defer and released when the job ends, whichever way it ends.
 * Threads: a job belongs to one thread at a time; two jobs share nothing. */
#ifndef IR_JOB_H
#define IR_JOB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Equal to the exit codes of the command and to ng_status; appended to, never renumbered. */
typedef enum Status {
    STATUS_OK = 0,
    STATUS_REJECTED = 1,     /* the graph is not legal */
    STATUS_USAGE = 2,        /* an argument is not legal */
    STATUS_NO_DEVICE = 3,    /* the device asked for is not there */
    STATUS_NOT_COMPILED = 4, /* a kernel did not compile, or a forced knob is impossible */
    STATUS_CHECK_FAILED = 5, /* results outside their bound */
    STATUS_SYSTEM = 6,       /* a file, memory or another system call failed */
    STATUS_LAUNCH = 7,       /* a launch failed, or device memory is short */
    STATUS_INTERNAL = 8,     /* an invariant of normgen itself was broken */
    STATUS_UNAVAILABLE = 9   /* not built yet, or NVRTC or the driver is missing */
} Status;

/* The caller's memory functions. alloc returns memory aligned for any type, or NULL. */
typedef struct Allocator {
    void *(*alloc)(void *state, size_t bytes);
    void (*release)(void *state, void *memory);
    void *state;
} Allocator;

/* A range of bytes in the job's source text. count 0: no place. */
typedef struct Place {
    uint32_t start;
    uint32_t count;
} Place;

typedef enum Severity { SEVERITY_ERROR, SEVERITY_WARNING, SEVERITY_NOTE } Severity;

/* A note belongs to the error or warning before it. */
typedef struct Diagnostic {
    Severity severity;
    Place place;
    const char *text; /* one line, no newline, no trailing dot */
} Diagnostic;

#define IR_MAX_ERRORS 20 /* at most so many are kept; then the job says that there are more and stops */

typedef struct Job Job;

/* NULL allocator: malloc and free. Returns NULL when there is no memory. */
Job *ir_job_create(const Allocator *allocator);
void ir_job_free(Job *job); /* runs what was deferred, last first, and frees everything; takes NULL */

/* Runs work(job, state); returns STATUS_OK, or the status given to ir_stop. Nests: an inner run catches first. */
Status ir_job_run(Job *job, void (*work)(Job *job, void *state), void *state);

/* Leaves the innermost ir_job_run with this status. With STATUS_INTERNAL in a debug build (NORMGEN_ABORT): aborts. */
_Noreturn void ir_stop(Job *job, Status status);
/* Reports one error and stops: the message and the status in one call. */
_Noreturn void ir_stop_at(Job *job, Status status, Place place, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* An invariant of normgen is broken. */
_Noreturn void ir_stop_internal(Job *job, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
#define IR_BREACH(job, ...) ir_stop_internal((job), __FILE__, __LINE__, __VA_ARGS__)
#define IR_REQUIRE(job, condition)                                                                                     \
    do {                                                                                                               \
        if (!(condition)) IR_BREACH((job), "%s does not hold", #condition);                                            \
    } while (0)

void ir_job_defer(Job *job, void (*release)(void *object), void *object);

/* Zeroed memory of the job's arena, aligned to 16 bytes; never NULL: stops the job with STATUS_SYSTEM instead. */
void *ir_alloc(Job *job, size_t bytes);
void *ir_alloc_array(Job *job, size_t count, size_t item_bytes); /* checks the product */
#define IR_NEW(job, Type) ((Type *)ir_alloc((job), sizeof(Type)))
#define IR_NEW_ARRAY(job, Type, count) ((Type *)ir_alloc_array((job), (count), sizeof(Type)))
char *ir_copy_text(Job *job, const char *bytes, size_t count); /* NUL-terminated */
char *ir_format(Job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Arena positions, for work whose memory is dropped before the job ends (candidates of a tuner, one test of many). */
typedef struct Mark {
    void *block;
    size_t used;
} Mark;
Mark ir_mark(const Job *job);
void ir_reset(Job *job, Mark mark);

/* A list is struct { T *at; uint32_t count, capacity; }. IR_PUSH returns the address of a new, zeroed last item. */
void *ir_grow(Job *job, void *items, uint32_t count, uint32_t *capacity, size_t item_bytes);
#define IR_PUSH(job, list)                                                                                             \
    ((list)->at = ir_grow((job), (list)->at, (list)->count, &(list)->capacity, sizeof *(list)->at),                    \
     &(list)->at[(list)->count++])
#define IR_LIST(Type)                                                                                                  \
    struct {                                                                                                           \
        Type *at;                                                                                                      \
        uint32_t count, capacity;                                                                                      \
    }

/* The text that places point into, and its name in messages. Both are kept by reference. */
void ir_job_set_source(Job *job, const char *name, const char *bytes, size_t count);
const char *ir_job_source(const Job *job, size_t *count);
const char *ir_job_source_name(const Job *job);
/* Bytes of the printable UTF-8 character at `at`, 0 where there is none: a control character, a broken sequence. */
size_t ir_utf8_length(const char *at, size_t left);

/* Errors go on until IR_MAX_ERRORS; the caller ends with ir_stop_on_errors at a point where going on makes no sense. */
void ir_error(Job *job, Place place, const char *format, ...) __attribute__((format(printf, 3, 4)));
void ir_warn(Job *job, Place place, const char *format, ...) __attribute__((format(printf, 3, 4)));
void ir_note(Job *job, Place place, const char *format, ...) __attribute__((format(printf, 3, 4)));
void ir_stop_on_errors(Job *job); /* stops with STATUS_REJECTED if there was an error */
uint32_t ir_error_count(const Job *job);
uint32_t ir_diagnostic_count(const Job *job);
const Diagnostic *ir_diagnostic(const Job *job, uint32_t index);
/* Forgets the diagnostics from this index on: of an attempt whose failure is said in other words. */
void ir_drop_diagnostics(Job *job, uint32_t first);
/* 1-based line and column (in characters of UTF-8) of a byte of the source. */
void ir_locate(const Job *job, uint32_t offset, uint32_t *line, uint32_t *column);
/* All diagnostics as people read them: file:line:col: error: text, the line, a caret, notes. Needs no run around it;
 * never NULL. (ir/report.c) */
const char *ir_job_report(Job *job);

#endif
