/* Everything that a launch needs. In: options and a compiled program. Out: dims with where each came from, scalars,
 * inputs from files or at random, outputs filled with NaN. */
#include "runtime/cli/run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DEFAULT_DIM 1024

StFile *run_file(Cli *cli, Run *run, const char *path) {
    for (size_t i = 0; i < run->file_count; i++) {
        if (!strcmp(run->file_names[i], path)) return &run->files[i];
    }
    StFile file;
    char *why = NULL;
    if (!st_open(path, &file, &why)) cli_fail(cli, NG_SYSTEM, "%s: %s", path, why ? why : "out of memory");
    /* every path comes from the command line, so the array made for all of them holds */
    run->file_names[run->file_count] = cli_copy(path);
    run->files[run->file_count] = file;
    return &run->files[run->file_count++];
}

#define MOST_LISTED 12 /* names of one side in a message */

static void put_name(Buf *buf, size_t index, const char *name) {
    if (index <= MOST_LISTED) buf_format(buf, "%s%s", index ? ", " : "", index < MOST_LISTED ? name : "...");
}

/* An argument of one role by its name, or exit 2 with a near miss. */
static uint32_t find_arg(Cli *cli, const Run *run, OptionId option, ng_arg_role wanted, const char *name) {
    ng_arg_role role;
    uint32_t index, count = wanted == NG_INPUT ? run->opened.facts.inputs : run->opened.facts.scalars;
    const char *what = wanted == NG_INPUT ? "input" : "scalar";
    if (ng_arg_find(run->opened.program, name, &role, &index) == NG_OK && role == wanted) return index;
    const char **names = cli_alloc(count, sizeof *names);
    for (uint32_t i = 0; i < count; i++) names[i] = cli_arg(cli, &run->opened, wanted, i).name;
    const char *near = cli_near_miss(name, names, count);
    if (near)
        cli_fail(cli, NG_USAGE, "%s: the graph has no %s %s; did you mean %s?", cli_options[option].spelling, what,
                 name, near);
    Buf list = {0};
    for (uint32_t i = 0; i < count; i++) put_name(&list, i, names[i]);
    cli_fail(cli, NG_USAGE, "%s: the graph has no %s %s; it has %s", cli_options[option].spelling, what, name,
             count ? list.bytes : "none");
}

static void put_quoted(Buf *buf, size_t index, const char *name) { /* a file's names may be anything */
    char *quoted = st_quoted(name);
    put_name(buf, index, quoted ? quoted : "");
    free(quoted);
}

/* A name that differs in letters' case alone is near, however short. */
static const char *near_name(const char *word, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!strcasecmp(word, names[i])) return names[i];
    return cli_near_miss(word, names, count);
}

/* Into names: of the tensors that no input takes. */
static size_t unused_names(const Run *run, const StFile *file, const char **names) {
    size_t left = 0;
    for (size_t t = 0; t < file->count; t++) {
        bool used = false;
        for (uint32_t k = 0; k < run->opened.facts.inputs; k++) used = used || run->inputs[k].from == &file->tensors[t];
        if (!used) names[left++] = file->tensors[t].name;
    }
    return left;
}

/* Pairs of an input that no tensor is for and the tensor whose name is near its own. */
static void put_near(Cli *cli, Buf *buf, const Run *run, const StFile *file) {
    const char **names = cli_alloc(file->count, sizeof *names);
    size_t told = 0, left = unused_names(run, file, names);
    for (uint32_t k = 0; k < run->opened.facts.inputs; k++) {
        const char *name = cli_arg(cli, &run->opened, NG_INPUT, k).name;
        const char *near = run->inputs[k].from ? NULL : near_name(name, names, left);
        if (!near || told >= MOST_LISTED) continue;
        char *quoted = st_quoted(near);
        buf_format(buf, "%s%s for input %s", told++ ? ", " : "; did you mean ", quoted ? quoted : "", name);
        free(quoted);
    }
    if (told) buf_put(buf, "?");
    free(names);
}

