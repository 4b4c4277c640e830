/* Texts that go to the caller. In: bytes, or a job's diagnostics. Out: memory of malloc, freed by ng_text_free. */
#include "runtime/launch_tables.h"

#include <stdlib.h>
#include <string.h>

ng_text rt_text_give(const char *bytes, size_t count) {
    char *copy = malloc(count + 1);
    if (!copy) return (ng_text){NULL, 0};
    if (count) memcpy(copy, bytes, count);
    copy[count] = 0;
    return (ng_text){copy, count};
}

typedef struct Words {
    ng_text text;
} Words;

static void words_work(Job *job, void *state) {
    const char *report = ir_job_report(job);
    ((Words *)state)->text = rt_text_give(report, strlen(report));
}

ng_text rt_job_words(Job *job) {
    static const char no_memory[] = "out of memory";
    Words words = {{NULL, 0}};
    if (ir_job_run(job, words_work, &words)) return rt_text_give(no_memory, strlen(no_memory));
    return words.text;
}

void ng_text_free(ng_text *text) {
    if (!text) return;
    free((void *)(uintptr_t)text->bytes);
    *text = (ng_text){NULL, 0};
}
