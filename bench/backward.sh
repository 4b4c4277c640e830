#!/bin/sh
# Backward norms in one pass (mixed order) beside the same graphs without it (fuse=row) and a copy of the same bytes, on
# the GPU that is there; a line each. From the repository's root:
#
#     sh bench/backward.sh [NORMGEN]      default build/normgen; BENCH_ROWS=32768 rows
#
# Sets of all tensors take turns, calls are replayed as CUDA graphs, programs by turns, and the medians count: see
# `normgen bench --help`. What was measured with it is kept in bench/results.
set -eu
normgen=${1:-build/normgen}
rows=${BENCH_ROWS:-32768}

nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,clocks.max.memory --format=csv,noheader
echo "bf16, f32 weights; microseconds of a call, share of a copy's speed"
printf '%-20s %-14s %9s %9s %7s %9s %7s %7s\n' graph shape copy one-pass share fuse=row share ratio

measure() { # GRAPH SHAPE DIMS...
    graph=$1 shape=$2
    shift 2
    "$normgen" bench "examples/$graph.yaml" "$@" --compare=fuse=row | awk -v graph="$graph" -v shape="$shape" '
        $1 == "copy" { copy = $2 }
        $1 == "as" && $2 == "given" { one = $3 }
        $1 == "fuse=row" { row = $2 }
        END { if (!copy || !one || !row) exit 1
              printf "%-20s %-14s %9.2f %9.2f %7.3f %9.2f %7.3f %7.3f\n", graph, shape, copy, one, copy / one, row,
                     copy / row, row / one }'
}

for graph in rms_norm_bwd layer_norm_bwd; do
    for columns in 256 384 512 768 1024 2048 4096 8192 12288 16384; do
        measure "$graph" "${rows}x$columns" -D M="$rows" -D N=$columns
    done
done
for graph in add_rms_norm_bwd softmax_bwd layer_norm_gelu_bwd rms_norm_shared_bwd; do
    for columns in 1024 4096; do measure "$graph" "${rows}x$columns" -D M="$rows" -D N=$columns; done
done
measure ada_ln_bwd 128x256x1152 -D B=128 -D S=256 -D N=1152
measure ada_ln_bwd 1x32768x1152 -D B=1 -D S=32768 -D N=1152
# flat shapes (pytorch#185534)
measure rms_norm_bwd 8192x8192 -D M=8192 -D N=8192
measure rms_norm_bwd 4096x16384 -D M=4096 -D N=16384
measure rms_norm_bwd 2048x8192 -D M=2048 -D N=8192 --set=mixed_rows=1
