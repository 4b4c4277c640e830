/* What every verb with a graph begins with: the file, a context, a program. In: options. Out: an Opened, or the exit
 * code and the words of what went wrong. */
#include "runtime/cli/cli.h"

#include <stdlib.h>
#include <string.h>

#define MAX_GRAPH ((size_t)16 << 20) /* bytes; one more is read, so that the library sees and refuses a longer one */

int cli_arch(Cli *cli) {
    const char *text = cli_value(cli, OPTION_ARCH);
    if (!text) return 0;
    if (!strcmp(text, "native")) {
        ng_device device = {.size = sizeof device};
        if (ng_device_query(0, &device) != NG_OK || device.kind != NG_DEVICE_CUDA)
            cli_fail(cli, NG_NO_DEVICE, "--arch=native: there is no GPU here; name one, as in --arch=sm_90");
        return device.arch;
    }
    int64_t arch;
    if (!cli_read_int(strncmp(text, "sm_", 3) ? text : text + 3, &arch) || arch < 1 || arch > 9999)
        cli_fail(cli, NG_USAGE, "--arch=%s: expected sm_N or native", text);
    return (int)arch;
}

/* --device=cuda[:N]|host; default: left to the library, which takes cuda:0 where it works, else the host. */
static void read_device(Cli *cli, ng_context_options *options) {
    const char *text = cli_value(cli, OPTION_DEVICE);
    int64_t ordinal = 0;
    if (!text) return;
    if (!strcmp(text, "host")) {
        options->device = NG_DEVICE_HOST;
    } else if (!strcmp(text, "cuda") ||
               (!strncmp(text, "cuda:", 5) && cli_read_int(text + 5, &ordinal) && ordinal >= 0 && ordinal < 1024)) {
        options->device = NG_DEVICE_CUDA;
        options->ordinal = (int)ordinal;
    } else {
        cli_fail(cli, NG_USAGE, "--device=%s: expected cuda, cuda:N or host", text);
    }
}

static ng_host_order read_order(Cli *cli) {
    static const char *const orders[] = {"ascending", "descending", "seeded"}; /* as ng_host_order counts */
    const char *text = cli_value(cli, OPTION_HOST_ORDER);
    if (!text) return NG_ORDER_ASCENDING;
    for (int i = 0; i < 3; i++) {
        if (!strcmp(text, orders[i])) return (ng_host_order)i;
    }
    cli_fail(cli, NG_USAGE, "--host-order=%s: expected ascending, descending or seeded", text);
}

ng_context *cli_context(Cli *cli, bool launches) {
    ng_context_options options = {.size = sizeof options, .arch = cli_arch(cli)};
    read_device(cli, &options);
    options.host_order = read_order(cli);
    options.host_seed = (uint64_t)cli_int(cli, OPTION_SEED, 0, INT64_MAX, 0);
    if (!launches) options.device = NG_DEVICE_NONE;
    ng_context *context;
    ng_text why = {0};
    ng_status status = ng_context_create(&options, &context, &why);
    if (status != NG_OK) cli_fail_why(cli, status, &why);
    ng_text_free(&why);
    return context;
}

static void show_times(Cli *cli, const Opened *opened) {
    ng_text times = cli_text(cli, opened, NG_TEXT_TIMES, NULL);
    if (!cli->json) {
        Buf buf = {0};
        for (const char *line = times.bytes; *line; line += strcspn(line, "\n"), line += *line == '\n') {
            size_t name = strcspn(line, "\t");
            int rest = (int)strcspn(line + name + 1, "\n");
            buf_format(&buf, "%-12.*s %8.*s us\n", (int)name, line, rest, line + name + 1);
        }
        cli_diagnose(cli, buf.bytes ? buf.bytes : "", buf.count);
        free(buf.bytes);
    } else {
        cJSON *object = cJSON_AddObjectToObject(cli->json, "pass_microseconds");
        for (const char *line = times.bytes; *line; line += strcspn(line, "\n"), line += *line == '\n') {
            Buf name = {0};
            buf_bytes(&name, line, strcspn(line, "\t"));
            cJSON_AddNumberToObject(object, name.bytes, strtod(line + name.count + 1, NULL));
            free(name.bytes);
        }
    }
    ng_text_free(&times);
}

/* Two bytes that no text has: then no line of it is worth showing. */
static void refuse_binary(Cli *cli, const char *path, const char *bytes, size_t count) {
    enum { LOOKED_AT = 4096 };
    const char *end = bytes + (count < LOOKED_AT ? count : LOOKED_AT), *nul = bytes;
    for (int i = 0; i < 2 && nul; i++) {
        nul = nul < end ? memchr(nul, 0, (size_t)(end - nul)) : NULL;
        if (nul) nul++;
    }
    if (!nul) return;
    cli_fail(cli, NG_REJECTED, "%s: this is no text file; GRAPH is YAML%s", path,
             cli->verb->run == cli_run ? ", and tensors come by --inputs=FILE" : "");
}

char *cli_read_graph(Cli *cli, const char *path, size_t *count) {
    char *text = cli_read_file(cli, path, MAX_GRAPH, count);
    refuse_binary(cli, path, text, *count);
    return text;
}

const char *cli_graph_name(const char *path) { return strcmp(path, "-") ? path : "<stdin>"; }

