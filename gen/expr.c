/* In: tokens. Out: an Ast. Precedence, from the loosest: comparisons, |, &, + -, * / // %, unary - ~, **, then calls
 * and indexing. Operators of one strength make one flat chain, so only brackets, unary operators and ** nest. */
#include "gen/expr.h"

#include <math.h>
#include <string.h>

#include "ir/text.h"

typedef struct Parser {
    Job *job;
    Lexer lexer;
    Token token;    /* the next one */
    uint32_t depth; /* brackets and operators that are open */
    uint32_t nodes;
} Parser;

static Ast *parse_expression(Parser *parser);

static void advance(Parser *parser) { parser->token = gen_lex(&parser->lexer); }

static bool at_symbol(const Parser *parser, const char *symbol) {
    return parser->token.kind == TOKEN_SYMBOL && strcmp(parser->token.text, symbol) == 0;
}

static const char *describe(Parser *parser) {
    const Token *token = &parser->token;
    if (token->kind == TOKEN_END) return "the end of the expression";
    return ir_format(parser->job, "'%.*s'", (int)(token->place.count < 40 ? token->place.count : 40),
                     parser->lexer.bytes + token->place.start);
}

/* A comment right behind a plain scalar has cut it. */
static bool is_cut(const Parser *parser) {
    const Lexer *lexer = &parser->lexer;
    uint32_t at = lexer->stop;
    while (at < lexer->limit && (lexer->bytes[at] == ' ' || lexer->bytes[at] == '\t')) at++;
    return lexer->plain && at > lexer->stop && at < lexer->limit && lexer->bytes[at] == '#';
}

static const struct {
    const char *word, *advice;
} foreign_words[] = {
    {"and", "write (a > b) & (c > d), with the brackets"},
    {"or", "write (a > b) | (c > d), with the brackets"},
    {"not", "write ~(a > b)"},
    {"if", "write where(condition, a, b)"},
    {"else", "write where(condition, a, b)"},
    {"in", "write == or |"},
    {"is", "write ==, or isnan(x) for a NaN"},
    {"lambda", "write a line under functions:"},
    {"for", "there are no loops: operations take whole tensors"},
};

static _Noreturn void refuse(Parser *parser, const char *expected) {
    Token token = parser->token;
    Place place = token.place;
    if (token.kind == TOKEN_END) place = (Place){place.start > 0 ? place.start - 1 : 0, 1};
    const char *advice = NULL;
    for (size_t i = 0; i < sizeof foreign_words / sizeof *foreign_words; i++)
        if (token.kind == TOKEN_NAME && strcmp(token.text, foreign_words[i].word) == 0)
            advice = foreign_words[i].advice;
    if (token.kind == TOKEN_SYMBOL && strcmp(token.text, "=") == 0)
        advice = "write == to compare, and name the result by the key, as in y: x + 1";
    if (token.kind == TOKEN_SYMBOL && strchr(")]", token.text[0])) advice = "no bracket before it is open for it";
    ir_error(parser->job, place, "expected %s, found %s%s%s", expected, describe(parser), advice ? ": " : "",
             advice ? advice : "");
    if (token.kind == TOKEN_END && is_cut(parser))
        ir_note(parser->job, (Place){parser->lexer.stop, 1}, "' #' begins a comment here, which cuts the expression");
    ir_stop(parser->job, STATUS_REJECTED);
}

static void expect(Parser *parser, const char *symbol) {
    if (!at_symbol(parser, symbol)) refuse(parser, ir_format(parser->job, "'%s'", symbol));
    advance(parser);
}

static Ast *new_ast(Parser *parser, AstKind kind, Place place) {
    if (++parser->nodes > GEN_MAX_AST)
        ir_stop_at(parser->job, STATUS_REJECTED, place, "one expression has at most %u operands and operators",
                   GEN_MAX_AST);
    Ast *ast = IR_NEW(parser->job, Ast);
    *ast = (Ast){.kind = kind, .place = place};
    return ast;
}

static void enter(Parser *parser, Place place) {
    if (++parser->depth > GEN_MAX_NESTING)
        ir_stop_at(parser->job, STATUS_REJECTED, place,
                   "expressions nest at most %d deep: give a part a node of its own", GEN_MAX_NESTING);
}

