/* In: a step. Out: its function's head, with the step's constants, and the entries of its variants. */
#include "gen/emit.h"

#include <string.h>

static const char *param_text(Emitter *e, const Param *param, bool types) {
    if (!types) return param->name;
    if (param->kind == PARAM_SIZE) return ir_format(e->job, "ng_i64 %s", param->name);
    const Buf *buf = &e->prog->bufs.at[param->buf];
    if (buf->kind == BUF_SCALAR) return ir_format(e->job, "%s %s", gen_compute_type(buf->dtype), param->name);
    bool alone = buf->kind == BUF_OUT && buf->may_alias == IR_NONE;
    for (uint32_t k = 0; k < e->nest->accesses.count; k++)
        if (e->nest->accesses.at[k].buf == param->buf && gen_is_constant(e, k)) alone = true;
    return ir_format(e->job, "%s%s *%s%s", buf->kind == BUF_IN ? "const " : "", gen_storage_type(buf->dtype),
                     alone ? "__restrict__ " : "", param->name);
}

void gen_emit_params(Emitter *e, Text *out, bool types) {
    const size_t most = 116;
    size_t start = out->count;
    while (start > 0 && out->bytes[start - 1] != '\n') start--;
    for (uint32_t i = 0; i < e->step->param_count; i++) {
        const char *text = param_text(e, &e->step->params[i], types);
        if (i && out->count - start + strlen(text) + 2 > most) {
            ir_text_put(out, ",\n        ");
            start = out->count - 8;
        } else if (i) {
            ir_text_put(out, ", ");
        }
        ir_text_put(out, text);
    }
}

static const char *points_text(Emitter *e, uint32_t axes) {
    Size extents[IR_MAX_AXES];
    uint32_t count = 0;
    for (uint32_t a = 0; a < e->nest->axis_count; a++)
        if (axes >> a & 1) extents[count++] = e->nest->axes[a].extent;
    return gen_product_text(e, extents, count);
}

/* row_stream, many elements a thread: a condition around each access keeps ptxas from bringing all of them at once
 * (RMSNorm's gradient of 16384 columns, 512 threads: 312 bytes spilled without, none with). */
static bool is_full(const Emitter *e) {
    const Tile *tile = &e->step->tile;
    if (e->step->strategy == STRATEGY_ROW_STREAM && tile->chunks * tile->vector > 16) return false;
    int64_t trip = (int64_t)tile->row_threads * tile->vector * tile->chunks, columns = e->step->fixed_columns;
    if (tile->rows > 1 || columns <= 0 || e->step->strategy == STRATEGY_ROW_SPLIT) return false;
    return e->step->strategy == STRATEGY_ROW_LOOP ? columns % trip == 0 : columns == trip;
}

static const char *function_name(Emitter *e) {
    const char *kernel = e->step->variants[0].kernel;
    return ir_copy_text(e->job, kernel, strlen(kernel) - strlen(e->step->variants[0].label) - 1);
}

void gen_emit_head(Emitter *e, Text *out) {
    const Tile *tile = &e->step->tile;
    ir_text_format(out, "template <bool WIDE>\nNG_HELPER void %s(", function_name(e));
    gen_emit_params(e, out, true);
    ir_text_put(out, ") {\n");
    if (e->step->strategy == STRATEGY_POINTWISE && !gen_has_lanes(&e->step->phases[0]))
        return; /* single elements only */
    ir_text_format(out, "    using Column = %s;\n", e->step->column64 ? "ng_i64" : "int");
    if (e->step->strategy == STRATEGY_POINTWISE) {
        ir_text_format(out, "    constexpr int THREADS = %d, VECTOR = %d, CHUNKS = %d;\n", tile->threads, tile->vector,
                       tile->chunks);
        return;
    }
    if (gen_by_columns(e->step->strategy)) {
        ir_text_format(out, "    constexpr int LANES = %d, GROUPS = %d, VECTOR = %d, CHUNKS = %d;\n", tile->row_threads,
                       tile->rows, tile->vector, tile->chunks);
        ir_text_format(out, "    const ng_i64 rows = %s;\n", points_text(e, e->step->row_mask));
        return;
    }
    ir_text_format(out, "    constexpr int ROW_THREADS = %d, ROWS = %d, VECTOR = %d, CHUNKS = ", tile->row_threads,
                   tile->rows, tile->vector);
    /* A loop's chunks come in one order however many a trip takes: where elements are taken one by one, a chunk is
     * enough for what is no fast path, and NVRTC takes a third of the time. */
    bool shorter = !gen_holds_rows(e->step->strategy) && tile->vector > 1 && tile->chunks > 1;
    ir_text_format(out, shorter ? "WIDE ? %d : 1;\n" : "%d;\n", tile->chunks);
    if (e->step->strategy == STRATEGY_ROW_SPLIT) {
        ir_text_format(out, "    const Column whole = (Column)(%s);\n", points_text(e, e->inner));
    } else if (e->step->fixed_columns >= 0) {
        ir_text_format(out, "    constexpr Column columns = %lld;\n", (long long)e->step->fixed_columns);
    } else {
        ir_text_format(out, "    const Column columns = (Column)(%s);\n", points_text(e, e->inner));
    }
    ir_text_format(out, "    constexpr bool FULL = %s;  // whether every access of a tile lies in the tensor\n",
                   is_full(e) ? "true" : "false");
    const bool stream = e->step->strategy == STRATEGY_ROW_STREAM;
    ir_text_format(out, "    const ng_i64 rows = %s;\n", points_text(e, stream ? e->step->parted : e->step->row_mask));
}

