/* The entry of the command: finds the verb, parses its options, runs it. In: argv. Out: an exit code (interface of
 * every verb: cli.h). */
#include "runtime/cli/cli.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void interrupted(int signal_number) {
    (void)signal_number;
    _exit(CLI_INTERRUPTED);
}

/* Standard output is written at the end, with signals blocked: nothing stands before this. */
static void interrupted_json(int signal_number) {
    static const char value[] =
        "{\n\t\"error\":\t\"interrupted\",\n\t\"status\":\t130,\n\t\"status_name\":\t\"interrupted\"\n}\n";
    ssize_t wrote = write(STDOUT_FILENO, value, sizeof value - 1);
    (void)signal_number, (void)wrote;
    _exit(CLI_INTERRUPTED);
}

static const Verb *find_verb(Cli *cli, const char *name) {
    const char *names[VERB_COUNT];
    for (int i = 0; i < VERB_COUNT; i++) {
        names[i] = cli_verbs[i].name;
        if (!strcmp(name, names[i])) return &cli_verbs[i];
    }
    const char *near = cli_near_miss(name, names, VERB_COUNT);
    if (near) cli_fail(cli, NG_USAGE, "unknown verb %s; did you mean %s?", name, near);
    cli_fail(cli, NG_USAGE, "unknown verb %s (see normgen --help)", name);
}

/* What an option error, too, must answer as. */
static bool wants(int argc, char **argv, const char *option) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (!strcmp(argv[i], option)) return true;
    }
    return false;
}

static _Noreturn void print_help(Cli *cli, const Verb *verb) {
    cli_help(&cli->out, verb);
    if (cli->json) cJSON_AddStringToObject(cli->json, "help", cli->out.bytes);
    cli_finish(cli, NG_OK);
}

static _Noreturn void print_version(Cli *cli) {
    buf_format(&cli->out, "normgen %s\n", ng_version());
    if (cli->json) cJSON_AddStringToObject(cli->json, "version", ng_version());
    cli_finish(cli, NG_OK);
}

/* A standard descriptor that came closed would be the next file opened, and take what is meant for the terminal. Filled
 * the wrong way round, it still fails to be read or written. */
static void fill_standard(void) {
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) _exit(NG_SYSTEM);
}

int main(int argc, char **argv) {
    Cli cli = {0};
    fill_standard();
    signal(SIGPIPE, SIG_IGN); /* a closed standard output is an error of write, with its message */
    signal(SIGXFSZ, SIG_IGN); /* and so is a file beyond the limit */
    signal(SIGINT, wants(argc, argv, "--json") ? interrupted_json : interrupted);
    const char *no_color = getenv("NO_COLOR");
    cli.color = isatty(STDERR_FILENO) && !(no_color && *no_color);
    if (wants(argc, argv, "--json")) cli.json = cJSON_CreateObject();
    int first = 1;
    while (first < argc && !strcmp(argv[first], "--json")) first++;
    if (first >= argc) {
        if (!cli.json) {
            Buf help = {0};
            cli_help(&help, NULL);
            cli_diagnose(&cli, help.bytes, help.count);
            free(help.bytes);
        }
        cli_fail(&cli, NG_USAGE, "no verb given");
    }
    const char *name = argv[first];
    if (!strcmp(name, "--help") || !strcmp(name, "-h")) print_help(&cli, NULL);
    if (!strcmp(name, "help"))
        print_help(&cli, first + 1 < argc && argv[first + 1][0] != '-' ? find_verb(&cli, argv[first + 1]) : NULL);
    if (!strcmp(name, "--version")) print_version(&cli);
    if (name[0] == '-') cli_fail(&cli, NG_USAGE, "the verb comes first: normgen VERB [options] (see normgen --help)");
    cli.verb = find_verb(&cli, name);
    if (cli.json) cJSON_AddStringToObject(cli.json, "command", cli.verb->name);
    bool help = wants(argc, argv, "--help") || wants(argc, argv, "-h");
    if (help) print_help(&cli, cli.verb);
    if (cli.verb->run == cli_unavailable) return cli_unavailable(&cli);
    cli_parse(&cli, argc - first - 1, argv + first + 1);
    if (cli_has(&cli, OPTION_VERSION)) print_version(&cli);
    cli_finish(&cli, cli.verb->run(&cli));
}
