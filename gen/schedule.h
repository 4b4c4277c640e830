/* What the files of schedule share: one nest on its way to a Step. */
#ifndef GEN_SCHEDULE_H
#define GEN_SCHEDULE_H

#include "gen/gen.h"
#include "gen/knobs.h"

typedef struct Planner {
    Job *job;
    const Unit *unit;
    const Prog *prog;
    const Nest *nest;
    Plan *plan;
    Step *step;
    uint32_t inner;  /* axes that are not row axes: those a row's columns run over; column: those that are kept */
    uint32_t last;   /* innermost of them, or IR_NONE */
    int64_t columns; /* elements a row: the number, else the most there can be, else -1 */
    int64_t guess;   /* the number, else by hints, else 4096: what defaults are chosen for */
    bool *element;   /* for each statement: varies along the axes that threads loop over (step->looped) */
    uint32_t *phase; /* V7, for each statement */
    uint32_t phase_count;
    int64_t full_columns; /* of a column CTA whose accesses are whole, and CTAs an SM that its registers allow: parts */
    int part_ctas;        /* are counted by these, whatever the extents are */
    bool keep_f32;        /* f32 kept after costly work (rows held in registers) */
    bool resident;        /* row_stream: column operands are */
    bool reread;          /* row_stream: elements are loaded again in each phase */
    int kept_bytes;       /* kept in registers from phase to phase for each element, at the worst boundary */
} Planner;

/* An extent, stride or offset as a number; `otherwise` where it is known at launch only. */
static inline int64_t gen_size_number(Size size, int64_t otherwise) {
    return size.kind == SIZE_INT ? size.value : otherwise;
}
/* The most that a size can be by the dims' max, or -1; what hints make of it, or -1. */
int64_t gen_size_most(Job *job, const Prog *prog, Size size);
int64_t gen_size_hint(Job *job, const Prog *prog, Size size);

/* Phases, crossings and stores of planner->step, whose strategy and forms stand. Sets kept_bytes. */
void gen_plan_phases(Planner *planner);
void gen_plan_chain(Planner *planner);
/* Instructions that an op takes beyond a few, about; 0: it is cheap. What has a cost is worth a register to keep. */
int gen_op_cost(Op op);
/* Bytes of registers that one access of a load takes: whole words. */
int gen_pack_bytes(const Planner *planner, const Stmt *load);

/* ---- accesses (gen/schedule_access.c) ---- */

/* Forms of all accesses; planner->step's strategy and masks stand. */
void gen_plan_forms(Planner *planner);
/* tile.vector: elements an access, by knob or default. */
void gen_plan_vector(Planner *planner);
/* By what is read and written in the loop over these axes: 16 bytes of the widest element; as many of them as the nest
 * allows. */
int gen_full_vector(const Planner *planner, uint32_t loop);
int gen_default_vector(const Planner *planner, uint32_t loop);
/* Why accesses of so many elements cannot be one machine access each, by the numbers among strides and offsets; NULL:
 * they can. Sizes known at launch only pass: the wide variant's guards ask for them. */
const char *gen_wide_refused(const Planner *planner, int vector);

/* ---- tiles ---- */

/* Strategy and tile, knobs included. gen_plan_forms before it. (gen/schedule_tile.c) */
void gen_plan_tile(Planner *planner);
/* The strategy that a nest gets as it stands. Stops where a forced knob is impossible for it. (gen/schedule.c) */
Strategy gen_nest_strategy(Job *job, const Unit *unit, const Nest *nest);
/* row_stream: tile, knobs and phases; vector is set. (gen/schedule_stream.c) */
void gen_plan_stream(Planner *planner);

/* ---- what tiles share (gen/schedule_tile.c) ---- */

int gen_phase_cost(const Planner *planner, uint32_t phase); /* of costly ops, for each element */
int gen_forced_int(const Planner *planner, KnobId id);      /* 0: not forced */
_Noreturn void gen_refuse_knob(Planner *planner, KnobId id, int value, const char *why);
int gen_row_threads(const Planner *planner, int elements); /* for rows of planner->guess with so many a thread */
void gen_check_rows(Planner *planner);                     /* row_threads, rows and chunks; sets threads */

/* Which steps launch kernels of others, once all are planned. (gen/twins.c) */
void gen_find_twins(Job *job, const Unit *unit);

/* One more line for explain. */
void gen_choose(Job *job, Plan *plan, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
