/* In: the bytes of a graph file. Out: a tree of Doc. Scalars stay text and keep the place of their raw source.
 * YAML itself is libyaml's; refused here are the parts of YAML that a graph file has no use for, and what YAML takes
 * differently than the writer of an expression meant is said in this language's words. */
#include "gen/yaml.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "ir/text.h"

#define STEP 64 /* characters between two entries of Reader.bytes_at */

typedef struct Level { /* a map or list that is still open */
    Doc *doc;
    IR_LIST(Doc *) parts; /* a map's keys and items in turn */
} Level;

typedef struct Reader {
    Job *job;
    const char *bytes;
    size_t count;
    bool open, event_open;
    yaml_parser_t parser;
    yaml_event_t event;
    IR_LIST(uint32_t) bytes_at; /* byte offset of each STEP-th character, for libyaml counts characters */
    Level level[GEN_MAX_YAML_DEPTH];
    uint32_t depth;
    Doc *root;
} Reader;

static void release(void *object) {
    Reader *reader = object;
    if (reader->event_open) yaml_event_delete(&reader->event);
    if (reader->open) yaml_parser_delete(&reader->parser);
    reader->event_open = reader->open = false;
}

/* Length of the well-formed UTF-8 sequence at bytes, or 0. */
static uint32_t utf8_length(const unsigned char *bytes, size_t count) {
    unsigned char lead = bytes[0];
    uint32_t length = lead < 0x80 ? 1 : lead >= 0xc2 && lead < 0xe0 ? 2 : lead >= 0xe0 && lead < 0xf0 ? 3 : 4;
    if ((lead >= 0x80 && lead < 0xc2) || lead > 0xf4 || length > count) return 0;
    for (uint32_t i = 1; i < length; i++)
        if ((bytes[i] & 0xc0) != 0x80) return 0;
    bool bad = (lead == 0xe0 && bytes[1] < 0xa0) || (lead == 0xed && bytes[1] > 0x9f) ||
               (lead == 0xf0 && bytes[1] < 0x90) || (lead == 0xf4 && bytes[1] > 0x8f);
    return bad ? 0 : length;
}

/* libyaml refuses these without a place: control characters, half surrogates, U+FEFF, U+FFFE and U+FFFF. */
static bool is_printable(const unsigned char *at, uint32_t length) {
    if (length == 1) return at[0] >= 0x20 ? at[0] != 0x7f : at[0] == '\t' || at[0] == '\n' || at[0] == '\r';
    if (length == 2) return at[0] != 0xc2 || at[1] >= 0xa0 || at[1] == 0x85;
    if (length == 3) return !(at[0] == 0xef && at[1] == 0xbf && at[2] >= 0xbe) && memcmp(at, "\xef\xbb\xbf", 3) != 0;
    return true;
}

static _Noreturn void refuse_character(Reader *reader, const unsigned char *at, Place place) {
    uint32_t code = place.count == 1 ? at[0] : place.count == 2 ? at[0] & 0x1fu : at[0] & 0x0fu;
    for (uint32_t i = 1; i < place.count; i++) code = code << 6 | (at[i] & 0x3fu);
    if (code < 0x80)
        ir_stop_at(reader->job, STATUS_REJECTED, place, "control character 0x%02x is not allowed: remove it", code);
    ir_stop_at(reader->job, STATUS_REJECTED, place, "character U+%04X is not allowed: remove it", code);
}

static void scan_characters(Reader *reader, size_t first) {
    const unsigned char *bytes = (const unsigned char *)reader->bytes;
    uint32_t characters = 0;
    for (size_t at = first; at < reader->count;) {
        uint32_t length = utf8_length(bytes + at, reader->count - at);
        Place place = {(uint32_t)at, 1};
        if (length == 0)
            ir_stop_at(reader->job, STATUS_REJECTED, place, "byte 0x%02x is not UTF-8: save the file as UTF-8",
                       bytes[at]);
        if (bytes[at] == 0) ir_stop_at(reader->job, STATUS_REJECTED, place, "a NUL byte is not text: remove it");
        if (!is_printable(bytes + at, length)) refuse_character(reader, bytes + at, (Place){(uint32_t)at, length});
        if (characters++ % STEP == 0) *IR_PUSH(reader->job, &reader->bytes_at) = (uint32_t)at;
        at += length;
    }
}

