/* What compilers of norms are tested with where a reduction along rows and one across them can be one kernel: each case
 * of mixed_cases.def is a graph with the sizes at which it is known, and says how many kernels come out and how many of
 * them hold both orders (ROW+PARTIAL). That is checked with all sizes fixed and with the rows a hint. The graph then
 * runs, and with fuse=row again, against the oracle (tests/support/device_case.h) at few rows, which every plan must
 * take; and on a GPU (the poisoned rows on the host device too) at its own sizes, there through the library's check
 * (where it holds all values: of no more than 32 Mi elements a tensor).
 * What cannot be written or shown is printed with what it waits for.
 *
 *   sizes   "A=32 B=1024 | N=768": before the bar a hint where not fixed, behind it fixed; "S<=300" is at most that,
 *           "M" is not known at all
 *   types   "E=bf16 W=f32, E=f32 W=f32": one after the other
 *   sets    knobs, one after the other; NULL: none
 *   mixed, codes, kernels   of both orders, how many texts these have, of all
 *   told    a report at the hint, or NULL
 *
 *   build/tests/test_mixed_cases [--device=host|cuda] [--known] [--only=NAME]
 *
 * --known: at their own sizes on the host device too, which takes long. NORMGEN_TEST_REDUCED: the first types and sets
 * of each only. NORMGEN_SEED repeats the data. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/device_case.h"
#include "tests/support/directives.h"
#include "tests/support/generate.h"
#include "tests/support/report_bench.h"

typedef struct Case {
    const char *name, *sizes, *types, *sets;
    uint32_t mixed, codes, kernels; /* codes: of the mixed kernels, different texts */
    const char *told, *body;        /* body: from inputs: on, ' for " */
} Case;

static const Case cases[] = {
#define CASE(name, sizes, types, sets, mixed, codes, kernels, told, body)                                              \
    {name, sizes, types, sets, mixed, codes, kernels, told, body},
#include "tests/unit/mixed_cases.def"
#undef CASE
};
enum { CASES = sizeof cases / sizeof *cases };

static const struct {
    const char *what, *waits_for;
} waiting[] = {
    {"rows of which two tensors hold a part each",
     "an operation that puts tensors one behind the other (the case above "
     "has one tensor as long as both)"},
    {"a linear layer before the norm, attention between two norms, whole transformer blocks", "matrix products"},
    {"rows of a CTA and of a part found by search", "tune"},
    {"a norm, then sums over small groups of its row, then fp8 by their scales, in one kernel",
     "reductions over some of a row's axes"},
};

/* ---- texts ---- */

typedef enum Sizing { SIZES_FIXED, SIZES_HINTED } Sizing;

typedef struct CaseSize { /* one of the sizes */
    const char *name;
    int64_t value; /* -1: not known */
    bool most, fixed;
} CaseSize;

typedef IR_LIST(CaseSize) CaseSizes;

static CaseSizes read_sizes(Job *job, const Case *test) {
    CaseSizes sizes = {0};
    bool fixed = false;
    for (const char *at = test->sizes; *at; at += strspn(at, " ")) {
        const size_t length = strcspn(at, " "), name = strcspn(at, "<= ");
        if (*at == '|')
            fixed = true;
        else
            *IR_PUSH(job, &sizes) = (CaseSize){
                ir_copy_text(job, at, name),
                name < length ? strtoll(at + name + strspn(at + name, "<="), NULL, 10) : -1, at[name] == '<', fixed};
        at += length;
    }
    return sizes;
}

