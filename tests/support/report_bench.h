/* Tests of what users of such kernels have reported: a graph as a small text, compiled through the public library for
 * the device that the test program was started for, with tensors that the test fills, and references in double that
 * know nothing of normgen. A row of data is a plain array of double.
 *
 *   build/tests/test_NAME [--device=host|cuda] [--only=TEST]
 *
 * NORMGEN_TEST_REDUCED, set for sanitizers: fewer elements. NORMGEN_SEED repeats the data.
 * Bounds are those of any order of adding: depth is the extent where no plan is looked at. The library's own check,
 * whose bounds are narrower, runs with each launch. */
#ifndef TESTS_REPORT_BENCH_H
#define TESTS_REPORT_BENCH_H

#include "runtime/normgen.h"
#include "tests/support/random.h"

#include <stdbool.h>

enum { BENCH_TENSORS = 24, BENCH_DIMS = 6 };

typedef struct Bench {
    ng_context *context;
    bool cuda;
    bool reduced; /* fewer elements: a sanitizer's build */
    Random random;
} Bench;

/* Opens the device that the arguments name; false with words on standard error. */
bool bench_open(Bench *bench, int argc, char **argv);
void bench_close(Bench *bench);

/* One program with the tensors of one launch. */
typedef struct Trial {
    ng_program *program;
    uint32_t inputs, outputs;
    void *bytes[BENCH_TENSORS];      /* inputs, then outputs; each begins at a 256-byte boundary */
    int64_t elements[BENCH_TENSORS]; /* in memory: strided tensors have gaps */
    ng_dtype dtype[BENCH_TENSORS];
    int64_t dims[BENCH_DIMS];
    int shift[BENCH_TENSORS];      /* elements that the launch's pointer lies behind the boundary */
    uint32_t owner[BENCH_TENSORS]; /* the tensor in whose memory it lies: itself unless the test says */
    ng_output_report reports[BENCH_TENSORS];
} Trial;

/* How a graph is compiled. */
typedef struct Way {
    const char *name, *sets; /* NAME=VALUE with blanks between, or NULL */
    const char *strategy;    /* that some kernel must have; NULL: whichever */
    bool invariant;          /* --batch-invariant */
} Way;
/* The ways in which rows are worked on: what a result must not depend on. */
enum { WAYS = 3, WAY_REGISTERS = 0, WAY_LOOP = 1, WAY_SPLIT = 2 };
const Way *bench_way(uint32_t way);

/* Compiles a graph from `dims:` on, ' for ", y f32 its output unless it says; in a way, or as it comes (NULL). Where it
 * must compile, the test is stopped with the words. */
Trial trial_open(const Bench *bench, const Way *way, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The words are for ng_text_free. */
ng_status trial_try(const Bench *bench, const Way *way, const char *graph, Trial *trial, ng_text *why);
/* Makes every tensor for these any dims, full of NaN. */
void trial_size(Trial *trial, const int64_t *dims);
/* Launches and checks against the library's reference; stops the test where that fails. */
void trial_run(Trial *trial);
/* Launches; what came of it and, where not NULL, the words. */
ng_status trial_launch(Trial *trial, bool verify, ng_text *why);
void trial_close(Trial *trial);

uint32_t trial_tensor(const Trial *trial, const char *name);
void trial_set(Trial *trial, const char *name, int64_t element, double value);
double trial_get(const Trial *trial, const char *name, int64_t element);
/* A row as the dtype holds it: value goes in and what it became comes back. */
void trial_set_row(Trial *trial, const char *name, int64_t first, int64_t count, double *values);
void trial_get_row(const Trial *trial, const char *name, int64_t first, int64_t count, double *values);
/* How often a strategy stands among the variants of the program's steps. */
uint32_t trial_count(const Trial *trial, const char *strategy);
ng_text trial_text(const Trial *trial, ng_text_kind what);
bool text_has(ng_text text, const char *part);

/* ---- references ---- */

void normal_row(Random *random, double mean, double deviation, int64_t count, double *row);
double row_mean(const double *row, int64_t count);
double row_variance(const double *row, int64_t count, int correction); /* two passes */
double row_most(const double *row, int64_t count);
double row_size(const double *row, int64_t count); /* mean of |x| */

/* Roundings of f32: no result of one operation is further off than this times its size. */
#define F32_UNIT 0x1p-24
/* y = (x - mean) * rsqrt(var + eps), and how far an f32 evaluation may be from it. */
void layer_norm_row(const double *x, int64_t count, double eps, double *y, double *bound);
void rms_norm_row(const double *x, int64_t count, double eps, double *y, double *bound);
void softmax_row(const double *x, int64_t count, double *y, double *bound);

/* Stops the test, with words, where an element is further off than its bound and one unit in the last place of the
 * tensor's dtype. */
void trial_expect(const Trial *trial, const char *name, int64_t first, int64_t count, const double *expected,
                  const double *bound, const char *what);

#endif
