/* What the parts of grad share: one graph that holds the forward values and, behind them, the gradients. */
#ifndef GEN_GRAD_BUILD_H
#define GEN_GRAD_BUILD_H

#include "gen/front.h"
#include "gen/grad.h"

/* Statements of a derivative of the tables as far as they were built: names that the next ones see. */
typedef struct Bindings {
    const char **names;
    Arg *args;
    uint32_t count, capacity;
} Bindings;

/* A composite whose gradient its line of ir/composites.def gives. */
typedef struct Derived {
    uint32_t value;    /* the composite's */
    const Call *call;  /* operands are values of the joint graph */
    Bindings bindings; /* its parameters, then the line's values that need no gradient */
    const char *owner; /* the node that it stands in, or NULL */
} Derived;

/* The gradient of a slice that is one of several equal parts of a dim. */
typedef struct EqualPart {
    uint32_t value; /* that was cut; IR_NONE: done */
    uint32_t dim, part, count;
    Poly length;       /* of a part */
    uint32_t gradient; /* with a dim for each of the value's */
} EqualPart;

/* How well the backward graph must know a value. */
typedef enum Known {
    KNOWN_ROUNDED, /* as well as what it is made of */
    KNOWN_SIGN,    /* and which side of 0 it is on, or that it is 0 */
    KNOWN_EXACT    /* not as an output rounded it */
} Known;

typedef struct Joint {
    Job *job;
    const GradOptions *options;
    const Graph *from;
    Front front; /* builds in `graph`, a composite by gen_grad_put_call */
    Graph *graph;
    uint32_t *of_from;    /* of each value of `from`: the one in `graph` */
    IR_LIST(bool) active; /* of each forward value: a gradient flows through it to what was asked for */
    bool *wanted;         /* of each input of `from` */
    IR_LIST(Derived) derived;
    uint32_t
        *gradient; /* of each forward value: its gradient so far, whose dims of 1 may stand for whole ones; IR_NONE */
    IR_LIST(EqualPart) slices;   /* that wait for the others of their value */
    IR_LIST(const char *) taken; /* names that no other value may get */
    uint32_t file_names;         /* the first of them, which the file has */
    const bool *taken_outputs;   /* of each output of `from`: its gradient comes in */
    const char *owner;           /* the node that is being copied, or NULL */
    bool several;                /* composites whose values get names: those then begin with the owner's */
    /* of each value, once simplified */
    const Known *known;
    const DType *coarsest; /* float dtype among what it is made of */
    Place place;           /* of the forward value at work: of all that is made for it */
} Joint;

/* Whether gradients flow through this forward value. */
bool gen_grad_is_active(Joint *joint, uint32_t id);
/* Whether they flow through a value, given whether they do through those before it. */
bool gen_grad_flows(const Joint *joint, const Value *value, const bool *active);
/* A name for a value that has none: `name`, or one made of it that is not taken. */
void gen_grad_name(Joint *joint, uint32_t id, const char *owner, const char *name);
/* A name and what is put behind it, the name shortened where both are too long together. */
const char *gen_grad_fit(const Joint *joint, const char *name, const char *end);
/* `base`, or with a number behind it that nothing else has; taken from now on. */
const char *gen_grad_free_name(Joint *joint, const char *base);
const char *gen_grad_word(const Value *value); /* its name, or that of its operation */

/* Adds to the gradient of a forward value. `gradient` stands for a tensor of this shape, to which the value was
 * broadcast: its dims that are missing or 1 there stand for whole ones. */
void gen_grad_add(Joint *joint, uint32_t id, uint32_t gradient, const Shape *shape);
/* The forward value's op: from its gradient to those of its operands. (gen/grad_ops.c) */
void gen_grad_of_op(Joint *joint, uint32_t id, uint32_t gradient);

/* gen/grad_slices.c */
/* Takes the gradient of a slice, whose dims are those of what was cut, if that was cut into equal parts. */
bool gen_grad_take_slice(Joint *joint, const Value *index, uint32_t gradient);
/* Adds what was taken of a value to its gradient. */
void gen_grad_join_slices(Joint *joint, uint32_t id);

