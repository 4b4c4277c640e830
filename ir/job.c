/* In: a caller's allocator. Out: an arena, diagnostics and the way out of a piece of work (ir/job.h).
 * Two arenas: `work` is what callers see and may reset; `kept` holds diagnostics and deferred releases, which outlive a
 * reset. Left alone: how a report looks (ir/report.c). */
#include "ir/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT ((size_t)16)
#define FIRST_BLOCK ((size_t)16 << 10) /* bytes; each next block doubles up to LAST_BLOCK */
#define LAST_BLOCK ((size_t)1 << 20)
#define MAX_MESSAGE 2000 /* bytes of a diagnostic */
#define MAX_WORD 120     /* bytes of a run without spaces in one */

typedef struct Block {
    struct Block *previous;
    size_t capacity, used; /* bytes after this header */
} Block;
#define BLOCK_HEADER ((sizeof(Block) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT)

typedef struct Arena {
    Block *block; /* the newest, where allocation goes on */
} Arena;

typedef struct Deferred {
    void (*release)(void *object);
    void *object;
} Deferred;

struct Job {
    Allocator allocator;
    Arena work, kept;
    jmp_buf *target; /* of the innermost run */
    Status status;   /* that the last stop gave */
    IR_LIST(Deferred) deferred;
    IR_LIST(Diagnostic) diagnostics;
    uint32_t errors;
    bool out_of_memory;
    const char *source_name, *source;
    size_t source_count;
};

static const Diagnostic memory_diagnostic = {SEVERITY_ERROR, {0, 0}, "out of memory"};

static void *plain_alloc(void *state, size_t bytes) {
    (void)state;
    return malloc(bytes);
}

static void plain_release(void *state, void *memory) {
    (void)state;
    free(memory);
}

/* ---- arenas ---- */

static _Noreturn void stop_for_memory(Job *job) {
    job->out_of_memory = true;
    ir_stop(job, STATUS_SYSTEM);
}

static Block *add_block(Job *job, Arena *arena, size_t bytes) {
    size_t capacity = arena->block ? arena->block->capacity * 2 : FIRST_BLOCK;
    if (capacity > LAST_BLOCK) capacity = LAST_BLOCK;
    if (capacity < bytes) capacity = bytes;
    if (capacity > SIZE_MAX - BLOCK_HEADER) stop_for_memory(job);
    Block *block = job->allocator.alloc(job->allocator.state, BLOCK_HEADER + capacity);
    if (!block) stop_for_memory(job);
    *block = (Block){arena->block, capacity, 0};
    arena->block = block;
    return block;
}

static void *arena_alloc(Job *job, Arena *arena, size_t bytes) {
    if (bytes > SIZE_MAX / 2) stop_for_memory(job);
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    Block *block = arena->block;
    if (!block || block->capacity - block->used < bytes) block = add_block(job, arena, bytes);
    void *memory = (char *)block + BLOCK_HEADER + block->used;
    block->used += bytes;
    return memset(memory, 0, bytes);
}

static void arena_reset(Job *job, Arena *arena, Mark mark) {
    while (arena->block != mark.block) {
        Block *block = arena->block;
        arena->block = block->previous;
        job->allocator.release(job->allocator.state, block);
    }
    if (arena->block) arena->block->used = mark.used;
}

static Mark arena_mark(const Arena *arena) { return (Mark){arena->block, arena->block ? arena->block->used : 0}; }

static void *arena_grow(Job *job, Arena *arena, void *items, uint32_t count, uint32_t *capacity, size_t item_bytes) {
    if (count < *capacity) {
        memset((char *)items + count * item_bytes, 0, item_bytes);
        return items;
    }
    if (*capacity > UINT32_MAX / 2 - 8) stop_for_memory(job);
    uint32_t wanted = *capacity ? *capacity * 2 : 8;
    if (wanted > SIZE_MAX / item_bytes) stop_for_memory(job);
    void *grown = arena_alloc(job, arena, wanted * item_bytes);
    if (count) memcpy(grown, items, count * item_bytes);
    *capacity = wanted;
    return grown;
}

void *ir_alloc(Job *job, size_t bytes) { return arena_alloc(job, &job->work, bytes); }

void *ir_alloc_array(Job *job, size_t count, size_t item_bytes) {
    size_t bytes;
    if (__builtin_mul_overflow(count, item_bytes, &bytes)) stop_for_memory(job);
    return ir_alloc(job, bytes);
}

Mark ir_mark(const Job *job) { return arena_mark(&job->work); }
void ir_reset(Job *job, Mark mark) { arena_reset(job, &job->work, mark); }

void *ir_grow(Job *job, void *items, uint32_t count, uint32_t *capacity, size_t item_bytes) {
    return arena_grow(job, &job->work, items, count, capacity, item_bytes);
}

