#!/usr/bin/env bash
# Creates a Debian 13 root in $BASALT_BUILD/vendor/root with NVIDIA's compiler and
# samples from Debian's non-free section, pycuda, numba and PyTorch, unless it exists.
# The non-free parts are under NVIDIA's license, which you must read: none of them
# leaves that folder.
set -euo pipefail
root=$BASALT_BUILD/vendor/root
complete=$root/.complete-3 # incremented when its content changes
[ ! -e "$complete" ] || exit 0
# The archive that this machine's own packages come from.
mirror=$(apt-get indextargets --format '$(SITE) $(COMPONENT) $(RELEASE)' 'Identifier: Packages' 'Origin: Debian' |
	awk '$2 == "main" && $3 !~ /security|backports/ { print $1; exit }')
[ -n "$mirror" ] || { echo "vendor: no Debian archive in this machine's apt sources" >&2; exit 1; }
[ "$(id -u)" = 0 ] || { echo "vendor: not root, which mounting and chroot need: run it as root" >&2; exit 1; }
rm -rf "$root"
mkdir -p "$(dirname "$root")"
free=$(df --output=avail -BG "$(dirname "$root")" | tail -n 1 | tr -dc 0-9)
[ "$free" -ge 18 ] || { echo "vendor: $free GB are free in $(dirname "$root"), want 18 (the root is 10, what is built in it and downloaded the rest)" >&2; exit 1; }
echo "vendor: making a Debian 13 root with nvidia-cuda-toolkit, nvidia-cuda-samples, pycuda, numba and PyTorch of contrib and non-free (10 GB, of which 4 are downloaded; some minutes) in $root" >&2
# Dependencies that must not be installed: Basalt's libcuda is the driver library, and
# nvidia-cudnn would download cuDNN (torch.sh has a replacement).
package=$(mktemp -d)
trap 'rm -rf "$package"' EXIT
mkdir -p "$package/tree/DEBIAN"
cat >"$package/tree/DEBIAN/control" <<'EOF'
Package: basalt-vendor
Version: 1
Architecture: amd64
Maintainer: Basalt
Provides: libcuda.so.1 (= 550), libcuda1 (= 550), nvidia-cudnn (= 9.0.0.312~cuda12)
Description: in place of NVIDIA's driver library and cuDNN
EOF
dpkg-deb --build --root-owner-group "$package/tree" "$package/basalt-vendor.deb" >/dev/null
# In a mount namespace of its own: see installer/guest/build.sh.
unshare --mount --propagation private mmdebstrap --variant=minbase --components=main,contrib,non-free \
	--aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Retries "3"' \
	--dpkgopt=force-unsafe-io \
	--essential-hook="copy-in $package/basalt-vendor.deb /" \
	--essential-hook='chroot "$1" dpkg --install /basalt-vendor.deb >/dev/null' \
	--include=ca-certificates,g++,make,libopenmpi-dev,nvidia-cuda-toolkit,nvidia-cuda-samples,python3-numba,python3-pycuda,python3-torch-cuda \
	trixie "$root" "$mirror"
# Where numba looks for libcudadevrt, and then for everything else too.
mkdir -p "$root/usr/local/cuda/nvvm"
ln -s /usr/lib/nvidia-cuda-toolkit/libdevice "$root/usr/local/cuda/nvvm/libdevice"
ln -s /usr/lib/x86_64-linux-gnu "$root/usr/local/cuda/nvvm/lib64"
ln -s /usr/lib/x86_64-linux-gnu "$root/usr/local/cuda/lib64"
touch "$complete"
