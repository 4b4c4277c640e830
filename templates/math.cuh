// The arithmetic of kernel bodies, one helper an operation and type. Markers as in helpers.cuh. Device bodies are CUDA's
// without fast math; host bodies the C library's.
#pragma once
#include "memory.cuh"

// ---- arithmetic
//@ ng_fma f32
// a * b + c, rounded once.
#if NG_DEVICE
NG_HELPER float ng_fma(float a, float b, float c) { return fmaf(a, b, c); }
#else
NG_HELPER float ng_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#endif
//@ ng_fma f64
#if NG_DEVICE
NG_HELPER double ng_fma(double a, double b, double c) { return fma(a, b, c); }
#else
NG_HELPER double ng_fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
#endif

//@ ng_wrap_add
// Integers wrap.
NG_HELPER ng_i64 ng_wrap_add(ng_i64 a, ng_i64 b) { return (ng_i64)((ng_u64)a + (ng_u64)b); }
//@ ng_wrap_sub
NG_HELPER ng_i64 ng_wrap_sub(ng_i64 a, ng_i64 b) { return (ng_i64)((ng_u64)a - (ng_u64)b); }
//@ ng_wrap_mul
NG_HELPER ng_i64 ng_wrap_mul(ng_i64 a, ng_i64 b) { return (ng_i64)((ng_u64)a * (ng_u64)b); }

//@ ng_isnan f32
NG_HELPER bool ng_isnan(float a) { return a != a; }
//@ ng_isnan f64
NG_HELPER bool ng_isnan(double a) { return a != a; }
//@ ng_isnan i64
NG_HELPER bool ng_isnan(ng_i64) { return false; }
//@ ng_isnan bool
NG_HELPER bool ng_isnan(bool) { return false; }
//@ ng_abs f32
NG_HELPER float ng_abs(float a) { return ng_f32(ng_bits_f32(a) & 0x7fffffff); }
//@ ng_abs f64
NG_HELPER double ng_abs(double a) { return ng_f64(ng_bits_f64(a) & 0x7fffffffffffffffull); }
//@ ng_abs i64
NG_HELPER ng_i64 ng_abs(ng_i64 a) { return a < 0 ? (ng_i64)(0 - (ng_u64)a) : a; }
//@ ng_isinf f32
NG_HELPER bool ng_isinf(float a) { return (ng_bits_f32(a) & 0x7fffffff) == 0x7f800000; }
//@ ng_isinf f64
NG_HELPER bool ng_isinf(double a) { return (ng_bits_f64(a) & 0x7fffffffffffffffull) == 0x7ff0000000000000ull; }
//@ ng_isinf i64
NG_HELPER bool ng_isinf(ng_i64) { return false; }
//@ ng_isinf bool
NG_HELPER bool ng_isinf(bool) { return false; }
//@ ng_copysign f32
NG_HELPER float ng_copysign(float a, float b) {
    return ng_f32((ng_bits_f32(a) & 0x7fffffff) | (ng_bits_f32(b) & 0x80000000));
}
//@ ng_copysign f64
NG_HELPER double ng_copysign(double a, double b) {
    const ng_u64 sign = 0x8000000000000000ull;
    return ng_f64((ng_bits_f64(a) & ~sign) | (ng_bits_f64(b) & sign));
}
//@ ng_sign f32
NG_HELPER float ng_sign(float a) { return a != a ? a : (float)((a > 0) - (a < 0)); }
//@ ng_sign f64
NG_HELPER double ng_sign(double a) { return a != a ? a : (double)((a > 0) - (a < 0)); }
//@ ng_sign i64
NG_HELPER ng_i64 ng_sign(ng_i64 a) { return (a > 0) - (a < 0); }

