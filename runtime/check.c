/* The check of a run against the oracle. In: inputs and outputs as they were before the launch, outputs as they are
 * after it. Out: for each output what was compared, what failed, and the worst element. The oracle evaluates boxes of
 * an output, spread over the cores, each in a job of its own; very large graphs are sampled. */
#include "runtime/launch_tables.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

static const int64_t most_whole = (int64_t)1 << 24; /* elements of the largest value that is evaluated whole */
enum { SAMPLE_ROWS = 256, SAMPLE_COLUMNS = 16, SAMPLE_RUN = 4096, BOX_ELEMENTS = 1 << 15, BOXES = 64 };

typedef struct Element {
    int64_t index; /* row-major; -1: none */
    double got, expected, bound;
} Element;

typedef struct Found { /* in one box, or in all */
    uint64_t checked, failed, uncertain, unbounded;
    double share;            /* of the worst */
    Element worst, doubtful; /* the first that was met within its bound of a discontinuity */
    uint32_t cause;          /* where that was: a value's id + 1 */
} Found;

typedef struct BoxCheck {
    Box box;
    Found found;
    Job *job; /* where the evaluation was left: its words */
    Status status;
} BoxCheck;

typedef struct OutputCheck {
    const RtCompared *compared;
    const EvalInput *input;
    uint32_t output;
    IR_LIST(BoxCheck) boxes;
} OutputCheck;

/* ---- comparing ---- */

static const RtSpan *span_of(const OutputCheck *check) {
    return &check->compared->scratch->spans[check->compared->program->input_count + check->output];
}

typedef struct Comparison {
    Element element;
    bool passes, close; /* within its bound; the same but for one ulp */
    double share;       /* of the bound */
} Comparison;

/* Elements without a bound pass, being not checked, and are counted. */
static void note(Found *found, const Comparison *compared, uint32_t cause) {
    const Element *element = &compared->element;
    double share = compared->share;
    found->checked++;
    if (isinf(element->bound)) {
        found->unbounded++;
        return;
    }
    if (!compared->passes) found->failed++;
    if (!compared->passes && share <= 1) share = INFINITY; /* a NaN or an inf that is not expected */
    if (cause && element->bound > 0 && !compared->close) {
        found->uncertain++;
        if (found->doubtful.index < 0) found->doubtful = *element, found->cause = cause;
    }
    if (found->worst.index >= 0 && share <= found->share) return;
    found->share = share;
    found->worst = *element;
}

static Comparison compare_floats(DType dtype, double got, double number, double bound) {
    const double error = fabs(got - number);
    Comparison compared = {.passes = ir_element_passes(dtype, got, number, bound)};
    compared.close = ir_element_passes(dtype, got, number, 0);
    if (got != number && isfinite(error)) compared.share = error / (ir_ulp(dtype, number) + bound);
    return compared;
}

/* The difference is taken in integers: beyond 2^53 doubles do not show it. */
static Comparison compare_integers(int64_t got, int64_t number, double bound) {
    const uint64_t error = got < number ? (uint64_t)number - (uint64_t)got : (uint64_t)got - (uint64_t)number;
    return (Comparison){
        .passes = error == 0 || (double)error <= bound, .close = error == 0, .share = (double)error / (1 + bound)};
}

static void compare(Found *found, DType dtype, const char *at, const Expected *expected, uint64_t i, int64_t index) {
    const double bound = expected->bound ? expected->bound[i] : 0;
    Comparison compared;
    if (ir_dtype(dtype)->kind == KIND_FLOAT) {
        const double got = ir_load_float(dtype, at), number = expected->number[i];
        compared = compare_floats(dtype, got, number, bound);
        compared.element = (Element){index, got, number, bound};
    } else {
        const int64_t got = ir_load_int(dtype, at), number = expected->integer[i];
        compared = compare_integers(got, number, bound);
        compared.element = (Element){index, (double)got, (double)number, bound};
    }
    note(found, &compared, expected->cause ? expected->cause[i] : 0);
}

