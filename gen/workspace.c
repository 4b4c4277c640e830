/* In: a plan's steps. Out: its rooms, and their places for numbers of dims and parts. Left alone: the steps.
 *
 * Bufs are taken in the order of the steps that first write them. A buf moves into a room whose last lodger was read
 * for the last time by an earlier step: of those that hold it, by the dims' hints, the smallest, else the largest,
 * which has to grow least. Any choice is right, since a room is as large as the largest of its lodgers. */
#include "gen/workspace.h"

#include "gen/bytes.h"

typedef struct Life { /* steps; first > last: no step uses it */
    uint32_t first, last;
} Life;

typedef struct Lodging {
    Job *job;
    const Prog *prog;
    Plan *plan;
    const int64_t *guess; /* of prog->dims */
    int64_t *parts;       /* of prog->parts, by the guess */
    int sms;
    uint32_t *last; /* of each room: the last step that reads its last lodger */
    int64_t *bytes; /* of each room, by the guess */
} Lodging;

static Life *find_lives(Job *job, const Prog *prog, const Plan *plan) {
    Life *lives = IR_NEW_ARRAY(job, Life, prog->bufs.count + 1);
    for (uint32_t b = 0; b < prog->bufs.count; b++) lives[b] = (Life){UINT32_MAX, 0};
    for (uint32_t s = 0; s < plan->steps.count; s++) {
        const Nest *nest = &prog->nests.at[plan->steps.at[s].nest];
        for (uint32_t i = 0; i < nest->stmts.count; i++) {
            if (nest->stmts.at[i].access == IR_NONE) continue;
            Life *life = &lives[nest->accesses.at[nest->stmts.at[i].access].buf];
            if (s < life->first) life->first = s;
            if (s > life->last) life->last = s;
        }
    }
    return lives;
}

/* What the polynomial is at most for these dims and any smaller ones: symbols are never negative. */
static Poly grown(Job *job, Poly poly) {
    Term *terms = IR_NEW_ARRAY(job, Term, poly.count + (size_t)1);
    uint32_t count = 0;
    for (uint32_t t = 0; t < poly.count; t++)
        if (poly.terms[t].coefficient > 0) terms[count++] = poly.terms[t];
    return (Poly){count, terms};
}

static Poly buf_bytes(Job *job, const Prog *prog, const Buf *buf) {
    bool overflow = false;
    Poly bytes = ir_poly_int(job, ir_dtype(buf->dtype)->bytes);
    for (uint32_t d = 0; d < buf->rank; d++)
        bytes = ir_poly_mul(job, bytes, grown(job, ir_size_poly(job, prog, buf->extent[d])), &overflow);
    if (overflow) ir_stop_at(job, STATUS_REJECTED, (Place){0, 0}, "the size of %s is too large", buf->name);
    return bytes;
}

/* a is at least b whatever the dims. */
static bool covers(Job *job, Poly a, Poly b) {
    bool overflow = false;
    Poly rest = ir_poly_sub(job, a, b, &overflow);
    for (uint32_t t = 0; t < rest.count; t++)
        if (rest.terms[t].coefficient < 0) return false;
    return !overflow;
}

static bool size_covers(Job *job, const RoomSize *a, const RoomSize *b) {
    if (!covers(job, a->bytes, b->bytes)) return false;
    return !a->each_sm || (b->each_sm && a->each_sm >= b->each_sm && covers(job, a->one, b->one));
}

/* Elements of a slot for each of what its parts stand beside, all behind that in the buf; 0 where it is laid out in
 * another way. */
static int64_t beside_elements(Job *job, const Prog *prog, const Buf *buf, Poly beside) {
    int64_t each = 1;
    for (uint32_t rank = buf->rank; rank > 0; rank--) {
        bool overflow = false;
        Poly product = ir_poly_int(job, 1);
        for (uint32_t d = 1; d < rank; d++)
            product = ir_poly_mul(job, product, ir_size_poly(job, prog, buf->extent[d]), &overflow);
        if (!overflow && ir_poly_equal(product, beside)) return each;
        const Size last = buf->extent[rank - 1];
        if (last.kind != SIZE_INT || ir_mul_overflows(each, last.value, &each)) return 0;
    }
    return 0;
}

/* Parts beside which other parts of the same step stand: with P parts, of B each in CTAs of E, P is at most
 * C / ceil(B / E) where C CTAs run at once, or 1, so P * B is at most C * E, or B. */
static RoomSize room_size(Job *job, const Prog *prog, const Plan *plan, const Buf *buf) {
    RoomSize size = {.bytes = buf_bytes(job, prog, buf)};
    const Size first = buf->extent[0];
    if (!buf->rank || first.kind != SIZE_PART) return size;
    const PartCount *count = &plan->parts[first.value];
    const int64_t each = beside_elements(job, prog, buf, count->beside);
    if (!each || ir_poly_is_int(count->beside, NULL) || count->ctas_per_sm == GEN_ALL_CTAS) return size;
    int64_t bytes = ir_dtype(buf->dtype)->bytes;
    bool overflow = ir_mul_overflows(bytes, each, &bytes);
    size.one = ir_poly_mul(job, grown(job, count->beside), ir_poly_int(job, bytes), &overflow);
    overflow |= ir_mul_overflows(bytes, count->beside_each, &bytes);
    overflow |= ir_mul_overflows(bytes, count->ctas_per_sm, &size.each_sm);
    if (overflow) size.each_sm = 0;
    return size;
}

static void add_lodger(Job *job, Room *room, const RoomSize *size) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < room->sizes.count; i++)
        if (size_covers(job, &room->sizes.at[i], size)) return;
    for (uint32_t i = 0; i < room->sizes.count; i++)
        if (!size_covers(job, size, &room->sizes.at[i])) room->sizes.at[kept++] = room->sizes.at[i];
    room->sizes.count = kept;
    *IR_PUSH(job, &room->sizes) = *size;
}

