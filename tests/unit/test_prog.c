/* Prog: sizes, hash-consing, domains, phases, full reads, sweep, clone. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "ir/prog.h"

enum { R = 1, C = 2 }; /* axis masks of the nest below: (r | c) */

static Access access_of(uint32_t buf, int64_t r, int64_t c) {
    Access access = {.buf = buf, .index = IR_NONE};
    access.stride[0].value = r;
    access.stride[1].value = c;
    return access;
}

static uint32_t load(Job *job, Nest *nest, uint32_t buf, int64_t r, int64_t c, uint32_t index) {
    Access access = access_of(buf, r, c);
    access.index = index;
    access.index_stride.value = index == IR_NONE ? 0 : 768;
    return ir_nest_add(job, nest,
                       &(Stmt){.op = OP_LOAD, .dtype = DTYPE_F32, .access = ir_nest_add_access(job, nest, &access)});
}

static uint32_t op2(Job *job, Nest *nest, Op op, uint32_t a, uint32_t b) {
    return ir_nest_add(job, nest, &(Stmt){.op = op, .dtype = DTYPE_F32, .arg_count = 2, .arg = {a, b}});
}

static uint32_t reduce(Job *job, Nest *nest, uint32_t a, uint32_t consumed) {
    return ir_nest_add(job, nest,
                       &(Stmt){.op = OP_REDUCE,
                               .dtype = DTYPE_F32,
                               .reduction = REDUCTION_ADD,
                               .consumed = consumed,
                               .arg_count = 1,
                               .arg = {a}});
}

static uint32_t store(Job *job, Nest *nest, uint32_t buf, int64_t r, int64_t c, uint32_t a) {
    Access access = access_of(buf, r, c);
    return ir_nest_add(job, nest,
                       &(Stmt){.op = OP_STORE,
                               .dtype = DTYPE_F32,
                               .arg_count = 1,
                               .arg = {a},
                               .access = ir_nest_add_access(job, nest, &access)});
}

static Nest empty_nest(void) {
    return (Nest){
        .name = "n0", .axis_count = 2, .row_count = 1, .axes = {{'r', {SIZE_DIM, 0}}, {'c', {SIZE_INT, 768}}}};
}

static void nests(Job *job, void *state) {
    (void)state;
    Nest nest = empty_nest();
    assert_int_equal(ir_nest_row_mask(&nest), R);
    assert_int_equal(ir_nest_inner_mask(&nest), C);
    assert_int_equal(ir_nest_axis(&nest, 'c'), 1);
    assert_int_equal(ir_nest_axis(&nest, 'z'), IR_NONE);
    uint32_t x = load(job, &nest, 0, 768, 1, IR_NONE), w = load(job, &nest, 1, 0, 1, IR_NONE);
    uint32_t ids = load(job, &nest, 2, 1, 0, IR_NONE), row = load(job, &nest, 3, 0, 1, ids);
    assert_int_equal(load(job, &nest, 0, 768, 1, IR_NONE), x); /* merged */
    assert_int_not_equal(load(job, &nest, 0, 767, 1, IR_NONE), x);
    assert_int_equal(nest.stmts.at[x].domain, R | C);
    assert_int_equal(nest.stmts.at[w].domain, C);
    assert_int_equal(nest.stmts.at[ids].domain, R);
    assert_int_equal(nest.stmts.at[row].domain, R | C); /* through the gathered index */
    assert_true(ir_is_full_read(&nest, &nest.stmts.at[x]));
    assert_false(ir_is_full_read(&nest, &nest.stmts.at[w]) || ir_is_full_read(&nest, &nest.stmts.at[row]));
    uint32_t product = op2(job, &nest, OP_MUL, x, w);
    uint32_t again = ir_nest_add(job, &nest,
                                 &(Stmt){.op = OP_MUL,
                                         .dtype = DTYPE_F32,
                                         .arg_count = 2,
                                         .arg = {x, w},
                                         .name = "named",
                                         .place = {4, 4},
                                         .value = 7});
    assert_int_equal(again, product);
    assert_int_not_equal(op2(job, &nest, OP_MUL, w, x), product);
    uint32_t sum = reduce(job, &nest, product, C), dead = op2(job, &nest, OP_ADD, sum, w);
    assert_int_equal(nest.stmts.at[sum].domain, R);
    assert_int_equal(nest.stmts.at[dead].domain, R | C);
    uint32_t one = ir_nest_add(job, &nest, &(Stmt){.op = OP_CONST, .dtype = DTYPE_F32, .bits = 0x3f800000});
    uint32_t iota = ir_nest_add(job, &nest, &(Stmt){.op = OP_IOTA, .dtype = DTYPE_I64, .axis = 1});
    assert_int_equal(nest.stmts.at[one].domain, 0);
    assert_int_equal(nest.stmts.at[iota].domain, C);
    uint32_t shifted = op2(job, &nest, OP_ADD, sum, one), scaled = op2(job, &nest, OP_MUL, x, shifted);
    uint32_t gathered = op2(job, &nest, OP_MUL, scaled, row), squares = reduce(job, &nest, gathered, C);
    uint32_t first = store(job, &nest, 4, 768, 1, scaled), second = store(job, &nest, 5, 1, 0, squares);
    assert_int_equal(store(job, &nest, 5, 1, 0, squares), second + 1); /* stores are never merged */
    assert_int_equal(nest.stmts.at[first].domain, R | C);
    assert_int_equal(nest.stmts.at[second].domain, R);
    uint32_t count, *phases = ir_nest_phases(job, &nest, &count);
    assert_int_equal(count, 3);
    assert_int_equal(phases[product], 0);
    assert_int_equal(phases[sum], 1);
    assert_int_equal(phases[first], 1);
    assert_int_equal(phases[squares], 2);
    assert_int_equal(phases[one], 0);
    uint32_t before = nest.stmts.count, accesses = nest.accesses.count;
    ir_nest_sweep(job, &nest);
    assert_int_equal(nest.stmts.count, before - 4); /* dead, w * x, the load by 767, iota */
    assert_int_equal(nest.accesses.count, accesses - 1);
    for (uint32_t i = 0; i < nest.stmts.count; i++) {
        const Stmt *stmt = &nest.stmts.at[i];
        for (uint32_t k = 0; k < stmt->arg_count; k++) assert_true(stmt->arg[k] < i);
        if (stmt->op == OP_LOAD && nest.accesses.at[stmt->access].buf == 3) {
            uint32_t index = nest.accesses.at[stmt->access].index;
            assert_int_equal(nest.accesses.at[nest.stmts.at[index].access].buf, 2);
        }
    }
    ir_nest_sweep(job, &nest);
    assert_int_equal(nest.stmts.count, before - 4);
}

