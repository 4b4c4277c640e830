/* The verb ops: the calls of the graph language. In: options. Out: a line for each, or all that is known of one, as
 * text or JSON. */
#include "runtime/cli/cli.h"

#include <stdlib.h>
#include <string.h>

/* The fields of a line of NG_LIST_LANGUAGE, in its order. */
typedef enum Field { NAME, GROUP, SIGNATURE, GIVES, DTYPE, FORMULA, ERROR, DERIVATIVE, CUDA, FIELD_COUNT } Field;
static const char *const field_names[FIELD_COUNT] = {"name",    "group", "signature",  "gives", "dtype",
                                                     "formula", "error", "derivative", "cuda"};

typedef struct Row {
    char *field[FIELD_COUNT]; /* parts of one allocation */
} Row;

static Row split_line(const ng_text *line) {
    Row row;
    char *at = cli_alloc(line->count + 1, 1);
    memcpy(at, line->bytes, line->count);
    for (int i = 0; i < FIELD_COUNT; i++) {
        row.field[i] = at;
        at += strcspn(at, "\t");
        if (*at) *at++ = 0;
    }
    return row;
}

static void show_json(const Row *row, cJSON *list) {
    cJSON *item = cJSON_CreateObject();
    cJSON_AddItemToArray(list, item);
    for (int i = 0; i < FIELD_COUNT; i++)
        if (*row->field[i]) cJSON_AddStringToObject(item, field_names[i], row->field[i]);
}

static void show_line(Cli *cli, const Row *row) {
    buf_format(&cli->out, "  %-14s %s: %s\n", row->field[NAME], row->field[SIGNATURE], row->field[GIVES]);
}

/* Each expression of a derivative on a line of its own. */
static void show_steps(Cli *cli, const char *text) {
    const char *name = field_names[DERIVATIVE];
    while (*text) {
        const char *end = strstr(text, "; ");
        const int count = end ? (int)(end - text) : (int)strlen(text);
        buf_format(&cli->out, "  %-11s %.*s\n", name, count, text);
        text += count + (end ? 2 : 0);
        name = "";
    }
}

static void show_whole(Cli *cli, const Row *row) {
    buf_format(&cli->out, "%s%s\n", cli->out.count ? "\n" : "", row->field[SIGNATURE]);
    for (int i = GIVES; i < FIELD_COUNT; i++)
        if (i == DERIVATIVE)
            show_steps(cli, row->field[i]);
        else if (*row->field[i])
            buf_format(&cli->out, "  %-11s %s\n", field_names[i], row->field[i]);
}

static _Noreturn void refuse_name(Cli *cli, const char *only) {
    size_t count = strlen(only);
    ng_text line = {0};
    for (uint32_t i = 0; ng_list(NG_LIST_ADVICE, i, &line) == NG_OK; i++, ng_text_free(&line))
        if (strcspn(line.bytes, "\t") == count && !memcmp(line.bytes, only, count))
            cli_fail(cli, NG_USAGE, "there is no %s: %s", only, line.bytes + count + 1);
    char **names = cli_list_names(NG_LIST_LANGUAGE, &count);
    const char *near = cli_near_miss(only, (const char *const *)names, count);
    if (near) cli_fail(cli, NG_USAGE, "no operation %s; did you mean %s?", only, near);
    cli_fail(cli, NG_USAGE, "no operation %s ('normgen ops' lists them)", only);
}

int cli_ops(Cli *cli) {
    const char *only = cli->operand_count ? cli->operands[0] : NULL;
    char *group = NULL;
    size_t shown = 0;
    ng_text line = {0};
    cJSON *list = cli->json ? cJSON_AddArrayToObject(cli->json, "operations") : NULL;
    for (uint32_t i = 0; ng_list(NG_LIST_LANGUAGE, i, &line) == NG_OK; i++, ng_text_free(&line)) {
        Row row = split_line(&line);
        if (!only || !strcmp(only, row.field[NAME])) {
            if (!list && !only && (!group || strcmp(group, row.field[GROUP]) != 0)) {
                buf_format(&cli->out, "%s%s:\n", shown ? "\n" : "", row.field[GROUP]);
                free(group);
                group = cli_copy(row.field[GROUP]);
            }
            if (list)
                show_json(&row, list);
            else if (only)
                show_whole(cli, &row);
            else
                show_line(cli, &row);
            shown++;
        }
        free(row.field[0]);
    }
    free(group);
    if (!shown && only) refuse_name(cli, only);
    if (!only) cli_show_list(cli, NG_LIST_DTYPES, "dtypes");
    if (!only && !list)
        buf_put(&cli->out, "\n'normgen ops NAME' shows one with its dtype, formula, error and derivative.\n");
    return NG_OK;
}
