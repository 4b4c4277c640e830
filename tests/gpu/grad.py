"""Forward and backward of seven graphs in bf16, each by two runs of the command, against PyTorch's f64 autograd on the
same bf16 inputs; PyTorch's own error in bf16 stands beside it.

    python3 tests/gpu/grad.py NORMGEN [--device=cuda|host] [--rows=4096] [--columns=1024] [--keep=FOLDER]

An output passes within 1 ulp of its dtype plus a first-order bound, as `run --check` promises: here from formulas
written out once more, with what each f32 operation and each stored value may be off by (Approx). Needs PyTorch alone.
"""
import argparse
import ctypes
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F

# ---- safetensors: a length, a JSON header, the bytes ----

KINDS = {torch.bfloat16: "BF16", torch.float32: "F32", torch.float64: "F64"}


def write_tensors(path, tensors):
    header, at, kept = {}, 0, []
    for name, tensor in tensors.items():
        tensor = tensor.detach().cpu().contiguous()
        count = tensor.numel() * tensor.element_size()
        header[name] = {"dtype": KINDS[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + count]}
        kept.append((tensor, count))
        at += count
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for tensor, count in kept:
            out.write(ctypes.string_at(tensor.data_ptr(), count))


def read_tensors(path):
    with open(path, "rb") as file:
        everything = bytearray(file.read())
    (count,) = struct.unpack_from("<Q", everything)
    kinds = {name: dtype for dtype, name in KINDS.items()}
    tensors = {}
    for name, entry in json.loads(everything[8 : 8 + count]).items():
        if name == "__metadata__":
            continue
        first, last = entry["data_offsets"]
        dtype, body = kinds[entry["dtype"]], everything[8 + count + first : 8 + count + last]
        tensors[name] = torch.frombuffer(body, dtype=dtype).reshape(entry["shape"]) if body else torch.empty(entry["shape"], dtype=dtype)
    return tensors


# ---- values with bounds: f32 arithmetic on them, in any order ----

HALF = 2.0**-24  # half an ulp of an f32, as a share of it at most


def ulp(value, dtype):
    bits = {torch.bfloat16: 8, torch.float32: 24}[dtype]
    exponent = torch.frexp(value)[1]  # value = m * 2**exponent, m in [0.5, 1)
    return torch.ldexp(torch.ones_like(value), torch.clamp(exponent - bits, min=-126 - bits + 1))


class Approx:
    def __init__(self, value, error=0.0):
        self.value = value
        self.error = error if torch.is_tensor(error) else torch.full_like(value, error)

    def rounded(value, error, ulps=0.5):  # ulps of the operation's result: columns of ir/ops.def
        return Approx(value, error + ulps * 2 * HALF * (value.abs() + error))

    def stored(self):  # as bf16: half an ulp of the largest that it may be
        return Approx(self.value, self.error + 0.5 * ulp(self.value.abs() + self.error, torch.bfloat16))

    def of(other, like):  # a number is rounded to f32
        return other if isinstance(other, Approx) else Approx.rounded(torch.full_like(like.value, other), 0.0)

    def __add__(self, other):
        other = Approx.of(other, self)
        return Approx.rounded(self.value + other.value, self.error + other.error)

    def __mul__(self, other):
        other = Approx.of(other, self)
        error = self.value.abs() * other.error + other.value.abs() * self.error + self.error * other.error
        return Approx.rounded(self.value * other.value, error)

    def __sub__(self, other):
        return self + Approx(-Approx.of(other, self).value, Approx.of(other, self).error)

    def __rsub__(self, other):
        return Approx(-self.value, self.error) + other

    __radd__, __rmul__ = __add__, __mul__

    def __getitem__(self, index):
        return Approx(self.value[index], self.error[index])

    def sum(self, dim):  # the longest chain of adds: all of them
        size = self.value.abs().sum(dim, keepdim=True) + self.error.sum(dim, keepdim=True)
        return Approx(self.value.sum(dim, keepdim=True), self.error.sum(dim, keepdim=True) + self.value.shape[dim] * HALF * size)

    def mean(self, dim):
        return self.sum(dim) * (1 / self.value.shape[dim])

    def rsqrt(self):
        low = self.value - self.error
        return Approx.rounded(self.value.rsqrt(), 0.5 * self.error / (low * low.sqrt()), 2)

    def exp(self):
        return Approx.rounded(self.value.exp(), self.value.exp() * torch.expm1(self.error), 2)

    def erf(self):
        return Approx.rounded(torch.erf(self.value), self.error * 1.1283791670955126, 2)

    def sigmoid(self):
        return Approx.rounded(torch.sigmoid(self.value), self.error * 0.25, 4)

    def over(self, other):
        low = other.value.abs() - other.error
        return Approx.rounded(self.value / other.value, (self.error + (self.value / other.value).abs() * other.error) / low)


