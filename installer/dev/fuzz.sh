#!/usr/bin/env bash
# Runs every Go fuzz target for FUZZTIME each, then those of the guest library. With LAYER=long
# the result is recorded in docs/test-long.md.
set -euo pipefail
cd "$(dirname "$0")/../.."
began=$(date +%s)
grep -rlE --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r pkg; do
	go test -list '^Fuzz' "$pkg" | grep '^Fuzz' | while read -r target; do
		echo "fuzz $pkg $target for $FUZZTIME"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$FUZZTIME" -fuzzminimizetime 10x "$pkg"
	done
done
make --no-print-directory -C gpu/guest BUILD="$BASALT_BUILD" fuzz FUZZTIME="$FUZZTIME"
[ "${LAYER:-}" != long ] || go run ./appliance/test/testrun -began "$began" \
	-fuzzed "none failed in $FUZZTIME each of $(grep -rhE --include='*_test.go' '^func Fuzz' . | wc -l) targets, and the guest library's"
