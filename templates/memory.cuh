// What kernel bodies do beyond arithmetic: loads and stores of packs, shared memory, shuffles and barriers. Markers as in
// helpers.cuh.
#pragma once
#include "helpers.cuh"

// ---- memory
//@ ng_fetch
// One element's bits. CONSTANT: no output may have this memory, so the read-only path may serve it.
#if NG_DEVICE
template <bool CONSTANT, typename T>
NG_HELPER ng_u64 ng_fetch(const T *p) {
    if constexpr (sizeof(T) == 1) return CONSTANT ? __ldg((const ng_u8 *)p) : *(const ng_u8 *)p;
    if constexpr (sizeof(T) == 2) return CONSTANT ? __ldg((const ng_u16 *)p) : *(const ng_u16 *)p;
    if constexpr (sizeof(T) == 4) return CONSTANT ? __ldg((const ng_u32 *)p) : *(const ng_u32 *)p;
    if constexpr (sizeof(T) == 8) return CONSTANT ? __ldg((const ng_u64 *)p) : *(const ng_u64 *)p;
}
#else
template <bool CONSTANT, typename T>
NG_HELPER ng_u64 ng_fetch(const T *p) {
    ng_u64 bits = 0;
    __builtin_memcpy(&bits, p, sizeof(T));
    return bits;
}
#endif
//@ ng_put
template <typename T, int V>
NG_HELPER void ng_put(ng_pack<T, V> &pack, int lane, ng_u64 bits) {
    if constexpr (sizeof(T) == 8) {
        pack.word[2 * lane] = (ng_u32)bits;
        pack.word[2 * lane + 1] = (ng_u32)(bits >> 32);
    } else {
        const int each = 4 / (int)sizeof(T);  // elements a word
        const ng_u32 word = (ng_u32)bits << 8 * (int)sizeof(T) * (lane % each) % 32;
        pack.word[lane / each] = lane % each == 0 ? word : pack.word[lane / each] | word;
    }
}
//@ ng_fetch_each
// Elements p[0], p[stride], ... one by one; those from `left` on are not there and read as zero bits.
template <bool CONSTANT, int V, typename T>
NG_HELPER ng_pack<T, V> ng_fetch_each(const T *p, ng_i64 stride, ng_i64 left) {
    ng_pack<T, V> pack;
#pragma unroll
    for (int i = 0; i < V; i++) ng_put(pack, i, i < left ? ng_fetch<CONSTANT>(p + i * stride) : 0);
    return pack;
}
//@ ng_fetch_wide
// V neighbours in one access of up to 16 bytes (more: several), which asks for a pointer aligned to it.
#if NG_DEVICE
template <bool CONSTANT, int V, typename T>
NG_HELPER ng_pack<T, V> ng_fetch_wide(const T *p) {
    constexpr int BYTES = V * (int)sizeof(T);
    ng_pack<T, V> pack;
    if constexpr (BYTES % 16 == 0) {
#pragma unroll
        for (int i = 0; i < BYTES / 16; i++) {
            const uint4 word = CONSTANT ? __ldg((const uint4 *)p + i) : ((const uint4 *)p)[i];
            pack.word[4 * i] = word.x, pack.word[4 * i + 1] = word.y;
            pack.word[4 * i + 2] = word.z, pack.word[4 * i + 3] = word.w;
        }
    } else if constexpr (BYTES == 8) {
        const uint2 word = CONSTANT ? __ldg((const uint2 *)p) : *(const uint2 *)p;
        pack.word[0] = word.x, pack.word[1] = word.y;
    } else if constexpr (BYTES == 4) {
        pack.word[0] = CONSTANT ? __ldg((const ng_u32 *)p) : *(const ng_u32 *)p;
    } else if constexpr (BYTES == 2) {
        pack.word[0] = CONSTANT ? __ldg((const ng_u16 *)p) : *(const ng_u16 *)p;
    } else {
        static_assert(BYTES == 1, "no access has this many bytes");
        pack.word[0] = CONSTANT ? __ldg((const ng_u8 *)p) : *(const ng_u8 *)p;
    }
    return pack;
}
#else
template <bool CONSTANT, int V, typename T>
NG_HELPER ng_pack<T, V> ng_fetch_wide(const T *p) {
    ng_check_aligned(p, V * sizeof(T) < 16 ? V * sizeof(T) : 16);
    ng_pack<T, V> pack = {};
    __builtin_memcpy(pack.word, p, V * sizeof(T));
    return pack;
}
#endif

