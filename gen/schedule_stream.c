/* In: a nest of rows and of sums across them, its vector. Out: the tile of its row_stream kernel, with what threads
 * hold and load when. CTAs stay and take rows in turn, so what a thread holds for all rows (accumulators, column
 * operands) and for the rows at hand and next has to fit its registers.
 *
 * Elements a thread follow what hand-written kernels do best with on an H200 (backward norms, bf16): 8 to 2048 columns
 * (32 threads a row at 256, 256 at 2048), 16 to 8192, then 32; CTAs of 256 threads. A thread
 * holds fewest registers beside its elements where it has many, and a row of 16384 leaves no room for more. */
#include "gen/breakpoints.h"
#include "gen/schedule.h"

/* Registers beside what is held: pointers, bounds, a few lanes' values. */
enum { CTA_THREADS = 256, OTHER_REGISTERS = 44 };

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static int stream_elements(const Planner *p) {
    return p->guess > GEN_STREAM_LONG_ROW ? 32 : p->guess > GEN_STREAM_ROW ? 16 : 8;
}

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

/* The first way that fits: with what makes most of memory's time, then with less and less; the last has to do. */
static void choose_way(Planner *p) {
    static const struct {
        int stages;
        bool resident, reread;
    } ways[] = {{2, true, false}, {2, false, false}, {1, true, false}, {1, false, false}, {1, false, true}};
    const int forced = gen_forced_int(p, KNOB_STAGES), elements = p->step->tile.chunks * p->step->tile.vector;
    const int64_t limit = elements > 16 ? GEN_STREAM_BYTES_LONG : GEN_STREAM_BYTES;
    if (forced > 2) gen_refuse_knob(p, KNOB_STAGES, forced, "it is neither 1 nor 2");
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        if (forced && ways[w].stages != forced) continue;
        p->step->tile.stages = ways[w].stages;
        p->resident = ways[w].resident;
        p->reread = ways[w].reread;
        for (int keep = 1; keep >= 0; keep--) {
            p->keep_f32 = keep;
            gen_plan_phases(p);
            if (held_bytes(p) <= limit) return;
        }
    }
}

static int stream_min_ctas(const Planner *p) {
    int64_t registers = held_bytes(p) / 4 + OTHER_REGISTERS;
    for (uint32_t q = 0; q < p->step->phase_count; q++)
        if (gen_phase_cost(p, q) >= GEN_COSTLY) registers += 16; /* their temporaries */
    const int64_t ctas = 65536 / (registers < 32 ? 32 : registers) / p->step->tile.threads;
    const int64_t most = 1536 / p->step->tile.threads;
    return (int)(ctas > most ? most < 1 ? 1 : most : ctas < 1 ? 1 : ctas > 16 ? 16 : ctas);
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
    const int threads = gen_forced_int(p, KNOB_ROW_THREADS), chunks = gen_forced_int(p, KNOB_CHUNKS);
    if (p->columns < 0)
        ir_stop_at(p->job, STATUS_NOT_COMPILED, (Place){0, 0},
                   "kernel %s cannot hold its rows in registers: their length has no limit (give the dim a max)",
                   p->nest->name);
    tile->row_threads = threads ? threads : gen_row_threads(p, stream_elements(p));
    int64_t needed = ceil_div(p->columns, (int64_t)tile->row_threads * tile->vector);
    if (needed * tile->vector > 256 && threads)
        gen_refuse_knob(p, KNOB_ROW_THREADS, threads, "a thread holds at most 256 elements");
    if (needed * tile->vector > 256)
        ir_stop_at(p->job, STATUS_NOT_COMPILED, (Place){0, 0},
                   "kernel %s cannot hold its rows in registers: %lld elements are too many (fuse=row makes kernels of "
                   "their own of sums across rows)",
                   p->nest->name, (long long)p->columns);
    tile->chunks = chunks ? chunks : needed < 1 ? 1 : (int)needed;
    tile->part_rows = gen_forced_int(p, KNOB_PART_ROWS);
    plan_stream_rows(p);
    gen_check_rows(p);
    choose_way(p);
    tile->min_ctas = stream_min_ctas(p);
}
