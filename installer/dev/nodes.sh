#!/usr/bin/env bash
# Nodes of a cluster on one machine: each with its own network, processes,
# mounts, libvirtd and Basalt daemons. For the cluster's demo and its tests.
#
#   nodes.sh CLUSTER net                 create networks A and B, and C for tunnels
#   nodes.sh CLUSTER disk N SIZE         give node N, before its start, a small disk (tmpfs) for its data
#   nodes.sh CLUSTER osd N SIZE          give node N, before its start, a disk for Ceph (in memory)
#   nodes.sh CLUSTER start N             start node N (1 to 9)
#   nodes.sh CLUSTER kill N              power failure: kill all of its processes
#   nodes.sh CLUSTER freeze|thaw N       SIGSTOP or SIGCONT to all of its processes
#   nodes.sh CLUSTER cut|mend N [a|b|c]  disconnect or reconnect its networks, by default all
#   nodes.sh CLUSTER deaf N FROM         drop all packets from node FROM to it
#   nodes.sh CLUSTER loss N PERCENT      drop this percentage of incoming packets
#   nodes.sh CLUSTER hear N              end deaf and loss
#   nodes.sh CLUSTER exec N COMMAND…     run a command on it, as its root
#   nodes.sh CLUSTER pid N               print the ID of its first process, outside its namespace
#   nodes.sh CLUSTER down                stop all nodes and remove everything
#
# CLUSTER is a short name. State is stored in DIR (environment; default
# /var/tmp/basalt-nodes-CLUSTER): nN/data is the node's /var/lib/basalt, nN/log its
# logs, shared is the /var/lib/basalt-shared of all nodes. A node's addresses are
# 10.SUBNET.1.N and 10.SUBNET.2.N (SUBNET: 77), this machine's end is .254;
# 10.SUBNET.3.N is for tunnels. nN/args contains further flags of its basaltd, one per
# line.
#
# NETWORK=ovn gives the nodes networks for instances, with Open vSwitch's userspace
# datapath, which needs no kernel module on this machine.
#
# ACCELERATOR names a file with how guests run on this machine, in the format of basaltd
# (appliance/test/kit/accelerator); without it, a node boots a guest to find out.
#
# A replacement for the hardware watchdog runs outside each node: when basalt-fence
# stops feeding it, it kills the node.
set -euo pipefail

cluster=${1:?CLUSTER} verb=${2:?VERB}
shift 2
dir=${DIR:-/var/tmp/basalt-nodes-$cluster}
net=10.${SUBNET:-77}
bin=${BASALT_BIN:-$(cd "$(dirname "$0")/../.." && pwd)/build/bin}
tools=${BASALT_TOOLS:-$(dirname "$bin")/guest}

