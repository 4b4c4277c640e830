/* Contexts and devices. In: options. Out: an ng_context with an open device. */
#include "runtime/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *ng_version(void) { return "0.1.0"; }

const char *ng_status_name(ng_status status) {
    static const char *const names[] = {"ok",           "rejected", "usage",  "no device", "not compiled",
                                        "check failed", "system",   "launch", "internal",  "unavailable"};
    return (size_t)status < sizeof names / sizeof *names ? names[status] : "unknown";
}

bool rt_struct_in(void *own, size_t own_bytes, const void *callers) {
    size_t size;
    memcpy(&size, callers, sizeof size);
    if (size < sizeof size) return false;
    memcpy(own, callers, size < own_bytes ? size : own_bytes);
    return true;
}

bool rt_struct_out(void *callers, const void *own, size_t own_bytes) {
    size_t size;
    memcpy(&size, callers, sizeof size);
    if (size < sizeof size) return false;
    memcpy(callers, own, size < own_bytes ? size : own_bytes);
    memcpy(callers, &size, sizeof size);
    return true;
}

void rt_why(ng_text *why, const char *format, ...) {
    if (!why) return;
    char *bytes = NULL;
    va_list args;
    va_start(args, format);
    int count = vasprintf(&bytes, format, args);
    va_end(args);
    *why = count < 0 ? (ng_text){NULL, 0} : (ng_text){bytes, (size_t)count};
}

/* ---- devices ---- */

static void describe(ng_device *device, ng_device_kind kind, int ordinal, const Target *target, const char *name) {
    device->kind = kind;
    device->ordinal = ordinal;
    device->arch = target->arch;
    device->sms = target->sms;
    size_t count = strlen(name);
    if (count >= sizeof device->name) count = sizeof device->name - 1;
    memcpy(device->name, name, count);
    device->name[count] = 0;
}

enum { DEFAULT_ARCH = 90 };

ng_status ng_device_query(int index, ng_device *device) {
    ng_device own = {.size = sizeof own};
    Target target;
    char name[128];
    const int gpus = rt_cuda_count();
    if (!device || index < 0) return NG_USAGE;
    if (index > gpus) return NG_NO_DEVICE;
    if (index == gpus) {
        describe(&own, NG_DEVICE_HOST, 0, gen_target(DEFAULT_ARCH), "the processor");
    } else {
        Status status = rt_cuda_query(index, &target, name, &own.memory_bytes, NULL);
        if (status) return rt_status(status);
        describe(&own, NG_DEVICE_CUDA, index, &target, name);
    }
    return rt_struct_out(device, &own, sizeof own) ? NG_OK : NG_USAGE;
}

ng_status ng_context_device(const ng_context *context, ng_device *device) {
    static const char *const names[] = {"", "", "the processor", "none"};
    ng_device own = {.size = sizeof own};
    if (!context || !device) return NG_USAGE;
    const char *name = context->kind == NG_DEVICE_CUDA ? context->target.name : names[context->kind];
    describe(&own, context->kind, context->device ? context->device->ordinal : 0, &context->target, name);
    if (context->kind == NG_DEVICE_CUDA) {
        Target target;
        char queried[128];
        (void)rt_cuda_query(own.ordinal, &target, queried, &own.memory_bytes, NULL);
    }
    return rt_struct_out(device, &own, sizeof own) ? NG_OK : NG_USAGE;
}

/* ---- contexts ---- */

static void *system_alloc(void *state, size_t bytes) {
    (void)state;
    return malloc(bytes ? bytes : 1);
}

static void system_release(void *state, void *memory) {
    (void)state;
    free(memory);
}

Allocator rt_allocator(void *(*alloc)(void *state, size_t bytes), void (*release)(void *state, void *memory),
                       void *state) {
    return (Allocator){alloc ? alloc : system_alloc, release ? release : system_release, state};
}

typedef struct Opening {
    ng_context *context;
    const ng_context_options *options;
    Text why;
    Status status;
} Opening;

static Status open_cuda(Opening *opening) {
    const int arch = opening->options->arch;
    if (!rt_nvrtc_found()) {
        Source none = {.device_text = ""};
        char *bytes;
        size_t count;
        return rt_nvrtc_compile(&none, DEFAULT_ARCH, RT_PTX, &bytes, &count, &opening->why); /* says what is missing */
    }
    Status status = rt_cuda_open(opening->options->ordinal, &opening->context->device, &opening->why);
    if (status) return status;
    const int own = opening->context->device->target.arch;
    if (!arch || arch == own) return STATUS_OK;
    rt_say(&opening->why, "GPU %d is sm_%d; kernels planned for sm_%d do not run on it", opening->options->ordinal, own,
           arch);
    return STATUS_USAGE;
}

