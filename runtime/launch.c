/* Launching a plan. In: a program's tables, the caller's pointers, dims and scalars. Out: kernels enqueued. Nothing is
 * allocated or waited for: the working memory is the caller's. Tables are made in program_tables.c, the rules on sizes
 * and pointers stand in launch_check.c. */
#include "runtime/launch_tables.h"

#include <string.h>

Status rt_program_load(RtProgram *program, RtDevice *device, RtModule *module, Text *why) {
    const Plan *plan = program->unit->plan;
    for (uint32_t s = 0; s < plan->steps.count; s++) {
        const Step *step = &plan->steps.at[s];
        if (!gen_has_code(plan, s))
            memcpy(program->variants[s], program->variants[step->code], sizeof *program->variants);
        for (uint32_t v = 0; gen_has_code(plan, s) && v < step->variant_count; v++) {
            RtVariant *variant = &program->variants[s][v];
            Status status = device->ops->kernel(device, module, step->variants[v].kernel, step->shared_bytes,
                                                &variant->kernel, why);
            if (!status) status = device->ops->facts(device, variant->kernel, &variant->facts, why);
            if (status) return status;
            if (variant->facts.max_threads && variant->facts.max_threads < step->tile.threads) {
                rt_say(why, "kernel %s needs %d threads a CTA and the device runs at most %d of it",
                       step->variants[v].kernel, step->tile.threads, variant->facts.max_threads);
                return STATUS_NOT_COMPILED;
            }
        }
    }
    program->device = device;
    program->module = module;
    return STATUS_OK;
}

static void bind_bufs(const RtProgram *program, const ng_args *args, RtScratch *scratch) {
    const Prog *prog = program->unit->prog;
    const Plan *plan = program->unit->plan;
    for (uint32_t b = 0; b < prog->bufs.count; b++) {
        const Buf *buf = &prog->bufs.at[b];
        int64_t bytes = ir_dtype(buf->dtype)->bytes;
        scratch->bufs[b] = NULL;
        if (buf->kind == BUF_SCALAR) continue;
        if (buf->kind == BUF_IN || buf->kind == BUF_OUT) {
            char *pointer = args->tensors[buf->tensor + (buf->kind == BUF_OUT ? program->input_count : 0)];
            if (pointer) scratch->bufs[b] = pointer + rt_size_value(scratch, buf->offset) * bytes;
        } else if (plan->room_of[b] != IR_NONE) {
            scratch->bufs[b] = (char *)args->workspace + scratch->places[plan->room_of[b]];
        }
    }
}

static bool guard_holds(const Step *step, const Guard *guard, const RtScratch *scratch) {
    switch (guard->kind) {
    case GUARD_ALIGNED: return (uintptr_t)scratch->bufs[step->params[guard->param].buf] % (uint64_t)guard->number == 0;
    case GUARD_MULTIPLE: return rt_size_value(scratch, guard->size) % guard->number == 0;
    case GUARD_AT_MOST: return rt_size_value(scratch, guard->size) <= guard->number;
    }
    return false;
}

static uint32_t choose_variant(const Step *step, const RtScratch *scratch) {
    for (uint32_t v = 0; v + 1 < step->variant_count; v++) {
        bool holds = true;
        for (uint32_t g = 0; holds && g < step->variants[v].guard_count; g++)
            holds = guard_holds(step, &step->variants[v].guards[g], scratch);
        if (holds) return v;
    }
    return step->variant_count - 1;
}

/* The value as a kernel takes it: double, float or int64, in the first bytes of the word. */
static int64_t scalar_word(const Tensor *scalar, const ng_scalar *given) {
    int64_t word = 0;
    Scalar value = rt_scalar_value(scalar, given);
    const DType compute = ir_compute_dtype(scalar->dtype);
    if (compute == DTYPE_F64) {
        memcpy(&word, &value.number, sizeof value.number);
    } else if (compute == DTYPE_F32) {
        float narrow = (float)value.number;
        memcpy(&word, &narrow, sizeof narrow);
    } else {
        word = value.integer;
    }
    return word;
}

static void bind_params(const RtProgram *program, const Step *step, const ng_args *args, RtScratch *scratch) {
    const Prog *prog = program->unit->prog;
    for (uint32_t p = 0; p < step->param_count; p++) {
        const Param *param = &step->params[p];
        scratch->params[p] = &scratch->values[p];
        if (param->kind == PARAM_SIZE) {
            scratch->values[p] = rt_size_value(scratch, param->size);
        } else if (prog->bufs.at[param->buf].kind == BUF_SCALAR) {
            uint32_t index = prog->bufs.at[param->buf].tensor;
            scratch->values[p] =
                scalar_word(&program->graph->scalars.at[index], args->scalars ? &args->scalars[index] : NULL);
        } else {
            scratch->params[p] = &scratch->bufs[param->buf];
        }
    }
}

static Status launch_step(const RtProgram *program, uint32_t index, const ng_args *args, RtScratch *scratch,
                          Text *why) {
    const Step *step = &program->unit->plan->steps.at[index];
    int64_t blocks;
    Status status = rt_step_blocks(program, index, scratch, &blocks, why);
    if (status || blocks == 0) return status;
    bind_params(program, step, args, scratch);
    scratch->variant = choose_variant(step, scratch);
    RtLaunch launch = {.kernel = program->variants[index][scratch->variant].kernel,
                       .blocks = (uint64_t)blocks,
                       .threads = (uint32_t)step->tile.threads,
                       .shared_bytes = step->shared_bytes,
                       .slices = step->slices,
                       .slice_count = step->slice_count,
                       .params = scratch->params,
                       .stream = args->stream};
    return program->device->ops->launch(program->device, &launch, why);
}

Status rt_program_launch(const RtProgram *program, const ng_args *args, int64_t *words, Text *why,
                         void (*step_done)(void *state, uint32_t step, const RtScratch *scratch), void *state) {
    RtScratch scratch;
    Status status = rt_program_check(program, args, words, &scratch, why);
    if (status) return status;
    bind_bufs(program, args, &scratch);
    for (uint32_t s = 0; !status && s < program->unit->plan->steps.count; s++) {
        status = launch_step(program, s, args, &scratch, why);
        if (!status && step_done) step_done(state, s, &scratch);
    }
    return status;
}
