/* schedule: tiles on both sides of their breakpoints, forced knobs, crossings, guards, depth, what it refuses. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/generate.h"

#include <string.h>

static int setup(void **state) {
    *state = ir_job_create(NULL);
    return *state == NULL;
}

static int teardown(void **state) {
    ir_job_free(*state);
    return 0;
}

static const Step *only_step(Job *job, const char *path, const char *defines, const char *sets) {
    Unit *unit = IR_NEW(job, Unit);
    if (generate_file(job, unit, path, defines, sets) != STATUS_OK) fail_msg("%s", ir_job_report(job));
    assert_int_equal(unit->plan->steps.count, 1);
    return &unit->plan->steps.at[0];
}

static void test_tiles(void **state) {
    static const struct {
        const char *example, *defines;
        Strategy strategy;
        int row_threads, rows, vector, chunks;
    } cases[] = {
        {"rms_norm", "N=1", STRATEGY_POINTWISE, 256, 1, 8, 1}, /* nothing is left to reduce */
        {"rms_norm", "N=2", STRATEGY_ROW_REGISTERS, 1, 128, 2, 1},
        {"rms_norm", "N=7", STRATEGY_ROW_REGISTERS, 8, 16, 1, 1},
        {"rms_norm", "N=33", STRATEGY_ROW_REGISTERS, 32, 2, 1, 2},
        {"rms_norm", "N=64", STRATEGY_ROW_REGISTERS, 16, 8, 4, 1},
        {"rms_norm", "N=128", STRATEGY_ROW_REGISTERS, 32, 2, 4, 1},
        {"rms_norm", "N=384", STRATEGY_ROW_REGISTERS, 32, 2, 4, 3},
        {"rms_norm", "N=760", STRATEGY_ROW_REGISTERS, 64, 1, 4, 3},
        {"rms_norm", "N=1017", STRATEGY_ROW_REGISTERS, 64, 1, 1, 16},
        {"rms_norm", "N=1025", STRATEGY_ROW_REGISTERS, 96, 1, 1, 11},
        {"rms_norm", "N=4096", STRATEGY_ROW_REGISTERS, 256, 1, 4, 4},
        {"rms_norm", "N=4100", STRATEGY_ROW_REGISTERS, 160, 1, 4, 7},
        {"rms_norm", "N=16384", STRATEGY_ROW_REGISTERS, 512, 1, 4, 8},
        {"rms_norm", "N=65536", STRATEGY_ROW_LOOP, 512, 1, 4, 4},
        {"layer_norm", "N=1024", STRATEGY_ROW_REGISTERS, 64, 1, 4, 4},
        {"layer_norm", "N=2048", STRATEGY_ROW_REGISTERS, 64, 1, 4, 8},
        {"layer_norm", "N=4096", STRATEGY_ROW_REGISTERS, 128, 1, 4, 8},
        {"softmax", "N=64", STRATEGY_ROW_REGISTERS, 8, 16, 8, 1},
        {"softmax", "N=256", STRATEGY_ROW_REGISTERS, 32, 2, 8, 1},
        {"softmax", "N=4096", STRATEGY_ROW_REGISTERS, 256, 1, 8, 2},
        {"softmax", "N=4096 E=f32", STRATEGY_ROW_REGISTERS, 256, 1, 4, 4},
        {"bias_gelu", "N=3072", STRATEGY_POINTWISE, 256, 1, 4, 1},
        {"bias_gelu", "N=3", STRATEGY_POINTWISE, 256, 1, 1, 1},
    };
    Job *job = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const Step *step = only_step(job, ir_format(job, "examples/%s.yaml", cases[i].example), cases[i].defines, NULL);
        const Tile *tile = &step->tile;
        if (step->strategy != cases[i].strategy || tile->row_threads != cases[i].row_threads ||
            tile->rows != cases[i].rows || tile->vector != cases[i].vector || tile->chunks != cases[i].chunks)
            fail_msg("%s %s: %s row_threads=%d rows=%d vector=%d chunks=%d", cases[i].example, cases[i].defines,
                     gen_strategy(step->strategy)->name, tile->row_threads, tile->rows, tile->vector, tile->chunks);
        assert_int_equal(tile->threads, tile->row_threads * tile->rows);
        assert_int_equal(step->variant_count, tile->vector > 1 ? 2 : 1);
    }
}

