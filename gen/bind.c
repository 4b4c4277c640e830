/* In: a call and the parameters of what it calls. Out: an argument for each parameter. What a composite's parameter
 * takes follows from its name, so that an argument in the wrong place is refused where it stands, rather than computed
 * with. */
#include <string.h>

#include "gen/advice.h"
#include "gen/front.h"
#include "gen/language.h"

static uint32_t find_param(const char *const *params, uint32_t count, const char *keyword) {
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(params[i], keyword) == 0) return i;
    bool input = count > 0 && strcmp(keyword, "input") == 0 && strcmp(params[0], "x") == 0; /* PyTorch's name */
    return input ? 0 : IR_NONE;
}

static const char *list_params(Front *front, const char *const *params, uint32_t count) {
    Text text = ir_text(front->job);
    for (uint32_t i = 0; i < count; i++) ir_text_format(&text, "%s%s", i ? ", " : "", params[i]);
    return ir_text_string(&text);
}

static const char norm_note[] = "norms take no normalized_shape, since dim=-1 says what is normalised";

/* Others of the call that have another name here: ", nor 'keepdims', which is called keepdim". */
static const char *other_keywords(Front *front, const Ast *call, const char *keyword, const char *const *params,
                                  uint32_t count) {
    Text text = ir_text(front->job);
    for (uint32_t i = 0; i < call->count; i++) {
        const char *own = call->keywords[i];
        if (!own || strcmp(own, keyword) == 0 || find_param(params, count, own) != IR_NONE) continue;
        const char *here = gen_advise_keyword(own);
        if (here) ir_text_format(&text, ", nor '%s', which is called %s", own, here);
    }
    return ir_text_string(&text);
}

static _Noreturn void refuse_keyword(Front *front, const Scope *scope, const Ast *call, const char *keyword,
                                     Place place, const char *const *params, uint32_t count) {
    const char *here = gen_advise_keyword(keyword), *list = list_params(front, params, count);
    if (here && find_param(params, count, here) != IR_NONE)
        gen_refuse(front, scope, place, "%s has no parameter '%s', which is called %s here%s: %s(%s)", call->text,
                   keyword, here, other_keywords(front, call, keyword, params, count), call->text, list);
    if (strcmp(keyword, "dtype") == 0)
        gen_refuse(front, scope, place, "%s has no parameter 'dtype': write cast(%s(...), f32)", call->text,
                   call->text);
    if (strcmp(keyword, "normalized_shape") == 0)
        gen_refuse(front, scope, place, "%s: write %s(%s)", norm_note, call->text, list);
    const char *near = ir_near_miss(front->job, keyword, params, count);
    gen_refuse(front, scope, place, "%s has no parameter '%s'%s%s%s (it has %s)", call->text, keyword,
               near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", list);
}

static const char *advise_more(const char *const *params, uint32_t count) {
    if (find_param(params, count, "shape") != IR_NONE) return ": a shape is one list, as in [M, N]";
    if (find_param(params, count, "n") != IR_NONE) return ": it counts from 0; a + arange(n) begins at a";
    return "";
}

const Ast **gen_bind(Front *front, const Scope *scope, const Ast *call, const char *const *params, uint32_t count) {
    const Ast **bound = (const Ast **)ir_alloc_array(front->job, count ? count : 1, sizeof *bound);
    bool keyword_seen = false;
    for (uint32_t i = 0; i < call->count; i++) {
        const char *keyword = call->keywords[i];
        Place place = keyword ? call->keyword_places[i] : call->item[i]->place;
        keyword_seen = keyword_seen || keyword;
        if (keyword_seen && !keyword)
            gen_refuse(front, scope, place, "a positional argument comes after a keyword: put it first, or name it");
        if (!keyword && i >= count)
            gen_refuse(front, scope, place, "%s takes %u argument%s (%s), found %u%s", call->text, count,
                       count == 1 ? "" : "s", list_params(front, params, count), call->count,
                       advise_more(params, count));
        uint32_t at = keyword ? find_param(params, count, keyword) : i;
        if (at == IR_NONE) refuse_keyword(front, scope, call, keyword, place, params, count);
        if (bound[at]) gen_refuse(front, scope, place, "%s is given '%s' twice", call->text, params[at]);
        bound[at] = call->item[i];
    }
    return bound;
}

/* ---- what a parameter takes ---- */

typedef enum Takes { TAKES_TENSOR, TAKES_NUMBER, TAKES_DIMS, TAKES_TRUTH } Takes;

static const struct {
    const char *param;
    Takes takes;
    const char *expected;
} kinds[] = {
    {"weight", TAKES_TENSOR, "a tensor that meets x"},
    {"bias", TAKES_TENSOR, "a tensor that meets x"},
    {"eps", TAKES_NUMBER, "one number, as in 1e-5 or the name of a scalar"},
    {"correction", TAKES_NUMBER, "one number, 0 or 1"},
    {"beta", TAKES_NUMBER, "one number"},
    {"threshold", TAKES_NUMBER, "one number"},
    {"dim", TAKES_DIMS, "a whole number or a list of them, as in dim=-1"},
    {"keepdim", TAKES_TRUTH, "True or False"},
};

_Noreturn void gen_refuse_missing(Front *front, const Scope *scope, const Ast *call, const char *param) {
    const char *expected = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].param, param) == 0) expected = kinds[i].expected;
    const char *signature = gen_signature(front->job, call->text);
    gen_refuse(front, scope, call->place, "%s needs its argument '%s'%s%s%s%s", call->text, param, expected ? ": " : "",
               expected ? expected : "", signature ? "; it is " : "", signature ? signature : "");
}

