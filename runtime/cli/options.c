/* Verbs and options. In: argv. Out: cli->uses and cli->operands, or exit code 2 with a near miss. Tables in verbs.def
 * and options.def drive parsing and help alike. */
#include "runtime/cli/cli.h"

#include <stdlib.h>
#include <string.h>

#define FOR(id) (1u << VERB_##id)
#define FOR_GRAPHS                                                                                                     \
    (FOR(CHECK) | FOR(GEN) | FOR(IR) | FOR(EXPLAIN) | FOR(COMPILE) | FOR(RUN) | FOR(TUNE) | FOR(BENCH) | FOR(KNOBS))
#define FOR_GRAD (FOR(GRAD) | FOR(EXPLAIN) | FOR(RUN))
#define FOR_ALL ((1u << VERB_COUNT) - 1)

const Verb cli_verbs[VERB_COUNT] = {
#define VERB(id, name, operands, fewest, most, function, does, details)                                                \
    {name, operands, fewest, most, function, does, details},
#include "runtime/cli/verbs.def"
#undef VERB
};

int cli_unavailable(Cli *cli) { cli_fail(cli, NG_UNAVAILABLE, "%s is not available yet", cli->verb->name); }

const Option cli_options[OPTION_COUNT] = {
#define OPTION(id, spelling, value, mode, verbs, help) {spelling, value, mode, verbs, help},
#include "runtime/cli/options.def"
#undef OPTION
};

static bool takes(const Verb *verb, const Option *option) { return option->verbs >> (unsigned)(verb - cli_verbs) & 1; }

/* One letter after one dash: its value may stand in the same word, without a '='. */
static bool is_short(const Option *option) { return option->spelling[1] != '-' && !option->spelling[2]; }

/* How an argument meets an option: not at all, whole, or with a value in it. */
static bool matches(const Option *option, const char *argument, const char **value) {
    size_t length = strlen(option->spelling);
    *value = NULL;
    if (strncmp(argument, option->spelling, length) != 0) return false;
    if (!argument[length]) return true;
    if (is_short(option)) {
        if (option->mode == VALUE_NONE) return false;
        *value = argument + length + (argument[length] == '=');
        return true;
    }
    if (argument[length] != '=') return false;
    *value = argument + length + 1;
    return true;
}

/* What other commands call an option; the first that the verb takes. */
static const char *named_elsewhere(const Cli *cli, const char *word) {
    static const struct {
        const char *word;
        OptionId id;
    } words[] = {{"--output", OPTION_OUTPUT},  {"--out", OPTION_OUTPUT},      {"-o", OPTION_OUTPUTS},
                 {"--output", OPTION_OUTPUTS}, {"--out", OPTION_OUTPUTS},     {"--define", OPTION_DEFINE},
                 {"--dim", OPTION_DEFINE},     {"--verbose", OPTION_VERBOSE}, {"--werror", OPTION_WERROR},
                 {"-h", OPTION_HELP},          {"--gpu", OPTION_DEVICE},      {"--backend", OPTION_DEVICE}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i].word, word) && takes(cli->verb, &cli_options[words[i].id]))
            return cli_options[words[i].id].spelling;
    return NULL;
}

static _Noreturn void fail_unknown(Cli *cli, const char *argument) {
    const char *names[OPTION_COUNT], *known = NULL;
    size_t count = 0, length = strcspn(argument, "=");
    char *word = cli_alloc(length + 1, 1);
    memcpy(word, argument, length);
    for (int i = 0; i < OPTION_COUNT; i++) {
        if (takes(cli->verb, &cli_options[i]))
            names[count++] = cli_options[i].spelling;
        else if (!strcmp(cli_options[i].spelling, word))
            known = cli_options[i].spelling;
    }
    const char *near = named_elsewhere(cli, word);
    if (known && !near)
        cli_fail(cli, NG_USAGE, "%s is no option of %s (see normgen %s --help)", word, cli->verb->name,
                 cli->verb->name);
    if (!near) near = cli_near_miss(word, names, count);
    if (near) cli_fail(cli, NG_USAGE, "unknown option %s; did you mean %s?", word, near);
    cli_fail(cli, NG_USAGE, "unknown option %s (see normgen %s --help)", word, cli->verb->name);
}

