#!/usr/bin/env bash
# Runs the benchmarks, each several times alternating with its baseline, and prints one
# table. Called by "make bench". BENCH=quick takes three short rounds instead of seven
# and boots once instead of three times; the leader is killed 10 times instead of 30, a
# node twice instead of 5 times. The samples are kept in build/bench/. The medium (make
# iso) must exist.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
build=${BASALT_BUILD:-$root/build}
out=$build/bench
mkdir -p "$out"
[ -s "$build/basalt.iso" ] || { echo "bench: no installation medium: run make iso" >&2; exit 1; }

case ${BENCH:-} in
quick) rounds=3 boots=1 time=200ms leaders=10 deaths=2 ;;
'') rounds=7 boots=3 time=1s leaders=30 deaths=5 ;;
*) echo "bench: BENCH is \"$BENCH\"; it may be quick" >&2; exit 2 ;;
esac

. installer/dev/bench-gpud.sh

echo "bench: building"
go build -o "$build/bin/" ./appliance/cmd/... ./appliance/test/benchreport
go test -c -o "$out/soft.test" ./gpu/soft
go test -c -o "$out/store.test" ./appliance/controlplane/store
go test -c -o "$out/ovn.test" ./sdn/ovn
go test -c -o "$out/e2e.test" ./appliance/test/e2e/node
go test -c -o "$out/ui.test" ./ui
go test -c -o "$out/offers.test" ./appliance/controlplane/offers
go test -c -o "$out/sshgateway.test" ./appliance/node/sshgateway
make --no-print-directory -C gpu/guest BUILD="$build" bench

start_gpud gpud.log --soft-gpu vram=8GiB

samples=$out/samples.txt
: >"$samples"
# take NAME COMMAND…: collects its samples; other output is shown if it fails.
take() {
	local name=$1
	shift
	"$@" >"$out/last.txt" 2>&1 || { cat "$out/last.txt" >&2; echo "bench: $name failed" >&2; exit 1; }
	grep '^Benchmark' "$out/last.txt" >>"$samples" || { cat "$out/last.txt" >&2; echo "bench: $name has no samples" >&2; exit 1; }
}
go_bench() { # go_bench NAME PACKAGE PATTERN [TIME]
	(cd "$2" && "$out/$1.test" -test.run '^$' -test.bench "$3" -test.benchtime "${4:-$time}")
}
storage() { # in a guest: three rounds of its own; -test.v prints why it cannot run
	installer/guest/build.sh && installer/dev/libvirtd.sh start &&
		(cd appliance/test/e2e/node && "$out/e2e.test" -test.v -test.run '^$' -test.bench '^BenchmarkStorage$' -test.benchtime 1x) || return
	installer/dev/libvirtd.sh stop
}
for round in $(seq "$rounds"); do
	echo "bench: round $round of $rounds"
	take busy "$build/bin/benchreport" busy
	take guest env BASALT_GPU="unix:$sockets/gpu" LD_LIBRARY_PATH="$build/guest/lib" timeout 120 "$build/obj/guest/bench" 1
	take soft go_bench soft gpu/soft '^Benchmark(Kernels|Waits|NoWaits|Launch|HandOver)'
	take store go_bench store appliance/controlplane/store '^(BenchmarkCommit|BenchmarkList|BenchmarkSorted|BenchmarkAlerts)$'
	take store go_bench store appliance/controlplane/store '^BenchmarkClusterCommit$' 1s # starting a thousand clients takes time
	take offers go_bench offers appliance/controlplane/offers '^BenchmarkOffers$'
	take network go_bench ovn sdn/ovn '^BenchmarkThroughput$'
	take ssh go_bench sshgateway appliance/node/sshgateway '^BenchmarkThroughput$' 3x
	take portal go_bench ui ui '^BenchmarkPortal$' 1x # in Chromium
done
kill "$gpud" && wait "$gpud" || true
gpud=''

for boot in $(seq "$boots"); do
	echo "bench: instance, boot $boot of $boots"
	take busy "$build/bin/benchreport" busy
	take instance installer/dev/bench-instance.sh
	take network go_bench ovn sdn/ovn '^BenchmarkTopology$/^networks=100$' 1x # networks=1000 takes minutes and 4 GiB
	take storage storage
	take boot env BOOTS=1 installer/dev/bench-boot.sh
	take iso installer/dev/bench-iso.sh
done

echo "bench: cluster, $leaders leaders and $deaths nodes die"
take busy "$build/bin/benchreport" busy
take cluster env LEADERS="$leaders" NODES="$deaths" installer/dev/bench-cluster.sh
take busy "$build/bin/benchreport" busy

echo
"$build/bin/benchreport" <"$samples" | tee "$out/report.txt"
