#!/bin/sh
# Installs Basalt's guest tools from the disc labelled BASALT-TOOLS (or from any
# copy of its folder) on this machine: the CUDA driver library, NVML and nvidia-smi
# of the virtual GPU. Run as root. Running it again updates everything to this disc's
# version and changes nothing else. If the package of the guest tools (packages/ on
# the disc) is installed, it does nothing.
#
# install.sh --remove   removes everything.
#
# Basalt's libcudart and libcublas are installed beside a vendor's and are used on
# request only: by basalt-cuda-run, by programs that basalt-clang linked, or, with
# BASALT_CUDART=default and BASALT_CUBLAS=default, by the whole machine (setup.sh).
#
# Containers: Podman finds the vGPU by a CDI specification, which udev renews, and
# Docker by two runtimes in /etc/docker/daemon.json, which the first run registers;
# BASALT_DOCKER=on registers them again, BASALT_DOCKER=off removes them (setup.sh).
#
# A kernel without a driver for the vGPU is replaced by the distribution's ordinary one,
# and the machine reboots once (kernel.sh); BASALT_KERNEL=keep prevents that permanently,
# and BASALT_KERNEL=replace undoes it. Images without a guest agent get one.
#
# When the files are installed, it writes its version to /etc/basalt-guest-tools-version
# and exits with code 0. Its last line and /run/basalt/check report whether the vGPU can
# be used.
#
# DESTDIR=/mnt/root install.sh   installs into a mounted system, and loads and
#                                starts nothing
# BASALT_VARIANT=arm64           the variant to install (amd64, arm64 or musl), in
#                                place of that of this machine or of DESTDIR
# install.sh --files             installs only the files, for building packages
set -eu

here=$(cd "$(dirname "$0")" && pwd)
read -r version <"$here/version"
what=${1:-}
. "$here/setup"

case $what in
'' | --remove | --files) ;;
*) die "unknown argument $1, want --remove, --files or none" ;;
esac
[ "$what" = --files ] || [ "$(id -u)" = 0 ] || die "run as root"
check_choices

if [ -f "$dest$libdir/package" ]; then
	read -r package <"$dest$libdir/package"
	[ "$what" != --remove ] || die "the package $package is installed: remove that"
	have=
	[ ! -f "$dest/etc/basalt-guest-tools-version" ] || read -r have <"$dest/etc/basalt-guest-tools-version"
	say "the package $package is installed, version $have: nothing is changed"
	[ "$have" = "$version" ] || say "this disc has version $version: packages/ on it has the package to upgrade to"
	[ -n "$dest" ] || setup_check
	exit 0
fi
if [ "$what" = --remove ]; then
	setup_remove
	rm -rf "$dest$libdir" "$dest/usr/include/basalt" "$dest/opt/basalt"
	rm -rf "$dest/etc/basalt" "$dest/var/lib/basalt"
	rm -f "$dest/etc/ld.so.conf.d/00-basalt.conf" "$dest/etc/udev/rules.d/70-basalt-vgpu.rules" \
		"$dest/etc/modules-load.d/basalt-vgpu.conf" "$dest/etc/basalt-guest-tools-version"
	[ -n "$dest" ] || ! command -v ldconfig >/dev/null || ldconfig
	say "guest tools removed"
	exit 0
fi

