/* The driver that only counts (tests/fake/cuda.c), built and loaded: from then on it is what normgen finds. */
#ifndef TESTS_SUPPORT_FAKE_CUDA_H
#define TESTS_SUPPORT_FAKE_CUDA_H

#include "tests/fake/cuda.h"

/* With a compiler that only tells kernels apart where NVRTC is missing (nvrtc.h). NULL: no C compiler here. */
FakeCuda *fake_cuda_load(void);
/* What lives of all that the driver gives out. */
int fake_cuda_live(const FakeCuda *fake);

#endif
