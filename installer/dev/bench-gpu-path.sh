#!/usr/bin/env bash
# Measures the path between a program and a GPU, over a null GPU on this machine:
# samples of gpu/guest/bench with their baselines, round by round, as one table. Called
# by "make bench-gpu-path". ROUNDS is the number of rounds; default 7. Goals are printed
# next to the measured values and do not affect the result. VM=1 adds a second table,
# with the program in a VM under software emulation.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
build=${BASALT_BUILD:-$root/build}
out=$build/bench
rounds=${ROUNDS:-7}
mkdir -p "$out"

echo "bench-gpu-path: building"
make --no-print-directory -C gpu/guest BUILD="$build" all bench >"$out/path-build.log" 2>&1 ||
	{ cat "$out/path-build.log" >&2; exit 1; }
go build -o "$build/bin/" ./appliance/cmd/basalt-gpud ./appliance/cmd/basalt-worker ./appliance/test/benchreport

. installer/dev/bench-gpud.sh
start_gpud path-gpud.log --null-gpu name=null0,vram=4GiB

samples=$out/path-samples.txt
printf 'BenchmarkAccelerator/null_GPU\t1\t1 cards\n' >"$samples" # shown in the table's first line
for round in $(seq "$rounds"); do
	echo "bench-gpu-path: round $round of $rounds"
	"$build/bin/benchreport" busy >>"$samples"
	BASALT_GPU="unix:$sockets/gpu" LD_LIBRARY_PATH="$build/guest/lib" timeout 300 "$build/obj/guest/bench" path 1 >>"$samples"
done

echo
echo "load average: $(cut -d' ' -f1-3 /proc/loadavg)"
"$build/bin/benchreport" path <"$samples" | tee "$out/path-report.txt"
[ -n "${VM:-}" ] || exit 0

echo
echo "bench-gpu-path: the same in a VM"
{
	printf 'BenchmarkAccelerator/null_GPU,_a_VM_under_TCG\t1\t1 cards\n'
	"$build/bin/benchreport" busy
	go test -run '^$' -bench PathInVM -benchtime 1x -timeout 30m ./appliance/cmd/basalt-vgpu
} | tee "$out/path-vm-samples.txt" | grep -v '^Benchmark' || true
"$build/bin/benchreport" path-vm <"$out/path-vm-samples.txt" | tee "$out/path-vm-report.txt"
