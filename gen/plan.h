/* Plan: what to launch. Steps in order; a step is 1 to 4 variants of one kernel with guards, first match wins, the last
 * has none. Emitting and launching are pure functions of it. Made by schedule, then only read. */
#ifndef GEN_PLAN_H
#define GEN_PLAN_H

#include "ir/prog.h"

#define GEN_MAX_VARIANTS 4

typedef enum Strategy {
#define STRATEGY(id, ...) STRATEGY_##id,
#include "gen/strategies.def"
#undef STRATEGY
    STRATEGY_COUNT
} Strategy;

typedef struct StrategyRow {
    const char *name;
    const char *use;      /* one line, for explain */
    const char *skeleton; /* template file, in templates/ */
} StrategyRow;
const StrategyRow *gen_strategy(Strategy strategy);
bool gen_strategy_find(const char *name, Strategy *strategy);
bool gen_holds_rows(Strategy strategy); /* a row's elements stay in registers from phase to phase */
bool gen_by_columns(Strategy strategy); /* lanes stand along the kept axes, threads loop over the consumed ones */

/* How a CTA covers the data. Element c of a row belongs to chunk c / (row_threads*vector) of thread
 * (c / vector) % row_threads; all variants of a step share this map and the combine order. Column kernels: row_threads
 * accesses stand side by side, and the CTA's rows are rows groups of threads that take every rows-th row. */
typedef struct Tile {
    int threads;     /* a CTA */
    int row_threads; /* threads a row: 1, 2, 4, 8, 16, 32 or a multiple of 32 */
    int rows;        /* rows a CTA works on at once */
    int vector;      /* elements an access */
    int chunks;      /* accesses a thread a row, unrolled; row_loop: unrolled in one trip; column: rows in one trip */
    int min_ctas;    /* an SM, of __launch_bounds__; 0: left to the compiler */
    int stages;      /* row_stream: 2 where the next rows are loaded before these are worked on, else 1 */
    int part_rows;   /* row_stream: that a part has; 0: as many as there are for all CTAs at once */
} Tile;

/* How a value gets from the phase that makes it to a later one that reads it. */
typedef enum Crossing {
    CROSS_NONE,
    CROSS_KEEP,      /* its f32 (f64, i64) in registers */
    CROSS_KEEP_RAW,  /* the loaded words in registers, widened again */
    CROSS_REREAD,    /* loaded again */
    CROSS_RECOMPUTE, /* from what else crosses */
    CROSS_ROW,       /* one a row, in a register */
    CROSS_RESIDENT   /* a column operand held for all the CTA's rows */
} Crossing;

typedef IR_LIST(uint32_t) StmtList;

typedef struct Phase {
    StmtList loads;      /* issued first, in this order */
    StmtList stmts;      /* then computed in this order, recomputed ones too; no stores */
    StmtList stores;     /* full-size stores of this phase */
    StmtList reduces;    /* whose elements are combined in this phase; then the row is combined */
    StmtList row_stmts;  /* once a row, after the reduces of the phase before (phase 0: before everything) */
    StmtList row_stores; /* once a row, at the end of row_stmts */
    int unroll;          /* chunks computed in one trip of their loop; tile.chunks: there is no loop */
} Phase;

typedef enum GuardKind {
    GUARD_ALIGNED,  /* pointer of a parameter is a multiple of `number` bytes */
    GUARD_MULTIPLE, /* size is a multiple of `number` */
    GUARD_AT_MOST   /* size is at most `number` */
} GuardKind;
typedef struct Guard {
    GuardKind kind;
    uint32_t param; /* GUARD_ALIGNED */
    Size size;      /* the others */
    int64_t number;
} Guard;

/* How the lanes of an access of tile.vector elements find their elements. */
typedef enum FormKind {
    FORM_ROW,     /* one element a row (pointwise: one for all) */
    FORM_UNIT,    /* neighbours along the last inner axis: one machine access in wide variants */
    FORM_SAME,    /* all lanes the same element, which differs from access to access */
    FORM_STRIDED, /* one by one, a stride apart */
    FORM_GATHER   /* each by an index of its own */
} FormKind;
typedef struct Form {
    FormKind kind;
    bool constant; /* an input whose memory no output may have: read-only loads, __restrict__ */
    bool index64;  /* column offsets need 64 bits */
    uint8_t empty; /* read once a row (a column): dims of the buffer that may have no element although it is there */
    uint8_t apart; /* read in a loop: dims that may have none although the loop runs, since no axis runs along them */
} Form;

#define GEN_PICKED ((uint8_t)(1 << IR_MAX_RANK)) /* in both: the dim that a computed index picks along */

typedef struct Variant {
    const char *kernel; /* the function's name in the text: unique in the unit, but for steps of one code */
    const char *label;  /* "aligned", "any" */
    bool wide;          /* accesses of tile.vector elements are one machine access */
    uint32_t guard_count;
    Guard *guards; /* all must hold */
} Variant;

typedef enum ParamKind { PARAM_BUF, PARAM_SIZE } ParamKind;
typedef struct Param { /* kernel parameters in order; the same for all variants of a step */
    ParamKind kind;
    uint32_t buf;     /* PARAM_BUF: a pointer (its tensor's plus offset), or the scalar's value for BUF_SCALAR */
    Size size;        /* PARAM_SIZE: int64 */
    const char *name; /* as the kernel spells it */
} Param;

