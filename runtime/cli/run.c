/* run: a graph on a device, with its numbers. In: options. Out: a report, output files, exit code 5 where a comparison
 * failed. */
#include "runtime/cli/run.h"

#include <stdlib.h>
#include <string.h>

static void write_outputs(Cli *cli, const Run *run, const char *path) {
    uint32_t count = run->opened.facts.outputs;
    StItem *items = cli_alloc(count, sizeof *items);
    Piece *pieces = cli_alloc(count + 1, sizeof *pieces);
    unsigned char **owned = cli_alloc(count, sizeof *owned);
    for (uint32_t i = 0; i < count; i++) {
        const Tensor *output = &run->outputs[i];
        size_t bytes = output->elements * ng_dtype_bytes(output->arg.dtype);
        items[i] = (StItem){output->arg.name, output->arg.dtype, output->arg.rank, output->extent, bytes};
        pieces[i + 1] = (Piece){cli_tensor_dense(output, &owned[i]), bytes};
    }
    char *header = st_header(items, count, &pieces[0].count);
    pieces[0].bytes = header;
    cli_write_file(cli, path, pieces, count + 1);
    for (uint32_t i = 0; i < count; i++) free(owned[i]);
    free(header);
    free(owned);
    free(pieces);
    free(items);
}

static ng_status launch(Run *run, bool verify) {
    const ng_program_facts *facts = &run->opened.facts;
    void **tensors = cli_alloc(facts->inputs + facts->outputs, sizeof *tensors);
    for (uint32_t i = 0; i < facts->inputs; i++) tensors[i] = run->inputs[i].first;
    for (uint32_t i = 0; i < facts->outputs; i++) tensors[facts->inputs + i] = run->outputs[i].first;
    ng_args args = {.size = sizeof args, .tensors = tensors, .dims = run->dims, .scalars = run->scalars};
    run->reports = cli_alloc(facts->outputs, sizeof *run->reports);
    run->report = (ng_report){.size = sizeof run->report, .outputs = run->reports};
    ng_status status = ng_run(run->opened.program, &args, verify, &run->report);
    free(tensors);
    return status;
}

void run_release(Run *run) {
    for (uint32_t i = 0; i < run->opened.facts.inputs; i++) free(run->inputs[i].memory);
    for (uint32_t i = 0; i < run->opened.facts.outputs; i++) free(run->outputs[i].memory);
    for (size_t i = 0; i < run->file_count; i++) {
        st_close(&run->files[i]);
        free(run->file_names[i]);
    }
    free(run->inputs);
    free(run->outputs);
    free(run->files);
    free(run->file_names);
    free(run->dims);
    free(run->dims_from);
    free(run->scalars);
    free(run->reports);
    ng_text_free(&run->report.why);
    cli_close(&run->opened);
}

int cli_run(Cli *cli) {
    const char *outputs = cli_value(cli, OPTION_OUTPUTS), *expect = cli_value(cli, OPTION_EXPECT);
    const char *how = cli_value(cli, OPTION_CHECK);
    bool check = cli_has(cli, OPTION_CHECK);
    if (how && !strcmp(how, "grad")) return run_check_grad(cli);
    for (int k = 0; k < RUN_GRAD_OPTIONS; k++)
        if (cli_has(cli, run_grad_options[k]))
            cli_fail(cli, NG_USAGE, "%s belongs to --check=grad", cli_options[run_grad_options[k]].spelling);
    if (how) cli_fail(cli, NG_USAGE, "--check=%s: expected --check or --check=grad", how);
    if (!expect && (cli_has(cli, OPTION_RTOL) || cli_has(cli, OPTION_ATOL)))
        cli_fail(cli, NG_USAGE, "--rtol and --atol belong to --expect; --check needs no tolerance");
    if (outputs && cli_same_result(outputs, "-"))
        cli_fail(cli, NG_USAGE, "--outputs takes a file; standard output holds the report");
    cli_check_path(cli, OPTION_OUTPUTS);
    Run run = {.device = {.size = sizeof run.device}};
    ng_context *context = cli_context(cli, true);
    ng_context_device(context, &run.device);
    run.opened = cli_open(cli, context, NULL);
    run_prepare(cli, &run);
    run_describe(cli, &run);
    if (cli_has(cli, OPTION_VERBOSE)) {
        Buf table = {0};
        cli_kernels(cli, &run.opened, &table);
        cli_diagnose(cli, table.bytes, table.count);
        free(table.bytes);
    }
    ng_status status = launch(&run, check);
    if (status != NG_OK && status != NG_CHECK_FAILED) cli_fail_why(cli, status, &run.report.why);
    run_results(cli, &run, check, status == NG_OK);
    if (status != NG_OK && run.report.why.count) cli_diagnose(cli, run.report.why.bytes, run.report.why.count);
    if (expect && !run_expect(cli, &run, expect)) status = NG_CHECK_FAILED;
    if (outputs) write_outputs(cli, &run, outputs);
    run_release(&run);
    return (int)status;
}
