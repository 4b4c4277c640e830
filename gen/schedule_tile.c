/* In: a nest, the forms of its accesses. Out: the strategy and the tile. Defaults follow measurements on an H200 (bf16
 * rows, graph replay, share of a copy's speed); a forced knob replaces its default or stops the job with the reason. */
#include "gen/breakpoints.h"
#include "gen/schedule.h"

_Noreturn void gen_refuse_knob(Planner *p, KnobId id, int value, const char *why) {
    ir_stop_at(p->job, STATUS_NOT_COMPILED, (Place){0, 0}, "%s=%d is not possible for kernel %s: %s",
               gen_knob(id)->name, value, p->nest->name, why);
}

int gen_forced_int(const Planner *p, KnobId id) { return gen_knob_int(&p->unit->options, id, p->nest->name); }

/* ---- rows ---- */

static int elements_a_thread(const Planner *p) {
    uint32_t sums = 0;
    bool costly = false;
    for (uint32_t q = 0; q < p->phase_count; q++)
        for (uint32_t i = 0; i < p->nest->stmts.count; i++) {
            const Stmt *stmt = &p->nest->stmts.at[i];
            bool sum = stmt->reduction == REDUCTION_ADD || stmt->reduction == REDUCTION_WELFORD;
            if (stmt->op == OP_REDUCE && sum && p->phase[i] == q) {
                sums++;
                break;
            }
        }
    for (uint32_t i = 0; i < p->nest->stmts.count; i++)
        if (p->element[i] && gen_op_cost(p->nest->stmts.at[i].op) > 0) costly = true;
    const int most = costly ? GEN_LONG_ROW_OF_COSTLY : sums > 1 ? GEN_LONG_ROW_OF_SUMS : GEN_LONG_ROW;
    return p->guess > most ? 32 : 16;
}

static int round_threads(int64_t threads) {
    const int64_t most = 2048; /* more than any CTA has: rows of any length come here */
    if (threads > most) threads = most;
    if (threads > 32) return (int)((threads + 31) / 32 * 32);
    int power = 1;
    while (power < threads) power *= 2;
    return power;
}

int gen_row_threads(const Planner *p, int elements) {
    int64_t guess = p->guess < 1 ? 1 : p->guess;
    if (guess <= GEN_SHORT_ROW) {
        int threads = round_threads((guess + p->step->tile.vector - 1) / p->step->tile.vector);
        return threads > 32 ? 32 : threads;
    }
    return round_threads((guess + elements - 1) / elements);
}

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static int64_t kept_limit(int threads) { return threads > 512 ? GEN_KEPT_BYTES_LARGE : GEN_KEPT_BYTES; }

static bool fits_registers(const Planner *p, int threads, int chunks) {
    int64_t elements = (int64_t)chunks * p->step->tile.vector;
    return threads <= GEN_ROW_THREADS && elements <= 64 && elements * p->kept_bytes <= kept_limit(threads);
}

/* Whether rows fit, and with which threads a row and chunks. Costly values are kept where that fits too. */
static bool plan_registers(Planner *p) {
    Tile *tile = &p->step->tile;
    if (p->columns < 0) return false;
    p->step->strategy = STRATEGY_ROW_REGISTERS;
    for (int elements = elements_a_thread(p); elements >= 8; elements /= 2) {
        tile->row_threads = gen_row_threads(p, elements);
        int64_t chunks = ceil_div(p->columns, (int64_t)tile->row_threads * tile->vector);
        tile->chunks = chunks < 1 ? 1 : chunks > 64 ? 64 + 1 : (int)chunks;
        for (int keep = 1; keep >= 0; keep--) {
            p->keep_f32 = keep;
            gen_plan_phases(p);
            if (fits_registers(p, tile->row_threads, tile->chunks)) return true;
        }
        if (p->guess <= GEN_SHORT_ROW) break;
    }
    return false;
}

static void plan_loop(Planner *p) {
    Tile *tile = &p->step->tile;
    p->step->strategy = STRATEGY_ROW_LOOP;
    int threads = gen_row_threads(p, elements_a_thread(p));
    tile->row_threads = threads > 512 ? 512 : threads;
    int64_t most = ceil_div(p->guess < 1 ? 1 : p->guess, (int64_t)tile->row_threads * tile->vector);
    int in_flight = tile->vector >= 4 ? 4 : 8; /* accesses of a trip: 16 to 64 bytes a thread of each load */
    tile->chunks = most < in_flight ? (int)(most < 1 ? 1 : most) : in_flight;
    gen_plan_phases(p);
}

