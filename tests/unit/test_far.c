/* Offsets beyond 2^31 elements, on the host device or a GPU.
 *
 *   build/tests/test_far [--device=host|cuda]
 *
 * Sparse cases have few elements that lie far apart: they run on either device (on the host in memory of which only
 * what is touched exists) and are compared with the oracle. Dense ones hold more than 2^31 elements: a GPU's alone.
 * Their elements repeat small whole numbers with a period, so that sums are exact in any order, and a sample of them is
 * computed here. NORMGEN_SEED repeats the data. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/host_sanitize.h"
#include "tests/support/device_case.h"
#include "tests/support/random_graph.h"

enum { MAX_ANY = 4, MAX_TENSORS = 6 };
#define FAR ((int64_t)1 << 30)

typedef struct Case {
    const char *name;
    const char *graph; /* from dims: on; L is the far stride; ' stands for " */
    const char *sets;
    int64_t any[MAX_ANY];
} Case;

static const Case sparse[] = {
    {"row_registers",
     "{M: any, L: any, N: 1000}\ninputs: {x: {dtype: bf16, shape: [M, N], strides: [L, 1]}, w: 'f32[N]'}\n"
     "nodes: {y: 'layer_norm(x, w)'}\noutputs: {y: {dtype: bf16, strides: [L, 1]}}",
     NULL,
     {5, FAR + 8}},
    {"row_loop",
     "{M: any, L: any, N: any}\ninputs: {x: {dtype: f16, shape: [M, N], strides: [L, 1]}}\n"
     "nodes: {y: 'softmax(x, -1)'}\noutputs: {y: {dtype: f32, strides: [L, 1]}}",
     NULL,
     {3, FAR + 5, 1100}},
    {"row_split",
     "{M: any, L: any, N: 9000}\ninputs: {x: {dtype: bf16, shape: [M, N], strides: [L, 1]}}\n"
     "nodes: {y: 'rms_norm(x, eps=1e-5)', s: 'amax(x, -1)'}\noutputs: {y: {dtype: bf16, strides: [L, 1]}, s: f32}",
     "split=all",
     {4, FAR + 8}},
    {"column",
     "{M: any, L: any, N: 40}\ninputs: {x: {dtype: bf16, shape: [M, N], strides: [L, 1]}}\n"
     "nodes: {y: 'sum(x, 0)', m: 'amin(x, 0)'}\noutputs: {y: f32, m: bf16}",
     NULL,
     {9, FAR + 8}},
    {"column_far_columns",
     "{M: any, L: any, N: 5}\ninputs: {x: {dtype: i8, shape: [N, M], strides: [L, 1]}}\n"
     "nodes: {y: 'sum(x, 0)', z: 'sum(x, 1)'}\noutputs: {y: i32, z: {dtype: i64, strides: [L]}}",
     NULL,
     {70, FAR / 2 + 1}},
    {"middle",
     "{M: any, L: any}\ninputs: {x: {dtype: f16, shape: [M, 7, 40], strides: [L, 40, 1]}}\n"
     "nodes: {y: 'softmax(x, 1)'}\noutputs: {y: {dtype: f16, inplace: x}}",
     NULL,
     {3, FAR + 8}},
    {"middle_far",
     "{M: any, L: any}\ninputs: {x: {dtype: f16, shape: [M, 4, 40], strides: [40, L, 1]}}\n"
     "nodes: {y: 'log_softmax(x, 1)'}\noutputs: {y: {dtype: f32, strides: [40, L, 1]}}",
     NULL,
     {3, FAR + 8}},
    {"mixed",
     "{M: any, L: any}\ninputs: {x: {dtype: f16, shape: [M, 5, 24], strides: [24, L, 1]}}\n"
     "nodes: {y: 'sum(x, [0, 2])', z: 'mean(x, [0, 1])'}\noutputs: {y: f32, z: f32}",
     NULL,
     {6, FAR + 8}},
    {"gather",
     "{M: any, L: any, V: any, N: 72}\n"
     "inputs: {t: {dtype: bf16, shape: [V, N], strides: [L, 1]}, i: 'i64[M]', s: 'f32[M]'}\n"
     "nodes: {y: 'rms_norm(t[i], eps=1e-5)', c: 'sum(t[i] * s[:, None], 0)'}\noutputs: {y: bf16, c: f32}",
     NULL,
     {20, FAR + 8, 5}},
    {"row_far_columns",
     "{M: any, N: 5}\ninputs: {x: {dtype: bf16, shape: [M, N], strides: [1, 1073741874]}, z: 'f32[M, N]'}\n"
     "nodes: {y: 'softmax(x + z, -1)'}\noutputs: {y: f32}",
     NULL,
     {50}},
    {"pointwise",
     "{M: any, L: any, N: 33}\ninputs: {x: {dtype: u8, shape: [M, N], strides: [1, L]}, z: {dtype: bf16, shape: [M, "
     "N], "
     "strides: [L, 1]}}\n"
     "nodes: {y: 'x * z'}\noutputs: {y: f32}",
     NULL,
     {3, FAR / 4 + 8}},
    {"pointwise_from_below", /* the place of what is read lies below 2^31, its end beyond */
     "{}\ninputs: {x: {dtype: u8, shape: [2, 3000], strides: [2147483000, 1]}}\n"
     "nodes: {y: 'x[1] + 1'}\noutputs: {y: u8}",
     NULL,
     {0}},
    {"column_from_below",
     "{}\ninputs: {x: {dtype: u8, shape: [2, 3, 3000], strides: [2147477000, 3000, 1]}}\n"
     "nodes: {y: 'sum(x[1], 0)'}\noutputs: {y: i64}",
     NULL,
     {0}},
};