def check_bounds(source):
    """Each bound of one rounding against the rounding itself, of numbers just above and below powers of 2 too."""
    draw = lambda: torch.ldexp(1 + torch.rand(4096, generator=source, dtype=torch.float64).pow(8), torch.randint(-8, 4, (4096,), generator=source))
    a, b = draw().float(), draw().float()
    x, y = Approx(a.double()), Approx(b.double())
    cases = {"stored": (a.bfloat16(), x.stored()), "+": (a + b, x + y), "-": (a - b, x - y), "*": (a * b, x * y), "/": (a / b, x.over(y)),
             "rsqrt": (a.rsqrt(), x.rsqrt()), "exp": (a.exp(), x.exp()), "erf": (torch.erf(a), x.erf()),
             "sigmoid": (torch.sigmoid(a), x.sigmoid()), "sum": (a.sum(0, keepdim=True), x.sum(0))}
    for name, (got, bound) in cases.items():
        off = (got.double() - bound.value).abs()
        if not (off <= bound.error).all():
            raise SystemExit(f"the bound of {name} is too small: {(off / bound.error).nan_to_num(0).max().item():.3f} of it happens")


# ---- the graphs: text, PyTorch's form, and the gradients' bounds ----
# bounds(v, d, read): v holds inputs, d the gradients that come in, read(name, value) what backward sees of a forward
# value: as it was stored, where the backward graph has it as an input.


def normalised(x, d_xhat, seen, rstd, centred):
    """The gradient of x of xhat = (x - mean) * rstd, from xhat as backward has it."""
    d = d_xhat - seen * (d_xhat * seen).mean(-1)
    return (d - d_xhat.mean(-1) if centred else d) * rstd


def statistics(x, eps):
    mean = x.mean(-1)
    return mean, ((x - mean) * (x - mean)).mean(-1).__add__(eps).rsqrt()


def down(value):  # over all but the last dim
    rows = Approx(value.value.reshape(-1, value.value.shape[-1]), value.error.reshape(-1, value.value.shape[-1]))
    return rows.sum(0)[0]


def layer_norm(v, d, read):
    mean, rstd = statistics(v["x"], 1e-5)
    xhat = (v["x"] - mean) * rstd
    return {"y": xhat * v["w"] + v["b"], "d_x": normalised(v["x"], d["y"] * v["w"], xhat, rstd, True),
            "d_w": down(d["y"] * xhat), "d_b": down(d["y"])}


def rms_norm(v, d, read):
    rstd = ((v["x"] * v["x"]).mean(-1) + 1e-6).rsqrt()
    xhat = v["x"] * rstd
    return {"y": xhat * v["w"], "d_x": normalised(v["x"], d["y"] * v["w"], xhat, rstd, False), "d_w": down(d["y"] * xhat)}


def add_rms_norm(v, d, read):
    h = v["x"] + v["r"]
    rstd = ((h * h).mean(-1) + 1e-6).rsqrt()
    seen = read("h", h) * rstd
    d_x = normalised(h, d["y"] * v["w"], seen, rstd, False) + d["h"]
    return {"y": h * rstd * v["w"], "h": h, "d_x": d_x, "d_r": d_x, "d_w": down(d["y"] * seen)}


def layer_norm_gelu(v, d, read):
    mean, rstd = statistics(v["x"], 1e-5)
    xhat = (v["x"] - mean) * rstd
    n = xhat * v["w"] + v["b"]
    below, seen = 0.5 * (1 + (n * math.sqrt(0.5)).erf()), read("n", n)
    slope = 0.5 * (1 + (seen * math.sqrt(0.5)).erf()) + seen * (-0.5 * seen * seen).exp() * 0.3989422804014327
    d_n = d["y"] * slope
    return {"y": n * below, "d_x": normalised(v["x"], d_n * v["w"], xhat, rstd, True), "d_w": down(d_n * xhat), "d_b": down(d_n)}


