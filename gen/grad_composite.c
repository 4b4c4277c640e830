/* Composites in the joint graph. In: a call, as the front end meets it. Out: its value, and, going back, the gradients
 * of its operands.
 *
 * A line of ir/composites.def that has a derivative is a sequence of named values. Those that need no gradient are made
 * with the forward value, so that its `y:`, the backward graph's own gradient and what is saved share them; the rest
 * is made going back. A call stays a call where its line says nothing of y; one without a line that serves becomes its
 * formula. */
#include "gen/grad_build.h"

#include <string.h>

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool gen_grad_has_word(const char *text, const char *word) {
    const size_t count = strlen(word);
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        if ((at == text || !is_letter(at[-1])) && !is_letter(at[count])) return true;
    return false;
}

static const GradOptions in_lines = {.prefix = "d_"}; /* of ir/composites.def */

bool gen_grad_is_result(const Statement *statement) { return gen_gradient_owner(&in_lines, statement->name) != NULL; }

Statements gen_grad_read_line(Job *job, uint32_t line) {
    Statements all = {0};
    const char *text = gen_composite_derivative(line);
    while (*text) {
        const char *colon = strchr(text, ':');
        IR_REQUIRE(job, colon);
        const size_t count = strcspn(colon, ";");
        Statement *statement = IR_PUSH(job, &all);
        statement->name = ir_copy_text(job, text, (size_t)(colon - text));
        statement->text = ir_copy_text(job, colon + 1, count - 1);
        statement->needs_gradient = gen_grad_has_word(statement->text, "d");
        for (uint32_t i = 0; i + 1 < all.count; i++)
            statement->needs_gradient |= all.at[i].needs_gradient && gen_grad_has_word(statement->text, all.at[i].name);
        statement->needs_gradient |= gen_grad_is_result(statement);
        all.gives_value |= !strcmp(statement->name, "y");
        text = colon + count;
        text += strspn(text, "; ");
    }
    for (uint32_t i = 0; i < all.count && !all.gives_value; i++) /* y is there only when the call is made */
        all.at[i].needs_gradient |= gen_grad_has_word(all.at[i].text, "y");
    return all;
}

static const char *gradient_of(Joint *joint, const Statements *all, const char *param) {
    const char *name = gen_gradient_name(joint->job, &in_lines, param);
    for (uint32_t i = 0; i < all->count; i++)
        if (!strcmp(all->at[i].name, name)) return all->at[i].text;
    return NULL;
}

static const Arg *arg_of(const Call *call, const char *param) {
    for (uint32_t i = 0; i < call->count; i++)
        if (!strcmp(call->params[i], param)) return &call->args[i];
    return NULL;
}

/* A line serves where it has a gradient for every operand that wants one and, where it reduces along dims of its first
 * operand, that one is not broadcast to others. */
static bool serves(Joint *joint, const Call *call, const Statements *all) {
    const Arg *dim = arg_of(call, "dim");
    if (!all->count || (dim && call->args[0].kind != ARG_VALUE)) return false;
    for (uint32_t i = 0; i < call->count; i++) {
        if (call->args[i].kind != ARG_VALUE) continue;
        const uint32_t value = call->args[i].value;
        if (gen_grad_is_active(joint, value) && !gradient_of(joint, all, call->params[i])) return false;
        if (!dim || i == 0) continue;
        Shape met, first = joint->graph->values.at[call->args[0].value].shape;
        if (!ir_shape_broadcast(joint->job, &first, &joint->graph->values.at[value].shape, &met)) return false;
        if (!gen_grad_same_shape(&first, &met)) return false;
    }
    return true;
}

static bool is_active_call(Joint *joint, const Call *call) {
    for (uint32_t i = 0; i < call->count; i++)
        if (call->args[i].kind == ARG_VALUE && gen_grad_is_active(joint, call->args[i].value)) return true;
    return false;
}

