/* What `run` prints: where and on what it ran, each output's figures, the verdicts of --check and --expect. In: a Run.
 * Out: lines in cli->out, or members of cli->json. */
#include "runtime/cli/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void put_seconds(Buf *buf, double seconds) {
    if (seconds >= 1)
        buf_format(buf, "%.2f s", seconds);
    else if (seconds >= 1e-3)
        buf_format(buf, "%.1f ms", seconds * 1e3);
    else
        buf_format(buf, "%.1f us", seconds * 1e6);
}

static cJSON *json_tensor(const Tensor *tensor) {
    cJSON *item = cJSON_CreateObject();
    cJSON_AddStringToObject(item, "name", tensor->arg.name);
    cJSON_AddStringToObject(item, "dtype", ng_dtype_name(tensor->arg.dtype));
    cJSON *shape = cJSON_AddArrayToObject(item, "shape");
    for (int axis = 0; axis < tensor->arg.rank; axis++)
        cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)tensor->extent[axis]));
    return item;
}

static void describe_json(Cli *cli, const Run *run, const char *device) {
    cJSON_AddStringToObject(cli->json, "graph", run->opened.facts.name);
    cJSON_AddStringToObject(cli->json, "device", device);
    cJSON_AddStringToObject(cli->json, "device_name", run->device.name);
    cJSON_AddNumberToObject(cli->json, "arch", run->device.arch);
    cJSON *dims = cJSON_AddArrayToObject(cli->json, "dims");
    for (uint32_t i = 0; i < run->opened.facts.dims; i++) {
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "name", cli_arg(cli, &run->opened, NG_DIM, i).name);
        cJSON_AddNumberToObject(item, "value", (double)run->dims[i]);
        cJSON_AddStringToObject(item, "from", run->dims_from[i]);
        cJSON_AddItemToArray(dims, item);
    }
    cJSON_AddNumberToObject(cli->json, "compile_seconds", run->opened.facts.compile_seconds);
    cJSON_AddBoolToObject(cli->json, "cached", 0);
    cJSON *inputs = cJSON_AddArrayToObject(cli->json, "inputs");
    for (uint32_t i = 0; i < run->opened.facts.inputs; i++) {
        cJSON *item = json_tensor(&run->inputs[i]);
        cJSON_AddStringToObject(item, "from", run->inputs[i].file ? run->inputs[i].file : "random");
        if (run->inputs[i].indices) cJSON_AddNumberToObject(item, "indices", (double)run->inputs[i].indices);
        cJSON_AddItemToArray(inputs, item);
    }
}

void run_describe(Cli *cli, const Run *run) {
    Buf device = {0};
    buf_put(&device, run->device.kind == NG_DEVICE_CUDA ? "cuda" : "host");
    if (run->device.kind == NG_DEVICE_CUDA) buf_format(&device, ":%d", run->device.ordinal);
    if (cli->json) {
        describe_json(cli, run, device.bytes);
        free(device.bytes);
        return;
    }
    bool fell_back = run->device.kind == NG_DEVICE_HOST && !cli_has(cli, OPTION_DEVICE);
    buf_format(&cli->out, "graph    %s\ndevice   %s, %s%s\narch     sm_%d\n", run->opened.facts.name, device.bytes,
               run->device.name, fell_back ? " (no GPU with NVRTC here)" : "", run->device.arch);
    free(device.bytes);
    for (uint32_t i = 0; i < run->opened.facts.dims; i++)
        buf_format(&cli->out, "dim      %s = %" PRId64 " (%s)\n", cli_arg(cli, &run->opened, NG_DIM, i).name,
                   run->dims[i], run->dims_from[i]);
    if (run->opened.facts.kernels) { /* else it was not compiled */
        buf_put(&cli->out, "compile  ");
        put_seconds(&cli->out, run->opened.facts.compile_seconds);
        buf_format(&cli->out, ", %u kernel variant%s, not cached\n", run->opened.facts.kernels,
                   run->opened.facts.kernels == 1 ? "" : "s");
    }
    for (uint32_t i = 0; i < run->opened.facts.inputs; i++) {
        const Tensor *input = &run->inputs[i];
        buf_format(&cli->out, "input    %s ", input->arg.name);
        cli_put_shape(&cli->out, input->arg.dtype, input->arg.rank, input->extent);
        if (input->file)
            buf_format(&cli->out, " from %s\n", input->file);
        else if (input->indices)
            buf_format(&cli->out, " random in 0..%" PRId64 ", seed %" PRIu64 "\n", input->indices - 1, run->seed);
        else
            buf_format(&cli->out, " random, seed %" PRIu64 "\n", run->seed);
    }
}