typedef struct Slice { /* of a CTA's shared memory */
    const char *name;
    uint32_t offset, bytes;
} Slice;

/* The longest chain of combines of a step's reductions: adds a trip over units_each of the units, those of one part,
 * and then the tree of threads and warps. */
typedef struct Chain {
    Poly units;
    uint32_t part; /* of prog->parts, that share the units; or IR_NONE */
    int64_t units_each, adds, tree;
} Chain;

typedef struct Step { /* what kernels' text depends on stands in gen/twins.c too */
    uint32_t nest;
    uint32_t code; /* the step whose kernels it launches: itself, or an earlier one that is equal but for names */
    Strategy strategy;
    Tile tile;
    uint32_t row_mask; /* axes that rows run over; pointwise: 0, every axis is tiled by its linear index; column: the
                          axes that are consumed, the others being its columns */
    uint32_t looped;   /* axes along which a thread takes several points: a row's columns; column: its rows */
    uint32_t part;     /* of prog->parts: the parts that it makes; IR_NONE: none */
    uint32_t parted;   /* axes whose points the parts share; row_stream: other row axes have CTAs of their own */
    Size columns;      /* elements a row, where it is one inner axis; several: their product is fixed_columns */
    int64_t fixed_columns; /* -1: known at launch only */
    bool column64;         /* a column's index needs 64 bits */
    Form *forms;           /* for each access of the nest */
    uint32_t phase_count;
    Phase *phases;
    Crossing *crossing; /* for each statement of the nest */
    bool *late;         /* for each statement: a load that is made within its phase's work, access by access */
    StmtList resident;  /* row_stream: loads that the CTA makes once for all its rows */
    StmtList ahead;     /* row_stream: loads of phase 0 that are made before the rows at hand are worked on */
    Poly units;         /* what the grid divides: rows, or elements for pointwise, or columns; */
    Poly run;         /* where accesses run along an axis beside others, and its extent is known at launch only: that */
    int64_t run_each; /* extent, of which an access takes so many (0: none), and units are runs along it.
                         blocks = ceil(units * ceil(run / run_each) / units_per_cta), for each part */
    int64_t units_per_cta;
    uint32_t param_count;
    Param *params;
    uint32_t slice_count;
    Slice *slices;
    uint32_t shared_bytes; /* dynamic shared memory a CTA */
    uint32_t variant_count;
    Variant variants[GEN_MAX_VARIANTS];
    Chain chain;      /* where the nest reduces */
    Chain part_chain; /* of what it makes in parts */
} Step;

/* For these dims and part counts, of the Prog's (NULL: unknown ones); 0 where it cannot be known. */
uint32_t gen_chain_length(const Chain *chain, const Prog *prog, const int64_t *dims, const int64_t *parts);

/* The blocks of a part, for these dims and part counts; false where a number passes 2^62. */
bool gen_step_tiles(const Step *step, const Prog *prog, const int64_t *dims, const int64_t *parts, int64_t *tiles);

/* The reduction whose accumulator this one is a result of: itself, or the first of a phase that are of one pair. */
uint32_t gen_accumulator(const Step *step, const Nest *nest, uint32_t id);
/* Numbers in it. */
int gen_accumulator_words(Reduction reduction);

typedef struct Choice { /* for explain: what was chosen or refused, and why, with its numbers */
    const char *text;
} Choice;

/* How a launch binds a part count of the Prog: as many parts as ceil(units / units_each), but no more than fill the SMs
 * with ctas_per_sm CTAs each, one part being ceil(beside / beside_each) CTAs side by side; at least 1 where there are
 * units. Polynomials in the dims. */
typedef struct PartCount {
    Poly units, beside;
    int64_t units_each, beside_each, ctas_per_sm; /* GEN_ALL_CTAS: as many as there are */
    int part_rows;                                /* of row_stream, by knob; else 0 */
    bool rows_beside;                             /* units are rows, and rows that a sum keeps stand beside them */
} PartCount;

#define GEN_ALL_CTAS ((int64_t)1 << 30)

/* What a buf takes: bytes as a polynomial in dims and part counts without negative terms. Parts of what stands beside
 * each other are few where it is much: together they take no more than one part does, or than each_sm bytes an SM,
 * whichever is more. */
typedef struct RoomSize {
    Poly bytes, one; /* one: of one part */
    int64_t each_sm; /* 0: no such bound */
} RoomSize;

/* A place in the workspace that bufs take in turn: as large as the largest of `sizes`, in whole 256s. */
typedef struct Room {
    IR_LIST(RoomSize) sizes;
} Room;

typedef struct Plan {
    const char *name;
    IR_LIST(Step) steps;
    IR_LIST(Choice) choices;
    PartCount *parts;    /* of prog->parts, by who splits; NULL where there are none */
    IR_LIST(Room) rooms; /* the workspace, in order (gen/workspace.h) */
    uint32_t *room_of;   /* of prog->bufs; IR_NONE: not in the workspace */
} Plan;

/* Its kernels stand in the text, in the order of such steps; the others launch those of an earlier one. */
static inline bool gen_has_code(const Plan *plan, uint32_t step) { return plan->steps.at[step].code == step; }
uint32_t gen_kernel_count(const Plan *plan); /* of the text: all variants of the steps that have code */

/* The plan as comment lines, for dumps (gen/schedule_print.c). */
struct Unit;
void gen_plan_print(Text *text, const struct Unit *unit);

#endif