static void compare_box(const OutputCheck *check, BoxCheck *row, const Expected *expected) {
    const RtSpan *span = span_of(check);
    const RtTensor *tensor = &check->compared->program->tensors[check->compared->program->input_count + check->output];
    const uint32_t rank = tensor->tensor->shape.rank;
    int64_t at[IR_MAX_RANK];
    memcpy(at, row->box.start, sizeof at);
    for (uint64_t i = 0; i < expected->count; i++) {
        int64_t offset = 0, index = 0;
        for (uint32_t d = 0; d < rank; d++) {
            offset += at[d] * span->stride[d];
            index = index * span->extent[d] + at[d];
        }
        compare(&row->found, tensor->tensor->dtype,
                check->compared->outputs[check->output] + offset * tensor->element_bytes, expected, i, index);
        for (uint32_t d = rank; d-- > 0;) {
            if (++at[d] < row->box.stop[d]) break;
            at[d] = row->box.start[d];
        }
    }
    /* one doubtful element may reach many of the output, as through a row's sum */
    if (row->found.uncertain > expected->uncertain) row->found.uncertain = expected->uncertain;
}

typedef struct BoxWork {
    const OutputCheck *check;
    BoxCheck *row;
} BoxWork;

static void box_work(Job *job, void *state) {
    BoxWork *work = state;
    Expected expected = ir_eval_graph(job, work->check->compared->program->graph, work->check->input,
                                      work->check->output, &work->row->box);
    compare_box(work->check, work->row, &expected);
}

static void check_box(void *state, uint32_t index) {
    OutputCheck *check = state;
    BoxWork work = {check, &check->boxes.at[index]};
    Job *job = ir_job_create(check->compared->allocator);
    work.row->found.worst.index = work.row->found.doubtful.index = -1;
    work.row->status = job ? ir_job_run(job, box_work, &work) : STATUS_SYSTEM;
    if (work.row->status)
        work.row->job = job;
    else
        ir_job_free(job);
}

/* ---- which boxes ---- */

static int64_t extent_product(const OutputCheck *check, const Shape *shape) {
    const RtScratch *scratch = check->compared->scratch;
    int64_t product = 1, extent;
    for (uint32_t d = 0; d < shape->rank; d++)
        if (!ir_poly_eval(shape->extent[d], scratch->graph_dims, check->compared->program->graph->dims.count, NULL, 0,
                          &extent) ||
            ir_mul_overflows(product, extent, &product))
            return INT64_MAX;
    return product;
}

/* What an output is made of, seen from its reductions. */
typedef struct Cone {
    int64_t largest; /* elements of a value */
    bool outer;      /* some reduction consumes dims that are no suffix: its elements run down columns */
    bool whole;      /* some reduction leaves one element */
    bool any;        /* there is a reduction */
} Cone;

static Cone look_at_cone(Job *job, const OutputCheck *check) {
    const Graph *graph = check->compared->program->graph;
    bool *used = IR_NEW_ARRAY(job, bool, graph->values.count);
    Cone cone = {0};
    used[graph->outputs.at[check->output].value] = true;
    for (uint32_t v = graph->values.count; v-- > 0;) {
        const Value *value = &graph->values.at[v];
        if (!used[v]) continue;
        ir_value_mark_args(value, used);
        int64_t elements = extent_product(check, &value->shape);
        if (elements > cone.largest) cone.largest = elements;
        if (value->op != OP_REDUCE) continue;
        const uint32_t rank = graph->values.at[value->arg[0]].shape.rank;
        const uint32_t all = (1u << rank) - 1, kept = all & ~value->dims;
        cone.any = true;
        cone.whole |= kept == 0;
        for (uint32_t d = 0; d < rank; d++)
            cone.outer |= (value->dims >> d & 1) && kept >> d != 0; /* kept further in */
    }
    return cone;
}

static Box whole_box(const RtSpan *span) {
    Box box = {{0}, {0}};
    memcpy(box.stop, span->extent, sizeof box.stop);
    return box;
}

