/* Random legal graphs: the Graph after expand and the Prog after every pass agree within the sum of their bounds, every
 * Prog is legal, and what is printed reads back. NORMGEN_SEED repeats a run (NORMGEN_GRAPHS=1 its first graph alone);
 * a graph that fails is printed as a file. What was met is counted, and nothing listed may be met never. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/gen.h"
#include "tests/support/hits.h"
#include "tests/support/random_graph.h"

#define GRAPHS 2000

static const char *const fuse_gates[] = {"class", "axes",  "order",      "parts", "map",
                                         "alias", "cycle", "statements", "reads"};
static const char *const order_gates[] = {"class",     "path", "parts", "batch",    "columns",
                                          "registers", "rows", "kept",  "elements", "reads"};
#define GATE_COUNT (sizeof fuse_gates / sizeof *fuse_gates)
static const char *const pair_gates[] = {"class", "registers", "phases"};
#define PAIR_GATE_COUNT (sizeof pair_gates / sizeof *pair_gates)
#define ORDER_GATES (sizeof order_gates / sizeof *order_gates)

typedef struct Hits {
    uint32_t graphs, refused;
    uint32_t class[CLASS_COUNT];
    uint32_t input_dtype[DTYPE_COUNT], output_dtype[DTYPE_COUNT], scalar_dtype[DTYPE_COUNT];
    uint32_t gathers, accumulates, launch_strides;
    HitDims dims;
    uint32_t rank[IR_MAX_RANK + 1];
    uint32_t op[OP_COUNT];
    uint32_t reduction[REDUCTION_COUNT];
    uint32_t stride_0, padded, transposed, inplace, slices, empty, ones, scalars, several_outputs;
    uint32_t parted, one_part, in_parts, made_whole, sliced;
    uint32_t stored, again, pieces, whole;
    uint32_t joined, gate[GATE_COUNT];
    uint32_t online, welford, pair_gate[PAIR_GATE_COUNT];
    uint32_t turned, order_gate[ORDER_GATES];
    uint64_t elements, unbounded;
} Hits;

typedef struct Trial {
    uint64_t seed;
    Hits *hits;
    RandomGraph random;
    Unit unit;
    GenOptions options;
    int64_t *dims;
    EvalInput input;
    Expected *expected; /* of each output */
} Trial;

/* ---- data ---- */

static View make_view(Job *job, const Trial *trial, const Graph *graph, const Tensor *tensor, Random *random,
                      int64_t limit) {
    View view = {.rank = tensor->shape.rank, .dtype = tensor->dtype};
    for (uint32_t d = 0; d < view.rank; d++) {
        ir_poly_eval(tensor->shape.extent[d], trial->dims, graph->dims.count, NULL, 0, &view.extent[d]);
        ir_poly_eval(tensor->stride[d], trial->dims, graph->dims.count, NULL, 0, &view.stride[d]);
    }
    int64_t span = tensor_span(job, tensor, trial->dims, graph->dims.count);
    view.bytes = ir_alloc(job, (size_t)(span + 1) * ir_dtype(tensor->dtype)->bytes);
    random_fill(random, tensor->dtype, view.bytes, span, limit);
    return view;
}

static void make_inputs(Job *job, Trial *trial, const Graph *graph) {
    Random random = {trial->seed ^ 0x5eed};
    View *views = IR_NEW_ARRAY(job, View, graph->inputs.count + 1);
    View *held = IR_NEW_ARRAY(job, View, graph->outputs.count + 1);
    Scalar *scalars = IR_NEW_ARRAY(job, Scalar, graph->scalars.count + 1);
    for (uint32_t i = 0; i < graph->inputs.count; i++)
        views[i] =
            make_view(job, trial, graph, &graph->inputs.at[i], &random, random_index_limit(graph, trial->dims, i));
    for (uint32_t i = 0; i < graph->outputs.count; i++)
        if (graph->outputs.at[i].accumulate)
            held[i] = make_view(job, trial, graph, &graph->outputs.at[i], &random, INT64_MAX);
    for (uint32_t i = 0; i < graph->scalars.count; i++) {
        const Tensor *scalar = &graph->scalars.at[i];
        scalars[i] = (Scalar){ir_round(scalar->dtype, scalar->default_float), scalar->default_int};
    }
    trial->input = (EvalInput){.dims = trial->dims, .inputs = views, .held = held, .scalars = scalars};
}

