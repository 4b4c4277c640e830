/* The verbs that only show texts: gen, ir, explain, and the lists. In: options. Out: text or JSON on standard
 * output, or a file. */
#include "runtime/cli/cli.h"

#include <stdlib.h>
#include <string.h>

void cli_deliver(Cli *cli, const Result *results, size_t count) {
    FileOut *files = cli_alloc(count + 1, sizeof *files);
    Piece *pieces = cli_alloc(count + 1, sizeof *pieces);
    size_t file_count = 0;
    for (size_t i = 0; i < count; i++) {
        const Result *result = &results[i];
        const bool file = result->path && (strcmp(result->path, "-") != 0 || !cli->json);
        if (!file) {
            cli_show(cli, result->name, result->text->bytes, result->text->count);
            continue;
        }
        pieces[file_count] = (Piece){result->text->bytes, result->text->count};
        files[file_count] = (FileOut){result->path, &pieces[file_count], 1};
        file_count++;
        if (cli->json) cJSON_AddStringToObject(cli->json, result->name, result->path);
    }
    cli_write_files(cli, files, file_count);
    free(files);
    free(pieces);
}

/* The file that an option reads, or NULL. Freed by the caller. */
static char *file_read(const OptionUse *use) {
    if (use->id == OPTION_INPUTS || use->id == OPTION_EXPECT || use->id == OPTION_BACKWARD) return cli_copy(use->value);
    if (use->id != OPTION_INPUT) return NULL;
    const char *tensor;
    return cli_file_of(strchr(use->value, '=') + 1, &tensor); /* it has an = */
}

void cli_check_path(Cli *cli, OptionId id) {
    const char *path = cli_value(cli, id);
    Buf option = {0};
    if (!path || !strcmp(path, "-")) return;
    buf_format(&option, "%s%s%s", cli_options[id].spelling, cli_options[id].spelling[1] == '-' ? "=" : " ", path);
    if (cli_same_file(path, cli->operands[0])) cli_fail(cli, NG_USAGE, "%s would overwrite the graph", option.bytes);
    for (size_t i = 0; i < cli->use_count; i++) {
        char *read = file_read(&cli->uses[i]);
        if (read && cli_same_file(path, read))
            cli_fail(cli, NG_USAGE, "%s would overwrite what %s reads", option.bytes,
                     cli_options[cli->uses[i].id].spelling);
        free(read);
    }
    if (cli->json && cli_same_result(path, "-"))
        cli_fail(cli, NG_USAGE, "%s is standard output, which holds the JSON value", option.bytes);
    free(option.bytes);
}

void cli_check_paths(Cli *cli, OptionId second, const char *what) {
    const char *path = cli_value(cli, OPTION_OUTPUT), *other = cli_value(cli, second);
    const char *spelling = cli_options[second].spelling;
    const bool same = other && cli_same_result(other, path ? path : "-");
    if (same && (!path || !strcmp(path, "-") || !strcmp(other, "-")))
        cli_fail(cli, NG_USAGE, "%s=%s and %s cannot both go to standard output; give -o FILE", spelling, other, what);
    if (same) cli_fail(cli, NG_USAGE, "-o %s and %s=%s are one file: each needs its own", path, spelling, other);
    cli_check_path(cli, OPTION_OUTPUT);
    cli_check_path(cli, second);
}

int cli_gen(Cli *cli) {
    const char *header = cli_value(cli, OPTION_HEADER);
    cli_check_paths(cli, OPTION_HEADER, "the kernels");
    Opened opened = cli_open(cli, cli_context(cli, false), NULL);
    ng_text source = cli_text(cli, &opened, NG_TEXT_CUDA, NULL), declared = {0};
    if (header) declared = cli_text(cli, &opened, NG_TEXT_HEADER, NULL);
    const Result results[] = {{"cuda", cli_value(cli, OPTION_OUTPUT), &source}, {"header", header, &declared}};
    cli_deliver(cli, results, header ? 2 : 1);
    ng_text_free(&declared);
    ng_text_free(&source);
    cli_close(&opened);
    return NG_OK;
}

char **cli_list_names(ng_list_kind kind, size_t *count) {
    char **names = NULL;
    ng_text line = {0};
    for (*count = 0; ng_list(kind, (uint32_t)*count, &line) == NG_OK; ng_text_free(&line)) {
        names = cli_grow(names, *count + 1, sizeof *names);
        size_t length = strcspn(line.bytes, "\t");
        names[*count] = cli_alloc(length + 1, 1);
        memcpy(names[(*count)++], line.bytes, length);
    }
    return names;
}