/* Runs of rows: cut along the first dims, never along the last of several, whose reductions would be done again. */
static void split_whole(Job *job, OutputCheck *check, uint32_t rank) {
    const RtSpan *span = span_of(check);
    Box box = whole_box(span);
    uint32_t cut = 0;
    int64_t before = 1; /* boxes made by single indices of the dims before the cut one */
    while (cut + 2 < rank && before * span->extent[cut] < BOXES) before *= span->extent[cut++];
    if (!rank || !span->count) {
        if (span->count) IR_PUSH(job, &check->boxes)->box = box;
        return;
    }
    int64_t each = span->count / before / span->extent[cut], run = BOX_ELEMENTS / (each > 0 ? each : 1);
    int64_t even = (span->extent[cut] * before + BOXES - 1) / BOXES;
    if (run > even) run = even;
    if (run < 1) run = 1;
    for (int64_t b = 0; b < before; b++) {
        int64_t rest = b;
        for (uint32_t d = cut; d-- > 0; rest /= span->extent[d]) {
            box.start[d] = rest % span->extent[d];
            box.stop[d] = box.start[d] + 1;
        }
        for (int64_t r = 0; r < span->extent[cut]; r += run) {
            box.start[cut] = r;
            box.stop[cut] = r + run < span->extent[cut] ? r + run : span->extent[cut];
            IR_PUSH(job, &check->boxes)->box = box;
        }
    }
}

static int64_t pick(uint64_t *random, int64_t extent) {
    *random = XXH64(random, sizeof *random, 0);
    return (int64_t)(*random % (uint64_t)extent);
}

/* An output cut into boxes that share no element, of which some are drawn: rows; of column outputs columns, with all
 * that the reductions may run over. */
typedef struct Cuts {
    uint32_t rank;
    int64_t run;                 /* elements of a box along a cut dim */
    int64_t number[IR_MAX_RANK]; /* of boxes along each dim; 1: it is whole */
    int64_t count;               /* of boxes; 0 where there is no element */
} Cuts;

static Cuts cut_output(const RtSpan *span, const Cone *cone, uint32_t rank) {
    const bool one = !rank || (rank == 1 && cone->whole);
    Cuts cuts = {.rank = rank, .run = rank == 1 && !cone->any ? SAMPLE_RUN : 1, .count = span->count > 0};
    for (uint32_t d = 0; d < rank; d++) {
        const bool last = d + 1 == rank, whole = cone->outer ? !last && (d || rank == 2) : last && rank > 1;
        cuts.number[d] = one || whole ? 1 : (span->extent[d] - 1) / cuts.run + 1;
        if (cuts.count) cuts.count *= cuts.number[d];
    }
    return cuts;
}

static void push_box(Job *job, OutputCheck *check, const Cuts *cuts, int64_t box_number) {
    const RtSpan *span = span_of(check);
    Box box = whole_box(span);
    for (uint32_t d = cuts->rank; d-- > 0; box_number /= cuts->number[d]) {
        if (cuts->number[d] == 1) continue;
        box.start[d] = box_number % cuts->number[d] * cuts->run;
        if (box.start[d] + cuts->run < box.stop[d]) box.stop[d] = box.start[d] + cuts->run;
    }
    IR_PUSH(job, &check->boxes)->box = box;
}

static bool is_among(const int64_t *numbers, int count, int64_t number) {
    for (int i = 0; i < count; i++)
        if (numbers[i] == number) return true;
    return false;
}

/* Draws boxes, none twice (Floyd's way); all where they are no more than are drawn. Whether some were left out. */
static bool sample_boxes(Job *job, OutputCheck *check, const Cone *cone, uint32_t rank, uint64_t seed) {
    const Cuts cuts = cut_output(span_of(check), cone, rank);
    const int64_t most = cone->outer ? SAMPLE_COLUMNS : SAMPLE_ROWS;
    if (cuts.count <= most) {
        for (int64_t b = 0; b < cuts.count; b++) push_box(job, check, &cuts, b);
        return false;
    }
    int64_t drawn[SAMPLE_ROWS];
    uint64_t random = seed;
    for (int i = 0; i < most; i++) {
        const int64_t top = cuts.count - most + i, picked = pick(&random, top + 1);
        drawn[i] = is_among(drawn, i, picked) ? top : picked;
        push_box(job, check, &cuts, drawn[i]);
    }
    return true;
}

