/* Graphs of reports through the public library. Contract: the header. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "ir/dtype.h"
#include "tests/support/generate.h"
#include "tests/support/report_bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const Way ways[WAYS] = {{"registers", "strategy=row_registers", "row_registers", false},
                               {"loop", "strategy=row_loop", "row_loop", false},
                               {"split", "split=all", "row_split", false}};
const Way *bench_way(uint32_t way) { return &ways[way]; }

bool bench_open(Bench *bench, int argc, char **argv) {
    const char *reduced = getenv("NORMGEN_TEST_REDUCED");
    *bench = (Bench){.reduced = reduced != NULL};
    for (int i = 1; i < argc; i++) {
        const bool cuda = strcmp(argv[i], "--device=cuda") == 0, only = strncmp(argv[i], "--only=", 7) == 0;
        bench->cuda |= cuda;
        if (only) cmocka_set_test_filter(argv[i] + 7);
        if (cuda || only || strcmp(argv[i], "--device=host") == 0) continue;
        fprintf(stderr, "%s: no such option: %s\n", argv[0], argv[i]);
        return false;
    }
    bench->random.state = random_seed();
    ng_text why = {NULL, 0};
    const ng_context_options options = {.size = sizeof options,
                                        .device = bench->cuda ? NG_DEVICE_CUDA : NG_DEVICE_HOST};
    if (ng_context_create(&options, &bench->context, &why))
        fprintf(stderr, "%s: %s\n", argv[0], why.bytes ? why.bytes : "no words");
    ng_text_free(&why);
    return bench->context != NULL;
}

void bench_close(Bench *bench) { ng_context_free(bench->context); }

/* ---- programs ---- */

static char *quoted(const char *graph) {
    char *text = NULL;
    if (asprintf(&text, "graph: report\n%s\n%s\n", graph, strstr(graph, "outputs:") ? "" : "outputs: {y: f32}") < 0)
        abort();
    for (char *c = text; *c; c++)
        if (*c == '\'') *c = '"';
    return text;
}

static void look_at(Trial *trial) {
    ng_program_facts facts = {.size = sizeof facts};
    assert_int_equal(ng_program_query(trial->program, &facts), NG_OK);
    trial->inputs = facts.inputs;
    trial->outputs = facts.outputs;
    assert_true(facts.inputs + facts.outputs <= BENCH_TENSORS);
    for (uint32_t t = 0; t < facts.inputs + facts.outputs; t++) {
        ng_arg arg = {.size = sizeof arg};
        const bool input = t < facts.inputs;
        assert_int_equal(ng_arg_query(trial->program, input ? NG_INPUT : NG_OUTPUT, input ? t : t - facts.inputs, &arg),
                         NG_OK);
        trial->dtype[t] = arg.dtype;
        trial->owner[t] = t;
    }
}

ng_status trial_try(const Bench *bench, const Way *way, const char *graph, Trial *trial, ng_text *why) {
    Job *job = ir_job_create(NULL);
    uint32_t count;
    const Setting *given = generate_settings(job, way ? way->sets : NULL, &count);
    ng_setting *settings = IR_NEW_ARRAY(job, ng_setting, count + (size_t)1);
    for (uint32_t i = 0; i < count; i++) settings[i] = (ng_setting){given[i].name, given[i].value};
    const ng_compile_options options = {.size = sizeof options,
                                        .sets = settings,
                                        .set_count = count,
                                        .verify = 1,
                                        .batch_invariant = way && way->invariant};
    char *text = quoted(graph);
    *trial = (Trial){0};
    const ng_status status = ng_compile(bench->context, text, strlen(text), &options, &trial->program, why);
    if (!status) look_at(trial);
    free(text);
    ir_job_free(job);
    return status;
}

Trial trial_open(const Bench *bench, const Way *way, const char *format, ...) {
    Trial trial;
    ng_text why;
    char *graph;
    va_list args;
    va_start(args, format);
    if (vasprintf(&graph, format, args) < 0) abort();
    va_end(args);
    if (trial_try(bench, way, graph, &trial, &why))
        fail_msg("%s\n%s (%s)", why.bytes ? why.bytes : "no words", graph, way ? way->name : "as it comes");
    ng_text_free(&why);
    if (way && way->strategy && !trial_count(&trial, way->strategy))
        fail_msg("no kernel is %s:\n%s", way->strategy, graph);
    free(graph);
    return trial;
}

static void release(Trial *trial) {
    for (uint32_t t = 0; t < BENCH_TENSORS; t++) {
        free(trial->bytes[t]);
        trial->bytes[t] = NULL;
    }
}

