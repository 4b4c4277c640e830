#!/bin/sh
# Every verb and option of the command: its exit code, what it prints and where.
set -u
. tests/cli/command.sh

# CODE ARGUMENTS...: runs the command; standard output and error are in $out and $err
run() {
    wanted=$1
    shift
    "$normgen" "$@" >"$out" 2>"$err" <"${input:-/dev/null}"
    got=$?
    [ "$got" -eq "$wanted" ] || {
        echo "normgen $*: exit $got, expected $wanted"
        head -n 5 "$err"
        return 1
    }
}
from() { # FILE CODE ARGUMENTS...: the same, standard input being the file
    input=$1
    shift
    run "$@"
    set -- $?
    input=
    return "$1"
}
lacks() { ! grep -E -e "$1" "$out"; }
silent() { [ ! -s "$out" ] || { echo "standard output is not empty"; head -n 3 "$out"; return 1; }; }
# CODE PATTERN ARGUMENTS...: exits so, with words on standard error and nothing on standard output
refuses() {
    code=$1 pattern=$2
    shift 2
    run "$code" "$@" && warns "$pattern" && silent
}
# PATTERN ARGUMENTS...: exits 0 and prints
prints() {
    pattern=$1
    shift
    run 0 "$@" && says "$pattern"
}
graph=examples/layer_norm.yaml
small="-D M=3 -D N=33"

# ---- the command itself
check "no verb" refuses 2 "no verb given"
check "--help" prints "Exit codes" --help
check "help" prints "Verbs:" help
check "help VERB" prints "normgen gen GRAPH" help gen
check "--version" prints "^normgen [0-9]+\.[0-9]+\.[0-9]+$" --version
check "unknown verb" refuses 2 "did you mean explain" explian $graph
check "option before the verb" refuses 2 "the verb comes first" --verify check $graph
for verb in check gen ir explain grad compile run tune bench knobs ops passes devices cache; do
    check "$verb --help" prints "^normgen $verb" $verb --help
done
for verb in tune cache; do check "$verb is not there yet" refuses 9 "not available yet" $verb; done
check "unknown option" refuses 2 "unknown option --chek; did you mean --check" run --chek $graph
check "an option of another verb" refuses 2 "no option of gen" gen --check $graph
check "an option of another name" refuses 2 "unknown option --output; did you mean -o" gen --output x.cu $graph
check "-o where there are outputs" refuses 2 "unknown option -o; did you mean --outputs" run -o x.cu $graph
check "a pair in two words" refuses 2 "^normgen: error: -D N: expected NAME=VALUE$" run $graph -D N 640
check "an option is no value" refuses 2 "expect needs a value: FILE; -D is the next option" run $graph --expect -D M=2
check "a minus sign is one" refuses 2 "seed=-1: expected an integer" run --device=host $graph -D N=8 -D M=2 --seed -1
check "no such dim" refuses 2 "-D K=4: the graph has no dim or type 'K'; it has M, N" check $graph -D K=4
check "a scalar is no dim" refuses 2 "-D eps=1: 'eps' is a scalar, .* --scalar" check examples/layer_norm.yaml -D eps=1
for verb in check explain ir gen grad knobs; do
    check "$verb says that it has no use for an any dim's value" run 0 $verb $graph -D M=3
    check "and what has" warns "^normgen: note: M is any: .* --fix M=3 .* --hint M=3"
done
check "a fixed dim has one" run 0 gen $graph -D N=33
check "of which nothing is said" eval '[ ! -s "$err" ]'
check "nor where it runs" run 0 run --device=host $graph $small
check "with all of them" eval '[ ! -s "$err" ]'
check "no such scalar" refuses 2 "the graph has no scalar epsilon; it has eps" run --device=host examples/layer_norm.yaml -D N=8 --scalar epsilon=1
check "an older architecture" refuses 2 "from sm_80 on, not for sm_75" gen $graph --arch=sm_75
printf '\010\0\0\0\0\0\0\0{}      ' >"$scratch/tensors.bin"
check "tensors as a graph" refuses 1 "tensors.bin: this is no text file; GRAPH is YAML" check "$scratch/tensors.bin"
check "option without its value" refuses 2 "needs a value" gen $graph -o
check "value for an option without" refuses 2 "takes no value" check --verify=yes $graph
check "no graph" refuses 2 "needs GRAPH" check
check "two graphs" refuses 2 "too many" check $graph $graph
check "-- ends options" refuses 6 "No such file" check -- --verify
check "missing file" refuses 6 "No such file" check $scratch/none.yaml
check "a folder" refuses 6 "Is a directory" check /tmp
if [ "$(id -u)" -ne 0 ]; then
    echo "graph: x" >"$scratch/locked" && chmod 0 "$scratch/locked"
    check "unreadable file" refuses 6 "Permission denied" check "$scratch/locked"
