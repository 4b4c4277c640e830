/* The library through its public header: contexts, compiling, queries, launching, running, texts; what it refuses;
 * sharing between threads; a failing allocator; a comma locale. On the host device, so that it runs everywhere. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/normgen.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/random.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char layer_norm[] = "graph: layer_norm\n"
                                 "types: {E: bf16}\n"
                                 "dims: {M: {hint: 64, max: 100000}, N: 96}\n"
                                 "inputs:\n"
                                 "  x: E[M, N]\n"
                                 "  weight: f32[N]\n"
                                 "  bias: {dtype: f32, shape: [N], align: 16}\n"
                                 "scalars: {eps: 1e-5}\n"
                                 "nodes:\n"
                                 "  y: layer_norm(x, weight, bias, eps)\n"
                                 "outputs: {y: {dtype: E, inplace: x}}\n";
static const char slices[] = "graph: slices\n"
                             "dims: {T: any, H: 4, K: 2, D: 16}\n"
                             "inputs: {qkv: \"f32[T, H + K, D]\"}\n"
                             "scalars: {n: 3, s: {dtype: f32}}\n"
                             "nodes:\n"
                             "  k: qkv[:, H:H+K] * s + n\n"
                             "outputs: {k: {dtype: f32, inplace: \"qkv[:, H:H+K]\"}}\n";

static ng_context *open_context(ng_device_kind kind) {
    ng_context *context = NULL;
    ng_text why = {NULL, 0};
    const ng_context_options options = {.size = sizeof options, .device = kind};
    const ng_status status = ng_context_create(&options, &context, &why);
    if (status) print_message("%s\n", why.bytes ? why.bytes : "no words");
    ng_text_free(&why);
    assert_int_equal(status, NG_OK);
    return context;
}

static ng_program *compile(ng_context *context, const char *text) {
    ng_program *program = NULL;
    ng_text why = {NULL, 0};
    const ng_status status = ng_compile(context, text, strlen(text), NULL, &program, &why);
    if (status) print_message("%s\n", why.bytes ? why.bytes : "no words");
    ng_text_free(&why);
    assert_int_equal(status, NG_OK);
    return program;
}

/* ---- contexts ---- */

static void test_contexts(void **state) {
    (void)state;
    ng_context *context;
    ng_text why;
    const ng_context_options rows[] = {
        {.size = 0},
        {.size = sizeof rows[0], .device = (ng_device_kind)17},
        {.size = sizeof rows[0], .device = NG_DEVICE_NONE, .arch = 12},
        {.size = sizeof rows[0], .device = NG_DEVICE_HOST, .arch = 12},
        {.size = sizeof rows[0], .device = NG_DEVICE_HOST, .ordinal = 1},
        {.size = sizeof rows[0], .device = NG_DEVICE_HOST, .host_order = (ng_host_order)9},
        {.size = sizeof rows[0], .device = NG_DEVICE_NONE, .alloc = fail_allocator(&(FailAlloc){0}).alloc},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(ng_context_create(&rows[i], &context, &why), NG_USAGE);
        assert_null(context);
        assert_non_null(why.bytes);
        ng_text_free(&why);
        assert_int_equal(ng_context_create(&rows[i], &context, NULL), NG_USAGE);
    }
    ng_context_free(NULL);
    ng_text_free(NULL);
    ng_program_free(NULL);
    assert_string_equal(ng_version(), "0.1.0");
    assert_string_equal(ng_status_name(NG_NOT_COMPILED), "not compiled");
    assert_string_equal(ng_status_name((ng_status)99), "unknown");
}

static void test_no_gpu(void **state) {
    (void)state;
    ng_device device = {.size = sizeof device};
    ng_context *context;
    ng_text why;
    const ng_context_options far = {.size = sizeof far, .device = NG_DEVICE_CUDA, .ordinal = 4096};
    const ng_status status = ng_context_create(&far, &context, &why);
    assert_true(status == NG_NO_DEVICE || status == NG_UNAVAILABLE); /* there is no driver, or no such GPU */
    assert_non_null(why.bytes);
    ng_text_free(&why);
    int count = 0;
    while (!ng_device_query(count, &device)) count++;
    assert_int_equal(device.kind, NG_DEVICE_HOST); /* the last one */
    assert_int_equal(ng_device_query(count, &device), NG_NO_DEVICE);
    assert_int_equal(ng_device_query(-1, &device), NG_USAGE);
    context = open_context(NG_DEVICE_NONE);
    assert_int_equal(ng_context_device(context, &device), NG_OK);
    assert_int_equal(device.arch, 90);
    ng_program *program = compile(context, layer_norm);
    const ng_args args = {.size = sizeof args};
    assert_int_equal(ng_launch(program, &args), NG_UNAVAILABLE);
    assert_int_equal(ng_launch_check(program, &args, &why), NG_UNAVAILABLE);
    assert_non_null(strstr(why.bytes, "no device"));
    ng_text_free(&why);
    ng_program_free(program);
    ng_context_free(context);
}