//@ ng_load
// Loads of V neighbours: WIDE in one access, else one by one. With `left`, only so many are there.
template <bool WIDE, int V, typename T>
NG_HELPER ng_pack<T, V> ng_load(const T *p, ng_i64 left = V) {
    if constexpr (WIDE) return ng_fetch_wide<false, V>(p);
    return ng_fetch_each<false, V>(p, 1, left);
}
//@ ng_load_constant
// The same of memory that no output may have.
template <bool WIDE, int V, typename T>
NG_HELPER ng_pack<T, V> ng_load_constant(const T *p, ng_i64 left = V) {
    if constexpr (WIDE) return ng_fetch_wide<true, V>(p);
    return ng_fetch_each<true, V>(p, 1, left);
}
//@ ng_load_strided
template <int V, typename T>
NG_HELPER ng_pack<T, V> ng_load_strided(const T *p, ng_i64 stride, ng_i64 left = V) {
    return ng_fetch_each<false, V>(p, stride, left);
}
//@ ng_load_strided_constant
template <int V, typename T>
NG_HELPER ng_pack<T, V> ng_load_strided_constant(const T *p, ng_i64 stride, ng_i64 left = V) {
    return ng_fetch_each<true, V>(p, stride, left);
}
//@ ng_read
// One element, widened.
template <typename T>
NG_HELPER auto ng_read(const T *p) {
    return ng_get(ng_fetch_each<false, 1>(p, 1, 1), 0);
}
//@ ng_read_constant
template <typename T>
NG_HELPER auto ng_read_constant(const T *p) {
    return ng_get(ng_fetch_each<true, 1>(p, 1, 1), 0);
}

//@ ng_index
// An index that a tensor gives: outside its dim it is undefined on a GPU, and stops the host device.
#if NG_DEVICE
NG_HELPER ng_i64 ng_index(ng_i64 index, ng_i64) { return index; }
#else
NG_HELPER ng_i64 ng_index(ng_i64 index, ng_i64 extent) {
    if (index < 0 || index >= extent) ng_api->fail("an index of x[idx] lies outside its dim");
    return index;
}
#endif

