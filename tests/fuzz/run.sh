#!/bin/sh
# Fuzzes the graph language and the safetensors reader, $FUZZ_SECONDS each (600), both at once. Starts from the
# repository's own graphs; what it learns stays in $BUILD/corpus. A finding is left beside and named.
set -u
build=${BUILD:-build/fuzz}
seconds=${FUZZ_SECONDS:-600}
graphs=$build/corpus/graph tensors=$build/corpus/safetensors
mkdir -p "$graphs" "$tensors"
cp tests/graphs/* "$graphs/"
cp examples/*.yaml "$graphs/"
python3 - "$tensors" <<'SEEDS'
import json, struct, sys
for name, header in {"one": {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}},
                     "two": {"__metadata__": {"k": "v"}, "a": {"dtype": "BF16", "shape": [2, 1], "data_offsets": [0, 4]},
                             "b": {"dtype": "U8", "shape": [], "data_offsets": [4, 5]}}}.items():
    text = json.dumps(header).encode()
    size = max(v["data_offsets"][1] for k, v in header.items() if k != "__metadata__")
    open(f"{sys.argv[1]}/{name}", "wb").write(struct.pack("<Q", len(text)) + text + bytes(range(size)))
SEEDS
fuzz() { # NAME CORPUS OPTIONS...
    name=$1 corpus=$2
    shift 2
    "$build/fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
        -artifact_prefix="$build/$name-" "$@" "$corpus" >"$build/$name.log" 2>&1
    status=$?
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$build/$name.log")
    if [ $status -eq 0 ]; then echo "fuzz_$name: $runs inputs in $seconds s, no finding"
    else
        echo "fuzz_$name: FINDING (see $build/$name.log)"
        grep -E 'ERROR|SUMMARY|Test unit written' "$build/$name.log"
    fi
    return $status
}
fuzz graph "$graphs" -dict=tests/fuzz/graph.dict -max_len=4096 &
child=$!
fuzz safetensors "$tensors" -max_len=2048
second=$?
wait $child
first=$?
failed=$(((first != 0) + (second != 0)))
echo "$((2 - failed)) passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