fi

# ---- check
check "check" prints "^layer_norm: ok" check $graph
check "check shows arguments" says "input +x +bf16.M, N."
check "check shows outputs" says "output +y +bf16.M, N."
check "check shows no nodes" run 0 check examples/layer_norm_stats.yaml
check "so it does" lacks "^  node"
check "check -v shows nodes" prints "^  node +rstd +f32.M, 1." check -v examples/layer_norm_stats.yaml
check "check --json shows types" prints '"shape":.*"\[M, N\]"' check --json $graph
printf 'graph: g\ninputs: {x: "f32[8, 8]", i: "i64[3]", k: "i64[3]"}\nnodes: {y: "x[i][:, k]"}\noutputs: {y: f32}\n' >"$scratch/later.yaml"
check "check: a graph that does not compile" run 4 check "$scratch/later.yaml" --set vector=3
check "check: its types are shown" says "output +y +f32.3, 3."
check "check: and why" warns "vector=3 is not possible"
check "check: as gen does" run 4 gen "$scratch/later.yaml" --set vector=3
check "check: both in JSON" run 4 check --json "$scratch/later.yaml" --set vector=3
check "check: the types" says '"type":.*"f32.3, 3."'
check "check: the reason" says '"error":.*vector=3 is not possible'
check "check: -D E=f16" prints "x +f16" check $graph -D E=f16
check "check: bad -D" refuses 2 "" check $graph -D Q=3
check "check: -D without =" refuses 2 "expected NAME=VALUE" check $graph -D Q
check "check: NaN as a dim" refuses 2 "" check $graph -D N=nan
check "check: 2^62 as a dim" refuses 2 "" check $graph -D N=4611686018427387904
check "check: bad --hint" refuses 2 "" check $graph --hint=M=x
check "check: bad --fix" refuses 2 "" check $graph --fix=Q=3
check "check: bad --set" refuses 2 "" check $graph --set=nope=3
check "check: -DN=5 in one word" run 0 check $graph -DN=5
printf 'graph: g\ninputs: {x: "f32[8]", z: "f32[8]"}\nnodes: {y: x + 1, dead: x * 2}\noutputs: {y: f32}\n' >"$scratch/warn.yaml"
check "warnings do not reject" run 0 check "$scratch/warn.yaml"
check "warnings are told" warns "warning:"
check "-Werror" run 1 check "$scratch/warn.yaml" -Werror
printf 'graph: g\ninputs: {x: "f32[8]"}\nnodes: {y: relo(x)}\noutputs: {y: f32}\n' >"$scratch/bad.yaml"
check "a rejected graph" refuses 1 "bad.yaml:3:[0-9]+: error:" check "$scratch/bad.yaml"
check "near miss of an operation" warns "relu"
piped() { "$normgen" check - <"$graph" >"$out" 2>"$err" && says "layer_norm: ok"; }
check "a graph on standard input" piped
huge() { head -c 17000000 /dev/zero | tr '\0' '#' | "$normgen" check - >"$out" 2>"$err"; [ $? -eq 1 ]; }
check "a graph over 16 MB" huge

