/* normgen: graph files to fused CUDA kernels, compiled at run time.
 *
 * A context holds a device. A program is a graph compiled for it; one program serves every value of the graph's any
 * dims. Objects may be used from several threads at once, except that freeing one needs every other use to have ended.
 * Nothing is global: messages come back through `why` (NULL allowed), a text that the caller frees with ng_text_free.
 * The library never exits, prints only under NORMGEN_DEBUG, and never changes the caller's CUDA context, locale or
 * environment. Structs begin with their size in bytes, which the caller sets, so that they can grow; zero in a field of
 * an option struct means its default. An index past the end, a NULL that is not allowed or a size not set is NG_USAGE.
 *
 *     ng_context *ctx;  ng_program *rms;
 *     ng_context_create(NULL, &ctx, NULL);
 *     ng_compile(ctx, text, strlen(text), NULL, &rms, NULL);
 *     ng_launch(rms, &(ng_args){sizeof(ng_args), .tensors = tensors, .dims = &rows, .scalars = &eps, .stream = s});
 */
#ifndef NORMGEN_H
#define NORMGEN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NG_VERSION_MAJOR 0
#define NG_VERSION_MINOR 1
#define NG_VERSION_PATCH 0

#if defined(__GNUC__)
#define NG_API __attribute__((visibility("default")))
#else
#define NG_API
#endif

typedef struct ng_context ng_context;
typedef struct ng_program ng_program;

/* 1 to 9 are also the exit codes of the command. New codes are appended. */
typedef enum ng_status {
    NG_OK = 0,
    NG_REJECTED = 1,     /* the graph is not legal; `why` holds the diagnostics */
    NG_USAGE = 2,        /* an argument or option is not legal */
    NG_NO_DEVICE = 3,    /* there is no such device */
    NG_NOT_COMPILED = 4, /* a kernel did not compile, or a forced knob is impossible */
    NG_CHECK_FAILED = 5, /* results outside their bound */
    NG_SYSTEM = 6,       /* a file, memory or another system call failed */
    NG_LAUNCH = 7,       /* a launch failed, or device memory is short */
    NG_INTERNAL = 8,     /* a bug in normgen */
    NG_UNAVAILABLE = 9   /* not built yet; or NVRTC or the driver is missing */
} ng_status;

typedef enum ng_dtype {
    NG_F64,
    NG_F32,
    NG_F16,
    NG_BF16,
    NG_F8E4M3,
    NG_F8E5M2,
    NG_I64,
    NG_I32,
    NG_I8,
    NG_U8,
    NG_BOOL
} ng_dtype;

/* A scalar's value: f64 of f64 scalars, f32 of all narrower floats (rounded to the scalar's dtype by the library), i64
 * of integers and bools. */
typedef union ng_scalar {
    double f64;
    float f32;
    int64_t i64;
} ng_scalar;

typedef struct ng_text { /* the caller's, of malloc; a NUL follows the last byte; all zero where there is none */
    const char *bytes;
    size_t count;
} ng_text;

NG_API const char *ng_version(void); /* "0.1.0" */
NG_API const char *ng_status_name(ng_status status);
NG_API const char *ng_dtype_name(ng_dtype dtype);
NG_API size_t ng_dtype_bytes(ng_dtype dtype);
NG_API void ng_text_free(ng_text *text); /* takes NULL and empty texts */
/* One stored element as a number and back; unaligned allowed. Storing rounds as a cast does. I64 to 2^53 only.
 * A dtype that is none loads as NaN and is not stored. */
NG_API double ng_load(ng_dtype dtype, const void *element);
NG_API void ng_store(ng_dtype dtype, void *element, double value);

/* ---- devices and contexts ---- */

typedef enum ng_device_kind {
    NG_DEVICE_DEFAULT = 0, /* cuda:0 where there is one and NVRTC loads, else host */
    NG_DEVICE_CUDA,
    NG_DEVICE_HOST, /* the same kernels as C++ on the processor: for tests and machines without a GPU */
    NG_DEVICE_NONE  /* plan and generate only: no program of this context launches */
} ng_device_kind;

typedef struct ng_device {
    size_t size;
    ng_device_kind kind;
    int ordinal;
    int arch; /* 90 for sm_90 */
    int sms;
    uint64_t memory_bytes; /* 0 for the host */
    char name[128];
} ng_device;

