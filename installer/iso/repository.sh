#!/usr/bin/env bash
# Creates a signed package repository for apt: repository.sh KEY DIR DEB…
#
#   KEY            the secret key that signs (made if it is not there, mode 0600), and
#                  KEY.pub beside it, for /etc/apt/keyrings
#   DIR/InRelease  signed: the sum of Packages
#   DIR/Packages   the packages' sums
#
# The builder of the media keeps KEY. Nodes installed from such a medium accept later
# ones signed with the same key, and no others.
set -euo pipefail
key=$1 dir=$2
shift 2

GNUPGHOME=$(mktemp -d)
export GNUPGHOME
trap 'gpgconf --kill all; rm -rf "$GNUPGHOME"' EXIT
gpg() { command gpg --batch --quiet --no-tty --pinentry-mode loopback --passphrase '' "$@"; }

if [ ! -s "$key" ]; then
	mkdir -p "$(dirname "$key")"
	gpg --quick-gen-key 'Basalt release' ed25519 sign never 2>/dev/null
	(umask 077 && gpg --armor --export-secret-keys >"$key.new")
	mv "$key.new" "$key"
	printf 'iso: %s signs media from now on: keep a copy of it, and nobody else\n' "$key"
else
	gpg --import "$key"
fi
gpg --export >"$key.pub.new"
mv "$key.pub.new" "$key.pub"
[ $# -gt 0 ] || exit 0

mkdir -p "$dir"
cp -- "$@" "$dir/"
cd "$dir"
dpkg-scanpackages --multiversion . /dev/null >Packages 2>/dev/null
{
	printf 'Origin: Basalt\nLabel: Basalt\nSuite: medium\nArchitectures: amd64\n'
	printf 'Date: %s\n' "$(LC_ALL=C TZ=UTC date -u -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}" '+%a, %d %b %Y %H:%M:%S UTC')"
	printf 'Description: what the installation medium brings for nodes that are there already\n'
	printf 'SHA256:\n %s %s Packages\n' "$(sha256sum <Packages | cut -d' ' -f1)" "$(stat -c %s Packages)"
} >Release
gpg --clearsign --digest-algo SHA512 --output InRelease Release
rm Release
