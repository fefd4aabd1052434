#!/bin/sh
# Packs the GPU tests and benchmarks into one folder (make gpu-check) that
# runs on a machine with an NVIDIA card: no Go, no CUDA toolkit, only glibc at
# least as new as this machine's.
set -eu
out=${1:?usage: pack.sh DIR}
here=$(cd "$(dirname "$0")" && pwd)
go=${GO:-go}
cd "$here/../.."
rm -rf "$out"
mkdir -p "$out"
"$go" test -c -o "$out/driver.test" ./gpu/cuda
"$go" test -c -o "$out/kernels.test" ./gpu/conformance
cp "$here/run.sh" "$here/table.awk" "$out/"
cp "$here/kernels/kernels.cu" "$here/kernels/kernels.ptx" "$out/"
chmod +x "$out/run.sh"
echo "gpu-check: copy $out to a machine with an NVIDIA card and run ./run.sh there"
