/* Reading and writing safetensors (https://github.com/huggingface/safetensors, "Format").
 *
 * In: bytes of a file, or items to write. Out: a table of tensors whose places are known to lie in the data section,
 * one after another, without holes or overlaps and of the size that shape and dtype ask for. `__metadata__` is passed
 * over. */
#include "runtime/cli/safetensors.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/cli/text.h"

#define LARGEST_EXACT 9007199254740992.0 /* 2^53: cJSON holds numbers as doubles */

typedef struct DtypeRow {
    const char *name;
    uint32_t bytes;
    int dtype; /* ng_dtype, or -1 where normgen has none */
} DtypeRow;

static const DtypeRow dtypes[] = {
    {"F64", 8, NG_F64},
    {"F32", 4, NG_F32},
    {"F16", 2, NG_F16},
    {"BF16", 2, NG_BF16},
    {"F8_E4M3", 1, NG_F8E4M3},
    {"F8_E5M2", 1, NG_F8E5M2},
    {"I64", 8, NG_I64},
    {"I32", 4, NG_I32},
    {"I8", 1, NG_I8},
    {"U8", 1, NG_U8},
    {"BOOL", 1, NG_BOOL},
    {"I16", 2, -1},
    {"U16", 2, -1},
    {"U32", 4, -1},
    {"U64", 8, -1},
    {"F8_E8M0", 1, -1},
    {"F8_E4M3FNUZ", 1, -1},
    {"F8_E5M2FNUZ", 1, -1},
    {"C64", 8, -1},
};
#define DTYPE_ROWS (sizeof dtypes / sizeof *dtypes)

static bool fail(char **why, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(char **why, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (why && vasprintf(why, format, args) < 0) *why = NULL;
    va_end(args);
    return false;
}

char *st_quoted(const char *text) {
    Buf buf = {0};
    buf_put(&buf, "\"");
    size_t shown = 0;
    for (; text[shown] && shown < 100; shown++) {
        unsigned char c = (unsigned char)text[shown];
        if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\')
            buf_format(&buf, "\\x%02x", c);
        else
            buf_bytes(&buf, text + shown, 1);
    }
    buf_put(&buf, text[shown] ? "\"..." : "\"");
    return buf.bytes;
}

/* A failure that names the tensor. */
static bool fail_tensor(char **why, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
static bool fail_tensor(char **why, const char *name, const char *format, ...) {
    char *quoted = st_quoted(name), *what = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&what, format, args) < 0) what = NULL;
    va_end(args);
    fail(why, "tensor %s: %s", quoted ? quoted : "?", what ? what : "?");
    free(quoted);
    free(what);
    return false;
}

/* A count: an integer from 0 to 2^53. */
static bool read_count(const cJSON *item, int64_t *value) {
    if (!cJSON_IsNumber(item)) return false;
    double number = item->valuedouble;
    if (!(number >= 0) || number > LARGEST_EXACT) return false;
    *value = (int64_t)number;
    return (double)*value == number;
}

static const DtypeRow *find_dtype(const char *name) {
    for (size_t i = 0; i < DTYPE_ROWS; i++) {
        if (!strcmp(dtypes[i].name, name)) return &dtypes[i];
    }
    return NULL;
}

/* the members that a tensor's entry must have */
enum { ENTRY_DTYPE, ENTRY_SHAPE, ENTRY_OFFSETS, ENTRY_COUNT };
static const char *const entry_keys[ENTRY_COUNT] = {"dtype", "shape", "data_offsets"};

static bool read_entry(const cJSON *item, const cJSON *entry[ENTRY_COUNT], char **why) {
    if (!cJSON_IsObject(item)) return fail_tensor(why, item->string, "its entry is not an object");
    const cJSON *member;
    cJSON_ArrayForEach(member, item) {
        for (size_t i = 0; i < ENTRY_COUNT; i++) {
            if (strcmp(member->string, entry_keys[i]) != 0) continue;
            if (entry[i]) return fail_tensor(why, item->string, "two entries \"%s\"", entry_keys[i]);
            entry[i] = member;
        }
    }
    for (size_t i = 0; i < ENTRY_COUNT; i++) {
        if (!entry[i]) return fail_tensor(why, item->string, "no \"%s\"", entry_keys[i]);
    }
    return true;
}

