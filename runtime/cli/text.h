/* Text that grows, and what the command prints with it.
 *
 * Out of memory ends the command with a message and exit code 6: there is nothing that it could still do. */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Buf { /* {0} is empty; free(bytes) */
    char *bytes;     /* NUL-terminated once anything was added */
    size_t count, capacity;
} Buf;

void *cli_alloc(size_t count, size_t item_bytes); /* zeroed */
char *cli_copy(const char *text);
/* The file of FILE:TENSOR, a copy, and the tensor within the value; NULL where no colon is. */
char *cli_file_of(const char *value, const char **tensor);
void *cli_grow(void *memory, size_t count, size_t item_bytes);

void buf_bytes(Buf *buf, const char *bytes, size_t count);
void buf_put(Buf *buf, const char *text);
void buf_format(Buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_vformat(Buf *buf, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
/* The shortest decimal that reads back as the same double. */
void buf_number(Buf *buf, double value);
#define CLI_WIDTH 100 /* characters of a line */
/* A text after `column` characters of a line, broken at spaces; what goes on stands behind `hang` spaces. */
void buf_wrapped(Buf *buf, size_t column, size_t hang, const char *text);
/* Adds all that fd gives, at most `limit` bytes (then one more, so that the caller sees that there is more). False with
 * errno when reading fails. */
bool buf_read(Buf *buf, int fd, size_t limit);

/* Whole decimal numbers and nothing else. */
bool cli_read_int(const char *text, int64_t *value);
bool cli_read_number(const char *text, double *value);

/* The nearest of the candidates by edit distance, or NULL when none is near. */
const char *cli_near_miss(const char *word, const char *const *candidates, size_t count);

/* Lines of `after` against those of `before`, as a unified diff with three lines around each change; empty: equal. */
void cli_diff(Buf *buf, const char *before, const char *before_name, const char *after, const char *after_name);

#endif
