#!/usr/bin/env bash
# Demonstrates the main use on this machine: a one-node cluster, an instance with a
# virtual GPU, two CUDA programs inside it, and their costs. Called by "make demo".
# ONCE=1 stops everything at the end and exits 0 only if everything succeeded; otherwise
# the node runs until Ctrl-C. NETWORK=none disables the network.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
build=${BASALT_BUILD:-$root/build}
data=$build/demo          # the node's state, reused by a second run
run=/run/basalt-demo      # sockets: short paths
listen=127.0.0.1:${PORT:-7480}
NETWORK=${NETWORK:-ovn}
export BASALT_SERVER=http://$listen
PATH=$build/bin:$PATH

if [ "$(id -u)" != 0 ]; then
	exec sudo -E env "PATH=$PATH" "$0" "$@"
fi

bold=$'\e[1m' dim=$'\e[2m' red=$'\e[31m' off=$'\e[0m'
[ -t 1 ] || bold='' dim='' red='' off=''
began=$SECONDS
step_began=0
step_name=''
step() {
	step_done
	step_name=$1
	step_began=$(date +%s%N)
	printf '%s▸ %s%s\n' "$bold" "$1" "$off"
}
step_done() {
	[ -n "$step_name" ] || return 0
	local ms=$((($(date +%s%N) - step_began) / 1000000))
	printf '  %s%s: %d.%03d s%s\n' "$dim" "$step_name" $((ms / 1000)) $((ms % 1000)) "$off"
	step_name=''
}
# Prints a command in the form that a user would type, then runs it.
show() {
	printf '  %s$ %s%s\n' "$dim" "$*" "$off"
	"$@" 2>&1 | sed 's/^/  /'
}
fail() {
	printf '%sdemo: %s%s\n' "$red" "$*" "$off" >&2
	for log in basaltd gpud; do
		[ -s "$data/$log.log" ] && printf -- '--- last lines of %s\n' "$data/$log.log" >&2 && tail -n 15 "$data/$log.log" >&2
	done
	exit 1
}

gpud_pid='' basaltd_pid='' libvirtd_was=''
stop() {
	local code=$?
	trap - EXIT
	trap '' INT TERM PIPE # nothing may interrupt the clean-up, not even a reader that has closed its pipe
	set +e
	step_done
	printf '%s▸ stopping%s\n' "$bold" "$off"
	if [ -n "$basaltd_pid" ] && kill -0 "$basaltd_pid" 2>/dev/null; then
		basalt instance delete demo --project demo --wait --timeout 60s >/dev/null 2>&1 || true
	fi
	for pid in $basaltd_pid $gpud_pid; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	installer/dev/ovn.sh stop "$run" || true
	installer/dev/libvirtd.sh stop || true
	rm -rf "$run"
	local left
	left=$(pgrep -af "$run|$data" | grep -v "^$$ " || true)
	left+=$(grep -F "$data" /proc/mounts || true)
	if [ -n "$left" ]; then
		printf '%sleft behind:%s\n%s\n' "$red" "$off" "$left" >&2
		code=1
	fi
	exit "$code"
}
trap 'exit 130' INT
trap 'exit 143' TERM
trap stop EXIT

wait_for() { # wait_for SECONDS WHAT COMMAND…
	local deadline=$((SECONDS + $1)) what=$2
	shift 2
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $deadline ] || fail "$what: not within the time"
		kill -0 "$gpud_pid" 2>/dev/null || fail "basalt-gpud has ended"
		kill -0 "$basaltd_pid" 2>/dev/null || fail "basaltd has ended"
		sleep 0.2
	done
}

step "packages"
installer/dev/setup.sh | sed 's/^/  /'
step "build"
make --no-print-directory -s build >"$build.log" 2>&1 || { cat "$build.log" >&2; fail "the build failed"; }
rm -f "$build.log"
step "guest image"
installer/guest/build.sh 2>&1 | sed 's/^/  /'
step "libvirt"
installer/dev/libvirtd.sh start 2>&1 | sed 's/^/  /'

step "node up (Raft of one)"
mkdir -p "$data" "$run"
# In sessions of their own: Ctrl-C is for this script, which needs them to clean up.
setsid basalt-gpud --state "$data/gpud" --socket "$run/gpud.sock" --soft-gpu name=soft0,vram=8GiB,sms=4 >"$data/gpud.log" 2>&1 &
gpud_pid=$!
setsid basaltd --allow-emulation --data "$data/node" --run "$run" --listen "$listen" --gpud "$run/gpud.sock" \
	--guest-tools "$build/guest" --meter-every 5s --network "$NETWORK" --datapath netdev >"$data/basaltd.log" 2>&1 &
