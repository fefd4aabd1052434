#!/usr/bin/env bash
# Runs Debian's pycuda and numba on a soft GPU with Basalt's libcuda: Basalt's own
# programs in python/ (part python), and numba's tests, one process for each of its
# modules (part numba). The output of each is in $BASALT_BUILD/vendor/log/; see also
# results.sh.
#
#   PROGRAMS=PATTERN  only those whose name matches (a shell pattern)
#   LIMIT=SECONDS     of processor time that a program or a module may use (600)
set -euo pipefail
. "$(dirname "$0")/gpu.sh"
. installer/dev/vendor/results.sh
limit=${LIMIT:-600}
packages=usr/lib/python3/dist-packages
rm -rf "$root/opt/python"
cp -a installer/dev/vendor/python "$root/opt/python"

# said LOG: the number of tests and the failed ones, or the last line of the output.
said() {
	local failed
	failed=$(sed -nE 's/^(FAIL|ERROR): ([^ ]+).*/\2/p' "$1" | sort -u | tr '\n' ' ')
	grep -oE '^Ran [0-9]+ tests?' "$1" | tail -n 1 | tr '\n' ' '
	[ -n "$failed" ] && echo "not right: $failed" || reason "$1" '^[A-Za-z.]*(Error|Exception)'
}

# run PART NAME COMMAND…: runs the command and records its result.
run() {
	local part=$1 name=$2 code=0 log=$dir/log/$1-${2//\//.}.log
	shift 2
	if left_out "$part" "$name"; then count=$((count + 1)); return; fi
	inside /opt/python "$limit" "$@" >"$log" 2>&1 || code=$?
	case $code in
	0) note "$part" "$name" passes $used "$(grep -oE '^Ran [0-9]+ tests?' "$log" | tail -n 1)" ;;
	5) note "$part" "$name" passes $used "has no tests" ;; # unittest's status
	124 | 137) note "$part" "$name" slow $used "" ;;
	*) note "$part" "$name" fails $used "$(said "$log")" ;;
	esac
}

programs=$(cd installer/dev/vendor/python && find . -name '*.py' -name "*${PROGRAMS:-}*" -printf '%P\n' | sort)
modules=$(cd "$root/$packages/numba/cuda/tests" && find . -name 'test_*.py' -path "*${PROGRAMS:-}*" -printf '%P\n' | sort)
begin $(wc -w <<<"$programs $modules") python numba
echo "vendor: $(wc -w <<<"$programs") programs of pycuda and numba, $(wc -w <<<"$modules") modules of numba's tests"
for program in $programs; do
	run python "${program%.py}" python3 "$program"
done
for module in $modules; do
	module=${module%.py}
	run numba "$module" python3 -m unittest -v "numba.cuda.tests.${module//\//.}"
done
