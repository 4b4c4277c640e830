/* The cuda device on a driver that only counts (tests/fake/cuda.c): contexts are pushed and popped in pairs, everything
 * taken is given back, kernels are loaded with their attributes before a launch, tapes are captured once and timed, and
 * each call of the driver may fail; what several steps launch is one module.
 * Needs a C compiler; skipped without. What real kernels do is for a GPU to show. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/launch.h"
#include "tests/support/fake_cuda.h"
#include "tests/support/generate.h"

#include <string.h>

typedef struct Use {
    RtDevice *device;
    RtModule *module, *nothing;
    RtKernel *kernel;
    RtFacts facts;
    void *memory;
    char back[5];
    RtTape *tape;
    double seconds[2];
    bool refuse; /* what is to be recorded */
} Use;

/* Three launches. */
static Status enqueue(void *state, void *stream) {
    const Use *use = state;
    void *params[] = {(void *)(uintptr_t)&use->memory};
    const RtLaunch launch = {.kernel = use->kernel, .blocks = 7, .threads = 64, .params = params, .stream = stream};
    Status status = STATUS_OK;
    for (int i = 0; !status && i < 3; i++) status = use->device->ops->launch(use->device, &launch, NULL);
    return use->refuse ? STATUS_LAUNCH : status;
}

static Status play_tape(Use *use, Text *why) {
    const RtDeviceOps *ops = use->device->ops;
    Status status = ops->record(use->device, enqueue, use, &use->tape, why);
    RtTape *twice[] = {use->tape, use->tape};
    return status ? status : ops->play(use->device, twice, 2, use->seconds, why);
}

/* All that the library asks of a device, until something fails. */
static Status use_device(Use *use, Text *why) {
    static const char text[] = "#if !defined(NG_ONLY) || NG_ONLY == 0\n"
                               "extern \"C\" __global__ void j(float *p) { p[0] = 1; }\n"
                               "#endif\n"
                               "#if !defined(NG_ONLY) || NG_ONLY == 1\n"
                               "extern \"C\" __global__ void k(float *p) { p[0] = 1; }\n"
                               "#endif\n";
    const char *names[] = {"j", "k"}, *no_names[] = {NULL};
    const Source source = {.device_text = text, .device_count = sizeof text - 1, .kernel_count = 2, .kernels = names};
    const Source nothing = {.device_text = "", .kernels = no_names}; /* a unit whose outputs have no element */
    const Source *sources[] = {&source, &nothing};
    RtModule *modules[2] = {NULL, NULL};
    Status status = rt_cuda_open(0, &use->device, why);
    if (status) return status;
    const RtDeviceOps *ops = use->device->ops;
    status = ops->build(use->device, sources, 2, modules, why);
    use->module = modules[0];
    use->nothing = modules[1];
    if (!status) status = ops->kernel(use->device, use->module, "k", 70000, &use->kernel, why);
    if (!status) status = ops->facts(use->device, use->kernel, &use->facts, why);
    if (!status) status = ops->alloc(use->device, 100, &use->memory, why);
    if (!status) status = ops->copy_in(use->device, use->memory, "abcd", 5, why);
    void *params[] = {&use->memory};
    const RtLaunch launch = {.kernel = use->kernel, .blocks = 7, .threads = 64, .params = params};
    if (!status) status = ops->launch(use->device, &launch, why);
    if (!status) status = ops->synchronize(use->device, why);
    if (!status) status = ops->copy_within(use->device, (char *)use->memory + 50, use->memory, 5, why);
    if (!status) status = ops->copy_out(use->device, use->back, (char *)use->memory + 50, 5, why);
    uint64_t left = 0;
    if (!status) status = ops->memory_left(use->device, &left, why);
    if (!status) assert_true(left > 0);
    return status ? status : play_tape(use, why);
}

static void give_back(Use *use) {
    if (!use->device) return;
    use->device->ops->tape_free(use->device, use->tape);
    if (use->memory) use->device->ops->release(use->device, use->memory);
    if (use->module) use->device->ops->module_free(use->device, use->module);
    if (use->nothing) use->device->ops->module_free(use->device, use->nothing);
    use->device->ops->close(use->device);
}