/* ---- reporting ---- */

static void add_number(Text *why, const char *before, double value) {
    rt_say(why, "%s", before);
    if (why) ir_text_double(why, value);
}

static void describe(const OutputCheck *check, const ng_output_report *report, uint32_t cause, Text *why) {
    const RtSpan *span = span_of(check);
    const Tensor *tensor = &check->compared->program->graph->outputs.at[check->output];
    const unsigned long long failed = report->failed, checked = report->checked, uncertain = report->uncertain;
    rt_say(why, "output %s: ", tensor->name);
    if (!failed)
        rt_say(why,
               "too many uncertain elements, %llu of %llu (more than 1 in 1000): rounding errors within their bound "
               "decide which side of a jump they fall on (as of round, a comparison, a cast to integers)\n",
               uncertain, checked);
    else
        rt_say(why, "%llu of %llu elements are outside their bound\n", failed, checked);
    if (report->worst_index < 0) return;
    int64_t index[IR_MAX_RANK], rest = report->worst_index;
    for (uint32_t d = tensor->shape.rank; d-- > 0; rest /= span->extent[d]) index[d] = rest % span->extent[d];
    rt_say(why, "  %s: %s[", failed ? "worst" : "first", tensor->name);
    for (uint32_t d = 0; d < tensor->shape.rank; d++) rt_say(why, "%s%lld", d ? ", " : "", (long long)index[d]);
    add_number(why, "]: got ", report->worst_got);
    add_number(why, ", expected ", report->worst_expected);
    add_number(why, ", bound ", report->worst_bound);
    if (ir_dtype(tensor->dtype)->kind == KIND_FLOAT) rt_say(why, " and 1 ulp of %s", ir_dtype(tensor->dtype)->name);
    rt_say(why, "%s", !failed && cause ? "; the jump is " : "\n");
    if (failed || !cause) return;
    rt_say_value(check->compared->program, &check->compared->program->graph->values.at[cause - 1], why);
    rt_say(why, "\n");
}

static Status gather_found(OutputCheck *check, ng_output_report *report, Text *why) {
    Status status = STATUS_OK;
    Found all = {.worst = {.index = -1}, .doubtful = {.index = -1}};
    ng_text words = {NULL, 0}; /* of the first box that could not be evaluated */
    for (uint32_t b = 0; b < check->boxes.count; b++) {
        BoxCheck *row = &check->boxes.at[b];
        if (row->status && !status) {
            status = row->status;
            if (row->job) words = rt_job_words(row->job);
        }
        ir_job_free(row->job);
        const Found *found = &row->found;
        all.checked += found->checked, all.failed += found->failed, all.uncertain += found->uncertain;
        all.unbounded += found->unbounded;
        if (found->worst.index >= 0 && (all.worst.index < 0 || found->share > all.share))
            all.share = found->share, all.worst = found->worst;
        if (found->doubtful.index >= 0 && (all.doubtful.index < 0 || found->doubtful.index < all.doubtful.index))
            all.doubtful = found->doubtful, all.cause = found->cause;
    }
    if (status) rt_say(why, "the reference could not be evaluated: %s\n", words.bytes ? words.bytes : "no memory");
    ng_text_free(&words);
    report->checked = all.checked;
    report->failed = all.failed;
    report->uncertain = all.uncertain;
    report->unbounded = all.unbounded;
    report->worst = all.share;
    const bool doubtful = !all.failed && all.uncertain * 1000 > all.checked;
    const Element *shown = doubtful && all.doubtful.index >= 0 ? &all.doubtful : &all.worst;
    report->worst_index = shown->index;
    report->worst_got = shown->got;
    report->worst_expected = shown->expected;
    report->worst_bound = shown->bound;
    if (status) return status;
    if (!all.failed && !doubtful) return STATUS_OK;
    describe(check, report, all.cause, why);
    return STATUS_CHECK_FAILED;
}

