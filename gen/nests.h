/* What several Prog passes do to nests. */
#ifndef GEN_NESTS_H
#define GEN_NESTS_H

#include "ir/prog.h"

/* The letter of axis i of count in the order of the data's dims: first r, last c, others between. */
char gen_axis_letter(uint32_t i, uint32_t count, bool inner);
/* Its place in that order. */
uint32_t gen_axis_order(char letter);

/* New axes of a nest. Old axis i becomes those of mask[i]: none (its extent is 1), one (kept, moved, or merged with
 * another), or several (split). */
typedef struct AxisChange {
    uint32_t axis_count, row_count;
    Axis axes[IR_MAX_AXES];
    uint32_t mask[IR_MAX_AXES];   /* of each old axis: the new ones that stand for it */
    uint32_t source[IR_MAX_AXES]; /* of each new axis: the old one whose stride it takes, */
    Poly factor[IR_MAX_AXES];     /* times this */
} AxisChange;

/* All axes kept as they are: the start of a change. */
AxisChange gen_axes_kept(Job *job, const Nest *nest);
void gen_nest_change_axes(Job *job, Prog *prog, Nest *nest, const AxisChange *change);

/* What each axis of a nest becomes where it is split: its parts, the outermost first. */
typedef struct AxisParts {
    uint32_t count;
    uint32_t of[IR_MAX_AXES]; /* the old axis */
    Poly extent[IR_MAX_AXES];
} AxisParts;
/* Splits the axes of two nests at the same places; with `sides`, row axes by themselves. False, and nothing changed,
 * where extents do not divide so. (gen/axes.c) */
bool gen_refine_axes(Job *job, Prog *prog, Nest *a, Nest *b, bool sides, AxisParts *a_parts, AxisParts *b_parts);

/* Whether the axes of two nests have equal extents and the same split into row and inner. */
bool gen_same_axes(const Nest *a, const Nest *b);
bool gen_same_access(const Nest *nest, const Access *a, const Access *b);
bool gen_nest_loads(const Nest *nest, uint32_t buf);
bool gen_nest_stores(const Nest *nest, uint32_t buf);
/* The only store of a nest to a buf, or NULL. */
const Stmt *gen_nest_store(const Nest *nest, uint32_t buf);
bool gen_nest_reduces(const Nest *nest);
/* Statements as limits count them: without stores to tmps, which vanish where their readers join. */
int64_t gen_nest_statements(const Prog *prog, const Nest *nest);
/* The first partial_accumulate, or NULL: those of a nest all consume the same axes into the same number of parts. */
const Stmt *gen_nest_partial(const Nest *nest);
/* Neither a sum nor a part of one: such work takes anyone's loops. */
bool gen_is_plain(const Nest *nest);
/* INNER, OUTER or MIXED: how what consumes these axes runs through memory. (gen/classify.c) */
NestClass gen_class_by_strides(Job *job, const Prog *prog, const Nest *nest, uint32_t consumed);
/* Both read one element of a buf at every point of their axes, at the same address. */
bool gen_share_full_read(const Nest *a, const Nest *b);
/* Which axis of the nest stands for each of the others', by a read of the same elements, full in the other; false where
 * there is none. source has room for IR_MAX_AXES. */
bool gen_match_axes(const Nest *like, const Nest *nest, uint32_t *source);
/* The nest with the axes of the other, which it finds by a read of the same elements that the other makes at every
 * point, in its order; false where it has no such read, or other axes. */
bool gen_turn_nest(Job *job, Prog *prog, const Nest *like, const Nest *nest, Nest *turned);
/* b must run after a: it reads a tmp that a stores, or overwrites in place what a reads. */
bool gen_nest_after(const Prog *prog, const Nest *a, const Nest *b);

/* The value that a stores where b's load reads a tmp, or IR_NONE. */
uint32_t gen_stored_value(const Prog *prog, const Nest *a, const Nest *b, const Stmt *load);
/* Adds a statement of `from`, whose earlier ones have become those of id. */
uint32_t gen_nest_add_from(Job *job, Nest *to, const Nest *from, Stmt stmt, const uint32_t *id);
/* Two nests of equal axes in one, a's statements first; what b loads of a's tmps is the value itself. */
Nest gen_join_nests(Job *job, const Prog *prog, const Nest *a, const Nest *b);

/* How large a stride is where every any dim is larger than any factor between strides: what orders them. */
int64_t gen_stride_magnitude(Job *job, const Prog *prog, Size stride);
/* A name for one more tmp. */
const char *gen_tmp_name(Job *job, const Prog *prog);

/* Where a nest stores a value twice in tmps, or makes a sum in parts twice, it does so once. (gen/share.c) */
void gen_share_stores(Job *job, Prog *prog);

/* Stores and sums in parts, which have no value, behind what has: a value's index is then its number in dumps. */
void gen_values_first(Job *job, Nest *nest);

/* Drops tmp buffers that nobody reads, what only they needed, and sizes that nothing names; renumbers the rest. */
void gen_tidy(Job *job, Prog *prog);
/* The same where one nest changed, a joined one; bufs and sizes keep their numbers until the next gen_tidy. */
void gen_tidy_nest(Job *job, Prog *prog, Nest *nest);

/* Marks what the marked statements need, directly or not. (gen/join.c) */
void gen_mark_needs(const Nest *nest, bool *needed);

#endif
