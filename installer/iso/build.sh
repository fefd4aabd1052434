#!/usr/bin/env bash
# Builds the installation medium: build/basalt.iso, with its SHA-256 and a list of its
# contents in separate files. As root.
#
# There are two stages. The Debian part (base.sh) is kept unpacked in build/cache; it is
# built again when packages*.txt or a file here changes, or with --fresh (for Debian's
# newest updates). Basalt's own packages are then installed on top, which takes seconds,
# and everything is compressed. Both results are also stored outside build/
# (installer/dev/cache.sh): the same packages give the same medium.
#
# Content of the medium:
#   /live/filesystem.squashfs   the root file system: the live system, and what
#                               the installer copies to the disk
#   /live/filesystem.size       its bytes when unpacked, for the progress bar
#   /live/vmlinuz, initrd.img   copies of its kernel and initramfs
#   /boot/grub                  loader for BIOS and UEFI
#   /packages                   a signed repository (repository.sh) for nodes that are
#                               there already: Basalt's packages, and what builds the
#                               modules of NVIDIA's driver (packages-gpu.txt); with
#                               SINCE=FILE, the basalt.iso.contents of another medium,
#                               also Debian's that are not on that one, or in another
#                               version
#
# BASALT_RELEASE_KEY is the path of the signing key, which is generated if it does not
# exist.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
build=${BASALT_BUILD:-$top/build}
cache=$build/cache
iso=$build/basalt.iso

began=$SECONDS
say() { printf 'iso: %3d s  %s\n' $((SECONDS - began)) "$*"; }
die() { printf 'iso: %s\n' "$*" >&2; exit 1; }
mib() { echo $(($(stat -c %s "$1") >> 20)) MiB; }

[ "$(id -u)" = 0 ] || die "run it as root (a root file system is unpacked and mounted)"
for tool in mmdebstrap mksquashfs grub-mkrescue xorriso mformat gpg dpkg-scanpackages; do
	command -v "$tool" >/dev/null || die "$tool is missing: run installer/dev/setup.sh"
done
for platform in i386-pc x86_64-efi; do
	[ -d "/usr/lib/grub/$platform" ] || die "GRUB for $platform is missing: run installer/dev/setup.sh"
