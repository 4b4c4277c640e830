/* What other languages write, and what is written here instead: names of PyTorch, NumPy and JAX. */
#ifndef GEN_ADVICE_H
#define GEN_ADVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What to write instead of a call of this name; NULL: it is no name that others use. */
const char *gen_advise_call(const char *name);
/* The index'th such name, its length in *count, and its advice; NULL past the end. */
const char *gen_advice_row(uint32_t index, size_t *count, const char **advice);
/* What to write instead of a name that stands for a value. */
const char *gen_advise_name(const char *name);
/* The parameter's name here; NULL: others have no such keyword either. */
const char *gen_advise_keyword(const char *name);
/* Instead of x.NAME without a call. */
const char *gen_advise_attribute(const char *name);
/* `torch` of torch.exp(x). */
bool gen_is_module(const char *name);

#endif
