"""Numbers from PyTorch in f64 for every composite of the graph language, written to composites.json.

The oracle of the test suite expands ir/composites.def itself, so it cannot see an error in a formula there; these
numbers come from elsewhere. Run with any PyTorch 2: python3 tests/oracle/composites.py > tests/oracle/composites.json
Each case: a graph's nodes, its inputs (shape and values) and the expected value of node y. Numbers are hexadecimal
floats, so that they read back exactly; nan, inf and -inf as words.
"""
import json

import torch
import torch.nn.functional as F

torch.manual_seed(20240607)
f64 = torch.float64


def number(v):
    v = float(v)
    if v != v:
        return "nan"
    if v in (float("inf"), float("-inf")):
        return "inf" if v > 0 else "-inf"
    return v.hex()


def tensor(t):
    return {"shape": list(t.shape), "values": [number(v) for v in t.reshape(-1)]}


cases = []


def case(name, y, expected, **inputs):
    cases.append({"name": name, "y": y, "inputs": {k: tensor(v) for k, v in inputs.items()},
                  "expected": tensor(torch.as_tensor(expected, dtype=f64))})


def normal(*shape, scale=1.0, shift=0.0):
    return torch.randn(*shape, dtype=f64) * scale + shift


x = normal(5, 7)
wide = normal(4, 33, scale=3.0, shift=100.0)
cube = normal(3, 4, 5)
one = normal(4, 1)
edges = torch.tensor([[-1e4, -30.0, -20.5, -1.0, -1e-8, 0.0, 1e-8, 1.0, 20.5, 30.0, 1e4]], dtype=f64)
holes = torch.tensor([[1.0, float("-inf"), 2.0, float("-inf")], [float("-inf")] * 4, [0.0, 1.0, float("nan"), 2.0],
                      [3e38, 3e38, -3e38, 1.0]], dtype=f64)
w, b = normal(7), normal(7)
w33, b33 = normal(33), normal(33)
inf, nan = float("inf"), float("nan")

case("square", "square(x)", x.square(), x=x)
case("reciprocal", "reciprocal(x)", x.reciprocal(), x=x)
case("mean of all", "mean(x)", x.mean(), x=x)
case("mean last", "mean(x, dim=-1)", x.mean(-1), x=x)
case("mean first, kept", "mean(x, dim=0, keepdim=True)", x.mean(0, keepdim=True), x=x)
case("mean of two", "mean(x, dim=[0, 2])", cube.mean([0, 2]), x=cube)
case("mean positional", "mean(x, 1, True)", cube.mean(1, True), x=cube)
case("var default", "var(x, dim=-1)", x.var(-1), x=x)
case("var of all", "var(x)", x.var(), x=x)
case("var correction 0", "var(x, dim=-1, correction=0)", x.var(-1, correction=0), x=x)
case("var correction 3", "var(x, dim=[0, 1], correction=3, keepdim=True)", cube.var([0, 1], correction=3, keepdim=True), x=cube)
case("var far from 0", "var(x, dim=-1)", wide.var(-1), x=wide)
case("var of one", "var(x, dim=-1)", one.var(-1), x=one)
case("var of one, correction 0", "var(x, dim=-1, correction=0)", one.var(-1, correction=0), x=one)
case("std default", "std(x, dim=-1)", x.std(-1), x=x)
case("std correction 0", "std(x, dim=0, correction=0)", x.std(0, correction=0), x=x)
case("clamp both", "clamp(x, -0.5, 0.75)", x.clamp(-0.5, 0.75), x=x)
case("clamp min", "clamp(x, min=0.25)", x.clamp(min=0.25), x=x)
case("clamp max", "clamp(x, max=0.25)", x.clamp(max=0.25), x=x)
case("clamp keeps nan", "clamp(x, -1, 1)", holes.clamp(-1, 1), x=holes)
case("relu", "relu(x)", F.relu(x), x=x)
case("relu keeps nan", "relu(x)", F.relu(holes), x=holes)
for name, v in (("", x), (" at the edges", edges)):
    case("silu" + name, "silu(x)", F.silu(v), x=v)
    case("gelu" + name, "gelu(x)", F.gelu(v), x=v)
    case("gelu tanh" + name, 'gelu(x, approximate="tanh")', F.gelu(v, approximate="tanh"), x=v)
    case("softplus" + name, "softplus(x)", F.softplus(v), x=v)
    case("softplus beta threshold" + name, "softplus(x, beta=0.5, threshold=5)", F.softplus(v, 0.5, 5), x=v)
    case("sigmoid" + name, "sigmoid(x)", torch.sigmoid(v), x=v)