static bool is_option(const Cli *cli, const char *argument) {
    const char *value;
    for (int id = 0; id < OPTION_COUNT && argument[0] == '-'; id++)
        if (takes(cli->verb, &cli_options[id]) && matches(&cli_options[id], argument, &value)) return true;
    return false;
}

/* Of an option that takes NAME=VALUE and nothing else. */
static void require_pair(Cli *cli, const Option *option, const char *text) {
    const char *equals = strchr(option->value, '=');
    const bool may = !equals || equals[-1] == '[' || strchr(option->value, '|');
    if (may || (strchr(text, '=') && *text != '=')) return;
    cli_fail(cli, NG_USAGE, "%s %s: expected %s", option->spelling, text, option->value);
}

/* One option at argv[at]; returns how many arguments it took. */
static int parse_option(Cli *cli, int argc, char **argv, int at) {
    const char *value;
    for (int id = 0; id < OPTION_COUNT; id++) {
        const Option *option = &cli_options[id];
        if (!takes(cli->verb, option) || !matches(option, argv[at], &value)) continue;
        int used = 1;
        if (option->mode == VALUE_NONE && value) cli_fail(cli, NG_USAGE, "%s takes no value", option->spelling);
        if (option->mode == VALUE_NEEDED && !value) {
            if (at + 1 >= argc) cli_fail(cli, NG_USAGE, "%s needs a value: %s", option->spelling, option->value);
            value = argv[at + 1];
            if (is_option(cli, value))
                cli_fail(cli, NG_USAGE, "%s needs a value: %s; %s is the next option", option->spelling, option->value,
                         value);
            used = 2;
        }
        if (value) require_pair(cli, option, value);
        cli->uses[cli->use_count++] = (OptionUse){(OptionId)id, value};
        return used;
    }
    fail_unknown(cli, argv[at]);
}

void cli_parse(Cli *cli, int argc, char **argv) {
    cli->uses = cli_alloc((size_t)argc + 1, sizeof *cli->uses);
    cli->operands = cli_alloc((size_t)argc + 1, sizeof *cli->operands);
    bool options = true;
    for (int at = 0; at < argc;) {
        if (options && !strcmp(argv[at], "--")) {
            options = false;
            at++;
        } else if (options && argv[at][0] == '-' && argv[at][1]) {
            at += parse_option(cli, argc, argv, at);
        } else {
            cli->operands[cli->operand_count++] = argv[at++];
        }
    }
    if (cli_has(cli, OPTION_HELP) || cli_has(cli, OPTION_VERSION)) return;
    if (cli_has(cli, OPTION_TUNED)) cli_fail(cli, NG_UNAVAILABLE, "--tuned is not available yet");
    if (cli->operand_count < (size_t)cli->verb->fewest)
        cli_fail(cli, NG_USAGE, "%s needs %s", cli->verb->name, cli->verb->operands);
    if (cli->operand_count > (size_t)cli->verb->most)
        cli_fail(cli, NG_USAGE, "%s takes %s; '%s' is too many", cli->verb->name,
                 cli->verb->most ? cli->verb->operands : "no operand", cli->operands[cli->verb->most]);
}

static void help_option(Buf *buf, const Option *option) {
    Buf head = {0};
    buf_put(&head, option->spelling);
    if (option->mode == VALUE_MAY) buf_format(&head, "[=%s]", option->value);
    if (option->mode == VALUE_NEEDED) buf_format(&head, "%s%s", is_short(option) ? " " : "=", option->value);
    buf_format(buf, "  %-28s %s%s\n", head.bytes, head.count > 28 ? "\n                               " : "",
               option->help);
    free(head.bytes);
}

static void help_options(Buf *buf, const Verb *verb, bool common) {
    for (int i = 0; i < OPTION_COUNT; i++) {
        bool of_many = (cli_options[i].verbs & FOR_GRAPHS) == FOR_GRAPHS;
        if (takes(verb, &cli_options[i]) && of_many == common) help_option(buf, &cli_options[i]);
    }
}

