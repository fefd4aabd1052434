package amd64

// Vector instructions, by shape. Each accepts vectors of 128 and 256 bits, except where
// a row names one of the two.

// three defines an instruction of the most frequent shape: a register, a register, and
// a register or memory.
func three(name string, op byte, pp prefix, mp opmap, w width) *Inst {
	return define(name, vex(op, pp, mp, w, reg(vec), vvvv(vec), rm(vec, full)))
}

// two defines an instruction with one source.
func two(name string, op byte, pp prefix, mp opmap, w width) *Inst {
	return define(name, vex(op, pp, mp, w, reg(vec), rm(vec, full)))
}

// twoImm defines an instruction with one source and an immediate byte.
func twoImm(name string, op byte, pp prefix, mp opmap, w width) *Inst {
	return define(name, vex(op, pp, mp, w, reg(vec), rm(vec, full), imm(imm8)))
}

// threeImm defines an instruction with two sources and an immediate byte.
func threeImm(name string, op byte, pp prefix, mp opmap, w width) *Inst {
	return define(name, vex(op, pp, mp, w, reg(vec), vvvv(vec), rm(vec, full), imm(imm8)))
}

// movement defines an instruction that loads with one opcode and stores with another.
func movement(name string, load, store byte, pp prefix) *Inst {
	return define(name,
		vex(load, pp, m0F, w0, reg(vec), rm(vec, full)),
		vex(store, pp, m0F, w0, only(full), reg(vec)))
}

// shiftVector defines a shift of all lanes by the low 64 bits of a register, or by an
// immediate byte.
func shiftVector(name string, op, immOp byte, n uint8) *Inst {
	return define(name,
		vex(op, p66, m0F, w0, reg(vec), vvvv(vec), rm(xmm, 16)),
		vex(immOp, p66, m0F, w0, vvvv(vec), rm(vec, noMem), imm(imm8)).digit(n))
}

// widen defines an instruction that reads a part of a register.
func widen(name string, op byte, pp prefix, mp opmap, m memory) *Inst {
	return define(name, vex(op, pp, mp, w0, reg(vec), rm(xmm, m)))
}

// blend defines an instruction that selects by the top bits of a fourth register's
// lanes.
func blend(name string, op byte) *Inst {
	return define(name, vex(op, p66, m0F3A, w0, reg(vec), vvvv(vec), rm(vec, full), slot{inIs4, vec, noMem}))
}

// maskMove defines an instruction that loads or stores the lanes whose top bit of the
// mask is set.
func maskMove(name string, load, store byte, w width) *Inst {
	return define(name,
		vex(load, p66, m0F38, w, reg(vec), vvvv(vec), only(full)),
		vex(store, p66, m0F38, w, only(full), vvvv(vec), reg(vec)))
}

// The moves. The aligned ones fault on misaligned memory.
var (
	VMOVDQU = movement("vmovdqu", 0x6f, 0x7f, pF3)
	VMOVDQA = movement("vmovdqa", 0x6f, 0x7f, p66)
	VMOVUPS = movement("vmovups", 0x10, 0x11, pNone)
	VMOVUPD = movement("vmovupd", 0x10, 0x11, p66)
	VMOVAPS = movement("vmovaps", 0x28, 0x29, pNone)
	VMOVAPD = movement("vmovapd", 0x28, 0x29, p66)
	VMOVD   = define("vmovd",
		vex(0x6e, p66, m0F, w0, reg(xmm), rm(r32, 4)),
		vex(0x7e, p66, m0F, w0, rm(r32, 4), reg(xmm)))
	VMOVQ = define("vmovq",
		vex(0x6e, p66, m0F, w1, reg(xmm), rm(r64, 8)),
		vex(0x7e, p66, m0F, w1, rm(r64, 8), reg(xmm)))

	VPMASKMOVD = maskMove("vpmaskmovd", 0x8c, 0x8e, w0)
	VPMASKMOVQ = maskMove("vpmaskmovq", 0x8c, 0x8e, w1)
)