//@ ng_put_out
#if NG_DEVICE
template <typename T, int V>
NG_HELPER void ng_put_out(T *p, const ng_pack<T, V> &pack, int lane) {
    if constexpr (sizeof(T) == 1) *(ng_u8 *)p = (ng_u8)(pack.word[lane / 4] >> 8 * (lane % 4));
    if constexpr (sizeof(T) == 2) *(ng_u16 *)p = (ng_u16)(pack.word[lane / 2] >> 16 * (lane % 2));
    if constexpr (sizeof(T) == 4) *(ng_u32 *)p = pack.word[lane];
    if constexpr (sizeof(T) == 8) *(ng_u64 *)p = pack.word[2 * lane] | (ng_u64)pack.word[2 * lane + 1] << 32;
}
#else
template <typename T, int V>
NG_HELPER void ng_put_out(T *p, const ng_pack<T, V> &pack, int lane) {
    __builtin_memcpy(p, (const char *)pack.word + lane * sizeof(T), sizeof(T));
}
#endif
//@ ng_put_wide
#if NG_DEVICE
template <typename T, int V>
NG_HELPER void ng_put_wide(T *p, const ng_pack<T, V> &pack) {
    constexpr int BYTES = V * (int)sizeof(T);
    if constexpr (BYTES % 16 == 0) {
#pragma unroll
        for (int i = 0; i < BYTES / 16; i++)
            ((uint4 *)p)[i] = make_uint4(pack.word[4 * i], pack.word[4 * i + 1], pack.word[4 * i + 2],
                                         pack.word[4 * i + 3]);
    } else if constexpr (BYTES == 8) {
        *(uint2 *)p = make_uint2(pack.word[0], pack.word[1]);
    } else if constexpr (BYTES == 4) {
        *(ng_u32 *)p = pack.word[0];
    } else if constexpr (BYTES == 2) {
        *(ng_u16 *)p = (ng_u16)pack.word[0];
    } else {
        static_assert(BYTES == 1, "no access has this many bytes");
        *(ng_u8 *)p = (ng_u8)pack.word[0];
    }
}
#else
template <typename T, int V>
NG_HELPER void ng_put_wide(T *p, const ng_pack<T, V> &pack) {
    ng_check_aligned(p, V * sizeof(T) < 16 ? V * sizeof(T) : 16);
    __builtin_memcpy(p, pack.word, V * sizeof(T));
}
#endif
//@ ng_store_strided
// Stores of V values, rounded to the element's type.
template <int V, typename T, typename C>
NG_HELPER void ng_store_strided(T *p, const C (&lanes)[V], ng_i64 stride, ng_i64 left = V) {
    ng_pack<T, V> pack;
    ng_narrow(pack, lanes);
#pragma unroll
    for (int i = 0; i < V; i++)
        if (i < left) ng_put_out(p + i * stride, pack, i);
}
//@ ng_store
template <bool WIDE, int V, typename T, typename C>
NG_HELPER void ng_store(T *p, const C (&lanes)[V], ng_i64 left = V) {
    if constexpr (WIDE) {
        ng_pack<T, V> pack;
        ng_narrow(pack, lanes);
        ng_put_wide(p, pack);
    } else {
        ng_store_strided(p, lanes, 1, left);
    }
}
//@ ng_write
template <typename T, typename C>
NG_HELPER void ng_write(T *p, C value) {
    const C lanes[1] = {value};
    ng_store_strided(p, lanes, 1);
}
//@ ng_apart
// Loads of memory that may change stay on their side of it: without that all accesses of a row are loaded at once, into
// registers that are not there.
#if NG_DEVICE
NG_HELPER void ng_apart() { asm volatile("" ::: "memory"); }
#else
NG_HELPER void ng_apart() {}
#endif
//@ ng_opaque
// Keeps the compiler from carrying what it widened from the words before a reduction past it.
#if NG_DEVICE
template <typename T, int V>
NG_HELPER void ng_opaque(ng_pack<T, V> &pack) {
#pragma unroll
    for (int i = 0; i < (int)(sizeof(pack.word) / 4); i++) asm volatile("" : "+r"(pack.word[i]));
}
#else
template <typename T, int V>
NG_HELPER void ng_opaque(ng_pack<T, V> &) {}
#endif
//@ ng_turn
// Moves kept chunks one place on, so that kept[0] is the next one's in loops that are not unrolled: what lies in registers
// has no other index than a constant. AGAIN: a later phase reads them, so the first comes last.
template <bool AGAIN, typename P, int N>
NG_HELPER void ng_turn(P (&kept)[N]) {
    const P first = kept[0];
#pragma unroll
    for (int i = 0; i + 1 < N; i++) kept[i] = kept[i + 1];
    if constexpr (AGAIN) kept[N - 1] = first;
}
template <bool AGAIN, typename C, int N, int V>
NG_HELPER void ng_turn(C (&kept)[N][V]) {
#pragma unroll
    for (int v = 0; v < V; v++) {
        const C first = kept[0][v];
#pragma unroll
        for (int i = 0; i + 1 < N; i++) kept[i][v] = kept[i + 1][v];
        if constexpr (AGAIN) kept[N - 1][v] = first;
    }
}

