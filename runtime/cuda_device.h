/* Between the files of the cuda device (cuda_device.c, cuda_tape.c). */
#ifndef RUNTIME_CUDA_DEVICE_H
#define RUNTIME_CUDA_DEVICE_H

#include "runtime/cuda_driver.h"
#include "runtime/device.h"

typedef struct CudaDevice {
    RtDevice device; /* first: what the layers above see */
    CudaDriver driver;
    CuDevice handle;
    CuContext context;
    char name[128];
} CudaDevice;

/* Makes the device's context the current one, until rt_cuda_leave, which is only for where *result is 0. */
CudaDevice *rt_cuda_enter(RtDevice *device, CuResult *result);
void rt_cuda_leave(CudaDevice *cuda);
/* The status of a call's result, with words where it failed. */
Status rt_cuda_fail(const CudaDriver *driver, Text *why, const char *call, CuResult result);

Status rt_cuda_record(RtDevice *device, RtEnqueue enqueue, void *state, RtTape **tape, Text *why);
void rt_cuda_tape_free(RtDevice *device, RtTape *tape);
Status rt_cuda_play(RtDevice *device, RtTape *const *tapes, uint32_t count, double *seconds, Text *why);

#endif