/* Whole numbers exactly, which doubles are not beyond 2^53; what is no number in JSON as text. */
static cJSON *json_element(ng_dtype dtype, const unsigned char *element) {
    double value = ng_load(dtype, element);
    if (dtype == NG_BOOL) return cJSON_CreateBool(value != 0);
    Buf text = {0};
    cli_put_element(&text, dtype, element);
    cJSON *item = isfinite(value) ? cJSON_CreateRaw(text.bytes) : cJSON_CreateString(text.bytes);
    free(text.bytes);
    return item;
}

/* The first elements of an output, in row-major order. */
static void print_elements(Cli *cli, const Tensor *output, uint64_t count, cJSON *item) {
    unsigned char *owned;
    const unsigned char *dense = cli_tensor_dense(output, &owned);
    size_t bytes = ng_dtype_bytes(output->arg.dtype);
    if (count > output->elements) count = output->elements;
    Buf line = {0};
    cJSON *list = item ? cJSON_AddArrayToObject(item, "first") : NULL;
    for (uint64_t i = 0; i < count; i++) {
        if (list) cJSON_AddItemToArray(list, json_element(output->arg.dtype, dense + i * bytes));
        buf_put(&line, i ? " " : "         ");
        cli_put_element(&line, output->arg.dtype, dense + i * bytes);
    }
    if (!list && count) buf_format(&cli->out, "%s\n", line.bytes);
    free(line.bytes);
    free(owned);
}

typedef struct Range {
    Buf min, max;
} Range;

/* The library's figures are doubles; integers are told exactly. */
static Range find_range(const Tensor *output, const ng_output_report *report) {
    Range range = {0};
    if (output->arg.dtype == NG_I64 && output->elements) {
        unsigned char *owned;
        const unsigned char *dense = cli_tensor_dense(output, &owned);
        int64_t least = INT64_MAX, most = INT64_MIN, value;
        for (uint64_t i = 0; i < output->elements; i++) {
            memcpy(&value, dense + i * sizeof value, sizeof value);
            if (value < least) least = value;
            if (value > most) most = value;
        }
        buf_format(&range.min, "%" PRId64, least);
        buf_format(&range.max, "%" PRId64, most);
        free(owned);
        return range;
    }
    const int digits = output->arg.dtype >= NG_I64 ? 17 : 6;
    buf_format(&range.min, "%.*g", digits, report->min);
    buf_format(&range.max, "%.*g", digits, report->max);
    return range;
}

static void show_output(Cli *cli, const Tensor *output, const ng_output_report *report, uint64_t print,
                        cJSON *outputs) {
    cJSON *item = outputs ? json_tensor(output) : NULL;
    Range range = find_range(output, report);
    if (item) {
        const bool exact = output->arg.dtype == NG_I64 && output->elements;
        Buf hash = {0};
        buf_format(&hash, "%016" PRIx64, report->hash);
        cJSON_AddItemToObject(item, "min", exact ? cJSON_CreateRaw(range.min.bytes) : cJSON_CreateNumber(report->min));
        cJSON_AddItemToObject(item, "max", exact ? cJSON_CreateRaw(range.max.bytes) : cJSON_CreateNumber(report->max));
        cJSON_AddNumberToObject(item, "mean", report->mean);
        cJSON_AddNumberToObject(item, "nan", (double)report->nans);
        cJSON_AddStringToObject(item, "hash", hash.bytes);
        cJSON_AddItemToArray(outputs, item);
        free(hash.bytes);
    } else {
        buf_format(&cli->out, "output   %s ", output->arg.name);
        cli_put_shape(&cli->out, output->arg.dtype, output->arg.rank, output->extent);
        buf_format(&cli->out, " min %s max %s mean %.6g nan %" PRIu64 " hash %016" PRIx64 "\n", range.min.bytes,
                   range.max.bytes, report->mean, report->nans, report->hash);
    }
    free(range.min.bytes);
    free(range.max.bytes);
    if (print) print_elements(cli, output, print, item);
}

