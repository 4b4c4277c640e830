// The helpers that kernel bodies are written in, each with a device body and a host body: types and packs here, memory
// and threads in memory.cuh, arithmetic in math.cuh. gen/emit_helpers.c copies those that a kernel names into its file, in this
// order; the host prelude takes them all.
//
//     //@ NAME [dtype ...]   begins a helper: taken when NAME stands in the text and the unit computes in all the dtypes
//                            (load.dtype, store.dtype: loads such elements, stores them)
//     //@ host               begins text of the host prelude alone, always taken
//
// Between two markers: plain lines for both, or #if NG_DEVICE, #else, #endif around the two bodies (other conditions may
// stand within). The files also compile as they stand, under nvcc (device bodies) and under a C++17 compiler (host bodies).
#pragma once
#ifdef __CUDACC__
#define NG_DEVICE 1
#else
#define NG_DEVICE 0
#include "host_api.h"
#endif

//@ host
#if NG_DEVICE
#else
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define NG_JOIN_NOW(a, b) a##b
#define NG_JOIN(a, b) NG_JOIN_NOW(a, b)
#define NG_SPACE NG_JOIN(ng_text_, NG_TEXT)
#define NG_ENTRY(kernel) extern "C" __attribute__((visibility("default"))) void NG_JOIN(kernel##__host_, NG_TEXT)
static const ng_host_api *ng_api;
extern "C" __attribute__((visibility("default"))) void ng_host_bind(const ng_host_api *api) { ng_api = api; }
static inline void ng_check_aligned(const void *p, unsigned long bytes) {
    if ((unsigned long)p % bytes != 0) ng_api->fail("a wide access is not aligned");
}
#endif

//@ NG_HELPER
#if NG_DEVICE
#define NG_HELPER __device__ __forceinline__
#else
#define NG_HELPER static inline
#endif
//@ NG_KERNEL
#if NG_DEVICE
#define NG_KERNEL extern "C" __global__
#else
#define NG_KERNEL static
#endif

//@ ng_u8
typedef unsigned char ng_u8;
//@ ng_i8
typedef signed char ng_i8;
//@ ng_u16
typedef unsigned short ng_u16;
//@ ng_i32
typedef int ng_i32;
//@ ng_u32
typedef unsigned int ng_u32;
//@ ng_i64
typedef long long ng_i64;
//@ ng_u64
typedef unsigned long long ng_u64;

// ---- numbers as bits
//@ ng_f32
#if NG_DEVICE
NG_HELPER float ng_f32(ng_u32 bits) { return __uint_as_float(bits); }
#else
NG_HELPER float ng_f32(ng_u32 bits) {
    float value;
    __builtin_memcpy(&value, &bits, 4);
    return value;
}
#endif
//@ ng_bits_f32
#if NG_DEVICE
NG_HELPER ng_u32 ng_bits_f32(float value) { return __float_as_uint(value); }
#else
NG_HELPER ng_u32 ng_bits_f32(float value) {
    ng_u32 bits;
    __builtin_memcpy(&bits, &value, 4);
    return bits;
}
#endif
//@ ng_f64
#if NG_DEVICE
NG_HELPER double ng_f64(ng_u64 bits) { return __longlong_as_double((long long)bits); }
#else
NG_HELPER double ng_f64(ng_u64 bits) {
    double value;
    __builtin_memcpy(&value, &bits, 8);
    return value;
}
#endif
//@ ng_bits_f64
#if NG_DEVICE
NG_HELPER ng_u64 ng_bits_f64(double value) { return (ng_u64)__double_as_longlong(value); }
#else
NG_HELPER ng_u64 ng_bits_f64(double value) {
    ng_u64 bits;
    __builtin_memcpy(&bits, &value, 8);
    return bits;
}
#endif

// ---- stored elements: floats of 16 and 8 bits and bools are their bits
//@ ng_bf16
struct ng_bf16 {
    ng_u16 bits;
};
//@ ng_f16
struct ng_f16 {
    ng_u16 bits;
};
//@ ng_f8e4m3
struct ng_f8e4m3 {
    ng_u8 bits;
};
//@ ng_f8e5m2
struct ng_f8e5m2 {
    ng_u8 bits;
};
//@ ng_bool
struct ng_bool {
    ng_u8 bits;
};

//@ ng_widen_bf16
NG_HELPER float ng_widen_bf16(ng_u32 bits) { return ng_f32(bits << 16); }
//@ ng_widen_f16
#if NG_DEVICE
NG_HELPER float ng_widen_f16(ng_u32 bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"((ng_u16)bits));
    return value;
}
#else
NG_HELPER float ng_widen_f16(ng_u32 bits) {
    const ng_u32 sign = (bits & 0x8000) << 16, low = bits & 0x7fff;
    if (low >= 0x7c00) return ng_f32(sign | 0x7f800000 | (low & 0x3ff) << 13);
    if (low >= 0x0400) return ng_f32(sign | ((low << 13) + 0x38000000));
    const float tiny = (float)low * ng_f32(0x33800000);  // units of 2^-24
    return sign != 0 ? -tiny : tiny;
}
#endif

