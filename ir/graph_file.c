/* In: the parts of a Graph that are no expressions. Out: their text in a graph file: names, numbers, sizes, indices,
 * the sections but for nodes. Left alone: which values are nodes, and what they are called. */
#include "ir/graph_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- values and their names ---- */

uint32_t ir_file_operands(const GraphFile *file, uint32_t id, uint32_t **operands) {
    const Value *value = &file->graph->values.at[id];
    const Call *call = value->op == OP_COMPOSITE ? value->call : NULL;
    uint32_t count = 0;
    *operands = IR_NEW_ARRAY(file->job, uint32_t, 4 + (call ? call->count : 0));
    for (uint32_t i = 0; i < value->arg_count; i++) (*operands)[count++] = value->arg[i];
    for (uint32_t i = 0; value->op == OP_INDEX && i < value->item_count; i++)
        if (value->items[i].kind == ITEM_GATHER) (*operands)[count++] = value->items[i].index;
    for (uint32_t i = 0; call && i < call->count; i++)
        if (call->args[i].kind == ARG_VALUE) (*operands)[count++] = call->args[i].value;
    return count;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void ir_file_name(GraphFile *file, const bool *inlined, uint32_t first) {
    const Graph *graph = file->graph;
    uint32_t count = 0, next = first;
    const char **taken =
        IR_NEW_ARRAY(file->job, const char *,
                     graph->types.count + graph->dims.count + graph->values.count + graph->outputs.count + 1);
    for (uint32_t i = 0; i < graph->types.count; i++) taken[count++] = graph->types.at[i].name;
    for (uint32_t i = 0; i < graph->dims.count; i++) taken[count++] = graph->dims.at[i].name;
    for (uint32_t i = 0; i < graph->outputs.count; i++) taken[count++] = graph->outputs.at[i].name;
    for (uint32_t i = 0; i < graph->values.count; i++) {
        if (!file->names[i]) file->names[i] = graph->values.at[i].name;
        if (file->names[i]) taken[count++] = file->names[i];
    }
    qsort(taken, count, sizeof *taken, compare_names);
    for (uint32_t i = 0; i < graph->values.count; i++) {
        while (!file->names[i] && !inlined[i]) {
            const char *name = ir_format(file->job, "t%u", next++);
            if (!bsearch(&name, taken, count, sizeof *taken, compare_names)) file->names[i] = name;
        }
    }
}

bool ir_file_has(const GraphFile *file, const char *name) {
    for (uint32_t i = 0; i < file->graph->types.count; i++)
        if (strcmp(file->graph->types.at[i].name, name) == 0) return true;
    for (uint32_t i = 0; i < file->graph->dims.count; i++)
        if (strcmp(file->graph->dims.at[i].name, name) == 0) return true;
    for (uint32_t i = 0; i < file->graph->values.count; i++)
        if (file->names[i] && strcmp(file->names[i], name) == 0) return true;
    return false;
}

/* ---- YAML ---- */

/* Words that YAML 1.1 or 1.2 would take for a bool or null, in any of their spellings. */
static bool is_resolved(const char *word) {
    static const char *const words[] = {"y", "n", "yes", "no", "true", "false", "on", "off", "null"};
    char lower[8] = {0};
    size_t count = strlen(word);
    if (count >= sizeof lower) return false;
    for (size_t i = 0; i < count; i++) lower[i] = (char)(word[i] >= 'A' && word[i] <= 'Z' ? word[i] + 32 : word[i]);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(lower, words[i]) == 0) return true;
    return strcmp(word, "~") == 0;
}

void ir_file_scalar(Text *out, const char *text, bool flow) {
    bool quote = is_resolved(text) || strstr(text, ": ") || strstr(text, " #") || strchr("[{*&!|>'\"%@`?,#", text[0]);
    quote = quote || (text[0] == '-' && text[1] == ' ') || (flow && strpbrk(text, "[]{},:\"'"));
    const char *mark = !quote ? "" : strchr(text, '"') ? "'" : "\"";
    ir_text_format(out, "%s%s%s", mark, text, mark);
}

