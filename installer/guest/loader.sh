# The boot loader of the guest images. Sourced by build.sh and small/build.sh.

# write_loader WORK FIRST_MIB: creates a partition with the root file system in
# WORK/disk, starting there, and GRUB for a BIOS before it: boot.img in the code area of
# sector 0, core.img right behind it, where its own block list expects it.
write_loader() {
	local work=$1 first=$2 sectors
	sectors=$((first * 2048))
	sfdisk -q "$work/disk" <<-TABLE
		label: dos
		start=$sectors, type=83, bootable
	TABLE
	grub-mkimage -O i386-pc -o "$work/core.img" -p '(hd0,msdos1)/boot/grub' biosdisk part_msdos ext2 normal linux16 echo test
	[ "$(stat -c %s "$work/core.img")" -lt $(((sectors - 1) * 512)) ] || die "the boot loader does not fit before the partition"
	dd if=/usr/lib/grub/i386-pc/boot.img of="$work/disk" bs=440 count=1 conv=notrunc status=none
	dd if="$work/core.img" of="$work/disk" bs=512 seek=1 conv=notrunc status=none
}
