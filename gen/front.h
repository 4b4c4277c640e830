/* The front end's state while it turns one graph file into a Graph, shared by its parts: names (names.c), sections of
 * the file (sections.c, tensors.c), settings (settings.c), operands (operand.c), expressions (build.c), calls (call.c).
 * expand.c uses the last three on the lines of composites.def. */
#ifndef GEN_FRONT_H
#define GEN_FRONT_H

#include "gen/expr.h"
#include "gen/gen.h"

#define GEN_MAX_CALLS 64         /* functions that call functions, open at once */
#define GEN_MAX_DEPTH 3000       /* of a tree with the functions in it: bounds the stack */
#define GEN_MAX_STEPS (1u << 22) /* operands and operators looked at in one graph, functions inlined */

typedef enum SymbolKind {
    SYMBOL_TYPE,
    SYMBOL_DIM,
    SYMBOL_INPUT,
    SYMBOL_SCALAR,
    SYMBOL_FUNCTION,
    SYMBOL_NODE
} SymbolKind;

typedef struct Symbol {
    SymbolKind kind;
    const char *name;
    Place place;
    uint32_t index; /* in the list of its kind */
    bool used;      /* INPUT, SCALAR: named by an expression or an output */
} Symbol;

/* A line under functions: or of composites.def. */
typedef struct Function {
    const char *name;
    uint32_t count;
    const char **params;
    Arg *defaults;
    bool *required;
    Ast *body;
    uint32_t line; /* of composites.def; IR_NONE for the file's own */
} Function;

typedef enum NodeState { NODE_NEW, NODE_OPEN, NODE_DONE, NODE_BROKEN } NodeState;

typedef struct Node {
    const char *name;
    Place place;
    const Doc *doc;
    Ast *ast;
    NodeState state;
    bool live;
    uint32_t value;
    IR_LIST(uint32_t) needs; /* nodes */
    uint32_t next;           /* of needs, while the nodes are put in order */
} Node;

typedef struct Front Front;
typedef uint32_t PutCall(Front *front, Call *call, Place place); /* the value that a composite's call becomes */

struct Front {
    Job *job;
    Graph *graph;
    const GenOptions *options;
    IR_LIST(Symbol) symbols;
    uint32_t *slots; /* hash table: index + 1 into symbols */
    uint32_t slot_count;
    IR_LIST(TypeName) types;
    bool types_cast; /* an expression casts to one */
    IR_LIST(Function) functions;
    IR_LIST(Node) nodes;
    Function **composites; /* parsed lines of composites.def, or NULL where none was needed yet */
    bool expand;           /* a composite's call becomes its formula */
    /* What becomes of a composite's call while not expanding; NULL: an OP_COMPOSITE. owner is its own. */
    PutCall *put_call;
    void *owner;
    uint32_t steps;
    uint32_t depth; /* of gen_build */
};

/* A body that is being inlined. Lines of composites.def have no places of their own: theirs is the call's. */
typedef struct Scope {
    const struct Scope *caller;
    const Function *function;
    const Arg *args;
    Place call;
    uint32_t depth;
} Scope;

/* names.c */
void gen_name_add(Front *front, SymbolKind kind, uint32_t index, const Doc *key, const char *what);
void gen_name_put(Front *front, SymbolKind kind, uint32_t index, const char *name, Place place);
Symbol *gen_name_find(const Front *front, const char *name);
/* "; did you mean 'x'?" among the symbols of these kinds (a mask of 1 << kind) and more words; "" where nothing is
 * near. */
const char *gen_name_hint(const Front *front, const char *name, uint32_t kinds, const char *const *more,
                          uint32_t more_count);
/* A mistake in an expression, at a place of its own text: the graph's, or of a line of composites.def, which is a bug
 * of normgen and said to be one, with the line of the table. (gen/composites.c) */
