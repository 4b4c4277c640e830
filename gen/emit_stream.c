/* In: a step of rows with sums across them (row_stream). Out: what its skeleton asks for beside the common regions: the
 * CTA's share of the rows, what it holds for all of them, the loads of the next rows, and the end of the sums. */
#include "gen/emit.h"

static const Stmt *stmt_at(const Emitter *e, uint32_t id) { return &e->nest->stmts.at[id]; }
static const char *const chunks_loop = "#pragma unroll\n%*sfor (int u = 0; u < CHUNKS; u++)";
static const char *const lanes_loop = "#pragma unroll\n%*sfor (int v = 0; v < VECTOR; v++)";

/* ---- the share ---- */

void gen_emit_share(Emitter *e, Text *out, int indent) {
    const char *parts = e->prog->parts.at[e->step->part];
    const bool kept = (e->step->row_mask & ~e->step->parted) != 0;
    if (kept)
        ir_text_format(out, "%*sconst ng_i64 part = ng_block() %% %s, outer = ng_block() / %s;\n", indent, "", parts,
                       parts);
    else
        ir_text_format(out, "%*sconst ng_i64 part = ng_block();\n", indent, "");
    ir_text_format(out, "%*sconst ng_i64 first = ng_share(rows, part, %s), after = ng_share(rows, part + 1, %s);\n",
                   indent, "", parts, parts);
    gen_emit_bases_at(e, out, indent, BASES_OF_CTA);
}

/* ---- what is held for all rows ---- */

void gen_emit_sums(Emitter *e, Text *out, int indent) {
    for (uint32_t i = 0; i < e->nest->stmts.count; i++) {
        const Stmt *stmt = stmt_at(e, i);
        if (stmt->op != OP_PARTIAL_ACCUMULATE) continue;
        ir_text_format(out, "%*s%s acc%u[CHUNKS][VECTOR];\n", indent, "", gen_compute_type(stmt->dtype), i);
        ir_text_format(out, chunks_loop, indent, "");
        ir_text_put(out, "\n");
        ir_text_format(out, lanes_loop, indent + 4, "");
        ir_text_format(out, " acc%u[u][v] = %s;\n", i, gen_identity_text(e->job, stmt->reduction, stmt->dtype));
    }
}

void gen_emit_resident_packs(Emitter *e, Text *out, int indent) {
    for (uint32_t i = 0; i < e->step->resident.count; i++) {
        uint32_t id = e->step->resident.at[i];
        ir_text_format(out, "%*s%s %s[CHUNKS] = {};\n", indent, "", gen_pack_type(e, stmt_at(e, id)),
                       gen_place_name(e, 'r', id));
    }
}

void gen_emit_resident_split(Emitter *e, Text *out, int indent) {
    uint32_t used = 0;
    for (uint32_t i = 0; i < e->step->resident.count; i++)
        used |= gen_access_axes(e, stmt_at(e, e->step->resident.at[i])->access);
    gen_emit_split(e, out, indent, used);
}

void gen_emit_resident(Emitter *e, Text *out, int indent) {
    for (uint32_t i = 0; i < e->step->resident.count; i++) {
        uint32_t id = e->step->resident.at[i];
        ir_text_format(out, "%*s%s[u] = %s;\n", indent, "", gen_place_name(e, 'r', id),
                       gen_load_text(e, stmt_at(e, id)));
    }
}

/* ---- the next rows ---- */

/* Loads of the row that begins so far from the trip's, where it is one of the CTA's. */
static void put_ahead(Emitter *e, Text *out, int indent, const char *from) {
    const StmtList *ahead = &e->step->ahead;
    uint32_t used = 0;
    bool packs = false;
    ir_text_format(out, "%*s{  // the %s\n", indent, "",
                   from[0] == 'f' ? "first rows" : "next rows, in the air while these are worked on");
    indent += 4;
    ir_text_format(out, "%*sconst ng_i64 row = %s + slot;\n%*sconst bool live = row < after;\n", indent, "", from,
                   indent, "");
    gen_emit_bases_at(e, out, indent, BASES_AHEAD);
    for (uint32_t i = 0; i < ahead->count; i++) {
        const Stmt *load = stmt_at(e, ahead->at[i]);
        if (load->domain & e->step->looped) {
            used |= gen_access_axes(e, load->access);
            packs = true;
        } else {
            ir_text_format(out, "%*s%s = %s;\n", indent, "", gen_place_name(e, 'n', ahead->at[i]),
                           gen_row_load_text(e, load));
        }
    }
    if (packs) {
        ir_text_format(out, chunks_loop, indent, "");
        ir_text_format(out, " {\n%*sconst Column c = ((Column)u * ROW_THREADS + t) * VECTOR;\n", indent + 4, "");
        ir_text_format(out, "%*sif (live && (FULL || c < columns)) {\n", indent + 4, "");
        gen_emit_split(e, out, indent + 8, used);
        for (uint32_t i = 0; i < ahead->count; i++) {
            const Stmt *load = stmt_at(e, ahead->at[i]);
            if (load->domain & e->step->looped)
                ir_text_format(out, "%*s%s[u] = %s;\n", indent + 8, "", gen_place_name(e, 'n', ahead->at[i]),
                               gen_load_text(e, load));
        }
        ir_text_format(out, "%*s}\n%*s}\n", indent + 4, "", indent, "");
    }
    ir_text_format(out, "%*s}\n", indent - 4, "");
}

