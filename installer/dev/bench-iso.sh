#!/usr/bin/env bash
# Measures the size of the installation medium and how long it takes to build, with the
# Debian part already unpacked, compared with compressing only that Debian part with the
# same options. Prints samples in the format of "go test -bench"; called by
# installer/dev/bench.sh. It removes what it creates.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${BASALT_BUILD:-$PWD/build}

[ "$(id -u)" = 0 ] || exec sudo -E "$0" "$@"

# Large builds run one at a time on this machine.
exec 7>"${TMPDIR:-/tmp}/basalt-qemu.lock" 9>"${TMPDIR:-/tmp}/basalt-vm.lock"
flock 7
flock 9
mkdir -p "$build/cache"
work=$(mktemp -d "$build/cache/.bench-XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
now() { date +%s%N; }
sample() { # sample NAME FROM TO, in nanoseconds
	awk -v n="$1" -v t=$(($3 - $2)) 'BEGIN { printf "Benchmark%s\t1\t%.3f s\n", n, t / 1e9 }'
}
size() { awk -v n="$1" -v b="$(cat "${@:2}" | wc -c)" 'BEGIN { printf "Benchmark%s\t1\t%.1f MiB\n", n, b / 1048576 }'; }

ln -s "$build/cache" "$build/deb" "$work/"
# Unpack Debian first, whose time depends on its mirror.
installer/iso/build.sh >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
mkdir "$work/made"
began=$(now)
BASALT_BUILD=$work installer/iso/build.sh --make "$work/made" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
sample ISOBuild "$began" "$(now)"
size ISOSize "$work/made/basalt.iso"

base=$(find "$build/cache/" -maxdepth 1 -name 'iso-*' -type d | head -n 1)
began=$(now)
# The same as in installer/iso/build.sh.
mksquashfs "$base" "$work/debian.squashfs" -comp zstd -Xcompression-level 9 -b 256K -noappend -no-progress -quiet \
	-wildcards -e 'proc/*' 'sys/*' 'run/*' 'tmp/*' >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
sample DebianBuild "$began" "$(now)"
size DebianSize "$work/debian.squashfs" "$base"/boot/vmlinuz-* "$base"/boot/initrd.img-*
