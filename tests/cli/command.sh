# What the command's tests share: where its output goes, and how it is looked at. Sourced.
. tests/support/check.sh
build=${BUILD:-build}
normgen=$build/normgen
scratch=$(mktemp -d) || exit 6
trap 'rm -rf "$scratch"' EXIT
out=$scratch/out err=$scratch/err
export NO_COLOR=1
for name in ASAN_OPTIONS TSAN_OPTIONS; do # memory that is not there is exit 6, not the end
    eval "export $name=\"\${$name:+\$$name:}allocator_may_return_null=1\""
done
says() { grep -qE -e "$1" "$out" || { echo "standard output lacks: $1"; head -n 12 "$out"; return 1; }; }
warns() { grep -qE -e "$1" "$err" || { echo "standard error lacks: $1"; head -n 5 "$err"; return 1; }; }
# CODE VERB ARGUMENTS...: runs the command; standard output and error are in $out and $err
attempt() {
    wanted=$1
    shift
    "$normgen" "$@" >"$out" 2>"$err" </dev/null
    got=$?
    [ "$got" -eq "$wanted" ] || {
        echo "normgen $*: exit $got, expected $wanted"
        cat "$err" "$out" | head -n 12
        return 1
    }
}
# CODE PATTERN ARGUMENTS...: the test's own `run` exits so, with words on standard error and nothing on standard output
refuses() {
    code=$1 pattern=$2
    shift 2
    run "$code" "$@" && warns "$pattern" && [ ! -s "$out" ]
}
