#!/bin/sh
# Compiles tests/kernels/helpers.cpp with the system's C++ compiler and runs it.
set -u
scratch=$(mktemp -d) || exit 6
trap 'rm -rf "$scratch"' EXIT
"${CXX:-c++}" -std=c++17 -O1 -ffp-contract=off -Wall -Wno-unused-function -Wno-unknown-pragmas -I. -DNG_TEXT=0 \
    tests/kernels/helpers.cpp -o "$scratch/helpers" || exit 1
"$scratch/helpers"