/* Devices in order, cuda first, host last. NG_NO_DEVICE past the end. */
NG_API ng_status ng_device_query(int index, ng_device *device);

typedef enum ng_host_order { NG_ORDER_ASCENDING = 0, NG_ORDER_DESCENDING, NG_ORDER_SEEDED } ng_host_order;

typedef struct ng_context_options {
    size_t size;
    ng_device_kind device;
    int ordinal;
    int arch;                 /* plan for this architecture (90); 0: the device's own, or 90 where it has none */
    ng_host_order host_order; /* the order in which the host device runs lanes; results never depend on it */
    uint64_t host_seed;
    /* NULL: malloc and free. Aligned for any type; called from all threads that use the context. Compiling and queries
     * take their memory here; texts for the caller and the device compilers' own memory do not. */
    void *(*alloc)(void *state, size_t bytes);
    void (*release)(void *state, void *memory);
    void *allocator_state;
} ng_context_options;

NG_API ng_status ng_context_create(const ng_context_options *options, ng_context **context, ng_text *why);
NG_API ng_status ng_context_device(const ng_context *context, ng_device *device);
NG_API void ng_context_free(ng_context *context); /* after its programs; takes NULL */

/* ---- programs ---- */

typedef struct ng_setting {
    const char *name;
    const char *value;
} ng_setting;

typedef struct ng_compile_options {
    size_t size;
    const char *name;          /* of the graph's text in messages; default "graph" */
    const ng_setting *defines; /* dims and types, as -D */
    size_t define_count;
    const ng_setting *hints; /* as --hint */
    size_t hint_count;
    const ng_setting *fixes; /* as --fix */
    size_t fix_count;
    const ng_setting *sets; /* knobs, as --set */
    size_t set_count;
    int verify;          /* verify the IR after every pass */
    int batch_invariant; /* a row's bits do not depend on how many rows there are */
    int warnings_are_errors;
    /* Stop after this pass, by its name (NULL: go through all): such a program only shows texts. "expand" is the whole
     * check of a graph: parsed, typed, composites written out. */
    const char *last_pass;
} ng_compile_options;

/* count bytes of a graph file, which is not kept. Kernels are compiled and loaded when this returns, so that the very
 * first launch may be captured. Warnings too come back through `why`, with NG_OK. The same text with the same options,
 * compiled at the same time or while its program lives, is compiled once: the calls return one object, and each of them
 * is to be freed. */
NG_API ng_status ng_compile(ng_context *context, const char *graph, size_t count, const ng_compile_options *options,
                            ng_program **program, ng_text *why);
NG_API void ng_program_free(ng_program *program); /* takes NULL */

typedef struct ng_program_facts {
    size_t size;
    const char *name;                                 /* the program's */
    uint32_t inputs, outputs, scalars, dims, kernels; /* dims: the any dims, that a launch takes */
    double compile_seconds;
} ng_program_facts;
NG_API ng_status ng_program_query(const ng_program *program, ng_program_facts *facts);

typedef enum ng_arg_role { NG_INPUT, NG_OUTPUT, NG_SCALAR, NG_DIM } ng_arg_role;

typedef struct ng_arg {
    size_t size;
    const char *name; /* the program's */
    ng_dtype dtype;   /* NG_DIM: NG_I64 */
    int rank;
    int contiguous;              /* no strides were given in the file */
    int64_t inplace;             /* NG_OUTPUT: index of the input whose memory it may be, else -1 */
    int accumulate;              /* NG_OUTPUT: adds to what is there */
    int64_t align;               /* bytes that the pointer must be a multiple of */
    int has_default;             /* NG_SCALAR */
    ng_scalar value;             /* NG_SCALAR: the default */
    int64_t hint, max, multiple; /* NG_DIM: hint and max -1 where there are none */
    int32_t extent_dim[6];       /* tensors: for each extent the any dim (index among NG_DIM) that it is, else -1 */
} ng_arg;
NG_API ng_status ng_arg_query(const ng_program *program, ng_arg_role role, uint32_t index, ng_arg *arg);
NG_API ng_status ng_arg_find(const ng_program *program, const char *name, ng_arg_role *role, uint32_t *index);
/* Extents and strides (in elements) of an input or output for these any dims; arrays of ng_arg.rank. NULL allowed. */
NG_API ng_status ng_arg_shape(const ng_program *program, ng_arg_role role, uint32_t index, const int64_t *dims,
                              int64_t *extents, int64_t *strides);
