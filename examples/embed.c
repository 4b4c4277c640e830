/* An application that compiles a graph at run time and runs it on whatever device there is.
 *
 *     cc -I. examples/embed.c build/libnormgen.a -lyaml -lcjson -lxxhash -lm -ldl -pthread -o build/embed
 */
#include "runtime/normgen.h"

#include <stdio.h>
#include <string.h>

static const char graph[] = "graph: scaled_norm\n"
                            "dims: {M: any, N: 8}\n"
                            "inputs: {x: \"f32[M, N]\", w: \"f32[N]\"}\n"
                            "scalars: {eps: 1e-6}\n"
                            "nodes: {y: \"rms_norm(x, w, eps)\"}\n"
                            "outputs: {y: f32}\n";

int main(void) {
    ng_context *context = NULL;
    ng_program *program = NULL;
    ng_report report = {.size = sizeof report};
    ng_text why = {0};
    float x[2][8], w[8], y[2][8];
    for (int i = 0; i < 16; i++) x[i / 8][i % 8] = (float)(i + 1);
    for (int i = 0; i < 8; i++) w[i] = 0.5f;
    int64_t rows = 2;
    void *tensors[] = {x, w, y}; /* inputs, then outputs, in file order */

    ng_status status = ng_context_create(NULL, &context, &why);
    if (status == NG_OK) status = ng_compile(context, graph, strlen(graph), NULL, &program, &why);
    if (status == NG_OK) {
        /* host memory in and out; ng_launch takes device pointers and only enqueues */
        ng_args args = {.size = sizeof args, .tensors = tensors, .dims = &rows};
        status = ng_run(program, &args, 1, &report);
    }
    if (status == NG_OK)
        printf("y[1][7] = %g, as the reference says\n", (double)y[1][7]);
    else
        fprintf(stderr, "%s\n", report.why.count ? report.why.bytes : why.count ? why.bytes : ng_status_name(status));
    ng_text_free(&report.why);
    ng_text_free(&why);
    ng_program_free(program);
    ng_context_free(context);
    return (int)status;
}
