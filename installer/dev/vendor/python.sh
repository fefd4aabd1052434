#!/usr/bin/env bash
# Runs Debian's pycuda and numba on a soft GPU with Basalt's libcuda: our own
# programs of python/, and numba's tests, one process for each of its modules.
# Writes tables to $BASALT_BUILD/vendor/{python,numba-tests}.md and what each
# said to $BASALT_BUILD/vendor/log/.
#
#   PROGRAMS=PATTERN  only those whose name matches (a shell pattern)
#   LIMIT=SECONDS     how long a program or a module may run (300)
set -euo pipefail
. "$(dirname "$0")/gpu.sh"
limit=${LIMIT:-300}
packages=usr/lib/python3/dist-packages
rm -rf "$root/opt/python"
cp -a installer/dev/vendor/python "$root/opt/python"
mkdir -p "$dir/log"

# how CODE LOG: a test run's summary, or what the last line says.
how() {
	case $1 in
	0 | 5) ;;
	124 | 137) echo "over $limit s" ;;
	*) grep -E '^FAILED' "$2" || tail -n 1 "$2" | tr '|`' '/' | cut -c1-160 ;;
	esac
}

# table FILE NAME COMMAND…: runs the command, whose row goes to the file.
table() {
	local file=$1 name=$2 code=0 log result
	log=$dir/log/${2//\//.}.log
	shift 2
	inside /opt/python "$limit" "$@" >"$log" 2>&1 || code=$?
	result=passes
	[ $code != 5 ] || result="has no tests" # unittest's status
	[ $code = 0 ] || [ $code = 5 ] || { result=fails failed=$((failed + 1)); }
	echo "$result  $name  $(how $code "$log")"
	echo "| $name | $result | $(grep -oE '^Ran [0-9]+ tests?' "$log" | tail -n 1) | $(how $code "$log") |" >>"$file"
}

failed=0
printf '| program | result | tests | why |\n|---|---|---|---|\n' | tee "$dir/python.md" >"$dir/numba-tests.md"
for program in installer/dev/vendor/python/${PROGRAMS:-}*.py; do
	[ -e "$program" ] || continue
	table "$dir/python.md" "$(basename "$program" .py)" python3 "$(basename "$program")"
done
ours=$failed failed=0
for module in $(cd "$root/$packages" && find numba/cuda/tests -name 'test_*.py' -path "*${PROGRAMS:-}*" | sort); do
	name=${module%.py}
	table "$dir/numba-tests.md" "${name#numba/cuda/tests/}" python3 -m unittest -v "${name//\//.}"
done
echo "$ours of our programs and $failed modules of numba's tests fail: $dir/python.md, $dir/numba-tests.md"
