/* A program's first launch of all happens under CUDA-graph capture; the graph's replays then give what ng_run gives.
 * Also: the caller's current context and its absence are left as they were. Needs a GPU; skipped without one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda_driver.h"
#include "runtime/normgen.h"

/* X(field, name, parameters): what only this test needs of the driver */
#define CAPTURE_FUNCTIONS(X)                                                                                           \
    X(stream_create, "cuStreamCreate", (CuStream * stream, unsigned flags))                                            \
    X(stream_destroy, "cuStreamDestroy_v2", (CuStream stream))                                                         \
    X(stream_synchronize, "cuStreamSynchronize", (CuStream stream))                                                    \
    X(begin, "cuStreamBeginCapture_v2", (CuStream stream, int mode))                                                   \
    X(end, "cuStreamEndCapture", (CuStream stream, CuGraph * graph))                                                   \
    X(instantiate, "cuGraphInstantiateWithFlags", (CuGraphExec * exec, CuGraph graph, unsigned long long flags))       \
    X(replay, "cuGraphLaunch", (CuGraphExec exec, CuStream stream))                                                    \
    X(exec_destroy, "cuGraphExecDestroy", (CuGraphExec exec))                                                          \
    X(graph_destroy, "cuGraphDestroy", (CuGraph graph))                                                                \
    X(context_current, "cuCtxGetCurrent", (CuContext * context))

typedef struct Capture {
#define FIELD(field, name, parameters) CuResult(*field) parameters;
    CAPTURE_FUNCTIONS(FIELD)
#undef FIELD
} Capture;

static bool find_functions(Capture *capture) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
#define FIND(field, name, parameters) *(void **)&capture->field = dlsym(library, name);
    CAPTURE_FUNCTIONS(FIND)
#undef FIND
    return capture->begin && capture->end && capture->instantiate;
}

enum { ROWS = 1500, MAX_TENSORS = 8 };

typedef struct Tensors { /* inputs, then outputs */
    uint32_t count, inputs;
    size_t bytes[MAX_TENSORS];
    void *host[MAX_TENSORS], *device[MAX_TENSORS];
    void *workspace;
    size_t workspace_bytes;
} Tensors;

static void open_tensor(Tensors *tensors, const ng_program *program, ng_arg_role role, uint32_t index) {
    const uint32_t t = tensors->count++;
    const int64_t rows = ROWS;
    int64_t extents[6], elements = 1;
    ng_arg arg = {.size = sizeof arg};
    assert_int_equal(ng_arg_query(program, role, index, &arg), NG_OK);
    assert_int_equal(ng_arg_shape(program, role, index, &rows, extents, NULL), NG_OK);
    for (int d = 0; d < arg.rank; d++) elements *= extents[d];
    const size_t each = ng_dtype_bytes(arg.dtype);
    tensors->bytes[t] = (size_t)elements * each;
    tensors->host[t] = malloc(tensors->bytes[t]);
    assert_non_null(tensors->host[t]);
    for (int64_t i = 0; role == NG_INPUT && i < elements; i++)
        ng_store(arg.dtype, (char *)tensors->host[t] + (size_t)i * each, (double)(rand() % 2001) / 500 - 2);
}

static void open_tensors(Tensors *tensors, const ng_program *program, const CudaDriver *driver) {
    const int64_t rows = ROWS;
    ng_program_facts facts = {.size = sizeof facts};
    *tensors = (Tensors){0};
    assert_int_equal(ng_program_query(program, &facts), NG_OK);
    for (uint32_t i = 0; i < facts.inputs; i++) open_tensor(tensors, program, NG_INPUT, i);
    tensors->inputs = tensors->count;
    for (uint32_t i = 0; i < facts.outputs; i++) open_tensor(tensors, program, NG_OUTPUT, i);
    assert_int_equal(ng_workspace_bytes(program, &rows, &tensors->workspace_bytes), NG_OK);
    for (uint32_t t = 0; t <= tensors->count; t++) {
        bool last = t == tensors->count; /* the workspace */
        size_t bytes = last ? tensors->workspace_bytes : tensors->bytes[t];
        CuPointer memory;
        if (bytes == 0) continue;
        assert_int_equal(driver->memory_alloc(&memory, bytes), 0);
        memcpy(last ? &tensors->workspace : &tensors->device[t], &memory, sizeof memory);
        if (t < tensors->inputs) assert_int_equal(driver->copy_in(memory, tensors->host[t], bytes), 0);
    }
}

static void close_tensors(Tensors *tensors, const CudaDriver *driver) {
    for (uint32_t t = 0; t < tensors->count; t++) {
        driver->memory_free((CuPointer)(uintptr_t)tensors->device[t]);
        free(tensors->host[t]);
    }
    if (tensors->workspace) driver->memory_free((CuPointer)(uintptr_t)tensors->workspace);
}

