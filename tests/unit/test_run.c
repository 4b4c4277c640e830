/* Runs and their check, on a device whose kernel is a C function of this test: y = x + 1 with a fault where the test
 * wants one. What a run must do is seen from there: which addresses the kernel gets, what comes back, what the check
 * says. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/host_sanitize.h"
#include "runtime/launch.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ---- the device ---- */

struct RtKernel {
    int none;
};

typedef struct Bench {
    RtDevice device;
    RtKernel kernel;
    int64_t row_stride; /* of x and y, in elements */
    int64_t fault;      /* row-major index of an element that comes out wrong; -1: none */
    float fault_size;   /* what it is away by */
    bool fault_everywhere;
    int64_t stray; /* an element outside y that is written too; 0: none */
    float *seen_x, *seen_y;
    int allocated, released;
} Bench;

static Status bench_kernel(RtDevice *device, RtModule *module, const char *name, uint32_t shared_bytes,
                           RtKernel **kernel, Text *why) {
    (void)module, (void)name, (void)shared_bytes, (void)why;
    *kernel = &((Bench *)device)->kernel;
    return STATUS_OK;
}

static Status bench_facts(RtDevice *device, const RtKernel *kernel, RtFacts *facts, Text *why) {
    (void)device, (void)kernel, (void)why;
    *facts = (RtFacts){.max_threads = 1024};
    return STATUS_OK;
}

enum { COLUMNS = 8 };

static Status bench_launch(RtDevice *device, const RtLaunch *launch, Text *why) {
    Bench *bench = (Bench *)device;
    (void)why;
    int64_t rows;
    memcpy(&bench->seen_x, launch->params[0], sizeof bench->seen_x);
    memcpy(&bench->seen_y, launch->params[1], sizeof bench->seen_y);
    memcpy(&rows, launch->params[2], sizeof rows);
    for (int64_t i = 0; i < rows * COLUMNS; i++) {
        const int64_t at = i / COLUMNS * bench->row_stride + i % COLUMNS;
        bench->seen_y[at] = bench->seen_x[at] + 1;
        if (i == bench->fault || bench->fault_everywhere) bench->seen_y[at] += bench->fault_size;
    }
    if (bench->stray) bench->seen_y[bench->stray] = 1;
    return STATUS_OK;
}

static Status bench_alloc(RtDevice *device, size_t bytes, void **memory, Text *why) {
    (void)why;
    if (posix_memalign(memory, 256, bytes)) return STATUS_LAUNCH;
    memset(*memory, 0xff, bytes);
    ((Bench *)device)->allocated++;
    return STATUS_OK;
}

static void bench_release(RtDevice *device, void *memory) {
    free(memory);
    ((Bench *)device)->released++;
}

static Status bench_copy_in(RtDevice *device, void *to, const void *from, size_t bytes, Text *why) {
    (void)device, (void)why;
    memcpy(to, from, bytes);
    return STATUS_OK;
}

static Status bench_copy_out(RtDevice *device, void *to, const void *from, size_t bytes, Text *why) {
    return bench_copy_in(device, to, from, bytes, why);
}

static Status bench_synchronize(RtDevice *device, Text *why) {
    (void)device, (void)why;
    return STATUS_OK;
}

static const RtDeviceOps bench_ops = {.name = "bench",
                                      .kernel = bench_kernel,
                                      .facts = bench_facts,
                                      .launch = bench_launch,
                                      .alloc = bench_alloc,
                                      .release = bench_release,
                                      .copy_in = bench_copy_in,
                                      .copy_out = bench_copy_out,
                                      .synchronize = bench_synchronize};

/* ---- the unit ---- */

typedef struct Fixture {
    Job *job;
    Unit unit;
    Plan plan;
    Bench bench;
    RtProgram *program;
    ng_output_report output;
    ng_report report;
    Random random;
} Fixture;

