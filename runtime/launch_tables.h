/* Between the files that make launches (program_tables.c, launch_check.c, launch.c, run.c, check.c). */
#ifndef RUNTIME_LAUNCH_TABLES_H
#define RUNTIME_LAUNCH_TABLES_H

#include "runtime/launch.h"

static inline int64_t rt_size_value(const RtScratch *scratch, Size size) {
    return size.kind == SIZE_DIM          ? scratch->prog_dims[size.value]
           : size.kind == SIZE_EXPRESSION ? scratch->sizes[size.value]
           : size.kind == SIZE_PART       ? scratch->parts[size.value]
                                          : size.value;
}

/* Points the scratch's arrays into scratch_words words. */
void rt_scratch_carve(const RtProgram *program, int64_t *words, RtScratch *scratch);
/* A scalar's value as the graph takes it: given (NULL: its default), rounded or wrapped to its dtype. */
Scalar rt_scalar_value(const Tensor *scalar, const ng_scalar *given);
/* "sum(x) of node y", as far as the graph's text and names tell. */
void rt_say_value(const RtProgram *program, const Value *value, Text *why);
/* CTAs of a step; more than a grid holds is STATUS_LAUNCH. */
Status rt_step_blocks(const RtProgram *program, uint32_t index, const RtScratch *scratch, int64_t *blocks, Text *why);

/* What ng_run compares: tensors' memory on this machine. */
typedef struct RtCompared {
    const RtProgram *program;
    const Allocator *allocator;
    const RtScratch *scratch; /* dims and spans */
    const ng_scalar *scalars;
    char *const *inputs; /* as they were before the launch */
    char *const *held;   /* outputs as they were before it */
    char *const *outputs;
} RtCompared;

/* Least, largest, mean, NaNs and hash of every output. */
void rt_measure_outputs(const RtCompared *compared, ng_output_report *reports);
/* Compares every output with the oracle: fills what the report says of it. STATUS_CHECK_FAILED with words. */
Status rt_check_outputs(Job *job, const RtCompared *compared, ng_output_report *reports, int *sampled, Text *why);
/* After a launch failed: adds the index outside its dim, where the oracle meets one. outputs: any memory of theirs. */
void rt_explain_index(Job *job, const RtCompared *compared, Text *why);
/* Bytes from the tensor's pointer to the first element of a row, rows being the last dim, in row-major order. */
int64_t rt_row_offset(const RtSpan *span, uint32_t rank, int64_t row, int64_t element_bytes);

/* A text of the caller's: a copy made by malloc; empty where there is no memory. */
ng_text rt_text_give(const char *bytes, size_t count);
/* The job's diagnostics as such a text. */
ng_text rt_job_words(Job *job);

#endif