static bool read_dtype(const cJSON *item, const cJSON *dtype, StTensor *tensor, uint32_t *bytes, char **why) {
    const char *name = cJSON_GetStringValue(dtype);
    if (!name) return fail_tensor(why, item->string, "its dtype is not a string");
    const DtypeRow *row = find_dtype(name);
    if (!row) {
        char *quoted = st_quoted(name);
        fail_tensor(why, item->string, "unknown dtype %s", quoted ? quoted : "?");
        free(quoted);
        return false;
    }
    tensor->dtype_name = row->name;
    tensor->readable = row->dtype >= 0;
    tensor->dtype = row->dtype >= 0 ? (ng_dtype)row->dtype : NG_U8;
    *bytes = row->bytes;
    return true;
}

static bool read_shape(const cJSON *item, const cJSON *shape, StTensor *tensor, char **why) {
    if (!cJSON_IsArray(shape)) return fail_tensor(why, item->string, "its shape is not a list");
    tensor->rank = cJSON_GetArraySize(shape);
    tensor->shape = calloc((size_t)tensor->rank + 1, sizeof *tensor->shape);
    if (!tensor->shape) return fail(why, "out of memory");
    int axis = 0;
    const cJSON *extent;
    cJSON_ArrayForEach(extent, shape) {
        if (!read_count(extent, &tensor->shape[axis]))
            return fail_tensor(why, item->string, "dim %d of its shape is not an integer of 0 to 2^53", axis);
        axis++;
    }
    return true;
}

/* The bytes that shape and dtype ask for; false when they pass 2^63. */
static bool tensor_bytes(const StTensor *tensor, uint32_t element, uint64_t *bytes) {
    int64_t product = element;
    for (int axis = 0; axis < tensor->rank; axis++) {
        if (tensor->shape[axis] == 0) {
            *bytes = 0;
            return true;
        }
    }
    for (int axis = 0; axis < tensor->rank; axis++) {
        if (__builtin_mul_overflow(product, tensor->shape[axis], &product)) return false;
    }
    *bytes = (uint64_t)product;
    return true;
}

static bool read_tensor(const cJSON *item, uint64_t data_bytes, StTensor *tensor, char **why) {
    const cJSON *entry[ENTRY_COUNT] = {NULL};
    uint32_t element = 0;
    uint64_t wanted = 0;
    int64_t start = 0, stop = 0;
    if (!read_entry(item, entry, why) || !read_dtype(item, entry[ENTRY_DTYPE], tensor, &element, why) ||
        !read_shape(item, entry[ENTRY_SHAPE], tensor, why))
        return false;
    tensor->name = cli_copy(item->string);
    const cJSON *offsets = entry[ENTRY_OFFSETS];
    if (!cJSON_IsArray(offsets) || cJSON_GetArraySize(offsets) != 2 ||
        !read_count(cJSON_GetArrayItem(offsets, 0), &start) || !read_count(cJSON_GetArrayItem(offsets, 1), &stop))
        return fail_tensor(why, item->string, "its data_offsets are not two integers of 0 to 2^53");
    if (start > stop)
        return fail_tensor(why, item->string, "its data_offsets run backwards, from %" PRId64 " to %" PRId64, start,
                           stop);
    if ((uint64_t)stop > data_bytes)
        return fail_tensor(why, item->string, "it ends at byte %" PRId64 " of the data, which has %" PRIu64, stop,
                           data_bytes);
    if (!tensor_bytes(tensor, element, &wanted)) return fail_tensor(why, item->string, "its shape overflows 64 bits");
    if (wanted != (uint64_t)(stop - start))
        return fail_tensor(why, item->string,
                           "shape and dtype ask for %" PRIu64 " bytes, its data_offsets span %" PRId64, wanted,
                           stop - start);
    tensor->start = (uint64_t)start;
    tensor->stop = (uint64_t)stop;
    return true;
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(const StTensor *const *)a)->name, (*(const StTensor *const *)b)->name);
}