static Graph *make_graph(Job *job, int64_t row_stride) {
    const Place nowhere = {0, 0};
    Graph *graph = ir_graph_create(job, "toy");
    *IR_PUSH(job, &graph->dims) = (Dim){.name = "M", .value = -1, .hint = -1, .max = -1, .multiple = 1};
    Tensor x = {.name = "x", .dtype = DTYPE_F32, .contiguous = row_stride == COLUMNS, .inplace = IR_NONE};
    x.shape = (Shape){2, {ir_poly_symbol(job, 0), ir_poly_int(job, COLUMNS)}};
    x.stride[0] = ir_poly_int(job, row_stride), x.stride[1] = ir_poly_int(job, 1);
    *IR_PUSH(job, &graph->inputs) = x;
    uint32_t input = ir_graph_add(job, graph, OP_INPUT, DTYPE_F32, nowhere);
    graph->values.at[input].shape = x.shape;
    uint32_t one = ir_graph_const(job, graph, DTYPE_F32, 1, 1, nowhere);
    x.name = "y";
    x.value = ir_graph_op(job, graph, OP_ADD, (uint32_t[]){input, one}, nowhere);
    x.inplace = 0;
    *IR_PUSH(job, &graph->outputs) = x;
    for (uint32_t v = 0; v < graph->values.count; v++) graph->values.at[v].origin = v;
    return graph;
}

static Prog *make_prog(Job *job) {
    Prog *prog = ir_prog_create(job, "toy");
    *IR_PUSH(job, &prog->dims) = (Dim){.name = "M", .value = -1, .hint = -1, .max = -1, .multiple = 1};
    for (uint32_t b = 0; b < 2; b++)
        *IR_PUSH(job, &prog->bufs) = (Buf){
            .name = b ? "y" : "x", .dtype = DTYPE_F32, .kind = b ? BUF_OUT : BUF_IN, .tensor = 0, .may_alias = IR_NONE};
    IR_PUSH(job, &prog->nests)->name = "n0";
    return prog;
}

static void build(Fixture *fixture, int64_t row_stride) {
    Job *job = fixture->job;
    Graph *graph = make_graph(job, row_stride);
    fixture->plan = (Plan){.name = "toy"};
    Step *step = IR_PUSH(job, &fixture->plan.steps);
    step->tile.threads = 32;
    step->units = ir_poly_symbol(job, 0);
    step->units_per_cta = (int64_t)1 << 40;
    step->part = IR_NONE;
    step->param_count = 3;
    step->params = IR_NEW_ARRAY(job, Param, 3);
    step->params[1].buf = 1;
    step->params[2] = (Param){.kind = PARAM_SIZE, .size = {SIZE_DIM, 0}};
    step->variant_count = 1;
    step->variants[0].kernel = "k";
    fixture->unit = (Unit){.graph = graph, .expanded = graph, .prog = make_prog(job), .plan = &fixture->plan};
    fixture->bench = (Bench){.device = {.ops = &bench_ops}, .row_stride = row_stride, .fault = -1, .fault_size = 0.5f};
    fixture->program = rt_program_create(job, &fixture->unit);
    Text why = ir_text(job);
    assert_int_equal(rt_program_load(fixture->program, &fixture->bench.device, NULL, &why), STATUS_OK);
}

static int setup(void **state) {
    Job *job = ir_job_create(NULL);
    Fixture *fixture = IR_NEW(job, Fixture);
    fixture->job = job;
    fixture->random.state = random_seed();
    fixture->report = (ng_report){.size = sizeof fixture->report, .outputs = &fixture->output};
    build(fixture, COLUMNS);
    *state = fixture;
    return 0;
}

static int teardown(void **state) {
    Fixture *fixture = *state;
    assert_int_equal(fixture->bench.allocated, fixture->bench.released);
    ng_text_free(&fixture->report.why);
    ir_job_free(fixture->job);
    return 0;
}

static float *numbers(Fixture *fixture, int64_t count) {
    float *made = malloc((size_t)(count + 64) * sizeof *made);
    for (int64_t i = 0; i < count + 64; i++) made[i] = (float)random_normal(&fixture->random);
    return made;
}

