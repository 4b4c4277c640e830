/* The scanner of dumps: words, numbers, ends of lines, and the message of what was expected where. In: a text. Out:
 * places in it. Left alone: what the words mean (ir/prog_read.c). */
#ifndef IR_PROG_SCAN_H
#define IR_PROG_SCAN_H

#include "ir/text.h"

typedef struct Scan {
    Job *job;
    const char *bytes;
    size_t count, at;
    Place comment; /* of the line that ended last, without its # */
} Scan;

/* Of ASCII, whatever the locale. */
static inline bool ir_is_digit(char c) { return c >= '0' && c <= '9'; }
static inline bool ir_is_lower(char c) { return c >= 'a' && c <= 'z'; }
static inline bool ir_is_upper(char c) { return c >= 'A' && c <= 'Z'; }
static inline bool ir_starts_name(char c) { return ir_is_lower(c) || ir_is_upper(c) || c == '_'; }
static inline bool ir_in_name(char c) { return ir_starts_name(c) || ir_is_digit(c); }

bool ir_scan_at_end(const Scan *scan);
char ir_scan_peek(const Scan *scan);                 /* '\n' at the end */
void ir_scan_spaces(Scan *scan);                     /* skips them, not ends of lines */
Place ir_scan_place(const Scan *scan, size_t start); /* from start to here */
bool ir_scan_is(const Scan *scan, Place place, const char *word);
const char *ir_scan_text(const Scan *scan, Place place);

/* Says what was expected at the next token, and what stands there; or at a place. */
_Noreturn void ir_scan_fail(Scan *scan, const char *expected);
_Noreturn void ir_scan_fail_at(Scan *scan, Place place, const char *expected);

bool ir_scan_accept(Scan *scan, char c);
void ir_scan_expect(Scan *scan, char c);
bool ir_scan_accept_word(Scan *scan, const char *word);
Place ir_scan_next_word(Scan *scan); /* empty, and nothing is consumed, where there is none */
Place ir_scan_word(Scan *scan, const char *expected);
bool ir_scan_at_number(Scan *scan);
int64_t ir_scan_int(Scan *scan, const char *expected, int64_t least); /* below 2^62 either way */

/* Ends the line and keeps its comment. */
void ir_scan_end_line(Scan *scan);
/* Goes to the next line that says something; false at the end of the text. */
bool ir_scan_next_line(Scan *scan);

#endif