/* The options of the command line as the library takes them; `sets` has room for one more. */
static ng_compile_options compile_options(Cli *cli, const char *last_pass) {
    ng_compile_options options = {
        .size = sizeof options,
        .name = cli_graph_name(cli->operands[0]),
        .verify = cli_has(cli, OPTION_VERIFY),
        .batch_invariant = cli_has(cli, OPTION_BATCH_INVARIANT),
        .warnings_are_errors = cli_has(cli, OPTION_WERROR),
        .last_pass = last_pass,
    };
    options.defines = cli_settings(cli, OPTION_DEFINE, &options.define_count);
    options.hints = cli_settings(cli, OPTION_HINT, &options.hint_count);
    options.fixes = cli_settings(cli, OPTION_FIX, &options.fix_count);
    options.sets = cli_settings(cli, OPTION_SET, &options.set_count);
    return options;
}

static void free_options(ng_compile_options *options) {
    cli_free_settings(options->defines, options->define_count);
    cli_free_settings(options->hints, options->hint_count);
    cli_free_settings(options->fixes, options->fix_count);
    cli_free_settings(options->sets, options->set_count);
}

void cli_note_defines(Cli *cli, const Opened *opened) {
    size_t count;
    ng_setting *given = cli_settings(cli, OPTION_DEFINE, &count);
    for (uint32_t i = 0; i < opened->facts.dims; i++) {
        const char *name = cli_arg(cli, opened, NG_DIM, i).name;
        for (size_t k = 0; k < count; k++) {
            if (strcmp(given[k].name, name) != 0) continue;
            cli_note(cli,
                     "note: %s is any: -D gives it a value for run and bench alone; --fix %s=%s makes it a constant, "
                     "--hint %s=%s a usual value",
                     name, name, given[k].value, name, given[k].value);
            break;
        }
    }
    cli_free_settings(given, count);
}

/* What every compile ends with: its failure or its warnings, and the times. */
static void compiled(Cli *cli, Opened *opened, ng_status status, ng_text *words) {
    if (status != NG_OK) cli_fail_why(cli, status, words);
    cli_warnings(cli, words);
    ng_program_query(opened->program, &opened->facts);
    if (cli_has(cli, OPTION_TIME_PASSES)) show_times(cli, opened);
}

ng_status cli_try(Cli *cli, ng_context *context, const char *last_pass, const char *else_pass, Opened *opened,
                  ng_text *why) {
    *opened = (Opened){.context = context, .facts = {.size = sizeof opened->facts}};
    opened->text = cli_read_graph(cli, cli->operands[0], &opened->count);
    ng_compile_options options = compile_options(cli, last_pass);
    ng_text words = {0};
    ng_status first = ng_compile(context, opened->text, opened->count, &options, &opened->program, &words),
              status = first;
    if (first != NG_OK && first != NG_REJECTED && first != NG_USAGE && else_pass) {
        *why = words;
        words = (ng_text){0};
        options.last_pass = else_pass;
        status = ng_compile(context, opened->text, opened->count, &options, &opened->program, &words);
    }
    compiled(cli, opened, status, &words);
    free_options(&options);
    if (cli->verb->run != cli_run && cli->verb->run != cli_bench) cli_note_defines(cli, opened);
    return first;
}

Opened cli_open_made(Cli *cli, ng_context *context, const ng_text *graph, const char *name, const char *last_pass) {
    Opened opened = {.context = context, .facts = {.size = sizeof opened.facts}};
    ng_compile_options options = compile_options(cli, last_pass), made = options;
    made.name = name;
    made.define_count = made.hint_count = made.fix_count = 0;
    ng_text words = {0};
    const ng_status status = ng_compile(context, graph->bytes, graph->count, &made, &opened.program, &words);
    compiled(cli, &opened, status, &words);
    free_options(&options);
    return opened;
}

ng_status cli_vary(Cli *cli, const Opened *opened, const char *knob, const char *value, ng_program **program,
                   ng_text *why) {
    ng_compile_options options = compile_options(cli, NULL);
    ng_setting *sets = (ng_setting *)(uintptr_t)options.sets;
    sets[options.set_count++] = (ng_setting){cli_copy(knob), value}; /* the last one holds */
    const ng_status status = ng_compile(opened->context, opened->text, opened->count, &options, program, why);
    free_options(&options);
    return status;
}

Opened cli_open(Cli *cli, ng_context *context, const char *last_pass) {
    Opened opened;
    ng_text why = {0};
    cli_try(cli, context, last_pass, NULL, &opened, &why);
    return opened;
}

void cli_close(Opened *opened) {
    ng_program_free(opened->program);
    ng_context_free(opened->context);
    free(opened->text);
    *opened = (Opened){0};
}

ng_text cli_text(Cli *cli, const Opened *opened, ng_text_kind kind, const char *pass) {
    ng_text text = {0};
    ng_status status = ng_program_text(opened->program, kind, pass, &text);
    if (status != NG_OK) cli_fail_why(cli, status, &text);
    return text;
}

ng_arg cli_arg(Cli *cli, const Opened *opened, ng_arg_role role, uint32_t index) {
    ng_arg arg = {.size = sizeof arg};
    ng_status status = ng_arg_query(opened->program, role, index, &arg);
    if (status != NG_OK) cli_fail(cli, (int)status, "argument %u: %s", index, ng_status_name(status));
    return arg;
}

void cli_show(Cli *cli, const char *name, const char *bytes, size_t count) {
    if (cli->json)
        cJSON_AddStringToObject(cli->json, name, bytes);
    else
        buf_bytes(&cli->out, bytes, count);
}
