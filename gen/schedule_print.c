/* In: a unit's plan. Out: it as comment lines of the IR dump: strategy, tile, grid, variants with their guards, and for
 * each phase what it issues, computes, combines and stores, with how values cross. */
#include "gen/emit.h"

/* Values by their numbers, stores and sums in parts by the buffers that take them. */
static void put_list(Text *text, const Unit *unit, const Nest *nest, const char *label, const StmtList *list) {
    if (list->count == 0) return;
    ir_text_format(text, " %s", label);
    for (uint32_t i = 0; i < list->count; i++) {
        const Stmt *stmt = &nest->stmts.at[list->at[i]];
        if (ir_is_value(stmt->op))
            ir_text_format(text, " %%%u", ir_value_number(nest, list->at[i]));
        else
            ir_text_format(text, " %s", unit->prog->bufs.at[nest->accesses.at[stmt->access].buf].name);
    }
    ir_text_put(text, ";");
}

static void put_crossings(Text *text, const Nest *nest, const Step *step) {
    static const struct {
        Crossing crossing;
        const char *name;
    } kinds[] = {{CROSS_KEEP, "keep"},           {CROSS_KEEP_RAW, "keep-raw"}, {CROSS_REREAD, "re-read"},
                 {CROSS_RECOMPUTE, "recompute"}, {CROSS_ROW, "row"},           {CROSS_RESIDENT, "resident"}};
    ir_text_put(text, "#   crossing");
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        bool any = false;
        for (uint32_t i = 0; i < nest->stmts.count; i++) {
            if (step->crossing[i] != kinds[k].crossing) continue;
            if (!any) ir_text_format(text, " %s", kinds[k].name);
            ir_text_format(text, " %%%u", ir_value_number(nest, i));
            any = true;
        }
        if (any) ir_text_put(text, ";");
    }
    ir_text_put(text, "\n");
}

static void put_step(Text *text, const Unit *unit, const Step *step) {
    const Nest *nest = &unit->prog->nests.at[step->nest];
    const Tile *tile = &step->tile;
    ir_text_format(text, "# step %s: %s threads=%d row_threads=%d rows=%d vector=%d chunks=%d min_ctas=%d\n",
                   nest->name, gen_strategy(step->strategy)->name, tile->threads, tile->row_threads, tile->rows,
                   tile->vector, tile->chunks, tile->min_ctas);
    if (&unit->plan->steps.at[step->code] != step)
        ir_text_format(text, "#   code of %s\n", unit->prog->nests.at[unit->plan->steps.at[step->code].nest].name);
    ir_text_format(text, "#   grid %s, shared %u bytes\n", gen_grid_text(text->job, unit->prog, step),
                   step->shared_bytes);
    for (uint32_t v = 0; v < step->variant_count; v++) {
        const Variant *variant = &step->variants[v];
        ir_text_format(text, "#   variant %s", variant->kernel);
        for (uint32_t g = 0; g < variant->guard_count; g++) {
            const Guard *guard = &variant->guards[g];
            ir_text_put(text, g ? ", " : " if ");
            if (guard->kind == GUARD_ALIGNED)
                ir_text_put(text, step->params[guard->param].name);
            else
                ir_size_print(text, unit->prog, guard->size);
            ir_text_format(text, guard->kind == GUARD_AT_MOST ? " <= %lld" : " %% %lld == 0", (long long)guard->number);
        }
        ir_text_put(text, "\n");
    }
    if (step->strategy == STRATEGY_ROW_STREAM) {
        ir_text_format(text, "#   stages %d;", tile->stages);
        put_list(text, unit, nest, "resident", &step->resident);
        put_list(text, unit, nest, "ahead", &step->ahead);
        ir_text_put(text, "\n");
    }
    for (uint32_t q = 0; q < step->phase_count; q++) {
        const Phase *phase = &step->phases[q];
        ir_text_format(text, "#   phase %u:", q);
        put_list(text, unit, nest, "row", &phase->row_stmts);
        put_list(text, unit, nest, "row store", &phase->row_stores);
        put_list(text, unit, nest, "load", &phase->loads);
        put_list(text, unit, nest, "compute", &phase->stmts);
        put_list(text, unit, nest, "reduce", &phase->reduces);
        put_list(text, unit, nest, "store", &phase->stores);
        if (phase->unroll < tile->chunks) ir_text_format(text, " unroll %d;", phase->unroll);
        ir_text_put(text, "\n");
    }
    put_crossings(text, nest, step);
}

static void put_rooms(Text *text, const Unit *unit) {
    const Plan *plan = unit->plan;
    for (uint32_t r = 0; r < plan->rooms.count; r++) {
        const Room *room = &plan->rooms.at[r];
        ir_text_format(text, "# room %u:", r);
        for (uint32_t b = 0; b < unit->prog->bufs.count; b++)
            if (plan->room_of[b] == r) ir_text_format(text, " %s", unit->prog->bufs.at[b].name);
        for (uint32_t i = 0; i < room->sizes.count; i++) {
            const RoomSize *size = &room->sizes.at[i];
            ir_text_format(text, "%s%s", i ? " or " : "; bytes ", gen_poly_text(text->job, unit->prog, size->bytes));
            if (size->each_sm)
                ir_text_format(text, ", at most %lld * SMs or %s", (long long)size->each_sm,
                               gen_poly_text(text->job, unit->prog, size->one));
        }
        ir_text_put(text, "\n");
    }
}

static void put_parts(Text *text, const Unit *unit) {
    for (uint32_t k = 0; k < unit->prog->parts.count; k++) {
        const PartCount *count = &unit->plan->parts[k];
        ir_text_format(text, "# part %s: ceil((%s) / %lld)", unit->prog->parts.at[k],
                       gen_poly_text(text->job, unit->prog, count->units), (long long)count->units_each);
        ir_text_format(text, ", at most %lld * SMs / ceil((%s) / %lld)\n", (long long)count->ctas_per_sm,
                       gen_poly_text(text->job, unit->prog, count->beside), (long long)count->beside_each);
    }
}

void gen_plan_print(Text *text, const Unit *unit) {
    put_parts(text, unit);
    put_rooms(text, unit);
    for (uint32_t s = 0; s < unit->plan->steps.count; s++) put_step(text, unit, &unit->plan->steps.at[s]);
}
