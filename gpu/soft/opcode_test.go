package soft_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/compile"
	"github.com/basalt-gpu/basalt/gpu/soft/device"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

const ptxHead = ".version 8.4\n.target sm_90\n.address_size 64\n"

// opcodeCase is one instruction on constants: %a, %b, %c are its sources and %d its
// result, in registers of the given types.
type opcodeCase struct {
	inst       string // "add.s32 %d, %a, %b"
	dt, st     string // register types: b16, b32, b64; sources share one
	a, b, c, d uint64
}

// opcodeCases have expected values that follow from the text of the PTX ISA for each
// instruction.
var opcodeCases = []opcodeCase{
	// Integer arithmetic.
	{"add.s32 %d, %a, %b", "b32", "b32", 0xffffffff, 2, 0, 1},
	{"add.sat.s32 %d, %a, %b", "b32", "b32", 0x7fffffff, 1, 0, 0x7fffffff},
	{"sub.sat.s32 %d, %a, %b", "b32", "b32", 0x80000000, 1, 0, 0x80000000},
	{"add.u16 %d, %a, %b", "b16", "b16", 0xffff, 2, 0, 1},
	{"mul.hi.s32 %d, %a, %b", "b32", "b32", 0xffffffff, 2, 0, 0xffffffff},
	{"mul.hi.u64 %d, %a, %b", "b64", "b64", 1 << 63, 6, 0, 3},
	{"mul.hi.s64 %d, %a, %b", "b64", "b64", 1<<64 - 1, 5, 0, 1<<64 - 1},
	{"mul.wide.s32 %d, %a, %b", "b64", "b32", 0xffffffff, 3, 0, 1<<64 - 3},
	{"mul.wide.u16 %d, %a, %b", "b32", "b16", 0xffff, 0xffff, 0, 0xfffe0001},
	{"mul.wide.s16 %d, %a, %b", "b32", "b16", 0xffff, 3, 0, 0xfffffffd},
	{"mad.lo.s32 %d, %a, %b, %c", "b32", "b32", 3, 5, 7, 22},
	{"mul24.lo.s32 %d, %a, %b", "b32", "b32", 0xffffff, 2, 0, 0xfffffffe},
	{"div.s32 %d, %a, %b", "b32", "b32", 0x80000000, 0xffffffff, 0, 0x80000000},
	{"div.u32 %d, %a, %b", "b32", "b32", 5, 0, 0, 0xffffffff},
	{"rem.s32 %d, %a, %b", "b32", "b32", 0xfffffff9, 3, 0, 0xffffffff},
	{"div.u64 %d, %a, %b", "b64", "b64", 1<<64 - 1, 10, 0, 0x1999999999999999},
	{"div.s64 %d, %a, %b", "b64", "b64", 1<<64 - 7, 2, 0, 1<<64 - 3},
	{"div.s64 %d, %a, %b", "b64", "b64", 1 << 63, 1<<64 - 1, 0, 1 << 63},
	{"rem.s64 %d, %a, %b", "b64", "b64", 1<<64 - 7, 3, 0, 1<<64 - 1},
	{"rem.u64 %d, %a, %b", "b64", "b64", 7, 0, 0, 1<<64 - 1},
	{"rem.u16 %d, %a, %b", "b16", "b16", 0xffff, 10, 0, 5},
	{"abs.s32 %d, %a", "b32", "b32", 0xfffffff6, 0, 0, 10},
	{"sad.s32 %d, %a, %b, %c", "b32", "b32", 0xffffffff, 2, 10, 13},
	{"popc.b64 %d, %a", "b32", "b64", 1<<63 | 7, 0, 0, 4},
	{"clz.b32 %d, %a", "b32", "b32", 0, 0, 0, 32},
	{"bfind.u32 %d, %a", "b32", "b32", 0, 0, 0, 0xffffffff},
	{"bfind.s32 %d, %a", "b32", "b32", 0xfffffff0, 0, 0, 3},
	{"bfind.shiftamt.u32 %d, %a", "b32", "b32", 1, 0, 0, 31},
	{"bfe.u32 %d, %a, 4, 8", "b32", "b32", 0xabcd, 0, 0, 0xbc},
	{"bfe.s32 %d, %a, 4, 8", "b32", "b32", 0xabcd, 0, 0, 0xffffffbc},
	{"bfe.s32 %d, %a, 24, 32", "b32", "b32", 0x80000000, 0, 0, 0xffffff80},
	{"bfi.b32 %d, %a, %b, 8, 4", "b32", "b32", 0xf5, 0xffffffff, 0, 0xfffff5ff},
	{"dp4a.s32.s32 %d, %a, %b, %c", "b32", "b32", 0xff01ff01, 0x02030405, 10, 10 - 2 + 3 - 4 + 5},
	{"dp2a.lo.u32.u32 %d, %a, %b, %c", "b32", "b32", 0x00030002, 0x0504, 1, 1 + 8 + 15},
	// Logic and shifts: counts past the width clamp.
	{"shl.b32 %d, %a, 32", "b32", "b32", 1, 0, 0, 0},
	{"shr.s32 %d, %a, 40", "b32", "b32", 0x80000000, 0, 0, 0xffffffff},
	{"shr.u64 %d, %a, 64", "b64", "b64", 1 << 63, 0, 0, 0},
	{"shr.s16 %d, %a, 4", "b16", "b16", 0x8000, 0, 0, 0xf800},
	{"not.b16 %d, %a", "b16", "b16", 0x00ff, 0, 0, 0xff00},
	{"shf.l.wrap.b32 %d, %a, %b, 36", "b32", "b32", 0xf0000000, 1, 0, 0x1f},
	{"shf.r.clamp.b32 %d, %a, %b, 40", "b32", "b32", 1, 9, 0, 9},
	{"prmt.b32 %d, %a, %b, 0x8e40", "b32", "b32", 0x44332281, 0x77668855, 0, 0xff005581},
	{"lop3.b32 %d, %a, %b, %c, 0x96", "b32", "b32", 0xff00, 0x0ff0, 0x1234, 0xff00 ^ 0x0ff0 ^ 0x1234},
	// Floating point.
	{"add.f32 %d, %a, %b", "b32", "b32", 0x7f800000, 0xff800000, 0, 0x7fffffff},
	{"add.f32 %d, %a, %b", "b32", "b32", 0x80000000, 0x80000000, 0, 0x80000000},
	{"add.ftz.f32 %d, %a, %b", "b32", "b32", 0x80000001, 0x80000001, 0, 0x80000000},
	{"add.rp.f32 %d, %a, %b", "b32", "b32", 0x3f800000, 1, 0, 0x3f800001},
	{"add.rm.f32 %d, %a, %b", "b32", "b32", 0x3f800000, 0x80000001, 0, 0x3f7fffff},
	{"add.rm.f32 %d, %a, %b", "b32", "b32", 0x3f800000, 0xbf800000, 0, 0x80000000},
	{"mul.rz.f32 %d, %a, %b", "b32", "b32", 0x7f7fffff, 0x40000000, 0, 0x7f7fffff},
	{"mul.sat.f32 %d, %a, %b", "b32", "b32", 0x40000000, 0x40000000, 0, 0x3f800000},
	{"mul.sat.f32 %d, %a, %b", "b32", "b32", 0x7fffffff, 0x40000000, 0, 0},
	{"fma.rn.f32 %d, %a, %b, %c", "b32", "b32", 0x3f800001, 0x3f800001, 0xbf800002, 0x28800000},
	{"div.rn.f32 %d, %a, %b", "b32", "b32", 0x3f800000, 0x80000000, 0, 0xff800000},
	{"div.rz.f32 %d, %a, %b", "b32", "b32", 0x40000000, 0x40400000, 0, 0x3f2aaaaa},
	{"min.f32 %d, %a, %b", "b32", "b32", 0x7fffffff, 0x40000000, 0, 0x40000000},
	{"max.f32 %d, %a, %b", "b32", "b32", 0x80000000, 0, 0, 0},
	{"min.NaN.f32 %d, %a, %b", "b32", "b32", 0x7fc00000, 0x40000000, 0, 0x7fffffff},
	{"sqrt.rn.f32 %d, %a", "b32", "b32", 0xbf800000, 0, 0, 0x7fffffff},
	{"ex2.approx.f32 %d, %a", "b32", "b32", 0xff800000, 0, 0, 0},
	{"lg2.approx.f32 %d, %a", "b32", "b32", 0, 0, 0, 0xff800000},
	{"sin.approx.f32 %d, %a", "b32", "b32", 0x80000000, 0, 0, 0x80000000},
	{"sin.approx.ftz.f32 %d, %a", "b32", "b32", 0xff800000, 0, 0, 0x7fffffff},
	{"cos.approx.f32 %d, %a", "b32", "b32", 0, 0, 0, 0x3f800000},
	{"tanh.approx.f32 %d, %a", "b32", "b32", 0xff800000, 0, 0, 0xbf800000},
	{"neg.f32 %d, %a", "b32", "b32", 0, 0, 0, 0x80000000},
	{"copysign.f32 %d, %a, %b", "b32", "b32", 0x80000000, 0x3f800000, 0, 0xbf800000},
	{"add.rz.f64 %d, %a, %b", "b64", "b64", 0x3ff0000000000000, 0xbc00000000000000, 0, 0x3fefffffffffffff},
	{"fma.rn.f64 %d, %a, %b, %c", "b64", "b64", 0x4000000000000000, 0x4008000000000000, 0x3ff0000000000000, 0x401c000000000000},
	// Halves.
	{"add.f16 %d, %a, %b", "b16", "b16", 0x7bff, 0x7bff, 0, 0x7c00},
	{"mul.f16 %d, %a, %b", "b16", "b16", 0x0001, 0x3800, 0, 0x0000},
	{"add.f16x2 %d, %a, %b", "b32", "b32", 0x3c004000, 0x3c003c00, 0, 0x40004200},
	{"fma.rn.f16 %d, %a, %b, %c", "b16", "b16", 0x3c01, 0x3c01, 0xbc02, 0x0010},
	// The product is a tie, which the addend decides.
	{"fma.rn.f16 %d, %a, %b, %c", "b16", "b16", 0x3c01, 0x3e00, 0x8001, 0x3e01},
	{"fma.rn.bf16 %d, %a, %b, %c", "b16", "b16", 0x3f81, 0x3fc0, 0xab80, 0x3fc1},
	{"fma.rn.bf16x2 %d, %a, %b, %c", "b32", "b32", 0x3f813f81, 0x3fc03fc0, 0x2b80, 0x3fc23fc2},
	{"fma.rn.relu.bf16x2 %d, %a, %b, %c", "b32", "b32", 0x3f80bf80, 0x3f803f80, 0, 0x3f800000},
	{"fma.rn.ftz.sat.f16x2 %d, %a, %b, %c", "b32", "b32", 0x40003c00, 0x3c0003ff, 0, 0x3c000000},
	{"add.rn.bf16 %d, %a, %b", "b16", "b16", 0x3f80, 0x3b80, 0, 0x3f80},
	{"min.NaN.bf16 %d, %a, %b", "b16", "b16", 0x7fc0, 0x3f80, 0, 0x7fff},
	{"max.f16x2 %d, %a, %b", "b32", "b32", 0x80007e00, 0xbc00, 0, 0x0000bc00},
	{"neg.f16x2 %d, %a", "b32", "b32", 0x7e003c00, 0, 0, 0x7fffbc00},
	{"{ .reg .pred p; setp.lt.f16 p, %a, %b; selp.b16 %d, 1, 2, p; }", "b16", "b16", 0xbc00, 0x0001, 0, 1},
	// Conversions.
	{"cvt.rn.f16.f32 %d, %a", "b16", "b32", 0x477ff000, 0, 0, 0x7c00},
	{"cvt.rz.f16.f32 %d, %a", "b16", "b32", 0x477ff000, 0, 0, 0x7bff},
	{"cvt.rn.f16.f32 %d, %a", "b16", "b32", 0x33000000, 0, 0, 0x0000},
	{"cvt.rn.f16.f32 %d, %a", "b16", "b32", 0x33000001, 0, 0, 0x0001},
	{"cvt.f32.f16 %d, %a", "b32", "b16", 0x0001, 0, 0, 0x33800000},
	{"cvt.rn.bf16.f32 %d, %a", "b16", "b32", 0x3f808000, 0, 0, 0x3f80},
	{"cvt.rn.bf16x2.f32 %d, %a, %b", "b32", "b32", 0x3f818000, 0x7f7fffff, 0, 0x3f827f80},
	{"cvt.rz.relu.f16x2.f32 %d, %a, %b", "b32", "b32", 0x477ff000, 0xbf800000, 0, 0x7bff0000},
	{"cvt.rzi.s32.f32 %d, %a", "b32", "b32", 0xc0200000, 0, 0, 0xfffffffe},
	{"cvt.rni.s32.f32 %d, %a", "b32", "b32", 0x40200000, 0, 0, 2},
	{"cvt.rmi.f32.f32 %d, %a", "b32", "b32", 0xbf000000, 0, 0, 0xbf800000},
	{"cvt.rzi.u32.f32 %d, %a", "b32", "b32", 0xc0200000, 0, 0, 0},
	{"cvt.rzi.s32.f32 %d, %a", "b32", "b32", 0x7f800000, 0, 0, 0x7fffffff},
	{"cvt.rzi.s32.f32 %d, %a", "b32", "b32", 0x7fc00000, 0, 0, 0},
	{"cvt.rzi.s64.f64 %d, %a", "b64", "b64", 0x7ff8000000000000, 0, 0, 1 << 63},
	{"cvt.rzi.u64.f64 %d, %a", "b64", "b64", 0x43efffffffffffff, 0, 0, 0xfffffffffffff800},
	{"cvt.rn.f32.u64 %d, %a", "b32", "b64", 1<<64 - 1, 0, 0, 0x5f800000},
	{"cvt.rz.f32.u32 %d, %a", "b32", "b32", 0xffffffff, 0, 0, 0x4f7fffff},
	{"cvt.rp.f32.f64 %d, %a", "b32", "b64", 0x3ff0000000000001, 0, 0, 0x3f800001},
	{"cvt.sat.u8.s32 %d, %a", "b32", "b32", 0xfffffffb, 0, 0, 0},
	{"cvt.sat.s8.s32 %d, %a", "b32", "b32", 300, 0, 0, 127},
	{"cvt.s32.s8 %d, %a", "b32", "b32", 0x80, 0, 0, 0xffffff80},
	{"cvt.s16.u32 %d, %a", "b32", "b32", 0x1f5ff, 0, 0, 0xfffff5ff},
	{"cvt.s16.s64 %d, %a", "b32", "b64", 0x1f5ff, 0, 0, 0xfffff5ff},
	{"cvt.u16.s32 %d, %a", "b32", "b32", 0x1f5ff, 0, 0, 0xf5ff},
	{"cvt.s64.s16 %d, %a", "b64", "b16", 0x8000, 0, 0, 0xffffffffffff8000},
	{"cvt.sat.f32.f32 %d, %a", "b32", "b32", 0xbf800000, 0, 0, 0},
	{"cvt.rn.f16x2.f32 %d, %a, %b", "b32", "b32", 0x3f800000, 0x40000000, 0, 0x3c004000},
	{"slct.s32.s32 %d, %a, %b, %c", "b32", "b32", 1, 2, 0x80000000, 2},
	{"vsub.u32.u32.u32.add %d, %a, %b, %c", "b32", "b32", 5, 7, 0xffffffff, 0xfffffffd},
	{"vadd.s32.s32.u32 %d, %a, %b", "b32", "b32", 0xffffffff, 3, 0, 2},
	{"vadd.s32.s32.u32.sat %d, %a.b3, %b.h1", "b32", "b32", 0xfe000000, 0x00050000, 0, 3},
	{"vsub.u32.u32.u32.sat %d.b2, %a.h0, %b.h0, %c", "b32", "b32", 0x0234, 1, 0x99aabbcc, 0x99ffbbcc},
	{"vadd.s32.s32.s32 %d.h1, %a.b0, %b.b1, %c", "b32", "b32", 0xff, 0xfe00, 0x12345678, 0xfffd5678},
	{"vadd2.u32.u32.u32 %d.h1, %a.h01, %b, %c", "b32", "b32", 0x00020001, 0x00300040, 0x77778888, 0x00318888},
	{"vsub2.s32.s32.s32 %d, %a.h32, %b.h10, %c", "b32", "b32", 0x00020001, 0x00300040, 0, 0x002e003f},
	{"vadd4.u32.u32.u32.sat %d.b31, %a.b0123, %b.b4444, %c", "b32", "b32", 0x01020304, 0xfd, 0xaabbccdd, 0xffbbffdd},
	{"vmax4.u32.u32.u32.add %d.b20, %a, %b, %c", "b32", "b32", 0x01020304, 0x04030201, 100, 100 + 3 + 4},
	{"vset4.u32.u32.ge %d, %a, %b, %c", "b32", "b32", 0x01ff0304, 0x04030301, 0, 0x00010101},
	{"vset2.s32.s32.lt.add %d, %a, %b, %c", "b32", "b32", 0xffff0003, 0x00000004, 40, 42},
	{"vset.s32.u32.lt %d.b1, %a.b3, %b.b0, %c", "b32", "b32", 0x80000000, 0, 0x11223344, 0x11220144},
	{"vmad.s32.s32.u32.sat %d, %a, %b, -%c", "b32", "b32", 0xffffffff, 5, 7, 0xfffffff4},
	{"vmad.u32.u32.u32.shr15 %d, %a.h0, %b.h1, %c", "b32", "b32", 0x0001ffff, 0xffff0001, 0x8000, (0xffff*0xffff + 0x8000) >> 15},
	{"vmad.u32.u32.u32.po.shr7 %d, %a.b3, %b.b0, %c", "b32", "b32", 0x80000000, 0xff02, 127, 3},
	{"vmad.u32.u32.u32.sat %d, %a, %b, %c", "b32", "b32", 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
	{"vmad.s32.u32.u32.sat %d, -%a, %b, %c", "b32", "b32", 0xffffffff, 0xffffffff, 0x7fffffff, 0x80000000},
	{"vmad.s32.u32.u32 %d, %a, -%b, %c", "b32", "b32", 3, 5, 0xffffffff, 0xfffffff0},
	{"vmad.s32.s32.s32.sat.shr7 %d, -%a, -%b, -%c", "b32", "b32", 0x80000000, 0x80000000, 1, 0x7fffffff},
	{"vshl.u32.u32.u32.sat.clamp %d, %a.h1, %b.b0", "b32", "b32", 0x12340000, 32, 0, 0xffffffff},
	{"vshl.u32.u32.u32.wrap %d, %a, %b", "b32", "b32", 1, 33, 0, 2},
	{"vshr.s32.s32.u32.clamp.add %d, %a.b0, %b, %c", "b32", "b32", 0x80, 99, 5, 4},
	{"set.u32.ge.s32 %d, %a, %b", "b32", "b32", 0xffffffff, 0, 0, 0},
	{"set.f32.lt.s32 %d, %a, %b", "b32", "b32", 0xffffffff, 0, 0, 0x3f800000},
	{"set.eq.f16.f16 %d, %a, %b", "b16", "b16", 0x8000, 0, 0, 0x3c00},
	{"set.gtu.f16.f16 %d, %a, %b", "b16", "b16", 0x7e00, 0, 0, 0x3c00},
	{"set.ne.bf16.bf16 %d, %a, %b", "b16", "b16", 0x8000, 0, 0, 0},
	{"set.lt.u32.s32 %d, %a, %b", "b32", "b32", 0xffffffff, 0, 0, 0xffffffff},
	{"{ .reg .pred p, q; setp.ltu.and.f32 p|q, %a, %b, 1; selp.b32 %d, 1, 2, p; }", "b32", "b32", 0x7fc00000, 0, 0, 1},
	{"{ .reg .pred p; setp.ne.f32 p, %a, %b; selp.b32 %d, 1, 2, p; }", "b32", "b32", 0x7fc00000, 0, 0, 2},
	{"{ .reg .pred p; testp.subnormal.f32 p, %a; selp.b32 %d, 1, 2, !p; }", "b32", "b32", 1, 0, 0, 2},
	{"{ .reg .pred p; testp.normal.f32 p, %a; selp.b32 %d, 1, 2, p; }", "b32", "b32", 0x80000000, 0, 0, 1},
	{"{ .reg .b16 x, y; mov.b32 {x, y}, %a; mov.b32 %d, {y, x}; }", "b32", "b32", 0x12345678, 0, 0, 0x56781234},
	{"@!%t mov.b32 %d, %a; @%t mov.b32 %d, %b", "b32", "b32", 1, 2, 0, 1},
}

func TestOpcodes(t *testing.T) {
	var src strings.Builder
	src.WriteString(ptxHead)
	cases := slices.Concat(opcodeCases, openCases)
	for i, c := range cases {
		inst := c.inst
		if !strings.HasSuffix(inst, "}") {
			inst += ";"
		}
		fmt.Fprintf(&src, `.entry k%d(.param .u64 out, .param .u64 a, .param .u64 b, .param .u64 c) {
.reg .%s %%a, %%b, %%c; .reg .%s %%d; .reg .b64 %%o; .reg .pred %%t;
ld.param.u64 %%o, [out]; ld.param.%s %%a, [a]; ld.param.%s %%b, [b]; ld.param.%s %%c, [c];
setp.ne.s32 %%t, 0, 0;
%s
st.global.%s [%%o], %%d; ret; }
`, i, c.st, c.dt, c.st, c.st, c.st, inst, c.dt)
	}
	r := newRig(t, src.String())
	out := r.buffer(make([]byte, 8*len(cases)))
	for i, c := range cases {
		r.launch(fmt.Sprint("k", i), [3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}, 0, out+uint64(8*i), c.a, c.b, c.c)
	}
	got, err := r.read(out, 8*len(cases))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		// A GPU merges the upper half of the result into .h1, and does not limit vshl to 32,
		// contrary to the text.
		if v := binary.LittleEndian.Uint64(got[8*i:]); v != c.d && (card(t) == nil || !strings.Contains(c.inst, "%d.h1, %a.b0") && !strings.HasPrefix(c.inst, "vshl.u32.u32.u32.sat")) {
			t.Errorf("%s (a %#x b %#x c %#x) = %#x, want %#x", c.inst, c.a, c.b, c.c, v, c.d)
		}
	}
}

