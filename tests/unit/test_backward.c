/* The gradients of norms in one pass (row_stream), on a device against formulas written by hand
 * (tests/support/backward_reference.h): rows and columns on both sides of what a part and all CTAs hold, every mix of
 * element types, expanded, padded and misaligned tensors, sums that must be exact, the same bits in every run.
 *
 *   build/tests/test_backward [--device=host|cuda] [--only=GROUP|GRAPH]
 *
 * Outputs and workspace hold NaNs before a launch, behind each input lies poison. Beside the fused program the same
 * graph without mixed order (fuse=row) and unfused (fuse=off) meets the same reference.
 * NORMGEN_TEST_REDUCED: less, for sanitizers. NORMGEN_SEED repeats the data. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/backward_others.h"
#include "tests/support/graph_text.h"

enum { PART_ROWS = 5, PERIOD = 257, MOST_PROGRAMS = 4 };

typedef struct Run {
    Job *job;
    Devices devices;
    bool small;
    const char *only;
    uint64_t seed;
    Random random;
    uint32_t number; /* of programs so far */
    uint32_t programs, launches, streams, failed;
    uint64_t elements, referred, exact;
} Run;

/* Programs of one graph text, which differ in what is set. */
typedef struct Family {
    const Backward *of;
    int64_t columns;
    DeviceCase *made[MOST_PROGRAMS];
    uint32_t count;
    bool by_parts, by_ctas; /* some program has PART_ROWS rows a part; one part a CTA */
    uint32_t number;
} Family;
typedef IR_LIST(Family) Families;

static bool is_wanted(const Run *run, const char *group, const char *graph) {
    return !run->only || !strcmp(run->only, group) || (graph && !strcmp(run->only, graph));
}

/* ---- texts ---- */

static const char *put_between(Job *job, const char *text, const char *at, size_t length, const char *to) {
    return ir_format(job, "%.*s%s%s", (int)(at - text), text, to, at + length);
}

static const char *replace_all(Job *job, const char *text, const char *from, const char *to) {
    for (const char *hit = text; (hit = strstr(hit, from)) != NULL;) {
        const size_t offset = (size_t)(hit - text);
        text = put_between(job, text, hit, strlen(from), to);
        hit = text + offset + strlen(to);
    }
    return text;
}

/* What stands behind "NAME: " in a section. */
static const char *entry_of(const char *text, const char *section, const char *name) {
    for (const char *at = strstr(text, section); at && (at = strstr(at, name)) != NULL; at++)
        if (strchr(" {", at[-1]) && at[strlen(name)] == ':') return at + strlen(name) + 2;
    return NULL;
}

#define NAME_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

static const char *set_type(Job *job, const char *text, const char *section, const char *name, const char *type) {
    const char *at = entry_of(text, section, name);
    if (!at) return text;
    at += strspn(at, "\"{");
    if (!strncmp(at, "dtype: ", 7)) at += 7;
    return put_between(job, text, at, strspn(at, NAME_BYTES), type);
}

/* An [M, N] tensor with strides. */
static const char *set_strides(Job *job, const char *text, const char *section, const char *name, const char *strides) {
    const char *at = entry_of(text, section, name);
    if (!at) return text;
    const size_t length = *at == '"' ? strcspn(at + 1, "\"") + 2 : strspn(at, NAME_BYTES);
    const char *type = at + (*at == '"');
    return put_between(
        job, text, at, length,
        ir_format(job, "{dtype: %.*s, shape: [M, N], strides: [%s, 1]}", (int)strspn(type, NAME_BYTES), type, strides));
}