def modulate(v, d, read):
    mean, rstd = statistics(v["x"], 1e-6)
    xhat, up = (v["x"] - mean) * rstd, 1 + v["scale"][:, None]
    return {"y": xhat * up + v["shift"][:, None], "d_x": normalised(v["x"], d["y"] * up, xhat, rstd, True),
            "d_scale": (d["y"] * xhat).sum(1)[:, 0], "d_shift": d["y"].sum(1)[:, 0]}


def swiglu(v, d, read):
    s = v["a"].sigmoid()
    gate = v["a"] * s
    return {"y": gate * v["b"], "d_a": d["y"] * v["b"] * (s * (1 + v["a"] * (1 - s))), "d_b": d["y"] * gate}


def softmax(v, d, read):
    z = v["x"] + v["bias"]
    e = (z - Approx(z.value.amax(-1, keepdim=True), z.error.amax(-1, keepdim=True))).exp()
    y = e.over(e.sum(-1))
    seen = read("y", y)
    d_x = seen * (d["y"] - (seen * d["y"]).sum(-1))
    return {"y": y, "d_x": d_x, "d_bias": down(d_x)}


GRAPHS = [  # bounds, inputs, nodes, outputs, PyTorch
    (layer_norm, {"x": "M N", "w": "N", "b": "N"}, "y: layer_norm(x, w, b)", "y",
     lambda x, w, b: {"y": F.layer_norm(x, x.shape[-1:], w, b)}),
    (rms_norm, {"x": "M N", "w": "N"}, "y: rms_norm(x, w, 1e-6)", "y", lambda x, w: {"y": F.rms_norm(x, x.shape[-1:], w, 1e-6)}),
    (add_rms_norm, {"x": "M N", "r": "M N", "w": "N"}, "h: x + r; y: rms_norm(h, w, 1e-6)", "y h",
     lambda x, r, w: {"y": F.rms_norm(x + r, x.shape[-1:], w, 1e-6), "h": x + r}),
    (layer_norm_gelu, {"x": "M N", "w": "N", "b": "N"}, "n: layer_norm(x, w, b); y: gelu(n)", "y",
     lambda x, w, b: {"y": F.gelu(F.layer_norm(x, x.shape[-1:], w, b))}),
    (modulate, {"x": "B S N", "scale": "B N", "shift": "B N"}, "y: layer_norm(x, eps=1e-6) * (1 + scale[:, None]) + shift[:, None]", "y",
     lambda x, scale, shift: {"y": F.layer_norm(x, x.shape[-1:], eps=1e-6) * (1 + scale[:, None]) + shift[:, None]}),
    (swiglu, {"a": "M N", "b": "M N"}, "y: swiglu(a, b)", "y", lambda a, b: {"y": F.silu(a) * b}),
    (softmax, {"x": "M N", "bias": "N"}, "y: softmax(x + bias, dim=-1)", "y", lambda x, bias: {"y": (x + bias).softmax(-1)}),
]


def text_of(name, inputs, nodes, outputs, columns):
    lines = [f"graph: {name}", "types: {E: bf16}"]
    lines.append("dims: {" + ("B: any, S: any" if name == "modulate" else "M: any") + f", N: {columns}" + "}")
    lines += ["inputs:"] + [f"  {k}: E[{', '.join(v.split())}]" for k, v in inputs.items()]
    lines += ["nodes:"] + [f"  {node.strip()}" for node in nodes.split(";")]
    return "\n".join(lines + ["outputs: {" + ", ".join(f"{o}: E" for o in outputs.split()) + "}"]) + "\n"


# ---- running ----


