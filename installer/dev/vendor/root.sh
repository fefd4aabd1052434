#!/usr/bin/env bash
# Makes a Debian 13 root in $BASALT_BUILD/vendor/root with NVIDIA's compiler and
# samples from Debian's non-free section, unless it is there. They are under
# NVIDIA's licence, which is yours to read: nothing of them leaves that folder.
set -euo pipefail
root=$BASALT_BUILD/vendor/root
[ ! -e "$root/.complete" ] || exit 0
# From where this machine has its own packages.
mirror=$(apt-get indextargets --format '$(SITE) $(COMPONENT) $(RELEASE)' 'Identifier: Packages' 'Origin: Debian' |
	awk '$2 == "main" && $3 !~ /security|backports/ { print $1; exit }')
[ -n "$mirror" ] || { echo "vendor: no Debian archive in this machine's apt sources" >&2; exit 1; }
echo "vendor: a Debian 13 root with nvidia-cuda-toolkit and nvidia-cuda-samples of contrib and non-free (6 GB) in $root" >&2
rm -rf "$root"
mkdir -p "$(dirname "$root")"
# In a mount namespace of its own: see installer/guest/build.sh.
unshare --mount --propagation private mmdebstrap --quiet --variant=minbase --components=main,contrib,non-free \
	--aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Retries "3"' \
	--include=ca-certificates,g++,make,nvidia-cuda-toolkit,nvidia-cuda-samples \
	trixie "$root" "$mirror"
touch "$root/.complete"
