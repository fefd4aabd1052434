#!/usr/bin/env bash
# Builds NVIDIA's CUDA samples by their own Makefiles with nvcc and runs them on
# a soft GPU, with Basalt's libcuda and libcudart in place of NVIDIA's. Writes a
# table of what each said to $BASALT_BUILD/vendor/samples-$RUNTIME.md and its
# output to $BASALT_BUILD/vendor/log/.
#
#   SAMPLES=PATTERN   only those whose path matches (a shell pattern)
#   LIMIT=SECONDS     how long one may run (120): the soft GPU is a CPU
#   RUNTIME=static    links NVIDIA's own runtime library (shared)
#   CAPABILITY=10.0   what the soft GPU says it has (9.0): cuBLAS has PTX for 9.0 only
set -euo pipefail
. "$(dirname "$0")/gpu.sh"
limit=${LIMIT:-120}
runtime=${RUNTIME:-shared}
case $runtime in
shared | static) ;;
*) echo "vendor: RUNTIME is $runtime, want shared or static" >&2; exit 1 ;;
esac
tree=/opt/samples-$runtime
if [ ! -e "$root$tree" ]; then
	cp -rL "$root/usr/share/doc/nvidia-cuda-samples/examples" "$root$tree.new"
	# The samples with NVRTC compile to machine code, which a soft GPU does not run.
	sed -i -e 's/architecture=sm_/architecture=compute_/' -e 's/nvrtcGetCUBIN/nvrtcGetPTX/g' "$root$tree.new/Common/nvrtc_helper.h"
	# Some link the static runtime by name.
	[ $runtime = static ] || find "$root$tree.new" -name Makefile -exec sed -i 's/-lcudart_static/-lcudart/' {} +
	mv "$root$tree.new" "$root$tree"
fi
mkdir -p "$dir/log"

# build PATH: the sample's own program. Its architecture is 9.0, which is what the
# soft GPU says it is, or the highest below that the sample names.
build() {
	arch=$(sed -n 's/^SMS ?= *//p' "$root$tree/$1/Makefile" | tail -n 1 | tr ' ' '\n' | awk '$1 <= 90 && $1 > most { most = $1 } END { print most }')
	inside "$tree/$1" 900 nice make CUDA_PATH=/usr SMS="${arch:-90}" CUDALIB="$basalt/lib" \
		EXTRA_NVCCFLAGS="-w -cudart $runtime -L$basalt/lib" build >"$log" 2>&1 &&
		[ -x "$root$tree/$1/$(basename "$1")" ]
}

# why WORDS: the last line of the log that has one of the words or, without any,
# the last line; safe in a table.
why() { { grep -aiE "$1" "$log" || tail -n 1 "$log"; } | tail -n 1 | tr '|`' '/' | cut -c1-160; }

passed=0 failed=0 unbuilt=0
table=$dir/samples-$runtime.md
printf '| sample | sm | result | why |\n|---|---|---|---|\n' >"$table"
for path in $(cd "$root$tree" && find Samples/[0-6]* -name Makefile -path "*${SAMPLES:-}*" -printf '%h\n' | sort); do
	name=$(basename "$path") reason=
	log=$dir/log/$runtime-$name.log
	if ! build "$path"; then
		unbuilt=$((unbuilt + 1)) result="not built" reason=$(why 'error|>>> W')
	else
		code=0
		inside "$tree/$path" "$limit" "./$name" >"$log" 2>&1 || code=$?
		reason=$(why 'error|fail|not support|unsupported|waiv')
		case $code in
		0)
			passed=$((passed + 1)) result=passes reason=
			! grep -qaE 'FAILED|Result = FAIL' "$log" || result="passes, and says" reason=$(why 'FAILED|Result = FAIL')
			;;
		2) result="waives itself" ;; # EXIT_WAIVED
		124 | 137) failed=$((failed + 1)) result="over $limit s" ;;
		*) failed=$((failed + 1)) result="exit $code" ;;
		esac
	fi
	echo "$result  $path  $reason"
	echo "| $path | ${arch:-90} | $result | $reason |" >>"$table"
done
echo "$passed pass, $failed do not, $unbuilt were not built: $table"