void trial_close(Trial *trial) {
    release(trial);
    ng_program_free(trial->program);
}

void trial_size(Trial *trial, const int64_t *dims) {
    ng_program_facts facts = {.size = sizeof facts};
    assert_int_equal(ng_program_query(trial->program, &facts), NG_OK);
    assert_true(facts.dims <= BENCH_DIMS);
    release(trial);
    if (facts.dims) memcpy(trial->dims, dims, facts.dims * sizeof *dims);
    for (uint32_t t = 0; t < trial->inputs + trial->outputs; t++) {
        const bool input = t < trial->inputs;
        const ng_arg_role role = input ? NG_INPUT : NG_OUTPUT;
        int64_t extents[6], strides[6], last = 0;
        ng_arg arg = {.size = sizeof arg};
        const uint32_t index = input ? t : t - trial->inputs;
        assert_int_equal(ng_arg_query(trial->program, role, index, &arg), NG_OK);
        assert_int_equal(ng_arg_shape(trial->program, role, index, trial->dims, extents, strides), NG_OK);
        for (int d = 0; d < arg.rank && last >= 0; d++) last = extents[d] ? last + (extents[d] - 1) * strides[d] : -1;
        trial->elements[t] = last + 1;
        const size_t bytes = (size_t)(last + 1 + 64) * ng_dtype_bytes(arg.dtype); /* 64: room for a shift */
        if (posix_memalign(&trial->bytes[t], 256, bytes)) abort();
        memset(trial->bytes[t], 0xff, bytes);
    }
}

static char *place_of(const Trial *trial, uint32_t tensor, int64_t element) {
    const uint32_t owner = trial->owner[tensor];
    return (char *)trial->bytes[owner] + (size_t)(element + trial->shift[owner]) * ng_dtype_bytes(trial->dtype[tensor]);
}

ng_status trial_launch(Trial *trial, bool verify, ng_text *why) {
    void *tensors[BENCH_TENSORS];
    for (uint32_t t = 0; t < trial->inputs + trial->outputs; t++) tensors[t] = place_of(trial, t, 0);
    const ng_args args = {.size = sizeof args, .tensors = tensors, .dims = trial->dims};
    ng_report report = {.size = sizeof report, .outputs = trial->reports};
    const ng_status status = ng_run(trial->program, &args, verify, &report);
    if (why)
        *why = report.why;
    else
        ng_text_free(&report.why);
    return status;
}

void trial_run(Trial *trial) {
    ng_text why, text;
    const ng_status status = trial_launch(trial, true, &why);
    if (status) {
        ng_program_text(trial->program, NG_TEXT_IR, "parse", &text);
        fail_msg("%s: %s\n%s", ng_status_name(status), why.bytes ? why.bytes : "no words", text.bytes);
    }
    ng_text_free(&why);
}

/* ---- tensors ---- */

uint32_t trial_tensor(const Trial *trial, const char *name) {
    ng_arg_role role;
    uint32_t index;
    if (ng_arg_find(trial->program, name, &role, &index)) fail_msg("no tensor is called %s", name);
    return role == NG_OUTPUT ? trial->inputs + index : index;
}

void trial_set(Trial *trial, const char *name, int64_t element, double value) {
    const uint32_t t = trial_tensor(trial, name);
    ng_store(trial->dtype[t], place_of(trial, t, element), value);
}

double trial_get(const Trial *trial, const char *name, int64_t element) {
    const uint32_t t = trial_tensor(trial, name);
    return ng_load(trial->dtype[t], place_of(trial, t, element));
}

void trial_set_row(Trial *trial, const char *name, int64_t first, int64_t count, double *values) {
    const uint32_t t = trial_tensor(trial, name);
    for (int64_t i = 0; i < count; i++) {
        ng_store(trial->dtype[t], place_of(trial, t, first + i), values[i]);
        values[i] = ng_load(trial->dtype[t], place_of(trial, t, first + i));
    }
}

void trial_get_row(const Trial *trial, const char *name, int64_t first, int64_t count, double *values) {
    const uint32_t t = trial_tensor(trial, name);
    for (int64_t i = 0; i < count; i++) values[i] = ng_load(trial->dtype[t], place_of(trial, t, first + i));
}

uint32_t trial_count(const Trial *trial, const char *strategy) {
    uint32_t count = 0;
    ng_kernel kernel = {.size = sizeof kernel};
    for (uint32_t k = 0; ng_kernel_query(trial->program, k, &kernel) == NG_OK; k++)
        if (strcmp(kernel.strategy, strategy) == 0) count += kernel.launches;
    return count;
}

