/* Graphs of several kernels on the host device or a GPU (--device=cuda): how many kernels there are, and what they
 * compute, at awkward sizes, with what is stored between them in a workspace that held NaNs, in place and apart, in
 * each order of lanes. NORMGEN_SEED repeats a run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/host_sanitize.h"
#include "tests/support/device_case.h"
#include "tests/support/launch_trial.h"
#include "tests/support/many_kernels.h"

enum { MOST = 8, BORDER = 512 };

typedef struct Case {
    const char *name;
    const char *graph; /* from dims: on, ' for ", or a path */
    const char *sets;
    uint32_t kernels;
    uint32_t tmps;         /* bufs in the workspace */
    int64_t dims[MOST][3]; /* values of the any dims, up to a negative one */
} Case;

#define ROWS                                                                                                           \
    {                                                                                                                  \
        {0}, {1}, {3}, {37}, { -1 }                                                                                    \
    }
#define PLANES                                                                                                         \
    {                                                                                                                  \
        {0, 3}, {3, 0}, {1, 1}, {2, 7}, {5, 33}, { -1 }                                                                \
    }

#define LAYER_NORM                                                                                                     \
    "{M: any, N: 97}\ninputs: {x: 'bf16[M, N]', w: 'f32[N]', b: 'f32[N]'}\n"                                           \
    "nodes: {y: 'layer_norm(x, w, b, 1e-5)'}\noutputs: {y: bf16}"
#define SOFTMAX "{M: any, N: 130}\ninputs: {x: 'f16[M, N]'}\nnodes: {y: 'softmax(x, dim=-1)'}\noutputs: {y: f16}"
#define SUM_OF_FIVE                                                                                                    \
    "{B: any, M: any, N: 64}\ninputs: {a: 'f32[B, M, N]', b: 'f32[B, M, N]', c: 'f32[B, M, N]', d: 'f32[B, M, N]', "   \
    "e: 'f32[B, M, N]'}\nnodes: {h: (a + b) * (c - d) + e, r: 'amax(h, dim=-1, keepdim=True)', "                       \
    "s: 'sum(h, dim=[-1, -2], keepdim=True)', y: (h - r) * s}\noutputs: {y: f32}"
#define IN_PLACE                                                                                                       \
    "{M: any, N: 72}\ninputs: {x: 'bf16[M, N]', r: 'bf16[M, N]', w: 'f32[N]'}\n"                                       \
    "nodes: {h: x + r, y: 'rms_norm(h, w, 1e-6)'}\noutputs: {y: {dtype: bf16, inplace: x}, h: {dtype: bf16, "          \
    "inplace: r}}"

