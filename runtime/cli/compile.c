/* compile: cubin, PTX or SASS of a graph, and what each kernel takes. In: options. Out: a table, and the binary in a
 * file or on standard output. SASS is read from the cubin by nvdisasm or cuobjdump, whichever is on PATH. */
#include "runtime/cli/run.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Columns of figures; -1 is shown as "-". */
static void put_figure(Buf *buf, int figure) {
    if (figure < 0)
        buf_format(buf, "  %9s", "-");
    else
        buf_format(buf, "  %9d", figure);
}

void cli_kernels(Cli *cli, const Opened *opened, Buf *table) {
    cJSON *list = cli->json ? cJSON_AddArrayToObject(cli->json, "kernels") : NULL;
    int width = 6;
    ng_kernel kernel = {.size = sizeof kernel};
    for (uint32_t i = 0; ng_kernel_query(opened->program, i, &kernel) == NG_OK; i++)
        width = (int)strlen(kernel.name) > width ? (int)strlen(kernel.name) : width;
    buf_format(table, "%-*s  %-14s %-8s  %9s  %9s  %9s  %9s  %9s\n", width, "kernel", "strategy", "variant", "threads",
               "registers", "shared", "spills", "launches");
    for (uint32_t i = 0; ng_kernel_query(opened->program, i, &kernel) == NG_OK; i++) {
        buf_format(table, "%-*s  %-14s %-8s", width, kernel.name, kernel.strategy, kernel.variant);
        put_figure(table, kernel.threads);
        put_figure(table, kernel.registers);
        put_figure(table, (int)kernel.shared_bytes);
        put_figure(table, kernel.local_bytes);
        put_figure(table, (int)kernel.launches);
        buf_put(table, "\n");
        if (!list) continue;
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "name", kernel.name);
        cJSON_AddStringToObject(item, "strategy", kernel.strategy);
        cJSON_AddStringToObject(item, "variant", kernel.variant);
        cJSON_AddNumberToObject(item, "threads", kernel.threads);
        cJSON_AddNumberToObject(item, "registers", kernel.registers);
        cJSON_AddNumberToObject(item, "shared_bytes", kernel.shared_bytes);
        cJSON_AddNumberToObject(item, "local_bytes", kernel.local_bytes);
        cJSON_AddNumberToObject(item, "launches", kernel.launches);
        cJSON_AddItemToArray(list, item);
    }
}

/* Runs a program found on PATH; its standard output goes to *out. False where it could not run or failed. */
static bool run_tool(const char *const *arguments, Buf *out) {
    int ends[2], status = -1;
    pid_t child;
    if (pipe(ends) != 0) return false;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    int error = posix_spawnp(&child, arguments[0], &actions, &attributes, (char *const *)(uintptr_t)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    close(ends[1]);
    if (error == 0) {
        buf_read(out, ends[0], SIZE_MAX - 1);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    }
    close(ends[0]);
    return error == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static Buf disassemble(Cli *cli, const ng_text *cubin) {
    const char *folder = getenv("TMPDIR");
    Buf path = {0}, sass = {0};
    buf_format(&path, "%s/normgen-XXXXXX", folder && *folder ? folder : "/tmp");
    int fd = mkstemp(path.bytes);
    if (fd < 0) cli_fail(cli, NG_SYSTEM, "%s: %s", path.bytes, strerror(errno));
    ssize_t wrote = write(fd, cubin->bytes, cubin->count);
    bool written = wrote >= 0 && (size_t)wrote == cubin->count;
    close(fd);
    const char *const nvdisasm[] = {"nvdisasm", "-c", path.bytes, NULL};
    const char *const cuobjdump[] = {"cuobjdump", "-sass", path.bytes, NULL};
    bool found = written && run_tool(nvdisasm, &sass);
    if (written && !found) {
        sass.count = 0;
        found = run_tool(cuobjdump, &sass);
    }
    unlink(path.bytes);
    free(path.bytes);
    if (!written) cli_fail(cli, NG_SYSTEM, "temporary file: %s", strerror(errno));
    if (!found)
        cli_fail(cli, NG_UNAVAILABLE,
                 "--emit=sass needs nvdisasm or cuobjdump of the CUDA toolkit on PATH; neither ran");
    return sass;
}

typedef enum Emit { EMIT_NOTHING, EMIT_CUBIN, EMIT_PTX, EMIT_SASS } Emit;

static Emit read_emit(Cli *cli) {
    const char *text = cli_value(cli, OPTION_EMIT);
    if (!text) return cli_value(cli, OPTION_OUTPUT) ? EMIT_CUBIN : EMIT_NOTHING;
    if (!strcmp(text, "cubin")) return EMIT_CUBIN;
    if (!strcmp(text, "ptx")) return EMIT_PTX;
    if (!strcmp(text, "sass")) return EMIT_SASS;
    if (!strcmp(text, "bundle")) cli_fail(cli, NG_UNAVAILABLE, "--emit=bundle is not available yet");
    cli_fail(cli, NG_USAGE, "--emit=%s: expected cubin, ptx or sass", text);
}

int cli_compile(Cli *cli) {
    Emit emit = read_emit(cli);
    const char *path = cli_value(cli, OPTION_OUTPUT);
    cli_check_path(cli, OPTION_OUTPUT);
    bool standard = !path || cli_same_result(path, "-");
    if (emit == EMIT_CUBIN && standard && (cli->json || isatty(STDOUT_FILENO)))
        cli_fail(cli, NG_USAGE, "a cubin is no text for %s; give -o FILE", cli->json ? "a JSON value" : "a terminal");
    Opened opened = cli_open(cli, cli_context(cli, false), NULL);
    ng_text binary = cli_text(cli, &opened, emit == EMIT_PTX ? NG_TEXT_PTX : NG_TEXT_CUBIN, NULL);
    Buf table = {0}, sass = {0};
    cli_kernels(cli, &opened, &table);
    Piece piece = {binary.bytes, binary.count};
    if (emit == EMIT_SASS) {
        sass = disassemble(cli, &binary);
        piece = (Piece){sass.bytes, sass.count};
    }
    if (emit == EMIT_NOTHING || !standard) {
        if (!cli->json) buf_bytes(&cli->out, table.bytes, table.count);
    } else {
        cli_diagnose(cli, table.bytes, table.count);
    }
    if (emit != EMIT_NOTHING && !standard) {
        cli_write_file(cli, path, &piece, 1);
        if (cli->json) cJSON_AddStringToObject(cli->json, "file", path);
    } else if (emit != EMIT_NOTHING) {
        cli_show(cli, emit == EMIT_PTX ? "ptx" : "sass", piece.bytes, piece.count);
    }
    free(table.bytes);
    free(sass.bytes);
    ng_text_free(&binary);
    cli_close(&opened);
    return NG_OK;
}
