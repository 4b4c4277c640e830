/* What the check of a run compares: of every reduction in every dtype each element, with a bound that a wrong one is
 * outside of; of outputs too large to be evaluated whole a sample in which no element is met twice.
 *
 *   build/tests/test_check */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "ir/eval_ops.h"
#include "tests/support/device_case.h"
#include "tests/support/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seed;
static Devices devices;

/* A case's tensors in memory, and what its check says. */
typedef struct Checked {
    Job *job;
    const RtProgram *program;
    RtScratch scratch;
    char **tensors; /* inputs, then outputs */
    ng_output_report *reports;
    int sampled;
} Checked;

/* Sizes for these any dims; memory for every tensor, zeroed. */
static Checked open_checked(const RtProgram *program, const int64_t *any) {
    Job *job = ir_job_create(NULL);
    Checked checked = {.job = job, .program = program};
    Text why = ir_text(job);
    int64_t *words = IR_NEW_ARRAY(job, int64_t, program->scratch_words + 1);
    if (rt_program_sizes(program, any, words, &checked.scratch, &why)) fail_msg("sizes: %s", ir_text_string(&why));
    checked.tensors = IR_NEW_ARRAY(job, char *, program->tensor_count);
    for (uint32_t t = 0; t < program->tensor_count; t++)
        checked.tensors[t] = IR_NEW_ARRAY(job, char, (size_t)checked.scratch.spans[t].high + 1);
    checked.reports = IR_NEW_ARRAY(job, ng_output_report, program->tensor_count - program->input_count);
    return checked;
}

static void fill(const Checked *checked, uint32_t tensor, double value) {
    const RtTensor *row = &checked->program->tensors[tensor];
    for (int64_t at = 0; at < checked->scratch.spans[tensor].high; at += row->element_bytes)
        ir_store_float(row->tensor->dtype, checked->tensors[tensor] + at, value);
}

/* The check of the outputs as they lie there; by `drawn` its sample. */
static Status check_now(Checked *checked, uint64_t drawn) {
    char **outputs = checked->tensors + checked->program->input_count;
    const RtCompared compared = {.program = checked->program,
                                 .scratch = &checked->scratch,
                                 .inputs = checked->tensors,
                                 .held = outputs,
                                 .outputs = outputs};
    for (uint32_t o = 0; o < checked->program->graph->outputs.count; o++)
        checked->reports[o] = (ng_output_report){.hash = drawn};
    return rt_check_outputs(checked->job, &compared, checked->reports, &checked->sampled, NULL);
}

/* ---- reductions ---- */

static const char *const over[] = {"x", "x, 0", "x, -1", "x, [0, 2]"};
enum { OVER = sizeof over / sizeof *over };

static bool is_logic(Reduction reduction) { return reduction == REDUCTION_ANY || reduction == REDUCTION_ALL; }

static bool takes(Reduction reduction, DType dtype) {
    return *ir_reduction(reduction)->language && (!is_logic(reduction) || dtype == DTYPE_BOOL);
}

/* Every reduction of x, stored in the widest dtype of its kind; all but products in that of x too. */
static DeviceCase *reduce_case(Job *job, DType dtype, const char *sets) {
    const char *name = ir_dtype(dtype)->name, *wide = dtype == DTYPE_F64 ? "f64" : ir_is_float(dtype) ? "f32" : "i64";
    Text nodes = ir_text(job), outputs = ir_text(job), text = ir_text(job);
    for (Reduction r = 0; r < REDUCTION_COUNT; r++) {
        if (!takes(r, dtype)) continue;
        const char *call = ir_reduction(r)->language;
        const bool narrow = dtype != DTYPE_BOOL && r != REDUCTION_MUL;
        for (uint32_t d = 0; d < OVER; d++) {
            ir_text_format(&nodes, "  %s_%u: %s(%s)\n", call, d, call, over[d]);
            ir_text_format(&outputs, "  %s_%u: %s\n", call, d, is_logic(r) ? "bool" : wide);
            if (narrow) ir_text_format(&outputs, "  %s_%u_narrow: {dtype: %s, of: %s_%u}\n", call, d, name, call, d);
        }
    }
    ir_text_format(&text, "graph: reduce\ninputs: {x: '%s[3, 5, 7]'}\nnodes:\n%soutputs:\n%s", name,
                   ir_text_string(&nodes), ir_text_string(&outputs));
    DeviceCase *made = device_case_create(ir_text_string(&text), sets);
    if (made->status) fail_msg("status %d of\n%s", (int)made->status, ir_text_string(&text));
    return made;
}

