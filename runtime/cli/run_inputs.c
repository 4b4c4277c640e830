/* Everything that a launch needs. In: options and a compiled program. Out: dims with where each came from, scalars,
 * inputs from files or at random, outputs filled with NaN. */
#include "runtime/cli/run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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
    cli_fail(cli, NG_USAGE, "%s: the graph has no %s %s", cli_options[option].spelling, what, name);
}

#define MOST_LISTED 12 /* names of one side in a message */

static void put_name(Buf *buf, size_t index, const char *name) {
    if (index <= MOST_LISTED) buf_format(buf, "%s%s", index ? ", " : "", index < MOST_LISTED ? name : "...");
}

static void put_quoted(Buf *buf, size_t index, const char *name) { /* a file's names may be anything */
    char *quoted = st_quoted(name);
    put_name(buf, index, quoted ? quoted : "");
    free(quoted);
}

/* Pairs of an input that no tensor is for and the tensor whose name is near its own. */
static void put_near(Cli *cli, Buf *buf, const Run *run, const StFile *file) {
    const char **names = cli_alloc(file->count, sizeof *names);
    size_t left = 0, told = 0;
    for (size_t t = 0; t < file->count; t++) {
        bool used = false;
        for (uint32_t k = 0; k < run->opened.facts.inputs; k++) used = used || run->inputs[k].from == &file->tensors[t];
        if (!used) names[left++] = file->tensors[t].name;
    }
    for (uint32_t k = 0; k < run->opened.facts.inputs; k++) {
        const char *name = cli_arg(cli, &run->opened, NG_INPUT, k).name;
        const char *near = run->inputs[k].from ? NULL : cli_near_miss(name, names, left);
        if (!near || told >= MOST_LISTED) continue;
        char *quoted = st_quoted(near);
        buf_format(buf, "%s%s for input %s", told++ ? ", " : "; did you mean ", quoted ? quoted : "", name);
        free(quoted);
    }
    if (told) buf_put(buf, "?");
    free(names);
}

/* Of --inputs: a file none of whose tensors is an input is no file for this graph; others that are not used are told.
 */
static void tell_unused(Cli *cli, const Run *run, const char *path, const StFile *file, uint32_t met) {
    Buf unused = {0}, inputs = {0}, near = {0};
    size_t count = 0;
    for (size_t t = 0; t < file->count; t++) {
        bool used = false;
        for (uint32_t k = 0; k < run->opened.facts.inputs; k++) used = used || run->inputs[k].from == &file->tensors[t];
        if (!used) put_quoted(&unused, count++, file->tensors[t].name);
    }
    for (uint32_t k = 0; k < run->opened.facts.inputs; k++)
        put_name(&inputs, k, cli_arg(cli, &run->opened, NG_INPUT, k).name);
    put_near(cli, &near, run, file);
    if (!met && run->opened.facts.inputs)
        cli_fail(cli, NG_USAGE,
                 "--inputs: no tensor of %s has the name of an input; the file has %s; the inputs are %s%s (--input "
                 "NAME=FILE:TENSOR takes a tensor of another name)",
                 path, unused.count ? unused.bytes : "none", inputs.bytes, near.count ? near.bytes : "");
    if (count) cli_note(cli, "note: %s: no input takes %s%s", path, unused.bytes, near.count ? near.bytes : "");
    free(unused.bytes);
    free(inputs.bytes);
    free(near.bytes);
}

static uint32_t take_by_name(Cli *cli, Run *run, const char *path, const StFile *file) {
    uint32_t met = 0;
    for (uint32_t k = 0; k < run->opened.facts.inputs; k++) {
        const StTensor *from = st_find(file, cli_arg(cli, &run->opened, NG_INPUT, k).name);
        if (!from) continue;
        run->inputs[k].file = path, run->inputs[k].source = file, run->inputs[k].from = from;
        met++;
    }
    return met;
}

/* --inputs for whatever input the file names, then --input over it. */
static void find_sources(Cli *cli, Run *run) {
    for (size_t i = 0; i < cli->use_count; i++) {
        if (cli->uses[i].id != OPTION_INPUTS) continue;
        const char *path = cli->uses[i].value;
        const StFile *file = run_file(cli, run, path);
        tell_unused(cli, run, path, file, take_by_name(cli, run, path, file));
    }
    size_t count;
    ng_setting *given = cli_settings(cli, OPTION_INPUT, &count);
    for (size_t i = 0; i < count; i++) {
        uint32_t k = find_arg(cli, run, OPTION_INPUT, NG_INPUT, given[i].name);
        const char *colon = strrchr(given[i].value, ':');
        char *path = colon ? strndup(given[i].value, (size_t)(colon - given[i].value)) : cli_copy(given[i].value);
        const char *name = colon ? colon + 1 : given[i].name;
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

static void find_dims(Cli *cli, Run *run) {
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
        int64_t otherwise = arg.max >= 0 && arg.max < DEFAULT_DIM ? arg.max : DEFAULT_DIM;
        otherwise -= otherwise % arg.multiple; /* what the graph allows, as near as there is from below */
        run->dims[i] = arg.hint >= 0 ? arg.hint : otherwise;
        run->dims_from[i] = arg.hint >= 0 ? "hint" : "default";
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

void run_prepare(Cli *cli, Run *run) {
    const ng_program_facts *facts = &run->opened.facts;
    run->seed = (uint64_t)cli_int(cli, OPTION_SEED, 0, INT64_MAX, 0);
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
    for (uint32_t i = 0; i < facts->inputs; i++) {
        cli_tensor_make(cli, &run->opened, NG_INPUT, i, run->dims, misalign, &run->inputs[i]);
        if (run->inputs[i].from)
            cli_tensor_copy_in(cli, &run->inputs[i]);
        else
            cli_tensor_random(&run->inputs[i], run->seed);
    }
    for (uint32_t i = 0; i < facts->outputs; i++) {
        cli_tensor_make(cli, &run->opened, NG_OUTPUT, i, run->dims, misalign, &run->outputs[i]);
        place_output(cli, run, i);
    }
}
