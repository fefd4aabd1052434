package native

import "github.com/basalt-gpu/basalt/gpu/soft/amd64"

// Vector accesses of consecutive lanes: eight structures in memory and a vector for
// each member are transposes of one another. A structure of 16 bytes is half a
// register, and is combined there with that of the lane four further, or two further if
// members have 8 bytes.

// transposed reports whether consecutive lanes can execute an access at once.
func (x *access) transposed() bool {
	return x.N == 1 || x.N == 2 && x.Size >= 4 || x.N == 4 && x.Size == 4
}

// gathered loads the structures of eight lanes, rel bytes after its address.
func (x *access) gathered(a *amd64.Assembler, r regs, rel int32) {
	pair := func(d amd64.Reg, low, high int32) {
		a.Emit(amd64.VMOVDQU, amd64.X(d), amd64.Mem(x.at, rel+low))
		a.Emit(amd64.VINSERTI128, amd64.Y(d), amd64.Y(d), amd64.Mem(x.at, rel+high), amd64.Imm(1))
	}
	mix := func(in *amd64.Inst, d, x, y amd64.Reg) { a.Emit(in, amd64.Y(d), amd64.Y(x), amd64.Y(y)) }
	d := r.def
	switch {
	case x.Size == 8:
		t := r.temp[0]
		for i := range int32(2) {
			pair(t, 64*i, 64*i+32)
			pair(d[i], 64*i+16, 64*i+48)
			mix(amd64.VPUNPCKHQDQ, d[2+i], t, d[i])
			mix(amd64.VPUNPCKLQDQ, d[i], t, d[i])
		}
	case x.N == 2:
		t := r.temp[0]
		pair(t, 0, 32)
		pair(d[0], 16, 48)
		a.Emit(amd64.VSHUFPS, amd64.Y(d[1]), amd64.Y(t), amd64.Y(d[0]), amd64.Imm(0xdd))
		a.Emit(amd64.VSHUFPS, amd64.Y(d[0]), amd64.Y(t), amd64.Y(d[0]), amd64.Imm(0x88))
	default:
		for i := range int32(4) {
			pair(d[i], 16*i, 16*i+64)
		}
		mix(amd64.VPUNPCKLDQ, r.temp[0], d[0], d[1])
		mix(amd64.VPUNPCKHDQ, d[0], d[0], d[1])
		mix(amd64.VPUNPCKLDQ, r.temp[1], d[2], d[3])
		mix(amd64.VPUNPCKHDQ, d[2], d[2], d[3])
		mix(amd64.VPUNPCKHQDQ, d[3], d[0], d[2])
		mix(amd64.VPUNPCKLQDQ, d[2], d[0], d[2])
		mix(amd64.VPUNPCKLQDQ, d[0], r.temp[0], r.temp[1])
		mix(amd64.VPUNPCKHQDQ, d[1], r.temp[0], r.temp[1])
	}
}

// scattered stores the structures of eight lanes at offset.
func (x *access) scattered(a *amd64.Assembler, r regs, s []amd64.Reg) {
	t, u, v := r.temp[0], r.temp[1], r.temp[2]
	pair := func(d amd64.Reg, low, high int32) {
		a.Emit(amd64.VMOVDQU, amd64.Mem(offset, low), amd64.X(d))
		a.Emit(amd64.VEXTRACTI128, amd64.Mem(offset, high), amd64.Y(d), amd64.Imm(1))
	}
	mix := func(in *amd64.Inst, d, x, y amd64.Reg) { a.Emit(in, amd64.Y(d), amd64.Y(x), amd64.Y(y)) }
	switch {
	case x.Size == 8:
		for i := range int32(2) {
			mix(amd64.VPUNPCKLQDQ, t, s[i], s[2+i])
			pair(t, 64*i, 64*i+32)
			mix(amd64.VPUNPCKHQDQ, t, s[i], s[2+i])
			pair(t, 64*i+16, 64*i+48)
		}
	case x.N == 2:
		mix(amd64.VPUNPCKLDQ, t, s[0], s[1])
		pair(t, 0, 32)
		mix(amd64.VPUNPCKHDQ, t, s[0], s[1])
		pair(t, 16, 48)
	default:
		for i, in := range []*amd64.Inst{amd64.VPUNPCKLDQ, amd64.VPUNPCKHDQ} {
			at := int32(32 * i)
			mix(in, t, s[0], s[1])
			mix(in, u, s[2], s[3])
			mix(amd64.VPUNPCKLQDQ, v, t, u)
			pair(v, at, at+64)
			mix(amd64.VPUNPCKHQDQ, v, t, u)
			pair(v, at+16, at+80)
		}
	}
}
