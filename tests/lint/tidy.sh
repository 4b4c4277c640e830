#!/bin/sh
# clang-tidy with the checks of .clang-tidy, on every source; files in parallel.
set -u
. tests/support/check.sh
log=$(mktemp -d) || exit 6
trap 'rm -rf "$log"' EXIT
find ir gen runtime examples -name '*.c' | sort >"$log/files"
xargs -P "$(nproc)" -I{} sh -c '
    name=$(echo "$2" | tr / _)
    clang-tidy --quiet "$2" -- -std=c11 -D_GNU_SOURCE -I. >"$1/$name.out" 2>"$1/$name.err" || echo "$2" >"$1/$name.bad"
' sh "$log" {} <"$log/files"
while read -r file; do
    name=$(echo "$file" | tr / _)
    if [ -e "$log/$name.bad" ]; then
        cat "$log/$name.out"
        fail "clang-tidy $file"
    else
        pass
    fi
done <"$log/files"
finish