/* Nothing failed, and too many may fall on either side of a jump: the check says too little. */
static bool too_uncertain(const ng_output_report *report) {
    return !report->failed && report->uncertain * 1000 > report->checked;
}

static void show_check(Cli *cli, const Tensor *output, const ng_output_report *report, cJSON *list) {
    if (list) {
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "name", output->arg.name);
        cJSON_AddNumberToObject(item, "checked", (double)report->checked);
        cJSON_AddNumberToObject(item, "failed", (double)report->failed);
        cJSON_AddNumberToObject(item, "uncertain", (double)report->uncertain);
        cJSON_AddNumberToObject(item, "not_checked", (double)report->unbounded);
        cJSON_AddNumberToObject(item, "worst", report->worst);
        cJSON_AddNumberToObject(item, "worst_index", (double)report->worst_index);
        cJSON_AddNumberToObject(item, "worst_got", report->worst_got);
        cJSON_AddNumberToObject(item, "worst_expected", report->worst_expected);
        cJSON_AddNumberToObject(item, "worst_bound", report->worst_bound);
        cJSON_AddItemToArray(list, item);
        return;
    }
    buf_format(&cli->out,
               "check    %s: %" PRIu64 " of %" PRIu64 " elements compared, %" PRIu64 " failed, %" PRIu64 " uncertain",
               output->arg.name, report->checked - report->unbounded, report->elements, report->failed,
               report->uncertain);
    if (report->unbounded)
        buf_format(&cli->out, ", %" PRIu64 " not checked, having no finite bound", report->unbounded);
    if (too_uncertain(report) && report->worst_index >= 0)
        buf_format(&cli->out, "; first uncertain at %" PRId64 " (got %.9g, expected %.9g)", report->worst_index,
                   report->worst_got, report->worst_expected);
    else if (report->checked > report->unbounded && report->worst == 0)
        buf_put(&cli->out, "; all exact");
    else if (report->worst_index >= 0)
        buf_format(&cli->out, "; worst %.3g of its bound at %" PRId64 " (got %.9g, expected %.9g)", report->worst,
                   report->worst_index, report->worst_got, report->worst_expected);
    buf_put(&cli->out, "\n");
}

void run_results(Cli *cli, const Run *run, bool checked, bool passed) {
    cJSON *outputs = NULL, *checks = NULL;
    if (cli->json) {
        cJSON_AddNumberToObject(cli->json, "launch_seconds", run->report.seconds);
        outputs = cJSON_AddArrayToObject(cli->json, "outputs");
    } else {
        buf_put(&cli->out, "launch   ");
        put_seconds(&cli->out, run->report.seconds);
        buf_put(&cli->out, "\n");
    }
    for (uint32_t i = 0; i < run->opened.facts.outputs; i++)
        show_output(cli, &run->outputs[i], &run->reports[i], run->print, outputs);
    if (!checked) return;
    if (cli->json) {
        checks = cJSON_AddArrayToObject(cli->json, "check");
        cJSON_AddBoolToObject(cli->json, "check_passed", passed);
        cJSON_AddBoolToObject(cli->json, "check_sampled", run->report.sampled);
        if (run->report.why.count) cJSON_AddStringToObject(cli->json, "check_why", run->report.why.bytes);
    }
    bool failed = false, doubtful = false;
    uint64_t compared = 0, unbounded = 0;
    for (uint32_t i = 0; i < run->opened.facts.outputs; i++) {
        show_check(cli, &run->outputs[i], &run->reports[i], checks);
        failed |= run->reports[i].failed > 0;
        doubtful |= too_uncertain(&run->reports[i]);
        compared += run->reports[i].checked - run->reports[i].unbounded;
        unbounded += run->reports[i].unbounded;
    }
    if (!cli->json)
        buf_format(&cli->out, "check    %s%s%s\n", passed ? "passed" : "FAILED",
                   passed && unbounded && !compared ? ", but NOTHING WAS COMPARED: no element has a finite bound"
                   : passed && unbounded            ? ", but not for what has no finite bound"
                   : !passed && doubtful && !failed ? ": too many uncertain elements"
                                                    : "",
                   run->report.sampled ? " (of large outputs 256 rows or 16 columns were evaluated)" : "");
}

