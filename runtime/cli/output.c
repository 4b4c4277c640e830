/* What leaves the command: failures, diagnostics, standard output and files. In: text. Out: bytes on disk or an exit
 * code 6 with words; nothing is left half-written. */
#include "runtime/cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool write_all(int fd, const void *bytes, size_t count) {
    const char *at = bytes;
    while (count) {
        ssize_t wrote = write(fd, at, count < ((size_t)1 << 30) ? count : (size_t)1 << 30);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return false;
        at += wrote;
        count -= (size_t)wrote;
    }
    return true;
}

static void release(Cli *cli) {
    free(cli->uses);
    free(cli->operands);
    free(cli->out.bytes);
    cJSON_Delete(cli->json);
    *cli = (Cli){0};
}

static size_t utf8_length(const unsigned char *at, size_t left) { /* 0: no well-formed character begins here */
    size_t length = *at < 0x80 ? 1 : *at < 0xc2 ? 0 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : *at < 0xf5 ? 4 : 0;
    if (length > left) return 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80) return 0;
    if ((*at == 0xe0 && at[1] < 0xa0) || (*at == 0xed && at[1] > 0x9f)) return 0;
    return (*at == 0xf0 && at[1] < 0x90) || (*at == 0xf4 && at[1] > 0x8f) ? 0 : length;
}

/* JSON is UTF-8; names of files and arguments may be anything. */
static void put_clean(Buf *buf, const char *text) {
    for (size_t left = strlen(text); left;) {
        size_t length = utf8_length((const unsigned char *)text, left);
        if (length)
            buf_bytes(buf, text, length);
        else
            buf_put(buf, "?");
        text += length ? length : 1;
        left -= length ? length : 1;
    }
}

/* An interrupt waits. */
static void block_stops(sigset_t *before) {
    sigset_t stops;
    sigemptyset(&stops);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGTERM);
    sigprocmask(SIG_BLOCK, &stops, before);
}

/* Standard output, once and whole; returns the status that the command ends with. */
static int flush(Cli *cli, int status) {
    if (cli->json) {
        cJSON_AddNumberToObject(cli->json, "status", status);
        cJSON_AddStringToObject(cli->json, "status_name", ng_status_name((ng_status)status));
        char *text = cJSON_Print(cli->json);
        cli->out.count = 0;
        if (text) put_clean(&cli->out, text);
        buf_put(&cli->out, "\n");
        free(text);
    }
    block_stops(NULL); /* what was begun is written whole; the process ends next */
    if (write_all(STDOUT_FILENO, cli->out.bytes, cli->out.count)) return status;
    cli_note(cli, "error: standard output: %s", strerror(errno));
    return NG_SYSTEM;
}

void cli_finish(Cli *cli, int status) {
    status = flush(cli, status);
    release(cli);
    exit(status);
}

/* From any depth: what the functions between still hold goes with the process. */
static _Noreturn void leave(Cli *cli, int status) {
    cli->out.count = 0;
    _exit(flush(cli, status));
}

/* Colours "error:" and its like where a terminal reads along. */
void cli_diagnose(Cli *cli, const char *text, size_t count) {
    static const struct {
        const char *word, *color;
    } words[] = {{" error: ", "\033[1;31m"}, {" warning: ", "\033[1;35m"}, {" note: ", "\033[1;36m"}};
    Buf buf = {0};
    const char *end = text + count;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t length = newline ? (size_t)(newline - text) + 1 : (size_t)(end - text);
        const char *found = NULL;
        for (size_t i = 0; cli->color && i < sizeof words / sizeof *words && !found; i++) {
            found = memmem(text, length, words[i].word, strlen(words[i].word));
            if (!found) continue;
            buf_bytes(&buf, text, (size_t)(found - text));
            buf_format(&buf, "%s%s\033[0m", words[i].color, words[i].word);
            found += strlen(words[i].word);
            buf_bytes(&buf, found, (size_t)(text + length - found));
        }
        if (!found) buf_bytes(&buf, text, length);
        text += length;
    }
    if (count && end[-1] != '\n') buf_put(&buf, "\n");
    write_all(STDERR_FILENO, buf.bytes, buf.count); /* nowhere left to say that it failed */
    free(buf.bytes);
}

