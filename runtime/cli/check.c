/* The verb check: parses and types a graph, and goes through every pass, so that it says whether gen would. In:
 * options. Out: the types of what the graph names, as text or JSON; the exit code is gen's. */
#include "runtime/cli/cli.h"

#include <stdlib.h>
#include <string.h>

/* role<TAB>name<TAB>type<TAB>more, each part ended in place. */
typedef struct Line {
    const char *role, *name, *type, *more;
} Line;

static char *take(char **at, char end) {
    char *start = *at;
    *at += strcspn(start, (char[]){end, 0});
    if (**at) *(*at)++ = 0;
    return start;
}

static void show_line(Cli *cli, const Line *line, cJSON *lists) {
    if (!lists) {
        buf_format(&cli->out, "  %-7s %-16s %s%s%s\n", line->role, line->name, line->type, *line->more ? "  " : "",
                   line->more);
        return;
    }
    Buf title = {0};
    buf_format(&title, "%ss", line->role);
    cJSON *list = cJSON_GetObjectItem(lists, title.bytes), *item = cJSON_CreateObject();
    if (!list) list = cJSON_AddArrayToObject(lists, title.bytes);
    cJSON_AddItemToArray(list, item);
    cJSON_AddStringToObject(item, "name", line->name);
    cJSON_AddStringToObject(item, "type", line->type);
    const size_t dtype = strcspn(line->type, "[");
    if (line->type[dtype]) {
        Buf part = {0};
        buf_bytes(&part, line->type, dtype);
        cJSON_AddStringToObject(item, "dtype", part.bytes);
        part.count = 0;
        buf_put(&part, line->type + dtype);
        cJSON_AddStringToObject(item, "shape", part.bytes);
        free(part.bytes);
    }
    if (*line->more) cJSON_AddStringToObject(item, "more", line->more);
    free(title.bytes);
}

int cli_check(Cli *cli) {
    Opened opened;
    ng_text why = {0};
    const ng_status status = cli_try(cli, cli_context(cli, false), NULL, "expand", &opened, &why);
    ng_text types = cli_text(cli, &opened, NG_TEXT_TYPES, NULL);
    if (cli->json)
        cJSON_AddStringToObject(cli->json, "graph", opened.facts.name);
    else
        buf_format(&cli->out, "%s: %s\n", opened.facts.name, status ? "typed, but it does not compile" : "ok");
    const bool nodes = cli->json || cli_has(cli, OPTION_VERBOSE);
    char *text = cli_copy(types.bytes);
    for (char *at = text; *at;) {
        Line line = {0};
        line.role = take(&at, '\t');
        line.name = take(&at, '\t');
        line.type = take(&at, '\t');
        line.more = take(&at, '\n');
        if (nodes || strcmp(line.role, "node") != 0) show_line(cli, &line, cli->json);
    }
    free(text);
    ng_text_free(&types);
    cli_close(&opened);
    if (status == NG_OK) return NG_OK;
    cli_tell_why(cli, status, &why);
    ng_text_free(&why);
    return (int)status;
}