func TestUnsupportedInstructionsNameThemselves(t *testing.T) {
	for _, inst := range []string{
		"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r1}, {%r1}, {%r1}, {%r1};",
		"cp.async.bulk.frobnicate;", "mbarrier.frobnicate.b64 [%rd1];", "cp.async.bulk.global.global.bulk_group [%rd1], [%rd1], 16;", "frobnicate.b32 %r1, %r1;",
		"call %r1;", "cvt.rn.satfinite.e2m1x2.f32 %r1, %r1, %r1;",
		"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f16 {%r0, %r1, %r2, %r3}, {%r0, %r1}, {%r2}, {%r0, %r1};", "mad.f32 %r1, %r2, %r3, %r1;", "tanh.approx.ftz.f32 %r1, %r2;",
		"vadd.u32.u32.u32 %r1, %r2.h2, %r3;", "vadd.u32.u32.u32 %r1.b4, %r2, %r3, %r1;", "vadd.u32.u32.u32.add %r1.b0, %r2, %r3, %r1;", "vadd.u32.u32.u32 %r1, %r2.h10, %r3;",
		"vadd2.u32.u32.u32 %r1.h01, %r2, %r3, %r1;", "vadd2.u32.u32.u32 %r1, %r2.h14, %r3, %r1;", "vadd2.u32.u32.u32 %r1, %r2.b10, %r3, %r1;", "vadd2.u32.u32.u32 %r1.h2, %r2, %r3, %r1;",
		"vadd4.u32.u32.u32 %r1.b012, %r2, %r3, %r1;", "vadd4.u32.u32.u32 %r1, %r2.b321, %r3, %r1;", "vadd4.u32.u32.u32 %r1, %r2, %r3, %r1.b0;", "add.u32 %r1.b0, %r2, %r3;", "add.u32 %r1, %r2.h0, %r3;",
	} {
		log, err := refusal(t, ptxHead+".entry k() {\n.reg .b32 %r<4>; .reg .b64 %rd<4>;\n"+inst+"\n}")
		if !errors.Is(err, abi.ErrNoBinaryForGPU) || !strings.Contains(log, "kernel k cannot run on this device: line 6") || !strings.Contains(log, inst) {
			t.Errorf("%s: launch error %v, log %q; want %v and a log with the kernel, line 6 and the instruction", inst, err, log, abi.ErrNoBinaryForGPU)
		}
	}
}

