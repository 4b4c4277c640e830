/* Graph: SSA values with dtype, shape and place. Made by parse, rewritten by graph passes into a new Graph, then read.
 *
 * Values are in topological order: an argument's id is smaller than its user's. Elementwise ops broadcast by NumPy's
 * rule with trailing dims aligned; a symbol meets only itself or 1.
 * A value's dtype is what its elements are: an input and a cast have a storage dtype (bf16 ...), which arithmetic
 * widens exactly; every other op has the dtype that ir_op_dtype gives (f32, f64, i64, bool).
 * Nothing rounds but OP_CAST and the stores of outputs. */
#ifndef IR_GRAPH_H
#define IR_GRAPH_H

#include "ir/ops.h"
#include "ir/poly.h"

#define IR_NONE UINT32_MAX
#define IR_MAX_RANK 6
#define IR_MAX_NODES 4096
#define IR_MAX_EXTENT ((int64_t)1 << 62) /* extents and their products stay below */

typedef struct Dim {
    const char *name;
    int64_t value;    /* of a fixed dim; -1: any, given at launch */
    int64_t hint;     /* of an any dim; -1: none */
    int64_t max;      /* -1: none */
    int64_t multiple; /* 1: none */
    bool derived;     /* an exact quotient of fixed dims such as C/G, with its number; not declared by the file */
    Place place;
} Dim;

typedef struct Shape {
    uint8_t rank;
    Poly extent[IR_MAX_RANK];
} Shape;

/* One item of x[...], after `...` was written out. For each input dim in order: a range or a gather; new axes between.
 */
typedef enum ItemKind { ITEM_RANGE, ITEM_NEW_AXIS, ITEM_AT, ITEM_GATHER } ItemKind;
typedef struct Item {
    ItemKind kind;
    Poly start;     /* ITEM_RANGE: first index; ITEM_AT: the one index, whose dim is dropped */
    Poly stop;      /* ITEM_RANGE: one past the last */
    uint32_t index; /* ITEM_GATHER: an integer value, whose dims take the place of this one; at most one an OP_INDEX */
} Item;

/* An operand of the language that need not be a value of the graph: what a parameter of a composite stands for.
 * Numbers, sizes and operations on nothing else are weak: they take their dtype from what they meet. */
typedef enum ArgKind { ARG_NONE, ARG_VALUE, ARG_NUMBER, ARG_SIZE, ARG_OP, ARG_BOOL, ARG_TEXT, ARG_LIST } ArgKind;
typedef struct Arg {
    ArgKind kind;
    Place place;
    uint32_t value;         /* ARG_VALUE: an id */
    bool is_integer;        /* ARG_NUMBER: written without point and exponent */
    double number;          /* ARG_NUMBER */
    int64_t integer;        /* ARG_NUMBER that is_integer; ARG_BOOL */
    Poly size;              /* ARG_SIZE */
    Op op;                  /* ARG_OP: on weak operands */
    uint16_t depth;         /* ARG_OP: of the ARG_OPs below it */
    const char *text;       /* ARG_TEXT */
    uint32_t count;         /* ARG_OP, ARG_LIST */
    const struct Arg *item; /* ARG_OP, ARG_LIST */
} Arg;

/* The call of an OP_COMPOSITE: an argument for each parameter. */
typedef struct Call {
    const char *callee;
    uint32_t line; /* of ir/composites.def, from 0 */
    uint32_t count;
    const char *const *params;
    Arg *args;
    bool *given; /* false: the default */
} Call;

typedef struct Value {
    Op op;
    DType dtype;
    Shape shape;
    Place place;
    const char *name;  /* of the node in the file, or NULL */
    uint32_t origin;   /* id in the Graph that expand made; itself there, IR_NONE in what parse made */
    uint8_t arg_count; /* primitives, cast, reduce, index, reshape, composite */
    uint32_t arg[3];   /* ids; composites keep theirs in call */
    uint64_t bits;   /* OP_CONST: the double's bits for float dtypes (already representable in them), else the int64 */
    uint32_t tensor; /* OP_INPUT: of graph->inputs; OP_SCALAR: of graph->scalars */
    Poly size;       /* OP_SIZE: its value; OP_IOTA: its extent */
    Reduction reduction; /* OP_REDUCE */
    uint32_t dims;       /* OP_REDUCE: bit mask of the argument's dims that it consumes */
    bool keepdim;        /* OP_REDUCE: consumed dims stay with extent 1 */
    uint8_t item_count;  /* OP_INDEX */
    Item *items;
    Call *call; /* OP_COMPOSITE */
} Value;

typedef struct TypeName {
    const char *name;
    DType dtype;
} TypeName;

/* An input, an output or a scalar. Strides are in elements; shape and strides are what the file says. */
typedef struct Tensor {
    const char *name;
    DType dtype;
    const char *type; /* the file's name for it, one of graph->types, or NULL */
    Shape shape;      /* rank 0: one element */
    Poly stride[IR_MAX_RANK];
    bool contiguous; /* no strides: were given */
    int64_t align;   /* bytes that the pointer is promised to be a multiple of; 0: only the dtype's size */
    Place place;
    /* outputs */
    uint32_t value;      /* what is stored */
    uint32_t inplace;    /* input whose memory this may be, or IR_NONE */
    Item *inplace_items; /* its slice, one item a dim of the input; NULL: the whole */
    uint8_t inplace_item_count;
    bool accumulate; /* adds to what the output holds */
    /* scalars */
    bool has_default;
    double default_float;
    int64_t default_int;
} Tensor;

