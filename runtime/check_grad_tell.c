/* In: what a check of gradients found. Out: its report, for people or as JSON, and why it does not hold. Left alone:
 * how it was found (runtime/check_grad.c). */
#include "runtime/check_grad.h"

#include <math.h>

static double about(double x) { /* three digits of it */
    if (x == 0 || !isfinite(x)) return x;
    const double unit = pow(10, floor(log10(fabs(x))) - 2);
    return (double)(float)(nearbyint(x / unit) * unit);
}

static const char *number_text(Job *job, double x) {
    Text text = ir_text(job);
    ir_text_double(&text, x);
    return ir_text_string(&text);
}

static const char *about_text(Job *job, double x) {
    Text text = ir_text(job);
    ir_text_float(&text, (float)about(x));
    return ir_text_string(&text);
}

static void tell_unbounded(Text *line, uint64_t count) {
    if (count) ir_text_format(line, ", %llu not checked, having no finite bound", (unsigned long long)count);
}

void rt_grad_tell_program(Job *job, Tell *tell, const char *what, const Graph *graph, const ng_output_report *reports) {
    for (uint32_t o = 0; o < graph->outputs.count; o++) {
        const ng_output_report *report = &reports[o];
        gen_tell_open(tell, NULL, false);
        gen_tell_json_text(tell, "program", what);
        gen_tell_json_text(tell, "name", graph->outputs.at[o].name);
        gen_tell_json_int(tell, "checked", (int64_t)report->checked);
        gen_tell_json_int(tell, "failed", (int64_t)report->failed);
        gen_tell_json_int(tell, "uncertain", (int64_t)report->uncertain);
        gen_tell_json_int(tell, "not_checked", (int64_t)report->unbounded);
        gen_tell_json_double(tell, "worst", report->worst);
        gen_tell_close(tell, false);
        if (tell->json) continue;
        Text line = ir_text(job);
        ir_text_format(&line, "check    %s: %llu of %llu elements compared, %llu failed, %llu uncertain",
                       graph->outputs.at[o].name, (unsigned long long)(report->checked - report->unbounded),
                       (unsigned long long)report->elements, (unsigned long long)report->failed,
                       (unsigned long long)report->uncertain);
        tell_unbounded(&line, report->unbounded);
        ir_text_format(&line, "; worst %s of its bound\n", about_text(job, report->worst));
        ir_text_put(&tell->out, ir_text_string(&line));
    }
}

void rt_left_out_tell(Job *job, Tell *tell, const char *output, const RtLeftOut *left_out) {
    if (!left_out->count) return;
    gen_tell_open(tell, NULL, false);
    gen_tell_json_text(tell, "output", output);
    gen_tell_json_int(tell, "elements", (int64_t)left_out->elements);
    gen_tell_json_int(tell, "not_finite", (int64_t)left_out->count);
    gen_tell_close(tell, false);
    if (tell->json) return;
    ir_text_put(&tell->out,
                ir_format(job, "grad     %llu of %llu elements of %s are not finite: left out\n",
                          (unsigned long long)left_out->count, (unsigned long long)left_out->elements, output));
}

bool rt_left_out_judge(Text *why, const char *output, const RtLeftOut *left_out) {
    if (!left_out->count || left_out->count < left_out->elements) return true;
    rt_say(why,
           "output %s: none of its %llu elements is finite, so no gradient was checked through it: give inputs for "
           "which it is\n",
           output, (unsigned long long)left_out->elements);
    return false;
}

static const char *place_text(Job *job, const RtGradient *gradient, const RtWorst *worst) {
    Text text = ir_text(job);
    if (worst->direction)
        return ir_format(job, "%s along direction %llu", gradient->name, (unsigned long long)worst->index);
    int64_t index[IR_MAX_RANK];
    uint64_t rest = worst->index;
    for (uint32_t d = gradient->shape.rank; d-- > 0; rest /= (uint64_t)gradient->extent[d])
        index[d] = (int64_t)(rest % (uint64_t)gradient->extent[d]);
    ir_text_format(&text, "%s[", gradient->name);
    for (uint32_t d = 0; d < gradient->shape.rank; d++)
        ir_text_format(&text, "%s%lld", d ? ", " : "", (long long)index[d]);
    ir_text_put(&text, "]");
    return ir_text_string(&text);
}

