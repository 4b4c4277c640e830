/* Texts of a program, and the tables of what normgen has. In: a program and what is asked for. Out: text of the
 * caller's. A dump after a pass runs the passes again on the program's own text, in a job of its own. */
#include "runtime/context.h"

#include "gen/knobs.h"
#include "gen/advice.h"
#include "gen/language.h"

#include <stdlib.h>
#include <string.h>

typedef struct Asking {
    const ng_program *program;
    ng_text_kind what;
    const char *pass;
    uint32_t wanted; /* pass whose dump is asked for; IR_NONE: each */
    Text out;
    Text why;           /* the device compiler's words */
    const char *before; /* the dump after the pass before, where each is asked for */
    bool found;
} Asking;

/* ---- dumps ---- */

static void dump_pass(void *state, Job *job, const Unit *unit, uint32_t pass) {
    Asking *asking = state;
    if (asking->wanted != IR_NONE && asking->wanted != pass) return;
    asking->found = true;
    if (asking->wanted == pass) {
        gen_print(&asking->out, unit, pass);
        return;
    }
    ir_text_format(&asking->out, "%s# after %s\n", asking->out.count ? "\n" : "", gen_passes[pass].name);
    if (gen_passes[pass].makes == PASS_SOURCE) {
        ir_text_format(&asking->out, "(CUDA C: --after=%s)\n", gen_passes[pass].name);
        return;
    }
    Text dump = ir_text(job);
    gen_print(&dump, unit, pass);
    const char *text = ir_text_string(&dump);
    ir_text_put(&asking->out, asking->before && !strcmp(asking->before, text) ? "(unchanged)\n" : text);
    asking->before = text;
}

static uint32_t last_ir_pass(uint32_t last) {
    uint32_t pass = last;
    while (pass > 0 && gen_passes[pass].makes != PASS_PROG) pass--;
    return gen_passes[pass].makes == PASS_PROG ? pass : last; /* stopped before there was a Prog: the Graph */
}

static void dump(Job *job, Asking *asking) {
    const ng_program *program = asking->program;
    const bool each = asking->pass && !strcmp(asking->pass, "all");
    asking->wanted = each ? IR_NONE : asking->pass ? gen_pass_find(asking->pass) : last_ir_pass(program->last);
    if (!each && (asking->wanted == IR_NONE || asking->wanted > program->last)) ir_stop(job, STATUS_USAGE);
    Unit unit = {0};
    GenOptions options = program->unit.options;
    options.after = dump_pass;
    options.after_state = asking;
    gen_run(job, &unit, program->name, program->unit.text, program->unit.count, &options,
            each ? program->last : asking->wanted);
    IR_REQUIRE(job, asking->found);
}

/* ---- the other texts ---- */

static void put_binary(Job *job, Asking *asking, RtBinary kind) {
    char *bytes = NULL;
    size_t count = 0;
    asking->why = ir_text(job);
    Status status = rt_nvrtc_compile(&asking->program->unit.source, asking->program->context->target.arch, kind, &bytes,
                                     &count, &asking->why);
    if (status) ir_stop(job, status);
    ir_job_defer(job, free, bytes);
    if (kind == RT_CUBIN) rt_program_take_facts(asking->program, bytes, count);
    ir_text_bytes(&asking->out, bytes, count);
}

static void put_sizes(Text *out, const Graph *graph, const char *what, const Poly *sizes, uint32_t count) {
    const char **names = ir_graph_dim_names(out->job, graph);
    ir_text_put(out, what);
    for (uint32_t i = 0; i < count; i++) {
        ir_text_put(out, i ? ", " : "[");
        ir_poly_print(out, sizes[i], names, graph->dims.count);
    }
    ir_text_put(out, count ? "]" : "[]");
}

static void put_tensor_type(Text *out, const Graph *graph, const char *role, const Tensor *tensor) {
    ir_text_format(out, "%s\t%s\t", role, tensor->name);
    ir_print_type(out, graph, tensor->dtype, &tensor->shape);
    ir_text_put(out, "\t");
    if (!tensor->contiguous) put_sizes(out, graph, "strides ", tensor->stride, tensor->shape.rank);
    const char *comma = tensor->contiguous ? "" : ", ";
    if (tensor->inplace != IR_NONE)
        ir_text_format(out, "%sin place of %s%s", comma, tensor->inplace_items ? "a slice of " : "",
                       graph->inputs.at[tensor->inplace].name);
    if (tensor->accumulate) ir_text_format(out, "%saccumulates", comma);
    ir_text_put(out, "\n");
}

