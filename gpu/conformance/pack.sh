#!/bin/sh
# Packs the GPU tests and benchmarks into one folder (make gpu-check) that
# runs on a machine with an NVIDIA card: no Go, no CUDA toolkit, only glibc at
# least as new as this machine's.
set -eu
out=${1:?usage: pack.sh DIR}
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$(dirname "$out")" && pwd)
go=${GO:-go}
cd "$here/../.."
rm -rf "$out"
mkdir -p "$out/obj/guest/blas/test" "$out/gpu/soft"
flags='-ldflags=-s -w'
for test in driver=gpu/cuda kernels=gpu/conformance guest=gpu/guest oracle=gpu/soft; do
	"$go" test -c "$flags" -o "$out/${test%%=*}.test" "./${test#*=}"
done
"$go" build "$flags" -o "$out/" ./appliance/cmd/basalt-gpud ./appliance/cmd/basalt-worker
make --no-print-directory -s -C gpu/guest BUILD="$build" testprograms >&2
cp -RL "$build/guest" "$out/guest"
for program in api replay bench blas/test/blas; do cp "$build/obj/guest/$program" "$out/obj/guest/$program"; done
cp -R gpu/guest/testdata "$out/testdata" # of the guest library's tests
cp -R gpu/soft/testdata "$out/gpu/soft/testdata"
cp "$here/run.sh" "$here/table.awk" "$out/"
cp "$here/kernels/kernels.cu" "$here/kernels/kernels.ptx" "$out/"
chmod +x "$out/run.sh"
echo "gpu-check: copy $out to a machine with an NVIDIA card and run ./run.sh there"
