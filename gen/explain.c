/* In: a unit after schedule. Out: what explain prints: what the whole moves against the least that it must, where tmp
 * buffers lie, each kernel in order (gen/explain_kernel.c), and what passes noted: joined, cut, and why not. */
#include "gen/explain.h"
#include "gen/workspace.h"

#include <math.h>
#include <string.h>

#define LAUNCH_US 1.0 /* what a launch adds in a stream or graph, about */

bool gen_explain_value(const Explain *e, Poly poly, int64_t *value) {
    return e->dims && ir_poly_eval(poly, e->dims, e->prog->dims.count, e->parts, e->prog->parts.count, value);
}

double gen_explain_time(const Explain *e, int64_t bytes) { return (double)bytes / (e->target->dram_gbs * 1e3); }

const char *gen_explain_number(Job *job, double number) {
    double unit = 1;
    while (number != 0 && fabs(number) * unit < 100 && unit < 1e6) unit *= 10;
    Text text = ir_text(job);
    ir_text_double(&text, fabs(number) < 1e15 ? round(number * unit) / unit : number);
    return ir_text_string(&text);
}

void gen_explain_size(const Explain *e, const char *key, Poly poly, const char *rest) {
    const char *formula = gen_poly_text(e->job, e->prog, poly);
    int64_t value = 0;
    const bool known = gen_explain_value(e, poly, &value);
    gen_tell_open(e->tell, key, false);
    gen_tell_json_text(e->tell, "formula", formula);
    if (known) gen_tell_json_int(e->tell, "value", value);
    gen_tell_close(e->tell, false);
    if (e->tell->json) return;
    const bool number = ir_poly_is_int(poly, NULL) || !known;
    gen_tell_text(e->tell, key,
                  number ? ir_format(e->job, "%s%s", formula, rest)
                         : ir_format(e->job, "%s = %lld%s", formula, (long long)value, rest));
}

/* ---- the least there is to move ---- */

/* What all loads, or all stores, of a buf touch: reads of other elements add up, up to the whole buf. */
static Poly touched_bytes(const Explain *e, uint32_t buf, bool loads) {
    IR_LIST(struct {
        Poly bytes;
        Size offset;
    })
    seen = {0};
    const Prog *prog = e->prog;
    bool overflow = false;
    for (uint32_t s = 0; s < e->plan->steps.count; s++) {
        const Nest *nest = &prog->nests.at[e->plan->steps.at[s].nest];
        for (uint32_t i = 0; i < nest->stmts.count; i++) {
            const Stmt *stmt = &nest->stmts.at[i];
            if (stmt->access == IR_NONE || (stmt->op == OP_LOAD) != loads) continue;
            const Access *access = &nest->accesses.at[stmt->access];
            if (access->buf != buf) continue;
            const Poly bytes = gen_access_bytes(e->job, prog, nest, access);
            bool known = false;
            for (uint32_t k = 0; k < seen.count; k++)
                known = known ||
                        (ir_poly_equal(seen.at[k].bytes, bytes) && ir_size_equal(seen.at[k].offset, access->offset));
            if (known) continue;
            (void)IR_PUSH(e->job, &seen);
            seen.at[seen.count - 1].bytes = bytes;
            seen.at[seen.count - 1].offset = access->offset;
        }
    }
    Poly sum = ir_poly_int(e->job, 0), whole = ir_poly_int(e->job, ir_dtype(prog->bufs.at[buf].dtype)->bytes);
    for (uint32_t k = 0; k < seen.count; k++) sum = ir_poly_add(e->job, sum, seen.at[k].bytes, &overflow);
    for (uint32_t d = 0; d < prog->bufs.at[buf].rank; d++)
        whole = ir_poly_mul(e->job, whole, ir_size_poly(e->job, prog, prog->bufs.at[buf].extent[d]), &overflow);
    int64_t some, most;
    const bool more = gen_explain_value(e, sum, &some) && gen_explain_value(e, whole, &most) && some > most;
    return more ? whole : sum;
}

