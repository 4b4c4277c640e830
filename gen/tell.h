/* What explain and knobs print, once for people and once as JSON. In: facts, in order, each under its key. Out: lines
 * with a column of keys, wrapped, or one JSON value of the same content. */
#ifndef GEN_TELL_H
#define GEN_TELL_H

#include "ir/text.h"

#define GEN_TELL_WIDTH 96 /* characters of a line */

typedef struct Tell {
    Text out;
    bool json;
    bool inner;     /* JSON: something stands in the object or list at hand */
    uint32_t depth; /* JSON: of objects and lists */
} Tell;

Tell gen_tell(Job *job, bool json);

/* "key   text", wrapped under its own column; "key": "text". A key's spaces are underlines in JSON. */
void gen_tell_text(Tell *tell, const char *key, const char *text);
/* For people alone: a line as it stands, wrapped with `hang` spaces before what goes on. */
void gen_tell_line(Tell *tell, uint32_t hang, const char *line);
/* For programs alone: what a line that people read says in words. */
void gen_tell_json_int(Tell *tell, const char *key, int64_t number);
void gen_tell_json_double(Tell *tell, const char *key, double number);
void gen_tell_json_text(Tell *tell, const char *key, const char *text); /* NULL: null */
void gen_tell_json_bool(Tell *tell, const char *key, bool truth);
/* Key NULL: an item of a list. */
void gen_tell_open(Tell *tell, const char *key, bool list);
void gen_tell_close(Tell *tell, bool list);

#endif