_Noreturn void gen_refuse(Front *front, const Scope *scope, Place place, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Runs work so that an error in it leaves work alone; false when it was left. Other stops go on. */
bool gen_attempt(Job *job, void (*work)(Job *job, void *state), void *state);
void gen_warn(const Front *front, Place place, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* sections.c, tensors.c, settings.c */
/* Reads each entry of a section; an error in one leaves the others to be read. */
void gen_read_entries(Front *front, const Doc *section, const char *name,
                      void (*read)(Front *front, const Doc *key, const Doc *item));
void gen_read_sections(Front *front, const Doc *root);
void gen_read_inputs(Front *front, const Doc *section);
void gen_read_scalars(Front *front, const Doc *section);
void gen_read_outputs(Front *front, const Doc *section);   /* after the nodes were built */
void gen_apply_settings(Front *front, const Doc *scalars); /* their section, or NULL */
DType gen_find_dtype(Front *front, const char *name, Place place);
/* The file's type of this name, or NULL. */
const char *gen_find_type(const Front *front, const char *name);
/* "; did you mean 'f32'?" or "": types: the file's own types too. (gen/sections.c) */
const char *gen_dtype_hint(const Front *front, const char *name, bool types);
/* Reports entries of a map that are not among these keys. */
void gen_check_fields(Front *front, const Doc *map, const char *const *keys, uint32_t count, const char *what);

/* operand.c */
/* An operand as a value of the graph; a weak number takes want (NULL: nothing that it meets). */
uint32_t gen_arg_value(Front *front, const Arg *arg, const DType *want, Place place);
/* An operand as a size: numbers, dims, + - * and exact division. */
Poly gen_arg_size(Front *front, const Arg *arg, Place place, const char *what);
Arg gen_apply(Front *front, Op op, const Arg *args, uint32_t count, Place place, bool composite);

/* The kind of an operand, for messages: "a tensor". */
const char *gen_arg_name(const Arg *arg);

/* bind.c */
/* The argument of each parameter, NULL where none is given. */
const Ast **gen_bind(Front *front, const Scope *scope, const Ast *call, const char *const *params, uint32_t count);
_Noreturn void gen_refuse_missing(Front *front, const Scope *scope, const Ast *call, const char *param);
/* Refuses an argument that is not of the kind that the parameter's name says. */
void gen_check_kind(Front *front, const Scope *scope, const Ast *call, const char *param, const Arg *arg, Place place);
/* The dims that a `dim` of the right kind names, as a bit mask; None: all. */
uint32_t gen_dims_of(Front *front, const Arg *arg, uint32_t rank, Place place);
/* The operands for a function's or composite's parameters, defaults where none is given; those of a composite are of
 * the kind that the parameter's name says. */
Arg *gen_bind_function(Front *front, const Scope *scope, const Ast *call, const Function *function, bool *given);

/* build.c, call.c */
Arg gen_build(Front *front, const Scope *scope, const Ast *ast);
Arg gen_build_call(Front *front, const Scope *scope, const Ast *ast);
Item *gen_build_items(Front *front, const Scope *scope, const Ast *index, const Shape *from, uint32_t *count);
Place gen_place(const Scope *scope, Place place);
/* The call of a composite as one OP_COMPOSITE, typed by its formula. */
uint32_t gen_add_composite(Front *front, Call *call, Place place);
/* The formula of a composite for these arguments, in front->graph. */
Arg gen_expand_call(Front *front, const Call *call, Place place);

/* expand.c */
uint32_t gen_put_formula(Front *front, Call *call, Place place); /* what gen_expand_call gives, as a value */
/* A value of another graph in front->graph, a call by `put`, with its name where it has none yet. map: of ids. */
uint32_t gen_copy_value(Front *front, const Value *value, const uint32_t *map, PutCall *put);

/* composites.c */
Function *gen_composite(Front *front, uint32_t line);
/* One line of the table, which stands in this row of its file. */
Function gen_read_composite(Front *front, const char *text, uint32_t line, uint32_t row);
uint32_t gen_composite_find(const char *name, size_t count,
                            uint32_t first); /* first line at or after first, or IR_NONE */
extern const uint32_t gen_composite_count;
const char *gen_composite_text(uint32_t line);
const char *gen_composite_derivative(uint32_t line); /* "NAME: expression; ...", or "" */
const char *gen_composite_what(uint32_t line);       /* what it gives, for people */
/* A function from its head and body. */
Function gen_make_function(Front *front, const Ast *head, Ast *body, uint32_t line);

/* inplace.c */
void gen_check_inplace(Front *front);

#endif
