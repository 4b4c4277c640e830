/* Growing text, numbers in and out, near misses. In: bytes. Out: bytes. The command never calls setlocale, so that
 * printf and strtod keep to the C locale, which the number functions rely on. */
#include "runtime/cli/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Noreturn void out_of_memory(void) {
    static const char message[] = "normgen: error: out of memory\n";
    ssize_t written = write(STDERR_FILENO, message, sizeof message - 1);
    (void)written;
    _exit(6);
}

void *cli_alloc(size_t count, size_t item_bytes) {
    void *memory = calloc(count ? count : 1, item_bytes ? item_bytes : 1);
    if (!memory) out_of_memory();
    return memory;
}

void *cli_grow(void *memory, size_t count, size_t item_bytes) {
    size_t bytes;
    if (__builtin_mul_overflow(count, item_bytes, &bytes)) out_of_memory();
    void *grown = realloc(memory, bytes ? bytes : 1);
    if (!grown) out_of_memory();
    return grown;
}

static void reserve(Buf *buf, size_t more) {
    if (more < buf->capacity - buf->count) return;
    if (more > SIZE_MAX / 4 - buf->count) out_of_memory();
    buf->capacity = (buf->count + more + 1) * 2;
    buf->bytes = cli_grow(buf->bytes, buf->capacity, 1);
}

char *cli_copy(const char *text) {
    size_t bytes = strlen(text) + 1;
    return memcpy(cli_alloc(bytes, 1), text, bytes);
}

char *cli_file_of(const char *value, const char **tensor) {
    const char *colon = strrchr(value, ':');
    *tensor = colon ? colon + 1 : NULL;
    char *file = cli_copy(value);
    if (colon) file[colon - value] = 0;
    return file;
}

void buf_bytes(Buf *buf, const char *bytes, size_t count) {
    reserve(buf, count);
    if (count) memcpy(buf->bytes + buf->count, bytes, count);
    buf->count += count;
    buf->bytes[buf->count] = 0;
}

void buf_put(Buf *buf, const char *text) { buf_bytes(buf, text, strlen(text)); }

void buf_vformat(Buf *buf, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int count = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (count < 0) out_of_memory();
    reserve(buf, (size_t)count);
    vsnprintf(buf->bytes + buf->count, (size_t)count + 1, format, args);
    buf->count += (size_t)count;
}

void buf_format(Buf *buf, const char *format, ...) {
    va_list args;
    va_start(args, format);
    buf_vformat(buf, format, args);
    va_end(args);
}

void buf_number(Buf *buf, double value) {
    if (isnan(value)) {
        buf_put(buf, "nan");
        return;
    }
    if (isinf(value)) {
        buf_put(buf, value > 0 ? "inf" : "-inf");
        return;
    }
    size_t start = buf->count;
    for (int digits = 6; digits <= 17; digits++) {
        buf->count = start;
        buf_format(buf, "%.*g", digits, value);
        if (strtod(buf->bytes + start, NULL) == value) return;
    }
}

void buf_wrapped(Buf *buf, size_t column, size_t hang, const char *text) {
    for (;;) {
        size_t room = column < CLI_WIDTH ? CLI_WIDTH - column : 1, count = strlen(text);
        if (count > room) {
            count = room;
            while (count && text[count] != ' ') count--;
            if (!count) count = strcspn(text, " ");
        }
        buf_bytes(buf, text, count);
        buf_put(buf, "\n");
        text += count;
        while (*text == ' ') text++;
        if (!*text) return;
        buf_format(buf, "%*s", (int)hang, "");
        column = hang;
    }
}

bool buf_read(Buf *buf, int fd, size_t limit) {
    buf_bytes(buf, "", 0);
    size_t start = buf->count;
    while (buf->count - start <= limit) {
        reserve(buf, 65536);
        size_t want = buf->capacity - buf->count - 1, left = limit - (buf->count - start);
        if (left < want) want = left + 1;
        ssize_t got = read(fd, buf->bytes + buf->count, want);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return false;
        if (got == 0) break;
        buf->count += (size_t)got;
        buf->bytes[buf->count] = 0;
    }
    return true;
}

bool cli_read_int(const char *text, int64_t *value) {
    const char *digits = text + (*text == '-');
    if (!*digits || strspn(digits, "0123456789") != strlen(digits)) return false;
    errno = 0;
    long long number = strtoll(text, NULL, 10);
    *value = number;
    return errno == 0;
}

bool cli_read_number(const char *text, double *value) {
    /* strtod would take spaces and hexadecimal too */
    if (!*text || (strspn(text, "+-.0123456789eE") != strlen(text) && strcmp(text, "inf") != 0 &&
                   strcmp(text, "-inf") != 0 && strcmp(text, "nan") != 0))
        return false;
    char *end;
    *value = strtod(text, &end);
    return *end == 0 && (!isinf(*value) || strchr(text, 'i')); /* 1e999 is no way to write inf */
}

static size_t smallest(size_t a, size_t b, size_t c) {
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

static size_t edit_distance(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b);
    size_t *row = cli_alloc(m + 1, sizeof *row);
    for (size_t j = 0; j <= m; j++) row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t above = row[j];
            row[j] = smallest(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    size_t distance = row[m];
    free(row);
    return distance;
}

const char *cli_near_miss(const char *word, const char *const *candidates, size_t count) {
    const char *best = NULL;
    size_t length = strlen(word), least = length / 3 + 2;
    if (length > 64) return NULL;
    for (size_t i = 0; i < count; i++) {
        size_t distance = edit_distance(word, candidates[i]);
        if (distance < least && distance < strlen(candidates[i])) least = distance, best = candidates[i];
    }
    return best;
}
