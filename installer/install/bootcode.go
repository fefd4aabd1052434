package install

// unfinished returns what a BIOS runs from a disk with an unfinished installation: it
// prints a message and returns to the BIOS, which tries the next device. Without it the
// BIOS would run zeros, since the partition table's protective MBR looks bootable. The
// boot loader replaces it at the end.
//
// It is 16-bit code, loaded at 0x7c00, of at most 440 bytes, since the partition table
// follows.
func unfinished() string {
	code := []byte{
		0x31, 0xc0, // xor  ax, ax
		0x8e, 0xd8, // mov  ds, ax
		0xfc,             // cld
		0xbe, 0x1a, 0x7c, // mov  si, message
		0xac,       // next: lodsb
		0x84, 0xc0, // test al, al
		0x74, 0x09, // jz   end
		0xb4, 0x0e, // mov  ah, 0x0e
		0xbb, 0x07, 0x00, // mov  bx, 7
		0xcd, 0x10, // int  0x10: write a character
		0xeb, 0xf2, // jmp  next
		0xcd, 0x18, // end: int 0x18: this disk does not start
		0xeb, 0xfe, // jmp  $
	}
	return string(code) + "\r\nBasalt: the installation on this disk has not ended. Install again.\r\n\x00"
}
