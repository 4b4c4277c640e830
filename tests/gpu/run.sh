#!/bin/sh
# What only a GPU can show, and what runs there as it does on the host device. From the repository's root, after
# tests/gpu/bundle.sh (elsewhere or here):
#
#     sh tests/gpu/run.sh [PART...]      parts: see `all` below; `programs` is all that has a host device's side
#
#     DEVICE  cuda (default) or host: the same programs there, without what needs a GPU
#
# Needs the driver, NVRTC and nvcc; compute-sanitizer for its parts, PyTorch for `grad`.
# Last line: N passed, N failed, N skipped.
set -u
here=${BUILD:-build}/gpu
device=${DEVICE:-cuda}
export LD_LIBRARY_PATH="$here${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
out=${OUT:-$here/out}
mkdir -p "$out"
passed=0 failed=0 skipped=0
programs="matrix column stream backward pair sizes breakpoints far kernels casts dtypes any random mixed_cases reports reports_columns reports_large reports_shapes reports_types texts"
all="$programs compare big launcher memcheck racecheck capture bench compile_time real grad"

try() { # NAME COMMAND...
    name=$1
    shift
    start=$(date +%s)
    if "$@" >"$out/$name.log" 2>&1; then
        passed=$((passed + 1)) verdict=passed
    else
        failed=$((failed + 1)) verdict=FAILED
    fi
    echo "$name: $verdict ($(($(date +%s) - start)) s)"
    grep '^# ' "$out/$name.log" | sed 's/^/    /'
    [ $verdict = passed ] || { grep -m 3 -A 3 FAILED "$out/$name.log"; tail -n 15 "$out/$name.log"; } | cut -c1-300 | sed 's/^/    /'
}
skip() {
    skipped=$((skipped + 1))
    echo "$1: skipped ($2)"
}
program() { # NAME OPTIONS...: a test program that takes --device
    name=$1
    shift
    try "$name" "$here/test_$name" --device="$device" "$@"
}
sanitizer_rows() { # TOOL PROGRAM GROUP: rows with sums across them
    try "$1_$2_$3" env NORMGEN_TEST_REDUCED=1 compute-sanitizer --tool "$1" --error-exitcode 1 "$here/test_$2" \
        --device=cuda --only="$3"
}
sanitizer() { # TOOL COLUMNS: rows in registers and loops, then the other strategies at few sizes
    try "$1" compute-sanitizer --tool "$1" --error-exitcode 1 "$here/test_matrix" --device=cuda --types=bf16,f32 \
        --rows=0,1,3,37 --columns="$2"
    try "$1_sizes" compute-sanitizer --tool "$1" --error-exitcode 1 "$here/test_sizes" --device=cuda --small
    sanitizer_rows "$1" stream rms_norm_trips
    for group in statistics_here layer_norm_trips many_trips long_rows kept_rows kept_any outer_kept; do
        sanitizer_rows "$1" stream "$group"
    done
    sanitizer_rows "$1" backward layouts
    sanitizer_rows "$1" backward others
}
gpu() { # COMMAND...: where there is one
    if [ "$device" = cuda ]; then "$@"; else skip "$part" "it needs a GPU"; fi
}
launcher() {
    try launcher_gen "$here/normgen" gen examples/rms_norm.yaml -D N=1024 -D E=f32 -o "$out/rms_norm.cu"
    try launcher_nvcc nvcc -fmad=false -arch=native -I"$out" examples/launch.cu -o "$here/launch"
    try launcher "$here/launch"
    try launcher_gen_scalars "$here/normgen" gen tests/kernels/narrow_scalars.yaml -o "$out/narrow_scalars.cu"
    try launcher_nvcc_scalars nvcc -fmad=false -arch=native -I"$out" tests/gpu/launch.cu -o "$here/launch_scalars"
    try launcher_scalars "$here/launch_scalars"
}

part() {
    part=$1
    case $1 in
    matrix | column | stream | backward | pair | sizes | breakpoints | far | kernels | casts | dtypes | any | mixed_cases | reports*) program "$1" ;;
    texts) try texts env NORMGEN="$here/normgen" DEVICE="$device" sh tests/kernels/test_kernels.sh ;;
    random) try random "$here/test_random_device" --device="$device" ;;
    compare) gpu try compare "$here/test_matrix" --device=cuda --compare-host --columns=7,129,384,1024,5000 --rows=3,37 ;;
    big) # offsets past 2^31 elements
        gpu try big "$here/normgen" run examples/rms_norm.yaml --device=cuda -D N=512 -D M=4194305 --check ;;
    launcher) gpu launcher ;;
    memcheck) gpu sanitizer memcheck 1,33,129,384,1017,1024,5000 ;;
    racecheck) gpu sanitizer racecheck 33,129,1024,5000 ;;
    bench) # the tables are in bench.log and bench_backward.log
        gpu try bench "$here/normgen" bench examples/rms_norm.yaml -D M=32768 --compare=unfused
        gpu try bench_backward sh bench/backward.sh "$here/normgen" ;;
    capture) gpu try capture "$here/test_capture" ;;
    compile_time) # two idle cores: the table is in compile_time.log
        if [ -f "$here/compile_time" ]; then gpu try compile_time taskset -c 0,1 "$here/compile_time" -n 0,384,1024,4096,8192,16384 examples/*.yaml
        else skip compile_time "no $here/compile_time: make build/bench/compile_time first"; fi ;;
    real)
        if [ -f "$here/minilm.safetensors" ]; then try real env NORMGEN="$here/normgen" DEVICE="$device" REAL="$here" sh tests/real/run.sh
        else skip real "no $here/minilm.safetensors: make test-real first"; fi ;;
    grad) # the table is in grad.log; PYTHON names a python3 that has PyTorch
        python=${PYTHON:-python3}
        small=
        [ "$device" = cuda ] || small="--rows=61 --columns=129"
        if ! "$python" -c "import torch" 2>/dev/null; then skip grad "$python has no PyTorch"
        else try grad "$python" tests/gpu/grad.py "$here/normgen" --device="$device" $small; fi ;;
    programs) for each in $programs; do part "$each"; done ;;
    *) echo "no such part: $1"; exit 2 ;;
    esac
}
[ $# -gt 0 ] || set -- $all
for name_of_part in "$@"; do part "$name_of_part"; done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
