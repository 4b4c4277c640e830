/* In: a Grad. Out: what explain says of it: what the backward graph reads of the forward one and from where, what it
 * computes again, and what PyTorch's autograd would keep, in bytes: formulas in the any dims, and their values at the
 * hints. Left alone: the backward graph's kernels (gen/explain.c). */
#include "gen/explain.h"
#include "gen/grad.h"

#include <string.h>

typedef struct Savings {
    const Grad *grad;
    const int64_t *fixed; /* of each dim of the graph, -1: any */
    Explain e;            /* of a Prog that has the graph's dims and nothing else */
} Savings;

static Poly fold(const Savings *s, Poly bytes) {
    bool overflow = false;
    return ir_poly_fold(s->e.job, bytes, s->fixed, s->grad->from->dims.count, &overflow);
}

/* Of the reads from this source, IR_NONE: of all. What is saved counts as it is stored, whole. */
static Poly sum_reads(const Savings *s, uint32_t source) {
    Poly sum = ir_poly_int(s->e.job, 0);
    bool overflow = false;
    for (uint32_t i = 0; i < s->grad->reads.count; i++) {
        const GradRead *read = &s->grad->reads.at[i];
        const Poly bytes = source == GRAD_SAVED ? read->stored : read->bytes;
        if (source == IR_NONE || read->source == (GradSource)source) sum = ir_poly_add(s->e.job, sum, bytes, &overflow);
    }
    return fold(s, sum);
}

/* ---- what gradients, of what ---- */

static bool is_read(const Grad *grad, const char *name) {
    for (uint32_t i = 0; i < grad->reads.count; i++)
        if (!strcmp(grad->reads.at[i].name, name)) return true;
    return false;
}

/* The gradients that come in: inputs of the backward graph that the forward one does not have. */
static const char *tell_incoming(const Savings *s) {
    const Graph *backward = s->grad->backward;
    Text names = ir_text(s->e.job);
    gen_tell_open(s->e.tell, "of", true);
    for (uint32_t i = 0; i < backward->inputs.count; i++) {
        const char *name = backward->inputs.at[i].name;
        if (is_read(s->grad, name)) continue;
        ir_text_format(&names, "%s%s", names.count ? ", " : "", name);
        gen_tell_json_text(s->e.tell, NULL, name);
    }
    gen_tell_close(s->e.tell, true);
    return ir_text_string(&names);
}

static void tell_head(const Savings *s) {
    const Grad *grad = s->grad;
    Tell *tell = s->e.tell;
    Text made = ir_text(s->e.job);
    gen_tell_json_text(tell, "graph", grad->from->name);
    gen_tell_open(tell, "gradients", true);
    for (uint32_t i = 0; i < grad->backward->outputs.count; i++) {
        const char *name = grad->backward->outputs.at[i].name;
        ir_text_format(&made, "%s%s", i ? ", " : "", name);
        gen_tell_json_text(tell, NULL, name);
    }
    gen_tell_close(tell, true);
    const char *incoming = tell_incoming(s), *numbers = gen_guess_text(s->e.job, s->e.prog);
    gen_tell_open(tell, "dims", false);
    for (uint32_t d = 0; d < s->e.prog->dims.count; d++)
        if (s->e.prog->dims.at[d].value < 0) gen_tell_json_int(tell, s->e.prog->dims.at[d].name, s->e.dims[d]);
    gen_tell_close(tell, false);
    if (tell->json) return;
    gen_tell_line(tell, 2,
                  ir_format(s->e.job, "%s: %s from %s", grad->from->name, ir_text_string(&made),
                            *incoming ? incoming : "no gradient"));
    if (*numbers)
        gen_tell_text(tell, "numbers",
                      ir_format(s->e.job, "with %s (a dim's --hint, else its max, else 1024)", numbers));
}

/* ---- what is read, computed again, kept ---- */

