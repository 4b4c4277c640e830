#!/bin/sh
# Runs CMocka programs and test scripts, each within a time limit, and adds up what they counted.
# A program that dies counts as one failure. Last line: N passed, N failed, N skipped.
set -u
limit=${TEST_LIMIT:-600}
passed=0 failed=0 skipped=0
log=$(mktemp) || exit 6
trap 'rm -f "$log"' EXIT
for program in "$@"; do
    start=$(date +%s)
    case $program in
    *.sh) timeout "$limit" sh "$program" >"$log" 2>&1 ;;
    *) timeout "$limit" "$program" >"$log" 2>&1 ;;
    esac
    status=$?
    p=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
    f=$(sed -n 's/^\[  FAILED  \] [^0-9]*\([0-9]*\) test.*/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
    s=$(sed -n 's/^\[  SKIPPED *\] [^0-9]*\([0-9]*\) test.*/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
    if [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
    if [ "$status" -eq 0 ] && [ $((p + f + s)) -eq 0 ]; then echo "no test counted"; f=1; fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    echo "$program: $p passed, $f failed, $s skipped ($(($(date +%s) - start)) s)"
    grep -E '^(# |\[  SKIPPED|skipped:)' "$log" | grep -v 'test(s)' | sed 's/^/    /'
    if [ "$f" -ne 0 ]; then
        [ "$status" -eq 124 ] && echo "    stopped after $limit s"
        tail -n "${TEST_LINES:-60}" "$log" | sed 's/^/    /'
    fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