/* ---- compiling ---- */

static void test_rejected(void **state) {
    ng_context *context = *state;
    ng_program *program;
    ng_text why;
    static const char bad[] = "graph: g\ninputs: {x: \"f32[M]\"}\nnodes: {y: x}\noutputs: {y: f32}\n";
    ng_compile_options options = {.size = sizeof options, .name = "file.yaml"};
    assert_int_equal(ng_compile(context, bad, strlen(bad), &options, &program, &why), NG_REJECTED);
    assert_null(program);
    assert_non_null(strstr(why.bytes, "file.yaml:2:"));
    assert_non_null(strstr(why.bytes, "error: "));
    ng_text_free(&why);
    options.last_pass = "expnad";
    assert_int_equal(ng_compile(context, layer_norm, strlen(layer_norm), &options, &program, &why), NG_USAGE);
    assert_non_null(strstr(why.bytes, "did you mean expand"));
    ng_text_free(&why);
    options.last_pass = NULL;
    options.sets = &(ng_setting){"no_such_knob", "1"};
    options.set_count = 1;
    assert_int_equal(ng_compile(context, layer_norm, strlen(layer_norm), &options, &program, &why), NG_USAGE);
    ng_text_free(&why);
    options.sets = &(ng_setting){"rows", NULL};
    assert_int_equal(ng_compile(context, layer_norm, strlen(layer_norm), &options, &program, &why), NG_USAGE);
    ng_text_free(&why);
    assert_int_equal(ng_compile(context, NULL, 1, NULL, &program, NULL), NG_USAGE);
    assert_int_equal(ng_compile(context, NULL, 0, NULL, &program, NULL), NG_REJECTED);
}

static void test_queries(void **state) {
    ng_context *context = *state;
    ng_program *program = compile(context, layer_norm);
    ng_program_facts facts = {.size = sizeof facts};
    assert_int_equal(ng_program_query(program, &facts), NG_OK);
    assert_string_equal(facts.name, "layer_norm");
    assert_int_equal(facts.inputs, 3);
    assert_int_equal(facts.outputs, 1);
    assert_int_equal(facts.scalars, 1);
    assert_int_equal(facts.dims, 1);
    assert_true(facts.kernels >= 1 && facts.compile_seconds > 0);
    ng_arg arg = {.size = sizeof arg};
    assert_int_equal(ng_arg_query(program, NG_DIM, 0, &arg), NG_OK);
    assert_string_equal(arg.name, "M");
    assert_int_equal(arg.hint, 64);
    assert_int_equal(arg.max, 100000);
    assert_int_equal(ng_arg_query(program, NG_DIM, 1, &arg), NG_USAGE);
    assert_int_equal(ng_arg_query(program, NG_INPUT, 0, &arg), NG_OK);
    assert_int_equal(arg.dtype, NG_BF16);
    assert_int_equal(arg.rank, 2);
    assert_int_equal(arg.extent_dim[0], 0);
    assert_int_equal(arg.extent_dim[1], -1);
    assert_int_equal(arg.align, 2);
    assert_int_equal(ng_arg_query(program, NG_INPUT, 2, &arg), NG_OK);
    assert_int_equal(arg.align, 16);
    assert_int_equal(ng_arg_query(program, NG_OUTPUT, 0, &arg), NG_OK);
    assert_int_equal(arg.inplace, 0);
    assert_int_equal(ng_arg_query(program, NG_SCALAR, 0, &arg), NG_OK);
    assert_true(arg.has_default && arg.value.f32 == 1e-5f);
    ng_arg_role role;
    uint32_t index;
    assert_int_equal(ng_arg_find(program, "bias", &role, &index), NG_OK);
    assert_int_equal(role, NG_INPUT);
    assert_int_equal(index, 2);
    assert_int_equal(ng_arg_find(program, "N", &role, &index), NG_USAGE);
    int64_t extents[2], strides[2], rows = 7;
    assert_int_equal(ng_arg_shape(program, NG_INPUT, 0, &rows, extents, strides), NG_OK);
    assert_int_equal(extents[0], 7);
    assert_int_equal(extents[1], 96);
    assert_int_equal(strides[0], 96);
    rows = 100001;
    assert_int_equal(ng_arg_shape(program, NG_INPUT, 0, &rows, extents, strides), NG_USAGE);
    struct {
        size_t size;
        const char *name;
    } small = {.size = sizeof small}; /* an older caller's struct */
    assert_int_equal(ng_program_query(program, (ng_program_facts *)(void *)&small), NG_OK);
    assert_string_equal(small.name, "layer_norm");
    for (uint32_t k = 0; k < facts.kernels; k++) {
        ng_kernel kernel = {.size = sizeof kernel};
        assert_int_equal(ng_kernel_query(program, k, &kernel), NG_OK);
        assert_true(kernel.threads > 0 && kernel.name && kernel.strategy);
        assert_true(kernel.registers == -1 || kernel.registers > 8);
        assert_int_equal(kernel.local_bytes > 0, 0);
    }
    assert_int_equal(ng_kernel_query(program, facts.kernels, &(ng_kernel){.size = sizeof(ng_kernel)}), NG_USAGE);
    ng_program_free(program);
}

