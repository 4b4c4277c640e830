/* grad: the backward graph of a forward one, and the forward one with what it stores for it; explain of that backward
 * graph. In: options. Out: graph files, both whole or neither; what is saved, as words or JSON. */
#include "runtime/cli/cli.h"

#include <stdlib.h>
#include <string.h>

/* What the library made, and the options that it read. */
typedef struct Grads {
    char *wrt, *of;
    ng_grad_options options;
    ng_text backward, forward, words, json;
} Grads;

static void free_grads(Grads *grads) {
    ng_grad_options *options = &grads->options;
    cli_free_settings(options->defines, options->define_count);
    cli_free_settings(options->hints, options->hint_count);
    cli_free_settings(options->fixes, options->fix_count);
    free((char *)(uintptr_t)options->save);
    free((char *)(uintptr_t)options->recompute);
    free(grads->wrt);
    free(grads->of);
    ng_text_free(&grads->backward);
    ng_text_free(&grads->forward);
    ng_text_free(&grads->words);
    ng_text_free(&grads->json);
    free(grads);
}

static Grads *derive(Cli *cli) {
    Grads *grads = cli_alloc(1, sizeof *grads);
    ng_grad_options *options = &grads->options;
    *options = (ng_grad_options){.size = sizeof *options,
                                 .name = cli_graph_name(cli->operands[0]),
                                 .save = cli_joined(cli, OPTION_SAVE),
                                 .recompute = cli_joined(cli, OPTION_RECOMPUTE),
                                 .prefix = cli_value(cli, OPTION_PREFIX),
                                 .warnings_are_errors = cli_has(cli, OPTION_WERROR),
                                 .verify = cli_has(cli, OPTION_VERIFY),
                                 .explain = &grads->words,
                                 .explain_json = &grads->json};
    options->defines = cli_settings(cli, OPTION_DEFINE, &options->define_count);
    options->hints = cli_settings(cli, OPTION_HINT, &options->hint_count);
    options->fixes = cli_settings(cli, OPTION_FIX, &options->fix_count);
    grads->wrt = cli_joined(cli, OPTION_WRT);
    grads->of = cli_joined(cli, OPTION_OF);
    size_t count;
    char *text = cli_read_graph(cli, cli->operands[0], &count);
    ng_text why = {0};
    const ng_status status =
        ng_grad(text, count, grads->wrt, grads->of, options, &grads->backward, &grads->forward, &why);
    if (status != NG_OK) cli_fail_why(cli, status, &why);
    cli_warnings(cli, &why);
    free(text);
    return grads;
}

/* What the forward graph has to store, where nobody asked for the one that does. */
static void note_saved(Cli *cli, const Grads *grads) {
    Buf names = {0};
    const cJSON *read;
    cJSON *facts = cJSON_Parse(grads->json.bytes);
    cJSON_ArrayForEach(read, cJSON_GetObjectItem(facts, "reads")) {
        const char *source = cJSON_GetStringValue(cJSON_GetObjectItem(read, "source"));
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(read, "name"));
        if (source && name && !strcmp(source, "saved")) buf_format(&names, "%s%s", names.count ? ", " : "", name);
    }
    if (names.count)
        cli_note(cli,
                 "note: the backward graph reads %s, which the forward graph does not store; --forward=FILE "
                 "writes one that does",
                 names.bytes);
    cJSON_Delete(facts);
    free(names.bytes);
}

/* An any dim of the forward graph is one of the backward graph too, where that has it. */
static void note_defines(Cli *cli, const Grads *grads) {
    if (!cli_has(cli, OPTION_DEFINE)) return;
    Opened opened = cli_open_made(cli, cli_context(cli, false), &grads->backward, "the backward graph", "expand");
    cli_note_defines(cli, &opened);
    cli_close(&opened);
}

int cli_grad(Cli *cli) {
    const char *forward = cli_value(cli, OPTION_FORWARD);
    cli_check_paths(cli, OPTION_FORWARD, "the backward graph");
    Grads *grads = derive(cli);
    const Result results[] = {{"backward", cli_value(cli, OPTION_OUTPUT), &grads->backward},
                              {"forward", forward, &grads->forward}};
    cli_deliver(cli, results, forward || cli->json ? 2 : 1);
    if (cli->json) cli_add_members(cli, cli->json, grads->json.bytes);
    if (cli_has(cli, OPTION_VERBOSE)) cli_diagnose(cli, grads->words.bytes, grads->words.count);
    if (!forward && !cli->json) note_saved(cli, grads);
    note_defines(cli, grads);
    free_grads(grads);
    return NG_OK;
}

bool cli_wants_grad(const Cli *cli) {
    static const OptionId ids[] = {OPTION_GRAD, OPTION_WRT, OPTION_OF, OPTION_SAVE, OPTION_RECOMPUTE, OPTION_PREFIX};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (cli_has(cli, ids[i])) return true;
    return false;
}

int cli_explain_grad(Cli *cli) {
    Grads *grads = derive(cli);
    Buf name = {0};
    buf_format(&name, "%s: backward", cli_graph_name(cli->operands[0]));
    Opened opened = cli_open_made(cli, cli_context(cli, false), &grads->backward, name.bytes, "schedule");
    cli_note_defines(cli, &opened);
    if (cli->json) {
        cli_add_members(cli, cJSON_AddObjectToObject(cli->json, "grad"), grads->json.bytes);
    } else {
        cli_show(cli, NULL, grads->words.bytes, grads->words.count);
        buf_put(&cli->out, "\n");
    }
    cli_show_facts(cli, &opened, NG_TEXT_EXPLAIN, NG_TEXT_EXPLAIN_JSON);
    cli_close(&opened);
    free(name.bytes);
    free_grads(grads);
    return NG_OK;
}
