#!/bin/sh
# Compiles kernels.cu to kernels.ptx with clang-19 (installer/dev/setup.sh).
set -eu
cd "$(dirname "$0")"
"${CLANG:-clang-19}" -x cuda --cuda-device-only --cuda-gpu-arch=sm_60 -nocudainc -nocudalib -S -O2 \
	-Wno-unknown-cuda-version -ffp-contract=off -o kernels.ptx kernels.cu
