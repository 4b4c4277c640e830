/* Prog's text: what is printed is read back, what is malformed is refused at its place, and no text does harm. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/gen.h"
#include "tests/support/prog_case.h"
#include "tests/support/random_graph.h"

static const char *const goldens[] = {
    "tests/golden/rms_norm_bwd.classify.ir",
    "tests/golden/rms_norm_bwd.partial.ir",
    "tests/golden/rms_norm_bwd.reorder.ir",
    "tests/golden/rms_norm_bwd.fuse.ir",
    "tests/ir/adaln_dscale.ir",
    "tests/ir/add_rms_norm_bwd.ir",
    "tests/ir/batch_norm_stats.ir",
    "tests/ir/fp8_block.ir",
    "tests/ir/gather.ir",
    "tests/ir/group_norm.ir",
    "tests/ir/layer_norm.ir",
    "tests/ir/layer_norm_bwd.ir",
    "tests/ir/mixed_weight.ir",
    "tests/ir/online_softmax.ir",
    "tests/ir/rank6.ir",
    "tests/ir/rope.ir",
    "tests/ir/softmax_bwd.ir",
    "tests/ir/softmax_mid.ir",
    "tests/ir/welford.ir",
};
#define GOLDENS (sizeof goldens / sizeof *goldens)

static void goldens_print_back(void **unused) {
    (void)unused;
    for (size_t i = 0; i < GOLDENS; i++) {
        Job *job = ir_job_create(NULL);
        case_golden(job, goldens[i]);
        ir_job_free(job);
    }
}

/* Everything that the grammar has, in the printer's own form. */
static const char everything[] = "prog all_of_it\n"
                                 "dim M any\n"
                                 "dim N any hint 768 max 4096 multiple 8\n"
                                 "dim K 64\n"
                                 "dim $s0 any\n"
                                 "dim r any\n"
                                 "part P0\n"
                                 "part P1\n"
                                 "size s0 = 2*M + N\n"
                                 "size s1 = -M*N/4 + $s0 - 3\n"
                                 "size s2 = (M*N*P1 - 3*N)/8\n"
                                 "buf x bf16 [M,s0] in align 16\n"
                                 "buf x_tail bf16 [M,N] in of x + 64\n"
                                 "buf late f32 [] in of 5\n"
                                 "buf index i32 [M] in\n"
                                 "buf eps f32 [] scalar\n"
                                 "buf seed i64 [] scalar of 3\n"
                                 "buf y bf16 [M,s0] out align 2 may_alias x\n"
                                 "buf z f8e4m3 [M,N,K,$s0,r,1] out\n"
                                 "buf z_half f8e4m3 [M,N] out of z + s1\n"
                                 "buf t f64 [P1] tmp\n"
                                 "buf w f32 [P0,768] ws align 256\n"
                                 "nest a (|) POINTWISE {\n"
                                 "  %0 f64<> = const 0x3ff8000000000000  # 1.5\n"
                                 "  store t[0] %0\n"
                                 "}\n"
                                 "nest b (r:M, s:s0 | c:N, d:$s0, e:P0, f:12) MIXED {\n"
                                 "  %0 f32<rsc> = load x[r + r*s0 + s*-64 + c*$s0]  # x\n"
                                 "  %1 i64<r> = load index[-5 + r*1]\n"
                                 "  %2 f32<rc> = load x_tail[0 + c*1 + %1*N]\n"
                                 "  partial_accumulate max {rs} w[0 + c*1] %0\n"
                                 "  %3 bf16<rsc> = cast %0  # rounded\n"
                                 "  %4 bool<rsc> = lt %3 %2\n"
                                 "  %5 f32<rsc> = where %4 %0 %2\n"
                                 "  %6 i64<> = size s1\n"
                                 "  %7 i64<f> = iota f\n"
                                 "  %8 f32<rs> = reduce online {c} %5 #0  # top\n"
                                 "  %9 f32<rs> = reduce online {c} %5 #1\n"
                                 "  %10 f32<> = const 0x7f800000  # inf\n"
                                 "  %11 f32<> = const 0x3f800000  # 1 one\n"
                                 "  %12 i64<> = const 0xffffffffffffffff  # -1\n"
                                 "  %13 bool<> = const 0x1  # 1\n"
                                 "  store y[0 + r*1] %9  # stored\n"
                                 "}\n"
                                 "nest c (r:M |) ROW+PARTIAL {\n"
                                 "}\n"
                                 "nest d (| c:3) FINALIZE {\n"
                                 "}\n";

