#!/bin/sh
# Runs the GPU tests and benchmarks on this machine's NVIDIA card and writes
# report.md beside the log. Exits 0 only if every test ran and passed.
#
#   BASALT_CUDA_LIBRARY=PATH   another libcuda than the system's
#   BENCHTIME=1s COUNT=5       length and number of the benchmarks' runs
set -u
cd "$(dirname "$0")"
BASALT_CHECK_CARD=1 # without a card this is a failure, not a skip
BASALT_GUEST=$(pwd)/guest
export BASALT_CHECK_CARD BASALT_GUEST
chmod 755 . # workers may be another user
log=report.log
status=0
: >"$log"

step() { # name, command…
	echo "== $1"
	name=$1
	shift
	if "$@" >>"$log" 2>&1; then
		result=passed
	else
		result=FAILED
		status=1
	fi
	echo "   $result"
	steps="${steps:-}| $name | $result |
"
}

step "card" ./driver.test -test.v -test.run 'TestCardIsNamed$'
step "basalt-gpud doctor" ./basalt-gpud doctor
step "driver conformance" ./driver.test -test.v -test.timeout 10m -test.run 'TestCard$'
step "kernels, card against soft GPU" ./kernels.test -test.v -test.timeout 10m -test.run 'TestKernels$'
# A fault ends all use of a card by its process, so each test has a process of its own.
oracle() (
	cd gpu/soft
	../../oracle.test -test.list 'Oracle$|^Test(Kernels|Opcodes|MatmulAndTranspose|Grid3D|MatrixKernels|LargeSharedMemory|AtomicHalves|TensorCopies|TensorReduction|TensorMapInMemory|TensorMapReplace|Im2colCopies|Multicast|SparseIsDense|Alloca|AllocaInFunctions|WgmmaBaseOffset|ClusterPlaces|ClusterMemory|ClusterNarrow|AsyncStoresInCluster|AsyncStoresOfOneBlock|StoresToOneAddress|Locks|GridBarrier|LookBack|Queue|Relay|WarpsGoOnAlone|WarpGoesOnWithoutTheEnded|LockReleasedByWarp|SharedAddressesWrap|AddressSpaces|CallOfAddress|Recursion.*|ParametersInRegistersAndMemory)$|^FuzzDifferential$' |
		xargs -P 4 -I NAME sh -c '../../oracle.test -test.v -test.timeout 5m -test.run "^NAME\$" >NAME.log 2>&1'
	cat ./*.log
	unknown_failures
)
# unknown_failures prints the tests that failed and are not known to fail, and those that did
# not complete; it fails if there are any.
unknown_failures() {
	sed '/^#/d' testdata/card-differences.txt >known
	grep -L '^\(PASS\|FAIL\)$' ./*.log >unknown
	# A test of which a subtest failed is listed by that subtest.
	sed -n 's/^ *--- FAIL: \([^ ]*\) .*/\1/p' ./*.log | LC_ALL=C sort -u |
		awk '{ all[NR] = $0 } END { for (i = 1; i <= NR; i++) if (index(all[i + 1], all[i] "/") != 1) print all[i] }' |
		grep -vxF -f known >>unknown
	[ ! -s unknown ] || { echo "failed, and are not in card-differences.txt:"; cat unknown; return 1; }
}
step "oracle, against the card" oracle
step "guest library, through gpud and the jail" ./guest.test -test.v -test.timeout 10m -test.parallel 4 -test.run '^TestCard'
step "benchmarks" ./driver.test -test.run '^$' -test.bench . -test.benchtime "${BENCHTIME:-1s}" -test.count "${COUNT:-5}" -test.timeout 30m

{
	echo "# Basalt GPU check"
	echo
	sed -n 's/^.*card: /Card: /p' "$log" | head -n 1
	echo
	echo "| step | result |"
	echo "|---|---|"
	printf '%s' "$steps"
	echo
	awk -f table.awk "$log"
} >report.md
echo
cat report.md
echo
echo "Report: $(pwd)/report.md, log: $(pwd)/$log"
exit $status
