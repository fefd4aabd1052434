package soft_test

// openCases are results that are undefined in PTX, with the values of an NVIDIA H100.
var openCases = []opcodeCase{
	{"rem.u32 %d, %a, %b", "b32", "b32", 0xfa3db05c, 0, 0, 0xffffffff},
	{"rem.s16 %d, %a, %b", "b16", "b16", 0x0400, 0, 0, 0xffff},
	{"rem.s64 %d, %a, %b", "b64", "b64", 64, 0, 0, 1<<64 - 1},
	{"{ .reg .b32 p, n; cvt.u32.u64 p, %b; cvt.u32.u64 n, %c; bfe.u64 %d, %a, p, n; }", "b64", "b64", 0xa2fee9794e5650f1, 0xcf000000, 0x511aea9d, 0},
	{"{ .reg .b32 p, n; cvt.u32.u64 p, %b; cvt.u32.u64 n, %c; bfi.b64 %d, %a, %a, p, n; }", "b64", "b64", 1, 0x4b000001, 1, 1},

	{"{ add.cc.u32 %c, 0, 0; subc.u32 %d, %a, %b; }", "b32", "b32", 0x2b, 0xb, 0, 0x1f},
	{"cvt.rna.tf32.f32 %d, %a", "b32", "b32", 0xfffdfffd, 0, 0, 0xfffde000},
	{"rcp.approx.ftz.f64 %d, %a", "b64", "b64", 0x7ff0000000000001, 0, 0, 0},
	{"div.rn.f64 %d, %a, %b", "b64", "b64", 0x7ff0000000000001, 1<<63 - 1, 0, 0x7ff8000000000001},

	{"add.rp.f64 %d, %a, %b", "b64", "b64", 0x7ff8000000000000, 0xfffffffffffffffd, 0, 0xfffffffffffffffd},
	{"sub.rp.f64 %d, %a, %b", "b64", "b64", 0x41, 0x7ffffffffffffffe, 0, 0x7ffffffffffffffe},
	{"mad.rn.f64 %d, %a, %b, %c", "b64", "b64", 1<<63 - 1, 0x9913f5c8b75554b8, 0x7ff8000000000000, 0x7ff8000000000000},
	{"div.rz.f64 %d, %a, %b", "b64", "b64", 0xbfcc0d57cd8da6cc, 0x7ff0000000000001, 0, 0x7ff8000000000001},
	{"sqrt.rn.f64 %d, %a", "b64", "b64", 1<<63 - 1, 0, 0, 1<<63 - 1},
	{"min.f64 %d, %a, %b", "b64", "b64", 1<<64 - 1, 0x7ff0000000000001, 0, 0x7ff8000000000001},
	{"neg.f64 %d, %a", "b64", "b64", 0x7ff0000000000001, 0, 0, 0x7ff8000000000001},
	{"rsqrt.approx.ftz.f64 %d, %a", "b64", "b64", 0xbff0000000000000, 0, 0, 0x7fffffff00000000},

	{"neg.f16 %d, %a", "b16", "b16", 0x7ffe, 0, 0, 0x7fff},
	{"abs.bf16 %d, %a", "b16", "b16", 0x7ffe, 0, 0, 0x7fff},
	{"abs.f32 %d, %a", "b32", "b32", 0x7f800001, 0, 0, 0x7fffffff},
	{"cvt.f64.bf16 %d, %a", "b64", "b16", 0xffff, 0, 0, 0xffffe00000000000},
	{"cvt.rni.f64.f64 %d, %a", "b64", "b64", 1<<64 - 1, 0, 0, 1<<64 - 1},
	{"cvt.rm.bf16.f64 %d, %a", "b16", "b64", 1<<64 - 1, 0, 0, 0xffff},
	{"cvt.rn.f16.f64 %d, %a", "b16", "b64", 0x7ff8000000000000, 0, 0, 0x7e00},
	{"cvt.rz.relu.tf32.f32 %d, %a", "b32", "b32", 0x7fffffff, 0, 0, 0x7fffe000},
}
