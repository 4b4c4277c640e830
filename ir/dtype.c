/* In: element types and stored bits. Out: their facts, and exact conversion to and from double and int64_t. Left alone:
 * errors; every input has an answer. Rounding assumes the processor's default mode, to nearest with ties to even. */
#include "ir/dtype.h"

#include <math.h>
#include <string.h>

static const DTypeRow rows[DTYPE_COUNT] = {
#define DTYPE(id, name, torch, kind, bytes, significand, least, largest)                                               \
    {name, torch, kind, bytes, significand, least, largest},
#include "ir/dtype.def"
#undef DTYPE
};

const DTypeRow *ir_dtype(DType dtype) { return &rows[dtype]; }

bool ir_dtype_holds(DType stored, DType dtype) {
    const DTypeRow *to = ir_dtype(stored), *from = ir_dtype(dtype);
    return to->significand >= from->significand && to->max_finite >= from->max_finite &&
           to->min_exponent <= from->min_exponent;
}

static bool spells(const char *name, const char *bytes, size_t count) {
    return strlen(name) == count && !memcmp(name, bytes, count);
}

bool ir_dtype_find(const char *name, size_t count, DType *dtype) {
    for (unsigned i = 0; i < DTYPE_COUNT; i++) {
        if (!spells(rows[i].name, name, count) && !spells(rows[i].torch_name, name, count)) continue;
        *dtype = (DType)i;
        return true;
    }
    return false;
}

DType ir_compute_dtype(DType dtype) {
    if (dtype == DTYPE_F64) return DTYPE_F64;
    if (rows[dtype].kind == KIND_FLOAT) return DTYPE_F32;
    return rows[dtype].kind == KIND_INT ? DTYPE_I64 : DTYPE_BOOL;
}

DType ir_promote(DType a, DType b) {
    static const DType order[] = {DTYPE_F64, DTYPE_F32, DTYPE_I64};
    DType x = ir_compute_dtype(a), y = ir_compute_dtype(b);
    for (unsigned i = 0; i < sizeof order / sizeof *order; i++) {
        if (x == order[i] || y == order[i]) return order[i];
    }
    return DTYPE_BOOL;
}

