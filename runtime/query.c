/* What a program takes and is made of. In: a program, an index or a name, dims. Out: facts in the caller's structs. All
 * read only what compiling made; the kernels' facts may ask NVRTC once. */
#include "runtime/context.h"

#include <stdlib.h>
#include <math.h>
#include <string.h>

const char *ng_dtype_name(ng_dtype dtype) {
    return (size_t)dtype < DTYPE_COUNT ? ir_dtype((DType)dtype)->name : "unknown";
}

size_t ng_dtype_bytes(ng_dtype dtype) { return (size_t)dtype < DTYPE_COUNT ? ir_dtype((DType)dtype)->bytes : 0; }

double ng_load(ng_dtype dtype, const void *element) {
    const DType own = (DType)dtype;
    if ((size_t)dtype >= DTYPE_COUNT) return NAN;
    return ir_dtype(own)->kind == KIND_FLOAT ? ir_load_float(own, element) : (double)ir_load_int(own, element);
}

void ng_store(ng_dtype dtype, void *element, double value) {
    const DType own = (DType)dtype;
    if ((size_t)dtype >= DTYPE_COUNT) return;
    const Kind kind = ir_dtype(own)->kind;
    if (kind == KIND_FLOAT)
        ir_store_float(own, element, value);
    else
        ir_store_int(own, element, kind == KIND_BOOL ? value != 0 : ir_float_to_int(own, value));
}

ng_status ng_program_query(const ng_program *program, ng_program_facts *facts) {
    if (!program || !facts) return NG_USAGE;
    const RtProgram *tables = program->tables;
    ng_program_facts own = {.size = sizeof own,
                            .name = tables->graph->name,
                            .inputs = tables->input_count,
                            .outputs = tables->tensor_count - tables->input_count,
                            .scalars = tables->graph->scalars.count,
                            .dims = tables->any_count,
                            .compile_seconds = program->seconds};
    if (program->unit.plan) own.kernels = gen_kernel_count(program->unit.plan);
    return rt_struct_out(facts, &own, sizeof own) ? NG_OK : NG_USAGE;
}

/* ---- arguments ---- */

static uint32_t role_count(const RtProgram *tables, ng_arg_role role) {
    switch (role) {
    case NG_INPUT: return tables->graph->inputs.count;
    case NG_OUTPUT: return tables->graph->outputs.count;
    case NG_SCALAR: return tables->graph->scalars.count;
    case NG_DIM: return tables->any_count;
    }
    return 0;
}

static const Tensor *role_tensor(const RtProgram *tables, ng_arg_role role, uint32_t index) {
    const Graph *graph = tables->graph;
    return role == NG_INPUT    ? &graph->inputs.at[index]
           : role == NG_OUTPUT ? &graph->outputs.at[index]
                               : &graph->scalars.at[index];
}

static const char *role_name(const RtProgram *tables, ng_arg_role role, uint32_t index) {
    return role == NG_DIM ? tables->graph->dims.at[tables->any[index]].name : role_tensor(tables, role, index)->name;
}

/* The any dim that an extent is, as an index among them. */
static int32_t extent_dim(const RtProgram *tables, Poly extent) {
    if (extent.count != 1 || extent.terms[0].coefficient != 1 || extent.terms[0].divisor != 1 ||
        extent.terms[0].symbol[1] != IR_NO_SYMBOL)
        return -1;
    for (uint32_t a = 0; a < tables->any_count; a++)
        if (tables->any[a] == extent.terms[0].symbol[0]) return (int32_t)a;
    return -1;
}

static void fill_tensor(const RtProgram *tables, ng_arg_role role, uint32_t index, ng_arg *arg) {
    const Tensor *tensor = role_tensor(tables, role, index);
    const RtTensor *row = &tables->tensors[role == NG_OUTPUT ? tables->input_count + index : index];
    arg->dtype = (ng_dtype)tensor->dtype;
    arg->rank = tensor->shape.rank;
    arg->contiguous = tensor->contiguous;
    arg->inplace = row->inplace == IR_NONE ? -1 : (int64_t)row->inplace;
    arg->accumulate = tensor->accumulate;
    arg->align = row->pointer_align;
    for (uint32_t d = 0; d < tensor->shape.rank; d++) arg->extent_dim[d] = extent_dim(tables, tensor->shape.extent[d]);
}

