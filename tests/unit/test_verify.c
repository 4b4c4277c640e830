/* V1 to V8: texts that break one rule each, with the message, and texts near them that break none. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "ir/verify_map.h"
#include "tests/support/prog_case.h"
#include "tests/support/random.h"

/* Ins that the cases share; what they write they declare. */
#define INS                                                                                                            \
    "prog p\ndim M any\ndim N any\ndim L any max 64\npart P0\n"                                                        \
    "buf x f32 [M,64] in\nbuf h bf16 [M,64] in\nbuf k i64 [M] in\nbuf b bool [M,64] in\nbuf v f32 [64] in\n"
#define OUT "buf y f32 [M,64] out\n"
#define ROW "buf s f32 [M] out\n"
#define NEST "nest n (r:M | c:64) ROW {\n"
#define LOAD_X "%0 f32<rc> = load x[0 + r*64 + c*1]\n"
#define STORE_Y(value) "store y[0 + r*64 + c*1] " value "\n"
#define PARTIAL "buf w f32 [P0,64] ws\n"

typedef struct Case {
    const char *text;
    const char *message;
} Case;

static const Case breaches[] = {
    /* V1 */
    {INS OUT NEST "%0 f32<rc> = neg %1\n%1 f32<rc> = load x[0 + r*64 + c*1]\n" STORE_Y("%0") "}\n",
     "V1: n %0: an operand is not defined before"},
    {INS OUT NEST "%0 f32<rc> = neg %0\n" STORE_Y("%0") "}\n", "V1: n %0: an operand is not defined before"},
    {INS OUT NEST "%0 f32<rc> = load x[0 + %1*64 + c*1]\n%1 i64<r> = load k[0 + r*1]\n" STORE_Y("%0") "}\n",
     "V1: n %0: the gathered index is not defined before"},
    {INS ROW NEST LOAD_X "%1 f32<r> = reduce add {c} %0 %0\nstore s[0 + r*1] %1\n}\n",
     "V1: n %1: reduce takes 1 operands, not 2"},
    {INS OUT "buf t f32 [M,64] tmp\n" NEST "%0 f32<rc> = load t[0 + r*64 + c*1]\n" STORE_Y("%0") "}\n",
     "V1: n %0: t is read but never written"},
    {INS OUT "buf t f32 [M,64] tmp\n" NEST "%0 f32<rc> = load t[0 + r*64 + c*1]\n" STORE_Y(
         "%0") "}\nnest m (r:M | c:64) ROW {\n" LOAD_X "store t[0 + r*64 + c*1] %0\n}\n",
     "V1: n %0: t is read before nest m writes it"},
    {INS OUT "buf t f32 [M,64] tmp\n" NEST LOAD_X
             "store t[0 + r*64 + c*1] %0\n%1 f32<rc> = load t[0 + r*64 + c*1]\n" STORE_Y("%1") "}\n",
     "V1: n %1: t is read in the nest that writes it"},
    /* V2 */
    {INS OUT NEST "%0 f32<c> = load x[0 + r*64 + c*1]\n" STORE_Y("%0") "}\n", "V2: n %0: its domain is <rc>, not <c>"},
    {INS OUT NEST "%0 f32<rc> = load v[0 + c*1]\n" STORE_Y("%0") "}\n", "V2: n %0: its domain is <c>, not <rc>"},
    {INS OUT NEST "%0 i64<r> = load k[0 + r*1]\n%1 f32<c> = load x[0 + c*1 + %0*64]\n" STORE_Y("%1") "}\n",
     "V2: n %1: its domain is <rc>, not <c>"},
    {INS OUT NEST LOAD_X "%1 f32<r> = neg %0\n" STORE_Y("%1") "}\n", "V2: n %1: its domain is <rc>, not <r>"},
    {INS OUT NEST LOAD_X "%1 f32<rc> = reduce add {c} %0\n" STORE_Y("%1") "}\n",
     "V2: n %1: its domain is <r>, not <rc>"},
    {INS OUT NEST LOAD_X "%1 f32<rc> = reduce add {} %0\n" STORE_Y("%1") "}\n",
     "V2: n %1: it consumes no axis of the nest"},
    {INS OUT NEST "%0 i64<r> = iota c\n%1 f32<r> = cast %0\n" STORE_Y("%1") "}\n",
     "V2: n %0: its domain is <c>, not <r>"},
    {INS OUT NEST "%0 f32<r> = const 0x0\n" STORE_Y("%0") "}\n", "V2: n %0: its domain is <>, not <r>"},
    /* V3 */
    {INS OUT NEST "%0 bf16<rc> = load h[0 + r*64 + c*1]\n%1 f32<rc> = neg %0\n" STORE_Y("%1") "}\n",
     "V3: n %0: a load does not widen bf16 to bf16"},
    {INS OUT "buf d f64 [M,64] in\n" NEST "%0 f32<rc> = load d[0 + r*64 + c*1]\n" STORE_Y("%0") "}\n",
     "V3: n %0: a load does not widen f64 to f32"},
    {INS OUT NEST "%0 f32<r> = load k[0 + r*1]\n" STORE_Y("%0") "}\n", "V3: n %0: a load does not widen i64 to f32"},
    {INS OUT NEST LOAD_X "%1 bf16<rc> = mul %0 %0\n" STORE_Y("%1") "}\n", "V3: n %1: its dtype is f32, not bf16"},
    {INS OUT NEST LOAD_X "%1 f32<rc> = lt %0 %0\n" STORE_Y("%1") "}\n", "V3: n %1: its dtype is bool, not f32"},
    {INS OUT NEST LOAD_X "%1 f32<rc> = where %0 %0 %0\n" STORE_Y("%1") "}\n",
     "V3: n %1: where does not take operands of these dtypes"},
    {INS ROW NEST LOAD_X "%1 bf16<r> = reduce add {c} %0\nstore s[0 + r*1] %1\n}\n",
     "V3: n %1: its dtype is f32, not bf16"},
    {INS OUT NEST "%0 f32<> = size M\n" STORE_Y("%0") "}\n", "V3: n %0: its dtype is i64, not f32"},
    {INS OUT NEST "%0 f32<c> = load v[0 + c*1]\n%1 f32<rc> = load x[0 + r*64 + %0*1]\n" STORE_Y("%1") "}\n",
     "V3: n %1: the gathered index is no integer"},
    {INS "buf t bf16 [M,64] tmp\n" NEST LOAD_X "store t[0 + r*64 + c*1] %0\n}\n",
     "V3: t: a tmp holds a dtype of arithmetic, not bf16"},
    {INS "buf w f16 [P0,64] ws\n" NEST LOAD_X "partial_accumulate add {r} w[0 + c*1] %0\n}\n",
     "V3: w: a ws holds a dtype of arithmetic, not f16"},
    {INS "buf t f32 [M,64] tmp\n" NEST LOAD_X "%1 f64<rc> = cast %0\nstore t[0 + r*64 + c*1] %1\n}\n",
     "V3: n store t: a buf of f32 does not hold f64 in the dtype of arithmetic"},
    {INS OUT NEST "%0 i64<c> = iota c\n" STORE_Y("%0") "}\n", "V3: n store y: a store does not turn i64 into f32"},
    /* V4 */
    {INS ROW NEST LOAD_X "%1 f32<r> = reduce any {c} %0\nstore s[0 + r*1] %1\n}\n",
     "V4: n %1: any has no identity for its operand"},
    {INS "buf q i64 [M] out\n" NEST "%0 i64<c> = iota c\n%1 i64<> = reduce online {c} %0 #0\nstore q[0 + r*1] %1\n}\n",
     "V4: n %1: online has no identity for its operand"},
    {INS ROW NEST LOAD_X "%1 f32<r> = reduce welford {c} %0 #2\nstore s[0 + r*1] %1\n}\n",
     "V4: n %1: welford has no result #2"},
    {INS PARTIAL NEST LOAD_X "partial_accumulate welford {r} w[0 + c*1] %0\n}\n",
     "V4: n partial_accumulate w: one buf does not hold the identity of welford"},
    {INS OUT "nest n (r:M | c:-64) ROW {\n" LOAD_X STORE_Y("%0") "}\n", "V4: n: axis c has a negative extent"},
    /* V5 */
    {INS ROW NEST LOAD_X "store s[0 + r*1] %0\n}\n", "V5: n store s: its value varies over c, which the map has not"},
    {INS "buf q f32 [64] out\n" NEST "%0 f32<c> = load v[0 + c*1]\nstore q[0 + c*1] %0\n}\n",
     "V5: n store q: every row of r would write the same element"},
    {INS OUT "nest n (| r:8, c:64) ROW {\n" LOAD_X "store y[0 + r*63 + c*1] %0\n}\n",
     "V5: n store y: two points of its map may meet in one element"},
    {INS OUT "nest n (| r:9, c:64) ROW {\n" LOAD_X "store y[0 + r*-1 + c*8] %0\n}\n",
     "V5: n store y: two points of its map may meet in one element"},
    {INS "buf t f32 [M,64] tmp\n" NEST LOAD_X "store t[0 + r*63 + c*1] %0\n}\n",
     "V5: n store t: two points of its map may meet in one element"},
    {INS "buf t f32 [M,64] tmp\n" NEST LOAD_X "store t[0 + r*N + c*N] %0\n}\n",
     "V5: n store t: two points of its map may meet in one element"},
    {INS OUT "nest n (| g:M, r:8, c:64) ROW {\n" LOAD_X "store y[0 + g*512 + r*1 + c*1] %0\n}\n",
     "V5: n store y: two points of its map may meet in one element"},
    {INS "size s0 = 2*N\n" OUT "nest n (| r:8, c:64) ROW {\n" LOAD_X "store y[0 + r*s0 + c*N] %0\n}\n",
     "V5: n store y: two points of its map may meet in one element"},
    {INS OUT NEST "%0 i64<r> = load k[0 + r*1]\n%1 f32<rc> = load x[0 + r*64 + c*1]\nstore y[0 + r*64 + c*1 + %0*64] "
                  "%1\n}\n",
     "V5: n store y: a store through a gathered index may meet an element twice"},
    {INS OUT NEST LOAD_X STORE_Y("%0") STORE_Y("%0") "}\n", "V5: n store y: y has a second writer"},
    {INS OUT NEST LOAD_X STORE_Y("%0") "}\nnest m (r:M | c:64) ROW {\n" LOAD_X STORE_Y("%0") "}\n",
     "V5: m store y: y has a second writer"},
    {INS NEST LOAD_X "store x[0 + r*64 + c*1] %0\n}\n", "V5: n store x: it writes an in"},
    {INS OUT NEST LOAD_X "}\n", "V5: y: no nest writes this out"},
    /* V6 */
    {INS PARTIAL NEST LOAD_X "partial_accumulate add {c} w[0] %0\n}\n",
     "V6: n partial_accumulate w: it consumes no row axis"},
    {INS PARTIAL NEST LOAD_X "partial_accumulate add {r} w[0 + r*64 + c*1] %0\n}\n",
     "V6: n partial_accumulate w: its map has a stride along r, which it consumes"},
    {INS "buf q f32 [64] out\n" NEST LOAD_X "partial_accumulate add {r} q[0 + c*1] %0\n}\n",
     "V6: n partial_accumulate q: q is no ws whose first extent is a part"},
    {INS "buf w f32 [64] ws\n" NEST LOAD_X "partial_accumulate add {r} w[0 + c*1] %0\n}\n",
     "V6: n partial_accumulate w: w is no ws whose first extent is a part"},
    {INS PARTIAL OUT NEST LOAD_X
     "partial_accumulate add {r} w[0 + c*1] %0\n%1 f32<c> = load w[0 + c*1]\n" STORE_Y("%1") "}\n",
     "V6: n %1: the parts of w are read in the nest that makes them"},
    {INS PARTIAL NEST LOAD_X "partial_accumulate add {r} w[0] %0\n}\n",
     "V6: n partial_accumulate w: c is neither consumed nor in the map"},
    {INS PARTIAL "nest n (g:4, r:M | c:64) ROW {\n" LOAD_X "partial_accumulate add {r} w[0 + c*1] %0\n}\n",
     "V6: n partial_accumulate w: g is neither consumed nor in the map"},
    {INS "buf t f32 [P0] tmp\n" OUT NEST LOAD_X STORE_Y("%0") "}\n",
     "V6: t: only a ws counts parts, in its first extent"},
    /* V7 */
    {INS "buf q f32 [64] out\n"
         "nest n (c:64, r:M |) ROW {\n%0 f32<cr> = load x[0 + r*64 + c*1]\n%1 f32<c> = reduce add {r} %0\n"
         "%2 f32<cr> = mul %0 %1\n%3 f32<cr> = neg %2\n}\nnest m (c:64 |) ROW {\n%0 f32<c> = load v[0 + c*1]\n"
         "store q[0 + c*1] %0\n}\n",
     "V7: n %1: a reduce of row axis r ends no phase"},
    {INS OUT NEST LOAD_X "%1 f32<c> = reduce max {r} %0\n%2 f32<rc> = sub %0 %1\n" STORE_Y("%2") "}\n",
     "V7: n %1: a reduce of row axis r ends no phase"},
    {INS OUT NEST LOAD_X "%1 f32<> = reduce add {rc} %0\n%2 f32<rc> = sub %0 %1\n" STORE_Y("%2") "}\n",
     "V7: n %1: a reduce of row axis r ends no phase"},
    {INS OUT "nest n (a:8, r:M | c:64) ROW {\n" LOAD_X
             "%1 f32<> = reduce add {cra} %0\n}\nnest m (r:M | c:64) ROW {\n" LOAD_X STORE_Y("%0") "}\n",
     "V7: n %1: a reduce of row axis ar ends no phase"},
    /* V8 */
    {INS "buf y f32 [M,64] out may_alias x\n" NEST "%0 f32<rc> = load x[63 + r*64 + c*-1]\n" STORE_Y("%0") "}\n",
     "V8: n %0: x is read at other elements than the store to y writes"},
    {INS "buf y f32 [M,64] out may_alias x\n" NEST LOAD_X "%1 i64<r> = load k[0 + r*1]\n"
         "%2 f32<rc> = load x[0 + c*1 + %1*64]\n%3 f32<rc> = add %0 %2\n" STORE_Y("%3") "}\n",
     "V8: n %2: x is read at other elements than the store to y writes"},
    {INS ROW "buf y f32 [M,64] out may_alias x\n" NEST LOAD_X STORE_Y(
         "%0") "}\nnest m (r:M | c:64) ROW {\n" LOAD_X "%1 f32<r> = reduce add {c} %0\nstore s[0 + r*1] %1\n}\n",
     "V8: m %0: x is read after the store to y"},
    {INS "buf y f32 [M,64] out may_alias x\nbuf z f32 [M,64] out\n" NEST LOAD_X "%1 f32<rc> = neg %0\n" STORE_Y(
         "%1") "%2 f32<r> = reduce add {c} %0\n%3 f32<rc> = mul %0 %2\nstore z[0 + r*64 + c*1] %3\n}\n",
     "V8: n %0: x is read again in a phase after the store to y"},
    {INS "buf y f32 [M,64] out may_alias x\nbuf z f32 [M,64] out\n" NEST LOAD_X STORE_Y(
         "%0") "%1 f32<rc> = neg %0\n%2 f32<rc> = exp %1\n%3 f32<r> = reduce add {c} %2\n%4 f32<rc> = div %2 %3\n"
               "store z[0 + r*64 + c*1] %4\n}\n",
     "V8: n %0: x is read again in a phase after the store to y"},
    {INS "buf y f32 [M,64] out may_alias x\nbuf z f32 [M,64] out\n" NEST "%0 f32<c> = load v[0 + c*1]\n" STORE_Y(
         "%0") "%1 f32<rc> = load x[0 + r*64 + c*1]\nstore z[0 + r*64 + c*1] %1\n}\n",
     "V8: n %1: x is read after the store to y"},
    {INS ROW "buf y f32 [M,64] out may_alias x\nbuf z f32 [M,64] out\n" NEST LOAD_X "%1 f32<rc> = exp %0\n"
             "%2 f32<r> = reduce add {c} %1\n" STORE_Y("%1") "%3 f32<rc> = div %1 %2\n%4 f32<r> = reduce max {c} "
                                                             "%3\nstore s[0 + r*1] %4\nstore z[0 + r*64 + c*1] %1\n}\n",
     "V8: n %0: x is read again in a phase after the store to y"},
    {INS OUT "buf z f32 [M,64] out\n" NEST LOAD_X STORE_Y(
         "%0") "}\nnest m (r:M | c:64) ROW {\n%0 f32<rc> = load y[0 + r*64 + c*1]\nstore z[0 + r*64 + c*1] %0\n}\n",
     "V8: m %0: y is read after the store to y"},
    {INS "buf q f32 [M,8] out\nnest n (r:M | a:8, c:64) ROW {\n%0 f32<rac> = load x[0 + r*64 + a*8 + c*1]\n"
         "%1 f32<ra> = reduce add {c} %0\n%2 f32<ra> = load q[0 + r*8 + a*1]\n%3 f32<ra> = add %1 %2\n"
         "store q[0 + r*8 + a*1] %3\n}\n",
     "V8: n %2: all points along c read what one of them stores to q"},
    {INS "buf y f32 [M,64] out may_alias x\nbuf z f32 [M,64] out may_alias x\n" NEST LOAD_X STORE_Y(
         "%0") "store z[0 + r*64 + c*1] %0\n}\n",
     "V8: z: y may be x too"},
    {INS "buf y f32 [M,64] out may_alias h\n" NEST LOAD_X STORE_Y("%0") "}\n", "V8: y: its dtype is not that of h"},
    {INS "buf t f32 [M,64] tmp may_alias x\n" NEST LOAD_X "store t[0 + r*64 + c*1] %0\n}\n",
     "V8: t: only an out may be the memory of an in"},
    {INS OUT "buf z f32 [M,64] out may_alias y\n" NEST LOAD_X STORE_Y("%0") "store z[0 + r*64 + c*1] %0\n}\n",
     "V8: z: only an out may be the memory of an in"},
};

