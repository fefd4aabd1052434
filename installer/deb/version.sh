#!/usr/bin/env bash
# Prints the version of this tree, as used by programs and packages. v1.2.3 is 1.2.3;
# five commits later it is 1.2.3+5.gabcdef; without any tag it is 0~TIME.abcdef, older
# than every release. Uncommitted changes append +dirty.
set -euo pipefail
cd "$(dirname "$0")/../.."
export TZ=UTC LC_ALL=C
described=$(git describe --tags --always --dirty=+dirty --abbrev=9 2>/dev/null) || { echo '0~unknown'; exit; }
case "$described" in
v[0-9]*) sed -E 's/^v//; s/-([0-9]+)-(g[0-9a-f]+)/+\1.\2/; s/-/~/g' <<<"$described" ;;
*) echo "0~$(git log -1 --format=%cd --date=format-local:%Y%m%d%H%M%S).$described" ;;
esac
