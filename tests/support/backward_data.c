/* In: a program, sizes, a way to fill inputs. Out: memory for a launch, and what a launch left in it compared.
 * Contract: the header. */
#include "tests/support/backward_data.h"

#include "runtime/host_sanitize.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EMPTY = 0xff, BORDER = 256, ROWS_AT_ONCE = 512, MOST_WORDS = 5 };

/* ---- numbers ---- */

static bool named(const char *tensor, const char *names) {
    const char *hit = strstr(names, tensor);
    const size_t length = strlen(tensor);
    return hit && (hit == names || hit[-1] == ' ') && (hit[length] == ' ' || !hit[length]);
}

static double unit_of(uint64_t bits) { return (double)(bits >> 11) * 0x1p-53; }
static double pick(uint64_t bits, uint32_t limit) { return (double)((bits >> 32) * limit >> 32); }

double fill_random(Role role, uint64_t bits, Geometry at) {
    const double u = unit_of(bits);
    if (role == ROLE_DEVIATION) return 0.5 + u;
    if (role == ROLE_CENTRE) return u - 0.5;
    if (role == ROLE_SHARE) return u * fmin(1, 8 / (double)at.columns);
    return 4 * u - 2;
}

double fill_grid(Role role, uint64_t bits, Geometry at) {
    if (role == ROLE_DEVIATION) return ldexp(1, (int)pick(bits, 3) - 1);
    if (role == ROLE_CENTRE) return (pick(bits, 3) - 1) / 2;
    if (role == ROLE_SHARE) return pick(bits, at.columns < 8 ? 1 : (uint32_t)at.columns / 8) > 0 ? 0 : 0.125;
    return (pick(bits, 9) - 4) / 2;
}

double fill_ones(Role role, uint64_t bits, Geometry at) {
    (void)role, (void)bits, (void)at;
    return 1;
}

/* ---- opening ---- */

static void *new_block(size_t bytes) {
    void *block = malloc(bytes ? bytes : 1);
    if (!block) abort();
    return block;
}

static OutKind kind_of(const Data *data, uint32_t t) {
    if (t >= data->input_count) return data->of->out[t - data->input_count].kind;
    if (named(data->tensors[t].name, "mean rstd")) return OUT_VALUE;
    return named(data->tensors[t].name, "w weight bias scale") ? OUT_COLUMNS : OUT_ELEMENTS;
}

static void open_tensor(Data *data, uint32_t t, const RtScratch *scratch) {
    const Tensor *tensor = data->program->tensors[t].tensor;
    const RtSpan *span = &scratch->spans[t];
    const Geometry at = data->at;
    const uint32_t rank = tensor->shape.rank;
    DataTensor *own = &data->tensors[t];
    *own = (DataTensor){.name = tensor->name, .dtype = tensor->dtype, .each = ir_dtype(tensor->dtype)->bytes};
    own->input = t < data->input_count;
    own->held = tensor->accumulate;
    own->kind = kind_of(data, t);
    own->owner = t;
    own->columns = own->kind == OUT_VALUE ? 1 : at.columns;
    own->rows = own->kind != OUT_COLUMNS ? at.groups * at.rows : rank > 1 ? at.groups : 1;
    own->stride = own->kind == OUT_VALUE ? 1 : rank > 1 ? span->stride[rank - 2] : own->columns;
    own->bank_rows = own->kind == OUT_COLUMNS ? own->rows : own->stride == 0 ? 1 : at.groups * at.period;
    IR_REQUIRE(data->job, own->rows * own->columns == span->count);
}