/* Dims, inputs, scalars, named values and outputs, each a line. */
static void put_types(Text *out, const Graph *graph) {
    for (uint32_t i = 0; i < graph->dims.count; i++) {
        const Dim *dim = &graph->dims.at[i];
        if (dim->derived) continue;
        ir_text_format(out, "dim\t%s\t", dim->name);
        if (dim->value >= 0)
            ir_text_format(out, "%lld\t", (long long)dim->value);
        else
            ir_text_put(out, "any\t");
        const bool hinted = dim->value < 0 && dim->hint >= 0;
        if (hinted) ir_text_format(out, "hint %lld", (long long)dim->hint);
        if (dim->max >= 0) ir_text_format(out, "%smax %lld", hinted ? ", " : "", (long long)dim->max);
        if (dim->multiple > 1)
            ir_text_format(out, "%smultiple %lld", hinted || dim->max >= 0 ? ", " : "", (long long)dim->multiple);
        ir_text_put(out, "\n");
    }
    for (uint32_t i = 0; i < graph->inputs.count; i++) put_tensor_type(out, graph, "input", &graph->inputs.at[i]);
    for (uint32_t i = 0; i < graph->scalars.count; i++) put_tensor_type(out, graph, "scalar", &graph->scalars.at[i]);
    for (uint32_t i = 0; i < graph->values.count; i++) {
        const Value *value = &graph->values.at[i];
        if (!value->name || value->op == OP_INPUT || value->op == OP_SCALAR) continue;
        ir_text_format(out, "node\t%s\t", value->name);
        ir_print_type(out, graph, value->dtype, &value->shape);
        ir_text_put(out, "\t\n");
    }
    for (uint32_t i = 0; i < graph->outputs.count; i++) put_tensor_type(out, graph, "output", &graph->outputs.at[i]);
}

static void ask_work(Job *job, void *state) {
    Asking *asking = state;
    const ng_program *program = asking->program;
    const Source *source = &program->unit.source;
    asking->out = ir_text(job);
    const bool planned = program->unit.plan != NULL, emitted = source->device_text != NULL;
    const bool needs_plan = asking->what == NG_TEXT_EXPLAIN || asking->what == NG_TEXT_EXPLAIN_JSON ||
                            asking->what == NG_TEXT_KNOBS || asking->what == NG_TEXT_KNOBS_JSON;
    const bool needs_source = asking->what == NG_TEXT_CUDA || asking->what == NG_TEXT_HEADER ||
                              asking->what == NG_TEXT_CUBIN || asking->what == NG_TEXT_PTX;
    if (asking->what == NG_TEXT_TYPES && !program->unit.expanded) ir_stop(job, STATUS_USAGE);
    if ((needs_source && !emitted) || (needs_plan && !planned)) ir_stop(job, STATUS_USAGE);
    switch (asking->what) {
    case NG_TEXT_CUDA: ir_text_bytes(&asking->out, source->device_text, source->device_count); break;
    case NG_TEXT_HEADER: ir_text_bytes(&asking->out, source->header_text, source->header_count); break;
    case NG_TEXT_IR: dump(job, asking); break;
    case NG_TEXT_EXPLAIN:
    case NG_TEXT_EXPLAIN_JSON: gen_explain(&asking->out, &program->unit, asking->what == NG_TEXT_EXPLAIN_JSON); break;
    case NG_TEXT_KNOBS:
    case NG_TEXT_KNOBS_JSON:
        gen_knobs_list(&asking->out, &program->unit, &program->context->allocator, asking->what == NG_TEXT_KNOBS_JSON);
        break;
    case NG_TEXT_CUBIN: put_binary(job, asking, RT_CUBIN); break;
    case NG_TEXT_PTX: put_binary(job, asking, RT_PTX); break;
    case NG_TEXT_TYPES: put_types(&asking->out, program->unit.expanded); break;
    case NG_TEXT_TIMES:
        for (uint32_t p = 0; p <= program->last; p++)
            ir_text_format(&asking->out, "%s\t%llu\n", gen_passes[p].name,
                           (unsigned long long)program->microseconds[p]);
        break;
    default: ir_stop(job, STATUS_USAGE);
    }
}

