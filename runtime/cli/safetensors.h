/* The safetensors format, in and out: a length, a JSON header, the tensors' bytes.
 *
 * Reading trusts nothing: whatever the file says is held against its own size before a byte of a tensor is touched.
 * Failure: functions return false and put a message for people into *why, which the caller frees. */
#ifndef CLI_SAFETENSORS_H
#define CLI_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/normgen.h"

#define ST_MAX_HEADER ((uint64_t)100 * 1000 * 1000) /* bytes; the format's own limit */

typedef struct StTensor {
    char *name;
    const char *dtype_name; /* as the format spells it */
    bool readable;          /* normgen has this dtype; else `dtype` means nothing */
    ng_dtype dtype;
    int rank;
    int64_t *shape;
    uint64_t start, stop; /* bytes within the file's data section */
} StTensor;

typedef struct StFile {
    StTensor *tensors; /* in the order of their bytes */
    size_t count;
    const unsigned char *data; /* the data section; the file's memory */
    void *memory;              /* what st_open mapped or read; NULL after st_parse */
    size_t memory_bytes;
    bool mapped;
} StFile;

/* Over bytes that the caller keeps alive. */
bool st_parse(const void *bytes, size_t count, StFile *file, char **why);
/* Maps a regular file; reads anything else whole. */
bool st_open(const char *path, StFile *file, char **why);
void st_close(StFile *file);
const StTensor *st_find(const StFile *file, const char *name); /* NULL: no such tensor */

typedef struct StItem { /* one tensor to be written, dense, row-major */
    const char *name;
    ng_dtype dtype;
    int rank;
    const int64_t *shape;
    uint64_t bytes;
} StItem;

/* Everything before the tensors' bytes, which follow in this order without gaps; malloc'ed, NULL without memory. Equal
 * items give equal bytes. */
char *st_header(const StItem *items, size_t count, size_t *bytes);

/* The text with quotes, control characters and bytes beyond ASCII as \xNN, at most 100 characters; malloc'ed. */
char *st_quoted(const char *text);

#endif
