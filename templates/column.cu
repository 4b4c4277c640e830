// column: sums across rows. LANES accesses of VECTOR elements stand side by side along the kept axes; GROUPS of threads
// take every GROUPS-th row of the CTA's part, CHUNKS of them a trip; then the groups' accumulators are combined, one
// after another. A CTA stores one partial row, or, where it has all rows, what follows the sum. finalize is the same over
// the parts. Markers as in row_registers.cu.
// The sample adds up the rows of a matrix in parts.
#include "math.cuh"
//@ begin
//@ fill head {
template <bool WIDE>
NG_HELPER void sample_column(const float *__restrict__ p_x, float *p_ws0, ng_i64 d_M, ng_i64 P0) {
    using Column = int;
    constexpr int LANES = 32, GROUPS = 8, VECTOR = 4, CHUNKS = 4;
    const ng_i64 rows = d_M;
//@ }
    const int thread = ng_thread();
    const int lane = thread % LANES;   // among the accesses of a row
    const int group = thread / LANES;  // among the rows of a trip
    //@ fill columns {
    const ng_i64 part = ng_block() % P0, tile = ng_block() / P0;
    const ng_i64 first = ng_share(rows, part, P0), after = ng_share(rows, part + 1, P0);
    const Column access = (Column)tile * LANES + lane;
    const Column a_c = access * VECTOR;
    const bool live = a_c < 768;
    //@ }
    //@ each phase {

    //@ fill row {
    //@ }
    //@ fill declare {
    float acc1[VECTOR];
#pragma unroll
    for (int v = 0; v < VECTOR; v++) acc1[v] = ng_f32(0x00000000);
    //@ }
    //@ if lanes {
    for (ng_i64 trip = first + group; trip < after; trip += GROUPS * CHUNKS) {
        //@ fill packs {
        ng_pack<float, VECTOR> r0_x[CHUNKS];
        //@ }
        //@ if loads {
#pragma unroll
        for (int u = 0; u < CHUNKS; u++) {
            const ng_i64 row = trip + u * GROUPS;
            if (live && row < after) {
                //@ fill split_loads {
                //@ }
                //@ fill loads {
                r0_x[u] = ng_load_constant<WIDE, VECTOR>(p_x + (row * 768 + a_c));
                //@ }
            }
        }
        //@ }
#pragma unroll
        for (int u = 0; u < CHUNKS; u++) {
            const ng_i64 row = trip + u * GROUPS;
            if (live && row < after) {
                //@ fill split {
                //@ }
                //@ fill before {
                //@ }
#pragma unroll
                for (int v = 0; v < VECTOR; v++) {
                    //@ fill tail {
                    //@ }
                    //@ fill lanes {
                    const float v0_x = ng_get(r0_x[u], v);
                    acc1[v] = acc1[v] + v0_x;
                    //@ }
                }
                //@ fill after {
                //@ }
            }
        }
    }
    //@ }
    //@ fill combine {
    float *const slots1 = ng_shared<float>(0) + lane;
#pragma unroll
    for (int v = 0; v < VECTOR; v++) slots1[(group * VECTOR + v) * LANES] = acc1[v];
    ng_barrier(1);
    float v1[VECTOR];
#pragma unroll
    for (int v = 0; v < VECTOR; v++) {
        v1[v] = slots1[v * LANES];
#pragma unroll 8
        for (int g = 1; g < GROUPS; g++) v1[v] = v1[v] + slots1[(g * VECTOR + v) * LANES];
    }
    if (live && group == 0) ng_store<WIDE>(p_ws0 + (part * 768 + a_c), v1);
    //@ }
    //@ }
}
//@ end
NG_KERNEL __launch_bounds__(256) void sample_column_aligned(const float *p_x, float *p_ws0, ng_i64 d_M, ng_i64 P0) {
    sample_column<true>(p_x, p_ws0, d_M, P0);
}