static uint32_t byte_of(const Reader *reader, const yaml_mark_t *mark) {
    size_t entry = mark->index / STEP;
    if (entry >= reader->bytes_at.count) return (uint32_t)reader->count;
    size_t at = reader->bytes_at.at[entry];
    for (size_t left = mark->index % STEP; left > 0 && at < reader->count; left--)
        at += utf8_length((const unsigned char *)reader->bytes + at, reader->count - at);
    return (uint32_t)at;
}

static Place place_of(const Reader *reader, const yaml_mark_t *start, const yaml_mark_t *stop) {
    uint32_t first = byte_of(reader, start), last = byte_of(reader, stop);
    return (Place){first, last > first ? last - first : 1};
}

/* One byte, and one before the end where the mark is at the end of the text. */
static Place point(const Reader *reader, uint32_t at) {
    if (reader->count == 0) return (Place){0, 0};
    return (Place){at < reader->count ? at : (uint32_t)(reader->count - 1), 1};
}

static uint32_t line_start(const Reader *reader, uint32_t at) {
    while (at > 0 && reader->bytes[at - 1] != '\n' && reader->bytes[at - 1] != '\r') at--;
    return at;
}

/* Is there more than blanks on the line before this byte? */
static bool text_before(const Reader *reader, uint32_t at) {
    uint32_t first = line_start(reader, at);
    while (first < at && (reader->bytes[first] == ' ' || reader->bytes[first] == '\t')) first++;
    return first < at;
}

/* Brackets of the given kinds that are open at the end of the bytes; negative where more close than open. */
static int open_brackets(const char *bytes, size_t count, const char *open, const char *close) {
    int depth = 0, least = 0;
    for (size_t i = 0; i < count; i++) {
        if (strchr(open, bytes[i])) depth++;
        if (strchr(close, bytes[i])) depth--;
        if (depth < least) least = depth;
    }
    return depth > 0 ? depth : least;
}

static bool is_name_byte(char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') || byte == '_';
}

static _Noreturn void refuse_commas(Reader *reader, Place place, bool map) {
    ir_stop_at(reader->job, STATUS_REJECTED, place, "an expression with commas inside %s needs quotes",
               map ? "{ }" : "[ ]");
}

/* What libyaml says, by a part of its message, and what is said instead; without a row its own words are kept. */
static const struct {
    const char *theirs, *ours;
} messages[] = {
    {"block sequence entries are not allowed", "'- ' begins a YAML list, which is no expression: write -x without the "
                                               "space, or quote the expression"},
    {"cannot start any token", "a value cannot begin with this character: quote it if it belongs to an expression"},
    {"mapping keys are not allowed", "'? ' begins a YAML key: quote the expression"},
    {"did not find expected alphabetic or numeric", "'*' and '&' begin YAML aliases and anchors: no expression can "
                                                    "begin with them"},
    {"did not find expected ',' or '}'", "expected ',' or '}' in a map: a bracket or quote before it may be open"},
    {"did not find expected ',' or ']'", "expected ',' or ']' in a list: a bracket or quote before it may be open"},
    {"did not find expected key", "expected another 'name: value' of the same indentation"},
    {"did not find expected <document start>", "expected the end of the file: a graph file is one YAML mapping"},
    {"did not find expected node content", "expected a value"},
    {"found a tab", "a tab: YAML is indented with spaces"},
};

/* libyaml gives up on keys of more than 1,024 characters, in other words. */
static void refuse_long_name(Reader *reader, uint32_t at) {
    uint32_t length = 0, quote = at < reader->count && strchr("\"'", reader->bytes[at]) != NULL;
    while (at + quote + length < reader->count && is_name_byte(reader->bytes[at + quote + length])) length++;
    if (length > 64)
        ir_stop_at(reader->job, STATUS_REJECTED, (Place){at, length + quote},
                   "a name has at most 64 characters; this one has %u", length);
}

/* Where the name begins, with its quote, that ends before this byte. */
static uint32_t name_before(const Reader *reader, uint32_t at) {
    while (at > 0 && !is_name_byte(reader->bytes[at - 1]) && strchr("\"' ", reader->bytes[at - 1])) at--;
    while (at > 0 && is_name_byte(reader->bytes[at - 1])) at--;
    return at > 0 && strchr("\"'", reader->bytes[at - 1]) ? at - 1 : at;
}

