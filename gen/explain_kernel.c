/* In: one step of a plan. Out: what explain says of it: the nest and its reductions, what it reads and writes and where
 * that comes from and goes, strategy, knobs, variants, grid, registers, shared memory, bytes and expected time. */
#include "gen/explain.h"
#include "gen/knobs.h"
#include "gen/nests.h"

#include <string.h>

static const char *plural(int64_t count) { return count == 1 ? "" : "s"; }

static void put_axes(const Explain *e, Text *text, const Nest *nest, uint32_t from, uint32_t to) {
    for (uint32_t a = from; a < to; a++) {
        ir_text_format(text, "%s%c:", a > from ? ", " : "", nest->axes[a].id);
        ir_text_put(text, gen_poly_text(e->job, e->prog, ir_size_poly(e->job, e->prog, nest->axes[a].extent)));
    }
}

static void tell_nest(const Explain *e, const Step *step, const Nest *nest) {
    Text text = ir_text(e->job);
    ir_text_put(&text, "(");
    put_axes(e, &text, nest, 0, nest->row_count);
    ir_text_put(&text, nest->row_count ? " | " : "| ");
    put_axes(e, &text, nest, nest->row_count, nest->axis_count);
    ir_text_put(&text, ")");
    const char *loops = ir_text_string(&text);
    gen_tell_json_text(e->tell, "loops", loops);
    gen_tell_json_text(e->tell, "class", ir_class_name(nest->class));
    gen_tell_json_int(e->tell, "phases", step->phase_count);
    if (!e->tell->json)
        gen_tell_text(e->tell, "loops",
                      ir_format(e->job, "%s %s, %u phase%s", loops, ir_class_name(nest->class), step->phase_count,
                                plural(step->phase_count)));
}

/* Each reduction with its own class, whatever its nest became when it was joined with others. */
static void tell_reductions(const Explain *e, const Nest *nest) {
    Text text = ir_text(e->job);
    gen_tell_open(e->tell, "reductions", true);
    for (uint32_t i = 0; i < nest->stmts.count; i++) {
        const Stmt *stmt = &nest->stmts.at[i];
        if (stmt->op != OP_REDUCE && stmt->op != OP_PARTIAL_ACCUMULATE) continue;
        Text axes = ir_text(e->job);
        for (uint32_t a = 0; a < nest->axis_count; a++)
            if (stmt->consumed >> a & 1) ir_text_format(&axes, "%s%c", axes.count ? ", " : "", nest->axes[a].id);
        const char *how =
            ir_class_name(nest->class == CLASS_FINALIZE ? CLASS_FINALIZE
                                                        : gen_class_by_strides(e->job, e->prog, nest, stmt->consumed));
        const char *name = stmt->name ? stmt->name : ir_format(e->job, "%%%u", ir_value_number(nest, i));
        const char *red = ir_reduction(stmt->reduction)->name, *over = ir_text_string(&axes);
        const bool parts = stmt->op == OP_PARTIAL_ACCUMULATE;
        ir_text_format(&text, "%s%s%s%s over %s: %s%s", text.count ? "; " : "", parts ? "" : name, parts ? "" : " = ",
                       red, over, how, parts ? ", in parts" : "");
        gen_tell_open(e->tell, NULL, false);
        gen_tell_json_text(e->tell, "value", parts ? NULL : name);
        gen_tell_json_text(e->tell, "reduction", red);
        gen_tell_json_text(e->tell, "axes", over);
        gen_tell_json_text(e->tell, "class", how);
        gen_tell_json_bool(e->tell, "in_parts", parts);
        gen_tell_close(e->tell, false);
    }
    gen_tell_close(e->tell, true);
    if (!e->tell->json && text.count) gen_tell_text(e->tell, "reduces", ir_text_string(&text));
}

/* ---- what flows ---- */

static bool touches(const Nest *nest, uint32_t buf, bool loads) {
    for (uint32_t i = 0; i < nest->stmts.count; i++) {
        const Stmt *stmt = &nest->stmts.at[i];
        if (stmt->access != IR_NONE && (stmt->op == OP_LOAD) == loads && nest->accesses.at[stmt->access].buf == buf)
            return true;
    }
    return false;
}

static const Nest *nest_of(const Explain *e, uint32_t step) { return &e->prog->nests.at[e->plan->steps.at[step].nest]; }