die() { printf 'nodes: %s\n' "$*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || die "run it as root"
[ ${#cluster} -le 6 ] || die "CLUSTER has six letters at most: devices are named by it"

ns() { printf '%s-n%s' "$cluster" "$1"; }
alive() { [ -s "$dir/n$1/pid" ] && kill -0 "$(cat "$dir/n$1/pid")" 2>/dev/null; }
everybody() { # process IDs of a node, its first one first
	local first todo next pid
	first=$(cat "$dir/n$1/pid")
	todo=$first
	while [ -n "$todo" ]; do
		echo "$todo"
		next=
		for pid in $todo; do next+=" $(cat "/proc/$pid/task/"*/children 2>/dev/null || true)"; done
		todo=$(xargs -n1 <<<"$next" 2>/dev/null || true)
	done
}

make_net() {
	local path
	mkdir -p "$dir/shared"
	for path in a b c; do
		ip link show "$cluster-$path" >/dev/null 2>&1 && continue
		ip link add "$cluster-$path" type bridge
		[ $path = a ] && ip addr add "$net.1.254/24" dev "$cluster-$path"
		[ $path = b ] && ip addr add "$net.2.254/24" dev "$cluster-$path"
		ip link set "$cluster-$path" up
	done
}

make_cables() {
	local n=$1 path i=0 name
	name=$(ns "$n")
	ip netns add "$name"
	ip -n "$name" link set lo up
	for path in a b c; do
		i=$((i + 1))
		ip link add "$name$path" type veth peer name "eth$path" netns "$name"
		ip link set "$name$path" master "$cluster-$path" up
		ip -n "$name" addr add "$net.$i.$n/24" dev "eth$path"
		ip -n "$name" link set "eth$path" up
	done
}

start() {
	local n=$1 home=$dir/n$1
	alive "$n" && die "node $n is on"
	make_net
	ip netns list | grep -w "$(ns "$n")" >/dev/null || make_cables "$n"
	mkdir -p "$home"/{data,log,libvirt/{etc,lib,cache,log}}
	touch "$home/args"
	[ -e "$home/libvirt/etc/libvirtd.conf" ] || cp -r /etc/libvirt/. "$home/libvirt/etc/"
	settings "$home"
	rm -f "$home/watchdog" "$home/ready" "$home/pid" # of its last run
	mkfifo "$home/watchdog"
	setsid "$0" "$cluster" watchdog "$n" </dev/null >>"$home/log/watchdog.log" 2>&1 &
	# In a session of its own, without this script's standard streams, since it outlives
	# the script.
	setsid ip netns exec "$(ns "$n")" unshare --mount --uts --pid --fork --mount-proc --kill-child=KILL \
		"$0" "$cluster" init "$n" </dev/null >"$home/log/node.log" 2>&1 &
	until_there "$home/ready" || die "node $n does not start; see $home/log/node.log"
}

# until_there waits for a non-empty file, up to a minute, since a busy machine takes
# seconds for what is immediate on another.
until_there() {
	local i
	for i in $(seq 1200); do
		[ -s "$1" ] && return
		sleep 0.05
	done
	return 1
}

settings() {
	cat >"$1/libvirt/etc/qemu.conf" <<-'CONF'
		security_driver = "none"
		cgroup_controllers = [ ]
		stdio_handler = "file"
		namespaces = [ ]
		remember_owner = 0
		user = "root"
		group = "root"
	CONF
	cat >"$1/libvirt/etc/libvirtd.conf" <<-CONF
		auth_unix_ro = "none"
		auth_unix_rw = "none"
		host_uuid = "$(cat "$1/uuid" 2>/dev/null || tee "$1/uuid" </proc/sys/kernel/random/uuid)"
	CONF
}

# Separate control groups for the node, in which basaltd creates those of vGPUs: "ip
# netns exec" has mounted a new /sys over the machine's. With version 1 there are only
# those, and the node's own processes stay where they were. Version 2 has one group for
# both (gpu/gpud/cgroup), in which autogroups have no effect, so it gets the weight of
# ten processes.
groups() {
	local at=/sys/fs/cgroup name=basalt-$1 c
	mount -t cgroup2 cgroup2 $at
	if grep -w memory $at/cgroup.controllers >/dev/null; then
		echo "+memory +pids +cpu" >$at/cgroup.subtree_control
		mkdir -p "$at/$name/basaltd"
		echo 1000 >"$at/$name/cpu.weight"
		setfattr -n trusted.delegate -v 1 "$at/$name"
		echo 0 >"$at/$name/basaltd/cgroup.procs"
		return
	fi
	mount -t tmpfs tmpfs $at
	for c in memory pids cpu; do
		mkdir $at/$c
		mount -t cgroup -o $c cgroup $at/$c
		mkdir -p "$at/$c/$name"
		mount --bind "$at/$c/$name" $at/$c
	done
}

# remove_groups removes what groups created, once the node's processes have ended.
remove_groups() {
	local at
	for at in $(findmnt -nlo TARGET -t cgroup,cgroup2); do
		[ ! -d "$at/basalt-$1" ] || find "$at/basalt-$1" -depth -type d -exec rmdir {} \;
	done
}

# The node's first process, inside its namespaces.
init() {
	local n=$1 home=$dir/n$1
	hostname "n$n"
	mount --make-rprivate /
	groups "$(ns "$n")"
	mount -t tmpfs tmpfs /run
	mkdir -p /run/libvirt /run/basalt /var/lib/basalt /var/lib/basalt-shared /etc/libvirt /var/lib/libvirt /var/cache/libvirt /var/log/libvirt
	mount --bind "$home/libvirt/etc" /etc/libvirt
	mount --bind "$home/libvirt/lib" /var/lib/libvirt
	mount --bind "$home/libvirt/cache" /var/cache/libvirt
	mount --bind "$home/libvirt/log" /var/log/libvirt
	mount --bind "$dir/shared" /var/lib/basalt-shared
	mount --bind "$home/data" /var/lib/basalt
	# Like a booting kernel, generate a new boot ID. The accelerator's file applies to
	# that boot.
	cat /proc/sys/kernel/random/uuid >/run/boot_id
	[ -z "${ACCELERATOR:-}" ] || sed "s/$(cat /proc/sys/kernel/random/boot_id)/$(cat /run/boot_id)/" "$ACCELERATOR" >/var/lib/basalt/accelerator.json
	mount --bind /run/boot_id /proc/sys/kernel/random/boot_id
	libvirtd >"$home/log/libvirtd.log" 2>&1 &
	keep gpud "$bin/basalt-gpud" --state /var/lib/basalt/gpud --socket /run/basalt/gpud.sock --soft-gpu "name=soft$n,vram=4GiB,sms=2" &
	keep fence first "$bin/basalt-fence" --socket /run/basalt/fence.sock --state /var/lib/basalt/fence --watchdog "$home/watchdog" &
	mapfile -t args <"$home/args"
	if [ "${NETWORK:-none}" != none ]; then
		args+=(--network "$NETWORK" --datapath netdev --encap "$net.3.$n" --underlay ethc)
	fi
	keep basaltd first "$bin/basaltd" --allow-emulation --node-name "n$n" --listen "$net.1.$n:7480" --peer-listen "$net.1.$n:7481" --peer-listen "$net.2.$n:7481" \
		--gpud /run/basalt/gpud.sock --guest-tools "$tools" --shared-dir /var/lib/basalt-shared --meter-every 5s --stop-grace 5s --election-timeout "${ELECTION:-1s}" "${args[@]}" &
	echo "$n" >"$home/ready"
	wait
}

# Keep a daemon running as systemd would: their units have RestartSec=1.
keep() {
	local name=$1
	shift
	while :; do
		"$@" >>"$home/log/$name.log" 2>&1 || true
		sleep 1
	done
}

# first runs a daemon with priority over guests when processors are scarce, as the units
# of an installed node do: basalt-fence has real-time scheduling, and basaltd is in
# another slice than the guests. Without it, the guests of three nodes on two processors
# delayed the renewal of leases for ten seconds, and running instances were killed. A
# session of its own is an autogroup of its own (sched(7)); without autogroups, niceness
# applies.
first() {
	setsid sh -c '{ echo -10 >/proc/self/autogroup; } 2>/dev/null; exec nice -n -10 "$@"' sh "$@"
}

# The hardware watchdog: armed by the first byte, disarmed by a V.
watchdog() {
	local n=$1 byte armed='' home=$dir/n$1 pid
	exec 3<>"$home/watchdog"
	until_there "$home/pid" || return
	pid=$(cat "$home/pid")
	while kill -0 "$pid" 2>/dev/null; do
		if IFS= read -r -d '' -n 1 -t 10 -u 3 byte; then
			[ "$byte" = V ] && armed='' || armed=1
		elif [ -n "$armed" ] && kill -0 "$pid" 2>/dev/null; then
			echo "$(date -u +%FT%TZ) not fed for 10 s: pulling the plug"
			kill -9 "$pid"
			return
		fi
	done
}

find_pid() { # of the init inside, from outside: the child of unshare
	local n=$1 unshare
	unshare=$(pgrep -f "^unshare --mount .* $cluster init $n\$" | head -n1) || return 1
	pgrep -P "$unshare" | head -n1
}

unplug() {
	local n=$1 pid i
	alive "$n" || return 0
	pid=$(cat "$dir/n$n/pid")
	kill -9 "$pid"
	for i in $(seq 100); do
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.05
	done
	rm -f "$dir/n$n/pid"
	remove_groups "$(ns "$n")"
}

drop() { # on every incoming packet
	local n=$1 dev
	shift
	ip netns exec "$(ns "$n")" nft add table netdev basalt
	for dev in etha ethb; do
		ip netns exec "$(ns "$n")" nft add chain netdev basalt "$dev" "{ type filter hook ingress device $dev priority 0; }"
		ip netns exec "$(ns "$n")" nft add rule netdev basalt "$dev" "$@" drop
	done
}

down() {
	local home n path i
	for home in "$dir"/n[0-9]; do
		[ -d "$home" ] || continue
		n=${home##*/n}
		unplug "$n"
		ip link del "$(ns "$n")a" 2>/dev/null || true
		ip link del "$(ns "$n")b" 2>/dev/null || true
		ip link del "$(ns "$n")c" 2>/dev/null || true
		ip netns del "$(ns "$n")" 2>/dev/null || true
		if mountpoint -q "$home/data"; then umount "$home/data"; fi
		if [ -s "$home/osd" ]; then losetup --detach "$(cat "$home/osd")"; fi
	done
	rm -rf "/dev/shm/basalt-nodes-$cluster"
	for path in a b c; do ip link del "$cluster-$path" 2>/dev/null || true; done
	for i in $(seq 100); do # the watchdogs notice that their node has ended
		pgrep -f "nodes.sh $cluster watchdog" >/dev/null || break
		pkill -f "nodes.sh $cluster watchdog" || true
		sleep 0.1
	done
	rm -rf "$dir"
}

# osd gives a node an empty disk: a loop device over a sparse file. The file is in
# memory, because an OSD waits for its disk on every write.
osd() {
	local home=$dir/n$1 shm=/dev/shm/basalt-nodes-$cluster
	mkdir -p "$home" "$shm/n$1"
	truncate -s "$2" "$shm/n$1/disk"
	losetup --find --show "$shm/n$1/disk" >"$home/osd"
	echo "--disks=$shm/n$1/*" >>"$home/args"
}

case $verb in
net) make_net ;;
osd) osd "$1" "$2" ;;
disk)
	mkdir -p "$dir/n$1/data"
	mount -t tmpfs -o "size=$2" basalt-nodes "$dir/n$1/data"
	;;
start)
	start "$1"
	find_pid "$1" >"$dir/n$1/pid.new" && mv "$dir/n$1/pid.new" "$dir/n$1/pid"
	;;
init) init "$1" ;;
watchdog) watchdog "$1" ;;
kill) unplug "$1" ;;
freeze) everybody "$1" | xargs -r kill -STOP ;;
thaw) everybody "$1" | xargs -r kill -CONT ;;
cut) for p in ${2:-a b c}; do ip link set "$(ns "$1")$p" down; done ;;
mend) for p in ${2:-a b c}; do ip link set "$(ns "$1")$p" up; done ;;
deaf) drop "$1" ip saddr "{ $net.1.$2, $net.2.$2 }" ;;
loss) drop "$1" numgen random mod 100 "<" "$2" ;;
hear) ip netns exec "$(ns "$1")" nft delete table netdev basalt 2>/dev/null || true ;;
exec)
	n=$1
	shift
	exec nsenter -t "$(cat "$dir/n$n/pid")" -m -u -p -n "$@"
	;;
pid) cat "$dir/n$1/pid" ;;
down) down ;;
*) die "unknown verb $verb; the script's head lists them" ;;
esac
