# Sourced by samples.sh, python.sh and torch.sh: sets up the root, with /proc, /dev and
# Basalt's libraries in it, and a soft GPU with its socket in the root. Sets dir, root
# and, as a path in the root, basalt. Interop is on unless interop is set and empty,
# since NVIDIA's libraries contain its runtime (docs/vendor-interop.md): running this
# implies having read the license.
# CAPABILITY=10.0 is the compute capability that the soft GPU reports (9.0 by default),
# by which libraries choose their kernels.
# The mounts are in a mount namespace of this script's own and end with it.
[ -n "${BASALT_VENDOR_MOUNTS:-}" ] || BASALT_VENDOR_MOUNTS=1 exec unshare --mount --propagation private "$0" "$@"
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
dir=$BASALT_BUILD/vendor
root=$dir/root
installer/dev/vendor/root.sh
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
name=$(basename "$0" .sh)
basalt=/opt/basalt/$name
rm -rf "${root:?}$basalt"
mkdir -p "$root$basalt"
cp -a "$BASALT_BUILD/guest/lib" "$root$basalt/"

"$BASALT_BUILD/bin/basalt-gpud" --standalone ${interop---interop} --no-nvidia --soft-gpu vram="${VRAM:-4GiB},cc=${CAPABILITY:-9.0}" --socket "$root$basalt/gpu" \
	--state "$dir/state-$name" >"$dir/gpud-$name.log" 2>&1 &
gpud=$!
trap 'kill $gpud 2>/dev/null || true' EXIT
until [ -S "$root$basalt/gpu" ]; do
	kill -0 $gpud 2>/dev/null || { cat "$dir/gpud-$name.log" >&2; exit 1; }
	sleep 0.1
done

# ticks PID…: the processor time of these processes and of all that they have started, in
# hundredths of a second.
ticks() {
	cat /proc/[0-9]*/stat 2>/dev/null | awk -v roots="$*" '
		{ pid = $1; sub(/^.*\) /, ""); parent[pid] = $2; time[pid] = $12 + $13 + $14 + $15 }
		END {
			n = split(roots, root, " ")
			for (i = 1; i <= n; i++) wanted[root[i]]
			for (pid in time) {
				for (at = pid; at in time && !(at in wanted); at = parent[at]);
				if (at in wanted) sum += time[pid]
			}
			print sum + 0
		}'
}

# reaped PID: the processor time of the children that a process has waited for, likewise.
reaped() { awk '{ sub(/^.*\) /, ""); print $14 + $15 }' "/proc/$1/stat"; }

# watch PID END: ends the program, which runs in timeout, as its time limit would once it
# and gpud have used END hundredths of a second.
watch() {
	while sleep 2 && kill -0 "$1"; do
		[ "$(ticks "$1" ${gpud:-})" -lt "$2" ] || kill -s ALRM "$1" # as its alarm would
	done
}

# inside FOLDER LIMIT COMMAND…: runs a command in the root, with Basalt's libraries
# before all others except the library folders in $more (:PATH…), and ends it (status
# 124) once it and the soft GPU have used LIMIT seconds of processor time, which is the
# same on a busy machine, or after ten times as long. Sets used to the seconds used.
more=
inside() {
	local folder=$1 limit=$2 self=$BASHPID code=0 began children program watcher
	shift 2
	began=$(ticks ${gpud:-}) children=$(reaped $self)
	chroot "$root" /usr/bin/env -i -C "$folder" PATH=/opt/python/bin:/usr/bin:/bin HOME=/root LD_LIBRARY_PATH="$basalt/lib$more" \
		BASALT_GPU="unix:$basalt/gpu" timeout --kill-after=5 $((10 * limit)) "$@" </dev/null &
	program=$!
	watch $program $((began + 100 * limit)) >/dev/null 2>&1 &
	watcher=$!
	wait $program 2>/dev/null || code=$?
	{ kill $watcher; wait $watcher; } 2>/dev/null || true
	used=$((($(ticks ${gpud:-}) - began + $(reaped $self) - children) / 100))
	return $code
}
