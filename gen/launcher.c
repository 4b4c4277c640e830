/* In: the plan. Out: the launcher at the end of a .cu file, seen by nvcc alone, and its header. It evaluates the plan's
 * sizes, guards and grids as the library does. Arguments: inputs, outputs, any dims, scalars, each in file order. */
#include "gen/breakpoints.h"
#include "gen/emit.h"
#include "gen/workspace.h"

#include <string.h>

typedef struct Argument {
    const char *type, *name;
} Argument;
typedef IR_LIST(Argument) ArgumentList;

static const char *c_name(Job *job, const char *prefix, const char *name) {
    char *text = ir_format(job, "%s%s", prefix, name);
    for (char *c = text; *c; c++) {
        bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
        if (!letter) *c = '_';
    }
    return text;
}

const char *gen_emit_space(Job *job, const Unit *unit) {
    return ir_format(job, "%s_kernels", c_name(job, "", unit->prog->name));
}

static const char *scalar_type(DType dtype) {
    DType compute = ir_compute_dtype(dtype);
    return compute == DTYPE_F64 ? "double" : compute == DTYPE_F32 ? "float" : "int64_t";
}

static void add(Job *job, ArgumentList *list, const char *type, const char *name) {
    *IR_PUSH(job, list) = (Argument){type, name};
}

static void add_bufs(Job *job, const Unit *unit, ArgumentList *list, BufKind kind, const char *prefix) {
    for (uint32_t b = 0; b < unit->prog->bufs.count; b++) {
        const Buf *buf = &unit->prog->bufs.at[b];
        if (buf->kind != kind) continue;
        const char *type = kind == BUF_SCALAR ? scalar_type(buf->dtype) : kind == BUF_IN ? "const void *" : "void *";
        add(job, list, type, c_name(job, prefix, buf->name));
    }
}

static void add_dims(Job *job, const Unit *unit, ArgumentList *list) {
    for (uint32_t d = 0; d < unit->prog->dims.count; d++)
        if (unit->prog->dims.at[d].value < 0) add(job, list, "int64_t", c_name(job, "d_", unit->prog->dims.at[d].name));
}

/* A graph's tensors; of a bare Prog its buffers. */
static ArgumentList arguments(Job *job, const Unit *unit) {
    ArgumentList list = {0};
    const Graph *graph = unit->graph;
    if (!graph) {
        add_bufs(job, unit, &list, BUF_IN, "p_");
        add_bufs(job, unit, &list, BUF_OUT, "p_");
    }
    for (uint32_t i = 0; graph && i < graph->inputs.count; i++)
        add(job, &list, "const void *", c_name(job, "in_", graph->inputs.at[i].name));
    for (uint32_t i = 0; graph && i < graph->outputs.count; i++)
        add(job, &list, "void *", c_name(job, "out_", graph->outputs.at[i].name));
    add_dims(job, unit, &list);
    if (!graph) add_bufs(job, unit, &list, BUF_SCALAR, "c_");
    for (uint32_t i = 0; graph && i < graph->scalars.count; i++)
        add(job, &list, scalar_type(graph->scalars.at[i].dtype), c_name(job, "c_", graph->scalars.at[i].name));
    return list;
}

/* One argument a line where a line would pass 110 characters. */
static void put_wrapped(Text *out, size_t *start, const char *text, const char *indent) {
    if (out->count - *start + strlen(text) > 110) {
        *start = out->count + 1;
        ir_text_format(out, "\n%s", indent);
    } else if (out->count > *start && out->bytes[out->count - 1] == ',') {
        ir_text_put(out, " ");
    }
    ir_text_put(out, text);
}

static void put_arguments(const ArgumentList *list, Text *out) {
    size_t start = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const char *type = list->at[i].type, *gap = type[strlen(type) - 1] == '*' ? "" : " ";
        put_wrapped(out, &start, ir_format(out->job, "%s%s%s,", type, gap, list->at[i].name), "        ");
    }
    put_wrapped(out, &start, "void *workspace, size_t workspace_bytes, void *stream)", "        ");
}

