/* run --check=grad: the backward graph against central differences of the forward one. In: options. Out: what the
 * library found, exit code 5 where it does not hold. Dims that nothing gives are small: the graph is evaluated twice
 * for each element and step. */
#include "runtime/cli/run.h"

#include <stdlib.h>
#include <string.h>

const OptionId run_grad_options[RUN_GRAD_OPTIONS] = {OPTION_WRT,       OPTION_OF,       OPTION_SAVE,
                                                     OPTION_RECOMPUTE, OPTION_BACKWARD, OPTION_PREFIX};

/* Of a backward graph that somebody wrote; NULL: none is given. */
static char *read_backward(Cli *cli, size_t *count) {
    const char *path = cli_value(cli, OPTION_BACKWARD);
    if (!path) return NULL;
    for (int k = 0; run_grad_options[k] != OPTION_BACKWARD; k++)
        if (cli_has(cli, run_grad_options[k]))
            cli_fail(cli, NG_USAGE, "%s and --backward: that graph says itself which gradients it makes of what",
                     cli_options[run_grad_options[k]].spelling);
    if (!strcmp(path, "-") && !strcmp(cli->operands[0], "-"))
        cli_fail(cli, NG_USAGE, "both graphs are '-', and standard input holds one");
    return cli_read_graph(cli, path, count);
}

static ng_status check(Cli *cli, Run *run, const char *backward, size_t backward_count, ng_text *report, ng_text *why) {
    const ng_program_facts *facts = &run->opened.facts;
    void **tensors = cli_alloc(facts->inputs + facts->outputs, sizeof *tensors);
    for (uint32_t i = 0; i < facts->inputs; i++) tensors[i] = run->inputs[i].first;
    for (uint32_t i = 0; i < facts->outputs; i++) tensors[facts->inputs + i] = run->outputs[i].first;
    const ng_args args = {.size = sizeof args, .tensors = tensors, .dims = run->dims, .scalars = run->scalars};
    char *names[4];
    for (int k = 0; k < 4; k++) names[k] = cli_joined(cli, run_grad_options[k]);
    const ng_check_grad_options options = {.size = sizeof options,
                                           .wrt = names[0],
                                           .of = names[1],
                                           .save = names[2],
                                           .recompute = names[3],
                                           .seed = run->seed,
                                           .json = cli->json != NULL,
                                           .prefix = cli_value(cli, OPTION_PREFIX),
                                           .backward = backward,
                                           .backward_count = backward_count,
                                           .backward_name =
                                               backward ? cli_graph_name(cli_value(cli, OPTION_BACKWARD)) : NULL};
    const ng_status status = ng_check_grad(run->opened.program, &args, &options, report, why);
    for (int k = 0; k < 4; k++) free(names[k]);
    free(tensors);
    return status;
}

int run_check_grad(Cli *cli) {
    if (cli_has(cli, OPTION_EXPECT) || cli_has(cli, OPTION_OUTPUTS) || cli_has(cli, OPTION_PRINT))
        cli_fail(cli, NG_USAGE, "--check=grad shows no outputs: --expect, --outputs and --print belong to other runs");
    size_t backward_count = 0;
    char *backward = read_backward(cli, &backward_count);
    Run run = {.device = {.size = sizeof run.device}, .default_dim = 7};
    ng_context *context = cli_context(cli, true);
    ng_context_device(context, &run.device);
    run.opened = cli_open(cli, context, "expand"); /* the library compiles both graphs */
    run_prepare(cli, &run);
    run_describe(cli, &run);
    ng_text report = {0}, why = {0};
    const ng_status status = check(cli, &run, backward, backward_count, &report, &why);
    if (status != NG_OK && status != NG_CHECK_FAILED) cli_fail_why(cli, status, &why);
    if (cli->json) {
        cJSON_AddItemToObject(cli->json, "check_grad", cJSON_Parse(report.bytes));
        cJSON_AddBoolToObject(cli->json, "check_passed", status == NG_OK);
        if (status != NG_OK && why.count) cJSON_AddStringToObject(cli->json, "check_why", why.bytes);
    } else {
        buf_bytes(&cli->out, report.bytes, report.count);
    }
    if (status != NG_OK && why.count) cli_diagnose(cli, why.bytes, why.count);
    if (status == NG_OK) cli_warnings(cli, &why);
    ng_text_free(&report);
    ng_text_free(&why);
    free(backward);
    run_release(&run);
    return (int)status;
}
