#!/bin/sh
# `normgen grad` and `explain --grad`, option by option: both graph files, what is refused and where, nothing written by
# halves, and the way from the forward graph to gradients on the host device.
set -u
. tests/cli/command.sh
run() { # CODE ARGUMENTS of grad
    wanted=$1
    shift
    attempt "$wanted" grad "$@"
}
prints() { # PATTERN ARGUMENTS of grad
    pattern=$1
    shift
    run 0 "$@" && says "$pattern"
}
in_file() { grep -qE -e "$2" "$1" || { echo "$1 lacks: $2"; cat "$1"; return 1; }; }
absent() { for file; do [ ! -e "$file" ] || { echo "$file is there"; return 1; }; done; }
back=$scratch/back.yaml forth=$scratch/forth.yaml
# CODE PATTERN ARGUMENTS...: refused in words, and neither file is there
nothing() {
    code=$1 pattern=$2
    shift 2
    rm -f "$back" "$forth"
    refuses "$code" "$pattern" "$@" -o "$back" --forward="$forth" && absent "$back" "$forth" &&
        [ -z "$(ls "$scratch" | grep part)" ]
}

graph=$scratch/add_norm.yaml
cat >"$graph" <<'END'
graph: add_norm
types: {E: bf16}
dims: {M: any, N: 96}
inputs: {x: "E[M, N]", r: "E[M, N]", w: "f32[N]", ids: "i64[M]", mask: "bool[N]"}
scalars: {eps: 1e-5}
nodes:
  h: x + r
  y: rms_norm(h, w, eps)
  kept: where(mask, y, 0)
  last: ids + 1
outputs: {kept: E, h: E, last: i64}
END

