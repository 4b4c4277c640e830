/* What the files of the lowering share: gen/lower.c builds nests, gen/carry.c decides what a nest carries,
 * gen/lower_alias.c finds the buffers of in-place outputs and orders nests about them. */
#ifndef GEN_LOWER_H
#define GEN_LOWER_H

#include "gen/gen.h"
#include "gen/index_map.h"

/* Of each value of the Graph. A value is carried by the nest of a reduction where it is pointwise work in the reduced
 * domain that depends on no later reduction: the nest computes it once a row. */
typedef struct Carried {
    Extents shape;     /* folded */
    uint32_t carrier;  /* the reduction whose nest computes it; IR_NONE: computed inline wherever it is used */
    uint32_t latest;   /* the greatest id of a reduction it depends on, or IR_NONE */
    bool materialised; /* carried, and read in another nest: stored to a tmp */
    bool stored;       /* not carried, and computed in a nest of its own, which stores it to a tmp */
    uint32_t tmp;      /* its buf, once its nest was built */
} Carried;

typedef struct Slot { /* an input's memory as a buf: the whole, or the slice that an output is written to in place */
    uint32_t input;
    const Item *items; /* NULL: the whole */
    uint32_t item_count;
    uint32_t buf;
    Poly base; /* elements from the input's first to the slice's */
} Slot;

typedef struct Lower {
    Job *job;
    const Graph *graph;
    Prog *prog;
    const int64_t *fixed;     /* of graph->dims */
    const uint32_t *prog_dim; /* of graph->dims: index in prog->dims, or IR_NONE */
    Carried *values;
    uint32_t *input_buf, *output_buf, *scalar_buf;
    IR_LIST(Slot) slots; /* slices only */
    bool *emitted;       /* of graph->values: its nest is there: a reduction's or a stored value's */
    uint32_t must_store; /* a value that is read in an order in which it cannot be computed; IR_NONE: none was met */
    const bool *waiting; /* of graph->outputs: in place, carried, and yet stored by a nest of its own */
    uint32_t must_wait;  /* an output whose store has to come later than the nest that carries it; IR_NONE: none */
} Lower;

/* A polynomial over the Graph's dims, fixed ones folded, over those of Prog. */
Poly gen_lower_poly(Lower *lower, Poly poly);
Extents gen_lower_extents(Lower *lower, const Shape *shape);
/* Whether a value only renames dims of extent 1, so that it costs no statement. */
bool gen_is_view(const Value *value);

void gen_carry(Lower *lower);
/* Sets `stored` where more would be inline than a kernel should have. (gen/lower_long.c) */
void gen_lower_long(Lower *lower, const GenOptions *options);

/* The bufs of inputs, scalars and outputs, in-place slices with their own. */
void gen_lower_bufs(Lower *lower);
/* The buf to load an input through, and the elements to take off the address; items: those of an index right on it. */
uint32_t gen_lower_input_buf(Lower *lower, uint32_t input, const Item *items, uint32_t item_count, Place place,
                             Poly *base);
/* Moves nests that read aliased memory before the nest that overwrites it. Where that cannot be it sets must_wait, or
 * refuses the graph. */
void gen_lower_order(Lower *lower);

#endif
