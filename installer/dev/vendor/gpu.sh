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

# inside FOLDER LIMIT COMMAND…: runs a command in the root, with Basalt's libraries
# before all others except the library folders in $more (:PATH…), and ends it after
# LIMIT seconds (status 124).
more=
inside() {
	local folder=$1 limit=$2
	shift 2
	chroot "$root" /usr/bin/env -i -C "$folder" PATH=/opt/python/bin:/usr/bin:/bin HOME=/root LD_LIBRARY_PATH="$basalt/lib$more" \
		BASALT_GPU="unix:$basalt/gpu" timeout --kill-after=5 "$limit" "$@" </dev/null
}
