/* Tensors in host memory: sizes, random values, copies from and to row-major order. In: an argument of the program and
 * the any dims. Out: memory that ng_run takes. What values mean is left to the library. */
#include "runtime/cli/tensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 256

/* Calls visit for every run along the last dim: `offset` of its first element, `done` elements before it. */
static void for_each_run(const Tensor *tensor, void (*visit)(void *state, int64_t offset, uint64_t done, int64_t count),
                         void *state) {
    int64_t index[CLI_MAX_RANK] = {0}, offset = 0;
    int last = tensor->arg.rank - 1;
    int64_t run = last >= 0 ? tensor->extent[last] : 1;
    for (uint64_t done = 0; done < tensor->elements; done += (uint64_t)run) {
        visit(state, offset, done, run);
        for (int axis = last - 1; axis >= 0; axis--) {
            offset += tensor->stride[axis];
            if (++index[axis] < tensor->extent[axis]) break;
            offset -= tensor->stride[axis] * tensor->extent[axis];
            index[axis] = 0;
        }
    }
}

/* Row-major order without gaps. */
static bool is_dense(const Tensor *tensor) {
    bool dense = true;
    int64_t step = 1;
    for (int axis = tensor->arg.rank - 1; axis >= 0; axis--) {
        dense &= tensor->stride[axis] == step || tensor->extent[axis] == 1;
        step *= tensor->extent[axis];
    }
    return dense;
}

static int64_t last_stride(const Tensor *tensor) { return tensor->arg.rank ? tensor->stride[tensor->arg.rank - 1] : 1; }

void cli_tensor_make(Cli *cli, const Opened *opened, ng_arg_role role, uint32_t index, const int64_t *dims,
                     int64_t misalign, const char *advice, Tensor *tensor) {
    tensor->arg = cli_arg(cli, opened, role, index);
    ng_status status = ng_arg_shape(opened->program, role, index, dims, tensor->extent, tensor->stride);
    if (status != NG_OK) { /* some tensor's, not only this one's: the library has the words */
        ng_text why = {0};
        ng_launch_check(opened->program, &(ng_args){.size = sizeof(ng_args), .dims = dims}, &why);
        cli_fail_why(cli, status, &why);
    }
    int64_t low = 0, high = 1, bytes, count = 1;
    bool overflow = false, empty = false;
    for (int axis = 0; axis < tensor->arg.rank; axis++) empty |= tensor->extent[axis] == 0;
    for (int axis = 0; axis < tensor->arg.rank && !empty; axis++) {
        int64_t reach;
        overflow |= __builtin_mul_overflow(tensor->extent[axis] - 1, tensor->stride[axis], &reach);
        overflow |= __builtin_mul_overflow(count, tensor->extent[axis], &count);
        overflow |= __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high);
    }
    int64_t element = (int64_t)ng_dtype_bytes(tensor->arg.dtype);
    overflow |= __builtin_mul_overflow(high - low + misalign, element, &bytes) || bytes > INT64_MAX - 2 * ALIGNMENT;
    if (overflow) cli_fail(cli, NG_SYSTEM, "%s: more memory than there is%s", tensor->arg.name, advice);
    tensor->elements = empty ? 0 : (uint64_t)count;
    size_t total = ((size_t)bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    tensor->memory = aligned_alloc(ALIGNMENT, total);
    if (!tensor->memory) cli_fail(cli, NG_SYSTEM, "%s: out of memory for %zu bytes%s", tensor->arg.name, total, advice);
    memset(tensor->memory, 0xff, total);
    tensor->first = (unsigned char *)tensor->memory + (misalign - low) * element;
}

/* ---- random values ---- */