static void test_use(void **state) {
    Job *job = *state;
    FakeCuda *fake = fake_cuda_load();
    if (!fake) skip();
    fake->kernel_us = 5;
    fake->stack[fake->depth++] = (void *)0x77; /* the caller's context */
    assert_int_equal(rt_cuda_count(), 1);
    Target target;
    char name[128];
    uint64_t bytes;
    Text why = ir_text(job);
    assert_int_equal(rt_cuda_query(0, &target, name, &bytes, &why), STATUS_OK);
    assert_string_equal(name, "fake");
    assert_int_equal(target.arch, 90);
    assert_int_equal(fake->retained, 0);
    Use use = {0};
    assert_int_equal(rt_cuda_open(1, &use.device, &why), STATUS_NO_DEVICE);
    assert_non_null(strstr(ir_text_string(&why), "no GPU 1"));
    assert_int_equal(use_device(&use, &why), STATUS_OK);
    assert_string_equal(use.back, "abcd");
    assert_int_equal(use.facts.registers, 34);
    assert_int_equal(use.facts.local_bytes, 33);
    assert_int_equal(fake->shared_bytes, 70000);
    assert_int_equal(fake->grid, 7);
    assert_int_equal(fake->block, 64);
    assert_int_equal(fake->launches, 1 + 3); /* those of the tape only once, however often it is played */
    assert_int_equal(fake->replayed, 2 * 3);
    for (int i = 0; i < 2; i++) assert_true(use.seconds[i] > 14.9e-6 && use.seconds[i] < 15.1e-6);
    RtTape *refused = NULL;
    use.refuse = true;
    assert_int_equal(use.device->ops->record(use.device, enqueue, &use, &refused, &why), STATUS_LAUNCH);
    assert_null(refused);
    assert_non_null(strstr(ir_text_string(&why), "while it was captured"));
    assert_int_equal(fake->modules, 3); /* each kernel was compiled on its own, and the text that has none */
    assert_int_equal(fake->deepest, 3); /* what is captured enters once more */
    RtKernel *none;
    assert_int_equal(use.device->ops->kernel(use.device, use.module, "other", 0, &none, &why), STATUS_NOT_COMPILED);
    assert_non_null(strstr(ir_text_string(&why), "kernel other"));
    give_back(&use);
    assert_int_equal(fake->depth, 1);
    assert_ptr_equal(fake->stack[0], (void *)0x77);
    assert_int_equal(fake_cuda_live(fake), 0);

    const int calls = fake->calls;
    int failures = 0;
    for (int n = 1; n <= calls; n++) {
        memset(fake->stack + 1, 0, sizeof fake->stack - sizeof *fake->stack);
        fake->calls = 0;
        fake->fail_at = n;
        use = (Use){0};
        why = ir_text(job);
        const Status status = use_device(&use, &why);
        const int last = fake->calls < n; /* nothing was left to fail: only giving back follows */
        fake->fail_at = 0;
        give_back(&use);
        assert_int_equal(fake->depth, 1);
        assert_int_equal(fake_cuda_live(fake), 0);
        assert_int_equal(status == STATUS_OK, last);
        if (last) break;
        failures++;
        const char *said = ir_text_string(&why);
        if (!strstr(said, "while it was captured")) assert_non_null(strstr(said, "CUDA_ERROR_FAKE (planted)"));
    }
    print_message("# each of %d driver calls failed once\n", failures);
    assert_true(failures > 60);
}

/* Kernels that are equal but for names are one module, which all their launches have. */
static void test_shared(void **state) {
    Job *job = *state;
    FakeCuda *fake = fake_cuda_load();
    if (!fake) skip();
    const int before = fake->modules;
    Unit unit = {0};
    assert_int_equal(generate_file(job, &unit, "examples/rms_norm_shared_bwd.yaml", NULL, NULL), STATUS_OK);
    assert_int_equal(unit.plan->steps.count, 4);
    const Source *source = &unit.source;
    RtDevice *device;
    RtModule *module;
    Text why = ir_text(job);
    RtProgram *program = rt_program_create(job, &unit);
    assert_int_equal(rt_cuda_open(0, &device, &why), STATUS_OK);
    assert_int_equal(device->ops->build(device, &source, 1, &module, &why), STATUS_OK);
    assert_int_equal(fake->modules - before, 3); /* two variants of rows, one of what adds up */
    assert_int_equal(rt_program_load(program, device, module, &why), STATUS_OK);
    for (uint32_t s = 0; s < 3; s++)
        for (uint32_t v = 0; v < 2; v++)
            assert_ptr_equal(program->variants[s][v].kernel, program->variants[0][v].kernel);
    device->ops->module_free(device, module);
    device->ops->close(device);
    assert_int_equal(fake_cuda_live(fake), 0);
}

static int setup(void **state) {
    *state = ir_job_create(NULL);
    return *state == NULL;
}

static int teardown(void **state) {
    ir_job_free(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_use, setup, teardown),
                                       cmocka_unit_test_setup_teardown(test_shared, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
