/* What the two writers of graph files share: ir/graph_print.c, whose texts are dumps, and ir/graph_write.c, whose texts
 * are for people. */
#ifndef IR_GRAPH_FILE_H
#define IR_GRAPH_FILE_H

#include "ir/graph_write.h"

#define IR_FILE_COLUMNS 110 /* of a line for people, where it can be helped */

typedef struct GraphFile {
    Job *job;
    Text *text;
    const Graph *graph;
    const GraphNotes *notes; /* NULL: none */
    const char **dims;       /* derived ones in brackets, so that they read back as themselves */
    const char **names;      /* of each value; NULL: it stands inside the expression that uses it */
    bool people;             /* as people write it; else as a dump does */
} GraphFile;

/* One entry of a section, without indentation. */
typedef struct FileLine {
    const char *text;
    const char *note; /* or NULL */
} FileLine;

typedef struct FileLines {
    IR_LIST(FileLine) lines;
} FileLines;

GraphFile ir_file(Text *text, const Graph *graph, const GraphNotes *notes, bool people);

/* The values that a value is made of. */
uint32_t ir_file_operands(const GraphFile *file, uint32_t id, uint32_t **operands);
/* Names of the values that have none in `names` yet and are not inlined: the graph's own, or tN with N from first on,
 * so that no two names of the file are equal. */
void ir_file_name(GraphFile *file, const bool *inlined, uint32_t first);

/* Whether a type, a dim or a value has this name. */
bool ir_file_has(const GraphFile *file, const char *name);

/* A name, or the text of an expression, quoted where YAML would take it for something else; flow: within { }. */
void ir_file_scalar(Text *out, const char *text, bool flow);
/* The number of a constant, with enough digits for its dtype; point: as a number that is no integer. */
const char *ir_file_number(const GraphFile *file, DType dtype, double number, bool point);
const char *ir_file_size(const GraphFile *file, Poly size);
/* "[M, N/2]" */
const char *ir_file_sizes(const GraphFile *file, const Poly *sizes, uint32_t count);
/* "[:, None]" of a tensor of this shape; gathered: the index of an ITEM_GATHER. */
const char *ir_file_items(const GraphFile *file, const Item *items, uint32_t count, const Shape *from,
                          const char *gathered);
/* "sum(x, dim=1, keepdim=True)" */
const char *ir_file_reduce(const GraphFile *file, const Value *value, const char *operand);

/* "name: entry", to which the rest of an entry is added. */
Text ir_file_key(const GraphFile *file, const char *name);
void ir_file_add(const GraphFile *file, FileLines *to, Text *line, const char *note);
/* A section with its title, where it has entries; a comment beside its entry, above it where the line would be long. */
void ir_file_section(const GraphFile *file, const char *title, const FileLines *lines);
/* graph, dims, inputs and scalars. */
void ir_file_head(const GraphFile *file);
/* The name of what each output stores. An output names no scalar, so one that is stored gets a node, added to `nodes`.
 */
const char **ir_file_stored(const GraphFile *file, FileLines *nodes);
void ir_file_outputs(const GraphFile *file, const char *const *stored);

#endif
