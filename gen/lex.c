/* In: the raw source of a scalar, between its marks. Out: tokens with their places. What other languages write and this
 * one does not is refused in words that say what to write instead. */
#include <math.h>
#include <string.h>

#include "gen/advice.h"
#include "gen/expr.h"
#include "ir/text.h"

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

Lexer gen_lexer(Job *job, const Doc *scalar) {
    size_t count;
    const char *bytes = ir_job_source(job, &count);
    uint32_t start = scalar->place.start, stop = start + scalar->place.count;
    if (scalar->style == DOC_SINGLE || scalar->style == DOC_DOUBLE) {
        start++;
        stop = stop > start ? stop - 1 : start;
    }
    if (scalar->style == DOC_BLOCK) /* `|` or `>`, its indicators and a comment */
        while (start < stop && bytes[start] != '\n' && bytes[start] != '\r') start++;
    for (uint32_t at = start; at < stop; at++) {
        if (scalar->style == DOC_DOUBLE && bytes[at] == '\\')
            ir_stop_at(job, STATUS_REJECTED, (Place){at, 1},
                       "no backslash in a quoted expression: use the other quote, '");
        if (scalar->style == DOC_SINGLE && bytes[at] == '\'')
            ir_stop_at(job, STATUS_REJECTED, (Place){at, 2},
                       "no doubled quote in a quoted expression: use the other quote, \"");
    }
    return (Lexer){.job = job,
                   .bytes = bytes,
                   .at = start,
                   .stop = stop,
                   .limit = (uint32_t)count,
                   .plain = scalar->style == DOC_PLAIN};
}

Lexer gen_lexer_text(Job *job, const char *text) {
    uint32_t count = (uint32_t)strlen(text);
    return (Lexer){.job = job, .bytes = text, .stop = count, .limit = count};
}

bool gen_read_number(Job *job, const char *bytes, size_t count, double *number, int64_t *integer, bool *is_integer) {
    size_t sign = count > 0 && (bytes[0] == '-' || bytes[0] == '+') ? 1 : 0;
    if (count < sign + 1 || !is_digit(bytes[sign])) return false;
    if (bytes[sign] == '0' && count > sign + 1 && is_digit(bytes[sign + 1])) return false;
    size_t digits = sign;
    while (digits < count && is_digit(bytes[digits])) digits++;
    *is_integer = digits == count;
    *integer = 0;
    if (!ir_read_double(job, bytes, count, number) || isinf(*number)) return false;
    return !*is_integer || ir_read_int(bytes + (bytes[0] == '+'), count - (bytes[0] == '+'), integer);
}

_Noreturn static void refuse_number(Lexer *lexer, Place place) {
    const char *bytes = lexer->bytes + place.start,
               *what = "write digits, a point with digits on both sides, an exponent, as in 12, 0.5 or 1e-5";
    uint32_t digits = 0, most = place.count < 40 ? place.count : 40;
    double number;
    int64_t integer;
    bool whole;
    while (digits < place.count && is_digit(bytes[digits])) digits++;
    if (most > 1 && strchr("fFhdlLu", bytes[most - 1]) &&
        gen_read_number(lexer->job, bytes, most - 1, &number, &integer, &whole))
        what = ir_format(lexer->job, "a number has no suffix, since it takes the dtype of what it meets: write %.*s",
                         (int)most - 1, bytes);
    else if (digits > 0 && digits < place.count && is_letter(bytes[digits]) && strchr("xXeE_", bytes[digits]) == NULL)
        what = ir_format(lexer->job, "a product needs its sign: write %.*s * %.*s", (int)digits, bytes,
                         (int)(most - digits), bytes + digits);
    else if (digits > 0 && digits < place.count && strchr("xX", bytes[digits]) &&
             (digits + 1 == place.count || !is_digit(bytes[digits + 1])))
        what = ir_format(lexer->job, "a product needs its sign: write %.*s * x", (int)digits, bytes);
    if (digits == place.count && bytes[0] != '0')
        what = "a whole number stays below 2^63; 1e20 is a number of another kind";
    else if (digits < place.count && is_digit(bytes[0]) && ir_read_double(lexer->job, bytes, place.count, &number) &&
             isinf(number))
        what = "a number stays below 1.8e308; write inf";
    ir_stop_at(lexer->job, STATUS_REJECTED, place, "'%.*s' is no number here: %s", (int)most, bytes, what);
}

