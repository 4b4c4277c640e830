/* Launching a plan on a device that only records: sizes, checks of dims, pointers and overlaps, guards, parameters. The
 * graph and the plan are made here by hand, so that every rule is met on both sides. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/launch.h"

#include <string.h>

/* ---- the recording device ---- */

typedef struct Recorded {
    const char *kernel;
    uint64_t blocks;
    uint32_t threads;
    int64_t words[8]; /* the first bytes of each parameter */
    void *stream;
} Recorded;

struct RtKernel {
    const char *name;
};

typedef struct Recorder {
    RtDevice device;
    RtKernel kernels[8];
    uint32_t kernel_count;
    Recorded launches[8];
    uint32_t launch_count;
    uint32_t param_count;
} Recorder;

static Status record_kernel(RtDevice *device, RtModule *module, const char *name, uint32_t shared_bytes,
                            RtKernel **kernel, Text *why) {
    Recorder *recorder = (Recorder *)device;
    (void)module, (void)shared_bytes, (void)why;
    *kernel = &recorder->kernels[recorder->kernel_count++];
    (*kernel)->name = name;
    return STATUS_OK;
}

static Status record_facts(RtDevice *device, const RtKernel *kernel, RtFacts *facts, Text *why) {
    (void)device, (void)kernel, (void)why;
    *facts = (RtFacts){.max_threads = 1024};
    return STATUS_OK;
}

static Status record_launch(RtDevice *device, const RtLaunch *launch, Text *why) {
    Recorder *recorder = (Recorder *)device;
    Recorded *row = &recorder->launches[recorder->launch_count++];
    (void)why;
    *row = (Recorded){
        .kernel = launch->kernel->name, .blocks = launch->blocks, .threads = launch->threads, .stream = launch->stream};
    for (uint32_t p = 0; p < recorder->param_count; p++)
        memcpy(&row->words[p], launch->params[p], sizeof row->words[p]);
    return STATUS_OK;
}

static const RtDeviceOps record_ops = {
    .name = "recorder", .kernel = record_kernel, .facts = record_facts, .launch = record_launch};

/* ---- the unit: y[M, N] = f(x[M, N] in place or not, bias[N], eps) with a tmp of M floats and dim N = 8 ---- */

enum { COLUMNS = 8, X = 0, BIAS = 1, Y = 2 };

typedef struct Fixture {
    Job *job;
    Unit unit;
    Graph *graph;
    Plan plan;
    Recorder recorder;
    RtProgram *program;
    int64_t *words;
    RtScratch scratch;
    Text why;
} Fixture;

static Tensor tensor(Job *job, const char *name, DType dtype, const Poly *extents, uint8_t rank) {
    Tensor made = {.name = name, .dtype = dtype, .contiguous = true, .inplace = IR_NONE};
    bool overflow = false;
    Poly stride = ir_poly_int(job, 1);
    made.shape.rank = rank;
    for (uint32_t d = rank; d-- > 0;) {
        made.shape.extent[d] = extents[d];
        made.stride[d] = stride;
        stride = ir_poly_mul(job, stride, extents[d], &overflow);
    }
    return made;
}

static Graph *make_graph(Job *job) {
    Graph *graph = ir_graph_create(job, "toy");
    *IR_PUSH(job, &graph->dims) = (Dim){.name = "M", .value = -1, .hint = -1, .max = 1000, .multiple = 1};
    *IR_PUSH(job, &graph->dims) = (Dim){.name = "N", .value = COLUMNS, .hint = -1, .max = -1, .multiple = 1};
    *IR_PUSH(job, &graph->dims) = (Dim){.name = "K", .value = -1, .hint = -1, .max = -1, .multiple = 4};
    Poly m = ir_poly_symbol(job, 0), n = ir_poly_symbol(job, 1);
    *IR_PUSH(job, &graph->inputs) = tensor(job, "x", DTYPE_BF16, (Poly[]){m, n}, 2);
    *IR_PUSH(job, &graph->inputs) = tensor(job, "bias", DTYPE_F32, &n, 1);
    Tensor *y = IR_PUSH(job, &graph->outputs);
    *y = tensor(job, "y", DTYPE_BF16, (Poly[]){m, n}, 2);
    y->inplace = X;
    Tensor *eps = IR_PUSH(job, &graph->scalars);
    *eps = tensor(job, "eps", DTYPE_F32, NULL, 0);
    eps->has_default = true;
    eps->default_float = 0.1;
    uint32_t input = ir_graph_add(job, graph, OP_INPUT, DTYPE_BF16, (Place){0, 0});
    graph->values.at[input].shape = graph->inputs.at[X].shape;
    return graph;
}