static void tell_worst(Job *job, Tell *tell, const char *key, const RtGradient *gradient, const RtWorst *worst) {
    if (worst->share < 0) return;
    gen_tell_open(tell, key, false);
    gen_tell_json_text(tell, "at", place_text(job, gradient, worst));
    gen_tell_json_double(tell, "share", worst->share);
    gen_tell_json_double(tell, "got", worst->got);
    gen_tell_json_double(tell, "expected", worst->expected);
    gen_tell_json_double(tell, "allowed", worst->allowed);
    gen_tell_close(tell, false);
}

/* Of a graph that somebody wrote, and of the one that was derived, which differences confirm. */
static void tell_given(Job *job, Text *line, const RtGradient *gradient) {
    ir_text_format(line,
                   "grad     %s: %llu elements of the backward graph compared with the derived one's, %llu failed",
                   gradient->name, (unsigned long long)gradient->elements, (unsigned long long)gradient->apart);
    const RtWorst *worst = &gradient->apart_worst;
    if (worst->share >= 0)
        ir_text_format(line, "; worst %s of what they may be off by, at %s (got %s, expected %s)",
                       about_text(job, worst->share), place_text(job, gradient, worst), number_text(job, worst->got),
                       number_text(job, worst->expected));
    ir_text_put(line, "\n");
}

static void tell_lines(Job *job, Text *line, const RtGradient *gradient) {
    if (gradient->given) tell_given(job, line, gradient);
    if (gradient->not_finite)
        ir_text_format(line, "grad     %s: %llu of %llu elements are not finite, since outputs are not: left out\n",
                       gradient->name, (unsigned long long)gradient->not_finite,
                       (unsigned long long)gradient->elements);
    ir_text_format(line, "grad     %s: %llu of %llu elements", gradient->name, (unsigned long long)gradient->compared,
                   (unsigned long long)gradient->elements);
    if (gradient->directions) ir_text_format(line, " and %llu directions", (unsigned long long)gradient->directions);
    if (gradient->unsettled)
        ir_text_format(line, " (%llu directions more settle nowhere)", (unsigned long long)gradient->unsettled);
    ir_text_format(line, "%s compared with differences, %llu failed, %llu uncertain",
                   gradient->given ? " of the derived one" : "", (unsigned long long)gradient->failed,
                   (unsigned long long)gradient->uncertain);
    if (gradient->worst.share >= 0)
        ir_text_format(line, "; worst %s of what they may be off by, at %s (got %s, expected %s)",
                       about_text(job, gradient->worst.share), place_text(job, gradient, &gradient->worst),
                       number_text(job, gradient->worst.got), number_text(job, gradient->worst.expected));
    ir_text_format(line, "\ngrad     %s: as run off by %s of its largest element, ", gradient->name,
                   about_text(job, gradient->rounding));
    ir_text_format(line, "%llu elements by more than rounding explains, %llu on the other side of a jump%s",
                   (unsigned long long)gradient->off, (unsigned long long)gradient->jumped,
                   gradient->jumped && gradient->cast ? ", as casts of the graph may put them" : "");
    tell_unbounded(line, gradient->unbounded);
    ir_text_put(line, "\n");
}

