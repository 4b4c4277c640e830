// Reductions of two results: what a thread, then a warp, then a CTA knows of a row, and how two of them become one.
// Markers as in helpers.cuh. A thread takes an access at a time, in the order of its columns, so that neither what else a
// trip holds nor how an access is made changes a bit; merging is symmetric, so that all lanes of a butterfly agree.
#pragma once
#include "math.cuh"

//@ ng_online
// The amax of what was met and the sum of exp(x - amax), that of -inf being 0. Nothing met is -inf and 0.
template <typename C>
struct ng_online {
    C top = (C)ng_f32(0xff800000), sum = 0;
};
//@ ng_online_base
// What exponents count from. Where all is -inf, any finite number: -inf - -inf would be NaN and never leave the sum.
template <typename C>
NG_HELPER C ng_online_base(C top) {
    return top == (C)ng_f32(0xff800000) ? (C)0 : top;
}
//@ ng_online_add
// One access more, of which the first `left` elements are there.
template <int V, typename C>
NG_HELPER void ng_online_add(ng_online<C> &acc, const C (&x)[V], ng_i64 left = V) {
    C top = acc.top;
#pragma unroll
    for (int i = 0; i < V; i++)
        if (i < left) top = ng_maximum(top, x[i]);
    const C base = ng_online_base(top);
    acc.sum = acc.sum * ng_exp(acc.top - base);
#pragma unroll
    for (int i = 0; i < V; i++)
        if (i < left) acc.sum = acc.sum + ng_exp(x[i] - base);
    acc.top = top;
}
//@ ng_online_merge
template <typename C>
NG_HELPER ng_online<C> ng_online_merge(const ng_online<C> &a, const ng_online<C> &b) {
    ng_online<C> both;
    both.top = ng_maximum(a.top, b.top);
    const C base = ng_online_base(both.top);
    both.sum = a.sum * ng_exp(a.top - base) + b.sum * ng_exp(b.top - base);
    return both;
}
//@ ng_online_shuffle
template <typename C>
NG_HELPER ng_online<C> ng_online_shuffle(int site, const ng_online<C> &acc, int distance, int lanes) {
    ng_online<C> other;
    other.top = ng_shuffle_xor(site, acc.top, distance, lanes);
    other.sum = ng_shuffle_xor(site, acc.sum, distance, lanes);
    return other;
}
//@ ng_online_result
// The amax, or the sum, which is NaN where the amax is infinite: x - amax is, for some x.
template <int K, typename C>
NG_HELPER C ng_online_result(const ng_online<C> &acc) {
    return K == 0 ? acc.top : acc.sum + (acc.top - acc.top);
}