void cli_help(Buf *buf, const Verb *verb) {
    if (verb) {
        buf_format(buf, "normgen %s%s%s [options]: %s\n", verb->name, *verb->operands ? " " : "", verb->operands,
                   verb->does);
        if (*verb->details) buf_format(buf, "\n%s\n", verb->details);
        buf_put(buf, "\nOptions:\n");
        help_options(buf, verb, false);
        help_options(buf, verb, true);
        if (verb->fewest == 1) buf_put(buf, "\nGRAPH is a YAML file; - is standard input.\n");
        return;
    }
    buf_put(buf, "normgen: graphs of normalisations and the pointwise work around them, as fused CUDA kernels.\n\n"
                 "    normgen VERB [options] [GRAPH]\n\nVerbs:\n");
    for (int i = 0; i < VERB_COUNT; i++)
        buf_format(buf, "  %-9s %-18s %s\n", cli_verbs[i].name, cli_verbs[i].operands, cli_verbs[i].does);
    buf_put(buf, "\n'normgen VERB --help' lists the options of a verb. A first walk:\n\n"
                 "    normgen check x.yaml                   is it a graph\n"
                 "    normgen explain x.yaml --hint M=4096   which kernels, why, and how many bytes\n"
                 "    normgen run x.yaml -D M=64 --check     its numbers against a reference in double\n"
                 "    normgen gen x.yaml -o x.cu             the CUDA C, with a launcher\n"
                 "    normgen grad x.yaml                    its gradients, as another graph\n\n"
                 "Exit codes: 0 ok, 1 graph rejected, 2 usage, 3 no such device, 4 not compiled, 5 check failed,\n"
                 "6 file or system, 7 launch failed, 8 internal error, 9 not available, 130 interrupted.\n");
}

bool cli_has(const Cli *cli, OptionId id) {
    for (size_t i = 0; i < cli->use_count; i++) {
        if (cli->uses[i].id == id) return true;
    }
    return false;
}

const char *cli_value(const Cli *cli, OptionId id) {
    const char *value = NULL;
    for (size_t i = 0; i < cli->use_count; i++) {
        if (cli->uses[i].id == id) value = cli->uses[i].value;
    }
    return value;
}

int64_t cli_int(Cli *cli, OptionId id, int64_t least, int64_t most, int64_t otherwise) {
    const char *text = cli_value(cli, id);
    int64_t value;
    if (!text) return otherwise;
    if (!cli_read_int(text, &value) || value < least || value > most)
        cli_fail(cli, NG_USAGE, "%s=%s: expected an integer from %lld to %lld", cli_options[id].spelling, text,
                 (long long)least, (long long)most);
    return value;
}

double cli_number(Cli *cli, OptionId id, double otherwise) {
    const char *text = cli_value(cli, id);
    double value;
    if (!text) return otherwise;
    if (!cli_read_number(text, &value) || !(value >= 0))
        cli_fail(cli, NG_USAGE, "%s=%s: expected a number, 0 or more", cli_options[id].spelling, text);
    return value;
}

ng_setting *cli_settings(Cli *cli, OptionId id, size_t *count) {
    ng_setting *settings = cli_alloc(cli->use_count + 1, sizeof *settings);
    *count = 0;
    for (size_t i = 0; i < cli->use_count; i++) {
        if (cli->uses[i].id != id) continue;
        const char *text = cli->uses[i].value, *equals = strchr(text, '='); /* it has one */
        char *name = cli_alloc((size_t)(equals - text) + 1, 1);
        memcpy(name, text, (size_t)(equals - text));
        settings[(*count)++] = (ng_setting){name, equals + 1};
    }
    return settings;
}

void cli_free_settings(const ng_setting *settings, size_t count) {
    for (size_t k = 0; k < count; k++) free((char *)(uintptr_t)settings[k].name);
    free((ng_setting *)(uintptr_t)settings);
}

char *cli_joined(const Cli *cli, OptionId id) {
    Buf list = {0};
    for (size_t i = 0; i < cli->use_count; i++) {
        if (cli->uses[i].id != id) continue;
        if (list.bytes) buf_put(&list, ",");
        buf_put(&list, cli->uses[i].value);
    }
    return list.bytes;
}
