#!/bin/sh
# What the backward graph reads of the forward one where less than it needs is there: outputs that rounding may have put
# on the other side of a jump, that lost more than what they are made of, or that are exact.
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
signs bf16 "relu(h + 1)"
check "a sum of what was rounded" lacks "as sign_fwd stores it"
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
# ---- fp8, which saturates
grad_of eighths <<'END'
dims: {M: any}
inputs: {x: "f8e4m3[M]"}
nodes: {y: exp(x), z: sqrt(y)}
outputs: {y: f8e4m3, z: f8e4m3}
END
check "what was computed is not read in fp8" lacks "as eighths_fwd stores it"
checked eighths
grad_of cast --wrt=r <<'END'
dims: {M: any}
inputs: {x: "f32[M]", r: "f32[M]"}
nodes: {q: "cast(exp(x), f8e4m3)", y: q * r}
outputs: {q: f8e4m3, y: f32}
END
check "what the graph itself rounds to fp8" says "^  q: f8e4m3.*as cast_fwd stores it"

# ---- bools and integers
grad_of kept --wrt=x <<'END'
dims: {M: any, N: 64}
inputs: {x: "bf16[M, N]", r: "bf16[M, N]"}
nodes: {h: x * r, keep: h > 0.5, y: "where(keep, h * 2, 0)"}
outputs: {y: bf16, keep: bool}
END
check "a mask that is an output" says "^  keep: bool.*as kept_fwd stores it"
check "is read instead of what it is made of" test "$(grep -c "^  x: " "$back")" -eq 0
checked kept
grad_of counted <<'END'
dims: {M: any, N: 64}
inputs: {x: "f32[M, N]", r: "i64[M, N]"}
nodes: {k: "r * r + 7 * r", y: "where(k > 5, x, 0)", z: "x * cast(k, f32)"}
outputs: {y: f32, z: f32, k: i64}
END
check "an integer" says "^  k: i64.*as counted_fwd stores it"
checked counted
sed -i 's/k: i64}/k: i32}/' "$scratch/counted.yaml"
check "an integer that wraps" run 0 "$scratch/counted.yaml"
check "does not stand for one that does not" lacks "^  k: i32"
grad_of largest <<'END'
inputs: {x: "f32[8]", z: "f32[8]"}
nodes: {y: amax(x * z)}
outputs: {y: f32}
END
check "gradients of a graph that stores a mask" run 0 "$forth" --forward="$scratch/again.yaml" -o "$scratch/second.yaml"
cat "$scratch/second.yaml" "$scratch/again.yaml" >"$out"
check "read it" says "^  saved_eq: bool.*as largest_fwd_fwd stores it"
check "and store it once" lacks "saved_eq_|saved by"
# ---- inputs that are written over
grad_of over --wrt=x <<'END'
dims: {M: any, N: 8}
inputs: {x: "f32[M, N]", w: "f32[N]"}
nodes:
  v: x * w
  a: amax(v, dim=-1)
  y: v * 2
outputs: {y: {dtype: f32, inplace: x}, a: f32}
END
check "which element is the largest is stored" says "^  saved_eq: bool.*saved by over_fwd"
checked over --wrt=x
check "--save names it" run 0 "$scratch/over.yaml" --wrt=x --save=saved_eq -o "$back"
check "--recompute=* leaves it" run 0 "$scratch/over.yaml" --wrt=x --recompute='*' -o "$back"
check "--recompute of it" run 2 "$scratch/over.yaml" --wrt=x --recompute=saved_eq
check "--recompute is told" warns "6:6: error: --recompute leaves .*: 'saved_eq' is made of the input 'x', which 'y' is written over$"
for option in "--save=v" "--save=saved_eq" "--recompute=*" "--recompute=a"; do
    check "what needs x itself, $option" run 1 "$scratch/over.yaml" "$option"
    check "is told as such" warns "8:11: error: 'y' is written over the input 'x', which the gradients need"
done
grad_of half <<'END'
dims: {M: any, N: 64}
inputs: {x: "f32[M, N]", w: "f32[M, N/2]"}
nodes: {y: "x[:, :N/2] * 2 + silu(x[:, N/2:]) * w"}
outputs: {y: {dtype: f32, inplace: "x[:, :N/2]"}}
END
check "a slice beside what is written over is read" says "^  t1: x\\[:, N/2:\\]"
check "as an input" lacks "saved by|as half_fwd stores it"
checked half
check "it runs" attempt 0 run "$back" --device=host -D M=9 --check
sed -i 's/x\[:, :N\/2\] \* 2/silu(x[:, :N\/2])/' "$scratch/half.yaml"
check "the slice that is" run 1 "$scratch/half.yaml"
check "is not" warns "error: 'y' is written over the input 'x', which the gradients need"
sed -i 's/\[:, N\/2:\]/[:, N\/4:3*N\/4]/; s/silu(x\[:, :N\/2\])/w/; s/inplace: "x\[:, :N\/2\]"/inplace: "x[:, N\/4:3*N\/4]"/' "$scratch/half.yaml"
check "nor the same one" run 1 "$scratch/half.yaml"
finish
