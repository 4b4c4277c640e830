/* bench: how fast a graph is, beside a copy of as many bytes and beside the same graph with other knobs. In: options.
 * Out: a table, or the same as JSON. The measuring is ng_bench's; what is settled here is which programs take part. */
#include "runtime/cli/run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct Entry { /* a program of the run; the first is the graph as it was given */
    char *label, *knob, *value;
    bool is_default; /* of a sweep: the value that the graph has as it was given */
    ng_program *program;
    char *why; /* why there is none */
    ng_measured time;
} Entry;

typedef struct Bench {
    Run run;
    Entry *entries;
    size_t count;
    bool sweep;
    ng_bench_report report;
} Bench;

static Entry *add_entry(Bench *bench, const char *knob, size_t knob_length, const char *value, size_t value_length) {
    bench->entries = cli_grow(bench->entries, bench->count + 1, sizeof *bench->entries);
    Entry *entry = &bench->entries[bench->count++];
    Buf label = {0};
    *entry = (Entry){.knob = strndup(knob, knob_length), .value = strndup(value, value_length)};
    buf_format(&label, "%.*s=%.*s", (int)knob_length, knob, (int)value_length, value);
    entry->label = label.bytes;
    return entry;
}

/* ---- what is compared ---- */

static void add_compared(Cli *cli, Bench *bench) {
    for (size_t i = 0; i < cli->use_count; i++) {
        if (cli->uses[i].id != OPTION_COMPARE) continue;
        const char *text = cli->uses[i].value, *equals = strchr(text, '=');
        if (!strcmp(text, "unfused")) text = "fuse=off", equals = text + strlen("fuse");
        if (!equals || equals == text || !equals[1])
            cli_fail(cli, NG_USAGE, "--compare=%s: expected unfused or [KERNEL.]KNOB=V", text);
        add_entry(bench, text, (size_t)(equals - text), equals + 1, strlen(equals + 1));
    }
}

typedef struct Values { /* that a knob may have */
    char **at;
    size_t count;
    char *now; /* what it is; NULL: not the same in all kernels */
    bool found, positive;
} Values;

static char *word_of(const cJSON *item) {
    return cJSON_IsString(item) ? cli_copy(item->valuestring) : cJSON_PrintUnformatted(item);
}

static bool is_greater(const char *a, const char *b) {
    int64_t x, y;
    return cli_read_int(a, &x) && cli_read_int(b, &y) && x > y;
}

/* Numbers in order, each once: kernels differ in what they may have. */
static void add_value(Values *values, char *word) {
    size_t at = 0;
    for (; at < values->count && strcmp(values->at[at], word) != 0; at++)
        if (is_greater(values->at[at], word)) break;
    if (at < values->count && !strcmp(values->at[at], word)) {
        free(word);
        return;
    }
    values->at = cli_grow(values->at, values->count + 1, sizeof *values->at);
    memmove(values->at + at + 1, values->at + at, (values->count++ - at) * sizeof *values->at);
    values->at[at] = word;
}

static void read_knob(const cJSON *row, Values *values) {
    const cJSON *may;
    char *now = word_of(cJSON_GetObjectItem(row, "value"));
    cJSON_ArrayForEach(may, cJSON_GetObjectItem(row, "may_be")) {
        char *word = word_of(may);
        if (!strcmp(word, "positive")) {
            values->positive = true;
            free(word);
        } else {
            add_value(values, word);
        }
    }
    const bool same = !values->found || (values->now && !strcmp(values->now, now));
    free(values->now);
    values->now = same ? now : NULL;
    if (!same) free(now);
    values->found = true;
}

static void read_knobs(const cJSON *rows, const char *knob, Values *values) {
    const cJSON *row;
    cJSON_ArrayForEach(row, rows) {
        const cJSON *name = cJSON_GetObjectItem(row, "knob");
        if (cJSON_IsString(name) && !strcmp(name->valuestring, knob)) read_knob(row, values);
    }
}

