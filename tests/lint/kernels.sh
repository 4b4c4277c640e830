#!/bin/sh
# Kernel bodies speak through ng_ helpers alone: no raw asm, shuffles, barriers, thread indices, shared arrays or vector
# types, in the skeletons and in what is emitted for every example.
set -u
. tests/support/check.sh
build=${BUILD:-build}
forbidden='asm|__asm__|__shfl[a-z_]*|__syncthreads|__syncwarp|threadIdx|blockIdx|blockDim|gridDim|__shared__'
forbidden="$forbidden|(char|short|int|uint|long|longlong|float|double|half|__half|__nv_bfloat16)[1-4]|__half2|__nv_bfloat162"

uncommented() { sed 's|//.*||; s|/\*[^*]*\*/||g'; }
# A kernel's body is a function with parameters p_NAME; the helpers before it have none.
bodies() { awk '/^NG_(HELPER|KERNEL).* void .*[^a-z_]p_[A-Za-z_]/ {inside = 1} inside {print} /^[}]/ {inside = 0}' "$1" | uncommented; }
skeleton() { sed -n '/\/\/@ begin/,/\/\/@ end/p' "$1" | uncommented; }
clean() { # TEXT-COMMAND FILE
    found=$("$1" "$2" | grep -nwE "($forbidden)")
    [ -z "$found" ] || { echo "$2: $found"; return 1; }
}
for file in templates/*.cu; do
    check "$file has a skeleton" test -n "$(skeleton "$file")"
    check "$file uses helpers alone" clean skeleton "$file"
done
if [ -x "$build/normgen" ]; then
    for graph in examples/*.yaml; do
        out=$build/lint-$(basename "$graph" .yaml).cu
        check "gen $graph" "$build/normgen" gen "$graph" -o "$out"
        check "kernels of $graph are found" test -n "$(bodies "$out")"
        check "kernels of $graph use helpers alone" clean bodies "$out"
        rm -f "$out"
    done
fi
finish
