#!/usr/bin/env bash
# Measures how long a cluster of three real nodes on this machine does not answer after
# its leader's basaltd was killed, and how long a movable instance is down after its
# node has lost power. Prints samples in the format of "go test -bench"; called by
# installer/dev/bench.sh.
#
# LEADERS and NODES are the number of repetitions of each. The election timeout is
# basaltd's default. The guest is a boot sector that halts.
set -euo pipefail
cd "$(dirname "$0")/../.."
leaders=${LEADERS:-20} deaths=${NODES:-5}
cluster=bnch3
export DIR=${DIR:-/var/tmp/basalt-bench-cluster} SUBNET=${SUBNET:-78} ELECTION=500ms
export BASALT_BIN=${BASALT_BIN:-$PWD/build/bin} BASALT_TOOLS=${BASALT_TOOLS:-$PWD/build/guest}
nodes="installer/dev/nodes.sh $cluster"

[ "$(id -u)" = 0 ] || exec sudo -E "$0" "$@"

stop() {
	local code=$?
	trap - EXIT INT TERM
	[ "$code" = 0 ] || tail -n 15 "$DIR"/n?/log/basaltd.log >&2 || true
	$nodes down >/dev/null 2>&1 || true
	exit "$code"
}
trap 'exit 130' INT
trap 'exit 143' TERM
trap stop EXIT

fail() { echo "bench-cluster: $*" >&2; exit 1; }
wait_for() { # wait_for SECONDS WHAT COMMAND…
	local deadline=$((SECONDS + $1)) what=$2
	shift 2
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $deadline ] || fail "$what: not within the time"
		sleep 0.2
	done
}
sample() { # sample NAME FROM TO, in nanoseconds
	awk -v n="$1" -v t=$(($3 - $2)) 'BEGIN { printf "Benchmark%s\t1\t%.3f s\n", n, t / 1e9 }'
}
now() { date +%s%N; }

# on N COMMAND…: runs the CLI on node N, as its operator.
key=''
on() {
	local n=$1
	shift
	$nodes exec "$n" env BASALT_TOKEN="$key" BASALT_PROJECT=demo "$BASALT_BIN/basalt" "$@"
}
ready() { [ "$(on "$1" cluster status | grep -cE '^n[123] +Ready +(leader|voter)')" = 3 ] && [ "$(on "$1" node list | grep -cE '^n[123] +Ready .*(kvm|tcg)')" = 3 ]; }
leader() { on "$1" cluster status | awk '$3 == "leader" { print substr($1, 2) }'; }
# which of the instance's columns says where it is is the table's affair
place() { on "$1" instance list | awk '$1 == "idle" { for (f = 2; f <= NF; f++) if ($f ~ /^n[1-9]$/) print substr($f, 2) }'; }
runs() { on "$1" instance list | grep -E '^idle +Running ' >/dev/null; }
elsewhere() { runs "$1" && [ "$(place "$1")" != "$2" ]; }
other() { echo $(($1 % 3 + 1)); } # another node
# wrote N NAME: whether a write through node N is acknowledged.
wrote() {
	local code
	code=$(curl -ks -o /dev/null -w '%{http_code}' --max-time 30 -H "Authorization: Bearer $key" -H 'Content-Type: application/json' -H "Idempotency-Key: $2" \
		-d "{\"kind\":\"Flavor\",\"meta\":{\"name\":\"$2\"},\"spec\":{\"vcpus\":1,\"memoryBytes\":1073741824,\"rootBytes\":1073741824}}" \
		"https://10.$SUBNET.1.$1:7480/v1/flavors") || return 1
	[ "$code" = 201 ]
}
write() { # until it is acknowledged
	local deadline=$((SECONDS + 60))
	until wrote "$1" "$2"; do
		[ $SECONDS -lt $deadline ] || fail "no write through node $1 for a minute"
	done
}

$nodes down
for n in 1 2 3; do $nodes start $n; done
on 1 cluster init --name bench >/dev/null
key=$($nodes exec 1 cat /var/lib/basalt/operator.key)
for n in 2 3; do on $n node join "$(on 1 node token create 2>/dev/null)" >/dev/null; done
wait_for 120 "three nodes" ready 1

for round in $(seq "$leaders"); do
	l=$(leader 1)
	o=$(other "$l")
	began=$(now)
	write "$o" "alive-$round"
	sample ClusterWrite "$began" "$(now)"
	began=$(now)
	# This runs in the node's own processes.
	$nodes exec "$l" sh -c 'kill -9 $(pidof basaltd)'
	write "$o" "after-$round"
	sample LeaderKilled "$began" "$(now)"
	wait_for 60 "node $l again" ready "$o"
done

# One VM at a time on this machine, as in the tests. Processes of the nodes must not
# hold the lock when the nodes are gone.
exec 7>"${TMPDIR:-/tmp}/basalt-qemu.lock" 9>"${TMPDIR:-/tmp}/basalt-vm.lock"
flock 7
flock 9

# A boot sector: cli, hlt, repeat.
{
	printf '\xfa\xf4\xeb\xfc'
	head -c 506 /dev/zero
	printf '\x55\xaa'
	head -c $((1048576 - 512)) /dev/zero
} >"$DIR/idle.raw"
on 1 apply -f "$PWD/installer/dev/bench-cluster.yaml" >/dev/null
on 1 image import idle --file "$DIR/idle.raw" --format raw --public --wait >/dev/null 2>&1
on 1 instance create idle --flavor idle --image idle --no-gpu --storage-pool shared --wait --timeout 120s >/dev/null 2>&1

for round in $(seq "$deaths"); do
	v=$(place 1)
	o=$(other "$v")
	began=$(now)
	$nodes kill "$v"
	until elsewhere "$o" "$v"; do
		[ $(($(now) - began)) -lt 300000000000 ] || fail "the instance of node $v is nowhere after five minutes"
		sleep 0.2
	done
	sample NodeDead "$began" "$(now)"
	# TTL, watchdog and guard time (appliance/cluster/lease): before that, it is not
	# certain that the node is dead.
	printf 'BenchmarkNodeDeadCertain\t1\t25 s\n'
	$nodes start "$v" 7>&- 9>&-
	wait_for 180 "node $v again" ready "$o"
done
