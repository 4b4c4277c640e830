/* Expressions of the graph language as people write them: nested, with the fewest brackets, numbers bare where reading
 * gives them their dtype back. */
#ifndef IR_GRAPH_EXPRESS_H
#define IR_GRAPH_EXPRESS_H

#include "ir/graph_file.h"

/* How strongly a text holds together, the loosest first. */
typedef enum Bind { BIND_COMPARE, BIND_OR, BIND_AND, BIND_SUM, BIND_PRODUCT, BIND_UNARY, BIND_POWER, BIND_ATOM } Bind;

/* A text, and the operand that it reads as: ARG_VALUE with the id of its value, or weak. */
typedef struct Piece {
    const char *text; /* NULL: there is no such text */
    Bind bind;
    Arg arg;
} Piece;

/* The texts of one value. Weak ones suit some users and not others; the strong one suits all. */
typedef enum Form {
    FORM_BARE,
    FORM_POINT, /* whole numbers with a point: 2.0 */
    FORM_STRONG,
    FORM_COUNT
} Form;

typedef struct Pieces {
    Piece form[FORM_COUNT];
} Pieces;

typedef struct Express {
    GraphFile file;
    Pieces *pieces; /* of each value */
    bool *node;     /* values that are nodes of their own */
    bool *wanted; /* values that no text can stand for within their users, or none that is short: they must be nodes */
} Express;

/* The texts of a value within its users, from those of its operands. */
Pieces ir_express(Express *express, uint32_t id);
/* The text of the value's node; NULL: some operands were marked as wanted. */
const char *ir_express_node(Express *express, uint32_t id);

#endif
