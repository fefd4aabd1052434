#!/usr/bin/env bash
# Plants mistakes in copies of the tree, one at a time, and checks that the tests named
# in each patch catch it: all of installer/dev/planted, or the given ones. Called by
# "make planted"; docs/tests.md has the list. A patch names the test that catches it,
# and the expected text of the failure. The tree must be committed and built: make test
# prepares it. The output of the tests is in build/planted.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
build=${BASALT_BUILD:-$root/build}
work=$(mktemp -d "$build/planted.XXXXXX")
logs=$build/planted
mkdir -p "$logs"
trap 'git worktree remove --force "$work/tree" 2>/dev/null || true; rm -rf "$work"' EXIT

missed=0
for patch in "$root"/installer/dev/planted/*.patch; do
	name=$(basename "$patch" .patch)
	[ $# = 0 ] || [[ " $* " = *" $name "* ]] || continue
	read -r package run < <(sed -n 's/^Caught-by: //p' "$patch")
	saying=$(sed -n 's/^Saying: //p' "$patch")
	git worktree add --quiet --detach "$work/tree"
	git -C "$work/tree" apply "$patch" || { echo "planted: $name no longer fits the tree" >&2; exit 1; }
	began=$SECONDS built=$build
	# Build outputs that contain the mistake are built again.
	case $package in
	ui) ln -s "$root/ui/node_modules" "$work/tree/ui/" && cp -r "$root/ui/dist" "$work/tree/ui/" && (cd "$work/tree/ui" && PATH="$(dirname "$(../installer/dev/node.sh path)"):$PATH" node scripts/build.mjs >/dev/null) ;;
	installer/e2e) built=$work/tree/build && make --no-print-directory -C "$work/tree" iso >"$logs/$name.log" 2>&1 ;;
	*) mkdir -p "$work/tree/ui/dist" && cp -r "$root/ui/dist/." "$work/tree/ui/dist/" ;;
	esac
	if (cd "$work/tree" && BASALT_BUILD=$built go test -count=1 -vet=off -timeout 30m ${run:+-run "^$run\$"} "./$package") >"$logs/$name.log" 2>&1; then
		echo "MISSED  $name: $package ${run:-} passes with it"
		missed=1
	elif grep -qE '^--- FAIL|^panic: ' "$logs/$name.log" && grep -qF -- "$saying" "$logs/$name.log"; then
		echo "caught  $name: $package $(grep -oE -m1 '^--- FAIL: [^ ]+' "$logs/$name.log" | cut -c11-) after $((SECONDS - began)) s"
	else
		tail -n 20 "$logs/$name.log" >&2
		echo "planted: $name: the tests did not run, or failed without saying \"$saying\"" >&2
		missed=1
	fi
	git worktree remove --force "$work/tree"
done
exit $missed
