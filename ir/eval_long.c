/* The evaluators' element arithmetic in long double: 64 bits for what kernels compute in f64. */
#define REAL long double
#define REFERENCE reference_long
#define COMBINE combine_long
#define AT at_long
#define EPSILON 0x1p-64L
#define WIDE 1
#define REAL_OPS ir_real_long
#include "ir/eval_real.h"