/* The values of prog->dims. */
static int64_t *prog_dims(Job *job, const Trial *trial, const Graph *graph, const Prog *prog) {
    int64_t *dims = IR_NEW_ARRAY(job, int64_t, prog->dims.count + 1);
    for (uint32_t i = 0; i < prog->dims.count; i++)
        for (uint32_t k = 0; k < graph->dims.count; k++)
            if (!strcmp(prog->dims.at[i].name, graph->dims.at[k].name)) dims[i] = trial->dims[k];
    return dims;
}

typedef struct Numbers { /* of a Prog's symbols */
    const int64_t *dims, *parts;
} Numbers;

static int64_t size_value(Job *job, const Prog *prog, Numbers numbers, Size size) {
    int64_t value = 0;
    IR_REQUIRE(job, ir_poly_eval(ir_size_poly(job, prog, size), numbers.dims, prog->dims.count, numbers.parts,
                                 prog->parts.count, &value));
    return value;
}

static EvalBuf make_buf(Job *job, const Trial *trial, const Graph *graph, const Prog *prog, Numbers numbers,
                        const Buf *buf) {
    const Tensor *tensor = buf->kind == BUF_IN    ? &graph->inputs.at[buf->tensor]
                           : buf->kind == BUF_OUT ? &graph->outputs.at[buf->tensor]
                                                  : NULL;
    EvalBuf made = {.span = 1};
    int64_t offset = size_value(job, prog, numbers, buf->offset);
    if (tensor) made.span = tensor_span(job, tensor, trial->dims, graph->dims.count) - offset;
    for (uint32_t d = 0; !tensor && d < buf->rank; d++) made.span *= size_value(job, prog, numbers, buf->extent[d]);
    bool number = ir_dtype(buf->dtype)->kind == KIND_FLOAT;
    if (number) made.number = IR_NEW_ARRAY(job, double, (size_t)made.span + 1);
    if (number) made.bound = IR_NEW_ARRAY(job, double, (size_t)made.span + 1);
    if (!number) made.integer = IR_NEW_ARRAY(job, int64_t, (size_t)made.span + 1);
    if (!number) made.bound = IR_NEW_ARRAY(job, double, (size_t)made.span + 1);
    const View *view = buf->kind == BUF_IN    ? &trial->input.inputs[buf->tensor]
                       : buf->kind == BUF_OUT ? &trial->input.held[buf->tensor]
                                              : NULL;
    for (int64_t i = 0; view && view->bytes && i < made.span; i++) {
        const char *element = (const char *)view->bytes + (size_t)(offset + i) * ir_dtype(buf->dtype)->bytes;
        if (number)
            made.number[i] = ir_load_float(buf->dtype, element);
        else
            made.integer[i] = ir_load_int(buf->dtype, element);
    }
    if (buf->kind == BUF_SCALAR) {
        if (number)
            made.number[0] = trial->input.scalars[buf->tensor].number;
        else
            made.integer[0] = trial->input.scalars[buf->tensor].integer;
    }
    return made;
}

/* ---- comparing ---- */

/* What a Prog left at a place and what the Graph says of it. */
static bool element_passes(DType dtype, const EvalBuf *buf, int64_t address, const Expected *expected, uint64_t i,
                           double bound) {
    if (ir_dtype(dtype)->kind == KIND_FLOAT)
        return ir_element_passes(dtype, buf->number[address], expected->number[i], bound);
    int64_t a = buf->integer[address], b = expected->integer[i];
    return a == b || fabs((double)a - (double)b) <= bound;
}

