/* In: a step of the plan. Out: its kernels: the skeleton of its strategy with the step's constants, pointers, phases
 * and stores. A pure function of Plan and Prog. */
#include "gen/emit.h"
#include "gen/template.h"

#include <string.h>

static const Stmt *stmt_at(const Emitter *e, uint32_t id) { return &e->nest->stmts.at[id]; }
static const Phase *phase_now(const Emitter *e) { return &e->step->phases[e->phase]; }
static Strategy strategy(const Emitter *e) { return e->step->strategy; }
static bool is_element(const Emitter *e, uint32_t id) { return (stmt_at(e, id)->domain & e->step->looped) != 0; }
static const Form *form_of(const Emitter *e, const Stmt *stmt) { return &e->step->forms[stmt->access]; }
static const Buf *buf_of(const Emitter *e, const Stmt *stmt) {
    return &e->prog->bufs.at[e->nest->accesses.at[stmt->access].buf];
}

static bool listed(const StmtList *list, uint32_t id) {
    for (uint32_t i = 0; i < list->count; i++)
        if (list->at[i] == id) return true;
    return false;
}

/* The phase whose loads bring it first. */
static uint32_t issue_phase(const Emitter *e, uint32_t load) {
    for (uint32_t q = 0; q < e->step->phase_count; q++)
        if (listed(&e->step->phases[q].loads, load)) return q;
    return IR_NONE;
}

static bool is_late(const Emitter *e, uint32_t load) { return e->step->late[load]; }
static bool is_ahead(const Emitter *e, uint32_t load) { return listed(&e->step->ahead, load); }
static bool is_resident(const Emitter *e, uint32_t load) { return e->step->crossing[load] == CROSS_RESIDENT; }

/* Loaded by the phase into an array, all accesses before any is worked on. */
static bool is_issued(const Emitter *e, uint32_t load) { return !is_late(e, load) && !is_ahead(e, load); }

/* ---- chunks ---- */

/* The lanes' loop is unrolled in part only: the chunk at hand is the first of what is kept, which turns. */
static bool is_turning(const Emitter *e) {
    return strategy(e) != STRATEGY_POINTWISE && phase_now(e)->unroll < e->step->tile.chunks;
}

/* What turns is read before all of it was set. Then ptxas takes what passes through an unset register for the same in
 * all lanes of a warp (13.0, from -O1 on), so arrays that turn start as zeros. */
static const char *start_text(const Emitter *e) {
    for (uint32_t q = 0; q < e->step->phase_count; q++)
        if (e->step->phases[q].unroll < e->step->tile.chunks) return " = {}";
    return "";
}

const char *gen_chunk_index(const Emitter *e) { return is_turning(e) ? "0" : "u"; }

/* The array of what the statement has for each chunk, or NULL. */
static const char *turning_name(Emitter *e, uint32_t id) {
    bool load = stmt_at(e, id)->op == OP_LOAD && form_of(e, stmt_at(e, id))->kind != FORM_GATHER && !is_late(e, id);
    if (!load && e->step->crossing[id] != CROSS_KEEP) return NULL;
    return gen_place_name(e, load ? 'r' : 'k', id);
}

static void fill_unroll(Emitter *e, Text *out, int indent) {
    const StmtList *stmts = &phase_now(e)->stmts;
    const char *name = NULL;
    (void)indent; /* of no account for a pragma */
    ir_text_put(out, "#pragma unroll");
    for (uint32_t i = 0; is_turning(e) && !name && i < stmts->count; i++) name = turning_name(e, stmts->at[i]);
    if (is_turning(e)) ir_text_format(out, " %d", phase_now(e)->unroll);
    if (name) ir_text_format(out, "  // not whole: %s[0] is the chunk at hand, ng_turn brings the next", name);
    ir_text_put(out, "\n");
}

static void fill_turn(Emitter *e, Text *out, int indent) {
    const StmtList *stmts = &phase_now(e)->stmts;
    for (uint32_t i = 0; is_turning(e) && i < stmts->count; i++) {
        uint32_t id = stmts->at[i];
        const char *name = turning_name(e, id);
        if (!name) continue;
        bool again = is_resident(e, id), kept = gen_holds_rows(strategy(e));
        for (uint32_t q = e->phase + 1; kept && q < e->step->phase_count; q++)
            again |= listed(&e->step->phases[q].stmts, id);
        ir_text_format(out, "%*sng_turn<%s>(%s);\n", indent, "", again ? "true" : "false", name);
    }
    for (uint32_t i = 0; is_turning(e) && i < phase_now(e)->reduces.count; i++)
        if (gen_is_for_all_rows(e, phase_now(e)->reduces.at[i]))
            ir_text_format(out, "%*sng_turn<true>(acc%u);\n", indent, "", phase_now(e)->reduces.at[i]);
}