static Prog *make_prog(Job *job) {
    Prog *prog = ir_prog_create(job, "toy");
    *IR_PUSH(job, &prog->dims) = (Dim){.name = "K", .value = -1, .hint = -1, .max = -1, .multiple = 4};
    *IR_PUSH(job, &prog->dims) = (Dim){.name = "M", .value = -1, .hint = -1, .max = 1000, .multiple = 1};
    bool overflow = false;
    *IR_PUSH(job, &prog->sizes) =
        ir_poly_mul(job, ir_poly_symbol(job, 1), ir_poly_int(job, COLUMNS), &overflow); /* s0 = 8 M */
    struct {
        const char *name;
        DType dtype;
        BufKind kind;
        uint32_t tensor;
        Size extent, offset;
    } const rows[] = {{"x", DTYPE_BF16, BUF_IN, X, {SIZE_EXPRESSION, 0}, {SIZE_INT, 2}},
                      {"t0", DTYPE_F32, BUF_TMP, IR_NONE, {SIZE_DIM, 1}, {SIZE_INT, 0}},
                      {"t1", DTYPE_F32, BUF_TMP, IR_NONE, {SIZE_DIM, 1}, {SIZE_INT, 0}},
                      {"eps", DTYPE_F32, BUF_SCALAR, 0, {SIZE_INT, 1}, {SIZE_INT, 0}},
                      {"y", DTYPE_BF16, BUF_OUT, 0, {SIZE_EXPRESSION, 0}, {SIZE_INT, 0}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Buf *buf = IR_PUSH(job, &prog->bufs);
        *buf = (Buf){.name = rows[i].name,
                     .dtype = rows[i].dtype,
                     .rank = 1,
                     .kind = rows[i].kind,
                     .tensor = rows[i].tensor,
                     .offset = rows[i].offset,
                     .may_alias = IR_NONE};
        buf->extent[0] = rows[i].extent;
    }
    return prog;
}

static void make_plan(Job *job, Plan *plan) {
    static const uint32_t bufs[] = {0, 1, 2, 3, 4};
    plan->name = "toy";
    Step *step = IR_PUSH(job, &plan->steps);
    step->tile.threads = 128;
    step->units = ir_poly_symbol(job, 1); /* M */
    step->units_per_cta = 4;
    step->part = IR_NONE;
    step->param_count = 7;
    step->params = IR_NEW_ARRAY(job, Param, step->param_count);
    for (uint32_t p = 0; p < 5; p++) step->params[p] = (Param){.kind = PARAM_BUF, .buf = bufs[p]};
    step->params[5] = (Param){.kind = PARAM_SIZE, .size = {SIZE_EXPRESSION, 0}};
    step->params[6] = (Param){.kind = PARAM_SIZE, .size = {SIZE_DIM, 0}};
    static Guard aligned[] = {{GUARD_ALIGNED, 4, {SIZE_INT, 0}, 16}, {GUARD_MULTIPLE, 0, {SIZE_DIM, 1}, 2}};
    static Guard few[] = {{GUARD_AT_MOST, 0, {SIZE_DIM, 1}, 3}};
    step->variant_count = 3;
    step->variants[0] = (Variant){.kernel = "k_aligned", .guard_count = 2, .guards = aligned};
    step->variants[1] = (Variant){.kernel = "k_few", .guard_count = 1, .guards = few};
    step->variants[2] = (Variant){.kernel = "k_any"};
    static uint32_t room_of[] = {IR_NONE, 0, 1, IR_NONE, IR_NONE};
    plan->room_of = room_of;
    for (uint32_t room = 0; room < 2; room++) {
        IR_PUSH(job, &plan->rooms);
        Poly bytes = ir_poly_int(job, 4);
        bool overflow = false;
        *IR_PUSH(job, &plan->rooms.at[room].sizes) =
            (RoomSize){.bytes = ir_poly_mul(job, bytes, ir_poly_symbol(job, 1), &overflow)};
    }
}

static int setup(void **state) {
    Job *job = ir_job_create(NULL);
    Fixture *fixture = IR_NEW(job, Fixture);
    fixture->job = job;
    fixture->graph = make_graph(job);
    make_plan(job, &fixture->plan);
    fixture->unit =
        (Unit){.graph = fixture->graph, .expanded = fixture->graph, .prog = make_prog(job), .plan = &fixture->plan};
    fixture->recorder.device.ops = &record_ops;
    fixture->recorder.param_count = 7;
    fixture->program = rt_program_create(job, &fixture->unit);
    fixture->words = IR_NEW_ARRAY(job, int64_t, fixture->program->scratch_words);
    fixture->why = ir_text(job);
    Status status = rt_program_load(fixture->program, &fixture->recorder.device, NULL, &fixture->why);
    *state = fixture;
    return status != STATUS_OK;
}

static int teardown(void **state) {
    ir_job_free(((Fixture *)*state)->job);
    return 0;
}

/* x and y far apart; addresses are never read by the recorder. */
static void *const apart[] = {(void *)0x100000, (void *)0x200000, (void *)0x300000};

/* What a test does not say: tensors apart, workspace enough. */
static ng_args fill(ng_args args) {
    args.size = sizeof args;
    if (!args.tensors) args.tensors = apart;
    if (!args.workspace_bytes) args.workspace = (void *)0x400000, args.workspace_bytes = 1 << 20;
    return args;
}
#define ARGS(...) fill((ng_args){__VA_ARGS__})
#define WORKSPACE(address, count) .workspace = (void *)(address), .workspace_bytes = (count)

static Status check(Fixture *fixture, ng_args args) {
    fixture->why = ir_text(fixture->job);
    Status said = rt_program_check(fixture->program, &args, fixture->words, &fixture->scratch, &fixture->why);
    Status quiet = rt_program_check(fixture->program, &args, fixture->words, &fixture->scratch, NULL);
    assert_int_equal(said, quiet);
    assert_int_equal(said != STATUS_OK, fixture->why.count > 0);
    return said;
}

#define assert_says(fixture, words) assert_non_null(strstr(ir_text_string(&(fixture)->why), (words)))

static void test_dims(void **state) {
    Fixture *fixture = *state;
    struct {
        int64_t m, k;
        const char *words; /* NULL: legal */
    } const rows[] = {{0, 0, NULL},
                      {1000, 4, NULL},
                      {-1, 0, "dim M is -1"},
                      {1001, 0, "its max"},
                      {1, 5, "no multiple"},
                      {1, INT64_MIN, "at least 0"},
                      {1, IR_MAX_EXTENT, "below 2^62"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int64_t dims[] = {rows[i].m, rows[i].k};
        assert_int_equal(check(fixture, ARGS(.dims = dims)), rows[i].words ? STATUS_USAGE : STATUS_OK);
        if (rows[i].words) assert_says(fixture, rows[i].words);
    }
    assert_int_equal(check(fixture, ARGS(.dims = NULL)), STATUS_USAGE);
    assert_says(fixture, "dims is NULL");
}

static void test_pointers(void **state) {
    Fixture *fixture = *state;
    const int64_t dims[] = {5, 4}, none[] = {0, 4};
    struct {
        uintptr_t x, bias, y;
        const char *words;
    } const rows[] = {
        {0x1000, 0x2000, 0x3000, NULL},
        {0x1002, 0x2004, 0x3006, NULL},
        {0x1001, 0x2000, 0x3000, "x is no multiple of 2 bytes"},
        {0x1000, 0x2002, 0x3000, "bias is no multiple of 4 bytes"},
        {0, 0x2000, 0x3000, "pointer of x is NULL"},
        {0x1000, 0x2000, 0x1000, NULL},                         /* in place */
        {0x1000, 0x2000, 0x1050, NULL},                         /* right behind: 5 rows of 16 bytes */
        {0x1050, 0x2000, 0x1000, NULL},                         /* right before */
        {0x1000, 0x2000, 0x104e, "overlaps its inplace input"}, /* one element shared */
        {0x1000, 0x2000, 0x1010, "overlaps its inplace input"},
        {0x1000, 0x2000, 0x2000, "overlaps input bias"},
        {0x1000, 0x2000, 0x201e, "overlaps input bias"},
        {0x1000, 0x2000, 0x2020, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *const tensors[] = {(void *)rows[i].x, (void *)rows[i].bias, (void *)rows[i].y};
        Status status = check(fixture, ARGS(.dims = dims, .tensors = tensors));
        assert_int_equal(status, rows[i].words ? STATUS_USAGE : STATUS_OK);
        if (rows[i].words) assert_says(fixture, rows[i].words);
    }
    void *const nothing[] = {NULL, (void *)0x2000, NULL}; /* without elements a pointer is not looked at */
    assert_int_equal(check(fixture, ARGS(.dims = none, .tensors = nothing)), STATUS_OK);
}

/* Columns of one wider array side by side, and strides that put two elements in one place. */
static void test_strides(void **state) {
    Fixture *fixture = *state;
    Job *job = fixture->job;
    const int64_t dims[] = {5, 4};
    Tensor *x = &fixture->graph->inputs.at[X], *y = &fixture->graph->outputs.at[0];
    x->stride[0] = y->stride[0] = ir_poly_int(job, 16);
    x->contiguous = y->contiguous = false;
    void *const beside[] = {(void *)0x1000, (void *)0x2000, (void *)0x1010};
    assert_int_equal(check(fixture, ARGS(.dims = dims, .tensors = beside)), STATUS_OK);
    void *const before[] = {(void *)0x1010, (void *)0x2000, (void *)0x1000};
    assert_int_equal(check(fixture, ARGS(.dims = dims, .tensors = before)), STATUS_OK);
    void *const shared[] = {(void *)0x1000, (void *)0x2000, (void *)0x100e};
    assert_int_equal(check(fixture, ARGS(.dims = dims, .tensors = shared)), STATUS_USAGE);
    x->stride[0] = ir_poly_int(job, 24); /* same pointer, other strides: not in place */
    void *const same[] = {(void *)0x1000, (void *)0x2000, (void *)0x1000};
    assert_int_equal(check(fixture, ARGS(.dims = dims, .tensors = same)), STATUS_USAGE);
    x->stride[0] = y->stride[0] = ir_poly_int(job, 7); /* of 8 columns */
    assert_int_equal(check(fixture, ARGS(.dims = dims)), STATUS_USAGE);
    assert_says(fixture, "two elements in one place");
    y->stride[0] = ir_poly_int(job, -8); /* from the last row up */
    assert_int_equal(check(fixture, ARGS(.dims = dims)), STATUS_OK);
    void *const low[] = {(void *)0x1000, (void *)0x2000, (void *)0x1080}; /* its rows reach down to 0x1040 */
    x->stride[0] = ir_poly_int(job, 8);
    assert_int_equal(check(fixture, ARGS(.dims = dims, .tensors = low)), STATUS_USAGE);
}

static void test_slice_in_place(void **state) {
    Fixture *fixture = *state;
    Job *job = fixture->job;
    const int64_t dims[] = {5, 4};
    Tensor *y = &fixture->graph->outputs.at[0];
    y->shape.extent[1] = ir_poly_int(job, 4);
    y->inplace_item_count = 2;
    y->inplace_items = IR_NEW_ARRAY(job, Item, 2);
    y->inplace_items[0] = (Item){ITEM_RANGE, ir_poly_int(job, 0), ir_poly_symbol(job, 0), 0};
    y->inplace_items[1] = (Item){ITEM_RANGE, ir_poly_int(job, 4), ir_poly_int(job, 8), 0};
    fixture->program = rt_program_create(job, &fixture->unit);
    fixture->recorder.kernel_count = 0;
    assert_int_equal(rt_program_load(fixture->program, &fixture->recorder.device, NULL, &fixture->why), STATUS_OK);
    void *const slice[] = {(void *)0x1000, (void *)0x2000, (void *)0x1008};
    assert_int_equal(check(fixture, ARGS(.dims = dims, .tensors = slice)), STATUS_OK);
    void *const whole[] = {(void *)0x1000, (void *)0x2000, (void *)0x1000};
    assert_int_equal(check(fixture, ARGS(.dims = dims, .tensors = whole)), STATUS_USAGE);
    assert_says(fixture, "inplace input");
}

static void test_workspace(void **state) {
    Fixture *fixture = *state;
    const int64_t dims[] = {65, 4}; /* two buffers of 260 bytes, each 512 with its rounding */
    assert_int_equal(check(fixture, ARGS(.dims = dims, WORKSPACE(0x400000, 1024))), STATUS_OK);
    assert_int_equal(fixture->scratch.workspace_bytes, 1024);
    assert_int_equal(check(fixture, ARGS(.dims = dims, WORKSPACE(0x400000, 1023))), STATUS_USAGE);
    assert_says(fixture, "1024 are needed");
    assert_int_equal(check(fixture, ARGS(.dims = dims, WORKSPACE(0x400080, 1024))), STATUS_USAGE);
    assert_says(fixture, "256");
    assert_int_equal(check(fixture, ARGS(.dims = dims, WORKSPACE(NULL, 1024))), STATUS_USAGE);
    int64_t last = 0;
    for (int64_t m = 0; m <= 1000; m++) { /* never grows when a dim shrinks */
        const int64_t some[] = {m, 4};
        assert_int_equal(rt_program_sizes(fixture->program, some, fixture->words, &fixture->scratch, NULL), STATUS_OK);
        assert_true(fixture->scratch.workspace_bytes >= last);
        last = fixture->scratch.workspace_bytes;
    }
}

static Recorded *launch(Fixture *fixture, int64_t m, uintptr_t y, const ng_scalar *scalars) {
    const int64_t dims[] = {m, 12};
    void *const tensors[] = {(void *)0x1000, (void *)0x2000, (void *)y};
    ng_args args = ARGS(.dims = dims, .tensors = tensors, .scalars = scalars, .stream = (void *)0x77);
    fixture->recorder.launch_count = 0;
    assert_int_equal(rt_program_launch(fixture->program, &args, fixture->words, NULL, NULL, NULL), STATUS_OK);
    return fixture->recorder.launch_count ? &fixture->recorder.launches[0] : NULL;
}

static void test_launch(void **state) {
    Fixture *fixture = *state;
    assert_null(launch(fixture, 0, 0x8000, NULL)); /* an empty grid is not launched */
    assert_string_equal(launch(fixture, 6, 0x8000, NULL)->kernel, "k_aligned");
    assert_string_equal(launch(fixture, 5, 0x8000, NULL)->kernel, "k_any");     /* no multiple of 2 */
    assert_string_equal(launch(fixture, 6, 0x8008, NULL)->kernel, "k_any");     /* y misaligned */
    assert_string_equal(launch(fixture, 2, 0x8008, NULL)->kernel, "k_few");     /* the second match */
    assert_string_equal(launch(fixture, 2, 0x8000, NULL)->kernel, "k_aligned"); /* the first match wins */

    const Recorded *row = launch(fixture, 70, 0x8000, NULL);
    assert_int_equal(row->blocks, 18); /* ceil(70 / 4) */
    assert_int_equal(row->threads, 128);
    assert_ptr_equal(row->stream, (void *)0x77);
    assert_int_equal(row->words[0], 0x1004); /* x, two bf16 on */
    assert_int_equal(row->words[1], 0x400000);
    assert_int_equal(row->words[2], 0x400000 + 512);
    assert_int_equal(row->words[4], 0x8000);
    assert_int_equal(row->words[5], 560); /* s0 */
    assert_int_equal(row->words[6], 12);  /* K, first of the Prog's dims and last of the graph's */
    float eps;
    memcpy(&eps, &row->words[3], sizeof eps);
    assert_true(eps == 0.1f);
    row = launch(fixture, 70, 0x8000, &(ng_scalar){.f32 = 2.5f});
    memcpy(&eps, &row->words[3], sizeof eps);
    assert_true(eps == 2.5f);
}

static void test_grid(void **state) {
    Fixture *fixture = *state;
    fixture->graph->dims.at[0].max = -1;
    fixture->plan.steps.at[0].units_per_cta = 1;
    const int64_t most[] = {0x7fffffff, 4}, more[] = {0x80000000ll, 4}, far[] = {(int64_t)1 << 60, 4};
    const size_t room = (size_t)1 << 50;
    void *const wide[] = {(void *)0x100000000000, (void *)0x2000, (void *)0x200000000000};
    assert_int_equal(check(fixture, ARGS(.dims = most, .tensors = wide, WORKSPACE(0x300000000000, room))), STATUS_OK);
    assert_int_equal(check(fixture, ARGS(.dims = more, .tensors = wide, WORKSPACE(0x300000000000, room))),
                     STATUS_LAUNCH);
    assert_says(fixture, "2147483648 CTAs");
    assert_int_equal(check(fixture, ARGS(.dims = far, .tensors = wide, WORKSPACE(0x300000000000, room))), STATUS_USAGE);
    assert_says(fixture, "2^62");
}

/* amax of nothing, and slices that end past their input, since the end moves or since the extent does. */
static void test_values(void **state) {
    Fixture *fixture = *state;
    Job *job = fixture->job;
    Graph *graph = fixture->graph;
    uint32_t extreme = ir_graph_reduce(job, graph, REDUCTION_MAX, 0, 1, false, (Place){0, 0}); /* over M */
    graph->values.at[extreme].name = "top";
    Item items[] = {{ITEM_RANGE, ir_poly_int(job, 0), ir_poly_symbol(job, 2), 0}, /* x[:K] */
                    {ITEM_RANGE, ir_poly_int(job, 0), ir_poly_symbol(job, 1), 0}};
    uint32_t slice = ir_graph_index(job, graph, 0, items, 2, (Place){0, 0});
    graph->values.at[slice].name = "head";
    items[0].stop = ir_poly_int(job, 2); /* x[:2]: the end stays, the extent moves */
    slice = ir_graph_index(job, graph, 0, items, 2, (Place){0, 0});
    graph->values.at[slice].name = "pair";
    fixture->program = rt_program_create(job, &fixture->unit);
    fixture->recorder.kernel_count = 0;
    assert_int_equal(rt_program_load(fixture->program, &fixture->recorder.device, NULL, &fixture->why), STATUS_OK);
    const int64_t empty[] = {0, 0}, short_of[] = {3, 4}, enough[] = {4, 4}, one[] = {1, 0};
    assert_int_equal(check(fixture, ARGS(.dims = empty)), STATUS_USAGE);
    assert_says(fixture, "amax of no elements");
    assert_int_equal(check(fixture, ARGS(.dims = short_of)), STATUS_USAGE);
    assert_says(fixture, "node head takes 0:4 of an extent of 3");
    assert_int_equal(check(fixture, ARGS(.dims = one)), STATUS_USAGE);
    assert_says(fixture, "node pair takes 0:2 of an extent of 1");
    assert_int_equal(check(fixture, ARGS(.dims = enough)), STATUS_OK);
}

static void test_no_default(void **state) {
    Fixture *fixture = *state;
    const int64_t dims[] = {5, 4};
    fixture->graph->scalars.at[0].has_default = false;
    assert_int_equal(check(fixture, ARGS(.dims = dims)), STATUS_USAGE);
    assert_says(fixture, "eps has no default");
    assert_int_equal(check(fixture, ARGS(.dims = dims, .scalars = &(ng_scalar){.f32 = 1})), STATUS_OK);
    assert_int_equal(check(fixture, ARGS(.dims = dims, .scalars = &(ng_scalar){.f32 = 1}, .flags = 1)), STATUS_USAGE);
    fixture->program->device = NULL;
    assert_int_equal(check(fixture, ARGS(.dims = dims)), STATUS_UNAVAILABLE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_dims, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pointers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_strides, setup, teardown),
        cmocka_unit_test_setup_teardown(test_slice_in_place, setup, teardown),
        cmocka_unit_test_setup_teardown(test_workspace, setup, teardown),
        cmocka_unit_test_setup_teardown(test_launch, setup, teardown),
        cmocka_unit_test_setup_teardown(test_grid, setup, teardown),
        cmocka_unit_test_setup_teardown(test_values, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_default, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
