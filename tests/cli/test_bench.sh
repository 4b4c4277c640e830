#!/bin/sh
# `normgen bench`, option by option, on the host device: what takes part, what is printed, which exit code. How fast
# anything is shows on a GPU only.
set -u
. tests/cli/command.sh
run() { # CODE ARGUMENTS of bench
    wanted=$1
    shift
    attempt "$wanted" bench "$@"
}
norm=examples/layer_norm.yaml
small="-D M=5 -D N=64 --replays=1 --device=host"
times="( +[0-9.]+){5} +[0-9.]+ +[0-9]+"

# ---- where it runs
if "$normgen" devices | grep -q "^cuda"; then
    check "a GPU" run 0 $norm -D M=64
    check "is what it measures on" says "^device +cuda:0"
    check "by graphs" says "^replays +11 of each, by turns, as CUDA graphs"
else
    check "no GPU" refuses 3 "no GPU with NVRTC here to measure on; --device=host tries the command out" $norm
    check "no GPU, as JSON" run 3 $norm --json
    check "holds the error" says '"error":.*no GPU'
    check "a GPU asked for, and no driver" run 9 $norm --device=cuda
fi

# ---- one program
check "bench" run 0 $norm $small
check "the device" says "^device +host, "
check "a dim and its source" says "^dim +M = 5 \(-D\)$"
check "an input" says "^input +x bf16\[5, 64\] random, seed 0$"
check "bytes" says "^bytes +1792 a call at the least$"
check "sets" says "^sets +2 of 0.001792 MB, taken in turn$"
check "replays" says "^replays +1 of each, by turns; times are of one call$"
check "what the host's times are worth" says "^note .* say nothing about a GPU$"
check "the columns" says "^ +median us +least +quartile +quartile +GB/s +of copy +calls$"
check "the copy" says "^copy +$times$"
check "its share is its own" says "^copy .* 1\.000 +[0-9]+$"
check "the graph" says "^as given +$times$"
check "nothing is compared" test "$(grep -c '^compare' "$out")" -eq 0
check "a default dim" run 0 $norm -D N=33 --replays=1 --device=host
check "and says so" says "^dim +M = 1024 \(default\)$"
check "-v shows kernels" run 0 $norm $small -v
check "on standard error" warns "^kernel +strategy"
check "11 replays" run 0 $norm -D M=5 -D N=33 --device=host
check "unless told" says "^replays +11 of each"
check "bench of a graph on standard input" sh -c "'$normgen' bench - -D M=3 --replays=1 --device=host --compare=unfused <examples/softmax.yaml | grep -q '^fuse=off '"
check "misaligned" run 0 $norm $small --misalign=1
check "a scalar" run 0 $norm $small --scalar eps=1e-3

printf 'graph: takes\ndims: {V: any}\ninputs: {t: "f32[V]", ids: "i32[64]"}\nnodes: {y: "t[ids]"}\noutputs: {y: f32}\n' >"$scratch/takes.yaml"
check "indices of few rows" run 0 "$scratch/takes.yaml" -D V=2 --replays=1 --device=host
check "stay inside" says "^input +ids i32\[64\] random in 0\.\.1, seed 0$"

# ---- compared
check "--compare=unfused" run 0 $norm $small --compare=unfused
check "is a row" says "^fuse=off +$times$"
check "its ratio" says "^compare +as given is [0-9.]+ times as fast as fuse=off$"
check "--compare=KNOB=V, twice" run 0 $norm $small --compare=fuse=row --compare f0.vector=1
check "the first" says "^compare .* than fuse=row$|^compare .* as fuse=row$"
check "the second" says "^f0\.vector=1 +$times$"
cat >"$scratch/several.yaml" <<'END'
graph: several
dims: {M: any, N: 100}
inputs: {x: "bf16[M, N]", dy: "bf16[M, N]", w: "f32[N]"}
nodes: {y: "softmax(x + w, dim=-1)", h: "x * dy", dw: "sum(dy * x, dim=0)"}
outputs: {y: bf16, h: {dtype: bf16, inplace: dy}, dw: {dtype: f32, accumulate: true}}
END
check "several kernels, in place, accumulating" run 0 "$scratch/several.yaml" -D M=300 --replays=1 --device=host --compare=unfused
check "what it moves itself" says "^bytes +[0-9]+ a call at the least; as given [0-9]+$"
check "with memory of its own" run 0 "$scratch/several.yaml" -D M=300 --replays=1 --device=host --separate
check "--compare of nothing" refuses 2 "compare=fused: expected unfused or .KERNEL..KNOB=V" $norm $small --compare=fused
check "--compare of no value" refuses 2 "expected unfused" $norm $small --compare=fuse=
check "--compare of no knob" refuses 2 "did you mean .vector" $norm $small --compare=vectr=2
check "--compare with what is not possible" refuses 4 "vector=3 is not possible for kernel f0" $norm $small --compare=vector=3

