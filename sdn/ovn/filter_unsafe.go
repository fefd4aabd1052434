package ovn

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// OVN passes every router advertisement before it evaluates any ACL, so a
// guest could announce itself as a router to its neighbors. The tap of the
// neighbor drops it: a program in the kernel (TUNSETFILTEREBPF) filters what
// goes to the guest, whichever datapath it comes from and whichever process
// has the tap open. Port security ensures that the sender's MAC is its own, so
// only frames from the MAC of one of Basalt's routers are accepted as a
// router's.
//
// Extension headers before ICMPv6 could hide an advertisement (RFC 7113);
// packets between guests with any of them except a fragment header are dropped
// (hosts drop fragmented advertisements themselves, RFC 6980).

// instruction is an eBPF instruction (Linux,
// bpf/standardization/instruction-set.rst).
type instruction struct {
	code byte
	regs byte // destination low, source high
	off  int16
	imm  int32
}

// Opcodes of the filter.
const (
	opMove    = 0xb7 // r = imm
	opMoveReg = 0xbf
	opByte    = 0x30 // r0 = packet[imm]; beyond the packet: return 0
	opHalf    = 0x28
	opEqual   = 0x15
	opNot     = 0x55
	opExit    = 0x95
)

// routerFilter returns the filter program, which returns 0 (drop) or how many
// bytes of the frame to keep.
func routerFilter() []instruction {
	const accept, drop = 13, 15
	at := func(i int, code byte, imm int32, to int) instruction {
		return instruction{code: code, imm: imm, off: int16(to - i - 1)}
	}
	return []instruction{
		0:  {code: opMoveReg, regs: 1<<4 | 6}, // r6 = context, for opByte and opHalf
		1:  {code: opHalf, imm: 12},
		2:  at(2, opNot, 0x86dd, accept),
		3:  {code: opByte, imm: 6}, // the sender's MAC
		4:  at(4, opEqual, routerMACs, accept),
		5:  {code: opByte, imm: 14 + 6}, // next header
		6:  at(6, opEqual, 0, drop),     // hop by hop
		7:  at(7, opEqual, 43, drop),    // routing
		8:  at(8, opEqual, 60, drop),    // destination
		9:  at(9, opNot, 58, accept),
		10: {code: opByte, imm: 14 + 40}, // ICMPv6's type
		11: at(11, opEqual, 134, drop),
		12: at(12, opEqual, 137, drop),
		13: {code: opMove, imm: 1 << 18},
		14: {code: opExit},
		15: {code: opMove, imm: 0},
		16: {code: opExit},
	}
}

// load is the part of union bpf_attr in linux/bpf.h for BPF_PROG_LOAD.
type load struct {
	kind, count          uint32
	instructions         unsafe.Pointer
	license              unsafe.Pointer
	logLevel, logSize    uint32
	log                  uint64
	kernelVersion, flags uint32
}

// setFilter attaches the filter to the tap that is open as fd. It remains when
// the tap is closed.
func setFilter(fd int) error {
	program := routerFilter()
	license := []byte("Apache-2.0\x00")
	attr := load{kind: unix.BPF_PROG_TYPE_SOCKET_FILTER, count: uint32(len(program)), instructions: unsafe.Pointer(&program[0]), license: unsafe.Pointer(&license[0])}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&program[0])
	pin.Pin(&license[0])
	prog, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno != 0 {
		return fmt.Errorf("BPF_PROG_LOAD: %w", errno)
	}
	defer unix.Close(int(prog))
	if err := unix.IoctlSetPointerInt(fd, unix.TUNSETFILTEREBPF, int(prog)); err != nil {
		return fmt.Errorf("TUNSETFILTEREBPF: %w", err)
	}
	return nil
}