static Status run(Fixture *fixture, const float *x, float *y, int64_t rows, const Allocator *allocator) {
    void *const tensors[] = {(void *)(uintptr_t)x, y};
    const ng_args args = {.size = sizeof args, .tensors = tensors, .dims = &rows};
    ng_text_free(&fixture->report.why);
    return rt_program_run(fixture->program, allocator, &args, true, 0, &fixture->report);
}

/* ---- tests ---- */

static void test_report(void **state) {
    Fixture *fixture = *state;
    static const int64_t rows[] = {0, 1, 3, 37, 1000};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int64_t count = rows[i] * COLUMNS;
        float *x = numbers(fixture, count), *y = numbers(fixture, count);
        if (count) x[1] = NAN, x[2] = INFINITY;
        assert_int_equal(run(fixture, x, y, rows[i], NULL), STATUS_OK);
        const ng_output_report *out = &fixture->output;
        double sum = 0, least = INFINITY;
        for (int64_t k = 0; k < count; k++) {
            assert_true(y[k] == x[k] + 1 || isnan(x[k]));
            if (!isfinite(y[k])) continue;
            sum += y[k];
            if (y[k] < least) least = y[k];
        }
        assert_int_equal(out->elements, count);
        assert_int_equal(out->checked, count);
        assert_int_equal(out->failed + out->uncertain, 0);
        assert_int_equal(out->nans, count ? 1 : 0);
        assert_int_equal(fixture->report.sampled, 0);
        assert_true(out->hash == XXH3_64bits(y, (size_t)count * sizeof *y));
        if (count) assert_true(out->min == least);
        if (count) assert_true(fabs(out->mean - sum / (double)(count - 2)) < 1e-9);
        if (!count) assert_true(isnan(out->mean));
        free(x);
        free(y);
    }
}

static void test_fault(void **state) {
    Fixture *fixture = *state;
    float *x = numbers(fixture, 37 * COLUMNS), *y = numbers(fixture, 37 * COLUMNS);
    fixture->bench.fault = 3 * COLUMNS + 5;
    assert_int_equal(run(fixture, x, y, 37, NULL), STATUS_CHECK_FAILED);
    const ng_output_report *out = &fixture->output;
    assert_int_equal(out->failed, 1);
    assert_int_equal(out->worst_index, 3 * COLUMNS + 5);
    assert_true(out->worst_got == y[29]);
    assert_true(fabs(out->worst_expected + 0.5 - out->worst_got) < 1e-5);
    assert_non_null(strstr(fixture->report.why.bytes, "output y: 1 of 296"));
    assert_non_null(strstr(fixture->report.why.bytes, "y[3, 5]: got "));
    free(x);
    free(y);
}

/* Numbers and NaN are never taken for each other. */
static void test_nan_fault(void **state) {
    Fixture *fixture = *state;
    float *x = numbers(fixture, 37 * COLUMNS), *y = numbers(fixture, 37 * COLUMNS);
    fixture->bench.fault = 7;
    fixture->bench.fault_size = NAN;
    assert_int_equal(run(fixture, x, y, 37, NULL), STATUS_CHECK_FAILED);
    assert_int_equal(fixture->output.failed, 1);
    assert_int_equal(fixture->output.worst_index, 7);
    free(x);
    free(y);
}

static void test_stray(void **state) {
    Fixture *fixture = *state;
    static const int64_t places[] = {-1, -64, 5 * COLUMNS, 5 * COLUMNS + 64};
    if (RT_ADDRESS_SANITIZER) skip();
    float *x = numbers(fixture, 5 * COLUMNS), *y = numbers(fixture, 5 * COLUMNS);
    for (size_t i = 0; i < 4; i++) {
        fixture->bench.stray = places[i];
        assert_int_equal(run(fixture, x, y, 5, NULL), STATUS_CHECK_FAILED);
        assert_string_equal(fixture->report.why.bytes,
                            places[i] < 0 ? "memory before y was written" : "memory behind y was written");
    }
    free(x);
    free(y);
}

