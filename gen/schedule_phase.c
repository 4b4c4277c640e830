/* In: a nest, its strategy and the forms of its accesses. Out: what each phase issues, computes, combines and stores,
 * how values cross from phase to phase, and the longest chain of combines of its reductions.
 *
 * Demand runs backwards: stores and reductions ask for their arguments in their phase, which ask for theirs. A load is
 * issued where it is first asked for, so what only the last phase reads is issued late. */
#include "gen/schedule.h"

typedef struct Demand {
    Planner *p;
    bool **element; /* [phase][stmt]: computed or read in this phase */
    bool *row;      /* [stmt]: computed once a row */
    uint32_t *store_phase;
    bool *keep; /* [stmt]: kept as its f32 where a later phase reads it */
} Demand;

int gen_op_cost(Op op) {
    switch (op) {
    case OP_RSQRT: return 6;
    case OP_EXP:
    case OP_EXP2:
    case OP_SQRT:
    case OP_DIV: return 10;
    case OP_EXPM1:
    case OP_LOG:
    case OP_LOG2:
    case OP_LOG1P:
    case OP_TANH: return 20;
    case OP_SIGMOID:
    case OP_ERF: return 25;
    case OP_FLOORDIV:
    case OP_MOD:
    case OP_SIN:
    case OP_COS: return 60;
    case OP_POW: return 100;
    default: return 0;
    }
}

static void ask_args(Demand *d, const Stmt *stmt, uint32_t phase);

/* Value `id` is read in `phase`. */
static void ask(Demand *d, uint32_t id, uint32_t phase) {
    Planner *p = d->p;
    const Stmt *stmt = &p->nest->stmts.at[id];
    if (!p->element[id]) {
        if (d->row[id]) return;
        d->row[id] = true;
        if (stmt->op == OP_REDUCE)
            ask_args(d, stmt, p->phase[id] - 1);
        else
            ask_args(d, stmt, phase);
        return;
    }
    if (d->element[phase][id]) return;
    d->element[phase][id] = true;
    if (d->keep[id] && phase > p->phase[id])
        ask(d, id, p->phase[id]);
    else
        ask_args(d, stmt, phase);
}

/* A sum of products takes the factors: its step is one fma. */
static bool is_fma(const Nest *nest, const Stmt *stmt) {
    if (stmt->arg_count == 0) return false;
    const Stmt *arg = &nest->stmts.at[stmt->arg[0]];
    bool reduces = stmt->op == OP_REDUCE || stmt->op == OP_PARTIAL_ACCUMULATE;
    return reduces && stmt->reduction == REDUCTION_ADD && arg->op == OP_MUL &&
           (arg->dtype == DTYPE_F32 || arg->dtype == DTYPE_F64);
}

static void ask_args(Demand *d, const Stmt *stmt, uint32_t phase) {
    const Nest *nest = d->p->nest;
    if (is_fma(nest, stmt)) {
        /* a product that is one a row is asked for as such; both factors otherwise */
        ask_args(d, &nest->stmts.at[stmt->arg[0]], phase);
        return;
    }
    for (uint32_t k = 0; k < stmt->arg_count; k++) ask(d, stmt->arg[k], phase);
    bool accesses = stmt->op == OP_LOAD || stmt->op == OP_STORE;
    if (accesses && nest->accesses.at[stmt->access].index != IR_NONE)
        ask(d, nest->accesses.at[stmt->access].index, phase);
}

static Demand demand_create(Planner *p) {
    Job *job = p->job;
    uint32_t count = p->nest->stmts.count;
    Demand d = {.p = p};
    d.element = IR_NEW_ARRAY(job, bool *, p->phase_count);
    d.store_phase = IR_NEW_ARRAY(job, uint32_t, count);
    d.keep = IR_NEW_ARRAY(job, bool, count);
    for (uint32_t i = 0; i < count; i++) {
        d.store_phase[i] = p->phase[i];
        d.keep[i] = p->keep_f32 && gen_holds_rows(p->step->strategy) && gen_op_cost(p->nest->stmts.at[i].op) > 0;
    }
    return d;
}