static void draw(const Checked *checked, Random *random) {
    const DType dtype = checked->program->tensors[0].tensor->dtype;
    const size_t bytes = ir_dtype(dtype)->bytes;
    for (int64_t at = 0; at < checked->scratch.spans[0].high; at += (int64_t)bytes) {
        char *element = checked->tensors[0] + at;
        if (ir_is_float(dtype))
            ir_store_float(dtype, element, random_normal(random));
        else
            ir_store_int(dtype, element,
                         dtype == DTYPE_BOOL ? random_below(random, 4) > 0 : (int64_t)random_bits(random));
    }
}

/* By one where that is a step of the dtype, and by more than rounding explains. */
static void spoil(DType dtype, char *element) {
    if (ir_is_float(dtype)) {
        const double value = ir_load_float(dtype, element);
        ir_store_float(dtype, element, value > 0 ? -value - 1 : 1 - value);
    } else {
        ir_store_int(dtype, element,
                     dtype == DTYPE_BOOL ? !ir_load_int(dtype, element) : ir_load_int(dtype, element) ^ 1);
    }
}

static void expect_all(const Checked *checked, bool spoilt) {
    const char *name = ir_dtype(checked->program->tensors[0].tensor->dtype)->name;
    for (uint32_t o = 0; o < checked->program->graph->outputs.count; o++) {
        const ng_output_report *report = &checked->reports[o];
        const char *output = checked->program->graph->outputs.at[o].name;
        const uint64_t count = (uint64_t)checked->scratch.spans[1 + o].count;
        if (report->checked != count || report->unbounded || report->uncertain)
            fail_msg("%s of %s: %llu of %llu elements checked, %llu without bound, %llu uncertain", output, name,
                     (unsigned long long)report->checked, (unsigned long long)count,
                     (unsigned long long)report->unbounded, (unsigned long long)report->uncertain);
        if (report->failed != (spoilt ? count : 0))
            fail_msg("%s of %s: %llu of %llu elements failed", output, name, (unsigned long long)report->failed,
                     (unsigned long long)count);
    }
}

static void expect_caught(Checked *checked) {
    for (uint32_t t = 1; t < checked->program->tensor_count; t++) {
        const RtTensor *row = &checked->program->tensors[t];
        for (int64_t i = 0; i < checked->scratch.spans[t].count; i++)
            spoil(row->tensor->dtype, checked->tensors[t] + i * row->element_bytes);
    }
    assert_int_equal(check_now(checked, 0), STATUS_CHECK_FAILED);
    expect_all(checked, true);
}

static void run_reductions(const DeviceCase *own, Random *random) {
    Checked checked = open_checked(own->program, NULL);
    draw(&checked, random);
    void **pointers = IR_NEW_ARRAY(checked.job, void *, own->program->tensor_count);
    for (uint32_t t = 0; t < own->program->tensor_count; t++) pointers[t] = checked.tensors[t];
    const ng_args args = {.size = sizeof args, .tensors = pointers};
    ng_report report = {.size = sizeof report, .outputs = checked.reports};
    const Status status = rt_program_run(own->program, NULL, &args, true, 0, &report);
    if (status) fail_msg("%s\n%s", report.why.bytes, own->text);
    assert_int_equal(report.sampled, 0);
    ng_text_free(&report.why);
    expect_all(&checked, false);
    expect_caught(&checked);
    ir_job_free(checked.job);
}

static void test_reductions(void **state) {
    (void)state;
    DeviceCase *cases[DTYPE_COUNT];
    Random random = {seed};
    Job *job = ir_job_create(NULL);
    uint32_t outputs = 0;
    for (uint32_t c = 0; c < DTYPE_COUNT; c++) {
        cases[c] = reduce_case(job, (DType)c, c % 2 ? "split=all" : NULL);
        outputs += cases[c]->program->graph->outputs.count;
    }
    assert_true(device_cases_build(cases, DTYPE_COUNT, &devices));
    for (uint32_t c = 0; c < DTYPE_COUNT; c++) {
        for (int round = 0; round < 2; round++) run_reductions(cases[c], &random);
        device_case_free(cases[c], &devices);
    }
    print_message("# %u outputs of reductions, with their own elements and with wrong ones\n", outputs);
    ir_job_free(job);
}