//@ ng_narrow_bf16
// Rounded to nearest, ties to even; NaN as the hardware writes it.
#if NG_DEVICE
NG_HELPER ng_u32 ng_narrow_bf16(float value) {
    ng_u16 bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}
#else
NG_HELPER ng_u32 ng_narrow_bf16(float value) {
    const ng_u32 bits = ng_bits_f32(value);
    if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
#endif
//@ ng_narrow_bf16x2
#if NG_DEVICE
NG_HELPER ng_u32 ng_narrow_bf16x2(float low, float high) {
    ng_u32 bits;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
    return bits;
}
#else
NG_HELPER ng_u32 ng_narrow_bf16x2(float low, float high) { return ng_narrow_bf16(low) | ng_narrow_bf16(high) << 16; }
#endif
//@ ng_narrow_f16
#if NG_DEVICE
NG_HELPER ng_u32 ng_narrow_f16(float value) {
    ng_u16 bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}
#else
NG_HELPER ng_u32 ng_narrow_f16(float value) {
    const ng_u32 bits = ng_bits_f32(value), sign = bits >> 16 & 0x8000, low = bits & 0x7fffffff;
    if (low > 0x7f800000) return 0x7fff;
    if (low >= 0x477ff000) return sign | 0x7c00;  // 65520 and above
    if (low >= 0x38800000) return sign | ((low + 0xfff + (low >> 13 & 1) - 0x38000000) >> 13);
    // Below 2^-14 one unit is 2^-24: adding 0.5 leaves the rounded count of units in the last bits.
    const float sum = ng_f32(low) + 0.5f;
    return sign | (ng_bits_f32(sum) - 0x3f000000);
}
#endif
//@ ng_narrow_f16x2
#if NG_DEVICE
NG_HELPER ng_u32 ng_narrow_f16x2(float low, float high) {
    ng_u32 bits;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
    return bits;
}
#else
NG_HELPER ng_u32 ng_narrow_f16x2(float low, float high) { return ng_narrow_f16(low) | ng_narrow_f16(high) << 16; }
#endif

// ---- fp8: in hardware from sm_89 on, in software with the same bits elsewhere
//@ ng_widen_f8_soft
// e4m3 has no inf. Its exponents are f32's but for the bias, subnormals included.
NG_HELPER float ng_widen_f8_soft(ng_u32 bits) {
    const ng_u32 low = bits & 0x7f;
    if (low == 0x7f) return ng_widen_f16(0x7fff);
    return ng_f32((bits & 0x80) << 24 | ng_bits_f32(ng_f32(low << 20) * ng_f32(0x7b800000)));  // 2^120
}
//@ ng_widen_f8e4m3
// One of two neighbours: 0 in the low byte, 1 above.
#if NG_DEVICE
NG_HELPER float ng_widen_f8e4m3(ng_u32 pair, int which) {
#if __CUDA_ARCH__ >= 890
    ng_u32 halves;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"((ng_u16)pair));
    return ng_widen_f16(halves >> 16 * which & 0xffff);
#else
    return ng_widen_f8_soft(pair >> 8 * which);
#endif
}
#else
NG_HELPER float ng_widen_f8e4m3(ng_u32 pair, int which) { return ng_widen_f8_soft(pair >> 8 * which); }
#endif
//@ ng_widen_f8e5m2
// The upper half of an f16.
NG_HELPER float ng_widen_f8e5m2(ng_u32 pair, int which) { return ng_widen_f16((pair >> 8 * which & 0xff) << 8); }

//@ ng_narrow_f8_soft
// Rounded to nearest, ties to even; LARGEST instead of anything above; NaN as the hardware writes it.
template <int FRACTION, int BIAS, ng_u32 LARGEST>
NG_HELPER ng_u32 ng_narrow_f8_soft(float value) {
    const int DROPPED = 23 - FRACTION;
    const ng_u32 bits = ng_bits_f32(value), sign = bits >> 24 & 0x80, low = bits & 0x7fffffff;
    if (low > 0x7f800000) return 0x7f;
    const ng_u32 rebiased = (ng_u32)(127 - BIAS) << FRACTION;
    if (low >= (LARGEST + rebiased) << DROPPED) return sign | LARGEST;
    if (low >= (ng_u32)(128 - BIAS) << 23) {
        const ng_u32 half = ((1u << DROPPED) - 1) / 2;
        return sign | (((low + half + (low >> DROPPED & 1)) >> DROPPED) - rebiased);
    }
    // Subnormal: added to a number whose last place is a unit, the rounded count of units is left in its last bits.
    const ng_u32 shift = (ng_u32)(128 - BIAS + DROPPED) << 23;
    return sign | (ng_bits_f32(ng_f32(low) + ng_f32(shift)) - shift);
}
//@ ng_narrow_f8e4m3x2
#if NG_DEVICE
NG_HELPER ng_u32 ng_narrow_f8e4m3x2(float low, float high) {
#if __CUDA_ARCH__ >= 890
    ng_u16 bits;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(high), "f"(low));
    return bits;
#else
    return ng_narrow_f8_soft<3, 7, 0x7e>(low) | ng_narrow_f8_soft<3, 7, 0x7e>(high) << 8;
#endif
}
#else
NG_HELPER ng_u32 ng_narrow_f8e4m3x2(float low, float high) {
    return ng_narrow_f8_soft<3, 7, 0x7e>(low) | ng_narrow_f8_soft<3, 7, 0x7e>(high) << 8;
}
#endif
//@ ng_narrow_f8e5m2x2
#if NG_DEVICE
NG_HELPER ng_u32 ng_narrow_f8e5m2x2(float low, float high) {
#if __CUDA_ARCH__ >= 890
    ng_u16 bits;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(high), "f"(low));
    return bits;