/* Rows a CTA: small rows share CTAs of 128 threads, a warp a row CTAs of 64 (256 columns: 0.937 of a copy). */
static int default_rows(int row_threads) { return row_threads > 32 ? 1 : (row_threads == 32 ? 64 : 128) / row_threads; }

/* The knob that was forced bears the blame, the first of two. */
_Noreturn static void refuse_either(Planner *p, KnobId first, KnobId second, const char *why) {
    const KnobId id = gen_forced_int(p, first) ? first : second;
    gen_refuse_knob(p, id, gen_forced_int(p, id), why);
}

static void check_elements(Planner *p, KnobId other) {
    const Tile *tile = &p->step->tile;
    if ((int64_t)tile->chunks * tile->vector > 256)
        refuse_either(p, KNOB_CHUNKS, other, "a thread holds at most 256 elements");
}

void gen_check_rows(Planner *p) {
    Tile *tile = &p->step->tile;
    if ((int64_t)tile->row_threads * tile->rows > 1024)
        refuse_either(p, KNOB_ROWS, KNOB_ROW_THREADS, "a CTA has at most 1024 threads");
    tile->threads = tile->row_threads * tile->rows;
    bool power = (tile->row_threads & (tile->row_threads - 1)) == 0;
    if (tile->row_threads % 32 != 0 && (!power || tile->row_threads > 32))
        gen_refuse_knob(p, KNOB_ROW_THREADS, tile->row_threads,
                        "it is neither 1, 2, 4, 8, 16, 32 nor a multiple of 32");
    check_elements(p, KNOB_ROW_THREADS);
    if (!gen_holds_rows(p->step->strategy)) return;
    if (p->columns > (int64_t)tile->row_threads * tile->chunks * tile->vector)
        gen_refuse_knob(p, KNOB_CHUNKS, tile->chunks, "the tile is shorter than the row");
}

/* Bytes of registers a thread that a phase's loads take: ptxas issues them all at once. */
static int64_t loaded_bytes(const Planner *p, const Phase *phase) {
    int64_t bytes = 0;
    for (uint32_t i = 0; i < phase->loads.count; i++) {
        const Stmt *load = &p->nest->stmts.at[phase->loads.at[i]];
        bytes += gen_pack_bytes(p, load) * p->step->tile.chunks;
    }
    return bytes;
}

/* ---- columns ---- */

static int power_up_to(int64_t wanted, int most) {
    int power = 1;
    while (power < wanted && power < most) power *= 2;
    return power;
}

/* least: bytes that an element takes at least, 4 in registers. */
static int64_t accumulator_bytes(const Planner *p, int least) {
    int64_t bytes = 0;
    for (uint32_t i = 0; i < p->nest->stmts.count; i++) {
        const Stmt *stmt = &p->nest->stmts.at[i];
        if (stmt->op != OP_REDUCE && stmt->op != OP_PARTIAL_ACCUMULATE) continue;
        int each = ir_dtype(ir_compute_dtype(stmt->dtype))->bytes;
        bytes += (each < least ? least : each) * p->step->tile.vector;
    }
    return bytes;
}

/* Instructions of costly ops for each element of a phase; what was kept is not computed again. */
int gen_phase_cost(const Planner *p, uint32_t phase) {
    const StmtList *stmts = &p->step->phases[phase].stmts;
    int cost = 0;
    for (uint32_t i = 0; i < stmts->count; i++) {
        uint32_t id = stmts->at[i];
        if (p->step->crossing[id] == CROSS_KEEP && p->phase[id] < phase) continue;
        const Stmt *stmt = &p->nest->stmts.at[id];
        cost += gen_op_cost(stmt->op) * (stmt->dtype == DTYPE_F64 ? 4 : 1);
    }
    return cost;
}

/* Left alone, ptxas aims at an occupancy of its own and spills a few words to reach it (RMSNorm of 1024 f32 columns, 64
 * threads: 8 bytes at 40 registers, none at 53). So the bound is always given: threads an SM by the bytes that a thread
 * holds at once, which leaves 64, 80 or 128 registers. Seen on sm_90 without a bound: 96 bytes take 56, 192 bytes 80 to
 * 96, 320 bytes 128. A loop's pointers, bounds and index take up to 128 more (LayerNorm of any f32 columns: 40 bytes
 * spilled at 80 registers; RMSNorm of 4095 f16 columns: 32 at 64), a column's 96 (mean of any bf16 columns: 32 at 64;
 * product of any i8 columns: 8 at 80), temporaries of costly ops that stand together 160 (LayerNorm, tanh and a power,
 * 1000 f16 columns: 64 at 80). */
