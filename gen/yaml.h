/* A YAML or JSON file as a small tree in which every node has its place. Every scalar is text. */
#ifndef GEN_YAML_H
#define GEN_YAML_H

#include "ir/job.h"

#define GEN_MAX_FILE ((size_t)16 << 20) /* bytes */
#define GEN_MAX_YAML_DEPTH 64

typedef enum DocKind { DOC_SCALAR, DOC_MAP, DOC_LIST } DocKind;
typedef enum DocStyle { DOC_PLAIN, DOC_SINGLE, DOC_DOUBLE, DOC_BLOCK } DocStyle; /* of a scalar: how it is written */

typedef struct Doc {
    DocKind kind;
    DocStyle style;
    bool flow;        /* a map in { } or a list in [ ] */
    bool repeated;    /* a key that its map has already, which is an error */
    Place place;      /* of all of it; of a map or list: its first character */
    const char *text; /* a scalar's value, NUL-terminated */
    size_t count;
    uint32_t size; /* entries of a map or list */
    struct Doc **keys;
    struct Doc **items;
} Doc;

/* Reads one document whose bytes are the job's source. What language.md refuses in YAML is reported at its place and
 * stops the job. */
Doc *gen_yaml_read(Job *job, const char *bytes, size_t count);
/* The item of a map with this key, or NULL. */
const Doc *gen_doc_find(const Doc *map, const char *key);

#endif
