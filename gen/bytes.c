/* In: nests, accesses, steps. Out: the bytes that they move, as formulas in the dims and as numbers by the hints. */
#include "gen/bytes.h"

#include "gen/workspace.h"

int64_t *gen_guess_dims(Job *job, const Prog *prog) {
    int64_t *dims = IR_NEW_ARRAY(job, int64_t, prog->dims.count + 1);
    for (uint32_t i = 0; i < prog->dims.count; i++) {
        const Dim *dim = &prog->dims.at[i];
        dims[i] = dim->value >= 0 ? dim->value : dim->hint >= 0 ? dim->hint : dim->max >= 0 ? dim->max : 1024;
    }
    return dims;
}

Poly gen_axes_elements(Job *job, const Prog *prog, const Nest *nest, uint32_t axes) {
    Poly count = ir_poly_int(job, 1);
    bool overflow = false; /* such sizes cannot be launched anyway */
    for (uint32_t a = 0; a < nest->axis_count; a++)
        if (axes >> a & 1) count = ir_poly_mul(job, count, ir_size_poly(job, prog, nest->axes[a].extent), &overflow);
    return count;
}

static Poly times(Job *job, Poly poly, int64_t number) {
    bool overflow = false;
    return ir_poly_mul(job, poly, ir_poly_int(job, number), &overflow);
}

Poly gen_access_bytes(Job *job, const Prog *prog, const Nest *nest, const Access *access) {
    const Buf *buf = &prog->bufs.at[access->buf];
    if (buf->kind == BUF_SCALAR) return ir_poly_int(job, 0);
    Poly elements = gen_axes_elements(job, prog, nest, ir_access_domain(nest, access));
    return times(job, elements, ir_dtype(buf->dtype)->bytes);
}

Poly gen_step_bytes(Job *job, const Unit *unit, const Step *step) {
    const Nest *nest = &unit->prog->nests.at[step->nest];
    bool overflow = false, *counted = IR_NEW_ARRAY(job, bool, nest->accesses.count);
    Poly bytes = ir_poly_int(job, 0);
    for (uint32_t i = 0; i < nest->stmts.count; i++) {
        const Stmt *stmt = &nest->stmts.at[i];
        if (stmt->access == IR_NONE || (stmt->op == OP_LOAD && counted[stmt->access])) continue;
        if (stmt->op == OP_LOAD) counted[stmt->access] = true;
        const Access *access = &nest->accesses.at[stmt->access];
        Poly own = gen_access_bytes(job, unit->prog, nest, access);
        if (stmt->op == OP_PARTIAL_ACCUMULATE)
            own = ir_poly_mul(job, own, ir_size_poly(job, unit->prog, unit->prog->bufs.at[access->buf].extent[0]),
                              &overflow);
        bytes = ir_poly_add(job, bytes, own, &overflow);
    }
    return bytes;
}

int64_t gen_bytes_guess(Job *job, const Unit *unit, Poly bytes) {
    const Prog *prog = unit->prog;
    const int64_t *dims = gen_guess_dims(job, prog);
    const Target *target = unit->options.target ? unit->options.target : gen_target(90);
    int64_t value, *parts = IR_NEW_ARRAY(job, int64_t, prog->parts.count + 1);
    if (unit->plan && !gen_eval_parts(unit->plan, prog->parts.count, dims, prog->dims.count, target->sms, false, parts))
        return IR_MAX_EXTENT;
    for (uint32_t k = 0; !unit->plan && k < prog->parts.count; k++) parts[k] = target->sms;
    return ir_poly_eval(bytes, dims, prog->dims.count, parts, prog->parts.count, &value) ? value : IR_MAX_EXTENT;
}

const char *gen_poly_text(Job *job, const Prog *prog, Poly poly) {
    const char **names = IR_NEW_ARRAY(job, const char *, prog->dims.count + 1);
    for (uint32_t i = 0; i < prog->dims.count; i++) names[i] = prog->dims.at[i].name;
    Text text = ir_text(job);
    ir_poly_print(&text, poly, names, prog->dims.count);
    return ir_text_string(&text);
}

const char *gen_guess_text(Job *job, const Prog *prog) {
    Text text = ir_text(job);
    const int64_t *dims = gen_guess_dims(job, prog);
    for (uint32_t i = 0; i < prog->dims.count; i++)
        ir_text_format(&text, "%s%s=%lld", i ? ", " : "", prog->dims.at[i].name, (long long)dims[i]);
    return ir_text_string(&text);
}

const char *gen_bytes_text(Job *job, const Unit *unit, Poly bytes) {
    const char *formula = gen_poly_text(job, unit->prog, bytes);
    if (ir_poly_is_int(bytes, NULL)) return formula;
    return ir_format(job, "%s = %lld with %s", formula, (long long)gen_bytes_guess(job, unit, bytes),
                     gen_guess_text(job, unit->prog));
}
