#!/bin/sh
# Kernel bodies speak through ng_ helpers alone: no raw asm, shuffles, barriers, thread indices, shared arrays or vector
# types, in the skeletons and in what is emitted for every example.
set -u
. tests/support/check.sh
build=${BUILD:-build}
forbidden='asm|__asm__|__shfl[a-z_]*|__syncthreads|__syncwarp|threadIdx|blockIdx|blockDim|gridDim|__shared__|__restrict|(float|int|uint|double|half|__half|bfloat16|__nv_bfloat16)[1-4]?_?[24]'

# The bodies of the kernels in a text: from a line with __global__ to the brace that closes it.
bodies() { awk '/__global__/ {inside = 1} inside && /^[^\/]*[{]/ {open = 1} inside && open {print} /^[}]/ {inside = 0; open = 0}' "$1" | sed 's|//.*||; s|/\*.*\*/||'; }
clean() {
    found=$(bodies "$1" | grep -nwE "($forbidden)")
    [ -z "$found" ] || { echo "$1: $found"; return 1; }
}
for skeleton in templates/*.cu; do
    [ -e "$skeleton" ] || continue
    check "$skeleton uses helpers alone" clean "$skeleton"
done
if [ -x "$build/normgen" ]; then
    for graph in examples/*.yaml; do
        out=$build/lint-$(basename "$graph" .yaml).cu
        check "gen $graph" "$build/normgen" gen "$graph" -o "$out"
        check "kernels of $graph are found" test -n "$(bodies "$out")"
        check "kernels of $graph use helpers alone" clean "$out"
        rm -f "$out"
    done
fi
finish