/* One character of a comment at `at`, what would end it or is no text as a blank or '?'; how many bytes it had. */
static size_t put_comment_character(Text *text, const char *at, size_t left) {
    static const char *const breaks[] = {"\n", "\r", "\t", "\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9"};
    static const char *const refused[] = {"\xef\xbb\xbf", "\xef\xbf\xbe", "\xef\xbf\xbf"};
    for (size_t i = 0; i < sizeof breaks / sizeof *breaks; i++) {
        if (strncmp(at, breaks[i], strlen(breaks[i])) != 0) continue;
        if (text->bytes[text->count - 1] != ' ') ir_text_put(text, " ");
        return strlen(breaks[i]);
    }
    size_t length = ir_utf8_length(at, left);
    bool bad = length == 0;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) bad = bad || strncmp(at, refused[i], 3) == 0;
    if (bad)
        ir_text_put(text, "?");
    else
        ir_text_bytes(text, at, length);
    return length ? length : 1;
}

static void put_comment(Text *text, const char *comment, size_t count) {
    ir_text_put(text, count ? "# " : "#");
    for (size_t at = 0; at < count;) at += put_comment_character(text, comment + at, count - at);
}

/* ---- numbers and sizes ---- */

/* The shortest decimal that rounds to the number in a dtype narrower than f32; NULL: it was not found. */
static const char *short_number(Job *job, DType dtype, double number) {
    double power = 1, size = fabs(number);
    if (!isfinite(number) || number == 0 || ir_dtype(dtype)->significand >= 24) return NULL;
    while (size * power < 1 && power < 1e30) power *= 10;
    for (int digits = 0; digits < 8; digits++, power *= 10) {
        double rounded = nearbyint(number * power) / power;
        if (ir_round(dtype, rounded) != number) continue;
        Text text = ir_text(job);
        ir_text_double(&text, rounded);
        return ir_text_string(&text);
    }
    return NULL;
}

static const char *full_number(Job *job, DType dtype, double number) {
    Text text = ir_text(job);
    double back;
    if (dtype == DTYPE_F64)
        ir_text_double(&text, number);
    else
        ir_text_float(&text, (float)number);
    const char *string = ir_text_string(&text);
    if (!isfinite(number) || (ir_read_double(job, string, strlen(string), &back) && ir_round(dtype, back) == number))
        return string;
    text = ir_text(job);
    ir_text_double(&text, number);
    return ir_text_string(&text);
}

/* 1e-05 as 1e-5, 1e+20 as 1e20. */
static const char *plain_exponent(Job *job, const char *string) {
    const char *mark = strchr(string, 'e');
    if (!mark) return string;
    const char *digits = mark + 1 + (mark[1] == '-' || mark[1] == '+');
    while (*digits == '0' && digits[1]) digits++;
    return ir_format(job, "%.*s%s%s", (int)(mark + 1 - string), string, mark[1] == '-' ? "-" : "", digits);
}

const char *ir_file_number(const GraphFile *file, DType dtype, double number, bool point) {
    const char *string = file->people ? short_number(file->job, dtype, number) : NULL;
    if (!string) string = full_number(file->job, dtype, number);
    if (isnan(number)) return signbit(number) ? "-nan" : "nan";
    if (file->people) string = plain_exponent(file->job, string);
    bool bare = !strpbrk(string, ".einf");
    return bare && (point || (number == 0 && signbit(number))) ? ir_format(file->job, "%s.0", string) : string;
}

/* Whether the size is a dim, once. */
static bool is_symbol(Poly size) {
    const Term *term = size.terms;
    return size.count == 1 && term->coefficient == 1 && term->divisor == 1 && term->symbol[0] != IR_NO_SYMBOL &&
           term->symbol[1] == IR_NO_SYMBOL;
}

/* K - Q rather than -Q + K. */
static Poly positive_first(Job *job, Poly size) {
    uint32_t first = 0;
    while (first < size.count && size.terms[first].coefficient < 0) first++;
    if (first == 0 || first == size.count) return size;
    Term *terms = IR_NEW_ARRAY(job, Term, size.count);
    memcpy(terms, size.terms, size.count * sizeof *terms);
    memmove(terms + 1, terms, first * sizeof *terms);
    terms[0] = size.terms[first];
    return (Poly){size.count, terms};
}

