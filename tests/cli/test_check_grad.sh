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
finish