/* The graph with so many columns, x and what is like it of a type, under a name of its own. */
static const char *graph_text(Run *run, const Backward *of, int64_t columns, const char *type) {
    Job *job = run->job;
    const char *text = of->text;
    if (!text) {
        size_t count;
        char *file = graph_text_file(ir_format(job, "examples/%s.yaml", of->name), &count);
        if (!file) ir_stop_at(job, STATUS_SYSTEM, (Place){0, 0}, "examples/%s.yaml cannot be read", of->name);
        text = ir_copy_text(job, file, count);
        free(file);
    } else {
        text = ir_format(job, "graph: %s\ntypes: {E: bf16}\ndims: %s\n", of->name, text);
    }
    text = replace_all(job, text, "graph: ", ir_format(job, "graph: b%u_", run->number++));
    const char *at = strstr(text, " N: ") + 4;
    text = put_between(job, text, at, strspn(at, "0123456789"), ir_format(job, "%lld", (long long)columns));
    if (strstr(text, "E: bf16")) return replace_all(job, text, "{E: bf16}", ir_format(job, "{E: %s}", type));
    for (uint32_t k = 0; k < 2; k++) text = set_type(job, text, "inputs:", k ? "x" : "dy", type);
    return set_type(job, text, "outputs:", "dx", type);
}

/* ---- programs ---- */

static uint32_t count_streams(const DeviceCase *made) {
    uint32_t streams = 0;
    for (uint32_t s = 0; s < made->unit.plan->steps.count; s++)
        streams += made->unit.plan->steps.at[s].strategy == STRATEGY_ROW_STREAM;
    return streams;
}

/* streams: kernels that must be row_stream. */
static void add_program(Run *run, Family *family, const char *text, const char *sets, uint32_t streams) {
    if (sets && strstr(sets, "=")) /* kernels of one name meet in one translation unit */
        text = replace_all(run->job, text, "graph: b", ir_format(run->job, "graph: c%u_", run->number++));
    DeviceCase *made = device_case_create(text, sets);
    family->made[family->count++] = made;
    run->programs++;
    if (made->status) {
        printf("FAILED %s: %s\n%s\n", family->of->name, ir_job_report(made->job), text);
    } else if (count_streams(made) != streams) {
        printf("FAILED %s: %u kernels are row_stream, expected %u (%s)\n%s\n", family->of->name, count_streams(made),
               streams, sets ? sets : "", text);
        made->status = STATUS_CHECK_FAILED;
    }
    run->failed += made->status != STATUS_OK;
    run->streams += streams;
}

static uint32_t streams_of(const Backward *of, int64_t columns) {
    return columns == 1 ? 0 : of->added[0] ? of->sum_count : 1; /* rows of one element have no reduction */
}

static bool build(Run *run, const Families *families) {
    IR_LIST(DeviceCase *) made = {0};
    for (uint32_t f = 0; f < families->count; f++)
        for (uint32_t k = 0; k < families->at[f].count; k++) *IR_PUSH(run->job, &made) = families->at[f].made[k];
    const bool built = device_cases_build(made.at, made.count, &run->devices);
    run->failed += !built;
    return built;
}

static void free_families(Run *run, Families *families) {
    for (uint32_t f = 0; f < families->count; f++)
        for (uint32_t k = 0; k < families->at[f].count; k++) device_case_free(families->at[f].made[k], &run->devices);
}

/* ---- running ---- */

typedef struct Trial {
    Geometry at;
    Fill fill;
    DataLayout layout;
    int bits;       /* of the arithmetic */
    uint32_t alone; /* 1 + the program that runs; 0: all do */
} Trial;

static void say_failure(const Family *family, Geometry at, const char *why) {
    printf("FAILED %s M=%lld N=%lld: %s\n", family->of->name, (long long)at.rows, (long long)at.columns, why);
}

