#!/bin/sh
# One example through the whole of normgen, on whatever device there is. `make demo` builds first.
set -u
normgen=${BUILD:-build}/normgen
graph=examples/add_layer_norm_gelu.yaml
out=${BUILD:-build}/add_layer_norm_gelu.cu
say() { printf '\n$ %s\n' "$*"; }
must() {
    say "$@"
    "$@" || exit $?
}
say cat "$graph"
cat "$graph"
must "$normgen" gen "$graph" -o "$out"
echo "$(wc -l <"$out") lines of CUDA C; the kernel's last phase:"
awk '/^    \/\/ phase 2/ {inside = 1} /^[}]/ {inside = 0} inside {print}' "$out"
say "$normgen" compile "$graph"
"$normgen" compile "$graph"
status=$? # 9: no NVRTC on this machine; the host device below needs none
[ "$status" -eq 0 ] || [ "$status" -eq 9 ] || exit "$status"
must "$normgen" run "$graph" -D M=64 --check
