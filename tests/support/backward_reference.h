/* Gradients of norms by the formulas of textbooks, in double, with a bound for each number of what f32 arithmetic may
 * make of it. Written apart from ir/eval*, from which it takes nothing.
 *
 * A bound follows from the inputs, which are exact: an operation of f32 adds half an ulp of its result, unless the
 * result is a float; a sum of n terms in any order whose longest chain has d adds is within d * 2^-24 of the sum of
 * their absolute values, d being at most n, and is exact where the terms are multiples of a number of which 2^24 of
 * them do not pass. So data on a grid leave nothing to chance, and other data what f32 is owed. */
#ifndef TESTS_BACKWARD_REFERENCE_H
#define TESTS_BACKWARD_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct Number { /* what is computed lies within error of value */
    double value, error;
} Number;

enum { BACKWARD_OUTPUTS = 4, BACKWARD_INPUTS = 8 };

/* Rows of equal inputs come again: row r of a group has the numbers of row r % period. Groups differ. */
typedef struct Geometry {
    int64_t groups, rows, columns; /* rows of each group */
    int64_t period;                /* at most rows */
} Geometry;

typedef enum Combine { COMBINE_ADD, COMBINE_MAX, COMBINE_MIN, COMBINE_MULTIPLY } Combine;

typedef struct Accuracy {
    int bits;     /* of a significand of the arithmetic: 24, 53 */
    double depth; /* adds in the longest chain of a sum; 0: not known, as many as it has terms */
} Accuracy;

typedef struct Row {
    const double *const *in; /* inputs in file order: the row's elements, its number, or what its columns have */
    int64_t columns;
    Accuracy accuracy;
    Number *elements[BACKWARD_OUTPUTS]; /* out: of the row's outputs, */
    Number *values;                     /* the row's numbers, */
    Number *terms[BACKWARD_OUTPUTS];    /* what each column's sums take from this row */
    Number *work[2];
} Row;

typedef enum OutKind { OUT_ELEMENTS, OUT_VALUE, OUT_COLUMNS } OutKind;
typedef struct Out {
    OutKind kind;
    uint32_t index; /* of elements, values, or columns */
} Out;

typedef struct Backward {
    const char *name;
    const char *text; /* NULL: examples/NAME.yaml */
    void (*row)(const Row *row);
    uint32_t element_count, value_count, sum_count;
    Combine combine[BACKWARD_OUTPUTS]; /* of each sum */
    uint32_t out_count;
    Out out[BACKWARD_OUTPUTS]; /* in file order */
    uint32_t added[3];         /* nonzero: sums 0, 1 and 2 are added up to column 0 */
    bool held;                 /* column 0 adds to what the output holds */
} Backward;

extern const Backward backward_graphs[]; /* examples/, in the order of their names */
extern const uint32_t backward_graph_count;
const Backward *backward_find(const char *name);

typedef struct Reference {
    Number *elements[BACKWARD_OUTPUTS]; /* groups * period rows of columns */
    Number *values[BACKWARD_OUTPUTS];   /* groups * period */
    Number *columns[BACKWARD_OUTPUTS];  /* groups rows of columns */
} Reference;

/* Where the numbers of an input stand for bank row i of a group. */
typedef struct BankInput {
    const double *numbers;
    int64_t row, group; /* numbers from one bank row, and one group, to the next */
} BankInput;

void reference_make(Reference *reference, const Backward *of, Geometry at, const BankInput *inputs, const double *held,
                    Accuracy accuracy);
void reference_free(Reference *reference);

/* ---- for rows of graphs that are no backward ones ---- */

Number number_exact(double value);
Number number_constant(double value, int bits);
Number number_add(Number a, Number b, int bits);
Number number_subtract(Number a, Number b, int bits);
Number number_multiply(Number a, Number b, int bits);
Number number_exp(Number a, int bits);
/* Of count numbers, each times as often as `times` says (NULL: once). */
Number number_combine(Combine combine, const Number *numbers, int64_t count, int64_t step, const int64_t *times,
                      Accuracy accuracy);

#endif