static const Case cases[] = {
    /* axes differ */
    {"row_then_plane",
     "{B: any, M: any, N: 96}\ninputs: {x: 'f32[B, M, N]', w: 'f32[N]'}\nnodes: {y: 'rms_norm(x, w, 1e-5)', "
     "m: 'mean(y, dim=[-1, -2], keepdim=True)', z: y - m}\noutputs: {z: f32}",
     NULL, 3, 2, PLANES},
    {"other_axis",
     "{M: any, N: 33}\ninputs: {x: 'bf16[M, N]'}\nnodes: {m: 'amax(abs(x), dim=0)', y: x / (m + 1)}\n"
     "outputs: {y: bf16}",
     NULL,
     0,
     0,
     {{1}, {3}, {37}, {129}, {-1}}},
    {"two_axes",
     "{M: any, N: 48}\ninputs: {x: 'f32[M, N]'}\nnodes: {a: 'sum(x, dim=1, keepdim=True)', b: 'sum(x, dim=0)', "
     "y: x - a * b}\noutputs: {y: f32, b: f32}",
     NULL, 0, 0, ROWS},
    {"norm_then_softmax",
     "{B: any, S: any, N: 40}\ninputs: {x: 'bf16[B, S, N]', w: 'f32[N]'}\n"
     "nodes: {h: 'layer_norm(x, w)', y: 'softmax(h, dim=1)'}\noutputs: {y: bf16}",
     NULL,
     0,
     0,
     {{0, 3}, {1, 1}, {2, 7}, {5, 33}, {-1}}},
    {"reduction_of_reduction",
     "{M: any, N: 50}\ninputs: {x: 'f32[M, N]'}\nnodes: {a: 'sum(x, dim=-1)', b: 'amax(a)'}\noutputs: {b: f32}",
     NULL,
     0,
     0,
     {{1}, {3}, {1000}, {-1}}},
    /* no fusion, or little */
    {"layer_norm_off", LAYER_NORM, "fuse=off", 3, 2, ROWS},
    {"softmax_off", SOFTMAX, "fuse=off", 3, 2, ROWS},
    {"softmax_few_reads", SOFTMAX, "fuse_statements=4", 3, 2, ROWS},
    {"in_place_off", IN_PLACE, "fuse=off", 2, 1, ROWS},
    {"stats_off", "examples/layer_norm_stats.yaml", "fuse=off", 0, 0, {{1}, {5}, {-1}}},
    {"add_norm_off", "examples/add_layer_norm_gelu.yaml", "fuse=off", 0, 0, {{1}, {5}, {-1}}},
    /* stored by bytes */
    {"sum_of_five", SUM_OF_FIVE, NULL, 2, 2, PLANES},
    {"sum_of_five_again", SUM_OF_FIVE, "cut=off", 2, 1, PLANES},
    /* too long for one kernel */
    {"layer_norm_pieces", LAYER_NORM, "cut_statements=9", 0, 0, ROWS},
    {"in_place_pieces", IN_PLACE, "cut_statements=6", 0, 0, ROWS},
    {"causal_pieces",
     "{Q: any, K: any}\ninputs: {s: 'f32[Q, K]'}\nnodes: {keep: 'arange(K) <= arange(Q)[:, None] + (K - Q)', "
     "y: 'softmax(where(keep, s * 0.125, -1e30), dim=-1)'}\noutputs: {y: f32}",
     "cut_statements=8",
     0,
     0,
     {{1, 1}, {3, 3}, {5, 37}, {-1}}},
    /* kinds of what is stored */
    {"bools_and_integers",
     "{M: any, N: 35}\ninputs: {x: 'f32[M, N]', k: 'i32[M, N]'}\nnodes: {p: 'any(x > 2, dim=-1, keepdim=True)', "
     "n: 'sum(k, dim=-1, keepdim=True)', y: 'where(p, x, -x)', z: 'k * n'}\noutputs: {y: f32, z: i64}",
     "fuse=off", 0, 0, ROWS},
    {"doubles",
     "{M: any, N: 35}\ninputs: {x: 'f64[M, N]'}\nnodes: {m: 'mean(x, dim=-1, keepdim=True)', y: x - m}\n"
     "outputs: {y: f64}",
     "fuse=off", 2, 1, ROWS},
    /* in place of each other's inputs: one kernel */
    {"turned",
     "{T: any, H: 33}\ninputs: {q: 'bf16[T, 2*H]', c: 'f32[T, H]', s: 'f32[T, H]'}\n"
     "nodes: {a: 'q[:, :H]', b: 'q[:, H:2*H]', y: a * c - b * s, z: b * c + a * s}\n"
     "outputs: {y: {dtype: bf16, inplace: 'q[:, :H]'}, z: {dtype: bf16, inplace: 'q[:, H:2*H]'}}",
     NULL, 1, 0, ROWS},
    {"swapped_late",
     "{M: any, N: 41}\ninputs: {x: 'f32[M, N]', r: 'f32[M, N]'}\n"
     "nodes: {m: 'mean(x * r, dim=-1, keepdim=True)', y: x + m, z: 'r * amax(m * x, dim=-1, keepdim=True)'}\n"
     "outputs: {y: {dtype: f32, inplace: x}, z: {dtype: f32, inplace: r}}",
     NULL, 1, 0, ROWS},
    /* in place, after other kernels have read */
    {"sum_waits",
     "{M: any, N: 8}\ninputs: {x: 'f32[M, N]', y: 'f32[M]'}\n"
     "nodes: {a: 'amax(x, dim=-1)', b: 'x * y[:, None] - a[:, None]', c: y + a}\n"
     "outputs: {b: {dtype: f32, inplace: x}, c: {dtype: f32, inplace: y}}",
     NULL, 2, 1, ROWS},
    {"sum_waits_for_its_own_kernel",
     "{M: any}\ninputs: {x: 'f32[M, M]', y: 'f32[M]'}\nnodes: {a: 'amax(x + y, dim=-1)', c: y + a}\n"
     "outputs: {c: {dtype: f32, inplace: y}}",
     NULL,
     2,
     1,
     {{1}, {3}, {37}, {-1}}},
    {"view_of_a_sum_waits",
     "{M: any, N: 8}\ninputs: {x: 'f32[M, N]', y: 'f32[M, 1]'}\n"
     "nodes: {c: 'sum(x * y, -1)[:, None]', z: x * c - y}\noutputs: {z: f32, c: {dtype: f32, inplace: y}}",
     NULL, 2, 1, ROWS},
    {"read_of_nobody",
     "{M: any, N: 8}\ninputs: {x: 'f32[M, N]'}\nnodes: {unused: 'x[0]', y: x + 1, also: 'unused * 2'}\n"
     "outputs: {y: {dtype: f32, inplace: x}}",
     NULL, 1, 0, ROWS},
    {"read_before_overwritten",
     "{M: any, N: 41}\ninputs: {x: 'f32[M, N]', r: 'f32[M, N]'}\n"
     "nodes: {h: x + r, m: 'amax(h, dim=0)', y: h - m}\noutputs: {h: {dtype: f32, inplace: r}, y: f32}",
     NULL,
     0,
     0,
     {{1}, {3}, {37}, {-1}}},
};

typedef struct Counts {
    uint32_t programs, launches, several_steps, shared_rooms, failed;
    uint64_t elements;
} Counts;

static const char *full_text(Job *job, const char *name, const char *graph) {
    char *text = ir_format(job, "graph: %s\ndims: %s\n", name, graph);
    for (char *c = text; *c; c++)
        if (*c == '\'') *c = '"';
    return text;
}