/* All programs of a family on the same inputs. */
static void run_programs(Run *run, const Family *family, Data *data, const Trial *trial, Text *why) {
    double depth = 1;
    for (uint32_t k = 0; k < family->count; k++) {
        const double own = data_depth(data, family->made[k]);
        depth = own == 0 || depth == 0 ? 0 : own > depth ? own : depth;
    }
    data_refer(data, (Accuracy){trial->bits ? trial->bits : 24, depth});
    const uint32_t first = trial->alone ? trial->alone - 1 : 0, after = trial->alone ? trial->alone : family->count;
    for (uint32_t k = first; k < after; k++) {
        RtDevice *device = run->devices.at[run->launches % run->devices.count];
        device_case_move(family->made[k], device);
        if ((k == first || trial->layout.in_place) && !data_upload(data, device, &trial->layout, why)) return;
        if (!data_launch(data, family->made[k], why)) return;
        run->launches++;
        const uint64_t wrong = data_compare(data, family->made[k]);
        if (wrong) printf("    %llu elements in all\n%s\n", (unsigned long long)wrong, family->made[k]->text);
        run->failed += wrong != 0;
    }
}

static void run_family(Run *run, const Family *family, const Trial *trial) {
    for (uint32_t k = 0; k < family->count; k++)
        if (family->made[k]->status) return;
    Job *job = ir_job_create(NULL);
    Text why = ir_text(job);
    Data data;
    const Geometry at = trial->at;
    const int64_t any[2] = {family->made[0]->program->any_count > 1 ? at.groups : at.rows, at.rows};
    if (data_open(&data, family->of, family->made[0], at, any, trial->fill, random_bits(&run->random), &why))
        run_programs(run, family, &data, trial, &why);
    run->elements += data.elements;
    run->referred += data.referred;
    run->exact += data.exact;
    data_close(&data);
    if (why.count) say_failure(family, at, ir_text_string(&why));
    run->failed += why.count != 0;
    ir_job_free(job);
}

static Geometry geometry(int64_t groups, int64_t rows, int64_t columns) {
    return (Geometry){groups, rows, columns, rows < PERIOD ? rows : PERIOD};
}

/* ---- rows and columns ---- */

static const int64_t widths[] = {1, 7, 129, 384, 768, 1000, 2048, 4096, 8472, 16384};
static const char *const types[] = {"bf16", "f32", "f16"};
enum { WIDTHS = sizeof widths / sizeof *widths };
#define GATES "mixed_elements=1 mixed_rows=1 "

/* On a GPU every width in every way; on the host device by parts or by CTAs in turn, and some widths without fusing. */
static void add_pairs(Run *run, Families *families, const Backward *of, uint32_t graph, uint32_t width) {
    Family *family = IR_PUSH(run->job, families);
    const bool all = run->devices.cuda;
    const uint32_t turn = graph + width, streams = streams_of(of, widths[width]);
    *family = (Family){.of = of, .columns = widths[width], .number = turn};
    const char *text = graph_text(run, of, widths[width], types[width % 3]);
    family->by_parts = streams && (all || turn % 2);
    family->by_ctas = streams && (all || !(turn % 2));
    if (!streams) add_program(run, family, text, GATES, 0);
    if (family->by_parts) add_program(run, family, text, GATES "part_rows=5", streams);
    if (family->by_ctas) add_program(run, family, text, GATES "min_ctas=1", streams);
    if (turn % 3 == 0) add_program(run, family, text, "fuse=row", 0);
    if (turn % 5 == 1) add_program(run, family, text, "fuse=off", 0);
}

static int64_t count_parts(Job *job, const DeviceCase *made, int64_t groups, int64_t rows) {
    const Mark mark = ir_mark(job);
    int64_t *words = IR_NEW_ARRAY(job, int64_t, made->program->scratch_words + 1), parts = 0;
    const int64_t any[2] = {made->program->any_count > 1 ? groups : rows, rows};
    RtScratch scratch;
    if (!rt_program_sizes(made->program, any, words, &scratch, NULL)) parts = scratch.parts[0];
    ir_reset(job, mark);
    return parts;
}

/* The fewest rows that give every CTA a part. */
static int64_t find_full(Run *run, const Family *family, int64_t groups) {
    const DeviceCase *made = family->made[family->by_parts];
    int64_t low = 1, high = 1 << 20;
    const int64_t most = count_parts(run->job, made, groups, high);
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        *(count_parts(run->job, made, groups, middle) >= most ? &high : &low) =
            count_parts(run->job, made, groups, middle) >= most ? middle : middle + 1;
    }
    return low;
}

