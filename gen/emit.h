/* What the files of emit share: the step that is being written and how its parts are named. */
#ifndef GEN_EMIT_H
#define GEN_EMIT_H

#include "gen/bytes.h"

typedef struct Emitter {
    Job *job;
    const Unit *unit;
    const Prog *prog;
    const Step *step;
    const Nest *nest;
    uint32_t inner;     /* axes of columns */
    uint32_t last;      /* innermost of them, or IR_NONE */
    bool tail;          /* rows may end within an access of the narrow variant */
    uint32_t phase;     /* being written */
    int site;           /* of the next collective: unique in the text */
    const char *remark; /* the last comment written, so that none comes twice in a row */
} Emitter;

/* ---- names and expressions (gen/emit_value.c) ---- */

const char *gen_storage_type(DType dtype); /* as memory holds it: "ng_bf16" */
const char *gen_compute_type(DType dtype); /* as arithmetic holds it: "float" */
const char *gen_value_name(Emitter *e, uint32_t id);
/* Column: computed once a column, and not the same for all lanes of an access; an array. */
bool gen_is_lane_value(const Emitter *e, uint32_t id);
/* r3_x, k5_e, o7_y: a statement's place with the graph's name or, for loads and stores, the buffer's. */
const char *gen_place_name(Emitter *e, char letter, uint32_t id);
const char *gen_param_name(const Emitter *e, uint32_t buf);
const char *gen_size_text(Emitter *e, Size size);
const char *gen_product_text(Emitter *e, const Size *sizes, uint32_t count); /* 64 bits where it may pass an int */
const char *gen_bits_text(Job *job, DType dtype, uint64_t bits);
const char *gen_identity_text(Job *job, Reduction reduction, DType dtype);
/* A statement's value as an operand of this compute dtype. */
const char *gen_operand(Emitter *e, uint32_t id, DType dtype);
/* The right side of a computed statement (no load, no reduction). */
const char *gen_expression(Emitter *e, const Stmt *stmt);
/* A reduction's text with $a the accumulator and $b what joins it. */
const char *gen_combine(Job *job, Reduction reduction, DType dtype, const char *a, const char *b);
/* The value converted to what the buffer of a store holds, in the type that arithmetic on it has. */
const char *gen_stored(Emitter *e, const Stmt *store);
/* "  // the graph's line" where the statement yields what the line says; "" where it is the one above. */
const char *gen_remark(Emitter *e, const Stmt *stmt);
/* Bytes of the graph file within one line of a comment: no control characters, no backslash, cut at `most`. */
const char *gen_comment_text(Job *job, const char *bytes, size_t count, size_t most);

/* ---- memory (gen/emit_access.c) ---- */

const char *gen_axis_name(Emitter *e, uint32_t axis); /* its index: "row", "c" or "a_h" */
/* The pointer of an access at the current row, column (or lane v, within: each lane its own) and phase. */
const char *gen_address(Emitter *e, uint32_t id, bool each_lane);
/* A row's columns lie at one stride through all its axes: the column's index need not be split for it. */
bool gen_is_linear(const Emitter *e, uint32_t access);
uint32_t gen_access_axes(const Emitter *e,
                         uint32_t access);               /* axes that its address names, without the column's index */
bool gen_is_constant(const Emitter *e, uint32_t access); /* read-only loads, __restrict__ */
bool gen_has_base(const Emitter *e, uint32_t access);    /* it has a pointer for its row */
const char *gen_base_name(Emitter *e, uint32_t access);
/* Pointers that hold for a row (all of them, but for row_stream), for all the CTA's rows, for the next rows, or for
 * what the CTA stores behind its last row, where registers are free again. */
typedef enum GenBases { BASES_OF_ROW, BASES_OF_CTA, BASES_AHEAD, BASES_OF_PARTS } GenBases;
void gen_emit_bases_at(Emitter *e, Text *out, int indent, GenBases where);
void gen_emit_bases(Emitter *e, Text *out, int indent); /* of a row */
/* The column's index split into those axes that are used; pointwise: the access's; column: the row's. */
void gen_emit_split(Emitter *e, Text *out, int indent, uint32_t used);
/* Column: the access's index split into the kept axes. */
void gen_emit_column_split(Emitter *e, Text *out, int indent, uint32_t used);
const char *gen_left(Emitter *e); /* elements from this access's first to the row's end */

/* ---- kernels (gen/emit_kernel.c) ---- */

/* The kernels of one step: a function of both variants, and an entry for each. */
void gen_emit_step(Job *job, const Unit *unit, uint32_t index, int *site, Text *out);

