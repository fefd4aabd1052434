# A minimal guest in a boot sector: it prints "ready", echoes the input of the
# serial console, switches off when the power button is pressed, and panics on
# '!'. It prints "+" for each device that is plugged in, and ejects each that
# it is asked to, except between '<' and '>'. '~' reboots it. go generate
# rebuilds guest.bin.
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
	cmp	$'~', %al
	je	reboot
	cmp	$'<', %al
	jne	1f
	movb	$1, holds
1:	cmp	$'>', %al
	jne	1f
	movb	$0, holds
1:	call	putc
	jmp	wait

idle:	xor	%ecx, %ecx		# ACPI PCI hotplug of q35, one set of registers for each bus
bus:	mov	$0xcd0, %dx		# (QEMU docs/specs/acpi_pci_hotplug.rst): the bus
	mov	%ecx, %eax
	out	%eax, %dx
	mov	$0xcc0, %dx		# plugged in since the last check?
	in	%dx, %eax
	test	%eax, %eax
	jz	1f
	mov	$'+', %al
	call	putc
1:	cmpb	$0, holds
	jne	next
	mov	$0xcc4, %dx		# requested to be ejected?
	in	%dx, %eax
	test	%eax, %eax
	jz	next
	mov	$0xcc8, %dx		# eject
	out	%eax, %dx
next:	inc	%cx
	cmp	$32, %cx
	jb	bus
	sti
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

reboot:	call	putc
	mov	$0xcf9, %dx		# the chipset's reset register
	mov	$6, %al
	out	%al, %dx
1:	hlt
	jmp	1b

holds:	.byte	0
message: .asciz "ready\r\n"
	.org	510
	.byte	0x55, 0xaa