/* Of an output with an inplace input: elements from that input's pointer to the output's own first element, where it is
 * that input or a slice of it. NG_USAGE for any other output. */
NG_API ng_status ng_arg_slice(const ng_program *program, uint32_t output, const int64_t *dims, int64_t *offset);
/* Of an input whose elements are indices for these any dims, as ids in table[ids], themselves or after slices,
 * reshapes, integer casts and what else picks elements: 0 to *count - 1 are inside what they index (of several tables
 * the shortest) and within the dtypes on the way. *count is 0 where any index lies outside. NG_USAGE for any other
 * input. */
NG_API ng_status ng_arg_indices(const ng_program *program, uint32_t input, const int64_t *dims, int64_t *count);

/* What a launch of these any dims needs: 256-byte aligned device memory, contents arbitrary, not shared by launches
 * that may run at the same time. Never grows when a dim shrinks. */
NG_API ng_status ng_workspace_bytes(const ng_program *program, const int64_t *dims, size_t *bytes);

/* ---- launching ---- */

typedef struct ng_args {
    size_t size;
    void *const *tensors;     /* inputs, then outputs, in file order; device pointers (host device: host pointers) */
    const int64_t *dims;      /* the any dims, in file order */
    const ng_scalar *scalars; /* in file order; NULL: the defaults */
    void *workspace;
    size_t workspace_bytes;
    void *stream;   /* cuda: CUstream or cudaStream_t */
    uint32_t flags; /* 0 */
} ng_args;

/* Enqueues only: no allocation, compile or synchronisation; may be captured. Restores the current CUDA context. On the
 * host device the kernels have run when it returns.
 * NG_USAGE: a dim negative, past its max or no multiple; a pointer NULL or misaligned; an output that overlaps another
 * tensor (its inplace input itself, or that input's slice, is no overlap, nor is one that lies between the elements of
 * the other, as columns of one array); strides that put two elements of an output in one place, or of an input that is
 * given for a slice in place; amax or amin of nothing; a workspace too small. NG_LAUNCH: more than 2^31 - 1 CTAs, or
 * the device said no. NG_UNAVAILABLE: the context has no device. Nothing was enqueued then, save where a later kernel's
 * launch failed.
 */
NG_API ng_status ng_launch(ng_program *program, const ng_args *args);
/* The checks of ng_launch and more, in words; launches nothing. */
NG_API ng_status ng_launch_check(ng_program *program, const ng_args *args, ng_text *why);

/* ---- running on host memory, checked ---- */

typedef struct ng_output_report {
    double min, max, mean; /* over the finite elements; NaN when there are none */
    uint64_t elements, nans;
    uint64_t hash;       /* XXH3 of the bytes, elements in row-major order */
    uint64_t checked;    /* elements compared with the double reference; 0: not verified */
    uint64_t failed;     /* outside their bound */
    uint64_t uncertain;  /* on another side of a discontinuity than expected, which is within their bound; more than 1
                            in 1000 fail the check */
    double worst;        /* largest |error| / (1 ulp + bound) */
    int64_t worst_index; /* its row-major index, -1: none; where only too many are uncertain, the first of those */
    double worst_got, worst_expected, worst_bound;
    uint64_t unbounded; /* of those compared: their bound is infinite, so that they are not checked */
} ng_output_report;

typedef struct ng_report {
    size_t size;
    ng_output_report *outputs; /* the caller's array, one for each output; NULL allowed */
    double seconds;            /* of the launch */
    int sampled;               /* the check evaluated only some rows and columns */
    ng_text why;               /* what failed; the caller frees it */
} ng_report;

/* As ng_launch, but tensors are host memory in the strides of the file: copies in, runs, copies out and blocks. A copy
 * on the device keeps its host pointer's distance from a 256-byte boundary, so that misaligned pointers can be tried.
 * An output that is its inplace input's own pointer shares that input's copy. The workspace is made here:
 * args->workspace and stream are not read. What lies between the elements of a strided output is left as it was.
 * verify: compares every output with the reference in double. NG_CHECK_FAILED where one fails,
 * and, with verify or not, where a kernel wrote beside its tensors. */
NG_API ng_status ng_run(ng_program *program, const ng_args *args, int verify, ng_report *report);

/* ---- gradients, checked ---- */