# ---- swept
check "--sweep" run 0 $norm $small --sweep=vector
check "each value" test "$(grep -cE '^vector=(1|2|4|8) ' "$out")" -eq 4
check "one is the default" test "$(grep -cE '^vector=.*default$' "$out")" -eq 1
check "one is the best" test "$(grep -cE '  best(, default)?$' "$out")" -eq 1
check "and told" says "^best +(as given|vector=[1248], [0-9.]+ times as fast as what was given)$"
check "--sweep of values" run 0 $norm $small --sweep f0.row_threads=32,7,64
check "one that is not possible" says "^f0.row_threads=7 +not possible: row_threads=7 is not possible for kernel f0: "
check "the others" test "$(grep -cE "^f0.row_threads=(32|64) +$times" "$out")" -eq 2
check "--sweep of a knob of the graph" run 0 $norm $small --sweep=fuse
check "its words" test "$(grep -cE '^fuse=(off|row|all) ' "$out")" -eq 3
check "the default is all" says "^fuse=all .*default$"
check "--sweep of any number" refuses 2 "may be any positive number; name some, as in --sweep=fuse_reads=10,64" $norm $small --sweep=fuse_reads
check "some of them" run 0 $norm $small --sweep=fuse_reads=1,10
check "--sweep of no knob" refuses 2 "sweep=vectr: no knob vectr; did you mean vector" $norm $small --sweep=vectr
check "--sweep that no kernel takes" refuses 4 "sweep=threads: no kernel of the graph takes it" $norm $small --sweep=threads
check "--sweep of no such kernel" refuses 4 "no kernel of the graph takes it" $norm $small --sweep=n7.vector
check "--sweep without values" refuses 2 "expected KNOB or KNOB=V,V" $norm $small --sweep=vector=2,,4
check "--sweep of impossible values" refuses 4 "no value is possible: vector=3 is not possible" $norm $small --sweep=vector=3,5
check "--sweep of no word" refuses 2 "fuse" $norm $small --sweep=fuse=maybe
check "--sweep and --compare" refuses 2 "exclude each other" $norm $small --sweep=vector --compare=unfused

# ---- usage and failures
check "--replays of none" refuses 2 "replays=0: expected an integer from 1" $norm -D M=3 -D N=8 --device=host --replays=0
check "no byte is moved" sh -c "printf 'graph: g\ndims: {M: any}\ninputs: {x: \"f32[M]\"}\nnodes: {y: x + 1}\noutputs: {y: f32}\n' >'$scratch/empty.yaml'"
check "with no rows" refuses 2 "nothing to measure: with these dims no byte is moved" "$scratch/empty.yaml" -D M=0 --device=host
check "an option of run" refuses 2 "no option of bench" $norm --check
check "a rejected graph" refuses 1 "error:" examples/demo.sh --device=host
check "a negative dim" run 2 $norm -D M=-1 --device=host
printf 'graph: picks\ndims: {N: 8}\ninputs: {x: "f32[N]"}\nnodes: {y: "x[arange(N) + 3]"}\noutputs: {y: f32}\n' >"$scratch/picks.yaml"
check "a launch that fails" refuses 7 "an index of x.idx. lies outside its dim" "$scratch/picks.yaml" --device=host

# ---- JSON
check "--json" run 0 $norm $small --json --compare=unfused
for member in device arch dims compile_seconds real cold sets set_bytes replays copy measured what median_us least_us \
    low_quartile_us high_quartile_us most_us gbs share_of_copy ideal_bytes moved_bytes calls times_as_given; do
    check "--json has $member" says "\"$member\":"
done
check "--json: what the host's times are worth" says '"real":.*false'
check "--json: two programs and the copy" test "$(grep -c '"median_us":' "$out")" -eq 3
check "--json: a sweep" run 0 $norm $small --json --sweep=vector=4,3
check "--json: what is not possible" says '"not_possible":.*vector=3 is not possible'
check "--json: the best" says '"best":.*"(as given|vector=4)"'
check "--json: the default" says '"default":.*true'
check "--json on failure" run 4 $norm $small --json --compare=vector=3
check "holds the error" says '"error":.*vector=3 is not possible'
finish