// Integers.
var (
	VPADDB = three("vpaddb", 0xfc, p66, m0F, w0)
	VPADDW = three("vpaddw", 0xfd, p66, m0F, w0)
	VPADDD = three("vpaddd", 0xfe, p66, m0F, w0)
	VPADDQ = three("vpaddq", 0xd4, p66, m0F, w0)
	VPSUBB = three("vpsubb", 0xf8, p66, m0F, w0)
	VPSUBW = three("vpsubw", 0xf9, p66, m0F, w0)
	VPSUBD = three("vpsubd", 0xfa, p66, m0F, w0)
	VPSUBQ = three("vpsubq", 0xfb, p66, m0F, w0)

	VPMULLW  = three("vpmullw", 0xd5, p66, m0F, w0)
	VPMULHW  = three("vpmulhw", 0xe5, p66, m0F, w0)
	VPMULHUW = three("vpmulhuw", 0xe4, p66, m0F, w0)
	VPMULLD  = three("vpmulld", 0x40, p66, m0F38, w0)
	VPMULUDQ = three("vpmuludq", 0xf4, p66, m0F, w0)
	VPMULDQ  = three("vpmuldq", 0x28, p66, m0F38, w0)

	VPAND  = three("vpand", 0xdb, p66, m0F, w0)
	VPANDN = three("vpandn", 0xdf, p66, m0F, w0)
	VPOR   = three("vpor", 0xeb, p66, m0F, w0)
	VPXOR  = three("vpxor", 0xef, p66, m0F, w0)

	VPSRLW  = shiftVector("vpsrlw", 0xd1, 0x71, 2)
	VPSRLD  = shiftVector("vpsrld", 0xd2, 0x72, 2)
	VPSRLQ  = shiftVector("vpsrlq", 0xd3, 0x73, 2)
	VPSRAW  = shiftVector("vpsraw", 0xe1, 0x71, 4)
	VPSRAD  = shiftVector("vpsrad", 0xe2, 0x72, 4)
	VPSLLW  = shiftVector("vpsllw", 0xf1, 0x71, 6)
	VPSLLD  = shiftVector("vpslld", 0xf2, 0x72, 6)
	VPSLLQ  = shiftVector("vpsllq", 0xf3, 0x73, 6)
	VPSRLDQ = define("vpsrldq", vex(0x73, p66, m0F, w0, vvvv(vec), rm(vec, noMem), imm(imm8)).digit(3))
	VPSLLDQ = define("vpslldq", vex(0x73, p66, m0F, w0, vvvv(vec), rm(vec, noMem), imm(imm8)).digit(7))
	VPSLLVD = three("vpsllvd", 0x47, p66, m0F38, w0)
	VPSLLVQ = three("vpsllvq", 0x47, p66, m0F38, w1)
	VPSRLVD = three("vpsrlvd", 0x45, p66, m0F38, w0)
	VPSRLVQ = three("vpsrlvq", 0x45, p66, m0F38, w1)
	VPSRAVD = three("vpsravd", 0x46, p66, m0F38, w0)

	VPCMPEQB = three("vpcmpeqb", 0x74, p66, m0F, w0)
	VPCMPEQW = three("vpcmpeqw", 0x75, p66, m0F, w0)
	VPCMPEQD = three("vpcmpeqd", 0x76, p66, m0F, w0)
	VPCMPEQQ = three("vpcmpeqq", 0x29, p66, m0F38, w0)
	VPCMPGTB = three("vpcmpgtb", 0x64, p66, m0F, w0)
	VPCMPGTW = three("vpcmpgtw", 0x65, p66, m0F, w0)
	VPCMPGTD = three("vpcmpgtd", 0x66, p66, m0F, w0)
	VPCMPGTQ = three("vpcmpgtq", 0x37, p66, m0F38, w0)

	VPMINUB = three("vpminub", 0xda, p66, m0F, w0)
	VPMINUW = three("vpminuw", 0x3a, p66, m0F38, w0)
	VPMINUD = three("vpminud", 0x3b, p66, m0F38, w0)
	VPMINSB = three("vpminsb", 0x38, p66, m0F38, w0)
	VPMINSW = three("vpminsw", 0xea, p66, m0F, w0)
	VPMINSD = three("vpminsd", 0x39, p66, m0F38, w0)
	VPMAXUB = three("vpmaxub", 0xde, p66, m0F, w0)
	VPMAXUW = three("vpmaxuw", 0x3e, p66, m0F38, w0)
	VPMAXUD = three("vpmaxud", 0x3f, p66, m0F38, w0)
	VPMAXSB = three("vpmaxsb", 0x3c, p66, m0F38, w0)
	VPMAXSW = three("vpmaxsw", 0xee, p66, m0F, w0)
	VPMAXSD = three("vpmaxsd", 0x3d, p66, m0F38, w0)
	VPABSB  = two("vpabsb", 0x1c, p66, m0F38, w0)
	VPABSW  = two("vpabsw", 0x1d, p66, m0F38, w0)
	VPABSD  = two("vpabsd", 0x1e, p66, m0F38, w0)
	VPTEST  = two("vptest", 0x17, p66, m0F38, w0)
)

