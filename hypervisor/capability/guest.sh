#!/bin/sh
# Assembles guest.S into guest.bin, the boot sector.
set -eu
cd "$(dirname "$0")"
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
as --32 -o "$t/o" guest.S
ld -m elf_i386 -Ttext 0x7c00 --oformat binary -o guest.bin "$t/o"
[ "$(wc -c <guest.bin)" = 512 ]