static void free_names(char **names, size_t count) {
    for (size_t i = 0; i < count; i++) free(names[i]);
    free(names);
}

/* The index of a pass; a name that is none is a usage error with the nearest one. */
static size_t find_pass(Cli *cli, const char *name) {
    size_t count, index = 0;
    char **names = cli_list_names(NG_LIST_PASSES, &count);
    while (index < count && strcmp(names[index], name) != 0) index++;
    if (index == count) {
        const char *near = cli_near_miss(name, (const char *const *)names, count);
        if (near) cli_fail(cli, NG_USAGE, "no pass %s; did you mean %s?", name, near);
        cli_fail(cli, NG_USAGE, "no pass %s (see normgen passes)", name);
    }
    free_names(names, count);
    return index;
}

static void show_diff(Cli *cli, const char *pair) {
    const char *comma = strchr(pair, ',');
    if (!comma) cli_fail(cli, NG_USAGE, "--diff=%s: expected two passes, PASS,PASS", pair);
    char *before = cli_alloc((size_t)(comma - pair) + 1, 1);
    memcpy(before, pair, (size_t)(comma - pair));
    const char *after = comma + 1;
    bool swapped = find_pass(cli, before) > find_pass(cli, after);
    Opened opened = cli_open(cli, cli_context(cli, false), swapped ? before : after);
    ng_text old = cli_text(cli, &opened, NG_TEXT_IR, before), new = cli_text(cli, &opened, NG_TEXT_IR, after);
    Buf diff = {0};
    buf_put(&diff, "");
    cli_diff(&diff, old.bytes, before, new.bytes, after);
    cli_show(cli, "diff", diff.bytes, diff.count);
    free(diff.bytes);
    free(before);
    ng_text_free(&old);
    ng_text_free(&new);
    cli_close(&opened);
}

/* The dump after each pass as a list; null where a pass changed nothing. The last makes CUDA, which gen gives. */
static void json_passes(Cli *cli, const Opened *opened) {
    size_t count;
    char **names = cli_list_names(NG_LIST_PASSES, &count);
    cJSON *list = cJSON_AddArrayToObject(cli->json, "passes");
    ng_text before = {0};
    for (size_t i = 0; i + 1 < count; i++) {
        ng_text text = cli_text(cli, opened, NG_TEXT_IR, names[i]);
        const bool changed = !before.bytes || strcmp(before.bytes, text.bytes) != 0;
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "pass", names[i]);
        cJSON_AddBoolToObject(item, "changed", changed);
        cJSON_AddItemToObject(item, "ir", changed ? cJSON_CreateString(text.bytes) : cJSON_CreateNull());
        cJSON_AddItemToArray(list, item);
        ng_text_free(&before);
        before = text;
    }
    ng_text_free(&before);
    free_names(names, count);
}

int cli_ir(Cli *cli) {
    const char *pair = cli_value(cli, OPTION_DIFF), *pass = cli_value(cli, OPTION_AFTER);
    if (pair && pass) cli_fail(cli, NG_USAGE, "--after and --diff exclude each other");
    if (pair) {
        show_diff(cli, pair);
        return NG_OK;
    }
    bool all = pass && !strcmp(pass, "all");
    if (pass && !all) find_pass(cli, pass);
    Opened opened = cli_open(cli, cli_context(cli, false), all ? NULL : pass);
    if (all && cli->json) {
        json_passes(cli, &opened);
    } else {
        ng_text text = cli_text(cli, &opened, NG_TEXT_IR, pass);
        cli_show(cli, "ir", text.bytes, text.count);
        ng_text_free(&text);
    }
    cli_close(&opened);
    return NG_OK;
}

void cli_add_members(Cli *cli, cJSON *to, const char *json) {
    cJSON *facts = cJSON_Parse(json);
    if (!facts) cli_fail(cli, NG_INTERNAL, "the facts are no JSON");
    while (facts->child) {
        cJSON *member = cJSON_DetachItemViaPointer(facts, facts->child);
        cJSON_AddItemToObject(to, member->string, member);
    }
    cJSON_Delete(facts);
}