/* Phases of costly work are loops of a few chunks a trip, which divide the tile's; all others are unrolled. */
static void test_unrolling(void **state) {
    static const struct {
        const char *example, *defines, *sets;
        int unroll[3]; /* 0: there is no such phase */
    } cases[] = {
        {"layer_norm", "N=16384", NULL, {8, 8, 8}},
        {"softmax", "N=1024", NULL, {2, 2, 2}},
        {"softmax", "N=16384", NULL, {4, 4, 4}},
        {"add_layer_norm_gelu", "N=384", NULL, {3, 3, 3}},
        {"add_layer_norm_gelu", "N=1024", NULL, {4, 4, 2}},
        {"add_layer_norm_gelu", "N=16384", NULL, {8, 8, 2}},
        {"add_layer_norm_gelu", "N=1017", NULL, {16, 16, 8}},
        {"add_layer_norm_gelu", "N=896", "row_threads=32", {7, 7, 1}},
        {"add_layer_norm_gelu", "N=1024", "strategy=row_loop", {4, 2}},
        {"layer_norm", "N=1024", "strategy=row_loop", {4, 4}},
        {"layer_norm", "N=1024", "strategy=row_loop pair=off", {4, 4, 4}},
        {"softmax", "N=16384", "strategy=row_loop", {2, 2}},
    };
    Job *job = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = ir_format(job, "examples/%s.yaml", cases[i].example);
        const Step *step = only_step(job, path, cases[i].defines, cases[i].sets);
        assert_int_equal(step->phase_count, cases[i].unroll[2] ? 3 : 2);
        for (uint32_t q = 0; q < step->phase_count; q++)
            if (step->phases[q].unroll != cases[i].unroll[q])
                fail_msg("%s %s: phase %u has %d of %d chunks a trip", cases[i].example, cases[i].defines, q,
                         step->phases[q].unroll, step->tile.chunks);
    }
}

static void test_forced(void **state) {
    Job *job = *state;
    const char *path = "examples/layer_norm.yaml";
    const Step *step = only_step(job, path, "N=768", "row_threads=96 rows=2 vector=2 min_ctas=3");
    assert_int_equal(step->tile.row_threads, 96);
    assert_int_equal(step->tile.rows, 2);
    assert_int_equal(step->tile.vector, 2);
    assert_int_equal(step->tile.chunks, 4);
    assert_int_equal(step->tile.min_ctas, 3);
    step = only_step(job, path, "N=768", "strategy=row_loop chunks=2 row_threads=32");
    assert_int_equal(step->strategy, STRATEGY_ROW_LOOP);
    assert_int_equal(step->tile.chunks, 2);
    /* a kernel's own setting goes before that of all, whatever their order */
    step = only_step(job, path, "N=768", "f0.row_threads=128 row_threads=64");
    assert_int_equal(step->tile.row_threads, 128);
    step = only_step(job, "examples/bias_gelu.yaml", "N=768", "threads=128 chunks=4 vector=2");
    assert_int_equal(step->units_per_cta, 128 * 4 * 2);
}

