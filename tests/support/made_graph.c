/* In: random numbers. Out: a Graph of values that the builders typed, whatever they are: constants of every dtype,
 * sizes, casts, operations, indices and reductions of one another. What a builder refuses is left out. */
#include "tests/support/made_graph.h"

#include <math.h>

enum { DIM_M, DIM_N, DIM_C, DIM_G, DIM_CG };

static uint32_t pick_value(MadeGraph *made) {
    uint32_t count = made->graph->values.count, late = count < 8 ? count : 8;
    return random_below(&made->random, 2) ? count - 1 - random_below(&made->random, late)
                                          : random_below(&made->random, count);
}

static Poly pick_size(Job *job, MadeGraph *made) {
    bool overflow = false;
    Poly m = ir_poly_symbol(job, DIM_M), n = ir_poly_symbol(job, DIM_N), part = ir_poly_symbol(job, DIM_CG);
    switch (random_below(&made->random, 10)) {
    case 0: return m;
    case 1: return n;
    case 2: return ir_poly_add(job, n, ir_poly_int(job, 5), &overflow);
    case 3: return ir_poly_sub(job, m, n, &overflow);
    case 4: return ir_poly_mul(job, ir_poly_int(job, -2), m, &overflow);
    case 5: return ir_poly_over(job, n, 2, &overflow);
    case 6: return part;
    case 7: return ir_poly_mul(job, part, m, &overflow);
    case 8: return ir_poly_sub(job, ir_poly_int(job, 0), n, &overflow);
    default: return ir_poly_int(job, random_below(&made->random, 4));
    }
}

static void make_const(Job *job, MadeGraph *made) {
    static const double numbers[] = {0, 1, 2, -1, -3, 0.5, -0.25, -0.0, 448, 1e-5, 1.0 / 3, 1e20, -7e-12, 16777216};
    static const DType often[] = {DTYPE_F32, DTYPE_F32, DTYPE_I64, DTYPE_I64, DTYPE_F64, DTYPE_BOOL};
    const uint32_t count = sizeof numbers / sizeof *numbers;
    uint32_t choice = random_below(&made->random, 12), which = random_below(&made->random, count + 4);
    DType dtype = choice < 6 ? often[choice] : (DType)random_below(&made->random, DTYPE_COUNT);
    double number = which < count        ? numbers[which]
                    : which == count     ? HUGE_VAL
                    : which == count + 1 ? -HUGE_VAL
                                         : copysign((double)NAN, which == count + 2 ? 1 : -1);
    int64_t integer = isfinite(number) && fabs(number) < 1e15 ? (int64_t)number : INT64_MIN;
    if (dtype == DTYPE_BOOL) integer = which & 1;
    ir_graph_const(job, made->graph, dtype, number, integer, (Place){0});
}

static void make_size(Job *job, MadeGraph *made) {
    Poly size = pick_size(job, made);
    uint32_t id = ir_graph_add(job, made->graph, OP_SIZE, DTYPE_I64, (Place){0});
    Value *value = &made->graph->values.at[id];
    value->size = size;
    bool counts = size.count == 1 && size.terms[0].coefficient > 0;
    if (!counts || random_below(&made->random, 2)) return;
    value->op = OP_IOTA;
    value->shape = (Shape){.rank = 1, .extent = {size}};
}

static void make_index(Job *job, MadeGraph *made, uint32_t from) {
    Item items[2 * IR_MAX_RANK + 1];
    uint32_t count = 0;
    const Shape shape = made->graph->values.at[from].shape;
    for (uint32_t i = 0; i < shape.rank; i++) {
        bool overflow = false;
        Item item = {.kind = ITEM_RANGE, .stop = shape.extent[i]};
        Poly last = ir_poly_sub(job, shape.extent[i], ir_poly_int(job, 1), &overflow);
        if (random_below(&made->random, 4) == 0) items[count++] = (Item){.kind = ITEM_NEW_AXIS};
        switch (random_below(&made->random, 10)) {
        case 0: item.start = ir_poly_int(job, 1); break;
        case 1: item = (Item){.kind = ITEM_AT}; break;
        case 2: item = (Item){.kind = ITEM_AT, .start = last}; break;
        case 3: item.stop = last; break;
        case 4: item = (Item){.kind = ITEM_GATHER, .index = pick_value(made)}; break;
        default: break;
        }
        items[count++] = item;
    }
    if (random_below(&made->random, 3) == 0) items[count++] = (Item){.kind = ITEM_NEW_AXIS};
    ir_graph_index(job, made->graph, from, items, count, (Place){0});
}

