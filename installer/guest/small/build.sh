#!/usr/bin/env bash
# Builds the small guest image: build/images/small-guest.qcow2, for tests whose guest
# only has to exist, shut down or run CUDA programs: it boots in seconds without KVM,
# whereas the Debian guest (../build.sh) takes a minute. It needs no loop device and no
# mount.
#
# Usage: build.sh [--force] as root, which owns the guest's files. Does nothing if the
# image exists and none of its inputs has changed.
#
# The image contains Debian's standard kernel with the modules of a virtual machine,
# started by GRUB from a BIOS disk; an ext4 root with busybox, the C library,
# qemu-guest-agent and OpenSSH's server; and the files in root/. It is configured by the
# same disc as every guest: root/lib/seed implements the part of cloud-init that tests
# need.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../../.." && pwd)
images=${BASALT_BUILD:-$top/build}/images
out=$images/small-guest.qcow2
stamp=$out.inputs

say() { printf 'small guest: %s\n' "$*"; }
die() { printf 'small guest: %s\n' "$*" >&2; exit 1; }
PATH=$PATH:/usr/sbin:/sbin
. "$here/../loader.sh"

size_mib=80   # of the root file system
first_mib=1   # where it starts; the boot loader is before it
uuid=6d1f1f0e-5a1e-4bd4-9d3a-2f7f0f6b6d01
boot_modules="virtio_pci virtio_blk ext4 crc32c_generic" # in the initramfs
root_modules="evdev button virtio_console virtio_net virtio_scsi sr_mod isofs virtio_gpu"

