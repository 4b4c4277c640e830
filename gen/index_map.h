/* Where a value is read in a nest: for each of its dims an affine form of the nest's axes. Walking from a user to its
 * argument turns the user's map into the argument's. All polynomials are over Prog's dims, fixed ones folded. */
#ifndef GEN_INDEX_MAP_H
#define GEN_INDEX_MAP_H

#include "ir/prog.h"

typedef struct Extents { /* a shape with its fixed dims folded */
    uint8_t rank;
    Poly extent[IR_MAX_RANK];
} Extents;

typedef struct Affine { /* offset + sum of axis*stride */
    Poly offset;
    Poly stride[IR_MAX_AXES];
} Affine;

/* A value that picks by an index tensor is read at a gathered index too. */
typedef struct Gather {
    bool is;
    uint8_t dim;    /* of the map: its form plus index*factor */
    uint32_t index; /* statement of the nest */
    Poly factor;
    Poly extent; /* the index is below it */
} Gather;

typedef struct Map {
    uint8_t rank;
    Affine dim[IR_MAX_RANK];
    Gather gather;
} Map;

/* An axis of a nest before it has a letter: a digit of one dim of the nest's root value. */
typedef struct Atom {
    uint8_t dim;
    Poly extent;
} Atom;

typedef struct Atoms { /* in row-major order of the root's dims */
    uint32_t count;
    Atom at[IR_MAX_AXES];
} Atoms;

typedef enum ReshapeResult {
    RESHAPE_DONE,
    RESHAPE_SPLIT,     /* an atom has to be split first */
    RESHAPE_IMPOSSIBLE /* no split helps */
} ReshapeResult;

typedef struct Split { /* atom -> high, low */
    uint32_t atom;
    Poly high, low;
} Split;

bool gen_poly_is(Poly a, int64_t value);
Poly gen_poly_mul(Job *job, Poly a, Poly b); /* stops the job on overflow, as the next two */
Poly gen_poly_add(Job *job, Poly a, Poly b);
Poly gen_poly_sub(Job *job, Poly a, Poly b);
/* Row-major strides of a shape; an empty dim counts as one, so that maps stay injective. */
void gen_row_major(Job *job, const Extents *shape, Poly *stride);

void gen_atoms_start(Atoms *atoms, const Extents *root);
void gen_atoms_split(Job *job, Atoms *atoms, Split split);
/* The map of the root itself; `axis` gives the nest's axis of each atom. Atoms of extent 1 are in no map. */
const Map *gen_map_root(Job *job, const Extents *root, const Atoms *atoms, const uint32_t *axis);
/* An operand of elementwise work: trailing dims aligned, dims of extent 1 at 0. */
const Map *gen_map_operand(Job *job, const Map *map, const Extents *user, const Extents *arg);
/* The polynomials of items are folded. Where one gathers, *gather is by what (dim is set here), and rank that of the
 * index tensor, at whose map (gen_map_gathered) the index was computed. NULL: two index tensors pick at once. */
const Map *gen_map_index(Job *job, const Map *map, const Item *items, uint32_t count, const Gather *gather,
                         uint8_t rank);
/* Where the index tensor of the items is read. */
const Map *gen_map_gathered(Job *job, const Map *map, const Item *items, uint32_t count, uint8_t rank);
/* `axes` are the nest's axes' extents; a split names an axis of the nest. known: of the dims. */
ReshapeResult gen_map_reshape(Job *job, const Map *map, const Extents *user, const Extents *arg, const Poly *axes,
                              uint32_t axis_count, const Multiples *known, const Map **result, Split *split);
/* sum of forms times strides: an address. */
Affine gen_map_address(Job *job, const Map *map, const Poly *stride);
bool gen_map_equal(const Map *a, const Map *b);

#endif
