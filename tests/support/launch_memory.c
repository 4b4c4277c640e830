/* In: a program's tables, sizes for the dims, inputs. Out: blocks of device memory laid out as asked, and what a launch
 * left in them. */
#include "tests/support/launch_memory.h"

#include <string.h>

#include "tests/support/random_graph.h"

enum { EMPTY = 0xff }; /* of bytes that hold no input */

int64_t launch_offset(const RtProgram *program, const RtScratch *scratch, uint32_t tensor, int64_t index) {
    const RtSpan *span = &scratch->spans[tensor];
    int64_t offset = 0;
    for (uint32_t d = program->tensors[tensor].tensor->shape.rank; d-- > 0; index /= span->extent[d])
        offset += index % span->extent[d] * span->stride[d];
    return offset * program->tensors[tensor].element_bytes;
}

bool launch_picks_nothing(const RtProgram *program, const RtScratch *scratch) {
    for (uint32_t t = 0; t < program->input_count; t++)
        if (scratch->spans[t].count && random_index_limit(program->graph, scratch->graph_dims, t) == 0) return true;
    return false;
}

ng_scalar *launch_scalars(Job *job, const Graph *graph, Random *random) {
    ng_scalar *scalars = IR_NEW_ARRAY(job, ng_scalar, graph->scalars.count + 1);
    for (uint32_t s = 0; s < graph->scalars.count; s++) {
        DType dtype = graph->scalars.at[s].dtype;
        if (dtype == DTYPE_F64)
            scalars[s].f64 = random_element(random);
        else if (ir_dtype(dtype)->kind == KIND_FLOAT)
            scalars[s].f32 = (float)random_element(random);
        else
            scalars[s].i64 = random_integer(random);
    }
    return scalars;
}

char **launch_inputs(Job *job, const RtProgram *program, const RtScratch *scratch, Random *random) {
    char **fresh = IR_NEW_ARRAY(job, char *, program->tensor_count + 1);
    for (uint32_t t = 0; t < program->tensor_count; t++) {
        const RtSpan *span = &scratch->spans[t];
        const Tensor *tensor = program->tensors[t].tensor;
        if (t >= program->input_count && !tensor->accumulate) continue;
        IR_REQUIRE(job, span->low == 0);
        fresh[t] = ir_alloc(job, (size_t)span->high + 1);
        memset(fresh[t], EMPTY, (size_t)span->high);
        int64_t limit = INT64_MAX;
        if (t < program->input_count) limit = random_index_limit(program->graph, scratch->graph_dims, t);
        for (int64_t i = 0; i < span->count; i++)
            random_fill(random, tensor->dtype, fresh[t] + launch_offset(program, scratch, t, i), 1, limit);
    }
    return fresh;
}

/* ---- layout ---- */

static void place_tensor(LaunchMemory *memory, uint32_t t, const LaunchLayout *layout) {
    const RtTensor *row = &memory->program->tensors[t];
    LaunchTensor *tensor = &memory->tensors[t];
    tensor->owner = t;
    if (layout->in_place && row->inplace != IR_NONE) {
        int64_t slice = 0;
        IR_REQUIRE(memory->job, ir_poly_eval(row->slice, memory->scratch->graph_dims,
                                             memory->program->graph->dims.count, NULL, 0, &slice));
        tensor->owner = row->inplace;
        tensor->start = memory->tensors[row->inplace].start + (size_t)(slice * row->element_bytes);
        return;
    }
    /* elements, or what the graph promises for the pointer */
    size_t shift = layout->shift ? (size_t)random_below(layout->shift, 8) : layout->alone == t + 1;
    shift *= (size_t)row->pointer_align;
    tensor->start = layout->border + shift;
    tensor->bytes = tensor->start + (size_t)memory->scratch->spans[t].high + layout->border;
    tensor->before = ir_alloc(memory->job, tensor->bytes + 1);
    tensor->after = ir_alloc(memory->job, tensor->bytes + 1);
    memset(tensor->before, EMPTY, tensor->bytes);
}

static Status open_workspace(LaunchMemory *memory, Text *why) {
    size_t bytes = (size_t)memory->scratch->workspace_bytes + 2 * memory->border;
    if (!memory->scratch->workspace_bytes) return STATUS_OK;
    void *block = NULL;
    char *empty = ir_alloc(memory->job, bytes);
    memset(empty, EMPTY, bytes);
    Status status = memory->device->ops->alloc(memory->device, bytes, &block, why);
    memory->workspace_block = block;
    if (block) memory->workspace = memory->workspace_block + memory->border;
    return status ? status : memory->device->ops->copy_in(memory->device, block, empty, bytes, why);
}

