#!/bin/sh
# Gathers in $BUILD/gpu what tests/gpu/run.sh needs on a machine with a GPU that lacks the libraries: the command, the
# test programs and their shared libraries. Take the repository and that folder there.
set -eu
build=${BUILD:-build}
to=$build/gpu
rm -rf "$to"
mkdir -p "$to"
cp "$build/normgen" "$build/tests/test_matrix" "$build/tests/test_random_device" "$build/tests/test_capture" "$to/"
[ ! -f "$build/bench/compile_time" ] || cp "$build/bench/compile_time" "$to/"
for library in yaml cjson cmocka xxhash; do
    ldd "$to"/* | sed -n "s/.*=> \([^ ]*lib$library[^ ]*\) .*/\1/p" | sort -u | while read -r file; do cp -L "$file" "$to/"; done
done
[ ! -d "$build/real" ] || cp "$build"/real/*.safetensors "$to/" 2>/dev/null || true
ls -l "$to"
