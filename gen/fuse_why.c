/* In: two nests and the gate that keeps them apart. Out: the reason as a clause with the nests' names. Left alone: the
 * nests, and which gate it is, which fuse.c decides. */
#include "gen/fuse_why.h"

#include "gen/bytes.h"
#include "gen/nests.h"

#include <string.h>

static bool goes_across(const Nest *nest) {
    return nest->class == CLASS_OUTER || (gen_nest_partial(nest) && nest->row_count == nest->axis_count);
}

static const char *work_of(const Nest *nest) {
    static const char *const words[CLASS_COUNT] = {
        [CLASS_POINTWISE] = "is pointwise", [CLASS_INNER] = "reduces along rows",  [CLASS_MIXED] = "reduces along rows",
        [CLASS_ROW] = "reduces along rows", [CLASS_OUTER] = "reduces across rows", [CLASS_FINALIZE] = "combines parts"};
    if (nest->class == CLASS_ROW_PARTIAL) return "reduces along rows and makes parts of a sum";
    return gen_nest_partial(nest) ? "makes parts of a sum" : words[nest->class];
}

/* "M x 64"; "one point" */
static const char *extents_of(Job *job, const Prog *prog, const Nest *nest, uint32_t count) {
    Text text = ir_text(job);
    for (uint32_t a = 0; a < count; a++) {
        const Poly extent = ir_size_poly(job, prog, nest->axes[a].extent);
        ir_text_format(&text, extent.count > 1 ? "%s(%s)" : "%s%s", a ? " x " : "", gen_poly_text(job, prog, extent));
    }
    return count ? ir_text_string(&text) : "one point";
}

static const char *parts_of(const Prog *prog, const Nest *nest) {
    const Size count = prog->bufs.at[nest->accesses.at[gen_nest_partial(nest)->access].buf].extent[0];
    return prog->parts.at[count.value];
}

static const char *axes_why(Job *job, const Prog *prog, const Nest *a, const Nest *b) {
    const char *x = extents_of(job, prog, a, a->axis_count), *y = extents_of(job, prog, b, b->axis_count);
    if (strcmp(x, y) != 0) return ir_format(job, ": %s runs over %s, %s over %s", a->name, x, b->name, y);
    if (a->row_count == b->row_count) return ": their loops divide the elements differently";
    return ir_format(job, ": rows of %s run over %s, of %s over %s", a->name, extents_of(job, prog, a, a->row_count),
                     b->name, extents_of(job, prog, b, b->row_count));
}

static const char *alias_why(Job *job, const Prog *prog, const Nest *a, const Nest *b) {
    for (uint32_t o = 0; o < prog->bufs.count; o++) {
        const uint32_t over = prog->bufs.at[o].may_alias;
        if (over == IR_NONE || (!gen_nest_stores(a, o) && !gen_nest_stores(b, o))) continue;
        if (!gen_nest_loads(a, over) && !gen_nest_loads(b, over)) continue;
        const bool first = gen_nest_stores(a, o);
        return ir_format(job, ": %s stores %s over %s, of which other elements are still to be read",
                         first ? a->name : b->name, prog->bufs.at[o].name, prog->bufs.at[over].name);
    }
    return ": one overwrites what the other reads elsewhere";
}

static const char *order_why(Job *job, const Nest *a, const Nest *b) {
    if (goes_across(a) == goes_across(b)) return ": they take the elements in different orders";
    const bool first = goes_across(b);
    return ir_format(job, ": %s runs along rows, %s across them", first ? a->name : b->name, first ? b->name : a->name);
}

const char *gen_fuse_why(Job *job, const Prog *prog, const char *gate, uint32_t i, uint32_t j, uint32_t between,
                         int64_t number, int64_t limit) {
    const Nest *a = &prog->nests.at[i], *b = &prog->nests.at[j];
    if (!strcmp(gate, "order")) return order_why(job, a, b);
    if (!strcmp(gate, "axes")) return axes_why(job, prog, a, b);
    if (!strcmp(gate, "alias")) return alias_why(job, prog, a, b);
    if (!strcmp(gate, "class")) return ir_format(job, ": %s %s, %s %s", a->name, work_of(a), b->name, work_of(b));
    if (!strcmp(gate, "map"))
        return ir_format(job, ": %s reads other elements of what %s stores than those at hand", b->name, a->name);
    if (!strcmp(gate, "cycle"))
        return ir_format(job, ": %s waits for %s, which waits for the whole of %s", b->name,
                         prog->nests.at[between].name, a->name);
    if (!strcmp(gate, "parts")) {
        const bool first = gen_nest_partial(a), second = gen_nest_partial(b);
        if (first && second)
            return ir_format(job, ": %s works in %s parts, %s in %s", a->name, parts_of(prog, a), b->name,
                             parts_of(prog, b));
        if (!first && !second) return ir_format(job, ": %s and %s combine different parts", a->name, b->name);
        return ir_format(job, ": %s makes parts of a sum, %s takes rows whole", first ? a->name : b->name,
                         first ? b->name : a->name);
    }
    const bool reads = !strcmp(gate, "reads");
    return ir_format(job, ": %lld, at most %lld%s in one kernel", (long long)number, (long long)limit,
                     reads ? " full reads" : "");
}
