#!/bin/sh
# `normgen run`, option by option, on the host device: where values come from, what is printed, which exit code.
set -u
. tests/cli/command.sh
run() { # CODE ARGUMENTS of run
    wanted=$1
    shift
    attempt "$wanted" run --device=host "$@"
}
hashes() { sed -n 's/.* hash //p' "$out"; }
norm=examples/layer_norm.yaml
small="-D M=3 -D N=33"

check "run" run 0 $norm -D M=3 -D N=33
check "the device" says "^device +host, "
check "the arch" says "^arch +sm_90$"
check "a dim and its source" says "^dim +M = 3 \(-D\)$"
check "compile time" says "^compile .*s, 1 kernel variant, not cached$"
check "an input and its source" says "^input +x bf16\[3, 33\] random, seed 0$"
check "an output" says "^output +y bf16\[3, 33\] min -[0-9.]+ max [0-9.]+ mean [-0-9.e]+ nan 0 hash [0-9a-f]{16}$"
first=$(hashes)

# the same bits whatever does not matter, other bits where it does
run 0 $norm $small --seed=0 && check "the same seed, the same bits" test "$(hashes)" = "$first"
run 0 $norm $small --seed=1 && check "another seed, other bits" test "$(hashes)" != "$first"
for way in --misalign=1 --misalign=3 --host-order=descending --host-order=seeded --verify; do
    run 0 $norm $small $way && check "$way keeps the bits" test "$(hashes)" = "$first"
done
check "--seed with seeded order is another input" run 0 $norm $small --seed=5 --host-order=seeded

check "--check" run 0 $norm $small --check
check "its verdict" says "^check +passed$"
check "its counts" says "^check +y: 99 of 99 elements compared, 0 failed"
cat >"$scratch/zero.yaml" <<'END'
graph: zero
dims: {M: any, N: 64}
inputs: {x: "f32[M, N]"}
nodes:
  y: x * 0
  scale: amax(abs(y), dim=-1, keepdim=True) / 127
  q: cast(round(y / scale), i8)
  far: cast(round(x * 1e7 / 3), i64)