typedef struct Dense {
    const char *name, *graph;
    const char *sets;
    int64_t any[MAX_ANY];
    int64_t outer, middle, inner; /* x is [outer, middle, inner], summed over the middle */
} Dense;

#define DENSE_COLUMNS(type, result)                                                                                    \
    "{M: any}\ninputs: {x: '" type "[M, 512]'}\nnodes: {y: 'sum(x, 0)'}\noutputs: {y: " result "}"
#define DENSE_ROWS(n) "{M: any, N: " n "}\ninputs: {x: 'i8[M, N]'}\nnodes: {y: 'sum(x, -1)'}\noutputs: {y: i64}"

static const Dense dense[] = {
    {"dense_column", DENSE_COLUMNS("bf16", "f32"), NULL, {4194305}, 1, 4194305, 512},
    {"dense_column_of_integers", DENSE_COLUMNS("i8", "i64"), NULL, {4194309}, 1, 4194309, 512},
    {"dense_row_split", DENSE_ROWS("any"), "split=all", {2, ((int64_t)1 << 31) + 5}, 2, ((int64_t)1 << 31) + 5, 1},
    {"dense_row_loop", DENSE_ROWS("any"), "split=off", {2, ((int64_t)1 << 31) + 5}, 2, ((int64_t)1 << 31) + 5, 1},
    {"dense_row_below", DENSE_ROWS("1073741816"), NULL, {3}, 3, 1073741816, 1},
    {"dense_row_from", DENSE_ROWS("1073741824"), NULL, {3}, 3, 1073741824, 1},
    {"dense_middle",
     "{M: any, N: any}\ninputs: {x: 'i8[M, N, 512]'}\nnodes: {y: 'sum(x, 1)'}\noutputs: {y: i64}",
     NULL,
     {3, 1400007},
     3,
     1400007,
     512},
    /* a comparison that always holds keeps the two axes apart: the kernel multiplies their extents */
    {"dense_row_of_two_axes",
     "{A: 32769, C: 65536}\ninputs: {x: 'i8[A, C]'}\n"
     "nodes: {y: 'sum(x * cast(arange(C) >= 0, i64))'}\noutputs: {y: i64}",
     NULL,
     {0},
     1,
     ((int64_t)1 << 31) + 65536,
     1},
    {"dense_column_of_two_axes",
     "{A: 32769, C: 65536}\ninputs: {x: 'i8[A, C, 2]'}\n"
     "nodes: {y: 'sum(x * cast(arange(C)[:, None] >= 0, i64), dim=[0, 1])'}\noutputs: {y: i64}",
     NULL,
     {0},
     1,
     ((int64_t)1 << 31) + 65536,
     2},
};
enum { SPARSE = sizeof sparse / sizeof *sparse, DENSE = sizeof dense / sizeof *dense };

