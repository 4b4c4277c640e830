/* In: a name that this language does not have. Out: what to write instead, or NULL. The tables hold what people type
 * who come from PyTorch, NumPy or JAX; a misspelt name of this language is names.c's. */
#include "gen/advice.h"

#include <string.h>

typedef struct Advice {
    const char *names; /* divided by one space */
    const char *advice;
} Advice;

static const Advice calls[] = {
    {"max", "amax(x, dim) reduces, maximum(a, b) is pointwise"},
    {"min", "amin(x, dim) reduces, minimum(a, b) is pointwise"},
    {"fmax nanmax", "amax(x, dim) and maximum(a, b) pass a NaN on; where(isnan(x), -inf, x) hides it"},
    {"fmin nanmin", "amin(x, dim) and minimum(a, b) pass a NaN on; where(isnan(x), inf, x) hides it"},
    {"argmax argmin sort argsort topk median quantile unique nonzero searchsorted",
     "the language has no order of elements; amax(x, dim) and amin(x, dim) give the values"},
    {"cumsum cumprod cummax logcumsumexp scan", "running sums are not in the language"},
    {"clip clamp_min clamp_max hardtanh", "write clamp(x, min, max)"},
    {"relu6", "write clamp(x, 0, 6)"},
    {"norm vector_norm", "write sqrt(sum(x * x, dim)); l2_norm, rms_norm and layer_norm normalise"},
    {"normalize", "write l2_norm(x, eps, dim), which is x * rsqrt(sum(x * x, dim, True) + eps)"},
    {"batch_norm instance_norm group_norm",
     "write it with mean and var over its dims, as in (x - mean(x, dim=[0], keepdim=True)) * rsqrt(var(x, dim=[0], "
     "correction=0, keepdim=True) + eps); groups come from reshape"},
    {"average nanmean", "write mean(x, dim)"},
    {"variance", "write var(x, dim, correction)"},
    {"to type astype type_as view_dtype", "write cast(x, f16)"},
    {"float float32", "write cast(x, f32)"},
    {"half float16", "write cast(x, f16)"},
    {"bfloat16", "write cast(x, bf16)"},
    {"double float64", "write cast(x, f64)"},
    {"int int32", "write cast(x, i32)"},
    {"long int64", "write cast(x, i64)"},
    {"view flatten ravel unflatten rearrange", "write reshape(x, [B, N])"},
    {"unsqueeze expand_dims", "write x[:, None]"},
    {"squeeze", "write x[:, 0], or reduce without keepdim"},
    {"expand expand_as broadcast_to repeat tile repeat_interleave",
     "operands broadcast by themselves: x[:, None] gives a dim of 1 that meets any other"},
    {"split chunk tensor_split narrow glu", "write slices, as in x[:, :N/2] and x[:, N/2:]"},
    {"cat concat concatenate stack hstack vstack", "tensors are not joined: make each part an output"},
    {"transpose permute swapaxes moveaxis t",
     "dims keep their order: declare the input with strides:, or reduce over the dim as it is"},
    {"roll flip pad tril triu",
     "write it with arange, where and slices, as in where(arange(K) <= arange(Q)[:, None], x, 0)"},
    {"matmul mm bmm addmm dot vdot inner outer einsum tensordot linear conv1d conv2d",
     "matrix products are not in the language; a dot product of rows is sum(a * b, dim=-1)"},
    {"gather take index_select take_along_dim embedding", "write x[ids] by an integer tensor"},
    {"scatter scatter_add index_add index_put", "the language reads by an index, and does not write by one"},
    {"zeros ones full zeros_like ones_like full_like tensor constant array",
     "write the number: it broadcasts, as in x + 1"},
    {"rand randn dropout bernoulli normal uniform", "there are no random numbers: pass a mask as an input"},
    {"range iota linspace", "write arange(N), and compute with it"},
    {"masked_fill", "write where(mask, value, x)"},
    {"nan_to_num", "write where(isnan(x), 0, x)"},
    {"isfinite", "write ~(isnan(x) | isinf(x))"},
    {"len shape dim ndim", "a dim's name is its size: write N"},
    {"logical_not", "write ~"},
    {"logical_and bitwise_and", "write &"},
    {"logical_or bitwise_or", "write |"},
    {"logical_xor bitwise_xor", "write !="},
    {"equal", "write =="},
    {"greater less greater_equal less_equal not_equal", "write > < >= <= !="},
    {"multiply", "write *"},
    {"subtract", "write -"},
    {"divide true_divide", "write /"},
    {"floor_divide", "write //"},
    {"remainder fmod", "write %"},
    {"power", "write **"},
    {"negative", "write -x"},
    {"absolute fabs", "write abs(x)"},
    {"swish", "write silu(x)"},
    {"mish", "write x * tanh(softplus(x))"},
    {"elu", "write where(x > 0, x, alpha * expm1(x))"},
    {"leaky_relu prelu", "write where(x > 0, x, slope * x)"},
    {"hardsigmoid", "write clamp(x / 6 + 0.5, 0, 1)"},
    {"hardswish", "write x * clamp(x / 6 + 0.5, 0, 1)"},
    {"logsigmoid", "write -softplus(-x)"},
    {"quick_gelu", "write x * sigmoid(1.702 * x)"},
    {"gelu_tanh gelu_new fast_gelu", "write gelu(x, \"tanh\")"},
    {"erfc", "write 1 - erf(x)"},
    {"sinh", "write (exp(x) - exp(-x)) / 2"},
    {"cosh", "write (exp(x) + exp(-x)) / 2"},
    {"tan", "write sin(x) / cos(x)"},
    {"log10", "write log2(x) * 0.30102999566398120"},
    {"addcmul lerp fma", "write it with * and +"},
    {"contiguous clone copy item numpy", "write x itself: values never change"},
    {"detach stop_gradient",
     "gradients pass through every float; what they must not pass is an input of its own, which "
     "--wrt leaves out"},
    {"cross_entropy nll_loss mse_loss l1_loss", "write its formula, as in mean((x - target) ** 2)"},
};