static const Case sound[] = {
    {INS OUT NEST LOAD_X STORE_Y("%0") "}\n", "pointwise"},
    {INS "buf y f32 [M,64] out may_alias x\n" NEST LOAD_X
         "%1 f32<r> = reduce add {c} %0\n%2 f32<rc> = mul %0 %1\n" STORE_Y("%2") "}\n",
     "in place, stored in the last phase that reads"},
    {INS "buf y f32 [M,64] out may_alias x\nbuf z f32 [M] out\n" NEST LOAD_X STORE_Y(
         "%0") "%1 f32<r> = reduce add {c} %0\nstore z[0 + r*1] %1\n}\n",
     "in place, the later phase has only the sum"},
    {INS "buf y f32 [M,64] out may_alias x\nbuf z f32 [M,64] out\n" NEST LOAD_X "%1 f32<rc> = neg %0\n"
         "%2 f32<r> = reduce add {c} %0\n%3 f32<rc> = mul %1 %2\nstore z[0 + r*64 + c*1] %3\n" STORE_Y("%0") "}\n",
     "in place, stored behind the phase that reads again"},
    {INS ROW "buf y f32 [M,64] out may_alias x\nnest m (r:M | c:64) ROW {\n%0 f32<rc> = load x[63 + r*64 + c*-1]\n"
             "%1 f32<r> = reduce add {c} %0\nstore s[0 + r*1] %1\n}\n" NEST LOAD_X STORE_Y("%0") "}\n",
     "in place, read at other elements by an earlier nest"},
    {INS "buf xl f32 [M,32] in of x\nbuf xr f32 [M,32] in of x + 32\nbuf y f32 [M,32] out may_alias xl\n"
         "nest n (r:M | c:32) ROW {\n%0 f32<rc> = load xl[0 + r*64 + c*1]\n%1 f32<rc> = load xr[31 + r*64 + c*-1]\n"
         "%2 f32<rc> = add %0 %1\nstore y[0 + r*64 + c*1] %2\n}\n",
     "in place over one slice, the other read at other elements"},
    {INS "buf q f32 [M] out\nnest n (r:M | c:64) ROW {\n%0 f32<r> = load q[0 + r*1]\nstore q[0 + r*1] %0\n}\n",
     "a row's value, and accumulate"},
    {INS "buf u f32 [] in\nbuf q f32 [] out may_alias u\nnest n (r:1 |) POINTWISE {\n%0 f32<> = load u[0]\n"
         "store q[0] %0\n}\n",
     "one element in place"},
    {INS "buf q f32 [M] out\n" NEST LOAD_X "%1 f32<r> = reduce add {c} %0\n%2 f32<r> = load q[0 + r*1]\n"
         "%3 f32<r> = add %1 %2\nstore q[0 + r*1] %3\n}\n",
     "a row's sum, and accumulate"},
    {INS "buf q f32 [64] out\n" PARTIAL NEST LOAD_X "partial_accumulate add {r} w[0 + c*1] %0\n}\n"
         "nest m (c:64 | p:P0) FINALIZE {\n%0 f32<cp> = load w[0 + c*1 + p*64]\n%1 f32<c> = reduce add {p} %0\n"
         "%2 f32<c> = load q[0 + c*1]\n%3 f32<c> = add %1 %2\nstore q[0 + c*1] %3\n}\n",
     "parts, and accumulate"},
    {INS "buf y f32 [8,64] out\nnest n (| r:8, c:64) ROW {\n%0 f32<> = const 0x0\nstore y[7 + r*-1 + c*8] %0\n}\n",
     "two strides that just do not meet"},
    {INS "buf y f32 [M,N] out\nnest n (r:M | c:N) ROW {\n%0 f32<> = const 0x0\nstore y[0 + r*N + c*1] %0\n}\n",
     "rows of a run-time length"},
    {INS "size s0 = M*N\nbuf y f32 [L,M,N] out\nnest n (g:L | r:M, c:N) ROW {\n%0 f32<> = const 0x0\n"
         "store y[0 + g*s0 + r*1 + c*M] %0\n}\n",
     "three run-time extents, transposed"},
    {INS "buf y f32 [M,L] out\nnest n (r:M | c:L) ROW {\n%0 f32<> = const 0x0\nstore y[0 + r*64 + c*1] %0\n}\n",
     "the largest extent is the stride"},
    {INS "buf y f32 [M,64] out\nnest n (r:M | c:64) ROW {\n%0 f32<> = const 0x0\nstore y[0 + r*N + c*1] %0\n}\n",
     "a run-time stride is left to the launch"},
    {INS "buf y f32 [M,N] out\nnest n (r:8 | c:N) ROW {\n%0 f32<> = const 0x0\nstore y[0 + r*64 + c*1] %0\n}\n",
     "a run-time extent is left to the launch"},
    {INS OUT NEST LOAD_X "store y[0 + r*63 + c*1] %0\n}\n", "whether there is a second row is left to the launch"},
    {INS "buf y f32 [M,N] out\nnest n (r:M | c:N) ROW {\n%0 f32<> = const 0x0\nstore y[0 + r*N + c*N] %0\n}\n",
     "a single row or a single column is left to the launch"},
    {INS "buf y f32 [M,64] out\nnest n (r:M, a:1 | c:64, e:1) ROW {\n%0 f32<rc> = load x[0 + r*64 + c*1]\n"
         "store y[0 + r*64 + c*1 + e*1] %0\n}\n",
     "axes of extent 1 do not count"},
    {INS "buf y f32 [0,64] out\nnest n (r:0 | c:64) ROW {\n%0 f32<> = const 0x0\nstore y[0 + r*3 + c*1] %0\n}\n",
     "nothing to meet in"},
    {INS "buf y f32 [M,64] out\nnest n (r:M | c:64) ROW {\n%0 f32<> = const 0x0\nstore y[63 + r*64 + c*-1] %0\n}\n",
     "a negative stride"},
    {INS "buf q i64 [M] out\n" NEST "%0 bool<rc> = load b[0 + r*64 + c*1]\n%1 i64<r> = reduce add {c} %0\n"
         "store q[0 + r*1] %1\n}\n",
     "bools counted"},
    {INS "buf q u8 [M] out\nbuf a bool [M] out\n" NEST "%0 bool<rc> = load b[0 + r*64 + c*1]\n"
         "%1 bool<r> = reduce any {c} %0\nstore a[0 + r*1] %1\n%2 i64<r> = load k[0 + r*1]\nstore q[0 + r*1] %2\n}\n",
     "any, and an integer that wraps"},
    {INS OUT NEST "%0 i64<r> = load k[0 + r*1]\n%1 f32<rc> = load x[0 + c*1 + %0*64]\n" STORE_Y("%1") "}\n",
     "a gather"},
    {INS OUT NEST "%0 f32<c> = load v[0 + c*1]\n" STORE_Y("%0") "}\n", "a store that broadcasts"},
    {INS "buf t f64 [M,64] tmp\n" NEST "%0 f64<rc> = load x[0 + r*64 + c*1]\nstore t[0 + r*64 + c*1] %0\n}\n",
     "f32 widened to f64"},
};