static void test_slice_in_place(void **state) {
    ng_context *context = *state;
    ng_program *program = compile(context, slices);
    enum { T = 5, ROW = 6 * 16 };
    int64_t offset = 0, rows = T;
    assert_int_equal(ng_arg_slice(program, 0, &rows, &offset), NG_OK);
    assert_int_equal(offset, 4 * 16);
    float qkv[T * ROW], before[T * ROW];
    for (int i = 0; i < T * ROW; i++) before[i] = qkv[i] = (float)(i % 17);
    void *const tensors[] = {qkv, qkv + offset};
    const ng_scalar scalars[] = {{.f32 = 3}, {.f32 = 2}};
    ng_report report = {.size = sizeof report};
    ng_args args = {.size = sizeof args, .tensors = tensors, .dims = &rows, .scalars = scalars};
    assert_int_equal(ng_run(program, &args, 1, &report), NG_OK);
    for (int i = 0; i < T * ROW; i++) assert_true(qkv[i] == (i % ROW < 4 * 16 ? before[i] : before[i] * 2 + 3));
    args.scalars = NULL; /* s has no default */
    assert_int_equal(ng_run(program, &args, 0, &report), NG_USAGE);
    assert_non_null(strstr(report.why.bytes, "s has no default"));
    ng_text_free(&report.why);
    ng_program_free(program);
}

/* ---- launching and running ---- */

typedef struct Case {
    uint16_t *x, *y;
    float *weight, *bias;
    int64_t rows;
} Case;

enum { COLUMNS = 96 };

static Case make_case(int64_t rows) {
    Random random = {random_seed()};
    Case made = {malloc((size_t)(rows + 1) * COLUMNS * 2), malloc((size_t)(rows + 1) * COLUMNS * 2),
                 aligned_alloc(64, COLUMNS * 4), aligned_alloc(64, COLUMNS * 4), rows};
    for (int64_t i = 0; i < rows * COLUMNS; i++) ng_store(NG_BF16, &made.x[i], random_normal(&random));
    for (int c = 0; c < COLUMNS; c++) {
        made.weight[c] = (float)random_normal(&random);
        made.bias[c] = (float)random_normal(&random);
    }
    memset(made.y, 0xff, (size_t)(rows + 1) * COLUMNS * 2);
    return made;
}

static void free_case(Case *made) {
    free(made->x);
    free(made->y);
    free(made->weight);
    free(made->bias);
}

/* An independent layer norm in double. */
static void assert_layer_norm(const Case *made) {
    for (int64_t r = 0; r < made->rows; r++) {
        double mean = 0, variance = 0;
        for (int c = 0; c < COLUMNS; c++) mean += ng_load(NG_BF16, &made->x[r * COLUMNS + c]) / COLUMNS;
        for (int c = 0; c < COLUMNS; c++)
            variance += pow(ng_load(NG_BF16, &made->x[r * COLUMNS + c]) - mean, 2) / COLUMNS;
        for (int c = 0; c < COLUMNS; c++) {
            const double x = ng_load(NG_BF16, &made->x[r * COLUMNS + c]);
            const double want =
                (x - mean) / sqrt(variance + (double)1e-5f) * (double)made->weight[c] + (double)made->bias[c];
            const double got = ng_load(NG_BF16, &made->y[r * COLUMNS + c]);
            assert_true(fabs(got - want) <= fabs(want) / 128 + 1e-5); /* an ulp of bf16, and f32's error near 0 */
        }
    }
}