outputs: {q: i8}
END
check "rows of zeros are quantised for certain" run 0 "$scratch/zero.yaml" -D M=3 --check
check "0 / 0 is no doubt" says "^check +q: 192 of 192 elements compared, 0 failed, 0 uncertain; all exact$"
sed 's/{q: i8}/{far: i64}/' "$scratch/zero.yaml" >"$scratch/far.yaml"
check "too many uncertain elements" run 5 "$scratch/far.yaml" -D M=3 --check
check "its verdict" says "^check +FAILED: too many uncertain elements$"
check "its first" says "^check +far: .* [0-9]+ uncertain; first uncertain at [0-9]+ \(got"
check "the operation" warns "the jump is round.x . 1e7 / 3."
check "what uncertain means" warns "too many uncertain elements, .* which side of a jump"
cat >"$scratch/close.yaml" <<'END'
graph: close
dims: {M: any, N: 64}
inputs: {x: "f32[M, N]"}
nodes: {y: layer_norm(40000 + 0.0001 * x)}
outputs: {y: f32}
END
check "what has no finite bound" run 0 "$scratch/close.yaml" -D M=3 --check
check "is told as not checked" says "^check +y: 0 of 192 .* 0 uncertain, 192 not checked, having no finite bound$"
check "the verdict too" says "^check +passed, but NOTHING WAS COMPARED: no element has a finite bound$"
sed "s|^outputs: .*|outputs: {y: f32, x2: {dtype: f32, of: z}}|; s|^nodes: {|&z: x * 2, |" "$scratch/close.yaml" >"$scratch/partly.yaml"
check "some elements have none" run 0 "$scratch/partly.yaml" -D M=3 --check
check "then the others are the verdict" says "^check +passed, but not for what has no finite bound$"
check "of --check=grad too" run 0 "$scratch/close.yaml" -D M=3 --check=grad
check "of each output" says "^check +rstd: 0 of 3 .*, 3 not checked, having no finite bound;"
check "and its verdict" says "^check +passed, but not for what has no finite bound$"
check "--check=grad" run 0 $norm -D N=33 --check=grad
check "dims that nothing gives are small" says "^dim +M = 7 \(default\)$"
check "both programs are checked" says "^check +d_x: 231 of 231 elements compared, 0 failed"
check "every element" says "^grad +d_x: 231 of 231 elements and 4 directions compared with differences, 0 failed, 0 uncertain; worst"
check "and what was run" says "^grad +d_gamma: as run off by [0-9.e-]+ of its largest element, 0 elements by more than rounding explains, 0 "
check "its verdict" says "^check +passed$"
check "a sample of many" run 0 $norm --check=grad -D M=3 -D N=129
check "is told" says "^grad +d_x: 64 of 387 elements and 4 directions"
check "--check=grad as JSON" run 0 $norm -D N=33 -D M=2 --check=grad --json
check "its members" says '"directions_unsettled":\s*0,'
check "the verdict" says '"check_passed":\s*true'
check "--check=grad shows no outputs" refuses 2 "check=grad shows no outputs" $norm --check=grad --print=3
printf 'graph: ties\ninputs: {x: "f8e5m2[128, 2]"}\nnodes: {y: "amax(x, -1)"}\noutputs: {y: f32}\n' >"$scratch/ties.yaml"
check "gradients at kinks are no pass" run 5 "$scratch/ties.yaml" --check=grad --seed=1
check "they are told" warns "gradient d_x: too many uncertain elements, [0-9]+ of 256 "
printf 'graph: largest\ninputs: {x: "bf16[4, 16]"}\nnodes: {y: "amax(x * x, -1)"}\noutputs: {y: bf16}\n' >"$scratch/largest.yaml"
check "which element is the largest is not asked of a rounded output" run 0 "$scratch/largest.yaml" --check=grad
printf 'graph: picked\ndims: {N: 8}\ninputs: {x: "f32[N]"}\nnodes: {y: "x[arange(N)]"}\noutputs: {y: f32}\n' >"$scratch/picked.yaml"
check "--wrt" run 0 $norm -D N=33 -D M=2 --check=grad --wrt=gamma
check "only its gradient" test "$(grep -c "^grad .*compared" "$out")" = 1
check "is checked" says "^grad +d_gamma: 33 of 33 elements"
check "--wrt of something else" refuses 2 "gama" $norm -D N=33 -D M=2 --check=grad --wrt=gama
check "--wrt alone" refuses 2 "wrt belongs to --check=grad" $norm --wrt=gamma
check "no gradient, no check" refuses 1 "no gradient through a gathered operand" "$scratch/picked.yaml" --check=grad
check "--check=else" refuses 2 "expected --check" $norm --check=x
check "--print" run 0 $norm $small --print=5
check "five elements" says "^ +(-?[0-9.e-]+ ){4}-?[0-9.e-]+$"
check "--print of a negative number, told before it runs" refuses 2 "print=-1" "$scratch/close.yaml" -D M=99999999999 --print=-1
check "M = 0" run 0 $norm -D M=0 -D N=33 --check
check "a hint is a dim's value" run 0 $norm --hint=M=2 -D N=8
check "and says so" says "^dim +M = 2 \(hint\)$"
check "else 1024" run 0 $norm -D N=8
check "and says so" says "^dim +M = 1024 \(default\)$"
printf 'graph: few\ndims: {M: {max: 50, multiple: 8}, K: {multiple: 100}}\ninputs: {x: "f32[M, K]"}\nnodes: {y: x + 1}\noutputs: {y: f32}\n' >"$scratch/few.yaml"
check "the default is a value that the graph allows" run 0 "$scratch/few.yaml"
check "below its max" says "^dim +M = 48 \(default\)$"
check "a multiple" says "^dim +K = 1000 \(default\)$"
check "so is a hint's value" run 0 "$scratch/few.yaml" --hint=M=55 --hint=K=150
check "below its max" says "^dim +M = 48 \(hint\)$"
check "a multiple" says "^dim +K = 100 \(hint\)$"
printf 'graph: picks\ndims: {N: 8}\ninputs: {x: "f32[N]"}\nnodes: {y: "x[arange(N) + 3]"}\noutputs: {y: f32}\n' >"$scratch/picks.yaml"
printf 'graph: big\ndims: {B: any, H: any, W: any}\ninputs: {x: "f32[B, H, W, 268435456]"}\nnodes: {y: x + 1}\noutputs: {y: f32}\n' >"$scratch/big.yaml"
check "more than memory" run 6 "$scratch/big.yaml"
check "no memory for defaults" warns "x: (out of memory for [0-9]+ bytes|more memory than there is); B, H, W took their default 1024: give -D$"
check "and said before" warns "^normgen: note: [0-9]+ million elements on the host device take a while; B, H, W took their default 1024: give -D$"
check "some are given" run 6 "$scratch/big.yaml" -D B=1024 -D W=2048
check "the others are told" warns "; H took its default 1024: give -D$"
check "an index outside its dim" refuses 7 "^normgen: error: kernel .*: an index of x\[idx\] lies outside its dim: the index\[5\] = 8 is outside dim 0 of x, whose extent is 8$" "$scratch/picks.yaml"
printf 'graph: rows\ndims: {M: any}\ninputs: {table: "f32[5, 3]", ids: "i32[M, 2]"}\nnodes: {y: "table[ids] * 2"}\noutputs: {y: f32}\n' >"$scratch/rows.yaml"
printf 'graph: ids\ndims: {M: any}\ninputs: {x: "f32[M, 2]"}\nnodes: {ids: "cast(x * 0, i32) + where(arange(M)[:, None] * 2 + arange(2) == 5, 7, 1)"}\noutputs: {ids: i32}\n' >"$scratch/ids.yaml"
check "indices that lie outside" run 0 "$scratch/ids.yaml" -D M=4 --outputs="$scratch/ids.safetensors"
check "are told with both tensors" refuses 7 ": ids\[2, 1\] = 7 is outside dim 0 of table, whose extent is 5$" "$scratch/rows.yaml" --input ids="$scratch/ids.safetensors:ids"
# random indices
printf 'graph: takes\ndims: {V: any, W: any}\ninputs: {t: "f32[V, 2]", u: "f32[W]", ids: "i32[4000]", k: "i32[8]", n: "i8[50000]"}\nnodes: {y: "t[ids] + u[reshape(ids, [4000])[:, None]]", z: "k * 1", s: "cast(n, i64) * 1", p: "t[n, 0]", q: "cast(ids, i32) * 1"}\noutputs: {y: f32, z: i32, p: f32, s: i64, q: i32}\n' >"$scratch/takes.yaml"
for rows in 1 2 3 4 5 77; do
    check "$rows rows to pick from" run 0 "$scratch/takes.yaml" -D V=$rows -D W=200 --check
    check "$rows rows are told" says "^input +ids i32\[4000\] random in 0\.\.$((rows - 1)), seed 0$"
    check "$rows rows are all met" says "^output +q .* min 0 max $((rows - 1)) "
