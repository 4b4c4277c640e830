// row_stream: rows and sums across them in one pass. A CTA stays: it takes a share of the rows, ROWS of them a trip with
// ROW_THREADS threads each, CHUNKS accesses of VECTOR elements a thread. The sums' accumulators stay in its registers for
// all its rows; after the last trip those of its ROWS slots are combined in order, and it stores one partial row. Every
// thread makes every trip, so that all meet its barriers; a slot without a row adds nothing. Within a trip, phases are as
// in row_registers.cu; so are the markers. The warps' slots of a row's reductions are taken in turn by odd and even trips:
// who is late to read those of one trip has not passed the barrier of the next, which those of the one after wait for.
// The sample adds up the squares of each of 256 columns, and of each row.
#include "math.cuh"
//@ begin
//@ fill head {
template <bool WIDE>
NG_HELPER void sample_row_stream(const float *__restrict__ p_x, float *__restrict__ p_ms, float *p_ws0, ng_i64 d_M,
                                 ng_i64 P0) {
    using Column = int;
    constexpr int ROW_THREADS = 32, ROWS = 8, VECTOR = 4, CHUNKS = 2;
    constexpr Column columns = 256;
    constexpr bool FULL = false;
    const ng_i64 rows = d_M;
//@ }
    const int thread = ng_thread();
    const int t = thread % ROW_THREADS;     // among the row's threads
    const int slot = thread / ROW_THREADS;  // among the CTA's rows
    //@ fill place {
    const ng_i64 part = ng_block();
    const ng_i64 first = ng_share(rows, part, P0), after = ng_share(rows, part + 1, P0);
    //@ }
    //@ fill accumulators {
    float acc1[CHUNKS][VECTOR];
#pragma unroll
    for (int u = 0; u < CHUNKS; u++)
#pragma unroll
        for (int v = 0; v < VECTOR; v++) acc1[u][v] = ng_f32(0x00000000);
    //@ }
    //@ if resident {

    // column operands, for all rows
    //@ fill resident_packs {
    //@ }
#pragma unroll
    for (int u = 0; u < CHUNKS; u++) {
        const Column c = ((Column)u * ROW_THREADS + t) * VECTOR;
        if (FULL || c < columns) {
            //@ fill split_resident {
            //@ }
            //@ fill resident {
            //@ }
        }
    }
    //@ }
    //@ fill ahead {
    ng_pack<float, VECTOR> n0_x[CHUNKS] = {};
    {
        const ng_i64 row = first + slot;
        const bool live = row < after;
        const float *const row0_x = p_x + row * 256;
#pragma unroll
        for (int u = 0; u < CHUNKS; u++) {
            const Column c = ((Column)u * ROW_THREADS + t) * VECTOR;
            if (live && (FULL || c < columns)) n0_x[u] = ng_load_constant<WIDE, VECTOR>(row0_x + c);
        }
    }
    //@ }

#pragma unroll 1
    //@ fill trips {
    for (ng_i64 trip = first; trip < after; trip += ROWS) {
        //@ }
        //@ fill next {
        ng_pack<float, VECTOR> r0_x[CHUNKS];
#pragma unroll
        for (int u = 0; u < CHUNKS; u++) r0_x[u] = n0_x[u];
        {
            const ng_i64 row = trip + ROWS + slot;
            const bool live = row < after;
            const float *const row0_x = p_x + row * 256;
#pragma unroll
            for (int u = 0; u < CHUNKS; u++) {
                const Column c = ((Column)u * ROW_THREADS + t) * VECTOR;
                if (live && (FULL || c < columns)) n0_x[u] = ng_load_constant<WIDE, VECTOR>(row0_x + c);
            }
        }
        //@ }
        const ng_i64 row = trip + slot;
        const bool live = row < after;
        //@ fill bases {
        float *const row1_ms = p_ms + row;
        //@ }
        //@ each phase {

        //@ fill row {
        //@ }
        //@ fill declare {
        float acc3 = ng_f32(0x00000000);
        //@ }
        //@ if loads {
#pragma unroll
        for (int u = 0; u < CHUNKS; u++) {
            const Column c = ((Column)u * ROW_THREADS + t) * VECTOR;
            if (FULL || (live && c < columns)) {
                //@ fill split_loads {
                //@ }
                //@ fill loads {
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
                    acc3 = ng_fma(v0_x, v0_x, acc3);
                    acc1[u][v] = ng_fma(v0_x, v0_x, acc1[u][v]);
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
        for (int distance = 16; distance > 0; distance /= 2) acc3 = acc3 + ng_shuffle_xor(0, acc3, distance, 32);
        if (live && t == 0) ng_write(row1_ms, acc3);
        //@ }
        //@ }
    }

    // the CTA's rows
    //@ fill part_bases {
    float *const row2_ws0 = p_ws0 + part * 256;
    //@ }
    //@ if slots {
    //@ fill spill {
    float *const slots1 = ng_shared<float>(0) + t;
#pragma unroll
    for (int u = 0; u < CHUNKS; u++)
#pragma unroll
        for (int v = 0; v < VECTOR; v++) slots1[((slot * CHUNKS + u) * VECTOR + v) * ROW_THREADS] = acc1[u][v];
    ng_barrier(1);
    //@ }
    for (int u = slot; u < CHUNKS; u += ROWS) {
        const Column c = ((Column)u * ROW_THREADS + t) * VECTOR;
        if (c < columns) {
            //@ fill split_parts {
            //@ }
            //@ fill parts {
            float o1[VECTOR];
#pragma unroll
            for (int v = 0; v < VECTOR; v++) {
                o1[v] = slots1[(u * VECTOR + v) * ROW_THREADS];
                for (int s = 1; s < ROWS; s++)
                    o1[v] = o1[v] + slots1[((s * CHUNKS + u) * VECTOR + v) * ROW_THREADS];
            }
            ng_store<WIDE>(row2_ws0 + c, o1);
            //@ }
        }
    }
    //@ }
    //@ if alone {
#pragma unroll
    for (int u = 0; u < CHUNKS; u++) {
        const Column c = ((Column)u * ROW_THREADS + t) * VECTOR;
        if (FULL || c < columns) {
            //@ fill split_parts {
            //@ }
            //@ fill parts {
            ng_store<WIDE>(row2_ws0 + c, acc1[u]);
            //@ }
        }
    }
    //@ }
}
//@ end
NG_KERNEL __launch_bounds__(256) void sample_row_stream_aligned(const float *p_x, float *p_ms, float *p_ws0, ng_i64 d_M,
                                                                ng_i64 P0) {
    sample_row_stream<true>(p_x, p_ms, p_ws0, d_M, P0);
}