/* A name here with a colon right behind it and text behind that: the space is missing. */
static void refuse_tight_colon(Reader *reader, uint32_t at) {
    uint32_t colon = at;
    while (colon < reader->count && is_name_byte(reader->bytes[colon])) colon++;
    if (colon > at && colon + 1 < reader->count && reader->bytes[colon] == ':' &&
        !strchr(" \t\r\n", reader->bytes[colon + 1]))
        ir_stop_at(reader->job, STATUS_REJECTED, point(reader, colon), "write a space behind the colon, as in M: any");
}

static _Noreturn void refuse_simple_key(Reader *reader, uint32_t at) {
    refuse_long_name(reader, at);
    refuse_tight_colon(reader, at);
    ir_stop_at(reader->job, STATUS_REJECTED, point(reader, at),
               "expected 'name: value' on one line, the name at the indentation of its neighbours");
}

static _Noreturn void refuse_yaml(Reader *reader) {
    const yaml_parser_t *parser = &reader->parser;
    const char *problem = parser->problem ? parser->problem : "it is no YAML";
    if (parser->error == YAML_MEMORY_ERROR) ir_stop_at(reader->job, STATUS_SYSTEM, (Place){0, 0}, "out of memory");
    uint32_t at = byte_of(reader, &parser->problem_mark);
    Place place = point(reader, at);
    char found = at < reader->count ? reader->bytes[at] : 0;
    if (found == '\t' && !text_before(reader, at))
        ir_stop_at(reader->job, STATUS_REJECTED, place, "a tab: YAML is indented with spaces");
    if (strstr(problem, "could not find expected ':'"))
        refuse_simple_key(reader, byte_of(reader, &parser->context_mark));
    if (strstr(problem, "did not find expected ','") && found == ':') refuse_long_name(reader, name_before(reader, at));
    if (strstr(problem, "did not find expected ','") && found != 0 && strchr("[{\"'", found))
        refuse_commas(reader, place, strchr(problem, '}') != NULL);
    if (parser->context && strstr(parser->context, "quoted scalar") && strstr(problem, "found unexpected"))
        ir_stop_at(reader->job, STATUS_REJECTED, point(reader, byte_of(reader, &parser->context_mark)),
                   "this quote is never closed");
    if (strstr(problem, "did not find expected key") && text_before(reader, at))
        ir_stop_at(reader->job, STATUS_REJECTED, place,
                   "more text behind a value: quote the whole expression if it belongs to one");
    if (strstr(problem, "mapping values are not allowed")) {
        uint32_t first = line_start(reader, at);
        for (uint32_t word = first; word < at; word++)
            if (word == first || !is_name_byte(reader->bytes[word - 1])) refuse_long_name(reader, word);
        uint32_t above = first > 0 ? line_start(reader, first - 1) : first;
        while (above < first && reader->bytes[above] == ' ') above++;
        refuse_tight_colon(reader, above);
        if (open_brackets(reader->bytes + first, at - first, "[(", "])") > 0)
            ir_stop_at(reader->job, STATUS_REJECTED, place,
                       "': ' splits the expression: write no space after the colon, as in x[a:b]");
        ir_stop_at(reader->job, STATUS_REJECTED, place,
                   "a second ': ' in one value: check the indentation, or quote the expression");
    }
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
        if (strstr(problem, messages[i].theirs))
            ir_stop_at(reader->job, STATUS_REJECTED, place, "%s", messages[i].ours);
    ir_stop_at(reader->job, STATUS_REJECTED, place, "YAML: %s%s%s", parser->context ? parser->context : "",
               parser->context ? ": " : "", problem);
}

static void next_event(Reader *reader) {
    if (reader->event_open) yaml_event_delete(&reader->event);
    reader->event_open = false;
    if (!yaml_parser_parse(&reader->parser, &reader->event)) refuse_yaml(reader);
    reader->event_open = true;
}