static DeviceCase *open_case(Job *job, const char *name, const char *graph, const char *sets) {
    char *text = ir_format(job, "graph: %s\ndims: %s\n", name, graph);
    for (char *c = text; *c; c++)
        if (*c == '\'') *c = '"';
    DeviceCase *made = device_case_create(text, sets);
    if (made->status) printf("FAILED %s: %s\n", name, ir_job_report(made->job));
    return made;
}

/* ---- memory ---- */

typedef struct Launch {
    Job *job;
    RtDevice *device;
    const DeviceCase *of;
    const int64_t *any;
    RtScratch scratch;
    char *block[MAX_TENSORS];
    char *mapped[MAX_TENSORS]; /* the host's memory */
    size_t mapped_bytes[MAX_TENSORS];
    void *workspace;
    Text why;
} Launch;

static Status open_block(Launch *launch, bool cuda, uint32_t t) {
    size_t bytes = (size_t)launch->scratch.spans[t].high;
    const size_t before = (size_t)FAR * 16; /* where offsets lead that lost their upper half */
    if (cuda) return launch->device->ops->alloc(launch->device, bytes, (void **)&launch->block[t], &launch->why);
    void *memory =
        mmap(NULL, bytes + before, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        ir_text_format(&launch->why, "no address space of %zu bytes", bytes);
        return STATUS_SYSTEM;
    }
    launch->mapped[t] = memory;
    launch->mapped_bytes[t] = bytes + before;
    launch->block[t] = launch->mapped[t] + before;
    return STATUS_OK;
}

static Status open_launch(Launch *launch, Job *job, DeviceCase *of, const int64_t *any, const Devices *devices,
                          uint32_t device) {
    const RtProgram *program = of->program;
    *launch = (Launch){.job = job, .device = devices->at[device], .of = of, .any = any, .why = ir_text(job)};
    int64_t *words = IR_NEW_ARRAY(job, int64_t, program->scratch_words + 1);
    Status status = rt_program_load(of->program, launch->device, of->module, &launch->why);
    if (!status) status = rt_program_sizes(program, any, words, &launch->scratch, &launch->why);
    for (uint32_t t = 0; t < program->tensor_count && !status; t++)
        if (program->tensors[t].inplace == IR_NONE) status = open_block(launch, devices->cuda, t);
    for (uint32_t t = 0; t < program->tensor_count && !status; t++)
        if (program->tensors[t].inplace != IR_NONE) launch->block[t] = launch->block[program->tensors[t].inplace];
    if (!status && launch->scratch.workspace_bytes)
        status = launch->device->ops->alloc(launch->device, (size_t)launch->scratch.workspace_bytes, &launch->workspace,
                                            &launch->why);
    return status;
}

static void close_launch(Launch *launch) {
    const RtProgram *program = launch->of->program;
    for (uint32_t t = 0; t < program->tensor_count; t++) {
        if (!launch->block[t] || program->tensors[t].inplace != IR_NONE) continue;
        if (launch->mapped[t])
            munmap(launch->mapped[t], launch->mapped_bytes[t]);
        else
            launch->device->ops->release(launch->device, launch->block[t]);
    }
    if (launch->workspace) launch->device->ops->release(launch->device, launch->workspace);
}

static Status run(Launch *launch) {
    int64_t *words = IR_NEW_ARRAY(launch->job, int64_t, launch->of->program->scratch_words + 1);
    ng_args args = {.size = sizeof args,
                    .tensors = (void *const *)launch->block,
                    .dims = launch->any,
                    .workspace = launch->workspace,
                    .workspace_bytes = (size_t)launch->scratch.workspace_bytes};
    Status status = rt_program_launch(launch->of->program, &args, words, &launch->why, NULL, NULL);
    return status ? status : launch->device->ops->synchronize(launch->device, &launch->why);
}

/* Between a tensor and its elements in row-major order. */
static Status copy_elements(Launch *launch, uint32_t t, char *elements, bool in) {
    const RtSpan *span = &launch->scratch.spans[t];
    const RtProgram *program = launch->of->program;
    const uint32_t rank = program->tensors[t].tensor->shape.rank;
    const int64_t each = program->tensors[t].element_bytes;
    int64_t run = rank && span->stride[rank - 1] == 1 ? span->extent[rank - 1] : 1;
    Status status = STATUS_OK;
    for (int64_t i = 0; i < span->count && !status; i += run) {
        char *there = launch->block[t] + launch_offset(program, &launch->scratch, t, i), *here = elements + i * each;
        status = in ? launch->device->ops->copy_in(launch->device, there, here, (size_t)(run * each), &launch->why)
                    : launch->device->ops->copy_out(launch->device, here, there, (size_t)(run * each), &launch->why);
    }
    return status;
}