/* What `normgen knobs` says of [KERNEL.]KNOB. */
static Values find_values(Cli *cli, const Bench *bench, const char *knob) {
    Values values = {0};
    const char *dot = strchr(knob, '.');
    ng_text text = cli_text(cli, &bench->run.opened, NG_TEXT_KNOBS_JSON, NULL);
    cJSON *facts = cJSON_Parse(text.bytes);
    const cJSON *kernel;
    if (!facts) cli_fail(cli, NG_INTERNAL, "the knobs are no JSON");
    if (!dot) read_knobs(cJSON_GetObjectItem(facts, "graph_knobs"), knob, &values);
    cJSON_ArrayForEach(kernel, cJSON_GetObjectItem(facts, "kernels")) {
        const cJSON *name = cJSON_GetObjectItem(kernel, "name");
        const bool wanted = !dot || (cJSON_IsString(name) && strlen(name->valuestring) == (size_t)(dot - knob) &&
                                     !strncmp(name->valuestring, knob, (size_t)(dot - knob)));
        if (wanted) read_knobs(cJSON_GetObjectItem(kernel, "knobs"), dot ? dot + 1 : knob, &values);
    }
    cJSON_Delete(facts);
    ng_text_free(&text);
    return values;
}

static void free_values(Values *values) {
    for (size_t i = 0; i < values->count; i++) free(values->at[i]);
    free(values->at);
    free(values->now);
}

static _Noreturn void fail_knob(Cli *cli, const char *knob) {
    const char *dot = strchr(knob, '.'), *name = dot ? dot + 1 : knob;
    size_t count;
    char **names = cli_list_names(NG_LIST_KNOBS, &count);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(names[i], name))
            cli_fail(cli, NG_NOT_COMPILED, "--sweep=%s: no kernel of the graph takes it (see normgen knobs %s)", knob,
                     cli->operands[0]);
    const char *near = cli_near_miss(name, (const char *const *)names, count);
    if (near) cli_fail(cli, NG_USAGE, "--sweep=%s: no knob %s; did you mean %s?", knob, name, near);
    cli_fail(cli, NG_USAGE, "--sweep=%s: no knob %s (see normgen knobs)", knob, name);
}

static void add_swept(Cli *cli, Bench *bench) {
    const char *text = cli_value(cli, OPTION_SWEEP);
    if (!text) return;
    bench->sweep = true;
    const size_t length = strcspn(text, "=");
    char *knob = strndup(text, length);
    Values values = find_values(cli, bench, knob);
    if (!values.found) fail_knob(cli, knob);
    if (!text[length] && values.positive)
        cli_fail(cli, NG_USAGE, "--sweep=%s: it may be any positive number; name some, as in --sweep=%s=%s,64", knob,
                 knob, values.now ? values.now : "32");
    for (size_t i = 0; !text[length] && i < values.count; i++)
        add_entry(bench, knob, length, values.at[i], strlen(values.at[i]));
    for (const char *at = text[length] ? text + length + 1 : NULL; at;) {
        const size_t value = strcspn(at, ",");
        if (!value) cli_fail(cli, NG_USAGE, "--sweep=%s: expected KNOB or KNOB=V,V,...", text);
        add_entry(bench, knob, length, at, value);
        at = at[value] ? at + value + 1 : NULL;
    }
    for (size_t i = 1; i < bench->count; i++)
        bench->entries[i].is_default = values.now && !strcmp(values.now, bench->entries[i].value);
    free_values(&values);
    free(knob);
}

/* The first line of a failure, without the place. */
static char *reason_of(ng_status status, const ng_text *why) {
    const char *words = why->count ? why->bytes : ng_status_name(status), *error = strstr(words, "error: ");
    if (error) words = error + strlen("error: ");
    char *reason = strndup(words, strcspn(words, "\n"));
    return reason ? reason : cli_copy("out of memory");
}

/* A value of a sweep may be impossible; what is compared must be there. */
static void compile_entries(Cli *cli, Bench *bench) {
    const char *first = NULL;
    size_t made = 0;
    for (size_t i = 1; i < bench->count; i++) {
        Entry *entry = &bench->entries[i];
        ng_text why = {0};
        const ng_status status = cli_vary(cli, &bench->run.opened, entry->knob, entry->value, &entry->program, &why);
        if (status && (!bench->sweep || (status != NG_NOT_COMPILED && status != NG_UNAVAILABLE)))
            cli_fail_why(cli, status, &why);
        if (status) entry->why = reason_of(status, &why);
        if (status && !first) first = entry->why;
        made += !status;
        ng_text_free(&why);
    }
    if (bench->sweep && !made)
        cli_fail(cli, NG_NOT_COMPILED, "--sweep: no value is possible: %s", first ? first : "there is none");
}

/* ---- measuring ---- */

