#!/usr/bin/env bash
# Creates Debian packages from the outputs of "make build": build/deb/*.deb. The same
# tree gives the same bytes.
#
# Each folder here is a package: control, maintainer scripts, and in root/ the files
# that are installed unchanged. Programs and the guest's files are added below.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
build=${BASALT_BUILD:-$top/build}
out=$build/deb
cd "$top"

say() { printf 'deb: %s\n' "$*"; }
die() { printf 'deb: %s\n' "$*" >&2; exit 1; }

export TZ=UTC LC_ALL=C
version=$("$here/version.sh")
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH

[ -x "$build/bin/basaltd" ] || die "$build/bin has no basaltd: run make build"
[ -f "$build/guest/lib/libcuda.so.1" ] || die "$build/guest is not built: run make build"
mkdir -p "$out"
BASALT_BUILD=$build VERSION=$version "$top/gpu/guest/package/build.sh"

# The inputs: if they are unchanged, there is nothing to do.
stamp=$out/.inputs
want=$({
	echo "$version $SOURCE_DATE_EPOCH"
	dpkg-query -W dpkg binutils
	find "$here" "$build/bin" "$build/guest" ! -type d -printf '%m %p %l\n' | sort
	find "$here" "$build/bin" "$build/guest" -type f -print0 | sort -z | xargs -0 cat
} | sha256sum | cut -d' ' -f1)
if [ "$(cat "$stamp" 2>/dev/null)" = "$want" ] && compgen -G "$out/*.deb" >/dev/null; then exit 0; fi
rm -f "$stamp"

work=$(mktemp -d "$out/.work-XXXXXX")
trap 'rm -rf "$work"' EXIT

# Programs of a package that exist in this tree.
add_programs() { # ROOT NAME…
	local root=$1 name
	shift
	mkdir -p "$root/usr/bin"
	for name in "$@"; do
		[ -x "$build/bin/$name" ] || { say "$name is not built, so it is left out"; continue; }
		install -m 755 "$build/bin/$name" "$root/usr/bin/"
		strip --strip-unneeded "$root/usr/bin/$name"
	done
}

# The newest glibc version that a program here needs.
glibc() { objdump -T "$@" 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -uV | tail -n 1; }

pack() { # PACKAGE, its files in $work/PACKAGE
	local name=$1 root=$work/$1
	if [ -d "$here/$name/root" ]; then cp -r "$here/$name/root/." "$root/"; fi
	mkdir -p "$root/usr/share/doc/$name" "$root/DEBIAN"
	install -m 644 "$here/copyright" "$root/usr/share/doc/$name/"
	printf '%s (%s) unstable; urgency=medium\n\n  * See the commits.\n\n -- Basalt <basalt@localhost>  %s\n' \
		"$name" "$version" "$(date -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$root/usr/share/doc/$name/changelog.gz"
	for f in conffiles triggers postinst prerm postrm; do
		if [ -f "$here/$name/$f" ]; then cp "$here/$name/$f" "$root/DEBIAN/"; fi
	done
	find "$root" -type d -exec chmod 755 {} +
	find "$root" -type f -exec chmod go-w,go+r {} +
	{
		sed "s/@VERSION@/$version/; s/@GLIBC@/$(glibc "$root"/usr/bin/* || true)/" "$here/$name/control" | sed "/^Maintainer/a Installed-Size: $(du -sk --exclude=DEBIAN --apparent-size "$root" | cut -f1)"
	} >"$root/DEBIAN/control"
	(cd "$root" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | sort -z | xargs -0 md5sum) >"$work/md5sums"
	mv "$work/md5sums" "$root/DEBIAN/"
	find "$root" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
	# xz takes ten times the CPU time, and saves a tenth; dpkg of Debian 12 and newer
	# supports zstd.
	dpkg-deb --root-owner-group -Zzstd -z6 --build "$root" "$work/debs/${name}_${version}_amd64.deb" >/dev/null
}

mkdir -p "$work"/{debs,basalt,basalt-guest-tools,basalt-installer}
add_programs "$work/basalt" basaltd basalt basalt-gpud basalt-vgpu basalt-worker basalt-fence basalt-console basalt-ptx
add_programs "$work/basalt-installer" basalt-installer
# Basalt starts Open vSwitch and OVN itself. The links are files of the package: they
# exist before the other packages' scripts start anything, and are removed with it.
mkdir -p "$work/basalt/etc/systemd/system"
for unit in ovs{db-server,-vswitchd,-record-hostname} openvswitch-switch ovn-{central,northd,ovsdb-server-nb,ovsdb-server-sb,host,controller}; do
	ln -s /dev/null "$work/basalt/etc/systemd/system/$unit.service"
done
# The disc's folder, with the guest tools' own packages.
disc=$work/basalt-guest-tools/usr/share/basalt/guest-tools
mkdir -p "$disc/packages"
tar -C "$disc" --strip-components=1 -xJf "$build"/guest/packages/*.tar.xz
cp "$build"/guest/packages/*.* "$disc/packages/"
for package in basalt basalt-guest-tools basalt-installer; do pack "$package"; done

# All packages of this version or none.
rm -f "$out"/*.deb
mv "$work"/debs/*.deb "$out/"
echo "$want" >"$stamp"
say "version $version"
(cd "$out" && ls -l -- *.deb | awk '{ printf "deb: %s, %.1f MiB\n", $NF, $5 / 1048576 }')
