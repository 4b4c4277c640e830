/* In: nests, accesses, steps. Out: the bytes that they move, as formulas in the dims and as numbers by the hints. */
#include "gen/bytes.h"

#include "gen/workspace.h"

int64_t *gen_guess_dims(Job *job, const Prog *prog) {
    int64_t *dims = IR_NEW_ARRAY(job, int64_t, prog->dims.count + 1);
    for (uint32_t i = 0; i < prog->dims.count; i++) dims[i] = ir_dim_guess(&prog->dims.at[i]);
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

/* The part counts by the guess; NULL where one passes 2^62. */
static int64_t *guess_parts(Job *job, const Unit *unit, const int64_t *dims) {
    const Prog *prog = unit->prog;
    const Target *target = unit->options.target ? unit->options.target : gen_target(90);
    int64_t *parts = IR_NEW_ARRAY(job, int64_t, prog->parts.count + 1);
    if (unit->plan && !gen_eval_parts(unit->plan, prog->parts.count, dims, prog->dims.count, target->sms, false, parts))
        return NULL;
    for (uint32_t k = 0; !unit->plan && k < prog->parts.count; k++) parts[k] = target->sms;
    return parts;
}

int64_t gen_bytes_guess(Job *job, const Unit *unit, Poly bytes) {
    const Prog *prog = unit->prog;
    const int64_t *dims = gen_guess_dims(job, prog), *parts = guess_parts(job, unit, dims);
    int64_t value;
    if (!parts) return IR_MAX_EXTENT;
    return ir_poly_eval(bytes, dims, prog->dims.count, parts, prog->parts.count, &value) ? value : IR_MAX_EXTENT;
}

int64_t gen_size_factor(Job *job, const Prog *prog, Size size) {
    if (size.kind == SIZE_INT) return size.value;
    const Poly poly = ir_size_poly(job, prog, size);
    int64_t factor = 0;
    for (uint32_t t = 0; t < poly.count; t++) {
        int64_t term = poly.terms[t].coefficient;
        for (uint32_t k = 0; k < IR_MAX_DEGREE && poly.terms[t].symbol[k] != IR_NO_SYMBOL; k++) {
            const uint32_t symbol = poly.terms[t].symbol[k];
            int64_t more;
            if (symbol >= prog->dims.count) continue; /* a part count */
            const Dim *dim = &prog->dims.at[symbol];
            if (!ir_mul_overflows(term, dim->value >= 0 ? dim->value : dim->multiple, &more)) term = more;
        }
        if (term % poly.terms[t].divisor) return 1;
        term /= poly.terms[t].divisor;
        factor = t ? ir_common_factor(factor, term) : term;
    }
    return factor;
}

/* ---- loads of later phases ---- */

#define SM_THREADS 2048 /* that an SM runs at once; where a step leaves its CTAs an SM to the compiler */

static uint32_t phases_that_load(const Step *step, const Nest *nest, uint32_t access) {
    uint32_t count = 0;
    for (uint32_t q = 0; q < step->phase_count; q++) {
        bool here = false;
        for (uint32_t i = 0; i < step->phases[q].loads.count; i++) {
            const Stmt *load = &nest->stmts.at[step->phases[q].loads.at[i]];
            here = here || (load->access == access && ir_is_full_read(nest, load));
        }
        count += here;
    }
    return count;
}

/* Of what the step touches, the share of the CTAs that run at once. */
static int64_t touched_at_once(Job *job, const Unit *unit, const Step *step) {
    const Target *target = unit->options.target ? unit->options.target : gen_target(90);
    const int64_t all = gen_bytes_guess(job, unit, gen_step_bytes(job, unit, step));
    const int64_t *dims = gen_guess_dims(job, unit->prog), *counts = guess_parts(job, unit, dims);
    int64_t ctas;
    if (!counts || !gen_step_tiles(step, unit->prog, dims, counts, &ctas)) ctas = IR_MAX_EXTENT;
    const int64_t parts =
        step->part == IR_NONE ? 1 : gen_bytes_guess(job, unit, ir_poly_symbol(job, IR_POLY_PART + step->part));
    const int64_t each = step->tile.min_ctas ? step->tile.min_ctas : SM_THREADS / step->tile.threads;
    if (ir_mul_overflows(ctas, parts, &ctas)) ctas = IR_MAX_EXTENT;
    const int64_t resident = target->sms * (each > 1 ? each : 1);
    return ctas <= resident ? all : (int64_t)((double)all * (double)resident / (double)ctas);
}

Again gen_step_again(Job *job, const Unit *unit, const Step *step) {
    const Nest *nest = &unit->prog->nests.at[step->nest];
    const Target *target = unit->options.target ? unit->options.target : gen_target(90);
    Again again = {.bytes = ir_poly_int(job, 0)};
    bool overflow = false;
    for (uint32_t a = 0; a < nest->accesses.count; a++) {
        const uint32_t phases = phases_that_load(step, nest, a);
        if (phases < 2) continue;
        const Poly own = times(job, gen_access_bytes(job, unit->prog, nest, &nest->accesses.at[a]), phases - 1);
        again.bytes = ir_poly_add(job, again.bytes, own, &overflow);
    }
    if (again.bytes.count) again.at_once = touched_at_once(job, unit, step);
    again.counted = again.at_once > target->l2_bytes;
    return again;
}

Poly gen_step_moved(Job *job, const Unit *unit, const Step *step) {
    const Again again = gen_step_again(job, unit, step);
    const Poly once = gen_step_bytes(job, unit, step);
    bool overflow = false;
    return again.counted ? ir_poly_add(job, once, again.bytes, &overflow) : once;
}

/* ---- the whole ---- */

/* What all loads, or all stores, of a buf touch: reads of other elements add up, up to the whole buf. */
static Poly touched_bytes(Job *job, const Unit *unit, uint32_t buf, bool loads) {
    IR_LIST(struct {
        Poly bytes;
        Size offset;
    })
    seen = {0};
    const Prog *prog = unit->prog;
    bool overflow = false;
    for (uint32_t s = 0; s < unit->plan->steps.count; s++) {
        const Nest *nest = &prog->nests.at[unit->plan->steps.at[s].nest];
        for (uint32_t i = 0; i < nest->stmts.count; i++) {
            const Stmt *stmt = &nest->stmts.at[i];
            if (stmt->access == IR_NONE || (stmt->op == OP_LOAD) != loads) continue;
            const Access *access = &nest->accesses.at[stmt->access];
            if (access->buf != buf) continue;
            const Poly bytes = gen_access_bytes(job, prog, nest, access);
            bool known = false;
            for (uint32_t k = 0; k < seen.count; k++)
                known = known ||
                        (ir_poly_equal(seen.at[k].bytes, bytes) && ir_size_equal(seen.at[k].offset, access->offset));
            if (known) continue;
            (void)IR_PUSH(job, &seen);
            seen.at[seen.count - 1].bytes = bytes;
            seen.at[seen.count - 1].offset = access->offset;
        }
    }
    Poly sum = ir_poly_int(job, 0), whole = ir_poly_int(job, ir_dtype(prog->bufs.at[buf].dtype)->bytes);
    for (uint32_t k = 0; k < seen.count; k++) sum = ir_poly_add(job, sum, seen.at[k].bytes, &overflow);
    for (uint32_t d = 0; d < prog->bufs.at[buf].rank; d++)
        whole = ir_poly_mul(job, whole, ir_size_poly(job, prog, prog->bufs.at[buf].extent[d]), &overflow);
    const int64_t some = gen_bytes_guess(job, unit, sum), most = gen_bytes_guess(job, unit, whole);
    return some > most ? whole : sum;
}

Poly gen_ideal_bytes(Job *job, const Unit *unit) {
    Poly sum = ir_poly_int(job, 0);
    bool overflow = false;
    for (uint32_t b = 0; b < unit->prog->bufs.count; b++) {
        const BufKind kind = unit->prog->bufs.at[b].kind;
        if (kind != BUF_IN && kind != BUF_OUT) continue;
        sum = ir_poly_add(job, sum, touched_bytes(job, unit, b, true), &overflow);
        if (kind == BUF_OUT) sum = ir_poly_add(job, sum, touched_bytes(job, unit, b, false), &overflow);
    }
    return sum;
}

Poly gen_moved_bytes(Job *job, const Unit *unit) {
    Poly sum = ir_poly_int(job, 0);
    bool overflow = false;
    for (uint32_t s = 0; s < unit->plan->steps.count; s++)
        sum = ir_poly_add(job, sum, gen_step_moved(job, unit, &unit->plan->steps.at[s]), &overflow);
    return sum;
}

/* ---- texts ---- */

const char *gen_poly_text(Job *job, const Prog *prog, Poly poly) {
    const char **names = IR_NEW_ARRAY(job, const char *, prog->dims.count + 1);
    for (uint32_t i = 0; i < prog->dims.count; i++) names[i] = prog->dims.at[i].name;
    Text text = ir_text(job);
    ir_poly_print(&text, poly, names, prog->dims.count);
    return ir_text_string(&text);
}

const char *gen_grid_text(Job *job, const Prog *prog, const Step *step) {
    const char *units = gen_poly_text(job, prog, step->units), *part = "";
    int64_t one = 0;
    if (step->part != IR_NONE) part = prog->parts.at[step->part];
    if (step->run_each) {
        const char *run = gen_poly_text(job, prog, step->run);
        units = ir_format(job, step->units.count > 1 ? "(%s)*ceil(%s / %lld)" : "%s*ceil(%s / %lld)", units,
                          step->run.count > 1 ? ir_format(job, "(%s)", run) : run, (long long)step->run_each);
    }
    const bool sum = step->units.count > 1 && !step->run_each;
    const bool alone = *part && !step->run_each && ir_poly_is_int(step->units, &one) && one == 1;
    if (alone) return part;
    if (step->units_per_cta != 1)
        units = ir_format(job, sum ? "ceil((%s) / %lld)" : "ceil(%s / %lld)", units, (long long)step->units_per_cta);
    else if (sum && *part)
        units = ir_format(job, "(%s)", units);
    return ir_format(job, "%s%s%s", units, *part ? " * " : "", part);
}

const char *gen_guess_text(Job *job, const Prog *prog) {
    Text text = ir_text(job);
    const int64_t *dims = gen_guess_dims(job, prog);
    for (uint32_t i = 0; i < prog->dims.count; i++)
        if (prog->dims.at[i].value < 0)
            ir_text_format(&text, "%s%s=%lld", text.count ? ", " : "", prog->dims.at[i].name, (long long)dims[i]);
    return ir_text_string(&text);
}

bool gen_poly_has(Poly poly, uint32_t symbol) {
    for (uint32_t t = 0; t < poly.count; t++)
        for (uint32_t i = 0; i < IR_MAX_DEGREE; i++)
            if (poly.terms[t].symbol[i] == symbol) return true;
    return false;
}

/* "M=1024, P0=132": the guess for the dims and part counts of a polynomial. */
static const char *values_text(Job *job, const Unit *unit, Poly poly) {
    const Prog *prog = unit->prog;
    const int64_t *dims = gen_guess_dims(job, prog), *parts = guess_parts(job, unit, dims);
    Text text = ir_text(job);
    for (uint32_t i = 0; i < prog->dims.count; i++)
        if (gen_poly_has(poly, i))
            ir_text_format(&text, "%s%s=%lld", text.count ? ", " : "", prog->dims.at[i].name, (long long)dims[i]);
    for (uint32_t k = 0; parts && k < prog->parts.count; k++)
        if (gen_poly_has(poly, IR_POLY_PART + k))
            ir_text_format(&text, "%s%s=%lld", text.count ? ", " : "", prog->parts.at[k], (long long)parts[k]);
    return ir_text_string(&text);
}

const char *gen_bytes_text(Job *job, const Unit *unit, Poly bytes) {
    const char *formula = gen_poly_text(job, unit->prog, bytes);
    const int64_t value = gen_bytes_guess(job, unit, bytes);
    if (ir_poly_is_int(bytes, NULL)) return formula;
    for (uint32_t i = 0; i < unit->prog->dims.count; i++)
        if (ir_poly_equal(bytes, ir_poly_symbol(job, i))) return ir_format(job, "%s = %lld", formula, (long long)value);
    return ir_format(job, "%s = %lld with %s", formula, (long long)value, values_text(job, unit, bytes));
}