static void test_launch(void **state) {
    ng_context *context = *state;
    ng_program *program = compile(context, layer_norm);
    static const int64_t rows[] = {0, 1, 37};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Case made = make_case(rows[i]);
        void *const tensors[] = {made.x, made.weight, made.bias, made.y};
        size_t bytes = 1;
        assert_int_equal(ng_workspace_bytes(program, &made.rows, &bytes), NG_OK);
        void *workspace = aligned_alloc(256, bytes + 256 - bytes % 256);
        const ng_args args = {.size = sizeof args,
                              .tensors = tensors,
                              .dims = &made.rows,
                              .workspace = workspace,
                              .workspace_bytes = bytes};
        ng_text why;
        assert_int_equal(ng_launch_check(program, &args, &why), NG_OK);
        assert_null(why.bytes);
        assert_int_equal(ng_launch(program, &args), NG_OK);
        assert_layer_norm(&made);
        for (int c = 0; c < COLUMNS; c++) assert_int_equal(made.y[made.rows * COLUMNS + c], 0xffff);
        free(workspace);
        free_case(&made);
    }
    ng_program_free(program);
}

static void test_run(void **state) {
    ng_context *context = *state;
    ng_program *program = compile(context, layer_norm);
    Case made = make_case(37);
    void *const tensors[] = {made.x, made.weight, made.bias, made.y};
    ng_output_report output;
    ng_report report = {.size = sizeof report, .outputs = &output};
    const ng_args args = {.size = sizeof args, .tensors = tensors, .dims = &made.rows};
    assert_int_equal(ng_run(program, &args, 1, &report), NG_OK);
    assert_null(report.why.bytes);
    assert_layer_norm(&made);
    assert_int_equal(output.checked, 37 * COLUMNS);
    assert_int_equal(output.failed, 0);
    const uint64_t hash = output.hash;
    void *const in_place[] = {made.x, made.weight, made.bias, made.x};
    const ng_args again = {.size = sizeof again, .tensors = in_place, .dims = &made.rows};
    assert_int_equal(ng_run(program, &again, 1, &report), NG_OK);
    assert_true(output.hash == hash);
    assert_int_equal(ng_run(program, &again, 1, NULL), NG_OK);
    assert_int_equal(ng_run(program, NULL, 1, NULL), NG_USAGE);
    free_case(&made);
    ng_program_free(program);
}

/* ---- texts ---- */

static ng_text text_of(const ng_program *program, ng_text_kind kind, const char *pass) {
    ng_text text;
    assert_int_equal(ng_program_text(program, kind, pass, &text), NG_OK);
    assert_int_equal(text.bytes[text.count], 0);
    return text;
}

