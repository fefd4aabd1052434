//go:build linux && amd64

#include "textflag.h"

// func enter(code uintptr, context unsafe.Pointer) uint64
//
// The frame exists only for the assembler to save RBP in and to point it at, so that a
// profiler can follow frame pointers. Generated code uses the stack only for the return
// address.
TEXT ·enter(SB), NOSPLIT, $8-24
	MOVQ code+0(FP), AX
	MOVQ context+8(FP), DI
	CALL AX
	VZEROUPPER
	MOVQ AX, ret+16(FP)
	RET

// func fill32(to *uint32, n int, v uint32)
//
// n must be a multiple of 32.
TEXT ·fill32(SB), NOSPLIT, $0-20
	MOVQ to+0(FP), DI
	MOVQ n+8(FP), CX
	MOVL v+16(FP), AX
	VMOVD AX, X0
	VPBROADCASTD X0, Y0
more:
	VMOVDQU Y0, (DI)
	VMOVDQU Y0, 32(DI)
	VMOVDQU Y0, 64(DI)
	VMOVDQU Y0, 96(DI)
	ADDQ $128, DI
	SUBQ $32, CX
	JG more
	VZEROUPPER
	RET

// func cpuid(leaf, sub uint32) (a, b, c, d uint32)
TEXT ·cpuid(SB), NOSPLIT, $0-24
	MOVL leaf+0(FP), AX
	MOVL sub+4(FP), CX
	CPUID
	MOVL AX, a+8(FP)
	MOVL BX, b+12(FP)
	MOVL CX, c+16(FP)
	MOVL DX, d+20(FP)
	RET
