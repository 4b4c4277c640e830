#!/bin/sh
# make faults: plants each fault of tests/faults/faults.def in a copy of the tree, builds what its test needs and runs the
# test, which must fail and say what the entry expects. First every test runs in the sound copy, where it must pass. A
# fault that survives has failed, and so has one that no longer applies, does not build, or dies without a word.
#
#     BUILD         a tree with `all` and the unit tests built; copies of it lie in $BUILD/faults, logs in its logs/
#     FAULTS        names of the faults to plant (all)
#     FAULT_JOBS    copies that are worked on at once (one a core)
set -u
build=${BUILD:-build}
list=tests/faults/faults.def
work=$build/faults
jobs=${FAULT_JOBS:-$(nproc 2>/dev/null || echo 2)}
limit=120 # seconds that a test may take
unset MAKEFLAGS MFLAGS MAKELEVEL NORMGEN_TEST_REDUCED UPDATE_GOLDEN
export NORMGEN_SEED=1 # what passes once passes always

rm -rf "$work"
mkdir -p "$work/entries" "$work/tests" "$work/claims" "$work/logs" "$work/results" "$work/reports" || exit 6
work=$(cd "$work" && pwd) || exit 6

# ---- the list: a folder an entry, with a file a field; a folder a test
awk -v to="$work/entries" -v only=" ${FAULTS:-} " '
    function bad(why) { print FILENAME ":" FNR ": " why; failed = 1; exit 1 }
    function put(field, text) { print text > (folder "/" field) }
    function finish(i) {
        for (i in fields) if (name != "" && !(fields[i] in seen)) bad("fault " name " has no " fields[i])
        if (name != "") for (i in seen) close(folder "/" i)
        split("", seen)
    }
    BEGIN { split("breaks file test says old", fields, " ") }
    /^#/ || /^$/ { next }
    /^fault / {
        finish()
        if ($2 in names) bad("a second fault " $2)
        names[name = $2] = 1
        skipped = only !~ /^ *$/ && !index(only, " " name " ")
        folder = sprintf("%s/%03d.%s", to, ++count, name)
        if (!skipped) system("mkdir \"" folder "\"")
        if (skipped) folder = "/dev"
        next
    }
    /^(breaks|file|test|says): / {
        field = substr($0, 1, index($0, ":") - 1)
        if (name == "" || field in seen) bad("a stray " field)
        seen[field] = 1
        if (!skipped) put(field, substr($0, length(field) + 3))
        next
    }
    /^[-+]/ {
        field = substr($0, 1, 1) == "-" ? "old" : "new"
        seen[field] = 1
        if (!skipped) put(field, substr($0, 2))
        next
    }
    { bad("neither a field nor a line of a patch") }
    END { if (!failed) finish(); exit failed }
