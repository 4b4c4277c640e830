#!/bin/sh
# clang-format decides the layout.
set -u
. tests/support/check.sh
files=$(find ir gen runtime tests examples -name '*.[ch]' | sort)
for file in $files; do
    check "$file is laid out as clang-format has it" clang-format --dry-run -Werror "$file"
done
finish
