"""Gradients from PyTorch's autograd in f64, written to gradients.json.

The derivative lines of ir/composites.def and the rules of gen/grad.c are checked by numbers that come from elsewhere.
Run with PyTorch 2.11: python3 tests/oracle/gradients.py > tests/oracle/gradients.json (2.15 gives 0 at the bounds of
clamp, which earlier ones count as within).
Each case: a whole forward graph, the values of its any dims, of its inputs and of the gradients of its outputs, and
the expected gradients of its inputs, row-major, as hexadecimal floats, which read back exactly.
"""
import json
import re

import torch
import torch.nn.functional as F

torch.manual_seed(20250311)
f64 = torch.float64
inf = float("inf")
extents = {"M": 3, "N": 7, "B": 2, "S": 3, "K": 5, "Q": 4, "C": 6, "G": 2, "P": 5, "H": 7}
any_dims = {"M", "B", "S", "Q"}


def number(v):
    v = float(v)
    return str(v) if v != v or v in (inf, -inf) else v.hex()


def numbers(t):
    return " ".join(number(v) for v in t.reshape(-1))


def shape(dims):
    size = lambda dim: extents[dim] if dim in extents else eval(dim, {}, dict(extents))  # "2*H"
    return [size(dim) for dim in dims.split()]


def normal(dims, scale=1.0, shift=0.0):
    return torch.randn(shape(dims), dtype=f64) * scale + shift


class Input:
    """Where it is: E in the graph, or bool."""

    def __init__(self, dims, values=None, wanted=True, scale=1.0, shift=0.0):
        self.dims = dims
        self.values = normal(dims, scale, shift) if values is None else torch.as_tensor(values).reshape(shape(dims))
        if self.values.dtype != torch.bool:
            self.values = self.values.to(f64)
        self.wanted = wanted and self.values.dtype != torch.bool


cases = []


def orders(tensors, found, d_out, last):
    """Gradients of gradients, up to the last order: those of each order by all tensors that the one before is made of."""
    leaves = dict(tensors) | {"d_" + k: v.requires_grad_() for k, v in d_out.items()}
    made = torch.autograd.grad(list(found.values()), list(tensors.values()), list(d_out.values()), create_graph=True)
    made, written = {"d_" + k: v for k, v in zip(tensors, made)}, {}
    for order in range(2, last + 1):
        prefix = f"d{order}_"
        seeds = {prefix + k: torch.randn(v.shape, dtype=f64, requires_grad=True) for k, v in made.items()}
        next_made = torch.autograd.grad(list(made.values()), list(leaves.values()), list(seeds.values()), create_graph=True, allow_unused=True)
        made = {prefix + k: v for k, v in zip(leaves, next_made) if v is not None}
        leaves |= seeds
        written |= {prefix + "out": {k: numbers(v.detach()) for k, v in seeds.items()}, prefix + "in": {k: numbers(v.detach()) for k, v in made.items()}}
    return written


def case(name, nodes, function, outputs=("y",), scalars="", last=1, **inputs):
    """nodes: entries of the section, ';' between. function: the same in PyTorch, an output or a tuple of them. last: the
    highest order of gradients. inputs: dims of normal numbers, or an Input. Those not wanted are left out of --wrt."""
    inputs = {k: Input(v) if isinstance(v, str) else v for k, v in inputs.items()}
    lines = [entry.strip() for entry in nodes.split(";")]
    shown = " ".join([v.dims for v in inputs.values()] + lines)
    dims = [d for d in extents if re.search(rf"\b{d}\b", shown)]
    kind = lambda v: "bool" if v.values.dtype == torch.bool else "E"
    text = [f"graph: g{len(cases)}", "types: {E: f64}"]
    if dims:
        text.append("dims: {" + ", ".join(f"{d}: {'any' if d in any_dims else extents[d]}" for d in dims) + "}")
    text += ["inputs:"] + [f"  {k}: {kind(v)}[{', '.join(v.dims.split())}]" for k, v in inputs.items()]
    if scalars:
        text.append("scalars: {" + scalars + "}")
    text += ["nodes:"] + ["  " + line for line in lines] + ["outputs: {" + ", ".join(f"{o}: E" for o in outputs) + "}"]

    tensors = {k: v.values.clone().requires_grad_(v.wanted) for k, v in inputs.items()}
    found = function(**tensors)
    found = dict(zip(outputs, found if isinstance(found, tuple) else (found,)))
    d_out = {k: torch.randn(v.shape, dtype=f64) for k, v in found.items()}
    wrt = [k for k, v in inputs.items() if v.wanted]
    d_in = torch.autograd.grad(list(found.values()), [tensors[k] for k in wrt], list(d_out.values()), retain_graph=True)
    cases.append({
        "name": name, "graph": "\n".join(text) + "\n", "dims": {d: extents[d] for d in dims if d in any_dims}, "wrt": wrt,
        "inputs": {k: numbers(v.values) for k, v in inputs.items()},
        "d_out": {"d_" + k: numbers(v) for k, v in d_out.items()},
        "d_in": {"d_" + k: numbers(v) for k, v in zip(wrt, d_in)}} | (orders({k: tensors[k] for k in wrt}, found, d_out, last) if last > 1 else {}))