//@ ng_welford
// Of what was met: how many, and sums of x - shift and of its square, which is NaN once an x was infinite. The shift
// follows the mean, whenever there are twice as many as when it last moved: so both sums stay as small as the elements'
// spread, a large mean costs no digits, and an outlier is soon averaged away. Nothing met is all zeros.
template <typename C>
struct ng_welford {
    C count = 0, shift = 0, sum = 0, square = 0;
    C due = 0;  // the shift moves at this count
};
//@ ng_welford_far f32
// Numbers from 2^100 (2^900) on are no shifts: sums of differences from them might overflow where the mean does not.
NG_HELPER float ng_welford_far(float) { return ng_f32(0x71800000); }
//@ ng_welford_far f64
NG_HELPER double ng_welford_far(double) { return ng_f64(0x7830000000000000ull); }
//@ ng_welford_near
template <typename C>
NG_HELPER C ng_welford_near(C mean) {
    return ng_abs(mean) < ng_welford_far(mean) ? mean : (C)0;
}
//@ ng_welford_offset
// From the shift to the mean.
template <typename C>
NG_HELPER C ng_welford_offset(const ng_welford<C> &a) {
    return a.sum / ng_maximum(a.count, (C)1);
}
//@ ng_welford_centred
// The sum of squares about the mean; one that overflowed stays infinite.
template <typename C>
NG_HELPER C ng_welford_centred(const ng_welford<C> &a, C offset) {
    const C centred = ng_maximum(a.square - a.sum * offset, (C)0);
    return ng_isinf(a.square) ? a.square : centred;
}
//@ ng_welford_about
// The sum of squares about a shift that far from the mean.
template <typename C>
NG_HELPER C ng_welford_about(C centred, C sum, C offset) {
    return ng_isinf(centred) ? centred : centred + sum * offset;
}
//@ ng_welford_settle
// The same about the mean, as near as C has one.
template <typename C>
NG_HELPER void ng_welford_settle(ng_welford<C> &a) {
    const C offset = ng_welford_offset(a), centred = ng_welford_centred(a, offset);
    const C shift = ng_welford_near(a.shift + offset);
    a.sum = a.sum - a.count * (shift - a.shift);
    a.shift = shift;
    a.square = ng_welford_about(centred, a.sum, ng_welford_offset(a));
}
//@ ng_welford_add
// One access more, of which the first `left` elements are there. The very first is about its own mean.
template <int V, typename C>
NG_HELPER void ng_welford_add(ng_welford<C> &a, const C (&x)[V], ng_i64 left = V) {
    const C there = left < V ? (C)left : (C)V;
    if (a.count == 0) {
        C sum = 0;
#pragma unroll
        for (int i = 1; i < V; i++)
            if (i < left) sum = sum + (x[i] - x[0]);
        a.shift = ng_welford_near(x[0] + sum / there);
    }
#pragma unroll
    for (int i = 0; i < V; i++) {
        const C away = x[i] - a.shift;
        a.sum = i < left ? a.sum + away : a.sum;
        a.square = i < left ? ng_fma(away, ng_fma(away, (C)0, away), a.square) : a.square;
    }
    a.count = a.count + there;
    if (a.count >= a.due) {
        ng_welford_settle(a);
        a.due = 2 * a.count;
    }
}
//@ ng_welford_merge
template <typename C>
NG_HELPER ng_welford<C> ng_welford_merge(const ng_welford<C> &a, const ng_welford<C> &b) {
    const C a_offset = ng_welford_offset(a), b_offset = ng_welford_offset(b);
    const C away = (b.shift - a.shift) + (b_offset - a_offset);  // from mean to mean
    ng_welford<C> both;
    both.count = a.count + b.count;
    const C count = ng_maximum(both.count, (C)1);
    both.shift = ng_welford_near((a.count * (a.shift + a_offset) + b.count * (b.shift + b_offset)) / count);
    both.sum = (a.sum - a.count * (both.shift - a.shift)) + (b.sum - b.count * (both.shift - b.shift));
    const C squares = ng_welford_centred(a, a_offset) + ng_welford_centred(b, b_offset);
    const C centred = ng_welford_about(squares, away, away * (a.count * b.count / count));
    both.square = ng_welford_about(centred, both.sum, ng_welford_offset(both));
    return both;
}
//@ ng_welford_shuffle
template <typename C>
NG_HELPER ng_welford<C> ng_welford_shuffle(int site, const ng_welford<C> &acc, int distance, int lanes) {
    ng_welford<C> other;
    other.count = ng_shuffle_xor(site, acc.count, distance, lanes);
    other.shift = ng_shuffle_xor(site, acc.shift, distance, lanes);
    other.sum = ng_shuffle_xor(site, acc.sum, distance, lanes);
    other.square = ng_shuffle_xor(site, acc.square, distance, lanes);
    return other;
}
//@ ng_welford_result
// The mean (of nothing: NaN), or the sum of squares about it.
template <int K, typename C>
NG_HELPER C ng_welford_result(const ng_welford<C> &a) {
    if (K == 0) return a.shift + a.sum / a.count;
    return ng_welford_centred(a, ng_welford_offset(a));
}