//@ ng_maximum f32
// NaN if either is; +0 above -0.
#if NG_DEVICE
NG_HELPER float ng_maximum(float a, float b) {
    float value;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(value) : "f"(a), "f"(b));
    return value;
}
#else
NG_HELPER float ng_maximum(float a, float b) {
    if (a != a || b != b) return a + b;
    if (a == b) return ng_bits_f32(a) >> 31 != 0 ? b : a;
    return a > b ? a : b;
}
#endif
//@ ng_maximum f64
NG_HELPER double ng_maximum(double a, double b) {
    if (a != a || b != b) return a + b;
    if (a == b) return ng_bits_f64(a) >> 63 != 0 ? b : a;
    return a > b ? a : b;
}
//@ ng_maximum i64
NG_HELPER ng_i64 ng_maximum(ng_i64 a, ng_i64 b) { return a > b ? a : b; }
//@ ng_minimum f32
#if NG_DEVICE
NG_HELPER float ng_minimum(float a, float b) {
    float value;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(value) : "f"(a), "f"(b));
    return value;
}
#else
NG_HELPER float ng_minimum(float a, float b) {
    if (a != a || b != b) return a + b;
    if (a == b) return ng_bits_f32(a) >> 31 != 0 ? a : b;
    return a < b ? a : b;
}
#endif
//@ ng_minimum f64
NG_HELPER double ng_minimum(double a, double b) {
    if (a != a || b != b) return a + b;
    if (a == b) return ng_bits_f64(a) >> 63 != 0 ? a : b;
    return a < b ? a : b;
}
//@ ng_minimum i64
NG_HELPER ng_i64 ng_minimum(ng_i64 a, ng_i64 b) { return a < b ? a : b; }

