/* In: a nest of rows and of sums across them, its vector. Out: the tile of its row_stream kernel, with what threads
 * hold and load when. CTAs stay and take rows in turn, so what a thread holds for all rows (accumulators, column
 * operands) and for the rows at hand and next has to fit its registers.
 *
 * What does best on an H200 (backward norms, bf16, share of a copy): 8 elements a thread up to 2048 columns, 16 up to
 * 8192, in CTAs of 256 threads, two and more an SM. Beyond, one CTA an SM has all registers, and the next row's loads
 * in the air count more than threads: 12288 columns 0.94 with 384 threads, 0.87 with 512 that load when they need it.
 * Costly values that are kept pay for fewer elements (GELU's gradient of 4096 columns: 393 us with 8 elements, 640 with
 * 16 and computing them twice). */
#include "gen/breakpoints.h"
#include "gen/schedule.h"

/* Registers beside what is held: pointers, bounds, a few lanes' values; temporaries of costly ops; those beyond which
 * ptxas spills some rather than fill the rest. */
enum { CTA_THREADS = 256, OTHER_REGISTERS = 44, COSTLY_REGISTERS = 20, MOST_REGISTERS = 224 };

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static bool is_long(const Planner *p) { return p->guess > GEN_STREAM_LONG_ROW; }

static bool listed(const StmtList *list, uint32_t id) {
    for (uint32_t i = 0; i < list->count; i++)
        if (list->at[i] == id) return true;
    return false;
}

/* Bytes that a thread holds at the worst. */
static int64_t held_bytes(const Planner *p) {
    const Step *step = p->step;
    int64_t access = 0, element = 0; /* for each access, for each element */
    for (uint32_t i = 0; i < p->nest->stmts.count; i++) {
        const Stmt *stmt = &p->nest->stmts.at[i];
        const int each = ir_dtype(ir_compute_dtype(stmt->dtype))->bytes;
        if (stmt->op == OP_PARTIAL_ACCUMULATE || step->crossing[i] == CROSS_KEEP) element += each;
        if (stmt->op != OP_LOAD || !p->element[i] || step->late[i]) continue;
        bool loaded = step->crossing[i] == CROSS_RESIDENT;
        for (uint32_t q = 0; q < step->phase_count && !loaded; q++) loaded = listed(&step->phases[q].loads, i);
        if (loaded) access += gen_pack_bytes(p, stmt) * (listed(&step->ahead, i) ? 2 : 1);
    }
    return (access + element * step->tile.vector) * step->tile.chunks;
}

static bool computes_costly(const Planner *p) {
    for (uint32_t i = 0; i < p->nest->stmts.count; i++)
        if (p->element[i] && gen_op_cost(p->nest->stmts.at[i].op) > 0) return true;
    return false;
}

/* Elements of rows that the last phase alone reads. */
static uint32_t count_late(const Planner *p) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->nest->stmts.count; i++)
        count += p->step->late[i] && p->element[i] && p->nest->stmts.at[i].domain & p->step->parted;
    return count;
}

/* Registers that a thread of a CTA that has an SM for itself needs beside what it holds: values of a row at hand and
 * next; with no row ahead the pointers of late loads and of several row axes. */
static int other_registers(const Planner *p) {
    const Step *step = p->step;
    int other = GEN_STREAM_OTHER + (computes_costly(p) ? COSTLY_REGISTERS : 0);
    for (uint32_t i = 0; i < step->ahead.count; i++) other += p->element[step->ahead.at[i]] ? 0 : 2;
    if (step->tile.stages == 1) other += 7 * (int)(count_late(p) + p->nest->row_count - 1);
    return other;
}

/* Bytes that one access of each late load takes. */
static int64_t late_bytes(const Planner *p) {
    int64_t bytes = 0;
    for (uint32_t i = 0; i < p->nest->stmts.count; i++)
        if (p->step->late[i] && p->element[i]) bytes += gen_pack_bytes(p, &p->nest->stmts.at[i]);
    return bytes;
}