static void compare_output(Job *job, Trial *trial, const Graph *graph, const EvalBuf *buf, uint32_t output,
                           const char *pass) {
    const Tensor *tensor = &graph->outputs.at[output];
    const Expected *expected = &trial->expected[output];
    int64_t extent[IR_MAX_RANK], stride[IR_MAX_RANK], at[IR_MAX_RANK] = {0};
    for (uint32_t d = 0; d < tensor->shape.rank; d++) {
        ir_poly_eval(tensor->shape.extent[d], trial->dims, graph->dims.count, NULL, 0, &extent[d]);
        ir_poly_eval(tensor->stride[d], trial->dims, graph->dims.count, NULL, 0, &stride[d]);
    }
    for (uint64_t i = 0; i < expected->count; i++) {
        int64_t address = 0;
        for (uint32_t d = 0; d < tensor->shape.rank; d++) address += at[d] * stride[d];
        double bound = expected->bound[i] + buf->bound[address];
        trial->hits->elements++;
        trial->hits->unbounded += isinf(bound) != 0;
        if (!element_passes(tensor->dtype, buf, address, expected, i, bound)) {
            Text text = ir_text(job);
            ir_text_format(&text, "after %s: output %s, element %llu: ", pass, tensor->name, (unsigned long long)i);
            ir_text_double(&text, buf->number ? buf->number[address] : (double)buf->integer[address]);
            ir_text_put(&text, ", expected ");
            ir_text_double(&text, expected->number ? expected->number[i] : (double)expected->integer[i]);
            ir_text_put(&text, ", bounds ");
            ir_text_double(&text, buf->bound[address]);
            ir_text_put(&text, " and ");
            ir_text_double(&text, expected->bound[i]);
            ir_text_put(&text, "\n");
            ir_prog_print(&text, trial->unit.prog);
            ir_stop_at(job, STATUS_CHECK_FAILED, (Place){0}, "%s", ir_text_string(&text));
        }
        for (uint32_t d = tensor->shape.rank; d-- > 0;) {
            if (++at[d] < extent[d]) break;
            at[d] = 0;
        }
    }
}

static void check_parts(Job *job, Trial *trial, const Unit *unit, const char *pass, Numbers numbers) {
    const Prog *prog = unit->prog;
    EvalBuf *bufs = IR_NEW_ARRAY(job, EvalBuf, prog->bufs.count + 1);
    for (uint32_t b = 0; b < prog->bufs.count; b++) {
        const Buf *buf = &prog->bufs.at[b];
        bufs[b] =
            buf->may_alias == IR_NONE ? make_buf(job, trial, unit->expanded, prog, numbers, buf) : bufs[buf->may_alias];
    }
    ir_eval_prog(job, prog, numbers.dims, numbers.parts, bufs);
    for (uint32_t b = 0; b < prog->bufs.count; b++)
        if (prog->bufs.at[b].kind == BUF_OUT)
            compare_output(job, trial, unit->expanded, &bufs[b], prog->bufs.at[b].tensor, pass);
}

/* With one part, with three, and with more than most have rows. */
static void check_prog(Job *job, Trial *trial, const Unit *unit, const char *pass) {
    static const int64_t counts[] = {1, 3, 50};
    const Prog *prog = unit->prog;
    int64_t *parts = IR_NEW_ARRAY(job, int64_t, prog->parts.count + 1);
    for (uint32_t c = 0; c < (prog->parts.count ? 3 : 1); c++) {
        for (uint32_t k = 0; k < prog->parts.count; k++) parts[k] = counts[c];
        check_parts(job, trial, unit, pass, (Numbers){prog_dims(job, trial, unit->expanded, prog), parts});
    }
    trial->hits->parted += prog->parts.count > 0;
}

/* ---- printed and read back ---- */

typedef struct Reread {
    const char *text;
    size_t count;
    const Graph *graph; /* to compare with, or NULL */
    bool equal;
    const char *printed;
} Reread;

static void read_graph(Job *job, void *state) {
    Reread *reread = state;
    GenOptions options = {.target = gen_target(90)};
    Unit unit;
    gen_run(job, &unit, "printed", reread->text, reread->count, &options, gen_pass_find("parse"));
    reread->equal = ir_graph_equal(unit.graph, reread->graph);
}

static void read_prog(Job *job, void *state) {
    Reread *reread = state;
    Text text = ir_text(job);
    ir_job_set_source(job, "printed", reread->text, reread->count);
    ir_prog_print(&text, ir_prog_read(job, reread->text, reread->count));
    reread->equal = text.count == reread->count && !memcmp(text.bytes, reread->text, text.count);
}

static void check_reread(Job *job, const Unit *unit, const Pass *pass) {
    Text text = ir_text(job);
    if (pass->makes == PASS_GRAPH)
        ir_graph_print(&text, unit->graph);
    else
        ir_prog_print(&text, unit->prog);
    Reread reread = {.text = ir_text_string(&text), .count = text.count, .graph = unit->graph};
    Job *other = ir_job_create(NULL);
    Status status = ir_job_run(other, pass->makes == PASS_GRAPH ? read_graph : read_prog, &reread);
    const char *why = ir_copy_text(job, ir_job_report(other), strlen(ir_job_report(other)));
    ir_job_free(other);
    if (status == STATUS_REJECTED && strstr(why, "in place")) /* a read that simplify made plain to see */
        ir_stop_at(job, STATUS_REJECTED, (Place){0}, "%s", why);
    if (status != STATUS_OK || !reread.equal)
        ir_stop_at(job, STATUS_CHECK_FAILED, (Place){0}, "after %s: what is printed does not read back: %s\n%s",
                   pass->name, why, reread.text);
}

