/* Builds host texts (host_build.h). In: texts. Out: loaded objects.
 *
 * A compiler reads its text from a memory file and writes the object to another, so nothing is left behind however
 * this process ends. Linkers that insist on a folder get a private one, removed once the object is loaded. */
#include "runtime/host_build.h"

#include "runtime/host_sanitize.h"
#include "runtime/process.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOG_BYTES 4000                /* of a compiler's words that a message repeats */
#define OBJECT_PATH "/proc/self/fd/3" /* of the extra descriptor, in the compiler and the linker it starts */

/* -O1: layer norm of 256 x 4096 in two variants, g++ 12 on two cores, compiles in 110, 140 and 230 ms at -O0, -O1 and
 * -O2 and runs in 60, 17 and 16 ms. */
static const char *const compile_flags[] = {
    "-std=c++17",
    "-O1",
    "-fPIC",
    "-shared",
    "-pipe",
    "-ffp-contract=off",
    "-fno-fast-math",
    "-fno-exceptions",
    "-fno-rtti",
    "-Wall",
    "-Wno-unused-function",
    "-Wno-unknown-pragmas",        /* unroll and clang, to gcc */
    "-Wno-tautological-compare",   /* a graph may compare a value with itself */
    "-Wno-maybe-uninitialized",    /* gcc: a pack is read under the condition that filled it */
    "-Wno-unknown-warning-option", /* the line above, to clang */
#if RT_ADDRESS_SANITIZER
    "-g1",
    "-fno-omit-frame-pointer",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
#ifdef __clang__
    "-fno-sanitize=function", /* its part of the runtime is for C++ programs only */
#endif
#endif
#if RT_THREAD_SANITIZER
    "-g1",
    "-fsanitize=thread",
#endif
};
#define FLAG_COUNT (sizeof compile_flags / sizeof *compile_flags)

struct RtObject {
    void *library;
    int file; /* stays open while loaded: the loader knows objects by path, and the path is the descriptor's number */
    atomic_uint references;
};

typedef struct Part {    /* one translation unit */
    int text, object;    /* memory files */
    char *folder, *path; /* where the linker wants a folder; else NULL */
    bool started;
    RtChild child;
    char *log;
    RtObject *loaded;
} Part;

typedef struct Build {
    char *words; /* $CXX split at blanks */
    char *compiler;
    const char **argv;
    size_t argc;
    size_t output;     /* index in argv of the output's path */
    uint32_t *part_of; /* source -> part */
    uint32_t *same_as; /* source -> first source with the same text */
    uint32_t part_count;
    Part *parts;
    Status status;
    char *why;
} Build;

static void build_fail(Build *build, Status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void build_fail(Build *build, Status status, const char *format, ...) { /* the first counts */
    if (build->status != STATUS_OK) return;
    build->status = status;
    va_list args;
    va_start(args, format);
    if (vasprintf(&build->why, format, args) < 0) build->why = NULL;
    va_end(args);
}
static void build_fail_errno(Build *build, const char *what, int error) {
    build_fail(build, STATUS_SYSTEM, "%s: %s", what, strerror(error));
}

/* ---- the compiler ---- */

/* A sanitized library needs the same runtime in its kernels, so the compiler is the library's own. */
#define TEXT_OF(x) #x
#define NUMBER_TEXT(x) TEXT_OF(x)
#if !RT_ADDRESS_SANITIZER && !RT_THREAD_SANITIZER
static const char *const compiler_names[] = {"c++", "g++", "clang++"};
#elif defined(__clang__)
static const char *const compiler_names[] = {"clang++-" NUMBER_TEXT(__clang_major__), "clang++"};
#else
static const char *const compiler_names[] = {"g++-" NUMBER_TEXT(__GNUC__), "g++"};
#endif

static void add_argument(Build *build, const char *argument) { build->argv[build->argc++] = argument; }

/* Starts argv with the compiler: $CXX split at blanks, or the first there is. */
static void add_compiler(Build *build, const char *chosen) {
    if (chosen[strspn(chosen, " \t")]) {
        char *rest = NULL;
        build->words = strdup(chosen);
        for (char *word = build->words ? strtok_r(build->words, " \t", &rest) : NULL; word;
             word = strtok_r(NULL, " \t", &rest))
            add_argument(build, word);
        build->compiler = build->argc ? rt_process_find(build->argv[0]) : NULL;
        if (!build->compiler)
            build_fail(build, STATUS_UNAVAILABLE,
                       "CXX=%s: there is no such program; the host device needs a C++ compiler", chosen);
    } else {
        for (size_t i = 0; i < sizeof compiler_names / sizeof *compiler_names && !build->compiler; i++)
            build->compiler = rt_process_find(compiler_names[i]);
        if (!build->compiler)
            build_fail(build, STATUS_UNAVAILABLE,
                       "the host device needs a C++ compiler and found none: install one (Debian: apt-get install "
                       "g++) or name it in CXX");
        add_argument(build, "");
    }
    build->argv[0] = build->compiler;
}

static void make_arguments(Build *build) {
    const char *chosen = RT_ADDRESS_SANITIZER || RT_THREAD_SANITIZER ? NULL : getenv("CXX");
    if (!chosen) chosen = "";
    build->argv = calloc(FLAG_COUNT + strlen(chosen) + 16, sizeof *build->argv);
    if (!build->argv) {
        build_fail_errno(build, "compiler", ENOMEM);
        return;
    }
    add_compiler(build, chosen);
    for (size_t i = 0; i < FLAG_COUNT; i++) add_argument(build, compile_flags[i]);
#ifdef __x86_64__
    if (__builtin_cpu_supports("fma")) add_argument(build, "-mfma"); /* an explicit fma is then one instruction */
#endif
    add_argument(build, "-x");
    add_argument(build, "c++");
    add_argument(build, "-");
    add_argument(build, "-o");
    build->output = build->argc;
    add_argument(build, OBJECT_PATH);
    add_argument(build, "-Wl,--as-needed");
    add_argument(build, "-lm");
}

/* ---- parts ---- */

static bool same_text(const Source *a, const Source *b) {
    return a->host_count == b->host_count && (a == b || memcmp(a->host_text, b->host_text, a->host_count) == 0);
}

/* Spreads the texts over parts of about equal size, none empty; equal texts go once. */
static void share_out(Build *build, const Source *const *sources, uint32_t count, int jobs) {
    size_t total = 0, done = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t j = 0;
        while (!same_text(sources[j], sources[i])) j++;
        build->same_as[i] = j;
        if (j == i) total += sources[i]->host_count;
    }
    uint32_t last = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t same = build->same_as[i];
        if (same == i) {
            if (i && (double)done * jobs >= (double)total * (last + 1)) last++;
            done += sources[i]->host_count;
        }
        build->part_of[i] = same == i ? last : build->part_of[same];
    }
    build->part_count = last + 1;
}