// Permutations of lanes. Those of 256 bits that are not named for a permutation work in
// each half separately.
var (
	VPSHUFB    = three("vpshufb", 0x00, p66, m0F38, w0)
	VPSHUFD    = twoImm("vpshufd", 0x70, p66, m0F, w0)
	VPSHUFLW   = twoImm("vpshuflw", 0x70, pF2, m0F, w0)
	VPSHUFHW   = twoImm("vpshufhw", 0x70, pF3, m0F, w0)
	VSHUFPS    = threeImm("vshufps", 0xc6, pNone, m0F, w0)
	VSHUFPD    = threeImm("vshufpd", 0xc6, p66, m0F, w0)
	VPALIGNR   = threeImm("vpalignr", 0x0f, p66, m0F3A, w0)
	VPUNPCKLBW = three("vpunpcklbw", 0x60, p66, m0F, w0)
	VPUNPCKLWD = three("vpunpcklwd", 0x61, p66, m0F, w0)
	VPUNPCKLDQ = three("vpunpckldq", 0x62, p66, m0F, w0)
	VPUNPCKHBW = three("vpunpckhbw", 0x68, p66, m0F, w0)
	VPUNPCKHWD = three("vpunpckhwd", 0x69, p66, m0F, w0)
	VPUNPCKHDQ = three("vpunpckhdq", 0x6a, p66, m0F, w0)
	// VPUNPCKLQDQ and VPUNPCKHQDQ have lanes of 64 bits.
	VPUNPCKLQDQ = three("vpunpcklqdq", 0x6c, p66, m0F, w0)
	VPUNPCKHQDQ = three("vpunpckhqdq", 0x6d, p66, m0F, w0)
	VPACKSSWB   = three("vpacksswb", 0x63, p66, m0F, w0)
	VPACKUSWB   = three("vpackuswb", 0x67, p66, m0F, w0)
	VPACKSSDW   = three("vpackssdw", 0x6b, p66, m0F, w0)
	VPACKUSDW   = three("vpackusdw", 0x2b, p66, m0F38, w0)

	VPERMD     = define("vpermd", vex(0x36, p66, m0F38, w0, reg(ymm), vvvv(ymm), rm(ymm, full)))
	VPERMQ     = define("vpermq", vex(0x00, p66, m0F3A, w1, reg(ymm), rm(ymm, full), imm(imm8)))
	VPERM2I128 = define("vperm2i128", vex(0x46, p66, m0F3A, w0, reg(ymm), vvvv(ymm), rm(ymm, full), imm(imm8)))

	VEXTRACTI128 = define("vextracti128", vex(0x39, p66, m0F3A, w0, rm(xmm, 16), reg(ymm), imm(imm8)))
	VINSERTI128  = define("vinserti128", vex(0x38, p66, m0F3A, w0, reg(ymm), vvvv(ymm), rm(xmm, 16), imm(imm8)))
	VPEXTRD      = define("vpextrd", vex(0x16, p66, m0F3A, w0, rm(r32, 4), reg(xmm), imm(imm8)))
	VPEXTRQ      = define("vpextrq", vex(0x16, p66, m0F3A, w1, rm(r64, 8), reg(xmm), imm(imm8)))
	VPINSRD      = define("vpinsrd", vex(0x22, p66, m0F3A, w0, reg(xmm), vvvv(xmm), rm(r32, 4), imm(imm8)))
	VPINSRQ      = define("vpinsrq", vex(0x22, p66, m0F3A, w1, reg(xmm), vvvv(xmm), rm(r64, 8), imm(imm8)))

	VPBROADCASTB   = widen("vpbroadcastb", 0x78, p66, m0F38, 1)
	VPBROADCASTW   = widen("vpbroadcastw", 0x79, p66, m0F38, 2)
	VPBROADCASTD   = widen("vpbroadcastd", 0x58, p66, m0F38, 4)
	VPBROADCASTQ   = widen("vpbroadcastq", 0x59, p66, m0F38, 8)
	VBROADCASTI128 = define("vbroadcasti128", vex(0x5a, p66, m0F38, w0, reg(ymm), only(16)))

	VPMOVSXBW = widen("vpmovsxbw", 0x20, p66, m0F38, half)
	VPMOVSXBD = widen("vpmovsxbd", 0x21, p66, m0F38, quarter)
	VPMOVSXBQ = widen("vpmovsxbq", 0x22, p66, m0F38, eighth)
	VPMOVSXWD = widen("vpmovsxwd", 0x23, p66, m0F38, half)
	VPMOVSXWQ = widen("vpmovsxwq", 0x24, p66, m0F38, quarter)
	VPMOVSXDQ = widen("vpmovsxdq", 0x25, p66, m0F38, half)
	VPMOVZXBW = widen("vpmovzxbw", 0x30, p66, m0F38, half)
	VPMOVZXBD = widen("vpmovzxbd", 0x31, p66, m0F38, quarter)
	VPMOVZXBQ = widen("vpmovzxbq", 0x32, p66, m0F38, eighth)
	VPMOVZXWD = widen("vpmovzxwd", 0x33, p66, m0F38, half)
	VPMOVZXWQ = widen("vpmovzxwq", 0x34, p66, m0F38, quarter)
	VPMOVZXDQ = widen("vpmovzxdq", 0x35, p66, m0F38, half)

	VPBLENDVB = blend("vpblendvb", 0x4c)
	VBLENDVPS = blend("vblendvps", 0x4a)
	VBLENDVPD = blend("vblendvpd", 0x4b)
	VPBLENDD  = threeImm("vpblendd", 0x02, p66, m0F3A, w0)

	// The gathers read the lanes whose top bit of the mask, the last operand, is set, and
	// clear it. The three registers must differ.
	VPGATHERDD = define("vpgatherdd", vex(0x90, p66, m0F38, w0, reg(ymm), only(gatherY), vvvv(ymm)))
	VPGATHERDQ = define("vpgatherdq", vex(0x90, p66, m0F38, w1, reg(ymm), only(gatherX), vvvv(ymm)))
	VPGATHERQD = define("vpgatherqd", vex(0x91, p66, m0F38, w0, reg(xmm), only(gatherY), vvvv(xmm)))
	VPGATHERQQ = define("vpgatherqq", vex(0x91, p66, m0F38, w1, reg(ymm), only(gatherY), vvvv(ymm)))

	VPMOVMSKB = define("vpmovmskb", vex(0xd7, p66, m0F, w0, reg(r32), rm(vec, noMem)))
	VMOVMSKPS = define("vmovmskps", vex(0x50, pNone, m0F, w0, reg(r32), rm(vec, noMem)))
	VMOVMSKPD = define("vmovmskpd", vex(0x50, p66, m0F, w0, reg(r32), rm(vec, noMem)))
)