/* From `types:` on. */
static const char *case_text(Job *job, const Case *test, const char *types, Sizing form) {
    Text text = ir_text(job);
    const CaseSizes sizes = read_sizes(job, test);
    ir_text_format(&text, "types: {");
    for (const char *at = types; *at; at++) {
        if (*at == ' ')
            ir_text_format(&text, ", ");
        else
            ir_text_format(&text, *at == '=' ? ": " : "%c", *at);
    }
    ir_text_format(&text, "}\ndims: {");
    for (uint32_t i = 0; i < sizes.count; i++) {
        const CaseSize *size = &sizes.at[i];
        ir_text_format(&text, "%s%s: ", i ? ", " : "", size->name);
        if (size->value < 0)
            ir_text_format(&text, "any");
        else if (size->fixed || form == SIZES_FIXED)
            ir_text_format(&text, "%lld", (long long)size->value);
        else
            ir_text_format(&text, "{%s: %lld}", size->most ? "max" : "hint", (long long)size->value);
    }
    ir_text_format(&text, "}\n");
    for (const char *at = test->body; *at; at++) ir_text_format(&text, "%c", *at == '\'' ? '"' : *at);
    return ir_text_string(&text);
}

/* The next of several with ", " between; NULL behind the last. */
static const char *next_of(Job *job, const char **at) {
    if (!*at || !**at) return NULL;
    const char *start = *at, *end = strstr(start, ", ");
    *at = end ? end + 2 : start + strlen(start);
    return ir_copy_text(job, start, (size_t)((end ? end : *at) - start));
}

/* The any dims at few rows, or as they are known. */
static int64_t *any_dims(Job *job, const Case *test, uint32_t round, bool known) {
    static const int64_t few[][2] = {{41, 13}, {1, 7}}, unknown[] = {2048, 4096, 512};
    const CaseSizes sizes = read_sizes(job, test);
    int64_t *any = IR_NEW_ARRAY(job, int64_t, sizes.count + (size_t)1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < sizes.count; i++) {
        const CaseSize *size = &sizes.at[i];
        if (size->fixed) continue;
        any[count] = size->most        ? size->value - round
                     : !known          ? few[round][count > 0]
                     : size->value < 0 ? unknown[round]
                                       : size->value;
        count++;
    }
    return any;
}

/* ---- the plan ---- */

/* codes: those alone that have a text of their own. */
static uint32_t count_mixed(const Unit *unit, bool codes) {
    uint32_t count = 0;
    for (uint32_t s = 0; s < unit->plan->steps.count; s++)
        count += unit->prog->nests.at[unit->plan->steps.at[s].nest].class == CLASS_ROW_PARTIAL &&
                 (!codes || gen_has_code(unit->plan, s));
    return count;
}

/* The rows of a part, where a knob says them, stand in the launcher's text. */
static bool shows_part_rows(Job *job, const Unit *unit, const char *sets) {
    const char *rows = sets ? strstr(sets, "part_rows=") : NULL;
    return !rows || strstr(unit->source.device_text, ir_format(job, "ng_ceil(d_M, %d)", atoi(strchr(rows, '=') + 1)));
}

static bool plan_holds(const Case *test, const Unit *unit, const char *sets, Sizing form) {
    const uint32_t kernels = unit->plan->steps.count, mixed = count_mixed(unit, false), codes = count_mixed(unit, true);
    Job *job = ir_job_create(NULL);
    bool good = kernels == test->kernels && mixed == test->mixed && codes == test->codes;
    if (!good)
        printf("FAILED %s: %u kernels, %u of both orders, %u texts of those\n", test->name, kernels, mixed, codes);
    if (good && form == SIZES_HINTED && test->told && !directive_reported(unit, test->told)) {
        printf("FAILED %s: nothing told \"%s\"\n", test->name, test->told);
        good = false;
    }
    if (good && form == SIZES_HINTED && !shows_part_rows(job, unit, sets)) {
        printf("FAILED %s: %s is not in the text\n", test->name, sets);
        good = false;
    }
    if (!good) printf("%s", directive_reports(job, unit));
    ir_job_free(job);
    return good;
}

static bool check_plan(const Case *test, const char *types, const char *sets, Sizing form) {
    Job *job = ir_job_create(NULL);
    Unit unit;
    const char *text = ir_format(job, "graph: case\n%s\n", case_text(job, test, types, form));
    const Status status = generate_text(job, &unit, text, NULL, sets);
    if (status) printf("FAILED %s: %s\n%s\n", test->name, ir_job_report(job), text);
    const bool good = !status && plan_holds(test, &unit, sets, form);
    ir_job_free(job);
    return good;
}