static uint64_t mix(uint64_t x) { /* the finalizer of SplitMix64 */
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

typedef struct Random {
    Tensor *tensor;
    uint64_t stream;
} Random;

/* Four uniform numbers: deviation 1 / sqrt(3), brought to 1. */
static double random_float(uint64_t bits) {
    double sum =
        (double)(bits & 0xffff) + (double)(bits >> 16 & 0xffff) + (double)(bits >> 32 & 0xffff) + (double)(bits >> 48);
    return (sum / 65536 - 2 + 2.0 / 65536) * 1.7320508075688772;
}

/* The upper 64 bits of bits * count: 0 to count - 1, each as often as any other but for count parts in 2^64. */
static int64_t random_below(int64_t count, uint64_t bits) {
    const uint64_t low = (uint64_t)count & UINT32_MAX, high = (uint64_t)count >> 32;
    const uint64_t middle = (bits >> 32) * low + ((bits & UINT32_MAX) * low >> 32);
    const uint64_t other = (bits & UINT32_MAX) * high + (middle & UINT32_MAX);
    return (int64_t)((bits >> 32) * high + (middle >> 32) + (other >> 32));
}

static void store_integer(ng_dtype dtype, unsigned char *to, int64_t value) {
    if (dtype == NG_I64)
        memcpy(to, &value, sizeof value); /* a double holds 2^53 of them */
    else
        ng_store(dtype, to, (double)value);
}

static void fill_run(void *state, int64_t offset, uint64_t done, int64_t count) {
    const Random *random = state;
    ng_dtype dtype = random->tensor->arg.dtype;
    int64_t element = (int64_t)ng_dtype_bytes(dtype), step = last_stride(random->tensor);
    const int64_t integers = random->tensor->indices ? random->tensor->indices : dtype == NG_BOOL ? 2 : 4;
    for (int64_t i = 0; i < count; i++) {
        uint64_t at = (done + (uint64_t)i) % CLI_RANDOM_PERIOD;
        uint64_t bits = mix(random->stream + at * 0x9e3779b97f4a7c15u);
        unsigned char *to = random->tensor->first + (offset + i * step) * element;
        if (dtype >= NG_I64)
            store_integer(dtype, to, random_below(integers, bits));
        else
            ng_store(dtype, to, random_float(bits));
    }
}

void cli_tensor_random(Tensor *tensor, uint64_t seed) {
    uint64_t stream = mix(seed + 0x9e3779b97f4a7c15u);
    for (const char *at = tensor->arg.name; *at; at++) stream = mix(stream ^ (unsigned char)*at);
    Random random = {tensor, stream};
    if (!is_dense(tensor) || tensor->elements <= CLI_RANDOM_PERIOD) {
        for_each_run(tensor, fill_run, &random);
        return;
    }
    const size_t element = ng_dtype_bytes(tensor->arg.dtype), period = CLI_RANDOM_PERIOD * element;
    const size_t all = tensor->elements * element; /* copies are ten times as fast as numbers */
    fill_run(&random, 0, 0, CLI_RANDOM_PERIOD);
    for (size_t done = period; done < all; done += period)
        memcpy(tensor->first + done, tensor->first, all - done < period ? all - done : period);
}

/* ---- copies ---- */

typedef struct Copy {
    const Tensor *tensor;
    unsigned char *dense;
    bool in;
} Copy;

static void copy_run(void *state, int64_t offset, uint64_t done, int64_t count) {
    const Copy *copy = state;
    int64_t element = (int64_t)ng_dtype_bytes(copy->tensor->arg.dtype), step = last_stride(copy->tensor);
    unsigned char *dense = copy->dense + done * (uint64_t)element, *strided = copy->tensor->first + offset * element;
    int64_t pieces = step == 1 ? 1 : count;
    size_t bytes = (size_t)(step == 1 ? count * element : element);
    for (int64_t i = 0; i < pieces; i++) {
        unsigned char *there = strided + i * step * element, *here = dense + i * element;
        if (copy->in)
            memcpy(there, here, bytes);
        else
            memcpy(here, there, bytes);
    }
}

/* Elements that share memory: which of the file's is not what was copied last, and which one was. */
typedef struct Shared {
    const Tensor *tensor;
    const unsigned char *dense;
    bool found;
    int64_t offset;       /* of both */
    uint64_t first, last; /* row-major */
} Shared;

static void compare_run(void *state, int64_t offset, uint64_t done, int64_t count) {
    Shared *shared = state;
    const int64_t step = last_stride(shared->tensor);
    const size_t bytes = ng_dtype_bytes(shared->tensor->arg.dtype);
    for (int64_t i = 0; i < count && !shared->found; i++) {
        const int64_t at = offset + i * step;
        shared->first = done + (uint64_t)i;
        shared->offset = at;
        shared->found =
            memcmp(shared->dense + shared->first * bytes, shared->tensor->first + at * (int64_t)bytes, bytes) != 0;
    }
}

static void find_run(void *state, int64_t offset, uint64_t done, int64_t count) {
    Shared *shared = state;
    const int64_t step = last_stride(shared->tensor);
    for (int64_t i = 0; i < count; i++)
        if (offset + i * step == shared->offset) shared->last = done + (uint64_t)i;
}

static void put_index(Buf *buf, const Tensor *tensor, uint64_t linear, const unsigned char *dense) {
    int64_t index[CLI_MAX_RANK];
    uint64_t rest = linear;
    for (int axis = tensor->arg.rank; axis-- > 0; rest /= (uint64_t)tensor->extent[axis])
        index[axis] = (int64_t)(rest % (uint64_t)tensor->extent[axis]);
    for (int axis = 0; axis < tensor->arg.rank; axis++) buf_format(buf, "%s%" PRId64, axis ? ", " : "[", index[axis]);
    buf_put(buf, "] = ");
    cli_put_element(buf, tensor->arg.dtype, dense + linear * ng_dtype_bytes(tensor->arg.dtype));
}

static void refuse_shared(Cli *cli, const Tensor *tensor, const unsigned char *dense) {
    Shared shared = {.tensor = tensor, .dense = dense};
    for_each_run(tensor, compare_run, &shared);
    if (!shared.found) return;
    Buf one = {0}, other = {0};
    for_each_run(tensor, find_run, &shared);
    put_index(&one, tensor, shared.first, dense);
    put_index(&other, tensor, shared.last, dense);
    cli_fail(cli, NG_USAGE,
             "input %s: by its strides %s and %s are one element in memory, and the tensor in %s has both",
             tensor->arg.name, one.bytes, other.bytes, tensor->file);
}

void cli_tensor_copy_in(Cli *cli, Tensor *tensor) {
    const StTensor *from = tensor->from;
    Buf wanted = {0}, found = {0};
    bool same = from->readable && from->dtype == tensor->arg.dtype && from->rank == tensor->arg.rank;
    for (int axis = 0; axis < from->rank && same; axis++) same = from->shape[axis] == tensor->extent[axis];
    if (!same) {
        cli_put_shape(&wanted, tensor->arg.dtype, tensor->arg.rank, tensor->extent);
        if (from->readable)
            cli_put_shape(&found, from->dtype, from->rank, from->shape);
        else
            buf_put(&found, from->dtype_name);
        cli_fail(cli, NG_USAGE, "input %s is %s, the tensor in %s is %s", tensor->arg.name, wanted.bytes, tensor->file,
                 found.bytes);
    }
    const unsigned char *bytes = tensor->source->data + from->start;
    for (uint64_t i = 0; i < tensor->elements && tensor->arg.dtype == NG_BOOL; i++) {
        if (bytes[i] > 1)
            cli_fail(cli, NG_SYSTEM, "%s: element %" PRIu64 " of a bool tensor is %d", tensor->file, i, bytes[i]);
    }
    for_each_run(tensor, copy_run, &(Copy){tensor, (unsigned char *)(uintptr_t)bytes, true});
    if (!is_dense(tensor)) refuse_shared(cli, tensor, bytes);
}

const unsigned char *cli_tensor_dense(const Tensor *tensor, unsigned char **owned) {
    *owned = NULL;
    if (is_dense(tensor) || !tensor->elements) return tensor->first;
    *owned = cli_alloc(tensor->elements, ng_dtype_bytes(tensor->arg.dtype));
    for_each_run(tensor, copy_run, &(Copy){tensor, *owned, false});
    return *owned;
}

void cli_put_shape(Buf *buf, ng_dtype dtype, int rank, const int64_t *extent) {
    buf_format(buf, "%s[", ng_dtype_name(dtype));
    for (int axis = 0; axis < rank; axis++) buf_format(buf, "%s%" PRId64, axis ? ", " : "", extent[axis]);
    buf_put(buf, "]");
}

/* Digits that an element is printed with at least: narrow floats would else read as if they were others. */
static int least_digits(ng_dtype dtype) {
    return dtype == NG_F8E4M3 || dtype == NG_F8E5M2 ? 17 : dtype == NG_F16 || dtype == NG_BF16 ? 4 : 1;
}

void cli_put_element(Buf *buf, ng_dtype dtype, const unsigned char *element) {
    size_t start = buf->count;
    const double value = ng_load(dtype, element);
    if (dtype == NG_BOOL) {
        buf_put(buf, value != 0 ? "True" : "False");
        return;
    }
    if (dtype >= NG_I64) {
        int64_t number = (int64_t)value;
        if (dtype == NG_I64) memcpy(&number, element, sizeof number); /* more digits than a double has */
        buf_format(buf, "%" PRId64, number);
        return;
    }
    for (int digits = least_digits(dtype); digits < 17 && value - value == 0; digits++) {
        unsigned char back[8];
        buf->count = start;
        buf_format(buf, "%.*g", digits, value);
        ng_store(dtype, back, strtod(buf->bytes + start, NULL));
        if (ng_load(dtype, back) == value) return;
    }
    if (buf->bytes) buf->count = start;
    buf_number(buf, value);
}
