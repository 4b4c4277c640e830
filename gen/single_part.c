/* In: nests after partial. Out: those of which one part is enough, whole again, and what was read to decide that. Left
 * alone: the others, and how parts are made (gen/partial.c). */
#include "gen/knobs.h"
#include "gen/nests.h"
#include "gen/partial.h"

#include <string.h>

bool gen_same_parts(const Prog *prog, const Nest *a, const Nest *b) {
    const Stmt *x = gen_nest_partial(a), *y = gen_nest_partial(b);
    if (!x && !y) return true;
    const Nest *parted = x ? a : b, *other = x ? b : a;
    if (!x || !y) return gen_is_plain(other) || parted->row_count < parted->axis_count;
    const Buf *p = &prog->bufs.at[a->accesses.at[x->access].buf], *q = &prog->bufs.at[b->accesses.at[y->access].buf];
    return x->consumed == y->consumed && ir_size_equal(p->extent[0], q->extent[0]);
}

typedef struct Parts { /* of a nest that makes some */
    bool single;       /* one is best */
    bool forced;       /* whatever others do */
    bool told;         /* long rows: why they have parts */
    const char *why;   /* NULL: it makes none */
} Parts;

static Parts look_at_parts(Job *job, Unit *unit, uint32_t n) {
    const Prog *prog = unit->prog;
    const Nest *nest = &prog->nests.at[n];
    const Stmt *partial;
    Parts parts = {0};
    if (nest->row_count < nest->axis_count) return parts; /* with the loops of rows (gen/reorder.c) */
    if (n + 1 >= prog->nests.count || !gen_is_parts_of(nest, nest + 1, &partial)) return parts;
    parts.single = gen_one_part(job, unit, nest, partial->consumed, &parts.why);
    parts.forced = gen_knob_text(&unit->options, KNOB_SPLIT, nest->name) != NULL;
    parts.told = gen_class_by_strides(job, prog, nest, partial->consumed) != CLASS_OUTER;
    return parts;
}

/* Of each nest: whether one part is best for it, or for one that reads the same in the same parts. */
static Parts *find_single_parts(Job *job, Unit *unit) {
    const Prog *prog = unit->prog;
    Parts *parts = IR_NEW_ARRAY(job, Parts, prog->nests.count + (size_t)1);
    for (uint32_t n = 0; n < prog->nests.count; n++) parts[n] = look_at_parts(job, unit, n);
    for (uint32_t n = 0; n < prog->nests.count; n++) {
        const Nest *nest = &prog->nests.at[n];
        Parts *own = &parts[n];
        if (!own->why) continue;
        for (uint32_t k = 0; !own->single && !own->forced && k < prog->nests.count; k++) {
            const Nest *other = &prog->nests.at[k];
            if (!parts[k].single || !gen_same_parts(prog, nest, other) || !gen_share_full_read(nest, other)) continue;
            own->single = true;
            own->why = ir_format(job, "it reads what %s does", other->name);
        }
        if (own->told && !own->single) continue;
        const char *what = own->single ? "has one part" : "is made in parts";
        *IR_PUSH(job, &unit->reports) = (Report){
            .pass = "partial", .nests = nest->name, .text = ir_format(job, "%s %s: %s", nest->name, what, own->why)};
    }
    return parts;
}

void gen_unite_single_parts(Job *job, Unit *unit) {
    Prog *prog = unit->prog;
    const Parts *parts = find_single_parts(job, unit);
    uint32_t kept = 0;
    for (uint32_t n = 0; n < prog->nests.count; n++) {
        const Stmt *partial;
        Nest *nest = &prog->nests.at[kept++];
        *nest = prog->nests.at[n];
        if (!parts[n].single || !gen_is_parts_of(nest, &prog->nests.at[n + 1], &partial)) continue;
        const uint32_t consumed = partial->consumed;
        *nest = gen_unite_parts(job, nest, &prog->nests.at[++n], partial);
        nest->class = gen_class_by_strides(job, prog, nest, consumed); /* long rows were in parts too */
    }
    if (kept == prog->nests.count) return;
    prog->nests.count = kept;
    gen_tidy(job, prog);
}
