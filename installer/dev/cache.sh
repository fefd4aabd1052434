#!/usr/bin/env bash
# Stores build outputs that take minutes outside the tree, by a hash of their inputs, so
# that a fresh clone on the same machine does not build them again.
#
#   cache.sh [--anew] KIND KEY DIR NAME… -- COMMAND…
#
# puts the files or trees NAME into DIR. If the cache has an entry KEY of this KIND,
# they are taken from it; otherwise COMMAND builds them in an empty folder, which is its
# last argument, and they are stored. --anew always builds them.
#
# Concurrent calls for the same entry build it once. A NAME appears in DIR atomically,
# in the order of the arguments, and so does an entry in the cache: a killed run leaves
# nothing that is used. Owners, capabilities and extended attributes are kept. The two
# most recently used entries of each kind are kept.
#
#   cache.sh dir      the cache's directory: remove it to clear it
set -euo pipefail

kept=2 # entries of each kind

die() { printf 'cache: %s\n' "$*" >&2; exit 1; }

cache=${BASALT_CACHE:-${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/basalt}
# If that is not writable on this machine, the cache is in the build folder.
mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ] || cache=${BASALT_BUILD:?no directory for the cache: set BASALT_CACHE}/cache
[ "${1:-}" != dir ] || { echo "$cache"; exit; }

anew=
if [ "${1:-}" = --anew ]; then anew=1; shift; fi
[ $# -ge 6 ] || die "usage: cache.sh [--anew] KIND KEY DIR NAME… -- COMMAND…"
kind=$1 key=$2 dir=$3
shift 3
names=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do names+=("$1"); shift; done
[ $# -ge 2 ] && [ ${#names[@]} -ge 1 ] || die "usage: cache.sh [--anew] KIND KEY DIR NAME… -- COMMAND…"
shift
entry=$cache/$kind/$key.tar.zst

mkdir -p "$cache/$kind" "$dir"
exec 9>"$cache/$kind/lock"
flock 9
# Remove what a killed run left; no other run of this kind is active.
rm -rf --one-file-system "$dir/.made-$kind".?????? "$cache/$kind"/.new-??????
made=$(mktemp -d "$dir/.made-$kind.XXXXXX")
chmod 755 "$made"
trap 'rm -rf --one-file-system "$made"' EXIT

attributes=(--numeric-owner --xattrs --xattrs-include='*')
# unpack copies the entry; an entry whose checksum is wrong is removed.
unpack() {
	[ -f "$entry" ] || return 1
	if zstd -dcq <"$entry" | tar -xpf - "${attributes[@]}" -C "$made"; then
		touch "$entry"
		return
	fi
	printf 'cache: %s is damaged and is made again\n' "$entry" >&2
	rm -rf --one-file-system "$entry" "$made"
	mkdir "$made"
	return 1
}

# Store the new entry: it is flushed before it gets its name, so that a power cut leaves
# no incomplete one. If it cannot be stored, it is built again next time.
keep() {
	local new
	new=$(mktemp "$cache/$kind/.new-XXXXXX") || return
	if tar -cf - "${attributes[@]}" -C "$made" -- "${names[@]}" | zstd -q -1 -T0 >"$new" && sync "$new"; then
		mv "$new" "$entry"
	else
		rm -f "$new"
		printf 'cache: %s is not kept\n' "$kind" >&2
	fi
	# The most recently used first.
	(cd "$cache/$kind" && ls -t -- *.tar.zst 2>/dev/null | tail -n +$((kept + 1)) | xargs -r rm -f --)
}

if [ -n "$anew" ] || ! unpack; then
	"$@" "$made" 9>&- # processes that it leaves behind must not hold the lock
	for name in "${names[@]}"; do
		[ -e "$made/$name" ] || die "$kind: $1 has not made $name"
	done
	keep
fi
for name in "${names[@]}"; do
	if [ -d "$dir/$name" ]; then rm -rf --one-file-system "${dir:?}/$name"; fi
	mv -fT "$made/$name" "$dir/$name"
done