def rms(x, dims, eps):
    return x * torch.rsqrt((x * x).mean(dims, keepdim=True) + eps)


def norm(x, dims, eps=1e-5):
    return (x - x.mean(dims, keepdim=True)) * torch.rsqrt(x.var(dims, correction=0, keepdim=True) + eps)


def l2(x, dims, eps):
    return x * torch.rsqrt((x * x).sum(dims, keepdim=True) + eps)


# ---- norms: last and middle dim, with and without weight and bias ----

affine = {"": {}, "w": {"w": 1}, "b": {"b": 1}, "wb": {"w": 1, "b": 1}}
for parts in affine:
    arguments = ", weight=w" * ("w" in parts) + ", bias=b" * ("b" in parts)
    said = f" {parts}" if parts else ""
    own = lambda w=None, b=None: (1 if w is None else w, 0 if b is None else b)
    case("layer_norm" + said, f"y: layer_norm(x{arguments})", lambda x, w=None, b=None: F.layer_norm(x, (7,), w, b),
         x="M N", **{p: "N" for p in parts})
    case("layer_norm middle" + said, f"y: layer_norm(x{arguments}, dim=1)",
         lambda x, w=None, b=None: norm(x, 1) * own(w, b)[0] + own(w, b)[1], x="B N K", **{p: "N 1" for p in parts})
    case("layer_norm all operands of full size" + said, f"y: layer_norm(x{arguments}, eps=1e-3)",
         lambda x, w=None, b=None: norm(x, -1, 1e-3) * own(w, b)[0] + own(w, b)[1], x="M N", **{p: "M N" for p in parts})
    if "b" in parts:
        continue
    case("rms_norm" + said, f"y: rms_norm(x{arguments}, eps=1e-6)", lambda x, w=None: F.rms_norm(x, (7,), w, 1e-6),
         x="M N", **{p: "N" for p in parts})
    case("rms_norm middle" + said, f"y: rms_norm(x{arguments}, eps=1e-6, dim=1)",
         lambda x, w=None: rms(x, 1, 1e-6) * own(w)[0], x="B N K", **{p: "N 1" for p in parts})
case("layer_norm of rows apart from 0", "y: layer_norm(x, w, b, 1e-6)", lambda x, w, b: F.layer_norm(x, (7,), w, b, 1e-6),
     x=Input("M N", scale=3, shift=20), w="N", b="N")
case("layer_norm two dims", "y: layer_norm(x, w, dim=[1, 2])", lambda x, w: F.layer_norm(x, (7, 5), w), x="B N K", w="N K")
case("layer_norm with a scalar eps", "y: layer_norm(x, w, b, eps)", lambda x, w, b: F.layer_norm(x, (7,), w, b, 1e-4),
     scalars="eps: {dtype: f64, default: 1e-4}", x="M N", w="N", b="N")
case("rms_norm two dims", "y: rms_norm(x, eps=1e-5, dim=[0, 2])", lambda x: rms(x, [0, 2], 1e-5), x="B N K")
case("layer_norm with its statistics out",
     "mean: mean(x, dim=-1, keepdim=True); rstd: rsqrt(var(x, dim=-1, correction=0, keepdim=True) + 1e-5); y: layer_norm(x, w, b)",
     lambda x, w, b: (F.layer_norm(x, (7,), w, b), x.mean(-1, keepdim=True),
                      torch.rsqrt(x.var(-1, correction=0, keepdim=True) + 1e-5)),
     outputs=("y", "mean", "rstd"), x="M N", w="N", b="N")