/* ---- loads ---- */

static const char *constant_suffix(const Emitter *e, const Stmt *load) {
    return gen_is_constant(e, load->access) ? "_constant" : "";
}

/* `first`, where it is not NULL, and that these dims of a load are not empty; NULL: nothing to ask. */
static const char *sizes_condition(Emitter *e, const Stmt *load, uint8_t dims, const char *first) {
    const Buf *buf = buf_of(e, load);
    Text condition = ir_text(e->job);
    if (first) ir_text_put(&condition, first);
    for (uint32_t d = 0; d <= IR_MAX_RANK; d++) {
        if (!(dims >> d & 1)) continue;
        const Size extent = d < IR_MAX_RANK ? buf->extent[d] : e->nest->accesses.at[load->access].index_extent;
        ir_text_format(&condition, "%s%s > 0", condition.count ? " && " : "", gen_size_text(e, extent));
    }
    return condition.count ? ir_text_string(&condition) : NULL;
}

static const char *pack_text(Emitter *e, const Stmt *load) {
    const char *suffix = constant_suffix(e, load), *address = gen_address(e, load->access, false);
    const char *left = e->tail ? ir_format(e->job, ", %s", gen_left(e)) : "";
    switch (form_of(e, load)->kind) {
    case FORM_UNIT: return ir_format(e->job, "ng_load%s<WIDE, VECTOR>(%s%s)", suffix, address, left);
    case FORM_SAME: return ir_format(e->job, "ng_load%s<false, 1>(%s)", suffix, address);
    default: {
        const char *stride = gen_size_text(e, e->nest->accesses.at[load->access].stride[e->last]);
        return ir_format(e->job, "ng_load_strided%s<VECTOR>(%s, %s%s)", suffix, address, stride, left);
    }
    }
}

const char *gen_pack_type(Emitter *e, const Stmt *load) {
    const char *lanes = form_of(e, load)->kind == FORM_SAME ? "1" : "VECTOR";
    return ir_format(e->job, "ng_pack<%s, %s>", gen_storage_type(buf_of(e, load)->dtype), lanes);
}

const char *gen_load_text(Emitter *e, const Stmt *load) {
    const char *there = sizes_condition(e, load, form_of(e, load)->apart, NULL), *pack = pack_text(e, load);
    return there ? ir_format(e->job, "%s ? %s : %s{}", there, pack, gen_pack_type(e, load)) : pack;
}

static void fill_packs(Emitter *e, Text *out, int indent) {
    const StmtList *loads = &phase_now(e)->loads;
    for (uint32_t i = 0; i < loads->count; i++) {
        if (!is_issued(e, loads->at[i])) continue;
        ir_text_format(out, "%*s%s %s[CHUNKS]%s;\n", indent, "", gen_pack_type(e, stmt_at(e, loads->at[i])),
                       gen_place_name(e, 'r', loads->at[i]), start_text(e));
    }
}

static void fill_loads(Emitter *e, Text *out, int indent) {
    const StmtList *loads = &phase_now(e)->loads;
    for (uint32_t i = 0; i < loads->count; i++)
        if (is_issued(e, loads->at[i]))
            ir_text_format(out, "%*s%s[u] = %s;\n", indent, "", gen_place_name(e, 'r', loads->at[i]),
                           gen_load_text(e, stmt_at(e, loads->at[i])));
}

/* A loaded element: of a pack's lane, or gathered. */
static const char *element_text(Emitter *e, uint32_t id) {
    const Stmt *load = stmt_at(e, id);
    if (form_of(e, load)->kind == FORM_GATHER) {
        const char *there = sizes_condition(e, load, form_of(e, load)->apart | form_of(e, load)->empty, NULL),
                   *read =
                       ir_format(e->job, "ng_read%s(%s)", constant_suffix(e, load), gen_address(e, load->access, true));
        return there ? ir_format(e->job, "%s ? %s : (%s)0", there, read, gen_compute_type(load->dtype)) : read;
    }
    const char *lane = form_of(e, load)->kind == FORM_SAME ? "0" : "v";
    const char *chunk = is_late(e, id) ? "" : ir_format(e->job, "[%s]", gen_chunk_index(e));
    return ir_format(e->job, "ng_get(%s%s, %s)", gen_place_name(e, 'r', id), chunk, lane);
}