static Token lex_number(Lexer *lexer) {
    uint32_t start = lexer->at;
    while (lexer->at < lexer->stop) {
        char c = lexer->bytes[lexer->at], last = lexer->at > start ? lexer->bytes[lexer->at - 1] : 0;
        bool exponent_sign = (c == '-' || c == '+') && (last == 'e' || last == 'E') && lexer->at + 1 < lexer->stop &&
                             is_digit(lexer->bytes[lexer->at + 1]) && lexer->bytes[start + 1] != 'x';
        if (!is_digit(c) && !is_letter(c) && c != '.' && !exponent_sign) break;
        if (c == '.' && lexer->at + 1 < lexer->stop && is_letter(lexer->bytes[lexer->at + 1])) break;
        lexer->at++;
    }
    Token token = {.kind = TOKEN_NUMBER, .place = {start, lexer->at - start}};
    if (!gen_read_number(lexer->job, lexer->bytes + start, token.place.count, &token.number, &token.integer,
                         &token.is_integer))
        refuse_number(lexer, token.place);
    return token;
}

static Token lex_name(Lexer *lexer) {
    uint32_t start = lexer->at;
    while (lexer->at < lexer->stop && (is_letter(lexer->bytes[lexer->at]) || is_digit(lexer->bytes[lexer->at])))
        lexer->at++;
    Token token = {.kind = TOKEN_NAME, .place = {start, lexer->at - start}};
    if (token.place.count > GEN_MAX_NAME)
        ir_stop_at(lexer->job, STATUS_REJECTED, token.place, "a name has at most %d characters; this one has %u",
                   GEN_MAX_NAME, token.place.count);
    token.text = ir_copy_text(lexer->job, lexer->bytes + start, token.place.count);
    return token;
}

static Token lex_string(Lexer *lexer) {
    uint32_t start = lexer->at;
    char quote = lexer->bytes[lexer->at++];
    while (lexer->at < lexer->stop && lexer->bytes[lexer->at] != quote) lexer->at++;
    if (lexer->at == lexer->stop)
        ir_stop_at(lexer->job, STATUS_REJECTED, (Place){start, 1}, "this quote is never closed");
    lexer->at++;
    Token token = {.kind = TOKEN_STRING, .place = {start, lexer->at - start}};
    token.text = ir_copy_text(lexer->job, lexer->bytes + start + 1, token.place.count - 2);
    return token;
}

/* What is written in other languages, and what is said to it. Longer ones first. */
static const struct {
    const char *text, *advice;
} foreign[] = {
    {"&&", "write (a > b) & (c > d), with the brackets"},
    {"||", "write (a > b) | (c > d), with the brackets"},
    {"<<", "shifts are not in the language"},
    {">>", "shifts are not in the language"},
    {":=", "give it a node of its own"},
    {"+=", "a node is computed once: give the result a name of its own"},
    {"-=", "a node is computed once: give the result a name of its own"},
    {"*=", "a node is computed once: give the result a name of its own"},
    {"/=", "a node is computed once: give the result a name of its own"},
    {"->", "an arrow is not in the language"},
    {"@", "matrix products are not in the language"},
    {"^", "write ** for a power"},
    {"!", "write ~ for not, != for unequal"},
    {"?", "write where(condition, a, b)"},
    {";", "an expression has no statements"},
    {"{", "braces are not in the language"},
    {"}", "braces are not in the language"},
    {"#", "an expression has no comments"},
    {"\\", "a line break needs no backslash"},
    {"$", "a name has letters, digits and _"},
    {"`", "a name has letters, digits and _"},
};

static const char *const symbols[] = {"...", "**", "//", "<=", ">=", "==", "!=", "+", "-", "*", "/", "%", "<",
                                      ">",   "&",  "|",  "~",  "(",  ")",  "[",  "]", ",", ":", "=", NULL};

static bool starts(const Lexer *lexer, const char *text) {
    size_t count = strlen(text);
    return lexer->stop - lexer->at >= count && memcmp(lexer->bytes + lexer->at, text, count) == 0;
}

static const char *copy_word(Lexer *lexer, uint32_t start, uint32_t stop) {
    return ir_copy_text(lexer->job, lexer->bytes + start, stop - start);
}

static uint32_t word_end(const Lexer *lexer, uint32_t at) {
    while (at < lexer->stop && (is_letter(lexer->bytes[at]) || is_digit(lexer->bytes[at]))) at++;
    return at;
}

