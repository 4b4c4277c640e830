/* The cases of tests/oracle/gradients.json. Contract: the header. */
#include "tests/support/torch_gradients.h"

#include "gen/exact.h"
#include "runtime/launch_tables.h"
#include "tests/support/graph_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBERS "tests/oracle/gradients.json"

const cJSON *torch_member(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    if (item) return item;
    printf("%s: no member %s\n", NUMBERS, name);
    abort();
}

const char *torch_text(const cJSON *object, const char *name) {
    return cJSON_GetStringValue(torch_member(object, name));
}

const cJSON *torch_cases(cJSON **root) {
    size_t count;
    char *bytes = graph_text_file(NUMBERS, &count);
    *root = bytes ? cJSON_Parse(bytes) : NULL;
    free(bytes);
    return torch_member(*root, "cases");
}

int64_t *torch_dims(Job *job, const cJSON *json, const Graph *graph) {
    int64_t *dims = ir_graph_fixed(job, graph);
    const cJSON *any = torch_member(json, "dims");
    for (uint32_t d = 0; d < graph->dims.count; d++)
        if (dims[d] < 0) dims[d] = (int64_t)cJSON_GetNumberValue(torch_member(any, graph->dims.at[d].name));
    return dims;
}

GradOptions torch_options(Job *job, const cJSON *json) {
    const cJSON *wrt = torch_member(json, "wrt"), *item;
    const char **names = IR_NEW_ARRAY(job, const char *, (size_t)cJSON_GetArraySize(wrt) + 1);
    uint32_t count = 0;
    cJSON_ArrayForEach(item, wrt) names[count++] = cJSON_GetStringValue(item);
    return (GradOptions){.wrt = {names, count}};
}

void torch_tensors(Job *job, NamedList *list, const cJSON *json) {
    const cJSON *item;
    cJSON_ArrayForEach(item, json) {
        const char *text = cJSON_GetStringValue(item);
        Named *named = IR_PUSH(job, list);
        named->name = item->string;
        named->number = IR_NEW_ARRAY(job, double, strlen(text) / 2 + 1);
        char *end = NULL;
        for (double value = strtod(text, &end); end != text; value = strtod(text, &end)) {
            named->number[named->count++] = value;
            text = end;
        }
    }
}

Named *torch_find(const NamedList *list, const char *name) {
    for (uint32_t i = 0; i < list->count; i++)
        if (!strcmp(list->at[i].name, name)) return &list->at[i];
    return NULL;
}

/* The tensor in memory as the graph has it. */
static View view_of(Job *job, const Graph *graph, const Tensor *tensor, const int64_t *dims, const NamedList *list) {
    const Named *named = torch_find(list, tensor->name);
    if (!named) IR_BREACH(job, "nothing gives the input %s", tensor->name);
    const DTypeRow *dtype = ir_dtype(tensor->dtype);
    View view = gen_exact_view(job, graph, tensor, dims, NULL);
    const int64_t count = view.rank ? view.extent[0] * view.stride[0] : 1;
    if ((uint64_t)count != named->count)
        IR_BREACH(job, "the input %s has %lld elements, there are %llu", tensor->name, (long long)count,
                  (unsigned long long)named->count);
    char *bytes = ir_alloc_array(job, named->count + 1, dtype->bytes);
    for (uint64_t i = 0; i < named->count; i++) {
        if (dtype->kind == KIND_FLOAT)
            ir_store_float(tensor->dtype, bytes + i * dtype->bytes, named->number[i]);
        else
            ir_store_int(tensor->dtype, bytes + i * dtype->bytes, (int64_t)named->number[i]);
    }
    view.bytes = bytes;
    return view;
}

Named torch_evaluate(Job *job, const Graph *graph, const int64_t *dims, const NamedList *list, uint32_t output) {
    View *views = IR_NEW_ARRAY(job, View, graph->inputs.count + 1);
    Scalar *scalars = IR_NEW_ARRAY(job, Scalar, graph->scalars.count + 1);
    for (uint32_t i = 0; i < graph->inputs.count; i++) views[i] = view_of(job, graph, &graph->inputs.at[i], dims, list);
    for (uint32_t i = 0; i < graph->scalars.count; i++) scalars[i] = rt_scalar_value(&graph->scalars.at[i], NULL);
    const EvalInput input = {.dims = dims, .inputs = views, .scalars = scalars};
    const Expected got = ir_eval_graph(job, graph, &input, output, NULL);
    Named named = {NULL, got.count, got.number, got.bound};
    if (!got.number) named.number = IR_NEW_ARRAY(job, double, got.count + 1);
    if (!got.bound) named.bound = IR_NEW_ARRAY(job, double, got.count + 1);
    for (uint64_t i = 0; i < got.count && !got.number; i++) named.number[i] = (double)got.integer[i];
    return named;
}