done
check "of two tables the shorter one" run 0 "$scratch/takes.yaml" -D V=100000 -D W=3 --check
check "is told" says "^input +ids i32\[4000\] random in 0\.\.2, seed 0$"
check "an i8 index" says "^input +n i8\[50000\] random in 0\.\.127, seed 0$"
check "is what an i8 holds" says "^output +s .* min 0 max 127 "
check "integers that are no index" run 0 "$scratch/takes.yaml" -D V=100 -D W=100 --print=8
check "are as they were" says "^ +1 1 2 1 1 3 3 1$"
check "and told so" says "^input +k i32\[8\] random, seed 0$"
check "indices as JSON" run 0 "$scratch/takes.yaml" -D V=70 -D W=100 --json
check "how many there are to pick from" test "$(grep -cE '"indices":' "$out")" = 2
check "no row to pick" refuses 7 "is outside dim 0 of t, whose extent is 0$" "$scratch/takes.yaml" -D V=0 -D W=5
check "rows of the default dim" run 0 "$scratch/takes.yaml"
check "are met" says "^input +ids i32\[4000\] random in 0\.\.1023, seed 0$"
printf 'graph: weighted\ndims: {M: any, V: 2}\ninputs: {t: "f32[V]", ids: "i32[M]", w: "f32[M]"}\nnodes: {y: "t[ids] * w"}\noutputs: {y: f32}\n' >"$scratch/weighted.yaml"
check "gradients beside indices" run 0 "$scratch/weighted.yaml" --check=grad --wrt=w -D M=30
check "that are told" says "^input +ids i32\[30\] random in 0\.\.1, seed 0$"
check "--fix leaves no dim" run 0 $norm --fix M=3 -D N=8
check "-v shows kernels" run 0 $norm $small -v
check "on standard error" warns "^kernel +strategy"
check "a negative dim" run 2 $norm -D M=-1
check "no number as a dim" run 2 $norm -D M=x
check "2^62 rows" run 2 $norm -D M=4611686018427387904 -D N=8
check "more rows than memory" run 6 $norm -D M=4611686018427387 -D N=8
if "$normgen" devices | grep -q "^cuda"; then check "no such device" run 3 $norm --device=cuda:99
else check "a device asked for, and no driver" run 9 $norm --device=cuda:99; fi
check "no device at all" refuses 2 "expected cuda" $norm --device=tpu
check "no such order" refuses 2 "expected ascending" $norm --host-order=up
check "a bad seed" refuses 2 "expected an integer" $norm --seed=x
check "--scalar" run 0 $norm $small --scalar eps=0.5 --check
check "changes the result" test "$(hashes)" != "$first"
check "an unknown scalar" refuses 2 "did you mean eps" $norm $small --scalar esp=1
check "a scalar that is no number" refuses 2 "expected a number" $norm $small --scalar eps=x

