/* In: the reductions of a phase. Out: their accumulators, what an element adds to them, and how a row's threads combine
 * them. A pair's (online, welford) takes an access at a time, its elements in an array: templates/pairs.cuh. Left
 * alone: column kernels' combining (gen/emit_column.c). */
#include "gen/emit.h"

#include <string.h>

static const Stmt *stmt_at(const Emitter *e, uint32_t id) { return &e->nest->stmts.at[id]; }
static const StmtList *reduces_now(const Emitter *e) { return &e->step->phases[e->phase].reduces; }
static bool by_columns(const Emitter *e) { return gen_by_columns(e->step->strategy); }

static bool is_pair(const Stmt *stmt) { return ir_reduction(stmt->reduction)->results > 1; }
/* The other result of a pair whose first has the accumulator. */
static bool is_second(const Emitter *e, uint32_t id) { return gen_accumulator(e->step, e->nest, id) != id; }

bool gen_is_for_all_rows(const Emitter *e, uint32_t id) {
    return e->step->strategy == STRATEGY_ROW_STREAM && stmt_at(e, id)->op == OP_PARTIAL_ACCUMULATE;
}

/* The phase's reductions that end with it. */
static StmtList ending_now(Emitter *e) {
    const StmtList *all = reduces_now(e);
    StmtList ending = {0};
    for (uint32_t i = 0; i < all->count; i++)
        if (!gen_is_for_all_rows(e, all->at[i])) *IR_PUSH(e->job, &ending) = all->at[i];
    return ending;
}

/* Column: one for each lane; for all rows: one for each element of a row. */
static const char *accumulator(Emitter *e, uint32_t id) {
    if (gen_is_for_all_rows(e, id)) return ir_format(e->job, "acc%u[%s][v]", id, gen_chunk_index(e));
    return ir_format(e->job, by_columns(e) ? "acc%u[v]" : "acc%u", id);
}

static const char *accumulator_type(Emitter *e, const Stmt *stmt) {
    const char *type = gen_compute_type(stmt->dtype);
    return is_pair(stmt) ? ir_format(e->job, "ng_%s<%s>", ir_reduction(stmt->reduction)->name, type) : type;
}

void gen_emit_accumulators(Emitter *e, Text *out, int indent) {
    const StmtList ending = ending_now(e), *reduces = &ending;
    for (uint32_t i = 0; i < reduces->count; i++) {
        uint32_t id = reduces->at[i];
        const Stmt *stmt = stmt_at(e, id);
        const char *type = accumulator_type(e, stmt), *acc = accumulator(e, id);
        if (is_pair(stmt)) {
            if (!is_second(e, id)) ir_text_format(out, "%*s%s %s;\n", indent, "", type, acc);
            continue;
        }
        const char *identity = gen_identity_text(e->job, stmt->reduction, stmt->dtype);
        if (by_columns(e))
            ir_text_format(out, "%*s%s acc%u[VECTOR];\n#pragma unroll\n%*sfor (int v = 0; v < VECTOR; v++) %s = %s;\n",
                           indent, "", type, id, indent, "", acc, identity);
        else
            ir_text_format(out, "%*s%s %s = %s;\n", indent, "", type, acc, identity);
    }
}

/* ---- elements ---- */

void gen_emit_reduce(Emitter *e, Text *out, int indent, uint32_t id) {
    const Stmt *stmt = stmt_at(e, id), *arg = stmt_at(e, stmt->arg[0]);
    const char *acc = accumulator(e, id), *text;
    bool floats = ir_compute_dtype(stmt->dtype) == DTYPE_F32 || ir_compute_dtype(stmt->dtype) == DTYPE_F64;
    if (is_pair(stmt)) {
        if (is_second(e, id)) return;
        acc = ir_format(e->job, "x%u[v]", id);
        text = gen_operand(e, stmt->arg[0], stmt->dtype);
    } else if (stmt->reduction == REDUCTION_ADD && floats && arg->op == OP_MUL && arg->dtype == stmt->dtype) {
        text = ir_format(e->job, "ng_fma(%s, %s, %s)", gen_operand(e, arg->arg[0], stmt->dtype),
                         gen_operand(e, arg->arg[1], stmt->dtype), acc);
    } else {
        text = gen_combine(e->job, stmt->reduction, stmt->dtype, acc, gen_operand(e, stmt->arg[0], stmt->dtype));
    }
    ir_text_format(out, "%*s%s = %s;%s\n", indent, "", acc, text, is_pair(stmt) ? "" : gen_remark(e, stmt));
}

void gen_emit_pair_lanes(Emitter *e, Text *out, int indent) {
    const StmtList *reduces = reduces_now(e);
    for (uint32_t i = 0; i < reduces->count; i++) {
        const Stmt *stmt = stmt_at(e, reduces->at[i]);
        if (!is_pair(stmt) || is_second(e, reduces->at[i])) continue;
        ir_text_format(out, "%*s%s x%u[VECTOR]%s;\n", indent, "", gen_compute_type(stmt->dtype), reduces->at[i],
                       e->tail ? " = {}" : "");
    }
}

void gen_emit_pair_adds(Emitter *e, Text *out, int indent) {
    const StmtList *reduces = reduces_now(e);
    for (uint32_t i = 0; i < reduces->count; i++) {
        uint32_t id = reduces->at[i];
        const Stmt *stmt = stmt_at(e, id);
        if (!is_pair(stmt) || is_second(e, id)) continue;
        const char *left = e->tail ? ir_format(e->job, ", WIDE ? VECTOR : %s", gen_left(e)) : "";
        ir_text_format(out, "%*sng_%s_add(%s, x%u%s);\n", indent, "", ir_reduction(stmt->reduction)->name,
                       accumulator(e, id), id, left);
    }
}

