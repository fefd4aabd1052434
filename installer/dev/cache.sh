#!/usr/bin/env bash
# Keeps what takes minutes to make outside the tree, by a hash of what it is made
# from: a fresh clone on the same machine does not make it again.
#
#   cache.sh [--anew] KIND KEY DIR NAME… -- COMMAND…
#
# puts the files or trees NAME into DIR. With an entry KEY of this KIND they come
# out of the cache; otherwise COMMAND makes them in an empty folder, which is its
# last argument, and they are kept. --anew makes them in any case.
#
# Two that want the same at once make it once. A NAME appears in DIR whole, in
# the order of the arguments, and an entry in the cache likewise: whoever is
# killed leaves nothing that counts. Owners, capabilities and extended attributes
# stay as they are. Of each kind the two entries used last are kept.
#
#   cache.sh dir      the cache's directory: remove it to clear it
set -euo pipefail

kept=2 # entries of each kind

die() { printf 'cache: %s\n' "$*" >&2; exit 1; }

cache=${BASALT_CACHE:-${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/basalt}
# A machine where nothing can be written there has one in what it builds.
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
# What a killed run left: nobody else of this kind is at work.
rm -rf --one-file-system "$dir/.made-$kind".?????? "$cache/$kind"/.new-??????
made=$(mktemp -d "$dir/.made-$kind.XXXXXX")
chmod 755 "$made"
trap 'rm -rf --one-file-system "$made"' EXIT

attributes=(--numeric-owner --xattrs --xattrs-include='*')
# unpack copies the entry; its checksum tells a damaged one, which goes.
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

# keep the new entry: flushed before it has its name, so that a power cut leaves
# no empty one. What cannot be kept is made another time.
keep() {
	local new
	new=$(mktemp "$cache/$kind/.new-XXXXXX") || return
	if tar -cf - "${attributes[@]}" -C "$made" -- "${names[@]}" | zstd -q -1 -T0 >"$new" && sync "$new"; then
		mv "$new" "$entry"
	else
		rm -f "$new"
		printf 'cache: %s is not kept\n' "$kind" >&2
	fi
	# The newest first, by their last use.
	(cd "$cache/$kind" && ls -t -- *.tar.zst 2>/dev/null | tail -n +$((kept + 1)) | xargs -r rm -f --)
}

if [ -n "$anew" ] || ! unpack; then
	"$@" "$made" 9>&- # nothing that it leaves running holds the lock
	for name in "${names[@]}"; do
		[ -e "$made/$name" ] || die "$kind: $1 has not made $name"
	done
	keep
fi
for name in "${names[@]}"; do
	if [ -d "$dir/$name" ]; then rm -rf --one-file-system "${dir:?}/$name"; fi
	mv -fT "$made/$name" "$dir/$name"
done