# what is legal for some dims only
printf 'graph: head\ndims: {M: any}\ninputs: {x: "f32[M]"}\nnodes: {y: "x[:3] * 2", z: "x[2:]"}\noutputs: {y: f32, z: f32}\n' >"$scratch/head.yaml"
check "a slice up to the end" run 0 "$scratch/head.yaml" -D M=3 --check
check "a slice beyond it" refuses 2 "^normgen: error: x.:3. takes 0:3 of an extent of 2$" "$scratch/head.yaml" -D M=2
check "a slice of nothing" refuses 2 "error: extent 0 of z is -2" "$scratch/head.yaml" -D M=0
check "said as JSON too" run 2 "$scratch/head.yaml" -D M=2 --json
check "in one value" says '"error":.*takes 0:3'

printf 'graph: one\ndims: {M: any}\ninputs: {x: "f32[M]"}\nnodes: {y: "x[1] * 2", z: "1.0 + 2"}\noutputs: {y: f32, z: f32}\n' >"$scratch/one.yaml"
check "kernels of one element" run 0 "$scratch/one.yaml" -D M=3 --check
quiet() { [ ! -s "$err" ] || { cat "$err"; return 1; }; }
check "compile without a warning" quiet

# in place and not: the same bits
add=examples/add_rms_norm.yaml
check "in place" run 0 $add $small --check
first=$(hashes)
check "--separate" run 0 $add $small --check --separate
check "has the same bits" test "$(hashes)" = "$first"

# ---- safetensors out and in
y=$scratch/y.safetensors
check "--outputs" run 0 $norm $small --outputs="$y"
cp "$y" "$scratch/y1"
check "--outputs again" run 0 $norm $small --outputs="$y"
check "writes the same bytes" cmp -s "$y" "$scratch/y1"
check "--expect" run 0 $norm $small --expect="$y"
check "its verdict" says "^expect +passed$"
check "--expect of another run" run 5 $norm $small --seed=9 --expect="$y"
check "its verdict" says "^expect +FAILED$"
check "the worst element" says "^  worst  y.[0-2], [0-9]+.: got [-0-9.e]+, expected [-0-9.e]+$"
check "the first" says "^  first  y.0, [0-9]+.: got [-0-9.e]+, expected [-0-9.e]+$"
check "one tolerance given" run 5 $norm $small --seed=9 --expect="$y" --rtol=0
check "both are told" says "differ by more than 1e-05 .atol, the default. . 0 .rtol. . .expected.; largest"
check "--expect of another shape" run 2 $norm -D M=4 -D N=33 --expect="$y"
check "both shapes are told" warns "output y is bf16.4, 33., the tensor in .*y.safetensors is bf16.3, 33.: another shape"
check "--expect with a wide tolerance" run 0 $norm $small --seed=9 --expect="$y" --atol=100
check "--rtol without --expect" refuses 2 "belong to --expect" $norm --rtol=1
check "a bad tolerance" refuses 2 "expected a number" $norm $small --expect="$y" --atol=-1
check "--outputs onto a full disk" run 6 $norm $small --outputs=/dev/full
check "--outputs=-" refuses 2 "takes a file" $norm --outputs=-
check "--input" run 0 $norm --input x="$y:y" -D N=33
check "dims from tensors" says "^dim +M = 3 \(tensors\)$"
check "the input's source" says "^input +x bf16\[3, 33\] from .*y.safetensors$"
cat >"$scratch/give.yaml" <<'END'
graph: give
dims: {M: any, N: 8}
inputs: {p: "bf16[M, N]", q: "f32[N]"}
nodes: {x: p * 2, gamma: q + 1}
outputs: {x: bf16, gamma: f32}
END
check "a graph that makes inputs" run 0 "$scratch/give.yaml" $small --outputs="$scratch/in.safetensors"
check "--inputs" run 0 $norm --inputs="$scratch/in.safetensors" -D N=33 --check
check "takes what the file has" says "^input +gamma f32\[33\] from"
check "and leaves the rest random" says "^input +beta f32\[33\] random"
cp "$norm" "$scratch/own.yaml"
check "--outputs onto the graph" refuses 2 "would overwrite the graph" "$scratch/own.yaml" $small --outputs="$scratch/own.yaml"
check "which is as it was" cmp "$norm" "$scratch/own.yaml"
for read in --inputs="$y" --input=x="$y:y" --expect="$y"; do
    check "--outputs onto ${read%%=*}" refuses 2 "would overwrite what ${read%%=*} reads" $norm $small "$read" --outputs="$y"