static uint32_t count_met(Cli *cli, const Run *run, const StFile *file) {
    uint32_t met = 0;
    for (uint32_t k = 0; k < run->opened.facts.inputs; k++)
        met += st_find(file, cli_arg(cli, &run->opened, NG_INPUT, k).name) ? 1 : 0;
    return met;
}

/* Whether some option gives an input: then another may be of what this graph does not read, as what a forward graph
 * stores is where the backward one reads inputs alone. */
static bool gives_any(Cli *cli, Run *run) {
    bool any = cli_has(cli, OPTION_INPUT);
    for (size_t i = 0; i < cli->use_count && !any; i++)
        any = cli->uses[i].id == OPTION_INPUTS && count_met(cli, run, run_file(cli, run, cli->uses[i].value)) > 0;
    return any;
}

/* Of --inputs: where none of its tensors is an input, and nothing else gives one, it is no file for this graph; others
 * that are not used are told. */
static void tell_unused(Cli *cli, const Run *run, const char *path, const StFile *file, bool fits) {
    Buf unused = {0}, inputs = {0}, near = {0};
    const char **names = cli_alloc(file->count, sizeof *names);
    const size_t count = unused_names(run, file, names);
    for (size_t t = 0; t < count; t++) put_quoted(&unused, t, names[t]);
    free(names);
    for (uint32_t k = 0; k < run->opened.facts.inputs; k++)
        put_name(&inputs, k, cli_arg(cli, &run->opened, NG_INPUT, k).name);
    put_near(cli, &near, run, file);
    if (!fits && run->opened.facts.inputs)
        cli_fail(cli, NG_USAGE,
                 "--inputs: no tensor of %s has the name of an input; the file has %s; the inputs are %s%s (--input "
                 "NAME=FILE:TENSOR takes a tensor of another name)",
                 path, unused.count ? unused.bytes : "none", inputs.bytes, near.count ? near.bytes : "");
    if (count) cli_note(cli, "note: %s: no input takes %s", path, unused.bytes);
    free(unused.bytes);
    free(inputs.bytes);
    free(near.bytes);
}

static void take_by_name(Cli *cli, Run *run, const char *path, const StFile *file) {
    for (uint32_t k = 0; k < run->opened.facts.inputs; k++) {
        const StTensor *from = st_find(file, cli_arg(cli, &run->opened, NG_INPUT, k).name);
        if (!from) continue;
        run->inputs[k].file = path, run->inputs[k].source = file, run->inputs[k].from = from;
    }
}

/* Of --inputs: an input that no file gives is random, as without files, but hardly meant to be. */
static void tell_random(Cli *cli, Run *run) {
    const char *path = cli_value(cli, OPTION_INPUTS);
    uint32_t random = 0;
    if (!path) return;
    const StFile *file = run_file(cli, run, path);
    const char **names = cli_alloc(file->count, sizeof *names);
    size_t left = unused_names(run, file, names);
    for (uint32_t k = 0; k < run->opened.facts.inputs; k++) {
        if (run->inputs[k].from) continue;
        const char *name = cli_arg(cli, &run->opened, NG_INPUT, k).name;
        const char *near = near_name(name, names, left);
        char *quoted = near ? st_quoted(near) : NULL;
        cli_note(cli, "warning: %s is random: %s has no %s%s%s%s", name, path, name,
                 quoted ? "; did you mean its " : "", quoted ? quoted : "", quoted ? "?" : "");
        free(quoted);
        random++;
    }
    free(names);
    if (random && cli_has(cli, OPTION_WERROR))
        cli_fail(cli, NG_USAGE, "-Werror: %u input%s of --inputs %s random", random, random == 1 ? "" : "s",
                 random == 1 ? "is" : "are");
}

