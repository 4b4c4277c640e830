/* Text that grows, and numbers to and from text in a way that no locale changes. */
#ifndef IR_TEXT_H
#define IR_TEXT_H

#include "ir/job.h"

typedef struct Text {
    Job *job;
    char *bytes; /* NUL-terminated once anything was added */
    size_t count;
    size_t capacity;
} Text;

Text ir_text(Job *job);
void ir_text_bytes(Text *text, const char *bytes, size_t count);
void ir_text_put(Text *text, const char *string);
/* No floating-point conversions here: their decimal point follows the locale. Use ir_text_double. */
void ir_text_format(Text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ir_text_vformat(Text *text, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
/* The shortest decimal that reads back as the same double; inf, -inf, nan as the graph language writes them. */
void ir_text_double(Text *text, double value);
/* The shortest decimal that reads back as the same float. */
void ir_text_float(Text *text, float value);
const char *ir_text_string(Text *text); /* never NULL */

/* Reads a whole decimal number, [-+]digits[.digits][e[+-]digits]; false when the bytes are anything else. */
bool ir_read_double(Job *job, const char *bytes, size_t count, double *value);
/* Reads a whole decimal integer without leading zeros; false when it is anything else or does not fit. */
bool ir_read_int(const char *bytes, size_t count, int64_t *value);

/* The edit distance's nearest candidate, for "did you mean"; NULL when none is near. */
const char *ir_near_miss(Job *job, const char *word, const char *const *candidates, uint32_t count);

/* 64-bit arithmetic that says when it overflows. */
static inline bool ir_mul_overflows(int64_t a, int64_t b, int64_t *result) {
    return __builtin_mul_overflow(a, b, result);
}
static inline bool ir_add_overflows(int64_t a, int64_t b, int64_t *result) {
    return __builtin_add_overflow(a, b, result);
}

#endif