static void put_signatures(Job *job, const Unit *unit, Text *workspace, Text *launch) {
    ArgumentList dims = {0}, all = arguments(job, unit);
    add_dims(job, unit, &dims);
    const char *name = c_name(job, "", unit->prog->name);
    ir_text_format(workspace, "size_t %s_workspace_bytes(", name);
    for (uint32_t i = 0; i < dims.count; i++) ir_text_format(workspace, "%sint64_t %s", i ? ", " : "", dims.at[i].name);
    ir_text_put(workspace, dims.count ? ")" : "void)");
    ir_text_format(launch, "int %s_launch(", name);
    put_arguments(&all, launch);
}

/* A polynomial as C, with the names of these dims. */
static const char *dims_poly_c(Job *job, const Dim *dims, uint32_t count, Poly poly) {
    const char **names = IR_NEW_ARRAY(job, const char *, count + (size_t)1);
    for (uint32_t i = 0; i < count; i++)
        names[i] =
            dims[i].value >= 0 ? ir_format(job, "%lldll", (long long)dims[i].value) : c_name(job, "d_", dims[i].name);
    Text text = ir_text(job);
    ir_poly_print(&text, poly, names, count);
    return ir_text_string(&text);
}

static const char *poly_c(Job *job, const Prog *prog, Poly poly) {
    return dims_poly_c(job, prog->dims.at, prog->dims.count, poly);
}

static const char *size_c(Job *job, const Prog *prog, Size size) {
    return poly_c(job, prog, ir_size_poly(job, prog, size));
}

/* The pointer of a buffer's first element, as a typed pointer. */
static const char *pointer_c(Job *job, const Unit *unit, uint32_t id) {
    const Buf *buf = &unit->prog->bufs.at[id];
    const Graph *graph = unit->graph;
    const char *name = c_name(job, "p_", buf->name), *type = gen_storage_type(buf->dtype);
    if (graph && buf->kind == BUF_IN) name = c_name(job, "in_", graph->inputs.at[buf->tensor].name);
    if (graph && buf->kind == BUF_OUT) name = c_name(job, "out_", graph->outputs.at[buf->tensor].name);
    const char *constant = buf->kind == BUF_IN ? "const " : "";
    if (buf->kind == BUF_TMP || buf->kind == BUF_WORKSPACE)
        return ir_format(job, "(%s *)((char *)workspace + place[%u])", type, unit->plan->room_of[id]);
    if (ir_size_is(buf->offset, 0)) return ir_format(job, "(%s%s *)%s", constant, type, name);
    return ir_format(job, "(%s%s *)%s + (%s)", constant, type, name, size_c(job, unit->prog, buf->offset));
}

static const char *param_c(Job *job, const Unit *unit, const Param *param) {
    if (param->kind == PARAM_SIZE) return ir_format(job, "(ng_i64)(%s)", size_c(job, unit->prog, param->size));
    const Buf *buf = &unit->prog->bufs.at[param->buf];
    if (buf->kind != BUF_SCALAR) return pointer_c(job, unit, param->buf);
    const char *name = unit->graph ? unit->graph->scalars.at[buf->tensor].name : buf->name;
    return ir_format(job, "(%s)%s", gen_compute_type(buf->dtype), c_name(job, "c_", name));
}

/* ---- the workspace (gen/workspace.c evaluates the same) ---- */

static const char *ceil_c(Job *job, const Prog *prog, Poly poly, int64_t each) {
    const char *text = poly_c(job, prog, poly);
    return each == 1 ? text : ir_format(job, "ng_ceil(%s, %lld)", text, (long long)each);
}

/* The part counts as constants P0, P1, ... of a function that has the dims. */
static void put_parts(Job *job, const Unit *unit, bool most, Text *out) {
    for (uint32_t k = 0; k < unit->prog->parts.count; k++) {
        const PartCount *part = &unit->plan->parts[k];
        bool alone = most && !ir_poly_is_int(part->beside, NULL);
        ir_text_format(out, "    const int64_t %s = ng_parts(%s, %s, %lld * ng_sms());\n", unit->prog->parts.at[k],
                       ceil_c(job, unit->prog, part->units, part->units_each),
                       alone ? "1" : ceil_c(job, unit->prog, part->beside, part->beside_each),
                       (long long)part->ctas_per_sm);
    }
}

static const char *room_c(Job *job, const Prog *prog, const RoomSize *size) {
    const char *bytes = poly_c(job, prog, size->bytes);
    if (!size->each_sm) return bytes;
    return ir_format(job, "ng_capped(%s, %s, %lld * ng_sms())", bytes, poly_c(job, prog, size->one),
                     (long long)size->each_sm);
}

