/* Graph texts on a device. Contract: the header. */
#include "tests/support/device_case.h"

#include "runtime/host_sanitize.h"
#include "tests/support/generate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool devices_open(Devices *devices, int argc, char **argv) {
    *devices = (Devices){.count = 3};
    for (int i = 1; i < argc; i++) {
        bool cuda = strcmp(argv[i], "--device=cuda") == 0;
        if (!cuda && strcmp(argv[i], "--device=host") != 0) {
            fprintf(stderr, "%s: no such option: %s\n", argv[0], argv[i]);
            return false;
        }
        devices->cuda = cuda;
    }
    if (devices->cuda) devices->count = 1;
    Job *job = ir_job_create(NULL);
    Text why = ir_text(job);
    bool open = true;
    for (uint32_t d = 0; d < devices->count && open; d++) {
        RtHostOptions options = {.order = (RtOrder)d, .seed = 7};
        open = (devices->cuda ? rt_cuda_open(0, &devices->at[d], &why)
                              : rt_host_open(0, &options, &devices->at[d], &why)) == STATUS_OK;
    }
    if (!open) fprintf(stderr, "%s: %s\n", argv[0], ir_text_string(&why));
    ir_job_free(job);
    return open;
}

void devices_close(Devices *devices) {
    for (uint32_t d = 0; d < devices->count; d++) devices->at[d]->ops->close(devices->at[d]);
}

static void generate(Job *job, void *state) {
    DeviceCase *own = state;
    gen_run(job, &own->unit, "case.yaml", own->text, strlen(own->text), &own->options, gen_pass_count - 1);
    own->program = rt_program_create(job, &own->unit);
}

DeviceCase *device_case_create(const char *text, const char *sets) {
    Job *job = ir_job_create(NULL);
    DeviceCase *own = IR_NEW(job, DeviceCase);
    own->job = job;
    own->text = ir_copy_text(job, text, strlen(text));
    own->options = (GenOptions){.target = gen_target(90), .verify = true};
    own->options.sets = generate_settings(job, sets, &own->options.set_count);
    own->status = ir_job_run(job, generate, own);
    return own;
}

bool device_cases_build(DeviceCase *const *cases, uint32_t count, const Devices *devices) {
    Job *job = ir_job_create(NULL);
    Text why = ir_text(job);
    const Source **sources = IR_NEW_ARRAY(job, const Source *, count + 1);
    RtModule **modules = IR_NEW_ARRAY(job, RtModule *, count + 1);
    uint32_t built = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!cases[i]->status) sources[built++] = &cases[i]->unit.source;
    Status status = devices->at[0]->ops->build(devices->at[0], sources, built, modules, &why);
    built = 0;
    for (uint32_t i = 0; i < count && !status; i++) {
        if (cases[i]->status) continue;
        cases[i]->module = modules[built++];
        status = rt_program_load(cases[i]->program, devices->at[0], cases[i]->module, &why);
    }
    const bool silent = !why.count; /* kernels draw no warnings */
    if (status || !silent) printf("not built: %s\n", ir_text_string(&why));
    ir_job_free(job);
    return !status && silent;
}

static void say_dims(Text *text, const RtProgram *program, const int64_t *any) {
    for (uint32_t a = 0; a < program->any_count; a++)
        ir_text_format(text, "%s%s=%lld", a ? " " : "", program->graph->dims.at[program->any[a]].name,
                       (long long)any[a]);
}

bool device_case_try(Job *job, const DeviceCase *own, const Devices *devices, const int64_t *any, LaunchTrial *trial) {
    enum { BORDER = 256 };
    Text why = ir_text(job), dims = ir_text(job);
    trial->job = job;
    trial->unit = &own->unit;
    trial->program = own->program;
    trial->module = own->module;
    trial->devices = devices->at;
    trial->device_count = devices->count;
    trial->any = any;
    trial->border = RT_ADDRESS_SANITIZER && !devices->cuda ? 0 : BORDER;
    Status status = launch_trial_run(trial, &why);
    if (!status || (status == STATUS_USAGE && launch_refuses_dims(ir_text_string(&why)))) return true;
    say_dims(&dims, own->program, any);
    printf("FAILED with %s: status %d: %s\n%s\n", ir_text_string(&dims), (int)status, ir_text_string(&why), own->text);
    return false;
}

void device_case_move(DeviceCase *own, RtDevice *device) {
    own->status = rt_program_load(own->program, device, own->module, NULL);
}

void device_case_free(DeviceCase *own, const Devices *devices) {
    if (own->module) devices->at[0]->ops->module_free(devices->at[0], own->module);
    ir_job_free(own->job);
}