static void test_impossible(void **state) {
    static const struct {
        const char *sets, *why;
    } cases[] = {
        {"row_threads=48", "neither 1, 2, 4, 8, 16, 32 nor a multiple of 32"},
        {"vector=3", "no power of two"},
        {"vector=16", "32 bytes"},
        {"rows=32", "at most 1024 threads"},
        {"chunks=1 row_threads=32", "shorter than the row"},
        {"strategy=pointwise", "works by rows"},
        {"f0.strategy=column", "works by rows, as row_registers or row_loop"},
        {"f0.strategy=row_split", "--set split=all"},
        {"min_ctas=64", "at most 32"},
        {"row_threads=2", "at most 256 elements"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Job *job = ir_job_create(NULL);
        Unit unit;
        assert_int_equal(generate_file(job, &unit, "examples/layer_norm.yaml", "N=768", cases[i].sets),
                         STATUS_NOT_COMPILED);
        if (!strstr(ir_job_report(job), cases[i].why)) fail_msg("%s: %s", cases[i].sets, ir_job_report(job));
        ir_job_free(job);
    }
    Job *job = *state;
    Unit unit;
    assert_int_equal(generate_file(job, &unit, "examples/layer_norm.yaml", NULL, "row_treads=32"), STATUS_USAGE);
    assert_non_null(strstr(ir_job_report(job), "did you mean 'row_threads'?"));
}

static uint32_t find_stmt(const Nest *nest, Op op, const char *buf, const Prog *prog) {
    for (uint32_t i = 0; i < nest->stmts.count; i++) {
        const Stmt *stmt = &nest->stmts.at[i];
        if (stmt->op != op) continue;
        if (!buf || strcmp(prog->bufs.at[nest->accesses.at[stmt->access].buf].name, buf) == 0) return i;
    }
    fail_msg("no such statement");
    return 0;
}

static uint32_t phase_storing(const Step *step, uint32_t store) {
    for (uint32_t q = 0; q < step->phase_count; q++)
        for (uint32_t i = 0; i < step->phases[q].stores.count; i++)
            if (step->phases[q].stores.at[i] == store) return q;
    return IR_NONE;
}

/* A sum written in place leaves early where registers hold what was read, and last where it is read again. */
static void test_in_place(void **state) {
    Job *job = *state;
    for (int loop = 0; loop < 2; loop++) {
        Unit unit;
        const char *sets = loop ? "strategy=row_loop" : NULL;
        assert_int_equal(generate_file(job, &unit, "examples/add_rms_norm.yaml", NULL, sets), STATUS_OK);
        const Step *step = &unit.plan->steps.at[0];
        const Nest *nest = &unit.prog->nests.at[step->nest];
        uint32_t load = find_stmt(nest, OP_LOAD, "residual", unit.prog),
                 store = find_stmt(nest, OP_STORE, "h", unit.prog);
        assert_int_equal(phase_storing(step, store), loop ? 1 : 0);
        assert_int_equal(step->crossing[load], loop ? CROSS_REREAD : CROSS_KEEP_RAW);
        assert_false(step->forms[nest->stmts.at[load].access].constant);
        assert_true(step->forms[nest->stmts.at[find_stmt(nest, OP_LOAD, "x", unit.prog)].access].constant);
    }
}

/* What only the last phase reads is loaded there; costly work is kept, cheap work done again. */
static void test_crossings(void **state) {
    Job *job = *state;
    Unit unit;
    assert_int_equal(generate_file(job, &unit, "examples/layer_norm.yaml", NULL, NULL), STATUS_OK);
    const Step *step = &unit.plan->steps.at[0];
    const Nest *nest = &unit.prog->nests.at[0];
    assert_int_equal(step->phase_count, 3);
    assert_int_equal(step->phases[0].loads.count, 1);
    assert_int_equal(step->phases[1].loads.count, 0);
    assert_int_equal(step->phases[2].loads.count, 2);
    assert_int_equal(step->crossing[find_stmt(nest, OP_SUB, NULL, NULL)], CROSS_RECOMPUTE);
    assert_int_equal(generate_file(job, &unit, "examples/softmax.yaml", NULL, NULL), STATUS_OK);
    step = &unit.plan->steps.at[0];
    assert_int_equal(step->crossing[find_stmt(&unit.prog->nests.at[0], OP_EXP, NULL, NULL)], CROSS_KEEP);
    assert_int_equal(step->slice_count, step->tile.row_threads > 32 ? 2 : 0);
}

static void test_depth(void **state) {
    Job *job = *state;
    const Step *step = only_step(job, "examples/rms_norm.yaml", "N=4096", NULL);
    uint32_t depth = gen_chain_length(&step->chain, NULL, NULL, NULL);
    assert_int_equal(depth, 16 + 5 + 8); /* a thread's elements, a warp's butterfly, the warps */
    step = only_step(job, "examples/rms_norm.yaml", "N=4096", "strategy=row_loop row_threads=32");
    assert_int_equal(gen_chain_length(&step->chain, NULL, NULL, NULL), 128 + 5);
}

static const char rows_graph[] = "graph: rows\n"
                                 "dims: {M: any, N: any}\n"
                                 "inputs: {x: \"bf16[M, N]\"}\n"
                                 "nodes: {y: \"softmax(x, dim=-1)\"}\n"
                                 "outputs: {y: bf16}\n";

/* Rows whose length is known at launch ask for a multiple there. */
static void test_guards(void **state) {
    Job *job = *state;
    Unit unit;
    if (generate_text(job, &unit, rows_graph, NULL, NULL) != STATUS_OK) fail_msg("%s", ir_job_report(job));
    const Step *step = &unit.plan->steps.at[0];
    assert_int_equal(step->strategy, STRATEGY_ROW_LOOP);
    assert_true(step->column64);
    assert_int_equal(step->variant_count, 2);
    uint32_t aligned = 0, multiple = 0;
    for (uint32_t g = 0; g < step->variants[0].guard_count; g++) {
        const Guard *guard = &step->variants[0].guards[g];
        assert_int_equal(guard->number, guard->kind == GUARD_ALIGNED ? 16 : 8);
        *(guard->kind == GUARD_ALIGNED ? &aligned : &multiple) += 1;
    }
    assert_int_equal(aligned, 2);
    assert_int_equal(multiple, 1);
    assert_int_equal(step->variants[1].guard_count, 0);
}

/* The last axis of what no row shares is open: no CTA is without an access, and none is missing. */
static void test_grid(void **state) {
    static const char graph[] = "graph: grid\ndims: {B: any, F: any}\ninputs: {x: \"bf16[B, 3, F]\", b: \"f32[F]\"}\n"
                                "nodes: {y: x + b, s: \"sum(x, dim=0)\"}\noutputs: {y: bf16, s: f32}\n";
    static const int64_t extents[] = {0, 1, 3, 4, 5, 7, 8, 9, 255, 256, 257, 1023, 1024, 1025, 4096, 65537};
    const size_t count = sizeof extents / sizeof *extents;
    Job *job = *state;
    for (uint32_t vector = 1; vector <= 8; vector *= 2) {
        Unit unit;
        assert_int_equal(generate_text(job, &unit, graph, NULL, ir_format(job, "vector=%u", vector)), STATUS_OK);
        for (uint32_t s = 0; s < unit.plan->steps.count; s++) {
            const Step *step = &unit.plan->steps.at[s];
            bool pointwise = step->strategy == STRATEGY_POINTWISE;
            int64_t beside = pointwise ? step->tile.threads * step->tile.chunks : step->tile.row_threads;
            for (size_t i = 0; i < count * count; i++) {
                const int64_t dims[] = {extents[i / count], extents[i % count]}, parts[] = {1, 1};
                int64_t run = pointwise ? dims[1] : 3 * dims[1], tiles; /* the sum's kept axes are merged */
                int64_t accesses = (run + step->tile.vector - 1) / step->tile.vector * (pointwise ? 3 * dims[0] : 1);
                assert_true(gen_step_tiles(step, unit.prog, dims, parts, &tiles));
                if (tiles != (accesses + beside - 1) / beside)
                    fail_msg("%s: %d tiles of %d accesses hold %d", gen_strategy(step->strategy)->name, (int)tiles,
                             (int)beside, (int)accesses);
            }
        }
    }
}

static bool told(const Plan *plan, const char *text) {
    for (uint32_t i = 0; i < plan->choices.count; i++)
        if (strstr(plan->choices.at[i].text, text)) return true;
    return false;
}

/* Several axes a row, of which the last is open: accesses end within it, unless it is promised to be a multiple. */
static void test_open_extent(void **state) {
    static const char graph[] =
        "graph: open\ndims: {B: any, H: any, W: %s}\ninputs: {x: \"f16[B, 8, H, W]\", w: \"f32[8]\"}\n"
        "nodes: {y: \"(x - mean(x, dim=[1, 2, 3], keepdim=True)) * w[:, None, None]\"}\n"
        "outputs: {y: f16}\n";
    static const struct {
        const char *width;
        int vector;
        const char *text; /* told; NULL: nothing of extents */
    } cases[] = {{"any", 1, "vector=1: the extent H*W is known at launch only; give it a multiple or --fix it"},
                 {"{multiple: 4}", 4, "vector=4: the extent H*W is known"},
                 {"{multiple: 12}", 4, "vector=4: the extent H*W is known"},
                 {"{multiple: 24, max: 48}", 8, NULL}};
    Job *job = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Unit unit;
        assert_int_equal(generate_text(job, &unit, ir_format(job, graph, cases[i].width), NULL, NULL), STATUS_OK);
        assert_int_equal(unit.plan->steps.count, 1);
        const Step *step = &unit.plan->steps.at[0];
        assert_int_equal(step->tile.vector, cases[i].vector);
        assert_true(told(unit.plan, cases[i].text ? cases[i].text : "the extent") == (cases[i].text != NULL));
        assert_int_equal(step->variant_count, cases[i].vector > 1 ? 2 : 1);
        for (uint32_t g = 0; g < step->variants[0].guard_count; g++)
            assert_int_equal(step->variants[0].guards[g].kind, GUARD_ALIGNED); /* the rest is promised */
    }
}