for name, dim, dims in (("last", -1, "M N"), ("middle", 1, "B N K"), ("first", 0, "M N")):
    case("l2_norm " + name, f"y: l2_norm(x, 1e-12, dim={dim})", lambda x: l2(x, dim, 1e-12), x=dims)
    case("softmax " + name, f"y: softmax(x, dim={dim})", lambda x: x.softmax(dim), x=dims)
    case("log_softmax " + name, f"y: log_softmax(x, dim={dim})", lambda x: x.log_softmax(dim), x=dims)
    case("logsumexp " + name, f"y: logsumexp(x, dim={dim})", lambda x: x.logsumexp(dim), x=dims)
    case("var " + name, f"y: var(x, dim={dim})", lambda x: x.var(dim), x=dims)
    case("var correction 0 " + name, f"y: var(x, dim={dim}, correction=0, keepdim=True)",
         lambda x: x.var(dim, correction=0, keepdim=True), x=dims)
    case("std " + name, f"y: std(x, dim={dim})", lambda x: x.std(dim), x=dims)
    case("mean " + name, f"y: mean(x, dim={dim})", lambda x: x.mean(dim), x=dims)
    case("sum " + name, f"y: sum(x * x, dim={dim}) ** 1.5", lambda x: (x * x).sum(dim) ** 1.5, x=dims)
case("mean of all", "y: mean(x * x)", lambda x: (x * x).mean(), x="B N K")
case("var of all", "y: var(x)", lambda x: x.var(), x="B N K")
case("std of two", "y: std(x, dim=[0, 2], correction=0)", lambda x: x.std([0, 2], correction=0), x="B N K")
case("logsumexp of two, kept", "y: logsumexp(x, dim=[0, 1], keepdim=True)", lambda x: x.logsumexp([0, 1], keepdim=True), x="B N K")
case("logsumexp with -inf", "y: logsumexp(x, dim=-1)", lambda x: x.logsumexp(-1),
     x=Input("Q K", [[1, -inf, 2, 0.5, -inf], [-inf, 3, -inf, -inf, -inf], [0, 0, 0, 0, 0], [1e3, -1e3, 999, 0, -inf]]))
case("log_softmax and a loss", "p: log_softmax(x, dim=-1); y: -mean(sum(t * p, dim=-1))",
     lambda x, t: -(t * x.log_softmax(-1)).sum(-1).mean(), x="M N", t="M N")

# ---- activations ----

edges = [-30, -4, -1.5, -1e-3, 0, 1e-8, 0.5, 2, 6, 20.5, 40]
for where, x in (("", Input("M N")), (" at edges", Input("11", edges))):
    for name, line, function in (
            ("gelu", "gelu(x)", F.gelu), ("gelu tanh", 'gelu(x, approximate="tanh")', lambda x: F.gelu(x, approximate="tanh")),
            ("silu", "silu(x)", F.silu), ("softplus", "softplus(x)", F.softplus), ("relu", "relu(x)", F.relu),
            ("softplus beta threshold", "softplus(x, beta=0.5, threshold=5)", lambda x: F.softplus(x, 0.5, 5)),
            ("clamp both", "clamp(x, -0.5, 0.75)", lambda x: x.clamp(-0.5, 0.75)),
            ("clamp min", "clamp(x, min=-0.25)", lambda x: x.clamp(min=-0.25)),
            ("clamp max", "clamp(x, max=0.25)", lambda x: x.clamp(max=0.25)),
            ("square", "square(x)", torch.square), ("sigmoid", "sigmoid(x)", torch.sigmoid), ("tanh", "tanh(x)", torch.tanh)):
        case(name + where, "y: " + line, lambda x: function(x), x=x)
case("reciprocal", "y: reciprocal(x)", lambda x: 1 / x, x="M N")
for name, gate in (("swiglu", F.silu), ("geglu", F.gelu)):
    case(name, f"y: {name}(a, b)", lambda a, b: gate(a) * b, a="M N", b="M N")
    case(name + " packed", f"y: {name}(x[:, :H], x[:, H:])", lambda x: gate(x[:, :7]) * x[:, 7:], x="M 2*H")
    case(name + " broadcast", f"y: {name}(a, b)", lambda a, b: gate(a) * b, a="M N", b="N")
