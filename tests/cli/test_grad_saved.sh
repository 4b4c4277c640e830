#!/bin/sh
# What the backward graph reads of the forward one where less than it needs is there: outputs that rounding may have put
# on the other side of a jump, or that lost more than what they are made of.
set -u
. tests/cli/command.sh
back=$scratch/back.yaml forth=$scratch/forth.yaml
run() { # CODE ARGUMENTS of grad
    wanted=$1
    shift
    attempt "$wanted" grad "$@"
}
grad_of() { # NAME [OPTIONS]: of the lines of dims, inputs, nodes and outputs on standard input; both texts are in $out
    name=$1
    shift
    { echo "graph: $name"; cat; } >"$scratch/$name.yaml"
    check "$name" run 0 "$scratch/$name.yaml" -o "$back" --forward="$forth" --verify "$@"
    cat "$back" "$forth" >"$out"
}
lacks() { ! grep -qE -e "$1" "$out" || { echo "there is: $1"; cat "$out"; return 1; }; }
checked() { # NAME [OPTIONS]
    name=$1
    shift
    check "$name is checked" attempt 0 run "$scratch/$name.yaml" --device=host --check=grad -D M=40 "$@"
    check "$name: nothing on the other side" test "$(grep -c ", [1-9][0-9]* on the other side" "$out")" -eq 0
}

# ---- jumps
grad_of bounded <<'END'
dims: {M: any, N: 64}
inputs: {x: "bf16[M, N]", r: "bf16[M, N]"}
nodes:
  h: x + r
  z: clamp(h, -1, 1)
outputs: {h: bf16, z: bf16}
END
check "what is compared with numbers is not read as it was rounded" lacks "as bounded_fwd stores it"
check "nor what it is made of, where that takes more than which elements pass" says "^  saved_and: bool\[M, N\]"
checked bounded
for z in "maximum(h, 1.1)" "where(h * 2 < r, h, r)" "abs(h - 0.5) * h" "relu(h + 1)" "h * floor(h * 3)" "h % 0.3 * h" \
    "h // 0.2 * h" "where(cast(h * 5, i32) == 2, r, 0) * h"; do
    grad_of jump <<END
dims: {M: any, N: 64}
inputs: {x: "bf16[M, N]", r: "bf16[M, N]"}
nodes:
  h: x * r
  z: $z
outputs: {h: bf16, z: bf16}
END
    check "$z: not as it was rounded" lacks "^  h: bf16.*as jump_fwd stores it"
    checked jump
done
# rounding to bf16 leaves signs as they are; to f16, small numbers become 0
signs() { # DTYPE Z
    grad_of sign --wrt=x <<END
dims: {M: any, N: 64}
inputs: {x: "$1[M, N]", r: "$1[M, N]"}
nodes:
  h: x * r
  z: $2
outputs: {h: $1, z: $1}
END
}
for z in "relu(h)" "abs(h * r)" "relu(h / r)" "minimum(0, -h)"; do
    signs bf16 "$z"
    check "$z: h as it was rounded" says "^  h: bf16.*as sign_fwd stores it"
done
signs bf16 "h - floor(h) + where(h > 0.5, 1, 0)"
check "jumps that no gradient uses" lacks "^  h: bf16.*# |saved"
signs f16 "relu(h)"
check "the sign of what may be 0 in f16" lacks "^  h: f16.*as sign_fwd stores it"
signs f16 "h * h"
check "is the reason" says "^  h: f16.*as sign_fwd stores it"

# ---- what operands have lost
for scale in "bf16[1]" "bf16[M, 1]" "bf16[N]"; do
    grad_of small --wrt=x <<END
dims: {M: any, N: 64}
inputs: {x: "f32[M, N]", s: "$scale"}
nodes: {y: "softmax(x * s, dim=-1)"}
outputs: {y: bf16}
END
    check "a small operand in bf16, $scale, makes nothing of a whole one" lacks "as small_fwd stores it"
done
grad_of whole --wrt=x <<'END'
dims: {M: any, N: 64}
inputs: {x: "f32[M, N]", s: "bf16[M, N]"}
nodes: {y: "softmax(x * s, dim=-1)"}
outputs: {y: bf16}
END
check "an operand of as many elements" says "^  .y.: bf16.*as whole_fwd stores it"
finish