static int by_place(const void *a, const void *b) {
    const StTensor *left = a, *right = b;
    if (left->start != right->start) return left->start < right->start ? -1 : 1;
    if (left->stop != right->stop) return left->stop < right->stop ? -1 : 1;
    return strcmp(left->name, right->name);
}

static bool check_names(const StFile *file, char **why) {
    const StTensor **sorted = calloc(file->count + 1, sizeof *sorted);
    if (!sorted) return fail(why, "out of memory");
    for (size_t i = 0; i < file->count; i++) sorted[i] = &file->tensors[i];
    qsort(sorted, file->count, sizeof *sorted, by_name);
    bool fine = true;
    for (size_t i = 1; i < file->count && fine; i++) {
        if (!strcmp(sorted[i - 1]->name, sorted[i]->name))
            fine = fail_tensor(why, sorted[i]->name, "it is there twice");
    }
    free(sorted);
    return fine;
}

/* Tensors follow one another from the first byte of the data to the last. */
static bool check_places(StFile *file, uint64_t data_bytes, char **why) {
    if (file->count) qsort(file->tensors, file->count, sizeof *file->tensors, by_place);
    uint64_t end = 0;
    for (size_t i = 0; i < file->count; i++) {
        const StTensor *tensor = &file->tensors[i];
        if (tensor->start < end)
            return fail_tensor(why, tensor->name,
                               "its bytes overlap those of the tensor before, at byte %" PRIu64 " of the data",
                               tensor->start);
        if (tensor->start > end)
            return fail_tensor(why, tensor->name,
                               "there is a hole before it: bytes %" PRIu64 " to %" PRIu64
                               " of the data belong to no tensor",
                               end, tensor->start);
        end = tensor->stop;
    }
    if (end != data_bytes) return fail(why, "%" PRIu64 " bytes after the last tensor belong to none", data_bytes - end);
    return true;
}

static bool read_header(const char *text, size_t count, uint64_t data_bytes, StFile *file, char **why) {
    if (count == 0 || text[0] != '{') return fail(why, "the header does not begin with '{'");
    /* would end a name early where it is read */
    if (memchr(text, 0, count) || memmem(text, count, "\\u0000", 6)) return fail(why, "the header holds a NUL");
    const char *end = NULL;
    cJSON *root = cJSON_ParseWithLengthOpts(text, count, &end, 0);
    bool fine = false;
    if (!root) {
        fail(why, "the header is not JSON, at its byte %td", end ? end - text : (ptrdiff_t)0);
        goto out;
    }
    for (; end < text + count; end++) {
        if (*end != ' ' && *end != '\n' && *end != '\r' && *end != '\t') {
            fail(why, "the header goes on after its JSON value, at its byte %td", end - text);
            goto out;
        }
    }
    file->tensors = calloc((size_t)cJSON_GetArraySize(root) + 1, sizeof *file->tensors);
    if (!file->tensors) {
        fail(why, "out of memory");
        goto out;
    }
    const cJSON *item;
    cJSON_ArrayForEach(item, root) {
        if (!strcmp(item->string, "__metadata__")) continue;
        if (!read_tensor(item, data_bytes, &file->tensors[file->count++], why)) goto out;
    }
    fine = check_names(file, why) && check_places(file, data_bytes, why);
out:
    cJSON_Delete(root);
    return fine;
}

enum { LENGTH_BYTES = 8 }; /* what a file begins with: its header's bytes, little-endian */

static uint64_t header_bytes(const unsigned char *at) {
    uint64_t header = 0;
    for (int i = LENGTH_BYTES - 1; i >= 0; i--) header = header << 8 | at[i];
    return header;
}

