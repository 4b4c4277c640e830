/* Graphs of rows with results across them that no norm has: their texts, references and inputs. Contract: the header.
 */
#include "tests/support/backward_others.h"

#include <math.h>

static Number y_of(double x) {
    return number_add(number_multiply(number_exact(2), number_exact(x), 24), number_exact(0.25), 24);
}
static Number along(const Row *row, Combine combine) {
    return number_combine(combine, row->terms[0], row->columns, 1, NULL, row->accuracy);
}
static void leak_sum_row(const Row *row) {
    for (int64_t c = 0; c < row->columns; c++) row->terms[0][c] = y_of(row->in[0][c]);
    row->values[0] = along(row, COMBINE_MAX);
}
static void leak_exp_row(const Row *row) {
    for (int64_t c = 0; c < row->columns; c++) row->terms[0][c] = number_exp(y_of(row->in[0][c]), 24);
    row->values[0] = along(row, COMBINE_MAX);
    row->values[1] = along(row, COMBINE_ADD);
}
static void leak_prod_row(const Row *row) {
    leak_sum_row(row);
    row->values[1] = along(row, COMBINE_MULTIPLY);
}
static void sums_row(const Row *row) {
    for (int64_t c = 0; c < row->columns; c++) row->terms[0][c] = number_exact(row->in[0][c]);
    row->values[0] = along(row, COMBINE_ADD);
}
static void extremes_row(const Row *row) {
    for (int64_t c = 0; c < row->columns; c++) row->terms[0][c] = number_exact(row->in[0][c]);
    row->values[0] = along(row, COMBINE_ADD);
    for (int64_t c = 0; c < row->columns; c++) {
        const Number x = number_exact(row->in[0][c]);
        row->terms[0][c] = number_subtract(x, number_exact(9), 24);
        row->terms[1][c] = number_add(x, number_exact(9), 24);
        row->terms[2][c] = number_add(number_multiply(x, number_exact(0.25), 24), number_exact(1), 24);
    }
}

/* Below zero, so that a lane that is none shows as a largest. */
static double fill_below(Role role, uint64_t bits, Geometry at) {
    (void)role, (void)at;
    return -0.5 - (double)(bits >> 32) * 0x1p-32 * 3.5;
}
static double fill_eighths(Role role, uint64_t bits, Geometry at) { return rint(fill_below(role, bits, at) * 8) / 8; }
/* y = 1 and -1, seldom 2 and 1/2. */
static double fill_signs(Role role, uint64_t bits, Geometry at) {
    (void)role, (void)at;
    const double y = bits % 1024 < 2 ? (bits % 2 ? 2 : 0.5) : bits >> 63 ? 1 : -1;
    return (y - 0.25) / 2;
}
/* 1 and about 1e-11 more or less, on a grid: up to 2^17 of them have an exact sum in f64. */
static double fill_noise(Role role, uint64_t bits, Geometry at) { return 1 + 4 * fill_grid(role, bits, at) * 0x1p-37; }
static double fill_integers(Role role, uint64_t bits, Geometry at) {
    (void)role, (void)at;
    return (double)(bits >> 42) - 1048576.0;
}

#define VALUE(k)                                                                                                       \
    { OUT_VALUE, k }
#define COLUMN(k)                                                                                                      \
    { OUT_COLUMNS, k }
const Other backward_others[] = {
    {{.name = "leak_sum",
      .row = leak_sum_row,
      .value_count = 1,
      .sum_count = 1,
      .out_count = 2,
      .out = {VALUE(0), COLUMN(0)},
      .text = "{M: any, N: 1}\ninputs: {x: \"E[M, N]\"}\nnodes: {y: 2 * x + 0.25, m: \"amax(y, dim=1)\", s: \"sum(y, "
              "dim=0)\"}\n"
              "outputs: {m: f32, s: f32}"},
     fill_eighths,
     {"bf16"},
     129,
     40961,
     true,
     24},
    {{.name = "leak_exp",
      .row = leak_exp_row,
      .value_count = 2,
      .sum_count = 1,
      .out_count = 3,
      .out = {VALUE(0), VALUE(1), COLUMN(0)},
      .text = "{M: any, N: 1}\ninputs: {x: \"E[M, N]\"}\nnodes: {y: exp(2 * x + 0.25), m: \"amax(y, dim=1)\", r: "
              "\"sum(y, dim=1)\","
              " s: \"sum(y, dim=0)\"}\noutputs: {m: f32, r: f32, s: f32}"},
     fill_below,
     {"bf16"},
     129,
     40961,
     true,
     24},
    {{.name = "leak_prod",
      .row = leak_prod_row,
      .value_count = 2,
      .sum_count = 1,
      .combine = {COMBINE_MULTIPLY},
      .out_count = 3,
      .out = {VALUE(0), VALUE(1), COLUMN(0)},
      .text = "{M: any, N: 1}\ninputs: {x: \"E[M, N]\"}\nnodes: {y: 2 * x + 0.25, m: \"amax(y, dim=1)\", r: \"prod(y, "
              "dim=1)\","
              " p: \"prod(y, dim=0)\"}\noutputs: {m: f32, r: f32, p: f32}"},
     fill_signs,
     {"bf16"},
     129,
     40961,
     false,
     24},
    {{.name = "doubles",
      .row = sums_row,
      .value_count = 1,
      .sum_count = 1,
      .out_count = 2,
      .out = {VALUE(0), COLUMN(0)},
      .text = "{M: any, N: 1}\ninputs: {x: \"E[M, N]\"}\nnodes: {r: \"sum(x, dim=1)\", s: \"sum(x, dim=0)\"}\n"
              "outputs: {r: f64, s: f64}"},
     fill_noise,
     {"f64"},
     64,
     65536,
     false,
     53},
    {{.name = "integers",
      .row = sums_row,
      .value_count = 1,
      .sum_count = 1,
      .out_count = 2,
      .out = {VALUE(0), COLUMN(0)},
      .text = "{M: any, N: 1}\ninputs: {x: \"E[M, N]\"}\nnodes: {r: \"sum(x, dim=1)\", s: \"sum(x, dim=0)\"}\n"
              "outputs: {r: i64, s: i64}"},
     fill_integers,
     {"i32", "i64"},
     64,
     40961,
     true,
     53},
    {{.name = "extremes",
      .row = extremes_row,
      .value_count = 1,
      .sum_count = 3,
      .combine = {COMBINE_MAX, COMBINE_MIN, COMBINE_MULTIPLY},
      .out_count = 4,
      .out = {VALUE(0), COLUMN(0), COLUMN(1), COLUMN(2)},
      .text = "{M: any, N: 1}\ninputs: {x: \"E[M, N]\"}\nnodes: {r: \"sum(x, dim=1)\", a: \"amax(x - 9, dim=0)\","
              " i: \"amin(x + 9, dim=0)\", p: \"prod(x * 0.25 + 1, dim=0)\"}\noutputs: {r: f32, a: E, i: f32, p: f32}"},
     fill_random,
     {"bf16", "f32", "f16"},
     1000,
     101,
     false,
     24},
};
const uint32_t backward_other_count = sizeof backward_others / sizeof *backward_others;
