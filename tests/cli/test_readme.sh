#!/bin/sh
# What README shows: every graph in it is generated, and what it says that check, ir, explain, grad and run print is what
# they print, times aside.
set -u
. tests/cli/command.sh

# Indented blocks of README, each into a file of its own, without the indentation. A blank line within a block stays
# part of it, unless a graph begins behind it.
blocks=$scratch/blocks
mkdir "$blocks"
awk -v folder="$blocks" '
    /^    / { line = substr($0, 5)
              if (!inside || (blank && line ~ /^graph: /)) { n++; file = sprintf("%s/%03d", folder, n) }
              else if (blank) print "" >file
              print line >file; inside = 1; blank = 0; next }
    /^$/ { blank = 1; next }
    { inside = 0; blank = 0 }' README.md

graphs=0
for block in "$blocks"/*; do
    name=$(sed -n '1s/^graph: \([a-z0-9_]*\).*/\1/p' "$block")
    [ -n "$name" ] || continue
    graphs=$((graphs + 1))
    cp "$block" "$scratch/$name.yaml"
    check "README's $name is generated" "$normgen" gen "$scratch/$name.yaml" -o "$scratch/$name.cu" -Werror
done
check "README has its graphs" test "$graphs" -ge 7
printf 'graph: typo\ninputs: {x: "bf16[8, 768]", w: "f32[700]"}\nnodes:\n  h: relo(x)\n  y: x * w\noutputs: {y: bf16}\n' >"$scratch/typo.yaml"

# Transcripts: "$ normgen VERB ..." and what follows it, of the verbs whose output is the same everywhere.
case $normgen in /*) command=$normgen ;; *) command=$PWD/$normgen ;; esac
untimed() { sed -E 's/^(compile|launch )  [0-9.]+ (m|u)?s/\1  TIME/'; }
transcript() { # FILE
    arguments=$(sed -n '1s/^\$ normgen //p' "$1")
    sed 1d "$1" | untimed >"$scratch/wanted"
    # shellcheck disable=SC2086
    (cd "$scratch" && "$command" $arguments 2>&1) | untimed >"$scratch/shown"
    diff "$scratch/wanted" "$scratch/shown"
}
transcripts=0
for block in "$blocks"/*; do
    case $(head -n 1 "$block") in
    '$ normgen check '* | '$ normgen ir '* | '$ normgen explain '* | '$ normgen grad '* | '$ normgen run '*--device=host*)
        transcripts=$((transcripts + 1))
        check "README: $(head -n 1 "$block")" transcript "$block"
        ;;
    esac
done
check "README has its transcripts" test "$transcripts" -ge 4
finish
