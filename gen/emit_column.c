/* In: a step whose lanes stand along the kept axes (column, finalize). Out: what its skeleton asks for beside the
 * common regions: which columns and rows a thread has, what is computed once a column, and how the groups' accumulators
 * are combined. A value that differs from lane to lane is an array of VECTOR. */
#include "gen/emit.h"

static const Stmt *stmt_at(const Emitter *e, uint32_t id) { return &e->nest->stmts.at[id]; }
static const Phase *phase_now(const Emitter *e) { return &e->step->phases[e->phase]; }
static const Form *form_of(const Emitter *e, const Stmt *stmt) { return &e->step->forms[stmt->access]; }
static const char *const lanes_loop = "#pragma unroll\n%*sfor (int v = 0; v < VECTOR; v++)";

/* Kept axes that the kernel names. */
static uint32_t used_axes(const Emitter *e) {
    uint32_t used = 0;
    for (uint32_t i = 0; i < e->nest->accesses.count; i++)
        for (uint32_t a = 0; a < e->nest->axis_count; a++)
            if (!ir_size_is(e->nest->accesses.at[i].stride[a], 0)) used |= (uint32_t)1 << a;
    for (uint32_t i = 0; i < e->nest->stmts.count; i++)
        if (stmt_at(e, i)->op == OP_IOTA) used |= (uint32_t)1 << stmt_at(e, i)->axis;
    return used;
}

void gen_emit_columns(Emitter *e, Text *out, int indent) {
    if (e->step->part == IR_NONE) {
        ir_text_format(out, "%*sconst ng_i64 tile = ng_block(), first = 0, after = rows;\n", indent, "");
    } else {
        const char *parts = e->prog->parts.at[e->step->part];
        ir_text_format(out, "%*sconst ng_i64 part = ng_block() %% %s, tile = ng_block() / %s;\n", indent, "", parts,
                       parts);
        ir_text_format(out, "%*sconst ng_i64 first = ng_share(rows, part, %s), after = ng_share(rows, part + 1, %s);\n",
                       indent, "", parts, parts);
    }
    ir_text_format(out, "%*sconst Column access = (Column)tile * LANES + lane;\n", indent, "");
    gen_emit_column_split(e, out, indent, used_axes(e));
}

/* ---- once a column ---- */

/* Values that are the same for all lanes, and the packs of those that are not. */
static void put_uniform(Emitter *e, Text *out, int indent, uint32_t id) {
    const Stmt *stmt = stmt_at(e, id);
    bool gather = stmt->op == OP_LOAD && form_of(e, stmt)->kind == FORM_GATHER;
    if (!gen_is_lane_value(e, id)) {
        const char *text = stmt->op == OP_LOAD ? gen_row_load_text(e, stmt) : gen_expression(e, stmt);
        ir_text_format(out, "%*sconst %s %s = %s;%s\n", indent, "", gen_compute_type(stmt->dtype),
                       gen_value_name(e, id), text, gen_remark(e, stmt));
    } else if (stmt->op == OP_LOAD && !gather) {
        const char *pack = gen_place_name(e, 'r', id);
        ir_text_format(out, "%*s%s %s = {};\n%*sif (%s) %s = %s;\n", indent, "", gen_pack_type(e, stmt), pack, indent,
                       "", gen_row_condition(e, stmt), pack, gen_load_text(e, stmt));
    }
}

static void put_lane(Emitter *e, Text *out, int indent, uint32_t id) {
    const Stmt *stmt = stmt_at(e, id);
    const char *text;
    if (stmt->op != OP_LOAD) {
        text = gen_expression(e, stmt);
    } else if (form_of(e, stmt)->kind == FORM_GATHER) {
        text = ir_format(e->job, "%s && v < %s ? ng_read(%s) : (%s)0", gen_row_condition(e, stmt), gen_left(e),
                         gen_address(e, stmt->access, true), gen_compute_type(stmt->dtype));
    } else {
        text = ir_format(e->job, "ng_get(%s, v)", gen_place_name(e, 'r', id));
    }
    ir_text_format(out, "%*s%s = %s;%s\n", indent, "", gen_value_name(e, id), text, gen_remark(e, stmt));
}

/* The array's name without the lane. */
static const char *array_name(Emitter *e, uint32_t id) {
    const char *name = gen_value_name(e, id);
    size_t count = 0;
    while (name[count] && name[count] != '[') count++;
    return ir_copy_text(e->job, name, count);
}

static void put_store(Emitter *e, Text *out, int indent, uint32_t id) {
    const Stmt *store = stmt_at(e, id);
    const char *lanes = gen_place_name(e, 'o', id);
    const char *left = e->tail ? ir_format(e->job, ", %s", gen_left(e)) : "";
    DType dtype = e->prog->bufs.at[e->nest->accesses.at[store->access].buf].dtype;
    ir_text_format(out, "%*s%s %s[VECTOR];\n", indent, "", gen_compute_type(dtype), lanes);
    ir_text_format(out, lanes_loop, indent, "");
    ir_text_format(out, " %s[v] = %s;\n", lanes, gen_stored(e, store));
    if (form_of(e, store)->kind == FORM_UNIT) {
        ir_text_format(out, "%*sng_store<WIDE>(%s, %s%s);\n", indent, "", gen_address(e, store->access, false), lanes,
                       left);
    } else {
        const char *stride = gen_size_text(e, e->nest->accesses.at[store->access].stride[e->last]);
        ir_text_format(out, "%*sng_store_strided(%s, %s, %s%s);\n", indent, "", gen_address(e, store->access, false),
                       lanes, stride, left);
    }
}