// Floating point.
var (
	VADDPS  = three("vaddps", 0x58, pNone, m0F, w0)
	VADDPD  = three("vaddpd", 0x58, p66, m0F, w0)
	VSUBPS  = three("vsubps", 0x5c, pNone, m0F, w0)
	VSUBPD  = three("vsubpd", 0x5c, p66, m0F, w0)
	VMULPS  = three("vmulps", 0x59, pNone, m0F, w0)
	VMULPD  = three("vmulpd", 0x59, p66, m0F, w0)
	VDIVPS  = three("vdivps", 0x5e, pNone, m0F, w0)
	VDIVPD  = three("vdivpd", 0x5e, p66, m0F, w0)
	VMINPS  = three("vminps", 0x5d, pNone, m0F, w0)
	VMINPD  = three("vminpd", 0x5d, p66, m0F, w0)
	VMAXPS  = three("vmaxps", 0x5f, pNone, m0F, w0)
	VMAXPD  = three("vmaxpd", 0x5f, p66, m0F, w0)
	VSQRTPS = two("vsqrtps", 0x51, pNone, m0F, w0)
	VSQRTPD = two("vsqrtpd", 0x51, p66, m0F, w0)
	VANDPS  = three("vandps", 0x54, pNone, m0F, w0)
	VANDPD  = three("vandpd", 0x54, p66, m0F, w0)
	VANDNPS = three("vandnps", 0x55, pNone, m0F, w0)
	VANDNPD = three("vandnpd", 0x55, p66, m0F, w0)
	VORPS   = three("vorps", 0x56, pNone, m0F, w0)
	VORPD   = three("vorpd", 0x56, p66, m0F, w0)
	VXORPS  = three("vxorps", 0x57, pNone, m0F, w0)
	VXORPD  = three("vxorpd", 0x57, p66, m0F, w0)

	// VCMPPS and VCMPPD compare by a predicate of five bits (SDM, "CMPPD").
	VCMPPS   = threeImm("vcmpps", 0xc2, pNone, m0F, w0)
	VCMPPD   = threeImm("vcmppd", 0xc2, p66, m0F, w0)
	VROUNDPS = twoImm("vroundps", 0x08, p66, m0F3A, w0)
	VROUNDPD = twoImm("vroundpd", 0x09, p66, m0F3A, w0)

	VFMADD132PS  = three("vfmadd132ps", 0x98, p66, m0F38, w0)
	VFMADD132PD  = three("vfmadd132pd", 0x98, p66, m0F38, w1)
	VFMADD213PS  = three("vfmadd213ps", 0xa8, p66, m0F38, w0)
	VFMADD213PD  = three("vfmadd213pd", 0xa8, p66, m0F38, w1)
	VFMADD231PS  = three("vfmadd231ps", 0xb8, p66, m0F38, w0)
	VFMADD231PD  = three("vfmadd231pd", 0xb8, p66, m0F38, w1)
	VFMSUB132PS  = three("vfmsub132ps", 0x9a, p66, m0F38, w0)
	VFMSUB132PD  = three("vfmsub132pd", 0x9a, p66, m0F38, w1)
	VFMSUB213PS  = three("vfmsub213ps", 0xaa, p66, m0F38, w0)
	VFMSUB213PD  = three("vfmsub213pd", 0xaa, p66, m0F38, w1)
	VFMSUB231PS  = three("vfmsub231ps", 0xba, p66, m0F38, w0)
	VFMSUB231PD  = three("vfmsub231pd", 0xba, p66, m0F38, w1)
	VFNMADD132PS = three("vfnmadd132ps", 0x9c, p66, m0F38, w0)
	VFNMADD132PD = three("vfnmadd132pd", 0x9c, p66, m0F38, w1)
	VFNMADD213PS = three("vfnmadd213ps", 0xac, p66, m0F38, w0)
	VFNMADD213PD = three("vfnmadd213pd", 0xac, p66, m0F38, w1)
	VFNMADD231PS = three("vfnmadd231ps", 0xbc, p66, m0F38, w0)
	VFNMADD231PD = three("vfnmadd231pd", 0xbc, p66, m0F38, w1)
	VFNMSUB132PS = three("vfnmsub132ps", 0x9e, p66, m0F38, w0)
	VFNMSUB132PD = three("vfnmsub132pd", 0x9e, p66, m0F38, w1)
	VFNMSUB213PS = three("vfnmsub213ps", 0xae, p66, m0F38, w0)
	VFNMSUB213PD = three("vfnmsub213pd", 0xae, p66, m0F38, w1)
	VFNMSUB231PS = three("vfnmsub231ps", 0xbe, p66, m0F38, w0)
	VFNMSUB231PD = three("vfnmsub231pd", 0xbe, p66, m0F38, w1)

	VCVTDQ2PS  = two("vcvtdq2ps", 0x5b, pNone, m0F, w0)
	VCVTPS2DQ  = two("vcvtps2dq", 0x5b, p66, m0F, w0)
	VCVTTPS2DQ = two("vcvttps2dq", 0x5b, pF3, m0F, w0)
	VCVTPS2PD  = widen("vcvtps2pd", 0x5a, pNone, m0F, half)
	VCVTDQ2PD  = widen("vcvtdq2pd", 0xe6, pF3, m0F, half)
	VCVTPH2PS  = widen("vcvtph2ps", 0x13, p66, m0F38, half)
	VCVTPD2PS  = define("vcvtpd2ps", vex(0x5a, p66, m0F, w0, reg(xmm), rm(ymm, 32)))
	VCVTPD2DQ  = define("vcvtpd2dq", vex(0xe6, pF2, m0F, w0, reg(xmm), rm(ymm, 32)))
	VCVTTPD2DQ = define("vcvttpd2dq", vex(0xe6, p66, m0F, w0, reg(xmm), rm(ymm, 32)))
	VCVTPS2PH  = define("vcvtps2ph", vex(0x1d, p66, m0F3A, w0, rm(xmm, 16), reg(ymm), imm(imm8)))
)

// The state of the vector unit.
var (
	// VZEROUPPER clears the high halves, without which subsequent SSE code is slow.
	VZEROUPPER = define("vzeroupper", vex(0x77, pNone, m0F, w0))
	// VLDMXCSR and VSTMXCSR load and store the control of rounding and flushing, and the
	// flags.
	VLDMXCSR = define("vldmxcsr", vex(0xae, pNone, m0F, w0, only(4)).digit(2))
	VSTMXCSR = define("vstmxcsr", vex(0xae, pNone, m0F, w0, only(4)).digit(3))
)
