/* The `normgen` command: a client of the library's public header, one file for each group of verbs.
 *
 * A verb reads its options, does its work and returns an exit code; what it prints on standard output is gathered in
 * cli->out (or cli->json) and written once at the end. cli_fail ends the process from any depth: the words go to
 * standard error, and into the JSON value where one was asked for. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <cjson/cJSON.h>

#include "runtime/cli/text.h"
#include "runtime/normgen.h"

#define CLI_INTERRUPTED 130

typedef enum VerbId {
#define VERB(id, ...) VERB_##id,
#include "runtime/cli/verbs.def"
#undef VERB
    VERB_COUNT
} VerbId;

typedef enum OptionId {
#define OPTION(id, ...) OPTION_##id,
#include "runtime/cli/options.def"
#undef OPTION
    OPTION_COUNT
} OptionId;

typedef enum ValueMode { VALUE_NONE, VALUE_NEEDED, VALUE_MAY } ValueMode;

typedef struct Option {
    const char *spelling; /* -x, -word or --word */
    const char *value;    /* placeholder in help */
    ValueMode mode;
    uint32_t verbs; /* bit v: verb v takes it */
    const char *help;
} Option;

typedef struct Cli Cli;

typedef struct Verb {
    const char *name;
    const char *operands;
    int fewest, most; /* operands */
    int (*run)(Cli *cli);
    const char *does;
    const char *details; /* lines for its help, or "" */
} Verb;

typedef struct OptionUse {
    OptionId id;
    const char *value; /* NULL: none given */
} OptionUse;

struct Cli {
    const Verb *verb; /* NULL before it is known */
    OptionUse *uses;  /* in the order given */
    size_t use_count;
    const char **operands;
    size_t operand_count;
    bool color;  /* of diagnostics */
    Buf out;     /* for standard output */
    cJSON *json; /* NULL without --json */
};

extern const Verb cli_verbs[VERB_COUNT];
extern const Option cli_options[OPTION_COUNT];

/* options.c */
void cli_parse(Cli *cli, int argc, char **argv); /* everything after the verb; cli_fail with 2 */
void cli_help(Buf *buf, const Verb *verb);       /* NULL: of the whole command */
bool cli_has(const Cli *cli, OptionId id);
const char *cli_value(const Cli *cli, OptionId id); /* of its last use, or NULL */
/* The integer given, or `otherwise`; cli_fail with 2 where it is none within the limits. */
int64_t cli_int(Cli *cli, OptionId id, int64_t least, int64_t most, int64_t otherwise);
double cli_number(Cli *cli, OptionId id, double otherwise);
/* The lists of all uses, as one; to be freed. NULL: none was given. */
char *cli_joined(const Cli *cli, OptionId id);
/* NAME=VALUE pairs of all uses, in order; *count of them. */
ng_setting *cli_settings(Cli *cli, OptionId id, size_t *count);
void cli_free_settings(const ng_setting *settings, size_t count);

