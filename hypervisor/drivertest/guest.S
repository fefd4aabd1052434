# The smallest guest there is, in a boot sector: it says "ready", echoes what
# the serial console sends, switches off when the power button is pressed, and
# panics on '!'. go generate rebuilds guest.bin.
	.code16
	.globl _start
_start:
	cli
	xor	%ax, %ax
	mov	%ax, %ds
	mov	%ax, %ss
	mov	$0x7c00, %sp
	mov	$0xfe, %al		# the timer's interrupt only
	out	%al, $0x21
	mov	$0xff, %al
	out	%al, $0xa1
	mov	$0x602, %dx		# ACPI PM1_EN of q35 under SeaBIOS:
	mov	$0x100, %ax		# PWRBTN_EN (ACPI 6.5, table 4.13)
	out	%ax, %dx
	mov	$message, %si
1:	lodsb
	test	%al, %al
	jz	wait
	call	putc
	jmp	1b

wait:	mov	$0x600, %dx		# PM1_STS: PWRBTN_STS?
	in	%dx, %ax
	test	$1, %ah
	jnz	off
	mov	$0x3fd, %dx		# 16550 LSR: data ready?
	in	%dx, %al
	test	$1, %al
	jz	idle
	mov	$0x3f8, %dx
	in	%dx, %al
	cmp	$'!', %al
	je	panic
	call	putc
	jmp	wait
idle:	sti
	hlt				# until the next tick, 55 ms at most
	cli
	jmp	wait

putc:	mov	%al, %ah
1:	mov	$0x3fd, %dx		# LSR: room in the transmitter?
	in	%dx, %al
	test	$0x20, %al
	jz	1b
	mov	%ah, %al
	mov	$0x3f8, %dx
	out	%al, %dx
	ret

off:	mov	$0x604, %dx		# PM1_CNT: SLP_EN, type of S5
	mov	$0x2000, %ax
	out	%ax, %dx
1:	hlt
	jmp	1b

panic:	mov	$0x505, %dx		# pvpanic: the guest has panicked
	mov	$1, %al
	out	%al, %dx
1:	hlt
	jmp	1b

message: .asciz "ready\r\n"
	.org	510
	.byte	0x55, 0xaa