void rt_gradient_tell(Job *job, Tell *tell, const RtGradient *gradient) {
    gen_tell_open(tell, NULL, false);
    gen_tell_json_text(tell, "name", gradient->name);
    gen_tell_json_int(tell, "elements", (int64_t)gradient->elements);
    gen_tell_json_int(tell, "not_finite", (int64_t)gradient->not_finite);
    gen_tell_json_int(tell, "compared", (int64_t)gradient->compared);
    gen_tell_json_int(tell, "directions", (int64_t)gradient->directions);
    gen_tell_json_int(tell, "directions_unsettled", (int64_t)gradient->unsettled);
    gen_tell_json_int(tell, "failed", (int64_t)gradient->failed);
    gen_tell_json_int(tell, "uncertain", (int64_t)gradient->uncertain);
    tell_worst(job, tell, "worst", gradient, &gradient->worst);
    gen_tell_json_int(tell, "graph_failed", (int64_t)gradient->apart);
    tell_worst(job, tell, "graph_worst", gradient, &gradient->apart_worst);
    gen_tell_json_int(tell, "run_failed", (int64_t)gradient->off);
    gen_tell_json_int(tell, "run_jumped", (int64_t)gradient->jumped);
    gen_tell_json_bool(tell, "jumps_judged", !gradient->cast);
    gen_tell_json_int(tell, "run_not_checked", (int64_t)gradient->unbounded);
    tell_worst(job, tell, "run_worst", gradient, &gradient->off_worst);
    gen_tell_json_double(tell, "rounding", gradient->rounding);
    gen_tell_close(tell, false);
    if (!tell->json) tell_lines(job, &tell->out, gradient);
}

static void say_worst(Job *job, Text *why, const RtGradient *gradient, const RtWorst *worst, const char *against) {
    rt_say(why, "  worst: %s: got %s, %s %s, allowed %s\n", place_text(job, gradient, worst),
           number_text(job, worst->got), against, number_text(job, worst->expected), about_text(job, worst->allowed));
}

bool rt_gradient_judge(Job *job, Text *why, const RtGradient *gradient) {
    const unsigned long long failed = gradient->failed, uncertain = gradient->uncertain, apart = gradient->apart;
    const unsigned long long compared = gradient->compared, directions = gradient->directions;
    if (failed) {
        rt_say(why, "gradient %s: %llu of %llu are not what differences of the forward graph give\n", gradient->name,
               failed, compared + directions);
        say_worst(job, why, gradient, &gradient->worst, "by differences");
    }
    if (apart) {
        rt_say(why,
               gradient->given
                   ? "gradient %s: %llu of %llu elements that the backward graph makes are not the derived one's\n"
                   : "gradient %s: with the graph's dtypes %llu of %llu elements are not those of the graph in f64\n",
               gradient->name, apart, (unsigned long long)gradient->elements);
        say_worst(job, why, gradient, &gradient->apart_worst, gradient->given ? "derived" : "in f64");
    }
    if (gradient->off) {
        rt_say(why, "gradient %s: %llu of %llu elements as run are further off than rounding explains\n",
               gradient->name, (unsigned long long)gradient->off, (unsigned long long)gradient->elements);
        say_worst(job, why, gradient, &gradient->off_worst, "exactly");
    }
    if (rt_gradient_jumpy(gradient))
        rt_say(why,
               "gradient %s: %llu of %llu elements as run (more than 1 in 1000) are on the other side of a comparison, "
               "which rounding turned: what is compared with what is saved must not be rounded when it is stored\n",
               gradient->name, (unsigned long long)gradient->jumped, (unsigned long long)gradient->elements);
    if (rt_gradient_doubtful(gradient)) {
        const unsigned long long endless = gradient->endless;
        rt_say(why, "gradient %s: too many uncertain elements, %llu of %llu (more than 1 in 100): ", gradient->name,
               uncertain, compared);
        if (endless) rt_say(why, "%llu are not finite, although outputs are, as 0 * inf is not", endless);
        if (endless && endless < uncertain) rt_say(why, "; for %llu ", uncertain - endless);
        rt_say(why, endless == uncertain
                        ? "\n"
                        : "differences do not settle there, as at a kink or a jump; other inputs or larger dims may "
                          "leave fewer\n");
    }
    const bool none = gradient->elements && gradient->not_finite == gradient->elements;
    if (none)
        rt_say(why,
               "gradient %s: none of its %llu elements is finite, since outputs are not, so nothing of it was checked: "
               "give inputs for which they are\n",
               gradient->name, (unsigned long long)gradient->elements);
    return !none && !failed && !apart && !gradient->off && !rt_gradient_doubtful(gradient) &&
           !rt_gradient_jumpy(gradient);
}