static void run_pair(Run *run, const Family *family, int64_t rows, int64_t most) {
    const int64_t groups = strcmp(family->of->name, "ada_ln_bwd") == 0 && rows * family->columns <= 1 << 21 ? 2 : 1;
    if (groups * rows * family->columns > most) return;
    /* numbers of the two kinds, poison of the two, pointers of the two: in turns that differ */
    const uint64_t turn = family->number + (uint64_t)rows;
    Trial trial = {.at = geometry(groups, rows, family->columns), .fill = turn % 2 ? fill_grid : fill_random};
    const int64_t large = run->devices.cuda ? 1 << 25 : 1 << 19;
    const uint32_t fused = (uint32_t)family->by_parts + family->by_ctas;
    if (groups * rows * family->columns > large) trial.alone = 1 + (fused ? (uint32_t)turn / 4 % fused : 0);
    trial.layout.large = turn / 2 % 2;
    trial.layout.shift = turn % 3 ? NULL : &run->random;
    run_family(run, family, &trial);
}

/* The longest rows: of graphs other than the two plainest norms the host device takes a smaller prime number of them, a
 * GPU one prime number fewer. */
static void run_pairs(Run *run, const Family *family) {
    const bool cuda = run->devices.cuda, norm = strstr("rms_norm_bwd layer_norm_bwd", family->of->name) != NULL;
    const bool fewer = !cuda && !norm && family->columns >= 4096;
    const int64_t most = run->small ? 1 << 16 : cuda ? (int64_t)1 << 40 : 1 << 22, far[] = {33791, 40961};
    const int64_t all[] = {0, 1, fewer ? 61 : 211}, parts[] = {PART_ROWS - 1, PART_ROWS, PART_ROWS + 1};
    for (uint32_t i = 0; i < 3; i++) run_pair(run, family, all[i], most);
    for (uint32_t i = 0; i < 3 && family->by_parts; i++) run_pair(run, family, parts[i], most);
    const int64_t full = family->by_ctas && !family->made[family->by_parts]->status ? find_full(run, family, 1) : 0;
    for (int64_t m = full - 1; m <= full + 1 && full; m++) run_pair(run, family, m, most);
    for (uint32_t i = 0; i < 2; i++) run_pair(run, family, far[i], most);
    if ((!cuda || norm || family->columns < 2048) && !run->small) run_pair(run, family, 10007, most);
}

static void group_pairs(Run *run) {
    Families families = {0};
    for (uint32_t g = 0; g < backward_graph_count; g++)
        for (uint32_t w = 0; w < (run->small ? 3 : WIDTHS); w++)
            if (is_wanted(run, "pairs", backward_graphs[g].name)) add_pairs(run, &families, &backward_graphs[g], g, w);
    if (build(run, &families))
        for (uint32_t f = 0; f < families.count; f++) run_pairs(run, &families.at[f]);
    free_families(run, &families);
}

/* ---- element types ---- */

/* x, weight, bias and the gradient that comes in, each in each type; what goes out has its operand's. */
static void add_mix(Run *run, Families *families, const Backward *of, const char *const *mix) {
    Family *family = IR_PUSH(run->job, families);
    *family = (Family){.of = of, .columns = 129};
    const char *text = graph_text(run, of, 129, mix[0]);
    text = set_type(run->job, text, "inputs:", "dy", mix[1]);
    text = set_type(run->job, text, "inputs:", "weight", mix[2]);
    text = set_type(run->job, text, "inputs:", "w", mix[2]);
    text = set_type(run->job, text, "inputs:", "bias", mix[3]);
    text = set_type(run->job, text, "outputs:", "dweight", mix[2]);
    text = set_type(run->job, text, "outputs:", "dw", mix[2]);
    text = set_type(run->job, text, "outputs:", "dbias", mix[3]);
    add_program(run, family, text, GATES "part_rows=5", 1);
}