const char *ir_file_size(const GraphFile *file, Poly size) {
    if (file->people && is_symbol(size) && size.terms->symbol[0] < file->graph->dims.count)
        return file->graph->dims.at[size.terms->symbol[0]].name;
    Text text = ir_text(file->job);
    if (file->people) size = positive_first(file->job, size);
    ir_poly_print(&text, size, file->dims, file->graph->dims.count);
    return ir_text_string(&text);
}

const char *ir_file_sizes(const GraphFile *file, const Poly *sizes, uint32_t count) {
    Text text = ir_text(file->job);
    ir_text_put(&text, "[");
    for (uint32_t i = 0; i < count; i++) ir_text_format(&text, "%s%s", i ? ", " : "", ir_file_size(file, sizes[i]));
    ir_text_put(&text, "]");
    return ir_text_string(&text);
}

/* ---- indices and reductions ---- */

/* Whether the item takes all of a dim; of another kind than a range it need not have one. */
static bool is_whole(const Item *item, const Shape *from, uint32_t dim) {
    int64_t start;
    return item->kind == ITEM_RANGE && ir_poly_is_int(item->start, &start) && start == 0 &&
           ir_poly_equal(item->stop, from->extent[dim]);
}

/* Whether all terms, of which there are some, are below 0; some: whether one is. */
static bool is_negative(Poly size, bool some) {
    uint32_t below = 0;
    for (uint32_t i = 0; i < size.count; i++) below += size.terms[i].coefficient < 0;
    return below > 0 && (some || below == size.count);
}

/* A bound for people: N - 4 of N counts from the end, as -4, and sums have no blanks. */
static const char *bound_string(const GraphFile *file, Poly bound, Poly extent, bool range) {
    if (!file->people) return ir_file_size(file, bound);
    bool overflow = false;
    Poly from_end = ir_poly_sub(file->job, bound, extent, &overflow);
    if (from_end.count < bound.count && is_negative(bound, true) && is_negative(from_end, false) && !overflow)
        bound = from_end;
    const char *string = ir_file_size(file, bound);
    char *tight = ir_copy_text(file->job, string, strlen(string));
    size_t count = 0;
    for (const char *at = string; range && *at; at++)
        if (*at != ' ') tight[count++] = *at;
    if (range) tight[count] = 0;
    return tight;
}

static const char *item_string(const GraphFile *file, const Item *item, Poly extent, const char *gathered) {
    int64_t start;
    switch (item->kind) {
    case ITEM_NEW_AXIS: return "None";
    case ITEM_GATHER: return gathered;
    case ITEM_AT: return bound_string(file, item->start, extent, false);
    case ITEM_RANGE: break;
    }
    const char *from =
        ir_poly_is_int(item->start, &start) && start == 0 ? "" : bound_string(file, item->start, extent, true);
    const char *to = ir_poly_equal(item->stop, extent) ? "" : bound_string(file, item->stop, extent, true);
    return ir_format(file->job, "%s:%s", from, to);
}

const char *ir_file_items(const GraphFile *file, const Item *items, uint32_t count, const Shape *from,
                          const char *gathered) {
    Poly none = {0};
    Text text = ir_text(file->job);
    uint32_t dim = 0, leading = 0, shown = count, rank = from->rank;
    while (leading < count && is_whole(&items[leading], from, leading)) leading++;
    while (shown > 0 && is_whole(&items[shown - 1], from, rank - 1)) shown--, rank--;
    if (!file->people || (shown == 0 && count > 0)) shown = file->people ? 1 : count;
    bool dots = file->people && (count == 0 || (leading > 1 && shown == count));
    ir_text_put(&text, dots ? "[..." : "[");
    for (uint32_t i = 0; i < shown; i++) {
        bool reads = items[i].kind != ITEM_NEW_AXIS;
        const char *item = item_string(file, &items[i], reads ? from->extent[dim] : none, gathered);
        dim += reads;
        if (dots && i < leading) continue;
        ir_text_format(&text, "%s%s", i ? ", " : "", item);
    }
    ir_text_put(&text, "]");
    return ir_text_string(&text);
}