#else
    return ng_narrow_f8_soft<2, 15, 0x7b>(low) | ng_narrow_f8_soft<2, 15, 0x7b>(high) << 8;
#endif
}
#else
NG_HELPER ng_u32 ng_narrow_f8e5m2x2(float low, float high) {
    return ng_narrow_f8_soft<2, 15, 0x7b>(low) | ng_narrow_f8_soft<2, 15, 0x7b>(high) << 8;
}
#endif

// ---- packs: V stored elements as the words that a load brings
//@ ng_pack
template <typename T, int V>
struct ng_pack {
    ng_u32 word[(V * sizeof(T) + 3) / 4];
};

//@ ng_get load.bf16
template <int V>
NG_HELPER float ng_get(const ng_pack<ng_bf16, V> &pack, int lane) {
    const ng_u32 word = pack.word[lane / 2];
    return ng_f32(lane % 2 != 0 ? word & 0xffff0000u : word << 16);
}
//@ ng_get load.f16
template <int V>
NG_HELPER float ng_get(const ng_pack<ng_f16, V> &pack, int lane) {
    return ng_widen_f16(pack.word[lane / 2] >> 16 * (lane % 2) & 0xffff);
}
//@ ng_get load.f8e4m3
template <int V>
NG_HELPER float ng_get(const ng_pack<ng_f8e4m3, V> &pack, int lane) {
    return ng_widen_f8e4m3(pack.word[lane / 4] >> 16 * (lane / 2 % 2) & 0xffff, lane % 2);
}
//@ ng_get load.f8e5m2
template <int V>
NG_HELPER float ng_get(const ng_pack<ng_f8e5m2, V> &pack, int lane) {
    return ng_widen_f8e5m2(pack.word[lane / 4] >> 16 * (lane / 2 % 2) & 0xffff, lane % 2);
}
//@ ng_get load.f32
template <int V>
NG_HELPER float ng_get(const ng_pack<float, V> &pack, int lane) {
    return ng_f32(pack.word[lane]);
}
//@ ng_get load.f64
template <int V>
NG_HELPER double ng_get(const ng_pack<double, V> &pack, int lane) {
    return ng_f64(pack.word[2 * lane] | (ng_u64)pack.word[2 * lane + 1] << 32);
}
//@ ng_get load.i64
template <int V>
NG_HELPER ng_i64 ng_get(const ng_pack<ng_i64, V> &pack, int lane) {
    return (ng_i64)(pack.word[2 * lane] | (ng_u64)pack.word[2 * lane + 1] << 32);
}
//@ ng_get load.i32
template <int V>
NG_HELPER ng_i64 ng_get(const ng_pack<ng_i32, V> &pack, int lane) {
    return (ng_i32)pack.word[lane];
}
//@ ng_get load.i8
template <int V>
NG_HELPER ng_i64 ng_get(const ng_pack<ng_i8, V> &pack, int lane) {
    return (ng_i8)(pack.word[lane / 4] >> 8 * (lane % 4) & 0xff);
}
//@ ng_get load.u8
template <int V>
NG_HELPER ng_i64 ng_get(const ng_pack<ng_u8, V> &pack, int lane) {
    return pack.word[lane / 4] >> 8 * (lane % 4) & 0xff;
}
//@ ng_get load.bool
template <int V>
NG_HELPER bool ng_get(const ng_pack<ng_bool, V> &pack, int lane) {
    return (pack.word[lane / 4] >> 8 * (lane % 4) & 0xff) != 0;
}