static void measure(Cli *cli, Bench *bench) {
    Run *run = &bench->run;
    const ng_program_facts *facts = &run->opened.facts;
    void **tensors = cli_alloc(facts->inputs + facts->outputs, sizeof *tensors);
    for (uint32_t i = 0; i < facts->inputs; i++) tensors[i] = run->inputs[i].first;
    for (uint32_t i = 0; i < facts->outputs; i++) tensors[facts->inputs + i] = run->outputs[i].first;
    ng_program **programs = cli_alloc(bench->count, sizeof *programs);
    ng_measured *times = cli_alloc(bench->count, sizeof *times);
    uint32_t count = 0;
    for (size_t i = 0; i < bench->count; i++)
        if (bench->entries[i].program) programs[count++] = bench->entries[i].program;
    ng_args args = {.size = sizeof args, .tensors = tensors, .dims = run->dims, .scalars = run->scalars};
    ng_bench_options options = {.size = sizeof options, .replays = (uint32_t)cli_int(cli, OPTION_REPLAYS, 1, 10001, 0)};
    bench->report = (ng_bench_report){.size = sizeof bench->report, .programs = times};
    ng_text why = {0};
    const ng_status status = ng_bench(programs, count, &args, &options, &bench->report, &why);
    if (status) cli_fail_why(cli, status, &why);
    ng_text_free(&why);
    count = 0;
    for (size_t i = 0; i < bench->count; i++)
        if (bench->entries[i].program) bench->entries[i].time = times[count++];
    bench->report.programs = NULL;
    free(times);
    free(programs);
    free(tensors);
}

/* ---- reporting ---- */

/* How many times as fast as the other. */
static double speed(const Entry *entry, const Entry *other) { return other->time.median / entry->time.median; }

static const Entry *best_of(const Bench *bench) {
    const Entry *best = &bench->entries[0];
    for (size_t i = 1; i < bench->count; i++)
        if (bench->entries[i].program && bench->entries[i].time.median < best->time.median) best = &bench->entries[i];
    return best;
}

static void put_us(Buf *buf, double us) { buf_format(buf, "%10.*f", us < 10 ? 3 : us < 1000 ? 2 : 1, us); }

static void put_times(Buf *buf, int width, const char *label, const ng_measured *time, const char *mark) {
    buf_format(buf, "%-*s ", width, label);
    put_us(buf, time->median);
    put_us(buf, time->least);
    put_us(buf, time->low);
    put_us(buf, time->high);
    buf_format(buf, "%9.*f%9.3f%8u%s\n", time->gbs < 100 ? 2 : 0, time->gbs, time->share, time->calls, mark);
}

static void show_method(Buf *buf, const ng_bench_report *report) {
    buf_format(buf, "sets     %u of %.6g MB, taken in turn", report->sets, (double)report->set_bytes / 1e6);
    buf_put(buf, !report->real  ? "\n"
                 : report->cold ? ": more than 3 times the L2, so that a call finds nothing of its own there\n"
                                : ": less than 3 times the L2, so that a call may find some of its own there\n");
    buf_format(buf, "replays  %u of each, by turns%s; times are of one call\n", report->replays,
               report->real ? ", as CUDA graphs" : "");
    if (!report->real) buf_put(buf, "note     a loop of calls on the host device: its times say nothing about a GPU\n");
}

static void show_table(Cli *cli, const Bench *bench) {
    const Entry *best = best_of(bench), *base = &bench->entries[0];
    int width = 8;
    for (size_t i = 0; i < bench->count; i++)
        if ((int)strlen(bench->entries[i].label) > width) width = (int)strlen(bench->entries[i].label);
    Buf *buf = &cli->out;
    buf_format(buf, "bytes    %" PRIu64 " a call at the least", base->time.ideal_bytes);
    if (base->time.moved_bytes != base->time.ideal_bytes)
        buf_format(buf, "; as given %" PRIu64, base->time.moved_bytes);
    buf_put(buf, "\n");
    show_method(buf, &bench->report);
    buf_format(buf, "\n%-*s %10s%10s%10s%10s%9s%9s%8s\n", width, "", "median us", "least", "quartile", "quartile",
               "GB/s", "of copy", "calls");
    put_times(buf, width, "copy", &bench->report.copy, "");
    for (size_t i = 0; i < bench->count; i++) {
        const Entry *entry = &bench->entries[i];
        const bool marked = bench->sweep && entry == best;
        if (entry->program)
            put_times(buf, width, entry->label, &entry->time,
                      marked && entry->is_default ? "  best, default"
                      : marked                    ? "  best"
                      : entry->is_default         ? "  default"
                                                  : "");
        else
            buf_format(buf, "%-*s  not possible: %s\n", width, entry->label, entry->why);
    }
    if (bench->count > 1) buf_put(buf, "\n");
    for (size_t i = 1; !bench->sweep && i < bench->count; i++)
        buf_format(buf, "compare  as given is %.3f times as fast as %s\n", speed(base, &bench->entries[i]),
                   bench->entries[i].label);
    if (bench->sweep && best == base) buf_put(buf, "best     as given\n");
    if (bench->sweep && best != base)
        buf_format(buf, "best     %s, %.3f times as fast as what was given\n", best->label, speed(best, base));
}

