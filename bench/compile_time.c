/* How long ng_compile takes with NVRTC. In: graph files. Out: a row for each file and number of columns: wall time of
 * the whole call (text to loaded kernels), median and least, and processor time of all threads. The first compile of
 * the process, which loads NVRTC, is not counted, and NVRTC's own cache is off. Where there is no GPU, a driver that
 * only counts stands in for it (FAKE_CUDA, the path of tests/fake/cuda.c as a library), so that everything but the
 * loading is as it is.
 *
 *     compile_time [-r ROUNDS] [-n COLUMNS,...] [-e DTYPE] GRAPH...      columns 0: as the file says
 */
#include "runtime/normgen.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { MOST_ROUNDS = 101 };

static double wall_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static double processor_ms(void) {
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e3 +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-3;
}

static int order(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

_Noreturn static void stop(const char *what, const ng_text *why) {
    fprintf(stderr, "%s%s%s\n", what, why->count ? ": " : "", why->count ? why->bytes : "");
    exit(1);
}

static char *read_file(const char *path, size_t *count) {
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t room = 0;
    if (!file) stop(path, &(ng_text){0});
    ssize_t got = getdelim(&text, &room, 0, file);
    fclose(file);
    if (got < 0) stop(path, &(ng_text){0});
    *count = (size_t)got;
    return text;
}

typedef struct Graph {
    const char *path, *text;
    size_t count;
    const char *dtype, *columns; /* NULL: as the file says */
} Graph;

static ng_program *compile(ng_context *context, const Graph *graph) {
    ng_setting defines[2];
    size_t count = 0;
    if (graph->dtype) defines[count++] = (ng_setting){"E", graph->dtype};
    if (graph->columns) defines[count++] = (ng_setting){"N", graph->columns};
    ng_program *program = NULL;
    ng_text why = {0};
    const ng_compile_options options = {
        .size = sizeof options, .name = graph->path, .defines = defines, .define_count = count};
    if (ng_compile(context, graph->text, graph->count, &options, &program, &why)) stop(graph->path, &why);
    ng_text_free(&why);
    return program;
}

/* NVRTC looks for a driver when it first compiles and must not find the one that only counts. */
static void warm(const Graph *graph) {
    ng_context *context = NULL;
    ng_text why = {0};
    ng_kernel kernel = {.size = sizeof kernel};
    const ng_context_options options = {.size = sizeof options, .device = NG_DEVICE_NONE};
    if (ng_context_create(&options, &context, &why)) stop("no context", &why);
    ng_program *program = compile(context, graph);
    ng_kernel_query(program, 0, &kernel);
    if (kernel.registers < 0) stop("skipped: no NVRTC", &why);
    ng_program_free(program);
    ng_context_free(context);
}

static ng_context *open_cuda(const Graph *graph) {
    ng_context *context = NULL;
    ng_text why = {0};
    const ng_context_options options = {.size = sizeof options, .device = NG_DEVICE_CUDA};
    const char *fake = getenv("FAKE_CUDA");
    warm(graph);
    if (ng_context_create(&options, &context, &why) == NG_OK) return context;
    if (!fake || !dlopen(fake, RTLD_NOW | RTLD_GLOBAL)) stop("no GPU, and FAKE_CUDA names no library", &why);
    ng_text_free(&why);
    why = (ng_text){0};
    if (ng_context_create(&options, &context, &why)) stop("no device", &why);
    printf("# no GPU: loading is not in these times\n");
    return context;
}

static void measure(ng_context *context, const Graph *graph, int rounds) {
    double wall[MOST_ROUNDS], processor[MOST_ROUNDS];
    ng_program_facts facts = {.size = sizeof facts};
    for (int i = 0; i < rounds; i++) {
        const double start = wall_ms(), start_processor = processor_ms();
        ng_program *program = compile(context, graph);
        wall[i] = wall_ms() - start;
        processor[i] = processor_ms() - start_processor;
        ng_program_query(program, &facts);
        ng_program_free(program);
    }
    qsort(wall, (size_t)rounds, sizeof *wall, order);
    qsort(processor, (size_t)rounds, sizeof *processor, order);
    const char *slash = strrchr(graph->path, '/');
    printf("%-28s %6s %7u %9.0f %9.0f %9.0f %9.0f\n", slash ? slash + 1 : graph->path,
           graph->columns ? graph->columns : "file", facts.kernels, wall[rounds / 2], wall[0], processor[rounds / 2],
           processor[0]);
    fflush(stdout);
}

int main(int argc, char **argv) {
    int rounds = 7, option;
    char *list = NULL, *dtype = NULL;
    setenv("CUDA_CACHE_DISABLE", "1", 1); /* NVRTC 13 keeps what it compiled, and would answer from there */
    while ((option = getopt(argc, argv, "r:n:e:")) != -1) {
        if (option == 'r') rounds = atoi(optarg);
        if (option == 'n') list = optarg;
        if (option == 'e') dtype = optarg;
        if (option == '?') return 2;
    }
    if (optind == argc || rounds < 1 || rounds > MOST_ROUNDS) {
        fprintf(stderr, "usage: compile_time [-r ROUNDS] [-n COLUMNS,...] [-e DTYPE] GRAPH...\n");
        return 2;
    }
    ng_context *context = NULL;
    double load[1] = {0};
    getloadavg(load, 1);
    for (int i = optind; i < argc; i++) {
        Graph graph = {.path = argv[i], .dtype = dtype};
        char *text = read_file(argv[i], &graph.count), *left = list ? strdup(list) : strdup("0"), *rest = left,
             *columns;
        graph.text = text;
        if (!context) {
            context = open_cuda(&graph);
            ng_program_free(compile(context, &graph));
            printf("# milliseconds of ng_compile, %d rounds, %ld processors, load %.1f\n", rounds,
                   sysconf(_SC_NPROCESSORS_ONLN), load[0]);
            printf("%-28s %6s %7s %9s %9s %9s %9s\n", "graph", "N", "kernels", "wall", "least", "processor", "least");
        }
        while ((columns = strsep(&rest, ","))) {
            graph.columns = strcmp(columns, "0") ? columns : NULL;
            measure(context, &graph, rounds);
        }
        free(left);
        free(text);
    }
    ng_context_free(context);
    return 0;
}
