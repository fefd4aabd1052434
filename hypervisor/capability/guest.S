# Reports its execution through QEMU's debug-exit device, after a switch to
# protected mode with paging: a broken hypervisor fails there rather than in
# real mode. go generate rebuilds guest.bin.
	.code16
	.globl _start
_start:
	cli
	xor	%ax, %ax
	mov	%ax, %ds
	lgdtl	gdtr
	mov	%cr0, %eax
	or	$1, %al
	mov	%eax, %cr0
	ljmp	$8, $protected
	.code32
protected:
	mov	$16, %ax
	mov	%ax, %ds
	mov	%ax, %es
	mov	$0x10000, %edi		# page directory: 4 MiB pages, identity
	mov	$0x83, %eax		# present, writable, large (Intel SDM 3A 4.3)
	mov	$1024, %ecx
1:	mov	%eax, (%edi)
	add	$0x400000, %eax
	add	$4, %edi
	loop	1b
	mov	$0x10000, %eax
	mov	%eax, %cr3
	mov	%cr4, %eax
	or	$0x10, %al		# PSE
	mov	%eax, %cr4
	mov	%cr0, %eax
	or	$0x80000000, %eax	# PG
	mov	%eax, %cr0
	mov	$0x2a, %al
	out	%al, $0xf4
1:	hlt
	jmp	1b
	.align	8
gdt:	.quad	0, 0x00cf9a000000ffff, 0x00cf92000000ffff
gdtr:	.word	. - gdt - 1
	.long	gdt
	.org	510
	.byte	0x55, 0xaa