/* ---- hits ---- */

static void count_graph(Trial *trial, const Graph *graph) {
    Hits *hits = trial->hits;
    for (uint32_t i = 0; i < graph->values.count; i++) {
        const Value *value = &graph->values.at[i];
        hits->op[value->op]++;
        if (value->op == OP_REDUCE) hits->reduction[value->reduction]++;
        for (uint32_t k = 0; value->op == OP_INDEX && k < value->item_count; k++)
            hits->gathers += value->items[k].kind == ITEM_GATHER;
    }
    for (uint32_t i = 0; i < graph->inputs.count; i++) {
        const Tensor *tensor = &graph->inputs.at[i];
        bool zero = false;
        hits->input_dtype[tensor->dtype]++;
        hits->rank[tensor->shape.rank]++;
        for (uint32_t d = 0; d < tensor->shape.rank; d++) {
            int64_t stride, extent = trial->input.inputs[i].extent[d];
            zero = zero || (ir_poly_is_int(tensor->stride[d], &stride) && !stride);
            hits->empty += extent == 0;
            hits->ones += extent == 1;
        }
        hits->stride_0 += zero;
        const View *view = &trial->input.inputs[i];
        hits->padded += !zero && view->rank > 1 && view->stride[0] > view->extent[1] * view->stride[1];
        hits->transposed += !zero && view->rank > 1 && view->stride[0] < view->stride[view->rank - 1];
    }
    for (uint32_t i = 0; i < graph->outputs.count; i++) {
        hits->output_dtype[graph->outputs.at[i].dtype]++;
        hits->accumulates += graph->outputs.at[i].accumulate;
        hits->inplace += graph->outputs.at[i].inplace != IR_NONE;
        hits->slices += graph->outputs.at[i].inplace_items != NULL;
    }
    for (uint32_t i = 0; i < graph->dims.count; i++) hits->launch_strides += graph->dims.at[i].name[0] == 'L';
    hits_count_dims(&hits->dims, graph);
    for (uint32_t i = 0; i < graph->scalars.count; i++) hits->scalar_dtype[graph->scalars.at[i].dtype]++;
    hits->scalars += graph->scalars.count > 0;
    hits->several_outputs += graph->outputs.count > 1;
}

static void count_cut(Hits *hits, const Report *report) {
    if (strstr(report->text, " is stored for "))
        hits->stored++;
    else if (report->gate && !strcmp(report->gate, "bytes"))
        hits->again++;
    else
        ++*(report->gate ? &hits->whole : &hits->pieces);
}

/* A gate that the tables do not know is a failure: nobody would miss it. */
static void count_gate(const Report *report, const char *const *gates, uint32_t count, uint32_t *met) {
    uint32_t gate = 0;
    while (gate < count && strcmp(report->gate, gates[gate])) gate++;
    if (gate == count) fail_msg("a gate that is not counted: %s", report->text);
    met[gate]++;
}

static void count_pair(Hits *hits, const Report *report) {
    if (report->gate)
        count_gate(report, pair_gates, PAIR_GATE_COUNT, hits->pair_gate);
    else
        ++*(strstr(report->text, "(online)") ? &hits->online : &hits->welford);
}

static void count_reports(Hits *hits, const Unit *unit) {
    for (uint32_t i = 0; i < unit->reports.count; i++) {
        const Report *report = &unit->reports.at[i];
        if (!strcmp(report->pass, "cut")) {
            count_cut(hits, report);
        } else if (!strcmp(report->pass, "partial")) {
            ++*(report->gate                       ? &hits->made_whole
                : strstr(report->text, "one part") ? &hits->one_part
                                                   : &hits->in_parts);
        } else if (report->gate && !strcmp(report->gate, "slices")) {
            hits->sliced++;
        } else if (!strcmp(report->pass, "pair")) {
            count_pair(hits, report);
        } else if (!strcmp(report->pass, "reorder")) {
            if (report->gate)
                count_gate(report, order_gates, ORDER_GATES, hits->order_gate);
            else
                hits->turned++;
        } else if (!report->gate) {
            hits->joined++;
        } else {
            count_gate(report, fuse_gates, GATE_COUNT, hits->gate);
        }
    }
}

