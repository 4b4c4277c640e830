// pointwise: no reduction. A thread takes CHUNKS accesses of VECTOR elements along the innermost axis; the linear index
// of the access gives the other axes by division. Markers as in row_registers.cu.
// The sample adds a column operand to rows of any length.
#include "math.cuh"
//@ begin
//@ fill head {
template <bool WIDE>
NG_HELPER void sample_pointwise(const float *__restrict__ p_x, const float *__restrict__ p_b, float *__restrict__ p_y,
                                ng_i64 d_M, ng_i64 d_N) {
    using Column = ng_i64;
    constexpr int THREADS = 256, VECTOR = 4, CHUNKS = 1;
//@ }
    const int t = ng_thread();
    const ng_i64 block = ng_block();
    //@ fill row {
    //@ }
    //@ if lanes {
    //@ fill packs {
    ng_pack<float, VECTOR> r0_x[CHUNKS], r1_b[CHUNKS];
    //@ }
    //@ if loads {
#pragma unroll
    for (int u = 0; u < CHUNKS; u++) {
        const Column access = ((Column)block * CHUNKS + u) * THREADS + t;
        //@ fill split_loads {
        const Column runs = (d_N + VECTOR - 1) / VECTOR > 1 ? (d_N + VECTOR - 1) / VECTOR : 1;
        const Column a_c = access % runs * VECTOR, a_r = access / runs;
        const bool live = a_r < d_M && a_c < d_N;
        //@ }
        if (live) {
            //@ fill loads {
            r0_x[u] = ng_load_constant<WIDE, VECTOR>(p_x + (a_r * d_N + a_c), d_N - a_c);
            r1_b[u] = ng_load_constant<WIDE, VECTOR>(p_b + a_c, d_N - a_c);
            //@ }
        }
    }
    //@ }
#pragma unroll
    for (int u = 0; u < CHUNKS; u++) {
        const Column access = ((Column)block * CHUNKS + u) * THREADS + t;
        //@ fill split {
        const Column runs = (d_N + VECTOR - 1) / VECTOR > 1 ? (d_N + VECTOR - 1) / VECTOR : 1;
        const Column a_c = access % runs * VECTOR, a_r = access / runs;
        const bool live = a_r < d_M && a_c < d_N;
        //@ }
        if (live) {
            //@ fill before {
            float o2_y[VECTOR];
            //@ }
#pragma unroll
            for (int v = 0; v < VECTOR; v++) {
                //@ fill tail {
                if (!WIDE && a_c + v >= d_N) continue;
                //@ }
                //@ fill lanes {
                o2_y[v] = ng_get(r0_x[u], v) + ng_get(r1_b[u], v);
                //@ }
            }
            //@ fill after {
            ng_store<WIDE>(p_y + (a_r * d_N + a_c), o2_y, d_N - a_c);
            //@ }
        }
    }
    //@ }
    //@ fill rowstores {
    //@ }
}
//@ end
NG_KERNEL __launch_bounds__(256) void sample_pointwise_any(const float *p_x, const float *p_b, float *p_y, ng_i64 d_M,
                                                           ng_i64 d_N) {
    sample_pointwise<false>(p_x, p_b, p_y, d_M, d_N);
}