basaltd_pid=$!
wait_for 60 "basaltd" curl -fsS "$BASALT_SERVER/v1/healthz"
BASALT_TOKEN=$(cat "$data/node/operator.key")
export BASALT_TOKEN
wait_for 30 "the node's first report" sh -c 'basalt node list | grep -qE "tcg|kvm"'
show basalt node list
show basalt gpu list

step "project and API key"
show basalt apply -f installer/dev/demo.yaml
[ "$NETWORK" = none ] || basalt network get default --project demo >/dev/null 2>&1 || fail "$data is of a Basalt without networks: remove it, and run this again"

umask_was=$(umask); umask 077
if ! BASALT_TOKEN=$(cat "$data/demo.key" 2>/dev/null) basalt whoami >/dev/null 2>&1; then
	basalt api-key create "demo-$(date +%s)" --project demo --role member -o json | sed -n 's/^ *"secret": "\(.*\)",\{0,1\}$/\1/p' >"$data/demo.key"
fi
umask "$umask_was"
operator_token=$BASALT_TOKEN
BASALT_TOKEN=$(cat "$data/demo.key")
printf '  API key of project demo: %s\n' "$data/demo.key"

portal() { BASALT_TOKEN=$operator_token basalt "$@" | sed -n 's/^or, in the portal: //p'; }
BASALT_TOKEN=$operator_token basalt user get demo@example.com >/dev/null 2>&1 ||
	BASALT_TOKEN=$operator_token basalt user create demo@example.com --organization demo --grant admin@demo >/dev/null
portal=$(portal user reset demo@example.com)
[ -n "$portal" ] || fail "there is no link to the portal"

step "image ready"
if ! BASALT_TOKEN=$operator_token basalt image get debian 2>/dev/null | grep Ready >/dev/null; then
	BASALT_TOKEN=$operator_token show basalt image import debian --file "$build/images/debian-guest.qcow2" --format qcow2 --public --wait
fi
show basalt image list

step "instance demo: 1 vCPU, 1 GiB RAM, a root volume, one vGPU with 1 GiB VRAM"
basalt instance delete demo --project demo --wait >/dev/null 2>&1 || true # left by a run that was killed
show basalt instance create demo --project demo --flavor demo --image debian --vram 1GiB --gpu-pool default --gpu-share 50 --wait --timeout 300s
step "booting, guest tools in"
wait_for 300 "the guest tools" sh -c 'basalt instance get demo --project demo -o json | grep -q "\"guestTools\": *\"[^\"]"'
show basalt instance list --project demo

step "CUDA inside the guest"
in_guest() { show basalt instance exec demo --project demo -- "$@" || fail "failed inside the guest: $*"; }
in_guest nvidia-smi
in_guest /opt/basalt/demo/vecadd
in_guest /opt/basalt/demo/matmul

if [ "$NETWORK" != none ]; then
	step "network: addresses by DHCP, the name, what 169.254.169.254 knows"
	wait_for 120 "the guest's own name" basalt instance exec demo --project demo -- getent hosts demo.demo.internal
	in_guest ip -brief address show dev eth0
	in_guest getent hosts demo.demo.internal
	in_guest python3 -c 'from urllib.request import urlopen; print(urlopen("http://169.254.169.254/latest/meta-data/instance-id").read().decode())'
fi

step "usage and invoice"
wait_for 60 "metered GPU time" sh -c 'basalt usage-record list --project demo | grep -q gpu-nanoseconds'
printf '  %s$ basalt usage-record list --project demo   (of the GPU)%s\n' "$dim" "$off"
basalt usage-record list --project demo | grep -E 'METER|gpu-|vram-' | sed 's/^/  /'
BASALT_TOKEN=$operator_token show basalt invoice preview --organization demo
# GPU time within the reserved share is not charged again.
BASALT_TOKEN=$operator_token basalt invoice preview --organization demo | grep 'gpu-share-seconds' >/dev/null || fail "the invoice has no line for the reserved share of a GPU"
step_done

cat <<TEXT

${bold}It works${off} (in $((SECONDS - began)) s).
  Portal: $portal
          (choose a password; then sign in at $BASALT_SERVER as demo@example.com)
  API:    $BASALT_SERVER/docs
  Sign in: export BASALT_SERVER=$BASALT_SERVER BASALT_TOKEN=\$(cat $data/demo.key)
          $build/bin/basalt instance console demo --project demo      (Ctrl-] leaves)
  The operator's key is in $data/node/operator.key
TEXT
if [ "${ONCE:-}" != 1 ]; then
	echo "  The node runs until Ctrl-C."
	wait "$basaltd_pid" || fail "basaltd has ended"
fi