/* ---- a graph ---- */

static void after_pass(void *state, Job *job, const Unit *unit, uint32_t index) {
    Trial *trial = state;
    const Pass *pass = &gen_passes[index];
    if (pass->makes == PASS_PLAN || pass->makes == PASS_SOURCE) return;
    if (!strcmp(pass->name, "expand")) {
        trial->dims = random_graph_dims(job, &trial->random, unit->graph);
        make_inputs(job, trial, unit->graph);
        trial->expected = IR_NEW_ARRAY(job, Expected, unit->graph->outputs.count + 1);
        for (uint32_t o = 0; o < unit->graph->outputs.count; o++)
            trial->expected[o] = ir_eval_graph(job, unit->graph, &trial->input, o, NULL);
    }
    check_reread(job, unit, pass);
    if (pass->makes != PASS_PROG) return;
    trial->unit = *unit;
    check_prog(job, trial, unit, pass->name);
    bool classes = !strcmp(pass->name, "classify") || !strcmp(pass->name, "fuse");
    for (uint32_t n = 0; n < unit->prog->nests.count && classes; n++)
        trial->hits->class[unit->prog->nests.at[n].class]++;
}

/* Knobs of each eighth of the seeds, and of each eighth of these. */
static void choose_settings(Job *job, Trial *trial) {
    static const Setting first[8] = {{"fuse_reads", "1"}, {"fuse_statements", "9"}, {"split", "all"}, {NULL, NULL},
                                     {NULL, NULL},        {"cut_statements", "7"},  {"fuse", "off"},  {NULL, NULL}};
    static const Setting second[8] = {
        {NULL, NULL}, {"mixed_bytes", "20"}, {"mixed_reads", "1"}, {NULL, NULL}, {"mixed_elements", "100000"},
        {NULL, NULL}, {"mixed_rows", "12"},  {NULL, NULL}};
    const uint32_t a = trial->seed % 8, b = trial->seed / 8 % 8;
    Setting *sets = IR_NEW_ARRAY(job, Setting, 6);
    uint32_t count = 0;
    if (b) sets[count++] = (Setting){"mixed_rows", "1"};
    if (b) sets[count++] = (Setting){"mixed_elements", "1"};
    if (b % 2) sets[count++] = (Setting){"mixed_kept", "1"};
    if (first[a].name) sets[count++] = first[a];
    if (second[b].name) sets[count++] = second[b];
    if (trial->seed % 3) sets[count++] = (Setting){"strategy", "row_loop"}; /* so that pairs are taken */
    trial->options.sets = sets;
    trial->options.set_count = count;
    trial->options.batch_invariant = b % 4 == 3 && a != 2; /* no split=all then */
}

static void run_trial(Job *job, void *state) {
    Trial *trial = state;
    uint32_t rows = trial->seed % 4 == 0 ? RANDOM_ROWS_ONLY : 0, all = trial->seed % 3 == 0 ? RANDOM_ALL_DTYPES : 0;
    trial->random = random_graph(job, trial->seed, rows | all);
    trial->options = (GenOptions){.target = gen_target(90), .verify = true, .after = after_pass, .after_state = trial};
    choose_settings(job, trial);
    gen_run(job, &trial->unit, "random.yaml", trial->random.text, trial->random.count, &trial->options,
            gen_pass_find("pair"));
    count_graph(trial, trial->unit.expanded);
    count_reports(trial->hits, &trial->unit);
    trial->hits->graphs++;
}

/* In-place outputs are drawn without regard to what else reads the input; some are refused, and rightly. */
static bool rightly_refused(Status status, const char *report) {
    return status == STATUS_REJECTED && (strstr(report, "in place") || strstr(report, "overwr"));
}

static void run_seed(Hits *hits, uint64_t seed) {
    Job *job = ir_job_create(NULL);
    Trial trial = {.seed = seed, .hits = hits};
    Status status = ir_job_run(job, run_trial, &trial);
    const char *report = ir_job_report(job);
    if (rightly_refused(status, report)) {
        hits->refused++;
    } else if (status != STATUS_OK) {
        fail_msg("NORMGEN_SEED=%llu: status %d\n%s\n%s", (unsigned long long)seed, (int)status, report,
                 trial.random.text);
    }
    ir_job_free(job);
}