static void fill_scalar(const Tensor *scalar, ng_arg *arg) {
    arg->dtype = (ng_dtype)scalar->dtype;
    arg->has_default = scalar->has_default;
    Scalar value = rt_scalar_value(scalar, NULL);
    if (!scalar->has_default) return;
    if (ir_dtype(scalar->dtype)->kind != KIND_FLOAT)
        arg->value.i64 = value.integer;
    else if (scalar->dtype == DTYPE_F64)
        arg->value.f64 = value.number;
    else
        arg->value.f32 = (float)value.number;
}

ng_status ng_arg_query(const ng_program *program, ng_arg_role role, uint32_t index, ng_arg *arg) {
    if (!program || !arg || index >= role_count(program->tables, role)) return NG_USAGE;
    const RtProgram *tables = program->tables;
    ng_arg own = {.size = sizeof own,
                  .name = role_name(tables, role, index),
                  .inplace = -1,
                  .hint = -1,
                  .max = -1,
                  .multiple = 1,
                  .extent_dim = {-1, -1, -1, -1, -1, -1}};
    if (role == NG_DIM) {
        const Dim *dim = &tables->graph->dims.at[tables->any[index]];
        own.dtype = NG_I64;
        own.hint = dim->hint, own.max = dim->max, own.multiple = dim->multiple;
    } else if (role == NG_SCALAR) {
        fill_scalar(role_tensor(tables, role, index), &own);
    } else {
        fill_tensor(tables, role, index, &own);
    }
    return rt_struct_out(arg, &own, sizeof own) ? NG_OK : NG_USAGE;
}

ng_status ng_arg_find(const ng_program *program, const char *name, ng_arg_role *role, uint32_t *index) {
    if (!program || !name || !role || !index) return NG_USAGE;
    for (int r = NG_INPUT; r <= NG_DIM; r++)
        for (uint32_t i = 0; i < role_count(program->tables, (ng_arg_role)r); i++) {
            if (strcmp(name, role_name(program->tables, (ng_arg_role)r, i)) != 0) continue;
            *role = (ng_arg_role)r;
            *index = i;
            return NG_OK;
        }
    return NG_USAGE;
}

/* Sizes in memory of the context's allocator: queries may allocate, a launch may not. */
static ng_status with_sizes(const ng_program *program, const int64_t *dims, RtScratch *scratch, int64_t **words) {
    const Allocator *allocator = &program->context->allocator;
    *words = allocator->alloc(allocator->state, (program->tables->scratch_words + (size_t)1) * sizeof **words);
    if (!*words) return NG_SYSTEM;
    return rt_status(rt_program_sizes(program->tables, dims, *words, scratch, NULL));
}

static void drop_words(const ng_program *program, int64_t *words) {
    if (words) program->context->allocator.release(program->context->allocator.state, words);
}

ng_status ng_arg_shape(const ng_program *program, ng_arg_role role, uint32_t index, const int64_t *dims,
                       int64_t *extents, int64_t *strides) {
    if (!program || (role != NG_INPUT && role != NG_OUTPUT) || index >= role_count(program->tables, role))
        return NG_USAGE;
    const uint32_t tensor = role == NG_OUTPUT ? program->tables->input_count + index : index;
    const uint32_t rank = program->tables->tensors[tensor].tensor->shape.rank;
    RtScratch scratch;
    int64_t *words;
    ng_status status = with_sizes(program, dims, &scratch, &words);
    if (!status && extents) memcpy(extents, scratch.spans[tensor].extent, rank * sizeof *extents);
    if (!status && strides) memcpy(strides, scratch.spans[tensor].stride, rank * sizeof *strides);
    drop_words(program, words);
    return status;
}

ng_status ng_arg_slice(const ng_program *program, uint32_t output, const int64_t *dims, int64_t *offset) {
    if (!program || !offset || output >= role_count(program->tables, NG_OUTPUT)) return NG_USAGE;
    const RtTensor *row = &program->tables->tensors[program->tables->input_count + output];
    if (row->inplace == IR_NONE) return NG_USAGE;
    RtScratch scratch;
    int64_t *words;
    ng_status status = with_sizes(program, dims, &scratch, &words);
    if (!status && !ir_poly_eval(row->slice, scratch.graph_dims, program->tables->graph->dims.count, NULL, 0, offset))
        status = NG_USAGE;
    drop_words(program, words);
    return status;
}

