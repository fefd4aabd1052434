package compile

import (
	"strconv"

	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// cvtPack compiles cvt.pack.
func (c *compiler) cvtPack(in *ptx.Inst) ([]ir.Op, error) {
	m := in.Mods
	if len(m) < 4 || m[0] != "pack" || m[1] != "sat" || m[3] != "s32" || !listedAny(m[2], "u2", "s2", "u4", "s4", "u8", "s8", "u16", "s16") {
		return nil, missingQualifiers(in, m)
	}
	bits, _ := strconv.Atoi(m[2][1:]) // digits
	count, mods := 4, 5
	if bits == 16 {
		count, mods = 3, 4
	}
	if len(m) != mods || mods == 5 && m[4] != "b32" {
		return nil, broken(in, qualifiers(m), "cvt.pack must end with .s32.b32, or with .s32 for results of 16 bits")
	}
	if err := operands(in, count); err != nil {
		return nil, err
	}
	return c.apply(ops.CvtPack{Bits: uint(bits), Signed: m[2][0] == 's'}.Operation(), in.Args, ptx.B32)
}
