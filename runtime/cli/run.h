/* What the parts of `normgen run` and `normgen bench` share. */
#ifndef CLI_RUN_H
#define CLI_RUN_H

#include "runtime/cli/tensors.h"

typedef struct Run {
    Opened opened;
    ng_device device;
    int64_t *dims;          /* the any dims */
    const char **dims_from; /* for each: "-D", "tensors", "hint", "default" */
    ng_scalar *scalars;
    Tensor *inputs, *outputs;
    StFile *files; /* opened once each */
    char **file_names;
    size_t file_count;
    ng_output_report *reports; /* one an output */
    ng_report report;
    uint64_t seed;
    uint64_t print; /* elements of each output to show */
    int64_t
        default_dim; /* of an any dim that neither an option, a tensor nor a hint up to it gives; 0: 1024, any hint */
} Run;

/* run_inputs.c: files, dims, scalars and tensors, from the options */
void run_prepare(Cli *cli, Run *run);
StFile *run_file(Cli *cli, Run *run, const char *path);

/* run.c */
void run_release(Run *run);

/* run_grad.c */
enum { RUN_GRAD_OPTIONS = 6 };
extern const OptionId run_grad_options[RUN_GRAD_OPTIONS]; /* that only --check=grad takes */
int run_check_grad(Cli *cli);

/* run_report.c */
void run_describe(Cli *cli, const Run *run); /* device, arch, dims, compile time, inputs */
void run_results(Cli *cli, const Run *run, bool checked, bool passed);
/* --expect: whether every output that the file holds is within tolerance; the verdict is printed */
bool run_expect(Cli *cli, Run *run, const char *path);

/* compile.c */
void cli_kernels(Cli *cli, const Opened *opened, Buf *table);

#endif