/* The first plain scalar whose brackets do not pair, cut by a comma of the flow collection around it; or NULL. */
static const Doc *cut_scalar(const Level *level) {
    for (uint32_t i = 0; i < level->parts.count; i++) {
        const Doc *part = level->parts.at[i];
        if (part->kind == DOC_SCALAR && part->style == DOC_PLAIN &&
            open_brackets(part->text, part->count, "(", ")") != 0)
            return part;
    }
    return NULL;
}

typedef struct Key {
    const Doc *doc;
    uint32_t index;
} Key;

static int compare_keys(const void *left, const void *right) {
    const Key *a = left, *b = right;
    int order = strcmp(a->doc->text, b->doc->text);
    return order ? order : a->index < b->index ? -1 : 1;
}

static void check_keys(Reader *reader, const Doc *map) {
    Key *keys = IR_NEW_ARRAY(reader->job, Key, map->size);
    for (uint32_t i = 0; i < map->size; i++) {
        keys[i] = (Key){map->keys[i], i};
        /* all keys below size are there. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
        if (map->keys[i]->style == DOC_PLAIN && strcmp(map->keys[i]->text, "<<") == 0)
            ir_stop_at(reader->job, STATUS_REJECTED, map->keys[i]->place,
                       "merge keys are not allowed in a graph file: write the entries out");
    }
    if (map->size > 1) qsort(keys, map->size, sizeof *keys, compare_keys);
    for (uint32_t i = 1; i < map->size; i++) {
        if (strcmp(keys[i - 1].doc->text, keys[i].doc->text) != 0) continue;
        ir_error(reader->job, keys[i].doc->place,
                 "the key '%.64s' is already there: rename one of the two, or remove it", keys[i].doc->text);
        ir_note(reader->job, keys[i - 1].doc->place, "the first one");
        map->keys[keys[i].index]->repeated = true;
    }
}

static _Noreturn void refuse_empty(Reader *reader, const Doc *key, const Doc *item, bool flow) {
    if (!key) ir_stop_at(reader->job, STATUS_REJECTED, item->place, "a list item has no value");
    const char *colon = key->style == DOC_PLAIN ? strchr(key->text, ':') : NULL;
    const char *advice = colon && colon[1] ? "write a space behind the colon, as in M: any"
                         : flow            ? "a list stands in brackets, as in shape: [M, N]"
                                           : "write it behind the colon, on the same line";
    ir_stop_at(reader->job, STATUS_REJECTED, key->place, "'%.64s' has no value: %s", key->text, advice);
}

static void close_level(Reader *reader) {
    Level *level = &reader->level[reader->depth - 1];
    Doc *doc = level->doc;
    const Doc *cut = doc->flow ? cut_scalar(level) : NULL;
    if (cut) refuse_commas(reader, cut->place, doc->kind == DOC_MAP);
    bool map = doc->kind == DOC_MAP;
    doc->size = map ? level->parts.count / 2 : level->parts.count;
    doc->items = IR_NEW_ARRAY(reader->job, Doc *, doc->size);
    doc->keys = map ? IR_NEW_ARRAY(reader->job, Doc *, doc->size) : NULL;
    for (uint32_t i = 0; i < doc->size; i++) {
        Doc *item = doc->items[i] = level->parts.at[map ? 2 * i + 1 : i];
        Doc *key = map ? (doc->keys[i] = level->parts.at[2 * i]) : NULL;
        if (key && key->kind != DOC_SCALAR)
            ir_stop_at(reader->job, STATUS_REJECTED, key->place, "a key is a name, not a %s",
                       key->kind == DOC_MAP ? "map" : "list");
        if (item->kind == DOC_SCALAR && item->style == DOC_PLAIN && item->count == 0)
            refuse_empty(reader, key, item, doc->flow);
    }
    if (map) check_keys(reader, doc);
    reader->depth--;
}

static void add_doc(Reader *reader, Doc *doc) {
    if (reader->depth == 0)
        reader->root = doc;
    else
        *IR_PUSH(reader->job, &reader->level[reader->depth - 1].parts) = doc;
}

static void open_level(Reader *reader, Doc *doc) {
    add_doc(reader, doc);
    if (reader->depth == GEN_MAX_YAML_DEPTH)
        ir_stop_at(reader->job, STATUS_REJECTED, doc->place, "maps and lists nest at most %d deep", GEN_MAX_YAML_DEPTH);
    reader->level[reader->depth++] = (Level){.doc = doc};
}

static void refuse_marks(Reader *reader, Place place, const yaml_char_t *anchor, const yaml_char_t *tag) {
    if (anchor)
        ir_stop_at(reader->job, STATUS_REJECTED, place,
                   "anchors (&%.64s) are not allowed in a graph file: write the value where it is used",
                   (const char *)anchor);
    if (tag) ir_stop_at(reader->job, STATUS_REJECTED, place, "tags (!) are not allowed in a graph file: leave it out");
}

static Doc *scalar_of(Reader *reader, Place place) {
    const yaml_event_t *event = &reader->event;
    Doc *doc = IR_NEW(reader->job, Doc);
    *doc = (Doc){.kind = DOC_SCALAR, .place = place, .count = event->data.scalar.length};
    doc->text = ir_copy_text(reader->job, (const char *)event->data.scalar.value, doc->count);
    if (strlen(doc->text) != doc->count)
        ir_stop_at(reader->job, STATUS_REJECTED, place, "a NUL byte is not text: remove it");
    yaml_scalar_style_t style = event->data.scalar.style;
    doc->style = style == YAML_PLAIN_SCALAR_STYLE           ? DOC_PLAIN
                 : style == YAML_SINGLE_QUOTED_SCALAR_STYLE ? DOC_SINGLE
                 : style == YAML_DOUBLE_QUOTED_SCALAR_STYLE ? DOC_DOUBLE
                                                            : DOC_BLOCK;
    return doc;
}

static void take_event(Reader *reader) {
    const yaml_event_t *event = &reader->event;
    Place place = place_of(reader, &event->start_mark, &event->end_mark);
    Place first = point(reader, place.start);
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (reader->root)
            ir_stop_at(reader->job, STATUS_REJECTED, first,
                       "a second document begins here: a graph file is one, without ---");
        break;
    case YAML_ALIAS_EVENT:
        ir_stop_at(reader->job, STATUS_REJECTED, place,
                   "'*%.64s' is a YAML alias; no expression begins with '*', and aliases are not allowed",
                   (const char *)event->data.alias.anchor);
    case YAML_SCALAR_EVENT:
        refuse_marks(reader, place, event->data.scalar.anchor, event->data.scalar.tag);
        add_doc(reader, scalar_of(reader, place));
        break;
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT: {
        bool map = event->type == YAML_MAPPING_START_EVENT;
        refuse_marks(reader, first, map ? event->data.mapping_start.anchor : event->data.sequence_start.anchor,
                     map ? event->data.mapping_start.tag : event->data.sequence_start.tag);
        Doc *doc = IR_NEW(reader->job, Doc);
        *doc = (Doc){.kind = map ? DOC_MAP : DOC_LIST, .place = first};
        doc->flow = map ? event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE
                        : event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
        open_level(reader, doc);
        break;
    }
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: close_level(reader); break;
    default: break;
    }
}

Doc *gen_yaml_read(Job *job, const char *bytes, size_t count) {
    if (count > GEN_MAX_FILE)
        ir_stop_at(job, STATUS_REJECTED, (Place){0, 1}, "a graph file has at most 16 MB; this one has %zu bytes",
                   count);
    Reader *reader = IR_NEW(job, Reader);
    *reader = (Reader){.job = job, .bytes = bytes, .count = count};
    size_t mark = count >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* byte order mark */
    scan_characters(reader, mark);
    ir_job_defer(job, release, reader);
    if (!yaml_parser_initialize(&reader->parser)) ir_stop_at(job, STATUS_SYSTEM, (Place){0, 0}, "out of memory");
    reader->open = true;
    yaml_parser_set_encoding(&reader->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader->parser, (const unsigned char *)bytes + mark, count - mark);
    do {
        next_event(reader);
        take_event(reader);
    } while (reader->event.type != YAML_STREAM_END_EVENT);
    release(reader);
    if (!reader->root)
        ir_stop_at(job, STATUS_REJECTED, point(reader, 0), "the file is empty: a graph file is a mapping");
    return reader->root;
}

const Doc *gen_doc_find(const Doc *map, const char *key) {
    for (uint32_t i = 0; i < map->size; i++)
        if (strcmp(map->keys[i]->text, key) == 0) return map->items[i];
    return NULL;
}
