// row_registers: the elements of a row stay in its threads' registers from the first phase to the last. One tile a CTA:
// ROWS rows, ROW_THREADS threads each, CHUNKS accesses of VECTOR elements a thread. Phases are divided by reductions of
// the row.
//
// A skeleton is CUDA with sample text where gen/emit_kernel.c puts its own (gen/emit_skeleton.c):
//     //@ begin, //@ end       what is copied lies between
//     //@ fill NAME { ... //@ }    the sample is replaced
//     //@ if NAME { ... //@ }      kept where there is something to do
//     //@ each phase { ... //@ }   once for each phase
// The sample is the first phase of an RMSNorm of 768 columns.
#include "math.cuh"
//@ begin
//@ fill head {
template <bool WIDE>
NG_HELPER void sample_row_registers(const float *__restrict__ p_x, float *__restrict__ p_ms, ng_i64 d_M) {
    using Column = int;
    constexpr int ROW_THREADS = 64, ROWS = 1, VECTOR = 4, CHUNKS = 3;
    constexpr Column columns = 768;
    constexpr bool FULL = true;
    const ng_i64 rows = d_M;
//@ }
    const int thread = ng_thread();
    const int t = thread % ROW_THREADS;     // among the row's threads
    const int slot = thread / ROW_THREADS;  // among the CTA's rows
    const ng_i64 row = ng_block() * ROWS + slot;
    const bool live = row < rows;
    //@ fill bases {
    const float *const row_x = p_x + row * 768;
    //@ }
    //@ each phase {

    //@ fill row {
    //@ }
    //@ fill declare {
    ng_pack<float, VECTOR> r0_x[CHUNKS];
    float acc1 = ng_f32(0x00000000);
    //@ }
    //@ if loads {
#pragma unroll
    for (int u = 0; u < CHUNKS; u++) {
        const Column c = ((Column)u * ROW_THREADS + t) * VECTOR;
        if (FULL || (live && c < columns)) {
            //@ fill split_loads {
            //@ }
            //@ fill loads {
            r0_x[u] = ng_load_constant<WIDE, VECTOR>(row_x + c);
            //@ }
        }
    }
    //@ }
    //@ if lanes {
    //@ fill unroll {
#pragma unroll
    //@ }
    for (int u = 0; u < CHUNKS; u++) {
        const Column c = ((Column)u * ROW_THREADS + t) * VECTOR;
        if (FULL || (live && c < columns)) {
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
                acc1 = ng_fma(v0_x, v0_x, acc1);
                //@ }
            }
            //@ fill after {
            //@ }
        }
        //@ fill turn {
        //@ }
    }
    //@ }
    //@ fill combine {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) acc1 = acc1 + ng_shuffle_xor(0, acc1, distance, 32);
    float *const slots1 = ng_shared<float>(0) + slot * (ROW_THREADS / 32);
    if (thread % 32 == 0) slots1[t / 32] = acc1;
    ng_barrier(1);
    const float v1 = slots1[0] + slots1[1];
    if (live && t == 0) ng_write(p_ms + row, v1);
    //@ }
    //@ }
}
//@ end
NG_KERNEL __launch_bounds__(64) void sample_row_registers_aligned(const float *p_x, float *p_ms, ng_i64 d_M) {
    sample_row_registers<true>(p_x, p_ms, d_M);
}
