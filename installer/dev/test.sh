#!/usr/bin/env bash
# Runs every test: make's preparations for them, lint, the portal's components, the
# guest library's own, then all of Go's, on real libvirt and QEMU
# (appliance/test/testrun). Called by "make check", "make test" and "make test-long";
# LAYER is check, test or long.
#
#   RUN=NAME        only tests and stories of that name (a regexp)
#   PKG=REGEXP      only the packages whose path matches
#   CHANGED=1       only what the change since the branch left its upstream can
#                   reach; CHANGED=COMMIT since that commit
set -euo pipefail
cd "$(dirname "$0")/../.."
began=${BEGAN:-$(date +%s)}
out=$BASALT_BUILD/test
mkdir -p "$out"
rm -f "$out"/*.log "$out"/stages.txt
stages=$out/stages.txt
[ -z "${SETUP_TOOK:-}" ] || echo "$SETUP_TOOK set-up and build" >"$stages"

# stage NAME COMMAND…: shows its output at once, and records how long it took.
stage() {
	local name=$1 from=$SECONDS
	shift
	"$@" || { echo "test: $name failed" >&2; return 1; }
	echo "$((SECONDS - from)) $name" >>"$stages"
}
make() { command make --no-print-directory "$@"; }

go build -o "$BASALT_BUILD/bin/testrun" ./appliance/test/testrun
choice=(-layer "${LAYER:-test}" -run "${RUN:-}" -changed "${CHANGED:-}" -packages "${PKG:-}")
targets=$("$BASALT_BUILD/bin/testrun" -prepare "${choice[@]}")

all=; [ -n "${RUN:-}${CHANGED:-}${PKG:-}" ] || all=1
# Runs alone, since it rewrites files that others compile.
[ -z "$all" ] || stage generated make generated

# The images are mostly downloads and single-threaded work, so CPU-bound stages run at
# the same time.
[ "${LAYER:-test}" != check ] || targets=
prepare() { [ -z "$targets" ] || make $targets; }
stage images prepare >"$out/images.log" 2>&1 &
images=$!
portal=
trap 'kill $images $portal 2>/dev/null || true; [[ $targets != *libvirtd* ]] || installer/dev/libvirtd.sh stop' EXIT
if [ -n "$all" ]; then
	# In parallel with lint: the portal's tools use one processor most of the time.
	stage portal make ui-check >"$out/portal.log" 2>&1 &
	portal=$!
	stage lint make lint
	wait $portal || { cat "$out/portal.log" >&2; exit 1; }
	[ "${LAYER:-test}" = check ] || stage "guest library" make -C gpu/guest BUILD="$BASALT_BUILD" test
fi
wait $images || { tail -n 40 "$out/images.log" >&2; exit 1; }

"$BASALT_BUILD/bin/testrun" -began "$began" -stages "$stages" "${choice[@]}"
