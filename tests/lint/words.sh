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
check "no fixed-size text buffers" quiet grep -nE '^[[:space:]]+char [a-z_]+\[[0-9]{2,}\];' $library
check "no vsprintf, sprintf, strcpy, strcat" quiet grep -nE '[^a-z_n](v?sprintf|strcpy|strcat|gets)\(' $all

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