/* Each input read once, each output written once; what is added to is read too. */
static Poly ideal_bytes(const Explain *e) {
    Poly sum = ir_poly_int(e->job, 0);
    bool overflow = false;
    for (uint32_t b = 0; b < e->prog->bufs.count; b++) {
        const BufKind kind = e->prog->bufs.at[b].kind;
        if (kind != BUF_IN && kind != BUF_OUT) continue;
        sum = ir_poly_add(e->job, sum, touched_bytes(e, b, true), &overflow);
        if (kind == BUF_OUT) sum = ir_poly_add(e->job, sum, touched_bytes(e, b, false), &overflow);
    }
    return sum;
}

static void tell_bytes(const Explain *e) {
    Poly all = ir_poly_int(e->job, 0);
    bool overflow = false;
    for (uint32_t s = 0; s < e->plan->steps.count; s++)
        all = ir_poly_add(e->job, all, gen_step_bytes(e->job, e->unit, &e->plan->steps.at[s]), &overflow);
    const Poly ideal = ideal_bytes(e);
    int64_t moved, least;
    const bool known = gen_explain_value(e, all, &moved) && gen_explain_value(e, ideal, &least);
    const char *ratio = "";
    if (known && least > 0) {
        const char *times = gen_explain_number(e->job, (double)moved / (double)least);
        ratio = moved == least ? ": no more than the ideal" : ir_format(e->job, ", %s of the ideal", times);
    }
    gen_explain_size(e, "bytes", all, ratio);
    gen_explain_size(e, "ideal", ideal, ": each input read once, each output written once");
    if (!known) return;
    const uint32_t launches = e->plan->steps.count;
    const double us = gen_explain_time(e, moved), launch_us = LAUNCH_US * launches;
    gen_tell_json_double(e->tell, "expected_us", us);
    gen_tell_json_double(e->tell, "launches_us", launch_us);
    gen_tell_json_double(e->tell, "copy_gbs", e->target->dram_gbs);
    if (e->tell->json) return;
    gen_tell_text(e->tell, "expected",
                  ir_format(e->job, "%s us at %s GB/s, the copy rate of %s; %u launch%s add%s about %s us",
                            gen_explain_number(e->job, us), gen_explain_number(e->job, e->target->dram_gbs),
                            e->target->name, launches, launches == 1 ? "" : "es", launches == 1 ? "s" : "",
                            gen_explain_number(e->job, launch_us)));
}

/* ---- parts and workspace ---- */

static const char *quotient(const Explain *e, Poly poly, int64_t by) {
    const char *text = gen_poly_text(e->job, e->prog, poly);
    if (by == 1) return text;
    return ir_format(e->job, poly.count > 1 ? "ceil((%s) / %lld)" : "ceil(%s / %lld)", text, (long long)by);
}

static void tell_parts(const Explain *e) {
    gen_tell_open(e->tell, "parts", true);
    for (uint32_t k = 0; k < e->prog->parts.count; k++) {
        const PartCount *count = &e->plan->parts[k];
        int64_t one;
        const char *name = e->prog->parts.at[k], *most = quotient(e, count->beside, count->beside_each);
        const bool alone = ir_poly_is_int(count->beside, &one) && one <= count->beside_each;
        const char *formula =
            ir_format(e->job, alone ? "min(%s, %lld CTAs an SM%s)" : "min(%s, %lld CTAs an SM / %s)",
                      quotient(e, count->units, count->units_each), (long long)count->ctas_per_sm, alone ? "" : most);
        gen_tell_open(e->tell, NULL, false);
        gen_tell_json_text(e->tell, "name", name);
        gen_tell_json_text(e->tell, "formula", formula);
        if (e->dims) gen_tell_json_int(e->tell, "value", e->parts[k]);
        gen_tell_close(e->tell, false);
        if (e->tell->json) continue;
        gen_tell_text(e->tell, k ? "" : "parts",
                      e->dims ? ir_format(e->job, "%s = %s = %lld on %d SMs", name, formula, (long long)e->parts[k],
                                          e->target->sms)
                              : ir_format(e->job, "%s = %s", name, formula));
    }
    gen_tell_close(e->tell, true);
}