void cli_note(Cli *cli, const char *format, ...) {
    Buf buf = {0};
    va_list args;
    va_start(args, format);
    buf_put(&buf, "normgen: ");
    buf_vformat(&buf, format, args);
    va_end(args);
    cli_diagnose(cli, buf.bytes, buf.count);
    free(buf.bytes);
}

static void keep_json(Cli *cli) { /* on failure the value holds the failure alone */
    if (!cli->json) return;
    cJSON_Delete(cli->json);
    cli->json = cJSON_CreateObject();
    if (cli->verb) cJSON_AddStringToObject(cli->json, "command", cli->verb->name);
}

void cli_fail(Cli *cli, int status, const char *format, ...) {
    Buf buf = {0};
    va_list args;
    va_start(args, format);
    buf_vformat(&buf, format, args);
    va_end(args);
    cli_note(cli, "error: %s", buf.bytes);
    keep_json(cli);
    if (cli->json) cJSON_AddStringToObject(cli->json, "error", buf.bytes);
    leave(cli, status);
}

void cli_tell_why(Cli *cli, ng_status status, const ng_text *why) {
    const char *words = why->count ? why->bytes : ng_status_name(status);
    if (strstr(words, ": error: ")) /* diagnostics name their own place */
        cli_diagnose(cli, words, strlen(words));
    else
        cli_note(cli, "error: %s", words);
    if (cli->json) cJSON_AddStringToObject(cli->json, "error", words);
}

void cli_fail_why(Cli *cli, ng_status status, ng_text *why) {
    keep_json(cli);
    cli_tell_why(cli, status, why);
    leave(cli, (int)status);
}

void cli_warnings(Cli *cli, ng_text *words) {
    if (words->count) {
        cli_diagnose(cli, words->bytes, words->count);
        if (cli->json) cJSON_AddStringToObject(cli->json, "warnings", words->bytes);
    }
    ng_text_free(words);
}

char *cli_read_file(Cli *cli, const char *path, size_t limit, size_t *count) {
    bool standard = !strcmp(path, "-");
    int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    Buf buf = {0};
    if (fd < 0 || !buf_read(&buf, fd, limit))
        cli_fail(cli, NG_SYSTEM, "%s: %s", standard ? "standard input" : path, strerror(errno));
    if (!standard) close(fd);
    *count = buf.count;
    return buf.bytes;
}

/* The folder of a path and what the file is called in it, links in the folder's own name resolved. */
static char *place_of(const char *path) {
    char *whole = realpath(path, NULL);
    if (whole) return whole;
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : cli_copy(".");
    char *real = folder ? realpath(folder, NULL) : NULL;
    Buf place = {0};
    buf_format(&place, "%s/%s", real ? real : folder ? folder : "", slash ? slash + 1 : path);
    free(folder);
    free(real);
    return place.bytes;
}

bool cli_same_file(const char *a, const char *b) {
    struct stat x, y;
    if (stat(a, &x) == 0 && stat(b, &y) == 0) return x.st_dev == y.st_dev && x.st_ino == y.st_ino && S_ISREG(x.st_mode);
    char *first = place_of(a), *second = place_of(b);
    const bool same = !strcmp(first, second);
    free(first);
    free(second);
    return same;
}

static bool facts_of(const char *path, struct stat *facts) {
    return (strcmp(path, "-") ? stat(path, facts) : fstat(STDOUT_FILENO, facts)) == 0;
}

