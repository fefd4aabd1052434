#!/usr/bin/env bash
# Every test: what make prepares for them, lint, the portal's components, the
# guest library's own, then all of Go's, on real libvirt and QEMU
# (appliance/test/testrun). Called by "make check", "make test" and "make
# test-long"; LAYER is check, test or long.
#
#   RUN=NAME        only tests and stories of that name (a regexp)
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

# stage NAME COMMAND…: its output is shown at once; how long it took is noted.
stage() {
	local name=$1 from=$SECONDS
	shift
	"$@" || { echo "test: $name failed" >&2; return 1; }
	echo "$((SECONDS - from)) $name" >>"$stages"
}
make() { command make --no-print-directory "$@"; }

go build -o "$BASALT_BUILD/bin/testrun" ./appliance/test/testrun
choice=(-layer "${LAYER:-test}" -run "${RUN:-}" -changed "${CHANGED:-}")
targets=$("$BASALT_BUILD/bin/testrun" -prepare "${choice[@]}")

all=; [ -n "${RUN:-}${CHANGED:-}" ] || all=1
# Alone: it rewrites files that others compile.
[ -z "$all" ] || stage generated make generated

# The images are mostly downloads and one thread's work: beside them there is
# room for what only computes.
[ "${LAYER:-test}" != check ] || targets=
prepare() { [ -z "$targets" ] || make $targets; }
stage images prepare >"$out/images.log" 2>&1 &
images=$!
portal=
trap 'kill $images $portal 2>/dev/null || true; [[ $targets != *libvirtd* ]] || installer/dev/libvirtd.sh stop' EXIT
if [ -n "$all" ]; then
	# Beside lint: the portal's tools compute on one processor most of the time.
	stage portal make ui-check >"$out/portal.log" 2>&1 &
	portal=$!
	stage lint make lint
	wait $portal || { cat "$out/portal.log" >&2; exit 1; }
	[ "${LAYER:-test}" = check ] || stage "guest library" make -C gpu/guest BUILD="$BASALT_BUILD" test
fi
wait $images || { tail -n 40 "$out/images.log" >&2; exit 1; }

"$BASALT_BUILD/bin/testrun" -began "$began" -stages "$stages" "${choice[@]}"
