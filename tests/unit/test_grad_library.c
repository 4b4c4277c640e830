/* ng_grad as an application calls it: what it gives, what it refuses, its texts in bytes, threads and memory. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/normgen.h"
#include "tests/support/fail_alloc.h"

#include <cjson/cJSON.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const char forward[] = "graph: add_norm\n"
                              "types: {E: bf16}\n"
                              "dims: {M: any, N: 96}\n"
                              "inputs: {x: \"E[M, N]\", r: \"E[M, N]\", w: \"f32[N]\", ids: \"i64[M]\"}\n"
                              "scalars: {eps: 1e-5}\n"
                              "nodes:\n"
                              "  h: x + r\n"
                              "  y: rms_norm(h, w, eps)\n"
                              "  far: ids + 1\n"
                              "outputs: {y: E, h: E, far: i64}\n";

typedef struct Got {
    ng_status status;
    ng_text backward, forward, why, words, json;
} Got;

static Got derive(const char *text, const char *wrt, const char *of, ng_grad_options options) {
    Got got = {.status = NG_OK};
    if (!options.size) options.size = sizeof options;
    options.explain = &got.words;
    options.explain_json = &got.json;
    got.status = ng_grad(text, strlen(text), wrt, of, &options, &got.backward, &got.forward, &got.why);
    return got;
}

static void drop(Got *got) {
    ng_text_free(&got->backward);
    ng_text_free(&got->forward);
    ng_text_free(&got->why);
    ng_text_free(&got->words);
    ng_text_free(&got->json);
}

static void assert_done(const Got *got) {
    if (got->status) print_message("%s\n", got->why.bytes ? got->why.bytes : "no words");
    assert_int_equal(got->status, NG_OK);
    const ng_text *const texts[] = {&got->backward, &got->forward, &got->words, &got->json};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_true(texts[i]->count > 0);
        assert_int_equal(texts[i]->bytes[texts[i]->count], 0);
    }
}

static void assert_refused(const char *text, const char *wrt, const char *of, ng_grad_options options, ng_status status,
                           const char *words) {
    Got got = derive(text, wrt, of, options);
    if (got.status != status || !got.why.bytes || !strstr(got.why.bytes, words))
        fail_msg("status %d for %d, \"%s\" without \"%s\"", got.status, status, got.why.bytes ? got.why.bytes : "",
                 words);
    assert_null(got.backward.bytes);
    assert_null(got.forward.bytes);
    assert_null(got.words.bytes);
    assert_null(got.json.bytes);
    drop(&got);
}

/* ---- what it gives ---- */

static ng_program *compile(ng_context *context, const ng_text *text) {
    ng_program *program;
    ng_text why = {NULL, 0};
    const ng_status status = ng_compile(context, text->bytes, text->count, NULL, &program, &why);
    if (status || why.bytes) fail_msg("%s\n%s", why.bytes, text->bytes);
    return program;
}

static ng_arg argument(const ng_program *program, const char *name, ng_arg_role role) {
    ng_arg arg = {.size = sizeof arg};
    ng_arg_role found;
    uint32_t index;
    assert_int_equal(ng_arg_find(program, name, &found, &index), NG_OK);
    assert_int_equal(found, role);
    assert_int_equal(ng_arg_query(program, role, index, &arg), NG_OK);
    return arg;
}

static void test_texts(void **state) {
    (void)state;
    const ng_context_options none = {.size = sizeof none, .device = NG_DEVICE_NONE};
    ng_context *context;
    assert_int_equal(ng_context_create(&none, &context, NULL), NG_OK);
    Got got = derive(forward, NULL, NULL, (ng_grad_options){.verify = 1});
    assert_done(&got);
    ng_program *program = compile(context, &got.backward);
    ng_program_facts facts = {.size = sizeof facts};
    assert_int_equal(ng_program_query(program, &facts), NG_OK);
    assert_int_equal(facts.outputs, 3);
    assert_int_equal(argument(program, "d_y", NG_INPUT).dtype, NG_BF16);
    assert_int_equal(argument(program, "d_h", NG_INPUT).dtype, NG_BF16);
    assert_int_equal(argument(program, "d_x", NG_OUTPUT).dtype, NG_BF16);
    assert_int_equal(argument(program, "d_r", NG_OUTPUT).dtype, NG_BF16);
    assert_int_equal(argument(program, "d_w", NG_OUTPUT).dtype, NG_F32);
    ng_program_free(program);
    program = compile(context, &got.forward);
    const char *const outputs[] = {"y", "h", "far"};
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) argument(program, outputs[i], NG_OUTPUT);
    ng_program_free(program);
    drop(&got);
    /* some of it, and nothing that is not wanted */
    got = derive(forward, "w", "y", (ng_grad_options){.size = 0});
    assert_done(&got);
    program = compile(context, &got.backward);
    assert_int_equal(ng_program_query(program, &facts), NG_OK);
    assert_int_equal(facts.outputs, 1);
    argument(program, "d_w", NG_OUTPUT);
    ng_program_free(program);
    drop(&got);
    assert_int_equal(ng_grad(forward, strlen(forward), " x , w ", "y", NULL, NULL, NULL, NULL), NG_OK);
    ng_context_free(context);
}

