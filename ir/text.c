/* In: bytes and numbers. Out: text in the job's arena, and numbers read back. Left alone: the process's locale; the C
 * locale is taken for the calling thread alone and given back. */
#include "ir/text.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Text ir_text(Job *job) { return (Text){job, NULL, 0, 0}; }

/* Room for `more` bytes and a NUL behind them. */
static void reserve(Text *text, size_t more) {
    if (text->capacity - text->count > more) return;
    if (more > SIZE_MAX / 4 - text->count) ir_alloc(text->job, SIZE_MAX); /* stops */
    size_t capacity = (text->count + more + 1) * 2;
    if (capacity < 64) capacity = 64;
    char *bytes = ir_alloc(text->job, capacity);
    if (text->count) memcpy(bytes, text->bytes, text->count);
    text->bytes = bytes;
    text->capacity = capacity;
}

void ir_text_bytes(Text *text, const char *bytes, size_t count) {
    reserve(text, count);
    if (count) memcpy(text->bytes + text->count, bytes, count);
    text->count += count;
    text->bytes[text->count] = 0;
}

void ir_text_put(Text *text, const char *string) { ir_text_bytes(text, string, strlen(string)); }

void ir_text_vformat(Text *text, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int count = vsnprintf(NULL, 0, format, again);
    va_end(again);
    IR_REQUIRE(text->job, count >= 0);
    reserve(text, (size_t)count);
    vsnprintf(text->bytes + text->count, (size_t)count + 1, format, args);
    text->count += (size_t)count;
}

void ir_text_format(Text *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    ir_text_vformat(text, format, args);
    va_end(args);
}

const char *ir_text_string(Text *text) { return text->bytes ? text->bytes : ""; }

/* ---- numbers ---- */

typedef struct CLocale {
    locale_t c, before;
} CLocale;

static CLocale enter_c_locale(Job *job) {
    CLocale saved = {newlocale(LC_ALL_MASK, "C", (locale_t)0), (locale_t)0};
    IR_REQUIRE(job, saved.c != (locale_t)0);
    saved.before = uselocale(saved.c);
    return saved;
}

static void leave_c_locale(CLocale saved) {
    uselocale(saved.before);
    freelocale(saved.c);
}

static bool reads_back(const char *text, double value, bool single) {
    return single ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value;
}

/* "d.ddde+xx" with the fewest digits that read back. */
static void shortest(Job *job, double value, bool single, char text[32]) {
    CLocale saved = enter_c_locale(job);
    for (int digits = 0; digits <= 16; digits++) {
        snprintf(text, 32, "%.*e", digits, value);
        if (reads_back(text, value, single)) break;
    }
    leave_c_locale(saved);
}