/* ---- sparse ---- */

/* A tensor's elements as the oracle takes them. */
static View compact_view(Launch *launch, uint32_t t, char *elements) {
    const RtSpan *span = &launch->scratch.spans[t];
    const Tensor *tensor = launch->of->program->tensors[t].tensor;
    View view = {.bytes = elements, .rank = tensor->shape.rank, .dtype = tensor->dtype};
    int64_t stride = 1;
    memcpy(view.extent, span->extent, sizeof view.extent);
    for (uint32_t d = view.rank; d-- > 0; stride *= span->extent[d]) view.stride[d] = stride;
    return view;
}

static bool passes(DType dtype, const char *element, const Expected *expected, uint64_t i) {
    if (ir_dtype(dtype)->kind == KIND_FLOAT)
        return ir_element_passes(dtype, ir_load_float(dtype, element), expected->number[i], expected->bound[i]);
    return ir_load_int(dtype, element) == expected->integer[i];
}

static Status compare(Launch *launch, const View *inputs, uint64_t *compared) {
    const RtProgram *program = launch->of->program;
    EvalInput input = {.dims = launch->scratch.graph_dims, .inputs = (View *)inputs};
    input.depth = gen_depths(launch->job, &launch->of->unit, launch->scratch.prog_dims, launch->scratch.parts);
    for (uint32_t o = 0; o < program->graph->outputs.count; o++) {
        const uint32_t t = program->input_count + o;
        const size_t each = (size_t)program->tensors[t].element_bytes;
        const DType dtype = program->tensors[t].tensor->dtype;
        Expected expected = ir_eval_graph(launch->job, program->graph, &input, o, NULL);
        char *elements = ir_alloc(launch->job, expected.count * each + 1);
        Status status = copy_elements(launch, t, elements, false);
        if (status) return status;
        for (uint64_t i = 0; i < expected.count; i++, ++*compared) {
            if (passes(dtype, elements + i * each, &expected, i)) continue;
            ir_text_format(&launch->why, "output %s, element %llu is outside its bound",
                           program->graph->outputs.at[o].name, (unsigned long long)i);
            return STATUS_CHECK_FAILED;
        }
    }
    return STATUS_OK;
}

static Status run_sparse(Launch *launch, Random *random, uint64_t *compared) {
    const RtProgram *program = launch->of->program;
    View inputs[MAX_TENSORS];
    Status status = STATUS_OK;
    for (uint32_t t = 0; t < program->input_count && !status; t++) {
        const int64_t count = launch->scratch.spans[t].count;
        const DType dtype = program->tensors[t].tensor->dtype;
        char *elements = ir_alloc(launch->job, (size_t)(count * program->tensors[t].element_bytes) + 1);
        int64_t limit = random_index_limit(program->graph, launch->scratch.graph_dims, t);
        random_fill(random, dtype, elements, count, limit);
        if (limit != INT64_MAX) ir_store_int(dtype, elements, limit - 1); /* the farthest is picked */
        inputs[t] = compact_view(launch, t, elements);
        status = copy_elements(launch, t, elements, true);
    }
    if (!status) status = run(launch);
    return status ? status : compare(launch, inputs, compared);
}

/* ---- dense ---- */

enum { PERIOD = 1000003, BLOCK = 32 /* periods copied at once */, SAMPLE = 16 };

static Status fill_dense(Launch *launch, const int8_t *pattern) {
    const DType dtype = launch->of->program->tensors[0].tensor->dtype;
    const size_t each = ir_dtype(dtype)->bytes, bytes = each * PERIOD * BLOCK;
    const size_t all = (size_t)launch->scratch.spans[0].high;
    char *block = ir_alloc(launch->job, bytes);
    for (size_t i = 0; i < (size_t)PERIOD * BLOCK; i++) {
        if (ir_dtype(dtype)->kind == KIND_FLOAT)
            ir_store_float(dtype, block + i * each, pattern[i % PERIOD]);
        else
            ir_store_int(dtype, block + i * each, pattern[i % PERIOD]);
    }
    Status status = STATUS_OK;
    for (size_t at = 0; at < all && !status; at += bytes)
        status = launch->device->ops->copy_in(launch->device, launch->block[0] + at, block,
                                              all - at < bytes ? all - at : bytes, &launch->why);
    return status;
}