static Place join(Place first, Place last) { return (Place){first.start, last.start + last.count - first.start}; }

typedef struct Items {
    IR_LIST(Ast *) asts;
    IR_LIST(const char *) keywords;
    IR_LIST(Place) keyword_places;
} Items;

static Ast *parse_index_item(Parser *parser) {
    Token first = parser->token;
    if (at_symbol(parser, "...")) {
        advance(parser);
        return new_ast(parser, AST_ELLIPSIS, first.place);
    }
    Ast *start = at_symbol(parser, ":") ? NULL : parse_expression(parser);
    if (!at_symbol(parser, ":")) return start;
    Place colon = parser->token.place;
    advance(parser);
    Ast *range = new_ast(parser, AST_RANGE, start ? join(start->place, colon) : colon);
    range->count = 2;
    range->item = IR_NEW_ARRAY(parser->job, Ast *, 2);
    range->item[0] = start;
    if (!at_symbol(parser, ",") && !at_symbol(parser, "]") && !at_symbol(parser, ":"))
        range->item[1] = parse_expression(parser);
    if (range->item[1]) range->place = join(range->place, range->item[1]->place);
    if (at_symbol(parser, ":"))
        ir_stop_at(parser->job, STATUS_REJECTED, parser->token.place,
                   "a slice is start:stop; steps are not in the language");
    return range;
}

static Ast *parse_argument(Parser *parser, const char **keyword, Place *place) {
    *keyword = NULL;
    Ast *ast = parse_expression(parser);
    if (!at_symbol(parser, "=")) return ast;
    if (ast->kind != AST_NAME) refuse(parser, "')' or ','");
    advance(parser);
    *keyword = ast->text;
    *place = ast->place;
    return parse_expression(parser);
}

/* Items up to the closing bracket, which is consumed; a comma after the last is allowed. */
static Place parse_items(Parser *parser, Items *items, const char *close, bool index, bool keywords) {
    enter(parser, parser->token.place);
    advance(parser);
    while (!at_symbol(parser, close)) {
        const char *keyword = NULL;
        Place place = {0, 0};
        Ast *item = index      ? parse_index_item(parser)
                    : keywords ? parse_argument(parser, &keyword, &place)
                               : parse_expression(parser);
        *IR_PUSH(parser->job, &items->asts) = item;
        *IR_PUSH(parser->job, &items->keywords) = keyword;
        *IR_PUSH(parser->job, &items->keyword_places) = place;
        if (at_symbol(parser, close)) break;
        if (!at_symbol(parser, ",")) refuse(parser, ir_format(parser->job, "',' or '%s'", close));
        advance(parser);
    }
    Place last = parser->token.place;
    advance(parser);
    parser->depth--;
    return last;
}

static Ast *parse_name(Parser *parser) {
    static const struct {
        const char *word;
        AstKind kind;
        double number;
    } words[] = {{"inf", AST_NUMBER, (double)INFINITY},
                 {"nan", AST_NUMBER, (double)NAN},
                 {"True", AST_BOOL, 1},
                 {"False", AST_BOOL, 0},
                 {"None", AST_NONE, 0}};
    Token token = parser->token;
    advance(parser);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(token.text, words[i].word) != 0) continue;
        Ast *ast = new_ast(parser, words[i].kind, token.place);
        ast->number = words[i].number;
        ast->integer = words[i].kind == AST_BOOL ? (int64_t)words[i].number : 0;
        return ast;
    }
    bool call = at_symbol(parser, "(");
    Ast *ast = new_ast(parser, call ? AST_CALL : AST_NAME, token.place);
    ast->text = token.text;
    if (!call) return ast;
    Items items = {0};
    ast->place = join(token.place, parse_items(parser, &items, ")", false, true));
    ast->item = items.asts.at;
    ast->keywords = items.keywords.at;
    ast->keyword_places = items.keyword_places.at;
    ast->count = items.asts.count;
    return ast;
}

