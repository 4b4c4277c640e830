#!/bin/sh
# Gathers in $BUILD/gpu what tests/gpu/run.sh needs on a machine with a GPU that lacks the libraries: the command, the
# test programs, without what debuggers read, and their shared libraries. Take the repository and that folder there.
set -eu
build=${BUILD:-build}
to=$build/gpu
rm -rf "$to"
mkdir -p "$to"
cp "$build/normgen" "$to/"
for name in matrix column stream backward pair sizes breakpoints far kernels casts dtypes any random_device capture mixed_cases reports reports_columns \
    reports_large reports_shapes reports_types; do
    cp "$build/tests/test_$name" "$to/"
done
[ ! -f "$build/bench/compile_time" ] || cp "$build/bench/compile_time" "$to/"
strip --strip-debug "$to"/*
for library in yaml cjson cmocka xxhash; do
    ldd "$to"/* | sed -n "s/.*=> \([^ ]*lib$library[^ ]*\) .*/\1/p" | sort -u | while read -r file; do cp -L "$file" "$to/"; done
done
[ ! -d "$build/real" ] || cp "$build"/real/*.safetensors "$to/" 2>/dev/null || true
ls -l "$to"