ng_status ng_arg_indices(const ng_program *program, uint32_t input, const int64_t *dims, int64_t *count) {
    if (!program || !count || input >= role_count(program->tables, NG_INPUT)) return NG_USAGE;
    const Allocator *allocator = &program->context->allocator;
    const Graph *graph = program->unit.graph; /* as it is computed: what nothing reads indexes nothing */
    int64_t *words, *limits = NULL, least = INT64_MAX;
    RtScratch scratch;
    ng_status status = with_sizes(program, dims, &scratch, &words);
    if (!status) limits = allocator->alloc(allocator->state, (graph->values.count + (size_t)1) * sizeof *limits);
    if (!status && !limits) status = NG_SYSTEM;
    if (!status) ir_graph_index_limits(graph, scratch.graph_dims, limits);
    for (uint32_t v = 0; !status && v < graph->values.count; v++)
        if (graph->values.at[v].op == OP_INPUT && graph->values.at[v].tensor == input && limits[v] < least)
            least = limits[v];
    if (!status && least == INT64_MAX) status = NG_USAGE;
    if (!status) *count = least;
    drop_words(program, limits);
    drop_words(program, words);
    return status;
}

ng_status ng_workspace_bytes(const ng_program *program, const int64_t *dims, size_t *bytes) {
    if (!program || !bytes) return NG_USAGE;
    RtScratch scratch;
    int64_t *words;
    ng_status status = with_sizes(program, dims, &scratch, &words);
    if (!status) *bytes = (size_t)scratch.workspace_bytes;
    drop_words(program, words);
    return status;
}

/* ---- kernels ---- */

void rt_program_take_facts(const ng_program *program, const char *cubin, size_t count) {
    ng_program *own = (ng_program *)(uintptr_t)program; /* const to callers: what is read is a fact of the program */
    const Plan *plan = program->unit.plan;
    uint32_t kernel = 0;
    pthread_mutex_lock(&own->facts_lock);
    for (uint32_t s = 0; cubin && !own->facts_known && s < plan->steps.count; s++)
        for (uint32_t v = 0; gen_has_code(plan, s) && v < plan->steps.at[s].variant_count; v++)
            own->facts_found[kernel++] =
                rt_cubin_facts(cubin, count, plan->steps.at[s].variants[v].kernel, &own->tables->variants[s][v].facts);
    own->facts_known = true;
    pthread_mutex_unlock(&own->facts_lock);
}

/* A program that no GPU holds is compiled once more, for the architecture that it was planned for, to see what its
 * kernels need. Without NVRTC nobody can say. */
static void read_cubin(ng_program *program) {
    char *cubin = NULL;
    size_t count = 0;
    pthread_mutex_lock(&program->facts_lock);
    const bool known = program->facts_known;
    pthread_mutex_unlock(&program->facts_lock);
    if (known) return;
    if (program->unit.source.device_text)
        (void)rt_nvrtc_compile(&program->unit.source, program->context->target.arch, RT_CUBIN, &cubin, &count, NULL);
    rt_program_take_facts(program, cubin, count);
    free(cubin);
}

ng_status ng_kernel_query(const ng_program *program, uint32_t index, ng_kernel *kernel) {
    if (!program || !kernel || !program->unit.plan) return NG_USAGE;
    const Plan *plan = program->unit.plan;
    uint32_t s = 0, v = index, launches = 0;
    for (; s < plan->steps.count; s++) {
        const uint32_t own_count = gen_has_code(plan, s) ? plan->steps.at[s].variant_count : 0;
        if (v < own_count) break;
        v -= own_count;
    }
    if (s == plan->steps.count) return NG_USAGE;
    for (uint32_t other = s; other < plan->steps.count; other++) launches += plan->steps.at[other].code == s;
    read_cubin((ng_program *)(uintptr_t)program);
    const Step *step = &plan->steps.at[s];
    const RtFacts *facts = &program->tables->variants[s][v].facts;
    ng_kernel own = {.size = sizeof own,
                     .name = step->variants[v].kernel,
                     .strategy = gen_strategy(step->strategy)->name,
                     .variant = step->variants[v].label,
                     .threads = step->tile.threads,
                     .shared_bytes = step->shared_bytes,
                     .registers = program->facts_found[index] ? facts->registers : -1,
                     .local_bytes = program->facts_found[index] ? facts->local_bytes : -1,
                     .launches = launches};
    return rt_struct_out(kernel, &own, sizeof own) ? NG_OK : NG_USAGE;
}