# ---- gen
check "gen" prints "__global__" gen $graph
cp "$out" "$scratch/first.cu"
check "gen -o -" run 0 gen $graph -o -
check "gen writes the same bytes each time" cmp -s "$out" "$scratch/first.cu"
check "gen -o" run 0 gen $graph -o "$scratch/a.cu" --header="$scratch/a.h"
check "gen -o says nothing" silent
check "gen -o writes what gen prints" cmp -s "$scratch/a.cu" "$scratch/first.cu"
printf 'graph: some\ndims: {M: any, N: {max: 9, multiple: 3}}\ninputs: {x: "f32[M, N]", m: "f32[M]"}\nnodes: {y: "amax(x, -1)", z: "m[2:5]"}\noutputs: {y: f32, z: f32}\n' >"$scratch/some.yaml"
check "gen: the launcher refuses dims" prints "d_N < 0 .. d_N > 9ll .. d_N % 3ll != 0. return cudaErrorInvalidValue" gen "$scratch/some.yaml"
check "gen: and slices" says "if .d_M - 5 < 0. return cudaErrorInvalidValue"
check "gen: and extremes" says "if ..d_N == 0. && d_M != 0. return cudaErrorInvalidValue"
check "gen --header" grep -q "int layer_norm_launch(" "$scratch/a.h"
check "gen: both on standard output" refuses 2 "cannot both" gen $graph --header=-
check "gen: both into one file" refuses 2 "are one file" gen $graph -o "$scratch/one" --header="$scratch/one"
check "gen: so it is not there" test ! -e "$scratch/one"
check "gen: header alone on standard output" run 0 gen $graph -o "$scratch/a.cu" --header=-
check "gen: that header" says "layer_norm_workspace_bytes"
check "gen leaves no part behind" test -z "$(ls "$scratch" | grep part)"
check "gen onto a full disk" refuses 6 "No space left" gen $graph -o /dev/full
full() { "$normgen" gen $graph 2>"$err" >/dev/full; [ $? -eq 6 ] && grep -q "No space left" "$err"; }
check "gen onto a full standard output" full
broken() { (sleep 0.3; exec true) | cat >/dev/null; { "$normgen" ops 2>"$err"; echo $? >"$scratch/code"; } | true; [ "$(cat "$scratch/code")" -eq 6 ] || [ "$(cat "$scratch/code")" -eq 0 ]; }
check "a closed pipe ends with 6, not by a signal" broken
limited() { (ulimit -f 1; "$normgen" gen $graph -o "$scratch/limit.cu" 2>"$err"); [ $? -eq 6 ] && grep -q "File too large" "$err"; }
check "gen beyond the limit of a file" limited
check "leaves nothing" test -z "$(ls "$scratch" | grep limit)"
closed() { "$normgen" gen $graph -o "$scratch/closed.cu" <&- >&- 2>&- && cmp -s "$scratch/closed.cu" "$scratch/first.cu"; }
check "gen -o with nothing open" closed
unheard() { "$normgen" check "$scratch/warn.yaml" >&- 2>&-; [ $? -eq 6 ]; }
check "a closed standard output ends with 6" unheard
stale() { sh -c ': >"$1.$$.0.part"; exec "$2" gen "$3" -o "$1"' sh "$scratch/s.cu" "$normgen" $graph; }
check "gen beside what others left" stale
rm -f "$scratch"/s.cu.*
(cd "$scratch" && mkdir -p sub && ln -sf . same)
for other in "$scratch/./one.cu" "$scratch/sub/../one.cu" "$scratch/same/one.cu"; do
    check "-o and --header one file: $other" refuses 2 "are one file" gen $graph -o "$scratch/one.cu" --header="$other"
done
check "and nothing is written" test ! -e "$scratch/one.cu"
check "-o and --header onto a device" run 0 gen $graph -o /dev/null --header=/dev/null
cp $graph "$scratch/own.yaml"
for emit in cubin ptx; do
    check "$emit onto the graph" refuses 2 "would overwrite the graph" compile "$scratch/own.yaml" --emit=$emit -o "$scratch/own.yaml"
done
check "-o where the JSON value goes" run 2 gen "$scratch/own.yaml" --json -o /dev/stdout
check "is refused with words" says "-o /dev/stdout is standard output"
check "-o onto the graph" refuses 2 "would overwrite the graph" gen "$scratch/own.yaml" -o "$scratch/./own.yaml"
check "gen -o - and --header" run 0 gen $graph -o - --header="$scratch/dash.h"
check "gen into no folder" refuses 6 "No such file" gen $graph -o "$scratch/no/a.cu"
check "gen onto a folder" refuses 6 "Is a directory" gen $graph -o "$scratch"
echo old >"$scratch/old.cu"
check "a rejected graph leaves the old file" refuses 1 "error" gen "$scratch/bad.yaml" -o "$scratch/old.cu"
check "so it does" grep -qx old "$scratch/old.cu"
ln -s a.cu "$scratch/link.cu"
check "-o through a link" run 0 gen $graph -o "$scratch/link.cu"
check "the link stays" test -L "$scratch/link.cu"
check "gen --arch=sm_80" prints "sm_80" gen $graph --arch=sm_80
check "gen --arch=80" prints "sm_80" gen $graph --arch 80
check "gen: no such --arch" run 2 gen $graph --arch=sm_12
check "gen: no --arch at all" refuses 2 "expected sm_N" gen $graph --arch=hopper
check "gen --fix" run 0 gen $graph --fix=M=64
check "gen --hint" run 0 gen $graph --hint M=64
check "gen --verify" run 0 gen $graph --verify
check "gen --batch-invariant" run 0 gen $graph --batch-invariant
check "gen --time-passes" run 0 gen $graph --time-passes
check "times on standard error" warns "^lower +[0-9.]+ us"