static int64_t sum_dense(const Dense *test, const int8_t *pattern, int64_t index) {
    const int64_t from = index / test->inner * test->middle * test->inner + index % test->inner;
    int64_t sum = 0, at = from % PERIOD, step = test->inner % PERIOD;
    for (int64_t k = 0; k < test->middle; k++) {
        sum += pattern[at];
        at += step;
        if (at >= PERIOD) at -= PERIOD;
    }
    return sum;
}

static Status run_dense(Launch *launch, const Dense *test, Random *random, uint64_t *compared) {
    const int64_t count = test->outer * test->inner;
    const DType dtype = launch->of->program->tensors[1].tensor->dtype;
    const size_t each = ir_dtype(dtype)->bytes;
    int8_t *pattern = ir_alloc(launch->job, PERIOD);
    char *elements = ir_alloc(launch->job, (size_t)count * each);
    for (int i = 0; i < PERIOD; i++) pattern[i] = (int8_t)((int)random_below(random, 7) - 3);
    Status status = fill_dense(launch, pattern);
    if (!status) status = run(launch);
    if (!status) status = copy_elements(launch, 1, elements, false);
    for (int s = 0; s < SAMPLE && s < count && !status; s++, ++*compared) {
        int64_t index = s < 2 ? (count - 1) * s : (int64_t)random_below(random, (uint32_t)count);
        int64_t wanted = sum_dense(test, pattern, index);
        double got = ir_dtype(dtype)->kind == KIND_FLOAT ? ir_load_float(dtype, elements + (size_t)index * each)
                                                         : (double)ir_load_int(dtype, elements + (size_t)index * each);
        if (got == (double)wanted) continue;
        ir_text_format(&launch->why, "element %lld is ", (long long)index);
        ir_text_double(&launch->why, got);
        ir_text_format(&launch->why, ", expected %lld", (long long)wanted);
        status = STATUS_CHECK_FAILED;
    }
    return status;
}

int main(int argc, char **argv) {
    Devices devices;
    if (!devices_open(&devices, argc, argv)) return 3;
    Random random = {random_seed()};
    Job *job = ir_job_create(NULL);
    DeviceCase *made[SPARSE + DENSE];
    uint32_t count = 0, failed = 0;
    uint64_t compared = 0;
    for (; count < SPARSE; count++)
        made[count] = open_case(job, sparse[count].name, sparse[count].graph, sparse[count].sets);
    for (uint32_t d = 0; devices.cuda && d < DENSE; d++)
        made[count++] = open_case(job, dense[d].name, dense[d].graph, dense[d].sets);
    bool built = device_cases_build(made, count, &devices);
    for (uint32_t i = 0; i < count; i++) {
        Job *own = ir_job_create(NULL);
        Launch launch = {.of = made[i]};
        const int64_t *any = i < SPARSE ? sparse[i].any : dense[i - SPARSE].any;
        bool ready = built && !made[i]->status;
        Status status = ready ? open_launch(&launch, own, made[i], any, &devices, i % devices.count) : STATUS_INTERNAL;
        if (!status && i < SPARSE) status = run_sparse(&launch, &random, &compared);
        if (!status && i >= SPARSE) status = run_dense(&launch, &dense[i - SPARSE], &random, &compared);
        if (status && ready)
            printf("FAILED: status %d: %s\n%s\n", (int)status, ir_text_string(&launch.why), made[i]->text);
        failed += status != STATUS_OK;
        if (ready) close_launch(&launch);
        ir_job_free(own);
    }
    printf("# %u programs with offsets beyond 2^31 elements, %llu elements compared, on %s\n", count,
           (unsigned long long)compared, devices.at[0]->ops->name);
    if (!devices.cuda) printf("skipped: %d dense cases hold more than 2^31 elements each and run on a GPU\n", DENSE);
    for (uint32_t i = 0; i < count; i++) device_case_free(made[i], &devices);
    devices_close(&devices);
    ir_job_free(job);
    printf("[  PASSED  ] %u test(s).\n", count - failed);
    if (!devices.cuda) printf("[  SKIPPED ] %d test(s)\n", DENSE);
    if (failed) printf("[  FAILED  ] %u test(s)\n", failed);
    return failed != 0;
}