static void demand_run(Demand *d) {
    Planner *p = d->p;
    for (uint32_t q = 0; q < p->phase_count; q++) d->element[q] = IR_NEW_ARRAY(p->job, bool, p->nest->stmts.count);
    d->row = IR_NEW_ARRAY(p->job, bool, p->nest->stmts.count);
    for (uint32_t i = 0; i < p->nest->stmts.count; i++)
        if (p->nest->stmts.at[i].op == OP_STORE || p->nest->stmts.at[i].op == OP_PARTIAL_ACCUMULATE)
            ask_args(d, &p->nest->stmts.at[i], d->store_phase[i]);
}

/* row_stream: the same for all rows of a CTA. */
static bool is_column_operand(const Planner *p, const Stmt *load) {
    return p->step->strategy == STRATEGY_ROW_STREAM && !(load->domain & p->step->parted);
}

/* Whether the words of a load of elements stay in registers for later phases. */
static bool is_kept(const Planner *p, uint32_t id) {
    const Stmt *load = &p->nest->stmts.at[id];
    return gen_holds_rows(p->step->strategy) && p->step->forms[load->access].kind != FORM_GATHER && !p->reread &&
           !is_column_operand(p, load);
}

/* The last phase that reads element `id` from memory; IR_NONE: none does. */
static uint32_t last_issue(const Demand *d, uint32_t id) {
    const Planner *p = d->p;
    uint32_t last = IR_NONE;
    const bool again = !is_kept(p, id);
    for (uint32_t q = 0; q < p->phase_count; q++) {
        if (!d->element[q][id]) continue;
        last = q;
        if (!again) break;
    }
    return last;
}

/* V8: a store to memory that a load may share comes no earlier than the last phase that loads it. */
static bool delay_stores(Demand *d) {
    const Planner *p = d->p;
    bool changed = false;
    for (uint32_t i = 0; i < p->nest->stmts.count; i++) {
        const Stmt *store = &p->nest->stmts.at[i];
        if (store->op != OP_STORE) continue;
        uint32_t buf = p->nest->accesses.at[store->access].buf, alias = p->prog->bufs.at[buf].may_alias;
        for (uint32_t k = 0; k < p->nest->stmts.count; k++) {
            const Stmt *load = &p->nest->stmts.at[k];
            if (load->op != OP_LOAD || !p->element[k]) continue;
            uint32_t read = p->nest->accesses.at[load->access].buf;
            if (read != buf && read != alias) continue;
            uint32_t last = last_issue(d, k);
            if (last == IR_NONE || last <= d->store_phase[i]) continue;
            d->store_phase[i] = last;
            changed = true;
        }
    }
    return changed;
}

static void push(Job *job, StmtList *list, uint32_t id) { *IR_PUSH(job, list) = id; }

/* Registers: what one later phase alone reads is loaded within that phase's work, access by access; so are column
 * operands that are not resident, and elements that each phase loads again. */
static void fill_load(const Demand *d, uint32_t id, uint32_t first, uint32_t last) {
    Planner *p = d->p;
    Step *step = p->step;
    const Stmt *load = &p->nest->stmts.at[id];
    const bool gather = step->forms[load->access].kind == FORM_GATHER, kept = is_kept(p, id);
    const bool picks = p->nest->accesses.at[load->access].index != IR_NONE; /* by what a row computes */
    if (p->resident && !picks && is_column_operand(p, load)) {
        push(p->job, &step->resident, id);
        step->crossing[id] = CROSS_RESIDENT;
        return;
    }
    for (uint32_t q = 0; !gather && q < p->phase_count; q++)
        if (d->element[q][id] && (q == first || !kept)) push(p->job, &step->phases[q].loads, id);
    if (first != last) step->crossing[id] = kept ? CROSS_KEEP_RAW : CROSS_REREAD;
    step->late[id] = gen_holds_rows(step->strategy) && !gather && (!kept || (first > 0 && first == last));
    if (step->tile.stages > 1 && kept && !picks && first == 0) push(p->job, &step->ahead, id);
}