static void make_value(Job *job, void *state) {
    MadeGraph *made = state;
    Graph *graph = made->graph;
    const Place place = {0};
    uint32_t args[3] = {pick_value(made), pick_value(made), pick_value(made)};
    Shape shape = graph->values.at[args[0]].shape;
    uint32_t some = shape.rank ? 1 + random_below(&made->random, (1u << shape.rank) - 1) : 0;
    switch (random_below(&made->random, 14)) {
    case 0:
    case 1: make_const(job, made); break;
    case 2: make_size(job, made); break;
    case 3: ir_graph_cast(job, graph, args[0], (DType)random_below(&made->random, DTYPE_COUNT), place); break;
    case 4:
        ir_graph_reduce(job, graph, (Reduction)random_below(&made->random, REDUCTION_ONLINE), args[0], some,
                        random_below(&made->random, 2), place);
        break;
    case 5: make_index(job, made, args[0]); break;
    case 6:
        if (shape.rank < IR_MAX_RANK) shape.extent[shape.rank++] = ir_poly_int(job, 1);
        ir_graph_reshape(job, graph, args[0], &shape, place);
        break;
    default: ir_graph_op(job, graph, (Op)random_below(&made->random, OP_PRIMITIVES), args, place);
    }
    made->legal++;
}

static void set_contiguous(Job *job, Tensor *tensor) {
    bool overflow = false;
    Poly stride = ir_poly_int(job, 1);
    tensor->contiguous = true;
    tensor->inplace = IR_NONE;
    for (uint32_t d = tensor->shape.rank; d-- > 0;) {
        tensor->stride[d] = stride;
        stride = ir_poly_mul(job, stride, tensor->shape.extent[d], &overflow);
    }
}

static void add_input(Job *job, Graph *graph, const char *name, DType dtype, uint32_t rank, const Poly *extent) {
    Tensor *tensor = IR_PUSH(job, &graph->inputs);
    *tensor = (Tensor){.name = name, .dtype = dtype, .value = IR_NONE, .shape = {.rank = (uint8_t)rank}};
    for (uint32_t d = 0; d < rank; d++) tensor->shape.extent[d] = extent[d];
    set_contiguous(job, tensor);
    uint32_t id = ir_graph_add(job, graph, OP_INPUT, dtype, (Place){0});
    graph->values.at[id].shape = tensor->shape;
    graph->values.at[id].tensor = graph->inputs.count - 1;
}

static void begin_graph(Job *job, MadeGraph *made) {
    static const char *const names[] = {"M", "N", "C", "G", "C/G"};
    static const int64_t numbers[] = {-1, 12, 8, 4, 2};
    Graph *graph = made->graph = ir_graph_create(job, "made");
    for (uint32_t i = 0; i < 5; i++) {
        Dim dim = {.name = names[i], .value = numbers[i], .hint = -1, .max = -1, .multiple = 1, .derived = i == DIM_CG};
        *IR_PUSH(job, &graph->dims) = dim;
    }
    Poly m = ir_poly_symbol(job, DIM_M), n = ir_poly_symbol(job, DIM_N), part = ir_poly_symbol(job, DIM_CG);
    add_input(job, graph, "x", DTYPE_F32, 2, (Poly[]){m, n});
    add_input(job, graph, "w", DTYPE_BF16, 1, &n);
    add_input(job, graph, "ids", DTYPE_I32, 2, (Poly[]){m, ir_poly_int(job, 1)});
    add_input(job, graph, "keep", DTYPE_BOOL, 2, (Poly[]){m, n});
    add_input(job, graph, "wide", DTYPE_F64, 0, NULL);
    add_input(job, graph, "parts", DTYPE_I64, 3, (Poly[]){part, m, n});
    Tensor scalar = {.name = "eps", .dtype = DTYPE_F32, .value = IR_NONE, .has_default = true, .default_float = 0.5};
    set_contiguous(job, &scalar);
    *IR_PUSH(job, &graph->scalars) = scalar;
    ir_graph_add(job, graph, OP_SCALAR, DTYPE_F32, (Place){0});
}

void made_graph(Job *job, void *state) {
    MadeGraph *made = state;
    begin_graph(job, made);
    Graph *graph = made->graph;
    for (uint32_t i = 0; i < 80; i++) {
        ir_job_run(job, make_value, made); /* what is illegal is left */
        Value *last = &graph->values.at[graph->values.count - 1];
        bool given = last->op == OP_INPUT || last->op == OP_SCALAR;
        if (!given && !last->name && !random_below(&made->random, 5))
            last->name = ir_format(job, "%s%u", random_below(&made->random, 2) ? "v" : "t", i);
    }
    ir_drop_diagnostics(job, 0);
    for (uint32_t i = 0; i < 6; i++) {
        uint32_t id = pick_value(made);
        Tensor output = {.name = ir_format(job, "o%u", i), .value = id, .shape = graph->values.at[id].shape};
        output.dtype = (DType)random_below(&made->random, DTYPE_COUNT);
        set_contiguous(job, &output);
        *IR_PUSH(job, &graph->outputs) = output;
    }
}