# ---- what it makes
check "grad" prints "d_kept: E\[M, N\]" "$graph"
check "by default of every float input" says "^  d_x: "
check "of every one" says "^  d_r: "
check "with its dtype" says "^  d_w: f32"
check "from every float output" says "d_h: E\[M, N\]"
check "no other" test "$(grep -c 'd_ids\|d_mask\|d_last' "$out")" -eq 0
cp "$out" "$scratch/all.yaml"
check "the same bytes each time" run 0 "$graph"
check "so they are" cmp -s "$out" "$scratch/all.yaml"
check "-o - is standard output" run 0 "$graph" -o -
check "so it is" cmp -s "$out" "$scratch/all.yaml"
check "-o and --forward" run 0 "$graph" -o "$back" --forward="$forth"
check "say nothing" test ! -s "$out" -a ! -s "$err"
check "-o writes what it prints" cmp -s "$back" "$scratch/all.yaml"
check "the forward graph keeps its outputs" in_file "$forth" "kept: "
check "all of them" in_file "$forth" "last: "
check "--forward=-" run 0 "$graph" -o "$back" --forward=-
check "prints the forward graph" cmp -s "$out" "$forth"
check "the backward one alone" run 0 "$graph" -o "$back"
check "what the forward one has to store is told" warns "note: the backward graph reads .*; --forward=FILE writes one"
check "both compile" "$normgen" gen "$back" -Werror -o "$scratch/back.cu"
check "both of them" "$normgen" gen "$forth" -Werror -o "$scratch/forth.cu"
piped() { "$normgen" grad - --forward="$scratch/piped.yaml" <"$graph" >"$out" 2>"$err" && cmp -s "$out" "$scratch/all.yaml"; }
check "a graph on standard input" piped
check "--verify: they read back" run 0 "$graph" --verify
for example in examples/*.yaml; do
    check "$example" run 0 "$example" --verify -o "$back" --forward="$forth"
    check "its gradients compile" "$normgen" gen "$back" -Werror -o "$scratch/back.cu"
    check "its forward graph too" "$normgen" gen "$forth" -Werror -o "$scratch/forth.cu"
done

# values that are read as they were rounded, through views and in other arithmetic
pairs="bf16:bf16 f16:f32 f64:f64 f64:f32 f64:bf16 f32:f64 bf16:f8e4m3" ways="- --recompute=h --save=xhat --recompute=rstd"
[ -z "${NORMGEN_TEST_REDUCED:-}" ] || { pairs="bf16:bf16 f64:f32" ways="-"; }
for types in $pairs; do
    cat >"$scratch/rounded.yaml" <<END
graph: rounded
dims: {M: any, N: 24}
inputs: {x: "${types%:*}[M, N]"}
nodes:
  s: softmax(x, -1)
  l: logsumexp(x, -1)
  a: amax(x, -1)
  e: exp(reshape(x, [M, N/8, 8]))
outputs: {s: ${types#*:}, l: ${types#*:}, a: ${types#*:}, e: ${types#*:}}
END
    check "rounded $types" run 0 "$scratch/rounded.yaml" --verify -o "$back" --forward="$forth"
    check "rounded $types: it runs" attempt 0 run "$back" --device=host -D M=3 --check
done

# ---- options
check "--wrt" prints "^  d_w: " "$graph" --wrt=w
check "nothing else" test "$(grep -c 'd_x\|d_r' "$out")" -eq 0
check "--wrt=a,b" prints "^  d_x: " "$graph" --wrt=w,x
check "repeated" run 0 "$graph" --wrt w --wrt x
check "is the same" says "^  d_x: "
check "--of" prints "d_kept" "$graph" --of=kept
check "no other output" test "$(sed -n "/^inputs/,/^nodes/p" "$out" | grep -c d_h)" -eq 0
check "--save" run 0 "$graph" --save=xhat -o "$back" --forward="$forth"
check "the backward graph reads it" in_file "$back" "^  xhat: f32\[M, N\]"
check "the forward one stores it" in_file "$forth" "^  xhat: f32"
check "--recompute" run 0 "$graph" --recompute=h -o "$back"
check "the backward graph computes it" in_file "$back" "^  h: x \+ r$"
check "-D of a type" prints "^  E: f16$" "$graph" -D E=f16
check "-D of a dim" prints "N\"?: 48" "$graph" -D N=48
check "--hint" prints "hint: 4096" "$graph" --hint M=4096
check "--fix" prints "M: 64" "$graph" --fix M=64
check "-v" run 0 "$graph" -v
check "-v: what is read" warns "^  reads +"
check "-v: in bytes" warns "^  read +[0-9]+\*M.* = [0-9]+: "
check "-v: what is saved" warns "^  saved +4\*M = 4096: "
check "-v: autograd" warns "^  autograd +[0-9]+\*M.* = [0-9]+: kept by PyTorch's autograd: "
check "-v: the graph stays on standard output" says "^graph: "
check "-Werror" run 0 "$graph" -Werror
check "--help" prints "^normgen grad GRAPH" --help
for option in -o --forward --wrt --of --save --recompute --prefix -D --hint --fix --json; do check "--help: $option" says "^  $option"; done
check "no knobs" refuses 2 "set is no option of grad" "$graph" --set fuse=off

# ---- JSON
check "--json" run 0 "$graph" --json
check "holds the backward graph" says '"backward":.*ngraph: add_norm_bwd'
check "the forward one" says '"forward":.*ngraph: add_norm_fwd'
check "what is read" says '"source":.*"saved"'
check "bytes" says '"formula":.*"4\*M"'
check "autograd" says '"autograd_keeps":'
check "--json -o" run 0 "$graph" --json -o "$back"
check "names the file" says '"backward":.*back.yaml"'
check "which is there" cmp -s "$back" "$scratch/all.yaml"
check "--json of a failure" run 2 "$graph" --json --wrt=z
check "holds it" says '"error":.*.z. is no input of the graph'

# ---- refused: usage
check "no graph" refuses 2 "grad needs GRAPH"
check "no file" nothing 6 "No such file" "$scratch/none.yaml"
check "both into one file" refuses 2 "are one file" "$graph" -o "$scratch/one" --forward="$scratch/one"
check "it is not there" absent "$scratch/one"
check "both on standard output" refuses 2 "cannot both go to standard output" "$graph" --forward=-
check "by its path too" refuses 2 "^normgen: error: --forward=- and the backward graph cannot both go to standard output" "$graph" -o /dev/stdout --forward=-
check "or the other's" refuses 2 "^normgen: error: --forward=/dev/stdout and the backward graph cannot both go to standard" "$graph" -o - --forward=/dev/stdout
check "or the other's alone" refuses 2 "^normgen: error: --forward=/dev/stdout and the backward graph cannot both go to standard" "$graph" --forward=/dev/stdout
through_pipe() { # ARGUMENTS
    "$normgen" grad "$graph" "$@" 2>"$err" | cat >"$out"
    [ ! -s "$out" ] && warns "(cannot both go to standard output|are one file)"
}
check "where it is a pipe" through_pipe -o /dev/stdout --forward=-
check "or both are its path" through_pipe -o /dev/stdout --forward=/dev/stdout
check "both onto one device" refuses 2 "are one file" "$graph" -o /dev/full --forward=/dev/full
check "both to nowhere" run 0 "$graph" -o /dev/null --forward=/dev/null
check "one by its path" run 0 "$graph" -o "$scratch/one.yaml" --forward=/dev/stdout
check "onto the graph" refuses 2 "would overwrite the graph" "$graph" -o "$graph"
check "the forward one onto it" refuses 2 "would overwrite the graph" "$graph" -o "$back" --forward="$graph"
check "which is what it was" in_file "$graph" "^graph: add_norm$"
check "--wrt: no such input" nothing 2 "'xx' is no input of the graph; did you mean 'x'" "$graph" --wrt=xx
check "--wrt: a node" nothing 2 "'y' is no input of the graph: it is a node" "$graph" --wrt=y
check "--wrt: an output" nothing 2 "'h' is no input of the graph: it is an output" "$graph" --wrt=h
check "--wrt: an integer" nothing 1 "add_norm.yaml:4:[0-9]+: error: 'ids' is of i64: only floats" "$graph" --wrt=ids
check "--wrt: a scalar" nothing 2 "'eps' is no input of the graph: it is a scalar" "$graph" --wrt=eps
check "--wrt: nothing" nothing 2 "--wrt: a name is missing" "$graph" --wrt=
check "--wrt: twice" nothing 2 "--wrt=x: it is named twice" "$graph" --wrt=x,x
check "--of: no such output" nothing 2 "'kep' is no output of the graph; did you mean 'kept'" "$graph" --of=kep
check "--of: an integer" nothing 1 "add_norm.yaml:11:26: error: the output 'last' is of i64: only floats" "$graph" --of=last
check "--save: no such node" nothing 2 "--save=rst: no value .*; did you mean 'rstd'" "$graph" --save=rst
cat >"$scratch/two.yaml" <<'END'
graph: two
dims: {M: any}
inputs: {x: "f32[M, 8]", z: "f32[M, 8]"}
nodes: {q: "rms_norm(x, eps=1e-6)", k: "rms_norm(z, eps=1e-6)"}
outputs: {q: f32, k: f32}
END
check "--save: of which norm" nothing 2 "--save=rstd: no value .*; did you mean 'q_rstd' or 'k_rstd'\?" "$scratch/two.yaml" --save=rstd
check "--recompute: no such node" nothing 2 "--recompute=xha: no value .*; did you mean 'xhat'" "$graph" --recompute=xha
check "--save: what is not needed" nothing 2 "--save=y: the gradients do not need it" "$graph" --save=y
check "--save: an input" nothing 2 "--save=x: it is an input" "$graph" --save=x
check "--save and --recompute" nothing 2 "--save=xhat: --recompute names it too" "$graph" --save=xhat --recompute=xhat
check "--save: not everything" nothing 2 "--save=\*: no value" "$graph" "--save=*"
check "--prefix: a name's beginning" nothing 2 "--prefix=2_: names begin with it" "$graph" --prefix=2_
check "--prefix: nothing" nothing 2 "--prefix=: names begin with it" "$graph" --prefix=
check "-D: no such dim" nothing 2 "no dim or type 'K'" "$graph" -D K=3

# ---- refused: graphs
bad() { # NAME, the file's lines on standard input
    cat >"$scratch/$1.yaml"
}
bad far <<'END'
graph: far
inputs: {x: "f32[8]", z: "f32[8]"}
nodes: {y: x * 2, k: z * 2}
outputs: {y: f32, k: f32}
END
check "an output that depends on none" nothing 1 "far.yaml:4:11: error: the output 'y' does not depend on" "$scratch/far.yaml" --wrt=z --of=y
check "an input that none depends on" nothing 1 "far.yaml:2:[0-9]+: error: no output whose gradient .* depends on 'z'" "$scratch/far.yaml" --wrt=x,z --of=y
bad gather <<'END'
graph: gather
inputs: {table: "f32[5, 8]", ids: "i64[3]"}
nodes:
  y: table[ids] * 2
outputs: {y: f32}
END
check "a gathered operand" nothing 1 "gather.yaml:4:6: error: there is no gradient through a gathered operand" "$scratch/gather.yaml"
bad over <<'END'
graph: over
inputs: {x: "f32[4, 8]"}
nodes:
  y: exp(x * x)
outputs: {y: {dtype: f32, inplace: x}}
END
check "an input that is written over" nothing 1 "over.yaml:5:11: error: 'y' is written over the input 'x', which the gradients need" "$scratch/over.yaml"
bad clash <<'END'
graph: clash
inputs: {x: "f32[8]"}
nodes:
  d_x: x * 2
  y: d_x * x
outputs: {y: f32}
END
check "a name that is taken" nothing 1 "clash.yaml:2:10: error: the gradient of 'x' is called d_x, and the graph has that name" "$scratch/clash.yaml"
bad wrong <<'END'
graph: wrong
inputs: {x: "f32[8]"}
nodes: {y: relo(x)}
outputs: {y: f32}
END
check "a graph that is none" nothing 1 "wrong.yaml:3:[0-9]+: error: unknown operation 'relo'" "$scratch/wrong.yaml"
bad counts <<'END'
graph: counts
inputs: {i: "i64[8]"}
nodes: {y: i * 2}
outputs: {y: i64}
END
check "no float at all" nothing 1 "no float output depends on a float input, or only through .*floor" "$scratch/counts.yaml"
bad dead <<'END'
graph: dead
inputs: {x: "f32[8]"}
nodes: {y: x * 2, z: x * 3}
outputs: {y: f32}
END
check "warnings are told" run 0 "$scratch/dead.yaml"
check "with their place" warns "dead.yaml:3:[0-9]+: warning: "
check "-Werror" nothing 1 "error: .*z" "$scratch/dead.yaml" -Werror

# ---- files that cannot be written
check "a full disk" refuses 6 "No space left" "$graph" -o /dev/full
rm -f "$back" "$forth"
check "of the forward graph" refuses 6 "No space left" "$graph" -o "$back" --forward=/dev/full
check "leaves no backward one" absent "$back"
check "no such folder" refuses 6 "No such file" "$graph" -o "$back" --forward="$scratch/none/f.yaml"
check "leaves no backward one either" absent "$back"
echo old >"$back"
check "an old file" refuses 6 "No such file" "$graph" -o "$back" --forward="$scratch/none/f.yaml"
check "stays" in_file "$back" "^old$"
long=examples/rms_norm_shared_bwd.yaml # whose gradients take more than a block
limited() { (ulimit -f 1; "$normgen" grad "$long" -o "$back" --forward="$forth" 2>"$err"); [ $? -eq 6 ]; }
check "beyond the limit of a file" limited
check "stays too" in_file "$back" "^old$"
check "no part is left" test -z "$(ls "$scratch" | grep part)"
check "a full standard output" sh -c '"$1" grad "$2" >/dev/full 2>/dev/null; [ $? -eq 6 ]' sh "$normgen" "$graph"

# ---- explain
explains() { # PATTERN ARGUMENTS
    pattern=$1
    shift
    attempt 0 explain "$@" && says "$pattern"
}
check "explain --grad" explains "^add_norm: .*d_x, d_r, d_w from d_kept, d_h$" "$graph" --grad
check "what is saved" says "^  saved +4\*M = 4096: "
check "what is computed again" says "^  recompute +"
check "what autograd keeps" says "^  autograd +"
check "then kernels" says "^kernel f0, 1 of 2$"
check "the backward one's" says "^  writes .*d_x bf16\[M, 96\]"
check "--wrt alone asks for it too" explains "^add_norm: d_w from d_kept$" "$graph" --wrt=w
check "with knobs of its kernels" explains "fuse" "$graph" --grad --set fuse=off
check "at the hints" explains "^  saved +4\*M = 16384: " "$graph" --grad --hint M=4096
check "dims and types once" explains "h f16\[7, 48\]" "$graph" --grad -D E=f16 -D N=48 --fix M=7
check "--json" explains '"grad":' "$graph" --grad --json
check "with the kernels" says '"kernels":'
check "a bad name" attempt 2 explain "$graph" --wrt=zz
check "without any of them it is the forward graph's" explains "^  writes .*kept bf16" "$graph"

# ---- the chain
device="--device=host -D M=33"
check "forward and backward" run 0 "$graph" -o "$back" --forward="$forth"
# shellcheck disable=SC2086
check "the forward graph runs" attempt 0 run "$forth" $device --check --outputs="$scratch/forth.safetensors"
# shellcheck disable=SC2086
check "the backward one reads what it stored" attempt 0 run "$back" $device --check --inputs="$scratch/forth.safetensors" --outputs="$scratch/back.safetensors"
check "from that file" says "^input +h bf16\[33, 96\] .*forth.safetensors"
piped() {
    # shellcheck disable=SC2086
    "$normgen" grad "$graph" 2>/dev/null | "$normgen" run - $device --check >"$out" 2>"$err" && says "check +passed"
}
check "grad | run" piped
# as a person writes it, of the same inputs
cat >"$scratch/hand.yaml" <<'END'
graph: by_hand
dims: {M: any, N: 96}
inputs: {x: "bf16[M, N]", r: "bf16[M, N]", w: "f32[N]", mask: "bool[N]", d_kept: "bf16[M, N]", d_h: "bf16[M, N]"}
nodes:
  h: x + r
  rstd: rsqrt(mean(h * h, -1, True) + 1e-5)
  dy: where(mask, d_kept, 0)
  g: dy * w
  n: h * rstd
  d_x: (g - n * mean(g * n, -1, True)) * rstd + d_h
  d_w: sum(dy * n, 0)
outputs: {d_x: bf16, d_r: {dtype: bf16, of: d_x}, d_w: f32}
END
for way in $ways; do
    [ "$way" = - ] && way=
    # shellcheck disable=SC2086
    check "grad $way" run 0 "$graph" $way -o "$back" --forward="$forth"
    # shellcheck disable=SC2086
    check "its forward" attempt 0 run "$forth" $device --outputs="$scratch/forth.safetensors"
    # shellcheck disable=SC2086
    check "its backward" attempt 0 run "$back" $device --inputs="$scratch/forth.safetensors" --outputs="$scratch/back.safetensors"
    # shellcheck disable=SC2086
    check "is what is written by hand" attempt 0 run "$scratch/hand.yaml" $device --expect="$scratch/back.safetensors" --rtol=0.02 --atol=0.02
done
# ---- a bound that a computed value is compared with is no tie of the value with itself
cat >"$scratch/clamped.yaml" <<'END'
graph: clamped
dims: {M: any, N: 16}
inputs: {x: "f32[M, N]", w: "f32[N]", v: "f32[N]"}
nodes:
  h: x * w
  y: clamp(h, -1, 1.5)
  z: clamp(layer_norm(h), v, v + 1)
outputs: {y: f32, z: f32}
END
check "grad of clamp" run 0 "$scratch/clamped.yaml" -o "$back" --forward="$forth"
check "is checked, none uncertain" attempt 0 run "$back" -D M=300 --device=host --check
check "against differences" attempt 0 run "$scratch/clamped.yaml" -D M=5 --device=host --check=grad
# ---- gradients of gradients
first=$scratch/first.yaml second=$scratch/second.yaml
check "--recompute=*" prints "^  rstd: rsqrt" "$graph" "--recompute=*"
check "nothing is saved" test "$(grep -c saved "$out")" -eq 0
check "nor read as it was stored" test "$(grep -c "as add_norm_fwd" "$out")" -eq 0
check "but what --save names" prints "^  rstd: .*# saved by add_norm_fwd" "$graph" "--recompute=*" --save=rstd
cat >"$scratch/largest.yaml" <<'END'
graph: largest
inputs: {x: "f32[8]", z: "f32[8]"}
nodes: {y: amax(x * z)}
outputs: {y: f32}
END
check "nor which element is the largest" prints "^  saved_eq: bool\[8\]  # saved by largest_fwd" "$scratch/largest.yaml" "--recompute=*"
check "the backward graph" run 0 "$graph" "--recompute=*" -o "$first" --verify
check "its gradients are called what it holds" nothing 1 "first.yaml:[0-9]+:3: error: the gradient of 'x' is called d_x, .*--prefix" "$first"
check "--prefix" run 0 "$first" --prefix=d2_ -o "$second" --forward="$forth" --verify
for name in x r w d_kept d_h; do check "d2_$name goes out" in_file "$second" "^  d2_$name: "; done
for name in d_x d_r d_w; do check "d2_$name comes in" in_file "$second" "^  d2_$name: .*\["; done
check "explain --prefix" attempt 0 explain "$first" --prefix=d2_
check "tells the second gradients" says "d2_w"
check "its forward runs" attempt 0 run "$forth" -D M=5 --device=host --check --outputs="$scratch/forth.safetensors"
check "it runs" attempt 0 run "$second" -D M=5 --device=host --check --inputs="$scratch/forth.safetensors"
check "--check=grad --prefix" attempt 0 run "$first" -D M=3 --device=host --check=grad --prefix=d2_
check "compares the second gradients" says "^grad +d2_d_kept: .* compared"
check "--check=grad without" refuses 1 "the gradient of 'x' is called d_x" "$first"
check "--check=grad --backward --prefix" attempt 0 run "$forth" -D M=3 --device=host --check=grad --backward="$second" --prefix=d2_
check "of the same graph without" attempt 1 run "$forth" -D M=3 --device=host --check=grad --backward="$second"
# ---- slices that cut a dim into equal parts
cat >"$scratch/halves.yaml" <<'END'
graph: halves
dims: {M: any, N: 64}
inputs: {x: "bf16[M, N]"}
nodes: {y: "silu(x[:, :N/2]) * x[:, N/2:]"}
outputs: {y: bf16}
END
check "halves are put side by side" prints "d_x: reshape\\(where\\(arange\\(2\\)" "$scratch/halves.yaml"
check "each half is read once" attempt 0 explain "$scratch/halves.yaml" --grad
check "in the bytes that it takes" says "no more than the ideal"
check "halves against differences" attempt 0 run "$scratch/halves.yaml" --check=grad --device=host
cat >"$scratch/open_halves.yaml" <<'END'
graph: open_halves
dims: {R: {multiple: 2}, N: {multiple: 12}}
inputs: {x: "f32[R, N]"}
nodes:
  q: x[:, :N/3]
  y: silu(q[:, :N/6]) * q[:, N/6:] + x[:, N/2:2*N/3] * x[:, N/3:N/2]
  z: x[:R/2] * x[R/2:]
outputs: {y: f32, z: f32}
END
check "parts of sizes known at launch" attempt 0 run "$scratch/open_halves.yaml" --check=grad --device=host -D N=24 -D R=6

# ---- of slices and picked elements that much is read, and nothing saved for them
part() { # NAME [OPTIONS]: of the lines of dims, inputs, nodes and outputs on standard input
    name=$1
    shift
    { echo "graph: $name"; cat; } >"$scratch/$name.yaml"
    check "$name" run 0 "$scratch/$name.yaml" -o "$back" --forward="$forth" --verify -v "$@"
    cp "$err" "$out"
}
passes() { # NAME: both graphs against differences
    check "$1 against differences" attempt 0 run "$scratch/$1.yaml" --check=grad --device=host
    check "$1 as it was written" attempt 0 run "$forth" --check=grad --backward="$back" --device=host
}
part quarter <<'END'
dims: {M: any, N: 64}
inputs: {x: "bf16[M, N]", y: "bf16[M, N/4]"}
nodes: {z: "x[:, :N/4] * y"}
outputs: {z: bf16}
END
check "a slice of an input is read again" says "x bf16\[M, 64\], an input, in part: 32\*M = 32768"
check "which index has a part is no forward value" says "^  recompute +0: .*: nothing"
check "and the whole of another" says "y bf16\[M, 16\], an input: 32\*M"
check "together" says "^  read +64\*M = 65536"
check "nothing is saved for it" says "^  saved +0:"
passes quarter
check "its kernel reads as much" attempt 0 explain "$scratch/quarter.yaml" --grad
check "in bytes" says "^  bytes +96\*M = 98304"
check "--json" run 0 "$scratch/quarter.yaml" --json -o "$back"
check "says so" says '"part":[[:space:]]*true'
part adaln_zero <<'END'
dims: {B: any, T: any, N: 16}
inputs: {x: "bf16[B, T, N]", mod: "f32[B, 6*N]"}
nodes: {gate: "mod[:, 2*N:3*N]", y: "x * gate[:, None]"}
outputs: {y: bf16}
END
check "a gate among modulations" says "mod f32\[B, 96\], an input, in part: 64\*B = "
check "is not saved" says "^  saved +0:"
passes adaln_zero
part of_views <<'END'
dims: {M: any, N: 64}
inputs: {x: "bf16[M, N]", y: "bf16[M, N/4]"}
nodes: {z: "cast(reshape(x, [M, 4, N/4])[:, 1:3][:, 1][:, None][:, 0], f32) * y"}
outputs: {z: bf16}
END
check "a slice of views" says "x bf16\[M, 64\], an input, in part: 32\*M"
check "is not saved either" says "^  saved +0:"
passes of_views
part many <<'END'
dims: {M: any, N: 64}
inputs: {x: "bf16[M, N]", y: "bf16[M, N]"}
nodes: {z: "x[:, :N/2] * y[:, N/2:] + x[:, N/2:] * y[:, :N/2] * x[:, 3:3+N/2]"}
outputs: {z: bf16}
END
check "slices take no more than the whole" says "x bf16\[M, 64\], an input: 128\*M"
part picked --wrt=x <<'END'
dims: {T: any, V: 50000, N: 16}
inputs: {ids: "i64[T]", table: "bf16[V, N]", x: "bf16[T, N]"}
nodes: {y: "table[ids] * x"}
outputs: {y: bf16}
END
check "gathered elements are what is read of a table" says "table bf16\[50000, 16\], an input, in part: 32\*T = 32768"
part of_output <<'END'
dims: {M: any, N: 64}
inputs: {x: "bf16[M, N, 8]", y: "bf16[M, 3]"}
nodes: {m: "sum(x, -1)", z: "m[:, 1:4] * y"}
outputs: {m: f32, z: f32}
END
check "a slice of an output is read there" says "m f32\[M, 64\], an output, in part: 12\*M"
passes of_output
part of_node <<'END'
dims: {M: any, N: 64}
inputs: {x: "bf16[M, N, 8]", y: "bf16[M, 3]"}
nodes: {m: "sum(x, -1)", z: "m[:, 1:4] * y"}
outputs: {z: f32}
END
check "that of a node is saved under the node's name" says "saved_m f32\[M, 3\], saved: 12\*M"
passes of_node
check "--recompute of it" prints "^  saved_m: m\[:, 1:4\]" "$scratch/of_node.yaml" --recompute=saved_m
check "reads of the node" run 0 "$scratch/of_node.yaml" --recompute=saved_m -v -o "$back"
check "a part" warns "m f32\[M, 64\], saved, in part: 12\*M = "
check "of the whole that is stored" warns "^  saved +256\*M = "
check "--recompute of the node" prints "^  m: sum\(x, dim=-1\)" "$scratch/of_node.yaml" --recompute=m
check "saves no view of it" test "$(grep -c "saved by" "$out")" -eq 0
part node_itself <<'END'
dims: {M: any, N: 64}
inputs: {x: "bf16[M, N]", y: "bf16[M, 1]"}
nodes: {m: "sum(x, -1)", z: "m[:, None] * y"}
outputs: {z: f32}
END
check "a node is saved without dims of 1" says "m f32\[M\], saved: 4\*M"
passes node_itself

# ---- what is computed again
part halves_of_node <<'END'
dims: {M: any, N: 64}
inputs: {x: "bf16[M, N]", b: "f32[N]"}
nodes: {h: x + b, y: "square(h[:, :N/2]) * h[:, N/2:]"}
outputs: {y: bf16}
END
check "what is used through views is computed again" says "^  recompute +384\*M = 393216: .*: h \(256\*M = 262144\), "
part as_in_files <<'END'
dims: {M: any, N: 64}
inputs: {x: "bf16[M, N]", w: "f32[N]", b: "f32[N]"}
nodes:
  r: rsqrt(sum(x * x, -1, True) + 1e-6)
  n: x * r
  y: n * w * sigmoid(x + b)
outputs: {y: bf16}
END
check "what is computed again has the name that the file gives it" says "^  recompute +768\*M = 786432: .*: n \(256\*M = 262144\)"
check "or the backward file" says "t1 \(256\*M = 262144\)"
passes as_in_files
part cube <<'END'
dims: {M: any}
inputs: {x: "f32[M, 8]"}
nodes: {y: rsqrt(x)}
outputs: {y: f32}
END
check "nor is the cube of a root that is stored" says "^  recompute +0: "

# ---- a backward graph that somebody wrote
norm=examples/layer_norm.yaml
check "both graphs" run 0 "$norm" -o "$back" --forward="$forth"
given() { # CODE BACKWARD [ARGUMENTS of run]
    wanted=$1 file=$2
    shift 2
    attempt "$wanted" run "$forth" --check=grad --backward="$file" --device=host -D N=33 "$@"
}
check "what grad wrote" given 0 "$back"
check "is compared with what it would write" says "d_x: 231 elements of the backward graph compared with the derived one's, 0 failed"
check "which differences confirm" says "d_x: 231 of 231 elements and 4 directions of the derived one compared with diff"
check "types are those of the command" given 0 "$back" -D E=f32
check "as JSON" given 0 "$back" --json
check "each gradient" says '"graph_failed":[[:space:]]*0,'
sed 's/ - c2)/)/' "$back" >"$scratch/lacks.yaml"
check "a term that is lost" given 5 "$scratch/lacks.yaml"
check "is seen" warns "gradient d_x: [0-9]* of 231 elements that the backward graph makes are not the derived one's"
check "there alone" test "$(grep -c 'gradient d_gamma' "$err")" -eq 0
sed -e 's/^  d_x: E$/  d_x: {dtype: f32, accumulate: true}/' -e 's/^  d_y: .*/  d_y: f32[M, N]/' "$back" >"$scratch/wider.yaml"
check "gradients may be wider and accumulate" given 0 "$scratch/wider.yaml"
check "all of them are compared" says "d_x: 231 elements of the backward graph"
check "a graph that does not store what is read" attempt 1 run "$norm" --check=grad --backward="$back" --device=host
check "the place is in the backward graph" warns "^$back:[0-9]+:3: error: '(mean|rstd)' is neither"
check "one of its own errors is too" attempt 1 run "$forth" --check=grad --backward="$normgen" --device=host
check "which is no text" warns "this is no text file"
check "a file that is not there" attempt 6 run "$forth" --check=grad --backward="$scratch/none.yaml" --device=host
check "--wrt is of what grad would write" attempt 2 run "$forth" --check=grad --backward="$back" --wrt=x
check "in words" warns "says itself which gradients"
check "--backward alone" attempt 2 run "$forth" --backward="$back"
check "belongs to --check=grad" warns "backward belongs to --check=grad"
check "standard input holds one graph" attempt 2 run - --check=grad --backward=-

finish
