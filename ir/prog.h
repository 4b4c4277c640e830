/* Prog: the loop IR. Sizes, buffers and nests; a nest is axes and a list of statements.
 *
 * References are 32-bit indices, so a nest clones by memcpy and prints the same every time. An axis is a name and an
 * extent, neither parallel nor reduced: reduce and partial_accumulate name the axes that they consume, and every
 * statement carries its domain, the axes it varies over, as a bit mask over the nest's axes.
 * The text form is read back by ir_prog_read. Invariants V1 to V8: ir/verify.c. */
#ifndef IR_PROG_H
#define IR_PROG_H

#include "ir/graph.h"

#define IR_MAX_AXES 16

/* An extent, stride or offset: a number or a reference that is bound at launch. */
typedef enum SizeKind { SIZE_INT, SIZE_DIM, SIZE_EXPRESSION, SIZE_PART } SizeKind;
typedef struct Size {
    SizeKind kind;
    int64_t value; /* the number; or the index in prog->dims, prog->sizes, prog->parts */
} Size;

typedef enum BufKind { BUF_IN, BUF_OUT, BUF_TMP, BUF_WORKSPACE, BUF_SCALAR } BufKind;

typedef struct Buf {
    const char *name;
    DType dtype;
    uint8_t rank;
    Size extent[IR_MAX_RANK];
    BufKind kind;
    int64_t align;      /* bytes, promised; 0: the dtype's size */
    uint32_t may_alias; /* the buf whose memory this may be, or IR_NONE; set on the out buf */
    uint32_t tensor;    /* index among the Graph's inputs, outputs or scalars; IR_NONE for tmp and ws */
    Size offset;        /* elements from the tensor's pointer to this buf's first (a slice with a buf of its own) */
} Buf;

typedef struct Axis {
    char id; /* one lower-case letter */
    Size extent;
} Axis;

/* buf[offset + sum of axis*stride + gathered*index_stride], in elements; strides are signed. */
typedef struct Access {
    uint32_t buf;
    Size offset;
    Size stride[IR_MAX_AXES]; /* SIZE_INT 0: the axis is not in it */
    uint32_t index;           /* statement whose value is the gathered index, or IR_NONE */
    Size index_stride;
    Size index_extent; /* the index is below it; SIZE_INT -1: not known */
} Access;

typedef struct Stmt {
    Op op;               /* primitives, CONST, CAST, SIZE, IOTA, REDUCE, LOAD, STORE, PARTIAL_ACCUMULATE */
    DType dtype;         /* of the value; a load widens exactly to it; a cast rounds to it */
    uint8_t result;      /* REDUCE of online or welford: which result */
    Reduction reduction; /* REDUCE, PARTIAL_ACCUMULATE */
    uint32_t domain;     /* axes that the value varies over; of a store, those of its map */
    uint32_t consumed;   /* REDUCE, PARTIAL_ACCUMULATE: the axes it consumes */
    uint32_t arg_count;
    uint32_t arg[3];  /* statements of this nest, before this one */
    uint32_t access;  /* LOAD, STORE, PARTIAL_ACCUMULATE: of nest->accesses */
    uint64_t bits;    /* CONST: the bits in dtype (f32: 32, f64: 64, i64, bool) */
    Size size;        /* SIZE */
    uint32_t axis;    /* IOTA */
    const char *name; /* the graph's, or NULL */
    Place place;
    uint32_t value; /* the Graph's value (its origin) that this computes, or IR_NONE */
} Stmt;

typedef enum NestClass {
    CLASS_POINTWISE,
    CLASS_INNER,
    CLASS_OUTER,
    CLASS_MIXED,
    CLASS_ROW,
    CLASS_ROW_PARTIAL,
    CLASS_FINALIZE,
    CLASS_COUNT
} NestClass;

typedef struct Nest {
    const char *name;
    NestClass class;
    uint32_t axis_count;
    uint32_t row_count; /* the first so many axes are row axes, the rest inner, in loop order */
    Axis axes[IR_MAX_AXES];
    IR_LIST(Stmt) stmts;
    IR_LIST(Access) accesses;
} Nest;

typedef struct Prog {
    const char *name;
    IR_LIST(Dim) dims;           /* the any dims, in file order (fixed ones are numbers by now) */
    IR_LIST(Poly) sizes;         /* sK: polynomial in prog->dims and parts */
    IR_LIST(const char *) parts; /* "P0"; a symbol IR_POLY_PART + k of a Poly */
    IR_LIST(Buf) bufs;
    IR_LIST(Nest) nests;
} Prog;

Prog *ir_prog_create(Job *job, const char *name);
Prog *ir_prog_clone(Job *job, const Prog *prog);
const char *ir_class_name(NestClass class);

static inline Size ir_size_int(int64_t value) { return (Size){SIZE_INT, value}; }
static inline bool ir_size_equal(Size a, Size b) { return a.kind == b.kind && a.value == b.value; }
static inline bool ir_size_is(Size size, int64_t value) { return size.kind == SIZE_INT && size.value == value; }
/* A polynomial over prog->dims as a Size: a number, a dim, or an entry of prog->sizes (found or added). */
Size ir_prog_size(Job *job, Prog *prog, Poly poly);
Poly ir_size_poly(Job *job, const Prog *prog, Size size);
void ir_size_print(Text *text, const Prog *prog, Size size);

/* Adds a statement, or returns the equal one already there (hash-consing: all fields but name, place and value; stores
 * and partial_accumulates are never merged). Sets the domain, that of a load
 * or a store from its access. */
uint32_t ir_nest_add(Job *job, Nest *nest, const Stmt *stmt);
uint32_t ir_nest_add_access(Job *job, Nest *nest, const Access *access);
/* Whether a statement of nests.at[nest] is made of sizes and iotas alone, in earlier nests too. As an index along a dim
 * that is empty it picks 0. */
bool ir_stmt_is_computed(Job *job, const Prog *prog, uint32_t nest, uint32_t stmt);
/* V2's domain of an access. */
uint32_t ir_access_domain(const Nest *nest, const Access *access);
uint32_t ir_nest_axis(const Nest *nest, char id); /* its index, or IR_NONE */
uint32_t ir_nest_row_mask(const Nest *nest);
uint32_t ir_nest_inner_mask(const Nest *nest);
/* V7: phase of each statement; phases = count. The array is in the job's arena. */
uint32_t *ir_nest_phases(Job *job, const Nest *nest, uint32_t *count);
/* A load with nonzero stride in every axis of its nest. */
bool ir_is_full_read(const Nest *nest, const Stmt *stmt);
/* Drops statements that no store needs, and accesses that none uses, keeping the order. */
void ir_nest_sweep(Job *job, Nest *nest);

void ir_prog_print(Text *text, const Prog *prog); /* (ir/prog_print.c) */
/* Reads a dump back; reports at its place and stops the job on bad text. Places are those of this text. */
Prog *ir_prog_read(Job *job, const char *bytes, size_t count); /* (ir/prog_read.c) */
/* V1 to V8; the first breach as a message that starts with its name ("V5: ..."), or NULL. (ir/verify.c) */
const char *ir_verify(Job *job, const Prog *prog);

bool ir_is_value(Op op); /* a store or a partial_accumulate is none */
/* The number that dumps give a value: its place among the nest's values. */
uint32_t ir_value_number(const Nest *nest, uint32_t stmt);

#endif
