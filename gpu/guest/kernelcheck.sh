#!/bin/sh
# Reports whether guests that boot a kernel can use a vGPU, by the kernel's configuration.
# docs/guest-images.md lists its results.
#
# kernelcheck.sh FILE…   each FILE is a kernel's configuration (/boot/config-VERSION), or a
#                        package that contains one: .deb (linux-image…, Ubuntu's
#                        linux-modules…), or .rpm (kernel-core…, kernel-default…)
#
# It prints one line for each file: its name, "supported" or "new-kernel" (the values of an
# image's ability vgpu), and what is missing. The exit code is 1 if any kernel has no driver,
# and 2 if a file cannot be read.
set -eu

die() {
	echo "kernelcheck: $*" >&2
	exit 2
}
[ $# -gt 0 ] || die "no file given: a kernel's configuration, or its package"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# configuration FILE: sets "config" to the file with the options, and "modules" to the file with
# the list of the package's files, or to an empty value if FILE is not a package.
configuration() {
	modules=
	case $1 in
	*.deb)
		dpkg-deb --fsys-tarfile "$1" >"$work/tar" || die "$1 cannot be unpacked"
		tar -tf "$work/tar" >"$work/list"
		modules=$work/list config=$work/config
		tar -xOf "$work/tar" --wildcards './boot/config-*' >"$config" 2>/dev/null || true ;;
	*.rpm)
		rpm2cpio "$1" >"$work/cpio" || die "$1 cannot be unpacked"
		cpio -t --quiet <"$work/cpio" >"$work/list"
		modules=$work/list config=$work/config
		name=$(grep -E '(^|/)(boot/config-[^/]*|lib/modules/[^/]*/config)$' "$work/list" | head -n 1)
		: >"$config"
		[ -z "$name" ] || cpio -i --quiet --to-stdout "$name" <"$work/cpio" >"$config" ;;
	*) config=$1 ;;
	esac
	[ -r "$config" ] || die "$1 cannot be read"
	grep -q '^CONFIG_' "$config" || die "$1 has no kernel's configuration"
}

# option NAME: sets "value" to y, m or n.
option() {
	value=$(sed -n "s/^CONFIG_$1=\([ym]\)\$/\1/p" "$config" | head -n 1)
	value=${value:-n}
}

worst=0
for file; do
	configuration "$file"
	lacks= answer=supported
	for name in VIRTIO_PCI DRM DRM_VIRTIO_GPU; do # the vGPU cannot be used without these
		option $name
		[ "$value" != n ] || { lacks="$lacks $name" answer=new-kernel; }
	done
	# The driver has the features that the libraries need (contexts with a type, blobs) since
	# Linux 5.16.
	version=$(sed -n 's/^# Linux.* \([0-9][0-9]*\.[0-9][0-9]*\).* Kernel Configuration.*/\1/p' "$config" | head -n 1)
	major=${version%%.*} minor=${version#*.}
	if [ -n "$version" ] && { [ "$major" -lt 5 ] || { [ "$major" = 5 ] && [ "$minor" -lt 16 ]; }; }; then
		lacks="$lacks version-$version<5.16" answer=new-kernel
	fi
	option DRM_VIRTIO_GPU
	if [ "$value" = m ] && [ -n "$modules" ] && ! grep -q '/virtio-gpu\.ko' "$modules"; then
		lacks="$lacks virtio-gpu.ko(in-another-package?)" # the driver may be in another package
	fi
	for name in VIRTIO_BLK VIRTIO_NET SCSI_VIRTIO ISO9660_FS VIRTIO_CONSOLE; do # disks, network, discs, guest agent
		option $name
		[ "$value" != n ] || lacks="$lacks $name"
	done
	[ "$answer" = supported ] || worst=1
	printf '%s %s%s\n' "${file##*/}" "$answer" "${lacks:+ lacks$lacks}"
done
exit $worst