static int default_min_ctas(const Planner *p) {
    const Tile *tile = &p->step->tile;
    bool columns = gen_by_columns(p->step->strategy);
    int64_t kept = columns ? 0 : p->kept_bytes * (int64_t)tile->chunks * tile->vector, bytes = 0;
    for (uint32_t q = 0; q < p->step->phase_count; q++) {
        int64_t held = loaded_bytes(p, &p->step->phases[q]) + (q > 0 ? kept : 0);
        if (columns) held += accumulator_bytes(p, 4) + 96;
        if (gen_phase_cost(p, q) >= GEN_COSTLY) held += 160;
        if (held > bytes) bytes = held;
    }
    if (p->step->strategy == STRATEGY_ROW_LOOP || p->step->strategy == STRATEGY_ROW_SPLIT) bytes += 128;
    int threads = bytes <= GEN_HELD_LITTLE ? 1024 : bytes <= GEN_HELD_MUCH ? 768 : 512;
    int ctas = threads / tile->threads;
    return ctas < 1 ? 1 : ctas > 16 ? 16 : ctas;
}

static int threads_per_sm(const Planner *p) {
    const Target *target = p->unit->options.target;
    const int arch = target ? target->arch : 90;
    return arch == 86 || arch == 89 || arch == 120 ? 1536 : 2048;
}

/* Bytes of registers that the loads of one trip take with so many rows in it. */
static int64_t trip_bytes(Planner *p, int chunks) {
    int64_t worst = 0;
    p->step->tile.chunks = chunks;
    for (uint32_t q = 0; q < p->step->phase_count; q++) {
        int64_t bytes = loaded_bytes(p, &p->step->phases[q]);
        if (bytes > worst) worst = bytes;
    }
    return worst;
}

static void check_columns(Planner *p) {
    Tile *tile = &p->step->tile;
    if ((tile->row_threads & (tile->row_threads - 1)) || tile->row_threads > 32)
        gen_refuse_knob(p, KNOB_ROW_THREADS, tile->row_threads, "it is neither 1, 2, 4, 8, 16 nor 32");
    tile->threads = tile->row_threads * tile->rows;
    if (tile->threads % 32 || tile->threads > 1024)
        gen_refuse_knob(p, KNOB_ROWS, tile->rows, "a CTA has whole warps and at most 1024 threads");
    if (tile->chunks > 64) gen_refuse_knob(p, KNOB_CHUNKS, tile->chunks, "at most 64 rows are unrolled");
    if (accumulator_bytes(p, 1) * tile->threads > GEN_SHARED)
        gen_refuse_knob(p, KNOB_ROWS, tile->rows, "the sums of its groups take more than 48 KB");
}

/* Rows of a trip: their loads are in the air together, 96 bytes a thread. */
static int default_trip(Planner *p) {
    int trip = 8;
    while (trip > 1 && trip_bytes(p, trip) > GEN_TRIP_BYTES) trip /= 2;
    return trip;
}

/* Of rows beside each other the GPU's CTAs make few parts each. */
static bool has_few_parts(const Planner *p) {
    for (uint32_t a = 0; a < p->nest->axis_count && p->plan->parts; a++) {
        const Size extent = p->nest->axes[a].extent;
        if (extent.kind == SIZE_PART && p->plan->parts[extent.value].rows_beside) return true;
    }
    return false;
}

/* 32 accesses side by side are whole runs of memory of 128 bytes at least, 8 groups of them 256 threads. The parts'
 * sums are short: there 8 single elements side by side, which fill sectors, make many CTAs of 32 groups each; of few
 * parts 32 and 8 (adaLN's gradient, 1152 columns: of 128 batches of 256 rows 84 us in all, 132 with 32 groups, 76 with
 * 4; of one batch of 32768 rows 78 us, 76 with 32 groups, 97 with 4). Neither the groups nor the number of parts follow
 * the kept extents or what is known of them, so that a column's bits do not. */
