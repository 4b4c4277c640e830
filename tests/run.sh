#!/bin/sh
# Runs CMocka programs and test scripts, one a core at once and each within a time limit, and adds up what they counted.
# A program that dies counts as one failure. What failed is told once more at the end, behind a line "---- failed".
# Last line: N passed, N failed, N skipped.
#   TEST_LIMIT  seconds a program (900)     TEST_JOBS  programs at once     TEST_LINES  of a failed one's output (60)
set -u
limit=${TEST_LIMIT:-900}

# One program: its lines go to standard output in one piece, its counts into a file of the folder.
run_one() { # FOLDER PROGRAM
    log=$(mktemp "$1/log.XXXXXX") || exit 6
    start=$(date +%s)
    case $2 in
    *.sh) timeout "$limit" sh "$2" >"$log" 2>&1 ;;
    *) timeout "$limit" "$2" >"$log" 2>&1 ;;
    esac
    status=$?
    p=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
    f=$(sed -n 's/^\[  FAILED  \] [^0-9]*\([0-9]*\) test.*/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
    s=$(sed -n 's/^\[  SKIPPED *\] [^0-9]*\([0-9]*\) test.*/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
    if [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
    if [ "$status" -eq 0 ] && [ $((p + f + s)) -eq 0 ]; then
        echo "no test counted" >>"$log"
        f=1
    fi
    {
        echo "$2: $p passed, $f failed, $s skipped ($(($(date +%s) - start)) s)"
        grep -E '^(# |\[  SKIPPED|skipped:)' "$log" | grep -v 'test(s)' | sed 's/^/    /'
        if [ "$f" -ne 0 ]; then
            [ "$status" -eq 124 ] && echo "    stopped after $limit s"
            tail -n "${TEST_LINES:-60}" "$log" | sed 's/^/    /'
        fi
    } >"$log.report"
    cat "$log.report"
    echo "$p $f $s" >"$log.counts"
}
if [ "${1:-}" = --one ]; then
    run_one "$2" "$3"
    exit
fi

folder=$(mktemp -d) || exit 6
trap 'rm -rf "$folder"' EXIT
jobs=${TEST_JOBS:-$(nproc 2>/dev/null || echo 2)}
printf '%s\0' "$@" | xargs -0 -n 1 -P "$jobs" sh "$0" --one "$folder"
ran=$(cat "$folder"/*.counts | wc -l)
set -- $# $(cat "$folder"/*.counts | awk '{p += $1; f += $2; s += $3} END {print p + 0, f + 0, s + 0}')
[ "$ran" -eq "$1" ] || set -- "$1" "$2" $(($3 + $1 - ran)) "$4"
if [ "$3" -ne 0 ]; then
    echo "---- failed"
    for counts in "$folder"/*.counts; do
        read -r _ failed _ <"$counts"
        [ "$failed" -eq 0 ] || cat "${counts%.counts}.report"
    done
fi
echo "$2 passed, $3 failed, $4 skipped"
[ "$3" -eq 0 ]