// TestRefusedKernels checks that only a kernel with an unknown instruction, in itself
// or in a function that it calls, is refused, for all uses, and that the context
// remains usable.
func TestRefusedKernels(t *testing.T) {
	r := newRig(t, ptxHead+`
.func unknown() { frobnicate.b32 1; ret; }
.func unused() { frobnicate.b32 2; ret; }
.visible .entry calls() { call unknown; ret; }
.visible .entry reads() { .reg .b32 %r<2>; mov.u32 %r1, %newspecial; ret; }
.visible .entry much() { .local .b8 a[1000000]; ret; }`+callKernel("mov.u32 %out, 5;"))
	l := worker.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	for name, want := range map[string]string{
		"calls": "kernel calls: line 5: not implemented: opcode frobnicate: frobnicate.b32 1;",
		"reads": "%newspecial", "much": "line 9: the local memory of a thread must have at most 524288 bytes, found 1000000 with the 1000000 of variable a",
	} {
		f := r.funcs[name]
		_, occupancy := r.c.OccupancyMaxActiveBlocksPerMultiprocessor(f, 32, 0)
		_, available := r.c.OccupancyAvailableDynamicSMemPerBlock(f, 1, 32)
		for what, err := range map[string]error{
			"launch": r.c.Launch(nil, f, l, nil), "attribute": r.c.FuncSetAttribute(f, 8, 0), "occupancy": occupancy, "available": available,
		} {
			if !errors.Is(err, abi.ErrNoBinaryForGPU) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s of %s: error %v, want %v with %q", what, name, err, abi.ErrNoBinaryForGPU, want)
			}
		}
	}
	out := r.buffer(make([]byte, 4))
	r.launch("k", [3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}, 0, out)
	r.expect(out, 1, func(int) uint32 { return 5 })
}