static void group_types(Run *run) {
    Families families = {0};
    for (uint32_t i = 0; i < 81; i++) {
        const char *const mix[] = {types[i % 3], types[i / 3 % 3], types[i / 9 % 3], types[i / 27]};
        if (!run->small || i % 10 == 0) add_mix(run, &families, backward_find("layer_norm_gelu_bwd"), mix);
        if (i < 27 && (!run->small || i % 9 == 4)) add_mix(run, &families, backward_find("rms_norm_bwd"), mix);
    }
    if (build(run, &families))
        for (uint32_t f = 0; f < families.count; f++) {
            Trial trial = {.at = geometry(1, 37, 129), .fill = f % 2 ? fill_grid : fill_random};
            trial.layout.shift = f / 2 % 2 ? &run->random : NULL;
            run_family(run, &families.at[f], &trial);
        }
    free_families(run, &families);
}

/* ---- layouts ---- */

static void add_layout(Run *run, Families *families, const Backward *of, int64_t columns, const char *type) {
    Family *family = IR_PUSH(run->job, families);
    Job *job = run->job;
    *family = (Family){.of = of, .columns = columns};
    const char *text = graph_text(run, of, columns, type);
    static const char *const names[][2] = {{"dy", "0"}, {"dy2", "0"}, {"x", "N + 8"}, {"h", "N + 8"}, {"x1", "N + 1"}};
    for (uint32_t k = 0; k < sizeof names / sizeof *names; k++)
        text = set_strides(job, text, "inputs:", names[k][0], names[k][1]);
    text = set_strides(job, text, "outputs:", "dx", "N + 3");
    text = set_strides(job, text, "outputs:", "dx1", "N + 3");
    add_program(run, family, text, GATES "part_rows=5", streams_of(of, columns));
}

static void group_layouts(Run *run) {
    static const int64_t columns[] = {7, 129, 384, 1000}, rows[] = {1, 37, 300};
    Families families = {0};
    for (uint32_t g = 0; g < backward_graph_count; g++)
        for (uint32_t k = 0; k < (run->small ? 1 : 4); k++)
            if (strcmp(backward_graphs[g].name, "ada_ln_bwd"))
                add_layout(run, &families, &backward_graphs[g], columns[(g + k) % 4], types[(g + k) % 3]);
    if (build(run, &families))
        for (uint32_t i = 0; i < families.count * 6; i++) {
            const Family *family = &families.at[i / 6];
            Trial trial = {.at = geometry(1, rows[i / 2 % 3], family->columns),
                           .fill = i % 2 ? fill_grid : fill_random};
            trial.layout = (DataLayout){i % 2 ? &run->random : NULL, i % 4 < 2, i % 2};
            run_family(run, family, &trial);
        }
    free_families(run, &families);
}

/* ---- other graphs ---- */

/* amax and amin of nothing have no value; every other sum of nothing is its identity. */
static void check_refused(Run *run, const Family *family) {
    Job *job = ir_job_create(NULL);
    Text why = ir_text(job);
    Data data;
    const int64_t any[2] = {0};
    const DataLayout layout = {0};
    bool launched = !family->made[0]->status && data_open(&data, family->of, family->made[0],
                                                          geometry(1, 0, family->columns), any, fill_ones, 0, &why);
    launched =
        launched && data_upload(&data, run->devices.at[0], &layout, &why) && data_launch(&data, family->made[0], &why);
    if (launched || !launch_refuses_dims(ir_text_string(&why))) {
        say_failure(family, geometry(1, 0, family->columns), "expected to be refused");
        printf("    %s\n", ir_text_string(&why));
        run->failed++;
    }
    if (!family->made[0]->status) data_close(&data);
    ir_job_free(job);
}