/* Replays of what was captured give the bits of ng_run. */
static void compare_with_run(Tensors *tensors, ng_program *program, const CudaDriver *driver) {
    const int64_t rows = ROWS;
    void *again[MAX_TENSORS];
    for (uint32_t t = 0; t < tensors->count; t++) {
        again[t] = t < tensors->inputs ? tensors->host[t] : malloc(tensors->bytes[t]);
        if (t < tensors->inputs) continue;
        CuPointer memory = (CuPointer)(uintptr_t)tensors->device[t];
        assert_int_equal(driver->copy_out(tensors->host[t], memory, tensors->bytes[t]), 0);
    }
    ng_args args = {.size = sizeof args, .tensors = again, .dims = &rows};
    ng_report report = {.size = sizeof report};
    assert_int_equal(ng_run(program, &args, 1, &report), NG_OK);
    for (uint32_t t = tensors->inputs; t < tensors->count; t++) {
        assert_memory_equal(again[t], tensors->host[t], tensors->bytes[t]);
        free(again[t]);
    }
}

static void capture_and_replay(ng_program *program, const Tensors *tensors, const Capture *capture) {
    const int64_t rows = ROWS;
    CuStream stream;
    CuGraph graph;
    CuGraphExec exec;
    ng_args args = {.size = sizeof args,
                    .tensors = tensors->device,
                    .dims = &rows,
                    .workspace = tensors->workspace,
                    .workspace_bytes = tensors->workspace_bytes};
    assert_int_equal(capture->stream_create(&stream, 1 /* non-blocking */), 0);
    args.stream = stream;
    assert_int_equal(capture->begin(stream, 0 /* global: anything unsafe fails */), 0);
    assert_int_equal(ng_launch(program, &args), NG_OK);
    assert_int_equal(capture->end(stream, &graph), 0);
    assert_int_equal(capture->instantiate(&exec, graph, 0), 0);
    for (int i = 0; i < 3; i++) assert_int_equal(capture->replay(exec, stream), 0);
    assert_int_equal(capture->stream_synchronize(stream), 0);
    capture->exec_destroy(exec);
    capture->graph_destroy(graph);
    capture->stream_destroy(stream);
}

static void first_launch_is_captured(const char *text, uint32_t kernels) {
    Job *job = ir_job_create(NULL);
    Text why = ir_text(job);
    CudaDriver driver = {0};
    Capture capture = {0};
    if (rt_cuda_driver(&driver, &why) != STATUS_OK || !find_functions(&capture)) {
        print_message("skipped: no GPU: %s\n", ir_text_string(&why));
        ir_job_free(job);
        skip();
    }
    CuContext before = NULL, current = NULL, after = NULL;
    CuDevice device;
    assert_int_equal(driver.device_get(&device, 0), 0);
    assert_int_equal(capture.context_current(&before), 0);
    assert_null(before);

    ng_context *context = NULL;
    ng_program *program = NULL;
    ng_context_options where = {.size = sizeof where, .device = NG_DEVICE_CUDA};
    ng_program_facts facts = {.size = sizeof facts};
    assert_int_equal(ng_context_create(&where, &context, NULL), NG_OK);
    assert_int_equal(ng_compile(context, text, strlen(text), NULL, &program, NULL), NG_OK);
    assert_int_equal(capture.context_current(&current), 0);
    assert_ptr_equal(current, before); /* none was current, none is left */
    assert_int_equal(ng_program_query(program, &facts), NG_OK);
    assert_true(facts.kernels >= kernels);

    Tensors tensors;
    assert_int_equal(driver.primary_retain(&current, device), 0);
    assert_int_equal(driver.context_push(current), 0);
    open_tensors(&tensors, program, &driver);
    assert_int_equal(kernels > 1, tensors.workspace_bytes > 0);
    capture_and_replay(program, &tensors, &capture);
    compare_with_run(&tensors, program, &driver);
    assert_int_equal(capture.context_current(&after), 0);
    assert_ptr_equal(after, current);

    close_tensors(&tensors, &driver);
    driver.context_pop(&current);
    driver.primary_release(device);
    ng_program_free(program);
    ng_context_free(context);
    ir_job_free(job);
}

static void one_kernel(void **state) {
    (void)state;
    first_launch_is_captured("graph: captured\n"
                             "dims: {M: any, N: 1025}\n"
                             "inputs: {x: \"bf16[M, N]\", gamma: \"f32[N]\", beta: \"f32[N]\"}\n"
                             "nodes: {y: \"layer_norm(x, gamma, beta)\"}\n"
                             "outputs: {y: f32}\n",
                             1);
}

/* Sums in parts and what uses them, with what lies between the kernels in a workspace. */
static void several_kernels(void **state) {
    (void)state;
    first_launch_is_captured("graph: captured\n"
                             "dims: {M: any, N: 96}\n"
                             "inputs: {x: \"bf16[M, N]\", gamma: \"f32[N]\"}\n"
                             "nodes: {m: \"mean(x, dim=0)\", v: \"var(x, dim=0, correction=0)\",\n"
                             "  y: \"(x - m) * rsqrt(v + 1e-5) * gamma\", p: \"softmax(y, dim=-1)\"}\n"
                             "outputs: {y: bf16, m: f32, p: f32}\n",
                             4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_kernel), cmocka_unit_test(several_kernels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