static void test_settings(void **state) {
    (void)state;
    const ng_setting f16 = {"E", "f16"}, narrow = {"N", "48"}, rows = {"M", "4096"};
    const ng_setting defines[] = {f16, narrow};
    Got got = derive(forward, NULL, NULL,
                     (ng_grad_options){.defines = defines, .define_count = 2, .hints = &rows, .hint_count = 1});
    assert_done(&got);
    assert_null(strstr(got.backward.bytes, "bf16"));
    assert_non_null(strstr(got.backward.bytes, "E: f16\n"));
    assert_non_null(strstr(got.backward.bytes, "hint: 4096"));
    assert_non_null(strstr(got.forward.bytes, "48"));
    assert_non_null(strstr(got.words.bytes, "M=4096"));
    drop(&got);
    got = derive(forward, NULL, NULL, (ng_grad_options){.fixes = &rows, .fix_count = 1});
    assert_done(&got);
    assert_null(strstr(got.backward.bytes, "any"));
    drop(&got);
    /* a caller of an older header: what lies behind its size is not read */
    ng_grad_options older = {.size = offsetof(ng_grad_options, verify), .save = NULL, .verify = 1};
    older.explain = (ng_text *)(uintptr_t)1;
    older.alloc = fail_allocator(&(FailAlloc){0}).alloc;
    ng_text backward;
    assert_int_equal(ng_grad(forward, strlen(forward), NULL, NULL, &older, &backward, NULL, NULL), NG_OK);
    assert_non_null(backward.bytes);
    ng_text_free(&backward);
}

/* ---- bytes ---- */

static double value_of(const cJSON *object, const char *name) {
    const cJSON *value = cJSON_GetObjectItem(cJSON_GetObjectItem(object, name), "value");
    assert_true(cJSON_IsNumber(value));
    return value->valuedouble;
}

static double sum(const cJSON *facts, const char *list, const char *source) {
    const cJSON *item;
    double bytes = 0;
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(facts, list)) {
        const char *own = cJSON_GetStringValue(cJSON_GetObjectItem(item, "source"));
        if (!source || !strcmp(own, source)) bytes += value_of(item, "bytes");
    }
    return bytes;
}

static void test_bytes(void **state) {
    (void)state;
    enum { M = 40, N = 96 };
    const ng_setting rows = {"M", "40"};
    Got got = derive(forward, "x,w", "y", (ng_grad_options){.hints = &rows, .hint_count = 1});
    assert_done(&got);
    cJSON *facts = cJSON_Parse(got.json.bytes);
    assert_non_null(facts);
    assert_true(value_of(facts, "read") == sum(facts, "reads", NULL));
    assert_true(value_of(facts, "saved") == sum(facts, "reads", "saved"));
    assert_true(value_of(facts, "autograd") == sum(facts, "autograd_keeps", NULL));
    /* h is an output; what is saved are numbers of a row */
    assert_true(sum(facts, "reads", "output") == 2.0 * M * N || sum(facts, "reads", "input") >= 4.0 * M * N);
    assert_true(value_of(facts, "saved") <= 4.0 * M);
    cJSON_Delete(facts);
    drop(&got);
}

/* ---- what it refuses ---- */

