#!/usr/bin/env bash
# Stops Open vSwitch and OVN of a node that is not an installed one (a demo, a test).
# They outlive its basaltd, which must have ended.
#
# Usage: ovn.sh stop RUN     RUN is what basaltd had as --run
set -euo pipefail

[ "${1:-}" = stop ] && [ -n "${2:-}" ] || { echo "usage: ovn.sh stop RUN" >&2; exit 2; }
run=$2
vsctl() { ovs-vsctl --db="unix:$run/ovs/db.sock" --timeout=10 -- "$@"; }

# The process in a PID file, if it is still the same one.
of() {
	local pid
	pid=$(sed -n '2s/ .*//p' "$run/daemons/$1.pid" 2>/dev/null) || return 1
	[ -n "$pid" ] && grep -qF "$run" "/proc/$pid/cmdline" 2>/dev/null && echo "$pid"
}
end() {
	local pid i
	pid=$(of "$1") || return 0
	kill "$pid" 2>/dev/null || true
	for i in $(seq 100); do
		kill -0 "$pid" 2>/dev/null || return 0
		sleep 0.1
	done
	kill -9 "$pid" 2>/dev/null || true
}

[ -d "$run/daemons" ] || exit 0
# Processes that would create a bridge again are stopped first; the devices of bridges
# are kept unless the switch removes them.
end ovn-controller
if of ovs-db >/dev/null; then
	for bridge in $(vsctl list-br); do vsctl --if-exists del-br "$bridge" || true; done
fi
for name in ovn-northd ovs-vswitchd ovs-db ovn-sb ovn-nb; do end "$name"; done