static uint64_t mix(uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static Role role_of(const char *tensor) {
    if (named(tensor, "rstd")) return ROLE_DEVIATION;
    if (named(tensor, "y")) return ROLE_SHARE;
    return named(tensor, "mean scale bias") ? ROLE_CENTRE : ROLE_ANY;
}

typedef struct Filling {
    Data *data;
    DataTensor *tensor;
    Fill fill;
    Role role;
    uint64_t seed;
} Filling;

static void fill_bank_row(void *state, uint32_t row) {
    const Filling *filling = state;
    const DataTensor *tensor = filling->tensor;
    for (int64_t i = row * tensor->columns; i < (row + 1) * tensor->columns; i++) {
        const uint64_t bits = mix(mix(filling->seed + (uint64_t)i * 0x9e3779b97f4a7c15u));
        const double number = filling->fill(filling->role, bits, filling->data->at);
        tensor->bank[i] = ir_dtype(tensor->dtype)->kind == KIND_FLOAT ? ir_round(tensor->dtype, number) : rint(number);
    }
}

bool data_open(Data *data, const Backward *of, const DeviceCase *made, Geometry at, const int64_t *any, Fill fill,
               uint64_t seed, Text *why) {
    *data = (Data){.job = ir_job_create(NULL), .of = of, .program = made->program, .at = at, .any = any};
    const RtProgram *program = made->program;
    data->tensor_count = program->tensor_count;
    data->input_count = program->input_count;
    data->tensors = IR_NEW_ARRAY(data->job, DataTensor, program->tensor_count + 1);
    RtScratch scratch;
    int64_t *words = IR_NEW_ARRAY(data->job, int64_t, program->scratch_words + 1);
    for (uint32_t t = 0; t < program->tensor_count; t++) data->tensors[t].name = program->tensors[t].tensor->name;
    if (rt_program_sizes(program, any, words, &scratch, why)) return false;
    for (uint32_t t = 0; t < program->tensor_count; t++) {
        open_tensor(data, t, &scratch);
        DataTensor *own = &data->tensors[t];
        if (!own->input && !own->held) continue;
        own->bank = new_block((size_t)(own->bank_rows * own->columns) * sizeof *own->bank);
        Filling filling = {data, own, fill, role_of(own->name), mix(seed + t)};
        rt_parallel((uint32_t)own->bank_rows, fill_bank_row, &filling);
    }
    return true;
}

static void release_memory(Data *data) {
    for (uint32_t t = 0; t < data->tensor_count; t++) {
        DataTensor *tensor = &data->tensors[t];
        if (tensor->memory) data->device->ops->release(data->device, tensor->memory);
        free(tensor->block);
        tensor->memory = tensor->block = NULL;
    }
}

void data_close(Data *data) {
    release_memory(data);
    for (uint32_t t = 0; t < data->tensor_count; t++) free(data->tensors[t].bank);
    reference_free(&data->reference);
    ir_job_free(data->job);
}

double data_depth(const Data *data, const DeviceCase *made) {
    const Mark mark = ir_mark(data->job);
    RtScratch scratch;
    int64_t *words = IR_NEW_ARRAY(data->job, int64_t, made->program->scratch_words + 1);
    double most = 0;
    if (!rt_program_sizes(made->program, data->any, words, &scratch, NULL)) {
        const uint32_t *depth = gen_depths(data->job, &made->unit, scratch.prog_dims, scratch.parts);
        for (uint32_t v = 0; v < made->unit.expanded->values.count; v++) {
            if (made->unit.expanded->values.at[v].op == OP_REDUCE && depth[v] == 0) most = INFINITY;
            most = fmax(most, depth[v]);
        }
    }
    ir_reset(data->job, mark);
    return isinf(most) ? 0 : most;
}

void data_refer(Data *data, Accuracy accuracy) {
    BankInput inputs[BACKWARD_INPUTS] = {{0}};
    const double *held = NULL;
    for (uint32_t t = 0; t < data->tensor_count; t++) {
        const DataTensor *tensor = &data->tensors[t];
        if (!tensor->input) {
            if (tensor->held) held = tensor->bank;
            continue;
        }
        inputs[t].numbers = tensor->bank;
        if (tensor->kind == OUT_COLUMNS)
            inputs[t].group = tensor->rows > 1 ? tensor->columns : 0;
        else
            inputs[t].row = tensor->stride == 0 ? 0 : tensor->columns;
    }
    reference_free(&data->reference);
    reference_make(&data->reference, data->of, data->at, inputs, held, accuracy);
}

/* ---- memory ---- */

static int64_t bank_row(const Data *data, const DataTensor *tensor, int64_t row) {
    if (tensor->bank_rows <= 1) return 0;
    if (tensor->kind == OUT_COLUMNS) return row;
    return row / data->at.rows * data->at.period + row % data->at.rows % data->at.period;
}

static void store(DType dtype, char *to, double number) {
    if (ir_dtype(dtype)->kind == KIND_FLOAT)
        ir_store_float(dtype, to, number);
    else
        ir_store_int(dtype, to, (int64_t)number);
}

static size_t extent_of(const DataTensor *tensor) { /* bytes from the first element past the last */
    if (!tensor->rows || !tensor->columns) return 0;
    return (size_t)((tensor->rows - 1) * tensor->stride + tensor->columns) * tensor->each;
}

typedef struct Writing {
    const Data *data;
    const DataTensor *tensor;
    const char *stored; /* the bank in the tensor's dtype */
} Writing;

static void write_rows(void *state, uint32_t index) {
    const Writing *w = state;
    const DataTensor *tensor = w->tensor;
    const size_t bytes = (size_t)tensor->columns * tensor->each;
    int64_t last = (index + 1) * (int64_t)ROWS_AT_ONCE;
    for (int64_t r = index * (int64_t)ROWS_AT_ONCE; r < last && r < tensor->rows; r++)
        memcpy(tensor->block + tensor->start + (size_t)(r * tensor->stride) * tensor->each,
               w->stored + (size_t)bank_row(w->data, tensor, r) * bytes, bytes);
}

/* The block's poison, with the bank's rows over it. */
static void write_block(const Data *data, const DataTensor *tensor, bool large) {
    const size_t end = tensor->start + extent_of(tensor);
    const bool whole = tensor->stride == tensor->columns;
    const size_t first = tensor->start % tensor->each; /* blocks are aligned: elements of poison are too */
    memset(tensor->block, EMPTY, whole ? tensor->start : tensor->bytes);
    memset(tensor->block + end, EMPTY, tensor->bytes - end);
    for (size_t at = first; large && at + tensor->each <= tensor->bytes; at += tensor->each) {
        if (whole && at == tensor->start) at = end;
        if (at + tensor->each <= tensor->bytes) store(tensor->dtype, tensor->block + at, 1e6);
    }
    if (!tensor->bank) return;
    char *stored = new_block((size_t)(tensor->bank_rows * tensor->columns) * tensor->each);
    for (int64_t i = 0; i < tensor->bank_rows * tensor->columns; i++)
        store(tensor->dtype, stored + (size_t)i * tensor->each, tensor->bank[i]);
    Writing writing = {data, tensor, stored};
    rt_parallel((uint32_t)((tensor->rows + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE), write_rows, &writing);
    free(stored);
}

static bool copy_in(Data *data, DataTensor *tensor, Text *why) {
    if (!tensor->memory) return true;
    return !data->device->ops->copy_in(data->device, tensor->memory, tensor->block, tensor->bytes, why);
}

static bool upload(Data *data, uint32_t t, const DataLayout *layout, Text *why) {
    DataTensor *tensor = &data->tensors[t];
    const RtTensor *row = &data->program->tensors[t];
    tensor->owner = layout->in_place && row->inplace != IR_NONE ? row->inplace : t;
    if (tensor->owner != t) return true;
    const size_t align = (size_t)row->pointer_align;
    tensor->start = data->border + (layout->shift ? random_below(layout->shift, 8) * align : 0);
    /* where a sanitizer watches the block's end, nothing lies behind the tensor */
    const size_t behind = tensor->input && data->border ? (size_t)tensor->columns * tensor->each : 0;
    tensor->bytes = tensor->start + extent_of(tensor) + behind + data->border;
    tensor->block = new_block(tensor->bytes);
    if (tensor->input) write_block(data, tensor, layout->large);
    if (!tensor->bytes) return true;
    if (data->device->ops->alloc(data->device, tensor->bytes, &tensor->memory, why)) return false;
    return !tensor->input || copy_in(data, tensor, why);
}

bool data_upload(Data *data, RtDevice *device, const DataLayout *layout, Text *why) {
    release_memory(data);
    data->device = device;
    data->border = RT_ADDRESS_SANITIZER && !strcmp(device->ops->name, "host") ? 0 : BORDER;
    for (uint32_t t = 0; t < data->tensor_count; t++)
        if (!upload(data, t, layout, why)) return false;
    return true;
}

/* ---- launching ---- */

static bool launch(Data *data, const DeviceCase *made, Text *why) {
    const RtProgram *program = made->program;
    RtScratch scratch;
    int64_t *words = IR_NEW_ARRAY(data->job, int64_t, program->scratch_words + 1);
    void **pointers = IR_NEW_ARRAY(data->job, void *, data->tensor_count + 1);
    if (rt_program_sizes(program, data->any, words, &scratch, why)) return false;
    for (uint32_t t = 0; t < data->tensor_count; t++) {
        const DataTensor *owner = &data->tensors[data->tensors[t].owner];
        if (extent_of(&data->tensors[t])) pointers[t] = (char *)owner->memory + owner->start;
    }
    const size_t bytes = (size_t)scratch.workspace_bytes;
    void *workspace = NULL;
    bool done = true;
    if (bytes) {
        char *empty = new_block(bytes);
        memset(empty, EMPTY, bytes);
        done = !data->device->ops->alloc(data->device, bytes, &workspace, why) &&
               !data->device->ops->copy_in(data->device, workspace, empty, bytes, why);
        free(empty);
    }
    ng_args args = {.size = sizeof args, .tensors = pointers, .dims = data->any};
    args.workspace = workspace;
    args.workspace_bytes = bytes;
    done = done && !rt_program_launch(program, &args, words, why, NULL, NULL) &&
           !data->device->ops->synchronize(data->device, why);
    if (workspace) data->device->ops->release(data->device, workspace);
    return done;
}

bool data_launch(Data *data, const DeviceCase *made, Text *why) {
    const Mark mark = ir_mark(data->job);
    bool done = true;
    for (uint32_t t = data->input_count; t < data->tensor_count && done; t++) {
        DataTensor *tensor = &data->tensors[t];
        if (tensor->owner != t) continue;
        memset(tensor->block, EMPTY, tensor->bytes);
        if (tensor->bank) write_block(data, tensor, false);
        done = copy_in(data, tensor, why);
    }
    done = done && launch(data, made, why);
    for (uint32_t t = data->input_count; t < data->tensor_count && done; t++) {
        DataTensor *owner = &data->tensors[data->tensors[t].owner];
        if (!owner->memory) continue;
        done = !data->device->ops->copy_out(data->device, owner->block, owner->memory, owner->bytes, why);
    }
    ir_reset(data->job, mark);
    return done;
}

/* ---- comparing ---- */

typedef struct Comparing {
    Data *data;
    const DeviceCase *made;
    const DataTensor *tensor;
    const char *block;     /* of its owner; from its first element on */
    const Number *numbers; /* of its bank's rows */
    atomic_ullong wrong, exact;
    pthread_mutex_t words; /* of printing */
} Comparing;

static bool passes(DType dtype, double got, Number want) {
    if (ir_dtype(dtype)->kind != KIND_FLOAT) return fabs(got - want.value) <= want.error;
    if (!(want.error < INFINITY)) return false; /* no bound is no reference */
    if (got == ir_round(dtype, want.value)) return true;
    return got >= ir_round(dtype, want.value - want.error) && got <= ir_round(dtype, want.value + want.error);
}

static void say(const Comparing *c, const char *what, int64_t row, int64_t column, double got, Number want) {
    const Geometry at = c->data->at;
    Job *job = ir_job_create(NULL);
    Text text = ir_text(job);
    ir_text_format(&text, "FAILED %s M=%lld", c->data->of->name, (long long)at.rows);
    if (at.groups != 1) ir_text_format(&text, " (of each of %lld)", (long long)at.groups);
    ir_text_format(&text, " N=%lld: %s %s [%lld, %lld]: got ", (long long)at.columns, what, c->tensor->name,
                   (long long)row, (long long)column);
    ir_text_double(&text, got);
    ir_text_put(&text, ", expected ");
    ir_text_double(&text, want.value);
    ir_text_put(&text, ", bound ");
    ir_text_double(&text, want.error);
    for (uint32_t s = 0; s < c->made->options.set_count; s++)
        ir_text_format(&text, " %s=%s", c->made->options.sets[s].name, c->made->options.sets[s].value);
    puts(ir_text_string(&text));
    ir_job_free(job);
}

static void count_wrong(Comparing *c, const char *what, int64_t row, int64_t column, double got, Number want) {
    if (atomic_fetch_add(&c->wrong, 1) >= MOST_WORDS) return;
    pthread_mutex_lock(&c->words);
    say(c, what, row, column, got, want);
    pthread_mutex_unlock(&c->words);
}

static double element(const DataTensor *tensor, const char *at) {
    return ir_dtype(tensor->dtype)->kind == KIND_FLOAT ? ir_load_float(tensor->dtype, at)
                                                       : (double)ir_load_int(tensor->dtype, at);
}

static void compare_row(Comparing *c, int64_t row, const Number *numbers) {
    const DataTensor *tensor = c->tensor;
    const char *at = c->block + (size_t)(row * tensor->stride) * tensor->each;
    uint64_t exact = 0;
    for (int64_t i = 0; i < tensor->columns; i++) {
        const double got = element(tensor, at + (size_t)i * tensor->each);
        exact += numbers[i].error == 0;
        if (!passes(tensor->dtype, got, numbers[i])) count_wrong(c, "output", row, i, got, numbers[i]);
    }
    atomic_fetch_add(&c->exact, exact);
}

/* Rows that are like one of the bank: the first by the reference, the others by its bits. */
static void compare_rows(void *state, uint32_t index) {
    Comparing *c = state;
    const DataTensor *tensor = c->tensor;
    const Geometry at = c->data->at;
    const size_t step = (size_t)tensor->stride * tensor->each, bytes = (size_t)tensor->columns * tensor->each;
    const bool by_period = tensor->kind != OUT_COLUMNS;
    const int64_t first = by_period ? index / at.period * at.rows + index % at.period : index;
    const int64_t after = by_period ? (index / at.period + 1) * at.rows : first + 1;
    compare_row(c, first, c->numbers + index * tensor->columns);
    for (int64_t r = first; r < after; r += at.period ? at.period : 1) {
        const char *own = c->block + (size_t)r * step;
        if (memcmp(own, c->block + (size_t)first * step, bytes))
            count_wrong(c, "other bits than a row like it:", r, 0, element(tensor, own),
                        c->numbers[index * tensor->columns]);
        const size_t gap = r + 1 < tensor->rows && step > bytes ? step - bytes : 0;
        for (size_t i = 0; i < gap; i++)
            if (own[bytes + i] != (char)EMPTY)
                count_wrong(c, "written between rows:", r, (int64_t)i, 0, number_exact(0));
    }
}

static void compare_borders(Comparing *c) {
    const DataTensor *tensor = c->tensor;
    const size_t end = tensor->start + extent_of(tensor);
    for (size_t i = 0; i < tensor->start; i++)
        if (tensor->block[i] != (char)EMPTY) count_wrong(c, "written before", 0, (int64_t)i, 0, number_exact(0));
    for (size_t i = end; i < tensor->bytes; i++)
        if (tensor->block[i] != (char)EMPTY)
            count_wrong(c, "written behind", 0, (int64_t)(i - end), 0, number_exact(0));
}

uint64_t data_compare(Data *data, const DeviceCase *made) {
    uint64_t wrong = 0;
    for (uint32_t o = 0; o < data->of->out_count; o++) {
        const uint32_t t = data->input_count + o;
        const DataTensor *tensor = &data->tensors[t], *owner = &data->tensors[tensor->owner];
        const Out out = data->of->out[o];
        Comparing c = {.data = data, .made = made, .tensor = tensor, .words = PTHREAD_MUTEX_INITIALIZER};
        if (owner->block) c.block = owner->block + owner->start;
        c.numbers = out.kind == OUT_ELEMENTS ? data->reference.elements[out.index]
                    : out.kind == OUT_VALUE  ? data->reference.values[out.index]
                                             : data->reference.columns[out.index];
        rt_parallel((uint32_t)tensor->bank_rows, compare_rows, &c);
        if (owner == tensor) compare_borders(&c);
        wrong += atomic_load(&c.wrong);
        data->elements += (uint64_t)(tensor->rows * tensor->columns);
        data->referred += (uint64_t)(tensor->bank_rows * tensor->columns);
        data->exact += atomic_load(&c.exact);
    }
    return wrong;
}

const char *data_output(const Data *data, uint32_t output, size_t *bytes) {
    const DataTensor *tensor = &data->tensors[data->input_count + output], *owner = &data->tensors[tensor->owner];
    *bytes = extent_of(tensor);
    return owner->block + owner->start;
}