done
check "--outputs among the report" refuses 2 "standard output holds the report" $norm $small --outputs=/dev/stdout
check "--inputs without an end" refuses 6 "the header does not begin" $norm $small --inputs=/dev/zero
check "--inputs: none of its names" refuses 2 "no tensor of .*y.safetensors has the name of an input; the file has .y.; the inputs are x, gamma, beta" $norm $small --inputs="$y"
cat >"$scratch/near.yaml" <<'END'
graph: near
dims: {M: any, N: 8}
inputs: {p: "bf16[M, N]", q: "f32[N]"}
nodes: {x: p * 2, gama: q + 1}
outputs: {x: bf16, gama: f32}
END
run 0 "$scratch/near.yaml" $small --outputs="$scratch/near.safetensors"
check "--inputs: some of its names" run 0 $norm $small --inputs="$scratch/near.safetensors"
check "a tensor that nothing takes is told" warns "^normgen: note: .*near.safetensors: no input takes .gama.$"
check "and the input that is random for it" warns "^normgen: warning: gamma is random: .*near.safetensors has no gamma; did you mean its .gama.\?$"
check "and the input that has no near miss" warns "^normgen: warning: beta is random: .*near.safetensors has no beta$"
check "-Werror: no input of --inputs is random" refuses 2 "Werror: 2 inputs of --inputs are random" $norm $small --inputs="$scratch/near.safetensors" -Werror
sed 's/x: bf16, gama: f32/X: bf16, gamma: f32/; s/{x: p/{X: p/; s/gama/gamma/' "$scratch/near.yaml" >"$scratch/case.yaml"
run 0 "$scratch/case.yaml" $small --outputs="$scratch/case.safetensors"
check "a name in another case" run 0 $norm $small --inputs="$scratch/case.safetensors"
check "is a near miss" warns "warning: x is random: .*case.safetensors has no x; did you mean its .X.\?$"
check "--inputs: all of its names" run 0 $norm --inputs="$scratch/in.safetensors" -D N=33
check "and beta is random" warns "^normgen: warning: beta is random: [^;]*$"
check "--inputs and --input for all" run 0 $norm --inputs="$scratch/in.safetensors" --input beta="$scratch/in.safetensors:gamma" -D N=33
check "say nothing" quiet
check "--inputs: none of one file's names" run 0 $norm $small --inputs="$y" --inputs="$scratch/in.safetensors"
check "is told where another gives some" warns "^normgen: note: .*y.safetensors: no input takes .y.$"
check "--inputs: none, and --input" run 0 $norm --inputs="$y" --input x="$y:y" -D N=33
check "--inputs: none of two files' names" refuses 2 "no tensor of .*y.safetensors has the name" $norm $small --inputs="$y" --inputs="$y"
check "--inputs: none, as JSON" run 2 $norm $small --inputs="$y" --json
check "one value" says '"error":.*the inputs are x, gamma, beta'
printf 'graph: shared\ndims: {M: any, N: 4}\ninputs: {x: {dtype: f32, shape: [M, N], strides: [0, 1]}}\nnodes: {y: x + 0}\noutputs: {y: f32}\n' >"$scratch/shared.yaml"
printf 'graph: rows\ndims: {M: any, N: 4}\ninputs: {p: "f32[N]", q: "f32[M, N]"}\nnodes: {x: "p + q * 0", z: "where(arange(M)[:, None] == 1, p + where(arange(N) == 2, 1, 0), p + 0)"}\noutputs: {x: f32, z: f32}\n' >"$scratch/rows.yaml"
check "rows of the same" run 0 "$scratch/rows.yaml" -D M=3 --outputs="$scratch/rows.safetensors"
check "fit strides of 0" run 0 "$scratch/shared.yaml" -D M=3 --inputs="$scratch/rows.safetensors" --check
check "rows that differ do not" refuses 2 "^normgen: error: input x: by its strides .1, 2. = [-0-9.e]+ and .2, 2. = [-0-9.e]+ are one element in memory, and the tensor in .*rows.safetensors has both$" "$scratch/shared.yaml" --input x="$scratch/rows.safetensors:z"
check "nor in bench" attempt 2 bench --device=host "$scratch/shared.yaml" --input x="$scratch/rows.safetensors:z"
check "with the same words" warns "^normgen: error: input x: by its strides .1, 2. "
printf 'graph: part\ndims: {M: any, N: 16}\ninputs: {x: {dtype: f32, shape: [M, 2*N], strides: [N, 1]}}\nnodes: {a: "x[:, :N] + x[:, N:]"}\noutputs: {a: {dtype: f32, inplace: "x[:, :N]"}}\n' >"$scratch/part.yaml"
check "a part of an input whose rows overlap" refuses 2 "output a is in place of a part of x, .* 16 of dim 0: give the output memory of its own" "$scratch/part.yaml" -D M=30 --check
check "is not written" run 0 "$scratch/part.yaml" -D M=30 --check --separate
check "but where there is one row" run 0 "$scratch/part.yaml" -D M=1 --check
check "a tensor's shape" refuses 2 "input x is bf16\[3, 34\]" $norm --input x="$y:y" -D N=34
check "-D against a tensor" refuses 2 "input x is bf16\[4, 33\]" $norm --input x="$y:y" -D N=33 -D M=4
check "a tensor's rank" refuses 2 "input gamma has 1 dim, the tensor y in " $norm --input gamma="$y:y" $small
check "a tensor's dtype" refuses 2 "input x is f16" $norm --input x="$y:y" -D E=f16 -D N=33
check "an unknown input" refuses 2 "did you mean gamma" $norm --input gama="$y:y" $small
check "an unknown tensor" refuses 2 "no tensor z" $norm --input x="$y:z" $small
check "--input without =" refuses 2 "expected NAME=FILE:TENSOR" $norm --input x
piped() { "$normgen" run --device=host $norm --inputs=- -D N=33 <"$scratch/in.safetensors" >"$out" 2>"$err" && says "^input +gamma f32.33. from -$"; }
check "--inputs from standard input" piped
check "a scalar beyond all numbers" refuses 2 "expected a number" $norm $small --scalar eps=1e999
check "no such file" refuses 6 "No such file" $norm --inputs="$scratch/none"
head -c 30 "$y" >"$scratch/cut"
check "a file cut short" refuses 6 "cut short" $norm --inputs="$scratch/cut"
head -c 200 /dev/zero >"$scratch/zero"
check "no safetensors at all" refuses 6 "zero: the header" $norm --inputs="$scratch/zero"
printf '\377\377\377\377\377\377\377\377{}' >"$scratch/lie"
check "a lying length" refuses 6 "at most 100,000,000" $norm --inputs="$scratch/lie"