/* --inputs for whatever input the file names, then --input over it. */
static void find_sources(Cli *cli, Run *run) {
    const bool fits = gives_any(cli, run);
    for (size_t i = 0; i < cli->use_count; i++) {
        if (cli->uses[i].id != OPTION_INPUTS) continue;
        const char *path = cli->uses[i].value;
        const StFile *file = run_file(cli, run, path);
        take_by_name(cli, run, path, file);
        tell_unused(cli, run, path, file, fits);
    }
    size_t count;
    ng_setting *given = cli_settings(cli, OPTION_INPUT, &count);
    for (size_t i = 0; i < count; i++) {
        uint32_t k = find_arg(cli, run, OPTION_INPUT, NG_INPUT, given[i].name);
        const char *tensor;
        char *path = cli_file_of(given[i].value, &tensor);
        const char *name = tensor ? tensor : given[i].name;
        const StFile *file = run_file(cli, run, path);
        const StTensor *from = st_find(file, name);
        if (!from) {
            const char **names = cli_alloc(file->count, sizeof *names);
            for (size_t t = 0; t < file->count; t++) names[t] = file->tensors[t].name;
            const char *near = cli_near_miss(name, names, file->count);
            char *quoted = near ? st_quoted(near) : NULL;
            cli_fail(cli, NG_USAGE, "%s: no tensor %s%s%s", path, name, near ? "; did you mean " : "",
                     near ? quoted : "");
        }
        run->inputs[k].file = run->file_names[file - run->files];
        run->inputs[k].source = file;
        run->inputs[k].from = from;
        free(path);
        free((char *)(uintptr_t)given[i].name);
    }
    free(given);
    tell_random(cli, run);
}

static void dims_from_tensors(Cli *cli, Run *run) {
    for (uint32_t k = 0; k < run->opened.facts.inputs; k++) {
        const StTensor *from = run->inputs[k].from;
        ng_arg arg = cli_arg(cli, &run->opened, NG_INPUT, k);
        if (from && from->rank != arg.rank)
            cli_fail(cli, NG_USAGE, "input %s has %d dim%s, the tensor %s in %s has %d", arg.name, arg.rank,
                     arg.rank == 1 ? "" : "s", from->name, run->inputs[k].file, from->rank);
        for (int axis = 0; from && axis < arg.rank; axis++) {
            int32_t dim = arg.extent_dim[axis];
            if (dim < 0 || (run->dims_from[dim] && strcmp(run->dims_from[dim], "tensors") != 0)) continue;
            if (run->dims_from[dim] && run->dims[dim] != from->shape[axis])
                cli_fail(cli, NG_USAGE, "%s is %" PRId64 " by one tensor and %" PRId64 " by input %s of %s",
                         cli_arg(cli, &run->opened, NG_DIM, (uint32_t)dim).name, run->dims[dim], from->shape[axis],
                         arg.name, run->inputs[k].file);
            run->dims[dim] = from->shape[axis];
            run->dims_from[dim] = "tensors";
        }
    }
}

/* As near to it as the graph allows, from below where there is one. */
static int64_t allowed(const ng_arg *dim, int64_t extent) {
    if (dim->max >= 0 && extent > dim->max) extent = dim->max;
    if (extent > 0 && extent < dim->multiple && (dim->max < 0 || dim->multiple <= dim->max)) extent = dim->multiple;
    return extent - extent % dim->multiple;
}