static View *make_views(Job *job, const RtCompared *compared, char *const *bytes, uint32_t first, uint32_t count) {
    View *views = IR_NEW_ARRAY(job, View, count);
    for (uint32_t i = 0; i < count; i++) {
        const RtSpan *span = &compared->scratch->spans[first + i];
        const Tensor *tensor = compared->program->tensors[first + i].tensor;
        views[i] = (View){.bytes = bytes[i], .rank = tensor->shape.rank, .dtype = tensor->dtype};
        memcpy(views[i].stride, span->stride, sizeof views[i].stride);
        memcpy(views[i].extent, span->extent, sizeof views[i].extent);
    }
    return views;
}

static EvalInput make_input(Job *job, const RtCompared *compared) {
    const RtProgram *program = compared->program;
    const Graph *graph = program->graph;
    Scalar *scalars = IR_NEW_ARRAY(job, Scalar, graph->scalars.count);
    for (uint32_t s = 0; s < graph->scalars.count; s++)
        scalars[s] = rt_scalar_value(&graph->scalars.at[s], compared->scalars ? &compared->scalars[s] : NULL);
    return (EvalInput){.dims = compared->scratch->graph_dims,
                       .inputs = make_views(job, compared, compared->inputs, 0, program->input_count),
                       .held = make_views(job, compared, compared->held, program->input_count, graph->outputs.count),
                       .scalars = scalars,
                       .depth = gen_depths(job, program->unit, compared->scratch->prog_dims, compared->scratch->parts)};
}

/* Evaluates and compares the check's output; whether only some of it was. */
static bool check_boxes(Job *job, OutputCheck *check, uint64_t sample_seed) {
    const uint32_t rank = check->compared->program->graph->outputs.at[check->output].shape.rank;
    Cone cone = look_at_cone(job, check);
    bool sampled = false;
    if (cone.largest > most_whole)
        sampled = sample_boxes(job, check, &cone, rank, sample_seed);
    else
        split_whole(job, check, rank);
    rt_parallel(check->boxes.count, check_box, check);
    return sampled;
}

void rt_explain_index(Job *job, const RtCompared *compared, Text *why) {
    const Graph *graph = compared->program->graph;
    EvalInput input = make_input(job, compared);
    ng_text words = {NULL, 0};
    for (uint32_t o = 0; o < graph->outputs.count && !words.bytes; o++) {
        OutputCheck check = {.compared = compared, .input = &input, .output = o};
        check_boxes(job, &check, 0);
        for (uint32_t b = 0; b < check.boxes.count; b++) {
            const BoxCheck *row = &check.boxes.at[b];
            if (row->status == STATUS_USAGE && row->job && !words.bytes) words = rt_job_words(row->job);
            ir_job_free(row->job);
        }
    }
    static const char severity[] = "error: "; /* without a place: this is a part of a sentence */
    const size_t skipped = words.bytes && !strncmp(words.bytes, severity, strlen(severity)) ? strlen(severity) : 0;
    if (words.bytes) rt_say(why, ": %.*s", (int)strcspn(words.bytes + skipped, "\n"), words.bytes + skipped);
    ng_text_free(&words);
}

Status rt_check_outputs(Job *job, const RtCompared *compared, ng_output_report *reports, int *sampled, Text *why) {
    const Graph *graph = compared->program->graph;
    EvalInput input = make_input(job, compared);
    Status status = STATUS_OK;
    *sampled = 0;
    for (uint32_t o = 0; o < graph->outputs.count; o++) {
        OutputCheck check = {.compared = compared, .input = &input, .output = o};
        if (check_boxes(job, &check, reports[o].hash)) *sampled = 1;
        Status found = gather_found(&check, &reports[o], why);
        if (!status || (status == STATUS_CHECK_FAILED && found)) status = found;
    }
    return status;
}