# ---- JSON
check "--json" run 0 $norm $small --json --check --print=2 --expect="$y"
for member in device arch dims compile_seconds inputs outputs check check_passed expect hash; do
    check "--json has $member" says "\"$member\":"
done
check "--json on failure" run 6 $norm --inputs="$scratch/cut" --json
check "holds the error" says '"error":.*cut short'

# ---- every dtype
cat >"$scratch/dtypes.yaml" <<'END'
graph: dtypes
dims: {M: any, N: 40}
inputs: {x: "f32[M, N]", i: "i64[M, N]", j: "i32[M, N]", b: "bool[M, N]", d: "f64[M]", e: "f8e4m3[M, N]", c: "f32[]"}
scalars: {k: {dtype: i64, default: 3}, s: {dtype: f64, default: 0.5}, eps: 1e-5}
nodes: {a: x * c + eps, i2: i * k + j, n: b & (x > 0), d2: d * s, q: e * 2, l: log(x), t: sum(i), w: "cast(i, u8)", h: "cast(x / 0, f16)"}
outputs: {a: f8e5m2, i2: i64, n: bool, d2: f64, q: f8e4m3, l: f32, t: i64, w: u8, h: f16}
END
d=$scratch/d.safetensors
check "all dtypes" run 0 "$scratch/dtypes.yaml" -D M=3 --print=2 --check --outputs="$d" --scalar k=9007199254740993
check "exact integers" says "^ +18014398509481987 3$"
check "an exact range of integers" says "^output +i2 i64.3, 40. min 0 max 27021597764222982 "
check "bools" says "^ +True False$"
check "a 0-d tensor" says "^output +t i64\[\] min 182 max 182 mean 182 nan 0"
check "fp8 exactly" says "^ +-0.75 -0.125$"
check "NaN counts" says "^output +l f32.*nan 57 hash"
check "infinities" says "^ +inf inf$"
check "--expect: all dtypes" run 0 "$scratch/dtypes.yaml" -D M=3 --expect="$d" --scalar k=9007199254740993
check "--expect: 64-bit neighbours differ" run 5 "$scratch/dtypes.yaml" -D M=3 --expect="$d" --scalar k=9007199254740992
check "by how much" says "^expect +i2: [0-9]+ of 120 elements differ by more than 0 .*; largest difference 3$"
check "all dtypes as JSON" run 0 "$scratch/dtypes.yaml" -D M=3 --print=2 --json --scalar k=9007199254740993
check "exact integers in JSON" says '"first":.*\[18014398509481987, 3\]'
check "bools in JSON" says '"first":.*\[true, false\]'
check "infinities in JSON" says '"first":.*\["inf", "inf"\]'
check "their range in JSON" says '"max":.*27021597764222982'