# a forced knob holds or fails
check "--set of a kernel that is not there" refuses 2 "no kernel 'n7'.*; the kernels are f0" gen $graph --set=n7.vector=4
check "--set of a kernel what is the graph's" refuses 2 "of the whole graph" gen $graph --set=f0.fuse=off
check "--set of a kernel that is there" run 0 gen $graph --set=f0.vector=4
check "--set that no kernel takes" refuses 4 "pointwise ones would" gen $graph --set=threads=64
check "--set rows of no rows" refuses 4 "those that work by rows would" gen examples/bias_gelu.yaml --set=rows=2
check "--set another strategy" refuses 4 "strategy=row_loop is not possible" gen examples/bias_gelu.yaml --set=strategy=row_loop
check "--set names the knob to blame" refuses 4 "row_threads=1025 is not possible" gen $graph --set=row_threads=1025
check "--set beyond an int" refuses 4 "at most 1024 threads" gen $graph --set=row_threads=65536 --set=rows=65536
check "--set too many elements" refuses 4 "at most 256 elements" gen $graph --set=strategy=row_loop --set=chunks=1000000
check "--set too many threads an SM" refuses 4 "no room for so many threads" gen $graph --set=min_ctas=8 --set=row_threads=512
check "--fix against -D" refuses 2 "says M=4" gen $graph --fix=M=3 -D M=4
check "--fix with -D" run 0 gen $graph --fix=M=3 -D M=3
check "the longest rows" run 0 gen $graph -D N=4611686018427387903

# ---- ir and explain
check "ir" prints "^prog layer_norm" ir $graph
check "ir --after=parse is a graph file" run 0 ir $graph --after=parse
cp "$out" "$scratch/parsed.yaml"
check "and reads back" run 0 check "$scratch/parsed.yaml"
for pass in expand simplify lower axes classify fuse schedule emit; do check "ir --after=$pass" run 0 ir $graph --after=$pass; done
check "emit shows CUDA" says "__global__"
check "ir --after=all" prints "schedule" ir $graph --after=all
check "(unchanged)" says "^\(unchanged\)$"
check "ir: unknown pass" refuses 2 "did you mean lower" ir $graph --after=lowr
check "ir --diff" prints "^@@ " ir $graph --diff=lower,fuse
check "ir --diff of one pass is empty" run 0 ir $graph --diff=fuse,fuse
check "so it is" silent
check "ir --diff of one name" refuses 2 "two passes" ir $graph --diff=fuse
check "ir --after and --diff" refuses 2 "exclude" ir $graph --diff=lower,fuse --after=fuse
check "ir --after=all --json" run 0 ir $graph --after=all --json
check "is a list" says '"pass":.*"partial"'
check "with what did not change" says '"ir":.*null'
check "explain" prints "^  strategy +row_registers: " explain $graph
for what in "numbers +with M=1024" "bytes +3072\*M \+ 6144 = 3151872: no more than the ideal" "ideal +3072\*M" "expected +[0-9.]+ us at 4270 GB/s" \
    "loops +\(r:M . c:768\) ROW, 3 phases" "reduces +%1 = add over c: INNER; %6" "reads +x bf16\[M, 768\]; gamma f32\[768\]" \
    "writes +y bf16" "knobs +row_threads=64 rows=1 vector=4 chunks=3 min_ctas=" "variants +layer_norm_f0_aligned where x % 8 == 0" \
    "grid +M = 1024 CTAs of 64 threads" "registers +at most [0-9]+ a thread, for [0-9]+ CTAs an SM" "workspace +none"; do
    check "explain: $what" says "^  $what"