void gen_emit_ahead(Emitter *e, Text *out, int indent) {
    const StmtList *ahead = &e->step->ahead;
    if (ahead->count == 0) return;
    for (uint32_t i = 0; i < ahead->count; i++) {
        const Stmt *load = stmt_at(e, ahead->at[i]);
        const char *name = gen_place_name(e, 'n', ahead->at[i]);
        if (load->domain & e->step->looped)
            ir_text_format(out, "%*s%s %s[CHUNKS] = {};\n", indent, "", gen_pack_type(e, load), name);
        else
            ir_text_format(out, "%*s%s %s;\n", indent, "", gen_compute_type(load->dtype), name);
    }
    put_ahead(e, out, indent, "first");
}

void gen_emit_next(Emitter *e, Text *out, int indent) {
    const StmtList *ahead = &e->step->ahead;
    if (ahead->count == 0) return;
    for (uint32_t i = 0; i < ahead->count; i++) {
        const Stmt *load = stmt_at(e, ahead->at[i]);
        const char *next = gen_place_name(e, 'n', ahead->at[i]), *now = gen_place_name(e, 'r', ahead->at[i]);
        if (!(load->domain & e->step->looped)) {
            ir_text_format(out, "%*sconst %s %s = %s;\n", indent, "", gen_compute_type(load->dtype),
                           gen_value_name(e, ahead->at[i]), next);
            continue;
        }
        ir_text_format(out, "%*s%s %s[CHUNKS];\n", indent, "", gen_pack_type(e, load), now);
        ir_text_format(out, chunks_loop, indent, "");
        ir_text_format(out, " %s[u] = %s[u];\n", now, next);
    }
    put_ahead(e, out, indent, "trip + ROWS");
}

/* ---- the end of the sums ---- */

void gen_emit_spill(Emitter *e, Text *out, int indent) {
    for (uint32_t i = 0; i < e->nest->stmts.count; i++) {
        const Stmt *stmt = stmt_at(e, i);
        if (stmt->op != OP_PARTIAL_ACCUMULATE) continue;
        const char *type = gen_compute_type(stmt->dtype);
        ir_text_format(out, "%*s%s *const slots%u = ng_shared<%s>(%u) + t;\n", indent, "", type, i, type,
                       gen_slots_offset(e, i));
        ir_text_format(out, chunks_loop, indent, "");
        ir_text_put(out, "\n");
        ir_text_format(out, lanes_loop, indent + 4, "");
        ir_text_format(out, " slots%u[((slot * CHUNKS + u) * VECTOR + v) * ROW_THREADS] = acc%u[u][v];\n", i, i);
    }
    ir_text_format(out, "%*sng_barrier(%d);\n", indent, "", e->site++);
}

void gen_emit_part_bases(Emitter *e, Text *out, int indent) { gen_emit_bases_at(e, out, indent, BASES_OF_PARTS); }

void gen_emit_parts_split(Emitter *e, Text *out, int indent) {
    uint32_t used = 0;
    for (uint32_t i = 0; i < e->nest->stmts.count; i++)
        if (stmt_at(e, i)->op == OP_PARTIAL_ACCUMULATE) used |= gen_access_axes(e, stmt_at(e, i)->access);
    gen_emit_split(e, out, indent, used);
}

/* The slots' accumulators in their order, whatever lanes and vectors are. */
static void put_part(Emitter *e, Text *out, int indent, uint32_t id) {
    const Stmt *stmt = stmt_at(e, id);
    const bool slots = e->step->tile.rows > 1;
    const char *lanes = slots ? ir_format(e->job, "o%u", id) : ir_format(e->job, "acc%u[u]", id);
    const char *address = gen_address(e, stmt->access, false);
    const char *left = e->tail ? ir_format(e->job, ", %s", gen_left(e)) : "";
    if (slots) {
        const char *next = ir_format(e->job, "slots%u[((s * CHUNKS + u) * VECTOR + v) * ROW_THREADS]", id);
        const char *sum = ir_format(e->job, "%s[v]", lanes);
        ir_text_format(out, "%*s%s %s[VECTOR];\n", indent, "", gen_compute_type(stmt->dtype), lanes);
        ir_text_format(out, lanes_loop, indent, "");
        ir_text_format(out, " {\n%*s%s = slots%u[(u * VECTOR + v) * ROW_THREADS];\n", indent + 4, "", sum, id);
        ir_text_format(out, "%*sfor (int s = 1; s < ROWS; s++) %s = %s;\n%*s}\n", indent + 4, "", sum,
                       gen_combine(e->job, stmt->reduction, stmt->dtype, sum, next), indent, "");
    }
    if (e->step->forms[stmt->access].kind == FORM_UNIT) {
        ir_text_format(out, "%*sng_store<WIDE>(%s, %s%s);\n", indent, "", address, lanes, left);
    } else {
        const char *stride = gen_size_text(e, e->nest->accesses.at[stmt->access].stride[e->last]);
        ir_text_format(out, "%*sng_store_strided(%s, %s, %s%s);\n", indent, "", address, lanes, stride, left);
    }
}

void gen_emit_parts(Emitter *e, Text *out, int indent) {
    for (uint32_t i = 0; i < e->nest->stmts.count; i++)
        if (stmt_at(e, i)->op == OP_PARTIAL_ACCUMULATE) put_part(e, out, indent, i);
}