//@ ng_exp f32
#if NG_DEVICE
NG_HELPER float ng_exp(float a) { return expf(a); }
#else
NG_HELPER float ng_exp(float a) { return __builtin_expf(a); }
#endif
//@ ng_exp f64
#if NG_DEVICE
NG_HELPER double ng_exp(double a) { return exp(a); }
#else
NG_HELPER double ng_exp(double a) { return __builtin_exp(a); }
#endif
//@ ng_exp2 f32
#if NG_DEVICE
NG_HELPER float ng_exp2(float a) { return exp2f(a); }
#else
NG_HELPER float ng_exp2(float a) { return __builtin_exp2f(a); }
#endif
//@ ng_exp2 f64
#if NG_DEVICE
NG_HELPER double ng_exp2(double a) { return exp2(a); }
#else
NG_HELPER double ng_exp2(double a) { return __builtin_exp2(a); }
#endif
//@ ng_expm1 f32
#if NG_DEVICE
NG_HELPER float ng_expm1(float a) { return expm1f(a); }
#else
NG_HELPER float ng_expm1(float a) { return __builtin_expm1f(a); }
#endif
//@ ng_expm1 f64
#if NG_DEVICE
NG_HELPER double ng_expm1(double a) { return expm1(a); }
#else
NG_HELPER double ng_expm1(double a) { return __builtin_expm1(a); }
#endif
//@ ng_log f32
#if NG_DEVICE
NG_HELPER float ng_log(float a) { return logf(a); }
#else
NG_HELPER float ng_log(float a) { return __builtin_logf(a); }
#endif
//@ ng_log f64
#if NG_DEVICE
NG_HELPER double ng_log(double a) { return log(a); }
#else
NG_HELPER double ng_log(double a) { return __builtin_log(a); }
#endif
//@ ng_log2 f32
#if NG_DEVICE
NG_HELPER float ng_log2(float a) { return log2f(a); }
#else
NG_HELPER float ng_log2(float a) { return __builtin_log2f(a); }
#endif
//@ ng_log2 f64
#if NG_DEVICE
NG_HELPER double ng_log2(double a) { return log2(a); }
#else
NG_HELPER double ng_log2(double a) { return __builtin_log2(a); }
#endif
//@ ng_log1p f32
#if NG_DEVICE
NG_HELPER float ng_log1p(float a) { return log1pf(a); }
#else
NG_HELPER float ng_log1p(float a) { return __builtin_log1pf(a); }
#endif
//@ ng_log1p f64
#if NG_DEVICE
NG_HELPER double ng_log1p(double a) { return log1p(a); }
#else
NG_HELPER double ng_log1p(double a) { return __builtin_log1p(a); }
#endif
//@ ng_sqrt f32
#if NG_DEVICE
NG_HELPER float ng_sqrt(float a) { return sqrtf(a); }
#else
NG_HELPER float ng_sqrt(float a) { return __builtin_sqrtf(a); }
#endif
//@ ng_sqrt f64
#if NG_DEVICE
NG_HELPER double ng_sqrt(double a) { return sqrt(a); }
#else
NG_HELPER double ng_sqrt(double a) { return __builtin_sqrt(a); }
#endif
//@ ng_tanh f32
#if NG_DEVICE
NG_HELPER float ng_tanh(float a) { return tanhf(a); }
#else
NG_HELPER float ng_tanh(float a) { return __builtin_tanhf(a); }
#endif
//@ ng_tanh f64
#if NG_DEVICE
NG_HELPER double ng_tanh(double a) { return tanh(a); }
#else
NG_HELPER double ng_tanh(double a) { return __builtin_tanh(a); }
#endif
//@ ng_erf f32
#if NG_DEVICE
NG_HELPER float ng_erf(float a) { return erff(a); }
#else
NG_HELPER float ng_erf(float a) { return __builtin_erff(a); }
#endif
//@ ng_erf f64
#if NG_DEVICE
NG_HELPER double ng_erf(double a) { return erf(a); }
#else
NG_HELPER double ng_erf(double a) { return __builtin_erf(a); }
#endif
//@ ng_floor f32
#if NG_DEVICE
NG_HELPER float ng_floor(float a) { return floorf(a); }
#else
NG_HELPER float ng_floor(float a) { return __builtin_floorf(a); }
#endif
//@ ng_floor f64
#if NG_DEVICE
NG_HELPER double ng_floor(double a) { return floor(a); }
#else
NG_HELPER double ng_floor(double a) { return __builtin_floor(a); }
#endif
//@ ng_ceil f32
#if NG_DEVICE
NG_HELPER float ng_ceil(float a) { return ceilf(a); }
#else
NG_HELPER float ng_ceil(float a) { return __builtin_ceilf(a); }
#endif
//@ ng_ceil f64
#if NG_DEVICE
NG_HELPER double ng_ceil(double a) { return ceil(a); }
#else
NG_HELPER double ng_ceil(double a) { return __builtin_ceil(a); }
#endif
//@ ng_trunc f32
#if NG_DEVICE
NG_HELPER float ng_trunc(float a) { return truncf(a); }
#else
NG_HELPER float ng_trunc(float a) { return __builtin_truncf(a); }
#endif
//@ ng_trunc f64
#if NG_DEVICE
NG_HELPER double ng_trunc(double a) { return trunc(a); }
#else
NG_HELPER double ng_trunc(double a) { return __builtin_trunc(a); }
#endif
//@ ng_round f32
#if NG_DEVICE
NG_HELPER float ng_round(float a) { return rintf(a); }
#else
NG_HELPER float ng_round(float a) { return __builtin_rintf(a); }
#endif
//@ ng_round f64
#if NG_DEVICE
NG_HELPER double ng_round(double a) { return rint(a); }
#else
NG_HELPER double ng_round(double a) { return __builtin_rint(a); }
#endif
//@ ng_floor i64
NG_HELPER ng_i64 ng_floor(ng_i64 a) { return a; }
//@ ng_ceil i64
NG_HELPER ng_i64 ng_ceil(ng_i64 a) { return a; }
//@ ng_trunc i64
NG_HELPER ng_i64 ng_trunc(ng_i64 a) { return a; }
//@ ng_round i64
NG_HELPER ng_i64 ng_round(ng_i64 a) { return a; }
//@ ng_two_over_pi
// 2/pi in words of 32 bits, behind one of zeros.
NG_HELPER ng_u64 ng_two_over_pi(int i) {
    return i == 0   ? 0
           : i == 1 ? 0x28be60db
           : i == 2 ? 0x9391054a
           : i == 3 ? 0x7f09d5f4
           : i == 4 ? 0x7d4d3770
           : i == 5 ? 0x36d8a566
                    : 0x4f10e410;
}
//@ ng_quarters_far
// ng_quarters of a large a: 96 bits behind the point of a * 2/pi, a fixed-point number of 2 and 62 bits in the end.
NG_HELPER float ng_quarters_far(float a, int &quarter) {
    const ng_u32 bits = ng_bits_f32(a) & 0x7fffffff, m = ((bits & 0x7fffff) | 0x800000) << 8;
    const int e = (int)(bits >> 23) - 126, i = e >> 5, shift = e & 31;
    if (e > 128) return a - a;
    const ng_u64 w0 = ng_two_over_pi(i), w1 = ng_two_over_pi(i + 1), w2 = ng_two_over_pi(i + 2), w3 = ng_two_over_pi(i + 3);
    const ng_u32 high = (ng_u32)(((w0 << 32 | w1) << shift) >> 32), middle = (ng_u32)(((w1 << 32 | w2) << shift) >> 32);
    const ng_u32 low = (ng_u32)(((w2 << 32 | w3) << shift) >> 32);
    ng_u64 product = (ng_u64)m * middle + ((ng_u64)m * low >> 32);
    product += (ng_u64)(m * high) << 32;
    ng_i64 left = (ng_i64)(product & 0x3fffffffffffffffull);
    if (left >> 61 != 0) left -= 0x4000000000000000ll;
    const int turns = (int)(product >> 62) + (left < 0);
    const float r = (float)((double)left * ng_f64(0x3c1921fb54442d18ull) /* pi/2 * 2^-62 */);
    quarter = a < 0 ? -turns : turns;
    return a < 0 ? -r : r;
}
//@ ng_quarters
// The nearest whole number of quarter turns and, in radians, what is left of a. CUDA's sinf and cosf have an array here,
// and so a stack frame; with this they are within 1.5 ulps.
NG_HELPER float ng_quarters(float a, int &quarter) {
    if (!(ng_abs(a) <= 48039.0f)) return ng_quarters_far(a, quarter);
    const float n = ng_round(a * ng_f32(0x3f22f983) /* 2/pi */);
    quarter = (int)n;
    float r = ng_fma(n, ng_f32(0xbfc90fda), a); /* -pi/2 in three parts */
    r = ng_fma(n, ng_f32(0xb3a22168), r);
    return n == 0 ? a : ng_fma(n, ng_f32(0xa7c234c4), r);
}
//@ ng_wave
// The sine of r, at most an eighth of a turn, and quarters of one.
NG_HELPER float ng_wave(float r, int quarter) {
    const float s = r * r;
    float even = ng_fma(ng_f32(0x37cd4000), s, ng_f32(0xbab6077d));
    even = ng_fma(ng_fma(ng_fma(even, s, ng_f32(0x3d2aaaa8)), s, ng_f32(0xbf000000)), s, ng_f32(0x3f800000));
    float odd = ng_fma(ng_f32(0x36405000), s, ng_f32(0xb9503486));
    odd = ng_fma(ng_fma(odd, s, ng_f32(0x3c0888c1)), s, ng_f32(0xbe2aaaab));
    odd = ng_fma(odd, ng_fma(r, s, 0.0f), r); // of -0 it is -0
    const float y = quarter % 2 != 0 ? even : odd;
    return (quarter & 2) != 0 ? -y : y;
}
//@ ng_sin f32
NG_HELPER float ng_sin(float a) {
    int quarter = 0;
    const float r = ng_quarters(a, quarter);
    return ng_wave(r, quarter);
}
//@ ng_sin f64
#if NG_DEVICE
NG_HELPER double ng_sin(double a) { return sin(a); }
#else
NG_HELPER double ng_sin(double a) { return __builtin_sin(a); }
#endif
//@ ng_cos f32
NG_HELPER float ng_cos(float a) {
    int quarter = 0;
    const float r = ng_quarters(a, quarter);
    return ng_wave(r, quarter + 1);
}
//@ ng_cos f64
#if NG_DEVICE
NG_HELPER double ng_cos(double a) { return cos(a); }
#else
NG_HELPER double ng_cos(double a) { return __builtin_cos(a); }
#endif
//@ ng_rsqrt f32
#if NG_DEVICE
NG_HELPER float ng_rsqrt(float a) { return rsqrtf(a); }
#else
NG_HELPER float ng_rsqrt(float a) { return (float)(1 / __builtin_sqrt((double)a)); }
#endif
//@ ng_rsqrt f64
#if NG_DEVICE
NG_HELPER double ng_rsqrt(double a) { return rsqrt(a); }
#else
NG_HELPER double ng_rsqrt(double a) { return 1 / __builtin_sqrt(a); }
#endif
//@ ng_sigmoid f32
// Neither side overflows, so that small results keep their digits.
NG_HELPER float ng_sigmoid(float a) {
    const float e = ng_exp(-ng_abs(a));
    return (a < 0 ? e : 1.0f) / (1.0f + e);
}
//@ ng_sigmoid f64
NG_HELPER double ng_sigmoid(double a) {
    const double e = ng_exp(-ng_abs(a));
    return (a < 0 ? e : 1.0) / (1.0 + e);
}
//@ ng_pow f32
#if NG_DEVICE
NG_HELPER float ng_pow(float a, float b) { return powf(a, b); }
#else
NG_HELPER float ng_pow(float a, float b) { return __builtin_powf(a, b); }
#endif
//@ ng_pow f64
#if NG_DEVICE
NG_HELPER double ng_pow(double a, double b) { return pow(a, b); }
#else
NG_HELPER double ng_pow(double a, double b) { return __builtin_pow(a, b); }
#endif
//@ ng_pow i64
NG_HELPER ng_i64 ng_pow(ng_i64 a, ng_i64 b) {
    if (b < 0) return a == 1 ? 1 : a == -1 ? ((b & 1) != 0 ? -1 : 1) : 0;
    ng_u64 power = 1, base = (ng_u64)a;
    for (; b != 0; b >>= 1, base *= base)
        if ((b & 1) != 0) power *= base;
    return (ng_i64)power;
}
//@ ng_fmod f32
// Python's: the quotient goes down, the remainder has the divisor's sign. Integers divided by 0 give 0.
#if NG_DEVICE
NG_HELPER float ng_fmod(float a, float b) { return fmodf(a, b); }
#else
NG_HELPER float ng_fmod(float a, float b) { return __builtin_fmodf(a, b); }
#endif
//@ ng_fmod f64
#if NG_DEVICE
NG_HELPER double ng_fmod(double a, double b) { return fmod(a, b); }
#else
NG_HELPER double ng_fmod(double a, double b) { return __builtin_fmod(a, b); }
#endif
//@ ng_mod f32
NG_HELPER float ng_mod(float a, float b) {
    const float rest = ng_fmod(a, b);
    if (rest == 0) return ng_copysign(0.0f, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
}
//@ ng_mod f64
NG_HELPER double ng_mod(double a, double b) {
    const double rest = ng_fmod(a, b);
    if (rest == 0) return ng_copysign(0.0, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
}
//@ ng_mod i64
NG_HELPER ng_i64 ng_mod(ng_i64 a, ng_i64 b) {
    if (b == 0 || b == -1) return 0;
    const ng_i64 rest = a % b;
    return rest != 0 && (a < 0) != (b < 0) ? rest + b : rest;
}
//@ ng_floordiv_float
// Python's way: exact below WHOLE, from which on a float is whole anyway; the division may have rounded, so it goes to
// the nearest whole number.
template <typename C>
NG_HELPER C ng_floordiv_float(C a, C b, C whole) {
    if (b == 0 || ng_isinf(a) || a != a || b != b) return a / b;
    const C rest = ng_fmod(a, b);
    C quotient = (a - rest) / b;
    if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
    if (quotient == 0) return ng_copysign((C)0, a / b);
    return ng_abs(quotient) < whole ? ng_floor(quotient + (C)0.5f) : quotient;
}
//@ ng_floordiv f64
NG_HELPER double ng_floordiv(double a, double b) { return ng_floordiv_float(a, b, 4503599627370496.0); }
//@ ng_floordiv f32
NG_HELPER float ng_floordiv(float a, float b) { return ng_floordiv_float(a, b, 8388608.0f); }
//@ ng_floordiv i64
NG_HELPER ng_i64 ng_floordiv(ng_i64 a, ng_i64 b) {
    if (b == 0) return 0;
    if (b == -1) return (ng_i64)(0 - (ng_u64)a);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

// ---- casts: the value of the target type, in the type that arithmetic on it has
//@ ng_cast_f32 f32
NG_HELPER float ng_cast_f32(float a) { return a; }
//@ ng_cast_f32 f64
NG_HELPER float ng_cast_f32(double a) { return (float)a; }
//@ ng_cast_f32 i64
NG_HELPER float ng_cast_f32(ng_i64 a) { return (float)a; }
//@ ng_cast_f32 bool
NG_HELPER float ng_cast_f32(bool a) { return a ? 1.0f : 0.0f; }
//@ ng_cast_f64 f32
NG_HELPER double ng_cast_f64(float a) { return a; }
//@ ng_cast_f64 f64
NG_HELPER double ng_cast_f64(double a) { return a; }
//@ ng_cast_f64 i64
NG_HELPER double ng_cast_f64(ng_i64 a) { return (double)a; }
//@ ng_cast_f64 bool
NG_HELPER double ng_cast_f64(bool a) { return a ? 1.0 : 0.0; }
//@ ng_odd f32
// To f32 with the last bit set where digits were lost, so that one more rounding to a shorter type is the only one.
NG_HELPER float ng_odd(float a) { return a; }
//@ ng_odd bool
NG_HELPER float ng_odd(bool a) { return a ? 1.0f : 0.0f; }
//@ ng_odd f64
NG_HELPER float ng_odd(double a) {
    const float near = (float)a;
    if (near != near || (double)near == a) return near;
    const ng_u32 bits = ng_bits_f32(near);
    const bool beyond = a > 0 ? (double)near > a : (double)near < a;
    return ng_f32((beyond ? bits - 1 : bits) | 1);
}
//@ ng_odd i64
NG_HELPER float ng_odd(ng_i64 a) {
    const ng_u64 size = a < 0 ? 0 - (ng_u64)a : (ng_u64)a;
    int shift = 0;
    while (size >> shift >= 1 << 24) shift++;
    const float near = (float)(ng_i64)(size >> shift) * (float)((ng_u64)1 << shift);
    const float odd = size >> shift << shift == size ? near : ng_f32(ng_bits_f32(near) | 1);
    return a < 0 ? -odd : odd;
}
//@ ng_cast_bf16
template <typename C>
NG_HELPER float ng_cast_bf16(C a) {
    return ng_widen_bf16(ng_narrow_bf16(ng_odd(a)));
}
//@ ng_cast_f16
template <typename C>
NG_HELPER float ng_cast_f16(C a) {
    return ng_widen_f16(ng_narrow_f16(ng_odd(a)));
}
//@ ng_cast_f8e4m3
template <typename C>
NG_HELPER float ng_cast_f8e4m3(C a) {
    return ng_widen_f8e4m3(ng_narrow_f8e4m3x2(ng_odd(a), 0.0f), 0);
}
//@ ng_cast_f8e5m2
template <typename C>
NG_HELPER float ng_cast_f8e5m2(C a) {
    return ng_widen_f8e5m2(ng_narrow_f8e5m2x2(ng_odd(a), 0.0f), 0);
}
//@ ng_cast_bool
template <typename C>
NG_HELPER bool ng_cast_bool(C a) {
    return a != 0;
}
//@ ng_saturate
// Floats truncate and saturate, NaN gives 0; integers wrap. A limit that the float has not is rounded up to the first
// number past the range.
template <typename C>
NG_HELPER ng_i64 ng_saturate(C a, ng_i64 low, ng_i64 high) {
    if (a != a) return 0;
    if (a <= (C)low) return low;
    return a >= (C)high ? high : (ng_i64)a;
}
//@ ng_cast_i64 i64
NG_HELPER ng_i64 ng_cast_i64(ng_i64 a) { return a; }
//@ ng_cast_i64 bool
NG_HELPER ng_i64 ng_cast_i64(bool a) { return a; }
//@ ng_cast_i64 f32
NG_HELPER ng_i64 ng_cast_i64(float a) { return ng_saturate(a, -0x7fffffffffffffffll - 1, 0x7fffffffffffffffll); }
//@ ng_cast_i64 f64
NG_HELPER ng_i64 ng_cast_i64(double a) { return ng_saturate(a, -0x7fffffffffffffffll - 1, 0x7fffffffffffffffll); }
//@ ng_cast_i32 i64
NG_HELPER ng_i64 ng_cast_i32(ng_i64 a) { return (ng_i32)(ng_u32)(ng_u64)a; }
//@ ng_cast_i32 bool
NG_HELPER ng_i64 ng_cast_i32(bool a) { return a; }
//@ ng_cast_i32 f32
NG_HELPER ng_i64 ng_cast_i32(float a) { return ng_saturate(a, -2147483648ll, 2147483647ll); }
//@ ng_cast_i32 f64
NG_HELPER ng_i64 ng_cast_i32(double a) { return ng_saturate(a, -2147483648ll, 2147483647ll); }
//@ ng_cast_i8 i64
NG_HELPER ng_i64 ng_cast_i8(ng_i64 a) { return (ng_i8)(ng_u8)(ng_u64)a; }
//@ ng_cast_i8 bool
NG_HELPER ng_i64 ng_cast_i8(bool a) { return a; }
//@ ng_cast_i8 f32
NG_HELPER ng_i64 ng_cast_i8(float a) { return ng_saturate(a, -128, 127); }
//@ ng_cast_i8 f64
NG_HELPER ng_i64 ng_cast_i8(double a) { return ng_saturate(a, -128, 127); }
//@ ng_cast_u8 i64
NG_HELPER ng_i64 ng_cast_u8(ng_i64 a) { return (ng_u8)(ng_u64)a; }
//@ ng_cast_u8 bool
NG_HELPER ng_i64 ng_cast_u8(bool a) { return a; }
//@ ng_cast_u8 f32
NG_HELPER ng_i64 ng_cast_u8(float a) { return ng_saturate(a, 0, 255); }
//@ ng_cast_u8 f64
NG_HELPER ng_i64 ng_cast_u8(double a) { return ng_saturate(a, 0, 255); }
