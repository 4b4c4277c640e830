#!/bin/sh
# Generated files in other people's builds, through nvcc: two in one translation unit, both with sums in parts, and two
# that are linked, of which one's kernels and launcher are compiled apart with -DNG_ONLY=n. Nothing is run; without a CUDA
# toolkit nothing is compiled.
set -u
. tests/support/check.sh
normgen=${BUILD:-build}/normgen
nvcc=$(command -v nvcc || command -v "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")
scratch=$(mktemp -d) || exit 6
trap 'rm -rf "$scratch"' EXIT

cat >"$scratch/stats.yaml" <<'END'
graph: stats
dims: {M: any, N: 96}
inputs: {x: "bf16[M, N]", w: "f32[N]"}
nodes: {y: x * w, dw: "sum(x, dim=0)"}
outputs: {y: f8e4m3, dw: f32}
END
cat >"$scratch/norm.yaml" <<'END'
graph: norm
dims: {M: any, N: 96}
inputs: {x: "f16[M, N]"}
scalars: {eps: 1e-6}
nodes: {y: "rms_norm(x, None, eps)", m: "sum(x, dim=0)"}
outputs: {y: f16, m: f32}
END
for name in stats norm; do
    check "gen $name" "$normgen" gen "$scratch/$name.yaml" -o "$scratch/$name.cu" --header="$scratch/$name.h"
done
last=$(sed -n 's/.* n = \([0-9]*\) the launcher.*/\1/p' "$scratch/norm.cu")
check "the number of kernels is told" test "${last:-0}" -gt 2
if [ -z "$nvcc" ]; then
    skip "no nvcc: translation units were not compiled"
    finish
fi
compile() { (cd "$scratch" && "$nvcc" -arch=sm_90 -Werror all-warnings "$@" >log 2>&1) || { head -n 8 "$scratch/log"; return 1; }; }

cat >"$scratch/both.cu" <<'END'
#include "stats.cu"
#include "norm.cu"
#include "norm.h"
int main() {
    return stats_launch(0, 0, 0, 0, 1, 0, 0, 0) + norm_launch(0, 0, 0, 1, 1e-6f, 0, 0, 0) + (int)stats_workspace_bytes(1);
}
END
check "two files in one translation unit" compile both.cu -o both
cat >"$scratch/main.cpp" <<'END'
#include "stats.h"
#include "norm.h"
int main() {
    return stats_launch(0, 0, 0, 0, 1, 0, 0, 0) + norm_launch(0, 0, 0, 1, 1e-6f, 0, 0, 0) + (int)stats_workspace_bytes(1);
}
END
objects=
n=0
while [ "$n" -le "$last" ]; do
    check "kernel $n of $last alone" compile "-DNG_ONLY=$n" -c norm.cu -o "norm$n.o"
    objects="$objects norm$n.o"
    n=$((n + 1))
done
# shellcheck disable=SC2086
check "kernels and launcher that were compiled apart" compile main.cpp $objects stats.cu -o apart
finish