static void fill_element(const Demand *d, uint32_t id) {
    Planner *p = d->p;
    const Stmt *stmt = &p->nest->stmts.at[id];
    Step *step = p->step;
    uint32_t first = IR_NONE, last = 0;
    for (uint32_t q = 0; q < p->phase_count; q++) {
        if (!d->element[q][id]) continue;
        if (first == IR_NONE) first = q;
        last = q;
        if (stmt->op != OP_CONST && stmt->op != OP_SIZE) push(p->job, &step->phases[q].stmts, id);
    }
    if (first == IR_NONE) return;
    if (stmt->op == OP_LOAD)
        fill_load(d, id, first, last);
    else if (first != last)
        step->crossing[id] = d->keep[id] ? CROSS_KEEP : CROSS_RECOMPUTE;
}

static void fill_row(const Demand *d, uint32_t id) {
    Planner *p = d->p;
    const Stmt *stmt = &p->nest->stmts.at[id];
    if (!d->row[id]) return;
    p->step->crossing[id] = CROSS_ROW;
    if (stmt->op == OP_CONST || stmt->op == OP_SIZE) return;
    if (stmt->op == OP_REDUCE)
        push(p->job, &p->step->phases[p->phase[id] - 1].reduces, id);
    else
        push(p->job, &p->step->phases[p->phase[id]].row_stmts, id);
    const bool row_load = stmt->op == OP_LOAD && p->nest->accesses.at[stmt->access].index == IR_NONE;
    if (p->step->tile.stages > 1 && row_load && stmt->domain & p->step->parted) push(p->job, &p->step->ahead, id);
}

int gen_pack_bytes(const Planner *p, const Stmt *load) {
    int bytes = ir_dtype(p->prog->bufs.at[p->nest->accesses.at[load->access].buf].dtype)->bytes;
    bool same = p->step->forms[load->access].kind == FORM_SAME;
    return (bytes * (same ? 1 : p->step->tile.vector) + 3) / 4 * 4;
}

/* Bytes an element that live from each phase to the next, at the worst. */
static int count_bytes(const Demand *d) {
    const Planner *p = d->p;
    int worst = 0;
    for (uint32_t b = 0; b + 1 < p->phase_count; b++) {
        int bytes = 0;
        for (uint32_t i = 0; i < p->nest->stmts.count; i++) {
            const Stmt *stmt = &p->nest->stmts.at[i];
            Crossing crossing = p->step->crossing[i];
            bool before = false, after = false;
            for (uint32_t q = 0; q < p->phase_count; q++) {
                if (d->element[q][i] && q <= b) before = true;
                if (d->element[q][i] && q > b) after = true;
            }
            if (!before || !after) continue;
            if (crossing == CROSS_KEEP_RAW) bytes += gen_pack_bytes(p, stmt) / p->step->tile.vector;
            if (crossing == CROSS_KEEP) bytes += stmt->dtype == DTYPE_F64 || stmt->dtype == DTYPE_I64 ? 8 : 4;
        }
        if (bytes > worst) worst = bytes;
    }
    return worst;
}

void gen_plan_phases(Planner *p) {
    Step *step = p->step;
    Demand d = demand_create(p);
    do demand_run(&d);
    while (delay_stores(&d));
    step->phase_count = p->phase_count;
    step->phases = IR_NEW_ARRAY(p->job, Phase, p->phase_count);
    step->crossing = IR_NEW_ARRAY(p->job, Crossing, p->nest->stmts.count);
    step->late = IR_NEW_ARRAY(p->job, bool, p->nest->stmts.count);
    step->resident.count = step->ahead.count = 0;
    for (uint32_t i = 0; i < p->nest->stmts.count; i++) {
        const Stmt *stmt = &p->nest->stmts.at[i];
        if (stmt->op == OP_STORE) {
            Phase *phase = &step->phases[d.store_phase[i]];
            push(p->job, stmt->domain & step->looped ? &phase->stores : &phase->row_stores, i);
        } else if (stmt->op == OP_PARTIAL_ACCUMULATE) {
            push(p->job, &step->phases[d.store_phase[i]].reduces, i);
        } else if (p->element[i]) {
            fill_element(&d, i);
        } else {
            fill_row(&d, i);
        }
    }
    p->kept_bytes = count_bytes(&d);
}

