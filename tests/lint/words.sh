#!/bin/sh
# What the style forbids and a search can find: mutable globals, floats printed under a locale, exits and prints in the
# library, long files and functions.
set -u
. tests/support/check.sh
build=${BUILD:-build}
library=$(find ir gen runtime -name '*.c' -not -path 'runtime/cli/*' | sort)
all=$(find ir gen runtime tests examples -name '*.[ch]' | sort)

quiet() { # a search whose every line is a fault
    found=$("$@")
    [ -z "$found" ] || { echo "$found"; return 1; }
}
# Sections that can be written. The emulator's current fiber is thread-local (.tbss), and allowed.
mutable_objects() { objdump -t "$build/libnormgen.a" 2>/dev/null | awk '/file format/ {file = $1} / \.(data|bss)[ \t]/ && $NF !~ /^\.(data|bss)$/ && $(NF - 1) != "0000000000000000" {print file, $NF}'; }
check "no mutable globals or function statics in the library" quiet mutable_objects
# ir/text.c has the one place that prints a float, and mends what a locale did to it
float_formats() { grep -nE '"[^"]*%[-+ #0-9.*]*l?[efgEFG]([^a-zA-Z"][^"]*)?"' $library | grep -v '^ir/text\.c:'; }
check "no float through printf in the library" quiet float_formats
check "the library never exits or prints" quiet grep -nE '[^a-z_](exit|printf|puts|putchar|perror|setlocale|setenv|unsetenv|putenv)\(' $library
# text grows in ir/text.c and ir/job.c, which alone may print into a buffer
into_buffers() { grep -nE '[^a-z_](sn?printf|vsprintf|strn?cpy|strn?cat|gets)\(' $library | grep -vE '^ir/(text|job)\.c:'; }
check "no text printed into a fixed-size buffer" quiet into_buffers

long_files() { wc -l $all | awk '$2 != "total" && $1 > 700 {print $2 ": " $1 " lines, at most 700"}'; }
check "files have at most 700 lines" quiet long_files
long_functions() {
    awk 'FNR == 1 {start = 0}
        /^[A-Za-z_].*[)] [{]$/ || /^[{]$/ {start = FNR; head = $0}
        /^    .*[)] [{]$/ && !start && previous ~ /^[A-Za-z_]/ {start = FNR; head = previous}
        /^[}]/ {if (start && FNR - start + 1 > 90) print FILENAME ":" start ": " FNR - start + 1 " lines, at most 90: " head; start = 0}
        {previous = $0}' $all
}
check "functions have at most 90 lines" quiet long_functions
headless() { for file in $all; do head -c 2 "$file" | grep -q '/\*' || echo "$file: does not open with what it is"; done; }
check "every file opens with what it is" quiet headless
finish