/* Several axes a row, of which the last is a number that has no whole accesses. */
static void test_odd_extent(void **state) {
    static const char graph[] = "graph: odd\ndims: {M: any, W: %d}\n"
                                "inputs: {x: {dtype: f16, shape: [M, 8, W], strides: [8*W + 8, W + 1, 1]}}\n"
                                "nodes: {y: 'x - mean(x, [1, 2], True)'}\noutputs: {y: f16}\n";
    static const struct {
        int width, vector;
        const char *text; /* told; NULL: nothing of extents */
    } cases[] = {{5, 1, "vector=1: the extent 5 is no multiple of 2"},
                 {6, 2, "vector=2: the extent 6 is no multiple of 4"},
                 {12, 4, "vector=4: the extent 12 is no multiple of 8"},
                 {24, 8, NULL}};
    Job *job = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Unit unit;
        assert_int_equal(generate_text(job, &unit, ir_format(job, graph, cases[i].width), NULL, NULL), STATUS_OK);
        assert_int_equal(unit.plan->steps.at[0].tile.vector, cases[i].vector);
        assert_true(told(unit.plan, cases[i].text ? cases[i].text : "the extent") == (cases[i].text != NULL));
    }
}

/* A stride that is a number and no whole access: rows are dealt to threads as with a stride given at launch, without
 * wide accesses; where nothing is added up the accesses are narrower instead. */
