/* Graph texts on a device: generated one by one, built in one call, each then run by rt_program_run. */
#ifndef TESTS_DEVICE_CASE_H
#define TESTS_DEVICE_CASE_H

#include "tests/support/launch_trial.h"

typedef struct DeviceCase {
    Job *job;
    const char *text;
    GenOptions options;
    Unit unit;
    RtProgram *program;
    RtModule *module;
    Status status; /* of the last step */
} DeviceCase;

/* The devices that a test runs on: the host device in three orders of its lanes, or a GPU. Modules of the first work on
 * all. */
typedef struct Devices {
    RtDevice *at[3];
    uint32_t count;
    bool cuda;
} Devices;

/* argv may hold --device=host|cuda; false with words on standard error where it holds more or there is no device. */
bool devices_open(Devices *devices, int argc, char **argv);
void devices_close(Devices *devices);

/* All passes; status and the job's report say what came of it. The text is copied. sm_90 is planned for. sets:
 * NAME=VALUE with blanks between, or NULL. */
DeviceCase *device_case_create(const char *text, const char *sets);
/* Builds and loads those that were generated; false with words on standard output, also where the compiler has any. */
bool device_cases_build(DeviceCase *const *cases, uint32_t count, const Devices *devices);
/* Runs a case at these values of its any dims: trial->random is set, and what else it is to do; the rest is filled in
 * here. False with words on standard output where a run was wrong; where the case refuses the dims nothing is
 * launched. What is made lives in the job. */
bool device_case_try(Job *job, const DeviceCase *device_case, const Devices *devices, const int64_t *any,
                     LaunchTrial *trial);
/* Puts the program on another of the devices. */
void device_case_move(DeviceCase *device_case, RtDevice *device);
void device_case_free(DeviceCase *device_case, const Devices *devices);

#endif