done
check "explain: fusions" says "^fusions made$"
narrow() { awk 'length > 100 {print; bad = 1} END {exit bad}' "$out"; }
check "explain fits a terminal" narrow
check "explain --hint" prints "^  numbers +with M=64" explain $graph --hint=M=64
check "explain --set strategy" prints "row_loop" explain $graph --set=strategy=row_loop
check "explain tells what is forced" prints "rows=2 \(forced\)" explain $graph --set=rows=2
cat >"$scratch/several.yaml" <<'END'
graph: several
dims: {M: {hint: 4}, N: 1000000}
inputs: {x: "f32[M, N]", dy: "bf16[M, N]", z: "bf16[64, 512, 32]"}
nodes:
  s: sum(x * x, dim=-1)
  y: x * rsqrt(s)[:, None]
  dw: sum(dy * x, dim=0)
  m: mean(z, dim=[0, 2])
outputs: {y: f32, dw: f32, m: f32}
END
check "explain: several kernels" prints "^several: 4 kernels" explain "$scratch/several.yaml"
check "in order" says "^kernel n0, 1 of 4"
check "what flows on" says "^  writes +ws0 f32.P0, M. for n"
check "and from where" says "^  reads +.*t0 f32.M. of n"
check "parts" says "^  parts +P0 = min\(ceil\(1000000 / 8192\), 1 CTAs an SM / M\) = 33 on 132 SMs"
check "workspace" says "^  workspace +[0-9]+ bytes"
check "rooms" says "^ +ws0: 4\*M\*P0 = [0-9]+, in [0-9]+ bytes"
check "MIXED" says "MIXED"
check "refused fusions" says "^fusions refused$"
check "several kernels fit a terminal" narrow
# the same facts as JSON: every number of the text is there
check "explain --json" run 0 explain "$scratch/several.yaml" --json
for member in dims bytes ideal expected_us parts workspace_bytes kernels loops class reductions reads writes strategy knobs \
    variants where grid registers_at_most shared_bytes fusions gate text; do
    check "explain --json has $member" says "\"$member\":"
done
same_numbers() {
    "$normgen" explain "$scratch/several.yaml" | grep -oE '[0-9]{2,}' | sort -u >"$scratch/text"
    grep -oE '[0-9]{2,}' "$out" | sort -u >"$scratch/json"
    missing=$(comm -23 "$scratch/text" "$scratch/json" | grep -vxE '1024|[0-9]{2,3}' | tr '\n' ' ')
    [ -z "$missing" ] || { echo "JSON lacks $missing"; return 1; }
}
check "explain --json says as much" same_numbers
check "explain: steps of one code" prints "^rms_norm_shared_bwd: 4 kernels, 2 distinct" explain examples/rms_norm_shared_bwd.yaml
check "which one's" says "^kernel f2, 3 of 4, same code as f0"
check "the step's own tensors" says "^  variants +rms_norm_shared_bwd_f0_aligned where x3 % 8 == 0"
check "as JSON" prints '"same_code_as":.*"f0"' explain examples/rms_norm_shared_bwd.yaml --json
check "a knob of one" prints "4 kernels, 3 distinct" explain examples/rms_norm_shared_bwd.yaml --set f1.vector=2
check "the file's head" prints "^//   kernel  f1: launches the code of f0; moves" gen examples/rms_norm_shared_bwd.yaml

# ---- compile
if run 9 compile $graph; then
    skip "compile: no NVRTC here"
else
    check "compile" prints "registers" compile $graph
    check "compile -o" run 0 compile $graph -o "$scratch/a.cubin"
    check "a cubin is an ELF file" test "$(head -c 4 "$scratch/a.cubin" | tail -c 3)" = ELF
    check "compile --emit=ptx" prints "^\.version" compile $graph --emit=ptx
    check "its table on standard error" warns "registers"
    check "compile --emit=ptx -o" run 0 compile $graph --emit=ptx -o "$scratch/a.ptx"
    check "compile: a cubin is no JSON" run 2 compile $graph --emit=cubin --json
    run 0 compile $graph --emit=sass || run 9 compile $graph --emit=sass && pass
    check "compile --json" prints '"registers"' compile $graph --json
    check "compile: one code for several launches" prints "rms_norm_shared_bwd_f0_any .* 3$" compile examples/rms_norm_shared_bwd.yaml
