/* Strides that put two elements in one place: what the front takes V5 takes too, and what a launch takes is compared
 * with counting, over outputs alone, outputs that lie between each other's elements, and slices in place. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "ir/verify_map.h"
#include "runtime/launch.h"
#include "tests/support/generate.h"
#include "tests/support/random.h"

#include <stdio.h>
#include <string.h>

enum { PLACES = 1 << 14, BASE = PLACES / 2 }; /* elements of the memory that tensors lie in; where pointers begin */
#define FAR 1000                              /* as BASE: other memory than that */

typedef struct Fixture {
    Job *job;
    Unit unit;
    RtProgram *program;
    RtDevice device; /* never called */
    int64_t *words;
    RtScratch scratch;
    Text why;
} Fixture;

/* The status of compiling with the IR verified after every pass. */
static Status begin(Fixture *fixture, const char *text) {
    *fixture = (Fixture){.job = ir_job_create(NULL)};
    Status status = generate_text(fixture->job, &fixture->unit, text, NULL, NULL);
    if (status) return status;
    fixture->program = rt_program_create(fixture->job, &fixture->unit);
    fixture->program->device = &fixture->device;
    fixture->words = IR_NEW_ARRAY(fixture->job, int64_t, fixture->program->scratch_words);
    return STATUS_OK;
}

/* A launch with tensors at these elements of the memory. */
static Status check(Fixture *fixture, const int64_t *dims, const int64_t *at) {
    void *tensors[8];
    for (uint32_t t = 0; t < fixture->program->tensor_count; t++)
        tensors[t] = (void *)(uintptr_t)((at[t] == FAR ? (t + 2) << 24 : 1 << 24) + 4 * at[t]);
    const ng_args args = {.size = sizeof args, .tensors = tensors, .dims = dims};
    fixture->why = ir_text(fixture->job);
    return rt_program_check_tensors(fixture->program, &args, fixture->words, &fixture->scratch, &fixture->why);
}

/* Marks a tensor's elements; whether one was marked already. */
static bool mark_elements(const Fixture *fixture, uint32_t t, int64_t at, bool *taken) {
    const RtSpan *span = &fixture->scratch.spans[t];
    const uint32_t rank = fixture->program->tensors[t].tensor->shape.rank;
    int64_t index[IR_MAX_RANK] = {0};
    bool met = false;
    for (int64_t n = 0; n < span->count; n++) {
        int64_t place = at;
        for (uint32_t d = 0; d < rank; d++) place += index[d] * span->stride[d];
        assert_in_range(place, 0, PLACES - 1);
        met = met || taken[place];
        taken[place] = true;
        for (uint32_t d = rank; d-- > 0 && ++index[d] == span->extent[d];) index[d] = 0;
    }
    return met;
}

static bool elements_meet(const Fixture *fixture, uint32_t from, uint32_t to, const int64_t *at) {
    bool taken[PLACES] = {false}, met = false;
    for (uint32_t t = from; t < to; t++) met |= mark_elements(fixture, t, at[t], taken);
    return met;
}

/* ---- the front, V5 and the launch ---- */

static unsigned launches_taken, launches_refused;

static bool holds(const char *dims, const char *node, const char *strides) {
    static const int64_t dims_of[][3] = {{1, 4, 8}, {1, 4, 0}, {2, 4, 1}, {3, 8, 64}, {0, 8, 5}, {2, 4, 3}, {1, 12, 2}};
    static const int64_t at[] = {FAR, BASE};
    Fixture fixture;
    Job *job = ir_job_create(NULL);
    Text text = ir_text(job);
    ir_text_format(
        &text,
        "graph: g\ndims: {M: any, K: {multiple: 4}, L: any, N: 8}\ninputs: {x: 'f32[%s]'}\nnodes: {y: '%s'}\n"
        "outputs: {y: {dtype: f32, strides: [%s]}}\n",
        dims, node, strides);
    const Status status = begin(&fixture, ir_text_string(&text));
    if (status && status != STATUS_REJECTED)
        fail_msg("status %d of strides [%s] of %s\n%s", (int)status, strides, dims, ir_job_report(fixture.job));
    for (size_t i = 0; !status && i < sizeof dims_of / sizeof *dims_of; i++) {
        const Status said = check(&fixture, dims_of[i], at);
        assert_true(said == STATUS_OK || said == STATUS_USAGE);
        if (said == STATUS_OK && elements_meet(&fixture, 1, 2, at))
            fail_msg("elements meet: [%s] of %s", strides, dims);
        launches_taken += said == STATUS_OK;
        launches_refused += said != STATUS_OK;
    }
    ir_job_free(fixture.job);
    ir_job_free(job);
    return status == STATUS_OK;
}

