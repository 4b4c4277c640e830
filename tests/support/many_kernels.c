/* Long graphs as text. Contract: the header. */
#include "tests/support/many_kernels.h"

#include "ir/text.h"

const char *many_kernels(Job *job, uint32_t count) {
    Text text = ir_text(job);
    ir_text_put(&text, "graph: many_kernels\ndims: {B: any, M: any, N: 32}\n"
                       "inputs: {x: \"f32[B, M, N]\", w: \"f32[N]\"}\nnodes:\n  v0: x + w\n");
    for (uint32_t i = 0; i < count; i++) {
        ir_text_format(&text, "  m%u: mean(v%u * v%u, dim=%s, keepdim=True)\n", i, i, i, i % 2 ? "-1" : "[-1, -2]");
        ir_text_format(&text, "  v%u: tanh(v%u) / sqrt(m%u + 1.0)\n", i + 1, i, i);
    }
    ir_text_format(&text, "outputs: {v%u: f32}\n", count);
    return ir_text_string(&text);
}

const char *many_nodes(Job *job, uint32_t count, uint32_t every) {
    static const char *const works[] = {"v%u + w", "v%u * 0.5", "tanh(v%u)"};
    Text text = ir_text(job);
    ir_text_put(&text,
                "graph: many_nodes\ndims: {M: any, N: 96}\ninputs: {v0: \"f32[M, N]\", w: \"f32[N]\"}\nnodes:\n");
    for (uint32_t i = 0; i < count; i++) {
        ir_text_format(&text, "  v%u: ", i + 1);
        if (every && i % every == 0)
            ir_text_format(&text, "v%u - mean(v%u, dim=-1, keepdim=True)", i, i);
        else
            ir_text_put(&text, ir_format(job, works[i % 3], i));
        ir_text_put(&text, "\n");
    }
    ir_text_format(&text, "outputs: {v%u: f32}\n", count);
    return ir_text_string(&text);
}
