/* Element types: names, sizes, and exact conversion between their stored bits and the numbers that they stand for. */
#ifndef IR_DTYPE_H
#define IR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum DType {
#define DTYPE(id, ...) DTYPE_##id,
#include "ir/dtype.def"
#undef DTYPE
    DTYPE_COUNT
} DType;

typedef enum Kind { KIND_FLOAT, KIND_INT, KIND_BOOL } Kind;

typedef struct DTypeRow {
    const char *name;       /* as normgen prints it */
    const char *torch_name; /* accepted in graph files */
    Kind kind;
    uint8_t bytes;
    uint8_t significand; /* bits, with the hidden one; floats only */
    int16_t min_exponent;
    double max_finite;
} DTypeRow;

const DTypeRow *ir_dtype(DType dtype);
/* Whether a float dtype has every number of another. */
bool ir_dtype_holds(DType stored, DType dtype);
bool ir_dtype_find(const char *name, size_t count, DType *dtype); /* short or PyTorch's name */

/* The dtype in which arithmetic on such values happens: f64 -> f64, other floats -> f32, integers -> i64, bool. */
DType ir_compute_dtype(DType dtype);
/* The compute dtype of an operation on both (f64 over f32 over i64 over bool). */
DType ir_promote(DType a, DType b);

/* Rounds to nearest, ties to even, as a cast or a store to a float dtype does: fp8 saturates, f16/bf16/f32 overflow to
 * inf, NaN stays NaN, subnormals are kept. */
double ir_round(DType dtype, double value);
/* One unit in the last place of the dtype at |value| (of the least subnormal near 0). */
double ir_ulp(DType dtype, double value);
/* As a cast from float to an integer dtype: truncates, saturates, NaN gives 0. */
int64_t ir_float_to_int(DType dtype, double value);
/* As a store of an i64 to a narrower integer dtype: wraps. */
int64_t ir_wrap_int(DType dtype, int64_t value);

/* Stored bits, little endian, unaligned allowed. Floats through double (exact for all, f64 included). */
double ir_load_float(DType dtype, const void *element);
int64_t ir_load_int(DType dtype, const void *element);
void ir_store_float(DType dtype, void *element, double value); /* rounds as ir_round */
void ir_store_int(DType dtype, void *element, int64_t value);  /* wraps as ir_wrap_int; bool: value != 0 */

#endif