static void test_in_place(void **state) {
    Fixture *fixture = *state;
    float *x = numbers(fixture, 37 * COLUMNS);
    assert_int_equal(run(fixture, x, x, 37, NULL), STATUS_OK); /* the oracle reads x as it was */
    assert_ptr_equal(fixture->bench.seen_x, fixture->bench.seen_y);
    assert_int_equal(fixture->bench.allocated, 1);
    assert_int_equal(run(fixture, x, x + 1, 37, NULL), STATUS_USAGE);
    assert_non_null(strstr(fixture->report.why.bytes, "inplace input"));
    free(x);
}

static void test_alignment(void **state) {
    Fixture *fixture = *state;
    float *x = numbers(fixture, 5 * COLUMNS), *y = numbers(fixture, 5 * COLUMNS);
    for (int shift = 0; shift < 64; shift++) {
        assert_int_equal(run(fixture, x + shift, y + (63 - shift), 5, NULL), STATUS_OK);
        assert_int_equal((uintptr_t)fixture->bench.seen_x % 256, (uintptr_t)(x + shift) % 256);
        assert_int_equal((uintptr_t)fixture->bench.seen_y % 256, (uintptr_t)(y + (63 - shift)) % 256);
    }
    free(x);
    free(y);
}

static void test_padding(void **state) {
    Fixture *fixture = *state;
    build(fixture, 11);
    float *x = numbers(fixture, 37 * 11), *y = numbers(fixture, 37 * 11), *before = numbers(fixture, 37 * 11);
    memcpy(before, y, (37 * 11 + 64) * sizeof *y);
    assert_int_equal(run(fixture, x, y, 37, NULL), STATUS_OK);
    float packed[37 * COLUMNS];
    for (int i = 0; i < 37 * 11 + 64; i++) {
        const bool element = i % 11 < COLUMNS && i < 37 * 11;
        if (element) packed[i / 11 * COLUMNS + i % 11] = y[i];
        if (!element) assert_memory_equal(&y[i], &before[i], sizeof *y);
    }
    assert_true(fixture->output.hash == XXH3_64bits(packed, sizeof packed));
    free(x);
    free(y);
    free(before);
}

static void test_sampled(void **state) {
    Fixture *fixture = *state;
    const int64_t rows = ((int64_t)1 << 21) + 1; /* of 8: just beyond 2^24 elements */
    float *x = calloc((size_t)rows * COLUMNS, sizeof *x), *y = calloc((size_t)rows * COLUMNS, sizeof *y);
    assert_int_equal(run(fixture, x, y, rows, NULL), STATUS_OK);
    assert_int_equal(fixture->report.sampled, 1);
    assert_int_equal(fixture->output.checked, 256 * COLUMNS);
    fixture->bench.fault_everywhere = true;
    assert_int_equal(run(fixture, x, y, rows, NULL), STATUS_CHECK_FAILED);
    assert_int_equal(fixture->output.failed, 256 * COLUMNS);
    free(x);
    free(y);
}

static void test_no_memory(void **state) {
    Fixture *fixture = *state;
    float *x = numbers(fixture, COLUMNS), *y = numbers(fixture, COLUMNS);
    Status status = STATUS_SYSTEM;
    uint64_t n = 0;
    while (status) {
        FailAlloc failing = {.fail_at = ++n};
        const Allocator allocator = fail_allocator(&failing);
        status = run(fixture, x, y, 1, &allocator);
        assert_true(status == STATUS_OK || status == STATUS_SYSTEM);
        assert_int_equal(failing.live, 0);
        assert_int_equal(fixture->bench.allocated, fixture->bench.released);
        assert_true(n < 10000);
    }
    print_message("# a run fails at each of its first %llu allocations without a leak\n", (unsigned long long)n - 1);
    free(x);
    free(y);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_report, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fault, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nan_fault, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stray, setup, teardown),
        cmocka_unit_test_setup_teardown(test_in_place, setup, teardown),
        cmocka_unit_test_setup_teardown(test_alignment, setup, teardown),
        cmocka_unit_test_setup_teardown(test_padding, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sampled, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_memory, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