static void front_and_verify_agree(void **unused) {
    (void)unused;
    static const char *const strides[] = {"0", "1", "4", "8", "K", "8*K", "L", "2*L"};
    static const char *const shapes[][2] = {{"M, N", "x + 1"}, {"M, K", "x + 1"}, {"M, K/4, 4", "reshape(x, [M, K])"}};
    enum { COUNT = sizeof strides / sizeof *strides };
    unsigned taken = 0, refused = 0;
    char text[32];
    for (int s = 0; s < 3; s++) {
        for (int i = 0; i < COUNT * COUNT; i++) {
            strcpy(stpcpy(stpcpy(text, strides[i / COUNT]), ", "), strides[i % COUNT]);
            const bool good = holds(shapes[s][0], shapes[s][1], text);
            if (strchr(text, '0')) assert_false(good); /* whichever dim comes first */
            taken += good;
            refused += !good;
        }
    }
    for (int i = 0; i < COUNT * COUNT * COUNT; i += 3) {
        strcpy(stpcpy(stpcpy(text, strides[i % COUNT]), ", "), strides[i / COUNT % COUNT]);
        strcat(strcat(text, ", "), strides[i / COUNT / COUNT]);
        const bool good = holds("M, K, N", "x + 1", text);
        taken += good;
        refused += !good;
    }
    printf("# graphs: %u taken, %u refused; launches: %u taken, %u refused\n", taken, refused, launches_taken,
           launches_refused);
    assert_true(taken > 100 && refused > 100 && launches_taken > 100 && launches_refused > 100);
}

/* What is refused for polynomials meets for each of their numbers; for numbers the two tests are one; and an axis that
 * was split is as the whole. */
static void refusals_hold_for_all_numbers(void **unused) {
    (void)unused;
    Random random = {random_seed()};
    unsigned refused = 0, left = 0;
    for (int round = 0; round < 4000; round++) {
        Job *job = ir_job_create(NULL);
        const int64_t multiple = 1 + random_below(&random, 4);
        const Dim dims[] = {{.name = "A", .value = -1, .max = -1, .multiple = multiple},
                            {.name = "L", .value = -1, .max = -1, .multiple = 1},
                            {.name = "N", .value = 3, .max = -1, .multiple = 1}};
        const int64_t numbers[] = {multiple * (1 + random_below(&random, 3)), random_below(&random, 9), 3};
        const uint32_t count = 1 + random_below(&random, 4);
        Leg legs[6];
        int64_t extent[6], stride[6];
        bool known = true, overflow = false;
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t by = random_below(&random, 6), of = random_below(&random, 6);
            legs[i].stride = ir_poly_int(job, (int64_t)random_below(&random, 25) - 8);
            legs[i].extent = ir_poly_int(job, 1 + random_below(&random, 4));
            if (by < 3) legs[i].stride = ir_poly_mul(job, legs[i].stride, ir_poly_symbol(job, by), &overflow);
            if (of % 2 == 0 && of < 3)
                legs[i].extent = ir_poly_mul(job, legs[i].extent, ir_poly_symbol(job, of), &overflow);
            known = known && (by > 2 || by == 2) && of != 0;
            assert_true(ir_poly_eval(legs[i].stride, numbers, 3, NULL, 0, &stride[i]));
            assert_true(ir_poly_eval(legs[i].extent, numbers, 3, NULL, 0, &extent[i]));
        }
        const bool refuses = ir_legs_meet(job, dims, 3, legs, count, 1) != IR_NONE;
        const bool meets = ir_strides_meet(extent, stride, count) != IR_NONE;
        if (refuses) assert_true(meets);
        if (known) assert_int_equal(refuses, meets);
        const Poly two = ir_poly_int(job, 2); /* the first leg, twice as long, in one and in two */
        legs[count] = (Leg){ir_poly_mul(job, legs[0].stride, legs[0].extent, &overflow), two};
        const bool split = ir_legs_meet(job, dims, 3, legs, count + 1, 1) != IR_NONE;
        int64_t number;
        if (ir_poly_is_int(legs[0].extent, &number)) {
            legs[0].extent = ir_poly_mul(job, legs[0].extent, two, &overflow);
            assert_int_equal(ir_legs_meet(job, dims, 3, legs, count, 1) != IR_NONE, split);
        }
        refused += refuses;
        left += meets && !refuses;
        ir_job_free(job);
    }
    printf("# legs: %u refused, %u left to the launch\n", refused, left);
    assert_true(refused > 300 && left > 100);
}

/* ---- between each other's elements ---- */

static const char two_outputs[] =
    "graph: g\ndims: {A: any, B: any, C: any, P: any, Q: any, R: any, S: any, T: any, U: any, V: any}\n"
    "inputs: {x: 'f32[A, B, C]'}\nnodes: {y: x + 1, z: x + 2}\n"
    "outputs: {y: {dtype: f32, strides: [P - Q, R, S]}, z: {dtype: f32, strides: [T, U, V]}}\n";

/* Layouts of two tensors within one array: below some level each has its own, padded; from there up both step over the
 * slots of both, so every launch of them is legal. */