static int part_write(Build *build, uint32_t index, const Source *const *sources, uint32_t count) {
    Part *part = &build->parts[index];
    part->text = rt_memory_file();
    if (part->text < 0) return errno;
    int error = 0;
    for (uint32_t i = 0; i < count && !error; i++) {
        if (build->part_of[i] != index || build->same_as[i] != i) continue;
        const char *before = "#pragma clang diagnostic ignored \"-Wpass-failed\"\n" /* of unroll */
                             "#undef NG_TEXT\n#define NG_TEXT %u\n#line 1 \"kernel text %u\"\n";
        error = dprintf(part->text, before, i, i) < 0 ? errno : 0;
        if (!error) error = rt_write_all(part->text, sources[i]->host_text, sources[i]->host_count);
        if (!error) error = rt_write_all(part->text, "\n", 1);
    }
    return error;
}

static void part_start(Build *build, Part *part) {
    part->object = rt_memory_file();
    int error = part->object < 0 ? errno : 0;
    if (!error) {
        build->argv[build->output] = part->path ? part->path : OBJECT_PATH;
        error = rt_process_start(&part->child, build->argv, part->text, part->object);
        part->started = true;
    }
    if (error) build_fail_errno(build, build->compiler, error);
}

static int part_folder(Part *part) {
    const char *place = getenv("TMPDIR");
    if (!place || !place[0]) place = "/tmp";
    if (asprintf(&part->folder, "%s/normgen-XXXXXX", place) < 0) part->folder = NULL;
    if (!part->folder) return ENOMEM;
    if (!mkdtemp(part->folder)) {
        int error = errno;
        free(part->folder);
        part->folder = NULL;
        return error;
    }
    if (asprintf(&part->path, "%s/kernels.so", part->folder) < 0) part->path = NULL;
    return part->path ? 0 : ENOMEM;
}

static void part_release(Part *part) {
    if (part->started) rt_process_release(&part->child);
    part->started = false;
    if (part->object >= 0) close(part->object);
    part->object = -1;
    free(part->log);
    part->log = NULL;
    if (part->path) unlink(part->path);
    if (part->folder) rmdir(part->folder);
    free(part->path);
    free(part->folder);
    part->path = part->folder = NULL;
}

/* Waits for the compiler; 0 or an errno value. */
static int part_wait(Part *part) {
    int error = rt_process_wait(&part->child);
    if (!error) part->log = rt_process_output(&part->child, LOG_BYTES);
    return error || part->log ? error : ENOMEM;
}

static void part_finish(Build *build, Part *part) {
    int error = part_wait(part);
    if (!error && part->child.code > 0 && strstr(part->log, OBJECT_PATH)) { /* the linker did not like that path */
        part_release(part);
        error = part_folder(part);
        if (!error) part_start(build, part);
        if (!error && build->status == STATUS_OK) error = part_wait(part);
    }
    if (error) build_fail_errno(build, build->compiler, error);
    if (build->status != STATUS_OK) return;
    if (part->child.signal)
        build_fail(build, STATUS_SYSTEM, "%s was stopped by signal %d", build->compiler, part->child.signal);
    else if (part->child.code)
        build_fail(build, STATUS_NOT_COMPILED, "%s could not compile a kernel for the host:\n%s", build->compiler,
                   part->log);
}