case("geglu tanh", 'y: geglu(a, b, approximate="tanh")', lambda a, b: F.gelu(a, approximate="tanh") * b, a="M N", b="M N")

# ---- what blocks are made of ----

case("add and rms_norm, the sum goes on", "h: x + r; y: rms_norm(h, w, 1e-6)",
     lambda x, r, w: (F.rms_norm(x + r, (7,), w, 1e-6), x + r), outputs=("y", "h"), x="M N", r="M N", w="N")
case("add and layer_norm, the sum goes on", "h: x + r; y: layer_norm(h, w, b)",
     lambda x, r, w, b: (F.layer_norm(x + r, (7,), w, b), x + r), outputs=("y", "h"), x="M N", r="M N", w="N", b="N")
case("add of a bias, rms_norm, the sum is used twice", "h: x + r + c; y: rms_norm(h, w, 1e-6) * h",
     lambda x, r, c, w: F.rms_norm(x + r + c, (7,), w, 1e-6) * (x + r + c), x="M N", r="M N", c="N", w="N")
case("layer_norm and gelu", "y: gelu(layer_norm(x, w, b))", lambda x, w, b: F.gelu(F.layer_norm(x, (7,), w, b)), x="M N", w="N", b="N")
case("layer_norm and gelu tanh", 'y: gelu(layer_norm(x, w, b), approximate="tanh")',
     lambda x, w, b: F.gelu(F.layer_norm(x, (7,), w, b), approximate="tanh"), x="M N", w="N", b="N")
case("rms_norm and silu", "y: silu(rms_norm(x, w, 1e-6))", lambda x, w: F.silu(F.rms_norm(x, (7,), w, 1e-6)), x="M N", w="N")
case("modulate", "y: layer_norm(x) * (1 + scale[:, None]) + shift[:, None]",
     lambda x, scale, shift: F.layer_norm(x, (7,)) * (1 + scale[:, None]) + shift[:, None], x="B S N", scale="B N", shift="B N")
case("modulate and add", "n: rms_norm(x, eps=1e-6) * (1 + scale[:, None]) + shift[:, None]; y: x + gate[:, None] * n",
     lambda x, scale, shift, gate: x + gate[:, None] * (F.rms_norm(x, (7,), None, 1e-6) * (1 + scale[:, None]) + shift[:, None]),
     x="B S N", scale="B N", shift="B N", gate="B N")
keep = torch.tensor([[1, 0, 1, 1, 0], [1, 1, 1, 1, 1], [0, 0, 0, 1, 0], [0, 1, 1, 0, 1]]).bool()
case("softmax with a mask", "y: softmax(where(keep, s, -inf), dim=-1)",
     lambda s, keep: s.masked_fill(~keep, -inf).softmax(-1), s="Q K", keep=Input("Q K", keep))
case("softmax with a mask for heads", "y: softmax(where(keep, s * c, -inf), dim=-1)",
     lambda s, c, keep: (s * c).masked_fill(~keep, -inf).softmax(-1), s="B Q K", c="B 1 1", keep=Input("Q K", keep))
case("softmax with a bias that rows share", "y: softmax(s + bias, dim=-1)", lambda s, bias: (s + bias).softmax(-1), s="B Q K", bias="K")
case("softmax with a bias that heads share", "y: softmax(s * 0.25 + bias, dim=-1)",
     lambda s, bias: (s * 0.25 + bias).softmax(-1), s="B Q K", bias="Q K")
case("softmax, causal", "keep: arange(K) <= arange(Q)[:, None] + (K - Q); y: softmax(where(keep, s * c, -inf), dim=-1)",
     lambda s, c: (s * c).masked_fill(~(torch.arange(5) <= torch.arange(4)[:, None] + 1), -inf).softmax(-1), s="B Q K", c="")
case("softmax of columns", "y: softmax(x * w, dim=0)", lambda x, w: (x * w).softmax(0), x="M N", w="N")
case("layer_norm by hand",
     "mu: mean(x, dim=-1, keepdim=True); d: x - mu; v: mean(d * d, dim=-1, keepdim=True); y: d * rsqrt(v + 1e-5) * w + b",
     lambda x, w, b: norm(x, -1) * w + b, x="M N", w="N", b="N")
