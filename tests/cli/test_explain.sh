#!/bin/sh
# The bytes that `normgen explain` counts for backward norms in one pass: three elements for each of the rows' (x and dy
# read, dx stored), statistics, weights, and the partial rows, which are stored once and read once. Without the mixed
# order x and dy are read twice.
set -u
. tests/cli/command.sh
formula=
explains() { # GRAPH OPTIONS...
    attempt 0 explain "$@" && says "^  bytes +$formula = [0-9]+, "
}

# NORM:STATISTICS:WEIGHTS:SUMS: f32 read a row; f32 read or stored a column; partial rows of a part
for columns in 129 768 4096; do
    for type in bf16 f32; do
        [ $type = f32 ] && bytes=4 || bytes=2
        rows=$((3 * columns * bytes))
        for norm in rms_norm:1:2:1 layer_norm:2:3:2; do
            name=${norm%%:*}
            set -- $(echo "${norm#*:}" | tr : ' ')
            graph=$scratch/$name.yaml
            sed "s/bf16/$type/g" "examples/${name}_bwd.yaml" >"$graph"
            formula="$((rows + 4 * $1))\\*M \\+ $((8 * columns * $3))\\*P0 \\+ $((4 * columns * $2))"
            check "$name of $columns $type" explains "$graph" -D N=$columns --hint=M=65536
            check "  two kernels" says "^${name}_bwd: 2 kernels, "
            formula="$((rows + 2 * columns * bytes + 8 * $1))\\*M \\+ .*"
            check "  and apart" explains "$graph" -D N=$columns --hint=M=65536 --set=fuse=row
            check "  three" says "^${name}_bwd: 3 kernels, "
        done
    done
done
finish