/* ---- stores ---- */

/* What must hold for one of several equal stores to be the one: the axes that its map lacks are at 0. */
static const char *lone_condition(Emitter *e, const Stmt *store, bool columns) {
    Text text = ir_text(e->job);
    for (uint32_t a = 0; a < e->nest->axis_count; a++) {
        bool column = e->inner >> a & 1;
        if ((store->domain >> a & 1) || (column && !columns)) continue;
        ir_text_format(&text, "%s%s%s == 0", text.count ? " && " : "", gen_axis_name(e, a),
                       column && a == e->last ? " + v" : "");
    }
    return text.count ? ir_text_string(&text) : NULL;
}

/* Stored lane by lane, within the lanes' loop. */
static bool is_lanewise(const Emitter *e, const Stmt *store) {
    FormKind kind = form_of(e, store)->kind;
    return kind == FORM_SAME || kind == FORM_GATHER;
}

static void fill_before(Emitter *e, Text *out, int indent) {
    const Phase *phase = phase_now(e);
    if (gen_holds_rows(strategy(e)))
        for (uint32_t i = 0; i < phase->stmts.count; i++) {
            uint32_t id = phase->stmts.at[i];
            if (stmt_at(e, id)->op != OP_LOAD) continue;
            const bool before = e->step->crossing[id] == CROSS_KEEP_RAW && issue_phase(e, id) < e->phase;
            if (before || is_resident(e, id))
                ir_text_format(out, "%*sng_opaque(%s[%s]);\n", indent, "", gen_place_name(e, 'r', id),
                               gen_chunk_index(e));
        }
    bool apart = strategy(e) == STRATEGY_ROW_STREAM;
    for (uint32_t i = 0; i < phase->loads.count; i++) {
        const Stmt *load = stmt_at(e, phase->loads.at[i]);
        if (!is_late(e, phase->loads.at[i])) continue;
        if (apart) ir_text_format(out, "%*sng_apart();\n", indent, "");
        apart = false;
        ir_text_format(out, "%*sconst %s %s = %s;\n", indent, "", gen_pack_type(e, load),
                       gen_place_name(e, 'r', phase->loads.at[i]), gen_load_text(e, load));
    }
    for (uint32_t i = 0; i < phase->stores.count; i++) {
        const Stmt *store = stmt_at(e, phase->stores.at[i]);
        if (is_lanewise(e, store)) continue;
        ir_text_format(out, "%*s%s %s[VECTOR]%s;\n", indent, "", gen_compute_type(buf_of(e, store)->dtype),
                       gen_place_name(e, 'o', phase->stores.at[i]), e->tail ? " = {}" : "");
    }
    gen_emit_pair_lanes(e, out, indent);
}

static void fill_after(Emitter *e, Text *out, int indent) {
    const StmtList *stores = &phase_now(e)->stores;
    gen_emit_pair_adds(e, out, indent);
    for (uint32_t i = 0; i < stores->count; i++) {
        const Stmt *store = stmt_at(e, stores->at[i]);
        if (is_lanewise(e, store)) continue;
        const char *address = gen_address(e, store->access, false), *lanes = gen_place_name(e, 'o', stores->at[i]);
        const char *left = e->tail ? ir_format(e->job, ", %s", gen_left(e)) : "";
        const char *condition = lone_condition(e, store, true);
        ir_text_format(out, "%*s", indent, "");
        if (condition) ir_text_format(out, "if (%s) ", condition);
        if (form_of(e, store)->kind == FORM_UNIT) {
            ir_text_format(out, "ng_store<WIDE>(%s, %s%s);\n", address, lanes, left);
        } else {
            const char *stride = gen_size_text(e, e->nest->accesses.at[store->access].stride[e->last]);
            ir_text_format(out, "ng_store_strided(%s, %s, %s%s);\n", address, lanes, stride, left);
        }
    }
}

/* ---- lanes ---- */

/* The phase that computes a value first. */
static uint32_t first_phase(const Emitter *e, uint32_t id) {
    uint32_t q = 0;
    while (!listed(&e->step->phases[q].stmts, id)) q++;
    return q;
}

