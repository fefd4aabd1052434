#!/bin/sh
# Replaces a kernel that has no driver for the vGPU by one that has: kernels for clouds are
# often built without DRM. It installs the distribution's ordinary kernel, and reboots the
# machine once. If it is needed, install.sh starts it as basalt-vgpu-kernel.service when the
# network is up. Run as root.
#
# kernel --plan    prints what it would do, and does nothing
#
# To prevent it, create the file /etc/basalt/keep-kernel, boot with basalt.kernel=keep, or run
# install.sh with BASALT_KERNEL=keep, which creates that file.
#
# It writes its state to /run/basalt/kernel, for report: installing, reboot, off or failed. It
# records a reboot in /var/lib/basalt/kernel-changed, so that a kernel without the driver cannot
# cause a second reboot.
set -eu

root=${BASALT_ROOT:-}
here=$(cd "$(dirname "$0")" && pwd)
say() { echo "basalt-tools: $*"; }
state() {
	mkdir -p "$root/run/basalt"
	echo "$1" >"$root/run/basalt/kernel.new"
	mv -f "$root/run/basalt/kernel.new" "$root/run/basalt/kernel"
}
fail() {
	state failed
	echo "basalt-tools: $*" >&2
	exit 1
}
first() {
	value=
	[ ! -r "$root$1" ] || IFS= read -r value <"$root$1" || :
}

# Check that there is a vGPU, and that the kernel has no driver for it.
drm= virtiogpu= module= driver= kernel= device=
report=$(BASALT_ROOT=$root sh "$here/report")
for line in $report; do
	case $line in drm=* | virtiogpu=* | module=* | driver=* | kernel=* | device=*) eval "${line%%=*}=\${line#*=}" ;; esac
done
lacks=no
if [ "$drm" = n ] || [ "$virtiogpu" = n ]; then lacks=kernel
elif [ "$module" = missing ]; then lacks=module; fi
if [ "$driver" = bound ] || [ "$lacks" = no ] || [ "$device" != vgpu ]; then
	say "the kernel $kernel stays: there is nothing to replace it for"
	rm -f "$root/run/basalt/kernel"
	exit 0
fi
first /proc/cmdline
case " $value " in *" basalt.kernel=keep "*) keep=yes ;; *) keep=no ;; esac
if [ "$keep" = yes ] || [ -e "$root/etc/basalt/keep-kernel" ]; then
	say "the kernel $kernel has no driver for the vGPU, and is kept, as was asked: the vGPU cannot be used"
	state off
	exit 0
fi
first /var/lib/basalt/kernel-changed
if [ "$value" = "$kernel" ]; then
	fail "the machine was rebooted for another kernel than $kernel, which runs again: choose another in its boot loader"
fi

# The commands depend on the distribution (os-release(5)).
ID= ID_LIKE=
[ ! -r "$root/etc/os-release" ] || . "$root/etc/os-release"
flavour=none
for id in $ID $ID_LIKE; do
	case $id in
	debian | ubuntu | fedora | rhel | centos | almalinux | rocky | suse | opensuse*) flavour=$id; break ;;
	esac
done
arch=$(uname -m)
case $arch in x86_64) deb=amd64 ;; aarch64) deb=arm64 ;; *) deb=$arch ;; esac
reboot=yes remove=
case $flavour in
debian)
	install="apt-get -o DPkg::Lock::Timeout=600 install -y --no-install-recommends linux-image-$deb"
	# Boot loaders prefer the "cloud" kernel to the ordinary kernel of the same version.
	remove="linux-image-cloud-$deb linux-image-$kernel" ;;
ubuntu)
	install="apt-get -o DPkg::Lock::Timeout=600 install -y --no-install-recommends linux-image-generic"
	[ "$lacks" != module ] || { install="apt-get -o DPkg::Lock::Timeout=600 install -y --no-install-recommends linux-modules-extra-$kernel" reboot=no; } ;;
fedora | rhel | centos | almalinux | rocky)
	install="dnf install -y kernel-modules-$kernel" reboot=no
	[ "$lacks" != kernel ] || { install="dnf install -y kernel" reboot=yes; } ;;
suse | opensuse*)
	install="zypper --non-interactive install --force-resolution kernel-default" ;;
*) fail "the kernel $kernel has no driver for the vGPU, and it is not known how ${ID:-this distribution} installs another" ;;
esac
if [ "${1:-}" = --plan ]; then
	say "$install${remove:+, then remove $remove}, reboot: $reboot"
	exit 0
fi

say "the kernel $kernel has no driver for the vGPU: $install (to keep it, write /etc/basalt/keep-kernel)"
state installing
export DEBIAN_FRONTEND=noninteractive
case $install in apt-get*) apt-get update || fail "apt-get update failed" ;; esac
$install || fail "$install failed: the vGPU cannot be used until a kernel with virtio_gpu is installed"
if [ "$reboot" = no ]; then
	modprobe virtio_gpu || fail "the module virtio_gpu is installed and cannot be loaded"
	rm -f "$root/run/basalt/kernel"
	say "the module virtio_gpu is loaded"
	exit 0
fi

# Only reboot and remove the old kernel if a kernel with the driver is installed.
better=
for f in "$root"/lib/modules/*/modules.dep "$root"/usr/lib/modules/*/modules.dep; do
	[ -r "$f" ] && grep -qs '/virtio-gpu\.ko' "$f" "${f%.dep}.builtin" || continue
	better=${f%/modules.dep}
	better=${better##*/}
done
[ -n "$better" ] || fail "$install left no kernel with the module virtio_gpu"
if [ -n "$remove" ]; then
	for p in $remove; do
		! dpkg-query -W "$p" >/dev/null 2>&1 || apt-get -o DPkg::Lock::Timeout=600 remove -y "$p" || fail "the package $p cannot be removed, so the kernel $kernel would boot again"
	done
elif [ "$flavour" = ubuntu ] && [ -d "$root/etc/default/grub.d" ]; then
	echo 'GRUB_FLAVOUR_ORDER="generic"' >"$root/etc/default/grub.d/99-basalt-vgpu.cfg"
	update-grub || fail "update-grub failed"
fi
mkdir -p "$root/var/lib/basalt"
echo "$kernel" >"$root/var/lib/basalt/kernel-changed"
sync
state reboot
say "the kernel $better has a driver for the vGPU: the machine reboots now, once"
systemctl reboot
