#!/usr/bin/env bash
# Runs Debian's PyTorch on a soft GPU with Basalt's libcuda, libcudart and libcublas:
# each operation in torch/operations.py is compared with the CPU (results.sh). The
# output is in $BASALT_BUILD/vendor/log/torch.log, with the peak memory of the worker.
# Operations that need cuDNN or another library of NVIDIA's are not included: interop is
# off.
#
#   LIMIT=SECONDS  of processor time that a tenth of it may use (120)
set -euo pipefail
interop=
. "$(dirname "$0")/gpu.sh"
. installer/dev/vendor/results.sh
more=:$basalt/lib/cublas
rm -rf "$root/opt/torch"
cp -a installer/dev/vendor/torch "$root/opt/torch"
inside /opt/torch 60 ./cudnn.sh "$basalt/lib/libcudnn.so.9" /usr/lib/x86_64-linux-gnu/libtorch_cuda.so.2.6 /usr/lib/x86_64-linux-gnu/libtorch_python.so.2.6

# memory: the peak memory of a worker of this gpud in kilobytes, until it ends.
memory() {
	local most=0 now
	while kill -0 $gpud 2>/dev/null; do
		now=$(for p in $(pgrep -P $gpud || true); do sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$p/status" 2>/dev/null || true; done | sort -n | tail -n 1)
		[ "${now:-0}" -le "$most" ] || echo "$((most = now))" >"$dir/torch-memory"
		sleep 0.2
	done
}
echo 0 >"$dir/torch-memory"
memory &

# Its lines are "N operations …", then "right|WRONG  1.23 s  operation  what is wrong".
log=$dir/log/torch.log
CONTINUE= begin 0 torch
code=0
inside /opt/torch $((${LIMIT:-120} * 10)) python3 operations.py "$@" 2>&1 | tee "$log" |
	while IFS= read -r line; do
		[[ ! $line =~ ^([0-9]+)\ operations ]] || total=${BASH_REMATCH[1]}
		[[ $line =~ ^(right|WRONG)\ +([0-9]+)\.[0-9]+\ s\ \ (.*)\ \ (.*)$ ]] || { echo "$line"; continue; }
		name=${BASH_REMATCH[3]//, /-}
		note torch "${name// /-}" "$([ "${BASH_REMATCH[1]}" = right ] && echo passes || echo fails)" "${BASH_REMATCH[2]}" "${BASH_REMATCH[4]}"
	done || code=$?
[ $code = 0 ] || [ $code = 1 ] || note torch all-operations "$([ $code = 124 ] && echo slow || echo fails)" 0 "status $code: $(reason "$log" Error)"
total=1
code=0
inside /opt/torch "${LIMIT:-120}" env PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python3 expandable.py >"$dir/log/torch-expandable.log" 2>&1 || code=$?
note torch expandable-segments "$([ $code = 0 ] && echo passes || echo fails)" $used "$(reason "$dir/log/torch-expandable.log" Error)"
echo "the worker had $(($(cat "$dir/torch-memory") / 1024)) MB at most" | tee -a "$log"