static const char *lodgers(const Explain *e, uint32_t room) {
    Text text = ir_text(e->job);
    for (uint32_t b = 0; b < e->prog->bufs.count; b++)
        if (e->plan->room_of[b] == room)
            ir_text_format(&text, "%s%s", text.count ? ", then " : "", e->prog->bufs.at[b].name);
    return ir_text_string(&text);
}

static void tell_room(const Explain *e, uint32_t room, int64_t bytes) {
    Text sizes = ir_text(e->job);
    const Room *own = &e->plan->rooms.at[room];
    for (uint32_t i = 0; i < own->sizes.count; i++)
        ir_text_format(&sizes, "%s%s",
                       i                      ? ", "
                       : own->sizes.count > 1 ? "max("
                                              : "",
                       gen_poly_text(e->job, e->prog, own->sizes.at[i]));
    if (own->sizes.count > 1) ir_text_put(&sizes, ")");
    const char *formula = ir_text_string(&sizes), *who = lodgers(e, room);
    gen_tell_open(e->tell, NULL, false);
    gen_tell_json_text(e->tell, "holds", who);
    gen_tell_json_text(e->tell, "formula", formula);
    if (bytes >= 0) gen_tell_json_int(e->tell, "bytes", bytes);
    gen_tell_close(e->tell, false);
    if (e->tell->json) return;
    gen_tell_text(e->tell, "",
                  bytes >= 0 ? ir_format(e->job, "%s: %s, %lld bytes", who, formula, (long long)bytes)
                             : ir_format(e->job, "%s: %s", who, formula));
}

/* Rooms are as large as the most that their lodgers take for these dims or smaller ones, in whole 256s. */
static void tell_workspace(const Explain *e) {
    const uint32_t rooms = e->plan->rooms.count;
    int64_t *places = IR_NEW_ARRAY(e->job, int64_t, rooms + (size_t)1);
    int64_t *most = IR_NEW_ARRAY(e->job, int64_t, e->prog->parts.count + (size_t)1);
    const uint32_t dims = e->prog->dims.count, parts = e->prog->parts.count;
    const bool known = e->dims && gen_eval_parts(e->plan, parts, e->dims, dims, e->target->sms, true, most) &&
                       gen_eval_rooms(e->plan, e->dims, dims, most, parts, places);
    if (known) gen_tell_json_int(e->tell, "workspace_bytes", places[rooms]);
    if (!e->tell->json)
        gen_tell_text(e->tell, "workspace",
                      !rooms  ? "none"
                      : known ? ir_format(e->job, "%lld bytes", (long long)places[rooms])
                              : "more than can be counted");
    gen_tell_open(e->tell, "workspace", true);
    for (uint32_t r = 0; r < rooms; r++) tell_room(e, r, known ? places[r + 1] - places[r] : -1);
    gen_tell_close(e->tell, true);
}

/* ---- what passes noted ---- */

static void tell_report(const Explain *e, const Report *report) {
    gen_tell_line(e->tell, 4, ir_format(e->job, "  %s", report->text));
    gen_tell_open(e->tell, NULL, false);
    gen_tell_json_bool(e->tell, "done", !report->gate);
    gen_tell_json_text(e->tell, "nests", report->nests);
    gen_tell_json_text(e->tell, "gate", report->gate);
    if (report->limit) gen_tell_json_int(e->tell, "number", report->number);
    if (report->limit) gen_tell_json_int(e->tell, "limit", report->limit);
    gen_tell_json_text(e->tell, "text", report->text);
    gen_tell_close(e->tell, false);
}