/* What a thread may hold. CTAs of short rows share an SM with others; temporaries of costly ops leave no room for what
 * is loaded beside them. */
static int64_t most_bytes(const Planner *p) {
    if (!is_long(p)) return GEN_STREAM_BYTES - (computes_costly(p) ? late_bytes(p) : 0);
    const int warps = (p->step->tile.row_threads + 31) / 32,
              share = 512 / ((warps + 3) / 4) / 8 * 8; /* of a quarter of an SM */
    return ((share > MOST_REGISTERS ? MOST_REGISTERS : share) - other_registers(p)) * 4;
}

/* ---- the way ---- */

enum { MOST_THREADS = 3 }; /* that are considered for a row */

static void set_threads(Planner *p, int threads) {
    Tile *tile = &p->step->tile;
    const int chunks = gen_forced_int(p, KNOB_CHUNKS);
    const int64_t needed = ceil_div(p->columns, (int64_t)threads * tile->vector);
    tile->row_threads = threads;
    tile->chunks = chunks                        ? chunks
                   : needed < 1                  ? 1
                   : needed * tile->vector > 256 ? 256 / tile->vector + 1
                                                 : (int)needed;
}

static bool holds_elements(const Planner *p) { return p->step->tile.chunks * p->step->tile.vector <= 256; }

/* When rows and column operands are loaded. */
static void plan_way(Planner *p, int stages, bool resident, bool reread) {
    p->step->tile.stages = stages;
    p->resident = resident;
    p->reread = reread;
    gen_plan_phases(p);
}

/* Threads a row, the best first. */
static int list_threads(const Planner *p, int threads[MOST_THREADS]) {
    const int forced = gen_forced_int(p, KNOB_ROW_THREADS);
    int count = 0;
    if (forced) {
        threads[count++] = forced;
    } else if (is_long(p)) {
        for (int t = 512; t >= 256; t -= 128) threads[count++] = t;
    } else {
        const int elements = p->guess > GEN_STREAM_ROW ? 16 : 8;
        threads[count++] = gen_row_threads(p, elements);
        const int more = gen_row_threads(p, elements / 2);
        if (p->keep_f32 && elements > 8 && more <= 512) threads[count++] = more;
    }
    return count;
}

/* The first way that fits: the next row ahead before many threads, and these before column operands at hand. */
static bool choose_way(Planner *p) {
    const int stages = gen_forced_int(p, KNOB_STAGES);
    int threads[MOST_THREADS];
    const int count = list_threads(p, threads);
    for (int ahead = 2; ahead >= 1; ahead--) {
        for (int i = 0; i < count && (!stages || stages == ahead); i++) {
            set_threads(p, threads[i]);
            for (int resident = 1; resident >= 0 && holds_elements(p); resident--) {
                plan_way(p, ahead, resident, false);
                if (held_bytes(p) <= most_bytes(p)) return true;
            }
        }
    }
    return false;
}

/* Elements that do not fit at all are loaded again by each phase. */
static void choose(Planner *p) {
    const int stages = gen_forced_int(p, KNOB_STAGES);
    if (stages > 2) gen_refuse_knob(p, KNOB_STAGES, stages, "it is neither 1 nor 2");
    p->keep_f32 = computes_costly(p);
    if (choose_way(p)) return;
    p->keep_f32 = false;
    if (choose_way(p)) return;
    int threads[MOST_THREADS];
    list_threads(p, threads);
    set_threads(p, threads[0]);
    if (!holds_elements(p) && gen_forced_int(p, KNOB_CHUNKS))
        gen_refuse_knob(p, KNOB_CHUNKS, p->step->tile.chunks, "a thread holds at most 256 elements");
    if (!holds_elements(p) && gen_forced_int(p, KNOB_ROW_THREADS))
        gen_refuse_knob(p, KNOB_ROW_THREADS, threads[0], "a thread holds at most 256 elements");
    if (!holds_elements(p))
        ir_stop_at(p->job, STATUS_NOT_COMPILED, (Place){0, 0},
                   "kernel %s cannot hold its rows in registers: %lld elements are too many (fuse=row makes kernels of "
                   "their own of sums across rows)",
                   p->nest->name, (long long)p->columns);
    plan_way(p, stages == 2 ? 2 : 1, false, stages != 2);
}

