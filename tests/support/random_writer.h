/* A random graph while it is written. Internal to random_graph.c, random_tensors.c and random_motifs.c. Shapes are kept
 * as the texts that the file gives them, and equal texts are equal extents. */
#ifndef TESTS_RANDOM_WRITER_H
#define TESTS_RANDOM_WRITER_H

#include <string.h>

#include "tests/support/random_graph.h"

typedef struct Extent {
    const char *text;
    int64_t value;
    bool fixed; /* known when the graph is compiled */
} Extent;

typedef struct Node {
    const char *name;
    Kind kind;
    uint32_t rank;
    Extent extent[IR_MAX_RANK];
    bool whole; /* as many elements as the base shape, by the same product */
    uint8_t
        writable; /* inputs without a stride of 0: bit 0 the first half and bit 1 the second may be written in place */
    uint32_t halved; /* the dim of those halves, once one of them is taken */
    const char *dtype;
    bool stored; /* an output already */
} Node;

typedef struct Part { /* a slice of an input, which an output may be written to */
    uint32_t input;
    const char *text;
    Node shape;
} Part;

typedef struct Writer {
    Job *job;
    Random random;
    uint32_t flags;
    RandomGraph graph;
    IR_LIST(Node) nodes;
    IR_LIST(Part) parts;
    Extent base[IR_MAX_RANK];
    uint32_t base_rank;
    uint32_t row_dims;         /* RANDOM_ROWS_ONLY: reductions consume so many last dims of the base */
    int64_t most;              /* elements of the base shape */
    IR_LIST(uint32_t) indices; /* nodes that are inputs to pick by */
    Text dims, inputs, scalars, body, outputs;
    uint32_t scalar_count, truth_count;
} Writer;

static inline uint32_t below(Writer *w, uint32_t limit) { return random_below(&w->random, limit); }
static inline bool chance(Writer *w, uint32_t percent) { return below(w, 100) < percent; }
static inline const char *pick_text(Writer *w, const char *const *texts, uint32_t count) {
    return texts[below(w, count)];
}
static inline bool same_extent(const Extent *a, const Extent *b) { return !strcmp(a->text, b->text); }
static inline bool is_one(const Extent *extent) { return !strcmp(extent->text, "1"); }

Node *random_add_node(Writer *w, const Node *like, Kind kind, const char *expression);
void random_add_motif(Writer *w); /* a few nodes and outputs that seldom meet by chance (random_motifs.c) */
const char *random_shape_text(Writer *w, const Node *node); /* "[D0, 4]" */
Extent random_add_any(Writer *w, int64_t value);            /* a dim of which nothing is known before the launch */
void random_add_base(Writer *w);
void random_add_input(Writer *w, bool full); /* of the base's shape, or of part of it */
void random_add_index(Writer *w);
void random_add_element(Writer *w); /* of rank 0 */
void random_add_scalar(Writer *w);
void random_add_outputs(Writer *w);

#endif