uint32_t gen_accumulator(const Step *step, const Nest *nest, uint32_t id) {
    const Stmt *stmt = &nest->stmts.at[id];
    if (ir_reduction(stmt->reduction)->results == 1) return id;
    for (uint32_t i = 0; i < id; i++) {
        const Stmt *other = &nest->stmts.at[i];
        if (other->op == OP_REDUCE && step->crossing[i] == CROSS_ROW && other->reduction == stmt->reduction &&
            other->arg[0] == stmt->arg[0] && other->consumed == stmt->consumed)
            return i;
    }
    return id;
}

int gen_accumulator_words(Reduction reduction) {
    switch (reduction) { /* fields in templates/pairs.cuh */
    case REDUCTION_ONLINE: return 2;
    case REDUCTION_WELFORD: return 5;
    default: return 1;
    }
}

static Poly extent_product(const Planner *p, uint32_t mask, bool *overflow) {
    Poly product = ir_poly_int(p->job, 1);
    for (uint32_t a = 0; a < p->nest->axis_count; a++)
        if (mask >> a & 1)
            product = ir_poly_mul(p->job, product, ir_size_poly(p->job, p->prog, p->nest->axes[a].extent), overflow);
    return product;
}

void gen_plan_chain(Planner *p) {
    const Tile *tile = &p->step->tile;
    Chain *chain = &p->step->chain;
    bool columns = gen_by_columns(p->step->strategy), overflow = false;
    int lanes = tile->row_threads < 32 ? tile->row_threads : 32, tree = 0;
    int64_t warps = tile->row_threads > 32 ? tile->row_threads / 32 : 0;
    const bool stream = p->step->strategy == STRATEGY_ROW_STREAM;
    *chain = (Chain){.units = ir_poly_int(p->job, 1), .part = stream ? IR_NONE : p->step->part, .units_each = 1};
    chain->adds = (int64_t)tile->chunks * tile->vector;
    if (p->step->strategy == STRATEGY_ROW_LOOP || p->step->strategy == STRATEGY_ROW_SPLIT) {
        chain->units_each = (int64_t)tile->row_threads * tile->chunks * tile->vector;
    } else if (columns) {
        chain->units_each = tile->rows;
        chain->adds = 1;
        lanes = 1;
        warps = tile->rows;
    }
    if (!gen_holds_rows(p->step->strategy)) chain->units = extent_product(p, p->step->looped, &overflow);
    if (overflow) chain->units_each = 0;
    while (1 << tree < lanes) tree++;
    chain->tree = tree + warps;
    p->step->part_chain = *chain;
    if (!stream) return;
    /* a row a trip, then the CTA's rows */
    overflow = false;
    p->step->part_chain = (Chain){.part = p->step->part, .units_each = tile->rows, .adds = 1, .tree = tile->rows};
    p->step->part_chain.units = extent_product(p, p->step->parted, &overflow);
    if (overflow) p->step->part_chain.units_each = 0;
}

bool gen_step_tiles(const Step *step, const Prog *prog, const int64_t *dims, const int64_t *parts, int64_t *tiles) {
    const uint32_t part_count = parts ? prog->parts.count : 0;
    int64_t units, run;
    if (!ir_poly_eval(step->units, dims, prog->dims.count, parts, part_count, &units)) return false;
    if (step->run_each) {
        if (!ir_poly_eval(step->run, dims, prog->dims.count, parts, part_count, &run)) return false;
        run = run / step->run_each + (run % step->run_each != 0);
        if (ir_mul_overflows(units, run, &units)) return false;
    }
    *tiles = units / step->units_per_cta + (units % step->units_per_cta != 0);
    return true;
}

uint32_t gen_chain_length(const Chain *chain, const Prog *prog, const int64_t *dims, const int64_t *parts) {
    int64_t units, length;
    if (chain->units_each == 0) return 0;
    if (!ir_poly_is_int(chain->units, &units) &&
        (!dims || !ir_poly_eval(chain->units, dims, prog->dims.count, parts, parts ? prog->parts.count : 0, &units)))
        return 0;
    int64_t part_count = chain->part == IR_NONE ? 1 : parts ? parts[chain->part] : 0;
    if (part_count < 1) return 0;
    units = (units + part_count - 1) / part_count;
    if (ir_mul_overflows((units + chain->units_each - 1) / chain->units_each, chain->adds, &length) ||
        ir_add_overflows(length, chain->tree, &length) || length > UINT32_MAX)
        return 0;
    return (uint32_t)length;
}