static void each_rule_is_held(void **unused) {
    (void)unused;
    unsigned hits[9] = {0};
    for (size_t i = 0; i < sizeof breaches / sizeof *breaches; i++) {
        Job *job = ir_job_create(NULL);
        const Prog *prog = case_read(job, breaches[i].text, strlen(breaches[i].text));
        const char *why = ir_verify(job, prog);
        if (!why || strcmp(why, breaches[i].message))
            fail_msg("%s\n   got %s\nwanted %s", breaches[i].text, why ? why : "nothing", breaches[i].message);
        hits[why[1] - '0']++;
        ir_job_free(job);
    }
    for (int rule = 1; rule <= 8; rule++) assert_true(hits[rule] >= 3);
}

static void sound_progs_pass(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof sound / sizeof *sound; i++) {
        Job *job = ir_job_create(NULL);
        const char *why = ir_verify(job, case_read(job, sound[i].text, strlen(sound[i].text)));
        if (why) fail_msg("%s: %s", sound[i].message, why);
        ir_job_free(job);
    }
}

/* A Prog from which references are broken as no text can break them. */
static void broken_references_are_found(void **unused) {
    (void)unused;
    static const char text[] = INS OUT NEST LOAD_X "%1 i64<c> = iota c\n%2 i64<> = size M\n" STORE_Y("%0") "}\n";
    for (int fault = 0; fault < 9; fault++) {
        Job *job = ir_job_create(NULL);
        Prog *prog = case_read_legal(job, text, sizeof text - 1);
        Nest *nest = prog->nests.at;
        switch (fault) {
        case 0: nest->accesses.at[0].buf = prog->bufs.count; break;
        case 1: nest->accesses.at[0].stride[1] = (Size){SIZE_EXPRESSION, 0}; break;
        case 2: nest->axes[0].extent = (Size){SIZE_DIM, 99}; break;
        case 3: prog->bufs.at[1].extent[0] = (Size){SIZE_PART, -1}; break;
        case 4: nest->stmts.at[0].access = 99; break;
        case 5: nest->stmts.at[1].axis = 2; break;
        case 6: nest->stmts.at[2].size = (Size){SIZE_EXPRESSION, 1}; break;
        case 7: nest->stmts.at[2].op = OP_INPUT; break;
        default: nest->row_count = 3; break;
        }
        const char *why = ir_verify(job, prog);
        assert_non_null(why);
        assert_memory_equal(why, "V1: ", 4);
        ir_job_free(job);
    }
}

