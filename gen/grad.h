/* The backward graph of a forward one, and the forward one extended by what it must save (gen/grad.c).
 *
 * In: a Graph as parse makes it. Out: two Graphs of the same kind, to be written as graph files. Gradients are named
 * d_NAME, or with another prefix where the forward graph holds gradients already: of an output they are inputs of the
 * backward graph, of an input they are its outputs; both keep the dtype of what they belong to. */
#ifndef GEN_GRAD_H
#define GEN_GRAD_H

#include "gen/gen.h"
#include "ir/graph_write.h"

typedef struct Names {
    const char *const *at;
    uint32_t count;
} Names;

typedef struct GradOptions {
    Names wrt;          /* inputs whose gradients are wanted; none: every float input that a float output depends on */
    Names of;           /* outputs whose gradients come in; none: every float output */
    Names save;         /* nodes that the forward graph stores for the backward one */
    Names recompute;    /* nodes that the backward graph computes again */
    bool recompute_all; /* it computes all again but what is to be saved and which elements are the largest of a row */
    const char *prefix; /* of gradients' names, before the name of what they belong to; NULL: GEN_GRADIENT */
} GradOptions;

#define GEN_GRADIENT "d_"

const char *gen_gradient_name(Job *job, const GradOptions *options, const char *of);
/* What follows the prefix; NULL: the name is no gradient's. */
const char *gen_gradient_owner(const GradOptions *options, const char *name);

typedef enum GradSource {
    GRAD_INPUT,  /* an input of the forward graph, read again */
    GRAD_OUTPUT, /* an output of the forward graph, read where it was stored */
    GRAD_SAVED   /* an output that the forward graph gets for it */
} GradSource;

/* What the backward graph reads of the forward one. */
typedef struct GradRead {
    GradSource source;
    const char *name;
    DType dtype;
    Shape shape;
    Poly stored; /* its bytes, in the symbols of the graph's dims */
    Poly bytes;  /* that are read of it */
    bool part;   /* no more than slices or picked elements of it */
} GradRead;

typedef struct GradTensor {
    const char *name; /* the node, the input or the operation that it comes from */
    Poly bytes;
} GradTensor;

typedef struct Grad {
    const Graph *from;
    const Graph *backward, *forward;
    GraphNotes backward_notes, forward_notes;
    IR_LIST(GradRead) reads;
    IR_LIST(GradTensor) autograd; /* what PyTorch's autograd would keep */
    IR_LIST(GradTensor)
    recomputed; /* forward values that gradients use, themselves or through views, computed again; bytes that saving
                   would take */
} Grad;

/* Stops the job at the place of what cannot be done: an unknown name, an integer input, a gathered operand, a name that
 * is taken, an input that was written over. */
Grad *gen_grad(Job *job, const Graph *graph, const GradOptions *options);

/* As if gen_grad had made it: a backward graph that somebody wrote, of a forward one that stores what it reads. `dims`
 * are the forward graph's, at which shapes must fit. Options: which gradients these are. Stops the job at the place in
 * the backward graph, which is the job's source, of what does not fit. (gen/grad_given.c) */
Grad *gen_grad_given(Job *job, const Graph *graph, const Graph *backward, const int64_t *dims, GradOptions *options);

/* The graph files. */
void gen_grad_backward(Text *text, const Grad *grad);
void gen_grad_forward(Text *text, const Grad *grad);
/* What is saved, read again and recomputed, in bytes, and what PyTorch's autograd would keep. (gen/grad_explain.c) */
void gen_grad_explain(Text *text, const Grad *grad, bool json);

#endif