static void put_value(Emitter *e, Text *out, int indent, uint32_t id) {
    const Stmt *stmt = stmt_at(e, id);
    const char *name = gen_value_name(e, id), *type = gen_compute_type(stmt->dtype), *text;
    bool kept = e->step->crossing[id] == CROSS_KEEP, fetch = kept && first_phase(e, id) < e->phase;
    const char *place = kept ? ir_format(e->job, "%s[%s][v]", gen_place_name(e, 'k', id), gen_chunk_index(e)) : NULL;
    if (fetch)
        text = place;
    else if (stmt->op == OP_LOAD)
        text = element_text(e, id);
    else
        text = gen_expression(e, stmt);
    ir_text_format(out, "%*sconst %s %s = %s;%s\n", indent, "", type, name, text, gen_remark(e, stmt));
    if (kept && !fetch) ir_text_format(out, "%*s%s = %s;\n", indent, "", place, name);
}

static void fill_lanes(Emitter *e, Text *out, int indent) {
    const Phase *phase = phase_now(e);
    for (uint32_t i = 0; i < phase->stmts.count; i++) put_value(e, out, indent, phase->stmts.at[i]);
    for (uint32_t i = 0; i < phase->reduces.count; i++) gen_emit_reduce(e, out, indent, phase->reduces.at[i]);
    for (uint32_t i = 0; i < phase->stores.count; i++) {
        const Stmt *store = stmt_at(e, phase->stores.at[i]);
        if (is_lanewise(e, store)) {
            const char *condition = lone_condition(e, store, true);
            ir_text_format(out, "%*s%s%s%sng_write(%s, %s);\n", indent, "", condition ? "if (" : "",
                           condition ? condition : "", condition ? ") " : "", gen_address(e, store->access, true),
                           gen_stored(e, store));
        } else {
            ir_text_format(out, "%*s%s[v] = %s;\n", indent, "", gen_place_name(e, 'o', phase->stores.at[i]),
                           gen_stored(e, store));
        }
    }
}

/* ---- rows ---- */

/* A row that is not there reads nothing, nor one of a tensor that has no element. */
const char *gen_row_condition(Emitter *e, const Stmt *load) {
    return sizes_condition(e, load, form_of(e, load)->empty, strategy(e) == STRATEGY_POINTWISE ? NULL : "live");
}

/* A caller of the launcher may give any number that the parameter's type has: a narrower scalar is one after rounding.
 */
static const char *scalar_text(Emitter *e, const Stmt *load) {
    const DType dtype = buf_of(e, load)->dtype;
    const char *param = gen_param_name(e, e->nest->accesses.at[load->access].buf);
    return dtype == ir_compute_dtype(dtype) ? param : ir_format(e->job, "ng_cast_%s(%s)", ir_dtype(dtype)->name, param);
}

const char *gen_row_load_text(Emitter *e, const Stmt *load) {
    if (buf_of(e, load)->kind == BUF_SCALAR) return scalar_text(e, load);
    const char *condition = gen_row_condition(e, load),
               *read =
                   ir_format(e->job, "ng_read%s(%s)", constant_suffix(e, load), gen_address(e, load->access, false));
    return condition ? ir_format(e->job, "%s ? %s : (%s)0", condition, read, gen_compute_type(load->dtype)) : read;
}

/* Whether a row store may write what other threads of the row still have to load. */
bool gen_row_stores_race(const Emitter *e) {
    const StmtList *stores = &phase_now(e)->row_stores;
    for (uint32_t i = 0; i < stores->count; i++) {
        uint32_t written = e->nest->accesses.at[stmt_at(e, stores->at[i])->access].buf;
        uint32_t alias = e->prog->bufs.at[written].may_alias;
        for (uint32_t k = 0; k < e->nest->stmts.count; k++) {
            const Stmt *load = stmt_at(e, k);
            if (load->op != OP_LOAD || is_element(e, k)) continue;
            uint32_t read = e->nest->accesses.at[load->access].buf;
            if (read == written || read == alias) return true;
        }
    }
    return false;
}

/* A kernel of one element: what it overwrites only the thread that stores may read, and the others have nothing to do.
 */
static bool is_one_element(const Emitter *e) {
    bool one = strategy(e) == STRATEGY_POINTWISE;
    for (uint32_t a = 0; a < e->nest->axis_count; a++) one = one && ir_size_is(e->nest->axes[a].extent, 1);
    return one;
}

