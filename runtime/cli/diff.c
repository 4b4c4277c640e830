/* A line diff for `ir --diff`. In: two texts. Out: a unified diff. Common ends are cut off first; the middle is solved
 * by the longest common subsequence, or taken as wholly changed where its table would pass 64 M cells. */
#include "runtime/cli/text.h"

#include <stdlib.h>
#include <string.h>

#define MAX_CELLS ((size_t)1 << 26)
#define AROUND 3 /* unchanged lines shown on each side of a change */

typedef struct Line {
    const char *bytes;
    size_t count;
} Line;

typedef struct Edit {
    char mark; /* ' ', '-' or '+' */
    Line line;
} Edit;

static Line *split_lines(const char *text, size_t *count) {
    size_t lines = 0;
    for (const char *at = text; *at; at++) lines += *at == '\n';
    Line *result = cli_alloc(lines + 1, sizeof *result);
    *count = 0;
    while (*text) {
        size_t length = strcspn(text, "\n");
        result[(*count)++] = (Line){text, length};
        text += length + (text[length] == '\n');
    }
    return result;
}

static bool same(Line a, Line b) { return a.count == b.count && !memcmp(a.bytes, b.bytes, a.count); }

/* Appends the edits that turn a[0..n) into b[0..m). */
static size_t solve(Edit *edits, size_t used, const Line *a, size_t n, const Line *b, size_t m) {
    if (n && m && n <= MAX_CELLS / m) {
        /* length[i * (m + 1) + j]: longest common subsequence of a[i..] and b[j..] */
        uint32_t *length = cli_alloc((n + 1) * (m + 1), sizeof *length);
        size_t width = m + 1, i = 0, j = 0;
        for (size_t p = n; p-- > 0;) {
            for (size_t q = m; q-- > 0;) {
                uint32_t down = length[(p + 1) * width + q], right = length[p * width + q + 1];
                length[p * width + q] =
                    same(a[p], b[q]) ? length[(p + 1) * width + q + 1] + 1 : (down > right ? down : right);
            }
        }
        while (i < n && j < m) {
            if (same(a[i], b[j]))
                edits[used++] = (Edit){' ', a[i]}, i++, j++;
            else if (length[(i + 1) * width + j] >= length[i * width + j + 1])
                edits[used++] = (Edit){'-', a[i++]};
            else
                edits[used++] = (Edit){'+', b[j++]};
        }
        free(length);
        a += i, n -= i, b += j, m -= j;
    }
    for (size_t i = 0; i < n; i++) edits[used++] = (Edit){'-', a[i]};
    for (size_t j = 0; j < m; j++) edits[used++] = (Edit){'+', b[j]};
    return used;
}

static bool near_change(const Edit *edits, size_t count, size_t at) {
    size_t from = at > AROUND ? at - AROUND : 0, to = at + AROUND < count ? at + AROUND + 1 : count;
    for (size_t i = from; i < to; i++) {
        if (edits[i].mark != ' ') return true;
    }
    return false;
}

static void print_edits(Buf *buf, const Edit *edits, size_t count) {
    size_t old_line = 1, new_line = 1;
    bool inside = false;
    for (size_t i = 0; i < count; i++) {
        bool shown = near_change(edits, count, i);
        if (shown && !inside) {
            size_t end = i, old_count = 0, new_count = 0;
            for (; end < count && near_change(edits, count, end); end++) {
                old_count += edits[end].mark != '+';
                new_count += edits[end].mark != '-';
            }
            buf_format(buf, "@@ -%zu,%zu +%zu,%zu @@\n", old_line, old_count, new_line, new_count);
        }
        inside = shown;
        if (shown) {
            buf_bytes(buf, &edits[i].mark, 1);
            buf_bytes(buf, edits[i].line.bytes, edits[i].line.count);
            buf_put(buf, "\n");
        }
        old_line += edits[i].mark != '+';
        new_line += edits[i].mark != '-';
    }
}

void cli_diff(Buf *buf, const char *before, const char *before_name, const char *after, const char *after_name) {
    size_t n, m, head = 0, tail = 0, used = 0;
    Line *a = split_lines(before, &n), *b = split_lines(after, &m);
    while (head < n && head < m && same(a[head], b[head])) head++;
    while (tail < n - head && tail < m - head && same(a[n - 1 - tail], b[m - 1 - tail])) tail++;
    Edit *edits = cli_alloc(n + m + 1, sizeof *edits);
    for (size_t i = 0; i < head; i++) edits[used++] = (Edit){' ', a[i]};
    used = solve(edits, used, a + head, n - head - tail, b + head, m - head - tail);
    for (size_t i = n - tail; i < n; i++) edits[used++] = (Edit){' ', a[i]};
    if (head + tail < n || head + tail < m) {
        buf_format(buf, "--- %s\n+++ %s\n", before_name, after_name);
        print_edits(buf, edits, used);
    }
    free(a);
    free(b);
    free(edits);
}