const char *ir_file_reduce(const GraphFile *file, const Value *value, const char *operand) {
    uint32_t rank = file->graph->values.at[value->arg[0]].shape.rank, count = 0;
    Text text = ir_text(file->job);
    ir_text_format(&text, "%s(%s", ir_reduction(value->reduction)->language, operand);
    if (file->people && rank > 1 && value->dims == 1u << (rank - 1)) {
        ir_text_put(&text, ", dim=-1");
    } else if (rank > 0 && value->dims != (1u << rank) - 1) {
        Text list = ir_text(file->job);
        for (uint32_t i = 0; i < rank; i++)
            if (value->dims >> i & 1) ir_text_format(&list, "%s%u", count++ ? ", " : "", i);
        ir_text_format(&text, count == 1 ? ", dim=%s" : ", dim=[%s]", ir_text_string(&list));
    }
    ir_text_put(&text, value->keepdim ? ", keepdim=True)" : ")");
    return ir_text_string(&text);
}

/* ---- sections ---- */

#define NOTE_COLUMN 56 /* comments of a section line up where its entries end before this column */

GraphFile ir_file(Text *text, const Graph *graph, const GraphNotes *notes, bool people) {
    Job *job = text->job;
    GraphFile file = {.job = job, .text = text, .graph = graph, .notes = notes, .people = people};
    file.dims = ir_graph_dim_names(job, graph);
    for (uint32_t i = 0; i < graph->dims.count; i++)
        if (graph->dims.at[i].derived) file.dims[i] = ir_format(job, "(%s)", graph->dims.at[i].name);
    file.names = IR_NEW_ARRAY(job, const char *, graph->values.count);
    return file;
}

Text ir_file_key(const GraphFile *file, const char *name) {
    Text text = ir_text(file->job);
    ir_file_scalar(&text, name, false);
    ir_text_put(&text, ": ");
    return text;
}

void ir_file_add(const GraphFile *file, FileLines *to, Text *line, const char *note) {
    *IR_PUSH(file->job, &to->lines) = (FileLine){ir_text_string(line), note && *note ? note : NULL};
}

void ir_file_section(const GraphFile *file, const char *title, const FileLines *lines) {
    size_t column = 0;
    for (uint32_t i = 0; i < lines->lines.count; i++) {
        size_t width = strlen(lines->lines.at[i].text);
        if (lines->lines.at[i].note && width > column && width <= NOTE_COLUMN) column = width;
    }
    if (lines->lines.count) ir_text_format(file->text, "%s:\n", title);
    for (uint32_t i = 0; i < lines->lines.count; i++) {
        const FileLine *line = &lines->lines.at[i];
        size_t note = line->note ? strlen(line->note) : 0, width = strlen(line->text);
        bool above = note && (width > column ? width : column) + note > IR_FILE_COLUMNS - 6;
        ir_text_put(file->text, "  ");
        if (above) put_comment(file->text, line->note, note);
        ir_text_format(file->text, "%s%s", above ? "\n  " : "", line->text);
        if (note && !above) {
            ir_text_format(file->text, "%*s  ", width < column ? (int)(column - width) : 0, "");
            put_comment(file->text, line->note, note);
        }
        ir_text_put(file->text, "\n");
    }
}

static const char *note_at(const char *const *notes, uint32_t index) { return notes ? notes[index] : NULL; }

static void put_comments(const GraphFile *file, const char *head) {
    while (head && *head) {
        size_t count = strcspn(head, "\n");
        put_comment(file->text, head, count);
        ir_text_put(file->text, "\n");
        head += count + (head[count] == '\n');
    }
}

static void put_dims(const GraphFile *file) {
    FileLines lines = {0};
    for (uint32_t i = 0; i < file->graph->dims.count; i++) {
        const Dim *dim = &file->graph->dims.at[i];
        if (dim->derived) continue;
        Text line = ir_file_key(file, dim->name);
        const char *comma = "{";
        if (dim->value >= 0) ir_text_format(&line, "%lld", (long long)dim->value);
        if (dim->value < 0 && dim->hint < 0 && dim->max < 0 && dim->multiple == 1) ir_text_put(&line, "any");
        const struct {
            const char *key;
            int64_t value, none;
        } fields[] = {{"hint", dim->hint, -1}, {"max", dim->max, -1}, {"multiple", dim->multiple, 1}};
        for (size_t k = 0; dim->value < 0 && k < 3; k++) {
            if (fields[k].value == fields[k].none) continue;
            ir_text_format(&line, "%s%s: %lld", comma, fields[k].key, (long long)fields[k].value);
            comma = ", ";
        }
        if (*comma == ',') ir_text_put(&line, "}");
        ir_file_add(file, &lines, &line, NULL);
    }
    ir_file_section(file, "dims", &lines);
}