static void test_number_stride(void **state) {
    static const char graph[] = "graph: padded\ndims: {M: any, N: 384, LD: %s}\n"
                                "inputs: {x: {dtype: bf16, shape: [M, N], strides: [LD, 1]}}\n"
                                "nodes: {y: '%s'}\noutputs: {y: bf16}\n";
    static const struct {
        const char *stride, *node;
        int vector;
        const char *text; /* told; NULL: wide accesses */
    } cases[] = {{"any", "x - mean(x, -1, True)", 8, NULL},
                 {"392", "x - mean(x, -1, True)", 8, NULL},
                 {"388", "x - mean(x, -1, True)", 8, "one element each, not 8: a stride is no multiple of it"},
                 {"391", "x - mean(x, -1, True)", 8, "one element each, not 8: a stride is no multiple of it"},
                 {"388", "exp(x)", 4, NULL},
                 {"391", "exp(x)", 1, NULL}};
    Job *job = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Unit unit;
        const char *text = ir_format(job, graph, cases[i].stride, cases[i].node);
        assert_int_equal(generate_text(job, &unit, text, NULL, NULL), STATUS_OK);
        const Step *step = &unit.plan->steps.at[0];
        assert_int_equal(step->tile.vector, cases[i].vector);
        assert_true(told(unit.plan, cases[i].text ? cases[i].text : "one element each") == (cases[i].text != NULL));
        assert_int_equal(step->variant_count, cases[i].vector == 1 || cases[i].text ? 1 : 2);
    }
}

