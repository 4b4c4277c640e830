"""The bytes that PyTorch's autograd keeps of a forward pass run op by op, written to autograd.json.

What `normgen grad -v` says of it is checked by what PyTorch does. Run with PyTorch 2.11:
python3 tests/oracle/autograd.py > tests/oracle/autograd.json
Each case: a whole forward graph, its inputs that gradients are wanted of, and the bytes of all storages that operations
save, each once: several views of a tensor are one storage, all of it. Inputs and results count as intermediate values
do. Left out are numbers of the program (the 2 of x * 2), which PyTorch wraps in a tensor of no dims in the widest
dtype.
"""
import json
import re

import torch
import torch.nn.functional as F

torch.manual_seed(20250311)
dtypes = {"f64": torch.float64, "f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "bool": torch.bool,
          "i64": torch.int64}
extents = {"M": 24, "N": 64, "B": 3, "T": 20, "K": 5}
cases = []


def tensor(declared, wanted):
    dtype, dims = re.fullmatch(r"(\w+)\[(.*)\]", declared).groups()
    shape = [eval(dim.replace("/", "//"), {}, dict(extents)) for dim in dims.split(",") if dim.strip()]
    if dtype == "bool":
        return torch.rand(shape) > 0.5
    if dtype == "i64":
        return torch.randint(0, 5, shape)
    return (torch.rand(shape) + 0.5).to(dtypes[dtype]).requires_grad_(wanted)


def case(name, nodes, function, outputs="y", fixed=(), **inputs):
    """nodes: entries of the section, ';' between. function: the same in PyTorch, an output or a tuple of them. fixed:
    inputs of which no gradient is wanted."""
    tensors = {k: tensor(v, k not in fixed) for k, v in inputs.items()}
    widest = torch.float64 if all("f64" not in v for v in inputs.values()) else None
    storages = {}

    def save(t):
        if t.dim() or t.dtype not in (widest, torch.int64):
            storages[t.untyped_storage().data_ptr()] = t.untyped_storage()  # held: no other gets its address
        return t

    with torch.autograd.graph.saved_tensors_hooks(save, lambda t: t):
        found = function(**tensors)
    lines = [entry.strip() for entry in nodes.split(";")]
    shown = " ".join(list(inputs.values()) + lines)
    text = [f"graph: g{len(cases)}", "dims: {" + ", ".join(f"{k}: {v}" for k, v in extents.items() if re.search(rf"\b{k}\b", shown)) + "}"]
    text += ["inputs:"] + [f"  {k}: {v}" for k, v in inputs.items()] + ["nodes:"] + ["  " + line for line in lines]
    text += ["outputs: {" + ", ".join(f"{o}: {next(iter(inputs.values())).split('[')[0]}" for o in outputs.split()) + "}"]
    cases.append({"name": name, "graph": "\n".join(text) + "\n", "wrt": [k for k, v in tensors.items() if v.requires_grad],
                  "bytes": sum(s.nbytes() for s in storages.values())})
    del found


def halves(h):
    return h[:, :32].square() * h[:, 32:]


row, rows = "f32[M, N]", "f32[M, 1]"