static Status check_border(LaunchMemory *memory, const char *where, const char *border, Text *why) {
    char *bytes = ir_alloc(memory->job, memory->border);
    Status status = memory->device->ops->copy_out(memory->device, bytes, border, memory->border, why);
    for (size_t i = 0; i < memory->border && !status; i++) {
        if (bytes[i] == (char)EMPTY) continue;
        rt_say(why, "byte %lld of what is %s the workspace was written", (long long)i, where);
        status = STATUS_CHECK_FAILED;
    }
    return status;
}

static Status check_workspace(LaunchMemory *memory, Text *why) {
    if (!memory->workspace || !memory->border) return STATUS_OK;
    Status status = check_border(memory, "before", memory->workspace_block, why);
    if (status) return status;
    return check_border(memory, "behind", memory->workspace + memory->scratch->workspace_bytes, why);
}

Status launch_memory_open(LaunchMemory *memory, Job *job, RtDevice *device, const RtProgram *program,
                          const RtScratch *scratch, char *const *fresh, const LaunchLayout *layout, Text *why) {
    *memory = (LaunchMemory){.job = job, .device = device, .program = program, .scratch = scratch};
    memory->border = layout->border;
    memory->tensors = IR_NEW_ARRAY(job, LaunchTensor, program->tensor_count + 1);
    memory->pointers = IR_NEW_ARRAY(job, void *, program->tensor_count + 1);
    for (uint32_t t = 0; t < program->tensor_count; t++) {
        LaunchTensor *tensor = &memory->tensors[t];
        place_tensor(memory, t, layout);
        if (tensor->owner == t) {
            if (fresh[t]) memcpy(tensor->before + tensor->start, fresh[t], (size_t)scratch->spans[t].high);
            Status status = STATUS_OK;
            if (tensor->bytes) status = device->ops->alloc(device, tensor->bytes, &tensor->memory, why);
            if (!status && tensor->bytes)
                status = device->ops->copy_in(device, tensor->memory, tensor->before, tensor->bytes, why);
            if (status) return status;
        }
        char *block = memory->tensors[tensor->owner].memory;
        if (scratch->spans[t].count) memory->pointers[t] = block + tensor->start;
    }
    return open_workspace(memory, why);
}

void launch_memory_close(LaunchMemory *memory) {
    for (uint32_t t = 0; t < memory->program->tensor_count; t++) {
        if (memory->tensors[t].memory) memory->device->ops->release(memory->device, memory->tensors[t].memory);
        memory->tensors[t].memory = NULL;
    }
    if (memory->workspace) memory->device->ops->release(memory->device, memory->workspace_block);
    memory->workspace = NULL;
}

/* ---- what a launch left ---- */

Status launch_memory_fetch(LaunchMemory *memory, Text *why) {
    const RtProgram *program = memory->program;
    for (uint32_t t = 0; t < program->tensor_count; t++) {
        LaunchTensor *tensor = &memory->tensors[t];
        if (!tensor->memory) continue;
        Status status =
            memory->device->ops->copy_out(memory->device, tensor->after, tensor->memory, tensor->bytes, why);
        if (status) return status;
        char *expected = ir_alloc(memory->job, tensor->bytes);
        memcpy(expected, tensor->before, tensor->bytes);
        for (uint32_t o = program->input_count; o < program->tensor_count; o++) {
            if (memory->tensors[o].owner != t) continue;
            for (int64_t i = 0; i < memory->scratch->spans[o].count; i++) {
                size_t at = memory->tensors[o].start + (size_t)launch_offset(program, memory->scratch, o, i);
                memcpy(expected + at, tensor->after + at, (size_t)program->tensors[o].element_bytes);
            }
        }
        for (size_t i = 0; i < tensor->bytes; i++) {
            if (expected[i] == tensor->after[i]) continue;
            rt_say(why, "byte %lld from the pointer of %s was written, and is of no element",
                   (long long)i - (long long)tensor->start, program->tensors[t].tensor->name);
            return STATUS_CHECK_FAILED;
        }
    }
    return check_workspace(memory, why);
}

char *launch_elements(const LaunchMemory *memory, uint32_t output, size_t *bytes) {
    uint32_t t = memory->program->input_count + output;
    size_t each = (size_t)memory->program->tensors[t].element_bytes;
    const LaunchTensor *tensor = &memory->tensors[t];
    int64_t count = memory->scratch->spans[t].count;
    *bytes = (size_t)count * each;
    char *elements = ir_alloc(memory->job, *bytes + 1);
    for (int64_t i = 0; i < count; i++)
        memcpy(elements + (size_t)i * each,
               memory->tensors[tensor->owner].after + tensor->start +
                   launch_offset(memory->program, memory->scratch, t, i),
               each);
    return elements;
}
