#!/usr/bin/env bash
# Runs Debian's PyTorch on a soft GPU with Basalt's libcuda and libcudart: its own
# kernels, each operation of torch/operations.py against the CPU. Writes what was said
# to $BASALT_BUILD/vendor/log/torch.log, with the most memory that the worker had.
# What needs cuBLAS, cuDNN or another library of NVIDIA's is not among them.
#
#   LIMIT=SECONDS  how long it may run (1200)
set -euo pipefail
. "$(dirname "$0")/gpu.sh"
rm -rf "$root/opt/torch"
cp -a installer/dev/vendor/torch "$root/opt/torch"
mkdir -p "$dir/log"
inside /opt/torch 60 ./cudnn.sh "$basalt/lib/libcudnn.so.9" /usr/lib/x86_64-linux-gnu/libtorch_cuda.so.2.6 /usr/lib/x86_64-linux-gnu/libtorch_python.so.2.6

# memory: the most kilobytes that a worker of this gpud has had, until it ends.
memory() {
	local most=0 now
	while kill -0 $gpud 2>/dev/null; do
		now=$(for p in $(pgrep -P $gpud || true); do sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$p/status" 2>/dev/null || true; done | sort -n | tail -n 1)
		[ "${now:-0}" -le "$most" ] || echo "$((most = now))" >"$dir/torch-memory"
		sleep 0.2
	done
}
memory &
code=0
inside /opt/torch "${LIMIT:-1200}" python3 operations.py "$@" 2>&1 | tee "$dir/log/torch.log" || code=$?
echo "the worker had $(($(cat "$dir/torch-memory") / 1024)) MB at most" | tee -a "$dir/log/torch.log"
exit $code