static void test_texts(void **state) {
    ng_context *context = *state;
    ng_program *program = compile(context, layer_norm);
    struct {
        ng_text_kind kind;
        const char *pass, *holds;
    } const rows[] = {
        {NG_TEXT_CUDA, NULL, "__global__"},  {NG_TEXT_HEADER, NULL, "layer_norm_launch"},
        {NG_TEXT_IR, NULL, "nest "},         {NG_TEXT_IR, "expand", "graph: "},
        {NG_TEXT_IR, "all", "# after fuse"}, {NG_TEXT_EXPLAIN, NULL, "row_registers"},
        {NG_TEXT_TIMES, NULL, "parse\t"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ng_text first = text_of(program, rows[i].kind, rows[i].pass),
                second = text_of(program, rows[i].kind, rows[i].pass);
        assert_non_null(strstr(first.bytes, rows[i].holds));
        assert_string_equal(first.bytes, second.bytes);
        ng_text_free(&first);
        ng_text_free(&second);
    }
    ng_text none;
    assert_int_equal(ng_program_text(program, NG_TEXT_IR, "nonsense", &none), NG_USAGE);
    assert_null(none.bytes);
    ng_program_free(program);
    const ng_compile_options half = {.size = sizeof half, .last_pass = "expand"};
    assert_int_equal(ng_compile(context, layer_norm, strlen(layer_norm), &half, &program, NULL), NG_OK);
    assert_int_equal(ng_program_text(program, NG_TEXT_CUDA, NULL, &none), NG_USAGE);
    ng_text graph = text_of(program, NG_TEXT_IR, NULL);
    assert_non_null(strstr(graph.bytes, "graph: "));
    ng_text_free(&graph);
    const ng_args args = {.size = sizeof args};
    assert_int_equal(ng_launch(program, &args), NG_UNAVAILABLE);
    ng_program_free(program);
}

static void test_lists(void **state) {
    (void)state;
    static const char *const some[] = {"rsqrt", "layer_norm", "fuse", "row_loop", "bf16", "vector", "gelu", "swish"};
    for (int kind = NG_LIST_OPS; kind <= NG_LIST_ADVICE; kind++) {
        ng_text line;
        int found = 0;
        for (uint32_t i = 0; !ng_list((ng_list_kind)kind, i, &line); i++) {
            const size_t name = strcspn(line.bytes, "\t");
            assert_true(name > 0 && name < line.count);
            found |= name == strlen(some[kind]) && !strncmp(line.bytes, some[kind], name);
            ng_text_free(&line);
        }
        assert_true(found);
    }
}

/* ---- threads, memory, locale ---- */

typedef struct Together {
    ng_context *context;
    pthread_barrier_t *start;
    ng_program *program;
    ng_status status;
} Together;

static void *compile_and_run(void *state) {
    Together *own = state;
    pthread_barrier_wait(own->start);
    own->status = ng_compile(own->context, layer_norm, strlen(layer_norm), NULL, &own->program, NULL);
    Case made = make_case(5);
    void *const tensors[] = {made.x, made.weight, made.bias, made.y};
    const ng_args args = {.size = sizeof args, .tensors = tensors, .dims = &made.rows};
    for (int i = 0; i < 3 && !own->status; i++) own->status = ng_run(own->program, &args, 1, NULL);
    free_case(&made);
    return NULL;
}

static void test_threads(void **state) {
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    Together each[THREADS];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, THREADS);
    for (int t = 0; t < THREADS; t++) {
        each[t] = (Together){*state, &start, NULL, NG_INTERNAL};
        assert_int_equal(pthread_create(&threads[t], NULL, compile_and_run, &each[t]), 0);
    }
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
    for (int t = 0; t < THREADS; t++) {
        assert_int_equal(each[t].status, NG_OK);
        assert_ptr_equal(each[t].program, each[0].program); /* compiled once */
    }
    for (int t = 0; t < THREADS; t++) ng_program_free(each[t].program);
    pthread_barrier_destroy(&start);
}

/* So many tensors that a launch's working memory is not on the stack: two threads share it. */
enum { MANY = 48, LONG = 33 };

static void *launch_many(void *state) {
    ng_program *program = state;
    static const float zeros[LONG];
    float *y = malloc(sizeof(float) * LONG * MANY);
    void *tensors[2 * MANY];
    ng_status status = NG_OK;
    for (int t = 0; t < MANY; t++) tensors[t] = (void *)(uintptr_t)zeros, tensors[MANY + t] = y + t * LONG;
    const ng_args args = {.size = sizeof args, .tensors = tensors};
    for (int i = 0; i < 5 && !status; i++) {
        memset(y, 0xff, sizeof(float) * LONG * MANY);
        status = ng_launch(program, &args);
        for (int k = 0; k < LONG * MANY; k++)
            if (y[k] != (float)(k / LONG + 1)) status = NG_CHECK_FAILED;
    }
    free(y);
    return status ? program : NULL;
}

static void test_many_tensors(void **state) {
    char *text = NULL, *inputs = strdup(""), *nodes = strdup(""), *outputs = strdup("");
    for (int t = 0; t < MANY; t++) {
        char *longer[3];
        assert_true(asprintf(&longer[0], "%s  x%d: f32[N]\n", inputs, t) > 0);
        assert_true(asprintf(&longer[1], "%s  y%d: x%d + %d\n", nodes, t, t, t + 1) > 0);
        assert_true(asprintf(&longer[2], "%s  y%d: f32\n", outputs, t) > 0);
        free(inputs);
        free(nodes);
        free(outputs);
        inputs = longer[0], nodes = longer[1], outputs = longer[2];
    }
    assert_true(
        asprintf(&text, "graph: many\ndims: {N: 33}\ninputs:\n%snodes:\n%soutputs:\n%s", inputs, nodes, outputs) > 0);
    ng_program *program = compile(*state, text);
    pthread_t other;
    void *failed;
    assert_int_equal(pthread_create(&other, NULL, launch_many, program), 0);
    assert_null(launch_many(program));
    pthread_join(other, &failed);
    assert_null(failed);
    ng_program_free(program);
    free(text);
    free(inputs);
    free(nodes);
    free(outputs);
}