char *ir_copy_text(Job *job, const char *bytes, size_t count) {
    if (count == SIZE_MAX) stop_for_memory(job);
    char *copy = ir_alloc(job, count + 1);
    if (count) memcpy(copy, bytes, count);
    return copy;
}

static char *arena_vformat(Job *job, Arena *arena, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int count = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (count < 0) stop_for_memory(job);
    char *bytes = arena_alloc(job, arena, (size_t)count + 1);
    vsnprintf(bytes, (size_t)count + 1, format, args);
    return bytes;
}

char *ir_format(Job *job, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *bytes = arena_vformat(job, &job->work, format, args);
    va_end(args);
    return bytes;
}

/* ---- the job ---- */

Job *ir_job_create(const Allocator *allocator) {
    Allocator used = allocator ? *allocator : (Allocator){plain_alloc, plain_release, NULL};
    Job *job = used.alloc(used.state, sizeof *job);
    if (!job) return NULL;
    memset(job, 0, sizeof *job);
    job->allocator = used;
    return job;
}

void ir_job_free(Job *job) {
    if (!job) return;
    while (job->deferred.count) {
        Deferred last = job->deferred.at[--job->deferred.count];
        last.release(last.object);
    }
    arena_reset(job, &job->work, (Mark){NULL, 0});
    arena_reset(job, &job->kept, (Mark){NULL, 0});
    job->allocator.release(job->allocator.state, job);
}

Status ir_job_run(Job *job, void (*work)(Job *job, void *state), void *state) {
    jmp_buf target;
    jmp_buf *outer = job->target;
    if (setjmp(target) == 0) {
        job->target = &target;
        work(job, state);
        job->target = outer;
        return STATUS_OK;
    }
    job->target = outer;
    return job->status;
}

void ir_stop(Job *job, Status status) {
    job->status = status;
#ifdef NORMGEN_ABORT
    if (status == STATUS_INTERNAL) abort();
#endif
    if (!job->target) abort(); /* outside every run there is nowhere to go */
    longjmp(*job->target, 1);
}

typedef struct Release {
    Job *job;
    Deferred item;
} Release;

static void push_deferred(Job *job, void *state) {
    Deferred item = ((Release *)state)->item;
    job->deferred.at = arena_grow(job, &job->kept, job->deferred.at, job->deferred.count, &job->deferred.capacity,
                                  sizeof *job->deferred.at);
    job->deferred.at[job->deferred.count++] = item;
}

void ir_job_defer(Job *job, void (*release)(void *object), void *object) {
    Release wanted = {job, {release, object}};
    Status status = ir_job_run(job, push_deferred, &wanted);
    if (status == STATUS_OK) return;
    release(object); /* could not be remembered */
    ir_stop(job, status);
}

void ir_job_set_source(Job *job, const char *name, const char *bytes, size_t count) {
    job->source_name = name;
    job->source = bytes;
    job->source_count = count;
}

const char *ir_job_source(const Job *job, size_t *count) {
    if (count) *count = job->source_count;
    return job->source;
}

const char *ir_job_source_name(const Job *job) { return job->source_name; }

/* ---- diagnostics ---- */

/* Bytes of the UTF-8 character at `at`, 0 where there is none (a control character, a broken sequence). */
size_t ir_utf8_length(const char *at, size_t left) {
    const unsigned char *byte = (const unsigned char *)at;
    if (!left || byte[0] < 0x20 || byte[0] == 0x7f) return 0;
    if (byte[0] < 0x80) return 1;
    size_t length = byte[0] >= 0xf0 ? 4 : byte[0] >= 0xe0 ? 3 : 2;
    if (byte[0] < 0xc2 || byte[0] > 0xf4 || length > left) return 0;
    for (size_t i = 1; i < length; i++) {
        if ((byte[i] & 0xc0) != 0x80) return 0;
    }
    if (byte[0] == 0xc2 && byte[1] < 0xa0) return 0; /* C1 controls */
    if (byte[0] == 0xe0 && byte[1] < 0xa0) return 0;
    if (byte[0] == 0xed && byte[1] > 0x9f) return 0;
    if (byte[0] == 0xf0 && byte[1] < 0x90) return 0;
    if (byte[0] == 0xf4 && byte[1] > 0x8f) return 0;
    return length;
}

static bool continues(char byte) { return ((unsigned char)byte & 0xc0) == 0x80; }

/* Copies [from, from + count) without its middle where it is longer than limit; returns the end of the copy. */
static char *copy_shortened(char *to, const char *from, size_t count, size_t limit) {
    if (count <= limit) {
        memmove(to, from, count);
        return to + count;
    }
    size_t head = limit * 2 / 3, tail = limit - head - 3;
    while (head && continues(from[head])) head--;
    while (tail && continues(from[count - tail])) tail--;
    memmove(to, from, head);
    memcpy(to + head, "...", 3);
    memmove(to + head + 3, from + count - tail, tail);
    return to + head + 3 + tail;
}

/* One printable line of a message that may hold anything a user wrote: controls and broken UTF-8 are escaped, long
 * words and long messages lose their middle. */