static cJSON *json_times(const ng_measured *time) {
    cJSON *item = cJSON_CreateObject();
    const struct {
        const char *name;
        double number;
    } numbers[] = {{"median_us", time->median},
                   {"least_us", time->least},
                   {"low_quartile_us", time->low},
                   {"high_quartile_us", time->high},
                   {"most_us", time->most},
                   {"gbs", time->gbs},
                   {"share_of_copy", time->share},
                   {"ideal_bytes", (double)time->ideal_bytes},
                   {"moved_bytes", (double)time->moved_bytes},
                   {"calls", time->calls}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        cJSON_AddNumberToObject(item, numbers[i].name, numbers[i].number);
    return item;
}

static void show_json(Cli *cli, const Bench *bench) {
    const ng_bench_report *report = &bench->report;
    cJSON_AddBoolToObject(cli->json, "real", report->real);
    cJSON_AddBoolToObject(cli->json, "cold", report->cold);
    cJSON_AddNumberToObject(cli->json, "sets", report->sets);
    cJSON_AddNumberToObject(cli->json, "set_bytes", (double)report->set_bytes);
    cJSON_AddNumberToObject(cli->json, "replays", report->replays);
    cJSON_AddItemToObject(cli->json, "copy", json_times(&report->copy));
    cJSON *list = cJSON_AddArrayToObject(cli->json, "measured");
    for (size_t i = 0; i < bench->count; i++) {
        const Entry *entry = &bench->entries[i];
        cJSON *item = entry->program ? json_times(&entry->time) : cJSON_CreateObject();
        cJSON_AddStringToObject(item, "what", entry->label);
        if (!entry->program) cJSON_AddStringToObject(item, "not_possible", entry->why);
        if (entry->program) cJSON_AddNumberToObject(item, "times_as_given", speed(&bench->entries[0], entry));
        if (bench->sweep) cJSON_AddBoolToObject(item, "default", entry->is_default);
        cJSON_AddItemToArray(list, item);
    }
    if (bench->sweep) cJSON_AddStringToObject(cli->json, "best", best_of(bench)->label);
}

static void release(Bench *bench) {
    for (size_t i = 0; i < bench->count; i++) {
        Entry *entry = &bench->entries[i];
        if (i) ng_program_free(entry->program); /* the first is the run's */
        free(entry->label);
        free(entry->knob);
        free(entry->value);
        free(entry->why);
    }
    free(bench->entries);
    run_release(&bench->run);
}

int cli_bench(Cli *cli) {
    if (cli_has(cli, OPTION_SWEEP) && cli_has(cli, OPTION_COMPARE))
        cli_fail(cli, NG_USAGE, "--compare and --sweep exclude each other");
    Bench bench = {.run = {.device = {.size = sizeof bench.run.device}}};
    ng_context *context = cli_context(cli, true);
    ng_context_device(context, &bench.run.device);
    if (bench.run.device.kind == NG_DEVICE_HOST && !cli_has(cli, OPTION_DEVICE))
        cli_fail(
            cli, NG_NO_DEVICE,
            "there is no GPU with NVRTC here to measure on; --device=host tries the command out, and its times say "
            "nothing about a GPU");
    bench.run.opened = cli_open(cli, context, NULL);
    Entry *given = add_entry(&bench, "", 0, "", 0);
    free(given->label);
    given->label = cli_copy("as given");
    given->program = bench.run.opened.program;
    add_compared(cli, &bench);
    add_swept(cli, &bench);
    compile_entries(cli, &bench);
    run_prepare(cli, &bench.run);
    run_describe(cli, &bench.run);
    if (cli_has(cli, OPTION_VERBOSE)) {
        Buf table = {0};
        cli_kernels(cli, &bench.run.opened, &table);
        cli_diagnose(cli, table.bytes, table.count);
        free(table.bytes);
    }
    measure(cli, &bench);
    if (cli->json)
        show_json(cli, &bench);
    else
        show_table(cli, &bench);
    release(&bench);
    return NG_OK;
}