def command(normgen, *arguments):
    done = subprocess.run([normgen, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{normgen} {' '.join(arguments)}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return json.loads(done.stdout) if "--json" in arguments else done.stdout


def run(options, folder, graph, tensors):
    """The graph file with the tensors of its inputs' names, checked against normgen's own reference."""
    path, inputs, outputs = (os.path.join(folder, graph + suffix) for suffix in (".yaml", ".in.safetensors", ".out.safetensors"))
    names = [entry["name"] for entry in command(options.normgen, "check", path, "--json")["inputs"]]
    write_tensors(inputs, {name: tensors[name] for name in names})
    command(options.normgen, "run", path, f"--device={options.device}", f"--inputs={inputs}", f"--outputs={outputs}", "--check")
    return names, read_tensors(outputs)


def by_torch(function, inputs, d_out, dtype):
    leaves = {k: v.to(dtype).requires_grad_() for k, v in inputs.items()}
    outputs = function(**leaves)
    d_in = torch.autograd.grad(list(outputs.values()), list(leaves.values()), [d_out[k].to(dtype) for k in outputs])
    found = {k: v.detach() for k, v in outputs.items()} | {"d_" + k: v for k, v in zip(leaves, d_in)}
    return {k: v.double() for k, v in found.items()}


def deviation(values):
    return values.square().mean().sqrt().item()


def compare(graph, name, got, expected, bound, theirs):
    """A line of the table; whether all elements pass."""
    dtype, got = got.dtype, got.to(expected.device).double()
    allowed = ulp(expected, dtype) + bound.error
    off, size = (got - expected).abs(), max(deviation(expected), 1e-300)
    failed = int((~(off <= allowed)).sum())
    other = (theirs - expected).abs()
    print(f"# {graph:16} {name:8} {got.numel():8} {failed:7} {(off / allowed).max().item():9.3f} {deviation(off) / size:10.2e}"
          f" {deviation(other) / size:10.2e} {(other / allowed).max().item():9.2f}")
    return failed == 0


def try_graph(options, folder, device, source, entry):
    bounds, shapes, nodes, outputs, function = entry
    name = bounds.__name__
    groups = next(g for g in (16, 4, 2, 1) if options.rows % g == 0)
    extents = {"M": options.rows, "N": options.columns, "B": groups, "S": options.rows // groups}
    draw = lambda dims: torch.randn([extents[d] for d in dims.split()], generator=source).to(torch.bfloat16).to(device)
    inputs = {k: draw(v) for k, v in shapes.items()}
    d_out = {k: draw(next(iter(shapes.values()))) for k in outputs.split()}
    where = {part: os.path.join(folder, f"{name}{part}.yaml") for part in ("", "_fwd", "_bwd")}
    with open(where[""], "w") as file:
        file.write(text_of(name, shapes, nodes, outputs, options.columns))
    command(options.normgen, "grad", where[""], "--wrt=" + ",".join(shapes), "-o", where["_bwd"], "--forward=" + where["_fwd"])
    stored = run(options, folder, name + "_fwd", inputs)[1]
    read, found = run(options, folder, name + "_bwd", inputs | stored | {"d_" + k: v for k, v in d_out.items()})
    found = {k: stored[k] for k in d_out} | found

    expected = by_torch(function, inputs, d_out, torch.float64)
    theirs = by_torch(function, inputs, d_out, torch.bfloat16)
    exact = lambda tensors: {k: Approx(v.double()) for k, v in tensors.items()}
    limits = bounds(exact(inputs), exact(d_out), lambda k, value: value.stored() if k in read else value)
    if set(found) != set(limits):
        raise SystemExit(f"{name}: outputs {sorted(found)}, expected {sorted(limits)}")
    return all([compare(name, k, found[k], expected[k], limits[k], theirs[k]) for k in limits])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("normgen")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--columns", type=int, default=1024)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "little"))
    parser.add_argument("--keep", help="graph files and tensors stay there")
    options = parser.parse_args()
    device = torch.device("cuda" if options.device.startswith("cuda") else "cpu")
    source = torch.Generator().manual_seed(options.seed)
    check_bounds(torch.Generator().manual_seed(options.seed))
    print(f"# {options.rows} x {options.columns} in bf16 on {options.device}, PyTorch {torch.__version__}, seed {options.seed}")
    print("# error against f64: its worst share of what is allowed, its deviation over the values'; the same of PyTorch in bf16")
    print(f"# {'graph':16} {'tensor':8} {'elements':>8} {'failed':>7} {'worst':>9} {'normgen':>10} {'PyTorch':>10} {'worst':>9}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or scratch
        os.makedirs(folder, exist_ok=True)
        passed = [try_graph(options, folder, device, source, entry) for entry in GRAPHS]
    print(f"# {sum(passed)} of {len(passed)} graphs passed")
    return not all(passed)


sys.exit(main())
