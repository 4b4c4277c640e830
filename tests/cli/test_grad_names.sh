#!/bin/sh
# Names in what `normgen grad` writes: those of gradients are theirs, whatever parts of composites would be called.
set -u
. tests/cli/command.sh
graph=$scratch/graph.yaml back=$scratch/back.yaml forth=$scratch/forth.yaml
run() { # CODE ARGUMENTS of grad
    wanted=$1
    shift
    attempt "$wanted" grad "$@"
}
in_file() { grep -qE -e "$2" "$1" || { echo "$1 lacks: $2"; cat "$1"; return 1; }; }
# WHAT [OPTIONS]: of the graph's lines on standard input both graphs are made, and hold
makes() {
    what=$1
    shift
    cat >"$graph"
    check "$what" run 0 "$graph" -o "$back" --forward="$forth" --verify "$@"
    check "$what: against differences" attempt 0 run "$graph" --check=grad --device=host "$@"
    check "$what: as it was written" attempt 0 run "$forth" --check=grad --backward="$back" --device=host $(printf '%s\n' "$@" | grep prefix)
}
makes "a part of one node, and the gradient of another" <<'END'
graph: parts
inputs: {x: "f32[4, 8]", u: "f32[4, 8]"}
nodes: {d: "softmax(x, dim=-1)", e: "rms_norm(u, eps=1e-5)", f: "softmax(u, dim=-1)"}
outputs: {d: f32, e: f32, f: f32}
END
check "the gradient comes in as d_e" in_file "$back" "^  d_e: f32\[4, 8\]"
makes "a deviation, and an output of its name" <<'END'
graph: deviations
inputs: {x: "f32[4, 8]", u: "f32[4, 8]"}
nodes: {d: "rms_norm(x, eps=1e-5)", f: "rms_norm(u * x, eps=1e-5)", rstd: x * u}
outputs: {d: f32, f: f32, rstd: f32}
END
check "the gradient comes in as d_rstd" in_file "$back" "^  d_rstd: f32\[4, 8\]"
check "the deviation has another name" in_file "$back" "^  d_rstd_2: "
makes "a prefix that makes a part's name" --prefix=x <<'END'
graph: prefixed
inputs: {x: "f32[4, 8]", hat: "f32[8]"}
nodes: {y: "layer_norm(x, hat, eps=1e-5)"}
outputs: {y: f32}
END
check "the gradient goes out as xhat" in_file "$back" "^  xhat: f32$"
makes "a gradient that is not asked for" --of=d --wrt=x <<'END'
graph: parts
inputs: {x: "f32[4, 8]", u: "f32[4, 8]"}
nodes: {d: "rms_norm(x, eps=1e-5)", f: "rms_norm(x * u, eps=1e-5)", rstd: x * u}
outputs: {d: f32, f: f32, rstd: f32}
END
check "is not taken for a part that is saved" in_file "$back" "^  d_rstd_2: .*saved"
makes "that of a node" --of=y <<'END'
graph: node
inputs: {x: "f32[4, 8]"}
nodes: {h: exp(x), y: tanh(h) * h}
outputs: {y: f32, h: f32}
END
check "has the name of its output's where that does not come in" in_file "$back" "^  d_h: d_y"

# ---- what is refused still is
cat >"$graph" <<'END'
graph: both
inputs: {x: "f32[8]"}
nodes: {y: x * 2}
outputs: {y: f32, x2: {dtype: f32, of: x}, d_y: {dtype: f32, of: y}}
END
check "an output's name" run 1 "$graph"
check "with the place" warns "graph.yaml:4:11: error: the gradient of 'y' is called d_y, and the graph has that name"
finish
