#!/usr/bin/env bash
# Ensures that a libvirtd answers at qemu:///system. Idempotent.
#
# Usage: libvirtd.sh [start|stop [--force]|status]
#
# A running libvirtd is used as it is. Under systemd the distribution's own service is
# started. Elsewhere (containers, chroots) libvirtd is started directly, with settings
# for machines without cgroups or security modules; they are stored under build/libvirt
# (BASALT_BUILD names another build folder) and mounted over /etc/libvirt/qemu.conf in a
# mount namespace of libvirtd's own, so that the operator's file does not change. stop
# ends only what this script started, and only if no virtual machines need it (--force:
# in any case; they keep running).
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
state=${BASALT_BUILD:-$root/build}/libvirt
pidfile=$state/libvirtd.pid
conf=/etc/libvirt/qemu.conf
vmlock=${TMPDIR:-/tmp}/basalt-vm.lock # held by every test that boots machines
mark='# Added by Basalt (installer/dev/libvirtd.sh):'

say() { printf 'libvirtd: %s\n' "$*"; }
die() { printf 'libvirtd: %s\n' "$*" >&2; exit 1; }
answers() { timeout 10 virsh -q -c qemu:///system version >/dev/null 2>&1; }

# The process that this script started, if it is still running.
ours() {
	local pid
	pid=$(cat "$pidfile" 2>/dev/null) || return 1
	[ "$(cat "/proc/$pid/comm" 2>/dev/null)" = libvirtd ] && echo "$pid"
}

settings() {
	cat <<-'CONF'
		security_driver = "none"
		cgroup_controllers = [ ]
		stdio_handler = "file"
		namespaces = [ ]
		remember_owner = 0
		user = "root"
		group = "root"
	CONF
}

# If no mount namespace can be created, the settings are written to qemu.conf itself,
# but only if that is unchanged since the package installed it.
edit_conf() {
	grep -qF "$mark" "$conf" 2>/dev/null && return
	local had
	# The package that contains it has a different name in each release.
	had=$({ dpkg-query -W -f='${Conffiles}\n' 'libvirt-daemon*' 2>/dev/null || true; } | awk -v f="$conf" '$1 == f { print $2 }')
	[ -z "$had" ] || [ "$(md5sum "$conf" | cut -d' ' -f1)" = "$had" ] ||
		die "$conf has been changed by hand, and this machine allows no mount namespace: start libvirtd yourself"
	say "adding test settings to $conf"
	{ echo "$mark"; settings; } >>"$conf"
}

start() {
	answers && return
	command -v libvirtd >/dev/null || die "libvirtd is not installed: run installer/dev/setup.sh"
	if [ -d /run/systemd/system ]; then
		say "starting the service"
		if [ "$(id -u)" = 0 ]; then systemctl start libvirtd; else sudo systemctl start libvirtd; fi
	else
		[ "$(id -u)" = 0 ] || die "there is no systemd here: run this as root"
		mkdir -p "$state" /run/libvirt
		exec 9>"$state/.lock"
		flock -w 60 9 || die "another start hangs: see $state"
		answers && return
		direct
	fi
	local i
	for i in $(seq 60); do
		answers && return
		sleep 0.5
	done
	tail -n 20 "$state/libvirtd.log" >&2 2>/dev/null || true
	die "it was started but does not answer"
}

direct() {
	say "starting it directly; log in $state/libvirtd.log"
	settings >"$state/qemu.conf"
	cat >"$state/libvirtd.conf" <<-CONF
		auth_unix_ro = "none"
		auth_unix_rw = "none"
		unix_sock_ro_perms = "0700"
		unix_sock_rw_perms = "0700"
		log_outputs = "3:file:$state/libvirtd.log"
	CONF
	local daemon=(libvirtd --daemon --pid-file "$pidfile" --config "$state/libvirtd.conf")
	# slave: mounts made later outside are visible inside, but not the other way round.
	if unshare --mount --propagation slave true 2>/dev/null; then
		setsid unshare --mount --propagation slave sh -c '
			mount --bind "$1" "$2" && shift 2 && exec "$@"' sh "$state/qemu.conf" "$conf" "${daemon[@]}" 9>&- </dev/null >>"$state/libvirtd.out" 2>&1
	else
		edit_conf
		setsid "${daemon[@]}" 9>&- </dev/null >>"$state/libvirtd.out" 2>&1
	fi
}

# Domains that are running, or a test that has some and holds the lock for it.
busy() {
	[ -n "$(timeout 10 virsh -q -c qemu:///system list --name 2>/dev/null)" ] ||
		{ [ -e "$vmlock" ] && ! flock -n "$vmlock" true; }
}

stop() {
	local pid i
	pid=$(ours) || return 0
	if [ "${1:-}" != --force ] && busy; then
		say "left running: somebody else's machines need it"
		return 0
	fi
	say "stopping process $pid"
	kill "$pid"
	for i in $(seq 40); do
		[ -d "/proc/$pid" ] || return 0
		sleep 0.25
	done
	kill -9 "$pid"
}

case "${1:-start}" in
start) start ;;
stop) stop "${2:-}" ;;
status)
	answers || { echo stopped; exit 1; }
	if ours >/dev/null; then echo "running, started here"; else echo "running, not started here"; fi
	;;
*) die "usage: libvirtd.sh [start|stop [--force]|status]" ;;
esac
