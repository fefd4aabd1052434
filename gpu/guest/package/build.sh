#!/usr/bin/env bash
# Builds packages of the guest tools from the results of "make -C gpu/guest", for the disc and
# for package repositories: build/guest/packages/basalt-vgpu-tools…, .deb and .rpm for x86-64
# and arm64 with glibc, and .tar.xz with everything that is on the disc. The builds are
# reproducible: the same tree gives the same bytes.
#
# VERSION, ARCHS, FORMATS and OUT replace the defaults.
#
# install.sh installs a package's files in a folder, and nfpm packs that folder, so that the
# list of files exists only once.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../../.." && pwd)
build=${BASALT_BUILD:-$top/build}
nfpm=${NFPM:-$build/tools/nfpm}
out=${OUT:-$build/guest/packages}
name=basalt-vgpu-tools

say() { printf 'packages: %s\n' "$*"; }
die() { printf 'packages: %s\n' "$*" >&2; exit 1; }

export TZ=UTC LC_ALL=C
umask 022
version=${VERSION:-$("$top/installer/deb/version.sh")}
read -ra archs <<<"${ARCHS:-amd64 arm64}"
read -ra formats <<<"${FORMATS:-deb rpm tar.xz}"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$top" log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH
parts=(arm64 bin demo include install.sh kernel lib musl report setup)

for part in "${parts[@]}"; do [ -e "$build/guest/$part" ] || die "$build/guest has no $part: run make build"; done
[ -x "$nfpm" ] || die "$nfpm is not there: run make tools"

# Do nothing if the inputs have not changed since the last build.
stamp=$out/.inputs
want=$({
	echo "$version $SOURCE_DATE_EPOCH ${archs[*]} ${formats[*]}"
	cd "$build/guest"
	find "${parts[@]}" ! -type d -printf '%m %p %l\n' | sort
	find "${parts[@]}" "$here" "$nfpm" -type f -print0 | sort -z | xargs -0 cat
} | sha256sum | cut -d' ' -f1)
if [ "$(cat "$stamp" 2>/dev/null)" = "$want" ]; then exit 0; fi
rm -f "$stamp"
mkdir -p "$out"
work=$(mktemp -d "$out/.work-XXXXXX")
trap 'rm -rf "$work"' EXIT

disc=$work/$name-$version
mkdir "$disc"
(cd "$build/guest" && cp -r "${parts[@]}" "$disc/")
rm -f "$disc"/*/.symbols
echo "$version" >"$disc/version"
# Debug information is two thirds of the size.
for folder in "" arm64/ musl/; do
	strip=strip
	[ "$folder" != arm64/ ] || strip=aarch64-linux-gnu-strip
	find "$disc/$folder"{lib,demo,bin/cuda-info,bin/nvidia-smi} -type f -exec "$strip" --strip-debug {} +
done

# contents FOLDER: prints nfpm's list of the files in a folder. The package owns the folders
# that only the guest tools use.
contents() {
	(cd "$1" && find . -mindepth 1 -printf '%P\t%y\t%m\t%l\n' | sort) | while IFS=$'\t' read -r path type mode target; do
		case $type in
		d) case $path/ in
			usr/lib/basalt/* | usr/include/basalt/* | opt/basalt/* | usr/share/doc/$name/*)
				printf -- '- {dst: "/%s", type: dir, file_info: {mode: 0755}}\n' "$path" ;;
			esac ;;
		l) printf -- '- {src: "%s", dst: "/%s", type: symlink}\n' "$target" "$path" ;;
		f) printf -- '- {src: "%s", dst: "/%s", file_info: {mode: 0%s}}\n' "$1/$path" "$path" "$mode" ;;
		esac
	done
}

for arch in "${archs[@]}"; do
	root=$work/$arch
	mkdir -p "$root/usr/share/doc/$name"
	DESTDIR=$root BASALT_VARIANT=$arch sh "$disc/install.sh" --files >/dev/null
	echo "$name" >"$root/usr/lib/basalt/package"
	install -m 644 "$top/installer/deb/copyright" "$root/usr/share/doc/$name/"
	printf '%s (%s) unstable; urgency=medium\n\n  * See the commits.\n\n -- Basalt <basalt@localhost>  %s\n' \
		"$name" "$version" "$(date -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$root/usr/share/doc/$name/changelog.gz"
	{
		sed "s|@NAME@|$name|; s|@ARCH@|$arch|; s|@VERSION@|$version|; s|@HERE@|$here|" "$here/nfpm.yaml"
		echo "contents:"
		contents "$root"
	} >"$work/$arch.yaml"
	for format in "${formats[@]}"; do
		[ "$format" = tar.xz ] || "$nfpm" package --config "$work/$arch.yaml" --packager "$format" --target "$work/" >/dev/null
	done
done
if [[ " ${formats[*]} " = *" tar.xz "* ]]; then
	tar -C "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -cf - "$name-$version" |
		xz -1 >"$work/$name-$version.tar.xz"
fi

# Replace all packages together.
rm -f "$out/$name"*
find "$work" -maxdepth 1 -type f -name "$name*" -exec mv {} "$out/" \;
echo "$want" >"$stamp"
(cd "$out" && ls -l -- "$name"* | awk '{ printf "packages: %s, %.1f MiB\n", $NF, $5 / 1048576 }')
