/* Folding one op on constants. */
#ifndef GEN_FOLD_H
#define GEN_FOLD_H

#include "ir/graph.h"

/* Turns a value of `graph` to be, its arguments already in it, into OP_CONST where they are constants of rank 0 and the
 * op's error is half an ulp or none; otherwise leaves it. The result is rounded to the value's dtype, as the op rounds.
 */
bool gen_fold(const Graph *graph, Value *value);

#endif