static uint64_t double_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double bits_double(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* 2^exponent for normal doubles. */
static double power_of_two(int exponent) { return bits_double((uint64_t)(exponent + 1023) << 52); }

/* floor(log2|value|) of a finite, nonzero value; of double's subnormals -1023, which every dtype clamps. */
static int exponent_of(double value) { return (int)(double_bits(value) >> 52 & 0x7ff) - 1023; }

/* To `significand` bits with no limit above. Normals by an integer add to the bits, subnormals by adding and taking
 * away a number whose last place is theirs. */
static double round_significand(double value, int significand, int min_exponent) {
    if (exponent_of(value) < min_exponent) {
        double shift = 1.5 * power_of_two(min_exponent - significand + 1 + 52);
        volatile double sum = fabs(value) + shift;
        return copysign(sum - shift, value);
    }
    unsigned dropped = 53u - (unsigned)significand;
    uint64_t bits = double_bits(value);
    bits += ((uint64_t)1 << (dropped - 1)) - 1 + (bits >> dropped & 1);
    return bits_double(bits >> dropped << dropped);
}

double ir_round(DType dtype, double value) {
    const DTypeRow *row = &rows[dtype];
    if (dtype == DTYPE_F64 || isnan(value)) return value;
    if (dtype == DTYPE_F32) return (double)(float)value;
    double rounded = isinf(value) ? value : round_significand(value, row->significand, row->min_exponent);
    if (fabs(rounded) <= row->max_finite) return rounded;
    return copysign(row->bytes == 1 ? row->max_finite : (double)INFINITY, value);
}

double ir_ulp(DType dtype, double value) {
    const DTypeRow *row = &rows[dtype];
    double size = fabs(value);
    if (!(size <= row->max_finite)) size = row->max_finite; /* inf, NaN */
    int exponent = size == 0 ? row->min_exponent : exponent_of(size);
    if (exponent < row->min_exponent) exponent = row->min_exponent;
    exponent -= row->significand - 1;
    return exponent >= -1022 ? power_of_two(exponent) : ldexp(1.0, exponent);
}

int64_t ir_float_to_int(DType dtype, double value) {
    if (dtype == DTYPE_BOOL) return value != 0;
    if (isnan(value)) return 0;
    bool is_unsigned = dtype == DTYPE_U8;
    int bits = rows[dtype].bytes * 8;
    double above = power_of_two(is_unsigned ? bits : bits - 1); /* first value past the range */
    double whole = trunc(value);
    if (whole >= above) return is_unsigned ? 255 : (int64_t)(((uint64_t)1 << (bits - 1)) - 1);
    if (whole < (is_unsigned ? 0 : -above)) return is_unsigned ? 0 : (int64_t)(~(uint64_t)0 << (bits - 1));
    return (int64_t)whole;
}

int64_t ir_wrap_int(DType dtype, int64_t value) {
    switch (dtype) {
    case DTYPE_BOOL: return value != 0;
    case DTYPE_U8: return (int64_t)((uint64_t)value & 0xff);
    case DTYPE_I8: return (int64_t)(((uint64_t)value & 0xff) ^ 0x80) - 0x80;
    case DTYPE_I32: return (int64_t)(((uint64_t)value & 0xffffffffu) ^ 0x80000000u) - (int64_t)0x80000000;
    default: return value;
    }
}

/* ---- stored bits ---- */

/* Fields of a float of at most 16 bits: fraction below exponent below sign. */
typedef struct Fields {
    unsigned fraction_bits, exponent_mask, bias, nan;
} Fields;

static Fields fields_of(DType dtype) {
    const DTypeRow *row = &rows[dtype];
    unsigned fraction = row->significand - 1u, bits = row->bytes * 8u;
    unsigned mask = (1u << (bits - 1 - fraction)) - 1;
    unsigned nan = mask << fraction | (dtype == DTYPE_F8E4M3 ? 7u : 1u << (fraction - 1));
    return (Fields){fraction, mask, (unsigned)(1 - row->min_exponent), nan};
}

static double decode(DType dtype, unsigned bits) {
    Fields fields = fields_of(dtype);
    unsigned sign = bits >> (rows[dtype].bytes * 8 - 1);
    unsigned fraction = bits & ((1u << fields.fraction_bits) - 1);
    unsigned exponent = bits >> fields.fraction_bits & fields.exponent_mask;
    double value;
    if (dtype == DTYPE_F8E4M3 && (bits & 0x7f) == 0x7f) {
        value = (double)NAN;
    } else if (dtype != DTYPE_F8E4M3 && exponent == fields.exponent_mask) {
        value = fraction ? (double)NAN : (double)INFINITY;
    } else {
        unsigned lead = exponent ? 1u << fields.fraction_bits : 0;
        int scale = (int)(exponent ? exponent : 1) - (int)fields.bias - (int)fields.fraction_bits;
        value = (double)(fraction | lead) * power_of_two(scale);
    }
    return sign ? -value : value;
}

static unsigned encode(DType dtype, double value) {
    Fields fields = fields_of(dtype);
    unsigned sign = (signbit(value) ? 1u : 0u) << (rows[dtype].bytes * 8 - 1);
    if (isnan(value)) return sign | fields.nan;
    double rounded = fabs(ir_round(dtype, value));
    if (isinf(rounded)) return sign | fields.exponent_mask << fields.fraction_bits;
    int exponent = rounded == 0 ? rows[dtype].min_exponent : exponent_of(rounded);
    if (exponent < rows[dtype].min_exponent) exponent = rows[dtype].min_exponent;
    unsigned significand = (unsigned)(rounded * power_of_two((int)fields.fraction_bits - exponent));
    if (!(significand >> fields.fraction_bits)) return sign | significand; /* subnormal */
    unsigned fraction = significand & ((1u << fields.fraction_bits) - 1);
    return sign | (unsigned)(exponent + (int)fields.bias) << fields.fraction_bits | fraction;
}

double ir_load_float(DType dtype, const void *element) {
    if (dtype == DTYPE_F64) {
        double value;
        memcpy(&value, element, sizeof value);
        return value;
    }
    if (dtype == DTYPE_F32) {
        float value;
        memcpy(&value, element, sizeof value);
        return (double)value;
    }
    if (rows[dtype].bytes == 1) return decode(dtype, *(const uint8_t *)element);
    uint16_t bits;
    memcpy(&bits, element, sizeof bits);
    if (dtype != DTYPE_BF16) return decode(dtype, bits);
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return (double)value;
}

void ir_store_float(DType dtype, void *element, double value) {
    if (dtype == DTYPE_F64) {
        memcpy(element, &value, sizeof value);
    } else if (dtype == DTYPE_F32) {
        float narrow = (float)value;
        memcpy(element, &narrow, sizeof narrow);
    } else if (rows[dtype].bytes == 1) {
        *(uint8_t *)element = (uint8_t)encode(dtype, value);
    } else {
        uint16_t bits = (uint16_t)encode(dtype, value);
        memcpy(element, &bits, sizeof bits);
    }
}

int64_t ir_load_int(DType dtype, const void *element) {
    int64_t value = 0;
    memcpy(&value, element, rows[dtype].bytes); /* little endian: the low bytes come first */
    return ir_wrap_int(dtype, value);
}

void ir_store_int(DType dtype, void *element, int64_t value) {
    value = ir_wrap_int(dtype, value);
    memcpy(element, &value, rows[dtype].bytes);
}