// TestExpansionIsLimited checks that of a module of a thousand kernels that call one
// large function, only the first ones that are within the limit can be executed.
func TestExpansionIsLimited(t *testing.T) {
	var src strings.Builder
	src.WriteString(ptxHead + ".func f() {\n.reg .b32 %r<2>;\n" + strings.Repeat("add.s32 %r1, %r1, 1;\n", 10_000) + "ret; }\n")
	for i := range 1000 {
		fmt.Fprintf(&src, ".visible .entry k%d() { call f; ret; }\n", i)
	}
	r := newRig(t, src.String())
	r.launch("k0", [3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}, 0)
	err := r.c.Launch(nil, r.funcs["k999"], worker.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}, nil)
	if !errors.Is(err, abi.ErrNoBinaryForGPU) || !strings.Contains(err.Error(), "module too large") {
		t.Errorf("launch of the last kernel: error %v, want %v with \"module too large\"", err, abi.ErrNoBinaryForGPU)
	}
}

func TestBadAccessesPoison(t *testing.T) {
	for _, c := range []struct {
		body string
		want abi.Result
	}{
		{"st.global.u32 [%rd1+16], 1;", abi.ErrIllegalAddress},
		{"st.global.u32 [%rd1-4], 1;", abi.ErrIllegalAddress},
		{"st.global.u32 [%rd1+1], 1;", abi.ErrMisaligned},
		{"ld.global.v2.u32 {%r1, %r2}, [%rd1+4];", abi.ErrMisaligned},
		{"ld.u32 %r1, [0];", abi.ErrIllegalAddress},
		{"ld.shared.u32 %r1, [64];", abi.ErrIllegalAddress},
		{"ld.local.u32 %r1, [1024];", abi.ErrIllegalAddress},
		{"{ .shared .align 16 .b8 s[16]; cp.async.cg.shared.global [s], [%rd1+16], 16; }", abi.ErrIllegalAddress},
		{"{ .shared .align 16 .b8 s[16]; cp.async.cg.shared.global [s+16], [%rd1], 16; }", abi.ErrIllegalAddress},
		{"{ .shared .align 16 .b8 s[16]; cp.async.ca.shared.global [s], [%rd1+4], 8; }", abi.ErrMisaligned},
		{"{ .shared .align 16 .b8 s[16]; cp.async.ca.shared.global [s+4], [%rd1], 8; }", abi.ErrMisaligned},
		{"trap;", abi.ErrLaunchFailed},
		{"multimem.ld_reduce.relaxed.sys.global.add.f32 %r1, [%rd1];", abi.ErrIllegalAddress}, // no device address is that of a multicast object
		{"{.reg .pred p; .reg .b32 t; mov.u32 t, %tid.x; setp.eq.s32 p, t, 0; @p bra A; bar.sync 0; bra B; A: bar.sync 1; B: }", abi.ErrLaunchFailed},
		// Lanes outside of their own member mask, and members that never arrive.
		{"vote.sync.ballot.b32 %r1, 1, 2;", abi.ErrLaunchFailed},
		{"{.reg .pred p; .reg .b32 t; mov.u32 t, %tid.x; setp.eq.s32 p, t, 0; @p bra A; bar.sync 0; bra B; A: bar.warp.sync 3; B: }", abi.ErrLaunchFailed},
		{"{.reg .pred p; .reg .b32 t; mov.u32 t, %tid.x; setp.eq.s32 p, t, 0; @p bra A; redux.sync.add.s32 %r1, %r2, 3; bra B; A: redux.sync.add.u32 %r1, %r2, 3; B: }", abi.ErrLaunchFailed},
		{"{.reg .b32 t; mov.u32 t, %tid.x; shl.b32 t, t, 31; or.b32 t, t, 3; bar.warp.sync t; }", abi.ErrLaunchFailed},
	} {
		r := newRig(t, ptxHead+".entry k(.param .u64 a) { .reg .b64 %rd<2>; .reg .b32 %r<4>; ld.param.u64 %rd1, [a];\n"+c.body+"\nret; }")
		a := r.buffer(make([]byte, 16))
		r.launch("k", [3]uint32{1, 1, 1}, [3]uint32{2, 1, 1}, 0, a)
		if _, err := r.c.MemAlloc(1); err != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: MemAlloc: error %v, want none or %v", c.body, err, c.want)
		}
		out := make([]byte, 4)
		ch := make(chan error, 1)
		err := r.c.CopyDtoH(nil, out, a, func(err error) { ch <- err })
		if err == nil {
			err = <-ch
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%s: kernel error = %v, want %v", c.body, err, c.want)
		}
	}
}

