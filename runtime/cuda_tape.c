/* Work played again and again on a GPU, and timed there. In: a function that enqueues. Out: a CUDA graph of what it
 * enqueued, and the times between events around its launches. Left alone: the caller's streams; all that is taken here
 * is given back before a message is made, since that may leave the job. */
#include "runtime/cuda_device.h"

#include <stdlib.h>

struct RtTape {
    CuGraphExec exec;
};

/* Ends the capture whatever became of it: a stream that stays in capture could not be destroyed. */
static CuResult capture(const CudaDriver *driver, CuStream stream, RtEnqueue enqueue, void *state, CuGraph *graph,
                        Status *status, const char **call) {
    *call = "cuStreamBeginCapture_v2";
    CuResult result = driver->capture_begin(stream, CU_CAPTURE_THREAD_LOCAL);
    if (result) return result;
    *status = enqueue(state, stream);
    *call = "cuStreamEndCapture";
    return driver->capture_end(stream, graph);
}

static CuResult make_graph(const CudaDriver *driver, RtEnqueue enqueue, void *state, CuGraphExec *exec, Status *status,
                           const char **call) {
    CuStream stream;
    CuGraph graph = NULL;
    *call = "cuStreamCreate";
    CuResult result = driver->stream_create(&stream, CU_STREAM_NON_BLOCKING);
    if (result) return result;
    result = capture(driver, stream, enqueue, state, &graph, status, call);
    if (!result && !*status) {
        *call = "cuGraphInstantiateWithFlags";
        result = driver->graph_instantiate(exec, graph, 0);
    }
    if (graph) driver->graph_destroy(graph);
    driver->stream_destroy(stream);
    return result;
}

Status rt_cuda_record(RtDevice *device, RtEnqueue enqueue, void *state, RtTape **tape, Text *why) {
    CuResult result;
    const char *call;
    Status status = STATUS_OK;
    *tape = NULL;
    RtTape *made = calloc(1, sizeof *made);
    if (!made) return STATUS_SYSTEM;
    CudaDevice *cuda = rt_cuda_enter(device, &result);
    if (result) {
        free(made);
        return rt_cuda_fail(&cuda->driver, why, "cuCtxPushCurrent_v2", result);
    }
    result = make_graph(&cuda->driver, enqueue, state, &made->exec, &status, &call);
    rt_cuda_leave(cuda);
    if (!result && !status) {
        *tape = made;
        return STATUS_OK;
    }
    free(made);
    if (!status) return rt_cuda_fail(&cuda->driver, why, call, result);
    rt_say(why, "a launch was refused while it was captured");
    return status;
}

void rt_cuda_tape_free(RtDevice *device, RtTape *tape) {
    CuResult result;
    if (!tape) return;
    CudaDevice *cuda = rt_cuda_enter(device, &result);
    if (!result) {
        cuda->driver.exec_destroy(tape->exec);
        rt_cuda_leave(cuda);
    }
    free(tape);
}

/* Everything is enqueued before the first tape ends, so that none waits for the host: the event between two of them is
 * the end of one and the start of the next. */
static CuResult enqueue_all(const CudaDriver *driver, CuStream stream, RtTape *const *tapes, uint32_t count,
                            CuEvent *events, const char **call) {
    CuResult result = 0;
    *call = "cuEventCreate";
    for (uint32_t i = 0; !result && i <= count; i++) result = driver->event_create(&events[i], 0);
    if (result) return result;
    *call = "cuEventRecord";
    result = driver->event_record(events[0], stream);
    for (uint32_t i = 0; !result && i < count; i++) {
        *call = "cuGraphLaunch";
        result = driver->graph_launch(tapes[i]->exec, stream);
        if (result) break;
        *call = "cuEventRecord";
        result = driver->event_record(events[i + 1], stream);
    }
    return result;
}

static CuResult play(const CudaDriver *driver, RtTape *const *tapes, uint32_t count, CuEvent *events, double *seconds,
                     const char **call) {
    CuStream stream;
    *call = "cuStreamCreate";
    CuResult result = driver->stream_create(&stream, CU_STREAM_NON_BLOCKING);
    if (result) return result;
    result = enqueue_all(driver, stream, tapes, count, events, call);
    const CuResult waited = driver->stream_synchronize(stream); /* a tape must not be freed while it plays */
    if (!result && waited) *call = "cuStreamSynchronize", result = waited;
    for (uint32_t i = 0; !result && i < count; i++) {
        float milliseconds = 0;
        *call = "cuEventElapsedTime";
        result = driver->event_milliseconds(&milliseconds, events[i], events[i + 1]);
        seconds[i] = (double)milliseconds * 1e-3;
    }
    for (uint32_t i = 0; i <= count; i++)
        if (events[i]) driver->event_destroy(events[i]);
    driver->stream_destroy(stream);
    return result;
}

Status rt_cuda_play(RtDevice *device, RtTape *const *tapes, uint32_t count, double *seconds, Text *why) {
    CuResult result;
    const char *call = "cuCtxPushCurrent_v2";
    CuEvent *events = calloc(count + (size_t)1, sizeof *events);
    if (!events) return STATUS_SYSTEM;
    CudaDevice *cuda = rt_cuda_enter(device, &result);
    if (!result) {
        result = play(&cuda->driver, tapes, count, events, seconds, &call);
        rt_cuda_leave(cuda);
    }
    free(events);
    return rt_cuda_fail(&cuda->driver, why, call, result);
}