typedef struct ng_check_grad_options {
    size_t size;
    const char *wrt, *of, *save, *recompute; /* as of ng_grad */
    uint64_t seed;                           /* of the outputs' gradients, and of what is sampled */
    int json;                                /* the report as one JSON object, else as lines for people */
    /* A backward graph's text that is checked instead of the one that ng_grad would make. Its inputs are inputs and
     * outputs of the forward graph and gradients of its outputs (d_NAME), its outputs gradients of its inputs; the
     * program's defines, hints and fixes hold for it too. wrt, of, save and recompute must be NULL. */
    const char *backward;
    size_t backward_count;
    const char *backward_name; /* of the text in messages; default "backward" */
    const char *prefix;        /* as of ng_grad; of a given backward graph's names too */
} ng_check_grad_options;

/* The backward graph against central differences of the forward one. Makes both graphs of the program's text (which may
 * have been compiled up to any pass), compiles and runs them as ng_run does with verify, on inputs in host memory (args
 * as of ng_run; outputs may be NULL) and random gradients of the outputs. Then every element of each gradient (of more
 * than 256: 64 of them, and 4 directions over all) is compared with differences in long double of the forward graph in
 * f64, and the backward graph's dtypes with the same graph in f64. NG_CHECK_FAILED with words in `why` where something
 * is outside what rounding and the differences' own error allow, or where too few differences settle, as at kinks.
 * Elements of outputs that are not finite are left out, as are those of gradients that are not finite then; an output
 * or a gradient of which nothing is left fails. Warnings about a given backward graph come back through `why` with
 * NG_OK, too. */
NG_API ng_status ng_check_grad(ng_program *forward, const ng_args *args, const ng_check_grad_options *options,
                               ng_text *report, ng_text *why);

/* ---- measuring ---- */

typedef struct ng_measured {               /* of one program, or of the copy */
    double median, least, low, high, most; /* microseconds a call, of the replays; low, high: the quartiles */
    double gbs;                            /* ideal_bytes / median; of the copy its own bytes */
    double share;                          /* of the copy's rate */
    uint64_t ideal_bytes;                  /* that any plan must move in a call: each input read, each output written */
    uint64_t moved_bytes;                  /* that this one does */
    uint32_t calls;                        /* a replay */
} ng_measured;

typedef struct ng_bench_options {
    size_t size;
    uint32_t replays;      /* timed ones of each program; 0: 11 */
    double replay_seconds; /* that a replay takes at least; 0: 0.005 */
    uint64_t memory_bytes; /* most that all sets may take; 0: 4/5 of what the device has left. Two sets at least */
} ng_bench_options;

typedef struct ng_bench_report {
    size_t size;
    ng_measured *programs; /* the caller's array, one for each program */
    ng_measured copy;      /* of as many bytes, half of them read and half written */
    uint32_t replays;
    uint32_t sets;      /* that calls take in turn */
    uint64_t set_bytes; /* of the tensors of one */
    int cold; /* the sets hold more than three times what the L2 does: a call finds nothing of its own there */
    int real; /* 0: of the host device, whose times say nothing about a GPU */
} ng_bench_report;

/* Measures programs of one graph and context, each with its own settings, in one run: all tensors, outputs too, lie in
 * device memory several times, as sets that calls take in turn; many calls are captured as a CUDA graph (on the host
 * device: called in a loop) and replayed, the programs and a copy of the same bytes by turns. args as of ng_run, whose
 * inputs, and outputs that accumulate, are copied to the device once; nothing is copied back. Another output may be
 * NULL, or of any contents; it shares its inplace input's memory where it has that input's pointer (plus the slice's
 * offset). NG_USAGE: no byte is moved with these dims. */
NG_API ng_status ng_bench(ng_program *const *programs, uint32_t count, const ng_args *args,
                          const ng_bench_options *options, ng_bench_report *report, ng_text *why);

/* ---- gradients ---- */

typedef struct ng_grad_options {
    size_t size;
    const char *name;          /* of the graph's text in messages; default "graph" */
    const ng_setting *defines; /* of the forward graph, as -D: they go into both texts */
    size_t define_count;
    const ng_setting *hints; /* as --hint */
    size_t hint_count;
    const ng_setting *fixes; /* as --fix */
    size_t fix_count;
    int warnings_are_errors;
    const char *save;      /* nodes that the forward graph stores for the backward one, whatever that costs */
    const char *recompute; /* nodes that the backward graph computes again; "*": all that it can */
    int verify;            /* read both texts back and compare: a difference is NG_INTERNAL */
    /* NULL: not wanted. What the backward graph reads, saves and computes again, in bytes, and what PyTorch's autograd
     * would keep: for people, and as one JSON object. */
    ng_text *explain, *explain_json;
    /* NULL: malloc and free, as in ng_context_options. Texts for the caller are not taken here. */
    void *(*alloc)(void *state, size_t bytes);
    void (*release)(void *state, void *memory);
    void *allocator_state;
    const char *prefix; /* of gradients' names; NULL: d_ */
} ng_grad_options;