func TestInfiniteLoopsEnd(t *testing.T) {
	r := newRig(t, ptxHead+".entry k() { L: bra L; }")
	r.launch("k", [3]uint32{4, 1, 1}, [3]uint32{64, 1, 1}, 0)
	done := make(chan error, 1)
	go func() { done <- r.c.Destroy() }()
	if err := patience.Receive(t, time.Minute, "the kernel ends", done); err != nil {
		t.Error(err)
	}
}

// TestSpinLockBetweenLanes has the lanes of one warp take a lock one after another,
// which requires a scheduler that lets the holder continue.
func TestSpinLockBetweenLanes(t *testing.T) {
	r := newRig(t, ptxHead+`.entry k(.param .u64 a) { .reg .b64 %rd<2>; .reg .b32 %r<4>; .reg .pred %p<3>; ld.param.u64 %rd1, [a];
L: atom.global.cas.b32 %r1, [%rd1], 0, 1; setp.ne.s32 %p1, %r1, 0; @%p1 bra L;
ld.volatile.global.u32 %r2, [%rd1+4]; add.s32 %r2, %r2, 1; st.volatile.global.u32 [%rd1+4], %r2; membar.gl;
atom.global.exch.b32 %r3, [%rd1], 0; ret; }`)
	a := r.buffer(make([]byte, 8))
	r.launch("k", [3]uint32{3, 1, 1}, [3]uint32{64, 1, 1}, 0, a)
	got, err := r.read(a, 8)
	if err != nil || binary.LittleEndian.Uint32(got[4:]) != 192 {
		t.Errorf("memory = %v, error %v; want 192 in the second word", got, err)
	}
}