/* The map test against counting, over random maps of numbers. */
static bool meets(const Nest *nest, const Access *access) {
    enum { SPAN = 1 << 16 };
    static const int64_t base = SPAN / 2;
    uint8_t seen[SPAN] = {0};
    int64_t at[IR_MAX_AXES] = {0};
    for (;;) {
        int64_t offset = base;
        for (uint32_t a = 0; a < nest->axis_count; a++) offset += at[a] * access->stride[a].value;
        if (seen[offset]++) return true;
        uint32_t a = 0;
        while (a < nest->axis_count && ++at[a] == nest->axes[a].extent.value) at[a++] = 0;
        if (a == nest->axis_count) return false;
    }
}

static void accepted_maps_are_injective(void **unused) {
    (void)unused;
    Random random = {random_seed()};
    unsigned accepted = 0, refused = 0;
    for (int round = 0; round < 3000; round++) {
        Job *job = ir_job_create(NULL);
        const Prog *prog = ir_prog_create(job, "p");
        Nest nest = {.axis_count = 1 + random_below(&random, 4)};
        Access access = {.index = IR_NONE};
        bool dense = random_below(&random, 2);
        int64_t next = 1 + random_below(&random, 2);
        for (uint32_t k = 0; k < nest.axis_count; k++) {
            int64_t extent = 1 + random_below(&random, 6);
            int64_t stride = dense ? next : 1 + random_below(&random, 40);
            nest.axes[k] = (Axis){(char)('a' + k), ir_size_int(extent)};
            access.stride[k] = ir_size_int(random_below(&random, 2) ? stride : -stride);
            next *= extent + random_below(&random, 2);
        }
        for (uint32_t k = nest.axis_count - 1; k > 0; k--) { /* any loop order */
            uint32_t other = random_below(&random, k + 1);
            Axis axis = nest.axes[k];
            Size stride = access.stride[k];
            nest.axes[k] = nest.axes[other], access.stride[k] = access.stride[other];
            nest.axes[other] = axis, access.stride[other] = stride;
        }
        bool overlaps = ir_map_overlaps(job, prog, &nest, &access, false) != NULL;
        assert_int_equal(ir_map_overlaps(job, prog, &nest, &access, true) != NULL, overlaps);
        if (dense) assert_false(overlaps); /* padded layouts all pass */
        if (!overlaps) assert_false(meets(&nest, &access));
        accepted += !overlaps;
        refused += overlaps;
        ir_job_free(job);
    }
    printf("# maps: %u accepted, %u refused\n", accepted, refused);
    assert_true(accepted > 1000 && refused > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rule_is_held),
        cmocka_unit_test(sound_progs_pass),
        cmocka_unit_test(broken_references_are_found),
        cmocka_unit_test(accepted_maps_are_injective),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