static void put_stores(Emitter *e, Text *out, int indent) {
    const StmtList *stores = &phase_now(e)->row_stores;
    if (stores->count == 0) return;
    if (e->step->tile.rows > 1 && gen_row_stores_race(e))
        ir_text_format(out, "%*sng_barrier(%d);  // all groups have read what is written in place\n", indent, "",
                       e->site++);
    ir_text_format(out, "%*sif (live && group == 0) {\n", indent, "");
    for (uint32_t i = 0; i < stores->count; i++) put_store(e, out, indent + 4, stores->at[i]);
    ir_text_format(out, "%*s}\n", indent, "");
}

void gen_emit_column_values(Emitter *e, Text *out, int indent) {
    const StmtList *stmts = &phase_now(e)->row_stmts;
    bool lanes = false;
    ir_text_format(out, "%*s// phase %u\n", indent, "", e->phase);
    for (uint32_t i = 0; i < stmts->count; i++) {
        uint32_t id = stmts->at[i];
        put_uniform(e, out, indent, id);
        if (!gen_is_lane_value(e, id)) continue;
        ir_text_format(out, "%*s%s %s[VECTOR];\n", indent, "", gen_compute_type(stmt_at(e, id)->dtype),
                       array_name(e, id));
        lanes = true;
    }
    if (lanes) {
        ir_text_format(out, lanes_loop, indent, "");
        ir_text_put(out, " {\n");
        for (uint32_t i = 0; i < stmts->count; i++)
            if (gen_is_lane_value(e, stmts->at[i])) put_lane(e, out, indent + 4, stmts->at[i]);
        ir_text_format(out, "%*s}\n", indent, "");
    }
    put_stores(e, out, indent);
}

/* ---- accumulators ---- */

static void put_slots(Emitter *e, Text *out, int indent, uint32_t id) {
    const char *type = gen_compute_type(stmt_at(e, id)->dtype);
    ir_text_format(out, "%*s%s *const slots%u = ng_shared<%s>(%u) + lane;\n", indent, "", type, id, type,
                   gen_slots_offset(e, id));
    ir_text_format(out, lanes_loop, indent, "");
    ir_text_format(out, " slots%u[(group * VECTOR + v) * LANES] = acc%u[v];\n", id, id);
}

/* Every thread adds up its columns' slots, group after group: an order that neither lanes nor vectors change. */
static void put_total(Emitter *e, Text *out, int indent, uint32_t id) {
    const Stmt *stmt = stmt_at(e, id);
    bool lanes = gen_is_lane_value(e, id), slots = e->step->tile.rows > 1;
    const char *type = gen_compute_type(stmt->dtype), *name = gen_value_name(e, id);
    const char *first = ir_format(e->job, slots ? "slots%u[v * LANES]" : "acc%u[v]", id);
    const char *next = ir_format(e->job, "slots%u[(g * VECTOR + v) * LANES]", id);
    ir_text_format(out, "%*s%s %s%s;\n", indent, "", type, array_name(e, id), lanes ? "[VECTOR]" : "");
    if (lanes)
        ir_text_format(out, lanes_loop, indent, "");
    else
        ir_text_format(out, "%*sfor (int v = 0; v < 1; v++)", indent, "");
    ir_text_format(out, " {\n%*s%s = %s;\n", indent + 4, "", name, first);
    if (slots)
        ir_text_format(out, "#pragma unroll 8\n%*sfor (int g = 1; g < GROUPS; g++) %s = %s;\n", indent + 4, "", name,
                       gen_combine(e->job, stmt->reduction, stmt->dtype, name, next));
    ir_text_format(out, "%*s}\n", indent, "");
}

static void put_part(Emitter *e, Text *out, int indent, uint32_t id) {
    const Stmt *stmt = stmt_at(e, id);
    const char *left = e->tail ? ir_format(e->job, ", %s", gen_left(e)) : "";
    ir_text_format(out, "%*sif (live && group == 0) ng_store<WIDE>(%s, %s%s);\n", indent, "",
                   gen_address(e, stmt->access, false), array_name(e, id), left);
}

void gen_emit_column_combine(Emitter *e, Text *out, int indent) {
    const StmtList *reduces = &phase_now(e)->reduces;
    bool slots = e->step->tile.rows > 1;
    for (uint32_t i = 0; slots && i < reduces->count; i++) put_slots(e, out, indent, reduces->at[i]);
    if (slots) ir_text_format(out, "%*sng_barrier(%d);\n", indent, "", e->site++);
    for (uint32_t i = 0; i < reduces->count; i++) {
        put_total(e, out, indent, reduces->at[i]);
        if (stmt_at(e, reduces->at[i])->op == OP_PARTIAL_ACCUMULATE) put_part(e, out, indent, reduces->at[i]);
    }
}