static void put_field(Text *line, const char *key, const char *value) {
    ir_text_format(line, ", %s: ", key);
    ir_file_scalar(line, value, true);
}

/* A list of sizes: of YAML's for people, else as text. */
static void put_sizes_field(const GraphFile *file, Text *line, const char *key, const Poly *sizes, uint32_t count) {
    const char *list = ir_file_sizes(file, sizes, count);
    if (file->people)
        ir_text_format(line, ", %s: %s", key, list);
    else
        put_field(line, key, list);
}

/* Whether an output in place has the strides that reading takes from the input by itself. */
static bool has_taken_strides(const GraphFile *file, const Tensor *tensor) {
    bool overflow = false, contiguous = true;
    Poly stride = ir_poly_int(file->job, 1);
    for (uint32_t i = tensor->shape.rank; i-- > 0;) {
        contiguous = contiguous && ir_poly_equal(tensor->stride[i], stride);
        stride = ir_poly_mul(file->job, stride, tensor->shape.extent[i], &overflow);
    }
    return file->people && tensor->inplace != IR_NONE && !contiguous;
}

static void put_layout(const GraphFile *file, Text *line, const Tensor *tensor) {
    if (!tensor->contiguous && !has_taken_strides(file, tensor))
        put_sizes_field(file, line, "strides", tensor->stride, tensor->shape.rank);
    if (tensor->align) put_field(line, "align", ir_format(file->job, "%lld", (long long)tensor->align));
}

/* The file's name of a dtype in texts for people; graphs made of others have it where their types do. */
static const char *dtype_name(const GraphFile *file, const Tensor *tensor) {
    for (uint32_t i = 0; file->people && tensor->type && i < file->graph->types.count; i++)
        if (!strcmp(file->graph->types.at[i].name, tensor->type)) return tensor->type;
    return ir_dtype(tensor->dtype)->name;
}

static bool names_type(const Tensor *tensors, uint32_t count, const char *type) {
    for (uint32_t i = 0; i < count; i++)
        if (tensors[i].type && strcmp(tensors[i].type, type) == 0) return true;
    return false;
}

static bool is_type_used(const Graph *graph, const char *type) {
    return names_type(graph->inputs.at, graph->inputs.count, type) ||
           names_type(graph->scalars.at, graph->scalars.count, type) ||
           names_type(graph->outputs.at, graph->outputs.count, type);
}

static void put_types(const GraphFile *file) {
    FileLines lines = {0};
    for (uint32_t i = 0; file->people && i < file->graph->types.count; i++) {
        const TypeName *type = &file->graph->types.at[i];
        if (!is_type_used(file->graph, type->name)) continue;
        Text line = ir_file_key(file, type->name);
        ir_text_put(&line, ir_dtype(type->dtype)->name);
        ir_file_add(file, &lines, &line, NULL);
    }
    ir_file_section(file, "types", &lines);
}

static void put_inputs(const GraphFile *file) {
    FileLines lines = {0};
    for (uint32_t i = 0; i < file->graph->inputs.count; i++) {
        const Tensor *tensor = &file->graph->inputs.at[i];
        const char *dtype = dtype_name(file, tensor);
        Text line = ir_file_key(file, tensor->name);
        if (tensor->contiguous && !tensor->align) {
            const char *shape = ir_file_sizes(file, tensor->shape.extent, tensor->shape.rank);
            ir_text_format(&line, "%s%s", dtype, shape);
        } else {
            ir_text_format(&line, "{dtype: %s", dtype);
            put_sizes_field(file, &line, "shape", tensor->shape.extent, tensor->shape.rank);
            put_layout(file, &line, tensor);
            ir_text_put(&line, "}");
        }
        ir_file_add(file, &lines, &line, file->notes ? note_at(file->notes->inputs, i) : NULL);
    }
    ir_file_section(file, "inputs", &lines);
}

