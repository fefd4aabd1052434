//go:build linux && amd64

package amd64

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// Available reports whether this processor and the kernel support the instructions of
// this package. (cpu.X86 has AVX2 only if the kernel saves the registers.) Every
// processor with AVX2 also has LZCNT, which came with BMI1, and F16C, but each has a
// bit of its own.
func Available() bool {
	x := &cpu.X86
	if !x.HasAVX2 || !x.HasFMA || !x.HasBMI1 || !x.HasBMI2 || !x.HasPOPCNT {
		return false
	}
	const f16c, lzcnt = 1 << 29, 1 << 5
	_, _, c, _ := cpuid(1, 0)
	_, _, extended, _ := cpuid(0x80000001, 0)
	return c&f16c != 0 && extended&lzcnt != 0
}

// cpuid executes the instruction CPUID (enter_amd64.s).
func cpuid(leaf, sub uint32) (a, b, c, d uint32)

// Fill32 sets all words of d, whose number must be a positive multiple of 32. It
// requires Available.
func Fill32(d []uint32, v uint32) { fill32(&d[0], len(d)&^31, v) }

// fill32 is in enter_amd64.s.
//
//go:noescape
func fill32(to *uint32, n int, v uint32)

// enter calls code with the context's address in RDI (enter_amd64.s). The context
// escapes to the heap, as it must not be on a goroutine's stack, which moves.
func enter(code uintptr, context unsafe.Pointer) uint64
