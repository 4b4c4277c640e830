/* Child programs by posix_spawn. In: an argument list and descriptors. Out: how it ended and what it said. The
 * child's signals are put back to their defaults, since an application's choices (ignored SIGPIPE, blocked SIGINT) are
 * not meant for a compiler. Nothing here waits on a pipe: input and output are memory files. */
#include "runtime/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST_DESCRIPTOR 10 /* ours lie above what a child's table is rearranged to */

static bool is_program(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

char *rt_process_find(const char *name) {
    if (!name[0]) return NULL;
    if (strchr(name, '/')) return is_program(name) ? strdup(name) : NULL;
    const char *path = getenv("PATH");
    if (!path || !path[0]) path = "/usr/local/bin:/usr/bin:/bin";
    while (*path) {
        size_t folder = strcspn(path, ":"), length = strlen(name);
        char *file = malloc(folder + length + 2);
        if (!file) return NULL;
        memcpy(file, path, folder);
        file[folder] = '/';
        memcpy(file + folder + 1, name, length + 1);
        if (folder && is_program(file)) return file;
        free(file);
        path += folder + (path[folder] == ':');
    }
    return NULL;
}

int rt_memory_file(void) {
    int file = memfd_create("normgen", MFD_CLOEXEC);
    if (file < 0 || file >= FIRST_DESCRIPTOR) return file;
    int moved = fcntl(file, F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR);
    int error = moved < 0 && errno == EINVAL ? EMFILE : errno; /* EINVAL: no descriptor so high is allowed */
    close(file);
    errno = error;
    return moved;
}

int rt_write_all(int file, const char *bytes, size_t count) {
    while (count) {
        ssize_t written = write(file, bytes, count);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return errno;
        bytes += written;
        count -= (size_t)written;
    }
    return 0;
}

static int plan_descriptors(posix_spawn_file_actions_t *actions, int input, int output, int extra) {
    int error = input < 0 ? posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0)
                          : posix_spawn_file_actions_adddup2(actions, input, 0);
    if (!error) error = posix_spawn_file_actions_adddup2(actions, output, 1);
    if (!error) error = posix_spawn_file_actions_adddup2(actions, output, 2);
    if (!error && extra >= 0) error = posix_spawn_file_actions_adddup2(actions, extra, RT_PROCESS_EXTRA);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    if (!error)
        error = posix_spawn_file_actions_addclosefrom_np(actions, extra >= 0 ? RT_PROCESS_EXTRA + 1 : RT_PROCESS_EXTRA);
#endif
    return error;
}

static int plan_signals(posix_spawnattr_t *attributes) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int error = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (!error) error = posix_spawnattr_setsigmask(attributes, &none);
    if (!error) error = posix_spawnattr_setsigdefault(attributes, &all);
    return error;
}

int rt_process_start(RtChild *child, const char *const *argv, int input, int extra) {
    *child = (RtChild){.output = rt_memory_file()};
    if (child->output < 0) return errno;
    if (input >= 0 && lseek(input, 0, SEEK_SET) < 0) return errno;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    if (error) return error;
    error = posix_spawnattr_init(&attributes);
    if (error) goto out;
    error = plan_descriptors(&actions, input, child->output, extra);
    if (!error) error = plan_signals(&attributes);
    pid_t pid = 0;
    /* exec never writes to its arguments; the cast is posix_spawn's old signature. */
    if (!error) error = posix_spawn(&pid, argv[0], &actions, &attributes, (char *const *)(uintptr_t)argv, environ);
    if (!error) child->pid = pid;
    posix_spawnattr_destroy(&attributes);
out:
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

int rt_process_wait(RtChild *child) {
    int status = 0;
    pid_t pid;
    do {
        pid = waitpid(child->pid, &status, 0);
    } while (pid < 0 && errno == EINTR);
    child->pid = 0;
    child->code = 0;
    child->signal = 0;
    /* ECHILD: the application ignores SIGCHLD, so nobody learns how children end; callers judge by what it left. */
    if (pid < 0) return errno == ECHILD ? 0 : errno;
    if (WIFSIGNALED(status)) {
        child->code = -1;
        child->signal = WTERMSIG(status);
    } else {
        child->code = WEXITSTATUS(status);
    }
    return 0;
}

char *rt_process_output(const RtChild *child, size_t limit) {
    struct stat status;
    size_t count = 0;
    if (child->output >= 0 && fstat(child->output, &status) == 0) count = (size_t)status.st_size;
    if (count > limit) count = limit;
    char *bytes = malloc(count + 1);
    if (!bytes) return NULL;
    size_t done = 0;
    while (done < count) {
        ssize_t got = pread(child->output, bytes + done, count - done, (off_t)done);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        done += (size_t)got;
    }
    bytes[done] = 0;
    return bytes;
}

void rt_process_release(RtChild *child) {
    if (child->pid > 0) {
        kill(child->pid, SIGTERM); /* not SIGKILL: a compiler then removes its own temporary files */
        rt_process_wait(child);
    }
    if (child->output >= 0) close(child->output);
    child->output = -1;
}
