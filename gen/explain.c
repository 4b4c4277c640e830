/* In: a unit after schedule. Out: what explain prints: for each nest its class, strategy, knobs, bytes as a formula and
 * a number, and expected time; then the choices that passes noted. */
#include "gen/bytes.h"

#include <string.h>

static void put_tile(Text *text, const Step *step) {
    const Tile *tile = &step->tile;
    if (step->strategy == STRATEGY_POINTWISE)
        ir_text_format(text, "  knobs      threads=%d vector=%d chunks=%d", tile->threads, tile->vector, tile->chunks);
    else
        ir_text_format(text, "  knobs      row_threads=%d rows=%d vector=%d chunks=%d", tile->row_threads, tile->rows,
                       tile->vector, tile->chunks);
    if (tile->min_ctas) ir_text_format(text, " min_ctas=%d", tile->min_ctas);
    ir_text_put(text, "\n");
}

static void put_guards(Text *text, const Unit *unit, const Step *step) {
    for (uint32_t v = 0; v < step->variant_count; v++) {
        const Variant *variant = &step->variants[v];
        ir_text_format(text, "  variant    %s", variant->kernel);
        for (uint32_t g = 0; g < variant->guard_count; g++) {
            const Guard *guard = &variant->guards[g];
            ir_text_put(text, g ? " and " : " where ");
            if (guard->kind == GUARD_ALIGNED) {
                ir_text_format(text, "%s %% %lld == 0", unit->prog->bufs.at[step->params[guard->param].buf].name,
                               (long long)guard->number);
                continue;
            }
            ir_text_put(text, gen_poly_text(text->job, unit->prog, ir_size_poly(text->job, unit->prog, guard->size)));
            ir_text_format(text, guard->kind == GUARD_MULTIPLE ? " %% %lld == 0" : " <= %lld",
                           (long long)guard->number);
        }
        ir_text_put(text, "\n");
    }
}

static void put_bytes(Text *text, const Unit *unit, const Step *step) {
    Poly bytes = gen_step_bytes(text->job, unit, step);
    ir_text_format(text, "  bytes      %s", gen_bytes_text(text->job, unit, bytes));
    int64_t value = gen_bytes_guess(text->job, unit, bytes);
    if (value < IR_MAX_EXTENT) {
        const Target *target = unit->options.target ? unit->options.target : gen_target(90);
        double us = (double)value / (target->dram_gbs * 1e3);
        double tenths = us < 1e12 ? (double)(int64_t)(us * 10 + 0.5) / 10 : us;
        ir_text_put(text, "\n  expected   ");
        ir_text_double(text, tenths);
        ir_text_put(text, " us at ");
        ir_text_double(text, target->dram_gbs);
        ir_text_format(text, " GB/s, the copy rate of %s; a launch adds about 1 us", target->name);
    }
    ir_text_put(text, "\n");
}

static void put_reports(Text *text, const Unit *unit, const char *pass, const char *heading) {
    bool any = false;
    for (uint32_t i = 0; i < unit->reports.count; i++) {
        if (strcmp(unit->reports.at[i].pass, pass)) continue;
        if (!any) ir_text_format(text, "\n%s\n", heading);
        any = true;
        ir_text_format(text, "  %s\n", unit->reports.at[i].text);
    }
}

void gen_explain(Text *text, const Unit *unit) {
    ir_text_format(text, "%s: %u kernel%s\n", unit->prog->name, unit->plan->steps.count,
                   unit->plan->steps.count == 1 ? "" : "s");
    for (uint32_t s = 0; s < unit->plan->steps.count; s++) {
        const Step *step = &unit->plan->steps.at[s];
        const Nest *nest = &unit->prog->nests.at[step->nest];
        const StrategyRow *strategy = gen_strategy(step->strategy);
        ir_text_format(text, "\nkernel %s\n  class      %s, %u phase%s\n", nest->name, ir_class_name(nest->class),
                       step->phase_count, step->phase_count == 1 ? "" : "s");
        ir_text_format(text, "  strategy   %s: %s\n", strategy->name, strategy->use);
        put_tile(text, step);
        put_guards(text, unit, step);
        put_bytes(text, unit, step);
    }
    put_reports(text, unit, "fuse", "fusions");
    put_reports(text, unit, "cut", "cuts");
    if (unit->plan->choices.count > 0) ir_text_put(text, "\nchoices\n");
    for (uint32_t i = 0; i < unit->plan->choices.count; i++)
        ir_text_format(text, "  %s\n", unit->plan->choices.at[i].text);
}
