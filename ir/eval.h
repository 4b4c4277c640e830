/* The oracle: Graph and Prog evaluated in double (those that compute in f64 in long double; integers and bools in
 * int64), each element with an error bound.
 *
 * A bound says how far a correct evaluation in f32 (f64) in any legal order may be from the value. It is first order,
 * from the ulps and derivative columns of the op table; where an operand's bound is large against it, from the op's
 * values at the ends of the operand's interval. A reduction adds depth * eps * sum of |terms|. What cannot be known is
 * infinity.
 * Where a value is within its bound of a discontinuity (comparison, floor, round, cast to integer), its bound grows to
 * reach the other side, and the element is counted: once, however many such ops it meets in a row. */
#ifndef IR_EVAL_H
#define IR_EVAL_H

#include "ir/prog.h"

/* One tensor's memory as the caller lays it out: element i of the tensor at bytes + offset of its strides. */
typedef struct View {
    void *bytes;                 /* of the first element */
    int64_t stride[IR_MAX_RANK]; /* in elements */
    int64_t extent[IR_MAX_RANK];
    uint8_t rank;
    DType dtype;
    /* In the same strides: of f64, what each element leaves of a long double; of any, how far it may be from what it
     * stands for. NULL: nothing. */
    const double *low, *bound;
} View;

typedef struct Scalar {
    double number;   /* of float scalars, already rounded to their dtype */
    int64_t integer; /* of integer scalars */
} Scalar;

/* A box of index space, [start, stop) a dim. */
typedef struct Box {
    int64_t start[IR_MAX_RANK], stop[IR_MAX_RANK];
} Box;

typedef struct Expected { /* elements of the box in row-major order */
    uint64_t count;
    double *number;     /* float outputs: rounded to the output's dtype */
    double *low;        /* f64 outputs: what number leaves of a long double; else NULL */
    double *bound;      /* before that rounding; INFINITY: anything passes */
    int64_t *integer;   /* integer and bool outputs */
    uint64_t uncertain; /* elements met within their bound of a discontinuity other than a float cast; at most count */
    uint32_t *cause;    /* of each element, id + 1 of the value where it, or what it is made of, was so met first; 0:
                           none; NULL: none anywhere */
} Expected;

/* What a cast to a float does to a number that the dtype does not hold: round it, as kernels do; nothing; or leave it
 * as it is and widen its bound to where it may be rounded to. */
typedef enum EvalCasts { EVAL_CASTS_ROUND, EVAL_CASTS_PASS, EVAL_CASTS_WIDEN } EvalCasts;

typedef struct EvalInput {
    const int64_t *dims; /* one value for each of graph->dims (fixed ones too) */
    const View *inputs;  /* one for each of graph->inputs */
    const View *held;    /* for each output, what it holds before (accumulate); may be NULL when none accumulates */
    const Scalar *scalars;
    const uint32_t *depth; /* longest chain of combines for each value of the Graph; 0 or NULL array: the extent */
    EvalCasts casts;
} EvalInput;

/* Output `output` of the graph over a box (NULL: all of it), on demand: only what the box needs is evaluated. The
 * result is in the job's arena. Composites must be expanded. */
Expected ir_eval_graph(Job *job, const Graph *graph, const EvalInput *input, uint32_t output, const Box *box);

/* Whether one stored element passes. The rule: within 1 ulp of the dtype (of the larger of both) plus the bound;
 * NaN meets NaN; beyond the largest finite value inf, within the bound of that either. */
bool ir_element_passes(DType dtype, double got, double number, double bound);

/* A Prog's buffers in numbers: what kernels would hold, rounded where the IR rounds. One for each of prog->bufs.
 * number/integer/bound have span elements, row-major unless strides of accesses say otherwise. */
typedef struct EvalBuf {
    int64_t span;   /* elements that accesses may touch */
    double *number; /* float bufs */
    double *bound;
    int64_t *integer; /* integer and bool bufs */
    double *low;      /* of programs that compute in f64: what number leaves of a long double; zeros where NULL */
} EvalBuf;

/* A buf with neither number nor integer gets memory in the job's arena (of span elements, or as many as its extents
 * say); so does a missing bound, as zeros. Only in and scalar bufs must hold something. Runs every nest in order. dims:
 * of prog->dims; parts: a value for each Pk, rows split into that many equal runs. Reading an element that was never
 * written, or an access outside its span, stops with STATUS_INTERNAL. */
void ir_eval_prog(Job *job, const Prog *prog, const int64_t *dims, const int64_t *parts, EvalBuf *bufs);

#endif