# The image's inputs: these files, and the versions of the packages.
versions() { apt-cache policy linux-image-amd64 qemu-guest-agent busybox-static libc6 libglib2.0-0 openssh-server libssl3 | awk '/^[a-z]|Candidate/'; }
inputs() { (cd "$here" && find . ../loader.sh -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum); versions; }
if [ "${1:-}" != --make ]; then
	want=$(inputs | sha256sum | cut -d' ' -f1)
	anew=()
	if [ "${1:-}" = --force ]; then
		anew=(--anew)
	elif [ -s "$out" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$want" ]; then
		exit 0
	fi
	"$top/installer/dev/cache.sh" "${anew[@]}" small-guest "$want" "$images" "$(basename "$out")" -- "$0" --make
	printf '%s\n' "$want" >"$stamp"
	say "$out: $(($(stat -c %s "$out") >> 20)) MiB"
	exit 0
fi

# --make DIR, called by cache.sh: builds the image in DIR.
work=$2
[ "$(id -u)" = 0 ] || die "run it as root: the guest's files belong to who makes them"
for tool in busybox cpio sshd ssh-keygen depmod mke2fs sfdisk grub-mkimage qemu-img zstd; do
	command -v "$tool" >/dev/null || die "$tool is missing: run installer/dev/setup.sh"
done
began=$SECONDS

# unpack PACKAGE…: unpacks packages into $work/packages.
unpack() {
	local p
	for p in "$@"; do
		(cd "$work" && apt-get download -qq "$p" 2>"$work/apt.err") || die "cannot download $p: $(cat "$work/apt.err")"
		dpkg-deb -x "$work/$p"_*.deb "$work/packages"
	done
}
kernel=$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image-/ { print $2; exit }')
[ -n "$kernel" ] || die "apt knows no linux-image-amd64: run apt-get update"
say "unpacking $kernel and qemu-guest-agent"
mkdir "$work/packages"
unpack "$kernel" qemu-guest-agent
p=$work/packages
[ -d "$p/usr/lib/modules" ] && { mkdir -p "$p/lib"; ln -s ../usr/lib/modules "$p/lib/modules"; }
version=$(cd "$p/lib/modules" && echo *)
find "$p/lib/modules/$version" -name '*.ko.xz' -exec xz -d {} + # Debian 13 compresses them; busybox needs them uncompressed
depmod -b "$p" "$version"

# copy_modules ROOT MODULE…: copies modules with their dependencies, under the same
# paths.
copy_modules() {
	local root=$1 m file to
	shift
	for m in "$@"; do
		modprobe -d "$p" -S "$version" --show-depends "$m" || die "kernel $version has no $m"
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$work/modules"
	while read -r file; do
		to=$root/lib/modules/$version/${file#*/modules/"$version"/}
		mkdir -p "${to%/*}"
		cp "$file" "$to"
	done <"$work/modules"
	cp "$p/lib/modules/$version"/modules.{order,builtin,builtin.modinfo} "$root/lib/modules/$version/"
	depmod -b "$root" "$version"
}
# copy_busybox ROOT: installs busybox under all its names.
copy_busybox() {
	mkdir -p "$1/bin"
	install -m 755 "$(command -v busybox)" "$1/bin/busybox"
	busybox --list | while read -r name; do [ "$name" = busybox ] || ln -s busybox "$1/bin/$name"; done
}

boot=$work/boot root=$work/root
mkdir -p "$boot"/{dev,proc,sys,root} "$root"/{dev,proc,sys,run,tmp,root,home/debian,etc,lib64,boot/grub,usr/sbin,usr/local,var/log}
copy_busybox "$boot"
# shellcheck disable=SC2086 # a list of words
copy_modules "$boot" $boot_modules
echo "$boot_modules" >"$boot/modules"
install -m 755 "$here/init" "$boot/init"
(cd "$boot" && find . -mindepth 1 -print0 | LC_ALL=C sort -z | cpio --quiet --null -o -H newc -R 0:0 | gzip -6) >"$root/boot/initrd.img"
cp "$p/boot/vmlinuz-$version" "$root/boot/vmlinuz"

copy_busybox "$root"
ln -s bin "$root/sbin"
# shellcheck disable=SC2086 # a list of words
copy_modules "$root" $boot_modules $root_modules
echo "$root_modules" >"$root/lib/modules/load"
install -m 755 "$p/usr/sbin/qemu-ga" "$root/usr/sbin/"
install -m 755 /sbin/ldconfig "$root/usr/sbin/"
# OpenSSH is this machine's (installer/dev/setup.sh). Debian 13 has a program for each
# part of a session.
mkdir -p "$root/usr/bin" "$root/usr/lib/openssh"
programs=("$p/usr/sbin/qemu-ga")
for program in /usr/sbin/sshd /usr/bin/ssh-keygen /usr/lib/openssh/sshd-{session,auth}; do
	[ -e "$program" ] || continue
	install -m 755 "$program" "$root$program"
	programs+=("$program")
done
for program in "${programs[@]}"; do
	ldd "$program" | grep -q 'not found' && die "libraries of $program are not installed here: run installer/dev/setup.sh"
done
libraries=$(ldd "${programs[@]}" | grep -o '[[:space:]]/[^ :]*' | tr -d '[:blank:]' | sort -u)
libc=$(grep '/libc\.so\.6$' <<<"$libraries")
# The guest tools link to the libraries that glibc had before 2.34, which every
# distribution provides.
for lib in $libraries "${libc%/*}"/lib{pthread.so.0,dl.so.2}; do
	mkdir -p "$root${lib%/*}"
	cp -L "$lib" "$root$lib"
done
echo 'include /etc/ld.so.conf.d/*.conf' >"$root/etc/ld.so.conf"
cp -r "$here/root/." "$root/"
chown 1000:1000 "$root/home/debian"
sed "s/@UUID@/$uuid/" "$here/grub.cfg" >"$root/boot/grub/grub.cfg"

say "making the disk"
mke2fs -q -t ext4 -F -L small -U "$uuid" -m 1 -O ^metadata_csum_seed,^orphan_file -E "offset=$((first_mib << 20)),lazy_itable_init=0" \
	-d "$root" "$work/disk" "$((size_mib * 1024))" 2>"$work/mke2fs" || { cat "$work/mke2fs" >&2; die "mke2fs failed"; }
truncate -s "$((size_mib + first_mib))M" "$work/disk"
write_loader "$work" "$first_mib"
qemu-img convert -q -c -O qcow2 -o compression_type=zstd "$work/disk" "$work/$(basename "$out")"
say "made in $((SECONDS - began)) s"