static bool has_capped(const Plan *plan) {
    for (uint32_t r = 0; r < plan->rooms.count; r++)
        for (uint32_t i = 0; i < plan->rooms.at[r].sizes.count; i++)
            if (plan->rooms.at[r].sizes.at[i].each_sm) return true;
    return false;
}

static void put_part_helpers(Text *out) {
    ir_text_put(out, "static int64_t ng_ceil(int64_t a, int64_t b) { return a / b + (a % b != 0); }\n"
                     "static int64_t ng_sms(void) {\n"
                     "    int device = 0, sms = 1;\n"
                     "    if (cudaGetDevice(&device) == cudaSuccess)\n"
                     "        (void)cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);\n"
                     "    return sms;\n"
                     "}\n"
                     "// as many parts as there are, but no more than fill ctas with so many beside each\n"
                     "static int64_t ng_parts(int64_t parts, int64_t beside, int64_t ctas) {\n"
                     "    if (beside > 1) ctas /= beside;\n"
                     "    if (ctas < 1) ctas = 1;\n"
                     "    return parts < ctas ? parts : ctas;\n"
                     "}\n\n");
}

/* Fills the places of the rooms and returns the bytes of all. */
static void put_places(Job *job, const Unit *unit, const ArgumentList *dims, Text *out) {
    const Plan *plan = unit->plan;
    const char *space = gen_emit_space(job, unit);
    ir_text_format(out, "namespace %s {\n", space);
    if (unit->prog->parts.count) put_part_helpers(out);
    if (has_capped(plan))
        ir_text_put(out, "// parts of many columns are few: at most what fills the SMs, or one part\n"
                         "static int64_t ng_capped(int64_t bytes, int64_t one, int64_t full) {\n"
                         "    if (full < one) full = one;\n"
                         "    return bytes < full ? bytes : full;\n"
                         "}\n\n");
    ir_text_format(out, "static size_t %s_places(", c_name(job, "", unit->prog->name));
    for (uint32_t i = 0; i < dims->count; i++) ir_text_format(out, "int64_t %s, ", dims->at[i].name);
    ir_text_put(out, "size_t *place) {\n    size_t most, end = 0;\n");
    for (uint32_t i = 0; i < dims->count; i++) ir_text_format(out, "    (void)%s;\n", dims->at[i].name);
    put_parts(job, unit, true, out);
    for (uint32_t k = 0; k < unit->prog->parts.count; k++)
        ir_text_format(out, "    (void)%s;\n", unit->prog->parts.at[k]);
    for (uint32_t r = 0; r < plan->rooms.count; r++) {
        ir_text_format(out, "    place[%u] = end;\n    most = 0;\n", r);
        for (uint32_t i = 0; i < plan->rooms.at[r].sizes.count; i++) {
            const char *bytes = room_c(job, unit->prog, &plan->rooms.at[r].sizes.at[i]);
            ir_text_format(out, "    if ((size_t)(%s) > most) most = (size_t)(%s);\n", bytes, bytes);
        }
        ir_text_format(out, "    end += (most + %d) / %d * %d;\n", GEN_WORKSPACE_ALIGN - 1, GEN_WORKSPACE_ALIGN,
                       GEN_WORKSPACE_ALIGN);
    }
    ir_text_format(out, "    return end;\n}\n}  // namespace %s\n\n", space);
}

static const char *places_call(Job *job, const Unit *unit, const ArgumentList *dims) {
    Text text = ir_text(job);
    ir_text_format(&text, "%s::%s_places(", gen_emit_space(job, unit), c_name(job, "", unit->prog->name));
    for (uint32_t i = 0; i < dims->count; i++) ir_text_format(&text, "%s, ", dims->at[i].name);
    ir_text_put(&text, "place)");
    return ir_text_string(&text);
}

static void put_workspace_bytes(Job *job, const Unit *unit, const ArgumentList *dims, const char *signature,
                                Text *out) {
    ir_text_format(out, "extern \"C\" %s {\n", signature);
    if (unit->plan->rooms.count == 0) {
        for (uint32_t i = 0; i < dims->count; i++) ir_text_format(out, "    (void)%s;\n", dims->at[i].name);
        ir_text_put(out, "    return 0;\n}\n\n");
        return;
    }
    ir_text_format(out, "    size_t place[%u];\n    return %s;\n}\n\n", unit->plan->rooms.count,
                   places_call(job, unit, dims));
}