/* Rooms of the workspace are aligned: where nothing is asked of a launch there is one variant. */
static void test_workspace_alone(void **state) {
    static const char graph[] = "graph: inside\ndims: {M: any, N: 4096}\ninputs: {x: 'f32[M, N]'}\n"
                                "nodes: {c: 'sum(x, 0)', p: 'softmax(softmax(c, 0) * c, 0)', y: 'x * p'}\n"
                                "outputs: {y: f32}\n";
    Job *job = *state;
    Unit unit;
    uint32_t alone = 0;
    assert_int_equal(generate_text(job, &unit, graph, NULL, NULL), STATUS_OK);
    for (uint32_t s = 0; s < unit.plan->steps.count; s++) {
        const Step *step = &unit.plan->steps.at[s];
        for (uint32_t v = 0; v < step->variant_count; v++)
            assert_int_equal(step->variants[v].guard_count == 0, v + 1 == step->variant_count);
        alone += step->variant_count == 1 && step->variants[0].wide;
    }
    assert_int_equal(alone, 1);
}

/* Two kernels whose sums have one number of parts: rows of a part are forced for both alike or not at all. */
static void test_shared_parts(void **state) {
    static const char graph[] = "graph: two\ndims: {M: any, N: 96}\n"
                                "inputs: {x: 'f32[M, N]', y: 'f32[M, N]'}\n"
                                "nodes: {a: 'x - sum(x, -1, True)', b: 'y - mean(y, -1, True)', c: 'sum(x, 0)', "
                                "d: 'sum(y, 0)'}\noutputs: {a: f32, b: f32, c: f32, d: f32}\n";
    static const char *const apart[] = {"f1.part_rows=3", "f0.part_rows=3", "f0.part_rows=3 f1.part_rows=4"};
    Job *job = *state;
    Unit unit;
    assert_int_equal(generate_text(job, &unit, graph, NULL, "part_rows=3"), STATUS_OK);
    assert_int_equal(unit.plan->parts[0].part_rows, 3);
    for (size_t i = 0; i < sizeof apart / sizeof *apart; i++) {
        Job *own = ir_job_create(NULL);
        assert_int_equal(generate_text(own, &unit, graph, NULL, apart[i]), STATUS_NOT_COMPILED);
        assert_non_null(strstr(ir_job_report(own), "force both alike"));
        ir_job_free(own);
    }
}

/* A hint or a max that the dim's own multiple forbids, or that nothing can count, changes the plan alone. */
static void test_guessed_dims(void **state) {
    static const char *const dims[] = {"{multiple: 6}",
                                       "{hint: 7, multiple: 6}",
                                       "{max: 1027, multiple: 6}",
                                       "{hint: 1, multiple: 1026}",
                                       "{max: 5, multiple: 6}",
                                       "{hint: 9007199254740996, multiple: 6}",
                                       "{max: 4611686018427387903, multiple: 6}"};
    static const char *const nodes[] = {"sum(x[:, :B/3], dim=0)", "layer_norm(x[:, :B/2])", "sum(x[:, B/2:])",
                                        "softmax(x[:, :B/3], dim=0)"};
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++)
        for (size_t n = 0; n < sizeof nodes / sizeof *nodes; n++) {
            Unit *unit = IR_NEW((Job *)*state, Unit);
            const char *text = ir_format(
                *state,
                "graph: g\ndims: {T: any, B: %s}\ninputs: {x: \"f32[T, B]\"}\nnodes: {z: \"%s\"}\noutputs: {z: f32}\n",
                dims[d], nodes[n]);
            if (generate_text(*state, unit, text, NULL, NULL)) fail_msg("%s\n%s", text, ir_job_report(*state));
            if (d == 2 && n == 1) assert_int_equal(unit->plan->steps.at[0].strategy, STRATEGY_ROW_REGISTERS);
        }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_guessed_dims),  TEST(test_tiles),        TEST(test_unrolling),       TEST(test_forced),
        TEST(test_impossible),    TEST(test_in_place),     TEST(test_crossings),       TEST(test_depth),
        TEST(test_guards),        TEST(test_grid),         TEST(test_open_extent),     TEST(test_odd_extent),
        TEST(test_number_stride), TEST(test_shared_parts), TEST(test_workspace_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