/* A reduce of row axes alone opens no phase. */
static void row_reduce(Job *job, void *state) {
    (void)state;
    Nest nest = empty_nest();
    uint32_t sum = reduce(job, &nest, load(job, &nest, 0, 768, 1, IR_NONE), R), count;
    uint32_t *phases = ir_nest_phases(job, &nest, &count);
    assert_int_equal(count, 1);
    assert_int_equal(phases[sum], 0);
}

static const char *spell(Job *job, const Prog *prog, Size size) {
    Text text = ir_text(job);
    ir_size_print(&text, prog, size);
    return ir_text_string(&text);
}

static void sizes(Job *job, void *state) {
    (void)state;
    Prog *prog = ir_prog_create(job, "p");
    *IR_PUSH(job, &prog->dims) = (Dim){.name = "M", .value = -1};
    *IR_PUSH(job, &prog->parts) = "P0";
    bool overflow = false;
    Poly m = ir_poly_symbol(job, 0), twice = ir_poly_add(job, m, m, &overflow),
         part = ir_poly_symbol(job, IR_POLY_PART);
    Size two = ir_prog_size(job, prog, twice);
    assert_string_equal(spell(job, prog, ir_prog_size(job, prog, ir_poly_int(job, -64))), "-64");
    assert_string_equal(spell(job, prog, ir_prog_size(job, prog, m)), "M");
    assert_string_equal(spell(job, prog, two), "s0");
    assert_string_equal(spell(job, prog, ir_prog_size(job, prog, part)), "P0");
    assert_string_equal(spell(job, prog, ir_prog_size(job, prog, ir_poly_mul(job, m, part, &overflow))), "s1");
    assert_true(ir_size_equal(ir_prog_size(job, prog, ir_poly_add(job, m, m, &overflow)), two)); /* found */
    assert_int_equal(prog->sizes.count, 2);
    assert_true(ir_poly_equal(ir_size_poly(job, prog, two), twice));
    assert_true(ir_poly_equal(ir_size_poly(job, prog, (Size){SIZE_PART, 0}), part));
    assert_true(ir_poly_equal(ir_size_poly(job, prog, (Size){SIZE_DIM, 0}), m));
    assert_true(ir_size_is(ir_prog_size(job, prog, ir_poly_int(job, 0)), 0));
}

static void clones(Job *job, void *state) {
    (void)state;
    Prog *prog = ir_prog_create(job, "p");
    Nest *nest = IR_PUSH(job, &prog->nests);
    *nest = empty_nest();
    store(job, nest, 1, 768, 1, load(job, nest, 0, 768, 1, IR_NONE));
    Prog *clone = ir_prog_clone(job, prog);
    for (int i = 0; i < 100; i++)
        ir_nest_add(job, &clone->nests.at[0], &(Stmt){.op = OP_CONST, .dtype = DTYPE_I64, .bits = (uint64_t)i});
    clone->nests.at[0].stmts.at[0].name = "changed";
    clone->nests.at[0].accesses.at[0].buf = 9;
    IR_PUSH(job, &clone->nests)->name = "more";
    assert_int_equal(prog->nests.count, 1);
    assert_int_equal(prog->nests.at[0].stmts.count, 2);
    assert_null(prog->nests.at[0].stmts.at[0].name);
    assert_int_equal(prog->nests.at[0].accesses.at[0].buf, 0);
    assert_string_equal(ir_class_name(CLASS_ROW_PARTIAL), "ROW+PARTIAL");
}

static void run(void (*work)(Job *, void *)) {
    Job *job = ir_job_create(NULL);
    Status status = ir_job_run(job, work, NULL);
    if (status) fail_msg("%s", ir_job_report(job));
    ir_job_free(job);
}
static void test_nests(void **unused) {
    (void)unused;
    run(nests);
    run(row_reduce);
}
static void test_sizes(void **unused) {
    (void)unused;
    run(sizes);
}
static void test_clones(void **unused) {
    (void)unused;
    run(clones);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nests), cmocka_unit_test(test_sizes),
                                       cmocka_unit_test(test_clones)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