static Status open_host(Opening *opening) {
    const ng_context_options *options = opening->options;
    RtHostOptions host = {.order = (RtOrder)options->host_order, .seed = options->host_seed};
    return rt_host_open(options->arch, &host, &opening->context->device, &opening->why);
}

static Status open_none(Opening *opening) {
    const int arch = opening->options->arch ? opening->options->arch : DEFAULT_ARCH;
    const Target *target = gen_target(arch);
    if (target) {
        opening->context->target = *target;
        return STATUS_OK;
    }
    rt_say(&opening->why, "normgen plans for architectures from sm_80 on, not for sm_%d", arch);
    return STATUS_USAGE;
}

static bool options_legal(Opening *opening) {
    const ng_context_options *options = opening->options;
    const char *wrong = NULL;
    if (options->host_order > NG_ORDER_SEEDED) wrong = "unknown order of the host device";
    if (options->device > NG_DEVICE_NONE) wrong = "unknown kind of device";
    if (options->device != NG_DEVICE_CUDA && options->ordinal) wrong = "only a GPU has an ordinal";
    if (wrong) rt_say(&opening->why, "%s", wrong);
    return !wrong;
}

static void opening_work(Job *job, void *state) {
    Opening *opening = state;
    opening->why = ir_text(job);
    ng_device_kind kind = opening->options->device;
    opening->status = STATUS_USAGE;
    if (!options_legal(opening)) return;
    if (kind == NG_DEVICE_DEFAULT) kind = rt_cuda_count() > 0 && rt_nvrtc_found() ? NG_DEVICE_CUDA : NG_DEVICE_HOST;
    opening->context->kind = kind;
    switch (kind) {
    case NG_DEVICE_CUDA: opening->status = open_cuda(opening); break;
    case NG_DEVICE_HOST: opening->status = open_host(opening); break;
    default: opening->status = open_none(opening); break;
    }
    if (!opening->status && opening->context->device) opening->context->target = opening->context->device->target;
}

static int debug_level(void) {
    const char *text = getenv("NORMGEN_DEBUG");
    return text && text[0] >= '0' && text[0] <= '9' && !text[1] ? text[0] - '0' : 0;
}

static Status open_context(ng_context *context, const ng_context_options *options, ng_text *why) {
    Opening opening = {.context = context, .options = options};
    Job *job = ir_job_create(&context->allocator);
    Status status = job ? ir_job_run(job, opening_work, &opening) : STATUS_SYSTEM;
    if (!status) status = opening.status;
    if (status && why) {
        if (opening.why.count)
            *why = rt_text_give(opening.why.bytes, opening.why.count);
        else
            rt_why(why, "out of memory");
    }
    ir_job_free(job);
    if (!status && context->debug >= 1)
        fprintf(stderr, "normgen: device %s, planned for sm_%d\n",
                context->device ? context->device->ops->name : "none", context->target.arch);
    return status;
}

ng_status ng_context_create(const ng_context_options *options, ng_context **context, ng_text *why) {
    ng_context_options own = {.size = sizeof own};
    if (why) *why = (ng_text){NULL, 0};
    if (!context) return NG_USAGE;
    *context = NULL;
    if (options && !rt_struct_in(&own, sizeof own, options)) {
        rt_why(why, "the options' size is not set");
        return NG_USAGE;
    }
    if (!own.alloc != !own.release) {
        rt_why(why, "alloc and release go together");
        return NG_USAGE;
    }
    Allocator allocator = rt_allocator(own.alloc, own.release, own.allocator_state);
    ng_context *made = allocator.alloc(allocator.state, sizeof *made);
    if (!made) {
        rt_why(why, "out of memory");
        return NG_SYSTEM;
    }
    memset(made, 0, sizeof *made);
    made->allocator = allocator;
    made->debug = debug_level();
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->compiled, NULL);
    Status status = open_context(made, &own, why);
    if (status) {
        ng_context_free(made);
        return rt_status(status);
    }
    *context = made;
    return NG_OK;
}

void ng_context_free(ng_context *context) {
    if (!context) return;
    if (context->device) context->device->ops->close(context->device);
    pthread_cond_destroy(&context->compiled);
    pthread_mutex_destroy(&context->lock);
    context->allocator.release(context->allocator.state, context);
}