static void fill_row_stores(Emitter *e, Text *out, int indent) {
    const StmtList *stores = &phase_now(e)->row_stores;
    if (stores->count == 0) return;
    const char *who = strategy(e) == STRATEGY_POINTWISE ? "block == 0 && t == 0" : "live && t == 0";
    if (strategy(e) != STRATEGY_POINTWISE && e->step->tile.row_threads > 1 && gen_row_stores_race(e))
        ir_text_format(out, "%*sng_barrier(%d);  // all threads of the row have read what is written in place\n",
                       indent, "", e->site++);
    for (uint32_t i = 0; i < stores->count; i++) {
        const Stmt *store = stmt_at(e, stores->at[i]);
        const char *condition = strategy(e) == STRATEGY_POINTWISE ? NULL : lone_condition(e, store, false);
        ir_text_format(out, "%*s", indent, "");
        if (!is_one_element(e))
            ir_text_format(out, "if (%s%s%s) ", who, condition ? " && " : "", condition ? condition : "");
        ir_text_format(out, "ng_write(%s, %s);\n", gen_address(e, store->access, false), gen_stored(e, store));
    }
}

static void fill_row(Emitter *e, Text *out, int indent) {
    const Phase *phase = phase_now(e);
    if (gen_by_columns(strategy(e))) {
        gen_emit_column_values(e, out, indent);
        return;
    }
    if (strategy(e) != STRATEGY_POINTWISE) ir_text_format(out, "%*s// phase %u\n", indent, "", e->phase);
    if (is_one_element(e)) ir_text_format(out, "%*sif (block != 0 || t != 0) return;  // one element\n", indent, "");
    for (uint32_t i = 0; i < phase->row_stmts.count; i++) {
        uint32_t id = phase->row_stmts.at[i];
        const Stmt *stmt = stmt_at(e, id);
        if (is_ahead(e, id)) continue;
        const char *text = stmt->op == OP_LOAD ? gen_row_load_text(e, stmt) : gen_expression(e, stmt);
        ir_text_format(out, "%*sconst %s %s = %s;%s\n", indent, "", gen_compute_type(stmt->dtype),
                       gen_value_name(e, id), text, gen_remark(e, stmt));
    }
    if (strategy(e) != STRATEGY_POINTWISE) fill_row_stores(e, out, indent);
}

static void fill_declare(Emitter *e, Text *out, int indent) {
    const Phase *phase = phase_now(e);
    if (gen_holds_rows(strategy(e))) fill_packs(e, out, indent);
    for (uint32_t i = 0; i < phase->stmts.count; i++) {
        uint32_t id = phase->stmts.at[i];
        if (e->step->crossing[id] == CROSS_KEEP && first_phase(e, id) == e->phase)
            ir_text_format(out, "%*s%s %s[CHUNKS][VECTOR]%s;\n", indent, "", gen_compute_type(stmt_at(e, id)->dtype),
                           gen_place_name(e, 'k', id), start_text(e));
    }
    gen_emit_accumulators(e, out, indent);
}

bool gen_has_lanes(const Phase *phase) { return phase->stmts.count + phase->reduces.count + phase->stores.count > 0; }

/* ---- regions ---- */

static bool region_wanted(void *state, const char *name) {
    Emitter *e = state;
    const Phase *phase = phase_now(e);
    if (strcmp(name, "loads") == 0) {
        for (uint32_t i = 0; i < phase->loads.count; i++)
            if (is_issued(e, phase->loads.at[i])) return true;
        return false;
    }
    if (strcmp(name, "resident") == 0) return e->step->resident.count > 0;
    if (strcmp(name, "slots") == 0) return e->step->tile.rows > 1;
    if (strcmp(name, "alone") == 0) return e->step->tile.rows == 1;
    if (strcmp(name, "lanes") == 0) return gen_has_lanes(phase);
    IR_BREACH(e->job, "a skeleton asks for `%s`", name);
}

static void fill_tail(Emitter *e, Text *out, int indent) {
    if (e->tail) ir_text_format(out, "%*sif (!WIDE && v >= %s) continue;\n", indent, "", gen_left(e));
}

/* Axes that the text of the loads' loop names, and that of the lanes' loop. */
static void fill_split_loads(Emitter *e, Text *out, int indent) {
    const StmtList *loads = &phase_now(e)->loads;
    uint32_t used = 0;
    for (uint32_t i = 0; i < loads->count; i++)
        if (is_issued(e, loads->at[i])) used |= gen_access_axes(e, stmt_at(e, loads->at[i])->access);
    gen_emit_split(e, out, indent, used);
}

