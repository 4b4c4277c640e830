/* See ir/prog_scan.h. */
#include "ir/prog_scan.h"

#include <string.h>

#include "ir/graph.h"

Place ir_scan_place(const Scan *scan, size_t start) { return (Place){(uint32_t)start, (uint32_t)(scan->at - start)}; }

bool ir_scan_at_end(const Scan *scan) { return scan->at >= scan->count; }
char ir_scan_peek(const Scan *scan) { return ir_scan_at_end(scan) ? '\n' : scan->bytes[scan->at]; }

void ir_scan_spaces(Scan *scan) {
    while (!ir_scan_at_end(scan) &&
           (ir_scan_peek(scan) == ' ' || ir_scan_peek(scan) == '\t' || ir_scan_peek(scan) == '\r'))
        scan->at++;
}

_Noreturn void ir_scan_fail(Scan *scan, const char *expected) {
    ir_scan_spaces(scan);
    if (ir_scan_at_end(scan)) {
        uint32_t last = scan->count ? (uint32_t)scan->count - 1 : 0;
        ir_stop_at(scan->job, STATUS_REJECTED, (Place){last, scan->count != 0},
                   "expected %s, found the end of the text", expected);
    }
    size_t start = scan->at;
    char first = ir_scan_peek(scan);
    if (first == '\n')
        ir_stop_at(scan->job, STATUS_REJECTED, (Place){(uint32_t)start, 1}, "expected %s, found the end of the line",
                   expected);
    if (first < ' ' || first > '~')
        ir_stop_at(scan->job, STATUS_REJECTED, (Place){(uint32_t)start, 1}, "expected %s, found the byte 0x%02x",
                   expected, (unsigned)(unsigned char)first);
    scan->at++;
    if (ir_in_name(first))
        while (!ir_scan_at_end(scan) && ir_in_name(ir_scan_peek(scan))) scan->at++;
    Place place = ir_scan_place(scan, start);
    ir_stop_at(scan->job, STATUS_REJECTED, place, "expected %s, found '%.*s'", expected,
               place.count > 64 ? 64 : (int)place.count, scan->bytes + start);
}

bool ir_scan_accept(Scan *scan, char c) {
    ir_scan_spaces(scan);
    if (ir_scan_at_end(scan) || ir_scan_peek(scan) != c) return false;
    scan->at++;
    return true;
}

void ir_scan_expect(Scan *scan, char c) {
    if (!ir_scan_accept(scan, c)) ir_scan_fail(scan, ir_format(scan->job, "'%c'", c));
}

Place ir_scan_next_word(Scan *scan) {
    ir_scan_spaces(scan);
    size_t start = scan->at;
    if (!ir_scan_at_end(scan) && ir_starts_name(ir_scan_peek(scan)))
        while (!ir_scan_at_end(scan) && ir_in_name(ir_scan_peek(scan))) scan->at++;
    return ir_scan_place(scan, start);
}

bool ir_scan_is(const Scan *scan, Place place, const char *word) {
    return place.count == strlen(word) && memcmp(scan->bytes + place.start, word, place.count) == 0;
}

bool ir_scan_accept_word(Scan *scan, const char *word) {
    size_t before = scan->at;
    if (ir_scan_is(scan, ir_scan_next_word(scan), word)) return true;
    scan->at = before;
    return false;
}

Place ir_scan_word(Scan *scan, const char *expected) {
    Place place = ir_scan_next_word(scan);
    if (!place.count) ir_scan_fail(scan, expected);
    return place;
}

const char *ir_scan_text(const Scan *scan, Place place) {
    return ir_copy_text(scan->job, scan->bytes + place.start, place.count);
}

_Noreturn void ir_scan_fail_at(Scan *scan, Place place, const char *expected) {
    scan->at = place.start;
    ir_scan_fail(scan, expected);
}

int64_t ir_scan_int(Scan *scan, const char *expected, int64_t least) {
    ir_scan_spaces(scan);
    size_t start = scan->at;
    if (ir_scan_peek(scan) == '-') scan->at++;
    while (ir_is_digit(ir_scan_peek(scan))) scan->at++;
    Place place = ir_scan_place(scan, start);
    if (place.count == 0 || (place.count == 1 && scan->bytes[start] == '-')) ir_scan_fail_at(scan, place, expected);
    int64_t value;
    if (!ir_read_int(scan->bytes + start, place.count, &value) || value < least || value >= IR_MAX_EXTENT ||
        value <= -IR_MAX_EXTENT)
        ir_stop_at(scan->job, STATUS_REJECTED, place, "expected %s, found a number that is out of range", expected);
    return value;
}

void ir_scan_end_line(Scan *scan) {
    ir_scan_spaces(scan);
    scan->comment = (Place){0, 0};
    if (ir_scan_peek(scan) == '#') {
        size_t start = ++scan->at;
        while (!ir_scan_at_end(scan) && ir_scan_peek(scan) != '\n') scan->at++;
        scan->comment = ir_scan_place(scan, start);
    }
    if (ir_scan_peek(scan) != '\n') ir_scan_fail(scan, "the end of the line");
    if (!ir_scan_at_end(scan)) scan->at++;
}

bool ir_scan_next_line(Scan *scan) {
    for (;;) {
        ir_scan_spaces(scan);
        if (ir_scan_at_end(scan)) return false;
        if (ir_scan_peek(scan) != '\n' && ir_scan_peek(scan) != '#') return true;
        ir_scan_end_line(scan);
    }
}

bool ir_scan_at_number(Scan *scan) {
    ir_scan_spaces(scan);
    return ir_scan_peek(scan) == '-' || ir_is_digit(ir_scan_peek(scan));
}