done
debs=("$build"/deb/*.deb)
[ -f "${debs[0]}" ] || die "no packages in $build/deb: run make deb"

export NONFREE=${NONFREE:-yes} # no: without packages of Debian's non-free-firmware
hash=$({ echo "$NONFREE"; cat "$here/base.sh" "$here"/packages*.txt "$here"/files/*; } | sha256sum | cut -c1-16)
base=$cache/iso-$hash

export BASALT_RELEASE_KEY=${BASALT_RELEASE_KEY:-${XDG_CONFIG_HOME:-${HOME:?no BASALT_RELEASE_KEY, and no HOME to keep it in}/.config}/basalt/release-key.asc}
[ -z "${SINCE:-}" ] || [ -r "$SINCE" ] || die "SINCE=$SINCE: there is no such file"

# --make-base DIR and --make DIR are called by cache.sh and create their output in DIR.
if [ "${1:-}" = --make-base ]; then
	say "unpacking Debian: two to three minutes, kept for the next time"
	"$here/base.sh" "$2/iso-$hash" >"$cache/iso.log" 2>&1 || { tail -n 40 "$cache/iso.log" >&2; die "the base failed; all of its output: $cache/iso.log"; }
	exit
fi
if [ "${1:-}" != --make ]; then
	mkdir -p "$cache"
	exec 9>"$cache/.iso-lock"
	flock 9
	anew=()
	[ "${1:-}" != --fresh ] || anew=(--anew)
	if [ -n "${anew[*]}" ] || [ ! -d "$base" ] || [ ! -d "$base.packages" ]; then
		rm -rf --one-file-system "$cache"/iso-*
		"$top/installer/dev/cache.sh" "${anew[@]}" iso-base "$hash" "$cache" "iso-$hash.packages" "iso-$hash" -- "$0" --make-base
	fi
	"$here/repository.sh" "$BASALT_RELEASE_KEY" ''
	# The medium's inputs.
	want=$({
		cat "$base/var/lib/dpkg/status" "$here/build.sh" "$here/repository.sh" "$here/grub.cfg" "$BASALT_RELEASE_KEY.pub" "${debs[@]}" ${SINCE:+"$SINCE"}
		(cd "$base.packages" && sha256sum -- *.deb)
		dpkg-query -W squashfs-tools grub-common grub-pc-bin grub-efi-amd64-bin xorriso mtools
	} | sha256sum | cut -d' ' -f1)
	if [ -n "${anew[*]}" ] || [ ! -s "$iso" ] || [ "$(cat "$iso.inputs" 2>/dev/null)" != "$want" ]; then
		rm -f "$iso.inputs"
		"$top/installer/dev/cache.sh" "${anew[@]}" iso "$want" "$build" basalt.iso{.sha256,.contents,} -- "$0" --make
		echo "$want" >"$iso.inputs"
	fi
	say "$iso: $(mib "$iso"), $(($(wc -l <"$iso.contents") - 4)) packages"
	exit
fi

say "Debian: $(du -sxm "$base" | cut -f1) MiB unpacked"

# --- Basalt, on top of it. The cached part is only read: an overlay contains the
# changes.
made=$2
work=$made/work
mkdir -p "$work"/{root,upper,overlay,iso/live,iso/boot/grub,debs}
cp "${debs[@]}" "$work/debs/"

# In a mount namespace of its own: nothing remains mounted, however it ends.
export here base work
unshare --mount --propagation private bash -euo pipefail <<'INSIDE' || die "the root file system could not be made"
if ! mount -t overlay overlay -o "lowerdir=$base,upperdir=$work/upper,workdir=$work/overlay" "$work/root" 2>/dev/null; then
	echo "iso: no overlay file system here: copying"
	cp -a "$base/." "$work/root/"
fi
root=$work/root
mkdir "$root/tmp/debs"
mount --bind "$work/debs" "$root/tmp/debs"
mount -t proc proc "$root/proc"
DEBIAN_FRONTEND=noninteractive chroot "$root" sh -c 'dpkg -i /tmp/debs/*.deb' >"$work/dpkg.log" 2>&1 || { cat "$work/dpkg.log" >&2; exit 1; }
install -D -m 644 "$BASALT_RELEASE_KEY.pub" "$root/etc/apt/keyrings/basalt.gpg"
# The first screen of a node shows Basalt's console.
chroot "$root" systemctl -q enable basalt-console.service
chroot "$root" systemctl -q disable getty@tty1.service
umount "$root/proc" "$root/tmp/debs"
rmdir "$root/tmp/debs"
rm -f "$root"/var/log/dpkg.log "$root"/var/log/alternatives.log "$root"/var/lib/dpkg/*-old "$root"/var/cache/debconf/*-old
# Caches and users are up to date: boots do not generate them again
# (systemd-update-done(8)).
touch -r "$root/usr" "$root/etc/.updated" "$root/var/.updated"
chroot "$root" dpkg-query -W -f '${Package}\t${Version}\t${Installed-Size}\n' >"$work/packages"
du -sxB1 "$root" | cut -f1 >"$work/iso/live/filesystem.size"
cp "$root"/boot/vmlinuz-* "$work/iso/live/vmlinuz"
cp "$root"/boot/initrd.img-* "$work/iso/live/initrd.img"
echo "iso: compressing"
# Level 9 takes a sixth of the time of level 15, and 5 % more space.
mksquashfs "$root" "$work/iso/live/filesystem.squashfs" -comp zstd -Xcompression-level 9 -b 256K -noappend -no-progress -quiet \
	-wildcards -e 'proc/*' 'sys/*' 'run/*' 'tmp/*' 2>&1 | grep -v 'Unrecognised xattr prefix system' || true
INSIDE
[ -s "$work/iso/live/filesystem.squashfs" ] || die "mksquashfs made nothing"
say "root file system: $(mib "$work/iso/live/filesystem.squashfs")"

# --- packages for existing nodes
# Debian's packages that SINCE does not contain: from the archive of the base, with its
# signatures.
if [ -n "${SINCE:-}" ]; then
	mkdir -p "$work"/apt/{lists,archives}/partial
	apt=(-qq -o Dir::Etc::SourceList="$base/etc/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State="$work/apt" -o Dir::State::Lists="$work/apt/lists"
		-o Dir::State::status="$base/var/lib/dpkg/status" -o Dir::Cache="$work/apt" -o APT::Sandbox::User=root -o APT::Architecture=amd64)
	apt-get "${apt[@]}" update || die "the archive that the base came from does not answer"
	comm -13 <(cut -f1,2 "$SINCE" | sort) <(cut -f1,2 "$work/packages" | grep -v '^basalt' | sort) | tr '\t' = >"$work/changed"
	(cd "$work/debs" && xargs -r -a "$work/changed" apt-get "${apt[@]}" download) || die "the archive has other versions by now: make iso FRESH=1"
	say "$(wc -l <"$work/changed") packages of Debian since $SINCE"
fi
rm -f "$work"/debs/basalt-installer_*.deb
cp "$base.packages"/*.deb "$work/debs/"
say "packages that build NVIDIA's modules: $(du -sm "$base.packages" | cut -f1) MiB"
SOURCE_DATE_EPOCH=$(stat -c %Y "${debs[0]}") "$here/repository.sh" "$BASALT_RELEASE_KEY" "$work/iso/packages" "$work"/debs/*.deb
say "packages: $(du -sm "$work/iso/packages" | cut -f1) MiB"

# --- the medium
cp "$here/grub.cfg" "$work/iso/boot/grub/"
grub-mkrescue -o "$made/basalt.iso" --locales= --fonts= --themes= "$work/iso" -- -volid BASALT >"$work/mkrescue.log" 2>&1 ||
	{ cat "$work/mkrescue.log" >&2; die "grub-mkrescue failed"; }
{
	echo "# build/basalt.iso: $(stat -c %s "$made/basalt.iso") bytes"
	echo "# root file system, kernel, initramfs: $(stat -c %s "$work"/iso/live/{filesystem.squashfs,vmlinuz,initrd.img} | xargs) bytes"
	echo "# for nodes that are there already: $(du -sb "$work/iso/packages" | cut -f1) bytes in $(find "$work/iso/packages" -name '*.deb' | wc -l) packages"
	echo "# package, version, installed size in KiB"
	cat "$work/packages"
} >"$made/basalt.iso.contents"
(cd "$made" && sha256sum basalt.iso >basalt.iso.sha256)
say "the medium is made"