static uint32_t choose_room(const Lodging *l, uint32_t first, int64_t bytes) {
    uint32_t best = IR_NONE;
    for (uint32_t r = 0; r < l->plan->rooms.count; r++) {
        if (l->last[r] >= first) continue;
        if (best == IR_NONE) {
            best = r;
            continue;
        }
        bool holds = l->bytes[r] >= bytes, held = l->bytes[best] >= bytes;
        if (holds != held ? holds : holds ? l->bytes[r] < l->bytes[best] : l->bytes[r] > l->bytes[best]) best = r;
    }
    return best;
}

static bool eval_size(const RoomSize *size, const int64_t *dims, uint32_t dim_count, const int64_t *parts,
                      uint32_t part_count, int sms, int64_t *bytes) {
    int64_t most, full;
    if (!ir_poly_eval(size->bytes, dims, dim_count, parts, part_count, bytes)) return false;
    if (!size->each_sm) return true;
    if (!ir_poly_eval(size->one, dims, dim_count, NULL, 0, &most)) return false;
    if (ir_mul_overflows(size->each_sm, sms, &full)) return false;
    if (full > most) most = full;
    if (most < *bytes) *bytes = most;
    return true;
}

static void lodge(Lodging *l, uint32_t buf, Life life) {
    const RoomSize size = room_size(l->job, l->prog, l->plan, &l->prog->bufs.at[buf]);
    int64_t guess;
    if (!eval_size(&size, l->guess, l->prog->dims.count, l->parts, l->prog->parts.count, l->sms, &guess))
        guess = INT64_MAX;
    uint32_t room = choose_room(l, life.first, guess);
    if (room == IR_NONE) {
        room = l->plan->rooms.count;
        IR_PUSH(l->job, &l->plan->rooms);
    }
    add_lodger(l->job, &l->plan->rooms.at[room], &size);
    if (guess > l->bytes[room]) l->bytes[room] = guess;
    l->last[room] = life.last;
    l->plan->room_of[buf] = room;
}

void gen_plan_workspace(Job *job, Unit *unit) {
    const Prog *prog = unit->prog;
    Plan *plan = unit->plan;
    Life *lives = find_lives(job, prog, plan);
    const int64_t *guess = gen_guess_dims(job, prog);
    const Target *target = unit->options.target ? unit->options.target : gen_target(90);
    Lodging l = {.job = job, .prog = prog, .plan = plan, .guess = guess, .sms = target->sms};
    l.parts = IR_NEW_ARRAY(job, int64_t, prog->parts.count + 1);
    l.last = IR_NEW_ARRAY(job, uint32_t, prog->bufs.count + 1);
    l.bytes = IR_NEW_ARRAY(job, int64_t, prog->bufs.count + 1);
    for (uint32_t k = 0; k < prog->parts.count; k++) l.parts[k] = 1; /* where the guess passes what can be counted */
    (void)gen_eval_parts(plan, prog->parts.count, guess, prog->dims.count, target->sms, true, l.parts);
    plan->room_of = IR_NEW_ARRAY(job, uint32_t, prog->bufs.count + 1);
    for (uint32_t b = 0; b < prog->bufs.count; b++) plan->room_of[b] = IR_NONE;
    for (uint32_t s = 0; s < plan->steps.count; s++) {
        for (uint32_t b = 0; b < prog->bufs.count; b++) {
            BufKind kind = prog->bufs.at[b].kind;
            if ((kind == BUF_TMP || kind == BUF_WORKSPACE) && lives[b].first == s) lodge(&l, b, lives[b]);
        }
    }
}

/* ---- numbers ---- */

static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

bool gen_eval_parts(const Plan *plan, uint32_t part_count, const int64_t *dims, uint32_t dim_count, int sms, bool most,
                    int64_t *parts) {
    for (uint32_t k = 0; k < part_count; k++) {
        const PartCount *count = &plan->parts[k];
        int64_t units, beside = 1, ctas = (int64_t)sms * count->ctas_per_sm;
        if (!ir_poly_eval(count->units, dims, dim_count, NULL, 0, &units)) return false;
        /* with fewer columns beside them there may be more parts, unless their number is fixed */
        if (!most || ir_poly_is_int(count->beside, NULL)) {
            if (!ir_poly_eval(count->beside, dims, dim_count, NULL, 0, &beside)) return false;
            beside = ceil_div(beside, count->beside_each);
        }
        if (beside > 1) ctas /= beside;
        if (ctas < 1) ctas = 1;
        units = ceil_div(units, count->units_each);
        parts[k] = units < ctas ? units : ctas;
    }
    return true;
}

bool gen_eval_rooms(const Plan *plan, const int64_t *dims, uint32_t dim_count, const int64_t *parts,
                    uint32_t part_count, int sms, int64_t *places) {
    int64_t place = 0;
    for (uint32_t r = 0; r < plan->rooms.count; r++) {
        int64_t most = 0;
        places[r] = place;
        for (uint32_t i = 0; i < plan->rooms.at[r].sizes.count; i++) {
            int64_t bytes;
            if (!eval_size(&plan->rooms.at[r].sizes.at[i], dims, dim_count, parts, part_count, sms, &bytes))
                return false;
            if (bytes > most) most = bytes;
        }
        most = ceil_div(most, GEN_WORKSPACE_ALIGN) * GEN_WORKSPACE_ALIGN;
        if (ir_add_overflows(place, most, &place) || place >= IR_MAX_EXTENT) return false;
    }
    places[plan->rooms.count] = place;
    return true;
}