static void plan_columns(Planner *p) {
    Tile *tile = &p->step->tile;
    const bool finalize = p->step->strategy == STRATEGY_FINALIZE, many = finalize && !has_few_parts(p);
    const int lanes = many ? 8 : 32, vector = finalize && !gen_forced_int(p, KNOB_VECTOR) ? 1 : tile->vector;
    int threads = gen_forced_int(p, KNOB_ROW_THREADS), rows = gen_forced_int(p, KNOB_ROWS),
        chunks = gen_forced_int(p, KNOB_CHUNKS);
    tile->vector = gen_full_vector(p, p->step->looped);
    gen_plan_phases(p);
    tile->rows = many ? 32 : 8;
    while (tile->rows > 1 && accumulator_bytes(p, 1) * lanes * tile->rows > GEN_SHARED) tile->rows /= 2;
    tile->chunks = default_trip(p);
    tile->threads = lanes * tile->rows;
    p->full_columns = lanes * tile->vector;
    p->part_ctas = default_min_ctas(p);
    tile->vector = vector;
    int least = 32 / tile->rows; /* whole warps */
    int64_t wanted = ceil_div(p->guess < 1 ? 1 : p->guess, vector);
    tile->row_threads = power_up_to(wanted < least ? least : wanted, lanes);
    if (threads) tile->row_threads = threads;
    if (rows) tile->rows = rows;
    tile->chunks = chunks ? chunks : default_trip(p);
    check_columns(p);
}

static void plan_split(Planner *p) {
    const Strategy split = p->step->strategy;
    plan_loop(p);
    p->step->strategy = split;
    gen_plan_phases(p);
}

static void plan_rows(Planner *p) {
    Tile *tile = &p->step->tile;
    const char *text = gen_knob_text(&p->unit->options, KNOB_STRATEGY, p->nest->name);
    Strategy forced = STRATEGY_ROW_REGISTERS;
    if (text) gen_strategy_find(text, &forced);
    if (text && forced != STRATEGY_ROW_LOOP && forced != STRATEGY_ROW_REGISTERS && forced != p->step->strategy)
        ir_stop_at(p->job, STATUS_NOT_COMPILED, (Place){0, 0}, "kernel %s cannot be %s: %s", p->nest->name, text,
                   forced == STRATEGY_ROW_SPLIT    ? "its rows are not made in parts, which --set split=all asks for"
                   : forced == STRATEGY_ROW_STREAM ? "no sums across its rows go with them"
                                                   : "it works by rows, as row_registers or row_loop");
    bool split = p->step->strategy == STRATEGY_ROW_SPLIT;
    if (split) plan_split(p);
    bool registers = !split && !(text && forced == STRATEGY_ROW_LOOP) && plan_registers(p);
    if (!split && text && forced == STRATEGY_ROW_REGISTERS && p->columns < 0)
        ir_stop_at(p->job, STATUS_NOT_COMPILED, (Place){0, 0},
                   "kernel %s cannot hold its rows in registers: their length "
                   "has no limit (give the dim a max)",
                   p->nest->name);
    if (!split && !registers && !(text && forced == STRATEGY_ROW_REGISTERS)) plan_loop(p);
    int threads = gen_forced_int(p, KNOB_ROW_THREADS), chunks = gen_forced_int(p, KNOB_CHUNKS);
    if (threads) {
        tile->row_threads = threads;
        if (p->step->strategy == STRATEGY_ROW_REGISTERS) {
            int64_t needed = ceil_div(p->columns, (int64_t)threads * tile->vector);
            if (needed > 256) gen_refuse_knob(p, KNOB_ROW_THREADS, threads, "a thread holds at most 256 elements");
            tile->chunks = needed < 1 ? 1 : (int)needed;
        }
    }
    if (chunks) tile->chunks = chunks;
    int rows = gen_forced_int(p, KNOB_ROWS);
    tile->rows = rows ? rows : default_rows(tile->row_threads);
    gen_check_rows(p);
}

static void plan_pointwise(Planner *p) {
    Tile *tile = &p->step->tile;
    int threads = gen_forced_int(p, KNOB_THREADS), chunks = gen_forced_int(p, KNOB_CHUNKS);
    /* One access of each tensor a thread, 256 threads: 4277 GB/s on an H200; four accesses 4124. */
    tile->threads = threads ? threads : 256;
    tile->chunks = chunks ? chunks : 1;
    tile->row_threads = tile->threads;
    tile->rows = 1;
    if (tile->threads > 1024) gen_refuse_knob(p, KNOB_THREADS, threads, "a CTA has at most 1024 threads");
    check_elements(p, KNOB_VECTOR);
    gen_plan_phases(p);
}

