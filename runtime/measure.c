/* What ng_run says of an output besides its check. In: the output's memory and span. Out: least, largest and mean
 * element, NaNs, and the XXH3 of the elements' bytes in row-major order. */
#include "runtime/launch_tables.h"

#include <math.h>
#include <string.h>
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

int64_t rt_row_offset(const RtSpan *span, uint32_t rank, int64_t row, int64_t element_bytes) {
    int64_t offset = 0;
    for (uint32_t d = rank > 1 ? rank - 1 : 0; d-- > 0;) {
        offset += row % span->extent[d] * span->stride[d];
        row /= span->extent[d];
    }
    return offset * element_bytes;
}

enum { RUNS = 64 }; /* that an output's rows are split into; a constant, so that a mean is the same on all machines */

typedef struct Run {
    double min, max, sum;
    uint64_t finite, nans;
} Run;

typedef struct Measured {
    const char *bytes;
    const RtSpan *span;
    const Tensor *tensor;
    int64_t element_bytes, rows, columns;
    Run runs[RUNS];
} Measured;

static double element(DType dtype, const char *at) {
    return ir_dtype(dtype)->kind == KIND_FLOAT ? ir_load_float(dtype, at) : (double)ir_load_int(dtype, at);
}

static void measure_run(void *state, uint32_t index) {
    Measured *measured = state;
    const uint32_t rank = measured->tensor->shape.rank;
    Run run = {INFINITY, -INFINITY, 0, 0, 0};
    int64_t each = (measured->rows + RUNS - 1) / RUNS, stop = each * (index + 1);
    const int64_t step = rank ? measured->span->stride[rank - 1] * measured->element_bytes : 0;
    for (int64_t r = each * index; r < stop && r < measured->rows; r++) {
        const char *at = measured->bytes + rt_row_offset(measured->span, rank, r, measured->element_bytes);
        for (int64_t c = 0; c < measured->columns; c++, at += step) {
            double value = element(measured->tensor->dtype, at);
            if (isnan(value)) run.nans++;
            if (!isfinite(value)) continue;
            if (value < run.min) run.min = value;
            if (value > run.max) run.max = value;
            run.sum += value;
            run.finite++;
        }
    }
    measured->runs[index] = run;
}

static uint64_t hash_elements(const Measured *measured) {
    const uint32_t rank = measured->tensor->shape.rank;
    const int64_t stride = rank ? measured->span->stride[rank - 1] : 1;
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    XXH3_64bits_reset(&state);
    for (int64_t r = 0; r < measured->rows; r++) {
        const char *at = measured->bytes + rt_row_offset(measured->span, rank, r, measured->element_bytes);
        if (stride == 1 || measured->columns == 1) {
            XXH3_64bits_update(&state, at, (size_t)(measured->columns * measured->element_bytes));
            continue;
        }
        for (int64_t c = 0; c < measured->columns; c++)
            XXH3_64bits_update(&state, at + c * stride * measured->element_bytes, (size_t)measured->element_bytes);
    }
    return XXH3_64bits_digest(&state);
}

void rt_measure_outputs(const RtCompared *compared, ng_output_report *reports) {
    const RtProgram *program = compared->program;
    for (uint32_t o = 0; o < program->graph->outputs.count; o++) {
        const RtTensor *tensor = &program->tensors[program->input_count + o];
        const RtSpan *span = &compared->scratch->spans[program->input_count + o];
        const uint32_t rank = tensor->tensor->shape.rank;
        Measured measured = {.bytes = compared->outputs[o],
                             .span = span,
                             .tensor = tensor->tensor,
                             .element_bytes = tensor->element_bytes};
        if (span->count) {
            measured.columns = rank ? span->extent[rank - 1] : 1;
            measured.rows = span->count / measured.columns;
        }
        rt_parallel(RUNS, measure_run, &measured);
        ng_output_report *report = &reports[o];
        *report = (ng_output_report){.min = NAN, .max = NAN, .mean = NAN, .worst_index = -1};
        report->elements = (uint64_t)span->count;
        Run all = {INFINITY, -INFINITY, 0, 0, 0};
        for (uint32_t i = 0; i < RUNS; i++) {
            const Run *run = &measured.runs[i];
            if (run->min < all.min) all.min = run->min;
            if (run->max > all.max) all.max = run->max;
            all.sum += run->sum;
            all.finite += run->finite;
            report->nans += run->nans;
        }
        if (all.finite) report->min = all.min, report->max = all.max, report->mean = all.sum / (double)all.finite;
        report->hash = hash_elements(&measured);
    }
}
