#!/usr/bin/env bash
# Measures how long an installed node takes from power-on to the first response of its
# API, compared with the login prompt of the same boot. Every boot is the first one
# after the installation: it generates the node's keys and its cluster. Prints samples
# in the format of "go test -bench"; called by installer/dev/bench.sh.
#
# BOOTS is the number of boots. The unattended installation, which is not measured,
# takes minutes without KVM; its disk is kept in build/bench/ until the medium changes.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${BASALT_BUILD:-$PWD/build}
port=${PORT:-7484} boots=${BOOTS:-1}
limit=900 # seconds for one boot, or for the installation

[ "$(id -u)" = 0 ] || exec sudo -E "$0" "$@"

iso=$build/basalt.iso
[ -s "$iso" ] || { echo "bench-boot: no medium: run make iso" >&2; exit 1; }
mkdir -p "$build/bench"
work=$(mktemp -d /var/tmp/basalt-bench-boot.XXXXXX)
pid=''
stop() {
	local code=$?
	trap - EXIT INT TERM
	[ -z "$pid" ] || { kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; }
	[ "$code" = 0 ] || tail -c 3000 "$work/serial" >&2 || true
	rm -rf "$work"
	exit "$code"
}
trap 'exit 130' INT
trap 'exit 143' TERM
trap stop EXIT

fail() { echo "bench-boot: $*" >&2; exit 1; }
said() { grep -aqF "$1" "$work/serial"; }
answers() { curl -kfs --max-time 5 "https://127.0.0.1:$port/v1/healthz"; }
wait_for() { # wait_for WHAT COMMAND…
	local deadline=$((SECONDS + limit)) what=$1
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $deadline ] || fail "$what: not within the time"
		kill -0 "$pid" 2>/dev/null || fail "$what: the computer went off"
		sleep 0.1
	done
}
now() { date +%s%N; }
sample() { # sample NAME FROM TO, in nanoseconds
	awk -v n="$1" -v t=$(($3 - $2)) 'BEGIN { printf "Benchmark%s\t1\t%.3f s\n", n, t / 1e9 }'
}
# /dev/kvm may exist but not work: a QEMU process that is still running after a while
# has set up its processors.
accel=tcg,thread=multi,tb-size=256
if timeout 3 qemu-system-x86_64 -nodefaults -no-user-config -display none -machine q35 -accel kvm -cpu max -m 64 -S >/dev/null 2>&1; [ $? = 124 ]; then accel=kvm; fi
# power_on ARGUMENTS…: starts the computer, with its serial line in files.
power_on() {
	: >"$work/serial"
	qemu-system-x86_64 -nodefaults -no-user-config -no-reboot -display none -device VGA -machine q35 -accel "$accel" \
		-cpu max -smp 2 -m 2048 -drive "if=none,id=disk,format=qcow2,cache=unsafe,discard=unmap,file=$disk" \
		-device virtio-blk-pci,drive=disk,bootindex=2,serial=BASALT0001 \
		-netdev "user,id=net,hostfwd=tcp:127.0.0.1:$port-10.0.2.15:7480" \
		-device virtio-net-pci,netdev=net,mac=52:54:00:ba:5a:17,romfile= -device virtio-rng-pci \
		-serial stdio "$@" <&8 >>"$work/serial" 2>&1 7>&- 9>&- &
	pid=$!
}
mkfifo "$work/keys"
exec 8<>"$work/keys"

# One VM at a time on this machine, as in the tests.
exec 7>"${TMPDIR:-/tmp}/basalt-qemu.lock" 9>"${TMPDIR:-/tmp}/basalt-vm.lock"
flock 7
flock 9

installed=$build/bench/node-$(sha256sum <"$iso" | cut -c1-16).qcow2
if [ ! -s "$installed" ]; then
	rm -f "$build"/bench/node-*.qcow2
	mkdir "$work/answers"
	cat >"$work/answers/answers.yaml" <<-'TEXT'
		disk: {serial: BASALT0001}
		erase: BASALT0001
		hostname: bench
		network: {mac: "52:54:00:ba:5a:17", address: 10.0.2.15/24, gateway: 10.0.2.2, dns: [10.0.2.3]}
		cluster: {init: bench}
		root: {password: nobody logs in here}
		console: {serial: ttyS0}
		after: poweroff
	TEXT
	xorriso -as mkisofs -quiet -r -J -V BASALT-ANS -o "$work/answers.iso" "$work/answers"
	disk=$work/disk.qcow2
	qemu-img create -q -f qcow2 "$disk" 24G
	power_on -drive "if=none,media=cdrom,readonly=on,format=raw,id=m0,file=$iso" -device ide-cd,bus=ide.0,drive=m0,bootindex=1 \
		-drive "if=none,media=cdrom,readonly=on,format=raw,id=m1,file=$work/answers.iso" -device ide-cd,bus=ide.1,drive=m1,bootindex=9
	wait_for "the medium's menu" said "Install Basalt (serial console"
	printf s >&8
	wait_for "the installation" said "basalt-installer: complete"
	wait "$pid" || fail "QEMU failed"
	pid=''
	mv "$disk" "$installed"
fi

disk=$installed
for _ in $(seq "$boots"); do
	began=$(now)
	power_on -snapshot
	api='' login=''
	deadline=$((SECONDS + limit))
	while [ -z "$api" ] || [ -z "$login" ]; do
		if [ -z "$login" ] && said "bench login:"; then login=$(now); fi
		if [ -z "$api" ] && answers >/dev/null; then api=$(now); fi
		[ $SECONDS -lt $deadline ] || fail "the boot: not within the time"
		kill -0 "$pid" 2>/dev/null || fail "the boot: the computer went off"
		sleep 0.1
	done
	sample BootAPI "$began" "$api"
	sample BootLogin "$began" "$login"
	kill "$pid"
	wait "$pid" || true
	pid=''
done
