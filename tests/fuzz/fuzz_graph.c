/* libFuzzer: any bytes as a graph file, through parse, all passes and emit, as a client of the library. Nothing is
 * built or launched. A crash, a leak, an internal error or a rejection without words is a finding. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/normgen.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    ng_context_options where = {.size = sizeof where, .device = NG_DEVICE_NONE, .arch = 90};
    ng_context *context = NULL;
    if (ng_context_create(&where, &context, NULL) != NG_OK) abort();
    ng_compile_options how = {.size = sizeof how, .verify = 1};
    ng_program *program = NULL;
    ng_text why = {0};
    ng_status status = ng_compile(context, (const char *)bytes, count, &how, &program, &why);
    if (status == NG_INTERNAL || (status != NG_OK && why.count == 0)) {
        fwrite(why.bytes, 1, why.count, stderr);
        abort();
    }
    ng_text_free(&why);
    ng_program_free(program);
    ng_context_free(context);
    return 0;
}
