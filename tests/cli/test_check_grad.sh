#!/bin/sh
# `normgen run --check=grad` where graphs are awkward: numbers that are not finite, casts that round.
set -u
. tests/cli/command.sh
run() { # CODE ARGUMENTS of run
    wanted=$1
    shift
    attempt "$wanted" run --device=host --check=grad "$@"
}
graph=$scratch/graph.yaml back=$scratch/back.yaml

# ---- outputs that are not finite
cat >"$graph" <<'END'
graph: roots
dims: {M: any}
inputs: {x: "f32[M]", w: "f32[M]"}
nodes: {y: sqrt(x), z: w * w}
outputs: {y: f32, z: f32}
END
check "roots of negative numbers" run 0 "$graph" -D M=40
check "are told" says "^grad +[1-9][0-9]* of 40 elements of y are not finite: left out$"
left=$(sed -nE 's/^grad +([0-9]+) of 40 elements of y .*/\1/p' "$out")
check "so are their gradients" says "^grad +d_x: $left of 40 elements are not finite, since outputs are not: left out$"
check "all others are compared" says "^grad +d_x: $((40 - left)) of 40 elements and 4 directions compared with differences, 0 failed, 0 uncertain"
check "of the other input all" says "^grad +d_w: 40 of 40 elements and 4 directions compared with differences, 0 failed, 0 uncertain"
check "of many elements" run 0 "$graph" -D M=1000
check "a sample of the others" says "^grad +d_x: 64 of 1000 elements and 4 directions compared with differences, 0 failed, 0 uncertain"
check "as JSON" run 0 "$graph" -D M=40 --json
one_line() { tr -d '\n\t ' <"$out" >"$out.line" && mv "$out.line" "$out"; }
one_line
check "what is left out" says "\"left_out\":\[\{\"output\":\"y\",\"elements\":40,\"not_finite\":$left\}\]"
check "of each gradient" says "\"name\":\"d_x\",\"elements\":40,\"not_finite\":$left,\"compared\":$((40 - left)),"
check "an output that no gradient comes from" run 0 "$graph" -D M=40 --of=z
check "is nobody's concern" test "$(grep -c "not finite" "$out")" -eq 0
cat >"$back" <<'END'
graph: roots_bwd
dims: {M: any}
inputs: {x: "f32[M]", w: "f32[M]", d_y: "f32[M]", d_z: "f32[M]"}
nodes:
  d_x: where(x > 0, d_y * 0.5 / sqrt(x), 0)
  d_w: d_z * w * 2
outputs: {d_x: f32, d_w: f32}
END
check "a backward graph that gives 0 there" run 0 "$graph" -D M=40 --backward="$back"
sed 's/0\.5/0.4999/' "$back" >"$scratch/wrong.yaml"
check "and one that is wrong elsewhere" run 5 "$graph" -D M=40 --backward="$scratch/wrong.yaml"
check "is wrong there alone" warns "^gradient d_x: $((40 - left)) of 40 elements that the backward graph makes are not the derived"
sed 's/w \* 2/where(w > 0, w, sqrt(w)) * 2/' "$back" >"$scratch/wrong.yaml"
check "not finite where the derived one is" run 5 "$graph" -D M=40 --backward="$scratch/wrong.yaml"
check "is wrong" warns "^gradient d_w: [1-9][0-9]* of 40 elements that the backward graph makes are not the derived"
cat >"$graph" <<'END'
graph: minus_inf
dims: {M: any}
inputs: {x: "f32[M]", w: "f32[M]"}
nodes: {y: "w * x + where(x > 0, 0, -inf)"}
outputs: {y: f32}
END
check "infinities that do not move" run 0 "$graph" -D M=40
check "have a gradient of 0" says "^grad +d_x: 40 of 40 elements and 4 directions compared with differences, 0 failed, 0 uncertain"
cat >"$graph" <<'END'
graph: none
dims: {M: any}
inputs: {x: "f32[M]", w: "f32[M]"}
nodes: {y: sqrt(-1 - abs(x)), z: w * w}
outputs: {y: f32, z: f32}
END
check "no element that is finite" run 5 "$graph" -D M=9
check "is no pass of the output" warns "^output y: none of its 9 elements is finite, so no gradient was checked through it: "
check "nor of the gradient" warns "^gradient d_x: none of its 9 elements is finite, since outputs are not, so nothing of it "
check "the other one holds" test "$(grep -c "d_w" "$err")" -eq 0
check "no element at all" run 0 "$graph" -D M=0
sed 's|sqrt(-1 - abs(x))|"where(x > 0, sqrt(x), w)"|' "$graph" >"$scratch/zero.yaml"
check "gradients that alone are not finite" run 5 "$scratch/zero.yaml" -D M=9
check "are told as such" warns "^gradient d_x: too many uncertain elements, ([1-9]) of 9 .more than 1 in 100.: \1 are not finite, although outputs are, as 0 "