static void put_number(Text *text, double value, bool single) {
    if (!isfinite(value)) {
        ir_text_put(text, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        return;
    }
    char raw[32], digits[24];
    shortest(text->job, fabs(value), single, raw);
    size_t count = 0;
    const char *at = raw;
    for (; *at && *at != 'e'; at++) {
        if (*at != '.') digits[count++] = *at;
    }
    int exponent = atoi(at + 1); /* of the first digit */
    if (signbit(value)) ir_text_put(text, "-");
    if (exponent < -4 || exponent > 15) {
        ir_text_bytes(text, digits, 1);
        if (count > 1) ir_text_put(text, ".");
        ir_text_bytes(text, digits + 1, count - 1);
        ir_text_format(text, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
        return;
    }
    if (exponent < 0) ir_text_bytes(text, "0.0000", (size_t)(1 - exponent));
    size_t whole = exponent < 0 ? 0 : (size_t)exponent + 1;
    for (size_t i = 0; i < whole; i++) ir_text_bytes(text, i < count ? &digits[i] : "0", 1);
    if (count > whole && whole) ir_text_put(text, ".");
    if (count > whole) ir_text_bytes(text, digits + whole, count - whole);
}

void ir_text_double(Text *text, double value) { put_number(text, value, false); }
void ir_text_float(Text *text, float value) { put_number(text, (double)value, true); }

static size_t skip_digits(const char *bytes, size_t count, size_t at) {
    while (at < count && bytes[at] >= '0' && bytes[at] <= '9') at++;
    return at;
}

/* The end of [-+]digits at the front, 0 where there is none or it has a leading zero. */
static size_t whole_part(const char *bytes, size_t count) {
    size_t start = count && (bytes[0] == '-' || bytes[0] == '+') ? 1 : 0;
    size_t stop = skip_digits(bytes, count, start);
    if (stop == start || (bytes[start] == '0' && stop > start + 1)) return 0;
    return stop;
}

bool ir_read_double(Job *job, const char *bytes, size_t count, double *value) {
    size_t at = whole_part(bytes, count);
    if (!at) return false;
    if (at < count && bytes[at] == '.') {
        size_t stop = skip_digits(bytes, count, at + 1);
        if (stop == at + 1) return false;
        at = stop;
    }
    if (at < count && bytes[at] == 'e') {
        size_t start = at + 1;
        if (start < count && (bytes[start] == '-' || bytes[start] == '+')) start++;
        at = skip_digits(bytes, count, start);
        if (at == start) return false;
    }
    if (at != count) return false;
    const char *copy = ir_copy_text(job, bytes, count);
    CLocale saved = enter_c_locale(job);
    *value = strtod(copy, NULL);
    leave_c_locale(saved);
    return true;
}

bool ir_read_int(const char *bytes, size_t count, int64_t *value) {
    if (!count || whole_part(bytes, count) != count) return false;
    bool negative = bytes[0] == '-';
    int64_t sum = 0; /* kept negative: INT64_MIN has no positive */
    for (size_t i = bytes[0] == '-' || bytes[0] == '+' ? 1 : 0; i < count; i++) {
        if (ir_mul_overflows(sum, 10, &sum) || ir_add_overflows(sum, -(int64_t)(bytes[i] - '0'), &sum)) return false;
    }
    if (!negative && sum == INT64_MIN) return false;
    *value = negative ? sum : -sum;
    return true;
}

/* ---- near misses ---- */

#define MAX_WORD 64 /* letters; longer words have no near miss */

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Insertions, deletions, replacements and swaps of neighbours that turn one word into the other. */
static uint32_t edit_distance(const char *a, uint32_t a_count, const char *b, uint32_t b_count) {
    uint32_t rows[3][MAX_WORD + 1];
    for (uint32_t j = 0; j <= b_count; j++) rows[0][j] = j;
    for (uint32_t i = 1; i <= a_count; i++) {
        uint32_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *higher = rows[(i + 1) % 3];
        row[0] = i;
        for (uint32_t j = 1; j <= b_count; j++) {
            row[j] = least(least(row[j - 1], above[j]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped) row[j] = least(row[j], higher[j - 2] + 1);
        }
    }
    return rows[a_count % 3][b_count];
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static bool differs_in_case(const char *a, const char *b) {
    size_t i = 0;
    while (a[i] && lower(a[i]) == lower(b[i])) i++;
    return i > 0 && a[i] == b[i];
}

const char *ir_near_miss(Job *job, const char *word, const char *const *candidates, uint32_t count) {
    (void)job;
    size_t length = strlen(word);
    if (length > MAX_WORD) return NULL;
    for (uint32_t i = 0; i < count; i++)
        if (differs_in_case(word, candidates[i])) return candidates[i];
    const char *nearest = NULL;
    uint32_t limit = length < 5 ? 1 : length < 8 ? 2 : 3; /* of a short word most of the letters stay */
    for (uint32_t i = 0; i < count; i++) {
        size_t other = strlen(candidates[i]);
        if (other > MAX_WORD) continue;
        uint32_t distance = edit_distance(word, (uint32_t)length, candidates[i], (uint32_t)other);
        if (distance > limit || distance >= length) continue;
        nearest = candidates[i];
        if (!distance) break;
        limit = distance - 1;
    }
    return nearest;
}
