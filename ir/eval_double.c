/* The evaluators' element arithmetic in double: 53 bits for what kernels compute in f32. */
#define REAL double
#define REFERENCE reference
#define COMBINE combine
#define AT at_double
#define EPSILON 0x1p-53
#define WIDE 0
#define REAL_OPS ir_real_double
#include "ir/eval_real.h"