ng_text trial_text(const Trial *trial, ng_text_kind what) {
    ng_text text;
    assert_int_equal(ng_program_text(trial->program, what, NULL, &text), NG_OK);
    return text;
}

bool text_has(ng_text text, const char *part) { return text.bytes && strstr(text.bytes, part) != NULL; }

void trial_expect(const Trial *trial, const char *name, int64_t first, int64_t count, const double *expected,
                  const double *bound, const char *what) {
    const uint32_t t = trial_tensor(trial, name);
    for (int64_t i = 0; i < count; i++) {
        const double got = trial_get(trial, name, first + i), e = expected[i];
        const double room = (bound ? bound[i] : 0) + ir_ulp((DType)trial->dtype[t], e);
        if (isnan(e) ? isnan(got) : got == e || fabs(got - e) <= room) continue;
        fail_msg("%s: %s[%lld] is %.9g, expected %.9g within %.3g", what, name, (long long)(first + i), got, e, room);
    }
}

/* ---- references ---- */

void normal_row(Random *random, double mean, double deviation, int64_t count, double *row) {
    for (int64_t i = 0; i < count; i++) row[i] = mean + deviation * random_normal(random);
}

double row_mean(const double *row, int64_t count) {
    long double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += row[i];
    return (double)(sum / (long double)count);
}

double row_variance(const double *row, int64_t count, int correction) {
    const long double mean = row_mean(row, count);
    long double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += (row[i] - mean) * (row[i] - mean);
    return (double)(sum / (long double)(count - correction));
}

double row_most(const double *row, int64_t count) {
    double most = -INFINITY;
    for (int64_t i = 0; i < count; i++) most = row[i] > most ? row[i] : most;
    return most;
}

double row_size(const double *row, int64_t count) {
    long double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += fabs(row[i]);
    return (double)(sum / (long double)count);
}

/* The mean is off by the roundings of count sums and of one product; what is subtracted, squared and added up carries
 * that on; rsqrt is good to two units in the last place. */
void layer_norm_row(const double *x, int64_t count, double eps, double *y, double *bound) {
    const double n = (double)count, mean = row_mean(x, count), variance = row_variance(x, count, 0);
    const double mean_off = (n + 2) * F32_UNIT * row_size(x, count), scale = 1 / sqrt(variance + eps);
    double variance_off = 0;
    for (int64_t i = 0; i < count; i++) {
        const double d = fabs(x[i] - mean), off = mean_off + F32_UNIT * (d + mean_off);
        variance_off += (2 * d * off + off * off + (n + 4) * F32_UNIT * (d + off) * (d + off)) / n;
    }
    const double scale_off = variance_off / (variance + eps) / 2 + 5 * F32_UNIT;
    for (int64_t i = 0; i < count; i++) {
        const double d = x[i] - mean, off = mean_off + F32_UNIT * (fabs(d) + mean_off);
        y[i] = d * scale;
        bound[i] = (off * (1 + scale_off) + fabs(d) * (scale_off + F32_UNIT)) * scale;
    }
}

void rms_norm_row(const double *x, int64_t count, double eps, double *y, double *bound) {
    long double squares = 0;
    for (int64_t i = 0; i < count; i++) squares += (long double)x[i] * x[i];
    const double scale = 1 / sqrt((double)(squares / (long double)count) + eps);
    const double off = ((double)count + 3) * F32_UNIT / 2 + 5 * F32_UNIT;
    for (int64_t i = 0; i < count; i++) {
        y[i] = x[i] * scale;
        bound[i] = off * fabs(y[i]);
    }
}

/* exp is good to two units in the last place of an argument that was rounded; each of count sums rounds, and may scale
 * what it has by another such exp. */
void softmax_row(const double *x, int64_t count, double *y, double *bound) {
    const double most = row_most(x, count);
    long double sum = 0;
    double off = 6 * (double)count * F32_UNIT;
    for (int64_t i = 0; i < count; i++) sum += expl((long double)x[i] - most);
    for (int64_t i = 0; i < count; i++) {
        y[i] = (double)(expl((long double)x[i] - most) / sum);
        if (y[i] > 0) off += y[i] * F32_UNIT * (most - x[i] + 4);
    }
    for (int64_t i = 0; i < count; i++) bound[i] = y[i] > 0 ? y[i] * (off + F32_UNIT * (most - x[i] + 5)) : y[i];
}