/* output.c */
_Noreturn void cli_fail(Cli *cli, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* A status of the library with its words, which are freed. */
void cli_tell_why(Cli *cli, ng_status status, const ng_text *why); /* the same words, and goes on */
_Noreturn void cli_fail_why(Cli *cli, ng_status status, ng_text *why);
void cli_warnings(Cli *cli, ng_text *words); /* that came with NG_OK; freed */
void cli_note(Cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cli_diagnose(Cli *cli, const char *text, size_t count); /* onto standard error, coloured on a terminal */
_Noreturn void cli_finish(Cli *cli, int status);             /* writes what was gathered and exits */
char *cli_read_file(Cli *cli, const char *path, size_t limit, size_t *count); /* "-": standard input */
typedef struct Piece {
    const void *bytes;
    size_t count;
} Piece;
/* Whether two paths, of files that may not be there yet, name one regular file. */
bool cli_same_file(const char *a, const char *b);
/* Whether two results, "-" being standard output, would go to one file, pipe or device; /dev/null takes any number. */
bool cli_same_result(const char *a, const char *b);
typedef struct FileOut {
    const char *path; /* "-": standard output, at the end */
    const Piece *pieces;
    size_t count;
} FileOut;
/* Each beside its place and synced, then all renamed: what cannot be written leaves every old file as it was. */
void cli_write_files(Cli *cli, const FileOut *files, size_t count);
void cli_write_file(Cli *cli, const char *path, const Piece *pieces, size_t count);

/* graph.c: what every verb with a GRAPH begins with */
typedef struct Opened {
    ng_context *context;
    ng_program *program;
    ng_program_facts facts;
    char *text; /* of the graph file */
    size_t count;
} Opened;
ng_context *cli_context(Cli *cli, bool launches);
/* The text of a graph file, and what messages call it; "-": standard input. */
char *cli_read_graph(Cli *cli, const char *path, size_t *count);
const char *cli_graph_name(const char *path);
int cli_arch(Cli *cli); /* of --arch; 0: not given */
/* Compiles the operand up to a pass (NULL: all). Warnings go to standard error, times of passes where asked. */
Opened cli_open(Cli *cli, ng_context *context, const char *last_pass);
/* The same, but a graph that is legal and does not come through the passes up to last_pass is compiled up to else_pass
 * instead; returns the status of the first, with its words in *why. */
ng_status cli_try(Cli *cli, ng_context *context, const char *last_pass, const char *else_pass, Opened *opened,
                  ng_text *why);
/* Notes each any dim that -D gives a value, of a verb that launches nothing. cli_open and cli_try do so. */
void cli_note_defines(Cli *cli, const Opened *opened);
/* Compiles a graph that the command made: -D, --hint and --fix went into it. */
Opened cli_open_made(Cli *cli, ng_context *context, const ng_text *graph, const char *name, const char *last_pass);
/* Compiles the same graph with the same options and one --set more, to be freed; a failure is the caller's to tell. */
ng_status cli_vary(Cli *cli, const Opened *opened, const char *knob, const char *value, ng_program **program,
                   ng_text *why);
void cli_close(Opened *opened);
ng_text cli_text(Cli *cli, const Opened *opened, ng_text_kind kind, const char *pass);
ng_arg cli_arg(Cli *cli, const Opened *opened, ng_arg_role role, uint32_t index);
/* Adds bytes to standard output, or under `name` to the JSON value. */
void cli_show(Cli *cli, const char *name, const char *bytes, size_t count);

/* texts.c */
/* A text that a verb makes: onto a file, or to standard output or into the JSON value. */
typedef struct Result {
    const char *name; /* in the JSON value, which has the path where there is one */
    const char *path; /* NULL: none */
    const ng_text *text;
} Result;
void cli_deliver(Cli *cli, const Result *results, size_t count);
/* Of an option that names a file to be written: refuses the graph, what other options read, and standard output where
 * that holds the JSON value; "-" is left to the verb. */
void cli_check_path(Cli *cli, OptionId id);
/* Of a verb that writes to -o and, where it is given, to a second file: refuses paths that are one, and what
 * cli_check_path refuses. what: goes to -o. */
void cli_check_paths(Cli *cli, OptionId second, const char *what);
/* Facts of a planned graph: words, or the same as members of the JSON value. */
void cli_show_facts(Cli *cli, const Opened *opened, ng_text_kind words, ng_text_kind json);
/* The members of a JSON object become those of another. */
void cli_add_members(Cli *cli, cJSON *to, const char *json);
/* The lines of a list under a title. */
void cli_show_list(Cli *cli, ng_list_kind kind, const char *title);
/* The names in a list of the library (the part of each line before its tab); *count of them. */
char **cli_list_names(ng_list_kind kind, size_t *count);

/* grad.c: explain of the backward graph */
bool cli_wants_grad(const Cli *cli);
int cli_explain_grad(Cli *cli);

/* the verbs */
#define VERB(id, name, operands, fewest, most, function, ...) int function(Cli *cli);
#include "runtime/cli/verbs.def"
#undef VERB

#endif