/* PyTorch's assert_close defaults; for fp8, which it has none for, one unit in the last place. */
static void default_tolerance(ng_dtype dtype, double *rtol, double *atol) {
    *rtol = dtype == NG_F64      ? 1e-7
            : dtype == NG_F32    ? 1.3e-6
            : dtype == NG_F16    ? 1e-3
            : dtype == NG_BF16   ? 1.6e-2
            : dtype == NG_F8E4M3 ? 0.125
            : dtype == NG_F8E5M2 ? 0.25
                                 : 0;
    *atol = dtype == NG_F64 ? 1e-7 : dtype < NG_I64 ? 1e-5 : 0;
}

#define FIRST_SHOWN 3 /* failed elements */

typedef struct Differences {
    uint64_t failed, first[FIRST_SHOWN]; /* row-major */
    double worst;                        /* the largest difference */
    uint64_t worst_index;
} Differences;

/* Elements of one output outside the tolerance. */
static Differences compare(const Tensor *output, const StFile *file, const StTensor *from, double rtol, double atol) {
    unsigned char *owned;
    const unsigned char *dense = cli_tensor_dense(output, &owned), *expected = file->data + from->start;
    size_t bytes = ng_dtype_bytes(output->arg.dtype), expected_bytes = ng_dtype_bytes(from->dtype);
    const bool whole = output->arg.dtype == NG_I64 && from->dtype == NG_I64;
    Differences found = {0};
    for (uint64_t i = 0; i < output->elements; i++) {
        double a = ng_load(output->arg.dtype, dense + i * bytes),
               b = ng_load(from->dtype, expected + i * expected_bytes);
        double difference = fabs(a - b);
        if (whole) { /* beyond 2^53 doubles would call neighbours equal */
            int64_t x, y;
            memcpy(&x, dense + i * bytes, sizeof x);
            memcpy(&y, expected + i * expected_bytes, sizeof y);
            if (x == y) continue;
            difference = (double)(x > y ? (uint64_t)x - (uint64_t)y : (uint64_t)y - (uint64_t)x);
        } else if (a == b || (isnan(a) && isnan(b))) {
            continue;
        }
        if (!(difference <= atol + rtol * fabs(b))) {
            if (found.failed < FIRST_SHOWN) found.first[found.failed] = i;
            found.failed++;
        }
        if (difference <= found.worst || isnan(found.worst)) continue; /* a NaN on one side is the worst that can be */
        found.worst = difference;
        found.worst_index = i;
    }
    free(owned);
    return found;
}

static void put_index(Buf *buf, const Tensor *output, uint64_t element) {
    int64_t index[CLI_MAX_RANK];
    for (int axis = output->arg.rank; axis-- > 0; element /= (uint64_t)output->extent[axis])
        index[axis] = (int64_t)(element % (uint64_t)output->extent[axis]);
    buf_format(buf, "%s[", output->arg.name);
    for (int axis = 0; axis < output->arg.rank; axis++) buf_format(buf, "%s%" PRId64, axis ? ", " : "", index[axis]);
    buf_put(buf, "]");
}