/* ---- rows ---- */

uint32_t gen_slots_offset(const Emitter *e, uint32_t id) {
    const char *name = ir_format(e->job, "slots%u", id);
    for (uint32_t i = 0; i < e->step->slice_count; i++)
        if (strcmp(e->step->slices[i].name, name) == 0) return e->step->slices[i].offset;
    IR_BREACH(e->job, "reduction %u has no slots", id);
}

bool gen_has_warp_slots(const Emitter *e) {
    bool reduces = false;
    for (uint32_t i = 0; i < e->nest->stmts.count; i++)
        reduces = reduces || (stmt_at(e, i)->op == OP_REDUCE && e->step->crossing[i] == CROSS_ROW);
    return reduces && e->step->tile.row_threads > 32;
}

/* Within the warp, in butterfly order: what all of its lanes have is the same. */
static void put_butterfly(Emitter *e, Text *out, int indent, const StmtList *reduces, int lanes) {
    ir_text_format(out, "#pragma unroll\n%*sfor (int distance = %d; distance > 0; distance /= 2) {\n", indent, "",
                   lanes / 2);
    for (uint32_t i = 0; i < reduces->count; i++) {
        uint32_t id = reduces->at[i];
        const Stmt *stmt = stmt_at(e, id);
        if (is_second(e, id)) continue;
        const char *acc = accumulator(e, id), *other = ir_format(e->job, "other%u", id);
        const char *shuffle =
            is_pair(stmt) ? ir_format(e->job, "ng_%s_shuffle", ir_reduction(stmt->reduction)->name) : "ng_shuffle_xor";
        ir_text_format(out, "%*sconst %s %s = %s(%d, %s, distance, %d);\n", indent + 4, "", accumulator_type(e, stmt),
                       other, shuffle, e->site++, acc, lanes);
        ir_text_format(out, "%*s%s = %s;\n", indent + 4, "", acc,
                       gen_combine(e->job, stmt->reduction, stmt->dtype, acc, other));
    }
    ir_text_format(out, "%*s}\n", indent, "");
}

/* Every thread combines the warps' slots in one order. */
static void put_total(Emitter *e, Text *out, int indent, uint32_t id, bool slots) {
    const Stmt *stmt = stmt_at(e, id);
    const char *acc = accumulator(e, gen_accumulator(e->step, e->nest, id));
    const char *name = gen_value_name(e, id), *type = gen_compute_type(stmt->dtype);
    const char *total = is_pair(stmt) ? acc : name;
    if (slots && !is_second(e, id)) {
        const char *declared = is_pair(stmt) ? "" : ir_format(e->job, "%s ", type);
        ir_text_format(out, "%*s%s%s = slots%u[0];\n#pragma unroll\n", indent, "", declared, total, id);
        ir_text_format(out, "%*sfor (int w = 1; w < ROW_THREADS / 32; w++) %s = %s;\n", indent, "", total,
                       gen_combine(e->job, stmt->reduction, stmt->dtype, total, ir_format(e->job, "slots%u[w]", id)));
    }
    if (is_pair(stmt))
        ir_text_format(out, "%*sconst %s %s = ng_%s_result<%u>(%s);%s\n", indent, "", type, name,
                       ir_reduction(stmt->reduction)->name, stmt->result, acc, gen_remark(e, stmt));
    else if (!slots)
        ir_text_format(out, "%*sconst %s %s = %s;\n", indent, "", type, name, acc);
}

/* A butterfly within the warp; then every thread adds up the warps' slots in one order. */
void gen_emit_combine(Emitter *e, Text *out, int indent) {
    const StmtList ending = ending_now(e), *reduces = &ending;
    const char *place = e->step->strategy == STRATEGY_ROW_STREAM ? "(odd * ROWS + slot)" : "slot";
    const Tile *tile = &e->step->tile;
    int lanes = tile->row_threads < 32 ? tile->row_threads : 32;
    bool slots = tile->row_threads > 32;
    if (reduces->count == 0) return;
    if (by_columns(e)) {
        gen_emit_column_combine(e, out, indent);
        return;
    }
    if (lanes > 1) put_butterfly(e, out, indent, reduces, lanes);
    for (uint32_t i = 0; slots && i < reduces->count; i++) {
        uint32_t id = reduces->at[i];
        const char *type = accumulator_type(e, stmt_at(e, id));
        if (is_second(e, id)) continue;
        ir_text_format(out, "%*s%s *const slots%u = ng_shared<%s>(%u) + %s * (ROW_THREADS / 32);\n", indent, "", type,
                       id, type, gen_slots_offset(e, id), place);
        ir_text_format(out, "%*sif (t %% 32 == 0) slots%u[t / 32] = %s;\n", indent, "", id, accumulator(e, id));
    }
    if (slots) ir_text_format(out, "%*sng_barrier(%d);\n", indent, "", e->site++);
    for (uint32_t i = 0; i < reduces->count; i++) put_total(e, out, indent, reduces->at[i], slots);
    for (uint32_t i = 0; i < reduces->count; i++) {
        const Stmt *stmt = stmt_at(e, reduces->at[i]);
        if (stmt->op != OP_PARTIAL_ACCUMULATE) continue;
        ir_text_format(out, "%*sif (live && t == 0) ng_write(%s, %s);\n", indent, "",
                       gen_address(e, stmt->access, false), gen_value_name(e, reduces->at[i]));
    }
}