static Ast *parse_primary(Parser *parser) {
    Token token = parser->token;
    if (token.kind == TOKEN_NAME) {
        Lexer ahead = parser->lexer;
        if (strcmp(token.text, "not") == 0 && gen_lex(&ahead).kind == TOKEN_NAME) refuse(parser, "a value");
        return parse_name(parser);
    }
    if (token.kind == TOKEN_NUMBER || token.kind == TOKEN_STRING) {
        advance(parser);
        Ast *ast = new_ast(parser, token.kind == TOKEN_NUMBER ? AST_NUMBER : AST_STRING, token.place);
        ast->number = token.number;
        ast->integer = token.integer;
        ast->is_integer = token.is_integer;
        ast->text = token.text;
        return ast;
    }
    if (at_symbol(parser, "(")) {
        enter(parser, token.place);
        advance(parser);
        Ast *ast = parse_expression(parser);
        if (at_symbol(parser, ","))
            ir_stop_at(parser->job, STATUS_REJECTED, parser->token.place,
                       "tuples are not in the language: write a list, [a, b]");
        expect(parser, ")");
        parser->depth--;
        return ast;
    }
    if (!at_symbol(parser, "[")) refuse(parser, "a value");
    Items items = {0};
    Ast *ast = new_ast(parser, AST_LIST, token.place);
    ast->place = join(token.place, parse_items(parser, &items, "]", false, false));
    ast->item = items.asts.at;
    ast->count = items.asts.count;
    return ast;
}

static Ast *parse_postfix(Parser *parser) {
    Ast *ast = parse_primary(parser);
    uint32_t depth = parser->depth;
    while (at_symbol(parser, "[")) {
        Items items = {0};
        *IR_PUSH(parser->job, &items.asts) = ast;
        *IR_PUSH(parser->job, &items.keywords) = NULL;
        Ast *index = new_ast(parser, AST_INDEX, ast->place);
        index->place = join(ast->place, parse_items(parser, &items, "]", true, false));
        index->item = items.asts.at;
        index->count = items.asts.count;
        ast = index;
        enter(parser, index->place);
    }
    if (at_symbol(parser, "(")) refuse(parser, "an operator");
    parser->depth = depth;
    return ast;
}

/* The infix operators by strength. */
typedef struct Infix {
    const char *symbol;
    Op op;
    int level;
} Infix;
enum { LEVEL_COMPARE, LEVEL_OR, LEVEL_AND, LEVEL_SUM, LEVEL_PRODUCT, LEVEL_UNARY };
static const Infix infixes[] = {
    {"<", OP_LT, LEVEL_COMPARE},
    {"<=", OP_LE, LEVEL_COMPARE},
    {">", OP_GT, LEVEL_COMPARE},
    {">=", OP_GE, LEVEL_COMPARE},
    {"==", OP_EQ, LEVEL_COMPARE},
    {"!=", OP_NE, LEVEL_COMPARE},
    {"|", OP_OR, LEVEL_OR},
    {"&", OP_AND, LEVEL_AND},
    {"+", OP_ADD, LEVEL_SUM},
    {"-", OP_SUB, LEVEL_SUM},
    {"*", OP_MUL, LEVEL_PRODUCT},
    {"/", OP_DIV, LEVEL_PRODUCT},
    {"//", OP_FLOORDIV, LEVEL_PRODUCT},
    {"%", OP_MOD, LEVEL_PRODUCT},
    {NULL, OP_ADD, 0},
};

static const Infix *infix_at(const Parser *parser, int level) {
    if (parser->token.kind != TOKEN_SYMBOL) return NULL;
    for (const Infix *row = infixes; row->symbol; row++)
        if (row->level == level && strcmp(parser->token.text, row->symbol) == 0) return row;
    return NULL;
}

static Ast *parse_level(Parser *parser, int level);

static Ast *parse_unary(Parser *parser) {
    Token token = parser->token;
    bool minus = at_symbol(parser, "-");
    if (minus || at_symbol(parser, "~")) {
        enter(parser, token.place);
        advance(parser);
        Ast *ast = new_ast(parser, AST_UNARY, token.place);
        ast->op = minus ? OP_NEG : OP_NOT;
        ast->count = 1;
        ast->item = IR_NEW_ARRAY(parser->job, Ast *, 1);
        ast->item[0] = parse_unary(parser);
        parser->depth--;
        return ast;
    }
    Ast *base = parse_postfix(parser);
    if (!at_symbol(parser, "**")) return base;
    token = parser->token;
    enter(parser, token.place);
    advance(parser);
    Ast *ast = new_ast(parser, AST_CHAIN, token.place);
    ast->count = 2;
    ast->item = IR_NEW_ARRAY(parser->job, Ast *, 2);
    ast->ops = IR_NEW_ARRAY(parser->job, Op, 2);
    ast->op_places = IR_NEW_ARRAY(parser->job, Place, 2);
    ast->item[0] = base;
    ast->ops[1] = OP_POW;
    ast->op_places[1] = token.place;
    ast->item[1] = parse_unary(parser);
    parser->depth--;
    return ast;
}

