/* What the printer and the reader of Prog share; ir/prog_print.c says what the text is. */
#ifndef IR_PROG_TEXT_H
#define IR_PROG_TEXT_H

#include "ir/prog.h"

#define IR_BUF_KINDS 5
extern const char *const ir_buf_kind_names[IR_BUF_KINDS]; /* by BufKind */

/* Whether bufs of this kind stand for tensors of the Graph. */
bool ir_buf_has_tensor(BufKind kind);
/* The tensor of a buf that says nothing of it: one more than the largest of its kind among the bufs before. */
uint32_t ir_next_tensor(const Prog *prog, BufKind kind, uint32_t buf);
bool ir_has_access(Op op);
/* sK or PK: what a size or a part is called. */
bool ir_looks_bound(const char *name, size_t count);

#endif