static void everything_prints_back(void **unused) {
    (void)unused;
    Job *job = ir_job_create(NULL);
    const Prog *prog = case_read(job, everything, sizeof everything - 1);
    assert_string_equal(case_print(job, prog), everything);
    const Nest *nest = &prog->nests.at[1];
    assert_int_equal(nest->row_count, 2);
    assert_int_equal(nest->axis_count, 6);
    assert_int_equal(nest->stmts.at[2].op, OP_LOAD);
    assert_int_equal(nest->accesses.at[nest->stmts.at[2].access].index, 1);
    assert_int_equal(nest->stmts.at[2].domain, 1 | 4);
    assert_int_equal(nest->stmts.at[4].dtype, DTYPE_BF16);
    assert_string_equal(nest->stmts.at[4].name, "rounded");
    assert_null(nest->stmts.at[11].name); /* "inf" is the decimal of the constant */
    assert_string_equal(nest->stmts.at[12].name, "one");
    assert_int_equal(nest->stmts.at[15].dtype, DTYPE_BF16); /* a store has its buf's dtype */
    assert_int_equal(nest->stmts.at[15].domain, 1);
    static const struct {
        const char *name;
        uint32_t tensor;
    } tensors[] = {{"x", 0}, {"x_tail", 0}, {"late", 5},   {"index", 6},   {"eps", 0},    {"seed", 3},
                   {"y", 0}, {"z", 1},      {"z_half", 1}, {"t", IR_NONE}, {"w", IR_NONE}};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        assert_string_equal(prog->bufs.at[i].name, tensors[i].name);
        assert_int_equal(prog->bufs.at[i].tensor, tensors[i].tensor);
    }
    ir_job_free(job);
}

/* What a hand writes and the printer does not. */
static void lenient_forms_are_read(void **unused) {
    (void)unused;
    static const char text[] = "# a dump\n\n  prog p # named\n\tdim M any\r\nsize s0 = M + 2*M*1 - -1\n"
                               "buf y float32 [ M , s0 ] out # note\n\nnest n ( r : M | c : s0 ) POINTWISE { # loops\n"
                               "%0 f32 < c r > = const 0x0 # two words\n\n # between\n"
                               "store y [ 0 + c * 1 + r*s0 ] %0\n}";
    Job *job = ir_job_create(NULL);
    const Prog *prog = case_read(job, text, sizeof text - 1);
    assert_string_equal(case_print(job, prog), "prog p\ndim M any\nsize s0 = 3*M + 1\nbuf y f32 [M,s0] out\n"
                                               "nest n (r:M | c:s0) POINTWISE {\n"
                                               "  %0 f32<rc> = const 0x00000000  # 0\n"
                                               "  store y[0 + r*s0 + c*1] %0\n}\n");
    ir_job_free(job);
}

static void run_read(Job *job, void *state) { ir_prog_read(job, state, strlen(state)); }