# ---- operations ----
case("a product", "y: x * z", lambda x, z: x * z, x=row, z=row)
case("a product with what needs no gradient", "y: x * z", lambda x, z: x * z, fixed=("z",), x=row, z=row)
case("a product with itself", "y: x * x", lambda x: x * x, x=row)
case("a sum, a difference, a negative and a number", "y: -(x + z) * 2 - x", lambda x, z: -(x + z) * 2 - x, x=row, z=row)
case("a quotient", "y: x / z", lambda x, z: x / z, x=row, z=rows)
case("a quotient of what needs no gradient", "y: x / z", lambda x, z: x / z, fixed=("x",), x=row, z=rows)
case("a quotient by a number", "y: x / 3", lambda x: x / 3, x=row)
case("a number over it", "y: 1 / x", lambda x: 1 / x, x=row)
case("another number over it", "y: 3 / x", lambda x: 3 / x, x=row)
case("reciprocal", "y: reciprocal(x)", lambda x: x.reciprocal(), x=row)
case("a number over it, which is kept", "h: 1 / x; y: h * z", lambda x, z: 1 / x * z, x=row, z=row)
case("reciprocal, which is kept", "h: reciprocal(x); y: h * z", lambda x, z: x.reciprocal() * z, x=row, z=row)
case("reciprocal of the root", "y: 1 / sqrt(x)", lambda x: 1 / x.sqrt(), x=row)
case("a power", "y: x ** 3", lambda x: x ** 3, x=row)
case("a power of two tensors", "y: x ** z", lambda x, z: x ** z, x=row, z=rows)
case("a power of a number", "y: 2 ** x", lambda x: 2 ** x, x=row)
case("what is left of a quotient", "y: x % z", lambda x, z: torch.remainder(x, z), x=row, z=rows)
for name in "abs exp exp2 expm1 log log2 log1p sqrt rsqrt tanh sigmoid erf sin cos square".split():
    case(name, f"y: {name}(x * 2)", lambda x: getattr(torch, name)(x * 2), x=row)
for name in ("floor", "sign", "round"):
    case(name, f"y: {name}(x * 2) * x", lambda x: getattr(torch, name)(x * 2) * x, x=row)
case("the larger of two", "y: maximum(x, z)", lambda x, z: torch.maximum(x, z), x=row, z=rows)
case("where", "y: where(c, x, z)", lambda c, x, z: torch.where(c, x, z), x=row, z=row, c="bool[M, N]")
case("where of a comparison", "y: where(x > 1, x, 0)", lambda x: torch.where(x > 1, x, 0.0), x=row)
case("casts", "y: cast(x, f32) * 2; z: cast(x, f32) * w", lambda x, w: (x.float() * 2, x.float() * w), outputs="y z",
     x="bf16[M, N]", w="f32[N]")
case("a cast to the same", "y: cast(x * 2, bf16) * z", lambda x, z: (x * 2).bfloat16() * z, x="bf16[M, N]", z="bf16[M, N]")
case("mixed dtypes", "y: x * w * x", lambda x, w: x * w * x, x="bf16[M, N]", w="f32[N]")

# ---- reductions ----
case("sum", "y: sum(x * x, -1)", lambda x: (x * x).sum(-1), x=row)
case("mean", "y: mean(x, -1)", lambda x: x.mean(-1), x=row)
case("mean of a product with a number", "y: mean(x * 2, -1)", lambda x: (x * 2).mean(-1), x=row)
case("less its mean", "y: x - mean(x, -1, True)", lambda x: x - x.mean(-1, keepdim=True), x=row)
case("amax", "y: amax(x, -1)", lambda x: x.amax(-1), x=row)
case("prod", "y: prod(x * 2, -1)", lambda x: (x * 2).prod(-1), x=row)
case("var", "y: var(x, -1)", lambda x: x.var(-1), x=row)
case("std", "y: std(x, -1)", lambda x: x.std(-1), x=row)
case("logsumexp", "y: logsumexp(x, -1)", lambda x: x.logsumexp(-1), x=row)
case("over its sum", "y: x / sum(x)", lambda x: x / x.sum(), x=row)

