/* Gradients against central differences of what they are gradients of (runtime/check_grad.c). */
#ifndef RUNTIME_CHECK_GRAD_H
#define RUNTIME_CHECK_GRAD_H

#include "gen/grad.h"
#include "gen/tell.h"
#include "runtime/launch.h"

/* Elements of an output that are not finite: they take no part, and 0 comes in as their gradient. */
typedef struct RtLeftOut {
    uint64_t elements, count;
    const bool *at; /* of each element, row-major; NULL: an output that is no float */
} RtLeftOut;

typedef struct RtGradCheck {
    const Allocator *allocator; /* of the jobs on other threads */
    const Graph *graph;         /* the forward one, as parse makes it */
    const GradOptions *options;
    const Grad *grad;                /* of it */
    bool given;                      /* somebody wrote its backward graph */
    const EvalInput *input;          /* of the forward graph, as stored */
    const double *const *weight;     /* the gradient of each of its outputs, row-major; NULL: none comes in */
    const RtLeftOut *left_out;       /* of each of its outputs */
    const Graph *backward;           /* grad->backward as it was run, expanded */
    const EvalInput *backward_input; /* that it was run with */
    double *const *got;              /* of each of its outputs, what the device made of it */
    uint64_t seed;                   /* of which elements, and of directions */
} RtGradCheck;

typedef struct RtWorst {
    double share;   /* of what is allowed; below 0: nothing was compared */
    uint64_t index; /* row-major; of directions: which */
    bool direction;
    double got, expected, allowed;
} RtWorst;

typedef struct RtGradient { /* what was found of one output of the backward graph */
    const char *name;
    Shape shape;
    int64_t extent[IR_MAX_RANK];
    uint64_t elements;
    uint64_t not_finite; /* of these: no comparison has them; 0 where no output element was left out */
    uint64_t compared, failed,
        uncertain;                  /* elements with differences; uncertain: L has a kink there, or none settles */
    uint64_t endless;               /* of the uncertain ones: those that are not finite themselves */
    uint64_t directions, unsettled; /* over all elements at once */
    RtWorst worst;
    bool given; /* somebody wrote the backward graph */
    /* Of all elements: the backward graph with its dtypes against the one made in f64 from the start. */
    uint64_t apart;
    RtWorst apart_worst;
    /* Of all elements: what the device made of it against that one, by what rounding allows, that of what is saved too.
     * jumped: on the other side of a comparison; unbounded: rounding allows anything. */
    bool cast; /* the forward graph rounds by casts, which turns comparisons: jumps are no failure then */
    uint64_t off, jumped, unbounded;
    RtWorst off_worst;
    double rounding; /* how far the two are apart, over the largest element */
} RtGradient;

/* Element `linear` of a view in row-major order. */
char *rt_view_element(const View *view, uint64_t linear);

/* One for each output of the forward graph, as parse makes it. */
RtLeftOut *rt_grad_left_out(Job *job, const Graph *graph, const EvalInput *input);
/* One RtGradient for each output of grad->backward. */
Status rt_check_gradients(Job *job, const RtGradCheck *check, RtGradient *gradients, Text *why);
/* Too many were uncertain for the rest to say much, or too many jumped. */
bool rt_gradient_doubtful(const RtGradient *gradient);
bool rt_gradient_jumpy(const RtGradient *gradient);

/* The report, a line or an object for each. (runtime/check_grad_tell.c) */
void rt_grad_tell_program(Job *job, Tell *tell, const char *what, const Graph *graph, const ng_output_report *reports);
void rt_left_out_tell(Job *job, Tell *tell, const char *output, const RtLeftOut *left_out);
bool rt_left_out_judge(Text *why, const char *output, const RtLeftOut *left_out);
void rt_gradient_tell(Job *job, Tell *tell, const RtGradient *gradient);
/* Whether it holds; in words why not. */
bool rt_gradient_judge(Job *job, Text *why, const RtGradient *gradient);

/* Lists of names divided by commas, NULL: none, and the prefix of others, NULL: the usual one. STATUS_USAGE where one
 * is no list or no name can begin so. (runtime/api_grad.c) */
GradOptions rt_grad_names(Job *job, const char *wrt, const char *of, const char *save, const char *recompute,
                          const char *prefix);

#endif