const char *gen_chunk_index(const Emitter *e);           /* of kept arrays, in the lanes' loop */
const char *gen_load_text(Emitter *e, const Stmt *load); /* a pack */
const char *gen_pack_type(Emitter *e, const Stmt *load);
const char *gen_row_condition(Emitter *e, const Stmt *load); /* of its being there; NULL: always */
const char *gen_row_load_text(Emitter *e, const Stmt *load); /* one element */
bool gen_has_lanes(const Phase *phase);                      /* something is done for each element */
/* Whether a row store may write what other threads of the row still have to load. */
bool gen_row_stores_race(const Emitter *e);

/* ---- reductions (gen/emit_reduce.c) ---- */

void gen_emit_accumulators(Emitter *e, Text *out, int indent);
void gen_emit_reduce(Emitter *e, Text *out, int indent, uint32_t id); /* what an element adds */
void gen_emit_pair_lanes(Emitter *e, Text *out, int indent);          /* an access's elements, for pairs */
void gen_emit_pair_adds(Emitter *e, Text *out, int indent);           /* what an access adds to pairs */
void gen_emit_combine(Emitter *e, Text *out, int indent);             /* the row's threads */
bool gen_has_warp_slots(const Emitter *e);                /* some row's reduction passes through shared memory */
bool gen_is_for_all_rows(const Emitter *e, uint32_t id);  /* row_stream: accumulated for the CTA's rows */
uint32_t gen_slots_offset(const Emitter *e, uint32_t id); /* of a reduction, in shared memory */

/* ---- heads and entries (gen/emit_head.c) ---- */

void gen_emit_params(Emitter *e, Text *out, bool types);
void gen_emit_head(Emitter *e, Text *out);
void gen_emit_place(Emitter *e, Text *out, int indent);
void gen_emit_trips(Emitter *e, Text *out, int indent);
void gen_emit_entry(Emitter *e, const Variant *variant, uint32_t index, Text *out); /* index: among all kernels */
void gen_emit_declarations(Job *job, const Unit *unit, Text *out); /* of every kernel, that stand elsewhere */

/* ---- column kernels (gen/emit_column.c) ---- */

void gen_emit_columns(Emitter *e, Text *out, int indent);        /* this thread's columns, its part of the rows */
void gen_emit_column_values(Emitter *e, Text *out, int indent);  /* what a phase computes and stores once a column */
void gen_emit_column_combine(Emitter *e, Text *out, int indent); /* the groups' accumulators */

/* ---- kernels of rows with sums across them (gen/emit_stream.c) ---- */

void gen_emit_share(Emitter *e, Text *out, int indent); /* this CTA's rows */
void gen_emit_sums(Emitter *e, Text *out, int indent);  /* their accumulators, at their identities */
void gen_emit_resident_packs(Emitter *e, Text *out, int indent);
void gen_emit_resident_split(Emitter *e, Text *out, int indent);
void gen_emit_resident(Emitter *e, Text *out, int indent);
void gen_emit_ahead(Emitter *e, Text *out, int indent); /* the first rows' loads */
void gen_emit_next(Emitter *e, Text *out, int indent);  /* what was loaded ahead, and the next rows' loads */
void gen_emit_spill(Emitter *e, Text *out, int indent); /* the slots' accumulators to shared memory */
void gen_emit_part_bases(Emitter *e, Text *out, int indent);
void gen_emit_parts_split(Emitter *e, Text *out, int indent);
void gen_emit_parts(Emitter *e, Text *out, int indent); /* their sums, stored as the CTA's part */

/* ---- skeletons (gen/emit_skeleton.c) ---- */

typedef struct Skeleton {
    void *state;
    bool (*wanted)(void *state, const char *name);
    void (*fill)(void *state, const char *name, Text *out, int indent);
    void (*enter)(void *state, uint32_t turn); /* before each turn of `each` */
    uint32_t turns;
} Skeleton;
void gen_skeleton(Job *job, const char *text, const Skeleton *skeleton, Text *out);

/* ---- helpers (gen/emit_helpers.c) ---- */

/* What a unit does with each dtype, a bit each. */
typedef struct GenUse {
    uint32_t computes; /* arithmetic, in compute dtypes */
    uint32_t loads, stores;
} GenUse;

/* The helpers that `kernels` names, with all that they name. */
void gen_emit_helpers(Job *job, const char *kernels, GenUse use, Text *out);
void gen_emit_host_prelude(Job *job, Text *out);

/* ---- the launcher (gen/launcher.c) ---- */

/* All but the launcher's own functions lies in it, so that two files may be one translation unit. */
const char *gen_emit_space(Job *job, const Unit *unit);
void gen_emit_launcher(Job *job, const Unit *unit, Text *out);
void gen_emit_header(Job *job, const Unit *unit, Text *out);

#endif