# ---- casts that round
cat >"$graph" <<'END'
graph: mixed
dims: {M: any}
inputs: {x: "f64[M]", w: "f32[M]"}
nodes: {y: x * w}
outputs: {y: f64}
END
off() { says "^grad +$1: as run off by [0-9.e-]+ of its largest element, $2 elements by more than rounding explains, $3 on the other side of a jump${4:-}\$"; }
check "f64 and f32" run 0 "$graph" -D M=40
check "the cast that grad wrote is no reason not to judge" off d_w 0 0
cat >"$back" <<'END'
graph: mixed_bwd
dims: {M: any}
inputs: {x: "f64[M]", w: "f32[M]", d_y: "f64[M]"}
nodes:
  d_x: d_y * w
  d_w: cast(d_y * x, f16)
outputs: {d_x: f64, d_w: f32}
END
check "a cast that somebody wrote" run 0 "$graph" -D M=40 --backward="$back"
check "counts with its rounding" off d_w 0 0
sed 's/d_y \* x/d_y * x * 1.0001/' "$back" >"$scratch/wrong.yaml"
check "which hides nothing" run 5 "$graph" -D M=40 --backward="$scratch/wrong.yaml"
check "in the graph" warns "^gradient d_w: 40 of 40 elements that the backward graph makes are not the derived"
sed 's/cast(d_y \* x, f16)/cast(d_y * x * 1e8, f16) * 1e-8/' "$back" >"$scratch/wrong.yaml"
check "beyond the largest" run 0 "$graph" -D M=40 --backward="$scratch/wrong.yaml"
check "is not checked, and told" off d_w 0 0 ", [1-9][0-9]* not checked, having no finite bound"
check "the verdict too" says "^check +passed, but not for what has no finite bound$"
cat >"$graph" <<'END'
graph: kept
dims: {M: any}
inputs: {x: "f32[M]", w: "f32[M]"}
nodes:
  r: cast(x * w, bf16)
  p: r * r
  y: p * w
outputs: {y: f32}
END
check "rounding on purpose" run 0 "$graph" -D M=40
check "passes its gradient on, and the values after it are judged" off d_x 0 0
check "of what is stored rounded" run 0 "$graph" -D M=40 --save=p
check "as well" off d_w 0 0
check "of the cast itself" run 0 "$graph" -D M=40 --save=r
check "what is saved is a name of the file" off d_x 0 0
for way in "--recompute=r" "--recompute=*" "--recompute=* --save=r"; do
    # shellcheck disable=SC2086
    check "and with $way" run 0 "$graph" -D M=40 $way
done
cat >"$graph" <<'END'
graph: step
dims: {M: any}
inputs: {x: "f32[M]", w: "f32[M]"}
nodes: {y: "where(x > 1.01, x * w, w)"}
outputs: {y: f32}
END
cat >"$back" <<'END'
graph: step_bwd
dims: {M: any}
inputs: {x: "f32[M]", w: "f32[M]", d_y: "f32[M]"}
nodes:
  above: cast(x, f8e4m3) > 1.01
  d_x: where(above, d_y * w, 0)
  d_w: where(above, d_y * x, d_y)
outputs: {d_x: f32, d_w: f32}
END
check "a comparison that rounding turns" run 5 "$graph" -D M=1000 --backward="$back"
check "is seen" warns "^gradient d_x: [0-9]+ of 1000 elements as run .* are on the other side of a comparison"
sed 's/x > 1.01/cast(x, f8e4m3) > 1.01/' "$graph" >"$scratch/cast.yaml"
check "where the forward graph rounds so" run 0 "$scratch/cast.yaml" -D M=1000
check "it is told alone" off d_x 0 "[1-9][0-9]*" ", as casts of the graph may put them"