/* gen/grad_shape.c */
uint32_t gen_grad_iota(Joint *joint, Poly extent, uint32_t dim, uint32_t rank); /* the index along a dim of `rank` */
uint32_t gen_grad_apply(Joint *joint, Op op, uint32_t a, uint32_t b);           /* b: IR_NONE for one operand */
/* Dims of 1 put in before the first, up to this rank. */
uint32_t gen_grad_raise(Joint *joint, uint32_t value, uint32_t rank);
/* The dims of the mask, which are 1 or left out, put in (as dims of 1) or left out. */
uint32_t gen_grad_keep_dims(Joint *joint, uint32_t value, uint32_t dims, uint32_t rank);
uint32_t gen_grad_drop_dims(Joint *joint, uint32_t value, uint32_t dims);
/* Summed where `to` was broadcast to `from`. */
uint32_t gen_grad_sum_to(Joint *joint, uint32_t value, const Shape *from, const Shape *to);
/* All its elements written out: the whole of this shape. */
uint32_t gen_grad_spread(Joint *joint, uint32_t value, const Shape *to);
bool gen_grad_is_one(Poly extent);
bool gen_grad_same_shape(const Shape *a, const Shape *b);
Poly gen_grad_elements(Job *job, const Shape *shape);
Poly gen_grad_bytes(Job *job, const Shape *shape, DType dtype);
uint32_t gen_grad_number(Joint *joint, DType dtype, int64_t number);
uint32_t gen_grad_size(Joint *joint, Poly size);
/* The gradient where the condition holds, 0 elsewhere; condition IR_NONE: everywhere. */
uint32_t gen_grad_where(Joint *joint, uint32_t condition, uint32_t gradient);

/* gen/grad_text.c: derivatives that the tables give as text. */
/* The expression, with names bound; its values get the joint's place. */
Arg gen_grad_build(Joint *joint, const char *text, const Bindings *bindings);
/* gradient times the expression, IR_NONE where that is 0. Factors of 1, 1 / x and where() are not multiplied out. */
uint32_t gen_grad_scale(Joint *joint, uint32_t gradient, const char *factor, const Bindings *bindings);
void gen_grad_bind(Joint *joint, Bindings *bindings, const char *name, Arg arg);
Arg gen_grad_value_arg(uint32_t value);

/* gen/grad_composite.c */
/* A line of ir/composites.def's derivative column. */
typedef struct Statement {
    const char *name, *text;
    bool needs_gradient;
} Statement;

typedef struct Statements {
    Statement *at;
    uint32_t count, capacity;
    bool gives_value; /* there is a y */
} Statements;

Statements gen_grad_read_line(Job *job, uint32_t line);
bool gen_grad_is_result(const Statement *statement);        /* d_PARAM */
bool gen_grad_has_word(const char *text, const char *word); /* by itself in an expression */
/* A composite's call in the joint graph: its value. */
uint32_t gen_grad_put_call(Front *front, Call *call, Place place);
/* By the line of a composite; false: the value is none. */
bool gen_grad_of_composite(Joint *joint, uint32_t value, uint32_t gradient);

/* gen/grad_save.c: which values the backward graph reads of the forward one. */
typedef struct Cut {
    const bool *backward; /* of each value of the joint graph: it is made of gradients that come in */
    bool *read;           /* the backward graph has it as an input */
    bool *needed;         /* the backward graph has it at all */
} Cut;
Cut gen_grad_cut(Joint *joint); /* gives what is to be saved a name */
/* The output that may be written over an input of the forward graph, or IR_NONE. */
uint32_t gen_grad_written_over(const Graph *from, uint32_t input);

/* gen/grad_rounded.c */
void gen_grad_look_at_rounding(Joint *joint, const bool *backward); /* before the others are called */
/* The forward output that holds a value, of several the one of the widest dtype; IR_NONE: none. */
uint32_t gen_grad_output_with(const Joint *joint, uint32_t id);
bool gen_grad_is_reduction(const Value *value);
/* Where a computed value is largest is stored as it was found: another kernel may round the value otherwise. */
bool gen_grad_is_found_once(const Graph *graph, const Value *value);

/* gen/grad_part.c */
bool gen_grad_is_view(const Value *value); /* or a cast: elements of its first operand */
/* Whether a view has all elements of its operand, each once. */
bool gen_grad_takes_all(const Graph *graph, const Value *value);
/* Of what is read and stored in this dtype; part: only slices or picked elements are, and they are less than all. */
Poly gen_grad_read_bytes(const Joint *joint, const Cut *cut, uint32_t id, DType dtype, bool *part);

/* gen/grad_graphs.c, gen/grad_autograd.c */
void gen_grad_make_graphs(Joint *joint, const Cut *cut, Grad *grad);
void gen_grad_list_autograd(Joint *joint, Grad *grad);

#endif
