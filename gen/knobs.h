/* Knobs: choices of the compiler that --set NAME=VALUE forces, for all kernels or, as KERNEL.NAME, for one. A forced
 * knob holds or the job fails with the reason; who asks for a knob checks that its value is possible there. */
#ifndef GEN_KNOBS_H
#define GEN_KNOBS_H

#include "gen/gen.h"

typedef enum KnobId {
#define KNOB(id, ...) KNOB_##id,
#include "gen/knobs.def"
#undef KNOB
    KNOB_COUNT
} KnobId;

typedef enum KnobScope {
    KNOB_OF_GRAPH,
    KNOB_OF_NESTS, /* reductions, by the names that they have before any is joined */
    KNOB_OF_KERNELS,
    KNOB_IS_STRATEGY, /* the kernels that can be of it */
    KNOB_OF_ROW_KERNELS,
    KNOB_OF_POINTWISE,
    KNOB_OF_STREAM /* row_stream */
} KnobScope;

typedef struct Knob {
    const char *name;
    const char *values;    /* "" for an integer, else the words that it takes, a space between */
    int least;             /* of integers */
    const char *otherwise; /* of the graph: what it is unless forced; "" where each kernel has its own */
    KnobScope scope;       /* what takes it */
    const char *what;
} Knob;

const Knob *gen_knob(KnobId id);
const char *gen_knob_takes(KnobId id); /* in words: its words, or which numbers, to be read */

/* Every setting has a name and a value that the table knows; stops with STATUS_USAGE else. Called once, first. */
void gen_knobs_check(Job *job, const GenOptions *options);
/* Every setting that names a nest names one that reduces. Called once, by the pass that uses them. */
void gen_knobs_of_nests(Job *job, const Unit *unit);
/* Every setting meets a kernel of the plan that takes it; stops where it has no effect. Called once, last. */
void gen_knobs_met(Job *job, const Unit *unit);
/* The value forced for a kernel (its nest's name; NULL: of all), or NULL. The last setting wins, a kernel's own first.
 */
const char *gen_knob_text(const GenOptions *options, KnobId id, const char *kernel);
/* What a step has of an integer knob of kernels; false where it does not take it. */
bool gen_knob_value(const Step *step, KnobId id, int *value);
/* The knobs of a unit after schedule: value, default or forced, and what each may be. (gen/knobs_list.c) */
void gen_knobs_list(Text *text, const Unit *unit, const Allocator *allocator, bool json);
/* The same of an integer knob; 0 where nothing is forced. */
int gen_knob_int(const GenOptions *options, KnobId id, const char *kernel);

#endif
