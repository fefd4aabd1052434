#!/usr/bin/env bash
# Builds NVIDIA's CUDA samples with nvcc and the shared runtime library and runs
# them on a soft GPU, with Basalt's libcuda and libcudart in place of NVIDIA's.
# Writes a table of what each said to $BASALT_BUILD/vendor/samples.md.
#
#   SAMPLES=PATTERN   only those whose path matches (a shell pattern)
#   LIMIT=SECONDS     how long one may run (60): the soft GPU is a CPU
set -euo pipefail
cd "$(dirname "$0")/../../.."
dir=$BASALT_BUILD/vendor
root=$dir/root
limit=${LIMIT:-60}
examples=usr/share/doc/nvidia-cuda-samples/examples
installer/dev/vendor/root.sh
mkdir -p "$root/opt/basalt" "$root/opt/samples"
cp -a "$BASALT_BUILD/guest/lib" "$root/opt/basalt/"

# A vGPU whose socket lies in the root.
rm -f "$root/opt/basalt/gpu"
"$BASALT_BUILD/bin/basalt-gpud" --standalone --no-nvidia --soft-gpu vram=1GiB --socket "$root/opt/basalt/gpu" \
	--state "$dir/state" >"$dir/gpud.log" 2>&1 &
gpud=$!
trap 'kill $gpud 2>/dev/null || true' EXIT
until [ -S "$root/opt/basalt/gpu" ]; do
	kill -0 $gpud || { cat "$dir/gpud.log" >&2; exit 1; }
	sleep 0.1
done

# build PATH NAME: says in $dir/NAME.log why not. A sample's Makefile names its libraries.
build() {
	local libraries
	libraries=$(sed -n 's/^LIBRARIES *+= *//p' "$root/$examples/$1/Makefile" | grep -oE -e '-l[a-z_0-9]+' | tr '\n' ' ' || true)
	chroot "$root" sh -c "cd /$examples/$1 && set --; for f in *.cu *.cpp; do [ ! -e \"\$f\" ] || set -- \"\$@\" \"\$f\"; done;
		exec nvcc -w -std=c++14 -arch=sm_61 -cudart shared -I/$examples/Common -L/opt/basalt/lib -o /opt/samples/$2 \"\$@\" $libraries -lcuda" >"$dir/$2.log" 2>&1
}

run() {
	chroot "$root" sh -c "cd /$examples/$1 && LD_LIBRARY_PATH=/opt/basalt/lib BASALT_GPU=unix:/opt/basalt/gpu \
		exec timeout $limit /opt/samples/$2" >"$dir/$2.log" 2>&1 </dev/null
}

# why NAME: the last line that says something, safe in a table.
why() { { grep -iE 'error|fail|not supported|unsupported|waiv' "$dir/$1.log" || tail -n 1 "$dir/$1.log"; } | tail -n 1 | tr '|`' '/' | cut -c1-120; }

passed=0 failed=0 unbuilt=0
{
	echo "| sample | result | why |"
	echo "|---|---|---|"
} >"$dir/samples.md"
for path in $(cd "$root/$examples" && find Samples -name Makefile -path "*${SAMPLES:-}*" -printf '%h\n' | sort); do
	name=$(basename "$path") result=passes reason=
	if ! build "$path" "$name"; then
		unbuilt=$((unbuilt + 1)) result="not built" reason=$(why "$name")
	else
		code=0
		run "$path" "$name" || code=$?
		case $code in
		0) passed=$((passed + 1)) ;;
		2) result="waives itself" reason=$(why "$name") ;; # EXIT_WAIVED
		124) failed=$((failed + 1)) result="over $limit s" ;;
		*) failed=$((failed + 1)) result="exit $code" reason=$(why "$name") ;;
		esac
	fi
	echo "$result  $path  $reason"
	echo "| $path | $result | $reason |" >>"$dir/samples.md"
done
echo "$passed pass, $failed do not, $unbuilt were not built: $dir/samples.md"