// TestKernelForAnotherDevice checks that a library's kernel that only
// prints that it was built for another architecture is refused with that message, and
// that other kernels of the module are not.
func TestKernelForAnotherDevice(t *testing.T) {
	const text = "FATAL: kernel `attention` is for sm80-sm100, but was built for sm61"
	numbers := make([]string, 0, len(text)+1)
	for _, c := range []byte(text + "\x00") {
		numbers = append(numbers, strconv.Itoa(int(c)))
	}
	src := ptxHead + fmt.Sprintf(`.global .align 1 .b8 message[%d] = {%s};
.visible .entry fatal() { .reg .b64 %%a; mov.u64 %%a, message; cvta.global.u64 %%a, %%a; ret; }
.visible .entry fine() { ret; }`, len(numbers), strings.Join(numbers, ", "))
	for _, cc := range []compile.Capability{61, 90} {
		r := newRigOf(t, device.Options{VRAM: 16 << 20, SMs: 1, Capability: cc}, ptxHead)
		_, funcs, info, err := r.c.ModuleLoad([]byte(src), worker.ModuleOptions{})
		if err != nil || len(funcs) != 2 {
			t.Fatalf("load returned %d kernels, error %v; want 2 and no error", len(funcs), err)
		}
		one := worker.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
		if err := r.c.Launch(nil, funcs[0], one, nil); !errors.Is(err, abi.ErrNoBinaryForGPU) || !strings.Contains(info.ErrorLog, text) {
			t.Errorf("capability %v: launch error %v, log %q; want %v and the message in the log", cc, err, info.ErrorLog, abi.ErrNoBinaryForGPU)
		}
		if err := r.c.Launch(nil, funcs[1], one, nil); err != nil {
			t.Errorf("capability %v: launch of the other kernel: error %v, want none", cc, err)
		}
	}
}