case("layer_norm by hand, sqrt and division",
     "mu: sum(x, dim=-1, keepdim=True) / N; v: sum((x - mu) ** 2, dim=-1, keepdim=True) / N; y: (x - mu) / sqrt(v + 1e-5) * w + b",
     lambda x, w, b: norm(x, -1) * w + b, x="M N", w="N", b="N")
case("layer_norm by hand, two moments",
     "mu: mean(x, dim=-1, keepdim=True); v: mean(x * x, dim=-1, keepdim=True) - mu * mu; y: (x - mu) * rsqrt(v + 1e-5) * w + b",
     lambda x, w, b: norm(x, -1) * w + b, x="M N", w="N", b="N")
case("rms_norm by hand, over division", "r: sqrt(mean(square(x), dim=-1) + 1e-6); y: x / r[:, None] * (1 + w)",
     lambda x, w: rms(x, -1, 1e-6) * (1 + w), x="M N", w="N")
case("batch norm", "mu: mean(x, dim=0); v: var(x, dim=0, correction=0); y: (x - mu) * rsqrt(v + 1e-5) * w + b",
     lambda x, w, b: F.batch_norm(x, None, None, w, b, True), x="C N", w="N", b="N")
case("batch norm of planes with its statistics out",
     "mu: mean(x, dim=[0, 2]); v: var(x, dim=[0, 2], correction=0); y: (x - mu[:, None]) * rsqrt(v + 1e-5)[:, None] * w[:, None] + b[:, None]",
     lambda x, w, b: (F.batch_norm(x, None, None, w, b, True), x.mean([0, 2]), x.var([0, 2], correction=0)),
     outputs=("y", "mu", "v"), x="B N P", w="N", b="N")
case("three norms share a weight", "y1: rms_norm(x1, w, 1e-5); y2: rms_norm(x2, w, 1e-5); y3: rms_norm(x3, w, 1e-5)",
     lambda x1, x2, x3, w: tuple(F.rms_norm(x, (7,), w, 1e-5) for x in (x1, x2, x3)), outputs=("y1", "y2", "y3"),
     x1="M N", x2="M N", x3="C N", w="N")
case("group norm",
     "g: reshape(x, [B, G, C/G, P]); n: (g - mean(g, dim=[2, 3], keepdim=True)) * rsqrt(var(g, dim=[2, 3], correction=0, keepdim=True) + 1e-5); "
     "y: silu(reshape(n, [B, C, P]) * w[:, None] + b[:, None])",
     lambda x, w, b: F.silu(F.group_norm(x, 2, w, b)), x="B C P", w="C", b="C")
case("norms of a packed tensor's slices", "q: rms_norm(x[:, :C/2], wq, 1e-6); k: rms_norm(x[:, C/2:C-1], wk, 1e-6)",
     lambda x, wq, wk: (F.rms_norm(x[:, :3], (7,), wq, 1e-6), F.rms_norm(x[:, 3:5], (7,), wk, 1e-6)), outputs=("q", "k"),
     x="M C N", wq="N", wk="N")
case("norm of a norm", "y: layer_norm(rms_norm(x, w, 1e-6) + x, w)",
     lambda x, w: F.layer_norm(F.rms_norm(x, (7,), w, 1e-6) + x, (7,), w), x="M N", w="N")

# ---- ties, zeros, branches, casts, views ----

tied = [[1, 3, 3, -2, 3, 0, 1], [2, 2, 2, 2, 2, 2, 2], [-1, -2, -2, -3, 0, 5, -3]]
for name in ("amax", "amin"):
    reduce = getattr(torch, name)
    case(name, f"y: {name}(x, dim=-1)", lambda x: reduce(x, -1), x="M N")
    case(name + " middle", f"y: {name}(x, dim=1, keepdim=True)", lambda x: reduce(x, 1, keepdim=True), x="B N K")
    case(name + " of ties", f"y: {name}(x, dim=-1)", lambda x: reduce(x, -1), x=Input("M N", tied))
    case(name + " of all, with ties", f"y: {name}(x)", lambda x: reduce(x), x=Input("M N", tied))
case("rows over their largest", "y: x / amax(abs(x), dim=-1, keepdim=True)", lambda x: x / x.abs().amax(-1, keepdim=True), x="M N")
for name in ("maximum", "minimum"):
    pointwise = getattr(torch, name)
    case(name, f"y: {name}(x, z)", lambda x, z: pointwise(x, z), x="M N", z="N")
    case(name + " of ties", f"y: {name}(x, z)", lambda x, z: pointwise(x, z), x=Input("M N", tied), z=Input("N", [1, 2, 3, -2, 2, 2, -3]))