bool st_parse(const void *bytes, size_t count, StFile *file, char **why) {
    *file = (StFile){0};
    if (count < LENGTH_BYTES) return fail(why, "%zu bytes are too few for a safetensors file", count);
    const unsigned char *at = bytes;
    const uint64_t header = header_bytes(at);
    if (header > ST_MAX_HEADER)
        return fail(why,
                    "its header claims %" PRIu64 " bytes; at most 100,000,000 are read (is it a safetensors file?)",
                    header);
    if (header > count - LENGTH_BYTES)
        return fail(why, "its header claims %" PRIu64 " bytes, the file has %zu after the length: cut short?", header,
                    count - LENGTH_BYTES);
    const unsigned char *text = at + LENGTH_BYTES;
    file->data = text + header;
    if (read_header((const char *)text, (size_t)header, count - LENGTH_BYTES - header, file, why)) return true;
    st_close(file);
    return false;
}

/* A pipe or a device. What cannot be a file ends at its first bytes: the rest may never end. */
static bool read_stream(Buf *buf, int fd) {
    if (!buf_read(buf, fd, LENGTH_BYTES - 1)) return false;
    if (buf->count < LENGTH_BYTES) return true;
    const uint64_t header = header_bytes((const unsigned char *)buf->bytes);
    return header == 0 || header > ST_MAX_HEADER || buf_read(buf, fd, SIZE_MAX);
}

bool st_open(const char *path, StFile *file, char **why) {
    *file = (StFile){0};
    int fd = !strcmp(path, "-") ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    struct stat facts;
    if (fd < 0 || fstat(fd, &facts) != 0) {
        fail(why, "%s", strerror(errno));
        if (fd >= 0) close(fd);
        return false;
    }
    void *memory = NULL;
    size_t bytes = 0;
    bool mapped = S_ISREG(facts.st_mode) && facts.st_size > 0 && lseek(fd, 0, SEEK_CUR) == 0;
    if (mapped) {
        bytes = (size_t)facts.st_size;
        memory = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        if (memory == MAP_FAILED) memory = NULL;
    } else {
        Buf buf = {0};
        if (read_stream(&buf, fd))
            memory = buf.bytes, bytes = buf.count;
        else
            free(buf.bytes);
    }
    int error = errno;
    close(fd);
    if (!memory) return fail(why, "%s", strerror(error));
    StFile parsed;
    bool fine = st_parse(memory, bytes, &parsed, why);
    *file = parsed;
    file->memory = memory;
    file->memory_bytes = bytes;
    file->mapped = mapped;
    if (!fine) st_close(file);
    return fine;
}

void st_close(StFile *file) {
    for (size_t i = 0; i < file->count; i++) {
        free(file->tensors[i].name);
        free(file->tensors[i].shape);
    }
    free(file->tensors);
    if (file->mapped)
        munmap(file->memory, file->memory_bytes);
    else
        free(file->memory);
    *file = (StFile){0};
}

const StTensor *st_find(const StFile *file, const char *name) {
    for (size_t i = 0; i < file->count; i++) {
        if (!strcmp(file->tensors[i].name, name)) return &file->tensors[i];
    }
    return NULL;
}

static const char *dtype_name(ng_dtype dtype) {
    for (size_t i = 0; i < DTYPE_ROWS; i++) {
        if (dtypes[i].dtype == (int)dtype) return dtypes[i].name;
    }
    return "U8";
}

char *st_header(const StItem *items, size_t count, size_t *bytes) {
    Buf buf = {0};
    buf_bytes(&buf, "\0\0\0\0\0\0\0\0{", 9);
    uint64_t offset = 0;
    for (size_t i = 0; i < count; i++) {
        const StItem *item = &items[i];
        buf_format(&buf, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", i ? "," : "", item->name, dtype_name(item->dtype));
        for (int axis = 0; axis < item->rank; axis++)
            buf_format(&buf, "%s%" PRId64, axis ? "," : "", item->shape[axis]);
        buf_format(&buf, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", offset, offset + item->bytes);
        offset += item->bytes;
    }
    buf_put(&buf, "}");
    while (buf.count % 8) buf_put(&buf, " ");
    uint64_t header = buf.count - 8;
    for (int i = 0; i < 8; i++) buf.bytes[i] = (char)(header >> (8 * i) & 0xff);
    *bytes = buf.count;
    return buf.bytes;
}