static void find_dims(Cli *cli, Run *run) {
    const int64_t usual = run->default_dim ? run->default_dim : DEFAULT_DIM;
    uint32_t count = run->opened.facts.dims;
    size_t given_count;
    ng_setting *given = cli_settings(cli, OPTION_DEFINE, &given_count);
    for (uint32_t i = 0; i < count; i++) {
        const char *name = cli_arg(cli, &run->opened, NG_DIM, i).name;
        for (size_t k = 0; k < given_count; k++) {
            if (strcmp(given[k].name, name) != 0) continue;
            if (!cli_read_int(given[k].value, &run->dims[i]) || run->dims[i] < 0)
                cli_fail(cli, NG_USAGE, "-D %s=%s: expected an integer, 0 or more", name, given[k].value);
            run->dims_from[i] = "-D";
        }
    }
    dims_from_tensors(cli, run);
    for (uint32_t i = 0; i < count; i++) {
        ng_arg arg = cli_arg(cli, &run->opened, NG_DIM, i);
        if (run->dims_from[i]) continue;
        const bool hinted = arg.hint >= 0 && !(run->default_dim && arg.hint > run->default_dim);
        run->dims[i] = allowed(&arg, hinted ? arg.hint : usual);
        run->dims_from[i] = hinted ? "hint" : "default";
    }
    for (size_t k = 0; k < given_count; k++) free((char *)(uintptr_t)given[k].name);
    free(given);
}

static void find_scalars(Cli *cli, Run *run) {
    size_t given_count;
    ng_setting *given = cli_settings(cli, OPTION_SCALAR, &given_count);
    bool *set = cli_alloc(run->opened.facts.scalars, sizeof *set);
    for (size_t k = 0; k < given_count; k++) {
        uint32_t i = find_arg(cli, run, OPTION_SCALAR, NG_SCALAR, given[k].name);
        ng_dtype dtype = cli_arg(cli, &run->opened, NG_SCALAR, i).dtype;
        double number = 0;
        bool fine = dtype >= NG_I64 ? cli_read_int(given[k].value, &run->scalars[i].i64)
                                    : cli_read_number(given[k].value, &number);
        if (!fine)
            cli_fail(cli, NG_USAGE, "--scalar %s=%s: expected a number of dtype %s", given[k].name, given[k].value,
                     ng_dtype_name(dtype));
        if (dtype == NG_F64)
            run->scalars[i].f64 = number;
        else if (dtype < NG_I64)
            run->scalars[i].f32 = (float)number;
        set[i] = true;
        free((char *)(uintptr_t)given[k].name);
    }
    for (uint32_t i = 0; i < run->opened.facts.scalars; i++) {
        ng_arg arg = cli_arg(cli, &run->opened, NG_SCALAR, i);
        if (set[i]) continue;
        if (!arg.has_default)
            cli_fail(cli, NG_USAGE, "scalar %s has no default; give --scalar %s=VALUE", arg.name, arg.name);
        run->scalars[i] = arg.value;
    }
    free(set);
    free(given);
}

/* Indices reach all of what they index, and nothing else. Where there is nothing, the launch says so. */
static void draw_input(Cli *cli, Run *run, uint32_t index) {
    Tensor *input = &run->inputs[index];
    int64_t count;
    const ng_status status = ng_arg_indices(run->opened.program, index, run->dims, &count);
    if (status == NG_SYSTEM) cli_fail(cli, NG_SYSTEM, "%s: out of memory", input->arg.name);
    if (status == NG_OK) input->indices = count;
    cli_tensor_random(input, run->seed);
}

/* In place where the file allows it: the output's memory is its input's, from the slice's first element on. */
static void place_output(Cli *cli, Run *run, uint32_t index) {
    Tensor *output = &run->outputs[index];
    int64_t offset;
    if (output->arg.accumulate) cli_tensor_random(output, run->seed); /* it is read as well */
    if (output->arg.inplace < 0 || cli_has(cli, OPTION_SEPARATE)) return;
    if (ng_arg_slice(run->opened.program, index, run->dims, &offset) != NG_OK) return;
    const Tensor *input = &run->inputs[output->arg.inplace];
    free(output->memory);
    output->memory = NULL;
    output->first = input->first + offset * (int64_t)ng_dtype_bytes(output->arg.dtype);
}

#define MANY_ELEMENTS 0x1p26 /* that the host device takes seconds for */