static uint32_t build_value(Joint *joint, const char *text, const Bindings *bindings) {
    const Arg arg = gen_grad_build(joint, text, bindings);
    return gen_arg_value(&joint->front, &arg, NULL, joint->place);
}

/* The statements that need no gradient, or that do. */
static void build_statements(Joint *joint, const Statements *all, bool gradients, Derived *derived) {
    for (uint32_t i = 0; i < all->count; i++) {
        const Statement *statement = &all->at[i];
        if (statement->needs_gradient != gradients || gen_grad_is_result(statement)) continue;
        const uint32_t first = joint->graph->values.count,
                       value = build_value(joint, statement->text, &derived->bindings);
        gen_grad_bind(joint, &derived->bindings, statement->name, gen_grad_value_arg(value));
        if (!strcmp(statement->name, "y"))
            derived->value = value;
        else if (value >= first)
            gen_grad_name(joint, value, derived->owner, statement->name);
    }
}

uint32_t gen_grad_put_call(Front *front, Call *call, Place place) {
    Joint *joint = front->owner;
    const Statements all = gen_grad_read_line(joint->job, call->line);
    const bool active = is_active_call(joint, call), line = serves(joint, call, &all);
    const Place before = joint->place;
    if (active && !line) return gen_put_formula(front, call, place);
    joint->place = place;
    Derived derived = {.call = call, .owner = joint->owner, .value = IR_NONE};
    for (uint32_t i = 0; i < call->count; i++) gen_grad_bind(joint, &derived.bindings, call->params[i], call->args[i]);
    if (!all.gives_value || !line) derived.value = gen_add_composite(front, call, place);
    if (line && (active || all.gives_value)) build_statements(joint, &all, false, &derived);
    if (active) *IR_PUSH(joint->job, &joint->derived) = derived;
    joint->place = before;
    return derived.value;
}

/* y and d with the dims that the call reduced. */
static uint32_t with_dims(Joint *joint, const Call *call, uint32_t value, uint32_t rank) {
    const Arg *dim = arg_of(call, "dim"), *keepdim = arg_of(call, "keepdim");
    if (!dim || !keepdim || keepdim->integer) return value;
    const uint32_t from = joint->graph->values.at[call->args[0].value].shape.rank;
    value = gen_grad_raise(joint, value, rank);
    return gen_grad_keep_dims(joint, value, gen_dims_of(&joint->front, dim, from, joint->place), from);
}

bool gen_grad_of_composite(Joint *joint, uint32_t value, uint32_t gradient) {
    uint32_t found = 0;
    while (found < joint->derived.count && joint->derived.at[found].value != value) found++;
    if (found == joint->derived.count) return false;
    Derived derived = joint->derived.at[found]; /* the list may grow below */
    const Call *call = derived.call;
    const Statements all = gen_grad_read_line(joint->job, call->line);
    const uint32_t rank = joint->graph->values.at[value].shape.rank;
    const uint32_t y = with_dims(joint, call, value, rank);
    uint32_t d = with_dims(joint, call, gradient, rank);
    const bool reduced = arg_of(call, "keepdim") != NULL;
    Shape shape = joint->graph->values.at[y].shape;
    if (reduced) shape = joint->graph->values.at[call->args[0].value].shape;
    /* lines of norms reduce what has the gradient's dims, which must have all its elements then */
    if (arg_of(call, "dim") && !reduced) d = gen_grad_spread(joint, d, &shape);
    gen_grad_bind(joint, &derived.bindings, "d", gen_grad_value_arg(d));
    if (!all.gives_value) gen_grad_bind(joint, &derived.bindings, "y", gen_grad_value_arg(y));
    build_statements(joint, &all, true, &derived);
    for (uint32_t i = 0; i < call->count; i++) {
        if (call->args[i].kind != ARG_VALUE || !gen_grad_is_active(joint, call->args[i].value)) continue;
        const uint32_t part = build_value(joint, gradient_of(joint, &all, call->params[i]), &derived.bindings);
        gen_grad_add(joint, call->args[i].value, part, &shape);
    }
    return true;
}