gate = normal(5, 7)
case("swiglu", "swiglu(x, z)", F.silu(x) * gate, x=x, z=gate)
case("geglu", "geglu(x, z)", F.gelu(x) * gate, x=x, z=gate)
case("geglu tanh", 'geglu(x, z, approximate="tanh")', F.gelu(x, approximate="tanh") * gate, x=x, z=gate)
case("softmax last", "softmax(x, dim=-1)", x.softmax(-1), x=x)
case("softmax middle", "softmax(x, dim=1)", cube.softmax(1), x=cube)
case("softmax with -inf and nan", "softmax(x, dim=-1)", holes.softmax(-1), x=holes)
case("log_softmax", "log_softmax(x, dim=-1)", x.log_softmax(-1), x=x)
case("log_softmax far", "log_softmax(x, dim=-1)", wide.log_softmax(-1), x=wide)
case("log_softmax with -inf", "log_softmax(x, dim=-1)", holes[:1].log_softmax(-1), x=holes[:1])
case("logsumexp", "logsumexp(x, dim=-1)", x.logsumexp(-1), x=x)
case("logsumexp kept", "logsumexp(x, dim=[0, 1], keepdim=True)", cube.logsumexp([0, 1], keepdim=True), x=cube)
case("logsumexp with -inf and nan", "logsumexp(x, dim=-1)", holes.logsumexp(-1), x=holes)
case("layer_norm", "layer_norm(x)", F.layer_norm(x, (7,)), x=x)
case("layer_norm affine", "layer_norm(x, w, b)", F.layer_norm(x, (7,), w, b), x=x, w=w, b=b)
case("layer_norm bias only", "layer_norm(x, bias=b, eps=1e-3)", F.layer_norm(x, (7,), None, b, 1e-3), x=x, b=b)
case("layer_norm far from 0", "layer_norm(x, w, b, 1e-6)", F.layer_norm(wide, (33,), w33, b33, 1e-6), x=wide, w=w33, b=b33)
case("layer_norm two dims", "layer_norm(x, dim=[1, 2])", F.layer_norm(cube, (4, 5)), x=cube)
case("layer_norm of one", "layer_norm(x)", F.layer_norm(one, (1,)), x=one)
case("rms_norm", "rms_norm(x, eps=1e-6)", F.rms_norm(x, (7,), None, 1e-6), x=x)
case("rms_norm weight", "rms_norm(x, w, 1e-5)", F.rms_norm(x, (7,), w, 1e-5), x=x, w=w)
case("l2_norm", "l2_norm(x, eps=1e-12)", x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-12), x=x)
case("round half to even", "round(x)", torch.round(torch.tensor([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.4999], dtype=f64)),
     x=torch.tensor([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.4999], dtype=f64))
p, q = torch.tensor([7.5, -7.5, 7.5, -7.5, 0.0], dtype=f64), torch.tensor([2.0, 2.0, -2.0, -2.0, 3.0], dtype=f64)
case("floor division", "x // z", p // q, x=p, z=q)
case("remainder", "x % z", p % q, x=p, z=q)
case("power", "x ** 3", x**3, x=x)
case("minus binds after power", "-x ** 2", -(x**2), x=x)
case("maximum keeps nan", "maximum(x, 1)", torch.maximum(holes, torch.tensor(1.0, dtype=f64)), x=holes)
case("minimum keeps nan", "minimum(x, 1)", torch.minimum(holes, torch.tensor(1.0, dtype=f64)), x=holes)
case("amax keeps nan", "amax(x, dim=-1)", holes.amax(-1), x=holes)
case("amin keeps nan", "amin(x, dim=0)", holes.amin(0), x=holes)
case("prod", "prod(x, dim=-1)", x.prod(-1), x=x)
case("where and comparison", "where(x > z, x, -z)", torch.where(x > gate, x, -gate), x=x, z=gate)
case("unary chain", "erf(tanh(sin(x) + cos(x))) + expm1(x) - log1p(abs(x)) + exp2(x) * log2(abs(x)) + rsqrt(abs(x)) + sign(x)",
     torch.erf(torch.tanh(torch.sin(x) + torch.cos(x))) + torch.expm1(x) - torch.log1p(x.abs()) + torch.exp2(x) * torch.log2(x.abs())
     + torch.rsqrt(x.abs()) + torch.sign(x), x=x)
case("rounding", "floor(x) + 10 * ceil(x) + 100 * trunc(x)", torch.floor(wide) + 10 * torch.ceil(wide) + 100 * torch.trunc(wide), x=wide)
print(json.dumps({"made_by": "tests/oracle/composites.py with PyTorch " + torch.__version__.split("+")[0], "cases": cases}, indent=1))
