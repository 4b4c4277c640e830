/* The compiler: graph text in, CUDA C out. It opens no file and knows no driver.
 *
 * Data runs one way: text -> Graph -> Prog -> Plan -> Source. A pass is one file and one row of gen_passes; each takes
 * the unit and fills or rewrites the part it makes. */
#ifndef GEN_GEN_H
#define GEN_GEN_H

#include "gen/plan.h"
#include "ir/eval.h"

typedef struct Unit Unit;

typedef struct Setting { /* NAME=VALUE of a -D, --hint, --fix or --set */
    const char *name;
    const char *value;
} Setting;

/* What planning needs to know of a device; gen_target finds the default of an architecture. */
typedef struct Target {
    int arch;           /* 90 for sm_90 */
    int sms;            /* streaming multiprocessors */
    int shared_per_sm;  /* bytes */
    int shared_per_cta; /* bytes, with opt-in */
    int registers_per_sm;
    int64_t l2_bytes;
    double dram_gbs; /* GB/s of a plain copy, measured where known */
    double l2_gbs;
    const char *name; /* "NVIDIA H200" */
} Target;

const Target *gen_target(int arch); /* NULL: not an architecture that normgen plans for */

typedef struct GenOptions {
    const Setting *defines; /* -D: dims and types */
    uint32_t define_count;
    const Setting *hints; /* --hint */
    uint32_t hint_count;
    const Setting *fixes; /* --fix */
    uint32_t fix_count;
    bool settings_may_miss; /* those of dims and types that the file has not are passed over */
    const Setting *sets;    /* --set */
    uint32_t set_count;
    const Target *target;
    bool verify; /* ir_verify after each Prog pass */
    bool batch_invariant;
    bool warnings_are_errors;
    /* Called after each pass when not NULL (tests, --after, --time-passes). */
    void (*after)(void *state, Job *job, const Unit *unit, uint32_t pass);
    void *after_state;
} GenOptions;

/* The texts that emit makes. The kernels' text is the same in all: device_text is the .cu file, host_text the same
 * kernels under the host bodies of the helpers, with an entry for each. */
typedef struct Source {
    const char *device_text; /* header comment, helpers, kernels; under nvcc the launcher at the end */
    size_t device_count;
    const char *host_text; /* C++17; several may be concatenated in one translation unit */
    size_t host_count;
    const char *header_text; /* gen --header: declarations of NAME_launch and NAME_workspace_bytes */
    size_t header_count;
    /* In device_text, in the order of the steps that have code and their variants; with -DNG_ONLY=n it holds kernel n
     * alone. */
    uint32_t kernel_count;
    const char **kernels; /* their names */
} Source;

/* What a pass found worth saying to explain: a fusion made or refused, with its gate and both numbers. */
typedef struct Report {
    const char *pass;
    const char *nests; /* which, "n0 n1" */
    const char *gate;  /* what decided: fuse "order", "class", "axes", "parts", "map", "alias", "cycle", "statements",
                          "reads", "slices"; cut "bytes", "statements"; partial "rows", "columns". NULL: done */
    int64_t number;    /* what was found, -1 where no hint says; 0 where the gate has none */
    int64_t limit;     /* what the gate allows */
    const char *text;  /* the whole as one line */
} Report;

struct Unit {
    const char *text; /* the graph file */
    size_t count;
    GenOptions options;
    Graph *graph;    /* latest: after simplify the one that was lowered */
    Graph *expanded; /* after expand: what the oracle evaluates */
    /* Of each value of expanded: the one of those that simplify found equal that is the origin of what is left. */
    uint32_t *stands_for;
    Prog *prog;
    Plan *plan;
    Source source;
    IR_LIST(Report) reports;
};

typedef enum PassKind { PASS_GRAPH, PASS_PROG, PASS_PLAN, PASS_SOURCE } PassKind;

typedef struct Pass {
    const char *name;
    PassKind makes;
    const char *does; /* one line, for `normgen passes` */
    void (*run)(Job *job, Unit *unit);
} Pass;

extern const Pass gen_passes[];
extern const uint32_t gen_pass_count;
uint32_t gen_pass_find(const char *name); /* its index, or IR_NONE */

/* Runs the passes up to and with `last` (an index; gen_pass_count - 1 for all) within the caller's ir_job_run.
 * Sets the job's source to the text, named `name`. */
void gen_run(Job *job, Unit *unit, const char *name, const char *text, size_t count, const GenOptions *options,
             uint32_t last);
/* What the last pass made, as text: graph file, IR dump, IR dump with the plan as comments, CUDA. */
void gen_print(Text *text, const Unit *unit, uint32_t pass);
/* For people, or the same as JSON: classes, fusions made and refused with their reasons, strategy, knobs, bytes and
 * expected time. (gen/explain.c) */
void gen_explain(Text *text, const Unit *unit, bool json);
/* Longest chain of combines for each value of unit->expanded, from the plan (EvalInput.depth), in a launch with these
 * dims and part counts of the Prog; NULL: what is known without. */
uint32_t *gen_depths(Job *job, const Unit *unit, const int64_t *dims, const int64_t *parts);

/* The passes. Contracts stand at the head of each file. */
void gen_parse(Job *job, Unit *unit);
void gen_expand(Job *job, Unit *unit);
void gen_simplify(Job *job, Unit *unit);
/* The same for any Graph. id: of each value of `from` the one that stands for it, IR_NONE where none is left;
 * stands_for: the origin of that one, left or not. sizes: fixed dims become their numbers. */
Graph *gen_simplified(Job *job, const Graph *from, bool sizes, uint32_t **id, uint32_t **stands_for);
void gen_lower(Job *job, Unit *unit);
void gen_axes(Job *job, Unit *unit);
void gen_classify(Job *job, Unit *unit);
void gen_partial(Job *job, Unit *unit);
void gen_reorder(Job *job, Unit *unit);
void gen_fuse(Job *job, Unit *unit); /* may run again after a pass that changed nests */
void gen_cut(Job *job, Unit *unit);
void gen_pair(Job *job, Unit *unit);
void gen_schedule(Job *job, Unit *unit);
/* Makes unit->plan of one nest and, behind it, of those that share its number of parts: for asking whether it can be
 * planned so. */
void gen_schedule_nest(Job *job, Unit *unit, uint32_t nest);
void gen_emit(Job *job, Unit *unit);

#endif