/* At the head of the launch: places, and what a launch asks of the workspace. */
static void put_workspace_check(Job *job, const Unit *unit, const ArgumentList *dims, Text *out) {
    put_parts(job, unit, false, out);
    if (unit->plan->rooms.count == 0) return;
    ir_text_format(out, "    size_t place[%u];\n    const size_t needed = %s;\n", unit->plan->rooms.count,
                   places_call(job, unit, dims));
    ir_text_put(out, "    if (needed > 0 && (!workspace || workspace_bytes < needed)) return cudaErrorInvalidValue;\n");
    ir_text_format(out, "    if (needed > 0 && (uintptr_t)workspace %% %d != 0) return cudaErrorMisalignedAddress;\n",
                   GEN_WORKSPACE_ALIGN);
}

/* ---- steps ---- */

static void put_guards(Job *job, const Unit *unit, const Step *step, const Variant *variant, Text *out) {
    for (uint32_t g = 0; g < variant->guard_count; g++) {
        const Guard *guard = &variant->guards[g];
        ir_text_put(out, g ? " &&\n                " : "");
        if (guard->kind == GUARD_ALIGNED)
            ir_text_format(out, "(uintptr_t)(%s) %% %lld == 0", param_c(job, unit, &step->params[guard->param]),
                           (long long)guard->number);
        else
            ir_text_format(out, "(%s) %s %lld%s", size_c(job, unit->prog, guard->size),
                           guard->kind == GUARD_MULTIPLE ? "%" : "<=", (long long)guard->number,
                           guard->kind == GUARD_MULTIPLE ? " == 0" : "");
    }
}

/* More shared memory than a launch has without asking; asked of the device at hand at each launch, which costs little.
 */
static void put_shared(const Step *step, Text *out) {
    for (uint32_t v = 0; step->shared_bytes > GEN_SHARED && v < step->variant_count; v++)
        ir_text_format(out,
                       "            if (const cudaError_t error = cudaFuncSetAttribute(\n"
                       "                    %s, cudaFuncAttributeMaxDynamicSharedMemorySize, %u))\n"
                       "                return error;\n",
                       step->variants[v].kernel, step->shared_bytes);
}

static void put_step(Job *job, const Unit *unit, const Step *step, Text *out) {
    ir_text_format(out, "    {  // %s\n", unit->prog->nests.at[step->nest].name);
    const char *units = poly_c(job, unit->prog, step->units);
    if (step->run_each) {
        const char *run = poly_c(job, unit->prog, step->run);
        ir_text_format(out, "        const int64_t run = %s;  // along which accesses of %lld elements stand\n", run,
                       (long long)step->run_each);
        units = ir_format(job, "(%s) * (run / %lld + (run %% %lld != 0))", units, (long long)step->run_each,
                          (long long)step->run_each);
    }
    ir_text_format(out, "        const int64_t units = %s;\n", units);
    long long each = step->units_per_cta;
    const char *parts = step->part == IR_NONE ? "" : ir_format(job, " * %s", unit->prog->parts.at[step->part]);
    if (each == 1)
        ir_text_format(out, "        const int64_t blocks = units%s;\n", parts);
    else
        ir_text_format(out, "        const int64_t blocks = %sunits / %lld + (units %% %lld != 0)%s;\n",
                       *parts ? "(" : "", each, each, *parts ? ir_format(job, ")%s", parts) : "");
    ir_text_put(out, "        if (blocks < 0 || blocks > 2147483647) return cudaErrorInvalidConfiguration;\n");
    ir_text_put(out, "        if (blocks > 0) {\n");
    put_shared(step, out);
    for (uint32_t v = 0; v < step->variant_count; v++) {
        const Variant *variant = &step->variants[v];
        ir_text_put(out, v ? "            else" : "            ");
        if (variant->guard_count > 0) {
            ir_text_put(out, v ? " if (" : "if (");
            put_guards(job, unit, step, variant, out);
            ir_text_put(out, ")\n                ");
        } else if (v) {
            ir_text_put(out, "\n                ");
        }
        ir_text_format(out, "%s<<<(unsigned)blocks, %d, %u, (cudaStream_t)stream>>>(", variant->kernel,
                       step->tile.threads, step->shared_bytes);
        size_t start = out->count - 110;
        for (uint32_t i = 0; i < step->param_count; i++) {
            const char *comma = i + 1 < step->param_count ? "," : ");\n";
            put_wrapped(out, &start, ir_format(job, "%s%s", param_c(job, unit, &step->params[i]), comma),
                        "                    ");
        }
    }
    ir_text_put(out, "            const cudaError_t error = cudaGetLastError();\n");
    ir_text_put(out, "            if (error != cudaSuccess) return error;\n        }\n    }\n");
}