static void test_no_memory(void **state) {
    (void)state;
    ng_status status = NG_SYSTEM;
    uint64_t n = 0;
    while (status) {
        FailAlloc failing = {.fail_at = ++n};
        const Allocator allocator = fail_allocator(&failing);
        const ng_context_options options = {.size = sizeof options,
                                            .device = NG_DEVICE_NONE,
                                            .alloc = allocator.alloc,
                                            .release = allocator.release,
                                            .allocator_state = allocator.state};
        ng_context *context = NULL;
        ng_program *program = NULL;
        ng_text why = {NULL, 0};
        status = ng_context_create(&options, &context, &why);
        if (!status) status = ng_compile(context, layer_norm, strlen(layer_norm), NULL, &program, &why);
        assert_true(status == NG_OK || (status == NG_SYSTEM && why.count));
        ng_text_free(&why);
        ng_program_free(program);
        ng_context_free(context);
        assert_int_equal(failing.live, 0);
        assert_true(n < 100000);
    }
    print_message("# compiling fails at each of its first %llu allocations without a leak\n",
                  (unsigned long long)n - 1);
}

/* A locale whose decimal point is a comma: the system's, or one built from its sources into the build directory. */
static int set_comma_locale(void) {
    static const char *const commas[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "es_ES.UTF-8", "pt_BR.UTF-8", "ru_RU.UTF-8"};
    const char *build = getenv("BUILD");
    char *command = NULL, *path = NULL;
    for (size_t i = 0; i < sizeof commas / sizeof *commas; i++)
        if (setlocale(LC_ALL, commas[i])) return 1;
    assert_true(asprintf(&path, "%s/locale", build ? build : "build") > 0);
    assert_true(
        asprintf(&command, "mkdir -p %s && localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 2>/dev/null", path, path) > 0);
    const int built = !system(command) && !setenv("LOCPATH", path, 1) && setlocale(LC_ALL, "de_DE.UTF-8");
    free(command);
    free(path);
    return built;
}

static void test_locale(void **state) {
    (void)state;
    ng_context *context = open_context(NG_DEVICE_NONE);
    ng_program *program = compile(context, layer_norm);
    ng_text plain = text_of(program, NG_TEXT_CUDA, NULL), plain_words = text_of(program, NG_TEXT_EXPLAIN, NULL);
    ng_program_free(program);
    const int found = set_comma_locale();
    if (found) {
        assert_string_equal(localeconv()->decimal_point, ",");
        program = compile(context, layer_norm);
        ng_text comma = text_of(program, NG_TEXT_CUDA, NULL), words = text_of(program, NG_TEXT_EXPLAIN, NULL);
        ng_program_free(program);
        setlocale(LC_ALL, "C");
        assert_string_equal(plain.bytes, comma.bytes);
        assert_string_equal(plain_words.bytes, words.bytes);
        ng_text_free(&comma);
        ng_text_free(&words);
    }
    ng_text_free(&plain);
    ng_text_free(&plain_words);
    ng_context_free(context);
    if (!found) skip();
}

static int open_host(void **state) {
    *state = open_context(NG_DEVICE_HOST);
    return 0;
}

static int close_host(void **state) {
    ng_context_free(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contexts),
        cmocka_unit_test(test_no_gpu),
        cmocka_unit_test_setup_teardown(test_rejected, open_host, close_host),
        cmocka_unit_test_setup_teardown(test_queries, open_host, close_host),
        cmocka_unit_test_setup_teardown(test_slice_in_place, open_host, close_host),
        cmocka_unit_test_setup_teardown(test_launch, open_host, close_host),
        cmocka_unit_test_setup_teardown(test_run, open_host, close_host),
        cmocka_unit_test_setup_teardown(test_texts, open_host, close_host),
        cmocka_unit_test(test_lists),
        cmocka_unit_test_setup_teardown(test_threads, open_host, close_host),
        cmocka_unit_test_setup_teardown(test_many_tensors, open_host, close_host),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