static uint32_t print_hits(const Hits *hits) {
    HitReport report = {0};
    printf("# graphs: %u legal, %u refused in place; %llu elements compared, %llu without bound\n", hits->graphs,
           hits->refused, (unsigned long long)hits->elements, (unsigned long long)hits->unbounded);
    hits_line(&report, "class");
    for (uint32_t i = 0; i < CLASS_COUNT; i++) hits_count(&report, hits->class[i], ir_class_name((NestClass)i), true);
    hits_dtypes(&report, "input", hits->input_dtype);
    hits_dtypes(&report, "output", hits->output_dtype);
    hits_dtypes(&report, "scalar", hits->scalar_dtype);
    hits_dims(&report, &hits->dims);
    hits_line(&report, "rank");
    for (uint32_t i = 0; i <= IR_MAX_RANK; i++) {
        char digit[2] = {(char)('0' + i), 0};
        hits_count(&report, hits->rank[i], digit, true);
    }
    hits_line(&report, "op");
    for (uint32_t i = 0; i < OP_COMPOSITE; i++) hits_count(&report, hits->op[i], ir_op_name((Op)i), true);
    hits_line(&report, "reduction");
    for (uint32_t i = 0; i < REDUCTION_ONLINE; i++)
        hits_count(&report, hits->reduction[i], ir_reduction((Reduction)i)->name, true);
    hits_line(&report, "layout");
    hits_count(&report, hits->launch_strides, "given-at-launch", true);
    hits_count(&report, hits->gathers, "gather", true);
    hits_count(&report, hits->accumulates, "accumulate", true);
    hits_count(&report, hits->stride_0, "stride-0", true);
    hits_count(&report, hits->padded, "padded", true);
    hits_count(&report, hits->transposed, "transposed", true);
    hits_count(&report, hits->inplace, "in-place", true);
    hits_count(&report, hits->slices, "in-place-slice", true);
    hits_count(&report, hits->empty, "empty", true);
    hits_count(&report, hits->ones, "extent-1", true);
    hits_count(&report, hits->scalars, "scalars", true);
    hits_count(&report, hits->several_outputs, "several-outputs", true);
    hits_line(&report, "cut");
    hits_count(&report, hits->stored, "stored", true);
    hits_count(&report, hits->again, "computed-again", true);
    hits_count(&report, hits->pieces, "in-two", true);
    hits_count(&report, hits->whole, "no-place", true);
    hits_line(&report, "fuse");
    hits_count(&report, hits->parted, "parts", true);
    hits_count(&report, hits->one_part, "one-part", true);
    hits_count(&report, hits->in_parts, "in-parts", true);
    hits_count(&report, hits->made_whole, "made-whole", true);
    hits_count(&report, hits->joined, "joined", true);
    for (uint32_t i = 0; i < GATE_COUNT; i++) hits_count(&report, hits->gate[i], fuse_gates[i], true);
    hits_count(&report, hits->sliced, "slices", false);
    hits_line(&report, "pair");
    hits_count(&report, hits->online, "online", true);
    hits_count(&report, hits->welford, "welford", true);
    for (uint32_t i = 0; i < PAIR_GATE_COUNT; i++) /* a longer chain beside a pair is rare: tests/pass has it */
        hits_count(&report, hits->pair_gate[i], pair_gates[i], strcmp(pair_gates[i], "phases") != 0);
    hits_line(&report, "reorder");
    hits_count(&report, hits->turned, "turned", true);
    for (uint32_t i = 0; i < ORDER_GATES; i++) hits_count(&report, hits->order_gate[i], order_gates[i], true);
    hits_end(&report);
    return report.missing;
}

static void test_random_graphs(void **state) {
    (void)state;
    Hits hits = {0};
    const char *given = getenv("NORMGEN_GRAPHS");
    uint32_t wanted = given ? (uint32_t)strtoul(given, NULL, 10) : GRAPHS;
    uint64_t seed = random_seed();
    const uint32_t rounds = given ? 1 : 4; /* the rarest may want more graphs */
    uint64_t drawn = 0;
    uint32_t missing = 1;
    for (uint32_t round = 1; round <= rounds && missing; round++) {
        while (hits.graphs < wanted * round && drawn < 2 * (uint64_t)wanted * round) run_seed(&hits, seed + drawn++);
        missing = print_hits(&hits);
    }
    if (!given) {
        assert_int_equal(missing, 0);
        assert_true(hits.graphs >= wanted);
        assert_true(hits.unbounded * 5 < hits.elements);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_graphs)};
    return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}
