#!/bin/sh
# Installs Basalt's guest tools from the disc labelled BASALT-TOOLS (or from any
# copy of its folder) into this machine: the CUDA driver library, NVML and
# nvidia-smi of the virtual GPU. Run as root. Running it again brings everything
# to this disc's version and changes nothing else.
#
# Basalt's libcudart comes beside a vendor's and is used where asked for: by
# basalt-cuda-run, by programs that basalt-clang linked, or for the whole machine:
#
# BASALT_CUDART=default install.sh   lets the loader find it before any other;
# BASALT_CUDART=beside install.sh    ends that. Without either it stays as it is.
#
# So do Basalt's libcublas and libcublasLt, with BASALT_CUBLAS and
# basalt-cuda-run --cublas.
#
# Containers: Podman finds the vGPU by a CDI specification, which udev renews, and
# Docker by two runtimes in /etc/docker/daemon.json, which the first run registers.
# BASALT_DOCKER=on install.sh registers them again, BASALT_DOCKER=off takes them out.
#
# DESTDIR=/mnt/root install.sh   installs into a mounted system: nothing is
#                                loaded or started then.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
dest=${DESTDIR:-}
read -r version <"$here/version"
libdir=/usr/lib/basalt

say() { echo "basalt-tools: $*"; }
die() { echo "basalt-tools: $*" >&2; exit 1; }

[ "$(id -u)" = 0 ] || die "run as root"
for choice in "BASALT_CUDART ${BASALT_CUDART:-}" "BASALT_CUBLAS ${BASALT_CUBLAS:-}"; do
	case ${choice#* } in
	'' | default | beside) ;;
	*) die "${choice% *} is ${choice#* }, want default or beside" ;;
	esac
done
case ${BASALT_DOCKER:-} in
'' | on | off) ;;
*) die "BASALT_DOCKER is $BASALT_DOCKER, want on or off" ;;
esac
docker=${BASALT_DOCKER:-}
[ -n "$docker" ] || [ -e "$dest/usr/local/bin/basalt-container" ] || docker=on
for f in lib/libcuda.so.1 lib/libnvidia-ml.so.1 bin/nvidia-smi bin/basalt-container lib/libcudart.so.12 lib/cublas/libcublas.so.12 lib/libbasalt-interop.so.1; do
	[ -f "$here/$f" ] || die "$here/$f is missing: is this the whole disc?"
done

# put MODE DIR FILE… puts the files into DIR, and text FILE LINE… writes one. They are
# replaced by renaming: a program that has the old file open goes on with it. Each
# program that runs here is felt in a machine that is emulated, so that they are few.
umask 022
put() {
	mode=$1 to=$dest$2
	shift 2
	[ ! -e "$to/.new" ] || rm -rf "$to/.new" # of a run that was killed
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

# The interop library is used where the operator has turned that on, and only there.
put 644 "$libdir" "$here/lib/libcuda.so.1" "$here/lib/libnvidia-ml.so.1" "$here/lib/libbasalt-interop.so.1"
for lib in libcuda libnvidia-ml; do
	ln -sf "$lib.so.1" "$dest$libdir/$lib.so"
done
text /etc/ld.so.conf.d/00-basalt.conf "$libdir"
say "libcuda.so.1 and libnvidia-ml.so.1 in $libdir"

set -- "$here/bin/nvidia-smi" "$here/bin/basalt-cuda-run" "$here/bin/basalt-clang" "$here/bin/basalt-container"
[ ! -f "$here/bin/cuda-info" ] || set -- "$@" "$here/bin/cuda-info"
put 755 /usr/local/bin "$@"
say "nvidia-smi in /usr/local/bin"
for name in basalt-container-runtime nvidia-container-runtime nvidia-container-runtime-hook; do
	ln -sf basalt-container "$dest/usr/local/bin/$name"
done

put 644 "$libdir/cudart" "$here"/lib/libcudart.so.*
put 644 /usr/include/basalt/cuda "$here"/include/cuda/*.h
put 644 "$libdir/cublas" "$here"/lib/cublas/libcublas*.so.*
# beside LIBRARY CHOICE FLAG: the loader finds a library by itself, or basalt-cuda-run FLAG.
beside() {
	conf=/etc/ld.so.conf.d/00-basalt-$1.conf
	case $2 in
	default) text "$conf" "$libdir/$1" ;;
	beside) rm -f "$dest$conf" ;;
	esac
	if [ -f "$dest$conf" ]; then
		say "lib$1 in $libdir/$1, the machine's default"
	else
		say "lib$1 in $libdir/$1, used by basalt-cuda-run$3 PROGRAM"
	fi
}
beside cudart "${BASALT_CUDART:-}" ""
beside cublas "${BASALT_CUBLAS:-}" " --cublas"

set -- "$here"/demo/*
[ ! -f "$1" ] || put 755 /opt/basalt/demo "$@"
set -- "$here"/include/*.h
[ ! -f "$1" ] || put 644 /usr/include/basalt "$@"
say "demo programs in /opt/basalt/demo"

# Every user of the machine may use the vGPU: the host keeps processes apart.
text /etc/udev/rules.d/70-basalt-vgpu.rules \
	'SUBSYSTEM=="drm", KERNEL=="renderD*", DRIVERS=="virtio_gpu", MODE="0666"' \
	'SUBSYSTEM=="drm", KERNEL=="renderD*", DRIVERS=="virtio-pci", MODE="0666"' \
	'SUBSYSTEM=="drm", KERNEL=="renderD*", RUN+="/usr/local/bin/basalt-container cdi"'
text /etc/modules-load.d/basalt-vgpu.conf virtio_gpu
say "every user may open the vGPU (udev rule); virtio_gpu is loaded at boot"

if [ -z "$dest" ]; then
	ldconfig
	modprobe virtio_gpu 2>/dev/null || say "note: this kernel has no virtio_gpu module (cloud kernels often lack it): install the ordinary kernel"
	if command -v udevadm >/dev/null && [ -S /run/udev/control ]; then
		udevadm control --reload || true
		udevadm trigger --subsystem-match=drm || true
		udevadm settle --timeout=10 || true
	else
		chmod 666 /dev/dri/renderD* 2>/dev/null || true
	fi
	# SELinux systems want their labels.
	! command -v restorecon >/dev/null || restorecon -R "$libdir" /opt/basalt /usr/local/bin/nvidia-smi 2>/dev/null || true
	/usr/local/bin/basalt-container cdi | sed 's/^/basalt-tools: /'
elif command -v ldconfig >/dev/null; then
	ldconfig -r "$dest" 2>/dev/null || true
fi

# What somebody else has decided there stays; an error is no reason to do without the rest.
if [ -n "$docker" ]; then
	"$here/bin/basalt-container" docker "$docker" --root "$dest/" --programs /usr/local/bin 2>&1 | sed 's/^/basalt-tools: /'
fi

text /etc/basalt-guest-tools-version "$version"
say "guest tools $version installed"