ng_status ng_program_text(const ng_program *program, ng_text_kind what, const char *pass, ng_text *out) {
    if (!out) return NG_USAGE;
    *out = (ng_text){NULL, 0};
    if (!program) return NG_USAGE;
    Asking asking = {.program = program, .what = what, .pass = pass};
    Job *job = ir_job_create(&program->context->allocator);
    if (!job) return NG_SYSTEM;
    Status status = ir_job_run(job, ask_work, &asking);
    if (!status) *out = rt_text_give(asking.out.bytes, asking.out.count);
    if (!status && !out->bytes) status = STATUS_SYSTEM;
    if (status && asking.why.count) *out = rt_text_give(asking.why.bytes, asking.why.count);
    ir_job_free(job);
    return rt_status(status);
}

/* ---- tables ---- */

static const char *const composites[] = {
#define COMPOSITE(text, what, derivative) text,
#include "ir/composites.def"
#undef COMPOSITE
};

static bool list_op(uint32_t index, ng_text *line) {
    if (index >= OP_PRIMITIVES) return false;
    const OpRow *row = ir_op((Op)index);
    static const char *const rules[] = {"arithmetic", "float", "comparison", "logic", "test", "selection"};
    rt_why(line, "%s\t%s%s%s of %u operand%s, in CUDA: %s", row->name, row->symbol[0] ? row->symbol : "",
           row->symbol[0] ? ", " : "", rules[row->rule], row->arity, row->arity == 1 ? "" : "s", row->cuda);
    return true;
}

static bool list_composite(uint32_t index, ng_text *line) {
    if (index >= sizeof composites / sizeof *composites) return false;
    const char *text = composites[index];
    rt_why(line, "%.*s\t%s", (int)strcspn(text, "("), text, text);
    return true;
}

static bool list_pass(uint32_t index, ng_text *line) {
    if (index >= gen_pass_count) return false;
    rt_why(line, "%s\t%s", gen_passes[index].name, gen_passes[index].does);
    return true;
}

static bool list_strategy(uint32_t index, ng_text *line) {
    if (index >= STRATEGY_COUNT) return false;
    rt_why(line, "%s\t%s", gen_strategy((Strategy)index)->name, gen_strategy((Strategy)index)->use);
    return true;
}

static bool list_dtype(uint32_t index, ng_text *line) {
    if (index >= DTYPE_COUNT) return false;
    const DTypeRow *row = ir_dtype((DType)index);
    rt_why(line, "%s\t%s, %u byte%s", row->name, row->torch_name, row->bytes, row->bytes == 1 ? "" : "s");
    return true;
}

static bool list_knob(uint32_t index, ng_text *line) {
    if (index >= KNOB_COUNT) return false;
    const Knob *knob = gen_knob((KnobId)index);
    rt_why(line, "%s\t%s (%s%s%s)", knob->name, knob->what, gen_knob_takes((KnobId)index),
           knob->otherwise[0] ? "; unless forced: " : "", knob->otherwise);
    return true;
}

typedef struct Listing {
    uint32_t index;
    Text text;
    bool found;
} Listing;

static void language_work(Job *job, void *state) {
    Listing *listing = state;
    listing->text = ir_text(job);
    listing->found = gen_language_row(&listing->text, listing->index);
}

static bool list_language(uint32_t index, ng_text *line) {
    Listing listing = {.index = index};
    Job *job = ir_job_create(NULL);
    if (!job) return true; /* no text: NG_SYSTEM */
    Status status = ir_job_run(job, language_work, &listing);
    if (!status && listing.found) *line = rt_text_give(listing.text.bytes, listing.text.count);
    ir_job_free(job);
    return status != STATUS_OK || listing.found;
}

static bool list_advice(uint32_t index, ng_text *line) {
    size_t count;
    const char *advice, *name = gen_advice_row(index, &count, &advice);
    if (!name) return false;
    rt_why(line, "%.*s\t%s", (int)count, name, advice);
    return true;
}

ng_status ng_list(ng_list_kind kind, uint32_t index, ng_text *line) {
    static bool (*const lists[])(uint32_t index, ng_text * line) = {
        list_op, list_composite, list_pass, list_strategy, list_dtype, list_knob, list_language, list_advice};
    if (!line || (size_t)kind >= sizeof lists / sizeof *lists) return NG_USAGE;
    *line = (ng_text){NULL, 0};
    if (!lists[kind](index, line)) return NG_USAGE;
    return line->bytes ? NG_OK : NG_SYSTEM;
}
