#!/bin/sh
# Writes C that holds the named files as data: each a row of gen_templates, its name without the directory.
set -eu
echo '/* Made by templates/embed.sh. */'
echo '#include "gen/template.h"'
i=0
for file in "$@"; do
    echo "static const char file_$i[] = {"
    od -An -v -tx1 "$file" | sed 's/ \(..\)/0x\1,/g'
    echo '0x00};'
    i=$((i + 1))
done
echo 'const GenTemplate gen_templates[] = {'
i=0
for file in "$@"; do
    echo "    {\"${file##*/}\", file_$i, sizeof file_$i - 1},"
    i=$((i + 1))
done
echo '    {0, 0, 0},' # there may be no file
echo '};'
echo "const uint32_t gen_template_count = $i;"