/* The backward graph of a forward one, and the forward one extended by what it must store for it, both as graph files,
 * which ng_compile takes. Gradients are named d_NAME (or with another prefix, as second derivatives must be): those of
 * outputs are inputs of the backward graph, those of inputs its outputs; each has the dtype of what it is the gradient
 * of. All that the backward graph reads else is an input or an output of the forward one, under its name there. wrt:
 * inputs, of: outputs, save, recompute: nodes, as names divided by commas. NULL: every float input that a float output
 * depends on; every float output; what moves the fewest bytes. options, backward, forward may be NULL. Needs no
 * context; may be called from several threads. Warnings too come back through `why`, with NG_OK.
 * NG_USAGE: a name that is none, or not of the kind that is asked for. NG_REJECTED: the graph is not legal, or has no
 * such gradient. No text is made then. */
NG_API ng_status ng_grad(const char *graph, size_t count, const char *wrt, const char *of,
                         const ng_grad_options *options, ng_text *backward, ng_text *forward, ng_text *why);

/* ---- looking inside ---- */

typedef enum ng_text_kind {
    NG_TEXT_CUDA,    /* the .cu file */
    NG_TEXT_HEADER,  /* declarations of its launcher */
    NG_TEXT_IR,      /* after `pass` (NULL: the last that makes IR; "all": after each) */
    NG_TEXT_EXPLAIN, /* classes, fusions, strategy, knobs, bytes */
    NG_TEXT_CUBIN,   /* bytes; needs NVRTC */
    NG_TEXT_PTX,
    NG_TEXT_TIMES, /* a line for each pass that ran: "name<TAB>microseconds" */
    NG_TEXT_EXPLAIN_JSON,
    NG_TEXT_KNOBS, /* what --set may force: of the graph, and of each kernel with the values that it may have */
    NG_TEXT_KNOBS_JSON,
    NG_TEXT_TYPES /* a line for each dim, input, scalar, node and output: "role<TAB>name<TAB>type<TAB>more" with shapes
                     in the dims' names; more: the strides, what it is in place of, a default, or nothing */
} ng_text_kind;
/* On failure *out holds what the device compiler said, where it was asked. */
NG_API ng_status ng_program_text(const ng_program *program, ng_text_kind what, const char *pass, ng_text *out);

typedef struct ng_kernel {
    size_t size;
    const char *name; /* the program's */
    const char *strategy;
    const char *variant;
    int threads;
    uint32_t shared_bytes;
    int registers, local_bytes; /* stack and spills; -1 where neither device nor cubin can say */
    uint32_t launches;          /* steps of the program that launch it or its other variants */
} ng_kernel;
/* The program's kernels in order, below ng_program_facts.kernels. Steps that are equal but for names launch the same
 * ones, which stand here and are compiled once. */
NG_API ng_status ng_kernel_query(const ng_program *program, uint32_t index, ng_kernel *kernel);

/* What normgen has: the i-th op, composite, pass or strategy as one line "name<TAB>what it is"; NG_USAGE past the end.
 */
typedef enum ng_list_kind {
    NG_LIST_OPS,
    NG_LIST_COMPOSITES,
    NG_LIST_PASSES,
    NG_LIST_STRATEGIES,
    NG_LIST_DTYPES,
    NG_LIST_KNOBS,    /* what --set takes */
    NG_LIST_LANGUAGE, /* each call of the graph language, with more fields divided by tabs: name, group, signature,
                         what it gives, dtype of the result, formula, error, derivative, CUDA text; empty where none
                         applies */
    NG_LIST_ADVICE    /* calls of PyTorch, NumPy and JAX, and what to write instead */
} ng_list_kind;
NG_API ng_status ng_list(ng_list_kind kind, uint32_t index, ng_text *line);

#ifdef __cplusplus
}
#endif

#endif