static void tell_read(const Savings *s, const GradRead *read, bool first) {
    static const struct {
        const char *key, *words;
    } sources[] = {{"input", "an input"}, {"output", "an output"}, {"saved", "saved"}};
    Tell *tell = s->e.tell;
    const Poly bytes = fold(s, read->bytes);
    Shape shape = read->shape;
    for (int d = 0; d < shape.rank; d++) shape.extent[d] = fold(s, shape.extent[d]);
    Text type = ir_text(s->e.job);
    ir_print_type(&type, s->grad->from, read->dtype, &shape);
    gen_tell_open(tell, NULL, false);
    gen_tell_json_text(tell, "name", read->name);
    gen_tell_json_text(tell, "source", sources[read->source].key);
    gen_tell_json_text(tell, "type", ir_text_string(&type));
    gen_tell_json_bool(tell, "part", read->part);
    gen_explain_json_bytes(&s->e, "bytes", bytes);
    gen_tell_close(tell, false);
    if (tell->json) return;
    gen_tell_text(tell, first ? "reads" : "",
                  ir_format(s->e.job, "%s %s, %s%s: %s", read->name, ir_text_string(&type), sources[read->source].words,
                            read->part ? ", in part" : "", gen_explain_bytes(&s->e, bytes)));
}

/* A list of tensors under its own key, for people behind the sum of their bytes: "formula = value: words name (bytes)".
 */
static void tell_tensors(const Savings *s, const char *list, const char *key, const GradTensor *tensors, uint32_t count,
                         const char *words) {
    Tell *tell = s->e.tell;
    Text rest = ir_text(s->e.job);
    Poly sum = ir_poly_int(s->e.job, 0);
    bool overflow = false;
    ir_text_format(&rest, ": %s: %s", words, count ? "" : "nothing");
    gen_tell_open(tell, list, true);
    for (uint32_t i = 0; i < count; i++) {
        const Poly bytes = fold(s, tensors[i].bytes);
        sum = ir_poly_add(s->e.job, sum, bytes, &overflow);
        ir_text_format(&rest, "%s%s (%s)", i ? ", " : "", tensors[i].name, gen_explain_bytes(&s->e, bytes));
        gen_tell_open(tell, NULL, false);
        gen_tell_json_text(tell, "name", tensors[i].name);
        gen_explain_json_bytes(&s->e, "bytes", bytes);
        gen_tell_close(tell, false);
    }
    gen_tell_close(tell, true);
    gen_explain_size(&s->e, key, sum, ir_text_string(&rest));
}

void gen_grad_explain(Text *text, const Grad *grad, bool json) {
    Job *job = text->job;
    Tell tell = gen_tell(job, json);
    Prog prog = {.name = grad->from->name};
    prog.dims.at = grad->from->dims.at;
    prog.dims.count = grad->from->dims.count;
    const Savings s = {.grad = grad,
                       .fixed = ir_graph_fixed(job, grad->from),
                       .e = {.job = job, .prog = &prog, .tell = &tell, .dims = gen_guess_dims(job, &prog)}};
    gen_tell_open(&tell, NULL, false);
    tell_head(&s);
    gen_tell_open(&tell, "reads", true);
    for (uint32_t i = 0; i < grad->reads.count; i++) tell_read(&s, &grad->reads.at[i], i == 0);
    gen_tell_close(&tell, true);
    gen_explain_size(&s.e, "read", sum_reads(&s, IR_NONE), ": of the forward graph, beside the gradients");
    gen_explain_size(&s.e, "saved", sum_reads(&s, GRAD_SAVED), ": of that, what the forward graph stores for it alone");
    tell_tensors(&s, "recomputed", "recompute", grad->recomputed.at, grad->recomputed.count,
                 "computed again instead of saved");
    tell_tensors(&s, "autograd_keeps", "autograd", grad->autograd.at, grad->autograd.count,
                 "kept by PyTorch's autograd");
    gen_tell_close(&tell, false);
    ir_text_bytes(text, tell.out.bytes, tell.out.count);
}