/* A truth: people leave the word as it is, since where one is expected nothing takes it for another. */
static void put_truth(const GraphFile *file, Text *line, const char *key, const char *word) {
    if (file->people)
        ir_text_format(line, ", %s: %s", key, word);
    else
        put_field(line, key, word);
}

static const char *default_string(const GraphFile *file, const Tensor *tensor) {
    if (ir_dtype(tensor->dtype)->kind == KIND_FLOAT)
        return ir_file_number(file, tensor->dtype, tensor->default_float, false);
    return ir_format(file->job, "%lld", (long long)tensor->default_int);
}

static void put_scalars(const GraphFile *file) {
    FileLines lines = {0};
    for (uint32_t i = 0; i < file->graph->scalars.count; i++) {
        const Tensor *tensor = &file->graph->scalars.at[i];
        Text line = ir_file_key(file, tensor->name);
        if (file->people && tensor->has_default && strcmp(dtype_name(file, tensor), "f32") == 0) {
            ir_text_put(&line, default_string(file, tensor));
        } else {
            ir_text_format(&line, "{dtype: %s", dtype_name(file, tensor));
            if (tensor->has_default && tensor->dtype == DTYPE_BOOL)
                put_truth(file, &line, "default", tensor->default_int ? "True" : "False");
            else if (tensor->has_default)
                put_field(&line, "default", default_string(file, tensor));
            ir_text_put(&line, "}");
        }
        ir_file_add(file, &lines, &line, NULL);
    }
    ir_file_section(file, "scalars", &lines);
}

void ir_file_head(const GraphFile *file) {
    if (file->notes) put_comments(file, file->notes->head);
    ir_text_put(file->text, "graph: ");
    ir_file_scalar(file->text, file->graph->name, false);
    ir_text_put(file->text, "\n");
    put_types(file);
    put_dims(file);
    put_inputs(file);
    put_scalars(file);
}

const char **ir_file_stored(const GraphFile *file, FileLines *nodes) {
    const Graph *graph = file->graph;
    const char **stored = IR_NEW_ARRAY(file->job, const char *, graph->outputs.count);
    for (uint32_t i = 0; i < graph->outputs.count; i++) {
        const uint32_t id = graph->outputs.at[i].value;
        stored[i] = file->names[id];
        if (graph->values.at[id].op != OP_SCALAR) continue;
        for (stored[i] = graph->outputs.at[i].name; ir_file_has(file, stored[i]);)
            stored[i] = ir_format(file->job, "%s_", stored[i]);
        Text line = ir_file_key(file, stored[i]);
        ir_file_scalar(&line, file->names[id], false);
        ir_file_add(file, nodes, &line, NULL);
    }
    return stored;
}

void ir_file_outputs(const GraphFile *file, const char *const *stored) {
    FileLines lines = {0};
    for (uint32_t i = 0; i < file->graph->outputs.count; i++) {
        const Tensor *tensor = &file->graph->outputs.at[i];
        const char *dtype = dtype_name(file, tensor);
        bool same = strcmp(stored[i], tensor->name) == 0;
        bool plain = same && tensor->contiguous && !tensor->align && tensor->inplace == IR_NONE && !tensor->accumulate;
        Text line = ir_file_key(file, tensor->name);
        ir_text_format(&line, plain ? "%s" : "{dtype: %s", dtype);
        if (!same) put_field(&line, "of", stored[i]);
        put_layout(file, &line, tensor);
        if (tensor->inplace != IR_NONE) {
            const Tensor *input = &file->graph->inputs.at[tensor->inplace];
            const char *items = tensor->inplace_items ? ir_file_items(file, tensor->inplace_items,
                                                                      tensor->inplace_item_count, &input->shape, "")
                                                      : "";
            put_field(&line, "inplace", ir_format(file->job, "%s%s", input->name, items));
        }
        if (tensor->accumulate) put_truth(file, &line, "accumulate", file->people ? "true" : "True");
        if (!plain) ir_text_put(&line, "}");
        ir_file_add(file, &lines, &line, file->notes ? note_at(file->notes->outputs, i) : NULL);
    }
    ir_file_section(file, "outputs", &lines);
}
