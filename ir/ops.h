/* The tables of primitive operations and reductions (ir/ops.def, ir/reductions.def), and operations that are no row of
 * them because they name memory, an index or a shape instead of computing. */
#ifndef IR_OPS_H
#define IR_OPS_H

#include "ir/dtype.h"

typedef enum OpRule {
    RULE_ARITHMETIC, /* operands promoted together; the result has that dtype (bool operands count as i64) */
    RULE_FLOAT,      /* the same, but integers and bools become f32 */
    RULE_COMPARE,    /* operands promoted together; bool result */
    RULE_LOGIC,      /* bool operands and result */
    RULE_TEST,       /* one operand of any dtype; bool result */
    RULE_WHERE       /* a bool, then two operands promoted together */
} OpRule;

typedef enum Op {
#define OP(id, ...) OP_##id,
#include "ir/ops.def"
#undef OP
    OP_PRIMITIVES, /* how many rows the table has */
    /* both in Graph and in Prog */
    OP_CONST = OP_PRIMITIVES, /* bits */
    OP_CAST,                  /* to the value's dtype; rounds */
    OP_SIZE,                  /* an i64 polynomial in the dims */
    OP_IOTA,                  /* the index along a dim (Graph: arange) or an axis (Prog) */
    OP_REDUCE,
    /* Graph only */
    OP_INPUT,     /* a tensor given at launch */
    OP_SCALAR,    /* a host value given at launch */
    OP_INDEX,     /* x[...]: slices, new axes, gather by an integer tensor */
    OP_RESHAPE,   /* same elements in row-major order, other shape */
    OP_COMPOSITE, /* a call of ir/composites.def; gone after expand */
    /* Prog only */
    OP_LOAD,
    OP_STORE,
    OP_PARTIAL_ACCUMULATE,
    OP_COUNT
} Op;

typedef struct OpRow {
    const char *name;
    const char *symbol;
    uint8_t arity;
    OpRule rule;
    const char *cuda;
    double ulps;
    double (*reference)(double a, double b, double c); /* NULL for RULE_LOGIC */
    long double (*reference_long)(long double a, long double b, long double c);
    int64_t (*integer)(int64_t a, int64_t b, int64_t c); /* NULL: never on integers */
    double (*derivative[2])(double a, double b, double y);
    const char *derivative_text[3]; /* of each operand, in the graph language, from a, b, y; "0": locally constant */
    const char *what;               /* what it gives, for people */
} OpRow;

const OpRow *ir_op(Op op);                               /* op < OP_PRIMITIVES */
const char *ir_op_name(Op op);                           /* any op */
bool ir_op_find(const char *name, size_t count, Op *op); /* a primitive by its name */

typedef enum Reduction {
#define REDUCTION(id, ...) REDUCTION_##id,
#include "ir/reductions.def"
#undef REDUCTION
    REDUCTION_COUNT
} Reduction;

typedef struct ReductionRow {
    const char *name;
    const char *language;
    double identity;
    int64_t integer_identity;
    const char *cuda;
    double (*combine)(double a, double b);
    long double (*combine_long)(long double a, long double b);
    int64_t (*integer)(int64_t a, int64_t b);
    double ulps;
    uint8_t results;        /* 1, or 2 for online and welford */
    const char *derivative; /* of an element, in the graph language, from a, y and dim; "": none */
    const char *what;       /* what it gives, for people */
} ReductionRow;

const ReductionRow *ir_reduction(Reduction reduction);
bool ir_reduction_find(const char *name, size_t count, Reduction *reduction);          /* name in dumps */
bool ir_reduction_find_language(const char *name, size_t count, Reduction *reduction); /* name in graph files */

/* The dtype of the result for operands of these dtypes; false where the rule refuses them. */
bool ir_op_dtype(Op op, const DType *operands, DType *result);
/* The dtype in which the operands meet (where: that of the branches). */
DType ir_op_operand_dtype(Op op, const DType *operands);

#endif