/* 0 times what is not known is 0, and anything else is not known. */
static void test_product_of_zero(void **state) {
    (void)state;
    uint64_t uncertain = 0;
    const ElementOp mul = {OP_MUL, DTYPE_I64, DTYPE_I64, DTYPE_I64, &uncertain, 0, false, EVAL_CASTS_ROUND};
    int64_t a[] = {0, 0, 3, 0}, b[] = {5, 0, 0, 0}, product[4];
    double no_bound = (double)INFINITY, a_bound[] = {0, 0, 0, 1}, b_bound[] = {no_bound, no_bound, no_bound, no_bound};
    double bound[4];
    const Lane in[2] = {{.integer = a, .bound = a_bound, .step = 1}, {.integer = b, .bound = b_bound, .step = 1}};
    ir_real_double.elements(&mul, in, (Lane){.integer = product, .bound = bound, .step = 1}, 4);
    for (int i = 0; i < 4; i++) assert_true(product[i] == 0 && bound[i] == (i < 2 ? 0 : no_bound));
}

/* ---- samples ---- */

typedef struct Sample {
    const char *what, *text; /* of N (more than are evaluated whole) and K, a row or a column of x being all 2 */
    double value;            /* of an element */
    int64_t box;             /* elements of a box, whole in one output; boxes for each K; boxes drawn at most */
    int64_t boxes, most;
} Sample;

#define FLAT "inputs: {x: {dtype: f32, shape: [N], strides: [0]}}\n"
#define FLAT_3 "inputs: {x: {dtype: f32, shape: [N, 3], strides: [0, 0]}}\n"
#define FLAT_34 "inputs: {x: {dtype: f32, shape: [N, 3, 4], strides: [0, 0, 0]}}\n"
#define WIDE "inputs: {x: {dtype: f32, shape: [4, N], strides: [0, 0]}}\n"
#define WIDE_3 "inputs: {x: {dtype: f32, shape: [2, 3, N], strides: [0, 0, 0]}}\n"
static const Sample samples[] = {
    {"rows", FLAT_3 "nodes: {y: 'x[0:K] + 1'}", 3, 3, 1, 256},
    {"rows of rows", FLAT_34 "nodes: {y: 'x[0:K] + 1'}", 3, 4, 3, 256},
    {"sums of rows", FLAT_3 "nodes: {y: 'sum(x[0:K], 1)'}", 6, 1, 1, 256},
    {"sums of columns", WIDE "nodes: {y: 'sum(x[:, 0:K], 0)'}", 8, 1, 1, 16},
    {"columns", WIDE "nodes: {y: 'x[:, 0:K] - sum(x[:, 0:K], 0)'}", -6, 4, 1, 16},
    {"columns of two", WIDE_3 "nodes: {y: 'x[:, :, 0:K] - sum(x[:, :, 0:K], 1, True)'}", -4, 3, 2, 16},
    {"one row's sum", FLAT "nodes: {y: 'x[0:K] - sum(x[0:K])'}", 0, 0, 0, 1},
};
enum { SAMPLES = sizeof samples / sizeof *samples, RUN = 4096, RUNS = 256 };

static DeviceCase *sample_case(Job *job, const char *text) {
    Text whole = ir_text(job);
    ir_text_format(&whole, "graph: sampled\ndims: {N: any, K: any}\n%s\noutputs: {y: f32}", text);
    DeviceCase *made = device_case_create(ir_text_string(&whole), NULL);
    if (made->status) fail_msg("status %d of\n%s", (int)made->status, ir_text_string(&whole));
    return made;
}

static Checked open_sample(const DeviceCase *own, int64_t k) {
    Checked checked = open_checked(own->program, (int64_t[]){(1 << 24) + 1, k});
    fill(&checked, 0, 2);
    return checked;
}

