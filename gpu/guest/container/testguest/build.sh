#!/usr/bin/env bash
# Makes the guest for the tests of containers: a Debian with Podman and Docker in
# build/containerguest/SUITE (vmlinuz, initrd.img, root.qcow2), from this machine's own
# archive. It boots without a boot loader, mounts the disk labelled TEST at /test, runs
# /test/run.sh with its output on ttyS0, and powers off.
#
# Usage: build.sh [SUITE]   as root; SUITE is this machine's own release unless given.
# Does nothing when it is there and nothing that goes into it has changed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../../../.." && pwd)
files=$top/installer/guest/files

say() { printf 'container guest: %s\n' "$*"; }
die() { printf 'container guest: %s\n' "$*" >&2; exit 1; }

. /etc/os-release
if [ "${1:-}" != --make ]; then
	suite=${1:-$VERSION_CODENAME}
	out=${BASALT_BUILD:-$top/build}/containerguest/$suite
	mkdir -p "$out"
	exec 9>"$out/lock" # one builder at a time
	flock 9
	want=$({ cat "$here/build.sh" "$files"/initramfs*; echo "$suite"; } | sha256sum | cut -d' ' -f1)
	if [ "$(cat "$out/stamp" 2>/dev/null)" = "$want" ] && [ -s "$out/root.qcow2" ]; then exit 0; fi
	"$top/installer/dev/cache.sh" containerguest "$want" "$out" vmlinuz initrd.img root.qcow2 -- "$0" --make "$suite"
	printf '%s\n' "$want" >"$out/stamp"
	exit 0
fi

suite=$2 work=$3
[ "$(id -u)" = 0 ] || die "run it as root (mmdebstrap unpacks a root file system)"

# This machine's archive, with the release's security fixes from where its own come.
archive() { # a codename's ending
	apt-get indextargets --format '$(SITE) $(CODENAME) $(COMPONENT)' 'Identifier: Packages' |
		awk -v c="$VERSION_CODENAME$1" '$3 == "main" && $2 == c { print $1; exit }'
}
for ending in "" -updates -security; do
	site=$(archive "$ending")
	[ -z "$site" ] || echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $site $suite$ending main"
done >"$work/sources"
[ -s "$work/sources" ] || die "no Debian $VERSION_CODENAME archive in this machine's apt sources"

packages=(
	linux-image-amd64 initramfs-tools zstd systemd-sysv udev dbus libpam-systemd kmod procps iproute2
	podman crun uidmap slirp4netns fuse-overlayfs docker.io apparmor iptables busybox-static musl
)
[ "$suite" = bookworm ] || packages+=(docker-cli)
options=()
# Documentation, and drivers and file systems that this guest never has.
for e in '/usr/share/doc/*' '/usr/share/man/*' '/usr/share/locale/*' '/usr/share/info/*' \
	'/*lib/modules/*/kernel/drivers/'{net/wireless,net/ethernet,media,infiniband,staging,isdn,bluetooth,mtd,iio,comedi,scsi,input,usb,hid,hwmon,nvme,md,ata}/'*' \
	'/*lib/modules/*/kernel/drivers/gpu/drm/'{amd,i915,nouveau,radeon,xe,gma500,ast,mgag200,vmwgfx}/'*' \
	'/*lib/modules/*/kernel/sound/*' '/*lib/modules/*/kernel/fs/'{btrfs,xfs,ocfs2,gfs2,nfs,cifs,ceph,jfs,reiserfs,f2fs}/'*'; do
	options+=("--dpkgopt=path-exclude=$e")
done

mkdir -p "$work/hooks"
cat >"$work/hooks/customize" <<'HOOK'
#!/bin/sh
set -eu
root=$1 files=$2
cp "$files/initramfs-modules" "$root/etc/initramfs-tools/modules"
chroot "$root" update-initramfs -u
echo basalt-test >"$root/etc/hostname"
printf '127.0.0.1 localhost basalt-test\n' >"$root/etc/hosts"
echo '/dev/vda / ext4 defaults 0 1' >"$root/etc/fstab"
: >"$root/etc/machine-id"
chroot "$root" useradd -m -s /bin/bash tenant
cat >"$root/etc/systemd/system/basalt-test.service" <<'UNIT'
[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'mkdir -p /test && mount -o ro LABEL=TEST /test && exec /test/run.sh'
ExecStopPost=/bin/sh -c 'echo "testguest: exit $EXIT_STATUS"'
ExecStopPost=/bin/systemctl poweroff --no-block
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
TimeoutStartSec=infinity
[Install]
WantedBy=graphical.target
UNIT
chroot "$root" systemctl -q enable basalt-test.service
chroot "$root" systemctl -q set-default graphical.target
# No job at its own hour, nothing that waits for a network.
chroot "$root" systemctl -q mask apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer e2scrub_reap.service \
	systemd-networkd-wait-online.service getty@tty1.service serial-getty@ttyS0.service fstrim.timer podman-auto-update.timer
HOOK
chmod +x "$work/hooks/customize"

say "unpacking Debian $suite with Podman and Docker; minutes"
unshare --mount --propagation private mmdebstrap --mode=auto --variant=minbase --format=directory "${options[@]}" \
	--aptopt='Acquire::Languages "none"' --aptopt='APT::Install-Recommends "false"' \
	--include="$(IFS=,; echo "${packages[*]}")" \
	--essential-hook="mkdir -p \"\$1/etc/initramfs-tools/conf.d\"" \
	--essential-hook="copy-in $files/initramfs.conf /etc/initramfs-tools/conf.d" \
	--customize-hook="$work/hooks/customize \"\$1\" $files" \
	"$suite" "$work/root" "$work/sources" >"$work/log" 2>&1 || { tail -n 40 "$work/log" >&2; die "mmdebstrap failed"; }
cp "$work"/root/boot/vmlinuz-* "$work/vmlinuz"
cp "$work"/root/boot/initrd.img-* "$work/initrd.img"
rm -rf "$work"/root/boot/* "$work"/root/var/cache/apt/* "$work"/root/var/lib/apt/lists/*
mke2fs -q -t ext4 -F -L root -m 1 -O ^metadata_csum_seed,^orphan_file -E lazy_itable_init=0 -d "$work/root" "$work/disk" 4G
qemu-img convert -q -c -O qcow2 -o compression_type=zstd "$work/disk" "$work/root.qcow2"
rm -rf "$work/root" "$work/disk"