typedef struct Graph {
    const char *name;
    IR_LIST(TypeName)
    types;             /* of the file, where nothing but tensors names them: with another dtype for one, as -D gives
                          it, the graph is still what the file says then */
    IR_LIST(Dim) dims; /* a symbol of Poly is an index here */
    IR_LIST(Tensor) inputs;
    IR_LIST(Tensor) outputs;
    IR_LIST(Tensor) scalars;
    IR_LIST(Value) values;
} Graph;

Graph *ir_graph_create(Job *job, const char *name);
/* Appends a zeroed value and returns its id; at most IR_MAX_NODES, else an error at place and the job stops. */
uint32_t ir_graph_add(Job *job, Graph *graph, Op op, DType dtype, Place place);

/* Builders that type what they make; they report at place and stop the job where it is illegal. */
uint32_t ir_graph_const(Job *job, Graph *graph, DType dtype, double number, int64_t integer, Place place);
uint32_t ir_graph_op(Job *job, Graph *graph, Op op, const uint32_t *args, Place place);
uint32_t ir_graph_cast(Job *job, Graph *graph, uint32_t arg, DType dtype, Place place);
uint32_t ir_graph_reduce(Job *job, Graph *graph, Reduction reduction, uint32_t arg, uint32_t dims, bool keepdim,
                         Place place);
uint32_t ir_graph_index(Job *job, Graph *graph, uint32_t arg, const Item *items, uint32_t count, Place place);
uint32_t ir_graph_reshape(Job *job, Graph *graph, uint32_t arg, const Shape *shape, Place place);

/* Refuses extents that are negative for the fixed dims, and extents and products of them that reach 2^62. */
void ir_graph_check_shape(Job *job, const Graph *graph, const Shape *shape, Place place);
/* Whether a size stays below 2^62 when the fixed dims are put in. */
bool ir_graph_size_fits(Job *job, const Graph *graph, Poly size);

/* The value of each fixed dim, -1 for any dims: what ir_poly_fold takes. */
int64_t *ir_graph_fixed(Job *job, const Graph *graph);
const char **ir_graph_dim_names(Job *job, const Graph *graph);
/* Strides of a tensor without gaps, by its shape; false: beyond 2^62. */
bool ir_tensor_make_contiguous(Job *job, Tensor *tensor);
/* "bf16[M, N]" */
void ir_print_type(Text *text, const Graph *graph, DType dtype, const Shape *shape);
/* Broadcast shape of two; false where they do not meet. */
bool ir_shape_broadcast(Job *job, const Shape *a, const Shape *b, Shape *result);
/* The value with each id that it names put through a map: arguments, gather's indices, a call's operands. */
Value ir_value_mapped(Job *job, const Value *value, const uint32_t *map);
/* What a value is computed from: arguments, a gather's index, a call's operands. Some of ir_value_operand_count are
 * none, as a slice or a number of a call: IR_NONE. One may come twice. */
uint32_t ir_value_operand_count(const Value *value);
uint32_t ir_value_operand(const Value *value, uint32_t index);
bool ir_value_uses(const Value *value, uint32_t id);
uint32_t ir_gather_index(const Value *value); /* the value that an OP_INDEX picks by; IR_NONE: there is none */
/* Whether a value is made of dims and arange alone. As an index along a dim that is empty at launch it picks 0. */
bool ir_value_is_computed(Job *job, const Graph *graph, uint32_t id);
bool ir_item_takes_all(const Item *item, Poly extent); /* the whole of a dim, as `:` */
/* Sets marks[id] for each of them. */
void ir_value_mark_args(const Value *value, bool *marks);
/* Itself, or what it is a slice, an index or a reshape of. */
uint32_t ir_graph_behind_views(const Graph *graph, uint32_t id);
/* The tensor of this name, or IR_NONE. */
uint32_t ir_tensor_find(const Tensor *tensors, uint32_t count, const char *name);
/* What an extent is taken to be where no launch says, always one that the dim allows. Its number or the most that it
 * can be; its number, its hint or the most; that or 1024. -1: nothing says. */
int64_t ir_dim_most(const Dim *dim);
int64_t ir_dim_hint(const Dim *dim);
int64_t ir_dim_guess(const Dim *dim);
/* What each dim, as a symbol of Poly, is a multiple of; a fixed one of its number. */
Multiples ir_dim_multiples(Job *job, const Dim *dims, uint32_t count);
/* Structure equal but for places, origins and names of inner values. */
bool ir_graph_equal(const Graph *a, const Graph *b);

bool ir_call_equal(const Call *a, const Call *b); /* (ir/graph_print.c) */

/* Prints the graph as a graph file that reads back to an equal Graph. (ir/graph_print.c) */
void ir_graph_print(Text *text, const Graph *graph);

/* Whether a size is above 0 for all values of the any dims. */
bool ir_size_is_positive(const Graph *graph, Poly size);
/* Whether any dims decide that the value is legal: a slice or an index that could leave its extent, amax or amin that
 * could be of nothing. A launch looks at those. */
bool ir_value_needs_check(const Graph *graph, const Value *value);

/* For each value whose elements are indices of others, as ids in table[ids], themselves or moved, picked from or cast
 * between integers: how many elements there are to pick from, of several gathers the least, and no more than the dtypes
 * on the way hold; 0 where nothing can be picked. INT64_MAX for any other value. dims: of each symbol.
 * (ir/graph_indices.c) */
void ir_graph_index_limits(const Graph *graph, const int64_t *dims, int64_t *limits);

/* V8's proof on the Graph: whether two item lists of one input are disjoint on some dim for every value of the dims. */
bool ir_items_disjoint(Job *job, const Graph *graph, const Item *a, const Item *b, uint32_t count);

#endif
