#!/bin/sh
# Graphs that each aim at one part of the emitted text, run on a device against the oracle, and text that their
# kernels must or must not have. In a graph file:
#     # run: OPTIONS       `normgen run --check` with them passes
#     # text: TEXT         a line of the generated file has it
#     # absent: TEXT       none has it
# Arguments: the files (all). DEVICE: cuda to run them there; NORMGEN: the command.
set -u
. tests/support/check.sh
normgen=${NORMGEN:-${BUILD:-build}/normgen}
scratch=$(mktemp -d) || exit 6
trap 'rm -rf "$scratch"' EXIT
export NO_COLOR=1

directives() { sed -n "s/^# $1: //p" "$2"; }
passes() { # FILE OPTIONS
    # shellcheck disable=SC2086
    "$normgen" run "$1" --device="${DEVICE:-host}" --check --verify $2 >"$scratch/out" 2>&1 && return
    grep -v -E '^(input|device|arch) ' "$scratch/out" | head -n 12
    return 1
}
has() { grep -qF -e "$1" "$scratch/text" || { grep -n '^NG_KERNEL' "$scratch/text"; return 1; }; }
lacks() { ! grep -nF -e "$1" "$scratch/text"; }

[ $# -gt 0 ] || set -- tests/kernels/*.yaml
for file in "$@"; do
    check "gen $file" "$normgen" gen "$file" -o "$scratch/text"
    directives text "$file" >"$scratch/list"
    while read -r text; do check "$file has: $text" has "$text"; done <"$scratch/list"
    directives absent "$file" >"$scratch/list"
    while read -r text; do check "$file lacks: $text" lacks "$text"; done <"$scratch/list"
    directives run "$file" >"$scratch/list"
    check "$file is run" test -s "$scratch/list"
    [ "${DEVICE:-host}" = host ] || sed -i 's/--host-order=[a-z]*//' "$scratch/list"
    while read -r options; do check "run $file $options" passes "$file" "$options"; done <"$scratch/list"
done
finish