case("relu at 0", "y: relu(x)", lambda x: F.relu(x), x=Input("N", [-1, -0.0, 0, 1e-300, 2, -1e-300, 3]))
case("clamp at its bounds", "y: clamp(x, -1, 2)", lambda x: x.clamp(-1, 2), x=Input("M N", tied))
case("abs and sign at 0", "y: abs(x) + x * sign(x)", lambda x: x.abs() + x * x.sign(), x=Input("N", [-1, -0.0, 0, 1e-3, 2, -3, 3]))
zeros = [[1, -2, 0.5, 3, -1.5, 2, 1], [1, 0, 2, -3, 0.5, 1, 4], [0, 2, 0, 1, 3, -1, 2]]
case("prod", "y: prod(x, dim=-1)", lambda x: x.prod(-1), x="M N")
case("prod middle", "y: prod(x, dim=1, keepdim=True)", lambda x: x.prod(1, keepdim=True), x="B N K")
case("prod with zeros", "y: prod(x, dim=-1)", lambda x: x.prod(-1), x=Input("M N", zeros))
case("where", "y: where(x > z, x * z, z - x)", lambda x, z: torch.where(x > z, x * z, z - x), x="M N", z="N")
case("where with a mask, one branch not finite", "y: where(keep, x, inf)", lambda x, keep: torch.where(keep, x, inf),
     x="Q K", keep=Input("Q K", keep))
case("casts pass gradients on", "y: cast(x * w, f32) * w", lambda x, w: (x * w).float().double() * w, x="M N", w="N")
case("rounding is flat", "y: x * floor(x) + ceil(x) * trunc(x) + round(x)",
     lambda x: x * x.floor() + x.ceil() * x.trunc() + x.round(), x=Input("M N", scale=3))
case("power of tensors", "y: abs(x) ** z", lambda x, z: x.abs() ** z, x="M N", z="N")
case("whole powers", "y: x ** 3 - x ** 2 + 2 ** x", lambda x: x**3 - x**2 + 2**x, x="M N")
case("remainder", "y: x % z", lambda x, z: x % z, x=Input("M N", scale=5), z=Input("N", shift=4))
case("quotients", "y: x / z + 1 / z - x / 3", lambda x, z: x / z + 1 / z - x / 3, x="M N", z="N")
case("unary chain", "y: erf(tanh(sin(x) + cos(x))) + expm1(x) - log1p(x * x) + exp2(x) * log2(1 + x * x) + log(2 + sin(x)) * sqrt(1 + x * x) + rsqrt(1 + x * x)",
     lambda x: torch.erf(torch.tanh(torch.sin(x) + torch.cos(x))) + torch.expm1(x) - torch.log1p(x * x)
     + torch.exp2(x) * torch.log2(1 + x * x) + torch.log(2 + torch.sin(x)) * torch.sqrt(1 + x * x) + torch.rsqrt(1 + x * x), x="M N")
case("an operand that is an output too", "h: x * w; y: exp(h)", lambda x, w: (torch.exp(x * w), x * w), outputs=("y", "h"), x="M N", w="N")
case("a weight used twice", "y: x * w + w * w", lambda x, w: x * w + w * w, x="M N", w="N")
case("broadcasts over every axis", "y: x * a[:, None] * b + c + d * e",
     lambda x, a, b, c, d, e: x * a[:, None] * b + c + d * e, x="B N K", a="B K", b="N 1", c="1 N K", d="", e="B 1 K")
case("overlapping slices", "y: x[:, :H-1] * x[:, 1:H] + x[:, 0, None]", lambda x: x[:, :6] * x[:, 1:] + x[:, :1], x="M H")
case("indices and a new axis", "y: x[1] * z[:, None, 2] + x[..., 3, None]", lambda x, z: x[1] * z[:, None, 2] + x[..., 3, None],
     x="3 N", z="3 K")
case("reshape and reduce", "y: sum(reshape(x * x, [B, N * K]), dim=-1) * sum(reshape(x, [B * N, K]))",
     lambda x: (x * x).reshape(2, 35).sum(-1) * x.sum(), x="B N K")
