#!/usr/bin/env bash
# Makes the tiny test guest: build/testguest/vmlinuz and initrd.img, from
# Debian's ordinary kernel package and busybox-static. No root, no mount,
# nothing installed. Idempotent: a second run finds everything in place.
#
#   build.sh                     the two files
#   build.sh overlay DIR OUT     initrd.img with DIR's files on top, as OUT
#
# TESTGUEST_KERNEL names another kernel package than the suite's own.
#
# The guest's /init loads the virtio modules, mounts proc, sys and dev, runs
# /run.sh if an overlay brought one (its output on ttyS0, its exit status as
# the last line "testguest: exit N"), and powers off.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${BASALT_BUILD:-$(cd "$here/../../.." && pwd)/build}
out=$build/testguest
modules="virtio_pci virtio_blk virtio_net virtio_gpu"

say() { printf 'testguest: %s\n' "$*"; }
die() { printf 'testguest: %s\n' "$*" >&2; exit 1; }

pack() { # DIR OUT: a gzipped cpio that belongs to root, whoever builds it
	(cd "$1" && find . -mindepth 1 -print0 | LC_ALL=C sort -z |
		cpio --quiet --null -o -H newc -R 0:0 | gzip -1) >"$2"
}

# The kernel cares for any number of archives, one after the other.
overlay() {
	pack "$1" "$2.part"
	cat "$out/initrd.img" "$2.part" >"$2.new"
	rm "$2.part"
	mv "$2.new" "$2"
}

# The kernel package, downloaded and unpacked once.
kernel() { # DIR
	local pkg
	pkg=${TESTGUEST_KERNEL:-$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image-/ { print $2; exit }')}
	[ -n "$pkg" ] || die "apt knows no linux-image-amd64: run apt-get update"
	say "downloading and unpacking $pkg"
	(cd "$1" && apt-get download -qq "$pkg" 2>"$1/apt.err") || die "cannot download $pkg: $(cat "$1/apt.err")"
	dpkg-deb --fsys-tarfile "$1"/linux-image-*.deb |
		tar -x -C "$1" --wildcards --transform 's,^\./usr/lib/,./lib/,' './boot/vmlinuz-*' \
			'./*lib/modules/*/kernel/drivers/*' './*lib/modules/*/kernel/lib/*' './*lib/modules/*/kernel/net/*' \
			'./*lib/modules/*/kernel/fs/*' './*lib/modules/*/modules.*' || die "cannot unpack $pkg"
}

root() { # KERNEL ROOT: what the guest's initramfs holds
	local version m k=$1 r=$2
	version=$(cd "$k/lib/modules" && echo *)
	mkdir -p "$r"/{bin,dev,proc,sys,tmp,etc,lib,lib64,root,run,modules}
	install -m 755 "$(command -v busybox)" "$r/bin/busybox"
	# Ours come out of the package compressed on Debian 13; insmod wants plain.
	find -L "$k/lib/modules" -name '*.ko.xz' -exec xz -d {} +
	PATH=$PATH:/usr/sbin:/sbin
	depmod -b "$k" "$version"
	for m in $modules; do
		modprobe -d "$k" -S "$version" --show-depends "$m" || die "kernel $version has no $m"
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r m; do
		cp "$m" "$r/modules/"
		basename "$m"
	done >"$r/modules/order"
	install -m 755 "$here/init.sh" "$r/init"
}

make() { # DIR: the two files in it
	local work=$1/work
	mkdir -p "$work/kernel" "$work/root"
	kernel "$work/kernel"
	root "$work/kernel" "$work/root"
	pack "$work/root" "$1/initrd.img"
	cp "$work"/kernel/boot/vmlinuz-* "$1/vmlinuz"
	say "made vmlinuz and initrd.img ($(du -k "$1/initrd.img" | cut -f1) KiB)"
}

# What the guest is made from, besides the archive's newest kernel.
inputs() {
	cat "$here/build.sh" "$here/init.sh" "$(command -v busybox)" || die "busybox is missing: run installer/dev/setup.sh"
	(. /etc/os-release && echo "${TESTGUEST_KERNEL:-} ${VERSION_CODENAME:-}")
}

guest() {
	local want
	want=$(inputs | sha256sum | cut -d' ' -f1)
	if [ "$(cat "$out/stamp" 2>/dev/null)" = "$want" ] && [ -s "$out/initrd.img" ] && [ -s "$out/vmlinuz" ]; then return; fi
	"$here/../../../installer/dev/cache.sh" testguest "$want" "$out" vmlinuz initrd.img -- "$here/build.sh" make
	printf '%s\n' "$want" >"$out/stamp"
}

if [ "${1:-}" = make ]; then # called by cache.sh
	make "$2"
	exit
fi
# One builder at a time: several tests want the guest.
mkdir -p "$out"
exec 9>"$out/lock"
flock 9
guest
if [ "${1:-}" = overlay ]; then
	[ $# = 3 ] || die "usage: build.sh overlay DIR OUT"
	overlay "$2" "$3"
fi