static const Advice keywords[] = {
    {"axis axes dims", "dim"},
    {"keepdims keep_dims", "keepdim"},
    {"epsilon", "eps"},
    {"ddof unbiased", "correction"},
    {"gamma scale w gain", "weight"},
    {"beta b shift", "bias"},
    {"a_min min_val", "min"},
    {"a_max max_val", "max"},
    {"approx", "approximate"},
    {"input", "x"},
    {"a condition mask cond", "condition"},
    {"y", "other"},
    {"newshape", "shape"},
    {"type", "dtype"},
};

static const Advice names[] = {
    {"pi PI", "write 3.141592653589793"},
    {"e", "write 2.718281828459045"},
    {"NaN Nan NAN", "write nan"},
    {"Inf INF infinity Infinity", "write inf"},
    {"true TRUE", "write True"},
    {"false FALSE", "write False"},
    {"null none nil NULL", "write None"},
    {"newaxis", "write None, as in x[:, None]"},
    {"self", "an expression names inputs, scalars, dims and nodes"},
};

static const Advice attributes[] = {
    {"T mT H", "dims keep their order: declare the input with strides:, or reduce over the dim as it is"},
    {"shape size ndim", "a dim's name is its size: write N"},
    {"dtype device", "an input's dtype stands under inputs:; cast(x, f16) makes another"},
    {"grad", "the backward graph is a graph of its own"},
    {"data", "write x itself: values never change"},
};

static const char modules[] = "torch np numpy F nn functional jnp jax lax special math tf keras linalg";

/* Is the word one of the list? */
static bool holds(const char *list, const char *word) {
    size_t count = strlen(word);
    for (const char *at = list; *at; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == count && strncmp(at, word, count) == 0) return true;
    return false;
}

static const char *advise(const Advice *rows, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (holds(rows[i].names, name)) return rows[i].advice;
    return NULL;
}

const char *gen_advise_call(const char *name) { return advise(calls, sizeof calls / sizeof *calls, name); }
const char *gen_advise_keyword(const char *name) { return advise(keywords, sizeof keywords / sizeof *keywords, name); }
const char *gen_advise_name(const char *name) { return advise(names, sizeof names / sizeof *names, name); }
const char *gen_advise_attribute(const char *name) {
    return advise(attributes, sizeof attributes / sizeof *attributes, name);
}
bool gen_is_module(const char *name) { return holds(modules, name); }

const char *gen_advice_row(uint32_t index, size_t *count, const char **advice) {
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (const char *at = calls[i].names; *at; at += *count, at += *at == ' ') {
            *count = strcspn(at, " ");
            *advice = calls[i].advice;
            if (index-- == 0) return at;
        }
    return NULL;
}
