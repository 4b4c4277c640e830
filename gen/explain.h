/* What the files of explain share. */
#ifndef GEN_EXPLAIN_H
#define GEN_EXPLAIN_H

#include "gen/bytes.h"
#include "gen/tell.h"

typedef struct Explain {
    Job *job;
    const Unit *unit;
    const Prog *prog;
    const Plan *plan;
    const Target *target;
    const int64_t *dims; /* by the guess; NULL: no number can be given */
    int64_t *parts;      /* in a launch of those */
    Tell *tell;
} Explain;

/* The number of a polynomial by the guess; false where it passes 2^62. */
bool gen_explain_value(const Explain *e, Poly poly, int64_t *value);
/* "formula = value", then `rest`; a number alone where the formula is one. */
void gen_explain_size(const Explain *e, const char *key, Poly poly, const char *rest);
/* "formula = value", or what of it is known. */
const char *gen_explain_bytes(const Explain *e, Poly poly);
/* The same for programs alone: an object. */
void gen_explain_json_bytes(const Explain *e, const char *key, Poly poly);
/* Microseconds that so many bytes take at the target's copy rate. */
double gen_explain_time(const Explain *e, int64_t bytes);
const char *gen_explain_number(Job *job, double number); /* rounded to three digits */

/* The step'th kernel: its work, strategy, grid, bytes. (gen/explain_kernel.c) */
void gen_explain_kernel(const Explain *e, uint32_t index);

#endif