static void part_load(Build *build, Part *part) {
    RtObject *object = calloc(1, sizeof *object);
    char *path = NULL;
    if (part->path)
        path = strdup(part->path);
    else if (asprintf(&path, "/proc/%d/fd/%d", (int)getpid(), part->object) < 0) /* a symbolizer opens it too */
        path = NULL;
    if (!object || !path) {
        build_fail_errno(build, "loading a kernel", ENOMEM);
        goto out;
    }
    object->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object->library) {
        build_fail(build, STATUS_SYSTEM, "loading a kernel: %s", dlerror());
        goto out;
    }
    object->file = part->object;
    part->object = -1;
    part->loaded = object;
    void (*bind)(const ng_host_api *api);
    void *symbol = dlsym(object->library, "ng_host_bind");
    memcpy(&bind, &symbol, sizeof bind); /* ISO C has no cast from object to function pointers */
    if (symbol)
        bind(&rt_host_api);
    else
        build_fail(build, STATUS_INTERNAL, "a host text does not define ng_host_bind");
    object = NULL;
out:
    free(object);
    free(path);
}

/* ---- the whole ---- */

static void build_run(Build *build, const Source *const *sources, uint32_t count, int jobs) {
    make_arguments(build);
    if (build->status != STATUS_OK) return;
    share_out(build, sources, count, jobs);
    build->parts = calloc(build->part_count, sizeof *build->parts);
    if (!build->parts) {
        build->part_count = 0;
        build_fail_errno(build, "compiler", ENOMEM);
        return;
    }
    for (uint32_t i = 0; i < build->part_count; i++) build->parts[i].text = build->parts[i].object = -1;
    for (uint32_t i = 0; i < build->part_count && build->status == STATUS_OK; i++) {
        int error = part_write(build, i, sources, count);
        if (error) build_fail_errno(build, "writing a kernel's text", error);
        if (!error) part_start(build, &build->parts[i]);
    }
    for (uint32_t i = 0; i < build->part_count && build->status == STATUS_OK; i++) part_finish(build, &build->parts[i]);
    for (uint32_t i = 0; i < build->part_count && build->status == STATUS_OK; i++) part_load(build, &build->parts[i]);
}

/* The compilers' words of a build that succeeded. */
static char *warnings(const Build *build) {
    char *all = NULL;
    for (uint32_t i = 0; i < build->part_count; i++) {
        char *before = all;
        if (!build->parts[i].log[0]) continue;
        if (asprintf(&all, "%s%s", before ? before : "", build->parts[i].log) < 0) all = NULL;
        free(before);
    }
    return all;
}

Status rt_host_compile(const Source *const *sources, uint32_t count, int jobs, RtObject **objects, uint32_t *numbers,
                       char **words) {
    *words = NULL;
    if (!count) return STATUS_OK;
    Build build = {.part_of = calloc(count, sizeof(uint32_t)), .same_as = calloc(count, sizeof(uint32_t))};
    if (build.part_of && build.same_as)
        build_run(&build, sources, count, jobs);
    else
        build_fail_errno(&build, "compiler", ENOMEM);
    if (build.status == STATUS_OK) {
        build.why = warnings(&build);
        for (uint32_t i = 0; i < count; i++) {
            objects[i] = build.parts[build.part_of[i]].loaded;
            numbers[i] = build.same_as[i];
            atomic_fetch_add(&objects[i]->references, 1);
        }
    }
    for (uint32_t i = 0; i < build.part_count; i++) {
        Part *part = &build.parts[i];
        if (build.status != STATUS_OK && part->loaded) {
            atomic_store(&part->loaded->references, 1);
            rt_object_release(part->loaded);
        }
        part_release(part);
        if (part->text >= 0) close(part->text);
    }
    free(build.parts);
    free(build.part_of);
    free(build.same_as);
    free(build.argv);
    free(build.compiler);
    free(build.words);
    *words = build.why;
    return build.status;
}

void rt_object_release(RtObject *object) {
    if (!object || atomic_fetch_sub(&object->references, 1) > 1) return;
    dlclose(object->library);
    if (object->file >= 0) close(object->file);
    free(object);
}

RtEntry rt_object_entry(const RtObject *object, uint32_t number, const char *name) {
    void *found = NULL;
    for (int numbered = 1; numbered >= 0 && !found; numbered--) {
        char *symbol = NULL;
        if ((numbered ? asprintf(&symbol, "%s__host_%u", name, number) : asprintf(&symbol, "%s__host", name)) < 0)
            return NULL;
        found = dlsym(object->library, symbol);
        free(symbol);
    }
    RtEntry entry;
    memcpy(&entry, &found, sizeof entry);
    return entry;
}