void cli_show_facts(Cli *cli, const Opened *opened, ng_text_kind words, ng_text_kind json) {
    ng_text text = cli_text(cli, opened, cli->json ? json : words, NULL);
    if (cli->json)
        cli_add_members(cli, cli->json, text.bytes);
    else
        cli_show(cli, NULL, text.bytes, text.count);
    ng_text_free(&text);
}

static int show_facts(Cli *cli, ng_text_kind words, ng_text_kind json) {
    Opened opened = cli_open(cli, cli_context(cli, false), "schedule");
    cli_show_facts(cli, &opened, words, json);
    cli_close(&opened);
    return NG_OK;
}

int cli_explain(Cli *cli) {
    return cli_wants_grad(cli) ? cli_explain_grad(cli) : show_facts(cli, NG_TEXT_EXPLAIN, NG_TEXT_EXPLAIN_JSON);
}

void cli_show_list(Cli *cli, ng_list_kind kind, const char *title) {
    ng_text line = {0};
    cJSON *list = cli->json ? cJSON_AddArrayToObject(cli->json, title) : NULL;
    if (!list) buf_format(&cli->out, "%s%s:\n", cli->out.count ? "\n" : "", title);
    for (uint32_t i = 0; ng_list(kind, i, &line) == NG_OK; i++, ng_text_free(&line)) {
        size_t name = strcspn(line.bytes, "\t");
        const char *what = line.bytes + name + (line.bytes[name] == '\t');
        if (list) {
            Buf text = {0};
            cJSON *item = cJSON_CreateObject();
            buf_bytes(&text, line.bytes, name);
            cJSON_AddStringToObject(item, "name", text.bytes);
            cJSON_AddStringToObject(item, "what", what);
            cJSON_AddItemToArray(list, item);
            free(text.bytes);
        } else {
            size_t start = cli->out.count;
            buf_format(&cli->out, "  %-15.*s ", (int)name, line.bytes);
            buf_wrapped(&cli->out, cli->out.count - start, 18, what);
        }
    }
}

int cli_passes(Cli *cli) {
    cli_show_list(cli, NG_LIST_PASSES, "passes");
    cli_show_list(cli, NG_LIST_STRATEGIES, "strategies");
    return NG_OK;
}

int cli_knobs(Cli *cli) {
    if (cli->operand_count) return show_facts(cli, NG_TEXT_KNOBS, NG_TEXT_KNOBS_JSON);
    for (size_t i = 0; i < cli->use_count; i++) /* what is about a graph would be passed over in silence */
        if (cli->uses[i].id != OPTION_JSON && cli->uses[i].id != OPTION_VERBOSE)
            cli_fail(cli, NG_USAGE, "knobs: %s needs a GRAPH", cli_options[cli->uses[i].id].spelling);
    cli_show_list(cli, NG_LIST_KNOBS, "knobs");
    return NG_OK;
}

int cli_devices(Cli *cli) {
    cJSON *list = cli->json ? cJSON_AddArrayToObject(cli->json, "devices") : NULL;
    ng_device device = {.size = sizeof device};
    for (int i = 0; ng_device_query(i, &device) == NG_OK; i++) {
        Buf name = {0};
        buf_put(&name, device.kind == NG_DEVICE_HOST ? "host" : "cuda");
        if (device.kind != NG_DEVICE_HOST) buf_format(&name, ":%d", device.ordinal);
        if (list) {
            cJSON *item = cJSON_CreateObject();
            cJSON_AddStringToObject(item, "device", name.bytes);
            cJSON_AddStringToObject(item, "name", device.name);
            cJSON_AddNumberToObject(item, "arch", device.arch);
            cJSON_AddNumberToObject(item, "sms", device.sms);
            cJSON_AddNumberToObject(item, "memory_bytes", (double)device.memory_bytes);
            cJSON_AddItemToArray(list, item);
        } else {
            buf_format(&cli->out, "%-8s %s, %ssm_%d, %d SMs", name.bytes, device.name,
                       device.kind == NG_DEVICE_HOST ? "plans as for " : "", device.arch, device.sms);
            if (device.memory_bytes) buf_format(&cli->out, ", %.0f GiB", (double)device.memory_bytes / (1 << 30));
            buf_put(&cli->out, "\n");
        }
        free(name.bytes);
    }
    return NG_OK;
}