static const char *file_text(Job *job, const char *path) {
    FILE *file = fopen(path, "rb");
    Text text = ir_text(job);
    if (!file) return "";
    for (int c = getc(file); c != EOF; c = getc(file)) ir_text_format(&text, "%c", c);
    (void)fclose(file);
    return ir_text_string(&text);
}

static uint32_t count_tmps(const Unit *unit, Counts *counts) {
    uint32_t count = 0;
    for (uint32_t b = 0; b < unit->prog->bufs.count; b++) count += unit->plan->room_of[b] != IR_NONE;
    counts->shared_rooms += unit->plan->rooms.count < count;
    return count;
}

/* Kernels and bufs as the case says, where it does. */
static void check_plan(const Case *test, const DeviceCase *made, Counts *counts) {
    const uint32_t steps = made->unit.plan->steps.count, tmps = count_tmps(&made->unit, counts);
    counts->several_steps += steps > 1;
    if (test->kernels && (steps != test->kernels || tmps != test->tmps)) {
        printf("FAILED %s: %u kernels and %u bufs between them, %u and %u wanted\n", test->name, steps, tmps,
               test->kernels, test->tmps);
        counts->failed++;
    }
}

static void run_case(const Case *test, const DeviceCase *made, const Devices *devices, Random *random, bool reduced,
                     Counts *counts) {
    counts->programs++;
    for (uint32_t d = 0; d < MOST && test->dims[d][0] >= 0; d++) {
        if (reduced && d > 2) break;
        Job *job = ir_job_create(NULL);
        Text why = ir_text(job);
        LaunchTrial trial = {.job = job,
                             .unit = &made->unit,
                             .program = made->program,
                             .module = made->module,
                             .devices = devices->at,
                             .device_count = devices->count,
                             .any = test->dims[d],
                             .random = random,
                             .border = RT_ADDRESS_SANITIZER && !devices->cuda ? 0 : BORDER};
        Status status = launch_trial_run(&trial, &why);
        if (status && !(status == STATUS_USAGE && launch_refuses_dims(ir_text_string(&why)))) {
            printf("FAILED %s with %lld %lld: status %d: %s\n%s\n", test->name, (long long)test->dims[d][0],
                   (long long)test->dims[d][1], (int)status, ir_text_string(&why), made->text);
            counts->failed++;
        }
        counts->launches += trial.launches;
        counts->elements += trial.elements;
        ir_job_free(job);
    }
}

static void add_long_cases(Job *job, Case *all, const char **texts, uint32_t *count) {
    static const Case rows = {"nodes_in_rows", NULL, NULL, 2, 2, {{1}, {5}, {-1}}},
                      alone = {"nodes", NULL, NULL, 2, 1, {{1}, {5}, {-1}}},
                      kernels = {"kernels", NULL, NULL, 40, 0, {{1, 1}, {3, 5}, {-1}}};
    texts[*count] = many_nodes(job, 300, 30);
    all[(*count)++] = rows;
    texts[*count] = many_nodes(job, 300, 0);
    all[(*count)++] = alone;
    texts[*count] = many_kernels(job, 39);
    all[*count] = kernels;
    all[(*count)++].kernels = 0;
}

int main(int argc, char **argv) {
    Devices devices;
    if (!devices_open(&devices, argc, argv)) return 3;
    enum { LONG = 3, COUNT = sizeof cases / sizeof *cases + LONG };
    Random random = {random_seed()};
    Job *job = ir_job_create(NULL);
    Case all[COUNT];
    const char *texts[COUNT];
    DeviceCase *made[COUNT];
    Counts counts = {0};
    uint32_t count = 0;
    for (; count < COUNT - LONG; count++) {
        all[count] = cases[count];
        const char *graph = cases[count].graph;
        texts[count] = *graph == '{' ? full_text(job, cases[count].name, graph) : file_text(job, graph);
    }
    add_long_cases(job, all, texts, &count);
    for (uint32_t i = 0; i < count; i++) {
        made[i] = device_case_create(texts[i], all[i].sets);
        if (made[i]->status) printf("FAILED %s: %s\n", all[i].name, ir_job_report(made[i]->job));
        counts.failed += made[i]->status != STATUS_OK;
        if (!made[i]->status) check_plan(&all[i], made[i], &counts);
    }
    bool built = device_cases_build(made, count, &devices);
    for (uint32_t i = 0; built && i < count; i++)
        if (!made[i]->status)
            run_case(&all[i], made[i], &devices, &random, getenv("NORMGEN_TEST_REDUCED") != NULL, &counts);
    printf("# %u programs, %u of several kernels, %u with bufs that share a place; %u launches, %llu elements\n",
           counts.programs, counts.several_steps, counts.shared_rooms, counts.launches,
           (unsigned long long)counts.elements);
    for (uint32_t i = 0; i < count; i++) device_case_free(made[i], &devices);
    devices_close(&devices);
    ir_job_free(job);
    bool failed = !built || counts.failed || !counts.shared_rooms;
    printf(failed ? "[  FAILED  ] %u\n" : "[  PASSED  ] %u test(s).\n", failed ? counts.failed : counts.programs);
    return failed;
}