/* ---- few rows ---- */

typedef struct Entry { /* a program */
    const Case *test;
    const char *types, *sets;
    bool apart; /* with fuse=row */
    DeviceCase *made;
} Entry;

typedef IR_LIST(Entry) Entries;

typedef struct Counts {
    uint32_t plans, launches, known, failed;
    uint64_t elements;
} Counts;

static void add_entry(Job *job, Entries *entries, Entry entry, Counts *counts) {
    const char *text = ir_format(job, "graph: case\n%s\n", case_text(job, entry.test, entry.types, SIZES_HINTED));
    entry.made = device_case_create(text, entry.sets);
    bool good = !entry.made->status;
    if (!good) printf("FAILED %s: %s\n%s\n", entry.test->name, ir_job_report(entry.made->job), text);
    if (good && entry.apart && count_mixed(&entry.made->unit, false)) {
        printf("FAILED %s: both orders in one kernel with fuse=row\n", entry.test->name);
        good = false;
    }
    counts->failed += !good;
    *IR_PUSH(job, entries) = entry;
}

static void add_case(Job *job, Entries *entries, const Case *test, bool reduced, Counts *counts) {
    const char *all_types = test->types, *types;
    bool first = true;
    while ((types = next_of(job, &all_types)) && (first || !reduced)) {
        const char *all_sets = test->sets, *sets = next_of(job, &all_sets);
        const bool gates = sets && !strncmp(sets, "mixed_", 6);
        const char *apart = ir_format(job, "%s fuse=row", gates ? sets : "");
        do {
            for (int form = 0; form < 2; form++)
                counts->failed += !check_plan(test, types, sets, (Sizing)form), counts->plans++;
            add_entry(job, entries, (Entry){test, types, sets, false, NULL}, counts);
        } while (!reduced && (sets = next_of(job, &all_sets)));
        if (first) add_entry(job, entries, (Entry){test, types, apart + strspn(apart, " "), true, NULL}, counts);
        first = false;
    }
}

static void run_few(const Entry *entry, const Devices *devices, Random *random, Counts *counts) {
    for (uint32_t round = 0; round < 2; round++) {
        Job *job = ir_job_create(NULL);
        LaunchTrial trial = {.random = random};
        if (!device_case_try(job, entry->made, devices, any_dims(job, entry->test, round, false), &trial)) {
            printf("    in %s, %s\n", entry->test->name, entry->sets ? entry->sets : "as it comes");
            counts->failed++;
        }
        counts->launches += trial.launches;
        counts->elements += trial.elements;
        ir_job_free(job);
    }
}

/* ---- the sizes at which a case is known ---- */

/* The same random elements again and again, no whole number of times a row; factors that leave products in range where
 * a case has such. */
static void fill(Bench *bench, Trial *trial, uint32_t tensor, bool factors) {
    enum { FRESH = 1048583 };
    const size_t each = ng_dtype_bytes(trial->dtype[tensor]);
    char *bytes = trial->bytes[tensor];
    const int64_t count = trial->elements[tensor], fresh = count < FRESH ? count : FRESH;
    for (int64_t i = 0; i < fresh; i++) {
        const uint32_t draw = random_below(&bench->random, 128);
        ng_store(trial->dtype[tensor], bytes + (size_t)i * each,
                 !factors    ? random_normal(&bench->random)
                 : draw == 0 ? 2
                 : draw == 1 ? -0.5
                             : 1);
    }
    for (int64_t i = fresh; i < count; i += fresh)
        memcpy(bytes + (size_t)i * each, bytes, (size_t)(count - i < fresh ? count - i : fresh) * each);
}

/* Whether the library's reference has room. It holds all that an element follows from, with its bound: a few columns
 * of what is read, but everything where sums across the rows need what the rows' own give. */
static bool trial_fits(Trial *trial, const Case *test, const int64_t *dims) {
    const int64_t most = strstr(test->body, "gradient(") ? 1 << 25 : 1 << 28;
    trial_size(trial, dims);
    for (uint32_t t = 0; t < trial->inputs; t++)
        if (trial->elements[t] > most) return false;
    return true;
}