/* The other kernels that write what this one reads, or read what it writes. */
static const char *partners(const Explain *e, uint32_t step, uint32_t buf, bool writers) {
    Text names = ir_text(e->job);
    for (uint32_t s = 0; s < e->plan->steps.count; s++)
        if (s != step && touches(nest_of(e, s), buf, !writers))
            ir_text_format(&names, "%s%s", names.count ? ", " : "", nest_of(e, s)->name);
    return ir_text_string(&names);
}

static const char *buf_text(const Explain *e, const Buf *buf) {
    Text text = ir_text(e->job);
    ir_text_format(&text, "%s %s[", buf->name, ir_dtype(buf->dtype)->name);
    for (uint32_t d = 0; d < buf->rank; d++)
        ir_text_format(&text, "%s%s", d ? ", " : "",
                       gen_poly_text(e->job, e->prog, ir_size_poly(e->job, e->prog, buf->extent[d])));
    ir_text_put(&text, "]");
    return ir_text_string(&text);
}

static void tell_flow(const Explain *e, uint32_t step, bool loads) {
    Text text = ir_text(e->job);
    const Nest *nest = nest_of(e, step);
    gen_tell_open(e->tell, loads ? "reads" : "writes", true);
    for (uint32_t b = 0; b < e->prog->bufs.count; b++) {
        const Buf *buf = &e->prog->bufs.at[b];
        if (buf->kind == BUF_SCALAR || !touches(nest, b, loads)) continue;
        const bool between = buf->kind == BUF_TMP || buf->kind == BUF_WORKSPACE;
        const char *others = between ? partners(e, step, b, loads) : "", *what = buf_text(e, buf);
        ir_text_format(&text, "%s%s%s%s", text.count ? "; " : "", what,
                       !*others ? ""
                       : loads  ? " of "
                                : " for ",
                       others);
        gen_tell_open(e->tell, NULL, false);
        gen_tell_json_text(e->tell, "buffer", what);
        if (between) gen_tell_json_text(e->tell, loads ? "from" : "to", others);
        gen_tell_close(e->tell, false);
    }
    gen_tell_close(e->tell, true);
    if (!e->tell->json && text.count) gen_tell_text(e->tell, loads ? "reads" : "writes", ir_text_string(&text));
}

/* Rows of no greatest length are never held in registers: which dims would need one. */
static void put_advice(const Explain *e, const Step *step, const Nest *nest, Text *text) {
    Text dims = ir_text(e->job);
    if (step->strategy != STRATEGY_ROW_LOOP || step->fixed_columns >= 0) return;
    for (uint32_t d = 0; d < e->prog->dims.count; d++) {
        const Dim *dim = &e->prog->dims.at[d];
        bool named = false;
        for (uint32_t a = 0; a < nest->axis_count; a++)
            named = named ||
                    ((step->looped >> a & 1) && gen_poly_has(ir_size_poly(e->job, e->prog, nest->axes[a].extent), d));
        if (named && dim->value < 0 && dim->max < 0) ir_text_format(&dims, "%s%s", dims.count ? ", " : "", dim->name);
    }
    if (dims.count) ir_text_format(text, "; a max for %s would let rows stay in registers", ir_text_string(&dims));
}

/* Tensors that a later phase loads once more, from the caches or, where rows are long, from memory. */
static void tell_again(const Explain *e, const Step *step, const Nest *nest) {
    Text text = ir_text(e->job);
    for (uint32_t b = 0; b < e->prog->bufs.count; b++) {
        uint32_t times = 0;
        for (uint32_t q = 0; q < step->phase_count; q++) {
            bool here = false;
            for (uint32_t i = 0; i < step->phases[q].loads.count; i++) {
                const Stmt *load = &nest->stmts.at[step->phases[q].loads.at[i]];
                here = here || (ir_is_full_read(nest, load) && nest->accesses.at[load->access].buf == b);
            }
            times += here;
        }
        if (times > 1)
            ir_text_format(&text, "%s%s in %u phases", text.count ? "; " : "", e->prog->bufs.at[b].name, times);
    }
    if (!text.count) return;
    const Again again = gen_step_again(e->job, e->unit, step);
    const char *most = again.at_once >= 10 << 20 ? ir_format(e->job, "%lld MB", (long long)(again.at_once >> 20))
                                                 : ir_format(e->job, "%lld KB", (long long)(again.at_once >> 10));
    ir_text_format(&text, ", %s: the CTAs that run at once touch %s, the L2 holds %lld MB",
                   again.counted ? "counted" : "served by the L2 and not counted", most,
                   (long long)(e->target->l2_bytes >> 20));
    put_advice(e, step, nest, &text);
    gen_tell_text(e->tell, "re-reads", ir_text_string(&text));
}

