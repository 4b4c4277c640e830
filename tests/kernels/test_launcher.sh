#!/bin/sh
# The emitted launcher against what is written out here: grid, variant by alignment, order of arguments, refusals.
set -u
. tests/support/check.sh
normgen=${BUILD:-build}/normgen
scratch=$(mktemp -d) || exit 6
trap 'rm -rf "$scratch"' EXIT

cat >"$scratch/sample.yaml" <<'END'
graph: sample
dims: {M: any, N: 64}
inputs: {x: "f32[M, N]", r: "f32[M, N]", w: "f32[N]"}
scalars: {eps: 1e-6}
nodes: {h: x + r, y: "rms_norm(h, w, eps)"}
outputs: {y: f32, h: {dtype: f32, inplace: r}}
END
# 8 rows a CTA and 16 threads a row, so that 17 rows take 3 CTAs
check "gen" "$normgen" gen "$scratch/sample.yaml" --set=row_threads=16 --set=rows=8 --set=vector=4 -o "$scratch/sample.cu"
sed -n '/^#include <cuda_runtime.h>/,/^#endif/p' "$scratch/sample.cu" | grep -v '^#' |
    sed 's/\([A-Za-z0-9_]*\)<<<\(.*\)>>>(/LAUNCH("\1", \2, /' >"$scratch/launcher.inc"
check "the launcher is found" grep -q 'LAUNCH("' "$scratch/launcher.inc"
check "it is C++" "${CXX:-c++}" -std=c++17 -Wall -Werror "-DLAUNCHER_TEXT=\"$scratch/launcher.inc\"" \
    tests/kernels/launcher.cpp -o "$scratch/launcher"
"$scratch/launcher" >"$scratch/out"
cat >"$scratch/wanted" <<'END'
workspace 0
sample_f0_aligned 3 128 0 stream: +0 +64 +128 0.5 +192 +256 17
sample_f0_aligned 2 128 0 stream: +0 +64 +128 0.5 +192 +256 16
sample_f0_any 1 128 0 stream: +8 +64 +128 0.5 +192 +256 1
sample_f0_any 1 128 0 stream: +0 +72 +128 0.5 +192 +256 1
sample_f0_any 1 128 0 stream: +0 +64 +136 0.5 +192 +256 1
sample_f0_any 1 128 0 stream: +0 +64 +128 0.5 +200 +256 1
sample_f0_any 1 128 0 stream: +0 +64 +128 0.5 +192 +264 1
status 1
status 9
END
check "what it launches" diff "$scratch/wanted" "$scratch/out"
finish