/* The worst element, and the first that failed. */
static void show_differences(Buf *buf, const Tensor *output, const StFile *file, const StTensor *from,
                             const Differences *found) {
    unsigned char *owned;
    const unsigned char *dense = cli_tensor_dense(output, &owned), *expected = file->data + from->start;
    const uint64_t shown = found->failed < FIRST_SHOWN ? found->failed : FIRST_SHOWN;
    for (uint64_t k = 0; found->failed && k <= shown; k++) {
        const uint64_t element = k ? found->first[k - 1] : found->worst_index;
        buf_put(buf, k == 0 ? "  worst  " : k == 1 ? "  first  " : "         ");
        put_index(buf, output, element);
        buf_put(buf, ": got ");
        cli_put_element(buf, output->arg.dtype, dense + element * ng_dtype_bytes(output->arg.dtype));
        buf_put(buf, ", expected ");
        cli_put_element(buf, from->dtype, expected + element * ng_dtype_bytes(from->dtype));
        buf_put(buf, "\n");
    }
    free(owned);
}

/* Both shapes, or the dtype that is none of normgen's. */
static void require_same_shape(Cli *cli, const char *path, const Tensor *output, const StTensor *from) {
    bool same = from->rank == output->arg.rank;
    for (int axis = 0; axis < from->rank && same; axis++) same = from->shape[axis] == output->extent[axis];
    if (same && from->readable) return;
    if (!from->readable)
        cli_fail(cli, NG_USAGE, "%s: tensor %s is of dtype %s, which is none of normgen's", path, output->arg.name,
                 from->dtype_name);
    Buf wanted = {0}, found = {0};
    cli_put_shape(&wanted, output->arg.dtype, output->arg.rank, output->extent);
    cli_put_shape(&found, from->dtype, from->rank, from->shape);
    cli_fail(cli, NG_USAGE, "output %s is %s, the tensor in %s is %s: another shape", output->arg.name, wanted.bytes,
             path, found.bytes);
}

static void show_expect(Cli *cli, const Tensor *output, const StFile *file, const StTensor *from, double rtol,
                        double atol, const Differences *found) {
    const char *how[2];
    for (int i = 0; i < 2; i++) how[i] = cli_has(cli, i ? OPTION_RTOL : OPTION_ATOL) ? "" : ", the default";
    buf_format(&cli->out,
               "expect   %s: %" PRIu64 " of %" PRIu64
               " elements differ by more than %g (atol%s) + %g (rtol%s) * |expected|; largest difference %.6g\n",
               output->arg.name, found->failed, output->elements, atol, how[0], rtol, how[1], found->worst);
    show_differences(&cli->out, output, file, from, found);
}

bool run_expect(Cli *cli, Run *run, const char *path) {
    const StFile *file = run_file(cli, run, path);
    cJSON *list = cli->json ? cJSON_AddArrayToObject(cli->json, "expect") : NULL;
    bool passed = true;
    uint32_t met = 0;
    for (uint32_t i = 0; i < run->opened.facts.outputs; i++) {
        const Tensor *output = &run->outputs[i];
        const StTensor *from = st_find(file, output->arg.name);
        double rtol, atol;
        if (!from) {
            cli_note(cli, "note: %s has no tensor %s", path, output->arg.name);
            continue;
        }
        require_same_shape(cli, path, output, from);
        default_tolerance(output->arg.dtype, &rtol, &atol);
        rtol = cli_number(cli, OPTION_RTOL, rtol);
        atol = cli_number(cli, OPTION_ATOL, atol);
        const Differences found = compare(output, file, from, rtol, atol);
        passed &= found.failed == 0;
        met++;
        if (!list) {
            show_expect(cli, output, file, from, rtol, atol, &found);
            continue;
        }
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "name", output->arg.name);
        cJSON_AddNumberToObject(item, "failed", (double)found.failed);
        cJSON_AddNumberToObject(item, "largest_difference", found.worst);
        cJSON_AddNumberToObject(item, "worst_index", (double)found.worst_index);
        cJSON_AddNumberToObject(item, "rtol", rtol);
        cJSON_AddNumberToObject(item, "atol", atol);
        cJSON_AddItemToArray(list, item);
    }
    if (!met) cli_fail(cli, NG_USAGE, "--expect: %s holds no output of this graph", path);
    if (!list) buf_format(&cli->out, "expect   %s\n", passed ? "passed" : "FAILED");
    return passed;
}