//@ ng_narrow store.bf16
template <int V>
NG_HELPER void ng_narrow(ng_pack<ng_bf16, V> &pack, const float (&lanes)[V]) {
#pragma unroll
    for (int i = 0; i < V / 2; i++) pack.word[i] = ng_narrow_bf16x2(lanes[2 * i], lanes[2 * i + 1]);
    if (V % 2 != 0) pack.word[V / 2] = ng_narrow_bf16(lanes[V - 1]);
}
//@ ng_narrow store.f16
template <int V>
NG_HELPER void ng_narrow(ng_pack<ng_f16, V> &pack, const float (&lanes)[V]) {
#pragma unroll
    for (int i = 0; i < V / 2; i++) pack.word[i] = ng_narrow_f16x2(lanes[2 * i], lanes[2 * i + 1]);
    if (V % 2 != 0) pack.word[V / 2] = ng_narrow_f16(lanes[V - 1]);
}
//@ ng_narrow store.f8e4m3
template <int V>
NG_HELPER void ng_narrow(ng_pack<ng_f8e4m3, V> &pack, const float (&lanes)[V]) {
#pragma unroll
    for (int i = 0; i < V; i += 2) {
        const ng_u32 pair = ng_narrow_f8e4m3x2(lanes[i], lanes[i + 1 < V ? i + 1 : i]);
        pack.word[i / 4] = i % 4 == 0 ? pair : pack.word[i / 4] | pair << 16;
    }
}
//@ ng_narrow store.f8e5m2
template <int V>
NG_HELPER void ng_narrow(ng_pack<ng_f8e5m2, V> &pack, const float (&lanes)[V]) {
#pragma unroll
    for (int i = 0; i < V; i += 2) {
        const ng_u32 pair = ng_narrow_f8e5m2x2(lanes[i], lanes[i + 1 < V ? i + 1 : i]);
        pack.word[i / 4] = i % 4 == 0 ? pair : pack.word[i / 4] | pair << 16;
    }
}
//@ ng_narrow store.f32
template <int V>
NG_HELPER void ng_narrow(ng_pack<float, V> &pack, const float (&lanes)[V]) {
#pragma unroll
    for (int i = 0; i < V; i++) pack.word[i] = ng_bits_f32(lanes[i]);
}
//@ ng_narrow store.f64
template <int V>
NG_HELPER void ng_narrow(ng_pack<double, V> &pack, const double (&lanes)[V]) {
#pragma unroll
    for (int i = 0; i < V; i++) {
        pack.word[2 * i] = (ng_u32)ng_bits_f64(lanes[i]);
        pack.word[2 * i + 1] = (ng_u32)(ng_bits_f64(lanes[i]) >> 32);
    }
}
//@ ng_narrow store.i64
template <int V>
NG_HELPER void ng_narrow(ng_pack<ng_i64, V> &pack, const ng_i64 (&lanes)[V]) {
#pragma unroll
    for (int i = 0; i < V; i++) {
        pack.word[2 * i] = (ng_u32)(ng_u64)lanes[i];
        pack.word[2 * i + 1] = (ng_u32)((ng_u64)lanes[i] >> 32);
    }
}
//@ ng_narrow store.i32
template <int V>
NG_HELPER void ng_narrow(ng_pack<ng_i32, V> &pack, const ng_i64 (&lanes)[V]) {
#pragma unroll
    for (int i = 0; i < V; i++) pack.word[i] = (ng_u32)(ng_u64)lanes[i];
}
//@ ng_narrow_bytes
template <typename T, int V, typename C>
NG_HELPER void ng_narrow_bytes(ng_pack<T, V> &pack, const C (&lanes)[V]) {
#pragma unroll
    for (int i = 0; i < V; i++) {
        const ng_u32 byte = (ng_u32)(ng_u64)lanes[i] & 0xff;
        pack.word[i / 4] = i % 4 == 0 ? byte : pack.word[i / 4] | byte << 8 * (i % 4);
    }
}
//@ ng_narrow store.i8
template <int V>
NG_HELPER void ng_narrow(ng_pack<ng_i8, V> &pack, const ng_i64 (&lanes)[V]) {
    ng_narrow_bytes(pack, lanes);
}
//@ ng_narrow store.u8
template <int V>
NG_HELPER void ng_narrow(ng_pack<ng_u8, V> &pack, const ng_i64 (&lanes)[V]) {
    ng_narrow_bytes(pack, lanes);
}
//@ ng_narrow store.bool
template <int V>
NG_HELPER void ng_narrow(ng_pack<ng_bool, V> &pack, const bool (&lanes)[V]) {
    ng_narrow_bytes(pack, lanes);
}