# ---- what is in f64
cat >"$graph" <<'END'
graph: wide
dims: {M: any}
inputs: {x: "f64[8]", w: "f64[]", m: "bool[M, 8]"}
nodes: {g: "where(m, x, w)", h: x, k: "cast(x * w, f32) * 2"}
outputs: {g: f32, h: f32, k: f32}
END
finely() { says "^grad +$1: as run off by (0|[0-9.]+e-1[5-9]) of its largest element, 0 elements "; }
check "f64 inside, f32 outside" run 0 "$graph" -D M=3000
check "what was broadcast is summed in f64" finely d_x
check "to one number too" finely d_w
cat >"$graph" <<'END'
graph: directions
dims: {M: any}
inputs: {x: "f64[M]"}
nodes: {g: x + x}
outputs: {g: f64}
END
check "sums along directions" run 0 "$graph" -D M=100 --seed=20

# ---- powers
cat >"$graph" <<'END'
graph: powers
dims: {M: any}
inputs: {x: "f64[M]", z: "f32[M]"}
nodes: {g: "x ** 2 ** 2", h: "z ** (2 ** 1)"}
outputs: {g: f64, h: f32}
END
check "whole powers of whole numbers" run 0 "$graph" -D M=40
check "are whole numbers: x may be negative" says "^grad +d_x: 40 of 40 elements and 4 directions compared with differences, 0 failed, 0 uncertain"
check "in f32 too" says "^grad +d_z: 40 of 40 elements and 4 directions compared with differences, 0 failed, 0 uncertain"
check "every output has a bound" says "^check +g: 40 of 40 elements compared, 0 failed, 0 uncertain; worst"
check "what is written" attempt 0 grad "$graph" --verify
check "has them as numbers" says "d_g \\* \(4 \\* x \\*\\* 3\)"
check "and as squares" says "d_h \\* \(2 \\* z\)"

# ---- what is said
first_error() { [ "$(head -n 1 "$err")" = "$1" ] || { echo "standard error is not: $1"; cat "$err"; return 1; }; }
printf 'graph: rest\ndims: {M: any}\ninputs: {x: "f32[M]"}\nnodes: {y: "x[1:] * 2"}\noutputs: {y: f32}\n' >"$graph"
check "a slice of nothing" run 2 "$graph" -D M=0
check "is said as of any launch" first_error "normgen: error: extent 0 of y is -1: an extent is at least 0"
printf 'graph: over\ndims: {M: any, N: 8}\ninputs: {x: "f32[M, N]"}\nnodes: {h: exp(x), y: h * h}\noutputs: {y: {dtype: f32, inplace: x}}\n' >"$scratch/over.yaml"
check "an input that is written over" run 1 "$scratch/over.yaml" -D M=4
check "is told" warns "'y' is written over the input 'x', which the gradients need"
check "what is saved instead" run 0 "$scratch/over.yaml" -D M=4 --save=h
check "is enough" says "^check +passed$"
sed 's/"x\[1:\] \* 2"}/x * 2, dead: x + 1}/' "$graph" >"$scratch/twice.yaml"
check "a knob that does not fit" run 2 "$scratch/twice.yaml" --set f0.vector=3
check "the file and which graph, once" warns "^$scratch/twice.yaml: forward: error: --set f0.vector: there is no kernel .f0."
check "warnings once too" test "$(grep -c "needs the node .dead." "$err")" -eq 1
check "as JSON" run 2 "$scratch/twice.yaml" --set f0.vector=3 --json
check "the same words" says '"error":.*"[^"]*twice.yaml: forward: error: --set'
cat >"$back" <<'END'
graph: twice_bwd
dims: {M: any}
inputs: {d_y: "f32[M]"}
nodes: {d_x: 2 * d_y, idle: d_y + 1}
outputs: {d_x: f32}
END
for code in 0 5; do
    check "warnings about a given graph, with code $code" run $code "$scratch/twice.yaml" --backward="$back"
    check "are told once" test "$(grep -c "^$back:4:23: warning: no output needs the node 'idle'" "$err")" -eq 1
    check "as are those about the forward graph" test "$(grep -c "needs the node 'dead'" "$err")" -eq 1
    sed -i 's/2 \* d_y/3 * d_y/' "$back"
done
sed -i 's/3 \* d_y/2 * d_y/' "$back"
check "as JSON" run 0 "$scratch/twice.yaml" --backward="$back" --json
check "a member of their own" says "\"warnings\":.*no output needs the node 'idle'"
check "-Werror" run 1 "$scratch/twice.yaml" --backward="$back" -Werror
finish
