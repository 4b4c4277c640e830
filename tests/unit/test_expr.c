/* Tokens and trees of expressions: numbers by the language's own reader, places, and the shape of each tree. Precedence
 * is in test_parse.c, refusals in test_refusals.c. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "gen/expr.h"
#include "ir/text.h"

typedef struct Work {
    const char *text;
    const char *shown;
    Token tokens[16];
    uint32_t count;
} Work;

static void lex_work(Job *job, void *state) {
    Work *work = state;
    Lexer lexer = gen_lexer_text(job, work->text);
    do work->tokens[work->count] = gen_lex(&lexer);
    while (work->tokens[work->count++].kind != TOKEN_END);
}

static void test_tokens(void **state) {
    (void)state;
    Work work = {.text = "ab_1 **2.5e-3//'s t'\r\n\t...:12 1e5"};
    static const struct {
        TokenKind kind;
        const char *text;
        uint32_t start, count;
    } expected[] = {
        {TOKEN_NAME, "ab_1", 0, 4},  {TOKEN_SYMBOL, "**", 5, 2},   {TOKEN_NUMBER, NULL, 7, 6},
        {TOKEN_SYMBOL, "//", 13, 2}, {TOKEN_STRING, "s t", 15, 5}, {TOKEN_SYMBOL, "...", 23, 3},
        {TOKEN_SYMBOL, ":", 26, 1},  {TOKEN_NUMBER, NULL, 27, 2},  {TOKEN_NUMBER, NULL, 30, 3},
        {TOKEN_END, NULL, 33, 0},
    };
    Job *job = ir_job_create(NULL);
    assert_int_equal(ir_job_run(job, lex_work, &work), STATUS_OK);
    assert_int_equal(work.count, sizeof expected / sizeof *expected);
    for (uint32_t i = 0; i < work.count; i++) {
        assert_int_equal(work.tokens[i].kind, expected[i].kind);
        assert_int_equal(work.tokens[i].place.start, expected[i].start);
        assert_int_equal(work.tokens[i].place.count, expected[i].count);
        if (expected[i].text) assert_string_equal(work.tokens[i].text, expected[i].text);
    }
    assert_true(work.tokens[2].number == 2.5e-3 && !work.tokens[2].is_integer);
    assert_true(work.tokens[7].integer == 12 && work.tokens[7].is_integer);
    assert_true(work.tokens[8].number == 1e5 && !work.tokens[8].is_integer);
    ir_job_free(job);
}

static void test_numbers(void **state) {
    (void)state;
    static const char *const good[] = {"0",
                                       "7",
                                       "-3",
                                       "+3",
                                       "0.5",
                                       "1e-5",
                                       "1e-05",
                                       "12.25e3",
                                       "9223372036854775807",
                                       "-9223372036854775808",
                                       "1e308",
                                       "5e-324",
                                       "0e0",
                                       "0.0"};
    static const char *const bad[] = {
        "",    "-",     "1_000", "010", "00",  "0x1", "1:30", "1.", ".5",  "1e",
        "1e+", "1e999", "1E5",   "nan", "inf", "1f",  " 1",   "1 ", "1,5", "9223372036854775808",
        "--1", "0b1",   "1.5.2"};
    Job *job = ir_job_create(NULL);
    double number;
    int64_t integer;
    bool is_integer;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!gen_read_number(job, good[i], strlen(good[i]), &number, &integer, &is_integer)) fail_msg("%s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (gen_read_number(job, bad[i], strlen(bad[i]), &number, &integer, &is_integer)) fail_msg("%s", bad[i]);
    ir_job_free(job);
}

static void show(Text *text, const Ast *ast) {
    if (!ast) {
        ir_text_put(text, "_");
        return;
    }
    static const char *const kinds[] = {"", "", "", "None", "", "list", "", "", "", "index", "range", "..."};
    if (ast->kind == AST_NUMBER) ir_text_double(text, ast->number);
    if (ast->kind == AST_NAME) ir_text_put(text, ast->text);
    if (ast->kind == AST_STRING) ir_text_format(text, "'%s'", ast->text);
    if (ast->kind == AST_BOOL) ir_text_put(text, ast->integer ? "True" : "False");
    ir_text_put(text, kinds[ast->kind]);
    if (!ast->item) return;
    ir_text_put(text, ast->kind == AST_CALL ? ast->text : "");
    ir_text_put(text, ast->kind == AST_UNARY ? ir_op(ast->op)->symbol : "");
    ir_text_put(text, "(");
    for (uint32_t i = 0; i < ast->count; i++) {
        if (i > 0) ir_text_format(text, " %s%s", ast->ops ? ir_op(ast->ops[i])->symbol : "", ast->ops ? " " : "");
        if (ast->keywords && ast->keywords[i]) ir_text_format(text, "%s=", ast->keywords[i]);
        show(text, ast->item[i]);
    }
    ir_text_put(text, ")");
}

static void parse_work(Job *job, void *state) {
    Work *work = state;
    Ast *head;
    Text text = ir_text(job);
    show(&text, gen_read_definition(job, ir_format(job, "f: %s", work->text), &head));
    work->shown = ir_text_string(&text);
}

static void test_trees(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"a + b - c * d", "(a + b - (c * d))"},
        {"-x ** -2 ** y", "-((x ** -((2 ** y))))"},
        {"~~b", "~(~(b))"},
        {"f(x, dim=-1, k=True,)", "f(x dim=-(1) k=True)"},
        {"x[:, None, ..., a:b, 3][0]", "index(index(x range(_ _) None ... range(a b) 3) 0)"},
        {"x[:-1, 2:]", "index(x range(_ -(1)) range(2 _))"},
        {"[B, C/G, []]", "list(B (C / G) list)"},
        {"(a < b) | (c == 'm')", "((a < b) | (c == 'm'))"},
        {"a | b & c + d", "(a | (b & (c + d)))"},
        {"inf * None", "(inf * None)"},
        {"mean", "mean"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Work work = {.text = rows[i][0]};
        Job *job = ir_job_create(NULL);
        if (ir_job_run(job, parse_work, &work) != STATUS_OK) fail_msg("%s: %s", rows[i][0], ir_job_report(job));
        assert_string_equal(work.shown, rows[i][1]);
        ir_job_free(job);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tokens), cmocka_unit_test(test_numbers),
                                       cmocka_unit_test(test_trees)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