/* Which row, and which part of it. A part begins at a whole access. */
void gen_emit_place(Emitter *e, Text *out, int indent) {
    if (e->step->strategy == STRATEGY_ROW_STREAM) {
        gen_emit_share(e, out, indent);
        return;
    }
    if (e->step->strategy != STRATEGY_ROW_SPLIT) {
        ir_text_format(out, "%*sconst ng_i64 row = ng_block() * ROWS + slot;\n", indent, "");
        return;
    }
    const char *parts = e->prog->parts.at[e->step->part];
    ir_text_format(out, "%*sconst ng_i64 part = ng_block() %% %s, row = ng_block() / %s * ROWS + slot;\n", indent, "",
                   parts, parts);
    ir_text_format(out, "%*sconst ng_i64 accesses = (whole - 1 + VECTOR) / VECTOR;\n", indent, "");
    ir_text_format(out, "%*sconst Column first = (Column)(ng_share(accesses, part, %s) * VECTOR);\n", indent, "",
                   parts);
    ir_text_format(out, "%*sconst Column after = (Column)(ng_share(accesses, part + 1, %s) * VECTOR);\n", indent, "",
                   parts);
    ir_text_format(out, "%*sconst Column columns = after < whole ? after : whole;  // the end of the part\n", indent,
                   "");
}

void gen_emit_trips(Emitter *e, Text *out, int indent) {
    if (e->step->strategy == STRATEGY_ROW_STREAM) {
        const bool slots = gen_has_warp_slots(e); /* two sets of them */
        ir_text_format(out, "%*sfor (ng_i64 trip = first%s; trip < after; trip += ROWS%s) {\n", indent, "",
                       slots ? ", odd = 0" : "", slots ? ", odd ^= 1" : "");
        return;
    }
    const char *first = e->step->strategy == STRATEGY_ROW_SPLIT ? "first" : "0";
    ir_text_format(out, "%*sfor (Column trip = %s; trip < columns; trip += CHUNKS * ROW_THREADS * VECTOR) {\n", indent,
                   "", first);
}

/* index: among the unit's kernels. */
void gen_emit_entry(Emitter *e, const Variant *variant, uint32_t index, Text *out) {
    ir_text_format(out, "\n#if !defined(NG_ONLY) || NG_ONLY == %u\n", index);
    ir_text_format(out, "NG_KERNEL __launch_bounds__(%d", e->step->tile.threads);
    if (e->step->tile.min_ctas) ir_text_format(out, ", %d", e->step->tile.min_ctas);
    ir_text_format(out, ") void %s(", variant->kernel);
    gen_emit_params(e, out, true);
    ir_text_format(out, ") {\n    %s<%s>(", function_name(e), variant->wide ? "true" : "false");
    gen_emit_params(e, out, false);
    ir_text_put(out, ");\n}\n#endif\n");
}

void gen_emit_declarations(Job *job, const Unit *unit, Text *out) {
    for (uint32_t s = 0; s < unit->plan->steps.count; s++) {
        const Step *step = &unit->plan->steps.at[s];
        if (!gen_has_code(unit->plan, s)) continue;
        Emitter e = {
            .job = job, .unit = unit, .prog = unit->prog, .step = step, .nest = &unit->prog->nests.at[step->nest]};
        for (uint32_t v = 0; v < step->variant_count; v++) {
            ir_text_format(out, "NG_KERNEL void %s(", step->variants[v].kernel);
            gen_emit_params(&e, out, true);
            ir_text_put(out, ");\n");
        }
    }
}
