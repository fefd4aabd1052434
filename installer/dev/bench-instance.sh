#!/usr/bin/env bash
# Measures how long an instance takes from "create" to running and to the login prompt
# on its serial console, compared with plain QEMU with the same image, processor, memory
# and accelerator, without libvirt, cloud-init and vGPU. Prints samples in the format of
# "go test -bench"; called by installer/dev/bench.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
build=${BASALT_BUILD:-$root/build}
listen=127.0.0.1:${PORT:-7482}
limit=400 # seconds for one boot
export BASALT_SERVER=http://$listen
PATH=$build/bin:$PATH

[ "$(id -u)" = 0 ] || exec sudo -E env "PATH=$PATH" "$0" "$@"

data=$(mktemp -d /var/tmp/basalt-bench.XXXXXX)
run=$(mktemp -d /run/basalt-bench.XXXXXX)
gpud='' basaltd='' plain=''
stop() {
	local code=$?
	trap - EXIT INT TERM
	[ -z "$basaltd" ] || basalt instance delete bench --project demo --wait --timeout 60s >/dev/null 2>&1 || true
	for pid in $plain $basaltd $gpud; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	exec 7>&- 9>&- # otherwise libvirtd would be considered in use
	installer/dev/libvirtd.sh stop >/dev/null || true
	[ "$code" = 0 ] || tail -n 20 "$data"/*.log >&2 || true
	rm -rf "$data" "$run"
	exit "$code"
}
trap 'exit 130' INT
trap 'exit 143' TERM
trap stop EXIT

fail() { echo "bench-instance: $*" >&2; exit 1; }
wait_for() { # wait_for SECONDS WHAT COMMAND…
	local deadline=$((SECONDS + $1)) what=$2
	shift 2
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $deadline ] || fail "$what: not within the time"
		for pid in $gpud $basaltd $plain; do
			kill -0 "$pid" 2>/dev/null || fail "$what: a program has ended"
		done
		sleep 0.05
	done
}
said_login() { grep -aq 'login:' $1; } # $1 may be a pattern
sample() { # sample NAME FROM TO, in nanoseconds
	awk -v n="$1" -v t=$(($3 - $2)) 'BEGIN { printf "Benchmark%s\t1\t%.3f s\n", n, t / 1e9 }'
}
now() { date +%s%N; }

# One VM at a time on this machine, as in the tests.
exec 7>"${TMPDIR:-/tmp}/basalt-qemu.lock" 9>"${TMPDIR:-/tmp}/basalt-vm.lock"
flock 7
flock 9

image=$build/images/debian-guest.qcow2
installer/guest/build.sh >"$data/image.log" 2>&1
installer/dev/libvirtd.sh start >"$data/libvirtd.log" 2>&1 7>&- 9>&-
basalt-gpud --state "$data/gpud" --socket "$run/gpud.sock" --no-nvidia --soft-gpu name=soft0,vram=8GiB,sms=4 >"$data/gpud.log" 2>&1 7>&- 9>&- &
gpud=$!
basaltd --allow-emulation --data "$data/node" --run "$run" --listen "$listen" --gpud "$run/gpud.sock" --guest-tools "$build/guest" >"$data/basaltd.log" 2>&1 7>&- 9>&- &
basaltd=$!
wait_for 60 "basaltd" curl -fsS "$BASALT_SERVER/v1/healthz"
BASALT_TOKEN=$(cat "$data/node/operator.key")
export BASALT_TOKEN
wait_for 30 "the node's first report" sh -c 'basalt node list | grep -qE "tcg|kvm"'
basalt apply -f installer/dev/demo.yaml >/dev/null
basalt image import debian --file "$image" --format qcow2 --public --wait >/dev/null 2>>"$data/cli.log"

began=$(now)
basalt instance create bench --project demo --flavor demo --image debian --vram 1GiB --gpu-pool default --gpu-share 50 --wait --timeout "${limit}s" >/dev/null 2>>"$data/cli.log"
sample InstanceRunning "$began" "$(now)"
wait_for "$limit" "the instance's login prompt" said_login "$data/node/instances/*/console.log"
sample InstanceLogin "$began" "$(now)"
basalt instance delete bench --project demo --wait --timeout 60s >/dev/null 2>>"$data/cli.log"

accelerator=$(basalt node list | grep -oE 'tcg|kvm' | head -n 1) # the accelerator that works on the node
processor=max
[ "$accelerator" = tcg ] || processor=host
printf 'BenchmarkAccelerator/%s\t1\t1 boots\n' "$accelerator"
qemu-img create -q -f qcow2 -F qcow2 -b "$image" "$data/plain.qcow2" 4G
began=$(now)
qemu-system-x86_64 -machine q35 -accel "$accelerator" -cpu "$processor" -m 1024 -smp 2 -display none -nodefaults \
	-drive "file=$data/plain.qcow2,if=virtio" -device VGA -device virtio-rng-pci \
	-serial "file:$data/plain.console" -monitor "unix:$run/monitor,server=on,wait=off" >"$data/qemu.log" 2>&1 7>&- 9>&- &
plain=$!
wait_for "$limit" "plain QEMU's monitor" test -S "$run/monitor"
sample PlainRunning "$began" "$(now)"
wait_for "$limit" "plain QEMU's login prompt" said_login "$data/plain.console"
sample PlainLogin "$began" "$(now)"
