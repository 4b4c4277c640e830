/* In: a unit after schedule. Out: what explain prints: for each nest its class, strategy, knobs, bytes as a formula and
 * a number, and expected time; then the choices that passes noted. */
#include "gen/emit.h"
#include "gen/schedule.h"

const char *gen_poly_text(Job *job, const Prog *prog, Poly poly) {
    const char **names = IR_NEW_ARRAY(job, const char *, prog->dims.count + 1);
    for (uint32_t i = 0; i < prog->dims.count; i++) names[i] = prog->dims.at[i].name;
    Text text = ir_text(job);
    ir_poly_print(&text, poly, names, prog->dims.count);
    return ir_text_string(&text);
}

/* Elements that an access touches, each counted once. */
static Poly access_elements(Job *job, const Prog *prog, const Nest *nest, const Access *access, bool *overflow) {
    Poly count = ir_poly_int(job, 1);
    for (uint32_t a = 0; a < nest->axis_count; a++)
        if (!ir_size_is(access->stride[a], 0))
            count = ir_poly_mul(job, count, ir_size_poly(job, prog, nest->axes[a].extent), overflow);
    return count;
}

Poly gen_step_bytes(Job *job, const Unit *unit, const Step *step) {
    const Prog *prog = unit->prog;
    const Nest *nest = &prog->nests.at[step->nest];
    bool overflow = false, *counted = IR_NEW_ARRAY(job, bool, nest->accesses.count);
    Poly bytes = ir_poly_int(job, 0);
    for (uint32_t i = 0; i < nest->stmts.count; i++) {
        const Stmt *stmt = &nest->stmts.at[i];
        if (stmt->access == IR_NONE || (stmt->op == OP_LOAD && counted[stmt->access])) continue;
        if (stmt->op == OP_LOAD) counted[stmt->access] = true;
        const Access *access = &nest->accesses.at[stmt->access];
        const Buf *buf = &prog->bufs.at[access->buf];
        if (buf->kind == BUF_SCALAR) continue;
        Poly elements = access_elements(job, prog, nest, access, &overflow);
        if (stmt->op == OP_PARTIAL_ACCUMULATE)
            elements = ir_poly_mul(job, elements, ir_size_poly(job, prog, buf->extent[0]), &overflow);
        elements = ir_poly_mul(job, elements, ir_poly_int(job, ir_dtype(buf->dtype)->bytes), &overflow);
        bytes = ir_poly_add(job, bytes, elements, &overflow);
    }
    return bytes;
}

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
    Job *job = text->job;
    Poly bytes = gen_step_bytes(job, unit, step);
    Text where = ir_text(job);
    int64_t *dims = gen_guess_dims(job, unit->prog), value;
    for (uint32_t i = 0; i < unit->prog->dims.count; i++)
        ir_text_format(&where, "%s%s=%lld", i ? ", " : "", unit->prog->dims.at[i].name, (long long)dims[i]);
    ir_text_format(text, "  bytes      %s", gen_poly_text(job, unit->prog, bytes));
    if (ir_poly_eval(bytes, dims, unit->prog->dims.count, NULL, 0, &value)) {
        if (where.count > 0) ir_text_format(text, " = %lld with %s", (long long)value, ir_text_string(&where));
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
    if (unit->reports.count > 0) ir_text_put(text, "\nfusions\n");
    for (uint32_t i = 0; i < unit->reports.count; i++) ir_text_format(text, "  %s\n", unit->reports.at[i].text);
    if (unit->plan->choices.count > 0) ir_text_put(text, "\nchoices\n");
    for (uint32_t i = 0; i < unit->plan->choices.count; i++)
        ir_text_format(text, "  %s\n", unit->plan->choices.at[i].text);
}