bool cli_same_result(const char *a, const char *b) {
    const bool standard[2] = {!strcmp(a, "-"), !strcmp(b, "-")};
    struct stat x, y, null;
    if (standard[0] && standard[1]) return true;
    if (!facts_of(a, &x) || !facts_of(b, &y)) return !standard[0] && !standard[1] && cli_same_file(a, b);
    const bool nowhere = S_ISCHR(x.st_mode) && stat("/dev/null", &null) == 0 && x.st_rdev == null.st_rdev;
    return x.st_dev == y.st_dev && x.st_ino == y.st_ino && !nowhere;
}

/* A device, a pipe: what a rename would take away. Such a path is written through. */
static bool is_special(const char *path) {
    struct stat facts;
    return stat(path, &facts) == 0 && !S_ISREG(facts.st_mode);
}

/* A file on its way. */
typedef struct Part {
    char *target; /* its path through its links, so that they stay; NULL: written through */
    Buf beside;   /* the new file's name until it is renamed; empty: there is none */
} Part;

static _Noreturn void fail_write(Cli *cli, const char *path, const Part *parts, size_t count) {
    int error = errno;
    for (size_t i = 0; i < count; i++)
        if (parts[i].beside.count) unlink(parts[i].beside.bytes);
    cli_fail(cli, NG_SYSTEM, "%s: %s", path, strerror(error));
}

/* The folder's own entry reaches the disk only when the folder is synced. */
static void sync_folder(const char *path) {
    char *folder = cli_copy(path), *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = 0;
    int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    free(folder);
}

/* A new file beside the target, of the target's mode where there is one; its name goes to *name. A name that a killed
 * command left behind is passed over. */
static int create_beside(const char *target, Buf *name) {
    enum { TRIES = 100 };
    struct stat old;
    int fd = -1;
    for (int i = 0; i < TRIES && fd < 0; i++) {
        name->count = 0;
        buf_format(name, "%s.%ld.%d.part", target, (long)getpid(), i);
        fd = open(name->bytes, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) return -1;
    }
    if (fd >= 0 && stat(target, &old) == 0) fchmod(fd, old.st_mode & 0777);
    return fd;
}

/* Writes the file beside its place, or through; false with errno. */
static bool write_part(Part *part, const FileOut *file) {
    const bool special = is_special(file->path);
    if (!special) part->target = realpath(file->path, NULL);
    if (!special && !part->target) part->target = cli_copy(file->path);
    int fd = special ? open(file->path, O_WRONLY | O_CLOEXEC) : create_beside(part->target, &part->beside);
    if (fd < 0) {
        part->beside.count = 0; /* a name that was only tried */
        return false;
    }
    bool whole = true;
    for (size_t i = 0; i < file->count && whole; i++)
        whole = write_all(fd, file->pieces[i].bytes, file->pieces[i].count);
    if (whole && !special) whole = fsync(fd) == 0;
    const int error = errno;
    const bool closed = close(fd) == 0;
    if (!whole) errno = error;
    return whole && closed;
}

void cli_write_files(Cli *cli, const FileOut *files, size_t count) {
    Part *parts = cli_alloc(count + 1, sizeof *parts);
    /* an interrupt waits until the files are there or the parts are gone */
    sigset_t before;
    block_stops(&before);
    for (size_t i = 0; i < count; i++) {
        if (!strcmp(files[i].path, "-")) {
            for (size_t k = 0; k < files[i].count; k++)
                buf_bytes(&cli->out, files[i].pieces[k].bytes, files[i].pieces[k].count);
        } else if (!write_part(&parts[i], &files[i])) {
            fail_write(cli, files[i].path, parts, count);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (!parts[i].beside.count) continue;
        if (rename(parts[i].beside.bytes, parts[i].target) != 0) fail_write(cli, files[i].path, parts, count);
        parts[i].beside.count = 0;
        sync_folder(parts[i].target);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    for (size_t i = 0; i < count; i++) {
        free(parts[i].beside.bytes);
        free(parts[i].target);
    }
    free(parts);
}

void cli_write_file(Cli *cli, const char *path, const Piece *pieces, size_t count) {
    cli_write_files(cli, &(FileOut){path, pieces, count}, 1);
}