/* ---- how ---- */

static void tell_knobs(const Explain *e, const Step *step, const Nest *nest) {
    Text text = ir_text(e->job);
    gen_tell_open(e->tell, "knobs", false);
    for (uint32_t k = 0; k < KNOB_COUNT; k++) {
        int value;
        if (!gen_knob_value(step, (KnobId)k, &value) || !value) continue; /* part_rows 0: not by rows */
        const bool forced = gen_knob_text(&e->unit->options, (KnobId)k, nest->name) != NULL;
        ir_text_format(&text, "%s%s=%d%s", text.count ? " " : "", gen_knob((KnobId)k)->name, value,
                       forced ? " (forced)" : "");
        gen_tell_json_int(e->tell, gen_knob((KnobId)k)->name, value);
    }
    gen_tell_close(e->tell, false);
    if (!e->tell->json) gen_tell_text(e->tell, "knobs", ir_text_string(&text));
}

/* The reason that schedule noted behind its choice; the choice itself is told by now. */
static void tell_note(const Explain *e, const Nest *nest) {
    const size_t count = strlen(nest->name);
    for (uint32_t i = 0; i < e->plan->choices.count; i++) {
        const char *text = e->plan->choices.at[i].text;
        if (strncmp(text, nest->name, count) != 0 || strncmp(text + count, ": ", 2) != 0) continue;
        const char *reason = strstr(text, "; ");
        if (reason) gen_tell_text(e->tell, "note", reason + 2);
    }
}

static void tell_guard(const Explain *e, const Step *step, const Guard *guard, Text *text) {
    const bool pointer = guard->kind == GUARD_ALIGNED;
    const char *what = pointer ? e->prog->bufs.at[step->params[guard->param].buf].name
                               : gen_poly_text(e->job, e->prog, ir_size_poly(e->job, e->prog, guard->size));
    const bool most = guard->kind == GUARD_AT_MOST;
    ir_text_format(text, most ? "%s <= %lld" : "%s %% %lld == 0", what, (long long)guard->number);
    gen_tell_open(e->tell, NULL, false);
    gen_tell_json_text(e->tell, pointer ? "pointer" : "size", what);
    gen_tell_json_int(e->tell, most ? "at_most" : "multiple_of", guard->number);
    gen_tell_close(e->tell, false);
}

static void tell_variants(const Explain *e, const Step *step) {
    gen_tell_open(e->tell, "variants", true);
    for (uint32_t v = 0; v < step->variant_count; v++) {
        const Variant *variant = &step->variants[v];
        Text text = ir_text(e->job);
        ir_text_put(&text, variant->kernel);
        gen_tell_open(e->tell, NULL, false);
        gen_tell_json_text(e->tell, "kernel", variant->kernel);
        gen_tell_open(e->tell, "where", true);
        for (uint32_t g = 0; g < variant->guard_count; g++) {
            const bool first = g == 0;
            ir_text_put(&text, first ? " where " : ", ");
            tell_guard(e, step, &variant->guards[g], &text);
        }
        gen_tell_close(e->tell, true);
        gen_tell_close(e->tell, false);
        if (!variant->guard_count) ir_text_put(&text, step->variant_count > 1 ? " else" : " always");
        if (!e->tell->json) gen_tell_text(e->tell, v ? "" : "variants", ir_text_string(&text));
    }
    gen_tell_close(e->tell, true);
}

