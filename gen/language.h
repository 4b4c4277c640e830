/* What the graph language has, as rows for people: `normgen ops`. */
#ifndef GEN_LANGUAGE_H
#define GEN_LANGUAGE_H

#include "ir/ops.h"
#include "ir/text.h"

/* A call that is no row of the tables of ir/, because it names a dtype, a shape or an index. */
typedef enum Builtin { BUILTIN_CAST, BUILTIN_ARANGE, BUILTIN_RESHAPE, BUILTIN_NUMEL, BUILTIN_SIZE } Builtin;
#define GEN_BUILTINS 5

bool gen_builtin_find(const char *name, Builtin *builtin);
const char *gen_builtin_name(Builtin builtin);
/* Whether the language has a call of this name, whatever its kind: so no function may have it. */
bool gen_is_operation(const char *name);

/* Puts row `index` as one line, its fields divided by tabs:
 *   name, group, signature with defaults, what it gives, dtype of the result, formula in the graph language,
 *   error, derivative, CUDA text.
 * A field that does not apply is empty. False past the end. */
bool gen_language_row(Text *text, uint32_t index);
/* The signature of a call of the language; NULL: it has none of this name. */
const char *gen_signature(Job *job, const char *name);

#endif