fi
# an NVRTC that refuses: its log is what the command says
mkdir "$scratch/cuda" "$scratch/cuda/lib64"
cat >"$scratch/nvrtc.c" <<'END'
#include <string.h>
static const char words[] = "normgen.cu(7): error: planted\n";
int nvrtcCreateProgram(void **program, const char *text, const char *name, int n, const char *const *a, const char *const *b) { return *program = (void *)1, 0; }
int nvrtcDestroyProgram(void **program) { return 0; }
int nvrtcCompileProgram(void *program, int count, const char *const *options) { return 6; }
int nvrtcGetProgramLogSize(void *program, size_t *count) { return *count = sizeof words, 0; }
int nvrtcGetProgramLog(void *program, char *log) { return memcpy(log, words, sizeof words), 0; }
int nvrtcGetCUBINSize(void *program, size_t *count) { return 6; }
int nvrtcGetCUBIN(void *program, char *bytes) { return 6; }
int nvrtcGetPTXSize(void *program, size_t *count) { return 6; }
int nvrtcGetPTX(void *program, char *bytes) { return 6; }
const char *nvrtcGetErrorString(int result) { return "NVRTC_ERROR_COMPILATION"; }
END
if ${CC:-cc} -w -shared -fPIC -Wl,-soname,libnvrtc.so.13 "$scratch/nvrtc.c" -o "$scratch/cuda/lib64/libnvrtc.so.13"; then
    planted() { LD_LIBRARY_PATH=$scratch/cuda/lib64 refuses 4 "$1" compile $graph; }
    check "compile: what NVRTC says" planted "nvrtcCompileProgram for sm_90: NVRTC_ERROR_COMPILATION"
    check "compile: its log" planted "^normgen.cu.7.: error: planted$"
else skip "no NVRTC that refuses: no C compiler"; fi
check "compile --emit=nonsense" refuses 2 "expected cubin" compile $graph --emit=elf
check "compile --emit=bundle" refuses 9 "not available" compile $graph --emit=bundle

# ---- what every verb with a graph takes
for verb in check gen ir explain knobs; do
    check "$verb: the common options" from $graph 0 $verb - -D E=f16 -D N=64 --hint M=8 --seed=3 --verify --time-passes -v --batch-invariant --arch=sm_80
    check "$verb --time-passes" run 0 $verb $graph --time-passes
    check "$verb: times" warns "^expand +[0-9.]+ us"
    check "$verb -Werror" run 1 $verb "$scratch/warn.yaml" -Werror
    check "$verb: warnings" run 0 $verb "$scratch/warn.yaml"
    check "$verb: are told" warns "warning:"
    check "$verb: a bad seed" refuses 2 "expected an integer" $verb $graph --seed=x
    check "$verb --fix" run 0 $verb $graph --fix=M=3
    check "$verb: a fixed dim's --fix" refuses 2 "" $verb $graph --fix=Q=3
    check "$verb: unknown knob" refuses 2 "did you mean .vector" $verb $graph --set=vectr=3
done
for verb in gen ir explain knobs; do
    check "$verb: a knob that is not possible" refuses 4 "vector=3 is not possible for kernel f0" $verb $graph --set=f0.vector=3
    check "$verb: no such kernel" refuses 2 "did you mean 'f0'" $verb $graph --set=g0.vector=2
done

