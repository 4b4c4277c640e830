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

const char *gen_explain_bytes(const Explain *e, Poly poly) {
    const char *formula = gen_poly_text(e->job, e->prog, poly);
    int64_t value;
    if (ir_poly_is_int(poly, NULL) || !gen_explain_value(e, poly, &value)) return formula;
    return ir_format(e->job, "%s = %lld", formula, (long long)value);
}

void gen_explain_json_bytes(const Explain *e, const char *key, Poly poly) {
    int64_t value;
    gen_tell_open(e->tell, key, false);
    gen_tell_json_text(e->tell, "formula", gen_poly_text(e->job, e->prog, poly));
    if (gen_explain_value(e, poly, &value)) gen_tell_json_int(e->tell, "value", value);
    gen_tell_close(e->tell, false);
}

void gen_explain_size(const Explain *e, const char *key, Poly poly, const char *rest) {
    gen_explain_json_bytes(e, key, poly);
    if (!e->tell->json) gen_tell_text(e->tell, key, ir_format(e->job, "%s%s", gen_explain_bytes(e, poly), rest));
}

static void tell_bytes(const Explain *e) {
    const Poly all = gen_moved_bytes(e->job, e->unit), ideal = gen_ideal_bytes(e->job, e->unit);
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
        const char *formula = quotient(e, count->units, count->units_each);
        if (count->ctas_per_sm != GEN_ALL_CTAS)
            formula = ir_format(e->job, alone ? "min(%s, %lld CTAs an SM%s)" : "min(%s, %lld CTAs an SM / %s)", formula,
                                (long long)count->ctas_per_sm, alone ? "" : most);
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

/* What the lodgers of a room take in a launch of the guess, where that goes by parts; false: it does not. */
static bool taken_by_parts(const Explain *e, const Room *room, int64_t *taken) {
    bool by_parts = false;
    *taken = 0;
    for (uint32_t i = 0; i < room->sizes.count; i++) {
        int64_t bytes;
        for (uint32_t k = 0; k < e->prog->parts.count; k++)
            by_parts = by_parts || gen_poly_has(room->sizes.at[i].bytes, IR_POLY_PART + k);
        if (!gen_explain_value(e, room->sizes.at[i].bytes, &bytes)) return false;
        if (bytes > *taken) *taken = bytes;
    }
    return by_parts;
}

static void tell_room(const Explain *e, uint32_t room, int64_t bytes) {
    Text sizes = ir_text(e->job);
    const Room *own = &e->plan->rooms.at[room];
    for (uint32_t i = 0; i < own->sizes.count; i++)
        ir_text_format(&sizes, "%s%s",
                       i                      ? ", "
                       : own->sizes.count > 1 ? "max("
                                              : "",
                       gen_poly_text(e->job, e->prog, own->sizes.at[i].bytes));
    if (own->sizes.count > 1) ir_text_put(&sizes, ")");
    const char *who = lodgers(e, room);
    const char *formula = ir_text_string(&sizes);
    int64_t taken;
    gen_tell_open(e->tell, NULL, false);
    gen_tell_json_text(e->tell, "holds", who);
    gen_tell_json_text(e->tell, "formula", formula);
    if (bytes >= 0) gen_tell_json_int(e->tell, "bytes", bytes);
    gen_tell_close(e->tell, false);
    if (e->tell->json) return;
    gen_tell_text(e->tell, "",
                  bytes < 0 ? ir_format(e->job, "%s: %s", who, formula)
                  : taken_by_parts(e, own, &taken)
                      ? ir_format(e->job, "%s: %s = %lld, in %lld bytes, which smaller dims do not pass either", who,
                                  formula, (long long)taken, (long long)bytes)
                      : ir_format(e->job, "%s: %s, %lld bytes", who, formula, (long long)bytes));
}

/* Rooms are as large as the most that their lodgers take for these dims or smaller ones, in whole 256s. */
static void tell_workspace(const Explain *e) {
    const uint32_t rooms = e->plan->rooms.count;
    int64_t *places = IR_NEW_ARRAY(e->job, int64_t, rooms + (size_t)1);
    int64_t *most = IR_NEW_ARRAY(e->job, int64_t, e->prog->parts.count + (size_t)1);
    const uint32_t dims = e->prog->dims.count, parts = e->prog->parts.count;
    const bool known = e->dims && gen_eval_parts(e->plan, parts, e->dims, dims, e->target->sms, true, most) &&
                       gen_eval_rooms(e->plan, e->dims, dims, most, parts, e->target->sms, places);
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

/* A refused fusion, for people: the pair, behind it the reason, and what it costs on a line of its own. */
static void tell_pair(const Explain *e, const Report *report, uint32_t width) {
    static const char between[] = " are not joined: ";
    const char *reason = strstr(report->text, between), *head = report->nests;
    reason = reason ? reason + strlen(between) : report->text;
    while (*reason) {
        const char *end = strstr(reason, "; ");
        const size_t count = end ? (size_t)(end - reason) : strlen(reason);
        gen_tell_line(e->tell, width + 5, ir_format(e->job, "  %-*s   %.*s", (int)width, head, (int)count, reason));
        reason += end ? count + 2 : count;
        head = "";
    }
}

/* Of the pairs that fuse refused: the longest. */
static uint32_t pair_width(const Explain *e) {
    size_t width = 0;
    for (uint32_t i = 0; i < e->unit->reports.count; i++) {
        const Report *report = &e->unit->reports.at[i];
        if (report->gate && !strcmp(report->pass, "fuse") && strlen(report->nests) > width)
            width = strlen(report->nests);
    }
    return (uint32_t)width;
}

static void tell_report(const Explain *e, const Report *report) {
    if (report->gate && !strcmp(report->pass, "fuse"))
        tell_pair(e, report, pair_width(e));
    else
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
    uint32_t codes = 0;
    for (uint32_t s = 0; s < kernels; s++) codes += gen_has_code(e->plan, s);
    gen_tell_json_text(e->tell, "graph", e->prog->name);
    gen_tell_json_int(e->tell, "arch", e->target->arch);
    gen_tell_json_text(e->tell, "planned_for", e->target->name);
    gen_tell_open(e->tell, "dims", false);
    for (uint32_t d = 0; e->dims && d < e->prog->dims.count; d++)
        gen_tell_json_int(e->tell, e->prog->dims.at[d].name, e->dims[d]);
    gen_tell_close(e->tell, false);
    if (e->tell->json) return;
    gen_tell_line(e->tell, 0,
                  ir_format(e->job, "%s: %u kernel%s%s, planned for sm_%d (%s)", e->prog->name, kernels,
                            kernels == 1 ? "" : "s", codes == kernels ? "" : ir_format(e->job, ", %u distinct", codes),
                            e->target->arch, e->target->name));
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
    tell_reports(&e, "lower", "stores");
    tell_reports(&e, "partial", "splits");
    tell_reports(&e, "reorder", "loops");
    tell_reports(&e, "fuse", "fusions");
    tell_reports(&e, "cut", "cuts");
    tell_reports(&e, "pair", "pairs");
    tell_other_choices(&e);
    gen_tell_close(&tell, false);
    ir_text_bytes(text, tell.out.bytes, tell.out.count);
}
