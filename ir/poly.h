/* Polynomials in the symbols (dims) with rational coefficients: extents, strides, offsets. What a language or a pass
 * makes of them is whole for every legal value of the dims: N/2 where N is even.
 *
 * A symbol is the index of a dim of the graph, or of a part count of the program (IR_POLY_PART + k). Fixed dims stay
 * symbols, since a symbol meets only itself in broadcasting; ir_poly_fold puts their numbers in when typing is done.
 * A Poly is normal: terms sorted, no zero coefficient, so equal polynomials are equal term by term. */
#ifndef IR_POLY_H
#define IR_POLY_H

#include "ir/text.h"

#define IR_MAX_DEGREE 12
#define IR_POLY_PART 0x8000u
#define IR_NO_SYMBOL 0xffffu

typedef struct Term {
    int64_t coefficient;
    int64_t divisor;                /* of the coefficient: at least 1, lowest terms */
    uint16_t symbol[IR_MAX_DEGREE]; /* ascending; unused ones IR_NO_SYMBOL */
} Term;

typedef struct Poly {
    uint32_t count; /* 0: the polynomial 0 */
    const Term *terms;
} Poly;

/* Symbol s is a multiple of at[s]; those from count on may be anything. */
typedef struct Multiples {
    const int64_t *at;
    uint32_t count;
} Multiples;

/* The greatest that divides both: positive, 1 where both are 0. */
int64_t ir_common_factor(int64_t a, int64_t b);

Poly ir_poly_int(Job *job, int64_t value);
Poly ir_poly_symbol(Job *job, uint32_t symbol);
/* Each sets *overflow (never clears it) where a coefficient passes 2^62 or a term the largest degree. */
Poly ir_poly_add(Job *job, Poly a, Poly b, bool *overflow);
Poly ir_poly_sub(Job *job, Poly a, Poly b, bool *overflow);
Poly ir_poly_mul(Job *job, Poly a, Poly b, bool *overflow);
/* Each coefficient by divisor, not 0. Whether that is whole is the caller's to know. */
Poly ir_poly_over(Job *job, Poly a, int64_t divisor, bool *overflow);
/* divisor times the polynomial, without fractions: the least divisor that does it. */
Poly ir_poly_whole(Job *job, Poly a, int64_t *divisor, bool *overflow);
/* Exact division by polynomial long division; false where it leaves a remainder or a quotient that may be no whole
 * number for some sizes. known: NULL where nothing is. */
bool ir_poly_div(Job *job, Poly a, Poly b, const Multiples *known, Poly *quotient);
bool ir_poly_is_whole(Poly a, const Multiples *known); /* every term is, for all sizes */
bool ir_poly_equal(Poly a, Poly b);
bool ir_poly_is_int(Poly a, int64_t *value); /* a constant? */
int ir_poly_compare(Poly a, Poly b);         /* a total order, the same every run */

/* values[s] of symbol s, or -1 where it stays a symbol. */
Poly ir_poly_fold(Job *job, Poly a, const int64_t *values, uint32_t count, bool *overflow);
/* The value, every symbol known; false on overflow past 2^62 and where it is not whole. */
bool ir_poly_eval(Poly a, const int64_t *dims, uint32_t dim_count, const int64_t *parts, uint32_t part_count,
                  int64_t *value);
/* names[s] of dim s; parts print as Pk. "2*Hk + Hq", "-64", "M*N", "N/2", "(M + N)/2". */
void ir_poly_print(Text *text, Poly a, const char *const *names, uint32_t count);

#endif