' "$list" || exit 6
number=0
for entry in "$work"/entries/*; do
    [ -d "$entry" ] || { echo "no such fault: ${FAULTS:-}"; exit 2; }
    for test in "$work"/tests/*; do
        if [ -d "$test" ] && cmp -s "$test/test" "$entry/test"; then break; fi
        test=
    done
    if [ -z "$test" ]; then
        number=$((number + 1))
        test=$work/tests/$number
        mkdir "$test"
        cp "$entry/test" "$test/test"
    fi
    basename "$test" >"$entry/number"
done

# ---- the copies, each with everything built; what is built there says so of `build`
copy() { # NAME
    mkdir -p "$work/$1/build" || exit 6
    cp -a Makefile ir gen runtime templates examples tests "$work/$1" || exit 6
    for part in obj tests templates.c libnormgen.a libnormgen.so libcli.a libsupport.a normgen; do
        if [ -e "$build/$part" ]; then cp -a "$build/$part" "$work/$1/build" || exit 6; fi
    done
    if [ "$build" != build ]; then
        find "$work/$1/build" -name '*.d' | while read -r file; do
            sed "s|^$build/|build/|" "$file" >"$work/$1/d" && touch -r "$file" "$work/$1/d" && mv "$work/$1/d" "$file"
        done
    fi
}
copy sound

# The first occurrence of $old in the text of a file becomes $new; it must be the only one.
plant() { # FILE ENTRY
    awk -v file="$1" -v old="$2/old" -v new="$2/new" '
        function slurp(name, text, line) { text = ""; while ((getline line < name) > 0) text = text line "\n"; return text }
        BEGIN {
            text = slurp(file); from = slurp(old); to = slurp(new)
            sub(/\n$/, "", from); sub(/\n$/, "", to)
            at = index(text, from)
            if (!at) { print "the text to replace is not there"; exit 1 }
            if (index(substr(text, at + 1), from)) { print "the text to replace is there more than once"; exit 1 }
            printf "%s", substr(text, 1, at - 1) to substr(text, at + length(from)) > (file ".faulty")
        }' && mv "$1.faulty" "$1"
}

# What the test's program is made of. Faults may leave a variable unused, so warnings are off.
build_for() { # TEST-FILE
    target=$(tr ' ' '\n' <"$1" | grep '^build/' | head -n 1)
    make -s BUILD=build WARNINGS= CFLAGS=-O1 "${target:-all}"
}

run_test() { timeout "$limit" sh -c "$(cat "$1")"; }

# Everything in the copy that is newer than the stamp, as it was.
restore() { # COPY
    find "$work/$1" -type f -newer "$work/$1.stamp" | while read -r file; do
        rm -f "$file"
        sound=$work/sound/${file#"$work/$1/"}
        if [ -e "$sound" ]; then cp -p "$sound" "$file"; fi
    done
}

claim() { mkdir "$work/claims/$1" 2>/dev/null; }
result() { # OUTCOME NAME WORDS
    echo "$1" >"$work/results/$2"
    echo "$1: $2$3" | tee "$work/reports/$2"
}

try_sound() { # TEST-FOLDER: passes in the sound copy, or leaves its output
    number=$(basename "$1")
    start=$(date +%s)
    if (cd "$work/sound" && run_test "$1/test") >"$work/logs/sound.$number" 2>&1; then
        touch "$1/passed"
    else
        echo "fails without a fault: $(cat "$1/test")"
        tail -n 20 "$work/logs/sound.$number" | sed 's/^/    /'
    fi
    echo $(($(date +%s) - start)) >"$1/seconds"
}

# Why the planted fault was not caught as it should be; nothing where it was.
try_planted() { # ENTRY COPY LOG
    file=$(cat "$1/file")
    plant "$file" "$1" || return
    if ! build_for "$1/test" >"$3" 2>&1; then echo "it does not build"; return; fi
    run_test "$1/test" >"$3" 2>&1
    status=$?
    if [ "$status" -eq 0 ]; then echo "SURVIVED: the test passes with it"; return; fi
    if [ "$status" -eq 124 ]; then echo "the test did not end within $limit s"; return; fi
    if ! grep -q '^\[  FAILED  \]' "$3"; then echo "the test died (status $status) instead of failing"; return; fi
    if ! grep -qE -e "$(cat "$1/says")" "$3"; then echo "the test fails without saying: $(cat "$1/says")"; fi
}

try_fault() { # ENTRY COPY
    name=$(basename "$1")
    name=${name#*.}
    log=$work/logs/$name
    start=$(date +%s)
    if [ ! -e "$work/tests/$(cat "$1/number")/passed" ]; then
        result error "$name" ": its test fails without it"
        return
    fi
    touch "$work/$2.stamp"
    sleep 0.01 # of clocks that tick slowly
    why=$(cd "$work/$2" && try_planted "$1" "$2" "$log")
    if [ -z "$why" ]; then
        result caught "$name" " ($(($(date +%s) - start)) s): $(cat "$1/breaks")"
    else
        result failed "$name" ": $why"
        [ -e "$log" ] && tail -n 12 "$log" | sed 's/^/    /' | tee -a "$work/reports/$name"
    fi
    restore "$2"
}

worker() { # NUMBER
    copy "$1"
    for test in "$work"/tests/*; do
        if claim "test.$(basename "$test")"; then try_sound "$test"; fi
    done
    for test in "$work"/tests/*; do # the other workers' may still run
        until [ -e "$test/seconds" ]; do sleep 0.1; done
    done
    for entry in "$work"/entries/*; do
        if claim "$(basename "$entry")"; then try_fault "$entry" "$1"; fi
    done
}

job=0
while [ "$job" -lt "$jobs" ]; do
    job=$((job + 1))
    worker "$job" &
done
wait

count() { cat "$work"/results/* 2>/dev/null | grep -c -E "^($1)$"; }
caught=$(count caught) all=$(find "$work/entries" -mindepth 1 -maxdepth 1 | wc -l)
rm -rf "$work/sound" "$work"/[0-9]*
if [ "$caught" -ne "$all" ]; then
    echo "---- failed"
    for report in "$work"/reports/*; do
        grep -q '^caught: ' "$report" || cat "$report"
    done
fi
echo "$caught passed, $((all - caught)) failed, 0 skipped"
[ "$caught" -eq "$all" ]
