#!/usr/bin/env bash
# Unpacks the Debian part of the ISO: base.sh DIR. DIR.packages gets packages that the ISO
# carries without installing them (packages-gpu.txt). Called only by build.sh, when a list
# of packages or a file here has changed.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
out=$1
suite=trixie
keys=/usr/share/keyrings/debian-archive-keyring.gpg

# The archive of this machine's own apt; on Debian 12, its Debian 13 suite is used.
sites=$(apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' 'Identifier: Packages' |
	awk '$3 == "main" && $2 ~ /^(bookworm|trixie)(-security)?$/ { print ($2 ~ /-security/ ? "security" : "main"), $1 }' | sort -u)
main=$(awk '$1 == "main" { print $2; exit }' <<<"$sites")
security=$(awk '$1 == "security" { print $2; exit }' <<<"$sites")
[ -n "$main" ] || { echo "iso: no Debian archive in this machine's apt sources" >&2; exit 1; }
lists=("$here/packages.txt")
components=main
if [ "${NONFREE:-yes}" != no ]; then
	lists+=("$here/packages-nonfree.txt")
	components+=' non-free-firmware'
fi
sources() {
	printf "deb [signed-by=%s] %s %s $components\n" "$keys" "$main" "$suite" "$keys" "$main" "$suite-updates"
	[ -z "$security" ] || printf "deb [signed-by=%s] %s %s $components\n" "$keys" "$security" "$suite-security"
}

# Leave out documentation, translations, and drivers of devices that servers do not
# have. They stay excluded when a node upgrades a package.
excludes=('/usr/share/doc/*' '/usr/share/man/*' '/usr/share/locale/*' '/usr/share/info/*' '/usr/share/lintian/*' '/usr/share/bug/*')
for d in drivers/gpu/drm/{amd,i915,nouveau,radeon,xe,gma500,vmwgfx,vboxvideo} drivers/net/wireless drivers/media drivers/staging \
	drivers/bluetooth drivers/iio drivers/comedi drivers/input/{touchscreen,joystick,tablet} drivers/nfc drivers/leds sound \
	net/{bluetooth,wireless,mac80211,nfc,can}; do
	excludes+=("/lib/modules/*/kernel/$d/*" "/usr/lib/modules/*/kernel/$d/*")
done
# Programs that nodes never run: emulators of other architectures, Ceph's file system
# and object gateway, GRUB images that are not signed here.
excludes+=(/usr/bin/qemu-system-{i386,x86_64-microvm} /usr/bin/{radosgw-admin,cephfs-{data-scan,journal-tool,table-tool}} '/usr/lib/grub/*/monolithic/*')
options=()
for e in "${excludes[@]}"; do options+=("--dpkgopt=path-exclude=$e"); done
options+=(--dpkgopt='path-include=/usr/share/doc/*/copyright' --dpkgopt='path-include=/usr/share/locale/locale.alias')

packages=$(sed 's/#.*//' "${lists[@]}" | xargs | tr ' ' ,)
carried=$(sed 's/#.*//' "$here/packages-gpu.txt" | xargs)
# In a mount namespace of its own: see installer/guest/build.sh.
sources | unshare --mount --propagation private mmdebstrap --mode=auto --variant=minbase --format=directory "${options[@]}" \
	--aptopt='Acquire::Languages "none"' \
	--aptopt='APT::Install-Recommends "false"' \
	--include="$packages" \
	--essential-hook='mkdir -p "$1/etc/initramfs-tools/conf.d" "$1/etc/initramfs-tools/hooks" "$1/etc/mdadm"' \
	--essential-hook="copy-in $here/files/initramfs.conf /etc/initramfs-tools/conf.d" \
	--essential-hook="copy-in $here/files/initramfs-hook /etc/initramfs-tools/hooks" \
	--essential-hook="copy-in $here/files/amd64-microcode /etc/default" \
	--essential-hook="copy-in $here/files/mdadm.conf /etc/mdadm" \
	--essential-hook='echo force-confold >"$1/etc/dpkg/dpkg.cfg.d/basalt-keep"' \
	--customize-hook='rm "$1/etc/dpkg/dpkg.cfg.d/basalt-keep"' \
	--customize-hook="$here/files/gpu-packages \"\$1\" '$out.packages' $carried" \
	--customize-hook="$here/files/customize \"\$1\"" \
	"$suite" "$out" -