/* ---- what a launch refuses ---- */

static const char *const refuse = "return cudaErrorInvalidValue;";

static void put_dim_checks(Job *job, const Prog *prog, Text *out) {
    for (uint32_t d = 0; d < prog->dims.count; d++) {
        const Dim *dim = &prog->dims.at[d];
        if (dim->value >= 0) continue;
        const char *name = c_name(job, "d_", dim->name);
        const int64_t most = dim->max >= 0 ? dim->max : IR_MAX_EXTENT - 1;
        ir_text_format(out, "    if (%s < 0 || %s > %lldll", name, name, (long long)most);
        if (dim->multiple > 1) ir_text_format(out, " || %s %% %lldll != 0", name, (long long)dim->multiple);
        ir_text_format(out, ") %s\n", refuse);
    }
}

/* Refuses dims that make the polynomial negative, where any can. */
static void put_refusal(Job *job, const Graph *graph, Poly poly, const char *what, Text *out) {
    bool overflow = false, may_be_negative = false;
    poly = ir_poly_fold(job, poly, ir_graph_fixed(job, graph), graph->dims.count, &overflow);
    for (uint32_t t = 0; t < poly.count; t++) may_be_negative |= poly.terms[t].coefficient < 0;
    if (!may_be_negative || overflow) return; /* a size that passes 2^62 was refused before */
    ir_text_format(out, "    if (%s < 0) %s  // %s\n", dims_poly_c(job, graph->dims.at, graph->dims.count, poly),
                   refuse, what);
}

static void put_extent_checks(Job *job, const Graph *graph, const Tensor *tensor, Text *out) {
    for (uint32_t d = 0; d < tensor->shape.rank; d++)
        put_refusal(job, graph, tensor->shape.extent[d], tensor->name, out);
}

/* 0 <= start <= stop <= extent */
static void put_slice_check(Job *job, const Graph *graph, const Value *value, Text *out) {
    const Shape *from = &graph->values.at[value->arg[0]].shape;
    uint32_t d = 0;
    bool overflow = false;
    for (uint32_t i = 0; i < value->item_count; i++) {
        const Item *item = &value->items[i];
        if (item->kind == ITEM_NEW_AXIS) continue;
        const Poly extent = from->extent[d++];
        if (item->kind != ITEM_RANGE && item->kind != ITEM_AT) continue;
        const Poly stop =
            item->kind == ITEM_RANGE ? item->stop : ir_poly_add(job, item->start, ir_poly_int(job, 1), &overflow);
        put_refusal(job, graph, item->start, "a slice starts below 0", out);
        put_refusal(job, graph, ir_poly_sub(job, stop, item->start, &overflow), "a slice ends before it starts", out);
        put_refusal(job, graph, ir_poly_sub(job, extent, stop, &overflow), "a slice ends beyond its dim", out);
    }
}

static void put_extreme_check(Job *job, const Graph *graph, const Value *value, Text *out) {
    const Shape *from = &graph->values.at[value->arg[0]].shape;
    Text empty = ir_text(job), kept = ir_text(job);
    for (uint32_t d = 0; d < from->rank; d++) {
        const bool consumed = value->dims >> d & 1;
        if (ir_size_is_positive(graph, from->extent[d])) continue;
        Text *text = consumed ? &empty : &kept;
        if (consumed && text->count) ir_text_put(text, " || ");
        ir_text_format(text, consumed ? "%s == 0" : " && %s != 0",
                       dims_poly_c(job, graph->dims.at, graph->dims.count, from->extent[d]));
    }
    ir_text_format(out, "    if ((%s)%s) %s  // %s of nothing\n", ir_text_string(&empty), ir_text_string(&kept), refuse,
                   ir_reduction(value->reduction)->language);
}

