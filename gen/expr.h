/* Expressions: tokens, and the tree that the parser makes of them. Types (`E[M, N]`), function heads and slices are
 * written as expressions too, and their readers take what they need from the same tree. */
#ifndef GEN_EXPR_H
#define GEN_EXPR_H

#include "gen/yaml.h"
#include "ir/ops.h"

#define GEN_MAX_NAME 64
#define GEN_MAX_NESTING 256
#define GEN_MAX_AST (1u << 18) /* nodes of one expression: far above what 4,096 values can need */

typedef enum TokenKind { TOKEN_END, TOKEN_NAME, TOKEN_NUMBER, TOKEN_STRING, TOKEN_SYMBOL } TokenKind;

typedef struct Token {
    TokenKind kind;
    Place place;
    const char *text; /* NAME, STRING: its characters; SYMBOL: the symbol */
    double number;
    int64_t integer;
    bool is_integer;
} Token;

typedef struct Lexer {
    Job *job;
    const char *bytes;
    uint32_t at, stop; /* the range still to be read */
    uint32_t limit;    /* one past the last byte that may be looked at, for messages */
    bool plain;        /* the range is a plain YAML scalar: ` #` would have cut it */
} Lexer;

/* A lexer over a scalar's raw source, between its quotes. */
Lexer gen_lexer(Job *job, const Doc *scalar);
Lexer gen_lexer_text(Job *job, const char *text);
Token gen_lex(Lexer *lexer);

typedef enum AstKind {
    AST_NUMBER,
    AST_NAME,
    AST_STRING,
    AST_NONE,
    AST_BOOL,
    AST_LIST,    /* [item, ...] */
    AST_UNARY,   /* op item[0] */
    AST_CHAIN,   /* item[0] ops[1] item[1] ops[2] item[2] ..., from the left */
    AST_CALL,    /* text(item, keyword=item, ...) */
    AST_INDEX,   /* item[0][item[1], ...] */
    AST_RANGE,   /* item[0]:item[1], each may be NULL; within AST_INDEX only */
    AST_ELLIPSIS /* within AST_INDEX only */
} AstKind;

typedef struct Ast {
    AstKind kind;
    Place place;
    const char *text; /* NAME, STRING, CALL */
    double number;
    int64_t integer; /* NUMBER that is_integer; BOOL */
    bool is_integer;
    Op op; /* UNARY */
    uint32_t count;
    struct Ast **item;
    Op *ops;               /* CHAIN: ops[i] joins item[i] to what is before it */
    Place *op_places;      /* CHAIN */
    const char **keywords; /* CALL: of each item, NULL for a positional one */
    Place *keyword_places; /* CALL */
} Ast;

/* The whole scalar as one expression; what: "an expression", "a type", for messages. */
Ast *gen_read_expression(Job *job, const Doc *doc, const char *what);
/* `name(parameter, parameter=default): body`, a line of composites.def. */
Ast *gen_read_definition(Job *job, const char *text, Ast **head);
bool gen_is_name(const char *name, size_t count); /* letters, digits and _, no digit first */
/* Refuses what is no name: [A-Za-z_][A-Za-z0-9_]{0,63} and no word of the language. what: "a node's name". */
void gen_check_name(Job *job, const char *name, size_t count, Place place, const char *what);
/* A number as graph files write them; integer is set where it is_integer. */
bool gen_read_number(Job *job, const char *bytes, size_t count, double *number, int64_t *integer, bool *is_integer);

#endif
