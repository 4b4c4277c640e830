/* A kernel of a plan in words. Contract: the header. */
#include "tests/support/kernel_words.h"

#include "gen/bytes.h"
#include "gen/nests.h"

static uint32_t count_full_reads(const Nest *nest) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < nest->stmts.count; i++) count += ir_is_full_read(nest, &nest->stmts.at[i]);
    return count;
}

int64_t *kernel_parts(Job *job, const Unit *unit) {
    int64_t *parts = IR_NEW_ARRAY(job, int64_t, unit->prog->parts.count + (size_t)1);
    for (uint32_t k = 0; k < unit->prog->parts.count; k++) parts[k] = unit->options.target->sms;
    return parts;
}

int64_t kernel_words(Job *job, Text *out, const Unit *unit, const Step *step) {
    const Prog *prog = unit->prog;
    const Nest *nest = &prog->nests.at[step->nest];
    const Poly bytes = gen_step_moved(job, unit, step);
    const uint32_t reads = count_full_reads(nest);
    int64_t value = -1;
    IR_REQUIRE(job, ir_poly_eval(bytes, gen_guess_dims(job, prog), prog->dims.count, kernel_parts(job, unit),
                                 prog->parts.count, &value));
    ir_text_format(out, "%s %s, %u full read%s, ", ir_class_name(nest->class), gen_strategy(step->strategy)->name,
                   reads, reads == 1 ? "" : "s");
    if (!ir_poly_is_int(bytes, NULL)) ir_text_format(out, "%s bytes = ", gen_poly_text(job, prog, bytes));
    ir_text_format(out, "%lld%s", (long long)value, ir_poly_is_int(bytes, NULL) ? " bytes" : "");
    return value;
}