/* Each: a text, where it goes wrong, and the message. */
static void malformed_text_is_refused_at_its_place(void **unused) {
    (void)unused;
#define NEST "prog p\ndim M any\nbuf x f32 [M] in\nnest n (r:M |) POINTWISE {\n"
    static const struct {
        const char *text;
        uint32_t line, column;
        const char *message;
    } cases[] = {
        {"", 0, 0, "expected 'prog', found the end of the text"},
        {"nest", 1, 1, "expected 'prog', found 'nest'"},
        {"prog\n", 1, 5, "expected the name of the program, found the end of the line"},
        {"prog p q\n", 1, 8, "expected the end of the line, found 'q'"},
        {"prog p\nloop\n", 2, 1, "expected dim, size, part, buf or nest, found 'loop'"},
        {"prog p\n\x01\n", 2, 1, "expected dim, size, part, buf or nest, found the byte 0x01"},
        {"prog p\ndim M\n", 2, 6, "expected 'any' or a number, found the end of the line"},
        {"prog p\ndim M any\ndim M 3\n", 3, 5, "dim 'M' is there twice"},
        {"prog p\ndim M any hint x\n", 2, 16, "expected a number that is not negative, found 'x'"},
        {"prog p\ndim M any multiple 0\n", 2, 20, "expected a positive number, found a number that is out of range"},
        {"prog p\ndim M 9223372036854775808\n", 2, 7,
         "expected a number that is not negative, found a number that is out of range"},
        {"prog p\nsize s1 = 3\n", 2, 6, "expected 's0', the next one, found 's1'"},
        {"prog p\nsize s0 = N\n", 2, 11, "no dim 'N' was declared before"},
        {"prog p\ndim N any\nsize s0 = (N + 1)/0\n", 3, 19,
         "expected a positive number, found a number that is out of range"},
        {"prog p\ndim N any\nsize s0 = (N + 1\n", 3, 17, "expected ')', found the end of the line"},
        {"prog p\nsize s0 = 3 *\n", 2, 14, "expected a number, a dim, a size or a part, found the end of the line"},
        {"prog p\nsize s0 = 3\nsize s1 = s0\n", 3, 13, "expected dims and parts in a size, found the end of the line"},
        {"prog p\nsize s0 = 4611686018427387903 + 9\n", 2, 10, "the polynomial is too large"},
        {"prog p\npart Q0\n", 2, 6, "expected 'P0', the next one, found 'Q0'"},
        {"prog p\nbuf x f33 [] in\n", 2, 7, "expected a dtype, found 'f33'"},
        {"prog p\nbuf x f32 [1,2,3,4,5,6,7] in\n", 2, 24, "expected at most 6 extents, found '7'"},
        {"prog p\nbuf x f32 [1 2] in\n", 2, 14, "expected ',', found '2'"},
        {"prog p\nbuf x f32 [P0] ws\n", 2, 12, "no size or part 'P0' was declared before"},
        {"prog p\nbuf x f32 [] inout\n", 2, 14, "expected in, out, tmp, ws or scalar, found 'inout'"},
        {"prog p\nbuf x f32 [] in\nbuf x f32 [] in\n", 3, 5, "buf 'x' is there twice"},
        {"prog p\nbuf x f32 [] out may_alias y\n", 2, 28, "there is no buf 'y'"},
        {"prog p\nbuf x f32 [] out of y\n", 2, 21, "expected a buf of this kind that was declared before, found 'y'"},
        {"prog p\nbuf x f32 [] tmp of 0\n", 2, 18, "expected the end of the line, found 'of'"},
        {"prog p\nnest n (r:3) POINTWISE {\n}\n", 2, 12, "expected '|' between row axes and inner axes, found ')'"},
        {"prog p\nnest n (r:3 | r:2) POINTWISE {\n}\n", 2, 15, "expected each axis once, found 'r'"},
        {"prog p\nnest n (r:3 | c:2 | d:2) POINTWISE {\n}\n", 2, 19, "expected ',', found '|'"},
        {"prog p\nnest n (R:3 |) POINTWISE {\n}\n", 2, 9, "expected an axis such as c:768, found 'R'"},
        {"prog p\nnest n (r:3 |) ROW+ {\n}\n", 2, 16, "expected the class of the nest, found 'ROW'"},
        {"prog p\nnest n (|) ROW {\n}\nnest n (|) ROW {\n}\n", 4, 6, "nest 'n' is there twice"},
        {"prog p\nnest n (|) ROW {\n", 2, 17, "expected a statement or '}', found the end of the text"},
        {"prog p\nnest n (|) ROW { }\n", 2, 18, "expected the end of the line, found '}'"},
        {NEST "  x\n}\n", 5, 3, "expected a value such as %0, store, partial_accumulate or '}', found 'x'"},
        {NEST "  %1 f32<> = const 0x0\n}\n", 5, 3, "expected %0, the next value"},
        {NEST "  %0 f32<c> = const 0x0\n}\n", 5, 10, "expected an axis of the nest, found 'c'"},
        {NEST "  %0 f32<rr> = const 0x0\n}\n", 5, 11, "expected each axis once, found 'r'"},
        {NEST "  %0 f32<> = const 0x100000000\n}\n", 5, 20, "expected at most 32 bits for f32"},
        {NEST "  %0 f32<> = const 1.5\n}\n", 5, 20, "expected bits such as 0x3f800000, found '1'"},
        {NEST "  %0 f32<> = frob %0\n}\n", 5, 14, "expected an operation, found 'frob'"},
        {NEST "  %0 f32<> = add %0\n}\n", 5, 20, "expected an operand such as %0, found the end of the line"},
        {NEST "  %0 f32<> = neg %7\n}\n", 5, 18, "the nest has no value %7"},
        {NEST "  %0 f32<> = neg %x\n}\n", 5, 19, "expected the number of a value, found 'x'"},
        {NEST "  %0 f32<r> = load y[0]\n}\n", 5, 20, "no buf 'y' was declared before"},
        {NEST "  %0 f32<r> = load x[0 r*1]\n}\n", 5, 24, "expected '+', found 'r'"},
        {NEST "  %0 f32<r> = load x[0 + r*1 + r*1]\n}\n", 5, 32, "expected each axis once, found 'r'"},
        {NEST "  %0 f32<r> = load x[0 + r]\n}\n", 5, 27, "expected '*', found ']'"},
        {NEST "  %0 f32<r> = load x[0 + %0*1 + %0*1]\n}\n", 5, 33, "expected at most one gathered term, found '%'"},
        {NEST "  %0 f32<> = reduce sum {r} %0\n}\n", 5, 21, "expected a reduction, found 'sum'"},
        {NEST "  %0 f32<> = reduce welford {r} %0\n}\n", 5, 35, "expected '#', found the end of the line"},
        {NEST "  %0 f32<> = reduce add {r} %0 %0 %0 %0\n}\n", 5, 38, "expected the end of the line, found '%'"},
        {NEST "  store x[0]\n}\n", 5, 13, "expected an operand such as %0, found the end of the line"},
        {NEST "  store x[0] %0\n}\n", 5, 14, "the nest has no value %0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Job *job = ir_job_create(NULL);
        char *text = ir_copy_text(job, cases[i].text, strlen(cases[i].text));
        if (ir_job_run(job, run_read, text) != STATUS_REJECTED) fail_msg("was read: %s", text);
        assert_int_equal(ir_diagnostic_count(job), 1);
        const Diagnostic *diagnostic = ir_diagnostic(job, 0);
        uint32_t line = 0, column = 0;
        if (diagnostic->place.count) ir_locate(job, diagnostic->place.start, &line, &column);
        if (strcmp(diagnostic->text, cases[i].message) || line != cases[i].line || column != cases[i].column)
            fail_msg("%s\n-> %u:%u: %s", text, line, column, diagnostic->text);
        ir_job_free(job);
    }
}

/* Mutations ------------------------------------------------------------------------------------------------------ */

static void remove_bytes(char *bytes, size_t *count, size_t at, size_t run) {
    memmove(bytes + at, bytes + at + run, *count - at - run);
    *count -= run;
}

/* One change at a random place: of bytes, or such that the text often still reads. */
static void mutate_once(Random *random, char *bytes, size_t *count) {
    static const char telling[] = "0123456789%#<>[]{}(),|:*+-=$ \nrcpMPsx";
    size_t at = random_below(random, (uint32_t)*count);
    size_t run = 1 + random_below(random, random_below(random, 4) ? 3 : 40);
    if (run > *count - at) run = *count - at;
    switch (random_below(random, 7)) {
    case 0: remove_bytes(bytes, count, at, run); break;
    case 1: /* duplicate */
        memmove(bytes + at + run, bytes + at, *count - at);
        *count += run;
        break;
    case 2: bytes[at] = (char)(bytes[at] ^ (1 << random_below(random, 8))); break;
    case 3: bytes[at] = (char)random_below(random, 256); break;
    case 4: bytes[at] = telling[random_below(random, sizeof telling - 1)]; break;
    case 5: /* another digit, or another axis */
        while (at < *count && (bytes[at] < '0' || bytes[at] > '9') && bytes[at] != 'r') at++;
        if (at < *count) bytes[at] = bytes[at] == 'r' ? 'c' : (char)('0' + random_below(random, 10));
        break;
    default: /* without a line */
        while (at > 0 && bytes[at - 1] != '\n') at--;
        for (run = 1; at + run < *count && bytes[at + run - 1] != '\n';) run++;
        remove_bytes(bytes, count, at, run);
    }
}

static char *mutate(Job *job, Random *random, const char *text, size_t *count) {
    char *bytes = ir_alloc(job, *count + 128);
    memcpy(bytes, text, *count);
    for (uint32_t edits = 1 + random_below(random, 3); edits > 0 && *count > 0; edits--)
        mutate_once(random, bytes, count);
    return bytes;
}

typedef struct Mutant {
    const char *bytes;
    size_t count;
    bool read, legal;
} Mutant;

/* What is read is judged, and if its references hold, it prints to a text that reads and prints the same. */
static void judge_mutant(Job *job, void *state) {
    Mutant *mutant = state;
    Prog *prog = ir_prog_read(job, mutant->bytes, mutant->count);
    mutant->read = true;
    mutant->legal = ir_verify(job, prog) == NULL;
    const char *printed = case_print(job, prog);
    Prog *again = ir_prog_read(job, printed, strlen(printed));
    assert_string_equal(case_print(job, again), printed);
    assert_int_equal(ir_verify(job, again) == NULL, mutant->legal);
}

static void mutants_do_no_harm(void **unused) {
    (void)unused;
    Random random = {random_seed()};
    Job *job = ir_job_create(NULL);
    const char *texts[GOLDENS + 1] = {everything};
    size_t counts[GOLDENS + 1] = {sizeof everything - 1};
    for (size_t i = 0; i < GOLDENS; i++) texts[i + 1] = case_file(job, goldens[i], &counts[i + 1]);
    unsigned read = 0, legal = 0, total = 4000;
    for (unsigned i = 0; i < total; i++) {
        Job *inner = ir_job_create(NULL);
        uint32_t which = random_below(&random, GOLDENS + 1);
        Mutant mutant = {.count = counts[which]};
        char *bytes = mutate(inner, &random, texts[which], &mutant.count);
        mutant.bytes = bytes = memcpy(malloc(mutant.count + 1), bytes, mutant.count); /* its end, to the byte */
        Status status = ir_job_run(inner, judge_mutant, &mutant);
        if (status != STATUS_OK && (status != STATUS_REJECTED || mutant.read || ir_error_count(inner) != 1))
            fail_msg("status %d\n%.*s\n%s", (int)status, (int)mutant.count, bytes, ir_job_report(inner));
        assert_non_null(ir_job_report(inner));
        read += mutant.read;
        legal += mutant.legal;
        free(bytes);
        ir_job_free(inner);
    }
    printf("# %u mutants: %u read, %u of them legal\n", total, read, legal);
    assert_true(read > 0 && read < total && legal > 0);
    ir_job_free(job);
}

/* What the passes make of random graphs. */
static void prints_back(void *state, Job *job, const Unit *unit, uint32_t pass) {
    (void)job;
    if (gen_passes[pass].makes != PASS_PROG) return;
    Job *inner = ir_job_create(NULL);
    const char *printed = case_print(inner, unit->prog);
    const Prog *again = case_read_legal(inner, printed, strlen(printed));
    assert_string_equal(case_print(inner, again), printed);
    ir_job_free(inner);
    ++*(unsigned *)state;
}

typedef struct Lowering {
    RandomGraph graph;
    unsigned *progs;
} Lowering;

static void lower_graph(Job *job, void *state) {
    Lowering *lowering = state;
    Unit unit = {0};
    GenOptions options = {.target = gen_target(90), .after = prints_back, .after_state = lowering->progs};
    gen_run(job, &unit, "random", lowering->graph.text, lowering->graph.count, &options, gen_pass_find("fuse"));
}

static void lowered_graphs_print_back(void **unused) {
    (void)unused;
    uint64_t seed = random_seed();
    unsigned progs = 0;
    for (unsigned i = 0; i < 200; i++) {
        Job *job = ir_job_create(NULL);
        Lowering lowering = {random_graph(job, seed + i, 0), &progs};
        Status status = ir_job_run(job, lower_graph, &lowering);
        if (status != STATUS_OK && status != STATUS_REJECTED)
            fail_msg("NORMGEN_SEED=%llu: %s\n%s", (unsigned long long)(seed + i), ir_job_report(job),
                     lowering.graph.text);
        ir_job_free(job);
    }
    printf("# %u lowered programs printed back\n", progs);
    assert_true(progs > 400);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goldens_print_back),     cmocka_unit_test(everything_prints_back),
        cmocka_unit_test(lenient_forms_are_read), cmocka_unit_test(malformed_text_is_refused_at_its_place),
        cmocka_unit_test(mutants_do_no_harm),     cmocka_unit_test(lowered_graphs_print_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