case("only some are wanted", "y: layer_norm(x, w, b) * z", lambda x, w, b, z: F.layer_norm(x, (7,), w, b) * z,
     x=Input("M N"), w=Input("N", wanted=False), b=Input("N"), z=Input("M N", wanted=False))

# ---- gradients of gradients: norms by hand, since that of layer_norm is off in the third order ----

for name, nodes, function, inputs in (
    ("layer_norm", "y: layer_norm(x, w, b)", lambda x, w, b: norm(x, -1) * w + b, {"x": "M N", "w": "N", "b": "N"}),
    ("layer_norm middle", "y: layer_norm(x, dim=1)", lambda x: norm(x, 1), {"x": "B N K"}),
    ("rms_norm", "y: rms_norm(x, w, 1e-6)", lambda x, w: F.rms_norm(x, (7,), w, 1e-6), {"x": "M N", "w": "N"}),
    ("l2_norm", "y: l2_norm(x, 1e-6)", lambda x: l2(x, -1, 1e-6), {"x": "M N"}),
    ("layer_norm by hand", "m: mean(x, dim=-1, keepdim=True); v: mean((x - m) * (x - m), dim=-1, keepdim=True); y: (x - m) / sqrt(v + 1e-5) * w",
     lambda x, w: norm(x, -1) * w, {"x": "M N", "w": "N"}),
    ("batch norm", "y: layer_norm(x, w[:, None], dim=[0, 2])", lambda x, w: norm(x, [0, 2]) * w[:, None], {"x": "B N K", "w": "N"}),
    ("softmax", "y: softmax(x + b, dim=-1)", lambda x, b: (x + b).softmax(-1), {"x": "M N", "b": "N"}),
    ("log_softmax", "y: log_softmax(x, dim=1)", lambda x: x.log_softmax(1), {"x": "B N K"}),
    ("logsumexp", "y: logsumexp(x, dim=-1)", lambda x: x.logsumexp(-1), {"x": "M N"}),
    ("variance", "y: var(x, dim=-1) * std(x, dim=-1)", lambda x: x.var(-1) * x.std(-1), {"x": "M N"}),
    ("add and rms_norm", "h: x + r; y: rms_norm(h, w, 1e-5)", lambda x, r, w: (F.rms_norm(x + r, (7,), w, 1e-5), x + r),
     {"x": "M N", "r": "M N", "w": "N", "outputs": ("y", "h")}),
    ("layer_norm and gelu", "y: gelu(layer_norm(x, w))", lambda x, w: F.gelu(norm(x, -1) * w), {"x": "M N", "w": "N"}),
    ("modulate", "y: layer_norm(x) * (1 + s[:, None]) + t[:, None]",
     lambda x, s, t: norm(x, -1) * (1 + s[:, None]) + t[:, None], {"x": "B N H", "s": "B H", "t": "B H"}),
    ("gelu tanh", "y: gelu(x, approximate='tanh')", lambda x: F.gelu(x, approximate="tanh"), {"x": "M N"}),
    ("swiglu", "y: swiglu(x, z)", lambda x, z: F.silu(x) * z, {"x": "M N", "z": "M N"}),
    ("softplus and tanh", "y: softplus(x) * tanh(x)", lambda x: F.softplus(x) * x.tanh(), {"x": "M N"}),
):
    case(name + ", three orders", nodes, function, last=3, **inputs)

# ---- more ----

case("clamp between tensors", "y: clamp(x, a, b)", lambda x, a, b: x.clamp(a, b), x="M N", a="M N", b="N")
case("clamp from below by a tensor", "y: clamp(x * x, a)", lambda x, a: (x * x).clamp(a), x="M N", a="N")
case("clamp from above by a tensor", "y: clamp(x, max=a * a)", lambda x, a: x.clamp(max=a * a), x="M N", a="N")

entry = lambda k, v: json.dumps(k) + ": " + json.dumps(v)
put = lambda c: "{" + ",\n".join(
    entry(k, v) if isinstance(v, (str, list)) or k == "dims" else json.dumps(k) + ": {\n" + ",\n".join(" " + entry(*i) for i in v.items()) + "}"
    for k, v in c.items()) + "}"
print('{"made_by": "tests/oracle/gradients.py with PyTorch ' + torch.__version__.split("+")[0] + '",\n"cases": [\n' + ",\n".join(map(put, cases)) + "\n]}")