/* Instructions that one access more takes the pairs of a phase: exponentials, divisions. */
static int pairs_cost(const Planner *p, uint32_t phase) {
    const StmtList *reduces = &p->step->phases[phase].reduces;
    const int exp = gen_op_cost(OP_EXP) * (p->step->tile.vector + 1), div = gen_op_cost(OP_DIV) * 6;
    int cost = 0;
    for (uint32_t i = 0; i < reduces->count; i++) {
        const Stmt *stmt = &p->nest->stmts.at[reduces->at[i]];
        if (ir_reduction(stmt->reduction)->results == 1) continue;
        if (gen_accumulator(p->step, p->nest, reduces->at[i]) != reduces->at[i]) continue;
        cost += (stmt->reduction == REDUCTION_ONLINE ? exp : div) * (stmt->dtype == DTYPE_F64 ? 4 : 1);
    }
    return cost;
}

/* 64 registers a thread, all that a crowded CTA leaves, do not hold many elements beside what all their loads at once
 * bring. Rows with costly work have their trips from that. */
static int least_trips(const Planner *p) {
    const Tile *tile = &p->step->tile;
    bool many = tile->threads > GEN_CROWDED_THREADS && tile->chunks * tile->vector > GEN_CROWDED_ELEMENTS;
    for (uint32_t i = 0; i < p->nest->stmts.count; i++)
        if (p->element[i] && gen_op_cost(p->nest->stmts.at[i].op) > 0) many = false;
    return !many || tile->chunks % 2 ? 1 : tile->chunks % 4 ? 2 : 4;
}

/* row_stream: each access is loaded, worked on and done with. A loop keeps their loads apart, which all at once take
 * more registers than there are (LayerNorm's gradients of 16384 columns: 200 bytes spilled unrolled, none in trips of
 * two accesses). It costs nothing but where accumulators are kept, which turn. */
static bool keeps_nothing(const Planner *p, uint32_t phase) {
    const Phase *own = &p->step->phases[phase];
    for (uint32_t i = 0; i < own->reduces.count; i++)
        if (p->nest->stmts.at[own->reduces.at[i]].op == OP_PARTIAL_ACCUMULATE) return false;
    for (uint32_t i = 0; i < own->stmts.count; i++)
        if (p->step->crossing[own->stmts.at[i]] == CROSS_KEEP) return false;
    return true;
}

static int reread_trips(const Planner *p, uint32_t phase) {
    const int64_t sums = accumulator_bytes(p, 1) / p->step->tile.vector; /* of an element, the rows' own too */
    const int chunks = p->step->tile.chunks, each = (sums > 12 ? 4 : 8) / p->step->tile.vector;
    return keeps_nothing(p, phase) || each < 2 || chunks % each ? chunks : chunks / each;
}

/* Costly phases are a loop whose trips have few instructions of costly ops. */
static void plan_unroll(Planner *p) {
    const Tile *tile = &p->step->tile;
    const bool by_rows = p->step->strategy != STRATEGY_POINTWISE && !gen_by_columns(p->step->strategy);
    for (uint32_t q = 0; q < p->step->phase_count; q++) {
        int access = gen_phase_cost(p, q) * tile->vector + pairs_cost(p, q), trips = by_rows ? least_trips(p) : 1;
        if (p->reread) trips = reread_trips(p, q);
        while (by_rows && trips < tile->chunks &&
               (tile->chunks % trips || access * (tile->chunks / trips) > GEN_TRIP_COST))
            trips++;
        p->step->phases[q].unroll = tile->chunks / trips;
    }
}

void gen_plan_tile(Planner *p) {
    gen_plan_vector(p);
    if (p->step->strategy == STRATEGY_POINTWISE)
        plan_pointwise(p);
    else if (gen_by_columns(p->step->strategy))
        plan_columns(p);
    else if (p->step->strategy == STRATEGY_ROW_STREAM)
        gen_plan_stream(p);
    else
        plan_rows(p);
    int min_ctas = gen_forced_int(p, KNOB_MIN_CTAS);
    if (min_ctas > 32) gen_refuse_knob(p, KNOB_MIN_CTAS, min_ctas, "an SM has room for at most 32 CTAs");
    if ((int64_t)min_ctas * p->step->tile.threads > threads_per_sm(p))
        gen_refuse_knob(p, KNOB_MIN_CTAS, min_ctas, "an SM has no room for so many threads");
    if (min_ctas || !p->step->tile.min_ctas) p->step->tile.min_ctas = min_ctas ? min_ctas : default_min_ctas(p);
    if (min_ctas || !gen_by_columns(p->step->strategy)) p->part_ctas = p->step->tile.min_ctas;
    plan_unroll(p);
}