// ---- threads
//@ ng_thread
#if NG_DEVICE
NG_HELPER int ng_thread() { return (int)threadIdx.x; }
#else
NG_HELPER int ng_thread() { return (int)ng_api->thread(); }
#endif
//@ ng_block
#if NG_DEVICE
NG_HELPER ng_i64 ng_block() { return (ng_i64)blockIdx.x; }
#else
NG_HELPER ng_i64 ng_block() { return (ng_i64)ng_api->block(); }
#endif
//@ ng_share
// Where the part's share of so many things begins: shares differ by one at most, the larger ones first.
NG_HELPER ng_i64 ng_share(ng_i64 count, ng_i64 part, ng_i64 parts) {
    const ng_i64 more = count % parts;
    return count / parts * part + (part < more ? part : more);
}
//@ ng_barrier
// The number is that of the call in the text: the host device tells calls apart by it, a GPU has no use for it.
#if NG_DEVICE
NG_HELPER void ng_barrier(int) { __syncthreads(); }
#else
NG_HELPER void ng_barrier(int site) { ng_api->barrier((ng_u32)site); }
#endif
//@ ng_shared
// The slice of shared memory that begins at this offset.
#if NG_DEVICE
template <typename T>
NG_HELPER T *ng_shared(int offset) {
    extern __shared__ __align__(16) unsigned char ng_shared_base[];
    return (T *)(ng_shared_base + offset);
}
#else
template <typename T>
NG_HELPER T *ng_shared(int offset) {
    return (T *)ng_api->shared((ng_u32)offset);
}
#endif
//@ ng_shuffle_word
// The value of the lane whose index differs in the bits of `distance`, among `lanes` neighbours (a power of two).
#if NG_DEVICE
NG_HELPER ng_u32 ng_shuffle_word(ng_u32 value, int distance, int lanes) {
    const ng_u32 mask = lanes == 32 ? 0xffffffffu : ((1u << lanes) - 1u) << (threadIdx.x % 32 & ~(ng_u32)(lanes - 1));
    return __shfl_xor_sync(mask, value, distance);
}
#else
NG_HELPER ng_u64 ng_shuffle_word(int site, ng_u64 value, int distance, int lanes) {
    if (distance >= lanes) ng_api->fail("a shuffle reaches beyond its lanes");
    return ng_api->shuffle((ng_u32)site, value, ng_api->thread() % 32 ^ (ng_u32)distance);
}
#endif
//@ ng_shuffle_xor f32
// The first number is that of the call in the text: the host device tells calls apart by it, a GPU has no use for it.
#if NG_DEVICE
NG_HELPER float ng_shuffle_xor(int, float value, int distance, int lanes) {
    return ng_f32(ng_shuffle_word(ng_bits_f32(value), distance, lanes));
}
#else
NG_HELPER float ng_shuffle_xor(int site, float value, int distance, int lanes) {
    return ng_f32((ng_u32)ng_shuffle_word(site, ng_bits_f32(value), distance, lanes));
}
#endif
//@ ng_shuffle_xor i64
#if NG_DEVICE
NG_HELPER ng_i64 ng_shuffle_xor(int, ng_i64 value, int distance, int lanes) {
    const ng_u32 low = ng_shuffle_word((ng_u32)(ng_u64)value, distance, lanes);
    const ng_u32 high = ng_shuffle_word((ng_u32)((ng_u64)value >> 32), distance, lanes);
    return (ng_i64)(low | (ng_u64)high << 32);
}
#else
NG_HELPER ng_i64 ng_shuffle_xor(int site, ng_i64 value, int distance, int lanes) {
    return (ng_i64)ng_shuffle_word(site, (ng_u64)value, distance, lanes);
}
#endif
//@ ng_shuffle_xor f64
#if NG_DEVICE
NG_HELPER double ng_shuffle_xor(int, double value, int distance, int lanes) {
    const ng_u32 low = ng_shuffle_word((ng_u32)ng_bits_f64(value), distance, lanes);
    const ng_u32 high = ng_shuffle_word((ng_u32)(ng_bits_f64(value) >> 32), distance, lanes);
    return ng_f64(low | (ng_u64)high << 32);
}
#else
NG_HELPER double ng_shuffle_xor(int site, double value, int distance, int lanes) {
    return ng_f64(ng_shuffle_word(site, ng_bits_f64(value), distance, lanes));
}
#endif
//@ ng_shuffle_xor bool
#if NG_DEVICE
NG_HELPER bool ng_shuffle_xor(int, bool value, int distance, int lanes) {
    return ng_shuffle_word(value, distance, lanes) != 0;
}
#else
NG_HELPER bool ng_shuffle_xor(int site, bool value, int distance, int lanes) {
    return ng_shuffle_word(site, value, distance, lanes) != 0;
}
#endif
