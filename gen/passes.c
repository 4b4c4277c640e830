/* The pass table and the pipeline. In: a graph file and options. Out: the Unit with what the passes made, after any
 * number of them. Left alone: what each pass does; files, devices. */
#include "gen/gen.h"
#include "gen/knobs.h"

#include <string.h>

const Pass gen_passes[] = {
    {"parse", PASS_GRAPH, "text to values with shapes, dtypes and places", gen_parse},
    {"expand", PASS_GRAPH, "composites to primitives", gen_expand},
    {"simplify", PASS_GRAPH, "constants, common subexpressions, dead values", gen_simplify},
    {"lower", PASS_PROG, "values to loops: a nest for each reduction and stored value", gen_lower},
    {"axes", PASS_PROG, "drops axes of extent 1, merges neighbours", gen_axes},
    {"classify", PASS_PROG, "how each reduction runs through memory: INNER, OUTER or MIXED", gen_classify},
    {"partial", PASS_PROG, "sums across rows, and along few long ones, in parts and their sum", gen_partial},
    {"reorder", PASS_PROG, "sums across rows in the loops of a reduction along them that reads the same", gen_reorder},
    {"fuse", PASS_PROG, "joins nests that read the same or each other's results", gen_fuse},
    {"cut", PASS_PROG, "stores what costs more bytes to compute again in a later nest; parts nests that are too long",
     gen_cut},
    {"pair", PASS_PROG,
     "amax with its sum of exponentials, mean with its sum of squares, in one pass over streamed rows", gen_pair},
    {"schedule", PASS_PLAN, "nests to kernels: strategy, tile, phases, guards, grid", gen_schedule},
    {"emit", PASS_SOURCE, "the plan as CUDA C, with a launcher", gen_emit},
};
const uint32_t gen_pass_count = sizeof gen_passes / sizeof gen_passes[0];

uint32_t gen_pass_find(const char *name) {
    for (uint32_t i = 0; i < gen_pass_count; i++)
        if (!strcmp(gen_passes[i].name, name)) return i;
    return IR_NONE;
}

static void verify(Job *job, const Unit *unit, const Pass *pass) {
    const char *breach = ir_verify(job, unit->prog);
    if (!breach) return;
    Text text = ir_text(job);
    ir_prog_print(&text, unit->prog);
    IR_BREACH(job, "after %s: %s\n%s", pass->name, breach, ir_text_string(&text));
}

void gen_run(Job *job, Unit *unit, const char *name, const char *text, size_t count, const GenOptions *options,
             uint32_t last) {
    *unit = (Unit){.text = text, .count = count, .options = *options};
    ir_job_set_source(job, name, text, count);
    gen_knobs_check(job, options);
    for (uint32_t i = 0; i <= last && i < gen_pass_count; i++) {
        const Pass *pass = &gen_passes[i];
        pass->run(job, unit);
        if (pass->makes == PASS_PROG && options->verify) verify(job, unit, pass);
        if (options->after) options->after(options->after_state, job, unit, i);
    }
}

void gen_print(Text *text, const Unit *unit, uint32_t pass) {
    switch (gen_passes[pass].makes) {
    case PASS_GRAPH: ir_graph_print(text, unit->graph); break;
    case PASS_PROG: ir_prog_print(text, unit->prog); break;
    case PASS_PLAN:
        gen_plan_print(text, unit);
        ir_prog_print(text, unit->prog);
        break;
    case PASS_SOURCE: ir_text_bytes(text, unit->source.device_text, unit->source.device_count); break;
    }
}

/* Two reductions that combine the same elements, whether or not they keep the dims. */
static bool same_reduction(const Unit *unit, const Value *a, const Value *b) {
    return a->op == OP_REDUCE && b->op == OP_REDUCE && a->reduction == b->reduction && a->dims == b->dims &&
           unit->stands_for[a->arg[0]] == unit->stands_for[b->arg[0]];
}

/* In combines that err by half an ulp, as adds do. */
static uint32_t chain_of(const Stmt *stmt, uint32_t length) {
    double ulps = ir_reduction(stmt->reduction)->ulps, longest = ulps > 0.5 ? length * (ulps / 0.5) : length;
    return longest < UINT32_MAX ? (uint32_t)longest : 0;
}

/* A mean that nobody reads has no statement beside the sum of squares about it. */
static void add_unread_mean(const Unit *unit, const Nest *nest, const Stmt *stmt, uint32_t chain, uint32_t *depth) {
    const uint32_t count = unit->expanded->values.count, element = nest->stmts.at[stmt->arg[0]].value;
    if (stmt->reduction != REDUCTION_WELFORD || element >= count) return;
    for (uint32_t i = 0; i < count; i++) {
        const Value *value = &unit->expanded->values.at[i];
        bool sum = value->op == OP_REDUCE && value->reduction == REDUCTION_ADD;
        if (!sum || value->dims != unit->expanded->values.at[stmt->value].dims) continue;
        if (unit->stands_for[value->arg[0]] == unit->stands_for[element] && depth[i] < chain) depth[i] = chain;
    }
}

/* Sums in parts: the chain of a part, then that of the parts. */
static void add_depths(Job *job, const Unit *unit, bool finalize, const int64_t *dims, const int64_t *parts,
                       uint32_t *depth) {
    uint32_t count = unit->expanded->values.count;
    bool *unknown = IR_NEW_ARRAY(job, bool, count + 1);
    for (uint32_t s = 0; unit->plan && s < unit->plan->steps.count; s++) {
        const Step *step = &unit->plan->steps.at[s];
        const Nest *nest = &unit->prog->nests.at[step->nest];
        if ((nest->class == CLASS_FINALIZE) != finalize) continue;
        for (uint32_t i = 0; i < nest->stmts.count; i++) {
            const Stmt *stmt = &nest->stmts.at[i];
            if ((stmt->op != OP_REDUCE && stmt->op != OP_PARTIAL_ACCUMULATE) || stmt->value >= count) continue;
            const Chain *own = stmt->op == OP_REDUCE ? &step->chain : &step->part_chain;
            uint32_t chain = chain_of(stmt, gen_chain_length(own, unit->prog, dims, parts));
            if (finalize && depth[stmt->value] && chain)
                depth[stmt->value] += chain;
            else if (!finalize && chain > depth[stmt->value])
                depth[stmt->value] = chain;
            if (!chain) unknown[stmt->value] = true;
            add_unread_mean(unit, nest, stmt, chain, depth);
        }
    }
    for (uint32_t i = 0; i < count; i++)
        if (unknown[i]) depth[i] = 0;
}

uint32_t *gen_depths(Job *job, const Unit *unit, const int64_t *dims, const int64_t *parts) {
    uint32_t count = unit->expanded->values.count;
    uint32_t *depth = IR_NEW_ARRAY(job, uint32_t, count + 1);
    add_depths(job, unit, false, dims, parts, depth);
    add_depths(job, unit, true, dims, parts, depth);
    /* where two were merged, the one that is left stands for both */
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < count && !depth[i] && unit->expanded->values.at[i].op == OP_REDUCE; k++)
            if (same_reduction(unit, &unit->expanded->values.at[i], &unit->expanded->values.at[k])) depth[i] = depth[k];
    }
    return depth;
}