static void run_other(Run *run, const Other *other, const Family *family) {
    const int64_t rows[] = {0, 1, 4, 5, 6, other->rows};
    for (uint32_t i = 0; i < 6; i++) {
        Trial trial = {.at = geometry(1, rows[i], family->columns), .fill = other->fill, .bits = other->bits};
        if (!other->periodic) trial.at.period = rows[i];
        trial.layout.shift = i % 2 ? &run->random : NULL;
        trial.layout.large = i / 2 % 2;
        if (run->small && rows[i] > 1000) continue;
        if (rows[i] == 0 && !strcmp(other->graph.name, "extremes"))
            check_refused(run, family);
        else
            run_family(run, family, &trial);
    }
}

static void group_others(Run *run) {
    Families families = {0};
    IR_LIST(uint32_t) of = {0};
    for (uint32_t k = 0; k < backward_other_count; k++)
        for (uint32_t t = 0; backward_others[k].types[t]; t++) {
            if (!is_wanted(run, "others", backward_others[k].graph.name)) continue;
            Family *family = IR_PUSH(run->job, &families);
            *IR_PUSH(run->job, &of) = k;
            *family = (Family){.of = &backward_others[k].graph, .columns = backward_others[k].columns};
            const char *text = graph_text(run, family->of, family->columns, backward_others[k].types[t]);
            add_program(run, family, text, GATES, 1);
            add_program(run, family, text, GATES "part_rows=5", 1);
            add_program(run, family, text, "fuse=row", 0);
        }
    if (build(run, &families))
        for (uint32_t f = 0; f < families.count; f++) run_other(run, &backward_others[of.at[f]], &families.at[f]);
    free_families(run, &families);
}

/* ---- exact sums, and the same bits ---- */

static void group_ones(Run *run) {
    Families families = {0};
    for (uint32_t t = 0; t < 2; t++) {
        Family *family = IR_PUSH(run->job, &families);
        *family = (Family){.of = backward_find("rms_norm_bwd"), .columns = 64};
        add_program(run, family, graph_text(run, family->of, 64, types[t]), GATES, 1);
    }
    if (build(run, &families))
        for (uint32_t f = 0; f < families.count; f++) {
            const Trial trial = {.at = geometry(1, run->small ? 1000 : 100000, 64), .fill = fill_ones};
            const uint64_t referred = run->referred, exact = run->exact;
            run_family(run, &families.at[f], &trial);
            if (run->exact - exact == run->referred - referred && run->exact > exact) continue;
            say_failure(&families.at[f], trial.at, "not all elements are exact");
            run->failed++;
        }
    free_families(run, &families);
}

/* Devices that differ in the order of lanes and in how many threads work on CTAs. */
static bool open_more(Run *run, RtDevice **more, uint32_t count, Text *why) {
    for (uint32_t d = 0; d < count && !run->devices.cuda; d++) {
        const RtHostOptions options = {.order = (RtOrder)(d % 3), .seed = 100 + d, .workers = d % 2 ? 1 : 3};
        if (rt_host_open(0, &options, &more[d], why)) return false;
    }
    return true;
}

static bool same_bits(Run *run, const Family *family, Data *data, RtDevice *device, char **first, bool shift,
                      Text *why) {
    const DataLayout layout = {.shift = shift ? &run->random : NULL};
    device_case_move(family->made[0], device);
    if (!data_upload(data, device, &layout, why) || !data_launch(data, family->made[0], why)) return false;
    run->launches++;
    for (uint32_t o = 0; o < family->of->out_count; o++) {
        size_t bytes;
        const char *own = data_output(data, o, &bytes);
        if (!first[o]) first[o] = memcpy(ir_alloc(data->job, bytes + 1), own, bytes);
        if (!memcmp(first[o], own, bytes)) continue;
        ir_text_format(why, "output %s has other bits than in the first run",
                       data->tensors[data->input_count + o].name);
        return false;
    }
    return true;
}

