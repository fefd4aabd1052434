#!/usr/bin/env bash
# Builds NVIDIA's CUDA samples with their own Makefiles and nvcc and runs them on a soft
# GPU, with Basalt's libcuda in place of NVIDIA's: once with Basalt's runtime library
# (shared), once with NVIDIA's in the program (static). The next samples are built while
# one runs. The output of each is in $BASALT_BUILD/vendor/log/; see also results.sh.
#
#   SAMPLES=PATTERN…  only those whose path matches (shell patterns), in that order
#   LIMIT=SECONDS     of processor time that one may use with the soft GPU (1200)
#   RUNTIME=static    with that runtime library only ("shared static")
#   CAPABILITY=10.0   what the soft GPU says it has (9.0): cuBLAS has PTX for 9.0 only
set -euo pipefail
. "$(dirname "$0")/gpu.sh"
. installer/dev/vendor/results.sh
limit=${LIMIT:-1200}
runtimes=${RUNTIME:-shared static}
export root dir basalt runtimes
built=$dir/built # NAME-RUNTIME: make's status
export built

for runtime in $runtimes; do
	case $runtime in
	shared | static) ;;
	*) echo "vendor: RUNTIME is $runtime, want shared or static" >&2; exit 1 ;;
	esac
	tree=$root/opt/samples-$runtime
	[ ! -e "$tree" ] || continue
	cp -rL "$root/usr/share/doc/nvidia-cuda-samples/examples" "$tree.new"
	# The samples with NVRTC compile to machine code, which a soft GPU does not run.
	sed -i -e 's/architecture=sm_/architecture=compute_/' -e 's/nvrtcGetCUBIN/nvrtcGetPTX/g' "$tree.new/Common/nvrtc_helper.h"
	# Some link the static runtime by name.
	[ $runtime = static ] || find "$tree.new" -name Makefile -exec sed -i 's/-lcudart_static/-lcudart/' {} +
	mv "$tree.new" "$tree"
done

# build PATH: builds the sample's program with each runtime. Its architecture is 9.0,
# which the soft GPU reports, or the highest below that the sample names. The runtimes
# only differ in linking: the objects compiled for one are used for the other.
build() {
	local runtime folder name arch code objects=
	name=$(basename "$1")
	for runtime in $runtimes; do
		folder=/opt/samples-$runtime/Samples/$1 code=0
		arch=$(sed -n 's/^SMS ?= *//p' "$root$folder/Makefile" | tail -n 1 | tr ' ' '\n' | awk '$1 <= 90 && $1 > most { most = $1 } END { print most }')
		[ -z "$objects" ] || cp -pu "$root$objects"/*.o "$root$folder/" 2>/dev/null || true
		objects=$folder
		inside "$folder" 900 nice make CUDA_PATH=/usr SMS="${arch:-90}" CUDALIB="$basalt/lib" \
			EXTRA_NVCCFLAGS="-w -cudart $runtime -L$basalt/lib" build >"$dir/log/$runtime-$name.build.log" 2>&1 || code=$?
		[ -x "$root$folder/$name" ] || code=1
		echo $code >"$built/$name-$runtime.new"
		mv "$built/$name-$runtime.new" "$built/$name-$runtime"
	done
}
export -f build inside ticks reaped watch

# run RUNTIME PATH: runs what was built and records its result.
run() {
	local name log code=0 result said='error|fail|not support|unsupported|waiv'
	name=$(basename "$2") log=$dir/log/$1-$name.log
	inside "/opt/samples-$1/Samples/$2" "$limit" "./$name" >"$log" 2>&1 || code=$?
	case $code in
	0) result=passes ;;
	2) result=waives ;; # EXIT_WAIVED
	124 | 137) result=slow ;;
	*) result=fails ;;
	esac
	# Some programs print that their result is wrong and exit with 0.
	[ $code != 0 ] || ! grep -qaE 'FAILED|Result = FAIL' "$log" || result=fails said='FAILED|Result = FAIL'
	if [ $result = passes ]; then note "$1" "$2" passes $used ""; else
		note "$1" "$2" $result $used "$([ $result = slow ] || [ $code = 0 ] || echo "status $code: ")$(reason "$log" "$said")"
	fi
}

todo=()
begin 0 $runtimes
read -ra patterns <<<"${SAMPLES:-}"
paths=$(cd "$root/opt/samples-${runtimes%% *}/Samples" &&
	for pattern in "${patterns[@]:-}"; do find [0-6]* -name Makefile -path "*$pattern*" -printf '%h\n' | sort; done | awk '!seen[$0]++')
for path in $paths; do
	for runtime in $runtimes; do
		left_out "$runtime" "$path" || { todo+=("$path"); break; }
	done
done
total=$((${#todo[@]} * $(wc -w <<<"$runtimes")))
echo "vendor: ${#todo[@]} samples, with the runtime library: $runtimes; all of them take hours on two processors (CONTINUE=1 goes on with a run that was ended)"

rm -rf "$built"
mkdir "$built"
ahead=$(($(nproc) > 2 ? $(nproc) - 1 : 1))
set -m # the builders are a process group, which ends with this script
{ [ $total = 0 ] || printf '%s\0' "${todo[@]}" | xargs -0 -P "$ahead" -n 1 bash -c 'build "$1"' build; } >"$dir/build.log" 2>&1 &
builders=$!
set +m
trap 'kill -- -$builders 2>/dev/null || true; kill $gpud 2>/dev/null || true' EXIT
for path in "${todo[@]}"; do
	for runtime in $runtimes; do
		status=$built/$(basename "$path")-$runtime
		until [ -e "$status" ]; do
			kill -0 $builders 2>/dev/null || [ -e "$status" ] || { echo "vendor: the builders ended before $path: $dir/build.log" >&2; exit 1; }
			sleep 0.2
		done
		if left_out "$runtime" "$path"; then count=$((count + 1)); elif [ "$(cat "$status")" != 0 ]; then
			note "$runtime" "$path" unbuilt 0 "$(reason "$dir/log/$runtime-$(basename "$path").build.log" 'error|>>> W')"
		else
			run "$runtime" "$path"
		fi
	done
done