/* What stands in the brackets that open here, on one line; "..." where it is long or they are not closed. */
static const char *call_arguments(Lexer *lexer, uint32_t open) {
    uint32_t at = open, depth = 0;
    for (; at < lexer->stop && lexer->bytes[at] != '\n'; at++) {
        depth += lexer->bytes[at] == '(';
        if (lexer->bytes[at] == ')' && --depth == 0) break;
    }
    const bool closed = at < lexer->stop && lexer->bytes[at] == ')';
    return closed && at - open <= 40 ? copy_word(lexer, open + 1, at) : "...";
}

/* x.sum(), x.T and torch.exp(x). */
static _Noreturn void refuse_dot(Lexer *lexer) {
    uint32_t start = lexer->at, before = start, stop = word_end(lexer, start + 1);
    while (before > 0 && (is_letter(lexer->bytes[before - 1]) || is_digit(lexer->bytes[before - 1]))) before--;
    Place place = {start, stop - start};
    if (stop == start + 1 || !is_letter(lexer->bytes[start + 1]))
        ir_stop_at(lexer->job, STATUS_REJECTED, place, "a number has digits on both sides of its point, as in 0.5");
    const char *word = copy_word(lexer, start + 1, stop);
    if (gen_is_module(copy_word(lexer, before, start))) {
        uint32_t last = start + 1;
        for (uint32_t next = stop;
             next + 1 < lexer->stop && lexer->bytes[next] == '.' && is_letter(lexer->bytes[next + 1]);) {
            last = next + 1;
            next = stop = word_end(lexer, last);
        }
        ir_stop_at(lexer->job, STATUS_REJECTED, place,
                   "there are no modules: write %.40s without what stands before it", copy_word(lexer, last, stop));
    }
    while (stop < lexer->stop && is_space(lexer->bytes[stop])) stop++;
    bool call = stop < lexer->stop && lexer->bytes[stop] == '(';
    const char *advice = call ? gen_advise_call(word) : gen_advise_attribute(word);
    if (advice)
        ir_stop_at(lexer->job, STATUS_REJECTED, place, "'.%.40s%s' is not in the language: %s", word, call ? "()" : "",
                   advice);
    const char *of = before < start && is_letter(lexer->bytes[before]) ? copy_word(lexer, before, start) : "x";
    const char *rest = call ? call_arguments(lexer, stop) : "";
    ir_stop_at(lexer->job, STATUS_REJECTED, place,
               "methods are not in the language: write %.40s(%.40s%s%s), not %.40s.%.40s(%s)", word, of,
               *rest ? ", " : "", rest, of, word, rest);
}

static Token lex_symbol(Lexer *lexer) {
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        if (!starts(lexer, foreign[i].text) || starts(lexer, "!=")) continue;
        ir_stop_at(lexer->job, STATUS_REJECTED, (Place){lexer->at, (uint32_t)strlen(foreign[i].text)},
                   "unexpected '%s': %s", foreign[i].text, foreign[i].advice);
    }
    for (size_t i = 0; symbols[i]; i++) {
        if (!starts(lexer, symbols[i])) continue;
        Token token = {.kind = TOKEN_SYMBOL, .place = {lexer->at, (uint32_t)strlen(symbols[i])}, .text = symbols[i]};
        lexer->at += token.place.count;
        return token;
    }
    if (lexer->bytes[lexer->at] == '.') refuse_dot(lexer);
    uint32_t length = 1;
    while (lexer->at + length < lexer->stop && (lexer->bytes[lexer->at + length] & 0xc0) == 0x80) length++;
    ir_stop_at(lexer->job, STATUS_REJECTED, (Place){lexer->at, length}, "unexpected character '%.*s'", (int)length,
               lexer->bytes + lexer->at);
}

Token gen_lex(Lexer *lexer) {
    while (lexer->at < lexer->stop && is_space(lexer->bytes[lexer->at])) lexer->at++;
    if (lexer->at == lexer->stop) return (Token){.kind = TOKEN_END, .place = {lexer->stop, 0}};
    char c = lexer->bytes[lexer->at];
    if (is_digit(c)) return lex_number(lexer);
    if (is_letter(c)) return lex_name(lexer);
    if (c == '"' || c == '\'') return lex_string(lexer);
    return lex_symbol(lexer);
}