static void test_refused(void **state) {
    (void)state;
    const ng_grad_options plain = {.size = 0};
    ng_text why;
    const ng_grad_options no_size = {.size = 0};
    assert_int_equal(ng_grad(forward, strlen(forward), NULL, NULL, &no_size, NULL, NULL, &why), NG_USAGE);
    assert_non_null(strstr(why.bytes, "size"));
    ng_text_free(&why);
    assert_int_equal(ng_grad(NULL, 3, NULL, NULL, NULL, NULL, NULL, &why), NG_USAGE);
    ng_text_free(&why);
    assert_int_equal(ng_grad(NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL), NG_REJECTED);
    assert_refused(forward, NULL, NULL, (ng_grad_options){.define_count = 1}, NG_USAGE, "NULL");
    assert_refused(forward, NULL, NULL, (ng_grad_options){.hints = &(ng_setting){"M", NULL}, .hint_count = 1}, NG_USAGE,
                   "misses");
    assert_refused(forward, NULL, NULL, (ng_grad_options){.alloc = fail_allocator(&(FailAlloc){0}).alloc}, NG_USAGE,
                   "release");
    assert_refused(forward, "", NULL, plain, NG_USAGE, "--wrt: a name is missing");
    assert_refused(forward, "x,,w", NULL, plain, NG_USAGE, "--wrt: a name is missing");
    assert_refused(forward, "x,w,x", NULL, plain, NG_USAGE, "--wrt=x: it is named twice");
    assert_refused(forward, NULL, "y,", plain, NG_USAGE, "--of: a name is missing");
    assert_refused(forward, "xx", NULL, plain, NG_USAGE, "'xx'");
    assert_refused(forward, NULL, "yy", plain, NG_USAGE, "'yy'");
    assert_refused(forward, NULL, NULL, (ng_grad_options){.save = "hh"}, NG_USAGE, "--save=hh");
    assert_refused(forward, NULL, NULL, (ng_grad_options){.recompute = "hh"}, NG_USAGE, "--recompute=hh");
    assert_refused(forward, NULL, NULL, (ng_grad_options){.save = "xhat", .recompute = "rstd,xhat"}, NG_USAGE,
                   "--save=xhat: --recompute");
    assert_refused("graph: g\nnodes: {y: relo(x)}\noutputs: {y: f32}\n", NULL, NULL,
                   (ng_grad_options){.name = "file.yaml"}, NG_REJECTED, "file.yaml:2:");
    static const char dead[] = "graph: g\ninputs: {x: \"f32[8]\"}\nnodes: {y: x * 2, z: x * 3}\noutputs: {y: f32}\n";
    Got got = derive(dead, NULL, NULL, plain);
    assert_done(&got);
    assert_non_null(strstr(got.why.bytes, "warning: "));
    drop(&got);
    assert_refused(dead, NULL, NULL, (ng_grad_options){.warnings_are_errors = 1}, NG_REJECTED, "z");
}

/* ---- threads, memory ---- */

static void *derive_again(void *expected) {
    const Got *wanted = expected;
    for (int i = 0; i < 10; i++) {
        Got got = derive(forward, NULL, NULL, (ng_grad_options){.size = 0});
        const int same = !got.status && !strcmp(got.backward.bytes, wanted->backward.bytes) &&
                         !strcmp(got.forward.bytes, wanted->forward.bytes) &&
                         !strcmp(got.json.bytes, wanted->json.bytes);
        drop(&got);
        if (!same) return expected; /* other bytes */
    }
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    Got got = derive(forward, NULL, NULL, (ng_grad_options){.size = 0});
    assert_done(&got);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, derive_again, &got), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    drop(&got);
}

static void test_no_memory(void **state) {
    (void)state;
    uint64_t n = 0;
    for (ng_status status = NG_SYSTEM; status;) {
        FailAlloc failing = {.fail_at = ++n};
        const Allocator allocator = fail_allocator(&failing);
        Got got = derive(forward, NULL, NULL,
                         (ng_grad_options){.alloc = allocator.alloc,
                                           .release = allocator.release,
                                           .allocator_state = allocator.state,
                                           .verify = 1});
        status = got.status;
        assert_true(status == NG_OK || (status == NG_SYSTEM && got.why.count && !got.backward.bytes));
        drop(&got);
        assert_int_equal(failing.live, 0);
        assert_true(n < 100000);
    }
    print_message("# gradients fail at each of their first %llu allocations without a leak\n",
                  (unsigned long long)n - 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),   cmocka_unit_test(test_settings), cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_threads),  cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