# ---- composites ----
case("clamp", "y: clamp(x, -1, 1)", lambda x: x.clamp(-1, 1), x=row)
case("clamp by a tensor", "y: clamp(x, z, 1.0)", lambda x, z: torch.clamp(x, z, torch.tensor(1.0, dtype=torch.float64)), x=row, z=rows)
case("relu", "y: relu(x)", lambda x: x.relu(), x=row)
case("relu of a product", "y: relu(x * z)", lambda x, z: (x * z).relu(), x=row, z=row)
case("silu", "y: silu(x)", lambda x: F.silu(x), x=row)
case("gelu", "y: gelu(x)", lambda x: F.gelu(x), x=row)
case("gelu tanh", "y: gelu(x, \"tanh\")", lambda x: F.gelu(x, approximate="tanh"), x=row)
case("softplus", "y: softplus(x)", lambda x: F.softplus(x), x=row)
case("swiglu", "y: swiglu(x, z)", lambda x, z: F.silu(x) * z, x=row, z=row)
case("softmax", "y: softmax(x * 2, -1)", lambda x: (x * 2).softmax(-1), x=row)
case("softmax by hand", "y: exp(x) / sum(exp(x), -1, True)", lambda x: x.exp() / x.exp().sum(-1, keepdim=True), x=row)
case("log_softmax", "y: log_softmax(x, -1)", lambda x: x.log_softmax(-1), x=row)
for dtype, name in (("f32", ""), ("f64", " in double")):
    own = {"x": f"{dtype}[M, N]", "w": f"{dtype}[N]", "b": f"{dtype}[N]"}
    case("layer_norm" + name, "y: layer_norm(x, w, b)", lambda x, w, b: F.layer_norm(x, (64,), w, b), **own)
    case("rms_norm" + name, "y: rms_norm(x, w, 1e-6)", lambda x, w: torch.ops.aten._fused_rms_norm(x, [64], w, 1e-6)[0], x=own["x"], w=own["w"])
case("layer_norm in bf16", "y: layer_norm(x, w, b)", lambda x, w, b: F.layer_norm(x, (64,), w, b), x="bf16[M, N]", w="f32[N]", b="f32[N]")
case("layer_norm without weight", "y: layer_norm(x)", lambda x: F.layer_norm(x, (64,)), x=row)
case("rms_norm by hand", "y: x * rsqrt(mean(x * x, -1, True) + 1e-6) * w", lambda x, w: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w, x=row, w="f32[N]")
case("l2_norm", "y: l2_norm(x, 1e-6)", lambda x: x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6), x=row)
case("add and rms_norm", "h: x + r; y: rms_norm(h, w, 1e-6)", lambda x, r, w: (torch.ops.aten._fused_rms_norm(x + r, [64], w, 1e-6)[0], x + r)[0], x=row, r=row, w="f32[N]")

# ---- views ----
case("halves", "y: silu(x[:, :N/2]) * x[:, N/2:]", lambda x: F.silu(x[:, :32]) * x[:, 32:], x=row)
case("halves of a node", "h: x + b; y: square(h[:, :N/2]) * h[:, N/2:]", lambda x, b: halves(x + b), x="bf16[M, N]", b="f32[N]")
case("a quarter", "y: x[:, :N/4] * z", lambda x, z: x[:, :16] * z, x=row, z="f32[M, N/4]")
case("a slice of a slice", "y: x[:, :N/2][:, 3:8] * x[:, N/2:][:, 1:6]", lambda x: x[:, :32][:, 3:8] * x[:, 32:][:, 1:6], x=row)
case("reshapes", "y: reshape(x, [M, 4, N/4]) * z[:, None]", lambda x, z: x.reshape(24, 4, 16) * z[:, None], x=row, z="f32[M, N/4]")
case("a reshape of a slice", "y: reshape(x[:, :N/2], [M * N/2]) * z", lambda x, z: x[:, :32].reshape(768) * z, x=row, z="f32[M * N/2]")
case("modulate", "y: layer_norm(x) * (1 + m[:, None, N:]) + m[:, None, :N]",
     lambda x, m: F.layer_norm(x, (64,)) * (1 + m[:, None, 64:]) + m[:, None, :64], x="f32[B, T, N]", m="f32[B, 2*N]")
case("a gate", "y: x * m[:, None, 2*N:3*N]", lambda x, m: x * m[:, None, 128:192], x="f32[B, T, N]", m="f32[B, 6*N]")
case("picked rows", "y: t[ids] * x", lambda x, t, ids: t[ids] * x, fixed=("t",), x=row, t="f32[K, N]", ids="i64[M]")

# ---- what no output needs ----
case("a node without use", "y: x * 2; z: exp(x) * x", lambda x: x * 2, x=row)

print('{"made_by": "tests/oracle/autograd.py with PyTorch ' + torch.__version__.split("+")[0] + '",\n"cases": [\n' + ",\n".join(map(json.dumps, cases)) + "\n]}")