static char *printable(Job *job, const char *message) {
    size_t count = strlen(message);
    char *escaped = arena_alloc(job, &job->kept, count * 4 + 1);
    size_t used = 0;
    for (size_t i = 0; i < count;) {
        size_t length = ir_utf8_length(message + i, count - i);
        if (length) {
            memcpy(escaped + used, message + i, length);
            used += length;
            i += length;
        } else if (message[i] == '\n' || message[i] == '\t') {
            memcpy(escaped + used, message[i] == '\n' ? "\\n" : "\\t", 2);
            used += 2;
            i++;
        } else {
            snprintf(escaped + used, 5, "\\x%02x", (unsigned)(unsigned char)message[i]);
            used += 4;
            i++;
        }
    }
    char *end = escaped;
    for (size_t i = 0; i < used;) { /* shorten words in place: the copy never passes what it reads */
        size_t stop = i;
        while (stop < used && escaped[stop] != ' ') stop++;
        end = copy_shortened(end, escaped + i, stop - i, MAX_WORD);
        if (stop < used) *end++ = ' ';
        i = stop + 1;
    }
    end = copy_shortened(escaped, escaped, (size_t)(end - escaped), MAX_MESSAGE);
    *end = 0;
    return escaped;
}

static void add_diagnostic(Job *job, Severity severity, Place place, const char *format, va_list args) {
    Mark mark = arena_mark(&job->kept);
    const char *raw = printable(job, arena_vformat(job, &job->kept, format, args));
    size_t count = strlen(raw) + 1;
    char text[MAX_MESSAGE + 1];
    memcpy(text, raw, count);
    arena_reset(job, &job->kept, mark);
    char *kept = memcpy(arena_alloc(job, &job->kept, count), text, count);
    job->diagnostics.at = arena_grow(job, &job->kept, job->diagnostics.at, job->diagnostics.count,
                                     &job->diagnostics.capacity, sizeof *job->diagnostics.at);
    job->diagnostics.at[job->diagnostics.count++] = (Diagnostic){severity, place, kept};
    if (severity == SEVERITY_ERROR) job->errors++;
}

static void add_plain(Job *job, Severity severity, Place place, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void add_plain(Job *job, Severity severity, Place place, const char *format, ...) {
    va_list args;
    va_start(args, format);
    add_diagnostic(job, severity, place, format, args);
    va_end(args);
}

static void stop_at_limit(Job *job) {
    if (job->errors < IR_MAX_ERRORS) return;
    add_plain(job, SEVERITY_NOTE, (Place){0, 0}, "there are more errors than these %d", IR_MAX_ERRORS);
    ir_stop(job, STATUS_REJECTED);
}

void ir_error(Job *job, Place place, const char *format, ...) {
    stop_at_limit(job);
    va_list args;
    va_start(args, format);
    add_diagnostic(job, SEVERITY_ERROR, place, format, args);
    va_end(args);
}

void ir_warn(Job *job, Place place, const char *format, ...) {
    va_list args;
    va_start(args, format);
    add_diagnostic(job, SEVERITY_WARNING, place, format, args);
    va_end(args);
}

void ir_note(Job *job, Place place, const char *format, ...) {
    va_list args;
    va_start(args, format);
    add_diagnostic(job, SEVERITY_NOTE, place, format, args);
    va_end(args);
}

void ir_stop_at(Job *job, Status status, Place place, const char *format, ...) {
    if (status == STATUS_REJECTED) stop_at_limit(job);
    va_list args;
    va_start(args, format);
    add_diagnostic(job, SEVERITY_ERROR, place, format, args);
    va_end(args);
    ir_stop(job, status);
}

void ir_stop_internal(Job *job, const char *file, int line, const char *format, ...) {
    va_list args;
    va_start(args, format);
    add_diagnostic(job, SEVERITY_ERROR, (Place){0, 0}, format, args);
    va_end(args);
    add_plain(job, SEVERITY_NOTE, (Place){0, 0}, "an invariant of normgen is broken at %s:%d", file, line);
    ir_stop(job, STATUS_INTERNAL);
}

void ir_stop_on_errors(Job *job) {
    if (job->errors) ir_stop(job, STATUS_REJECTED);
}

uint32_t ir_error_count(const Job *job) { return job->errors + (job->out_of_memory ? 1 : 0); }
uint32_t ir_diagnostic_count(const Job *job) { return job->diagnostics.count + (job->out_of_memory ? 1 : 0); }

void ir_drop_diagnostics(Job *job, uint32_t first) {
    while (job->diagnostics.count > first)
        if (job->diagnostics.at[--job->diagnostics.count].severity == SEVERITY_ERROR) job->errors--;
}

const Diagnostic *ir_diagnostic(const Job *job, uint32_t index) {
    if (index < job->diagnostics.count) return &job->diagnostics.at[index];
    return &memory_diagnostic;
}