static void run_sample(const Sample *sample, const DeviceCase *own, int64_t k, Random *random) {
    Checked checked = open_sample(own, k);
    const int64_t boxes = sample->boxes * k, elements = checked.scratch.spans[1].count;
    const bool all = boxes <= sample->most;
    fill(&checked, 1, sample->boxes ? sample->value : 2 - 2 * (double)k);
    for (int round = 0; round < 5; round++) {
        assert_int_equal(check_now(&checked, random_bits(random)), STATUS_OK);
        const int64_t expected = all ? elements : sample->most * sample->box;
        if ((int64_t)checked.reports->checked != expected || checked.sampled != !all)
            fail_msg("%s, K = %lld: %llu of %lld elements checked, not %lld; %s", sample->what, (long long)k,
                     (unsigned long long)checked.reports->checked, (long long)elements, (long long)expected,
                     checked.sampled ? "sampled" : "whole");
    }
    ir_job_free(checked.job);
}

/* With one box more than are drawn, and one wrong element in each box in turn: all but one box's are found, once. */
static void run_drawn(const Sample *sample, const DeviceCase *own, Random *random) {
    const int64_t k = sample->most / sample->boxes + 1;
    Checked checked = open_sample(own, k);
    const int64_t count = checked.scratch.spans[1].count, left = sample->boxes * k - sample->most;
    const uint64_t drawn = random_bits(random);
    uint64_t found = 0;
    fill(&checked, 1, sample->value);
    float *y = (float *)(void *)checked.tensors[1];
    for (int64_t i = 0; i < count; i++) {
        y[i] += 1;
        (void)check_now(&checked, drawn);
        if (checked.reports->failed > 1)
            fail_msg("%s: element %lld failed %llu times", sample->what, (long long)i,
                     (unsigned long long)checked.reports->failed);
        found += checked.reports->failed;
        y[i] -= 1;
    }
    if (found != (uint64_t)(count - left * sample->box))
        fail_msg("%s: %llu of %lld elements are in the sample", sample->what, (unsigned long long)found,
                 (long long)count);
    ir_job_free(checked.job);
}

static void test_samples(void **state) {
    (void)state;
    static const int64_t sizes[] = {0, 1, 2, 7, 8, 9, 15, 16, 17, 18, 40, 85, 86, 255, 256, 257, 258, 300, 2000};
    Random random = {seed + 1};
    Job *job = ir_job_create(NULL);
    for (size_t s = 0; s < SAMPLES; s++) {
        DeviceCase *own = sample_case(job, samples[s].text);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) run_sample(&samples[s], own, sizes[i], &random);
        if (samples[s].boxes) run_drawn(&samples[s], own, &random);
        device_case_free(own, &devices);
    }
    ir_job_free(job);
}

/* Without rows: runs of elements, the last as short as is left. */
static void test_runs(void **state) {
    (void)state;
    static const int64_t whole = (int64_t)RUN * RUNS,
                         sizes[] = {0, 1, RUN - 1, RUN, RUN + 1, whole - 1, whole, whole + 1, whole + RUN + 1};
    Random random = {seed + 2};
    Job *job = ir_job_create(NULL);
    DeviceCase *own = sample_case(job, FLAT "nodes: {y: 'x[0:K] + 1'}");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        Checked checked = open_sample(own, sizes[i]);
        const int64_t short_by = sizes[i] > whole ? RUN - 1 : 0; /* where the last run is drawn */
        for (int round = 0; round < 4; round++) {
            fill(&checked, 1, round % 2 ? 4 : 3);
            const uint64_t drawn = random_bits(&random);
            assert_int_equal(check_now(&checked, drawn), round % 2 && sizes[i] ? STATUS_CHECK_FAILED : STATUS_OK);
            const int64_t counted = (int64_t)checked.reports->checked, most = sizes[i] < whole ? sizes[i] : whole;
            assert_true(counted == most || counted == most - short_by);
            assert_int_equal(checked.reports->failed, round % 2 ? counted : 0);
            assert_int_equal(checked.sampled, sizes[i] > whole);
            check_now(&checked, drawn);
            assert_int_equal(checked.reports->checked, counted);
        }
        ir_job_free(checked.job);
    }
    device_case_free(own, &devices);
    ir_job_free(job);
}

int main(int argc, char **argv) {
    seed = random_seed();
    if (!devices_open(&devices, argc, argv)) return 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_product_of_zero),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_runs),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    devices_close(&devices);
    return failed;
}