static int stream_min_ctas(const Planner *p) {
    int64_t registers = held_bytes(p) / 4 + OTHER_REGISTERS;
    for (uint32_t q = 0; q < p->step->phase_count; q++)
        if (gen_phase_cost(p, q) >= GEN_COSTLY) registers += COSTLY_REGISTERS; /* their temporaries */
    const int64_t ctas = 65536 / (registers < 32 ? 32 : registers) / p->step->tile.threads;
    const int64_t most = 1536 / p->step->tile.threads;
    return (int)(ctas > most ? most < 1 ? 1 : most : ctas < 1 ? 1 : ctas > 16 ? 16 : ctas);
}

/* Accesses as wide as those of rows may be, whatever column operands are: where the row at hand is loaded late, much of
 * it is in the air or its values are costly (4096 columns: add and RMSNorm's gradient 363 us, 426 with accesses as wide
 * as the weight's; that of LayerNorm and GELU 377, 440). Not where registers do not hold the row, then or now. */
static void widen(Planner *p) {
    const int vector = gen_default_vector(p, p->step->parted), old = p->step->tile.vector;
    const bool gains = is_long(p) || count_late(p) || computes_costly(p);
    if (gen_forced_int(p, KNOB_VECTOR) || vector == old || p->reread || !gains) return;
    p->step->tile.vector = vector;
    choose(p);
    if (!p->reread) return;
    p->step->tile.vector = old;
    choose(p);
}

/* Bytes of shared memory for the accumulators of a CTA's rows. */
static int64_t slot_bytes(const Planner *p, int rows) {
    const Tile *tile = &p->step->tile;
    int64_t bytes = 0;
    for (uint32_t i = 0; i < p->nest->stmts.count && rows > 1; i++) {
        const Stmt *stmt = &p->nest->stmts.at[i];
        if (stmt->op != OP_PARTIAL_ACCUMULATE) continue;
        bytes += (int64_t)ir_dtype(ir_compute_dtype(stmt->dtype))->bytes * rows * tile->row_threads * tile->chunks *
                 tile->vector;
    }
    return bytes;
}

static void plan_stream_rows(Planner *p) {
    Tile *tile = &p->step->tile;
    const int forced = gen_forced_int(p, KNOB_ROWS), room = GEN_SHARED - 2048; /* the rest for the warps' slots */
    tile->rows = tile->row_threads < CTA_THREADS ? CTA_THREADS / tile->row_threads : 1;
    while (tile->rows > 1 && slot_bytes(p, tile->rows) > room) tile->rows /= 2;
    if (!forced) return;
    tile->rows = forced;
    if (slot_bytes(p, forced) > room)
        gen_refuse_knob(p, KNOB_ROWS, forced, "the accumulators of its rows take more than 46 KB");
}

void gen_plan_stream(Planner *p) {
    Tile *tile = &p->step->tile;
    if (p->columns < 0)
        ir_stop_at(p->job, STATUS_NOT_COMPILED, (Place){0, 0},
                   "kernel %s cannot hold its rows in registers: their length has no limit (give the dim a max)",
                   p->nest->name);
    choose(p);
    widen(p);
    tile->part_rows = gen_forced_int(p, KNOB_PART_ROWS);
    plan_stream_rows(p);
    gen_check_rows(p);
    tile->min_ctas = stream_min_ctas(p);
}