/* Each line whose condition stands on no line before it. */
static void put_once(const char *lines, Text *out) {
    for (const char *line = lines; *line; line += strcspn(line, "\n") + 1) {
        const size_t whole = strcspn(line, "\n") + 1;
        const char *remark = strstr(line, "  // ");
        const size_t count = remark && remark < line + whole ? (size_t)(remark - line) : whole - 1;
        bool again = false;
        for (const char *other = lines; other < line && !again; other += strcspn(other, "\n") + 1)
            again = strncmp(other, line, count) == 0;
        if (!again) ir_text_bytes(out, line, whole);
    }
}

static void put_checks(Job *job, const Unit *unit, Text *checked) {
    const Graph *graph = unit->graph;
    Text lines = ir_text(job), *out = &lines;
    put_dim_checks(job, unit->prog, out);
    for (uint32_t i = 0; graph && i < graph->inputs.count; i++)
        put_extent_checks(job, graph, &graph->inputs.at[i], out);
    for (uint32_t o = 0; graph && o < graph->outputs.count; o++)
        put_extent_checks(job, graph, &graph->outputs.at[o], out);
    for (uint32_t v = 0; graph && v < graph->values.count; v++) {
        const Value *value = &graph->values.at[v];
        if (!ir_value_needs_check(graph, value)) continue;
        if (value->op == OP_INDEX)
            put_slice_check(job, graph, value, out);
        else
            put_extreme_check(job, graph, value, out);
    }
    put_once(ir_text_string(&lines), checked);
}

/* With -DNG_ONLY=n the launcher is what comes after the last kernel; those are in other translation units. */
static void put_condition(Job *job, const Unit *unit, Text *out) {
    const char *space = gen_emit_space(job, unit);
    ir_text_format(out, "#if defined(__NVCC__) && !defined(__CUDACC_RTC__) && (!defined(NG_ONLY) || NG_ONLY == %u)\n",
                   gen_kernel_count(unit->plan));
    ir_text_put(out, "// ---- the launcher ----\n");
    ir_text_format(out, "#ifdef NG_ONLY\nnamespace %s {\n", space);
    gen_emit_declarations(job, unit, out);
    ir_text_format(out, "}  // namespace %s\n#endif\n", space);
    ir_text_put(out, "#include <cuda_runtime.h>\n#include <stddef.h>\n#include <stdint.h>\n\n");
}

void gen_emit_launcher(Job *job, const Unit *unit, Text *out) {
    Text workspace = ir_text(job), launch = ir_text(job);
    put_signatures(job, unit, &workspace, &launch);
    ArgumentList dims = {0}, all = arguments(job, unit);
    add_dims(job, unit, &dims);
    put_condition(job, unit, out);
    if (unit->plan->rooms.count > 0) put_places(job, unit, &dims, out);
    put_workspace_bytes(job, unit, &dims, ir_text_string(&workspace), out);
    ir_text_format(out, "extern \"C\" %s {\n    using namespace %s;\n", ir_text_string(&launch),
                   gen_emit_space(job, unit));
    for (uint32_t i = 0; i < all.count; i++) ir_text_format(out, "    (void)%s;\n", all.at[i].name);
    ir_text_put(out, "    (void)workspace;\n    (void)workspace_bytes;\n");
    put_checks(job, unit, out);
    put_workspace_check(job, unit, &dims, out);
    for (uint32_t s = 0; s < unit->plan->steps.count; s++) put_step(job, unit, &unit->plan->steps.at[s], out);
    ir_text_put(out, "    return cudaSuccess;\n}\n#endif\n");
}

void gen_emit_header(Job *job, const Unit *unit, Text *out) {
    Text workspace = ir_text(job), launch = ir_text(job);
    put_signatures(job, unit, &workspace, &launch);
    const char *name = c_name(job, "", unit->prog->name);
    ir_text_format(out, "/* %s, generated by normgen: what the launcher in its .cu file offers. */\n",
                   unit->prog->name);
    ir_text_format(out, "#ifndef %s_LAUNCH_H\n#define %s_LAUNCH_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n",
                   name, name);
    ir_text_put(out, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    ir_text_put(out, "/* Bytes of workspace that a launch with these dims needs; 0: it may be NULL. */\n");
    ir_text_format(out, "%s;\n", ir_text_string(&workspace));
    ir_text_put(out, "/* Device pointers; stream: a cudaStream_t. Enqueues and returns a cudaError_t; dims that the "
                     "graph does not\n   allow are cudaErrorInvalidValue. */\n");
    ir_text_format(out, "%s;\n\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n", ir_text_string(&launch));
}
