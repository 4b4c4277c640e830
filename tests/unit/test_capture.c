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

typedef struct CuGraph_ *CuGraph;
typedef struct CuGraphExec_ *CuGraphExec;

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

static const char graph_text[] = "graph: captured\n"
                                 "dims: {M: any, N: 1025}\n"
                                 "inputs: {x: \"bf16[M, N]\", gamma: \"f32[N]\", beta: \"f32[N]\"}\n"
                                 "nodes: {y: \"layer_norm(x, gamma, beta)\"}\n"
                                 "outputs: {y: f32}\n";

enum { ROWS = 37, COLUMNS = 1025, TENSORS = 4 };
static const size_t bytes_of[TENSORS] = {2 * ROWS * COLUMNS, 4 * COLUMNS, 4 * COLUMNS, 4 * ROWS *COLUMNS};

static void fill(void *host[TENSORS]) {
    for (int t = 0; t < TENSORS; t++) {
        host[t] = malloc(bytes_of[t]);
        assert_non_null(host[t]);
    }
    for (int i = 0; i < ROWS * COLUMNS; i++)
        ng_store(NG_BF16, (uint16_t *)host[0] + i, (double)(rand() % 2001) / 500 - 2);
    for (int t = 1; t < 3; t++)
        for (int i = 0; i < COLUMNS; i++) ((float *)host[t])[i] = (float)(rand() % 2001) / 1000 - 1;
}

static void first_launch_is_captured(void **state) {
    (void)state;
    Job *job = ir_job_create(NULL);
    Text why = ir_text(job);
    CudaDriver driver = {0};
    Capture capture = {0};
    if (rt_cuda_driver(&driver, &why) != STATUS_OK || !find_functions(&capture)) {
        print_message("skipped: no GPU: %s\n", ir_text_string(&why));
        ir_job_free(job);
        skip();
    }
    CuContext before = NULL, current = NULL;
    CuDevice device;
    assert_int_equal(driver.device_get(&device, 0), 0);
    assert_int_equal(capture.context_current(&before), 0);
    assert_null(before);

    ng_context *context = NULL;
    ng_program *program = NULL;
    ng_context_options where = {.size = sizeof where, .device = NG_DEVICE_CUDA};
    assert_int_equal(ng_context_create(&where, &context, NULL), NG_OK);
    assert_int_equal(ng_compile(context, graph_text, strlen(graph_text), NULL, &program, NULL), NG_OK);
    assert_int_equal(capture.context_current(&current), 0);
    assert_ptr_equal(current, before); /* none was current, none is left */

    void *host[TENSORS], *tensors[TENSORS];
    fill(host);
    assert_int_equal(driver.primary_retain(&current, device), 0);
    assert_int_equal(driver.context_push(current), 0);
    for (int t = 0; t < TENSORS; t++) {
        CuPointer memory;
        assert_int_equal(driver.memory_alloc(&memory, bytes_of[t]), 0);
        memcpy(&tensors[t], &memory, sizeof memory);
        if (t < 3) assert_int_equal(driver.copy_in(memory, host[t], bytes_of[t]), 0);
    }
    CuStream stream;
    CuGraph graph;
    CuGraphExec exec;
    int64_t rows = ROWS;
    ng_args args = {.size = sizeof args, .tensors = tensors, .dims = &rows};
    assert_int_equal(capture.stream_create(&stream, 1 /* non-blocking */), 0);
    args.stream = stream;
    assert_int_equal(capture.begin(stream, 0 /* global: anything unsafe fails */), 0);
    assert_int_equal(ng_launch(program, &args), NG_OK);
    assert_int_equal(capture.end(stream, &graph), 0);
    assert_int_equal(capture.instantiate(&exec, graph, 0), 0);
    for (int i = 0; i < 3; i++) assert_int_equal(capture.replay(exec, stream), 0);
    assert_int_equal(capture.stream_synchronize(stream), 0);
    assert_int_equal(driver.copy_out(host[3], (CuPointer)(uintptr_t)tensors[3], bytes_of[3]), 0);

    void *again = malloc(bytes_of[3]), *run_tensors[TENSORS] = {host[0], host[1], host[2], again};
    args.tensors = run_tensors;
    args.stream = NULL;
    ng_report report = {.size = sizeof report};
    assert_int_equal(ng_run(program, &args, 1, &report), NG_OK);
    assert_memory_equal(again, host[3], bytes_of[3]);
    CuContext after = NULL;
    assert_int_equal(capture.context_current(&after), 0);
    assert_ptr_equal(after, current);

    capture.exec_destroy(exec);
    capture.graph_destroy(graph);
    capture.stream_destroy(stream);
    for (int t = 0; t < TENSORS; t++) {
        driver.memory_free((CuPointer)(uintptr_t)tensors[t]);
        free(host[t]);
    }
    free(again);
    driver.context_pop(&current);
    driver.primary_release(device);
    ng_program_free(program);
    ng_context_free(context);
    ir_job_free(job);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(first_launch_is_captured)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