/* First what was done, then what was not. */
static void tell_reports(const Explain *e, const char *pass, const char *heading) {
    gen_tell_open(e->tell, heading, true);
    for (uint32_t turn = 0; turn < 2; turn++) {
        const bool refused = turn == 1;
        bool any = false;
        for (uint32_t i = 0; i < e->unit->reports.count; i++) {
            const Report *report = &e->unit->reports.at[i];
            if (strcmp(report->pass, pass) != 0 || (report->gate != NULL) != refused) continue;
            if (!any) gen_tell_line(e->tell, 0, ir_format(e->job, "\n%s %s", heading, refused ? "refused" : "made"));
            any = true;
            tell_report(e, report);
        }
    }
    gen_tell_close(e->tell, true);
}

/* Choices that are of no kernel. */
static void tell_other_choices(const Explain *e) {
    bool any = false;
    gen_tell_open(e->tell, "choices", true);
    for (uint32_t i = 0; i < e->plan->choices.count; i++) {
        const char *text = e->plan->choices.at[i].text;
        bool told = false;
        for (uint32_t s = 0; s < e->plan->steps.count && !told; s++) {
            const char *name = e->prog->nests.at[e->plan->steps.at[s].nest].name;
            told = !strncmp(text, name, strlen(name)) && !strncmp(text + strlen(name), ": ", 2);
        }
        if (told) continue;
        if (!any) gen_tell_line(e->tell, 0, "\nchoices");
        any = true;
        gen_tell_line(e->tell, 4, ir_format(e->job, "  %s", text));
        gen_tell_json_text(e->tell, NULL, text);
    }
    gen_tell_close(e->tell, true);
}

/* ---- the whole ---- */

static void tell_head(const Explain *e) {
    const uint32_t kernels = e->plan->steps.count;
    gen_tell_json_text(e->tell, "graph", e->prog->name);
    gen_tell_json_int(e->tell, "arch", e->target->arch);
    gen_tell_json_text(e->tell, "planned_for", e->target->name);
    gen_tell_open(e->tell, "dims", false);
    for (uint32_t d = 0; e->dims && d < e->prog->dims.count; d++)
        gen_tell_json_int(e->tell, e->prog->dims.at[d].name, e->dims[d]);
    gen_tell_close(e->tell, false);
    if (e->tell->json) return;
    gen_tell_line(e->tell, 0,
                  ir_format(e->job, "%s: %u kernel%s, planned for sm_%d (%s)", e->prog->name, kernels,
                            kernels == 1 ? "" : "s", e->target->arch, e->target->name));
    if (e->prog->dims.count)
        gen_tell_text(
            e->tell, "numbers",
            ir_format(e->job, "with %s (a dim's --hint, else its max, else 1024)", gen_guess_text(e->job, e->prog)));
}

void gen_explain(Text *text, const Unit *unit, bool json) {
    Job *job = text->job;
    Tell tell = gen_tell(job, json);
    Explain e = {.job = job, .unit = unit, .prog = unit->prog, .plan = unit->plan, .tell = &tell};
    e.target = unit->options.target ? unit->options.target : gen_target(90);
    e.parts = IR_NEW_ARRAY(job, int64_t, unit->prog->parts.count + (size_t)1);
    const int64_t *dims = gen_guess_dims(job, unit->prog);
    if (gen_eval_parts(unit->plan, unit->prog->parts.count, dims, unit->prog->dims.count, e.target->sms, false,
                       e.parts))
        e.dims = dims;
    gen_tell_open(&tell, NULL, false);
    tell_head(&e);
    tell_bytes(&e);
    tell_parts(&e);
    tell_workspace(&e);
    gen_tell_open(&tell, "kernels", true);
    for (uint32_t s = 0; s < unit->plan->steps.count; s++) gen_explain_kernel(&e, s);
    gen_tell_close(&tell, true);
    tell_reports(&e, "partial", "splits");
    tell_reports(&e, "reorder", "loops");
    tell_reports(&e, "fuse", "fusions");
    tell_reports(&e, "cut", "cuts");
    tell_reports(&e, "pair", "pairs");
    tell_other_choices(&e);
    gen_tell_close(&tell, false);
    ir_text_bytes(text, tell.out.bytes, tell.out.count);
}