/* "; B, H took their default 1024: give -D", or nothing: what to do about a run that is larger than meant. */
static void put_defaults(Cli *cli, const Run *run, Buf *buf) {
    uint32_t told = 0;
    int64_t value = -1;
    bool same = true;
    Buf each = {0}, names = {0};
    for (uint32_t i = 0; i < run->opened.facts.dims; i++) {
        if (strcmp(run->dims_from[i], "default") != 0) continue;
        const char *name = cli_arg(cli, &run->opened, NG_DIM, i).name;
        same = same && (value < 0 || value == run->dims[i]);
        value = run->dims[i];
        buf_format(&names, "%s%s", told ? ", " : "", name);
        buf_format(&each, "%s%s = %" PRId64, told++ ? ", " : "", name, value);
    }
    if (told && same)
        buf_format(buf, "; %s took %s default %" PRId64 ": give -D", names.bytes, told > 1 ? "their" : "its", value);
    else if (told)
        buf_format(buf, "; defaults are %s: give -D", each.bytes);
    free(each.bytes);
    free(names.bytes);
}

/* Before any memory is taken. */
static void tell_size(Cli *cli, const Run *run, const char *advice) {
    double elements = 0;
    for (uint32_t i = 0; i < run->opened.facts.inputs + run->opened.facts.outputs; i++) {
        const bool input = i < run->opened.facts.inputs;
        const uint32_t index = input ? i : i - run->opened.facts.inputs;
        int64_t extent[CLI_MAX_RANK], stride[CLI_MAX_RANK];
        const ng_arg_role role = input ? NG_INPUT : NG_OUTPUT;
        if (ng_arg_shape(run->opened.program, role, index, run->dims, extent, stride) != NG_OK) return;
        double product = 1;
        for (int axis = 0; axis < cli_arg(cli, &run->opened, role, index).rank; axis++) product *= (double)extent[axis];
        elements += product;
    }
    if (run->device.kind == NG_DEVICE_HOST && elements > MANY_ELEMENTS)
        cli_note(cli, "note: %.0f million elements on the host device take a while%s", elements / 1e6, advice);
}

void run_prepare(Cli *cli, Run *run) {
    const ng_program_facts *facts = &run->opened.facts;
    run->seed = (uint64_t)cli_int(cli, OPTION_SEED, 0, INT64_MAX, 0);
    run->print = (uint64_t)cli_int(cli, OPTION_PRINT, 0, INT64_MAX, 0);
    int64_t misalign = cli_int(cli, OPTION_MISALIGN, 0, 1 << 20, 0);
    run->dims = cli_alloc(facts->dims, sizeof *run->dims);
    run->dims_from = cli_alloc(facts->dims, sizeof *run->dims_from);
    run->scalars = cli_alloc(facts->scalars, sizeof *run->scalars);
    run->inputs = cli_alloc(facts->inputs, sizeof *run->inputs);
    run->outputs = cli_alloc(facts->outputs, sizeof *run->outputs);
    run->files = cli_alloc(cli->use_count, sizeof *run->files);
    run->file_names = cli_alloc(cli->use_count, sizeof *run->file_names);
    find_sources(cli, run);
    find_dims(cli, run);
    find_scalars(cli, run);
    Buf advice = {0};
    buf_put(&advice, "");
    put_defaults(cli, run, &advice);
    tell_size(cli, run, advice.bytes);
    for (uint32_t i = 0; i < facts->inputs; i++) {
        cli_tensor_make(cli, &run->opened, NG_INPUT, i, run->dims, misalign, advice.bytes, &run->inputs[i]);
        if (run->inputs[i].from)
            cli_tensor_copy_in(cli, &run->inputs[i]);
        else
            draw_input(cli, run, i);
    }
    for (uint32_t i = 0; i < facts->outputs; i++) {
        cli_tensor_make(cli, &run->opened, NG_OUTPUT, i, run->dims, misalign, advice.bytes, &run->outputs[i]);
        place_output(cli, run, i);
    }
    free(advice.bytes);
}