# ---- lists
check "ops" prints "^  rsqrt " ops
check "ops shows composites" says "layer_norm\(x, weight"
check "ops shows reductions" says "^  sum +sum\(x, dim=None, keepdim=False\)"
check "ops shows casts" says "^  cast +cast\(x, dtype\)"
check "ops NAME" prints "gelu" ops gelu
check "ops NAME: every line of its name" says "approximate=.tanh."
check "ops NAME: its formula" prints "formula +.x - mean.x, dim, True" ops layer_norm
check "ops NAME: its derivative and error" prints "derivative +1 - y . y" ops tanh
check "ops NAME: the derivative of a composite" prints "^  derivative +mean: mean.x, dim, True.$" ops layer_norm
check "ops NAME: of each parameter" says "^ +d_weight: d . xhat$"
check "ops NAME: in words" says "^ +where y is the result and d its gradient"
check "ops NAME: the derivative of a formula" prints "derivative +that of its formula" ops square
check "ops NAME: of a reduction" prints "derivative +by each element: where.a == y, 1 / sum" ops amax
check "ops NAME: none" prints "derivative +none" ops any
check "ops NAME: of a selection" prints "derivative +by x: where.a, 1, 0.$" ops where
check "ops NAME: of a rounding" prints "derivative +1, straight" ops cast
check "ops NAME: error" prints "error +2.5 ulp" ops tanh
check "ops NAME --json" prints '"signature":.*"amax.x, dim=None, keepdim=False."' ops amax --json
check "ops: unknown" refuses 2 "did you mean gelu" ops gelo
check "passes" prints "^  schedule " passes
check "knobs" prints "^  row_threads " knobs
check "knobs: unless forced" prints "^  fuse_reads .*unless forced: 10" knobs
check "knobs: which numbers" prints "^ +have room at once .0 or a positive number.$" knobs
check "part_rows=0" attempt 0 check examples/rms_norm_bwd.yaml --set part_rows=0
check "part_rows=-1" refuses 2 "part_rows takes 0 or a positive number; found .-1.$" check examples/rms_norm_bwd.yaml --set part_rows=-1
check "rows=0" refuses 2 "rows takes a positive number; found .0.$" check examples/rms_norm_bwd.yaml --set rows=0
check "knobs GRAPH" prints "^kernel f0" knobs $graph
check "knobs GRAPH: its values" says "^  row_threads +64 +default  .*32 64 96"
check "knobs GRAPH: of the graph" says "^  fuse +all +default  off row all$"
check "knobs GRAPH --set" prints "^  vector +2 +forced  " knobs $graph --set=f0.vector=2
check "knobs GRAPH: an option needs its graph" refuses 2 "needs a GRAPH" knobs --verify
# whatever knobs says of a kernel, --set does; the neighbour that it does not name, --set refuses
all_hold() { # GRAPH KERNEL KNOB
    run 0 knobs "$1" || return 1
    values=$(awk -v k="$2" -v n="$3" '/^kernel/{on=$2==k; take=0} on&&$1==n{take=1; $1=$2=$3=""; print; next}
        take&&/^ {40}/{print; next} {take=0}' "$out")
    [ -n "$values" ] || { echo "no values of $2.$3"; return 1; }
    for value in $values; do run 0 gen "$1" "--set=$2.$3=$value" || return 1; done
}
for knob in strategy row_threads rows vector chunks min_ctas; do check "--set f0.$knob as knobs says" all_hold $graph f0 $knob; done
shared="examples/rms_norm_shared_bwd.yaml --hint M=32768" # whose kernels share their number of parts
# shellcheck disable=SC2086
check "knobs of kernels that share" prints "^  part_rows +0 +default  0$" knobs $shared
check "none has another alone" test "$(grep -c '^  part_rows ' "$out")" -eq "$(grep -c '^  part_rows  *0  *default  0$' "$out")"
# shellcheck disable=SC2086
check "--set part_rows=16 of all" prints "part_rows=16" explain $shared --set part_rows=16
# shellcheck disable=SC2086
check "of one" refuses 4 "it shares its number of parts with another kernel; force both alike" explain $shared --set f0.part_rows=16
check "a kernel by itself has more" prints "^  part_rows +0 +default  0 1 2 " knobs examples/rms_norm_bwd.yaml --hint M=32768
check "one it does not name" refuses 4 "is not possible" gen $graph --set=f0.chunks=2
check "gen --tuned" refuses 9 "not available yet" gen $graph --tuned
check "run has no --tuned" refuses 2 "no option of run" run $graph --tuned
check "devices" prints "^host " devices
check "devices --json" prints '"device":.*"host"' devices --json
check "a list takes no operand" refuses 2 "takes no operand" passes x

# ---- JSON: one value, on failure too
valid() { [ "$(head -c 1 "$out")" = "{" ] && [ "$(tail -n 1 "$out")" = "}" ] && says "\"status\":.*$1"; }
for verb in check gen ir explain knobs; do
    check "$verb --json" run 0 $verb $graph --json
    check "$verb --json is one value" valid 0
done
check "--json of a rejected graph" run 1 check "$scratch/bad.yaml" --json
check "holds the error" says '"error":.*relo'
check "and the status" valid 1
check "--json of a usage error" run 2 gen --json
check "is a value too" valid 2
check "--json of a name that is no text" run 6 check "$(printf 'a\377b')" --json
check "is text" says '"a[?]b: No such file'
check "--json before the verb" run 0 --json passes
check "is a value too" valid 0
finish
