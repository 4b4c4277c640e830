/* The cases of tests/oracle/gradients.json: forward graphs with values and PyTorch's gradients. */
#ifndef TESTS_TORCH_GRADIENTS_H
#define TESTS_TORCH_GRADIENTS_H

#include "gen/grad.h"
#include "ir/eval.h"

#include <cjson/cJSON.h>

/* The array of cases; freed with cJSON_Delete of its root. */
const cJSON *torch_cases(cJSON **root);
const cJSON *torch_member(const cJSON *object, const char *name);
const char *torch_text(const cJSON *object, const char *name);
/* The values of the any dims by name, the others from the graph. */
int64_t *torch_dims(Job *job, const cJSON *json, const Graph *graph);
/* --wrt of a case. */
GradOptions torch_options(Job *job, const cJSON *json);

/* A tensor by its name; whole numbers and truths as doubles too. */
typedef struct Named {
    const char *name;
    uint64_t count;
    double *number;
    double *bound; /* how far a correct evaluation may be off; NULL: exact */
} Named;
typedef IR_LIST(Named) NamedList;

/* Adds the tensors of {"name": "numbers with blanks between"}. */
void torch_tensors(Job *job, NamedList *list, const cJSON *json);
Named *torch_find(const NamedList *list, const char *name); /* NULL: none */
/* An output of a graph with composites expanded, of which the list holds each input by its name. Without a name. */
Named torch_evaluate(Job *job, const Graph *graph, const int64_t *dims, const NamedList *list, uint32_t output);

#endif
