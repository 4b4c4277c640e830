/* What builds a nest of the lowering: gen/lower.c its loops and stores, gen/lower_value.c what they compute. */
#ifndef GEN_LOWER_BUILD_H
#define GEN_LOWER_BUILD_H

#include "gen/lower.h"

typedef struct Memo { /* a value at a map, once it was computed in the nest */
    const Map *map;
    uint32_t stmt;
    uint32_t next;
} Memo;

typedef struct Builder {
    Lower *lower;
    Job *job;
    Nest nest;
    bool empty;      /* nothing is stored, so any value will do: no load may touch memory that is not there */
    uint32_t reduce; /* the reduction whose nest this is, or IR_NONE */
    const Map *root; /* of the reduction's argument, or of the stored value */
    Atoms atoms;
    uint32_t axis[IR_MAX_AXES]; /* of each atom */
    Poly extents[IR_MAX_AXES];  /* of each axis */
    uint32_t *memo_of;          /* of graph->values: the first of its memos, or IR_NONE */
    IR_LIST(Memo) memos;
    bool given_up; /* statements made since are worthless: a loop is to be split, or a value to be stored first */
    Split split;
} Builder;

/* The statement that computes a value at a map, made where it is not there yet; worthless once build->given_up. */
uint32_t gen_demand(Builder *build, uint32_t id, const Map *map);

/* A statement for the Graph's value; later fields are the caller's. */
Stmt gen_start_stmt(const Builder *build, Op op, DType dtype, uint32_t id);
/* stride NULL: one element. base: elements from the buf's first to the map's 0. */
uint32_t gen_add_access(Builder *build, uint32_t buf, const Map *map, const Poly *stride, Poly base);
uint32_t gen_add_load(Builder *build, uint32_t id, DType dtype, uint32_t access);
uint32_t gen_convert(Builder *build, uint32_t id, uint32_t arg, DType dtype);
/* Of a tensor without elements any strides will do that keep maps injective. */
void gen_tensor_strides(Lower *lower, const Tensor *tensor, Poly *stride);
/* Known to have no element, of the dims of `mask`. */
bool gen_is_empty(const Extents *shape, uint32_t mask);

#endif