# Prints the variant of this machine's programs. A machine with glibc may have musl's
# loader too; the loader of its shell shows which of them the machine itself uses.
variant() {
	case $(uname -m) in
	x86_64) ;;
	aarch64) echo arm64; return ;;
	*) die "there are no guest tools for $(uname -m): x86_64 and aarch64 have some" ;;
	esac
	if [ -e "$dest/lib/ld-musl-x86_64.so.1" ]; then
		shell=$(readlink "$dest/bin/sh" || true)
		case $shell in /*) shell=$dest$shell ;; *) shell=$dest/bin/sh ;; esac
		if grep -q ld-musl- "$shell"; then echo musl; return; fi
	fi
	echo amd64
}
variant=${BASALT_VARIANT:-$(variant)}
case $variant in
amd64) from=$here ;;
arm64 | musl) from=$here/$variant ;;
*) die "there are no guest tools for '$variant', want amd64, arm64 or musl" ;;
esac
for f in lib/libcuda.so.1 lib/libnvidia-ml.so.1 bin/nvidia-smi lib/libcudart.so.12 lib/cublas/libcublas.so.12 lib/libbasalt-interop.so.1; do
	[ -f "$from/$f" ] || die "$from/$f is missing: is this the whole disc?"
done
agent=$from/bin/basalt-guest-agent
[ "$variant" != musl ] || agent=$here/bin/basalt-guest-agent # static
[ -f "$agent" ] || die "$agent is missing: is this the whole disc?"
[ "$variant" = musl ] || [ -f "$from/bin/basalt-container" ] || die "$from/bin/basalt-container is missing: is this the whole disc?"

# put MODE DIR FILE… installs files in DIR, and text FILE LINE… writes a file. Files are
# replaced by renaming, so that a program that has the old file open can continue to use
# it. These functions start few programs, because each is slow in an emulated machine.
umask 022
put() {
	mode=$1 to=$dest$2
	shift 2
	[ ! -e "$to/.new" ] || rm -rf "$to/.new" # left by a run that was killed
	mkdir -p "$to/.new"
	cp "$@" "$to/.new/"
	chmod "$mode" "$to/.new/"*
	mv -f "$to/.new/"* "$to/"
	rmdir "$to/.new"
}
text() {
	to=$dest$1
	shift
	[ -d "${to%/*}" ] || mkdir -p "${to%/*}"
	printf '%s\n' "$@" >"$to.new"
	mv -f "$to.new" "$to"
}

# The interop library is only used if the operator has enabled it.
put 644 "$libdir" "$from/lib/libcuda.so.1" "$from/lib/libnvidia-ml.so.1" "$from/lib/libbasalt-interop.so.1"
for lib in libcuda libnvidia-ml; do
	ln -sf "$lib.so.1" "$dest$libdir/$lib.so"
done
put 755 "$libdir" "$here/setup" "$here/report" "$here/kernel"
if [ "$variant" = musl ]; then
	text "$libdir/musl" "these libraries are musl's"
else
	text /etc/ld.so.conf.d/00-basalt.conf "$libdir"
fi
say "libcuda.so.1 and libnvidia-ml.so.1 in $libdir"

set -- "$agent" "$from/bin/nvidia-smi" "$here/bin/basalt-cuda-run" "$here/bin/basalt-clang"
[ ! -f "$from/bin/cuda-info" ] || set -- "$@" "$from/bin/cuda-info"
[ "$variant" = musl ] || set -- "$@" "$from/bin/basalt-container"
put 755 "$libdir/bin" "$@"
if [ "$variant" != musl ]; then
	for name in basalt-container-runtime nvidia-container-runtime nvidia-container-runtime-hook; do
		ln -sf basalt-container "$dest$libdir/bin/$name"
	done
fi

put 644 "$libdir/cudart" "$from"/lib/libcudart.so.*
put 644 /usr/include/basalt/cuda "$here"/include/cuda/*.h
put 644 "$libdir/cublas" "$from"/lib/cublas/libcublas*.so.*
set -- "$from"/demo/*
[ ! -f "$1" ] || put 755 /opt/basalt/demo "$@"
set -- "$here"/include/*.h
[ ! -f "$1" ] || put 644 /usr/include/basalt "$@"
say "demo programs in /opt/basalt/demo"

# Every user of the machine may use the vGPU, because the host isolates processes.
text /etc/udev/rules.d/70-basalt-vgpu.rules \
	'SUBSYSTEM=="drm", KERNEL=="renderD*", DRIVERS=="virtio_gpu", MODE="0666"' \
	'SUBSYSTEM=="drm", KERNEL=="renderD*", DRIVERS=="virtio-pci", MODE="0666"' \
	'SUBSYSTEM=="drm", KERNEL=="renderD*", RUN+="'$libdir'/bin/basalt-container cdi"'
text /etc/modules-load.d/basalt-vgpu.conf virtio_gpu

[ "$what" = --files ] || setup_machine
text /etc/basalt-guest-tools-version "$version"
[ -n "$dest" ] || [ "$what" = --files ] || setup_check
say "guest tools $version: files installed"