static void tell_grid(const Explain *e, const Step *step) {
    const char *formula = gen_grid_text(e->job, e->prog, step);
    int64_t ctas = -1;
    if (e->dims && gen_step_tiles(step, e->prog, e->dims, e->parts, &ctas)) {
        if (step->part != IR_NONE && ir_mul_overflows(ctas, e->parts[step->part], &ctas)) ctas = -1;
    }
    if (e->tell->json) {
        gen_tell_open(e->tell, "grid", false);
        gen_tell_json_text(e->tell, "formula", formula);
        gen_tell_json_int(e->tell, "value", ctas);
        gen_tell_close(e->tell, false);
        gen_tell_json_int(e->tell, "threads", step->tile.threads);
        return;
    }
    const bool number =
        step->part == IR_NONE && !step->run_each && ir_poly_is_int(step->units, NULL) && step->units_per_cta == 1;
    Text line = ir_text(e->job);
    ir_text_put(&line, formula);
    if (ctas >= 0 && !number) ir_text_format(&line, " = %lld", (long long)ctas);
    ir_text_format(&line, " CTAs of %d thread%s", step->tile.threads, plural(step->tile.threads));
    gen_tell_text(e->tell, "grid", ir_text_string(&line));
}

/* What __launch_bounds__ leaves a thread; ptxas hands out registers in eights. */
static void tell_room(const Explain *e, const Step *step) {
    const int ctas = step->tile.min_ctas, most = 255;
    int registers = ctas ? e->target->registers_per_sm / (step->tile.threads * ctas) / 8 * 8 : most;
    if (registers > most) registers = most;
    gen_tell_json_int(e->tell, "registers_at_most", registers);
    gen_tell_json_int(e->tell, "shared_bytes", step->shared_bytes);
    if (e->tell->json) return;
    gen_tell_text(e->tell, "registers",
                  ctas ? ir_format(e->job, "at most %d a thread, for %d CTA%s an SM", registers, ctas, plural(ctas))
                       : ir_format(e->job, "at most %d a thread", registers));
    if (step->shared_bytes) gen_tell_text(e->tell, "shared", ir_format(e->job, "%u bytes a CTA", step->shared_bytes));
}

/* A kernel that is compiled once for several steps is told at each: what it reads and moves is the step's own. */
static void tell_title(const Explain *e, uint32_t index) {
    Text title = ir_text(e->job);
    const char *first = gen_has_code(e->plan, index) ? NULL : nest_of(e, e->plan->steps.at[index].code)->name;
    ir_text_format(&title, "kernel %s", nest_of(e, index)->name);
    if (e->plan->steps.count > 1) ir_text_format(&title, ", %u of %u", index + 1, e->plan->steps.count);
    if (first) ir_text_format(&title, ", same code as %s", first);
    gen_tell_line(e->tell, 0, "");
    gen_tell_line(e->tell, 0, ir_text_string(&title));
    gen_tell_json_text(e->tell, "same_code_as", first);
}

void gen_explain_kernel(const Explain *e, uint32_t index) {
    const Step *step = &e->plan->steps.at[index];
    const Nest *nest = nest_of(e, index);
    const StrategyRow *strategy = gen_strategy(step->strategy);
    const Poly bytes = gen_step_moved(e->job, e->unit, step);
    int64_t value;
    gen_tell_open(e->tell, NULL, false);
    gen_tell_json_text(e->tell, "name", nest->name);
    tell_title(e, index);
    tell_nest(e, step, nest);
    tell_reductions(e, nest);
    tell_flow(e, index, true);
    tell_flow(e, index, false);
    gen_tell_json_text(e->tell, "strategy", strategy->name);
    const char *forced = gen_knob_text(&e->unit->options, KNOB_STRATEGY, nest->name);
    if (!e->tell->json)
        gen_tell_text(e->tell, "strategy",
                      ir_format(e->job, "%s: %s%s", strategy->name, strategy->use,
                                forced && strcmp(forced, strategy->name) == 0 ? " (forced)" : ""));
    tell_knobs(e, step, nest);
    tell_note(e, nest);
    tell_variants(e, step);
    tell_grid(e, step);
    tell_room(e, step);
    tell_again(e, step, nest);
    gen_explain_size(e, "bytes", bytes, "");
    if (gen_explain_value(e, bytes, &value)) {
        const double us = gen_explain_time(e, value);
        gen_tell_json_double(e->tell, "expected_us", us);
        if (!e->tell->json)
            gen_tell_text(e->tell, "expected",
                          us < 0.01 ? "less than 0.01 us" : ir_format(e->job, "%s us", gen_explain_number(e->job, us)));
    }
    gen_tell_close(e->tell, false);
}
