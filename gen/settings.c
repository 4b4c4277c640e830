/* -D, --hint and --fix, applied to the dims and types that a file declares. What is wrong in them is a usage error. */
#include <string.h>

#include "gen/front.h"

enum { MOST_LISTED = 12 };

/* NULL: it may miss, and does. */
static const Symbol *find_setting(Front *front, const Doc *scalars, const char *option, const Setting *setting,
                                  bool types) {
    const Symbol *symbol = gen_name_find(front, setting->name);
    if (symbol && (symbol->kind == SYMBOL_DIM || (types && symbol->kind == SYMBOL_TYPE))) return symbol;
    if (front->options->settings_may_miss) return NULL;
    if (scalars && scalars->kind == DOC_MAP && gen_doc_find(scalars, setting->name))
        ir_stop_at(front->job, STATUS_USAGE, (Place){0, 0},
                   "%s %s=%s: '%s' is a scalar, given at launch: run and bench take it by --scalar", option,
                   setting->name, setting->value, setting->name);
    Text there = ir_text(front->job); /* few names are all named; else the near one alone is */
    const Graph *graph = front->graph;
    const uint32_t count = graph->dims.count + (types ? front->types.count : 0);
    for (uint32_t i = 0; i < count && count <= MOST_LISTED; i++) {
        const char *name = i < graph->dims.count ? graph->dims.at[i].name : front->types.at[i - graph->dims.count].name;
        ir_text_format(&there, "%s%s", i ? ", " : "; it has ", name);
    }
    uint32_t kinds = 1u << SYMBOL_DIM | (types ? 1u << SYMBOL_TYPE : 0);
    ir_stop_at(front->job, STATUS_USAGE, (Place){0, 0}, "%s %s=%s: the graph has no dim%s '%s'%s%s", option,
               setting->name, setting->value, types ? " or type" : "", setting->name, there.count ? there.bytes : "",
               gen_name_hint(front, setting->name, kinds, NULL, 0));
}

static int64_t setting_number(Front *front, const char *option, const Setting *setting, const Dim *dim) {
    int64_t value;
    if (!ir_read_int(setting->value, strlen(setting->value), &value) || value < 0 || value >= IR_MAX_EXTENT)
        ir_stop_at(front->job, STATUS_USAGE, (Place){0, 0},
                   "%s %s=%s: expected a whole number from 0 up to 2^62 - 1, found '%s'", option, setting->name,
                   setting->value, setting->value);
    if (dim->max >= 0 && value > dim->max)
        ir_stop_at(front->job, STATUS_USAGE, (Place){0, 0}, "%s %s=%s: the graph's max is %lld", option, setting->name,
                   setting->value, (long long)dim->max);
    if (value % dim->multiple != 0)
        ir_stop_at(front->job, STATUS_USAGE, (Place){0, 0}, "%s %s=%s: the graph says a multiple of %lld", option,
                   setting->name, setting->value, (long long)dim->multiple);
    return value;
}

static void define(Front *front, const Doc *scalars, const Setting *setting) {
    const Symbol *symbol = find_setting(front, scalars, "-D", setting, true);
    if (!symbol) return;
    if (symbol->kind == SYMBOL_DIM) {
        Dim *dim = &front->graph->dims.at[symbol->index];
        int64_t value = setting_number(front, "-D", setting, dim);
        if (dim->value >= 0) dim->value = value; /* of an any dim: a value for run, which never changes the plan */
        return;
    }
    DType dtype;
    if (ir_dtype_find(setting->value, strlen(setting->value), &dtype)) {
        front->types.at[symbol->index].dtype = dtype;
        return;
    }
    ir_stop_at(front->job, STATUS_USAGE, (Place){0, 0}, "-D %s=%s: expected a dtype, found '%s'%s", setting->name,
               setting->value, setting->value, gen_dtype_hint(front, setting->value, false));
}

/* -D gives an any dim a value for run; --fix must not say another. */
static void refuse_other_define(Front *front, const Setting *fix, int64_t value) {
    const GenOptions *options = front->options;
    for (uint32_t i = 0; i < options->define_count; i++) {
        const Setting *define = &options->defines[i];
        int64_t other;
        if (strcmp(define->name, fix->name) != 0 || !ir_read_int(define->value, strlen(define->value), &other))
            continue;
        if (other != value)
            ir_stop_at(front->job, STATUS_USAGE, (Place){0, 0}, "--fix %s=%s: -D says %s=%s", fix->name, fix->value,
                       define->name, define->value);
    }
}

static void hint(Front *front, const Doc *scalars, const Setting *setting) {
    const Symbol *symbol = find_setting(front, scalars, "--hint", setting, false);
    if (!symbol) return;
    Dim *dim = &front->graph->dims.at[symbol->index];
    if (dim->value >= 0)
        ir_stop_at(front->job, STATUS_USAGE, (Place){0, 0}, "--hint %s=%s: '%s' is fixed at %lld; use -D or --fix",
                   dim->name, setting->value, dim->name, (long long)dim->value);
    Dim free = {.max = -1, .multiple = 1}; /* a hint never limits and is never limited */
    dim->hint = setting_number(front, "--hint", setting, &free);
}

static void fix(Front *front, const Doc *scalars, const Setting *setting) {
    const Symbol *symbol = find_setting(front, scalars, "--fix", setting, false);
    if (!symbol) return;
    Dim *dim = &front->graph->dims.at[symbol->index];
    const int64_t value = setting_number(front, "--fix", setting, dim);
    if (dim->value < 0) refuse_other_define(front, setting, value);
    dim->value = value;
    dim->hint = dim->max = -1;
    dim->multiple = 1;
}

void gen_apply_settings(Front *front, const Doc *scalars) {
    const GenOptions *options = front->options;
    for (uint32_t i = 0; options && i < options->define_count; i++) define(front, scalars, &options->defines[i]);
    for (uint32_t i = 0; options && i < options->hint_count; i++) hint(front, scalars, &options->hints[i]);
    for (uint32_t i = 0; options && i < options->fix_count; i++) fix(front, scalars, &options->fixes[i]);
}