static void fill_split(Emitter *e, Text *out, int indent) {
    const Phase *phase = phase_now(e);
    uint32_t used = 0;
    for (uint32_t i = 0; i < phase->loads.count; i++)
        if (is_late(e, phase->loads.at[i])) used |= gen_access_axes(e, stmt_at(e, phase->loads.at[i])->access);
    for (uint32_t i = 0; i < phase->stmts.count; i++) {
        const Stmt *stmt = stmt_at(e, phase->stmts.at[i]);
        if (stmt->op == OP_IOTA) used |= (uint32_t)1 << stmt->axis;
        if (stmt->op == OP_LOAD && form_of(e, stmt)->kind == FORM_GATHER) used |= gen_access_axes(e, stmt->access);
    }
    for (uint32_t i = 0; i < phase->stores.count; i++) /* its map's axes in the pointer, the others in its condition */
        used |= gen_access_axes(e, stmt_at(e, phase->stores.at[i])->access) | ~stmt_at(e, phase->stores.at[i])->domain;
    gen_emit_split(e, out, indent, used);
}

static void region_fill(void *state, const char *name, Text *out, int indent) {
    static const struct {
        const char *name;
        void (*fill)(Emitter *e, Text *out, int indent);
    } regions[] = {
        {"bases", gen_emit_bases},
        {"row", fill_row},
        {"declare", fill_declare},
        {"packs", fill_packs},
        {"loads", fill_loads},
        {"before", fill_before},
        {"lanes", fill_lanes},
        {"after", fill_after},
        {"combine", gen_emit_combine},
        {"unroll", fill_unroll},
        {"turn", fill_turn},
        {"tail", fill_tail},
        {"split", fill_split},
        {"rowstores", fill_row_stores},
        {"split_loads", fill_split_loads},
        {"place", gen_emit_place},
        {"trips", gen_emit_trips},
        {"columns", gen_emit_columns},
        {"accumulators", gen_emit_sums},
        {"resident_packs", gen_emit_resident_packs},
        {"split_resident", gen_emit_resident_split},
        {"resident", gen_emit_resident},
        {"ahead", gen_emit_ahead},
        {"next", gen_emit_next},
        {"spill", gen_emit_spill},
        {"part_bases", gen_emit_part_bases},
        {"split_parts", gen_emit_parts_split},
        {"parts", gen_emit_parts},
    };
    Emitter *e = state;
    if (strcmp(name, "head") == 0) {
        gen_emit_head(e, out);
        return;
    }
    for (size_t i = 0; i < sizeof regions / sizeof regions[0]; i++) {
        if (strcmp(regions[i].name, name) != 0) continue;
        regions[i].fill(e, out, indent);
        return;
    }
    IR_BREACH(e->job, "a skeleton has a region `%s`", name);
}

static void region_enter(void *state, uint32_t turn) { ((Emitter *)state)->phase = turn; }

void gen_emit_step(Job *job, const Unit *unit, uint32_t index, int *site, Text *out) {
    const Step *step = &unit->plan->steps.at[index];
    Emitter e = {.job = job, .unit = unit, .prog = unit->prog, .step = step, .site = *site, .last = IR_NONE};
    e.nest = &unit->prog->nests.at[step->nest];
    e.inner = (((uint32_t)1 << e.nest->axis_count) - 1) & ~step->row_mask;
    for (uint32_t a = 0; a < e.nest->axis_count; a++)
        if (e.inner >> a & 1) e.last = a;
    e.tail = e.last != IR_NONE && step->tile.vector > 1 &&
             gen_size_factor(job, unit->prog, e.nest->axes[e.last].extent) % step->tile.vector != 0;
    const GenTemplate *skeleton = gen_template_find(gen_strategy(step->strategy)->skeleton);
    IR_REQUIRE(job, skeleton != NULL);
    gen_skeleton(job, skeleton->bytes, &(Skeleton){&e, region_wanted, region_fill, region_enter, step->phase_count},
                 out);
    uint32_t kernel = 0;
    for (uint32_t s = 0; s < index; s++)
        if (gen_has_code(unit->plan, s)) kernel += unit->plan->steps.at[s].variant_count;
    for (uint32_t i = 0; i < step->variant_count; i++) gen_emit_entry(&e, &step->variants[i], kernel + i, out);
    *site = e.site;
}
