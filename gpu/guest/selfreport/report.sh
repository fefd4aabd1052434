#!/bin/sh
# Reports whether this machine has what a vGPU needs, for its host and for install.sh: it prints
# a line "basalt-report 1" and lines KEY=VALUE, which selfreport.go parses. It changes nothing.
# If the driver is bound it starts no program, because each is slow in an emulated machine.
#
# BASALT_ROOT=/mnt/root    examines a mounted system
# BASALT_RELEASE=VERSION    examines another kernel than the running one
root=${BASALT_ROOT:-}

# first FILE: sets "value" to the file's first line, or to an empty value.
first() {
	value=
	[ ! -r "$root$1" ] || IFS= read -r value <"$root$1" || :
}

echo "basalt-report 1"
first /etc/basalt-guest-tools-version
echo "tools=$value"
first /run/basalt/check
echo "check=$value"
first /run/basalt/kernel
echo "kernelchange=$value"
kernel=${BASALT_RELEASE:-}
if [ -z "$kernel" ]; then
	first /proc/sys/kernel/osrelease
	kernel=$value
fi
echo "kernel=$kernel"

driver=none
for d in "$root"/sys/bus/virtio/drivers/virtio_gpu/virtio*; do
	[ ! -e "$d" ] || driver=bound
done
echo "driver=$driver"
[ "$driver" = none ] || exit 0

# The reasons why no driver is bound. Without a vGPU none is needed.
device=none
for d in "$root"/sys/bus/pci/devices/*; do
	[ -r "$d/vendor" ] && [ -r "$d/device" ] || continue
	read -r vendor <"$d/vendor"
	read -r number <"$d/device"
	[ "$vendor $number" != "0x1af4 0x1050" ] || device=vgpu # virtio 1.2, 4.1.2.1 and 5.7.1
done
echo "device=$device"
first /proc/cmdline
cmdline=" $value "
modeset=on blocked=no
case $cmdline in *" virtio_gpu.modeset=1 "* | *" virtio-gpu.modeset=1 "*) ;; *" nomodeset "* | *" virtio_gpu.modeset=0 "* | *" virtio-gpu.modeset=0 "*) modeset=off ;; esac
case $cmdline in *[._]blacklist=*virtio[_-]gpu*) blocked=cmdline ;; esac
for d in /etc/modprobe.d /run/modprobe.d /usr/local/lib/modprobe.d /usr/lib/modprobe.d /lib/modprobe.d; do
	for f in "$root$d"/*.conf; do
		[ "$blocked" = no ] && [ -r "$f" ] || continue
		! grep -Eqs '^[[:space:]]*(blacklist[[:space:]]+virtio[_-]gpu([[:space:]]|$)|install[[:space:]]+virtio[_-]gpu[[:space:]]+([^[:space:]]*/)?(true|false)([[:space:]]|$))' "$f" || blocked=$f
	done
done
echo "modeset=$modeset"
echo "blocked=${blocked#"$root"}"

# option NAME: sets "value" to y, m or n, or to an empty value if the kernel's configuration
# cannot be read.
option() {
	value=
	for f in "/boot/config-$kernel" "/lib/modules/$kernel/config" "/usr/lib/modules/$kernel/config"; do
		[ -r "$root$f" ] || continue
		value=$(sed -n "s/^CONFIG_$1=\([ym]\)\$/\1/p" "$root$f")
		value=${value:-n}
		return
	done
	if [ -r "$root/proc/config.gz" ] && [ -z "${BASALT_RELEASE:-}" ] && command -v zcat >/dev/null; then
		value=$(zcat "$root/proc/config.gz" | sed -n "s/^CONFIG_$1=\([ym]\)\$/\1/p")
		value=${value:-n}
	fi
}
option DRM
echo "drm=$value"
option DRM_VIRTIO_GPU
echo "virtiogpu=$value"

module=
for d in "/lib/modules/$kernel" "/usr/lib/modules/$kernel"; do
	[ -r "$root$d/modules.dep" ] || continue
	if grep -qs '/virtio-gpu\.ko' "$root$d/modules.dep"; then module=present
	elif grep -qs '/virtio-gpu\.ko' "$root$d/modules.builtin"; then module=builtin
	else module=missing; fi
	break
done
[ ! -e "$root/sys/module/virtio_gpu" ] || module=loaded
echo "module=$module"
