#!/usr/bin/env bash
# Compares the soft GPU with the same algorithms in C (-O3 -march=native, OpenMP) on the
# same processors, round by round, as one table (gpu/guest/bench/soft). Called by "make
# bench-soft". ROUNDS is the number of rounds; default 7. ENGINE is how the soft GPU
# executes kernels: automatic (default), interpreted or compiled. A wrong result is a
# failure. Goals are printed next to the measured values and do not affect the result.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
build=${BASALT_BUILD:-$root/build}
out=$build/bench
rounds=${ROUNDS:-7}
engine=${ENGINE:-automatic}
mkdir -p "$out"

echo "bench-soft: building"
make --no-print-directory -C gpu/guest BUILD="$build" all bench-soft >"$out/soft-build.log" 2>&1 ||
	{ cat "$out/soft-build.log" >&2; exit 1; }
go build -o "$build/bin/" ./appliance/cmd/basalt-gpud ./appliance/cmd/basalt-worker ./appliance/test/benchreport
go test -c -o "$out/soft.test" ./gpu/soft

. installer/dev/bench-gpud.sh
start_gpud soft-gpud.log --no-nvidia --soft-gpu "vram=2GiB,engine=$engine"

samples=$out/soft-samples.txt
printf 'BenchmarkAccelerator/soft_GPU,_engine_%s\t1\t1 cards\n' "$engine" >"$samples" # shown in the table's first line
# Waiting OpenMP threads must not occupy processors that the soft GPU needs.
export OMP_WAIT_POLICY=passive
for round in $(seq "$rounds"); do
	echo "bench-soft: round $round of $rounds"
	"$build/bin/benchreport" busy >>"$samples"
	BENCH_GPUD=$gpud BASALT_GPU="unix:$sockets/gpu" LD_LIBRARY_PATH="$build/guest/lib" timeout 600 "$build/obj/guest/bench-soft" >>"$samples"
	(cd gpu/soft && "$out/soft.test" -test.run '^$' -test.bench '^Benchmark(Kernels|KernelsInGo|ModuleLoad|ModuleCopy)$' -test.benchtime 3x) >>"$samples"
done

echo
echo "load average: $(cut -d' ' -f1-3 /proc/loadavg)"
"$build/bin/benchreport" soft <"$samples" | tee "$out/soft-report.txt"
