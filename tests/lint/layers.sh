#!/bin/sh
# Arrows run one way: ir <- gen <- runtime <- examples, tests, bench. An #include against them fails, and so does the
# command, an example or a benchmark that reaches past the public header.
set -u
. tests/support/check.sh

# FOLDER-FILES ALLOWED: each quoted #include of the files must match the pattern
only() {
    pattern=$1
    shift
    found=$(grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "$@" /dev/null | grep -vE "#[[:space:]]*include[[:space:]]*\"($pattern)\"")
    [ -z "$found" ] || { echo "$found"; return 1; }
}
never() { # PATTERN FILES: no line of theirs matches
    pattern=$1
    shift
    found=$(grep -nE "$pattern" "$@" /dev/null)
    [ -z "$found" ] || { echo "$found"; return 1; }
}
sources() { find "$@" -name '*.[ch]' -o -name '*.def' | sort; }
ir=$(sources ir) gen=$(sources gen) runtime=$(find runtime -maxdepth 1 -name '*.[ch]' | sort) cli=$(sources runtime/cli)
examples=$(find examples -name '*.c' | sort)

check "ir includes ir alone" only 'ir/[a-z_]+\.(h|def)' $ir
check "gen includes gen and ir alone" only '(ir|gen)/[a-z_]+\.(h|def)' $gen
check "runtime includes nothing of the command" \
    only '((ir|gen|runtime)/[a-z_]+\.(h|def)|templates/host_api\.h)' $runtime
check "the command includes the public header and its own" \
    only '(runtime/normgen\.h|runtime/cli/[a-z_]+\.(h|def))' $cli
check "examples include the public header alone" only '(runtime/)?normgen\.h|[a-z_]+\.cu' $examples
check "ir knows no YAML, no driver, no files" never '^[[:space:]]*#include <(yaml|cjson|dlfcn|cuda|nvrtc)|[^a-z_](fopen|open|dlopen)\(' $ir
check "gen knows no driver and opens no file" never '^[[:space:]]*#include <(dlfcn|cuda|nvrtc)|[^a-z_](fopen|open|dlopen)\(' $gen
check "CUDA's own headers are never included" never '^[[:space:]]*#include <(cuda|nvrtc|cuda_runtime)\.h>' $ir $gen $runtime $cli

# what the linker sees of the command: only the library's public calls
objects=$(find "${BUILD:-build}/obj/runtime/cli" -name '*.o' 2>/dev/null | sort)
inner() { [ -z "$(nm -u $objects | grep -E ' U (ir|gen|rt)_' | sort -u | tee /dev/stderr)" ]; }
if [ -n "$objects" ]; then check "the command calls ng_ functions alone" inner; else skip "no object of the command"; fi
exported() { [ -z "$(nm -D --defined-only "${BUILD:-build}/libnormgen.so" | awk '{print $3}' | grep -vE '^ng_|^_(init|fini)$' | tee /dev/stderr)" ]; }
check "the library exports ng_ symbols alone" exported
finish