static Ast *parse_level(Parser *parser, int level) {
    if (level == LEVEL_UNARY) return parse_unary(parser);
    Ast *first = parse_level(parser, level + 1);
    if (!infix_at(parser, level)) return first;
    IR_LIST(Ast *) items = {0};
    IR_LIST(Op) ops = {0};
    IR_LIST(Place) places = {0};
    *IR_PUSH(parser->job, &items) = first;
    *IR_PUSH(parser->job, &ops) = OP_ADD;
    *IR_PUSH(parser->job, &places) = first->place;
    for (const Infix *row; (row = infix_at(parser, level)) != NULL;) {
        if (level == LEVEL_COMPARE && items.count == 2)
            ir_stop_at(parser->job, STATUS_REJECTED, parser->token.place,
                       "comparisons do not chain: write (a < b) & (b < c), with the brackets, since & binds closer");
        *IR_PUSH(parser->job, &ops) = row->op;
        *IR_PUSH(parser->job, &places) = parser->token.place;
        advance(parser);
        Ast *item = parse_level(parser, level + 1);
        *IR_PUSH(parser->job, &items) = item;
    }
    Ast *chain = new_ast(parser, AST_CHAIN, first->place);
    chain->count = items.count;
    chain->item = items.at;
    chain->ops = ops.at;
    chain->op_places = places.at;
    return chain;
}

static Ast *parse_expression(Parser *parser) { return parse_level(parser, LEVEL_COMPARE); }

Ast *gen_read_expression(Job *job, const Doc *doc, const char *what) {
    if (doc->kind != DOC_SCALAR)
        ir_stop_at(job, STATUS_REJECTED, doc->place, "expected %s, found a %s%s", what,
                   doc->kind == DOC_MAP ? "map" : "list", doc->flow ? ": quote it if it belongs to an expression" : "");
    Parser parser = {.job = job, .lexer = gen_lexer(job, doc)};
    advance(&parser);
    if (parser.token.kind == TOKEN_END)
        ir_stop_at(job, STATUS_REJECTED, doc->place, "expected %s, found empty text", what);
    Ast *ast = parse_expression(&parser);
    if (parser.token.kind != TOKEN_END) refuse(&parser, "an operator or the end");
    return ast;
}

Ast *gen_read_definition(Job *job, const char *text, Ast **head) {
    Parser parser = {.job = job, .lexer = gen_lexer_text(job, text)};
    advance(&parser);
    *head = parse_postfix(&parser);
    expect(&parser, ":");
    Ast *body = parse_expression(&parser);
    if (parser.token.kind != TOKEN_END) refuse(&parser, "an operator or the end");
    return body;
}

bool gen_is_name(const char *name, size_t count) {
    bool good = count > 0;
    for (size_t i = 0; i < count; i++) {
        const char c = name[i];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        good = good && (letter || (i > 0 && c >= '0' && c <= '9'));
    }
    return good;
}

void gen_check_name(Job *job, const char *name, size_t count, Place place, const char *what) {
    static const char *const words[] = {"inf", "nan", "True", "False", "None"};
    if (count > GEN_MAX_NAME)
        ir_stop_at(job, STATUS_REJECTED, place, "a name has at most %d characters; this one has %zu", GEN_MAX_NAME,
                   count);
    if (!gen_is_name(name, count))
        ir_stop_at(job, STATUS_REJECTED, place, "'%s' is not %s: letters, digits and _, no digit first", name, what);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(name, words[i]) == 0)
            ir_stop_at(job, STATUS_REJECTED, place, "'%s' is a word of the language and cannot be %s", name, what);
}