static void run_bits(Run *run, const Family *family, int64_t rows) {
    enum { MORE = 4, RUNS = 50 };
    Job *job = ir_job_create(NULL);
    Text why = ir_text(job);
    Data data;
    RtDevice *more[MORE] = {NULL};
    char *first[BACKWARD_OUTPUTS] = {NULL};
    const int64_t any[2] = {rows, rows};
    bool same = !family->made[0]->status && open_more(run, more, MORE, &why) &&
                data_open(&data, family->of, family->made[0], geometry(1, rows, family->columns), any, fill_random,
                          random_bits(&run->random), &why);
    for (uint32_t r = 0; r < (run->small ? 8 : RUNS) && same; r++) {
        RtDevice *device = r % 2 ? more[r / 2 % MORE] : run->devices.at[r / 2 % run->devices.count];
        if (run->devices.cuda) device = run->devices.at[0];
        same = same_bits(run, family, &data, device, first, r % 3 != 0, &why);
        if (!same) ir_text_format(&why, " (run %u)", r);
    }
    if (!same) say_failure(family, geometry(1, rows, family->columns), ir_text_string(&why));
    run->failed += !same;
    if (!family->made[0]->status) data_close(&data);
    for (uint32_t d = 0; d < MORE; d++)
        if (more[d]) more[d]->ops->close(more[d]);
    ir_job_free(job);
}

static void group_bits(Run *run) {
    static const char *const names[] = {"rms_norm_bwd", "layer_norm_bwd", "add_rms_norm_bwd"};
    static const int64_t columns[] = {1000, 129, 384};
    Families families = {0};
    for (uint32_t k = 0; k < 3; k++) {
        Family *family = IR_PUSH(run->job, &families);
        *family = (Family){.of = backward_find(names[k]), .columns = columns[k]};
        add_program(run, family, graph_text(run, family->of, columns[k], types[k]), GATES, 1);
    }
    if (build(run, &families))
        for (uint32_t f = 0; f < families.count; f++) run_bits(run, &families.at[f], run->small ? 37 : 1009);
    free_families(run, &families);
}

/* ---- all ---- */

static const struct {
    const char *name;
    void (*run)(Run *run);
    bool by_graph; /* it takes graphs' names too */
} groups[] = {{"pairs", group_pairs, true},   {"types", group_types, false}, {"layouts", group_layouts, false},
              {"others", group_others, true}, {"ones", group_ones, false},   {"bits", group_bits, false}};

int main(int argc, char **argv) {
    Run run = {.job = ir_job_create(NULL), .small = getenv("NORMGEN_TEST_REDUCED") != NULL};
    if (argc > 1 && !strncmp(argv[argc - 1], "--only=", 7)) run.only = argv[--argc] + 7;
    if (!devices_open(&run.devices, argc, argv)) return 3;
    run.random.state = run.seed = random_seed();
    for (uint32_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        if (!groups[g].by_graph && !is_wanted(&run, groups[g].name, NULL)) continue;
        const double start = rt_now();
        const Run before = run;
        groups[g].run(&run);
        if (run.programs == before.programs) continue;
        printf(
            "# %s: %u programs with %u row_stream kernels, %u launches, %llu elements compared, of them %llu with the "
            "reference, %llu of which exact; %d s\n",
            groups[g].name, run.programs - before.programs, run.streams - before.streams,
            run.launches - before.launches, (unsigned long long)(run.elements - before.elements),
            (unsigned long long)(run.referred - before.referred), (unsigned long long)(run.exact - before.exact),
            (int)(rt_now() - start + 0.5));
        fflush(stdout);
    }
    if (!run.programs) printf("FAILED: no group or graph is named %s\n", run.only);
    run.failed += !run.programs;
    devices_close(&run.devices);
    ir_job_free(run.job);
    printf(run.failed ? "[  FAILED  ] %u\n" : "[  PASSED  ] %u test(s).\n", run.failed ? run.failed : run.programs);
    return run.failed != 0;
}
