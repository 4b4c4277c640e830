// row_loop: rows of any length, and row_split, where several CTAs share a row. Each phase walks the row again in trips of CHUNKS accesses of VECTOR elements a thread,
// loading what it needs; nothing but row values crosses phases. Markers as in row_registers.cu.
// The sample is the first phase of an RMSNorm of any length.
#include "math.cuh"
//@ begin
//@ fill head {
template <bool WIDE>
NG_HELPER void sample_row_loop(const float *__restrict__ p_x, float *__restrict__ p_ms, ng_i64 d_M, ng_i64 d_N) {
    using Column = ng_i64;
    constexpr int ROW_THREADS = 32, ROWS = 4, VECTOR = 4, CHUNKS = 4;
    const Column columns = d_N;
    constexpr bool FULL = false;
    const ng_i64 rows = d_M;
//@ }
    const int thread = ng_thread();
    const int t = thread % ROW_THREADS;     // among the row's threads
    const int slot = thread / ROW_THREADS;  // among the CTA's rows
    //@ fill place {
    const ng_i64 row = ng_block() * ROWS + slot;
    //@ }
    const bool live = row < rows;
    //@ fill bases {
    const float *const row_x = p_x + row * d_N;
    //@ }
    //@ each phase {

    //@ fill row {
    //@ }
    //@ fill declare {
    float acc1 = ng_f32(0x00000000);
    //@ }
    //@ if lanes {
#pragma unroll 1  // a trip has enough in flight
    //@ fill trips {
    for (Column trip = 0; trip < columns; trip += CHUNKS * ROW_THREADS * VECTOR) {
        //@ }
        //@ fill packs {
        ng_pack<float, VECTOR> r0_x[CHUNKS];
        //@ }
        //@ if loads {
#pragma unroll
        for (int u = 0; u < CHUNKS; u++) {
            const Column c = trip + (u * ROW_THREADS + t) * VECTOR;
            if (FULL || (live && c < columns)) {
                //@ fill split_loads {
                //@ }
                //@ fill loads {
                r0_x[u] = ng_load_constant<WIDE, VECTOR>(row_x + c, columns - c);
                //@ }
            }
        }
        //@ }
        //@ fill unroll {
#pragma unroll
        //@ }
        for (int u = 0; u < CHUNKS; u++) {
            const Column c = trip + (u * ROW_THREADS + t) * VECTOR;
            if (FULL || (live && c < columns)) {
                //@ fill split {
                //@ }
                //@ fill before {
                //@ }
#pragma unroll
                for (int v = 0; v < VECTOR; v++) {
                    //@ fill tail {
                    if (!WIDE && c + v >= columns) continue;
                    //@ }
                    //@ fill lanes {
                    const float v0_x = ng_get(r0_x[u], v);
                    acc1 = ng_fma(v0_x, v0_x, acc1);
                    //@ }
                }
                //@ fill after {
                //@ }
            }
            //@ fill turn {
            //@ }
        }
    }
    //@ }
    //@ fill combine {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) acc1 = acc1 + ng_shuffle_xor(0, acc1, distance, 32);
    if (live && t == 0) ng_write(p_ms + row, acc1);
    //@ }
    //@ }
}
//@ end
NG_KERNEL __launch_bounds__(128) void sample_row_loop_any(const float *p_x, float *p_ms, ng_i64 d_M, ng_i64 d_N) {
    sample_row_loop<false>(p_x, p_ms, d_M, d_N);
}
