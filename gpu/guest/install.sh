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
# DESTDIR=/mnt/root install.sh   installs into a mounted system: nothing is
#                                loaded or started then.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
dest=${DESTDIR:-}
version=$(cat "$here/version")
libdir=/usr/lib/basalt

say() { echo "basalt-tools: $*"; }
die() { echo "basalt-tools: $*" >&2; exit 1; }

[ "$(id -u)" = 0 ] || die "run as root"
case ${BASALT_CUDART:-} in
'' | default | beside) ;;
*) die "BASALT_CUDART is $BASALT_CUDART, want default or beside" ;;
esac
for f in lib/libcuda.so.1 lib/libnvidia-ml.so.1 bin/nvidia-smi lib/libcudart.so.12 lib/libbasalt-interop.so.1; do
	[ -f "$here/$f" ] || die "$here/$f is missing: is this the whole disc?"
done

# Replaced by renaming: a program that has the old file open goes on with it.
put() { # MODE FROM TO
	mkdir -p "$dest$(dirname "$3")"
	cp "$2" "$dest$3.new"
	chmod "$1" "$dest$3.new"
	mv -f "$dest$3.new" "$dest$3"
}
text() { # TO, content on stdin
	mkdir -p "$dest$(dirname "$1")"
	cat >"$dest$1.new"
	chmod 644 "$dest$1.new"
	mv -f "$dest$1.new" "$dest$1"
}

for lib in libcuda libnvidia-ml; do
	put 644 "$here/lib/$lib.so.1" "$libdir/$lib.so.1"
	ln -sf "$lib.so.1" "$dest$libdir/$lib.so"
done
echo "$libdir" | text /etc/ld.so.conf.d/00-basalt.conf
say "libcuda.so.1 and libnvidia-ml.so.1 in $libdir"

put 755 "$here/bin/nvidia-smi" /usr/local/bin/nvidia-smi
[ ! -f "$here/bin/cuda-info" ] || put 755 "$here/bin/cuda-info" /usr/local/bin/cuda-info
say "nvidia-smi in /usr/local/bin"

# Used where the operator has turned interop on, and only there.
put 644 "$here/lib/libbasalt-interop.so.1" "$libdir/libbasalt-interop.so.1"

for lib in "$here"/lib/libcudart.so.*; do
	put 644 "$lib" "$libdir/cudart/$(basename "$lib")"
done
for f in "$here"/include/cuda/*.h; do
	put 644 "$f" "/usr/include/basalt/cuda/$(basename "$f")"
done
put 755 "$here/bin/basalt-cuda-run" /usr/local/bin/basalt-cuda-run
put 755 "$here/bin/basalt-clang" /usr/local/bin/basalt-clang
case ${BASALT_CUDART:-} in
default) echo "$libdir/cudart" | text /etc/ld.so.conf.d/00-basalt-cudart.conf ;;
beside) rm -f "$dest/etc/ld.so.conf.d/00-basalt-cudart.conf" ;;
esac
if [ -f "$dest/etc/ld.so.conf.d/00-basalt-cudart.conf" ]; then
	say "libcudart in $libdir/cudart, the machine's default"
else
	say "libcudart in $libdir/cudart, used by basalt-cuda-run PROGRAM"
fi

for f in "$here"/demo/*; do
	[ -f "$f" ] || continue
	put 755 "$f" "/opt/basalt/demo/$(basename "$f")"
done
for f in "$here"/include/*.h; do
	[ -f "$f" ] || continue
	put 644 "$f" "/usr/include/basalt/$(basename "$f")"
done
say "demo programs in /opt/basalt/demo"

# Every user of the machine may use the vGPU: the host keeps processes apart.
text /etc/udev/rules.d/70-basalt-vgpu.rules <<'RULE'
SUBSYSTEM=="drm", KERNEL=="renderD*", DRIVERS=="virtio_gpu", MODE="0666"
SUBSYSTEM=="drm", KERNEL=="renderD*", DRIVERS=="virtio-pci", MODE="0666"
RULE
echo virtio_gpu | text /etc/modules-load.d/basalt-vgpu.conf
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
elif command -v ldconfig >/dev/null; then
	ldconfig -r "$dest" 2>/dev/null || true
fi

echo "$version" | text /etc/basalt-guest-tools-version
say "guest tools $version installed"
