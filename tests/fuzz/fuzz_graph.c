/* libFuzzer: any bytes as a graph file, through parse, all passes and emit, and through grad, as a client of the
 * library. Nothing is built or launched. A crash, a leak, an internal error, a rejection without words, or a text of
 * grad that is no graph is a finding. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/normgen.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

/* Ends on a finding; frees the words. */
static void look(ng_status status, ng_text *why, int must_pass) {
    if (status == NG_INTERNAL || (status != NG_OK && (why->count == 0 || must_pass))) {
        fwrite(why->bytes, 1, why->count, stderr);
        abort();
    }
    ng_text_free(why);
}

/* What grad wrote is typed like any graph file. */
static void type_text(ng_context *context, ng_text *text) {
    const ng_compile_options how = {.size = sizeof how, .last_pass = "expand"};
    ng_program *program = NULL;
    ng_text why = {0};
    const ng_status status = ng_compile(context, text->bytes, text->count, &how, &program, &why);
    look(status, &why, 1);
    ng_program_free(program);
    ng_text_free(text);
}

static void derive(ng_context *context, const char *text, size_t count) {
    ng_text backward, forward, words, json, why = {0};
    const ng_grad_options how = {.size = sizeof how, .verify = 1, .explain = &words, .explain_json = &json};
    const ng_status status = ng_grad(text, count, NULL, NULL, &how, &backward, &forward, &why);
    look(status, &why, 0);
    ng_text_free(&words);
    ng_text_free(&json);
    if (status != NG_OK) return;
    type_text(context, &backward);
    type_text(context, &forward);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    ng_context_options where = {.size = sizeof where, .device = NG_DEVICE_NONE, .arch = 90};
    ng_context *context = NULL;
    if (ng_context_create(&where, &context, NULL) != NG_OK) abort();
    ng_compile_options how = {.size = sizeof how, .verify = 1};
    ng_program *program = NULL;
    ng_text why = {0};
    const ng_status status = ng_compile(context, (const char *)bytes, count, &how, &program, &why);
    look(status, &why, 0);
    ng_program_free(program);
    derive(context, (const char *)bytes, count);
    ng_context_free(context);
    return 0;
}