static bool is_dim(const Arg *arg) { return arg->kind == ARG_NUMBER && arg->is_integer; }

static bool takes(const Front *front, Takes kind, const Arg *arg) {
    const Value *value = arg->kind == ARG_VALUE ? &front->graph->values.at[arg->value] : NULL;
    switch (kind) {
    case TAKES_TENSOR: return arg->kind == ARG_NONE || (value && value->op != OP_SCALAR);
    case TAKES_NUMBER:
        return value ? value->shape.rank == 0 : arg->kind == ARG_NUMBER || arg->kind == ARG_OP || arg->kind == ARG_SIZE;
    case TAKES_TRUTH: return arg->kind == ARG_BOOL;
    case TAKES_DIMS: break;
    }
    if (arg->kind != ARG_LIST) return arg->kind == ARG_NONE || is_dim(arg);
    bool whole = true;
    for (uint32_t i = 0; i < arg->count; i++) whole = whole && is_dim(&arg->item[i]);
    return whole;
}

static const char *found_text(Front *front, const Arg *arg) {
    const Value *value = arg->kind == ARG_VALUE ? &front->graph->values.at[arg->value] : NULL;
    if (!value) return gen_arg_name(arg);
    if (value->op == OP_SCALAR) return ir_format(front->job, "the scalar '%s'", value->name);
    Text text = ir_text(front->job);
    ir_print_type(&text, front->graph, value->dtype, &value->shape);
    return ir_format(front->job, "a tensor, %s", ir_text_string(&text));
}

/* A size in the place of the weight is PyTorch's normalized_shape, a bool in that of the correction its unbiased. */
static const char *advise_kind(const char *param, const Arg *arg) {
    bool size = arg->kind == ARG_SIZE || arg->kind == ARG_LIST || arg->kind == ARG_NUMBER;
    if (strcmp(param, "weight") == 0 && size) return norm_note;
    if (strcmp(param, "weight") == 0 || strcmp(param, "bias") == 0) return "name the argument, as in eps=eps";
    if (strcmp(param, "eps") == 0) return "the tensors come first, and norms take no normalized_shape";
    if (strcmp(param, "correction") == 0 && arg->kind == ARG_BOOL)
        return "unbiased=True is correction=1, keepdim needs its name";
    return NULL;
}

void gen_check_kind(Front *front, const Scope *scope, const Ast *call, const char *param, const Arg *arg, Place place) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].param, param) != 0 || takes(front, kinds[i].takes, arg)) continue;
        const char *advice = advise_kind(param, arg);
        gen_refuse(front, scope, place, "%s of %s is %s, found %s%s%s", param, call->text, kinds[i].expected,
                   found_text(front, arg), advice ? ": " : "", advice ? advice : "");
    }
}

static uint32_t add_dim(Front *front, uint32_t mask, const Arg *arg, uint32_t rank, Place place) {
    int64_t dim = arg->integer < 0 ? arg->integer + rank : arg->integer;
    if (dim < 0 || dim >= rank)
        ir_stop_at(front->job, STATUS_REJECTED, place, "dim %lld is out of range for a tensor of %u dim%s",
                   (long long)arg->integer, rank, rank == 1 ? "" : "s");
    if (mask >> dim & 1)
        ir_stop_at(front->job, STATUS_REJECTED, place, "dim %lld is given twice: a negative one counts from the last",
                   (long long)arg->integer);
    return mask | 1u << dim;
}

uint32_t gen_dims_of(Front *front, const Arg *arg, uint32_t rank, Place place) {
    if (arg->kind == ARG_NONE) return (1u << rank) - 1;
    if (arg->kind != ARG_LIST) return add_dim(front, 0, arg, rank, place);
    if (arg->count == 0)
        ir_stop_at(front->job, STATUS_REJECTED, place, "dim names no dims: leave it out to reduce all");
    uint32_t mask = 0;
    for (uint32_t i = 0; i < arg->count; i++) mask = add_dim(front, mask, &arg->item[i], rank, place);
    return mask;
}

/* Dims that x does not have are refused where they stand, not in the formula. */
static void check_dims(Front *front, const Arg *args, uint32_t dim, Place place) {
    if (args[0].kind != ARG_VALUE) return;
    gen_dims_of(front, &args[dim], front->graph->values.at[args[0].value].shape.rank, place);
}

Arg *gen_bind_function(Front *front, const Scope *scope, const Ast *call, const Function *function, bool *given) {
    const Ast **bound = gen_bind(front, scope, call, function->params, function->count);
    Arg *args = IR_NEW_ARRAY(front->job, Arg, function->count);
    for (uint32_t i = 0; i < function->count; i++) {
        if (!bound[i] && function->required[i]) gen_refuse_missing(front, scope, call, function->params[i]);
        args[i] = bound[i] ? gen_build(front, scope, bound[i]) : function->defaults[i];
        given[i] = bound[i] != NULL;
        if (!bound[i] || function->line == IR_NONE) continue;
        gen_check_kind(front, scope, call, function->params[i], &args[i], bound[i]->place);
        if (i > 0 && strcmp(function->params[i], "dim") == 0)
            check_dims(front, args, i, gen_place(scope, bound[i]->place));
    }
    return args;
}
