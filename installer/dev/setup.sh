#!/usr/bin/env bash
# Installs what building and testing Basalt needs on Debian 12 or 13, and reports it.
# Idempotent: a second run finds everything installed and takes no time.
#
# Usage: setup.sh [packages]
set -euo pipefail

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }

. /etc/os-release
[ "${ID:-}" = debian ] || die "this is ${PRETTY_NAME:-not Debian}; Basalt is built on Debian 12 or 13"
case "${VERSION_ID:-}" in
12 | 13) ;;
*) die "this is Debian ${VERSION_ID:-(no version)}; Basalt is built on Debian 12 or 13" ;;
esac

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else
		command -v sudo >/dev/null || die "not root and no sudo: run as root, or install sudo"
		sudo "$@"
	fi
}

# From the distribution itself.
base="gcc ccache libc6-dev pkg-config clang-19 libclang-rt-19-dev llvm-19 mmdebstrap e2fsprogs fdisk grub-pc-bin grub-common
	cpio busybox-static xorriso kmod procps iproute2 iputils-ping xz-utils ca-certificates curl libxml2-utils nftables dnsmasq-base strace debian-archive-keyring zstd
	binutils squashfs-tools mtools dosfstools gdisk grub-efi-amd64-bin ovmf swtpm swtpm-tools openssh-client openssh-server
	ceph-mon ceph-mgr ceph-osd ceph-common ovn-central ovn-host openvswitch-switch fio restic xfsprogs cryptsetup-bin vde2 attr runc apparmor
	rpm musl-tools gcc-aarch64-linux-gnu libc6-dev-arm64-cross
	chromium chromium-headless-shell python3-aiosmtpd python3-pysaml2 jupyter-notebook python3-ipykernel xmlsec1 dovecot-imapd php-cli php-curl php-mbstring php-xml phpunit smarty4"
# GCC's offloading to nvptx, for the tests of gpu/guest/offload. If it is installed,
# -fopenmp and -fopenacc compile for it too (-foffload=disable).
case "$VERSION_ID" in
12) base="$base gcc-12-offload-nvptx" ;;
13) base="$base gcc-14-offload-nvptx" ;;
esac
# QEMU 7.2 of Debian 12 refuses a vhost-user-gpu device without KVM, and needs memory
# for every page of a process's address window, so it is installed from the backports
# suite there.
virt="qemu-system-x86 qemu-user qemu-utils qemu-block-extra qemu-guest-agent libvirt-daemon-system libvirt-clients libvirt-dev"

# One query for all packages: dpkg-query reads its whole database each time.
missing() {
	local have
	have=$(dpkg-query -W -f '${db:Status-Abbrev}\t${Package}\n' "$@" 2>/dev/null | awk '$1 == "ii" { print $2 }' || true)
	comm -23 <(printf '%s\n' "$@" | sort -u) <(sort -u <<<"$have") | tr '\n' ' '
}

# The address the machine's own apt uses for its main archive.
mirror() {
	apt-get indextargets --format '$(SITE)/ $(RELEASE) $(COMPONENT)' 'Identifier: Packages' |
		awk -v s="$VERSION_CODENAME" '$2 == s && $3 == "main" { sub("/$", "", $1); print $1; exit }'
}

backports() {
	apt-cache policy 2>/dev/null | grep "n=$VERSION_CODENAME-backports" >/dev/null && return
	local url
	url=$(mirror)
	[ -n "$url" ] || die "no Debian archive in this machine's apt sources: add one, then run again"
	say "adding the $VERSION_CODENAME-backports suite of this machine's Debian archive"
	printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s-backports main\n' \
		"$url" "$VERSION_CODENAME" | as_root tee /etc/apt/sources.list.d/basalt-backports.list >/dev/null
	as_root apt-get update -qq || true
}

packages() {
	local want_base want_virt p suite=()
	want_base=$(missing $base)
	want_virt=$(missing $virt)
	if [ "$VERSION_ID" = 12 ] && [ -z "$want_virt" ]; then
		# Installed, but possibly from the wrong suite.
		for p in qemu-system-x86 qemu-user; do
			dpkg --compare-versions "$(dpkg-query -W -f '${Version}' "$p")" ge 1:8 || want_virt=$virt
		done
	fi
	[ -n "$want_base$want_virt" ] || return 0
	export DEBIAN_FRONTEND=noninteractive
	as_root apt-get update -qq || say "apt-get update had errors; going on with the lists there are"
	if [ -n "$want_base" ]; then
		say "installing $want_base"
		case " $want_base " in
		*" openssh-server "*) # for tests, which start their own; Debian's unit is not started then
			as_root mkdir -p /etc/ssh
			as_root touch /etc/ssh/sshd_not_to_be_run ;;
		esac
		case " $want_base " in
		*" dovecot-imapd "*) # the same: its units would listen on all addresses
			as_root mkdir -p /etc/systemd/system
			as_root ln -sf /dev/null /etc/systemd/system/dovecot.service
			as_root ln -sf /dev/null /etc/systemd/system/dovecot.socket ;;
		esac
		as_root apt-get install -y -qq --no-install-recommends $want_base >/dev/null
	fi
	if [ -n "$want_virt" ]; then
		if [ "$VERSION_ID" = 12 ]; then
			backports
			suite=(-t "$VERSION_CODENAME-backports")
		fi
		say "installing $want_virt"
		as_root apt-get install -y -qq --no-install-recommends "${suite[@]}" $want_virt >/dev/null
	fi
}

# A module of its own, so that ./... does not descend into build outputs: an image that
# is being built contains a /proc.
out=${BASALT_BUILD:-$PWD/build}
mkdir -p "$out"
[ -e "$out/go.mod" ] || echo "module build // not of basalt: see installer/dev/setup.sh" >"$out/go.mod"

command -v go >/dev/null || die "no go command: install Go 1.25 or newer and put it on PATH"
packages
