# A separate basalt-gpud for a benchmark. Sourced by bench*.sh, which must have set
# build and out. It ends with the script.
sockets=$(mktemp -d)
gpud=''
stop() {
	[ -z "$gpud" ] || { kill "$gpud" 2>/dev/null || true; wait "$gpud" 2>/dev/null || true; }
	rm -rf "$sockets"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# start_gpud LOG OPTION…: programs reach it at $sockets/gpu; $gpud is its process.
start_gpud() {
	local log=$out/$1
	shift
	"$build/bin/basalt-gpud" --standalone "$@" --socket "$sockets/gpu" >"$log" 2>&1 &
	gpud=$!
	for _ in $(seq 100); do
		[ ! -S "$sockets/gpu" ] || return 0
		kill -0 "$gpud" 2>/dev/null || break
		sleep 0.1
	done
	cat "$log" >&2
	echo "$(basename "$0"): basalt-gpud does not listen" >&2
	exit 1
}