/* Its elements behind the rows that are read are 1e6. */
static bool is_poisoned(const Case *test) { return strstr(test->body, "buf[:M]") != NULL; }

static void run_known(Bench *bench, const Entry *entry, Counts *counts) {
    Job *job = ir_job_create(NULL);
    const Way way = {"case", entry->sets, NULL, false};
    Trial trial;
    ng_text why;
    const ng_status status =
        trial_try(bench, &way, case_text(job, entry->test, entry->types, SIZES_HINTED), &trial, &why);
    if (status) printf("FAILED %s: %s\n", entry->test->name, why.bytes ? why.bytes : "no words");
    counts->failed += status != NG_OK;
    ng_text_free(&why);
    const bool once = entry->test->sizes[1] != ' ', poisoned = is_poisoned(entry->test);
    for (uint32_t round = 0; !status && round < (once ? 1 : 3); round++) {
        int64_t *dims = any_dims(job, entry->test, round * !once, true);
        while (!trial_fits(&trial, entry->test, dims)) dims[0] /= 2;
        for (uint32_t t = 0; t < trial.inputs; t++)
            fill(bench, &trial, t, strstr(entry->test->body, "prod(x, ") != NULL);
        for (int64_t i = 1; poisoned && i <= 768; i++) trial_set(&trial, "buf", trial.elements[0] - i, 1e6);
        const ng_status ran = trial_launch(&trial, true, &why);
        if (ran)
            printf("FAILED %s, %s, %s: %s\n", entry->test->name, entry->types,
                   entry->sets ? entry->sets : "as it comes", why.bytes ? why.bytes : "no words");
        counts->failed += ran != NG_OK;
        counts->known++;
        ng_text_free(&why);
    }
    if (!status) trial_close(&trial);
    ir_job_free(job);
}

int main(int argc, char **argv) {
    const char *only = NULL;
    if (argc > 1 && !strncmp(argv[argc - 1], "--only=", 7)) only = argv[--argc] + 7;
    const bool known = argc > 1 && !strcmp(argv[argc - 1], "--known");
    argc -= known;
    Devices devices;
    Bench bench;
    if (!devices_open(&devices, argc, argv) || !bench_open(&bench, argc, argv)) return 3;
    const bool reduced = getenv("NORMGEN_TEST_REDUCED") != NULL;
    Job *job = ir_job_create(NULL);
    Entries entries = {0};
    Counts counts = {0};
    for (uint32_t c = 0; c < CASES; c++)
        if (!only || !strcmp(only, cases[c].name)) add_case(job, &entries, &cases[c], reduced, &counts);
    DeviceCase **made = IR_NEW_ARRAY(job, DeviceCase *, entries.count + (size_t)1);
    for (uint32_t i = 0; i < entries.count; i++) made[i] = entries.at[i].made;
    const bool built = device_cases_build(made, entries.count, &devices);
    for (uint32_t i = 0; built && i < entries.count; i++) {
        if (made[i]->status) continue;
        run_few(&entries.at[i], &devices, &bench.random, &counts);
        if (known || devices.cuda || (!reduced && is_poisoned(entries.at[i].test)))
            run_known(&bench, &entries.at[i], &counts);
    }
    for (size_t i = 0; !only && i < sizeof waiting / sizeof *waiting; i++)
        printf("# waits for %s: %s\n", waiting[i].waits_for, waiting[i].what);
    printf("# %u cases, %u plans, %u programs, %u launches of few rows, %llu elements compared; %u launches at known "
           "sizes\n",
           only ? 1 : CASES, counts.plans, entries.count, counts.launches, (unsigned long long)counts.elements,
           counts.known);
    for (uint32_t i = 0; i < entries.count; i++) device_case_free(made[i], &devices);
    devices_close(&devices);
    bench_close(&bench);
    ir_job_free(job);
    const bool failed = !built || counts.failed || !counts.plans;
    printf(failed ? "[  FAILED  ] %u\n" : "[  PASSED  ] %u test(s).\n", failed ? counts.failed : entries.count);
    return failed;
}