static void draw_slots(Random *random, int64_t *dims, int64_t *at) {
    enum { FIRST = 3 };
    int64_t *const mine[] = {&dims[FIRST], &dims[FIRST + 2], &dims[FIRST + 3]};
    int64_t *const others[] = {&dims[FIRST + 4], &dims[FIRST + 5], &dims[FIRST + 6]};
    const bool down = random_below(random, 2); /* the first dim of y runs down */
    const uint32_t level = random_below(random, 4), turn = random_below(random, 3);
    int64_t width[2] = {1, 1}, slot = 0;
    for (int d = 0; d < 3; d++) dims[d] = 1 + random_below(random, 4);
    for (uint32_t l = 0; l <= 3; l++) {
        const uint32_t d = (3 - l + turn) % 3;
        if (l == level) {
            slot = width[0] + random_below(random, 2);
            width[0] = width[1] = slot + width[1] + random_below(random, 2);
        }
        if (l == 3) break;
        *mine[d] = width[0];
        *others[d] = width[1];
        width[0] *= dims[d];
        width[1] *= dims[d];
        if (l > level && random_below(random, 2)) width[0] = width[1] = width[0] + random_below(random, 3);
    }
    dims[FIRST + 1] = 0;
    at[0] = FAR, at[1] = BASE, at[2] = BASE + slot;
    if (random_below(random, 2)) at[1] = BASE + width[1], at[2] = at[1] + slot;
    if (!down) return;
    dims[FIRST + 1] = dims[FIRST];
    dims[FIRST] = 0;
    at[1] += (dims[0] - 1) * dims[FIRST + 1];
}

static void outputs_between_each_other(void **unused) {
    (void)unused;
    Random random = {random_seed()};
    Fixture fixture;
    unsigned taken = 0, met = 0;
    assert_int_equal(begin(&fixture, two_outputs), STATUS_OK);
    for (int round = 0; round < 6000; round++) {
        int64_t dims[10], at[3] = {FAR, BASE, BASE};
        const bool slots = round % 2;
        draw_slots(&random, dims, at);
        for (int d = 3; !slots && d < 10; d++)
            if (random_below(&random, 4) == 0) dims[d] = random_below(&random, 24);
        if (!slots) at[2] += (int64_t)random_below(&random, 9) - 4;
        const Status said = check(&fixture, dims, at);
        const bool meet = elements_meet(&fixture, 1, 3, at);
        if (said == STATUS_OK) assert_false(meet);
        if (slots && (said || meet)) fail_msg("round %d: %s", round, ir_text_string(&fixture.why));
        taken += said == STATUS_OK;
        met += meet;
    }
    printf("# pairs: %u taken, %u met\n", taken, met);
    assert_true(taken > 3300 && met > 500);
    /* keys and values of a cache [A, B, 2, C] */
    static const int64_t cache[] = {10, 4, 8, 64, 0, 16, 1, 64, 16, 1};
    assert_int_equal(check(&fixture, cache, (int64_t[]){FAR, BASE, BASE + 8}), STATUS_OK);
    assert_int_equal(check(&fixture, cache, (int64_t[]){FAR, BASE + 8, BASE}), STATUS_OK);
    assert_int_equal(check(&fixture, cache, (int64_t[]){FAR, BASE, BASE + 7}), STATUS_USAGE);
    assert_non_null(strstr(ir_text_string(&fixture.why), "output z overlaps output y"));
    ir_job_free(fixture.job);
}

/* ---- a part in place ---- */

static void parts_in_place(void **unused) {
    (void)unused;
    static const char text[] =
        "graph: g\ndims: {M: any, N: 4, ld: any}\n"
        "inputs: {x: {dtype: f32, shape: [M, 2*N], strides: [ld, 1]}}\n"
        "nodes: {y: 'x[:, :N] + 1', z: 'x[:, N:] + 2'}\n"
        "outputs: {y: {dtype: f32, inplace: 'x[:, :N]'}, z: {dtype: f32, inplace: 'x[:, N:]'}}\n";
    Fixture fixture;
    assert_int_equal(begin(&fixture, text), STATUS_OK);
    for (int64_t m = 0; m < 6; m++) {
        for (int64_t ld = 4; ld < 12; ld++) {
            const int64_t dims[] = {m, ld};
            for (int in_place = 0; in_place < 4; in_place++) {
                const int64_t at[] = {BASE, in_place & 1 ? BASE : FAR, in_place & 2 ? BASE + 4 : FAR};
                const Status said = check(&fixture, dims, at);
                const bool meet = in_place && elements_meet(&fixture, 0, 1, at);
                assert_int_equal(meet, in_place && m > 1 && ld < 8);
                assert_int_equal(said, meet ? STATUS_USAGE : STATUS_OK);
                if (meet) assert_non_null(strstr(ir_text_string(&fixture.why), "give the output memory of its own"));
            }
        }
    }
    ir_job_free(fixture.job);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(front_and_verify_agree),
        cmocka_unit_test(refusals_hold_for_all_numbers),
        cmocka_unit_test(outputs_between_each_other),
        cmocka_unit_test(parts_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
