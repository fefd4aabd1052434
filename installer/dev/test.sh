#!/usr/bin/env bash
# Every test: the portal's components, the guest library's own, then all of Go's,
# on real libvirt and QEMU. Called by "make test".
set -euo pipefail
cd "$(dirname "$0")/../.."

make --no-print-directory lint generated ui-check
make --no-print-directory -C gpu/guest BUILD="$BASALT_BUILD" test
make --no-print-directory testguest images iso libvirtd
trap 'installer/dev/libvirtd.sh stop' EXIT

go build -o "$BASALT_BUILD/bin/testreport" ./installer/dev/testreport
# Two packages at a time: most of them wait for a VM more than they compute.
# -count=1: a cached result says nothing about this machine's libvirt.
set -o pipefail
again=$BASALT_BUILD/again.txt
rm -f "$again"
if go test -json -count=1 -p 2 -timeout 45m ./... | "$BASALT_BUILD/bin/testreport" -again "$again"; then
	exit
fi
# A few failures are asked once more, alone; the report above names them and says
# why they failed. What fails twice has failed.
[[ -s $again ]]
while read -r package run; do
	go test -json -count=1 -timeout 20m -run "$run" "$package" </dev/null || true
done <"$again" | "$BASALT_BUILD/bin/testreport"
