#!/usr/bin/env bash
# Builds a small Debian guest image with standard Debian tools, without loop devices or
# mounts outside its own namespace: build/images/debian-guest.qcow2. It has the release
# of this machine, from this machine's own apt sources.
#
# Usage: build.sh [--force] as root. Does nothing if the image exists and none of its
# inputs has changed.
#
# The image contains the standard kernel flavor (the vGPU needs its virtio-gpu driver),
# cloud-init (NoCloud only), qemu-guest-agent, openssh-server, systemd-resolved, which
# writes the servers from DHCP and router advertisements to resolv.conf, and a console
# on ttyS0. It has no password: keys are set with cloud-init.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
images=${BASALT_BUILD:-$root/build}/images
out=$images/debian-guest.qcow2
stamp=$out.inputs

say() { printf 'guest image: %s\n' "$*"; }
die() { printf 'guest image: %s\n' "$*" >&2; exit 1; }

. "$here/loader.sh"
. /etc/os-release
[ "${ID:-}" = debian ] || die "this is ${PRETTY_NAME:-not Debian}"
suite=$VERSION_CODENAME
size_mib=2048   # of the disk, which is sparse; cloud-init grows it to its volume
first_mib=1     # the partition's start; the boot loader is before it

# The image's inputs, besides the current state of the archive.
inputs() { cat "$here/build.sh" "$here/loader.sh" "$here"/files/* "$root/installer/iso/files/udev-trigger.conf" "$root/hypervisor/cloudinit/basalt-guest-tools.service"; echo "$suite"; }
if [ "${1:-}" != --make ]; then
	want=$(inputs | sha256sum | cut -d' ' -f1)
	anew=()
	if [ "${1:-}" = --force ]; then
		anew=(--anew)
	elif [ -s "$out" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$want" ]; then
		exit 0
	fi
	"$root/installer/dev/cache.sh" "${anew[@]}" guest-image "$want" "$images" "$(basename "$out")" -- "$0" --make
	printf '%s\n' "$want" >"$stamp"
	say "$out: $(($(stat -c %s "$out") >> 20)) MiB"
	exit 0
fi

# --make DIR, called by cache.sh: builds the image in DIR.
work=$2
[ "$(id -u)" = 0 ] || die "run it as root (mmdebstrap unpacks a root file system)"
for tool in mmdebstrap mke2fs sfdisk grub-mkimage qemu-img; do
	command -v "$tool" >/dev/null || die "$tool is missing: run installer/dev/setup.sh"
done
began=$SECONDS

# This machine's sources of the release, its updates and its security fixes.
sources() {
	apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT) $(CODENAME)' 'Identifier: Packages' |
		awk -v s="$suite" '$3 == "main" && ($4 == s || $4 == s "-updates" || $4 == s "-security") {
			print "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] " $1 " " $2 " main" }' | sort -u
}
list=$(sources)
[ -n "$list" ] || die "no Debian $suite archive in this machine's apt sources"

packages=(
	linux-image-amd64 initramfs-tools zstd systemd-sysv systemd-resolved udev dbus libpam-systemd
	cloud-init cloud-guest-utils qemu-guest-agent openssh-server sudo
	iproute2 iputils-ping netbase kmod e2fsprogs procps less vim-tiny ca-certificates bash-completion
)
# Leave out documentation, translations, and drivers of devices that virtual machines do
# not have. They stay excluded when the guest upgrades a package.
excludes=('/usr/share/doc/*' '/usr/share/man/*' '/usr/share/locale/*' '/usr/share/info/*' '/usr/share/lintian/*')
for d in drivers/gpu/drm/{amd,i915,nouveau,radeon,xe,gma500,ast,mgag200,vmwgfx} drivers/net/wireless drivers/net/ethernet/{mellanox,broadcom,chelsio,qlogic,sfc,netronome,cavium} \
	drivers/media drivers/infiniband drivers/staging drivers/isdn drivers/bluetooth drivers/mtd drivers/iio drivers/comedi \
	drivers/input/{touchscreen,joystick} drivers/platform drivers/scsi/{lpfc,qla2xxx,bfa,aacraid,mpt3sas,megaraid} sound net/{bluetooth,wireless,mac80211,nfc,can}; do
	excludes+=("/lib/modules/*/kernel/$d/*" "/usr/lib/modules/*/kernel/$d/*")
done
options=()
for e in "${excludes[@]}"; do options+=("--dpkgopt=path-exclude=$e"); done
options+=(--dpkgopt='path-include=/usr/share/doc/*/copyright' --dpkgopt='path-include=/usr/share/locale/locale.alias')

say "unpacking Debian $suite; about a minute"
uuid=$(cat /proc/sys/kernel/random/uuid)
# In a mount namespace of its own: if /proc were mounted where other processes see it,
# it could not be unmounted while one of them (such as a search through the tree) uses
# it.
printf '%s\n' "$list" | unshare --mount --propagation private mmdebstrap --mode=auto --variant=minbase --format=directory "${options[@]}" \
	--aptopt='Acquire::Languages "none"' \
	--aptopt='APT::Install-Recommends "false"' \
	--include="$(IFS=,; echo "${packages[*]}")" \
	--essential-hook="mkdir -p \"\$1/etc/initramfs-tools/conf.d\"" \
	--essential-hook="copy-in $here/files/initramfs.conf /etc/initramfs-tools/conf.d" \
	--customize-hook="$here/files/customize \"\$1\" $uuid" \
	"$suite" "$work/root" - >"$work/log" 2>&1 || { tail -n 40 "$work/log" >&2; die "mmdebstrap failed"; }

say "making the file system"
mke2fs -q -t ext4 -F -L root -U "$uuid" -m 1 -O ^metadata_csum_seed,^orphan_file -E "offset=$((first_mib << 20)),lazy_itable_init=0" \
	-d "$work/root" "$work/disk" "$(((size_mib - first_mib - 1) * 1024))" 2>"$work/mke2fs" ||
	{ cat "$work/mke2fs" >&2; die "mke2fs failed"; }
truncate -s "${size_mib}M" "$work/disk"

say "writing the boot loader"
write_loader "$work" "$first_mib"

say "compressing"
qemu-img convert -q -c -O qcow2 -o compression_type=zstd "$work/disk" "$work/$(basename "$out")"
say "made in $((SECONDS - began)) s"
