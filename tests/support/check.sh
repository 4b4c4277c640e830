# For test scripts: `. tests/support/check.sh`, then `check WHAT COMMAND...` for each test and `finish` at the end. What it
# prints is what tests/run.sh counts.
check_passed=0
check_failed=0
check_skipped=0
pass() { check_passed=$((check_passed + 1)); }
fail() {
    check_failed=$((check_failed + 1))
    echo "failed: $1"
}
skip() {
    check_skipped=$((check_skipped + 1))
    echo "skipped: $1"
}
check() { # WHAT COMMAND...
    what=$1
    shift
    if "$@"; then pass; else fail "$what"; fi
}
finish() {
    echo "[  PASSED  ] $check_passed test(s)."
    [ "$check_skipped" -gt 0 ] && echo "[  SKIPPED ] $check_skipped test(s), listed below:"
    if [ "$check_failed" -gt 0 ]; then
        echo "[  FAILED  ] $check_failed test(s), listed above"
        exit 1
    fi
    exit 0
}