cat >"$scratch/ints.yaml" <<'END'
graph: ints
inputs: {x: "f32[3]"}
nodes: {y: "cast(arange(3) * 127 + 1, u8)", z: "cast(arange(3) * 127 - 127, i8)", w: "cast(arange(3) * 1073741823 + 1, i32)", s: x}
outputs: {y: u8, z: i8, w: i32, s: f32}
END
check "narrow integers" run 0 "$scratch/ints.yaml" --print=3
check "u8 exactly" says "^ +1 128 255$"
check "i8 exactly" says "^ +-127 0 127$"
check "i32 exactly" says "^ +1 1073741824 2147483647$"
check "narrow integers as JSON" run 0 "$scratch/ints.yaml" --print=3 --json
check "u8 exactly in JSON" says '"first":.*\[1, 128, 255\]'

# ---- several kernels
cat >"$scratch/several.yaml" <<'END'
graph: several
types: {E: bf16}
dims: {M: any, N: 100}
inputs: {x: "E[M, N]", dy: "E[M, N]"}
nodes: {y: "softmax(x, dim=-1)", dw: "sum(dy * x, dim=0)", m: "mean(x, dim=[0, 1])"}
outputs: {y: E, dw: f32, m: f32}
END
check "several kernels" run 0 "$scratch/several.yaml" -D M=300 --check --device=host
check "all are checked" says "^check +m: 1 of 1 elements compared, 0 failed"
check "-D of a type" run 0 "$scratch/several.yaml" -D M=5 -D E=f16 --check
check "is taken" says "^output +y f16"
check "-D of no type" refuses 2 "did you mean 'f16'" "$scratch/several.yaml" -D E=f17
check "the graph from standard input" sh -c "'$normgen' run --device=host - -D M=3 <'$scratch/several.yaml' | grep -q '^graph    several'"

# ---- an interrupt
interrupt() { # the shell starts background jobs with SIGINT ignored, so the command is started by one that restores it
    env --default-signal=INT "$normgen" run --device=host $norm -D M=20000 -D N=4096 --check "$@" >"$out" 2>"$err" &
    child=$!
    sleep 0.5
    kill -INT "$child"
    wait "$child"
    [ $? -eq 130 ]
}
check "SIGINT ends with 130" interrupt
check "SIGINT with --json" interrupt --json
one_value() { [ "$(head -c 1 "$out")" = "{" ] && [ "$(tail -n 1 "$out")" = "}" ] && says '"status":.*130'; }
check "is one value" one_value
finish
